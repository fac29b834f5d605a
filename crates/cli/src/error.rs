//! Everything that can end `wayferry`, and what a user is told about it.
//!
//! What ends a session is [`SessionError`]; beside it is what only the program itself meets. [`Error::code`] gives the
//! exit code, `Display` the `error:` line, safe for a terminal, and [`Error::hint`] the `hint:` line. It prints
//! nothing. Invariant: every code is a row of [`CODES`], which is also the table of `docs/exit-codes.md`; a test
//! compares the two.

use std::fmt;
use std::io;

use crate::ssh::failure::Failure;
pub(crate) use wayferry_host::error::Error as SessionError;
use wayferry_host::sanitize::sanitize;
use wayferry_net::site::BindError;

/// Why `wayferry` cannot go on.
#[derive(Debug)]
pub(crate) enum Error {
    /// What ended a session, or kept it from beginning.
    Session(SessionError),
    /// The command line is wrong; and, where it is known, what to type.
    Usage { what: String, hint: Option<String> },
    /// The configuration file, or a variable that stands for an option, is wrong.
    Config { place: String, what: String },
    /// A ticket does not parse.
    Ticket(String),
    /// The file after `--ca` cannot be used.
    Authorities(String),
    /// The files after `--cert` and `--key` cannot be used.
    OwnCertificate(String),
    /// `wayferry` is missing on the other machine.
    RemoteMissing { binary: String, destination: String, again: String },
    /// The `wayferry` of the other machine does not run there.
    RemoteBroken { binary: String, destination: String },
    /// ssh ended before the session began; it has said why.
    Ssh { status: u8 },
    /// `wayferry` cannot be copied to the other machine.
    Install(Failure),
    /// A file was not sent or fetched.
    Transfer { name: String, why: String },
    /// There is no screen that can be shown.
    NoScreen { why: String },
    /// The page for browsers is not in this program.
    NoPage,
    /// The page cannot be served there.
    PagePort(BindError),
    /// The files after `--https` cannot be used.
    PageCertificate { what: String, hint: &'static str },
    /// `wayferry-lab` cannot be started.
    NoLaboratory { source: io::Error },
    /// `doctor` found this many things without which no session is shown.
    Unwell { failed: usize },
}

impl From<SessionError> for Error {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

/// Exit codes with what they mean: the rows of `docs/exit-codes.md`.
pub(crate) const CODES: &[(u8, &str)] = &[
    (0, "the session ended as asked, and the program, if there was one, returned 0"),
    (1, "`doctor` found something without which no session is shown"),
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
    (73, "an address or a port cannot be listened on"),
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
    (82, "no such session runs, or several do and none was named"),
    (83, "a session of that name runs already"),
    (84, "`wayferry` cannot be copied to the other machine"),
    (85, "another user of the other machine has taken the socket on which the two sides were to meet"),
    (86, "`wayferry-lab`, which has the demo and the benches, cannot be run"),
    (87, "a setting of the configuration file, or of the environment, cannot be used"),
    (88, "`wayferry` on the other machine does not run"),
    (89, "a file was not sent, or not fetched"),
    (90, "what shows X11 programs is missing or too old where the program should run"),
    (91, "no screen of the other machine can be shown"),
    (92, "this build has no page for browsers"),
    (126, "the program was found but cannot be run"),
    (127, "the program was not found"),
    (130, "interrupted by SIGINT"),
    (143, "ended by SIGTERM or SIGHUP"),
    (255, "ssh failed, or Wayferry itself failed after the program had been started"),
];

impl Error {
    /// The command line is wrong.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::Usage { what: what.into(), hint: None }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Session(error) => error.code(),
            Self::Authorities(_) => 16,
            Self::Usage { .. } => 64,
            Self::Ticket(_) => 65,
            Self::RemoteMissing { .. } => 72,
            Self::PagePort(_) => 73,
            Self::OwnCertificate(_) | Self::PageCertificate { .. } => 74,
            Self::NoLaboratory { .. } => 86,
            Self::NoScreen { .. } => 91,
            Self::NoPage => 92,
            Self::Config { .. } => 87,
            Self::RemoteBroken { .. } => 88,
            Self::Transfer { .. } => 89,
            Self::Install(_) => 84,
            Self::Ssh { .. } => 255,
            Self::Unwell { .. } => 1,
        }
    }

    /// What the user can do about it.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Session(error) => hint(error),
            Self::Usage { hint: Some(hint), .. } => return sanitize(hint),
            Self::Usage { hint: None, .. } => "`wayferry help` lists the commands",
            Self::Config { .. } => "mend it there; `wayferry config` shows which settings hold, and from where",
            Self::Ticket(_) => "copy the whole line that `wayferry host` printed, from `wf1:` to its end",
            Self::Authorities(_) => {
                "give a file of PEM certificates, or leave `--ca` out to use the system's"
            }
            Self::OwnCertificate(_) => "give the files in PEM, the host's own certificate first",
            Self::Install(failure) => failure.hint(),
            Self::Transfer { .. } => {
                "plain files cross that can be read and find room, while a display shows the session, unless either \
                 side was begun with `--files off`; a path to fetch begins in the home directory there"
            }
            Self::NoScreen { .. } => {
                "sway, labwc and their like can be shown, GNOME and KDE cannot; install `labwc` there, or show single \
                 programs with `wayferry ssh`"
            }
            Self::NoPage => {
                "run `make page` in the source, which needs Node and npm, and build again"
            }
            Self::PagePort(error) if error.source.kind() == io::ErrorKind::PermissionDenied => {
                "choose another port, as with `--port 8443`, or let the program have this one: \
                 `sudo setcap cap_net_bind_service=+ep FILE`, where FILE is the program's"
            }
            Self::PagePort(_) => "choose another port, as with `--port 8443`, or end the program that has it",
            Self::PageCertificate { hint, .. } => hint,
            Self::NoLaboratory { .. } => {
                "the demo and the benches are in `wayferry-lab`: install it with `cargo install --path crates/lab`"
            }
            Self::RemoteBroken { binary, destination } => {
                return format!(
                    "`ssh {0} {1} --version` tells why; install another there, or name it with `--remote-bin PATH`",
                    sanitize(destination),
                    sanitize(binary)
                );
            }
            Self::RemoteMissing { again, .. } => return remote_missing(&sanitize(again)),
            Self::Unwell { .. } => "the lines with `fail` say what can be done",
            Self::Ssh { .. } => "ssh's own message is above; try the same destination with ssh alone",
        }
        .to_owned()
    }
}

/// What the user can do about what ended a session.
pub(crate) fn hint(error: &SessionError) -> &'static str {
    use SessionError as Error;
    match error {
        Error::NoCompositor { .. } => {
            "run this inside a Wayland session, or set WAYLAND_DISPLAY and XDG_RUNTIME_DIR"
        }
        Error::MissingGlobals(_) => {
            "use a compositor with wl_compositor 4, wl_shm and xdg_wm_base (sway 1.7, weston 10 or newer)"
        }
        Error::Compositor(_) => {
            "the compositor's own log tells more; when it runs again, `wayferry attach` shows the session again"
        }
        Error::Keymap(_) => "set another keyboard layout in the compositor and run the command again",
        Error::NothingAnswered { .. } | Error::Refused { .. } => {
            "check that the host still runs and that no firewall drops UDP to that port"
        }
        Error::Fingerprint(_) => {
            "use the ticket of this very run of `wayferry host`; if it is, somebody may be in between"
        }
        Error::Certificate(_) => {
            "check the name after `--tls-name`, the clock of this machine, and whether `--ca FILE` is needed"
        }
        Error::Rejected(_) => "the host admits other displays only: ask for a ticket of your own",
        Error::Tls(_) => "check that both sides run the same version of wayferry",
        Error::Secret(_) => {
            "a ticket works once and for a limited time: ask `wayferry ticket` or `wayferry host` for a new one"
        }
        Error::Incompatible(_) | Error::PeerViolation(_) => {
            "install the same version of wayferry on both machines"
        }
        Error::Lost(_) => "check the network, then start the session again",
        Error::Bind { .. } => "choose another port, or a range such as `--port 60000-61000`",
        Error::Display { .. } => "choose another name with `--display`, or end the program that uses it",
        Error::AppViolation(_) => {
            "this is a bug of the program or of wayferry; WAYLAND_DEBUG=1 shows its messages"
        }
        Error::NoSession(_) => {
            "`wayferry list` shows the sessions of this machine, `wayferry list HOST` those of another"
        }
        Error::SessionName(_) => {
            "`wayferry attach` shows that one, `wayferry stop` ends it; or choose another `--name`"
        }
        Error::Program { .. } => "check the name and the PATH of the machine on which the program should run",
        Error::X11(failure) => failure.hint(),
        Error::Bootstrap(_) => {
            "for a command with a terminal, the server must allow the forwarding of Unix sockets \
             (AllowStreamLocalForwarding yes)"
        }
        Error::Stranger { .. } => {
            "nothing was told to that user; `wayferry through ssh HOST -- PROGRAM` needs no socket there"
        }
        Error::File { source, .. } if source.kind() == io::ErrorKind::InvalidData => {
            "give a file that the option `--trace` of this version wrote"
        }
        Error::File { source, .. } if source.kind() == io::ErrorKind::StorageFull => "free some space there",
        Error::File { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
            "another file is there, and stays as it is: move it away"
        }
        Error::File { .. } => "check that the path exists and may be used by you",
        Error::System { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
            "free some space where the output goes"
        }
        Error::System { .. } => "see the system's limits (`ulimit -a`) and free memory",
        Error::AfterStart(inner) => hint(inner),
        Error::Signal(_) => "",
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(error) => f.write_str(&sanitize(&error.to_string())),
            Self::Usage { what, .. } => f.write_str(&sanitize(what)),
            Self::Config { place, what } => write!(f, "{}: {}", sanitize(place), sanitize(what)),
            Self::Ticket(what) => write!(f, "malformed ticket: {}", sanitize(what)),
            Self::Authorities(what) | Self::OwnCertificate(what) => f.write_str(&sanitize(what)),
            Self::Install(failure) => {
                write!(f, "cannot install wayferry there: {}", sanitize(&failure.to_string()))
            }
            Self::Transfer { name, why } => {
                write!(f, "`{}` did not arrive: {}", sanitize(name), sanitize(why))
            }
            Self::NoPage => f.write_str("this build has no page"),
            Self::PagePort(error) => write!(f, "{error}"),
            Self::PageCertificate { what, .. } => f.write_str(&sanitize(what)),
            Self::NoScreen { why } => write!(f, "there is no screen to show: {}", sanitize(why)),
            Self::NoLaboratory { source } => write!(f, "cannot run `wayferry-lab`: {source}"),
            Self::RemoteMissing { binary, destination, .. } => {
                write!(f, "`{}` was not found on `{}`", sanitize(binary), sanitize(destination))
            }
            Self::RemoteBroken { binary, destination } => write!(
                f,
                "`{}` on `{}` does not run: it is damaged, or made for another kind of machine",
                sanitize(binary),
                sanitize(destination)
            ),
            Self::Unwell { failed: 1 } => f.write_str("one check failed"),
            Self::Unwell { failed } => write!(f, "{failed} checks failed"),
            Self::Ssh { status } => write!(f, "ssh ended with status {status} before the session began"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Session(error) => std::error::Error::source(error),
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
    use std::time::Duration;

    use super::*;
    use wayferry_host::edge::peer::Stranger;
    use wayferry_host::edge::xwayland::failure::Failure as X11Failure;

    fn samples() -> Vec<Error> {
        let io = || io::Error::from(io::ErrorKind::PermissionDenied);
        let text = || "x\u{1b}[31m".to_owned();
        let own = vec![
            Error::usage("unexpected argument"),
            Error::Config { place: text(), what: text() },
            Error::RemoteBroken { binary: text(), destination: text() },
            Error::Ticket(text()),
            Error::Transfer { name: "x".into(), why: "y".into() },
            Error::NoScreen { why: text() },
            Error::NoPage,
            Error::NoLaboratory { source: io::ErrorKind::NotFound.into() },
            Error::Unwell { failed: 2 },
            Error::Install(Failure::OtherMachine { here: text(), there: text() }),
            Error::RemoteMissing { binary: text(), destination: text(), again: text() },
        ];
        let of_sessions = vec![
            SessionError::NoCompositor { tried: "wayland-0".into(), source: Some(io()) },
            SessionError::MissingGlobals(text()),
            SessionError::Compositor(text()),
            SessionError::Keymap(text()),
            SessionError::NothingAnswered {
                tried: vec![([127, 0, 0, 1], 9).into()],
                waited: Duration::from_secs(3),
            },
            SessionError::Fingerprint(text()),
            SessionError::Tls(String::new()),
            SessionError::Secret(text()),
            SessionError::Incompatible(text()),
            SessionError::PeerViolation(text()),
            SessionError::Lost(text()),
            SessionError::Bind { address: "0.0.0.0:1".into(), source: io() },
            SessionError::Display { name: "wayland-1".into(), source: io() },
            SessionError::AppViolation(text()),
            SessionError::NoSession(text()),
            SessionError::SessionName(text()),
            SessionError::Program { program: "foot".into(), source: io() },
            SessionError::Program { program: "foot".into(), source: io::ErrorKind::NotFound.into() },
            SessionError::X11(X11Failure::NoSatellite),
            SessionError::Bootstrap(text()),
            SessionError::Stranger {
                machine: text(),
                stranger: Stranger { uid: 1001, path: "/tmp/wayferry-0.sock".into() },
            },
            SessionError::File { path: "/x".into(), source: io() },
            SessionError::System { doing: "poll", source: io() },
            SessionError::Signal(2),
            SessionError::Signal(15),
        ];
        own.into_iter().chain(of_sessions.into_iter().map(Error::Session)).collect()
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
    fn a_port_of_the_page_that_cannot_be_had_has_its_ways() {
        let error = |kind: io::ErrorKind| {
            let address = ([0, 0, 0, 0], 443).into();
            Error::PagePort(BindError { address, source: kind.into() })
        };
        let (denied, taken) = (error(io::ErrorKind::PermissionDenied), error(io::ErrorKind::AddrInUse));
        assert_eq!((denied.code(), taken.code()), (73, 73));
        assert!(denied.to_string().starts_with("cannot listen on `0.0.0.0:443`: "), "{denied}");
        assert!(denied.hint().contains("`--port 8443`") && denied.hint().contains("setcap"));
        assert!(taken.hint().contains("`--port 8443`") && !taken.hint().contains("setcap"));
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
}
