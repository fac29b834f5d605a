//! `wayferry through`: a session at the other end of any command that carries stdin and stdout.
//!
//! The command runs `wayferry host --stdio` where the program is to be; it may be `kubectl exec -i`, `docker exec -i`,
//! `srun`, ssh or another command. Its stdin and stdout are one socket of ours, over which the two sides meet.
//! Invariant: the command is reaped before this returns.

use std::ffi::OsString;
use std::net::SocketAddr;

use crate::error::{Error, SessionError};
use crate::flags::OwnFlags;
use crate::ssh::remote_options;
use crate::tell::{OwnEvent, tell};
use crate::viewer::{Meeting, Viewer};
use wayferry_host::display_side::Outcome;
use wayferry_host::edge::programs::start_on_socket;
use wayferry_host::edge::programs::{Program, exit_code};
use wayferry_host::edge::signals::Signals;
use wayferry_host::reconnect::Other;

/// Runs the program at the other end of a command; gives the exit code.
pub(crate) fn run(own: &OwnFlags, words: &[OsString]) -> Result<u8, Error> {
    let (command, program) = split(words, own.begin.screen)?;
    let signals = Signals::new()?;
    let viewer = Viewer::new(own, &signals)?;
    let mut all: Vec<OsString> = command.to_vec();
    all.push(own.reach.remote_bin.as_deref().unwrap_or("wayferry").into());
    all.extend(["host", "--stdio"].map(OsString::from));
    all.extend(remote_options(own).into_iter().map(OsString::from));
    all.push("--".into());
    all.extend(program.iter().cloned());
    let (mut child, socket) = start_on_socket(&all)?;
    let again = |name| {
        let mut words: Vec<OsString> = command.to_vec();
        words.extend([
            own.reach.remote_bin.as_deref().unwrap_or("wayferry").into(),
            "meet".into(),
            OsString::from(name),
        ]);
        (Other::Command(words), None)
    };
    let meeting = Meeting { socket, begun: None, login: true, quic: Some(Box::new(no_more)), standby: None };
    let result = viewer.meet(meeting, again);
    finish(&mut child, result, &signals)
}

/// The command and the program, with `--` between them; a whole screen needs no program.
fn split(words: &[OsString], is_screen: bool) -> Result<(&[OsString], &[OsString]), Error> {
    let usage = || Error::usage("expected `through COMMAND ... -- PROGRAM ...`");
    let at = words.iter().rposition(|word| word == "--").ok_or_else(usage)?;
    match (&words[..at], &words[at + 1..]) {
        ([], _) => Err(usage()),
        (_, []) if !is_screen => Err(usage()),
        ([first, ..], _) if first.as_encoded_bytes().starts_with(b"-") => {
            Err(Error::usage(format!("`through` has no option `{}`", first.display())))
        }
        parts => Ok(parts),
    }
}

/// The session's port is reached where it says, and nowhere else.
pub(crate) fn no_more(_port: u16) -> Vec<SocketAddr> {
    Vec::new()
}

/// What the end of a session over a command means; the command's own end comes with it.
pub(crate) fn finish(
    child: &mut Program,
    result: Result<Outcome, SessionError>,
    signals: &Signals,
) -> Result<u8, Error> {
    match result {
        Ok(Outcome::Exit(code)) => Ok(code),
        Ok(Outcome::HostLeft) => {
            tell(&OwnEvent::SessionLeft);
            Ok(0)
        }
        Ok(Outcome::Stopped | Outcome::ConnectionEnded(_)) => Ok(0),
        // Most likely the command failed, and has said on stderr why.
        Err(error @ SessionError::Bootstrap(_)) => {
            signals.wait_readable(
                &[std::os::fd::AsFd::as_fd(&*child)],
                Some(wayferry_host::edge::programs::PATIENCE),
            )?;
            match child.status().map(exit_code) {
                Some(code) if code != 0 => Ok(code),
                _ => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_stands_behind_the_last_two_dashes() {
        let words: Vec<OsString> =
            ["kubectl", "exec", "pod", "--", "env", "--", "foot", "-a"].map(OsString::from).into();
        let (command, program) = split(&words, false).expect("both");
        assert_eq!((command.len(), program), (5, &words[6..]));
        let option = ["--nope", "x", "--", "y"].map(OsString::from);
        for line in [&words[..3], &words[..4], &words[3..5], &option[..]] {
            assert!(split(line, false).is_err(), "{line:?}");
        }
        assert!(split(&words[..4], true).is_ok_and(|(_, program)| program.is_empty()));
    }
}
