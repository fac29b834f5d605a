//! The surfaces of one program as they are now, and which of them are windows.
//!
//! Everything here is carried out at once and cannot fail but for want of room: what names a surface that has ended is
//! of no effect. Invariant: only surfaces that live are in the order of others.

use std::collections::{BTreeMap, BTreeSet};

use wayferry_message::{MAX_UNIT_DEPTH, WireId};

use crate::ask::{Ask, Change, Popup};
use crate::place::Place;
use crate::surface::Surface;

/// What is known of a window beside its surface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Toplevel {
    pub(crate) xdg_surface: WireId,
    pub(crate) toplevel: WireId,
    /// The surface of the window that it belongs to.
    pub(crate) parent: Option<WireId>,
    pub(crate) is_fullscreen: bool,
    /// What it was told last.
    pub(crate) told: Option<Told>,
    pub(crate) title: String,
    pub(crate) app_id: String,
    /// Where it is inside its surface: x, y, width, height.
    pub(crate) geometry: Option<[i32; 4]>,
    /// It was told its size since it showed nothing last.
    pub(crate) is_configured: bool,
}

/// What a window is told of itself: width and height, 0 if it may choose, and `xdg_toplevel.state`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) size: (i32, i32),
    pub(crate) states: Vec<u32>,
}

/// What is known of a popup beside its surface.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) popup: Popup,
    pub(crate) geometry: Option<[i32; 4]>,
    /// In the geometry of its parent.
    pub(crate) place: Place,
    pub(crate) is_configured: bool,
    /// It was told that it is over.
    pub(crate) is_done: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    pub(crate) surfaces: BTreeMap<WireId, Surface>,
    /// By their surfaces, so the oldest first.
    pub(crate) toplevels: BTreeMap<WireId, Toplevel>,
    pub(crate) popups: BTreeMap<WireId, Opened>,
    /// Popups that have the keyboard, in turn; the last one has it.
    pub(crate) grabs: Vec<WireId>,
    /// Objects that are told the scale.
    pub(crate) scales: BTreeSet<WireId>,
}

impl Windows {
    pub(crate) fn surface(&self, id: WireId) -> Option<&Surface> {
        self.surfaces.get(&id)
    }

    pub(crate) fn surface_mut(&mut self, id: WireId) -> Option<&mut Surface> {
        self.surfaces.get_mut(&id)
    }

    pub(crate) fn surfaces(&self) -> impl Iterator<Item = &Surface> {
        self.surfaces.values()
    }

    /// All surfaces, in the order of their ids.
    pub(crate) fn surfaces_mut(&mut self) -> impl Iterator<Item = (WireId, &mut Surface)> {
        self.surfaces.iter_mut().map(|(id, surface)| (*id, surface))
    }

    /// The window of a surface.
    pub(crate) fn toplevel(&self, surface: WireId) -> Option<&Toplevel> {
        self.toplevels.get(&surface)
    }

    pub(crate) fn toplevel_mut(&mut self, surface: WireId) -> Option<&mut Toplevel> {
        self.toplevels.get_mut(&surface)
    }

    /// Whether a commit to a surface waits for one of a surface around it.
    pub(crate) fn waits(&self, surface: WireId) -> bool {
        let own = |id: &WireId| self.surfaces.get(id).filter(|surface| surface.parent.is_some());
        let above = |id: &WireId| own(id).and_then(|surface| surface.parent);
        let around = std::iter::successors(Some(surface), above).take(MAX_UNIT_DEPTH + 1);
        around.into_iter().any(|id| own(&id).is_some_and(|surface| surface.waits))
    }

    /// The windows with their surfaces, the oldest first.
    pub(crate) fn toplevels(&self) -> impl Iterator<Item = (WireId, &Toplevel)> {
        self.toplevels.iter().map(|(surface, window)| (*surface, window))
    }

    /// The `xdg_surface` of a window without content that is to be told its size; it counts as told.
    pub(crate) fn take_configure(&mut self, surface: WireId) -> Option<WireId> {
        let is_blank = self.surfaces.get(&surface)?.content().is_none();
        let window = self.toplevels.get_mut(&surface)?;
        let is_due = is_blank && !std::mem::replace(&mut window.is_configured, true);
        is_due.then_some(window.xdg_surface)
    }

    /// A surface shows nothing any more.
    pub(crate) fn unmap(&mut self, surface: WireId) {
        if let Some(surface) = self.surfaces.get_mut(&surface) {
            surface.unmap();
        }
        if let Some(window) = self.toplevels.get_mut(&surface) {
            (window.is_configured, window.told) = (false, None);
        }
        if let Some(popup) = self.popups.get_mut(&surface) {
            popup.is_configured = false;
        }
    }

    pub(crate) fn carry_out(&mut self, ask: Ask) {
        match ask {
            Ask::Create(id) => drop(self.surfaces.insert(id, Surface::new(id))),
            Ask::Destroy(id) => self.destroy(id),
            Ask::BeWindow { surface, xdg_surface, toplevel } => {
                let window = Toplevel {
                    xdg_surface,
                    toplevel,
                    parent: None,
                    is_fullscreen: false,
                    told: None,
                    title: String::new(),
                    app_id: String::new(),
                    geometry: None,
                    is_configured: false,
                };
                self.toplevels.insert(surface, window);
            }
            Ask::BePopup(popup) => self.open_popup(*popup),
            Ask::LeaveScreen(surface) => {
                self.toplevels.remove(&surface);
                self.close_popup(surface);
            }
            Ask::Belong { surface, to } => {
                self.toplevels.entry(surface).and_modify(|window| window.parent = to);
            }
            Ask::Wish { surface, fullscreen } => {
                self.toplevels.entry(surface).and_modify(|window| {
                    window.is_fullscreen = fullscreen.unwrap_or(window.is_fullscreen);
                });
            }
            Ask::Reposition { surface, rules, .. } => {
                self.popups.entry(surface).and_modify(|opened| opened.popup.rules = *rules);
            }
            Ask::Grab(surface) => {
                if self.popups.contains_key(&surface) && !self.grabs.contains(&surface) {
                    self.grabs.push(surface);
                }
            }
            Ask::Synchronise { child, waits } => {
                self.surfaces.entry(child).and_modify(|surface| surface.waits = waits);
            }
            Ask::Uncrop(surface) => {
                self.surfaces.entry(surface).and_modify(|surface| surface.uncrops = true);
            }
            Ask::Scale(object) => _ = self.scales.insert(object),
            Ask::Unscale(object) => _ = self.scales.remove(&object),
            Ask::End { after, .. } => self.carry_out(*after),
            Ask::Adopt { child, parent } => self.adopt(child, parent),
            Ask::Orphan(child) => self.orphan(child),
            Ask::Title { surface, title } => {
                self.toplevels.entry(surface).and_modify(|window| window.title = title);
            }
            Ask::AppId { surface, app_id } => {
                self.toplevels.entry(surface).and_modify(|window| window.app_id = app_id);
            }
            Ask::Change { surface, change } => self.change(surface, change),
            Ask::Nothing | Ask::Clip(_) | Ask::Point(_) | Ask::Decorate { .. } | Ask::Answer(_) => {}
        }
    }

    fn destroy(&mut self, id: WireId) {
        self.orphan(id);
        self.toplevels.remove(&id);
        self.close_popup(id);
        let Some(surface) = self.surfaces.remove(&id) else { return };
        for child in surface.order.into_iter().filter(|child| *child != id) {
            if let Some(child) = self.surfaces.get_mut(&child) {
                child.parent = None;
            }
        }
    }

    fn adopt(&mut self, child: WireId, parent: WireId) {
        if !self.surfaces.contains_key(&child) {
            return;
        }
        self.orphan(child);
        let Some(above) = self.surfaces.get_mut(&parent) else { return };
        above.order.push(child);
        if let Some(child) = self.surfaces.get_mut(&child) {
            (child.parent, child.at, child.waits) = (Some(parent), (0, 0), true);
        }
    }

    fn orphan(&mut self, child: WireId) {
        let parent = self.surfaces.get_mut(&child).and_then(|child| child.parent.take());
        if let Some(parent) = parent.and_then(|parent| self.surfaces.get_mut(&parent)) {
            parent.order.retain(|other| *other != child);
        }
    }

    fn change(&mut self, id: WireId, change: Change) {
        let Some(surface) = self.surfaces.get_mut(&id) else { return };
        match change {
            Change::Input(input) => surface.input = input,
            Change::Scale(scale) => surface.shape.scale = scale,
            Change::Transform(transform) => surface.shape.transform = transform,
            Change::Crop(crop) => surface.shape.crop = crop,
            Change::Destination(destination) => surface.shape.destination = destination,
            Change::Position(at) => surface.at = at,
            Change::Geometry(geometry) => {
                self.toplevels.entry(id).and_modify(|window| window.geometry = Some(geometry));
                self.popups.entry(id).and_modify(|popup| popup.geometry = Some(geometry));
            }
            Change::Stack { sibling, above } => self.stack(id, sibling, above),
        }
    }

    fn stack(&mut self, child: WireId, sibling: WireId, above: bool) {
        let parent = self.surfaces.get(&child).and_then(|child| child.parent);
        let Some(parent) = parent.and_then(|parent| self.surfaces.get_mut(&parent)) else { return };
        if child == sibling || !parent.order.contains(&sibling) {
            return;
        }
        parent.order.retain(|other| *other != child);
        let at = parent.order.iter().position(|other| *other == sibling).unwrap_or_default();
        parent.order.insert(at + usize::from(above), child);
    }
}
