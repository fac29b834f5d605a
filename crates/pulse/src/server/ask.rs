//! A command on its way through the handlers: who asks, and what all clients share.

use super::client::ClientId;
use super::state::State;

/// See the module.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) state: &'a mut State,
    /// Who asks.
    pub(crate) client: ClientId,
    /// Of the protocol, as the client speaks it.
    pub(crate) version: u16,
    /// The question's number.
    pub(crate) sequence: u32,
}
