//! What can go wrong for a scripted client.

use std::fmt;
use std::io;

use wayland_client::backend::WaylandError;
use wayland_client::{ConnectError, DispatchError};

/// Why a script could not go on.
#[derive(Debug)]
pub enum ClientError {
    /// No connection to the compositor.
    Connect(io::Error),
    /// The compositor lacks this global.
    Missing(&'static str),
    /// The compositor sent the client away; `interface@id: code: message`, with `object` for the interface where
    /// the connection broke before it was known.
    Protocol(String),
    /// The connection broke.
    Lost(io::Error),
    /// A file for pixels or a pipe could not be made, written or read.
    File(io::Error),
    /// What was waited for did not happen in time.
    Deadline(&'static str),
    /// The program was told to stop.
    Stopped,
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Connect(error) => write!(f, "cannot connect to the compositor: {error}"),
            ClientError::Missing(name) => write!(f, "the compositor lacks `{name}`"),
            ClientError::Protocol(error) => write!(f, "the compositor refused: {error}"),
            ClientError::Lost(error) => write!(f, "the connection broke: {error}"),
            ClientError::File(error) => write!(f, "shared memory or pipe: {error}"),
            ClientError::Deadline(what) => write!(f, "waited in vain for {what}"),
            ClientError::Stopped => write!(f, "stopped"),
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ClientError::Connect(error) | ClientError::Lost(error) | ClientError::File(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ConnectError> for ClientError {
    fn from(error: ConnectError) -> ClientError {
        ClientError::Connect(io::Error::other(error))
    }
}

impl From<WaylandError> for ClientError {
    fn from(error: WaylandError) -> ClientError {
        match error {
            WaylandError::Io(error) => ClientError::Lost(error),
            WaylandError::Protocol(error) => ClientError::Protocol(format!(
                "{}@{}: {}: {}",
                error.object_interface, error.object_id, error.code, error.message
            )),
        }
    }
}

impl From<DispatchError> for ClientError {
    fn from(error: DispatchError) -> ClientError {
        match error {
            DispatchError::Backend(error) => error.into(),
            DispatchError::BadMessage { .. } => ClientError::Lost(io::Error::other(error)),
        }
    }
}

impl From<rustix::io::Errno> for ClientError {
    fn from(error: rustix::io::Errno) -> ClientError {
        ClientError::File(error.into())
    }
}
