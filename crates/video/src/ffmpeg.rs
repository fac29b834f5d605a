//! FFmpeg's libavcodec, made safe to call through `ffmpeg.c`: the other unsafe code of this crate, built with the
//! feature `ffmpeg` only.
//!
//! As in [`native`](crate::native), handles own a codec, give it planes or bytes, and copy or borrow what it gives.
//! Which encoder is used is decided above, where what it writes is looked at: this module knows nothing of what a
//! stream may contain.
//!
//! The invariant: a handle exists only for a codec that has been opened, and is its only user.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};
use std::ptr::{self, NonNull};
use std::sync::Once;

use crate::error::Error;
use crate::native::{FRAMES_PER_SECOND, Lent, Settings};
use crate::planes::{Planes, View};
use crate::size::Size;

/// An encoder of libavcodec.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub(crate) name: &'static CStr,
    /// What it is told beyond what all are told.
    pub(crate) options: &'static CStr,
    /// The kind of GPU in whose memory it takes pictures, if only there.
    pub(crate) device: Option<&'static CStr>,
    /// Whether it has ever been seen to work.
    pub(crate) tried: bool,
    /// Whether its rate can be changed from frame to frame.
    pub(crate) steers: bool,
}

/// An open encoder.
#[derive(Debug)]
pub(crate) struct Encoder {
    raw: NonNull<Codec>,
    named: Named,
    /// What it has been told last, or opened with.
    settings: Settings,
    wanted: Wanted,
    key: bool,
}

// SAFETY: the codec has no state outside of what the handle points to but what libavcodec locks itself, none that
// belongs to a thread, and `&self` gives access to none of it.
unsafe impl Send for Encoder {}

impl Encoder {
    /// This encoder; `None` when it is not there or does not open.
    pub(crate) fn open(named: Named, settings: Settings) -> Option<Self> {
        quiet();
        let (width, height) = settings.size.coded();
        let Settings { bitrate, finest, .. } = settings;
        // SAFETY: name and options end with a zero and are copied; the others are numbers.
        let raw = unsafe {
            wayferry_encoder_open(
                named.name.as_ptr(),
                named.options.as_ptr(),
                named.device.map_or(ptr::null(), CStr::as_ptr),
                width as c_int,
                height as c_int,
                FRAMES_PER_SECOND,
                bitrate,
                ahead(bitrate),
                finest.into(),
                COARSEST,
            )
        };
        Some(Self { raw: NonNull::new(raw)?, named, settings, wanted: Wanted::new(bitrate), key: false })
    }

    /// Bits per second at [`FRAMES_PER_SECOND`], from the next frame on, or on average where the codec cannot.
    pub(crate) fn set_bitrate(&mut self, bitrate: i32) {
        self.wanted.bitrate = bitrate;
    }

    /// Makes the next frame a key frame.
    pub(crate) fn force_key(&mut self) {
        self.key = true;
    }

    /// The bytes of the next frame.
    ///
    /// # Errors
    /// `Codec`, also when the frame does not come at once.
    pub(crate) fn encode(&mut self, planes: &Planes) -> Result<Vec<u8>, Error> {
        assert_eq!(planes.size(), self.settings.size, "planes of another encoder");
        self.follow()?;
        let view = planes.view();
        let planes = [view.y.as_ptr(), view.u.as_ptr(), view.v.as_ptr()];
        let strides =
            [view.luma_stride, view.chroma_stride, view.chroma_stride].map(|stride| stride as c_int);
        let key = std::mem::take(&mut self.key).into();
        let (mut data, mut length) = (ptr::null(), 0);
        // SAFETY: the codec has been opened for this size, of which the planes are; it reads them and writes `data` and
        // `length`.
        let code = unsafe {
            wayferry_encode(
                self.raw.as_ptr(),
                planes.as_ptr(),
                strides.as_ptr(),
                key,
                &raw mut data,
                &raw mut length,
            )
        };
        let length = usize::try_from(length).unwrap_or(0);
        if code != 0 || data.is_null() || length == 0 {
            return Err(Error::Codec { code: code.into() });
        }
        // SAFETY: the codec says that this many bytes are here; they stay until it is called again.
        Ok(unsafe { std::slice::from_raw_parts(data, length) }.to_vec())
    }

    /// Makes the codec's rate what is wanted: by telling it, or by another that begins with a key frame.
    fn follow(&mut self) -> Result<(), Error> {
        let current = self.settings.bitrate;
        let Some(bitrate) = self.wanted.next(current, self.named.steers) else { return Ok(()) };
        self.settings.bitrate = bitrate;
        if self.named.steers {
            // SAFETY: the codec has been opened; it is told two numbers.
            unsafe { wayferry_encoder_rate(self.raw.as_ptr(), bitrate, ahead(bitrate)) };
        } else {
            let wanted = self.wanted;
            *self = Self::open(self.named, self.settings).ok_or(Error::Codec { code: 0 })?;
            self.wanted = wanted;
        }
        Ok(())
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: opened in `open`, used by no other owner, never again.
        unsafe { wayferry_close(self.raw.as_ptr()) }
    }
}

/// The rate that is wanted, which is another for each frame when they come unevenly.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    bitrate: i32,
    mean: i32,
    /// Frames in a row for which the mean has been far from what the codec was told.
    far: u32,
}

impl Wanted {
    fn new(bitrate: i32) -> Self {
        Self { bitrate, mean: bitrate, far: 0 }
    }

    /// What a codec is to be told now, if anything: one that steers each change, another the mean when that has been
    /// more than half as large again or smaller for a while, for it costs a key frame.
    fn next(&mut self, current: i32, steers: bool) -> Option<i32> {
        if steers {
            return (self.bitrate != current).then_some(self.bitrate);
        }
        self.mean += (self.bitrate - self.mean) / MEMORY;
        let (low, high) = (i64::from(self.mean.min(current)), i64::from(self.mean.max(current)));
        self.far = if high * 2 > low * 3 { self.far + 1 } else { 0 };
        if self.far < PATIENCE {
            return None;
        }
        self.far = 0;
        Some(self.mean)
    }
}

/// An open decoder.
#[derive(Debug)]
pub(crate) struct Decoder {
    raw: NonNull<Codec>,
    picture: Option<Lent>,
}

// SAFETY: as for `Encoder`.
unsafe impl Send for Decoder {}

impl Decoder {
    /// A decoder; `None` when this libavcodec has none of its own.
    pub(crate) fn new() -> Option<Self> {
        quiet();
        // SAFETY: it takes nothing.
        let raw = unsafe { wayferry_decoder_open() };
        Some(Self { raw: NonNull::new(raw)?, picture: None })
    }

    /// Decodes a frame; [`Self::view`] then gives its picture.
    ///
    /// # Errors
    /// `FrameBroken`, also when there is no picture, or one that is not of `size`.
    pub(crate) fn decode(&mut self, data: &[u8], size: Size) -> Result<(), Error> {
        self.picture = None;
        let length = c_int::try_from(data.len()).map_err(|_| Error::FrameShape)?;
        let (width, height) = size.coded();
        let (mut planes, mut strides) = ([ptr::null(); 3], [0; 3]);
        // SAFETY: the codec has been opened, copies `length` bytes of `data` and writes three pointers and three
        // strides.
        let state = unsafe {
            wayferry_decode(
                self.raw.as_ptr(),
                data.as_ptr(),
                length,
                width as c_int,
                height as c_int,
                planes.as_mut_ptr(),
                strides.as_mut_ptr(),
            )
        };
        let right = state == 0 && strides[1] == strides[2];
        let lent = if right { Lent::new(planes, [strides[0], strides[1]], size) } else { None };
        self.picture = Some(lent.ok_or(Error::FrameBroken { state })?);
        Ok(())
    }

    /// The picture of the frame that was decoded last; `None` when it gave none.
    pub(crate) fn view(&self) -> Option<View<'_>> {
        // SAFETY: the codec has given planes of this size and these strides, which stay as they are until it is called
        // again; that takes `&mut self`, and the view borrows `self`.
        self.picture.map(|picture| unsafe { picture.view() })
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: opened in `new`, used by no other owner, never again.
        unsafe { wayferry_close(self.raw.as_ptr()) }
    }
}

/// Keeps libavcodec from writing to the terminal what a peer's frames are like.
fn quiet() {
    static ONCE: Once = Once::new();
    // SAFETY: no codec is opened before this has returned, so nothing reads what it writes.
    ONCE.call_once(|| unsafe { wayferry_quiet() });
}

/// What `ffmpeg.c` keeps.
#[repr(C)]
struct Codec {
    _opaque: [u8; 0],
}

// SAFETY: as in `ffmpeg.c`, which is compiled with this crate: the same names, arguments and order.
unsafe extern "C" {
    fn wayferry_quiet();
    fn wayferry_close(codec: *mut Codec);
    fn wayferry_encoder_open(
        name: *const c_char,
        options: *const c_char,
        device: *const c_char,
        width: c_int,
        height: c_int,
        frames_per_second: c_int,
        bitrate: c_int,
        ahead: c_int,
        finest: c_int,
        coarsest: c_int,
    ) -> *mut Codec;
    fn wayferry_encoder_rate(encoder: *mut Codec, bitrate: c_int, ahead: c_int);
    fn wayferry_encode(
        encoder: *mut Codec,
        planes: *const *const u8,
        strides: *const c_int,
        key: c_int,
        data: *mut *const u8,
        length: *mut c_int,
    ) -> c_int;
    fn wayferry_decoder_open() -> *mut Codec;
    fn wayferry_decode(
        decoder: *mut Codec,
        data: *const u8,
        length: c_int,
        width: c_int,
        height: c_int,
        planes: *mut *const u8,
        strides: *mut c_int,
    ) -> c_int;
}

/// Bits that frames may be ahead of their rate.
fn ahead(bitrate: i32) -> c_int {
    bitrate / FRAMES_PER_SECOND * FRAMES_AHEAD
}

/// In the order in which they are tried: such as have silicon of their own first.
pub(crate) const ENCODERS: &[Named] = &[
    Named {
        options: c"profile=baseline:preset=p2:tune=ull:rc=cbr:delay=0:zerolatency=1:forced-idr=1",
        ..untried(c"h264_nvenc")
    },
    // 578: constrained baseline
    Named {
        options: c"profile=578:rc_mode=CBR:async_depth=1",
        device: Some(c"vaapi"),
        ..untried(c"h264_vaapi")
    },
    Named {
        options: c"profile=578:rc_mode=cbr:async_depth=1:tune=ull:usage=stream",
        device: Some(c"vulkan"),
        ..untried(c"h264_vulkan")
    },
    Named { options: c"profile=578", ..untried(c"h264_v4l2m2m") },
    #[cfg(feature = "gpl")]
    X264,
    Named { options: c"profile=constrained_baseline:allow_skip_frames=0", ..untried(c"libopenh264") },
];

/// One that is set up by its documentation.
pub(crate) const fn untried(name: &'static CStr) -> Named {
    Named { name, options: c"", device: None, tried: false, steers: false }
}

#[cfg(feature = "gpl")]
pub(crate) const X264: Named = Named {
    name: c"libx264",
    options: c"profile=baseline:preset=superfast:tune=zerolatency:forced-idr=1:keyint_min=16:sc_threshold=10:level=5.2:x264-params=sliced-threads=0",
    device: None,
    tried: true,
    steers: true,
};

/// The coarsest quantiser there is.
const COARSEST: c_int = 51;

/// A key frame takes as much as several others. With 3, x264 stays an eighth below its rate; the more, the longer the
/// bursts.
const FRAMES_AHEAD: c_int = 5;

/// Frames that the mean of the rate remembers, about.
const MEMORY: i32 = 4;

/// Frames until a change that costs a key frame is believed: the mean has then almost arrived.
const PATIENCE: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// What a codec that cannot steer is told.
    fn reported(first: i32, rates: impl IntoIterator<Item = i32>) -> Vec<i32> {
        let (mut wanted, mut reported) = (Wanted::new(first), vec![first]);
        for rate in rates {
            wanted.bitrate = rate;
            reported.extend(wanted.next(reported[reported.len() - 1], false));
        }
        reported
    }

    #[test]
    fn uneven_frames_do_not_make_key_frames() {
        let uneven = (0..300).map(|at| [1_000_000, 2_000_000, 1_500_000][at % 3]);
        assert_eq!(reported(1_500_000, uneven), [1_500_000]);
        let very_uneven = (0..300).map(|at| [1_000_000, 4_000_000][at % 2]);
        assert_eq!(reported(1_000_000, very_uneven).len(), 2, "once it is told the mean");
        let outlier = (0..300).map(|at| if at == 100 { 8_000_000 } else { 2_000_000 });
        assert_eq!(reported(2_000_000, outlier), [2_000_000]);
    }

    #[test]
    fn a_link_that_breaks_down_makes_one() {
        let rates = reported(4_000_000, [1_000_000; 100]);
        let [_, last] = rates[..] else { panic!("told {rates:?}") };
        assert!((1_000_000..1_500_000).contains(&last), "{last}");
        let all = reported(30_000, [40_000_000; 100]);
        assert!(all.len() <= 3 && all[all.len() - 1] > 26_000_000, "{all:?}");
    }

    #[test]
    fn a_codec_that_steers_is_told_each_change() {
        let mut wanted = Wanted::new(1_000_000);
        assert_eq!(wanted.next(1_000_000, true), None);
        wanted.bitrate = 1_000_001;
        assert_eq!(wanted.next(1_000_000, true), Some(1_000_001));
    }
}
