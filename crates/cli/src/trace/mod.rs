//! `wayferry trace`: what the timelines of a session's sides ([`wayferry_host::trace`]) say together, as a table and a
//! picture.

pub(crate) mod chart;
mod join;

use std::fmt::Write;
use std::io::BufReader;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use wayferry_host::trace::{Stage, Subject, read};

use crate::error::{Error, SessionError};
use crate::flags::TraceFlags;
use crate::ssh::far_half::beside;
use crate::tell::{notice, print};
use join::{Bar, join};

/// Runs `wayferry trace`; gives the exit code.
pub(crate) fn run(flags: &TraceFlags) -> Result<u8, Error> {
    let mut traces = Vec::new();
    for path in &both(&flags.files) {
        let failed = |source| SessionError::File { path: path.clone(), source };
        let file = std::fs::File::open(path).map_err(failed)?;
        traces.push(read::read(BufReader::new(file)).map_err(|error| failed(error.into()))?);
    }
    let joined = join(traces).map_err(|what| Error::usage(what.to_owned()))?;
    let time = chosen(flags);
    print(summary(&joined.cut(&time.clone().unwrap_or(0..=u64::MAX))).as_bytes())?;
    if let Some(path) = &flags.svg {
        let shown = time.clone().unwrap_or_else(|| joined.worst_second());
        let bars = joined.cut(&shown);
        let chart = chart::draw(&bars, &shown);
        if time.is_none() {
            let [from, to] = [shown.start(), shown.end()].map(|at| *at as f64 / 1e9);
            notice(&format!(
                "the picture shows the worst second, {from:.3} to {to:.3}: `--from 0` shows all"
            ));
        }
        if chart.left_out > 0 {
            notice(&format!(
                "{} of {} bars are not in the picture: choose a part with --from and --to",
                chart.left_out,
                bars.len()
            ));
        }
        std::fs::write(path, chart.svg)
            .map_err(|source| SessionError::File { path: PathBuf::from(path), source })?;
    }
    Ok(0)
}

/// The files; where one is named, also what `wayferry ssh` has brought beside it.
fn both(files: &[PathBuf]) -> Vec<PathBuf> {
    let brought = match files {
        [ours] => Some(beside(ours)).filter(|path| path.exists()),
        _ => None,
    };
    files.iter().cloned().chain(brought).collect()
}

/// The time that the user chose, in nanoseconds, if any.
fn chosen(flags: &TraceFlags) -> Option<RangeInclusive<u64>> {
    // A cast of a float saturates.
    let nanoseconds = |seconds: f64| (seconds * 1e9) as u64;
    match (flags.from, flags.to) {
        (None, None) => None,
        (from, to) => Some(from.map_or(0, nanoseconds)..=to.map_or(u64::MAX, nanoseconds)),
    }
}

/// A table of the stages.
fn summary(bars: &[Bar]) -> String {
    let mut text =
        format!("{:13} {:>8} {:>10} {:>10} {:>10} {:>12}\n", "stage", "count", "p50", "p95", "max", "bytes");
    let rows = [false, true].into_iter().flat_map(|sound| Stage::ALL.map(|stage| (sound, stage)));
    for (sound, stage) in rows {
        let bars =
            || bars.iter().filter(move |bar| bar.stage == stage && (bar.subject == Subject::Sound) == sound);
        let mut times: Vec<u64> = bars().map(|bar| bar.end - bar.start).collect();
        if times.is_empty() || stage == Stage::Arrive {
            continue;
        }
        times.sort_unstable();
        let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize] as f64 / 1e6;
        let bytes: u128 = bars().map(|bar| u128::from(bar.bytes)).sum();
        let whose = if sound { "sound " } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:13} {:>8} {:>7.3} ms {:>7.3} ms {:>7.3} ms {bytes:>12}",
            format!("{whose}{}", stage.name()),
            times.len(),
            at(0.5),
            at(0.95),
            at(1.0)
        );
    }
    text
}
