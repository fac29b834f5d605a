//! Content that workers encode: what leaves is the same, whenever they do it.

use std::sync::Arc;

use proptest::prelude::*;

use crate::workers::Workers;
use crate::workers::slow::Slow;

use super::super::painter::Painter;
use super::*;

/// Three slices of one thread, and bytes that nothing makes fewer.
const SIDE: i32 = 512;

/// A window of a program whose content a crew encodes.
struct Lender {
    rig: Rig,
    crew: Arc<Slow>,
    surface: u32,
    shm: u32,
}

/// With a crew that does nothing by itself, or without one.
fn lender(crew: Option<Arc<Slow>>) -> Lender {
    let workers = crew.clone().map_or_else(Workers::default, |crew| Workers::new(crew));
    let mut rig = Rig::with_config(Config { workers, ..Config::default() }, &desk());
    let (surface, shm) = rig.window();
    rig.units();
    rig.sent.clear();
    rig.updates.clear();
    rig.events();
    Lender { rig, crew: crew.unwrap_or_default(), surface, shm }
}

impl Lender {
    fn new() -> Self {
        lender(Some(Arc::default()))
    }

    fn commit(&mut self, side: i32, value: u8) {
        let buffer = self.rig.grainy(self.shm, side, value);
        self.rig.attach(self.surface, buffer);
        self.rig.commit(self.surface);
    }

    /// A commit whose pixels are with the crew, to be encoded.
    fn lent() -> Self {
        let mut lender = Self::new();
        lender.commit(SIDE, 2);
        assert!(lender.crew.work(0), "it is compared");
        lender.turn();
        assert_eq!((lender.crew.waiting(), lender.rig.updates.len()), (1, 0));
        lender
    }

    fn turn(&mut self) {
        self.rig.now += FRAME;
        self.rig.flush(u64::MAX);
    }

    fn is_making(&self) -> bool {
        self.rig.connection.is_making()
    }

    /// The crew works until the commit has left.
    fn go_on(&mut self) {
        while self.is_making() {
            self.crew.work(0);
            self.rig.flush(u64::MAX);
        }
    }

    fn painter(&self) -> &Painter {
        &self.rig.connection.surfaces[&self.surface].painter
    }

    /// Chunks and numbers of all updates.
    fn left(&self) -> Vec<(u64, bool, Vec<Vec<u8>>)> {
        let updates = self.rig.updates.iter();
        updates.map(|update| (update.seq.0, update.fresh, update.chunks.clone())).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Of several programs, in whichever order their content comes back.
    #[test]
    fn what_leaves_is_what_would_leave_without_workers(
        commits in prop::collection::vec([(0..3usize, any::<u8>()), (0..3, any::<u8>()), (0..3, any::<u8>())], 1..4),
        order in prop::collection::vec(any::<usize>(), 1..40),
    ) {
        let sides = [8, 160, SIDE];
        let crew = Arc::new(Slow::default());
        let mut lenders: Vec<Lender> = (0..3).map(|_| lender(Some(Arc::clone(&crew)))).collect();
        let mut alone: Vec<Lender> = (0..3).map(|_| lender(None)).collect();
        let mut order = order.into_iter().cycle();
        for round in commits {
            for (program, (side, value)) in round.into_iter().enumerate() {
                lenders[program].commit(sides[side], value);
                alone[program].commit(sides[side], value);
            }
            lenders.iter_mut().chain(&mut alone).for_each(Lender::turn);
            alone.iter_mut().for_each(Lender::go_on);
            while lenders.iter().any(Lender::is_making) {
                let next = order.next().unwrap_or_default();
                prop_assert!(crew.work(next) || crew.waiting() == 0);
                lenders.iter_mut().for_each(|lender| lender.rig.flush(u64::MAX));
            }
            for (lender, alone) in lenders.iter_mut().zip(&mut alone) {
                prop_assert!(lender.left() == alone.left());
                prop_assert_eq!(lender.rig.units(), alone.rig.units());
            }
        }
    }
}

#[test]
fn a_worker_says_when_it_is_done_and_no_time_is_waited_for() {
    let mut lender = Lender::lent();
    let next = lender.rig.connection.next_timeout();
    assert!(next.is_none_or(|at| at > lender.rig.now), "{next:?}");
    assert!(lender.rig.connection.stalled() && lender.painter().is_lent());
    lender.crew.work(0);
    lender.rig.flush(u64::MAX);
    assert!(lender.rig.updates.len() == 1 && lender.crew.waiting() == 1, "a slice leaves, the next is begun");
    lender.go_on();
    assert!(!lender.painter().is_lent() && lender.rig.units().len() == 1);
}

/// The loop is woken once: what it finds then must not stay.
#[test]
fn what_is_back_leaves_in_a_turn_without_room_too() {
    let mut lender = Lender::lent();
    lender.crew.work(0);
    lender.rig.flush_with(Credit { encoded: 1 << 40, content: u64::MAX, ..Credit::default() });
    assert_eq!((lender.rig.updates.len(), lender.crew.waiting()), (1, 0));
    assert_eq!(lender.rig.connection.next_timeout(), Some(lender.rig.now), "the next turn goes on");
}

#[test]
fn what_a_worker_has_can_be_looked_at() {
    let lender = Lender::lent();
    let painter = lender.painter();
    let content = painter.content().expect("it has content");
    assert_eq!(content.size().width(), SIDE as u32);
    assert!(painter.is_making() && !painter.is_settled() && !painter.is_exact() && !painter.can_take_back());
    assert_eq!(lender.rig.connection.fidelity().count(), 1);
    assert!(painter.bytes() > 0);
}

#[test]
fn little_is_encoded_at_once() {
    let mut lender = Lender::new();
    lender.commit(120, 3);
    lender.turn();
    assert_eq!((lender.crew.waiting(), lender.rig.updates.len(), lender.rig.units().len()), (0, 1, 1));
}

#[test]
fn what_cannot_wait_for_a_worker_is_made_here() {
    let mut lender = Lender::lent();
    let surface = lender.rig.connection.objects.wire(lender.surface).expect("it lives");
    lender.rig.tell(&ToApp::Refresh { surface });
    assert!(lender.crew.work(0), "it finds nothing to do");
    assert_eq!((lender.rig.units().len(), lender.is_making(), lender.painter().is_lent()), (1, false, false));
    let parts = lender.rig.updates.len();
    lender.turn();
    lender.go_on();
    assert!(lender.rig.updates[parts].fresh);
}

#[test]
fn a_display_that_goes_takes_nothing_away_and_the_next_gets_everything() {
    let mut lender = Lender::lent();
    lender.rig.connection.detach(lender.rig.now);
    assert!(!lender.is_making() && !lender.painter().is_lent() && lender.painter().has_news());
    assert!(lender.crew.work(0), "it finds nothing to do");
    lender.rig.connection.attach(lender.rig.now, &desk(), Config::default().compression);
    assert_eq!(lender.painter().content().map(|content| content.size().width()), Some(SIDE as u32));
}

/// What leaves because a request builds on it stays, also if a worker had it when that was known.
#[test]
fn what_order_demanded_is_not_taken_back() {
    let mut lender = Lender::new();
    let compositor = lender.rig.bind("wl_compositor");
    lender.surface = lender.rig.surface(compositor);
    lender.commit(160, 1);
    assert!(lender.is_making() && lender.painter().is_lent(), "it leaves at once");
    lender.go_on();
    assert!(!lender.painter().can_take_back());
}

#[test]
fn a_program_that_goes_leaves_nothing_to_do() {
    let lender = Lender::lent();
    let crew = Arc::clone(&lender.crew);
    drop(lender);
    // What was to be encoded is not begun. The program's memory is freed.
    assert!(crew.waiting() > 1);
    while crew.work(0) {}
}
