//! Lines on stderr that are not the end of the program.
//!
//! Invariant: one write per message, so that the lines of two processes on one terminal do not mix.

use std::io::{IsTerminal, Write};

use crate::error::Error;
use crate::sanitize::sanitize;

/// Tells the user something that does no harm. Text of a peer is made safe.
pub(crate) fn notice(text: &str) {
    line(&format!("note: {}", sanitize(text)));
}

/// Tells the user about trouble after which the session goes on.
pub(crate) fn trouble(error: &Error) {
    line(&format!("error: {error}"));
    line(&format!("hint: {}", error.hint()));
}

fn line(text: &str) {
    // ssh may have put the terminal into raw mode, where a line feed alone does not return to the first column.
    let end = if std::io::stderr().is_terminal() { "\r\n" } else { "\n" };
    // Nobody may be listening any more, or be slow: that is no trouble of this process.
    let _ = std::io::stderr().write_all(format!("{text}{end}").as_bytes());
}
