//! A script says anything of its user, while windows do anything: what programs hear of it is sound.

#[path = "../view/mod.rs"]
mod view;

use std::collections::BTreeSet;

use proptest::prelude::*;
use wayferry_message::{Request, ToApp, ToDisplay, UnitContent, WireArg, WireId};
use wayferry_page::{Level, Page, Role, Wheel};
use wayferry_proto::Time;

use view::*;

const SEAT: WireId = WireId(12);
const POINTER: WireId = WireId(24);
const KEYBOARD: WireId = WireId(26);
/// Two windows.
const WINDOWS: [u64; 2] = [30, 40];

/// A page that is a display, with both windows of one program.
fn display() -> Page {
    let mut page = page_as(Role::Control);
    say(&mut page, &ask(SEAT, 0, vec![WireArg::NewId(POINTER)]));
    say(&mut page, &ask(SEAT, 1, vec![WireArg::NewId(KEYBOARD)]));
    for surface in WINDOWS {
        window(surface).iter().for_each(|message| say(&mut page, message));
        bring(&mut page, surface, 1, 1);
        say(&mut page, &ToDisplay::Unit(wayferry_message::Unit { number: 2, ..show(surface, 1) }));
    }
    page
}

#[derive(Debug, Clone)]
enum Step {
    /// A key, and whether its character is the one that keymaps begin with.
    Key(u32, bool, bool),
    Modifiers(u32),
    Type(&'static str),
    Release,
    Focus(Option<usize>),
    Point(usize, i8, i8),
    Nowhere,
    Button(u32, bool),
    Wheel(i8, i8),
    /// A window shows nothing any more, or something again.
    Show(usize, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let window = || 0usize..2;
    prop_oneof![
        8 => (30u32..33, any::<bool>(), any::<bool>()).prop_map(|(code, new, down)| Step::Key(code, new, down)),
        1 => (0u32..256).prop_map(Step::Modifiers),
        1 => prop_oneof![Just("é"), Just("漢\na"), Just("")].prop_map(Step::Type),
        1 => Just(Step::Release),
        2 => proptest::option::of(window()).prop_map(Step::Focus),
        5 => (window(), -2i8..12, -2i8..12).prop_map(|(window, x, y)| Step::Point(window, x, y)),
        1 => Just(Step::Nowhere),
        4 => (272u32..275, any::<bool>()).prop_map(|(code, down)| Step::Button(code, down)),
        2 => (-1i8..2, -1i8..2).prop_map(|(steps, distance)| Step::Wheel(steps, distance)),
        2 => (window(), any::<bool>()).prop_map(|(window, shows)| Step::Show(window, shows)),
    ]
}

/// The windows as the program has shown them.
struct Shown {
    units: [u64; 2],
    updates: [u64; 2],
}

fn take(page: &mut Page, shown: &mut Shown, step: &Step) {
    let surface = |window: usize| WireId(WINDOWS[window]);
    let now = Time::ZERO;
    match *step {
        Step::Key(code, is_new, pressed) => {
            let character = if is_new { 'я' } else { ['a', 's', 'd'][code as usize - 30] };
            page.key(now, code, Level::Plain, Some(character), pressed);
        }
        Step::Modifiers(modifiers) => page.set_modifiers(modifiers),
        Step::Type(text) => page.type_text(now, text),
        Step::Release => page.release(now),
        Step::Focus(window) => page.focus(window.map(|window| (PROGRAM, surface(window)))),
        Step::Point(window, x, y) => page.point(now, PROGRAM, surface(window), x.into(), y.into()),
        Step::Nowhere => page.point_nowhere(now),
        Step::Button(code, pressed) => page.button(now, code, pressed),
        Step::Wheel(steps, distance) => {
            let (steps, distance) = (i32::from(steps) * 60, f64::from(distance));
            page.wheel(now, Wheel { distance: [0.0, distance], steps: [0, steps] });
        }
        Step::Show(window, shows) => {
            shown.units[window] += 1;
            let content = if shows {
                shown.updates[window] += 1;
                bring(page, WINDOWS[window], shown.updates[window], 2);
                UnitContent::Update(wayferry_proto::UpdateSeq(shown.updates[window]))
            } else {
                UnitContent::None
            };
            say(page, &ToDisplay::Unit(unit(surface(window), shown.units[window], content)));
        }
    }
}

/// A program that believes what it hears, and says what is wrong with it.
#[derive(Default)]
struct Listener {
    keymaps: BTreeSet<u128>,
    serial: u32,
    keyboard_in: Option<WireId>,
    keys: BTreeSet<u32>,
    pointer_in: Option<WireId>,
    buttons: BTreeSet<u32>,
    /// Events of the pointer since the last frame.
    pending: usize,
    /// Keys that it was told to have gone down and up, in this order.
    heard: Vec<(u32, bool)>,
}

impl Listener {
    fn hear(&mut self, event: &Request) {
        match event.object {
            KEYBOARD => self.hear_keyboard(event.opcode, &event.args),
            POINTER => self.hear_pointer(event.opcode, &event.args),
            _ => {}
        }
    }

    /// Serials only grow.
    fn serial(&mut self, serial: u32) {
        assert!(serial > self.serial, "{serial} after {}", self.serial);
        self.serial = serial;
    }

    fn hear_keyboard(&mut self, opcode: u16, args: &[WireArg]) {
        match (opcode, args) {
            (0, [WireArg::Uint(1), WireArg::Blob { hash, .. }, WireArg::Uint(_)]) => {
                assert!(self.keymaps.contains(hash), "a keymap that was not sent before");
            }
            (1, [WireArg::Uint(serial), WireArg::Object(surface), WireArg::Array(keys)]) => {
                self.serial(*serial);
                assert_eq!(self.keyboard_in.replace(*surface), None, "it was left before");
                let keys = keys.as_chunks::<4>().0.iter();
                self.keys = keys.map(|key| u32::from_le_bytes(*key)).collect();
            }
            (2, [WireArg::Uint(serial), WireArg::Object(surface)]) => {
                self.serial(*serial);
                assert_eq!(self.keyboard_in.take(), Some(*surface));
                self.keys.clear();
            }
            (3, [WireArg::Uint(serial), _, WireArg::Uint(key), WireArg::Uint(state)]) => {
                self.serial(*serial);
                assert!(self.keyboard_in.is_some(), "a key without the keyboard");
                let is_news = if *state == 1 { self.keys.insert(*key) } else { self.keys.remove(key) };
                assert!(is_news, "key {key} is {state} once more");
                self.heard.push((*key, *state == 1));
            }
            (4, [WireArg::Uint(serial), ..]) => {
                self.serial(*serial);
                assert!(self.keyboard_in.is_some(), "modifiers without the keyboard");
            }
            _ => panic!("event {opcode} of a keyboard: {args:?}"),
        }
    }

    fn hear_pointer(&mut self, opcode: u16, args: &[WireArg]) {
        self.pending += 1;
        match (opcode, args) {
            (0, [WireArg::Uint(serial), WireArg::Object(surface), _, _]) => {
                self.serial(*serial);
                assert_eq!(self.pointer_in.replace(*surface), None, "it was left before");
                self.buttons.clear();
            }
            (1, [WireArg::Uint(serial), WireArg::Object(surface)]) => {
                self.serial(*serial);
                assert_eq!(self.pointer_in.take(), Some(*surface));
                // A surface that shows nothing any more hears nothing of the button that is down on it.
                self.buttons.clear();
            }
            (3, [WireArg::Uint(serial), _, WireArg::Uint(button), WireArg::Uint(state)]) => {
                self.serial(*serial);
                assert!(self.pointer_in.is_some(), "a button without the pointer");
                let is_news = match state {
                    0 => self.buttons.remove(button),
                    _ => self.buttons.insert(*button),
                };
                assert!(is_news, "button {button} is {state} once more");
            }
            (5, []) => {
                assert!(self.pending > 1, "a frame of nothing");
                self.pending = 0;
            }
            (2 | 4 | 6..=9, _) => assert!(self.pointer_in.is_some(), "event {opcode} without the pointer"),
            _ => panic!("event {opcode} of a pointer: {args:?}"),
        }
    }

    /// All that the page has said since; keymaps go before it, as a session sends them.
    fn listen(&mut self, page: &mut Page) {
        while let Some((hash, _)) = page.poll_blob() {
            self.keymaps.insert(hash);
        }
        for message in said(page) {
            if let ToApp::Event(event) = message {
                self.hear(&event);
            }
        }
        assert_eq!(self.pending, 0, "no frame ends what the pointer has heard");
        assert_eq!(page.poll_ended(), None);
    }
}

/// A page, its windows and its program.
fn scene() -> (Page, Shown, Listener) {
    let mut page = display();
    let mut listener = Listener::default();
    listener.listen(&mut page);
    (page, Shown { units: [2; 2], updates: [1; 2] }, listener)
}

proptest! {
    #[test]
    fn a_program_hears_of_the_seat_what_a_compositor_would_say(steps in proptest::collection::vec(step(), 1..120)) {
        let (mut page, mut shown, mut listener) = scene();
        for step in &steps {
            take(&mut page, &mut shown, step);
            listener.listen(&mut page);
        }
        page.release(Time::ZERO);
        listener.listen(&mut page);
        prop_assert!(listener.keys.is_empty() && listener.buttons.is_empty(), "something is still down");
    }

    /// While a window has the keyboard, nothing is lost, doubled or reordered.
    #[test]
    fn each_key_is_told_once_and_in_order(
        keys in proptest::collection::vec((30u32..40, any::<bool>(), any::<bool>()), 1..120)
    ) {
        let (mut page, _, mut listener) = scene();
        page.focus(Some((PROGRAM, WireId(WINDOWS[0]))));
        let (mut down, mut expected) = (Vec::new(), Vec::new());
        for (code, learns, pressed) in keys {
            let character = if learns { Some('ж') } else { None };
            page.key(Time::ZERO, code, Level::Plain, character, pressed);
            listener.listen(&mut page);
            if down.contains(&code) != pressed {
                expected.push((code, pressed));
                down.retain(|other| *other != code);
                down.extend(pressed.then_some(code));
            }
        }
        page.release(Time::ZERO);
        listener.listen(&mut page);
        expected.extend(down.into_iter().rev().map(|code| (code, false)));
        prop_assert_eq!(listener.heard, expected);
    }
}

#[test]
fn a_display_tells_when_the_browser_draws_with_the_next_commit_and_a_viewer_does_not() {
    for (role, beats) in [(Role::Control, vec![ToApp::Beat { time_ns: 16 }]), (Role::View, vec![])] {
        let mut page = page_as(role);
        window(30).iter().for_each(|message| say(&mut page, message));
        bring(&mut page, 30, 1, 1);
        say(&mut page, &ToDisplay::Unit(wayferry_message::Unit { number: 2, ..show(30, 1) }));
        page.on_frame(16);
        // Nothing new is drawn then, so it is no time at which the display wants anything.
        page.on_frame(33);
        said(&mut page);
        for number in [3, 4] {
            say(&mut page, &ToDisplay::Unit(unit(WireId(30), number, UnitContent::Keep)));
        }
        let applied = |unit| ToApp::Applied { surface: WireId(30), unit };
        let expected: Vec<_> = beats.into_iter().chain([applied(3), applied(4)]).collect();
        assert_eq!(said(&mut page), expected);
    }
}
