//! How much may be on the way: 2 × delivery rate × smallest round trip, measured from the peer's acknowledgements.
//!
//! A byte stream hides the link behind a kernel (and perhaps an ssh) with deep buffers. What lies in them can no
//! longer be overtaken, so content stops here, at twice what the link needs to stay busy. This is no congestion
//! control: the stream below has its own. Time comes from the caller.
//!
//! Invariant: acknowledged ≤ sent, and the window stays within [`WINDOW_MIN`]..=[`WINDOW_MAX`].

use std::collections::VecDeque;
use std::time::Duration;

/// Sent, acknowledged, and what follows from them.
#[derive(Debug, Default)]
pub struct Window {
    sent: u64,
    acked: u64,
    acked_at: Duration,
    flights: VecDeque<Flight>,
    rtt: Option<Duration>,
    min_rtt: Best<Duration>,
    max_rate: Best<u64>,
}

/// A point in the stream, with the state when it was sent: a rate sample spans from then to its acknowledgement.
#[derive(Debug)]
struct Flight {
    end: u64,
    sent_at: Duration,
    acked: u64,
    acked_at: Duration,
}

impl Window {
    /// `bytes` of payload were handed to the operating system.
    pub(crate) fn on_sent(&mut self, now: Duration, bytes: u64) {
        if self.sent == self.acked {
            // Nothing was on the way: idle time is not part of a rate.
            self.acked_at = now;
        }
        self.sent += bytes;
        if self.flights.len() < FLIGHTS_MAX {
            let (acked, acked_at) = (self.acked, self.acked_at);
            self.flights.push_back(Flight { end: self.sent, sent_at: now, acked, acked_at });
        }
    }

    /// What was sent until now may have waited for the link to come up: it measures nothing.
    pub(crate) fn begin(&mut self, now: Duration) {
        self.flights.clear();
        self.acked_at = now;
    }

    /// The peer has consumed `total` bytes of payload. `None`: it cannot have, we sent fewer, or it took some back.
    pub(crate) fn on_ack(&mut self, now: Duration, total: u64) -> Option<()> {
        if total > self.sent || total < self.acked {
            return None;
        }
        self.acked = total;
        self.acked_at = now;
        let mut newest = None;
        while self.flights.front().is_some_and(|flight| flight.end <= total) {
            newest = self.flights.pop_front();
        }
        if let Some(flight) = newest {
            self.sample(now, &flight);
        }
        Some(())
    }

    fn sample(&mut self, now: Duration, flight: &Flight) {
        let rtt = now.saturating_sub(flight.sent_at).max(RTT_RESOLUTION);
        self.rtt = Some(self.rtt.map_or(rtt, |smooth| (smooth * 7 + rtt) / 8));
        self.min_rtt.offer(now, rtt, |new, old| new < old);
        let span = now.saturating_sub(flight.acked_at).max(rtt);
        let rate = (self.acked - flight.acked) as f64 / span.as_secs_f64();
        self.max_rate.offer(now, rate as u64, |new, old| new > old);
    }

    /// Payload sent and not acknowledged yet.
    pub fn unacked(&self) -> u64 {
        self.sent - self.acked
    }

    /// The limit for [`Window::unacked`], in bytes.
    pub fn size(&self) -> u64 {
        let (Some(rtt), Some(rate)) = (self.min_rtt.value(), self.max_rate.value()) else {
            return WINDOW_MIN;
        };
        let bytes = 2.0 * rate as f64 * rtt.as_secs_f64();
        (bytes as u64).clamp(WINDOW_MIN, WINDOW_MAX)
    }

    /// Smoothed round trip, zero before the first acknowledgement.
    pub fn rtt(&self) -> Duration {
        self.rtt.unwrap_or_default()
    }

    /// The best delivery rate of the last seconds, in bytes per second.
    pub fn rate(&self) -> Option<u64> {
        self.max_rate.value()
    }
}

/// The best value of the last one to two [`BEST_SPAN`]s.
#[derive(Debug, Default)]
struct Best<T> {
    since: Duration,
    previous: Option<T>,
    current: Option<T>,
    best: Option<T>,
}

impl<T: Copy> Best<T> {
    fn offer(&mut self, now: Duration, value: T, better: impl Fn(T, T) -> bool) {
        let pick = |a: Option<T>, b: Option<T>| match (a, b) {
            (Some(a), Some(b)) => Some(if better(a, b) { a } else { b }),
            (a, b) => a.or(b),
        };
        if now.saturating_sub(self.since) >= BEST_SPAN {
            self.since = now;
            self.previous = self.current.take();
        }
        self.current = pick(Some(value), self.current);
        self.best = pick(self.current, self.previous);
    }

    fn value(&self) -> Option<T> {
        self.best
    }
}

/// Least payload on the way: what a fast local socket needs between two wake-ups of the peer.
const WINDOW_MIN: u64 = 64 << 10;

/// Most payload on the way: 1 Gbit/s at 134 ms.
const WINDOW_MAX: u64 = 32 << 20;

/// Points in flight that are remembered for samples; more frames on the way share the last ones.
const FLIGHTS_MAX: usize = 4096;

/// How long a best value counts before it has to be seen again.
const BEST_SPAN: Duration = Duration::from_secs(5);

/// Below this a round trip measures the scheduler.
const RTT_RESOLUTION: Duration = Duration::from_micros(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn starts_at_the_minimum_and_grows_to_twice_the_pipe() {
        let mut window = Window::default();
        assert_eq!(window.size(), WINDOW_MIN);
        // 10 MB/s, 100 ms: the pipe holds 1 MB.
        let (mut now, mut acked) = (Duration::ZERO, 0);
        for _ in 0..40 {
            let flight = window.size();
            window.on_sent(now, flight);
            acked += flight;
            now += ms(100).max(Duration::from_secs_f64(flight as f64 / 10e6));
            window.on_ack(now, acked).unwrap();
        }
        assert_eq!(window.unacked(), 0);
        assert!((1_900_000..=2_100_000).contains(&window.size()), "{}", window.size());
        assert!((9_000_000..=10_100_000).contains(&window.rate().unwrap()));
    }

    #[test]
    fn idle_time_does_not_dilute_the_rate() {
        let mut window = Window::default();
        window.on_sent(ms(0), 1000);
        window.on_ack(ms(10), 1000).unwrap();
        window.on_sent(ms(5000), 1000);
        window.on_ack(ms(5010), 2000).unwrap();
        assert_eq!(window.rate(), Some(100_000));
    }

    #[test]
    fn what_waited_for_the_link_measures_nothing() {
        let mut window = Window::default();
        window.on_sent(ms(0), 5000);
        window.begin(ms(30_000));
        window.on_ack(ms(30_010), 2000).unwrap();
        assert_eq!((window.rtt(), window.rate()), (Duration::ZERO, None));
        window.on_sent(ms(30_010), 1000);
        window.on_ack(ms(30_020), 6000).unwrap();
        assert_eq!((window.rtt(), window.rate()), (ms(10), Some(400_000)));
    }

    #[test]
    fn refuses_an_acknowledgement_beyond_what_was_sent_or_below_the_last() {
        let mut window = Window::default();
        window.on_sent(ms(0), 1000);
        assert_eq!(window.on_ack(ms(1), 1001), None);
        assert_eq!(window.on_ack(ms(1), 500), Some(()));
        assert_eq!(window.on_ack(ms(2), 499), None);
    }

    #[test]
    fn an_old_rate_is_forgotten() {
        let mut window = Window::default();
        window.on_sent(ms(0), 10_000);
        window.on_ack(ms(10), 10_000).unwrap();
        let mut acked = 10_000;
        for step in 1..20 {
            let start = ms(1000 * step);
            window.on_sent(start, 100);
            acked += 100;
            window.on_ack(start + ms(10), acked).unwrap();
        }
        assert_eq!(window.rate(), Some(10_000));
    }
}
