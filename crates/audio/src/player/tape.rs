//! Decoded samples that are about to be played, and where in the capture they are.
//!
//! It knows no packets. Invariant: the capture position of its end is exact; that of its beginning is counted back from
//! there, so a splice moves it.

use crate::sample::{CHANNELS, FrameSize};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Tape {
    samples: Vec<f32>,
    /// How many of them are played.
    played: usize,
    end: i64,
    /// Of the packet that was decoded last.
    usual_frames: Option<usize>,
}

impl Tape {
    /// Empty, at another position.
    pub(super) fn restart(&mut self, position: i64) {
        self.samples.clear();
        (self.played, self.end) = (0, position);
    }

    /// A packet had so many frames.
    pub(super) fn note_frames(&mut self, frames: usize) {
        self.usual_frames = Some(frames);
    }

    /// How many frames the next packet will have, as far as can be told: one that is shorter than any sender's says
    /// nothing of others.
    pub(super) fn usual_frames(&self) -> i64 {
        self.usual_frames.unwrap_or(FrameSize::Ms20.frames()).max(FrameSize::Ms10.frames()) as i64
    }

    /// Appends these at its end.
    pub(super) fn append(&mut self, samples: &[f32]) {
        self.forget_played();
        self.samples.extend_from_slice(samples);
        self.end += (samples.len() / CHANNELS) as i64;
    }

    /// Fills the beginning of `out`, and says how many samples that were.
    pub(super) fn take(&mut self, out: &mut [f32]) -> usize {
        let samples = self.rest();
        let count = samples.len().min(out.len());
        out[..count].copy_from_slice(&samples[..count]);
        self.played += count;
        count
    }

    /// Empties the tape, and gives up to `frames` from its beginning; the tape's position stays.
    pub(super) fn clear(&mut self, frames: usize) -> Vec<f32> {
        let rest = self.rest();
        let taken = rest[..rest.len().min(frames.saturating_mul(CHANNELS))].to_vec();
        self.restart(self.position());
        taken
    }

    /// Lets `edit` take frames out of what is not played, or put some in; the end stays where it is.
    pub(super) fn edit(&mut self, edit: impl FnOnce(&mut Vec<f32>)) {
        self.forget_played();
        edit(&mut self.samples);
    }

    pub(super) fn rest(&self) -> &[f32] {
        &self.samples[self.played..]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// Frames that are left.
    pub(super) fn frames(&self) -> usize {
        self.rest().len() / CHANNELS
    }

    /// Capture position of the next frame to play.
    pub(super) fn position(&self) -> i64 {
        self.end - self.frames() as i64
    }

    /// Capture position after its last frame.
    pub(super) fn end(&self) -> i64 {
        self.end
    }

    fn forget_played(&mut self) {
        self.samples.drain(..self.played);
        self.played = 0;
    }
}
