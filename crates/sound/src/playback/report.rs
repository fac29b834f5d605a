//! What a playback says of itself.

use wayferry_audio::{Figures, Position};
use wayferry_proto::Time;

use crate::Codec;

/// A snapshot; see the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// The codec of the current flow.
    pub codec: Option<Codec>,
    /// The player's statistics; its latency includes that of the device.
    pub figures: Figures,
    /// What is played next; `None` while nothing is playing.
    pub next: Option<Heard>,
    /// What the device does.
    pub device: DeviceState,
    /// Orders and packets that were dropped because the thread did not take them in time.
    pub overflowed: u64,
    /// How often the thread woke up.
    pub wakes: u64,
}

/// A moment of sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// When it was captured, by the sender's sound clock.
    pub captured: Position,
    /// When it is heard, by the caller's clock.
    pub at: Time,
}

/// What the device does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceState {
    /// It is not open: there is nothing to play.
    #[default]
    Closed,
    /// It is being opened.
    Opening,
    /// It plays.
    Playing,
    /// It is open, and silent.
    Corked,
    /// It failed, and will be tried again.
    Waiting,
    /// It failed for good.
    Failed,
}

impl Report {
    /// How much of what was played was made up, or silent although sound was expected: 0 to 1.
    pub fn concealed(&self) -> f64 {
        let (concealed, played) = (self.figures.concealed.as_secs_f64(), self.figures.played.as_secs_f64());
        if played > 0.0 { concealed / played } else { 0.0 }
    }
}
