//! The sound of a session's programs, on its way to the display.
//!
//! Without a display programs play all the same, and nothing is captured.

use serde_json::Value;
use wayferry_proto::Time;

use crate::edge::part::{Hub, Part};
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::sound::{Mode, Sending, SoundServer};

/// See the module.
#[derive(Debug)]
pub(super) struct Sound {
    server: SoundServer,
    pub(super) display: Sending,
}

impl Sound {
    pub(super) fn new(server: SoundServer, mode: Mode) -> Self {
        Self { server, display: Sending::new(mode) }
    }
}

impl Sound {
    /// What is wanted, for `wayferry info`.
    pub(super) fn document(&self) -> Value {
        self.display.document()
    }
}

impl Part for Sound {
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.until(self.display.next_timeout(now));
        interests.read(&self.server.capture);
    }

    fn turn(&mut self, now: Time, hub: &mut Hub<'_>, _ready: &Ready) -> Result<(), Error> {
        let state = hub.link.state();
        let session = &mut hub.link.session;
        let wanted = self.display.wanted(state.rtt);
        self.server.capture.want(wanted);
        self.server.capture.set_latency(state.rtt / 2 + self.display.delay());
        while let Some(captured) = self.server.capture.poll_captured() {
            self.display.send(now, session, &state, &captured);
        }
        self.display.on_timeout(now, session, &state);
        Ok(())
    }
}
