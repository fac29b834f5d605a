//! One session of the demo, with the program at its one end and what shows it at the other.
//!
//! Invariant: the stage's log is complete from its begin, so that every key is counted.

use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wayferry_stage::{
    Config as StageConfig, Demo, Endpoint, Image, LinkConfig, Loss, Program, Stage, Stamped,
    commits_per_second, percentile,
};

use super::eye::{Eye, Seen};
use super::figures::{Keys, Line, ms, window};
use crate::emulated::{Emulated, Plan, Way};
use crate::error::{Error, SessionError};
use crate::flags::{DemoFlags, OwnFlags};
use crate::tap::Tap;
use wayferry_host::edge::programs::Launch;
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::RuntimeDir;
use wayferry_host::settings::Delivery;

/// A session of the demo with everything around it.
pub(super) struct Scene {
    mode: Delivery,
    screen: Option<Screen>,
    session: Emulated,
    scripted: Option<Program>,
    tap: Arc<Mutex<Tap>>,
    line: Line,
    /// What is typed, and how soon it is seen.
    eye: Option<Eye>,
    rtt: Duration,
    /// The last picture of the stage that showed a window.
    last: Option<Image>,
}

/// A stage that shows the program.
struct Screen {
    stage: Arc<Stage>,
    events: Receiver<Stamped>,
    log: Vec<Stamped>,
}

impl Scene {
    /// Starts it on the compositor with this socket, or on a stage of its own.
    pub(super) fn start(
        own: &OwnFlags,
        flags: &DemoFlags,
        mode: Delivery,
        compositor: Option<PathBuf>,
        dir: &RuntimeDir,
        signals: &Signals,
    ) -> Result<Self, Error> {
        let link = link(flags)?;
        let tap = Arc::new(Mutex::new(Tap::new()));
        let (compositor, screen) = match compositor {
            Some(socket) => (socket, None),
            None => {
                let socket = dir.path().join(format!("stage-{}", mode.name()));
                (socket.clone(), Some(Screen::new(socket)?))
            }
        };
        let own = OwnFlags {
            delivery: Some(mode),
            title_prefix: own.title_prefix.clone().or_else(|| Some(format!("{}: ", mode.name()))),
            // One file holds one session.
            trace: own.trace.clone().filter(|_| mode != Delivery::Total || own.delivery.is_some()),
            ..own.clone()
        };
        let plan = Plan {
            own: &own,
            compositor,
            way: Way::relay(link.clone(), LinkConfig { seed: link.seed ^ 1, ..link }),
            program: (!flags.program.is_empty()).then(|| Launch::Command(flags.program.clone())),
            tap: screen.is_none().then(|| Arc::clone(&tap)),
            sound: None,
            predicts: true,
        };
        let session = Emulated::start(plan, signals)?;
        let scripted = match flags.program.is_empty() {
            true => Some(start_scripted(&session, mode)?),
            false => None,
        };
        let line = Line::new(&session);
        let rtt = Duration::from_millis(flags.rtt.into());
        Ok(Self { mode, screen, session, scripted, tap, line, eye: None, rtt, last: None })
    }

    pub(super) fn mode(&self) -> Delivery {
        self.mode
    }

    pub(super) fn session(&self) -> &Emulated {
        &self.session
    }

    pub(super) fn stage(&self) -> Option<Arc<Stage>> {
        self.screen.as_ref().map(|screen| Arc::clone(&screen.stage))
    }

    pub(super) fn is_over(&self) -> bool {
        self.session.is_over() || self.scripted.as_ref().is_some_and(Program::is_finished)
    }

    /// Whether its stage shows a window.
    pub(super) fn has_window(&self) -> bool {
        self.screen.as_ref().is_some_and(|screen| !screen.stage.windows().is_empty())
    }

    /// Types on its stage, which shows a window.
    pub(super) fn type_letter(&mut self, letter: char) {
        if let (None, Some(screen)) = (&self.eye, &self.screen) {
            let window = screen.stage.windows().first().map(|window| window.surface);
            self.eye = window.map(|window| Eye::new(Arc::clone(&screen.stage), window));
        }
        self.eye.iter_mut().for_each(|eye| eye.type_letter(letter));
    }

    /// What was seen of the keys by then.
    fn seen(&self) -> Seen {
        self.eye.as_ref().map(|eye| eye.seen(self.rtt)).unwrap_or_default()
    }

    /// The keys as of the last call of [`Scene::figures`] or [`Scene::await_keys`].
    pub(super) fn keys(&self) -> Keys {
        self.screen.as_ref().map(|screen| Keys::new(&screen.log)).unwrap_or_default()
    }

    /// Waits until every key that was pressed is seen, or it is this late, or the session is over.
    pub(super) fn await_keys(&mut self, late: Instant) {
        self.listen();
        while !self.is_over()
            && self.keys().are_on_their_way()
            && let Some(screen) = &mut self.screen
            && let Ok(event) = screen.events.recv_timeout(late.saturating_duration_since(Instant::now()))
        {
            screen.log.push(event);
        }
        self.listen();
    }

    /// The figures since the last call.
    pub(super) fn figures(&mut self) -> String {
        self.listen();
        self.last = self.output().or(self.last.take());
        let keys = self.keys();
        self.line.next(&self.session, &keys)
    }

    /// How soon the last keys were seen, in words.
    pub(super) fn recently(&self) -> String {
        self.keys().recently(self.seen().share()).unwrap_or_default()
    }

    /// How soon keys were seen, in words.
    pub(super) fn on_the_whole(&self) -> String {
        self.keys().on_the_whole(self.seen().share())
    }

    fn listen(&mut self) {
        self.eye.iter_mut().for_each(Eye::look);
        if let Some(screen) = &mut self.screen {
            screen.log.extend(screen.events.try_iter());
        }
    }

    /// What the display shows: all of a stage, or what crossed the link to a compositor that is not ours to look at.
    pub(super) fn picture(&self) -> Option<Image> {
        let tapped = || self.tap.lock().unwrap_or_else(PoisonError::into_inner).picture();
        self.output().or_else(|| self.last.clone()).or_else(tapped)
    }

    /// All of the stage, while there is a window on it.
    fn output(&self) -> Option<Image> {
        let screen = self.screen.as_ref().filter(|_| self.has_window())?;
        Some(screen.stage.screenshot_output())
    }

    /// Tells how it went.
    pub(super) fn summary(&self, name: &str, elapsed: Duration) {
        let events = self.screen.as_ref().map_or(&[][..], |screen| &screen.log);
        let (counters, _) = self.session.display().counters();
        let stats = self.session.link_stats();
        let fps = match window(events) {
            Some(surface) => commits_per_second(events, surface),
            None => counters.updates as f64 / elapsed.as_secs_f64().max(0.001),
        };
        let latencies = self.keys().seen;
        let typing = match [0.5, 0.95, 1.0].map(|share| percentile(&latencies, share).map(ms)) {
            [Some(p50), Some(p95), Some(most)] => {
                format!("typing latency p50 {p50} ms, p95 {p95} ms, most {most} ms, {} keys", latencies.len())
            }
            _ => "typing latency p50 -, p95 - (measured on the built-in stage: --stage)".into(),
        };
        println!("  {name}{fps:.1} fps, {typing}");
        if let Some(predicted) = self.seen().beside(&latencies) {
            println!("  {:width$}{predicted}", "", width = name.len());
        }
        let (sent, _) = self.session.app().counters();
        println!(
            "  {:width$}{} bytes to the display, {} of {} packets lost; {} bytes of repair, {} blocks rebuilt here, {} there",
            "",
            stats.down.delivered_bytes,
            stats.down.lost + stats.down.overflowed,
            stats.down.offered,
            sent.repair.bytes,
            counters.repair.rebuilt,
            sent.repair.rebuilt,
            width = name.len(),
        );
    }

    pub(super) fn end(self) -> Result<u8, Error> {
        if let Some(program) = self.scripted
            && let Err(error) = program.stop()
        {
            eprintln!("note: the scripted program ended: {error}");
        }
        self.session.end()
    }
}

impl Screen {
    fn new(socket: PathBuf) -> Result<Self, SessionError> {
        let config = StageConfig { socket: Some(socket), ..StageConfig::default() };
        let stage = Stage::start(config)
            .map_err(|source| SessionError::System { doing: "starting the stage", source })?;
        let events = stage.events();
        Ok(Self { stage: Arc::new(stage), events, log: Vec::new() })
    }
}

fn link(flags: &DemoFlags) -> Result<LinkConfig, Error> {
    if !(0.0..=50.0).contains(&flags.loss) || !(0.05..=10_000.0).contains(&flags.rate) {
        return Err(Error::Usage(
            "the loss must be from 0 to 50 per cent, the rate from 0.05 to 10000 Mbit/s".into(),
        ));
    }
    let rate = (flags.rate * 1e6) as u64;
    Ok(LinkConfig {
        rate: Some(rate),
        one_way_delay: Duration::from_micros(u64::from(flags.rtt) * 500),
        // A quarter of a second, as the buffers of home routers have it.
        queue_bytes: (rate / 32).max(30_000),
        loss: if flags.loss > 0.0 { Loss::Independent(flags.loss / 100.0) } else { Loss::None },
        seed: flags.seed,
        ..LinkConfig::default()
    })
}

/// Starts the scripted program, which the stage types into, so that keys are measured.
fn start_scripted(session: &Emulated, mode: Delivery) -> Result<Program, SessionError> {
    let (name, motto) = match mode {
        Delivery::Total => ("One byte stream", "everything in its order, as with ssh or TCP"),
        Delivery::Partial => ("Wayferry, no repair", "what is lost is sent again, and holds up nothing else"),
        Delivery::Repair => ("Wayferry", "what is lost is rebuilt, and holds up nothing else"),
    };
    let demo = Demo { name: name.into(), motto: motto.into(), types_itself: false, ..Demo::default() };
    Program::start(Endpoint::Socket(session.socket().to_owned()), move |client| demo.run(client))
        .map_err(|source| SessionError::System { doing: "starting the scripted program", source })
}
