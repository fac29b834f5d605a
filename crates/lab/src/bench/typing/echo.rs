//! Typing into a shell that is far away, with predictions and without: when is each letter seen?
//!
//! A person's keys go to bash in foot; what is seen is read from the composed pixels of the line that is typed in, of
//! the program or of the display ([`crate::sight`]). What the display itself counts is told beside it. Invariant: each
//! line is typed where the prompt before it is whole.

use std::time::Duration;

use serde_json::Value;
use wayferry_stage::{Image, LinkConfig, Look, Loss, Rect, SurfaceId, now};

use super::script::{self, Stroke};
use super::site::Site;
use super::{RATE, foot, load};
use crate::bench::processes::system;
use crate::bench::{Figures, Row, Setting, Target};
use crate::error::{Error, SessionError};
use crate::sight::{Letters, Line, at_once};
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::RuntimeDir;

/// Cases in their order: each link without predictions, where they help, and wherever.
pub(super) fn cases() -> impl Iterator<Item = Case> {
    let links = [100, 300].into_iter().flat_map(|rtt_ms| [0.0, 1.0].map(|lost| (rtt_ms, lost)));
    links.flat_map(|(rtt_ms, lost)| WISHES.map(|(name, wish)| Case { name, wish, rtt_ms, lost }))
}

/// A link and when the display predicts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    wish: &'static str,
    rtt_ms: u32,
    /// Packets lost each way, per cent.
    lost: f64,
}

impl Case {
    pub(super) fn measure(&self, quick: bool, signals: &Signals) -> Result<Vec<Row>, Error> {
        let dir = RuntimeDir::private()?;
        let rc = dir.path().join("rc");
        std::fs::write(&rc, shell()).map_err(system("writing what the shell begins with"))?;
        let script = format!(
            "exec {} --title={TITLE} bash --noprofile --rcfile {} -i",
            foot(COLUMNS, ROWS),
            rc.display()
        );
        let links = [1, 2].map(|seed| self.link(seed));
        let site = Site::start(dir, links, &script, &["--predict", self.wish], signals)?;
        let mut desk = Desk::new(&site, self.rtt())?;
        let lines = script::lines(SEED, if quick { 4 } else { LINES });
        lines.iter().try_for_each(|line| desk.line(line))?;
        let counted = Counted::of(&site.info()?);
        Ok(self.rows(&desk, &counted))
    }

    fn rtt(&self) -> Duration {
        Duration::from_millis(self.rtt_ms.into())
    }

    fn link(&self, seed: u64) -> LinkConfig {
        LinkConfig {
            rate: Some(RATE),
            one_way_delay: self.rtt() / 2,
            queue_bytes: RATE / 8 * u64::from(self.rtt_ms) / 1000,
            loss: if self.lost > 0.0 { Loss::Independent(self.lost / 100.0) } else { Loss::None },
            seed,
            ..LinkConfig::default()
        }
    }

    fn rows(&self, desk: &Desk<'_>, counted: &Counted) -> Vec<Row> {
        let (pressed, delays, wrong) = (desk.pressed(), ms(&desk.delays()), ms(&desk.wrong()));
        let mean = delays.iter().sum::<f64>() / delays.len().max(1) as f64;
        let mut rows = vec![
            self.row("from key to picture", "ms", Figures::of(&delays), None),
            self.one("mean of it", "ms", mean),
            self.one("keys typed", "", pressed as f64),
            self.one("keys not seen", "", (pressed - delays.len()) as f64),
            self.one("wrong pictures", "", wrong.len() as f64),
            self.one("times that a line went back", "", desk.went_back() as f64),
        ];
        if self.wish != NEVER {
            let most = Target::MostAtMost(f64::from(self.rtt_ms) + 60.0);
            rows.push(self.row("how long a wrong picture stayed", "ms", Figures::of(&wrong), Some(most)));
            rows.extend(self.before_answers(&delays, pressed));
            rows.extend([
                self.one("the display counts: shown", "", counted.shown),
                self.one("the display counts: right", "", counted.right),
                self.one("the display counts: wrong", "", counted.wrong),
                self.one("the display counts: held back", "", counted.held),
            ]);
        }
        rows.push(self.one("load average of the machine", "", load()));
        rows
    }

    /// What was seen before an answer could be there.
    fn before_answers(&self, delays: &[f64], pressed: usize) -> [Row; 4] {
        let within =
            |most: Duration| delays.iter().copied().filter(move |delay| *delay <= most.as_secs_f64() * 1e3);
        let soon: Vec<f64> = within(at_once(self.rtt())).collect();
        let later = within(self.rtt()).count() - soon.len();
        let share = |count| 100.0 * count as f64 / pressed.max(1) as f64;
        let (at_once, soon) = (Figures::one(share(soon.len())), Figures::of(&soon));
        [
            self.row("keys shown at once", "%", at_once, Some(Target::MedianAtLeast(65.0))),
            self.one("shown later, but before an answer", "%", share(later)),
            self.row("key to picture, of those at once", "ms", soon, Some(Target::MedianAtMost(2.0))),
            self.row("the same, of 19 in 20", "ms", soon, Some(Target::MostAtMost(5.0))),
        ]
    }

    fn one(&self, metric: &'static str, unit: &'static str, value: f64) -> Row {
        self.row(metric, unit, Figures::one(value), None)
    }

    fn row(&self, metric: &'static str, unit: &'static str, figures: Figures, target: Option<Target>) -> Row {
        let setting = Setting {
            rtt_ms: self.rtt_ms,
            rate_mbps: Some((RATE / 1_000_000) as u32),
            loss_percent: self.lost,
            loss_burst: 1.0,
        };
        Row { case: self.name, setting, buffers: None, metric, unit, figures, target }
    }
}

/// What the display side counts of its predictions.
#[derive(Debug, Default)]
struct Counted {
    shown: f64,
    right: f64,
    wrong: f64,
    held: f64,
}

impl Counted {
    /// As the documents of the sides have it.
    fn of(documents: &[Value]) -> Self {
        let windows = || documents.iter().filter_map(|document| document["predicted"].as_array()).flatten();
        let sum = |field: &str| windows().filter_map(|window| window[field].as_f64()).sum();
        Self { shown: sum("shown"), right: sum("right"), wrong: sum("wrong"), held: sum("held") }
    }
}

/// A terminal that is typed into, and all that was typed.
struct Desk<'a> {
    site: &'a Site<'a>,
    window: SurfaceId,
    letters: Letters,
    /// How long a person rests after a line.
    pause: Duration,
    lines: Vec<Line>,
}

impl<'a> Desk<'a> {
    fn new(site: &'a Site<'a>, rtt: Duration) -> Result<Self, Error> {
        let (window, (width, height)) = site.window(TITLE)?;
        site.stage.set_focus(Some(window));
        let size = (width / COLUMNS, height / ROWS);
        let paper =
            site.stage.screenshot_window(window).and_then(|picture| picture.pixel(width - 1, height - 1));
        let letters = Letters::new(size, paper.unwrap_or_default());
        let mut desk = Self { site, window, letters, pause: PAUSE + rtt, lines: Vec::new() };
        let alphabet = script::alphabet();
        wait(site, "no letters", || {
            let row = desk.picture(0)?;
            desk.letters.learn(&row, &alphabet).then_some(())
        })?;
        Ok(desk)
    }

    /// Types a line where the prompt is, and looks at it until the next prompt is there.
    fn line(&mut self, strokes: &[Stroke]) -> Result<(), Error> {
        let look = self.look(self.prompt()?);
        let mut line = Line::new(PROMPT);
        for stroke in strokes {
            self.site.pass(stroke.gap)?;
            line.press(self.site.stage.type_text(&stroke.letter.to_string()), stroke.letter);
        }
        self.site.pass(self.pause)?;
        for seen in look.take() {
            line.sees(seen.time, &self.letters.read(&seen.picture));
        }
        line.ends(now());
        self.lines.push(line);
        Ok(())
    }

    /// Waits for a row that has a prompt, a caret behind it, and nothing else.
    fn prompt(&self) -> Result<u32, Error> {
        let is_prompt = |row: &u32| {
            let picture = self.picture(*row);
            picture.is_some_and(|picture| Line::new(PROMPT).begins_as(&self.letters.read(&picture)))
        };
        wait(self.site, "no prompt", || (0..ROWS).find(is_prompt))
    }

    fn picture(&self, row: u32) -> Option<Image> {
        self.look(row).take().pop().map(|seen| seen.picture)
    }

    fn look(&self, row: u32) -> Look {
        let (width, height) = self.letters.size();
        let part = Rect::new(0, (row * height) as i32, (COLUMNS * width) as i32, height as i32);
        self.site.stage.look(self.window, part)
    }

    fn pressed(&self) -> usize {
        self.lines.iter().map(Line::pressed).sum()
    }

    fn delays(&self) -> Vec<Duration> {
        self.lines.iter().flat_map(Line::delays).collect()
    }

    fn went_back(&self) -> usize {
        self.lines.iter().map(Line::went_back).sum()
    }

    fn wrong(&self) -> Vec<Duration> {
        self.lines.iter().flat_map(Line::wrong).copied().collect()
    }
}

/// Waits until the terminal shows something.
fn wait<T>(site: &Site<'_>, missing: &str, mut attempt: impl FnMut() -> Option<T>) -> Result<T, Error> {
    let patience = now() + PATIENCE;
    while now() < patience {
        if let Some(found) = attempt() {
            return Ok(found);
        }
        site.pass(LOOKS_AGAIN)?;
    }
    Err(SessionError::Lost(format!("the terminal shows {missing}")).into())
}

/// What the shell begins with: a line of all letters, to learn what they look like here.
fn shell() -> String {
    format!("cat <<'LETTERS'\n{}\nLETTERS\nPS1='{PROMPT}'\nHISTFILE=\n", script::alphabet())
}

fn ms(times: &[Duration]) -> Vec<f64> {
    times.iter().map(|time| time.as_secs_f64() * 1e3).collect()
}

/// Names of cases, and what `--predict` says there.
const WISHES: [(&str, &str); 3] =
    [("echo, never", NEVER), ("echo, auto", "auto"), ("echo, always", "always")];
const NEVER: &str = "never";

const TITLE: &str = "echo";
const PROMPT: &str = "$ ";

/// Cells of the terminal: room for all that is typed and answered, so that no line moves.
const COLUMNS: u32 = 100;
const ROWS: u32 = 64;

/// Of what is typed; and how many lines.
const SEED: u64 = 1;
const LINES: usize = 16;

/// How long a person rests after a line, beside the round trip.
const PAUSE: Duration = Duration::from_millis(600);
/// How long the terminal may take to show a prompt, and when it is looked at again.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOKS_AGAIN: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_display_counts_is_of_all_its_windows() {
        let window = |shown| json!({ "shown": shown, "right": 3, "wrong": 1, "held": 2 });
        let documents = [json!({ "role": "app" }), json!({ "predicted": [window(4), window(5)] })];
        let counted = Counted::of(&documents);
        assert_eq!([counted.shown, counted.right, counted.wrong, counted.held], [9.0, 6.0, 2.0, 4.0]);
    }

    #[test]
    fn each_link_begins_without_predictions() {
        let cases: Vec<Case> = cases().collect();
        assert_eq!(cases.len(), 12);
        assert!(cases.chunks(3).all(|cases| cases[0].wish == NEVER));
        assert!(cases.chunks(3).all(|cases| cases.iter().all(|case| case.rtt_ms == cases[0].rtt_ms)));
    }
}
