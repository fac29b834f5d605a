//! Descriptors do not leak, no matter what happens to the messages that they came with.
//!
//! Alone in its own process, because it counts the process's descriptors.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use proptest::prelude::*;
use wayferry_wayland::wire::{Arg, InBuffer, OutBuffer, RawMessage, Socket, decode};
use wayland_backend::protocol::{ANONYMOUS_INTERFACE, ArgumentType, MessageDesc};

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn descriptor() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}

fn desc(fds: usize) -> MessageDesc {
    const SIGNATURE: [ArgumentType; 40] = {
        let mut signature = [ArgumentType::Fd; 40];
        signature[39] = ArgumentType::Uint;
        signature
    };
    static ALL: [ArgumentType; 40] = SIGNATURE;
    MessageDesc {
        name: "message",
        signature: &ALL[39 - fds..],
        since: 1,
        is_destructor: false,
        child_interface: None,
        arg_interfaces: &[],
    }
}

/// One turn: `sent` descriptors encoded, `pushed` more received, and messages that ask for `wanted` each.
fn turn(sent: usize, pushed: usize, wanted: usize, body: &[u8]) {
    let (a, b) = UnixStream::pair().unwrap();
    let (a, b) = (Socket::new(a.into()).unwrap(), Socket::new(b.into()).unwrap());
    let mut out = OutBuffer::new(4096);
    let args = |count| (0..count).map(|_| Arg::Fd(descriptor())).chain([Arg::Uint(7)]).collect();
    let _ = out.encode(1, 0, args(sent));
    let _ = out.encode(1, 0, vec![Arg::Fd(descriptor()), Arg::Array(vec![0; 5000])]);
    let _ = a.flush(&mut out);
    let _ = out.encode(1, 0, args(1));
    let mut buffer = InBuffer::new();
    let _ = b.read_into(&mut buffer);
    let _ = buffer.push(&[], (0..pushed).map(|_| descriptor()));
    while let Ok(Some(raw)) = buffer.next_message() {
        let _ = decode(&desc(wanted), &ANONYMOUS_INTERFACE, &raw, buffer.fds_mut());
    }
    let raw = RawMessage { object: 1, opcode: 0, body: body.to_vec() };
    let mut fds: VecDeque<_> = (0..pushed).map(|_| descriptor()).collect();
    let _ = decode(&desc(wanted), &ANONYMOUS_INTERFACE, &raw, &mut fds);
}

proptest! {
    #[test]
    fn descriptors_never_leak(
        sent in 0_usize..35,
        pushed in 0_usize..40,
        wanted in 0_usize..39,
        body in prop::collection::vec(any::<u8>(), 0..12),
    ) {
        let before = open_descriptors();
        turn(sent, pushed, wanted, &body);
        prop_assert_eq!(open_descriptors(), before);
    }
}
