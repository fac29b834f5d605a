//! The window manager inside one window.
//!
//! Any of those known will do as it is installed. Invariant: it is started once, and only when its server is ready.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use wayferry_proto::Time;

use super::super::programs::{Environment, Launch, Place, Program};
use super::super::remaining::is_at_rest;
use super::{Watched, silence};
use crate::edge::path;

/// A window manager that is installed.
#[derive(Debug, Clone)]
pub(super) struct Manager {
    pub(super) name: &'static str,
    pub(super) binary: PathBuf,
}

impl Manager {
    /// The first of those known.
    pub(super) fn find(path: &OsStr) -> Option<Self> {
        KNOWN.iter().find_map(|name| Some(Self { name, binary: path::find(name, path).ok()? }))
    }
}

/// One that is to run, runs or has ended.
#[derive(Debug)]
pub(super) struct Managing {
    manager: Manager,
    environment: Environment,
    program: Option<Watched>,
    /// It could not be started.
    failed: bool,
    /// Since when it was always found to wait for something to do.
    rests: Option<Time>,
}

impl Managing {
    /// Is to be started with this environment.
    pub(super) fn new(manager: &Manager, environment: &Environment) -> Self {
        let (manager, environment) = (manager.clone(), environment.clone());
        Self { manager, environment, program: None, failed: false, rests: None }
    }

    /// Whether it was not started yet.
    pub(super) fn is_to_start(&self) -> bool {
        self.program.is_none() && !self.failed
    }

    /// Starts it; gives what the user should know.
    pub(super) fn start(&mut self) -> Option<String> {
        let Manager { name, binary } = &self.manager;
        let launch = Launch::Command(vec![binary.into()]);
        match Program::start(&launch, &self.environment, Place::OwnGroup, silence()) {
            Ok(program) => {
                self.program = Some(Watched { name, program, over: false });
                None
            }
            Err(error) => {
                self.failed = true;
                Some(format!("X11 windows have no title: {error}"))
            }
        }
    }

    /// Whether it does not manage windows yet. When it has connected to its server, and both wait for something to do,
    /// it does: xterm waits for seconds where a manager comes later than its window.
    pub(super) fn is_awaited(
        &mut self,
        now: Time,
        server: &Watched,
        is_connected: impl FnOnce() -> bool,
    ) -> bool {
        if self.is_over() {
            return false;
        }
        let rests = |watched: &Watched| watched.program.group().is_some_and(is_at_rest);
        let rest = self.program.as_ref().is_some_and(rests) && rests(server) && is_connected();
        self.rests = self.rests.or(Some(now)).filter(|_| rest);
        self.rests.is_none_or(|since| now < since + REST)
    }

    /// What the user should know, once, of its end.
    pub(super) fn take_end(&mut self) -> Option<String> {
        let code = self.program.as_mut()?.take_end()?;
        Some(format!("`{}` ended with status {code}: X11 windows have no title any more", self.manager.name))
    }

    /// Whether it does not run, and will not.
    pub(super) fn is_over(&self) -> bool {
        self.failed || self.program.as_ref().is_some_and(|program| program.over)
    }

    /// It, if it was started.
    pub(super) fn program(&self) -> Option<&Watched> {
        self.program.as_ref()
    }
}

/// Those that need no set-up of the user's, the most complete first; twm has each window be placed with a click.
pub(super) const KNOWN: [&str; 5] = ["openbox", "icewm", "mwm", "matchbox-window-manager", "twm"];
/// How long that must be so: a look may fall between a question and its answer.
const REST: Duration = Duration::from_millis(100);
