//! How often a way to a session of another machine is looked for.
//!
//! Each is a login there, and a page asks for one every few seconds for as long as it is open, also where there is none
//! to be had. It is told what became of each, and has no clock of its own. Invariant: of logins that lead nowhere no
//! more than [`OPENINGS_MAX`] are under way, and they become fewer until one is good.

use std::time::Duration;

use wayferry_proto::Time;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Gate {
    under_way: usize,
    /// Failures since the last way was there, and when the last of them was.
    failures: u32,
    last: Time,
    /// Until then all are turned away.
    rests_until: Time,
}

/// One that was let through.
#[derive(Debug)]
pub(super) struct Passage {
    began: Time,
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

impl Gate {
    /// Whether another may be looked for now.
    pub(super) fn enter(&mut self, now: Time) -> Option<Passage> {
        if self.under_way >= OPENINGS_MAX || now < self.rests_until {
            return None;
        }
        self.under_way += 1;
        Some(Passage { began: now })
    }

    /// This one is looked for no more.
    #[expect(clippy::needless_pass_by_value, reason = "it is good once")]
    pub(super) fn leave(&mut self, now: Time, passage: Passage, end: End) {
        self.under_way -= 1;
        let Passage { began } = passage;
        match end {
            End::Open => (self.failures, self.rests_until) = (0, now),
            // Its page may have found another way; that tells nothing of this one.
            End::Left if now - began < SLOW => self.rest(now, REST_MIN),
            // Those that were looked for together have failed once.
            End::Failed | End::Left if self.failures > 0 && began < self.last => {}
            End::Failed | End::Left => {
                let rest = REST_MIN * 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
                self.rest(now, rest.min(REST_MAX));
                (self.failures, self.last) = (self.failures.saturating_add(1), now);
            }
        }
    }

    fn rest(&mut self, now: Time, rest: Duration) {
        self.rests_until = self.rests_until.max(now + rest);
    }
}

/// Ways that are looked for at once.
const OPENINGS_MAX: usize = 2;
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

    /// When a page that asks every 100 ms was let through, where each is over after `taken` ms like this.
    fn asked(gate: &mut Gate, from: u64, until: u64, taken: u64, end: End) -> Vec<u64> {
        let (mut let_in, mut under_way) = (Vec::new(), Vec::<(u64, Passage)>::new());
        for now in (from..until).step_by(100) {
            while under_way.first().is_some_and(|(over, _)| *over <= now) {
                let (over, passage) = under_way.remove(0);
                gate.leave(at(over), passage, end);
            }
            if let Some(passage) = gate.enter(at(now)) {
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
        // One is there: from then on it is as at first.
        let passage = gate.enter(at(400_000)).expect("the rest is over");
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
    fn who_leaves_soon_makes_others_wait_a_second_and_who_leaves_late_as_long_as_a_failure() {
        let mut gate = Gate::default();
        assert_eq!(asked(&mut gate, 0, 5_000, 50, End::Left), [0, 1_100, 2_200, 3_300, 4_400]);
        let mut gate = Gate::default();
        let slow = asked(&mut gate, 0, 40_000, 9_000, End::Left);
        assert_eq!(slow, [0, 100, 10_000, 10_100, 21_000, 21_100, 34_000, 34_100]);
    }
}
