//! Viewers: what they are told, what they share, and what they cannot do.

use std::collections::BTreeMap;

use wayferry_pixels::{Content, Decoder, Encoder};

use super::better::{IDLE, commit_photo};
use super::*;

/// What a view's display understands of what it is told; it answers only when it is asked to.
pub(super) struct Eye {
    pub(super) view: View,
    encoder: Encoder,
    credit: Credit,
    decoder: Decoder,
    contents: BTreeMap<u64, Content>,
    messages: Vec<ToDisplay>,
    /// Surfaces with what they show, by the units so far.
    shown: BTreeMap<u64, u8>,
    /// It does not look at the pixels that it gets.
    blind: bool,
}

impl Eye {
    fn new() -> Self {
        Self::with(false, false)
    }

    /// It shows videos or not, and does not look at pixels.
    #[cfg(feature = "video")]
    pub(super) fn blind(video: bool) -> Self {
        Self::with(video, true)
    }

    fn with(video: bool, blind: bool) -> Self {
        let globals = ["wp_viewporter", "zxdg_decoration_manager_v1"];
        let mut desk = Desk::clone(&desk());
        let more = (50..).zip(globals).map(|(name, interface)| {
            let version = tables::version_cap(interface);
            Global { name, interface: interface.to_owned(), version }
        });
        desk.snapshot.globals.extend(more);
        desk.video = video;
        Self {
            view: View::new(&Rc::new(desk), Compression::default(), Some(75)),
            encoder: Encoder::new(Compression::default()),
            credit: Credit::ENDLESS,
            decoder: Decoder::new(),
            contents: BTreeMap::new(),
            messages: Vec::new(),
            shown: BTreeMap::new(),
            blind,
        }
    }

    /// A turn of the run loop.
    pub(super) fn turn(&mut self, rig: &mut Rig) {
        rig.connection.set_watched(true);
        let published: Vec<_> = std::iter::from_fn(|| rig.connection.poll_published()).collect();
        self.see(rig, &published);
    }

    fn see(&mut self, rig: &Rig, published: &[Published]) {
        let (now, core) = (rig.now, &rig.connection);
        let mut credit = self.credit;
        for published in published {
            self.view.hand_on(now, core, published, &mut self.encoder, &mut credit);
        }
        self.view.look(now, core, &Scene::of(core), &mut self.encoder, &mut credit);
        while let Some(action) = self.view.poll_action() {
            match action {
                Action::Update(_) if self.blind => {}
                Action::Update(update) => {
                    let Update { surface, size, format, fresh, chunks, .. } = update;
                    if fresh {
                        self.contents.insert(surface.0, Content::new(size, format));
                    }
                    let content = self.contents.get_mut(&surface.0).expect("the first update is fresh");
                    self.decoder.apply(content, &chunks).unwrap();
                }
                Action::Message(bytes) => self.messages.push(ToDisplay::decode(&bytes).unwrap()),
                other => panic!("no business of a view: {other:?}"),
            }
        }
    }

    /// The display configures each window that waits for it, and applies all units.
    pub(super) fn answer(&mut self, rig: &Rig) {
        for message in std::mem::take(&mut self.messages) {
            match message {
                ToDisplay::Request(request) if request.args.len() == 2 && is_xdg(&request) => {
                    let Some(WireArg::NewId(xdg)) = request.args.first() else { continue };
                    let event = Request { object: *xdg, opcode: 0, args: vec![WireArg::Uint(7)] };
                    self.view.on_message(rig.now, &ToApp::Event(event).encode());
                }
                ToDisplay::Unit(unit) => {
                    self.apply(&unit);
                    let (surface, unit) = (unit.surface, unit.number);
                    self.view.on_message(rig.now, &ToApp::Applied { surface, unit }.encode());
                }
                _ => {}
            }
        }
    }

    fn apply(&mut self, unit: &Unit) {
        unit.children.iter().for_each(|child| self.apply(child));
        match unit.content {
            UnitContent::Keep => {}
            UnitContent::None => drop(self.shown.remove(&unit.surface.0)),
            UnitContent::Update(_) if self.blind => {}
            UnitContent::Update(_) => {
                let pixels = self.contents[&unit.surface.0].pixels();
                let plain = pixels.iter().all(|byte| *byte == pixels[0]);
                assert!(plain || pixels.len() > 64, "half a picture");
                self.shown.insert(unit.surface.0, pixels[0]);
            }
        }
    }

    /// Turns until nothing happens any more.
    pub(super) fn settle(&mut self, rig: &mut Rig) {
        for _ in 0..8 {
            rig.now += FRAME;
            self.turn(rig);
            self.answer(rig);
        }
    }

    /// What its windows and the surfaces in them show, the oldest first.
    fn shows(&self) -> Vec<u8> {
        self.shown.values().copied().collect()
    }
}

/// `xdg_wm_base.get_xdg_surface`: the only request with a new object and one other that has this opcode.
fn is_xdg(request: &Request) -> bool {
    let base = tables::interface("xdg_wm_base").unwrap();
    Some(request.opcode) == tables::request_opcode(base, "get_xdg_surface")
        && matches!(request.args[..], [WireArg::NewId(_), WireArg::Object(_)])
}

/// The program paints and the active display gets it.
fn frame(rig: &mut Rig, surface: u32, shm: u32, value: u8) {
    rig.now += FRAME;
    rig.paint(surface, shm, value);
    rig.flush(u64::MAX);
    rig.units();
}

#[test]
fn what_is_encoded_for_the_active_display_is_encoded_once_for_all() {
    let encoded = |views: usize| {
        let mut rig = Rig::new();
        let (surface, _, _, shm) = rig.mapped();
        let mut eyes: Vec<Eye> = std::iter::repeat_with(Eye::new).take(views).collect();
        eyes.iter_mut().for_each(|eye| eye.settle(&mut rig));
        let own: Vec<u64> = eyes.iter().map(|eye| eye.view.counts().own).collect();
        for value in 10..60 {
            frame(&mut rig, surface, shm, value);
            let published: Vec<_> = std::iter::from_fn(|| rig.connection.poll_published()).collect();
            for eye in &mut eyes {
                eye.see(&rig, &published);
                eye.answer(&rig);
                assert_eq!(eye.shows(), [value]);
            }
        }
        for (eye, own) in eyes.iter().zip(own) {
            assert_eq!(eye.view.counts(), Counts { own, shared: 50 });
            assert_eq!(eye.view.kept(), 0);
        }
        rig.connection.encodings()
    };
    assert_eq!(encoded(2), encoded(0));
}

#[test]
fn a_view_that_gets_nothing_is_told_nothing_and_then_what_is() {
    let mut rig = Rig::new();
    let (surface, _, toplevel, shm) = rig.mapped();
    let mut eye = Eye::new();
    eye.settle(&mut rig);
    eye.credit = Credit::default();
    for value in 0..100 {
        frame(&mut rig, surface, shm, value);
        eye.turn(&mut rig);
    }
    assert!(eye.messages.iter().filter(|message| matches!(message, ToDisplay::Unit(_))).count() <= 4);
    assert_eq!(eye.shows(), [1]);
    // Nor without end what takes no budget.
    for number in 0..100_000 {
        rig.request(toplevel, "set_title", vec![Arg::Str(Some(format!("title {number}").into_bytes()))]);
        eye.turn(&mut rig);
    }
    let bytes: usize = eye.messages.iter().map(|message| message.encode().len()).sum();
    assert!(bytes < 300_000, "{bytes} bytes");
    eye.credit = Credit::ENDLESS;
    eye.view.on_message(rig.now, &ToApp::Consumed { bytes: eye.view.sent() }.encode());
    eye.answer(&rig);
    eye.settle(&mut rig);
    assert_eq!(eye.shows(), [99]);
}

#[test]
fn who_fell_behind_encodes_alone_and_follows_again_when_it_has_the_same() {
    let mut rig = Rig::new();
    let (surface, _, _, shm) = rig.mapped();
    let mut eye = Eye::new();
    eye.settle(&mut rig);
    let follows = |eye: &Eye| eye.view.kept() == 0;
    assert!(follows(&eye));
    // An update is taken back: the next one builds on what was before it.
    frame(&mut rig, surface, shm, 20);
    eye.turn(&mut rig);
    rig.now += FRAME;
    rig.paint(surface, shm, 21);
    let mut credit = Credit { content: u64::MAX, ..Credit::default() };
    rig.connection.flush(rig.now, Turn::Rest, &mut credit, &mut |_, _| Some(1));
    rig.collect();
    eye.settle(&mut rig);
    assert_eq!((eye.shows(), follows(&eye)), (vec![21], false));
    rig.units();
    rig.now += Duration::from_secs(3);
    frame(&mut rig, surface, shm, 22);
    eye.settle(&mut rig);
    assert_eq!((eye.shows(), follows(&eye)), (vec![22], true));
}

#[test]
fn a_view_waits_for_an_active_display_that_is_slow_but_not_for_one_that_is_stuck() {
    let mut rig = Rig::new();
    let (surface, _, _, shm) = rig.mapped();
    let mut eye = Eye::new();
    eye.settle(&mut rig);
    rig.now += FRAME;
    let callback = rig.frame(surface);
    rig.paint(surface, shm, 30);
    rig.events();
    eye.settle(&mut rig);
    assert_eq!(eye.shows(), [1]);
    rig.now += flush::PATIENCE;
    eye.settle(&mut rig);
    assert_eq!(eye.shows(), [30]);
    rig.connection.on_timeout(rig.now);
    assert!(names(&rig.events()).contains(&(callback, "done")), "the program draws on");
}

#[test]
fn views_go_on_without_an_active_display_and_the_program_draws_for_them() {
    let mut rig = Rig::new();
    let (surface, _, _, shm) = rig.mapped();
    let mut eye = Eye::new();
    eye.settle(&mut rig);
    rig.connection.detach(rig.now);
    let callback = rig.frame(surface);
    rig.paint(surface, shm, 40);
    rig.events();
    eye.settle(&mut rig);
    assert_eq!(eye.shows(), [40]);
    rig.now += FRAME;
    rig.connection.on_timeout(rig.now);
    assert!(names(&rig.events()).contains(&(callback, "done")), "as for a display that is there");
    rig.connection.attach(rig.now, &desk(), Compression::default());
    rig.collect();
    eye.settle(&mut rig);
    assert_eq!(eye.shows(), [40]);
}

#[test]
fn popups_are_parts_of_their_parents_where_the_active_display_has_put_them() {
    let mut rig = Rig::new();
    let (parent, xdg, _, shm) = rig.mapped();
    let (compositor, base) = (rig.bind("wl_compositor"), rig.bind("xdg_wm_base"));
    rig.request(xdg, "set_window_geometry", [2, 3, 4, 4].map(Arg::Int).into());
    rig.commit(parent);
    let mut eye = Eye::new();
    eye.settle(&mut rig);
    let positioner = rig.make(base, "create_positioner", "xdg_positioner", vec![]);
    let surface = rig.surface(compositor);
    let of = rig.make(base, "get_xdg_surface", "xdg_surface", vec![Arg::Object(surface)]);
    let popup = rig.make(of, "get_popup", "xdg_popup", vec![Arg::Object(xdg), Arg::Object(positioner)]);
    rig.commit(surface);
    rig.event(popup, "configure", [100, 200, 4, 4].map(WireArg::Int).into());
    rig.event(of, "configure", vec![WireArg::Uint(60)]);
    rig.request(of, "ack_configure", vec![Arg::Uint(60)]);
    rig.request(of, "set_window_geometry", [1, 1, 2, 2].map(Arg::Int).into());
    rig.paint(surface, shm, 9);
    rig.flush(u64::MAX);
    eye.turn(&mut rig);
    let unit = eye.messages.iter().find_map(|message| match message {
        ToDisplay::Unit(unit) if !unit.children.is_empty() => Some(unit),
        _ => None,
    });
    let place = unit.and_then(|unit| unit.state.first()).map(|request| request.args.clone());
    assert_eq!(place, Some([2 + 100 - 1, 3 + 200 - 1].map(WireArg::Int).to_vec()));
    eye.settle(&mut rig);
    assert_eq!(eye.shows(), [1, 9]);
    rig.request(popup, "destroy", vec![]);
    rig.request(of, "destroy", vec![]);
    eye.settle(&mut rig);
    assert_eq!(eye.view.surfaces(), 1, "only the parent is left");
}

#[test]
fn what_is_lossy_becomes_exact() {
    let mut rig = Rig::new();
    let (surface, _, _, shm) = rig.mapped();
    rig.connection.detach(rig.now);
    commit_photo(&mut rig, surface, shm, 1);
    let mut eye = Eye::new();
    eye.credit = IDLE;
    let exact = |eye: &Eye, rig: &Rig| {
        let theirs = rig.connection.surfaces[&surface].painter.content().unwrap();
        eye.contents.values().next().is_some_and(|content| content.pixels() == theirs.pixels())
    };
    eye.turn(&mut rig);
    eye.answer(&rig);
    eye.turn(&mut rig);
    assert!(!eye.contents.is_empty());
    assert!(!exact(&eye, &rig), "the link is too slow for that");
    for _ in 0..1000 {
        rig.now += FRAME;
        eye.turn(&mut rig);
        eye.answer(&rig);
    }
    assert!(exact(&eye, &rig));
}

#[test]
fn a_view_asks_for_no_seat_and_no_clipboard() {
    let mut rig = Rig::new();
    rig.mapped();
    let mut eye = Eye::new();
    eye.turn(&mut rig);
    let bound = eye.messages.iter().filter_map(|message| match message {
        ToDisplay::Bind { interface, .. } => Some(interface.as_str()),
        _ => None,
    });
    let expected =
        ["wl_compositor", "wl_subcompositor", "xdg_wm_base", "wp_viewporter", "zxdg_decoration_manager_v1"];
    assert_eq!(bound.collect::<Vec<_>>(), expected);
}

proptest! {
    /// Of any input of a view's display the program hears nothing, and what is kept for the view stays bounded.
    #[test]
    fn hostile_views_reach_no_program(
        words in proptest::collection::vec((0u8..12, 0u64..40, 0u64..40, 0u16..4), 1..200),
        bytes in proptest::collection::vec(any::<u8>(), 0..64)
    ) {
        let mut rig = Rig::new();
        let (surface, _, _, shm) = rig.mapped();
        let mut eye = Eye::new();
        eye.settle(&mut rig);
        rig.events();
        for (kind, object, number, opcode) in words {
            let (surface, unit) = (WireId(object), number);
            let args = [
                WireArg::Uint(number as u32),
                WireArg::Object(surface),
                WireArg::NewId(WireId(number)),
            ];
            let args = args[..usize::from(opcode)].to_vec();
            let message = match kind {
                0..4 => ToApp::Event(Request { object: surface, opcode, args }),
                4 => ToApp::Deleted(surface),
                5 => ToApp::Applied { surface, unit },
                6 => ToApp::Visible { surface, visible: number % 2 == 0 },
                7 => ToApp::KeysHeld { keyboard: surface },
                8 => ToApp::Refresh { surface },
                9 => ToApp::Consumed { bytes: number },
                10 => ToApp::Discarded { surface, unit },
                _ => ToApp::Read { time_ns: number },
            };
            eye.view.on_message(rig.now, &message.encode());
            eye.turn(&mut rig);
        }
        eye.view.on_message(rig.now, &bytes);
        eye.turn(&mut rig);
        prop_assert!(rig.events().is_empty());
        prop_assert!(rig.connection.end().is_none());
        prop_assert!(eye.messages.len() < 100);
        frame(&mut rig, surface, shm, 77);
        prop_assert_eq!(rig.updates.last().map(|update| rig.shown(update)), Some(77));
    }
}
