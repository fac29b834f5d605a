//! What arrives of sound, and what the sender is told about it.
//!
//! Invariant: each flow has a player of its own, which is handed no packet of another.

use std::io;
use std::time::Duration;

use rustix::event::PollFlags;
use serde_json::{Value, json};
use wayferry_audio::{Packet, Packets};
use wayferry_proto::{Listen, Session, Time};
use wayferry_sound::{Codec, DeviceState, Notice, Output, Playback, Report};

use super::{Audio, codec_name, codec_of, track_of};
use crate::clock::{Clock, earlier};
use crate::edge::part::{Hub, Part};
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::event::SessionEvent;
use crate::info::rounded;

/// See the module.
#[derive(Debug)]
pub struct Hearing {
    playback: Playback,
    /// What is asked for.
    wanted: (Codec, u32),
    /// What comes, and since when it is not what is asked for, or is again.
    codec: Codec,
    began: Option<Time>,
    /// What the sender was told last, and when.
    told: Option<(Time, Listen)>,
    /// When sound last arrived.
    heard: Option<Time>,
    /// Packets that were no packets, or of another flow.
    refused: u64,
}

impl Hearing {
    /// Through this output; `None` if nothing is to be heard.
    ///
    /// # Errors
    /// The system has no thread or no descriptors left.
    pub fn new(audio: Audio, output: Output, clock: Clock) -> io::Result<Option<Self>> {
        let Some(wanted) = audio.wanted() else { return Ok(None) };
        let codec = wanted.0;
        let playback = Playback::start(output, move || clock.now())?;
        playback.begin(codec);
        Ok(Some(Self { playback, wanted, codec, began: None, told: None, heard: None, refused: 0 }))
    }

    /// Another carrier: the sender knows nothing of what it was told.
    pub(crate) fn tell_again(&mut self) {
        self.told = None;
    }

    /// The sender knows nothing at all any more: what comes is another flow.
    pub(crate) fn begin_anew(&mut self) {
        self.playback.begin(self.codec);
        self.tell_again();
    }

    /// A packet came on a stream.
    pub(crate) fn on_packet(&mut self, now: Time, bytes: &[u8]) {
        match Packet::parse(bytes) {
            Ok(packet) => self.take(now, packet),
            Err(_) => self.refused += 1,
        }
    }

    /// Packets came in a datagram.
    pub(crate) fn on_datagram(&mut self, now: Time, bytes: &[u8]) {
        for packet in Packets::new(bytes) {
            match packet {
                Ok(packet) => self.take(now, packet),
                Err(_) => self.refused += 1,
            }
        }
    }

    /// What is sent need not be what was asked for: a viewer hears what is captured for the display.
    fn take(&mut self, now: Time, packet: Packet) {
        let Some(codec) = codec_of(packet.track) else {
            self.refused += 1;
            return;
        };
        if codec != self.codec {
            // A player is made for each flow: that is not to be had for every packet.
            if self.began.is_some_and(|began| now.since(began) < FLOWS_APART) {
                self.refused += 1;
                return;
            }
            (self.codec, self.began) = (codec, Some(now));
            self.playback.begin(codec);
        }
        self.heard = Some(now);
        self.playback.packet(now, packet);
    }

    /// How it fares, for `wayferry info`.
    pub(crate) fn document(&self) -> Value {
        let Report { figures, device, position, .. } = self.report();
        let dropped = figures.dropped;
        json!({
            "codec": codec_name(self.codec),
            "rate_bits_per_second": (self.codec == Codec::Opus).then_some(self.wanted.1),
            "device": device_name(device),
            "playing": position.is_some(),
            "target_ms": figures.target.as_millis() as u64,
            "latency_ms": figures.latency.as_millis() as u64,
            "played_seconds": rounded(figures.played.as_secs_f64(), 2),
            "concealed_seconds": rounded(figures.concealed.as_secs_f64(), 3),
            "tempo": rounded(figures.tempo, 4),
            "drift_ppm": figures.drift.map(|drift| rounded(drift, 1)),
            "cuts": figures.cuts,
            "late_packets": dropped.late + dropped.past,
            "refused_packets": dropped.refused + dropped.too_far + self.refused,
        })
    }

    /// How it fares.
    fn report(&self) -> Report {
        self.playback.report()
    }

    /// What the sender is to know now.
    fn listen(&self) -> Listen {
        let report = self.report();
        let milliseconds = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        Listen {
            track: track_of(self.wanted.0),
            rate: self.wanted.1,
            target: milliseconds(report.figures.target),
            delay: milliseconds(report.figures.latency),
        }
    }

    /// Whether sound is arriving.
    fn is_busy(&self, now: Time) -> bool {
        self.heard.is_some_and(|heard| now.since(heard) < QUIET)
    }

    fn tell(&mut self, now: Time, session: &mut Session) {
        let listen = self.listen();
        let due = self.told.is_none_or(|(when, told)| {
            let moved = told.target.abs_diff(listen.target) >= TARGET_STEP_MS;
            moved || (self.is_busy(now) && now.since(when) >= AGAIN)
        });
        if due && session.listen(listen) {
            self.told = Some((now, listen));
        }
    }
}

impl Part for Hearing {
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        let again = self.told.filter(|_| self.is_busy(now)).map(|(when, _)| when + AGAIN);
        interests.until(earlier(again, None));
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
        self.tell(now, &mut hub.link.session);
        Ok(())
    }
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

/// How often the sender is told while sound arrives.
const AGAIN: Duration = Duration::from_secs(1);

/// A sender that changes the codec more often is not followed.
const FLOWS_APART: Duration = Duration::from_secs(1);

/// Sound that has not arrived for so long may have ended.
const QUIET: Duration = Duration::from_secs(2);

/// A target that moves by less can wait for the next time, in milliseconds.
const TARGET_STEP_MS: u32 = 20;
