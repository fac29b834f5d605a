//! WebTransport from the peer.
//!
//! Input: which parser, in one byte, then what the peer sends; for capsules, before that, how large the pieces are that
//! it comes in. The headers of streams and datagrams and the capsules are ours; settings, requests and answers are read
//! by a library, which must not panic either.

use bytes::Bytes;
use web_transport_proto::{Capsule, ConnectRequest, ConnectResponse, Settings};

use crate::Input;
use crate::web_capsules::{Capsules, Close, KEPT_MAX, Malformed};
use crate::web_wire::{self as wire, Step};

/// A header is read to its last byte and no further, no matter what comes behind it. What we write is read back.
/// Capsules say the same in any pieces, and little is kept of them.
///
/// # Panics
/// When that is not so.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    match input.u8() % 8 {
        0 => header(input.0, wire::uni),
        1 => header(input.0, wire::bi),
        2 => datagram(input.0),
        3 => close(input.0),
        4 => drop(Settings::decode(&mut &*input.0)),
        5 => drop(ConnectRequest::decode(&mut &*input.0)),
        6 => drop(ConnectResponse::decode(&mut &*input.0)),
        _ => capsules(&mut input),
    }
}

fn header<T: PartialEq + std::fmt::Debug>(bytes: &[u8], parse: fn(&[u8]) -> Step<T>) {
    let mut given = 0;
    while given <= bytes.len() {
        match parse(&bytes[..given]) {
            Step::Done(found) => {
                assert!(given <= 16, "a header of {given} bytes");
                assert_eq!(parse(bytes), Step::Done(found), "what follows changes it");
                return;
            }
            Step::More(more) => {
                assert!(more > 0, "nothing is missing, and yet it waits");
                given += more;
            }
        }
    }
}

fn datagram(bytes: &[u8]) {
    let (header, data) = bytes.split_at(bytes.len().min(1));
    if let Some(inner) = wire::strip_datagram(Bytes::copy_from_slice(data), header) {
        assert!(data.ends_with(&inner) && data.len() > inner.len(), "more than a header was taken off");
    }
}

fn close(bytes: &[u8]) {
    let reason = String::from_utf8_lossy(bytes);
    let Ok(Some(Close { code: 7, reason: told })) = session(&wire::close(7, &reason), 1) else {
        panic!("it is not what was written");
    };
    assert!(reason.starts_with(&told) && (told.len() > 1020 || told == reason), "another reason");
}

fn capsules(input: &mut Input<'_>) {
    let size = usize::from(input.u8()) + 1;
    assert_eq!(session(input.0, size), session(input.0, input.0.len().max(1)), "the pieces matter");
    // The library's way to read capsules, once they are taken out of their frames.
    let framed: Vec<u8> =
        input.0.chunks(63).flat_map(|part| [&[0, part.len() as u8], part].concat()).collect();
    if let Ok(Some(Close { code, reason })) = session(&framed, size) {
        let mut rest = input.0;
        let theirs = std::iter::from_fn(|| Capsule::decode(&mut rest).ok());
        let mut ends = theirs.filter(|capsule| matches!(capsule, Capsule::CloseWebTransportSession { .. }));
        assert_eq!(ends.next(), Some(Capsule::CloseWebTransportSession { code, reason }), "another end");
    }
}

/// How a session ends; `None` without words.
fn session(bytes: &[u8], size: usize) -> Result<Option<Close>, Malformed> {
    let mut capsules = Capsules::default();
    for piece in bytes.chunks(size) {
        let close = capsules.read(piece)?;
        assert!(capsules.kept() <= KEPT_MAX, "{} bytes are kept", capsules.kept());
        if close.is_some() {
            return Ok(close);
        }
    }
    capsules.end().map(|()| None)
}
