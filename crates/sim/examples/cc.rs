//! Prints what controllers do in the scenarios: `cargo run --release -p wayferry-sim --example cc [NAME…]`.

use wayferry_sim::Controller;
use wayferry_sim::cc::{Metric, Outcome, Scenario};

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |scenario: &Scenario| names.is_empty() || names.iter().any(|name| name == scenario.name());
    for scenario in Scenario::ALL.into_iter().filter(wanted) {
        for controller in Controller::ALL {
            let mut all = Outcome::default();
            for seed in 1..=3 {
                match scenario.run(controller, seed) {
                    Ok(outcome) => all.merge(&outcome),
                    Err(error) => eprintln!("{} {}: {error}", scenario.name(), controller.name()),
                }
            }
            let metrics = [Metric::LatencyP50, Metric::LatencyP99, Metric::QueueP99];
            let values = metrics.into_iter().chain(all.values.iter().map(|(metric, _)| *metric));
            let text: Vec<String> = values
                .filter_map(|metric| all.value(metric).map(|value| format!("{} {value:.2}", metric.name())))
                .collect();
            let met = scenario.targets().iter().all(|target| target.is_met(&all));
            println!(
                "{:<22}{:<6}{} {}",
                scenario.name(),
                controller.name(),
                if met { "ok   " } else { "MISS " },
                text.join("  ")
            );
        }
    }
}
