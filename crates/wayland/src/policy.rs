//! What every message means to a proxy that owns the pixels: one table, one [`Rule`] per message.
//!
//! The protocol crates tell how a message looks; this table tells what to do with it. It covers exactly the
//! messages of the interfaces and versions that [`crate::tables`] lets programs reach: a test fails on a
//! missing row and on a superfluous one. It decides nothing at run time and keeps no state; what a
//! row cannot say is code, in one small handler per interface and half, which the interface's block names
//! ([`Handler`]).
//!
//! # How to read it
//!
//! [`table::FAMILIES`] has one block per interface, in the order in which one meets them: requests, then events, each
//! in the order of their opcodes. A block begins with where its objects live, on the `app` side only or on both, and
//! what becomes of those at another display: `lasting`, `brief` or `given`, see [`Again`]. A row is a class, the
//! message's name, and what is special about its arguments, which are counted from 0:
//!
//! ```text
//! one_shot("set_cursor").serial(0).after(&[Arg(1)]),
//! ^ class   ^ message    ^ argument 0 is a serial, argument 1 a surface whose earlier commits come first
//! ```
//!
//! | class | a request … | an event … |
//! |---|---|---|
//! | [`Forward`](Class::Forward) | is passed on | is passed on |
//! | [`Reply`](Class::Reply) | is passed on, and the compositor owes an answer: a later `sync` waits for it | |
//! | [`OneShot`](Class::OneShot) | is passed on if its serial is the attached display's, else dropped | |
//! | [`Destructor`](Class::Destructor) | is passed on and ends the object | is passed on and ends the object |
//! | [`State`](Class::State) | is passed on in its surface's next commit unit | |
//! | [`ParentState`](Class::ParentState) | is passed on in the parent surface's next commit unit | |
//! | [`Pending`](Class::Pending) | waits for its surface's next commit; what comes of it is in the unit | |
//! | [`Commit`](Class::Commit) | closes a commit unit | |
//! | [`Value`](Class::Value) | builds an object that crosses by value where it is used | |
//! | [`Local`](Class::Local) | is answered by the app side | is consumed by the display side |
//! | [`LocalDestructor`](Class::LocalDestructor) | ends an object that only the app side has | is consumed, ends it |
//! | [`Refused`](Class::Refused) | has no row: above the version caps | likewise |
//!
//! "Passed on" always includes translating ids, and the arguments that the row names. A message that is not
//! passed on as such may still cause one between the halves: a forwarded bind, a unit, a presentation time.

//!
//! # How to add a protocol
//!
//! Its globals get a line each in [`crate::tables::GLOBALS`], its interfaces a block each in the file of their family
//! below `policy/table/`; the tests then tell what is missing. Where rows do not say it all, the block names a handler
//! (`.handled(Handler::Name)`), which is a line in `policy/handler.rs` and a unit struct in `app/handlers/`,
//! `display/handlers/` or both, in the file of the family. What a handler must remember of an object is a type
//! of its own (`Object::begin_own`). No other file knows single protocols.

use std::collections::HashMap;
use std::sync::OnceLock;

mod handler;
pub mod table;

pub use handler::Handler;
pub(crate) use handler::handlers;

/// What is done with one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The message's name.
    pub name: &'static str,
    /// Where it goes.
    pub class: Class,
    /// The argument that is a serial of the compositor's, to be translated between the two displays' ranges.
    pub serial: Option<u8>,
    /// The argument that is a time, to be mapped between the two hosts' clocks.
    pub time: Option<Time>,
    /// What its file descriptor, if it has one, stands for.
    pub fd: Option<Fd>,
    /// The argument that is a buffer to be filled: pixels flow against the message, through a pipe channel.
    pub fills: Option<u8>,
    /// The object argument that crosses by value, because the display side does not have the object.
    pub value: Option<u8>,
    /// Of a message that creates an object: the surface that the new object belongs to, if any. Of a request
    /// for double-buffered state: the surface whose commit it waits for; if `None`, the one that its object
    /// belongs to.
    pub surface: Option<Subject>,
    /// Surfaces between whose commits this request stands: earlier units must be applied before it, later ones after
    /// it, although some may wait for pixels.
    pub after: &'static [Subject],
    /// Whether a new display is told again. [`Class::State`] is kept without saying so.
    pub keep: Keep,
    /// The object that keeps it: what is kept ends with it.
    pub keeper: Subject,
    /// Of an event that begins something: the object's event that ends it. A display that is gone ends it at once.
    pub until: Option<&'static str>,
    /// Of a request that is answered by the app side: whether it crosses nevertheless, behind what is owed an answer.
    pub sent_on: bool,
}

/// Where a message goes; the table in the module's documentation has the wording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Passed on.
    Forward,
    /// A request that is passed on and that the compositor owes an event for.
    Reply,
    /// A request that is passed on, is valid once and for one display, and is dropped when its serial is
    /// stale.
    OneShot,
    /// Passed on; the object is no more.
    Destructor,
    /// A request for double-buffered state, passed on in the surface's next commit unit.
    State,
    /// A request of a subsurface for state that the parent's commit applies, passed on in that one's unit.
    ParentState,
    /// A request for double-buffered state that the app side makes something of at the surface's next commit:
    /// pixels, damage, an answer. It does not cross itself.
    Pending,
    /// `wl_surface.commit`.
    Commit,
    /// A request that makes or builds an object that crosses by value.
    Value,
    /// Handled by code on the side that it reaches first; never crosses as it is.
    Local,
    /// As [`Class::Local`], and the object is no more.
    LocalDestructor,
    /// No program or compositor can send it without breaking the protocol.
    Refused,
}

/// A time in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// This argument holds milliseconds, modulo 2³².
    Millis(u8),
    /// This argument and the next hold the high and the low half of microseconds.
    Micros(u8),
}

/// What a message's only file descriptor stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fd {
    /// The receiver of the message writes to it: bytes flow against the message, through a pipe channel.
    Pipe,
    /// Content, of as many bytes as the next argument says: it crosses once and becomes a sealed memory file.
    Blob,
    /// It stays where it is.
    Kept,
}

/// An object of a message, standing for the surface that it belongs to (or is).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The object that the message is sent to.
    This,
    /// The object in this argument.
    Arg(u8),
    /// Every surface that the one of [`Self::This`] is a subsurface of, however far up.
    Above,
}

/// What the app side keeps of a request to tell a new display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nothing: it is over once done, or is void on another display.
    Nothing,
    /// The newest among the object's requests with the same slot.
    Last(&'static str),
    /// Every one.
    All,
}

/// Which sides have an interface's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Both: each has its own, bound together by a wire id.
    Both,
    /// The app side only.
    App,
}

/// What becomes of an interface's objects when another display takes the place of the one that they were made at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// The new one is asked for the like, by the request or the bind that made them, and told what is kept.
    Born,
    /// They stood for something that is over: the program destroys them in its own time.
    Over,
    /// The display made them, and a new one makes its own: as [`Self::Over`].
    Given,
    /// No display has them.
    Here,
}

/// The rule for a request; [`Class::Refused`] for what does not exist.
#[must_use]
pub fn request(interface: &str, opcode: u16) -> &'static Rule {
    find(interface, opcode, |rules| &rules.requests)
}

/// The rule for an event; [`Class::Refused`] for what does not exist.
#[must_use]
pub fn event(interface: &str, opcode: u16) -> &'static Rule {
    find(interface, opcode, |rules| &rules.events)
}

/// What handles the messages of this interface beyond their rows; nothing if it is unknown.
#[must_use]
pub fn handler(interface: &str) -> Handler {
    rules().get(interface).map_or(Handler::None, |rules| rules.handler)
}

/// Which sides have the objects of this interface; the app side only if it is unknown.
#[must_use]
pub fn home(interface: &str) -> Home {
    rules().get(interface).map_or(Home::App, |rules| rules.home)
}

/// What becomes of the objects of this interface at another display; nothing if it is unknown.
#[must_use]
pub fn again(interface: &str) -> Again {
    rules().get(interface).map_or(Again::Here, |rules| rules.again)
}

/// The events that tell of an object of this interface that its display is gone.
#[must_use]
pub fn farewell(interface: &str) -> &'static [&'static str] {
    rules().get(interface).map_or(&[], |rules| rules.farewell)
}

/// Whether the compositor owes events to a program that binds this global, so that a later `sync` must wait for
/// them. What the snapshot answers does not count.
#[must_use]
pub fn greets(interface: &str) -> bool {
    rules().get(interface).is_some_and(|rules| rules.greets)
}

/// One interface's rules, by opcode.
struct Rules {
    handler: Handler,
    home: Home,
    again: Again,
    farewell: &'static [&'static str],
    greets: bool,
    requests: Vec<&'static Rule>,
    events: Vec<&'static Rule>,
}

fn find(interface: &str, opcode: u16, side: impl Fn(&Rules) -> &Vec<&'static Rule>) -> &'static Rule {
    let rule = rules().get(interface).and_then(|rules| side(rules).get(usize::from(opcode)).copied());
    rule.unwrap_or(&table::REFUSED)
}

fn rules() -> &'static HashMap<&'static str, Rules> {
    static RULES: OnceLock<HashMap<&'static str, Rules>> = OnceLock::new();
    RULES.get_or_init(|| {
        table::blocks()
            .map(|block| {
                let (requests, events) = (block.requests.iter().collect(), block.events.iter().collect());
                let table::Block { handler, home, again, farewell, greets, .. } = *block;
                (block.interface, Rules { handler, home, again, farewell, greets, requests, events })
            })
            .collect()
    })
}

#[cfg(test)]
mod tests;
