//! The first bytes of streams and datagrams (draft-ietf-webtrans-http3 §4.2, §4.3, §4.4; RFC 9297 §2.1).
//!
//! Pure: it is given bytes, and says what they are or how many more it needs. It does not read what HTTP/3 has in its
//! streams. Invariant: it never asks for a byte that is not the header's.

use bytes::{Buf, Bytes};
use web_transport_proto::{Capsule, Frame, StreamUni, VarInt};

/// What is known of the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<T> {
    /// So many more are needed.
    More(usize),
    /// All are there.
    Done(T),
}

/// A stream that the peer sends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uni {
    /// HTTP/3's settings.
    Control,
    /// One of the two of QPACK.
    Qpack(StreamUni),
    /// A session's, with the session's number.
    Session(u64),
    /// Another.
    Other,
}

/// A stream both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bi {
    /// A session's, with the session's number.
    Session(u64),
    /// A request of HTTP/3.
    Request,
}

/// What a stream is that the peer sends on.
pub(crate) fn uni(bytes: &[u8]) -> Step<Uni> {
    number(bytes).then(|kind, rest| match StreamUni(kind) {
        StreamUni::CONTROL => Step::Done(Uni::Control),
        kind @ (StreamUni::QPACK_ENCODER | StreamUni::QPACK_DECODER) => Step::Done(Uni::Qpack(kind)),
        StreamUni::WEBTRANSPORT => {
            number(rest).then(|session, _| Step::Done(Uni::Session(session.into_inner())))
        }
        _ => Step::Done(Uni::Other),
    })
}

/// What a stream both ways is.
pub(crate) fn bi(bytes: &[u8]) -> Step<Bi> {
    number(bytes).then(|kind, rest| match Frame(kind) {
        Frame::WEBTRANSPORT => number(rest).then(|session, _| Step::Done(Bi::Session(session.into_inner()))),
        _ => Step::Done(Bi::Request),
    })
}

/// What a session's stream begins with.
pub(crate) fn stream_header(session: VarInt, both_ways: bool) -> Vec<u8> {
    let mut header = Vec::with_capacity(10);
    match both_ways {
        true => Frame::WEBTRANSPORT.encode(&mut header),
        false => StreamUni::WEBTRANSPORT.encode(&mut header),
    }
    session.encode(&mut header);
    header
}

/// What a session's datagram begins with: a quarter of the session's number.
pub(crate) fn datagram_header(session: VarInt) -> Vec<u8> {
    let mut header = Vec::with_capacity(8);
    VarInt::from_u64(session.into_inner() / 4).unwrap_or_default().encode(&mut header);
    header
}

/// A datagram without its header; `None` when it has another one. The number may be written in more bytes than it
/// needs.
pub(crate) fn strip_datagram(mut data: Bytes, header: &[u8]) -> Option<Bytes> {
    let Step::Done((number, rest)) = number(&data).then(|number, rest| Step::Done((number, rest.len())))
    else {
        return None;
    };
    data.advance(data.len() - rest);
    (VarInt::decode(&mut &*header) == Ok(number)).then_some(data)
}

/// The capsule that ends a session, in its frame. The reason keeps 1024 bytes at most (draft-ietf-webtrans-http3 §6).
pub(crate) fn close(code: u32, reason: &str) -> Vec<u8> {
    let mut end = reason.len().min(1024);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let mut capsule = Vec::new();
    Capsule::CloseWebTransportSession { code, reason: reason[..end].to_owned() }.encode(&mut capsule);
    let mut frame = Vec::with_capacity(capsule.len() + 4);
    Frame::DATA.encode(&mut frame);
    VarInt::try_from(capsule.len()).unwrap_or_default().encode(&mut frame);
    frame.extend(capsule);
    frame
}

/// A number at the beginning of bytes (RFC 9000 §16), or how many bytes of it are missing.
struct Number<'a>(Result<(VarInt, &'a [u8]), usize>);

fn number(bytes: &[u8]) -> Number<'_> {
    let length = bytes.first().map_or(1, |first| 1 << (first >> 6));
    let mut rest = bytes;
    Number(match VarInt::decode(&mut rest) {
        Ok(number) => Ok((number, rest)),
        Err(_) => Err(length - bytes.len()),
    })
}

impl<'a> Number<'a> {
    fn then<T>(self, next: impl FnOnce(VarInt, &'a [u8]) -> Step<T>) -> Step<T> {
        match self.0 {
            Ok((number, rest)) => next(number, rest),
            Err(missing) => Step::More(missing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives bytes as they are asked for; what was found, and how many it took.
    fn feed<T>(bytes: &[u8], parse: fn(&[u8]) -> Step<T>) -> Option<(T, usize)> {
        let mut given = 0;
        loop {
            match parse(&bytes[..given]) {
                Step::Done(found) => return Some((found, given)),
                Step::More(more) => given += more,
            }
            if given > bytes.len() {
                return None;
            }
        }
    }

    #[test]
    fn headers_are_read_to_the_byte() {
        for session in [0u32, 4, 64, 1 << 20] {
            let session = VarInt::from(session);
            for both_ways in [false, true] {
                let mut bytes = stream_header(session, both_ways);
                let length = bytes.len();
                bytes.extend(b"and data");
                let number = session.into_inner();
                match both_ways {
                    true => assert_eq!(feed(&bytes, bi), Some((Bi::Session(number), length))),
                    false => assert_eq!(feed(&bytes, uni), Some((Uni::Session(number), length))),
                }
                assert_eq!(feed(&bytes[..length - 1], uni).is_some(), both_ways);
            }
        }
        assert_eq!(feed(&[0], uni), Some((Uni::Control, 1)));
        assert_eq!(feed(&[2], uni), Some((Uni::Qpack(StreamUni::QPACK_ENCODER), 1)));
        assert_eq!(feed(&[0x40, 0x54, 4], uni), Some((Uni::Session(4), 3)));
        assert_eq!(feed(&[1], uni), Some((Uni::Other, 1)));
        assert_eq!(feed(&[1, 9], bi), Some((Bi::Request, 1)));
        assert_eq!(feed(&[], bi), None);
        assert_eq!(feed(&[0xc0, 0, 0], bi), None);
    }

    #[test]
    fn datagrams_of_other_sessions_are_not_ours() {
        let header = datagram_header(VarInt::from_u32(8));
        assert_eq!(header, [2]);
        let strip = |bytes: &[u8]| strip_datagram(Bytes::copy_from_slice(bytes), &header);
        assert_eq!(strip(&[2, 7, 8]), Some(Bytes::from_static(&[7, 8])));
        assert_eq!(strip(&[0x40, 2, 7]), Some(Bytes::from_static(&[7])));
        assert_eq!(strip(&[2]), Some(Bytes::new()));
        assert_eq!(strip(&[1, 7, 8]), None);
        assert_eq!(strip(&[0x40]), None);
        assert_eq!(strip(&[]), None);
    }

    #[test]
    fn long_reasons_are_cut_between_characters() {
        let frame = close(7, &"ä".repeat(600));
        let mut rest = &frame[..];
        assert_eq!(Frame::decode(&mut rest), Ok(Frame::DATA));
        assert_eq!(VarInt::decode(&mut rest).unwrap().into_inner(), rest.len() as u64);
        let Ok(Capsule::CloseWebTransportSession { code: 7, reason }) = Capsule::decode(&mut rest) else {
            panic!();
        };
        assert_eq!(reason, "ä".repeat(512));
    }
}
