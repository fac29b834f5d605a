//! How a display comes back to its session, or leaves a carrier for a better one: each begins with the session's hello.
//!
//! When the carrier is lost, two searches go on side by side: QUIC to where the session was, with a fresh hello in each
//! try, which leaves as early data where there is a ticket; and the other way that brought the two sides together
//! ([`crate::reconnect`]). The first to find a carrier ends the other. While there is a carrier, `better` looks for one
//! that is better. Invariant: without a carrier the session is suspended, or is the subject of the one try that is
//! under way.

mod better;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::PollFlags;
use wayferry_net::Carrier;
use wayferry_net::quic::{Attempt, ConnectError};
use wayferry_proto::{Config, Session, Side, Time, Transmit};

use crate::carriers::connect_error;
use crate::clock::earlier;
use crate::edge::part::{Hub, Part};
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::link::Link;
use crate::moving::{Hope, Way};
use crate::reconnect::{Back, Detour, Login, Ways};
pub use better::Better;

/// See the module.
pub struct Return {
    config: Config,
    ways: Ways,
    search: Option<Search>,
    /// Since when the session has not gone on over any carrier.
    lost: Option<Time>,
    /// The command that the carrier goes through, or that was the last to.
    login: Option<Login>,
    standing: Standing,
    /// When the last carrier was found, and how many were lost at once.
    found: Time,
    in_vain: u32,
    /// What is better than the carrier that it began on.
    better: Option<Better>,
    /// The session has begun to go over to another carrier, and the side has not heard of that.
    moved: bool,
}

/// Whether the session has let this display in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Not known: it has not answered; and when it was first sought.
    Unknown(Option<Time>),
    /// It has let it in.
    Welcome,
}

/// A search that is under way.
struct Search {
    attempt: Option<Attempt>,
    /// When the next attempt begins, where none is under way.
    next: Time,
    since: Time,
    detour: Option<Detour>,
}

impl Part for Return {
    fn interests<'a>(&'a mut self, now: Time, hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.until(self.next_timeout());
        self.fds().for_each(|fd| interests.add_borrowed(fd, PollFlags::IN));
        if let Some(better) = &self.better {
            better.interests(now, hub.link, self.search.is_some(), interests);
        }
    }

    fn turn(&mut self, now: Time, hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        self.search(now, hub.link)?;
        self.look_for_better(now, hub, |fd| ready.has(fd))
    }
}

impl Return {
    /// For a session that began with this, and can be reached so.
    pub fn new(config: Config, ways: Ways) -> Self {
        let standing = Standing::Unknown(None);
        let found = Time::ZERO;
        Self {
            config,
            ways,
            search: None,
            lost: None,
            login: None,
            standing,
            found,
            in_vain: 0,
            better: None,
            moved: false,
        }
    }

    /// The session began on a byte stream, and there may be something better.
    #[must_use]
    pub fn with_better(self, better: Option<Better>) -> Self {
        Self { better, ..self }
    }

    /// The session has let this display in: it knows its incarnation from now on, and needs no secret.
    pub(super) fn welcome(&mut self) {
        self.standing = Standing::Welcome;
        self.config.secret = self.config.resume;
    }

    /// Whether the session has left its carrier for another since this was last asked.
    pub(super) fn take_moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// Since when the session has been without a carrier on which it goes on.
    pub(super) fn lost(&self) -> Option<Time> {
        self.lost
    }

    /// Whether it ever has.
    pub(super) fn is_welcome(&self) -> bool {
        self.standing == Standing::Welcome
    }

    /// The session has no carrier: searches, or goes on searching. Says whether this is new.
    ///
    /// # Errors
    /// The system has nothing left to search with.
    pub(super) fn begin(&mut self, now: Time) -> Result<bool, Error> {
        if let Standing::Unknown(since) = &mut self.standing {
            since.get_or_insert(now);
        }
        if self.search.is_some() {
            return Ok(false);
        }
        self.lost.get_or_insert(now);
        self.carry_through(None);
        let hope = match &mut self.better {
            None if self.ways.quic.is_some() => Hope::Likely,
            None => Hope::Open,
            Some(better) => better.pause(),
        };
        let detour = self.ways.detour(hope)?;
        let respite = match hope {
            Hope::Faint(respite) if detour.is_some() => respite,
            _ => Duration::ZERO,
        };
        let next = now + self.respite(now).max(respite);
        self.search = Some(Search { attempt: None, next, since: now, detour });
        Ok(true)
    }

    /// How long to wait before the first attempt. A session that has no place for this display at the moment, or loses
    /// it for another reason as soon as it comes, is not asked without a pause.
    fn respite(&mut self, now: Time) -> Duration {
        self.in_vain = if now.since(self.found) < AT_ONCE { self.in_vain + 1 } else { 0 };
        match self.in_vain {
            0 => Duration::ZERO,
            times => (FIRST_RESPITE * 2u32.saturating_pow(times - 1)).min(SELDOM),
        }
    }

    /// The session's carrier goes through this command from now on; the one before ends.
    fn carry_through(&mut self, login: Option<Login>) {
        if let Some(before) = std::mem::replace(&mut self.login, login) {
            before.end_aside();
        }
    }

    /// A carrier was found.
    fn find(&mut self, now: Time, on: Way) {
        self.search = None;
        self.found = now;
        self.better.iter_mut().for_each(|better| better.went(now, on));
    }

    /// What is polled for input while a search is under way.
    fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let search = self.search.iter();
        search.flat_map(|search| {
            let attempt = search.attempt.iter().map(Attempt::wake_fd);
            attempt.chain(search.detour.iter().map(Detour::fd))
        })
    }

    /// When there is something to do although nothing comes.
    fn next_timeout(&self) -> Option<Time> {
        let search = self.search.as_ref()?;
        let next = (search.attempt.is_none() && self.ways.quic.is_some()).then_some(search.next);
        earlier(next, self.end())
    }

    /// When a session that never answered is given up.
    fn end(&self) -> Option<Time> {
        match self.standing {
            Standing::Unknown(since) => since.map(|since| since + UNKNOWN_PATIENCE),
            Standing::Welcome => None,
        }
    }

    /// Goes on with the search; puts the session onto a carrier that was found.
    ///
    /// # Errors
    /// There will never be one, or not from a session that has not answered yet.
    fn search(&mut self, now: Time, link: &mut Link) -> Result<(), Error> {
        let end = self.end();
        let Some(search) = &mut self.search else { return Ok(()) };
        if end.is_some_and(|end| end <= now) {
            return Err(Error::Lost("the session never answered".into()));
        }
        match search.attempt.as_mut().and_then(Attempt::poll) {
            None => {}
            Some(Ok((connected, _))) => {
                link.put_on(connected.carrier);
                self.find(now, Way::Quic);
                return Ok(());
            }
            Some(Err(error)) => {
                search.attempt = None;
                search.next = now + search.pause(now);
                if matches!(error, ConnectError::Rejected { .. }) && search.detour.is_none() {
                    return Err(connect_error(&[], Duration::ZERO, error));
                }
                if error.is_verdict() {
                    // Another host answered: in another network the address may be another host's.
                    search.next = now + SELDOM;
                }
                // Its event comes before anything else happens to the session.
                link.session.suspend();
                return Ok(());
            }
        }
        if let Some(result) = search.detour.as_ref().and_then(Detour::result) {
            let Back { carrier, login, .. } = result?;
            self.find(now, Way::Stream);
            self.carry_through(login);
            self.go_on(now, link, carrier);
            return Ok(());
        }
        if search.attempt.is_none() && now >= search.next {
            self.attempt(now, link)?;
        }
        Ok(())
    }

    fn attempt(&mut self, now: Time, link: &mut Link) -> Result<(), Error> {
        let Some(reconnect) = self.ways.quic.clone() else { return Ok(()) };
        self.resume(now, link);
        let early: Vec<Transmit> = std::iter::from_fn(|| link.session.poll_transmit(now)).collect();
        let attempt = reconnect.attempt(early, PATIENCE);
        let attempt = attempt.map_err(|error| Error::System {
            doing: "starting to reconnect",
            source: std::io::Error::other(error.to_string()),
        })?;
        if let Some(search) = &mut self.search {
            search.attempt = Some(attempt);
        }
        Ok(())
    }

    /// Puts the session onto a carrier on which nothing has been said.
    fn go_on(&mut self, now: Time, link: &mut Link, carrier: Box<dyn Carrier>) {
        link.lose_carrier();
        self.resume(now, link);
        link.put_on(carrier);
    }

    /// The session as it begins on a new carrier.
    fn resume(&self, now: Time, link: &mut Link) {
        let config = Config { start: now, ..self.config.clone() };
        let old = std::mem::replace(&mut link.session, Link::detached(Side::Display).session);
        link.session = Session::resuming(config, old);
    }
}

impl Search {
    /// Until the next attempt: none at first, for each takes a while by itself.
    fn pause(&self, now: Time) -> Duration {
        if now.since(self.since) < EAGER { Duration::from_millis(50) } else { SELDOM }
    }
}

/// How long a session is sought that has never answered: it may not be there.
const UNKNOWN_PATIENCE: Duration = Duration::from_secs(30);
/// How long one attempt lasts.
const PATIENCE: Duration = Duration::from_secs(3);
/// For how long attempts follow each other, and the pause between later ones.
const EAGER: Duration = Duration::from_secs(300);
const SELDOM: Duration = Duration::from_secs(3);
/// A carrier that is lost this soon after it was found counts as a failure.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Pause after the first such; each is twice the one before.
const FIRST_RESPITE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_session_that_has_no_place_is_asked_again_after_ever_longer_pauses() {
        let at = Time::from_millis;
        let identity = Arc::new(wayferry_net::Identity::ephemeral().expect("an identity"));
        let mut back = Return::new(Config::new(Side::Display), Ways { identity, quic: None, other: None });
        let mut pauses = Vec::new();
        for lost in [60_000, 60_200, 60_700, 61_200, 70_000, 70_100] {
            let pause = back.respite(at(lost));
            back.find(at(lost) + pause, Way::Quic);
            pauses.push(pause.as_millis());
        }
        assert_eq!(pauses, [0, 100, 200, 400, 0, 100]);
        assert_eq!((0..9).map(|_| back.respite(at(70_200))).last(), Some(SELDOM));
    }

    #[test]
    fn regression_a_session_that_never_answered_is_given_up() {
        let at = Time::from_millis;
        for welcome in [false, true] {
            let identity = Arc::new(wayferry_net::Identity::ephemeral().expect("an identity"));
            let ways = Ways { identity, quic: None, other: None };
            let mut back = Return::new(Config::new(Side::Display), ways);
            let mut link = Link::detached(Side::Display);
            if welcome {
                back.welcome();
            }
            assert!(back.begin(at(1_000)).expect("a search"));
            assert!(!back.begin(at(20_000)).expect("a search"), "it goes on");
            assert_eq!(back.next_timeout(), (!welcome).then(|| at(31_000)));
            assert!(back.search(at(30_999), &mut link).is_ok());
            assert_eq!(back.search(at(31_000), &mut link).is_err(), !welcome);
        }
    }
}
