//! The double-buffered state of a surface that was committed, as another display must be told.
//!
//! Of what replaces its like the newest is kept; of the stacking of children only what came of it. Does not apply anything
//! itself. Invariant: it fits into one unit, however much was committed.

use crate::message::{MAX_UNIT_STATE, Request, ToDisplay, WireId};

use super::birth::Message;

/// The committed state of a surface.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// In the order in which it must be told.
    requests: Vec<(WireId, u16, Message)>,
    /// The children and the surface itself, the lowest first; empty without children.
    stack: Vec<u32>,
    /// It is not the order in which they became children.
    moved: bool,
}

impl Committed {
    /// A request has been committed that replaces earlier ones of its object and opcode. Returns how many bytes that is.
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

    /// A surface became a child of `parent`, whose state this is: it is on top.
    pub(crate) fn adopt(&mut self, parent: u32, child: u32) {
        if self.stack.is_empty() {
            self.stack.push(parent);
        }
        self.stack.push(child);
    }

    /// A child is gone.
    pub(crate) fn orphan(&mut self, child: u32) {
        self.stack.retain(|id| *id != child);
        if self.stack.len() == 1 {
            (self.stack, self.moved) = (Vec::new(), false);
        }
    }

    /// A child was placed directly above or below a sibling, or the parent.
    pub(crate) fn place(&mut self, child: u32, sibling: u32, above: bool) {
        let knows = |id| self.stack.contains(&id);
        if child == sibling || !knows(child) || !knows(sibling) {
            return;
        }
        self.moved = true;
        self.stack.retain(|id| *id != child);
        if let Some(place) = self.stack.iter().position(|id| *id == sibling) {
            self.stack.insert(place + usize::from(above), child);
        }
    }

    /// How to get the children into this order, whatever it was: each with what it is placed next to, and whether above.
    /// Nothing if they are in the order in which they became children.
    pub(crate) fn order(&self, parent: u32) -> Vec<(u32, u32, bool)> {
        if !self.moved {
            return Vec::new();
        }
        let Some(place) = self.stack.iter().position(|id| *id == parent) else { return Vec::new() };
        let (below, above) = (&self.stack[..place], &self.stack[place + 1..]);
        let mut last = parent;
        let mut next = |child: &u32, above| (*child, std::mem::replace(&mut last, *child), above);
        let mut order: Vec<_> = below.iter().rev().map(|child| next(child, false)).collect();
        last = parent;
        let mut next = |child: &u32, above| (*child, std::mem::replace(&mut last, *child), above);
        order.extend(above.iter().map(|child| next(child, true)));
        order
    }

    /// The children and the surface itself, the lowest first; empty without children.
    pub(crate) fn stack(&self) -> &[u32] {
        &self.stack
    }

    pub(crate) fn bytes(&self) -> usize {
        let requests: usize = self.requests.iter().map(|(.., message)| message.bytes()).sum();
        requests + size_of_val(self.stack.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    proptest! {
        /// However children were placed, a new row of them gets into the same order.
        #[test]
        fn any_order_can_be_made_again(places in proptest::collection::vec((2u32..9, 1u32..9, any::<bool>()), 0..40)) {
            let new = || {
                let mut state = Committed::default();
                (2..8).for_each(|child| state.adopt(1, child));
                state
            };
            let mut state = new();
            for (child, sibling, above) in places {
                state.place(child, sibling, above);
            }
            let mut again = new();
            for (child, sibling, above) in state.order(1) {
                again.place(child, sibling, above);
            }
            prop_assert_eq!(again.stack, state.stack);
        }
    }
}
