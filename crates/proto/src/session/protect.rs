//! The sending side of repair: which blocks are protected, how much, and when their rows leave.
//!
//! It makes rows of bytes that the session has handed over, and holds them back for a moment: a row that shares a
//! packet with its source dies with it. How much is the repair controller's decision. Small updates that follow each
//! other quickly share rows ([`jointly`]). Events are copied ([`copies`]); answers to them are insisted on
//! ([`insist`]), and where losses come in bursts their rows leave when the burst is over; the end of what is large is
//! asked for ([`tail`]). None of these three takes place while losses are congestion's own. A peer that reads streams
//! in order only has other rows ([`whole`]). Invariant: a row is only ever made of bytes that were handed over as they
//! are, so that what it rebuilds is what QUIC would have delivered.

mod budget;
mod copies;
mod insist;
mod jointly;
mod source;
mod tail;
mod whole;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use wayferry_fec::{Block, Layout, LossPrior, Mode, Plan, Queue, RepairController, Report, encode};

use self::budget::Budget;
use self::copies::Copies;
use self::insist::{Answer, Insistence};
use self::jointly::Jointly;
pub use self::source::Worth;
pub(super) use self::source::{Source, What};
use self::tail::Tail;
use super::{Repair, SMALL_UPDATE};
use crate::carrier::MIN_WINDOW;
use crate::wire::Writer;
use crate::{Header, LinkState, MAX_ROW, Priority, RepairHeader, StreamId, Time, UpdateHeader};

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
    copies: Copies,
    insistence: Insistence,
    tail: Tail,
    jointly: Jointly,
    /// Rows go into datagrams.
    in_datagrams: bool,
    /// What they may take of the link for larger updates.
    covering: Budget,
}

/// A row that waits for its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) header: RepairHeader,
    pub(super) priority: Priority,
    pub(super) bytes: Bytes,
    /// The update that it repairs.
    update: Option<UpdateHeader>,
}

/// What repair has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) blocks: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
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
            copies: Copies::default(),
            insistence: Insistence::default(),
            tail: Tail::default(),
            jointly: Jointly::default(),
            in_datagrams: false,
            covering: Budget::default(),
        }
    }

    /// The carrier is gone, and what was to be repaired with it.
    pub(super) fn suspend(&mut self) {
        self.held.clear();
        self.held_bytes = 0;
        self.clear();
        self.jointly.clear();
        (self.link, self.reported) = (LinkState::default(), LinkState::default());
    }

    /// Nothing but rows is to leave. Budgets stay as they are: a queue that comes and goes fills none.
    fn clear(&mut self) {
        self.copies.clear();
        self.insistence.clear();
        self.tail = Tail::default();
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
        if let Some(update) = source.what.update() {
            self.forget_covered(&update);
        }
        let Some(row) = self.row().filter(|_| self.controller.is_some()) else { return };
        let total: usize = source.pieces.iter().map(Bytes::len).sum();
        if self.in_datagrams {
            return self.protect_whole(now, &source, total, row);
        }
        if self.protect_jointly(now, &source, total, row) {
            return;
        }
        match source.what {
            // Only the end of a stream.
            _ if total == 0 => return,
            What::Events if self.insists(now) && total <= row / SMALL => return self.copy(now, &source),
            // A newer one makes up for it.
            What::Update { worth: Worth::Passing, .. } => {}
            What::Update { .. } if self.insists(now) && total > MAX_ANSWER_ROWS * row => {
                self.probe_end(now, &source, total);
            }
            // Of larger ones the carrier does not tell that they are there.
            What::Update { worth, header, .. }
                if self.insists(now)
                    && total < SMALL_UPDATE
                    && (worth == Worth::Answer || self.loses_in_bursts()) =>
            {
                let first = self.protect_small(now, &source, row);
                if worth == Worth::Answer {
                    self.wait_for_answer(now, &source, header, first, fitting(row));
                }
                return;
            }
            _ => {}
        }
        let tail = total.min(self.tail().max(row));
        if let What::Update { head, .. } = source.what
            && total > 2 * row
        {
            self.protect_head(now, source, head, row);
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

    /// Forgets what is kept for a stream that the peer will not have.
    pub(super) fn give_up(&mut self, stream: StreamId) {
        self.jointly.give_up(stream);
        self.forget(stream);
    }

    /// Forgets what is kept for a stream that the peer has.
    pub(super) fn forget(&mut self, stream: StreamId) {
        self.copies.forget(stream);
        self.insistence.forget(stream);
        self.jointly.forget(stream);
        self.retain(|row| row.header.stream != stream);
    }

    /// Forgets the rows of the updates that a newer one makes up for.
    fn forget_covered(&mut self, newer: &UpdateHeader) {
        let covered = newer.seq.0.saturating_sub(newer.covers.into())..newer.seq.0;
        if covered.is_empty() {
            return;
        }
        let is_covered = |older: &UpdateHeader| {
            (older.connection, older.surface) == (newer.connection, newer.surface)
                && covered.contains(&older.seq.0)
        };
        self.insistence.retain(|update| !is_covered(update));
        self.retain(|row| row.update.is_none_or(|older| !is_covered(&older)));
    }

    fn retain(&mut self, stays: impl Fn(&Row) -> bool) {
        let bytes = &mut self.held_bytes;
        self.held.retain(|_, row| {
            let stays = stays(row);
            *bytes -= if stays { 0 } else { row.bytes.len() };
            stays
        });
    }

    /// When the next row may leave.
    pub(super) fn next(&self) -> Option<Time> {
        let held = self.held.keys().next().map(|(at, _)| *at);
        [held, self.copies.next(), self.insistence.next(), self.tail.next(), self.jointly.next()]
            .into_iter()
            .flatten()
            .min()
    }

    /// The next row that may leave.
    pub(super) fn due(&mut self, now: Time) -> Option<Row> {
        self.make_due(now);
        let entry = self.held.first_entry().filter(|entry| entry.key().0 <= now)?;
        let row = entry.remove();
        self.held_bytes -= row.bytes.len();
        self.sent.rows += 1;
        self.sent.bytes += row.bytes.len() as u64;
        Some(row)
    }

    /// The next sum of rows of several updates that may leave: what its stream begins with, and the rest.
    pub(super) fn due_jointly(&mut self, now: Time) -> Option<(Header, Priority, Vec<u8>)> {
        let (joint, priority) = self.jointly.due(now, self.horizon(), self.sums(now))?;
        let mut body = Writer::new();
        joint.encode(&mut body);
        self.sent.blocks += 1;
        self.sent.rows += 1;
        self.sent.bytes += body.len() as u64;
        Some((Header::Joint(joint.header), priority, body.into_vec()))
    }

    /// How many sums stand for the rows that have none: of a few, what one does not give the next one does.
    fn sums(&self, now: Time) -> usize {
        let (rows, row) = (self.jointly.open(), self.row().unwrap_or(MAX_ROW));
        if rows < 2 * ROWS_OF_SUM {
            return 1;
        }
        self.plan(now, rows, row).map_or(1, |plan| plan.rows.max(1).into())
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

    /// Whether something small that is sent now gets rows.
    pub(super) fn repairs(&self, now: Time) -> bool {
        self.row().and_then(|row| self.plan(now, 1, row)).is_some_and(|plan| plan.rows > 0)
    }

    /// How many bytes at the end of much can be lost without being sent again before the end.
    fn tail(&self) -> usize {
        let Some(rate) = self.link.rate else { return UNKNOWN_TAIL };
        let trip = self.link.rtt.as_secs_f64() * TAIL_TRIPS;
        (trip * rate as f64) as usize
    }

    /// Protects a small update of a surface that changes all the time together with those before it. Returns whether it
    /// is one.
    fn protect_jointly(&mut self, now: Time, source: &Source<'_>, total: usize, row: usize) -> bool {
        let What::Update { header, worth, joint: true, .. } = source.what else { return false };
        let is_busy = self.jointly.is_busy(now, &header, BUSY.min(self.link.rtt));
        let is_small = total < SMALL_UPDATE && total <= MAX_ANSWER_ROWS * row;
        if !(is_busy && is_small && self.adaptive) || worth == Worth::Passing {
            return false;
        }
        if self.plan(now, 1, row).is_some_and(|plan| plan.rows > 0) {
            let much = self.loss().is_some_and(|(loss, _)| loss > MUCH);
            let Source { channel, stream, priority, .. } = *source;
            let (bytes, is_answer) = (source.pieces.concat().into(), worth == Worth::Answer);
            let update = jointly::Update { channel, stream, priority, bytes, is_answer };
            self.jointly.push(now, update, row, if much { ROWS_OF_MUCH } else { ROWS_OF_SUM }, HOLD);
        }
        if worth == Worth::Answer && self.insists(now) {
            self.wait_for_answer(now, source, header, 0, fitting(row));
        }
        true
    }

    /// Sends the head once more while the rest is on its way: without it, chunks that are there cannot be told apart.
    fn protect_head(&mut self, now: Time, source: Source<'_>, head: usize, row: usize) {
        let rows = source.pieces.iter().map(Bytes::len).sum::<usize>().div_ceil(row);
        let repaired = self.plan(now, rows, row).is_some_and(|plan| plan.rows > 0);
        if !repaired || head > row {
            return;
        }
        let bytes: Vec<u8> = slice(source.pieces, 0, head).concat();
        let header = RepairHeader {
            channel: source.channel,
            stream: source.stream,
            offset: source.offset,
            length: head as u32,
            row: head as u16,
            index: 0,
        };
        let update = source.what.update();
        let row = Row { header, priority: source.priority, bytes: bytes.into(), update };
        self.hold(now + source.hold(), row);
    }

    /// Whether anything but rows by the controller's plan may leave: not into a queue, nor before a round trip is
    /// known.
    fn insists(&self, now: Time) -> bool {
        let free = |controller: &RepairController| {
            !controller.is_congested(now.since_start()) && !controller.is_queue_standing()
        };
        self.adaptive && !self.link.rtt.is_zero() && self.controller.as_ref().is_some_and(free)
    }

    /// How long the rows of an answer wait for a burst to end: over a near link, what is lost altogether is soon found
    /// out, and each millisecond weighs more.
    fn answer_hold(&self) -> Duration {
        (self.link.rtt / ANSWER_HOLD_SHARE).clamp(HOLD, ANSWER_HOLD)
    }

    /// After how long what has left should have been acknowledged. RFC 9002 §6.2.1 takes four deviations too.
    fn patience(&self) -> Duration {
        self.link.rtt + GRACE.max(self.link.rtt_deviation * 4)
    }

    /// For how long repair carries what has left.
    fn horizon(&self) -> Duration {
        (self.link.rtt * 5 / 4).max(self.patience()) + HOLD
    }

    /// The link's rate in bytes per second, or what it is taken to be at least.
    fn rate(&self) -> u64 {
        let least = || MIN_WINDOW.saturating_mul(1_000_000) / (self.link.rtt.as_micros() as u64).max(1000);
        self.link.expected_rate().unwrap_or_else(least)
    }

    /// Bytes a second for copies, and for what is insisted on. A link that is hardly used seems slow.
    fn spare(&self) -> u64 {
        (self.rate() / SHARE).max(LEAST_SHARE)
    }

    /// Whether the carrier has sent what it was given. A little may seem to be left until the next acknowledgement:
    /// headers are only estimated.
    fn is_drained(&self) -> bool {
        self.link.unsent <= 2 * u64::from(self.link.payload.unwrap_or_default())
    }

    /// When everything that the carrier has, and so much more, will have left.
    fn departure(&self, now: Time, bytes: usize) -> Time {
        let waiting = if self.is_drained() { 0 } else { self.link.unsent } + bytes as u64;
        now + Duration::from_secs_f64(waiting as f64 / self.rate() as f64).min(LONGEST_WAIT)
    }

    /// Copies events for as long as they may be missing: at once and again on a link that loses, once on others.
    fn copy(&mut self, now: Time, source: &Source<'_>) {
        let last = self.patience();
        let loses = self.plan(now, 1, MAX_ROW).is_some_and(|plan| plan.rows > 0);
        let after = if loses { &copies::AFTER[..] } else { &copies::AFTER[1..2] };
        let blind = after.iter().copied().filter(|after| *after < last);
        self.sent.blocks += 1;
        self.copies.push(now, source, blind.chain(loses.then_some(last)));
    }

    /// Whether rows that follow their source at once are likely to die with it.
    fn loses_in_bursts(&self) -> bool {
        self.loss().is_some_and(|(_, burst)| burst > BURSTS)
    }

    /// How many rows stand for a small update where losses come in bursts: as many as it has. A long one has a row
    /// more where losses are frequent, for of long answers one in a hundred lacked it.
    fn late_rows(&self, layout: Layout) -> u8 {
        let often = self.loss().is_some_and(|(loss, _)| loss > OFTEN);
        let more = usize::from(often && layout.rows() >= LONG_ANSWER_ROWS);
        (layout.rows() + more).min(layout.max_repair()) as u8
    }

    /// Protects a small update by the controller's plan where losses come singly; where they come in bursts, by rows
    /// that stand for all of it, but later. Gives the first row that is not sent.
    fn protect_small(&mut self, now: Time, source: &Source<'_>, row: usize) -> u8 {
        let bursts = self.loses_in_bursts();
        let length = source.pieces.iter().map(Bytes::len).sum();
        let Ok(layout) = Layout::new(length, if bursts { fitting(row) } else { row }) else { return 0 };
        let planned = self.plan(now, layout.rows(), layout.row()).map_or(0, |plan| plan.rows);
        let late = self.late_rows(layout);
        match planned {
            0 => {}
            _ if bursts => self.make_rows(source, layout, 0..late, now + self.answer_hold()),
            rows => self.make_rows(source, layout, 0..rows.min(layout.max_repair() as u8), now + HOLD),
        }
        if bursts { late } else { 0 }
    }

    /// An answer goes again, as rows from `index` on of so many bytes, unless it is acknowledged in time.
    fn wait_for_answer(
        &mut self,
        now: Time,
        source: &Source<'_>,
        update: UpdateHeader,
        index: u8,
        row: usize,
    ) {
        let answer = Answer {
            // What an answer takes itself is in the round trips and their deviation.
            at: self.departure(now, 0) + self.patience(),
            channel: source.channel,
            priority: source.priority,
            pieces: source.pieces.to_vec(),
            row,
            index,
            update,
        };
        self.insistence.wait(source.stream, answer);
    }

    /// Lets small packets follow a large update.
    fn probe_end(&mut self, now: Time, source: &Source<'_>, total: usize) {
        let length = total.min(PROBE);
        let bytes: Vec<u8> = slice(source.pieces, total - length, length).concat();
        let header = RepairHeader {
            channel: source.channel,
            stream: source.stream,
            offset: source.offset + (total - length) as u64,
            length: length as u32,
            row: length as u16,
            index: 0,
        };
        let (priority, update) = (source.priority.repair(0), source.what.update());
        let probe = Row { header, priority, bytes: bytes.into(), update };
        self.tail.begin(self.departure(now, total), probe);
    }

    /// Puts what is due besides the rows among them.
    fn make_due(&mut self, now: Time) {
        if !self.insists(now) {
            return self.clear();
        }
        let room = self.row().map_or(0, |row| if self.in_datagrams { row } else { fitting(row) });
        for row in self.copies.due(now, self.horizon(), room, self.spare()) {
            self.hold(now, row);
        }
        if !self.is_drained() {
            self.insistence.postpone(now, now + self.patience());
        }
        while let Some((stream, answer)) = self.insistence.due(now, self.spare()) {
            self.insist(now, stream, &answer);
        }
        if let Some(probe) = self.tail.due(now, self.link.sent_packets) {
            self.hold(now, probe);
        }
    }

    /// Sends as many fresh rows as an answer has.
    fn insist(&mut self, now: Time, stream: StreamId, answer: &Answer) {
        let Ok(layout) = Layout::new(answer.length(), answer.row) else { return };
        let source = Source {
            what: What::Update { header: answer.update, head: 0, worth: Worth::Answer, joint: false },
            channel: answer.channel,
            stream,
            priority: answer.priority,
            offset: 0,
            pieces: &answer.pieces,
        };
        self.make_rows(&source, layout, answer.index..answer.index + layout.rows() as u8, now);
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
        let later = plan.second_after.unwrap_or_default();
        let first = if plan.second_after.is_some() { 1 } else { rows };
        let at = now + source.hold();
        self.make_rows(&source, layout, 0..first, at);
        self.make_rows(&source, layout, first..rows, at + later);
    }

    /// Makes these rows of a block, which may leave at `at`.
    fn make_rows(&mut self, source: &Source<'_>, layout: Layout, rows: Range<u8>, at: Time) {
        if rows.is_empty() || self.held_bytes > MAX_HELD {
            return;
        }
        self.sent.blocks += u64::from(rows.start == 0);
        let pieces: Vec<&[u8]> = source.pieces.iter().map(|piece| &piece[..]).collect();
        for (index, bytes) in rows.clone().zip(encode(layout, &pieces, rows)) {
            let header = RepairHeader {
                channel: source.channel,
                stream: source.stream,
                offset: source.offset,
                length: layout.length() as u32,
                row: layout.row() as u16,
                index,
            };
            let (priority, update) = (source.priority.repair(index), source.what.update());
            self.hold(at, Row { header, priority, bytes: bytes.into(), update });
        }
    }
}

/// The length of rows that stand for all of an update: they need not be as long as what they stand for, and fit a
/// packet.
fn fitting(row: usize) -> usize {
    row.saturating_sub(ROW_HEADER).max(1)
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

/// A surface is busy whose updates are so close that three of them have left within this time, or within a round trip
/// if that is less: a sum of their rows comes soon enough.
const BUSY: Duration = Duration::from_millis(50);

/// For so many rows there is a sum; where more than [`MUCH`] is lost, which two sums in a row often do not make good
/// for, for fewer.
const ROWS_OF_SUM: usize = 3;
const ROWS_OF_MUCH: usize = 2;
const MUCH: f64 = 0.035;

/// The most rows of an answer; what is larger is protected as a whole, or ended by probes.
const MAX_ANSWER_ROWS: usize = 8;

/// Where the mean burst of losses is longer than this, as in the controller, rows that follow their source die with it.
const BURSTS: f64 = 1.5;

/// The share of packets lost above which bursts are frequent, and the rows from which on an answer is long: fewer are
/// seldom lost but for all, and waiting helps those.
const OFTEN: f64 = 0.015;
const LONG_ANSWER_ROWS: usize = 5;

/// The longest that the rows of an answer wait there: most bursts of 5 ms are over.
const ANSWER_HOLD: Duration = Duration::from_millis(12);

/// They wait for one part in so many of a round trip at most: what a near peer lacks goes again soon.
const ANSWER_HOLD_SHARE: u32 = 5;

/// What is acknowledged at once takes no longer than a round trip and this.
const GRACE: Duration = Duration::from_millis(8);

/// The longest that what the carrier has is taken to need before it has left.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Events of up to one part in so many of a packet are copied; more of them at once have rows.
const SMALL: usize = 4;

/// Copies take at most one part in so many of the link, and so does what is insisted on.
const SHARE: u64 = 20;

/// The least share, in bytes a second.
const LEAST_SHARE: u64 = 8 << 10;

/// The most that a repair row's own header takes, so that it fits a packet.
const ROW_HEADER: usize = 28;

/// Bytes of a probe.
const PROBE: usize = 8;

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
