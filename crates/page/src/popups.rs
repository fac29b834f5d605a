//! Popups: which are open, where, and which of them has the keyboard.
//!
//! Invariant: an open popup is listed at the surface that it belongs to, and one that has the keyboard is open.

use wayferry_message::WireId;
use wayferry_message::value::Positioner;

use crate::area::Area;
use crate::ask::Popup;
use crate::place::{Place, place};
use crate::windows::{Opened, Windows};

impl Windows {
    pub(crate) fn popup(&self, surface: WireId) -> Option<&Opened> {
        self.popups.get(&surface)
    }

    pub(crate) fn open_popup(&mut self, popup: Popup) {
        let surface = popup.surface;
        self.close_popup(surface);
        if let Some(parent) = popup.parent.and_then(|parent| self.surfaces.get_mut(&parent)) {
            parent.popups.push(surface);
        }
        let (place, geometry) = (Place::default(), None);
        let opened = Opened { popup, geometry, place, is_configured: false, is_done: false };
        self.popups.insert(surface, opened);
    }

    pub(crate) fn close_popup(&mut self, surface: WireId) {
        let Some(opened) = self.popups.remove(&surface) else { return };
        self.grabs.retain(|grab| *grab != surface);
        if let Some(parent) = opened.popup.parent.and_then(|parent| self.surfaces.get_mut(&parent)) {
            parent.popups.retain(|popup| *popup != surface);
        }
    }

    /// A popup without content that is to be told its place, or any if `again`; it counts as told. Gives what it is
    /// told, with the objects that it is told to.
    pub(crate) fn take_place(&mut self, surface: WireId, area: Area, again: bool) -> Option<(Popup, Place)> {
        let opened = self.popups.get(&surface)?;
        let is_blank = self.surfaces.get(&surface)?.content().is_none();
        let is_due = if again { opened.is_configured } else { is_blank && !opened.is_configured };
        let parent = opened.popup.parent.filter(|_| is_due)?;
        let place = self.fit(&opened.popup.rules, parent, area);
        let opened = self.popups.get_mut(&surface)?;
        (opened.place, opened.is_configured) = (place, true);
        Some((opened.popup.clone(), place))
    }

    fn fit(&self, rules: &Positioner, parent: WireId, area: Area) -> Place {
        let (x, y) = self.origin(parent, area);
        place(rules, Place { at: (x.saturating_neg(), y.saturating_neg()), size: area.size() })
    }

    /// Where the geometry of a window or popup is in the area: a window that belongs to none fills it, and others are
    /// in its middle.
    fn origin(&self, surface: WireId, area: Area) -> (i32, i32) {
        let mut at = (0i32, 0i32);
        let mut surface = surface;
        for _ in 0..MAX_NESTED {
            let Some(opened) = self.popups.get(&surface) else { break };
            at = (at.0.saturating_add(opened.place.at.0), at.1.saturating_add(opened.place.at.1));
            match opened.popup.parent {
                Some(parent) => surface = parent,
                None => return at,
            }
        }
        let Some(window) = self.toplevels.get(&surface).filter(|window| window.parent.is_some()) else {
            return at;
        };
        let [_, _, width, height] = window.geometry.unwrap_or_else(|| self.whole(surface));
        let middle = |room: i32, side: i32| (room.saturating_sub(side) / 2).max(0);
        let (room, size) = (area.size(), (width, height));
        (at.0.saturating_add(middle(room.0, size.0)), at.1.saturating_add(middle(room.1, size.1)))
    }

    /// All of a surface, as a geometry.
    pub(crate) fn whole(&self, surface: WireId) -> [i32; 4] {
        let surface = self.surfaces.get(&surface);
        let size = surface.and_then(|surface| Some(surface.shape.size(surface.content()?.size())));
        let (width, height) = size.unwrap_or_default();
        [0, 0, width, height]
    }

    /// Where a popup is in the surface that it belongs to.
    pub(crate) fn popup_at(&self, opened: &Opened) -> (i32, i32) {
        let parent = opened.popup.parent;
        let origin = |surface: WireId| {
            let own = self.toplevels.get(&surface).and_then(|window| window.geometry);
            own.or_else(|| self.popups.get(&surface)?.geometry).unwrap_or_default()
        };
        let [left, top, ..] = parent.map(origin).unwrap_or_default();
        let [inset_x, inset_y, ..] = opened.geometry.unwrap_or_default();
        let add = |own: i32, at: i32, inset: i32| own.saturating_add(at).saturating_sub(inset);
        (add(left, opened.place.at.0, inset_x), add(top, opened.place.at.1, inset_y))
    }

    /// The popup that has the keyboard.
    pub(crate) fn grab(&self) -> Option<WireId> {
        let shown = |surface: &&WireId| self.surfaces.get(surface).is_some_and(|own| own.content().is_some());
        self.grabs.iter().rev().find(shown).copied()
    }

    /// Whether a popup has asked for the keyboard and is there.
    pub(crate) fn has_grabs(&self) -> bool {
        !self.grabs.is_empty()
    }

    /// The popups that have the keyboard are over. Gives their objects, the last one first.
    pub(crate) fn end_grabs(&mut self) -> Vec<WireId> {
        let grabs = std::mem::take(&mut self.grabs).into_iter().rev();
        let ended = grabs.filter_map(|surface| {
            let opened = self.popups.get_mut(&surface)?;
            opened.is_done = true;
            Some(opened.popup.popup)
        });
        ended.collect()
    }
}

/// How far popups are followed to the window that they belong to.
const MAX_NESTED: usize = 16;
