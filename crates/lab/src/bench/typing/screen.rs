//! Typing into a terminal that is a window of its own, and into the same on a whole screen; and that screen at rest.
//!
//! The screen is sway's without a monitor, with nothing on it but the terminal. It must not run as root, so it has a
//! user of its own, which needs root. Invariant: a key is answered before the next one is pressed, or is not.

use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use wayferry_stage::{LinkConfig, LinkStats, StageEvent, Stamped, SurfaceId, now};

use super::site::Site;
use super::{LETTERS, ONE_WAY, RATE, Trouble, foot, load};
use crate::bench::processes::{Process, beside, system};
use crate::bench::{Figures, Row, Setting, Target, rig};
use crate::error::{Error, SessionError};
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::RuntimeDir;

/// What `--only` calls it.
pub(super) const NAME: &str = "screen";

/// Whether sway can have a user of its own: in a namespace of another user's there is none but root.
pub(super) fn is_possible() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let count = map.split_whitespace().nth(2).and_then(|count| count.parse::<u32>().ok());
    count.is_some_and(|count| count > USER)
}

/// Measures both, the one beside the other.
pub(super) fn measure(quick: bool, signals: &Signals) -> Result<Vec<Row>, Error> {
    let keys = if quick { 20 } else { KEYS };
    let window = {
        let script = format!("exec {} --title={TITLE} sh -c '{ECHO}'", foot(COLUMNS, ROWS));
        Desk::start(&script, TITLE, signals)?.type_keys(keys)?
    };
    let screen = Screen::start(signals)?;
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let desk = Desk::start(&screen.script(), &format!("Desktop of {}", host.trim()), signals)?;
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

/// A compositor without a monitor, and the terminal on its screen.
struct Screen {
    _sway: Process,
    place: Place,
}

/// Its directory, which is removed with the value.
struct Place(PathBuf);

impl Screen {
    fn start(signals: &Signals) -> Result<Self, Error> {
        let place = Place(std::env::temp_dir().join(format!("wayferry-screen-{}", std::process::id())));
        let making = system("making a directory for a screen's user");
        fs::create_dir(&place.0).map_err(&making)?;
        let terminal = foot(COLUMNS, ROWS);
        let config = format!("{CONFIG}exec {terminal} --title={TITLE} sh -c '{ECHO}'\n");
        fs::write(place.0.join("config"), config).map_err(&making)?;
        chown(&place.0, Some(USER), Some(USER)).map_err(&making)?;
        let mut sway = Command::new("setpriv");
        sway.args([format!("--reuid={USER}"), format!("--regid={USER}")]);
        sway.args(["--clear-groups", "sway", "-c"]).arg(place.0.join("config"));
        sway.env("XDG_RUNTIME_DIR", &place.0).env("HOME", &place.0);
        sway.envs([
            ("WLR_BACKENDS", "headless"),
            ("WLR_RENDERER", "pixman"),
            ("WLR_LIBINPUT_NO_DEVICES", "1"),
        ]);
        sway.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let sway = Process::new(sway.spawn().map_err(system("starting sway, which needs root"))?);
        let until = now() + PATIENCE;
        while !place.socket().exists() {
            if now() > until {
                return Err(SessionError::Lost("sway gave no screen; it is started as root".into()).into());
            }
            rig::pass(signals, MOMENT)?;
        }
        Ok(Self { _sway: sway, place })
    }

    /// What a session runs that shows it.
    fn script(&self) -> String {
        let (program, socket) = (beside(), self.place.socket());
        let [program, socket, place] = [&program, &socket, &self.place.0].map(|path| path.display());
        format!("exec '{program}' screen --of '{socket}' --runtime-dir '{place}'")
    }
}

impl Place {
    fn socket(&self) -> PathBuf {
        self.0.join("wayland-1")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Of the terminal.
const TITLE: &str = "typing";

/// A terminal that shows what is typed.
const ECHO: &str = "stty -icanon; exec cat > /dev/null";
const COLUMNS: u32 = 100;
const ROWS: u32 = 30;

/// No window decorations, and nothing that moves.
const CONFIG: &str = "output HEADLESS-1 resolution 800x600\ndefault_border none\nxwayland disable\n\
                      output * bg #336699 solid_color\n";

/// The user and group that Linux has for programs that own nothing.
const USER: u32 = 65534;

const KEYS: u32 = 200;
/// Between two keys at least; an answer takes a round trip and some frames.
const KEY_PERIOD: Duration = Duration::from_millis(180);
/// Until nothing is under way any more.
const SETTLE: Duration = Duration::from_secs(3);
/// How long it is watched at rest.
const REST: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(10);
const MOMENT: Duration = Duration::from_millis(50);
