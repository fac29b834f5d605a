//! Reads packets of this crate's own hosts: number and frames, as far as causes of delay are among them.
//!
//! They are not encrypted (`crypto.rs`): a short header with an id of eight bytes, frames, and where AES-GCM has its
//! tag the packet number. Invariant: of a packet that cannot be read, the frames before the unknown one are told.

use wayferry_proto::Time;

/// A packet as it left the queue of its lane.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) at: Time,
    pub(crate) lost: bool,
    pub(crate) number: u64,
    pub(crate) frames: Vec<Frame>,
}

/// A frame of QUIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Up to this number.
    Ack(u64),
    /// Bytes of a stream.
    Stream { number: u64, offset: u64, bytes: Vec<u8>, end: bool },
    /// Of this type.
    Other(u64),
}

impl Packet {
    /// Reads one; `None` if it has no short header or is cut.
    pub(crate) fn read(at: Time, lost: bool, bytes: &[u8]) -> Option<Self> {
        let first = *bytes.first().filter(|first| **first & 0x80 == 0)?;
        let end = bytes.len().checked_sub(TAG)?;
        let number = u64::from_be_bytes(bytes.get(end..end + 8)?.try_into().ok()?);
        let body = bytes.get(1 + ID + usize::from(first & 3) + 1..end)?;
        Some(Self { at, lost, number, frames: frames(Reader(body)) })
    }
}

fn frames(mut reader: Reader<'_>) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some(kind) = reader.varint() {
        match frame(kind, &mut reader) {
            Some(Some(frame)) => frames.push(frame),
            Some(None) => {}
            None => {
                frames.push(Frame::Other(kind));
                break;
            }
        }
    }
    frames
}

/// RFC 9000 §19. Nothing for padding; `None` for what is not known here.
fn frame(kind: u64, reader: &mut Reader<'_>) -> Option<Option<Frame>> {
    Some(Some(match kind {
        0 => return Some(None),
        1 => Frame::Other(kind),
        2 | 3 => {
            let largest = reader.varint()?;
            reader.skip(1)?;
            let ranges = reader.varint()?;
            reader.skip(1 + 2 * ranges + if kind == 3 { 3 } else { 0 })?;
            Frame::Ack(largest)
        }
        8..=15 => {
            let number = reader.varint()? / 4;
            let offset = if kind & 4 != 0 { reader.varint()? } else { 0 };
            let length = if kind & 2 != 0 { usize::try_from(reader.varint()?).ok()? } else { reader.0.len() };
            Frame::Stream { number, offset, bytes: reader.take(length)?.to_vec(), end: kind & 1 != 0 }
        }
        4 | 5 | 0x10..=0x17 | IMMEDIATE_ACK | ACK_FREQUENCY => {
            let fields = match kind {
                4 => 3,
                5 | 0x11 | 0x15 => 2,
                ACK_FREQUENCY => 4,
                IMMEDIATE_ACK => 0,
                _ => 1,
            };
            reader.skip(fields)?;
            Frame::Other(kind)
        }
        _ => return None,
    }))
}

/// Takes what is in front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// RFC 9000 §16.
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let length = 1usize << (self.0.first()? >> 6);
        let bytes = self.take(length)?;
        let first = u64::from(bytes[0] & 0x3f);
        Some(bytes[1..].iter().fold(first, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        (0..count).try_for_each(|_| self.varint().map(drop))
    }
}

/// Of a connection id, and of what stands where the tag would be.
const ID: usize = 8;
const TAG: usize = 16;

/// Of QUIC's extension for acknowledgement frequency.
const IMMEDIATE_ACK: u64 = 0x1f;
const ACK_FREQUENCY: u64 = 0xaf;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_up_to_one_that_is_unknown() {
        let mut bytes = vec![0x41];
        bytes.extend([9; 8]);
        bytes.extend([0, 7]);
        bytes.extend([2, 0x40, 0x50, 0, 1, 3, 0, 1]);
        bytes.extend([0x0f, 8, 5, 3, b'a', b'b', b'c']);
        bytes.extend([0, 0, 0x21, 1]);
        bytes.extend(7u64.to_be_bytes());
        bytes.extend([0; 8]);
        let packet = Packet::read(Time::ZERO, true, &bytes).unwrap();
        let stream = Frame::Stream { number: 2, offset: 5, bytes: b"abc".to_vec(), end: true };
        assert_eq!(packet.number, 7);
        assert_eq!(packet.frames, [Frame::Ack(80), stream, Frame::Other(0x21)]);
        assert!(Packet::read(Time::ZERO, true, &bytes[..20]).is_none());
        assert!(Packet::read(Time::ZERO, true, &[0xc0; 40]).is_none());
    }
}
