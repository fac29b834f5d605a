//! Large updates: opened a slice at a time, painted at once.

use std::sync::Arc;

use proptest::prelude::*;
use wayferry_pixels::{Compression, Content, Draft, Encoder, Format};
use wayferry_proto::{ConnectionId, SurfaceId, Time, UpdateHeader, UpdateSeq};

use crate::message::{ToApp, ToDisplay, UnitContent, WireId};
use crate::workers::Workers;
use crate::workers::slow::Slow;

use super::super::Room;
use super::rig::{Rig, size};

type Part = (UpdateHeader, Vec<Vec<u8>>);

/// Noise, another one for each `salt`.
fn noise(width: u32, height: u32, salt: u64) -> Content {
    let mut content = Content::new(size(width, height), Format::Argb8888);
    let mut state = salt;
    for y in 0..height {
        let row: Vec<u8> = (0..width)
            .flat_map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((state >> 32) as u32).to_le_bytes()
            })
            .collect();
        content.write_row(y, 0, &row);
    }
    content
}

/// The next content of a surface, an update for each step.
fn parts(draft: &mut Draft, surface: WireId, first: u64, content: Content) -> Vec<Part> {
    draft.replace(content);
    let mut encoder = Encoder::new(Compression::None);
    let mut fresh = draft.is_fresh();
    encoder.begin(draft);
    let mut parts = Vec::new();
    while draft.is_making() {
        let chunks = encoder.step(draft, None);
        let (size, format) = (draft.content().size(), draft.content().format());
        let header = UpdateHeader {
            connection: ConnectionId(1),
            surface: SurfaceId(surface.0),
            seq: UpdateSeq(first + parts.len() as u64),
            size: (size.width(), size.height()),
            format: format.code(),
            fresh: std::mem::take(&mut fresh),
            covers: 0,
            unit: None,
        };
        parts.push((header, chunks));
    }
    parts
}

/// An update arrives; nothing is opened yet.
fn arrive(rig: &mut Rig, (header, chunks): Part) {
    let chunks = chunks.into_iter().map(Into::into).collect();
    rig.connection.on_update(rig.now, &header, chunks);
    rig.exchange();
}

fn name(rig: &mut Rig, surface: WireId, seq: u64) {
    let unit = rig.unit(surface, UnitContent::Update(UpdateSeq(seq)));
    rig.connection.on_message(rig.now, &ToDisplay::Unit(unit).encode());
    rig.exchange();
}

/// Opens so much, turn after turn; gives the number of turns.
fn open(rig: &mut Rig, room: usize) -> usize {
    let mut turns = 0;
    while rig.connection.next_timeout() == Some(Time::ZERO) {
        rig.work(Room { open: room, ..Room::default() });
        turns += 1;
        assert!(turns < 10_000, "it never ends");
    }
    turns
}

fn fresh(width: u32, height: u32) -> Draft {
    Draft::new(size(width, height), Format::Argb8888)
}

#[test]
fn a_large_update_is_opened_in_slices_and_its_unit_waits_for_all() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    rig.now = Time::from_millis(5);
    let content = noise(400, 400, 1);
    let mut update = parts(&mut fresh(400, 400), surface, 1, content.clone());
    arrive(&mut rig, update.remove(0));
    name(&mut rig, surface, 1);
    assert_eq!(rig.connection.next_timeout(), Some(Time::ZERO));
    for _ in 0..3 {
        rig.work(Room { open: 100 << 10, paint: 0, ..Room::default() });
        assert!(rig.shown.is_empty());
    }
    assert!((2..8).contains(&open(&mut rig, 100 << 10)));
    assert!(rig.shown.len() == 1 && rig.shown[0].pixels == content.pixels());
    assert_eq!(rig.connection.updates.memory(), (0, 0));
}

#[test]
fn a_small_update_takes_no_turn_of_its_own() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    let update = rig.fresh(surface, size(2000, 1000), [1, 2, 3, 4]);
    name(&mut rig, surface, 1);
    arrive(&mut rig, update);
    assert_eq!(rig.shown.len(), 1);
}

/// Several large units are ready, and a small one of another surface behind them.
#[test]
fn one_large_unit_is_painted_in_a_turn_and_small_ones_pass() {
    let mut rig = Rig::new();
    let (surface, other) = (rig.surface(), rig.surface());
    let mut draft = fresh(800, 700);
    let contents = [1, 2, 3].map(|salt| noise(800, 700, salt));
    for (first, content) in [1, 4, 7].into_iter().zip(&contents) {
        parts(&mut draft, surface, first, content.clone())
            .into_iter()
            .for_each(|part| arrive(&mut rig, part));
    }
    while rig.connection.updates.has_closed() {
        rig.work(Room { paint: 0, open: 1 << 20, ..Room::default() });
    }
    [3, 6, 9].into_iter().for_each(|seq| name(&mut rig, surface, seq));
    let small = rig.fresh(other, size(4, 4), [1, 2, 3, 4]);
    arrive(&mut rig, small);
    name(&mut rig, other, 1);
    assert_eq!(rig.shown.len(), 1, "the small one");
    for (turn, content) in contents.iter().enumerate() {
        assert_eq!(rig.connection.next_timeout(), Some(Time::ZERO));
        rig.work(Room::default());
        assert_eq!(rig.shown.len(), turn + 2);
        assert!(rig.shown[turn + 1].pixels == content.pixels());
    }
    assert_ne!(rig.connection.next_timeout(), Some(Time::ZERO));
}

/// Nothing of an update is shown when a part of it cannot be painted, whichever that is, and all of it is wanted again.
#[test]
fn a_part_that_cannot_be_opened_leaves_everything_as_it_was() {
    for bad in 0..3 {
        let mut rig = Rig::new();
        let surface = rig.surface();
        let mut draft = fresh(800, 700);
        for part in parts(&mut draft, surface, 1, noise(800, 700, 1)) {
            arrive(&mut rig, part);
        }
        name(&mut rig, surface, 3);
        open(&mut rig, 1 << 20);
        let before = rig.shown[0].pixels.clone();
        let mut update = parts(&mut draft, surface, 4, noise(800, 700, 2));
        assert_eq!(update.len(), 3);
        update[bad].1.push(vec![9; 20_000]);
        update.into_iter().for_each(|part| arrive(&mut rig, part));
        name(&mut rig, surface, 6);
        rig.take_reported();
        open(&mut rig, 1 << 20);
        assert!(rig.shown.len() == 2 && rig.shown[1].pixels == before, "part {bad}");
        assert!(rig.take_reported().contains(&ToApp::Refresh { surface }));
        draft.renew();
        let again = noise(800, 700, 3);
        for part in parts(&mut draft, surface, 7, again.clone()) {
            arrive(&mut rig, part);
        }
        name(&mut rig, surface, 9);
        open(&mut rig, 1 << 20);
        assert!(rig.shown.len() == 3 && rig.shown[2].pixels == again.pixels());
        assert!(!rig.take_reported().contains(&ToApp::Refresh { surface }));
        assert_eq!(rig.connection.updates.memory(), (0, 0));
        rig.assert_alive();
    }
}

/// What there is no memory for is opened when it is painted.
#[test]
fn opened_chunks_take_bounded_memory() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    rig.connection.updates.limit(1 << 20);
    let mut draft = fresh(400, 400);
    let contents = [1, 2, 3, 4, 5].map(|salt| noise(400, 400, salt));
    for (seq, content) in (1..).zip(&contents) {
        parts(&mut draft, surface, seq, content.clone()).into_iter().for_each(|part| arrive(&mut rig, part));
    }
    open(&mut rig, 10 << 10);
    let (bytes, opened) = rig.connection.updates.memory();
    assert!(bytes + opened > 5 * 400 * 400 * 4, "{bytes} and {opened}");
    assert!((1 << 20..5 << 18).contains(&opened), "{opened}");
    for (seq, content) in (1..).zip(&contents) {
        name(&mut rig, surface, seq);
        rig.turn();
        assert!(rig.shown.last().is_some_and(|shown| shown.pixels == content.pixels()), "{seq}");
        let buffer = rig.shown.last().unwrap().buffer;
        rig.release(buffer);
        rig.exchange();
    }
    assert_eq!(rig.connection.updates.memory(), (0, 0));
}

#[test]
fn a_surface_that_is_gone_takes_its_updates_along() {
    let mut rig = Rig::new();
    let (surface, other) = (rig.surface(), rig.surface());
    for surface in [surface, other] {
        let update = parts(&mut fresh(400, 400), surface, 1, noise(400, 400, 1)).remove(0);
        arrive(&mut rig, update);
    }
    rig.work(Room { open: 100 << 10, paint: 0, ..Room::default() });
    rig.request(surface, "destroy", vec![]);
    open(&mut rig, 1 << 20);
    name(&mut rig, other, 1);
    rig.turn();
    assert_eq!((rig.shown.len(), rig.connection.updates.memory()), (1, (0, 0)));
    rig.assert_alive();
}

/// Two commits: eight things that arrive, three parts and a unit for each.
struct Commits {
    surface: WireId,
    things: Vec<Option<Part>>,
    units: std::array::IntoIter<u64, 2>,
}

impl Commits {
    fn new(surface: WireId, contents: &[Content; 2]) -> Self {
        let mut draft = fresh(800, 700);
        let mut things = Vec::new();
        for (first, content) in [1, 4].into_iter().zip(contents) {
            things.extend(parts(&mut draft, surface, first, content.clone()).into_iter().map(Some));
            things.push(None);
        }
        Self { surface, things, units: [3, 6].into_iter() }
    }

    /// A part, or the next unit.
    fn arrive(&mut self, rig: &mut Rig, which: usize) {
        match self.things[which].take() {
            Some(part) => arrive(rig, part),
            None => name(rig, self.surface, self.units.next().unwrap()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Parts of two commits in any order, opened between them by any amount: each is shown once, whole.
    #[test]
    fn parts_may_come_in_any_order(
        order in Just((0..8usize).collect::<Vec<_>>()).prop_shuffle(),
        rooms in prop::collection::vec(prop_oneof![Just(0usize), 1..400_000usize], 8),
    ) {
        let mut rig = Rig::new();
        let surface = rig.surface();
        let contents = [noise(800, 700, 1), noise(800, 700, 2)];
        let mut commits = Commits::new(surface, &contents);
        for (which, room) in order.into_iter().zip(rooms) {
            commits.arrive(&mut rig, which);
            rig.work(Room { open: room, paint: room, ..Room::default() });
        }
        open(&mut rig, 1 << 20);
        let shown: Vec<bool> =
            rig.shown.iter().zip(&contents).map(|(shown, content)| shown.pixels == content.pixels()).collect();
        prop_assert_eq!((shown, rig.shown.len()), (vec![true, true], 2));
        prop_assert_eq!(rig.connection.updates.memory(), (0, 0));
        prop_assert_eq!(rig.end(), None);
    }
}

/// A crew that does nothing by itself opens its content.
fn with_crew(rig: &mut Rig) -> Arc<Slow> {
    let crew = Arc::new(Slow::default());
    rig.connection.config.workers = Workers::new(Arc::<Slow>::clone(&crew));
    crew
}

/// All that the crew opens, as it comes back.
fn open_by(rig: &mut Rig, crew: &Slow) {
    rig.work(Room::default());
    while rig.connection.next_timeout() == Some(Time::ZERO) || crew.work(0) {
        rig.work(Room::default());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// As without workers, whenever they are done.
    #[test]
    fn parts_that_workers_open_are_shown_once_and_whole(
        order in Just((0..8usize).collect::<Vec<_>>()).prop_shuffle(),
        works in prop::collection::vec(any::<bool>(), 8),
    ) {
        let mut rig = Rig::new();
        let (crew, surface) = (with_crew(&mut rig), rig.surface());
        let contents = [noise(800, 700, 1), noise(800, 700, 2)];
        let mut commits = Commits::new(surface, &contents);
        for (which, works) in order.into_iter().zip(works) {
            commits.arrive(&mut rig, which);
            rig.work(Room::default());
            prop_assert!(!works || crew.work(0) || crew.waiting() == 0);
        }
        open_by(&mut rig, &crew);
        let shown: Vec<bool> =
            rig.shown.iter().zip(&contents).map(|(shown, content)| shown.pixels == content.pixels()).collect();
        prop_assert_eq!((shown, rig.shown.len()), (vec![true, true], 2));
        prop_assert_eq!(rig.connection.updates.memory(), (0, 0));
        prop_assert_eq!(rig.end(), None);
    }
}

#[test]
fn no_turn_is_wanted_while_a_worker_opens_and_small_content_passes() {
    let mut rig = Rig::new();
    let (crew, surface, other) = (with_crew(&mut rig), rig.surface(), rig.surface());
    let content = noise(400, 400, 1);
    arrive(&mut rig, parts(&mut fresh(400, 400), surface, 1, content.clone()).remove(0));
    name(&mut rig, surface, 1);
    rig.work(Room::default());
    assert_eq!(crew.waiting(), 1);
    assert_ne!(rig.connection.next_timeout(), Some(Time::ZERO));
    let small = rig.fresh(other, size(4, 4), [1, 2, 3, 4]);
    arrive(&mut rig, small);
    name(&mut rig, other, 1);
    assert_eq!(rig.shown.len(), 1, "the small one");
    open_by(&mut rig, &crew);
    assert!(rig.shown.len() == 2 && rig.shown[1].pixels == content.pixels());
}

#[test]
fn what_a_worker_has_goes_with_its_surface_and_is_given_up_like_the_rest() {
    let mut rig = Rig::new();
    let (crew, surface, other) = (with_crew(&mut rig), rig.surface(), rig.surface());
    arrive(&mut rig, parts(&mut fresh(400, 400), surface, 1, noise(400, 400, 1)).remove(0));
    rig.work(Room::default());
    rig.request(surface, "destroy", vec![]);
    assert_eq!(rig.connection.updates.memory(), (0, 0));
    arrive(&mut rig, parts(&mut fresh(400, 400), other, 1, noise(400, 400, 1)).remove(0));
    rig.work(Room::default());
    assert_eq!((crew.waiting(), rig.connection.taken().waiting_surfaces), (2, 1));
    assert!(rig.connection.give_up_updates(rig.now));
    assert_eq!((rig.connection.updates.memory(), rig.connection.taken().waiting), ((0, 0), 0));
    name(&mut rig, other, 1);
    open_by(&mut rig, &crew);
    assert!(rig.shown.is_empty() && rig.take_reported().contains(&ToApp::Refresh { surface: other }));
    rig.assert_alive();
}

/// Opens all that has arrived, and has the unit that waits painted: that is with the crew.
fn lent(rig: &mut Rig, crew: &Slow) {
    while rig.connection.painting.is_none() {
        assert!(crew.work(0), "it is never painted");
        rig.work(Room::default());
    }
    assert_eq!(crew.waiting(), 1);
}

#[test]
fn a_large_unit_is_painted_by_a_worker_and_small_ones_pass() {
    let mut rig = Rig::new();
    let (crew, surface) = (with_crew(&mut rig), rig.surface());
    let mut draft = fresh(800, 700);
    let contents = [1, 2].map(|salt| noise(800, 700, salt));
    for (first, content) in [1, 4].into_iter().zip(&contents) {
        parts(&mut draft, surface, first, content.clone())
            .into_iter()
            .for_each(|part| arrive(&mut rig, part));
        name(&mut rig, surface, first + 2);
        rig.work(Room::default());
        lent(&mut rig, &crew);
        assert_ne!(rig.connection.next_timeout(), Some(Time::ZERO));
        let other = rig.surface();
        let small = rig.fresh(other, size(4, 4), [1, 2, 3, 4]);
        arrive(&mut rig, small);
        name(&mut rig, other, 1);
        let shown = rig.shown.len();
        assert_eq!(rig.shown[shown - 1].pixels.len(), 4 * 4 * 4, "the small one");
        open_by(&mut rig, &crew);
        assert!(rig.shown.len() == shown + 1 && rig.shown[shown].pixels == content.pixels());
    }
    assert_eq!(rig.connection.updates.memory(), (0, 0));
}

/// Workers paint as much for other programs as they may.
#[test]
fn what_is_to_be_painted_waits_for_room_and_counts_while_it_is_painted() {
    let mut rig = Rig::new();
    let (crew, surface) = (with_crew(&mut rig), rig.surface());
    let mut draft = fresh(800, 700);
    let bytes = 800 * 700 * 4;
    for (first, salt) in [(1, 1), (4, 2)] {
        let content = noise(800, 700, salt);
        let taken = rig.connection.taken().content;
        parts(&mut draft, surface, first, content.clone())
            .into_iter()
            .for_each(|part| arrive(&mut rig, part));
        name(&mut rig, surface, first + 2);
        let full = Room { lend: 0, ..Room::default() };
        rig.work(full);
        while crew.work(0) {
            rig.work(full);
        }
        assert_eq!((crew.waiting(), rig.connection.painting()), (0, 0));
        assert_ne!(rig.connection.next_timeout(), Some(Time::ZERO), "no turn is wanted in vain");
        // One may take more than there is room for.
        rig.work(Room { lend: 1, ..Room::default() });
        assert_eq!((crew.waiting(), rig.connection.taken().content), (1, taken));
        assert!(rig.connection.painting() >= bytes);
        assert!(crew.work(0) && rig.connection.painting() == 0);
        open_by(&mut rig, &crew);
        assert!(rig.shown.last().is_some_and(|shown| shown.pixels == content.pixels()));
        assert_eq!(rig.connection.taken().content, bytes as u64);
    }
}

#[test]
fn regression_a_content_that_is_made_to_paint_on_is_not_counted() {
    let mut rig = Rig::new();
    let (crew, surface) = (with_crew(&mut rig), rig.surface());
    let mut draft = fresh(800, 700);
    let bytes = 800 * 700 * 4;
    for (first, salt) in [(1, 1), (4, 2)] {
        parts(&mut draft, surface, first, noise(800, 700, salt))
            .into_iter()
            .for_each(|part| arrive(&mut rig, part));
        name(&mut rig, surface, first + 2);
        rig.work(Room::default());
        lent(&mut rig, &crew);
        // The second is painted on the first.
        assert_eq!(rig.connection.painting() >= 2 * bytes, first == 1);
        open_by(&mut rig, &crew);
        assert_eq!(rig.connection.painting(), 0);
    }
}

#[test]
fn no_more_is_opened_than_there_is_memory_for_beside_what_is_painted() {
    let mut rig = Rig::new();
    let (crew, surface, other) = (with_crew(&mut rig), rig.surface(), rig.surface());
    parts(&mut fresh(800, 700), surface, 1, noise(800, 700, 1))
        .into_iter()
        .for_each(|part| arrive(&mut rig, part));
    name(&mut rig, surface, 3);
    rig.work(Room::default());
    lent(&mut rig, &crew);
    rig.connection.updates.limit(1 << 20);
    let content = noise(400, 400, 2);
    arrive(&mut rig, parts(&mut fresh(400, 400), other, 1, content.clone()).remove(0));
    name(&mut rig, other, 1);
    rig.work(Room::default());
    assert_eq!(crew.waiting(), 1, "only what is painted");
    assert_ne!(rig.connection.next_timeout(), Some(Time::ZERO), "no turn is wanted in vain");
    assert!(crew.work(0));
    rig.work(Room::default());
    assert_eq!((crew.waiting(), rig.shown.len()), (1, 1), "it is opened now");
    open_by(&mut rig, &crew);
    assert!(rig.shown.len() == 2 && rig.shown[1].pixels == content.pixels());
}

#[test]
fn a_surface_may_go_while_its_content_is_painted() {
    let mut rig = Rig::new();
    let (crew, surface) = (with_crew(&mut rig), rig.surface());
    parts(&mut fresh(800, 700), surface, 1, noise(800, 700, 1))
        .into_iter()
        .for_each(|part| arrive(&mut rig, part));
    name(&mut rig, surface, 3);
    rig.work(Room::default());
    lent(&mut rig, &crew);
    rig.request(surface, "destroy", vec![]);
    open_by(&mut rig, &crew);
    assert!(rig.shown.is_empty() && rig.connection.painting.is_none());
    assert_eq!(rig.connection.updates.memory(), (0, 0));
    rig.assert_alive();
}

#[test]
fn what_a_worker_cannot_paint_is_asked_for_again() {
    let mut rig = Rig::new();
    let (crew, surface) = (with_crew(&mut rig), rig.surface());
    let mut draft = fresh(800, 700);
    let mut show = |rig: &mut Rig, first, salt, bad: bool| {
        let mut update = parts(&mut draft, surface, first, noise(800, 700, salt));
        if bad {
            update[1].1.push(vec![9; 20_000]);
        }
        update.into_iter().for_each(|part| arrive(rig, part));
        name(rig, surface, first + 2);
        open_by(rig, &crew);
        if bad {
            draft.renew();
        }
        rig.take_reported().contains(&ToApp::Refresh { surface })
    };
    assert!(!show(&mut rig, 1, 1, false) && show(&mut rig, 4, 2, true) && !show(&mut rig, 7, 3, false));
    let shown: Vec<bool> = [1, 1, 3]
        .iter()
        .zip(&rig.shown)
        .map(|(salt, shown)| shown.pixels == noise(800, 700, *salt).pixels())
        .collect();
    assert_eq!(shown, [true; 3]);
    rig.assert_alive();
}

/// What waits is given up; its unit is not shown, and the whole content is asked for.
#[test]
fn updates_that_are_given_up_are_asked_for_again() {
    let mut rig = Rig::new();
    let (surface, other) = (rig.surface(), rig.surface());
    let contents = [1, 2].map(|salt| noise(400, 400, salt));
    let mut draft = fresh(400, 400);
    for (seq, content) in (1..).zip(&contents) {
        parts(&mut draft, surface, seq, content.clone()).into_iter().for_each(|part| arrive(&mut rig, part));
    }
    let small = parts(&mut fresh(40, 40), other, 1, noise(40, 40, 3));
    small.into_iter().for_each(|part| arrive(&mut rig, part));
    rig.work(Room { open: 100 << 10, paint: 0, ..Room::default() });
    let taken = rig.connection.taken();
    assert_eq!(taken.waiting_surfaces, 2);
    assert!(taken.waiting > 2 * 400 * 400 * 4, "{taken:?}");
    assert!(rig.connection.give_up_updates(rig.now));
    let taken = rig.connection.taken();
    assert_eq!(taken.waiting_surfaces, 1, "the one of which most waited");
    assert!(taken.waiting < 2 * 40 * 40 * 4, "{taken:?}");
    for seq in [1, 2] {
        name(&mut rig, surface, seq);
    }
    rig.turn();
    let refreshes = rig.take_reported().iter().filter(|told| **told == ToApp::Refresh { surface }).count();
    assert_eq!((rig.shown.len(), refreshes), (0, 1));
    // It comes, and what builds on it; and the other was not harmed.
    let mut draft = fresh(400, 400);
    for (seq, content) in (3..).zip(&contents) {
        parts(&mut draft, surface, seq, content.clone()).into_iter().for_each(|part| arrive(&mut rig, part));
        name(&mut rig, surface, seq);
        open(&mut rig, 1 << 20);
        rig.turn();
        assert!(rig.shown.last().is_some_and(|shown| shown.pixels == content.pixels()), "{seq}");
    }
    name(&mut rig, other, 1);
    open(&mut rig, 1 << 20);
    rig.turn();
    assert_eq!((rig.shown.len(), rig.connection.taken().waiting), (3, 0));
    rig.assert_alive();
}

/// All programs have so many buffers that no more are made.
#[test]
fn what_needs_another_buffer_waits_until_there_is_room() {
    let mut rig = Rig::new();
    let window = rig.surface();
    rig.connection.set_tight(rig.now, true);
    rig.paint(window, size(40, 40), [7, 0, 0, 255]);
    assert_eq!(rig.shown.pop(), None);
    rig.connection.set_tight(rig.now, false);
    rig.turn();
    assert_eq!(rig.shown.pop().map(|shown| shown.pixels[0]), Some(7));
    rig.assert_alive();
}

#[test]
fn hidden_pixels_are_given_up_first() {
    let mut rig = Rig::new();
    let windows = [rig.surface(), rig.surface()];
    for window in windows {
        rig.paint(window, size(40, 40), [7, 0, 0, 255]);
    }
    let taken = rig.connection.taken();
    assert_eq!((taken.content, taken.hidden, taken.descriptors), (2 * 40 * 40 * 4, 0, 2));
    assert_eq!(taken.buffers, 2 * 8192, "whole pages");
    assert!(!rig.connection.give_up_content(true), "both are shown");
    assert!(rig.connection.give_up_content(false));
    assert_eq!(rig.connection.taken().content, 40 * 40 * 4);
    rig.assert_alive();
}
