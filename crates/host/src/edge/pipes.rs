//! Descriptors that programs hand to each other through the session: clipboard, drag and drop.
//!
//! [`Pipes`] reads a descriptor into a pipe channel or writes a pipe channel into a descriptor. They are mostly FIFOs,
//! but programs also pass terminals, sockets and files, so nothing here relies on `O_NONBLOCK` of a description that it
//! may share with somebody. The window of a pipe channel ([`wayferry_proto::PIPE_WINDOW`]) bounds what waits for a
//! reader that does not read. A pipe outlives the connection that made it: programs hand over data and exit.
//! Invariant: each descriptor is closed exactly when its other half ended, gave up, or the value is dropped.

mod end;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use bytes::Bytes;
use rustix::event::PollFlags;
use rustix::io::Errno;
use wayferry_proto::{ChannelId, ConnectionId, FILES, Header, RemoteChannelId, Session, Time};
use wayferry_wayland::Piece;

use self::end::{End, EndKind};
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
/// How long a half waits for its other half after its connection is gone.
const GRACE: Duration = Duration::from_secs(10);
/// Stop code: the pipe has no reader.
const STOP_NOT_READ: u32 = 1;
/// Stop code: too many pipes.
const STOP_TOO_MANY: u32 = 2;
/// Reset code: the descriptor cannot be read.
const RESET_READ_ERROR: u32 = 1;

#[cfg(test)]
mod tests;
