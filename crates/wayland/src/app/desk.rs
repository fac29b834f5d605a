//! Outputs, seats and formats, answered from the snapshot of the attached display.
//!
//! The display side consumes these events of the compositor; here is the only place that sends them. Invariant: what
//! a program was told last equals the snapshot, once its blobs are here.

use wayferry_pixels::Format;
use wayferry_proto::Time;

use crate::message::ToDisplay;
use crate::snapshot::Seat;
use crate::wire::Arg;

use super::beat::Beat;
use super::connection::Connection;
use super::fault::Fault;
use super::keyboard::Keyboard;
use super::object::Data;
use super::offering::Known;

/// What leaves at a tick arrives this part of a period after the compositor has begun a frame. What is drawn at once
/// then is there well before the next, however much the link trembles, and is not shown later for it.
const LEAD: u32 = 4;
impl Connection {
    /// Tells the program what differs from what it knows.
    pub(super) fn update_desk(&mut self, known: &Known) -> Result<(), Fault> {
        // The `done` of the former ends what the latter tells.
        for interface in ["zxdg_output_v1", "wl_output"] {
            for id in self.objects.living(interface) {
                let Some(name) = self.objects.output_name(id) else { continue };
                if known.outputs.get(&name).is_some_and(|old| *old == self.offering.output(name)) {
                    continue;
                }
                match interface {
                    "wl_output" => self.tell_output(id)?,
                    _ => self.tell_xdg_output(id)?,
                }
            }
        }
        for id in self.objects.living("wl_seat") {
            let old = self.objects.seat_name(id).and_then(|name| known.seats.get(&name));
            let capabilities = self.seat_of(id).map(|seat| seat.capabilities);
            if capabilities != old.map(|seat| seat.capabilities) {
                self.tell_capabilities(id)?;
            }
        }
        let keyboards: Vec<u32> = self.devices.keyboards().map(|(id, _)| id).collect();
        keyboards.into_iter().try_for_each(|id| self.tell_repeat(id))?;
        self.tell_scales()?;
        self.tell_keymaps()
    }

    /// The clock that programs draw by: the fastest output's.
    pub(super) fn beat(&self) -> Beat {
        self.pacing.beat(self.offering.period())
    }

    /// The compositor wanted frames at this time of the display side's clock.
    pub(super) fn on_beat(&mut self, time_ns: u64) {
        let ours =
            self.offering.desk().clock.ours_from_nanos(time_ns).saturating_sub(self.config.clock_start.0);
        let period = self.offering.period();
        self.pacing.lean(period, Time::from_nanos(ours) + period / LEAD);
    }

    /// The scale of an output of the program.
    pub(super) fn output_scale(&self, id: u32) -> Option<i32> {
        self.objects.output_name(id).map(|name| self.offering.output(name).scale)
    }

    fn seat_of(&self, id: u32) -> Option<&Seat> {
        self.offering.seat(self.objects.seat_name(id)?)
    }

    pub(super) fn tell_formats(&mut self, id: u32) -> Result<(), Fault> {
        for format in Format::ALL {
            self.emit(id, "format", vec![Arg::Uint(format.to_wl_shm())])?;
        }
        Ok(())
    }

    pub(super) fn tell_output(&mut self, id: u32) -> Result<(), Fault> {
        let Some(output) = self.objects.output_name(id).map(|name| self.offering.output(name)) else {
            return Ok(());
        };
        let geometry = vec![
            Arg::Int(output.position.0),
            Arg::Int(output.position.1),
            Arg::Int(output.physical.0),
            Arg::Int(output.physical.1),
            Arg::Int(output.subpixel),
            text(&output.make),
            text(&output.model),
            Arg::Int(output.transform),
        ];
        self.emit(id, "geometry", geometry)?;
        for mode in &output.modes {
            let size = [Arg::Int(mode.width), Arg::Int(mode.height), Arg::Int(mode.refresh)];
            self.emit(id, "mode", std::iter::once(Arg::Uint(mode.flags)).chain(size).collect())?;
        }
        self.emit(id, "scale", vec![Arg::Int(output.scale.max(1))])?;
        self.emit(id, "name", vec![text(&output.name)])?;
        self.emit(id, "description", vec![text(&output.description)])?;
        self.emit(id, "done", Vec::new())
    }

    /// `zxdg_output_manager_v1.get_xdg_output`.
    pub(super) fn get_xdg_output(&mut self, id: u32, output: u32) -> Result<(), Fault> {
        if let (Some(name), Some(object)) = (self.objects.output_name(output), self.objects.of_mut(id)) {
            object.data = Data::XdgOutput(name);
        }
        self.tell_xdg_output(id)?;
        // From version 3 on, wl_output.done ends the burst.
        match self.objects.of(id) {
            Some(object) if object.version >= 3 => self.emit(output, "done", Vec::new()),
            _ => Ok(()),
        }
    }

    fn tell_xdg_output(&mut self, id: u32) -> Result<(), Fault> {
        let Some(output) = self.objects.output_name(id).map(|name| self.offering.output(name)) else {
            return Ok(());
        };
        let (x, y, width, height) = output.logical;
        self.emit(id, "logical_position", vec![Arg::Int(x), Arg::Int(y)])?;
        self.emit(id, "logical_size", vec![Arg::Int(width), Arg::Int(height)])?;
        self.emit(id, "name", vec![text(&output.name)])?;
        self.emit(id, "description", vec![text(&output.description)])?;
        match self.objects.of(id) {
            Some(object) if object.version < 3 => self.emit(id, "done", Vec::new()),
            _ => Ok(()),
        }
    }

    pub(super) fn tell_seat(&mut self, id: u32) -> Result<(), Fault> {
        let name = self.seat_of(id).map_or_else(|| "seat0".to_owned(), |seat| seat.name.clone());
        self.tell_capabilities(id)?;
        self.emit(id, "name", vec![text(&name)])
    }

    fn tell_capabilities(&mut self, id: u32) -> Result<(), Fault> {
        let capabilities = self.seat_of(id).map_or(0, |seat| seat.capabilities);
        self.emit(id, "capabilities", vec![Arg::Uint(capabilities)])
    }

    /// `wl_seat.get_keyboard`, after it was forwarded: the program gets its keymap without waiting for the display.
    pub(super) fn get_keyboard(&mut self, id: u32, seat: u32) -> Result<(), Fault> {
        let Some(seat) = self.objects.seat_name(seat) else { return Ok(()) };
        self.devices.add_keyboard(id, Keyboard::new(seat));
        self.tell_repeat(id)?;
        self.tell_keymaps()
    }

    /// Sends a keyboard the repeat rate of its seat, unless it has that.
    fn tell_repeat(&mut self, id: u32) -> Result<(), Fault> {
        let Some(keyboard) = self.devices.keyboard(id) else { return Ok(()) };
        let repeat = self.offering.seat(keyboard.seat).and_then(|seat| seat.repeat);
        let Some((rate, delay)) = repeat.filter(|_| repeat != keyboard.repeat) else { return Ok(()) };
        if let Some(keyboard) = self.devices.keyboard_mut(id) {
            keyboard.repeat = repeat;
        }
        self.emit(id, "repeat_info", vec![Arg::Int(rate), Arg::Int(delay)])
    }

    /// Sends the seat's keymap to keyboards that have none yet, once it is here.
    pub(super) fn tell_keymaps(&mut self) -> Result<(), Fault> {
        let without: Vec<_> = self
            .devices
            .keyboards()
            .filter(|(_, k)| k.keymap.is_none())
            .map(|(id, k)| (id, k.seat))
            .collect();
        for (id, seat) in without {
            let Some(keymap) = self.offering.seat(seat).and_then(|seat| seat.keymap) else { continue };
            let Some(blob) = self.line.blob(keymap.hash).cloned() else { continue };
            let fd = super::keyboard::sealed_memfd(&blob).map_err(|_| Fault::TooMuch("memory files"))?;
            self.emit(id, "keymap", vec![Arg::Uint(keymap.format), Arg::Fd(fd), Arg::Uint(keymap.length)])?;
            if let Some(keyboard) = self.devices.keyboard_mut(id) {
                keyboard.keymap = Some(keymap.hash);
            }
            self.confirm_keymap(id, keymap.hash);
        }
        Ok(())
    }

    /// Tells the display side that the program has a keymap.
    fn confirm_keymap(&mut self, id: u32, hash: u128) {
        if let Some(keyboard) = self.objects.wire(id) {
            self.send(&ToDisplay::KeymapKnown { keyboard, hash });
        }
    }

    /// Another display is there: keyboards keep the keymap that they have if its seat has the same.
    pub(super) fn compare_keymaps(&mut self) {
        let keyboards: Vec<_> = self.devices.keyboards().map(|(id, k)| (id, k.seat, k.keymap)).collect();
        for (id, seat, told) in keyboards {
            let keymap = self.offering.seat(seat).and_then(|seat| seat.keymap).map(|keymap| keymap.hash);
            match told.filter(|_| told == keymap) {
                Some(hash) => self.confirm_keymap(id, hash),
                None => {
                    if let Some(keyboard) = self.devices.keyboard_mut(id).filter(|_| keymap.is_some()) {
                        keyboard.keymap = None;
                    }
                }
            }
        }
    }
}

pub(super) fn text(text: &str) -> Arg {
    Arg::Str(Some(text.as_bytes().iter().copied().filter(|byte| *byte != 0).collect()))
}
