//! The session's sound at the desk: what arrives is played.
//!
//! Invariant: each flow has a player of its own, which is handed no packet of another.

use std::io;
use std::time::Duration;

use rustix::event::PollFlags;
use serde_json::{Value, json};
use wayferry_audio::{Packet, Packets};
use wayferry_proto::Time;
use wayferry_sound::{DeviceState, Heard, Notice, Output, Playback, Report, Watcher};

use super::{Audio, Flow, codec_name};
use crate::clock::Clock;
use crate::edge::part::{Hub, Part};
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::event::SessionEvent;
use crate::info::rounded;

/// Looks at packets that arrive: when, their sequence numbers, and when they were captured by the sender's sound clock.
pub type Listening = Box<dyn FnMut(Time, u32, Duration) + Send>;

/// See the module.
pub struct Hearing {
    playback: Playback,
    flow: Flow,
    listening: Option<Listening>,
}

impl Hearing {
    /// Through this output; `None` if nothing is to be heard.
    ///
    /// # Errors
    /// The system has no thread or no descriptors left.
    pub fn new(audio: Audio, output: Output, clock: Clock) -> io::Result<Option<Self>> {
        let Some(wanted) = audio.wanted() else { return Ok(None) };
        let playback = Playback::start(output, move || clock.now())?;
        playback.begin(wanted.0);
        Ok(Some(Self { playback, flow: Flow::new(wanted), listening: None }))
    }

    /// Shows each packet that arrives, copies too, to this.
    #[must_use]
    pub fn with_listening(self, listening: Listening) -> Self {
        Self { listening: Some(listening), ..self }
    }

    /// Something that watches how it fares.
    pub fn watcher(&self) -> Watcher {
        self.playback.watcher()
    }

    /// Another carrier: the sender knows nothing of what it was told.
    pub(crate) fn tell_again(&mut self) {
        self.flow.tell_again();
    }

    /// The sender knows nothing at all any more: what comes is another flow.
    pub(crate) fn begin_anew(&mut self) {
        self.playback.begin(self.flow.codec());
        self.tell_again();
    }

    /// A packet came on a stream.
    pub(crate) fn on_packet(&mut self, now: Time, bytes: &[u8]) {
        if let (Some(listening), Ok(packet)) = (&mut self.listening, Packet::parse(bytes)) {
            listening(now, packet.sequence, captured(&packet));
        }
        self.flow.on_packet(now, bytes, &mut self.playback);
    }

    /// Packets came in a datagram.
    pub(crate) fn on_datagram(&mut self, now: Time, bytes: &[u8]) {
        if let Some(listening) = &mut self.listening {
            let packets = Packets::new(bytes).flatten();
            packets.for_each(|packet| listening(now, packet.sequence, captured(&packet)));
        }
        self.flow.on_datagram(now, bytes, &mut self.playback);
    }

    /// What is heard next.
    pub(crate) fn next(&self) -> Option<Heard> {
        self.playback.report().next
    }

    /// How it fares, for `wayferry info`.
    pub(crate) fn document(&self) -> Value {
        let Report { figures, device, next, .. } = self.playback.report();
        let dropped = figures.dropped;
        json!({
            "codec": codec_name(self.flow.codec()),
            "rate_bits_per_second": self.flow.rate(),
            "device": device_name(device),
            "playing": next.is_some(),
            "target_ms": figures.target.as_millis() as u64,
            "latency_ms": figures.latency.as_millis() as u64,
            "played_seconds": rounded(figures.played.as_secs_f64(), 2),
            "concealed_seconds": rounded(figures.concealed.as_secs_f64(), 3),
            "tempo": rounded(figures.tempo, 4),
            "drift_ppm": figures.drift.map(|drift| rounded(drift, 1)),
            "cuts": figures.cuts,
            "late_packets": dropped.late + dropped.past,
            "refused_packets": dropped.refused + dropped.too_far + self.flow.refused(),
        })
    }
}

impl Part for Hearing {
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.until(self.flow.next_timeout(now));
        interests.add_borrowed(self.playback.wake_fd(), PollFlags::IN);
    }

    fn turn(&mut self, now: Time, hub: &mut Hub<'_>, _ready: &Ready) -> Result<(), Error> {
        while let Some(notice) = self.playback.poll_notice() {
            hub.reporter.report(match notice {
                Notice::NoServer { tried } => SessionEvent::NoSound { reason: tried },
                Notice::Lost { why } => SessionEvent::SoundLost { reason: why },
                Notice::Back => SessionEvent::SoundBack,
            });
        }
        self.flow.tell(now, &mut hub.link.session, &self.playback.report().figures);
        Ok(())
    }
}

fn captured(packet: &Packet) -> Duration {
    Duration::from_micros(packet.capture.0.saturating_mul(1000) / 48)
}

fn device_name(state: DeviceState) -> &'static str {
    match state {
        DeviceState::Closed => "closed",
        DeviceState::Opening => "opening",
        DeviceState::Playing => "playing",
        DeviceState::Corked => "silent",
        DeviceState::Waiting => "lost",
        DeviceState::Failed => "failed",
    }
}
