//! What a program has been told that holds only while its display is there: focus, touches, locks, buttons that are
//! down.
//!
//! The policy table says which event ends which; this only keeps the books. Invariant: what is open has been begun
//! towards the program and has not been ended.

use std::collections::BTreeSet;

use crate::policy;
use crate::tables;

use wayland_backend::protocol::Interface;

/// Things that may be open at once; of more, the display has made them up.
const MAX_OPEN: usize = 4096;

/// Something that an event began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Open {
    pub(crate) object: u32,
    /// The event that ends it.
    pub(crate) end: u16,
    /// The object that both events name, or the touch point; 0 if there is none.
    pub(crate) about: u32,
}

/// The books.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    open: BTreeSet<Open>,
    /// Pointers with the buttons that are down.
    buttons: BTreeSet<(u32, u32)>,
}

impl Announced {
    /// The program gets this event, which is about an object or a touch point, or about nothing of its own.
    pub(crate) fn on_event(
        &mut self,
        object: u32,
        interface: &'static Interface,
        opcode: u16,
        about: Option<u32>,
    ) {
        self.open.retain(|open| {
            let ends = (open.object, open.end) == (object, opcode);
            !(ends && about.is_none_or(|about| about == open.about))
        });
        let until = policy::event(interface.name, opcode).until;
        if let Some(end) = until.and_then(|end| tables::event_opcode(interface, end))
            && self.open.len() < MAX_OPEN
        {
            self.open.insert(Open { object, end, about: about.unwrap_or(0) });
        }
    }

    /// A button of a pointer goes down or up.
    pub(crate) fn button(&mut self, pointer: u32, button: u32, down: bool) {
        self.buttons.remove(&(pointer, button));
        if down && self.buttons.len() < MAX_OPEN {
            self.buttons.insert((pointer, button));
        }
    }

    /// Something else ends what is open at an object about this.
    pub(crate) fn end_about(&mut self, object: u32, about: u32) {
        self.open.retain(|open| (open.object, open.about) != (object, about));
    }

    /// Something else ends all that is open at an object.
    pub(crate) fn end_all(&mut self, object: u32) {
        self.open.retain(|open| open.object != object);
    }

    /// What is open at an object: the object that each event named.
    pub(crate) fn about(&self, object: u32) -> impl Iterator<Item = u32> {
        let first = Open { object, end: 0, about: 0 };
        self.open.range(first..).take_while(move |open| open.object == object).map(|open| open.about)
    }

    /// The program has destroyed an object.
    pub(crate) fn forget(&mut self, object: u32) {
        self.open.retain(|open| open.object != object && open.about != object);
        self.buttons.retain(|(pointer, _)| *pointer != object);
    }

    /// Pointers with buttons that must go up.
    pub(crate) fn take_buttons(&mut self) -> BTreeSet<(u32, u32)> {
        std::mem::take(&mut self.buttons)
    }

    /// What must be ended; of one object, later events first, as tips of tablet tools go up before the tools leave.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Open> {
        std::mem::take(&mut self.open).into_iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::super::handlers;
    use super::*;
    use crate::wire::Arg;

    fn event(announced: &mut Announced, object: u32, interface: &str, name: &str, args: &[Arg]) {
        let interface = tables::interface(interface).unwrap();
        let opcode = tables::event_opcode(interface, name).unwrap();
        let handler = handlers::of(policy::handler(interface.name));
        handler.tell(announced, object, name, args);
        announced.on_event(object, interface, opcode, handler.about(args));
    }

    fn down(announced: &mut Announced, point: i32) {
        let args =
            &[Arg::Uint(1), Arg::Uint(1), Arg::Object(9), Arg::Int(point), Arg::Fixed(0), Arg::Fixed(0)];
        event(announced, 5, "wl_touch", "down", args);
    }

    #[test]
    fn what_has_ended_is_not_ended_again() {
        let mut announced = Announced::default();
        let enter = || [Arg::Uint(1), Arg::Object(9), Arg::Fixed(0), Arg::Fixed(0)];
        event(&mut announced, 3, "wl_pointer", "enter", &enter());
        event(&mut announced, 3, "wl_pointer", "leave", &[Arg::Uint(2), Arg::Object(9)]);
        event(&mut announced, 4, "wl_surface", "enter", &[Arg::Object(20)]);
        event(&mut announced, 4, "wl_surface", "enter", &[Arg::Object(21)]);
        event(&mut announced, 4, "wl_surface", "leave", &[Arg::Object(20)]);
        [1, 2].into_iter().for_each(|point| down(&mut announced, point));
        event(&mut announced, 5, "wl_touch", "up", &[Arg::Uint(1), Arg::Uint(1), Arg::Int(1)]);
        let open: Vec<_> = announced.take().map(|open| (open.object, open.about)).collect();
        assert_eq!(open, [(5, 2), (4, 21)]);
    }

    #[test]
    fn a_tip_goes_up_before_its_tool_leaves() {
        let mut announced = Announced::default();
        let tool = "zwp_tablet_tool_v2";
        event(&mut announced, 3, tool, "proximity_in", &[Arg::Uint(1), Arg::Object(8), Arg::Object(9)]);
        event(&mut announced, 3, tool, "down", &[Arg::Uint(1)]);
        let interface = tables::interface(tool).unwrap();
        let names: Vec<_> =
            announced.take().map(|open| interface.events[usize::from(open.end)].name).collect();
        assert_eq!(names, ["up", "proximity_out"]);
    }

    #[test]
    fn buttons_are_known_until_they_go_up() {
        let mut announced = Announced::default();
        let button = |button, state| [1, 1, button, state].map(Arg::Uint);
        for (which, state) in [(272, 1), (273, 1), (272, 0)] {
            event(&mut announced, 3, "wl_pointer", "button", &button(which, state));
        }
        assert_eq!(announced.take_buttons().into_iter().collect::<Vec<_>>(), [(3, 273)]);
    }
}
