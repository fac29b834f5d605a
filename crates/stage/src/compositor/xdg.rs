//! `xdg_wm_base` and `xdg_surface`: what windows and popups share, that is configure, acknowledge, map, unmap.
//!
//! Invariant: a surface maps only with a buffer that follows an acknowledged configure; anything else is an
//! error of the client.

use std::collections::VecDeque;

use wayland_protocols::xdg::shell::server::{xdg_surface, xdg_wm_base};
use wayland_server::backend::ClientId;
use wayland_server::{Client, DataInit, Dispatch, DisplayHandle, GlobalDispatch, New, Resource};

use super::event::{Role, StageEvent, SurfaceId};
use super::geometry::Rect;
use super::popup::Popup;
use super::positioner;
use super::state::{State, number};
use super::toplevel::Toplevel;

/// A client's `xdg_wm_base`.
pub(crate) struct WmBase {
    pub(crate) resource: xdg_wm_base::XdgWmBase,
}

/// The `xdg_surface` of a surface.
pub(crate) struct XdgSurface {
    pub(crate) resource: xdg_surface::XdgSurface,
    pub(crate) base: xdg_wm_base::XdgWmBase,
    pub(crate) kind: Option<Kind>,
    /// Configures that were sent and not acknowledged, with the life they were for.
    sent: VecDeque<(u32, u32)>,
    /// Counts unmappings: a configure for an earlier life may still be acknowledged, but allows no buffer.
    life: u32,
    configured: bool,
    started: bool,
    geometry: Option<Rect>,
    pending_geometry: Option<Rect>,
}

/// Window or popup.
pub(crate) enum Kind {
    Toplevel(Toplevel),
    Popup(Popup),
}

impl XdgSurface {
    pub(crate) fn title(&self) -> Option<String> {
        self.toplevel().map(|toplevel| toplevel.title.clone())
    }

    pub(crate) fn toplevel(&self) -> Option<&Toplevel> {
        match &self.kind {
            Some(Kind::Toplevel(toplevel)) => Some(toplevel),
            _ => None,
        }
    }

    pub(crate) fn popup(&self) -> Option<&Popup> {
        match &self.kind {
            Some(Kind::Popup(popup)) => Some(popup),
            _ => None,
        }
    }

    /// Whether the first configure of this life was sent.
    pub(crate) fn is_started(&self) -> bool {
        self.started
    }

    /// Posts the error that a buffer before the first acknowledged configure deserves.
    pub(crate) fn check_configured(&self) -> bool {
        if !self.configured {
            let message = "a buffer came before a configure was acknowledged".to_owned();
            self.resource.post_error(xdg_surface::Error::UnconfiguredBuffer, message);
        }
        self.configured
    }
}

impl State {
    pub(crate) fn xdg(&self, id: SurfaceId) -> Option<&XdgSurface> {
        self.surface(id)?.xdg.as_ref()
    }

    pub(crate) fn xdg_mut(&mut self, id: SurfaceId) -> Option<&mut XdgSurface> {
        self.surfaces.get_mut(&id)?.xdg.as_mut()
    }

    /// The window geometry: what was set, else the surface itself.
    pub(crate) fn geometry(&self, id: SurfaceId) -> Rect {
        let (width, height) = self.surface(id).map_or((0, 0), |surface| surface.size());
        self.xdg(id).and_then(|xdg| xdg.geometry).unwrap_or(Rect::new(0, 0, width, height))
    }

    /// Ends a configure sequence.
    pub(crate) fn finish_configure(&mut self, id: SurfaceId, size: (i32, i32)) -> u32 {
        let serial = self.next_serial();
        if let Some(xdg) = self.xdg_mut(id) {
            xdg.sent.push_back((serial, xdg.life));
            if xdg.sent.len() > UNANSWERED {
                xdg.sent.pop_front();
            }
            xdg.started = true;
            xdg.resource.configure(serial);
            self.log.push(StageEvent::Configured { surface: id, serial, size });
        }
        serial
    }

    /// A commit of a window or popup took effect.
    pub(crate) fn xdg_committed(&mut self, id: SurfaceId) {
        let Some(surface) = self.surfaces.get_mut(&id) else { return };
        let content = surface.shown.is_some();
        let Some(xdg) = surface.xdg.as_mut() else { return };
        if let Some(geometry) = xdg.pending_geometry.take() {
            xdg.geometry = Some(geometry);
        }
        let (toplevel, started) = (xdg.toplevel().is_some(), xdg.started);
        let mapped = if toplevel { self.windows.contains(&id) } else { self.popup_is_mapped(id) };
        match (content, mapped) {
            (false, false) if !started && toplevel => self.configure_first(id),
            (false, false) if !started => self.configure_popup(id),
            (true, false) if toplevel => self.map_window(id),
            (true, false) => self.map_popup(id),
            (false, true) => self.unmap(id),
            _ => {}
        }
    }

    /// The surface no longer shows anything: its popups go, focus moves on, and it must start anew.
    pub(crate) fn unmap(&mut self, id: SurfaceId) {
        let Some(xdg) = self.xdg_mut(id) else { return };
        (xdg.configured, xdg.started, xdg.geometry) = (false, false, None);
        xdg.life += 1;
        self.dismiss_children(id);
        self.unmap_popup(id);
        self.unmap_window(id);
    }

    fn acknowledge(&mut self, id: SurfaceId, serial: u32) {
        let Some(xdg) = self.xdg_mut(id) else { return };
        let Some(index) = xdg.sent.iter().position(|sent| sent.0 == serial) else {
            let message = format!("configure {serial} is not among the unanswered {:?}", xdg.sent);
            xdg.resource.post_error(xdg_surface::Error::InvalidSerial, message);
            return;
        };
        let life = xdg.sent[index].1;
        xdg.sent.drain(..=index);
        xdg.configured |= life == xdg.life;
        self.log.push(StageEvent::Ack { surface: id, serial });
    }
}

impl GlobalDispatch<xdg_wm_base::XdgWmBase, ()> for State {
    fn bind(
        state: &mut State,
        _: &DisplayHandle,
        _: &Client,
        resource: New<xdg_wm_base::XdgWmBase>,
        _: &(),
        init: &mut DataInit<'_, State>,
    ) {
        let resource = init.init(resource, ());
        state.wm_bases.push(WmBase { resource });
    }
}

impl Dispatch<xdg_wm_base::XdgWmBase, ()> for State {
    fn request(
        state: &mut State,
        client: &Client,
        base: &xdg_wm_base::XdgWmBase,
        request: xdg_wm_base::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        match request {
            xdg_wm_base::Request::CreatePositioner { id } => {
                init.init(id, positioner::Shared::default());
            }
            xdg_wm_base::Request::GetXdgSurface { id, surface } => {
                let Some(key) = surface.data::<SurfaceId>() else { return };
                let resource = init.init(id, *key);
                create(state, *key, base, resource);
            }
            xdg_wm_base::Request::Pong { serial } => {
                state.log.push(StageEvent::Pong { client: number(client), serial });
            }
            xdg_wm_base::Request::Destroy => {
                let used =
                    state.surfaces.values().any(|s| s.xdg.as_ref().is_some_and(|xdg| xdg.base == *base));
                if used {
                    let message = "destroyed before its surfaces".to_owned();
                    base.post_error(xdg_wm_base::Error::DefunctSurfaces, message);
                }
                state.wm_bases.retain(|kept| kept.resource != *base);
            }
            _ => {}
        }
    }
}

fn create(
    state: &mut State,
    id: SurfaceId,
    base: &xdg_wm_base::XdgWmBase,
    resource: xdg_surface::XdgSurface,
) {
    let Some(surface) = state.surfaces.get_mut(&id) else { return };
    if surface.xdg.is_some() || !matches!(surface.role, None | Some(Role::Toplevel | Role::Popup)) {
        base.post_error(xdg_wm_base::Error::Role, "the surface has another role".to_owned());
        return;
    }
    if surface.has_content() {
        let message = "the surface already has a buffer".to_owned();
        base.post_error(xdg_wm_base::Error::InvalidSurfaceState, message);
        return;
    }
    surface.xdg = Some(XdgSurface {
        resource,
        base: base.clone(),
        kind: None,
        sent: VecDeque::new(),
        life: 0,
        configured: false,
        started: false,
        geometry: None,
        pending_geometry: None,
    });
}

impl Dispatch<xdg_surface::XdgSurface, SurfaceId> for State {
    fn request(
        state: &mut State,
        _: &Client,
        resource: &xdg_surface::XdgSurface,
        request: xdg_surface::Request,
        id: &SurfaceId,
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        match request {
            xdg_surface::Request::GetToplevel { id: new } => {
                let toplevel = init.init(new, *id);
                if take_role(state, *id, Role::Toplevel) {
                    let kind = Kind::Toplevel(Toplevel::new(toplevel));
                    state.xdg_mut(*id).expect("it took the role").kind = Some(kind);
                }
            }
            xdg_surface::Request::GetPopup { id: new, parent, positioner } => {
                let popup = init.init(new, *id);
                let parent = parent.and_then(|parent| parent.data::<SurfaceId>().copied());
                let rules = positioner.data::<positioner::Shared>();
                let rules = rules.map(|rules| *rules.lock().expect("no thread panics with it"));
                let rules = rules.unwrap_or_default();
                if !rules.is_complete() {
                    if let Some(xdg) = state.xdg(*id) {
                        let message = "the positioner lacks size or anchor rectangle".to_owned();
                        xdg.base.post_error(xdg_wm_base::Error::InvalidPositioner, message);
                    }
                } else if take_role(state, *id, Role::Popup) {
                    let kind = Kind::Popup(Popup::new(popup, parent, rules));
                    state.xdg_mut(*id).expect("it took the role").kind = Some(kind);
                }
            }
            xdg_surface::Request::SetWindowGeometry { x, y, width, height } => {
                if width <= 0 || height <= 0 {
                    let message = format!("window geometry of {width} × {height}");
                    resource.post_error(xdg_surface::Error::InvalidSize, message);
                } else if let Some(xdg) = state.xdg_mut(*id) {
                    xdg.pending_geometry = Some(Rect::new(x, y, width, height));
                }
            }
            xdg_surface::Request::AckConfigure { serial } => state.acknowledge(*id, serial),
            xdg_surface::Request::Destroy if state.xdg(*id).is_some_and(|xdg| xdg.kind.is_some()) => {
                let message = "destroyed before its window or popup".to_owned();
                resource.post_error(xdg_surface::Error::DefunctRoleObject, message);
            }
            _ => {}
        }
    }

    fn destroyed(state: &mut State, _: ClientId, resource: &xdg_surface::XdgSurface, id: &SurfaceId) {
        if state.xdg(*id).is_some_and(|xdg| xdg.resource == *resource) {
            state.unmap(*id);
            state.surfaces.get_mut(id).expect("it has an xdg_surface").xdg = None;
        }
    }
}

fn take_role(state: &mut State, id: SurfaceId, role: Role) -> bool {
    let Some(xdg) = state.xdg(id) else { return false };
    let resource = xdg.resource.clone();
    let free = xdg.kind.is_none() && state.set_role(id, role);
    if !free {
        resource.post_error(xdg_surface::Error::AlreadyConstructed, "it has a role object".to_owned());
    }
    free
}

/// Configures of one surface that may stay unanswered; the oldest are forgotten.
const UNANSWERED: usize = 4096;
