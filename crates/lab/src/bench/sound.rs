//! `wayferry bench sound`: how sound fares beside a window that could fill the link many times over.
//!
//! A real program plays to the session's sound server; the player runs as it does for ears, into a file. Figures are
//! the player's own, of the seconds after it has come to know the link.

mod click;
mod cpu;
mod ear;
mod lips;

use std::time::Duration;

use serde_json::{Value, json};
use wayferry_host::edge::signals::Signals;
use wayferry_host::sound::Mode;
use wayferry_stage::Busy;

use self::cpu::Spent;
use super::rig::{Rig, Tone};
use super::{Setting, document, round, share, write_text};
use crate::emulated::{Sound, Way};
use crate::error::{Error, SessionError};
use crate::flags::{OwnFlags, SoundFlags};

/// Measures; gives the exit code.
pub(crate) fn run(own: &OwnFlags, flags: &SoundFlags) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let mut rows = Vec::new();
    let mut tell = |row: &Row| {
        println!("{}", row.line());
        rows.push(row.json());
    };
    let is_wanted = |case: &str| flags.only.as_ref().is_none_or(|only| case.contains(only.as_str()));
    for cell in cells(flags.full).into_iter().filter(|_| is_wanted("concealed-percent")) {
        measure(own, flags, cell, &signals)?.iter().for_each(&mut tell);
    }
    for (rtt_ms, loss_percent) in FILMS.into_iter().filter(|_| is_wanted("lip-sync")) {
        let cell = Cell { mode: Mode::default(), rtt_ms, loss_percent };
        lip_sync(own, flags, cell, &signals)?.iter().for_each(&mut tell);
    }
    for cell in [CLEAN, LOSSY].into_iter().filter(|_| is_wanted("click")) {
        click(own, flags, cell, &signals)?.iter().for_each(&mut tell);
    }
    if is_wanted("cpu-percent") {
        cpu(own, flags, &signals)?.iter().for_each(&mut tell);
    }
    if let Some(path) = &flags.json {
        write_text(path, &format!("{:#}\n", document(&rows)))?;
    }
    Ok(0)
}

/// A link, and how sound crosses it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cell {
    mode: Mode,
    rtt_ms: u32,
    loss_percent: f64,
}

/// One figure.
struct Row {
    case: &'static str,
    cell: Cell,
    value: f64,
    unit: &'static str,
    /// At most.
    target: Option<f64>,
}

/// All that are to be measured.
fn cells(full: bool) -> Vec<Cell> {
    let modes = [Mode::Hybrid, Mode::Stream, Mode::Datagram];
    let cell = |mode, rtt_ms, loss_percent| Cell { mode, rtt_ms, loss_percent };
    if full {
        let links = [20, 100, 300].into_iter().flat_map(|rtt| LOSSES.map(|loss| (rtt, loss)));
        return links.flat_map(|(rtt, loss)| modes.map(|mode| cell(mode, rtt, loss))).collect();
    }
    let usual = LOSSES.map(|loss| cell(Mode::Hybrid, 100, loss));
    usual.into_iter().chain([cell(Mode::Stream, 100, 3.0), cell(Mode::Datagram, 100, 3.0)]).collect()
}

fn measure(own: &OwnFlags, flags: &SoundFlags, cell: Cell, signals: &Signals) -> Result<[Row; 2], Error> {
    let setting = Setting {
        rtt_ms: cell.rtt_ms,
        rate_mbps: Some(RATE_MBPS),
        loss_percent: cell.loss_percent,
        loss_burst: 1.0,
    };
    let (up, down) = setting.links();
    let sound = Sound { mode: cell.mode, listening: None };
    let rig = Rig::over(own, Way::relay(up, down), Some(sound), signals)?;
    let tone = Tone::start(&rig.session)?;
    let busy = rig.program(|client| Busy::default().run(client))?;
    rig.window("busy")?;
    rig.pass(WARM_UP)?;
    let silent = || SessionError::Lost("nothing is heard".into());
    let heard = rig.session.heard().ok_or_else(silent)?.clone();
    let before = heard.report().figures;
    let (mut latency, mut looks) = (Duration::ZERO, 0);
    while looks < looks_in(flags.seconds) {
        rig.pass(LOOK)?;
        latency += heard.report().figures.latency;
        looks += 1;
    }
    let after = heard.report().figures;
    drop(tone);
    super::windows::ended(busy)?;
    let played = after.played.saturating_sub(before.played);
    if played.is_zero() {
        return Err(silent().into());
    }
    let concealed = percent(after.concealed.saturating_sub(before.concealed), played);
    let row = |case, value, unit, target| Row { case, cell, value, unit, target };
    Ok([
        row("concealed-percent", concealed, "%", target(cell)),
        row("latency", (latency / looks).as_secs_f64() * 1e3, "ms", None),
    ])
}

/// How far sound and picture of a film are apart, and how much of its sound is made up.
fn lip_sync(own: &OwnFlags, flags: &SoundFlags, cell: Cell, signals: &Signals) -> Result<[Row; 3], Error> {
    let Cell { rtt_ms, loss_percent, .. } = cell;
    let setting = Setting { rtt_ms, rate_mbps: Some(20), loss_percent, loss_burst: 1.0 };
    let lips::Film { apart, concealed } = lips::measure(own, setting, flags.seconds, signals)?;
    if apart.is_empty() {
        return Err(SessionError::Lost("no flash was seen with a beep".into()).into());
    }
    let far: Vec<f64> = apart.iter().map(|apart| apart.abs()).collect();
    let row = |case, value, unit, target| Row { case, cell, value, unit, target };
    Ok([
        row("lip-sync", share(&far, 0.95), "ms", Some(45.0)),
        row("lip-sync-median", share(&apart, 0.5), "ms", None),
        row("lip-sync-concealed", concealed, "%", Some(if loss_percent > 0.0 { 0.1 } else { 0.0 })),
    ])
}

/// From a program that asks for little latency to the ear. All but what is heard after the arrival is capture.
fn click(own: &OwnFlags, flags: &SoundFlags, cell: Cell, signals: &Signals) -> Result<[Row; 2], Error> {
    let setting =
        Setting { rtt_ms: cell.rtt_ms, loss_percent: cell.loss_percent, loss_burst: 1.0, ..CLEAN_LINK };
    let clicks = click::measure(own, setting, flags.seconds, signals)?;
    let one_way = f64::from(cell.rtt_ms) / 2.0;
    let median = share(&clicks.chain, 0.5);
    let goal = if cell == CLEAN { 80.0 } else { one_way + 90.0 };
    let row = |case, value, target| Row { case, cell, value, unit: "ms", target };
    Ok([
        row("click-chain", median, Some(goal)),
        row("click-capture", median - one_way - clicks.heard, (cell == CLEAN).then_some(15.0)),
    ])
}

/// What a tone costs, and then silence.
fn cpu(own: &OwnFlags, flags: &SoundFlags, signals: &Signals) -> Result<[Row; 2], Error> {
    let (up, down) = CLEAN_LINK.links();
    let sound = Sound { mode: Mode::default(), listening: None };
    let rig = Rig::over(own, Way::relay(up, down), Some(sound), signals)?;
    let spent = |rig: &Rig<'_>| {
        let before = Spent::now();
        rig.pass(flags.seconds)?;
        Ok::<_, Error>(Spent::now().since(&before, flags.seconds))
    };
    let tone = Tone::start(&rig.session)?;
    rig.pass(WARM_UP)?;
    let playing = spent(&rig)?;
    drop(tone);
    rig.pass(WARM_UP)?;
    let silent = spent(&rig)?;
    let row = |case, value, target| Row { case, cell: CLEAN, value, unit: "%", target };
    Ok([row("cpu-percent", playing, Some(4.0)), row("cpu-percent-silent", silent, None)])
}

fn looks_in(time: Duration) -> u32 {
    u32::try_from(time.as_millis() / LOOK.as_millis()).unwrap_or(u32::MAX).max(1)
}

fn percent(part: Duration, whole: Duration) -> f64 {
    100.0 * part.as_secs_f64() / whole.as_secs_f64()
}

/// What may be concealed, in per cent; of the mode that ships.
fn target(cell: Cell) -> Option<f64> {
    let limits = [0.0, 0.05, 0.1, 0.3];
    let at = LOSSES.iter().position(|loss| *loss == cell.loss_percent)?;
    (cell.mode == Mode::Hybrid).then_some(limits[at])
}

impl Row {
    fn met(&self) -> Option<bool> {
        self.target.map(|target| self.value <= target)
    }

    fn json(&self) -> Value {
        json!({
            "case": self.case,
            "mode": self.cell.mode.name(),
            "rtt_ms": self.cell.rtt_ms,
            "loss_percent": self.cell.loss_percent,
            "value": round(self.value),
            "unit": self.unit,
            "target": self.target,
            "met": self.met(),
        })
    }

    /// For people.
    fn line(&self) -> String {
        let met = match (self.met(), self.target) {
            (Some(true), Some(target)) => format!("meets {target}"),
            (Some(false), Some(target)) => format!("MISSES {target}"),
            _ => String::new(),
        };
        let Cell { mode, rtt_ms, loss_percent } = self.cell;
        let (case, mode, value, unit) = (self.case, mode.name(), self.value, self.unit);
        format!(
            "{case:<18} {mode:<9} rtt {rtt_ms:>3}  loss {loss_percent:>3} %  {value:>8.3} {unit:<3} {met}"
        )
    }
}

const CLEAN: Cell = Cell { mode: Mode::Hybrid, rtt_ms: 0, loss_percent: 0.0 };
const LOSSY: Cell = Cell { mode: Mode::Hybrid, rtt_ms: 100, loss_percent: 1.0 };

/// Without delay, loss or limit.
const CLEAN_LINK: Setting = Setting { rtt_ms: 0, rate_mbps: None, loss_percent: 0.0, loss_burst: 1.0 };

/// Round trips in milliseconds, and losses in per cent, over which a film is seen.
const FILMS: [(u32, f64); 3] = [(20, 0.0), (100, 0.0), (100, 2.0)];

/// Of packets, in per cent.
const LOSSES: [f64; 4] = [0.0, 1.0, 3.0, 5.0];

/// The window of noise could fill it thirty times over.
const RATE_MBPS: u32 = 10;

/// Until the player knows the link: its first target falls after 5 s.
const WARM_UP: Duration = Duration::from_secs(8);

/// Between two looks at the latency.
const LOOK: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_that_ships_has_goals_and_all_cells_are_there() {
        let cell = |mode, loss_percent| Cell { mode, rtt_ms: 100, loss_percent };
        assert_eq!(target(cell(Mode::Hybrid, 3.0)), Some(0.1));
        assert_eq!(target(cell(Mode::Stream, 3.0)), None);
        assert_eq!((cells(false).len(), cells(true).len()), (6, 36));
    }

    #[test]
    fn a_row_has_the_fields_of_the_format() {
        let cell = Cell { mode: Mode::Hybrid, rtt_ms: 20, loss_percent: 1.0 };
        let row = Row { case: "concealed-percent", cell, value: 0.06, unit: "%", target: target(cell) };
        let expected = json!({
            "case": "concealed-percent", "mode": "hybrid", "rtt_ms": 20, "loss_percent": 1.0, "value": 0.06,
            "unit": "%", "target": 0.05, "met": false,
        });
        assert_eq!(row.json(), expected);
        assert!(row.line().contains("MISSES 0.05"));
    }
}
