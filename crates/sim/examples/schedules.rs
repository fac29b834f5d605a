//! Runs schedules of outages, moves, crashes and sleep: `schedules FIRST [COUNT]`, one line each that fails.

use std::process::ExitCode;

use wayferry_sim::roam::{Schedule, run};

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map_while(|arg| arg.parse::<u64>().ok());
    let (first, count) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(1));
    let (mut failed, mut resumed, mut anew) = (0, 0, 0);
    for seed in first..first + count {
        match run(&Schedule::new(seed)) {
            Ok(report) => {
                (resumed, anew) = (resumed + report.resumed, anew + report.anew);
                if count == 1 {
                    println!("schedule {seed}: {report:?}");
                }
            }
            Err(failure) => {
                failed += 1;
                println!("{failure}\n  {:?}", Schedule::new(seed).troubles);
            }
        }
    }
    println!("{count} schedules, {failed} failed; resumed {resumed} times, begun anew {anew} times");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
