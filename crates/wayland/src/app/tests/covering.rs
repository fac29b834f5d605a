//! Updates that tell their units, and those of a busy surface, which make up for the ones before them.

use wayferry_proto::Worth;

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
        let told = |update: Update| (update.covers, update.worth == Worth::Passing);
        self.rig.updates.drain(..).map(told).collect()
    }

    /// What the updates since are to the user.
    fn worths(&mut self) -> Vec<Worth> {
        self.rig.updates.drain(..).map(|update| update.worth).collect()
    }

    /// A keyboard that is in a surface, if in any.
    fn keyboard(&mut self, surface: Option<u32>) -> u32 {
        let seat = self.rig.bind("wl_seat");
        let keyboard = self.rig.id("wl_keyboard");
        self.rig.request(seat, "get_keyboard", vec![Arg::NewId(keyboard)]);
        if let Some(surface) = surface {
            let surface = WireArg::Object(self.rig.connection.objects.wire(surface).unwrap());
            self.event(keyboard, 1, vec![WireArg::Uint(1), surface, WireArg::Array(vec![])]);
        }
        keyboard
    }

    fn press(&mut self, keyboard: u32) {
        self.event(keyboard, 3, [7, 100, 30, 1].map(WireArg::Uint).to_vec());
    }

    fn event(&mut self, object: u32, opcode: u16, args: Vec<WireArg>) {
        let object = self.rig.connection.objects.wire(object).unwrap();
        self.rig.tell(&ToApp::Event(Request { object, opcode, args }));
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
    let keyboard = window.keyboard(None);
    (0..4).for_each(|value| window.draw(0, 10 + value));
    assert_eq!(window.covers().last(), Some(&(3, true)));
    window.press(keyboard);
    window.draw(0, 20);
    assert_eq!(window.covers(), [(4, false)]);
    window.applied(8);
    window.rig.now += Duration::from_millis(301);
    (0..4).for_each(|value| window.draw(0, 30 + value));
    assert_eq!(window.covers().last(), Some(&(3, true)));
}

/// Within 300 ms after a key each update of the program was repaired, and made up for as well.
#[test]
fn what_a_busy_window_draws_answers_no_key_of_another() {
    let mut window = Window::new();
    let (other, _) = window.rig.window();
    let keyboard = window.keyboard(Some(other));
    (0..4).for_each(|value| window.draw(0, 10 + value));
    window.worths();
    window.press(keyboard);
    (0..4).for_each(|value| window.draw(0, 20 + value));
    assert_eq!(window.worths(), [Worth::Passing; 4]);
    let mut window = Window::new();
    let keyboard = window.keyboard(Some(window.surface));
    window.draw(0, 10);
    assert_eq!(window.worths(), [Worth::Plain], "there was no key");
    window.press(keyboard);
    window.draw(0, 20);
    assert_eq!(window.worths(), [Worth::Answer]);
}

/// A program repeats by itself what is held, later than what answers a press.
#[test]
fn what_a_held_key_draws_answers_it() {
    let mut window = Window::new();
    let keyboard = window.keyboard(Some(window.surface));
    window.press(keyboard);
    let object = window.rig.connection.objects.wire(keyboard).unwrap();
    for _ in 0..6 {
        window.rig.now += Duration::from_millis(100);
        let time_ns = u64::try_from(window.rig.now.since_start().as_nanos()).unwrap();
        window.rig.tell(&ToApp::Read { time_ns });
        window.rig.tell(&ToApp::KeysHeld { keyboard: object });
    }
    window.worths();
    window.draw(0, 10);
    assert_eq!(window.worths(), [Worth::Answer]);
}

/// A pointer that has gone is nowhere when its frame comes.
#[test]
fn a_pointer_that_leaves_asks_nothing_of_other_windows() {
    let mut window = Window::new();
    let (other, _) = window.rig.window();
    let seat = window.rig.bind("wl_seat");
    let pointer = window.rig.id("wl_pointer");
    window.rig.request(seat, "get_pointer", vec![Arg::NewId(pointer)]);
    let surface = WireArg::Object(window.rig.connection.objects.wire(other).unwrap());
    let at = [WireArg::Fixed(0), WireArg::Fixed(0)].to_vec();
    window.event(pointer, 0, [vec![WireArg::Uint(1), surface.clone()], at].concat());
    window.rig.now += Duration::from_millis(400);
    (0..4).for_each(|value| window.draw(0, 10 + value));
    window.worths();
    window.event(pointer, 1, vec![WireArg::Uint(2), surface]);
    window.event(pointer, 5, vec![]);
    (0..4).for_each(|value| window.draw(0, 20 + value));
    assert_eq!(window.worths(), [Worth::Passing; 4]);
}

/// A window that is typed into and never stops had each of its updates repaired while the user typed.
#[test]
fn of_a_busy_window_the_first_updates_after_a_key_answer_it() {
    let mut window = Window::new();
    let keyboard = window.keyboard(Some(window.surface));
    (0..4).for_each(|value| window.draw(0, 10 + value));
    for _ in 0..2 {
        window.worths();
        window.press(keyboard);
        (0..6).for_each(|value| window.draw(0, 20 + value));
        let (answers, passing) = ([Worth::Answer; 3], [Worth::Passing; 3]);
        assert_eq!(window.worths(), [answers, passing].concat());
    }
}

/// Of a window that changes in ever other places nothing is covered, and each update was waited for while the user
/// typed.
#[test]
fn regression_all_that_a_busy_window_draws_elsewhere_answered_a_key() {
    let mut window = Window::new();
    let keyboard = window.keyboard(Some(window.surface));
    (0..4).for_each(|frame| window.draw(frame % 3 * 20, 10 + frame as u8));
    window.worths();
    window.press(keyboard);
    (4..10).for_each(|frame| window.draw(frame % 3 * 20, 10 + frame as u8));
    assert!(window.rig.updates.iter().all(|update| update.covers == 0));
    assert_eq!(window.worths(), [[Worth::Answer; 3], [Worth::Plain; 3]].concat());
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
