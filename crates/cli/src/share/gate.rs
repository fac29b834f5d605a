//! How often a way to a session of another machine is looked for, and for whom next.
//!
//! Each is a login there, and a page asks for one every few seconds for as long as it is open, also where there is none
//! to be had. Those that ask wait for their turn, in the order in which they came, but for a place that rests: a page
//! that leaves makes those of its own place wait, and no others. It is told what became of each, and has no clock of
//! its own. Invariant: of logins that lead nowhere no more than [`OPENINGS_MAX`] are under way, and they become fewer
//! until one is good.

use std::net::IpAddr;
use std::time::Duration;

use wayferry_proto::Time;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Gate {
    under_way: usize,
    /// Those that wait, the first of them first. There are no more than guests have WebSockets.
    waiting: Vec<(Number, IpAddr)>,
    count: u64,
    /// What ways that were not there have told, for all.
    rest: Rest,
    /// What pages that left have told, of their places.
    places: Vec<(IpAddr, Rest)>,
}

/// One that has asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number(u64);

/// What one that has asked is to do.
#[derive(Debug)]
pub(super) enum Turn {
    /// To look for its way.
    Now(Passage),
    /// To ask again.
    Later,
    /// To go: it would take long, and its page comes again.
    Never,
}

/// One that was let through.
#[derive(Debug)]
pub(super) struct Passage {
    began: Time,
    place: IpAddr,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The way is there.
    Open,
    /// There is none.
    Failed,
    /// Its page did not wait for it.
    Left,
}

/// For how long no way is looked for.
#[derive(Debug, Default, Clone, Copy)]
struct Rest {
    /// Failures since the last way was there, and when the last of them was.
    failures: u32,
    last: Time,
    until: Time,
    /// Until then it is no use to wait either.
    vain_until: Time,
}

impl Gate {
    /// A page at this place asks, behind those that do already. It is to [leave](Self::leave), or to
    /// [give up](Self::give_up), or was told to go.
    pub(super) fn ask(&mut self, place: IpAddr) -> Number {
        self.count += 1;
        self.waiting.push((Number(self.count), place));
        Number(self.count)
    }

    /// Whose turn it is, as far as this one is concerned.
    pub(super) fn turn(&mut self, now: Time, number: Number) -> Turn {
        let mine = self.waiting.iter().find(|(other, _)| *other == number);
        let Some(&(_, place)) = mine.filter(|(_, place)| !self.is_over(now, *place)) else {
            self.give_up(number);
            return Turn::Never;
        };
        let next = self.waiting.iter().find(|(_, place)| now >= self.rest_of(*place).until);
        if self.under_way >= OPENINGS_MAX || next.is_none_or(|(next, _)| *next != number) {
            return Turn::Later;
        }
        self.give_up(number);
        self.under_way += 1;
        Turn::Now(Passage { began: now, place })
    }

    /// This one waits no more.
    pub(super) fn give_up(&mut self, number: Number) {
        self.waiting.retain(|(other, _)| *other != number);
    }

    /// This one is looked for no more.
    #[expect(clippy::needless_pass_by_value, reason = "it is good once")]
    pub(super) fn leave(&mut self, now: Time, passage: Passage, end: End) {
        self.under_way -= 1;
        let Passage { began, place } = passage;
        match end {
            End::Open => {
                self.rest = Rest::default();
                self.places.retain(|(other, _)| *other != place);
            }
            End::Failed => self.rest.fail(now, began),
            // Its page may have found another way; that tells nothing of this one.
            End::Left if now - began < SLOW => self.rest_at(place).extend(now, REST_MIN),
            End::Left => self.rest_at(place).fail(now, began),
        }
    }

    /// Whether it is no use to wait: ways were not there.
    fn is_over(&self, now: Time, place: IpAddr) -> bool {
        [self.rest, self.rest_of(place)].iter().any(|rest| now < rest.vain_until)
    }

    fn rest_of(&self, place: IpAddr) -> Rest {
        self.places.iter().find(|(other, _)| *other == place).map_or_else(Rest::default, |(_, rest)| *rest)
    }

    /// The same, to be changed. Of too many places the one is forgotten that has rested first.
    fn rest_at(&mut self, place: IpAddr) -> &mut Rest {
        let index = self.places.iter().position(|(other, _)| *other == place).unwrap_or_else(|| {
            if self.places.len() >= PLACES_MAX {
                let first = (0..self.places.len()).min_by_key(|index| self.places[*index].1.until);
                first.map(|index| self.places.remove(index));
            }
            self.places.push((place, Rest::default()));
            self.places.len() - 1
        });
        &mut self.places[index].1
    }
}

impl Rest {
    fn extend(&mut self, now: Time, rest: Duration) {
        self.until = self.until.max(now + rest);
    }

    /// A way that was looked for since then was not there.
    fn fail(&mut self, now: Time, began: Time) {
        // Those that were looked for together have failed once.
        if self.failures > 0 && began < self.last {
            return;
        }
        let rest = REST_MIN * 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        self.extend(now, rest.min(REST_MAX));
        self.vain_until = self.until;
        (self.failures, self.last) = (self.failures.saturating_add(1), now);
    }
}

/// Ways that are looked for at once.
const OPENINGS_MAX: usize = 2;
/// Places of which it is known that a page has left.
const PLACES_MAX: usize = 16;
/// How long none is looked for after the first that was not there, and after many. Between, each time twice as long.
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(60);
/// How long a page waits at least for a way that does not come, before it is not the page's doing.
const SLOW: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::new(Duration::from_millis(millis))
    }

    fn place(number: u8) -> IpAddr {
        [192, 0, 2, number].into()
    }

    /// Lets one in that does not wait.
    fn enter(gate: &mut Gate, now: u64, place: IpAddr) -> Option<Passage> {
        let number = gate.ask(place);
        match gate.turn(at(now), number) {
            Turn::Now(passage) => Some(passage),
            Turn::Later | Turn::Never => {
                gate.give_up(number);
                None
            }
        }
    }

    /// When a page that asks every 100 ms was let through, where each is over after `taken` ms like this.
    fn asked(gate: &mut Gate, from: u64, until: u64, taken: u64, end: End) -> Vec<u64> {
        let (mut let_in, mut under_way) = (Vec::new(), Vec::<(u64, Passage)>::new());
        for now in (from..until).step_by(100) {
            while under_way.first().is_some_and(|(over, _)| *over <= now) {
                let (over, passage) = under_way.remove(0);
                gate.leave(at(over), passage, end);
            }
            if let Some(passage) = enter(gate, now, place(1)) {
                let_in.push(now);
                under_way.push((now + taken, passage));
            }
        }
        under_way.into_iter().for_each(|(over, passage)| gate.leave(at(over), passage, end));
        let_in
    }

    #[test]
    fn regression_ways_that_are_not_there_are_looked_for_ever_more_seldom() {
        let mut gate = Gate::default();
        let all = asked(&mut gate, 0, 300_000, 50, End::Failed);
        let waits: Vec<_> = all.windows(2).map(|pair| (pair[1] - pair[0]) / 1000).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert!(enter(&mut gate, 300_000, place(2)).is_none(), "for all places");
        // One is there: from then on it is as at first.
        let passage = enter(&mut gate, 400_000, place(1)).expect("the rest is over");
        gate.leave(at(401_000), passage, End::Open);
        assert_eq!(asked(&mut gate, 401_000, 403_500, 50, End::Failed), [401_000, 402_100]);
    }

    #[test]
    fn regression_two_are_looked_for_at_once_and_fail_as_one() {
        let mut gate = Gate::default();
        let all = asked(&mut gate, 0, 60_000, 10_000, End::Failed);
        assert_eq!(all, [0, 100, 11_000, 11_100, 23_000, 23_100, 37_000, 37_100, 55_000, 55_100]);
        let mut good = Gate::default();
        let all = asked(&mut good, 0, 3_000, 1_000, End::Open);
        assert_eq!(all, [0, 100, 1_000, 1_100, 2_000, 2_100], "two at once also where they are there");
    }

    #[test]
    fn who_leaves_soon_makes_its_place_wait_a_second_and_who_leaves_late_as_long_as_a_failure() {
        let mut gate = Gate::default();
        assert_eq!(asked(&mut gate, 0, 5_000, 50, End::Left), [0, 1_100, 2_200, 3_300, 4_400]);
        let mut gate = Gate::default();
        let slow = asked(&mut gate, 0, 40_000, 9_000, End::Left);
        assert_eq!(slow, [0, 100, 10_000, 10_100, 21_000, 21_100, 34_000, 34_100]);
    }

    #[test]
    fn regression_a_guest_that_comes_and_goes_keeps_those_of_other_places_out() {
        for taken in [50, 9_000] {
            let mut gate = Gate::default();
            assert!(!asked(&mut gate, 0, 20_000, taken, End::Left).is_empty());
            assert!(enter(&mut gate, 20_000, place(1)).is_none(), "it rests");
            assert!(enter(&mut gate, 20_000, place(2)).is_some(), "after {taken} ms");
        }
    }

    /// Of one place, as all browsers of this machine are: one of them comes and goes with four sockets.
    #[test]
    fn regression_a_guest_that_comes_and_goes_keeps_those_of_his_place_out() {
        let mut gate = Gate::default();
        // A page there has once left late, which is long ago.
        let passage = enter(&mut gate, 0, place(1)).expect("the first");
        gate.leave(at(5_000), passage, End::Left);
        let mut others: Vec<_> = (0..4).map(|_| gate.ask(place(1))).collect();
        let mut under_way = Vec::<(u64, Passage)>::new();
        let mine = gate.ask(place(1));
        let is_mine = (10_000..20_000).step_by(100).find(|&now| {
            for (_, passage) in under_way.extract_if(.., |(began, _)| *began + 400 <= now) {
                gate.leave(at(now), passage, End::Left);
            }
            for other in &mut others {
                if let Turn::Now(passage) = gate.turn(at(now), *other) {
                    under_way.push((now, passage));
                    *other = gate.ask(place(1));
                }
            }
            matches!(gate.turn(at(now), mine), Turn::Now(_))
        });
        assert_eq!(is_mine, Some(12_800), "after the four, two at once, and their two rests");
    }

    #[test]
    fn who_waits_has_the_next_turn_and_who_gives_up_none() {
        let mut gate = Gate::default();
        let passages = [1, 2].map(|number| enter(&mut gate, 0, place(number)).expect("two at once"));
        let [gone, first, second] = [3, 1, 4].map(|number| gate.ask(place(number)));
        assert!(matches!(gate.turn(at(10), first), Turn::Later));
        gate.give_up(gone);
        let [one, _two] = passages;
        gate.leave(at(20), one, End::Open);
        assert!(matches!(gate.turn(at(20), second), Turn::Later), "another was before");
        assert!(matches!(gate.turn(at(20), gone), Turn::Never));
        let Turn::Now(passage) = gate.turn(at(20), first) else { panic!("it was first") };
        gate.leave(at(30), passage, End::Failed);
        assert!(matches!(gate.turn(at(30), second), Turn::Never), "there is no way for some time");
    }

    #[test]
    fn few_places_are_kept() {
        let mut gate = Gate::default();
        for number in 0..200 {
            let passage = enter(&mut gate, 0, place(number)).expect("a place of its own");
            gate.leave(at(u64::from(number)), passage, End::Left);
        }
        assert_eq!(gate.places.len(), PLACES_MAX);
        assert!(gate.places.iter().any(|(other, _)| *other == place(199)), "the last");
    }
}
