//! What a peer says on ssh's stdin and stdout.
//!
//! Input: flags, then operations. Flag 1: this is the far end, else the near one. Flag 2: the mark has come. Each
//! operation is a byte that says which, and its arguments (see [`step`]).

use wayferry_proto::trunk::{End, MARK, MAX_MEETINGS, MAX_PIECE, STDOUT, Trunk};

use crate::Input;

/// The flag for the far end.
pub const FAR: u8 = 1;
/// The flag for a peer that has said its mark.
pub const MARKED: u8 = 2;

/// An end takes any input; what it keeps is within the room that it gave, and what it says is short.
///
/// # Panics
/// When that is not so.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let flags = input.u8();
    let end = if flags & FAR == 0 { End::Near } else { End::Far };
    let mut trunk = Trunk::new(end);
    if flags & MARKED != 0 {
        trunk.receive(MARK).expect("the mark");
    }
    while !input.is_empty() {
        let mut out = Vec::new();
        if !step(&mut trunk, &mut input, &mut out) {
            return;
        }
        assert!(out.len() <= ANSWER + MAX_PIECE);
        assert!(trunk.strands().count() <= STRANDS);
    }
}

/// 0, 1, 2: bytes come (length, they). 3: a strand is taken (strand, bytes). 4: its receiver is gone (strand). 5: it is
/// ended (strand). 6: something is sent on it (strand). 7: a meeting is opened. 8: what is due is said. 9: the stream
/// is over. False when the peer is not heard any more.
fn step(trunk: &mut Trunk, input: &mut Input<'_>, out: &mut Vec<u8>) -> bool {
    match input.u8() % 10 {
        0..=2 if trunk.takes() => {
            let length = input.u8();
            return trunk.receive(input.take(length.into())).is_ok();
        }
        3 => {
            let (strand, count) = (input.u8().into(), input.u8().into());
            let count = trunk.waiting(strand).len().min(count);
            trunk.take(strand, count);
        }
        4 => trunk.discard(input.u8().into()),
        5 => trunk.end(input.u8().into()),
        6 => {
            let strand = input.u8().into();
            trunk.send(strand, &vec![7; trunk.room(strand)], out);
        }
        7 => drop(trunk.open()),
        8 => trunk.answer(out),
        9 => {
            trunk.end_of_stream();
            assert!(!trunk.is_open(STDOUT) && trunk.room(STDOUT) == 0);
            return false;
        }
        _ => {}
    }
    while trunk.take_opened().is_some() {}
    true
}

/// Strands that there are at most.
const STRANDS: usize = 4 + 2 * MAX_MEETINGS;
/// Bytes of all that can be due, with the head of a frame.
const ANSWER: usize = MARK.len() + (4 * STRANDS + 1) * 9;
