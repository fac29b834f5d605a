//! Descriptors that programs hand to each other through the session: clipboard, drag and drop.
//!
//! [`Pipes`] reads a descriptor into a pipe channel or writes a pipe channel into a descriptor. They are mostly FIFOs,
//! but programs also pass terminals, sockets and files, so nothing here relies on `O_NONBLOCK` of a description that it
//! may share with somebody. The window of a pipe channel ([`wayferry_proto::PIPE_WINDOW`]) bounds what waits for a
//! reader that does not read. A pipe outlives the connection that made it: programs hand over data and exit.
//! Invariant: each descriptor is closed exactly when its other half ended, gave up, or the value is dropped.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use bytes::Bytes;
use rustix::event::PollFlags;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use wayferry_proto::{ChannelId, ConnectionId, FILES, Header, RemoteChannelId, Session, Time};
use wayferry_wayland::{Piece, fuse};

use super::part::{Hub, Part};
use super::wait::{Interests, Ready};
use crate::error::Error;

/// Which pipe: its connection and its number there.
pub(crate) type PipeKey = (ConnectionId, u64);

/// All pipes of one side.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    outgoing: BTreeMap<PipeKey, Outgoing>,
    /// Those that are read when others have ended.
    waiting: VecDeque<(PipeKey, OwnedFd)>,
    incoming: BTreeMap<PipeKey, Incoming>,
    /// What has been collected.
    collected: Vec<(PipeKey, Piece)>,
}

impl Part for Pipes {
    fn interests<'a>(&'a mut self, _now: Time, hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.until(self.next_timeout());
        for (fd, flags, _) in self.polled(&hub.link.session) {
            interests.add_borrowed(fd, flags);
        }
    }

    fn turn(&mut self, now: Time, hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        let session = &mut hub.link.session;
        let polled = self.polled(session).map(|(fd, _, token)| (token, ready.flags(fd)));
        let ready: Vec<_> = polled.filter(|(_, flags)| !flags.is_empty()).collect();
        ready.into_iter().for_each(|(token, flags)| self.on_ready(session, token, flags));
        if self.next_timeout().is_some_and(|at| at <= now) {
            self.on_timeout(session, now);
        }
        Ok(())
    }
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
    /// It is collected: so many bytes so far.
    collected: Option<usize>,
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
    /// Opened anew without waiting: what the program does to its own descriptor never makes ours block.
    Fifo,
    /// Read and written with MSG_DONTWAIT.
    Socket,
    /// Terminal, file or device: after poll(2), a few bytes at a time.
    Other,
    /// It has no reader, or could block: not touched.
    Refused,
}

/// Which pipe a polled descriptor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PipeToken {
    /// A descriptor that is read.
    Out(PipeKey),
    /// A descriptor that is written.
    In(PipeKey),
}

impl Pipes {
    /// Sends what can be read from `fd`.
    pub(crate) fn send_from(&mut self, session: &mut Session, key: PipeKey, fd: OwnedFd) {
        if self.waiting.len() >= MAX_WAITING || self.outgoing.contains_key(&key) {
            return Self::send_nothing(session, key);
        }
        self.waiting.push_back((key, fd));
        self.begin(session);
    }

    /// Sends an empty pipe: the reader sees the end at once instead of waiting for ever.
    pub(crate) fn send_nothing(session: &mut Session, key: PipeKey) {
        let channel = session.open(header(key));
        session.finish(channel);
    }

    /// Begins to read those that wait, as far as there may be more.
    fn begin(&mut self, session: &mut Session) {
        while self.outgoing.len() < MAX_PIPES
            && let Some((key, fd)) = self.waiting.pop_front()
        {
            let channel = session.open(header(key));
            self.outgoing.insert(key, Outgoing { end: End::new(fd), channel });
        }
    }

    /// Writes what arrives to `fd`.
    pub(crate) fn receive_into(&mut self, session: &mut Session, key: PipeKey, fd: OwnedFd) {
        if self.incoming.len() >= MAX_INCOMING && !self.incoming.contains_key(&key) {
            return;
        }
        let pipe = self.incoming.entry(key).or_default();
        if !pipe.refused && pipe.end.is_none() {
            pipe.end = Some(End::new(fd));
            pipe.expires = None;
        }
        self.write(session, key);
    }

    /// Nothing is wanted of what arrives, or will; its writer is told.
    pub(crate) fn refuse(&mut self, session: &mut Session, key: PipeKey) {
        if self.incoming.len() < MAX_INCOMING || self.incoming.contains_key(&key) {
            self.incoming.entry(key).or_default();
            self.give_up(session, key);
        }
    }

    /// Collects what arrives.
    pub(crate) fn collect(&mut self, session: &mut Session, key: PipeKey) {
        if self.incoming.len() >= MAX_INCOMING && !self.incoming.contains_key(&key) {
            self.collected.push((key, Piece::Broken));
            return;
        }
        let pipe = self.incoming.entry(key).or_default();
        (pipe.collected, pipe.expires) = (Some(0), None);
        self.write(session, key);
    }

    /// What has been collected since.
    pub(crate) fn take_collected(&mut self) -> Vec<(PipeKey, Piece)> {
        std::mem::take(&mut self.collected)
    }

    /// The peer opened a pipe channel.
    pub(crate) fn on_opened(
        &mut self,
        session: &mut Session,
        now: Time,
        channel: RemoteChannelId,
        key: PipeKey,
    ) {
        if !self.incoming.contains_key(&key) {
            if self.incoming.len() >= MAX_INCOMING {
                return session.stop(channel, STOP_TOO_MANY);
            }
            if key.0 == FILES && self.files_ahead() >= MAX_FILES_AHEAD {
                // Its offer may still come, and hears of it: see `Pipes::was_turned_away`.
                let turned_away = Incoming { refused: true, finished: true, ..Incoming::default() };
                self.incoming.insert(key, turned_away);
                return session.stop(channel, STOP_TOO_MANY);
            }
        }
        let pipe = self.incoming.entry(key).or_default();
        pipe.channel = Some(channel);
        // With both halves here a transfer is under way; a channel alone does not wait for ever. That of a file does:
        // its offer comes, and where the link is away, as late as that.
        pipe.expires = if pipe.is_wanted() || key.0 == FILES { None } else { Some(now + GRACE) };
        if pipe.refused {
            session.stop(channel, STOP_NOT_READ);
            self.incoming.remove(&key);
        }
    }

    /// Whether a pipe came and was stopped because too many had come before it, none of which is wanted yet.
    pub(crate) fn was_turned_away(&self, key: PipeKey) -> bool {
        self.incoming.get(&key).is_some_and(|pipe| pipe.refused && pipe.finished)
    }

    /// Files that have begun to come, and whose offers have not.
    fn files_ahead(&self) -> usize {
        let files = self.incoming.range((FILES, 0)..=(FILES, u64::MAX));
        files.filter(|(_, pipe)| !pipe.refused && !pipe.is_wanted()).count()
    }

    /// Bytes of a pipe arrived.
    pub(crate) fn on_data(&mut self, session: &mut Session, key: PipeKey, bytes: Bytes) {
        if let Some(pipe) = self.incoming.get_mut(&key).filter(|pipe| !pipe.refused) {
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

    /// The peer gave a pipe up: what came must not be taken for the whole.
    pub(crate) fn on_reset(&mut self, key: PipeKey) {
        let pipe = self.incoming.remove(&key);
        self.collected.extend(pipe.and_then(|pipe| pipe.collected).map(|_| (key, Piece::Broken)));
    }

    /// The peer's reader does not want more: closing our end tells the writer.
    pub(crate) fn on_stopped(&mut self, session: &mut Session, key: PipeKey) {
        self.outgoing.remove(&key);
        self.begin(session);
    }

    /// The connection is over. Transfers under way go on; halves whose other half never came are forgotten later.
    pub(crate) fn on_connection_end(&mut self, session: &mut Session, now: Time, connection: ConnectionId) {
        let is_of_no_use =
            |key: &PipeKey, pipe: &mut Incoming| key.0 == connection && pipe.collected.is_some();
        let useless: Vec<(PipeKey, Incoming)> = self.incoming.extract_if(.., is_of_no_use).collect();
        for (key, mut pipe) in useless {
            match pipe.channel.take() {
                Some(channel) => session.stop(channel, STOP_NOT_READ),
                // It may still come.
                None => {
                    let refused =
                        Incoming { refused: true, expires: Some(now + GRACE), ..Incoming::default() };
                    self.incoming.insert(key, refused);
                }
            }
        }
        for (key, pipe) in &mut self.incoming {
            if key.0 == connection && (!pipe.is_wanted() || pipe.channel.is_none()) {
                pipe.expires = Some(now + GRACE);
            }
        }
    }

    /// How many descriptors they take.
    pub(crate) fn len(&self) -> usize {
        let outgoing = self.outgoing.len() + self.waiting.len();
        outgoing + self.incoming.values().filter(|pipe| pipe.end.is_some()).count()
    }

    /// The display at the other end will never come back: readers and writers here see the end.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
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
    fn polled<'a>(
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
    fn on_ready(&mut self, session: &mut Session, token: PipeToken, ready: PollFlags) {
        match token {
            PipeToken::Out(key) => {
                self.read(session, key);
                self.begin(session);
            }
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
        if pipe.collected.is_some() {
            return self.keep(session, key);
        }
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

    /// Hands over what waits for a pipe that is collected.
    fn keep(&mut self, session: &mut Session, key: PipeKey) {
        let Some(pipe) = self.incoming.get_mut(&key) else { return };
        let Some(length) = &mut pipe.collected else { return };
        for bytes in pipe.queue.drain(..) {
            *length += bytes.len();
            if let Some(channel) = pipe.channel {
                session.consumed(channel, bytes.len());
            }
            self.collected.push((key, Piece::Bytes(bytes)));
        }
        if *length > MAX_COLLECTED {
            pipe.collected = None;
            self.collected.push((key, Piece::Broken));
            self.give_up(session, key);
        } else if pipe.finished {
            self.collected.push((key, Piece::Whole));
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
            // The channel may still be on its way; remember that it is not wanted.
            pipe.end = None;
            pipe.queue.clear();
            pipe.refused = true;
        }
    }
}

impl Incoming {
    /// Whether it is known what becomes of what comes.
    fn is_wanted(&self) -> bool {
        self.end.is_some() || self.collected.is_some()
    }
}

impl End {
    /// A FIFO gets an open file description of our own: the program shares the other and may make it block again.
    fn new(fd: OwnedFd) -> Self {
        match fuse::file_type(&fd) {
            Ok(FileType::Fifo) => match reopened(&fd) {
                Ok(own) => Self { fd: own, kind: EndKind::Fifo },
                // No reader is left.
                Err(Errno::NXIO) => Self { fd, kind: EndKind::Refused },
                Err(_) => Self { fd, kind: EndKind::Other },
            },
            Ok(FileType::Socket) => Self { fd, kind: EndKind::Socket },
            // An eventfd and its kin block on some values in spite of poll.
            Ok(FileType::Unknown) | Err(_) => Self { fd, kind: EndKind::Refused },
            // poll(2) calls each regular file ready; one of FUSE is when a program says so, which may be never.
            Ok(_) if fuse::may_wait(&fd) => Self::without(fd),
            Ok(_) => Self { fd, kind: EndKind::Other },
        }
    }

    /// In place of a file that is not touched, such as one of FUSE.
    fn without(fd: OwnedFd) -> Self {
        match rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            Ok(nothing) => {
                fuse::close(fd);
                Self { fd: nothing, kind: EndKind::Refused }
            }
            Err(_) => Self { fd, kind: EndKind::Refused },
        }
    }

    fn read(&self, bytes: &mut [u8]) -> Result<usize, Errno> {
        match self.kind {
            EndKind::Socket => {
                rustix::net::recv(&self.fd, bytes, RecvFlags::DONTWAIT).map(|(count, _)| count)
            }
            EndKind::Fifo | EndKind::Other => rustix::io::read(&self.fd, bytes),
            EndKind::Refused => Err(Errno::INVAL),
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match self.kind {
            EndKind::Fifo => rustix::io::write(&self.fd, bytes),
            EndKind::Refused => Err(Errno::PIPE),
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

/// The same FIFO, opened anew and without waiting.
fn reopened(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    let access = rustix::fs::fcntl_getfl(fd)? & OFlags::RWMODE;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::open(path, access | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
}

fn header((connection, pipe): PipeKey) -> Header {
    Header::Pipe { connection, pipe }
}

/// Pipes that are read at once; a program has one or two.
const MAX_PIPES: usize = 1024;
/// Pipes that wait for one of those to end.
const MAX_WAITING: usize = 3072;
/// Pipes that are written, or will be: those that the peer reads, and lets wait.
const MAX_INCOMING: usize = MAX_PIPES + MAX_WAITING;
/// Files that come before their offers, each within its window: as many as an honest side has on their way.
const MAX_FILES_AHEAD: usize = 16;
/// Descriptors that pipes take at most.
pub(crate) const DESCRIPTORS: usize = MAX_PIPES + MAX_WAITING + MAX_INCOMING;
/// Bytes of a pipe that is collected; of more, none are of use.
const MAX_COLLECTED: usize = 64 << 20;
/// Bytes read from one descriptor in one turn.
const READ_PIECE: usize = 64 << 10;
/// Bytes written at once where a write could wait: a terminal is writable when at least this much fits.
const CAREFUL_PIECE: usize = 256;
/// How long a half waits for its other half after its connection is gone.
const GRACE: Duration = Duration::from_secs(10);
/// Stop code: the pipe has no reader.
const STOP_NOT_READ: u32 = 1;
/// Stop code: too many pipes.
const STOP_TOO_MANY: u32 = 2;
/// Reset code: the descriptor cannot be read.
const RESET_READ_ERROR: u32 = 1;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use rustix::pipe::{PipeFlags, pipe_with};
    use wayferry_proto::{Arrival, Config, Event, PIPE_WINDOW, Side, StreamId, Transmit};

    use super::*;

    const KEY: PipeKey = (ConnectionId(1), 2);

    /// Two sides with a perfect link between them.
    struct Pair {
        app: (Session, Pipes),
        display: (Session, Pipes),
        offsets: HashMap<(bool, StreamId), u64>,
    }

    impl Pair {
        fn new() -> Self {
            let side = |side| (Session::new(Config::new(side)), Pipes::default());
            let mut pair =
                Self { app: side(Side::App), display: side(Side::Display), offsets: HashMap::new() };
            pair.turn();
            pair
        }

        /// Moves everything that can move without waiting.
        fn turn(&mut self) {
            loop {
                let mut moved = false;
                for to_display in [true, false] {
                    let (from, to) = match to_display {
                        true => (&mut self.app, &mut self.display),
                        false => (&mut self.display, &mut self.app),
                    };
                    while let Some(transmit) = from.0.poll_transmit(Time::ZERO) {
                        moved = true;
                        carry(&mut self.offsets, to_display, transmit, &mut to.0);
                    }
                    while let Some(event) = to.0.poll_event() {
                        take(to, event);
                    }
                    moved |= ready(to);
                }
                if !moved {
                    return;
                }
            }
        }
    }

    fn carry(offsets: &mut HashMap<(bool, StreamId), u64>, way: bool, transmit: Transmit, to: &mut Session) {
        match transmit {
            Transmit::Data { stream, bytes, finish } => {
                let offset = offsets.entry((way, stream)).or_default();
                let arrival = Arrival::Data { stream, offset: *offset, bytes: bytes.clone() };
                *offset += bytes.len() as u64;
                let length = *offset;
                to.receive(Time::ZERO, arrival);
                if finish {
                    to.receive(Time::ZERO, Arrival::Finished { stream, length });
                }
            }
            Transmit::Reset { stream, code } => to.receive(Time::ZERO, Arrival::Reset { stream, code }),
            Transmit::Stop { stream, code } => to.receive(Time::ZERO, Arrival::Stopped { stream, code }),
            _ => {}
        }
    }

    fn take((session, pipes): &mut (Session, Pipes), event: Event) {
        match event {
            Event::Opened { channel, header: Header::Pipe { connection, pipe } } => {
                pipes.on_opened(session, Time::ZERO, channel, (connection, pipe));
            }
            Event::Data { header: Header::Pipe { connection, pipe }, bytes, .. } => {
                pipes.on_data(session, (connection, pipe), bytes);
            }
            Event::Finished { header: Header::Pipe { connection, pipe }, .. } => {
                pipes.on_finished(session, (connection, pipe));
            }
            Event::Reset { header: Header::Pipe { connection, pipe }, .. } => {
                pipes.on_reset((connection, pipe))
            }
            Event::Stopped { header: Header::Pipe { connection, pipe }, .. } => {
                pipes.on_stopped(session, (connection, pipe))
            }
            Event::Closed { reason, .. } => panic!("the session ended: {reason}"),
            _ => {}
        }
    }

    /// Serves the descriptors that are ready now; says whether there were any.
    fn ready((session, pipes): &mut (Session, Pipes)) -> bool {
        let found: Vec<(PipeToken, PollFlags)> = pipes
            .polled(session)
            .filter_map(|(fd, flags, token)| {
                let mut set = [rustix::event::PollFd::from_borrowed_fd(fd, flags)];
                crate::edge::wait::poll(&mut set, Some(Duration::ZERO)).expect("poll");
                (!set[0].revents().is_empty()).then(|| (token, set[0].revents()))
            })
            .collect();
        for (token, flags) in &found {
            pipes.on_ready(session, *token, *flags);
        }
        !found.is_empty()
    }

    fn fifo() -> (OwnedFd, OwnedFd) {
        pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).expect("a pipe")
    }

    fn text(length: usize) -> Vec<u8> {
        (0..length).map(|index| (index * 31 % 251) as u8).collect()
    }

    /// Writes as much as goes, and says how much that was.
    fn fill(fd: &OwnedFd, bytes: &[u8]) -> usize {
        let mut written = 0;
        while written < bytes.len() {
            match rustix::io::write(fd, &bytes[written..]) {
                Ok(count) => written += count,
                Err(_) => break,
            }
        }
        written
    }

    fn drain(fd: &OwnedFd) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = rustix::io::read(fd, &mut piece) {
            bytes.extend(&piece[..count]);
        }
        bytes
    }

    /// Waits until every copy of the other end is closed. A process that another test starts holds copies of all
    /// our descriptors until it runs its program, so `drop` alone does not end a pipe.
    fn alone(fd: impl AsFd) {
        let closed = PollFlags::HUP | PollFlags::ERR;
        let mut set = [rustix::event::PollFd::new(&fd, PollFlags::empty())];
        crate::edge::wait::poll(&mut set, Some(Duration::from_secs(10))).expect("poll");
        assert!(set[0].revents().intersects(closed), "somebody still holds the other end");
    }

    /// The program shares its descriptor's description with us, but not the one that is written to.
    #[test]
    fn a_fifo_that_a_program_makes_block_again_does_not_block() {
        let mut pair = Pair::new();
        let ((source, writer), (_reader, target)) = (fifo(), fifo());
        let theirs = target.try_clone().expect("a copy");
        pair.app.1.send_from(&mut pair.app.0, KEY, source);
        pair.display.1.receive_into(&mut pair.display.0, KEY, target);
        fill(&theirs, &text(1 << 20));
        rustix::fs::fcntl_setfl(&theirs, OFlags::empty()).expect("blocking again");
        assert_eq!(fill(&writer, b"x"), 1);
        // Would wait here for ever.
        pair.turn();
    }

    #[test]
    fn regression_one_pipe_too_many_is_empty() {
        crate::edge::descriptors::raise();
        let mut pair = Pair::new();
        let ((busy, holds), (source, writer), (reader, target)) = (fifo(), fifo(), fifo());
        for pipe in 0..MAX_PIPES as u64 {
            let fd = busy.try_clone().expect("a descriptor");
            pair.app.1.send_from(&mut pair.app.0, (KEY.0, 10 + pipe), fd);
        }
        pair.app.1.send_from(&mut pair.app.0, KEY, source);
        pair.display.1.receive_into(&mut pair.display.0, KEY, target);
        fill(&writer, b"pasted");
        drop(writer);
        pair.turn();
        assert_eq!((drain(&reader), pair.display.1.len()), (Vec::new(), 1), "it waits");
        drop((busy, holds));
        while pair.app.1.len() > 0 {
            pair.turn();
        }
        pair.turn();
        assert_eq!(drain(&reader), b"pasted");
    }

    #[test]
    fn a_transfer_under_way_outlives_its_connection() {
        let mut pair = Pair::new();
        let ((source, writer), (reader, target)) = (fifo(), fifo());
        pair.display.1.receive_into(&mut pair.display.0, KEY, target);
        pair.display.1.on_connection_end(&mut pair.display.0, Time::ZERO, KEY.0);
        pair.app.1.send_from(&mut pair.app.0, KEY, source);
        fill(&writer, b"first");
        pair.turn();
        assert_eq!(pair.display.1.next_timeout(), None);
        pair.display.1.on_timeout(&mut pair.display.0, Time::ZERO + 2 * GRACE);
        fill(&writer, b" and last");
        pair.turn();
        assert_eq!(drain(&reader), b"first and last");
    }

    #[test]
    fn a_megabyte_crosses_and_a_slow_reader_costs_no_more_than_the_window() {
        let mut pair = Pair::new();
        let ((source, writer), (reader, target)) = (fifo(), fifo());
        pair.app.1.send_from(&mut pair.app.0, KEY, source);
        pair.display.1.receive_into(&mut pair.display.0, KEY, target);
        let (sent, mut written, mut read) = (text(1 << 20), 0, Vec::new());
        loop {
            let count = fill(&writer, &sent[written..]);
            written += count;
            pair.turn();
            if count == 0 {
                break;
            }
        }
        // Nothing was read: what is on the way is the window and the two pipes' own buffers.
        assert!(written <= PIPE_WINDOW + 3 * 64 * 1024, "{written} bytes were taken from the writer");
        while written < sent.len() {
            read.extend(drain(&reader));
            pair.turn();
            written += fill(&writer, &sent[written..]);
            pair.turn();
        }
        drop(writer);
        alone(&pair.app.1.outgoing[&KEY].end.fd);
        for _ in 0..64 {
            pair.turn();
            read.extend(drain(&reader));
        }
        assert!(read == sent, "{} of {} bytes", read.len(), sent.len());
        assert!(pair.app.1.outgoing.is_empty() && pair.display.1.incoming.is_empty());
    }

    #[test]
    fn a_reader_that_stops_early_ends_the_writer() {
        let mut pair = Pair::new();
        let ((source, writer), (reader, target)) = (fifo(), fifo());
        pair.app.1.send_from(&mut pair.app.0, KEY, source);
        pair.display.1.receive_into(&mut pair.display.0, KEY, target);
        fill(&writer, b"first");
        pair.turn();
        assert_eq!(drain(&reader), b"first");
        drop(reader);
        alone(&pair.display.1.incoming[&KEY].end.as_ref().expect("a descriptor").fd);
        // Nothing more was written, yet the writer is told.
        pair.turn();
        alone(&writer);
        assert_eq!(rustix::io::write(&writer, b"more"), Err(Errno::PIPE));
        assert!(pair.app.1.outgoing.is_empty() && pair.display.1.incoming.is_empty());
    }

    #[test]
    fn either_half_may_come_first() {
        for reader_first in [true, false] {
            let mut pair = Pair::new();
            let ((source, writer), (reader, target)) = (fifo(), fifo());
            fill(&writer, b"text");
            drop(writer);
            alone(&source);
            let mut target = Some(target);
            if reader_first {
                pair.display.1.receive_into(&mut pair.display.0, KEY, target.take().expect("once"));
            }
            pair.app.1.send_from(&mut pair.app.0, KEY, source);
            pair.turn();
            if let Some(target) = target {
                pair.display.1.receive_into(&mut pair.display.0, KEY, target);
            }
            pair.turn();
            assert_eq!(drain(&reader), b"text");
            alone(&reader);
            assert_eq!(rustix::io::read(&reader, &mut [0; 1]), Ok(0), "the end is passed on");
        }
    }

    /// The offer may have been lost with a link that was away.
    #[test]
    fn regression_a_file_whose_offer_is_late_never_comes() {
        let mut pair = Pair::new();
        let ((source, writer), (reader, target), key) = (fifo(), fifo(), (FILES, 1));
        fill(&writer, b"text");
        drop(writer);
        pair.app.1.send_from(&mut pair.app.0, key, source);
        pair.turn();
        pair.display.1.on_timeout(&mut pair.display.0, Time::ZERO + 2 * GRACE);
        pair.turn();
        pair.display.1.receive_into(&mut pair.display.0, key, target);
        pair.turn();
        assert_eq!(drain(&reader), b"text");
        assert!(pair.display.1.incoming.is_empty() && pair.app.1.outgoing.is_empty());
    }

    #[test]
    fn regression_files_that_are_never_offered_fill_the_memory() {
        let mut pair = Pair::new();
        let (count, (reader, target)) = (MAX_FILES_AHEAD as u64 + 4, fifo());
        let writers: Vec<OwnedFd> = (0..count)
            .map(|file| {
                let (source, writer) = fifo();
                fill(&writer, b"text");
                pair.app.1.send_from(&mut pair.app.0, (FILES, file), source);
                writer
            })
            .collect();
        pair.turn();
        let held: usize = pair.display.1.incoming.values().map(|pipe| pipe.queue.len()).sum();
        assert_eq!((pair.display.1.files_ahead(), held), (MAX_FILES_AHEAD, MAX_FILES_AHEAD));
        assert_eq!(pair.app.1.outgoing.len(), MAX_FILES_AHEAD, "the others are told");
        writers[MAX_FILES_AHEAD..].iter().for_each(alone);
        // Their offers are late, and hear the same.
        let late = (FILES, count - 1);
        assert!(pair.display.1.was_turned_away(late) && !pair.display.1.was_turned_away((FILES, 0)));
        pair.display.1.refuse(&mut pair.display.0, late);
        assert!(!pair.display.1.incoming.contains_key(&late));
        // Those that are wanted leave room for others.
        pair.display.1.receive_into(&mut pair.display.0, (FILES, 0), target);
        assert_eq!(drain(&reader), b"text");
        let (source, _writer) = fifo();
        pair.app.1.send_from(&mut pair.app.0, (FILES, count), source);
        pair.turn();
        assert!(!pair.display.1.was_turned_away((FILES, count)));
    }

    #[test]
    fn a_pipe_that_is_refused_ends_its_writer_and_leaves_nothing() {
        for refused_first in [true, false] {
            let mut pair = Pair::new();
            let ((source, writer), key) = (fifo(), (FILES, 1));
            fill(&writer, b"text");
            if refused_first {
                pair.display.1.refuse(&mut pair.display.0, key);
            }
            pair.app.1.send_from(&mut pair.app.0, key, source);
            pair.turn();
            if !refused_first {
                pair.display.1.refuse(&mut pair.display.0, key);
                pair.turn();
            }
            alone(&writer);
            assert!(pair.display.1.incoming.is_empty() && pair.app.1.outgoing.is_empty());
        }
    }

    #[test]
    fn sockets_and_files_are_pipes_too() {
        let mut pair = Pair::new();
        let (mut ours, source) = UnixStream::pair().expect("sockets");
        ours.write_all(&text(100_000)).expect("fits");
        let path = std::env::temp_dir().join(format!("wayferry-pipes-{}", std::process::id()));
        let file = std::fs::File::create(&path).expect("a file");
        pair.app.1.send_from(&mut pair.app.0, KEY, source.into());
        pair.display.1.receive_into(&mut pair.display.0, KEY, file.into());
        drop(ours);
        alone(&pair.app.1.outgoing[&KEY].end.fd);
        pair.turn();
        let written = std::fs::read(&path).expect("the file");
        assert!(written == text(100_000), "{} bytes", written.len());
        // And back: from a file into a socket.
        let (mut ours, target) = UnixStream::pair().expect("sockets");
        let key = (ConnectionId(1), 3);
        pair.display.1.send_from(&mut pair.display.0, key, std::fs::File::open(&path).expect("open").into());
        pair.app.1.receive_into(&mut pair.app.0, key, target.into());
        pair.turn();
        let mut read = Vec::new();
        ours.read_to_end(&mut read).expect("the end is passed on");
        assert!(read == text(100_000), "{} bytes", read.len());
        let _ = std::fs::remove_file(&path);
    }

    /// What has been collected, if it is whole.
    fn whole(pipes: &mut Pipes) -> Option<Vec<u8>> {
        let mut all = Vec::new();
        let mut ends = Vec::new();
        for (key, piece) in pipes.take_collected() {
            assert_eq!((key, ends.len()), (KEY, 0), "nothing comes behind the end");
            match piece {
                Piece::Bytes(bytes) => all.extend(bytes),
                end => ends.push(end),
            }
        }
        (ends == [Piece::Whole]).then_some(all)
    }

    /// A file of a megabyte is more than the window; what is reset, or too much, is broken.
    #[test]
    fn what_is_collected_comes_whole_or_is_broken() {
        for collected_first in [true, false] {
            let mut pair = Pair::new();
            let bytes = text(1 << 20);
            let file = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("memory");
            assert_eq!(rustix::io::pwrite(&file, &bytes, 0), Ok(bytes.len()));
            let collect = |pair: &mut Pair| pair.app.1.collect(&mut pair.app.0, KEY);
            if collected_first {
                collect(&mut pair);
            }
            pair.display.1.send_from(&mut pair.display.0, KEY, file);
            pair.turn();
            if !collected_first {
                assert!(pair.app.1.take_collected().is_empty());
                collect(&mut pair);
                pair.turn();
            }
            assert!(whole(&mut pair.app.1) == Some(bytes));
            assert!(pair.app.1.incoming.is_empty() && pair.app.1.take_collected().is_empty());
        }
        let mut pair = Pair::new();
        pair.app.1.collect(&mut pair.app.0, KEY);
        pair.app.1.on_reset(KEY);
        assert_eq!(pair.app.1.take_collected(), [(KEY, Piece::Broken)]);
        pair.app.1.collect(&mut pair.app.0, KEY);
        let too_much = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("memory");
        rustix::fs::ftruncate(&too_much, MAX_COLLECTED as u64 + 1).expect("room");
        pair.display.1.send_from(&mut pair.display.0, KEY, too_much);
        pair.turn();
        assert_eq!(pair.app.1.take_collected().last(), Some(&(KEY, Piece::Broken)));
        assert!(pair.app.1.incoming.is_empty() && pair.display.1.outgoing.is_empty());
    }

    /// No program is there for it.
    #[test]
    fn what_is_collected_ends_with_its_connection() {
        for is_open in [true, false] {
            let mut pair = Pair::new();
            pair.app.1.collect(&mut pair.app.0, KEY);
            let (read, write) = fifo();
            if is_open {
                fill(&write, b"some");
                pair.display.1.send_from(&mut pair.display.0, KEY, read);
                pair.turn();
                pair.app.1.on_connection_end(&mut pair.app.0, Time::ZERO, KEY.0);
            } else {
                pair.app.1.on_connection_end(&mut pair.app.0, Time::ZERO, KEY.0);
                fill(&write, b"some");
                pair.display.1.send_from(&mut pair.display.0, KEY, read);
            }
            pair.turn();
            assert!(pair.app.1.incoming.is_empty() && pair.display.1.outgoing.is_empty(), "{is_open}");
        }
    }

    #[test]
    fn a_terminal_is_a_pipe_whose_end_is_an_error() {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let mut pair = Pair::new();
        let source = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&source).expect("granted");
        unlockpt(&source).expect("unlocked");
        let name = ptsname(&source, Vec::new()).expect("its name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let writer = rustix::fs::open(name, flags, Mode::empty()).expect("its other end");
        let (reader, target) = fifo();
        pair.app.1.send_from(&mut pair.app.0, KEY, source);
        pair.display.1.receive_into(&mut pair.display.0, KEY, target);
        fill(&writer, b"line\n");
        pair.turn();
        assert_eq!(drain(&reader), b"line\r\n");
        drop(writer);
        alone(&pair.app.1.outgoing[&KEY].end.fd);
        pair.turn();
        alone(&reader);
        assert_eq!(rustix::io::read(&reader, &mut [0; 1]), Ok(0), "the end is passed on");
    }

    #[test]
    fn a_half_whose_other_half_never_comes_is_forgotten() {
        let mut pair = Pair::new();
        let (reader, target) = fifo();
        pair.display.1.receive_into(&mut pair.display.0, KEY, target);
        pair.display.1.on_connection_end(&mut pair.display.0, Time::ZERO, KEY.0);
        let due = pair.display.1.next_timeout().expect("a deadline");
        pair.display.1.on_timeout(&mut pair.display.0, due);
        alone(&reader);
        assert_eq!(rustix::io::read(&reader, &mut [0; 1]), Ok(0), "the descriptor is closed");
        assert_eq!(pair.display.1.next_timeout(), None);
    }
}
