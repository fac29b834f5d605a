//! When the session ends, and with which code.
//!
//! A display that is there is told, and has some time to hear it. Programs that a session's program has started may outlive it,
//! as with a launcher that forks and exits: the session goes on while one is connected, or may connect in a moment.
//! Invariant: the code is decided once.

use std::os::fd::OwnedFd;
use std::time::Duration;

use wayferry_proto::Time;
use wayferry_wayland::End;

use super::{AppSide, Outcome};
use crate::control::{Answer, Told};
use crate::edge::programs::exit_code;
use crate::edge::remaining;
use crate::error::Error;
use crate::event::SessionEvent;
use crate::lobby::answer;
use crate::served::Served;

impl AppSide<'_> {
    /// Looks whether what the session was started for is over; once it is, those who are to hear of it get the time.
    pub(super) fn end_or_leave(&mut self, now: Time) {
        if self.hub.link.is_leaving() {
            return self.leave(now);
        }
        let Some(code) = self.ended(now) else { return };
        if self.end(now, code) {
            self.accepting.close();
            if let Some(lobby) = &mut self.lobby {
                lobby.tell(&Told::Exit(code));
            }
            self.hub.link.transmit(now);
            self.views.say_exit(now, code);
        }
    }

    /// The exit code, once what the session was started for is over.
    fn ended(&mut self, now: Time) -> Option<u8> {
        if self.gauges.stop_asked() {
            return Some(0);
        }
        if let Some(code) = self.ending.stopped.or_else(|| self.deserted(now)) {
            return Some(code);
        }
        if let Some(status) = self.own.status() {
            self.ending.done.get_or_insert(Done::with(exit_code(status)));
        }
        if self.ending.done.is_some() {
            return self.alone_at_last(now);
        }
        let served_one = self.config.oneshot && self.programs.told > 0;
        (served_one && self.programs.is_empty()).then_some(0)
    }

    /// The code of the program that has ended, once what it has started is gone too.
    fn alone_at_last(&mut self, now: Time) -> Option<u8> {
        let connected = self.is_connected();
        let display = self.accepting.name();
        let done = self.ending.done.as_mut()?;
        if connected {
            done.grace = None;
            if !std::mem::replace(&mut done.told, true) {
                self.hub.reporter.report(SessionEvent::ProgramLeftOthers);
            }
            return None;
        }
        let may_come = || display.is_some_and(|display| remaining::any_for(display));
        let until = *done.grace.get_or_insert_with(|| if may_come() { now + GRACE } else { now });
        (until <= now).then_some(done.code)
    }

    /// Whether a program is there to be shown. The X11 bridge is one only while it shows something.
    fn is_connected(&self) -> bool {
        let shows = |served: &Served| !served.is_bridge || served.core.fidelity().next().is_some();
        !self.programs.early.is_empty() || self.programs.connections.values().any(shows)
    }

    /// When [`Self::alone_at_last`] is to look again.
    pub(super) fn grace_at(&self) -> Option<Time> {
        self.ending.done.as_ref().filter(|_| !self.hub.link.is_leaving())?.grace
    }

    /// Ends the programs, gives the session's name back, and then tells those who asked for that.
    pub(super) fn leave_nothing(&mut self) {
        drop((std::mem::take(&mut self.own), self.lobby.take()));
        self.ending.stopping.drain(..).for_each(|socket| answer(&socket, &Answer::Done));
    }

    pub(super) fn exit_outcome(&self, code: u8) -> Outcome {
        match &self.ending.last_end {
            Some(end) if self.config.oneshot && !self.own.is_started() => {
                Outcome::ConnectionEnded(end.clone())
            }
            _ => Outcome::Exit(code),
        }
    }
}

/// How far the end of a session is.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// How the session ended.
    pub(super) over: Option<Result<Outcome, Error>>,
    /// It was asked to end, with this code.
    pub(super) stopped: Option<u8>,
    /// The program has ended.
    pub(super) done: Option<Done>,
    /// Those who asked for the end, to be told when it is there.
    pub(super) stopping: Vec<OwnedFd>,
    /// How the last connection of a program ended.
    pub(super) last_end: Option<End>,
}

/// The session's program has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    code: u8,
    /// Until when another program may connect; `None` while one is there.
    grace: Option<Time>,
    /// The user knows that the session goes on.
    told: bool,
}

impl Done {
    /// With this code.
    pub(super) fn with(code: u8) -> Self {
        Self { code, grace: None, told: false }
    }
}

/// How long a program may take to connect whose launcher has ended, or that follows another.
const GRACE: Duration = Duration::from_secs(2);
