//! What a program's connection is told: once by the user, and of each display that is attached.
//!
//! Plain values; nothing here is checked or changed.

use std::rc::Rc;

use wayferry_gpu::Offer;
use wayferry_pixels::{Compression, Encoder, Workspace};
use wayferry_proto::{ClockMap, HostTime};

use crate::snapshot::Snapshot;
use crate::trace::Probe;
use crate::workers::Workers;

/// What a connection is told once.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Globals offered although they are refused by default.
    pub allow: Vec<String>,
    /// Globals not offered although they are by default.
    pub deny: Vec<String>,
    /// How chunks are compressed.
    pub compression: Compression,
    /// Quality, from 1 to 100, of pictures that are lossy at first because the link is slow; `None` if nothing may be.
    pub lossy: Option<u8>,
    /// Threads that share the encoding of a large update, the run loop's among them; 0 is 1. With more than one, videos
    /// have one of their own.
    pub threads: usize,
    /// Where all that is encoded; of connections that take turns, one is enough.
    pub workspace: Workspace,
    /// This host's monotonic clock at the session's start.
    pub clock_start: HostTime,
    /// What is offered to programs that draw on a GPU; `None` if nothing here reads their buffers.
    pub gpu: Option<Rc<Offer>>,
    /// Who wants to know what takes how long.
    pub probe: Probe,
    /// Who encodes what is large.
    pub workers: Workers,
}

impl Config {
    pub(super) fn encoder(&self) -> Encoder {
        Encoder::new(self.compression).with_threads(self.threads).with_workspace(self.workspace.clone())
    }
}

/// What the app side knows of the display that is attached.
#[derive(Debug, Clone, Default)]
pub struct Desk {
    /// The compositor's state as last told.
    pub snapshot: Snapshot,
    /// Maps the display side's times to this host's.
    pub clock: ClockMap,
    /// It shows videos.
    pub video: bool,
    /// It takes updates that cover those before them, and units in the headers of updates.
    pub cover: bool,
    /// It predicts what keys look like: it is told which keys commits answer.
    pub echo: bool,
}
