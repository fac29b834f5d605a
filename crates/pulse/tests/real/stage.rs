//! A socket and a clock around a [`Server`], for one test: what programs play is recorded.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};
use wayferry_audio::{from_i16, to_i16};
use wayferry_proto::Time;
use wayferry_pulse::{ClientId, Server};

/// See the module.
pub(crate) struct Stage {
    directory: PathBuf,
    recorded: Arc<Mutex<Vec<i16>>>,
    late: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("wayferry-pulse-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).unwrap();
        let listener = UnixListener::bind(directory.join("socket")).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (recorded, stop) = (Arc::<Mutex<Vec<i16>>>::default(), Arc::<AtomicBool>::default());
        let late = Arc::<AtomicU32>::default();
        let turns = Turns { recorded: recorded.clone(), late: late.clone(), ..Turns::new(listener) };
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || turns.run(&stopped));
        Self { directory, recorded, late, stop, thread: Some(thread) }
    }

    /// A file in the test's directory.
    pub(crate) fn file(&self, name: &str, contents: &[u8]) -> PathBuf {
        let path = self.directory.join(name);
        std::fs::write(&path, contents).unwrap();
        path
    }

    /// Runs a program to its end, which must be a good one.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let (output, program) = (self.output(program, arguments), program);
        let said = [&output.stdout[..], &output.stderr].concat();
        assert!(
            output.status.success(),
            "`{program}`: {}: {}",
            output.status,
            String::from_utf8_lossy(&said)
        );
        output
    }

    /// Runs a program until what was played is as it should be, and ends it.
    pub(crate) fn run_until(&self, program: &str, arguments: &[&str], is_enough: impl Fn(&[i16]) -> bool) {
        let mut child = self.command(program, arguments).spawn().unwrap();
        while !is_enough(&self.recorded()) {
            assert_eq!(child.try_wait().unwrap(), None, "`{program}` ended too early, or took 60 s");
            std::thread::sleep(Duration::from_millis(20));
        }
        // The program gets it from `timeout`.
        rustix::process::kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        child.wait().unwrap();
    }

    fn output(&self, program: &str, arguments: &[&str]) -> Output {
        self.command(program, arguments).output().unwrap()
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(["60", program])
            .args(arguments)
            .env("PULSE_SERVER", format!("unix:{}", self.directory.join("socket").display()))
            .env("HOME", &self.directory)
            .env("XDG_CONFIG_HOME", &self.directory)
            .env("XDG_RUNTIME_DIR", &self.directory)
            .env("SDL_AUDIODRIVER", "pulseaudio")
            .env("SDL_VIDEODRIVER", "dummy")
            .env("ALSA_CONFIG_PATH", self.directory.join("asound.conf"))
            .env("GST_REGISTRY", self.directory.join("gst"))
            .env("LC_ALL", "C");
        command
    }

    /// What was played so far.
    pub(crate) fn recorded(&self) -> Vec<i16> {
        self.recorded.lock().unwrap().clone()
    }

    /// How often a program was told that it is late: the machine may be too busy to run it in time.
    pub(crate) fn late(&self) -> usize {
        self.late.load(Ordering::Relaxed) as usize
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

struct Turns {
    listener: UnixListener,
    server: Server,
    clients: Vec<(ClientId, UnixStream)>,
    recorded: Arc<Mutex<Vec<i16>>>,
    late: Arc<AtomicU32>,
    start: Instant,
    next: Duration,
    /// Samples of the microphone so far.
    spoken: usize,
}

/// The microphone's sample with this number.
pub(crate) fn spoken(at: usize) -> i16 {
    (at as u32).wrapping_mul(2_654_435_761).rotate_left(16) as i16
}

fn with_microphone() -> Server {
    let mut server = Server::new();
    server.set_microphone(true);
    server
}

impl Turns {
    fn new(listener: UnixListener) -> Self {
        Self {
            listener,
            server: with_microphone(),
            clients: Vec::new(),
            recorded: Arc::default(),
            late: Arc::default(),
            start: Instant::now(),
            next: Duration::ZERO,
            spoken: 0,
        }
    }

    fn run(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            self.wait();
            if let Ok((stream, _)) = self.listener.accept() {
                stream.set_nonblocking(true).unwrap();
                let id = self.server.connect().unwrap();
                self.clients.push((id, stream));
            }
            let now = self.start.elapsed();
            let mut clients = std::mem::take(&mut self.clients);
            clients.retain_mut(|(id, stream)| serve(&mut self.server, Time::new(now), *id, stream));
            self.clients = clients;
            self.tick(now);
        }
    }

    /// Until something comes, or the next turn of the mixer is due.
    fn wait(&self) {
        let left = if self.is_busy() {
            self.next.saturating_sub(self.start.elapsed())
        } else {
            Duration::from_millis(20)
        };
        let mut sockets = vec![PollFd::new(&self.listener, PollFlags::IN)];
        sockets.extend(self.clients.iter().map(|(id, stream)| {
            let write =
                if self.server.unwritten(*id).is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            let read = if self.server.is_read(*id) { PollFlags::IN } else { PollFlags::empty() };
            PollFd::new(stream, read | write)
        }));
        let left = Timespec { tv_sec: 0, tv_nsec: left.as_nanos() as i64 };
        let _ = poll(&mut sockets, Some(&left));
    }

    fn tick(&mut self, now: Duration) {
        if !self.is_busy() {
            self.next = now;
        }
        if !self.is_busy() || now < self.next {
            return;
        }
        self.next += Duration::from_millis(10);
        if self.server.is_recording() {
            let mut block = [0.0; 960];
            let samples = (self.spoken..).map(|at| from_i16(spoken(at)));
            block.iter_mut().zip(samples).for_each(|(to, sample)| *to = sample);
            self.spoken += block.len();
            self.server.record(Time::new(now), &block);
        }
        if !self.server.is_playing() {
            return;
        }
        let told: Vec<_> =
            self.clients.iter().map(|(id, _)| (*id, self.server.unwritten(*id).len())).collect();
        let mut mix = [0.0; 960];
        self.server.mix(Time::new(now), &mut mix);
        let late =
            told.into_iter().map(|(id, before)| underflows(&self.server.unwritten(id)[before..])).sum();
        self.late.fetch_add(late, Ordering::Relaxed);
        self.recorded.lock().unwrap().extend(mix.map(to_i16));
    }

    fn is_busy(&self) -> bool {
        self.server.is_playing() || self.server.is_recording()
    }
}

/// Reads and writes what can be; `false` when the client has gone.
fn serve(server: &mut Server, now: Time, id: ClientId, stream: &mut UnixStream) -> bool {
    let mut bytes = [0; 65_536];
    while server.is_read(id) {
        match stream.read(&mut bytes) {
            Ok(0) => gone(server, id),
            Ok(count) => server.receive(now, id, &bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(_) => gone(server, id),
        }
    }
    while !server.unwritten(id).is_empty() {
        match stream.write(server.unwritten(id)) {
            Ok(count) => server.written(id, count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(_) => gone(server, id),
        }
    }
    if server.end(id).is_some() {
        gone(server, id);
    }
    server.is_read(id) || !server.unwritten(id).is_empty()
}

/// How many of these messages say that a stream ran dry.
fn underflows(mut messages: &[u8]) -> u32 {
    let mut count = 0;
    while let Some(length) = messages.first_chunk() {
        let (message, rest) = messages.split_at(20 + u32::from_be_bytes(*length) as usize);
        count += u32::from(message[20..25] == [b'L', 0, 0, 0, 63]);
        messages = rest;
    }
    count
}

fn gone(server: &mut Server, id: ClientId) {
    server.disconnect(id);
}
