//! Windows, popups, subsurfaces, cursors.

use std::os::fd::AsFd;

use wayland_client::protocol::wl_output;
use wayland_protocols::xdg::shell::client::xdg_positioner::{Anchor, ConstraintAdjustment, Gravity};

use super::buffer::write_all;
use super::connection::Client;
use super::error::ClientError;
use super::inner::{Loose, Pane, PaneState, Role};
use crate::compositor::Rect;

/// How a popup is to be placed: below its anchor, from its left edge on, flipped or slid to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Menu {
    /// What it belongs to, in the parent's window geometry.
    pub anchor: Rect,
    /// Width and height.
    pub size: (i32, i32),
    /// The serial of the input that opened it, for a grab.
    pub grab: Option<u32>,
}

impl Client {
    /// A window, committed without content and configured; it appears with the first draw. `width` and `height`
    /// are what [`Client::size`] says when the compositor lets the client choose.
    ///
    /// # Errors
    /// No `xdg_wm_base`, or as [`Client::wait`].
    pub fn window(&mut self, title: &str, width: u32, height: u32) -> Result<Pane, ClientError> {
        let pane = self.window_unconfigured(title)?;
        self.commit(pane);
        self.wait_configure(pane, 1)?;
        let size = &mut self.inner.panes[pane.0].size;
        if size.0 == 0 || size.1 == 0 {
            *size = (width as i32, height as i32);
        }
        Ok(pane)
    }

    /// A window whose first commit is still to be made.
    ///
    /// # Errors
    /// No `xdg_wm_base`.
    pub fn window_unconfigured(&mut self, title: &str) -> Result<Pane, ClientError> {
        let queue = self.queue.handle();
        let base = self.bound.wm_base.clone().ok_or(ClientError::Missing("xdg_wm_base"))?;
        let pane = self.bare();
        let xdg = base.get_xdg_surface(self.surface(pane), &queue, pane);
        let toplevel = xdg.get_toplevel(&queue, pane);
        toplevel.set_title(title.to_owned());
        toplevel.set_app_id("wayferry-stage".to_owned());
        self.inner.panes[pane.0].role = Role::Window { xdg, toplevel };
        Ok(pane)
    }

    /// A popup of a window or of another popup, configured; it appears with the first draw.
    ///
    /// # Errors
    /// No `xdg_wm_base`, or as [`Client::wait`].
    pub fn popup(&mut self, parent: Pane, menu: Menu) -> Result<Pane, ClientError> {
        let queue = self.queue.handle();
        let base = self.bound.wm_base.clone().ok_or(ClientError::Missing("xdg_wm_base"))?;
        let positioner = base.create_positioner(&queue, ());
        positioner.set_size(menu.size.0, menu.size.1);
        let Rect { x, y, width, height } = menu.anchor;
        positioner.set_anchor_rect(x, y, width, height);
        positioner.set_anchor(Anchor::BottomLeft);
        positioner.set_gravity(Gravity::BottomRight);
        positioner.set_constraint_adjustment(
            ConstraintAdjustment::FlipX
                | ConstraintAdjustment::FlipY
                | ConstraintAdjustment::SlideX
                | ConstraintAdjustment::SlideY,
        );
        let pane = self.bare();
        let xdg = base.get_xdg_surface(self.surface(pane), &queue, pane);
        let parent = match &self.inner.panes[parent.0].role {
            Role::Window { xdg, .. } | Role::Popup { xdg, .. } => Some(xdg.clone()),
            _ => None,
        };
        let popup = xdg.get_popup(parent.as_ref(), &positioner, &queue, pane);
        positioner.destroy();
        if let (Some(serial), Some(seat)) = (menu.grab, &self.bound.seat) {
            popup.grab(seat, serial);
        }
        self.inner.panes[pane.0].role = Role::Popup { xdg, popup };
        self.commit(pane);
        self.wait("a popup's configure", |client| {
            let state = &client.inner.panes[pane.0];
            state.configures > 0 || state.closed
        })?;
        Ok(pane)
    }

    /// Where a popup was placed, in its parent's window geometry.
    pub fn place(&self, popup: Pane) -> Rect {
        self.inner.panes[popup.0].place
    }

    /// A subsurface at a position in its parent; it is synchronised at first.
    ///
    /// # Errors
    /// No `wl_subcompositor`.
    pub fn subsurface(&mut self, parent: Pane, x: i32, y: i32) -> Result<Pane, ClientError> {
        let queue = self.queue.handle();
        let manager = self.bound.subcompositor.clone().ok_or(ClientError::Missing("wl_subcompositor"))?;
        let pane = self.bare();
        let subsurface = manager.get_subsurface(self.surface(pane), self.surface(parent), &queue, ());
        subsurface.set_position(x, y);
        self.inner.panes[pane.0].role = Role::Sub { subsurface };
        Ok(pane)
    }

    /// `wl_subsurface.set_position`; takes effect with the parent's commit.
    pub fn set_position(&mut self, pane: Pane, x: i32, y: i32) {
        if let Role::Sub { subsurface } = &self.inner.panes[pane.0].role {
            subsurface.set_position(x, y);
        }
    }

    /// `set_sync` or `set_desync`.
    pub fn set_synchronised(&mut self, pane: Pane, synchronised: bool) {
        match &self.inner.panes[pane.0].role {
            Role::Sub { subsurface } if synchronised => subsurface.set_sync(),
            Role::Sub { subsurface } => subsurface.set_desync(),
            _ => {}
        }
    }

    /// `wl_subsurface.place_below`; takes effect with the parent's commit.
    pub fn place_below(&mut self, pane: Pane, sibling: Pane) {
        if let Role::Sub { subsurface } = &self.inner.panes[pane.0].role {
            subsurface.place_below(self.surface(sibling));
        }
    }

    /// A surface without a role, such as for a cursor or a drag icon.
    pub fn bare(&mut self) -> Pane {
        let pane = Pane(self.inner.panes.len());
        let compositor = self.compositor().expect("checked when the client was made");
        let surface = compositor.create_surface(&self.queue.handle(), ());
        self.inner.panes.push(PaneState {
            surface,
            role: Role::Bare,
            viewport: None,
            slots: Vec::new(),
            buffers: 2,
            alpha: false,
            size: (0, 0),
            place: Rect::default(),
            configures: 0,
            frame_pending: false,
            closed: false,
        });
        pane
    }

    /// `wl_pointer.set_cursor` with the serial of the last enter; `None` hides the pointer.
    pub fn set_cursor(&mut self, cursor: Option<Pane>, hotspot: (i32, i32)) {
        let Some(pointer) = &self.bound.pointer else { return };
        let surface = cursor.map(|cursor| self.surface(cursor));
        pointer.set_cursor(self.inner.pointer_serial, surface, hotspot.0, hotspot.1);
    }

    /// `xdg_toplevel.set_title`.
    pub fn set_title(&mut self, window: Pane, title: &str) {
        if let Role::Window { toplevel, .. } = &self.inner.panes[window.0].role {
            toplevel.set_title(title.to_owned());
        }
    }

    /// `set_min_size` and `set_max_size` to the same size; takes effect with the next commit.
    pub fn set_fixed_size(&mut self, window: Pane, width: i32, height: i32) {
        if let Role::Window { toplevel, .. } = &self.inner.panes[window.0].role {
            toplevel.set_min_size(width, height);
            toplevel.set_max_size(width, height);
        }
    }

    /// `xdg_toplevel.set_parent`.
    pub fn set_parent(&mut self, window: Pane, parent: Option<Pane>) {
        let parent = parent.and_then(|parent| match &self.inner.panes[parent.0].role {
            Role::Window { toplevel, .. } => Some(toplevel),
            _ => None,
        });
        if let Role::Window { toplevel, .. } = &self.inner.panes[window.0].role {
            toplevel.set_parent(parent);
        }
    }

    /// `xdg_surface.set_window_geometry`; takes effect with the next commit.
    pub fn set_geometry(&mut self, pane: Pane, geometry: Rect) {
        if let Role::Window { xdg, .. } | Role::Popup { xdg, .. } = &self.inner.panes[pane.0].role {
            xdg.set_window_geometry(geometry.x, geometry.y, geometry.width, geometry.height);
        }
    }

    /// `wp_viewport` requests: part of the content to show, and the size to show it in.
    ///
    /// # Errors
    /// No `wp_viewporter`.
    pub fn set_viewport(
        &mut self,
        pane: Pane,
        source: Option<(f64, f64, f64, f64)>,
        destination: Option<(i32, i32)>,
    ) -> Result<(), ClientError> {
        let manager = self.bound.viewporter.clone().ok_or(ClientError::Missing("wp_viewporter"))?;
        let queue = self.queue.handle();
        let state = &mut self.inner.panes[pane.0];
        let surface = state.surface.clone();
        let viewport = state.viewport.get_or_insert_with(|| manager.get_viewport(&surface, &queue, ()));
        let (x, y, width, height) = source.unwrap_or((-1.0, -1.0, -1.0, -1.0));
        viewport.set_source(x, y, width, height);
        let (width, height) = destination.unwrap_or((-1, -1));
        viewport.set_destination(width, height);
        Ok(())
    }

    /// `set_buffer_scale`.
    pub fn set_scale(&mut self, pane: Pane, scale: i32) {
        self.surface(pane).set_buffer_scale(scale);
    }

    /// `set_buffer_transform`, by the number of the transform in the protocol, 0 to 7.
    pub fn set_transform(&mut self, pane: Pane, transform: u32) {
        if let Ok(transform) = wl_output::Transform::try_from(transform) {
            self.surface(pane).set_buffer_transform(transform);
        }
    }

    /// A buffer made of raw bytes in any format, as its `wl_shm` code says: attach, full damage, commit. The
    /// buffer is destroyed at once after the commit.
    ///
    /// # Errors
    /// The format was not offered, or no file could be made.
    pub fn draw_raw(
        &mut self,
        pane: Pane,
        format: u32,
        (width, height, stride): (i32, i32, i32),
        bytes: &[u8],
    ) -> Result<(), ClientError> {
        let format = wayland_client::protocol::wl_shm::Format::try_from(format)
            .map_err(|()| ClientError::Missing("that format"))?;
        let queue = self.queue.handle();
        let file = rustix::fs::memfd_create("raw", rustix::fs::MemfdFlags::CLOEXEC)?;
        write_all(&file, bytes, 0)?;
        let pool = self.shm()?.create_pool(file.as_fd(), bytes.len() as i32, &queue, ());
        let buffer = pool.create_buffer(0, width, height, stride, format, &queue, Loose);
        let surface = self.surface(pane);
        surface.attach(Some(&buffer), 0, 0);
        surface.damage(0, 0, i32::MAX, i32::MAX);
        surface.commit();
        buffer.destroy();
        pool.destroy();
        self.flush()
    }

    /// Commits a buffer whose file is shorter than its pool says: a violation.
    ///
    /// # Errors
    /// No file could be made, or the connection is lost.
    pub fn draw_short(&mut self, pane: Pane) -> Result<(), ClientError> {
        let queue = self.queue.handle();
        let file = rustix::fs::memfd_create("short", rustix::fs::MemfdFlags::CLOEXEC)?;
        write_all(&file, &[0; 64], 0)?;
        let pool = self.shm()?.create_pool(file.as_fd(), 4096, &queue, ());
        let format = wayland_client::protocol::wl_shm::Format::Xrgb8888;
        let buffer = pool.create_buffer(0, 32, 32, 128, format, &queue, Loose);
        let surface = self.surface(pane);
        surface.attach(Some(&buffer), 0, 0);
        surface.damage(0, 0, 32, 32);
        surface.commit();
        self.flush()
    }

    /// The formats of shared memory that the compositor offers, by their `wl_shm` codes.
    pub fn formats(&self) -> Vec<u32> {
        self.inner.formats.iter().map(|format| u32::from(*format)).collect()
    }

    /// Waits until a pane was configured `count` times in all.
    ///
    /// # Errors
    /// As [`Client::wait`].
    pub fn wait_configure(&mut self, pane: Pane, count: u64) -> Result<(), ClientError> {
        self.wait("a configure", |client| client.inner.panes[pane.0].configures >= count)
    }

    /// How often a pane was configured.
    pub fn configures(&self, pane: Pane) -> u64 {
        self.inner.panes[pane.0].configures
    }

    /// Destroys the pane: role object first, then the surface, then its buffers.
    pub fn destroy(&mut self, pane: Pane) {
        let state = &mut self.inner.panes[pane.0];
        if let Some(viewport) = state.viewport.take() {
            viewport.destroy();
        }
        match std::mem::replace(&mut state.role, Role::Destroyed) {
            Role::Window { xdg, toplevel } => {
                toplevel.destroy();
                xdg.destroy();
            }
            Role::Popup { xdg, popup } => {
                popup.destroy();
                xdg.destroy();
            }
            Role::Sub { subsurface } => subsurface.destroy(),
            Role::Bare => {}
            Role::Destroyed => return,
        }
        state.surface.destroy();
        state.slots.drain(..).for_each(|slot| slot.buffer.destroy());
    }
}
