//! Pipes of programs over a session: what one writes is collected, or goes on to another.
//!
//! Invariants: what is asked to be written ends here exactly once, with a whole, with nothing or with a reset; what
//! waits here is within the windows of pipes, for no more of it is called than has gone on; and no more goes on at a
//! time than the link has room for.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use wayferry_page::{Page, Pipe, Transfer};
use wayferry_proto::{ChannelId, ConnectionId, Header, PIPE_WINDOW, RemoteChannelId, Session, Time};

/// Pipes that programs are asked to write at once; who waits for one more sees its end.
pub(crate) const MAX_PIPES: usize = 64;

/// What a program pastes of the browser's at once while the link has no room; who pastes once more sees the end.
pub(crate) const MAX_SENDS: usize = 256;

/// How long a program that is gone may have left a pipe that has not come.
const GRACE: Duration = Duration::from_secs(5);

/// Stop codes: there are as many pipes as may be, or more bytes; it was not asked for, or is not wanted any more.
const STOP_TOO_MUCH: u32 = 6;
const STOP_UNKNOWN: u32 = 3;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    written: BTreeMap<Pipe, Written>,
    /// What of the browser's goes to programs and has not begun to, by program.
    sends: BTreeMap<ConnectionId, VecDeque<(u64, Bytes)>>,
    /// Programs take turns: the one of this number, or behind it, is next.
    turn: u32,
}

/// What a program writes.
#[derive(Debug)]
struct Written {
    /// While it comes.
    channel: Option<RemoteChannelId>,
    /// It comes, or has come: another of that number is none that was asked for.
    has_come: bool,
    /// When it is given up if it has not.
    expires: Option<Time>,
    goes: Goes,
}

/// Where it goes.
#[derive(Debug)]
enum Goes {
    To { pipe: Pipe, channel: ChannelId, waiting: VecDeque<Bytes>, finished: bool },
    Page { bytes: Vec<u8>, most: usize },
}

impl Written {
    fn new(goes: Goes) -> Self {
        Self { channel: None, has_come: false, expires: None, goes }
    }
}

impl Pipes {
    /// Begins what the page wants.
    pub(crate) fn begin(&mut self, session: &mut Session, page: &mut Page, transfer: Transfer) {
        match transfer {
            Transfer::Send { to, bytes } => {
                let sends = self.sends.entry(to.0).or_default();
                if sends.len() < MAX_SENDS {
                    return sends.push_back((to.1, bytes));
                }
                send(session, to, Bytes::new());
            }
            Transfer::Relay { from, to } => {
                let channel = session.open(header(to));
                if self.written.len() >= MAX_PIPES {
                    return session.finish(channel);
                }
                let goes = Goes::To { pipe: to, channel, waiting: VecDeque::new(), finished: false };
                self.written.insert(from, Written::new(goes));
            }
            Transfer::Collect { from, most } => {
                self.stop_all(session, |goes| matches!(goes, Goes::Page { .. }));
                if self.written.len() >= MAX_PIPES {
                    return page.on_collected(from, None);
                }
                let goes = Goes::Page { bytes: Vec::new(), most };
                self.written.insert(from, Written::new(goes));
            }
        }
    }

    /// A program writes.
    pub(crate) fn on_opened(&mut self, session: &mut Session, channel: RemoteChannelId, from: Pipe) {
        match self.written.get_mut(&from) {
            Some(written) if !written.has_come => {
                (written.channel, written.has_come, written.expires) = (Some(channel), true, None);
            }
            _ => session.stop(channel, STOP_UNKNOWN),
        }
    }

    /// It has written.
    pub(crate) fn on_data(
        &mut self,
        session: &mut Session,
        page: &mut Page,
        (from, by): (Pipe, RemoteChannelId),
        data: Bytes,
    ) {
        let Some(Written { channel, goes, .. }) = self.written.get_mut(&from) else { return };
        let Some(channel) = channel.filter(|channel| *channel == by) else { return };
        match goes {
            Goes::To { waiting, .. } => waiting.push_back(data),
            Goes::Page { bytes, most } if bytes.len() + data.len() <= *most => {
                session.consumed(channel, data.len());
                bytes.extend_from_slice(&data);
            }
            Goes::Page { .. } => {
                session.stop(channel, STOP_TOO_MUCH);
                self.written.remove(&from);
                page.on_collected(from, None);
            }
        }
    }

    /// It has written all.
    pub(crate) fn on_finished(&mut self, page: &mut Page, from: Pipe) {
        let Some(written) = self.written.get_mut(&from) else { return };
        if let Goes::To { finished, .. } = &mut written.goes {
            (*finished, written.channel) = (true, None);
        } else if let Some(Written { goes: Goes::Page { bytes, .. }, .. }) = self.written.remove(&from) {
            page.on_collected(from, Some(bytes.into()));
        }
    }

    /// It was broken off, so that what came is no whole.
    pub(crate) fn on_reset(&mut self, session: &mut Session, page: &mut Page, from: Pipe, code: u32) {
        match self.written.remove(&from).map(|written| written.goes) {
            Some(Goes::To { channel, .. }) => session.reset(channel, code),
            Some(Goes::Page { .. }) => page.on_collected(from, None),
            None => {}
        }
    }

    /// The program does not read any more what goes through a pipe of its own.
    pub(crate) fn on_stopped(&mut self, session: &mut Session, to: Pipe) {
        self.stop_all(session, |goes| matches!(goes, Goes::To { pipe, .. } if *pipe == to));
    }

    fn stop_all(&mut self, session: &mut Session, of: impl Fn(&Goes) -> bool) {
        for (_, written) in self.written.extract_if(.., |_, written| of(&written.goes)) {
            if let Some(channel) = written.channel {
                session.stop(channel, STOP_UNKNOWN);
            }
        }
    }

    /// A program is gone; what it has written may still come. What it waited for ends, for who comes next may wait too.
    pub(crate) fn on_gone(&mut self, now: Time, session: &mut Session, connection: ConnectionId) {
        for (pipe, _) in self.sends.remove(&connection).into_iter().flatten() {
            send(session, (connection, pipe), Bytes::new());
        }
        let lacking = self.written.iter_mut().filter(|((of, _), written)| {
            let has_ended = matches!(written.goes, Goes::To { finished: true, .. });
            *of == connection && written.channel.is_none() && !has_ended
        });
        lacking.for_each(|(_, written)| written.expires = Some(now + GRACE));
    }

    /// Lets go on what has room: with its reader, and with the link, which has it for so many bytes. Gives how many of
    /// these it took.
    pub(crate) fn go_on(&mut self, session: &mut Session, room: usize) -> usize {
        let mut left = room;
        self.written.retain(|_, written| {
            let Goes::To { channel: to, waiting, finished, .. } = &mut written.goes else { return true };
            while let Some(front) = waiting.front_mut() {
                let most = session.pipe_room(*to).min(front.len()).min(left);
                if most == 0 {
                    break;
                }
                left -= most;
                let part = front.split_to(most);
                if front.is_empty() {
                    waiting.pop_front();
                }
                if let Some(channel) = written.channel {
                    session.consumed(channel, part.len());
                }
                session.write(*to, part);
            }
            let is_over = *finished && waiting.is_empty();
            if is_over {
                session.finish(*to);
            }
            !is_over
        });
        while left > 0
            && let Some((to, bytes)) = self.next_send()
        {
            // Of the rest no more leaves than its reader takes; its end counts, too.
            left = left.saturating_sub(bytes.len().clamp(1, PIPE_WINDOW));
            send(session, to, bytes);
        }
        room - left
    }

    fn next_send(&mut self) -> Option<(Pipe, Bytes)> {
        let behind = self.sends.range(ConnectionId(self.turn)..).next();
        let of = *behind.or_else(|| self.sends.first_key_value())?.0;
        self.turn = of.0.wrapping_add(1);
        let sends = self.sends.get_mut(&of)?;
        let next = sends.pop_front();
        if sends.is_empty() {
            self.sends.remove(&of);
        }
        next.map(|(pipe, bytes)| ((of, pipe), bytes))
    }

    /// Whether something may wait for room with the link.
    pub(crate) fn has_more(&self) -> bool {
        let waits =
            |written: &Written| matches!(&written.goes, Goes::To { waiting, .. } if !waiting.is_empty());
        !self.sends.is_empty() || self.written.values().any(waits)
    }

    /// When [`Self::on_timeout`] is to be called.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.written.values().filter_map(|written| written.expires).min()
    }

    /// Gives up what has not come.
    pub(crate) fn on_timeout(&mut self, now: Time, page: &mut Page) {
        let is_late = |written: &Written| written.expires.is_some_and(|at| at <= now);
        let late = self.written.iter().filter(|(_, written)| is_late(written)).map(|(from, _)| *from);
        for from in late.collect::<Vec<_>>() {
            self.on_finished(page, from);
        }
    }
}

/// These bytes go to who waits for them, and no more.
fn send(session: &mut Session, to: Pipe, bytes: Bytes) {
    let channel = session.open(header(to));
    session.write(channel, bytes);
    session.finish(channel);
}

fn header((connection, pipe): Pipe) -> Header {
    Header::Pipe { connection, pipe }
}
