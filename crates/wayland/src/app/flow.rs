//! How far a display side is with the messages that it was sent.
//!
//! Counted by [`message::cost`]. Knows no messages and decides nothing. Invariant: no more was handled than was sent.

use crate::message;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Flow {
    sent: u64,
    handled: u64,
}

impl Flow {
    /// A message leaves.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.sent += message::cost(bytes);
    }

    /// The display side has handled so much.
    ///
    /// # Errors
    /// When that cannot be, in words about the display side.
    pub(super) fn on_consumed(&mut self, bytes: u64) -> Result<(), String> {
        if bytes < self.handled || bytes > self.sent {
            return Err(format!("{bytes} bytes consumed of {} sent", self.sent));
        }
        self.handled = bytes;
        Ok(())
    }

    /// Whether more than so much is not handled yet.
    pub(super) fn is_ahead(&self, most: u64) -> bool {
        self.sent - self.handled > most
    }

    /// What was sent so far.
    #[cfg(test)]
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_handled_than_was_sent_and_never_less_than_before() {
        let mut flow = Flow::default();
        flow.send(&[0; 100]);
        let cost = message::cost(&[0; 100]);
        assert!(flow.is_ahead(cost - 1) && !flow.is_ahead(cost));
        assert!(flow.on_consumed(cost + 1).is_err());
        assert!(flow.on_consumed(cost).is_ok() && !flow.is_ahead(0));
        assert!(flow.on_consumed(cost - 1).is_err());
    }
}
