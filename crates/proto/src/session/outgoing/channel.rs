//! One channel of this side: what waits to leave of it, what has left, and what a pipe's reader allows.
//!
//! It knows neither the other channels nor the carrier. Invariant: body bytes are counted from the channel's beginning,
//! on whichever carrier they leave.

use bytes::Bytes;

use super::super::PIPE_WINDOW;
use super::super::protect::Worth;
use super::super::queue::{Kept, Queue};
use super::{PIPE_HEAD, Place};
use crate::{Header, Kind, Priority};

/// See the module.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) header: Header,
    pub(super) priority: Priority,
    /// Decided when the first byte leaves.
    pub(super) place: Option<Place>,
    /// The rest of the body.
    pub(super) queue: Queue,
    pub(super) finish: bool,
    /// Bytes of the stream that have left, header included.
    pub(super) sent: u64,
    /// Bytes of the body that have left.
    pub(super) left: u64,
    /// Those of the stream of an update, until all have: they are one block.
    pub(super) handed: Vec<Bytes>,
    /// Bytes of the header.
    lead: usize,
    /// Bytes of an update's body before its chunks.
    pub(super) table: usize,
    /// Of an update.
    pub(super) worth: Worth,
    pub(super) pipe: Option<Flow>,
    /// Given when the first byte leaves, in a session that can be resumed.
    pub(super) number: Option<u64>,
    /// What has left and the peer has not said to have.
    pub(super) kept: Kept,
    /// It has left on a carrier that is gone; how much of it arrived is not known.
    pub(super) stale: bool,
    /// What the peer has of it, when it is opened anew.
    pub(super) from: Option<u64>,
}

/// The flow of a pipe; offsets in its own bytes.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub(super) written: u64,
    pub(super) consumed: u64,
}

impl Channel {
    pub(super) fn new(header: Header, priority: Priority) -> Self {
        Self {
            header,
            priority,
            place: None,
            queue: Queue::default(),
            finish: false,
            sent: 0,
            left: 0,
            handed: Vec::new(),
            lead: 0,
            table: 0,
            worth: Worth::Plain,
            pipe: (header.kind() == Kind::Pipe).then(Flow::default),
            number: None,
            kept: Kept::default(),
            stale: false,
            from: None,
        }
    }

    /// Whether the peer may have heard of it.
    pub(super) fn has_left(&self) -> bool {
        self.place.is_some() || self.stale
    }

    /// Whether the peer handles it as it comes, and not only as a whole.
    pub(super) fn is_long_lived(&self) -> bool {
        !matches!(self.header.kind(), Kind::Update | Kind::Blob)
    }

    /// Bytes of the body.
    pub(super) fn length(&self) -> u64 {
        self.left + self.queue.len() as u64
    }

    /// Whether it goes on over another carrier: sound of then is of no use.
    pub(super) fn is_numbered(&self) -> bool {
        self.header.kind() != Kind::Sound
    }

    /// Whether there is something that may leave now: its header counts.
    pub(super) fn can_send(&self) -> bool {
        self.place.is_none() || self.allowed() > 0 || (self.queue.is_empty() && self.finish)
    }

    /// How many of the queued bytes may leave now.
    fn allowed(&self) -> usize {
        let room = self.pipe.as_ref().map_or(usize::MAX, |flow| flow.room(self.left));
        self.queue.len().min(room)
    }

    /// Takes up to about `max` bytes to be sent: the stream's header, if it is to leave now, and what follows.
    pub(super) fn take(&mut self, lead: &[u8], max: usize) -> Bytes {
        let alone = !lead.is_empty() && self.queue.begins_large();
        let most = if alone { 0 } else { self.allowed().min(max.saturating_sub(lead.len())) };
        let body = if most > 0 { self.queue.take(most) } else { Bytes::new() };
        self.left += body.len() as u64;
        self.sent += (lead.len() + body.len()) as u64;
        if lead.is_empty() {
            return body;
        }
        self.lead = lead.len();
        [lead, &body].concat().into()
    }

    /// Bytes of the stream that say what the others are; 0 if each says so itself.
    pub(super) fn head(&self) -> usize {
        if self.header.kind() == Kind::Update { self.lead + self.table } else { 0 }
    }

    /// Goes back to what the peer has, to leave on another carrier.
    pub(super) fn rewind(&mut self, from: Option<u64>) {
        self.kept.release(from.unwrap_or(0));
        self.queue.put_back(self.kept.take());
        self.left = from.unwrap_or(0);
        self.stale = false;
        self.from = from;
    }

    /// Forgets the carrier that is gone.
    pub(super) fn detach(&mut self) {
        self.stale = self.number.is_some();
        self.place = None;
        self.sent = 0;
        self.handed.clear();
        self.from = None;
    }

    /// Whether it is a pipe beyond its head on a stream of its own; if `busy`, one with bytes that its reader has not
    /// taken.
    pub(super) fn is_pipe_under_way(&self, busy: bool) -> bool {
        let under_way = |flow: &Flow| !flow.in_head() && (!busy || flow.written > flow.consumed);
        matches!(self.place, Some(Place::Own(_))) && self.pipe.as_ref().is_some_and(under_way)
    }
}

impl Flow {
    pub(super) fn in_head(&self) -> bool {
        self.consumed < PIPE_HEAD
    }

    /// How many more bytes may leave after `left`. Until the reader has taken the head, only that, for it is urgent and
    /// all else is not.
    fn room(&self, left: u64) -> usize {
        let window = if self.in_head() { PIPE_HEAD } else { self.consumed + PIPE_WINDOW as u64 };
        window.saturating_sub(left) as usize
    }
}

/// The body of an update's stream, and how many of its bytes come before the chunks.
pub(super) fn content(chunks: Vec<Vec<u8>>) -> (Queue, usize) {
    let mut queue = Queue::default();
    queue.append(|writer| {
        writer.varint(chunks.len() as u64);
        for chunk in &chunks {
            writer.varint(chunk.len() as u64);
        }
    });
    let table = queue.len();
    for chunk in chunks {
        queue.push(chunk.into());
    }
    (queue, table)
}
