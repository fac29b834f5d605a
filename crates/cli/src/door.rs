//! The way in for displays: who may attach to a session that waits for one, and what the others are told.
//!
//! Anybody can reach a UDP port and complete a handshake under a ticket's rules, so several candidates may stand at the
//! door; the first that shows the ticket's secret is let in, once. Later ones are told that the secret has been used.
//! Invariant: a candidate without the secret costs one of [`MAX_CANDIDATES`] places for at most the session's handshake
//! timeout, and nothing else.

use std::os::fd::BorrowedFd;

use rustix::event::PollFlags;
use wayferry_net::quic::Listener;
use wayferry_proto::{Config, Event, Session, Time};

use crate::error::Error;
use crate::notice::notice;
use crate::run::link::{Link, closed};
use crate::run::signals::Signals;
use crate::run::socket::random_bytes;
use crate::run::wait::Interests;
use crate::run::{Clock, earlier};

/// A listening port with the displays that stand before it.
pub(crate) struct Door {
    listener: Listener,
    config: Config,
    candidates: Vec<Link>,
}

impl Door {
    /// A door that lets in whoever satisfies `config`.
    pub(crate) fn new(listener: Listener, config: Config) -> Self {
        Self { listener, config, candidates: Vec::new() }
    }

    /// Waits for the display that shows the secret.
    ///
    /// # Errors
    /// [`Error::Secret`] when `expires` comes first; a signal.
    pub(crate) fn admit(
        &mut self,
        clock: &Clock,
        expires: Option<Time>,
        signals: &Signals,
    ) -> Result<Link, Error> {
        loop {
            let now = clock.now();
            if let Some(link) = self.turn(now) {
                return Ok(link);
            }
            if expires.is_some_and(|at| at <= now) {
                return Err(Error::Secret("the ticket expired: no display attached in time".into()));
            }
            let mut interests = Interests::new();
            interests.add(std::os::fd::AsFd::as_fd(signals), PollFlags::IN, ());
            for fd in self.fds() {
                interests.add(fd, PollFlags::IN, ());
            }
            interests.wait(now, earlier(expires, self.next_timeout()))?;
            signals.check()?;
        }
    }

    /// From now on nobody gets in: the secret has been used.
    pub(crate) fn close(&mut self) {
        self.config.accepted_secrets = vec![random_bytes::<32>().into()];
    }

    /// Looks at the candidates; gives the one that is let in.
    pub(crate) fn turn(&mut self, now: Time) -> Option<Link> {
        self.listener.clear_wake();
        while self.candidates.len() < MAX_CANDIDATES
            && let Some(connected) = self.listener.poll_accept()
        {
            let config = Config { start: now, ..self.config.clone() };
            self.candidates.push(Link::new(Session::new(config), connected.carrier));
        }
        let mut index = 0;
        while index < self.candidates.len() {
            match step(&mut self.candidates[index], now) {
                Step::Waits => index += 1,
                Step::Enters => return Some(self.candidates.swap_remove(index)),
                Step::Leaves => drop(self.candidates.swap_remove(index)),
            }
        }
        None
    }

    /// To be polled for input.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.listener.wake_fd()).chain(self.candidates.iter().map(Link::wake_fd))
    }

    /// When [`Door::turn`] is to be called at the latest.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.candidates.iter().filter_map(|link| link.session.next_timeout()).min()
    }
}

enum Step {
    Waits,
    Enters,
    Leaves,
}

fn step(link: &mut Link, now: Time) -> Step {
    link.receive(now);
    let step = match link.poll_event() {
        Some(Event::Ready { .. }) => Step::Enters,
        Some(Event::Closed { reason, by }) => {
            if let Err(error) = closed(reason, by) {
                notice(&format!("a display was turned away: {error}"));
            }
            Step::Leaves
        }
        Some(_) | None if link.session.is_closed() => Step::Leaves,
        Some(_) | None => Step::Waits,
    };
    link.transmit(now);
    step
}

/// Displays before the door at once.
const MAX_CANDIDATES: usize = 16;
