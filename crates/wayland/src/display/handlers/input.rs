//! Input devices: keys that are held, and cursors that the compositor cannot draw.

use wayferry_pixels::Format;

use crate::action::End;
use crate::message::{WireArg, WireId};
use crate::policy::Handler;
use crate::tables;
use crate::wire::Arg;

use super::super::connection::Connection;
use super::super::cursor::Drawn;
use super::super::handler::{Asked, Event, Handles};
use super::super::hold::{Claim, Key};
use super::super::objects::Own;
use super::super::ops::{self, ints, known};

/// `wl_keyboard`.
pub(super) struct Keyboard;

impl Handles for Keyboard {
    fn made(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        connection.state.keyboards.add(object);
        Ok(())
    }

    fn ended(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        connection.state.keyboards.remove(object);
        connection.predict_no_more(object)
    }

    fn event(&self, connection: &mut Connection, event: Event<'_>) -> Result<(), End> {
        let state = &mut connection.state;
        let (keyboards, now, keyboard) = (&mut state.keyboards, event.now, event.object);
        match (event.name, event.args) {
            ("key", [_, _, Arg::Uint(key), Arg::Uint(pressed)]) => {
                keyboards.key(now, keyboard, *key, *pressed != 0);
                if *pressed != 0 {
                    let number = state.presses.press();
                    connection.predict_key(now, keyboard, (number, *key))?;
                }
            }
            ("enter", [_, Arg::Object(surface), Arg::Array(keys)]) => {
                keyboards.enter(now, keyboard, keys);
                if let Some(surface) = connection.objects.wire_of(*surface) {
                    connection.predict_for(keyboard, surface)?;
                }
            }
            ("leave", _) => {
                keyboards.leave(now, keyboard);
                connection.predict_no_more(keyboard)?;
            }
            (
                "modifiers",
                [_, Arg::Uint(pressed), Arg::Uint(latched), Arg::Uint(locked), Arg::Uint(group)],
            ) => {
                connection.predict_with(keyboard, [*pressed, *latched, *locked, *group]);
            }
            _ => {}
        }
        Ok(())
    }

    fn is_news(&self, connection: &mut Connection, object: WireId, hash: u128) -> bool {
        let is_news = connection.state.keyboards.is_news(object, hash);
        if is_news {
            // The same keys are other letters now.
            let outcome = connection.forget_predictions();
            connection.settle(outcome);
        }
        is_news
    }
}

/// `wl_pointer`.
pub(super) struct Pointer;

impl Handles for Pointer {
    fn ended(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        connection.forget_cursor(object)
    }

    fn event(&self, connection: &mut Connection, event: Event<'_>) -> Result<(), End> {
        if event.name == "button" { connection.disturb_predictions(event.now) } else { Ok(()) }
    }
}

/// `wl_touch`.
pub(super) struct Touch;

impl Handles for Touch {
    fn event(&self, connection: &mut Connection, event: Event<'_>) -> Result<(), End> {
        if event.name == "down" { connection.disturb_predictions(event.now) } else { Ok(()) }
    }
}

/// `zwp_text_input_v3` and `zwp_text_input_v1`: what a field is for, and text that no key of a keyboard is.
pub(super) struct TextInput;

impl Handles for TextInput {
    fn sent(&self, connection: &mut Connection, asked: Asked<'_>) {
        connection.predict_field(asked.request.object, asked.desc.name, &asked.request.args);
    }

    fn ended(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        connection.predict_without_field(object);
        Ok(())
    }

    fn event(&self, connection: &mut Connection, event: Event<'_>) -> Result<(), End> {
        let composes = ["preedit_string", "commit_string", "delete_surrounding_text"].contains(&event.name);
        if composes { connection.disturb_predictions(event.now) } else { Ok(()) }
    }
}

/// `wp_cursor_shape_device_v1`.
pub(super) struct CursorShape;

impl Handles for CursorShape {
    /// A shape and a picture of a pointer take turns.
    fn claim(&self, connection: &Connection, asked: Asked<'_>, claim: &mut Claim) {
        let device = connection.objects.of(asked.request.object);
        let pointers = device.into_iter().flat_map(|device| &device.origin).map(|id| Key::Order(*id));
        claim.waits.extend(pointers.clone());
        claim.keeps.extend(pointers);
    }

    /// The compositor has no shapes: this side draws them.
    fn swallowed(&self, connection: &mut Connection, asked: Asked<'_>) -> Result<(), End> {
        let ("set_shape", [WireArg::Uint(serial), WireArg::Uint(shape)]) =
            (asked.desc.name, &asked.request.args[..])
        else {
            return Ok(());
        };
        let handler = |id: &WireId| connection.objects.of(*id).map(|object| object.handler);
        let shows = |id: &WireId| matches!(handler(id), Some(Handler::Pointer | Handler::TabletTool));
        let device = connection.objects.of(asked.request.object);
        match device.and_then(|device| device.origin.iter().copied().find(shows)) {
            Some(pointer) => connection.show_shape(pointer, *serial, *shape),
            None => Ok(()),
        }
    }
}

impl Connection {
    fn show_shape(&mut self, pointer: WireId, serial: u32, shape: u32) -> Result<(), End> {
        let Some(pointer_id) = self.objects.live(pointer) else { return Ok(()) };
        // wl_surface, version 3
        let scale = if self.globals.helpers.compositor_version >= 3 { self.state.cursors.scale() } else { 1 };
        let drawn = self.draw(shape, scale)?;
        let surface = match self.state.cursors.surface_on(pointer) {
            Some(surface) => surface,
            None => {
                let version = self.globals.helpers.compositor_version;
                let surface = self.objects.own(known("wl_surface"), version, Own::Helper)?;
                let args = vec![Arg::NewId(surface)];
                self.send(self.globals.helpers.compositor, ops::COMPOSITOR_CREATE_SURFACE, args)?;
                self.state.cursors.put(pointer, surface);
                surface
            }
        };
        let (x, y) = drawn.hotspot;
        // At most 4.
        let factor = scale.cast_signed();
        let mut args = vec![Arg::Uint(serial), Arg::Object(surface)];
        args.extend(ints(&[x / factor, y / factor]));
        self.send(pointer_id, self.set_cursor_opcode(pointer), args)?;
        if self.globals.helpers.compositor_version >= 3 {
            self.send(surface, ops::SURFACE_SET_BUFFER_SCALE, ints(&[factor]))?;
        }
        let args = vec![Arg::Object(drawn.buffer), Arg::Int(0), Arg::Int(0)];
        self.send(surface, ops::SURFACE_ATTACH, args)?;
        // Sides are at most some thousands.
        let (width, height) = (drawn.size.width() as i32, drawn.size.height() as i32);
        self.send(surface, ops::SURFACE_DAMAGE, ints(&[0, 0, width, height]))?;
        self.send(surface, ops::SURFACE_COMMIT, vec![])
    }

    fn set_cursor_opcode(&self, pointer: WireId) -> u16 {
        let interface = self.objects.of(pointer).map(|object| object.interface);
        interface.and_then(|interface| tables::request_opcode(interface, "set_cursor")).unwrap_or(0)
    }

    fn draw(&mut self, shape: u32, scale: u32) -> Result<Drawn, End> {
        if let Some(drawn) = self.state.cursors.drawn(shape, scale) {
            return Ok(drawn);
        }
        let image = self.state.cursors.draw(shape, scale);
        let buffer = self.make_static_buffer(image.size, Format::Argb8888, &image.pixels)?;
        let drawn = Drawn { buffer, size: image.size, hotspot: image.hotspot };
        self.state.cursors.keep(shape, scale, drawn);
        Ok(drawn)
    }

    /// A pointer is gone, and with it our surface on it.
    pub(super) fn forget_cursor(&mut self, pointer: WireId) -> Result<(), End> {
        if let Some(surface) = self.state.cursors.take(pointer) {
            self.send(surface, ops::SURFACE_DESTROY, vec![])?;
            self.objects.own_destroyed(surface);
        }
        Ok(())
    }
}
