//! `wayferry demo`: both sides on this machine with a bad link between them.
//!
//! The program (a scripted one unless one is given) is shown on the local compositor if there is one, else on the
//! built-in stage, where it is also typed at, so that the latency of a key can be told. It ends with a summary on
//! stdout and a picture of what the display shows. Invariant: the figures are those of the real code on a real QUIC
//! connection; only the link is emulated.

use std::iter::Cycle;
use std::os::fd::AsFd;
use std::str::Chars;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wayferry_stage::{
    Config as StageConfig, Demo, Endpoint, Image, LinkConfig, Loss, Program, Stage, Stamped,
    commits_per_second, key_latencies, percentile,
};

use crate::emulated::{Emulated, Plan, Way};
use crate::error::{Error, SessionError};
use crate::flags::{DemoFlags, OwnFlags};
use crate::tap::Tap;
use wayferry_host::display_side::Compositor;
use wayferry_host::edge::programs::Launch;
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::RuntimeDir;
use wayferry_host::settings::Delivery;

/// Runs the demo; gives the exit code of the program.
pub(crate) fn run(own: &OwnFlags, flags: &DemoFlags) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let dir = RuntimeDir::private()?;
    let modes = match (own.delivery, flags.program.is_empty()) {
        (None, true) => vec![Delivery::Total, Delivery::Repair],
        (mode, _) => vec![mode.unwrap_or_default()],
    };
    let mut scenes = Vec::new();
    for mode in modes {
        scenes.push(Scene::start(own, flags, mode, &dir, &signals)?);
    }
    println!(
        "{} on {}, over a link of {} ms round trip, {} % loss, {} Mbit/s",
        flags.program.first().map_or("the scripted program".into(), |program| program.to_string_lossy()),
        if scenes[0].screen.stage.is_some() { "the built-in stage" } else { "this desktop" },
        flags.rtt,
        flags.loss,
        flags.rate
    );
    if scenes.len() > 1 {
        println!(
            "two sessions, each over such a link of its own: `total` has everything on one ordered stream, `repair` is Wayferry"
        );
    }
    let began = Instant::now();
    watch(flags, &signals, &mut scenes)?;
    let elapsed = began.elapsed();
    println!("summary after {:.1} s:", elapsed.as_secs_f64());
    let name =
        |scene: &Scene| if scenes.len() > 1 { format!("{}: ", scene.mode.name()) } else { String::new() };
    for scene in &scenes {
        scene.summary(&name(scene), elapsed);
    }
    let pictures: Vec<Image> = scenes.iter().filter_map(Scene::picture).collect();
    if let Some(picture) = beside(&pictures) {
        let failed = |source| SessionError::File { path: flags.png.clone(), source };
        picture.write_png(&flags.png).map_err(failed)?;
        println!("picture of the display: {}", flags.png.display());
    }
    let codes: Vec<_> = scenes.into_iter().map(Scene::end).collect();
    codes.into_iter().try_fold(0, |worst, code| Ok(worst.max(code?)))
}

/// A session of the demo with everything around it.
struct Scene {
    mode: Delivery,
    screen: Screen,
    session: Emulated,
    scripted: Option<Program>,
    tap: Arc<Mutex<Tap>>,
    line: Line,
    /// What is still to be typed; windows do not appear at the same time.
    keys: Cycle<Chars<'static>>,
    /// The last picture that showed a window.
    last: Option<Image>,
}

impl Scene {
    fn start(
        own: &OwnFlags,
        flags: &DemoFlags,
        mode: Delivery,
        dir: &RuntimeDir,
        signals: &Signals,
    ) -> Result<Self, Error> {
        let screen = Screen::new(flags, dir, mode)?;
        let link = link(flags)?;
        let tap = Arc::new(Mutex::new(Tap::new()));
        let own = OwnFlags {
            delivery: Some(mode),
            title_prefix: own.title_prefix.clone().or_else(|| Some(format!("{}: ", mode.name()))),
            // One file holds one session.
            trace: own.trace.clone().filter(|_| mode != Delivery::Total || own.delivery.is_some()),
            ..own.clone()
        };
        let plan = Plan {
            own: &own,
            compositor: screen.socket.clone(),
            way: Way::relay(link.clone(), LinkConfig { seed: link.seed ^ 1, ..link }),
            program: (!flags.program.is_empty()).then(|| Launch::Command(flags.program.clone())),
            tap: screen.stage.is_none().then(|| Arc::clone(&tap)),
            sound: None,
        };
        let session = Emulated::start(plan, signals)?;
        let scripted = match flags.program.is_empty() {
            true => Some(start_scripted(&session, &screen)?),
            false => None,
        };
        let line = Line::new(&session);
        Ok(Self { mode, screen, session, scripted, tap, line, keys: Demo::TEXT.chars().cycle(), last: None })
    }

    fn is_over(&self) -> bool {
        self.session.is_over() || self.scripted.as_ref().is_some_and(Program::is_finished)
    }

    /// Types the next key into the scripted program, once its window is there.
    fn type_key(&mut self) {
        if let (Some(stage), Some(_)) = (&self.screen.stage, &self.scripted)
            && !stage.windows().is_empty()
            && let Some(key) = self.keys.next()
        {
            stage.type_text(&key.to_string());
        }
    }

    /// The figures since the last call.
    fn figures(&mut self) -> String {
        if let Some(stage) = self.screen.stage.as_ref().filter(|stage| !stage.windows().is_empty()) {
            self.last = Some(stage.screenshot_output());
        }
        self.line.next(&self.session, &self.screen)
    }

    fn picture(&self) -> Option<Image> {
        let tapped = || self.tap.lock().unwrap_or_else(PoisonError::into_inner).picture();
        self.screen.picture().or_else(tapped).or_else(|| self.last.clone())
    }

    fn summary(&self, name: &str, elapsed: Duration) {
        let events = self.screen.events();
        let (counters, _) = self.session.display().counters();
        let stats = self.session.link_stats();
        let fps = match window(&events) {
            Some(surface) => commits_per_second(&events, surface),
            None => counters.updates as f64 / elapsed.as_secs_f64().max(0.001),
        };
        let latencies = latencies(&events);
        let typing = match [0.5, 0.95, 1.0].map(|share| percentile(&latencies, share).map(ms)) {
            [Some(p50), Some(p95), Some(most)] => {
                format!("typing latency p50 {p50} ms, p95 {p95} ms, most {most} ms, {} keys", latencies.len())
            }
            _ => "typing latency p50 -, p95 - (measured on the built-in stage: --stage)".into(),
        };
        println!("  {name}{fps:.1} fps, {typing}");
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

    fn end(self) -> Result<u8, Error> {
        if let Some(program) = self.scripted
            && let Err(error) = program.stop()
        {
            eprintln!("note: the scripted program ended: {error}");
        }
        self.session.end()
    }
}

/// The pictures in a row.
fn beside(pictures: &[Image]) -> Option<Image> {
    let height = pictures.iter().map(Image::height).max()?;
    let mut row = Image::new(pictures.iter().map(Image::width).sum(), height, 0xff00_0000);
    let mut left = 0;
    for picture in pictures {
        row.blend(picture, left, 0);
        left += picture.width() as i32;
    }
    Some(row)
}

/// What the program is shown on.
struct Screen {
    socket: std::path::PathBuf,
    stage: Option<Stage>,
}

impl Screen {
    fn new(flags: &DemoFlags, dir: &RuntimeDir, mode: Delivery) -> Result<Self, Error> {
        if !flags.stage
            && let Ok(Compositor::At(socket)) = Compositor::from_environment()
        {
            return Ok(Self { socket, stage: None });
        }
        let socket = dir.path().join(format!("stage-{}", mode.name()));
        let config = StageConfig { socket: Some(socket.clone()), ..StageConfig::default() };
        let stage = Stage::start(config)
            .map_err(|source| SessionError::System { doing: "starting the stage", source })?;
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

fn start_scripted(session: &Emulated, screen: &Screen) -> Result<Program, SessionError> {
    // On the stage we type ourselves, to measure.
    let demo = Demo { types_itself: screen.stage.is_none(), ..Demo::default() };
    Program::start(Endpoint::Socket(session.socket().to_owned()), move |client| demo.run(client))
        .map_err(|source| SessionError::System { doing: "starting the scripted program", source })
}

/// Waits for the end, typing and telling figures meanwhile.
fn watch(flags: &DemoFlags, signals: &Signals, scenes: &mut [Scene]) -> Result<(), Error> {
    let scripted_end = || flags.program.is_empty().then_some(SCRIPTED_DURATION);
    let end = flags.duration.or_else(scripted_end).map(|duration| Instant::now() + duration);
    let mut turn = 0u32;
    loop {
        if scenes.iter().any(Scene::is_over) || end.is_some_and(|at| Instant::now() >= at) {
            return Ok(());
        }
        let ended: Vec<_> = scenes.iter().map(|scene| scene.session.app().as_fd()).collect();
        match signals.wait_readable(&ended, Some(KEY_PERIOD)) {
            Ok(_) => {}
            // The user has seen enough.
            Err(SessionError::Signal(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        turn += 1;
        scenes.iter_mut().for_each(Scene::type_key);
        if turn.is_multiple_of(KEYS_PER_LINE) {
            let figures: Vec<_> = scenes
                .iter_mut()
                .map(|scene| format!("{}: {}", scene.mode.name(), scene.figures()))
                .collect();
            println!("  {}", figures.join("  |  "));
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

    fn next(&mut self, session: &Emulated, screen: &Screen) -> String {
        let (counters, link) = session.display().counters();
        let bytes = session.link_stats().down.delivered_bytes;
        let seconds = self.at.elapsed().as_secs_f64().max(0.001);
        let rate = (bytes - self.bytes) as f64 * 8.0 / seconds / 1e6;
        let updates = (counters.updates - self.updates) as f64 / seconds;
        let latencies = latencies(&screen.events());
        let typing = percentile(&latencies, 0.5)
            .map_or(String::new(), |p50| format!(", key to picture {} ms", ms(p50)));
        *self = Self { updates: counters.updates, bytes, at: Instant::now() };
        format!("rtt {} ms, {updates:.0} updates/s, {rate:.2} Mbit/s{typing}", ms(link.rtt))
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

fn ms(duration: Duration) -> String {
    format!("{:.0}", duration.as_secs_f64() * 1e3)
}

/// How long the scripted program is shown.
const SCRIPTED_DURATION: Duration = Duration::from_secs(10);
/// Between two keys: eight a second, as a fast typist.
const KEY_PERIOD: Duration = Duration::from_millis(125);
/// Lines of figures are a second apart.
const KEYS_PER_LINE: u32 = 8;
