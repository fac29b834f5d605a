//! The filters that resample, made once for all streams.
//!
//! Making one takes milliseconds and 256 KiB. A program may have many streams and change their rates: it must not be
//! able to spend the mixer's time and memory on that.

use std::sync::{Arc, OnceLock};

use rubato::sinc_interpolator::{ScalarInterpolator, SincInterpolator};
use rubato::{WindowFunction, calculate_cutoff};
use wayferry_audio::RATE;

/// A filter that others use too.
#[derive(Clone)]
pub(crate) struct Filter(Arc<ScalarInterpolator<f32>>);

impl Filter {
    /// For sound of this rate.
    pub(crate) fn of(rate: u32) -> Self {
        static MADE: [OnceLock<Filter>; 3] = [const { OnceLock::new() }; 3];
        // What is above the mix's half rate is cut off, by a filter for the next multiple of it.
        let octave = rate.div_ceil(RATE).next_power_of_two().ilog2().min(2);
        MADE[octave as usize].get_or_init(|| Self::new(1.0 / (1 << octave) as f32)).clone()
    }

    fn new(band: f32) -> Self {
        let window = WindowFunction::BlackmanHarris2;
        let cutoff = calculate_cutoff::<f32>(LENGTH, window) * band;
        Self(Arc::new(ScalarInterpolator::new(LENGTH, OVERSAMPLING, cutoff, window)))
    }
}

impl SincInterpolator<f32> for Filter {
    fn get_sinc_interpolated(&self, wave: &[f32], index: usize, subindex: usize) -> f32 {
        self.0.get_sinc_interpolated(wave, index, subindex)
    }

    fn len(&self) -> usize {
        LENGTH
    }

    fn nbr_sincs(&self) -> usize {
        OVERSAMPLING
    }
}

/// Frames that a resampled one is made of; their half is how much later it is heard.
const LENGTH: usize = 128;

/// Places between two frames for which the filter is computed: between these a straight line is so near that what it
/// makes up lies below −90 dB.
const OVERSAMPLING: usize = 512;
