//! `wayferry bench browser`: typing into a terminal that a page in Chromium shows, over links that lose packets, and
//! the same in a page of noVNC before a VNC server.
//!
//! The host and its programs are processes in a network of their own, the browser is one here, and what passes between
//! the networks is TCP and UDP of the kernel. The page itself says when the pixels of its canvas changed after a key
//! (`watch.js`), or its worker does if that paints it (`painted.js`). Invariant: one key is on its way at a time.

mod chromium;
mod desk;
mod row;

use std::time::Duration;

use wayferry_host::edge::signals::Signals;
use wayferry_stage::{LinkConfig, Loss};

use self::desk::{Desk, Eyes, Typed};
use self::row::Row;
use super::{document, write_text};
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
    let viewers = [Viewer::Wayferry, Viewer::NoVnc].map(|viewer| is_wanted(&viewer).then_some(viewer));
    let (keys, openings) = if flags.quick { (20, 1) } else { (KEYS, OPENINGS) };
    let mut rows = Vec::new();
    for (percent, most) in LOSSES {
        let mut seen = [Seen::default(), Seen::default()];
        for opening in 0..openings {
            for (seen, viewer) in seen.iter_mut().zip(viewers) {
                let Some(viewer) = viewer else { continue };
                let mut desk = Desk::start(viewer, links(percent, opening), &signals)?;
                seen.first.push(desk.first_picture()?);
                if opening == 0 {
                    seen.type_letters(&mut desk, keys)?;
                }
                desk.browser()?.clone_into(&mut seen.browser);
            }
        }
        let [ours, peer] = seen;
        let browser = if ours.browser.is_empty() { &peer.browser } else { &ours.browser }.clone();
        for row in told(percent, most, ours, peer) {
            row.lines().for_each(|line| println!("{line}"));
            rows.push(row.json(&browser));
        }
    }
    if let Some(path) = &flags.json {
        write_text(path, &format!("{:#}\n", document(&rows)))?;
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
            Self::Wayferry => "wayferry",
            Self::NoVnc => "noVNC",
        }
    }
}

/// What was measured of one page over one link.
#[derive(Debug, Default)]
struct Seen {
    browser: String,
    /// Milliseconds from opening the page to its first picture, each time.
    first: Vec<f64>,
    typed: Typed,
    /// Bytes of IP packets from the host for each key.
    bytes: Vec<f64>,
}

impl Seen {
    fn type_letters(&mut self, desk: &mut Desk<'_>, count: u32) -> Result<(), Error> {
        desk.settle()?;
        // Until controllers and repair know the link.
        desk.type_letters(count / 4, FLOOR, Eyes::Painter)?;
        let before = desk.bytes();
        self.typed = desk.type_letters(count, FLOOR, Eyes::Painter)?;
        self.bytes = vec![(desk.bytes() - before) as f64 / f64::from(count)];
        if desk.has_painter() {
            self.typed.later = desk.type_letters(count / 4, FLOOR, Eyes::Both)?.later;
        }
        Ok(())
    }
}

/// What is told of a link that loses so much; at most `most` milliseconds are the goal for p99 of keys.
fn told(loss_percent: f64, most: f64, ours: Seen, peer: Seen) -> Vec<Row> {
    let rtt_ms = FLOOR.as_millis() as u32;
    let row = |case, unit, ours, peer, target| Row {
        case,
        rtt_ms,
        rate_mbps: (RATE / 1_000_000) as u32,
        loss_percent,
        ours,
        peer,
        unit,
        target,
    };
    let soon = 1500.0 + 4.0 * f64::from(rtt_ms);
    let count = |seen: &Seen, number: fn(&Typed) -> u32| {
        if seen.bytes.is_empty() { vec![] } else { vec![f64::from(number(&seen.typed))] }
    };
    let counted = |number| (count(&ours, number), count(&peer, number));
    let (our_unseen, peer_unseen) = counted(|typed| typed.unseen);
    let (our_early, peer_early) = counted(|typed| typed.early);
    let later = ours.typed.later;
    vec![
        row("key-to-pixel", "ms", ours.typed.late, peer.typed.late, Some((0.99, most))),
        row("page-later", "ms", later, vec![], None),
        row("keys-unseen", "keys", our_unseen, peer_unseen, Some((1.0, 0.0))),
        row("changes-early", "", our_early, peer_early, None),
        row("bytes-per-key", "B", ours.bytes, peer.bytes, None),
        row("page-load", "ms", ours.first, peer.first, Some((0.5, soon))),
    ]
}

fn links(percent: f64, opening: u64) -> [LinkConfig; 2] {
    [1, 2].map(|way| LinkConfig {
        rate: Some(RATE),
        one_way_delay: ONE_WAY,
        // One product of rate and round trip.
        queue_bytes: RATE / 8 * FLOOR.as_millis() as u64 / 1000,
        loss: if percent > 0.0 { Loss::Independent(percent / 100.0) } else { Loss::None },
        seed: 2 * opening + way,
        ..LinkConfig::default()
    })
}

/// Packets lost each way, per cent, and the 99th percentile that is aimed at, in milliseconds.
const LOSSES: [(f64, f64); 3] = [(0.0, 112.0), (1.0, 125.0), (3.0, 130.0)];

/// Keys over each link, and how often each page is opened there.
const KEYS: u32 = 160;
const OPENINGS: u64 = 3;

/// Bits per second, and the way there.
const RATE: u64 = 20_000_000;
const ONE_WAY: Duration = Duration::from_millis(50);
/// There and back: nothing is answered sooner.
const FLOOR: Duration = Duration::from_millis(100);
