//! Displays and strangers at the admission of a session: both handshakes, secrets, places, and what follows.
//!
//! Input: operations, each two bytes and its arguments (see [`operation`]). The world is that of the property test.

#[path = "../../crates/proto/tests/admission/world.rs"]
mod world;

use std::time::Duration;

use wayferry_proto::admission::Role;

use self::world::{Operation, Shows};
use crate::Input;

/// Operations of one input.
const MAX_OPERATIONS: usize = 400;

/// Only a display with a good secret comes in, once for each, and as no more than that is good for; one that was sent
/// away or replaced does not come again; nothing that a stranger says to a display is taken for the end of its session;
/// all is bounded; and after any sequence, a display with a ticket comes in.
///
/// # Panics
/// When that does not hold.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let operations = std::iter::from_fn(|| (!input.is_empty()).then(|| operation(&mut input)));
    world::run(operations.take(MAX_OPERATIONS));
}

/// One operation: a byte that says which, another (who, from where, for whom, how long), and what it needs.
///
/// 0: a stranger comes. 1: a sound display comes (secret, incarnation, what it asks for). 2: bytes come from a guest
/// (stream, length, they). 3: what a sound display has said arrives (how many pieces). 4: a guest's carrier ends, or
/// one of its streams does (which). 5: bytes come to a sound display, from a host that is a stranger (stream, length,
/// they). 6: that host closes (code). 7: time passes (10 ms each). 8, 9: a ticket is printed, for all and for viewing
/// (1 s each). 10, 11: a display is met, as 8 and 9. 12: a display is sent away, or tickets are taken back.
fn operation(input: &mut Input<'_>) -> Operation {
    let (operation, who) = (input.u8() % 13, input.u8());
    let part = if operation % 2 == 0 { Role::Active } else { Role::View };
    match operation {
        0 => Operation::Come { from: who % 4, certificate: who % 8, shows: None },
        1 => {
            let (secret, incarnation, asks) = (input.u8(), input.u8(), input.u8());
            let shows = Shows { secret, incarnation, view_only: asks & 1 != 0, here: asks & 2 != 0 };
            Operation::Come { from: who % 4, certificate: who % 8, shows: Some(shows) }
        }
        2 => {
            let (stream, bytes) = piece(input);
            Operation::Say { who, stream, bytes }
        }
        3 => Operation::Hear { who, pieces: input.u8() },
        4 => Operation::End { who, which: input.u8() },
        5 => {
            let (stream, bytes) = piece(input);
            Operation::Tell { who, stream, bytes }
        }
        6 => Operation::Close { who, code: input.u8() },
        7 => Operation::Pass(Duration::from_millis(10 * u64::from(who))),
        8 | 9 => Operation::Print(part, Duration::from_secs(who.into())),
        10 | 11 => Operation::Invite(part, who % 8),
        _ => match who % 4 {
            0 => Operation::Detach,
            1 => Operation::DetachViews,
            2 => Operation::Leave(who / 4),
            _ => Operation::Revoke,
        },
    }
}

fn piece(input: &mut Input<'_>) -> (u8, Vec<u8>) {
    let stream = input.u8() % 4;
    let length = usize::from(input.u16());
    (stream, input.take(length).to_vec())
}
