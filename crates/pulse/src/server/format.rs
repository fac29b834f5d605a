//! Samples of all formats as `f32` between −1 and 1.
//!
//! Invariant: samples of up to 24 bits are exact, and no result is infinite or no number.

use pulseaudio::protocol::SampleFormat;
use wayferry_audio::{from_i16, to_i16};

/// Appends the samples that `bytes` are, whole ones.
pub(crate) fn decode(format: SampleFormat, bytes: &[u8], out: &mut Vec<f32>) {
    match format {
        SampleFormat::Invalid => {}
        SampleFormat::U8 => out.extend(bytes.iter().map(|&sample| (f32::from(sample) - 128.0) / 128.0)),
        SampleFormat::Alaw => out.extend(bytes.iter().map(|&sample| from_i16(a_law(sample)))),
        SampleFormat::Ulaw => out.extend(bytes.iter().map(|&sample| from_i16(mu_law(sample)))),
        SampleFormat::S16Le => each(bytes, out, |bytes| from_i16(i16::from_le_bytes(bytes))),
        SampleFormat::S16Be => each(bytes, out, |bytes| from_i16(i16::from_be_bytes(bytes))),
        SampleFormat::Float32Le => each(bytes, out, |bytes| tame(f32::from_le_bytes(bytes))),
        SampleFormat::Float32Be => each(bytes, out, |bytes| tame(f32::from_be_bytes(bytes))),
        SampleFormat::S32Le => each(bytes, out, |bytes| of_32(i32::from_le_bytes(bytes))),
        SampleFormat::S32Be => each(bytes, out, |bytes| of_32(i32::from_be_bytes(bytes))),
        SampleFormat::S24Le => each(bytes, out, |[a, b, c]| of_32(i32::from_le_bytes([0, a, b, c]))),
        SampleFormat::S24Be => each(bytes, out, |[a, b, c]| of_32(i32::from_be_bytes([a, b, c, 0]))),
        SampleFormat::S24In32Le => each(bytes, out, |[a, b, c, _]| of_32(i32::from_le_bytes([0, a, b, c]))),
        SampleFormat::S24In32Be => each(bytes, out, |[_, a, b, c]| of_32(i32::from_be_bytes([a, b, c, 0]))),
    }
}

/// Appends the samples as bytes; `false` if programs cannot have this format.
pub(crate) fn encode(format: SampleFormat, samples: &[f32], out: &mut Vec<u8>) -> bool {
    match format {
        SampleFormat::Invalid | SampleFormat::Alaw | SampleFormat::Ulaw => return false,
        SampleFormat::U8 => put(samples, out, |sample| [(whole(sample, 128.0) + 128) as u8]),
        SampleFormat::S16Le => put(samples, out, |sample| to_i16(sample).to_le_bytes()),
        SampleFormat::S16Be => put(samples, out, |sample| to_i16(sample).to_be_bytes()),
        SampleFormat::Float32Le => put(samples, out, f32::to_le_bytes),
        SampleFormat::Float32Be => put(samples, out, f32::to_be_bytes),
        SampleFormat::S32Le => put(samples, out, |sample| whole(sample, TOP).to_le_bytes()),
        SampleFormat::S32Be => put(samples, out, |sample| whole(sample, TOP).to_be_bytes()),
        SampleFormat::S24Le => put(samples, out, |sample| {
            let [_, a, b, c] = whole(sample, TOP).to_le_bytes();
            [a, b, c]
        }),
        SampleFormat::S24Be => put(samples, out, |sample| {
            let [a, b, c, _] = whole(sample, TOP).to_be_bytes();
            [a, b, c]
        }),
        SampleFormat::S24In32Le => put(samples, out, |sample| (whole(sample, TOP) >> 8).to_le_bytes()),
        SampleFormat::S24In32Be => put(samples, out, |sample| (whole(sample, TOP) >> 8).to_be_bytes()),
    }
    true
}

/// The byte that silence consists of.
pub(crate) fn silence(format: SampleFormat) -> u8 {
    match format {
        SampleFormat::U8 => 0x80,
        SampleFormat::Alaw => 0xd5,
        SampleFormat::Ulaw => 0xff,
        _ => 0,
    }
}

/// What programs call it.
pub(crate) fn name(format: SampleFormat) -> &'static str {
    NAMES.iter().find(|(one, _)| *one == format).map_or("invalid", |(_, name)| name)
}

/// The format that programs call so.
pub(crate) fn named(name: &str) -> SampleFormat {
    NAMES.iter().find(|(_, one)| *one == name).map_or(SampleFormat::Invalid, |(format, _)| *format)
}

fn each<const N: usize>(bytes: &[u8], out: &mut Vec<f32>, sample: impl Fn([u8; N]) -> f32) {
    out.extend(bytes.as_chunks().0.iter().map(|bytes| sample(*bytes)));
}

fn put<const N: usize>(samples: &[f32], out: &mut Vec<u8>, bytes: impl Fn(f32) -> [u8; N]) {
    out.extend(samples.iter().flat_map(|sample| bytes(*sample)));
}

/// A sample that is 1 where `top` is: `top - 1` at most.
fn whole(sample: f32, top: f64) -> i32 {
    (f64::from(sample) * top).round().clamp(-top, top - 1.0) as i32
}

fn of_32(sample: i32) -> f32 {
    sample as f32 / 2_147_483_648.0
}

/// A program may send any float: one that is no number would silence all others.
fn tame(sample: f32) -> f32 {
    if sample.is_finite() { sample.clamp(-LOUDEST, LOUDEST) } else { 0.0 }
}

/// ITU-T G.711 table 1: every other bit is inverted; segments of 16 steps, each twice as wide as the one before.
fn a_law(sample: u8) -> i16 {
    let sample = sample ^ 0x55;
    let step = i16::from(sample & 0x0f);
    let magnitude = match (sample >> 4) & 7 {
        0 => (step << 4) + 8,
        segment => ((step << 4) + 0x108) << (segment - 1),
    };
    if sample & 0x80 != 0 { magnitude } else { -magnitude }
}

/// ITU-T G.711 table 2: all bits are inverted; as above, moved by 33 steps of the first segment.
fn mu_law(sample: u8) -> i16 {
    let sample = !sample;
    let step = i16::from(sample & 0x0f);
    let magnitude = (((step << 3) + 0x84) << ((sample >> 4) & 7)) - 0x84;
    if sample & 0x80 != 0 { -magnitude } else { magnitude }
}

/// Full scale of 32 bits.
const TOP: f64 = 2_147_483_648.0;

/// 18 dB above full scale: a program that is somewhat too loud is lowered by its volume, not cut.
const LOUDEST: f32 = 8.0;

const NAMES: [(SampleFormat, &str); 13] = [
    (SampleFormat::U8, "u8"),
    (SampleFormat::Alaw, "aLaw"),
    (SampleFormat::Ulaw, "uLaw"),
    (SampleFormat::S16Le, "s16le"),
    (SampleFormat::S16Be, "s16be"),
    (SampleFormat::Float32Le, "float32le"),
    (SampleFormat::Float32Be, "float32be"),
    (SampleFormat::S32Le, "s32le"),
    (SampleFormat::S32Be, "s32be"),
    (SampleFormat::S24Le, "s24le"),
    (SampleFormat::S24Be, "s24be"),
    (SampleFormat::S24In32Le, "s24-32le"),
    (SampleFormat::S24In32Be, "s24-32be"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(format: SampleFormat, bytes: &[u8]) -> Vec<f32> {
        let mut out = Vec::new();
        decode(format, bytes, &mut out);
        out
    }

    #[test]
    fn a_quarter_and_the_lowest_sample_in_every_format() {
        let cases: [(SampleFormat, &[u8]); 11] = [
            (SampleFormat::U8, &[160, 0]),
            (SampleFormat::S16Le, &[0, 0x20, 0, 0x80]),
            (SampleFormat::S16Be, &[0x20, 0, 0x80, 0]),
            (SampleFormat::Float32Le, &[0, 0, 0x80, 0x3e, 0, 0, 0x80, 0xbf]),
            (SampleFormat::Float32Be, &[0x3e, 0x80, 0, 0, 0xbf, 0x80, 0, 0]),
            (SampleFormat::S32Le, &[0, 0, 0, 0x20, 0, 0, 0, 0x80]),
            (SampleFormat::S32Be, &[0x20, 0, 0, 0, 0x80, 0, 0, 0]),
            (SampleFormat::S24Le, &[0, 0, 0x20, 0, 0, 0x80]),
            (SampleFormat::S24Be, &[0x20, 0, 0, 0x80, 0, 0]),
            (SampleFormat::S24In32Le, &[0, 0, 0x20, 9, 0, 0, 0x80, 9]),
            (SampleFormat::S24In32Be, &[9, 0x20, 0, 0, 9, 0x80, 0, 0]),
        ];
        for (format, bytes) in cases {
            assert_eq!(decoded(format, bytes), [0.25, -1.0], "{format:?}");
        }
    }

    #[test]
    fn what_is_encoded_is_decoded_as_it_was() {
        for (format, _) in NAMES {
            let mut bytes = Vec::new();
            let may = encode(format, &[0.25, -1.0, 0.0, 1.0], &mut bytes);
            assert_eq!(may, !matches!(format, SampleFormat::Alaw | SampleFormat::Ulaw), "{format:?}");
            if may {
                let back = decoded(format, &bytes);
                assert_eq!(back[..3], [0.25, -1.0, 0.0], "{format:?}");
                assert!(back[3] >= 127.0 / 128.0, "{format:?}: full scale is not its opposite");
            }
        }
    }

    #[test]
    fn silence_is_silent_in_every_format() {
        for (format, _) in NAMES {
            let sample = decoded(format, &vec![silence(format); format.bytes_per_sample()]);
            assert!(sample[0].abs() <= 8.0 / 32_768.0, "{format:?}: {sample:?}");
        }
    }

    /// G.711's own extremes, and both signs.
    #[test]
    fn companded_samples_are_those_of_the_standard() {
        let a_law = |sample| (decoded(SampleFormat::Alaw, &[sample])[0] * 32_768.0) as i32;
        assert_eq!([a_law(0xaa), a_law(0x2a), a_law(0xd5), a_law(0x55)], [32_256, -32_256, 8, -8]);
        let mu_law = |sample| (decoded(SampleFormat::Ulaw, &[sample])[0] * 32_768.0) as i32;
        assert_eq!([mu_law(0x80), mu_law(0x00), mu_law(0xff), mu_law(0x7f)], [32_124, -32_124, 0, 0]);
    }

    #[test]
    fn no_float_is_dangerous() {
        for sample in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
            assert!(decoded(SampleFormat::Float32Le, &sample.to_le_bytes())[0].abs() <= LOUDEST);
        }
    }
}
