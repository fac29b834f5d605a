//! The sound of a session's programs, on its way to the display, and to viewers if they may hear it.
//!
//! It is captured once, as the display wants it, or else the first viewer that listens. Without a receiver programs
//! play all the same, and nothing is captured. The other way round, programs may record the display's microphone, if it
//! allows that; viewers have none.

use std::time::Duration;

use serde_json::{Value, json};
use wayferry_proto::{Capabilities, Listen, Session, Time};

use super::AppSide;
use crate::edge::part::{Hub, Part};
use crate::edge::wait::Interests;
use crate::info::rounded;
use crate::sound::{Audio, Flow, Mode, Sending, SoundServer};

/// See the module.
#[derive(Debug)]
pub(super) struct Sound {
    server: SoundServer,
    display: Sending,
    /// The display's microphone, as it arrives.
    microphone: Option<Flow>,
}

impl Sound {
    pub(super) fn new(server: SoundServer, mode: Mode) -> Self {
        let microphone = Audio::Auto.wanted().map(Flow::new);
        if let Some(flow) = &microphone {
            server.capture.begin_spoken(flow.codec());
        }
        Self { server, display: Sending::new(mode), microphone }
    }

    /// What is wanted, for `wayferry info`.
    pub(super) fn document(&self) -> Value {
        self.display.document()
    }

    /// What programs record, for `wayferry info`.
    pub(super) fn microphone_document(&self) -> Value {
        let (recorded, figures) = self.server.capture.recorded();
        json!({
            "recorded": recorded,
            "target_ms": figures.target.as_millis() as u64,
            "latency_ms": figures.latency.as_millis() as u64,
            "played_seconds": rounded(figures.played.as_secs_f64(), 2),
            "concealed_seconds": rounded(figures.concealed.as_secs_f64(), 3),
        })
    }

    /// The display has said what it wants to hear.
    pub(super) fn on_listen(&mut self, listen: Listen, session: &mut Session) {
        self.display.on_listen(listen, session);
    }

    /// What the display wants to hear, if anything.
    #[cfg(test)]
    pub(super) fn wanted(&mut self) -> Option<wayferry_sound::Wanted> {
        self.display.wanted(Duration::ZERO)
    }

    /// What was sent is gone with its carrier, and nothing is wanted until the display says so again.
    pub(super) fn forget(&mut self) {
        self.display.forget();
        self.microphone.iter_mut().for_each(Flow::tell_again);
    }

    /// A packet of the display's microphone came on a stream.
    pub(super) fn on_packet(&mut self, now: Time, bytes: &[u8]) {
        let Self { server, microphone, .. } = self;
        if let Some(flow) = microphone.as_mut().filter(|_| server.capture.recorded().0) {
            flow.on_packet(now, bytes, &mut server.capture);
        }
    }

    /// Packets of it came in a datagram.
    pub(super) fn on_datagram(&mut self, now: Time, bytes: &[u8]) {
        let Self { server, microphone, .. } = self;
        if let Some(flow) = microphone.as_mut().filter(|_| server.capture.recorded().0) {
            flow.on_datagram(now, bytes, &mut server.capture);
        }
    }

    /// Tells the display whether a program records, and programs whether there is a microphone.
    fn pass_spoken(&mut self, now: Time, session: &mut Session, way: Duration) {
        let (recorded, figures) = self.server.capture.poll_recorded();
        let Some(flow) = &mut self.microphone else { return };
        let allowed = session.capabilities().has(Capabilities::MICROPHONE);
        self.server.capture.set_microphone(allowed, way + figures.latency);
        match allowed && recorded {
            true => flow.tell(now, session, &figures),
            false => flow.tell_nothing(now, session),
        }
    }
}

impl Part for Sound {
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.until(self.display.next_timeout(now));
        interests.until(self.microphone.as_ref().and_then(|flow| flow.next_timeout(now)));
        interests.read(&self.server.capture);
    }
}

impl AppSide<'_> {
    /// Passes on what was captured.
    pub(super) fn pass_sound(&mut self, now: Time) {
        let Some(sound) = &mut self.sound else { return };
        let state = self.hub.link.state();
        let session = &mut self.hub.link.session;
        sound.pass_spoken(now, session, state.rtt / 2);
        let Sound { server, display, .. } = sound;
        let wanted = display.wanted(state.rtt).or_else(|| self.views.wanted_sound());
        server.capture.want(wanted);
        // Programs show pictures by it, and these cross the link as sound does: its way is no difference between them.
        server.capture.set_latency(display.delay());
        while let Some(captured) = server.capture.poll_captured() {
            self.gauges.trace.sound_captured(now, &captured);
            display.send(now, session, &state, &captured);
            self.views.send_sound(now, &captured);
        }
        display.on_timeout(now, session, &state);
        self.views.repeat_sound(now);
    }
}
