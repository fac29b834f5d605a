//! Everything that can end `wayferry-lab`.

use std::fmt;

pub(crate) use wayferry_host::error::Error as SessionError;
use wayferry_host::sanitize::sanitize;

/// Why it cannot go on.
#[derive(Debug)]
pub(crate) enum Error {
    /// What ended a session, or kept it from beginning.
    Session(SessionError),
    /// The command line is wrong.
    Usage(String),
    /// A host printed something else than a ticket.
    Ticket(String),
    /// A benchmark's own check of its results failed.
    Inexact(String),
}

impl Error {
    /// The exit code, of the table in `docs/exit-codes.md`.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Session(error) => error.code(),
            Self::Usage(_) => 64,
            Self::Ticket(_) => 65,
            Self::Inexact(_) => 81,
        }
    }

    /// What the user can do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Usage(_) => "`wayferry-lab --help` lists the commands and options",
            Self::Inexact(_) => "this is a bug of wayferry; the same command and seed show it again",
            Self::Session(_) | Self::Ticket(_) => "docs/exit-codes.md tells what the exit code stands for",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(error) => write!(f, "{}", sanitize(&error.to_string())),
            Self::Usage(what) => write!(f, "{what}"),
            Self::Ticket(what) => write!(f, "malformed ticket: {}", sanitize(what)),
            Self::Inexact(what) => write!(f, "a codec is not exact: {}", sanitize(what)),
        }
    }
}

impl From<SessionError> for Error {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}
