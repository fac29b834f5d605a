//! FFmpeg's codecs where they serve, OpenH264 where they do not; built with the feature `ffmpeg` only.
//!
//! Which of the two it is, turns out when the program runs: libavcodec may have no encoder that opens on this machine,
//! and what one writes may come late or be another kind of stream than is spoken here. So both are there, with the
//! functions of [`native`](crate::native); without the feature that module stands in this one's place.
//!
//! The invariant: what an encoder gives has passed the same check as what a decoder takes.

use std::sync::OnceLock;

use crate::InUse;
use crate::error::Error;
use crate::ffmpeg;
use crate::native::{self, Settings};
use crate::planes::{Planes, View};
use crate::size::Size;
use crate::stream::{self, Kind};

/// An encoder of one of the two.
#[derive(Debug)]
pub(crate) struct Encoder {
    codec: Either<ffmpeg::Encoder, native::Encoder>,
    /// For the one that takes over.
    settings: Settings,
    key: bool,
}

impl Encoder {
    pub(crate) fn new(settings: Settings) -> Result<Self, Error> {
        let ffmpeg = found().and_then(|named| ffmpeg::Encoder::open(named, settings));
        Self::with(ffmpeg, settings)
    }

    fn with(ffmpeg: Option<ffmpeg::Encoder>, settings: Settings) -> Result<Self, Error> {
        let codec = match ffmpeg {
            Some(codec) => Either::Ffmpeg(codec),
            None => Either::OpenH264(native::Encoder::new(settings)?),
        };
        Ok(Self { codec, settings, key: true })
    }

    pub(crate) fn set_bitrate(&mut self, bitrate: i32) -> Result<(), Error> {
        self.settings.bitrate = bitrate;
        match &mut self.codec {
            Either::Ffmpeg(codec) => codec.set_bitrate(bitrate),
            Either::OpenH264(codec) => codec.set_bitrate(bitrate)?,
        }
        Ok(())
    }

    pub(crate) fn force_key(&mut self) -> Result<(), Error> {
        self.key = true;
        match &mut self.codec {
            Either::Ffmpeg(codec) => codec.force_key(),
            Either::OpenH264(codec) => codec.force_key()?,
        }
        Ok(())
    }

    /// The bytes of the next frame and whether it is a key frame. Where FFmpeg's encoder fails, OpenH264 takes over.
    pub(crate) fn encode(&mut self, planes: &Planes, milliseconds: i64) -> Result<(Vec<u8>, bool), Error> {
        let needs_key = std::mem::take(&mut self.key);
        let frame = match &mut self.codec {
            Either::Ffmpeg(codec) => {
                codec.encode(planes).and_then(|data| ours(&data, planes.size(), needs_key))
            }
            Either::OpenH264(codec) => return codec.encode(planes, milliseconds),
        };
        frame.or_else(|_| {
            let mut codec = native::Encoder::new(self.settings)?;
            let frame = codec.encode(planes, milliseconds)?;
            self.codec = Either::OpenH264(codec);
            Ok(frame)
        })
    }
}

/// The encoder of libavcodec that is used on this machine.
static FOUND: OnceLock<Option<ffmpeg::Named>> = OnceLock::new();

/// The same, looked for at the first call.
fn found() -> Option<ffmpeg::Named> {
    *FOUND.get_or_init(|| match chosen() {
        None => ffmpeg::ENCODERS.iter().copied().find(works),
        Some(name) => {
            ffmpeg::ENCODERS.iter().copied().find(|named| named.name.to_str() == Ok(name)).filter(works)
        }
    })
}

/// Whether an encoder gives a frame that is spoken here, of a picture as films have.
fn works(named: &ffmpeg::Named) -> bool {
    let Ok(size) = Size::new(640, 360) else { return false };
    let settings = Settings { size, bitrate: 1_000_000, finest: 20 };
    let frame = ffmpeg::Encoder::open(*named, settings).map(|mut codec| codec.encode(&Planes::new(size)));
    matches!(frame, Some(Ok(data)) if ours(&data, size, true).is_ok())
}

/// What is asked for, if not the first that works.
static CHOSEN: OnceLock<String> = OnceLock::new();

fn chosen() -> Option<&'static str> {
    CHOSEN.get().map(String::as_str)
}

pub(crate) fn choose(name: &str) -> bool {
    let is_known =
        name == native::NAME || ffmpeg::ENCODERS.iter().any(|named| named.name.to_str() == Ok(name));
    is_known && CHOSEN.set(name.to_owned()).is_ok()
}

pub(crate) fn look() {
    found();
}

pub(crate) fn in_use() -> Option<InUse> {
    let ours = InUse { name: native::NAME, tried: true };
    let of =
        |named: &ffmpeg::Named| InUse { name: named.name.to_str().unwrap_or_default(), tried: named.tried };
    FOUND.get().map(|found| found.as_ref().map_or(ours, of))
}

/// A frame as it is spoken here, and whether it is a key frame.
fn ours(data: &[u8], size: Size, needs_key: bool) -> Result<(Vec<u8>, bool), Error> {
    let data = stream::plain(data);
    let key = stream::check(&data, size)? == Kind::Key;
    if needs_key && !key { Err(Error::NeedKey) } else { Ok((data, key)) }
}

/// A decoder of one of the two; FFmpeg's where there is one.
#[derive(Debug)]
pub(crate) struct Decoder(Either<ffmpeg::Decoder, native::Decoder>);

impl Decoder {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self(match ffmpeg::Decoder::new() {
            Some(codec) => Either::Ffmpeg(codec),
            None => Either::OpenH264(native::Decoder::new()?),
        }))
    }

    pub(crate) fn decode(&mut self, data: &[u8], size: Size) -> Result<(), Error> {
        match &mut self.0 {
            Either::Ffmpeg(codec) => codec.decode(data, size),
            Either::OpenH264(codec) => codec.decode(data, size),
        }
    }

    pub(crate) fn view(&self) -> Option<View<'_>> {
        match &self.0 {
            Either::Ffmpeg(codec) => codec.view(),
            Either::OpenH264(codec) => codec.view(),
        }
    }
}

#[derive(Debug)]
enum Either<F, N> {
    Ffmpeg(F),
    OpenH264(N),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::color::Order;
    use crate::video::Video;

    fn settings(width: u32, height: u32) -> Settings {
        Settings { size: Size::new(width, height).unwrap(), bitrate: 1_000_000, finest: 20 }
    }

    /// The pictures of a video, without end.
    fn pictures(size: Size) -> impl Iterator<Item = Planes> {
        let mut video = Video::new(size.width(), size.height());
        std::iter::repeat_with(move || {
            let (picture, mut planes) = (video.next(), Planes::new(size));
            planes.fill(Order::Bgrx, |y| &picture[y as usize * size.row()..]).unwrap();
            planes
        })
    }

    /// All of a picture, what is beyond its edges too.
    fn whole(view: View<'_>, size: Size) -> Vec<u8> {
        let (width, height) = size.coded();
        let luma = view.y.chunks(view.luma_stride).take(height).map(|row| &row[..width]);
        let chroma = [view.u, view.v].map(|plane| plane.chunks(view.chroma_stride).take(height / 2));
        let chroma = chroma.into_iter().flatten().map(|row| &row[..width / 2]);
        luma.chain(chroma).flatten().copied().collect()
    }

    /// Both decoders, fed alike.
    struct Both(ffmpeg::Decoder, native::Decoder);

    impl Both {
        fn new() -> Self {
            Self(ffmpeg::Decoder::new().expect("libavcodec decodes H.264"), native::Decoder::new().unwrap())
        }

        /// Asserts that they give the same picture.
        fn agree(&mut self, data: &[u8], size: Size) {
            self.0.decode(data, size).unwrap();
            self.1.decode(data, size).unwrap();
            let (ffmpeg, openh264) = (self.0.view().unwrap(), self.1.view().unwrap());
            assert!(whole(ffmpeg, size) == whole(openh264, size), "the pictures differ");
        }
    }

    #[test]
    fn both_decode_openh264_alike() {
        for (width, height) in [(1, 1), (33, 31), (101, 67), (320, 180), (3840, 9)] {
            let settings = settings(width, height);
            let (mut encoder, mut both) = (native::Encoder::new(settings).unwrap(), Both::new());
            for (at, planes) in pictures(settings.size).take(20).enumerate() {
                if at == 12 {
                    encoder.force_key().unwrap();
                }
                let (data, key) = encoder.encode(&planes, at as i64 * 33).unwrap();
                assert_eq!(key, at % 12 == 0);
                both.agree(&data, settings.size);
            }
        }
    }

    #[test]
    fn both_refuse_what_is_cut_short() {
        let settings = settings(64, 48);
        let mut encoder = native::Encoder::new(settings).unwrap();
        let frames: Vec<_> =
            pictures(settings.size).take(3).map(|planes| encoder.encode(&planes, 0).unwrap().0).collect();
        for length in 0..frames[2].len() {
            let mut both = Both::new();
            both.agree(&frames[0], settings.size);
            both.agree(&frames[1], settings.size);
            let cut = &frames[2][..length];
            assert!(both.1.decode(cut, settings.size).is_err(), "OpenH264, {length} bytes");
            assert!(both.0.decode(cut, settings.size).is_err(), "FFmpeg, {length} bytes");
        }
    }

    #[test]
    fn openh264_takes_over_from_what_is_not_spoken_here() {
        // another kind of stream; one that comes a frame late
        for (options, ffmpeg_gives) in [(c"", true), (c"bf=1", false)] {
            let settings = settings(64, 48);
            let open =
                || ffmpeg::Encoder::open(ffmpeg::Named { options, ..ffmpeg::untried(c"mpeg4") }, settings);
            let mut video = pictures(settings.size);
            assert_eq!(open().unwrap().encode(&video.next().unwrap()).is_ok(), ffmpeg_gives, "{options:?}");
            let (mut encoder, mut both) = (Encoder::with(open(), settings).unwrap(), Both::new());
            for (at, planes) in video.take(5).enumerate() {
                let (data, key) = encoder.encode(&planes, at as i64 * 33).unwrap();
                assert_eq!(key, at == 0, "{options:?}");
                assert!(matches!(encoder.codec, Either::OpenH264(_)));
                both.agree(&data, settings.size);
            }
        }
    }

    #[test]
    fn a_key_frame_that_is_none_is_refused() {
        let settings = settings(64, 48);
        let mut encoder = native::Encoder::new(settings).unwrap();
        let frames: Vec<_> =
            pictures(settings.size).take(2).map(|planes| encoder.encode(&planes, 0).unwrap().0).collect();
        assert_eq!(ours(&frames[0], settings.size, true), Ok((frames[0].clone(), true)));
        assert_eq!(ours(&frames[1], settings.size, false), Ok((frames[1].clone(), false)));
        assert_eq!(ours(&frames[1], settings.size, true), Err(Error::NeedKey));
    }

    /// Without the GPU that they are of, those of GPUs do not open, and what takes over is told.
    #[test]
    fn encoders_that_are_not_there_are_passed_over() {
        let settings = settings(64, 48);
        let nonsense = ffmpeg::Named { device: Some(c"no such kind"), ..ffmpeg::untried(c"h264_vaapi") };
        assert!(ffmpeg::Encoder::open(nonsense, settings).is_none());
        assert!(ffmpeg::Encoder::open(ffmpeg::untried(c"no such encoder"), settings).is_none());
        assert!(!works(&ffmpeg::untried(c"mpeg4")), "another kind of stream");
        assert!(!choose("no such encoder"));
        look();
        let used = in_use();
        let (mut encoder, mut both) = (Encoder::new(settings).unwrap(), Both::new());
        for planes in pictures(settings.size).take(3) {
            both.agree(&encoder.encode(&planes, 0).unwrap().0, settings.size);
        }
        assert_eq!(used, in_use());
        assert_eq!(
            matches!(encoder.codec, Either::OpenH264(_)),
            used.is_some_and(|used| used.name == native::NAME)
        );
    }

    /// `change` is called before each picture; gives which frames were key frames and how many bytes they had.
    #[cfg(feature = "gpl")]
    fn x264(steers: bool, settings: Settings, change: impl Fn(usize, &mut Encoder)) -> Vec<(bool, usize)> {
        let codec =
            ffmpeg::Encoder::open(ffmpeg::Named { steers, ..ffmpeg::X264 }, settings).expect("x264 is there");
        let (mut encoder, mut both) = (Encoder::with(Some(codec), settings).unwrap(), Both::new());
        let encode = |(at, planes): (usize, Planes)| {
            change(at, &mut encoder);
            let (data, key) = encoder.encode(&planes, 0).unwrap();
            assert!(matches!(encoder.codec, Either::Ffmpeg(_)), "frame {at} is not of x264");
            both.agree(&data, settings.size);
            (key, data.len())
        };
        pictures(settings.size).take(60).enumerate().map(encode).collect()
    }

    #[test]
    #[cfg(feature = "gpl")]
    fn both_decode_x264_alike() {
        for (width, height) in [(1, 1), (33, 31), (101, 67), (320, 180), (3840, 9)] {
            let ask = |at: usize, encoder: &mut Encoder| {
                if at == 30 {
                    encoder.force_key().unwrap();
                }
            };
            let frames = x264(true, settings(width, height), ask);
            assert!(frames[0].0 && frames[30].0, "{width}x{height}");
        }
    }

    #[test]
    #[cfg(feature = "gpl")]
    fn x264_follows_the_rate() {
        let poorer = |at: usize, encoder: &mut Encoder| {
            if at == 20 {
                encoder.set_bitrate(250_000).unwrap();
            }
        };
        for (steers, key_frames) in [(true, 1), (false, 2)] {
            let frames = x264(steers, settings(320, 180), poorer);
            let bytes = |frames: &[(bool, usize)]| frames.iter().map(|&(_, bytes)| bytes).sum::<usize>();
            let (rich, poor) = (bytes(&frames[10..20]), bytes(&frames[50..]));
            assert!(poor * 3 < rich, "{rich} and {poor} bytes");
            assert_eq!(frames.iter().filter(|&&(key, _)| key).count(), key_frames, "steers: {steers}");
        }
    }
}
