//! How objects came to be, and what they were told that lasts: what another display must hear to have the like.
//!
//! Lasting as the messages that said so, in the names between the halves, which are the same at every display. Does not
//! decide what is kept: the policy table does. Invariant: what is kept of one program stays below [`MAX_KEPT`].

use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use wayland_backend::protocol::Interface;

use crate::message::{Request, ToDisplay, WireArg, WireId};

/// Bytes that are kept of one program for another display, its pixels aside. An idle window needs less than two
/// thousand.
pub(crate) const MAX_KEPT: usize = 32 << 20;

/// Entries of a map or a list beside what they point to.
const ENTRY: usize = 48;

/// A message that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message(Box<[u8]>);

impl Message {
    pub(crate) fn new(message: &ToDisplay) -> Self {
        Self(message.encode().into_boxed_slice())
    }

    /// What was kept. Never `None`: it was made of a message.
    pub(crate) fn get(&self) -> Option<ToDisplay> {
        ToDisplay::decode(&self.0).ok()
    }

    /// What was kept, if it is a request.
    pub(crate) fn request(&self) -> Option<Request> {
        match self.get()? {
            ToDisplay::Request(request) => Some(request),
            _ => None,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        ENTRY + self.0.len()
    }
}

/// The contents that requests name: each is there once, however many name it.
#[derive(Debug, Default)]
pub(crate) struct Stock(BTreeMap<u128, Weak<[u8]>>);

impl Stock {
    /// A content to be kept, together with all others that keep it.
    pub(crate) fn share(&mut self, hash: u128, bytes: &[u8]) -> Rc<[u8]> {
        if let Some(shared) = self.0.get(&hash).and_then(Weak::upgrade) {
            return shared;
        }
        self.0.retain(|_, content| content.strong_count() > 0);
        let content = Rc::from(bytes);
        self.0.insert(hash, Rc::downgrade(&content));
        content
    }

    /// Bytes of all contents that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.0.values().filter_map(Weak::upgrade).map(|content| content.len()).sum()
    }
}

/// What one object went through.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// The bind or the request that made it; `None` if no other display can have it. Instead of the compositor's
    /// registry name a bind has the one that the program used.
    pub(crate) birth: Option<Message>,
    /// Requests whose effect lasts, oldest first.
    pub(crate) kept: Vec<Lasting>,
}

/// A request whose effect lasts.
#[derive(Debug)]
pub(crate) struct Lasting {
    /// A newer one of the same slot replaces it.
    pub(crate) slot: Option<&'static str>,
    /// Requests of all objects are repeated in this order.
    pub(crate) age: u64,
    pub(crate) message: Message,
    /// The content that it names.
    pub(crate) blob: Option<(u128, Rc<[u8]>)>,
}

impl Past {
    /// Keeps a request, in place of the last one of its slot.
    pub(crate) fn keep(&mut self, kept: Lasting) {
        if kept.slot.is_some() {
            self.kept.retain(|old| old.slot != kept.slot);
        }
        self.kept.push(kept);
    }

    /// The newest request of a slot.
    pub(crate) fn last(&self, slot: &str) -> Option<Request> {
        self.kept.iter().find(|kept| kept.slot == Some(slot))?.message.request()
    }

    /// Everything that is kept.
    fn messages(&self) -> impl Iterator<Item = &Message> {
        self.birth.iter().chain(self.kept.iter().map(|kept| &kept.message))
    }

    /// The objects that must be there first.
    pub(crate) fn needs(&self) -> impl Iterator<Item = WireId> {
        self.messages().filter_map(Message::request).flat_map(|request| names(&request).collect::<Vec<_>>())
    }

    /// Bytes of all that, without the contents that it names: others may name them, too.
    pub(crate) fn bytes(&self) -> usize {
        self.messages().map(Message::bytes).sum()
    }

    /// How old the requests are that name a content.
    pub(crate) fn pictures(&self) -> impl Iterator<Item = u64> {
        self.kept.iter().filter(|kept| kept.blob.is_some()).map(|kept| kept.age)
    }

    /// Forgets requests that name a content and are not newer than `age`.
    pub(crate) fn forget_pictures(&mut self, age: u64) {
        self.kept.retain(|kept| kept.blob.is_none() || kept.age > age);
    }
}

/// The objects that a request names, but those that it makes.
pub(crate) fn names(request: &Request) -> impl Iterator<Item = WireId> {
    let args = request.args.iter().filter_map(|arg| match arg {
        WireArg::Object(name) if *name != WireId::NULL => Some(*name),
        _ => None,
    });
    std::iter::once(request.object).chain(args)
}

/// Objects that the program has destroyed and that living ones came from: a global's objects, and icons.
#[derive(Debug, Default)]
pub(crate) struct Tombstones {
    tombstones: BTreeMap<WireId, Tombstone>,
    /// How many there may be before it is looked which of them are of use.
    most: usize,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Tombstone {
    pub(crate) interface: &'static Interface,
    pub(crate) version: u32,
    pub(crate) past: Past,
}

/// Tombstones that are kept without looking.
const FEW: usize = 64;

impl Tombstones {
    /// Keeps what is left of an object. Returns whether there are so many by now that [`Self::sweep`] is due.
    pub(crate) fn add(&mut self, name: WireId, tombstone: Tombstone) -> bool {
        self.tombstones.insert(name, tombstone);
        self.tombstones.len() > self.most.max(FEW)
    }

    pub(crate) fn of(&self, name: WireId) -> Option<&Tombstone> {
        self.tombstones.get(&name)
    }

    /// Those that the living need, and those that these need, oldest first.
    pub(crate) fn needed(&self, living: impl Iterator<Item = WireId>) -> Vec<WireId> {
        let mut found = BTreeMap::new();
        let mut todo: Vec<WireId> = living.filter(|name| self.tombstones.contains_key(name)).collect();
        while let Some(name) = todo.pop() {
            if let Some(tombstone) = self.tombstones.get(&name)
                && found.insert(name, ()).is_none()
            {
                todo.extend(tombstone.past.needs().filter(|name| self.tombstones.contains_key(name)));
            }
        }
        found.into_keys().collect()
    }

    /// Forgets those that no living object needs.
    pub(crate) fn sweep(&mut self, living: impl Iterator<Item = WireId>) {
        let needed = self.needed(living);
        self.tombstones.retain(|name, _| needed.binary_search(name).is_ok());
        self.most = 2 * self.tombstones.len();
    }

    /// What the objects went through.
    pub(crate) fn pasts(&self) -> impl Iterator<Item = &Past> {
        self.tombstones.values().map(|tombstone| &tombstone.past)
    }

    /// As [`Self::pasts`].
    pub(crate) fn pasts_mut(&mut self) -> impl Iterator<Item = &mut Past> {
        self.tombstones.values_mut().map(|tombstone| &mut tombstone.past)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.tombstones.values().map(|tombstone| ENTRY + tombstone.past.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(object: u64, args: Vec<WireArg>) -> Message {
        Message::new(&ToDisplay::Request(Request { object: WireId(object), opcode: 1, args }))
    }

    fn kept(slot: Option<&'static str>, age: u64) -> Lasting {
        Lasting { slot, age, message: request(4, Vec::new()), blob: None }
    }

    #[test]
    fn a_slot_keeps_the_newest_and_others_all() {
        let mut past = Past::default();
        for (slot, age) in [(Some("title"), 1), (None, 2), (Some("title"), 3), (None, 4)] {
            past.keep(kept(slot, age));
        }
        let ages: Vec<_> = past.kept.iter().map(|kept| kept.age).collect();
        assert_eq!(ages, [2, 3, 4]);
    }

    #[test]
    fn tombstones_last_as_long_as_somebody_needs_them() {
        let interface = crate::tables::interface("wl_seat").unwrap();
        let tombstone = |needs: u64| {
            let birth = Some(request(needs, vec![WireArg::NewId(WireId(90))]));
            Tombstone { interface, version: 1, past: Past { birth, kept: Vec::new() } }
        };
        let mut tombstones = Tombstones::default();
        for (name, needs) in [(4, 2), (6, 4), (8, 2)] {
            tombstones.add(WireId(name), tombstone(needs));
        }
        assert_eq!(tombstones.needed([WireId(6), WireId(100)].into_iter()), [WireId(4), WireId(6)]);
        tombstones.sweep([WireId(6)].into_iter());
        assert!(tombstones.of(WireId(8)).is_none() && tombstones.of(WireId(4)).is_some());
    }
}
