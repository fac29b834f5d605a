//! What an outage took need not be sent again where newer content stands for it.
//!
//! When the display side is heard again after a while, QUIC sends again all that was lost meanwhile, old pictures
//! first. A surface of which as much is under way as its whole content takes begins anew with its next commit instead:
//! its update brings everything, what is under way is given up, and the display side shows the units of that as one
//! with the new one. One that draws no more needs none of this: what is under way is its newest content. Invariant:
//! what is given up is replaced by an update that builds on nothing, which is made next.

use std::time::Duration;

use wayferry_proto::{SurfaceId, Time};

use crate::message::ToDisplay;

use super::connection::Connection;
use super::fault::Fault;
use super::flush::Handed;
use super::sent::Lost;
use super::surface::Surface;
use super::unsent::{Ahead, Change};

impl Connection {
    /// Looks whether the link is back after an outage: nothing had been heard since `before`.
    pub(super) fn look_for_outage(&mut self, before: Option<Time>) {
        let credit = self.pacing.credit();
        let silence = before.zip(credit.heard).map_or(Duration::ZERO, |(before, heard)| heard.since(before));
        if silence < OUTAGE.max(credit.rtt * 4) {
            return;
        }
        let ids: Vec<u32> = self.surfaces.keys().copied().filter(|id| self.takes_no_more(*id)).collect();
        for id in ids {
            let step = self.draw_anew(id);
            self.settle(step);
        }
    }

    /// Whether a surface's whole content takes no more than what is under way, and may take its place: for a pixel a
    /// bit, if it is lossy at first.
    fn takes_no_more(&self, id: u32) -> bool {
        let Some(surface) = self.surfaces.get(&id).filter(|_| self.can_be_replaced(id)) else { return false };
        let Some(size) = surface.painter.size() else { return false };
        let lossy = self.studio.is_lossy() && self.pacing.credit().rate.is_some();
        let whole = if lossy { size.rect().area() / 8 } else { surface.painter.bytes() };
        self.pacing.under_way().bytes_of(surface.wire) >= whole.max(1)
    }

    /// Whether new content can stand for all that is under way of a surface. Not where that does more than to show
    /// content, and not with videos, which would have to be found again.
    fn can_be_replaced(&self, id: u32) -> bool {
        let plain = |surface: &Surface| surface.sent.are_replaceable() && surface.painter.videos() == 0;
        self.surfaces.get(&id).is_some_and(plain) && !self.surfaces.is_synchronised(id)
    }

    /// What waits is as old as the outage: a program that waits for a frame callback draws first.
    fn draw_anew(&mut self, id: u32) -> Result<(), Fault> {
        let (now, rtt) = (self.now, self.pacing.credit().rtt);
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        let waits = surface.stranded(Duration::ZERO).is_some();
        surface.sent.lose(Lost { from: if waits { now + DRAWING } else { now }, until: now + rtt + LATE });
        self.answer_frames_of(id, Duration::ZERO)
    }

    /// Whether the waiting commit of a surface will stand for all that is under way, which an outage took; when.
    pub(super) fn begins_anew(&self, id: u32) -> Option<Time> {
        let surface = self.surfaces.get(&id)?;
        let lost = surface.sent.lost(self.now)?;
        let unsent = surface.waiting.unsent()?;
        let new =
            unsent.change == Change::New && unsent.children.is_empty() && unsent.ahead == Ahead::Nothing;
        let painter = &surface.painter;
        let here = painter.content().is_some() && painter.has_news() && !painter.is_making();
        (new && here && self.can_be_replaced(id)).then_some(lost.from)
    }

    /// Gives up what is under way of a surface, for its next update; says how long that was. `None` if it arrives in
    /// any case.
    pub(super) fn begin_anew(&mut self, id: u32, handed: &mut dyn Handed) -> Option<u64> {
        let surface = self.surfaces.get_mut(&id)?;
        surface.sent.forget_lost();
        let (wire, name) = (surface.wire, SurfaceId(surface.wire.0));
        let (first, bytes) = handed.give_up(name)?;
        surface.painter.begin_anew();
        surface.forget_last();
        surface.sent.note_replaced(true);
        let by = surface.painter.next_update();
        self.pacing.give_up(wire);
        self.send(&ToDisplay::Superseded { surface: wire, update: first, by });
        Some(bytes)
    }
}

/// Pings and what they are answered come at least once a second, a little late: after this much silence the link has
/// been down.
const OUTAGE: Duration = Duration::from_millis(1500);

/// How long a program may take to draw when it is called back.
const DRAWING: Duration = Duration::from_millis(40);

/// A round trip and this after the outage, most of what was lost has been sent again.
const LATE: Duration = Duration::from_millis(100);
