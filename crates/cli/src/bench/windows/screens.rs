//! Cases with generated screens over a slow link: a page that scrolls, and a photograph.
//!
//! The screens are those of `wayferry bench pixels`, here drawn by a program and seen on the stage. Invariant: each picture
//! carries the time at which it was drawn, so what is measured is the whole way.

use std::time::Duration;

use wayferry_scenes::{Scene, Sequence};
use wayferry_stage::{Client, ClientError, Image, Stamped, Strip, freshness, now};

use super::{Bench, ended, ms, rates};
use crate::bench::{Figures, Row, Setting, Target};
use crate::error::Error;

/// A link on which much of what programs show does not fit.
const SLOW: Setting = Setting { rtt_ms: 50, rate_mbps: Some(5), loss_percent: 0.0, loss_burst: 1.0 };

/// A page that scrolls with every frame callback.
pub(super) fn page(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let rig = bench.rig(SLOW)?;
    let program = rig.program(|client| play(client, Sequence::Page, Duration::ZERO))?;
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

/// A photograph takes the place of another one all over the screen, on a link that has nothing else to do.
pub(super) fn photo(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let rig = bench.rig(SLOW)?;
    let program = rig.program(|client| play(client, Sequence::Photo, PHOTO_PERIOD))?;
    let (window, _) = rig.window(Sequence::Photo.name())?;
    let from = now();
    rig.pass(PHOTO_PERIOD * if bench.quick { 2 } else { 4 })?;
    let events = rig.events();
    let late: Vec<Stamped> = events.iter().filter(|stamped| stamped.time >= from).cloned().collect();
    ended(program)?;
    let first = Figures::of(&ms(&freshness(&late, window)));
    let target = Some(Target::MedianAtMost(f64::from(SLOW.rtt_ms) / 2.0 + 60.0));
    Ok(vec![row("photo-5mbit", "from drawn to first seen", "ms", first, target)])
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

/// Shows a sequence, a picture with each frame callback and no sooner than `period` after the one before, until its window
/// is closed.
fn play(client: &mut Client, sequence: Sequence, period: Duration) -> Result<(), ClientError> {
    let (width, height) = sequence.size();
    let window = client.window(sequence.name(), width, height)?;
    client.set_buffers(window, 2);
    let mut scene = Scene::new(sequence, 1);
    let mut image = Image::new(width, height, 0);
    for frame in 1.. {
        for (y, row) in (0..height).zip(scene.frame().pixels.chunks_exact(width as usize)) {
            for (target, pixel) in image.row_mut(y).iter_mut().zip(row) {
                *target = u32::from_le_bytes(*pixel);
            }
        }
        Strip { frame, drawn: now(), value: 0 }.draw(&mut image);
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
