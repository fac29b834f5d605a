//! Typing into a terminal that is a window of its own, and into the same on a whole screen; and that screen at rest.
//!
//! The screen is sway's without a monitor, with nothing on it but the terminal. Invariant: a key is answered before the
//! next one is pressed, or is not.

use std::fs;
use std::time::Duration;

use wayferry_stage::{LinkConfig, LinkStats, StageEvent, Stamped, SurfaceId, now};

use super::site::Site;
use super::{LETTERS, ONE_WAY, RATE, Trouble, foot, load};
use crate::bench::headless::Screen;
use crate::bench::processes::beside;
use crate::bench::{Figures, Row, Setting, Target};
use crate::error::Error;
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::RuntimeDir;

/// What `--only` calls it.
pub(super) const NAME: &str = "screen";

/// Measures both, the one beside the other.
pub(super) fn measure(quick: bool, signals: &Signals) -> Result<Vec<Row>, Error> {
    let keys = if quick { 20 } else { KEYS };
    let window = {
        let script = format!("exec {} --title={TITLE} sh -c '{ECHO}'", foot(COLUMNS, ROWS));
        Desk::start(&script, TITLE, signals)?.type_keys(keys)?
    };
    let terminal = format!("{} --title={TITLE}", foot(COLUMNS, ROWS));
    let screen = Screen::start([&terminal, ECHO], signals, |mut sway| sway.spawn())?;
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let desk = Desk::start(&script(&screen), &format!("Desktop of {}", host.trim()), signals)?;
    let shown = desk.type_keys(keys)?;
    let rest = desk.rest(if quick { REST / 6 } else { REST })?;
    Ok(rows(&window, &shown, rest))
}

fn rows(window: &Typed, screen: &Typed, (frames, bytes): (u64, u64)) -> Vec<Row> {
    let setting = Setting {
        rtt_ms: (2 * ONE_WAY).as_millis() as u32,
        rate_mbps: Some((RATE / 1_000_000) as u32),
        loss_percent: 0.0,
        loss_burst: 1.0,
    };
    let row = |metric, unit, figures, target| Row {
        case: NAME,
        setting,
        buffers: None,
        metric,
        unit,
        figures,
        target,
    };
    let one = |metric, unit, value, target| row(metric, unit, Figures::one(value), target);
    let most = f64::from(setting.rtt_ms) + 25.0;
    let unanswered = f64::from(window.unanswered + screen.unanswered);
    vec![
        row("key to picture, a window", "ms", Figures::of(&window.late), None),
        row("key to picture, a screen", "ms", Figures::of(&screen.late), Some(Target::MedianAtMost(most))),
        one("keys without a picture", "", unanswered, Some(Target::MostAtMost(0.0))),
        one("bytes for a key, a window", "B", window.bytes, None),
        one("bytes for a key, a screen", "B", screen.bytes, Some(Target::MedianAtMost(1.2 * window.bytes))),
        one("frames of a screen at rest", "", frames as f64, Some(Target::MostAtMost(0.0))),
        one("bytes of it", "B", bytes as f64, Some(Target::MostAtMost(2000.0))),
        one("load average of the machine", "", load(), None),
    ]
}

/// What typing gave.
struct Typed {
    /// From each key to the next picture, in milliseconds.
    late: Vec<f64>,
    unanswered: u32,
    /// Both ways, for each key; payloads of UDP.
    bytes: f64,
}

/// A session with one window on a stage.
struct Desk<'a> {
    site: Site<'a>,
    window: SurfaceId,
}

impl<'a> Desk<'a> {
    fn start(script: &str, title: &str, signals: &'a Signals) -> Result<Self, Error> {
        let links: [LinkConfig; 2] = [1, 2].map(|seed| Trouble::NONE.config(seed));
        let site = Site::start(RuntimeDir::private()?, links, script, &[], signals)?;
        let (window, _) = site.window(title)?;
        site.stage.set_focus(Some(window));
        // A screen takes on the window's size, and the terminal its screen's.
        site.pass(SETTLE)?;
        Ok(Self { site, window })
    }

    fn type_keys(&self, count: u32) -> Result<Typed, Error> {
        // Until controllers and repair know the link.
        self.keys(count / 4)?;
        let before = payload(&self.site.beyond.stats());
        let (late, unanswered) = self.keys(count)?;
        let bytes = payload(&self.site.beyond.stats()) - before;
        Ok(Typed { late, unanswered, bytes: bytes as f64 / f64::from(count) })
    }

    /// How late each key was answered, and how many were not.
    fn keys(&self, count: u32) -> Result<(Vec<f64>, u32), Error> {
        let mut late = Vec::new();
        for (at, letter) in LETTERS.chars().cycle().take(count as usize).enumerate() {
            let events = self.site.stage.events_from_now();
            let pressed = now();
            self.site.stage.type_text(&letter.to_string());
            // No multiple of a frame, and never the same.
            self.site.pass(KEY_PERIOD + Duration::from_millis((at as u64 * 37) % 67))?;
            let answers = events.try_iter().filter(|event| self.is_picture(event));
            let answer = answers.map(|event| event.time).find(|time| *time >= pressed + 2 * ONE_WAY);
            late.extend(answer.map(|time| (time - pressed).as_secs_f64() * 1e3));
        }
        let unanswered = count - late.len() as u32;
        Ok((late, unanswered))
    }

    /// Frames of a session at rest in so long a time, and bytes both ways.
    fn rest(&self, time: Duration) -> Result<(u64, u64), Error> {
        self.site.pass(SETTLE)?;
        let (events, before) = (self.site.stage.events_from_now(), payload(&self.site.beyond.stats()));
        self.site.pass(time)?;
        let frames = events.try_iter().filter(|event| self.is_picture(event)).count() as u64;
        Ok((frames, payload(&self.site.beyond.stats()) - before))
    }

    fn is_picture(&self, stamped: &Stamped) -> bool {
        matches!(&stamped.event, StageEvent::Commit(commit) if commit.surface == self.window && commit.attached)
    }
}

fn payload(stats: &LinkStats) -> u64 {
    stats.up.offered_bytes + stats.down.offered_bytes
}

/// What a session runs that shows that screen.
fn script(screen: &Screen) -> String {
    let (program, socket) = (beside(), screen.socket());
    let [program, socket, place] = [&program, &socket, screen.runtime_dir()].map(|path| path.display());
    format!("exec '{program}' screen --of '{socket}' --runtime-dir '{place}'")
}

/// Of the terminal.
const TITLE: &str = "typing";

/// A terminal that shows what is typed.
const ECHO: &str = "stty -icanon; exec cat > /dev/null";
const COLUMNS: u32 = 100;
const ROWS: u32 = 30;

const KEYS: u32 = 200;
/// Between two keys at least; an answer takes a round trip and some frames.
const KEY_PERIOD: Duration = Duration::from_millis(180);
/// Until nothing is under way any more.
const SETTLE: Duration = Duration::from_secs(3);
/// How long it is watched at rest.
const REST: Duration = Duration::from_secs(60);
