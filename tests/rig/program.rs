//! A started program: its output in files, its end awaited up to a deadline, its descendants ended with it.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::home::{Home, MARK, processes, unprivileged};
use super::until;

/// A program that is about to be started.
pub(crate) struct Launch {
    words: Vec<String>,
    environment: Vec<(String, String)>,
    descriptors: Vec<OwnedFd>,
    stdin: Option<PathBuf>,
    output: PathBuf,
    privileged: bool,
    events: bool,
}

impl Launch {
    pub(super) fn new(home: &Home, program: &str) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = program.rsplit('/').next().unwrap_or(program);
        let own = [
            ("HOME", home.path().display().to_string()),
            ("XDG_RUNTIME_DIR", home.runtime().display().to_string()),
            (MARK, home.path().display().to_string()),
            // Where sessions have their sockets.
            ("TMPDIR", home.path().display().to_string()),
            ("PATH", SYSTEM_PATH.to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("SHELL", "/bin/sh".to_owned()),
            // Toolkits: no settings service, no accessibility bus, no GPU.
            ("GSETTINGS_BACKEND", "memory".to_owned()),
            ("GTK_A11Y", "none".to_owned()),
            ("NO_AT_BRIDGE", "1".to_owned()),
            ("GDK_BACKEND", "wayland".to_owned()),
            ("GSK_RENDERER", "cairo".to_owned()),
            ("QT_QPA_PLATFORM", "wayland".to_owned()),
        ];
        Self {
            words: vec![program.to_owned()],
            environment: own.map(|(key, value)| (key.to_owned(), value)).to_vec(),
            descriptors: Vec::new(),
            stdin: None,
            output: home.file(&format!("{name}-{number}")),
            privileged: false,
            events: false,
        }
    }

    pub(crate) fn arg(mut self, word: impl Into<String>) -> Self {
        self.words.push(word.into());
        self
    }

    pub(crate) fn args<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.words.extend(words.into_iter().map(str::to_owned));
        self
    }

    /// Starts these words before the program, as in `env PROGRAM`.
    pub(crate) fn under(mut self, words: &[&str]) -> Self {
        self.words.splice(0..0, words.iter().map(|&word| word.to_owned()));
        self
    }

    pub(crate) fn env(mut self, key: &str, value: impl Into<String>) -> Self {
        self.environment.push((key.to_owned(), value.into()));
        self
    }

    /// Hands over an open descriptor, whose number the program finds in this variable. At most two.
    pub(crate) fn descriptor(mut self, variable: &str, descriptor: impl Into<OwnedFd>) -> Self {
        assert!(self.descriptors.len() < 2, "the rig hands over two descriptors at most");
        let number = FIRST_DESCRIPTOR + self.descriptors.len();
        self.descriptors.push(descriptor.into());
        self.env(variable, number.to_string())
    }

    /// Reads this file instead of nothing.
    pub(crate) fn stdin(mut self, path: PathBuf) -> Self {
        self.stdin = Some(path);
        self
    }

    /// Keeps the tests' own user: for the ssh server, which must become its callers.
    pub(crate) fn privileged(mut self) -> Self {
        self.privileged = true;
        self
    }

    /// Has a wayferry write its events to a file ([`Program::events`]).
    pub(super) fn with_events(mut self) -> Self {
        self.events = true;
        self.args(["--events", "9"])
    }

    /// The words that a shell would take, in the program's environment.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    pub(crate) fn start(self) -> Program {
        let mut command = self.command();
        let [stdout, stderr, events] = ["out", "err", "events"].map(|kind| self.output.with_extension(kind));
        let open = |path: &PathBuf| File::create(path).expect("a file for the program's output");
        command.stderr(open(&stderr));
        let mut descriptors = self.descriptors.into_iter().map(Stdio::from);
        match (descriptors.next(), descriptors.next()) {
            (None, _) => {
                let stdin =
                    self.stdin.map_or(Stdio::null(), |path| File::open(path).expect("its input").into());
                command.stdin(stdin).stdout(open(&stdout));
            }
            (Some(first), second) => {
                command.stdin(first).stdout(second.unwrap_or_else(Stdio::null));
            }
        }
        let child = command.spawn().unwrap_or_else(|error| panic!("`{}`: {error}", self.words.join(" ")));
        Program { name: self.words.join(" "), child, stdout, stderr, events }
    }

    /// Starts it and waits for its end, which must be a good one; gives what it wrote on stdout.
    pub(crate) fn run(self) -> Vec<u8> {
        let mut program = self.start();
        let status = program.ended();
        assert!(status.success(), "`{}`: {status}: {}", program.name, program.stderr());
        fs::read(&program.stdout).expect("its output")
    }

    /// Starts it and waits for its end; gives what it wrote on stdout when the end was a good one.
    pub(crate) fn text(self) -> Option<Vec<u8>> {
        let mut program = self.start();
        program.ended().success().then(|| fs::read(&program.stdout).ok())?
    }

    fn command(&self) -> Command {
        let mut words = Vec::new();
        if let Some(user) = unprivileged().filter(|_| !self.privileged) {
            words.extend(["setpriv".to_owned(), format!("--reuid={user}"), format!("--regid={user}")]);
            words.extend(["--clear-groups", "--pdeathsig=KILL", "--"].map(str::to_owned));
        }
        if !self.descriptors.is_empty() {
            // A descriptor that std opened closes on exec, and clearing that flag here would hand it to every program
            // that another test starts meanwhile. So they travel as stdin and stdout, and a shell renames them.
            words.extend(["sh", "-c", RENAME, "sh"].map(str::to_owned));
        }
        if self.events {
            let events = self.output.with_extension("events").display().to_string();
            words.extend(["sh", "-c", "exec \"$@\" 9>\"$0\"", &events].map(str::to_owned));
        }
        words.extend(self.words.iter().cloned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().envs(self.environment.iter().cloned());
        command.current_dir(self.output.parent().expect("a home"));
        command
    }
}

/// See the module.
pub(crate) struct Program {
    name: String,
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
    events: PathBuf,
}

impl Program {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The file that its stdout is.
    pub(crate) fn output(&self) -> &Path {
        &self.stdout
    }

    /// What it wrote on stdout so far.
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.stdout).unwrap_or_default()).into_owned()
    }

    /// What it wrote on stderr so far.
    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.stderr).unwrap_or_default()).into_owned()
    }

    /// What has happened so far, if it is a wayferry (docs/events.md).
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = String::from_utf8_lossy(&fs::read(&self.events).unwrap_or_default()).into_owned();
        // The last line may still be on its way.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// How often this has happened so far.
    pub(crate) fn count(&self, event: &str) -> usize {
        self.events().iter().filter(|it| it["event"] == event).count()
    }

    /// Waits until this has happened.
    pub(crate) fn happens(&self, event: &str) {
        until(&format!("`{event}` of `{}`", self.name), || (self.count(event) > 0).then_some(()));
    }

    /// The error with which it ended, as `--events` tells it.
    pub(crate) fn error(&self) -> Option<Value> {
        self.events().into_iter().find(|event| event["event"] == "error")
    }

    /// The first line that it writes on stdout.
    pub(crate) fn first_line(&mut self) -> String {
        until(&format!("a line from `{}`", self.name), || {
            self.must_run();
            self.stdout().split_once('\n').map(|(line, _)| line.to_owned())
        })
    }

    /// Its exit status, if it has ended.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the status of a child")
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let name = self.name.clone();
        until(&format!("the end of `{name}`"), || self.status())
    }

    /// Fails the test if it has ended.
    pub(crate) fn must_run(&mut self) {
        if let Some(status) = self.status() {
            panic!("`{}` has ended: {status}: {}", self.name, self.stderr());
        }
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        let _ = kill_process(self.pid(), Signal::TERM);
    }

    /// Ends it, and what it started, without asking.
    pub(crate) fn kill(&mut self) {
        for pid in descendants(self.pid()) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let messages = self.stderr();
            let tail: Vec<_> = messages.lines().rev().take(TAIL).collect();
            eprintln!("--- `{}` wrote:", self.name);
            tail.iter().rev().for_each(|line| eprintln!("    {line}"));
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

/// The processes below `root`, children before theirs.
fn descendants(root: Pid) -> Vec<Pid> {
    let parents: Vec<_> = processes().into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let above = found[next];
        found.extend(parents.iter().filter(|(_, parent)| *parent == above).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

fn parent(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The program's name stands in parentheses and may hold anything; the state and the parent follow the last one.
    let (_, rest) = stat.rsplit_once(')')?;
    Pid::from_raw(rest.split_whitespace().nth(1)?.parse().ok()?)
}

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The system's programs only: what a developer has in a home directory may be out of the unprivileged user's reach.
pub(super) const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// Where handed-over descriptors begin.
const FIRST_DESCRIPTOR: usize = 3;

/// Renames the descriptors that came as stdin and stdout.
const RENAME: &str = "exec 3<&0 4<&1 0</dev/null 1>&2; exec \"$@\"";

/// Lines of a failing test's programs that are shown.
const TAIL: usize = 25;
