//! The microphone's samples on their way into a stream that records: at its places, its rate, in its format.
//!
//! Invariant: at 48 kHz, two channels and full volume, a sample of the stream is the sample of the microphone.

use pulseaudio::protocol::{ChannelPosition, ChannelVolume};
use rubato::{Resampler, SincFixedIn, SincInterpolationType};
use wayferry_audio::{CHANNELS, RATE};

use super::filter::Filter;
use super::format::encode;
use super::place;
use super::spec::Spec;
use super::voice::{FRAMES, Mix};

/// See the module.
pub(crate) struct Hearer {
    /// Of each side in each channel.
    weights: Vec<[f32; CHANNELS]>,
    /// Only if the rate differs.
    resampling: Option<Box<Resampling>>,
}

impl std::fmt::Debug for Hearer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hearer").field("weights", &self.weights).finish_non_exhaustive()
    }
}

struct Resampling {
    resampler: SincFixedIn<f32>,
    out: [Vec<f32>; CHANNELS],
}

impl Hearer {
    /// As loud as this; `None` if programs cannot have such samples.
    pub(crate) fn new(spec: &Spec, volume: &ChannelVolume, muted: bool) -> Option<Self> {
        if !encode(spec.format, &[], &mut Vec::new()) {
            return None;
        }
        let mut hearer = Self { weights: Vec::new(), resampling: None };
        hearer.weigh(spec, volume, muted);
        hearer.retune(spec.rate);
        Some(hearer)
    }

    /// From now on as loud as this.
    pub(crate) fn weigh(&mut self, spec: &Spec, volume: &ChannelVolume, muted: bool) {
        let volumes = volume.channels();
        let gain = |channel: usize| match muted {
            true => 0.0,
            false => volumes.get(channel).or(volumes.last()).map_or(1.0, |volume| volume.to_linear()),
        };
        let weighed = |(channel, place)| shares(place).map(|share| share * gain(channel));
        self.weights = spec.places.iter().copied().enumerate().map(weighed).collect();
    }

    /// From now on at this rate.
    pub(crate) fn retune(&mut self, rate: u32) {
        self.resampling = (rate != RATE).then(|| Resampling::new(rate)).flatten().map(Box::new);
    }

    /// Appends what the stream has of this block.
    pub(crate) fn hear(&mut self, spec: &Spec, block: &Mix, out: &mut Vec<u8>) {
        let mut samples = Vec::with_capacity(FRAMES * self.weights.len());
        let mut add = |frame: [f32; CHANNELS]| {
            let channels = self.weights.iter();
            samples.extend(channels.map(|weights| weights[0] * frame[0] + weights[1] * frame[1]));
        };
        match &mut self.resampling {
            None => block.as_chunks::<CHANNELS>().0.iter().for_each(|frame| add(*frame)),
            Some(resampling) => resampling.hear(block, add),
        }
        encode(spec.format, &samples, out);
    }
}

impl Resampling {
    fn new(rate: u32) -> Option<Self> {
        let ratio = f64::from(rate) / f64::from(RATE);
        let filter = Box::new(Filter::of(RATE, rate));
        let way = SincInterpolationType::Linear;
        let resampler = SincFixedIn::new_with_interpolator(ratio, 1.0, way, filter, FRAMES, CHANNELS).ok()?;
        let room = resampler.output_frames_max();
        Some(Self { resampler, out: [vec![0.0; room], vec![0.0; room]] })
    }

    fn hear(&mut self, block: &Mix, mut add: impl FnMut([f32; CHANNELS])) {
        let frames = block.as_chunks::<CHANNELS>().0;
        let sides: [Vec<f32>; CHANNELS] =
            std::array::from_fn(|side| frames.iter().map(|frame| frame[side]).collect());
        let Ok((_, heard)) = self.resampler.process_into_buffer(&sides, &mut self.out, None) else { return };
        let [left, right] = &self.out;
        left.iter().zip(right).take(heard).for_each(|(left, right)| add([*left, *right]));
    }
}

/// How much a channel there has of either side; together 1.
fn shares(place: ChannelPosition) -> [f32; CHANNELS] {
    let weights = place::weights(place);
    let sum: f32 = weights.iter().sum();
    weights.map(|weight| weight / sum)
}

#[cfg(test)]
mod tests {
    use pulseaudio::protocol::SampleFormat;

    use super::*;

    fn heard(channels: usize, rate: u32, blocks: usize, sample: impl Fn(usize) -> [f32; 2]) -> Vec<f32> {
        let spec = Spec { format: SampleFormat::Float32Le, rate, places: place::usual(channels) };
        let mut hearer = Hearer::new(&spec, &ChannelVolume::norm(channels as u8), false).unwrap();
        let mut bytes = Vec::new();
        for block in 0..blocks {
            let mut samples = [0.0; FRAMES * CHANNELS];
            for (at, frame) in samples.as_chunks_mut::<CHANNELS>().0.iter_mut().enumerate() {
                *frame = sample(block * FRAMES + at);
            }
            hearer.hear(&spec, &samples, &mut bytes);
        }
        bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }

    #[test]
    fn two_channels_are_heard_as_they_are_and_one_is_their_middle() {
        let sample = |at: usize| [at as f32 / 1024.0, -0.5];
        assert_eq!(heard(2, RATE, 1, sample)[..4], [0.0, -0.5, 1.0 / 1024.0, -0.5]);
        assert_eq!(heard(1, RATE, 1, |_| [0.5, 0.0])[..2], [0.25, 0.25]);
    }

    /// A tone comes out with its pitch and level at every rate; one above the half rate does not come out at all.
    #[test]
    fn a_tone_is_heard_at_every_rate() {
        for rate in [8000, 16_000, 22_050, 44_100, 96_000, 192_000] {
            let tone = |at: usize, rate: u32, pitch: f64| {
                (at as f64 * pitch * std::f64::consts::TAU / f64::from(rate)).sin()
            };
            let heard = |pitch: f64| {
                let samples = heard(1, rate, 100, |at| [tone(at, RATE, pitch) as f32; 2]);
                let expected = rate as usize - samples.len();
                assert!(expected < 10 + rate as usize / 100, "{rate}: {} frames", samples.len());
                samples.into_iter().map(f64::from).skip(rate as usize / 4).take(rate as usize / 2).collect()
            };
            let middle: Vec<f64> = heard(440.0);
            let loud =
                (middle.iter().map(|sample| sample * sample).sum::<f64>() / middle.len() as f64).sqrt();
            assert!((loud - 0.5f64.sqrt()).abs() < 0.01, "{rate}: {loud}");
            let upward = middle.windows(2).filter(|pair| pair[0] < 0.0 && pair[1] >= 0.0).count();
            assert!((219..=221).contains(&upward), "{rate}: {upward} periods in half a second");
            if rate < RATE / 2 {
                let folded: Vec<f64> = heard(f64::from(rate) * 0.75);
                let loudest = folded.iter().fold(0.0f64, |loudest, sample| loudest.max(sample.abs()));
                assert!(loudest < 0.01, "{rate}: {loudest}");
            }
        }
    }
}
