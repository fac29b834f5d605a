//! What is done for the objects of an interface beyond what its rows say.
//!
//! The interface's block in the policy table names the handler; [`super::handlers`] finds it. A handler keeps nothing
//! by itself: what it must remember is in the object's [`Data`], its surface or the connection. Invariant: each message
//! is checked and routed as its row says; only `state`, `may_cross`, `hear` and `renewed` keep one from going on.

use wayland_backend::protocol::Interface;

use crate::message::{Request, WireArg};
use crate::wire::Arg;

use super::announced::Announced;
use super::call::{Call, Plain};
use super::connection::Connection;
use super::fault::Fault;
use super::focus::Focus;
use super::late::Part;
use super::object::Data;
use super::roles::Roles;

/// The places at which an interface can have code of its own, in the order in which messages come by.
pub(super) trait Handles {
    /// What an object that was bound keeps; `name` is the global's towards the program.
    fn bound(&self, _name: u32) -> Data {
        Data::Plain
    }

    /// The events that follow a bind.
    fn greet(&self, _connection: &mut Connection, _id: u32) -> Result<(), Fault> {
        Ok(())
    }

    /// A request that never crosses as it is. What it makes is there already.
    fn local(&self, _connection: &mut Connection, _call: Call, _args: Vec<Arg>) -> Result<(), Fault> {
        Ok(())
    }

    /// A request for double-buffered state of a surface, if that is there. Says whether it goes on to its next commit.
    fn state(
        &self,
        _connection: &mut Connection,
        _call: Call,
        _surface: Option<u32>,
        _args: &[Arg],
    ) -> Result<bool, Fault> {
        Ok(true)
    }

    /// A request is to be passed on, if it can be.
    fn before(&self, _connection: &mut Connection, _call: Call, _args: &mut [Arg]) -> Result<(), Fault> {
        Ok(())
    }

    /// It comes behind the commits of a surface, all that was applied of which has left: what is cached of it follows.
    fn behind(&self, connection: &mut Connection, _call: Call, surface: u32) -> Result<(), Fault> {
        connection.send_ahead(surface)
    }

    /// Whether the attached display can be asked this now.
    fn may_cross(&self, _connection: &Connection, _call: Call, _args: &[Arg]) -> bool {
        true
    }

    /// The opcode of the request that says as much as the attached display knows.
    fn opcode_there(&self, _connection: &Connection, _interface: &Interface, opcode: u16) -> u16 {
        opcode
    }

    /// A request was passed on, or `crossed` is false.
    fn forwarded(
        &self,
        _connection: &mut Connection,
        _call: Call,
        _args: &[Plain],
        _crossed: bool,
    ) -> Result<(), Fault> {
        Ok(())
    }

    /// A request did not cross: the events that it is owed.
    fn answer(&self, _connection: &mut Connection, _call: Call, _args: &[Plain]) -> Result<(), Fault> {
        Ok(())
    }

    /// The state of an object that stands in for one that the attached display lacks.
    fn stand_in(&self, _connection: &mut Connection, _id: u32) -> Result<(), Fault> {
        Ok(())
    }

    /// Of which press an event is a part: the button or the finger, and which part.
    fn press(&self, _name: &str, _args: &[WireArg]) -> Option<(u32, Part)> {
        None
    }

    /// Where an event moves a device to.
    fn attend(&self, _focus: &mut Focus, _device: u32, _name: &str, _args: &[WireArg]) {}

    /// An event has come, in the display's names. Says whether the program gets it.
    fn hear(&self, _connection: &mut Connection, _id: u32, _name: &str, _args: &[WireArg]) -> bool {
        true
    }

    /// The program gets an event, in its names: what another display must know of it, and counts of the program's.
    fn note(
        &self,
        _connection: &mut Connection,
        _id: u32,
        _name: &str,
        _args: &mut [Arg],
    ) -> Result<(), Fault> {
        Ok(())
    }

    /// What an event ends that it does not name as the event that ends it.
    fn tell(&self, _announced: &mut Announced, _id: u32, _name: &str, _args: &[Arg]) {}

    /// What an event is about that begins something: an object, or a touch point.
    fn about(&self, args: &[Arg]) -> Option<u32> {
        args.iter().find_map(|arg| if let Arg::Object(id) = arg { Some(*id) } else { None })
    }

    /// An event as the program's version of the object has it; `None` if it has nothing like it.
    fn renewed(
        &self,
        _connection: &Connection,
        _id: u32,
        _name: &str,
        event: (u16, Vec<Arg>),
    ) -> Option<(u16, Vec<Arg>)> {
        Some(event)
    }

    /// The program was given an event; `serial` is the display's.
    fn emitted(
        &self,
        _connection: &mut Connection,
        _id: u32,
        _name: &str,
        _serial: Option<u32>,
    ) -> Result<(), Fault> {
        Ok(())
    }

    /// The display is gone, and events of an object have said so: ends their group.
    fn end_group(&self, _connection: &mut Connection, _id: u32) -> Result<(), Fault> {
        Ok(())
    }

    /// Whether another display can be asked for what a request of this interface made.
    fn may_be_born(&self, _connection: &Connection, _roles: &Roles, _name: &str, _birth: &Request) -> bool {
        true
    }
}

/// The handler of interfaces whose rows say it all.
pub(super) struct Plainly;

impl Handles for Plainly {}
