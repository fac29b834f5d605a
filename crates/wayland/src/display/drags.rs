//! What is dragged over a program's windows: which lists of addresses are watched, and the events that wait for one.
//!
//! A list that a program at the desk offers may name files of the desk. So the program does not read it by itself: this
//! side reads it once, the run loop makes it one that means the same where the program is, and only then the program
//! hears that it was dropped. What programs of a session drag carries [`MARK`]; it is of their machine, or of another
//! session's, and passes as it is. Sends nothing. Invariants: of a device, only what entered it last and has not left
//! it can be dropped; events of a drag keep their order, and each is told at last.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::message::WireId;

/// The type that each source has which a program of a session drags, at the desk. No program of a session sees it.
pub(super) const MARK: &[u8] = b"application/x-wayferry-drag";

/// The type of lists of addresses.
pub(super) const LIST: &[u8] = b"text/uri-list";

/// Types that name files of the desk in other ways than a list. They are seen where no list is made anew.
pub(super) const HIDDEN: [&[u8]; 4] = [
    b"application/x-kde4-urilist",
    b"application/vnd.portal.filetransfer",
    b"application/vnd.portal.files",
    b"x-special/gnome-copied-files",
];

/// The books.
#[derive(Debug, Default)]
pub(super) struct Drags {
    offers: HashMap<WireId, Offer>,
    /// Drags so far.
    count: u64,
    /// Drops that the program has not heard of.
    untold: BTreeSet<u64>,
    /// Messages that wait for that.
    events: VecDeque<Held>,
}

#[derive(Debug)]
struct Held {
    object: WireId,
    is_motion: bool,
    message: Vec<u8>,
}

/// What is known of an offer that has a list, the mark, or something that is hidden beside a list.
#[derive(Debug, Default)]
struct Offer {
    has_list: bool,
    is_marked: bool,
    /// Types of it that the program has not been told.
    hidden: Vec<&'static [u8]>,
    place: Place,
    /// The number of the drag, once the program has asked for its list, or the user has dropped it.
    number: Option<u64>,
}

/// Where what is offered is.
#[derive(Debug, Default, PartialEq, Eq)]
enum Place {
    /// The next event says it.
    #[default]
    Unknown,
    Clipboard,
    /// Dragged over the program, as this device tells.
    Over(WireId),
    /// Dragged elsewhere.
    Left,
    Dropped,
}

/// A drag, whose list is to be read if that is `new`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Watched {
    pub(super) number: u64,
    pub(super) new: bool,
}

impl Offer {
    /// Whether its list is the run loop's to give.
    fn is_watched(&self) -> bool {
        self.has_list && !self.is_marked && self.place != Place::Clipboard
    }
}

impl Drags {
    /// An offer has this type.
    pub(super) fn offered(&mut self, offer: WireId, kind: &[u8]) {
        match kind {
            LIST => self.offers.entry(offer).or_default().has_list = true,
            MARK => self.offers.entry(offer).or_default().is_marked = true,
            _ => {
                if let Some(kind) = HIDDEN.into_iter().find(|hidden| *hidden == kind) {
                    let hidden = &mut self.offers.entry(offer).or_default().hidden;
                    hidden.retain(|known| *known != kind);
                    hidden.push(kind);
                }
            }
        }
    }

    /// The types that the program may be told of an offer now that its place is known.
    pub(super) fn reveal(&mut self, offer: WireId) -> Vec<&'static [u8]> {
        let offer = self.offers.get_mut(&offer).filter(|offer| !offer.is_watched());
        offer.map(|offer| std::mem::take(&mut offer.hidden)).unwrap_or_default()
    }

    /// Whether what an offer has of this type is kept from the program.
    pub(super) fn hides(&self, offer: WireId, kind: &[u8]) -> bool {
        HIDDEN.contains(&kind) && self.offers.get(&offer).is_some_and(Offer::is_watched)
    }

    /// It is what was copied.
    pub(super) fn selected(&mut self, offer: WireId) {
        if let Some(offer) = self.offers.get_mut(&offer) {
            offer.place = Place::Clipboard;
        }
    }

    /// It is dragged over the program, after [`Self::leave`] of what was before.
    pub(super) fn enter(&mut self, device: WireId, offer: WireId) {
        if let Some(offer) = self.offers.get_mut(&offer) {
            offer.place = Place::Over(device);
        }
    }

    /// What is dragged has left the program's window, or the device ends. Gives the drag that is over by that.
    pub(super) fn leave(&mut self, device: WireId) -> Option<u64> {
        let offer = self.offers.values_mut().find(|offer| offer.place == Place::Over(device))?;
        offer.place = Place::Left;
        offer.number
    }

    /// The user has dropped what is dragged. Gives the offer, and the drag that the program is to hear of later.
    pub(super) fn dropped(&mut self, device: WireId) -> Option<(WireId, Watched)> {
        let (wire, offer) = self.offers.iter_mut().find(|(_, offer)| offer.place == Place::Over(device))?;
        offer.place = Place::Dropped;
        let wire = *wire;
        let watched = self.watch(wire)?;
        self.untold.insert(watched.number);
        Some((wire, watched))
    }

    /// The program asks for the list of an offer: which drag's, if it is not the offer's own to give.
    pub(super) fn watch(&mut self, offer: WireId) -> Option<Watched> {
        let offer = self.offers.get_mut(&offer).filter(|offer| offer.is_watched())?;
        let is_first = offer.number.is_none();
        self.count += u64::from(is_first);
        let number = *offer.number.get_or_insert(self.count);
        // Of one that has left, the run loop knows nothing and gives an empty list.
        Some(Watched { number, new: is_first && offer.place != Place::Left })
    }

    /// The program has destroyed an offer. Gives its drag, which is over.
    pub(super) fn remove(&mut self, offer: WireId) -> Option<u64> {
        let number = self.offers.remove(&offer)?.number?;
        self.untold.remove(&number);
        Some(number)
    }

    /// Whether an event waits: one of a drag, or of what was dropped. The clipboard and new offers go on.
    pub(super) fn holds(&self, interface: &str, object: WireId, name: &str) -> bool {
        let are_held = !self.untold.is_empty() || !self.events.is_empty();
        let is_of_drag = match interface {
            "wl_data_device" => !matches!(name, "data_offer" | "selection"),
            "wl_data_offer" => self.offers.get(&object).is_some_and(|offer| offer.place == Place::Dropped),
            _ => false,
        };
        are_held && is_of_drag
    }

    /// Keeps an event back. Of where the pointer is, which is told again and again, the newest counts.
    pub(super) fn hold(&mut self, object: WireId, name: &str, message: Vec<u8>) {
        let is_motion = name == "motion";
        if self.events.len() >= MAX_EVENTS || name == "enter" {
            // A flood, or the next drag: the program hears of all drops now, and waits for their lists instead.
            self.untold.clear();
        }
        if is_motion {
            self.events.pop_back_if(|last| last.is_motion && last.object == object);
        }
        self.events.push_back(Held { object, is_motion, message });
    }

    /// The list of a drop is ready.
    pub(super) fn ready(&mut self, number: u64) {
        self.untold.remove(&number);
    }

    /// The next event that need not wait any more.
    pub(super) fn next(&mut self) -> Option<(WireId, Vec<u8>)> {
        let held = if self.untold.is_empty() { self.events.pop_front() } else { None };
        held.map(|held| (held.object, held.message))
    }
}

/// Events that wait until a program may hear of a drop.
const MAX_EVENTS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: WireId = WireId(4);
    const OFFER: WireId = WireId(5);

    fn over(kinds: &[&[u8]]) -> Drags {
        let mut drags = Drags::default();
        kinds.iter().for_each(|kind| drags.offered(OFFER, kind));
        drags.enter(DEVICE, OFFER);
        drags
    }

    #[test]
    fn a_list_of_the_desk_alone_is_watched_and_only_while_it_is_dragged() {
        assert_eq!(over(&[LIST]).watch(OFFER), Some(Watched { number: 1, new: true }));
        for kinds in [&[b"text/plain" as &[u8]][..], &[LIST, MARK], &[MARK, LIST], &[]] {
            let mut drags = over(kinds);
            assert_eq!((drags.watch(OFFER), drags.dropped(DEVICE)), (None, None), "{kinds:?}");
            assert!(!drags.holds("wl_data_device", DEVICE, "drop"));
        }
        let mut clipboard = Drags::default();
        clipboard.offered(OFFER, LIST);
        clipboard.selected(OFFER);
        assert_eq!(clipboard.watch(OFFER), None);
    }

    #[test]
    fn what_leaves_undropped_is_over_and_what_was_dropped_is_not() {
        let mut drags = over(&[LIST]);
        let number = drags.watch(OFFER).map(|drag| drag.number);
        assert_eq!(drags.leave(DEVICE), number);
        assert_eq!(drags.watch(OFFER), Some(Watched { number: 1, new: false }), "of a drag that is over");
        assert_eq!(drags.dropped(DEVICE), None);
        drags.remove(OFFER);
        let mut drags = over(&[LIST]);
        assert_eq!(drags.dropped(DEVICE), Some((OFFER, Watched { number: 1, new: true })));
        assert_eq!(drags.leave(DEVICE), None);
        assert_eq!(drags.watch(OFFER), Some(Watched { number: 1, new: false }), "the program may ask now");
        assert_eq!(drags.remove(OFFER), Some(1));
        assert_eq!(drags.watch(OFFER), None);
    }

    #[test]
    fn events_wait_in_order_for_the_list_of_a_drop() {
        let mut drags = over(&[LIST]);
        drags.dropped(DEVICE);
        for (name, message) in
            [("drop", "drop"), ("motion", "older"), ("motion", "newer"), ("leave", "leave")]
        {
            assert!(drags.holds("wl_data_device", DEVICE, name) && !drags.holds("wl_keyboard", DEVICE, name));
            drags.hold(DEVICE, name, message.into());
        }
        assert_eq!(drags.next(), None);
        drags.ready(1);
        let told: Vec<_> = std::iter::from_fn(|| drags.next()).map(|(_, message)| message).collect();
        assert_eq!(told, [&b"drop"[..], b"newer", b"leave"], "and of motions the newest");
        assert!(!drags.holds("wl_data_device", DEVICE, "drop"));
    }

    #[test]
    fn the_next_drag_does_not_wait_for_the_last_ones_files() {
        let mut drags = over(&[LIST]);
        drags.dropped(DEVICE);
        drags.hold(DEVICE, "drop", b"drop".to_vec());
        assert_eq!(drags.next(), None);
        drags.hold(DEVICE, "enter", b"enter".to_vec());
        let told: Vec<_> = std::iter::from_fn(|| drags.next()).map(|(_, message)| message).collect();
        assert_eq!(told, [&b"drop"[..], b"enter"]);
    }

    #[test]
    fn the_clipboard_and_new_offers_do_not_wait_for_dropped_files() {
        let mut drags = over(&[LIST]);
        drags.dropped(DEVICE);
        drags.hold(DEVICE, "drop", Vec::new());
        for name in ["data_offer", "selection"] {
            assert!(!drags.holds("wl_data_device", DEVICE, name), "{name}");
        }
        assert!(!drags.holds("wl_data_offer", WireId(7), "offer"));
        assert!(drags.holds("wl_data_offer", OFFER, "action"), "of what was dropped");
    }

    #[test]
    fn a_flood_of_events_does_not_wait_for_a_drop() {
        let mut drags = over(&[LIST]);
        drags.dropped(DEVICE);
        for _ in 0..=MAX_EVENTS {
            assert_eq!(drags.next(), None);
            drags.hold(DEVICE, "leave", Vec::new());
        }
        assert_eq!(std::iter::from_fn(|| drags.next()).count(), MAX_EVENTS + 1);
    }
}
