//! How much repair to send: learns from what the path loses, and plans each block.
//!
//! It neither sends nor measures. Time is handed in, as a duration since the session began, and only the time of
//! traffic counts: a link is not forgotten while it idles. Loss that comes with a standing queue and exceeds what the
//! link alone loses is congestion's own; repair would feed it, so it is not learned from, and repair goes down to the
//! minimum.
//!
//! The one invariant: for any report, a plan never exceeds what the code has room for.

use std::time::Duration;

use crate::estimate::{Estimate, LossPrior};
use crate::layout::MAX_ROWS;
use crate::predict::rows_needed;

/// Plans repair for the blocks of one path.
#[derive(Clone, Debug)]
pub struct RepairController {
    mode: Mode,
    link: Estimate,
    /// When the last report came.
    reported: Duration,
    /// Of a queue that stands, or did when what is heard of now was sent.
    standing: Option<Standing>,
    /// Until when that is so.
    heard_until: Duration,
    /// A queue stood when the last report came.
    queue_stands: bool,
    /// Until when loss is taken as congestion's own.
    congested_until: Duration,
}

/// What happened since a queue began to stand.
#[derive(Clone, Debug)]
struct Standing {
    passed: Duration,
    packets: f64,
    lost: f64,
    runs: f64,
    /// The link as it was known before: what is lost now is compared with that, and not with what has been learned of
    /// the same losses.
    before: Estimate,
}

/// How the number of repair rows is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Mode {
    /// By the loss seen.
    #[default]
    Adaptive,
    /// Always this ratio of all rows to source rows, 1.05 for 5 % of repair, rounded up; for measurements. Up to 1 is
    /// none.
    Fixed(f64),
}

/// What became of packets since the last report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Packets whose fate is known now.
    pub packets: u64,
    /// How many of them were lost; more than there were counts as all.
    pub lost: u64,
    /// In how many separate runs of lost packets.
    pub runs: u64,
}

/// The path's queue at the time of a report, as congestion control estimates it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// How long packets wait in it.
    pub delay: Duration,
    /// The round trip without it.
    pub base_rtt: Duration,
}

/// A block that is about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Source rows: k.
    pub rows: usize,
    /// Bytes in a row.
    pub row: usize,
    /// The path's round trip.
    pub rtt: Duration,
    /// The path's rate in bytes per second; 0 if it is not known.
    pub rate: u64,
}

/// How much repair to send for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Repair rows, those held back included.
    pub rows: u8,
    /// If set, only the first row leaves behind the source, and the others so much later: a burst that takes the source
    /// may take what follows at once too.
    pub second_after: Option<Duration>,
}

impl RepairController {
    /// A controller for a path of which no more is known than `prior`; values out of range are brought into it.
    pub fn new(mode: Mode, prior: LossPrior) -> Self {
        let link = Estimate::new(prior);
        let (reported, heard_until, congested_until) = Default::default();
        Self { mode, link, reported, standing: None, heard_until, queue_stands: false, congested_until }
    }

    /// Learns from a report that came at `now`.
    pub fn report(&mut self, now: Duration, report: Report, queue: Queue) {
        let packets = report.packets.min(MOST_PACKETS) as f64;
        let lost = (report.lost as f64).min(packets);
        let runs = (report.runs as f64).clamp(lost.min(1.0), lost);
        let passed = now.saturating_sub(self.reported).min(LONGEST_STEP);
        self.reported = self.reported.max(now);
        self.queue_stands = queue.is_standing();
        if self.queue_stands {
            // A loss is known a round trip later, when the queue may be gone by it.
            self.heard_until = now.saturating_add((queue.base_rtt + queue.delay) * 5 / 4);
        } else {
            self.congested_until = Duration::ZERO;
        }
        if now >= self.heard_until {
            if let Some(standing) = self.standing.take().filter(|standing| standing.exceeds(2.0, 1.0)) {
                self.link = standing.before;
            }
        } else if self.exceeds(now, Standing { passed, packets, lost, runs, before: self.link.clone() }) {
            return;
        }
        self.link.add(passed, packets, lost, runs);
    }

    /// Whether far more is lost while a queue stands than the link loses by itself; then what has been learned of it is
    /// taken back. What goes on for long is learned nevertheless.
    fn exceeds(&mut self, now: Duration, news: Standing) -> bool {
        let standing = match self.standing.take() {
            Some(standing) => standing.and(&news),
            None => news,
        };
        let exceeds = standing.exceeds(3.0, FEW);
        if !exceeds {
            let is_long = standing.packets >= LONG_STANDING;
            self.standing = Some(if is_long { Standing::after(self.link.clone()) } else { standing });
            return false;
        }
        self.link = standing.before.clone();
        if standing.packets < MANY || standing.passed < VERY_LONG_STANDING {
            self.congested_until =
                if self.queue_stands { now.saturating_add(CONGESTED) } else { Duration::ZERO };
            self.standing = Some(standing);
        } else {
            self.link.add(standing.passed, standing.packets, standing.lost, standing.runs);
            self.congested_until = Duration::ZERO;
        }
        true
    }

    /// How much repair to send for a block at `now`.
    pub fn plan(&self, now: Duration, block: Block) -> Plan {
        let room = (MAX_ROWS + 1).saturating_sub(block.rows);
        let rows = match self.mode {
            Mode::Fixed(ratio) => {
                return Plan { rows: fixed(ratio, block.rows).min(room) as u8, second_after: None };
            }
            Mode::Adaptive => self.adaptive(now, block).min(room),
        };
        if rows == 0 || block.rows > SMALL_BLOCK || self.link.mean_burst() <= LONG_BURST {
            return Plan { rows: rows as u8, second_after: None };
        }
        Plan { rows: rows.max(2) as u8, second_after: Some(HOLD_BACK) }
    }

    fn adaptive(&self, now: Duration, block: Block) -> usize {
        let few = block.rows < FEW_ROWS;
        let least = usize::from(!if few { self.link.is_clean_for_few() } else { self.link.is_clean() });
        if least == 0 || self.is_congested(now) {
            return least;
        }
        let most = block.rows / 2 + 2;
        rows_needed(block.rows_at_stake(), most, self.link.evidence()).max(least)
    }

    /// Whether losses are taken as congestion's own at `now`.
    pub fn is_congested(&self, now: Duration) -> bool {
        now < self.congested_until
    }

    /// Whether a queue stood when the last report came: what is lost then may be congestion's own, though it does not
    /// say so yet.
    pub fn is_queue_standing(&self) -> bool {
        self.queue_stands
    }

    /// The share of packets that the link loses, as far as is known, from 0 to 1.
    pub fn loss(&self) -> f64 {
        self.link.loss()
    }

    /// How many packets in a row the link loses when it does; near 1 until there is evidence of more.
    pub fn mean_burst(&self) -> f64 {
        self.link.mean_burst()
    }

    /// What the next connection on this path should begin with.
    pub fn export(&self) -> LossPrior {
        self.link.export()
    }
}

impl Standing {
    fn after(before: Estimate) -> Self {
        Self { passed: Duration::ZERO, packets: 0.0, lost: 0.0, runs: 0.0, before }
    }

    fn and(self, news: &Self) -> Self {
        Self {
            passed: self.passed + news.passed,
            packets: self.packets + news.packets,
            lost: self.lost + news.lost,
            runs: self.runs + news.runs,
            before: self.before,
        }
    }

    /// Whether more is lost than the link alone explains within so many deviations, and so many packets.
    fn exceeds(&self, deviations: f64, few: f64) -> bool {
        self.lost > self.before.conceivable(self.packets, deviations) + few
    }
}

impl Queue {
    /// Whether more is waiting than jitter and pacing explain on a path without congestion.
    fn is_standing(self) -> bool {
        self.delay > (self.base_rtt / 4).clamp(SHORTEST_QUEUE, LONGEST_QUEUE)
    }
}

impl Block {
    /// The source rows whose loss could be told only after the block has been sent: k, or what is sent in 1.25 round
    /// trips if that is less, because earlier ones are sent again in time.
    fn rows_at_stake(self) -> usize {
        if self.rate == 0 || self.row == 0 {
            return self.rows;
        }
        let flight = 1.25 * self.rtt.as_secs_f64() * self.rate as f64 / self.row as f64;
        self.rows.min((flight.ceil() as usize).max(1))
    }
}

/// Repair rows for a fixed ratio, rounded up, but not for what the ratio itself was rounded by.
fn fixed(ratio: f64, rows: usize) -> usize {
    ((ratio - 1.0) * rows as f64 - 1e-6).ceil().max(0.0) as usize
}

/// The most packets that one report can claim; beyond, sums of small and large numbers would lose the small ones.
const MOST_PACKETS: u64 = 1 << 32;

/// The longest time of traffic between two reports; the rest was idle.
const LONGEST_STEP: Duration = Duration::from_secs(1);

/// Blocks of fewer rows pay a tenth of their bytes and more for a row.
const FEW_ROWS: usize = 10;

/// Losses that say nothing yet: one in a report of a few packets is more than any link explains.
const FEW: f64 = 2.0;

/// A link that loses as much as this many packets tell loses it by itself, whether a queue stands or not.
const LONG_STANDING: f64 = 1000.0;

/// What goes on for so long, and so many packets, is the link's own although it is more than was known: queues that
/// overflow come and go.
const VERY_LONG_STANDING: Duration = Duration::from_secs(10);
const MANY: f64 = 1000.0;

/// How long a report of congestion counts, unless one without a standing queue comes.
const CONGESTED: Duration = Duration::from_secs(1);

/// A queue is standing above a quarter of the base round trip, within these bounds.
const SHORTEST_QUEUE: Duration = Duration::from_millis(10);
const LONGEST_QUEUE: Duration = Duration::from_millis(25);

/// Above this mean length of a burst, small blocks get a second row, later.
const LONG_BURST: f64 = 1.5;

/// The most rows of a block that one burst is likely to take together with its repair.
const SMALL_BLOCK: usize = 3;

/// How much later: most bursts of 5 ms are over, and it is still sooner than a retransmission.
const HOLD_BACK: Duration = Duration::from_millis(10);
