//! A session and its carrier, as one thing that the run loops pump.
//!
//! It moves arrivals into the session and transmits out of it, and turns the end of a session into an [`Error`] or a
//! clean end. It knows no Wayland. Invariant: a turn takes a bounded number of arrivals, so that sockets get their turn
//! for any input of the peer.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use wayferry_net::Carrier;
use wayferry_proto::{CloseReason, ClosedBy, Config, Event, LinkState, Session, Side, Time};
use wayferry_wayland::app::Credit;

use crate::error::Error;
use crate::event::SessionEvent;
use crate::stats::Saved;

/// A session over a carrier.
pub struct Link {
    /// What is carried.
    pub session: Session,
    /// `None` without a peer.
    carrier: Option<Box<dyn Carrier>>,
    /// Arrivals may be left in the carrier although its descriptor was cleared.
    more: bool,
    contact: Contact,
    /// How many packets the carrier's peer has acknowledged, and when that last changed.
    acked: (u64, Time),
    saved: Saved,
    /// Where the peer came from, if that is known.
    from: Option<SocketAddr>,
}

/// Whether the peer is heard, and whether the user was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contact {
    Fine,
    /// Reported to the user when it had lasted this long.
    Missing {
        reported: Duration,
    },
}

/// How a session ended without an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CleanEnd {
    /// This side asked for it.
    Us,
    /// The peer asked for it.
    Peer,
}

impl Link {
    /// The session on this carrier.
    pub fn new(session: Session, carrier: Box<dyn Carrier>) -> Self {
        Self { carrier: Some(carrier), ..Self::around(session) }
    }

    /// Without a peer: what is sent goes nowhere, and nothing comes.
    pub fn detached(side: Side) -> Self {
        let mut link = Self::around(Session::new(Config::new(side)));
        link.session.close(CloseReason::Done);
        while link.session.poll_event().is_some() {}
        link
    }

    fn around(session: Session) -> Self {
        Self {
            session,
            carrier: None,
            more: false,
            contact: Contact::Fine,
            acked: (0, Time::ZERO),
            saved: Saved::default(),
            from: None,
        }
    }

    /// Sets where the peer came from.
    pub fn set_from(&mut self, from: SocketAddr) {
        self.from = Some(from);
    }

    /// Where the peer came from, if that is known.
    pub fn from(&self) -> Option<SocketAddr> {
        self.from
    }

    /// Whether somebody is at the other end, or was a moment ago.
    pub fn is_up(&self) -> bool {
        self.carrier.is_some()
    }

    /// The carrier is lost; the session waits for another.
    pub fn lose_carrier(&mut self) {
        if let Some(carrier) = self.carrier.take() {
            carrier.abandon();
        }
        self.more = false;
    }

    /// The session goes on, on another carrier.
    pub fn put_on(&mut self, carrier: Box<dyn Carrier>) {
        self.carrier = Some(carrier);
    }

    /// The peer was let in.
    pub fn welcome(&self) {
        if let Some(carrier) = &self.carrier {
            carrier.welcome();
        }
    }

    /// To be polled for input.
    pub fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.carrier.as_ref().map(|carrier| carrier.wake_fd())
    }

    /// When [`Self::receive`] is to be called at the latest.
    pub fn next_timeout(&self) -> Option<Time> {
        self.carrier.as_ref().and(self.session.next_timeout())
    }

    /// Whether to poll without waiting, because not everything was taken.
    pub fn has_more(&self) -> bool {
        self.more
    }

    /// Takes what arrived, up to a bound, and does what is due.
    pub fn receive(&mut self, now: Time) {
        let Some(carrier) = &mut self.carrier else { return };
        carrier.clear_wake();
        self.more = true;
        for _ in 0..MAX_ARRIVALS {
            let Some(arrival) = carrier.poll_arrival() else {
                self.more = false;
                break;
            };
            self.session.receive(now, arrival);
        }
        carrier.hold(self.session.held() as u64);
        let link = carrier.link();
        self.saved.rebuilt(self.session.repair().rebuilt, link.rtt);
        self.session.set_link(now, &link);
        if link.acked_packets != self.acked.0 {
            self.acked = (link.acked_packets, now);
        }
        if self.session.next_timeout().is_some_and(|at| at <= now) {
            self.session.on_timeout(now);
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.session.poll_event()
    }

    /// Hands everything that the session wants sent to the carrier.
    pub fn transmit(&mut self, now: Time) {
        let Some(carrier) = &mut self.carrier else { return };
        while let Some(transmit) = self.session.poll_transmit(now) {
            carrier.transmit(transmit);
        }
    }

    /// What may be handed over now, if there are no videos.
    pub fn credit(&self, now: Time) -> Credit {
        let Some(carrier) = &self.carrier else { return Credit::default() };
        let link = carrier.link();
        let (mut content, rate) = (self.session.content_budget(&link), link.expected_rate());
        if let (true, None, Some(rate)) = (content > 0, link.rate, rate) {
            // Before the rate is known, assume a fast link: the first content need not be lossy there.
            content = content.max(rate / FIRST_PER_SECOND);
        }
        Credit {
            content,
            refinement: self.session.refinement_budget(&link),
            rtt: link.rtt,
            heard: Some(now - self.contact_age(now)),
            rate,
            loses: self.session.repairs(now),
            videos: 0,
            encoded: 0,
        }
    }

    /// What the carrier knows of its link.
    pub fn state(&self) -> LinkState {
        self.carrier.as_ref().map(|carrier| carrier.link()).unwrap_or_default()
    }

    /// What rebuilding has saved so far.
    pub fn saved(&self) -> Saved {
        self.saved
    }

    /// For how long the peer has owed a word, or an acknowledgement of anything.
    pub(crate) fn contact_age(&self, now: Time) -> Duration {
        self.owed_since(now).map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Since when, see [`Session::owed_since`].
    pub(crate) fn owed_since(&self, now: Time) -> Option<Time> {
        self.session.owed_since(now).map(|since| since.max(self.acked.1))
    }

    /// When [`Link::contact_event`] has something, if nothing is heard until then.
    pub(crate) fn contact_timeout(&self, now: Time) -> Option<Time> {
        let silence = match self.contact {
            Contact::Fine => SILENCE,
            Contact::Missing { reported } => reported + SILENCE_STEP,
        };
        self.owed_since(now).filter(|_| self.is_met()).map(|since| since + silence)
    }

    /// Whether the session has begun and has not ended.
    fn is_met(&self) -> bool {
        !self.session.is_closed() && self.session.peer().is_some()
    }

    /// Whether the user was told that nothing is heard of the peer, and not yet that it is back.
    pub fn is_missed(&self) -> bool {
        matches!(self.contact, Contact::Missing { .. })
    }

    /// Reports that the peer fell silent, every so often while it stays so, and that it is back.
    pub fn contact_event(&mut self, now: Time) -> Option<SessionEvent> {
        let age = self.contact_age(now);
        match self.contact {
            _ if !self.is_met() => None,
            Contact::Fine if age >= SILENCE => {
                self.contact = Contact::Missing { reported: age };
                Some(SessionEvent::Silent { seconds: age.as_secs() })
            }
            Contact::Missing { reported } if age >= reported + SILENCE_STEP => {
                self.contact = Contact::Missing { reported: age };
                Some(SessionEvent::Silent { seconds: age.as_secs() })
            }
            Contact::Missing { .. } if age < SILENCE => {
                self.contact = Contact::Fine;
                Some(SessionEvent::Heard)
            }
            Contact::Fine | Contact::Missing { .. } => None,
        }
    }
}

impl AsRef<Session> for Link {
    fn as_ref(&self) -> &Session {
        &self.session
    }
}

impl AsMut<Link> for Link {
    fn as_mut(&mut self) -> &mut Link {
        self
    }
}

impl AsMut<Session> for Link {
    fn as_mut(&mut self) -> &mut Session {
        &mut self.session
    }
}

/// What the end of a session means to the user.
pub fn closed(reason: CloseReason, by: ClosedBy) -> Result<CleanEnd, Error> {
    match (reason, by) {
        (CloseReason::Done, ClosedBy::Us) => Ok(CleanEnd::Us),
        (CloseReason::Done, _) => Ok(CleanEnd::Peer),
        (CloseReason::BadSecret, ClosedBy::Us) => {
            Err(Error::Secret("a display came with a wrong secret".into()))
        }
        (CloseReason::BadSecret, _) => Err(Error::Secret("the host refused the ticket's secret".into())),
        (CloseReason::Gone, _) => Err(Error::Secret("the ticket's session is not here any more".into())),
        (CloseReason::TlsRefused(text), _) => Err(Error::Fingerprint(text)),
        (reason @ CloseReason::Incompatible { .. }, _) => Err(Error::Incompatible(reason.to_string())),
        (CloseReason::Timeout, _) => Err(Error::Lost("nothing was heard for too long".into())),
        (CloseReason::LinkLost(text), _) => Err(Error::Lost(text)),
        (CloseReason::ProtocolViolation(text) | CloseReason::TooMuch(text), ClosedBy::Us) => {
            Err(Error::PeerViolation(text))
        }
        (reason, _) => Err(Error::PeerViolation(format!("it ended the session: {reason}"))),
    }
}

/// Before the link's rate is known, 100 ms of what it may take in a second are handed over at once.
const FIRST_PER_SECOND: u64 = 10;
/// Arrivals taken in one turn: about a millisecond of work.
const MAX_ARRIVALS: usize = 512;
/// Silence after which the user is told; two pings are missing then.
pub(crate) const SILENCE: Duration = Duration::from_secs(3);
/// How often the user is told again.
const SILENCE_STEP: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_its_exit_code() {
        let code = |reason, by| closed(reason, by).expect_err("an error").code();
        assert_eq!(closed(CloseReason::Done, ClosedBy::Peer).expect("clean"), CleanEnd::Peer);
        assert_eq!(code(CloseReason::BadSecret, ClosedBy::Peer), 28);
        assert_eq!(code(CloseReason::Gone, ClosedBy::Peer), 28);
        assert_eq!(code(CloseReason::TlsRefused("x".into()), ClosedBy::Link), 19);
        assert_eq!(code(CloseReason::LinkLost("x".into()), ClosedBy::Link), 29);
        assert_eq!(code(CloseReason::Timeout, ClosedBy::Us), 29);
        assert_eq!(code(CloseReason::ProtocolViolation("x".into()), ClosedBy::Us), 76);
        assert_eq!(code(CloseReason::TooMuch("x".into()), ClosedBy::Peer), 76);
    }
}
