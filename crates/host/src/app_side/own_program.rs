//! The session's own program, and the bridge that X11 programs need, which is to be ready before it.
//!
//! What the program's end means is decided in [`super::ending`]. Invariant: the program is started once, and ended when
//! this value is dropped.

use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Pid;
use wayferry_proto::Time;

use crate::edge::outlets::Stdio;
use crate::edge::part::{Hub, Part};
use crate::edge::programs::{Environment, Launch, Place, Program, is_from};
use crate::edge::wait::{Interests, Ready};
use crate::edge::xwayland::{Bridge, Running};
use crate::error::Error;
use crate::event::{Reporter, SessionEvent};

/// A program to start when the display is there.
#[derive(Debug)]
pub struct Start {
    /// What to start.
    pub launch: Launch,
    /// What it finds in its environment.
    pub environment: Environment,
    /// Whose terminal and process group it gets.
    pub place: Place,
    /// Its stdin, stdout and stderr; without, it has this process's.
    pub stdio: Option<Stdio>,
    /// To be ready before the program starts.
    pub bridge: Option<Bridge>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct OwnProgram {
    start: Option<Start>,
    /// Until when the program waits for the bridge, once it may start.
    by: Option<Time>,
    program: Option<Program>,
    /// The end of the bridge does not end the session.
    bridge: Option<Running>,
    /// When the bridge was last asked for its clients, and whether it had any.
    asked: Option<(Time, bool)>,
    /// Why the program was not started, until that is told.
    failure: Option<Error>,
    /// How it ended. Its descriptor would stay ready.
    status: Option<ExitStatus>,
}

impl OwnProgram {
    /// Sets what is to be started.
    pub(super) fn prepare(&mut self, start: Start) {
        self.start = Some(start);
    }

    /// Lets it start, if it has not begun to.
    pub(super) fn may_start(&mut self, now: Time) {
        if self.program.is_none() {
            self.by.get_or_insert(now);
        }
    }

    /// Whether it was started.
    pub(super) fn is_started(&self) -> bool {
        self.program.is_some()
    }

    /// Whether there is none, and will be none.
    pub(super) fn is_none(&self) -> bool {
        self.program.is_none() && self.start.is_none()
    }

    /// Why it was not started; told once.
    pub(super) fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    /// How it ended, if it has.
    pub(super) fn status(&self) -> Option<ExitStatus> {
        self.status
    }

    /// Whether the bridge is at the other end of this socket.
    pub(super) fn is_bridge(&self, socket: &OwnedFd) -> bool {
        self.bridge.as_ref().is_some_and(|bridge| is_from(socket, bridge.program()))
    }

    /// Whether the bridge shows programs inside a window of its own; it is asked now and then.
    pub(super) fn bridge_has_clients(&mut self, now: Time) -> bool {
        let Some(bridge) = self.bridge.as_ref().filter(|bridge| bridge.is_one_window()) else { return false };
        if self.look_again_at().is_none_or(|at| at <= now) {
            self.asked = Some((now, bridge.has_clients()));
        }
        self.asked.is_some_and(|(_, any)| any)
    }

    /// When to ask for that again.
    pub(super) fn look_again_at(&self) -> Option<Time> {
        self.asked.map(|(at, _)| at + CLIENTS_LOOK)
    }

    /// Whether the bridge is a window itself, and not windows of other programs.
    pub(super) fn bridge_is_one_window(&self) -> bool {
        self.bridge.as_ref().is_some_and(Running::is_one_window)
    }

    /// The process groups of the bridge.
    pub(super) fn bridge_groups(&self) -> Vec<Pid> {
        self.bridge.iter().flat_map(Running::programs).filter_map(Program::group).collect()
    }

    /// Starts the bridge, if there is to be one, and then, when it is ready or late, the program.
    fn begin(&mut self, now: Time, reporter: &Reporter) -> Result<(), Error> {
        let Some(mut by) = self.by else { return Ok(()) };
        if let Some(start) = &self.start
            && let Some(bridge) = start.bridge.as_ref().filter(|_| self.bridge.is_none())
        {
            self.bridge = Some(bridge.start(&start.environment)?);
            by = now + PATIENCE;
            self.by = Some(by);
        }
        if now < by
            && self.start.is_some()
            && self.bridge.as_mut().is_some_and(|bridge| bridge.is_awaited(now))
        {
            return Ok(());
        }
        self.by = None;
        let Some(mut start) = self.start.take() else { return Ok(()) };
        if let Some(bridge) = &self.bridge {
            let unready = bridge.unready().into_iter();
            unready.for_each(|reason| reporter.report(SessionEvent::Xwayland { reason }));
            if bridge.is_over() {
                // Toolkits that find a display which does not answer give up.
                start.environment.set.retain(|(name, _)| name != "DISPLAY");
                start.environment.unset.push("DISPLAY".into());
            }
        }
        let Start { launch, environment, place, stdio, .. } = start;
        match Program::start(&launch, &environment, place, stdio) {
            Ok(program) => self.program = Some(program),
            // It was there when the session began.
            Err(error) => self.failure = Some(error),
        }
        Ok(())
    }

    /// Starts the rest of the bridge when its time has come.
    fn go_on(&mut self, reporter: &Reporter) {
        let news = self.bridge.as_mut().and_then(Running::go_on);
        news.into_iter().for_each(|reason| reporter.report(SessionEvent::Xwayland { reason }));
    }
}

impl Part for OwnProgram {
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        if let Some(program) = self.program.as_ref().filter(|_| self.status.is_none()) {
            interests.read(program);
        }
        self.bridge.iter().flat_map(Running::programs).for_each(|program| interests.read(program));
        // The bridge does not say when it is ready; its socket appears.
        let look = if self.bridge.is_some() { LOOK } else { Duration::ZERO };
        interests.until(self.by.map(|_| now + look));
    }

    fn turn(&mut self, now: Time, hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        let bridge =
            self.bridge.as_mut().filter(|bridge| bridge.programs().any(|program| ready.has(program)));
        let ended = bridge.map(Running::take_ends).unwrap_or_default();
        ended.into_iter().for_each(|reason| hub.reporter.report(SessionEvent::Xwayland { reason }));
        if let Some(program) = self.program.as_mut().filter(|program| ready.has(*program)) {
            self.status = program.status();
        }
        self.go_on(hub.reporter);
        self.begin(now, hub.reporter)
    }
}

/// How long the X11 bridge may take before the program is started without it.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often its readiness is checked.
const LOOK: Duration = Duration::from_millis(10);
/// How often it is asked for its clients, once the program has ended.
const CLIENTS_LOOK: Duration = Duration::from_millis(200);
