//! What the session itself adds to the link's delay: from a program's commit, and from a key, to the compositor.
//!
//! The programs change little, so that neither rate nor encoding is the question.

use std::time::Duration;

use wayferry_stage::{BigCommit, Pace, Stamped, Typing, commits_per_second, freshness, now};

use super::{Bench, KEY_PERIOD, ended, key_latencies, ms};
use crate::bench::{Figures, Row, Setting, Target};
use crate::error::Error;

/// How old a picture is when the compositor gets it, and how many come in a second.
pub(super) fn commit_to_shown(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for rtt_ms in [0, 20, 100, 200] {
        for (case, pace) in
            [("commit-to-shown", Pace::Callbacks), ("commit-to-shown-free", Pace::FreeRunning)]
        {
            for buffers in [2, 3] {
                rows.extend(shown(bench, case, pace, rtt_ms, buffers)?);
            }
        }
    }
    Ok(rows)
}

fn shown(
    bench: &Bench<'_>,
    case: &'static str,
    pace: Pace,
    rtt_ms: u32,
    buffers: usize,
) -> Result<Vec<Row>, Error> {
    let setting = Setting { rtt_ms, rate_mbps: Some(100), ..Setting::default() };
    let rig = bench.rig(setting)?;
    let scene = BigCommit { title: case.into(), width: 640, height: 480, buffers, pace, frames: None };
    let program = rig.program(move |client| scene.run(client))?;
    let (window, _) = rig.window(case)?;
    rig.pass(SETTLE)?;
    let from = now();
    rig.pass(bench.duration())?;
    let events: Vec<Stamped> = rig.events().into_iter().filter(|stamped| stamped.time >= from).collect();
    ended(program)?;
    let ages = Figures::of(&ms(&freshness(&events, window)));
    let rate = Figures::one(commits_per_second(&events, window));
    let delay = f64::from(rtt_ms) / 2.0;
    let row = |metric, unit, figures, target| Row {
        case,
        setting,
        buffers: Some(buffers),
        metric,
        unit,
        figures,
        target: Some(target),
    };
    Ok(vec![
        row("from drawn to commit", "ms", ages, Target::MedianAtMost(delay + 1.5)),
        row("the same, of 19 in 20", "ms", ages, Target::MostAtMost(delay + 4.0)),
        row("commits shown", "fps", rate, Target::MedianAtLeast(59.9)),
    ])
}

/// From a key to its glyph where the link takes no time, and without any session between the two.
pub(super) fn typing_near(bench: &Bench<'_>) -> Result<Vec<Row>, Error> {
    let rig = bench.rig(Setting::default())?;
    let mut rows = Vec::new();
    for (metric, target, direct) in [
        ("from key to commit", Some(Target::MedianAtMost(1.2)), false),
        ("the same without a session", None, true),
    ] {
        let typing = Typing { title: metric.into(), ..Typing::default() };
        let program = match direct {
            true => rig.direct(|client| typing.run(client))?,
            false => rig.program(|client| typing.run(client))?,
        };
        let (window, _) = rig.window(metric)?;
        rig.type_keys(window, 2 * bench.keys(), KEY_PERIOD)?;
        let figures = Figures::of(&ms(&key_latencies(&rig.events(), window)));
        ended(program)?;
        let (case, setting) = ("typing-near", Setting::default());
        rows.push(Row { case, setting, buffers: None, metric, unit: "ms", figures, target });
    }
    Ok(rows)
}

/// Before anything is counted.
const SETTLE: Duration = Duration::from_secs(1);
