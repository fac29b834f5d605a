//! The repair controller on links that are made up here, in virtual time.

use std::time::Duration;

use wayferry_fec::{Block, LossPrior, Mode, Plan, Queue, RepairController, Report};

/// A controller, and a link that loses packets in runs of a fixed length.
struct Link {
    controller: RepairController,
    now: Duration,
    random: u64,
    burst: u64,
    /// How many packets of the present run are still to be lost.
    dying: u64,
}

impl Link {
    fn new(prior: LossPrior) -> Self {
        let controller = RepairController::new(Mode::Adaptive, prior);
        Self { controller, now: Duration::ZERO, random: 0x9E37_79B9_7F4A_7C15, burst: 1, dying: 0 }
    }

    /// Sends packets, reported in hundreds every 20 ms; the queue is empty.
    fn send(&mut self, packets: u64, loss: f64) {
        for sent in (0..packets).step_by(100) {
            let report = self.lose(100.min(packets - sent), loss);
            self.now += Duration::from_millis(20);
            self.controller.report(self.now, report, Queue::default());
        }
    }

    fn lose(&mut self, packets: u64, loss: f64) -> Report {
        let mut report = Report { packets, ..Report::default() };
        for _ in 0..packets {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            let chance = (self.random >> 11) as f64 / (1_u64 << 53) as f64;
            if self.dying == 0 && chance < loss / self.burst as f64 {
                self.dying = self.burst;
                report.runs += 1;
            }
            if self.dying > 0 {
                self.dying -= 1;
                report.lost += 1;
            }
        }
        report
    }

    fn rows(&self, rows: usize) -> u8 {
        self.controller.plan(self.now, block(rows)).rows
    }
}

/// A block on a path fast enough that all of it is at stake.
fn block(rows: usize) -> Block {
    Block { rows, row: 1400, rtt: Duration::from_millis(100), rate: 12_500_000 }
}

fn standing(delay: u64) -> Queue {
    Queue { delay: Duration::from_millis(delay), base_rtt: Duration::from_millis(100) }
}

#[test]
fn a_clean_link_costs_little_until_it_is_known_and_then_nothing() {
    let mut link = Link::new(LossPrior::default());
    let mut repair = 0;
    for _ in 0..300 {
        repair += u64::from(link.rows(72));
        link.send(72, 0.0);
    }
    assert!(repair * 100 <= 300 * 72 * 2, "{repair} rows of repair");
    assert!(repair > 50, "nothing was spent on learning");
    assert_eq!((link.rows(72), link.rows(1)), (0, 0));
    let mut next = Link::new(link.controller.export());
    assert_eq!(next.rows(72), 0);
    next.send(400, 0.01);
    assert!(next.rows(72) >= 3);
}

#[test]
fn half_a_percent_is_found_within_some_hundred_packets() {
    for seed in 1..20_u64 {
        let mut link = Link::new(LossPrior::default());
        link.random = link.random.wrapping_mul(2 * seed + 1);
        link.send(600, 0.005);
        assert!((2..=8).contains(&link.rows(72)), "{} rows, seed {seed}", link.rows(72));
        link.send(20_000, 0.005);
        assert!((4..=6).contains(&link.rows(72)), "{} rows, seed {seed}", link.rows(72));
        assert!((0.0035..0.0065).contains(&link.controller.loss()));
        assert_eq!(link.controller.plan(link.now, block(2)).second_after, None);
    }
}

#[test]
fn a_link_that_gets_worse_is_noticed_within_a_second() {
    let mut link = Link::new(LossPrior::default());
    link.send(100_000, 0.0);
    assert_eq!(link.rows(72), 0);
    link.send(3000, 0.03);
    assert!(link.rows(72) >= 7, "{} rows", link.rows(72));
}

#[test]
fn loss_that_stops_is_forgotten() {
    let mut link = Link::new(LossPrior::default());
    link.send(50_000, 0.02);
    let high = link.rows(72);
    assert!((8..=11).contains(&high));
    link.send(150_000, 0.0);
    let low = link.rows(72);
    assert!((1..=3).contains(&low), "{low} rows");
    link.now += Duration::from_secs(3600);
    assert_eq!(link.rows(72), low, "an idle link was forgotten");
    link.send(600_000, 0.0);
    assert_eq!(link.rows(72), 0);
}

#[test]
fn bursts_give_small_blocks_a_late_second_row() {
    let mut link = Link::new(LossPrior::default());
    link.burst = 3;
    link.send(10_000, 0.01);
    assert!(link.controller.mean_burst() > 2.5);
    for rows in 1..=3 {
        let plan = link.controller.plan(link.now, block(rows));
        assert_eq!(plan, Plan { rows: plan.rows.max(2), second_after: Some(Duration::from_millis(10)) });
    }
    assert_eq!(link.controller.plan(link.now, block(4)).second_after, None);
}

#[test]
fn loss_of_congestion_does_not_raise_repair() {
    let mut link = Link::new(LossPrior::default());
    link.send(20_000, 0.005);
    let before = link.rows(72);
    let report = Report { packets: 100, lost: 20, runs: 4 };
    for _ in 0..50 {
        link.now += Duration::from_millis(20);
        link.controller.report(link.now, report, standing(80));
        assert_eq!(link.rows(72), 1);
    }
    link.controller.report(link.now, Report { packets: 100, lost: 0, runs: 0 }, standing(2));
    assert_eq!(link.rows(72), before);
    link.controller.report(link.now, report, standing(80));
    link.now += Duration::from_secs(1);
    assert_eq!(link.rows(72), before, "congestion of long ago");
    link.controller.report(link.now, report, standing(2));
    assert!(link.rows(72) > before, "the same loss without a queue is the link's");
}

#[test]
fn what_a_link_loses_anyway_is_not_congestion() {
    let mut link = Link::new(LossPrior { loss: 0.02, packets: 400.0 });
    let before = link.rows(72);
    link.now += Duration::from_millis(20);
    link.controller.report(link.now, Report { packets: 100, lost: 3, runs: 3 }, standing(80));
    assert!(link.rows(72) + 1 >= before);
}

/// Cells of 4 KiB on a link without loss cost 5473 bytes instead of 3828: a third of it was repair.
#[test]
fn small_blocks_cost_nothing_soon_where_nothing_is_lost() {
    let mut link = Link::new(LossPrior::default());
    assert!(link.rows(3) > 0 && link.rows(72) > 0);
    link.send(400, 0.0);
    assert!(link.rows(3) == 0 && link.rows(72) > 0);
    link.controller.report(link.now, Report { packets: 10, lost: 1, runs: 1 }, standing(0));
    link.send(400, 0.0);
    assert!(link.rows(3) > 0, "it has lost something");
}

/// Reports come with every acknowledgement. A start-up queue and one lost packet of two took repair away for a second.
#[test]
fn one_loss_in_a_small_report_is_not_congestion() {
    let mut link = Link::new(LossPrior::default());
    link.send(5_000, 0.005);
    let before = link.rows(72);
    link.now += Duration::from_millis(5);
    link.controller.report(link.now, Report { packets: 2, lost: 1, runs: 1 }, standing(30));
    assert!(link.rows(72) >= before);
}

#[test]
fn only_what_is_in_flight_is_at_stake() {
    let mut link = Link::new(LossPrior::default());
    link.send(20_000, 0.02);
    let slow = |rate| link.controller.plan(link.now, Block { rate, ..block(128) }).rows;
    // 1.25 · 100 ms · 112 kB/s are 10 rows.
    assert_eq!(slow(112_000), link.rows(10));
    assert_eq!(slow(1), link.rows(1));
    assert_eq!(slow(0), slow(u64::MAX));
    assert!(slow(0) > slow(112_000));
}

#[test]
fn a_fixed_ratio_is_rounded_up() {
    let rows = |ratio, rows| {
        RepairController::new(Mode::Fixed(ratio), LossPrior::default()).plan(Duration::ZERO, block(rows)).rows
    };
    assert_eq!([rows(1.03, 72), rows(1.05, 72), rows(1.10, 72)], [3, 4, 8]);
    assert_eq!(
        [rows(1.05, 20), rows(1.10, 10), rows(1.05, 1), rows(1.0, 72), rows(0.5, 72)],
        [1, 1, 1, 0, 0]
    );
    assert_eq!([rows(1.10, 254), rows(9.0, 200), rows(f64::NAN, 72)], [1, 55, 0]);
}

#[test]
fn a_plan_fits_for_any_report() {
    let extremes = [0, 1, 100, u64::MAX];
    let priors = [f32::NAN, f32::INFINITY, -1.0, 0.0, 1.0];
    for (loss, packets) in priors.iter().flat_map(|&loss| priors.map(|packets| (loss, packets))) {
        let mut controller = RepairController::new(Mode::Adaptive, LossPrior { loss, packets });
        for now in [Duration::MAX, Duration::ZERO, Duration::from_secs(1)] {
            for (packets, lost) in extremes.iter().flat_map(|&packets| extremes.map(|lost| (packets, lost))) {
                for runs in extremes {
                    controller.report(now, Report { packets, lost, runs }, Queue::default());
                    for rows in [1, 2, 72, 254] {
                        let plan = controller.plan(now, block(rows));
                        assert!(usize::from(plan.rows) <= (rows / 2 + 2).min(255 - rows));
                    }
                    let prior = controller.export();
                    assert!((0.0..=1.0).contains(&prior.loss) && prior.packets.is_finite());
                    assert!(controller.mean_burst() >= 1.0);
                }
            }
        }
    }
}

/// What a queue lost was compared with an estimate that had grown by the same losses, one by one as acknowledgements
/// told of them: eleven of the first ninety packets became the link's own.
#[test]
fn regression_losses_of_a_queue_one_by_one_became_the_links_own() {
    let mut link = Link::new(LossPrior::default());
    link.send(3_000, 0.0);
    let before = link.controller.loss();
    for _ in 0..20 {
        link.now += Duration::from_millis(1);
        link.controller.report(link.now, Report { packets: 6, lost: 1, runs: 1 }, standing(80));
    }
    assert!(link.controller.is_congested(link.now));
    assert!(link.controller.loss() <= before, "{} of {before}", link.controller.loss());
}

/// A queue that comes and goes loses a packet or two each time, which were never far more than the link loses.
#[test]
fn regression_a_few_losses_of_each_queue_became_the_links_own() {
    let mut link = Link::new(LossPrior::default());
    link.send(3_000, 0.0);
    let before = link.rows(72);
    for _ in 0..40 {
        link.now += Duration::from_millis(20);
        link.controller.report(link.now, Report { packets: 30, lost: 2, runs: 1 }, standing(80));
        assert!(!link.controller.is_congested(link.now));
        link.now += Duration::from_millis(300);
        link.send(200, 0.0);
    }
    assert!(link.rows(72) <= before);
}

/// A loss is known a round trip after it, and the queue may be gone then.
#[test]
fn regression_losses_that_were_heard_of_behind_their_queue_became_the_links_own() {
    let mut link = Link::new(LossPrior::default());
    link.send(3_000, 0.0);
    let before = link.controller.loss();
    link.controller.report(link.now, Report { packets: 100, lost: 0, runs: 0 }, standing(80));
    link.now += Duration::from_millis(100);
    link.controller.report(link.now, Report { packets: 30, lost: 9, runs: 2 }, standing(2));
    assert!(link.controller.loss() <= before);
    link.now += Duration::from_millis(300);
    link.controller.report(link.now, Report { packets: 300, lost: 9, runs: 9 }, standing(2));
    assert!(link.controller.loss() > 2.0 * before, "these were lost without one");
}

#[test]
fn regression_a_link_that_loses_much_beside_a_queue_that_comes_and_goes_is_never_learned() {
    for loss in [0.05, 0.08] {
        for every in [1, 3] {
            let mut link = Link::new(LossPrior::default());
            for turn in 0..1200 {
                let report = link.lose(40, loss);
                link.now += Duration::from_millis(50);
                let delay = if turn % every == 0 { 80 } else { 0 };
                link.controller.report(link.now, report, standing(delay));
            }
            let learned = link.controller.loss();
            assert!((loss * 0.7..loss * 1.4).contains(&learned), "{learned} for {loss}, every {every}");
        }
    }
}

#[test]
fn a_link_that_loses_under_a_queue_that_stays_is_learned() {
    let mut link = Link::new(LossPrior::default());
    for _ in 0..300 {
        let report = link.lose(100, 0.01);
        link.now += Duration::from_millis(50);
        link.controller.report(link.now, report, standing(80));
    }
    assert!(link.controller.loss() > 0.007, "{}", link.controller.loss());
}
