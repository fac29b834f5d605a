//! Starts ssh, and waits for the wayferry at its other end.
//!
//! What the two say to each other then is not known here. Invariant: an ssh that was started is handed out, or reaped.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use super::args::SshArgs;
use super::configuration::wants_terminal;
use super::far_half::FarHalf;
use super::stdio::Output;
use super::{SSH_PATIENCE, install, remote_command};
use crate::error::{Error, SessionError};
use crate::flags::OwnFlags;
use crate::pass_on::system;
use crate::remote::{MISSING, Road};
use crate::tell::notice;
use crate::viewer::{Begun, Viewer};
use wayferry_host::clock::Clock;
use wayferry_host::edge::programs::{Place, Program, exit_code, start_on_socket};
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::{Listener, random_name};
use wayferry_host::edge::trunk::Trunk;

/// What a session begins with.
pub(super) struct Begin<'a, 'v> {
    pub(super) own: &'a OwnFlags,
    pub(super) args: &'a SshArgs,
    /// Of the trace, if there is to be one.
    pub(super) far_half: Option<&'a FarHalf>,
    /// Where the other side comes by itself.
    pub(super) listener: &'a Listener,
    /// Where what the program writes goes, if ssh's stdio carries that; otherwise it is ssh's own.
    pub(super) output: Option<&'a Output>,
    pub(super) viewer: &'a mut Viewer<'v>,
}

/// How the wait for the other side ended.
pub(super) enum Met {
    /// It is there, behind this socket, on which this has been said.
    Socket(OwnedFd, Option<Box<Begun>>),
    /// ssh ended instead, with this status.
    SshEnded(u8),
}

/// Starts ssh, a second time if this program has to be copied first, and waits for the other side.
pub(super) fn reach(
    begin: &mut Begin<'_, '_>,
    install: bool,
    signals: &Signals,
) -> Result<(Program, Result<Met, Error>), Error> {
    let first = attempt(begin, signals)?;
    if !install || !matches!(first.1, Ok(Met::SshEnded(MISSING))) {
        return Ok(first);
    }
    install::install(begin.own, &begin.args.options, &begin.args.destination)?;
    attempt(begin, signals)
}

fn attempt(begin: &mut Begin<'_, '_>, signals: &Signals) -> Result<(Program, Result<Met, Error>), Error> {
    match begin.output {
        Some(output) => on_stdio(begin, output, signals),
        None => forwarded(begin, signals),
    }
}

/// ssh's stdio is the command's, and the two sides meet on a socket that ssh forwards.
fn forwarded(begin: &Begin<'_, '_>, signals: &Signals) -> Result<(Program, Result<Met, Error>), Error> {
    let socket = format!("/tmp/wayferry-{}.sock", random_name());
    let mut forward = OsString::from(format!("{socket}:"));
    forward.push(begin.listener.path());
    let terminal = wants_terminal(begin.args).then(|| "-t".into());
    let options = ["-R".into(), forward].into_iter().chain(terminal);
    let words = ssh_words(begin, options, Road::Forwarded(&socket));
    let mut command = Command::new(&words[0]);
    let program = words[0].to_string_lossy().into_owned();
    let child =
        command.args(&words[1..]).spawn().map_err(|source| SessionError::Program { program, source })?;
    let mut ssh = Program::watch(child, Place::Foreground)?;
    let accept = || begin.listener.accept().map_err(system("accepting ssh's connection"));
    let met = wait(&mut ssh, || Some(begin.listener.as_fd()), accept, signals);
    let met = met.map(|met| match met {
        Ok(socket) => Met::Socket(socket, None),
        Err(status) => Met::SshEnded(status),
    });
    Ok((ssh, met))
}

/// ssh's stdio carries the meeting and the command's. All that a display says first is said at once: where ssh gets
/// there it leads to the one machine, to which ssh would say it in any case.
fn on_stdio(
    begin: &mut Begin<'_, '_>,
    output: &Output,
    signals: &Signals,
) -> Result<(Program, Result<Met, Error>), Error> {
    let words = ssh_words(begin, ["-T".into()], Road::Trunk);
    let (ours, theirs) = UnixStream::pair().map_err(system("making a socket"))?;
    let socket = OwnedFd::from(ours);
    let begun = begin.viewer.begin(&socket)?;
    let (mut ssh, link) = start_on_socket(&words)?;
    let trunk = output
        .ends()
        .and_then(|ends| Trunk::near(link, theirs.into(), ends, begin.listener.path()))
        .map_err(system("starting a thread"))?;
    let has_spoken = || Ok((trunk.has_spoken() == Some(true)).then_some(()));
    let sign = || trunk.has_spoken().is_none().then(|| trunk.sign());
    let mut met = wait(&mut ssh, sign, has_spoken, signals);
    if matches!(met, Ok(Err(_))) {
        // What it said last may not have been heard.
        signals.wait_readable(&[trunk.sign()], Some(SSH_PATIENCE))?;
        met = if trunk.has_spoken() == Some(true) { Ok(Ok(())) } else { met };
    }
    let met = met.and_then(|met| match met {
        Ok(()) => super::stdio::feed(&trunk).map(|()| Met::Socket(socket, Some(Box::new(begun)))),
        Err(status) => Ok(Met::SshEnded(status)),
    });
    Ok((ssh, met))
}

/// The command that runs ssh with these options of ours.
fn ssh_words(
    begin: &Begin<'_, '_>,
    options: impl IntoIterator<Item = OsString>,
    road: Road<'_>,
) -> Vec<OsString> {
    let Begin { own, args, far_half, .. } = begin;
    let mut words = vec![own.reach.ssh()];
    words.extend(args.options.iter().cloned());
    words.extend(options);
    let command = remote_command(own, args, road, *far_half);
    words.extend(["--".into(), args.destination.clone(), command.into()]);
    words
}

/// Waits until the other side has come through ssh, as long as ssh takes: it may be asking for a password. Otherwise
/// gives ssh's status. `sign` is readable when there is something to `look` at.
fn wait<'a, T>(
    ssh: &mut Program,
    sign: impl Fn() -> Option<BorrowedFd<'a>>,
    mut look: impl FnMut() -> Result<Option<T>, SessionError>,
    signals: &Signals,
) -> Result<Result<T, u8>, Error> {
    let (clock, mut tell_at) = (Clock::start(), FIRST_WAIT);
    loop {
        if let Some(met) = look()? {
            return Ok(Ok(met));
        }
        if let Some(status) = ssh.status() {
            return Ok(Err(exit_code(status)));
        }
        let waited = clock.now().since_start();
        if waited >= tell_at {
            tell_at *= 2;
            if !is_asking() {
                notice(&format!("still waiting for ssh ({} s)", waited.as_secs()));
            }
        }
        let fds: Vec<_> = sign().into_iter().chain([ssh.as_fd()]).collect();
        signals.wait_readable(&fds, Some(tell_at.saturating_sub(waited)))?;
    }
}

/// Whether ssh is asking the user for a secret: it has turned the terminal's echo off, and whom it keeps waiting is the
/// user.
fn is_asking() -> bool {
    let terminal = std::fs::File::open("/dev/tty").ok();
    let modes = terminal.and_then(|terminal| rustix::termios::tcgetattr(terminal).ok());
    modes.is_some_and(|modes| !modes.local_modes.contains(rustix::termios::LocalModes::ECHO))
}

/// When a user is told first that ssh has not come through yet; each time after that is twice the one before.
const FIRST_WAIT: Duration = Duration::from_secs(5);
