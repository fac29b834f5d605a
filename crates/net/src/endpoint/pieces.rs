//! Cuts what a packet brought of a stream in two, so that noq can merge it with its neighbours.
//!
//! noq 1.4 keeps such a piece apart if it is five sixths of its packet or more, and closes the connection when more
//! than 2048 wait of one stream, even if none is missing between them. So 2049 short messages that the application did
//! not read were enough. (quinn, where this comes from, has merged them since its pull request 2814.) Half a piece is
//! small enough. Long ones right before the reader stay whole, as to cut all costs a fifth of the throughput; so do
//! those of a stream that is read in any order, of which noq loses what it merges behind a gap. Invariants: no byte of
//! a stream changes, nor its place, and what is malformed stays so; of a stream that is read in order at most 357
//! pieces wait that noq cannot merge, and as many between them.
//!
//! noq's 1024 pieces are still few where a stream that waits has hundreds of gaps, or tens of thousands of frames of
//! some bytes beside the data of others.

use std::ops::Range;

use bytes::{BufMut, BytesMut};
use noq::VarInt;
use noq_proto::coding::Encodable;

use super::frames::{FIN, LENGTH, OFFSET, PADDING, STREAM, STREAM_LAST, number, skip};
use super::readers::{Place, Readers};

/// Cuts the STREAM frame that fills most of a packet, if one does (RFC 9000 §19.8), and notes what noq may merge.
pub(super) fn cut(payload: &mut BytesMut, readers: &Readers) {
    let (mut rest, mut filling) = (&payload[..], None);
    while let Some(frame) = Frame::next(payload, &mut rest) {
        let fills = frame.data.len() * 6 / 5 >= payload.len();
        let place = readers.find(frame.id.into_inner());
        if fills && place.as_ref().is_some_and(|place| frame.stays(place)) {
            continue;
        }
        if let Some(place) = place {
            place.cut(frame.end());
        }
        if fills {
            filling = Some(frame);
        }
    }
    if !rest.is_empty() {
        readers.lose_count();
    }
    if let Some(frame) = filling {
        frame.cut(payload);
    }
}

/// A STREAM frame, and where it is in its packet.
#[derive(Debug)]
struct Frame {
    start: usize,
    kind: u8,
    id: VarInt,
    offset: VarInt,
    data: Range<usize>,
}

impl Frame {
    /// The next in `rest`, which is left with what follows; or with something, if what comes before is no frame of RFC
    /// 9000 and RFC 9221, or ends the connection.
    fn next(payload: &[u8], rest: &mut &[u8]) -> Option<Self> {
        let at = |rest: &[u8]| payload.len() - rest.len();
        loop {
            let start = at(rest);
            match *rest.split_off_first()? {
                kind @ STREAM..=STREAM_LAST => {
                    let id = number(rest)?;
                    let offset = if kind & OFFSET == 0 { VarInt::from_u32(0) } else { number(rest)? };
                    let length = match kind & LENGTH {
                        0 => rest.len(),
                        _ => usize::try_from(number(rest)?.into_inner()).ok()?,
                    };
                    let data = at(rest)..at(rest) + rest.split_off(..length)?.len();
                    return Some(Self { start, kind, id, offset, data });
                }
                kind => skip(kind, rest)?,
            }
        }
    }

    fn end(&self) -> u64 {
        self.offset.into_inner() + self.data.len() as u64
    }

    /// Whether it is not cut although it fills its packet.
    fn stays(&self, place: &Place) -> bool {
        place.distance(self.end()).is_none_or(|distance| self.data.len() >= LONG && distance <= NEAR)
    }

    /// In place: a packet that was decrypted has room where its tag was. Where the peer's header is longer than two of
    /// ours, there is PADDING before them.
    fn cut(&self, payload: &mut BytesMut) {
        let half = self.data.len() / 2;
        let middle = self.data.start + half;
        let mut headers = [0; 2 * HEADER_ROOM];
        let mut free = &mut headers[..];
        self.put_header(self.kind & !FIN | LENGTH, 0, half, &mut free);
        let first = 2 * HEADER_ROOM - free.len();
        self.put_header(self.kind | OFFSET, half, self.data.len() - half, &mut free);
        let both = 2 * HEADER_ROOM - free.len();
        let (first, second) = headers[..both].split_at(first);

        let old = self.data.start - self.start;
        let (more, less) = (both.saturating_sub(old), old.saturating_sub(both));
        let end = payload.len();
        payload.resize(end + more, 0);
        payload.copy_within(middle..end, middle + more);
        let start = self.start + less;
        payload.copy_within(self.data.start..middle, start + first.len());
        payload[self.start..start].fill(PADDING);
        payload[start..][..first.len()].copy_from_slice(first);
        payload[middle + more - second.len()..][..second.len()].copy_from_slice(second);
    }

    /// Of a frame of `length` bytes, the first of which are `skipped` bytes behind this one's.
    fn put_header(&self, kind: u8, skipped: usize, length: usize, out: &mut impl BufMut) {
        out.put_u8(kind);
        self.id.encode(out);
        if kind & OFFSET != 0 {
            // noq refuses one that would be more, and with it the frame.
            VarInt::from_u64(self.offset.into_inner() + skipped as u64).unwrap_or(VarInt::MAX).encode(out);
        }
        if kind & LENGTH != 0 {
            VarInt::try_from(length).unwrap_or(VarInt::MAX).encode(out);
        }
    }
}

/// Bytes of a header: the kind and three numbers.
const HEADER_ROOM: usize = 1 + 3 * 8;

/// Bytes of a frame that may stay whole, which full packets have, and how far it may reach beyond what was read: there
/// are 357 at most.
const LONG: usize = 1100;
const NEAR: u64 = 384 << 10;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::Config;
    use super::super::frames::*;
    use super::*;

    /// What a peer may send of a stream.
    #[derive(Clone, Debug)]
    struct Sent {
        before: Vec<u8>,
        kind: u8,
        id: u64,
        offset: u64,
        data: Vec<u8>,
        /// Each number is written in eight bytes.
        wide: bool,
    }

    impl Sent {
        fn number(&self, number: u64, out: &mut Vec<u8>) {
            if self.wide {
                out.put_u64(number | 3 << 62);
            } else {
                VarInt::from_u64(number).unwrap().encode(out);
            }
        }

        /// The packet's frames, the last of which is a PING if the stream's says where it ends.
        fn packet(&self) -> BytesMut {
            let mut bytes = self.before.clone();
            bytes.push(self.kind);
            self.number(self.id, &mut bytes);
            if self.kind & OFFSET != 0 {
                self.number(self.offset, &mut bytes);
            }
            if self.kind & LENGTH != 0 {
                self.number(self.data.len() as u64, &mut bytes);
            }
            bytes.extend(&self.data);
            if self.kind & LENGTH != 0 {
                bytes.push(PING);
            }
            BytesMut::from(&bytes[..])
        }

        fn begins_at(&self) -> u64 {
            if self.kind & OFFSET == 0 { 0 } else { self.offset }
        }
    }

    fn sent() -> impl Strategy<Value = Sent> {
        let before = prop_oneof![
            Just(vec![]),
            Just(vec![PADDING, PING]),
            Just(vec![ACK, 9, 1, 2, 1, 0, 0, 0, 3]),
            Just(vec![ACK_WITH_ECN, 0x40, 9, 1, 0, 1, 1, 2, 3, ALLOW_DATA, 5]),
            Just(vec![DATAGRAM_WITH_LENGTH, 3, 1, 2, 3, HANDSHAKE_DONE]),
            Just(vec![NEW_TOKEN, 1, 1, CRYPTO, 0, 2, 1, 2]),
            Just(
                [&[NEW_CONNECTION_ID, 1, 0, 4][..], &[7; 20], &[PATH_RESPONSE, 1, 2, 3, 4, 5, 6, 7, 8]]
                    .concat()
            ),
            Just(vec![DATA_BLOCKED, 5, STREAM_DATA_BLOCKED, 4, 5]),
            Just(vec![STREAMS_BLOCKED_UNI, 6, RETIRE_CONNECTION_ID, 0]),
            Just(vec![STOP_SENDING, 4, 0, RESET_STREAM, 4, 0, 9]),
            Just(vec![ALLOW_STREAMS_BI, 7, ALLOW_STREAM_DATA, 8, 9]),
        ];
        let (id, offset) = (0..1u64 << 62, 0..(1u64 << 62) - 2000);
        (before, STREAM..=STREAM_LAST, id, offset, vec(any::<u8>(), 0..1500), any::<bool>())
            .prop_map(|(before, kind, id, offset, data, wide)| Sent { before, kind, id, offset, data, wide })
    }

    /// A STREAM frame's kind, stream and offset, and its data.
    fn take_stream<'a>(rest: &mut &'a [u8]) -> (u8, u64, u64, &'a [u8]) {
        let kind = *rest.split_off_first().unwrap();
        let mut next = || number(rest).unwrap().into_inner();
        let id = next();
        let offset = if kind & OFFSET == 0 { 0 } else { next() };
        let length = if kind & LENGTH == 0 { None } else { Some(next() as usize) };
        (kind, id, offset, rest.split_off(..length.unwrap_or(rest.len())).unwrap())
    }

    proptest! {
        #[test]
        fn two_halves_are_what_one_was(sent in sent()) {
            let whole = sent.packet();
            let mut packet = whole.clone();
            cut(&mut packet, &Readers::default());
            if sent.data.len() * 6 / 5 < whole.len() {
                prop_assert_eq!(packet, whole);
                return Ok(());
            }
            let mut rest = packet.strip_prefix(&sent.before[..]).unwrap();
            while rest[0] == PADDING {
                rest = &rest[1..];
            }
            let (first, second) = (take_stream(&mut rest), take_stream(&mut rest));
            prop_assert_eq!((first.0, second.0), (sent.kind & !FIN | LENGTH, sent.kind | OFFSET));
            prop_assert_eq!((first.1, second.1), (sent.id, sent.id));
            prop_assert_eq!((first.2, second.2), (sent.begins_at(), sent.begins_at() + first.3.len() as u64));
            prop_assert_eq!([first.3, second.3].concat(), sent.data);
            prop_assert_eq!(rest, if sent.kind & LENGTH == 0 { &[][..] } else { &[PING] });
            for half in [first.3, second.3] {
                prop_assert!(!half.is_empty() && half.len() * 6 / 5 < packet.len());
            }
        }

        #[test]
        fn what_is_no_packet_is_left_or_cut_without_harm(mut bytes in vec(0..64u8, 0..80)) {
            let mut packet = BytesMut::from(&bytes[..]);
            cut(&mut packet, &Readers::default());
            prop_assert!(packet.len() >= bytes.len() && packet.len() <= bytes.len() + 2 * HEADER_ROOM);
            // A frame whose length is a lie is one that noq refuses.
            bytes.splice(..0, [STREAM | LENGTH, 4, 0x7f, 0xff]);
            let mut packet = BytesMut::from(&bytes[..]);
            cut(&mut packet, &Readers::default());
            prop_assert_eq!(packet, &bytes[..]);
        }
    }

    #[test]
    fn long_frames_stay_whole_close_before_their_reader() {
        let readers = Arc::new(Readers::default());
        let is_cut = |offset, size| {
            let sent = Sent {
                before: vec![],
                kind: STREAM | OFFSET,
                id: 4,
                offset,
                data: vec![1; size],
                wide: false,
            };
            let mut packet = sent.packet();
            cut(&mut packet, &readers);
            packet != sent.packet()
        };
        assert!(is_cut(0, LONG), "it has no reader");
        let reader = readers.add(4, 0);
        assert!(!is_cut(0, LONG) && !is_cut(NEAR - LONG as u64, LONG));
        assert!(is_cut(NEAR - LONG as u64 + 1, LONG) && is_cut(0, LONG - 1));
        reader.read(1);
        assert!(!is_cut(NEAR - LONG as u64 + 1, LONG));
        reader.leave_order();
        assert!(!is_cut(0, LONG - 1) && !is_cut(1 << 40, LONG));
        drop(reader);
        assert!(is_cut(0, LONG));
    }

    #[test]
    fn what_may_be_merged_is_noted() {
        let readers = Arc::new(Readers::default());
        let reader = readers.add(4, 0);
        reader.read(Config::STREAM_WINDOW_MAX.into());
        let hear = |frames: &[&[u8]]| cut(&mut BytesMut::from(&frames.concat()[..]), &readers);
        // Two that share a packet, of which neither fills it.
        let (at, size) = (Config::STREAM_WINDOW_MAX | 0x8000_0000, [7; 40]);
        let frame =
            |stream| [&[STREAM | OFFSET | LENGTH, stream][..], &at.to_be_bytes(), &[40], &size].concat();
        assert_eq!(reader.merged(), 0);
        hear(&[&frame(8), &frame(4)]);
        assert_eq!(reader.merged(), 40);
        // What it does not know may hide one.
        hear(&[&[0x40, 0xaf, 1, 2, 3]]);
        assert_eq!(reader.merged(), u64::MAX);
    }
}
