//! The X server, Xwayland: which version it is, and what it can do.
//!
//! It is asked, as an option that a server does not know ends it. Invariant: an option is given only to a server that
//! lists it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{Failure, installed};

/// An X server that is installed.
#[derive(Debug)]
pub(super) struct Server {
    binary: PathBuf,
}

/// The version of an X server: the first three of its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub [u16; 3]);

impl Server {
    /// Looks for it.
    pub(super) fn find(path: &OsStr) -> Result<Self, Failure> {
        installed(path, NAME).map(|binary| Self { binary }).ok_or(Failure::NoServer)
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

impl Version {
    /// From a line such as `The X.Org Foundation Xwayland Version 22.1.9 (12201009)`.
    fn told(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("Xwayland Version ")?;
        let mut numbers = rest.split(|character: char| !character.is_ascii_digit() && character != '.');
        let mut numbers = numbers.next()?.split('.').map(|number| number.parse().ok());
        Some(Self([numbers.next()??, numbers.next()??, numbers.next().flatten().unwrap_or(0)]))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}")?;
        if patch > 0 { write!(f, ".{patch}") } else { Ok(()) }
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
/// The first that xwayland-satellite can use, as its own page says.
pub(super) const FOR_SATELLITE: Version = Version([23, 1, 0]);
/// In which its window begins; it can be resized.
const SIZE: &str = "1024x768";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_is_told() {
        let told = |text: &str| Version::told(text).map(|version| version.to_string());
        let text =
            "The X.Org Foundation Xwayland Version 22.1.9 (12201009)\nX Protocol Version 11, Revision 0\n";
        assert_eq!(told(text), Some("22.1.9".into()));
        assert_eq!(told("Xwayland Version 23.1\n"), Some("23.1".into()));
        assert!(Version([22, 1, 9]) < FOR_SATELLITE && Version([24, 1, 6]) > FOR_SATELLITE);
        for text in
            ["", "Xwayland Version ", "Xwayland Version x.1", "Xwayland Version 99999999.1", "Version 1.2"]
        {
            assert_eq!(told(text), None, "{text}");
        }
    }

    #[test]
    fn only_options_that_the_server_lists_are_given() {
        assert_eq!(options("-rootless    run rootless\n-decorations\n"), ["-noreset"]);
        let new = "-decorate     add decorations\n-geometry WxH   set window size\n";
        assert_eq!(options(new), ["-noreset", "-geometry", SIZE, "-decorate"]);
    }
}
