//! A receiver of plain traffic: counts the bulk flow's bytes over time and notes when each message is whole.

use std::collections::BTreeMap;
use std::time::Duration;

use noq_proto::{Connection, Dir, StreamEvent, StreamId};
use wayferry_proto::Time;

use super::{App, Io, Messages};

/// When one message was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its number, from 0.
    pub number: u64,
    /// When it was written at the other end.
    pub sent: Time,
    /// When enough of it was here.
    pub arrived: Time,
}

/// See the module.
#[derive(Debug)]
pub struct Sink {
    bulk: bool,
    messages: Option<Messages>,
    /// Bulk bytes of each [`Sink::BIN`].
    bins: Vec<u64>,
    /// Bytes of messages that are not whole.
    partial: BTreeMap<u64, u64>,
    /// Every message below has been delivered; those above it that have been, one by one.
    deliveries: Vec<Delivery>,
}

impl Sink {
    /// What the bulk flow is counted by.
    pub const BIN: Duration = Duration::from_millis(10);

    /// For the other end of [`Traffic`](super::Traffic) with the same plan.
    pub fn new(bulk: bool, messages: Option<Messages>) -> Self {
        Self { bulk, messages, bins: Vec::new(), partial: BTreeMap::new(), deliveries: Vec::new() }
    }

    /// The messages that are here, in the order of their coming.
    pub fn deliveries(&self) -> &[Delivery] {
        &self.deliveries
    }

    /// Bytes of the bulk flow that came in this span, to the precision of [`Sink::BIN`].
    pub fn bulk_bytes(&self, from: Time, to: Time) -> u64 {
        let bin = |time: Time| {
            ((time.since_start().as_nanos() / Self::BIN.as_nanos()) as usize).min(self.bins.len())
        };
        self.bins.get(bin(from)..bin(to)).unwrap_or_default().iter().sum()
    }

    fn read(&mut self, now: Time, id: StreamId, connection: &mut Connection) {
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(false) else { return };
        let mut bytes = 0;
        // It ends when there is nothing more for now, and when the stream is over or was given up.
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            bytes += chunk.bytes.len() as u64;
        }
        let _ = chunks.finalize();
        self.count(now, id.index(), bytes);
    }

    fn count(&mut self, now: Time, index: u64, bytes: u64) {
        if self.bulk && index == 0 {
            let bin = (now.since_start().as_nanos() / Self::BIN.as_nanos()) as usize;
            if self.bins.len() <= bin {
                self.bins.resize(bin + 1, 0);
            }
            self.bins[bin] += bytes;
            return;
        }
        let Some(messages) = self.messages else { return };
        let number = (index - u64::from(self.bulk)) / messages.streams();
        let before = *self.partial.entry(number).and_modify(|have| *have += bytes).or_insert(bytes) - bytes;
        if before < messages.size && before + bytes >= messages.size {
            self.deliveries.push(Delivery { number, sent: messages.time(number), arrived: now });
        }
    }
}

impl App for Sink {
    fn on_stream(&mut self, now: Time, event: StreamEvent, io: Io<'_>) {
        let connection = io.connection;
        match event {
            StreamEvent::Opened { dir: Dir::Uni } => {
                while let Some(id) = connection.streams().accept(Dir::Uni) {
                    self.read(now, id, connection);
                }
            }
            StreamEvent::Readable { id } => self.read(now, id, connection),
            _ => {}
        }
    }

    fn drive(&mut self, _: Time, _: Io<'_>) {}
}
