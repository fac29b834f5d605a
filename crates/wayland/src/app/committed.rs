//! The double-buffered state of a surface that was committed, as another display must be told.
//!
//! Of what replaces its like the newest is kept; of the stacking of children only what came of it. Does not apply
//! anything itself. Invariant: it fits into one unit, however much was committed.

use crate::message::{MAX_UNIT_STATE, Request, ToDisplay, WireId};

use super::birth::Message;
use super::stack::Stack;

/// The committed state of a surface.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// In the order in which it must be told.
    requests: Vec<(WireId, u16, Message)>,
    /// The children in the order of the last commit, those that were ever moved marked as such.
    pub(crate) stack: Stack,
}

impl Committed {
    /// A request has been committed that replaces earlier ones of its object and opcode. Returns how many bytes that
    /// is.
    pub(crate) fn add(&mut self, request: &Request) -> usize {
        let Request { object, opcode, .. } = *request;
        self.requests.retain(|(of, which, _)| (*of, *which) != (object, opcode));
        if self.requests.len() >= MAX_UNIT_STATE {
            self.requests.remove(0);
        }
        let message = Message::new(&ToDisplay::Request(request.clone()));
        let bytes = message.bytes();
        self.requests.push((object, opcode, message));
        bytes
    }

    /// What was committed.
    pub(crate) fn requests(&self) -> impl Iterator<Item = Request> {
        self.requests.iter().filter_map(|(.., message)| message.request())
    }

    /// An object is no more.
    pub(crate) fn forget(&mut self, object: WireId) {
        self.requests.retain(|(of, ..)| *of != object);
    }

    pub(crate) fn bytes(&self) -> usize {
        let requests: usize = self.requests.iter().map(|(.., message)| message.bytes()).sum();
        requests + self.stack.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_a_kind_is_kept_and_never_more_than_fits() {
        let mut state = Committed::default();
        let request = |object, opcode| Request { object: WireId(object), opcode, args: Vec::new() };
        for object in (4..10_000).step_by(2) {
            state.add(&request(object, 1));
            state.add(&request(4, 2));
        }
        assert_eq!(state.requests().count(), MAX_UNIT_STATE);
        assert_eq!(state.requests().last(), Some(request(4, 2)));
        state.forget(WireId(4));
        assert_eq!(state.requests().count(), MAX_UNIT_STATE - 1);
    }
}
