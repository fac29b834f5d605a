//! Updates that tell their units, and those of a busy surface, which make up for the ones before them.

use super::*;

/// A link that loses now and then.
const LOSSY: Credit = Credit { rtt: Duration::from_millis(100), loses: true, ..Credit::ENDLESS };
const SIDE: i32 = 64;

/// A window at a display that takes updates which cover others.
struct Window {
    rig: Rig,
    surface: u32,
    shm: u32,
    pixels: Vec<u8>,
}

impl Window {
    fn new() -> Self {
        let mut rig = Rig::with_desk(&Rc::new(Desk { cover: true, ..Desk::clone(&desk()) }));
        let (surface, shm) = rig.window();
        let mut window = Self { rig, surface, shm, pixels: vec![0; (SIDE * SIDE * 4) as usize] };
        window.draw(0, 1);
        window.rig.units();
        window.rig.updates.clear();
        window.rig.sent.clear();
        window
    }

    /// The next frame: a square of 8 × 8 pixels changes, with its left edge at `x`.
    fn draw(&mut self, x: usize, value: u8) {
        self.draw_with(LOSSY, x, value, |_, _| {});
    }

    fn draw_with(&mut self, credit: Credit, x: usize, value: u8, also: impl FnOnce(&mut Rig, u32)) {
        let Self { rig, surface, shm, pixels } = self;
        rig.now += FRAME;
        for row in 20..28 {
            let start = (row * SIDE as usize + x) * 4;
            pixels[start..start + 32].fill(value);
        }
        let buffer = rig.buffer_of(*shm, SIDE, SIDE, pixels);
        rig.attach(*surface, buffer);
        also(rig, *surface);
        rig.commit(*surface);
        rig.flush_with(credit);
        assert_eq!(rig.connection.end(), None);
        // It is there after a round trip.
        let unit = rig.connection.surfaces[surface].sent.coming_unit();
        self.applied(unit.saturating_sub(7));
    }

    /// What the updates since cover, and whether they are about to be covered.
    fn covers(&mut self) -> Vec<(u8, bool)> {
        self.rig.updates.drain(..).map(|update| (update.covers, update.passing)).collect()
    }

    fn applied(&mut self, unit: u64) {
        let surface = self.rig.connection.surfaces[&self.surface].wire;
        self.rig.tell(&ToApp::Applied { surface, unit });
    }
}

#[test]
fn a_commit_of_nothing_but_pixels_is_told_by_its_update() {
    let mut window = Window::new();
    window.draw(0, 7);
    let unit = window.rig.updates[0].unit.expect("its unit");
    assert_eq!((unit.number, unit.feedback), (3, false));
    assert!(window.rig.unapplied_units().is_empty());
    // What is said next finds it in its place.
    let (rig, surface) = (&mut window.rig, window.surface);
    let child = rig.id("wl_callback");
    rig.request(surface, "frame", vec![Arg::NewId(child)]);
    rig.bind("wl_compositor");
    let messages = std::mem::take(&mut rig.sent);
    let [ToDisplay::Unit(told), ToDisplay::Bind { .. }] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!((told.number, told.content), (3, UnitContent::Update(UpdateSeq(3))));
    assert_eq!(rig.connection.told.take().count(), 0);
}

#[test]
fn what_is_applied_is_not_told_again() {
    let mut window = Window::new();
    window.draw(0, 7);
    window.applied(3);
    window.rig.bind("wl_compositor");
    assert!(window.rig.unapplied_units().is_empty());
}

#[test]
fn a_commit_that_says_more_has_a_message() {
    let state = |rig: &mut Rig, surface: u32| {
        rig.request(surface, "set_buffer_transform", vec![Arg::Int(2)]);
    };
    let mut window = Window::new();
    window.draw_with(LOSSY, 0, 7, state);
    assert!(window.rig.updates[0].unit.is_none());
    assert_eq!(window.rig.units().len(), 1);
    // So has each at an older display.
    let mut rig = Rig::new();
    let (surface, shm) = rig.window();
    rig.units();
    rig.now += FRAME;
    let buffer = rig.buffer(shm, 4, 4, 9);
    rig.attach(surface, buffer);
    rig.commit(surface);
    rig.flush_with(LOSSY);
    assert!(rig.updates.last().is_some_and(|update| update.unit.is_none()));
    assert_eq!(rig.units().len(), 1);
}

#[test]
fn a_busy_window_makes_up_for_what_may_be_lost() {
    let mut window = Window::new();
    (0..8).for_each(|value| window.draw(0, 10 + value));
    let covers: Vec<_> = [0, 1, 2, 3, 4, 5, 6, 6].into_iter().map(|covers| (covers, covers > 0)).collect();
    assert_eq!(window.covers(), covers);
    window.applied(9);
    window.draw(0, 30);
    assert_eq!(window.covers(), [(1, true)], "the others are there");
}

#[test]
fn nothing_is_made_up_for_that_another_message_came_behind() {
    let mut window = Window::new();
    (0..4).for_each(|value| window.draw(0, 10 + value));
    window.covers();
    window.rig.bind("wl_compositor");
    window.draw(0, 20);
    window.draw(0, 21);
    assert_eq!(window.covers(), [(0, false), (1, true)]);
}

#[test]
fn a_window_that_changes_elsewhere_each_time_is_repaired() {
    let mut window = Window::new();
    (0..6).for_each(|n| window.draw(8 * n, 10 + n as u8));
    assert_eq!(window.covers(), [(0, false); 6]);
}

#[test]
fn where_nothing_is_lost_nothing_is_painted_twice() {
    let mut window = Window::new();
    let clean = Credit { loses: false, ..LOSSY };
    (0..6).for_each(|value| window.draw_with(clean, 0, 10 + value, |_, _| {}));
    assert_eq!(window.covers(), [(0, false); 6]);
    let near = Credit { rtt: Duration::from_millis(20), ..LOSSY };
    (0..6).for_each(|value| window.draw_with(near, 0, 20 + value, |_, _| {}));
    assert_eq!(window.covers(), [(0, false); 6], "a loss is repaired before the next frame");
}

#[test]
fn an_answer_to_the_user_is_repaired_all_the_same() {
    let mut window = Window::new();
    let seat = window.rig.bind("wl_seat");
    let keyboard = window.rig.id("wl_keyboard");
    window.rig.request(seat, "get_keyboard", vec![Arg::NewId(keyboard)]);
    (0..4).for_each(|value| window.draw(0, 10 + value));
    assert_eq!(window.covers().last(), Some(&(3, true)));
    let object = window.rig.connection.objects.wire(keyboard).unwrap();
    let args = [7, 100, 30, 1].map(WireArg::Uint).to_vec();
    window.rig.tell(&ToApp::Event(Request { object, opcode: 3, args }));
    window.draw(0, 20);
    assert_eq!(window.covers(), [(4, false)]);
    window.applied(8);
    window.rig.now += Duration::from_millis(301);
    (0..4).for_each(|value| window.draw(0, 30 + value));
    assert_eq!(window.covers().last(), Some(&(3, true)));
}

/// One that is lost may be the only one that was to tell when it was shown.
#[test]
fn feedback_of_a_lost_frame_is_answered_with_a_later_one() {
    let mut desk = Desk { cover: true, ..Desk::clone(&desk()) };
    let name = "wp_presentation".to_owned();
    desk.snapshot.globals.push(Global { name: 40, interface: name, version: 1 });
    let mut rig = Rig::with_desk(&Rc::new(desk));
    let (surface, shm) = rig.window();
    let presentation = rig.bind("wp_presentation");
    let mut window = Window { rig, surface, shm, pixels: vec![0; (SIDE * SIDE * 4) as usize] };
    window.draw(0, 1);
    let mut feedback = 0;
    window.draw_with(LOSSY, 0, 2, |rig, surface| {
        feedback = rig.id("wp_presentation_feedback");
        rig.request(presentation, "feedback", vec![Arg::Object(surface), Arg::NewId(feedback)]);
    });
    window.draw(0, 3);
    let told: Vec<_> = window.rig.updates.iter().rev().take(2).map(|update| update.unit).collect();
    assert!(told.iter().all(|unit| unit.is_some_and(|unit| unit.feedback)), "{told:?}");
    window.rig.events();
    let (surface, number) = (window.rig.connection.surfaces[&surface].wire, told[0].unwrap().number);
    let (time_ns, refresh_ns, sequence, flags) = (1, 1, 1, 0);
    let unit = number;
    window.rig.tell(&ToApp::Presented { surface, unit, time_ns, refresh_ns, sequence, flags });
    assert!(names(&window.rig.events()).contains(&(feedback, "discarded")));
}
