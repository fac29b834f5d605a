//! Commits whose buffers workers compare: the program and the display see what they would see without workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use rustix::fs::{SealFlags, fcntl_add_seals, ftruncate};
use rustix::io::pwrite;
use wayferry_pixels::{Content, Decoder};

use crate::workers::Workers;
use crate::workers::slow::Slow;

use super::subsurfaces::tree;
use super::*;

/// As large as is worth a worker, and larger.
const SIDE: i32 = 384;
const LARGE: i32 = 512;

/// A program whose commits a crew compares, and encodes.
fn rig(crew: &Arc<Slow>) -> Rig {
    let workers = Workers::new(Arc::<Slow>::clone(crew));
    Rig::with_config(Config { workers, ..Config::default() }, &desk())
}

/// A window of that program.
struct Lender {
    rig: Rig,
    crew: Arc<Slow>,
    surface: u32,
    shm: u32,
}

impl Lender {
    fn new() -> Self {
        let crew = Arc::default();
        let mut rig = rig(&crew);
        let (surface, shm) = rig.window();
        rig.units();
        Self { rig, crew, surface, shm }
    }

    /// A commit that is being compared, of this buffer.
    fn lent(value: u8) -> (Self, u32) {
        let mut lender = Self::new();
        let buffer = lender.rig.buffer(lender.shm, SIDE, SIDE, value);
        lender.rig.events();
        lender.rig.attach(lender.surface, buffer);
        lender.rig.commit(lender.surface);
        assert!(lender.crew.waiting() == 1 && lender.rig.connection.stalled());
        (lender, buffer)
    }

    /// The crew works until it has nothing to do.
    fn go_on(&mut self) {
        while self.crew.work(0) || self.rig.connection.is_making() {
            self.rig.flush(u64::MAX);
            self.rig.connection.on_timeout(self.rig.now);
        }
        self.rig.flush(u64::MAX);
    }

    fn shows(&self, value: u8) -> bool {
        let content = self.rig.connection.surfaces[&self.surface].painter.content();
        content.is_some_and(|content| content.pixels().iter().all(|byte| *byte == value))
    }
}

#[test]
fn what_is_behind_a_commit_waits_until_it_is_compared() {
    let (mut lender, buffer) = Lender::lent(7);
    let callback = lender.rig.id("wl_callback");
    lender.rig.request(1, "sync", vec![Arg::NewId(callback)]);
    lender.rig.now += FRAME;
    lender.rig.flush(u64::MAX);
    assert!(names(&lender.rig.events()).is_empty() && lender.rig.updates.len() == 1);
    assert!(lender.rig.connection.surfaces[&lender.surface].mapped());
    let next = lender.rig.connection.next_timeout();
    assert!(next.is_none_or(|at| at > lender.rig.now), "{next:?}: the worker says so by itself");
    lender.go_on();
    assert_eq!(names(&lender.rig.events()), [(buffer, "release"), (callback, "done"), (1, "delete_id")]);
    assert!(lender.shows(7) && lender.rig.units().len() == 1);
}

/// The buffer, its pool and the surface go behind the commit, as a program may have it.
#[test]
fn a_commit_is_whole_though_its_buffer_is_destroyed_behind_it() {
    let (mut lender, buffer) = Lender::lent(7);
    lender.rig.request(buffer, "destroy", vec![]);
    lender.go_on();
    assert_eq!(names(&lender.rig.events()), [(buffer, "release"), (1, "delete_id")]);
    assert!(lender.shows(7));
    let second = lender.rig.buffer(lender.shm, SIDE, SIDE, 8);
    lender.rig.attach(lender.surface, second);
    lender.rig.commit(lender.surface);
    lender.rig.request(lender.surface, "destroy", vec![]);
    lender.go_on();
    assert!(lender.rig.connection.end().is_none() && lender.rig.connection.surfaces.is_empty());
}

#[test]
fn what_works_on_the_content_has_the_comparison_finished() {
    let (mut lender, _) = Lender::lent(7);
    let surface = lender.rig.connection.objects.wire(lender.surface).expect("it lives");
    lender.rig.tell(&ToApp::Refresh { surface });
    assert!(lender.shows(7) && lender.crew.work(0), "the crew finds nothing to do");
    lender.go_on();
    assert!(lender.rig.updates.last().is_some_and(|update| update.fresh));

    let (mut lender, buffer) = Lender::lent(9);
    lender.rig.connection.detach(lender.rig.now);
    assert!(lender.shows(9) && !lender.rig.connection.stalled());
    assert_eq!(names(&lender.rig.events()), [(buffer, "release")]);
    lender.rig.connection.attach(lender.rig.now, &desk(), Config::default().compression);
    assert!(lender.shows(9) && lender.rig.connection.end().is_none());
}

/// A key that is late waits for a commit that may answer one before it.
#[test]
fn regression_a_late_key_overtakes_what_is_being_compared() {
    let crew = Arc::default();
    let config = Config { workers: Workers::new(Arc::<Slow>::clone(&crew)), ..Config::default() };
    let mut rig = Rig::with_config(config, &Rc::new(Desk { echo: true, ..Desk::clone(&desk()) }));
    let (surface, shm) = rig.window();
    let (seat, keyboard) = (rig.bind("wl_seat"), rig.id("wl_keyboard"));
    rig.request(seat, "get_keyboard", vec![Arg::NewId(keyboard)]);
    let mut lender = Lender { rig, crew, surface, shm };
    let wire = |lender: &Lender, id| lender.rig.connection.objects.wire(id).expect("it lives");
    let object = wire(&lender, keyboard);
    let place = WireArg::Object(wire(&lender, surface));
    let args = vec![WireArg::Uint(1), place, WireArg::Array(vec![])];
    lender.rig.tell(&ToApp::Event(Request { object, opcode: 1, args }));
    let press = |lender: &mut Lender| {
        let args = [1, 0, 30, 1].map(WireArg::Uint).to_vec();
        lender.rig.tell(&ToApp::Event(Request { object, opcode: 3, args }));
        lender.rig.events();
    };
    press(&mut lender);
    let buffer = lender.rig.buffer(shm, SIDE, SIDE, 5);
    lender.rig.attach(surface, buffer);
    lender.rig.commit(surface);
    press(&mut lender);
    lender.rig.sent.clear();
    lender.rig.now += Duration::from_millis(300);
    lender.rig.flush(u64::MAX);
    lender.rig.connection.on_timeout(lender.rig.now);
    lender.rig.collect();
    let is_late = |said: &ToDisplay| matches!(said, ToDisplay::Late { .. });
    assert!(lender.crew.waiting() == 1 && !lender.rig.sent.iter().any(is_late));
    lender.go_on();
    lender.rig.connection.on_timeout(lender.rig.now);
    lender.rig.collect();
    let said: Vec<_> =
        lender.rig.sent.iter().filter(|it| is_late(it) || matches!(it, ToDisplay::Unit(_))).collect();
    let answers = |unit: &Unit| unit.answered == Some(1);
    assert!(
        matches!(said[..], [ToDisplay::Unit(unit), ToDisplay::Late { key: 2 }] if answers(unit)),
        "{said:?}"
    );
}

/// Input passes by what is being compared.
#[test]
fn an_event_is_told_while_a_commit_is_compared() {
    let mut lender = Lender::new();
    let seat = lender.rig.bind("wl_seat");
    let pointer = lender.rig.id("wl_pointer");
    lender.rig.request(seat, "get_pointer", vec![Arg::NewId(pointer)]);
    let buffer = lender.rig.buffer(lender.shm, SIDE, SIDE, 3);
    lender.rig.attach(lender.surface, buffer);
    lender.rig.commit(lender.surface);
    lender.rig.events();
    let wire = |id: u32| lender.rig.connection.objects.wire(id).expect("it lives");
    let (object, surface) = (wire(pointer), WireArg::Object(wire(lender.surface)));
    let args = vec![WireArg::Uint(1), surface, WireArg::Fixed(0), WireArg::Fixed(0)];
    lender.rig.tell(&ToApp::Event(Request { object, opcode: 0, args }));
    assert_eq!(names(&lender.rig.events()), [(pointer, "enter")]);
    assert_eq!(lender.crew.waiting(), 1);
}

#[test]
fn a_file_that_is_cut_while_it_is_compared_ends_its_program_alone() {
    let mut lender = Lender::new();
    let bytes = SIDE * SIDE * 4;
    let memory = file(&vec![1; bytes as usize]);
    let pool = lender.rig.id("wl_shm_pool");
    let fd = Arg::Fd(memory.try_clone().unwrap());
    lender.rig.request(lender.shm, "create_pool", vec![Arg::NewId(pool), fd, Arg::Int(bytes)]);
    let buffer = lender.rig.id("wl_buffer");
    let numbers = [0, SIDE, SIDE, SIDE * 4].map(Arg::Int);
    let args = std::iter::once(Arg::NewId(buffer)).chain(numbers).chain([Arg::Uint(0)]).collect();
    lender.rig.request(pool, "create_buffer", args);
    lender.rig.attach(lender.surface, buffer);
    lender.rig.commit(lender.surface);
    ftruncate(&memory, 1000).unwrap();
    lender.go_on();
    assert!(
        matches!(lender.rig.connection.end(), Some(End::AppViolation(what)) if what.contains("ends at byte"))
    );
    assert_eq!(lender.rig.events().last().map(|event| event.name), Some("error"));
}

#[test]
fn a_program_that_goes_takes_nothing_from_the_worker_that_reads_its_memory() {
    let (lender, _) = Lender::lent(7);
    let crew = Arc::clone(&lender.crew);
    drop(lender);
    assert!(crew.work(0) && crew.waiting() == 0);
}

/// Comparing is no part of a frame's time: the next one is drawn when it would be without workers.
#[test]
fn a_program_keeps_its_pace_while_its_commits_are_compared() {
    for late in 0..17u64 {
        let mut lender = Lender::new();
        let buffer = lender.rig.buffer(lender.shm, SIDE, SIDE, 7);
        lender.go_on();
        lender.rig.units();
        let beat = lender.rig.connection.beat();
        let tick = beat.after(beat.tick(lender.rig.now + 10 * FRAME), Duration::ZERO);
        lender.rig.now = tick + Duration::from_millis(late);
        lender.rig.attach(lender.surface, buffer);
        let frame = lender.rig.frame(lender.surface);
        lender.rig.commit(lender.surface);
        lender.rig.events();
        // Perhaps beyond the next tick.
        lender.rig.now += Duration::from_millis(3);
        lender.crew.work(0);
        lender.go_on();
        let next = beat.after(tick, Duration::ZERO).max(lender.rig.now);
        lender.rig.now = next;
        lender.rig.connection.on_timeout(next);
        assert!(names(&lender.rig.events()).contains(&(frame, "done")), "{late} ms behind the tick");
    }
}

#[test]
fn sealed_memory_is_compared_where_it_lies() {
    let mut lender = Lender::new();
    let bytes = u64::try_from(LARGE * LARGE * 4).unwrap();
    let memory = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&memory, bytes).unwrap();
    fcntl_add_seals(&memory, SealFlags::SHRINK).unwrap();
    let pool = lender.rig.id("wl_shm_pool");
    let fd = Arg::Fd(memory.try_clone().unwrap());
    lender.rig.request(lender.shm, "create_pool", vec![Arg::NewId(pool), fd, Arg::Int(bytes as i32)]);
    let buffer = lender.rig.id("wl_buffer");
    let numbers = [0, LARGE, LARGE, LARGE * 4].map(Arg::Int);
    let args = std::iter::once(Arg::NewId(buffer)).chain(numbers).chain([Arg::Uint(0)]).collect();
    lender.rig.request(pool, "create_buffer", args);
    for value in 1..4u8 {
        pwrite(&memory, &vec![value; bytes as usize], 0).unwrap();
        lender.rig.attach(lender.surface, buffer);
        lender.rig.commit(lender.surface);
        assert_eq!(lender.crew.waiting(), 1);
        lender.rig.now += FRAME;
        lender.go_on();
        assert!(lender.shows(value));
    }
    lender.rig.request(buffer, "destroy", vec![]);
    lender.rig.request(pool, "destroy", vec![]);
    assert_eq!(lender.rig.connection.end(), None);
}

/// What a program does with a tree of a window, a synchronised child and a child that is not.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// New content of the window or a child, of one of these sides.
    Commit(usize, usize, u8),
    /// The same without content.
    Bare(usize),
    /// A child is synchronised from now on, or not.
    Sync(usize, bool),
    Title,
    RoundTrip,
    /// The crew does something.
    Work(usize),
    Turn(u64),
    Refresh(usize),
    Display,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3usize, 0..3usize, any::<u8>()).prop_map(|(which, side, value)| Step::Commit(which, side, value)),
        1 => (0..3usize).prop_map(Step::Bare),
        1 => (1..3usize, any::<bool>()).prop_map(|(which, sync)| Step::Sync(which, sync)),
        1 => Just(Step::Title),
        1 => Just(Step::RoundTrip),
        4 => any::<usize>().prop_map(Step::Work),
        4 => (0..20u64).prop_map(Step::Turn),
        1 => (0..3usize).prop_map(Step::Refresh),
        1 => Just(Step::Display),
    ]
}

/// A program with a tree, and what its display shows of it.
struct Tree {
    rig: Rig,
    crew: Arc<Slow>,
    surfaces: [u32; 3],
    children: [u32; 2],
    shm: u32,
    toplevel: u32,
    contents: BTreeMap<u64, Content>,
    /// By surface: what was committed last.
    drawn: [Option<(i32, u8)>; 3],
    /// Buffers that were committed, in their order, and answers that are owed behind them.
    expected: Vec<(u32, &'static str)>,
    seen: Vec<(u32, &'static str)>,
}

impl Tree {
    fn new() -> Self {
        let crew = Arc::default();
        let mut rig = rig(&crew);
        let (window, child, subsurface, shm) = tree(&mut rig);
        let compositor = rig.bind("wl_compositor");
        let factory = rig.bind("wl_subcompositor");
        let other = rig.surface(compositor);
        let second = rig.id("wl_subsurface");
        let args = vec![Arg::NewId(second), Arg::Object(other), Arg::Object(window)];
        rig.request(factory, "get_subsurface", args);
        let idle = rig.surface(compositor);
        let (_, toplevel) = rig.toplevel(idle);
        rig.events();
        let mut tree = Self {
            rig,
            crew,
            surfaces: [window, child, other],
            children: [subsurface, second],
            shm,
            toplevel,
            contents: BTreeMap::new(),
            drawn: [Some((4, 1)), None, None],
            expected: Vec::new(),
            seen: Vec::new(),
        };
        tree.show();
        tree
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Commit(which, side, value) => {
                let side = [16, SIDE, LARGE][side];
                let buffer = self.rig.buffer(self.shm, side, side, value);
                self.rig.attach(self.surfaces[which], buffer);
                self.rig.commit(self.surfaces[which]);
                self.drawn[which] = Some((side, value));
                self.expected.push((buffer, "release"));
            }
            Step::Bare(which) => self.rig.commit(self.surfaces[which]),
            Step::Sync(which, sync) => {
                let name = if sync { "set_sync" } else { "set_desync" };
                self.rig.request(self.children[which - 1], name, vec![]);
            }
            Step::Title => {
                self.rig.request(self.toplevel, "set_title", vec![Arg::Str(Some(b"title".to_vec()))]);
            }
            Step::RoundTrip => {
                let callback = self.rig.id("wl_callback");
                self.rig.request(1, "sync", vec![Arg::NewId(callback)]);
                self.expected.push((callback, "done"));
            }
            Step::Work(which) => drop(self.crew.work(which)),
            Step::Turn(late) => {
                self.rig.now += Duration::from_millis(late);
                if self.rig.connection.next_timeout().is_some_and(|at| at <= self.rig.now) {
                    self.rig.connection.on_timeout(self.rig.now);
                }
                self.rig.flush(u64::MAX);
            }
            Step::Refresh(which) => {
                let surface = self.rig.connection.objects.wire(self.surfaces[which]);
                surface.into_iter().for_each(|surface| self.rig.tell(&ToApp::Refresh { surface }));
            }
            Step::Display => {
                self.rig.connection.detach(self.rig.now);
                self.rig.collect();
                self.rig.sent.clear();
                self.rig.updates.clear();
                self.contents.clear();
                self.rig.connection.attach(self.rig.now, &desk(), Config::default().compression);
            }
        }
        self.rig.collect();
        self.show();
    }

    /// The display paints all updates, and answers. The program hears of buffers and round trips.
    fn show(&mut self) {
        for update in std::mem::take(&mut self.rig.updates) {
            let Update { surface, size, format, fresh, chunks, .. } = update;
            if fresh {
                self.contents.insert(surface.0, Content::new(size, format));
            }
            let content = self.contents.get_mut(&surface.0).expect("the first update is fresh");
            Decoder::new().apply(content, &chunks).unwrap();
        }
        self.rig.units();
        let told = names(&self.rig.events()).into_iter();
        self.seen.extend(told.filter(|(_, name)| matches!(*name, "release" | "done")));
    }

    /// All is done, and what synchronised children committed is applied.
    fn finish(&mut self) {
        for _ in 0..40 {
            self.take(Step::Work(0));
            self.take(Step::Turn(17));
        }
        for _ in 0..2 {
            self.take(Step::Bare(0));
            (0..20).for_each(|_| {
                self.take(Step::Work(0));
                self.take(Step::Turn(17));
            });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whenever workers come back, and though the display speaks and changes meanwhile: it shows at last what was
    /// committed last, and the program gets each buffer back once, and its answers in their order.
    #[test]
    fn what_is_shown_and_told_does_not_depend_on_when_commits_are_compared(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut tree = Tree::new();
        steps.into_iter().for_each(|step| tree.take(step));
        tree.finish();
        prop_assert_eq!(tree.rig.connection.end(), None);
        prop_assert!(!tree.rig.connection.is_making() && tree.rig.connection.input().is_empty());
        prop_assert_eq!(&tree.seen, &tree.expected);
        for (surface, drawn) in tree.surfaces.into_iter().zip(tree.drawn) {
            let name = tree.rig.connection.objects.wire(surface).expect("it lives");
            let shown = tree.contents.get(&name.0).map(|content| {
                let value = content.pixels().first().copied().unwrap_or_default();
                assert!(content.pixels().iter().all(|byte| *byte == value), "of one commit");
                (content.size().width() as i32, value)
            });
            prop_assert_eq!(shown, drawn);
        }
    }
}
