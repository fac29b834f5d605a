//! Sound as Opus, by libopus.
//!
//! 48 kHz stereo in the low-delay application, which adds 2.5 ms beside the frame. The caller chooses the
//! bit rate. Invariant: for any payload, a decoder gives at most 20 ms of samples between −1 and 1.

use std::fmt;

use opus::{Application, Bitrate, Channels};

use crate::conceal::Decoder;
use crate::error::Error;
use crate::sample::{CHANNELS, FrameSize, RATE};

/// Decodes what an [`OpusEncoder`] made, and conceals with libopus' own means.
pub struct Opus(opus::Decoder);

/// Makes payloads of 10 or 20 ms of sound.
pub struct OpusEncoder(opus::Encoder);

impl Opus {
    /// One that has decoded nothing.
    ///
    /// # Errors
    /// When libopus has no memory.
    pub fn new() -> Result<Self, opus::Error> {
        Ok(Self(opus::Decoder::new(RATE, Channels::Stereo)?))
    }
}

impl Decoder for Opus {
    fn decode(&mut self, payload: &[u8], samples: &mut Vec<f32>) -> Result<(), Error> {
        let refused = Error::Payload { expected: "Opus of at most 20 ms", length: payload.len() };
        if payload.is_empty() {
            return Err(refused);
        }
        let mut frame = [0.0; FrameSize::Ms20.frames() * CHANNELS];
        let frames = self.0.decode_float(payload, &mut frame, false).map_err(|_| refused)?;
        samples.extend(frame[..frames * CHANNELS].iter().map(|sample| bounded(*sample)));
        Ok(())
    }

    fn conceal(&mut self, frames: usize, samples: &mut Vec<f32>) {
        let begin = samples.len();
        samples.resize(begin + frames * CHANNELS, 0.0);
        if self.0.decode_float(&[], &mut samples[begin..], false).is_err() {
            samples[begin..].fill(0.0);
        }
        samples[begin..].iter_mut().for_each(|sample| *sample = bounded(*sample));
    }

    fn restart(&mut self) {
        // It fails for bad arguments alone, and this has none.
        let _ = self.0.reset_state();
    }
}

impl fmt::Debug for Opus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opus").finish_non_exhaustive()
    }
}

impl OpusEncoder {
    /// Encodes at so many bits in a second.
    ///
    /// # Errors
    /// When libopus has no memory, or does not know such a rate.
    pub fn new(bits_per_second: u32) -> Result<Self, opus::Error> {
        let mut encoder = opus::Encoder::new(RATE, Channels::Stereo, Application::LowDelay)?;
        let rate = i32::try_from(bits_per_second).unwrap_or(i32::MAX);
        encoder.set_bitrate(Bitrate::Bits(rate))?;
        Ok(Self(encoder))
    }

    /// The codec's delay in frames, from encoder input to decoder output.
    ///
    /// # Errors
    /// libopus does not report it.
    pub fn delay(&mut self) -> Result<usize, opus::Error> {
        Ok(usize::try_from(self.0.get_lookahead()?).unwrap_or(0))
    }

    /// The payload for 10 or 20 ms.
    ///
    /// # Errors
    /// `samples` has another length.
    pub fn encode(&mut self, samples: &[f32]) -> Result<Vec<u8>, opus::Error> {
        self.0.encode_vec_float(samples, LONGEST)
    }
}

impl fmt::Debug for OpusEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpusEncoder").finish_non_exhaustive()
    }
}

/// What a device plays of it.
fn bounded(sample: f32) -> f32 {
    if sample.is_finite() { sample.clamp(-1.0, 1.0) } else { 0.0 }
}

/// Bytes of a payload. RFC 6716 §3.4: a frame has at most 1275, and a byte before it.
const LONGEST: usize = 1276;

#[cfg(test)]
mod tests {
    use std::f32::consts::TAU;

    use proptest::prelude::*;

    use super::*;

    const FRAME: usize = 960 * CHANNELS;

    /// Soft notes as of a flute, one in each second, with overtones that fade, left of the middle.
    fn music(frames: usize) -> Vec<f32> {
        let sample = |at: usize| {
            let pitch = [220.0, 277.2, 329.6, 440.0][at / 48_000 % 4];
            let time = (at % 48_000) as f32 / 48_000.0;
            let attack = (time * 50.0).min(1.0) * ((1.0 - time) * 50.0).min(1.0);
            let tone = |tone: f32| (TAU * pitch * tone * time).sin() * (-tone * time).exp() / (tone * tone);
            0.5 * attack * (1..4).map(|number| tone(number as f32)).sum::<f32>()
        };
        (0..frames).flat_map(|at| [sample(at), 0.75 * sample(at)]).collect()
    }

    /// A voice: a gliding buzz through three formants, with pauses and hisses between.
    fn speech(frames: usize) -> Vec<f32> {
        let (mut phase, mut noise, mut formants) = (0.0f32, 1u32, [[0.0f32; 2]; 3]);
        let mut spoken = Vec::new();
        for at in 0..frames {
            let time = at as f32 / 48_000.0;
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let hiss = (noise >> 8) as f32 / (1 << 23) as f32 - 1.0;
            phase = (phase + (120.0 + 30.0 * (TAU * 0.9 * time).sin()) / 48_000.0).fract();
            let syllable = (TAU * 2.0 * time).sin().max(0.0);
            let source = (1.0 - 2.0 * phase + 0.02 * hiss) * syllable;
            let mut out = 0.0;
            for (formant, pitch) in formants.iter_mut().zip([600.0 + 200.0 * syllable, 1400.0, 2600.0]) {
                let (radius, turn) = (0.985, 2.0 * (TAU * pitch / 48_000.0).cos());
                let next = source + radius * turn * formant[0] - radius * radius * formant[1];
                *formant = [next, formant[0]];
                out += next;
            }
            spoken.extend([out * 0.004; CHANNELS]);
        }
        spoken
    }

    /// How far what is lost is below what was encoded, in decibels, and the mean payload in bytes.
    fn survives(original: &[f32]) -> (f32, usize) {
        let (mut encoder, mut decoder) = (OpusEncoder::new(96_000).unwrap(), Opus::new().unwrap());
        let delay = encoder.delay().unwrap() * CHANNELS;
        let (mut decoded, mut bytes) = (Vec::new(), 0);
        for frame in original.chunks_exact(FRAME) {
            let payload = encoder.encode(frame).unwrap();
            bytes += payload.len();
            decoder.decode(&payload, &mut decoded).unwrap();
        }
        let pairs = || original.iter().zip(&decoded[delay..]).skip(FRAME);
        let power: f32 = pairs().map(|(sent, _)| sent * sent).sum();
        let lost: f32 = pairs().map(|(sent, got)| (sent - got) * (sent - got)).sum();
        (10.0 * (power / lost).log10(), bytes / (original.len() / FRAME))
    }

    #[test]
    fn speech_survives_with_20_db_and_music_with_35() {
        for (name, original, least) in
            [("speech", speech(48_000 * 4), 20.0), ("music", music(48_000 * 4), 35.0)]
        {
            let (ratio, bytes) = survives(&original);
            println!("{name}: {ratio:.1} dB, {bytes} bytes a packet");
            assert!(ratio >= least && bytes <= 300, "{name}: {ratio} {bytes}");
        }
    }

    #[test]
    fn both_frame_sizes_fit_and_others_do_not() {
        let (mut encoder, mut decoder) = (OpusEncoder::new(96_000).unwrap(), Opus::new().unwrap());
        let mut decoded = Vec::new();
        for size in [FrameSize::Ms10, FrameSize::Ms20] {
            let payload = encoder.encode(&music(size.frames())).unwrap();
            decoded.clear();
            decoder.decode(&payload, &mut decoded).unwrap();
            assert_eq!(decoded.len(), size.frames() * CHANNELS);
        }
        assert!(encoder.encode(&[0.0; 100]).is_err());
        let forty = encoder.encode(&music(1920)).unwrap();
        assert!(decoder.decode(&forty, &mut decoded).is_err(), "40 ms");
        assert!(decoder.decode(&[], &mut decoded).is_err(), "nothing");
    }

    #[test]
    fn what_is_missing_resembles_what_was_there() {
        let (mut encoder, mut decoder) = (OpusEncoder::new(96_000).unwrap(), Opus::new().unwrap());
        let original = music(48_000);
        let mut decoded = Vec::new();
        for frame in original.chunks_exact(FRAME).take(20) {
            decoder.decode(&encoder.encode(frame).unwrap(), &mut decoded).unwrap();
        }
        let mut made = Vec::new();
        decoder.conceal(240, &mut made);
        let real = &original[20 * FRAME - 120 * CHANNELS..];
        let power: f32 = real.iter().take(480).map(|sample| sample * sample).sum();
        let off: f32 = real.iter().zip(&made).map(|(real, made)| (real - made) * (real - made)).sum();
        assert!(off < 0.2 * power, "{off} of {power}");
        decoder.restart();
        made.clear();
        decoder.conceal(240, &mut made);
        assert!(made.iter().all(|sample| *sample == 0.0), "after a restart there is nothing to go on from");
    }

    proptest! {
        #[test]
        fn any_payload_is_sound_or_refused(payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..20)) {
            let mut decoder = Opus::new().unwrap();
            for payload in payloads {
                let mut samples = Vec::new();
                if decoder.decode(&payload, &mut samples).is_err() {
                    prop_assert!(samples.is_empty());
                    decoder.conceal(240, &mut samples);
                }
                prop_assert!(samples.len() <= FRAME && samples.iter().all(|sample| sample.abs() <= 1.0));
            }
        }
    }
}
