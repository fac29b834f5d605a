//! What is played where sound is missing.
//!
//! A [`Decoder`] turns payloads into samples, and on request makes up samples without one. A [`Concealment`] shapes
//! these: it plays 60 ms of them, then fades them out; silence follows until sound comes back. [`repeat`] makes up
//! samples without knowledge of a codec: it repeats the last period. Invariants: at most [`HELD`] plus [`FADING`]
//! frames are made up in a row; there is no step where made-up and real sound meet.

use crate::error::Error;
use crate::sample::CHANNELS;
use crate::splice::{FADE, LONGEST, SPAN, find};

/// Makes samples of payloads. One for each flow; packets come in their order.
pub trait Decoder {
    /// Appends the samples of `payload`, at most 20 ms, to `samples`.
    ///
    /// # Errors
    /// The payload is not one of this codec; nothing is appended then.
    fn decode(&mut self, payload: &[u8], samples: &mut Vec<f32>) -> Result<(), Error>;

    /// Appends `frames` frames, a multiple of 2.5 ms, that continue what was decoded or concealed last.
    fn conceal(&mut self, frames: usize, samples: &mut Vec<f32>);

    /// What comes next has nothing to do with what was decoded last.
    fn restart(&mut self);
}

/// How long sound has been missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Concealment {
    run: usize,
}

impl Concealment {
    /// Nothing was played before, and what comes may begin in the middle of a sound: it fades in.
    pub(crate) fn silent() -> Self {
        Self { run: HELD + FADING }
    }

    /// Whether something is made up, or silent, at the moment.
    pub(crate) fn is_running(self) -> bool {
        self.run > 0
    }

    /// Whether nothing but silence is left to play.
    pub(crate) fn is_over(self) -> bool {
        self.run >= HELD + FADING
    }

    /// Appends one [`BLOCK`].
    pub(crate) fn block(&mut self, decoder: &mut impl Decoder, samples: &mut Vec<f32>) {
        let begin = samples.len();
        if self.is_over() {
            samples.resize(begin + BLOCK * CHANNELS, 0.0);
            return;
        }
        decoder.conceal(BLOCK, samples);
        samples.resize(begin + BLOCK * CHANNELS, 0.0);
        for (frame, values) in samples[begin..].chunks_exact_mut(CHANNELS).enumerate() {
            let faded = (self.run + frame).saturating_sub(HELD) as f32 / FADING as f32;
            values.iter_mut().for_each(|value| *value *= (1.0 - faded).max(0.0));
        }
        self.run += BLOCK;
    }

    /// Counts `frames` more that were missing.
    pub(crate) fn passed(&mut self, frames: usize) {
        self.run += frames;
    }

    /// Made-up samples for returning sound to fade in over; none when no sound was missing. Call it before decoding.
    pub(crate) fn tail(mut self, decoder: &mut impl Decoder) -> Vec<f32> {
        let mut tail = Vec::new();
        if self.is_running() {
            self.block(decoder, &mut tail);
        }
        tail
    }
}

/// Goes on from `history` with its last period, for `frames`, `at` frames after its end. The period is a lag of
/// 3 to 15 ms at which the end resembles itself.
pub(crate) fn repeat(history: &[f32], period: usize, at: usize, frames: usize, samples: &mut Vec<f32>) {
    let last = &history[history.len() - period * CHANNELS..];
    let before = history.len() - (period + 1) * CHANNELS;
    let worn = period.min(FADE);
    for frame in at..at + frames {
        let place = frame % period;
        // Each repetition begins a little off where the one before ended; the difference is faded out.
        let left = 1.0 - place.min(worn) as f32 / worn as f32;
        let left = left * left * (3.0 - 2.0 * left);
        for channel in 0..CHANNELS {
            let off = history[history.len() - CHANNELS + channel] - history[before + channel];
            let sample = last[place * CHANNELS + channel] + off * left;
            samples.push(sample.clamp(-1.0, 1.0));
        }
    }
}

/// The period that [`repeat`] takes; `None` when `history` is too short for one.
pub(crate) fn period(history: &[f32]) -> Option<usize> {
    if history.len() < (SPAN + 1) * CHANNELS {
        return None;
    }
    // A search in the reversed sound finds what resembles its end.
    let end = &history[history.len() - SPAN * CHANNELS..];
    let backwards: Vec<f32> = end.chunks_exact(CHANNELS).rev().flatten().copied().collect();
    find(&backwards, LONGEST).map(|splice| splice.lag)
}

/// Frames that are made up before the fade: 60 ms.
pub(crate) const HELD: usize = 2880;

/// Frames of the fade after them: 20 ms.
pub(crate) const FADING: usize = 960;

/// Frames that are made up at once.
pub(crate) const BLOCK: usize = FADE;
