//! `wayferry demo`: both sides on this machine with a bad link between them.
//!
//! The scripted program is shown by built-in stages, which type into it, so that the latency of a key can be told, and
//! what they show is seen in one window of the user's desktop ([`board`]); a program of the user's choice is shown on
//! the desktop itself. It ends with a summary on stdout and a picture. Invariant: the figures are those of the real
//! code on a real QUIC connection; only the link is emulated.

mod board;
mod eye;
mod figures;
mod paper;
mod scene;

use std::iter::Cycle;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::str::Chars;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wayferry_stage::{Demo, Endpoint, Image, Program};

use crate::error::{Error, SessionError};
use crate::flags::{DemoFlags, OwnFlags};
use board::Board;
use figures::closing;
use paper::Paper;
use scene::Scene;
use wayferry_host::display_side::Compositor;
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::RuntimeDir;
use wayferry_host::settings::Delivery;

/// Runs the demo; gives the exit code of the program.
pub(crate) fn run(own: &OwnFlags, flags: &DemoFlags) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let paper = Paper::new(&flags.png)?;
    let dir = RuntimeDir::private()?;
    let desktop = desktop(flags);
    let mut show = Show::start(own, flags, desktop.clone(), &dir, &signals)?;
    show.introduce(flags, desktop.is_some());
    let began = Instant::now();
    show.watch(flags, &signals)?;
    let elapsed = began.elapsed();
    println!("summary after {:.1} s:", elapsed.as_secs_f64());
    let several = show.scenes.len() > 1;
    for scene in &show.scenes {
        let name = if several { format!("{}: ", scene.mode().name()) } else { String::new() };
        scene.summary(&name, elapsed);
    }
    let closing = show.closing();
    if let Some(picture) = show.picture() {
        paper.take(&picture)?;
        println!("picture of the display: {}", flags.png.display());
        paper::open(&flags.png);
    }
    if let Some(closing) = closing {
        println!("{closing}");
    }
    show.end()
}

/// The compositor on which the user sees what happens.
fn desktop(flags: &DemoFlags) -> Option<PathBuf> {
    match Compositor::from_environment() {
        Ok(Compositor::At(socket)) if !flags.stage => Some(socket),
        _ => None,
    }
}

/// All that is shown.
struct Show {
    // First: it looks at the stages of the scenes.
    window: Option<Program>,
    board: Option<Arc<Board>>,
    scenes: Vec<Scene>,
    /// What is still to be typed.
    keys: Cycle<Chars<'static>>,
}

impl Show {
    fn start(
        own: &OwnFlags,
        flags: &DemoFlags,
        desktop: Option<PathBuf>,
        dir: &RuntimeDir,
        signals: &Signals,
    ) -> Result<Self, Error> {
        let scripted = flags.program.is_empty();
        let modes = match (own.delivery, scripted) {
            (None, true) => vec![Delivery::Total, Delivery::Repair],
            (mode, _) => vec![mode.unwrap_or_default()],
        };
        let beneath = desktop.clone().filter(|_| !scripted);
        let start = |mode| Scene::start(own, flags, mode, beneath.clone(), dir, signals);
        let scenes: Vec<Scene> = modes.into_iter().map(start).collect::<Result<_, _>>()?;
        let stages = scenes.iter().filter_map(Scene::stage).collect();
        let board = scripted.then(|| Arc::new(Board::new(stages)));
        let window = match (&board, desktop) {
            (Some(board), Some(socket)) => {
                let board = Arc::clone(board);
                let program = Program::start(Endpoint::Socket(socket), move |client| board.show(client));
                Some(program.map_err(|source| SessionError::System { doing: "opening the window", source })?)
            }
            _ => None,
        };
        Ok(Self { window, board, scenes, keys: Demo::TEXT.chars().cycle() })
    }

    fn introduce(&self, flags: &DemoFlags, desktop: bool) {
        println!(
            "{} on {}, over a link of {} ms round trip, {} % loss, {} Mbit/s",
            flags.program.first().map_or("the scripted program".into(), |program| program.to_string_lossy()),
            if desktop { "this desktop" } else { "the built-in stage" },
            flags.rtt,
            flags.loss,
            flags.rate
        );
        if self.scenes.len() > 1 {
            println!(
                "two sessions, each over such a link of its own: `total` has everything on one ordered stream, `repair` is Wayferry"
            );
        }
    }

    /// Waits for the end, typing and telling figures meanwhile.
    fn watch(&mut self, flags: &DemoFlags, signals: &Signals) -> Result<(), Error> {
        let scripted_end = || flags.program.is_empty().then_some(SCRIPTED_DURATION);
        let end = flags.duration.or_else(scripted_end).map(|duration| Instant::now() + duration);
        let mut turn = 0u32;
        while !self.is_over() && end.is_none_or(|at| Instant::now() < at) {
            if !self.wait(signals)? {
                break;
            }
            turn += 1;
            self.type_key(flags);
            if turn.is_multiple_of(KEYS_PER_LINE) {
                self.tell();
            }
        }
        // What was typed last is still on its way.
        let late = Instant::now() + LAST_KEYS;
        self.scenes.iter_mut().for_each(|scene| scene.await_keys(late));
        Ok(())
    }

    /// Waits for the time of a key; false if the user has seen enough.
    fn wait(&self, signals: &Signals) -> Result<bool, Error> {
        let ended: Vec<_> = self.scenes.iter().map(|scene| scene.session().app().as_fd()).collect();
        match signals.wait_readable(&ended, Some(KEY_PERIOD)) {
            Ok(_) => Ok(true),
            Err(SessionError::Signal(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn is_over(&self) -> bool {
        self.scenes.iter().any(Scene::is_over) || self.window.as_ref().is_some_and(Program::is_finished)
    }

    /// Types the next key into the scripted programs, once each has its window and while no user types.
    fn type_key(&mut self, flags: &DemoFlags) {
        let ready = flags.program.is_empty() && self.scenes.iter().all(Scene::has_window);
        if !ready || self.board.as_ref().is_none_or(|board| board.was_typed_into()) {
            return;
        }
        if let Some(key) = self.keys.next() {
            self.scenes.iter_mut().for_each(|scene| scene.type_letter(key));
        }
    }

    /// The figures since the last call, on stdout and on the board.
    fn tell(&mut self) {
        let mut told = Vec::new();
        let mut under = Vec::new();
        for scene in &mut self.scenes {
            let figures = scene.figures();
            told.push(format!("{}: {figures}", scene.mode().name()));
            under.push(scene.recently());
        }
        println!("  {}", told.join("  |  "));
        if let Some(board) = &self.board {
            board.tell_each(under);
        }
    }

    /// The sentence that says how it went, if anything was typed; it is on the board from now on.
    fn closing(&self) -> Option<String> {
        let (ours, others) = self.scenes.split_last()?;
        let closing = closing(&ours.keys(), others.first().map(Scene::keys).as_ref())?;
        if let Some(board) = &self.board {
            board.tell_each(self.scenes.iter().map(Scene::on_the_whole).collect());
            board.tell_all(&closing);
        }
        Some(closing)
    }

    fn picture(&self) -> Option<Image> {
        match &self.board {
            Some(board) => board.picture(),
            None => self.scenes.iter().find_map(Scene::picture),
        }
    }

    fn end(self) -> Result<u8, Error> {
        drop(self.window);
        let codes: Vec<_> = self.scenes.into_iter().map(Scene::end).collect();
        codes.into_iter().try_fold(0, |worst, code| Ok(worst.max(code?)))
    }
}

/// How long the scripted program is shown.
const SCRIPTED_DURATION: Duration = Duration::from_secs(10);
/// Between two keys: six a second, as a typist.
const KEY_PERIOD: Duration = Duration::from_millis(160);
/// Lines of figures are about a second apart.
const KEYS_PER_LINE: u32 = 6;
/// How long the last keys may take.
const LAST_KEYS: Duration = Duration::from_secs(3);
