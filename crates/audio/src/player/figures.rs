//! A player's statistics, as plain data.

use std::time::Duration;

use super::{Phase, Player};
use crate::conceal::Decoder;
use crate::sample::{RATE, time_of};

/// Statistics of a player.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// How far behind capture it should be, compared with a packet that arrives without jitter.
    pub target: Duration,
    /// How far behind it is, the device's queue and the last buffer included; when it played last.
    pub latency: Duration,
    /// What the device has taken.
    pub played: Duration,
    /// How much of that was made up, or silent, although sound was expected.
    pub concealed: Duration,
    /// How much of that was silence because more could not be made up.
    pub silent: Duration,
    /// Tempo of the last second of sound: 1 is as captured.
    pub tempo: f64,
    /// How much faster the sender's sound card is than ours, in millionths; `None` until that is known.
    pub drift: Option<f64>,
    /// Times that it left sound out to catch up.
    pub cuts: u64,
    /// Packets that were not played.
    pub dropped: Dropped,
}

/// Packets that were not played, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The first copy came after its place had been played.
    pub late: u64,
    /// Copies of what had come.
    pub duplicate: u64,
    /// Sequence or capture time did not fit those before.
    pub too_far: u64,
    /// Skipped so as not to play the past.
    pub past: u64,
    /// No packets, or not of the codec.
    pub refused: u64,
}

impl<D: Decoder> Player<D> {
    /// Its statistics so far.
    pub fn figures(&self) -> Figures {
        let counts = self.counts;
        let playing = matches!(self.phase, Phase::Playing { .. });
        let gained = if playing { self.steering.gained() } else { 0 };
        Figures {
            target: self.jitter.target(),
            latency: time_of(counts.behind),
            played: time_of(counts.played as i64),
            concealed: time_of(counts.concealed as i64),
            silent: time_of(counts.silent as i64),
            tempo: 1.0 + gained as f64 / f64::from(RATE),
            drift: self.drift.ppm(),
            cuts: counts.cuts,
            dropped: counts.dropped,
        }
    }
}
