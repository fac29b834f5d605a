//! Descriptors that programs hand to each other through the session: clipboard, drag and drop.
//!
//! [`Pipes`] reads a descriptor into a pipe channel or writes a pipe channel into a descriptor. They are mostly FIFOs,
//! but programs also pass terminals, sockets and files, so nothing here relies on `O_NONBLOCK` of a description that it
//! may share with somebody. The window of a pipe channel ([`wayferry_proto::PIPE_WINDOW`]) bounds what waits for a
//! reader that does not read. A pipe outlives the connection that made it: programs hand over data and exit.
//! Invariant: each descriptor is closed exactly when its other half ended, gave up, or the value is dropped.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use bytes::Bytes;
use rustix::event::PollFlags;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use wayferry_proto::{ChannelId, ConnectionId, Header, RemoteChannelId, Session, Time};

/// Which pipe: its connection and its number there.
pub(crate) type PipeKey = (ConnectionId, u64);

/// All pipes of one side.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    outgoing: BTreeMap<PipeKey, Outgoing>,
    incoming: BTreeMap<PipeKey, Incoming>,
}

/// A descriptor that is read into a channel.
#[derive(Debug)]
struct Outgoing {
    end: End,
    channel: ChannelId,
}

/// A channel that is written into a descriptor. Either of the two may come first.
#[derive(Debug, Default)]
struct Incoming {
    end: Option<End>,
    channel: Option<RemoteChannelId>,
    queue: VecDeque<Bytes>,
    finished: bool,
    /// The descriptor is closed although the channel may still come or go on.
    refused: bool,
    /// The connection is gone and the missing half may never come: forget it at this time.
    expires: Option<Time>,
}

/// A descriptor and how to use it without ever waiting.
#[derive(Debug)]
struct End {
    fd: OwnedFd,
    kind: EndKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndKind {
    /// Made non-blocking: its two ends belong to nobody but the transfer.
    Fifo,
    /// Read and written with MSG_DONTWAIT.
    Socket,
    /// Terminal, file or device: after poll(2), a few bytes at a time.
    Other,
}

/// Which pipe a polled descriptor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PipeToken {
    /// To be given to [`Pipes::on_readable`].
    Out(PipeKey),
    /// To be given to [`Pipes::on_writable`].
    In(PipeKey),
}

impl Pipes {
    /// Sends what can be read from `fd`.
    pub(crate) fn send_from(&mut self, session: &mut Session, key: PipeKey, fd: OwnedFd) {
        if self.outgoing.len() >= MAX_PIPES || self.outgoing.contains_key(&key) {
            // An empty pipe: the reader sees the end at once instead of waiting for ever.
            let channel = session.open(header(key));
            session.finish(channel);
            return;
        }
        let channel = session.open(header(key));
        self.outgoing.insert(key, Outgoing { end: End::new(fd), channel });
    }

    /// Writes what arrives to `fd`.
    pub(crate) fn receive_into(&mut self, session: &mut Session, key: PipeKey, fd: OwnedFd) {
        if self.incoming.len() >= MAX_PIPES && !self.incoming.contains_key(&key) {
            return;
        }
        let pipe = self.incoming.entry(key).or_default();
        if !pipe.refused && pipe.end.is_none() {
            pipe.end = Some(End::new(fd));
            pipe.expires = None;
        }
        self.write(session, key);
    }

    /// The peer opened a pipe channel.
    pub(crate) fn on_opened(&mut self, session: &mut Session, channel: RemoteChannelId, key: PipeKey) {
        let known = self.incoming.contains_key(&key);
        if !known && self.incoming.len() >= MAX_PIPES {
            return session.stop(channel, STOP_TOO_MANY);
        }
        let pipe = self.incoming.entry(key).or_default();
        pipe.channel = Some(channel);
        if pipe.refused {
            session.stop(channel, STOP_NOT_READ);
            self.incoming.remove(&key);
        }
    }

    /// Bytes of a pipe arrived.
    pub(crate) fn on_data(&mut self, session: &mut Session, key: PipeKey, bytes: Bytes) {
        if let Some(pipe) = self.incoming.get_mut(&key) {
            pipe.queue.push_back(bytes);
        }
        self.write(session, key);
    }

    /// The peer's end of a pipe reached its end.
    pub(crate) fn on_finished(&mut self, session: &mut Session, key: PipeKey) {
        if let Some(pipe) = self.incoming.get_mut(&key) {
            pipe.finished = true;
            pipe.channel = None;
        }
        self.write(session, key);
    }

    /// The peer gave a pipe up: nobody must take what came for the whole.
    pub(crate) fn on_reset(&mut self, key: PipeKey) {
        self.incoming.remove(&key);
    }

    /// The peer's reader does not want more: closing our end tells the writer.
    pub(crate) fn on_stopped(&mut self, key: PipeKey) {
        self.outgoing.remove(&key);
    }

    /// The connection is over. Transfers under way go on; halves whose other half never came are forgotten later.
    pub(crate) fn on_connection_end(&mut self, now: Time, connection: ConnectionId) {
        for (key, pipe) in &mut self.incoming {
            if key.0 == connection && (pipe.end.is_none() || pipe.channel.is_none()) {
                pipe.expires = Some(now + GRACE);
            }
        }
    }

    /// When [`Pipes::on_timeout`] is to be called.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.incoming.values().filter_map(|pipe| pipe.expires).min()
    }

    /// Forgets what has waited long enough.
    pub(crate) fn on_timeout(&mut self, session: &mut Session, now: Time) {
        self.incoming.retain(|_, pipe| {
            let over = pipe.expires.is_some_and(|at| at <= now);
            if let (true, Some(channel)) = (over, pipe.channel) {
                session.stop(channel, STOP_NOT_READ);
            }
            !over
        });
    }

    /// The descriptors to poll, and for what.
    pub(crate) fn interests<'a>(
        &'a self,
        session: &'a Session,
    ) -> impl Iterator<Item = (BorrowedFd<'a>, PollFlags, PipeToken)> + 'a {
        let outgoing = self
            .outgoing
            .iter()
            .filter(|(_, pipe)| session.pipe_room(pipe.channel) > 0)
            .map(|(key, pipe)| (pipe.end.fd.as_fd(), PollFlags::IN, PipeToken::Out(*key)));
        let incoming = self.incoming.iter().filter_map(|(key, pipe)| {
            // Without anything to write, the poll still reports a reader that is gone.
            let wanted = if pipe.queue.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            pipe.end.as_ref().map(|end| (end.fd.as_fd(), wanted, PipeToken::In(*key)))
        });
        outgoing.chain(incoming)
    }

    /// Something happened to a polled descriptor.
    pub(crate) fn on_ready(&mut self, session: &mut Session, token: PipeToken, ready: PollFlags) {
        match token {
            PipeToken::Out(key) => self.read(session, key),
            PipeToken::In(key) if ready.intersects(PollFlags::OUT) => self.write(session, key),
            PipeToken::In(key) if ready.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) => {
                self.give_up(session, key);
            }
            PipeToken::In(_) => {}
        }
    }

    /// Reads a bounded piece of an outgoing pipe.
    fn read(&mut self, session: &mut Session, key: PipeKey) {
        let Some(pipe) = self.outgoing.get(&key) else { return };
        let room = session.pipe_room(pipe.channel).min(READ_PIECE);
        if room == 0 {
            return;
        }
        let mut bytes = vec![0; room];
        match pipe.end.read(&mut bytes) {
            Ok(0) => {
                session.finish(pipe.channel);
                self.outgoing.remove(&key);
            }
            Ok(count) => {
                bytes.truncate(count);
                session.write(pipe.channel, bytes.into());
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            // A terminal whose other end is closed reads as EIO: that is its end of file.
            Err(Errno::IO) => {
                session.finish(pipe.channel);
                self.outgoing.remove(&key);
            }
            Err(_) => {
                session.reset(pipe.channel, RESET_READ_ERROR);
                self.outgoing.remove(&key);
            }
        }
    }

    /// Writes what waits for an incoming pipe, as far as its descriptor takes it.
    fn write(&mut self, session: &mut Session, key: PipeKey) {
        let Some(pipe) = self.incoming.get_mut(&key) else { return };
        let Some(end) = &pipe.end else { return };
        let mut failed = false;
        while let Some(bytes) = pipe.queue.front_mut() {
            match end.write(bytes) {
                Ok(count) => {
                    let written = bytes.split_to(count);
                    if bytes.is_empty() {
                        pipe.queue.pop_front();
                    }
                    if let Some(channel) = pipe.channel {
                        session.consumed(channel, written.len());
                    }
                    if end.kind == EndKind::Other {
                        // A second write without another poll could wait.
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    failed = true;
                    break;
                }
            }
        }
        let done = pipe.finished && pipe.queue.is_empty();
        if failed {
            self.give_up(session, key);
        } else if done {
            self.incoming.remove(&key);
        }
    }

    /// The reader is gone: tell the writer.
    fn give_up(&mut self, session: &mut Session, key: PipeKey) {
        let Some(pipe) = self.incoming.get_mut(&key) else { return };
        if let Some(channel) = pipe.channel.take() {
            session.stop(channel, STOP_NOT_READ);
            self.incoming.remove(&key);
        } else if pipe.finished {
            self.incoming.remove(&key);
        } else {
            // The channel may still be on its way; remember that nobody wants it.
            pipe.end = None;
            pipe.queue.clear();
            pipe.refused = true;
        }
    }
}

impl End {
    /// Only FIFOs are changed.
    fn new(fd: OwnedFd) -> Self {
        let kind = match rustix::fs::fstat(&fd).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Fifo) => EndKind::Fifo,
            Ok(FileType::Socket) => EndKind::Socket,
            _ => EndKind::Other,
        };
        if kind == EndKind::Fifo
            && let Ok(flags) = rustix::fs::fcntl_getfl(&fd)
        {
            let _ = rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK);
        }
        Self { fd, kind }
    }

    fn read(&self, bytes: &mut [u8]) -> Result<usize, Errno> {
        match self.kind {
            EndKind::Socket => {
                rustix::net::recv(&self.fd, bytes, RecvFlags::DONTWAIT).map(|(count, _)| count)
            }
            EndKind::Fifo | EndKind::Other => rustix::io::read(&self.fd, bytes),
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match self.kind {
            EndKind::Fifo => rustix::io::write(&self.fd, bytes),
            EndKind::Socket => rustix::net::send(&self.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
            EndKind::Other => {
                let ready = &mut [rustix::event::PollFd::new(&self.fd, PollFlags::OUT)];
                rustix::event::poll(ready, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 }))?;
                match ready[0].revents() {
                    flags if flags.contains(PollFlags::OUT) => {
                        rustix::io::write(&self.fd, &bytes[..bytes.len().min(CAREFUL_PIECE)])
                    }
                    flags if flags.is_empty() => Err(Errno::AGAIN),
                    _ => Err(Errno::PIPE),
                }
            }
        }
    }
}

fn header((connection, pipe): PipeKey) -> Header {
    Header::Pipe { connection, pipe }
}

/// Pipes in one direction at once; a program has one or two.
const MAX_PIPES: usize = 1024;
/// Bytes read from one descriptor in one turn.
const READ_PIECE: usize = 64 << 10;
/// Bytes written at once where a write could wait: a terminal is writable when at least this much fits.
const CAREFUL_PIECE: usize = 256;
/// How long a half waits for its other half after its connection is gone.
const GRACE: Duration = Duration::from_secs(10);
/// Stop code: nobody reads the pipe.
const STOP_NOT_READ: u32 = 1;
/// Stop code: too many pipes.
const STOP_TOO_MANY: u32 = 2;
/// Reset code: the descriptor cannot be read.
const RESET_READ_ERROR: u32 = 1;
