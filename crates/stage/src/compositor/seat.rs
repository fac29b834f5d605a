//! `wl_seat`: one keyboard with an embedded keymap, one pointer.
//!
//! Focus is a surface; every keyboard or pointer object of that surface's client gets the events. A pressed
//! button holds the pointer on its surface. A click outside of grabbing popups sends them away.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use wayland_server::backend::ClientId;
use wayland_server::protocol::{wl_keyboard, wl_pointer, wl_seat};
use wayland_server::{Client, DataInit, Dispatch, DisplayHandle, GlobalDispatch, New, Resource};

use super::event::{Role, StageEvent, SurfaceId};
use super::state::{State, number};

/// See the module.
pub(crate) struct Seat {
    keyboards: Vec<wl_keyboard::WlKeyboard>,
    pointers: Vec<wl_pointer::WlPointer>,
    keymap: Option<OwnedFd>,
    pub(crate) focus: Option<SurfaceId>,
    pub(crate) pointer_focus: Option<SurfaceId>,
    /// The pointer on the output, logical pixels.
    pub(crate) position: (f64, f64),
    pub(crate) grabs: Vec<SurfaceId>,
    pub(crate) cursor: Option<(SurfaceId, (i32, i32))>,
    keys: Vec<u32>,
    buttons: Vec<u32>,
    caps: bool,
    enter_serial: u32,
}

impl Seat {
    pub(crate) fn new() -> Seat {
        Seat {
            keyboards: Vec::new(),
            pointers: Vec::new(),
            keymap: keymap_file().ok(),
            focus: None,
            pointer_focus: None,
            position: (-1.0, -1.0),
            grabs: Vec::new(),
            cursor: None,
            keys: Vec::new(),
            buttons: Vec::new(),
            caps: false,
            enter_serial: 0,
        }
    }

    /// Depressed and locked modifiers, as the keymap numbers them.
    fn modifiers(&self) -> (u32, u32) {
        let held = self.keys.iter().fold(0, |held, key| held | modifier(*key));
        (held & !LOCK, if self.caps { LOCK } else { 0 })
    }

    pub(crate) fn button_is_down(&self) -> bool {
        !self.buttons.is_empty()
    }

    /// Forgets that buttons are down, as when a drag takes the pointer over.
    pub(crate) fn take_buttons(&mut self) {
        self.buttons.clear();
    }
}

impl State {
    fn keyboards_of(&self, id: Option<SurfaceId>) -> Vec<wl_keyboard::WlKeyboard> {
        let Some(surface) = id.and_then(|id| self.surface(id)) else { return Vec::new() };
        let client = surface.resource.client();
        self.seat.keyboards.iter().filter(|keyboard| keyboard.client() == client).cloned().collect()
    }

    fn pointers_of(&self, id: Option<SurfaceId>) -> Vec<wl_pointer::WlPointer> {
        let Some(surface) = id.and_then(|id| self.surface(id)) else { return Vec::new() };
        let client = surface.resource.client();
        self.seat.pointers.iter().filter(|pointer| pointer.client() == client).cloned().collect()
    }

    /// Moves the keyboard focus.
    pub(crate) fn focus(&mut self, to: Option<SurfaceId>) {
        let to = to.filter(|id| self.surfaces.contains_key(id));
        if self.seat.focus == to {
            return;
        }
        let from = self.seat.focus;
        let serial = self.next_serial();
        if let Some(surface) = from.and_then(|id| self.surface(id)) {
            for keyboard in self.keyboards_of(from) {
                keyboard.leave(serial, &surface.resource);
            }
        }
        self.move_text_focus(false);
        self.seat.focus = to;
        self.offer_selections();
        for keyboard in self.keyboards_of(to) {
            self.enter_keyboard(&keyboard);
        }
        self.move_text_focus(true);
        self.activate(to.map(|id| self.window_of(id)));
        self.log.push(StageEvent::KeyboardFocus { surface: to });
    }

    /// The window under a chain of popups.
    fn window_of(&self, id: SurfaceId) -> SurfaceId {
        let parent = self.xdg(id).and_then(|xdg| xdg.popup()).and_then(|popup| popup.parent);
        parent.map_or(id, |parent| self.window_of(parent))
    }

    fn enter_keyboard(&mut self, keyboard: &wl_keyboard::WlKeyboard) {
        let serial = self.next_serial();
        let Some(surface) = self.seat.focus.and_then(|id| self.surface(id)) else { return };
        let keys = self.seat.keys.iter().flat_map(|key| key.to_ne_bytes()).collect();
        keyboard.enter(serial, &surface.resource, keys);
        let (depressed, locked) = self.seat.modifiers();
        keyboard.modifiers(serial, depressed, 0, locked, 0);
    }

    /// Presses or releases a key (evdev code); the serial of the event.
    pub(crate) fn key(&mut self, code: u32, pressed: bool) -> u32 {
        let serial = self.next_serial();
        let before = self.seat.modifiers();
        self.seat.keys.retain(|key| *key != code);
        if pressed {
            self.seat.keys.push(code);
            if code == CAPS_LOCK {
                self.seat.caps = !self.seat.caps;
            }
        }
        let after = self.seat.modifiers();
        let (focus, time) = (self.seat.focus, self.millis());
        let state = if pressed { wl_keyboard::KeyState::Pressed } else { wl_keyboard::KeyState::Released };
        self.log.push(StageEvent::Key { surface: focus, code, pressed, serial });
        for keyboard in self.keyboards_of(focus) {
            keyboard.key(serial, time, code, state);
            if before != after {
                keyboard.modifiers(serial, after.0, 0, after.1, 0);
            }
        }
        serial
    }

    /// Moves the pointer on the output.
    pub(crate) fn motion(&mut self, x: f64, y: f64) {
        self.seat.position = (x, y);
        if self.data.drag.is_some() {
            self.drag_motion();
            return;
        }
        let before = self.seat.pointer_focus;
        self.update_pointer_focus();
        if self.seat.pointer_focus != before {
            return;
        }
        let Some(focus) = before else { return };
        let (local, time) = (self.pointer_on(focus), self.millis());
        for pointer in self.pointers_of(before) {
            pointer.motion(time, local.0, local.1);
            frame(&pointer);
        }
    }

    /// The pointer's position in a surface's coordinates.
    pub(crate) fn pointer_on(&self, id: SurfaceId) -> (f64, f64) {
        let (mut x, mut y) = self.seat.position;
        let mut at = id;
        while let Some(sub) = self.surface(at).and_then(|surface| surface.subsurface.as_ref()) {
            (x, y) = (x - f64::from(sub.position.0), y - f64::from(sub.position.1));
            at = sub.parent;
        }
        let (origin, geometry) = (self.window_origin(at), self.geometry(at));
        (x - f64::from(origin.0 - geometry.x), y - f64::from(origin.1 - geometry.y))
    }

    /// Puts the pointer's focus on what is under it, unless a button holds it.
    pub(crate) fn update_pointer_focus(&mut self) {
        if self.seat.button_is_down() || self.data.drag.is_some() {
            return;
        }
        let (x, y) = self.seat.position;
        let hit = self.surface_at(x, y);
        let to = hit.map(|hit| hit.0);
        if to == self.seat.pointer_focus {
            return;
        }
        self.leave_pointer();
        self.seat.pointer_focus = to;
        let serial = self.next_serial();
        for pointer in self.pointers_of(to) {
            self.enter_pointer(&pointer, serial);
        }
        self.log.push(StageEvent::PointerFocus { surface: to });
    }

    /// Takes the pointer from the surface that has it.
    pub(crate) fn leave_pointer(&mut self) {
        let serial = self.next_serial();
        let from = self.seat.pointer_focus.take();
        if let Some(surface) = from.and_then(|id| self.surface(id)) {
            for pointer in self.pointers_of(from) {
                pointer.leave(serial, &surface.resource);
                frame(&pointer);
            }
        }
    }

    fn enter_pointer(&mut self, pointer: &wl_pointer::WlPointer, serial: u32) {
        let Some(id) = self.seat.pointer_focus else { return };
        let Some(surface) = self.surface(id) else { return };
        let (x, y) = self.pointer_on(id);
        pointer.enter(serial, &surface.resource, x, y);
        frame(pointer);
        self.seat.enter_serial = serial;
    }

    /// Presses or releases a pointer button (evdev code); the serial of the event.
    pub(crate) fn button(&mut self, code: u32, pressed: bool) -> u32 {
        if self.data.drag.is_some() && !pressed {
            self.seat.take_buttons();
            self.drop_drag();
            return self.next_serial();
        }
        let serial = self.next_serial();
        let focus = self.seat.pointer_focus;
        self.log.push(StageEvent::Button { surface: focus, code, pressed, serial });
        if pressed {
            self.click_outside(focus);
            self.click_window(focus);
        }
        let time = self.millis();
        let state =
            if pressed { wl_pointer::ButtonState::Pressed } else { wl_pointer::ButtonState::Released };
        for pointer in self.pointers_of(focus) {
            pointer.button(serial, time, code, state);
            frame(&pointer);
        }
        self.seat.buttons.retain(|button| *button != code);
        if pressed {
            self.seat.buttons.push(code);
        }
        self.update_pointer_focus();
        serial
    }

    /// A click that is on no surface of the grabbing client sends its popups away.
    fn click_outside(&mut self, focus: Option<SurfaceId>) {
        let Some(first) = self.seat.grabs.first().copied() else { return };
        let owner = |id: SurfaceId| self.surface(id).map(|surface| surface.client);
        if focus.and_then(owner) != owner(first) {
            self.dismiss(first);
        }
    }

    /// A click raises a window and gives it the keyboard.
    fn click_window(&mut self, focus: Option<SurfaceId>) {
        let Some(mut id) = focus else { return };
        while let Some(sub) = self.surface(id).and_then(|surface| surface.subsurface.as_ref()) {
            id = sub.parent;
        }
        if self.windows.contains(&id) && self.seat.grabs.is_empty() {
            self.windows.retain(|window| *window != id);
            self.windows.push(id);
            self.focus(Some(id));
        }
    }

    /// Turns the wheel: `steps` of 10 logical pixels, vertical or horizontal.
    pub(crate) fn axis(&mut self, horizontal: bool, steps: i32) {
        let axis =
            if horizontal { wl_pointer::Axis::HorizontalScroll } else { wl_pointer::Axis::VerticalScroll };
        let time = self.millis();
        for pointer in self.pointers_of(self.seat.pointer_focus) {
            if pointer.version() >= wl_pointer::EVT_AXIS_SOURCE_SINCE {
                pointer.axis_source(wl_pointer::AxisSource::Wheel);
                pointer.axis_discrete(axis, steps);
            }
            pointer.axis(time, axis, f64::from(steps) * 10.0);
            frame(&pointer);
        }
    }

    /// A surface is gone: no field of the seat may keep it.
    pub(crate) fn seat_forget(&mut self, id: SurfaceId) {
        self.seat.grabs.retain(|grab| *grab != id);
        if self.seat.focus == Some(id) {
            self.seat.focus = None;
            let next = self.windows.last().copied();
            self.focus(next);
        }
        if self.seat.cursor.is_some_and(|cursor| cursor.0 == id) {
            self.seat.cursor = None;
        }
        if self.seat.pointer_focus == Some(id) {
            self.seat.pointer_focus = None;
            self.seat.take_buttons();
        }
        self.update_pointer_focus();
    }
}

impl GlobalDispatch<wl_seat::WlSeat, ()> for State {
    fn bind(
        _: &mut State,
        _: &DisplayHandle,
        _: &Client,
        resource: New<wl_seat::WlSeat>,
        _: &(),
        init: &mut DataInit<'_, State>,
    ) {
        let seat = init.init(resource, ());
        seat.capabilities(wl_seat::Capability::Pointer | wl_seat::Capability::Keyboard);
        if seat.version() >= wl_seat::EVT_NAME_SINCE {
            seat.name("seat0".to_owned());
        }
    }
}

impl Dispatch<wl_seat::WlSeat, ()> for State {
    fn request(
        state: &mut State,
        client: &Client,
        seat: &wl_seat::WlSeat,
        request: wl_seat::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        match request {
            wl_seat::Request::GetKeyboard { id } => {
                let keyboard = init.init(id, ());
                if let Some(keymap) = &state.seat.keymap {
                    let format = wl_keyboard::KeymapFormat::XkbV1;
                    keyboard.keymap(format, keymap.as_fd(), KEYMAP.len() as u32 + 1);
                }
                if keyboard.version() >= wl_keyboard::EVT_REPEAT_INFO_SINCE {
                    keyboard.repeat_info(REPEAT_RATE, REPEAT_DELAY_MS);
                }
                state.seat.keyboards.push(keyboard.clone());
                if state.focus_is_of(state.seat.focus, client) {
                    state.enter_keyboard(&keyboard);
                }
            }
            wl_seat::Request::GetPointer { id } => {
                let pointer = init.init(id, ());
                state.seat.pointers.push(pointer.clone());
                if state.focus_is_of(state.seat.pointer_focus, client) {
                    let serial = state.next_serial();
                    state.enter_pointer(&pointer, serial);
                }
            }
            wl_seat::Request::GetTouch { id } => {
                init.init(id, ());
                let message = "the seat has no touch screen".to_owned();
                seat.post_error(wl_seat::Error::MissingCapability, message);
            }
            _ => {}
        }
    }
}

impl State {
    /// Whether the client has the pointer and the serial is no older than its coming.
    pub(crate) fn may_set_cursor(&self, client: &Client, serial: u32) -> bool {
        let since_enter = serial.wrapping_sub(self.seat.enter_serial) as i32;
        self.focus_is_of(self.seat.pointer_focus, client) && self.knows_serial(serial) && since_enter >= 0
    }

    fn focus_is_of(&self, focus: Option<SurfaceId>, client: &Client) -> bool {
        focus.and_then(|id| self.surface(id)).is_some_and(|surface| surface.client == number(client))
    }
}

impl Dispatch<wl_keyboard::WlKeyboard, ()> for State {
    fn request(
        _: &mut State,
        _: &Client,
        _: &wl_keyboard::WlKeyboard,
        _: wl_keyboard::Request,
        _: &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
    }

    fn destroyed(state: &mut State, _: ClientId, keyboard: &wl_keyboard::WlKeyboard, _: &()) {
        state.seat.keyboards.retain(|kept| kept != keyboard);
    }
}

impl Dispatch<wl_pointer::WlPointer, ()> for State {
    fn request(
        state: &mut State,
        client: &Client,
        pointer: &wl_pointer::WlPointer,
        request: wl_pointer::Request,
        _: &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        let wl_pointer::Request::SetCursor { serial, surface, hotspot_x, hotspot_y } = request else {
            return;
        };
        let id = surface.as_ref().and_then(|surface| surface.data::<SurfaceId>().copied());
        if let Some(id) = id
            && !state.set_role(id, Role::Cursor)
        {
            pointer.post_error(wl_pointer::Error::Role, "the surface has another role".to_owned());
            return;
        }
        let accepted = state.may_set_cursor(client, serial);
        let hotspot = (hotspot_x, hotspot_y);
        if accepted {
            state.seat.cursor = id.map(|id| (id, hotspot));
        }
        let client = number(client);
        state.log.push(StageEvent::SetCursor { client, surface: id, hotspot, accepted });
    }

    fn destroyed(state: &mut State, _: ClientId, pointer: &wl_pointer::WlPointer, _: &()) {
        state.seat.pointers.retain(|kept| kept != pointer);
    }
}

impl Dispatch<wayland_server::protocol::wl_touch::WlTouch, ()> for State {
    fn request(
        _: &mut State,
        _: &Client,
        _: &wayland_server::protocol::wl_touch::WlTouch,
        _: wayland_server::protocol::wl_touch::Request,
        _: &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
    }
}

fn modifier(code: u32) -> u32 {
    match code {
        42 | 54 => SHIFT,
        29 | 97 => CONTROL,
        56 | 100 => ALT,
        125 | 126 => SUPER,
        _ => 0,
    }
}

fn frame(pointer: &wl_pointer::WlPointer) {
    if pointer.version() >= wl_pointer::EVT_FRAME_SINCE {
        pointer.frame();
    }
}

/// The keymap in a sealed file, so that clients may share it and none can change it.
fn keymap_file() -> std::io::Result<OwnedFd> {
    let fd = memfd_create("keymap", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(fd);
    file.write_all(KEYMAP.as_bytes())?;
    file.write_all(&[0])?;
    file.rewind()?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
    Ok(file.into())
}

const KEYMAP: &str = include_str!("us.xkb");
const CAPS_LOCK: u32 = 58;
const SHIFT: u32 = 1;
const LOCK: u32 = 2;
const CONTROL: u32 = 4;
const ALT: u32 = 8;
const SUPER: u32 = 64;
const REPEAT_RATE: i32 = 25;
const REPEAT_DELAY_MS: i32 = 600;
