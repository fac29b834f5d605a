//! A sender of plain traffic: a bulk flow, messages at a fixed pace, or both in one connection.
//!
//! Streams are numbered so that a [`Sink`](super::Sink) with the same plan knows them by their index alone: the bulk
//! flow first, then one for each message, or two when messages have repair. Invariant: message `n` is written at its
//! time, not when the one before is through.

use std::time::Duration;

use bytes::Bytes;
use noq_proto::{Connection, Dir, StreamEvent, StreamId, VarInt, WriteError};
use wayferry_proto::Time;

use super::{App, Io};

/// A flow that always has something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bulk {
    /// When it begins.
    pub start: Time,
    /// When it ends; what is not acknowledged by then is given up. `None` is never.
    pub end: Option<Time>,
}

impl Bulk {
    /// From the beginning to the end.
    pub const ALWAYS: Self = Self { start: Time::ZERO, end: None };
}

/// Messages at a fixed pace, above the bulk flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Messages {
    /// Bytes of each.
    pub size: u64,
    /// From one to the next.
    pub interval: Duration,
    /// When the first is written.
    pub start: Time,
    /// How many.
    pub count: u64,
    /// Bytes of repair for each byte, 0 for none. The code is taken to be perfect: any `size` bytes of both will do.
    pub repair: f64,
}

impl Messages {
    /// When message `number` is written.
    pub fn time(&self, number: u64) -> Time {
        self.start + self.interval * u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// Bytes of repair of each message.
    pub fn repair_bytes(&self) -> u64 {
        (self.size as f64 * self.repair).ceil() as u64
    }

    /// How many streams each message has.
    pub(super) fn streams(&self) -> u64 {
        1 + u64::from(self.repair > 0.0)
    }
}

/// See the module.
#[derive(Debug)]
pub struct Traffic {
    bulk: Option<Bulk>,
    messages: Option<Messages>,
    bulk_stream: Option<StreamId>,
    bulk_over: bool,
    written: u64,
    /// Streams that flow control blocks, with what is still to be written.
    blocked: Vec<(StreamId, u64)>,
    zeros: Bytes,
}

impl Traffic {
    /// Sends this.
    pub fn new(bulk: Option<Bulk>, messages: Option<Messages>) -> Self {
        Self {
            bulk,
            messages,
            bulk_stream: None,
            bulk_over: false,
            written: 0,
            blocked: Vec::new(),
            zeros: vec![0; PIECE].into(),
        }
    }

    fn open_bulk(&mut self, connection: &mut Connection) {
        if self.bulk.is_some() && self.bulk_stream.is_none() {
            self.bulk_stream = connection.streams().open(Dir::Uni);
        }
    }

    fn drive_bulk(&mut self, now: Time, connection: &mut Connection) {
        let (Some(bulk), Some(id)) = (self.bulk, self.bulk_stream) else { return };
        if now < bulk.start || self.bulk_over {
            return;
        }
        let mut stream = connection.send_stream(id);
        if bulk.end.is_some_and(|end| end <= now) {
            self.bulk_over = true;
            let _ = stream.reset(VarInt::from_u32(0));
            return;
        }
        while stream.write_chunks(&mut &mut [self.zeros.clone()][..]).is_ok_and(|written| written == PIECE) {}
    }

    fn drive_messages(&mut self, now: Time, connection: &mut Connection) {
        let Some(messages) = self.messages else { return };
        while self.written < messages.count && messages.time(self.written) <= now {
            // Later messages go behind earlier ones; repair right behind its message.
            let place = i32::try_from(self.written).unwrap_or(i32::MAX / 2) * 2;
            let lengths = [messages.size, messages.repair_bytes()];
            for (index, length) in lengths.into_iter().take(messages.streams() as usize).enumerate() {
                let Some(id) = connection.streams().open(Dir::Uni) else { return };
                let priority = (1 << 30) - place - i32::from(index == 1);
                let _ = connection.send_stream(id).set_priority(priority);
                self.write(id, length, connection);
            }
            self.written += 1;
        }
    }

    fn write(&mut self, id: StreamId, mut length: u64, connection: &mut Connection) {
        let mut stream = connection.send_stream(id);
        while length > 0 {
            let piece = self.zeros.slice(..PIECE.min(length as usize));
            match stream.write_chunks(&mut &mut [piece][..]) {
                Ok(written) => length -= written as u64,
                Err(WriteError::Blocked) => return self.blocked.push((id, length)),
                Err(_) => return,
            }
        }
        let _ = stream.finish();
    }
}

impl App for Traffic {
    fn on_stream(&mut self, _: Time, _: StreamEvent, _: Io<'_>) {}

    fn drive(&mut self, now: Time, io: Io<'_>) {
        let connection = io.connection;
        self.open_bulk(connection);
        for (id, length) in std::mem::take(&mut self.blocked) {
            self.write(id, length, connection);
        }
        self.drive_messages(now, connection);
        self.drive_bulk(now, connection);
    }

    fn next_timeout(&self) -> Option<Time> {
        let messages = self.messages.filter(|messages| self.written < messages.count);
        let message = messages.map(|messages| messages.time(self.written));
        let started = self.bulk_stream.is_none();
        let bulk = self.bulk.filter(|_| !self.bulk_over).and_then(|bulk| bulk.end);
        let start = self.bulk.filter(|_| started).map(|bulk| bulk.start);
        message.into_iter().chain(bulk).chain(start).min()
    }
}

/// Bytes of one write.
const PIECE: usize = 64 << 10;
