//! `wayferry bench`: what every bench shares, which is how results are kept and written.
//!
//! Results are rows of one shape; the JSON document holds the command, the machine and the commit beside them, so that
//! a figure can be read a year later. Invariant: every figure comes from running code, none is computed from a setting.

pub(crate) mod browser;
pub(crate) mod cc;
pub(crate) mod compression;
mod headless;
pub(crate) mod hol;
pub(crate) mod pixels;
mod plot;
mod processes;
mod progress;
pub(crate) mod resume;
pub(crate) mod rig;
pub(crate) mod sound;
pub(crate) mod start;
pub(crate) mod typing;
pub(crate) mod updates;
pub(crate) mod windows;

use std::path::Path;

use serde_json::{Value, json};

use crate::error::SessionError;

/// One measured figure.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) case: &'static str,
    pub(crate) setting: Setting,
    /// Buffers of the program, where it matters.
    pub(crate) buffers: Option<usize>,
    pub(crate) metric: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) figures: Figures,
    pub(crate) target: Option<Target>,
}

/// The link of a case.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Setting {
    pub(crate) rtt_ms: u32,
    /// `None` is as fast as the machine.
    pub(crate) rate_mbps: Option<u32>,
    pub(crate) loss_percent: f64,
    /// Packets that are lost in a row, in the mean; up to 1 is each for itself.
    pub(crate) loss_burst: f64,
}

/// A distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figures {
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) max: f64,
}

/// What a figure should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    /// The median, at least.
    MedianAtLeast(f64),
    /// The median, at most.
    MedianAtMost(f64),
    /// The 95th percentile, at most.
    MostAtMost(f64),
}

impl Figures {
    /// Of these values; zeros of none.
    pub(crate) fn of(values: &[f64]) -> Self {
        let at = |part| share(values, part);
        Self { p50: at(0.5), p95: at(0.95), max: at(1.0) }
    }

    /// One value.
    pub(crate) fn one(value: f64) -> Self {
        Self { p50: value, p95: value, max: value }
    }
}

/// The value that this share of them does not exceed; 0 of none.
pub(crate) fn share(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

impl Target {
    fn value(self) -> f64 {
        match self {
            Self::MedianAtLeast(value) | Self::MedianAtMost(value) | Self::MostAtMost(value) => value,
        }
    }

    fn met(self, figures: Figures) -> bool {
        match self {
            Self::MedianAtLeast(value) => figures.p50 >= value,
            Self::MedianAtMost(value) => figures.p50 <= value,
            Self::MostAtMost(value) => figures.p95 <= value,
        }
    }
}

impl Row {
    fn json(&self) -> Value {
        json!({
            "case": self.case,
            "rtt_ms": self.setting.rtt_ms,
            "rate_mbps": self.setting.rate_mbps,
            "loss_percent": self.setting.loss_percent,
            "loss_burst": round(self.setting.loss_burst),
            "buffers": self.buffers,
            "metric": self.metric,
            "unit": self.unit,
            "p50": round(self.figures.p50),
            "p95": round(self.figures.p95),
            "max": round(self.figures.max),
            "target": self.target.map(Target::value),
            "met": self.target.map(|target| target.met(self.figures)),
        })
    }

    /// For people.
    pub(crate) fn line(&self) -> String {
        let met = match self.target {
            Some(target) if target.met(self.figures) => format!("meets {}", target.value()),
            Some(target) => format!("MISSES {}", target.value()),
            None => String::new(),
        };
        let loss = match self.setting.loss_percent {
            0.0 => String::new(),
            percent => format!("loss {percent} %"),
        };
        let buffers = self.buffers.map_or(String::new(), |buffers| format!("{buffers} buffers"));
        format!(
            "{:<22} rtt {:>3}  {:<9} {:<9}  {:<34} p50 {:>9.2}  p95 {:>9.2}  max {:>9.2} {:<5} {met}",
            self.case,
            self.setting.rtt_ms,
            loss,
            buffers,
            self.metric,
            self.figures.p50,
            self.figures.p95,
            self.figures.max,
            self.unit
        )
    }
}

/// The document around the rows.
pub(crate) fn document(rows: &[Value]) -> Value {
    let words: Vec<String> = std::env::args().collect();
    json!({
        "version": 1,
        "commit": commit(),
        "command": words.join(" "),
        "machine": machine(),
        "rows": rows,
    })
}

/// Writes the document.
pub(crate) fn write_json(path: &Path, rows: &[Row]) -> Result<(), SessionError> {
    let whole = document(&rows.iter().map(Row::json).collect::<Vec<_>>());
    write_text(path, &format!("{whole:#}\n"))
}

/// Reads a document.
fn read_document(path: &Path) -> Result<Value, SessionError> {
    let failed = |source| SessionError::File { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    serde_json::from_str(&text)
        .map_err(|error| failed(std::io::Error::new(std::io::ErrorKind::InvalidData, error)))
}

fn write_text(path: &Path, text: &str) -> Result<(), SessionError> {
    std::fs::write(path, text).map_err(|source| SessionError::File { path: path.to_owned(), source })
}

/// How many threads may run what does not have to wait.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The commit of the checkout that the command runs in, if it does run in one.
fn commit() -> String {
    let output = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    text.and_then(|text| String::from_utf8(text).ok()).map_or("unknown".into(), |text| text.trim().to_owned())
}

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let system = rustix::system::uname();
    let build = if cfg!(debug_assertions) { "debug build" } else { "release build" };
    format!("{model}, {cores} cores, Linux {}, {build}", system.release().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_the_values() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(Figures::of(&values), Figures { p50: 50.0, p95: 95.0, max: 100.0 });
        assert_eq!(Figures::of(&[]), Figures::one(0.0));
    }

    #[test]
    fn targets_are_met_from_the_right_side() {
        let figures = Figures { p50: 50.0, p95: 95.0, max: 100.0 };
        assert!(Target::MedianAtLeast(50.0).met(figures) && !Target::MedianAtLeast(51.0).met(figures));
        assert!(Target::MedianAtMost(50.0).met(figures) && !Target::MedianAtMost(49.0).met(figures));
        assert!(Target::MostAtMost(95.0).met(figures) && !Target::MostAtMost(94.0).met(figures));
    }

    #[test]
    fn a_row_has_the_fields_of_the_format() {
        let row = Row {
            case: "fps",
            setting: Setting { rtt_ms: 20, ..Setting::default() },
            buffers: Some(2),
            metric: "commits",
            unit: "fps",
            figures: Figures::one(60.0),
            target: Some(Target::MedianAtLeast(55.0)),
        };
        let json = row.json();
        // Whether the map keeps its order depends on what other crates ask of serde_json.
        let mut keys: Vec<&String> = json.as_object().expect("an object").keys().collect();
        keys.sort_unstable();
        let mut expected = [
            "case",
            "rtt_ms",
            "rate_mbps",
            "loss_percent",
            "loss_burst",
            "buffers",
            "metric",
            "unit",
            "p50",
            "p95",
            "max",
            "target",
            "met",
        ];
        expected.sort_unstable();
        assert_eq!(keys, expected);
        assert_eq!(json["met"], true);
    }
}
