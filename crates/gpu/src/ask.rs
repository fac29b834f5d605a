//! What a reader is asked, and what it answers.
//!
//! Imports and readings are answered once each.

use std::rc::Rc;

use wayferry_pixels::Region;

use super::dmabuf::Dmabuf;
use super::frame::Frame;
use super::importer::{Refused, Route};
use super::timeline::Fence;

/// A buffer, as one program's connection names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u64);

/// A reading of one, as one program's connection names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Job(pub u64);

/// What a reader is to do.
#[derive(Debug, Clone)]
pub enum Ask {
    /// Import a buffer: it will be read.
    Import {
        /// Its name from now on.
        buffer: BufferId,
        /// The buffer.
        dmabuf: Rc<Dmabuf>,
    },
    /// Read a buffer once all that draws on it has ended.
    Read {
        /// The name of this reading.
        job: Job,
        /// Which.
        buffer: BufferId,
        /// What of it.
        region: Region,
        /// What tells that it has been drawn; without it, the fences that are attached to the buffer do.
        fence: Option<Rc<Fence>>,
    },
    /// A reading is of no use any more: if it has not begun, it is answered at once, without pixels.
    Cancel {
        /// Its name.
        job: Job,
    },
    /// It is not read any more.
    Forget {
        /// Which.
        buffer: BufferId,
    },
}

/// What became of it.
#[derive(Debug)]
pub enum Answer {
    /// It can be read, and how, or why not.
    Imported {
        /// Which.
        buffer: BufferId,
        /// Whether.
        outcome: Result<Route, Refused>,
    },
    /// Its pixels; `None` if they could not be read.
    Read {
        /// Which.
        job: Job,
        /// They.
        frame: Option<Frame>,
    },
}
