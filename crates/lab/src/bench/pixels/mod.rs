//! `wayferry bench pixels`: our codec and plain ones over the same generated screens.
//!
//! The screens and the plain codecs are in `wayferry_scenes`. All codecs take turns with each update, so that what else
//! the machine does meets all of them. Invariant: every update of every codec is compared with what was painted, and
//! one that differs makes the command fail.

mod measure;
mod row;
mod target;
mod wayferry;

use std::path::Path;

use wayferry_scenes::Sequence;
use wayferry_scenes::codec::{Codec, Diff, Method, Whole};
use wayferry_sim::Samples;

pub(super) use self::measure::cpu_time;
use self::measure::{Run, play};
pub(super) use self::wayferry::Wayferry;
use super::plot::{Panel, draw};
use super::progress::Bar;
use super::{document, write_text};
use crate::error::{Error, SessionError};
use crate::flags::{OwnFlags, PixelsFlags};
use wayferry_host::settings::Compress;

/// Plays the sequences; gives the exit code.
pub(crate) fn run(own: &OwnFlags, flags: &PixelsFlags) -> Result<u8, Error> {
    let wanted = |sequence: &Sequence| flags.sequences.is_empty() || flags.sequences.contains(sequence);
    let sequences: Vec<Sequence> = Sequence::ALL.into_iter().filter(wanted).collect();
    let bandwidth = measure::memory_bandwidth();
    let frames = flags.frames as usize;
    let (mut bar, total) = (Bar::new(), sequences.len() * frames);
    let mut runs = Vec::new();
    println!(
        "memory: {:.1} GB/s copied by this thread; floor: what an encoder must read and write at that rate",
        bandwidth / 1e9
    );
    println!("{}", row::head());
    for (number, sequence) in sequences.into_iter().enumerate() {
        let codecs = codecs(sequence, own.compress.unwrap_or_default())?;
        let played =
            play(sequence, flags.seed, frames, codecs, |frame| bar.show(number * frames + frame, total));
        bar.clear();
        print(&played, bandwidth);
        runs.extend(played);
    }
    write(flags, &runs, bandwidth)?;
    match runs.iter().find_map(|run| Some((run, run.failure.as_ref()?))) {
        Some((run, why)) => Err(Error::Inexact(format!("{} over {}: {why}", run.codec, run.sequence.name()))),
        None => Ok(0),
    }
}

/// Ours first.
fn codecs(sequence: Sequence, compress: Compress) -> Result<Vec<Box<dyn Codec>>, Error> {
    let (width, height) = sequence.size();
    Ok(vec![
        Box::new(Wayferry::new(compress, width, height)?),
        Box::new(Diff::new("diff+lz4", Method::Lz4, width, height)),
        Box::new(Diff::new("diff+zstd1", Method::Zstd(1), width, height)),
        Box::new(Whole::new("zstd3", Method::Zstd(3), width, height)),
    ])
}

/// The runs of one sequence, then its targets.
fn print(runs: &[Run], bandwidth: f64) {
    for run in runs {
        println!("{}", row::line(run, runs, bandwidth));
    }
    for judged in target::judge(runs) {
        println!("{:12}{}", "", judged.line());
    }
}

fn write(flags: &PixelsFlags, runs: &[Run], bandwidth: f64) -> Result<(), Error> {
    if let Some(path) = &flags.out.json {
        let rows = runs.iter().map(|run| {
            let beside: Vec<&Run> = runs.iter().filter(|other| other.sequence == run.sequence).collect();
            row::json(run, &beside, bandwidth)
        });
        let mut whole = document(&rows.collect::<Vec<_>>());
        whole["seed"] = flags.seed.into();
        whole["memory_gb_per_s"] = super::round(bandwidth / 1e9).into();
        write_text(path, &format!("{whole:#}\n"))?;
    }
    if let Some(path) = &flags.out.plot {
        write_text(path, &plot(runs, path)?)?;
    }
    Ok(())
}

/// Three panels for each sequence: bytes, time to encode, time to decode.
fn plot(runs: &[Run], path: &Path) -> Result<String, SessionError> {
    let panel = |of: &[Run], what: &str, unit, samples: fn(&Run) -> Samples| Panel {
        title: format!("{what}: {}", of[0].sequence.name()),
        unit,
        series: of.iter().map(|run| (run.codec.to_owned(), samples(run))).collect(),
    };
    let three = |of: &[Run]| {
        [
            panel(of, "bytes", "kB", |run| thousandths(&run.bytes, 1.0)),
            panel(of, "encoding", "ms", |run| thousandths(&run.encode_ms, 1e3)),
            panel(of, "decoding", "ms", |run| thousandths(&run.decode_ms, 1e3)),
        ]
    };
    let panels: Vec<Panel> =
        runs.chunk_by(|one, other| one.sequence == other.sequence).flat_map(three).collect();
    draw(&panels, 3).ok_or_else(|| {
        let source = std::io::Error::other("the plot cannot be drawn");
        SessionError::File { path: path.to_owned(), source }
    })
}

/// As samples, which count thousandths of an axis' unit.
fn thousandths(values: &[f64], scale: f64) -> Samples {
    let mut samples = Samples::default();
    for value in values {
        samples.add_many((value * scale).round() as u64, 1);
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(sequence: Sequence) -> Vec<Run> {
        play(sequence, 1, 2, codecs(sequence, Compress::default()).expect("a size"), |_| {})
    }

    #[test]
    fn every_codec_is_exact_over_text() {
        for run in runs(Sequence::Type) {
            assert_eq!(run.failure, None, "{}", run.codec);
            assert!(run.bytes.iter().all(|bytes| (1.0..100_000.0).contains(bytes)), "{:?}", run.bytes);
        }
    }

    #[test]
    fn runs_become_a_picture() {
        let svg = plot(&runs(Sequence::Gtk), Path::new("x.svg")).expect("a picture");
        assert!(svg.contains("encoding: gtk") && svg.contains("diff+zstd1"));
    }
}
