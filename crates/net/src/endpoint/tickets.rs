//! TLS tickets of many hosts, for resumption and early data.

/// Tickets, in memory only: what a client needs to come back to a server without a full handshake, and with early data.
/// Clones share them. Each is good for one connection. A ticket counts only for the server name and port, and the trust, with
/// which it was got.
#[derive(Clone, Debug)]
pub struct TicketStore {}

impl TicketStore {
    /// A store that keeps up to `limit` tickets, and forgets the oldest beyond that.
    pub fn new(limit: usize) -> Self {
        let _ = limit;
        unimplemented!()
    }

    /// How many there are now.
    pub fn len(&self) -> usize {
        unimplemented!()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
