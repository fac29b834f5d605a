//! Both sides of a session in this process, with an emulated link between them: for the demo and the benches.
//!
//! It is the real thing but for the place: each side has its run loop on a thread of its own, QUIC goes over UDP
//! sockets, and only the relay in between makes delay, loss and rate. Invariant: when the value is dropped, threads,
//! sockets and programs are gone.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use wayferry_net::quic::{Connected, Listener as NetListener};
use wayferry_net::{Carrier, Identity, Peers};
use wayferry_proto::{Capabilities, Config, Session, Side};
use wayferry_stage::{Link as Relay, LinkConfig, LinkStats};

use crate::error::{Error, SessionError};
use crate::flags::{OwnFlags, reporter};
use crate::tap::Tap;
use crate::tunnel;
use wayferry_host::app_side::environment;
use wayferry_host::app_side::{AppSide, AppSideConfig, Displays, Outcome as AppOutcome, Start};
use wayferry_host::carriers;
use wayferry_host::clock::Clock;
use wayferry_host::display_side::{Compositor, DisplaySide, Look, Outcome as DisplayOutcome, Watched};
use wayferry_host::edge::handle::Handle;
use wayferry_host::edge::programs::{Launch, Place};
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::{Listener, RuntimeDir};
use wayferry_host::link::Link;
use wayferry_host::sound::{Audio, Hearing, Listening, Mode, Output, SoundServer, Watcher};
use wayferry_host::trace::TraceFile;

/// A running session.
pub(crate) struct Emulated {
    app: Half<AppOutcome>,
    display: Half<DisplayOutcome>,
    relay: Option<Relay>,
    socket: PathBuf,
    /// Of the session's sound server, and how its sound is heard.
    sound: Option<(PathBuf, Watcher)>,
    heard: Option<PathBuf>,
    // Last: the listener's socket is in it.
    _dir: RuntimeDir,
}

/// One side, on its thread.
struct Half<T> {
    handle: Handle,
    thread: Option<JoinHandle<Result<T, SessionError>>>,
}

/// What to emulate.
pub(crate) struct Plan<'a> {
    pub(crate) own: &'a OwnFlags,
    /// The compositor's socket.
    pub(crate) compositor: PathBuf,
    pub(crate) way: Way,
    /// A program that is the session's reason; without one, programs come by the socket.
    pub(crate) program: Option<Launch>,
    /// Looks at the content that arrives.
    pub(crate) tap: Option<Arc<Mutex<Tap>>>,
    /// How the session's sound is heard; without, programs find no sound server.
    pub(crate) sound: Option<Sound>,
    /// Whether what is typed is predicted where the answer takes long, as users have it.
    pub(crate) predicts: bool,
}

/// How the sides reach each other.
pub(crate) enum Way {
    /// QUIC, through a relay of datagrams.
    Relay {
        /// From the display to the app side.
        up: Box<LinkConfig>,
        /// From the app side to the display.
        down: Box<LinkConfig>,
    },
    /// Through the tunnel of this network namespace, to this port.
    Tunnel(Transport, u16),
}

impl Way {
    pub(crate) fn relay(up: LinkConfig, down: LinkConfig) -> Self {
        Self::Relay { up: Box::new(up), down: Box::new(down) }
    }
}

/// What carries a session through a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Quic,
}

/// How sound is heard.
pub(crate) struct Sound {
    pub(crate) mode: Mode,
    pub(crate) listening: Option<Listening>,
}

/// The two ends of a carrier, and what is between them.
struct Met {
    near: Box<dyn Carrier>,
    far: Box<dyn Carrier>,
    relay: Option<Relay>,
}

impl Emulated {
    /// Starts both sides; returns when they have met.
    pub(crate) fn start(plan: Plan<'_>, signals: &Signals) -> Result<Self, Error> {
        let Plan { own, compositor, way, program, tap, sound, predicts } = plan;
        let dir = RuntimeDir::private()?;
        let listener = Listener::new(&dir, None)?;
        let socket = listener.path().to_owned();
        let Met { near, far, relay } = meet(own, way, signals)?;
        let start = program.map(|launch| Start {
            stdio: None,
            launch,
            environment: environment(&listener, &dir),
            place: Place::OwnGroup,
            bridge: None,
        });
        let trace = own.trace_file()?;
        let clock = Clock::start();
        let (mut server, mut hearing, mut heard, mut heard_file) = (None, None, None, None);
        let mut mode = Mode::default();
        let display_clock = Clock::start();
        if let Some(sound) = sound {
            mode = sound.mode;
            let started = SoundServer::start(clock)?;
            let file = dir.path().join("heard.raw");
            hearing = hear(sound, file.clone(), display_clock)?;
            heard_file = Some(file);
            heard = hearing.as_ref().map(|hearing| (started.socket(), hearing.watcher()));
            server = Some(started);
        }
        let near = Near { carrier: near, clock, server, mode, predicts };
        let app = spawn_app(own, near, listener, start, trace.clone())?;
        let far = Far { carrier: far, clock: display_clock, compositor, tap, hearing, predicts };
        let display = spawn_display(own, far, trace)?;
        Ok(Self { app, display, relay, socket, sound: heard, heard: heard_file, _dir: dir })
    }

    /// Where programs of the session connect.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Where programs of the session play to.
    pub(crate) fn sound_socket(&self) -> Option<&Path> {
        self.sound.as_ref().map(|(socket, _)| socket.as_path())
    }

    /// What is heard of it, as 16-bit samples.
    pub(crate) fn heard_file(&self) -> Option<&Path> {
        self.heard.as_deref()
    }

    /// How the session's sound is heard.
    pub(crate) fn heard(&self) -> Option<&Watcher> {
        self.sound.as_ref().map(|(_, watcher)| watcher)
    }

    /// Cuts the relay between the sides, or mends it.
    pub(crate) fn set_down(&self, down: bool) {
        self.relay.iter().for_each(|relay| relay.set_down(down));
    }

    /// What the relay has carried.
    pub(crate) fn link_stats(&self) -> LinkStats {
        self.relay.as_ref().map(Relay::stats).unwrap_or_default()
    }

    /// The app side's counters.
    pub(crate) fn app(&self) -> &Handle {
        &self.app.handle
    }

    /// The display side's counters.
    pub(crate) fn display(&self) -> &Handle {
        &self.display.handle
    }

    /// Whether one of the sides has ended by itself.
    pub(crate) fn is_over(&self) -> bool {
        self.app.is_over() || self.display.is_over()
    }

    /// Ends the session and says how it went: the program's exit code.
    pub(crate) fn end(mut self) -> Result<u8, Error> {
        if !self.is_over() {
            self.app.handle.stop();
        }
        let app = self.app.join();
        // The link may have lost what the app side said of its end.
        self.display.handle.stop();
        let display = self.display.join();
        match (app?, display?) {
            (AppOutcome::Exit(code), _) | (_, DisplayOutcome::Exit(code)) => Ok(code),
            _ => Ok(0),
        }
    }
}

impl<T> Half<T> {
    fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn join(&mut self) -> Result<T, SessionError> {
        let broken = || SessionError::System {
            doing: "running a side",
            source: std::io::ErrorKind::BrokenPipe.into(),
        };
        self.thread.take().and_then(|thread| thread.join().ok()).ok_or_else(broken)?
    }
}

impl<T> Drop for Half<T> {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Lets the sides meet.
fn meet(own: &OwnFlags, way: Way, signals: &Signals) -> Result<Met, Error> {
    let system = |doing| move |source| SessionError::System { doing, source };
    match way {
        Way::Relay { up, down } => {
            let (app, display) = (carriers::identity()?, carriers::identity()?);
            let mut port = listen(own, ([127, 0, 0, 1], 0).into(), &app, &display)?;
            let relay =
                Relay::start_with(*up, *down, port.local_addr()).map_err(system("starting the link"))?;
            let far = connect(own, relay.local_addr(), &app, &display, signals)?;
            let near = accepted(port.accept(PATIENCE), relay.local_addr())?;
            Ok(Met { near, far, relay: Some(relay) })
        }
        Way::Tunnel(Transport::Quic, number) => {
            let (app, display) = (carriers::identity()?, carriers::identity()?);
            let mut port = listen(own, tunnel::here(number), &app, &display)?;
            let far = connect(own, tunnel::there(number), &app, &display, signals)?;
            let near = accepted(port.accept(PATIENCE), tunnel::there(number))?;
            Ok(Met { near, far, relay: None })
        }
        Way::Tunnel(Transport::Tcp, number) => {
            let (near, far) = tunnel::tcp(number, PATIENCE).map_err(system("connecting by TCP"))?;
            let (near, far) = (carriers::byte_stream(near)?, carriers::byte_stream(far)?);
            Ok(Met { near, far, relay: None })
        }
    }
}

fn listen(
    own: &OwnFlags,
    address: SocketAddr,
    app: &Arc<Identity>,
    display: &Identity,
) -> Result<NetListener, Error> {
    let peers = Peers::Pinned(display.fingerprint());
    Ok(carriers::listen(&own.options(), address, None, app, peers, &reporter())?)
}

fn connect(
    own: &OwnFlags,
    address: SocketAddr,
    app: &Identity,
    display: &Arc<Identity>,
    signals: &Signals,
) -> Result<Box<dyn Carrier>, Error> {
    let pinned = app.fingerprint();
    let (options, reporter) = (own.options(), reporter());
    let met = carriers::connect(&options, &[address], display, pinned, PATIENCE, signals, &reporter)?;
    Ok(met.0)
}

fn accepted(met: Option<Connected>, address: SocketAddr) -> Result<Box<dyn Carrier>, Error> {
    let silent = || SessionError::NothingAnswered { tried: vec![address], waited: PATIENCE };
    Ok(met.ok_or_else(silent)?.carrier)
}

/// What the app side begins with.
struct Near {
    carrier: Box<dyn Carrier>,
    clock: Clock,
    server: Option<SoundServer>,
    mode: Mode,
    predicts: bool,
}

fn spawn_app(
    own: &OwnFlags,
    near: Near,
    listener: Listener,
    start: Option<Start>,
    trace: Option<Arc<TraceFile>>,
) -> Result<Half<AppOutcome>, Error> {
    let (own, handle) = (own.clone(), Handle::new()?);
    let theirs = handle.clone();
    let run = move || {
        let Near { carrier, clock, server, mode, predicts } = near;
        let config = AppSideConfig {
            core: own.settings().programs(&clock),
            compress: own.compress.unwrap_or_default(),
            oneshot: false,
            stats: false,
        };
        let mut session = own.settings().session(Side::App, &clock);
        offer(&mut session, server.is_some(), predicts);
        let link = Link::new(Session::new(session), carrier);
        let side = AppSide::new(config, clock, Displays::only(link, clock.now()), reporter());
        let side = side.with_listener(listener).with_handle(theirs);
        let side = side.with_trace(trace).with_sound(server, mode, false);
        match start {
            Some(start) => side.with_program(start).run(),
            None => side.run(),
        }
    };
    spawn("app side", handle, run)
}

/// What the display side begins with.
struct Far {
    carrier: Box<dyn Carrier>,
    clock: Clock,
    compositor: PathBuf,
    tap: Option<Arc<Mutex<Tap>>>,
    hearing: Option<Hearing>,
    predicts: bool,
}

fn spawn_display(
    own: &OwnFlags,
    far: Far,
    trace: Option<Arc<TraceFile>>,
) -> Result<Half<DisplayOutcome>, Error> {
    let (own, handle) = (own.clone(), Handle::new()?);
    let theirs = handle.clone();
    let run = move || {
        let Far { carrier, clock, compositor, tap, hearing, predicts } = far;
        let watched = Watched::new(Compositor::At(compositor), clock, None)?;
        let mut session = own.settings().session(Side::Display, &clock);
        offer(&mut session, hearing.is_some(), predicts);
        let link = Link::new(Session::new(session), carrier);
        DisplaySide::new(watched, clock, link, false, reporter())
            .with_handle(theirs)
            .with_sound(hearing)
            .with_look(tap.map(look))
            .with_title_prefix(own.title_prefix.clone().unwrap_or_default())
            .with_trace(trace)
            .run()
    };
    spawn("display side", handle, run)
}

/// As in a session of a user's: it could be resumed, though none here is.
fn offer(session: &mut Config, has_sound: bool, predicts: bool) {
    let offers =
        [(true, Capabilities::RESUME), (has_sound, Capabilities::SOUND), (predicts, Capabilities::ECHO)];
    let offered = offers.into_iter().filter_map(|(is_offered, what)| is_offered.then_some(what));
    session.capabilities = offered.fold(session.capabilities, Capabilities::with);
}

/// What is heard goes to a file.
fn hear(sound: Sound, path: PathBuf, clock: Clock) -> Result<Option<Hearing>, SessionError> {
    let hearing = Hearing::new(Audio::Auto, Output::File(path), clock);
    let hearing =
        hearing.map_err(|source| SessionError::System { doing: "preparing to play sound", source })?;
    Ok(match sound.listening {
        Some(listening) => hearing.map(|hearing| hearing.with_listening(listening)),
        None => hearing,
    })
}

fn look(tap: Arc<Mutex<Tap>>) -> Look {
    Box::new(move |header, chunks| tap.lock().unwrap_or_else(PoisonError::into_inner).look(header, chunks))
}

fn spawn<T: Send + 'static>(
    name: &str,
    handle: Handle,
    run: impl FnOnce() -> Result<T, SessionError> + Send + 'static,
) -> Result<Half<T>, Error> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(run);
    let thread = thread.map_err(|source| SessionError::System { doing: "starting a thread", source })?;
    Ok(Half { handle, thread: Some(thread) })
}

/// How long the two sides may take to meet over the worst link that somebody would want to look at.
const PATIENCE: Duration = Duration::from_secs(20);
