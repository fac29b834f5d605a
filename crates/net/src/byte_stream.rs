//! The byte-stream carrier: one pair of fds (ssh's stdio, a Unix socket, an inherited fd, TCP) carries all streams.
//!
//! One thread owns both fds, the decoder and the streams' queues; the handle talks to it through two queues and
//! two eventfds. However the link ends (close, end of file, an error, dropping the handle), the thread ends
//! exactly once and takes both fds with it, soon after the handle was dropped; [`wait_for_ends`] waits for that. It
//! authenticates no peer: one that holds the other end is trusted as far as the session trusts it.
//!
//! Both fds become non-blocking for the life of the carrier; the flags they had are restored when it ends, because
//! an inherited fd may share them with another process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
pub use wayferry_mux::MuxError;
use wayferry_mux::{Backlog, Mux, Output};
use wayferry_proto::{Arrival, CloseReason, LinkState, Transmit};

use crate::carrier::{Carrier, QUEUE_LIMIT};
use crate::inbox::{Drain, Inbox};
use crate::outbox::{Feeder, Level, Outbox};
use crate::wake::Wake;

/// The handle of a byte-stream carrier.
pub struct ByteStream {
    shared: Arc<Shared>,
    feeder: Feeder,
    thread: Option<JoinHandle<()>>,
}

/// What the handle and the thread share.
struct Shared {
    inbox: Inbox,
    outbox: Arc<Outbox>,
    /// For the run loop.
    wake: Arc<Wake>,
    /// For the thread.
    kick: Arc<Wake>,
    link: Mutex<LinkState>,
    /// The session holds so much that the link is not read, or it has not begun to read.
    holds: AtomicBool,
    dropped: AtomicBool,
}

impl ByteStream {
    /// Starts the carrier on a pair of fds, which may be two duplicates of one socket.
    ///
    /// Fails when the process is out of fds or threads; both fds are closed then.
    pub fn spawn(read: OwnedFd, write: OwnedFd) -> io::Result<Box<dyn Carrier>> {
        Self::start(read, write, false)
    }

    /// [`ByteStream::spawn`] on a socket that carries both directions.
    pub fn spawn_on_socket(socket: OwnedFd) -> io::Result<Box<dyn Carrier>> {
        let write = socket.try_clone()?;
        Self::start(socket, write, false)
    }

    /// The same, of which nothing is read until the first [`Carrier::hold`]: the caller has something to read before
    /// what the peer's carrier says. What is sent before that does not measure the link, which may not be up yet.
    pub fn spawn_unread(socket: OwnedFd) -> io::Result<Box<dyn Carrier>> {
        let write = socket.try_clone()?;
        Self::start(socket, write, true)
    }

    fn start(read: OwnedFd, write: OwnedFd, holds: bool) -> io::Result<Box<dyn Carrier>> {
        let (wake, kick) = (Arc::new(Wake::new()?), Arc::new(Wake::new()?));
        let call = Box::new({
            let kick = Arc::clone(&kick);
            move || kick.raise()
        });
        let drain = Drain { step: ACK_STEP, when_empty: true, call };
        let shared = Arc::new(Shared {
            inbox: Inbox::new(Arc::clone(&wake), drain),
            outbox: Arc::new(Outbox::new(Arc::clone(&wake))),
            wake,
            kick,
            link: Mutex::default(),
            holds: AtomicBool::new(holds),
            dropped: AtomicBool::new(false),
        });
        let driver = Driver::new(Arc::clone(&shared), read, write)?;
        let thread = std::thread::Builder::new().name("wayferry-mux".into()).spawn(|| driver.run())?;
        let feeder = Feeder::new(Arc::clone(&shared.outbox));
        Ok(Box::new(Self { shared, feeder, thread: Some(thread) }))
    }
}

impl Carrier for ByteStream {
    fn transmit(&mut self, transmit: Transmit) {
        if self.feeder.feed(transmit) {
            self.shared.kick.raise();
        }
    }

    fn poll_arrival(&mut self) -> Option<Arrival> {
        self.shared.inbox.pop().inspect(|arrival| self.feeder.observe(arrival))
    }

    fn link(&self) -> LinkState {
        let mut link = *self.shared.link.lock().unwrap_or_else(PoisonError::into_inner);
        link.unsent = self.shared.outbox.unsent();
        link.idle = self.shared.outbox.is_idle();
        link
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.shared.wake.as_fd()
    }

    fn clear_wake(&self) {
        self.shared.wake.lower();
    }

    fn hold(&self, bytes: u64) {
        let holds = bytes >= HELD_LIMIT;
        if self.shared.holds.swap(holds, Ordering::AcqRel) != holds {
            self.shared.kick.raise();
        }
    }
}

impl Drop for ByteStream {
    /// Never waits: the peer may let a close take a second, and the caller has other sessions and programs to serve.
    fn drop(&mut self) {
        self.shared.dropped.store(true, Ordering::Release);
        self.shared.kick.raise();
        if let Some(thread) = self.thread.take() {
            let mut ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
            ending.retain(|thread| !thread.is_finished());
            ending.push(thread);
        }
    }
}

/// Waits until all carriers that were dropped have written their last words and given back their descriptors' flags, at
/// most a second or so. For the end of a process.
pub fn wait_for_ends() {
    let ending = std::mem::take(&mut *ENDING.lock().unwrap_or_else(PoisonError::into_inner));
    for thread in ending {
        // An error is a panic, which has been printed.
        let _ = thread.join();
    }
}

/// Threads of carriers that were dropped and may still run.
static ENDING: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// The thread's state.
struct Driver {
    shared: Arc<Shared>,
    mux: Mux,
    read: NonBlocking,
    write: Option<NonBlocking>,
    started: Instant,
    out: Vec<u8>,
    level: Level,
    sent: u64,
    received: u64,
    writes: u64,
    /// Set once this side has decided to close: why, and how long it may take.
    closing: Option<(CloseReason, Instant)>,
    /// The peer sent what cannot be understood: nothing after it counts.
    broken: bool,
    /// Nothing was read until the session was pumped, and nothing has been yet.
    unread: bool,
}

/// Whether the thread goes on.
#[derive(PartialEq)]
enum Next {
    Continue,
    End,
}

impl Driver {
    fn new(shared: Arc<Shared>, read: OwnedFd, write: OwnedFd) -> io::Result<Self> {
        // Both before either is changed: they may be one.
        let (read_flags, write_flags) = (rustix::fs::fcntl_getfl(&read)?, rustix::fs::fcntl_getfl(&write)?);
        Ok(Self {
            unread: shared.holds.load(Ordering::Acquire),
            shared,
            mux: Mux::new(),
            read: NonBlocking::new(read, read_flags)?,
            write: Some(NonBlocking::new(write, write_flags)?),
            started: Instant::now(),
            out: Vec::new(),
            level: Level::default(),
            sent: 0,
            received: 0,
            writes: 0,
            closing: None,
            broken: false,
        })
    }

    fn run(mut self) {
        let mut buffer = vec![0; READ_SIZE];
        while self.turn(&mut buffer) == Next::Continue {}
        self.publish(0);
    }

    fn turn(&mut self, buffer: &mut [u8]) -> Next {
        self.take_transmits();
        if self.shared.dropped.load(Ordering::Acquire) && self.closing.is_none() {
            return Next::End;
        }
        self.fill();
        self.publish(0);
        if self.mux.backlog().total > QUEUE_LIMIT {
            return self.end(CloseReason::TooMuch("bytes that the link does not take".into()));
        }
        let Some(ready) = self.wait() else {
            return self.end(CloseReason::LinkLost("the peer did not answer the close".into()));
        };
        if ready.write {
            self.write_some();
        }
        if ready.read { self.read_some(buffer) } else { Next::Continue }
    }

    fn take_transmits(&mut self) {
        self.shared.kick.lower();
        let (transmits, counted) = self.shared.outbox.take();
        for transmit in transmits {
            match transmit {
                Transmit::Close { code, reason } => self.close(code, reason),
                transmit => self.mux.transmit(transmit),
            }
        }
        self.publish(counted);
        self.mux.acknowledge(self.shared.inbox.consumed());
    }

    fn close(&mut self, code: u32, reason: String) {
        if self.closing.is_none() {
            let deadline = Instant::now() + CLOSE_LINGER;
            self.closing = Some((CloseReason::from_wire(code, &reason), deadline));
            self.mux.transmit(Transmit::Close { code, reason });
        }
    }

    /// Tops up the bytes to write; ends the outgoing direction when nothing will follow.
    fn fill(&mut self) {
        if self.write.is_none() {
            // What is said to a peer that hears nothing any more goes nowhere.
            self.mux.produce(self.started.elapsed(), &mut self.out);
            self.out.clear();
            return;
        }
        if self.out.is_empty() {
            self.mux.produce(self.started.elapsed(), &mut self.out);
        }
        if self.out.is_empty() && self.mux.is_closed() {
            self.end_write();
        }
    }

    fn end_write(&mut self) {
        self.out.clear();
        if let Some(write) = self.write.take() {
            // A pipe ends by being closed; a socket must be told, the reading half still holds it. Not a socket:
            // an error without meaning.
            let _ = rustix::net::shutdown(&write.fd, rustix::net::Shutdown::Write);
        }
    }

    /// Tells the run loop of the link, then of the room that there is on it: who is woken must not see the link of
    /// before.
    fn publish(&mut self, counted: u64) {
        let state = self.state();
        *self.shared.link.lock().unwrap_or_else(PoisonError::into_inner) = state;
        let Backlog { total, content } = self.mux.backlog();
        let rest = Backlog { total: total + self.out.len() as u64, content };
        self.shared.outbox.publish(&mut self.level, counted, rest, state.ahead());
    }

    fn state(&self) -> LinkState {
        let window = self.mux.window();
        LinkState {
            datagram: 0,
            rtt: window.rtt(),
            rtt_deviation: Duration::ZERO,
            base_rtt: window.rtt(),
            queue_delay: Duration::ZERO,
            payload: None,
            in_order: true,
            window: window.size(),
            unsent: 0,
            idle: true,
            rate: window.rate(),
            sent_bytes: self.sent,
            received_bytes: self.received,
            lost_packets: 0,
            lost_runs: 0,
            sent_packets: self.writes,
            acked_packets: self.mux.acks(),
        }
    }

    /// Waits for either fd or a kick; `None` when the time to close is over.
    fn wait(&self) -> Option<Ready> {
        let left =
            self.closing.as_ref().map(|(_, deadline)| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return None;
        }
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let write = self.write.as_ref().filter(|_| !self.out.is_empty());
        let mut fds = vec![PollFd::new(&*self.shared.kick, PollFlags::IN)];
        let holds = self.shared.holds.load(Ordering::Acquire) || self.mux.answers() >= ANSWERS_LIMIT;
        let reads = !holds && !self.shared.inbox.is_full();
        let read_at = reads.then(|| {
            fds.push(PollFd::new(&self.read.fd, PollFlags::IN));
            fds.len() - 1
        });
        let write_at = write.map(|write| {
            fds.push(PollFd::new(&write.fd, PollFlags::OUT));
            fds.len() - 1
        });
        // EINTR: nothing is ready, the loop comes back.
        let _ = poll(&mut fds, timeout.as_ref());
        let ready = |at: Option<usize>| at.is_some_and(|at| !fds[at].revents().is_empty());
        Some(Ready { read: ready(read_at), write: ready(write_at) })
    }

    fn write_some(&mut self) {
        let Some(write) = &self.write else { return };
        match rustix::io::write(&write.fd, &self.out) {
            Ok(written) => {
                self.out.drain(..written);
                self.sent += written as u64;
                self.writes += 1;
            }
            Err(error) if is_transient(error) => {}
            // The peer's last words may still wait in the other direction; its end follows there.
            Err(_) => self.end_write(),
        }
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> Next {
        if std::mem::take(&mut self.unread) {
            self.mux.begin(self.started.elapsed());
        }
        let read = match rustix::io::read(&self.read.fd, &mut *buffer) {
            Ok(0) => {
                let cut = if self.mux.is_between_frames() { "" } else { " in the middle of a frame" };
                return self.end(CloseReason::LinkLost(format!("the byte stream ended{cut}")));
            }
            Ok(read) => read,
            Err(error) if is_transient(error) => return Next::Continue,
            Err(error) => return self.end(CloseReason::LinkLost(io::Error::from(error).to_string())),
        };
        self.received += read as u64;
        if self.broken {
            return Next::Continue;
        }
        let mut closed = None;
        let inbox = &self.shared.inbox;
        let received = self.mux.receive(self.started.elapsed(), &buffer[..read], |output| match output {
            Output::Arrival(arrival) => drop(inbox.push(arrival)),
            Output::Close { code, reason } => closed = Some(CloseReason::from_wire(code, &reason)),
        });
        if let Err(error) = received {
            self.refuse(&error);
        }
        closed.map_or(Next::Continue, |reason| self.end(reason))
    }

    /// The peer's bytes make no sense any more: say so, then only wait for its end.
    fn refuse(&mut self, error: &MuxError) {
        self.broken = true;
        let (code, reason) = CloseReason::ProtocolViolation(error.to_string()).to_wire();
        self.close(code, reason);
    }

    /// Tells the session why the link is over. What happens after this side's close is only the answer to it.
    fn end(&mut self, reason: CloseReason) -> Next {
        let reason = self.closing.take().map_or(reason, |(ours, _)| ours);
        self.shared.inbox.push(Arrival::Closed { reason });
        Next::End
    }
}

/// Which fds poll(2) reported, for any reason.
struct Ready {
    read: bool,
    write: bool,
}

/// An fd without blocking, which gets its old flags back.
struct NonBlocking {
    fd: OwnedFd,
    flags: OFlags,
}

impl NonBlocking {
    fn new(fd: OwnedFd, flags: OFlags) -> io::Result<Self> {
        rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
        Ok(Self { fd, flags })
    }
}

impl Drop for NonBlocking {
    fn drop(&mut self) {
        let _ = rustix::fs::fcntl_setfl(&self.fd, self.flags);
    }
}

fn is_transient(error: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    error == Errno::AGAIN || error == Errno::INTR
}

/// Bytes taken in one read: four full frames.
const READ_SIZE: usize = 64 << 10;

/// Payload that the run loop takes between two acknowledgements while more is queued.
const ACK_STEP: u64 = 16 << 10;

/// Bytes that the session holds and from which on the link is not read.
const HELD_LIMIT: u64 = 32 << 20;

/// Bytes of resets and stops that the link has not taken and from which on it is not read. Two sides that both have so
/// many wait for each other, but one that keeps to the session's limits has a hundredth of it.
const ANSWERS_LIMIT: usize = 1 << 20;

/// How long a close may take: to write what goes before it, and to see the peer's end.
const CLOSE_LINGER: Duration = Duration::from_secs(1);
