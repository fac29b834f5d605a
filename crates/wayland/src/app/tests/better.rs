//! What is lossy at first, and how it becomes exact.

use std::sync::Arc;

use proptest::prelude::*;
use wayferry_pixels::{Content, Decoder};

use crate::workers::Workers;
use crate::workers::slow::Slow;

use super::*;

const SIDE: i32 = 256;
/// A link that takes little, so that a photograph of this size does not fit.
pub(super) const SLOW: Credit = Credit {
    content: 1000,
    refinement: 0,
    rtt: Duration::ZERO,
    heard: None,
    rate: Some(25_000),
    loses: false,
    videos: 0,
    encoded: 0,
};
pub(super) const IDLE: Credit = Credit {
    content: 20_000,
    refinement: 4000,
    rtt: Duration::ZERO,
    heard: None,
    rate: Some(25_000),
    loses: false,
    videos: 0,
    encoded: 0,
};

/// The pixels of a photograph: every colour is near its neighbours'.
fn photo(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut colour = [128u8; 3];
    let pixels = (0..SIDE * SIDE).flat_map(|_| {
        let steps = colour.map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 61) as u8
        });
        colour = std::array::from_fn(|index| colour[index].wrapping_add(steps[index]).wrapping_sub(3));
        [colour[0], colour[1], colour[2], 255]
    });
    pixels.collect()
}

pub(super) fn commit_photo(rig: &mut Rig, surface: u32, shm: u32, seed: u64) -> Vec<u8> {
    let pixels = photo(seed);
    let buffer = rig.buffer_of(shm, SIDE, SIDE, &pixels);
    rig.attach(surface, buffer);
    rig.commit(surface);
    pixels
}

/// A program whose pictures may be lossy.
fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.connection = Connection::new(Config { lossy: Some(50), ..Config::default() }, &desk());
    rig
}

/// A window that shows a photograph for which the link was too slow.
struct LossyPhoto {
    rig: Rig,
    surface: u32,
    shm: u32,
    /// The photograph.
    pixels: Vec<u8>,
}

fn lossy_photo() -> LossyPhoto {
    let mut rig = rig();
    let (surface, shm) = rig.window();
    rig.flush_with(SLOW);
    let pixels = commit_photo(&mut rig, surface, shm, 1);
    rig.now += FRAME;
    rig.flush_with(SLOW);
    LossyPhoto { rig, surface, shm, pixels }
}

/// What the display side shows of a surface after all updates so far.
fn shown(rig: &Rig, surface: u32) -> Content {
    let wire = rig.connection.objects.wire(surface).unwrap();
    let mut content = None;
    for update in rig.updates.iter().filter(|update| update.surface.0 == wire.0) {
        if update.fresh {
            content = Some(Content::new(update.size, update.format));
        }
        Decoder::new().apply(content.as_mut().unwrap(), &update.chunks).unwrap();
    }
    content.unwrap()
}

/// Whether there is content that has not left.
fn waits(rig: &Rig) -> bool {
    rig.connection.surfaces.values().any(|surface| surface.visible && surface.painter.has_news())
}

/// Lets the link be idle until nothing is left to do; gives the units that left, and how long it took.
pub(super) fn rest(rig: &mut Rig) -> (Vec<Unit>, Duration) {
    let (start, mut units) = (rig.now, Vec::new());
    loop {
        match rig.connection.next_timeout() {
            Some(due) => rig.now = rig.now.max(due),
            None if rig.connection.fidelity().all(|it| it.lossy == 0) && !waits(rig) => break,
            // The link tells that it is idle again.
            None => {}
        }
        rig.now += Duration::from_millis(1);
        assert!(rig.now.since(start) < Duration::from_secs(5), "it never rests");
        rig.connection.on_timeout(rig.now);
        rig.flush_with(IDLE);
        units.extend(rig.units());
    }
    (units, rig.now.since(start))
}

#[test]
fn what_does_not_fit_is_lossy_and_exact_when_it_rests() {
    let LossyPhoto { mut rig, surface, pixels, .. } = lossy_photo();
    let units = rig.units();
    assert!(!units.is_empty());
    let lossy = rig.updates.len();
    assert!(rig.updates[lossy - 1].chunks.iter().map(Vec::len).sum::<usize>() < 20_000);
    assert_ne!(shown(&rig, surface).pixels(), pixels);
    let due = rig.connection.next_timeout().unwrap();
    assert_eq!(due.since(rig.now), Duration::from_millis(80), "it may change until then");

    let (units, time) = rest(&mut rig);
    assert_eq!(shown(&rig, surface).pixels(), pixels);
    assert!(rig.connection.fidelity().all(|it| it.lossy == 0));
    let frames = time.as_nanos() / FRAME.as_nanos() + 1;
    assert!(units.len() as u128 <= frames, "{} units in {frames} frames", units.len());
    let pieces = rig.updates[lossy..].iter().map(|update| update.chunks.iter().map(Vec::len).sum());
    let pieces: Vec<usize> = pieces.collect();
    assert!(pieces.len() > 5 && pieces.iter().all(|bytes| *bytes < 8000), "{pieces:?}");
    let last = units.last().map(|unit| unit.content);
    assert_eq!(last, rig.updates.last().map(|update| UnitContent::Update(update.seq)));
}

#[test]
fn nothing_is_lossy_where_no_rate_is_known_or_it_is_not_wanted() {
    for (lossy, rate) in [(None, Some(25_000)), (Some(50), None)] {
        let mut rig = rig();
        rig.connection = Connection::new(Config { lossy, ..Config::default() }, &desk());
        let (surface, shm) = rig.window();
        let credit = Credit { rate, ..SLOW };
        rig.flush_with(credit);
        let pixels = commit_photo(&mut rig, surface, shm, 1);
        rig.now += FRAME;
        rig.flush_with(credit);
        assert_eq!(shown(&rig, surface).pixels(), pixels);
        assert_eq!(rig.connection.next_timeout(), None);
    }
}

#[test]
fn without_credit_nothing_becomes_better_and_no_timeout_is_set_for_it() {
    let LossyPhoto { mut rig, .. } = lossy_photo();
    rig.now += Duration::from_secs(1);
    let before = rig.updates.len();
    rig.flush_with(SLOW);
    assert_eq!((rig.updates.len(), rig.connection.next_timeout()), (before, None));
}

#[test]
fn hidden_surfaces_do_not_become_better() {
    let LossyPhoto { mut rig, surface, pixels, .. } = lossy_photo();
    let wire = rig.connection.objects.wire(surface).unwrap();
    rig.tell(&ToApp::Visible { surface: wire, visible: false });
    let before = rig.updates.len();
    rig.now += Duration::from_secs(1);
    rig.flush_with(IDLE);
    assert_eq!((rig.updates.len(), rig.connection.next_timeout()), (before, None));
    rig.tell(&ToApp::Visible { surface: wire, visible: true });
    rest(&mut rig);
    assert_eq!(shown(&rig, surface).pixels(), pixels);
}

#[test]
fn a_new_commit_goes_before_what_makes_the_old_one_better() {
    let LossyPhoto { mut rig, surface, shm, .. } = lossy_photo();
    rig.now += Duration::from_millis(100);
    let lossy = rig.updates.len();
    rig.flush_with(IDLE);
    assert!(rig.updates.len() > lossy, "it becomes better");
    let pixels = commit_photo(&mut rig, surface, shm, 2);
    let before = rig.updates.len();
    rig.units();
    rig.now += FRAME / 2;
    rig.flush_with(IDLE);
    assert_eq!(rig.updates.len(), before + 1, "what is new, and nothing else");
    assert_eq!(rig.units().len(), 1, "it keeps its distance from the last commit only");
    rest(&mut rig);
    assert_eq!(shown(&rig, surface).pixels(), pixels);
}

#[test]
fn what_a_unit_has_not_shown_yet_the_next_one_does() {
    let LossyPhoto { mut rig, .. } = lossy_photo();
    let beat = rig.connection.beat();
    rig.now = beat.after(beat.tick(rig.now + Duration::from_millis(100)), FRAME);
    rig.flush_with(IDLE);
    rig.units();
    // Less than a frame later there is more, but no unit yet.
    rig.now += FRAME / 4;
    rig.flush_with(IDLE);
    assert!(rig.units().is_empty());
    let owed = rig.updates.last().unwrap().seq;
    rig.now += FRAME;
    rig.flush_with(SLOW);
    assert_eq!(rig.units().last().map(|unit| unit.content), Some(UnitContent::Update(owed)));
}

#[test]
fn a_synchronised_child_becomes_better_in_a_unit_of_its_parent() {
    let mut rig = rig();
    let (parent, child, _, shm) = subsurfaces::tree(&mut rig);
    rig.flush_with(SLOW);
    let pixels = commit_photo(&mut rig, child, shm, 1);
    rig.commit(parent);
    rig.now += FRAME;
    rig.flush_with(SLOW);
    rig.units();
    let (units, _) = rest(&mut rig);
    assert!(!units.is_empty());
    let (parent, child_wire) =
        (rig.connection.objects.wire(parent).unwrap(), rig.connection.objects.wire(child).unwrap());
    for unit in &units {
        assert_eq!((unit.surface, unit.content), (parent, UnitContent::Keep));
        assert_eq!(unit.children.iter().map(|unit| unit.surface).collect::<Vec<_>>(), [child_wire]);
    }
    assert_eq!(shown(&rig, child).pixels(), pixels);
}

#[test]
fn what_waits_at_the_compositor_is_not_shown_by_what_makes_content_better() {
    let mut rig = rig();
    let (parent, child, _, shm) = subsurfaces::tree(&mut rig);
    let (compositor, factory) = (rig.bind("wl_compositor"), rig.bind("wl_subcompositor"));
    rig.flush_with(SLOW);
    let pixels = commit_photo(&mut rig, parent, shm, 1);
    rig.now += FRAME;
    rig.flush_with(SLOW);
    let buffer = rig.buffer(shm, 2, 2, 5);
    rig.attach(child, buffer);
    rig.commit(child);
    rig.units();
    let (grandchild, role) = (rig.surface(compositor), rig.id("wl_subsurface"));
    rig.request(
        factory,
        "get_subsurface",
        [Arg::NewId(role), Arg::Object(grandchild), Arg::Object(child)].into(),
    );
    assert_eq!(rig.units().len(), 1, "the child's");
    for _ in 0..100 {
        rig.now += FRAME;
        rig.connection.on_timeout(rig.now);
        rig.flush_with(IDLE);
    }
    assert_eq!(rig.units(), []);
    rig.commit(parent);
    rest(&mut rig);
    assert_eq!(shown(&rig, parent).pixels(), pixels);
}

#[test]
fn a_surface_that_has_lost_its_content_does_not_become_better() {
    let LossyPhoto { mut rig, surface, .. } = lossy_photo();
    rig.now += Duration::from_millis(100);
    rig.flush_with(IDLE);
    rig.now += FRAME / 4;
    rig.flush_with(IDLE);
    rig.attach(surface, 0);
    rig.commit(surface);
    rig.now += Duration::from_secs(1);
    rig.units();
    rig.flush_with(IDLE);
    assert!(rig.units().is_empty());
    assert_eq!(rig.connection.next_timeout(), None);
}

/// The unit of a child's pixels commits its parent, and so builds on what the parent committed last.
#[test]
fn what_a_better_childs_unit_builds_on_is_not_replaced() {
    let mut rig = rig();
    let (parent, child, _, shm) = subsurfaces::tree(&mut rig);
    rig.flush_with(SLOW);
    commit_photo(&mut rig, child, shm, 1);
    rig.commit(parent);
    rig.now += FRAME;
    rig.flush_with(SLOW);
    rig.units();
    rig.now += Duration::from_millis(100);
    let paint = |rig: &mut Rig, value| {
        let buffer = rig.buffer(shm, 8, 8, value);
        rig.attach(parent, buffer);
        rig.commit(parent);
        rig.now += FRAME;
    };
    paint(&mut rig, 1);
    // The parent's unit leaves, then one of the child's better pixels.
    rig.flush_with(IDLE);
    let units = rig.units();
    assert_eq!(units.last().map(|unit| (unit.content, unit.children.len())), Some((UnitContent::Keep, 1)));
    paint(&mut rig, 2);
    for turn in [Turn::First, Turn::Rest] {
        let mut credit = IDLE;
        rig.connection.flush(rig.now, turn, &mut credit, &mut |_, _| panic!("something builds on it"));
    }
}

/// A video never rests; a photograph beside it does.
#[test]
fn what_rests_beside_what_never_does_becomes_exact() {
    let mut rig = rig();
    let (surface, shm) = rig.window();
    rig.flush_with(SLOW);
    let mut pixels = commit_photo(&mut rig, surface, shm, 1);
    for seed in 2..60 {
        let half = pixels.len() / 2;
        pixels.splice(half.., photo(seed).split_off(half));
        let buffer = rig.buffer_of(shm, SIDE, SIDE, &pixels);
        rig.attach(surface, buffer);
        rig.commit(surface);
        rig.now += FRAME;
        rig.flush_with(SLOW);
        rig.now += FRAME;
        rig.flush_with(IDLE);
        rig.units();
    }
    let shown = shown(&rig, surface);
    assert_eq!(shown.pixels()[..pixels.len() / 2], pixels[..pixels.len() / 2]);
    assert_ne!(shown.pixels(), pixels);
}

/// The same photograph, made better by a crew that works when it is told to.
fn lossy_photo_with(crew: &Arc<Slow>) -> LossyPhoto {
    let workers = Workers::new(Arc::<Slow>::clone(crew));
    let mut rig = rig();
    rig.connection = Connection::new(Config { lossy: Some(50), workers, ..Config::default() }, &desk());
    let (surface, shm) = rig.window();
    rig.flush_with(SLOW);
    let pixels = commit_photo(&mut rig, surface, shm, 1);
    rig.now += FRAME;
    rig.flush_with(SLOW);
    while rig.connection.is_making() {
        crew.work(0);
        rig.flush_with(SLOW);
    }
    LossyPhoto { rig, surface, shm, pixels }
}

/// As [`rest`]; the crew works between two looks, or needs some longer than that.
fn rest_with(rig: &mut Rig, crew: &Slow, mut works: impl Iterator<Item = bool>) {
    let start = rig.now;
    while rig.connection.is_making() || rig.connection.fidelity().any(|it| it.lossy > 0) {
        rig.now += Duration::from_millis(1);
        assert!(rig.now.since(start) < Duration::from_secs(20), "it never rests");
        rig.connection.on_timeout(rig.now);
        rig.flush_with(IDLE);
        if works.next().unwrap_or(true) {
            crew.work(0);
        }
    }
}

fn chunks(rig: &Rig) -> Vec<&[Vec<u8>]> {
    rig.updates.iter().map(|update| &update.chunks[..]).collect()
}

#[test]
fn what_a_worker_makes_better_is_what_would_be_made_here() {
    let crew = Arc::new(Slow::default());
    let (mut lent, mut alone) = (lossy_photo_with(&crew), lossy_photo());
    rest_with(&mut lent.rig, &crew, std::iter::empty());
    rest_with(&mut alone.rig, &crew, std::iter::empty());
    assert!(chunks(&lent.rig).len() > 5 && chunks(&lent.rig) == chunks(&alone.rig));
    assert!(shown(&lent.rig, lent.surface).pixels() == lent.pixels);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Whenever the worker is done, also where the program commits meanwhile or a display asks for the whole.
    #[test]
    fn what_a_worker_makes_better_becomes_exact(
        works in prop::collection::vec(any::<bool>(), 0..60),
        commits in prop::collection::vec(any::<bool>(), 1..4),
        refresh in any::<bool>(),
    ) {
        let crew = Arc::new(Slow::default());
        let LossyPhoto { mut rig, surface, shm, mut pixels } = lossy_photo_with(&crew);
        let mut works = works.into_iter();
        for (seed, is_soon) in (2..).zip(commits) {
            for _ in 0..if is_soon { 90 } else { 200 } {
                rig.now += Duration::from_millis(1);
                rig.connection.on_timeout(rig.now);
                rig.flush_with(IDLE);
                if works.next().unwrap_or(true) {
                    crew.work(0);
                }
            }
            pixels = commit_photo(&mut rig, surface, shm, seed);
            if refresh {
                let surface = rig.connection.objects.wire(surface).expect("it lives");
                rig.tell(&ToApp::Refresh { surface });
            }
        }
        for _ in 0..100 {
            rig.now += FRAME;
            rig.connection.on_timeout(rig.now);
            rig.flush_with(IDLE);
            crew.work(0);
        }
        rest_with(&mut rig, &crew, works);
        prop_assert!(shown(&rig, surface).pixels() == pixels);
    }
}

#[test]
fn a_display_that_goes_while_content_is_made_better_takes_nothing_away() {
    let crew = Arc::new(Slow::default());
    let LossyPhoto { mut rig, surface, .. } = lossy_photo_with(&crew);
    while !rig.connection.is_making() {
        rig.now += Duration::from_millis(1);
        rig.flush_with(IDLE);
    }
    assert!(rig.connection.stalled() && crew.waiting() == 1);
    rig.connection.detach(rig.now);
    assert!(!rig.connection.is_making() && crew.work(0), "it finds nothing to do");
    rig.connection.attach(rig.now, &desk(), Config::default().compression);
    let painter = &rig.connection.surfaces[&surface].painter;
    assert!(painter.content().is_some_and(|content| content.size().width() == SIDE as u32));
}
