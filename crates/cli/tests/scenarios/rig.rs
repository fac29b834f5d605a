//! A whole session between a stage and scripted programs: `wayferry host` and `wayferry attach` as processes, real
//! QUIC, and the emulated link in between.
//!
//! Invariant: when a [`Far`] is dropped, its processes are gone and so is its directory.

use std::fs::{self, DirBuilder, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use wayferry_net::Ticket;
use wayferry_stage::{Client, Config, Image, Link, LinkConfig, Loss, Pane, Reorder, Stage, SurfaceId, Watch};

/// A display and a host that are far from each other.
pub(crate) struct Far {
    pub(crate) stage: Stage,
    pub(crate) link: Link,
    host: Side,
    attach: Side,
    /// The session's program ends when this does.
    leash: Option<ChildStdin>,
    // Last, so that everything that uses it is gone.
    directory: Directory,
}

impl Far {
    /// The two sides meet over a link that is far and rough.
    pub(crate) fn start(seed: u64) -> Far {
        Far::start_over(rough(seed))
    }

    /// Tests know pictures by their checksums, so every one is exact.
    pub(crate) fn start_over(config: LinkConfig) -> Far {
        Far::start_with(config, &["--lossless"])
    }

    /// What does not fit the link is lossy at first.
    pub(crate) fn start_lossy(config: LinkConfig) -> Far {
        Far::start_with(config, &[])
    }

    fn start_with(config: LinkConfig, options: &[&str]) -> Far {
        let directory = Directory::new();
        let (near, away) = (directory.make("display"), directory.make("host"));
        let socket = Some(near.join(STAGE));
        let stage = Stage::start(Config { socket, ..Config::default() }).expect("a stage");
        let words =
            [&["--display", PROGRAMS][..], options, &["host", "--listen", "127.0.0.1:0", "--", "cat"]];
        let mut host = Side::start("host", &away, &words.concat());
        let leash = host.child.stdin.take();
        let ticket = host.first_line();
        let address = ticket.parse::<Ticket>().expect("a ticket").addresses[0];
        let link = Link::start(config, address).expect("a link");
        let via = link.local_addr().to_string();
        let file = near.join("ticket").display().to_string();
        fs::write(&file, ticket).expect("a file for the ticket");
        let words = ["attach", "--title-prefix=", "--ticket-file", &file, "--via", &via, "--timeout", "30"];
        let attach = Side::start("attach", &near, &words);
        Far { stage, link, host, attach, leash, directory }
    }

    /// A program of the session.
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.directory.0.join("host").join(PROGRAMS)).expect("a program of the session")
    }

    /// A program of the session with a window that is shown and has the focus.
    pub(crate) fn window(&self, title: &str) -> RemoteWindow {
        let mut client = self.client();
        let mut watch = self.stage.watch();
        let pane = client.window(title, WIDTH, HEIGHT).expect("a window");
        client.draw(pane, &picture(0)).expect("its picture");
        let shown = watch.commit(|commit| commit.attached && commit.title.as_deref() == Some(title));
        RemoteWindow { client, pane, surface: shown.expect("the window on the stage").surface }
    }

    /// What `wayferry info` says of the host.
    pub(crate) fn info(&self) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wayferry"));
        command.args(["info", "--json"]).env("XDG_RUNTIME_DIR", self.directory.0.join("host"));
        String::from_utf8(command.output().expect("wayferry").stdout).expect("text")
    }

    /// The session's program ends, so both sides must, without a word.
    pub(crate) fn end(self) {
        self.end_saying("");
    }

    /// The same, after the user of the display was told this.
    pub(crate) fn end_saying(mut self, told: &str) {
        self.leash = None;
        for (side, told) in [(&mut self.host, ""), (&mut self.attach, told)] {
            let status = side.ended();
            assert_eq!((status.code(), side.messages().as_str()), (Some(0), told), "{}", side.name);
        }
        self.nothing_stays();
    }

    fn nothing_stays(&self) {
        let left: Vec<_> =
            fs::read_dir(self.directory.0.join("host")).expect("it is there").flatten().collect();
        assert!(left.iter().all(|entry| entry.file_name() == OUTPUT), "left behind: {left:?}");
    }
}

/// A program with a window.
pub(crate) struct RemoteWindow {
    pub(crate) client: Client,
    pub(crate) pane: Pane,
    /// The window on the stage.
    pub(crate) surface: SurfaceId,
}

/// A process of Wayferry.
struct Side {
    name: &'static str,
    child: Child,
    output: PathBuf,
}

impl Side {
    fn start(name: &'static str, runtime: &Path, words: &[&str]) -> Side {
        let output = runtime.join(OUTPUT);
        let mut command = Command::new(env!("CARGO_BIN_EXE_wayferry"));
        command.args(words).env("XDG_RUNTIME_DIR", runtime).env("WAYLAND_DISPLAY", STAGE);
        command.env_remove("WAYLAND_SOCKET").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(&output).expect("a file for the messages"));
        Side { name, child: command.spawn().expect("wayferry"), output }
    }

    fn first_line(&mut self) -> String {
        let stdout = self.child.stdout.take().expect("piped");
        let line = BufReader::new(stdout).lines().next();
        line.and_then(Result::ok).unwrap_or_else(|| panic!("no ticket: {}", self.messages()))
    }

    fn messages(&self) -> String {
        fs::read_to_string(&self.output).expect("the messages")
    }

    /// Waits for its end.
    fn ended(&mut self) -> ExitStatus {
        let pid = Pid::from_child(&self.child);
        let handle = pidfd_open(pid, PidfdFlags::empty()).expect("a process that was not waited for");
        let timeout = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout)).expect("poll");
        assert!(ready > 0, "{} does not end: {}", self.name, self.messages());
        self.child.wait().expect("its status")
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // Its own program ends with the leash.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory of one test's own.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // Short, because a socket's path may have 107 bytes.
        let path = std::env::temp_dir().join(format!("wf-far-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory for the test");
        Directory(path)
    }

    fn make(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        DirBuilder::new().mode(0o700).create(&path).expect("a private directory");
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// 200 ms there and back, 2 % lost, and every fiftieth packet late by more than those after it.
pub(crate) fn rough(seed: u64) -> LinkConfig {
    LinkConfig {
        one_way_delay: Duration::from_millis(100),
        loss: Loss::Independent(0.02),
        reorder: Some(Reorder { probability: 0.02, by: Duration::from_millis(20) }),
        seed,
        ..LinkConfig::default()
    }
}

/// A picture that looks like no other and that compression can do nothing about.
pub(crate) fn noise(width: u32, height: u32, seed: u64) -> Image {
    let mut image = Image::new(width, height, 0);
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for y in 0..height {
        for pixel in image.row_mut(y) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *pixel = 0xff00_0000 | (state >> 40) as u32;
        }
    }
    image
}

/// A [`noise`] of the size of [`Far::window`]: more than one chunk of an update.
pub(crate) fn picture(seed: u64) -> Image {
    noise(WIDTH, HEIGHT, seed)
}

/// Reads the events of a stage.
pub(crate) fn from_now(stage: &Stage) -> Watch {
    Watch::new(stage.events_from_now())
}

pub(crate) const WIDTH: u32 = 160;
pub(crate) const HEIGHT: u32 = 120;
/// Only a broken test waits this long; the longest silence that ends a session is a minute.
const PATIENCE: Duration = Duration::from_secs(120);
const STAGE: &str = "wayland-stage";
const PROGRAMS: &str = "programs";
const OUTPUT: &str = "messages";
