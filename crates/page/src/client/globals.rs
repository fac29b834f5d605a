//! The globals of a page that is a display, and what it tells of itself.
//!
//! Invariant: nothing is offered that is not handled.

use wayferry_message::snapshot::{self, Seat, Snapshot};
use wayferry_pixels::Format;

use crate::area::Area;

/// A global.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Global {
    Compositor,
    Subcompositor,
    Shell,
    Viewporter,
    Seat,
    Output,
    FractionalScale,
    Decoration,
    CursorShape,
    /// `wl_data_device_manager`.
    Clipboard,
}

impl Global {
    const ALL: [Self; 10] = [
        Self::Compositor,
        Self::Subcompositor,
        Self::Shell,
        Self::Viewporter,
        Self::Seat,
        Self::Output,
        Self::FractionalScale,
        Self::Decoration,
        Self::CursorShape,
        Self::Clipboard,
    ];

    /// The global of a name and an interface.
    pub(super) fn of(name: u32, interface: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|global| global.name() == name && global.interface() == interface)
    }

    /// Its registry name.
    fn name(self) -> u32 {
        self as u32 + 1
    }

    fn interface(self) -> &'static str {
        match self {
            Self::Compositor => "wl_compositor",
            Self::Subcompositor => "wl_subcompositor",
            Self::Shell => "xdg_wm_base",
            Self::Viewporter => "wp_viewporter",
            Self::Seat => "wl_seat",
            Self::Output => "wl_output",
            Self::FractionalScale => "wp_fractional_scale_manager_v1",
            Self::Decoration => "zxdg_decoration_manager_v1",
            Self::CursorShape => "wp_cursor_shape_manager_v1",
            Self::Clipboard => "wl_data_device_manager",
        }
    }

    /// The version that is offered.
    pub(super) fn version(self) -> u32 {
        match self {
            // 5 has `wl_surface.offset`, and 6 the scale, which the app side tells.
            Self::Compositor | Self::Output => 4,
            // 4 has bounds, and 5 what a window manager can do, which the app side tells.
            // Some programs want the actions of 3, although nothing is dragged.
            Self::Shell | Self::Clipboard => 3,
            // 9 says which way a wheel turned beside the way that it scrolls.
            Self::Seat => 8,
            _ => 1,
        }
    }
}

/// What a page that is a display tells of its compositor, which it has not: one output, one seat, the lowest versions
/// that have all that a page can do.
pub(crate) fn snapshot(area: Area, keymap: snapshot::Keymap) -> Snapshot {
    let global = |global: Global| snapshot::Global {
        name: global.name(),
        interface: global.interface().to_owned(),
        version: global.version(),
    };
    let seat = Seat {
        global: Global::Seat.name(),
        capabilities: POINTER_AND_KEYBOARD,
        name: "page".to_owned(),
        keymap: Some(keymap),
        repeat: Some(REPEAT),
    };
    Snapshot {
        globals: Global::ALL.map(global).into(),
        outputs: vec![area.output(Global::Output.name())],
        seats: vec![seat],
        formats: Format::ALL.iter().map(|format| format.to_wl_shm()).collect(),
    }
}

/// `wl_seat.capability`.
const POINTER_AND_KEYBOARD: u32 = 3;
/// Characters in a second, and milliseconds before the first: what desktops do.
const REPEAT: (i32, i32) = (25, 500);
