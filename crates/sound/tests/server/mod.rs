//! Sound servers that end with the test.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use wayferry_audio::Packet;
use wayferry_sound::Surroundings;

use super::support::until;

/// A server with one null sink, `null0`.
pub(crate) struct Server {
    dir: PathBuf,
    kind: Kind,
    child: Child,
    rate: u32,
}

#[derive(Clone, Copy)]
enum Kind {
    PulseAudio,
    PipeWire,
}

/// What the sink plays.
pub(crate) struct Recording {
    child: Child,
    path: PathBuf,
}

impl Server {
    pub(crate) fn pulseaudio() -> Self {
        Self::start(Kind::PulseAudio, 48_000)
    }

    pub(crate) fn pulseaudio_at(rate: u32) -> Self {
        Self::start(Kind::PulseAudio, rate)
    }

    pub(crate) fn pipewire() -> Self {
        Self::start(Kind::PipeWire, 48_000)
    }

    /// Where clients look for it.
    pub(crate) fn surroundings(&self) -> Surroundings {
        Surroundings { runtime: Some(self.dir.clone()), ..Surroundings::default() }
    }

    /// Begins to record the sink's monitor, and returns when it does.
    pub(crate) fn record(&self) -> Recording {
        let path = self.dir.join(format!("recording-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        let child = self
            .client("parec")
            .args(["-d", "null0.monitor", "--format=s16le", "--channels=2", "--latency-msec=20"])
            .arg(format!("--rate={}", self.rate))
            .stdout(File::create(&path).unwrap())
            .spawn()
            .unwrap();
        let recording = Recording { child, path };
        until("the monitor to be recorded", || !recording.samples().is_empty());
        recording
    }

    /// What `pactl` lists.
    pub(crate) fn list(&self, what: &str) -> String {
        let output = self.client("pactl").args(["list", what]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn pactl(&self, arguments: &[&str]) -> String {
        let output = self.client("pactl").args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The number of the only stream.
    pub(crate) fn stream(&self) -> String {
        let streams = self.pactl(&["list", "short", "sink-inputs"]);
        streams.split_whitespace().next().expect("there is one").to_owned()
    }

    /// Lets it listen on TCP, to those that have a cookie: the port, and the file with the cookie.
    pub(crate) fn listen(&self) -> (u16, PathBuf) {
        let cookie = self.dir.join("cookie");
        fs::write(&cookie, [5; 256]).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let module = "module-native-protocol-tcp";
        let with = format!("auth-cookie={}", cookie.display());
        self.pactl(&["load-module", module, &format!("port={port}"), "listen=127.0.0.1", &with]);
        (port, cookie)
    }

    /// Ends it in mid-word.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }

    /// A place where no server is.
    pub(crate) fn none() -> Self {
        let mut server = Self::pulseaudio();
        server.kill();
        server
    }

    /// Starts it anew, at the same place, after it was killed.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.kind, &self.dir, self.rate);
        self.wait();
    }

    /// To all of its processes.
    pub(crate) fn signal(&self, signal: Signal) {
        // It may have ended already.
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }

    fn start(kind: Kind, rate: u32) -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("wayferry-desk-{}-{number}", std::process::id()));
        fs::create_dir_all(dir.join("pulse")).unwrap();
        let child = spawn(&kind, &dir, rate);
        let server = Self { dir, kind, child, rate };
        server.wait();
        server
    }

    fn wait(&self) {
        until("the sound server", || UnixStream::connect(self.dir.join("pulse/native")).is_ok());
        if matches!(self.kind, Kind::PipeWire) {
            until("a sink", || {
                let sink = "module-null-sink sink_name=null0 media.class=Audio/Sink rate=48000";
                self.list("sinks").contains("null0") || {
                    let mut load = self.client("pactl");
                    let load = load.arg("load-module").args(sink.split(' ')).stdout(Stdio::null()).status();
                    load.unwrap().success() && self.list("sinks").contains("null0")
                }
            });
            // Refused until there is someone who keeps the default.
            until("a default sink", || {
                let mut choose = self.client("pactl");
                let choose = choose.args(["set-default-sink", "null0"]).stderr(Stdio::null()).status();
                choose.unwrap().success()
            });
        }
    }

    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        surround(&mut command, &self.dir);
        command.env("PULSE_SERVER", format!("unix:{}", self.dir.join("pulse/native").display()));
        command.stderr(Stdio::null());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
        self.kill();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Recording {
    pub(crate) fn samples(&self) -> Vec<u8> {
        let mut samples = Vec::new();
        File::open(&self.path).unwrap().read_to_end(&mut samples).unwrap();
        samples
    }

    /// Whether it has this, in one piece.
    pub(crate) fn has(&self, needle: &[u8]) -> bool {
        self.count(needle) > 0
    }

    pub(crate) fn count(&self, needle: &[u8]) -> usize {
        let samples = self.samples();
        let starts = (0..samples.len()).step_by(4);
        starts.filter(|at| samples[*at..].starts_with(needle)).count()
    }

    /// The packets of which it has 2 ms at least, by their sequence numbers.
    pub(crate) fn packets(&self, sent: &[Packet]) -> Vec<u32> {
        let samples = self.samples();
        let starts = sent.iter().flat_map(|packet| {
            packet.payload.chunks_exact(PIECE).map(|piece| (&piece[..4], (piece, packet.sequence)))
        });
        let starts: HashMap<&[u8], (&[u8], u32)> = starts.collect();
        let found = (0..samples.len().saturating_sub(PIECE)).step_by(4).filter_map(|at| {
            let (piece, sequence) = starts.get(&samples[at..at + 4])?;
            samples[at..].starts_with(piece).then_some(*sequence)
        });
        found.collect()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

fn spawn(kind: &Kind, dir: &Path, rate: u32) -> Child {
    let mut command = match kind {
        Kind::PulseAudio => {
            let mut command = Command::new("pulseaudio");
            let socket = dir.join("pulse/native");
            command
                .args(["-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "-L"])
                .arg(format!("module-native-protocol-unix socket={} auth-anonymous=1", socket.display()))
                .arg("-L")
                .arg(format!("module-null-sink sink_name=null0 format=s16le rate={rate}"));
            command
        }
        Kind::PipeWire => {
            let mut command = Command::new("dbus-run-session");
            command.args(["--", "sh", "-c", "pipewire & wireplumber & pipewire-pulse & wait"]);
            command
        }
    };
    surround(&mut command, dir);
    // A group of its own, so that all of it can be ended.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("scripts/setup installs it")
}

fn surround(command: &mut Command, dir: &Path) {
    for name in ["DBUS_SESSION_BUS_ADDRESS", "PULSE_COOKIE", "PULSE_SERVER", "PIPEWIRE_RUNTIME_DIR"] {
        command.env_remove(name);
    }
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"] {
        command.env(name, dir);
    }
}

/// Bytes of 2 ms.
const PIECE: usize = 96 * 4;

static COUNT: AtomicU32 = AtomicU32::new(0);
