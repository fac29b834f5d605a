//! Lines on stderr that are not the end of the program.
//!
//! Much of what they tell is caused by a peer, and much of that by strangers, who may do it a thousand times a second: so they
//! are cut short, and only so many are written. Invariant: one write per message, so that the lines of two processes on one
//! terminal do not mix.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::sanitize::sanitize;

/// Tells the user something that does no harm. Text of a peer is made safe.
pub(crate) fn notice(text: &str) {
    if may_tell() {
        line(&format!("note: {}", sanitize(text)));
    }
}

/// Tells the user about trouble after which the session goes on.
pub(crate) fn trouble(error: &Error) {
    if may_tell() {
        line(&format!("error: {error}"));
        line(&format!("hint: {}", error.hint()));
    }
}

/// Whether something may be told now; if so, tells how much was left out before it.
fn may_tell() -> bool {
    let now = Instant::now();
    let mut limit = LIMIT.lock().unwrap_or_else(PoisonError::into_inner);
    let limit = limit.get_or_insert_with(|| (now, Limit::new()));
    let skipped = limit.1.take(now.duration_since(limit.0));
    if let Some(skipped @ 1..) = skipped {
        line(&format!("note: {skipped} more notes were left out"));
    }
    skipped.is_some()
}

fn line(text: &str) {
    // ssh may have put the terminal into raw mode, where a line feed alone does not return to the first column.
    let end = if std::io::stderr().is_terminal() { "\r\n" } else { "\n" };
    // Nobody may be listening any more, or be slow: that is no trouble of this process.
    let _ = std::io::stderr().write_all(format!("{text}{end}").as_bytes());
}

/// How many notes may still be written: [`BURST`] at once, then one each [`STEP`].
#[derive(Debug)]
struct Limit {
    left: u32,
    /// Until then, `left` is accounted for.
    counted: Duration,
    skipped: u64,
}

impl Limit {
    const fn new() -> Self {
        Self { left: BURST, counted: Duration::ZERO, skipped: 0 }
    }

    /// Whether a note may be written at `now`; if so, how many were left out before it.
    fn take(&mut self, now: Duration) -> Option<u64> {
        let earned = now.saturating_sub(self.counted).as_millis() / STEP.as_millis();
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(earned).min(BURST);
        self.counted = if self.left == BURST { now } else { self.counted + STEP * earned };
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Some(std::mem::take(&mut self.skipped))
            }
            None => {
                self.skipped += 1;
                None
            }
        }
    }
}

/// Of this process, since its first note.
static LIMIT: Mutex<Option<(Instant, Limit)>> = Mutex::new(None);

/// Notes at once: more than a session with many programs has reason for.
const BURST: u32 = 20;
/// Time that earns another note.
const STEP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn a_flood_of_notes_is_cut_and_counted() {
        let mut limit = Limit::new();
        let written = (0..10_000).filter(|number| limit.take(MILLISECOND * *number).is_some()).count();
        // Ten seconds.
        assert_eq!(written, BURST as usize + 9);
        assert_eq!(limit.take(Duration::from_secs(60)), Some(999), "those since the last that was written");
        assert_eq!(limit.take(Duration::from_secs(60)), Some(0));
    }

    #[test]
    fn a_note_a_second_is_never_left_out() {
        let mut limit = Limit::new();
        assert!((0..1000).all(|second| limit.take(Duration::from_secs(second)) == Some(0)));
    }
}
