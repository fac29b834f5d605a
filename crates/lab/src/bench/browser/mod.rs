//! `wayferry bench browser`: typing into a terminal that a page in Chromium shows, over links that lose packets, and the
//! same in a page of noVNC before a VNC server.
//!
//! The host and its programs are processes in a network of their own, the browser is one here, and what passes between
//! the networks is TCP and UDP of the kernel. The page itself says when the pixels of its canvas changed after a key
//! (`watch.js`). Invariant: one key is on its way at a time.

mod chromium;
mod desk;

use std::time::Duration;

use wayferry_host::edge::signals::Signals;
use wayferry_stage::{LinkConfig, Loss};

use self::desk::Desk;
use super::{Figures, Row, Setting, Target, share, write_json};
use crate::error::Error;
use crate::flags::BenchFlags;
use crate::tunnel;

/// Measures; gives the exit code.
pub(crate) fn run(flags: &BenchFlags) -> Result<u8, Error> {
    if let Some(code) = tunnel::enter()? {
        return Ok(code);
    }
    let signals = Signals::new()?;
    let is_wanted =
        |viewer: &Viewer| flags.only.as_ref().is_none_or(|only| viewer.name().contains(only.as_str()));
    let mut rows = Vec::new();
    for (percent, target) in LOSSES {
        for viewer in [Viewer::Wayferry, Viewer::NoVnc].into_iter().filter(is_wanted) {
            let keys = if flags.quick { 20 } else { KEYS };
            let seen = Seen::of(Desk::start(viewer, links(percent), &signals)?, keys)?;
            let measured = seen.rows(viewer, percent, target);
            measured.iter().for_each(|row| println!("{}", row.line()));
            rows.extend(measured);
        }
    }
    if let Some(path) = &flags.json {
        write_json(path, &rows)?;
    }
    Ok(0)
}

/// What shows the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Viewer {
    Wayferry,
    NoVnc,
}

impl Viewer {
    fn name(self) -> &'static str {
        match self {
            Self::Wayferry => "browser, wayferry",
            Self::NoVnc => "browser, noVNC",
        }
    }
}

/// What was measured over one link.
struct Seen {
    /// Milliseconds from opening the page to its first picture.
    first: f64,
    /// How late letters were, in milliseconds.
    keys: Vec<f64>,
    typed: u32,
    /// Bytes of UDP or TCP payload from the host for each key.
    bytes: f64,
}

impl Seen {
    fn of(mut desk: Desk<'_>, count: u32) -> Result<Self, Error> {
        let first = desk.first_picture()?;
        // Until controllers and repair know the link.
        desk.type_letters(count / 4)?;
        let before = desk.bytes();
        let keys = desk.type_letters(count)?;
        let bytes = (desk.bytes() - before) as f64 / f64::from(count);
        Ok(Self { first, keys, typed: count, bytes })
    }

    fn rows(&self, viewer: Viewer, percent: f64, target: f64) -> Vec<Row> {
        let setting = Setting {
            rtt_ms: (2 * ONE_WAY).as_millis() as u32,
            rate_mbps: Some((RATE / 1_000_000) as u32),
            loss_percent: percent,
            loss_burst: 1.0,
        };
        let row = |metric, unit, figures, target| Row {
            case: viewer.name(),
            setting,
            buffers: None,
            metric,
            unit,
            figures,
            target: if viewer == Viewer::Wayferry { target } else { None },
        };
        let one = |metric, unit, value, target| row(metric, unit, Figures::one(value), target);
        let soon = Target::MedianAtMost(1500.0 + 4.0 * f64::from(setting.rtt_ms));
        vec![
            row("from key to pixel", "ms", Figures::of(&self.keys), None),
            one("p99 of it", "ms", share(&self.keys, 0.99), Some(Target::MedianAtMost(target))),
            one("letters not seen within 5 s", "", f64::from(self.typed) - self.keys.len() as f64, None),
            one("bytes from the host for a key", "", self.bytes, None),
            one("from opening to the first picture", "ms", self.first, Some(soon)),
        ]
    }
}

fn links(percent: f64) -> [LinkConfig; 2] {
    [1, 2].map(|seed| LinkConfig {
        rate: Some(RATE),
        one_way_delay: ONE_WAY,
        // One product of rate and round trip.
        queue_bytes: RATE / 8 * 2 * ONE_WAY.as_millis() as u64 / 1000,
        loss: if percent > 0.0 { Loss::Independent(percent / 100.0) } else { Loss::None },
        seed,
        ..LinkConfig::default()
    })
}

/// Packets lost each way, per cent, and the 99th percentile that is aimed at, in milliseconds.
const LOSSES: [(f64, f64); 3] = [(0.0, 112.0), (1.0, 125.0), (3.0, 130.0)];

/// Keys over each link.
const KEYS: u32 = 300;

/// Bits per second, and the way there.
const RATE: u64 = 20_000_000;
const ONE_WAY: Duration = Duration::from_millis(50);
