//! From frames to pixels.
//!
//! Frames come from the peer and are not trusted: what they consist of and for which size is checked before the codec
//! sees them. A frame that is missing, refused or broken ends the stream until its next key frame, for what is
//! predicted from a wrong picture is wrong too.

use crate::codec;
use crate::error::Error;
use crate::picture::Picture;
use crate::size::Size;
use crate::stream::{self, Kind};

/// Takes the frames of one region.
#[derive(Debug)]
pub struct Decoder {
    size: Size,
    last: Option<u64>,
    /// None when a key frame is needed.
    native: Option<codec::Decoder>,
}

impl Decoder {
    /// A decoder for a region of this size. Takes memory only for a sound key frame: then 12 to 16 bytes per pixel.
    pub fn new(size: Size) -> Self {
        Self { size, last: None, native: None }
    }

    /// The region's size.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Whether only a key frame can be decoded now.
    pub fn needs_key(&self) -> bool {
        self.native.is_none()
    }

    /// The picture of frame `number`. Numbers count up; a gap means that frames are missing. A number that leaps ahead
    /// makes all below it stale, so they are best counted here and not read from the frame.
    ///
    /// # Errors
    /// What is wrong with the frame, or `NeedKey`: only a later key frame can be decoded then. `Stale` alone changes
    /// nothing.
    pub fn decode(&mut self, number: u64, data: &[u8]) -> Result<Picture<'_>, Error> {
        if let Some(last) = self.last
            && number <= last
        {
            return Err(Error::Stale { number, last });
        }
        let follows = self.last.is_some_and(|last| last + 1 == number);
        self.last = Some(number);
        // Put back when all is well.
        let native = self.native.take();
        let mut native = match (stream::check(data, self.size)?, native) {
            (Kind::Delta, Some(native)) if follows => native,
            (Kind::Delta, _) => return Err(Error::NeedKey),
            (Kind::Key, Some(native)) => native,
            (Kind::Key, None) => codec::Decoder::new()?,
        };
        native.decode(data, self.size)?;
        let size = self.size;
        let view = self.native.insert(native).view().ok_or(Error::NeedKey)?;
        Ok(Picture::new(size, view))
    }
}
