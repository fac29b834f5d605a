//! The window of a sender that keeps the queue short.
//!
//! Of what is queued at the bottleneck, window × wait / round trip is this sender's own. The law steers that to an
//! allowance of a few packets: enough that the line never runs dry, and the same for all who share it, so that they
//! come to equal shares. Losses do not count. Invariant: never below [`Window::LEAST`] packets.

use std::time::Duration;

/// What the law goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// The time.
    pub(crate) now: Duration,
    /// Largest packet in bytes.
    pub(crate) mtu: u64,
    /// Round-trip time without a queue.
    pub(crate) base: Duration,
    /// What stands at the bottleneck.
    pub(crate) queue: Duration,
    /// The mean round-trip time.
    pub(crate) smoothed: Duration,
    /// How far the least time of one round is from that of the next.
    pub(crate) noise: Duration,
    /// How far single times are from their neighbours.
    pub(crate) jitter: Duration,
    /// The bottleneck's rate in bytes per second, if known.
    pub(crate) rate: Option<u64>,
    /// That of the line, if others may share it.
    pub(crate) line: Option<u64>,
}

impl Path {
    /// Bytes that fill the way without a queue, if the rate is known.
    pub(crate) fn product(&self) -> Option<f64> {
        self.rate.map(|rate| rate as f64 * self.base.as_secs_f64())
    }

    /// How long `bytes` take at this rate.
    pub(crate) fn time(&self, bytes: u64, rate: u64) -> Duration {
        Duration::from_secs_f64((bytes as f64 / rate.max(1) as f64).min(LONGEST))
    }

    /// Bytes of ours that may wait.
    pub(crate) fn allowance(&self) -> f64 {
        let jitter = self.clumps().max(self.wander());
        self.packets() + self.line.unwrap_or(0) as f64 * jitter.as_secs_f64()
    }

    /// A queue that this sender cannot have made by keeping to its allowance.
    pub(crate) fn threshold(&self) -> Duration {
        let own = self.line.map_or(0.0, |rate| 3.0 * self.packets() / rate as f64);
        let jitter = (self.clumps() * 2).max(self.wander() * 3);
        LONG_QUEUE.max(Duration::from_secs_f64(own) + jitter).max(self.noise * 3)
    }

    /// Bytes of ours that may wait where there is no jitter.
    fn packets(&self) -> f64 {
        let rate = self.line.unwrap_or(0) as f64;
        ALLOWANCE * self.mtu as f64 * (rate / REFERENCE).sqrt().max(1.0)
    }

    /// What looks like a standing queue, and is single packets that are late. A queue of our own, however long, has
    /// none of it: it grows and shrinks evenly.
    fn clumps(&self) -> Duration {
        self.jitter.mul_f64(self.jitter.as_secs_f64() / CLUMP.as_secs_f64()).min(NOISE_MAX)
    }

    /// The same, of a delay that wanders with all packets.
    fn wander(&self) -> Duration {
        let faster = (self.line.unwrap_or(0) as f64 / FAST).max(1.0);
        let most = NOISE_MAX.div_f64((faster / 2.0).clamp(1.0, 2.0));
        (self.noise.saturating_sub(QUIET.div_f64(faster)) * NOISES).min(most)
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    bytes: f64,
    /// Factor on the growth while no queue forms.
    velocity: f64,
    round_began: Duration,
    /// Until then the queue says nothing about this window.
    blind_until: Duration,
}

impl Window {
    /// Packets that may always be on their way: two acknowledgements and what they acknowledge.
    const LEAST: f64 = 4.0;

    /// A window of this many bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { bytes: bytes as f64, velocity: 1.0, round_began: Duration::ZERO, blind_until: Duration::ZERO }
    }

    /// Bytes that may be on their way.
    pub(crate) fn bytes(&self) -> f64 {
        self.bytes
    }

    /// Another window from now on.
    pub(crate) fn set(&mut self, bytes: f64, mtu: u64) {
        self.bytes = bytes.max(Self::LEAST * mtu as f64);
        self.velocity = 1.0;
    }

    /// Bytes of ours that wait, with that window.
    pub(crate) fn own(&self, path: &Path) -> f64 {
        let queue = path.queue.as_secs_f64();
        self.bytes * queue / (path.base.as_secs_f64() + queue).max(1e-6)
    }

    /// Doubles in a round trip.
    pub(crate) fn double(&mut self, acked: u64) {
        self.bytes += acked as f64;
    }

    /// What is measured before `until` is of another window.
    pub(crate) fn wait(&mut self, until: Duration) {
        self.blind_until = until;
        self.velocity = 1.0;
    }

    /// Goes part of the way to the allowance. `eager` lets the growth itself grow.
    pub(crate) fn steer(&mut self, path: &Path, acked: u64, limited: bool, eager: bool) {
        if path.now < self.blind_until {
            return;
        }
        let own = self.own(path);
        let allowance = if eager { path.allowance() } else { path.allowance() / SLOW };
        if own > allowance / 2.0 || !eager {
            self.velocity = 1.0;
        } else if limited && path.now.saturating_sub(self.round_began) >= path.smoothed {
            self.velocity = (self.velocity * 2.0).min(VELOCITY_MAX);
            self.round_began = path.now;
        }
        if limited || own > allowance {
            let share = acked as f64 / self.bytes;
            let step = GAIN * share * (allowance * self.velocity - own);
            self.bytes = (self.bytes + step.min(acked as f64 / 4.0)).max(Self::LEAST * path.mtu as f64);
        }
    }

    /// At least this.
    pub(crate) fn raise(&mut self, bytes: f64) {
        self.bytes = self.bytes.max(bytes);
    }
}

/// Seconds. What would take longer is waited for in vain.
const LONGEST: f64 = 2.0;

/// Packets that may wait, at the reference rate. On 10 Mbit/s with bulk the line runs dry with 1 (78 % used) and hardly
/// with 1.75 (99 %); with 4 a message waits 1 ms longer, and two flows beside each other look like a rival.
const ALLOWANCE: f64 = 2.5;

/// 10 Mbit/s. Above it the allowance grows with the root of the rate: the pacer's bursts are longer, in packets.
const REFERENCE: f64 = 1.25e6;

/// Single packets that are late by this in the mean stand for as much of the queue, by twice this for four times as
/// much: what comes in clumps hides the shortest times. Packets up to 4 ms late on 10 Mbit/s leave 97 % of the link,
/// and 19 ms of queue at the 99th percentile; up to 40 ms, on 20 Mbit/s, 81 % and 24 ms (`A-cellular`,
/// `jitter-clumps`).
const CLUMP: Duration = Duration::from_micros(600);

/// 20 Mbit/s. On faster lines noise of our own is less, as packets take less time, and so is what is granted for that
/// of the way. With the same at any rate, a delay that wanders by 4 ms left 59 % of 100 Mbit/s and 36 % of 300, now 99
/// and 97; granting all of [`NOISE_MAX`] there, two flows had 72 ms of queue in place of 35, as each takes the other's
/// for a way that wanders.
const FAST: f64 = 2.5e6;

/// Noise that a queue of our own makes by itself, up to [`FAST`]. With 1 ms, what was granted for it made more of it:
/// with what else was decided then, packets up to 4 ms late led to 24 ms of queue in place of 15.
const QUIET: Duration = Duration::from_millis(2);

/// How much of the queue may be a wandering delay, for the noise that is measured of it. Delays of up to 40 ms
/// left 59 to 67 % of the link with 4, 69 to 83 % with 7, 74 to 97 % with 10, when [`QUIET`] was 1 ms.
const NOISES: u32 = 10;

/// Jitter beyond it is not made up for: the queue would be felt.
const NOISE_MAX: Duration = Duration::from_millis(25);

/// Part of the way to the allowance in one round trip. With 1 it swings: messages beside bulk took 40 ms at the 99th
/// percentile, with 0.5 27.7 ms, with 0.3 26.1 ms.
const GAIN: f64 = 0.5;

/// Where somebody drops what exceeds a rate, no queue tells of the excess: 6.5 % dropped in place of 9.5 %.
const SLOW: f64 = 4.0;

/// Beyond it the limit of a quarter for each round trip decides, on any link to 1 Gbit/s.
const VELOCITY_MAX: f64 = 32.0;

/// A queue of this length is suspicious on any link. Two flows of our own make 6 ms at 20 Mbit/s; with 8 ms they
/// suspected each other now and then.
const LONG_QUEUE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: u64 = 1250;

    /// Senders that always have data, over one link of 20 Mbit/s and 40 ms, as a fluid.
    fn settle(windows: &mut [Window], seconds: u64) -> Duration {
        let (rate, base) = (2.5e6, 0.04);
        let mut queue = 0.0;
        for step in 0..seconds * 100 {
            let now = Duration::from_millis(step * 10);
            let all: f64 = windows.iter().map(Window::bytes).sum();
            queue = (all / rate - base).max(0.0);
            let path = Path {
                now,
                mtu: MTU,
                base: Duration::from_secs_f64(base),
                queue: Duration::from_secs_f64(queue),
                smoothed: Duration::from_secs_f64(base + queue),
                noise: Duration::ZERO,
                jitter: Duration::ZERO,
                rate: Some(2_500_000),
                line: Some(2_500_000),
            };
            for window in windows.iter_mut() {
                let acked = window.bytes() / (base + queue) * 0.01;
                window.steer(&path, acked as u64, true, true);
            }
        }
        Duration::from_secs_f64(queue)
    }

    #[test]
    fn one_sender_keeps_a_few_packets_in_the_queue() {
        for start in [5_000, 100_000, 1_000_000] {
            let mut windows = [Window::new(start)];
            let queue = settle(&mut windows, 20).as_secs_f64();
            let packets = queue * 2.5e6 / MTU as f64;
            assert!((packets - ALLOWANCE * 2f64.sqrt()).abs() < 0.1, "{start}: {packets}");
        }
    }

    #[test]
    fn two_senders_come_to_equal_shares() {
        let mut windows = [Window::new(10_000), Window::new(110_000)];
        settle(&mut windows, 60);
        let share = windows[0].bytes() / (windows[0].bytes() + windows[1].bytes());
        assert!((share - 0.5).abs() < 0.02, "{share}");
    }

    #[test]
    fn growth_grows_while_no_queue_forms() {
        let mut window = Window::new(10_000);
        settle(std::slice::from_mut(&mut window), 1);
        // The half of 3.5 packets in each of 25 round trips would be 55 kB.
        assert!(window.bytes() > 95_000.0, "{}", window.bytes());
    }

    #[test]
    fn it_waits_while_the_queue_shows_another_window() {
        let mut window = Window::new(10_000);
        window.wait(Duration::from_secs(2));
        settle(std::slice::from_mut(&mut window), 1);
        assert_eq!(window.bytes(), 10_000.0);
    }

    #[test]
    fn what_is_granted_for_jitter_does_not_grow_with_a_queue_of_our_own() {
        let ms = Duration::from_millis;
        let path = Path {
            now: ms(0),
            mtu: MTU,
            base: ms(60),
            queue: ms(5),
            smoothed: ms(65),
            noise: ms(1),
            jitter: Duration::from_micros(1700),
            rate: Some(1_250_000),
            line: Some(1_250_000),
        };
        let granted = path.allowance();
        // Packets up to 4 ms late: 4.8 ms of what stands is theirs.
        assert!((granted - ALLOWANCE * MTU as f64 - 6020.8).abs() < 1.0, "{granted}");
        // A queue that swings makes noise, and no jitter.
        let swinging = Path { queue: ms(30), smoothed: ms(90), noise: ms(2), ..path };
        assert_eq!(swinging.allowance(), granted);
        assert!(Path { noise: ms(6), ..path }.allowance() > granted * 2.0, "a delay that wanders");
    }

    #[test]
    fn on_a_fast_line_less_noise_is_a_delay_that_wanders() {
        let ms = Duration::from_millis;
        let wander = |noise, line| {
            let (now, base, queue, smoothed) = (ms(0), ms(40), ms(2), ms(42));
            let jitter = Duration::ZERO;
            Path { now, mtu: MTU, base, queue, smoothed, noise, jitter, rate: Some(line), line: Some(line) }
                .wander()
        };
        assert_eq!(
            [ms(1), ms(2), ms(3), ms(9)].map(|noise| wander(noise, 1_250_000)),
            [0, 0, 10, 25].map(ms)
        );
        assert_eq!(wander(ms(1), 12_500_000), ms(6));
        assert_eq!(wander(ms(9), 12_500_000), Duration::from_micros(12_500));
        assert_eq!(
            wander(ms(1), 125_000),
            Duration::ZERO,
            "a slow line is no reason to call more noise its own"
        );
    }
}
