//! When the session ends, and with which code.
//!
//! An attached display is sent the code, and given some time to receive it. Programs that a session's program has
//! started may outlive it, as with a launcher that forks and exits: the session goes on while one is connected, or may
//! connect in a moment. Invariant: the code is decided once.

use std::os::fd::OwnedFd;
use std::time::Duration;

use wayferry_proto::Time;
use wayferry_wayland::End;

use super::{AppSide, Outcome};
use crate::control::{Answer, Notice};
use crate::control_server::answer;
use crate::edge::programs::exit_code;
use crate::edge::remaining::{Remaining, remaining};
use crate::error::Error;
use crate::event::SessionEvent;
use crate::program_connection::ProgramConnection;

impl AppSide<'_> {
    /// Ends the session once its purpose is over; the display and viewers get time to receive that.
    pub(super) fn end_or_leave(&mut self, now: Time) {
        if self.hub.link.is_leaving() {
            return self.leave(now);
        }
        let Some(code) = self.ended(now) else { return };
        if self.end(now, code) {
            self.accepting.close();
            if let Some(server) = &mut self.control_server {
                server.tell(&Notice::Exit(code));
            }
            self.hub.link.transmit(now);
            self.views.say_exit(now, code);
        }
    }

    /// The exit code, once the session's purpose is over.
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
        let served_one = self.config.oneshot && self.programs.announced > 0;
        (served_one && self.programs.is_empty()).then_some(0)
    }

    /// The code of the program that has ended, once what it has started is gone too.
    fn alone_at_last(&mut self, now: Time) -> Option<u8> {
        let connected = self.is_connected() || self.own.bridge_has_clients(now);
        let display = self.accepting.name();
        let servers = self.notes.as_ref().and_then(|notes| notes.group());
        let bridge = self.own.bridge_groups();
        let done = self.ending.done.as_mut()?;
        if connected {
            done.patience = None;
            if done.others.are_news(now) {
                self.hub.reporter.report(SessionEvent::ProgramLeftOthers);
            }
            return None;
        }
        done.others.are_gone();
        let patience = done.patience.get_or_insert_with(|| Patience::from(now));
        patience
            .is_over(now, || display.map_or(Remaining::Gone, |display| remaining(display, servers, &bridge)))
            .then_some(done.code)
    }

    /// Whether a program is there to be shown. The X11 bridge is one only while it shows another's window.
    fn is_connected(&self) -> bool {
        let shows = |program: &ProgramConnection| {
            let windows = || program.core.fidelity().next().is_some();
            !program.is_bridge || (!self.own.bridge_is_one_window() && windows())
        };
        !self.programs.early.is_empty() || self.programs.connections.values().any(shows)
    }

    /// When [`Self::alone_at_last`] is to look again.
    pub(super) fn look_again_at(&self) -> Option<Time> {
        let done = self.ending.done.as_ref().filter(|_| !self.hub.link.is_leaving())?;
        match (&done.patience, done.others) {
            (Some(patience), _) => Some(patience.look),
            (None, Others::Since(since)) => Some(since + LOOK),
            (None, _) => self.own.look_again_at(),
        }
    }

    /// Ends the programs and their bus, gives the session's name back, and then tells those who asked for that.
    pub(super) fn leave_nothing(&mut self) {
        drop((std::mem::take(&mut self.own), self.notes.take(), self.control_server.take()));
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
    /// Callers that asked for the end, to be answered when it has come.
    pub(super) stopping: Vec<OwnedFd>,
    /// How the last connection of a program ended.
    pub(super) last_end: Option<End>,
}

/// The session's program has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    code: u8,
    /// How long another program may still connect; `None` while one is connected.
    patience: Option<Patience>,
    /// Programs that outlived it, for which the session goes on.
    others: Others,
}

impl Done {
    /// With this code.
    pub(super) fn with(code: u8) -> Self {
        Self { code, patience: None, others: Others::Unseen }
    }
}

/// Programs that are connected although the session's own has ended, and whether the user knows that the session goes
/// on for them. Its own connection is one of them until its end has been read, which is a moment after its exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    Unseen,
    Since(Time),
    Announced,
}

impl Others {
    /// Some are connected: whether that is to be announced now.
    fn are_news(&mut self, now: Time) -> bool {
        match *self {
            Self::Since(since) if now >= since + LOOK => *self = Self::Announced,
            Self::Unseen => {
                *self = Self::Since(now);
                return false;
            }
            Self::Since(_) | Self::Announced => return false,
        }
        true
    }

    /// None is connected.
    fn are_gone(&mut self) {
        if *self != Self::Announced {
            *self = Self::Unseen;
        }
    }
}

/// How long another program may take to connect.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// When to look at the processes next.
    look: Time,
    /// When it is over if all of them sleep.
    until: Time,
    /// When it is over even if one runs.
    longest: Time,
    /// The last look found no process.
    gone: bool,
}

impl Patience {
    /// With what the program has left, which was there a moment ago.
    fn from(now: Time) -> Self {
        Self { look: now, until: now + GRACE, longest: now + LONGEST, gone: false }
    }

    /// Whether no program is expected to connect any more.
    fn is_over(&mut self, now: Time, remaining: impl FnOnce() -> Remaining) -> bool {
        if now >= self.look {
            let remaining = remaining();
            let is_gone = remaining == Remaining::Gone;
            if is_gone && self.gone {
                return true;
            }
            if remaining == Remaining::Busy {
                self.until = now + GRACE;
            }
            self.gone = is_gone;
            self.look = now + if remaining <= Remaining::Unclear { MOMENT } else { LOOK };
        }
        now >= self.until.min(self.longest)
    }
}

/// How long a program whose parent has ended, or that follows another, may sleep before it connects.
const GRACE: Duration = Duration::from_secs(2);
/// How long it may take if it does not sleep, as where a processor is shared by many.
const LONGEST: Duration = Duration::from_secs(30);
/// When is looked again if no process was found: one that was just being made may not have been seen.
const MOMENT: Duration = Duration::from_millis(20);
/// How often the processes are checked, and how long others must be connected before the user is told of them.
const LOOK: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    /// When it is over, with what the processes do at each look.
    fn over(remaining: impl Fn(Duration) -> Remaining) -> Duration {
        let mut patience = Patience::from(Time::ZERO);
        let mut now = Time::ZERO;
        while !patience.is_over(now, || remaining(now.since_start())) {
            now = patience.look;
        }
        now.since_start()
    }

    #[test]
    fn what_sleeps_is_waited_for_a_moment_and_what_is_gone_is_not() {
        assert_eq!(over(|_| Remaining::Gone), MOMENT);
        assert_eq!(over(|_| Remaining::Asleep), GRACE);
        let second = Duration::from_secs(1);
        assert_eq!(over(|at| if at < second { Remaining::Asleep } else { Remaining::Gone }), second + MOMENT);
    }

    #[test]
    fn regression_one_look_that_finds_no_process_does_not_end_a_session() {
        let once = |at: Duration| if at.is_zero() { Remaining::Gone } else { Remaining::Asleep };
        assert_eq!(over(once), GRACE + MOMENT);
    }

    #[test]
    fn regression_the_programs_own_connection_is_not_what_it_left() {
        let (mut others, mut now) = (Others::Unseen, Time::ZERO);
        assert!(!others.are_news(now), "it may be the program's own, which has ended");
        others.are_gone();
        now += LOOK;
        assert!(!others.are_news(now), "others, which came now");
        now += LOOK;
        assert!(others.are_news(now));
        others.are_gone();
        assert!(!others.are_news(now + LOOK), "once");
    }

    #[test]
    fn regression_a_program_that_waits_for_a_processor_is_waited_for() {
        let busy_for = |time: Duration| move |at| if at < time { Remaining::Busy } else { Remaining::Asleep };
        assert_eq!(over(busy_for(Duration::from_secs(5))), Duration::from_secs(5) - LOOK + GRACE);
        assert_eq!(over(|_| Remaining::Busy), LONGEST);
    }
}
