//! Applications: what the two ends of a connection do.
//!
//! An application is told what happened, may do what it likes with its connection, and says when it wants to be woken.
//! Invariant: it knows the time only from its caller.

mod sink;
mod traffic;

use std::any::Any;

use noq_proto::{Connection, StreamEvent};
use wayferry_proto::Time;

use crate::meter::Meter;

pub use sink::{Delivery, Sink};
pub use traffic::{Bulk, Messages, Traffic};

/// What an application works with.
pub struct Io<'a> {
    /// Its connection.
    pub connection: &'a mut Connection,
    /// What is known of its sending side.
    pub meter: &'a Meter,
}

/// See the module.
pub trait App: Any {
    /// Something happened to a stream.
    fn on_stream(&mut self, now: Time, event: StreamEvent, io: Io<'_>);

    /// Called after everything that happened, and when [`App::next_timeout`] has come.
    fn drive(&mut self, now: Time, io: Io<'_>);

    /// When [`App::drive`] is to be called even if nothing happens.
    fn next_timeout(&self) -> Option<Time> {
        None
    }
}
