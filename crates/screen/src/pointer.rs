//! The user's pointer in the window, as the screen's.
//!
//! The user sees the own pointer, which is where it is at once; how it looks is [`crate::cursor`]'s.
//! Invariant: a button that is down at the screen is released when the pointer leaves the window.

use std::collections::BTreeSet;

use wayland_client::protocol::wl_pointer::{self, Axis, ButtonState, WlPointer};
use wayland_client::protocol::wl_seat::WlSeat;
use wayland_client::{Proxy, WEnum};
use wayland_protocols::wp::cursor_shape::v1::client::wp_cursor_shape_device_v1::{
    Shape, WpCursorShapeDeviceV1,
};
use wayland_protocols_wlr::virtual_pointer::v1::client::zwlr_virtual_pointer_v1::ZwlrVirtualPointerV1;

use crate::cursor::Cursor;
use crate::inbox::{Owner, Queue};
use crate::there::There;
use crate::window::Window;

/// The pointer of the window, and that of the screen.
#[derive(Debug)]
pub(crate) struct Pointer {
    there: ZwlrVirtualPointerV1,
    here: Option<(WlPointer, Option<WpCursorShapeDeviceV1>)>,
    down: BTreeSet<u32>,
    /// Steps of a wheel that the next event of the axis belongs to, vertical and horizontal.
    steps: [i32; 2],
    /// With which it has entered the window.
    serial: u32,
    /// The last event's time, for what is released by itself.
    time: u32,
}

impl Pointer {
    pub(crate) fn new(there: &There) -> Self {
        let (manager, seat) = (&there.pointers, Some(&there.seat));
        let there = if manager.version() >= 2 {
            // Its places are of this screen, and not of all that stand beside each other.
            let output = Some(&there.output);
            manager.create_virtual_pointer_with_output(seat, output, &there.queue, ())
        } else {
            manager.create_virtual_pointer(seat, &there.queue, ())
        };
        Self { there, here: None, down: BTreeSet::new(), steps: [0; 2], serial: 0, time: 0 }
    }

    /// Whether the session has a pointer.
    pub(crate) fn devices(&mut self, has_one: bool, seat: &WlSeat, queue: &Queue) {
        if !has_one {
            self.leave();
            if let Some((here, shape)) = self.here.take() {
                if let Some(shape) = shape {
                    shape.destroy();
                }
                if here.version() >= 3 {
                    here.release();
                }
            }
        } else if self.here.is_none() {
            self.here = Some((seat.get_pointer(queue, Owner::Session), None));
        }
    }

    /// What the window's pointer says; the serial, if the user has done something.
    pub(crate) fn hear(
        &mut self,
        event: &wl_pointer::Event,
        window: &Window,
        cursor: &Cursor,
    ) -> Option<u32> {
        use wl_pointer::Event;
        // Before version 5 every event is a frame of its own.
        let is_alone = self.here.as_ref().is_none_or(|(here, _)| here.version() < 5);
        let mut done = None;
        match *event {
            Event::Enter { serial, surface_x, surface_y, .. } => {
                self.serial = serial;
                self.dress(window, cursor);
                self.moved(self.time, (surface_x, surface_y), window.shown_size());
            }
            Event::Leave { .. } => {
                self.leave();
                return None;
            }
            Event::Motion { time, surface_x, surface_y } => {
                self.moved(time, (surface_x, surface_y), window.shown_size());
            }
            Event::Button { serial, time, button, state: WEnum::Value(state) } => {
                self.button(time, button, state);
                done = Some(serial);
            }
            Event::Axis { time, axis: WEnum::Value(axis), value } => self.axis(time, axis, value),
            Event::AxisSource { axis_source: WEnum::Value(source) } => self.there.axis_source(source),
            Event::AxisStop { time, axis: WEnum::Value(axis) } => self.there.axis_stop(time, axis),
            Event::AxisDiscrete { axis: WEnum::Value(axis), discrete } => {
                self.steps[usize::from(axis == Axis::HorizontalScroll)] = discrete;
            }
            Event::Frame => {
                self.there.frame();
                return None;
            }
            _ => return None,
        }
        if is_alone {
            self.there.frame();
        }
        done
    }

    /// The pointer is at this place of a window of this size.
    fn moved(&mut self, time: u32, (x, y): (f64, f64), (width, height): (i32, i32)) {
        // In 256ths, as they come.
        let place = |at: f64, length: i32| (at.clamp(0.0, f64::from(length)) * 256.0) as u32;
        let extent = |length: i32| u32::try_from(length).unwrap_or(1).saturating_mul(256).max(1);
        self.time = time;
        self.there.motion_absolute(time, place(x, width), place(y, height), extent(width), extent(height));
    }

    /// Makes the user's own pointer look like the screen's, or as it does everywhere.
    pub(crate) fn dress(&mut self, window: &Window, cursor: &Cursor) {
        let Some((pointer, shape)) = &mut self.here else { return };
        if let Some((picture, (x, y))) = cursor.shown() {
            pointer.set_cursor(self.serial, Some(picture), x, y);
        } else if let Some(manager) = &window.cursor_shapes {
            let shape = shape.get_or_insert_with(|| manager.get_pointer(pointer, &window.queue, ()));
            shape.set_shape(self.serial, Shape::Default);
        }
    }

    /// Releases what is down.
    pub(crate) fn leave(&mut self) {
        let down = std::mem::take(&mut self.down);
        if down.is_empty() {
            return;
        }
        for button in down {
            self.there.button(self.time, button, ButtonState::Released);
        }
        self.there.frame();
    }

    fn button(&mut self, time: u32, button: u32, state: ButtonState) {
        self.time = time;
        let is_new = match state {
            ButtonState::Pressed => self.down.len() < MAX_DOWN && self.down.insert(button),
            _ => self.down.remove(&button),
        };
        if is_new {
            self.there.button(time, button, state);
        }
    }

    fn axis(&mut self, time: u32, axis: Axis, value: f64) {
        let steps = std::mem::take(&mut self.steps[usize::from(axis == Axis::HorizontalScroll)]);
        match steps {
            0 => self.there.axis(time, axis, value),
            steps => self.there.axis_discrete(time, axis, value, steps),
        }
    }
}

/// Buttons that may be down at a time.
const MAX_DOWN: usize = 32;
