//! The seat of a page that is a display: one pointer, one keyboard, one clipboard, and the window that the user works
//! in.
//!
//! Decides who has which; the devices tell. Invariant: the keyboard is with the window that the user works in, or with
//! the newest popup of its program that has asked for it.

use std::collections::BTreeMap;

use wayferry_message::WireId;
use wayferry_proto::{ConnectionId, Time};

use crate::clipboard::Clipboard;
use crate::keyboard::Keyboard;
use crate::pointer::Pointer;
use crate::program::Program;

/// See the module.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) keyboard: Keyboard,
    pub(crate) pointer: Pointer,
    pub(crate) clipboard: Clipboard,
    /// The window that the user works in.
    window: Option<(ConnectionId, WireId)>,
}

impl Seat {
    pub(crate) fn new() -> Self {
        Self {
            keyboard: Keyboard::new(),
            pointer: Pointer::default(),
            clipboard: Clipboard::default(),
            window: None,
        }
    }

    /// The user works in another window, or in none.
    pub(crate) fn focus(
        &mut self,
        programs: &mut BTreeMap<ConnectionId, Program>,
        window: Option<(ConnectionId, WireId)>,
    ) {
        if self.window == window {
            return;
        }
        let before = std::mem::replace(&mut self.window, window).map(|(connection, _)| connection);
        let now = window.map(|(connection, _)| connection);
        for connection in [before.filter(|_| before != now), now].into_iter().flatten() {
            let active = window.filter(|(of, _)| *of == connection).map(|(_, surface)| surface);
            if let Some(program) = programs.get_mut(&connection) {
                program.set_active(active);
            }
        }
        end_grabs(programs, |_| true);
        self.look(programs);
    }

    /// Something has changed in a program that was told nothing of the seat yet.
    pub(crate) fn meet(&mut self, programs: &mut BTreeMap<ConnectionId, Program>, connection: ConnectionId) {
        let Some(program) = programs.get_mut(&connection) else { return };
        self.keyboard.meet(connection, program);
        if std::mem::take(&mut program.has_moved) {
            self.look(programs);
        }
        self.clipboard.meet(programs, connection);
    }

    /// Looks again who has the keyboard and the pointer.
    pub(crate) fn look(&mut self, programs: &mut BTreeMap<ConnectionId, Program>) {
        let target = self.window.and_then(|(connection, surface)| {
            let windows = &programs.get(&connection)?.windows;
            let is_shown = |surface: WireId| windows.surface(surface)?.content().map(|_| surface);
            windows.toplevel(surface)?;
            Some((connection, windows.grab().or_else(|| is_shown(surface))?))
        });
        // What is selected is told before the keyboard comes.
        self.clipboard.enter(programs, target.map(|(connection, _)| connection));
        self.keyboard.focus(programs, target);
        self.pointer.look(programs);
    }

    /// A button goes down, or up. A press outside of a program whose popups have the keyboard ends these.
    pub(crate) fn button(
        &mut self,
        now: Time,
        programs: &mut BTreeMap<ConnectionId, Program>,
        code: u32,
        pressed: bool,
    ) {
        if pressed {
            let inside = self.pointer.program();
            end_grabs(programs, |connection| Some(connection) != inside);
        }
        self.pointer.button(now, programs, code, pressed);
        self.look(programs);
    }

    /// A program is gone.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        self.window = self.window.filter(|(window, _)| *window != connection);
        self.keyboard.forget(connection);
        self.pointer.forget(connection);
        self.clipboard.forget(connection);
    }

    /// Everything that is down goes up.
    pub(crate) fn release(&mut self, now: Time, programs: &mut BTreeMap<ConnectionId, Program>) {
        self.keyboard.release(now, programs);
        self.pointer.release(now, programs);
    }
}

fn end_grabs(programs: &mut BTreeMap<ConnectionId, Program>, of: impl Fn(ConnectionId) -> bool) {
    let grabbed = programs.iter_mut().filter(|(id, program)| program.windows.has_grabs() && of(**id));
    grabbed.for_each(|(_, program)| program.end_grabs());
}
