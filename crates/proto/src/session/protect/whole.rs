//! Repair for a peer that reads each stream in order only, as a script in a browser does. Its rows are datagrams.
//!
//! Where a packet of a stream is lost, such a peer has none of what follows until QUIC has sent it again: of an update
//! of four packets whose first is lost, all four are missing. A row or two mend nothing there, so rows stand for all of
//! a block or are not sent. Messages go on one stream, which is stuck for all that come later, too; so each copy of
//! them carries those before it. Invariant: no row is longer than a datagram.

use std::time::Duration;

use wayferry_fec::Layout;

use super::{HOLD, MAX_ANSWER_ROWS, OFTEN, Protector, ROW_HEADER, SMALL, Source, What, Worth};
use crate::{MAX_ROW, MAX_ROW_DATAGRAM, SMALL_UPDATE, Time};

impl Protector {
    /// Where rows go from now on: into datagrams, or onto streams.
    pub(in super::super) fn set_in_datagrams(&mut self, in_datagrams: bool) {
        self.in_datagrams = in_datagrams;
    }

    /// Whether rows go into datagrams.
    pub(in super::super) fn is_in_datagrams(&self) -> bool {
        self.in_datagrams
    }

    /// Bytes of a row; `None` where the peer could make nothing of any.
    pub(super) fn row(&self) -> Option<usize> {
        if self.in_datagrams {
            let datagram = usize::from(self.link.datagram).min(MAX_ROW_DATAGRAM);
            return datagram.checked_sub(ROW_HEADER).filter(|row| *row > 0);
        }
        let payload = self.link.payload.filter(|_| !self.link.in_order)?;
        Some(usize::from(payload).clamp(1, MAX_ROW))
    }

    /// See [`Protector::protect`].
    pub(super) fn protect_whole(&mut self, now: Time, source: &Source<'_>, total: usize, row: usize) {
        match source.what {
            _ if total == 0 => {}
            What::Events if self.insists(now) && total <= row / SMALL => self.copy(now, source),
            What::Messages if self.insists(now) && total <= row / SMALL => self.copy_messages(now, source),
            What::Events | What::Messages => {
                if total.div_ceil(row) <= MAX_ANSWER_ROWS {
                    self.cover(now, source, total, row);
                }
            }
            What::Update { worth, .. } if total.div_ceil(row) > most_rows(worth) => {
                if self.insists(now) && !self.cover_large(now, source, total, row) {
                    self.probe_end(now, source, total);
                }
            }
            What::Update { worth, header, .. } => {
                let first = self.cover(now, source, total, row);
                // Of larger ones the carrier does not tell that they are there.
                if worth == Worth::Answer && total < SMALL_UPDATE && self.insists(now) {
                    self.wait_for_answer(now, source, header, first, even(total, row));
                }
            }
        }
    }

    /// Covers a larger update all the same, if the link loses and has room for so much more. In what scrolls each
    /// picture builds on the one before, so one that is stuck holds up all that follow. Says whether it is covered.
    fn cover_large(&mut self, now: Time, source: &Source<'_>, total: usize, row: usize) -> bool {
        let rate = self.link.rate.unwrap_or_default() / COVER_SHARE;
        total.div_ceil(row) <= MAX_COVERED_ROWS
            && self.repairs(now)
            && self.covering.take(now, rate, total)
            && self.cover(now, source, total, row) > 0
    }

    /// Sends as many rows as a block has, if the link loses. Gives the first row that is not sent.
    fn cover(&mut self, now: Time, source: &Source<'_>, total: usize, row: usize) -> u8 {
        let Ok(layout) = Layout::new(total, even(total, row)) else { return 0 };
        let planned = self.plan(now, layout.rows(), layout.row()).map_or(0, |plan| plan.rows);
        // Fewer rows than it has are of no use, and as many are too much for a queue.
        let in_vain = layout.rows() > 1 && !self.insists(now);
        if planned == 0 || in_vain {
            return 0;
        }
        let often = self.loss().is_some_and(|(loss, _)| loss > OFTEN);
        let more = usize::from(often && layout.rows() >= LONG_BLOCK);
        let rows = (layout.rows() + more).max(planned.into()).min(layout.max_repair()) as u8;
        let hold = if self.loses_in_bursts() { self.answer_hold().max(source.hold()) } else { source.hold() };
        // Datagrams go before all streams: they wait until their source has left.
        self.make_rows(source, layout, 0..rows, self.departure(now, 0) + hold);
        rows
    }

    /// Copies messages as events are copied, but for those of a link that has lost nothing: no user waits for them
    /// as for the answer to a key.
    fn copy_messages(&mut self, now: Time, source: &Source<'_>) {
        if self.plan(now, 1, MAX_ROW_DATAGRAM).is_some_and(|plan| plan.rows > 0) {
            self.sent.blocks += 1;
            let last = if self.loses_in_bursts() { self.answer_hold() } else { AGAIN };
            self.copies.push(now, source, [HOLD, last].into_iter());
        }
    }
}

/// The length of rows of which none is much shorter than the others.
fn even(total: usize, row: usize) -> usize {
    total.div_ceil(total.div_ceil(row).max(1)).max(1)
}

/// How many rows an update may have to be covered: no user waits for one that answers nothing.
fn most_rows(worth: Worth) -> usize {
    match worth {
        Worth::Answer => MAX_ANSWER_ROWS,
        Worth::Plain | Worth::Passing => MAX_PLAIN_ROWS,
    }
}

/// Most rows of an update that answers nothing, at any rate of the link.
const MAX_PLAIN_ROWS: usize = 4;

/// Most rows of an update that is covered where there is room for it: a page has room for as many datagrams of five.
const MAX_COVERED_ROWS: usize = 48;

/// What covers larger updates takes at most so small a part of the link's rate.
const COVER_SHARE: u64 = 3;

/// Where losses are frequent, blocks of so many rows and more have one to spare: they may lack one of their rows, too.
const LONG_BLOCK: usize = 2;

/// When messages are copied a second time, where losses come singly.
const AGAIN: Duration = Duration::from_millis(12);
