//! What can be wrong with what a peer sent as sound.

use std::fmt;

/// A refused packet or payload; every variant is the peer's fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A packet that cannot be read.
    Packet(wayferry_proto::Error),
    /// A payload that the decoder refuses.
    Payload {
        /// What was expected.
        expected: &'static str,
        /// How many bytes came.
        length: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet(error) => write!(f, "sound packet: {error}"),
            Self::Payload { expected, length } => {
                write!(f, "expected {expected}, not a payload of {length} bytes")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Packet(error) => Some(error),
            Self::Payload { .. } => None,
        }
    }
}

impl From<wayferry_proto::Error> for Error {
    fn from(error: wayferry_proto::Error) -> Self {
        Self::Packet(error)
    }
}
