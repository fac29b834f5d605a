//! When the session ends, and with which code.
//!
//! Every display is told, and has some time to hear it. It ends no program: whoever started one does. Invariant: the code is
//! decided once.

use std::time::Duration;

use wayferry_proto::{CloseReason, Control, Time};

use super::{AppSide, Outcome, Phase};
use crate::control::Told;
use crate::run::Handle;
use crate::run::programs::{Program, exit_code};

impl AppSide<'_> {
    /// Whether the session is over from this side, and how.
    pub(super) fn outcome(&mut self, now: Time) -> Option<Outcome> {
        match self.phase {
            Phase::Exiting { code, deadline } if now >= deadline || self.is_alone() => {
                self.link.session.close(CloseReason::Done);
                self.link.transmit(now);
                Some(self.exit_outcome(code))
            }
            Phase::Exiting { .. } => None,
            Phase::Running => {
                let code = self.ended(now)?;
                self.listener = None;
                if let Some(lobby) = &mut self.lobby {
                    lobby.tell(&Told::Exit(code));
                }
                // Cannot fail: the message is small and ours to send.
                let _ = self.link.session.control(&Control::Exit { code: code.into() });
                self.link.transmit(now);
                self.views.say_exit(now, code);
                let patience = if self.link.is_up() || self.views.count() > 0 {
                    EXIT_PATIENCE
                } else if self.link.session.is_suspended() {
                    AWAY_PATIENCE
                } else {
                    Duration::ZERO
                };
                self.phase = Phase::Exiting { code, deadline: now + patience };
                None
            }
        }
    }

    /// Whether nobody is left who could hear of the end.
    fn is_alone(&self) -> bool {
        !self.link.is_up() && !self.link.session.is_suspended() && self.views.count() == 0
    }

    /// The exit code, once what the session was started for is over.
    fn ended(&mut self, now: Time) -> Option<u8> {
        if self.handle.as_ref().is_some_and(Handle::stop_asked) {
            return Some(0);
        }
        if let Some(code) = self.stopped.or_else(|| self.is_over(now)) {
            return Some(code);
        }
        if let Some(status) = self.program.as_mut().and_then(Program::status) {
            return Some(exit_code(status));
        }
        let served_one = self.config.oneshot && self.next_connection > 1;
        (served_one && self.connections.is_empty() && self.early.is_empty()).then_some(0)
    }

    pub(super) fn exit_outcome(&self, code: u8) -> Outcome {
        match &self.last_end {
            Some(end) if self.config.oneshot && self.program.is_none() => {
                Outcome::ConnectionEnded(end.clone())
            }
            _ => Outcome::Exit(code),
        }
    }
}

/// How long the display may take to answer the end.
const EXIT_PATIENCE: Duration = Duration::from_secs(3);
/// How long a display that is away may take to come and hear of the end.
const AWAY_PATIENCE: Duration = Duration::from_secs(30);
