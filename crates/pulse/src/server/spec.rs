//! What a stream's bytes mean: format, rate, channels and where these are heard.
//!
//! Read from what a program asks: either plainly, or as a list of formats of which the first that can be played is
//! taken. Invariant: a [`Spec`] has a rate and channels that can be played, and as many places as channels.

use std::ffi::CString;
use std::time::Duration;

use pulseaudio::protocol::{
    ChannelMap, ChannelPosition, FormatEncoding, FormatInfo, PlaybackStreamParams, Prop, PulseError,
    RecordStreamParams, SampleFormat, SampleSpec,
};

use super::format::name;
use super::place;

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spec {
    pub(crate) format: SampleFormat,
    pub(crate) rate: u32,
    pub(crate) places: Vec<ChannelPosition>,
}

impl Spec {
    /// What a program asks for that plays.
    pub(crate) fn asked(params: &PlaybackStreamParams) -> Result<Self, PulseError> {
        Self::chosen(&params.formats, params.sample_spec, &params.channel_map)
    }

    /// What a program asks for that records.
    pub(crate) fn recorded(params: &RecordStreamParams) -> Result<Self, PulseError> {
        Self::chosen(&params.formats, params.sample_spec, &params.channel_map)
    }

    fn chosen(formats: &[FormatInfo], plain: SampleSpec, map: &ChannelMap) -> Result<Self, PulseError> {
        if formats.is_empty() {
            return Self::of(plain, map);
        }
        let playable = formats.iter().find(|format| format.encoding == FormatEncoding::Pcm);
        let format = playable.ok_or(PulseError::NotSupported)?;
        let sample_spec = SampleSpec {
            format: word(format, Prop::FormatSampleFormat)
                .map_or(SampleFormat::Float32Le, |word| super::format::named(&word)),
            channels: number(format, Prop::FormatChannels)
                .map_or(2, |count| u8::try_from(count).unwrap_or(0)),
            sample_rate: number(format, Prop::FormatRate).unwrap_or(48_000),
        };
        let map = word(format, Prop::FormatChannelMap).and_then(|names| place::map(&names));
        Self::of(sample_spec, &map.unwrap_or_else(ChannelMap::empty))
    }

    fn of(spec: SampleSpec, map: &ChannelMap) -> Result<Self, PulseError> {
        let channels = usize::from(spec.channels);
        if spec.format == SampleFormat::Invalid || !(1..=MAX_CHANNELS).contains(&channels) {
            return Err(PulseError::Invalid);
        }
        let places: Vec<_> = map.into_iter().collect();
        let places = if places.is_empty() { place::usual(channels) } else { places };
        if places.len() != channels {
            return Err(PulseError::Invalid);
        }
        Ok(Self { format: spec.format, rate: playable(spec.sample_rate)?, places })
    }

    /// Bytes of a frame.
    pub(crate) fn frame(&self) -> usize {
        self.places.len() * self.format.bytes_per_sample()
    }

    /// Whole frames that take `duration`, in bytes.
    pub(crate) fn bytes(&self, duration: Duration) -> usize {
        let frames = duration.as_micros() * u128::from(self.rate) / 1_000_000;
        usize::try_from(frames).unwrap_or(usize::MAX).saturating_mul(self.frame())
    }

    /// How long so many bytes take.
    pub(crate) fn duration(&self, bytes: usize) -> Duration {
        let frames = (bytes / self.frame()) as u64;
        Duration::from_nanos(frames.saturating_mul(1_000_000_000) / u64::from(self.rate))
    }

    /// As a client is told.
    pub(crate) fn sample_spec(&self) -> SampleSpec {
        let channels = u8::try_from(self.places.len()).unwrap_or(u8::MAX);
        SampleSpec { format: self.format, channels, sample_rate: self.rate }
    }

    /// As a client is told.
    pub(crate) fn channel_map(&self) -> ChannelMap {
        ChannelMap::new(self.places.iter().copied())
    }

    /// As a client is told.
    pub(crate) fn format_info(&self) -> FormatInfo {
        let mut info = FormatInfo::new(FormatEncoding::Pcm);
        let names: Vec<_> = self.places.iter().map(|&place| place::name(place)).collect();
        for (prop, value) in [
            (Prop::FormatSampleFormat, format!("\"{}\"", name(self.format))),
            (Prop::FormatRate, self.rate.to_string()),
            (Prop::FormatChannels, self.places.len().to_string()),
            (Prop::FormatChannelMap, format!("\"{}\"", names.join(","))),
        ] {
            info.props.set(prop, CString::new(value).unwrap_or_default());
        }
        info
    }
}

/// A rate that can be played.
pub(crate) fn playable(rate: u32) -> Result<u32, PulseError> {
    if (RATE_LEAST..=RATE_MAX).contains(&rate) { Ok(rate) } else { Err(PulseError::Invalid) }
}

/// The first text in quotes of a property in JSON: a format may say several.
fn word(format: &FormatInfo, prop: Prop) -> Option<String> {
    let value = str::from_utf8(format.props.get(prop)?).ok()?;
    value.split('"').nth(1).filter(|_| !value.starts_with('{')).map(str::to_owned)
}

/// The first number of a property in JSON, unless it says a range.
fn number(format: &FormatInfo, prop: Prop) -> Option<u32> {
    let value = str::from_utf8(format.props.get(prop)?).ok()?;
    let mut numbers = value.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    numbers.next().filter(|_| !value.starts_with('{'))?.parse().ok()
}

/// Channels of a stream.
const MAX_CHANNELS: usize = 8;

/// Frames in a second, at least.
const RATE_LEAST: u32 = 4000;

/// Frames in a second, at most.
const RATE_MAX: u32 = 192_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(values: [(Prop, &str); 4]) -> Result<Spec, PulseError> {
        let mut format = FormatInfo::new(FormatEncoding::Pcm);
        for (prop, value) in values {
            format.props.set(prop, CString::new(value).unwrap());
        }
        let formats = vec![FormatInfo::new(FormatEncoding::Ac3Iec61937), format];
        Spec::asked(&PlaybackStreamParams { formats, ..PlaybackStreamParams::default() })
    }

    #[test]
    fn what_it_tells_it_understands() {
        let params = PlaybackStreamParams {
            sample_spec: SampleSpec { format: SampleFormat::S24In32Be, channels: 6, sample_rate: 44_100 },
            channel_map: ChannelMap::new(place::usual(6)),
            ..PlaybackStreamParams::default()
        };
        let spec = Spec::asked(&params).unwrap();
        let formats = vec![spec.format_info()];
        let again = Spec::asked(&PlaybackStreamParams { formats, ..PlaybackStreamParams::default() });
        assert_eq!(again, Ok(spec));
    }

    #[test]
    fn lists_are_read_and_ranges_left_open() {
        let spec = listed([
            (Prop::FormatSampleFormat, "[ \"s16le\", \"u8\" ]"),
            (Prop::FormatRate, "{ \"min\": 1, \"max\": 384000 }"),
            (Prop::FormatChannels, "[1, 2]"),
            (Prop::FormatChannelMap, "\"mono\""),
        ]);
        let expected =
            Spec { format: SampleFormat::S16Le, rate: 48_000, places: vec![ChannelPosition::Mono] };
        assert_eq!(spec, Ok(expected));
    }

    #[test]
    fn what_cannot_be_played_is_refused() {
        let plain = |format, channels, sample_rate| {
            let sample_spec = SampleSpec { format, channels, sample_rate };
            let channel_map = ChannelMap::empty();
            Spec::asked(&PlaybackStreamParams { sample_spec, channel_map, ..PlaybackStreamParams::default() })
        };
        assert!(plain(SampleFormat::U8, 8, 192_000).is_ok());
        assert_eq!(plain(SampleFormat::U8, 9, 48_000), Err(PulseError::Invalid));
        assert_eq!(plain(SampleFormat::U8, 0, 48_000), Err(PulseError::Invalid));
        assert_eq!(plain(SampleFormat::U8, 2, 0), Err(PulseError::Invalid));
        assert_eq!(plain(SampleFormat::U8, 2, 192_001), Err(PulseError::Invalid));
        assert_eq!(plain(SampleFormat::Invalid, 2, 48_000), Err(PulseError::Invalid));
    }
}
