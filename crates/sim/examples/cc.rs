//! Prints what controllers do in the scenarios: `cargo run --release -p wayferry-sim --example cc [NAME…]`.

use wayferry_sim::Controller;
use wayferry_sim::cc::Scenario;

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    for scenario in
        Scenario::ALL.into_iter().filter(|it| names.is_empty() || names.iter().any(|n| n == it.name()))
    {
        for controller in Controller::ALL {
            for seed in 1..=3 {
                match scenario.run(controller, seed) {
                    Ok(outcome) => println!(
                        "{:<18}{:<6} seed {seed}  p50 {:>7.1}  p90 {:>7.1}  p99 {:>7.1}  delivered {:?}  goodput {:.3?}  queue p99 {:?}  drops {}",
                        scenario.name(),
                        controller.name(),
                        outcome.latency.percentile(0.5).unwrap_or(f64::NAN),
                        outcome.latency.percentile(0.9).unwrap_or(f64::NAN),
                        outcome.latency.percentile(0.99).unwrap_or(f64::NAN),
                        outcome.delivered,
                        outcome.goodput,
                        outcome.queue.percentile(0.99),
                        outcome.overflowed
                    ),
                    Err(error) => {
                        println!("{:<18}{:<6} seed {seed}  {error}", scenario.name(), controller.name())
                    }
                }
            }
        }
    }
}
