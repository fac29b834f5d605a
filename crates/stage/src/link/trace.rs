//! Traces of a varying link: one millisecond stamp a line, each an opportunity to send 1500 bytes.
//!
//! The format is Mahimahi's. After the last stamp the trace starts over.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// A trace with at least one opportunity; its period is its last stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    stamps: Arc<[u64]>,
}

impl Trace {
    /// Bytes that one opportunity carries.
    pub const BYTES: u64 = 1500;

    /// A trace of these millisecond stamps.
    ///
    /// # Errors
    /// The stamps are none, fall, or end at 0.
    pub fn new(stamps: Vec<u64>) -> Result<Trace, TraceError> {
        if let Some(index) = stamps.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(TraceError::Falls { line: index + 2 });
        }
        match stamps.last() {
            None | Some(0) => Err(TraceError::Empty),
            Some(_) => Ok(Trace { stamps: stamps.into() }),
        }
    }

    /// When opportunity `index` (from 0, over all rounds) comes.
    pub(crate) fn time(&self, index: u64) -> Duration {
        let count = self.stamps.len() as u64;
        Duration::from_millis(index / count * self.period() + self.stamps[(index % count) as usize])
    }

    /// The first opportunity at `time` or after it, and not before `from`.
    pub(crate) fn first_at(&self, from: u64, time: Duration) -> u64 {
        if self.time(from) >= time {
            return from;
        }
        let nanos = time.as_nanos();
        let millis = u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let round = (millis - 1) / self.period();
        let within = millis - round * self.period();
        let index = self.stamps.partition_point(|stamp| *stamp < within) as u64;
        (round * self.stamps.len() as u64 + index).max(from)
    }

    fn period(&self) -> u64 {
        *self.stamps.last().expect("checked in new")
    }
}

impl FromStr for Trace {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Trace, TraceError> {
        let mut stamps = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            stamps.push(line.trim().parse().map_err(|_| TraceError::NotANumber { line: index + 1 })?);
        }
        Trace::new(stamps)
    }
}

/// What is wrong with a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceError {
    /// There is no stamp above 0.
    Empty,
    /// A line is not a whole number of milliseconds.
    NotANumber {
        /// Which line, from 1.
        line: usize,
    },
    /// A stamp is below the one before it.
    Falls {
        /// Which stamp, from 1.
        line: usize,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Empty => write!(f, "a trace needs a stamp above 0"),
            TraceError::NotANumber { line } => write!(f, "line {line} is not a number of milliseconds"),
            TraceError::Falls { line } => write!(f, "stamp {line} is below the one before it"),
        }
    }
}

impl std::error::Error for TraceError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_loops() {
        let trace: Trace = "1\n1\n4\n10\n".parse().unwrap();
        let times: Vec<_> = (0..6).map(|index| trace.time(index).as_millis()).collect();
        assert_eq!(times, [1, 1, 4, 10, 11, 11]);
        assert_eq!("3\n2".parse::<Trace>(), Err(TraceError::Falls { line: 2 }));
        assert_eq!("3\nx".parse::<Trace>(), Err(TraceError::NotANumber { line: 2 }));
        assert_eq!("".parse::<Trace>(), Err(TraceError::Empty));
    }

    #[test]
    fn finds_the_first_opportunity_as_a_search_would() {
        let trace = Trace::new(vec![0, 1, 1, 4, 10]).unwrap();
        for micros in (0..45_000).step_by(250) {
            let time = Duration::from_micros(micros);
            let slow = (0..).find(|index| trace.time(*index) >= time).unwrap();
            let found = trace.first_at(0, time);
            assert_eq!(trace.time(found), trace.time(slow), "{time:?}");
            assert!(found <= slow + 1, "{time:?}");
        }
    }
}
