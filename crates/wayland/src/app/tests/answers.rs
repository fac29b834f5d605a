//! Which keys commits answer, and which come to nothing.

use super::*;

const LOSSY: Credit = Credit { rtt: Duration::from_millis(100), loses: true, ..Credit::ENDLESS };

/// A window with the keyboard in it.
struct Typist {
    rig: Rig,
    surface: u32,
    shm: u32,
    keyboard: u32,
    drawn: u8,
}

impl Typist {
    /// At a display that predicts, or not, and that takes units in the headers of updates, or not.
    fn new(echo: bool, cover: bool) -> Self {
        let mut rig = Rig::with_desk(&Rc::new(Desk { echo, cover, ..Desk::clone(&desk()) }));
        let (surface, shm) = rig.window();
        let seat = rig.bind("wl_seat");
        let keyboard = rig.id("wl_keyboard");
        rig.request(seat, "get_keyboard", vec![Arg::NewId(keyboard)]);
        let mut typist = Self { rig, surface, shm, keyboard, drawn: 1 };
        typist.enter();
        typist.draw(&[]);
        typist
    }

    fn enter(&mut self) {
        let wire = |id| WireArg::Object(self.rig.connection.objects.wire(id).unwrap());
        let args = vec![WireArg::Uint(1), wire(self.surface), WireArg::Array(vec![])];
        self.event(self.keyboard, "enter", args);
    }

    fn event(&mut self, object: u32, name: &str, args: Vec<WireArg>) {
        let interface = tables::interface(self.rig.interfaces[&object]).unwrap();
        let opcode = tables::event_opcode(interface, name).unwrap();
        let object = self.rig.connection.objects.wire(object).unwrap();
        self.rig.tell(&ToApp::Event(Request { object, opcode, args }));
    }

    /// A key goes down, or up; the program has it unless its events are left where they are.
    fn key(&mut self, state: u32) {
        self.event(self.keyboard, "key", [7, 100, 30, state].map(WireArg::Uint).to_vec());
    }

    fn press(&mut self) {
        self.key(1);
        self.rig.events();
    }

    /// The program draws so many frames; gives which keys the units that leave answer.
    fn draw(&mut self, frames: &[Credit]) -> Vec<Option<u64>> {
        for credit in frames {
            self.commit();
            self.rig.flush_with(*credit);
        }
        self.rig.now += FRAME;
        self.rig.flush(u64::MAX);
        self.rig.units().iter().map(|unit| unit.answered).collect()
    }

    fn commit(&mut self) {
        self.drawn += 1;
        let buffer = self.rig.buffer(self.shm, 4, 4, self.drawn);
        self.rig.attach(self.surface, buffer);
        self.rig.commit(self.surface);
    }

    fn wait(&mut self, ms: u64) {
        let until = self.rig.now + Duration::from_millis(ms);
        while let Some(due) = self.rig.connection.next_timeout().filter(|due| *due <= until) {
            self.rig.now = self.rig.now.max(due);
            self.rig.connection.on_timeout(self.rig.now);
            self.rig.flush(u64::MAX);
            self.rig.now += Duration::from_millis(1);
        }
        self.rig.now = self.rig.now.max(until);
    }

    fn lates(&mut self) -> Vec<u64> {
        let late =
            |message: &ToDisplay| if let ToDisplay::Late { key } = message { Some(*key) } else { None };
        let lates = self.rig.sent.iter().filter_map(late).collect();
        self.rig.sent.clear();
        lates
    }
}

#[test]
fn a_unit_says_the_last_key_that_the_program_had() {
    let mut typist = Typist::new(true, false);
    assert_eq!(typist.draw(&[Credit::ENDLESS]), [None]);
    typist.press();
    typist.key(0);
    typist.press();
    assert_eq!(typist.draw(&[Credit::ENDLESS]), [Some(2)]);
    // One that repeats counts, and commits that are folded answer what the last one does.
    typist.key(2);
    typist.rig.events();
    typist.commit();
    typist.press();
    assert_eq!(typist.draw(&[Credit::ENDLESS]), [Some(4)]);
}

#[test]
fn a_display_that_predicts_nothing_is_told_of_no_keys() {
    for cover in [false, true] {
        let mut typist = Typist::new(false, cover);
        typist.press();
        assert!(typist.draw(&[Credit::ENDLESS]).iter().all(Option::is_none));
        typist.press();
        typist.wait(1000);
        assert_eq!(typist.lates(), []);
        assert!(
            typist.rig.updates.iter().filter_map(|update| update.unit).all(|unit| unit.answered.is_none())
        );
    }
}

#[test]
fn a_commit_that_was_read_before_the_key_was_written_does_not_answer_it() {
    let mut typist = Typist::new(true, false);
    typist.key(1);
    typist.commit();
    typist.rig.events();
    assert_eq!(typist.draw(&[]), [None]);
    assert_eq!(typist.draw(&[Credit::ENDLESS]), [Some(1)]);
}

#[test]
fn an_update_that_tells_its_unit_says_what_it_answers() {
    let mut typist = Typist::new(true, true);
    typist.press();
    typist.rig.updates.clear();
    for _ in 0..6 {
        typist.rig.now += FRAME;
        typist.commit();
        typist.rig.flush_with(LOSSY);
    }
    let told: Vec<_> = typist.rig.updates.iter().filter_map(|update| update.unit).collect();
    assert!(!told.is_empty() && told.iter().all(|unit| unit.answered == Some(1)), "{told:?}");
    // The message that says the same again does so too.
    typist.press();
    typist.wait(1000);
    let said = typist.rig.units();
    assert!(!said.is_empty() && said.iter().all(|unit| unit.answered == Some(1)), "{said:?}");
    assert_eq!(typist.lates(), [2]);
}

#[test]
fn a_key_without_content_is_told_to_be_late_once() {
    let mut typist = Typist::new(true, false);
    typist.press();
    typist.wait(40);
    assert_eq!(typist.lates(), []);
    typist.wait(20);
    assert_eq!(typist.lates(), [1]);
    typist.wait(2000);
    assert_eq!(typist.lates(), []);
    typist.press();
    assert_eq!(typist.draw(&[Credit::ENDLESS]), [Some(2)]);
    typist.wait(2000);
    assert_eq!(typist.lates(), []);
}

/// A commit without new pixels, or of a window that keys do not go to, answers no key, though the pointer be there.
#[test]
fn only_new_content_of_the_window_with_the_keyboard_answers() {
    let mut typist = Typist::new(true, false);
    let compositor = typist.rig.bind("wl_compositor");
    let other = typist.rig.surface(compositor);
    let (seat, pointer) = (typist.rig.bind("wl_seat"), typist.rig.id("wl_pointer"));
    typist.rig.request(seat, "get_pointer", vec![Arg::NewId(pointer)]);
    let place = WireArg::Object(typist.rig.connection.objects.wire(other).unwrap());
    typist.event(pointer, "enter", vec![WireArg::Uint(2), place, WireArg::Fixed(0), WireArg::Fixed(0)]);
    typist.rig.events();
    typist.press();
    typist.rig.commit(typist.surface);
    let buffer = typist.rig.buffer(typist.shm, 4, 4, 9);
    typist.rig.attach(other, buffer);
    typist.rig.commit(other);
    typist.wait(1000);
    let lates = typist.rig.sent.iter().filter(|message| **message == ToDisplay::Late { key: 1 });
    assert_eq!(lates.count(), 1);
    assert!(typist.rig.units().iter().all(|unit| unit.answered == Some(1)), "they may show it all the same");
}

#[test]
fn a_late_key_does_not_overtake_a_commit_that_waits_for_the_link() {
    let mut typist = Typist::new(true, false);
    typist.press();
    typist.commit();
    typist.press();
    typist.rig.now += Duration::from_millis(300);
    typist.rig.connection.on_timeout(typist.rig.now);
    typist.rig.collect();
    assert_eq!(typist.lates(), [], "the commit that answers the first has not left");
    typist.rig.flush(u64::MAX);
    let said: Vec<_> = typist
        .rig
        .sent
        .iter()
        .filter(|said| matches!(said, ToDisplay::Unit(_) | ToDisplay::Late { .. }))
        .collect();
    let answers = |unit: &Unit| unit.answered == Some(1);
    assert!(
        matches!(said[..], [ToDisplay::Unit(unit), ToDisplay::Late { key: 2 }] if answers(unit)),
        "{said:?}"
    );
}

#[test]
fn another_display_is_told_of_its_own_keys_alone() {
    let mut typist = Typist::new(true, false);
    (0..5).for_each(|_| typist.press());
    typist.commit();
    typist.rig.connection.detach(typist.rig.now);
    typist.rig.collect();
    typist.rig.sent.clear();
    let desk = Rc::new(Desk { echo: true, ..Desk::clone(&desk()) });
    typist.rig.connection.attach(typist.rig.now, &desk, Compression::default());
    typist.rig.collect();
    assert!(typist.draw(&[]).iter().all(Option::is_none), "the others went to another one");
    typist.enter();
    typist.press();
    typist.wait(60);
    assert_eq!(typist.lates(), [1]);
    assert_eq!(typist.draw(&[Credit::ENDLESS]), [Some(1)]);
}

#[test]
fn keys_of_two_programs_have_nothing_to_do_with_each_other() {
    let (mut one, mut other) = (Typist::new(true, false), Typist::new(true, false));
    (0..3).for_each(|_| one.press());
    other.press();
    assert_eq!(one.draw(&[Credit::ENDLESS]), [Some(3)]);
    assert_eq!(other.draw(&[Credit::ENDLESS]), [Some(1)]);
}
