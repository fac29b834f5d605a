//! How a session outlives its carrier: what is told of what came, suspension, and going on.
//!
//! What is kept of channels is [`retention`](super::outgoing)'s matter on this side and the [`ledger`](super::ledger)'s
//! on the other; here is who says what when. The display begins: its hello and its [`Resume`] leave in one flight; the
//! app side answers with its own, or with [`Control::Declined`]. Invariant: until both are there, or one is declined,
//! no channel and no lasting message passes on the new carrier.

use super::{Event, Session, State};
use crate::{Capabilities, CloseReason, ClosedBy, Config, Control, Error, Hello, Resume, Side, Time};

/// How far two sides are in going on with an earlier session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Resumption {
    /// There is nothing to go on with, or it goes on.
    No,
    /// Display: the answer has not come.
    Asking,
    /// App: the display wants to, perhaps has said what it has; the caller has not decided.
    Asked(Option<Resume>),
    /// App: the caller wants to; the display has not said what it has.
    Agreed,
}

impl Session {
    /// Display: goes on with `old` over another carrier. It may have one still, of which nothing is to be told it any
    /// more. All handles stay as they are, and what happened and was not polled comes first. Then comes
    /// [`Event::Ready`], and [`Event::Resumed`] or [`Event::Declined`]; if the link is lost before,
    /// [`Event::Suspended`], and it can be tried again with this session. If `old` [cannot be
    /// resumed](Session::is_resumable), this is a new session.
    pub fn resuming(config: Config, old: Self) -> Self {
        if !old.is_resumable() || config.side == Side::App {
            return Self::new(config);
        }
        let attempt = old.attempt + 1;
        let hello = Control::Hello(config.hello(attempt, old.began));
        let mut session = Self { attempt, ..Self::silent(config) };
        session.outgoing.control(&hello);
        session.timers.inherit(&old.timers);
        session.inherit(old);
        session.resumption = Resumption::Asking;
        session.tell_all();
        session
    }

    /// App: goes on with `old`, whose display this one's peer is, as [`Event::Ready`] told: it is
    /// [resuming](crate::Hello::resuming), and its [incarnation](crate::Hello::incarnation) is that of the peer of
    /// `old`. All handles of `old` stay as they are, and what happened to it and was not polled comes first; its own
    /// carrier is to be dropped. What was opened or said here before is void. [`Event::Resumed`] follows.
    ///
    /// # Errors
    /// `old` as it was: the peer does not want to resume, [not this session](Session::is_of), or this session or that
    /// one is over.
    pub(crate) fn succeed(&mut self, now: Time, old: Self) -> Result<(), Box<Self>> {
        let fits = self.peer().is_some_and(|peer| old.is_of(peer)) && old.is_resumable();
        let theirs = match &mut self.resumption {
            Resumption::Asked(theirs) if fits && self.state == State::Open => theirs.take(),
            _ => return Err(Box::new(old)),
        };
        self.inherit(old);
        self.resumption = Resumption::Agreed;
        self.tell_all();
        let taken = match theirs {
            Some(theirs) => self.take_resume(now, theirs),
            None => Ok(()),
        };
        if let Err(error) = taken.and_then(|()| self.take_outputs(now)) {
            self.close((&error).into());
        }
        Ok(())
    }

    /// App: whether this is the session that a display wants to go on with, over a later carrier than that which this
    /// one has or had.
    pub fn is_of(&self, display: &Hello) -> bool {
        let known = self.meets(display).is_some_and(|attempt| attempt < display.attempt);
        known && display.resuming && display.began == self.began
    }

    /// App: whether a display's hello comes late, of an attempt that has been given up for that which this session has:
    /// it is to be dropped without an answer.
    pub fn is_late(&self, display: &Hello) -> bool {
        self.meets(display).is_some_and(|attempt| attempt >= display.attempt)
    }

    /// In which attempt the same display came to this session.
    fn meets(&self, display: &Hello) -> Option<u64> {
        let peer = self.peer().filter(|peer| peer.incarnation.is_some())?;
        (peer.incarnation == display.incarnation).then_some(peer.attempt)
    }

    /// App: answers a peer that is [resuming](crate::Hello::resuming) that there is nothing to go on with. This is a
    /// new session then. Does nothing else.
    pub(crate) fn decline(&mut self, now: Time) {
        let Resumption::Asked(theirs) = &self.resumption else { return };
        if self.state != State::Open {
            return;
        }
        self.in_vain = theirs.is_none();
        self.outgoing.control(&Control::Declined);
        self.began = self.peer().map_or(0, |peer| peer.attempt);
        if let Err(error) = self.go_on(now).and_then(|()| self.take_outputs(now)) {
            self.close((&error).into());
        }
    }

    /// App: this session never goes on over another carrier. A peer that is [resuming](crate::Hello::resuming) is
    /// [declined](Session::decline); nothing of what has left is kept, however late the peer says that it has it; and
    /// the session ends with its carrier. The peer may still begin anew over another.
    pub(crate) fn forgo(&mut self, now: Time) {
        self.decline(now);
        self.forgone = true;
        self.outgoing.forgo();
    }

    /// The carrier is not to be used any more: keeps everything for another one, without an end of the session, as when
    /// the link is lost. A session that cannot be resumed ends. Either way it is told by an event.
    pub fn suspend(&mut self) {
        let reason = CloseReason::LinkLost("the carrier was given up here".into());
        if self.state == State::Open && !self.outlives(&reason) {
            self.end(reason, ClosedBy::Link);
        }
    }

    /// Whether the session waits for another carrier.
    pub fn is_suspended(&self) -> bool {
        self.state == State::Suspended
    }

    /// Whether the session lives on without its carrier: it is suspended, or will be when the link is lost. So is a
    /// display's that waits for its first answer.
    pub fn is_resumable(&self) -> bool {
        match (self.state, &self.resumption) {
            (State::Closed, _) | (State::Open, Resumption::Asked(_)) => false,
            (State::Open, Resumption::No) if self.forgone => false,
            (State::Open, Resumption::No) => self.is_numbered() || self.may_be_known(),
            (State::Suspended, _) | (State::Open, Resumption::Asking | Resumption::Agreed) => true,
        }
    }

    /// Bytes that are kept because the peer may not have them: what waits to leave, and in a session that can be
    /// resumed what has left and has not been acknowledged. While it is suspended, the caller is to bound them.
    pub fn retained(&self) -> usize {
        self.outgoing.retained()
    }

    /// The link is lost: suspends the session, if it can be resumed. A peer that refuses this side's certificate will
    /// not take it the next time either.
    pub(super) fn outlives(&mut self, reason: &CloseReason) -> bool {
        let outlives = self.is_resumable() && !matches!(reason, CloseReason::TlsRefused(_));
        if outlives {
            self.park();
            self.events.push_back(Event::Suspended { reason: reason.clone() });
        }
        outlives
    }

    /// The hello of the peer fits.
    pub(super) fn greeted(&mut self, now: Time) -> Result<(), Error> {
        let numbered = self.is_numbered();
        let wanted = self.config.side == Side::App && self.peer().is_some_and(|peer| peer.resuming);
        match self.resumption {
            Resumption::Asking if numbered => return Ok(()), // patience for a handshake goes on
            Resumption::Asking => return self.void(now),
            _ => self.timers.ready(now),
        }
        if wanted && numbered {
            self.resumption = Resumption::Asked(None);
            self.outgoing.hold_messages();
            return Ok(());
        }
        self.go_on(now)
    }

    /// A message that may not come yet, or not at all.
    pub(super) fn check_turn(&self, message: &Control) -> Result<(), Error> {
        let answers = matches!(message, Control::Resume(_) | Control::Declined);
        let anytime = matches!(
            message,
            Control::Hello(_) | Control::Ping { .. } | Control::Pong { .. } | Control::Loss(_)
        );
        let agreeing = self.resumption != Resumption::No;
        if anytime || answers || !agreeing {
            return Ok(());
        }
        Err(Error::Violation { expected: "what is to be resumed", got: "another message before it".into() })
    }

    /// The peer says what it has.
    pub(super) fn take_resume(&mut self, now: Time, theirs: Resume) -> Result<(), Error> {
        // It was said in one flight with the hello, by a display that did not know yet what this side can do.
        let unheard = !self.is_numbered() && self.peer().is_some_and(|peer| peer.resuming);
        match &mut self.resumption {
            Resumption::Asked(known @ None) => {
                *known = Some(theirs);
                return Ok(());
            }
            Resumption::Asking | Resumption::Agreed => {}
            Resumption::No if unheard || std::mem::take(&mut self.in_vain) => return Ok(()),
            Resumption::Asked(Some(_)) => return Err(unasked("a second one")),
            Resumption::No => return Err(unasked("one that nobody asked for")),
        }
        let stopped = self.outgoing.resume(&theirs)?;
        self.events.push_back(Event::Resumed);
        let stopped = stopped.into_iter().filter(|stopped| stopped.header.kind() != crate::Kind::Update);
        self.events.extend(stopped.map(|stopped| Event::Stopped {
            channel: stopped.channel,
            header: stopped.header,
            code: stopped.code,
        }));
        for credit in self.incoming.credits() {
            self.outgoing.control(&credit);
        }
        self.go_on(now)
    }

    /// The app side knows nothing of the earlier session.
    pub(super) fn take_declined(&mut self, now: Time) -> Result<(), Error> {
        match self.resumption {
            Resumption::Asking => self.void(now),
            _ => Err(unasked("a refusal that nobody asked for")),
        }
    }

    /// Display: the app side had no place for it, and knows nothing of who it is. It may try again on another carrier.
    pub(super) fn is_refusal(&self, reason: &CloseReason) -> bool {
        self.config.side == Side::Display && !self.welcome && matches!(reason, CloseReason::TooMuch(_))
    }

    /// Looks whether there is something to tell of what came.
    pub(super) fn note_news(&mut self, now: Time) {
        if self.state == State::Open
            && self.resumption == Resumption::No
            && let Some(bytes) = self.incoming.news()
        {
            self.timers.news(now, bytes);
        }
    }

    /// Tells what came since the peer was told.
    pub(super) fn send_receipt(&mut self) {
        if let Some(receipt) = self.incoming.take_news() {
            self.outgoing.control(&Control::Received(receipt));
        }
    }

    /// A peer that never says what it has costs too much.
    pub(super) fn check_unacknowledged(&self) -> Result<(), Error> {
        let max = self.config.limits.unacknowledged;
        if self.outgoing.unacknowledged() > max {
            return Err(Error::TooMuch { limit: "bytes that are not acknowledged", max: max as u64 });
        }
        Ok(())
    }

    /// Display: the answer to its hello has not come. The app side may have taken it, and have begun.
    fn may_be_known(&self) -> bool {
        self.config.side == Side::Display && self.config.resume.is_some() && self.peer().is_none()
    }

    fn is_numbered(&self) -> bool {
        self.capabilities().has(Capabilities::RESUME)
    }

    /// Leaves the carrier.
    fn park(&mut self) {
        self.state = State::Suspended;
        self.resumption = Resumption::No;
        self.outgoing.suspend();
        self.incoming.park();
    }

    /// Takes over everything of a session of another carrier.
    fn inherit(&mut self, mut old: Self) {
        if old.state == State::Open {
            old.park();
        }
        let events = std::mem::take(&mut self.events);
        self.events = old.events;
        self.events.extend(events);
        self.outgoing.inherit(old.outgoing);
        self.incoming.inherit(old.incoming);
        self.began = old.began;
        self.clock = old.clock;
        self.clock.renew();
        self.warnings += old.warnings;
        self.refusals += old.refusals;
    }

    /// Says what this side has.
    fn tell_all(&mut self) {
        let resume = self.incoming.resume();
        self.outgoing.control(&Control::Resume(resume));
    }

    /// There is nothing to go on with.
    fn void(&mut self, now: Time) -> Result<(), Error> {
        self.outgoing.void();
        self.incoming.void();
        self.began = self.attempt;
        self.events.push_back(Event::Declined);
        self.go_on(now)
    }

    /// Channels and lasting messages pass from now on.
    fn go_on(&mut self, now: Time) -> Result<(), Error> {
        let numbered = self.is_numbered();
        self.resumption = Resumption::No;
        self.timers.ready(now);
        self.outgoing.set_numbered(numbered);
        self.outgoing.write_messages();
        let in_datagrams = self.repairs_in_datagrams();
        self.outgoing.set_rows_in_datagrams(in_datagrams);
        self.outgoing.set_ready();
        self.incoming.set_ready(numbered, in_datagrams)
    }
}

fn unasked(got: &str) -> Error {
    Error::Violation { expected: "a resumption that was asked for, once", got: got.into() }
}
