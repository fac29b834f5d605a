//! The bytes of the byte-stream carrier: a preamble, then frames. Encoding and incremental decoding, no state
//! of streams.
//!
//! ```text
//! preamble  "WFMUX1\r\n"                          8 bytes, first in each direction
//! data      00 stream length payload              length ≤ 16384, offset implied
//! data+end  01 stream length payload              the stream ends after the payload
//! reset     02 stream code                        sender gives the stream up
//! stop      03 stream code                        receiver no longer wants the stream
//! ack       04 total                              payload bytes of all streams consumed so far
//! close     05 code length reason                 length ≤ 1024, UTF-8; nothing follows
//! ```
//! Numbers are QUIC varints (RFC 9000 §16). Invariant: a decoder never buffers more than one frame beyond what
//! it was given last, and in any pieces the same bytes give the same frames.

use bytes::{Buf, Bytes, BytesMut};

/// One frame. `stream` is numbered by the side that opened the stream, from 0 in the order of first frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Data { stream: u64, payload: Bytes, end: bool },
    Reset { stream: u64, code: u32 },
    Stop { stream: u64, code: u32 },
    Ack { total: u64 },
    Close { code: u32, reason: String },
}

/// What a peer can do wrong on a byte stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuxError {
    /// The first bytes are not the preamble: the other end is not Wayferry, or something translates its bytes.
    NotWayferry {
        /// What came instead of the preamble.
        found: [u8; PREAMBLE.len()],
    },
    /// A frame of a kind that this version does not define.
    UnknownFrame {
        /// The kind byte.
        kind: u8,
    },
    /// A payload or reason longer than the frame allows.
    TooLong {
        /// The length in the frame.
        length: u64,
        /// The longest allowed.
        limit: u64,
    },
    /// A stream code above 32 bits.
    CodeTooLarge {
        /// The code in the frame.
        code: u64,
    },
    /// A new stream with a number that is not the next one.
    StreamOutOfOrder {
        /// The next free number.
        expected: u64,
        /// The number in the frame.
        found: u64,
    },
    /// A frame of a stream that its sender has finished or reset.
    StreamEnded {
        /// The stream.
        stream: u64,
    },
    /// More streams open at once than allowed.
    TooManyStreams {
        /// The limit.
        limit: usize,
    },
    /// An acknowledgement of bytes that were never sent, or below the one before.
    WrongAck {
        /// The total in the frame.
        total: u64,
    },
}

impl std::fmt::Display for MuxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotWayferry { found } => {
                write!(f, "expected the preamble of a Wayferry byte stream, found `{}`", found.escape_ascii())
            }
            Self::UnknownFrame { kind } => write!(f, "unknown frame kind {kind:#04x}"),
            Self::TooLong { length, limit } => {
                write!(f, "frame of {length} bytes, at most {limit} are allowed")
            }
            Self::CodeTooLarge { code } => write!(f, "stream code {code:#x} has more than 32 bits"),
            Self::StreamOutOfOrder { expected, found } => {
                write!(f, "expected stream {expected} to be opened next, found {found}")
            }
            Self::StreamEnded { stream } => write!(f, "frame of stream {stream}, which has ended"),
            Self::TooManyStreams { limit } => write!(f, "more than {limit} streams open at once"),
            Self::WrongAck { total } => write!(f, "acknowledgement of {total} bytes that were not sent"),
        }
    }
}

impl std::error::Error for MuxError {}

/// The head of a data frame; the caller appends exactly `length` bytes of payload.
pub(crate) fn put_data_head(out: &mut Vec<u8>, stream: u64, length: usize, end: bool) {
    debug_assert!(length <= PAYLOAD_MAX);
    out.push(if end { KIND_DATA_END } else { KIND_DATA });
    put_varint(out, stream);
    put_varint(out, length as u64);
}

/// Any other frame. A reason is cut at [`REASON_MAX`] bytes, at a character.
pub(crate) fn put_frame(out: &mut Vec<u8>, frame: &Frame) {
    match frame {
        Frame::Data { stream, payload, end } => {
            put_data_head(out, *stream, payload.len(), *end);
            out.extend_from_slice(payload);
        }
        Frame::Reset { stream, code } => put_numbers(out, KIND_RESET, &[*stream, u64::from(*code)]),
        Frame::Stop { stream, code } => put_numbers(out, KIND_STOP, &[*stream, u64::from(*code)]),
        Frame::Ack { total } => put_numbers(out, KIND_ACK, &[*total]),
        Frame::Close { code, reason } => {
            let reason = &reason[..reason.floor_char_boundary(REASON_MAX)];
            put_numbers(out, KIND_CLOSE, &[u64::from(*code), reason.len() as u64]);
            out.extend_from_slice(reason.as_bytes());
        }
    }
}

fn put_numbers(out: &mut Vec<u8>, kind: u8, numbers: &[u64]) {
    out.push(kind);
    for number in numbers {
        put_varint(out, *number);
    }
}

/// RFC 9000 §16. Values above 2⁶²−1 do not occur: they count bytes and streams of one connection.
fn put_varint(out: &mut Vec<u8>, value: u64) {
    debug_assert!(value < 1 << 62);
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Incremental decoder of one direction.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: BytesMut,
    greeted: bool,
}

impl Decoder {
    /// Appends what was read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether the bytes so far end between two frames.
    pub(crate) fn is_between_frames(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The next complete frame.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, MuxError> {
        if !self.greeted && !self.greet()? {
            return Ok(None);
        }
        let mut head = Head { bytes: &self.buffer, taken: 0 };
        let Some((kind, numbers)) = head.read()? else {
            return Ok(None);
        };
        let taken = head.taken;
        let body = match kind {
            KIND_DATA | KIND_DATA_END | KIND_CLOSE => numbers[1] as usize,
            _ => 0,
        };
        if self.buffer.len() < taken + body {
            return Ok(None);
        }
        self.buffer.advance(taken);
        let body = self.buffer.split_to(body);
        if self.buffer.is_empty() {
            // Otherwise a kept payload would also keep the unused rest of the buffer.
            self.buffer = BytesMut::new();
        }
        Ok(Some(build(kind, numbers, body)?))
    }

    fn greet(&mut self) -> Result<bool, MuxError> {
        let seen = self.buffer.len().min(PREAMBLE.len());
        if self.buffer[..seen] != PREAMBLE[..seen] {
            let mut found = [0; PREAMBLE.len()];
            found[..seen].copy_from_slice(&self.buffer[..seen]);
            return Err(MuxError::NotWayferry { found });
        }
        if seen == PREAMBLE.len() {
            self.buffer.advance(seen);
            self.greeted = true;
        }
        Ok(self.greeted)
    }
}

/// Reads the kind and its numbers without taking them off the buffer.
struct Head<'a> {
    bytes: &'a [u8],
    taken: usize,
}

impl Head<'_> {
    fn read(&mut self) -> Result<Option<(u8, [u64; 2])>, MuxError> {
        let Some(&kind) = self.bytes.first() else {
            return Ok(None);
        };
        self.taken = 1;
        let (count, limit) = match kind {
            KIND_DATA | KIND_DATA_END => (2, PAYLOAD_MAX as u64),
            KIND_RESET | KIND_STOP => (2, u64::MAX),
            KIND_ACK => (1, u64::MAX),
            KIND_CLOSE => (2, REASON_MAX as u64),
            kind => return Err(MuxError::UnknownFrame { kind }),
        };
        let mut numbers = [0; 2];
        for number in &mut numbers[..count] {
            let Some(value) = self.varint() else {
                return Ok(None);
            };
            *number = value;
        }
        if numbers[1] > limit {
            return Err(MuxError::TooLong { length: numbers[1], limit });
        }
        Ok(Some((kind, numbers)))
    }

    fn varint(&mut self) -> Option<u64> {
        let first = *self.bytes.get(self.taken)?;
        let length = 1 << (first >> 6);
        let bytes = self.bytes.get(self.taken..self.taken + length)?;
        self.taken += length;
        Some(bytes[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
    }
}

fn build(kind: u8, numbers: [u64; 2], body: BytesMut) -> Result<Frame, MuxError> {
    let [stream, second] = numbers;
    let code = |code: u64| u32::try_from(code).map_err(|_| MuxError::CodeTooLarge { code });
    Ok(match kind {
        KIND_RESET => Frame::Reset { stream, code: code(second)? },
        KIND_STOP => Frame::Stop { stream, code: code(second)? },
        KIND_ACK => Frame::Ack { total: stream },
        KIND_CLOSE => {
            Frame::Close { code: code(stream)?, reason: String::from_utf8_lossy(&body).into_owned() }
        }
        _ => {
            // A small payload that is kept would keep the whole read alive.
            let payload = if body.len() < COPY_BELOW { Bytes::copy_from_slice(&body) } else { body.freeze() };
            Frame::Data { stream, payload, end: kind == KIND_DATA_END }
        }
    })
}

/// First bytes in each direction. `\r\n` finds a terminal in between that translates line ends.
pub(crate) const PREAMBLE: [u8; 8] = *b"WFMUX1\r\n";

/// Longest payload of a data frame, in bytes: what a frame of higher priority waits for at most.
pub(crate) const PAYLOAD_MAX: usize = 16 << 10;

/// Longest reason of a close frame, in bytes.
pub(crate) const REASON_MAX: usize = 1024;

/// Payloads below this are copied out of the read buffer.
const COPY_BELOW: usize = 4096;

const KIND_DATA: u8 = 0;
const KIND_DATA_END: u8 = 1;
const KIND_RESET: u8 = 2;
const KIND_STOP: u8 = 3;
const KIND_ACK: u8 = 4;
const KIND_CLOSE: u8 = 5;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame() -> impl Strategy<Value = Frame> {
        let number = prop_oneof![0..100u64, 0..20_000u64, 0..(1u64 << 62)];
        let payload = prop_oneof![0..20usize, 4000..4200usize, Just(PAYLOAD_MAX)];
        prop_oneof![
            (number.clone(), payload, any::<u8>(), any::<bool>()).prop_map(|(stream, length, byte, end)| {
                Frame::Data { stream, payload: vec![byte; length].into(), end }
            }),
            (number.clone(), any::<u32>()).prop_map(|(stream, code)| Frame::Reset { stream, code }),
            (number.clone(), any::<u32>()).prop_map(|(stream, code)| Frame::Stop { stream, code }),
            number.prop_map(|total| Frame::Ack { total }),
            (any::<u32>(), ".{0,40}").prop_map(|(code, reason)| Frame::Close { code, reason }),
        ]
    }

    proptest! {
        #[test]
        fn frames_survive_any_splitting(
            frames in prop::collection::vec(frame(), 0..12),
            cuts in prop::collection::vec(1..5000usize, 1..40),
        ) {
            let mut bytes = PREAMBLE.to_vec();
            for frame in &frames {
                put_frame(&mut bytes, frame);
            }
            let (mut decoder, mut decoded, mut rest) = (Decoder::default(), Vec::new(), &bytes[..]);
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, later) = rest.split_at((*cut).min(rest.len()));
                decoder.push(piece);
                while let Some(frame) = decoder.next().unwrap() {
                    decoded.push(frame);
                }
                rest = later;
            }
            prop_assert!(decoder.is_between_frames());
            prop_assert_eq!(decoded, frames);
        }

        #[test]
        fn garbage_never_panics_and_never_buffers_more_than_a_frame(
            bytes in prop::collection::vec(any::<u8>(), 0..40_000),
        ) {
            let mut decoder = Decoder::default();
            decoder.push(&PREAMBLE);
            decoder.push(&bytes);
            // What follows an error is never asked for: the connection ends with it.
            let end = std::iter::from_fn(|| decoder.next().transpose()).find_map(Result::err);
            prop_assert!(end.is_some() || decoder.buffer.len() < PAYLOAD_MAX + 32);
        }
    }

    #[test]
    fn a_wrong_preamble_is_told_at_its_first_byte() {
        let mut decoder = Decoder::default();
        decoder.push(b"W");
        assert_eq!(decoder.next(), Ok(None));
        decoder.push(b"elcome to");
        let Err(MuxError::NotWayferry { found }) = decoder.next() else { panic!("accepted a greeting") };
        assert_eq!(&found, b"Welcome ");
    }

    #[test]
    fn oversized_and_unknown_frames_are_refused_before_their_body() {
        let refused = |bytes: &[u8]| {
            let mut decoder = Decoder { greeted: true, ..Decoder::default() };
            decoder.push(bytes);
            decoder.next().unwrap_err()
        };
        let too_long = MuxError::TooLong { length: 16385, limit: 16384 };
        assert_eq!(refused(&[0, 5, 0x80, 0, 0x40, 1]), too_long);
        assert_eq!(refused(&[5, 0, 0x44, 1]), MuxError::TooLong { length: 1025, limit: 1024 });
        assert_eq!(refused(&[6]), MuxError::UnknownFrame { kind: 6 });
        let wide = [3, 0, 0xc0, 0, 0, 1, 0, 0, 0, 0];
        assert_eq!(refused(&wide), MuxError::CodeTooLarge { code: 1 << 32 });
    }
}
