//! What an app side says on one stream of bytes, as a page hears it.
//!
//! Input: a flag, then operations. Flag 1: the peer has said what goes before frames. Each operation is a byte that
//! says which, and its arguments (see [`step`]).

use std::collections::HashMap;

use bytes::Bytes;
use wayferry_page_wasm::socket::{Next, Socket};
use wayferry_proto::{Arrival, Class, Priority, StreamId, Time, Transmit};

use crate::Input;

/// The flag for a peer that has said what goes before frames.
pub const GREETED: u8 = 1;

/// What has been seen.
#[derive(Default)]
struct Seen {
    /// How long each stream of the peer is, and whether it is over.
    streams: HashMap<StreamId, (u64, bool)>,
    is_over: bool,
    has_closed: bool,
    opened: u64,
    /// Bytes that were handed over, and the most that resets and stops take.
    given: usize,
}

/// A socket takes any input; streams have no gaps and end once, and nothing is told after the end or said after the
/// last word.
///
/// # Panics
/// When that is not so.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (mut socket, mut seen) = (Socket::default(), Seen { given: FRAME, ..Seen::default() });
    if input.u8() & GREETED != 0 {
        hear(&mut socket, &mut seen, b"WFMUX1\r\n");
    }
    while !input.is_empty() {
        step(&mut socket, &mut seen, &mut input);
        let link = socket.link(None);
        assert!(socket.unsent() <= seen.given + usize::from(u16::MAX), "more than was handed over");
        assert!(link.payload.is_none() && link.datagram == 0);
    }
}

/// 0, 1, 2: bytes come (length, they). 3: a stream is opened (class). 4: something is sent on one (which, length; the
/// lowest bit ends it). 5: one is given up (which). 6: one of the peer's is stopped (which). 7: the session is closed.
/// 8, 9: it is asked what is to be sent (bytes that the browser has, in two bytes).
fn step(socket: &mut Socket, seen: &mut Seen, input: &mut Input<'_>) {
    match input.u8() % 10 {
        0..=2 => {
            let length = input.u8().into();
            hear(socket, seen, input.take(length));
        }
        3 => {
            let class = CLASSES[usize::from(input.u8()) % CLASSES.len()];
            let stream = StreamId(seen.opened);
            seen.opened += 1;
            socket.transmit(Transmit::Open { stream, priority: Priority::new(class, stream.0) });
        }
        4 => {
            let (stream, length) = (StreamId(input.u8().into()), usize::from(input.u8()) * 256);
            seen.given += length;
            let bytes = Bytes::from(vec![7; length]);
            socket.transmit(Transmit::Data { stream, bytes, finish: length / 256 % 2 == 1 });
        }
        5 => {
            seen.given += FRAME;
            socket.transmit(Transmit::Reset { stream: StreamId(input.u8().into()), code: 5 });
        }
        6 => {
            seen.given += FRAME;
            socket.transmit(Transmit::Stop { stream: StreamId(input.u8().into()), code: 6 });
        }
        7 => socket.transmit(Transmit::Close { code: 0, reason: "enough".to_owned() }),
        _ => {
            let buffered = input.u16().into();
            match socket.send(Time::ZERO, buffered) {
                Next::Nothing | Next::Wait => {}
                Next::Bytes(bytes) => assert!(!bytes.is_empty() && !seen.has_closed),
                Next::Last(bytes) => {
                    assert!(!bytes.is_empty() && !seen.has_closed);
                    seen.has_closed = true;
                }
            }
        }
    }
}

fn hear(socket: &mut Socket, seen: &mut Seen, bytes: &[u8]) {
    for arrival in socket.receive(Time::ZERO, bytes) {
        assert!(!seen.is_over, "something is told after the end");
        match arrival {
            Arrival::Data { stream, offset, bytes } => {
                let (length, is_over) = seen.streams.entry(stream).or_default();
                assert!(!*is_over && *length == offset && !bytes.is_empty());
                *length += bytes.len() as u64;
            }
            Arrival::Finished { stream, length } => {
                let whole = seen.streams.insert(stream, (length, true)).unwrap_or_default();
                assert_eq!(whole, (length, false));
            }
            Arrival::Reset { stream, .. } => {
                let (_, is_over) = seen.streams.entry(stream).or_default();
                assert!(!std::mem::replace(is_over, true));
            }
            Arrival::Stopped { stream, .. } => {
                assert!(stream.0 < seen.opened);
                // It is answered by a reset.
                seen.given += FRAME;
            }
            Arrival::Closed { .. } => seen.is_over = true,
            Arrival::Datagram { .. } | Arrival::Acknowledged { .. } | Arrival::OpenFailed { .. } => {
                panic!("there is none of that here")
            }
        }
    }
}

/// Bytes of a reset or a stop at most; what goes before all frames is no longer.
const FRAME: usize = 17;

const CLASSES: [Class; 4] = [Class::Control, Class::Events, Class::Content, Class::Pipe];
