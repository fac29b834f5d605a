//! The sending side of repair: which blocks are protected, how much, and when their rows leave.
//!
//! It makes rows of bytes that the session has handed over, and holds them back for a moment: a row that shares a packet
//! with its source dies with it. How much is the repair controller's decision. Invariant: a row is only ever made of
//! bytes that were handed over as they are, so that what it rebuilds is what QUIC would have delivered.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use wayferry_fec::{Block, Layout, LossPrior, Mode, Plan, Queue, RepairController, Report, encode};

use super::Repair;
use crate::{Header, LinkState, MAX_ROW, Priority, RepairHeader, StreamId, Time};

/// See the module.
#[derive(Debug)]
pub(super) struct Protector {
    adaptive: bool,
    controller: Option<RepairController>,
    link: LinkState,
    /// The link when the controller was last told.
    reported: LinkState,
    held: BTreeMap<(Time, u64), Row>,
    held_bytes: usize,
    count: u64,
    sent: Sent,
}

/// A row that waits for its time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) header: RepairHeader,
    pub(super) priority: Priority,
    pub(super) bytes: Bytes,
}

/// What repair has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) blocks: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

/// Bytes that were handed over on a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    /// The channel's number; 0 for the main one.
    pub(super) channel: u64,
    pub(super) stream: StreamId,
    pub(super) priority: Priority,
    /// Where in the stream they begin.
    pub(super) offset: u64,
    /// How many bytes at their beginning say what the others are; 0 if each says so itself.
    pub(super) head: usize,
    pub(super) pieces: &'a [Bytes],
}

impl Protector {
    pub(super) fn new(repair: Repair) -> Self {
        let controller = match repair {
            Repair::Off => None,
            Repair::Fixed(ratio) => Some(RepairController::new(Mode::Fixed(ratio), LossPrior::default())),
            Repair::Adaptive(prior) => Some(RepairController::new(Mode::Adaptive, prior)),
        };
        Self {
            adaptive: matches!(repair, Repair::Adaptive(_)),
            controller,
            link: LinkState::default(),
            reported: LinkState::default(),
            held: BTreeMap::new(),
            held_bytes: 0,
            count: 0,
            sent: Sent::default(),
        }
    }

    /// The carrier is gone, and what was to be repaired with it.
    pub(super) fn suspend(&mut self) {
        self.held.clear();
        self.held_bytes = 0;
        (self.link, self.reported) = (LinkState::default(), LinkState::default());
    }

    /// Begins with what was learned on another carrier.
    pub(super) fn inherit(&mut self, old: &Self) {
        if let Some(controller) = self.controller.as_mut().filter(|_| self.adaptive) {
            *controller = RepairController::new(Mode::Adaptive, old.loss_prior());
        }
        self.sent.blocks += old.sent.blocks;
        self.sent.rows += old.sent.rows;
        self.sent.bytes += old.sent.bytes;
    }

    /// Takes what the carrier knows of its link now.
    pub(super) fn set_link(&mut self, now: Time, link: &LinkState) {
        self.link = *link;
        let lost = link.lost_packets.saturating_sub(self.reported.lost_packets);
        let runs = link.lost_runs.saturating_sub(self.reported.lost_runs);
        let packets = link.acked_packets.saturating_sub(self.reported.acked_packets) + lost;
        let Some(controller) = self.controller.as_mut().filter(|_| packets >= REPORT_EVERY || lost > 0)
        else {
            return;
        };
        self.reported = *link;
        let queue = Queue { delay: link.queue_delay, base_rtt: link.base_rtt };
        controller.report(now.since_start(), Report { packets, lost, runs }, queue);
    }

    /// Protects bytes that have just been handed over, as one block or, where they are too many, the last of them as
    /// several: what was sent more than a round trip before the end is sent again before the end.
    pub(super) fn protect(&mut self, now: Time, source: Source<'_>) {
        let Some(payload) = self.link.payload.filter(|_| self.controller.is_some()) else { return };
        let row = usize::from(payload).clamp(1, MAX_ROW);
        let total: usize = source.pieces.iter().map(Bytes::len).sum();
        let tail = total.min(self.tail().max(row));
        if source.head > 0 && total > 2 * row {
            self.protect_head(now, source, row);
        }
        let mut skip = total - tail;
        // Even blocks, each with room for its repair.
        let blocks = tail.div_ceil(row).div_ceil(MAX_SOURCE_ROWS).max(1);
        for left in (1..=blocks).rev() {
            let length = (total - skip).div_ceil(left);
            if length > 0 {
                let pieces = slice(source.pieces, skip, length);
                self.protect_block(
                    now,
                    Source { offset: source.offset + skip as u64, pieces: &pieces, ..source },
                    row,
                );
            }
            skip += length;
        }
    }

    /// Forgets the rows of a stream that is not wanted any more.
    pub(super) fn forget(&mut self, stream: StreamId) {
        let bytes = &mut self.held_bytes;
        self.held.retain(|_, row| {
            let stays = row.header.stream != stream;
            *bytes -= if stays { 0 } else { row.bytes.len() };
            stays
        });
    }

    /// When the next row may leave.
    pub(super) fn next(&self) -> Option<Time> {
        self.held.keys().next().map(|(at, _)| *at)
    }

    /// The next row that may leave.
    pub(super) fn due(&mut self, now: Time) -> Option<Row> {
        let entry = self.held.first_entry().filter(|entry| entry.key().0 <= now)?;
        let row = entry.remove();
        self.held_bytes -= row.bytes.len();
        self.sent.rows += 1;
        self.sent.bytes += row.bytes.len() as u64;
        Some(row)
    }

    /// What repair has cost so far.
    pub(super) fn sent(&self) -> Sent {
        self.sent
    }

    /// What the next connection over this link should begin with.
    pub(super) fn loss_prior(&self) -> LossPrior {
        self.controller.as_ref().map(RepairController::export).unwrap_or_default()
    }

    /// The share of packets that the link loses, from 0 to 1, and how many in a row; as far as is known.
    pub(super) fn loss(&self) -> Option<(f64, f64)> {
        self.controller.as_ref().map(|controller| (controller.loss(), controller.mean_burst()))
    }

    /// How many bytes at the end of much can be lost without being sent again before the end.
    fn tail(&self) -> usize {
        let Some(rate) = self.link.rate else { return UNKNOWN_TAIL };
        let trip = self.link.rtt.as_secs_f64() * TAIL_TRIPS;
        (trip * rate as f64) as usize
    }

    /// Sends the head once more while the rest is on its way: without it, chunks that are there cannot be told apart.
    fn protect_head(&mut self, now: Time, source: Source<'_>, row: usize) {
        let rows = source.pieces.iter().map(Bytes::len).sum::<usize>().div_ceil(row);
        let repaired = self.plan(now, rows, row).is_some_and(|plan| plan.rows > 0);
        if !repaired || source.head > row {
            return;
        }
        let bytes: Vec<u8> = slice(source.pieces, 0, source.head).concat();
        let header = RepairHeader {
            channel: source.channel,
            stream: source.stream,
            offset: source.offset,
            length: source.head as u32,
            row: source.head as u16,
            index: 0,
        };
        self.hold(now + HOLD, Row { header, priority: source.priority, bytes: bytes.into() });
    }

    fn plan(&self, now: Time, rows: usize, row: usize) -> Option<Plan> {
        let (rtt, rate) = (self.link.rtt, self.link.rate.unwrap_or(0));
        Some(self.controller.as_ref()?.plan(now.since_start(), Block { rows, row, rtt, rate }))
    }

    fn hold(&mut self, at: Time, row: Row) {
        self.held_bytes += row.bytes.len();
        self.count += 1;
        self.held.insert((at, self.count), row);
    }

    fn protect_block(&mut self, now: Time, source: Source<'_>, row: usize) {
        let length: usize = source.pieces.iter().map(Bytes::len).sum();
        let Ok(layout) = Layout::new(length, row) else { return };
        let Some(plan) = self.plan(now, layout.rows(), layout.row()) else { return };
        let rows = usize::from(plan.rows).min(layout.max_repair()) as u8;
        if rows == 0 || self.held_bytes > MAX_HELD {
            return;
        }
        self.sent.blocks += 1;
        let pieces: Vec<&[u8]> = source.pieces.iter().map(|piece| &piece[..]).collect();
        for (index, bytes) in encode(layout, &pieces, 0..rows).into_iter().enumerate() {
            let later = plan.second_after.filter(|_| index > 0).unwrap_or_default();
            let header = RepairHeader {
                channel: source.channel,
                stream: source.stream,
                offset: source.offset,
                length: length as u32,
                row: layout.row() as u16,
                index: index as u8,
            };
            let row = Row { header, priority: source.priority.repair(index as u8), bytes: bytes.into() };
            self.hold(now + HOLD + later, row);
        }
    }
}

/// The `length` bytes after `skip` of what the pieces make up.
fn slice(pieces: &[Bytes], mut skip: usize, mut length: usize) -> Vec<Bytes> {
    let mut slices = Vec::new();
    for piece in pieces {
        let start = skip.min(piece.len());
        let end = piece.len().min(start + length);
        if end > start {
            slices.push(piece.slice(start..end));
        }
        skip -= start;
        length -= end - start;
    }
    slices
}

impl Row {
    /// What its stream begins with.
    pub(super) fn header(&self) -> Header {
        Header::Repair(self.header)
    }
}

/// How long a row is held back: longer than a sender takes to fill a packet with what was handed over before.
const HOLD: Duration = Duration::from_millis(2);

/// Most source rows of a block, so that repair of ten percent and more has room beside them.
const MAX_SOURCE_ROWS: usize = 220;

/// A loss is known, and mended by QUIC, after about so many round trips.
const TAIL_TRIPS: f64 = 1.25;

/// The same while the link's rate is not known: 100 Mbit/s for 300 ms, and milliseconds to encode.
const UNKNOWN_TAIL: usize = 4 << 20;

/// Bytes of rows that wait; more blocks go unprotected meanwhile. A block has at most 4096 × 255.
const MAX_HELD: usize = 16 << 20;

/// Packets after which the controller is told that none was lost.
const REPORT_EVERY: u64 = 32;
