//! WebTransport from the peer.
//!
//! Input: which parser, in one byte, then what the peer sends. The headers of streams and datagrams are ours; settings,
//! requests, answers and capsules are read by a library, which must not panic either.

use bytes::Bytes;
use web_transport_proto::{Capsule, ConnectRequest, ConnectResponse, Settings};

use crate::Input;
use crate::web_wire::{self as wire, Step};

/// A header is read to its last byte and no further, whatever comes behind it. What we write is read back.
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
        _ => drop(Capsule::decode(&mut &*input.0)),
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
    let frame = wire::close(7, &reason);
    // The frame's type and its length in one, two or four bytes.
    let length = 1 << (frame[1] >> 6);
    let Ok(Capsule::CloseWebTransportSession { code: 7, reason: told }) =
        Capsule::decode(&mut &frame[1 + length..])
    else {
        panic!("it is not what was written");
    };
    assert!(reason.starts_with(&told) && (told.len() > 1020 || told == reason), "another reason");
}
