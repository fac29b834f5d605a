//! One budget for all programs of a session: what the host may make this machine hold.
//!
//! The host decides how many programs there are, what they draw and what arrives for them; this module limits that.
//! What exceeds the budget is given up where the host can be asked for it again, pixels that are not shown first, then
//! updates that wait for their units; what needs another buffer waits, and so does what workers are to paint. No
//! program ends. Invariant: one surface at a time gets its content, however large that is.

use serde_json::{Value, json};
use wayferry_proto::{ConnectionId, SurfaceId, Time};
use wayferry_wayland::PredictFigures;
use wayferry_wayland::display::{Connection, Taken};

use super::DisplaySide;
use crate::program_connection::MAX_PROGRAMS;

impl DisplaySide<'_> {
    /// What all programs take together.
    fn taken(&self) -> Taken {
        self.connections.values().map(|shown| shown.core.taken()).fold(Taken::default(), std::ops::Add::add)
    }

    /// Bytes beyond what is shown, with what came and waits for the rest of its stream.
    fn beyond(&self) -> u64 {
        self.taken().beyond() + self.hub.link.session.held() as u64
    }

    /// What icons may take beside what they take already.
    pub(super) fn room_for_icons(&self) -> u64 {
        MAX_ICONS.saturating_sub(self.taken().icons)
    }

    /// What workers may paint beside what they do already.
    pub(super) fn room_for_painting(&mut self) -> usize {
        let painted = self.connections.values_mut().map(|shown| shown.core.painting());
        MAX_PAINTED.saturating_sub(painted.fold(0, usize::saturating_add))
    }

    /// Whether one more program may come.
    pub(super) fn has_place(&self) -> bool {
        self.connections.len() < MAX_PROGRAMS
    }

    /// Gives up what exceeds the budget.
    pub(super) fn share(&mut self, now: Time) {
        while self.taken().content > MAX_CONTENT
            && self.give_up(|taken| taken.content, |core| core.give_up_content(false))
        {}
        if self.beyond() > MAX_BEYOND {
            // Frees more than needed, so that not every update costs a search.
            while self.beyond() > ENOUGH_BEYOND
                && self.give_up(|taken| taken.hidden, |core| core.give_up_content(true))
            {}
            while self.beyond() > ENOUGH_BEYOND
                && self.taken().waiting_surfaces > 1
                && self.give_up(|taken| taken.waiting, |core| core.give_up_updates(now))
            {}
        }
        let tight = self.taken().buffers > MAX_BUFFERS;
        self.connections.values_mut().for_each(|shown| shown.core.set_tight(now, tight));
    }

    /// Lets the program that takes most give something up; says whether it did.
    fn give_up(&mut self, what: fn(&Taken) -> u64, give: impl FnOnce(&mut Connection) -> bool) -> bool {
        let takes = |core: &Connection| what(&core.taken());
        let most = self
            .connections
            .iter_mut()
            .max_by_key(|(id, shown)| (takes(&shown.core), std::cmp::Reverse(**id)));
        let most: Option<(&ConnectionId, _)> = most;
        most.is_some_and(|(_, shown)| takes(&shown.core) > 0 && give(&mut shown.core))
    }

    /// What came of keys that were shown before their answers, by window.
    pub(super) fn predicted(&self) -> impl Iterator<Item = (ConnectionId, SurfaceId, PredictFigures)> {
        self.connections.iter().flat_map(|(program, shown)| {
            shown.core.predicted().map(move |(surface, figures)| (*program, surface, figures))
        })
    }

    /// What the session takes of each limit, for the document.
    pub(super) fn shares(&self) -> Value {
        let taken = self.taken();
        json!({
            "programs": self.connections.len(),
            "programs_most": MAX_PROGRAMS,
            "content_bytes": taken.content,
            "content_bytes_most": MAX_CONTENT,
            "beyond_shown_bytes": self.beyond(),
            "beyond_shown_bytes_most": MAX_BEYOND,
            "buffer_bytes": taken.buffers,
            "buffer_bytes_most": MAX_BUFFERS,
            "descriptors": taken.descriptors + self.pipes.len(),
            "descriptors_most": MAX_PROGRAMS * DESCRIPTORS + crate::edge::pipes::DESCRIPTORS,
        })
    }
}

/// Bytes of pixels of all surfaces: 32 screens of 3840 × 2160.
const MAX_CONTENT: u64 = 1 << 30;
/// Bytes beyond what is shown: pixels of surfaces that the compositor does not show, icons, and updates that wait for
/// their units.
/// With what is not counted, and what comes before it is looked at again, the process takes no more than 64 MiB for
/// them. The content of one surface may be on its way at any size.
const MAX_BEYOND: u64 = 48 << 20;
/// Bytes of icons, within that: a program that comes later is shown without.
const MAX_ICONS: u64 = 16 << 20;
/// Once over [`MAX_BEYOND`], bytes are given up until this many are left.
const ENOUGH_BEYOND: u64 = 32 << 20;
/// Bytes of memory, about, that workers touch to paint units: two screens of 3840 × 2160. One unit may touch any; the
/// others wait for it.
const MAX_PAINTED: usize = 64 << 20;
/// Bytes of buffers that the compositor was given: 128 of 3840 × 2160.
const MAX_BUFFERS: u64 = 4 << 30;
/// Descriptors of a program: its connection, and the memory of its buffers.
const DESCRIPTORS: usize = 2;
