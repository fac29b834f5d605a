//! Spans: what a half did for an update of a surface and how long it took, for timelines.
//!
//! The halves have no clock of their own: a caller that wants spans lends them a [`Recorder`], which has one. Without a
//! recorder a [`Probe`] measures nothing. Invariant: a recorder changes nothing about what a half does.

use std::fmt;
use std::sync::Arc;

use wayferry_pixels::Watch;
use wayferry_proto::HostTime;

use crate::message::WireId;

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Reading a committed buffer and comparing it with the content before; `bytes` are the pixels that differ.
    Capture,
    /// Making chunks, each thread's part by itself; `bytes` are those of the chunks.
    Encode,
    /// Opening chunks of a large update, a slice at a time, and painting all of a unit into the content; `bytes` are
    /// the pixels painted.
    Decode,
    /// Filling a buffer of the compositor and committing it; `bytes` are the pixels damaged. What a worker fills, with
    /// none of these, is a span by itself.
    Commit,
}

/// A piece of work that has just ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// What it was.
    pub stage: Stage,
    /// Which thread did it: 0 is the run loop's, others help with encoding.
    pub thread: usize,
    /// The surface.
    pub surface: WireId,
    /// The update of the surface; for a capture, the next one that will leave.
    pub seq: u64,
    /// When it began, on the host's monotonic clock.
    pub start: HostTime,
    /// How much, see [`Stage`].
    pub bytes: u64,
}

/// Takes spans, from several threads.
pub trait Recorder: fmt::Debug + Send + Sync {
    /// The host's monotonic clock.
    fn now(&self) -> HostTime;

    /// `span` ends now.
    fn record(&self, span: Span);
}

/// Where a half's spans go, if anywhere.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    recorder: Option<Arc<dyn Recorder>>,
    /// Who is looked at.
    thread: usize,
}

impl Probe {
    /// Spans go to `recorder`.
    pub fn new(recorder: Arc<dyn Recorder>) -> Self {
        Self { recorder: Some(recorder), thread: 0 }
    }

    /// The time, if somebody wants to know.
    pub(crate) fn begin(&self) -> Option<HostTime> {
        self.recorder.as_ref().map(|recorder| recorder.now())
    }

    /// For a worker: no thread at work there is the run loop's.
    pub(crate) fn elsewhere(&self) -> Self {
        Self { thread: 1, ..self.clone() }
    }

    /// What began at `begun` has ended.
    pub(crate) fn end(
        &self,
        begun: Option<HostTime>,
        stage: Stage,
        (surface, seq): (WireId, u64),
        bytes: u64,
    ) {
        let thread = self.thread;
        if let (Some(recorder), Some(start)) = (&self.recorder, begun) {
            recorder.record(Span { stage, thread, surface, seq, start, bytes });
        }
    }

    /// For the encoder of an update.
    pub(crate) fn encoding(&self, surface: WireId, seq: u64) -> Option<Encoding<'_>> {
        let first = self.thread;
        self.recorder.as_deref().map(|recorder| Encoding { recorder, surface, seq, first })
    }
}

/// Watches the encoder at work on one update.
pub(crate) struct Encoding<'a> {
    recorder: &'a dyn Recorder,
    surface: WireId,
    seq: u64,
    /// The number of the thread that calls the encoder.
    first: usize,
}

impl Watch for Encoding<'_> {
    fn now(&self) -> u64 {
        self.recorder.now().0
    }

    fn encoded(&self, thread: usize, start: u64, bytes: usize) {
        let (surface, seq, start) = (self.surface, self.seq, HostTime(start));
        let thread = thread + self.first;
        self.recorder.record(Span { stage: Stage::Encode, thread, surface, seq, start, bytes: bytes as u64 });
    }
}
