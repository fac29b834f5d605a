//! `wayferry bench typing`: typing into a terminal beside a window that never rests, over links that lose; and typing
//! into a shell, with predictions and without ([`echo`]); and typing on a whole screen, beside a window ([`screen`]).
//!
//! `wayferry host` and its programs are processes in a network of their own, `wayferry attach` is one here, and what
//! passes between the networks is UDP of the kernel ([`site`]). Beside the busy window the picture tells when a letter
//! is seen: foot's caret is a cell further on after each. Invariant: letters are counted within one line that begins at
//! the left edge.

mod echo;
mod screen;
mod script;
mod site;

use std::time::Duration;

use wayferry_stage::{LinkConfig, Loss, Reorder, StageEvent, Stamped, SurfaceId, now};

use self::site::Site;
use super::{Figures, Row, Setting, headless, share, write_json};
use crate::error::Error;
use crate::flags::BenchFlags;
use crate::tunnel;
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::RuntimeDir;

/// Measures; gives the exit code.
pub(crate) fn run(flags: &BenchFlags) -> Result<u8, Error> {
    if let Some(code) = tunnel::enter()? {
        return Ok(code);
    }
    let signals = Signals::new()?;
    let is_wanted = |name: &str| flags.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let mut rows = Vec::new();
    let mut tell = |measured: Vec<Row>| {
        measured.iter().for_each(|row| println!("{}", row.line()));
        rows.extend(measured);
    };
    let mut floor = None;
    let troubled = TROUBLES.iter().any(|trouble| is_wanted(trouble.name));
    // The first is what the others are compared with.
    for trouble in
        TROUBLES.iter().filter(|trouble| is_wanted(trouble.name) || (troubled && trouble.is_none()))
    {
        let seen = Desk::new(trouble, &signals)?.measure(flags.quick)?;
        let late = share(&seen.keys, 0.99);
        tell(seen.rows(trouble, *floor.get_or_insert(late)));
    }
    for case in echo::cases().filter(|case| is_wanted(case.name)) {
        tell(case.measure(flags.quick, &signals)?);
    }
    // Who asks for it by name is told what it needs.
    if is_wanted(screen::NAME) && (flags.only.is_some() || headless::is_possible()) {
        tell(screen::measure(flags.quick, &signals)?);
    }
    if let Some(path) = &flags.json {
        write_json(path, &rows)?;
    }
    Ok(0)
}

/// What a link does to packets, both ways.
struct Trouble {
    name: &'static str,
    percent: f64,
    loss: Loss,
    jitter: Duration,
    reorder: Option<Reorder>,
}

impl Trouble {
    const NONE: Self =
        Self { name: "typing", percent: 0.0, loss: Loss::None, jitter: Duration::ZERO, reorder: None };

    fn config(&self, seed: u64) -> LinkConfig {
        LinkConfig {
            rate: Some(RATE),
            one_way_delay: ONE_WAY,
            // One product of rate and round trip.
            queue_bytes: RATE / 8 * 2 * ONE_WAY.as_millis() as u64 / 1000,
            loss: self.loss,
            jitter: self.jitter,
            reorder: self.reorder,
            seed,
            ..LinkConfig::default()
        }
    }

    fn is_none(&self) -> bool {
        self.name == Self::NONE.name
    }

    /// Packets that are lost in a row, in the mean.
    fn burst(&self) -> f64 {
        match self.loss {
            // After a lost packet the next one is, too, if the time is still bad.
            Loss::GilbertElliott { to_good, loss_bad, .. } => 1.0 / (1.0 - (1.0 - to_good) * loss_bad),
            Loss::Independent(_) | Loss::None => 1.0,
        }
    }
}

const TROUBLES: [Trouble; 8] = [
    Trouble::NONE,
    Trouble { name: "typing, single", percent: 1.0, loss: Loss::Independent(0.01), ..Trouble::NONE },
    Trouble { name: "typing, single", percent: 3.0, loss: Loss::Independent(0.03), ..Trouble::NONE },
    Trouble { name: "typing, single", percent: 5.0, loss: Loss::Independent(0.05), ..Trouble::NONE },
    Trouble { name: "typing, gemodel", percent: 1.95, loss: GEMODEL, ..Trouble::NONE },
    Trouble { name: "typing, jitter", jitter: Duration::from_millis(20), ..Trouble::NONE },
    Trouble { name: "typing, reordered", reorder: REORDER, ..Trouble::NONE },
    Trouble {
        name: "typing, all of it",
        percent: 1.95,
        loss: GEMODEL,
        jitter: Duration::from_millis(20),
        reorder: REORDER,
    },
];

/// netem's `gemodel 0.5% 20% 80% 0%`.
const GEMODEL: Loss = Loss::GilbertElliott { to_bad: 0.005, to_good: 0.2, loss_good: 0.0, loss_bad: 0.8 };
/// Every tenth packet is overtaken.
const REORDER: Option<Reorder> = Some(Reorder { probability: 0.1, by: Duration::from_millis(20) });

/// A session with both windows on a stage.
struct Desk<'a> {
    site: Site<'a>,
    typing: SurfaceId,
    busy: SurfaceId,
    /// Width of a letter.
    cell: f64,
}

impl<'a> Desk<'a> {
    fn new(trouble: &Trouble, signals: &'a Signals) -> Result<Self, Error> {
        let links = [1, 2].map(|seed| trouble.config(seed));
        let site = Site::start(RuntimeDir::private()?, links, &script(), &[], signals)?;
        let ((busy, _), (typing, (width, _))) = (site.window(BUSY)?, site.window(TYPING)?);
        site.stage.set_focus(Some(typing));
        Ok(Self { site, typing, busy, cell: f64::from(width) / f64::from(COLUMNS) })
    }

    fn measure(self, quick: bool) -> Result<Seen, Error> {
        // Until controllers and repair know the link.
        self.line(if quick { 10 } else { KEYS })?;
        let before = self.site.beyond.stats();
        let began = now();
        let mut seen = Seen::default();
        for _ in 0..if quick { 1 } else { LINES } {
            let (keys, frames) = self.line(if quick { 20 } else { KEYS })?;
            seen.typed += if quick { 20 } else { KEYS };
            seen.keys.extend(keys);
            seen.frames.push(frames);
        }
        let (after, seconds) = (self.site.beyond.stats(), (now() - began).as_secs_f64());
        let rate = |from: u64, to: u64| (to - from) as f64 / 1000.0 / seconds;
        seen.up = rate(before.up.offered_bytes, after.up.offered_bytes);
        seen.down = rate(before.down.offered_bytes, after.down.offered_bytes);
        Ok(seen)
    }

    /// Types a line of so many letters; gives how late each was seen in milliseconds, and the other window's frames per
    /// second.
    fn line(&self, count: u32) -> Result<(Vec<f64>, f64), Error> {
        let events = self.site.stage.events_from_now();
        for letter in LETTERS.chars().cycle().take(count as usize) {
            self.site.stage.type_text(&letter.to_string());
            self.site.pass(KEY_PERIOD)?;
        }
        self.site.pass(SETTLE)?;
        let events: Vec<Stamped> = events.try_iter().collect();
        self.site.stage.type_text("\n");
        self.site.pass(SETTLE)?;
        let delays = delays(&self.pressed(&events), &self.edges(&events), self.cell);
        let delays = delays.into_iter().map(|delay| delay.as_secs_f64() * 1e3);
        Ok((delays.collect(), wayferry_stage::commits_per_second(&events, self.busy)))
    }

    fn pressed(&self, events: &[Stamped]) -> Vec<Duration> {
        let keys = events.iter().filter(|stamped| {
            matches!(stamped.event, StageEvent::Key { surface, pressed: true, .. } if surface == Some(self.typing))
        });
        keys.map(|stamped| stamped.time).collect()
    }

    /// When the terminal changed, and how far to the right.
    fn edges(&self, events: &[Stamped]) -> Vec<(Duration, i32)> {
        let edge = |stamped: &Stamped| match &stamped.event {
            StageEvent::Commit(commit) if commit.surface == self.typing && commit.attached => {
                Some((stamped.time, commit.damage.x + commit.damage.width))
            }
            _ => None,
        };
        events.iter().filter_map(edge).collect()
    }
}

/// For each key that was seen: how long until the caret stood behind its letter.
fn delays(pressed: &[Duration], edges: &[(Duration, i32)], cell: f64) -> Vec<Duration> {
    let mut delays = Vec::new();
    for (time, edge) in edges {
        let until = pressed.partition_point(|key| key <= time);
        // Half a cell for what is not cut at the edge of one.
        let letters = (f64::from(*edge) / cell + 0.5) as usize;
        let seen = letters.saturating_sub(1).min(until);
        let new = pressed.get(delays.len()..seen).unwrap_or_default();
        delays.extend(new.iter().map(|key| *time - *key));
    }
    delays
}

/// What was measured over one link.
#[derive(Default)]
struct Seen {
    typed: u32,
    /// How late letters were, in milliseconds.
    keys: Vec<f64>,
    /// Frames per second of the busy window, of each line.
    frames: Vec<f64>,
    /// UDP payload in kB/s: of the display, and of the host.
    up: f64,
    down: f64,
}

impl Seen {
    /// Beside the 99th percentile of a link without trouble.
    fn rows(&self, trouble: &Trouble, floor: f64) -> Vec<Row> {
        let rtt_ms = (2 * ONE_WAY).as_millis() as u32;
        let rate_mbps = Some((RATE / 1_000_000) as u32);
        let setting =
            Setting { rtt_ms, rate_mbps, loss_percent: trouble.percent, loss_burst: trouble.burst() };
        let row = |metric, unit, figures| Row {
            case: trouble.name,
            setting,
            buffers: None,
            metric,
            unit,
            figures,
            target: None,
        };
        let one = |metric, unit, value| row(metric, unit, Figures::one(value));
        let late = share(&self.keys, 0.99);
        vec![
            row("from key to letter", "ms", Figures::of(&self.keys)),
            one("p99 of it", "ms", late),
            one("p99 above that without trouble", "ms", late - floor),
            one("letters not seen within a second", "", f64::from(self.typed) - self.keys.len() as f64),
            row("frames of the busy window", "fps", Figures::of(&self.frames)),
            one("from the display", "kB/s", self.up),
            one("from the host", "kB/s", self.down),
            one("load average of the machine", "", load()),
        ]
    }
}

/// Of the last minute; 0 where the system does not tell.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// Starts both terminals: one that echoes, and one whose counter never rests.
fn script() -> String {
    let foot = foot(COLUMNS, 6);
    let busy = "i=0; while :; do i=$((i + 1)); printf '\\r%08d' $i; sleep 0.012; done";
    let typing = "stty -icanon; exec cat > /dev/null";
    format!(
        "{foot} --title={BUSY} sh -c \"{}\" & exec {foot} --title={TYPING} sh -c '{typing}'",
        busy.replace('$', "\\$")
    )
}

/// A terminal of so many letters, with nothing around them.
fn foot(columns: u32, rows: u32) -> String {
    format!(
        "foot --override=locked-title=yes --override=pad=0x0 --override=font=monospace:size=8 \
         --override=initial-window-size-chars={columns}x{rows}"
    )
}

const TYPING: &str = "typing";
const BUSY: &str = "busy";

/// Letters of a line of the terminal; more than are typed.
const COLUMNS: u32 = 120;

/// What is typed: no two neighbours are equal, nor blank.
const LETTERS: &str = "thequickbrownfoxjumpsoverthelazydog";

/// Keys in a line, and lines.
const KEYS: u32 = 100;
const LINES: u32 = 4;

/// Between two keys; no multiple of a frame.
const KEY_PERIOD: Duration = Duration::from_millis(97);
/// How long a letter may take.
const SETTLE: Duration = Duration::from_secs(1);

/// Bits per second, and the way there.
const RATE: u64 = 20_000_000;
const ONE_WAY: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(times: &[u64]) -> Vec<Duration> {
        times.iter().map(|time| Duration::from_millis(*time)).collect()
    }

    #[test]
    fn a_letter_is_seen_when_the_caret_is_behind_it() {
        let keys = millis(&[0, 100, 200, 300]);
        let edges = [(110, 20), (215, 30), (415, 50)].map(|(at, edge)| (Duration::from_millis(at), edge));
        assert_eq!(delays(&keys, &edges, 10.0), millis(&[110, 115, 215, 115]));
    }

    /// As netem would: of its bad packets four of five are lost, and of those after one four of five are bad.
    #[test]
    fn losses_in_a_row_are_those_of_the_link() {
        let burst = |percent| {
            let found = TROUBLES.iter().find(|trouble| trouble.percent == percent);
            found.map(|trouble| (trouble.burst() * 100.0).round() / 100.0)
        };
        assert_eq!([0.0, 1.0, 1.95].map(burst), [1.0, 1.0, 2.78].map(Some));
    }

    #[test]
    fn what_changes_further_left_or_before_the_key_shows_no_letter() {
        let keys = millis(&[100, 200]);
        let edges = [(50, 80), (210, 20), (220, 10), (230, 20)];
        let edges = edges.map(|(at, edge)| (Duration::from_millis(at), edge));
        assert_eq!(delays(&keys, &edges, 10.0), millis(&[110]));
    }
}
