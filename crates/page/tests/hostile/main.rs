//! Any input of an app side: no panic, and no more memory than the limits say.

#[path = "../videos/browser.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod browser;
#[path = "../view/mod.rs"]
mod view;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use proptest::prelude::*;
use wayferry_message::value::{Positioner, RegionOp};
use wayferry_message::{ToDisplay, Unit, UnitContent, WireArg, WireId};
use wayferry_page::{Area, Inside, Level, Node, Page, Role, Task, Wheel, rgba};
use wayferry_pixels::video::Frame;
use wayferry_pixels::{Rect, Video};
use wayferry_proto::{Time, UpdateHeader, UpdateSeq};
use wayferry_video::Layout;

use browser::{Film, bytes_of};
use view::*;

#[derive(Debug, Clone)]
enum Step {
    Say(ToDisplay),
    Raw(Vec<u8>),
    Update(UpdateHeader, Vec<Bytes>),
    Frame,
    Pass(u64),
    Look,
    Open,
    /// What a script says of the user: which of all that there is, of what surface, and two numbers.
    User(u8, WireId, i16, i16),
    /// What it says of frames: what of all that there is, and a number.
    Decode(u8, u8),
}

/// Ids that are often ones that are there.
fn id() -> impl Strategy<Value = WireId> {
    prop_oneof![8 => (2u64..40).prop_map(|id| WireId(2 * id)), 1 => any::<u64>().prop_map(|id| WireId(id >> 2))]
}

fn arg() -> impl Strategy<Value = WireArg> {
    prop_oneof![
        4 => (-3i32..300).prop_map(WireArg::Int),
        1 => any::<i32>().prop_map(WireArg::Int),
        2 => any::<i32>().prop_map(WireArg::Fixed),
        4 => id().prop_map(WireArg::Object),
        4 => id().prop_map(WireArg::NewId),
        1 => any::<u32>().prop_map(WireArg::Uint),
        1 => proptest::option::of(proptest::collection::vec(any::<u8>(), 0..9)).prop_map(WireArg::Str),
        1 => proptest::collection::vec(any::<(bool, [i8; 4])>(), 0..4).prop_map(|ops| {
            let op = |(adds, [x, y, width, height]): (bool, [i8; 4])| {
                let [x, y, width, height] = [x, y, width, height].map(i32::from);
                if adds { RegionOp::Add(x, y, width, height) } else { RegionOp::Subtract(x, y, width, height) }
            };
            WireArg::Region(ops.into_iter().map(op).collect())
        }),
        2 => positioner().prop_map(WireArg::Positioner),
    ]
}

fn positioner() -> impl Strategy<Value = Positioner> {
    let number = || prop_oneof![4 => -9i32..99, 1 => any::<i32>()];
    let edge = || proptest::option::of(0u32..10);
    let pair = || (number(), number());
    let rect = (number(), number(), number(), number());
    (proptest::option::of(pair()), proptest::option::of(rect), edge(), edge(), 0u32..64, pair()).prop_map(
        |(size, anchor_rect, anchor, gravity, adjustment, offset)| Positioner {
            size,
            anchor_rect,
            anchor,
            gravity,
            constraint_adjustment: Some(adjustment),
            offset: Some(offset),
            ..Positioner::default()
        },
    )
}

/// A popup of another window or popup, with the two objects after it; it may ask for the keyboard.
fn popup(surface: u64, parent: u64, rules: Positioner, grabs: bool) -> Vec<ToDisplay> {
    let [surface, xdg_surface, popup, parent] = [surface, surface + 2, surface + 4, parent + 2].map(WireId);
    let args = vec![WireArg::NewId(popup), WireArg::Object(parent), WireArg::Positioner(rules)];
    let mut said = vec![
        create(surface),
        ask(SHELL, 2, vec![WireArg::NewId(xdg_surface), WireArg::Object(surface)]),
        ask(xdg_surface, 2, args),
    ];
    said.extend(grabs.then(|| ask(popup, 1, vec![WireArg::Object(SEAT), WireArg::Uint(1)])));
    said.push(ToDisplay::Unit(unit(surface, 1, UnitContent::Keep)));
    said
}

/// The seat of a page that is a display.
const SEAT: WireId = WireId(12);

fn any_request() -> impl Strategy<Value = wayferry_message::Request> {
    (id(), 0u16..10, proptest::collection::vec(arg(), 0..4))
        .prop_map(|(object, opcode, args)| request(object, opcode, args))
}

/// What is sound in itself, about surfaces that may be there.
fn likely() -> impl Strategy<Value = Vec<ToDisplay>> {
    let near = || (10u64..40).prop_map(|id| 2 * id);
    prop_oneof![
        near().prop_map(|id| window(id).to_vec()),
        (near(), near()).prop_map(|(id, parent)| child(id, parent).to_vec()),
        (near(), near()).prop_map(|(id, of)| {
            vec![ask(VIEWPORTER, 1, vec![WireArg::NewId(WireId(id)), WireArg::Object(WireId(of))])]
        }),
        id().prop_map(|id| vec![ask(id, 0, vec![])]),
        // Of a display; the others are told none of it.
        (near(), near(), positioner(), any::<bool>())
            .prop_map(|(id, parent, rules, grabs)| popup(id, parent, rules, grabs)),
        (near(), 0u16..2).prop_map(|(id, which)| vec![ask(SEAT, which, vec![WireArg::NewId(WireId(id))])]),
        (near(), 1u64..6, 1u64..6).prop_map(|(id, update, more)| {
            let (update, by) = (UpdateSeq(update), UpdateSeq(update + more));
            vec![ToDisplay::Superseded { surface: WireId(id), update, by }]
        }),
    ]
}

fn any_unit() -> impl Strategy<Value = Unit> {
    let content = prop_oneof![
        3 => (1u64..6).prop_map(|seq| UnitContent::Update(UpdateSeq(seq))),
        1 => Just(UnitContent::Keep),
        1 => Just(UnitContent::None),
        1 => any::<u64>().prop_map(|seq| UnitContent::Update(UpdateSeq(seq >> 2))),
    ];
    let number = prop_oneof![9 => 1u64..40, 1 => any::<u64>().prop_map(|number| number >> 2)];
    let leaf = (id(), number, content, proptest::collection::vec(any_request(), 0..3), any::<bool>());
    let leaf = leaf.prop_map(|(surface, number, content, state, feedback)| Unit {
        state,
        feedback,
        ..unit(surface, number, content)
    });
    leaf.prop_recursive(3, 6, 3, |inner| {
        (inner.clone(), proptest::collection::vec(inner, 0..3))
            .prop_map(|(unit, children)| Unit { children, ..unit })
    })
}

fn update() -> impl Strategy<Value = Step> {
    let chunk = prop_oneof![
        4 => (1u32..9, any::<u8>()).prop_map(|(side, colour)| chunks(side, colour)),
        1 => proptest::collection::vec(any::<u8>(), 1..40).prop_map(|bytes| vec![Bytes::from(bytes)]),
        1 => Just(Vec::new()),
    ];
    let side = prop_oneof![9 => 1u32..9, 1 => any::<u32>()];
    (id(), 1u64..8, side, any::<bool>(), chunk).prop_map(|(surface, seq, side, fresh, chunks)| {
        Step::Update(header(surface.0, seq, side, fresh), chunks)
    })
}

/// Frames of a video at the corner of any surface here, the first one first.
fn film() -> &'static [Frame] {
    static FILM: OnceLock<Vec<Frame>> = OnceLock::new();
    FILM.get_or_init(|| {
        let mut film = Film::new(0, Rect::new(0, 0, 4, 4));
        (0..4).map(|at| film.next(at * 60)).collect()
    })
}

/// A frame that may be sound.
fn frame() -> impl Strategy<Value = Frame> {
    let data = prop_oneof![
        4 => (0usize..4).prop_map(|at| film()[at].data.clone()),
        1 => proptest::collection::vec(any::<u8>(), 0..40),
    ];
    let width = prop_oneof![4 => Just(4u32), 1 => 1u32..9];
    (0u8..5, 0u32..3, width, any::<bool>(), data).prop_map(|(stream, x, width, key, data)| {
        let video = Video { stream, rect: Rect::new(x, 0, width, 4), key };
        Frame { video, fourth: 9, data }
    })
}

/// An update with one.
fn moving() -> impl Strategy<Value = Step> {
    (id(), 1u64..8, 4u32..9, any::<bool>(), frame()).prop_map(|(surface, seq, side, fresh, frame)| {
        let chunks = [chunks(1, 7), bytes_of(&frame)].concat();
        Step::Update(header(surface.0, seq, side, fresh), chunks)
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => likely().prop_map(|said| said.into_iter().map(Step::Say).collect::<Vec<_>>()),
        4 => any_unit().prop_map(|unit| vec![Step::Say(ToDisplay::Unit(unit))]),
        2 => any_request().prop_map(|request| vec![Step::Say(ToDisplay::Request(request))]),
        6 => update().prop_map(|update| vec![update]),
        4 => moving().prop_map(|update| vec![update]),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(which, number)| vec![Step::Decode(which, number)]),
        1 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| vec![Step::Raw(bytes)]),
        1 => Just(vec![Step::Frame]),
        1 => (0u64..2000).prop_map(|time| vec![Step::Pass(time)]),
        1 => Just(vec![Step::Look]),
        1 => Just(vec![Step::Open]),
        3 => (any::<u8>(), id(), any::<i16>(), any::<i16>())
            .prop_map(|(which, surface, x, y)| vec![Step::User(which, surface, x, y)]),
    ];
    proptest::collection::vec(step, 1..60).prop_map(|steps| steps.concat())
}

/// What a script does with all that there is.
fn look(page: &mut Page) {
    fn each(node: &Node<'_>, surfaces: &mut Vec<WireId>) -> usize {
        surfaces.push(node.surface);
        let (width, height) = node.shape.size(node.content.size());
        assert!(width >= 0 && height >= 0);
        let children = node.inside.iter().map(|inside| match inside {
            Inside::Itself => rgba(node.content, node.content.size().rect()).len(),
            Inside::Child(child) => each(child, surfaces),
        });
        children.sum()
    }
    let Some(program) = page.program(PROGRAM) else { return };
    let mut surfaces = Vec::new();
    for window in program.windows() {
        each(&window.root, &mut surfaces);
    }
    surfaces.into_iter().for_each(|surface| assert!(program.take_damage(surface).is_some()));
}

/// Does something with what there is to decode, which may be wrong.
fn decode(page: &mut Page, now: Time, owed: &mut Vec<u32>, (which, number): (u8, u8)) {
    let given = std::iter::from_fn(|| page.poll_task());
    owed.extend(given.filter_map(|task| match task {
        Task::Decode { number, .. } => Some(number),
        Task::End { .. } => None,
    }));
    let (layout, planes) =
        if which & 4 == 0 { (Layout::I420, 384) } else { (Layout::Nv12, 256 + which as usize) };
    match which % 4 {
        0 | 1 => {
            std::mem::take(owed)
                .into_iter()
                .for_each(|number| page.on_decoded(now, number, layout, vec![which; planes]));
        }
        2 => page.on_undecodable(now, number.into()),
        _ => page.on_decoded(now, number.into(), layout, vec![which; planes]),
    }
}

/// What a script says of the user.
fn use_it(page: &mut Page, now: Time, (which, surface, x, y): (u8, WireId, i16, i16)) {
    let (code, pressed) = (u32::from(x.unsigned_abs()), y % 2 == 0);
    match which % 10 {
        0 => page.focus(Some((PROGRAM, surface))),
        1 => page.point(now, PROGRAM, surface, f64::from(x) / 8.0, f64::from(y) / 8.0),
        2 => page.button(now, code, pressed),
        3 => page.wheel(now, Wheel { distance: [x, y].map(f64::from), steps: [y, x].map(i32::from) }),
        4 => page.key(now, code % 256, Level::Plain, char::from_u32(u32::from(y.unsigned_abs())), pressed),
        5 => page.set_modifiers(code),
        6 => page.type_text(now, "a\u{6f22}\n"),
        7 => page.release(now),
        8 => page.set_area(Area::new(code, u32::from(y.unsigned_abs()), 180)),
        _ => page.close_window(PROGRAM, surface),
    }
    let _ = page.cursor();
    while page.poll_blob().is_some() {}
}

/// What an app side does that lies about little, by what was made before.
#[derive(Debug, Clone)]
enum Deed {
    Window,
    Child(usize),
    Viewport(usize),
    /// A surface ends, or one of the objects after it.
    End(usize, u64),
    /// A commit, with children; of each, it names the last update that has come, or one so much later.
    Commit {
        surface: usize,
        children: Vec<usize>,
        update: Option<u64>,
        changes: Vec<(usize, u16, [i32; 2])>,
    },
    /// The next update of a surface, which seldom is a later one.
    Update(usize, u64, bool),
    /// The same with a frame of a video, which begins with the first.
    Moving(usize, u64, usize),
    Decode(u8, u8),
    Frame,
}

fn late() -> impl Strategy<Value = u64> {
    prop_oneof![9 => Just(0u64), 1 => 1u64..3]
}

fn deed() -> impl Strategy<Value = Deed> {
    let which = || 0usize..8;
    let change = (which(), 0u16..9, any::<[i8; 2]>())
        .prop_map(|(which, opcode, numbers)| (which, opcode, numbers.map(i32::from)));
    let commit = (
        which(),
        proptest::collection::vec(which(), 0..3),
        proptest::option::of(late()),
        proptest::collection::vec(change, 0..2),
    );
    prop_oneof![
        2 => Just(Deed::Window),
        4 => which().prop_map(Deed::Child),
        1 => which().prop_map(Deed::Viewport),
        1 => (which(), 0u64..3).prop_map(|(which, after)| Deed::End(which, 2 * after)),
        8 => commit.prop_map(|(surface, children, update, changes)| {
            Deed::Commit { surface, children, update, changes }
        }),
        8 => (which(), late(), any::<bool>()).prop_map(|(which, late, fresh)| Deed::Update(which, late, fresh)),
        6 => (which(), late(), 0usize..4).prop_map(|(which, late, frame)| Deed::Moving(which, late, frame)),
        3 => any::<(u8, u8)>().prop_map(|(which, number)| Deed::Decode(which, number)),
        1 => Just(Deed::Frame),
    ]
}

/// What was made.
#[derive(Default)]
struct Made {
    next: u64,
    surfaces: Vec<u64>,
    /// By surfaces, their last updates.
    updates: BTreeMap<u64, u64>,
    units: u64,
}

impl Made {
    fn surface(&self, which: usize) -> Option<u64> {
        self.surfaces.get(which.checked_rem(self.surfaces.len())?).copied()
    }

    fn add(&mut self) -> u64 {
        self.next += 6;
        self.surfaces.push(self.next);
        self.next
    }

    /// The next update of a surface.
    fn next_update(&mut self, which: usize, late: u64) -> (u64, u64) {
        let surface = self.surface(which).unwrap_or(20);
        let last = self.updates.entry(surface).or_default();
        *last += 1 + late;
        (surface, *last)
    }

    fn content(&self, surface: u64, update: Option<u64>) -> UnitContent {
        let last = self.updates.get(&surface).copied().unwrap_or(1);
        update.map_or(UnitContent::Keep, |late| UnitContent::Update(UpdateSeq(last + late)))
    }

    fn says(&mut self, deed: &Deed) -> Option<Vec<ToDisplay>> {
        Some(match deed {
            Deed::Window => window(self.add()).to_vec(),
            Deed::Child(parent) => {
                let parent = self.surface(*parent)?;
                child(self.add(), parent).to_vec()
            }
            Deed::Viewport(of) => {
                let of = WireArg::Object(WireId(self.surface(*of)?));
                self.next += 6;
                vec![ask(VIEWPORTER, 1, vec![WireArg::NewId(WireId(self.next)), of])]
            }
            Deed::End(which, after) => vec![ask(WireId(self.surface(*which)? + after), 0, vec![])],
            Deed::Commit { surface, children, update, changes } => {
                let surface = self.surface(*surface)?;
                let children = children.iter().filter_map(|child| self.surface(*child));
                let children: Vec<u64> = children.filter(|child| *child != surface).collect();
                self.units += 1;
                let children = children
                    .into_iter()
                    .map(|child| unit(WireId(child), self.units, self.content(child, *update)));
                let changes = changes.iter().filter_map(|(which, opcode, numbers)| {
                    let args = match opcode {
                        1 => numbers.map(WireArg::Int).to_vec(),
                        2 | 3 => {
                            vec![WireArg::Object(WireId(self.surface(numbers[0].unsigned_abs() as usize)?))]
                        }
                        _ => vec![WireArg::Int(numbers[0])],
                    };
                    let object = self.surface(*which)? + if *opcode < 7 { 2 } else { 0 };
                    Some(request(WireId(object), *opcode, args))
                });
                let own = unit(WireId(surface), self.units, self.content(surface, *update));
                vec![ToDisplay::Unit(Unit { children: children.collect(), state: changes.collect(), ..own })]
            }
            Deed::Update(..) | Deed::Moving(..) | Deed::Decode(..) | Deed::Frame => return None,
        })
    }
}

#[test]
fn regression_trees_that_grow_from_below_exhausted_the_stack() {
    const DEEP: u64 = 20_000;
    let mut page = page_as(Role::Control);
    let subsurface = |number: u64| WireId(30 + 2 * (DEEP + number));
    (0..=DEEP).for_each(|number| say(&mut page, &create(WireId(30 + 2 * number))));
    for number in 1..=DEEP {
        // Each goes into the next one, which is in none yet.
        let args = [WireId(28 + 2 * number), WireId(30 + 2 * number)].map(WireArg::Object);
        let args = [WireArg::NewId(subsurface(number))].into_iter().chain(args).collect();
        say(&mut page, &ask(SUBCOMPOSITOR, 1, args));
    }
    let top = WireId(30 + 2 * DEEP);
    say(&mut page, &ToDisplay::Unit(unit(top, 1, UnitContent::Keep)));
    assert_eq!(page.poll_ended(), None);
    look(&mut page);
}

proptest! {
    #[test]
    fn windows_in_any_state_are_drawn_and_given_back(
        deeds in proptest::collection::vec(deed(), 1..120), is_display: bool
    ) {
        let role = if is_display { Role::Control } else { Role::View };
        let (mut page, mut made) = (page_as(role), Made { next: 20, ..Made::default() });
        let mut owed = Vec::new();
        for deed in deeds {
            for message in made.says(&deed).unwrap_or_default() {
                say(&mut page, &message);
            }
            match deed {
                Deed::Update(which, late, fresh) => {
                    let (surface, seq) = made.next_update(which, late);
                    let fresh = fresh || seq == 1;
                    page.on_update(Time::ZERO, &header(surface, seq, 8, fresh), chunks(8, seq as u8));
                }
                Deed::Moving(which, late, frame) => {
                    let (surface, seq) = made.next_update(which, late);
                    let chunks = [chunks(if seq == 1 { 8 } else { 1 }, 7), bytes_of(&film()[frame])].concat();
                    page.on_update(Time::ZERO, &header(surface, seq, 8, seq == 1), chunks);
                }
                Deed::Decode(which, number) => decode(&mut page, Time::ZERO, &mut owed, (which, number)),
                Deed::Frame => page.on_frame(0),
                _ => {}
            }
            look(&mut page);
            if page.poll_ended().is_some() {
                decode(&mut page, Time::ZERO, &mut owed, (0, 0));
                prop_assert_eq!(page.kept(), 0);
                page = page_as(role);
                made = Made { next: 20, ..Made::default() };
            }
        }
        page.close(PROGRAM);
        decode(&mut page, Time::ZERO, &mut owed, (0, 0));
        prop_assert_eq!(page.kept(), 0);
    }

    #[test]
    fn any_frames_and_answers_are_borne_and_given_back(
        steps in proptest::collection::vec(
            (proptest::collection::vec(frame(), 0..3), any::<[bool; 2]>(), any::<(u8, u8)>(), 0u64..400), 1..60
        ),
        is_display: bool
    ) {
        let role = if is_display { Role::Control } else { Role::View };
        let (mut page, mut now, mut owed) = (page_as(role), Time::ZERO, Vec::new());
        window(60).iter().for_each(|message| say(&mut page, message));
        for (seq, (frames, [fresh, says], answer, time)) in (1..).zip(steps) {
            let fresh = fresh || seq == 1;
            let mut chunks = chunks(if fresh { 8 } else { 1 }, 7);
            frames.iter().for_each(|frame| chunks.extend(bytes_of(frame)));
            page.on_update(now, &header(60, seq, 8, fresh), chunks);
            if says {
                page.on_message(now, PROGRAM, &ToDisplay::Unit(Unit { number: seq + 1, ..show(60, seq) }).encode());
            }
            decode(&mut page, now, &mut owed, answer);
            now += std::time::Duration::from_millis(time);
            page.on_timeout(now);
            look(&mut page);
        }
        page.close(PROGRAM);
        decode(&mut page, now, &mut owed, (0, 0));
        prop_assert_eq!(page.kept(), 0);
        let mut left = std::iter::from_fn(|| page.poll_task());
        let ends = left.all(|task| matches!(task, Task::End { .. }));
        prop_assert!(ends, "something is still to be decoded");
    }

    #[test]
    fn any_input_of_an_app_side_is_borne_and_given_back(steps in steps(), is_display: bool) {
        let mut page = page_as(if is_display { Role::Control } else { Role::View });
        let (mut now, mut owed) = (Time::ZERO, Vec::new());
        for step in steps {
            match step {
                Step::Decode(which, number) => decode(&mut page, now, &mut owed, (which, number)),
                Step::Say(message) => page.on_message(now, PROGRAM, &message.encode()),
                Step::Raw(bytes) => page.on_message(now, PROGRAM, &bytes),
                Step::Update(header, chunks) => page.on_update(now, &header, chunks),
                Step::Frame => page.on_frame(0),
                Step::Pass(time) => {
                    now += std::time::Duration::from_millis(time);
                    page.on_timeout(now);
                }
                Step::Look => look(&mut page),
                Step::Open => page.open(PROGRAM).unwrap(),
                Step::User(which, surface, x, y) => use_it(&mut page, now, (which, surface, x, y)),
            }
            let most = (1 << 30) + (384 << 20) + 2 * (32 << 20) + (64 << 20) + (640 << 20) + 100 * 512;
            prop_assert!(page.kept() <= most);
            prop_assert!(page.programs().all(|(_, program)| program.end().is_none()));
        }
        look(&mut page);
        page.close(PROGRAM);
        decode(&mut page, now, &mut owed, (0, 0));
        prop_assert_eq!(page.kept(), 0);
    }
}
