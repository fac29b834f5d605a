//! What a link loses: how much, and how many packets at a time.
//!
//! Evidence fades with the time of traffic and with new packets, so that a link may change; when the last packets lose
//! far more than the rest explains, they alone count from then on. Whose fault a loss was is for others to decide.

use std::time::Duration;

use crate::predict::Evidence;

/// The loss of a link as an earlier connection left it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossPrior {
    /// The share of packets lost, 0 to 1; 0 for a link that loses none.
    pub loss: f32,
    /// How many packets this knowledge is worth: after as many of its own, a connection believes both equally.
    pub packets: f32,
}

impl Default for LossPrior {
    /// Of a path that was never used: some loss is likely, but a few hundred packets say more.
    fn default() -> Self {
        Self { loss: 0.005, packets: 100.0 }
    }
}

/// The estimate for one link.
#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    /// All that is remembered, the prior included.
    evidence: Evidence,
    /// The same of the last [`RECENT`] packets alone.
    recent: Tally,
    /// In `packets`, the runs that the lost packets came in; the prior is not included.
    bursts: Tally,
    /// Packets since the last loss.
    clean: f64,
    /// How many of them at the beginning are enough for small blocks.
    doubt: f64,
    /// Time of traffic since then; none if nothing was ever lost.
    quiet: Option<Duration>,
}

/// Faded counts.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    lost: f64,
    packets: f64,
}

impl Estimate {
    /// Begins with what an earlier connection knew; values out of range are brought into it.
    pub(crate) fn new(prior: LossPrior) -> Self {
        let packets = f64::from(prior.packets.clamp(1.0, CARRIED as f32));
        let loses = prior.loss > 0.0;
        let lost = if loses { f64::from(prior.loss.min(MOST_LOSS)) * packets } else { UNSEEN };
        Self {
            evidence: Evidence { lost, packets },
            recent: Tally::default(),
            bursts: Tally::default(),
            clean: if loses { 0.0 } else { CLEAN },
            doubt: (DOUBT * packets).min(CLEAN),
            quiet: None,
        }
    }

    /// Adds packets, of which `lost` are missing in so many runs, after so much time of traffic.
    pub(crate) fn add(&mut self, passed: Duration, packets: f64, lost: f64, runs: f64) {
        self.forget(passed, packets);
        self.recent.lost += lost;
        self.recent.packets += packets;
        if self.recent.lost > self.likely(self.recent.packets, 3.0) + 2.0 {
            self.evidence = Evidence { lost: self.recent.lost, packets: self.recent.packets + UNSEEN };
        } else {
            self.evidence.lost += lost;
            self.evidence.packets += packets;
        }
        self.bursts.lost += lost;
        self.bursts.packets += runs;
        if lost > 0.0 {
            (self.clean, self.quiet) = (0.0, Some(Duration::ZERO));
        } else {
            self.clean += packets;
            self.quiet = self.quiet.map(|quiet| quiet + passed);
        }
    }

    /// Lets old evidence fade, by the time of traffic and where new packets exceed the memory.
    fn forget(&mut self, passed: Duration, packets: f64) {
        let by_time = (-passed.as_secs_f64() / FADE.as_secs_f64()).exp();
        let room = |memory: f64, held: f64| ((memory - packets).max(0.0) / held.max(1.0)).min(1.0);
        let kept = by_time.min(room(MEMORY, self.evidence.packets));
        self.evidence.packets = (self.evidence.packets * kept).max(2.0 * UNSEEN);
        self.evidence.lost = (self.evidence.lost * kept).max(UNSEEN);
        self.bursts = self.bursts.times(kept);
        self.recent = self.recent.times(by_time.min(room(RECENT, self.recent.packets)));
    }

    /// How many of so many packets this link may well lose: the mean and some deviations, which bursts widen.
    pub(crate) fn likely(&self, packets: f64, deviations: f64) -> f64 {
        let mean = packets * self.evidence.lost / self.evidence.packets;
        mean + deviations * (mean * (2.0 * self.mean_burst() - 1.0)).sqrt()
    }

    /// The same, widened by how little may be known of the mean.
    pub(crate) fn conceivable(&self, packets: f64, deviations: f64) -> f64 {
        let likely = self.likely(packets, deviations);
        let mean = self.likely(packets, 0.0);
        mean + (likely - mean) * (1.0 + packets / self.evidence.packets).sqrt()
    }

    /// Whether that holds for blocks of a few packets, whose repair costs a large part of their bytes: on a link that
    /// has never lost anything, sooner.
    pub(crate) fn is_clean_for_few(&self) -> bool {
        self.is_clean() || (self.quiet.is_none() && self.clean >= self.doubt)
    }

    /// Whether the link is taken as one that loses nothing.
    pub(crate) fn is_clean(&self) -> bool {
        self.clean >= CLEAN && self.quiet.is_none_or(|quiet| quiet >= FORGIVEN)
    }

    /// What is known of the chance that a packet is lost.
    pub(crate) fn evidence(&self) -> Evidence {
        self.evidence
    }

    /// How many packets are lost in a row when any are, as if [`SINGLES`] single losses had been seen before.
    pub(crate) fn mean_burst(&self) -> f64 {
        (self.bursts.lost + SINGLES) / (self.bursts.packets + SINGLES)
    }

    /// The share of packets lost, 0 for a clean link.
    pub(crate) fn loss(&self) -> f64 {
        if self.is_clean() { 0.0 } else { self.evidence.lost / self.evidence.packets }
    }

    /// What the next connection should begin with.
    pub(crate) fn export(&self) -> LossPrior {
        LossPrior { loss: self.loss() as f32, packets: self.evidence.packets.min(CARRIED) as f32 }
    }
}

impl Tally {
    fn times(self, factor: f64) -> Self {
        Self { lost: self.lost * factor, packets: self.packets * factor }
    }
}

/// A link is taken as clean for small blocks after so many times the packets that the prior is worth: with the default,
/// 300, which one of half a percent passes unharmed in 22 of 100 cases.
const DOUBT: f64 = 3.0;

/// How fast evidence fades: to 1/e in this time of traffic.
const FADE: Duration = Duration::from_secs(60);

/// The most packets that evidence is worth: at 0.5 % loss the estimate is then good to 6 %, finer than a row.
const MEMORY: f64 = 50_000.0;

/// How many packets can tell that the link has changed.
const RECENT: f64 = 1_000.0;

/// The most packets that an earlier connection's evidence is worth.
const CARRIED: f64 = 400.0;

/// Losses assumed where none were seen, to keep the estimate above 0.
const UNSEEN: f64 = 0.05;

/// The most loss that a prior can claim.
const MOST_LOSS: f32 = 0.5;

/// A link that lost none of so many packets loses none: less than 0.06 % with 95 % confidence.
const CLEAN: f64 = 5_000.0;

/// One that has lost must also have been without loss for so much time of traffic.
const FORGIVEN: Duration = Duration::from_secs(120);

/// Single losses assumed before any were seen: one long burst alone is no habit.
const SINGLES: f64 = 2.0;
