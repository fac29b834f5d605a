//! How far long work is: a line on a terminal, which is written anew.
//!
//! It is no note: it is not counted, and leaves nothing behind. Where another program has the terminal (ssh, for a
//! shell of the session), the line there is that program's, and nothing is written. A terminal that is not read is
//! not waited for. Invariants: what is written next begins on an empty line, and the line fits the terminal, so that
//! all of it can be erased.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp, tcgetwinsize};

use super::amount;
use super::sink::has_room;
use wayferry_host::sanitize::sanitize;

/// See the module.
pub(crate) struct Progress {
    name: String,
    size: u64,
    done: u64,
    /// How much was done at the beginning, and when that was.
    from: u64,
    begun: Instant,
    /// When the line was written last.
    told: Instant,
}

/// How far a file is of which its sender tells now and then.
pub(super) struct Done<'a> {
    pub(super) name: &'a str,
    pub(super) done: u64,
    pub(super) size: u64,
    /// Files that are on their way besides.
    pub(super) others: u64,
}

impl Progress {
    /// Of so many bytes.
    pub(crate) fn new(name: &str, size: u64) -> Self {
        let now = Instant::now();
        Self { name: sanitize(name), size, done: 0, from: 0, begun: now, told: now }
    }

    /// So many more are done.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.done += bytes;
        if self.told.elapsed() >= PROGRESS {
            self.tell(0);
        }
    }

    fn tell(&mut self, others: u64) {
        self.told = Instant::now();
        let mut stderr = std::io::stderr();
        if is_own_terminal() && has_room(&stderr) {
            let line = self.line(others, self.begun.elapsed(), columns());
            IS_SHOWN.store(true, Ordering::Relaxed);
            let _ = stderr.write_all(format!("{ERASE}{line}").as_bytes());
        }
    }

    /// For a terminal of so many columns. The last one stays free: some begin another line once it is written to.
    fn line(&self, others: u64, took: Duration, columns: usize) -> String {
        let rate = (self.done - self.from) as f64 / took.as_secs_f64();
        let percent = (100.0 * self.done as f64 / self.size.max(1) as f64) as u64;
        let others = if others > 0 { format!(", and {others} more") } else { String::new() };
        let rest = format!(": {percent} %, {}/s{others}", amount(rate as u64));
        let room = columns.saturating_sub(1);
        cut(&(cut(&self.name, room.saturating_sub(rest.len())) + &rest), room)
    }
}

impl Drop for Progress {
    /// The line goes.
    fn drop(&mut self) {
        erase();
    }
}

impl Done<'_> {
    /// Tells of it, in place of what was told of this file, or of another.
    pub(super) fn show(&self, progress: &mut Option<Progress>) {
        let name = sanitize(self.name);
        let is_of_this = |it: &&mut Progress| it.name == name && it.size == self.size && it.done <= self.done;
        if let Some(progress) = progress.as_mut().filter(is_of_this) {
            progress.done = self.done;
            return progress.tell(self.others);
        }
        // How fast it is shows the next time.
        let new = progress.insert(Progress::new(&name, self.size));
        (new.done, new.from) = (self.done, self.done);
    }
}

/// The file of this name has ended: if it was told of that one, the line goes.
pub(super) fn end(name: &str, progress: &mut Option<Progress>) {
    drop(progress.take_if(|it| it.name == sanitize(name)));
}

/// The line goes, unless the terminal takes nothing now: then with the next message.
pub(crate) fn erase() {
    let mut stderr = std::io::stderr();
    if IS_SHOWN.load(Ordering::Relaxed) && has_room(&stderr) {
        let _ = stderr.write_all(erasing().as_bytes());
    }
}

/// What a message on stderr has in front, to begin on an empty line.
pub(super) fn erasing() -> &'static str {
    if IS_SHOWN.swap(false, Ordering::Relaxed) { ERASE } else { "" }
}

/// As much of a text as so many columns hold, with an ellipsis where it is cut.
fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut taken = width(ELLIPSIS);
    if taken > columns {
        return String::new();
    }
    let fits = |letter: &char| {
        taken += width_of(*letter);
        taken <= columns
    };
    text.chars().take_while(fits).collect::<String>() + ELLIPSIS
}

/// Columns that a text takes at most.
fn width(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// Terminals do not agree on more than that.
fn width_of(letter: char) -> usize {
    if letter.is_ascii() { 1 } else { 2 }
}

/// Those of the terminal.
fn columns() -> usize {
    let told = tcgetwinsize(std::io::stderr()).map_or(0, |size| size.ws_col);
    if told == 0 { USUAL_COLUMNS } else { told.into() }
}

/// Whether stderr is a terminal that this process has: one that reads lines, which ssh lets it not do for a shell of
/// the session, nor a shell here for its own line.
fn is_own_terminal() -> bool {
    let stderr = std::io::stderr();
    tcgetattr(&stderr).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON))
        && tcgetpgrp(&stderr).is_ok_and(|group| group == getpgrp())
}

/// Whether the terminal shows such a line.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// To the first column; what stands in the line is erased (ECMA-48, EL).
const ERASE: &str = "\r\x1b[K";

/// Stands where a name is cut.
const ELLIPSIS: &str = "…";

/// Of a terminal that does not say how many it has.
const USUAL_COLUMNS: usize = 80;

/// How often it is told how far work is.
const PROGRESS: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::super::may_tell;
    use super::*;

    #[test]
    fn regression_a_long_transfer_has_notes_left_out() {
        let mut progress = Progress::new("file", 100);
        for _ in 0..100 {
            progress.told = Instant::now().checked_sub(PROGRESS).expect("the machine has run for longer");
            progress.add(1);
        }
        drop(progress);
        assert!(may_tell(), "a line that is written anew is no note");
    }

    #[test]
    fn regression_a_line_is_longer_than_the_terminal_and_leaves_some_of_it_behind() {
        let line = |letter: &str, count, columns| {
            Progress::new(&letter.repeat(count), 100).line(0, Duration::from_secs(1), columns)
        };
        let rest = ": 0 %, 0 bytes/s";
        assert_eq!(line("x", 23, 40), format!("{}{rest}", "x".repeat(23)));
        assert_eq!(line("x", 200, 40), format!("{}…{rest}", "x".repeat(21)));
        assert_eq!(line("字", 11, 40), format!("{}{rest}", "字".repeat(11)));
        assert_eq!(line("字", 200, 40), format!("{}…{rest}", "字".repeat(10)));
        for columns in 1..250 {
            let widths = ["x", "字"].map(|letter| width(&line(letter, 200, columns)));
            assert!(widths.iter().all(|width| *width < columns), "{widths:?} of {columns}");
        }
    }

    #[test]
    fn a_file_of_which_it_is_told_now_and_then_has_a_line_of_its_own() {
        let mut progress = None;
        let done = |name: &'static str, done| Done { name, done, size: 4_000_000, others: 2 };
        done("a", 1_000_000).show(&mut progress);
        done("a", 3_000_000).show(&mut progress);
        let told = progress.as_ref().map(|it| it.line(2, Duration::from_secs(4), 80));
        assert_eq!(told.as_deref(), Some("a: 75 %, 500.0 kB/s, and 2 more"));
        // The next of that name, and another.
        for next in [done("a", 0), done("b\u{1b}", 1)] {
            let from = next.done;
            next.show(&mut progress);
            assert_eq!(progress.as_ref().map(|it| it.from), Some(from));
        }
        assert_eq!(progress.map(|it| it.name.clone()).as_deref(), Some("b\u{fffd}"));
    }

    #[test]
    fn regression_a_file_is_told_to_be_as_far_as_the_one_before_of_its_name() {
        let mut progress = None;
        let done = |size, done| Done { name: "a\u{1b}", done, size, others: 0 };
        done(100, 50).show(&mut progress);
        // Larger than the first, and further at once than that was.
        done(1000, 900).show(&mut progress);
        assert_eq!(progress.as_ref().map(|it| (it.size, it.from)), Some((1000, 900)));
        end("b", &mut progress);
        assert!(progress.is_some(), "it is another that has ended");
        end("a\u{1b}", &mut progress);
        assert!(progress.is_none());
        // As large as that one, and further.
        done(1000, 950).show(&mut progress);
        assert_eq!(progress.map(|it| it.from), Some(950));
    }
}
