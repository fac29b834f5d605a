//! What the design asks of our codec, and whether it gives it.
//!
//! Times are those of a machine of the class that the design names; bytes are the same on every machine. Invariant: a
//! target whose rows were not measured is not judged.

use serde_json::{Value, json};
use wayferry_scenes::Sequence;

use super::measure::Run;
use crate::bench::{round, share};

/// Something measured of our codec.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Metric {
    /// Milliseconds, median.
    Encode,
    Decode,
    BytesP50,
    BytesP90,
    /// Per cent of the mean bytes of `zstd3`.
    OfZstd3,
    /// How many times the mean bytes `diff+zstd1` needs.
    Gain,
}

/// A target with what was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    metric: Metric,
    wanted: f64,
    value: f64,
}

/// Judges what one sequence's runs allow to be judged.
pub(super) fn judge<R: std::borrow::Borrow<Run>>(runs: &[R]) -> Vec<Judged> {
    let runs: Vec<&Run> = runs.iter().map(std::borrow::Borrow::borrow).collect();
    let ours = runs.iter().find(|run| run.codec == "wayferry");
    let of = |sequence: Sequence| ours.is_some_and(|run| run.sequence == sequence);
    let targets = TARGETS.iter().filter(|(sequence, ..)| of(*sequence));
    targets
        .filter_map(|(_, metric, wanted)| {
            Some(Judged { metric: *metric, wanted: *wanted, value: metric.of(&runs)? })
        })
        .collect()
}

impl Metric {
    fn name(self) -> &'static str {
        match self {
            Self::Encode => "encode p50, ms",
            Self::Decode => "decode p50, ms",
            Self::BytesP50 => "bytes p50",
            Self::BytesP90 => "bytes p90",
            Self::OfZstd3 => "mean bytes, % of zstd3's",
            Self::Gain => "times fewer bytes than diff+zstd1",
        }
    }

    fn of(self, runs: &[&Run]) -> Option<f64> {
        let named = |name: &str| runs.iter().find(|run| run.codec == name);
        let ours = named("wayferry")?;
        let known = |values: &[f64], part| (!values.is_empty()).then(|| share(values, part));
        match self {
            Self::Encode => known(&ours.encode_ms, 0.5),
            Self::Decode => known(&ours.decode_ms, 0.5),
            Self::BytesP50 => known(&ours.bytes, 0.5),
            Self::BytesP90 => known(&ours.bytes, 0.9),
            Self::OfZstd3 => ratio(ours, named("zstd3")?).map(|ratio| 100.0 * ratio),
            Self::Gain => ratio(named("diff+zstd1")?, ours),
        }
    }
}

impl Judged {
    fn met(self) -> bool {
        if self.metric == Metric::Gain { self.value >= self.wanted } else { self.value <= self.wanted }
    }

    /// For people.
    pub(super) fn line(self) -> String {
        let (word, sign) = (
            if self.met() { "meets " } else { "MISSES" },
            if self.metric == Metric::Gain { "≥" } else { "≤" },
        );
        format!("{word} {} {sign} {}: {}", self.metric.name(), self.wanted, round(self.value))
    }

    pub(super) fn json(self) -> Value {
        json!({"metric": self.metric.name(), "target": self.wanted, "value": round(self.value), "met": self.met()})
    }
}

/// How many times the bytes of `other` one needs; `None` when there are none to compare with.
pub(super) fn ratio(one: &Run, other: &Run) -> Option<f64> {
    let sum = |run: &Run| run.bytes.iter().sum::<f64>();
    (sum(other) > 0.0).then(|| sum(one) / sum(other))
}

/// docs/benchmarks.md, Pixels.
const TARGETS: &[(Sequence, Metric, f64)] = &[
    (Sequence::Same, Metric::Encode, 0.6),
    (Sequence::Same, Metric::BytesP90, 0.0),
    (Sequence::Same4k, Metric::Encode, 2.5),
    (Sequence::Same4k, Metric::BytesP90, 0.0),
    (Sequence::TypeWhole, Metric::Encode, 1.0),
    (Sequence::Type, Metric::Encode, 0.2),
    (Sequence::Type, Metric::Decode, 0.2),
    (Sequence::Type, Metric::BytesP50, 300.0),
    (Sequence::Type, Metric::BytesP90, 500.0),
    (Sequence::Type, Metric::Gain, 3.0),
    (Sequence::Term, Metric::Encode, 2.5),
    (Sequence::Term, Metric::Decode, 1.0),
    (Sequence::Term, Metric::BytesP50, 3_000.0),
    (Sequence::Term, Metric::Gain, 12.0),
    (Sequence::Page, Metric::Encode, 3.0),
    (Sequence::Page, Metric::Decode, 1.5),
    (Sequence::Page, Metric::BytesP50, 7_000.0),
    (Sequence::Page, Metric::BytesP90, 60_000.0),
    (Sequence::Page, Metric::Gain, 25.0),
    (Sequence::Gtk, Metric::Encode, 1.0),
    (Sequence::Gtk, Metric::Decode, 0.3),
    (Sequence::Gtk, Metric::BytesP50, 1_500.0),
    (Sequence::Switch, Metric::Encode, 10.0),
    (Sequence::Switch, Metric::Decode, 8.0),
    (Sequence::Switch, Metric::OfZstd3, 60.0),
    (Sequence::Switch, Metric::Gain, 1.8),
    (Sequence::Photo, Metric::Encode, 40.0),
    (Sequence::Photo, Metric::Decode, 40.0),
    (Sequence::Photo, Metric::OfZstd3, 60.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn run(codec: &'static str, bytes: f64) -> Run {
        let zeros = vec![0.0; 3];
        Run {
            sequence: Sequence::Type,
            codec,
            bytes: vec![bytes; 3],
            encode_ms: vec![0.3; 3],
            decode_ms: vec![0.1; 3],
            touched: zeros,
            arrivals: Vec::new(),
            failure: None,
        }
    }

    #[test]
    fn targets_are_judged_from_the_right_side() {
        let met = |judged: &Judged| (judged.metric.name(), judged.met());
        let runs = [run("wayferry", 400.0), run("diff+zstd1", 1300.0)];
        let judged: Vec<_> = judge(&runs).iter().map(met).collect();
        assert_eq!(
            judged,
            [
                ("encode p50, ms", false),
                ("decode p50, ms", true),
                ("bytes p50", false),
                ("bytes p90", true),
                ("times fewer bytes than diff+zstd1", true),
            ]
        );
        assert_eq!(judge(&runs)[2].line(), "MISSES bytes p50 ≤ 300: 400");
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        assert!(judge::<Run>(&[]).is_empty());
        assert_eq!(judge(&[run("wayferry", 400.0)]).len(), 4, "without a codec to compare with");
        assert!(judge(&[Run { bytes: Vec::new(), ..run("wayferry", 1.0) }]).len() < 4);
    }
}
