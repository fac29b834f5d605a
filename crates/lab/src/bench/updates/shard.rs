//! The files of shards: rows with all their samples, so that merging loses nothing.
//!
//! Invariant: what is written reads back equal, and shards that do not belong together are refused.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use wayferry_sim::grid::{Cell, Grid, LossModel, Row, Trouble, Workload};
use wayferry_sim::session::{Delivery, Measures};
use wayferry_sim::{Controller, Samples};

use super::{invalid, row};
use crate::error::Error;
use crate::flags::Shard;

/// Which part of which grid a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) grid: String,
    pub(super) seeds: u64,
    pub(super) shard: Shard,
}

impl Part {
    pub(super) fn json(&self) -> Value {
        json!({"grid": self.grid, "seeds": self.seeds, "number": self.shard.number, "of": self.shard.of})
    }

    /// Of a document; `None` when it does not say so.
    pub(super) fn of(document: &Value) -> Option<Self> {
        let part = document.get("part")?;
        let number = |key: &str| part[key].as_u64();
        Some(Self {
            grid: part["grid"].as_str()?.to_owned(),
            seeds: number("seeds")?,
            shard: Shard { number: number("number")?, of: number("of")? },
        })
    }
}

/// Whether the parts are all parts of one grid, each once; gives the grid.
pub(super) fn check(parts: &[(PathBuf, Part)]) -> Result<Grid, Error> {
    let Some((path, first)) = parts.first() else {
        return Err(Error::Usage("there is nothing to merge".into()));
    };
    let grid = Grid::ALL.into_iter().find(|grid| grid.name() == first.grid);
    let grid = grid.ok_or_else(|| invalid(path, "its grid is unknown"))?;
    for (index, (path, part)) in parts.iter().enumerate() {
        if (&part.grid, part.seeds, part.shard.of) != (&first.grid, first.seeds, first.shard.of) {
            return Err(invalid(
                path,
                "it belongs to another grid than the first file, or to other shards of it",
            ));
        }
        if parts[..index].iter().any(|(_, known)| known.shard == part.shard) {
            return Err(invalid(path, "this shard is there twice"));
        }
    }
    let missing = first.shard.of - parts.len() as u64;
    if missing > 0 {
        eprintln!("warning: {missing} of {} shards are missing", first.shard.of);
    }
    Ok(grid)
}

/// A row as in the file of the whole grid, and all that it is made of.
pub(super) fn write_row(row: &Row) -> Value {
    let mut value = row::json(row);
    value["parts"] = json!({
        "first": write_measures(&row.first),
        "rest": write_measures(&row.rest),
        "completion": write_samples(&row.completion),
        "queue": write_samples(&row.queue),
        "wire_bytes": row.wire_bytes,
        "reference_bytes": row.reference_bytes,
        "content_bytes": row.content_bytes,
        "floor_ns": u64::try_from(row.floor.as_nanos()).unwrap_or(u64::MAX),
    });
    value
}

/// The row again; `None` when something is missing or strange.
pub(super) fn read_row(value: &Value) -> Option<Row> {
    let parts = value.get("parts")?;
    let mut row = Row::new(read_cell(value)?);
    row.seeds = value["seeds"].as_u64()?;
    row.updates = value["updates"].as_u64()?;
    row.failures = value["failures"].as_u64()?;
    row.first = read_measures(&parts["first"])?;
    row.rest = read_measures(&parts["rest"])?;
    row.completion = read_samples(&parts["completion"])?;
    row.queue = read_samples(&parts["queue"])?;
    row.wire_bytes = parts["wire_bytes"].as_u64()?;
    row.reference_bytes = parts["reference_bytes"].as_u64()?;
    row.content_bytes = parts["content_bytes"].as_u64()?;
    row.floor = Duration::from_nanos(parts["floor_ns"].as_u64()?);
    Some(row)
}

fn read_cell(value: &Value) -> Option<Cell> {
    let text = |key: &str| value[key].as_str();
    let number = |key: &str| value[key].as_u64().and_then(|number| u32::try_from(number).ok());
    let (workload, model, controller) = (text("workload")?, text("loss_model")?, text("controller")?);
    let (delivery, repair, trouble) = (text("delivery")?, text("repair")?, text("trouble")?);
    Some(Cell {
        workload: Workload::ALL.into_iter().find(|it| it.name() == workload)?,
        delivery: Delivery::ALL.into_iter().find(|it| it.name() == delivery && it.repair_name() == repair)?,
        controller: Controller::ALL.into_iter().find(|it| it.name() == controller)?,
        loss_model: LossModel::ALL.into_iter().find(|it| it.name() == model)?,
        loss: (value["loss_percent"].as_f64()? * 100.0).round() as u32,
        trouble: Trouble::ALL.into_iter().find(|it| it.name() == trouble)?,
        rtt_ms: number("rtt_ms")?,
        rate_mbps: number("rate_mbps")?,
    })
}

fn write_measures(measures: &Measures) -> Value {
    let Measures { blocking, first_byte, inter_delivery, response } = measures;
    json!({
        "blocking": write_samples(blocking),
        "first_byte": write_samples(first_byte),
        "inter_delivery": write_samples(inter_delivery),
        "response": write_samples(response),
    })
}

fn read_measures(value: &Value) -> Option<Measures> {
    Some(Measures {
        blocking: read_samples(&value["blocking"])?,
        first_byte: read_samples(&value["first_byte"])?,
        inter_delivery: read_samples(&value["inter_delivery"])?,
        response: read_samples(&value["response"])?,
    })
}

/// Microseconds since the sample before, with a count where there are several: `250 10x3`.
fn write_samples(samples: &Samples) -> String {
    let mut before = 0;
    let words = samples.counts().map(|(micros, count)| {
        let step = micros - std::mem::replace(&mut before, micros);
        if count == 1 { step.to_string() } else { format!("{step}x{count}") }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn read_samples(value: &Value) -> Option<Samples> {
    let (mut samples, mut micros) = (Samples::default(), 0u64);
    for word in value.as_str()?.split_whitespace() {
        let (step, count) = word.split_once('x').unwrap_or((word, "1"));
        micros = micros.checked_add(step.parse().ok()?)?;
        samples.add_many(micros, count.parse().ok()?);
    }
    Some(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let cell = Cell::baseline(Workload::Streaming, Delivery::Total, Controller::Bbr3);
        let burst = Cell { loss: 10, loss_model: LossModel::Burst5Ms, ..cell };
        let mut row = Row::new(Cell { trouble: Trouble::Clumps20Ms, ..burst });
        for millis in [0, 0, 0, 3, 1_000_000] {
            row.rest.blocking.add(Duration::from_millis(millis));
        }
        row.first.response.add(Duration::from_micros(123_456));
        row.completion.add(Duration::from_secs(120));
        row.queue.add(Duration::from_millis(70));
        (row.seeds, row.updates, row.wire_bytes) = (2, 600, 12_345_678_901);
        row.floor = Duration::from_nanos(108_370_480);
        row
    }

    #[test]
    fn what_is_written_reads_back_equal() {
        let text = write_row(&row()).to_string();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read_row(&value), Some(row()));
        assert_eq!(value["parts"]["rest"]["blocking"], "0x3 3000 999997000");
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let damaged = |change: fn(&mut Value)| {
            let mut value = write_row(&row());
            change(&mut value);
            read_row(&value)
        };
        assert_eq!(damaged(|value| value["parts"]["rest"]["blocking"] = json!("1 2y3")), None);
        assert_eq!(damaged(|value| value["controller"] = json!("reno")), None);
        assert_eq!(damaged(|value| value["parts"] = Value::Null), None);
    }

    #[test]
    fn shards_of_different_grids_do_not_merge() {
        let part = |grid: &str, number| {
            (PathBuf::from("a"), Part { grid: grid.into(), seeds: 2, shard: Shard { number, of: 3 } })
        };
        assert!(matches!(check(&[part("smoke", 1), part("smoke", 3)]), Ok(Grid::Smoke)));
        assert!(check(&[part("smoke", 1), part("paper", 2)]).is_err());
        assert!(check(&[part("smoke", 1), part("smoke", 1)]).is_err());
        assert!(check(&[part("none", 1)]).is_err());
        assert!(check(&[]).is_err());
    }

    #[test]
    fn a_part_survives_its_document() {
        let part = Part { grid: "paper".into(), seeds: 20, shard: Shard { number: 2, of: 16 } };
        assert_eq!(Part::of(&json!({"part": part.json()})), Some(part));
        assert_eq!(Part::of(&json!({"rows": []})), None);
    }
}
