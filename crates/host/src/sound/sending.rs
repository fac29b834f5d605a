//! One receiver of captured sound: frames become packets on streams and in datagrams.
//!
//! Invariant: between [`Sending::forget`] and the next [`Sending::on_listen`], nothing is sent.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use wayferry_audio::{self as audio, FrameSize, Mode, Outgoing, Sender, TARGET_MAX};
use wayferry_proto::{ChannelId, Header, LinkState, Listen, STREAM_CANCELLED, Session, Time};
use wayferry_sound::{Captured, Codec, Content, Wanted};

use super::{MAX_RATE, MIN_RATE, codec_name};
use crate::clock::earlier;

/// See the module.
#[derive(Debug)]
pub(crate) struct Sending {
    mode: Mode,
    /// What the receiver said last; `None` if it does not listen.
    listen: Option<Listen>,
    /// Of the last flow, and its codec. It outlives a receiver: one that comes again has a player that knows it.
    sender: Option<(Codec, Sender)>,
    groups: BTreeMap<u64, ChannelId>,
    /// Sent so far.
    frames: u64,
}

impl Sending {
    /// To a receiver that does not listen yet.
    pub(crate) fn new(mode: Mode) -> Self {
        Self { mode, listen: None, sender: None, groups: BTreeMap::new(), frames: 0 }
    }

    /// The receiver has said what it wants, or how it fares.
    pub(crate) fn on_listen(&mut self, listen: Listen, session: &mut Session) {
        if Codec::of_track(listen.track).is_none() {
            self.reset_all(session);
            return self.forget();
        }
        if self.listen.is_none() {
            self.sender.iter_mut().for_each(|(_, sender)| sender.restart());
        }
        let target = listen.target.min(TARGET_MAX.as_millis() as u32);
        self.listen = Some(Listen { target, rate: listen.rate.clamp(MIN_RATE, MAX_RATE), ..listen });
    }

    /// The carrier or the receiver is gone, and all channels with it: nothing is wanted until it says so again.
    pub(crate) fn forget(&mut self) {
        self.groups.clear();
        self.listen = None;
    }

    /// What is to be captured for it, on a link with this round trip.
    pub(crate) fn wanted(&mut self, rtt: Duration) -> Option<Wanted> {
        let Listen { track, rate, .. } = self.listen?;
        let frame = self.sender.as_mut().map_or(FrameSize::default(), |(_, sender)| sender.frame_size(rtt));
        Some(Wanted { codec: Codec::of_track(track)?, rate, frame })
    }

    /// How long it takes from the arrival of sound until it is heard there.
    pub(crate) fn delay(&self) -> Duration {
        let delay = self.listen.map_or(0, |listen| listen.delay.min(MAX_DELAY_MS));
        Duration::from_millis(delay.into())
    }

    /// What is sent, for `wayferry info`.
    pub(crate) fn document(&self) -> Value {
        let codec = self.sender.as_ref().filter(|_| self.listen.is_some()).map(|(codec, _)| *codec);
        json!({
            "codec": codec.map(codec_name),
            "rate_bits_per_second": self.listen.map(|listen| listen.rate).filter(|_| codec == Some(Codec::Opus)),
            "mode": self.mode.name(),
            "target_ms": self.listen.map(|listen| listen.target),
            "delay_ms": self.listen.map(|listen| listen.delay),
            "frames": self.frames,
            "streams_open": self.groups.len(),
        })
    }

    /// Something was captured.
    pub(crate) fn send(&mut self, now: Time, session: &mut Session, link: &LinkState, captured: &Captured) {
        if self.listen.is_none() || !session.may_sound() {
            return;
        }
        if self.sender.as_ref().is_none_or(|(codec, _)| *codec != captured.codec) {
            self.reset_all(session);
            self.sender = Some((captured.codec, Sender::new(captured.codec.track(), self.mode)));
        }
        let link = self.link(session, link);
        let Some((_, sender)) = &mut self.sender else { return };
        let outgoing = match &captured.content {
            Content::Frame { start, payload } => {
                sender.frame(now, captured.capture, *start, payload.clone(), link)
            }
            Content::Idle => sender.idle(now, captured.capture, link),
        };
        self.frames += 1;
        self.perform(session, outgoing);
    }

    /// Repeats what is to be repeated, and gives up what is too old.
    pub(crate) fn on_timeout(&mut self, now: Time, session: &mut Session, link: &LinkState) {
        if self.listen.is_none() {
            return;
        }
        let link = self.link(session, link);
        let outgoing = self.sender.as_mut().map(|(_, sender)| sender.on_timeout(now, link));
        self.perform(session, outgoing.unwrap_or_default());
    }

    /// When to look again.
    pub(crate) fn next_timeout(&self, now: Time) -> Option<Time> {
        let repeat = self.sender.as_ref().filter(|_| self.listen.is_some());
        let repeat = repeat.and_then(|(_, sender)| sender.next_timeout());
        earlier(repeat, (!self.groups.is_empty()).then(|| now + LOOK))
    }

    fn link(&self, session: &Session, link: &LinkState) -> audio::Link {
        audio::Link {
            rtt: link.rtt,
            loss: session.loss().map_or(0.0, |(share, _)| share),
            target: Duration::from_millis(self.listen.map_or(0, |listen| listen.target).into()),
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
