//! A display that was let in, before it is decided what it goes on with.
//!
//! Its hello is there, and its session says nothing of channels until one of three things is done, once: it
//! [begins](Candidate::begin), [succeeds](Candidate::succeed) an earlier session of the same display, or only views
//! ([`Candidate::forgo`]). It does not choose among them. Invariant: what is inside comes out by these alone, so no
//! session is used that was not told what it is, and none is told twice.

use crate::{Hello, Session, Time};

/// See the module. `H` holds the display's [`Session`].
#[derive(Debug)]
#[must_use = "the display waits to be told what it goes on with"]
pub struct Candidate<H>(H);

impl<H: AsRef<Session> + AsMut<Session>> Candidate<H> {
    /// One whose hello has come.
    ///
    /// # Errors
    /// It has not.
    pub fn new(holder: H) -> Result<Self, H> {
        if holder.as_ref().peer().is_some() { Ok(Self(holder)) } else { Err(holder) }
    }

    /// What it said.
    pub fn peer(&self) -> Option<&Hello> {
        self.0.as_ref().peer()
    }

    /// To be looked at.
    pub fn holder(&self) -> &H {
        &self.0
    }

    /// Its session begins here. If it wanted to go on with another, it is told that there is nothing to go on with.
    pub fn begin(mut self, now: Time) -> H {
        self.0.as_mut().decline(now);
        self.0
    }

    /// It goes on with `old`, the session that it had: all handles of `old` stay as they are, and what happened to it
    /// and was not polled comes first; its own carrier is to be dropped. [`Event::Resumed`](crate::Event::Resumed)
    /// follows.
    ///
    /// # Errors
    /// Both as they were: it does not want to resume, [not this session](Session::is_of), or one of the two is over.
    pub fn succeed(mut self, now: Time, old: Session) -> Result<H, (Self, Box<Session>)> {
        match self.0.as_mut().succeed(now, old) {
            Ok(()) => Ok(self.0),
            Err(old) => Err((self, old)),
        }
    }

    /// It is a viewer: its session begins here, and never goes on over another carrier. Nothing of what has left is
    /// kept, however late the display says that it has it.
    pub fn forgo(mut self, now: Time) -> H {
        self.0.as_mut().forgo(now);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrival, Config, Side, StreamId, Transmit};

    fn app() -> Session {
        Session::new(Config::new(Side::App))
    }

    #[test]
    fn a_display_is_none_before_its_hello() {
        let waits = Candidate::new(app()).expect_err("nothing was heard of it");
        assert!(waits.peer().is_none());
    }

    #[test]
    fn one_that_has_nothing_to_go_on_with_gives_both_back() {
        let mut session = app();
        let mut display = Session::new(Config::new(Side::Display));
        while let Some(transmit) = display.poll_transmit(Time::ZERO) {
            let Transmit::Data { bytes, .. } = transmit else { continue };
            session.receive(Time::ZERO, Arrival::Data { stream: StreamId(0), offset: 0, bytes });
        }
        let candidate = Candidate::new(session).expect("its hello is there");
        let (candidate, old) = candidate.succeed(Time::ZERO, app()).expect_err("it begins");
        assert!(old.peer().is_none() && candidate.peer().is_some());
        assert!(!candidate.begin(Time::ZERO).is_closed());
    }
}
