//! The way between the halves: each message and each update has a time at which it arrives.
//!
//! What carriers see to is taken for granted: messages of a direction arrive once and in order, however often they were
//! lost or copied below, so that what is lost is late; updates are streams of their own and overtake each other. While
//! the carrier is cut nothing arrives; when it is there again all does that was under way.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use wayferry_proto::{SurfaceId, Time, UpdateSeq};

use crate::rig::Rig;

/// How long a message takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delay {
    pub(crate) one_way: u64,
    pub(crate) jitter: u64,
    /// Of a thousand, how many are lost and sent again, up to [`TRIES`] times.
    pub(crate) lost: u64,
}

/// How often one message is lost at most.
const TRIES: u64 = 3;

impl Delay {
    /// The longest that a message takes, in milliseconds.
    pub(crate) fn longest(self) -> u64 {
        self.one_way * (1 + 3 * TRIES) + self.jitter
    }
}

pub(crate) struct Link {
    delay: Delay,
    dice: u64,
    down: VecDeque<Time>,
    up: VecDeque<Time>,
    updates: BTreeMap<(SurfaceId, UpdateSeq), Time>,
    /// The carrier is away until then.
    away: Option<Time>,
}

impl Link {
    pub(crate) fn new(delay: Delay, dice: u64) -> Self {
        Self { delay, dice, down: VecDeque::new(), up: VecDeque::new(), updates: BTreeMap::new(), away: None }
    }

    pub(crate) fn is_away(&self, now: Time) -> bool {
        self.away.is_some_and(|until| now < until)
    }

    /// The carrier is lost, and comes again then.
    pub(crate) fn cut(&mut self, now: Time, until: Time) {
        self.away = Some(until);
        let (down, up) = (self.down.len(), self.up.len());
        self.down.clear();
        self.up.clear();
        self.note_messages(now, down, up);
        let updates: Vec<_> = self.updates.keys().copied().collect();
        for update in updates {
            let at = self.arrival(now);
            self.updates.insert(update, at);
        }
    }

    /// What is under way is lost for ever, with the display.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.delay, self.dice);
    }

    /// Delivers one thing that has arrived by now, if any has.
    pub(crate) fn deliver(&mut self, rig: &mut Rig) -> bool {
        self.note(rig);
        let now = rig.now;
        let update = self.updates.iter().find(|(_, at)| **at <= now).map(|(update, _)| *update);
        if self.up.pop_front_if(|at| *at <= now).is_some() {
            rig.deliver_up(1);
        } else if self.down.pop_front_if(|at| *at <= now).is_some() {
            rig.deliver_down(1);
        } else if let Some(update) = update {
            self.updates.remove(&update);
            let place = rig.updates_under_way().position(|other| other == update);
            rig.update(place.expect("it is under way"));
        } else {
            return false;
        }
        true
    }

    /// Gives a time to what is new.
    fn note(&mut self, rig: &Rig) {
        let (down, up) = rig.messages_under_way();
        self.note_messages(rig.now, down, up);
        // Those that were taken back never arrive.
        let under_way: Vec<_> = rig.updates_under_way().collect();
        self.updates.retain(|update, _| under_way.contains(update));
        for update in under_way {
            let at = self.arrival(rig.now);
            self.updates.entry(update).or_insert(at);
        }
    }

    fn note_messages(&mut self, now: Time, down: usize, up: usize) {
        while self.down.len() < down {
            let (at, last) = (self.arrival(now), self.down.back().copied());
            self.down.push_back(last.map_or(at, |last| last.max(at)));
        }
        while self.up.len() < up {
            let (at, last) = (self.arrival(now), self.up.back().copied());
            self.up.push_back(last.map_or(at, |last| last.max(at)));
        }
    }

    fn arrival(&mut self, now: Time) -> Time {
        let sent = self.away.map_or(now, |until| until.max(now));
        let Delay { one_way, jitter, lost } = self.delay;
        let again = (0..TRIES).take_while(|_| self.roll() % 1000 < lost).count() as u64;
        sent + Duration::from_millis(one_way * (1 + 3 * again) + self.roll() % (jitter + 1))
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.dice >> 33
    }
}
