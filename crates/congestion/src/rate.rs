//! The bottleneck's rate, from ack trains.
//!
//! Trains that the sender limited can only raise it. Trains that the link limited lower it, three in a row or one while
//! a queue stands: cross traffic takes the line for a moment, a slower line keeps it. It is kept while the sender is
//! idle, and fades. Invariant: it is never above what some train has shown.

use std::time::Duration;

use crate::ack::Batch;
use crate::train::{Limit, Sample, Train};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateEstimator {
    train: Option<Train>,
    rate: Option<u64>,
    /// Samples of trains that the link limited since the last one that it did not, and the highest of them.
    low: (u32, u64),
    limit: Option<Limit>,
}

impl RateEstimator {
    /// Bytes per second; `None` before the first train.
    pub(crate) fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// Who set the rate of the last train.
    pub(crate) fn limit(&self) -> Option<Limit> {
        self.limit
    }

    /// Takes it for this from now on.
    pub(crate) fn set(&mut self, rate: u64) {
        self.rate = Some(rate);
        self.low = (0, 0);
    }

    /// An acknowledgement has come. `queued` says that a queue stands at the bottleneck.
    pub(crate) fn on_batch(&mut self, now: Duration, batch: Batch, rtt: Duration, queued: bool) {
        let Some(train) = &mut self.train else {
            self.train = Some(Train::new(now, batch));
            return;
        };
        if !train.continues(now, batch, rtt) {
            let ended = *train;
            self.train = Some(Train::new(now, batch));
            self.fade(now.saturating_sub(ended.last_acked()));
            self.conclude(ended, queued);
            return;
        }
        train.extend(now, batch);
        let train = *train;
        if let Some(sample) = train.sample() {
            self.limit = Some(sample.limit);
            self.raise(sample.rate);
            if train.span() >= rtt.max(MIN_SPAN) {
                self.train = Some(Train::new(now, batch));
                self.conclude(train, queued);
            }
        }
    }

    fn raise(&mut self, rate: u64) {
        if self.rate.is_none_or(|known| known < rate) {
            self.set(rate);
        }
    }

    fn conclude(&mut self, train: Train, queued: bool) {
        let Some(Sample { rate, limit }) = train.sample() else { return };
        if limit == Limit::Sender && !queued {
            self.low = (0, 0);
            return;
        }
        self.low = (self.low.0 + 1, self.low.1.max(rate));
        if queued || self.low.0 >= LOW_TRAINS {
            self.set(if queued { rate } else { self.low.1 });
        }
    }

    fn fade(&mut self, idle: Duration) {
        let halvings = (idle.as_nanos() / HALF_LIFE.as_nanos()).min(63);
        self.rate = self.rate.map(|rate| (rate >> halvings).max(1));
    }
}

/// A long train is cut into pieces of a round trip, at least this long: shorter ones measure single acknowledgements.
const MIN_SPAN: Duration = Duration::from_millis(20);

/// Trains in a row that must be slow.
const LOW_TRAINS: u32 = 3;

/// While idle the rate is halved this often: links and those who share them change, but not between two updates.
const HALF_LIFE: Duration = Duration::from_secs(10);
