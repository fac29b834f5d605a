//! One direction of sound where it arrives: which packets are its own, and what the sender is told about it.
//!
//! Invariant: a player is handed no packet of another flow than that which it began last.

use std::time::Duration;

use wayferry_proto::{Listen, Session, Time};

use crate::codec::Codec;
use crate::packet::{Packet, Packets};
use crate::player::Figures;

/// What plays a flow.
pub trait Ear {
    /// Another flow begins, with an empty player.
    fn begin(&mut self, codec: Codec);

    /// A packet of it arrived.
    fn packet(&mut self, arrived: Time, packet: Packet);
}

/// See the module.
#[derive(Debug)]
pub struct Flow {
    /// What is asked for, and its rate.
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

impl Flow {
    /// Asked for in this codec, at this rate, and not begun.
    pub fn new(wanted: (Codec, u32)) -> Self {
        Self { wanted, codec: wanted.0, began: None, told: None, heard: None, refused: 0 }
    }

    /// What comes.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Bits in a second that are asked for, if the codec has a choice.
    pub fn rate(&self) -> Option<u32> {
        (self.codec == Codec::Opus).then_some(self.wanted.1)
    }

    /// Packets that were none.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Another carrier: the sender knows nothing of what it was told.
    pub fn tell_again(&mut self) {
        self.told = None;
    }

    /// A packet came on a stream.
    pub fn on_packet(&mut self, now: Time, bytes: &[u8], ear: &mut impl Ear) {
        match Packet::parse(bytes) {
            Ok(packet) => self.take(now, packet, ear),
            Err(_) => self.refused += 1,
        }
    }

    /// Packets came in a datagram.
    pub fn on_datagram(&mut self, now: Time, bytes: &[u8], ear: &mut impl Ear) {
        for packet in Packets::new(bytes) {
            match packet {
                Ok(packet) => self.take(now, packet, ear),
                Err(_) => self.refused += 1,
            }
        }
    }

    /// What is sent need not be what was asked for: a viewer hears what is captured for the display.
    fn take(&mut self, now: Time, packet: Packet, ear: &mut impl Ear) {
        let Some(codec) = Codec::of_track(packet.track) else {
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
            ear.begin(codec);
        }
        self.heard = Some(now);
        ear.packet(now, packet);
    }

    /// Tells the sender how it fares, if that is due.
    pub fn tell(&mut self, now: Time, session: &mut Session, figures: &Figures) {
        let milliseconds = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let listen = Listen {
            track: self.wanted.0.track(),
            rate: self.wanted.1,
            target: milliseconds(figures.target),
            delay: milliseconds(figures.latency),
        };
        let due = self.told.is_none_or(|(when, told)| {
            let changed = told.track != listen.track;
            let moved = told.target.abs_diff(listen.target) >= TARGET_STEP_MS;
            changed || moved || (self.is_busy(now) && now.since(when) >= AGAIN)
        });
        if due {
            // One that cannot be told is told nothing later either, unless something else happens.
            self.told = session.listen(listen).then_some((now, listen));
        }
    }

    /// Tells the sender that nothing is wanted any more, if it was told otherwise.
    pub fn tell_nothing(&mut self, now: Time, session: &mut Session) {
        let nothing = Listen { track: 0, rate: 0, target: 0, delay: 0 };
        let asked = self.told.is_some_and(|(_, told)| told.track != 0);
        if asked && session.listen(nothing) {
            self.told = Some((now, nothing));
        }
    }

    /// When the sender is to be told again.
    pub fn next_timeout(&self, now: Time) -> Option<Time> {
        self.told.filter(|(_, told)| told.track != 0 && self.is_busy(now)).map(|(when, _)| when + AGAIN)
    }

    /// Whether sound is arriving.
    fn is_busy(&self, now: Time) -> bool {
        self.heard.is_some_and(|heard| now.since(heard) < QUIET)
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
