//! `wayferry bench updates`: the evaluation grid in virtual time, its table, its file and its plots; and
//! `wayferry bench merge`, which puts together what shards of one grid gave.
//!
//! The runs themselves are in `wayferry_sim`. Invariant: a grid in shards, merged, gives the rows that it gives in one.

mod row;
mod shard;
mod why;

use std::path::Path;

use wayferry_sim::Samples;
use wayferry_sim::grid::{Cell, Grid, Row, jobs, run_jobs};

use self::shard::Part;
use super::plot::{Panel, draw};
use super::progress::Bar;
use super::{document, read_document, threads, write_text};
use crate::error::{Error, SessionError};
use crate::flags::{MergeFlags, OutFlags, Shard, UpdatesFlags};

/// Runs a grid; gives the exit code.
pub(crate) fn run(flags: &UpdatesFlags) -> Result<u8, Error> {
    let grid = Grid::from(flags.grid);
    let cells = matching(grid.cells(), flags.only.as_deref());
    let seeds = flags.seeds.unwrap_or(grid.seeds());
    if flags.why {
        return why::tell(&cells, seeds);
    }
    let shard = flags.shard.unwrap_or(Shard { number: 1, of: 1 });
    let jobs = jobs(cells.len(), seeds, shard.number - 1, shard.of);
    let mut bar = Bar::new();
    let rows = run_jobs(&cells, &jobs, threads(), |progress| {
        if let Some((cell, error)) = progress.failure {
            bar.clear();
            eprintln!("warning: {}: {error}", row::name(cell));
        }
        bar.show(progress.done, progress.of);
    });
    let part = flags.shard.map(|shard| Part { shard, seeds, grid: grid.name().into() });
    report(&rows, part.as_ref(), &flags.out)
}

/// Puts shards together; gives the exit code.
pub(crate) fn merge(flags: &MergeFlags) -> Result<u8, Error> {
    let mut parts = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    for path in &flags.files {
        let document = read_document(path)?;
        let part = Part::of(&document).ok_or_else(|| invalid(path, "it was not written with `--shard`"))?;
        for row in document["rows"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let row = shard::read_row(row).ok_or_else(|| invalid(path, "a row has no samples"))?;
            match rows.iter_mut().find(|known| known.cell == row.cell) {
                Some(known) => known.merge(&row),
                None => rows.push(row),
            }
        }
        parts.push((path.clone(), part));
    }
    let grid = shard::check(&parts)?;
    let cells = grid.cells();
    rows.sort_by_key(|row| cells.iter().position(|cell| *cell == row.cell));
    report(&rows, None, &flags.out)
}

/// Prints and writes the rows. With `part` the file holds the samples too.
fn report(rows: &[Row], part: Option<&Part>, out: &OutFlags) -> Result<u8, Error> {
    println!("{}", row::head());
    for row in rows {
        println!("{}", row::line(row));
    }
    if let Some(path) = &out.json {
        let values = rows.iter().map(|row| match part {
            Some(_) => shard::write_row(row),
            None => row::json(row),
        });
        let mut whole = document(&values.collect::<Vec<_>>());
        if let Some(part) = part {
            whole["part"] = part.json();
        }
        write_text(path, &format!("{whole:#}\n"))?;
    }
    if let Some(path) = &out.plot {
        let svg = draw(&panels(rows), 3).ok_or_else(|| invalid(path, "the plot cannot be drawn"))?;
        write_text(path, &svg)?;
    }
    Ok(0)
}

/// The cells whose name contains `only`.
fn matching(cells: Vec<Cell>, only: Option<&str>) -> Vec<Cell> {
    cells.into_iter().filter(|cell| only.is_none_or(|only| row::name(*cell).contains(only))).collect()
}

/// Three panels for each workload on each link: blocking, inter-delivery, response.
fn panels(rows: &[Row]) -> Vec<Panel> {
    let mut scenes: Vec<String> = Vec::new();
    for scene in rows.iter().map(|row| row::scene(row.cell)) {
        if !scenes.contains(&scene) {
            scenes.push(scene);
        }
    }
    let panel = |scene: &str, metric: &str, samples: fn(&Row) -> &Samples| Panel {
        title: format!("{metric}: {scene}"),
        unit: "ms",
        series: rows
            .iter()
            .filter(|row| row::scene(row.cell) == scene)
            .map(|row| (row::contender(row.cell), samples(row).clone()))
            .collect(),
    };
    let three = |scene: &String| {
        [
            panel(scene, "blocking", |row| &row.rest.blocking),
            panel(scene, "inter-delivery", |row| &row.rest.inter_delivery),
            panel(scene, "response", |row| &row.rest.response),
        ]
    };
    scenes.iter().flat_map(three).collect()
}

fn invalid(path: &Path, why: &str) -> Error {
    let source = std::io::Error::new(std::io::ErrorKind::InvalidData, why.to_owned());
    SessionError::File { path: path.to_owned(), source }.into()
}
