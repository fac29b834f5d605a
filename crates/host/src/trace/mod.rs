//! Timelines: what was done for each update of a surface, and each packet of sound, when, and by which thread.
//!
//! The run loops write one ([`TraceFile`]), [`read()`](read::read) reads it. The format is lines of comma-separated
//! values:
//!
//! ```text
//! wayferry-trace,1,app                                            version; app, display or both
//! hear,display,0,sound,0,4800480,123456789,123498000,242           of the packet captured then, in 1/48 000 s
//! # a comment
//! capture,app,0,1,24,7,123456789,123458000,4096                   stage, side, thread, connection, surface, update,
//!                                                                 begin, end, bytes
//! clock,app,123456789,-5000000,40000                              side, when, the peer's clock minus ours, doubt
//! ```
//!
//! Times are nanoseconds of the writing host's monotonic clock. Invariant: what a session does is not changed by
//! tracing it, and a trace never grows beyond [`MAX_FILE`].

mod file;
mod queue;
pub mod read;
mod sound;

pub use file::{SideTrace, TraceFile};

/// Which half wrote a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Half {
    /// Beside the programs.
    App,
    /// Beside the compositor.
    Display,
}

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// The sound of the session's programs, as the display hears it. Its packets are numbered by when they were
    /// captured, in 1/48 000 s.
    Sound,
    /// A surface of a program. Its updates are numbered.
    Surface {
        /// The program's connection.
        connection: u32,
        /// Its number there.
        surface: u64,
    },
}

/// What was being done, in the order in which an update or a packet goes through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Reading a committed buffer. Of sound: from its capture until it is encoded and with the session.
    Capture,
    /// Making chunks.
    Encode,
    /// From the session's hands to the first byte on the link, which only the carrier's backlog shows.
    Queue,
    /// From the first byte on the link to the last one here; never in a file, it takes both sides to know it. Of
    /// sound: from the session's hands.
    Wire,
    /// The last byte is here; begins and ends at once.
    Arrive,
    /// Painting chunks.
    Decode,
    /// Filling the compositor's buffer and committing it.
    Commit,
    /// From the arrival of a packet of sound until it is heard.
    Hear,
}

/// A piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// What was done.
    pub stage: Stage,
    /// By which half.
    pub half: Half,
    /// By which of its threads, from 0.
    pub thread: u32,
    /// For this.
    pub subject: Subject,
    /// For this update or packet of it.
    pub seq: u64,
    /// Nanoseconds of the writing host's monotonic clock.
    pub start: u64,
    /// As `start`.
    pub end: u64,
    /// Of the update, as far as the stage knows them.
    pub bytes: u64,
}

/// What a session knew of the other host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockRow {
    /// Who knew it.
    pub half: Half,
    /// When, in nanoseconds of the writing host's monotonic clock.
    pub at: u64,
    /// The peer's clock minus this one, nanoseconds.
    pub offset: i64,
    /// The offset is wrong by at most this much.
    pub doubt: u64,
}

impl Half {
    /// As in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Display => "display",
        }
    }
}

impl Stage {
    /// In this order.
    pub const ALL: [Self; 8] = [
        Self::Capture,
        Self::Encode,
        Self::Queue,
        Self::Wire,
        Self::Arrive,
        Self::Decode,
        Self::Commit,
        Self::Hear,
    ];

    /// As in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Encode => "encode",
            Self::Queue => "queue",
            Self::Wire => "wire",
            Self::Arrive => "arrive",
            Self::Decode => "decode",
            Self::Commit => "commit",
            Self::Hear => "hear",
        }
    }
}

/// Instead of a connection's number, in the file.
const SOUND: &str = "sound";

/// The first line of a trace, up to its side.
const MAGIC: &str = "wayferry-trace,1,";

/// Longest line that a trace may have.
const MAX_LINE: usize = 256;

/// Most bytes of a trace: an hour and more of an ordinary session.
pub const MAX_FILE: u64 = 256 << 20;
