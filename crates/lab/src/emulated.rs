//! Both sides of a session in this process, with an emulated link between them: for the demo and the benches.
//!
//! It is the real thing but for the place: each side has its run loop on a thread of its own, QUIC goes over UDP
//! sockets, and only the relay in between makes delay, loss and rate. Invariant: when the value is dropped, threads,
//! sockets and programs are gone.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use wayferry_net::{Carrier, Peers};
use wayferry_proto::{Session, Side};
use wayferry_stage::{Link as Relay, LinkConfig, LinkStats};

use crate::error::{Error, SessionError};
use crate::flags::{OwnFlags, reporter};
use crate::tap::Tap;
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
use wayferry_host::trace::TraceFile;

/// A running session.
pub(crate) struct Emulated {
    app: Half<AppOutcome>,
    display: Half<DisplayOutcome>,
    relay: Relay,
    socket: PathBuf,
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
    /// From the display to the app side.
    pub(crate) up: LinkConfig,
    /// From the app side to the display.
    pub(crate) down: LinkConfig,
    /// A program that is the session's reason; without one, programs come by the socket.
    pub(crate) program: Option<Launch>,
    /// Looks at the content that arrives.
    pub(crate) tap: Option<Arc<Mutex<Tap>>>,
}

impl Emulated {
    /// Starts both sides; returns when they have met.
    pub(crate) fn start(plan: Plan<'_>, signals: &Signals) -> Result<Self, Error> {
        let Plan { own, compositor, up, down, program, tap } = plan;
        let system = |doing| move |source| SessionError::System { doing, source };
        let dir = RuntimeDir::private()?;
        let listener = Listener::new(&dir, None)?;
        let socket = listener.path().to_owned();
        let (app_identity, display_identity) = (carriers::identity()?, carriers::identity()?);
        let peers = Peers::Pinned(display_identity.fingerprint());
        let mut port = carriers::listen(
            &own.options(),
            ([127, 0, 0, 1], 0).into(),
            None,
            &app_identity,
            peers,
            &reporter(),
        )?;
        let relay = Relay::start_with(up, down, port.local_addr()).map_err(system("starting the link"))?;
        let pinned = app_identity.fingerprint();
        let (far, _) = carriers::connect(
            &own.options(),
            &[relay.local_addr()],
            &display_identity,
            pinned,
            PATIENCE,
            signals,
            &reporter(),
        )?;
        let near = port
            .accept(PATIENCE)
            .ok_or_else(|| SessionError::NothingAnswered {
                tried: vec![relay.local_addr()],
                waited: PATIENCE,
            })?
            .carrier;
        let start = program.map(|launch| Start {
            stdio: None,
            launch,
            environment: environment(&listener, &dir),
            place: Place::OwnGroup,
            satellite: None,
        });
        let trace = own.trace_file()?;
        let app = spawn_app(own, near, listener, start, trace.clone())?;
        let display = spawn_display(own, far, compositor, tap, trace)?;
        Ok(Self { app, display, relay, socket, _dir: dir })
    }

    /// Where programs of the session connect.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// The link between the sides.
    pub(crate) fn relay(&self) -> &Relay {
        &self.relay
    }

    /// What the link has carried.
    pub(crate) fn link_stats(&self) -> LinkStats {
        self.relay.stats()
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

fn spawn_app(
    own: &OwnFlags,
    carrier: Box<dyn Carrier>,
    listener: Listener,
    start: Option<Start>,
    trace: Option<Arc<TraceFile>>,
) -> Result<Half<AppOutcome>, Error> {
    let (own, handle) = (own.clone(), Handle::new()?);
    let theirs = handle.clone();
    let run = move || {
        let clock = Clock::start();
        let config = AppSideConfig {
            core: own.settings().programs(&clock),
            compress: own.compress.unwrap_or_default(),
            oneshot: false,
            stats: false,
        };
        let link = Link::new(Session::new(own.settings().session(Side::App, &clock)), carrier);
        let side = AppSide::new(config, clock, Displays::only(link, clock.now()), reporter());
        let side = side.with_listener(listener).with_handle(theirs);
        let side = side.with_trace(trace);
        match start {
            Some(start) => side.with_program(start).run(),
            None => side.run(),
        }
    };
    spawn("app side", handle, run)
}

fn spawn_display(
    own: &OwnFlags,
    carrier: Box<dyn Carrier>,
    compositor: PathBuf,
    tap: Option<Arc<Mutex<Tap>>>,
    trace: Option<Arc<TraceFile>>,
) -> Result<Half<DisplayOutcome>, Error> {
    let (own, handle) = (own.clone(), Handle::new()?);
    let theirs = handle.clone();
    let run = move || {
        let clock = Clock::start();
        let watched = Watched::new(Compositor::At(compositor), clock, None)?;
        let link = Link::new(Session::new(own.settings().session(Side::Display, &clock)), carrier);
        DisplaySide::new(watched, clock, link, false, reporter())
            .with_handle(theirs)
            .with_look(tap.map(look))
            .with_trace(trace)
            .run()
    };
    spawn("display side", handle, run)
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
