//! Timelines: what was done for each update of a surface, when, and by which thread.
//!
//! `--trace FILE` has the run loops write one ([`TraceFile`]); `wayferry trace` reads it ([`read`]), joins it with the other
//! side's and draws it ([`chart`]). The format is lines of comma-separated values:
//!
//! ```text
//! wayferry-trace,1,app                                            version; app, display or both
//! # a comment
//! capture,app,0,1,24,7,123456789,123458000,4096                   stage, side, thread, connection, surface, update,
//!                                                                 begin, end, bytes
//! clock,app,123456789,-5000000,40000                              side, when, the peer's clock minus ours, doubt
//! ```
//!
//! Times are nanoseconds of the writing host's monotonic clock. Invariant: what a session does is not changed by tracing
//! it, and a trace never grows beyond [`MAX_FILE`].

pub(crate) mod chart;
mod file;
mod join;
mod queue;
mod read;

use std::fmt::Write;
use std::io::BufReader;
use std::path::PathBuf;

pub(crate) use file::{SideTrace, TraceFile};

use crate::error::{Error, SessionError};
use crate::flags::TraceFlags;
use crate::tell::notice;
use join::{Bar, join};

/// Which half wrote a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Half {
    App,
    Display,
}

/// What was being done, in the order in which an update goes through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Reading a committed buffer.
    Capture,
    /// Making chunks.
    Encode,
    /// From the session's hands to the first byte on the link, which only the carrier's backlog shows.
    Queue,
    /// From the first byte on the link to the last one here; never in a file, it takes both sides to know it.
    Wire,
    /// The last byte is here; begins and ends at once.
    Arrive,
    /// Painting chunks.
    Decode,
    /// Filling the compositor's buffer and committing it.
    Commit,
}

/// A piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) stage: Stage,
    pub(crate) half: Half,
    pub(crate) thread: u32,
    pub(crate) connection: u32,
    pub(crate) surface: u64,
    pub(crate) seq: u64,
    /// Nanoseconds of the writing host's monotonic clock, as `end`.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) bytes: u64,
}

/// What a session knew of the other host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockRow {
    pub(crate) half: Half,
    pub(crate) at: u64,
    /// The peer's clock minus this one, nanoseconds.
    pub(crate) offset: i64,
    /// The offset is wrong by at most this much.
    pub(crate) doubt: u64,
}

impl Half {
    fn name(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Display => "display",
        }
    }
}

impl Stage {
    pub(crate) const ALL: [Self; 7] =
        [Self::Capture, Self::Encode, Self::Queue, Self::Wire, Self::Arrive, Self::Decode, Self::Commit];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Encode => "encode",
            Self::Queue => "queue",
            Self::Wire => "wire",
            Self::Arrive => "arrive",
            Self::Decode => "decode",
            Self::Commit => "commit",
        }
    }
}

/// Runs `wayferry trace`; gives the exit code.
pub(crate) fn run(flags: &TraceFlags) -> Result<u8, Error> {
    let mut traces = Vec::new();
    for path in &flags.files {
        let failed = |source| SessionError::File { path: path.clone(), source };
        let file = std::fs::File::open(path).map_err(failed)?;
        traces.push(read::read(BufReader::new(file)).map_err(|error| failed(error.into()))?);
    }
    let joined = join(traces).map_err(|what| Error::Usage(what.to_owned()))?;
    let bars = joined.cut(flags.from, flags.to);
    print!("{}", summary(&bars));
    if let Some(path) = &flags.svg {
        let chart = chart::draw(&bars);
        if chart.left_out > 0 {
            notice(&format!(
                "{} of {} bars are not in the picture: choose a part with --from and --to",
                chart.left_out,
                bars.len()
            ));
        }
        std::fs::write(path, chart.svg)
            .map_err(|source| SessionError::File { path: PathBuf::from(path), source })?;
    }
    Ok(0)
}

/// A table of the stages.
fn summary(bars: &[Bar]) -> String {
    let mut text =
        format!("{:8} {:>8} {:>10} {:>10} {:>10} {:>12}\n", "stage", "count", "p50", "p95", "max", "bytes");
    for stage in Stage::ALL {
        let mut times: Vec<u64> =
            bars.iter().filter(|bar| bar.stage == stage).map(|bar| bar.end - bar.start).collect();
        if times.is_empty() || stage == Stage::Arrive {
            continue;
        }
        times.sort_unstable();
        let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize] as f64 / 1e6;
        let bytes: u128 = bars.iter().filter(|bar| bar.stage == stage).map(|bar| u128::from(bar.bytes)).sum();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:8} {:>8} {:>7.3} ms {:>7.3} ms {:>7.3} ms {bytes:>12}",
            stage.name(),
            times.len(),
            at(0.5),
            at(0.95),
            at(1.0)
        );
    }
    text
}

/// The first line of a trace, up to its side.
const MAGIC: &str = "wayferry-trace,1,";

/// Longest line that a trace may have.
const MAX_LINE: usize = 256;

/// Most bytes of a trace: an hour and more of an ordinary session.
pub(crate) const MAX_FILE: u64 = 256 << 20;
