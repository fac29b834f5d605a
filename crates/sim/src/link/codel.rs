//! CoDel: drops a packet at the head now and then while packets have waited too long for too long.
//!
//! RFC 8289 §5, with one queue. Invariant: nothing is dropped while the head waited less than the target.

use std::time::Duration;

use wayferry_proto::Time;

/// State of one queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Codel {
    /// When the head will have been late for an interval.
    late_until: Option<Time>,
    dropping: bool,
    next_drop: Time,
    count: u32,
    last_count: u32,
}

impl Codel {
    /// Whether the head is to be dropped, that has waited for `sojourn` and leaves `left` bytes behind it.
    pub(super) fn drops(&mut self, now: Time, sojourn: Duration, left: u64) -> bool {
        let late = self.is_late(now, sojourn, left);
        if self.dropping {
            if !late {
                self.dropping = false;
            } else if now >= self.next_drop {
                self.count += 1;
                self.next_drop = control(self.next_drop, self.count);
                return true;
            }
        } else if late {
            self.dropping = true;
            let since = now.since(self.next_drop);
            let recent = self.count - self.last_count;
            // RFC 8289 §5.5: soon after the last time, go on at about the rate that was needed then.
            self.count = if recent > 1 && since < INTERVAL * 16 { recent } else { 1 };
            self.last_count = self.count;
            self.next_drop = control(now, self.count);
            return true;
        }
        false
    }

    fn is_late(&mut self, now: Time, sojourn: Duration, left: u64) -> bool {
        if sojourn < TARGET || left <= MTU {
            self.late_until = None;
            return false;
        }
        let until = *self.late_until.get_or_insert(now + INTERVAL);
        now >= until
    }
}

fn control(time: Time, count: u32) -> Time {
    time + INTERVAL.div_f64(f64::from(count.max(1)).sqrt())
}

/// RFC 8289 §4.3: what a queue may stand at.
const TARGET: Duration = Duration::from_millis(5);

/// RFC 8289 §4.3: for how long, about the longest round trip.
const INTERVAL: Duration = Duration::from_millis(100);

/// RFC 8289 §5.6: with less than a packet waiting there is no queue to speak of.
const MTU: u64 = 1500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_queue_loses_nothing() {
        let mut codel = Codel::default();
        for milli in 0..1000 {
            assert!(!codel.drops(Time::from_millis(milli), Duration::from_millis(4), 100_000));
        }
    }

    #[test]
    fn a_standing_queue_loses_ever_more() {
        let mut codel = Codel::default();
        let mut drops = |from: u64| {
            let span = from..from + 1000;
            span.filter(|milli| codel.drops(Time::from_millis(*milli), Duration::from_millis(50), 100_000))
                .count()
        };
        let (first, second) = (drops(0), drops(1000));
        // The nth drop comes 100 ms / √n after the one before.
        assert!((20..40).contains(&first), "{first}");
        assert!(second > first, "{second} after {first}");
    }
}
