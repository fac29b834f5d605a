//! Outputs, seats and formats, answered from the snapshot of the attached display.
//!
//! The display side consumes these events of the compositor; here is the only place that sends them. Invariant: what
//! a program was told last equals the snapshot, once its blobs are here.

use std::collections::HashMap;
use std::time::Duration;

use wayferry_pixels::Format;
use wayferry_proto::Time;

use crate::message::ToDisplay;
use crate::snapshot::{Mode, Output, Seat};
use crate::wire::Arg;

use super::beat::Beat;
use super::connection::Connection;
use super::fault::Fault;
use super::keyboard::Keyboard;
use super::object::Data;

/// Time between frames when no output says: 60 Hz.
const DEFAULT_PERIOD: Duration = Duration::from_nanos(16_666_667);
/// What leaves at a tick arrives this part of a period after the compositor has begun a frame. What is drawn at once then is
/// there well before the next, however much the link trembles, and is not shown later for it.
const LEAD: u32 = 4;
/// Refresh rates outside are not believed, mHz.
const REFRESH: std::ops::RangeInclusive<i32> = 10_000..=500_000;

/// What a program has been told of outputs and seats, by their registry names towards it.
#[derive(Debug, Default)]
pub(super) struct Known {
    outputs: HashMap<u32, Output>,
    seats: HashMap<u32, Seat>,
    /// The version of the display's `xdg_wm_base`.
    pub(super) shell: u32,
}

impl Connection {
    /// What the program knows by the snapshot that is here.
    pub(super) fn known(&self) -> Known {
        let outputs = self.slots.outputs().iter().map(|slot| (slot.name, self.output_in(slot.name)));
        let seats = self.slots.seats().iter().map(|slot| (slot.name, self.seat_in(slot.name).cloned()));
        Known {
            outputs: outputs.collect(),
            seats: seats.filter_map(|(name, seat)| Some((name, seat?))).collect(),
            shell: self.version_there("xdg_wm_base"),
        }
    }

    /// Tells the program what differs from what it knows.
    pub(super) fn update_desk(&mut self, known: &Known) -> Result<(), Fault> {
        // The `done` of the former ends what the latter tells.
        for interface in ["zxdg_output_v1", "wl_output"] {
            for id in self.objects.living(interface) {
                let Some(name) = self.output_name(id) else { continue };
                if known.outputs.get(&name).is_some_and(|old| *old == self.output_in(name)) {
                    continue;
                }
                match interface {
                    "wl_output" => self.tell_output(id)?,
                    _ => self.tell_xdg_output(id)?,
                }
            }
        }
        for id in self.objects.living("wl_seat") {
            let old = self.seat_name(id).and_then(|name| known.seats.get(&name));
            let capabilities = self.seat_of(id).map(|seat| seat.capabilities);
            if capabilities != old.map(|seat| seat.capabilities) {
                self.tell_capabilities(id)?;
            }
        }
        let keyboards: Vec<u32> = self.keyboards.keys().copied().collect();
        keyboards.into_iter().try_for_each(|id| self.tell_repeat(id))?;
        self.tell_scales()?;
        self.tell_keymaps()
    }

    /// The clock that programs draw by: the fastest output's.
    pub(super) fn beat(&self) -> Beat {
        self.pacing.beat(self.period())
    }

    /// The compositor wanted frames at this time of the display side's clock.
    pub(super) fn on_beat(&mut self, time_ns: u64) {
        let ours = self.desk.clock.ours_from_nanos(time_ns).saturating_sub(self.config.clock_start.0);
        let period = self.period();
        self.pacing.lean(period, Time::from_nanos(ours) + period / LEAD);
    }

    /// Time between frames.
    pub(super) fn period(&self) -> Duration {
        let modes = self.desk.snapshot.outputs.iter().flat_map(|output| &output.modes);
        let current = modes.filter(|mode| mode.flags & 1 != 0 && REFRESH.contains(&mode.refresh));
        let fastest = current.map(|mode| mode.refresh.unsigned_abs()).max();
        fastest.map_or(DEFAULT_PERIOD, |mhz| Duration::from_nanos(1_000_000_000_000 / u64::from(mhz)))
    }

    /// The scale of an output of the program.
    pub(super) fn output_scale(&self, id: u32) -> Option<i32> {
        self.output_name(id).map(|name| self.output_in(name).scale)
    }

    fn output_name(&self, id: u32) -> Option<u32> {
        match self.objects.of(id)?.data {
            Data::Output(name) | Data::XdgOutput(name) => Some(name),
            _ => None,
        }
    }

    /// The output of that name towards the program, or something to believe in while there is none.
    fn output_in(&self, name: u32) -> Output {
        let outputs = &self.desk.snapshot.outputs;
        let global = self.slots.output(name);
        outputs.iter().find(|output| Some(output.global) == global).cloned().unwrap_or_else(stand_in)
    }

    fn seat_name(&self, id: u32) -> Option<u32> {
        match self.objects.of(id)?.data {
            Data::Seat(name) => Some(name),
            _ => None,
        }
    }

    /// The seat of that name towards the program.
    pub(super) fn seat_in(&self, name: u32) -> Option<&Seat> {
        let global = self.slots.seat(name)?;
        self.desk.snapshot.seats.iter().find(|seat| seat.global == global)
    }

    fn seat_of(&self, id: u32) -> Option<&Seat> {
        self.seat_in(self.seat_name(id)?)
    }

    pub(super) fn tell_formats(&mut self, id: u32) -> Result<(), Fault> {
        for format in Format::ALL {
            self.emit(id, "format", vec![Arg::Uint(format.to_wl_shm())])?;
        }
        Ok(())
    }

    pub(super) fn tell_output(&mut self, id: u32) -> Result<(), Fault> {
        let Some(output) = self.output_name(id).map(|name| self.output_in(name)) else { return Ok(()) };
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
        if let (Some(name), Some(object)) = (self.output_name(output), self.objects.of_mut(id)) {
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
        let Some(output) = self.output_name(id).map(|name| self.output_in(name)) else { return Ok(()) };
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
        let Some(seat) = self.seat_name(seat) else { return Ok(()) };
        self.keyboards.insert(id, Keyboard::new(seat));
        self.tell_repeat(id)?;
        self.tell_keymaps()
    }

    /// Sends a keyboard the repeat rate of its seat, unless it has that.
    fn tell_repeat(&mut self, id: u32) -> Result<(), Fault> {
        let Some(keyboard) = self.keyboards.get(&id) else { return Ok(()) };
        let repeat = self.seat_in(keyboard.seat).and_then(|seat| seat.repeat);
        let Some((rate, delay)) = repeat.filter(|_| repeat != keyboard.repeat) else { return Ok(()) };
        if let Some(keyboard) = self.keyboards.get_mut(&id) {
            keyboard.repeat = repeat;
        }
        self.emit(id, "repeat_info", vec![Arg::Int(rate), Arg::Int(delay)])
    }

    /// Sends the seat's keymap to keyboards that have none yet, once it is here.
    pub(super) fn tell_keymaps(&mut self) -> Result<(), Fault> {
        let without: Vec<_> =
            self.keyboards.iter().filter(|(_, k)| k.keymap.is_none()).map(|(id, k)| (*id, k.seat)).collect();
        for (id, seat) in without {
            let Some(keymap) = self.seat_in(seat).and_then(|seat| seat.keymap) else { continue };
            let Some(blob) = self.blobs.of(keymap.hash).cloned() else { continue };
            let fd = super::keyboard::sealed_memfd(&blob).map_err(|_| Fault::TooMuch("memory files"))?;
            self.emit(id, "keymap", vec![Arg::Uint(keymap.format), Arg::Fd(fd), Arg::Uint(keymap.length)])?;
            if let Some(keyboard) = self.keyboards.get_mut(&id) {
                keyboard.keymap = Some(keymap.hash);
            }
            self.confirm_keymap(id, keymap.hash);
        }
        Ok(())
    }

    /// Tells the display side that the program has a keymap.
    fn confirm_keymap(&mut self, id: u32, hash: u128) {
        if let Some(keyboard) = self.wire(id) {
            self.send(&ToDisplay::KeymapTold { keyboard, hash });
        }
    }

    /// Another display is there: keyboards keep the keymap that they have if its seat has the same.
    pub(super) fn compare_keymaps(&mut self) {
        let keyboards: Vec<_> = self.keyboards.iter().map(|(id, k)| (*id, k.seat, k.keymap)).collect();
        for (id, seat, told) in keyboards {
            let keymap = self.seat_in(seat).and_then(|seat| seat.keymap).map(|keymap| keymap.hash);
            match told.filter(|_| told == keymap) {
                Some(hash) => self.confirm_keymap(id, hash),
                None => {
                    if let Some(keyboard) = self.keyboards.get_mut(&id).filter(|_| keymap.is_some()) {
                        keyboard.keymap = None;
                    }
                }
            }
        }
    }
}

/// An output for programs that come before any display, or while it has none: many end without.
fn stand_in() -> Output {
    let mode = Mode { flags: 1, width: 1920, height: 1080, refresh: 60_000 };
    Output {
        scale: 1,
        modes: vec![mode],
        logical: (0, 0, mode.width, mode.height),
        make: "wayferry".to_owned(),
        model: "none".to_owned(),
        name: "NONE-1".to_owned(),
        ..Output::default()
    }
}

pub(super) fn text(text: &str) -> Arg {
    Arg::Str(Some(text.as_bytes().iter().copied().filter(|byte| *byte != 0).collect()))
}
