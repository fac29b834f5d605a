//! The session's own program, and the bridge that X11 programs need, which is to be ready before it.
//!
//! What the program's end means is decided in [`super::ending`]. Invariant: the program is started once, and ended when
//! this value is dropped.

use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::time::Duration;

use wayferry_proto::Time;

use crate::edge::outlets::Stdio;
use crate::edge::part::{Hub, Part};
use crate::edge::programs::{Environment, Launch, Place, Program, is_from};
use crate::edge::wait::{Interests, Ready};
use crate::edge::xwayland::{Running, Satellite};
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
    pub satellite: Option<Satellite>,
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

    /// Starts the bridge, if there is to be one, and then, when it is ready or late, the program.
    fn begin(&mut self, now: Time, reporter: &Reporter) -> Result<(), Error> {
        let Some(mut by) = self.by else { return Ok(()) };
        if let Some(start) = &self.start
            && let Some(satellite) = start.satellite.as_ref().filter(|_| self.bridge.is_none())
        {
            self.bridge = Some(satellite.start(&start.environment)?);
            by = now + PATIENCE;
            self.by = Some(by);
        }
        let waits = |bridge: &Running| !bridge.is_over() && !bridge.is_ready();
        if now < by && self.start.is_some() && self.bridge.as_ref().is_some_and(waits) {
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
}

impl Part for OwnProgram {
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        if let Some(program) = self.program.as_ref().filter(|_| self.status.is_none()) {
            interests.read(program);
        }
        if let Some(bridge) = self.bridge.as_ref().filter(|bridge| !bridge.is_over()) {
            interests.read(bridge);
        }
        // The bridge does not say when it is ready; its socket appears.
        interests.until(self.by.map(|_| now + LOOK));
    }

    fn turn(&mut self, now: Time, hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        let bridge = self.bridge.as_mut().filter(|bridge| ready.has(*bridge));
        let ended = bridge.and_then(Running::take_end);
        ended.into_iter().for_each(|reason| hub.reporter.report(SessionEvent::Xwayland { reason }));
        if let Some(program) = self.program.as_mut().filter(|program| ready.has(*program)) {
            self.status = program.status();
        }
        self.begin(now, hub.reporter)
    }
}

/// How long the X11 bridge may take before the program is started without it.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often its readiness is checked.
const LOOK: Duration = Duration::from_millis(10);
