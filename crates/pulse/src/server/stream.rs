//! One stream: when it is heard, what its program is asked for and told.
//!
//! A stream waits until enough of it is there, then is heard until it has run dry, and then waits again. A stream whose
//! program asked to begin it by itself ([`Buffering::before`] is 0) does not wait again: its place goes on, and what
//! comes too late is skipped. Invariant: a program is asked for what is missing once.

use std::time::Duration;

use pulseaudio::protocol::{ChannelVolume, Props};
use wayferry_proto::Time;

use super::buffering::{Buffering, TURN};
use super::client::ClientId;
use super::format::silence;
use super::frame::Seek;
use super::queue::Queue;
use super::spec::Spec;
use super::voice::{Mix, Scratch, Voice};

/// See the module.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) owner: ClientId,
    pub(crate) spec: Spec,
    pub(crate) buffering: Buffering,
    pub(crate) props: Props,
    pub(crate) volume: ChannelVolume,
    pub(crate) muted: bool,
    pub(crate) corked: bool,
    /// Whether its program may change the rate.
    pub(crate) variable_rate: bool,
    pub(crate) queue: Queue,
    voice: Voice,
    clock: Clock,
    /// What its program was asked for and has not written.
    asked: usize,
    /// Whether the rest of a frame of sound is dropped, since some of it did not fit.
    dropping: bool,
    /// The numbers of the questions whether all has been heard.
    pub(crate) drains: Vec<u32>,
    /// When the last of what was mixed is heard.
    heard: Time,
    /// Turns in which the resampler still gives something.
    tail: u32,
}

/// Whether the stream's place goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// It waits for more, since then.
    Wait(Time),
    /// The same, but for nothing more than there is: its program said so.
    Begin(Time),
    /// It goes on; so many bytes since it began, or since it ran dry.
    Run { bytes: u64, dry: Option<Time> },
}

/// What its program is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// It is heard from now on.
    Started,
    /// It ran dry at this place.
    Underflow(i64),
    /// All has been heard: the answer to this question.
    Drained(u32),
}

/// What a stream's program wants.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) spec: Spec,
    pub(crate) buffering: Buffering,
    pub(crate) props: Props,
    pub(crate) volume: ChannelVolume,
    pub(crate) muted: bool,
    pub(crate) corked: bool,
    pub(crate) variable_rate: bool,
}

impl Stream {
    /// A new one, of which all is missing.
    pub(crate) fn new(owner: ClientId, now: Time, wish: Wish) -> Self {
        let Wish { spec, buffering, props, volume, muted, corked, variable_rate } = wish;
        let mut queue = Queue::new(spec.frame(), silence(spec.format));
        queue.limit(buffering.limit);
        let voice = Voice::new(&spec.places, &volume, muted);
        let clock = if buffering.before == 0 { RUN } else { Clock::Wait(now) };
        Self {
            owner,
            buffering,
            props,
            volume,
            muted,
            corked,
            variable_rate,
            queue,
            voice,
            clock,
            asked: buffering.target,
            dropping: false,
            drains: Vec::new(),
            heard: now,
            tail: 0,
            spec,
        }
    }

    /// Its program writes; `false` if not all of it could be taken, for the first time in this frame.
    pub(crate) fn write(&mut self, seek: Option<Seek>, bytes: &[u8], room: usize) -> bool {
        if let Some(seek) = seek {
            self.dropping = false;
            self.asked = self.asked.saturating_sub(moved(seek));
            if !self.queue.seek(seek) {
                self.dropping = true;
                self.asked = self.asked.saturating_sub(bytes.len());
                return false;
            }
        }
        self.asked = self.asked.saturating_sub(bytes.len());
        if self.dropping {
            return true;
        }
        self.dropping = self.queue.push(bytes, room) < bytes.len();
        if self.dropping {
            self.queue.align();
        }
        !self.dropping
    }

    /// What its program is to be asked for; it counts as asked from now on.
    pub(crate) fn ask(&mut self) -> Option<usize> {
        let missing = self.buffering.target.saturating_sub(self.queue.level()).saturating_sub(self.asked);
        let frame = self.spec.frame();
        let missing = missing / frame * frame;
        (missing >= self.buffering.request).then(|| {
            self.asked += missing;
            missing
        })
    }

    /// It begins with what is there.
    pub(crate) fn begin(&mut self) {
        if let Clock::Wait(since) = self.clock {
            self.clock = Clock::Begin(since);
        }
    }

    /// It waits for as much as must be there before it begins.
    pub(crate) fn wait(&mut self, now: Time) {
        self.clock = if self.buffering.before == 0 { RUN } else { Clock::Wait(now) };
    }

    /// What was not heard is forgotten.
    pub(crate) fn flush(&mut self, now: Time) {
        self.queue.flush();
        self.wait(now);
    }

    /// What is kept of it changes.
    pub(crate) fn buffer(&mut self, buffering: Buffering) {
        self.buffering = buffering;
        self.queue.limit(buffering.limit);
    }

    /// Volume or mute changed.
    pub(crate) fn weigh(&mut self) {
        self.voice.weigh(&self.spec.places, &self.volume, self.muted);
    }

    /// Its program waits until all has been heard; `false` if it waits too often.
    pub(crate) fn drain(&mut self, sequence: u32) -> bool {
        let may = self.drains.len() < MAX_DRAINS;
        if may {
            self.drains.push(sequence);
        }
        may
    }

    /// Whether the mixer is to be called for it.
    pub(crate) fn wants_mix(&self) -> bool {
        let drained = !self.drains.is_empty() && self.queue.frames() == 0;
        drained || (!self.corked && (self.tail > 0 || self.is_running() || self.is_ready()))
    }

    /// Whether it is heard.
    pub(crate) fn is_heard(&self) -> bool {
        !self.corked && self.heard_for() > 0
    }

    /// How long it has been heard, in its bytes; 0 if it is not.
    pub(crate) fn heard_for(&self) -> u64 {
        match self.clock {
            Clock::Run { bytes, dry: None } => bytes,
            _ => 0,
        }
    }

    /// How long it has not been heard, in its bytes; 0 if it is.
    pub(crate) fn dry_for(&self, now: Time) -> u64 {
        let since = match self.clock {
            Clock::Wait(since) | Clock::Begin(since) | Clock::Run { dry: Some(since), .. } => since,
            Clock::Run { dry: None, .. } => return 0,
        };
        self.spec.bytes(now - since) as u64
    }

    /// Adds its next turn to the mix, of which the last sample is heard at `heard`.
    pub(crate) fn mix(
        &mut self,
        now: Time,
        heard: Time,
        scratch: &mut Scratch,
        mix: &mut Mix,
        notes: &mut Vec<Note>,
    ) {
        if !self.corked {
            self.turn(now, heard, scratch, mix, notes);
        }
        if self.queue.frames() == 0 && now >= self.heard {
            notes.extend(self.drains.drain(..).map(Note::Drained));
        }
    }

    fn turn(&mut self, now: Time, heard: Time, scratch: &mut Scratch, mix: &mut Mix, notes: &mut Vec<Note>) {
        if !self.is_running() && self.is_ready() {
            self.clock = RUN;
        }
        scratch.bytes.clear();
        if !self.is_running() {
            if self.tail > 0 {
                self.tail -= 1;
                self.voice.frames(self.spec.rate);
                self.voice.add(&self.spec, scratch, mix);
                if self.tail == 0 {
                    self.voice.rest();
                }
            }
            return;
        }
        let wanted = self.voice.frames(self.spec.rate);
        let got = self.queue.pull(wanted, &mut scratch.bytes);
        self.voice.add(&self.spec, scratch, mix);
        if got > 0 {
            self.tail = self.voice.tail();
            self.heard = heard + TURN * self.tail;
        }
        self.went(now, wanted, got, notes);
    }

    /// `got` frames were played of the `wanted` ones.
    fn went(&mut self, now: Time, wanted: usize, got: usize, notes: &mut Vec<Note>) {
        let Clock::Run { bytes, dry } = &mut self.clock else { return };
        let played = (got * self.spec.frame()) as u64;
        if got > 0 {
            if *bytes == 0 || dry.is_some() {
                *bytes = 0;
                notes.push(Note::Started);
            }
            *dry = None;
            *bytes += played;
        }
        if got == wanted {
            return;
        }
        if dry.is_none() {
            if *bytes > 0 && self.drains.is_empty() {
                notes.push(Note::Underflow(self.queue.read_at()));
            }
            *dry = Some(now);
        }
        let asleep = dry.is_some_and(|since| now - since >= DRY_CLOCK);
        if self.buffering.before > 0 || asleep {
            self.clock = Clock::Wait(now);
        } else {
            self.queue.skip(wanted - got);
        }
    }

    fn is_running(&self) -> bool {
        matches!(self.clock, Clock::Run { .. })
    }

    fn is_ready(&self) -> bool {
        let frames = self.queue.frames();
        let enough = frames * self.spec.frame() >= self.buffering.before;
        frames > 0 && (enough || !self.drains.is_empty() || matches!(self.clock, Clock::Begin(_)))
    }
}

/// How far a frame that is written where the last one ended moves on: its program counts that as written.
fn moved(seek: Seek) -> usize {
    match seek.from {
        super::frame::From::Write => usize::try_from(seek.offset).unwrap_or(0),
        _ => 0,
    }
}

const RUN: Clock = Clock::Run { bytes: 0, dry: None };

/// How long the place of a stream that does not wait goes on while nothing comes: beyond that it costs nothing.
const DRY_CLOCK: Duration = Duration::from_secs(10);

/// Questions of a program whether all of a stream has been heard.
const MAX_DRAINS: usize = 8;
