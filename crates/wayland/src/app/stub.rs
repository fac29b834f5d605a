//! Answers in place of a compositor: for optional globals that it lacks, and for requests with a serial that it never
//! gave out.
//!
//! Most such requests need no answer; handlers give those without which programs would wait for ever. Invariant: what
//! is answered here never crosses to the display side.

use crate::policy::Handler;
use crate::wire::Arg;

use super::call::Plain;
use super::connection::Connection;
use super::fault::Fault;
use super::handlers;

impl Connection {
    /// Ends the wait for an activation token: this one activates nothing.
    pub(super) fn tell_token(&mut self, id: u32) -> Result<(), Fault> {
        self.emit(id, "done", vec![name("wayferry")])
    }

    /// The state of an object that stands in for one that the compositor lacks.
    pub(super) fn tell_stub(&mut self, id: u32) -> Result<(), Fault> {
        let handler = self.objects.of(id).map_or(Handler::None, |object| object.handler);
        handlers::of(handler).stand_in(self, id)
    }

    /// The same for the object that a request made.
    pub(super) fn tell_made(&mut self, args: &[Plain]) -> Result<(), Fault> {
        let made = args.iter().find_map(|arg| if let Plain::NewId(id) = arg { Some(*id) } else { None });
        made.map_or(Ok(()), |id| self.tell_stub(id))
    }
}

fn name(text: &str) -> Arg {
    Arg::Str(Some(text.as_bytes().to_vec()))
}
