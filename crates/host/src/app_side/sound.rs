//! The sound of a session's programs, on its way to the display, and to viewers if they may hear it.
//!
//! It is captured once, as the display wants it, or else the first viewer that listens. Without a receiver programs play
//! all the same, and nothing is captured.

use serde_json::Value;
use wayferry_proto::Time;

use super::AppSide;
use crate::edge::part::{Hub, Part};
use crate::edge::wait::Interests;
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
}

impl AppSide<'_> {
    /// Passes on what was captured.
    pub(super) fn pass_sound(&mut self, now: Time) {
        let Some(Sound { server, display }) = &mut self.sound else { return };
        let state = self.hub.link.state();
        let session = &mut self.hub.link.session;
        let wanted = display.wanted(state.rtt).or_else(|| self.views.wanted_sound());
        server.capture.want(wanted);
        server.capture.set_latency(state.rtt / 2 + display.delay());
        while let Some(captured) = server.capture.poll_captured() {
            display.send(now, session, &state, &captured);
            self.views.send_sound(now, &captured);
        }
        display.on_timeout(now, session, &state);
    }
}
