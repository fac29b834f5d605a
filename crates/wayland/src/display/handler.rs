//! What is done for the objects of an interface beyond what its rows say.
//!
//! The interface's block in the policy table names the handler; [`super::handlers`] finds it. A handler keeps nothing
//! by itself: what it must remember from one message to the next is in the connection. Invariant: no message is a
//! handler's alone, but those that it says it answers or hides: it is checked, ordered, translated and passed on as its
//! row says, no matter what the handler does.

use wayferry_proto::Time;
use wayland_backend::protocol::MessageDesc;

use crate::action::End;
use crate::message::{Request, WireId};
use crate::wire::Arg;

use super::connection::Connection;
use super::hold::Claim;

/// A request that has been checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) request: &'a Request,
    pub(super) desc: &'a MessageDesc,
}

/// An event of the compositor for an object of the program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) now: Time,
    /// The object's id at the compositor.
    pub(super) id: u32,
    pub(super) object: WireId,
    pub(super) name: &'static str,
    pub(super) args: &'a [Arg],
}

/// The places at which an interface can have code of its own, in the order in which a request comes by.
pub(super) trait Handles {
    /// How a request relates to what is held, beyond its row.
    fn claim(&self, _connection: &Connection, _asked: Asked<'_>, _claim: &mut Claim) {}

    /// A request of the channel has arrived; whether it is held is not known yet.
    fn accepted(&self, _connection: &mut Connection, _asked: Asked<'_>) {}

    /// This side answers a request by itself, and the compositor does not see it.
    fn answers(&self, _connection: &mut Connection, _asked: Asked<'_>) -> Result<bool, End> {
        Ok(false)
    }

    /// A request is about to be sent; its arguments are as the compositor is to see them.
    fn before(&self, _connection: &mut Connection, _asked: Asked<'_>, _args: &mut [Arg]) {}

    /// A request was sent that made an object of this interface.
    fn made(&self, _connection: &mut Connection, _object: WireId) -> Result<(), End> {
        Ok(())
    }

    /// A request was sent.
    fn sent(&self, _connection: &mut Connection, _asked: Asked<'_>) {}

    /// The compositor cannot be asked this: does what is owed all the same.
    fn swallowed(&self, _connection: &mut Connection, _asked: Asked<'_>) -> Result<(), End> {
        Ok(())
    }

    /// An object's destructor was sent, or the compositor never had the object.
    fn ended(&self, _connection: &mut Connection, _object: WireId) -> Result<(), End> {
        Ok(())
    }

    /// An event has come; it is passed on afterwards if its row says so.
    fn event(&self, _connection: &mut Connection, _event: Event<'_>) -> Result<(), End> {
        Ok(())
    }

    /// Whether an event is this side's own affair, and not passed on.
    fn hides(&self, _event: Event<'_>) -> bool {
        false
    }

    /// Whether a blob that comes with an event is news to the program.
    fn is_news(&self, _connection: &mut Connection, _object: WireId, _hash: u128) -> bool {
        true
    }
}

/// The handler of interfaces whose rows say it all.
pub(super) struct Plain;

impl Handles for Plain {}
