//! The desk's microphone, for programs of the session that record it.
//!
//! It exists only where the user allowed it. Invariants: the microphone is open only while the app side says that a
//! program records, over a carrier that is there; the user is told when it opens and when it closes.

use std::io;

use serde_json::{Value, json};
use wayferry_proto::{LinkState, Listen, Session, Time};
use wayferry_sound::{Codec, Heeding, Microphone};

use super::{Audio, Mode, Sending};
use crate::clock::Clock;
use crate::edge::part::{Hub, Part};
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::event::{Reporter, SessionEvent};

/// See the module.
#[derive(Debug)]
pub struct Speaking {
    microphone: Microphone,
    sending: Sending,
    /// How the user wants to be heard: as he wants to hear.
    codec: (Codec, u32),
    is_open: bool,
}

impl Speaking {
    /// Nothing is opened until a program records. `name` is what the desk's mixer shows.
    ///
    /// # Errors
    /// The system has no thread or no descriptors left.
    pub fn new(audio: Audio, mode: Mode, name: &str, clock: Clock) -> io::Result<Self> {
        let microphone = Microphone::start(name, move || clock.now())?;
        let codec = audio.wanted().or(Audio::Auto.wanted()).unwrap_or((Codec::Opus, 0));
        Ok(Self { microphone, sending: Sending::new(mode), codec, is_open: false })
    }

    /// A program records, or none does any more.
    pub(crate) fn on_listen(&mut self, listen: Listen, session: &mut Session) {
        self.sending.on_listen(listen, session);
    }

    /// The carrier is gone: no program records until the app side says so again.
    pub(crate) fn forget(&mut self) {
        self.sending.forget();
    }

    /// Opens the microphone, closes it, and passes on what it recorded.
    pub(crate) fn pass(&mut self, now: Time, session: &mut Session, state: &LinkState) {
        let (codec, rate) = self.codec;
        let wanted = self.sending.wanted(state.rtt);
        self.microphone.want(wanted.map(|wanted| wayferry_sound::Wanted { codec, rate, ..wanted }));
        while let Some(captured) = self.microphone.poll_captured() {
            self.sending.send(now, session, state, &captured);
        }
        self.sending.on_timeout(now, session, state);
    }

    /// Closes the microphone with the session.
    pub(crate) fn end(self, reporter: &Reporter) {
        let Self { microphone, is_open, .. } = self;
        drop(microphone);
        if is_open {
            reporter.report(SessionEvent::MicrophoneClosed);
        }
    }

    /// What is sent, for `wayferry info`.
    pub(crate) fn document(&self) -> Value {
        let mut document = self.sending.document();
        document["open"] = json!(self.is_open);
        document
    }
}

impl Part for Speaking {
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.until(self.sending.next_timeout(now));
        interests.read(&self.microphone);
    }

    fn turn(&mut self, _now: Time, hub: &mut Hub<'_>, _ready: &Ready) -> Result<(), Error> {
        while let Some(notice) = self.microphone.poll_notice() {
            self.is_open = notice == Heeding::Open;
            hub.reporter.report(match notice {
                Heeding::Open => SessionEvent::MicrophoneOpen,
                Heeding::Closed => SessionEvent::MicrophoneClosed,
                Heeding::Failed { why } => SessionEvent::NoMicrophone { reason: why },
            });
        }
        Ok(())
    }
}
