//! Everything that can end `wayferry`, as data, and what a user is told about it.
//!
//! One variant per kind of trouble; [`Error::code`] gives the exit code, `Display` the `error:` line and
//! [`Error::hint`] the `hint:` line. It prints nothing. Invariant: every code is a row of
//! [`CODES`], which is also the table of `docs/exit-codes.md`; a test compares the two.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::run::peer::Stranger;
use crate::sanitize::sanitize;
use crate::ssh::Failure;

/// Why `wayferry` cannot go on.
#[derive(Debug)]
pub(crate) enum Error {
    /// The command line is wrong; clap's or our own words.
    Usage(String),
    /// A ticket does not parse.
    Ticket(String),
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
    /// The other side showed another certificate than the ticket names.
    Fingerprint(String),
    /// The other side's public certificate does not verify.
    Certificate(String),
    /// The other side does not accept this one's certificate.
    Rejected(String),
    /// Any other failure of TLS.
    Tls(String),
    /// The file after `--ca` cannot be used.
    Authorities(String),
    /// The files after `--cert` and `--key` cannot be used.
    OwnCertificate(String),
    /// The secret of the ticket was refused.
    Secret(String),
    /// The two builds cannot work together.
    Incompatible(String),
    /// The other side broke the session protocol.
    PeerViolation(String),
    /// The connection was there and is gone.
    Lost(String),
    /// A UDP address cannot be listened on.
    Bind { address: String, source: io::Error },
    /// The Wayland socket's name is taken or cannot be made.
    Display { name: String, source: io::Error },
    /// The program broke the Wayland protocol (only where one program is all there is).
    AppViolation(String),
    /// A program cannot be started.
    Program { program: String, source: io::Error },
    /// `wayferry` is missing on the other machine.
    RemoteMissing { binary: String, destination: String, again: String },
    /// ssh ended before the session began; it has said why.
    Ssh { status: u8 },
    /// ssh came up but the two sides could not meet through it.
    Bootstrap(String),
    /// Another user of the host has taken the socket on which the two sides were to meet.
    Stranger { machine: String, stranger: Stranger },
    /// There is no such session, or it is not clear which.
    NoSession(String),
    /// A session of that name runs already.
    SessionName(String),
    /// `wayferry` cannot be copied to the other machine.
    Install(Failure),
    /// A benchmark's own check of its results failed.
    Inexact(String),
    /// A file or directory cannot be used.
    File { path: PathBuf, source: io::Error },
    /// A system call failed where none should.
    System { doing: &'static str, source: io::Error },
    /// Any of the above, after the program had been started.
    AfterStart(Box<Error>),
    /// Asked to end by a signal.
    Signal(i32),
}

/// Exit codes with what they mean: the rows of `docs/exit-codes.md`.
pub(crate) const CODES: &[(u8, &str)] = &[
    (0, "the session ended as asked, and the program, if there was one, returned 0"),
    (16, "TLS failed in a way that no other row names, or the file after `--ca` cannot be used"),
    (18, "nothing answered: timeout while connecting, or no way there"),
    (
        19,
        "verification failed: the certificate of the other side is not the expected one, or that side refused ours",
    ),
    (28, "authentication failed: the ticket's secret is wrong, expired, revoked or already used"),
    (29, "the connection was lost"),
    (64, "wrong use of the command line"),
    (65, "the ticket is malformed"),
    (69, "no compositor to show windows on"),
    (70, "the compositor lacks a global that windows need"),
    (71, "the compositor ended the connection"),
    (72, "`wayferry` was not found on the other machine"),
    (73, "the UDP address or port cannot be listened on"),
    (74, "a file or directory cannot be used"),
    (75, "the two sides cannot work together: no common version"),
    (76, "the other side broke the session protocol"),
    (77, "the name of the Wayland display is taken or cannot be made"),
    (78, "ssh came up, but the two sides could not meet through it"),
    (79, "the compositor's keymap cannot be read"),
    (
        80,
        "the program broke the Wayland protocol (`wayferry conn` only; elsewhere only its own connection ends)",
    ),
    (81, "a benchmark got other pixels out of a codec than it had put in"),
    (82, "no such session runs, or several do and none was named"),
    (83, "a session of that name runs already"),
    (84, "`wayferry` cannot be copied to the other machine"),
    (85, "another user of the other machine has taken the socket on which the two sides were to meet"),
    (126, "the program was found but cannot be run"),
    (127, "the program was not found"),
    (130, "interrupted by SIGINT"),
    (143, "ended by SIGTERM or SIGHUP"),
    (255, "ssh failed, or Wayferry itself failed after the program had been started"),
];

impl Error {
    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Tls(_) | Self::Authorities(_) => 16,
            Self::NothingAnswered { .. } | Self::Refused { .. } => 18,
            Self::Fingerprint(_) | Self::Certificate(_) | Self::Rejected(_) => 19,
            Self::Secret(_) => 28,
            Self::Lost(_) => 29,
            Self::Usage(_) => 64,
            Self::Ticket(_) => 65,
            Self::NoCompositor { .. } => 69,
            Self::MissingGlobals(_) => 70,
            Self::Compositor(_) => 71,
            Self::RemoteMissing { .. } => 72,
            Self::Bind { .. } => 73,
            Self::File { .. } | Self::OwnCertificate(_) => 74,
            Self::Incompatible(_) => 75,
            Self::PeerViolation(_) => 76,
            Self::Display { .. } => 77,
            Self::Bootstrap(_) => 78,
            Self::Keymap(_) => 79,
            Self::AppViolation(_) => 80,
            Self::Inexact(_) => 81,
            Self::NoSession(_) => 82,
            Self::SessionName(_) => 83,
            Self::Install(_) => 84,
            Self::Stranger { .. } => 85,
            Self::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Program { .. } => 126,
            Self::Signal(2) => 130,
            Self::Signal(_) => 143,
            Self::System { .. } | Self::Ssh { .. } => 255,
            // What the link did keeps its own code: scripts tell it from a failure of ours.
            Self::AfterStart(inner) => match **inner {
                Self::Lost(_) | Self::Signal(_) | Self::Secret(_) => inner.code(),
                Self::Fingerprint(_) | Self::Certificate(_) | Self::Rejected(_) => inner.code(),
                _ => 255,
            },
        }
    }

    /// Whether the user, not trouble, ended it.
    pub(crate) fn is_signal(&self) -> bool {
        match self {
            Self::Signal(_) => true,
            Self::AfterStart(inner) => inner.is_signal(),
            _ => false,
        }
    }

    /// Whether a session that this display has met goes on after it: the user ended only the display, or its compositor or the
    /// link did.
    pub(crate) fn leaves_the_session(&self) -> bool {
        match self {
            Self::Signal(_) | Self::Lost(_) | Self::Compositor(_) | Self::NothingAnswered { .. } => true,
            Self::AfterStart(inner) => inner.leaves_the_session(),
            _ => false,
        }
    }

    /// What the user can do about it.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Usage(_) => "`wayferry --help` lists the commands and options",
            Self::Ticket(_) => "copy the whole line that `wayferry host` printed, from `wf1:` to its end",
            Self::NoCompositor { .. } => {
                "run this inside a Wayland session, or set WAYLAND_DISPLAY and XDG_RUNTIME_DIR"
            }
            Self::MissingGlobals(_) => {
                "use a compositor with wl_compositor 4, wl_shm and xdg_wm_base (sway 1.7, weston 10 or newer)"
            }
            Self::Compositor(_) => {
                "the compositor's own log tells more; when it runs again, `wayferry attach` shows the session again"
            }
            Self::Keymap(_) => "set another keyboard layout in the compositor and run the command again",
            Self::NothingAnswered { .. } | Self::Refused { .. } => {
                "check that the host still runs and that no firewall drops UDP to that port"
            }
            Self::Fingerprint(_) => {
                "use the ticket of this very run of `wayferry host`; if it is, somebody may be in between"
            }
            Self::Certificate(_) => {
                "check the name after `--tls-name`, the clock of this machine, and whether `--ca FILE` is needed"
            }
            Self::Rejected(_) => "the host admits other displays only: ask for a ticket of your own",
            Self::Authorities(_) => "give a file of PEM certificates, or leave `--ca` out to use the system's",
            Self::OwnCertificate(_) => "give the files in PEM, the host's own certificate first",
            Self::Tls(_) => "check that both sides run the same version of wayferry",
            Self::Secret(_) => "a ticket works once and for a limited time: ask `wayferry ticket` or `wayferry host` for a new one",
            Self::Incompatible(_) | Self::PeerViolation(_) => {
                "install the same version of wayferry on both machines"
            }
            Self::Lost(_) => "check the network, then start the session again",
            Self::Bind { .. } => "choose another port, or a range such as `--port 60000-61000`",
            Self::Display { .. } => "choose another name with `--display`, or end the program that uses it",
            Self::AppViolation(_) => {
                "this is a bug of the program or of wayferry; WAYLAND_DEBUG=1 shows its messages"
            }
            Self::NoSession(_) => {
                "`wayferry list` shows the sessions of this machine, `wayferry list HOST` those of another"
            }
            Self::Install(failure) => failure.hint(),
            Self::SessionName(_) => {
                "`wayferry attach` shows that one, `wayferry stop` ends it; or choose another `--name`"
            }
            Self::Inexact(_) => "this is a bug of wayferry; the same command and seed show it again",
            Self::Program { .. } => {
                "check the name and the PATH of the machine on which the program should run"
            }
            Self::RemoteMissing { again, .. } => return remote_missing(&sanitize(again)),
            Self::Ssh { .. } => "ssh's own message is above; try the same destination with ssh alone",
            Self::Bootstrap(_) => {
                "the server must allow the forwarding of Unix sockets (AllowStreamLocalForwarding yes)"
            }
            Self::Stranger { .. } => {
                "nothing was told to that user; `wayferry through ssh HOST -- PROGRAM` needs no socket there"
            }
            Self::File { source, .. } if source.kind() == io::ErrorKind::InvalidData => {
                "give a file that the option `--trace` of this version wrote"
            }
            Self::File { .. } => "check that the path exists and may be used by you",
            Self::System { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "free some space where the output goes"
            }
            Self::System { .. } => "see the system's limits (`ulimit -a`) and free memory",
            Self::AfterStart(inner) => return inner.hint(),
            Self::Signal(_) => "",
        }
        .to_owned()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) => f.write_str(what),
            Self::Ticket(what) => write!(f, "malformed ticket: {}", sanitize(what)),
            Self::NoCompositor { tried, source: None } => write!(f, "no compositor: {tried}"),
            Self::NoCompositor { tried, source: Some(source) } => {
                write!(f, "no compositor: cannot connect to `{tried}`: {source}")
            }
            Self::MissingGlobals(what) => write!(f, "the compositor lacks {}", sanitize(what)),
            Self::Compositor(what) => write!(f, "the compositor ended the connection: {}", sanitize(what)),
            Self::Keymap(what) => write!(f, "cannot use the compositor's keymap: {}", sanitize(what)),
            Self::NothingAnswered { tried, waited } => {
                let list: Vec<String> = tried.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "connection timed out: no answer from `{}` within {} s",
                    list.join("`, `"),
                    waited.as_secs()
                )
            }
            Self::Refused { tried, reason } => {
                let list: Vec<String> = tried.iter().map(ToString::to_string).collect();
                write!(f, "cannot connect to `{}`: {}", list.join("`, `"), sanitize(reason))
            }
            Self::Fingerprint(what) | Self::Certificate(what) | Self::Rejected(what) => {
                write!(f, "verification failed: {}", sanitize(what))
            }
            Self::Authorities(what) | Self::OwnCertificate(what) => f.write_str(&sanitize(what)),
            Self::Tls(what) if what.is_empty() => f.write_str("TLS handshake failed"),
            Self::Tls(what) => write!(f, "TLS handshake failed: {}", sanitize(what)),
            Self::Secret(what) => write!(f, "authentication failed: {}", sanitize(what)),
            Self::Incompatible(what) => write!(f, "the two sides cannot work together: {}", sanitize(what)),
            Self::PeerViolation(what) => {
                write!(f, "the other side broke the session protocol: {}", sanitize(what))
            }
            Self::Lost(what) => write!(f, "connection lost: {}", sanitize(what)),
            Self::Bind { address, source } => write!(f, "cannot listen on `{address}`: {source}"),
            Self::Display { name, source } => write!(f, "cannot make the Wayland display `{name}`: {source}"),
            Self::AppViolation(what) => {
                write!(f, "the program broke the Wayland protocol: {}", sanitize(what))
            }
            Self::NoSession(what) | Self::SessionName(what) => f.write_str(&sanitize(what)),
            Self::Install(failure) => {
                write!(f, "cannot install wayferry there: {}", sanitize(&failure.to_string()))
            }
            Self::Inexact(what) => write!(f, "a codec is not exact: {}", sanitize(what)),
            Self::Program { program, source } => write!(f, "cannot run `{program}`: {source}"),
            Self::RemoteMissing { binary, destination, .. } => {
                write!(f, "`{}` was not found on `{}`", sanitize(binary), sanitize(destination))
            }
            Self::Ssh { status } => write!(f, "ssh ended with status {status} before the session began"),
            Self::Bootstrap(what) => write!(f, "cannot meet the other side through ssh: {}", sanitize(what)),
            Self::Stranger { machine, stranger } => {
                write!(f, "cannot meet through ssh: on `{}`, {stranger}", sanitize(machine))
            }
            Self::File { path, source } => write!(f, "cannot use `{}`: {source}", path.display()),
            Self::System { doing, source } => write!(f, "{doing} failed: {source}"),
            Self::AfterStart(inner) => inner.fmt(f),
            Self::Signal(number) => write!(f, "ended by signal {number}"),
        }
    }
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

/// The whole next command.
fn remote_missing(again: &str) -> String {
    let place = format!("`wayferry --remote-bin PATH {again}` says where it is");
    if again.starts_with("ssh ") {
        format!("`wayferry --install-remote {again}` copies it there; {place}")
    } else {
        format!("install it there, or {place}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Error> {
        let io = || io::Error::from(io::ErrorKind::PermissionDenied);
        let text = || "x\u{1b}[31m".to_owned();
        vec![
            Error::Usage("unexpected argument".into()),
            Error::Ticket(text()),
            Error::NoCompositor { tried: "wayland-0".into(), source: Some(io()) },
            Error::MissingGlobals(text()),
            Error::Compositor(text()),
            Error::Keymap(text()),
            Error::NothingAnswered {
                tried: vec![([127, 0, 0, 1], 9).into()],
                waited: Duration::from_secs(3),
            },
            Error::Fingerprint(text()),
            Error::Tls(String::new()),
            Error::Secret(text()),
            Error::Incompatible(text()),
            Error::PeerViolation(text()),
            Error::Lost(text()),
            Error::Bind { address: "0.0.0.0:1".into(), source: io() },
            Error::Display { name: "wayland-1".into(), source: io() },
            Error::AppViolation(text()),
            Error::Inexact(text()),
            Error::NoSession(text()),
            Error::SessionName(text()),
            Error::Install(Failure::OtherMachine { here: text(), there: text() }),
            Error::Program { program: "foot".into(), source: io() },
            Error::Program { program: "foot".into(), source: io::ErrorKind::NotFound.into() },
            Error::RemoteMissing { binary: text(), destination: text(), again: text() },
            Error::Bootstrap(text()),
            Error::Stranger {
                machine: text(),
                stranger: Stranger { uid: 1001, path: "/tmp/wayferry-0.sock".into() },
            },
            Error::File { path: "/x".into(), source: io() },
            Error::System { doing: "poll", source: io() },
            Error::Signal(2),
            Error::Signal(15),
        ]
    }

    #[test]
    fn the_codes_are_distinct_and_documented() {
        let mut seen = std::collections::BTreeMap::new();
        for error in samples() {
            assert!(CODES.iter().any(|(code, _)| *code == error.code()), "{error:?}");
            if let Some(other) = seen.insert(error.code(), format!("{error:?}")) {
                panic!("{error:?} and {other} share a code");
            }
        }
        let documented: Vec<u8> = CODES.iter().map(|(code, _)| *code).filter(|code| *code != 0).collect();
        assert_eq!(documented, seen.into_keys().collect::<Vec<_>>(), "a documented code is never given");
    }

    #[test]
    fn docs_exit_codes_is_the_table() {
        let page = include_str!("../../../docs/exit-codes.md");
        let table = page.lines().take_while(|line| !line.starts_with("## "));
        let rows: Vec<&str> =
            table.filter(|line| line.starts_with("| ") && !line.starts_with("| code")).collect();
        let expected: Vec<String> =
            CODES.iter().map(|(code, meaning)| format!("| {code} | {meaning} |")).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn every_error_is_two_clean_lines() {
        for error in samples() {
            let text = [error.to_string(), error.hint()];
            assert!(text.iter().all(|line| !line.contains(['\u{1b}', '\n'])), "{text:?}");
        }
    }

    #[test]
    fn after_the_start_only_the_link_keeps_its_code() {
        assert_eq!(Error::AfterStart(Box::new(Error::Lost("x".into()))).code(), 29);
        assert_eq!(Error::AfterStart(Box::new(Error::Compositor("x".into()))).code(), 255);
    }
}
