//! The session's sound, for a page that plays it by an audio worklet of its browser.
//!
//! The worklet asks for sound and is answered; until then it asks no more, so nothing piles up. While it is silent the
//! answer waits. How much the worklet is to hold follows from how often it had nothing left: it plays while
//! this thread does other things, which at times takes more than a few milliseconds.
//!
//! Invariant: while the page does not listen, the app side is told so, and nothing is kept.

use std::time::Duration;

use wayferry_audio::{CHANNELS, Codec, Ear, Elsewhere, Flow, Packet, Player, RATE};
use wayferry_proto::{Session, Time};

/// See the module.
#[derive(Debug)]
pub struct Sound {
    /// What is asked for; `None` while the page does not listen.
    wanted: Option<Codec>,
    flow: Flow,
    voice: Voice,
    ask: Option<Ask>,
    lead: Lead,
}

/// What an audio worklet says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Frames that it has.
    pub held: u32,
    /// Frames that it had at the least since it asked last.
    pub spare: u32,
    /// Frames that it did not have when it should have played them, since it asked last.
    pub missed: u32,
    /// How long it takes until what it has played is heard.
    pub latency: Duration,
}

/// What plays a flow.
#[derive(Debug)]
struct Voice {
    codec: Codec,
    player: Player<Elsewhere>,
}

/// How much the worklet is to hold.
#[derive(Debug)]
struct Lead {
    blocks: usize,
    /// The least that was to spare since then, in frames.
    spare: u32,
    since: Time,
    /// It was silent, and the next that it says of what was missing means nothing.
    slept: bool,
}

impl Default for Sound {
    fn default() -> Self {
        Self {
            wanted: None,
            flow: Flow::new((Codec::Opus, BITS)),
            voice: Voice { codec: Codec::Opus, player: Player::new(Elsewhere::default()) },
            ask: None,
            lead: Lead { blocks: LEAST, spare: 0, since: Time::ZERO, slept: true },
        }
    }
}

impl Sound {
    /// The page listens to what comes, and wants it in this codec; or it does not.
    pub fn listen(&mut self, wanted: Option<Codec>) {
        if let Some(codec) = wanted {
            self.flow = Flow::new((codec, BITS));
            self.voice.begin(codec);
        }
        (self.wanted, self.ask) = (wanted, None);
    }

    /// A packet came on a stream.
    pub fn on_packet(&mut self, now: Time, bytes: &[u8]) {
        if self.wanted.is_some() {
            self.flow.on_packet(now, bytes, &mut self.voice);
        }
    }

    /// Packets came in a datagram.
    pub fn on_datagram(&mut self, now: Time, bytes: &[u8]) {
        if self.wanted.is_some() {
            self.flow.on_datagram(now, bytes, &mut self.voice);
        }
    }

    /// Tells the app side what is wanted; gives when it is to be told again.
    pub fn tell(&mut self, now: Time, session: &mut Session) -> Option<Time> {
        match self.wanted {
            Some(_) => self.flow.tell(now, session, &self.voice.player.figures()),
            None => self.flow.tell_nothing(now, session),
        }
        self.flow.next_timeout(now)
    }

    /// What the app side was told is gone with the carrier.
    pub fn tell_again(&mut self) {
        self.flow.tell_again();
    }

    /// The app side knows nothing at all any more: what comes is another flow.
    pub fn begin_anew(&mut self) {
        self.voice.begin(self.flow.codec());
        self.tell_again();
    }

    /// What the browser is to decode next, and its number, from 1.
    pub fn poll_encoded(&mut self) -> Option<(u32, Vec<u8>)> {
        self.voice.player.poll_encoded()
    }

    /// What decodes.
    pub fn decoder(&mut self) -> &mut Elsewhere {
        self.voice.player.decoder_mut()
    }

    /// The worklet asks for sound.
    pub fn ask(&mut self, now: Time, ask: Ask) {
        self.lead.learn(now, ask);
        self.ask = self.wanted.map(|_| ask);
    }

    /// The answer, frames of two samples; `None` if none is due. It may be empty.
    pub fn answer(&mut self, now: Time) -> Option<Vec<f32>> {
        let Ask { held, latency, .. } = self.ask?;
        if self.voice.player.is_idle() {
            self.lead.slept = true;
            return None;
        }
        self.ask = None;
        // While it waited, the worklet has played what it had.
        let held = if self.lead.slept { 0 } else { held as usize };
        let blocks = (self.lead.blocks * BLOCK).saturating_sub(held).div_ceil(BLOCK);
        let mut samples = vec![0.0; blocks * BLOCK * CHANNELS];
        for (number, block) in samples.chunks_exact_mut(BLOCK * CHANNELS).enumerate() {
            let queue = (held + number * BLOCK) as f64 / f64::from(RATE);
            self.voice.player.play(now, block, latency + Duration::from_secs_f64(queue));
        }
        Some(samples)
    }

    /// What is played.
    pub fn player(&self) -> &Player<Elsewhere> {
        &self.voice.player
    }
}

impl Ear for Voice {
    fn begin(&mut self, codec: Codec) {
        *self = Self { codec, player: Player::new(self.player.decoder_mut().next_flow()) };
    }

    fn packet(&mut self, arrived: Time, packet: Packet) {
        match self.codec {
            Codec::Opus => self.player.receive_encoded(arrived, packet),
            Codec::Pcm => self.player.receive_samples(arrived, packet),
        }
    }
}

impl Lead {
    fn learn(&mut self, now: Time, Ask { spare, missed, .. }: Ask) {
        if std::mem::take(&mut self.slept) {
            return;
        }
        self.spare = self.spare.min(spare);
        if missed > 0 {
            self.blocks = (self.blocks + (missed as usize).div_ceil(BLOCK)).min(MAX_LEAD);
        } else if now.since(self.since) < CALM {
            return;
        } else if self.spare as usize > 2 * BLOCK {
            self.blocks = (self.blocks - 1).max(LEAST);
        }
        (self.spare, self.since) = (u32::MAX, now);
    }
}

/// Bits in a second, as a desk asks for by default.
const BITS: u32 = 96_000;

/// Frames of a block: 10 ms.
const BLOCK: usize = RATE as usize / 100;

/// Blocks that the worklet is to hold at least: it asks every 8 ms, and is answered within a few more.
const LEAST: usize = 3;

/// Blocks that it is to hold at most; it has room for 20.
pub const MAX_LEAD: usize = 15;

/// What has been more than enough for so long will be so.
const CALM: Duration = Duration::from_secs(30);
