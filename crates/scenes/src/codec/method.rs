//! General compression of one message, without memory of the messages before it.
//!
//! Invariant: a message is never unpacked to more than was allowed.

use zstd_safe::{CCtx, DCtx};

use super::{CodecError, put_number, take_number};

/// How a message is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Not at all.
    None,
    /// An LZ4 block.
    Lz4,
    /// A Zstandard frame of this level.
    Zstd(i32),
}

/// A method, and the memory that it works in.
#[derive(Default)]
pub(super) struct Packer {
    encoder: Option<CCtx<'static>>,
    decoder: Option<DCtx<'static>>,
    unpacked: Vec<u8>,
}

impl Packer {
    /// A message: the length of `bytes`, then what the method makes of them.
    pub(super) fn pack(&mut self, method: Method, bytes: &[u8]) -> Vec<u8> {
        let mut message = Vec::new();
        put_number(&mut message, bytes.len());
        match method {
            Method::None => message.extend_from_slice(bytes),
            Method::Lz4 => {
                message.resize(4 + lz4_flex::block::get_maximum_output_size(bytes.len()), 0);
                let length = lz4_flex::block::compress_into(bytes, &mut message[4..]).unwrap_or(0);
                message.truncate(4 + length);
            }
            Method::Zstd(level) => {
                message.resize(4 + zstd_safe::compress_bound(bytes.len()), 0);
                let encoder = self.encoder.get_or_insert_with(CCtx::create);
                let length = encoder.compress(&mut message[4..], bytes, level).unwrap_or(0);
                message.truncate(4 + length);
            }
        }
        message
    }

    /// The bytes of a message, if they are no more than `most`.
    pub(super) fn unpack(
        &mut self,
        method: Method,
        message: &[u8],
        most: usize,
    ) -> Result<&[u8], CodecError> {
        let mut rest = message;
        let length = take_number(&mut rest)? as usize;
        if length > most {
            return Err(CodecError::Outside);
        }
        if self.unpacked.len() < length {
            self.unpacked.resize(length, 0);
        }
        let target = &mut self.unpacked[..length];
        let got = match method {
            Method::None if rest.len() == length => {
                target.copy_from_slice(rest);
                Some(length)
            }
            Method::None => None,
            Method::Lz4 => lz4_flex::block::decompress_into(rest, target).ok(),
            Method::Zstd(_) => self.decoder.get_or_insert_with(DCtx::create).decompress(target, rest).ok(),
        };
        if got == Some(length) { Ok(target) } else { Err(CodecError::Damaged) }
    }
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}
