//! The version of the X server, Xwayland.
//!
//! Asks no server. Invariant: versions compare as their numbers do.

use std::fmt;

/// The version of an X server: the first three of its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub [u16; 3]);

impl Version {
    /// From a line such as `The X.Org Foundation Xwayland Version 22.1.9 (12201009)`.
    pub(super) fn told(text: &str) -> Option<Self> {
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

/// The first that xwayland-satellite can use, as its own page says.
pub(super) const FOR_SATELLITE: Version = Version([23, 1, 0]);

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
}
