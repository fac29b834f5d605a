//! One row of the report, for people and for the file.

use serde_json::{Value, json};

use super::measure::{Arrival, Run};
use super::target::{judge, ratio};
use crate::bench::{round, share};

/// The head of the table.
pub(super) fn head() -> String {
    format!(
        "{:<12}{:<12}{:>11}{:>11}{:>11}{:>11}{:>9}{:>19}{:>7}{:>18}{:>28}  {}",
        "sequence",
        "codec",
        "bytes mean",
        "p50",
        "p90",
        "max",
        "of zstd1",
        "encode 50/90 ms",
        "floor",
        "decode 50/90 ms",
        "ms on 10 Mbit/s 1/90/all",
        "exact"
    )
}

/// A row of the table; `beside` are the runs of the same sequence.
pub(super) fn line(run: &Run, beside: &[Run], bandwidth: f64) -> String {
    let dash = || "-".to_owned();
    let two = |values: &[f64]| format!("{:.3} / {:.3}", share(values, 0.5), share(values, 0.9));
    let beside: Vec<&Run> = beside.iter().collect();
    let paint = paint(run, 10.0)
        .map_or_else(dash, |[first, readable, whole]| format!("{first:.1} / {readable:.1} / {whole:.1}"));
    format!(
        "{:<12}{:<12}{:>11.0}{:>11.0}{:>11.0}{:>11.0}{:>9}{:>19}{:>7}{:>18}{:>28}  {}",
        run.sequence.name(),
        run.codec,
        mean(&run.bytes),
        share(&run.bytes, 0.5),
        share(&run.bytes, 0.9),
        share(&run.bytes, 1.0),
        to_diff(run, &beside).map_or_else(dash, |ratio| format!("{ratio:.3}")),
        two(&run.encode_ms),
        format!("×{:.1}", share(&run.encode_ms, 0.5) / floor_ms(run, bandwidth)),
        two(&run.decode_ms),
        paint,
        if run.failure.is_none() { "yes" } else { "NO" }
    )
}

/// As in the file; `beside` are the runs of the same sequence.
pub(super) fn json(run: &Run, beside: &[&Run], bandwidth: f64) -> Value {
    let two = |values: &[f64]| json!({"p50": round(share(values, 0.5)), "p90": round(share(values, 0.9))});
    let paint = RATES.map(|rate| {
        let [first, readable, whole] =
            paint(run, rate).map_or([None; 3], |times| times.map(|time| Some(round(time))));
        (rate.to_string(), json!({"first_ms": first, "readable_ms": readable, "lossless_ms": whole}))
    });
    let floor = floor_ms(run, bandwidth);
    let targets = if run.codec == "wayferry" { judge(beside) } else { Vec::new() };
    json!({
        "sequence": run.sequence.name(),
        "codec": run.codec,
        "updates": run.bytes.len(),
        "bytes": {
            "mean": round(mean(&run.bytes)),
            "p50": share(&run.bytes, 0.5),
            "p90": share(&run.bytes, 0.9),
            "max": share(&run.bytes, 1.0),
        },
        "encode_ms": two(&run.encode_ms),
        "decode_ms": two(&run.decode_ms),
        "exact": run.failure.is_none(),
        "paint": paint.into_iter().collect::<serde_json::Map<_, _>>(),
        "floor_ms": round(floor),
        "encode_to_floor": round(share(&run.encode_ms, 0.5) / floor),
        "bytes_to_diff_zstd1": to_diff(run, beside).map(round),
        "targets": targets.into_iter().map(|target| target.json()).collect::<Vec<_>>(),
    })
}

/// What memory alone costs an encoder, median.
fn floor_ms(run: &Run, bandwidth: f64) -> f64 {
    share(&run.touched, 0.5) / bandwidth * 1e3
}

/// The bytes beside those of runs under zstd 1.
fn to_diff(run: &Run, beside: &[&Run]) -> Option<f64> {
    ratio(run, beside.iter().find(|other| other.codec == "diff+zstd1")?)
}

/// Milliseconds on a link of so many Mbit/s until the first of an update is there, until nine tenths are, and until all
/// is: medians; `None` when nothing ever changed.
fn paint(run: &Run, rate: f64) -> Option<[f64; 3]> {
    let of = |part: fn(&Arrival) -> f64| {
        let bytes: Vec<f64> = run.arrivals.iter().map(part).collect();
        share(&bytes, 0.5) * 8.0 / (rate * 1e3)
    };
    let all = || [of(|arrival| arrival.first), of(|arrival| arrival.readable), of(|arrival| arrival.whole)];
    (!run.arrivals.is_empty()).then(all)
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Mbit/s of the links that paint times are calculated for.
const RATES: [f64; 3] = [5.0, 10.0, 100.0];

#[cfg(test)]
mod tests {
    use wayferry_scenes::Sequence;

    use super::*;

    fn run(codec: &'static str, bytes: f64) -> Run {
        Run {
            sequence: Sequence::Term,
            codec,
            bytes: vec![bytes, 3.0 * bytes],
            encode_ms: vec![2.0, 4.0],
            decode_ms: vec![1.0, 1.5],
            touched: vec![1e6; 2],
            arrivals: vec![Arrival { first: 1000.0, readable: 2000.0, whole: 5000.0 }; 2],
            failure: None,
        }
    }

    #[test]
    fn a_row_has_the_fields_of_the_format() {
        let (ours, diff) = (run("wayferry", 1000.0), run("diff+zstd1", 8000.0));
        let value = json(&ours, &[&ours, &diff], 1e9);
        assert_eq!((&value["sequence"], &value["codec"]), (&json!("term"), &json!("wayferry")));
        assert_eq!((&value["updates"], &value["exact"]), (&json!(2), &json!(true)));
        assert_eq!(value["bytes"], json!({"mean": 2000.0, "p50": 1000.0, "p90": 3000.0, "max": 3000.0}));
        assert_eq!(value["encode_ms"], json!({"p50": 2.0, "p90": 4.0}));
        assert_eq!(value["decode_ms"], json!({"p50": 1.0, "p90": 1.5}));
        assert_eq!(value["paint"]["5"], json!({"first_ms": 1.6, "readable_ms": 3.2, "lossless_ms": 8.0}));
        assert_eq!(value["paint"].as_object().map(serde_json::Map::len), Some(3));
        assert_eq!((&value["floor_ms"], &value["encode_to_floor"]), (&json!(1.0), &json!(2.0)));
        assert_eq!(value["bytes_to_diff_zstd1"], 0.125);
        assert_eq!(value["targets"].as_array().map(Vec::len), Some(4));
    }

    #[test]
    fn the_table_has_columns() {
        let runs = [run("wayferry", 1000.0), run("diff+zstd1", 8000.0)];
        let line = line(&runs[0], &runs, 1e9);
        assert_eq!(head().chars().count() - "exact".len(), line.chars().count() - "yes".len());
        assert!(line.contains("0.125") && line.contains("0.8 / 1.6 / 4.0"), "{line}");
    }
}
