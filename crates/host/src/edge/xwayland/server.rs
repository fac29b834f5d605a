//! The X server, Xwayland, and what it can do.
//!
//! It is asked, as an option that a server does not know ends it. Invariant: an option is given only to a server that
//! lists it.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::failure::Failure;
use super::version::Version;
use crate::edge::path;

/// An X server that is installed.
#[derive(Debug)]
pub(super) struct Server {
    binary: PathBuf,
}

impl Server {
    /// Looks for it.
    pub(super) fn find(path: &OsStr) -> Result<Self, Failure> {
        path::find(NAME, path).map(|binary| Self { binary }).map_err(|_| Failure::NoServer)
    }

    /// Its version, if it tells it.
    pub(super) fn version(&self) -> Option<Version> {
        Version::told(&self.ask("-version"))
    }

    /// What starts it as one window with a root window in it.
    pub(super) fn words_of_one_window(&self, display: OsString) -> Vec<OsString> {
        let mut words = vec![self.binary.clone().into(), display];
        words.extend(options(&self.ask("-help")).into_iter().map(OsString::from));
        words
    }

    /// What it says; nothing if it cannot be run, which its start will tell.
    fn ask(&self, option: &str) -> String {
        let output = Command::new(&self.binary).arg(option).stdin(Stdio::null()).output();
        let said = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
        String::from_utf8_lossy(&said).into_owned()
    }
}

/// Those that a server takes which lists its options like this. Before 23.1 its window is as large as all outputs are.
fn options(help: &str) -> Vec<&'static str> {
    let knows = |option: &str| help.lines().any(|line| line.split_whitespace().next() == Some(option));
    let mut options = vec!["-noreset"];
    if knows("-geometry") {
        options.extend(["-geometry", SIZE]);
    }
    if knows("-decorate") {
        options.push("-decorate");
    }
    options
}

/// Its name.
pub(super) const NAME: &str = "Xwayland";
/// In which its window begins; it can be resized.
const SIZE: &str = "1024x768";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_options_that_the_server_lists_are_given() {
        assert_eq!(options("-rootless    run rootless\n-decorations\n"), ["-noreset"]);
        let new = "-decorate     add decorations\n-geometry WxH   set window size\n";
        assert_eq!(options(new), ["-noreset", "-geometry", SIZE, "-decorate"]);
    }
}
