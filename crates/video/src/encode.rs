//! From pixels to frames.
//!
//! An [`Encoder`] makes one stream. It holds the bytes of frames near what it is told, from frame to frame anew, by the
//! codec's own control of its quantiser; it leaves no frame out, for the caller has decided that this one is worth
//! sending. A new scene, and any frame that the caller asks for, is a key frame.

use std::time::Duration;

use crate::codec;
use crate::color::Order;
use crate::error::Error;
use crate::native::{FRAMES_PER_SECOND, Settings};
use crate::planes::Planes;
use crate::size::Size;

/// Makes the frames of one region.
#[derive(Debug)]
pub struct Encoder {
    size: Size,
    finest: u8,
    planes: Planes,
    /// None before the first frame and after a fault.
    native: Option<codec::Encoder>,
    /// As the codec was told last.
    bitrate: i32,
    time: Duration,
}

/// How good pictures may become, 1 to 100. Default: 80. A bound on bytes where the rate would allow more; where the
/// rate does not, pictures are worse than this says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quality(u8);

/// What a frame may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// Bits per second.
    pub bits_per_second: u64,
    /// How long until the next frame, about.
    pub interval: Duration,
}

/// A frame, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What the decoder takes: units in the byte stream format.
    pub data: Vec<u8>,
    /// Whether it can be decoded without those before it.
    pub key: bool,
}

impl Quality {
    /// A quality; numbers outside of 1 to 100 become the nearest inside.
    pub fn new(quality: u8) -> Self {
        Self(quality.clamp(1, 100))
    }

    /// The finest quantiser that may be used. The codec's range ends at 12; from 40 on pictures show little but blocks.
    fn finest(self) -> u8 {
        let steps = u16::from(100 - self.0) * u16::from(COARSEST - FINEST);
        FINEST + (steps / 99) as u8
    }
}

impl Default for Quality {
    fn default() -> Self {
        Self(80)
    }
}

impl Rate {
    /// Bits of a frame, as the bits per second that the codec is told.
    fn bitrate(self) -> i32 {
        let bits = self.bits_per_second as u128 * self.interval.as_nanos() / NANOSECONDS;
        (bits * FRAMES_PER_SECOND as u128).clamp(LEAST_BITRATE, MOST_BITRATE) as i32
    }
}

impl Encoder {
    /// An encoder for a region of this size. Takes most of its memory, some twelve bytes per pixel, with the first
    /// frame.
    pub fn new(size: Size, quality: Quality) -> Self {
        Self {
            size,
            finest: quality.finest(),
            planes: Planes::new(size),
            native: None,
            bitrate: 0,
            time: Duration::ZERO,
        }
    }

    /// The region's size.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The next frame: the picture whose rows `row` gives, from the top, 4 bytes per pixel and at least as many as the
    /// region is wide. With `key`, and for the first picture and a new scene, it is a key frame. `None` means that the
    /// codec leaves this picture out; the next frame then follows the one before.
    ///
    /// # Errors
    /// `Row` or `Codec`. The next frame is then a key frame.
    pub fn encode<'a>(
        &mut self,
        order: Order,
        row: impl Fn(u32) -> &'a [u8],
        rate: Rate,
        key: bool,
    ) -> Result<Option<Frame>, Error> {
        let native = self.native.take();
        self.planes.fill(order, row)?;
        let bitrate = rate.bitrate();
        let mut native = match native {
            Some(mut native) => {
                if bitrate != self.bitrate {
                    native.set_bitrate(bitrate)?;
                }
                if key {
                    native.force_key()?;
                }
                native
            }
            None => codec::Encoder::new(Settings { size: self.size, bitrate, finest: self.finest })?,
        };
        self.bitrate = bitrate;
        self.time += rate.interval;
        let (data, key) = native.encode(&self.planes, self.time.as_millis() as i64)?;
        self.native = Some(native);
        Ok(if data.is_empty() { None } else { Some(Frame { data, key }) })
    }
}

const FINEST: u8 = 12;
const COARSEST: u8 = 40;

const NANOSECONDS: u128 = 1_000_000_000;

/// What the codec's arithmetic carries at 30 frames per second: 125 bytes to 166 kB per frame.
const LEAST_BITRATE: u128 = 30_000;
const MOST_BITRATE: u128 = 40_000_000;
