//! The filters that resample, made once for all streams.
//!
//! Making one takes milliseconds and 256 KiB. A program may have many streams and change their rates: it must not be
//! able to spend the mixer's time and memory on that.

use std::sync::{Arc, OnceLock};

use rubato::sinc_interpolator::{ScalarInterpolator, SincInterpolator};
use rubato::{WindowFunction, calculate_cutoff};

/// A filter that others use too.
#[derive(Clone)]
pub(crate) struct Filter(Arc<ScalarInterpolator<f32>>);

impl Filter {
    /// For sound of the first rate that is to have the second: what lies above half of that is cut off.
    pub(crate) fn of(from: u32, to: u32) -> Self {
        static MADE: [OnceLock<Filter>; BANDS.len()] = [const { OnceLock::new() }; BANDS.len()];
        let band = to as f32 / from as f32;
        let fitting = BANDS.iter().position(|kept| *kept <= band).unwrap_or(BANDS.len() - 1);
        MADE[fitting].get_or_init(|| Self::new(BANDS[fitting])).clone()
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

/// Which part of its band sound keeps, for the rates that are usual: 44.1, 32, 24, 16, 12, 8, 6 and 4 kHz made of 48,
/// and 48 made of 96 and 192.
const BANDS: [f32; 9] = [1.0, 0.918, 0.666, 0.5, 0.333, 0.25, 0.166, 0.125, 0.083];

/// Frames that a resampled one is made of; their half is how much later it is heard.
const LENGTH: usize = 128;

/// Places between two frames for which the filter is computed: between these a straight line is so near that what it
/// makes up lies below −90 dB.
const OVERSAMPLING: usize = 512;
