//! The search for a better carrier while there is one: tries of QUIC, and byte streams that the other side brings.
//!
//! [`Moving`] decides when; here are the descriptors, and what the user is told. The byte stream on which the session
//! began is not closed when the session leaves it, only read to its end: at its other end somebody takes that for the
//! end of this display. Invariant: at most one try and one meeting are under way, and a connection that waits for its
//! moment is used or dropped.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use wayferry_net::Carrier;
use wayferry_net::quic::{Attempt, Reconnect};
use wayferry_proto::Time;

use super::Return;
use crate::carriers::{connect_error, warn};
use crate::edge::part::Hub;
use crate::edge::socket::Listener;
use crate::edge::wait::Interests;
use crate::error::Error;
use crate::event::{Reporter, SessionEvent};
use crate::link::Link;
use crate::moving::{Hope, Moving, Step, Way};
use crate::reconnect::{Back, Detour, Ways};

/// See the module.
pub struct Better {
    moving: Moving,
    quic: Reconnect,
    /// More addresses are looked up: readable when that is over, and until when it is waited for.
    lookup: Option<(UnixStream, Time)>,
    attempt: Option<Attempt>,
    /// The connection that waits for its moment.
    waiting: Option<Box<dyn Carrier>>,
    /// Where the other side comes to by itself, when nothing of this one is heard.
    standby: Option<Listener>,
    meeting: Option<Meeting>,
    /// The byte stream on which the session began, and whether it has left it.
    first: Option<OwnedFd>,
    left: bool,
    /// A later one, which ends when the session goes on elsewhere: before that, its end would be taken for a loss.
    later: Option<OwnedFd>,
    /// Where the session is moving to.
    going: Option<Way>,
    /// The user was told that QUIC does not answer.
    told: bool,
}

/// The two sides meet on another byte stream, which either has brought.
struct Meeting {
    detour: Detour,
    since: Time,
}

impl Better {
    /// For a session that began on `first` and may be reached by `quic`, and at more addresses, which `more` looks up
    /// on a thread of its own.
    ///
    /// # Errors
    /// The system has no thread or descriptor left.
    pub fn new(
        quic: Reconnect,
        more: impl FnOnce() -> Vec<SocketAddr> + Send + 'static,
        first: OwnedFd,
        standby: Option<Listener>,
        now: Time,
    ) -> Result<Self, Error> {
        let fail = |source| Error::System { doing: "starting to look addresses up", source };
        let (over, running) = UnixStream::pair().map_err(fail)?;
        let known = quic.clone();
        let work = move || {
            known.add_addresses(&more());
            drop(running);
        };
        std::thread::Builder::new().name("addresses".into()).spawn(work).map_err(fail)?;
        Ok(Self {
            moving: Moving::new(now),
            quic,
            lookup: Some((over, now + LOOKUP_PATIENCE)),
            attempt: None,
            waiting: None,
            standby,
            meeting: None,
            first: Some(first),
            left: false,
            later: None,
            going: None,
            told: false,
        })
    }

    /// What is waited for, while the session has a carrier or is `searching` for one.
    pub(super) fn interests<'a>(
        &'a self,
        now: Time,
        link: &Link,
        searching: bool,
        interests: &mut Interests<'a>,
    ) {
        self.standby.iter().for_each(|standby| interests.read(standby));
        self.meeting.iter().for_each(|meeting| interests.add_borrowed(meeting.detour.fd(), PollFlags::IN));
        self.first.iter().filter(|_| self.left).for_each(|first| interests.read(first));
        if !searching && self.moving.on() == Way::Quic && self.meeting.is_none() {
            // What is overdue could not be begun.
            let due = link.owed_since(now).map(|since| since + self.patience());
            interests.until(due.filter(|due| *due > now));
        }
        if searching || self.going.is_some() || !is_movable(link) {
            return;
        }
        self.attempt.iter().for_each(|attempt| interests.add_borrowed(attempt.wake_fd(), PollFlags::IN));
        match &self.lookup {
            Some((over, until)) => {
                interests.read(over);
                interests.until(Some(*until));
            }
            None => interests.until(self.moving.next_timeout()),
        }
    }

    /// The carrier is lost, and the search for another has begun. Says what to expect of QUIC.
    pub(super) fn pause(&mut self) -> Hope {
        (self.attempt, self.waiting, self.going, self.later) = (None, None, None, None);
        self.moving.hope()
    }

    /// How long QUIC may be silent before the other side is met on a byte stream that this one makes.
    fn patience(&self) -> Duration {
        if self.standby.is_some() { SILENT_FOR_LONG } else { SILENT }
    }

    /// The session is on another carrier, after it had lost its own or to have a better one.
    pub(super) fn went(&mut self, now: Time, on: Way) {
        self.left = true;
        self.moving.went(now, on);
    }

    /// Reads what still comes on the byte stream that was left.
    fn drain(&mut self) {
        let mut piece = [0; 16 << 10];
        for _ in 0..MAX_READS {
            let Some(first) = self.first.as_ref().filter(|_| self.left) else { return };
            match rustix::net::recv(first, &mut piece, RecvFlags::DONTWAIT) {
                Ok((0, _)) => self.first = None,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.first = None,
            }
        }
    }

    /// Meets the other side, where it has come by itself and this one has missed it; gives what carries the session
    /// then. It is turned away if the session has no need of it, or nothing to meet it with: it comes again.
    ///
    /// # Errors
    /// The session is over.
    fn brought(&mut self, now: Time, ways: &Ways, needed: bool) -> Result<Option<Back>, Error> {
        if !needed {
            self.meeting = None;
        }
        for _ in 0..MAX_ACCEPTS {
            let Some(socket) = self.standby.as_ref().and_then(|standby| standby.accept().ok().flatten())
            else {
                break;
            };
            // What it came to before may be dead.
            let is_free = self.meeting.as_ref().is_none_or(|meeting| meeting.since + SILENT <= now);
            if needed && is_free {
                self.meeting = ways.meet(socket).ok().map(|detour| Meeting { detour, since: now });
            }
        }
        let Some(result) = self.meeting.as_ref().and_then(|meeting| meeting.detour.result()) else {
            return Ok(None);
        };
        self.meeting = None;
        match result {
            Ok(back) => Ok(Some(back)),
            Err(error @ Error::NoSession(_)) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Goes to meet the other side, as nothing comes over QUIC and nothing has come by itself.
    fn seek(&mut self, now: Time, link: &Link, ways: &Ways) {
        if self.meeting.is_none() && link.contact_age(now) >= self.patience() {
            let detour = ways.detour(Hope::Open).ok().flatten();
            self.meeting = detour.map(|detour| Meeting { detour, since: now });
        }
    }

    /// Hears how a try has ended.
    fn hear_attempt(&mut self, now: Time, reporter: &Reporter) {
        let Some(result) = self.attempt.as_mut().and_then(Attempt::poll) else { return };
        self.attempt = None;
        match result {
            Ok((connected, warnings)) => {
                warn(warnings, reporter);
                self.waiting = Some(connected.carrier);
                self.moving.found(now);
            }
            Err(error) => {
                // Another host may have answered there, and must not end a session that goes well where it is.
                if self.moving.failed(now) {
                    let addresses = self.quic.addresses();
                    let port = addresses.first().map_or(0, SocketAddr::port);
                    let reason = connect_error(&addresses, TRY, error).to_string();
                    self.told = true;
                    reporter.report(SessionEvent::QuicUnreachable { port, reason });
                }
            }
        }
    }

    /// What is due.
    fn step(&mut self, now: Time, ready: impl Fn(&UnixStream) -> bool) -> Option<Step> {
        if let Some((over, until)) = &self.lookup {
            if !ready(over) && now < *until {
                return None;
            }
            self.lookup = None;
        }
        self.moving.step(now)
    }
}

impl Return {
    /// Pixels have come.
    pub(crate) fn note_content(&mut self, now: Time) {
        self.better.iter_mut().for_each(|better| better.moving.note_content(now));
    }

    /// The session goes on over the carrier that it has: what the user is to be told of that.
    pub(crate) fn resumed(&mut self) -> SessionEvent {
        self.lost = None;
        let Some(better) = &mut self.better else { return SessionEvent::Back };
        better.moving.carried();
        match better.going.take() {
            None => SessionEvent::Back,
            Some(Way::Quic) => {
                better.later = None;
                SessionEvent::QuicReached { again: std::mem::take(&mut better.told) }
            }
            Some(Way::Stream) => {
                better.told = true;
                SessionEvent::QuicSilent
            }
        }
    }

    /// Looks for a better carrier, and goes over to it.
    ///
    /// # Errors
    /// The session is over.
    pub(super) fn look_for_better(
        &mut self,
        now: Time,
        hub: &mut Hub<'_>,
        ready: impl Fn(&UnixStream) -> bool,
    ) -> Result<(), Error> {
        let Some(better) = &mut self.better else { return Ok(()) };
        better.drain();
        let searching = self.search.is_some();
        let is_silent = hub.link.contact_age(now) >= SILENT && better.moving.on() == Way::Quic;
        // Also where it is going over to QUIC, and that has fallen silent at once.
        let may_leave = is_movable(hub.link) || (better.going.is_some() && hub.link.session.is_resumable());
        let needed = searching || (is_silent && may_leave);
        if needed && !searching {
            better.seek(now, hub.link, &self.ways);
        }
        if let Some(Back { carrier, login, socket }) = better.brought(now, &self.ways, needed)? {
            better.later = socket;
            self.carry_through(login);
            if searching {
                self.find(now, Way::Stream);
                self.go_on(now, hub.link, carrier);
            } else {
                self.move_to(now, hub.link, carrier, Way::Stream);
            }
            return Ok(());
        }
        let may_go = !searching && is_movable(hub.link);
        let Some(better) = self.better.as_mut().filter(|better| may_go && better.going.is_none()) else {
            return Ok(());
        };
        better.hear_attempt(now, hub.reporter);
        match better.step(now, ready) {
            Some(Step::Try) => match better.quic.attempt(Vec::new(), TRY) {
                Ok(attempt) => better.attempt = Some(attempt),
                // There may be threads and descriptors again at the next try.
                Err(_) => drop(better.moving.failed(now)),
            },
            Some(Step::Go) => {
                if let Some(carrier) = better.waiting.take() {
                    self.move_to(now, hub.link, carrier, Way::Quic);
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Begins to go over.
    fn move_to(&mut self, now: Time, link: &mut Link, carrier: Box<dyn Carrier>, on: Way) {
        self.welcome();
        self.go_on(now, link, carrier);
        self.moved = true;
        if let Some(better) = &mut self.better {
            better.went(now, on);
            better.going = Some(on);
        }
    }
}

/// Whether the session can go over: it has been let in, and agreed to go on over other carriers.
fn is_movable(link: &Link) -> bool {
    link.session.is_welcome() && link.session.is_resumable()
}

/// How long QUIC may take to answer.
const TRY: Duration = Duration::from_secs(3);
/// How long the lookup of more addresses may hold up the first try.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(1);
/// Silence after which the other side is met on a byte stream that it brings; it does so a little later.
const SILENT: Duration = Duration::from_secs(2);
/// Silence after which this side goes to meet the other, where that should have come by itself.
const SILENT_FOR_LONG: Duration = Duration::from_secs(8);
/// Byte streams of the other side's taken in a turn.
const MAX_ACCEPTS: usize = 8;
/// Reads in a turn of what was left.
const MAX_READS: usize = 8;
