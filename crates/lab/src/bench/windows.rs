//! `wayferry bench windows`: window mode on the stage over a real QUIC connection and an emulated link.
//!
//! One function per case. Figures are taken where the user is: on the stage, which stamps each commit that it sees.

mod cpu;
mod latency;
mod screens;
mod turns;

use std::time::Duration;

use wayferry_stage::{
    BigCommit, Busy, Cells, Client, ClientError, Pace, StageEvent, Stamped, SurfaceId, Typing, Watch,
    freshness, key_latencies, now,
};

use self::turns::{Counted, Tally};
use super::rig::Rig;
use super::{Figures, Row, Setting, Target, share, write_json};
use crate::error::{Error, SessionError};
use crate::flags::{BenchFlags, OwnFlags};
use wayferry_host::edge::signals::Signals;

/// Runs the cases; gives the exit code.
pub(crate) fn run(own: &OwnFlags, flags: &BenchFlags) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let bench = Bench { own, signals: &signals, quick: flags.quick, tally: Tally::default() };
    let mut rows = Vec::new();
    for (name, case) in CASES {
        if flags.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let measured = case(&bench)?;
        let of = measured.first().map_or(*name, |row| row.case);
        for row in measured.into_iter().chain(bench.tally.take_rows(of)) {
            println!("{}", row.line());
            rows.push(row);
        }
    }
    if let Some(path) = &flags.json {
        write_json(path, &rows)?;
    }
    Ok(0)
}

/// What all cases need.
struct Bench<'a> {
    own: &'a OwnFlags,
    signals: &'a Signals,
    quick: bool,
    tally: Tally,
}

/// Measures one case.
type Case = fn(&Bench<'_>) -> Result<Vec<Row>, Error>;

/// The cases by name.
const CASES: &[(&str, Case)] = &[
    ("fps", fps),
    ("fps-free-running", fps_free_running),
    ("commit-to-shown", latency::commit_to_shown),
    ("bytes-per-cell", bytes_per_cell),
    ("typing-alone", typing_alone),
    ("typing-near", latency::typing_near),
    ("typing-beside-busy and fresh-busy", beside_busy),
    ("commit-4k-full-damage", commit_4k),
    ("typing-loss", typing_loss),
    ("start-up", start_up),
    ("page-scroll-5mbit", screens::page),
    ("scroll-1080p", screens::scroll),
    ("photo-5mbit", screens::photo),
    ("competing-5mbit", screens::competing),
    ("outage-3s", outage),
    ("outage-3s-busy", outage_busy),
];

impl Bench<'_> {
    fn rig(&self, setting: Setting) -> Result<Counted<'_>, Error> {
        Ok(Counted { rig: Rig::new(self.own, setting, self.signals)?, tally: &self.tally })
    }

    fn duration(&self) -> Duration {
        if self.quick { Duration::from_millis(1500) } else { Duration::from_secs(5) }
    }

    fn keys(&self) -> usize {
        if self.quick { 10 } else { 60 }
    }
}

/// Frame rate of a program that obeys callbacks, at round trips from none to intercontinental.
fn fps(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    fps_by(bench, "fps", Pace::Callbacks)
}

/// The same for one that draws whenever it has a free buffer.
fn fps_free_running(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    fps_by(bench, "fps-free-running", Pace::FreeRunning)
}

fn fps_by(bench: &Bench<'_>, case: &'static str, pace: Pace) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for rtt_ms in [0, 20, 100, 200] {
        for buffers in [2, 3] {
            let setting = Setting { rtt_ms, rate_mbps: Some(100), ..Setting::default() };
            let rig = bench.rig(setting)?;
            // Little changes in each frame, however many there are: the question is the round trip, not the rate.
            let scene =
                BigCommit { title: case.into(), width: 640, height: 480, buffers, pace, frames: None };
            let program = rig.program(move |client| scene.run(client))?;
            let (window, _) = rig.window(case)?;
            rig.pass(Duration::from_secs(1))?;
            let (from, drawn) = (now(), program.counts().frames);
            rig.pass(bench.duration())?;
            let seconds = (now() - from).as_secs_f64();
            let drawn = (program.counts().frames - drawn) as f64 / seconds;
            let shown = rates(&rig.events(), window, from);
            let row = |metric, figures, target| Row {
                case,
                setting,
                buffers: Some(buffers),
                metric,
                unit: "fps",
                figures,
                target,
            };
            rows.push(row(
                "frames drawn by the program",
                Figures::one(drawn),
                Some(Target::MedianAtLeast(55.0)),
            ));
            rows.push(row("commits shown, each half second", Figures::of(&shown), None));
            ended(program)?;
        }
    }
    Ok(rows)
}

/// Commits of `window` per second, in each whole half second after `from`.
fn rates(events: &[Stamped], window: SurfaceId, from: Duration) -> Vec<f64> {
    let mut counts: Vec<f64> = Vec::new();
    for stamped in events.iter().filter(|stamped| stamped.time >= from) {
        if matches!(&stamped.event, StageEvent::Commit(commit) if commit.surface == window && commit.attached)
        {
            let slot = ((stamped.time - from).as_secs_f64() * 2.0) as usize;
            counts.resize(counts.len().max(slot + 1), 0.0);
            counts[slot] += 2.0;
        }
    }
    // The last slot is cut off by the end of the measurement.
    counts.pop();
    counts
}

/// What one cell of 4096 new, incompressible bytes costs on the wire.
fn bytes_per_cell(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let setting = Setting { rtt_ms: 50, rate_mbps: Some(50), ..Setting::default() };
    let frames = if bench.quick { 60 } else { 300 };
    let mut rows = Vec::new();
    for buffers in [2, 3] {
        let rig = bench.rig(setting)?;
        let before = rig.wire_bytes();
        let cells = Cells { buffers, frames: Some(frames), ..Cells::default() };
        let program = rig.program(move |client| {
            cells.run(client)?;
            // The last frames must have been read before the connection ends.
            client.dispatch(Duration::from_millis(500)).map(|_| ())
        })?;
        ended_by_itself(program)?;
        rig.pass(Duration::from_millis(300))?;
        let bytes = (rig.wire_bytes() - before) as f64 / frames as f64;
        rows.push(Row {
            case: "bytes-per-cell",
            setting,
            buffers: Some(buffers),
            metric: "UDP/IP bytes to the display per cell",
            unit: "B",
            figures: Figures::one(bytes),
            target: Some(Target::MedianAtMost(4700.0)),
        });
    }
    Ok(rows)
}

/// The link of the typing cases.
const TYPING: Setting = Setting { rtt_ms: 50, rate_mbps: Some(50), loss_percent: 0.0, loss_burst: 1.0 };

/// Between two keys; no multiple of a frame.
const KEY_PERIOD: Duration = Duration::from_millis(97);

/// From a key to its glyph, with nothing else on the link.
fn typing_alone(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let rig = bench.rig(TYPING)?;
    let program = rig.program(|client| Typing::default().run(client))?;
    let (window, _) = rig.window("typing")?;
    rig.type_keys(window, bench.keys(), KEY_PERIOD)?;
    let row = typing_row("typing-alone", &rig.events(), window);
    ended(program)?;
    Ok(vec![row])
}

/// Typing over a link that loses packets: how much later than over one that does not.
fn typing_loss(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let clean = Setting { rtt_ms: 100, rate_mbps: Some(20), ..Setting::default() };
    let lossy = |loss_percent, loss_burst| Setting { loss_percent, loss_burst, ..clean };
    // Share, mean burst, and what the slowest of a hundred keys may lose to it in ms.
    let cases =
        [(clean, None), (lossy(1.0, 1.0), Some(3.0)), (lossy(3.0, 1.0), Some(10.0)), (lossy(1.0, 2.0), None)];
    let keys = if bench.quick { 20 } else { 400 };
    let mut rows = Vec::new();
    let mut floor = None;
    for (setting, target) in cases {
        let rig = bench.rig(setting)?;
        let program = rig.program(|client| Typing::default().run(client))?;
        let (window, _) = rig.window("typing")?;
        rig.type_keys(window, keys, KEY_PERIOD)?;
        let latencies = ms(&key_latencies(&rig.events(), window));
        ended(program)?;
        let [keys_shown, above] = match setting.loss_burst > 1.0 {
            true => ["from key to commit, losses in pairs", "p99 above the lossless one, in pairs"],
            false => ["from key to commit", "p99 above the lossless one"],
        };
        let row = |metric, figures, target| Row {
            case: "typing-loss",
            setting,
            buffers: None,
            metric,
            unit: "ms",
            figures,
            target,
        };
        rows.push(row(keys_shown, Figures::of(&latencies), None));
        let p99 = share(&latencies, 0.99);
        let floor = *floor.get_or_insert(p99);
        let target = target.map(Target::MedianAtMost);
        rows.push(row(above, Figures::one(p99 - floor), target));
    }
    Ok(rows)
}

/// The same beside a window of noise that could fill the link many times over, and how old that window's pictures are.
fn beside_busy(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let rig = bench.rig(TYPING)?;
    let typing = rig.program(|client| Typing::default().run(client))?;
    let (window, _) = rig.window("typing")?;
    let busy = rig.program(|client| Busy::default().run(client))?;
    let (noise, _) = rig.window("busy")?;
    rig.pass(Duration::from_secs(2))?;
    let from = now();
    rig.type_keys(window, bench.keys(), KEY_PERIOD)?;
    let events = rig.events();
    let fresh: Vec<Stamped> = events.iter().filter(|stamped| stamped.time >= from).cloned().collect();
    let typing_row = typing_row("typing-beside-busy", &events, window);
    let row = |metric, unit, figures, target| Row {
        case: "fresh-busy",
        setting: TYPING,
        buffers: Some(2),
        metric,
        unit,
        figures,
        target,
    };
    let age = Figures::of(&ms(&freshness(&fresh, noise)));
    let one_way = f64::from(TYPING.rtt_ms) / 2.0;
    let rows = vec![
        typing_row,
        row("from drawn to shown", "ms", age, Some(Target::MedianAtMost(one_way + 100.0))),
        row("commits shown, each half second", "fps", Figures::of(&rates(&events, noise, from)), None),
    ];
    ended(busy)?;
    ended(typing)?;
    Ok(rows)
}

fn typing_row(case: &'static str, events: &[Stamped], window: SurfaceId) -> Row {
    Row {
        case,
        setting: TYPING,
        buffers: None,
        metric: "from key to commit",
        unit: "ms",
        figures: Figures::of(&ms(&key_latencies(events, window))),
        target: Some(Target::MostAtMost(f64::from(TYPING.rtt_ms) + 20.0)),
    }
}

/// What the app side does for a 4K commit that claims to change everything and changes next to nothing.
fn commit_4k(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let setting = Setting { rtt_ms: 20, rate_mbps: None, ..Setting::default() };
    let rig = bench.rig(setting)?;
    let frames = if bench.quick { 20 } else { 120 };
    let program =
        rig.program(move |client| BigCommit { frames: Some(frames), ..BigCommit::default() }.run(client))?;
    ended_by_itself(program)?;
    let turns = rig.session.app().take_turns();
    // The first commit has everything new in it.
    let turns = turns.get(1..).unwrap_or_default();
    Ok(vec![Row {
        case: "commit-4k-full-damage",
        setting,
        buffers: Some(2),
        metric: "app-side time per commit",
        unit: "ms",
        figures: Figures::of(&ms(turns)),
        target: Some(Target::MedianAtMost(4.0)),
    }])
}

/// From a program's connection to its first picture on the stage.
fn start_up(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let setting = Setting { rtt_ms: 100, rate_mbps: Some(20), ..Setting::default() };
    let rig = bench.rig(setting)?;
    let rounds = if bench.quick { 3 } else { 10 };
    let target = Some(Target::MedianAtMost(1.6 * f64::from(setting.rtt_ms) + 30.0));
    let row = |metric, times: &[Duration]| Row {
        case: "start-up",
        setting,
        buffers: None,
        metric,
        unit: "ms",
        figures: Figures::of(&ms(times)),
        target,
    };
    let mut times = Vec::new();
    for round in 0..rounds {
        let typing = Typing { title: format!("typing {round}"), ..Typing::default() };
        let title = typing.title.clone();
        let program = rig.program(move |client| typing.run(client))?;
        let (_, shown) = rig.window(&title)?;
        times.extend(rig.session.app().accepted().map(|accepted| shown.saturating_sub(accepted)));
        ended(program)?;
    }
    let mut rows = vec![row("scripted: connect to first attach", &times)];
    let times = foot_times(&rig, rounds)?;
    if !times.is_empty() {
        rows.push(row("foot: connect to first attach", &times));
    }
    Ok(rows)
}

/// The same for foot; nothing where it is not installed.
fn foot_times(rig: &Rig<'_>, rounds: usize) -> Result<Vec<Duration>, Error> {
    let mut times = Vec::new();
    for round in 0..rounds {
        let title = format!("foot {round}");
        let mut command = std::process::Command::new("foot");
        command.args(["--title", &title, "--override=locked-title=yes", "sleep", "60"]);
        command.env("WAYLAND_DISPLAY", rig.session.socket());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let Ok(mut foot) = command.spawn() else { return Ok(times) };
        let shown = rig.window(&title);
        let _ = foot.kill();
        let _ = foot.wait();
        times.extend(
            rig.session.app().accepted().zip(shown.ok()).map(|(from, (_, to))| to.saturating_sub(from)),
        );
    }
    Ok(times)
}

/// Three seconds without a link while a program changes little at each frame callback.
fn outage(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let scene = BigCommit { title: "outage".into(), width: 640, height: 480, ..BigCommit::default() };
    after_outage(bench, "outage-3s", move |client| scene.run(client))
}

/// The same with a program that could fill the link many times over: nothing more can leave when the link goes.
fn outage_busy(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let scene = Busy { title: "outage".into(), ..Busy::default() };
    after_outage(bench, "outage-3s-busy", move |client| scene.run(client))
}

/// How soon after an outage new pictures are seen, and how many old ones before.
fn after_outage(
    bench: &Bench<'_>,
    case: &'static str,
    script: impl FnOnce(&mut Client) -> Result<(), ClientError> + Send + 'static,
) -> Result<Vec<Row>, Error> {
    let rig = bench.rig(TYPING)?;
    let program = rig.program(script)?;
    let (window, _) = rig.window("outage")?;
    let (mut first, mut fresh, mut stale) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..if bench.quick { 1 } else { 5 } {
        rig.pass(Duration::from_secs(1))?;
        rig.session.set_down(true);
        rig.pass(Duration::from_secs(3))?;
        let mut watch = Watch::new(rig.stage.events_from_now()).patience(Duration::from_secs(20));
        rig.session.set_down(false);
        let back = now();
        let mut old = Vec::new();
        let new = watch.find(|stamped| match &stamped.event {
            StageEvent::Commit(commit) if commit.surface == window && stamped.time > back => {
                let drawn = commit.strip?.drawn;
                if drawn < back {
                    old.push(stamped.time);
                }
                (drawn >= back).then_some(stamped.time)
            }
            _ => None,
        });
        let new = new.map_err(|_| SessionError::Lost("no new picture after the outage".into()))?;
        first.push(old.first().copied().unwrap_or(new) - back);
        fresh.push(new - back);
        stale.push(old.len() as f64);
    }
    ended(program)?;
    let row = |metric, unit, figures, target| Row {
        case,
        setting: TYPING,
        buffers: Some(2),
        metric,
        unit,
        figures,
        target,
    };
    let rtt = f64::from(TYPING.rtt_ms);
    Ok(vec![
        row("from its end to a commit", "ms", Figures::of(&ms(&first)), None),
        row(
            "from its end to a picture drawn after it",
            "ms",
            Figures::of(&ms(&fresh)),
            Some(Target::MedianAtMost(rtt + 100.0)),
        ),
        row("older pictures before that", "", Figures::of(&stale), Some(Target::MostAtMost(2.0))),
    ])
}

fn ms(times: &[Duration]) -> Vec<f64> {
    times.iter().map(|time| time.as_secs_f64() * 1e3).collect()
}

pub(super) fn ended(program: wayferry_stage::Program) -> Result<(), SessionError> {
    program
        .stop()
        .map(|_| ())
        .map_err(|error| SessionError::AppViolation(format!("a program of the bench: {error}")))
}

fn ended_by_itself(program: wayferry_stage::Program) -> Result<(), SessionError> {
    program
        .join()
        .map(|_| ())
        .map_err(|error| SessionError::AppViolation(format!("a program of the bench: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_its_name_once() {
        let mut names: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CASES.len());
    }
}
