//! The frames of a packet that was decrypted, so far as [`super::pieces`] and noq's speed ask for them.
//!
//! noq 1.4 parses PADDING byte by byte, a thousand times in each of a handshake's padded packets. A number may be
//! written in eight bytes (RFC 9000 §16), and noq takes such a kind of frame as the short one, so [`widen`] makes one
//! frame of eight. Invariant: no packet gets shorter (noq counts what a peer may be sent by what it sent), and what is
//! malformed stays as it is. noq's qlog counts PADDING by the frame, so it tells an eighth.

use noq::VarInt;
use noq_proto::coding::Decodable;

/// Makes the PADDING at the end eight times as fast to parse.
pub(super) fn widen(payload: &mut [u8]) {
    if !payload.ends_with(&[PADDING; WIDE]) {
        return;
    }
    let mut rest = &payload[..];
    while let Some(kind) = rest.split_off_first() {
        if *kind == PADDING {
            let run = 1 + rest.iter().take_while(|byte| **byte == PADDING).count();
            if run > rest.len() {
                let start = payload.len() - run;
                payload[start..].chunks_exact_mut(WIDE).for_each(|frame| frame[0] = IN_EIGHT_BYTES);
                return;
            }
            rest = &rest[run - 1..];
        } else if skip(*kind, &mut rest).is_none() {
            return;
        }
    }
}

/// Past a frame of which the first byte was taken; `None` for what is none of RFC 9000 and RFC 9221, or ends the
/// connection.
pub(super) fn skip(kind: u8, rest: &mut &[u8]) -> Option<()> {
    match kind {
        ACK => skip_ack(rest)?,
        ACK_WITH_ECN => {
            skip_ack(rest)?;
            numbers::<3>(rest)?;
        }
        PADDING | PING | HANDSHAKE_DONE => {}
        ALLOW_DATA | ALLOW_STREAMS_BI | ALLOW_STREAMS_UNI | DATA_BLOCKED | STREAMS_BLOCKED_BI
        | STREAMS_BLOCKED_UNI | RETIRE_CONNECTION_ID => drop(number(rest)?),
        STOP_SENDING | ALLOW_STREAM_DATA | STREAM_DATA_BLOCKED => drop(numbers::<2>(rest)?),
        RESET_STREAM => drop(numbers::<3>(rest)?),
        CRYPTO => {
            number(rest)?;
            skip_bytes(rest)?;
        }
        STREAM..=STREAM_LAST => {
            number(rest)?;
            if kind & OFFSET != 0 {
                number(rest)?;
            }
            if kind & LENGTH != 0 { skip_bytes(rest)? } else { *rest = &[] }
        }
        DATAGRAM => *rest = &[],
        NEW_TOKEN | DATAGRAM_WITH_LENGTH => skip_bytes(rest)?,
        NEW_CONNECTION_ID => {
            numbers::<2>(rest)?;
            let length = usize::from(*rest.split_off_first()?);
            rest.split_off(..length + RESET_TOKEN)?;
        }
        PATH_CHALLENGE | PATH_RESPONSE => drop(rest.split_off(..8)?),
        _ => return None,
    }
    Some(())
}

fn skip_ack(rest: &mut &[u8]) -> Option<()> {
    let [_largest, _delay, ranges, _first] = numbers(rest)?;
    for _ in 0..ranges.into_inner() {
        numbers::<2>(rest)?;
    }
    Some(())
}

/// A number, and so many bytes.
fn skip_bytes(rest: &mut &[u8]) -> Option<()> {
    let length = usize::try_from(number(rest)?.into_inner()).ok()?;
    rest.split_off(..length).map(drop)
}

pub(super) fn number(rest: &mut &[u8]) -> Option<VarInt> {
    VarInt::decode(rest).ok()
}

fn numbers<const N: usize>(rest: &mut &[u8]) -> Option<[VarInt; N]> {
    let mut numbers = [VarInt::from_u32(0); N];
    for place in &mut numbers {
        *place = number(rest)?;
    }
    Some(numbers)
}

/// Kinds of frames (RFC 9000 §19); STREAM's has bits.
pub(super) const PADDING: u8 = 0x00;
pub(super) const PING: u8 = 0x01;
pub(super) const ACK: u8 = 0x02;
pub(super) const ACK_WITH_ECN: u8 = 0x03;
pub(super) const RESET_STREAM: u8 = 0x04;
pub(super) const STOP_SENDING: u8 = 0x05;
pub(super) const CRYPTO: u8 = 0x06;
pub(super) const NEW_TOKEN: u8 = 0x07;
pub(super) const STREAM: u8 = 0x08;
pub(super) const STREAM_LAST: u8 = 0x0f;
pub(super) const FIN: u8 = 0x01;
pub(super) const LENGTH: u8 = 0x02;
pub(super) const OFFSET: u8 = 0x04;
/// MAX_DATA and its like.
pub(super) const ALLOW_DATA: u8 = 0x10;
pub(super) const ALLOW_STREAM_DATA: u8 = 0x11;
pub(super) const ALLOW_STREAMS_BI: u8 = 0x12;
pub(super) const ALLOW_STREAMS_UNI: u8 = 0x13;
pub(super) const DATA_BLOCKED: u8 = 0x14;
pub(super) const STREAM_DATA_BLOCKED: u8 = 0x15;
pub(super) const STREAMS_BLOCKED_BI: u8 = 0x16;
pub(super) const STREAMS_BLOCKED_UNI: u8 = 0x17;
pub(super) const NEW_CONNECTION_ID: u8 = 0x18;
pub(super) const RETIRE_CONNECTION_ID: u8 = 0x19;
pub(super) const PATH_CHALLENGE: u8 = 0x1a;
pub(super) const PATH_RESPONSE: u8 = 0x1b;
pub(super) const HANDSHAKE_DONE: u8 = 0x1e;
/// RFC 9221 §4. One without its length takes the rest of the packet.
pub(super) const DATAGRAM: u8 = 0x30;
pub(super) const DATAGRAM_WITH_LENGTH: u8 = 0x31;

/// Bytes of a stateless reset token (RFC 9000 §19.15).
const RESET_TOKEN: usize = 16;

/// Bytes of a wide PADDING frame, and the first of them: the others are zero.
const WIDE: usize = 8;
const IN_EIGHT_BYTES: u8 = 0xc0;

#[cfg(test)]
mod tests {
    use bytes::Buf;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The frames that noq makes of a packet without STREAM and the like: kinds, and for CRYPTO its bytes.
    fn parsed(mut packet: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut frames = Vec::new();
        while packet.has_remaining() {
            let kind = number(&mut packet).unwrap().into_inner();
            let bytes = if kind == u64::from(CRYPTO) {
                number(&mut packet).unwrap();
                let length = number(&mut packet).unwrap().into_inner() as usize;
                packet.split_off(..length).unwrap().to_vec()
            } else {
                vec![]
            };
            if kind != u64::from(PADDING) {
                frames.push((kind, bytes));
            }
        }
        frames
    }

    proptest! {
        /// Zeros at the end of what TLS says are no PADDING.
        #[test]
        fn wide_padding_is_parsed_as_before(
            before in 0..40usize, said in vec(prop_oneof![Just(0u8), any::<u8>()], 0..60), after in 0..1200usize,
        ) {
            let head = [&vec![PADDING; before][..], &[PING, CRYPTO, 0, said.len() as u8], &said].concat();
            let whole = [&head[..], &vec![PADDING; after]].concat();
            let mut wide = whole.clone();
            widen(&mut wide);
            prop_assert_eq!(wide.len(), whole.len());
            prop_assert_eq!(&wide[..head.len()], &head);
            prop_assert_eq!(parsed(&wide), parsed(&whole));
            let starts = wide[head.len()..].iter().filter(|byte| **byte == IN_EIGHT_BYTES).count();
            prop_assert_eq!(starts, after / WIDE);
        }

        #[test]
        fn what_is_no_packet_stays_as_it_is(bytes in vec(any::<u8>(), 0..80)) {
            let whole = [&[CRYPTO, 0, 0x7f, 0xff][..], &bytes, &[PADDING; 20]].concat();
            let mut wide = whole.clone();
            widen(&mut wide);
            prop_assert_eq!(wide, whole);
        }

        #[test]
        fn only_zeros_at_the_end_change(bytes in vec(0..64u8, 0..80)) {
            let whole = [&bytes[..], &[PADDING; 20]].concat();
            let mut wide = whole.clone();
            widen(&mut wide);
            prop_assert_eq!(wide.len(), whole.len());
            let kept = whole.iter().rposition(|byte| *byte != PADDING).map_or(0, |last| last + 1);
            prop_assert_eq!(&wide[..kept], &whole[..kept]);
            prop_assert!(wide[kept..].iter().all(|byte| [PADDING, IN_EIGHT_BYTES].contains(byte)));
        }
    }

    #[test]
    fn the_data_of_a_stream_that_ends_its_packet_is_no_padding() {
        let whole = [&[STREAM, 4][..], &[0; 100]].concat();
        let mut wide = whole.clone();
        widen(&mut wide);
        assert_eq!(wide, whole);
    }
}
