//! The reading side of a trace. A trace may come from anywhere, so nothing in it is trusted.
//!
//! Invariant: memory is bounded by [`MAX_FILE`] and `MAX_ROWS` for any input, and what is wrong is told with its line.

use std::fmt;
use std::io::{BufRead, Read};

use super::{ClockRow, Half, MAGIC, MAX_FILE, MAX_LINE, Row, SOUND, Stage, Subject};

/// A trace as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Whose it is; `None` for both in one process.
    pub half: Option<Half>,
    /// Pieces of work, in the order in which they ended.
    pub rows: Vec<Row>,
    /// What was known of the peer's clock, oldest first.
    pub clocks: Vec<ClockRow>,
}

/// Why a file is no trace.
#[derive(Debug)]
pub enum ReadError {
    /// It cannot be read.
    Io(std::io::Error),
    /// Not even the beginning of one.
    NoTrace,
    /// A line that is not in the format.
    Line {
        /// From 1.
        number: usize,
        /// What would have been right.
        expected: &'static str,
    },
    /// It has more lines than `MAX_ROWS`.
    TooLong,
}

/// Reads a trace. A last line without its end is left out: its writer was killed.
pub fn read(source: impl BufRead) -> Result<Trace, ReadError> {
    let mut source = source.take(MAX_FILE + 1);
    let mut line = Vec::new();
    let mut trace: Option<Trace> = None;
    for number in 1.. {
        line.clear();
        source.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line).map_err(ReadError::Io)?;
        if line.last() != Some(&b'\n') {
            let whole = trace.filter(|_| line.len() <= MAX_LINE);
            return match source.limit() {
                0 => Err(ReadError::TooLong),
                _ if number == 1 => Err(ReadError::NoTrace),
                _ => whole.ok_or(ReadError::Line { number, expected: "a shorter line" }),
            };
        }
        let wrong = |expected| ReadError::Line { number, expected };
        let text = std::str::from_utf8(&line[..line.len() - 1]).map_err(|_| wrong("plain text"));
        match &mut trace {
            None => trace = Some(begin(text.map_err(|_| ReadError::NoTrace)?)?),
            Some(trace) => add(trace, text?).map_err(wrong)?,
        }
    }
    Err(ReadError::TooLong)
}

fn begin(line: &str) -> Result<Trace, ReadError> {
    let half = match line.strip_prefix(MAGIC).ok_or(ReadError::NoTrace)? {
        "app" => Some(Half::App),
        "display" => Some(Half::Display),
        "both" => None,
        _ => return Err(ReadError::Line { number: 1, expected: "app, display or both" }),
    };
    Ok(Trace { half, rows: Vec::new(), clocks: Vec::new() })
}

fn add(trace: &mut Trace, line: &str) -> Result<(), &'static str> {
    if line.starts_with('#') {
        return Ok(());
    }
    let fields: Vec<&str> = line.split(',').collect();
    let half = match *fields.get(1).ok_or("a stage and a side")? {
        "app" => Half::App,
        "display" => Half::Display,
        _ => return Err("app or display as the second value"),
    };
    match fields[..] {
        ["clock", _, at, offset, doubt] => {
            let offset = offset.parse().map_err(|_| "a number as the fourth value")?;
            trace.clocks.push(ClockRow { half, at: number(at)?, offset, doubt: number(doubt)? });
            Ok(())
        }
        [stage, _, thread, connection, surface, seq, start, end, bytes] => {
            let stage = Stage::ALL.into_iter().find(|known| known.name() == stage && *known != Stage::Wire);
            let row = Row {
                stage: stage.ok_or("a stage as the first value")?,
                half,
                thread: small(thread)?,
                subject: match connection {
                    SOUND => Subject::Sound,
                    _ => Subject::Surface { connection: small(connection)?, surface: number(surface)? },
                },
                seq: number(seq)?,
                start: number(start)?,
                end: number(end)?,
                bytes: number(bytes)?,
            };
            if row.end < row.start {
                return Err("an end after the begin");
            }
            if trace.rows.len() == MAX_ROWS {
                return Err("no more rows than that: leave some out");
            }
            trace.rows.push(row);
            Ok(())
        }
        _ => Err("nine values, or five for a clock"),
    }
}

fn number(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "a number of 64 bits")
}

fn small(text: &str) -> Result<u32, &'static str> {
    text.parse().map_err(|_| "a number of 32 bits")
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NoTrace => f.write_str("it is no trace of wayferry, or of another version"),
            Self::Line { number, expected } => write!(f, "line {number} of the trace: expected {expected}"),
            Self::TooLong => write!(f, "a trace is at most {} MiB long", MAX_FILE >> 20),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<ReadError> for std::io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => error,
            error => Self::new(std::io::ErrorKind::InvalidData, error),
        }
    }
}

/// Rows of a trace; more do not fit a file of ours.
const MAX_ROWS: usize = 5_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        read(text.as_bytes()).expect_err(text).to_string()
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let after = |line: &str| error(&format!("wayferry-trace,1,app\n# c\n{line}\n"));
        for text in ["", "\n", "hello\n", "wayferry-trace,2,app\n", "wayferry-trace,1,app", "\u{0}\u{1}\n"] {
            assert_eq!(error(text), "it is no trace of wayferry, or of another version", "{text:?}");
        }
        assert_eq!(error("wayferry-trace,1,x\n"), "line 1 of the trace: expected app, display or both");
        assert_eq!(after("x"), "line 3 of the trace: expected a stage and a side");
        assert_eq!(after("encode,peer"), "line 3 of the trace: expected app or display as the second value");
        assert_eq!(after("encode,app,1"), "line 3 of the trace: expected nine values, or five for a clock");
        assert_eq!(
            after("wire,app,0,1,2,3,4,5,6"),
            "line 3 of the trace: expected a stage as the first value"
        );
        assert_eq!(after("encode,app,0,1,2,3,5,4,6"), "line 3 of the trace: expected an end after the begin");
        assert_eq!(after("encode,app,0,1,2,3,4,-5,6"), "line 3 of the trace: expected a number of 64 bits");
        assert_eq!(
            after("encode,app,4294967296,1,2,3,4,5,6"),
            "line 3 of the trace: expected a number of 32 bits"
        );
        assert_eq!(after("clock,app,1,x,3"), "line 3 of the trace: expected a number as the fourth value");
        assert_eq!(after(&"#".repeat(10_000)), "line 3 of the trace: expected a shorter line");
    }

    #[test]
    fn a_line_that_was_cut_off_is_left_out() {
        let trace = read(&b"wayferry-trace,1,both\nencode,app,0,1,2,3,4,5,6\nencode,app,0,1,2"[..]);
        assert_eq!(trace.expect("a trace").rows.len(), 1);
    }

    #[test]
    fn an_endless_file_is_refused() {
        struct Endless;
        impl Read for Endless {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                into.fill(b'#');
                into.iter_mut().skip(99).step_by(100).for_each(|byte| *byte = b'\n');
                // Every line is a comment.
                Ok(into.len())
            }
        }
        let source =
            std::io::BufReader::with_capacity(1 << 20, (&b"wayferry-trace,1,app\n"[..]).chain(Endless));
        assert_eq!(read(source).expect_err("endless").to_string(), "a trace is at most 256 MiB long");
    }
}
