//! `bench updates --why`: for each cell a table of what made updates late, then packet by packet the first one for each
//! cause.

use std::collections::BTreeMap;
use std::time::Duration;

use wayferry_sim::grid::{Cell, Job, jobs};
use wayferry_sim::why::{Cause, Why};

use super::row;
use crate::error::Error;

/// Runs the cells and explains them; gives the exit code.
pub(super) fn tell(cells: &[Cell], seeds: u64) -> Result<u8, Error> {
    for cell in cells {
        let mut table = Table::default();
        for Job { seed, .. } in jobs(1, seeds, 0, 1) {
            match Why::of(*cell, seed) {
                Ok(why) => table.add(&why),
                Err(error) => eprintln!("warning: {}, seed {seed}: {error}", row::name(*cell)),
            }
        }
        println!("{}", row::name(*cell));
        table.print();
    }
    Ok(0)
}

/// Of one cell.
#[derive(Debug, Default)]
struct Table {
    updates: u64,
    causes: BTreeMap<Cause, Of>,
}

/// Of one cause.
#[derive(Debug)]
struct Of {
    late: Vec<Duration>,
    /// Of the first one.
    story: Vec<String>,
}

impl Table {
    fn add(&mut self, why: &Why) {
        self.updates += why.updates;
        for late in &why.late {
            let new = || Of { late: Vec::new(), story: why.story(late) };
            self.causes.entry(late.cause).or_insert_with(new).late.push(late.by);
        }
    }

    fn print(&mut self) {
        let late: usize = self.causes.values().map(|of| of.late.len()).sum();
        println!("  {late} of {} late; by the median and the most, in ms above an empty link", self.updates);
        for (cause, of) in &mut self.causes {
            of.late.sort_unstable();
            let millis = |at: usize| of.late[at].as_secs_f64() * 1e3;
            let (middle, last) = (of.late.len() / 2, of.late.len() - 1);
            println!(
                "  {:>6} {:<34}{:>7.0}{:>7.0}",
                of.late.len(),
                cause.name(),
                millis(middle),
                millis(last)
            );
        }
        for (cause, of) in self.causes.iter().filter(|(cause, _)| **cause != Cause::Behind) {
            println!("  the first one: {}", cause.name());
            of.story.iter().for_each(|line| println!("  {line}"));
        }
    }
}
