//! Plain codecs, to compare ours with: what remote displays commonly do with a damaged buffer.
//!
//! A codec has both ends in one value: the last picture as its encoder knows it, and the one that its decoder shows.
//! There is no network between them; the measuring program carries the messages. Everything a message claims is
//! checked.
//!
//! The one invariant: when all messages of a frame were applied, in order, the decoder shows that frame.

mod diff;
mod method;
mod whole;

use std::fmt;

pub use diff::Diff;
pub use method::Method;
pub use whole::Whole;

use crate::canvas::Rect;
use crate::scene::Frame;

/// Both ends of a codec for one surface.
pub trait Codec {
    /// As in reports.
    fn name(&self) -> &'static str;

    /// The program has drawn the frame: what happens to its memory, which is not the codec's work.
    fn draw(&mut self, _frame: &Frame<'_>) {}

    /// Encodes what the frame changed as messages, each of which is some of its pixels; none when nothing changed.
    fn encode(&mut self, frame: &Frame<'_>) -> Vec<Vec<u8>>;

    /// Takes a message at the other end, and says where it may change the picture.
    ///
    /// # Errors
    /// What is wrong with the message. The picture is then unspecified.
    fn decode(&mut self, message: &[u8]) -> Result<Vec<Rect>, CodecError>;

    /// All messages of a frame have been taken; a codec that shows whole frames only shows this one now.
    ///
    /// # Errors
    /// What is wrong with the messages together. The picture is then unspecified.
    fn finish(&mut self) -> Result<(), CodecError> {
        Ok(())
    }

    /// What the other end shows: all pixels as bytes, rows without padding.
    fn shown(&self) -> &[u8];
}

/// Why a message cannot be applied.
#[derive(Debug)]
pub enum CodecError {
    /// It ends too early, or its compressed part is not valid.
    Damaged,
    /// It names pixels that the surface does not have.
    Outside,
    /// A codec of another crate says why.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged => f.write_str("the message is damaged"),
            Self::Outside => f.write_str("the message names pixels outside the surface"),
            Self::Other(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CodecError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Other(error) => Some(&**error),
            Self::Damaged | Self::Outside => None,
        }
    }
}

/// The number in the next four bytes.
fn take_number(bytes: &mut &[u8]) -> Result<u32, CodecError> {
    let (head, rest) = bytes.split_first_chunk::<4>().ok_or(CodecError::Damaged)?;
    *bytes = rest;
    Ok(u32::from_le_bytes(*head))
}

/// A number as four bytes.
fn put_number(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend_from_slice(&(number as u32).to_le_bytes());
}
