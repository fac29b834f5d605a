//! Live statistics of a session: one line per second on request, and totals for the end.
//!
//! Counters are plain numbers that the run loop adds to; nothing here measures. Invariant: a line covers exactly the
//! time since the line before.

use std::time::Duration;

use wayferry_proto::{LinkState, RepairCounts, Time};

/// What a run loop counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Updates sent or received.
    pub updates: u64,
    /// Of those sent: taken back before anything of them had left, because newer ones replaced them.
    pub superseded: u64,
    /// Bytes of their chunks.
    pub content_bytes: u64,
    /// Messages of Wayland channels, both ways.
    pub messages: u64,
    /// What repair has cost and saved.
    pub repair: RepairCounts,
}

/// Time saved by rebuilding lost packets. An estimate: a retransmission that was not needed has no arrival time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Saved {
    blocks: u64,
    waiting: Duration,
}

impl Saved {
    /// Sets how many blocks have been rebuilt since the start. Each new one saves one round trip: a retransmission
    /// needs at least that.
    pub fn rebuilt(&mut self, blocks: u64, rtt: Duration) {
        let new = blocks.saturating_sub(self.blocks);
        self.waiting =
            self.waiting.saturating_add(rtt.saturating_mul(u32::try_from(new).unwrap_or(u32::MAX)));
        self.blocks = self.blocks.max(blocks);
    }

    /// How much longer blocks would have waited, all added up.
    pub fn waiting(&self) -> Duration {
        self.waiting
    }
}

/// Makes the lines.
#[derive(Debug)]
pub struct StatsLine {
    period: Duration,
    next: Time,
    last_counters: Counters,
    last_link: LinkState,
}

impl StatsLine {
    /// The first line is due one `period` after the start.
    pub fn new(period: Duration) -> Self {
        Self {
            period,
            next: Time::ZERO + period,
            last_counters: Counters::default(),
            last_link: LinkState::default(),
        }
    }

    /// When the next line is due.
    pub fn next_timeout(&self) -> Time {
        self.next
    }

    /// The line, if it is due.
    pub fn poll(&mut self, now: Time, counters: Counters, link: LinkState, windows: usize) -> Option<String> {
        if now < self.next {
            return None;
        }
        let seconds = (now - (self.next - self.period)).as_secs_f64().max(0.001);
        let rate = |new: u64, old: u64| new.saturating_sub(old) as f64 / seconds;
        let sent = rate(link.sent_bytes, self.last_link.sent_bytes) * 8.0 / 1e6;
        let received = rate(link.received_bytes, self.last_link.received_bytes) * 8.0 / 1e6;
        let packets = link.sent_packets.saturating_sub(self.last_link.sent_packets);
        let lost = link.lost_packets.saturating_sub(self.last_link.lost_packets);
        let loss = if packets == 0 { 0.0 } else { 100.0 * lost as f64 / packets as f64 };
        let repair = rate(counters.repair.bytes, self.last_counters.repair.bytes) * 8.0 / 1e6;
        let line = format!(
            "rtt {:.1} ms, loss {loss:.1} %, out {sent:.2} Mbit/s with {repair:.2} of repair, in {received:.2} Mbit/s with {} rebuilt, {:.1} updates/s with {} replaced unsent, {windows} programs",
            link.rtt.as_secs_f64() * 1e3,
            counters.repair.rebuilt - self.last_counters.repair.rebuilt,
            rate(counters.updates, self.last_counters.updates),
            counters.superseded - self.last_counters.superseded,
        );
        self.last_counters = counters;
        self.last_link = link;
        self.next = now + self.period;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rebuilt_block_saves_the_round_trip_of_its_time() {
        let mut saved = Saved::default();
        saved.rebuilt(0, Duration::from_millis(50));
        assert_eq!(saved.waiting(), Duration::ZERO);
        saved.rebuilt(2, Duration::from_millis(100));
        saved.rebuilt(2, Duration::from_millis(900));
        saved.rebuilt(3, Duration::from_millis(40));
        // The counts of a session that has ended are gone.
        saved.rebuilt(0, Duration::from_millis(40));
        assert_eq!(saved.waiting(), Duration::from_millis(240));
    }

    #[test]
    fn a_line_covers_the_time_since_the_one_before() {
        let mut line = StatsLine::new(Duration::from_secs(1));
        let link = LinkState { rtt: Duration::from_millis(20), ..LinkState::default() };
        assert_eq!(line.poll(Time::from_millis(999), Counters::default(), link, 0), None);
        let counters = Counters { updates: 60, superseded: 7, ..Counters::default() };
        let first = line.poll(Time::from_millis(1000), counters, link, 1).expect("due");
        assert!(first.contains("60.0 updates/s with 7 replaced") && first.contains("rtt 20.0 ms"), "{first}");
        let second = line.poll(Time::from_millis(2000), counters, link, 1).expect("due");
        assert!(second.contains("0.0 updates/s with 0 replaced"), "{second}");
    }
}
