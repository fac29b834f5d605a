//! A session on this machine, before a compositor that can be looked at.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use wayferry_stage::{Config, Image, Role, Stage};

use super::client::Client;

/// `wayferry host` and `wayferry attach`.
pub(crate) struct Ferry {
    stage: Stage,
    host: Child,
    attach: Child,
    directory: PathBuf,
    display: String,
}

impl Ferry {
    /// Whose host reads GPU buffers like that (`--gpu`).
    pub(crate) fn start(gpu: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("wf-gpu-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::DirBuilder::new().mode(0o700).create(&directory).expect("a directory");
        let socket = Some(directory.join("stage"));
        let stage = Stage::start(Config { socket, ..Config::default() }).expect("a compositor");
        let file = directory.join("display");
        let script = format!("echo $WAYLAND_DISPLAY > {}; exec sleep 1000000", file.display());
        let host =
            ["--gpu", gpu, "--audio", "off", "host", "--listen", "127.0.0.1:0", "--", "sh", "-c", &script];
        let mut host = wayferry(&directory).args(host).stdout(Stdio::piped()).spawn().expect("a host");
        let mut ticket = String::new();
        let output = host.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut ticket).expect("a ticket");
        let attach = wayferry(&directory)
            .args(["attach", "--title-prefix=", ticket.trim()])
            .env("WAYLAND_DISPLAY", "stage")
            .spawn();
        let display = until("the session's program", || {
            let name = fs::read_to_string(&file).ok()?;
            name.ends_with('\n').then(|| name.trim().to_owned())
        });
        let ferry = Self { stage, host, attach: attach.expect("a display"), directory, display };
        // The first use of a driver takes longer here than a session lets its first program wait.
        let started = Instant::now();
        until("a reader that is ready", || Client::new(&ferry.socket(), "first").has_dmabuf().then_some(()));
        println!("the reader was ready after {:.1} s", started.elapsed().as_secs_f64());
        ferry
    }

    /// What programs connect to.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join(&self.display)
    }

    /// Waits until the compositor shows a window like that.
    pub(crate) fn shows(&self, title: &str, picture: &Image) {
        self.shows_what(title, |shown| shown == picture);
    }

    /// Waits until the compositor shows a window in which all is as it should.
    pub(crate) fn shows_what(&self, title: &str, is_right: impl Fn(&Image) -> bool) {
        until("the picture", || {
            let window = self.stage.window(title)?;
            self.stage.screenshot(window.surface).filter(|shown| is_right(shown)).map(drop)
        });
    }

    /// Runs a program of the session until its window has shown so many pictures; gives what it said to the session and
    /// heard from it, and the last picture.
    pub(crate) fn run_program(&self, program: &[&str], count: usize) -> (String, Image) {
        let mut pictures = self.stage.watch().patience(PATIENCE);
        let mut command = Command::new(program[0]);
        command
            .args(&program[1..])
            .env("GSK_RENDERER", "ngl")
            .env("XDG_RUNTIME_DIR", &self.directory)
            .env("WAYLAND_DISPLAY", &self.display);
        let log = self.directory.join("log");
        let file = fs::File::create(&log).expect("a file");
        let child = command.env("WAYLAND_DEBUG", "1").stdin(Stdio::null()).stderr(file).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{program:?}: {error}"));
        let mut picture = None;
        for _ in 0..count {
            let shown = pictures.commit(|commit| commit.attached && commit.role == Some(Role::Toplevel));
            let Ok(commit) = shown else {
                let said = fs::read_to_string(&log).unwrap_or_default();
                panic!("{program:?} shows nothing: {said}");
            };
            picture = self.stage.screenshot(commit.surface);
        }
        let _ = child.kill();
        let _ = child.wait();
        (fs::read_to_string(&log).expect("what it said"), picture.expect("a picture"))
    }

    /// The process that reads GPU buffers.
    pub(crate) fn reader(&self) -> u32 {
        let of_host = format!("PPid:\t{}\n", self.host.id());
        until("a reader", || {
            let processes = fs::read_dir("/proc").expect("/proc").flatten();
            let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
            numbers.find(|number| {
                let read =
                    |file: &str| fs::read_to_string(format!("/proc/{number}/{file}")).unwrap_or_default();
                read("status").contains(&of_host) && read("cmdline").contains("gpu-reader")
            })
        })
    }

    pub(crate) fn kill_reader(&self, reader: u32) {
        let pid = Pid::from_raw(reader as i32).expect("a number");
        kill_process(pid, Signal::KILL).expect("of our own");
    }

    /// Descriptors that the host has open.
    pub(crate) fn open_by_host(&self) -> usize {
        open(self.host.id())
    }

    /// The same of the reader.
    pub(crate) fn open_by_reader(&self) -> usize {
        open(self.reader())
    }

    /// Bytes of memory that the host and its reader have.
    pub(crate) fn resident(&self) -> (usize, usize) {
        let of = |process: u32| {
            let pages = fs::read_to_string(format!("/proc/{process}/statm")).expect("it runs");
            let pages: usize = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("pages");
            pages * rustix::param::page_size()
        };
        (of(self.host.id()), of(self.reader()))
    }

    /// What does not change any more.
    pub(crate) fn at_rest<T: PartialEq>(&self, look: impl Fn(&Self) -> T) -> T {
        let (mut last, mut since) = (look(self), Instant::now());
        until("rest", || {
            let now = look(self);
            if now != last {
                (last, since) = (now, Instant::now());
            }
            (since.elapsed() > Duration::from_secs(2)).then_some(())
        });
        last
    }
}

impl Drop for Ferry {
    fn drop(&mut self) {
        for child in [&mut self.attach, &mut self.host] {
            let pid = Pid::from_child(child);
            let _ = kill_process(pid, Signal::TERM);
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn wayferry(directory: &Path) -> Command {
    let binary = std::env::var_os("WAYFERRY").expect("where wayferry is");
    let mut command = Command::new(binary);
    command.env("XDG_RUNTIME_DIR", directory).stdin(Stdio::null());
    command
}

fn open(process: u32) -> usize {
    fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count)
}

/// Looks until there is something: what is looked at, files and processes of others, tells no test of a change.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The machine is emulated.
const PATIENCE: Duration = Duration::from_secs(120);
