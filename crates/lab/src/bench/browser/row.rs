//! What is told of one thing that was measured in all pages, and the JSON of it.

use serde_json::{Value, json};

use crate::bench::{round, share};

/// One figure of a link: of Wayferry's page, and of the others beside it.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) case: &'static str,
    pub(super) rtt_ms: u32,
    pub(super) rate_mbps: u32,
    pub(super) loss_percent: f64,
    pub(super) ours: Vec<f64>,
    pub(super) peers: [Vec<f64>; PEERS.len()],
    pub(super) unit: &'static str,
    pub(super) target: Option<Target>,
}

/// What is asked of ours.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target {
    /// Of all values that share is not above this.
    AtMost(f64, f64),
    /// The median is not below this.
    AtLeast(f64),
}

impl Target {
    fn value(self) -> f64 {
        match self {
            Self::AtMost(_, value) | Self::AtLeast(value) => value,
        }
    }

    fn is_met(self, values: &[f64]) -> bool {
        match self {
            Self::AtMost(part, most) => share(values, part) <= most,
            Self::AtLeast(least) => share(values, 0.5) >= least,
        }
    }
}

impl Row {
    /// For people, a line each; what was not measured has none.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let met = match (self.target, self.is_met()) {
            (Some(target), Some(true)) => format!("meets {}", target.value()),
            (Some(target), Some(false)) => format!("MISSES {}", target.value()),
            _ => String::new(),
        };
        let peers = PEERS.iter().zip(&self.peers).map(|((_, name), peer)| (*name, peer, String::new()));
        let pages = std::iter::once(("Wayferry", &self.ours, met)).chain(peers);
        pages.filter(|(_, values, _)| !values.is_empty()).map(|(page, values, met)| {
            let [p50, p95, p99, max] = [0.5, 0.95, 0.99, 1.0].map(|part| share(values, part));
            format!(
                "{:<14} rtt {:>3}  loss {} %  {page:<16} p50 {p50:>8.1}  p95 {p95:>8.1}  p99 {p99:>8.1}  max {max:>8.1} \
                 {:<5} {met}",
                self.case, self.rtt_ms, self.loss_percent, self.unit
            )
        })
    }

    pub(super) fn json(&self, browser: &str) -> Value {
        let mut row = figures(&self.ours);
        row["case"] = json!(self.case);
        row["browser"] = json!(browser);
        row["rtt_ms"] = json!(self.rtt_ms);
        row["rate_mbps"] = json!(self.rate_mbps);
        row["loss_percent"] = json!(self.loss_percent);
        row["unit"] = json!(self.unit);
        row["target"] = json!(self.target.map(Target::value));
        row["met"] = json!(self.is_met());
        for ((key, name), peer) in PEERS.iter().zip(&self.peers) {
            let mut told = figures(peer);
            told["name"] = json!(name);
            row[key] = if peer.is_empty() { Value::Null } else { told };
        }
        row
    }

    fn is_met(&self) -> Option<bool> {
        let target = self.target.filter(|_| !self.ours.is_empty())?;
        Some(target.is_met(&self.ours))
    }
}

/// Null of none.
fn figures(values: &[f64]) -> Value {
    let at = |part| (!values.is_empty()).then(|| round(share(values, part)));
    json!({ "p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "max": at(1.0), "of": values.len() })
}

/// What the JSON and people call the others.
const PEERS: [(&str, &str); 2] = [("peer", "TigerVNC + noVNC"), ("wayvnc", "wayvnc + noVNC")];

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: &[f64], peer: &[f64]) -> Row {
        let (ours, peers) = (ours.to_vec(), [peer.to_vec(), vec![]]);
        let (rtt_ms, rate_mbps, loss_percent) = (100, 20, 1.0);
        let (case, unit, target) = ("key-to-pixel", "ms", Some(Target::AtMost(0.5, 2.0)));
        Row { case, rtt_ms, rate_mbps, loss_percent, ours, peers, unit, target }
    }

    #[test]
    fn a_row_has_all_beside_each_other() {
        let json = row(&[3.0, 1.0, 2.0], &[5.0]).json("Chrome/1");
        let expected = json!({
            "case": "key-to-pixel", "browser": "Chrome/1", "rtt_ms": 100, "rate_mbps": 20, "loss_percent": 1.0,
            "p50": 2.0, "p95": 3.0, "p99": 3.0, "max": 3.0, "of": 3, "unit": "ms", "target": 2.0, "met": true,
            "peer": { "name": "TigerVNC + noVNC", "p50": 5.0, "p95": 5.0, "p99": 5.0, "max": 5.0, "of": 1 },
            "wayvnc": null,
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn what_was_not_measured_is_null_and_meets_nothing() {
        let json = row(&[], &[5.0]).json("Chrome/1");
        assert_eq!([&json["p50"], &json["met"]], [&Value::Null; 2]);
        assert_eq!(row(&[], &[5.0]).lines().count(), 1);
        assert_eq!(row(&[3.0], &[]).json("Chrome/1")["peer"], Value::Null);
    }

    #[test]
    fn a_target_is_of_ours() {
        assert!(row(&[3.0], &[1.0]).lines().next().is_some_and(|line| line.ends_with("MISSES 2")));
        let least = |ours| Row { target: Some(Target::AtLeast(50.0)), ..row(&[ours], &[60.0]) }.is_met();
        assert_eq!([least(49.0), least(50.0)], [Some(false), Some(true)]);
    }
}
