//! One row of the grid, for people and for the file.

use serde_json::{Value, json};
use std::time::Duration;
use wayferry_sim::Samples;
use wayferry_sim::grid::{Cell, Row, Trouble};
use wayferry_sim::session::Measures;

use crate::bench::round;

/// What is sent over which link.
pub(super) fn scene(cell: Cell) -> String {
    format!(
        "{} rtt {} ms, {} Mbit/s, {} % {}",
        cell.workload.name(),
        cell.rtt_ms,
        cell.rate_mbps,
        cell.loss_percent(),
        model(cell)
    )
}

/// What the link does to packets.
fn model(cell: Cell) -> String {
    match cell.trouble {
        Trouble::None => cell.loss_model.name().to_owned(),
        trouble => format!("{} {}", cell.loss_model.name(), trouble.name()),
    }
}

/// What is compared on it.
pub(super) fn contender(cell: Cell) -> String {
    let repair = match cell.delivery.repair_name() {
        "none" => String::new(),
        repair => format!(" {repair}"),
    };
    format!("{}{repair} {}", cell.delivery.name(), cell.controller.name())
}

/// Both.
pub(super) fn name(cell: Cell) -> String {
    format!("{}, {}", scene(cell), contender(cell))
}

/// As in the file.
pub(super) fn json(row: &Row) -> Value {
    let cell = row.cell;
    let mut value = measures(&row.rest);
    for (key, field) in [
        ("workload", json!(cell.workload.name())),
        ("delivery", json!(cell.delivery.name())),
        ("repair", json!(cell.delivery.repair_name())),
        ("controller", json!(cell.controller.name())),
        ("loss_percent", json!(cell.loss_percent())),
        ("loss_model", json!(cell.loss_model.name())),
        ("trouble", json!(cell.trouble.name())),
        ("rtt_ms", json!(cell.rtt_ms)),
        ("rate_mbps", json!(cell.rate_mbps)),
        ("seeds", json!(row.seeds)),
        ("updates", json!(row.updates)),
        ("completion_s", json!(row.completion.mean().map(|millis| round(millis / 1e3)))),
        ("overhead_percent", json!(number(row.overhead_percent()))),
        ("wire_ratio", json!(number(row.wire_ratio()))),
        ("floor_ms", json!(round(row.floor.as_secs_f64() * 1e3))),
        ("queue_ms", waits(&row.queue)),
        // The first updates of each run, which nothing above counts.
        ("first", measures(&row.first)),
        ("failures", json!(row.failures)),
    ] {
        value[key] = field;
    }
    value
}

fn waits(samples: &Samples) -> Value {
    let at = |share| samples.percentile(share).map(round);
    json!({"p50": at(0.5), "p99": at(0.99), "p999": at(0.999)})
}

fn measures(measures: &Measures) -> Value {
    let at = |samples: &Samples, share| samples.percentile(share).map(round);
    let Measures { blocking, first_byte, inter_delivery, response } = measures;
    json!({
        "blocking_ms": {"p50": at(blocking, 0.5), "p99": at(blocking, 0.99), "p999": at(blocking, 0.999)},
        "first_byte_ms": {"p50": at(first_byte, 0.5), "p99": at(first_byte, 0.99)},
        "inter_delivery_ms": {
            "p50": at(inter_delivery, 0.5),
            "p99": at(inter_delivery, 0.99),
            "p9995": at(inter_delivery, 0.9995),
            "p9995_95": interval(inter_delivery, 0.9995),
            "over_100": inter_delivery.above(LONG),
        },
        "response_ms": {
            "p50": at(response, 0.5),
            "p99": at(response, 0.99),
            "p99_95": interval(response, 0.99),
            "p999": at(response, 0.999),
        },
    })
}

/// Where the percentile is with 95 % confidence, as far as samples are independent.
fn interval(samples: &Samples, share: f64) -> Option<[f64; 2]> {
    samples.interval(share).map(|(low, high)| [round(low), round(high)])
}

fn number(value: f64) -> Option<f64> {
    value.is_finite().then(|| round(value))
}

/// The head of the table.
pub(super) fn head() -> String {
    format!(
        "{:<15}{:<30}{:>5}{:>7}{:>7} {:<24}{:>17}{:>19}{:>8}{:>26}{:>9}{:>17}{:>8}{:>8}{:>6}",
        "workload",
        "delivery",
        "rtt",
        "Mbit/s",
        "loss",
        "model",
        "blocking 50/99",
        "inter 99/99.95",
        ">100ms",
        "response 50/99/99.9",
        "floor",
        "queue 50/99",
        "compl s",
        "over %",
        "fails"
    )
}

/// A row of the table.
pub(super) fn line(row: &Row) -> String {
    let cell = row.cell;
    let at = |samples: &Samples, shares: &[f64]| {
        let values: Vec<f64> = shares.iter().filter_map(|share| samples.percentile(*share)).collect();
        let words: Vec<String> = values.iter().map(|value| format!("{value:.2}")).collect();
        if words.is_empty() { "-".to_owned() } else { words.join(" / ") }
    };
    format!(
        "{:<15}{:<30}{:>5}{:>7}{:>6}% {:<24}{:>17}{:>19}{:>8}{:>26}{:>9.1}{:>17}{:>8.1}{:>8.2}{:>6}",
        cell.workload.name(),
        contender(cell),
        cell.rtt_ms,
        cell.rate_mbps,
        cell.loss_percent(),
        model(cell),
        at(&row.rest.blocking, &[0.5, 0.99]),
        at(&row.rest.inter_delivery, &[0.99, 0.9995]),
        row.rest.inter_delivery.above(LONG),
        at(&row.rest.response, &[0.5, 0.99, 0.999]),
        row.floor.as_secs_f64() * 1e3,
        at(&row.queue, &[0.5, 0.99]),
        row.completion.mean().unwrap_or(f64::NAN) / 1e3,
        row.overhead_percent(),
        row.failures
    )
}

/// A pause that everybody sees.
const LONG: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use wayferry_sim::Controller;
    use wayferry_sim::grid::Workload;
    use wayferry_sim::session::Delivery;

    use super::*;

    #[test]
    fn a_row_has_the_fields_of_the_format() {
        let cell = Cell::baseline(Workload::NonStreaming, Delivery::Partial, Controller::Cubic);
        let mut row = Row::new(cell);
        row.rest.response.add(Duration::from_millis(110));
        let value = json(&row);
        assert_eq!(value["workload"], "non-streaming");
        assert_eq!(value["loss_percent"], 0.5);
        assert_eq!(value["response_ms"]["p99"], 110.0);
        assert_eq!(value["blocking_ms"]["p50"], Value::Null);
        for key in
            ["first_byte_ms", "inter_delivery_ms", "overhead_percent", "wire_ratio", "floor_ms", "seeds"]
        {
            assert!(value.get(key).is_some(), "{key}");
        }
        assert!(line(&row).contains("110.00 / 110.00 / 110.00"));
        assert_eq!(head().chars().count(), line(&row).chars().count());
        let bulk = Cell { trouble: Trouble::Bulk, ..cell };
        assert_eq!(scene(bulk), "non-streaming rtt 100 ms, 100 Mbit/s, 0.5 % independent bulk");
    }
}
