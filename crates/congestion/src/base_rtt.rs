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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn our_own_queue_does_not_raise_it() {
        let mut base = BaseRtt::default();
        base.on_sample(MS, MS * 40, true);
        for second in 1..100 {
            base.on_sample(Duration::from_secs(second), MS * 60, false);
        }
        assert_eq!(base.get(), Some(MS * 40));
    }

    #[test]
    fn a_longer_way_does_when_the_old_one_is_forgotten() {
        let mut base = BaseRtt::default();
        base.on_sample(MS, MS * 40, true);
        for second in 1..=9 {
            base.on_sample(Duration::from_secs(second), MS * 60, true);
        }
        assert_eq!(base.get(), Some(MS * 40));
        for second in 10..=21 {
            base.on_sample(Duration::from_secs(second), MS * 60, true);
        }
        assert_eq!(base.get(), Some(MS * 60));
        base.on_sample(Duration::from_secs(22), MS * 30, false);
        assert_eq!(base.get(), Some(MS * 30), "a shorter way at once");
    }

    #[test]
    fn a_raise_holds_until_something_is_lower() {
        let mut base = BaseRtt::default();
        base.on_sample(MS, MS * 40, true);
        base.set(MS * 10, MS * 140);
        base.on_sample(MS * 20, MS * 150, true);
        assert_eq!(base.get(), Some(MS * 140));
    }
}
