//! What `wayferry ssh` and `wayferry through` start on the other machine: it starts a session, or finds one, and stands
//! between it and its caller.
//!
//! The session is a process of its own. The launcher passes on, in both directions, the bytes with which display and
//! session meet (and, where there is no QUIC, all others), and what the program reads and writes; it ends with the
//! program's status. When the caller is gone, so is the launcher, and the session stays. Where there is a terminal, the
//! launcher runs the program itself, because a terminal belongs to the processes of its login. Invariant: nothing of
//! the session depends on the launcher.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio as ChildStdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::error::{Error, SessionError};
use crate::flags::{HostFlags, OwnFlags};
use crate::host::{AGENT, launch, ssh_server_address};
use crate::tell::print;
use wayferry_host::clock::Clock;
use wayferry_host::clock::earlier;
use wayferry_host::control::{self, Ended, Notice, Request};
use wayferry_host::edge::outlets::Stdio;
use wayferry_host::edge::peer;
use wayferry_host::edge::programs::{Environment, Place, Program, exit_code};
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::wait::Interests;
use wayferry_host::passing;
use wayferry_host::sessions;

/// The way to the caller.
struct Caller {
    from: OwnedFd,
    to: OwnedFd,
    /// Where ssh forwards a socket; stdin and stdout are free for the program then.
    forwarded: Option<Forwarded>,
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
    let (from, to) = connect(path).map_err(|error| match stranger(&error) {
        // Its name stands in ssh's command line, so another user of both machines can be there first.
        Some(stranger) => SessionError::Stranger { machine: machine(), stranger },
        None => SessionError::Bootstrap(format!("ssh forwarded no socket to `{}`: {error}", path.display())),
    })?;
    let forwarded = Forwarded(path.to_owned());
    start(own, host, Caller { from, to, forwarded: Some(forwarded) })
}

/// Both directions of the socket that ssh forwards to the caller.
fn connect(path: &Path) -> io::Result<(OwnedFd, OwnedFd)> {
    let from = peer::connect(path)?;
    let to = from.try_clone()?;
    Ok((from, to))
}

/// What this machine calls itself.
fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A session for the display behind stdin and stdout.
pub(crate) fn on_stdio(own: &OwnFlags, host: &HostFlags) -> Result<u8, Error> {
    start(own, host, stdio()?)
}

/// The way for the display behind stdin and stdout to a session that runs already.
pub(crate) fn meet(session: Option<&str>, view: bool) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let Caller { from, to, .. } = stdio()?;
    let relay = Relay::start(from, to, session, if view { Request::View } else { Request::Attach })?;
    // The agent goes with this login: it stays for as long as the display does, which may go on by QUIC.
    let ends = [relay.over.as_fd(), relay.closed.as_fd()];
    signals.wait_readable(if relay.brings_agent { &ends[..1] } else { &ends }, None)?;
    Ok(0)
}

fn stdio() -> Result<Caller, Error> {
    let dup = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().map_err(system("dup"));
    Ok(Caller { from: dup(io::stdin().as_fd())?, to: dup(io::stdout().as_fd())?, forwarded: None })
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
    let stdio = caller.forwarded.is_some();
    let terminal = stdio && io::IsTerminal::is_terminal(&io::stdin());
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
    let mut display = Display::meet(caller, &session.name)?;
    if terminal {
        return attend(host, session, &mut display, &signals);
    }
    let mut ends = session.ends.into_iter();
    let [Some(stdin), Some(stdout), Some(stderr), Some(notes)] = std::array::from_fn(|_| ends.next()) else {
        return Err(SessionError::Bootstrap("the session has no pipes".into()).into());
    };
    if stdio {
        // A thread that waits in `read` there ends with the process.
        drop(copy(io::stdin(), File::from(stdin))?);
    }
    let outputs = match stdio {
        true => [output(stdout, io::stdout())?, output(stderr, io::stderr())?],
        false => [output(stdout, io::stderr())?, output(stderr, io::stderr())?],
    };
    let notes = output(notes, io::stderr())?;
    let code = wait(&session.owner, session.heard, &mut display, &signals)?;
    for over in outputs.iter().chain([&notes]) {
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
            Some("--stdio") => {}
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
fn attend(host: &HostFlags, session: Session, display: &mut Display, signals: &Signals) -> Result<u8, Error> {
    let Session { owner, mut heard, environment, mut ends, .. } = session;
    if let Some(notes) = ends.pop() {
        drop(output(notes, io::stderr())?);
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
                    let launch = launch(host);
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
    forwarded: Option<Forwarded>,
    /// How it can go on while nothing of it comes to the session otherwise.
    later: Option<Relay>,
}

impl Display {
    fn meet(caller: Caller, session: &str) -> Result<Self, Error> {
        let Caller { from, to, forwarded } = caller;
        let relay = Relay::start(from, to, Some(session), Request::Attach)?;
        let forwarded = forwarded.and_then(|forwarded| forwarded.kept_with(session));
        Ok(Self { session: session.to_owned(), relay, forwarded, later: None })
    }

    /// Nothing is heard of it: brings it another way to the session, if ssh still reaches it. Where that fails it has
    /// to come by itself.
    fn meet_again(&mut self) {
        let Some(Forwarded(path)) = &self.forwarded else { return };
        if self.later.as_ref().is_some_and(Relay::is_open) {
            return;
        }
        let start = |(from, to)| Relay::beside(from, to, &self.session).ok();
        self.later = connect(path).ok().and_then(start);
    }
}

/// The bytes between a caller and a session's control socket.
struct Relay {
    /// Readable when the caller is gone.
    over: UnixStream,
    /// Readable when the session has closed its end: it is over, or the display comes another way.
    closed: UnixStream,
    /// Programs use the ssh agent that has come with the caller.
    brings_agent: bool,
    /// It ends with this.
    _caller: Option<Ending>,
}

/// A socket that is written to, and that ends for all who have it when this does.
struct Ending(UnixStream);

impl Write for Ending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        // One that is over already has ended for all.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Relay {
    /// Asks a session to let the caller attach, or view.
    fn start(
        from: OwnedFd,
        to: OwnedFd,
        session: Option<&str>,
        request: impl FnOnce(Option<IpAddr>) -> Request,
    ) -> Result<Self, Error> {
        let (socket, brings_agent) = ask(session, request)?;
        let other = socket.try_clone().map_err(system("dup"))?;
        // To its end: when the session has closed the socket, the caller is still there.
        let over = output(from, socket)?;
        let closed = copy(other, File::from(to))?;
        Ok(Self { over, closed, brings_agent, _caller: None })
    }

    /// The same for one that has been let in before, on two descriptors of one socket: when either end is over, or this
    /// is dropped, both are.
    fn beside(from: OwnedFd, to: OwnedFd, session: &str) -> Result<Self, Error> {
        let (socket, brings_agent) = ask(Some(session), Request::Attach)?;
        Self::between(from, to, socket, brings_agent)
    }

    fn between(from: OwnedFd, to: OwnedFd, socket: UnixStream, brings_agent: bool) -> Result<Self, Error> {
        let other = socket.try_clone().map_err(system("dup"))?;
        let caller = Ending(UnixStream::from(to.try_clone().map_err(system("dup"))?));
        let over = copy(File::from(from), Ending(socket))?;
        let closed = copy(other, Ending(UnixStream::from(to)))?;
        Ok(Self { over, closed, brings_agent, _caller: Some(caller) })
    }

    /// Whether both ends are there.
    fn is_open(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let is_open = |end: &UnixStream| rustix::net::recv(end, &mut [0; 1], flags) == Err(Errno::AGAIN);
        is_open(&self.over) && is_open(&self.closed)
    }
}

/// Asks a session to let the caller in; gives the socket that leads there, and whether the caller's agent is used.
fn ask(
    session: Option<&str>,
    request: impl FnOnce(Option<IpAddr>) -> Request,
) -> Result<(UnixStream, bool), Error> {
    let (name, socket) = sessions::call(session)?;
    rustix::io::ioctl_fionbio(&socket, false).map_err(|error| system("fcntl")(error.into()))?;
    let address = ssh_server_address();
    let reached = (!address.is_unspecified()).then_some(address);
    let request = request(reached);
    // One that is gone, or no socket, takes no other's place.
    let agent = std::env::var_os(AGENT).filter(|_| matches!(request, Request::Attach(_)));
    let brings_agent = agent.is_some_and(|agent| sessions::point_agent(&name, Path::new(&agent)).is_ok());
    passing::send(&socket, &control::line(&request), &[]).map_err(system("speaking to the session"))?;
    Ok((socket.into(), brings_agent))
}

/// Copies on a thread of its own until one end is over; what is returned is readable then.
fn copy(from: impl Read + Send + 'static, to: impl Write + Send + 'static) -> Result<UnixStream, Error> {
    pass_on(from, to, false)
}

/// The same for what is read even without a taker: a program must not wait for who reads what it writes.
fn output(from: OwnedFd, to: impl Write + Send + 'static) -> Result<UnixStream, Error> {
    pass_on(File::from(from), to, true)
}

fn pass_on(
    mut from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    to_the_end: bool,
) -> Result<UnixStream, Error> {
    let (over, running) = UnixStream::pair().map_err(system("making a socket"))?;
    let work = move || {
        let mut piece = vec![0; 64 << 10];
        loop {
            let count = match from.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let taken = to.write_all(&piece[..count]).and_then(|()| to.flush());
            if taken.is_err() && !to_the_end {
                break;
            }
        }
        drop((from, to, running));
    };
    std::thread::Builder::new().spawn(work).map_err(system("starting a thread"))?;
    Ok(over)
}

fn system(doing: &'static str) -> impl Fn(io::Error) -> SessionError {
    move |source| SessionError::System { doing, source }
}

/// How long what a program has written may take to be passed on when it has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regression_a_relay_beside_ends_at_both_ends_when_either_is_over() {
        for end in 0..3 {
            let (display, from) = UnixStream::pair().expect("a socket");
            let (host, socket) = UnixStream::pair().expect("a socket");
            let relay = Relay::between(from.try_clone().expect("dup").into(), from.into(), socket, false);
            let relay = relay.expect("a relay");
            assert!(relay.is_open());
            let (mut ends, mut relay) = ([Some(display), Some(host)], Some(relay));
            match end {
                2 => drop(relay.take()),
                end => drop(ends[end].take()),
            }
            for mut other in ends.into_iter().flatten() {
                assert_eq!(other.read(&mut [0; 1]).expect("read"), 0, "{end}");
            }
        }
    }

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
    }
}
