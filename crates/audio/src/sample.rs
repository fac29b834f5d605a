//! Samples, and positions in a flow of them.
//!
//! All sound inside is 48 kHz, two channels, interleaved `f32` between −1 and 1; a *frame* is one sample of each
//! channel. Invariant: a 16-bit sample survives the way to `f32` and back.

use std::time::Duration;

use wayferry_proto::Time;

/// Frames in a second.
pub const RATE: u32 = 48_000;

/// Samples in a frame.
pub const CHANNELS: usize = 2;

/// How much sound one packet has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameSize {
    /// For short round trips, where the packet's own length is most of the delay.
    Ms10,
    /// For all others: half as many headers.
    #[default]
    Ms20,
}

impl FrameSize {
    /// How many frames these are.
    pub const fn frames(self) -> usize {
        match self {
            Self::Ms10 => 480,
            Self::Ms20 => 960,
        }
    }

    /// How long they take.
    pub const fn duration(self) -> Duration {
        match self {
            Self::Ms10 => Duration::from_millis(10),
            Self::Ms20 => Duration::from_millis(20),
        }
    }
}

/// A place in the captured sound, in frames since the capture began: the time of the sender's sound clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// As a signed number, in which differences cannot wrap: a packet's position has at most 62 bits.
    pub(crate) fn frames(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX / 4)
    }
}

/// A 16-bit sample as `f32`.
pub fn from_i16(sample: i16) -> f32 {
    f32::from(sample) / 32_768.0
}

/// The nearest 16-bit sample; too loud a sample is clipped, and NaN is silence.
pub fn to_i16(sample: f32) -> i16 {
    // A cast saturates, and makes 0 of NaN.
    (sample * 32_768.0).round() as i16
}

/// A time of the run loop, in frames.
pub(crate) fn frames_at(now: Time) -> i64 {
    frames_in(now.since_start())
}

/// Frames in `span`, rounded down.
pub(crate) fn frames_in(span: Duration) -> i64 {
    let frames = span.as_nanos() * u128::from(RATE) / 1_000_000_000;
    // A quarter of the range: sums of a few of these cannot overflow.
    i64::try_from(frames).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

/// How long `frames` take; nothing when there are fewer than none.
pub(crate) fn time_of(frames: i64) -> Duration {
    Duration::from_nanos(u64::try_from(frames).unwrap_or(0).saturating_mul(1_000_000_000 / 1000) / 48)
}

/// Frames in a millisecond.
pub(crate) const MS: i64 = RATE as i64 / 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_16_bit_sample_survives() {
        for sample in i16::MIN..=i16::MAX {
            assert_eq!(to_i16(from_i16(sample)), sample);
        }
        assert_eq!([to_i16(2.0), to_i16(-2.0), to_i16(f32::NAN)], [i16::MAX, i16::MIN, 0]);
    }

    #[test]
    fn frames_and_times_agree() {
        assert_eq!(frames_in(Duration::from_millis(20)), 960);
        assert_eq!(time_of(960), Duration::from_millis(20));
        assert_eq!(time_of(-1), Duration::ZERO);
        assert!(frames_in(Duration::MAX) > 1 << 60);
        assert!(time_of(i64::MAX) > Duration::from_secs(1 << 20));
    }
}
