//! Packets that wait to be played.
//!
//! Orders packets by sequence number, keeps the first copy of each, and drops those that are too late or do not fit the
//! others; [`Drop`] names the reason. Three consecutive packets that fit each other, but none before, are taken for a
//! new beginning; one is enough if it has the flag *discontinuity*.
//!
//! It knows no clock. Invariants: at most [`MAX_AHEAD`] packets are kept; the sequence numbers and capture times of the
//! packets taken out only increase, until a new beginning.

use std::collections::BTreeMap;

use crate::packet::Packet;
use crate::sample::{FrameSize, RATE};

/// Why a packet is not played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// It came after its place had been played; no copy came before.
    Late,
    /// It has come before.
    Duplicate,
    /// Its sequence or capture time is too far from those before.
    TooFar,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer {
    /// By sequence number, extended so that it does not wrap.
    packets: BTreeMap<i64, Packet>,
    /// The highest sequence, and its capture time.
    newest: Option<(i64, i64)>,
    /// Which of the last sequences have come; bit 0 is the newest.
    seen: u128,
    /// All packets taken out have lower sequence numbers than this.
    next: Option<i64>,
    /// How many consecutive packets were too far, copies aside, and the highest sequence number of them.
    strays: (u32, u32),
}

/// What became of a packet that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It continues the packets before it.
    GoesOn,
    /// It is a new beginning; the packets before it were dropped.
    Begins,
}

impl Buffer {
    /// A packet has come.
    pub(crate) fn insert(&mut self, packet: Packet) -> Result<Kept, Drop> {
        let Some((newest, capture)) = self.newest else {
            self.begin(packet);
            return Ok(Kept::GoesOn);
        };
        // Serial number arithmetic: half of all numbers are before the newest, half after it.
        let ahead = i64::from(packet.sequence.wrapping_sub(newest as u32) as i32);
        if -ahead < SEEN && ahead <= 0 && self.seen >> -ahead & 1 == 1 {
            return Err(Drop::Duplicate);
        }
        if !fits(&packet, ahead, packet.capture.frames() - capture) {
            return self.stray(packet);
        }
        self.strays = (0, 0);
        let sequence = newest + ahead;
        if ahead > 0 {
            self.seen = self.seen.checked_shl(ahead as u32).unwrap_or(0);
            self.newest = Some((sequence, packet.capture.frames()));
        }
        self.seen |= 1u128.checked_shl((-ahead).max(0) as u32).unwrap_or(0);
        if self.next.is_some_and(|next| sequence < next) {
            return Err(Drop::Late);
        }
        self.packets.insert(sequence, packet);
        if self.packets.len() > MAX_AHEAD {
            self.pop();
        }
        Ok(Kept::GoesOn)
    }

    /// The next in order, if there is any.
    pub(crate) fn first(&self) -> Option<&Packet> {
        self.packets.first_key_value().map(|(_, packet)| packet)
    }

    /// Those that wait, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.packets.values()
    }

    /// Takes the first packet out. A packet that is missing before it will be late.
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        let (sequence, packet) = self.packets.pop_first()?;
        self.next = Some(sequence + 1);
        Some(packet)
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    fn stray(&mut self, packet: Packet) -> Result<Kept, Drop> {
        let (count, highest) = self.strays;
        let ahead = packet.sequence.wrapping_sub(highest) as i32;
        // Copies of those before come in between.
        let is_copy = count > 0 && (-COPIES..=0).contains(&ahead);
        if !is_copy {
            self.strays = (if ahead == 1 { count + 1 } else { 1 }, packet.sequence);
        }
        if self.strays.0 < STRAYS && !packet.flags.discontinuity {
            return Err(Drop::TooFar);
        }
        self.begin(packet);
        Ok(Kept::Begins)
    }

    fn begin(&mut self, packet: Packet) {
        let sequence = i64::from(packet.sequence);
        let newest = Some((sequence, packet.capture.frames()));
        *self = Self { packets: BTreeMap::from([(sequence, packet)]), newest, seen: 1, ..Self::default() };
    }
}

/// Whether a packet that is so many packets and frames ahead of the newest can belong to the same flow.
fn fits(packet: &Packet, ahead: i64, frames: i64) -> bool {
    let near = ahead.abs() <= MAX_AHEAD as i64 && frames.signum() == ahead.signum();
    let longest = ahead.abs() * FrameSize::Ms20.frames() as i64 + i64::from(RATE);
    // What says that its times are others is not one of those around, unless its times say so too.
    let jumps = ahead > 0 && (packet.flags.start || packet.flags.idle) && !packet.flags.discontinuity;
    near && (jumps || frames.abs() <= longest)
}

/// Packets that wait at most; beyond that the oldest is dropped. More than a second of 10 ms each.
pub const MAX_AHEAD: usize = 120;

/// How many sequences are remembered.
const SEEN: i64 = 128;

/// Packets in a row that make a new beginning.
const STRAYS: u32 = 3;

/// How far behind the newest a copy rides at most.
const COPIES: i32 = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::packet::Flags;
    use crate::sample::Position;

    fn packet(sequence: u32, capture: u64) -> Packet {
        Packet { sequence, capture: Position(capture), payload: vec![0; 4], ..Packet::default() }
    }

    /// The `index`th packet of 20 ms, if the first has this sequence.
    fn nth(first: u32, index: u32) -> Packet {
        packet(first.wrapping_add(index), 96_000 + u64::from(index) * 960)
    }

    #[test]
    fn order_is_made_across_the_end_of_the_numbers() {
        let mut buffer = Buffer::default();
        let first = u32::MAX - 2;
        for index in [0, 2, 1, 5, 3, 4] {
            assert_eq!(buffer.insert(nth(first, index)), Ok(Kept::GoesOn));
        }
        let order: Vec<u32> = std::iter::from_fn(|| buffer.pop()).map(|packet| packet.sequence).collect();
        assert_eq!(order, [u32::MAX - 2, u32::MAX - 1, u32::MAX, 0, 1, 2]);
    }

    #[test]
    fn the_first_copy_wins_and_others_are_named() {
        let mut buffer = Buffer::default();
        for index in [1, 0, 3] {
            buffer.insert(nth(7, index)).unwrap();
        }
        assert_eq!(buffer.insert(nth(7, 3)), Err(Drop::Duplicate));
        while buffer.pop().is_some() {}
        assert_eq!(buffer.insert(nth(7, 1)), Err(Drop::Duplicate), "played");
        assert_eq!(buffer.insert(nth(7, 2)), Err(Drop::Late), "never came");
        assert_eq!(buffer.insert(nth(7, 2)), Err(Drop::Duplicate));
        assert_eq!(buffer.insert(nth(7, 4)), Ok(Kept::GoesOn));
    }

    #[test]
    fn a_jump_is_a_new_beginning_when_three_agree() {
        let mut buffer = Buffer::default();
        buffer.insert(nth(7, 0)).unwrap();
        assert_eq!(buffer.insert(nth(90_000, 0)), Err(Drop::TooFar));
        assert_eq!(buffer.insert(nth(5_000, 0)), Err(Drop::TooFar));
        assert_eq!(buffer.insert(nth(90_000, 1)), Err(Drop::TooFar));
        assert_eq!(buffer.insert(nth(90_000, 2)), Err(Drop::TooFar));
        assert_eq!(buffer.insert(nth(90_000, 3)), Ok(Kept::Begins));
        assert_eq!(buffer.len(), 1);
        let said = Packet { flags: Flags { discontinuity: true, ..Flags::default() }, ..packet(1, 5) };
        assert_eq!(buffer.insert(said.clone()), Ok(Kept::Begins));
        assert_eq!(buffer.insert(said), Err(Drop::Duplicate));
    }

    #[test]
    fn a_time_from_the_past_or_the_far_future_is_too_far() {
        let mut buffer = Buffer::default();
        buffer.insert(nth(7, 0)).unwrap();
        assert_eq!(buffer.insert(packet(8, 0)), Err(Drop::TooFar));
        assert_eq!(buffer.insert(packet(8, u64::MAX >> 2)), Err(Drop::TooFar));
        assert_eq!(buffer.insert(nth(7, 1)), Ok(Kept::GoesOn));
        let start = Packet { flags: Flags { start: true, ..Flags::default() }, ..packet(9, 1 << 40) };
        assert_eq!(buffer.insert(start), Ok(Kept::GoesOn), "an idle flow goes on hours later");
    }

    proptest! {
        #[test]
        fn memory_and_order_hold_for_any_packets(
            packets in prop::collection::vec((0u32..300, 0u64..400, any::<bool>(), any::<bool>(), 0u8..4), 0..600)
        ) {
            let (mut buffer, mut last) = (Buffer::default(), None);
            for (sequence, capture, start, discontinuity, pops) in packets {
                let flags = Flags { start, discontinuity: discontinuity && start, ..Flags::default() };
                let packet = Packet { flags, ..packet(sequence.wrapping_sub(100), capture * 960) };
                if buffer.insert(packet) == Ok(Kept::Begins) {
                    last = None;
                }
                prop_assert!(buffer.len() <= MAX_AHEAD);
                for _ in 0..pops.saturating_sub(2) {
                    let Some(packet) = buffer.pop() else { break };
                    prop_assert!(last.is_none_or(|last| packet.sequence.wrapping_sub(last) as i32 > 0));
                    last = Some(packet.sequence);
                }
            }
        }
    }
}
