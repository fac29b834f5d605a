//! The sound packet, and several of them in one datagram or on a stream.
//!
//! ```text
//! packet    track and flags (1 byte: 4 bits each, the track above), sequence (4 bytes, little-endian),
//!           capture time (varint), payload: all the rest
//! framed    length (varint), packet; any number of them
//! ```
//!
//! It knows neither codecs nor streams. Invariant: what [`Packet::encode`] wrote, [`Packet::parse`] reads back, and a
//! packet that was read can be written again.

use wayferry_proto::Error as WireError;
use wayferry_proto::wire::{Reader, VARINT_MAX, Writer, varint_len};

use crate::error::Error;
use crate::sample::{CHANNELS, FrameSize, Position};

/// Some milliseconds of sound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Which flow of sound: a session's, a microphone's. At most [`MAX_TRACK`].
    pub track: u8,
    /// Counts packets of the track, and wraps.
    pub sequence: u32,
    /// When its first frame was captured, by the sound clock of the sender. Fits a varint.
    pub capture: Position,
    /// What is special about it.
    pub flags: Flags,
    /// Encoded sound, at most [`MAX_PAYLOAD`] bytes; nothing if the flow becomes idle.
    pub payload: Vec<u8>,
}

/// What is special about a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Sound begins here, after silence that was not sent.
    pub start: bool,
    /// Silence begins here, which is not sent. Such a packet has no payload.
    pub idle: bool,
    /// Sequence and capture time have nothing to do with those before.
    pub discontinuity: bool,
}

impl Packet {
    /// Bytes of its encoding.
    pub fn encoded_len(&self) -> usize {
        1 + 4 + varint_len(self.capture.0.min(VARINT_MAX)) + self.payload.len()
    }

    /// Appends its bytes to `writer`. What exceeds its limit is cut to it: no caller makes such packets.
    pub fn encode(&self, writer: &mut Writer) {
        debug_assert!(self.track <= MAX_TRACK && self.capture.0 <= VARINT_MAX);
        debug_assert!(self.payload.len() <= MAX_PAYLOAD && (!self.flags.idle || self.payload.is_empty()));
        writer.u8(self.track << 4 | self.flags.bits()).u32(self.sequence);
        writer.varint(self.capture.0.min(VARINT_MAX)).raw(&self.payload);
    }

    /// Its bytes alone.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        writer.into_vec()
    }

    /// Reads one packet from all of `bytes`.
    ///
    /// # Errors
    /// The bytes are not a packet.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let head = reader.u8("track and flags of a sound packet")?;
        let flags = Flags::from_bits(head & 0xf)?;
        let sequence = reader.u32("sequence of a sound packet")?;
        let capture = Position(reader.varint("capture time of a sound packet")?);
        let expected = "payload of a sound packet";
        let payload = reader.rest();
        let most = if flags.idle { 0 } else { MAX_PAYLOAD };
        if payload.len() > most {
            return Err(
                WireError::OutOfRange { expected, max: most as u64, got: payload.len() as u64 }.into()
            );
        }
        if payload.is_empty() && !flags.idle {
            return Err(WireError::Truncated { expected }.into());
        }
        Ok(Self { track: head >> 4, sequence, capture, flags, payload: payload.to_vec() })
    }
}

impl Flags {
    fn bits(self) -> u8 {
        u8::from(self.start) | u8::from(self.idle) << 1 | u8::from(self.discontinuity) << 2
    }

    fn from_bits(bits: u8) -> Result<Self, Error> {
        if bits > 7 {
            let expected = "flags of a sound packet";
            return Err(WireError::Unknown { expected, got: bits.into() }.into());
        }
        Ok(Self { start: bits & 1 != 0, idle: bits & 2 != 0, discontinuity: bits & 4 != 0 })
    }
}

/// Packets with their lengths before them, as they are in datagrams and on streams.
pub fn datagram<'a>(packets: impl IntoIterator<Item = &'a Packet>) -> Vec<u8> {
    let mut writer = Writer::new();
    for packet in packets {
        writer.varint(packet.encoded_len() as u64);
        packet.encode(&mut writer);
    }
    writer.into_vec()
}

/// The packets of a datagram, up to [`MAX_IN_DATAGRAM`]; an error ends it.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Packets<'a> {
    /// The packets in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { reader: Reader::new(bytes), left: MAX_IN_DATAGRAM }
    }

    fn read(&mut self) -> Result<Packet, Error> {
        if self.left == 0 {
            let got = MAX_IN_DATAGRAM as u64 + 1;
            let expected = "number of sound packets";
            return Err(WireError::OutOfRange { expected, max: got - 1, got }.into());
        }
        self.left -= 1;
        let packet = self.reader.bytes(MAX_PAYLOAD + HEAD, "sound packet")?;
        Packet::parse(packet)
    }
}

impl Iterator for Packets<'_> {
    type Item = Result<Packet, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.reader.rest();
        }
        Some(read)
    }
}

/// The largest number of a track.
pub const MAX_TRACK: u8 = 15;

/// Bytes of a payload: 20 ms of 16-bit stereo, which is more than any codec's.
pub const MAX_PAYLOAD: usize = FrameSize::Ms20.frames() * CHANNELS * 2;

/// Packets of one datagram. A sender puts in at most three: a frame and two copies of earlier ones.
pub const MAX_IN_DATAGRAM: usize = 4;

/// Longest header before the payload.
const HEAD: usize = 1 + 4 + 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packets() -> impl Strategy<Value = Packet> {
        let flags = (any::<bool>(), any::<bool>());
        let payload = prop::collection::vec(any::<u8>(), 1..400);
        (0..=MAX_TRACK, any::<u32>(), 0..=VARINT_MAX, flags, prop::option::of(payload)).prop_map(
            |(track, sequence, capture, (start, discontinuity), payload)| Packet {
                track,
                sequence,
                capture: Position(capture),
                flags: Flags { start, idle: payload.is_none(), discontinuity },
                payload: payload.unwrap_or_default(),
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(packet in packets()) {
            let bytes = packet.to_vec();
            prop_assert_eq!(bytes.len(), packet.encoded_len());
            prop_assert_eq!(Packet::parse(&bytes), Ok(packet));
        }

        #[test]
        fn several_are_read_in_their_order(packets in prop::collection::vec(packets(), 0..=MAX_IN_DATAGRAM)) {
            let bytes = datagram(&packets);
            let read: Result<Vec<Packet>, Error> = Packets::new(&bytes).collect();
            prop_assert_eq!(read, Ok(packets));
        }

        #[test]
        fn every_truncation_is_refused(packet in packets()) {
            let bytes = datagram([&packet]);
            for end in 1..bytes.len() {
                prop_assert!(Packets::new(&bytes[..end]).any(|read| read.is_err()));
            }
            // Alone, a packet cannot tell that its payload was longer, but that there is none.
            let (bytes, head) = (packet.to_vec(), packet.encoded_len() - packet.payload.len());
            let shortest = head + usize::from(!packet.flags.idle);
            for end in 0..shortest {
                prop_assert!(Packet::parse(&bytes[..end]).is_err());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for packet in Packets::new(&bytes).flatten() {
                prop_assert_eq!(Packet::parse(&packet.to_vec()), Ok(packet));
            }
        }
    }

    #[test]
    fn limits_hold() {
        let packet = Packet { payload: vec![0; MAX_PAYLOAD], ..Packet::default() };
        let mut bytes = packet.to_vec();
        assert_eq!(Packet::parse(&bytes), Ok(packet));
        bytes.push(0);
        assert!(Packet::parse(&bytes).is_err(), "a longer payload");
        assert!(Packet::parse(&[8, 0, 0, 0, 0, 0, 1]).is_err(), "an unknown flag");
        assert!(Packet::parse(&[2, 0, 0, 0, 0, 0, 1]).is_err(), "an idle packet with sound");
        let small = Packet { payload: vec![1], ..Packet::default() };
        let five = datagram(std::iter::repeat_n(&small, MAX_IN_DATAGRAM + 1));
        assert_eq!(Packets::new(&five).filter(Result::is_err).count(), 1);
        assert_eq!(small.encoded_len(), 7, "six bytes before the payload");
    }
}
