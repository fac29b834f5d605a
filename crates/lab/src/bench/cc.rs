//! `wayferry bench cc`: congestion controllers in the scenarios of the laboratory, in virtual time.
//!
//! Invariant: a target is met by what all seeds gave together, not by the best of them.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use wayferry_sim::cc::{Metric, Outcome, Scenario};
use wayferry_sim::{Controller, Error as SimError};

use super::progress::Bar;
use super::{document, round, threads, write_text};
use crate::error::Error;
use crate::flags::CcFlags;

/// One controller in one scenario.
struct Case {
    scenario: Scenario,
    controller: Controller,
    outcome: Outcome,
    seeds: u64,
}

/// Runs the scenarios; gives the exit code.
pub(crate) fn run(flags: &CcFlags) -> Result<u8, Error> {
    let wanted =
        |scenario: &Scenario| flags.only.as_ref().is_none_or(|only| scenario.name().contains(only.as_str()));
    let scenarios = Scenario::ALL.into_iter().filter(wanted);
    let case = |scenario, controller| Case { scenario, controller, outcome: Outcome::default(), seeds: 0 };
    let mut cases: Vec<Case> =
        scenarios.flat_map(|scenario| Controller::ALL.map(|controller| case(scenario, controller))).collect();
    run_all(&mut cases, flags.seeds);
    for case in &cases {
        for line in lines(case) {
            println!("{line}");
        }
    }
    if let Some(path) = &flags.json {
        let whole = document(&cases.iter().map(json).collect::<Vec<_>>());
        write_text(path, &format!("{whole:#}\n"))?;
    }
    Ok(0)
}

/// On all cores.
fn run_all(cases: &mut [Case], seeds: u64) {
    let jobs: Vec<(usize, u64)> =
        (1..=seeds).flat_map(|seed| (0..cases.len()).map(move |case| (case, seed))).collect();
    let what: Vec<(Scenario, Controller)> =
        cases.iter().map(|case| (case.scenario, case.controller)).collect();
    let next = AtomicUsize::new(0);
    let shared = Mutex::new((cases, Bar::new(), 0));
    std::thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                while let Some((index, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (scenario, controller) = what[*index];
                    let result = scenario.run(controller, *seed);
                    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    let (cases, bar, done) = &mut *shared;
                    *done += 1;
                    take(&mut cases[*index], result, *seed, bar);
                    bar.show(*done, jobs.len());
                }
            });
        }
    });
}

fn take(case: &mut Case, result: Result<Outcome, SimError>, seed: u64, bar: &mut Bar) {
    match result {
        Ok(outcome) => {
            case.outcome.merge(&outcome);
            case.seeds += 1;
        }
        Err(error) => {
            bar.clear();
            eprintln!("warning: {}, {}, seed {seed}: {error}", case.scenario.name(), case.controller.name());
        }
    }
}

/// Everything measured, then each target.
fn lines(case: &Case) -> Vec<String> {
    let name = format!("{:<22}{:<6}", case.scenario.name(), case.controller.name());
    let values = Metric::ALL.into_iter().filter_map(|metric| Some((metric, case.outcome.value(metric)?)));
    let values: Vec<String> = values.map(|(metric, value)| format!("{} {value:.2}", metric.name())).collect();
    let targets = case.scenario.targets().iter().map(|target| {
        let word = if target.is_met(&case.outcome) { "meets" } else { "MISSES" };
        let most = target.most.map_or(String::new(), |most| format!(" to {most}"));
        format!("{word} {} {}{most}", target.metric.name(), target.value)
    });
    let first = format!("{name}{}", values.join("  "));
    std::iter::once(first).chain(targets.map(|target| format!("{:28}{target}", ""))).collect()
}

fn json(case: &Case) -> Value {
    let value = |metric| case.outcome.value(metric).map(round);
    let metrics =
        Metric::ALL.into_iter().filter_map(|metric| Some((metric.name().to_owned(), json!(value(metric)?))));
    let targets = case.scenario.targets();
    let list = targets.iter().map(|target| {
        json!({
            "metric": target.metric.name(),
            "value": target.value,
            "most": target.most,
            "met": target.is_met(&case.outcome),
        })
    });
    json!({
        "scenario": case.scenario.name(),
        "controller": case.controller.name(),
        "seeds": case.seeds,
        "p50": value(Metric::LatencyP50),
        "p99": value(Metric::LatencyP99),
        "goodput_percent": value(Metric::Goodput),
        "queue_delay_ms": value(Metric::QueueP99),
        "share_percent": value(Metric::Share),
        "jain": value(Metric::Jain),
        "target": list.collect::<Vec<_>>(),
        "met": (!targets.is_empty()).then(|| targets.iter().all(|target| target.is_met(&case.outcome))),
        "metrics": metrics.collect::<serde_json::Map<_, _>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_what_was_met() {
        let mut outcome = Outcome::default();
        outcome.set(Metric::Settling, 1.25);
        let case = Case { scenario: Scenario::RateDrop, controller: Controller::Cubic, outcome, seeds: 3 };
        let value = json(&case);
        assert_eq!(value["met"], true);
        assert_eq!(value["metrics"]["settling-s"], 1.25);
        assert_eq!(value["jain"], Value::Null);
        assert_eq!(
            lines(&case),
            ["rate-drop             cubic settling-s 1.25", &format!("{:28}meets settling-s 2", "")]
        );
    }
}
