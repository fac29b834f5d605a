//! When a session leaves the carrier that it has for a better one. Sans-IO.
//!
//! A session begins on the byte stream on which its two sides met, as that is there at once, and moves to QUIC when
//! that answers: not while its first picture is on its way, and not in the middle of a burst, for a move costs a round
//! trip. Where QUIC does not answer it is tried again, ever more seldom. What falls silent on QUIC goes back to the
//! byte stream, if the other side brings one. How carriers are made, and how a session goes on over another, is not
//! decided here. The caller asks only while the session has a carrier and has been let in: before that the app side
//! would take a second connection for a stranger's. Invariant: the session never moves to what it is on.

use std::time::Duration;

use wayferry_proto::Time;

/// What carries a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// QUIC, over UDP.
    Quic,
    /// A byte stream: ssh, or another command.
    Stream,
}

/// The state of the search for something better. See the module.
#[derive(Debug)]
pub(crate) struct Moving {
    on: Way,
    /// Since when it has been on that.
    since: Time,
    probe: Probe,
    /// Pause after the next try that fails.
    pause: Duration,
    /// When content came last; and whether any has.
    content: Option<Time>,
    /// QUIC has carried something of the session, ever; and since the session last went there.
    proven: bool,
    carries: bool,
}

/// How likely QUIC is to answer in a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hope {
    /// It has carried the session, and goes first.
    Likely,
    /// Not known.
    Open,
    /// It let the session come and carried nothing of it: it goes last, after so long.
    Faint(Duration),
}

/// The next try of QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    /// Begins then.
    Rests(Time),
    /// Is under way.
    Runs,
    /// Has succeeded; the connection waits for a good moment, no longer than to then.
    Waits(Time),
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Begin a try of QUIC.
    Try,
    /// Go over to the QUIC connection that waits.
    Go,
}

impl Moving {
    /// For a session that begins on the byte stream at `now`.
    pub(crate) fn new(now: Time) -> Self {
        let probe = Probe::Rests(now);
        Self {
            on: Way::Stream,
            since: now,
            probe,
            pause: FIRST_PAUSE,
            content: None,
            proven: false,
            carries: false,
        }
    }

    /// What carries the session, as far as this was told.
    pub(crate) fn on(&self) -> Way {
        self.on
    }

    /// What to expect of QUIC now that the carrier is lost. A firewall may let handshakes pass and nothing else.
    pub(crate) fn hope(&self) -> Hope {
        match self.on {
            Way::Quic if !self.carries => Hope::Faint(self.pause.min(LONGEST_FAINT)),
            _ if self.proven => Hope::Likely,
            _ => Hope::Open,
        }
    }

    /// The session has gone on over what carries it.
    pub(crate) fn carried(&mut self) {
        self.carries = true;
        self.proven |= self.on == Way::Quic;
    }

    /// Pixels have come.
    pub(crate) fn note_content(&mut self, now: Time) {
        self.content = Some(now);
    }

    /// What is due, of a session that has been let in.
    pub(crate) fn step(&mut self, now: Time) -> Option<Step> {
        match self.probe {
            Probe::Rests(at) if self.on == Way::Stream && at <= now => {
                self.probe = Probe::Runs;
                Some(Step::Try)
            }
            Probe::Waits(until) if until <= now || self.is_quiet(now) => Some(Step::Go),
            _ => None,
        }
    }

    /// When [`Moving::step`] may have something.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        match self.probe {
            Probe::Rests(at) => (self.on == Way::Stream).then_some(at),
            Probe::Runs => None,
            Probe::Waits(until) => Some(self.content.map_or(until, |at| until.min(at + QUIET))),
        }
    }

    /// The try has succeeded.
    pub(crate) fn found(&mut self, now: Time) {
        self.probe = Probe::Waits(now + LONGEST_WAIT);
    }

    /// The try has failed, or what it found is lost. Says whether it was the first one.
    pub(crate) fn failed(&mut self, now: Time) -> bool {
        let first = !self.proven && self.pause == FIRST_PAUSE;
        self.rest(now);
        first
    }

    /// The session is on that from now on.
    pub(crate) fn went(&mut self, now: Time, on: Way) {
        match on {
            Way::Quic => self.probe = Probe::Rests(now),
            Way::Stream => {
                if self.on == Way::Quic && now.since(self.since) >= LASTING {
                    self.pause = FIRST_PAUSE;
                }
                self.rest(now);
            }
        }
        (self.on, self.since, self.carries) = (on, now, false);
    }

    fn rest(&mut self, now: Time) {
        self.probe = Probe::Rests(now + self.pause);
        self.pause = (self.pause * 2).min(LAST_PAUSE);
    }

    fn is_quiet(&self, now: Time) -> bool {
        self.content.is_some_and(|at| at + QUIET <= now)
    }
}

/// Pause after the first try that failed, and after a return from QUIC; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// Longest pause.
const LAST_PAUSE: Duration = Duration::from_secs(600);
/// A session that was on QUIC for so long has left it for a new reason.
const LASTING: Duration = Duration::from_secs(60);
/// Longest time for which QUIC is left out of a search.
const LONGEST_FAINT: Duration = Duration::from_secs(30);
/// A burst is over when no pixels have come for so long.
const QUIET: Duration = Duration::from_millis(100);
/// How long a connection waits for that.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn a_move_waits_for_the_first_picture_and_a_quiet_moment() {
        let mut moving = Moving::new(at(0));
        assert_eq!(moving.step(at(0)), Some(Step::Try), "at once");
        assert_eq!((moving.step(at(1)), moving.next_timeout()), (None, None), "one at a time");
        moving.found(at(50));
        assert_eq!(moving.step(at(60)), None, "nothing has been seen");
        moving.note_content(at(200));
        moving.note_content(at(290));
        assert_eq!((moving.step(at(380)), moving.next_timeout()), (None, Some(at(390))));
        assert_eq!(moving.step(at(390)), Some(Step::Go));
        moving.went(at(390), Way::Quic);
        assert_eq!((moving.step(at(99_999)), moving.next_timeout()), (None, None));
    }

    #[test]
    fn what_never_pauses_moves_all_the_same() {
        let mut moving = Moving::new(at(0));
        assert_eq!(moving.step(at(0)), Some(Step::Try));
        moving.found(at(100));
        for now in (100..2_100).step_by(16) {
            moving.note_content(at(now));
            assert_eq!(moving.step(at(now)), None);
        }
        assert_eq!(moving.step(at(2_100)), Some(Step::Go));
    }

    #[test]
    fn tries_become_seldom_until_quic_has_lasted() {
        let mut moving = Moving::new(at(0));
        let (mut now, mut pauses) = (at(0), Vec::new());
        for _ in 0..9 {
            assert_eq!(moving.step(now), Some(Step::Try));
            assert_eq!(moving.failed(now), pauses.is_empty());
            let next = moving.next_timeout().expect("another try");
            pauses.push(next.since(now).as_secs());
            now = next;
        }
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
        moving.step(now);
        moving.found(now);
        moving.went(now, Way::Quic);
        // It does not last: the firewall lets handshakes pass and nothing else.
        moving.went(now + Duration::from_secs(4), Way::Stream);
        assert_eq!(moving.next_timeout(), Some(now + Duration::from_secs(604)));
        now += Duration::from_secs(604);
        moving.step(now);
        moving.found(now);
        moving.went(now, Way::Quic);
        moving.went(now + LASTING, Way::Stream);
        assert_eq!(moving.next_timeout(), Some(now + LASTING + FIRST_PAUSE));
    }

    #[test]
    fn regression_a_firewall_that_passes_handshakes_alone_has_quic_go_last() {
        let mut moving = Moving::new(at(0));
        assert_eq!(moving.hope(), Hope::Open);
        moving.step(at(0));
        moving.found(at(50));
        moving.went(at(100), Way::Quic);
        assert_eq!(moving.hope(), Hope::Faint(FIRST_PAUSE), "nothing has come over it");
        moving.went(at(200), Way::Stream);
        assert_eq!(moving.hope(), Hope::Open);
        moving.went(at(300), Way::Quic);
        moving.carried();
        assert_eq!(moving.hope(), Hope::Likely);
        moving.went(at(400), Way::Stream);
        assert_eq!(moving.hope(), Hope::Likely, "it has carried the session before");
        moving.went(at(500), Way::Quic);
        assert!(matches!(moving.hope(), Hope::Faint(_)), "this time it does not");
    }

    #[derive(Debug, Clone, Copy)]
    enum Happens {
        Passes(u16),
        Content,
        Fails,
        Succeeds,
        Returns,
    }

    fn happens() -> impl Strategy<Value = Happens> {
        prop_oneof![
            (0..3_000_u16).prop_map(Happens::Passes),
            (0..150_u16).prop_map(Happens::Passes),
            Just(Happens::Content),
            Just(Happens::Fails),
            Just(Happens::Succeeds),
            Just(Happens::Returns),
        ]
    }

    proptest! {
        /// One try at a time; a session goes to QUIC only from the stream; a found connection is used in time; a stream
        /// is never left without a next try.
        #[test]
        fn it_never_moves_in_vain(course in proptest::collection::vec(happens(), 0..200)) {
            let (mut moving, mut now) = (Moving::new(at(0)), at(0));
            let (mut runs, mut found) = (false, None::<Time>);
            for what in course {
                match what {
                    Happens::Passes(millis) => now += Duration::from_millis(millis.into()),
                    Happens::Content => moving.note_content(now),
                    Happens::Fails if runs => {
                        moving.failed(now);
                        runs = false;
                    }
                    Happens::Succeeds if runs => {
                        moving.found(now);
                        (runs, found) = (false, Some(now));
                    }
                    Happens::Returns if moving.on() == Way::Quic => moving.went(now, Way::Stream),
                    _ => {}
                }
                match moving.step(now) {
                    Some(Step::Try) => {
                        prop_assert!(!runs && found.is_none() && moving.on() == Way::Stream);
                        runs = true;
                    }
                    Some(Step::Go) => {
                        prop_assert!(found.take().is_some() && moving.on() == Way::Stream);
                        moving.went(now, Way::Quic);
                    }
                    None => {
                        let is_late = found.is_some_and(|at| at + LONGEST_WAIT <= now);
                        prop_assert!(!is_late, "a connection is left waiting");
                    }
                }
                let waits = moving.next_timeout().is_some();
                prop_assert!(moving.on() == Way::Quic || runs || waits);
            }
        }
    }
}
