//! What is to be protected: bytes that were handed over on a stream, and what they are.
//!
//! It decides nothing but how long rows are held back. Invariant: what is true of updates alone is told of no others.

use std::time::Duration;

use bytes::Bytes;

use super::HOLD;
use crate::{Priority, StreamId, UpdateHeader};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Source<'a> {
    pub(in super::super) what: What,
    /// The channel's number; 0 for the main one.
    pub(in super::super) channel: u64,
    pub(in super::super) stream: StreamId,
    pub(in super::super) priority: Priority,
    /// Where in the stream they begin.
    pub(in super::super) offset: u64,
    pub(in super::super) pieces: &'a [Bytes],
}

/// What bytes are.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum What {
    /// Messages of the main channel, or of a program.
    Messages,
    /// Events of the display side.
    Events,
    /// All of an update.
    Update {
        header: UpdateHeader,
        /// How many bytes at their beginning say what the others are.
        head: usize,
        worth: Worth,
        /// Whether the peer takes repair that stands for several updates.
        joint: bool,
    },
}

/// What an update is to the user, by which it is repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Worth {
    /// The user waits for it: it answers input.
    Answer,
    /// Neither of the others.
    #[default]
    Plain,
    /// A newer update is about to [cover](UpdateHeader::covers) it: its rows wait for that, and leave only if none
    /// comes for more than a frame.
    Passing,
}

impl Source<'_> {
    /// How long its rows are held back.
    pub(super) fn hold(&self) -> Duration {
        match self.what {
            What::Update { worth: Worth::Passing, .. } => PASSING,
            _ => HOLD,
        }
    }
}

impl What {
    /// The update that they are.
    pub(super) fn update(&self) -> Option<UpdateHeader> {
        match self {
            Self::Update { header, .. } => Some(*header),
            Self::Messages | Self::Events => None,
        }
    }
}

/// How long rows are held back where a newer update makes them superfluous: longer than a frame at 60 Hz.
const PASSING: Duration = Duration::from_millis(22);
