//! OpenH264, made safe to call: the only unsafe code of this crate as it is built by default.
//!
//! Two handles that own a codec, give it planes or bytes, and copy or borrow what it gives. They know nothing of
//! colours, of frames' order or of what a stream may contain; the modules above have checked that.
//!
//! The invariant: a handle exists only for a codec that has been initialised, and is its only user.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long};
use std::ptr;

use openh264_sys2 as sys;
use sys::source::APILoader as library;

use crate::error::Error;
use crate::planes::{Planes, View};
use crate::size::Size;

/// How an encoder is set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) size: Size,
    /// Bits per second at [`FRAMES_PER_SECOND`], in the beginning.
    pub(crate) bitrate: i32,
    /// The finest quantiser that may be used, 12 to 51.
    pub(crate) finest: u8,
}

/// Frames per second that an encoder believes in.
pub(crate) const FRAMES_PER_SECOND: i32 = 30;

/// What it is called.
pub(crate) const NAME: &str = "openh264";

/// The only encoder there is.
#[cfg(not(feature = "ffmpeg"))]
pub(crate) fn in_use() -> Option<crate::InUse> {
    Some(crate::InUse { name: NAME, tried: true })
}

/// It need not be looked for.
#[cfg(not(feature = "ffmpeg"))]
pub(crate) fn look() {}

#[cfg(not(feature = "ffmpeg"))]
pub(crate) fn choose(name: &str) -> bool {
    name == NAME
}

/// An initialised encoder.
#[derive(Debug)]
pub(crate) struct Encoder {
    raw: *mut sys::ISVCEncoder,
    size: Size,
    info: Box<sys::SFrameBSInfo>,
}

// SAFETY: the codec has no state outside of what the handle points to, none that belongs to a thread, and `&self` gives
// access to none of it.
unsafe impl Send for Encoder {}

impl Encoder {
    pub(crate) fn new(settings: Settings) -> Result<Self, Error> {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a place for a pointer.
        ok(unsafe { library::WelsCreateSVCEncoder(&raw mut raw) })?;
        if raw.is_null() {
            return Err(Error::Codec { code: 0 });
        }
        // from here on dropping it destroys the codec
        let encoder = Self { raw, size: settings.size, info: Box::default() };
        let table = encoder.table();
        let mut quiet = sys::WELS_LOG_QUIET;
        let mut parameters = sys::SEncParamExt::default();
        // SAFETY: the functions are those of this codec; options and parameters have the types that the codec reads,
        // and live until the calls return; it copies them.
        unsafe {
            ok(call(table.SetOption)?(raw, sys::ENCODER_OPTION_TRACE_LEVEL, (&raw mut quiet).cast()))?;
            ok(call(table.GetDefaultParams)?(raw, &raw mut parameters))?;
            set_up(&mut parameters, settings);
            ok(call(table.InitializeExt)?(raw, &raw const parameters))?;
        }
        Ok(encoder)
    }

    /// Bits per second at [`FRAMES_PER_SECOND`], from the next frame on.
    pub(crate) fn set_bitrate(&mut self, bitrate: i32) -> Result<(), Error> {
        let mut rate = sys::SBitrateInfo { iLayer: sys::SPATIAL_LAYER_0, iBitrate: bitrate };
        let set = call(self.table().SetOption)?;
        // SAFETY: the codec is initialised; this option is of this type and is copied.
        ok(unsafe { set(self.raw, sys::ENCODER_OPTION_BITRATE, (&raw mut rate).cast()) })
    }

    /// Makes the next frame a key frame.
    pub(crate) fn force_key(&mut self) -> Result<(), Error> {
        let force = call(self.table().ForceIntraFrame)?;
        // SAFETY: the codec is initialised.
        ok(unsafe { force(self.raw, true) })
    }

    /// The bytes of the next frame and whether it is a key frame; no bytes when the codec leaves it out.
    pub(crate) fn encode(&mut self, planes: &Planes, milliseconds: i64) -> Result<(Vec<u8>, bool), Error> {
        assert_eq!(planes.size(), self.size, "planes of another encoder");
        let (view, (width, height)) = (planes.view(), self.size.coded());
        let stride = [view.luma_stride as c_int, view.chroma_stride as c_int, view.chroma_stride as c_int, 0];
        let source = sys::SSourcePicture {
            iColorFormat: sys::videoFormatI420,
            iStride: stride,
            pData: [
                view.y.as_ptr().cast_mut(),
                view.u.as_ptr().cast_mut(),
                view.v.as_ptr().cast_mut(),
                ptr::null_mut(),
            ],
            iPicWidth: width as c_int,
            iPicHeight: height as c_int,
            uiTimeStamp: milliseconds,
            ..Default::default()
        };
        let encode = call(self.table().EncodeFrame)?;
        // SAFETY: the codec is initialised for this size, of which the planes are; it reads them and writes to `info`.
        ok(unsafe { encode(self.raw, &raw const source, &raw mut *self.info) })?;
        let key = self.info.eFrameType == sys::videoFrameTypeIDR;
        Ok((self.bytes(), key))
    }

    /// What the codec has just written.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.info.iFrameSizeInBytes).unwrap_or(0));
        let layers = usize::try_from(self.info.iLayerNum).unwrap_or(0);
        for layer in self.info.sLayerInfo.iter().take(layers) {
            let units = usize::try_from(layer.iNalCount).unwrap_or(0);
            if units == 0 || layer.pNalLengthInByte.is_null() || layer.pBsBuf.is_null() {
                continue;
            }
            // SAFETY: the codec says that this many lengths are here, and bytes, one unit after the other, of all of
            // them together; they stay until it is called again.
            let layer = unsafe {
                let lengths = std::slice::from_raw_parts(layer.pNalLengthInByte, units);
                let length = lengths.iter().map(|&length| usize::try_from(length).unwrap_or(0)).sum();
                std::slice::from_raw_parts(layer.pBsBuf, length)
            };
            bytes.extend_from_slice(layer);
        }
        bytes
    }

    fn table(&self) -> sys::ISVCEncoderVtbl {
        // SAFETY: a created codec begins with a pointer to its functions, which stay.
        unsafe { **self.raw }
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: created in `new`, used by no other owner, never again. Destroying uninitialises.
        unsafe { library::WelsDestroySVCEncoder(self.raw) }
    }
}

fn set_up(parameters: &mut sys::SEncParamExt, settings: Settings) {
    let (width, height) = settings.size.coded();
    parameters.iUsageType = sys::CAMERA_VIDEO_REAL_TIME;
    parameters.iPicWidth = width as c_int;
    parameters.iPicHeight = height as c_int;
    parameters.iTargetBitrate = settings.bitrate;
    parameters.fMaxFrameRate = FRAMES_PER_SECOND as f32;
    parameters.iRCMode = sys::RC_BITRATE_MODE;
    parameters.iComplexityMode = sys::LOW_COMPLEXITY;
    parameters.iNumRefFrame = 1;
    parameters.eSpsPpsIdStrategy = sys::CONSTANT_ID;
    // The caller says when a frame is due, and each counts.
    parameters.bEnableFrameSkip = false;
    parameters.iMinQp = settings.finest.into();
    parameters.iMaxQp = 51;
    parameters.iMultipleThreadIdc = 1;
    parameters.bEnableSceneChangeDetect = true;
    // It takes slow parts of a video for background and leaves them as they are: 3 points of SSIMULACRA2 less.
    parameters.bEnableBackgroundDetection = false;
    let layer = &mut parameters.sSpatialLayers[0];
    layer.iVideoWidth = width as c_int;
    layer.iVideoHeight = height as c_int;
    layer.fFrameRate = FRAMES_PER_SECOND as f32;
    layer.iSpatialBitrate = settings.bitrate;
    layer.uiProfileIdc = sys::PRO_BASELINE;
    // The highest: smaller ones would bound the bitrate.
    layer.uiLevelIdc = sys::LEVEL_5_2;
    layer.sSliceArgument.uiSliceMode = sys::SM_SINGLE_SLICE;
    layer.bVideoSignalTypePresent = true;
    layer.uiVideoFormat = UNSPECIFIED_VIDEO_FORMAT;
    layer.bFullRange = false;
    layer.bColorDescriptionPresent = true;
    layer.uiColorPrimaries = BT_709;
    layer.uiTransferCharacteristics = BT_709;
    layer.uiColorMatrix = BT_709;
}

/// An initialised decoder.
#[derive(Debug)]
pub(crate) struct Decoder {
    raw: *mut sys::ISVCDecoder,
    picture: Option<Lent>,
}

// SAFETY: as for `Encoder`.
unsafe impl Send for Decoder {}

impl Decoder {
    pub(crate) fn new() -> Result<Self, Error> {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a place for a pointer.
        ok_long(unsafe { library::WelsCreateDecoder(&raw mut raw) })?;
        if raw.is_null() {
            return Err(Error::Codec { code: 0 });
        }
        // from here on dropping it destroys the codec
        let decoder = Self { raw, picture: None };
        let table = decoder.table();
        let mut quiet = sys::WELS_LOG_QUIET;
        let parameters = sys::SDecodingParam {
            // A broken frame is to be reported, not painted over.
            eEcActiveIdc: sys::ERROR_CON_DISABLE,
            sVideoProperty: sys::SVideoProperty {
                size: size_of::<sys::SVideoProperty>() as u32,
                eVideoBsType: sys::VIDEO_BITSTREAM_AVC,
            },
            ..Default::default()
        };
        // SAFETY: the functions are those of this codec; options and parameters have the types that the codec reads,
        // and live until the calls return; it copies them.
        unsafe {
            ok_long(call(table.SetOption)?(raw, sys::DECODER_OPTION_TRACE_LEVEL, (&raw mut quiet).cast()))?;
            ok_long(call(table.Initialize)?(raw, &raw const parameters))?;
        }
        Ok(decoder)
    }

    /// Decodes a frame; [`Self::view`] then gives its picture.
    ///
    /// # Errors
    /// `FrameBroken`, also when there is no picture, or one that is not of `size`.
    pub(crate) fn decode(&mut self, data: &[u8], size: Size) -> Result<(), Error> {
        self.picture = None;
        let length = c_int::try_from(data.len()).map_err(|_| Error::FrameShape)?;
        let mut planes = [ptr::null_mut::<u8>(); 3];
        let mut info = sys::SBufferInfo::default();
        let decode = call(self.table().DecodeFrameNoDelay)?;
        // SAFETY: the codec is initialised, reads `length` bytes of `data` and writes three pointers and `info`.
        let state = unsafe { decode(self.raw, data.as_ptr(), length, planes.as_mut_ptr(), &raw mut info) };
        // SAFETY: the union has one member.
        let memory = unsafe { info.UsrData.sSystemBuffer };
        let (width, height) = size.coded();
        let right = state == sys::dsErrorFree
            && info.iBufferStatus == 1
            && (memory.iWidth, memory.iHeight) == (width as c_int, height as c_int);
        let planes = planes.map(|plane| plane.cast_const());
        let lent = if right { Lent::new(planes, memory.iStride, size) } else { None };
        self.picture = Some(lent.ok_or(Error::FrameBroken { state })?);
        Ok(())
    }

    /// The picture of the frame that was decoded last; `None` when it gave none.
    pub(crate) fn view(&self) -> Option<View<'_>> {
        // SAFETY: the codec has given planes of this size and these strides, which stay as they are until it is called
        // again; that takes `&mut self`, and the view borrows `self`.
        self.picture.map(|picture| unsafe { picture.view() })
    }

    fn table(&self) -> sys::ISVCDecoderVtbl {
        // SAFETY: a created codec begins with a pointer to its functions, which stay.
        unsafe { **self.raw }
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: created in `new`, used by no other owner, never again. Destroying uninitialises.
        unsafe { library::WelsDestroyDecoder(self.raw) }
    }
}

/// Where a codec keeps the picture that it has given last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lent {
    planes: [*const u8; 3],
    luma_stride: usize,
    chroma_stride: usize,
    size: Size,
}

impl Lent {
    /// Planes of a picture that is as large as the stream's, and their strides: of luma, of chroma. `None` when there
    /// can be no such picture there.
    pub(crate) fn new(planes: [*const u8; 3], strides: [c_int; 2], size: Size) -> Option<Self> {
        let (width, _) = size.coded();
        let [luma_stride, chroma_stride] = strides.map(|stride| usize::try_from(stride).unwrap_or(0));
        let sound =
            planes.iter().all(|plane| !plane.is_null()) && luma_stride >= width && chroma_stride >= width / 2;
        sound.then_some(Self { planes, luma_stride, chroma_stride, size })
    }

    /// The picture.
    ///
    /// # Safety
    /// The planes have the rows and strides that were said, and stay as they are as long as the view is there.
    pub(crate) unsafe fn view<'a>(self) -> View<'a> {
        let Self { planes, luma_stride, chroma_stride, size } = self;
        let (width, height) = size.coded();
        // The last row is counted without what its stride has beyond it.
        let length = |stride: usize, width: usize, height: usize| stride * (height - 1) + width;
        let luma = length(luma_stride, width, height);
        let chroma = length(chroma_stride, width / 2, height / 2);
        // SAFETY: as promised above.
        unsafe {
            View {
                y: std::slice::from_raw_parts(planes[0], luma),
                u: std::slice::from_raw_parts(planes[1], chroma),
                v: std::slice::from_raw_parts(planes[2], chroma),
                luma_stride,
                chroma_stride,
            }
        }
    }
}

/// A function of the codec's table.
fn call<F>(function: Option<F>) -> Result<F, Error> {
    function.ok_or(Error::Codec { code: 0 })
}

fn ok(code: c_int) -> Result<(), Error> {
    ok_long(code.into())
}

fn ok_long(code: c_long) -> Result<(), Error> {
    if code == 0 { Ok(()) } else { Err(Error::Codec { code }) }
}

// ITU-T H.264 §E.2.1
const UNSPECIFIED_VIDEO_FORMAT: u8 = 5;
const BT_709: u8 = 1;
