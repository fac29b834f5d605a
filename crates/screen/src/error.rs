//! Why a screen is not shown, or not any more.

use std::fmt;
use std::io;

use wayland_client::backend::WaylandError;
use wayland_client::globals::GlobalError;
use wayland_client::{ConnectError, DispatchError};

/// Why a screen is not shown, or not any more.
#[derive(Debug)]
pub enum Error {
    /// The compositor whose screen is to be shown does not have these protocols; it is another kind of desktop.
    Missing(Vec<&'static str>),
    /// It has no screen.
    NoScreen,
    /// Its pixels come in a format that the session does not take.
    Format(u32),
    /// It describes a frame that no screen has.
    Frame {
        /// In pixels.
        width: u32,
        /// In pixels.
        height: u32,
        /// Bytes of a row.
        stride: u32,
    },
    /// It has ended the connection and says why.
    There(String),
    /// The session has ended the connection and says why.
    Session(String),
    /// The system refuses something.
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn system(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(names) => write!(f, "the compositor lacks {}", names.join(", ")),
            Self::NoScreen => f.write_str("the compositor has no screen"),
            Self::Format(format) => write!(f, "its pixels have a format ({format:#x}) that cannot be shown"),
            Self::Frame { width, height, stride } => {
                write!(f, "it describes a frame of {width}x{height} pixels with {stride} bytes in a row")
            }
            Self::There(why) => write!(f, "the compositor has ended the connection: {why}"),
            Self::Session(why) => write!(f, "the session has ended the connection: {why}"),
            Self::System { doing, source } => write!(f, "{doing}: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Which of the two compositors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The one whose screen is shown.
    There,
    /// The session.
    Session,
}

impl End {
    pub(crate) fn connect(self) -> impl Fn(ConnectError) -> Error {
        move |error| self.lost(&error)
    }

    pub(crate) fn globals(self) -> impl Fn(GlobalError) -> Error {
        move |error| self.lost(&error)
    }

    pub(crate) fn dispatch(self) -> impl Fn(DispatchError) -> Error {
        move |error| self.lost(&error)
    }

    pub(crate) fn socket(self) -> impl Fn(WaylandError) -> Error {
        move |error| self.lost(&error)
    }

    fn lost(self, error: &dyn fmt::Display) -> Error {
        match self {
            Self::There => Error::There(error.to_string()),
            Self::Session => Error::Session(error.to_string()),
        }
    }
}
