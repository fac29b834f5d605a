//! What is looked at on another machine, over one ssh.
//!
//! ssh runs a line there that answers questions and then starts a session as `wayferry ssh` does, through the socket
//! that it forwards, or on its own stdin and stdout where it forwards none. The session's program never begins.
//! Invariant: ssh is reaped, no socket of ours is left, and the session over there ends, in every case.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::answers::{Answers, END};
use super::check::Check;
use super::meeting;
use crate::error::{Error, SessionError};
use crate::flags::OwnFlags;
use crate::remote::{self, BROKEN, MISSING};
use crate::tell::step;
use wayferry_host::edge::programs::{Place, Program, exit_code};
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::{Listener, RuntimeDir, random_name};
use wayferry_host::sanitize::sanitize;

/// Looks at another machine.
///
/// # Errors
/// A signal, or what this machine lacks to ask at all.
pub(super) fn ask(
    own: &OwnFlags,
    host: &str,
    ports: Option<&RangeInclusive<u16>>,
    signals: &Signals,
) -> Result<Vec<Check>, Error> {
    let dir = RuntimeDir::private()?;
    let listener = Listener::unlocked(dir.path().join("ssh"))?;
    let socket = format!("/tmp/wayferry-{}.sock", random_name());
    let mark = random_name();
    let line = remote::examined_line(own, &mark, &socket, &session(ports));
    let mut forward = OsString::from(format!("{socket}:"));
    forward.push(listener.path());
    let asked = Instant::now();
    let mut ssh = Ssh::start(own, host, &forward, &line)?;
    let began = ssh.hear(&mark, [LOGIN, ANSWERS], signals)?;
    let answers = Answers::parse(&ssh.said, &mark);
    let mut checks = vec![login(&ssh, own, &answers, began.map(|at| at - asked))];
    if !answers.began {
        return Ok(checks);
    }
    checks.push(noise(&answers));
    checks.push(forwarding(&answers, &ssh));
    let found = binary(own, host, &ssh, &answers);
    let is_there = !found.is_failed();
    checks.push(found);
    if is_there {
        let met = ssh.meet(answers.forwarded.then_some(&listener), signals)?;
        checks.extend(meeting::hold(own, host, met, signals)?);
        // What it says last may tell why.
        ssh.finish(signals)?;
    }
    checks.extend(facts(answers));
    Ok(checks)
}

/// The session that is started: under a name that tells what it is, and with nothing that takes time.
fn session(ports: Option<&RangeInclusive<u16>>) -> Vec<String> {
    let name = format!("--name=doctor-{}", &random_name()[..8]);
    let mut words = vec![name, format!("--linger={}", LEFT_ALONE.as_secs())];
    words.extend(ports.map(|ports| format!("--port={}-{}", ports.start(), ports.end())));
    words.extend(["--audio=off", "--gpu=off", "--shell-line=true"].map(str::to_owned));
    words
}

/// ssh itself.
fn login(ssh: &Ssh, own: &OwnFlags, answers: &Answers, took: Option<Duration>) -> Check {
    const NAME: &str = "ssh";
    let version = version_of(&own.reach.ssh());
    match (took, &answers.machine) {
        (Some(took), machine) => {
            let machine = machine.as_deref().unwrap_or("a machine");
            Check::ok(NAME, format!("{machine} answers after {:.1} s; {version}", took.as_secs_f64()))
        }
        (None, _) => {
            let said = ssh.last_words().unwrap_or_else(|| match &answers.noise {
                Some((_, first)) => format!("it ran no command, and said `{first}`"),
                None => "it says nothing".into(),
            });
            let how = match ssh.status {
                _ if ssh.said.len() >= MAX_SAID => format!("prints more than {} kB first", MAX_SAID >> 10),
                Some(status) => format!("ended with status {status}"),
                None => format!("did not get there within {} s", LOGIN.as_secs()),
            };
            let hint = "try the same destination with ssh alone, and a command: `ssh HOST true`";
            Check::fail(NAME, format!("{how}: {said}; {version}"), hint)
        }
    }
}

/// What ssh calls itself.
fn version_of(ssh: &OsStr) -> String {
    let output = Command::new(ssh).arg("-V").stdin(Stdio::null()).stdout(Stdio::null()).output();
    let told = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
    let first = told.ok().and_then(|told| told.lines().next().map(sanitize));
    first.filter(|first| !first.is_empty()).unwrap_or_else(|| "of an unknown version".into())
}

/// Whether logging in prints something where a command is run.
fn noise(answers: &Answers) -> Check {
    const NAME: &str = "login";
    match &answers.noise {
        None => Check::ok(NAME, "prints nothing before commands"),
        Some((bytes, first)) => Check::warn(
            NAME,
            format!("prints {bytes} bytes before a command's own output: `{first}`"),
            "print in ~/.bashrc and its like only where `case $- in *i*)` says that a user reads it",
        ),
    }
}

/// Whether ssh forwards a socket from there to here.
fn forwarding(answers: &Answers, ssh: &Ssh) -> Check {
    const NAME: &str = "forwarding";
    if answers.forwarded {
        return Check::ok(NAME, "ssh -R makes a Unix socket there");
    }
    let said = ssh.last_words().map(|said| format!(": {said}")).unwrap_or_default();
    Check::warn(
        NAME,
        format!("the ssh server makes no Unix socket (ssh -R){said}: no session of a shell or of `ssh -t`"),
        "`AllowStreamLocalForwarding yes` and no `DisableForwarding` in its sshd_config; `wayferry ssh HOST PROGRAM` \
         does without",
    )
}

/// The wayferry over there.
fn binary(own: &OwnFlags, host: &str, ssh: &Ssh, answers: &Answers) -> Check {
    const NAME: &str = "wayferry";
    let failed = |error: &Error| Check::fail(NAME, error.to_string(), error.hint());
    match (&answers.binary, &answers.version, ssh.status) {
        (Some(path), Some(version), _) if answers.ended => {
            let place = match answers.in_path {
                true => "in the PATH of commands",
                false => "not in the PATH that sshd gives to commands; Wayferry looks there by itself",
            };
            let ours = env!("CARGO_PKG_VERSION");
            let other = if version == ours { String::new() } else { format!(" (here: {ours})") };
            Check::ok(NAME, format!("{version}{other}, `{path}`, {place}"))
        }
        (_, _, Some(MISSING)) => failed(&remote::missing(own, host, &format!("ssh {host}"))),
        (_, _, Some(BROKEN)) => failed(&remote::broken(own, host)),
        (_, _, status) => {
            let status = status.map_or("no answer".to_owned(), |status| format!("ssh ended with {status}"));
            let said = ssh.last_words().map(|said| format!(": {said}")).unwrap_or_default();
            let hint = "`wayferry version HOST` asks for nothing else";
            Check::fail(NAME, format!("it was not found out what there is: {status}{said}"), hint)
        }
    }
}

fn facts(answers: Answers) -> Vec<Check> {
    match answers.facts {
        Some(facts) => facts,
        None if answers.ended => vec![Check::warn(
            "more",
            "the wayferry there cannot tell what its machine has",
            "install this version there; `wayferry doctor` there tells more",
        )],
        None => Vec::new(),
    }
}

/// What is waited for beside ssh's end.
#[derive(Clone, Copy)]
enum Awaited<'a> {
    /// What it says on stdout.
    Answers,
    /// That this can be read.
    Session(BorrowedFd<'a>),
    /// Nothing.
    End,
}

/// The ssh that leads there.
struct Ssh {
    program: Program,
    /// Its exit status, once it is known.
    status: Option<u8>,
    stdio: OwnedFd,
    said: Vec<u8>,
    stderr: Option<ChildStderr>,
    /// The last of what it wrote there.
    told: Vec<u8>,
}

impl Ssh {
    fn start(own: &OwnFlags, host: &str, forward: &OsStr, line: &str) -> Result<Self, Error> {
        let mut command = Command::new(own.reach.ssh());
        // The first value that ssh is given holds. A forward that fails is one of the findings, and not the end.
        command.arg("-oExitOnForwardFailure=no").args(&own.reach.ssh_options).arg("-oConnectTimeout=20");
        command.arg("-R").arg(forward).args(["-T", "--", host, line]);
        Self::run(command)
    }

    fn run(mut command: Command) -> Result<Self, Error> {
        let fail = |source| SessionError::System { doing: "making a socket", source };
        let (ours, theirs) = UnixStream::pair().map_err(fail)?;
        let again = theirs.try_clone().map_err(fail)?;
        command.stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(again)).stderr(Stdio::piped());
        step(&format!("running {command:?}"));
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|source| SessionError::Program { program: name, source })?;
        // Until now it has the other end of the socket.
        drop(command);
        let stderr = child.stderr.take();
        let program = Program::watch(child, Place::Foreground)?;
        if let Some(stderr) = &stderr {
            rustix::io::ioctl_fionbio(stderr, true).map_err(|error| fail(error.into()))?;
        }
        Ok(Self { program, status: None, stdio: ours.into(), said: Vec::new(), stderr, told: Vec::new() })
    }

    /// Hears until all is answered, ssh has ended or time is over: so long until the answers begin, and then until they
    /// end. Gives when they began.
    fn hear(
        &mut self,
        mark: &str,
        [login, answers]: [Duration; 2],
        signals: &Signals,
    ) -> Result<Option<Instant>, Error> {
        let (mut deadline, mut began) = (Instant::now() + login, None);
        let end = format!("{mark} {END}\n").into_bytes();
        loop {
            let is_open = self.read_stdio();
            if began.is_none() && Answers::parse(&self.said, mark).began {
                began = Some(Instant::now());
                deadline = Instant::now() + answers;
            }
            if self.said.windows(end.len()).any(|piece| piece == end) || self.said.len() >= MAX_SAID {
                return Ok(began);
            }
            // What ssh has left behind, such as a master of its connections, may keep the socket.
            if !is_open || self.status.is_some() {
                self.finish(signals)?;
                return Ok(began);
            }
            if !self.wait(signals, deadline, Awaited::Answers)? {
                return Ok(began);
            }
        }
    }

    /// Where the session is met: behind the forwarded socket, or on stdin and stdout.
    fn meet(&mut self, listener: Option<&Listener>, signals: &Signals) -> Result<Option<OwnedFd>, Error> {
        let fail = |doing| move |source| SessionError::System { doing, source };
        let Some(listener) = listener else {
            return Ok(Some(self.stdio.try_clone().map_err(fail("dup"))?));
        };
        let deadline = Instant::now() + MEETING;
        loop {
            if let Some(socket) = listener.accept().map_err(fail("accepting ssh's connection"))? {
                return Ok(Some(socket));
            }
            if self.status.is_some() || !self.wait(signals, deadline, Awaited::Session(listener.as_fd()))? {
                return Ok(None);
            }
        }
    }

    /// Waits a moment for its end.
    fn finish(&mut self, signals: &Signals) -> Result<(), Error> {
        let _ = rustix::net::shutdown(&self.stdio, rustix::net::Shutdown::Write);
        let deadline = Instant::now() + ENDING;
        while self.status.is_none() && self.wait(signals, deadline, Awaited::End)? {}
        self.read_stderr();
        Ok(())
    }

    /// Waits until something happens; `false` when the time is over.
    fn wait(&mut self, signals: &Signals, deadline: Instant, awaited: Awaited<'_>) -> Result<bool, Error> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let mut fds = vec![self.program.as_fd()];
        fds.extend(self.stderr.as_ref().map(AsFd::as_fd));
        match awaited {
            Awaited::Answers => fds.push(self.stdio.as_fd()),
            Awaited::Session(fd) => fds.push(fd),
            Awaited::End => {}
        }
        let ready = signals.wait_readable(&fds, Some(left))?;
        if ready[0] {
            self.status = self.program.status().map(exit_code);
        }
        self.read_stderr();
        Ok(true)
    }

    /// Takes what is there; `false` at the end.
    fn read_stdio(&mut self) -> bool {
        let mut piece = [0; 4096];
        while self.said.len() < MAX_SAID {
            match rustix::net::recv(&self.stdio, &mut piece[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return false,
                Ok((count, _)) => self.said.extend_from_slice(&piece[..count]),
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Keeps the last of it.
    fn read_stderr(&mut self) {
        let Some(stderr) = &mut self.stderr else { return };
        let mut piece = [0; 4096];
        // A flood waits until the next turn.
        for _ in 0..16 {
            match stderr.read(&mut piece) {
                Ok(0) => {
                    self.stderr = None;
                    return;
                }
                Ok(count) => {
                    self.told.extend_from_slice(&piece[..count]);
                    let excess = self.told.len().saturating_sub(MAX_TOLD);
                    self.told.drain(..excess);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// The last line that it wrote on stderr.
    fn last_words(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.told);
        text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(sanitize)
    }
}

/// How long ssh may take to get there: a user may have a password to type.
const LOGIN: Duration = Duration::from_secs(60);
/// How long the questions may take: a driver starts, and a slow machine a program three times.
const ANSWERS: Duration = Duration::from_secs(30);
/// How long the session may take to come through ssh.
const MEETING: Duration = Duration::from_secs(20);
/// How long ssh may take to end when it has no more to do.
const ENDING: Duration = Duration::from_secs(4);
/// After this the session over there ends, should it be left.
const LEFT_ALONE: Duration = Duration::from_secs(30);
/// Bytes of answers, with what a login prints.
const MAX_SAID: usize = 256 << 10;
/// Bytes of stderr that are kept.
const MAX_TOLD: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    /// Hears what a shell says in ssh's place.
    fn heard(script: &str, limits: [Duration; 2]) -> (Ssh, bool) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let (mut ssh, signals) = (Ssh::run(command).expect("a shell"), Signals::new().expect("signals"));
        let began = ssh.hear("m", limits, &signals).expect("no signal");
        (ssh, began.is_some())
    }

    const NEVER: Duration = Duration::from_secs(3600);
    const SOON: Duration = Duration::from_millis(20);

    #[test]
    fn a_host_that_falls_silent_is_given_up() {
        let (ssh, began) = heard("exec tail -f /dev/null", [SOON, NEVER]);
        assert_eq!((began, ssh.status), (false, None));
        let (ssh, began) = heard("echo m begin; exec tail -f /dev/null", [NEVER, SOON]);
        assert_eq!((began, ssh.said.as_slice()), (true, &b"m begin\n"[..]));
    }

    #[test]
    fn regression_what_ssh_leaves_behind_is_waited_for() {
        let (ssh, began) = heard("echo m begin; tail -f /dev/null & echo $! >&2; exit 72", [NEVER, NEVER]);
        assert_eq!((began, ssh.status), (true, Some(72)));
        let left = ssh.last_words().expect("its number").parse().expect("a number");
        let left = rustix::process::Pid::from_raw(left).expect("a process");
        rustix::process::kill_process(left, rustix::process::Signal::KILL).expect("it lives");
    }

    #[test]
    fn what_is_complete_is_not_waited_for_and_a_flood_is_cut() {
        let (ssh, began) = heard("echo m begin; echo m end; exec tail -f /dev/null", [NEVER, NEVER]);
        assert_eq!((began, ssh.status), (true, None));
        let (ssh, began) = heard("exec yes", [NEVER, NEVER]);
        assert!(!began && (MAX_SAID..MAX_SAID + 4096).contains(&ssh.said.len()), "{}", ssh.said.len());
        let (ssh, _) = heard("yes words | head -n 100000 >&2; echo 'the last' >&2", [NEVER, NEVER]);
        assert!(ssh.told.len() <= MAX_TOLD && ssh.last_words().as_deref() == Some("the last"));
    }
}
