//! Why X11 programs cannot be shown.

use std::fmt;

use super::version::{FOR_SATELLITE, Version};

/// What is missing or too old on the machine of the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// There is no xwayland-satellite.
    NoSatellite,
    /// There is no Xwayland.
    NoServer,
    /// The Xwayland is none that xwayland-satellite can use.
    OldServer(Version),
}

impl Failure {
    /// What the user can do about it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::NoSatellite => {
                "install xwayland-satellite beside the programs, or use `--xwayland=rootful`, which needs only Xwayland"
            }
            Self::NoServer => {
                "install Xwayland beside the programs: the package `xwayland`, or one whose name ends with it"
            }
            Self::OldServer(_) => {
                "install a newer Xwayland beside the programs, or use `--xwayland=rootful`, which takes any"
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("X11 programs cannot be shown: ")?;
        match self {
            Self::NoSatellite => f.write_str("`xwayland-satellite` was not found"),
            Self::NoServer => f.write_str("`Xwayland` was not found"),
            Self::OldServer(version) => {
                write!(
                    f,
                    "`Xwayland` {version} is too old for `xwayland-satellite`, which needs {FOR_SATELLITE}"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_a_line_with_a_way_out() {
        let failures = [Failure::NoSatellite, Failure::NoServer, Failure::OldServer(Version([22, 1, 9]))];
        for failure in failures {
            let (text, hint) = (failure.to_string(), failure.hint());
            assert!(!text.contains('\n') && hint.contains("install"), "{text}: {hint}");
            assert_eq!(hint.contains("--xwayland=rootful"), failure != Failure::NoServer, "{hint}");
        }
    }
}
