//! Bytes on a Wayland socket.
//!
//! Input: how many descriptors come along, then bytes of a socket. The interface of a message's object is
//! chosen by the object's id, so that every signature is reached.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use wayferry_wayland::policy::{self, Class};
use wayferry_wayland::tables;
use wayferry_wayland::wire::{Arg, InBuffer, OutBuffer, RawMessage, decode};
use wayland_backend::protocol::{Interface, MessageDesc};

use crate::Input;

/// Decodes all that is there. What decodes can be encoded, and decodes to the same again.
///
/// # Panics
/// When it does not.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let fds = input.u8() % 8;
    let mut buffer = InBuffer::new();
    while !input.is_empty() {
        let length = usize::from(input.u16());
        let some = (0..fds).map(|_| descriptor());
        if buffer.push(input.take(length.max(1)), some).is_err() {
            return;
        }
        loop {
            match buffer.next_message() {
                Ok(Some(raw)) => message(&raw, buffer.fds_mut()),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

/// The interface whose message a seed has to name object `object` for.
pub fn interface_of(object: u32) -> &'static Interface {
    let all = sorted();
    all[object as usize % all.len()]
}

/// The object that [`interface_of`] maps to this interface.
pub fn object_of(name: &str) -> Option<u32> {
    let position = sorted().iter().position(|interface| interface.name == name)?;
    // Object 0 is null.
    u32::try_from(position + sorted().len()).ok()
}

fn sorted() -> &'static [&'static Interface] {
    static SORTED: OnceLock<Vec<&'static Interface>> = OnceLock::new();
    SORTED.get_or_init(|| {
        let mut all: Vec<_> = tables::interfaces().collect();
        all.sort_by_key(|interface| interface.name);
        all
    })
}

fn message(raw: &RawMessage, fds: &mut VecDeque<OwnedFd>) {
    let interface = interface_of(raw.object);
    // Requests and events by turns of the object's id.
    let events = raw.object as usize / sorted().len() % 2 == 0;
    let (messages, rule) = if events {
        (interface.events, policy::event(interface.name, raw.opcode))
    } else {
        (interface.requests, policy::request(interface.name, raw.opcode))
    };
    let Some(desc) = messages.get(usize::from(raw.opcode)) else {
        assert_eq!(rule.class, Class::Refused);
        return;
    };
    let held = fds.len();
    if let Ok(args) = decode(desc, interface, raw, fds) {
        let used = args.iter().filter(|arg| matches!(arg, Arg::Fd(_))).count();
        assert_eq!(held - fds.len(), used, "descriptors out of step");
        again(desc, interface, raw, args);
    }
}

fn again(desc: &MessageDesc, interface: &'static Interface, raw: &RawMessage, args: Vec<Arg>) {
    let shown = format!("{:?}", args.iter().map(value).collect::<Vec<_>>());
    let mut fds: VecDeque<_> =
        args.iter().filter(|arg| matches!(arg, Arg::Fd(_))).map(|_| descriptor()).collect();
    let mut out = OutBuffer::new(4096);
    out.encode(raw.object, raw.opcode, args).expect("what fitted into a message fits into one");
    assert_eq!(out.len(), raw.body.len() + 8);
    let mut buffer = InBuffer::new();
    buffer.push(&out.take().0, []).expect("one message");
    let second = buffer.next_message().expect("a sound header").expect("a whole message");
    let args = decode(desc, interface, &second, &mut fds).expect("what was encoded decodes");
    assert_eq!(format!("{:?}", args.iter().map(value).collect::<Vec<_>>()), shown);
}

/// An argument without the number of its descriptor.
fn value(arg: &Arg) -> Option<&Arg> {
    Some(arg).filter(|arg| !matches!(arg, Arg::Fd(_)))
}

fn descriptor() -> OwnedFd {
    File::open("/dev/null").expect("every system has it").into()
}
