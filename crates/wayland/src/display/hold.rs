//! Units and requests that wait: for the pixels of an update, for a blob, for a free buffer, or for each other.
//!
//! A pure structure: it never looks into what waits. Everything that arrives brings a [`Claim`]: what it waits for
//! among the earlier ones still held, what it keeps from later ones, and which outside facts it [`Need`]s.
//! Something whose claim meets no held key and needs nothing is not held at all, so most requests pass.
//!
//! Invariant: an item leaves only when all its needs are met and no earlier item that is still held keeps a key
//! that it waits for. An item waits for earlier ones only, so there are no cycles: once every need is met or
//! cancelled, everything leaves.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::message::WireId;

/// What items are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// The order of commits of a surface, or of requests on another object.
    Order(WireId),
    /// The object is named by something held: its destructor waits.
    Use(WireId),
    /// The object is made by something held: what names it waits.
    Make(WireId),
    /// The surface is unmapped by something held, and its role loses what was asked of it: requests to what belongs to
    /// the surface wait.
    Unmap(WireId),
    /// The surface, or an object that was made for it, is ended by something held. Of most there may be one only, so
    /// what is made for the surface waits; and surfaces below may go with it, so their commits wait.
    End(WireId),
    /// The compositor owes an answer to something held: `wl_display.sync` waits.
    Reply,
}

/// A fact outside the held items that one of them waits for. Updates of one surface are in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The contents of this surface's unit are painted.
    Painted(WireId),
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
    items: BTreeMap<u64, Held<T>>,
    keys: HashMap<Key, Queue>,
    /// Who needs what.
    needs: BTreeMap<Need, BTreeSet<u64>>,
    /// Those that need not wait any longer.
    ready: BTreeSet<u64>,
    next_ticket: u64,
    /// What all items cost together.
    cost: u64,
    /// Entries of the above that were looked at, for tests that count.
    #[cfg(test)]
    steps: u64,
}

/// Who keeps a key, and who waits for it.
#[derive(Debug, Default)]
struct Queue {
    keepers: BTreeSet<u64>,
    waiters: BTreeSet<u64>,
}

/// An item that was let go; [`Holds::hold_again`] takes it back to its old place.
#[derive(Debug)]
pub(crate) struct Held<T> {
    ticket: u64,
    /// Each key and need once.
    claim: Claim,
    cost: u64,
    /// How many of its needs are not met, and of the keys that it waits for are kept by an earlier item.
    blocked: usize,
    /// The item.
    pub(crate) item: T,
}

impl<T> Default for Holds<T> {
    fn default() -> Self {
        Self {
            items: BTreeMap::new(),
            keys: HashMap::new(),
            needs: BTreeMap::new(),
            ready: BTreeSet::new(),
            next_ticket: 0,
            cost: 0,
            #[cfg(test)]
            steps: 0,
        }
    }
}

impl<T> Holds<T> {
    /// Whether an item with this claim may not proceed at once.
    pub(crate) fn must_wait(&self, claim: &Claim) -> bool {
        !claim.needs.is_empty() || claim.waits.iter().any(|key| self.keepers(key).next().is_some())
    }

    /// Whether nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Stands behind all that is held.
    pub(crate) fn mark(&self) -> u64 {
        self.next_ticket
    }

    /// Whether all has gone that was held before a [mark](Self::mark).
    pub(crate) fn has_gone(&self, mark: u64) -> bool {
        self.items.first_key_value().is_none_or(|(first, _)| *first >= mark)
    }

    /// Whether something need not wait any longer.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether something needs this.
    pub(crate) fn is_needed(&self, need: &Need) -> bool {
        self.needs.contains_key(need)
    }

    /// What is held and keeps a key, in the order of its arrival.
    pub(crate) fn keeping(&self, key: Key) -> impl Iterator<Item = &T> {
        self.keepers(&key).filter_map(|ticket| self.items.get(ticket)).map(|held| &held.item)
    }

    fn keepers(&self, key: &Key) -> impl Iterator<Item = &u64> + use<'_, T> {
        self.keys.get(key).into_iter().flat_map(|queue| &queue.keepers)
    }

    /// Holds an item that [must wait](Self::must_wait) behind all that are here. What it costs is the caller's measure;
    /// the caller bounds it.
    pub(crate) fn push(&mut self, claim: Claim, item: T, cost: u64) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.insert(Held { ticket, claim, cost, blocked: 0, item });
    }

    /// What all items cost together.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// A fact has come about.
    pub(crate) fn meet(&mut self, need: Need) {
        for ticket in self.needs.remove(&need).unwrap_or_default() {
            self.satisfy(ticket, need);
        }
    }

    /// A fact has come about, but for one item only: the first that needs it. Says whether there was one.
    pub(crate) fn meet_first(&mut self, need: Need) -> bool {
        let Some(of) = self.needs.get_mut(&need) else { return false };
        let first = of.pop_first();
        if of.is_empty() {
            self.needs.remove(&need);
        }
        first.inspect(|ticket| self.satisfy(*ticket, need)).is_some()
    }

    /// There may be a buffer for each surface.
    pub(crate) fn meet_buffers(&mut self) {
        let range = Need::Buffer(WireId(0))..=Need::Buffer(WireId(u64::MAX));
        while let Some(need) = self.needs.range(range.clone()).next().map(|(need, _)| *need) {
            self.meet(need);
        }
    }

    /// Updates of a surface have come about: the first ones, as far as `is_complete` holds for their numbers.
    pub(crate) fn meet_updates(&mut self, surface: WireId, is_complete: impl Fn(u64) -> bool) {
        let range = Need::Update { surface, seq: 0 }..=Need::Update { surface, seq: u64::MAX };
        while let Some((need, _)) = self.needs.range(range.clone()).next() {
            let (Need::Update { seq, .. }, need) = (*need, *need) else { return };
            if !is_complete(seq) {
                return;
            }
            self.meet(need);
        }
    }

    /// Updates of a surface that something needs, from `update` on and before `by`.
    pub(crate) fn updates_between(&self, surface: WireId, update: u64, by: u64) -> Vec<u64> {
        let range = Need::Update { surface, seq: update }..Need::Update { surface, seq: by.max(update) };
        let seq = |need: &Need| if let Need::Update { seq, .. } = need { Some(*seq) } else { None };
        self.needs.range(range).filter_map(|(need, _)| seq(need)).collect()
    }

    /// Surfaces of whose updates something needs one.
    pub(crate) fn surfaces_of_updates(&self) -> impl Iterator<Item = WireId> {
        let next = |after: Option<WireId>| {
            let from = after.map_or(WireId(0), |WireId(id)| WireId(id.saturating_add(1)));
            let range = self.needs.range(Need::Update { surface: from, seq: 0 }..);
            let first = range.map(|(need, _)| *need).next()?;
            if let Need::Update { surface, .. } = first { Some(surface) } else { None }
        };
        std::iter::successors(next(None), move |surface| next(Some(*surface)))
    }

    /// Lets the first item go that need not wait any longer.
    pub(crate) fn next(&mut self) -> Option<Held<T>> {
        let first = self.ready.first().copied()?;
        self.remove(first)
    }

    /// Takes an item back that turned out to need something more, to the place that it had.
    pub(crate) fn hold_again(&mut self, mut held: Held<T>, need: Need) {
        held.claim.needs.push(need);
        self.insert(held);
    }

    /// Looks at every held item that keeps a key; `change` gives what takes its place, if anything does.
    pub(crate) fn rewrite(&mut self, key: &Key, mut change: impl FnMut(Claim, T) -> Option<(Claim, T)>) {
        for ticket in self.keepers(key).copied().collect::<Vec<_>>() {
            let Some(Held { ticket, claim, cost, item, .. }) = self.remove(ticket) else { continue };
            let Some((claim, item)) = change(claim, item) else { continue };
            self.insert(Held { ticket, claim, cost, blocked: 0, item });
        }
    }

    /// Looks at every held item that needs something; `change` gives what takes its place.
    pub(crate) fn rewrite_needing(&mut self, need: Need, mut change: impl FnMut(Claim, T) -> (Claim, T)) {
        for ticket in self.needs.get(&need).cloned().unwrap_or_default() {
            let Some(Held { ticket, claim, cost, item, .. }) = self.remove(ticket) else { continue };
            let (claim, item) = change(claim, item);
            self.insert(Held { ticket, claim, cost, blocked: 0, item });
        }
    }

    fn insert(&mut self, mut held: Held<T>) {
        let ticket = held.ticket;
        once(&mut held.claim.waits);
        once(&mut held.claim.keeps);
        once(&mut held.claim.needs);
        for need in &held.claim.needs {
            self.needs.entry(*need).or_default().insert(ticket);
        }
        held.blocked = held.claim.needs.len();
        for key in &held.claim.waits {
            let queue = self.keys.entry(*key).or_default();
            queue.waiters.insert(ticket);
            held.blocked += usize::from(queue.keepers.first().is_some_and(|first| *first < ticket));
        }
        for key in &held.claim.keeps {
            let queue = self.keys.entry(*key).or_default();
            let before = queue.keepers.first().copied().unwrap_or(u64::MAX);
            queue.keepers.insert(ticket);
            if ticket < before {
                let blocked: Vec<u64> = behind(queue, ticket, before);
                blocked.into_iter().for_each(|ticket| self.block(ticket));
            }
        }
        self.cost += held.cost;
        if held.blocked == 0 {
            self.ready.insert(ticket);
        }
        self.items.insert(ticket, held);
    }

    fn remove(&mut self, ticket: u64) -> Option<Held<T>> {
        let held = self.items.remove(&ticket)?;
        self.ready.remove(&ticket);
        self.cost -= held.cost;
        for need in &held.claim.needs {
            if let Some(of) = self.needs.get_mut(need) {
                of.remove(&ticket);
                if of.is_empty() {
                    self.needs.remove(need);
                }
            }
        }
        for key in &held.claim.waits {
            self.keys.entry(*key).or_default().waiters.remove(&ticket);
            self.forget_unused(key);
        }
        for key in &held.claim.keeps {
            let queue = self.keys.entry(*key).or_default();
            let was_first = queue.keepers.first() == Some(&ticket);
            queue.keepers.remove(&ticket);
            if was_first {
                let after = queue.keepers.first().copied().unwrap_or(u64::MAX);
                let free: Vec<u64> = behind(queue, ticket, after);
                free.into_iter().for_each(|ticket| self.free(ticket));
            }
            self.forget_unused(key);
        }
        Some(held)
    }

    fn forget_unused(&mut self, key: &Key) {
        if self.keys.get(key).is_some_and(|queue| queue.keepers.is_empty() && queue.waiters.is_empty()) {
            self.keys.remove(key);
        }
    }

    fn satisfy(&mut self, ticket: u64, met: Need) {
        if let Some(held) = self.items.get_mut(&ticket) {
            held.claim.needs.retain(|need| *need != met);
            self.free(ticket);
        }
    }

    /// Something that an item was blocked by is no more.
    fn free(&mut self, ticket: u64) {
        self.step();
        if let Some(held) = self.items.get_mut(&ticket) {
            held.blocked -= 1;
            if held.blocked == 0 {
                self.ready.insert(ticket);
            }
        }
    }

    /// Something more blocks an item.
    fn block(&mut self, ticket: u64) {
        self.step();
        if let Some(held) = self.items.get_mut(&ticket) {
            held.blocked += 1;
            self.ready.remove(&ticket);
        }
    }

    fn step(&mut self) {
        #[cfg(test)]
        {
            self.steps += 1;
        }
    }
}

/// Who waits for a key behind an item, up to the next one that keeps it.
fn behind(queue: &Queue, ticket: u64, next: u64) -> Vec<u64> {
    let after = (std::ops::Bound::Excluded(ticket), std::ops::Bound::Included(next));
    queue.waiters.range(after).copied().collect()
}

/// Leaves each once.
fn once<T: Ord>(all: &mut Vec<T>) {
    all.sort_unstable();
    all.dedup();
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

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
            (0..SURFACES).map(surface).for_each(|surface| self.holds.meet(Need::Update { surface, seq }));
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
                        world.holds.meet(Need::Buffer(surface(s)));
                        world.pump(false);
                    }
                }
            }
            for seq in 0..12 {
                world.complete(seq);
            }
            (0..SURFACES).for_each(|s| world.holds.meet(Need::Buffer(surface(s))));
            world.pump(false);
            prop_assert!(world.holds.is_empty());
            prop_assert!(world.holds.keys.is_empty() && world.holds.needs.is_empty());
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
        world.holds.rewrite(&Key::Order(surface(0)), |claim, item| {
            (!matches!(item.1, Item::Unit { .. })).then_some((claim, item))
        });
        world.pump(false);
        assert_eq!(world.left, [1]);
        assert!(world.holds.keys.is_empty());
    }

    /// What [`Holds`] is to do, by the plainest means: every question looks at all items, in the order of their
    /// arrival.
    #[derive(Default)]
    struct Plain(Vec<(Claim, u32)>);

    impl Plain {
        fn must_wait(&self, claim: &Claim) -> bool {
            let kept = |key: &Key| self.0.iter().any(|(claim, _)| claim.keeps.contains(key));
            !claim.needs.is_empty() || claim.waits.iter().any(kept)
        }

        fn next(&self) -> Option<usize> {
            let mut kept = HashSet::new();
            self.0.iter().position(|(claim, _)| {
                let ready = claim.needs.is_empty() && !claim.waits.iter().any(|key| kept.contains(key));
                kept.extend(claim.keeps.iter().copied());
                ready
            })
        }

        fn meet(&mut self, met: impl Fn(&Need) -> bool) {
            self.0.iter_mut().for_each(|(claim, _)| claim.needs.retain(|need| !met(need)));
        }

        fn rewrite(&mut self, key: &Key, at: u32) {
            let items = std::mem::take(&mut self.0).into_iter();
            let changed = items.filter_map(|(claim, item)| {
                if claim.keeps.contains(key) { changed(claim, item, at) } else { Some((claim, item)) }
            });
            self.0 = changed.collect();
        }
    }

    /// Nothing, the same, or what keeps and needs less.
    fn changed(mut claim: Claim, item: u32, at: u32) -> Option<(Claim, u32)> {
        match (item + at) % 3 {
            0 => return None,
            1 => {}
            _ => {
                claim.keeps.retain(|key| matches!(key, Key::Order(_)));
                claim.needs.retain(|need| *need == Need::Turn);
            }
        }
        Some((claim, item))
    }

    fn need() -> impl Strategy<Value = Need> {
        prop_oneof![
            (0..SURFACES, 0u64..4).prop_map(|(s, seq)| Need::Update { surface: surface(s), seq }),
            (0..SURFACES).prop_map(|s| Need::Buffer(surface(s))),
            Just(Need::Turn),
        ]
    }

    fn key() -> impl Strategy<Value = Key> {
        (0..SURFACES, any::<bool>())
            .prop_map(|(s, order)| if order { Key::Order(surface(s)) } else { Key::Use(surface(s)) })
    }

    fn any_claim() -> impl Strategy<Value = Claim> {
        let keys = || prop::collection::vec(key(), 0..4);
        (keys(), keys(), prop::collection::vec(need(), 0..3)).prop_map(|(waits, keeps, needs)| Claim {
            waits,
            keeps,
            needs,
        })
    }

    #[derive(Debug, Clone)]
    enum Act {
        Push(Claim),
        Meet(Need),
        MeetFirst(Need),
        MeetUpdates(u64, u64),
        Next(Option<Need>),
        Rewrite(Key),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            6 => any_claim().prop_map(Act::Push),
            2 => need().prop_map(Act::Meet),
            1 => need().prop_map(Act::MeetFirst),
            2 => (0..SURFACES, 0u64..4).prop_map(|(s, seq)| Act::MeetUpdates(s, seq)),
            4 => prop::option::of(need()).prop_map(Act::Next),
            1 => key().prop_map(Act::Rewrite),
        ]
    }

    proptest! {
        #[test]
        fn items_leave_as_in_a_plain_list(acts in prop::collection::vec(act(), 0..100)) {
            let (mut holds, mut plain) = (Holds::default(), Plain::default());
            for (n, act) in (0u32..).zip(acts) {
                match act {
                    Act::Push(claim) => {
                        let must_wait = plain.must_wait(&claim);
                        prop_assert_eq!(holds.must_wait(&claim), must_wait);
                        if must_wait {
                            holds.push(claim.clone(), n, 1);
                            plain.0.push((claim, n));
                        }
                    }
                    Act::Meet(met) => {
                        holds.meet(met);
                        plain.meet(|need| *need == met);
                    }
                    Act::MeetFirst(met) => {
                        let first = plain.0.iter_mut().find(|(claim, _)| claim.needs.contains(&met));
                        prop_assert_eq!(holds.meet_first(met), first.is_some());
                        first.into_iter().for_each(|(claim, _)| claim.needs.retain(|need| *need != met));
                    }
                    Act::MeetUpdates(s, last) => {
                        let s = surface(s);
                        holds.meet_updates(s, |seq| seq <= last);
                        plain.meet(
                            |need| matches!(need, Need::Update { surface, seq } if *surface == s && *seq <= last),
                        );
                    }
                    Act::Next(again) => {
                        let expected = plain.next();
                        prop_assert_eq!(holds.has_ready(), expected.is_some());
                        let got = holds.next();
                        prop_assert_eq!(got.as_ref().map(|held| held.item), expected.map(|at| plain.0[at].1));
                        match (got, again, expected) {
                            (Some(held), Some(need), Some(at)) => {
                                holds.hold_again(held, need);
                                plain.0[at].0.needs.push(need);
                            }
                            (_, _, Some(at)) => drop(plain.0.remove(at)),
                            _ => {}
                        }
                    }
                    Act::Rewrite(key) => {
                        holds.rewrite(&key, |claim, item| changed(claim, item, n));
                        plain.rewrite(&key, n);
                    }
                }
            }
        }
    }

    /// A program's requests behind a large update, and small updates of other surfaces; then the large one comes.
    #[test]
    fn regression_each_update_costs_a_walk_over_all_that_is_held() {
        const HELD: u64 = 16_000;
        let mut holds = Holds::default();
        let (claim, _) = unit(vec![surface(0)], vec![Need::Update { surface: surface(0), seq: 1 }]);
        holds.push(claim, 0, 1);
        for n in 1..HELD {
            let (mut claim, _) = ordered(surface(0));
            claim.keeps.push(Key::Order(surface(0)));
            holds.push(claim, n, 1);
        }
        let before = holds.steps;
        for n in 0..512 {
            let (claim, _) = unit(vec![surface(1)], vec![Need::Update { surface: surface(1), seq: n }]);
            holds.push(claim, HELD + n, 1);
            holds.meet_updates(surface(1), |seq| seq <= n);
            assert_eq!(holds.next().map(|held| held.item), Some(HELD + n));
        }
        assert!(holds.steps - before <= 4 * 512, "{} steps", holds.steps - before);
        let before = holds.steps;
        holds.meet(Need::Update { surface: surface(0), seq: 1 });
        let left = std::iter::from_fn(|| holds.next()).map(|held| held.item);
        assert!(left.eq(0..HELD));
        assert!(holds.steps - before <= 4 * HELD, "{} steps", holds.steps - before);
    }

    /// What has to wait for its turn is looked at once, not in each turn.
    #[test]
    fn regression_each_turn_costs_a_walk_over_all_that_waits_for_one() {
        const HELD: u64 = 16_000;
        let mut holds = Holds::default();
        for n in 0..HELD {
            holds.push(Claim { needs: vec![Need::Turn], ..Claim::default() }, n, 1);
        }
        for _ in 0..512 {
            assert!(holds.meet_first(Need::Turn));
            let held = holds.next().expect("the first");
            assert_eq!(held.item, 0);
            holds.hold_again(held, Need::Turn);
        }
        assert!(holds.steps <= 4 * 512, "{} steps", holds.steps);
    }
}
