//! `wayferry demo` and `wayferry bench`: the laboratory, a program of its own beside this one.
//!
//! It has emulated links, generated screens and plots, which no session needs. Invariant: it gets the command line as
//! it was given, but for `--events`, which is this program's.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::error::Error;

/// Becomes the laboratory. Returns only if there is none.
pub(crate) fn run() -> Result<u8, Error> {
    let program = beside().unwrap_or_else(|| PROGRAM.into());
    let failed = Command::new(&program).args(theirs(std::env::args_os().skip(1))).exec();
    Err(Error::NoLaboratory { source: failed })
}

/// What of the command line is the laboratory's.
fn theirs(mut words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut theirs = Vec::new();
    while let Some(word) = words.next() {
        match word.to_str() {
            // What stands behind two dashes is a program's.
            Some("--") => {
                theirs.push(word);
                theirs.extend(words);
                return theirs;
            }
            Some("--events") => drop(words.next()),
            Some(word) if word.starts_with("--events=") => {}
            _ => theirs.push(word),
        }
    }
    theirs
}

/// Where it is installed, or was built, together with this program.
fn beside() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    path.exists().then_some(path)
}

const PROGRAM: &str = "wayferry-lab";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_are_kept_back_and_not_those_of_a_program() {
        let line = "--events 3 demo --rtt 5 --events=- -- foot --events 4";
        let words = theirs(line.split(' ').map(OsString::from));
        assert_eq!(
            words,
            "demo --rtt 5 -- foot --events 4".split(' ').map(OsString::from).collect::<Vec<_>>()
        );
    }
}
