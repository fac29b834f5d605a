//! What the link has lost of late, told to a peer that shows it.
//!
//! A look at the link's counts goes with each answer to a ping. Invariant: what is told is of one link, and of packets
//! whose fate is known.

use std::collections::VecDeque;

use crate::LinkState;

/// How many looks lie between the two ends of what is counted.
const LOOKS: usize = 10;

/// What became of the packets that a side sent within the last seconds of traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// How many they were: acknowledged or lost.
    pub packets: u64,
    /// How many of them were lost; not more.
    pub lost: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Losses {
    now: Loss,
    /// The counts at the last looks, the latest at the back.
    seen: VecDeque<Loss>,
    told: Option<Loss>,
}

impl Losses {
    pub(super) fn set_link(&mut self, link: &LinkState) {
        if link.payload.is_none() {
            return; // there are no packets: what a byte stream counts is never lost
        }
        let lost = link.lost_packets;
        let now = Loss { packets: link.acked_packets.saturating_add(lost), lost };
        if now.packets < self.now.packets || now.lost < self.now.lost {
            *self = Self::default(); // another link
        }
        self.now = now;
    }

    /// What is to be told now, if it is news.
    pub(super) fn look(&mut self) -> Option<Loss> {
        let since = self.seen.front().copied().unwrap_or_default();
        let loss = Loss { packets: self.now.packets - since.packets, lost: self.now.lost - since.lost };
        self.seen.push_back(self.now);
        if self.seen.len() > LOOKS {
            self.seen.pop_front();
        }
        (loss.packets > 0 && self.told.replace(loss) != Some(loss)).then_some(loss)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{APP, LinkPlan, Pair};
    use super::*;
    use crate::{Capabilities, Config, Side};

    fn link(acked_packets: u64, lost_packets: u64) -> LinkState {
        LinkState { payload: Some(1200), acked_packets, lost_packets, ..LinkState::default() }
    }

    /// Looks after each hundred packets, of which the first five hundred lose ten each.
    #[test]
    fn it_tells_of_the_last_looks_and_only_what_is_news() {
        let mut losses = Losses::default();
        assert_eq!(losses.look(), None);
        let mut told = Vec::new();
        for look in 1..=20 {
            let lost = 10 * look.min(5);
            losses.set_link(&link(100 * look - lost, lost));
            told.extend(losses.look().map(|loss| (loss.packets, loss.lost)));
        }
        let begin = [(100, 10), (200, 20), (300, 30), (400, 40), (500, 50)];
        assert_eq!(told[..5], begin);
        assert_eq!(told[9..], [50, 40, 30, 20, 10, 0].map(|lost| (1000, lost)));
        // No packet was sent since: what is counted gets less, and in the end nothing is told.
        let rest: Vec<_> = (0..30).map_while(|_| losses.look()).collect();
        assert!(rest.len() <= LOOKS, "{rest:?}");
        assert_eq!(losses.look(), None);
    }

    #[test]
    fn regression_a_byte_stream_was_said_to_lose_nothing() {
        let mut losses = Losses::default();
        losses.set_link(&LinkState { payload: None, ..link(1000, 0) });
        assert_eq!(losses.look(), None);
    }

    #[test]
    fn another_link_begins_anew() {
        let mut losses = Losses::default();
        losses.set_link(&link(1000, 500));
        assert!(losses.look().is_some());
        losses.set_link(&link(10, 0));
        assert_eq!(losses.look(), Some(Loss { packets: 10, lost: 0 }));
    }

    #[test]
    fn a_display_that_shows_it_is_told_and_others_are_not() {
        let with = |side, capabilities| Config { capabilities, ..Config::new(side) };
        for shown in [Capabilities::LOSS, Capabilities::NONE] {
            let app = with(Side::App, Capabilities::LOSS);
            let mut pair = Pair::new(app, with(Side::Display, shown), LinkPlan::CLEAN, 0);
            let counts = LinkState { window: 1 << 20, idle: true, ..link(970, 30) };
            pair.links[APP] = Some(counts);
            pair.run(Duration::from_secs(60));
            let told = (shown == Capabilities::LOSS).then_some(Loss { packets: 1000, lost: 30 });
            assert_eq!(pair.display().peer_loss(), told);
            assert_eq!(pair.app().peer_loss(), None);
            assert!(pair.ends.iter().all(|end| end.warnings() == 0));
        }
    }
}
