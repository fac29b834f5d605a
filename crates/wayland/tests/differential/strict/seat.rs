//! The user's hands, the pointer's picture and the clipboard.

use std::collections::HashMap;

use wayferry_wayland::wire::Arg;

use super::surface::Role;
use super::{KEYMAP, Object, SERVER_IDS, Strict, Verdict, demand, file};
use crate::heard::{self, Heard};
use crate::operation::Deed;

#[derive(Default)]
pub(super) struct State {
    pointer: Option<u32>,
    keyboard: Option<u32>,
    /// Serial of the last time that the pointer entered a surface.
    entered: u32,
    /// Serials of buttons and keys.
    presses: Vec<u32>,
    time: u32,
    touches: Vec<i32>,
    sources: HashMap<u32, Vec<Vec<u8>>>,
    selection: Option<u32>,
}

impl State {
    pub(super) fn pressed(&self, serial: u32) -> bool {
        self.presses.contains(&serial)
    }
}

impl Strict {
    pub(super) fn on_seat(&mut self, id: u32, object: Object, request: &str, args: &[Arg]) -> Verdict {
        match (object.interface.name, request, args) {
            ("wl_seat", "get_keyboard", [Arg::NewId(new)]) => {
                let fd = file(0);
                rustix::io::pwrite(&fd, KEYMAP, 0).expect("written");
                self.event(*new, "keymap", vec![Arg::Uint(1), Arg::Fd(fd), Arg::Uint(KEYMAP.len() as u32)]);
                self.event(*new, "repeat_info", vec![Arg::Int(self.desk.repeat), Arg::Int(600)]);
            }
            (
                "wl_pointer",
                "set_cursor",
                &[Arg::Uint(serial), Arg::Object(surface), Arg::Int(x), Arg::Int(y)],
            ) => {
                if surface != 0 {
                    let surface = self.surfaces.get_mut(&surface).ok_or("no surface")?;
                    demand(matches!(surface.role, Role::None | Role::Cursor), "role: it has another")?;
                    surface.role = Role::Cursor;
                }
                self.look();
                if serial == self.seat.entered {
                    let index = self.surfaces.get(&surface).and_then(|surface| surface.index);
                    self.record.word(usize::MAX, "cursor", format!("{index:?} at {x}, {y}"));
                }
            }
            ("wl_data_device_manager", "create_data_source", [Arg::NewId(new)]) => {
                self.seat.sources.insert(*new, Vec::new());
            }
            ("wl_data_source", "offer", [Arg::Str(Some(mime))]) => {
                self.seat.sources.entry(id).or_default().push(mime.clone());
            }
            ("wl_data_source", "destroy", _) => {
                self.seat.sources.remove(&id);
                if self.seat.selection == Some(id) {
                    self.seat.selection = None;
                    self.record.word(usize::MAX, "selection", String::new());
                }
            }
            ("wl_data_device", "set_selection", &[Arg::Object(source), Arg::Uint(serial)])
                if self.seat.pressed(serial) =>
            {
                self.select(source);
            }
            _ => {}
        }
        Ok(())
    }

    fn select(&mut self, source: u32) {
        if let Some(old) = self.seat.selection.take().filter(|old| *old != source) {
            self.event(old, "cancelled", Vec::new());
            self.say(Heard::Cancelled, None);
        }
        self.seat.selection = (source != 0).then_some(source);
        let mimes = self.seat.sources.get(&source).cloned().unwrap_or_default().concat();
        self.record.word(usize::MAX, "selection", String::from_utf8_lossy(&mimes).into_owned());
    }

    /// Another program copied something.
    pub(crate) fn copied(&mut self, mime: &[u8]) {
        self.select(0);
        for device in self.named("wl_data_device") {
            let id = self.next_server_id;
            self.next_server_id += 1;
            debug_assert!(id >= SERVER_IDS);
            self.event(device, "data_offer", vec![Arg::NewId(id)]);
            let version = self.objects[&device].version;
            self.objects.insert(id, Object { interface: super::interface("wl_data_offer"), version, of: 0 });
            self.event(id, "offer", vec![Arg::Str(Some(mime.to_vec()))]);
            self.event(device, "selection", vec![Arg::Object(id)]);
            self.say(Heard::Selection(Some(mime.to_vec())), None);
        }
    }

    /// A surface is gone, and with it the focus.
    pub(super) fn forget_focus(&mut self, id: u32) {
        self.seat.pointer = self.seat.pointer.filter(|focus| *focus != id);
        self.seat.keyboard = self.seat.keyboard.filter(|focus| *focus != id);
    }

    /// The pointer goes into a window, by the order of its surface's creation, and a button is pressed there.
    pub(crate) fn press(&mut self, index: usize) -> bool {
        let found = self.surfaces.iter().find(|(_, surface)| surface.index == Some(index));
        let Some(id) = found.map(|(id, _)| *id).filter(|id| self.is_window(*id)) else { return false };
        self.point_at(Some(id));
        self.button(true);
        self.button(false);
        true
    }

    /// The user does something.
    pub(crate) fn act(&mut self, deed: Deed) {
        match deed {
            Deed::KeyFocus(which) => self.type_into(self.window(which)),
            Deed::Key(key, down) => {
                if self.seat.keyboard.is_some() {
                    let serial = self.press_serial();
                    let numbers = [u32::from(key) + 30, u32::from(down)].map(Arg::Uint);
                    let time = self.time();
                    self.hand("wl_keyboard", "key", [serial, time].into_iter().chain(numbers).collect());
                }
            }
            Deed::PointerFocus(which) => self.point_at(self.window(which)),
            Deed::Motion(x, y) => {
                let at = [x, y].map(|at| Arg::Fixed(i32::from(at) * 64));
                let time = self.time();
                self.point("motion", [time].into_iter().chain(at).collect());
            }
            Deed::Button(down) => self.button(down),
            Deed::Axis(by) => {
                let time = self.time();
                self.point("axis", vec![time, Arg::Uint(0), Arg::Fixed(i32::from(by) * 256)]);
            }
            Deed::Touch(which, down) => self.touch(which, down),
        }
    }

    fn touch(&mut self, which: u8, down: bool) {
        let finger = i32::from(which % 3);
        let serial = Arg::Uint(self.next_serial());
        let time = self.time();
        match (down, self.seat.touches.iter().position(|touch| *touch == finger)) {
            (true, None) => {
                let Some(window) = self.window(which) else { return };
                self.seat.touches.push(finger);
                let args =
                    vec![serial, time, Arg::Object(window), Arg::Int(finger), Arg::Fixed(0), Arg::Fixed(0)];
                self.hand("wl_touch", "down", args);
            }
            (false, Some(found)) => {
                self.seat.touches.remove(found);
                self.hand("wl_touch", "up", vec![serial, time, Arg::Int(finger)]);
            }
            _ => return,
        }
        self.hand("wl_touch", "frame", Vec::new());
    }

    fn button(&mut self, down: bool) {
        if self.seat.pointer.is_some() {
            let serial = self.press_serial();
            let time = self.time();
            self.point("button", vec![serial, time, Arg::Uint(0x110), Arg::Uint(u32::from(down))]);
        }
    }

    fn press_serial(&mut self) -> Arg {
        let serial = self.next_serial();
        self.seat.presses.push(serial);
        Arg::Uint(serial)
    }

    fn time(&mut self) -> Arg {
        self.seat.time += 1;
        Arg::Uint(self.seat.time)
    }

    fn point(&mut self, event: &'static str, args: Vec<Arg>) {
        if self.seat.pointer.is_some() {
            self.hand("wl_pointer", event, args);
            self.hand("wl_pointer", "frame", Vec::new());
        }
    }

    fn point_at(&mut self, to: Option<u32>) {
        if self.seat.pointer == to {
            return;
        }
        if let Some(old) = self.seat.pointer {
            let serial = Arg::Uint(self.next_serial());
            self.hand("wl_pointer", "leave", vec![serial, Arg::Object(old)]);
            self.hand("wl_pointer", "frame", Vec::new());
        }
        self.seat.pointer = to;
        if let Some(new) = to {
            self.seat.entered = self.next_serial();
            let serial = Arg::Uint(self.seat.entered);
            self.point("enter", vec![serial, Arg::Object(new), Arg::Fixed(0), Arg::Fixed(256)]);
        }
    }

    fn type_into(&mut self, to: Option<u32>) {
        if self.seat.keyboard == to {
            return;
        }
        if let Some(old) = self.seat.keyboard {
            let serial = Arg::Uint(self.next_serial());
            self.hand("wl_keyboard", "leave", vec![serial, Arg::Object(old)]);
        }
        self.seat.keyboard = to;
        if let Some(new) = to {
            let serial = Arg::Uint(self.next_serial());
            self.hand("wl_keyboard", "enter", vec![serial, Arg::Object(new), Arg::Array(Vec::new())]);
            let serial = Arg::Uint(self.next_serial());
            let state = [1, 0, 0, 0].map(Arg::Uint);
            self.hand("wl_keyboard", "modifiers", [serial].into_iter().chain(state).collect());
        }
    }

    /// One of the windows that are shown.
    fn window(&self, which: u8) -> Option<u32> {
        let mut windows: Vec<_> = self
            .surfaces
            .iter()
            .filter(|(id, _)| self.is_window(**id))
            .map(|(id, s)| (s.index, *id))
            .collect();
        windows.sort_unstable();
        (!windows.is_empty()).then(|| windows[usize::from(which) % windows.len()].1)
    }

    fn is_window(&self, id: u32) -> bool {
        let shell = self.surfaces.get(&id).and_then(|surface| self.shells.get(&surface.shell?));
        shell.is_some_and(|shell| shell.is_shown() && shell.popup.is_none())
    }

    /// Sends an event of an input device.
    fn hand(&mut self, device: &'static str, event: &'static str, args: Vec<Arg>) {
        let index = |id: u32| self.surfaces.get(&id).and_then(|surface| surface.index);
        let named = args.iter().find_map(|arg| if let Arg::Object(id) = arg { index(*id) } else { None });
        let focus = match device {
            "wl_pointer" => self.seat.pointer,
            "wl_keyboard" => self.seat.keyboard,
            _ => None,
        };
        let to = named.or(focus.and_then(index));
        let skip = heard::input_event(device, event).expect("an event of a device");
        let numbers = heard::numbers(&args, skip);
        let Some(id) = self.named(device).into_iter().next() else { return };
        self.event(id, event, args);
        self.say(Heard::Input { device, event, surface: named, numbers }, to);
    }
}
