//! What the tests of all carriers share: waiting for arrivals without sleeping.

#![allow(dead_code, reason = "each test binary compiles all of it and uses a part")]

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wayferry_net::Carrier;
use wayferry_proto::{Arrival, Class, CloseReason, Priority, StreamId, Transmit};

/// A test that waits longer for one thing than this has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until `fd` is readable; panics after [`PATIENCE`].
pub(crate) fn wait_readable(fd: impl AsFd) {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    let timeout = Timespec::try_from(PATIENCE).unwrap();
    assert_eq!(poll(&mut fds, Some(&timeout)).unwrap(), 1, "nothing happened");
}

/// Waits until one of these is readable; panics after [`PATIENCE`].
pub(crate) fn wait_any(fds: &[BorrowedFd<'_>]) {
    let mut fds: Vec<_> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(PATIENCE).unwrap();
    assert_ne!(poll(&mut fds, Some(&timeout)).unwrap(), 0, "nothing happened");
}

/// The next arrival, as a run loop gets it.
pub(crate) fn next(carrier: &mut dyn Carrier) -> Arrival {
    loop {
        if let Some(arrival) = carrier.poll_arrival() {
            return arrival;
        }
        wait_readable(carrier.wake_fd());
        carrier.clear_wake();
    }
}

/// Waits until the link says that nothing of content is unsent.
pub(crate) fn wait_sent(carrier: &dyn Carrier) {
    while carrier.link().unsent > 0 {
        wait_readable(carrier.wake_fd());
        carrier.clear_wake();
    }
}

/// How the connection ended; fails on anything but data before it.
pub(crate) fn closed(carrier: &mut dyn Carrier) -> CloseReason {
    loop {
        match next(carrier) {
            Arrival::Closed { reason } => return reason,
            Arrival::Data { .. } | Arrival::Finished { .. } | Arrival::Reset { .. } => {}
            other => panic!("{other:?} instead of the end"),
        }
    }
}

pub(crate) fn open(carrier: &mut dyn Carrier, stream: u64, class: Class) {
    let priority = Priority::new(class, stream);
    carrier.transmit(Transmit::Open { stream: StreamId(stream), priority });
}

pub(crate) fn send(carrier: &mut dyn Carrier, stream: u64, bytes: impl Into<Bytes>, finish: bool) {
    carrier.transmit(Transmit::Data { stream: StreamId(stream), bytes: bytes.into(), finish });
}

/// Opens, writes, finishes.
pub(crate) fn send_all(carrier: &mut dyn Carrier, stream: u64, class: Class, bytes: impl Into<Bytes>) {
    open(carrier, stream, class);
    send(carrier, stream, bytes, true);
}

pub(crate) fn close(carrier: &mut dyn Carrier, reason: &CloseReason) {
    let (code, reason) = reason.to_wire();
    carrier.transmit(Transmit::Close { code, reason });
}

/// Puts streams together from pieces in any order.
#[derive(Default)]
pub(crate) struct Streams {
    pub(crate) open: BTreeMap<u64, Stream>,
    pub(crate) whole: BTreeMap<u64, Vec<u8>>,
    pub(crate) reset: BTreeMap<u64, u32>,
}

#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) bytes: Vec<u8>,
    received: u64,
    length: Option<u64>,
}

impl Streams {
    pub(crate) fn take(&mut self, arrival: Arrival) {
        let id = match arrival {
            Arrival::Data { stream, offset, bytes } => {
                let open = self.open.entry(stream.0).or_default();
                let end = offset as usize + bytes.len();
                if open.bytes.len() < end {
                    open.bytes.resize(end, 0);
                }
                open.bytes[offset as usize..end].copy_from_slice(&bytes);
                open.received += bytes.len() as u64;
                stream.0
            }
            Arrival::Finished { stream, length } => {
                self.open.entry(stream.0).or_default().length = Some(length);
                stream.0
            }
            Arrival::Reset { stream, code } => {
                self.open.remove(&stream.0);
                self.reset.insert(stream.0, code);
                return;
            }
            other => panic!("unexpected {other:?}"),
        };
        if self.open.get(&id).is_some_and(|open| open.length == Some(open.received)) {
            let open = self.open.remove(&id).unwrap();
            self.whole.insert(id, open.bytes);
        }
    }

    /// Receives until `count` streams are whole.
    pub(crate) fn receive(carrier: &mut dyn Carrier, count: usize) -> Self {
        let mut streams = Self::default();
        while streams.whole.len() < count {
            streams.take(next(carrier));
        }
        streams
    }
}

/// Open fds and threads of this process.
pub(crate) fn resources() -> (usize, usize) {
    let count = |path| std::fs::read_dir(path).unwrap().count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}
