//! What a page that is a display tells of itself, and what its script tells it of the user.
//!
//! Of a viewer all of it does nothing. Invariant: what is told is told to the programs before the call returns.

use std::collections::BTreeMap;

use bytes::Bytes;
use wayferry_message::WireId;
use wayferry_message::snapshot::Snapshot;
use wayferry_proto::{ConnectionId, Time};

use crate::area::Area;
use crate::ask::Pointing;
use crate::client;
use crate::clipboard::{Clip, Pipe, Transfer};
use crate::desk;
use crate::hit::Point;
use crate::keyboard::Pressed;
use crate::keymap::Level;
use crate::page::{Cursor, Page};
use crate::pointer::Wheel;
use crate::program::Program;
use crate::scene::Node;
use crate::seat::Seat;

impl Page {
    /// What it tells the app side of its compositor, which it has not.
    pub fn snapshot(&self) -> Snapshot {
        match &self.seat {
            None => desk::snapshot(),
            Some(seat) => client::snapshot(self.area, seat.keyboard.told()),
        }
    }

    /// The same if it was not asked for since it has changed.
    pub fn poll_snapshot(&mut self) -> Option<Snapshot> {
        std::mem::take(&mut self.is_changed).then(|| self.snapshot())
    }

    /// The next keymap that is to be sent, by its name; before what was told and names it.
    pub fn poll_blob(&mut self) -> Option<(u128, Bytes)> {
        self.seat.as_mut()?.keyboard.poll_blob()
    }

    /// Windows are to fill this area.
    pub fn set_area(&mut self, area: Area) {
        if self.seat.is_none() || self.area == area {
            return;
        }
        (self.area, self.is_changed) = (area, true);
        self.programs.values_mut().for_each(|program| program.set_area(area));
        self.collect();
    }

    fn act(&mut self, act: impl FnOnce(&mut Seat, &mut BTreeMap<ConnectionId, Program>)) {
        if let Some(seat) = &mut self.seat {
            act(seat, &mut self.programs);
            self.collect();
        }
    }

    /// The user works in the window of that surface, or in none.
    pub fn focus(&mut self, window: Option<(ConnectionId, WireId)>) {
        self.act(|seat, programs| seat.focus(programs, window));
    }

    /// A window is to be closed, which is its program's to do.
    pub fn close_window(&mut self, connection: ConnectionId, surface: WireId) {
        self.act(|_, programs| {
            if let Some(program) = programs.get_mut(&connection) {
                program.close_window(surface);
            }
        });
    }

    /// The pointer is at a point of the window of that surface, in units from its geometry's corner.
    pub fn point(&mut self, now: Time, connection: ConnectionId, surface: WireId, x: f64, y: f64) {
        // What is no number is nowhere.
        let at = (x.is_finite() && y.is_finite()).then_some((connection, surface, Point { x, y }));
        self.act(|seat, programs| seat.pointer.go(now, programs, at));
    }

    /// The pointer is in no window.
    pub fn point_nowhere(&mut self, now: Time) {
        self.act(|seat, programs| seat.pointer.go(now, programs, None));
    }

    /// A button of the pointer goes down, or up. Codes are those of `linux/input-event-codes.h`, from `BTN_LEFT` on.
    pub fn button(&mut self, now: Time, code: u32, pressed: bool) {
        self.act(|seat, programs| {
            seat.clipboard.at(now);
            seat.button(now, programs, code, pressed);
        });
    }

    /// A wheel turns, or fingers move on a touchpad.
    pub fn wheel(&mut self, now: Time, wheel: Wheel) {
        self.act(|seat, programs| seat.pointer.wheel(now, programs, wheel));
    }

    /// A key goes down, or up, by its code in `linux/input-event-codes.h`; with the character that it is, if known, and
    /// by which of the key's levels: where caps lock makes another letter, that is the level of that letter.
    pub fn key(&mut self, now: Time, code: u32, level: Level, character: Option<char>, pressed: bool) {
        let key = Pressed { code, level, character };
        self.act(|seat, programs| {
            seat.clipboard.at(now);
            seat.keyboard.key(now, programs, key, pressed);
        });
    }

    /// The modifiers are these: 1 shift, 2 caps lock, 4 control, 8 alt, 16 num lock, 64 super, 128 the third level's.
    pub fn set_modifiers(&mut self, modifiers: u32) {
        self.act(|seat, programs| seat.keyboard.set_modifiers(programs, modifiers));
    }

    /// The browser says which characters the keys of its keyboard have without modifiers, each by its code. What was
    /// typed already is better known.
    pub fn set_layout(&mut self, keys: impl Iterator<Item = (u32, char)>) {
        self.act(|seat, programs| seat.keyboard.set_layout(programs, keys));
    }

    /// Text is typed that comes from no key. Of a long one the first 4096 characters are.
    pub fn type_text(&mut self, now: Time, text: &str) {
        self.act(|seat, programs| seat.keyboard.type_text(now, programs, text));
    }

    /// The script hears of no keys or buttons any more: all that are down go up.
    pub fn release(&mut self, now: Time) {
        self.act(|seat, programs| seat.release(now, programs));
    }

    /// The user pastes what the browser has: programs get it from now on. Where it is not new, as the browser was known
    /// to have it, it does not take the place of what a program has selected since. More than
    /// [`MAX_COPIED_TEXT`](crate::MAX_COPIED_TEXT) or [`MAX_COPIED_PICTURE`](crate::MAX_COPIED_PICTURE) is not taken.
    pub fn offer(&mut self, clip: Clip, is_new: bool) {
        self.act(|seat, programs| seat.clipboard.offer(programs, clip, is_new));
    }

    /// What is to be done with pipes next.
    pub fn poll_transfer(&mut self) -> Option<Transfer> {
        self.seat.as_mut()?.clipboard.poll_transfer()
    }

    /// What was to be collected has come to its end; nothing if that was none, or it was too much.
    pub fn on_collected(&mut self, from: Pipe, bytes: Option<Bytes>) {
        self.act(|seat, _| seat.clipboard.collected(from, bytes));
    }

    /// What a program has copied, for the browser to have; each once, and only the latest.
    pub fn poll_copied(&mut self) -> Option<Clip> {
        self.seat.as_mut()?.clipboard.poll_copied()
    }

    /// What the pointer looks like.
    pub fn cursor(&self) -> Cursor<'_> {
        let inside = self.seat.as_ref().and_then(|seat| seat.pointer.program());
        let program = inside.and_then(|connection| Some((connection, self.programs.get(&connection)?)));
        let Some((connection, program)) = program else { return Cursor::Default };
        match program.control().map(|control| control.pointing).unwrap_or_default() {
            Pointing::Default => Cursor::Default,
            Pointing::Hidden => Cursor::Hidden,
            Pointing::Named(name) => Cursor::Named(name),
            Pointing::Surface(surface, hotspot) => match Node::alone(&program.windows, surface) {
                Some(node) => Cursor::Surface { connection, node: Box::new(node), hotspot },
                None => Cursor::Hidden,
            },
        }
    }
}
