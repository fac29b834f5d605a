//! Cuts out or repeats a few milliseconds of sound inaudibly.
//!
//! Between 3 and 15 ms there is nearly always a lag at which sound resembles itself. There, one fades into the other
//! within 5 ms: [`shorten`] goes on with what comes a lag later, [`lengthen`] with what came a lag before. Pitch does
//! not change, and all samples outside the fade stay as they are. The caller decides when. Invariant: exactly one lag
//! of frames is gone or added.

use crate::sample::CHANNELS;

/// Where sound resembles itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Splice {
    /// The lag in frames.
    pub lag: usize,
    /// How much the sound differs at that lag: 0 not at all, about 1 for noise.
    pub difference: f32,
}

/// The best lag of at most `longest` frames at the beginning of `samples`; `None` when that is less than 3 ms, or there
/// are fewer frames than `SPAN`.
pub fn find(samples: &[f32], longest: usize) -> Option<Splice> {
    let longest = longest.min(LONGEST);
    if longest < SHORTEST || samples.len() < SPAN * CHANNELS {
        return None;
    }
    let at = |lag: usize| &samples[lag * CHANNELS..(lag + FADE) * CHANNELS];
    let power = |lag: usize| at(lag).iter().map(|sample| sample * sample).sum::<f32>();
    let here = power(0);
    let difference = |lag: usize| {
        let sum: f32 = at(0).iter().zip(at(lag)).map(|(now, then)| (now - then) * (now - then)).sum();
        Splice { lag, difference: sum / (here + power(lag)).max(f32::MIN_POSITIVE) }
    };
    (SHORTEST..=longest).map(difference).min_by(|one, other| one.difference.total_cmp(&other.difference))
}

/// Takes `lag` frames out of the beginning of `samples`.
///
/// # Panics
/// When there are fewer than the lag and a fade.
pub fn shorten(samples: &mut Vec<f32>, lag: usize) {
    // From behind: where the lag is shorter than the fade, what is written is not read again.
    for frame in (0..FADE).rev() {
        for channel in 0..CHANNELS {
            let (from, to) = (frame * CHANNELS + channel, (frame + lag) * CHANNELS + channel);
            samples[to] = mix(samples[from], samples[to], frame);
        }
    }
    samples.drain(..lag * CHANNELS);
}

/// Repeats `lag` frames of the beginning of `samples`.
///
/// # Panics
/// When there are fewer than the lag and a fade.
pub fn lengthen(samples: &mut Vec<f32>, lag: usize) {
    let mut again: Vec<f32> = samples[..lag * CHANNELS].to_vec();
    for frame in 0..FADE {
        for channel in 0..CHANNELS {
            let (to, from) = (frame * CHANNELS + channel, (frame + lag) * CHANNELS + channel);
            samples[to] = mix(samples[from], samples[to], frame);
        }
    }
    again.append(samples);
    *samples = again;
}

/// Fades from what `tail` goes on with to the beginning of `samples`; as far as both have frames, at most a fade.
pub(crate) fn join(tail: &[f32], samples: &mut [f32]) {
    let frames = (tail.len().min(samples.len()) / CHANNELS).min(FADE);
    for at in 0..frames * CHANNELS {
        // All of the fade, also where there is less room than it should have.
        samples[at] = mix(tail[at], samples[at], at / CHANNELS * FADE / frames);
    }
}

/// From one to the other, `frame` frames into the fade. The two resemble each other, so their amplitudes add.
fn mix(from: f32, to: f32, frame: usize) -> f32 {
    let way = (frame as f32 + 0.5) / FADE as f32;
    // A smooth curve, with no corner at either end.
    let way = way * way * (3.0 - 2.0 * way);
    from + (to - from) * way
}

/// Frames of a fade: 5 ms.
pub(crate) const FADE: usize = 240;

/// The shortest lag: 3 ms. Shorter ones would be a buzz.
pub(crate) const SHORTEST: usize = 144;

/// The longest: 15 ms, more than the period of a low voice.
pub(crate) const LONGEST: usize = 720;

/// Frames that a search looks at.
pub(crate) const SPAN: usize = LONGEST + FADE;

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    fn tone(frequency: f64, frames: usize) -> Vec<f32> {
        let sample = |at: usize| (0.5 * (TAU * frequency * at as f64 / 48_000.0).sin()) as f32;
        (0..frames).flat_map(|at| [sample(at); CHANNELS]).collect()
    }

    /// Frequency of the tone that fits best, and what is left without it, in decibels.
    fn fit(samples: &[f32], near: f64) -> (f64, f64) {
        let left: Vec<f64> = samples.chunks_exact(CHANNELS).map(|frame| f64::from(frame[0])).collect();
        let power: f64 = left.iter().map(|sample| sample * sample).sum();
        let residual = |frequency: f64| {
            let (mut sine, mut cosine, mut ss, mut cc, mut sc) = (0.0, 0.0, 0.0, 0.0, 0.0);
            for (at, sample) in left.iter().enumerate() {
                let (s, c) = (TAU * frequency * at as f64 / 48_000.0).sin_cos();
                (sine, cosine) = (sine + s * sample, cosine + c * sample);
                (ss, cc, sc) = (ss + s * s, cc + c * c, sc + s * c);
            }
            let det = ss * cc - sc * sc;
            let (a, b) = ((sine * cc - cosine * sc) / det, (cosine * ss - sine * sc) / det);
            (power - a * sine - b * cosine) / power
        };
        let around = |near: f64, step: f64| {
            let all = (-50..=50).map(|count| near + f64::from(count) * step);
            all.min_by(|one, other| residual(*one).total_cmp(&residual(*other))).unwrap()
        };
        let best = around(around(near, 0.004), 0.0001);
        (best, 10.0 * residual(best).log10())
    }

    /// Plays at 2.5 % more or less, as often as that takes.
    fn play(mut samples: Vec<f32>, edit: fn(&mut Vec<f32>, usize)) -> Vec<f32> {
        let mut played = Vec::new();
        while samples.len() >= (40 * SPAN + SPAN) * CHANNELS {
            let lag = find(&samples, LONGEST).unwrap().lag;
            edit(&mut samples, lag);
            let rest = samples.split_off(lag * 40 * CHANNELS);
            played.append(&mut samples);
            samples = rest;
        }
        played
    }

    #[test]
    fn a_tone_keeps_its_pitch_and_gets_no_noise() {
        for edit in [shorten as fn(&mut Vec<f32>, usize), lengthen] {
            let played = play(tone(440.0, 48_000 * 4), edit);
            let (frequency, residual) = fit(&played, 440.0);
            println!("tone {frequency:.3} Hz, residual {residual:.1} dB");
            assert!((frequency - 440.0).abs() <= 0.1, "{frequency}");
            assert!(residual <= -45.0, "{residual}");
        }
    }

    #[test]
    fn exactly_one_lag_is_gone_or_added() {
        let original = tone(300.0, 2000);
        let mut samples = original.clone();
        let lag = find(&samples, LONGEST).unwrap().lag;
        shorten(&mut samples, lag);
        assert_eq!(samples.len(), original.len() - lag * CHANNELS);
        assert_eq!(samples[FADE * CHANNELS..], original[(lag + FADE) * CHANNELS..]);
        let mut samples = original.clone();
        lengthen(&mut samples, lag);
        assert_eq!(samples.len(), original.len() + lag * CHANNELS);
        assert_eq!(samples[..lag * CHANNELS], original[..lag * CHANNELS]);
        assert_eq!(samples[(lag + FADE) * CHANNELS..], original[FADE * CHANNELS..]);
    }

    #[test]
    fn a_lag_shorter_than_the_fade_fades_once() {
        let slope: Vec<f32> = (0..2000).flat_map(|at| [at as f32; CHANNELS]).collect();
        for edit in [shorten as fn(&mut Vec<f32>, usize), lengthen] {
            let mut samples = slope.clone();
            edit(&mut samples, SHORTEST);
            let step = samples.windows(CHANNELS + 1).map(|window| (window[CHANNELS] - window[0]).abs());
            // A smooth fade over 240 frames of a difference of 144 is nowhere steeper than 1 + 0.9.
            assert!(step.fold(0.0, f32::max) < 2.0);
        }
    }

    #[test]
    fn noise_differs_and_silence_does_not() {
        let mut state = 1u32;
        let noise: Vec<f32> = (0..2 * SPAN * CHANNELS)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 16) as f32 / 32_768.0 - 1.0
            })
            .collect();
        assert!(find(&noise, LONGEST).unwrap().difference > 0.5);
        assert!(find(&vec![0.0; SPAN * CHANNELS], LONGEST).unwrap().difference < 0.01);
        assert_eq!(find(&noise, SHORTEST - 1), None);
        assert_eq!(find(&noise[..SPAN], LONGEST), None);
    }
}
