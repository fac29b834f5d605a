//! What the stage tells: a log of everything a client did that a test may want to wait for.
//!
//! Events are facts in the order in which they happened, each with the time at which the stage saw it. Nothing
//! here decides anything.

use std::time::Duration;

use super::geometry::Rect;
use crate::strip::Strip;

/// A client's connection, numbered from 1 in order of arrival and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientNumber(pub u64);

/// A `wl_surface`, numbered from 1 over all clients and never reused. A window is named by its surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SurfaceId(pub u64);

/// What a surface is used for; it never changes once set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A window (`xdg_toplevel`).
    Toplevel,
    /// A menu or the like (`xdg_popup`).
    Popup,
    /// A part of another surface.
    Subsurface,
    /// A pointer's picture.
    Cursor,
    /// What is seen under the pointer during a drag.
    DragIcon,
}

/// A selection: what was copied last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clipboard {
    /// The ordinary one (Ctrl+C).
    Regular,
    /// The one of marked text and the middle button.
    Primary,
}

/// An event and when the stage saw it, on [`crate::now`]'s clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Stamped {
    /// The time.
    pub time: Duration,
    /// The event.
    pub event: StageEvent,
}

/// One `wl_surface.commit`.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// Whose.
    pub client: ClientNumber,
    /// Of which surface.
    pub surface: SurfaceId,
    /// The surface's role at that time.
    pub role: Option<Role>,
    /// The title, when it is a window.
    pub title: Option<String>,
    /// Number of this commit of this surface, from 1.
    pub number: u64,
    /// Whether a buffer came with it (a null buffer counts not).
    pub attached: bool,
    /// Whether it waits in the cache of a synchronised subsurface for its parent's commit.
    pub cached: bool,
    /// Size of the content in buffer pixels, `None` when there is none.
    pub size: Option<(u32, u32)>,
    /// Box around the damage in buffer pixels.
    pub damage: Rect,
    /// [`crate::Image::checksum`] of the surface's whole content, 0 without content.
    pub checksum: u64,
    /// The strip in the content's top-left corner, or the large one, if there is one.
    pub strip: Option<Strip>,
    /// How many frame callbacks were asked for with it.
    pub callbacks: usize,
}

/// What happened on the stage.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StageEvent {
    /// A client connected.
    ClientConnected {
        /// Its number.
        client: ClientNumber,
    },
    /// A client's connection ended.
    ClientGone {
        /// Its number.
        client: ClientNumber,
        /// The protocol error it was sent away with, as `interface@id: code: message`.
        violation: Option<String>,
    },
    /// The first content of a surface appeared.
    FirstAttach {
        /// Whose.
        client: ClientNumber,
        /// Of which surface.
        surface: SurfaceId,
        /// What it is.
        role: Option<Role>,
        /// The title, when it is a window.
        title: Option<String>,
    },
    /// A surface's state was committed.
    Commit(Commit),
    /// The cached state of a synchronised subsurface took effect.
    Applied {
        /// Which surface.
        surface: SurfaceId,
        /// Checksum of its content now.
        checksum: u64,
    },
    /// A surface lost its content.
    Unmapped {
        /// Which.
        surface: SurfaceId,
    },
    /// A `wl_surface` was destroyed.
    Destroyed {
        /// Which.
        surface: SurfaceId,
    },
    /// The stage sent a configure.
    Configured {
        /// To which surface.
        surface: SurfaceId,
        /// With which serial.
        serial: u32,
        /// Size asked for; 0 lets the client choose.
        size: (i32, i32),
    },
    /// A client acknowledged a configure.
    Ack {
        /// Of which surface.
        surface: SurfaceId,
        /// Which one.
        serial: u32,
    },
    /// A window got a title.
    Title {
        /// Which window.
        surface: SurfaceId,
        /// The title.
        title: String,
    },
    /// A client asked something of a window, such as `move`, `set_maximized` or `show_window_menu`.
    WindowRequest {
        /// Which window.
        surface: SurfaceId,
        /// Name of the request.
        request: &'static str,
    },
    /// A popup found its place.
    PopupPlaced {
        /// Which popup.
        surface: SurfaceId,
        /// Its parent.
        parent: Option<SurfaceId>,
        /// Place relative to the parent's window geometry.
        rect: Rect,
    },
    /// A popup asked for a grab.
    PopupGrab {
        /// Which popup.
        surface: SurfaceId,
        /// Whether it got it.
        granted: bool,
    },
    /// The stage told a popup to go.
    PopupDone {
        /// Which popup.
        surface: SurfaceId,
    },
    /// Keyboard focus moved.
    KeyboardFocus {
        /// To where.
        surface: Option<SurfaceId>,
    },
    /// Pointer focus moved.
    PointerFocus {
        /// To where.
        surface: Option<SurfaceId>,
    },
    /// The stage pressed or released a key.
    Key {
        /// The focused surface.
        surface: Option<SurfaceId>,
        /// evdev code.
        code: u32,
        /// Pressed or released.
        pressed: bool,
        /// Serial of the event.
        serial: u32,
    },
    /// The stage pressed or released a pointer button.
    Button {
        /// The focused surface.
        surface: Option<SurfaceId>,
        /// evdev code.
        code: u32,
        /// Pressed or released.
        pressed: bool,
        /// Serial of the event.
        serial: u32,
    },
    /// A client set the pointer's picture.
    SetCursor {
        /// Which client.
        client: ClientNumber,
        /// The picture, `None` hides the pointer.
        surface: Option<SurfaceId>,
        /// Hot spot in surface coordinates.
        hotspot: (i32, i32),
        /// Whether client and serial had the right to.
        accepted: bool,
    },
    /// A client chose one of the pointer's ready shapes.
    SetCursorShape {
        /// Which client.
        client: ClientNumber,
        /// The shape, as `wp_cursor_shape_device_v1` numbers them.
        shape: u32,
        /// Whether client and serial had the right to.
        accepted: bool,
    },
    /// A client set a selection.
    SetSelection {
        /// Which client.
        client: ClientNumber,
        /// Which selection.
        clipboard: Clipboard,
        /// The types offered; empty clears it.
        types: Vec<String>,
        /// Whether client and serial had the right to.
        accepted: bool,
    },
    /// A client began to drag.
    DragStarted {
        /// Which client.
        client: ClientNumber,
        /// Whether client and serial had the right to.
        accepted: bool,
    },
    /// A drag ended.
    DragEnded {
        /// Where it was dropped, if it was accepted.
        dropped_on: Option<SurfaceId>,
    },
    /// A ping was answered.
    Pong {
        /// Who answered.
        client: ClientNumber,
        /// Serial of the ping.
        serial: u32,
    },
}
