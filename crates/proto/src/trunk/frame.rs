//! The bytes of a trunk: a mark, then frames. Encoding and incremental decoding, no state of strands.
//!
//! ```text
//! mark   "WFSSH1\r\n"                             8 bytes, first in each direction
//! data   00 strand length payload                 length 1 to 16384
//! end    01 strand 0                              the sender has no more for the strand
//! room   02 strand bytes                          the receiver takes so many more
//! open   03 strand 0                              a meeting begins
//! stop   04 strand 0                              the receiver takes no more of what the program writes
//! ```
//! Strand and the number behind it are four bytes each, big-endian. Invariant: a decoder never buffers more than one
//! frame beyond what it was given last, and in any pieces the same bytes give the same frames.

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    Data { strand: u32, payload: &'a [u8] },
    End { strand: u32 },
    Room { strand: u32, bytes: u32 },
    Open { strand: u32 },
    Stop { strand: u32 },
}

/// What a peer can do wrong on a trunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrunkError {
    /// The first bytes are not the mark.
    NoMark,
    /// A frame of a kind that this version does not define, or with a number that it does not have.
    WrongFrame {
        /// The kind's byte.
        kind: u8,
        /// The number.
        number: u32,
    },
    /// A frame of a strand that is not there, that ended, or that goes the other way.
    WrongStrand {
        /// Its number.
        strand: u32,
    },
    /// More than there is room for.
    TooMuch {
        /// Of which strand.
        strand: u32,
    },
}

impl std::fmt::Display for TrunkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoMark => write!(f, "it does not begin as Wayferry does"),
            Self::WrongFrame { kind, number } => write!(f, "no frame is of kind {kind:#04x} with {number}"),
            Self::WrongStrand { strand } => write!(f, "a frame of strand {strand}, which is not there"),
            Self::TooMuch { strand } => write!(f, "more than there is room for on strand {strand}"),
        }
    }
}

impl std::error::Error for TrunkError {}

/// Appends a frame.
pub(super) fn put(out: &mut Vec<u8>, frame: Frame<'_>) {
    let (kind, strand, number, payload) = match frame {
        Frame::Data { strand, payload } => (DATA, strand, payload.len() as u32, payload),
        Frame::End { strand } => (END, strand, 0, &[][..]),
        Frame::Room { strand, bytes } => (ROOM, strand, bytes, &[][..]),
        Frame::Open { strand } => (OPEN, strand, 0, &[][..]),
        Frame::Stop { strand } => (STOP, strand, 0, &[][..]),
    };
    debug_assert!(payload.len() <= MAX_PIECE);
    out.push(kind);
    out.extend_from_slice(&strand.to_be_bytes());
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(payload);
}

/// Incremental decoder of one direction, behind the mark.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    buffer: Vec<u8>,
    at: usize,
}

impl Decoder {
    /// Takes what came.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.at);
        self.at = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame that is there as a whole.
    pub(super) fn next(&mut self) -> Result<Option<Frame<'_>>, TrunkError> {
        let Some((head, rest)) = self.buffer[self.at..].split_first_chunk::<HEAD>() else { return Ok(None) };
        let [kind, s0, s1, s2, s3, n0, n1, n2, n3] = *head;
        let (strand, number) = (u32::from_be_bytes([s0, s1, s2, s3]), u32::from_be_bytes([n0, n1, n2, n3]));
        let frame = match (kind, number) {
            (DATA, 1..=PIECE) => {
                let Some(payload) = rest.get(..number as usize) else { return Ok(None) };
                self.at += payload.len();
                Frame::Data { strand, payload }
            }
            (END, 0) => Frame::End { strand },
            (ROOM, 1..) => Frame::Room { strand, bytes: number },
            (OPEN, 0) => Frame::Open { strand },
            (STOP, 0) => Frame::Stop { strand },
            _ => return Err(TrunkError::WrongFrame { kind, number }),
        };
        self.at += HEAD;
        Ok(Some(frame))
    }
}

/// Looks for the mark. What stands before it was not said by Wayferry: a login may print something first.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// Bytes of the mark that came last.
    matched: usize,
}

impl Search {
    /// Appends to `noise` what stands before the mark; gives the place behind it in `bytes`.
    pub(super) fn look(&mut self, bytes: &[u8], noise: &mut Vec<u8>) -> Option<usize> {
        for (at, &byte) in bytes.iter().enumerate() {
            if byte != MARK[self.matched] {
                // No part of the mark is like its beginning.
                noise.extend_from_slice(&MARK[..std::mem::take(&mut self.matched)]);
            }
            if byte == MARK[self.matched] {
                self.matched += 1;
            } else {
                noise.push(byte);
            }
            if self.matched == MARK.len() {
                return Some(at + 1);
            }
        }
        None
    }

    /// The stream is over: what looked like a mark was none.
    pub(super) fn end(&mut self, noise: &mut Vec<u8>) {
        noise.extend_from_slice(&MARK[..std::mem::take(&mut self.matched)]);
    }
}

/// First in each direction. Its number is the version of all behind it.
pub const MARK: &[u8; 8] = b"WFSSH1\r\n";
/// Longest payload of a frame.
pub const MAX_PIECE: usize = 16 << 10;
const PIECE: u32 = MAX_PIECE as u32;
const HEAD: usize = 9;
const DATA: u8 = 0;
const END: u8 = 1;
const ROOM: u8 = 2;
const OPEN: u8 = 3;
const STOP: u8 = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame's bytes, for comparison.
    fn bytes(frame: Frame<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, frame);
        out
    }

    fn decode(pieces: &[&[u8]]) -> Result<Vec<Vec<u8>>, TrunkError> {
        let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
        for piece in pieces {
            decoder.push(piece);
            while let Some(frame) = decoder.next()? {
                frames.push(bytes(frame));
            }
        }
        Ok(frames)
    }

    #[test]
    fn frames_survive_in_any_pieces() {
        let payload = [7; MAX_PIECE];
        let frames = [
            Frame::Open { strand: 4 },
            Frame::Data { strand: u32::MAX, payload: &payload },
            Frame::Room { strand: 1, bytes: u32::MAX },
            Frame::Data { strand: 0, payload: b"x" },
            Frame::End { strand: 2 },
            Frame::Stop { strand: 3 },
        ];
        let each: Vec<Vec<u8>> = frames.into_iter().map(bytes).collect();
        let all = each.concat();
        for size in [1, 2, 8, 9, 10, 1000, all.len()] {
            assert_eq!(decode(&all.chunks(size).collect::<Vec<_>>()), Ok(each.clone()), "{size}");
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let frame = |kind: u8, number: u32| [&[kind, 0, 0, 0, 1][..], &number.to_be_bytes()].concat();
        for (kind, number) in
            [(DATA, 0), (DATA, PIECE + 1), (END, 1), (ROOM, 0), (OPEN, 1), (STOP, 1), (5, 0), (255, 255)]
        {
            let refused = Err(TrunkError::WrongFrame { kind, number });
            assert_eq!(decode(&[&frame(kind, number)]), refused);
        }
    }

    #[test]
    fn what_stands_before_the_mark_is_told_apart() {
        let said = b"Welcome.\nWFSSH\nWWFSSH1\r\r\nWFSSH1\r\n\x01";
        for size in 1..said.len() {
            let (mut search, mut noise, mut rest) = (Search::default(), Vec::new(), Vec::new());
            let mut found = false;
            for piece in said.chunks(size) {
                let behind = if found { Some(0) } else { search.look(piece, &mut noise) };
                found = behind.is_some();
                rest.extend_from_slice(&piece[behind.unwrap_or(piece.len())..]);
            }
            assert_eq!(
                (noise.as_slice(), rest.as_slice()),
                (&said[..said.len() - 9], &b"\x01"[..]),
                "{size}"
            );
        }
        let (mut search, mut noise) = (Search::default(), Vec::new());
        assert_eq!(search.look(b"WFSSH1", &mut noise), None);
        search.end(&mut noise);
        assert_eq!(noise, b"WFSSH1");
    }

    proptest! {
        #[test]
        fn any_bytes_are_frames_or_refused_and_little_is_kept(
            pieces in proptest::collection::vec(proptest::collection::vec(0..5u8, 0..64), 0..64),
        ) {
            let mut decoder = Decoder::default();
            'all: for piece in pieces {
                decoder.push(&piece);
                prop_assert!(decoder.buffer.len() <= HEAD + MAX_PIECE + piece.len());
                loop {
                    match decoder.next() {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(_) => break 'all,
                    }
                }
            }
        }
    }
}
