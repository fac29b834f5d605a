//! The surfaces of one program as they are now, and which of them are windows.
//!
//! Everything here is carried out at once and cannot fail but for want of room: what names a surface that has ended is
//! of no effect. Invariant: only surfaces that live are in the order of others.

use std::collections::BTreeMap;

use wayferry_message::WireId;

use crate::ask::{Ask, Change};
use crate::surface::Surface;

/// What is known of a window beside its surface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Toplevel {
    pub(crate) xdg_surface: WireId,
    pub(crate) title: String,
    pub(crate) app_id: String,
    /// Where it is inside its surface: x, y, width, height.
    pub(crate) geometry: Option<[i32; 4]>,
    /// It was told its size since it showed nothing last.
    pub(crate) is_configured: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    surfaces: BTreeMap<WireId, Surface>,
    /// By their surfaces, so the oldest first.
    toplevels: BTreeMap<WireId, Toplevel>,
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
            window.is_configured = false;
        }
    }

    pub(crate) fn carry_out(&mut self, ask: Ask) {
        match ask {
            Ask::Create(id) => drop(self.surfaces.insert(id, Surface::new(id))),
            Ask::Destroy(id) => self.destroy(id),
            Ask::BeWindow { surface, xdg_surface } => {
                let (title, app_id) = (String::new(), String::new());
                let window = Toplevel { xdg_surface, title, app_id, geometry: None, is_configured: false };
                self.toplevels.insert(surface, window);
            }
            Ask::LeaveScreen(surface) => drop(self.toplevels.remove(&surface)),
            Ask::Adopt { child, parent } => self.adopt(child, parent),
            Ask::Orphan(child) => self.orphan(child),
            Ask::Title { surface, title } => {
                self.toplevels.entry(surface).and_modify(|window| window.title = title);
            }
            Ask::AppId { surface, app_id } => {
                self.toplevels.entry(surface).and_modify(|window| window.app_id = app_id);
            }
            Ask::Change { surface, change } => self.change(surface, change),
            Ask::Nothing => {}
        }
    }

    fn destroy(&mut self, id: WireId) {
        self.orphan(id);
        self.toplevels.remove(&id);
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
        let Some(above) = self.surfaces.get_mut(&parent) else { return };
        above.order.push(child);
        if let Some(child) = self.surfaces.get_mut(&child) {
            (child.parent, child.at) = (Some(parent), (0, 0));
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
            Change::Scale(scale) => surface.shape.scale = scale,
            Change::Transform(transform) => surface.shape.transform = transform,
            Change::Crop(crop) => surface.shape.crop = crop,
            Change::Destination(destination) => surface.shape.destination = destination,
            Change::Position(at) => surface.at = at,
            Change::Geometry(geometry) => {
                self.toplevels.entry(id).and_modify(|window| window.geometry = Some(geometry));
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
