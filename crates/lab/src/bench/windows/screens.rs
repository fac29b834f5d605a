//! Cases with generated screens over a slow link: a page that scrolls, two windows that do, and a photograph.
//!
//! The screens are those of `wayferry bench pixels`, here drawn by a program and seen on the stage. Invariant: each
//! picture carries the time at which it was drawn, so what is measured is the whole way.

use std::sync::mpsc;
use std::time::Duration;

use wayferry_scenes::{Scene, Sequence};
use wayferry_stage::{
    Client, ClientError, Commit, Image, StageEvent, Stamped, Strip, SurfaceId, freshness, now,
};

use super::cpu::Meter;
use super::{Bench, ended, ms, rates};
use crate::bench::{Figures, Row, Setting, Target};
use crate::error::Error;

/// A link on which much of what programs show does not fit.
const SLOW: Setting = Setting { rtt_ms: 50, rate_mbps: Some(5), loss_percent: 0.0, loss_burst: 1.0 };

/// A link on which all fits.
const FAST: Setting = Setting { rtt_ms: 20, rate_mbps: Some(100), loss_percent: 0.0, loss_burst: 1.0 };
/// The case of [`scroll`].
const SCROLL: &str = "scroll-1080p";

/// A page that scrolls with every frame callback.
pub(super) fn page(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let rig = bench.rig(SLOW)?;
    let program = rig.program(|client| play(client, Sequence::Page, Duration::ZERO, None))?;
    let (window, _) = rig.window(Sequence::Page.name())?;
    rig.pass(Duration::from_secs(2))?;
    let from = now();
    rig.pass(bench.duration())?;
    let events = rig.events();
    let late: Vec<Stamped> = events.iter().filter(|stamped| stamped.time >= from).cloned().collect();
    ended(program)?;
    let age = Figures::of(&ms(&freshness(&late, window)));
    let rates = Figures::of(&rates(&events, window, from));
    Ok(vec![
        row("page-scroll-5mbit", "from drawn to shown", "ms", age, None),
        row("page-scroll-5mbit", "commits shown, each half second", "fps", rates, None),
    ])
}

/// The same over a link on which all of it fits: what that takes of the processor.
pub(super) fn scroll(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let rig = bench.rig(FAST)?;
    let program = rig.program(|client| play(client, Sequence::Page, Duration::ZERO, None))?;
    let (window, _) = rig.window(Sequence::Page.name())?;
    rig.pass(Duration::from_secs(2))?;
    let (from, meter) = (now(), Meter::start());
    rig.pass(bench.duration())?;
    let (spent, events) = (meter.spent(), rig.events());
    ended(program)?;
    let rates = rates(&events, window, from);
    let late: Vec<Stamped> = events.into_iter().filter(|stamped| stamped.time >= from).collect();
    let frame = spent.as_secs_f64() / frames(&late, window).max(1) as f64;
    let row =
        |metric, unit, figures, target| Row { setting: FAST, ..row(SCROLL, metric, unit, figures, target) };
    Ok(vec![
        row("processor for a frame, both sides", "ms", Figures::one(frame * 1e3), None),
        row("share of a core at 60 fps", "%", Figures::one(frame * 6e3), Some(Target::MedianAtMost(32.0))),
        row("commits shown, each half second", "fps", Figures::of(&rates), None),
    ])
}

/// Pictures of a window that were shown.
fn frames(events: &[Stamped], window: SurfaceId) -> usize {
    let shows =
        |stamped: &&Stamped| matches!(&stamped.event, StageEvent::Commit(commit) if commit.surface == window);
    events.iter().filter(shows).count()
}

/// A photograph takes the place of another one all over the screen, on a link that has nothing else to do.
pub(super) fn photo(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let rig = bench.rig(SLOW)?;
    let (tell, told) = mpsc::channel();
    let program = rig.program(move |client| play(client, Sequence::Photo, PHOTO_PERIOD, Some(&tell)))?;
    let (window, _) = rig.window(Sequence::Photo.name())?;
    let from = now();
    rig.pass(PHOTO_PERIOD * if bench.quick { 2 } else { 4 })?;
    let events = rig.events();
    ended(program)?;
    let photos: Vec<Photo> = told.try_iter().filter(|photo| photo.drawn >= from).collect();
    let first = photos.iter().filter_map(|photo| photo.first_seen(&events, window));
    let exact = photos.iter().filter_map(|photo| photo.exact(&events, window));
    let target = Some(Target::MedianAtMost(f64::from(SLOW.rtt_ms) / 2.0 + 60.0));
    let figures = |times: Vec<Duration>| Figures::of(&ms(&times));
    Ok(vec![
        row("photo-5mbit", "from drawn to first seen", "ms", figures(first.collect()), target),
        row("photo-5mbit", "from drawn to exact", "ms", figures(exact.collect()), None),
    ])
}

/// Two windows that scroll want more than the link has; the keyboard is in one of them.
pub(super) fn competing(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let rig = bench.rig(SLOW)?;
    let sequences = [Sequence::Page, Sequence::Term];
    let mut programs = Vec::new();
    let mut windows = Vec::new();
    for sequence in sequences {
        programs.push(rig.program(move |client| play(client, sequence, Duration::ZERO, None))?);
        windows.push(rig.window(sequence.name())?.0);
    }
    rig.stage.set_focus(windows.first().copied());
    rig.pass(Duration::from_secs(2))?;
    let from = now();
    rig.pass(bench.duration())?;
    let (events, to) = (rig.events(), now());
    programs.into_iter().try_for_each(ended)?;
    let late: Vec<Stamped> = events.into_iter().filter(|stamped| stamped.time >= from).collect();
    let names = [
        ("from drawn to shown, with the keyboard", "longest pause, with the keyboard"),
        ("from drawn to shown, without", "longest pause, without"),
    ];
    let mut rows = Vec::new();
    for (window, (age, pause)) in windows.into_iter().zip(names) {
        let commits = late.iter().filter(
            |stamped| matches!(&stamped.event, StageEvent::Commit(commit) if commit.surface == window),
        );
        // Before the first one and after the last it waits, too.
        let times = [from].into_iter().chain(commits.map(|stamped| stamped.time)).chain([to]);
        let times: Vec<Duration> = times.collect();
        let pauses = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        let longest = pauses.max().unwrap_or_default();
        let figures = |times: &[Duration]| Figures::of(&ms(times));
        rows.push(row("competing-5mbit", age, "ms", figures(&freshness(&late, window)), None));
        let turn = Some(Target::MostAtMost(250.0));
        rows.push(row("competing-5mbit", pause, "ms", figures(&[longest]), turn));
    }
    Ok(rows)
}

/// A picture that the program has drawn.
struct Photo {
    drawn: Duration,
    checksum: u64,
}

impl Photo {
    /// When the screen first showed it, however lossily.
    fn first_seen(&self, events: &[Stamped], window: SurfaceId) -> Option<Duration> {
        self.after(events, window, |commit| commit.strip.is_some_and(|strip| strip.drawn == self.drawn))
    }

    /// When the screen showed it as it was drawn.
    fn exact(&self, events: &[Stamped], window: SurfaceId) -> Option<Duration> {
        self.after(events, window, |commit| commit.checksum == self.checksum)
    }

    fn after(
        &self,
        events: &[Stamped],
        window: SurfaceId,
        wanted: impl Fn(&Commit) -> bool,
    ) -> Option<Duration> {
        let shows = |stamped: &&Stamped| match &stamped.event {
            StageEvent::Commit(commit) => commit.surface == window && wanted(commit),
            _ => false,
        };
        events.iter().find(shows).map(|stamped| stamped.time.saturating_sub(self.drawn))
    }
}

fn row(
    case: &'static str,
    metric: &'static str,
    unit: &'static str,
    figures: Figures,
    target: Option<Target>,
) -> Row {
    Row { case, setting: SLOW, buffers: Some(2), metric, unit, figures, target }
}

/// Shows a sequence, a picture with each frame callback and no sooner than `period` after the one before, until its
/// window is closed. Tells what it has drawn, and marks that so that it can be read from lossy pictures.
fn play(
    client: &mut Client,
    sequence: Sequence,
    period: Duration,
    tell: Option<&mpsc::Sender<Photo>>,
) -> Result<(), ClientError> {
    let (width, height) = sequence.size();
    let window = client.window(sequence.name(), width, height)?;
    client.set_buffers(window, 2);
    let mut scene = Scene::new(sequence, 1);
    let mut image = Image::new(width, height, 0);
    for frame in 1.. {
        for (y, row) in (0..height).zip(scene.frame().pixels.chunks_exact(width as usize)) {
            for (target, pixel) in image.row_mut(y).iter_mut().zip(row) {
                *target = u32::from_le_bytes(*pixel) | 0xff00_0000;
            }
        }
        let strip = Strip { frame, drawn: now(), value: 0 };
        match tell {
            Some(tell) => {
                strip.draw_large(&mut image);
                // No reader is left when the bench is over.
                let _ = tell.send(Photo { drawn: strip.drawn, checksum: image.checksum() });
            }
            None => {
                strip.draw(&mut image);
            }
        }
        client.ask_frame(window);
        client.draw(window, &image)?;
        client.wait_frame(window)?;
        if client.closed(window) {
            break;
        }
        std::thread::sleep(period);
        scene.step();
    }
    Ok(())
}

/// Long enough for a lossless photograph to be whole before the next one.
const PHOTO_PERIOD: Duration = Duration::from_secs(4);
