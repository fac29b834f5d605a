//! Units and requests that wait: for the pixels of an update, for a blob, for a free buffer, or for each other.
//!
//! A pure structure: it never looks into what waits. Everything that arrives brings a [`Claim`]: what it waits for
//! among the earlier ones still held, what it keeps from later ones, and which outside facts it [`Need`]s.
//! Something whose claim meets no held key and needs nothing is not held at all, so most requests pass.
//!
//! Invariant: an item leaves only when all its needs are met and no earlier item that is still held keeps a key
//! that it waits for. An item waits for earlier ones only, so there are no cycles: once every need is met or
//! cancelled, everything leaves.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::message::WireId;

/// What items are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// The order of commits of a surface, or of requests on another object.
    Order(WireId),
    /// The object is named by something held: its destructor waits.
    Use(WireId),
    /// The object is made by something held: whatever names it waits.
    Make(WireId),
    /// The surface is unmapped by something held, and its role loses what was asked of it: requests to what belongs to
    /// the surface wait.
    Unmap(WireId),
    /// The surface, or an object that was made for it, is ended by something held. Of most there may be one only, so what is
    /// made for the surface waits; and surfaces below may go with it, so their commits wait.
    End(WireId),
    /// The compositor owes an answer to something held: `wl_display.sync` waits.
    Reply,
}

/// A fact outside the held items that one of them waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Need {
    /// An update of a surface is complete.
    Update {
        /// The surface.
        surface: WireId,
        /// The update's number.
        seq: u64,
    },
    /// A blob is here.
    Blob(u128),
    /// The compositor has released a buffer of this surface.
    Buffer(WireId),
    /// There is time for something that takes long.
    Turn,
}

/// How an item relates to the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Keys that must not be kept by an earlier item.
    pub(crate) waits: Vec<Key>,
    /// Keys that later items must not wait for while this one is held.
    pub(crate) keeps: Vec<Key>,
    /// Facts that must hold first.
    pub(crate) needs: Vec<Need>,
}

/// Everything that waits, in the order of its arrival.
#[derive(Debug)]
pub(crate) struct Holds<T> {
    items: VecDeque<Held<T>>,
    /// How many held items keep each key.
    kept: HashMap<Key, usize>,
    next_ticket: u64,
    /// What all items cost together.
    cost: u64,
    /// Whether something may have become ready since the last fruitless search.
    stirred: bool,
}

/// An item that was let go; [`Holds::hold_again`] takes it back to its old place.
#[derive(Debug)]
pub(crate) struct Held<T> {
    ticket: u64,
    claim: Claim,
    cost: u64,
    /// The item.
    pub(crate) item: T,
}

impl<T> Default for Holds<T> {
    fn default() -> Self {
        Self { items: VecDeque::new(), kept: HashMap::new(), next_ticket: 0, cost: 0, stirred: false }
    }
}

impl<T> Holds<T> {
    /// Whether an item with this claim may not proceed at once.
    pub(crate) fn must_wait(&self, claim: &Claim) -> bool {
        !claim.needs.is_empty()
            || (!self.kept.is_empty() && claim.waits.iter().any(|key| self.kept.contains_key(key)))
    }

    /// Whether nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// What is held, in the order of its arrival.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().map(|held| &held.item)
    }

    /// Holds an item that [must wait](Self::must_wait) behind all that are here. What it costs is the caller's measure; the
    /// caller bounds it.
    pub(crate) fn push(&mut self, claim: Claim, item: T, cost: u64) {
        count(&mut self.kept, &claim.keeps);
        self.cost += cost;
        self.items.push_back(Held { ticket: self.next_ticket, claim, cost, item });
        self.next_ticket += 1;
    }

    /// What all items cost together.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// A fact has come about.
    pub(crate) fn meet(&mut self, met: impl Fn(&Need) -> bool) {
        for held in &mut self.items {
            let before = held.claim.needs.len();
            held.claim.needs.retain(|need| !met(need));
            self.stirred |= held.claim.needs.len() != before;
        }
    }

    /// Lets the first item go that need not wait any longer.
    pub(crate) fn next(&mut self) -> Option<Held<T>> {
        if !std::mem::take(&mut self.stirred) {
            return None;
        }
        let mut kept = HashSet::new();
        let ready = self.items.iter().position(|held| {
            let ready = held.claim.needs.is_empty() && !held.claim.waits.iter().any(|key| kept.contains(key));
            if !ready {
                kept.extend(held.claim.keeps.iter().copied());
            }
            ready
        })?;
        self.stirred = true;
        let held = self.items.remove(ready)?;
        discount(&mut self.kept, &held.claim.keeps);
        self.cost -= held.cost;
        Some(held)
    }

    /// Takes an item back that turned out to need something more, to the place that it had.
    pub(crate) fn hold_again(&mut self, mut held: Held<T>, need: Need) {
        held.claim.needs.push(need);
        count(&mut self.kept, &held.claim.keeps);
        self.cost += held.cost;
        let place = self.items.partition_point(|other| other.ticket < held.ticket);
        self.items.insert(place, held);
    }

    /// Looks at every held item; `change` gives the items, with their claims, that take its place.
    pub(crate) fn rewrite(&mut self, mut change: impl FnMut(Claim, T) -> Vec<(Claim, T)>) {
        self.kept.clear();
        self.cost = 0;
        for held in std::mem::take(&mut self.items) {
            let (ticket, mut cost) = (held.ticket, held.cost);
            for (claim, item) in change(held.claim, held.item) {
                count(&mut self.kept, &claim.keeps);
                self.cost += cost;
                self.items.push_back(Held { ticket, claim, cost: std::mem::take(&mut cost), item });
            }
        }
        self.stirred = true;
    }
}

fn count(kept: &mut HashMap<Key, usize>, keys: &[Key]) {
    for key in keys {
        *kept.entry(*key).or_default() += 1;
    }
}

fn discount(kept: &mut HashMap<Key, usize>, keys: &[Key]) {
    for key in keys {
        if let Some(n) = kept.get_mut(key) {
            *n -= 1;
            if *n == 0 {
                kept.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SURFACES: u64 = 4;

    fn surface(n: u64) -> WireId {
        WireId(4 + 2 * n)
    }

    /// What a scripted item was, and what it needed.
    #[derive(Debug, Clone, PartialEq)]
    enum Item {
        Unit { surfaces: Vec<WireId>, needs: Vec<Need> },
        Ordered(WireId),
        Destroy(WireId),
    }

    fn unit(surfaces: Vec<WireId>, needs: Vec<Need>) -> (Claim, Item) {
        let order: Vec<Key> = surfaces.iter().map(|s| Key::Order(*s)).collect();
        let mut keeps = order.clone();
        keeps.extend(surfaces.iter().map(|s| Key::Use(*s)));
        (Claim { waits: order, keeps, needs: needs.clone() }, Item::Unit { surfaces, needs })
    }

    fn ordered(s: WireId) -> (Claim, Item) {
        (Claim { waits: vec![Key::Order(s)], keeps: vec![Key::Use(s)], needs: vec![] }, Item::Ordered(s))
    }

    fn destroy(s: WireId) -> (Claim, Item) {
        (
            Claim { waits: vec![Key::Use(s), Key::Order(s)], keeps: vec![Key::Use(s)], needs: vec![] },
            Item::Destroy(s),
        )
    }

    #[derive(Debug, Clone)]
    enum Step {
        Arrive(u8, Vec<u64>, Vec<u64>),
        Complete(u64),
        Release(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u8..6, prop::collection::vec(0..SURFACES, 1..3), prop::collection::vec(0u64..12, 0..3))
                .prop_map(|(kind, surfaces, needs)| Step::Arrive(kind, surfaces, needs)),
            3 => (0u64..12).prop_map(Step::Complete),
            1 => (0..SURFACES).prop_map(Step::Release),
        ]
    }

    /// Runs the holds as the connection does and notes what left, in order.
    #[derive(Default)]
    struct World {
        holds: Holds<(usize, Item)>,
        arrived: Vec<Item>,
        left: Vec<usize>,
        complete: HashSet<u64>,
    }

    impl World {
        fn arrive(&mut self, claim: Claim, item: Item) {
            let index = self.arrived.len();
            self.arrived.push(item.clone());
            if self.holds.must_wait(&claim) {
                self.holds.push(claim, (index, item), 1);
            } else {
                self.left.push(index);
            }
            self.pump(index.is_multiple_of(5));
        }

        fn pump(&mut self, mut busy: bool) {
            while let Some(held) = self.holds.next() {
                if let (true, Item::Unit { surfaces, .. }) = (busy, &held.item.1) {
                    let need = Need::Buffer(surfaces[0]);
                    self.holds.hold_again(held, need);
                    busy = false;
                    continue;
                }
                if let Item::Unit { needs, .. } = &held.item.1 {
                    for need in needs {
                        let Need::Update { seq, .. } = need else { unreachable!() };
                        assert!(self.complete.contains(seq), "applied before its update");
                    }
                }
                self.left.push(held.item.0);
            }
        }

        fn complete(&mut self, seq: u64) {
            self.complete.insert(seq);
            self.holds.meet(|need| matches!(need, Need::Update { seq: s, .. } if *s == seq));
            self.pump(false);
        }

        fn check_order(&self) {
            let place = |index: usize| self.left.iter().position(|i| *i == index).expect("nothing is stuck");
            for (later, item) in self.arrived.iter().enumerate() {
                for (earlier, before) in self.arrived[..later].iter().enumerate() {
                    let in_order = match (before, item) {
                        (Item::Unit { surfaces: a, .. }, Item::Unit { surfaces: b, .. }) => {
                            a.iter().any(|s| b.contains(s))
                        }
                        (Item::Unit { surfaces, .. }, Item::Ordered(s) | Item::Destroy(s)) => {
                            surfaces.contains(s)
                        }
                        (Item::Ordered(a) | Item::Destroy(a), Item::Destroy(b)) => a == b,
                        _ => false,
                    };
                    assert!(!in_order || place(earlier) < place(later), "{before:?} must precede {item:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn order_is_kept_and_nothing_is_stuck(steps in prop::collection::vec(step(), 0..120)) {
            let mut world = World::default();
            for step in steps {
                match step {
                    Step::Arrive(kind, surfaces, needs) => {
                        let (claim, item) = match kind {
                            0 => ordered(surface(surfaces[0])),
                            1 => destroy(surface(surfaces[0])),
                            _ => {
                                let mut surfaces: Vec<_> = surfaces.into_iter().map(surface).collect();
                                surfaces.dedup();
                                let needs = needs.into_iter().filter(|seq| !world.complete.contains(seq));
                                let first = surfaces[0];
                                let needs = needs.map(|seq| Need::Update { surface: first, seq }).collect();
                                unit(surfaces, needs)
                            }
                        };
                        world.arrive(claim, item);
                    }
                    Step::Complete(seq) => world.complete(seq),
                    Step::Release(s) => {
                        world.holds.meet(|need| *need == Need::Buffer(surface(s)));
                        world.pump(false);
                    }
                }
            }
            for seq in 0..12 {
                world.complete(seq);
            }
            world.holds.meet(|need| matches!(need, Need::Buffer(_)));
            world.pump(false);
            prop_assert!(world.holds.is_empty());
            prop_assert!(world.holds.kept.is_empty());
            prop_assert_eq!(world.holds.cost(), 0);
            prop_assert_eq!(world.left.len(), world.arrived.len());
            world.check_order();
        }
    }

    #[test]
    fn a_unit_without_needs_passes_one_of_another_surface() {
        let mut world = World::default();
        let (claim, item) = unit(vec![surface(0)], vec![Need::Update { surface: surface(0), seq: 1 }]);
        world.arrive(claim, item);
        let (claim, item) = unit(vec![surface(1)], vec![]);
        world.arrive(claim, item);
        assert_eq!(world.left, [1]);
        world.complete(1);
        assert_eq!(world.left, [1, 0]);
    }

    #[test]
    fn rewriting_cancels_what_a_destroyed_surface_held() {
        let mut world = World::default();
        let (claim, item) = unit(vec![surface(0)], vec![Need::Update { surface: surface(0), seq: 1 }]);
        world.arrive(claim, item);
        let (claim, item) = ordered(surface(0));
        world.arrive(claim, item);
        assert!(world.left.is_empty());
        world.holds.rewrite(
            |claim, item| {
                if matches!(item.1, Item::Unit { .. }) { vec![] } else { vec![(claim, item)] }
            },
        );
        world.pump(false);
        assert_eq!(world.left, [1]);
        assert!(world.holds.kept.is_empty());
    }
}
