//! The stacking order of a surface's children, and how a display that knows an older one is brought to it.
//!
//! The order is kept, not the requests that made it: one may name a sibling that is gone when the parent commits. Sends
//! nothing itself. Invariant: each child is in the order of its parent once, and what is gone is in none.

/// The children of a surface and the surface itself, the lowest first; empty without children.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Stack {
    order: Vec<u32>,
    /// Children that a display must be told of to have this order. All others keep their places among each other.
    moved: Vec<u32>,
}

/// A child, and what it is directly above, or below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) child: u32,
    pub(crate) sibling: u32,
    pub(crate) above: bool,
}

impl Stack {
    /// A surface became a child of `parent`, whose stack this is: it is on top.
    pub(crate) fn adopt(&mut self, parent: u32, child: u32) {
        if self.order.is_empty() {
            self.order.push(parent);
        }
        self.order.push(child);
    }

    /// A child is gone.
    pub(crate) fn orphan(&mut self, child: u32) {
        self.order.retain(|id| *id != child);
        self.moved.retain(|id| *id != child);
        if self.order.len() == 1 {
            self.order.clear();
        }
    }

    /// A child is placed. Returns whether there is such a place.
    pub(crate) fn place(&mut self, to: Move) -> bool {
        let Move { child, sibling, above } = to;
        if child == sibling || ![child, sibling].iter().all(|id| self.order.contains(id)) {
            return false;
        }
        self.order.retain(|id| *id != child);
        let place = self.order.iter().position(|id| *id == sibling).unwrap_or_default();
        self.order.insert(place + usize::from(above), child);
        self.moved.retain(|id| *id != child);
        self.moved.push(child);
        true
    }

    /// Adds the order of `newest`, and what was moved there since the last time, to what the next commit changes.
    pub(crate) fn pend(newest: &mut Self, pending: &mut Option<Self>) {
        pending.get_or_insert_default().fold(newest);
        newest.moved.clear();
    }

    /// Takes a newer order on, of which children may be gone since, and which those lack that were adopted since: they
    /// are on top.
    pub(crate) fn follow(&mut self, newer: &Self) {
        let old = std::mem::take(&mut self.order);
        self.order = newer.order.iter().copied().filter(|id| old.contains(id)).collect();
        self.order.extend(old.into_iter().filter(|id| !newer.order.contains(id)));
        self.note_moved(newer);
    }

    /// Folds a newer commit of the same surface into this one.
    pub(crate) fn fold(&mut self, newer: &Self) {
        self.order.clone_from(&newer.order);
        self.note_moved(newer);
    }

    /// Another display is to be told of all that was ever moved in `told`, by the next commit.
    pub(crate) fn pend_again(newest: &mut Self, told: &Self, pending: &mut Option<Self>) {
        if told.is_moved() {
            newest.note_moved(told);
            Self::pend(newest, pending);
        }
    }

    fn note_moved(&mut self, newer: &Self) {
        self.moved
            .extend(newer.moved.iter().filter(|id| !self.moved.contains(id)).copied().collect::<Vec<_>>());
        self.moved.retain(|id| self.order.contains(id));
    }

    /// How a display gets from an order in which those that were not moved are the same to this one, of the children of
    /// `parent`: from that outwards, so that each child is placed next to one whose place is final.
    pub(crate) fn moves(&self, parent: u32) -> Vec<Move> {
        let Some(place) = self.order.iter().position(|id| *id == parent) else { return Vec::new() };
        let (below, above) = (&self.order[..=place], &self.order[place..]);
        let below =
            below.windows(2).rev().map(|pair| Move { child: pair[0], sibling: pair[1], above: false });
        let above = above.windows(2).map(|pair| Move { child: pair[1], sibling: pair[0], above: true });
        below.chain(above).filter(|to| self.moved.contains(&to.child)).collect()
    }

    /// Whether there is an order to tell.
    pub(crate) fn is_moved(&self) -> bool {
        !self.moved.is_empty()
    }

    /// The children and the surface itself, the lowest first; empty without children.
    pub(crate) fn order(&self) -> &[u32] {
        &self.order
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.order.as_slice()) + size_of_val(self.moved.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PARENT: u32 = 1;

    #[derive(Debug, Clone)]
    enum Step {
        Adopt(u32),
        Orphan(u32),
        Place(Move),
        Commit,
        /// What was committed leaves.
        Leave,
        /// Another display is there.
        Attach,
    }

    fn step() -> impl Strategy<Value = Step> {
        let place = (2u32..9, 1u32..9, any::<bool>());
        prop_oneof![
            2 => (2u32..9).prop_map(Step::Adopt),
            1 => (2u32..9).prop_map(Step::Orphan),
            6 => place.prop_map(|(child, sibling, above)| Step::Place(Move { child, sibling, above })),
            2 => Just(Step::Commit),
            2 => Just(Step::Leave),
            1 => Just(Step::Attach),
        ]
    }

    /// Places as a compositor does, which ends a program that names no sibling.
    fn obey(display: &mut Vec<u32>, to: Move) {
        assert!([to.child, to.sibling].iter().all(|id| display.contains(id)), "{to:?} in {display:?}");
        display.retain(|id| *id != to.child);
        let at = display.iter().position(|id| *id == to.sibling).unwrap();
        display.insert(at + usize::from(to.above), to.child);
    }

    proptest! {
        /// However children come, go and are placed, and whichever commits are folded, the display has the order that
        /// the program committed last, and is never told of what it does not have.
        #[test]
        fn a_display_gets_the_order_that_was_committed(steps in prop::collection::vec(step(), 0..80)) {
            let (mut newest, mut committed) = (Stack::default(), Stack::default());
            let (mut next, mut unsent, mut births): (Option<Stack>, Option<Stack>, _) = (None, None, vec![PARENT]);
            let mut display = vec![PARENT];
            let last = [Step::Place(Move { child: 2, sibling: 3, above: true }), Step::Commit, Step::Leave];
            for step in steps.into_iter().chain(last) {
                match step {
                    Step::Adopt(child) if !births.contains(&child) => {
                        newest.adopt(PARENT, child);
                        committed.adopt(PARENT, child);
                        births.push(child);
                        display.push(child);
                    }
                    Step::Orphan(child) => {
                        let stacks = [&mut newest, &mut committed].into_iter();
                        for stack in stacks.chain(&mut next).chain(&mut unsent) {
                            stack.orphan(child);
                        }
                        births.retain(|id| *id != child);
                        display.retain(|id| *id != child);
                    }
                    Step::Place(to) => {
                        let known = to.child != to.sibling && births.contains(&to.child) && births.contains(&to.sibling);
                        prop_assert_eq!(newest.place(to), known);
                        Stack::pend(&mut newest, &mut next);
                    }
                    Step::Commit => {
                        if let Some(newer) = next.take() {
                            committed.follow(&newer);
                            match &mut unsent {
                                Some(old) => old.fold(&newer),
                                None => unsent = Some(newer),
                            }
                        }
                    }
                    Step::Leave => {
                        let moves = unsent.take().map(|stack| stack.moves(PARENT));
                        moves.into_iter().flatten().for_each(|to| obey(&mut display, to));
                        let expected = if births.len() > 1 { committed.order() } else { &births };
                        prop_assert_eq!(&display, expected);
                    }
                    Step::Attach => {
                        display.clone_from(&births);
                        committed.moves(PARENT).into_iter().for_each(|to| obey(&mut display, to));
                        unsent = None;
                        Stack::pend_again(&mut newest, &committed, &mut next);
                    }
                    Step::Adopt(_) => {}
                }
            }
            prop_assert_eq!(committed.order(), newest.order());
        }
    }

    #[test]
    fn a_child_that_was_placed_below_one_that_is_gone_stays_there() {
        let mut stack = Stack::default();
        [2, 3, 4].into_iter().for_each(|child| stack.adopt(PARENT, child));
        assert!(stack.place(Move { child: 4, sibling: 2, above: false }));
        stack.orphan(2);
        assert_eq!(stack.order(), [PARENT, 4, 3]);
        assert_eq!(stack.moves(PARENT), [Move { child: 4, sibling: PARENT, above: true }]);
    }
}
