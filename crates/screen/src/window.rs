//! The window of the session that shows the screen.
//!
//! It has the screen's own pixels, one for one, as soon as the screen has taken on its size; until then, and where it
//! cannot, they are scaled. Invariant: a size that the session insists on (maximized, tiled, fullscreen) is kept to.

use std::os::unix::net::UnixStream;

use wayland_client::globals::registry_queue_init;
use wayland_client::protocol::wl_buffer::WlBuffer;
use wayland_client::protocol::wl_compositor::WlCompositor;
use wayland_client::protocol::wl_data_device_manager::WlDataDeviceManager;
use wayland_client::protocol::wl_output::Transform;
use wayland_client::protocol::wl_seat::WlSeat;
use wayland_client::protocol::wl_shm::WlShm;
use wayland_client::protocol::wl_surface::WlSurface;
use wayland_client::{Connection, EventQueue};
use wayland_protocols::wp::cursor_shape::v1::client::wp_cursor_shape_manager_v1::WpCursorShapeManagerV1;
use wayland_protocols::wp::fractional_scale::v1::client::wp_fractional_scale_manager_v1::WpFractionalScaleManagerV1;
use wayland_protocols::wp::keyboard_shortcuts_inhibit::zv1::client::zwp_keyboard_shortcuts_inhibit_manager_v1::ZwpKeyboardShortcutsInhibitManagerV1;
use wayland_protocols::wp::keyboard_shortcuts_inhibit::zv1::client::zwp_keyboard_shortcuts_inhibitor_v1::ZwpKeyboardShortcutsInhibitorV1;
use wayland_protocols::wp::primary_selection::zv1::client::zwp_primary_selection_device_manager_v1::ZwpPrimarySelectionDeviceManagerV1;
use wayland_protocols::wp::viewporter::client::wp_viewport::WpViewport;
use wayland_protocols::wp::viewporter::client::wp_viewporter::WpViewporter;
use wayland_protocols::xdg::decoration::zv1::client::zxdg_decoration_manager_v1::ZxdgDecorationManagerV1;
use wayland_protocols::xdg::decoration::zv1::client::zxdg_toplevel_decoration_v1::Mode as Decoration;
use wayland_protocols::xdg::shell::client::xdg_surface::XdgSurface;
use wayland_protocols::xdg::shell::client::xdg_toplevel::State;
use wayland_protocols::xdg::shell::client::xdg_wm_base::XdgWmBase;

use crate::damage::Rect;
use crate::error::{End, Error};
use crate::inbox::{Inbox, Owner, Queue};
use crate::pool::Layout;
use crate::size::Mode;

/// The window, and what is bound of the session.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) queue: Queue,
    pub(crate) compositor: WlCompositor,
    pub(crate) shm: WlShm,
    pub(crate) seat: WlSeat,
    pub(crate) cursor_shapes: Option<WpCursorShapeManagerV1>,
    pub(crate) clipboards: Option<WlDataDeviceManager>,
    pub(crate) primaries: Option<ZwpPrimarySelectionDeviceManagerV1>,
    shortcuts: Shortcuts,
    surface: WlSurface,
    shell: XdgSurface,
    viewport: WpViewport,
    place: Place,
    /// How large it is where the session leaves that to the window; 0 before it is known.
    chosen: (i32, i32),
    /// What is being shown: its size in pixels, as the user sees it.
    pixels: Option<(i32, i32)>,
}

/// How large the session wants the window.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// 0 where the window may choose.
    width: i32,
    height: i32,
    /// Neither more nor less.
    is_strict: bool,
    /// Pixels of a length of one, in 120ths.
    scale: u32,
}

/// The desktop's own shortcuts reach the screen while its window is all that the user sees.
#[derive(Debug)]
struct Shortcuts {
    manager: Option<ZwpKeyboardShortcutsInhibitManagerV1>,
    inhibitor: Option<ZwpKeyboardShortcutsInhibitorV1>,
}

/// How pixels become a window.
#[derive(Debug, PartialEq, Eq)]
enum Fit {
    /// One for one, at this scale.
    Exact(i32),
    /// Scaled to this size.
    Scaled(i32, i32),
}

impl Window {
    /// Makes the window; it is seen with its first picture.
    ///
    /// # Errors
    /// The session cannot be reached.
    pub(crate) fn open(socket: UnixStream, title: &str) -> Result<(Self, EventQueue<Inbox>), Error> {
        let connection = Connection::from_socket(socket).map_err(End::Session.connect())?;
        let (globals, events) = registry_queue_init::<Inbox>(&connection).map_err(End::Session.globals())?;
        let queue = events.handle();
        let lacks = |error: wayland_client::globals::BindError| Error::Session(error.to_string());
        let compositor: WlCompositor = globals.bind(&queue, 4..=5, ()).map_err(lacks)?;
        let shells: XdgWmBase = globals.bind(&queue, 1..=3, ()).map_err(lacks)?;
        let viewports: WpViewporter = globals.bind(&queue, 1..=1, ()).map_err(lacks)?;
        let owner = Owner::Session;
        let surface = compositor.create_surface(&queue, ());
        let shell = shells.get_xdg_surface(&surface, &queue, ());
        let toplevel = shell.get_toplevel(&queue, ());
        toplevel.set_title(title.to_owned());
        toplevel.set_app_id(APP_ID.to_owned());
        if let Ok(manager) = globals.bind::<ZxdgDecorationManagerV1, _, _>(&queue, 1..=1, ()) {
            manager.get_toplevel_decoration(&toplevel, &queue, ()).set_mode(Decoration::ServerSide);
        }
        if let Ok(manager) = globals.bind::<WpFractionalScaleManagerV1, _, _>(&queue, 1..=1, ()) {
            manager.get_fractional_scale(&surface, &queue, ());
        }
        let window = Self {
            shm: globals.bind(&queue, 1..=1, owner).map_err(lacks)?,
            // 8 tells of a wheel in 120ths, which the screen's pointer has not.
            seat: globals.bind(&queue, 1..=7, owner).map_err(lacks)?,
            cursor_shapes: globals.bind(&queue, 1..=1, ()).ok(),
            clipboards: globals.bind(&queue, 1..=3, ()).ok(),
            primaries: globals.bind(&queue, 1..=1, ()).ok(),
            shortcuts: Shortcuts { manager: globals.bind(&queue, 1..=1, ()).ok(), inhibitor: None },
            viewport: viewports.get_viewport(&surface, &queue, ()),
            surface,
            shell,
            place: Place { width: 0, height: 0, is_strict: false, scale: 120 },
            chosen: (0, 0),
            pixels: None,
            compositor,
            queue,
        };
        window.surface.commit();
        Ok((window, events))
    }

    /// A window that may choose is as large as this, unless it has been another size before.
    pub(crate) fn choose(&mut self, size: (i32, i32)) {
        if self.chosen == (0, 0) {
            self.chosen = size;
        }
    }

    /// Pixels of a length of one, if they are as many everywhere.
    pub(crate) fn whole_scale(&self) -> Option<i32> {
        self.place.scale.is_multiple_of(120).then_some((self.place.scale / 120) as i32)
    }

    /// What the screen must be like for its pixels to be the window's.
    pub(crate) fn wanted_mode(&self) -> Option<Mode> {
        let Place { width, height, scale, .. } = self.place;
        (width > 0 && height > 0).then(|| Mode {
            width: pixels(width, scale),
            height: pixels(height, scale),
            scale,
        })
    }

    /// The window's size as the user sees it.
    pub(crate) fn shown_size(&self) -> (i32, i32) {
        let Some((width, height)) = self.pixels else { return (1, 1) };
        match self.place.fit(width, height) {
            Fit::Exact(scale) => (width / scale, height / scale),
            Fit::Scaled(width, height) => (width, height),
        }
    }

    /// Shows a buffer of the session's.
    pub(crate) fn show(
        &mut self,
        buffer: &WlBuffer,
        layout: Layout,
        damage: &[Rect],
        transform: Transform,
        is_inverted: bool,
    ) {
        let is_turned = matches!(
            transform,
            Transform::_90 | Transform::_270 | Transform::Flipped90 | Transform::Flipped270
        );
        let (width, height) =
            if is_turned { (layout.height, layout.width) } else { (layout.width, layout.height) };
        let transform =
            if is_inverted && transform == Transform::Normal { Transform::Flipped180 } else { transform };
        self.pixels = Some((width, height));
        self.surface.set_buffer_transform(transform);
        self.surface.attach(Some(buffer), 0, 0);
        let all = [Rect::ALL];
        for rect in if is_inverted { &all } else { damage } {
            self.surface.damage_buffer(rect.x, rect.y, rect.width, rect.height);
        }
        self.surface.frame(&self.queue, ());
        self.commit();
    }

    /// Commits with the size that is due.
    fn commit(&self) {
        let Some((width, height)) = self.pixels else { return };
        match self.place.fit(width, height) {
            Fit::Exact(scale) => {
                self.viewport.set_destination(-1, -1);
                self.surface.set_buffer_scale(scale);
            }
            Fit::Scaled(width, height) => {
                self.surface.set_buffer_scale(1);
                self.viewport.set_destination(width, height);
            }
        }
        self.surface.commit();
    }

    /// The sizes that were told hold from now on; whether the window waits for its first picture.
    pub(crate) fn configured(&self, serial: u32) -> bool {
        self.shell.ack_configure(serial);
        self.commit();
        self.pixels.is_none()
    }

    /// The desk has another scale, in 120ths.
    pub(crate) fn scaled(&mut self, scale: u32) {
        self.place.scale = scale.clamp(MIN_SCALE, MAX_SCALE);
        self.commit();
    }

    /// The session wants the window so large; 0 leaves it to the window.
    pub(crate) fn configure(&mut self, width: i32, height: i32, states: &[u8]) {
        let states: Vec<State> = states
            .chunks_exact(4)
            .filter_map(|word| State::try_from(u32::from_ne_bytes(word.try_into().ok()?)).ok())
            .collect();
        let is_fullscreen = states.contains(&State::Fullscreen);
        let tiled = [State::TiledLeft, State::TiledRight, State::TiledTop, State::TiledBottom];
        let is_strict =
            is_fullscreen || states.contains(&State::Maximized) || tiled.iter().any(|of| states.contains(of));
        let (width, height) = if width > 0 && height > 0 { (width, height) } else { self.chosen };
        if !is_strict {
            self.chosen = (width, height);
        }
        self.place = Place { width, height, is_strict, ..self.place };
        self.grab_shortcuts(is_fullscreen);
    }

    fn grab_shortcuts(&mut self, grab: bool) {
        let Shortcuts { manager: Some(manager), inhibitor } = &mut self.shortcuts else { return };
        if !grab {
            if let Some(inhibitor) = inhibitor.take() {
                inhibitor.destroy();
            }
        } else if inhibitor.is_none() {
            *inhibitor = Some(manager.inhibit_shortcuts(&self.surface, &self.seat, &self.queue, ()));
        }
    }
}

impl Place {
    /// How so many pixels become a window here.
    fn fit(self, width: i32, height: i32) -> Fit {
        let Self { width: wide, height: high, is_strict, scale } = self;
        if wide <= 0 || high <= 0 {
            return Fit::Exact(1);
        }
        if (pixels(wide, scale), pixels(high, scale)) == (width, height) {
            let whole = (scale / 120) as i32;
            let is_whole = scale.is_multiple_of(120) && width % whole == 0 && height % whole == 0;
            return if is_whole { Fit::Exact(whole) } else { Fit::Scaled(wide, high) };
        }
        if is_strict {
            return Fit::Scaled(wide, high);
        }
        // As large as fits, with nothing distorted.
        let share = (f64::from(wide) / f64::from(width)).min(f64::from(high) / f64::from(height));
        let scaled = |length: i32| ((f64::from(length) * share) as i32).max(1);
        Fit::Scaled(scaled(width), scaled(height))
    }
}

/// Pixels of a length, at a scale in 120ths, as `wp_fractional_scale_v1` has them rounded.
fn pixels(length: i32, scale: u32) -> i32 {
    let pixels = (i64::from(length) * i64::from(scale) + 60) / 120;
    i32::try_from(pixels).unwrap_or(i32::MAX)
}

/// What desktops know the window by: rules for windows, icons, groups.
const APP_ID: &str = "wayferry-desktop";

/// The scales that a screen is given, in 120ths.
const MIN_SCALE: u32 = 60;

/// Eight pixels for one.
const MAX_SCALE: u32 = 960;

#[cfg(test)]
mod tests {
    use super::*;

    fn place(width: i32, height: i32, scale: u32) -> Place {
        Place { width, height, is_strict: false, scale }
    }

    #[test]
    fn a_screen_of_the_windows_size_is_shown_pixel_for_pixel() {
        assert_eq!(place(0, 0, 120).fit(1280, 720), Fit::Exact(1));
        assert_eq!(place(1280, 720, 120).fit(1280, 720), Fit::Exact(1));
        assert_eq!(place(640, 360, 240).fit(1280, 720), Fit::Exact(2));
        assert_eq!(place(853, 480, 180).fit(1280, 720), Fit::Scaled(853, 480));
    }

    #[test]
    fn another_screen_is_scaled_and_not_distorted_unless_the_session_insists() {
        assert_eq!(place(1000, 1000, 120).fit(2000, 1000), Fit::Scaled(1000, 500));
        let strict = Place { is_strict: true, ..place(1000, 1000, 120) };
        assert_eq!(strict.fit(2000, 1000), Fit::Scaled(1000, 1000));
        assert_eq!(place(1, 1, 120).fit(16_384, 1), Fit::Scaled(1, 1));
    }
}
