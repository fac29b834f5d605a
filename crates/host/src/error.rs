//! Everything that can end a session, or keep one from beginning, as data.
//!
//! Each variant says who erred and what was got; texts may be a peer's and are not safe for a terminal. What a user is
//! to do about it is the program's to say. Invariant: every code is a row of `docs/exit-codes.md`.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::edge::peer::Stranger;
use crate::edge::xwayland::failure::Failure;

/// Why a session cannot go on.
#[derive(Debug)]
#[expect(missing_docs, reason = "each field is named for what it holds")]
pub enum Error {
    /// There is no compositor to show windows on.
    NoCompositor { tried: String, source: Option<io::Error> },
    /// The compositor does not offer what windows need.
    MissingGlobals(String),
    /// The compositor ended a connection that the session needs.
    Compositor(String),
    /// The compositor's keymap cannot be read.
    Keymap(String),
    /// Nothing answered at any address.
    NothingAnswered { tried: Vec<SocketAddr>, waited: Duration },
    /// Something answered, and it was not a session; or there is no way to any of the addresses.
    Refused { tried: Vec<SocketAddr>, reason: String },
    /// The peer showed another certificate than the ticket names.
    Fingerprint(String),
    /// The peer's public certificate does not verify.
    Certificate(String),
    /// The peer does not accept this side's certificate.
    Rejected(String),
    /// Any other failure of TLS.
    Tls(String),
    /// The secret of the ticket was refused.
    Secret(String),
    /// The two builds cannot work together.
    Incompatible(String),
    /// The peer broke the session protocol.
    PeerViolation(String),
    /// The connection was there and is gone.
    Lost(String),
    /// A UDP address cannot be listened on.
    Bind { address: String, source: io::Error },
    /// The Wayland socket's name is taken or cannot be made.
    Display { name: String, source: io::Error },
    /// The program broke the Wayland protocol.
    AppViolation(String),
    /// A program cannot be started.
    Program { program: String, source: io::Error },
    /// X11 programs cannot be shown.
    X11(Failure),
    /// The two sides could not meet over the byte stream between them.
    Bootstrap(String),
    /// Another user of the host has taken the socket on which the two sides were to meet.
    Stranger { machine: String, stranger: Stranger },
    /// There is no such session, or it is not clear which.
    NoSession(String),
    /// A session of that name runs already.
    SessionName(String),
    /// A file or directory cannot be used.
    File { path: PathBuf, source: io::Error },
    /// A system call failed where none should.
    System { doing: &'static str, source: io::Error },
    /// Any of the above, after the session's program had been started.
    AfterStart(Box<Error>),
    /// Asked to end by this signal.
    Signal(i32),
}

impl Error {
    /// The exit code: of this process, and of the launcher that is told of it.
    pub fn code(&self) -> u8 {
        match self {
            Self::Tls(_) => 16,
            Self::NothingAnswered { .. } | Self::Refused { .. } => 18,
            Self::Fingerprint(_) | Self::Certificate(_) | Self::Rejected(_) => 19,
            Self::Secret(_) => 28,
            Self::Lost(_) => 29,
            Self::NoCompositor { .. } => 69,
            Self::MissingGlobals(_) => 70,
            Self::Compositor(_) => 71,
            Self::Bind { .. } => 73,
            Self::File { .. } => 74,
            Self::Incompatible(_) => 75,
            Self::PeerViolation(_) => 76,
            Self::Display { .. } => 77,
            Self::Bootstrap(_) => 78,
            Self::Keymap(_) => 79,
            Self::AppViolation(_) => 80,
            Self::NoSession(_) => 82,
            Self::SessionName(_) => 83,
            Self::Stranger { .. } => 85,
            Self::X11(_) => 90,
            Self::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Program { .. } => 126,
            Self::Signal(2) => 130,
            Self::Signal(_) => 143,
            Self::System { .. } => 255,
            // What the link did keeps its own code: scripts tell it from a failure of ours.
            Self::AfterStart(inner) => match **inner {
                Self::Lost(_) | Self::Signal(_) | Self::Secret(_) => inner.code(),
                Self::Fingerprint(_) | Self::Certificate(_) | Self::Rejected(_) => inner.code(),
                _ => 255,
            },
        }
    }

    /// Whether the user, not trouble, ended it.
    pub fn is_signal(&self) -> bool {
        match self {
            Self::Signal(_) => true,
            Self::AfterStart(inner) => inner.is_signal(),
            _ => false,
        }
    }

    /// Whether a session that this display has met goes on after it: the user ended only the display, or its compositor
    /// or the link did.
    pub fn leaves_the_session(&self) -> bool {
        match self {
            Self::Signal(_) | Self::Lost(_) | Self::Compositor(_) | Self::NothingAnswered { .. } => true,
            Self::AfterStart(inner) => inner.leaves_the_session(),
            _ => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCompositor { tried, source: None } => write!(f, "no compositor: {tried}"),
            Self::NoCompositor { tried, source: Some(source) } => {
                write!(f, "no compositor: cannot connect to `{tried}`: {source}")
            }
            Self::MissingGlobals(what) => write!(f, "the compositor lacks {what}"),
            Self::Compositor(what) => write!(f, "the compositor ended the connection: {what}"),
            Self::Keymap(what) => write!(f, "cannot use the compositor's keymap: {what}"),
            Self::NothingAnswered { tried, waited } => {
                let waited = waited.as_secs();
                write!(f, "connection timed out: no answer from {} within {waited} s", list(tried))
            }
            Self::Refused { tried, reason } => write!(f, "cannot connect to {}: {reason}", list(tried)),
            Self::Fingerprint(what) | Self::Certificate(what) | Self::Rejected(what) => {
                write!(f, "verification failed: {what}")
            }
            Self::Tls(what) if what.is_empty() => f.write_str("TLS handshake failed"),
            Self::Tls(what) => write!(f, "TLS handshake failed: {what}"),
            Self::Secret(what) => write!(f, "authentication failed: {what}"),
            Self::Incompatible(what) => write!(f, "the two sides cannot work together: {what}"),
            Self::PeerViolation(what) => write!(f, "the other side broke the session protocol: {what}"),
            Self::Lost(what) => write!(f, "connection lost: {what}"),
            Self::Bind { address, source } => write!(f, "cannot listen on `{address}`: {source}"),
            Self::Display { name, source } => write!(f, "cannot make the Wayland display `{name}`: {source}"),
            Self::AppViolation(what) => write!(f, "the program broke the Wayland protocol: {what}"),
            Self::NoSession(what) | Self::SessionName(what) => f.write_str(what),
            // The system says so of a script without its interpreter, too.
            Self::Program { program, source }
                if source.kind() == io::ErrorKind::NotFound && source.raw_os_error().is_none() =>
            {
                write!(f, "cannot run `{program}`: there is no such program")
            }
            Self::Program { program, source } => write!(f, "cannot run `{program}`: {source}"),
            Self::X11(failure) => failure.fmt(f),
            Self::Bootstrap(what) => write!(f, "cannot meet the other side through ssh: {what}"),
            Self::Stranger { machine, stranger } => {
                write!(f, "cannot meet through ssh: on `{machine}`, {stranger}")
            }
            Self::File { path, source } => write!(f, "cannot use `{}`: {source}", path.display()),
            Self::System { doing, source } => write!(f, "{doing} failed: {source}"),
            Self::AfterStart(inner) => inner.fmt(f),
            Self::Signal(number) => write!(f, "ended by signal {number}"),
        }
    }
}

fn list(addresses: &[SocketAddr]) -> String {
    let list: Vec<String> = addresses.iter().map(|address| format!("`{address}`")).collect();
    list.join(", ")
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoCompositor { source, .. } => source.as_ref().map(|source| source as _),
            Self::Bind { source, .. }
            | Self::Display { source, .. }
            | Self::Program { source, .. }
            | Self::File { source, .. }
            | Self::System { source, .. } => Some(source),
            Self::AfterStart(inner) => Some(inner),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_start_only_the_link_keeps_its_code() {
        assert_eq!(Error::AfterStart(Box::new(Error::Lost("x".into()))).code(), 29);
        assert_eq!(Error::AfterStart(Box::new(Error::Compositor("x".into()))).code(), 255);
    }
}
