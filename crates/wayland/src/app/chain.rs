//! The last updates of one surface, and which of them the next one can cover.
//!
//! A surface that changes all the time need not be repaired: its next update paints what the last few have painted,
//! too, so that what of those is lost costs one frame. That pays where the changes are in one place. Knows regions and
//! numbers; does not encode, and sends nothing. Invariant: an update covers the ones right before it, which no other
//! message came between, and only if all that they painted is known.

use std::collections::VecDeque;
use std::time::Duration;

use wayferry_pixels::Region;
use wayferry_proto::{MAX_COVERED, Time, UpdateSeq};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// Updates that the display side is not known to have applied, the newest last.
    links: VecDeque<Link>,
    /// When the last contents left.
    times: VecDeque<Time>,
    /// The update that is being made, after how many messages, and how many it is to cover.
    planned: Option<(UpdateSeq, u64, u8)>,
    /// The input that was answered last, and by how many updates.
    answered: (Option<Time>, u32),
}

/// An update that can be covered.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) update: UpdateSeq,
    /// The unit that shows it.
    pub(super) unit: u64,
    /// How many messages had been sent before it.
    pub(super) after: u64,
    pub(super) painted: Region,
}

impl Chain {
    /// Content leaves; it is of any kind.
    pub(super) fn beat(&mut self, now: Time) {
        if self.times.len() >= BUSY {
            self.times.pop_front();
        }
        self.times.push_back(now);
        self.planned = None;
    }

    /// Whether so much has left within a round trip that a loss is better made up for by what comes next.
    pub(super) fn is_busy(&self, now: Time, rtt: Duration) -> bool {
        let first = self.times.front().filter(|_| self.times.len() >= BUSY && !rtt.is_zero());
        first.is_some_and(|first| now.since(*first) <= rtt)
    }

    /// Decides how many updates the next one covers that has to paint `changed`; gives what it is to paint for them.
    pub(super) fn plan(&mut self, next: UpdateSeq, after: u64, changed: &Region) -> Region {
        let most = (changed.area() + changed.area() / 2).min(MOST_PIXELS);
        let (mut all, mut covered, mut count) = (changed.clone(), Region::default(), 0);
        for link in self.links.iter().rev() {
            if link.update.0 + u64::from(count) + 1 != next.0 || link.after != after {
                break;
            }
            all.union(&link.painted);
            if all.area() > most {
                break;
            }
            covered.union(&link.painted);
            count += 1;
        }
        self.planned = Some((next, after, count)).filter(|_| count > 0);
        covered
    }

    /// How many updates this one was planned to cover, which leaves after so many messages. None if one was sent since:
    /// it has said a unit that shows one of them.
    pub(super) fn take_planned(&mut self, update: UpdateSeq, after: u64) -> u8 {
        let planned = self.planned.take();
        planned
            .filter(|(planned, then, _)| (*planned, *then) == (update, after))
            .map_or(0, |(.., count)| count)
    }

    /// An update leaves that the next ones can cover.
    pub(super) fn add(&mut self, link: Link) {
        if self.links.len() >= usize::from(MAX_COVERED) {
            self.links.pop_front();
        }
        self.links.push_back(link);
    }

    /// An update leaves that may answer the input of then: its number among those, from 1; 0 if there was none.
    pub(super) fn answers(&mut self, input: Option<Time>) -> u32 {
        let (last, count) = self.answered;
        let before = if last == input { count } else { 0 };
        self.answered = (input, before + u32::from(input.is_some()));
        self.answered.1
    }

    /// The display side has applied a unit, and so all before it.
    pub(super) fn on_applied(&mut self, unit: u64) {
        while self.links.front().is_some_and(|link| link.unit <= unit) {
            self.links.pop_front();
        }
    }
}

/// Contents within a round trip from which on a surface is busy.
const BUSY: usize = 3;

/// Pixels of an update that covers: it is made in one piece.
const MOST_PIXELS: u64 = 128 << 10;

#[cfg(test)]
mod tests {
    use wayferry_pixels::Rect;

    use super::*;

    fn square(x: u32, side: u32) -> Region {
        [Rect { x, y: 0, width: side, height: side }].into_iter().collect()
    }

    fn chain(links: &[(u64, u64, Region)]) -> Chain {
        let mut chain = Chain::default();
        for (update, after, painted) in links {
            let (update, painted) = (UpdateSeq(*update), painted.clone());
            chain.add(Link { update, unit: 10 * update.0, after: *after, painted });
        }
        chain
    }

    fn planned(chain: &mut Chain, next: u64, after: u64, changed: &Region) -> (u8, u64) {
        let area = chain.plan(UpdateSeq(next), after, changed).area();
        assert_eq!(chain.take_planned(UpdateSeq(next + 1), after), 0, "it is for one update");
        chain.plan(UpdateSeq(next), after, changed);
        assert_eq!(
            chain.take_planned(UpdateSeq(next), after + 1),
            0,
            "regression: a message was sent meanwhile"
        );
        chain.plan(UpdateSeq(next), after, changed);
        (chain.take_planned(UpdateSeq(next), after), area)
    }

    #[test]
    fn what_changes_in_place_covers_the_last_few() {
        let spot = || square(0, 10);
        let mut chain = chain(&[1, 2, 3, 4, 5, 6, 7, 8, 9].map(|update| (update, 7, spot())));
        assert_eq!(planned(&mut chain, 10, 7, &spot()), (MAX_COVERED, 100));
        chain.on_applied(80);
        assert_eq!(planned(&mut chain, 10, 7, &spot()), (1, 100), "the others are there");
        assert_eq!(planned(&mut chain, 11, 7, &spot()), (0, 0), "one in between cannot be covered");
        assert_eq!(planned(&mut chain, 10, 8, &spot()), (0, 0), "something was said in between");
    }

    #[test]
    fn no_more_is_covered_than_costs_half_as_much_again() {
        let mut chain = chain(&[(1, 0, square(90, 10)), (2, 0, square(5, 10)), (3, 0, square(0, 10))]);
        assert_eq!(planned(&mut chain, 4, 0, &square(0, 10)), (2, 150));
        assert_eq!(planned(&mut chain, 4, 0, &square(50, 2)), (0, 0));
        assert_eq!(planned(&mut chain, 4, 0, &square(0, 1000)), (0, 0), "it is in several pieces anyway");
    }

    #[test]
    fn a_surface_is_busy_with_three_contents_within_a_round_trip() {
        let (mut chain, rtt) = (Chain::default(), Duration::from_millis(50));
        for at in [1000, 1017, 1033] {
            assert!(!chain.is_busy(Time::from_millis(at), rtt));
            chain.beat(Time::from_millis(at));
        }
        assert!(chain.is_busy(Time::from_millis(1050), rtt));
        assert!(!chain.is_busy(Time::from_millis(1051), rtt));
        assert!(!chain.is_busy(Time::from_millis(1033), Duration::ZERO), "it is not known yet");
    }
}
