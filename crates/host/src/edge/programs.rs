//! The programs of a session: started with the session's Wayland display, watched, ended, reaped.
//!
//! Each program is watched by a pidfd, so poll(2) sees its end and only that program is ever signalled or reaped.
//! It does not know sockets or sessions. Invariant: a started program is reaped before the value is gone, and not
//! before its group was signalled for the last time: until then, its number cannot become another process's.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus};

use super::{descriptors, path};
use crate::error::Error;

/// What to start, and how.
#[derive(Debug, Clone)]
pub enum Launch {
    /// A program with its arguments.
    Command(Vec<OsString>),
    /// A line for the user's own shell, as ssh passes it on.
    ShellLine(String),
    /// The user's own shell.
    Shell {
        /// As a login shell.
        login: bool,
    },
}

/// Whose terminal and process group a program gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Ours: it may read the terminal, as a program run by ssh does.
    Foreground,
    /// A process group of its own, so that its descendants are ended with it; it cannot read the terminal.
    OwnGroup,
}

/// What a program finds in its environment.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Set these.
    pub set: Vec<(OsString, OsString)>,
    /// Unset these.
    pub unset: Vec<OsString>,
}

/// A running program.
#[derive(Debug)]
pub struct Program {
    child: Child,
    pidfd: OwnedFd,
    place: Place,
    status: Option<ExitStatus>,
    /// Its number may be another process's now.
    reaped: bool,
}

impl Launch {
    /// The command to run.
    fn command(&self) -> (Command, String) {
        match self {
            Self::Command(words) => {
                let program = words.first().cloned().unwrap_or_default();
                let mut command = Command::new(&program);
                command.args(&words[1.min(words.len())..]);
                (command, program.to_string_lossy().into_owned())
            }
            Self::ShellLine(line) => {
                let mut command = Command::new(shell());
                command.arg("-c").arg(line);
                (command, shell().to_string_lossy().into_owned())
            }
            Self::Shell { login } => {
                let shell = shell();
                let mut command = Command::new(&shell);
                if *login {
                    // A leading dash in its own name is how login(1) and sshd(8) ask for a login shell.
                    let name = shell.to_string_lossy();
                    command.arg0(format!("-{}", name.rsplit('/').next().unwrap_or("sh")));
                }
                (command, shell.to_string_lossy().into_owned())
            }
        }
    }

    /// Checks that the program exists before a session is made for it, where it will be looked for.
    ///
    /// # Errors
    /// [`Error::Program`], as a start would give it.
    pub fn check(&self, environment: &Environment) -> Result<(), Error> {
        let path = environment.path();
        let find = |name: &OsStr| path::find(name, &path).map(drop);
        let (name, found) = match self {
            Self::Command(words) => {
                let name = words.first().cloned().unwrap_or_default();
                let found = find(&name);
                (name, found)
            }
            Self::ShellLine(line) => {
                let Some(word) = plain_word(line) else { return Ok(()) };
                let name = OsString::from(word);
                let found = find(&name);
                let unknown = matches!(&found, Err(error) if error.kind() == io::ErrorKind::NotFound);
                // It may be one of the shell's own words.
                (name, if unknown && shell_knows(word) { Ok(()) } else { found })
            }
            Self::Shell { .. } => (shell(), find(&shell())),
        };
        found.map_err(|source| Error::Program { program: name.to_string_lossy().into_owned(), source })
    }
}

impl Environment {
    /// Where programs with this environment are looked for, and look.
    fn path(&self) -> OsString {
        let set = self.set.iter().rev().find(|(name, _)| name == "PATH");
        set.map_or_else(path::own, |(_, path)| path.clone())
    }
}

impl Program {
    /// Starts `launch`; without `stdio`, with this process's.
    pub fn start(
        launch: &Launch,
        environment: &Environment,
        place: Place,
        stdio: Option<[OwnedFd; 3]>,
    ) -> Result<Self, Error> {
        let (mut command, program) = launch.command();
        command.envs(environment.set.iter().map(|(name, value)| (name, value)));
        for name in &environment.unset {
            command.env_remove(name);
        }
        if place == Place::OwnGroup {
            command.process_group(0);
            if io::IsTerminal::is_terminal(&io::stdin()) {
                // Reading the terminal from a background group would stop it.
                command.stdin(Stdio::null());
            }
        }
        if let Some([stdin, stdout, stderr]) = stdio {
            command.stdin(stdin).stdout(stdout).stderr(stderr);
        }
        let child = descriptors::with_limit_found(|| command.spawn());
        let child = child.map_err(|source| Error::Program { program, source })?;
        Self::watch(child, place)
    }

    /// Watches a child that the caller started.
    pub fn watch(mut child: Child, place: Place) -> Result<Self, Error> {
        match rustix::process::pidfd_open(pid(&child), PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Self { child, pidfd, place, status: None, reaped: false }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(Error::System { doing: "watching a program", source: error.into() })
            }
        }
    }

    /// Its exit status, once it has ended.
    pub fn status(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.look(WaitIdOptions::NOHANG);
        }
        self.status
    }

    /// Waits for its end as these options say, and leaves it to be reaped.
    fn look(&self, options: WaitIdOptions) -> Option<ExitStatus> {
        let options = options | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        match rustix::process::waitid(WaitId::Pid(pid(&self.child)), options) {
            Ok(status) => Some(exit_status(&status?)),
            Err(Errno::INTR) => None,
            // There is nothing to wait for any more; it cannot be, as nothing else reaps it.
            Err(_) => Some(ExitStatus::from_raw(0)),
        }
    }

    /// Ends it: asks, waits up to `patience`, then kills. Descendants in its own group are ended too.
    pub fn end(&mut self, patience: Duration) {
        if self.reaped {
            return;
        }
        if self.status().is_none() {
            self.signal(Signal::TERM);
            let mut set = [rustix::event::PollFd::new(&self.pidfd, rustix::event::PollFlags::IN)];
            let _ = crate::edge::wait::poll(&mut set, Some(patience));
        }
        if self.status().is_none() {
            self.signal(Signal::KILL);
            while self.status.is_none() {
                self.status = self.look(WaitIdOptions::empty());
            }
        }
        if self.place == Place::OwnGroup {
            // The group outlives its leader when descendants are left; without any this is ESRCH.
            let _ = rustix::process::kill_process_group(pid(&self.child), Signal::TERM);
        }
        let _ = self.child.wait();
        self.reaped = true;
    }

    /// The process group that is its own, if it has one.
    pub fn group(&self) -> Option<Pid> {
        (self.place == Place::OwnGroup).then(|| pid(&self.child))
    }

    fn signal(&self, signal: Signal) {
        let _ = match self.place {
            Place::Foreground => rustix::process::pidfd_send_signal(&self.pidfd, signal),
            Place::OwnGroup => rustix::process::kill_process_group(pid(&self.child), signal),
        };
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end(PATIENCE);
    }
}

/// Whether a Unix connection was made by this program.
pub fn is_from(socket: &impl AsFd, program: &Program) -> bool {
    rustix::net::sockopt::socket_peercred(socket).is_ok_and(|peer| peer.pid == pid(&program.child))
}

/// The status as a shell would give it: the program's own, or 128 + the signal that ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code & 0xFF).ok()).unwrap_or(255)
}

/// In the standard library's form (wait(2)).
fn exit_status(status: &WaitIdStatus) -> ExitStatus {
    let code = status.exit_status().map(|code| (code & 0xFF) << 8);
    ExitStatus::from_raw(code.or_else(|| status.terminating_signal()).unwrap_or(0))
}

/// The first word of a line, if every shell would run it as a program or a word of its own.
fn plain_word(line: &str) -> Option<&str> {
    let word = line.split(' ').next()?;
    let plain = |character: char| character.is_ascii_alphanumeric() || "/._+-".contains(character);
    (!word.is_empty() && word.chars().all(plain)).then_some(word)
}

/// Whether the user's shell says that it has such a word; one that has no `command -v` is believed.
fn shell_knows(word: &str) -> bool {
    let shell = shell();
    let name = Path::new(&shell).file_name().and_then(OsStr::to_str).unwrap_or_default();
    if !["sh", "ash", "bash", "dash", "fish", "ksh", "mksh", "zsh"].contains(&name) {
        return true;
    }
    let mut command = Command::new(&shell);
    command.arg("-c").arg(format!("command -v {word}"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map_or(true, |status| status.success())
}

/// The user's shell.
fn shell() -> OsString {
    std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into())
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// How long a program may take to end after SIGTERM: a browser saves its session in less.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// Starts a command whose stdin and stdout are the other end of the socket.
///
/// # Errors
/// There is no such command, or the system refuses.
pub fn start_on_socket(words: &[OsString]) -> Result<(Program, OwnedFd), Error> {
    let fail = |source| Error::System { doing: "making a socket", source };
    let (ours, theirs) = UnixStream::pair().map_err(fail)?;
    let again = theirs.try_clone().map_err(fail)?;
    let none = || Error::Program { program: String::new(), source: io::ErrorKind::InvalidInput.into() };
    let (program, rest) = words.split_first().ok_or_else(none)?;
    let mut command = Command::new(program);
    command.args(rest).stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(again));
    let name = program.to_string_lossy().into_owned();
    let child = command.spawn().map_err(|source| Error::Program { program: name, source })?;
    Ok((Program::watch(child, Place::Foreground)?, ours.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::socket::RuntimeDir;

    fn wait(program: &mut Program) -> ExitStatus {
        let mut set = [rustix::event::PollFd::new(&program.pidfd, rustix::event::PollFlags::IN)];
        crate::edge::wait::poll(&mut set, Some(Duration::from_secs(30))).expect("poll");
        program.status().expect("ended")
    }

    fn sh(line: &str, place: Place) -> Program {
        let launch = Launch::Command(vec!["/bin/sh".into(), "-c".into(), line.into()]);
        let environment =
            Environment { set: vec![("WAYLAND_DISPLAY".into(), "w".into())], unset: vec!["DISPLAY".into()] };
        Program::start(&launch, &environment, place, None).expect("sh")
    }

    #[test]
    fn the_status_is_passed_on() {
        assert_eq!(exit_code(wait(&mut sh("exit 7", Place::OwnGroup))), 7);
        assert_eq!(exit_code(wait(&mut sh("kill -9 $$", Place::OwnGroup))), 137);
    }

    #[test]
    fn the_environment_is_as_asked() {
        let mut program = sh("test \"$WAYLAND_DISPLAY\" = w && test -z \"$DISPLAY\"", Place::Foreground);
        assert_eq!(exit_code(wait(&mut program)), 0);
    }

    #[test]
    fn a_missing_program_is_127_and_a_directory_126() {
        let start = |name: &str| {
            Program::start(
                &Launch::Command(vec![name.into()]),
                &Environment::default(),
                Place::OwnGroup,
                None,
            )
            .expect_err("no such program")
            .code()
        };
        assert_eq!(start("wayferry-no-such-program"), 127);
        assert_eq!(start("/"), 126);
    }

    #[test]
    fn a_program_that_has_ended_keeps_its_number_until_its_group_was_signalled() {
        let mut program = sh("exit 7", Place::OwnGroup);
        let number = pid(&program.child);
        wait(&mut program);
        assert_eq!(
            rustix::process::test_kill_process(number),
            Ok(()),
            "it was reaped before its group was ended"
        );
        program.end(PATIENCE);
        assert_eq!(rustix::process::test_kill_process(number), Err(Errno::SRCH));
        assert_eq!(program.status().map(exit_code), Some(7));
        // Now that the number may be another's, nothing is signalled.
        program.end(PATIENCE);
    }

    #[test]
    fn what_cannot_be_run_is_known_before_it_is_started() {
        let code =
            |launch: Launch| launch.check(&Environment::default()).map_or_else(|error| error.code(), |()| 0);
        let command = |name: &str| code(Launch::Command(vec![name.into()]));
        assert_eq!([command("sh"), command("/bin/sh")], [0, 0]);
        assert_eq!([command("wayferry-no-such-program"), command("/no/such")], [127, 127]);
        assert_eq!([command("/"), command("/etc/passwd")], [126, 126]);
        let line = |line: &str| code(Launch::ShellLine(line.into()));
        for good in ["sh -c true", "exec sh", "cd / && sh", "A=b sh", "'sh'", "(sh)", ""] {
            assert_eq!(line(good), 0, "{good}");
        }
        assert_eq!(line("wayferry-no-such-program -x | cat"), 127);
    }

    #[test]
    fn regression_a_program_that_only_the_session_has_is_not_found() {
        let dir = RuntimeDir::private().expect("a directory");
        std::os::unix::fs::symlink("/bin/sh", dir.path().join("wayferry-own")).expect("a link");
        let path = std::env::join_paths([dir.path(), Path::new("/usr/bin")]).expect("plain names");
        let environment = Environment { set: vec![("PATH".into(), path)], unset: vec![] };
        for launch in
            [Launch::Command(vec!["wayferry-own".into()]), Launch::ShellLine("wayferry-own -c exit".into())]
        {
            assert!(launch.check(&environment).is_ok(), "{launch:?}");
            assert!(launch.check(&Environment::default()).is_err(), "{launch:?}");
        }
    }

    #[test]
    fn descendants_end_with_the_program() {
        // The descendant holds the write end of its stdout; end of file here proves that it is gone.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 1000 & echo started; wait"]).process_group(0).stdout(Stdio::piped());
        let mut child = command.spawn().expect("sh");
        let mut stdout = child.stdout.take().expect("piped");
        let mut line = [0; 8];
        io::Read::read_exact(&mut stdout, &mut line).expect("started");
        drop(Program::watch(child, Place::OwnGroup).expect("watch"));
        assert_eq!(io::Read::read(&mut stdout, &mut line).expect("end of file"), 0);
    }
}
