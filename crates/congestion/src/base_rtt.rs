//! The round-trip time without a queue.
//!
//! Every sample may lower it. Only samples of a drained queue may raise it: after [`MEMORY`] without a lower one the
//! lowest of those counts. So a queue of our own, however long it stands, does not pass for a longer way. Invariant:
//! never above the last sample of a drained queue.

use std::time::Duration;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct BaseRtt {
    base: Option<Duration>,
    /// The lowest drained samples of the running span and of the one before.
    spans: [Option<Duration>; 2],
    began: Duration,
}

impl BaseRtt {
    /// `None` before the first sample.
    pub(crate) fn get(&self) -> Option<Duration> {
        self.base
    }

    /// A round-trip time; `drained` says that nothing of ours can have been queued.
    pub(crate) fn on_sample(&mut self, now: Duration, rtt: Duration, drained: bool) {
        self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
        if !drained {
            return;
        }
        if now.saturating_sub(self.began) >= MEMORY {
            self.spans = [None, self.spans[0]];
            self.began = now;
        }
        self.spans[0] = Some(self.spans[0].map_or(rtt, |least| least.min(rtt)));
        if let [Some(now), Some(before)] = self.spans {
            self.base = Some(now.min(before));
        }
    }

    /// The way has changed: this is the time from now on.
    pub(crate) fn set(&mut self, now: Duration, base: Duration) {
        *self = Self { base: Some(base), spans: [None; 2], began: now };
    }
}

/// How long a lower sample is believed, once or twice. Links with slots and sleeping radios show their shortest time
/// seldom; ten seconds are BBR's choice too.
const MEMORY: Duration = Duration::from_secs(10);
