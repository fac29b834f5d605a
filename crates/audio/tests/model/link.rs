//! A link as sound sees it: when a packet arrives that is sent at some time, or that it does not.
//!
//! Times are seconds. What is sent later never arrives earlier. The paths are made from seeds, not recorded: their
//! parameters are at the end.

use crate::random::Random;

/// What delays packets beyond the way itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Path {
    /// Nothing.
    Calm,
    /// Contention of some milliseconds, and now and then a pause while the radio is elsewhere.
    Wifi,
    /// Slots, a queue whose length wanders, and stalls at changes of cell.
    Cellular,
}

/// What is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Loss {
    /// Each packet for itself.
    Independent(f64),
    /// Gilbert–Elliott: this share, in bursts of this mean length.
    Bursts(f64, f64),
}

pub(crate) struct Link {
    path: Path,
    loss: Loss,
    /// There and back, without what the path adds.
    pub(crate) rtt: f64,
    /// Nothing passes from the one to the other.
    pub(crate) down: Option<(f64, f64)>,
    random: Random,
    losing: bool,
    last: f64,
    stall: (f64, f64),
    queue: [(f64, f64); 2],
    /// Whether it is bad, and until when.
    cell: (bool, f64),
}

impl Link {
    pub(crate) fn new(path: Path, loss: Loss, rtt: f64, seed: u64) -> Self {
        let random = Random(seed);
        Self {
            path,
            loss,
            rtt,
            down: None,
            random,
            losing: false,
            last: 0.0,
            stall: (0.0, 0.0),
            queue: [(0.0, 0.0); 2],
            cell: (true, 0.0),
        }
    }

    pub(crate) fn is_down(&self, time: f64) -> bool {
        self.down.is_some_and(|(from, to)| time >= from && time < to)
    }

    /// When a packet arrives that is sent at `time`.
    pub(crate) fn send(&mut self, time: f64) -> Option<f64> {
        let arrives = (time + self.rtt / 2.0 + self.added(time)).max(self.last);
        let lost = self.loses();
        if lost || self.is_down(time) {
            return None;
        }
        self.last = arrives;
        Some(arrives)
    }

    fn loses(&mut self) -> bool {
        let (turn, fate) = (self.random.unit(), self.random.unit());
        match self.loss {
            Loss::Independent(share) => fate < share,
            Loss::Bursts(share, burst) => {
                let to_good = 1.0 / burst;
                let to_bad = to_good * share / (1.0 - share);
                self.losing = if self.losing { turn >= to_good } else { turn < to_bad };
                self.losing
            }
        }
    }

    fn added(&mut self, time: f64) -> f64 {
        match self.path {
            Path::Calm => 0.0,
            Path::Wifi => self.random.exponential(0.002).min(0.015) + self.stalled(time, 3.0, 0.005, 0.035),
            Path::Cellular => {
                let bad = self.is_bad(time);
                let (queue, least, most) = if bad { (0.150, 0.100, 0.400) } else { (0.050, 0.020, 0.070) };
                self.random.unit() * 0.008 + self.queued(time, queue) + self.stalled(time, 8.0, least, most)
            }
        }
    }

    /// How long until the stall is over that is now, if one is: every `mean` seconds, of `least` to `most`.
    fn stalled(&mut self, time: f64, mean: f64, least: f64, most: f64) -> f64 {
        while self.stall.1 < time {
            let from = self.stall.1 + self.random.exponential(mean);
            self.stall = (from, from + least + (most - least) * self.random.unit());
        }
        if time >= self.stall.0 { self.stall.1 - time } else { 0.0 }
    }

    /// Whether the cell is a bad one: for a minute or two, then for about ten a good one.
    fn is_bad(&mut self, time: f64) -> bool {
        while self.cell.1 <= time {
            self.cell.0 = !self.cell.0;
            self.cell.1 += if self.cell.0 { 60.0 } else { 480.0 } * (1.0 + self.random.unit());
        }
        self.cell.0
    }

    /// A queue that goes in straight lines from length to length, one each second; mostly short.
    fn queued(&mut self, time: f64, most: f64) -> f64 {
        while self.queue[1].0 <= time {
            let length = self.random.unit().powi(3) * most;
            self.queue = [self.queue[1], (self.queue[1].0 + 1.0, length)];
        }
        let [(from, short), (to, long)] = self.queue;
        short + (long - short) * (time - from) / (to - from)
    }
}
