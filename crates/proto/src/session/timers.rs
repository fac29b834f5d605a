//! When a session has something to do unasked: pings, the end of patience, the turns of pipes, receipts.
//!
//! It only says what is due. Where nothing but pings goes either way, the session rests: pings become rarer, and
//! nothing is expected of a peer that was not asked. Invariant: at most one ping is unanswered, so an outage queues
//! none.

use std::time::Duration;

use crate::{Error, Side, Time};

/// How often the peer is pinged while the session does not rest, and how long nothing else went either way if it does.
const PING_INTERVAL: Duration = Duration::from_secs(1);

/// Most that passes at rest before a peer that is not heard is pinged: less than what a NAT forgets after.
const LONGEST_REST: Duration = Duration::from_secs(10);

/// An app side has so many times the patience at rest: what the display asks tells both.
const APP_PATIENCE: f64 = 1.5;

/// How long the peer's hello may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a peer may be silent at the least: two pings in a row are late then.
const MIN_SILENCE: Duration = Duration::from_secs(3);

/// Most pings of the peer within [`PING_INTERVAL`]; each costs an answer.
const MAX_PINGS: u32 = 20;

/// Pipes get a turn before content for [`PIPE_TURN`] of each such period: a tenth of the link.
const PIPE_PERIOD: Duration = Duration::from_millis(100);

/// See [`PIPE_PERIOD`].
const PIPE_TURN: Duration = Duration::from_millis(10);

/// How long after the first delivery the peer is told at the latest.
const RECEIPT_DELAY: Duration = Duration::from_millis(100);

/// It is told at once when so many bytes have been delivered: a sender keeps what it has not been told of.
const RECEIPT_BYTES: usize = 64 << 10;

/// The session's clockwork.
#[derive(Debug)]
pub(super) struct Timers {
    /// When the peer was last heard.
    heard: Time,
    /// When a rest last ended in a question to the peer.
    asked: Time,
    /// When anything but pings last went either way.
    busy: Time,
    /// How long the peer may be silent.
    silence: Duration,
    /// How long it is left alone at rest, at the most.
    rest: Duration,
    side: Side,
    phase: Phase,
    ping: Ping,
    /// Start of the interval in which the peer's pings are counted, and their number.
    pinged: (Time, u32),
    boost: Boost,
    /// When the peer is to be told what has been delivered.
    receipt: Option<Time>,
}

#[derive(Debug)]
enum Phase {
    /// Waiting for the peer's hello until then.
    Handshake {
        until: Time,
    },
    Ready,
}

#[derive(Debug)]
enum Ping {
    Next { at: Time, token: u64 },
    Waiting { since: Time, token: u64 },
}

#[derive(Debug)]
enum Boost {
    Off { until: Time },
    On { until: Time },
}

/// What is to be done now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The peer has been silent for too long.
    Silence,
    /// Send a ping with this token.
    Ping(u64),
    /// Give pipes a turn, or end it.
    Boost(bool),
    /// Tell the peer what has been delivered.
    Receipt,
}

impl Timers {
    pub(super) fn new(start: Time, silence: Duration, side: Side) -> Self {
        let silence = silence.max(MIN_SILENCE);
        Self {
            heard: start,
            asked: start,
            busy: start,
            silence,
            // One ping that is late is not silence.
            rest: LONGEST_REST.min(silence / 3),
            side,
            phase: Phase::Handshake { until: start + HANDSHAKE_TIMEOUT },
            ping: Ping::Next { at: start, token: 0 },
            pinged: (start, 0),
            boost: Boost::Off { until: start },
            receipt: None,
        }
    }

    /// The peer was last heard on the carrier before; on this one it has patience for a handshake.
    pub(super) fn inherit(&mut self, old: &Self) {
        (self.heard, self.asked) = (old.heard, old.asked);
    }

    /// Something other than a ping went either way.
    pub(super) fn worked(&mut self, now: Time) {
        if self.rests(now) {
            self.asked = now;
        }
        self.busy = now;
    }

    /// Whether nothing is expected of the peer.
    fn rests(&self, now: Time) -> bool {
        let is_answered = matches!((&self.phase, &self.ping), (Phase::Ready, Ping::Next { .. }));
        is_answered && now >= self.busy + PING_INTERVAL
    }

    /// So many bytes have been delivered since the peer was told.
    pub(super) fn news(&mut self, now: Time, bytes: usize) {
        let due = if bytes >= RECEIPT_BYTES { now } else { now + RECEIPT_DELAY };
        self.receipt = Some(self.receipt.map_or(due, |before| before.min(due)));
    }

    /// The peer's hello came, and all else that was to come with it.
    pub(super) fn ready(&mut self, now: Time) {
        if matches!(self.phase, Phase::Handshake { .. }) {
            self.phase = Phase::Ready;
            self.ping = Ping::Next { at: now, token: 0 };
        }
    }

    /// Something of the peer arrived.
    pub(super) fn heard(&mut self, now: Time) {
        self.heard = self.heard.max(now);
    }

    /// Since when the peer owes a word, if it does.
    pub(super) fn owed_since(&self, now: Time) -> Option<Time> {
        (!self.rests(now)).then(|| self.last_contact())
    }

    /// When the peer was last heard, or asked after a rest.
    pub(super) fn last_contact(&self) -> Time {
        self.heard.max(self.asked)
    }

    /// A ping of the peer came.
    pub(super) fn pinged(&mut self, now: Time) -> Result<(), Error> {
        if now - self.pinged.0 >= PING_INTERVAL {
            self.pinged = (now, 0);
        }
        self.pinged.1 += 1;
        if self.pinged.1 > MAX_PINGS {
            return Err(Error::TooMuch { limit: "pings in a second", max: MAX_PINGS.into() });
        }
        Ok(())
    }

    /// The answer to a ping came: gives when that was sent.
    pub(super) fn ponged(&mut self, got: u64) -> Result<Time, Error> {
        match self.ping {
            Ping::Waiting { since, token } if token == got => {
                self.ping = Ping::Next { at: since + PING_INTERVAL, token: token + 1 };
                Ok(since)
            }
            _ => Err(Error::Violation { expected: "an answer to a ping", got: format!("a pong for {got}") }),
        }
    }

    /// When a ping leaves that may at `at`. At rest that is when the peer has not been heard for as long as the rest
    /// had lasted before.
    fn ping_at(&self, at: Time) -> Time {
        if at <= self.busy + PING_INTERVAL {
            return at;
        }
        let rest = self.heard.since(self.busy).clamp(PING_INTERVAL, self.rest);
        let patience = match self.side {
            Side::Display => rest,
            Side::App => rest.mul_f64(APP_PATIENCE),
        };
        at.max(self.heard + patience)
    }

    /// When something is due next.
    pub(super) fn next(&self, pipes: bool) -> Time {
        let silence = match self.phase {
            Phase::Handshake { until } => return until,
            Phase::Ready => self.heard + self.silence,
        };
        let ping = match self.ping {
            Ping::Next { at, .. } => self.ping_at(at),
            Ping::Waiting { .. } => silence,
        };
        let boost = match self.boost {
            Boost::Off { until } if pipes => until,
            Boost::On { until } => until,
            Boost::Off { .. } => silence,
        };
        silence.min(ping).min(boost).min(self.receipt.unwrap_or(silence))
    }

    /// Takes one thing that is due.
    pub(super) fn due(&mut self, now: Time, pipes: bool) -> Option<Due> {
        match self.phase {
            Phase::Handshake { until } => return (now >= until).then_some(Due::Silence),
            Phase::Ready if now >= self.heard + self.silence => return Some(Due::Silence),
            Phase::Ready => {}
        }
        if self.receipt.is_some_and(|at| now >= at) {
            self.receipt = None;
            return Some(Due::Receipt);
        }
        match (&self.ping, &self.boost) {
            (Ping::Next { at, token }, _) if now >= self.ping_at(*at) => {
                let token = *token;
                if self.rests(now) {
                    self.asked = now;
                }
                self.ping = Ping::Waiting { since: now, token };
                Some(Due::Ping(token))
            }
            (_, Boost::Off { until }) if pipes && now >= *until => {
                self.boost = Boost::On { until: now + PIPE_TURN };
                Some(Due::Boost(true))
            }
            (_, Boost::On { until }) if now >= *until => {
                self.boost = Boost::Off { until: now + (PIPE_PERIOD - PIPE_TURN) };
                Some(Due::Boost(false))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_secs(60);

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn a_handshake_has_ten_seconds() {
        let mut timers = Timers::new(at(500), SILENCE, Side::Display);
        assert_eq!(timers.next(true), at(10_500));
        timers.heard(at(10_000));
        assert_eq!(timers.due(at(10_499), true), None);
        assert_eq!(timers.due(at(10_500), true), Some(Due::Silence));
    }

    #[test]
    fn one_ping_at_a_time() {
        let mut timers = Timers::new(at(0), SILENCE, Side::Display);
        timers.ready(at(40));
        assert_eq!(timers.due(at(40), false), Some(Due::Ping(0)));
        assert_eq!(timers.due(at(5_000), false), None);
        assert!(timers.ponged(1).is_err());
        assert_eq!(timers.ponged(0), Ok(at(40)));
        assert!(timers.ponged(0).is_err());
        assert_eq!(timers.next(false), at(1_040));
        assert_eq!(timers.due(at(5_000), false), Some(Due::Ping(1)));
    }

    #[test]
    fn sixty_silent_seconds_are_the_end() {
        let mut timers = Timers::new(at(0), SILENCE, Side::Display);
        timers.ready(at(0));
        timers.due(at(0), false);
        timers.heard(at(7_000));
        assert_eq!(timers.next(false), at(67_000));
        assert_eq!(timers.due(at(66_999), false), None);
        assert_eq!(timers.owed_since(at(66_999)), Some(at(7_000)));
        assert_eq!(timers.due(at(67_000), false), Some(Due::Silence));
    }

    #[test]
    fn a_user_may_want_less_silence_but_not_less_than_pings_take() {
        for (wanted, most) in [(20, 20), (1, 3)] {
            let mut timers = Timers::new(at(0), Duration::from_secs(wanted), Side::Display);
            timers.ready(at(0));
            timers.due(at(0), false);
            assert_eq!(timers.next(false), at(most * 1000));
            assert_eq!(timers.due(at(most * 1000 - 1), false), None);
            assert_eq!(timers.due(at(most * 1000), false), Some(Due::Silence));
        }
    }

    /// Does what is due until then, and answers pings at once; gives how many there were.
    fn pass(timers: &mut Timers, until: u64) -> u64 {
        let mut pings = 0;
        while timers.next(false) <= at(until) {
            let now = timers.next(false);
            if let Some(Due::Ping(token)) = timers.due(now, false) {
                timers.heard(now);
                timers.ponged(token).unwrap();
                pings += 1;
            }
        }
        pings
    }

    #[test]
    fn at_rest_pings_become_rare_and_nothing_is_owed_between_them() {
        let mut timers = Timers::new(at(0), SILENCE, Side::Display);
        timers.ready(at(0));
        let times: Vec<u64> = (0..60).filter(|second| pass(&mut timers, second * 1_000) > 0).collect();
        assert_eq!(times, [0, 1, 2, 4, 8, 16, 26, 36, 46, 56]);
        assert_eq!(timers.owed_since(at(57_000)), None);
        // What the peer asks tells as much as its answer.
        timers.heard(at(60_000));
        assert_eq!(timers.next(false), at(70_000));
        assert!(matches!(timers.due(at(70_000), false), Some(Due::Ping(_))));
        assert_eq!(timers.owed_since(at(72_000)), Some(at(70_000)));
        assert_eq!(timers.next(false), at(120_000), "the end of patience");
    }

    #[test]
    fn at_rest_the_display_asks_and_the_app_side_only_if_it_does_not() {
        let mut timers = Timers::new(at(0), SILENCE, Side::App);
        timers.ready(at(0));
        pass(&mut timers, 16_000);
        for second in [26, 36, 46] {
            assert_eq!(pass(&mut timers, second * 1_000), 0);
            timers.heard(at(second * 1_000));
        }
        assert_eq!(timers.next(false), at(61_000));
    }

    #[test]
    fn the_end_of_a_rest_is_a_question_and_no_sooner_is_an_answer_owed() {
        let mut timers = Timers::new(at(0), SILENCE, Side::Display);
        timers.ready(at(0));
        pass(&mut timers, 25_000);
        timers.worked(at(25_000));
        assert_eq!(timers.owed_since(at(25_000)), Some(at(25_000)));
        assert_eq!(timers.next(false), at(16_000 + 1_000), "it is overdue");
        assert!(matches!(timers.due(at(25_001), false), Some(Due::Ping(_))));
        // What is done meanwhile takes nothing of what is owed away, and nor does the next rest.
        timers.worked(at(27_000));
        assert_eq!(timers.owed_since(at(28_000)), Some(at(25_000)));
        assert_eq!(timers.owed_since(at(40_000)), Some(at(25_000)));
    }

    #[test]
    fn who_is_busy_asks_each_second() {
        let mut timers = Timers::new(at(0), SILENCE, Side::App);
        timers.ready(at(0));
        let mut pings = 0;
        for tenth in 0..300 {
            timers.worked(at(tenth * 100));
            timers.heard(at(tenth * 100));
            pings += pass(&mut timers, tenth * 100);
            assert!(timers.owed_since(at(tenth * 100)).is_some());
        }
        assert_eq!(pings, 30);
    }

    #[test]
    fn who_wants_to_know_sooner_asks_more_often_at_rest() {
        let mut timers = Timers::new(at(0), Duration::from_secs(6), Side::Display);
        timers.ready(at(0));
        pass(&mut timers, 10_000);
        assert_eq!(pass(&mut timers, 20_000), 5);
    }

    #[test]
    fn pipes_get_a_tenth_of_the_time() {
        let mut timers = Timers::new(at(0), SILENCE, Side::Display);
        timers.ready(at(0));
        timers.due(at(0), true);
        let mut on = 0;
        let mut boosted = false;
        for now in 0..1_000 {
            while let Some(due) = timers.due(at(now), true) {
                boosted = due == Due::Boost(true);
            }
            on += u32::from(boosted);
        }
        assert_eq!(on, 100);
        // A turn ends even when its pipe is gone.
        assert_eq!(timers.due(at(1_000), true), Some(Due::Boost(true)));
        assert_eq!(timers.next(false), at(1_010));
        assert_eq!(timers.due(at(1_010), false), Some(Due::Boost(false)));
        assert!(timers.next(false) > at(2_000));
    }

    #[test]
    fn a_receipt_waits_for_a_tenth_of_a_second_or_for_much() {
        let mut timers = Timers::new(at(0), SILENCE, Side::Display);
        timers.ready(at(0));
        timers.due(at(0), false);
        timers.news(at(50), 1);
        timers.news(at(120), RECEIPT_BYTES - 1);
        assert_eq!((timers.due(at(149), false), timers.next(false)), (None, at(150)));
        assert_eq!(timers.due(at(150), false), Some(Due::Receipt));
        assert_eq!(timers.due(at(500), false), None);
        timers.news(at(500), 9);
        timers.news(at(510), RECEIPT_BYTES);
        assert_eq!(timers.due(at(510), false), Some(Due::Receipt));
    }

    #[test]
    fn pings_of_the_peer_are_limited() {
        let mut timers = Timers::new(at(0), SILENCE, Side::Display);
        for second in 0..5 {
            for _ in 0..MAX_PINGS {
                timers.pinged(at(second * 1000)).unwrap();
            }
        }
        assert!(timers.pinged(at(4_900)).is_err());
    }
}
