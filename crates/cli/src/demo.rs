//! `wayferry demo`: both sides on this machine with a bad link between them.
//!
//! The program (a scripted one unless one is given) is shown on the local compositor if there is one, else on the built-in
//! stage, where it is also typed at, so that the latency of a key can be told. It ends with a summary on stdout and a picture
//! of what the display shows. Invariant: the figures are those of the real code on a real QUIC connection; only the link is
//! emulated.

use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wayferry_stage::{
    Config as StageConfig, Demo, Endpoint, Image, LinkConfig, Loss, Program, Stage, Stamped,
    commits_per_second, key_latencies, percentile,
};

use crate::emulated::{Emulated, Plan};
use crate::error::Error;
use crate::flags::{DemoFlags, OwnFlags};
use crate::notice::notice;
use crate::run::display_side::Compositor;
use crate::run::programs::Launch;
use crate::run::signals::Signals;
use crate::run::socket::RuntimeDir;
use crate::run::tap::Tap;

/// Runs the demo; gives the exit code of the program.
pub(crate) fn run(own: &OwnFlags, flags: &DemoFlags) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let dir = RuntimeDir::private()?;
    let screen = Screen::new(flags, &dir)?;
    let link = link(flags)?;
    let tap = Arc::new(Mutex::new(Tap::new()));
    let plan = Plan {
        own,
        compositor: screen.socket.clone(),
        up: link.clone(),
        down: LinkConfig { seed: link.seed ^ 1, ..link },
        program: (!flags.program.is_empty()).then(|| Launch::Command(flags.program.clone())),
        tap: screen.stage.is_none().then(|| Arc::clone(&tap)),
    };
    let session = Emulated::start(plan, &signals)?;
    println!(
        "{} on {}, over a link of {} ms round trip, {} % loss, {} Mbit/s",
        flags.program.first().map_or("the scripted program".into(), |program| program.to_string_lossy()),
        if screen.stage.is_some() { "the built-in stage" } else { "this desktop" },
        flags.rtt,
        flags.loss,
        flags.rate
    );
    let scripted = match flags.program.is_empty() {
        true => Some(start_scripted(&session, &screen)?),
        false => None,
    };
    let began = Instant::now();
    let last = watch(flags, &signals, &session, &screen, scripted.as_ref())?;
    let elapsed = began.elapsed();
    let picture =
        screen.picture().or_else(|| tap.lock().unwrap_or_else(PoisonError::into_inner).picture()).or(last);
    summary(&session, &screen, elapsed);
    if let Some(picture) = picture {
        let failed = |source| Error::File { path: flags.png.clone(), source };
        picture.write_png(&flags.png).map_err(failed)?;
        println!("picture of the display: {}", flags.png.display());
    }
    if let Some(program) = scripted
        && let Err(error) = program.stop()
    {
        notice(&format!("the scripted program ended: {error}"));
    }
    session.end()
}

/// What the program is shown on.
struct Screen {
    socket: std::path::PathBuf,
    stage: Option<Stage>,
}

impl Screen {
    fn new(flags: &DemoFlags, dir: &RuntimeDir) -> Result<Self, Error> {
        if !flags.stage
            && let Ok(Compositor::At(socket)) = Compositor::from_environment()
        {
            return Ok(Self { socket, stage: None });
        }
        let socket = dir.path().join("stage");
        let config = StageConfig { socket: Some(socket.clone()), ..StageConfig::default() };
        let stage =
            Stage::start(config).map_err(|source| Error::System { doing: "starting the stage", source })?;
        Ok(Self { socket, stage: Some(stage) })
    }

    fn picture(&self) -> Option<Image> {
        self.stage.as_ref().map(Stage::screenshot_output)
    }

    fn events(&self) -> Vec<Stamped> {
        self.stage.as_ref().map(|stage| stage.events().try_iter().collect()).unwrap_or_default()
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

fn start_scripted(session: &Emulated, screen: &Screen) -> Result<Program, Error> {
    // On the stage we type ourselves, to measure.
    let demo = Demo { types_itself: screen.stage.is_none(), ..Demo::default() };
    Program::start(Endpoint::Socket(session.socket().to_owned()), move |client| demo.run(client))
        .map_err(|source| Error::System { doing: "starting the scripted program", source })
}

/// Waits for the end, typing and telling figures meanwhile; gives the last picture that showed a window.
fn watch(
    flags: &DemoFlags,
    signals: &Signals,
    session: &Emulated,
    screen: &Screen,
    scripted: Option<&Program>,
) -> Result<Option<Image>, Error> {
    let scripted_end = || scripted.map(|_| SCRIPTED_DURATION);
    let end = flags.duration.or_else(scripted_end).map(|duration| Instant::now() + duration);
    let mut keys = Demo::TEXT.chars().cycle();
    let mut line = Line::new(session);
    let mut last = None;
    let mut turn = 0u32;
    loop {
        let over = session.is_over() || scripted.is_some_and(Program::is_finished);
        if over || end.is_some_and(|at| Instant::now() >= at) {
            return Ok(last);
        }
        match signals.wait_readable(&[session.app().as_fd()], Some(KEY_PERIOD)) {
            Ok(_) => {}
            // The user has seen enough.
            Err(Error::Signal(_)) => return Ok(last),
            Err(error) => return Err(error),
        }
        turn += 1;
        if let (Some(stage), Some(_)) = (&screen.stage, scripted)
            && !stage.windows().is_empty()
            && let Some(key) = keys.next()
        {
            stage.type_text(&key.to_string());
        }
        if turn.is_multiple_of(KEYS_PER_LINE) {
            line.print(session, screen);
            if let Some(stage) = screen.stage.as_ref().filter(|stage| !stage.windows().is_empty()) {
                last = Some(stage.screenshot_output());
            }
        }
    }
}

/// The live figures, once a second.
struct Line {
    updates: u64,
    bytes: u64,
    at: Instant,
}

impl Line {
    fn new(session: &Emulated) -> Self {
        Self { updates: 0, bytes: session.link_stats().down.delivered_bytes, at: Instant::now() }
    }

    fn print(&mut self, session: &Emulated, screen: &Screen) {
        let (counters, link) = session.display().counters();
        let bytes = session.link_stats().down.delivered_bytes;
        let seconds = self.at.elapsed().as_secs_f64().max(0.001);
        let rate = (bytes - self.bytes) as f64 * 8.0 / seconds / 1e6;
        let updates = (counters.updates - self.updates) as f64 / seconds;
        let latencies = latencies(&screen.events());
        let typing = percentile(&latencies, 0.5)
            .map_or(String::new(), |p50| format!(", key to picture {} ms", ms(p50)));
        println!("  rtt {} ms, {updates:.0} updates/s, {rate:.2} Mbit/s{typing}", ms(link.rtt));
        *self = Self { updates: counters.updates, bytes, at: Instant::now() };
    }
}

/// From each key press to the commit that shows it, in the window that was typed into.
fn latencies(events: &[Stamped]) -> Vec<Duration> {
    window(events).map(|surface| key_latencies(events, surface)).unwrap_or_default()
}

fn window(events: &[Stamped]) -> Option<wayferry_stage::SurfaceId> {
    events.iter().find_map(|stamped| match &stamped.event {
        wayferry_stage::StageEvent::FirstAttach {
            surface,
            role: Some(wayferry_stage::Role::Toplevel),
            ..
        } => Some(*surface),
        _ => None,
    })
}

fn summary(session: &Emulated, screen: &Screen, elapsed: Duration) {
    let events = screen.events();
    let (counters, _) = session.display().counters();
    let stats = session.link_stats();
    let fps = match window(&events) {
        Some(surface) => commits_per_second(&events, surface),
        None => counters.updates as f64 / elapsed.as_secs_f64().max(0.001),
    };
    let latencies = latencies(&events);
    println!("summary after {:.1} s:", elapsed.as_secs_f64());
    println!("  {fps:.1} fps");
    match (percentile(&latencies, 0.5), percentile(&latencies, 0.95)) {
        (Some(p50), Some(p95)) => {
            println!("  typing latency p50 {} ms, p95 {} ms, {} keys", ms(p50), ms(p95), latencies.len());
        }
        _ => println!("  typing latency p50 -, p95 - (measured on the built-in stage: --stage)"),
    }
    println!(
        "  {} bytes to the display, {} bytes back, {} of {} packets lost",
        stats.down.delivered_bytes,
        stats.up.delivered_bytes,
        stats.down.lost + stats.down.overflowed,
        stats.down.offered
    );
}

fn ms(duration: Duration) -> String {
    format!("{:.0}", duration.as_secs_f64() * 1e3)
}

/// How long the scripted program is shown.
const SCRIPTED_DURATION: Duration = Duration::from_secs(10);
/// Between two keys: eight a second, as a fast typist.
const KEY_PERIOD: Duration = Duration::from_millis(125);
/// Lines of figures are a second apart.
const KEYS_PER_LINE: u32 = 8;
