//! What the tests of the `wayferry` program share: a place to run it in, and processes that are waited for.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use wayferry_net::Ticket;
use wayferry_stage::{Config, Image, Link, LinkConfig, Stage};

/// A machine of its own: a runtime directory, gone at the end.
pub(crate) struct Site {
    runtime: PathBuf,
}

/// A stage with a socket.
pub(crate) struct OnStage {
    pub(crate) stage: Stage,
    socket: PathBuf,
    // Last: the socket is in it.
    _site: Site,
}

/// A host and an attached display around a program that waits for its input to end and then returns 7.
pub(crate) struct Session {
    pub(crate) host: Process,
    pub(crate) attach: Process,
    /// Where programs connect.
    pub(crate) socket: PathBuf,
    _link: Option<Link>,
}

/// A running `wayferry`; killed when dropped.
pub(crate) struct Process {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    stderr: Option<JoinHandle<String>>,
    /// What it said on stderr, once it has ended.
    said: String,
    /// The file to which it writes what happens.
    events: PathBuf,
}

/// A `wayferry` that only prints.
pub(crate) struct Run(Command);

/// A running stage that listens.
pub(crate) fn stage(config: &Config) -> OnStage {
    let site = Site::new();
    let socket = site.runtime.join("stage");
    let stage = Stage::start(Config { socket: Some(socket.clone()), ..config.clone() }).expect("a stage");
    OnStage { stage, socket, _site: site }
}

/// A picture in which no pixel is like its neighbour.
pub(crate) fn picture(width: u32, height: u32) -> Image {
    let mut image = Image::new(width, height, 0);
    for y in 0..height {
        for x in 0..width {
            image.set(x, y, 0xff00_0000 | x.wrapping_mul(0x01_03_07) ^ y.wrapping_mul(0x02_0b_01));
        }
    }
    image
}

/// No socket, no lock, no file in the runtime directory.
pub(crate) fn nothing_left(site: &Site) {
    let left: Vec<_> = std::fs::read_dir(&site.runtime).expect("the directory").flatten().collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

impl Site {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let runtime = std::env::temp_dir().join(format!("wft-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&runtime).expect("a directory");
        Self { runtime }
    }

    /// `wayferry host` on a free port, with own options and then the program.
    pub(crate) fn host(&self, options: &[&str], program: &[&str]) -> Process {
        self.host_with("LC_ALL", "C", options, program)
    }

    /// The same with another runtime directory.
    pub(crate) fn host_in(&self, runtime: &str, options: &[&str], program: &[&str]) -> Process {
        self.host_with("XDG_RUNTIME_DIR", runtime, options, program)
    }

    /// The same with one variable of the environment set.
    pub(crate) fn host_with(&self, name: &str, value: &str, options: &[&str], program: &[&str]) -> Process {
        let mut command = wayferry(["host", "--listen", "127.0.0.1:0"]);
        command.args(options).args(program).env("XDG_RUNTIME_DIR", &self.runtime);
        command.env("TMPDIR", &self.runtime).env(name, value);
        Process::start(&command)
    }

    /// The runtime directory.
    pub(crate) fn path(&self) -> &Path {
        &self.runtime
    }

    /// `wayferry attach` on a stage.
    pub(crate) fn attach(&self, stage: &OnStage, options: &[&str], ticket: &str) -> Process {
        self.attach_to(&stage.socket, options, ticket)
    }

    /// `wayferry attach` on the compositor behind a socket.
    pub(crate) fn attach_to(&self, socket: &Path, options: &[&str], ticket: &str) -> Process {
        let mut command = wayferry(["attach"]);
        // A ticket's windows have its address before their titles.
        let bare = (!options.contains(&"--title-prefix")).then_some("--title-prefix=");
        command.args(bare).args(options).arg(ticket).env("XDG_RUNTIME_DIR", &self.runtime);
        command.env("WAYLAND_DISPLAY", socket).env("HOME", &self.runtime);
        Process::start(&command)
    }

    /// A whole session; returns when the program runs.
    pub(crate) fn session(&self, stage: &OnStage, options: &[&str]) -> Session {
        let (mut host, ticket) = self.waiting_host(options);
        let attach = self.attach(stage, &[], &ticket);
        assert_eq!(host.next_line(), "started");
        Session { host, attach, socket: self.runtime.join("w"), _link: None }
    }

    /// The same over an emulated link.
    pub(crate) fn session_over(&self, stage: &OnStage, link: LinkConfig) -> Session {
        let (mut host, ticket) = self.waiting_host(&[]);
        let address = ticket.parse::<Ticket>().expect("a ticket").addresses[0];
        let link = Link::start(link, address).expect("a link");
        let attach = self.attach(stage, &["--via", &link.local_addr().to_string()], &ticket);
        assert_eq!(host.next_line(), "started");
        Session { host, attach, socket: self.runtime.join("w"), _link: Some(link) }
    }

    fn waiting_host(&self, options: &[&str]) -> (Process, String) {
        let options: Vec<&str> = options.iter().copied().chain(["--display", "w", "--"]).collect();
        let mut host = self.host(&options, &["sh", "-c", "echo started; read end; exit 7"]);
        let ticket = host.first_line();
        (host, ticket)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.runtime);
    }
}

impl Session {
    /// Lets the program end by itself.
    pub(crate) fn end_program(&mut self) {
        drop(self.host.child.stdin.take());
    }
}

impl Process {
    fn start(command: &Command) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let events = std::env::temp_dir().join(format!("wft-events-{}-{number}", std::process::id()));
        let mut command = with_events(command, &events);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("wayferry");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut stderr = child.stderr.take().expect("piped");
        // Read all the time, so that the program never waits for somebody to read its messages.
        let stderr = std::thread::spawn(move || {
            let mut said = Vec::new();
            let _ = stderr.read_to_end(&mut said);
            String::from_utf8_lossy(&said).into_owned()
        });
        Self { child, stdout, stderr: Some(stderr), said: String::new(), events }
    }

    /// The ticket.
    pub(crate) fn first_line(&mut self) -> String {
        let line = self.next_line();
        assert!(line.starts_with("wf1:"), "`{line}` is no ticket: {}", self.stderr_if_ended());
        line
    }

    /// The next line on stdout.
    pub(crate) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Everything else on stdout.
    pub(crate) fn stdout(&mut self) -> String {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).expect("text");
        text
    }

    /// The exit code; the test fails when the end does not come.
    pub(crate) fn code(&mut self) -> i32 {
        let status = wait(&mut self.child).unwrap_or_else(|| {
            let _ = self.child.kill();
            panic!("wayferry does not end: {}", self.stderr())
        });
        status.code().unwrap_or_else(|| 1000 + status.signal().unwrap_or(0))
    }

    /// What it said, once it has ended.
    pub(crate) fn stderr(&mut self) -> String {
        if let Some(reader) = self.stderr.take() {
            self.said = reader.join().expect("a reader");
        }
        self.said.clone()
    }

    /// Waits until this has happened (docs/events.md).
    pub(crate) fn happens(&self, event: &str) {
        let start = Instant::now();
        while !self.events().iter().any(|it| it["event"] == event) {
            assert!(start.elapsed() < PATIENCE, "`{event}` does not happen: {:?}", self.events());
            std::thread::yield_now();
        }
    }

    /// What has happened so far.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.events).unwrap_or_default();
        // The last line may still be on its way.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// It must end with this code, for a reason that names `what`, and tell so in two lines.
    pub(crate) fn fails(&mut self, code: i32, what: &str) {
        let found = self.code();
        let said = self.stderr();
        assert_eq!(found, code, "{said}");
        let events = self.events();
        let error = events.iter().find(|event| event["event"] == "error").expect("it is told");
        let [text, hint] = ["text", "hint"].map(|field| error[field].as_str().unwrap_or_default());
        assert!(error["code"] == code && text.contains(what), "`{what}` is missing: {error}");
        assert!(said.ends_with(&format!("error: {text}\nhint: {hint}\n")), "{said}");
    }

    /// Its number.
    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// SIGTERM.
    pub(crate) fn terminate(&self) {
        rustix::process::kill_process(self.pid(), rustix::process::Signal::TERM).expect("a living process");
    }

    fn stderr_if_ended(&mut self) -> String {
        match self.child.try_wait() {
            Ok(Some(_)) => self.stderr(),
            _ => "it still runs".into(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.events);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Run {
    pub(crate) fn new<const N: usize>(words: [&str; N]) -> Self {
        Self(wayferry(words))
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    /// What it prints; it must succeed.
    pub(crate) fn output(mut self) -> String {
        let output = self.0.output().expect("wayferry");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Its exit code and what it says; it must fail.
    pub(crate) fn failure(mut self) -> (Option<i32>, String) {
        let output = self.0.output().expect("wayferry");
        assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// The same command, which writes its events to this file.
fn with_events(command: &Command, events: &Path) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "exec \"$@\" 9>\"$0\""]).arg(events).arg(command.get_program());
    shell.args(["--events", "9"]).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

fn wayferry<const N: usize>(words: [&str; N]) -> Command {
    let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_wayferry")));
    command.args(words).env_remove("WAYLAND_DISPLAY").env_remove("WAYLAND_SOCKET").env_remove("DISPLAY");
    command
}

/// Waits for the end, but not for ever: a process that hangs must fail its test.
fn wait(child: &mut Child) -> Option<ExitStatus> {
    let pidfd = rustix::process::pidfd_open(
        rustix::process::Pid::from_child(child),
        rustix::process::PidfdFlags::empty(),
    );
    if let Ok(pidfd) = pidfd {
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let mut set = [rustix::event::PollFd::new(&pidfd, rustix::event::PollFlags::IN)];
            let _ = rustix::event::poll(&mut set, None);
            let _ = tell.send(());
        });
        told.recv_timeout(PATIENCE).ok()?;
    }
    child.wait().ok()
}

/// Far more than anything takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
