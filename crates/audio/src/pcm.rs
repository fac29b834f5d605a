//! Sound without a codec: 16-bit samples, little-endian, interleaved.
//!
//! Lossless for 16-bit sources; for tests and fast links. Invariant: a payload is a whole number of frames, one at
//! least and at most 20 ms.

use crate::conceal::{Decoder, period, repeat};
use crate::error::Error;
use crate::packet::MAX_PAYLOAD;
use crate::sample::{CHANNELS, from_i16, to_i16};
use crate::splice::SPAN;

/// Decodes [`encode`]'s payloads, and repeats the last period where one is missing.
#[derive(Clone, Debug, Default)]
pub struct Pcm {
    /// The last that was decoded, as much as a period is looked for in.
    history: Vec<f32>,
    /// While concealing: the period, and how many frames of it were made.
    repeating: Option<(usize, usize)>,
}

impl Pcm {
    /// One that has decoded nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Samples were played that something else has decoded: what is made up next goes on from them.
    pub(crate) fn remember(&mut self, samples: &[f32]) {
        self.repeating = None;
        self.history.extend_from_slice(samples);
        let beyond = self.history.len().saturating_sub(HISTORY * CHANNELS);
        self.history.drain(..beyond);
    }
}

impl Decoder for Pcm {
    fn decode(&mut self, payload: &[u8], samples: &mut Vec<f32>) -> Result<(), Error> {
        let (frames, []) = payload.as_chunks::<{ 2 * CHANNELS }>() else { return Err(refused(payload)) };
        if frames.is_empty() || payload.len() > MAX_PAYLOAD {
            return Err(refused(payload));
        }
        let begin = samples.len();
        samples.extend(payload.as_chunks::<2>().0.iter().map(|bytes| from_i16(i16::from_le_bytes(*bytes))));
        self.remember(&samples[begin..]);
        Ok(())
    }

    fn conceal(&mut self, frames: usize, samples: &mut Vec<f32>) {
        let history = &self.history;
        if self.repeating.is_none() {
            self.repeating = period(history).map(|period| (period, 0));
        }
        match &mut self.repeating {
            Some((period, at)) => {
                repeat(history, *period, *at, frames, samples);
                *at += frames;
            }
            None => samples.resize(samples.len() + frames * CHANNELS, 0.0),
        }
    }

    fn restart(&mut self) {
        *self = Self::default();
    }
}

/// The payload for `samples`.
pub fn encode(samples: &[f32]) -> Vec<u8> {
    samples.iter().flat_map(|sample| to_i16(*sample).to_le_bytes()).collect()
}

fn refused(payload: &[u8]) -> Error {
    Error::Payload { expected: "16-bit stereo of at most 20 ms", length: payload.len() }
}

/// Frames of history: those searched for a period, and one before.
const HISTORY: usize = SPAN + 1;

#[cfg(test)]
mod tests {
    use std::f32::consts::TAU;

    use super::*;
    use crate::conceal::{BLOCK, Concealment};

    fn voice(frames: std::ops::Range<usize>) -> Vec<f32> {
        let sample = |at: usize| {
            let phase = TAU * at as f32 / 48_000.0;
            0.3 * (phase * 170.0).sin() + 0.2 * (phase * 510.0).sin() + 0.1 * (phase * 1190.0).sin()
        };
        frames.flat_map(|at| [sample(at), -sample(at)]).collect()
    }

    /// The largest difference of neighbours.
    fn steepest(samples: &[f32]) -> f32 {
        let pairs = samples.windows(CHANNELS + 1);
        pairs.map(|window| (window[CHANNELS] - window[0]).abs()).fold(0.0, f32::max)
    }

    #[test]
    fn payloads_are_exact_or_refused() {
        let mut samples = Vec::new();
        let payload: Vec<u8> = (0..=255).cycle().take(960 * 4).collect();
        Pcm::new().decode(&payload, &mut samples).unwrap();
        assert_eq!(encode(&samples), payload);
        for length in [0, 1, 2, 3, 5, MAX_PAYLOAD + 4] {
            assert!(Pcm::new().decode(&vec![0; length], &mut samples).is_err(), "{length}");
        }
        assert_eq!(samples.len(), 960 * 2, "nothing of those");
    }

    #[test]
    fn a_voice_goes_on_without_a_click_and_fades() {
        let before = voice(0..4800);
        let mut decoder = Pcm::new();
        let mut played = Vec::new();
        for frame in before.chunks(960 * CHANNELS) {
            decoder.decode(&encode(frame), &mut played).unwrap();
        }
        let mut concealment = Concealment::default();
        while !concealment.is_over() {
            concealment.block(&mut decoder, &mut played);
        }
        assert_eq!(played.len(), (4800 + 2880 + 960) * CHANNELS);
        let (own, with) = (steepest(&before), steepest(&played));
        assert!(with <= own * 1.2, "steps of {with} where sound has {own}");
        let last = &played[played.len() - 8..];
        assert!(last.iter().all(|sample| sample.abs() < 0.01), "{last:?}");
        // What is made up resembles what would have been there.
        let (made, real) = (&played[4800 * CHANNELS..5760 * CHANNELS], voice(4800..5760));
        let off: f32 = made.iter().zip(&real).map(|(made, real)| (made - real) * (made - real)).sum();
        let power: f32 = real.iter().map(|real| real * real).sum();
        assert!(off < 0.1 * power, "{off} of {power}");
    }

    #[test]
    fn without_a_history_there_is_silence() {
        let mut samples = Vec::new();
        Pcm::new().conceal(BLOCK, &mut samples);
        assert_eq!(samples, [0.0; BLOCK * CHANNELS]);
    }

    #[test]
    fn regression_what_is_made_up_is_no_louder_than_any_sound() {
        let mut noise = 1u32;
        for _ in 0..50 {
            let mut loud = || {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if noise >> 31 == 0 { 1.0 } else { -1.0 }
            };
            let frame: Vec<f32> = (0..960 * CHANNELS).map(|_| loud()).collect();
            let (mut decoder, mut made) = (Pcm::new(), Vec::new());
            decoder.decode(&encode(&frame), &mut made).unwrap();
            decoder.decode(&encode(&frame[..100]), &mut made).unwrap();
            made.clear();
            decoder.conceal(BLOCK, &mut made);
            let loudest = made.iter().fold(0.0, |most: f32, sample| most.max(sample.abs()));
            assert!(loudest <= 1.0, "{loudest}");
        }
    }
}
