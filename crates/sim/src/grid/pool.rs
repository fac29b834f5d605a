//! Running many cells with many seeds, on all cores.
//!
//! Invariant: which jobs belong to shard `i` of `n` depends on the grid alone, so that shards can run anywhere.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::cell::Cell;
use super::row::Row;
use super::run::{References, Run};
use crate::error::Error;

/// One run to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The number of its cell in the grid.
    pub cell: usize,
    /// Its seed, from 1.
    pub seed: u64,
}

/// How far the work is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Runs that are over.
    pub done: usize,
    /// Of how many.
    pub of: usize,
    /// What failed in the last one.
    pub failure: Option<(Cell, Error)>,
}

/// The jobs of shard number `shard` of `shards`, from 0.
pub fn jobs(cells: usize, seeds: u64, shard: u64, shards: u64) -> Vec<Job> {
    let all = (1..=seeds).flat_map(|seed| (0..cells).map(move |cell| Job { cell, seed }));
    all.enumerate()
        .filter(|(number, _)| *number as u64 % shards.max(1) == shard)
        .map(|(_, job)| job)
        .collect()
}

/// Runs the jobs on `threads` threads and gives one row for each cell that had any. `progress` is called after each
/// run, on any thread, but never on two at once.
pub fn run_jobs(
    cells: &[Cell],
    jobs: &[Job],
    threads: usize,
    progress: impl FnMut(Progress) + Send,
) -> Vec<Row> {
    let next = AtomicUsize::new(0);
    let references = References::default();
    let shared = Mutex::new(Shared { rows: vec![None; cells.len()], done: 0, progress });
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let cell = cells[job.cell];
                    let run =
                        references.of(cell).and_then(|reference| Ok((Run::of(cell, job.seed)?, reference)));
                    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    let row = shared.rows[job.cell].get_or_insert_with(|| Row::new(cell));
                    let failure = match run {
                        Ok((run, reference)) => {
                            row.add(&run, reference);
                            None
                        }
                        Err(error) => {
                            row.failures += 1;
                            Some((cell, error))
                        }
                    };
                    shared.done += 1;
                    let progress = Progress { done: shared.done, of: jobs.len(), failure };
                    (shared.progress)(progress);
                }
            });
        }
    });
    shared.into_inner().unwrap_or_else(PoisonError::into_inner).rows.into_iter().flatten().collect()
}

/// What the threads share.
struct Shared<P> {
    rows: Vec<Option<Row>>,
    done: usize,
    progress: P,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_share_the_work_out() {
        let whole = jobs(7, 3, 0, 1);
        assert_eq!(whole.len(), 21);
        let mut parts: Vec<Job> = (0..4).flat_map(|shard| jobs(7, 3, shard, 4)).collect();
        parts.sort_by_key(|job| (job.seed, job.cell));
        assert_eq!(parts, whole);
    }
}
