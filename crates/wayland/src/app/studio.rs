//! What a program's pixels are encoded with.
//!
//! Decides nothing: which pixels, when, and how well is said by painters and their callers.

use wayferry_pixels::{Content, Encoder};
use wayferry_proto::Time;

use crate::{codec, picture};

use super::config::Config;
use super::credit::Credit;
use super::errand::Kit;
use super::painter::{Means, Screen};

/// See the module.
#[derive(Debug)]
pub(super) struct Studio {
    encoder: Encoder,
    /// Makes the frames of videos.
    codec: codec::Maker,
    /// Quality of what is lossy at first; `None` if nothing may be.
    lossy: Option<u8>,
    /// Contents that were encoded so far.
    encodings: u64,
}

impl Studio {
    pub(super) fn new(config: &Config) -> Self {
        let (encoder, codec) = (config.encoder(), codec::Maker::new(config.threads > 1));
        Self { encoder, codec, lossy: config.lossy, encodings: 0 }
    }

    /// Another display is there, which may understand another compression.
    pub(super) fn renew(&mut self, config: &Config) {
        self.encoder = config.encoder();
    }

    /// Pixels that are encoded in one turn.
    pub(super) fn slice(&self) -> u64 {
        self.encoder.slice()
    }

    /// Whether content may be lossy at first.
    pub(super) fn is_lossy(&self) -> bool {
        self.lossy.is_some()
    }

    /// What painting takes.
    pub(super) fn means<'a>(&'a mut self, now: Time, credit: &'a mut Credit) -> Means<'a> {
        Means { now, encoder: &mut self.encoder, credit, lossy: self.lossy }
    }

    /// The same to begin another content, and what videos take, of which `room` more may begin.
    pub(super) fn begin<'a>(
        &'a mut self,
        now: Time,
        credit: &'a mut Credit,
        room: usize,
    ) -> (Means<'a>, Screen<'a>) {
        self.encodings += 1;
        let Self { encoder, codec, lossy, .. } = self;
        (Means { now, encoder, credit, lossy: *lossy }, Screen { codec, room })
    }

    /// What an errand takes along, and [brings back](Self::come_back). To begin another content, or not.
    pub(super) fn kit(&mut self, begins: bool) -> Kit {
        self.encodings += u64::from(begins);
        let codec = std::mem::replace(&mut self.codec, codec::Maker::new(false));
        Kit { encoder: self.encoder.clone(), codec, lossy: self.lossy }
    }

    /// What an errand took along is back.
    pub(super) fn come_back(&mut self, kit: Kit) {
        self.encoder.learn_from(&kit.encoder);
        self.codec = kit.codec;
    }

    /// A content that is used outside a surface, whole.
    pub(super) fn pack(&mut self, content: Content) -> Vec<u8> {
        picture::pack(&mut self.encoder, content)
    }

    /// Contents that were encoded so far.
    pub(super) fn encodings(&self) -> u64 {
        self.encodings
    }
}
