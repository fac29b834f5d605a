//! The bottleneck's rate, from ack trains.
//!
//! Trains that the sender limited can only raise it. Trains that the link limited lower it, three in a row or one while
//! a queue stands: cross traffic takes the line for a moment, a slower line keeps it. It is kept while the sender is
//! idle, and fades. Invariant: it is never above what some train has shown.

use std::time::Duration;

use crate::ack::Batch;
use crate::queue::RttFilter;
use crate::train::{Limit, Sample, Train};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateEstimator {
    train: Option<Train>,
    rate: Option<u64>,
    /// Samples of trains that the link limited since the last one that it did not, and the highest of them.
    low: (u32, u64),
    limit: Option<Limit>,
    /// The highest rates of the running span and of the one before.
    spans: [u64; 2],
    span_began: Duration,
    /// When a train last told something, and how often the rate was halved since.
    seen: Duration,
    halvings: u32,
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

    /// The highest rate of the last [`LINE_MEMORY`], once or twice: what the line has, no matter which flows share it
    /// now.
    pub(crate) fn line(&self) -> Option<u64> {
        self.rate.map(|rate| rate.max(self.spans[0]).max(self.spans[1]))
    }

    /// No other flow shares the line: its rate is what is measured.
    pub(crate) fn forget_line(&mut self) {
        self.spans = [0; 2];
    }

    /// Takes it for this from now on.
    pub(crate) fn set(&mut self, rate: u64) {
        self.rate = Some(rate);
        self.low = (0, 0);
    }

    /// An acknowledgement has come. `queued` says that a queue stands at the bottleneck.
    pub(crate) fn on_batch(&mut self, now: Duration, batch: Batch, rtt: &RttFilter, queued: bool) {
        if now.saturating_sub(self.span_began) >= LINE_MEMORY {
            self.spans = [0, self.spans[0]];
            self.span_began = now;
        }
        self.spans[0] = self.spans[0].max(self.rate.unwrap_or(0));
        let Some(train) = &mut self.train else {
            self.train = Some(Train::new(now, batch));
            return;
        };
        if !train.continues(now, batch, rtt.smoothed()) {
            let ended = *train;
            self.train = Some(Train::new(now, batch));
            self.conclude(ended, least_span(rtt), queued);
            self.fade(now);
            return;
        }
        train.extend(now, batch);
        let train = *train;
        if let Some(sample) = train.sample(least_span(rtt)) {
            self.limit = Some(sample.limit);
            (self.seen, self.halvings) = (now, 0);
            self.raise(sample.rate);
            if train.span() >= rtt.smoothed().max(MIN_SPAN) {
                self.train = Some(Train::new(now, batch));
                self.conclude(train, least_span(rtt), queued);
            }
        }
    }

    fn raise(&mut self, rate: u64) {
        if self.rate.is_none_or(|known| known < rate) {
            self.set(rate);
        }
    }

    fn conclude(&mut self, train: Train, least: Duration, queued: bool) {
        let Some(Sample { rate, limit }) = train.sample(least) else { return };
        if limit == Limit::Sender && !queued {
            self.low = (0, 0);
            return;
        }
        self.low = (self.low.0 + 1, self.low.1.max(rate));
        if queued || self.low.0 >= LOW_TRAINS {
            self.set(if queued { rate } else { self.low.1 });
        }
    }

    fn fade(&mut self, now: Duration) {
        let idle = now.saturating_sub(self.seen);
        let due = u32::try_from(idle.as_nanos() / HALF_LIFE.as_nanos()).unwrap_or(u32::MAX).min(HALVINGS);
        let more = due.saturating_sub(self.halvings);
        self.halvings = due.max(self.halvings);
        self.rate = self.rate.map(|rate| (rate >> more).max(1));
    }
}

/// How long a train must be for its rate to be the link's, not that of acknowledgements that came in one clump.
fn least_span(rtt: &RttFilter) -> Duration {
    (rtt.noise() * NOISES).max(rtt.jitter() * JITTERS)
}

/// Times the noise that a train must last.
const NOISES: u32 = 4;

/// Times the jitter. The highest train counts, so with packets up to 4 ms late and trains of 9 ms a link of 10 Mbit/s
/// passed for one of 16. When this was chosen, with jitter measured without what bursts make taken off, 8 or 16
/// in place of 12 made a difference of 1 ms of queue and of 2 % of the link's use.
const JITTERS: u32 = 12;

/// A long train is cut into pieces of a round trip, at least this long: shorter ones measure single acknowledgements.
const MIN_SPAN: Duration = Duration::from_millis(20);

/// Trains in a row that must be slow.
const LOW_TRAINS: u32 = 3;

/// How long the line is believed to be faster than what this sender gets of it.
const LINE_MEMORY: Duration = Duration::from_secs(15);

/// While idle the rate is halved this often: links and those who share them change, but not between two updates.
const HALF_LIFE: Duration = Duration::from_secs(10);

/// But not more often than this: at gain 2 the first update then takes four times its time, and later ones their own;
/// a slower link than before queues less than that update.
const HALVINGS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends trains of 20 packets of 1000 bytes over a link.
    struct Rig {
        rate: RateEstimator,
        rtt: RttFilter,
        now: Duration,
    }

    impl Rig {
        fn new() -> Self {
            let mut rtt = RttFilter::default();
            rtt.on_sample(Duration::ZERO, Duration::from_millis(50), false);
            Self { rate: RateEstimator::default(), rtt, now: Duration::ZERO }
        }

        /// One train whose pairs leave and come back this far apart, after a pause.
        fn train(&mut self, sent: Duration, acked: Duration, pause: Duration, queued: bool) {
            let start = self.now + pause;
            for pair in 0..10 {
                let sent = start + sent * pair;
                self.now = start + Duration::from_millis(50) + acked * pair;
                let batch = Batch { oldest: sent, newest: sent, bytes: 2000, packets: 2 };
                self.rate.on_batch(self.now, batch, &self.rtt, queued);
            }
        }
    }

    const MS: Duration = Duration::from_millis(1);
    const PAUSE: Duration = Duration::from_millis(400);

    #[test]
    fn a_faster_train_raises_it_at_once() {
        let mut rig = Rig::new();
        rig.train(MS * 2, MS * 2, PAUSE, false);
        assert_eq!((rig.rate.rate(), rig.rate.limit()), (Some(1_000_000), Some(Limit::Sender)));
        rig.train(MS / 2, MS, PAUSE, false);
        assert_eq!((rig.rate.rate(), rig.rate.limit()), (Some(2_000_000), Some(Limit::Link)));
    }

    #[test]
    fn what_the_sender_limited_does_not_lower_it() {
        let mut rig = Rig::new();
        rig.train(MS, MS, PAUSE, false);
        for _ in 0..10 {
            rig.train(MS * 4, MS * 4, PAUSE, false);
        }
        assert_eq!(rig.rate.rate(), Some(2_000_000));
    }

    #[test]
    fn three_trains_that_the_link_limited_lower_it() {
        let mut rig = Rig::new();
        rig.train(MS, MS, PAUSE, false);
        for _ in 0..3 {
            rig.train(MS, MS * 4, PAUSE, false);
            assert_eq!(rig.rate.rate(), Some(2_000_000));
        }
        // A train is over when the next one begins.
        rig.train(MS, MS * 4, PAUSE, false);
        assert_eq!(rig.rate.rate(), Some(500_000));
    }

    #[test]
    fn one_train_lowers_it_while_a_queue_stands_but_not_the_line() {
        let mut rig = Rig::new();
        rig.train(MS, MS, PAUSE, false);
        rig.train(MS * 4, MS * 4, PAUSE, true);
        rig.train(MS * 4, MS * 4, PAUSE, true);
        assert_eq!((rig.rate.rate(), rig.rate.line()), (Some(500_000), Some(2_000_000)));
        rig.rate.forget_line();
        assert_eq!(rig.rate.line(), Some(500_000));
    }

    #[test]
    fn it_fades_while_idle_but_not_for_ever() {
        let mut rig = Rig::new();
        rig.train(MS, MS, PAUSE, false);
        for (second, rate) in [(5, 2_000_000), (15, 1_000_000), (25, 500_000), (35, 250_000), (900, 250_000)]
        {
            let lone = Batch::new(Duration::from_secs(second), 40);
            rig.rate.on_batch(Duration::from_secs(second), lone, &rig.rtt, false);
            assert_eq!(rig.rate.rate(), Some(rate), "after {second} s");
        }
    }
}
