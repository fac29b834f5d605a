//! `xdg_toplevel` and `zxdg_toplevel_decoration_v1`: windows, where they stand, what they are told.

use wayland_protocols::xdg::decoration::zv1::server::{
    zxdg_decoration_manager_v1, zxdg_toplevel_decoration_v1,
};
use wayland_protocols::xdg::shell::server::xdg_toplevel::{self, XdgToplevel};
use wayland_server::backend::ClientId;
use wayland_server::{Client, DataInit, Dispatch, DisplayHandle, GlobalDispatch, New, Resource};

use super::event::{StageEvent, SurfaceId};
use super::state::State;
use super::xdg::Kind;

/// A window.
pub(crate) struct Toplevel {
    pub(crate) resource: XdgToplevel,
    pub(crate) title: String,
    pub(crate) app_id: String,
    pub(crate) parent: Option<SurfaceId>,
    /// Where the corner of its window geometry stands on the output.
    pub(crate) position: (i32, i32),
    size: (i32, i32),
    maximized: bool,
    fullscreen: bool,
    activated: bool,
    decoration: Option<zxdg_toplevel_decoration_v1::ZxdgToplevelDecorationV1>,
}

impl Toplevel {
    pub(crate) fn new(resource: XdgToplevel) -> Toplevel {
        Toplevel {
            resource,
            title: String::new(),
            app_id: String::new(),
            parent: None,
            position: (0, 0),
            size: (0, 0),
            maximized: false,
            fullscreen: false,
            activated: false,
            decoration: None,
        }
    }

    fn states(&self) -> Vec<u8> {
        let states = [
            (self.maximized, xdg_toplevel::State::Maximized),
            (self.fullscreen, xdg_toplevel::State::Fullscreen),
            (self.activated, xdg_toplevel::State::Activated),
        ];
        states.into_iter().filter(|(on, _)| *on).flat_map(|(_, state)| (state as u32).to_ne_bytes()).collect()
    }
}

impl State {
    pub(crate) fn toplevel_mut(&mut self, id: SurfaceId) -> Option<&mut Toplevel> {
        match &mut self.xdg_mut(id)?.kind {
            Some(Kind::Toplevel(toplevel)) => Some(toplevel),
            _ => None,
        }
    }

    /// Sends a configure with the window's present size and states; `None` when it is no window.
    pub(crate) fn configure_window(&mut self, id: SurfaceId, size: Option<(i32, i32)>) -> Option<u32> {
        let output = self.logical_size();
        let toplevel = self.toplevel_mut(id)?;
        if let Some(size) = size {
            toplevel.size = size;
        }
        let size = if toplevel.maximized || toplevel.fullscreen { output } else { toplevel.size };
        let version = toplevel.resource.version();
        if version >= xdg_toplevel::EVT_CONFIGURE_BOUNDS_SINCE {
            toplevel.resource.configure_bounds(output.0, output.1);
        }
        toplevel.resource.configure(size.0, size.1, toplevel.states());
        Some(self.finish_configure(id, size))
    }

    pub(crate) fn configure_first(&mut self, id: SurfaceId) {
        let size = self.config.initial_size;
        self.configure_window(id, Some(size));
    }

    pub(crate) fn map_window(&mut self, id: SurfaceId) {
        let taken: Vec<_> =
            self.windows.iter().filter_map(|id| self.xdg(*id)?.toplevel()).map(|t| t.position).collect();
        let free = (0..).map(|slot| (slot * CASCADE, slot * CASCADE)).find(|place| !taken.contains(place));
        if let Some(toplevel) = self.toplevel_mut(id) {
            toplevel.position = free.expect("there are more places than windows");
        }
        self.windows.push(id);
        if self.config.focus_new_windows {
            self.focus(Some(id));
        }
    }

    pub(crate) fn unmap_window(&mut self, id: SurfaceId) {
        let before = self.windows.len();
        self.windows.retain(|window| *window != id);
        if self.windows.len() != before && self.seat.focus == Some(id) {
            let next = self.windows.last().copied();
            self.focus(next);
        }
    }

    /// Tells windows which of them is active.
    pub(crate) fn activate(&mut self, active: Option<SurfaceId>) {
        for id in self.windows.clone() {
            let Some(toplevel) = self.toplevel_mut(id) else { continue };
            let is = Some(id) == active;
            if toplevel.activated != is {
                toplevel.activated = is;
                self.configure_window(id, None);
            }
        }
    }

    fn set_state(&mut self, id: SurfaceId, change: impl FnOnce(&mut Toplevel)) {
        if let Some(toplevel) = self.toplevel_mut(id) {
            change(toplevel);
        }
        if self.xdg(id).is_some_and(super::xdg::XdgSurface::is_started) {
            self.configure_window(id, None);
        }
    }
}

impl Dispatch<XdgToplevel, SurfaceId> for State {
    fn request(
        state: &mut State,
        _: &Client,
        _: &XdgToplevel,
        request: xdg_toplevel::Request,
        id: &SurfaceId,
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        let name = match &request {
            xdg_toplevel::Request::ShowWindowMenu { .. } => "show_window_menu",
            xdg_toplevel::Request::Move { .. } => "move",
            xdg_toplevel::Request::Resize { .. } => "resize",
            xdg_toplevel::Request::SetMaximized => "set_maximized",
            xdg_toplevel::Request::UnsetMaximized => "unset_maximized",
            xdg_toplevel::Request::SetFullscreen { .. } => "set_fullscreen",
            xdg_toplevel::Request::UnsetFullscreen => "unset_fullscreen",
            xdg_toplevel::Request::SetMinimized => "set_minimized",
            xdg_toplevel::Request::SetMinSize { .. } => "set_min_size",
            xdg_toplevel::Request::SetMaxSize { .. } => "set_max_size",
            xdg_toplevel::Request::SetParent { .. } => "set_parent",
            xdg_toplevel::Request::SetAppId { .. } => "set_app_id",
            _ => "",
        };
        if !name.is_empty() {
            state.log.push(StageEvent::WindowRequest { surface: *id, request: name });
        }
        match request {
            xdg_toplevel::Request::SetTitle { title } => {
                if let Some(toplevel) = state.toplevel_mut(*id) {
                    toplevel.title = title.clone();
                }
                state.log.push(StageEvent::Title { surface: *id, title });
            }
            xdg_toplevel::Request::SetAppId { app_id } => {
                if let Some(toplevel) = state.toplevel_mut(*id) {
                    toplevel.app_id = app_id;
                }
            }
            xdg_toplevel::Request::SetParent { parent } => {
                if let Some(toplevel) = state.toplevel_mut(*id) {
                    toplevel.parent = parent.and_then(|parent| parent.data::<SurfaceId>().copied());
                }
            }
            xdg_toplevel::Request::SetMaximized => state.set_state(*id, |window| window.maximized = true),
            xdg_toplevel::Request::UnsetMaximized => state.set_state(*id, |window| window.maximized = false),
            xdg_toplevel::Request::SetFullscreen { .. } => {
                state.set_state(*id, |window| window.fullscreen = true)
            }
            xdg_toplevel::Request::UnsetFullscreen => {
                state.set_state(*id, |window| window.fullscreen = false)
            }
            _ => {}
        }
    }

    fn destroyed(state: &mut State, _: ClientId, resource: &XdgToplevel, id: &SurfaceId) {
        if state.toplevel_mut(*id).is_some_and(|toplevel| toplevel.resource == *resource) {
            state.unmap(*id);
            state.xdg_mut(*id).expect("it is a window").kind = None;
        }
    }
}

impl GlobalDispatch<zxdg_decoration_manager_v1::ZxdgDecorationManagerV1, ()> for State {
    fn bind(
        _: &mut State,
        _: &DisplayHandle,
        _: &Client,
        resource: New<zxdg_decoration_manager_v1::ZxdgDecorationManagerV1>,
        _: &(),
        init: &mut DataInit<'_, State>,
    ) {
        init.init(resource, ());
    }
}

impl Dispatch<zxdg_decoration_manager_v1::ZxdgDecorationManagerV1, ()> for State {
    fn request(
        state: &mut State,
        _: &Client,
        _: &zxdg_decoration_manager_v1::ZxdgDecorationManagerV1,
        request: zxdg_decoration_manager_v1::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        use zxdg_decoration_manager_v1::Request;
        let Request::GetToplevelDecoration { id, toplevel } = request else { return };
        let key = toplevel.data::<SurfaceId>().copied().unwrap_or(SurfaceId(0));
        let decoration = init.init(id, key);
        decoration.configure(zxdg_toplevel_decoration_v1::Mode::ServerSide);
        state.set_state(key, |window| window.decoration = Some(decoration));
    }
}

impl Dispatch<zxdg_toplevel_decoration_v1::ZxdgToplevelDecorationV1, SurfaceId> for State {
    fn request(
        state: &mut State,
        _: &Client,
        decoration: &zxdg_toplevel_decoration_v1::ZxdgToplevelDecorationV1,
        request: zxdg_toplevel_decoration_v1::Request,
        id: &SurfaceId,
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        use zxdg_toplevel_decoration_v1::{Mode, Request};
        let mode = match request {
            Request::SetMode { mode } => mode.into_result().unwrap_or(Mode::ServerSide),
            Request::UnsetMode => Mode::ServerSide,
            _ => return,
        };
        decoration.configure(mode);
        state.set_state(*id, |_| {});
    }

    fn destroyed(
        state: &mut State,
        _: ClientId,
        _: &zxdg_toplevel_decoration_v1::ZxdgToplevelDecorationV1,
        id: &SurfaceId,
    ) {
        if let Some(toplevel) = state.toplevel_mut(*id) {
            toplevel.decoration = None;
        }
    }
}

/// Each further window stands this much to the right and below.
const CASCADE: i32 = 40;
