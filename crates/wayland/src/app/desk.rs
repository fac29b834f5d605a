//! Outputs, seats and formats, answered from the snapshot of the attached display.
//!
//! The display side consumes these events of the compositor; here is the only place that sends them. Invariant: what
//! a program was told last equals the snapshot, once its blobs are here.

use std::time::Duration;

use wayferry_pixels::Format;

use crate::message::ToDisplay;
use crate::snapshot::{Output, Seat, Snapshot};
use crate::wire::Arg;

use super::keyboard::Keyboard;
use super::object::Data;
use super::{Connection, Fault};

/// Time between frames when no output says: 60 Hz.
const DEFAULT_PERIOD: Duration = Duration::from_nanos(16_666_667);
/// Refresh rates outside are not believed, mHz.
const REFRESH: std::ops::RangeInclusive<i32> = 10_000..=500_000;

impl Connection {
    /// Tells the program what differs from `old`.
    pub(super) fn update_desk(&mut self, old: &Snapshot) -> Result<(), Fault> {
        self.update_offers()?;
        for id in self.objects.living("wl_output") {
            let changed = self.output_of(id).is_some_and(|output| !old.outputs.contains(output));
            if changed {
                self.tell_output(id)?;
            }
        }
        for id in self.objects.living("zxdg_output_v1") {
            let changed = self.output_of(id).is_some_and(|output| !old.outputs.contains(output));
            if changed {
                self.tell_xdg_output(id)?;
            }
        }
        for id in self.objects.living("wl_seat") {
            let old =
                self.seat_of(id).and_then(|seat| old.seats.iter().find(|old| old.global == seat.global));
            let same = self.seat_of(id).map(|seat| seat.capabilities) == old.map(|seat| seat.capabilities);
            if !same {
                self.tell_capabilities(id)?;
            }
        }
        self.tell_keymaps()
    }

    /// Time between frames: the fastest output's.
    pub(super) fn period(&self) -> Duration {
        let modes = self.desk.snapshot.outputs.iter().flat_map(|output| &output.modes);
        let current = modes.filter(|mode| mode.flags & 1 != 0 && REFRESH.contains(&mode.refresh));
        let fastest = current.map(|mode| mode.refresh.unsigned_abs()).max();
        fastest.map_or(DEFAULT_PERIOD, |mhz| Duration::from_nanos(1_000_000_000_000 / u64::from(mhz)))
    }

    fn output_of(&self, id: u32) -> Option<&Output> {
        let (Data::Output(global) | Data::XdgOutput(global)) = self.objects.of(id)?.data else { return None };
        self.desk.snapshot.outputs.iter().find(|output| output.global == global)
    }

    fn seat_of(&self, id: u32) -> Option<&Seat> {
        let Data::Seat(global) = self.objects.of(id)?.data else { return None };
        self.desk.snapshot.seats.iter().find(|seat| Some(seat.global) == global)
    }

    pub(super) fn tell_formats(&mut self, id: u32) -> Result<(), Fault> {
        for format in Format::ALL {
            self.emit(id, "format", vec![Arg::Uint(format.to_wl_shm())])?;
        }
        Ok(())
    }

    pub(super) fn tell_output(&mut self, id: u32) -> Result<(), Fault> {
        let Some(output) = self.output_of(id).cloned() else { return Ok(()) };
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
        let global = match self.objects.of(output).map(|object| &object.data) {
            Some(Data::Output(global)) => Some(*global),
            _ => None,
        };
        if let (Some(global), Some(object)) = (global, self.objects.of_mut(id)) {
            object.data = Data::XdgOutput(global);
        }
        self.tell_xdg_output(id)?;
        // From version 3 on, wl_output.done ends the burst.
        match self.objects.of(id) {
            Some(object) if object.version >= 3 => self.emit(output, "done", Vec::new()),
            _ => Ok(()),
        }
    }

    fn tell_xdg_output(&mut self, id: u32) -> Result<(), Fault> {
        let Some(output) = self.output_of(id).cloned() else { return Ok(()) };
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
        let Some(&Data::Seat(global)) = self.objects.of(seat).map(|object| &object.data) else {
            return Ok(());
        };
        self.keyboards.insert(id, Keyboard::new(global));
        if let Some((rate, delay)) = self.seat_of(seat).and_then(|seat| seat.repeat) {
            self.emit(id, "repeat_info", vec![Arg::Int(rate), Arg::Int(delay)])?;
        }
        self.tell_keymaps()
    }

    /// Sends the seat's keymap to keyboards that have none yet, once it is here.
    pub(super) fn tell_keymaps(&mut self) -> Result<(), Fault> {
        let without: Vec<_> =
            self.keyboards.iter().filter(|(_, k)| k.keymap.is_none()).map(|(id, k)| (*id, k.seat)).collect();
        for (id, seat) in without {
            let seat = self.desk.snapshot.seats.iter().find(|s| Some(s.global) == seat);
            let Some(keymap) = seat.and_then(|seat| seat.keymap) else { continue };
            let Some(blob) = self.blobs.of(keymap.hash).cloned() else { continue };
            let Some(wire) = self.wire(id) else { continue };
            let fd = super::keyboard::sealed_memfd(&blob).map_err(|_| Fault::TooMuch("memory files"))?;
            self.emit(id, "keymap", vec![Arg::Uint(keymap.format), Arg::Fd(fd), Arg::Uint(keymap.length)])?;
            if let Some(keyboard) = self.keyboards.get_mut(&id) {
                keyboard.keymap = Some(keymap.hash);
            }
            self.send(&ToDisplay::KeymapTold { keyboard: wire, hash: keymap.hash });
        }
        Ok(())
    }
}

pub(super) fn text(text: &str) -> Arg {
    Arg::Str(Some(text.as_bytes().iter().copied().filter(|byte| *byte != 0).collect()))
}
