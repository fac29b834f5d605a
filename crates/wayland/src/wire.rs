//! The Wayland wire format and the thin edge that moves it over a Unix socket.
//!
//! A message is a header of two 32-bit words in the host's byte order (object; length in bytes above 16 bits,
//! opcode below) and arguments in whole words; file descriptors travel beside the bytes. [`InBuffer`] cuts
//! received bytes into [`RawMessage`]s, [`decode`] reads one by its signature, [`OutBuffer`] is the reverse,
//! and [`Socket`] is the only part that does I/O.
//!
//! It knows no objects, no versions and no meaning: whether an id exists, and whether the message is allowed,
//! is the caller's question.
//!
//! Invariant: for any input of the peer, the outcome is a well-formed `Vec<Arg>` or an [`Error`] that says what
//! was expected; memory and descriptors held are bounded by the constants below; a descriptor is either
//! handed on in an [`Arg::Fd`] or closed.

use std::fmt;
use std::os::fd::OwnedFd;

mod decode;
mod input;
mod output;
mod socket;

pub use decode::decode;
pub use input::InBuffer;
pub use output::OutBuffer;
pub use socket::{ReadState, Socket};

/// One argument of a message, as it stands on the wire.
#[derive(Debug)]
pub enum Arg {
    /// A signed integer.
    Int(i32),
    /// An unsigned integer.
    Uint(u32),
    /// A signed fixed-point number in units of 1/256.
    Fixed(i32),
    /// A string without its terminating NUL, not necessarily UTF-8; `None` is the null string.
    Str(Option<Vec<u8>>),
    /// An object's id; 0 is null.
    Object(u32),
    /// The id that the sender chose for a new object, whose interface the message table names. Never 0.
    NewId(u32),
    /// Arbitrary bytes.
    Array(Vec<u8>),
    /// A file descriptor, with close-on-exec set.
    Fd(OwnedFd),
}

/// A message whose arguments have not been looked at: its signature depends on the object's interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawMessage {
    /// The object that the message is sent to (request) or comes from (event).
    pub object: u32,
    /// Which of the interface's requests or events this is.
    pub opcode: u16,
    /// The arguments; a whole number of words.
    pub body: Vec<u8>,
}

/// Why bytes are not a Wayland message, or cannot become one.
///
/// All variants but [`Error::QueueFull`] are the fault of the maker of the message: the peer when reading,
/// the caller when encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The header's length is not a whole number of words from [`HEADER_LEN`] to [`MAX_MESSAGE_LEN`].
    Length {
        /// The length in bytes that the header gives, or that the arguments would need.
        length: usize,
        /// The object that the header names.
        object: u32,
        /// The opcode that the header names.
        opcode: u16,
    },
    /// The arguments do not fit the signature.
    Argument {
        /// The interface of the message's object.
        interface: &'static str,
        /// The name of the message.
        message: &'static str,
        /// Position of the argument in the signature, from 0.
        index: usize,
        /// What is wrong with it.
        fault: Fault,
    },
    /// There are bytes behind the last argument.
    Trailing {
        /// The interface of the message's object.
        interface: &'static str,
        /// The name of the message.
        message: &'static str,
        /// How many bytes are left over.
        bytes: usize,
    },
    /// More descriptors than messages account for: beyond [`MAX_QUEUED_FDS`] waiting, or more than
    /// [`MAX_FDS_PER_SEND`] in one message.
    TooManyFds {
        /// The limit that was exceeded.
        limit: usize,
    },
    /// A string to be encoded holds a NUL.
    InteriorNul,
    /// The peer does not read: the bytes waiting for it would exceed the queue's limit.
    QueueFull {
        /// The limit in bytes.
        limit: usize,
    },
}

/// What is wrong with one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The message ends inside the argument.
    Short {
        /// Bytes that the argument needs.
        expected: usize,
        /// Bytes that are there.
        got: usize,
    },
    /// A null string or object where the protocol forbids one, or the id 0 for a new object.
    Null,
    /// A string that does not end with a NUL.
    Unterminated,
    /// A string with a NUL before its end.
    InteriorNul,
    /// No file descriptor came with the message.
    MissingFd,
}

/// Bytes in front of a message's arguments.
pub const HEADER_LEN: usize = 8;

/// Longest message in bytes, with its header: what every libwayland accepts.
pub const MAX_MESSAGE_LEN: usize = 4096;

/// Most descriptors in one `sendmsg`, as in libwayland (`MAX_FDS_OUT`).
pub const MAX_FDS_PER_SEND: usize = 28;

/// Most received descriptors waiting for the message that they belong to. An honest peer sends a descriptor
/// with or just before the bytes that use it, so this many mean that nothing will ever use them.
pub const MAX_QUEUED_FDS: usize = 1024;

/// Most received bytes waiting to be cut into messages.
pub const MAX_QUEUED_IN: usize = 64 * 1024;

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { length, object, opcode } => write!(
                f,
                "message {opcode} of object {object} is {length} bytes long, \
                 expected a multiple of 4 from {HEADER_LEN} to {MAX_MESSAGE_LEN}"
            ),
            Self::Argument { interface, message, index, fault } => {
                write!(f, "argument {index} of {interface}.{message}: {fault}")
            }
            Self::Trailing { interface, message, bytes } => {
                write!(f, "{interface}.{message}: {bytes} bytes behind the last argument, expected none")
            }
            Self::TooManyFds { limit } => write!(f, "more than {limit} file descriptors"),
            Self::InteriorNul => f.write_str("a string holds a NUL"),
            Self::QueueFull { limit } => {
                write!(f, "the peer does not read: more than {limit} bytes wait for it")
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { expected, got } => write!(f, "expected {expected} bytes, got {got}"),
            Self::Null => f.write_str("expected a value, got null"),
            Self::Unterminated => f.write_str("expected a NUL at the end of the string"),
            Self::InteriorNul => f.write_str("expected no NUL inside the string"),
            Self::MissingFd => f.write_str("expected a file descriptor, got none"),
        }
    }
}

/// Bytes rounded up to whole words.
const fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests;
