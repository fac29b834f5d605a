//! The lane of sound: packets as they are captured, as they arrive, and when they are heard.
//!
//! The player says what is heard next, so the packets before that have been heard.
//! Invariant: a packet that came too late to be heard has no end, and so no row.

use std::collections::BTreeMap;
use std::time::Duration;

use wayferry_audio::{Packet, Packets};
use wayferry_proto::Time;
use wayferry_sound::{self as sound, Captured, Content};

use super::file::host_now;
use super::{Row, SideTrace, Stage, Subject};

/// Packets that have arrived and are not heard yet, by when they were captured.
#[derive(Debug, Default)]
pub(super) struct Heard {
    waiting: BTreeMap<u64, Row>,
}

impl Heard {
    /// A packet arrived; a copy of one that waits says nothing new.
    fn arrived(&mut self, row: Row) {
        self.waiting.entry(row.seq).or_insert(Row { stage: Stage::Hear, ..row });
        if self.waiting.len() > MAX_WAITING {
            self.waiting.pop_first();
        }
    }

    /// What is captured at `next` is heard at `at`, in nanoseconds of the host's clock: what was before it is over.
    fn heard(&mut self, next: u64, at: u64) -> Vec<Row> {
        let waiting = self.waiting.split_off(&next);
        let passed = std::mem::replace(&mut self.waiting, waiting).into_values();
        let end = |row: &Row| at.saturating_sub(nanoseconds(next - row.seq));
        passed.map(|row| Row { end: end(&row), ..row }).filter(|row| row.end >= row.start).collect()
    }
}

impl SideTrace {
    /// A packet of sound is with the session.
    pub fn sound_captured(&self, now: Time, captured: &Captured) {
        let (Some(file), Content::Frame { payload, .. }) = (&self.file, &captured.content) else { return };
        let row = self.packet(Stage::Capture, captured.capture.0, payload.len());
        // The sound clock begins with the session's.
        let began = Time::ZERO + Duration::from_nanos(nanoseconds(captured.capture.0));
        file.row(&Row { start: ago(row.end, now, began), ..row });
    }

    /// A packet of sound arrived on a stream.
    pub fn sound_arrived(&mut self, bytes: &[u8]) {
        if self.file.is_some() {
            Packet::parse(bytes).into_iter().for_each(|packet| self.packet_arrived(&packet));
        }
    }

    /// Packets of sound arrived in a datagram.
    pub fn sound_arrived_again(&mut self, bytes: &[u8]) {
        if self.file.is_some() {
            Packets::new(bytes).flatten().for_each(|packet| self.packet_arrived(&packet));
        }
    }

    /// This is heard next.
    pub fn sound_heard(&mut self, now: Time, next: impl FnOnce() -> Option<sound::Heard>) {
        let Some(file) = &self.file else { return };
        if let Some(next) = next() {
            let at = from(host_now(), now, next.at);
            self.heard.heard(next.captured.0, at).iter().for_each(|row| file.row(row));
        }
    }

    fn packet_arrived(&mut self, packet: &Packet) {
        if packet.payload.is_empty() {
            return;
        }
        let row = self.packet(Stage::Arrive, packet.capture.0, packet.payload.len());
        self.file.iter().for_each(|file| file.row(&row));
        self.heard.arrived(row);
    }

    /// A packet, at this moment.
    fn packet(&self, stage: Stage, seq: u64, bytes: usize) -> Row {
        let now = host_now();
        let (half, bytes) = (self.half, bytes as u64);
        Row { stage, half, thread: 0, subject: Subject::Sound, seq, start: now, end: now, bytes }
    }
}

/// `then`, by the host's clock, if `now` is `host` there.
fn from(host: u64, now: Time, then: Time) -> u64 {
    match then >= now {
        true => host.saturating_add(then.since(now).as_nanos() as u64),
        false => ago(host, now, then),
    }
}

fn ago(host: u64, now: Time, then: Time) -> u64 {
    host.saturating_sub(now.since(then).as_nanos() as u64)
}

/// Of so many frames of sound.
fn nanoseconds(frames: u64) -> u64 {
    (u128::from(frames) * 1_000_000_000 / u128::from(wayferry_audio::RATE)).try_into().unwrap_or(u64::MAX)
}

/// Packets that arrived and were not heard, five seconds of them: more than a player keeps.
const MAX_WAITING: usize = 512;

#[cfg(test)]
mod tests {
    use super::super::Half;
    use super::*;

    const MS: u64 = 1_000_000;

    fn arrival(seq: u64, at: u64) -> Row {
        let (half, subject) = (Half::Display, Subject::Sound);
        Row { stage: Stage::Arrive, half, thread: 0, subject, seq, start: at, end: at, bytes: 5 }
    }

    #[test]
    fn what_is_before_the_next_has_been_heard() {
        let mut heard = Heard::default();
        (0..4).for_each(|index| heard.arrived(arrival(index * 480, index * 10 * MS)));
        heard.arrived(arrival(0, 7 * MS));
        assert_eq!(heard.heard(0, 50 * MS), []);
        // Two of them, 60 ms after the first was captured.
        let rows = heard.heard(960, 80 * MS);
        let bars: Vec<(Stage, u64, u64, u64)> =
            rows.iter().map(|row| (row.stage, row.seq, row.start, row.end)).collect();
        assert_eq!(bars, [(Stage::Hear, 0, 0, 60 * MS), (Stage::Hear, 480, 10 * MS, 70 * MS)]);
        assert_eq!(heard.heard(960, 81 * MS), []);
    }

    #[test]
    fn what_comes_too_late_is_not_heard() {
        let mut heard = Heard::default();
        heard.arrived(arrival(480, 100 * MS));
        assert_eq!(heard.heard(9600, 110 * MS), []);
    }

    #[test]
    fn what_is_never_heard_is_bounded() {
        let mut heard = Heard::default();
        (0..10_000).for_each(|index| heard.arrived(arrival(u64::MAX - index, 0)));
        assert_eq!(heard.waiting.len(), MAX_WAITING);
        heard.arrived(arrival(0, 0));
        heard.heard(u64::MAX, 0);
    }
}
