//! The playout: packets in, samples for the sound device out.
//!
//! Sound is played as far behind its capture as the jitter estimator's target says. While that holds, samples pass
//! unchanged; otherwise `steer` corrects. Samples that are missing when the device wants them are concealed for 60 ms,
//! then faded out. After a stall, an outage or a suspend, playout begins with the first packet that is as old as the
//! target, and skips older ones.
//!
//! It knows no device and no codec. Invariants: every call fills its buffer; the position played goes back only by a
//! lag of the splicer, or at a new beginning.

mod drift;
mod figures;
mod steer;
mod tape;

use std::time::Duration;

use wayferry_proto::Time;

use crate::buffer::{Buffer, Drop, Kept};
use crate::conceal::{BLOCK, Concealment, Decoder};
use crate::error::Error;
use crate::jitter::Jitter;
use crate::packet::Packet;
use crate::sample::{CHANNELS, MS, Position, RATE, frames_in};
use crate::splice::{FADE, join};
use drift::Drift;
pub use figures::{Dropped, Figures};
use steer::Steering;
use tape::Tape;

/// Plays one flow of sound; see the module.
#[derive(Clone, Debug)]
pub struct Player<D> {
    jitter: Jitter,
    buffer: Buffer,
    decoder: D,
    tape: Tape,
    concealment: Concealment,
    steering: Steering,
    phase: Phase,
    drift: Drift,
    counts: Counts,
}

/// What is happening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No sound is expected: nothing came yet, or the sender said that it is silent.
    Silent,
    /// Sound should be there, and is not.
    Dry,
    /// Sound is playing, or is made up. `ending` when the sender has said that it will be silent.
    Playing { ending: bool },
}

/// Totals, in frames or packets.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    played: u64,
    concealed: u64,
    /// Of those, frames of silence because no more could be made up.
    silent: u64,
    cuts: u64,
    dropped: Dropped,
    /// How far behind capture the last buffer was, the device's queue included.
    behind: i64,
}

impl<D: Decoder> Player<D> {
    /// A player that has received nothing.
    pub fn new(decoder: D) -> Self {
        Self {
            jitter: Jitter::new(),
            buffer: Buffer::default(),
            decoder,
            tape: Tape::default(),
            concealment: Concealment::silent(),
            steering: Steering::default(),
            phase: Phase::Silent,
            drift: Drift::default(),
            counts: Counts::default(),
        }
    }

    /// Bytes of one packet arrived at `now`.
    ///
    /// # Errors
    /// The bytes are not a packet.
    pub fn receive_bytes(&mut self, now: Time, bytes: &[u8]) -> Result<(), Error> {
        let packet = Packet::parse(bytes).inspect_err(|_| self.counts.dropped.refused += 1)?;
        self.receive(now, packet);
        Ok(())
    }

    /// A packet of this flow arrived at `now`.
    pub fn receive(&mut self, now: Time, packet: Packet) {
        let capture = packet.capture;
        match self.buffer.insert(packet) {
            Ok(Kept::GoesOn) => {}
            Ok(Kept::Begins) => {
                self.jitter.restart();
                self.drift = Drift::default();
            }
            Err(Drop::Late) => self.counts.dropped.late += 1,
            Err(Drop::Duplicate) => {
                self.counts.dropped.duplicate += 1;
                return;
            }
            Err(Drop::TooFar) => {
                self.counts.dropped.too_far += 1;
                return;
            }
        }
        self.jitter.on_packet(now, capture);
    }

    /// Fills `out`, a whole number of frames, which will be heard after the `device_queue`.
    pub fn play(&mut self, now: Time, out: &mut [f32], device_queue: Duration) {
        let queue = frames_in(device_queue);
        self.steering.on_pull(queue);
        if matches!(self.phase, Phase::Playing { .. }) {
            self.steer(now, queue);
        }
        let mut rest = &mut out[..];
        while !rest.is_empty() {
            let plays = matches!(self.phase, Phase::Playing { .. }) || self.begin(now);
            let filled = if plays { self.emit(rest) } else { self.be_silent(rest) };
            rest = &mut rest[filled..];
        }
        let frames = (out.len() / CHANNELS) as u64;
        self.counts.played += frames;
        self.steering.on_played(frames);
        self.drift.on_pull(self.jitter.arrived(now), frames);
        if let (Phase::Playing { .. }, Some(arrived)) = (self.phase, self.jitter.arrived(now)) {
            self.counts.behind = arrived - self.tape.position() + frames as i64 + queue;
        }
    }

    /// When what is played next was captured, by the sender's sound clock; `None` while no sound is playing.
    pub fn position(&self) -> Option<Position> {
        let playing = matches!(self.phase, Phase::Playing { .. });
        playing.then(|| Position(self.tape.position().max(0).unsigned_abs()))
    }

    /// The packets that wait to be decoded, in their order.
    pub fn waiting(&self) -> impl Iterator<Item = &Packet> {
        self.buffer.iter()
    }

    pub(crate) fn decoder(&self) -> &D {
        &self.decoder
    }

    /// What decodes them.
    pub fn decoder_mut(&mut self) -> &mut D {
        &mut self.decoder
    }

    /// Whether the next buffers will be silent until another packet comes: the device may be released.
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Silent && self.buffer.len() == 0
    }

    /// Begins to play if a waiting packet is as old as the target; drops those that are more than [`PAST`] older.
    fn begin(&mut self, now: Time) -> bool {
        let (Some(arrived), target) = (self.jitter.arrived(now), self.jitter.target_frames()) else {
            return false;
        };
        let mut skipped = self.phase == Phase::Dry;
        while let Some(first) = self.buffer.first() {
            let (flags, capture) = (first.flags, first.capture.frames());
            let level = arrived - capture;
            if flags.idle {
                self.phase = Phase::Silent;
                self.buffer.pop();
            } else if level >= target + PAST {
                skipped = true;
                self.counts.dropped.past += 1;
                self.buffer.pop();
            } else if level < target {
                return false;
            } else {
                let whole = flags.start && !skipped;
                self.concealment = if whole { Concealment::default() } else { Concealment::silent() };
                self.tape.restart(capture);
                self.decoder.restart();
                self.steering.restart();
                self.phase = Phase::Playing { ending: false };
                return true;
            }
        }
        false
    }

    fn be_silent(&mut self, out: &mut [f32]) -> usize {
        out.fill(0.0);
        if self.phase == Phase::Dry {
            self.counts.concealed += (out.len() / CHANNELS) as u64;
            self.counts.silent += (out.len() / CHANNELS) as u64;
        }
        out.len()
    }

    /// Plays what is on the tape, and puts more there when it is empty. Says how many samples were filled.
    fn emit(&mut self, out: &mut [f32]) -> usize {
        if self.tape.is_empty() && !self.decode_next() {
            self.conceal();
        }
        self.tape.take(out)
    }

    /// Makes up a block, or stops playing when no more can be made up and no packet continues the sound.
    fn conceal(&mut self) {
        let Phase::Playing { ending } = self.phase else { return };
        let closes = self.gap().is_some();
        if self.concealment.is_over() && !closes {
            self.phase = if ending { Phase::Silent } else { Phase::Dry };
            return;
        }
        if !closes {
            // No later packet is there, so this one is late rather than lost: playout is ahead of the target.
            self.steering.correct();
        }
        if !ending {
            self.counts.concealed += BLOCK as u64;
            self.counts.silent += if self.concealment.is_over() { BLOCK as u64 } else { 0 };
        }
        let mut block = Vec::new();
        self.concealment.block(&mut self.decoder, &mut block);
        self.tape.append(&block);
    }

    /// Frames missing between the tape and the next packet; `None` if that packet does not continue it.
    fn gap(&self) -> Option<i64> {
        let first = self.buffer.first()?;
        let gap = first.capture.frames() - self.tape.end();
        let begins = (first.flags.start || first.flags.discontinuity) && gap != 0;
        (!first.flags.idle && !begins && gap.abs() <= GAP_LONGEST).then_some(gap)
    }

    /// Decodes the next packet onto the tape, if it continues it.
    fn decode_next(&mut self) -> bool {
        let mut tail = None;
        let mut frame = Vec::new();
        loop {
            self.take_idle();
            let Some(gap) = self.gap().filter(|gap| *gap <= 0) else { break };
            let Some(packet) = self.buffer.pop() else { break };
            // A decoder conceals from what it decoded last, so a packet that is not played must not be decoded.
            if -gap > self.tape.usual_frames() - FADE as i64 {
                self.counts.dropped.past += 1;
                continue;
            }
            let tail = tail.get_or_insert_with(|| self.concealment.tail(&mut self.decoder));
            frame.clear();
            if self.decoder.decode(&packet.payload, &mut frame).is_err() {
                self.counts.dropped.refused += 1;
                continue;
            }
            self.tape.note_frames(frame.len() / CHANNELS);
            frame.drain(..((-gap) as usize * CHANNELS).min(frame.len()));
            if frame.is_empty() {
                continue;
            }
            join(tail, &mut frame);
            self.concealment = Concealment::default();
            self.tape.append(&frame);
            return true;
        }
        // What was made up already must be played: the decoder has gone on.
        let Some(tail) = tail.filter(|tail| !tail.is_empty()) else { return false };
        self.counts.concealed += (tail.len() / CHANNELS) as u64;
        self.concealment.passed(BLOCK);
        self.tape.append(&tail);
        true
    }

    /// Takes *idle* packets whose turn has come.
    fn take_idle(&mut self) {
        while self.buffer.first().is_some_and(|first| first.flags.idle) {
            self.buffer.pop();
            self.phase = Phase::Playing { ending: true };
        }
    }

    /// Skips all sound older than the target, with one fade.
    fn cut(&mut self, arrived: i64) {
        self.counts.cuts += 1;
        let mut tail = self.tape.clear(FADE);
        if tail.len() < FADE * CHANNELS {
            self.concealment.block(&mut self.decoder, &mut tail);
        }
        let wanted = arrived - self.jitter.target_frames();
        while let Some(first) = self.buffer.first() {
            if first.capture.frames() + self.tape.usual_frames() > wanted {
                break;
            }
            self.counts.dropped.past += 1;
            self.buffer.pop();
        }
        self.concealment = Concealment::default();
        let mut head = vec![0.0; FADE * CHANNELS];
        if let Some(first) = self.buffer.first() {
            self.tape.restart(first.capture.frames());
            if self.decode_next() {
                head = self.tape.clear(usize::MAX);
            }
        } else {
            self.concealment = Concealment::silent();
        }
        join(&tail, &mut head);
        self.tape.append(&head);
    }
}

/// A waiting packet that is this much older than the target is not played.
const PAST: i64 = 40 * MS;

/// A longer gap than this is no loss: the sender began anew.
const GAP_LONGEST: i64 = RATE as i64;

#[cfg(test)]
mod tests;
