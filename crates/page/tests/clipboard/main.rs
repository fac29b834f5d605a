//! Programs and a browser copy and paste in any order: a model says whose the selection is.

#[path = "../view/mod.rs"]
mod view;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use wayferry_message::{Request, ToApp, ToDisplay, UnitContent, WireArg, WireId};
use wayferry_page::{Clip, Level, MAX_COPIED_PICTURE, MAX_COPIED_TEXT, Page, Role, Transfer};
use wayferry_pixels::Format;
use wayferry_proto::{ConnectionId, Time, UpdateSeq};

use view::{PROGRAM, chunks, header, unit, window};

const OTHER: ConnectionId = ConnectionId(2);
const SEAT: WireId = WireId(12);
const CLIPBOARD: WireId = WireId(22);
const KEYBOARD: WireId = WireId(24);
const DEVICE: WireId = WireId(26);
const WINDOW: u64 = 30;
/// The first source of a program.
const FIRST: u64 = 100;

const TEXT: [&str; 3] = ["text/plain;charset=utf-8", "UTF8_STRING", "text/plain"];

fn say(page: &mut Page, program: ConnectionId, message: &ToDisplay) {
    page.on_message(Time::ZERO, program, &message.encode());
}

fn ask(page: &mut Page, program: ConnectionId, object: WireId, opcode: u16, args: Vec<WireArg>) {
    say(page, program, &view::ask(object, opcode, args));
}

/// A program with a window, a keyboard and the clipboard.
fn open(page: &mut Page, program: ConnectionId) {
    page.open(program).expect("room");
    for global in page.snapshot().globals {
        let id = WireId(2 + 2 * u64::from(global.name));
        let (interface, version) = (global.interface, global.version);
        say(page, program, &ToDisplay::Bind { global: global.name, interface, version, id });
    }
    ask(page, program, SEAT, 1, vec![WireArg::NewId(KEYBOARD)]);
    ask(page, program, CLIPBOARD, 1, vec![WireArg::NewId(DEVICE), WireArg::Object(SEAT)]);
    window(WINDOW).iter().for_each(|message| say(page, program, message));
    let update = wayferry_proto::UpdateHeader { connection: program, ..header(WINDOW, 1, 8, true) };
    assert!(update.format == 0 || Format::ALL.len() > 1);
    page.on_update(Time::ZERO, &update, chunks(8, 1));
    let shown = unit(WireId(WINDOW), 2, UnitContent::Update(UpdateSeq(1)));
    say(page, program, &ToDisplay::Unit(shown));
}

fn display() -> Page {
    let mut page = Page::new(Role::Control);
    [PROGRAM, OTHER].into_iter().for_each(|program| open(&mut page, program));
    page
}

fn focus(page: &mut Page, program: Option<ConnectionId>) {
    page.focus(program.map(|program| (program, WireId(WINDOW))));
}

/// What a program has heard and done.
#[derive(Debug, Default, Clone, PartialEq)]
struct Program {
    /// Sources that have not ended, with their kinds; and whether each was told to be of no use.
    sources: BTreeMap<WireId, (Vec<String>, bool)>,
    made: u64,
    /// Offers, with their kinds.
    offers: BTreeMap<WireId, Vec<String>>,
    /// What it believes to be selected.
    selection: Option<WireId>,
    has_keyboard: bool,
    /// Serials of the last time that the keyboard came, and went.
    entered: u32,
    left: u32,
    /// What it was asked to write: the source, the kind, the pipe.
    sends: Vec<(WireId, String, u64)>,
}

#[derive(Debug, Default)]
struct Programs(BTreeMap<ConnectionId, Program>);

impl Programs {
    fn listen(&mut self, page: &mut Page) {
        while let Some((connection, message)) = page.poll_message() {
            if let ToApp::Event(event) = ToApp::decode(&message).expect("a message") {
                self.0.entry(connection).or_default().hear(event);
            }
        }
        assert_eq!(page.poll_ended(), None);
    }

    fn of(&mut self, program: ConnectionId) -> &mut Program {
        self.0.entry(program).or_default()
    }
}

impl Program {
    fn hear(&mut self, event: Request) {
        let Request { object, opcode, args } = event;
        match (object, opcode, &args[..]) {
            (DEVICE, 0, [WireArg::NewId(offer)]) => {
                assert!(!offer.is_app());
                assert_eq!(self.offers.insert(*offer, Vec::new()), None, "an offer is new");
            }
            (DEVICE, 5, [WireArg::Object(offer)]) => {
                self.selection = (*offer != WireId::NULL).then_some(*offer);
            }
            (KEYBOARD, 1, [WireArg::Uint(serial), ..]) => (self.has_keyboard, self.entered) = (true, *serial),
            (KEYBOARD, 2, [WireArg::Uint(serial), ..]) => (self.has_keyboard, self.left) = (false, *serial),
            (offer, 0, [WireArg::Str(Some(kind))]) if self.offers.contains_key(&offer) => {
                let kinds = self.offers.get_mut(&offer).expect("it is there");
                kinds.push(String::from_utf8(kind.clone()).expect("text"));
            }
            (source, 1, [WireArg::Str(Some(kind)), WireArg::Pipe(pipe)]) if source.0 >= FIRST => {
                assert!(self.sources.contains_key(&source) && pipe & 1 == 1);
                self.sends.push((source, String::from_utf8(kind.clone()).expect("text"), *pipe));
            }
            (source, 2, []) if source.0 >= FIRST => {
                let (_, is_cancelled) = self.sources.get_mut(&source).expect("it has not ended");
                assert!(!std::mem::replace(is_cancelled, true), "it is told once");
            }
            _ => {}
        }
    }

    fn selected(&self) -> Option<&Vec<String>> {
        self.offers.get(&self.selection?)
    }
}

/// Makes a source with these kinds.
fn source(page: &mut Page, programs: &mut Programs, program: ConnectionId, kinds: &[&str]) -> WireId {
    let made = &mut programs.of(program).made;
    *made += 1;
    let id = WireId(FIRST + 2 * *made);
    ask(page, program, CLIPBOARD, 0, vec![WireArg::NewId(id)]);
    for kind in kinds {
        ask(page, program, id, 0, vec![WireArg::Str(Some(kind.as_bytes().to_vec()))]);
    }
    let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    programs.of(program).sources.insert(id, (kinds, false));
    id
}

fn select(page: &mut Page, program: ConnectionId, source: Option<WireId>) {
    select_by(page, program, source, 1);
}

/// By the event with that serial.
fn select_by(page: &mut Page, program: ConnectionId, source: Option<WireId>, serial: u32) {
    let source = source.unwrap_or(WireId::NULL);
    ask(page, program, DEVICE, 1, vec![WireArg::Object(source), WireArg::Uint(serial)]);
}

fn receive(page: &mut Page, program: ConnectionId, offer: WireId, kind: &str, pipe: u64) {
    let args = vec![WireArg::Str(Some(kind.as_bytes().to_vec())), WireArg::Pipe(pipe)];
    ask(page, program, offer, 1, args);
}

fn text(text: &'static str) -> Clip {
    Clip::Text(Bytes::from_static(text.as_bytes()))
}

fn transfers(page: &mut Page) -> Vec<Transfer> {
    std::iter::from_fn(|| page.poll_transfer()).collect()
}

#[test]
fn what_a_program_copies_is_collected_for_the_browser_once() {
    let (mut page, mut programs) = (display(), Programs::default());
    focus(&mut page, Some(PROGRAM));
    let copied =
        source(&mut page, &mut programs, PROGRAM, &["text/html", "text/plain", "UTF8_STRING", "image/png"]);
    select(&mut page, PROGRAM, Some(copied));
    programs.listen(&mut page);
    assert_eq!(programs.of(PROGRAM).sends, [(copied, "UTF8_STRING".to_owned(), 1)]);
    assert_eq!(transfers(&mut page), [Transfer::Collect { from: (PROGRAM, 1), most: MAX_COPIED_TEXT }]);
    page.on_collected((PROGRAM, 3), Some(Bytes::from_static(b"another")));
    assert_eq!(page.poll_copied(), None);
    page.on_collected((PROGRAM, 1), Some(Bytes::from_static(b"this")));
    page.on_collected((PROGRAM, 1), Some(Bytes::from_static(b"once more")));
    assert_eq!((page.poll_copied(), page.poll_copied()), (Some(text("this")), None));
    let picture = source(&mut page, &mut programs, PROGRAM, &["text/html", "image/png"]);
    select(&mut page, PROGRAM, Some(picture));
    assert_eq!(transfers(&mut page), [Transfer::Collect { from: (PROGRAM, 3), most: MAX_COPIED_PICTURE }]);
    page.on_collected((PROGRAM, 3), None);
    assert_eq!(page.poll_copied(), None);
    let other = source(&mut page, &mut programs, PROGRAM, &["text/html"]);
    select(&mut page, PROGRAM, Some(other));
    assert_eq!(transfers(&mut page), [], "a browser has nothing to do with it");
}

#[test]
fn who_pastes_gets_what_the_browser_has_or_another_program() {
    let (mut page, mut programs) = (display(), Programs::default());
    page.offer(text("of the browser"), true);
    focus(&mut page, Some(PROGRAM));
    programs.listen(&mut page);
    let offer = programs.of(PROGRAM).selection.expect("something is selected");
    assert_eq!(programs.of(PROGRAM).selected().expect("an offer"), &TEXT);
    receive(&mut page, PROGRAM, offer, "text/plain", 8);
    receive(&mut page, PROGRAM, offer, "image/png", 10);
    let send = |pipe, bytes: &'static str| Transfer::Send {
        to: (PROGRAM, pipe),
        bytes: Bytes::from_static(bytes.as_bytes()),
    };
    assert_eq!(transfers(&mut page), [send(8, "of the browser"), send(10, "")]);
    focus(&mut page, Some(OTHER));
    let copied = source(&mut page, &mut programs, OTHER, &["text/html"]);
    select(&mut page, OTHER, Some(copied));
    focus(&mut page, Some(PROGRAM));
    programs.listen(&mut page);
    receive(&mut page, PROGRAM, offer, "text/plain", 12);
    let new = programs.of(PROGRAM).selection.expect("something is selected");
    receive(&mut page, PROGRAM, new, "text/html", 14);
    let relay = Transfer::Relay { from: (OTHER, 1), to: (PROGRAM, 14) };
    assert_eq!(transfers(&mut page), [send(12, ""), relay], "what was offered before is not there any more");
    page.close(OTHER);
    programs.listen(&mut page);
    assert_eq!(programs.of(PROGRAM).selection, None, "its owner is gone");
}

/// Its copy was lost where the user went on before the page had heard of it.
#[test]
fn regression_who_copied_before_the_user_went_on_selects() {
    let (mut page, mut programs) = (display(), Programs::default());
    focus(&mut page, Some(PROGRAM));
    programs.listen(&mut page);
    let copied = source(&mut page, &mut programs, PROGRAM, &["text/plain"]);
    focus(&mut page, Some(OTHER));
    programs.listen(&mut page);
    assert_eq!(programs.of(OTHER).selection, None);
    let entered = programs.of(PROGRAM).entered;
    select_by(&mut page, PROGRAM, Some(copied), entered);
    programs.listen(&mut page);
    assert_eq!(programs.of(OTHER).selected().expect("an offer"), &["text/plain"]);

    // But not by what it heard later or never, nor after a while.
    let by = |page: &mut Page, programs: &mut Programs, serial| {
        let made = source(page, programs, PROGRAM, &["text/html"]);
        select_by(page, PROGRAM, Some(made), serial);
        programs.listen(page);
        !programs.of(PROGRAM).sources[&made].1
    };
    let left = programs.of(PROGRAM).left;
    assert!(!by(&mut page, &mut programs, left) && !by(&mut page, &mut programs, 0));
    assert!(by(&mut page, &mut programs, entered));
    page.key(Time::ZERO + Duration::from_millis(5001), 30, Level::Plain, None, true);
    assert!(!by(&mut page, &mut programs, entered));
}

/// Nor when another has selected, and what is another's it does not clear.
#[test]
fn who_went_before_takes_no_selection_that_came_later() {
    let (mut page, mut programs) = (display(), Programs::default());
    focus(&mut page, Some(OTHER));
    let others = source(&mut page, &mut programs, OTHER, &["text/html"]);
    select(&mut page, OTHER, Some(others));
    focus(&mut page, Some(PROGRAM));
    programs.listen(&mut page);
    let entered = programs.of(PROGRAM).entered;
    focus(&mut page, Some(OTHER));
    select_by(&mut page, PROGRAM, None, entered);
    programs.listen(&mut page);
    assert!(!programs.of(OTHER).sources[&others].1);

    select(&mut page, OTHER, None);
    let late = source(&mut page, &mut programs, PROGRAM, &["text/plain"]);
    select_by(&mut page, PROGRAM, Some(late), entered);
    programs.listen(&mut page);
    assert!(programs.of(PROGRAM).sources[&late].1);
}

#[test]
fn a_paste_that_says_nothing_new_does_not_take_the_selection_from_a_program() {
    let (mut page, mut programs) = (display(), Programs::default());
    focus(&mut page, Some(PROGRAM));
    let copied = source(&mut page, &mut programs, PROGRAM, &["text/html"]);
    select(&mut page, PROGRAM, Some(copied));
    page.offer(text("known"), false);
    programs.listen(&mut page);
    assert_eq!(programs.of(PROGRAM).selected().expect("an offer"), &["text/html"]);
    ask(&mut page, PROGRAM, copied, 1, Vec::new());
    page.offer(text("known"), false);
    programs.listen(&mut page);
    assert_eq!(programs.of(PROGRAM).selected().expect("an offer"), &TEXT, "no other program has anything");
    page.offer(Clip::Text(vec![b'a'; MAX_COPIED_TEXT + 1].into()), true);
    let offer = programs.of(PROGRAM).selection.expect("something is selected");
    receive(&mut page, PROGRAM, offer, "text/plain", 2);
    let bytes = Bytes::from_static(b"known");
    assert_eq!(
        transfers(&mut page),
        [Transfer::Send { to: (PROGRAM, 2), bytes }],
        "what is too much is no news"
    );
}

#[test]
fn what_is_more_than_may_be_is_not_offered_on() {
    let (mut page, mut programs) = (display(), Programs::default());
    focus(&mut page, Some(PROGRAM));
    let kinds: Vec<String> = (0..200).map(|kind| format!("kind/{kind}")).collect();
    let kinds: Vec<&str> =
        kinds.iter().map(String::as_str).chain([&*"k".repeat(300)].map(|_| "kind/0")).collect();
    let many = source(&mut page, &mut programs, PROGRAM, &kinds);
    select(&mut page, PROGRAM, Some(many));
    programs.listen(&mut page);
    assert_eq!(programs.of(PROGRAM).selected().expect("an offer").len(), 128);
    // A program that never ends an offer is told of no more than so many.
    for _ in 0..200 {
        focus(&mut page, None);
        focus(&mut page, Some(PROGRAM));
    }
    programs.listen(&mut page);
    let program = programs.of(PROGRAM);
    assert_eq!((program.offers.len(), program.selection), (64, None));
    let old: Vec<WireId> = program.offers.keys().copied().collect();
    old.into_iter().for_each(|offer| ask(&mut page, PROGRAM, offer, 2, Vec::new()));
    focus(&mut page, None);
    focus(&mut page, Some(PROGRAM));
    programs.listen(&mut page);
    assert!(programs.of(PROGRAM).selection.is_some());
    // Names are as long as may be.
    let long = source(&mut page, &mut programs, PROGRAM, &[&"k".repeat(257), &"k".repeat(256)]);
    select(&mut page, PROGRAM, Some(long));
    programs.listen(&mut page);
    assert_eq!(programs.of(PROGRAM).selected().expect("an offer").len(), 1);
}

#[test]
fn what_is_dragged_is_refused() {
    let (mut page, mut programs) = (display(), Programs::default());
    focus(&mut page, Some(PROGRAM));
    let dragged = source(&mut page, &mut programs, PROGRAM, &["text/plain"]);
    let surface = WireArg::Object(WireId(WINDOW));
    let args = vec![WireArg::Object(dragged), surface, WireArg::Object(WireId::NULL), WireArg::Uint(1)];
    ask(&mut page, PROGRAM, DEVICE, 0, args);
    programs.listen(&mut page);
    assert!(programs.of(PROGRAM).sources[&dragged].1, "its program hears of it");
}

#[derive(Debug, Clone)]
enum Step {
    Focus(Option<bool>),
    /// A program makes a source and selects it: by the keyboard's coming, or its going.
    Copy(bool, bool, bool),
    /// It selects one that it has.
    Again(bool, usize),
    Clear(bool),
    /// A source ends.
    End(bool, usize),
    Offer(bool, bool),
    Receive(bool, usize, bool),
    EndOffer(bool, usize),
    Leave(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let who = any::<bool>;
    prop_oneof![
        4 => proptest::option::of(who()).prop_map(Step::Focus),
        4 => (who(), any::<bool>(), any::<bool>()).prop_map(|(who, is_text, late)| Step::Copy(who, is_text, late)),
        2 => (who(), 0usize..4).prop_map(|(who, which)| Step::Again(who, which)),
        1 => who().prop_map(Step::Clear),
        2 => (who(), 0usize..4).prop_map(|(who, which)| Step::End(who, which)),
        3 => (any::<bool>(), any::<bool>()).prop_map(|(which, is_new)| Step::Offer(which, is_new)),
        4 => (who(), 0usize..4, any::<bool>()).prop_map(|(who, which, kind)| Step::Receive(who, which, kind)),
        2 => (who(), 0usize..4).prop_map(|(who, which)| Step::EndOffer(who, which)),
        1 => who().prop_map(Step::Leave),
    ]
}

#[derive(Debug, Clone, PartialEq)]
enum Owner {
    Free,
    Program(ConnectionId, WireId),
    Browser(&'static str),
}

/// What should be.
struct Model {
    owner: Owner,
    focus: Option<ConnectionId>,
    /// Who had it before, and may select by an event of then.
    before: Option<ConnectionId>,
    pipe: u64,
}

fn who(is_other: bool) -> ConnectionId {
    if is_other { OTHER } else { PROGRAM }
}

impl Model {
    fn select(&mut self, program: ConnectionId, source: Option<WireId>, late: bool) {
        if self.focus == Some(program) {
            self.before = None;
        }
        if self.focus == Some(program) || (self.before == Some(program) && !late) {
            self.owner = source.map_or(Owner::Free, |source| Owner::Program(program, source));
        }
    }

    fn take(&mut self, page: &mut Page, programs: &mut Programs, step: &Step) {
        match *step {
            Step::Focus(program) => {
                let next = program.map(who);
                if next != self.focus {
                    self.before = self.focus.or(self.before).filter(|before| Some(*before) != next);
                }
                self.focus = next;
                focus(page, self.focus);
            }
            Step::Copy(of, is_text, late) => {
                let kinds: &[&str] = if is_text { &["text/html", "text/plain"] } else { &["text/html"] };
                let made = source(page, programs, who(of), kinds);
                let (entered, left) = (programs.of(who(of)).entered, programs.of(who(of)).left);
                select_by(page, who(of), Some(made), if late { left } else { entered });
                self.select(who(of), Some(made), late);
            }
            Step::Again(of, which) => {
                let usable =
                    programs.of(who(of)).sources.iter().filter(|(_, (_, is_cancelled))| !is_cancelled);
                let Some(source) = usable.map(|(id, _)| *id).nth(which) else { return };
                select(page, who(of), Some(source));
                self.select(who(of), Some(source), true);
            }
            Step::Clear(of) => {
                select(page, who(of), None);
                self.select(who(of), None, true);
            }
            Step::End(of, which) => {
                let Some(source) = programs.of(who(of)).sources.keys().nth(which).copied() else { return };
                programs.of(who(of)).sources.remove(&source);
                programs.of(who(of)).sends.retain(|(other, ..)| *other != source);
                ask(page, who(of), source, 1, Vec::new());
                if self.owner == Owner::Program(who(of), source) {
                    self.owner = Owner::Free;
                }
            }
            Step::Offer(which, is_new) => {
                let offered = if which { "one" } else { "another" };
                page.offer(text(offered), is_new);
                if is_new || !matches!(self.owner, Owner::Program(..)) {
                    if self.owner != Owner::Browser(offered) {
                        self.before = None;
                    }
                    self.owner = Owner::Browser(offered);
                }
            }
            Step::Receive(of, which, is_text) => self.receive(page, programs, who(of), (which, is_text)),
            Step::EndOffer(of, which) => {
                let program = programs.of(who(of));
                let old = program.offers.keys().filter(|offer| program.selection != Some(**offer)).nth(which);
                let Some(offer) = old.copied() else { return };
                program.offers.remove(&offer);
                ask(page, who(of), offer, 2, Vec::new());
            }
            Step::Leave(of) => {
                if matches!(self.owner, Owner::Program(owner, _) if owner == who(of)) {
                    self.owner = Owner::Free;
                }
                self.focus = self.focus.filter(|focus| *focus != who(of));
                self.before = self.before.filter(|before| *before != who(of));
                programs.0.remove(&who(of));
                page.close(who(of));
                open(page, who(of));
            }
        }
    }

    /// Bytes come from whose the selection is, if it is the one that was offered.
    fn receive(
        &mut self,
        page: &mut Page,
        programs: &mut Programs,
        by: ConnectionId,
        (which, is_text): (usize, bool),
    ) {
        programs.listen(page);
        transfers(page);
        let program = programs.of(by);
        let Some(offer) = program.offers.keys().nth(which).copied() else { return };
        let kind = if is_text { "text/plain" } else { "text/html" };
        let is_there = program.offers[&offer].iter().any(|known| known == kind);
        let is_current = program.selection == Some(offer) && self.focus == Some(by);
        self.pipe += 2;
        receive(page, by, offer, kind, self.pipe);
        let done = transfers(page);
        assert_eq!(done.len(), 1, "it is answered once");
        let (Transfer::Send { to, .. } | Transfer::Relay { to, .. }) = &done[0] else { panic!("{done:?}") };
        assert_eq!(*to, (by, self.pipe));
        if !(is_there && is_current) {
            return;
        }
        programs.listen(page);
        match (&done[0], &self.owner) {
            (Transfer::Send { bytes, .. }, Owner::Browser(offered)) => assert_eq!(bytes, offered),
            (Transfer::Relay { from: (from, pipe), .. }, Owner::Program(owner, source)) => {
                assert_eq!(from, owner);
                assert_eq!(programs.of(*owner).sends.last(), Some(&(*source, kind.to_owned(), *pipe)));
            }
            (done, owner) => panic!("{done:?} where the selection is of {owner:?}"),
        }
    }

    /// The program that has the keyboard knows what is selected, and each that has lost that was told.
    fn check(&self, programs: &mut Programs) {
        let expected = match &self.owner {
            Owner::Free => None,
            Owner::Browser(_) => Some(TEXT.map(str::to_owned).to_vec()),
            Owner::Program(owner, source) => Some(programs.of(*owner).sources[source].0.clone()),
        };
        for (connection, program) in &programs.0 {
            assert_eq!(program.has_keyboard, self.focus == Some(*connection));
            if program.has_keyboard {
                assert_eq!(program.selected(), expected.as_ref());
            }
            for (source, (_, is_cancelled)) in &program.sources {
                assert_eq!(*is_cancelled, self.owner != Owner::Program(*connection, *source));
            }
        }
    }
}

proptest! {
    #[test]
    fn the_selection_is_whose_the_model_says(steps in proptest::collection::vec(step(), 1..80)) {
        let (mut page, mut programs) = (display(), Programs::default());
        let mut model = Model { owner: Owner::Free, focus: None, before: None, pipe: 0 };
        for step in &steps {
            model.take(&mut page, &mut programs, step);
            programs.listen(&mut page);
            model.check(&mut programs);
        }
        [PROGRAM, OTHER].into_iter().for_each(|program| page.close(program));
        prop_assert_eq!(page.kept(), 0);
    }
}
