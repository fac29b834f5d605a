//! `xdg_popup`: menus, their grabs and their end.
//!
//! Invariant: `seat.grabs` holds the grabbing popups from the first to the topmost, each the child of the one
//! before it.

use wayland_protocols::xdg::shell::server::xdg_popup::{self, XdgPopup};
use wayland_protocols::xdg::shell::server::xdg_wm_base;
use wayland_server::backend::ClientId;
use wayland_server::{Client, DataInit, Dispatch, DisplayHandle, Resource};

use super::event::{StageEvent, SurfaceId};
use super::geometry::Rect;
use super::positioner::{self, Positioner};
use super::state::State;
use super::xdg::Kind;

/// A popup.
pub(crate) struct Popup {
    resource: XdgPopup,
    pub(crate) parent: Option<SurfaceId>,
    rules: Positioner,
    /// Relative to the parent's window geometry.
    pub(crate) rect: Rect,
    pub(crate) mapped: bool,
    done: bool,
}

impl Popup {
    pub(crate) fn new(resource: XdgPopup, parent: Option<SurfaceId>, rules: Positioner) -> Popup {
        Popup { resource, parent, rules, rect: Rect::default(), mapped: false, done: false }
    }
}

impl State {
    fn popup_mut(&mut self, id: SurfaceId) -> Option<&mut Popup> {
        match &mut self.xdg_mut(id)?.kind {
            Some(Kind::Popup(popup)) => Some(popup),
            _ => None,
        }
    }

    pub(crate) fn popup_is_mapped(&self, id: SurfaceId) -> bool {
        self.xdg(id).and_then(|xdg| xdg.popup()).is_some_and(|popup| popup.mapped)
    }

    /// The popups of a window or popup, oldest first.
    pub(crate) fn popups_of(&self, parent: SurfaceId) -> Vec<SurfaceId> {
        let is_child = |id: &&SurfaceId| {
            self.xdg(**id).and_then(|xdg| xdg.popup()).is_some_and(|popup| popup.parent == Some(parent))
        };
        self.surfaces.keys().filter(is_child).copied().collect()
    }

    pub(crate) fn configure_popup(&mut self, id: SurfaceId) {
        self.place_popup(id, None);
    }

    fn place_popup(&mut self, id: SurfaceId, token: Option<u32>) {
        let Some(parent) = self.xdg(id).and_then(|xdg| xdg.popup()).map(|popup| popup.parent) else { return };
        let (left, top) = parent.map_or((0, 0), |parent| self.window_origin(parent));
        let (width, height) = self.logical_size();
        let Some(popup) = self.popup_mut(id) else { return };
        popup.rect = popup.rules.place(Rect::new(-left, -top, width, height));
        let rect = popup.rect;
        if let Some(token) = token {
            popup.resource.repositioned(token);
        }
        popup.resource.configure(rect.x, rect.y, rect.width, rect.height);
        self.log.push(StageEvent::PopupPlaced { surface: id, parent, rect });
        self.finish_configure(id, (rect.width, rect.height));
    }

    pub(crate) fn map_popup(&mut self, id: SurfaceId) {
        if self.popup_mut(id).is_none_or(|popup| popup.done) {
            return;
        }
        let parent = self.xdg(id).and_then(|xdg| xdg.popup()).and_then(|popup| popup.parent);
        let parent_mapped = parent.is_some_and(|it| self.windows.contains(&it) || self.popup_is_mapped(it));
        if !parent_mapped && let Some(xdg) = self.xdg(id) {
            let message = "the popup's parent is not mapped".to_owned();
            xdg.base.post_error(xdg_wm_base::Error::InvalidPopupParent, message);
            return;
        }
        if let Some(popup) = self.popup_mut(id) {
            popup.mapped = true;
        }
        if self.seat.grabs.last() == Some(&id) {
            self.focus(Some(id));
        }
    }

    pub(crate) fn unmap_popup(&mut self, id: SurfaceId) {
        if let Some(popup) = self.popup_mut(id) {
            popup.mapped = false;
        }
        if !self.seat.grabs.contains(&id) {
            return;
        }
        self.seat.grabs.retain(|grab| *grab != id);
        if self.seat.focus == Some(id) {
            let next = self.seat.grabs.last().or(self.windows.last()).copied();
            self.focus(next);
        }
    }

    /// Tells the popups above a surface to go, topmost first.
    pub(crate) fn dismiss_children(&mut self, parent: SurfaceId) {
        for child in self.popups_of(parent).into_iter().rev() {
            self.dismiss(child);
        }
    }

    /// Tells a popup and those above it to go, topmost first.
    pub(crate) fn dismiss(&mut self, id: SurfaceId) {
        self.dismiss_children(id);
        let Some(popup) = self.popup_mut(id).filter(|popup| !popup.done) else { return };
        popup.done = true;
        popup.mapped = false;
        popup.resource.popup_done();
        self.log.push(StageEvent::PopupDone { surface: id });
        self.unmap_popup(id);
    }

    fn grab(&mut self, id: SurfaceId, serial: u32) {
        let known = self.knows_serial(serial);
        let Some(xdg) = self.xdg(id) else { return };
        let Some(popup) = xdg.popup() else { return };
        if popup.mapped {
            let message = "a mapped popup cannot grab".to_owned();
            popup.resource.post_error(xdg_popup::Error::InvalidGrab, message);
            return;
        }
        if let Some(top) = self.seat.grabs.last()
            && popup.parent != Some(*top)
        {
            let message = "the parent is not the topmost grabbing popup".to_owned();
            xdg.base.post_error(xdg_wm_base::Error::NotTheTopmostPopup, message);
            return;
        }
        self.log.push(StageEvent::PopupGrab { surface: id, granted: known });
        if known {
            self.seat.grabs.push(id);
        } else {
            self.dismiss(id);
        }
    }
}

impl Dispatch<XdgPopup, SurfaceId> for State {
    fn request(
        state: &mut State,
        _: &Client,
        _: &XdgPopup,
        request: xdg_popup::Request,
        id: &SurfaceId,
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        match request {
            xdg_popup::Request::Grab { serial, .. } => state.grab(*id, serial),
            xdg_popup::Request::Reposition { positioner, token } => {
                let rules = positioner.data::<positioner::Shared>();
                if let (Some(popup), Some(rules)) = (state.popup_mut(*id), rules) {
                    popup.rules = *rules.lock().expect("no thread panics with it");
                }
                state.place_popup(*id, Some(token));
            }
            xdg_popup::Request::Destroy => {
                let open = state.popups_of(*id);
                if let (false, Some(xdg)) = (open.is_empty(), state.xdg(*id)) {
                    let message = format!("{} popups are above it", open.len());
                    xdg.base.post_error(xdg_wm_base::Error::NotTheTopmostPopup, message);
                }
            }
            _ => {}
        }
    }

    fn destroyed(state: &mut State, _: ClientId, resource: &XdgPopup, id: &SurfaceId) {
        if state.popup_mut(*id).is_some_and(|popup| popup.resource == *resource) {
            state.unmap(*id);
            state.xdg_mut(*id).expect("it is a popup").kind = None;
        }
    }
}
