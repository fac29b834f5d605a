//! A page as the display of the real app half: what a program shows is there, and what its user does reaches it.

mod compositor;
#[path = "../halves/program.rs"]
#[allow(dead_code, reason = "a part of it is for displays that follow each other")]
mod program;
mod rig;
mod user;

use std::time::Duration;

use proptest::prelude::*;
use wayferry_message::WireId;
use wayferry_page::{Area, Cursor, Inside, Level, Node, Page, Wheel};
use wayferry_pixels::Content;
use wayferry_wayland::wire::Arg;

use compositor::picture;
use program::{Deed, Program, SURFACES};
use rig::{PROGRAM, Rig};
use user::User;

/// A program with a window that fills the area and has the keyboard; what it has heard until then is gone.
fn working(rig: &mut Rig) -> User {
    rig.act(|page, _| page.set_area(Area::new(100, 80, 120)));
    let mut user = User::new(rig);
    let surface = user.surface;
    user.show(rig, surface, (100, 80));
    let window = window(rig);
    rig.act(|page, _| page.focus(Some((PROGRAM, window))));
    user.hear(rig);
    user
}

fn window(rig: &Rig) -> WireId {
    let program = rig.page.programs().next().expect("it is there").1;
    program.windows().next().expect("a window").root.surface
}

fn press(rig: &mut Rig, code: u32, level: Level, character: char) {
    rig.act(|page, now| page.key(now, code, level, Some(character), true));
    rig.act(|page, now| page.key(now, code, level, None, false));
}

#[test]
fn a_window_fills_the_area_and_is_told_when_that_changes() {
    let mut rig = Rig::new();
    rig.act(|page, _| page.set_area(Area::new(640, 480, 120)));
    let mut user = User::new(&mut rig);
    // The first before the window is shown: maximized.
    let surface = user.surface;
    user.show(&mut rig, surface, (640, 480));
    let window = window(&rig);
    rig.act(|page, _| page.focus(Some((PROGRAM, window))));
    assert_eq!(user.hear(&mut rig)[0], "toplevel.configure 640 480 [1, 4]");
    rig.act(|page, _| page.set_area(Area::new(500, 400, 180)));
    let heard = user.hear(&mut rig);
    assert!(heard.contains(&"toplevel.configure 500 400 [1, 4]".to_owned()), "{heard:?}");
    assert!(heard.contains(&"surface.preferred_buffer_scale 2".to_owned()), "{heard:?}");
    user.request(user.toplevel, "set_fullscreen", vec![Arg::Object(0)]);
    assert_eq!(user.hear(&mut rig), ["toplevel.configure 500 400 [1, 2, 4]"]);
    rig.act(|page, _| page.close_window(PROGRAM, window));
    assert_eq!(user.hear(&mut rig), ["toplevel.close"]);
}

#[test]
fn keys_reach_the_program_after_the_keymap_that_they_need() {
    let mut rig = Rig::new();
    let mut user = working(&mut rig);
    assert!(user.keymap.contains("[ z, Z ]"));
    press(&mut rig, 30, Level::Plain, 'a');
    assert_eq!(user.hear(&mut rig), ["keyboard.key 30 1", "keyboard.key 30 0"]);
    // It is a German one.
    press(&mut rig, 44, Level::Plain, 'y');
    let heard = user.hear(&mut rig);
    assert_eq!(
        heard,
        ["keyboard.keymap", "keyboard.modifiers 0 0 0 0", "keyboard.key 44 1", "keyboard.key 44 0",]
    );
    assert!(user.keymap.contains("key <I44> { type = \"FOUR_LEVEL_ALPHABETIC\", [ y, Y ] };"));
    rig.act(|page, _| page.set_modifiers(1));
    press(&mut rig, 44, Level::Shift, 'Y');
    rig.act(|page, now| page.type_text(now, "é\n"));
    let heard = user.hear(&mut rig);
    assert_eq!(heard[..3], ["keyboard.modifiers 1 0 0 0", "keyboard.key 44 1", "keyboard.key 44 0"]);
    assert_eq!(heard[3..6], ["keyboard.modifiers 0 0 0 0", "keyboard.keymap", "keyboard.modifiers 0 0 0 0",]);
    assert_eq!(heard[8..], ["keyboard.key 28 1", "keyboard.key 28 0", "keyboard.modifiers 1 0 0 0"]);
    assert!(user.keymap.contains("[ eacute ]"));
}

#[test]
fn held_keys_stay_down_and_go_up_when_the_page_is_left() {
    let mut rig = Rig::new();
    let mut user = working(&mut rig);
    rig.act(|page, now| page.key(now, 30, Level::Plain, Some('a'), true));
    rig.act(|page, now| page.key(now, 30, Level::Plain, Some('a'), true));
    for _ in 0..40 {
        rig.pass(Duration::from_millis(50));
        rig.deliver_up(usize::MAX);
    }
    assert_eq!(user.hear(&mut rig), ["keyboard.key 30 1"]);
    rig.act(|page, now| page.release(now));
    rig.act(|page, now| page.key(now, 30, Level::Plain, None, false));
    assert_eq!(user.hear(&mut rig), ["keyboard.key 30 0"]);
}

#[test]
fn the_pointer_enters_clicks_and_scrolls() {
    let mut rig = Rig::new();
    let mut user = working(&mut rig);
    let window = window(&rig);
    rig.act(|page, now| page.point(now, PROGRAM, window, 10.5, 20.0));
    rig.act(|page, now| page.button(now, 272, true));
    // Out of the window, but the button is down.
    rig.act(|page, now| page.point(now, PROGRAM, window, -5.0, 20.0));
    rig.act(|page, now| page.button(now, 272, false));
    let surface = user.surface;
    assert_eq!(
        user.hear(&mut rig),
        [
            &format!("pointer.enter {surface} 10.5 20"),
            "pointer.frame",
            "pointer.button 272 1",
            "pointer.frame",
            "pointer.motion -5 20",
            "pointer.frame",
            "pointer.button 272 0",
            "pointer.frame",
            &format!("pointer.leave {surface}"),
            "pointer.frame",
        ]
    );
    rig.act(|page, now| page.point(now, PROGRAM, window, 10.0, 20.0));
    user.hear(&mut rig);
    rig.act(|page, now| page.wheel(now, Wheel { distance: [0.0, 15.0], steps: [0, 120] }));
    rig.act(|page, now| page.wheel(now, Wheel { distance: [2.0, 1.0], steps: [0, 0] }));
    rig.act(|page, now| page.wheel(now, Wheel::default()));
    rig.act(|page, now| page.wheel(now, Wheel::default()));
    assert_eq!(
        user.hear(&mut rig),
        [
            "pointer.axis_source 0",
            "pointer.axis_value120 0 120",
            "pointer.axis 0 15",
            "pointer.frame",
            "pointer.axis_source 1",
            "pointer.axis 0 1",
            "pointer.axis 1 2",
            "pointer.frame",
            "pointer.axis_source 1",
            "pointer.axis_stop 0",
            "pointer.axis_stop 1",
            "pointer.frame",
        ]
    );
}

#[test]
fn a_popup_is_placed_takes_the_keyboard_and_is_over_with_a_click_elsewhere() {
    let mut rig = Rig::new();
    let mut user = working(&mut rig);
    let base = user.globals["xdg_wm_base"];
    let (surface, xdg_surface) = user.shell_surface();
    let positioner = user.make(base, "create_positioner", vec![]);
    user.request(positioner, "set_size", [40, 30].map(Arg::Int).into());
    user.request(positioner, "set_anchor_rect", [80, 10, 10, 5].map(Arg::Int).into());
    user.request(positioner, "set_anchor", vec![Arg::Uint(6)]);
    user.request(positioner, "set_gravity", vec![Arg::Uint(8)]);
    user.request(positioner, "set_constraint_adjustment", vec![Arg::Uint(3)]);
    let args = vec![Arg::Object(user.xdg_surface), Arg::Object(positioner)];
    let popup = user.make(xdg_surface, "get_popup", args);
    user.request(popup, "grab", vec![Arg::Object(user.globals["wl_seat"]), Arg::Uint(1)]);
    user.request(surface, "commit", vec![]);
    let heard = user.hear(&mut rig);
    assert_eq!(heard, ["popup.configure 60 15 40 30"], "it slid into the area");
    user.show(&mut rig, surface, (40, 30));
    rig.act(|page, now| page.key(now, 30, Level::Plain, Some('a'), true));
    assert_eq!(shown(&rig), [(100, 80), (40, 30)]);
    let window = window(&rig);
    rig.act(|page, now| page.point(now, PROGRAM, window, 65.0, 20.0));
    let heard = user.hear(&mut rig);
    assert_eq!(heard.last(), Some(&"pointer.frame".to_owned()));
    assert!(heard.contains(&format!("pointer.enter {surface} 5 5")), "{heard:?}");
    rig.act(|page, now| page.point_nowhere(now));
    rig.act(|page, now| page.button(now, 272, true));
    let heard = user.hear(&mut rig);
    assert!(heard.contains(&"popup.popup_done".to_owned()), "{heard:?}");
    assert_eq!(shown(&rig), [(100, 80)]);
}

/// Sizes of all surfaces that are to be seen.
fn shown(rig: &Rig) -> Vec<(i32, i32)> {
    fn each(node: &Node<'_>, sizes: &mut Vec<(i32, i32)>) {
        node.inside.iter().for_each(|inside| match inside {
            Inside::Itself => sizes.push(node.shape.size(node.content.size())),
            Inside::Child(child) => each(child, sizes),
        });
    }
    let mut sizes = Vec::new();
    let programs = rig.page.programs();
    programs.flat_map(|(_, program)| program.windows()).for_each(|window| each(&window.root, &mut sizes));
    sizes
}

#[test]
fn the_cursor_is_what_the_program_says() {
    let mut rig = Rig::new();
    let mut user = working(&mut rig);
    let window = window(&rig);
    rig.act(|page, now| page.point(now, PROGRAM, window, 10.0, 20.0));
    user.hear(&mut rig);
    assert!(matches!(rig.page.cursor(), Cursor::Default));
    let pointer = user.globals["wl_pointer"];
    let manager = user.globals["wp_cursor_shape_manager_v1"];
    let device = user.make(manager, "get_pointer", vec![Arg::Object(pointer)]);
    user.request(device, "set_shape", [1, 9].map(Arg::Uint).into());
    user.hear(&mut rig);
    assert!(matches!(rig.page.cursor(), Cursor::Default | Cursor::Named("text")));
    rig.act(|page, now| page.point_nowhere(now));
    user.hear(&mut rig);
    assert!(matches!(rig.page.cursor(), Cursor::Default));
}

fn deed() -> impl Strategy<Value = Deed> {
    let surface = || 0..SURFACES;
    prop_oneof![
        12 => (surface(), proptest::option::weighted(0.85, any::<[u8; 4]>()), any::<bool>(), any::<bool>())
            .prop_map(|(surface, paint, by_buffer, frame)| Deed::Commit { surface, paint, by_buffer, frame }),
        1 => surface().prop_map(|surface| Deed::Unmap { surface }),
        1 => (surface(), any::<(u8, u8)>()).prop_map(|(surface, size)| Deed::Resize { surface, size }),
        1 => surface().prop_map(|surface| Deed::Grow { surface }),
        1 => (surface(), any::<u8>()).prop_map(|(surface, scale)| Deed::Scale { surface, scale }),
        1 => (surface(), any::<u8>()).prop_map(|(surface, transform)| Deed::Transform { surface, transform }),
        1 => (surface(), any::<Option<(u8, u8)>>()).prop_map(|(surface, size)| Deed::Viewport { surface, size }),
        2 => (surface(), any::<bool>()).prop_map(|(surface, sync)| Deed::Sync { surface, sync }),
        1 => (surface(), surface(), any::<bool>())
            .prop_map(|(surface, sibling, above)| Deed::Place { surface, sibling, above }),
        1 => (surface(), any::<(u8, u8)>()).prop_map(|(surface, to)| Deed::Move { surface, to }),
        1 => (surface(), any::<u8>()).prop_map(|(surface, title)| Deed::Title { surface, title }),
        1 => surface().prop_map(|surface| Deed::Renew { surface }),
    ]
}

#[derive(Debug, Clone)]
enum Step {
    Act(Deed),
    Down(usize),
    Up(usize),
    Update(usize),
    Draw,
    Pass(u64),
    Flush(u64, bool),
    Point(i8, i8),
    Key(u32, bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => deed().prop_map(Step::Act),
        3 => (1usize..20).prop_map(Step::Down),
        2 => (1usize..20).prop_map(Step::Up),
        4 => (0usize..16).prop_map(Step::Update),
        1 => Just(Step::Draw),
        3 => (1u64..40).prop_map(Step::Pass),
        3 => (prop_oneof![Just(0u64), 1..500u64, Just(u64::MAX)], any::<bool>())
            .prop_map(|(budget, taking)| Step::Flush(budget, taking)),
        1 => any::<(i8, i8)>().prop_map(|(x, y)| Step::Point(x, y)),
        1 => (30u32..34, any::<bool>()).prop_map(|(code, pressed)| Step::Key(code, pressed)),
    ]
}

fn take(rig: &mut Rig, program: &mut Program, step: &Step) {
    let first = rig.surfaces.first().copied();
    match *step {
        Step::Act(ref deed) => program.act(rig, deed),
        Step::Down(count) => rig.deliver_down(count),
        Step::Up(count) => rig.deliver_up(count),
        Step::Update(which) => rig.update(which),
        Step::Draw => rig.draw(),
        Step::Pass(time) => rig.pass(Duration::from_millis(time)),
        Step::Flush(budget, taking) => rig.flush(budget, taking),
        Step::Point(x, y) => {
            if let Some(surface) = first {
                rig.act(|page, now| page.point(now, PROGRAM, surface, x.into(), y.into()));
            }
        }
        Step::Key(code, pressed) => {
            rig.act(|page, _| page.focus(first.map(|surface| (PROGRAM, surface))));
            rig.act(|page, now| page.key(now, code, Level::Plain, None, pressed));
        }
    }
}

fn named(page: &Page, surface: WireId) -> Option<u128> {
    let program = page.programs().next().expect("it is there").1;
    let content: &Content = program.content(surface)?;
    Some(picture((content.size().width() as i32, content.size().height() as i32), content.pixels()))
}

/// Plays the steps, and lets everything arrive. Gives what differs in the end from what the program has shown.
fn play(steps: &[Step]) -> Vec<usize> {
    let mut rig = Rig::new();
    let mut program = Program::new(&mut rig);
    rig.settle();
    program.read(&mut rig);
    for step in steps {
        take(&mut rig, &mut program, step);
    }
    for shows in [false, true] {
        if shows {
            program.commit_all(&mut rig);
        }
        rig.settle();
        program.read(&mut rig);
        rig.settle();
    }
    let truth = program.truth();
    let wrong = truth.filter(|(place, expected)| named(&rig.page, rig.surfaces[*place]) != *expected);
    wrong.map(|(place, _)| place).collect()
}

#[test]
fn regression_what_a_child_had_kept_was_shown_after_its_newer_commit() {
    let nothing = Deed::Commit { surface: 1, paint: None, by_buffer: false, frame: false };
    assert_eq!(play(&[Step::Act(Deed::Unmap { surface: 2 }), Step::Act(nothing)]), [0; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// However late pixels come, and what they replace: in the end all is there as it was shown last.
    #[test]
    fn in_the_end_a_page_shows_what_the_program_has_shown(steps in proptest::collection::vec(step(), 1..80)) {
        prop_assert_eq!(play(&steps), [0; 0]);
    }
}
