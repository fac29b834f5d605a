//! `wayferry bench browser`: typing into a terminal that a page in Chromium shows, over links that lose packets, and
//! scrolling in it, and the same in pages of noVNC before VNC servers; and decoding in the page alone.
//!
//! The host and its programs are processes in a network of their own, the browser is one here, and what passes between
//! the networks is TCP and UDP of the kernel. The page itself says when the pixels of its canvas changed after a key
//! (`watch.js`), or its worker does if that paints it (`painted.js`). Invariant: one key is on its way at a time.

mod chromium;
mod decode;
mod desk;
mod row;
mod scroll;

use std::time::Duration;

use wayferry_host::edge::signals::Signals;
use wayferry_stage::{LinkConfig, Loss};

use self::decode::{Decoded, Kind};
use self::desk::{Desk, Eyes, Typed};
use self::row::{Row, Target};
use self::scroll::Scrolled;
use super::{document, headless, write_text};
use crate::error::Error;
use crate::flags::BenchFlags;
use crate::tunnel;

/// Measures; gives the exit code.
pub(crate) fn run(flags: &BenchFlags) -> Result<u8, Error> {
    if let Some(code) = tunnel::enter()? {
        return Ok(code);
    }
    let signals = Signals::new()?;
    let mut rows = Vec::new();
    let mut tell = |browser: &str, told: Vec<Row>| {
        for row in told {
            row.lines().for_each(|line| println!("{line}"));
            rows.push(row.json(browser));
        }
    };
    let bench = Bench { viewers: viewers(flags), signals: &signals, quick: flags.quick };
    if is_wanted(flags, "keys") {
        for (percent, most) in LOSSES {
            let seen = bench.keys(percent)?;
            tell(&browser(seen.each_ref().map(|seen| &seen.browser)), told(percent, most, &seen));
        }
    }
    if is_wanted(flags, "scroll") {
        for (percent, _) in LOSSES.into_iter().take(SCROLLED) {
            let (name, scrolled) = bench.scroll(percent)?;
            tell(&name, scroll::told(percent, &scrolled));
        }
    }
    if is_wanted(flags, "decode") && bench.viewers[0].is_some() {
        for kind in [Kind::Text, Kind::Photograph] {
            let (name, decoded) = bench.decode(kind)?;
            tell(&name, decode::told(kind, decoded));
        }
    }
    if let Some(path) = &flags.json {
        write_text(path, &format!("{:#}\n", document(&rows)))?;
    }
    Ok(0)
}

/// Whether a part is to be measured: `--only` names a part, or a page.
fn is_wanted(flags: &BenchFlags, part: &str) -> bool {
    let is_part = |only: &str| PARTS.iter().any(|part| part.contains(only));
    flags.only.as_deref().is_none_or(|only| !is_part(only) || part.contains(only))
}

/// The pages that are to be measured.
fn viewers(flags: &BenchFlags) -> Each<Option<Viewer>> {
    let is_page = |only: &str| VIEWERS.iter().any(|viewer| viewer.name().contains(only));
    let named = flags.only.as_deref().filter(|only| is_page(only));
    // Who asks for it by name is told what it needs.
    let is_possible = |viewer: Viewer| viewer != Viewer::WayVnc || headless::is_possible();
    VIEWERS.map(|viewer| {
        named.map_or(is_possible(viewer), |only| viewer.name().contains(only)).then_some(viewer)
    })
}

/// What the browser called itself in those that were measured.
fn browser(names: Each<&String>) -> String {
    names.into_iter().find(|name| !name.is_empty()).cloned().unwrap_or_default()
}

/// What all measurements have in common.
struct Bench<'a> {
    viewers: Each<Option<Viewer>>,
    signals: &'a Signals,
    quick: bool,
}

impl Bench<'_> {
    /// Opens each page and types into it, over a link that loses so much.
    fn keys(&self, percent: f64) -> Result<Each<Seen>, Error> {
        let (keys, openings) = if self.quick { (20, 1) } else { (KEYS, OPENINGS) };
        let mut seen: Each<Seen> = Each::default();
        for opening in 0..openings {
            for (seen, viewer) in seen.iter_mut().zip(self.viewers) {
                let Some(viewer) = viewer else { continue };
                let mut desk = Desk::start(viewer, SILENT, links(percent, opening), self.signals)?;
                seen.first.push(desk.first_picture()?);
                if opening == 0 {
                    seen.type_letters(&mut desk, keys)?;
                }
                desk.browser()?.clone_into(&mut seen.browser);
            }
        }
        Ok(seen)
    }

    /// Decodes pictures in our page; tells the browser's name, too.
    fn decode(&self, kind: Kind) -> Result<(String, Decoded), Error> {
        let mut desk = Desk::start(Viewer::Wayferry, SILENT, links(0.0, 0), self.signals)?;
        desk.first_picture()?;
        desk.settle()?;
        let decoded = decode::measure(&mut desk, kind, if self.quick { 3 } else { PICTURES })?;
        Ok((desk.browser()?, decoded))
    }

    /// Scrolls in each page, over a link that loses so much; tells the browser's name, too.
    fn scroll(&self, percent: f64) -> Result<(String, Each<Scrolled>), Error> {
        let time = if self.quick { SCROLL_QUICKLY } else { SCROLL };
        let mut scrolled: Each<Scrolled> = Each::default();
        let mut name = String::new();
        for (scrolled, viewer) in scrolled.iter_mut().zip(self.viewers) {
            let Some(viewer) = viewer else { continue };
            let mut desk = Desk::start(viewer, SCROLLER, links(percent, 0), self.signals)?;
            desk.first_picture()?;
            *scrolled = scroll::measure(&mut desk, time)?;
            desk.browser()?.clone_into(&mut name);
        }
        Ok((name, scrolled))
    }
}

/// What shows the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Viewer {
    Wayferry,
    /// noVNC before TigerVNC.
    TigerVnc,
    /// noVNC before wayvnc.
    WayVnc,
}

/// One of each viewer's.
type Each<T> = [T; VIEWERS.len()];

const VIEWERS: [Viewer; 3] = [Viewer::Wayferry, Viewer::TigerVnc, Viewer::WayVnc];

impl Viewer {
    fn name(self) -> &'static str {
        match self {
            Self::Wayferry => "wayferry",
            Self::TigerVnc => "tigervnc-novnc",
            Self::WayVnc => "wayvnc-novnc",
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
fn told(loss_percent: f64, most: f64, seen: &Each<Seen>) -> Vec<Row> {
    let soon = 1500.0 + 4.0 * FLOOR.as_millis() as f64;
    let count = |seen: &Seen, number: u32| {
        if seen.bytes.is_empty() { vec![] } else { vec![f64::from(number)] }
    };
    let at_most = |part, most| Some(Target::AtMost(part, most));
    let row = |case, unit, part: &dyn Fn(&Seen) -> Vec<f64>, target| {
        row(case, unit, loss_percent, seen.each_ref().map(part), target)
    };
    vec![
        row("key-to-pixel", "ms", &|seen| seen.typed.late.clone(), at_most(0.99, most)),
        row("page-later", "ms", &|seen| seen.typed.later.clone(), None),
        row("keys-unseen", "keys", &|seen| count(seen, seen.typed.unseen), at_most(1.0, 0.0)),
        row("changes-early", "", &|seen| count(seen, seen.typed.early), None),
        row("bytes-per-key", "B", &|seen| seen.bytes.clone(), None),
        row("page-load", "ms", &|seen| seen.first.clone(), at_most(0.5, soon)),
    ]
}

/// What was measured of all pages over such a link.
fn row(
    case: &'static str,
    unit: &'static str,
    loss_percent: f64,
    [ours, peers @ ..]: Each<Vec<f64>>,
    target: Option<Target>,
) -> Row {
    let (rtt_ms, rate_mbps) = (FLOOR.as_millis() as u32, (RATE / 1_000_000) as u32);
    Row { case, rtt_ms, rate_mbps, loss_percent, ours, peers, unit, target }
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

/// How many of them are scrolled over, and for how long each time.
const SCROLLED: usize = 2;
const SCROLL: Duration = Duration::from_secs(10);
const SCROLL_QUICKLY: Duration = Duration::from_secs(3);

/// What `--only` may name beside pages.
const PARTS: [&str; 3] = ["keys", "scroll", "decode"];

/// Pictures of a kind that are decoded.
const PICTURES: usize = 10;

/// A terminal that shows what is typed.
const SILENT: &str = "stty -icanon; exec cat > /dev/null";
/// One that waits for a key, and then writes 125 lines of words a second: two for a frame.
const SCROLLER: &str = r#"stty -icanon -echo; head -c 1 > /dev/null; exec perl -e '$| = 1; srand 1;
    @words = map { join "", map { chr 97 + rand 26 } 0 .. 1 + rand 8 } 0 .. 999;
    for (;;) {
        print join(" ", map { $words[rand @words] } 0 .. 13), "
";
        select undef, undef, undef, 0.008;
    }'"#;

/// Keys over each link, and how often each page is opened there.
const KEYS: u32 = 160;
const OPENINGS: u64 = 3;

/// Bits per second, and the way there.
const RATE: u64 = 20_000_000;
const ONE_WAY: Duration = Duration::from_millis(50);
/// There and back: nothing is answered sooner.
const FLOOR: Duration = Duration::from_millis(100);
