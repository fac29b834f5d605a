//! A progress bar on stderr, for terminals only: files and pipes get nothing.
//!
//! Invariant: what it writes is gone from the screen before anything else is written.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug)]
pub(crate) struct Bar {
    began: Instant,
    drawn: Option<Instant>,
    shown: bool,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), drawn: None, shown: std::io::stderr().is_terminal() }
    }

    /// `done` of `of` is done.
    pub(crate) fn show(&mut self, done: usize, of: usize) {
        let fresh = self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW);
        if !self.shown || (fresh && done < of) {
            return;
        }
        self.drawn = Some(Instant::now());
        eprint!("\r{}\x1b[K", line(done, of, self.began.elapsed()));
        let _ = std::io::stderr().flush();
    }

    /// Takes the bar off the screen, until it is shown again.
    pub(crate) fn clear(&mut self) {
        if self.shown && self.drawn.take().is_some() {
            eprint!("\r\x1b[K");
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(done: usize, of: usize, elapsed: Duration) -> String {
    let of = of.max(1);
    let filled = (done * WIDTH / of).min(WIDTH);
    let left = elapsed.as_secs_f64() * of.saturating_sub(done) as f64 / done.max(1) as f64;
    let time = if done == 0 { String::new() } else { format!(", {} left", duration(left)) };
    format!("[{}{}] {done}/{of} runs{time}", "#".repeat(filled), ".".repeat(WIDTH - filled))
}

fn duration(seconds: f64) -> String {
    if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

/// Characters of the bar itself.
const WIDTH: usize = 30;

/// How often it is drawn at most.
const REDRAW: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_how_far_it_is() {
        assert_eq!(line(0, 4, Duration::ZERO), format!("[{}] 0/4 runs", ".".repeat(30)));
        let half = line(2, 4, Duration::from_secs(10));
        assert_eq!(half, format!("[{}{}] 2/4 runs, 10 s left", "#".repeat(15), ".".repeat(15)));
        assert!(line(1, 100, Duration::from_secs(10)).ends_with("1/100 runs, 16 min left"));
    }
}
