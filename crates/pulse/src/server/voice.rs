//! A stream's samples on their way into the mix: weighed, at the mix's rate.
//!
//! Invariant: at 48 kHz, two channels and full volume, a sample in the mix is the sample of the stream.

use pulseaudio::protocol::{ChannelPosition, ChannelVolume};
use rubato::{Resampler, SincFixedOut, SincInterpolationType};
use wayferry_audio::{CHANNELS, FrameSize, RATE};

use super::filter::Filter;
use super::format::decode;
use super::place;
use super::spec::Spec;

/// Samples of one turn of the mixer.
pub(crate) type Mix = [f32; FRAMES * CHANNELS];

/// See the module.
pub(crate) struct Voice {
    /// Of each channel on each side.
    weights: Vec<[f32; CHANNELS]>,
    /// Only if the rate differs, and only since the stream was played: there are many that never are.
    resampling: Option<Box<Resampling>>,
}

impl std::fmt::Debug for Voice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Voice").field("weights", &self.weights).finish_non_exhaustive()
    }
}

struct Resampling {
    resampler: SincFixedOut<f32>,
    rate: u32,
    out: [Vec<f32>; CHANNELS],
}

/// What voices write in while they work; all share it.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The bytes to be heard.
    pub(crate) bytes: Vec<u8>,
    samples: Vec<f32>,
    sides: [Vec<f32>; CHANNELS],
}

impl Voice {
    /// Of channels at these places, as loud as this.
    pub(crate) fn new(places: &[ChannelPosition], volume: &ChannelVolume, muted: bool) -> Self {
        Self { weights: weights(places, volume, muted), resampling: None }
    }

    /// From now on as loud as this.
    pub(crate) fn weigh(&mut self, places: &[ChannelPosition], volume: &ChannelVolume, muted: bool) {
        self.weights = weights(places, volume, muted);
    }

    /// How many frames of the stream the next turn needs.
    pub(crate) fn frames(&mut self, rate: u32) -> usize {
        if rate == RATE {
            self.resampling = None;
            return FRAMES;
        }
        if self.resampling.as_ref().is_none_or(|resampling| resampling.rate != rate) {
            self.resampling = Resampling::new(rate).map(Box::new);
        }
        self.resampling.as_ref().map_or(0, |resampling| resampling.resampler.input_frames_next())
    }

    /// Nothing is to come out any more.
    pub(crate) fn rest(&mut self) {
        self.resampling = None;
    }

    /// How many more turns of silence must pass until all that went in has come out.
    pub(crate) fn tail(&self) -> u32 {
        let delay = self.resampling.as_ref().map_or(0, |resampling| resampling.resampler.output_delay());
        u32::try_from(delay.div_ceil(FRAMES)).unwrap_or(0)
    }

    /// Adds the bytes in `scratch` to the mix, and silence behind them.
    pub(crate) fn add(&mut self, spec: &Spec, scratch: &mut Scratch, mix: &mut Mix) {
        let Scratch { bytes, samples, sides } = scratch;
        samples.clear();
        decode(spec.format, bytes, samples);
        for (side, out) in sides.iter_mut().enumerate() {
            out.clear();
            let frames = samples.chunks_exact(self.weights.len());
            out.extend(frames.map(|frame| {
                frame.iter().zip(&self.weights).map(|(sample, weights)| sample * weights[side]).sum::<f32>()
            }));
        }
        match &mut self.resampling {
            None => sum(sides, mix),
            Some(resampling) => resampling.add(sides, mix),
        }
    }
}

impl Resampling {
    fn new(rate: u32) -> Option<Self> {
        let ratio = f64::from(RATE) / f64::from(rate);
        let filter = Box::new(Filter::of(rate, RATE));
        let way = SincInterpolationType::Linear;
        let resampler =
            SincFixedOut::new_with_interpolator(ratio, 1.0, way, filter, FRAMES, CHANNELS).ok()?;
        Some(Self { resampler, rate, out: [vec![0.0; FRAMES], vec![0.0; FRAMES]] })
    }

    fn add(&mut self, sides: &mut [Vec<f32>; CHANNELS], mix: &mut Mix) {
        let needed = self.resampler.input_frames_next();
        sides.iter_mut().for_each(|side| side.resize(needed, 0.0));
        if self.resampler.process_into_buffer(sides, &mut self.out, None).is_ok() {
            sum(&self.out, mix);
        }
    }
}

fn sum(sides: &[Vec<f32>; CHANNELS], mix: &mut Mix) {
    for (side, samples) in sides.iter().enumerate() {
        let to = mix.iter_mut().skip(side).step_by(CHANNELS);
        to.zip(samples).for_each(|(to, sample)| *to += sample);
    }
}

fn weights(places: &[ChannelPosition], volume: &ChannelVolume, muted: bool) -> Vec<[f32; CHANNELS]> {
    let volumes = volume.channels();
    let volume =
        |channel: usize| volumes.get(channel).or(volumes.last()).map_or(1.0, |volume| volume.to_linear());
    let gain = |channel: usize| if muted { 0.0 } else { volume(channel) };
    let weighed = |(channel, &place)| place::weights(place).map(|weight| weight * gain(channel));
    places.iter().enumerate().map(weighed).collect()
}

/// Frames of a turn.
pub(crate) const FRAMES: usize = FrameSize::Ms10.frames();

#[cfg(test)]
mod tests {
    use pulseaudio::protocol::{SampleFormat, Volume};

    use super::*;

    fn volume(volumes: &[u32]) -> ChannelVolume {
        let mut volume = ChannelVolume::empty();
        volumes.iter().for_each(|raw| volume.push(Volume::from_u32_clamped(*raw)));
        volume
    }

    fn heard(spec: &Spec, volume: &ChannelVolume, muted: bool, bytes: &[u8]) -> Vec<f32> {
        let mut mix = [0.0; FRAMES * CHANNELS];
        let mut scratch = Scratch { bytes: bytes.to_vec(), ..Scratch::default() };
        Voice::new(&spec.places, volume, muted).add(spec, &mut scratch, &mut mix);
        mix[..2 * CHANNELS].to_vec()
    }

    fn spec(channels: usize) -> Spec {
        Spec { format: SampleFormat::U8, rate: RATE, places: place::usual(channels) }
    }

    const FULL: u32 = 0x10000;

    #[test]
    fn volume_is_cubic_and_each_channels_own() {
        let bytes = [192, 192, 64, 64];
        assert_eq!(heard(&spec(2), &volume(&[FULL; 2]), false, &bytes), [0.5, 0.5, -0.5, -0.5]);
        assert_eq!(heard(&spec(2), &volume(&[FULL / 2, 0]), false, &bytes), [0.0625, 0.0, -0.0625, 0.0]);
        assert_eq!(heard(&spec(2), &volume(&[FULL / 2]), false, &bytes), [0.0625, 0.0625, -0.0625, -0.0625]);
        assert_eq!(heard(&spec(2), &volume(&[FULL; 2]), true, &bytes), [0.0; 4]);
    }

    #[test]
    fn channels_are_heard_at_their_places() {
        assert_eq!(heard(&spec(1), &volume(&[FULL]), false, &[192, 64]), [0.5, 0.5, -0.5, -0.5]);
        let one = |channel: usize| {
            let bytes: Vec<u8> = (0..6).map(|at| if at == channel { 192 } else { 128 }).collect();
            let heard = heard(&spec(6), &volume(&[FULL; 6]), false, &bytes);
            [heard[0], heard[1]].map(|side| (side * 200.0).round() as i32)
        };
        assert_eq!([one(0), one(1), one(2)], [[100, 0], [0, 100], [71, 71]]);
        assert_eq!([one(3), one(4), one(5)], [[50, 50], [71, 0], [0, 71]]);
    }

    /// A tone at every rate comes out as the tone it was, less what lies above the hearing.
    #[test]
    fn a_resampled_tone_keeps_pitch_and_level() {
        for rate in [4000, 8000, 11_025, 22_050, 44_100, 47_999, 88_200, 96_000, 192_000] {
            let tone =
                |at: usize, rate: u32| (at as f64 * 440.0 * std::f64::consts::TAU / f64::from(rate)).sin();
            let spec = Spec { format: SampleFormat::Float32Le, rate, places: place::usual(1) };
            let mut voice = Voice::new(&spec.places, &volume(&[FULL]), false);
            let (mut taken, mut heard) = (0, Vec::new());
            let mut scratch = Scratch::default();
            for _ in 0..50 {
                let frames = voice.frames(rate);
                let samples = (taken..taken + frames).map(|at| tone(at, rate) as f32);
                scratch.bytes = samples.flat_map(f32::to_le_bytes).collect();
                taken += frames;
                let mut mix = [0.0; FRAMES * CHANNELS];
                voice.add(&spec, &mut scratch, &mut mix);
                heard.extend(mix.iter().step_by(CHANNELS).map(|sample| f64::from(*sample)));
            }
            let middle = &heard[9600..19_200];
            let (mut sine, mut cosine) = (0.0, 0.0);
            for (at, sample) in middle.iter().enumerate() {
                sine += sample * tone(at, RATE) / 4800.0;
                cosine +=
                    sample * (at as f64 * 440.0 * std::f64::consts::TAU / f64::from(RATE)).cos() / 4800.0;
            }
            assert!((sine.hypot(cosine) - 1.0).abs() < 0.001, "{rate}: {}", sine.hypot(cosine));
            let energy: f64 = middle.iter().map(|sample| sample * sample).sum::<f64>() / 4800.0;
            let residual = 10.0 * (energy - sine.powi(2) - cosine.powi(2)).abs().log10();
            assert!(residual < -90.0, "{rate}: {residual} dB");
        }
    }
}
