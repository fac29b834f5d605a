//! What `wayferry ssh` and `wayferry through` start on the other machine: it starts a session, or finds one, and stands
//! between it and its caller.
//!
//! The session is a process of its own. The launcher passes on, in both directions, the bytes with which display and
//! session meet (and, where there is no QUIC, all others), and what the program reads and writes; ssh's stdin and
//! stdout may carry both ([`wayferry_proto::trunk`]). It ends with the program's status. When the caller is gone, so is
//! the launcher, and the session stays. Where there is a terminal, the launcher runs the program itself, because a
//! terminal belongs to the processes of its login. Invariant: nothing of the session depends on the launcher.

mod relay;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio as ChildStdio};
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use wayferry_proto::trunk::MARK;

use crate::error::{Error, SessionError};
use crate::flags::{HostFlags, OwnFlags};
use crate::host::launch;
use crate::pass_on::{Patient, copy, output, system};
use crate::tell::print;
use relay::Relay;
use wayferry_host::clock::Clock;
use wayferry_host::clock::earlier;
use wayferry_host::control::{self, Ended, Notice, Request};
use wayferry_host::edge::outlets::Stdio;
use wayferry_host::edge::peer;
use wayferry_host::edge::programs::{Environment, Place, Program, exit_code};
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::trunk::Trunk;
use wayferry_host::edge::wait::Interests;
use wayferry_host::passing;
use wayferry_host::sessions;

/// Where the caller is.
enum Caller {
    /// Behind a socket that ssh forwards. Stdin and stdout are the program's, and may be a terminal.
    Forwarded(Forwarded, OwnedFd),
    /// Behind stdin and stdout, with what the program reads and writes.
    Trunk,
    /// Behind stdin and stdout alone.
    Stdio,
}

/// How a display that is missed is brought to its session once more.
enum Again {
    Forwarded(Forwarded),
    Trunk(Trunk),
}

impl Again {
    fn connect(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        both(match self {
            Self::Forwarded(Forwarded(path)) => peer::connect(path)?,
            Self::Trunk(trunk) => trunk.open()?.into(),
        })
    }
}

/// A socket that ssh forwards to the caller, for as long as ssh lives. sshd leaves the file behind.
struct Forwarded(PathBuf);

impl Forwarded {
    /// The same, kept with a session; none where that cannot be, and then the file goes.
    fn kept_with(mut self, session: &str) -> Option<Self> {
        self.0 = sessions::keep(session, &self.0).ok()?;
        Some(self)
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A session for the display behind this socket, which ssh forwards.
pub(crate) fn bootstrapped(own: &OwnFlags, host: &HostFlags, path: &Path) -> Result<u8, Error> {
    let stranger = |error: &io::Error| error.get_ref()?.downcast_ref::<peer::Stranger>().cloned();
    let socket = peer::connect(path).map_err(|error| match stranger(&error) {
        // Its name stands in ssh's command line, so another user of both machines can be there first.
        Some(stranger) => SessionError::Stranger { machine: machine(), stranger },
        None => SessionError::Bootstrap(format!("ssh forwarded no socket to `{}`: {error}", path.display())),
    })?;
    start(own, host, Caller::Forwarded(Forwarded(path.to_owned()), socket))
}

/// A session for the display behind stdin and stdout, which carry what the program reads and writes, too.
pub(crate) fn on_trunk(own: &OwnFlags, host: &HostFlags) -> Result<u8, Error> {
    // What comes before this is a login's.
    let mut stdout = io::stdout();
    stdout.write_all(MARK).and_then(|()| stdout.flush()).map_err(system("writing to ssh"))?;
    start(own, host, Caller::Trunk)
}

/// Both directions of a socket.
fn both(socket: OwnedFd) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok((socket.try_clone()?, socket))
}

/// What this machine calls itself.
fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A session for the display behind stdin and stdout.
pub(crate) fn on_stdio(own: &OwnFlags, host: &HostFlags) -> Result<u8, Error> {
    start(own, host, Caller::Stdio)
}

/// The way for the display behind stdin and stdout to a session that runs already.
pub(crate) fn meet(session: Option<&str>, view: bool, page: Option<SocketAddr>) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let (from, to) = stdio()?;
    let relay = Relay::start(from, to, session, |reached| match page {
        Some(browser) => Request::Page(browser),
        None if view => Request::View(reached),
        None => Request::Attach(reached),
    })?;
    // The agent goes with this login: it stays for as long as the display does, which may go on by QUIC.
    let ends = [relay.over.as_fd(), relay.closed.as_fd()];
    signals.wait_readable(if relay.brings_agent { &ends[..1] } else { &ends }, None)?;
    Ok(0)
}

fn stdio() -> Result<(OwnedFd, OwnedFd), Error> {
    let dup = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().map_err(system("dup"));
    Ok((dup(io::stdin().as_fd())?, dup(io::stdout().as_fd())?))
}

/// What the session hands to its launcher: its readiness, the ends of the program's pipes, and where its notes come
/// from. Gives the end into which the session writes those; it never waits for a reader.
pub(crate) fn hand_over(owner: &OwnedFd, ready: &[Notice], ends: &Stdio) -> Result<OwnedFd, Error> {
    let (notes, write) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|error| system("making a pipe")(error.into()))?;
    rustix::io::ioctl_fionbio(&write, true).map_err(|error| system("making a pipe")(error.into()))?;
    let bytes: Vec<u8> = ready.iter().flat_map(control::line).collect();
    let [stdin, stdout, stderr] = ends;
    let fds = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd(), notes.as_fd()];
    passing::send(owner, &bytes, &fds).map_err(system("telling who started the session"))?;
    Ok(write)
}

/// A session that has just been started, as its launcher sees it.
struct Session {
    owner: UnixStream,
    heard: Vec<u8>,
    name: String,
    environment: Environment,
    /// Stdin, stdout and stderr of the program, and the session's notes.
    ends: Vec<OwnedFd>,
}

fn start(own: &OwnFlags, host: &HostFlags, caller: Caller) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let terminal = matches!(caller, Caller::Forwarded(..)) && io::IsTerminal::is_terminal(&io::stdin());
    let (owner, theirs) = UnixStream::pair().map_err(system("making a socket"))?;
    let mut child = spawn(theirs.into(), terminal)?;
    let Some(session) = Session::hear(owner, &signals)? else {
        // It has said on stderr why.
        let status = child.wait().map_err(system("waiting for the session"))?;
        return Ok(exit_code(status));
    };
    if own.begin.detached {
        return print(format!("{}\n", session.name).as_bytes());
    }
    match caller {
        Caller::Trunk => share_stdio(session, &signals),
        Caller::Stdio => {
            let mut display = Display::meet(stdio()?, None, &session.name)?;
            copy_stdio(session, false, &mut display, &signals)
        }
        Caller::Forwarded(forwarded, socket) => {
            let again = forwarded.kept_with(&session.name).map(Again::Forwarded);
            let mut display = Display::meet(both(socket).map_err(system("dup"))?, again, &session.name)?;
            if terminal {
                return attend(own, host, session, &mut display, &signals);
            }
            copy_stdio(session, true, &mut display, &signals)
        }
    }
}

/// Has stdin and stdout carry all that there is, until the session or the caller is over.
fn share_stdio(mut session: Session, signals: &Signals) -> Result<u8, Error> {
    let (from, to) = stdio()?;
    let (ours, theirs) = UnixStream::pair().map_err(system("making a socket"))?;
    let trunk =
        Trunk::far(from, to, theirs.into(), session.take_pipes()?).map_err(system("starting a thread"))?;
    let caller = both(ours.into()).map_err(system("dup"))?;
    let mut display = Display::meet(caller, Some(Again::Trunk(trunk)), &session.name)?;
    let code = wait(&session.owner, session.heard, &mut display, signals)?;
    if let Some(Again::Trunk(trunk)) = &display.again {
        trunk.finish();
        if !signals.wait_readable(&[trunk.over()], Some(LAST_WORDS))?[0] {
            // A program that goes on has its output. A reader may take long, as with ssh: a user who has enough says
            // so by a signal.
            trunk.leave();
            signals.wait_readable(&[trunk.over()], None)?;
        }
    }
    Ok(code)
}

/// Copies what the program writes, and what it reads where stdin `is_free`, until the session or the caller is over.
fn copy_stdio(
    mut session: Session,
    is_free: bool,
    display: &mut Display,
    signals: &Signals,
) -> Result<u8, Error> {
    let [stdin, stdout, stderr, notes] = session.take_pipes()?;
    let stdout = if is_free {
        // A thread that waits in `read` there ends with the process.
        drop(copy(io::stdin(), File::from(stdin))?);
        output(stdout, Patient::of(io::stdout())?)?
    } else {
        output(stdout, Patient::of(io::stderr())?)?
    };
    let to_stderr = |from| output(from, Patient::of(io::stderr())?);
    let outputs = [stdout, to_stderr(stderr)?, to_stderr(notes)?];
    let code = wait(&session.owner, session.heard, display, signals)?;
    for over in &outputs {
        signals.wait_readable(&[over.as_fd()], Some(LAST_WORDS))?;
    }
    Ok(code)
}

/// The same command again, as the session itself.
fn spawn(owner: OwnedFd, terminal: bool) -> Result<Child, SessionError> {
    let itself = std::env::current_exe().map_err(system("looking for this program"))?;
    let mut command = Command::new(itself);
    command.args(as_session(std::env::args_os().skip(1), terminal));
    command.stdin(owner).stdout(ChildStdio::null());
    command.spawn().map_err(|source| SessionError::Program { program: "wayferry".into(), source })
}

/// A launcher's arguments as those of its session.
fn as_session(words: impl Iterator<Item = OsString>, terminal: bool) -> Vec<OsString> {
    let mut out = Vec::new();
    let mut words = words;
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--bootstrap") => drop(words.next()),
            Some("--stdio" | "--trunk") => {}
            Some("--") => {
                out.push(word);
                break;
            }
            Some("host") if !out.contains(&"--serve".into()) => {
                out.extend([word, "--serve".into()]);
                out.extend(terminal.then(|| "--terminal".into()));
            }
            _ => out.push(word),
        }
    }
    out.extend(words);
    out
}

impl Session {
    /// The ends that it has handed over.
    fn take_pipes(&mut self) -> Result<[OwnedFd; 4], Error> {
        let ends = std::mem::take(&mut self.ends);
        ends.try_into().map_err(|_| SessionError::Bootstrap("the session has no pipes".into()).into())
    }

    /// Waits until it is there; `None` when it ends instead.
    fn hear(owner: UnixStream, signals: &Signals) -> Result<Option<Self>, Error> {
        let (mut heard, mut ends) = (Vec::new(), Vec::new());
        let mut environment = Environment::default();
        loop {
            while let Some(notice) = control::take::<Notice>(&mut heard).map_err(SessionError::Bootstrap)? {
                match notice {
                    Notice::Set(name, value) => environment.set.push((name.into(), value.into())),
                    Notice::Unset(name) => environment.unset.push(name.into()),
                    Notice::Ready(name) => return Ok(Some(Self { owner, heard, name, environment, ends })),
                    Notice::Shown | Notice::Exit(_) | Notice::Detached | Notice::Silent => {}
                }
            }
            signals.wait_readable(&[owner.as_fd()], None)?;
            if !passing::receive(&owner, &mut heard, &mut ends).map_err(system("hearing the session"))? {
                return Ok(None);
            }
        }
    }
}

/// Waits for the session's end, or for the caller's.
fn wait(
    owner: &UnixStream,
    mut heard: Vec<u8>,
    display: &mut Display,
    signals: &Signals,
) -> Result<u8, Error> {
    let clock = Clock::start();
    let mut left_by = None;
    loop {
        while let Some(notice) = control::take::<Notice>(&mut heard).map_err(SessionError::Bootstrap)? {
            match notice {
                Notice::Exit(code) => return Ok(code),
                Notice::Detached => return Ok(0),
                Notice::Silent => display.meet_again(),
                _ => {}
            }
        }
        let now = clock.now();
        let left = left_by.map(|by: wayferry_proto::Time| by.since(now));
        if left == Some(Duration::ZERO) {
            return Ok(0);
        }
        let mut fds = vec![owner.as_fd()];
        fds.extend(left_by.is_none().then(|| display.relay.over.as_fd()));
        let ready = signals.wait_readable(&fds, left)?;
        if ready[0] && !passing::receive(owner, &mut heard, &mut Vec::new()).unwrap_or(false) {
            return Ok(255);
        }
        if ready.get(1) == Some(&true) {
            // The display is gone. If that is because the session is over, the session says so.
            left_by = earlier(left_by, Some(now + LAST_WORDS));
        }
    }
}

/// Runs the program on the terminal, once a display is there.
fn attend(
    own: &OwnFlags,
    host: &HostFlags,
    session: Session,
    display: &mut Display,
    signals: &Signals,
) -> Result<u8, Error> {
    let Session { owner, mut heard, environment, mut ends, .. } = session;
    if let Some(notes) = ends.pop() {
        drop(output(notes, Patient::of(io::stderr())?)?);
    }
    drop(ends);
    let mut program: Option<Program> = None;
    let mut gone = false;
    loop {
        while let Some(notice) = control::take::<Notice>(&mut heard).map_err(SessionError::Bootstrap)? {
            match notice {
                Notice::Exit(code) => return Ok(code),
                Notice::Silent => display.meet_again(),
                Notice::Shown if program.is_none() => {
                    let launch = launch(own, host);
                    program = Some(Program::start(&launch, &environment, Place::Foreground, None)?);
                }
                _ => {}
            }
        }
        if let Some(status) = program.as_mut().and_then(Program::status) {
            let code = exit_code(status);
            let _ = passing::send(&owner, &control::line(&Ended(code)), &[]);
            return wait(&owner, heard, display, signals).map(|_| code);
        }
        if program.is_none() && gone {
            return Ok(0);
        }
        let mut interests = Interests::default();
        interests.read(&owner);
        interests.read(signals);
        match &program {
            Some(program) => interests.read(program),
            None => interests.read(&display.relay.over),
        }
        let ready = interests.wait(wayferry_proto::Time::ZERO)?;
        signals.check()?;
        if ready.has(&owner) && !passing::receive(&owner, &mut heard, &mut Vec::new()).unwrap_or(false) {
            return Ok(255);
        }
        gone |= program.is_none() && ready.has(&display.relay.over);
    }
}

/// The display that the session was started for, as its launcher sees it.
struct Display {
    session: String,
    /// How it met the session. Its end is the display's, over all its carriers.
    relay: Relay,
    again: Option<Again>,
    /// How it can go on while nothing of it comes to the session otherwise.
    later: Option<Relay>,
}

impl Display {
    fn meet(caller: (OwnedFd, OwnedFd), again: Option<Again>, session: &str) -> Result<Self, Error> {
        let relay = Relay::start(caller.0, caller.1, Some(session), Request::Attach)?;
        Ok(Self { session: session.to_owned(), relay, again, later: None })
    }

    /// Nothing is heard of it: brings it another way to the session, if ssh still reaches it. Where that fails it has
    /// to come by itself.
    fn meet_again(&mut self) {
        let Some(again) = &self.again else { return };
        if self.later.as_ref().is_some_and(Relay::is_open) {
            return;
        }
        let start = |(from, to)| Relay::beside(from, to, &self.session).ok();
        self.later = again.connect().ok().and_then(start);
    }
}

/// How long what a program has written may take to be passed on when it has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_started_with_its_fronts_options_and_its_command_untouched() {
        let session = |line: &str, terminal| {
            as_session(line.split(' ').map(OsString::from), terminal).join(std::ffi::OsStr::new(" "))
        };
        assert_eq!(
            session("--name x host --bootstrap /tmp/s --stats --shell-line=foot", false),
            "--name x host --serve --stats --shell-line=foot"
        );
        assert_eq!(session("host --stdio -- host --stdio", true), "host --serve --terminal -- host --stdio");
        assert_eq!(session("host --trunk --shell-line=foot", false), "host --serve --shell-line=foot");
    }
}
