//! The policy table itself. How to read it: [the module above](super).

use super::Subject::This;
use super::{Again, Class, Fd, Handler, Home, Keep, Rule, Subject, Time};

mod captures;
mod connection;
mod desktop;
mod gpu;
mod input;
mod memory;
mod outputs;
mod pacing;
mod privileged;
mod selections;
mod surfaces;
mod tablets;
mod windows;

/// The rules of one interface.
#[derive(Debug)]
pub struct Block {
    /// Its name.
    pub interface: &'static str,
    /// What does the rest.
    pub handler: Handler,
    /// Which sides have its objects.
    pub home: Home,
    /// What becomes of its objects at another display.
    pub again: Again,
    /// Events that tell the program, of each of its objects, that the display is gone: without arguments, or with null.
    pub farewell: &'static [&'static str],
    /// Whether the compositor owes events to a program that binds it: a later `sync` waits for them. For globals
    /// only.
    pub greets: bool,
    /// Its requests, in the order of their opcodes.
    pub requests: &'static [Rule],
    /// Its events, in the order of their opcodes.
    pub events: &'static [Rule],
}

/// Every interface that a program can reach, by families: one file each.
pub const FAMILIES: &[&[Block]] = &[
    connection::BLOCKS,
    memory::BLOCKS,
    gpu::BLOCKS,
    surfaces::BLOCKS,
    pacing::BLOCKS,
    windows::BLOCKS,
    desktop::BLOCKS,
    outputs::BLOCKS,
    input::BLOCKS,
    tablets::BLOCKS,
    selections::BLOCKS,
    privileged::BLOCKS,
    captures::BLOCKS,
];

/// All blocks, in the order in which one meets them.
pub fn blocks() -> impl Iterator<Item = &'static Block> {
    FAMILIES.iter().copied().flatten()
}

/// The rule for what has no row.
pub const REFUSED: Rule = rule(Class::Refused, "");

/// An interface whose objects both sides have, and that are made again at another display.
const fn lasting(interface: &'static str, requests: &'static [Rule], events: &'static [Rule]) -> Block {
    block(interface, Again::Born, requests, events)
}

/// An interface whose objects both sides have, for something that another display knows nothing of.
const fn brief(interface: &'static str, requests: &'static [Rule], events: &'static [Rule]) -> Block {
    block(interface, Again::Over, requests, events)
}

/// An interface whose objects the compositor makes.
const fn given(interface: &'static str, requests: &'static [Rule], events: &'static [Rule]) -> Block {
    block(interface, Again::Given, requests, events)
}

/// An interface whose objects only the app side has.
const fn app(interface: &'static str, requests: &'static [Rule], events: &'static [Rule]) -> Block {
    Block { home: Home::App, ..block(interface, Again::Here, requests, events) }
}

const fn block(
    interface: &'static str,
    again: Again,
    requests: &'static [Rule],
    events: &'static [Rule],
) -> Block {
    let (handler, home) = (Handler::None, Home::Both);
    Block { interface, handler, home, again, farewell: &[], greets: false, requests, events }
}

impl Block {
    const fn handled(self, handler: Handler) -> Self {
        Self { handler, ..self }
    }

    const fn greets(self) -> Self {
        Self { greets: true, ..self }
    }

    const fn farewell(self, events: &'static [&'static str]) -> Self {
        Self { farewell: events, ..self }
    }
}

const fn forward(name: &'static str) -> Rule {
    rule(Class::Forward, name)
}

const fn reply(name: &'static str) -> Rule {
    rule(Class::Reply, name)
}

const fn one_shot(name: &'static str) -> Rule {
    rule(Class::OneShot, name)
}

const fn destructor(name: &'static str) -> Rule {
    rule(Class::Destructor, name)
}

const fn state(name: &'static str) -> Rule {
    rule(Class::State, name)
}

const fn parent_state(name: &'static str) -> Rule {
    rule(Class::ParentState, name)
}

const fn pending(name: &'static str) -> Rule {
    rule(Class::Pending, name)
}

const fn commit(name: &'static str) -> Rule {
    rule(Class::Commit, name)
}

const fn value(name: &'static str) -> Rule {
    rule(Class::Value, name)
}

const fn local(name: &'static str) -> Rule {
    rule(Class::Local, name)
}

const fn local_destructor(name: &'static str) -> Rule {
    rule(Class::LocalDestructor, name)
}

const fn rule(class: Class, name: &'static str) -> Rule {
    Rule {
        name,
        class,
        serial: None,
        time: None,
        fd: None,
        fills: None,
        value: None,
        surface: None,
        after: &[],
        keep: Keep::Nothing,
        keeper: This,
        until: None,
        sent_on: false,
    }
}

/// What rows say about arguments.
impl Rule {
    const fn serial(self, index: u8) -> Self {
        Self { serial: Some(index), ..self }
    }

    const fn millis(self, arg: u8) -> Self {
        Self { time: Some(Time::Millis(arg)), ..self }
    }

    const fn micros(self, arg: u8) -> Self {
        Self { time: Some(Time::Micros(arg)), ..self }
    }

    const fn fd(self, fd: Fd) -> Self {
        Self { fd: Some(fd), ..self }
    }

    const fn fills(self, index: u8) -> Self {
        Self { fills: Some(index), ..self }
    }

    const fn value(self, index: u8) -> Self {
        Self { value: Some(index), ..self }
    }

    const fn surface(self, subject: Subject) -> Self {
        Self { surface: Some(subject), ..self }
    }

    const fn after(self, subjects: &'static [Subject]) -> Self {
        Self { after: subjects, ..self }
    }

    const fn keep(self, slot: &'static str) -> Self {
        Self { keep: Keep::Last(slot), ..self }
    }

    const fn keep_all(self) -> Self {
        Self { keep: Keep::All, ..self }
    }

    const fn keeper(self, subject: Subject) -> Self {
        Self { keeper: subject, ..self }
    }

    const fn sent_on(self) -> Self {
        Self { sent_on: true, ..self }
    }

    const fn until(self, event: &'static str) -> Self {
        Self { until: Some(event), ..self }
    }
}
