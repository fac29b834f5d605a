//! Frames that something else decodes: a browser.
//!
//! What the other decoder may be given, and what it gives, which is not trusted either: where it lies is told, and how
//! long it is must fit. Decoding is exact, so its pictures are those of [`Decoder`](crate::Decoder), bit by bit.
//!
//! The invariant: what passes a [`Gate`] follows on what has passed before, without a gap.

use crate::error::Error;
use crate::picture::Picture;
use crate::planes::View;
use crate::size::Size;
use crate::stream::{self, Kind};

/// Says of each frame of one region whether another decoder may be given it.
#[derive(Debug)]
pub struct Gate {
    size: Size,
    /// All since a key frame has passed.
    goes_on: bool,
}

/// How the planes of a picture lie, one behind the other, with no gaps between rows: brightness first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Then the blue differences, and then the red ones.
    I420,
    /// Then both by turns, blue first.
    Nv12,
}

/// A picture that was decoded elsewhere.
#[derive(Debug)]
pub struct Decoded {
    size: Size,
    bytes: Vec<u8>,
}

impl Gate {
    /// For a region of this size.
    pub fn new(size: Size) -> Self {
        Self { size, goes_on: false }
    }

    /// The region's size.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Which kind of frame the next one is.
    ///
    /// # Errors
    /// What is wrong with it, or `NeedKey`: nothing but a key frame passes after that.
    pub fn pass(&mut self, data: &[u8]) -> Result<Kind, Error> {
        let kind = stream::check(data, self.size);
        let goes_on = std::mem::replace(&mut self.goes_on, false);
        if kind? == Kind::Delta && !goes_on {
            return Err(Error::NeedKey);
        }
        self.goes_on = true;
        kind
    }
}

impl Decoded {
    /// Bytes of a picture for a region of this size: that of its stream, of whole blocks of 16 × 16 pixels.
    pub fn length(size: Size) -> usize {
        let (width, height) = size.coded();
        width * height / 2 * 3
    }

    /// The picture that these bytes are; `None` unless they are as many as [`Self::length`] says.
    pub fn new(size: Size, layout: Layout, mut bytes: Vec<u8>) -> Option<Self> {
        if bytes.len() != Self::length(size) {
            return None;
        }
        if layout == Layout::Nv12 {
            take_apart(&mut bytes[Self::length(size) / 3 * 2..]);
        }
        Some(Self { size, bytes })
    }

    /// Its pixels.
    pub fn picture(&self) -> Picture<'_> {
        let (width, height) = self.size.coded();
        let (y, chroma) = self.bytes.split_at(width * height);
        let (u, v) = chroma.split_at(chroma.len() / 2);
        Picture::new(self.size, View { y, u, v, luma_stride: width, chroma_stride: width / 2 })
    }
}

/// Puts every other byte behind the rest.
fn take_apart(both: &mut [u8]) {
    let pairs = both.as_chunks::<2>().0;
    let apart: Vec<u8> = pairs.iter().map(|[u, _]| *u).chain(pairs.iter().map(|[_, v]| *v)).collect();
    both[..apart.len()].copy_from_slice(&apart);
}
