//! A screen and its window: what their parts are, and which of them hears what.
//!
//! Invariant: once it has ended, nothing more is sent.

use std::time::Instant;

use wayland_client::WEnum;
use wayland_client::protocol::wl_callback;
use wayland_client::protocol::wl_seat::{self, Capability, WlSeat};
use wayland_client::protocol::wl_shm::{self, Format};
use wayland_protocols::wp::fractional_scale::v1::client::wp_fractional_scale_v1;
use wayland_protocols::xdg::shell::client::{xdg_surface, xdg_toplevel, xdg_wm_base};

use crate::capture::Capture;
use crate::clipboard::Clipboards;
use crate::cursor::Cursor;
use crate::error::{End, Error};
use crate::inbox::{Event, Owner, Said};
use crate::keyboard::Keyboard;
use crate::outputs::{self, Outputs};
use crate::pointer::Pointer;
use crate::there::There;
use crate::window::Window;

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The user has closed the window.
    Closed,
    /// The compositor there has ended, or its screen is gone.
    ScreenGone,
    /// The session has ended.
    SessionGone,
    /// The caller has said so.
    Stopped,
}

/// A screen and its window.
pub(crate) struct Screen {
    there: There,
    window: Window,
    capture: Capture,
    cursor: Cursor,
    outputs: Outputs,
    keyboard: Keyboard,
    pointer: Pointer,
    clipboards: Clipboards,
    /// Formats that the session takes.
    formats: Vec<Format>,
}

impl Screen {
    pub(crate) fn new(there: There, window: Window) -> Self {
        let keyboard = Keyboard::new(there.keyboards.create_virtual_keyboard(&there.seat, &there.queue, ()));
        let pointer = Pointer::new(&there);
        let clipboards = Clipboards::new(&there, &window);
        Self {
            there,
            window,
            capture: Capture::default(),
            cursor: Cursor::default(),
            outputs: Outputs::default(),
            keyboard,
            pointer,
            clipboards,
            formats: Vec::new(),
        }
    }

    /// Does what is due.
    pub(crate) fn step(&mut self, now: Instant) {
        if self.outputs.step(now, self.window.wanted_mode(), &self.there) {
            // A frame of the old size is not waited for.
            self.capture.cancel();
        }
        // What would be captured before the answer has the size of before.
        if !self.outputs.size.is_under_way(now) {
            self.capture.step(now, &self.there, &mut self.window);
        }
        if self.cursor.step(now, &self.there, &self.window) {
            self.pointer.dress(&self.window, &self.cursor);
        }
    }

    /// When [`Screen::step`] has something to do without an event.
    pub(crate) fn timeout(&self, now: Instant) -> Option<Instant> {
        let capture = self.capture.frames.timeout().filter(|_| !self.outputs.size.is_under_way(now));
        let times = [capture, self.outputs.size.timeout(), self.cursor.timeout()];
        times.into_iter().flatten().min()
    }

    /// The window loses everything: what is down there is released.
    pub(crate) fn leave(&mut self) {
        self.keyboard.leave();
        self.pointer.leave();
    }

    /// Hears an event of one of the compositors; the end if it is one. Objects of the two may be equal.
    ///
    /// # Errors
    /// It cannot go on.
    pub(crate) fn hear(&mut self, end: End, event: Event) -> Result<Option<Ended>, Error> {
        match event {
            Event::Registry(Said { object, event, .. }) if end == End::There => {
                return Ok(self.there.globals_changed(&object, event).then_some(Ended::ScreenGone));
            }
            Event::Toplevel(Said { event: xdg_toplevel::Event::Close, .. }) => {
                return Ok(Some(Ended::Closed));
            }
            Event::Output(Said { event, data, .. }) => {
                self.there.output(event, data);
                self.window.choose(self.there.size());
            }
            Event::Outputs(Said { event, .. }) => self.outputs.hear(event),
            Event::Head(Said { object, event, .. }) => self.outputs.hear_head(&object, event),
            Event::Mode(Said { object, event, .. }) => outputs::hear_mode(&object, &event),
            Event::Configuration(Said { object, event, .. }) => {
                self.outputs.hear_answer(&object, &event);
            }
            Event::Frame(Said { object, event, .. }) => {
                self.capture.hear(&object, &event, (&self.there, &self.window), &self.formats)?;
            }
            Event::Buffer(Said { data, .. }) => {
                self.capture.released(data);
                self.cursor.released(data);
            }
            Event::Cursor(Said { event, .. }) => {
                if self.cursor.hear(&event) {
                    self.pointer.dress(&self.window, &self.cursor);
                }
            }
            Event::Pictures(Said { event, .. }) => {
                self.cursor.hear_pictures(&event, (&self.there, &self.window), &self.formats)?;
                self.pointer.dress(&self.window, &self.cursor);
            }
            Event::Picture(Said { object, event, .. }) => self.cursor.hear_frame(&object, &event),
            Event::Shm(Said {
                event: wl_shm::Event::Format { format: WEnum::Value(format) },
                data: Owner::Session,
                ..
            }) if self.formats.len() < MAX_FORMATS => {
                self.formats.push(format);
            }
            Event::Keyboard(Said { event, .. }) => {
                let serial = self.keyboard.hear(event);
                self.clipboards.acted(serial);
            }
            Event::Pointer(Said { event, data: Owner::Session, .. }) => {
                let serial = self.pointer.hear(&event, &self.window, &self.cursor);
                self.clipboards.acted(serial);
            }
            Event::Seat(Said { object, event, data }) => self.devices(&object, &event, data),
            event => {
                let other = self.clipboards.hear(event, (&self.there.queue, &self.window.queue));
                other.into_iter().for_each(|event| self.hear_window(event));
            }
        }
        Ok(None)
    }

    /// What is said of the window.
    fn hear_window(&mut self, event: Event) {
        match event {
            Event::Shell(Said { object, event: xdg_wm_base::Event::Ping { serial }, .. }) => {
                object.pong(serial)
            }
            Event::Surface(Said { event: xdg_surface::Event::Configure { serial }, .. }) => {
                // Without a picture it is seen with the first.
                let waits = self.window.configured(serial);
                if waits {
                    self.capture.frames.want();
                }
            }
            Event::Toplevel(Said {
                event: xdg_toplevel::Event::Configure { width, height, states }, ..
            }) => {
                self.window.configure(width, height, &states);
            }
            Event::Scale(Said { event: wp_fractional_scale_v1::Event::PreferredScale { scale }, .. }) => {
                self.window.scaled(scale);
            }
            Event::Shown(Said { event: wl_callback::Event::Done { .. }, .. }) => self.capture.frames.want(),
            _ => {}
        }
    }

    /// What a seat has.
    fn devices(&mut self, seat: &WlSeat, event: &wl_seat::Event, owner: Owner) {
        let wl_seat::Event::Capabilities { capabilities: WEnum::Value(has) } = event else { return };
        if owner == Owner::There {
            if has.contains(Capability::Pointer) {
                self.cursor.begin(&self.there, &self.window);
            }
            return;
        }
        self.keyboard.devices(has.contains(Capability::Keyboard), seat, &self.window.queue);
        self.pointer.devices(has.contains(Capability::Pointer), seat, &self.window.queue);
    }
}

/// Formats that are remembered; a compositor has some forty.
const MAX_FORMATS: usize = 256;
