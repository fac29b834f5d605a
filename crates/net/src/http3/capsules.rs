//! What comes on the stream of a session's request: capsules in frames of HTTP/3 (RFC 9297 §3.2, RFC 9114 §7.1).
//!
//! Pure: it is given bytes in any pieces. It knows the one capsule that ends a session (draft-ietf-webtrans-http3 §6)
//! and steps over all others, and over all frames but those of data, however long they are. Invariant: for any input,
//! it keeps no more than [`KEPT_MAX`] bytes.

use std::fmt;

use web_transport_proto::{Frame, VarInt};

/// Reads frames, and the capsules that are in them.
#[derive(Debug, Default)]
pub(crate) struct Capsules {
    frame: Item,
    capsule: Item,
    /// Of the capsule that ends the session, as far as it has come.
    close: Vec<u8>,
}

/// The end of a session, in the peer's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Close {
    pub(crate) code: u32,
    pub(crate) reason: String,
}

/// Why that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// The capsule has no room for a code, or more than a reason may have.
    Length(u64),
    /// The reason is not UTF-8.
    Reason,
    /// The stream ends within a frame or a capsule.
    Truncated,
}

impl Capsules {
    /// Takes what has come; what follows the end of the session is not looked at.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> Result<Option<Close>, Malformed> {
        while let Some(mut frame) = self.frame.next(&mut bytes) {
            if frame.kind != Frame::DATA.0.into_inner() {
                continue;
            }
            while let Some(capsule) = self.capsule.next(&mut frame.bytes) {
                if capsule.kind == CLOSE
                    && let Some(close) = self.collect(&capsule)?
                {
                    return Ok(Some(close));
                }
            }
        }
        debug_assert!(self.kept() <= KEPT_MAX, "{} bytes are kept", self.kept());
        Ok(None)
    }

    /// Nothing more comes.
    pub(crate) fn end(&self) -> Result<(), Malformed> {
        let whole = self.frame.is_between() && self.capsule.is_between();
        if whole { Ok(()) } else { Err(Malformed::Truncated) }
    }

    /// Bytes that it keeps.
    pub(crate) fn kept(&self) -> usize {
        [&self.frame.head, &self.capsule.head, &self.close].iter().map(|bytes| bytes.capacity()).sum()
    }

    fn collect(&mut self, piece: &Piece<'_>) -> Result<Option<Close>, Malformed> {
        if !(CODE_LENGTH..=CODE_LENGTH + REASON_MAX).contains(&piece.length) {
            return Err(Malformed::Length(piece.length));
        }
        self.close.reserve_exact(piece.length as usize - self.close.len());
        self.close.extend_from_slice(piece.bytes);
        if !piece.is_last {
            return Ok(None);
        }
        let close = std::mem::take(&mut self.close);
        let (code, reason) = close.split_first_chunk().ok_or(Malformed::Length(piece.length))?;
        let reason = std::str::from_utf8(reason).map_err(|_| Malformed::Reason)?;
        Ok(Some(Close { code: u32::from_be_bytes(*code), reason: reason.into() }))
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => write!(f, "a capsule of {length} bytes does not end a session"),
            Self::Reason => f.write_str("its reason is not UTF-8"),
            Self::Truncated => f.write_str("it is cut off"),
        }
    }
}

/// Reads items one after the other, each a kind and a length (RFC 9000 §16) and so many bytes. Frames and capsules are
/// both.
#[derive(Debug, Default)]
struct Item {
    /// What has come of kind and length; 16 bytes at most.
    head: Vec<u8>,
    /// Kind, length, and how many bytes are still to come.
    body: Option<(u64, u64, u64)>,
}

/// A piece of an item.
struct Piece<'a> {
    kind: u64,
    /// Of the whole item.
    length: u64,
    bytes: &'a [u8],
    is_last: bool,
}

impl Item {
    /// The next piece; `None` when all bytes are taken. A piece is empty only when its item is.
    fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<Piece<'a>> {
        let (kind, length, left) = loop {
            match self.body {
                Some(body) => break body,
                None => self.head.push(*bytes.split_off_first()?),
            }
            self.body = head(&self.head).map(|(kind, length)| (kind, length, length));
        };
        if bytes.is_empty() && left > 0 {
            return None;
        }
        let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let piece = bytes.split_off(..taken)?;
        let left = left - taken as u64;
        self.body = (left > 0).then_some((kind, length, left));
        if left == 0 {
            self.head.clear();
        }
        Some(Piece { kind, length, bytes: piece, is_last: left == 0 })
    }

    /// Whether no item has begun that has not ended.
    fn is_between(&self) -> bool {
        self.head.is_empty()
    }
}

fn head(mut bytes: &[u8]) -> Option<(u64, u64)> {
    let kind = VarInt::decode(&mut bytes).ok()?;
    let length = VarInt::decode(&mut bytes).ok()?;
    Some((kind.into_inner(), length.into_inner()))
}

/// The kind of the capsule that ends a session (draft-ietf-webtrans-http3 §9.6).
const CLOSE: u64 = 0x2843;

const CODE_LENGTH: u64 = 4;

/// Bytes of a reason (draft-ietf-webtrans-http3 §6).
const REASON_MAX: u64 = 1024;

/// Bytes that are kept at most: two heads, as a [`Vec`] grows to hold them, and the capsule that ends a session.
pub(crate) const KEPT_MAX: usize = 2 * 16 + (CODE_LENGTH + REASON_MAX) as usize;

#[cfg(test)]
mod tests {
    use super::*;

    /// What it says of bytes that come in pieces of `size` bytes.
    fn read(bytes: &[u8], size: usize) -> Result<Option<Close>, Malformed> {
        let mut capsules = Capsules::default();
        for piece in bytes.chunks(size) {
            let close = capsules.read(piece)?;
            assert!(capsules.kept() <= KEPT_MAX, "{} bytes kept", capsules.kept());
            if close.is_some() {
                return Ok(close);
            }
        }
        capsules.end().map(|()| None)
    }

    fn in_frames(bytes: &[u8], size: usize) -> Vec<u8> {
        // One that is empty, one that is of no known kind, and one of data.
        let frame = |data: &[u8]| [&[0, 0, 0x21, 2, 9, 9, 0, data.len() as u8], data].concat();
        bytes.chunks(size).flat_map(frame).collect()
    }

    #[test]
    fn the_end_is_found_in_any_pieces() {
        // Two capsules of other kinds, one of them empty, then the end.
        let capsules = b"\x17\x00\x50\x00\x03abc\x68\x43\x08\x00\x00\x01\xa4test\x17\x00";
        let close = Close { code: 420, reason: "test".into() };
        for frame in 1..=capsules.len() {
            let bytes = in_frames(capsules, frame);
            (1..=bytes.len()).for_each(|size| assert_eq!(read(&bytes, size), Ok(Some(close.clone()))));
        }
        assert_eq!(read(&in_frames(&capsules[..8], 3), 2), Ok(None));
        assert_eq!(read(&[], 1), Ok(None));
    }

    #[test]
    fn what_is_cut_off_or_too_short_or_too_long_is_malformed() {
        let bytes = |capsule: &[u8]| in_frames(capsule, 63);
        for (capsule, why) in [
            (&b"\x68\x43\x00"[..], Malformed::Length(0)),
            (b"\x68\x43\x03abc", Malformed::Length(3)),
            (b"\x68\x43\x44\x05a", Malformed::Length(1029)),
            (b"\x68\x43\xff\xff\xff\xff\xff\xff\xff\xffa", Malformed::Length((1 << 62) - 1)),
            (b"\x68\x43\x05\x00\x00\x00\x00\xff", Malformed::Reason),
            (b"\x68\x43\x08\x00\x00\x00\x00", Malformed::Truncated),
            (b"\x68", Malformed::Truncated),
            (b"\x17\x01", Malformed::Truncated),
        ] {
            let bytes = bytes(capsule);
            (1..=bytes.len()).for_each(|size| assert_eq!(read(&bytes, size), Err(why), "{capsule:?}"));
        }
        for cut in [&[0][..], &[0, 1], &[0x21, 2, 0]] {
            assert_eq!(read(cut, 1), Err(Malformed::Truncated), "{cut:?}");
        }
    }

    #[test]
    fn nothing_is_kept_of_what_is_stepped_over() {
        let endless = [0xff; 8];
        for kind in [&[0x21][..], &[0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f]] {
            let bytes = [kind, &endless, &[0; 1 << 20]].concat();
            assert_eq!(read(&bytes, 1000), Err(Malformed::Truncated));
        }
        let longest = [b"\x00\x44\x09\x68\x43\x44\x04\x00\x00\x00\x07", &[b'a'; 1024][..]].concat();
        for size in [1, 5, 100, longest.len()] {
            let close = read(&longest, size).unwrap().unwrap();
            assert_eq!((close.code, close.reason.len()), (7, 1024));
        }
    }
}
