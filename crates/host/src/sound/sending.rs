//! One receiver of captured sound: frames become packets on streams and in datagrams.
//!
//! Invariant: between [`Sending::forget`] and the next [`Sending::on_listen`], nothing is sent.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use wayferry_audio::{self as audio, FrameSize, Mode, Outgoing, Sender, TARGET_MAX};
use wayferry_proto::{ChannelId, Header, LinkState, Listen, STREAM_CANCELLED, Session, Time};
use wayferry_sound::{Captured, Codec, Wanted};

use super::{MAX_RATE, MIN_RATE, codec_name, codec_of, track_of};

/// See the module.
#[derive(Debug)]
pub(crate) struct Sending {
    mode: Mode,
    listen: Listen,
    sender: Option<Sender>,
    groups: BTreeMap<u64, ChannelId>,
    /// Sent so far.
    frames: u64,
}

impl Sending {
    /// To a receiver that does not listen yet.
    pub(crate) fn new(mode: Mode) -> Self {
        Self { mode, listen: Listen::default(), sender: None, groups: BTreeMap::new(), frames: 0 }
    }

    /// The receiver has said what it wants, or how it fares.
    pub(crate) fn on_listen(&mut self, listen: Listen, session: &mut Session) {
        let listen = Listen { target: listen.target.min(TARGET_MAX.as_millis() as u32), ..listen };
        let track = self.codec().map(track_of);
        self.listen = listen;
        match (self.codec().map(track_of), &mut self.sender) {
            (None, _) => {
                self.reset_all(session);
                self.forget();
            }
            (Some(_), None) => self.begin(),
            (now, Some(_)) if now == track => {}
            (Some(_), Some(_)) => {
                self.reset_all(session);
                self.begin();
            }
        }
    }

    /// The carrier or the receiver is gone, and all channels with it: nothing is wanted until it says so again.
    pub(crate) fn forget(&mut self) {
        self.groups.clear();
        self.listen = Listen::default();
        // Its sequence goes on: a receiver that comes again has a player that knows it.
        self.sender.iter_mut().for_each(Sender::restart);
    }

    /// What is to be captured for it, on a link with this round trip.
    pub(crate) fn wanted(&mut self, rtt: Duration) -> Option<Wanted> {
        let codec = self.codec()?;
        let frame = self.sender.as_mut().map_or(FrameSize::default(), |sender| sender.frame_size(rtt));
        Some(Wanted { codec, rate: self.listen.rate.clamp(MIN_RATE, MAX_RATE), frame })
    }

    /// How long it takes from the arrival of sound until it is heard there.
    pub(crate) fn delay(&self) -> Duration {
        Duration::from_millis(self.listen.delay.min(MAX_DELAY_MS).into())
    }

    /// What is sent, for `wayferry info`.
    pub(crate) fn document(&self) -> Value {
        json!({
            "codec": self.codec().map(codec_name),
            "rate_bits_per_second": (self.listen.rate > 0).then_some(self.listen.rate),
            "mode": self.mode.name(),
            "target_ms": self.listen.target,
            "delay_ms": self.listen.delay,
            "frames": self.frames,
            "streams_open": self.groups.len(),
        })
    }

    /// Something was captured.
    pub(crate) fn send(&mut self, now: Time, session: &mut Session, link: &LinkState, captured: &Captured) {
        let link = self.link(session, link);
        let Some(sender) = self.sender.as_mut().filter(|_| self.listen.track != 0 && session.may_sound())
        else {
            return;
        };
        let outgoing = match captured {
            Captured::Frame { capture, start, payload } => {
                sender.frame(now, *capture, *start, payload.clone(), link)
            }
            Captured::Idle { capture } => sender.idle(now, *capture, link),
        };
        self.frames += 1;
        self.perform(session, outgoing);
    }

    /// Gives up what is too old.
    pub(crate) fn on_timeout(&mut self, now: Time, session: &mut Session, link: &LinkState) {
        let link = self.link(session, link);
        let outgoing = self.sender.as_mut().map(|sender| sender.on_timeout(now, link)).unwrap_or_default();
        self.perform(session, outgoing);
    }

    /// When to look again.
    pub(crate) fn next_timeout(&self, now: Time) -> Option<Time> {
        (!self.groups.is_empty()).then(|| now + LOOK)
    }

    fn codec(&self) -> Option<Codec> {
        codec_of(self.listen.track)
    }

    fn begin(&mut self) {
        self.sender = Some(Sender::new(self.listen.track, self.mode));
    }

    fn link(&self, session: &Session, link: &LinkState) -> audio::Link {
        audio::Link {
            rtt: link.rtt,
            loss: session.loss().map_or(0.0, |(share, _)| share),
            target: Duration::from_millis(self.listen.target.into()),
            // The datagram's kind takes a byte.
            datagram: usize::from(link.datagram.saturating_sub(1)),
        }
    }

    fn perform(&mut self, session: &mut Session, outgoing: Vec<Outgoing>) {
        for outgoing in outgoing {
            match outgoing {
                Outgoing::Stream { group, packet, ends } => {
                    let channel = *self.groups.entry(group).or_insert_with(|| session.open(Header::Sound));
                    // Cannot fail: no packet is longer than its limit.
                    let _ = session.send_sound(channel, &packet.to_vec());
                    if ends {
                        session.finish(channel);
                    }
                }
                Outgoing::Datagram(packets) => session.send_datagram(&audio::datagram(&packets)),
                Outgoing::Reset { group } => {
                    let channel = self.groups.remove(&group);
                    channel.into_iter().for_each(|channel| session.reset(channel, STREAM_CANCELLED));
                }
            }
        }
    }

    fn reset_all(&mut self, session: &mut Session) {
        for channel in std::mem::take(&mut self.groups).into_values() {
            session.reset(channel, STREAM_CANCELLED);
        }
    }
}

/// How often old groups are looked for.
const LOOK: Duration = Duration::from_millis(100);

/// More than that is nothing a program could wait for, in milliseconds.
const MAX_DELAY_MS: u32 = 5000;
