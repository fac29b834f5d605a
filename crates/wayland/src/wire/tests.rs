use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use proptest::prelude::*;
use wayland_backend::protocol::{AllowNull, ArgumentType, Interface, MessageDesc};

use super::*;

static TEST: Interface = Interface { name: "test", version: 1, requests: &[], events: &[], c_ptr: None };

/// A message with this signature. Leaks a few bytes, as tables are static.
fn desc(signature: &[ArgumentType]) -> MessageDesc {
    MessageDesc {
        name: "message",
        signature: Box::leak(signature.into()),
        since: 1,
        is_destructor: false,
        child_interface: None,
        arg_interfaces: &[],
    }
}

fn raw(words: &[u32]) -> RawMessage {
    let body = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    RawMessage { object: 1, opcode: 0, body }
}

/// A word holding these four bytes, in memory order.
fn word(bytes: &[u8; 4]) -> u32 {
    u32::from_ne_bytes(*bytes)
}

fn fault(signature: &[ArgumentType], words: &[u32]) -> Option<Fault> {
    match decode(&desc(signature), &TEST, &raw(words), &mut VecDeque::new()) {
        Err(Error::Argument { fault, .. }) => Some(fault),
        _ => None,
    }
}

/// A descriptor that can be told apart: a file holding `tag`.
fn tagged(tag: u8) -> OwnedFd {
    let (mut near, far) = UnixStream::pair().unwrap();
    near.write_all(&[tag]).unwrap();
    far.into()
}

fn tag_of(fd: OwnedFd) -> u8 {
    let mut byte = [0];
    File::from(fd).read_exact(&mut byte).unwrap();
    byte[0]
}

const ANY_STRING: ArgumentType = ArgumentType::Str(AllowNull::Yes);
const STRING: ArgumentType = ArgumentType::Str(AllowNull::No);
const OBJECT: ArgumentType = ArgumentType::Object(AllowNull::No);

#[test]
fn null_is_refused_where_the_signature_forbids_it() {
    assert_eq!(fault(&[STRING], &[0]), Some(Fault::Null));
    assert_eq!(fault(&[OBJECT], &[0]), Some(Fault::Null));
    assert_eq!(fault(&[ArgumentType::NewId], &[0]), Some(Fault::Null));
    assert_eq!(fault(&[ANY_STRING], &[0]), None);
    assert_eq!(fault(&[ArgumentType::Object(AllowNull::Yes)], &[0]), None);
}

#[test]
fn strings_end_with_their_only_nul() {
    assert_eq!(fault(&[STRING], &[4, word(b"abcd")]), Some(Fault::Unterminated));
    assert_eq!(fault(&[STRING], &[4, word(b"a\0c\0")]), Some(Fault::InteriorNul));
    assert_eq!(fault(&[STRING], &[1, word(b"\0xyz")]), None);
}

#[test]
fn lengths_beyond_the_message_are_refused() {
    assert_eq!(fault(&[ArgumentType::Uint], &[]), Some(Fault::Short { expected: 4, got: 0 }));
    assert_eq!(fault(&[ArgumentType::Array], &[5, 0]), Some(Fault::Short { expected: 5, got: 4 }));
    let top = u32::MAX as usize;
    assert_eq!(fault(&[ArgumentType::Array], &[u32::MAX, 0]), Some(Fault::Short { expected: top, got: 4 }));
    assert_eq!(fault(&[STRING], &[u32::MAX, 0]), Some(Fault::Short { expected: top, got: 4 }));
}

#[test]
fn bytes_behind_the_last_argument_are_refused() {
    let error = decode(&desc(&[ArgumentType::Int]), &TEST, &raw(&[1, 2]), &mut VecDeque::new()).unwrap_err();
    assert_eq!(error, Error::Trailing { interface: "test", message: "message", bytes: 4 });
    assert_eq!(error.to_string(), "test.message: 4 bytes behind the last argument, expected none");
}

#[test]
fn a_message_without_its_descriptor_is_refused() {
    assert_eq!(fault(&[ArgumentType::Fd], &[]), Some(Fault::MissingFd));
}

#[test]
fn impossible_headers_are_refused() {
    for length in [0_u32, 4, 7, 9, 10, 4100, 0xFFFF] {
        let mut buffer = InBuffer::new();
        let words = [1, length << 16 | 3];
        buffer.push(&words.map(u32::to_ne_bytes).concat(), []).unwrap();
        let expected = Error::Length { length: length as usize, object: 1, opcode: 3 };
        assert_eq!(buffer.next_message(), Err(expected));
    }
}

#[test]
fn what_cannot_be_read_is_not_encoded() {
    let mut out = OutBuffer::new(MAX_MESSAGE_LEN);
    let length = HEADER_LEN + 4 + 4088;
    let too_long = out.encode(1, 2, vec![Arg::Array(vec![0; 4085])]);
    assert_eq!(too_long, Err(Error::Length { length, object: 1, opcode: 2 }));
    assert_eq!(out.encode(1, 2, vec![Arg::Str(Some(b"a\0b".to_vec()))]), Err(Error::InteriorNul));
    let fds = (0..29).map(|tag| Arg::Fd(tagged(tag))).collect();
    assert_eq!(out.encode(1, 2, fds), Err(Error::TooManyFds { limit: 28 }));
    assert!(out.is_empty());
}

#[test]
fn a_peer_that_does_not_read_meets_the_limit() {
    let mut out = OutBuffer::new(8192);
    let message = || vec![Arg::Array(vec![1; 4084])];
    out.encode(1, 0, message()).unwrap();
    out.encode(1, 0, message()).unwrap();
    assert_eq!(out.encode(1, 0, message()), Err(Error::QueueFull { limit: 8192 }));
    assert_eq!(out.len(), 8192);
}

#[test]
fn descriptors_that_nothing_uses_meet_the_limit() {
    let mut buffer = InBuffer::new();
    let (near, _far) = UnixStream::pair().unwrap();
    let fd = OwnedFd::from(near);
    for _ in 0..MAX_QUEUED_FDS {
        buffer.push(&[], [fd.try_clone().unwrap()]).unwrap();
    }
    assert!(!buffer.has_room());
    assert_eq!(buffer.push(&[], [fd]), Err(Error::TooManyFds { limit: MAX_QUEUED_FDS }));
}

fn pair() -> (Socket, Socket) {
    let (a, b) = UnixStream::pair().unwrap();
    (Socket::new(a.into()).unwrap(), Socket::new(b.into()).unwrap())
}

#[test]
fn descriptors_arrive_with_their_messages_however_many_wait() {
    let (a, b) = pair();
    let mut out = OutBuffer::new(1 << 20);
    let mut expected = Vec::new();
    for message in 0..60_u8 {
        let count = [0, 1, 3, 28, 0, 5][usize::from(message) % 6];
        let args = (0..count).map(|_| Arg::Fd(tagged(message))).collect();
        out.encode(u32::from(message) + 1, 0, args).unwrap();
        expected.push((message, count));
    }
    let mut buffer = InBuffer::new();
    let mut got = Vec::new();
    while got.len() < expected.len() {
        a.flush(&mut out).unwrap();
        assert_eq!(b.read_into(&mut buffer).unwrap(), ReadState::Progress);
        while let Some(raw) = buffer.next_message().unwrap() {
            let message = (raw.object - 1) as u8;
            let count = expected[usize::from(message)].1;
            let desc = desc(&vec![ArgumentType::Fd; count]);
            for arg in decode(&desc, &TEST, &raw, buffer.fds_mut()).unwrap() {
                let Arg::Fd(fd) = arg else { unreachable!() };
                assert_eq!(tag_of(fd), message);
            }
            got.push((message, count));
        }
    }
    assert_eq!(got, expected);
    assert!(buffer.is_empty() && out.is_empty());
}

#[test]
fn what_is_taken_out_arrives_like_what_is_flushed() {
    let (a, b) = pair();
    let mut out = OutBuffer::new(1 << 20);
    let mut buffer = InBuffer::new();
    for tag in 0..4 {
        out.encode(1, 0, vec![Arg::Fd(tagged(tag))]).unwrap();
        if tag % 2 == 0 {
            let (bytes, fds) = out.take();
            buffer.push(&bytes, fds).unwrap();
        } else {
            a.flush(&mut out).unwrap();
            b.read_into(&mut buffer).unwrap();
        }
        let raw = buffer.next_message().unwrap().unwrap();
        let args = decode(&desc(&[ArgumentType::Fd]), &TEST, &raw, buffer.fds_mut()).unwrap();
        assert_eq!(args.into_iter().map(Value::from_arg).collect::<Vec<_>>(), [Value::Fd(tag)]);
    }
}

#[test]
fn a_full_socket_keeps_the_rest_for_later() {
    let (a, b) = pair();
    let mut out = OutBuffer::new(4 << 20);
    for object in 1..=1000 {
        out.encode(object, 0, vec![Arg::Array(vec![7; 4084])]).unwrap();
    }
    assert!(!a.flush(&mut out).unwrap(), "4 MB cannot fit into a socket's buffer");
    let mut buffer = InBuffer::new();
    let mut next = 1;
    while next <= 1000 {
        a.flush(&mut out).unwrap();
        b.read_into(&mut buffer).unwrap();
        while let Some(raw) = buffer.next_message().unwrap() {
            assert_eq!((raw.object, raw.body.len()), (next, 4088));
            next += 1;
        }
    }
    assert_eq!(b.read_into(&mut buffer).unwrap(), ReadState::WouldBlock);
    drop(a);
    assert_eq!(b.read_into(&mut buffer).unwrap(), ReadState::Closed);
}

#[test]
fn more_descriptors_than_one_send_may_carry_end_the_connection() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    // 29 still fit into the control buffer, 60 are truncated by the kernel.
    for count in [29, 60] {
        let (a, b) = pair();
        let fds: Vec<OwnedFd> = (0..count).map(tagged).collect();
        let borrowed: Vec<_> = fds.iter().map(std::os::fd::AsFd::as_fd).collect();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(60))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&borrowed)));
        sendmsg(&a, &[std::io::IoSlice::new(&[0; 8])], &mut control, SendFlags::NOSIGNAL).unwrap();
        let error = b.read_into(&mut InBuffer::new()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    }
}

/// An argument that can be compared and made again; descriptors are tags.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Int(i32),
    Uint(u32),
    Fixed(i32),
    Str(Option<Vec<u8>>),
    Object(u32),
    NewId(u32),
    Array(Vec<u8>),
    Fd(u8),
}

impl Value {
    fn kind(&self) -> ArgumentType {
        match self {
            Self::Int(_) => ArgumentType::Int,
            Self::Uint(_) => ArgumentType::Uint,
            Self::Fixed(_) => ArgumentType::Fixed,
            Self::Str(_) => ANY_STRING,
            Self::Object(_) => ArgumentType::Object(AllowNull::Yes),
            Self::NewId(_) => ArgumentType::NewId,
            Self::Array(_) => ArgumentType::Array,
            Self::Fd(_) => ArgumentType::Fd,
        }
    }

    fn arg(&self) -> Arg {
        match self.clone() {
            Self::Int(value) => Arg::Int(value),
            Self::Uint(value) => Arg::Uint(value),
            Self::Fixed(value) => Arg::Fixed(value),
            Self::Str(value) => Arg::Str(value),
            Self::Object(value) => Arg::Object(value),
            Self::NewId(value) => Arg::NewId(value),
            Self::Array(value) => Arg::Array(value),
            Self::Fd(tag) => Arg::Fd(tagged(tag)),
        }
    }

    fn from_arg(arg: Arg) -> Self {
        match arg {
            Arg::Int(value) => Self::Int(value),
            Arg::Uint(value) => Self::Uint(value),
            Arg::Fixed(value) => Self::Fixed(value),
            Arg::Str(value) => Self::Str(value),
            Arg::Object(value) => Self::Object(value),
            Arg::NewId(value) => Self::NewId(value),
            Arg::Array(value) => Self::Array(value),
            Arg::Fd(fd) => Self::Fd(tag_of(fd)),
        }
    }
}

fn string() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(1_u8.., 0..40)
}

/// A message's arguments.
fn values() -> impl Strategy<Value = Vec<Value>> {
    let value = prop_oneof![
        any::<i32>().prop_map(Value::Int),
        any::<u32>().prop_map(Value::Uint),
        any::<i32>().prop_map(Value::Fixed),
        prop::option::of(string()).prop_map(Value::Str),
        any::<u32>().prop_map(Value::Object),
        (1_u32..).prop_map(Value::NewId),
        prop::collection::vec(any::<u8>(), 0..60).prop_map(Value::Array),
        any::<u8>().prop_map(Value::Fd),
    ];
    prop::collection::vec(value, 0..12)
}

proptest! {
    #[test]
    fn messages_survive_any_splitting(
        messages in prop::collection::vec((1_u32.., any::<u16>(), values()), 1..8),
        cuts in prop::collection::vec(1_usize..64, 1..20),
    ) {
        let mut out = OutBuffer::new(1 << 20);
        for (object, opcode, values) in &messages {
            out.encode(*object, *opcode, values.iter().map(Value::arg).collect()).unwrap();
        }
        let mut buffer = InBuffer::new();
        let mut expected = messages.iter();
        let mut cuts = cuts.iter().cycle();
        while !out.is_empty() {
            let (bytes, fds) = out.front();
            let (count, fds): (usize, Vec<_>) =
                (fds.len(), fds.iter().map(|fd| fd.try_clone_to_owned().unwrap()).collect());
            let cut = bytes.len().min(*cuts.next().unwrap());
            buffer.push(&bytes[..cut], fds).unwrap();
            out.advance(cut, count);
            while let Some(raw) = buffer.next_message().unwrap() {
                let (object, opcode, values) = expected.next().unwrap();
                let signature: Vec<_> = values.iter().map(Value::kind).collect();
                let args = decode(&desc(&signature), &TEST, &raw, buffer.fds_mut()).unwrap();
                let got: Vec<_> = args.into_iter().map(Value::from_arg).collect();
                prop_assert_eq!((raw.object, raw.opcode), (*object, *opcode));
                prop_assert_eq!(&got, values);
            }
        }
        prop_assert!(expected.next().is_none());
        prop_assert!(buffer.is_empty());
    }

    #[test]
    fn hostile_bytes_end_in_a_message_or_an_error(
        bytes in prop::collection::vec(prop_oneof![Just(0_u8), 0_u8..20, any::<u8>()], 0..4000),
        values in values(),
    ) {
        let signature: Vec<_> = values.iter().map(Value::kind).collect();
        let desc = desc(&signature);
        let mut buffer = InBuffer::new();
        buffer.push(&bytes, [tagged(1)]).unwrap();
        while let Ok(Some(raw)) = buffer.next_message() {
            prop_assert!(raw.body.len() <= MAX_MESSAGE_LEN - HEADER_LEN);
            if let Ok(args) = decode(&desc, &TEST, &raw, buffer.fds_mut()) {
                prop_assert_eq!(args.len(), signature.len());
            }
        }
        let whole = RawMessage { object: 1, opcode: 0, body: bytes };
        let _ = decode(&desc, &TEST, &whole, &mut VecDeque::new());
    }
}
