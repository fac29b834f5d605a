//! Whole sessions over bad links, in virtual time.

use std::time::Duration;

use wayferry_proto::Time;
use wayferry_sim::Controller;
use wayferry_sim::grid::{Cell, Job, Run, Workload, run_jobs};
use wayferry_sim::link::{Change, Jitter, Loss, Reorder, Step};
use wayferry_sim::session::{Amount, Delivery};

const DELIVERIES: [Delivery; 3] = [Delivery::Total, Delivery::Partial, Delivery::Repaired(Amount::Adaptive)];

/// The display side reports a fault when an update comes twice or with a wrong byte, and the run ends when all are
/// there.
#[test]
fn everything_arrives_exactly_once_over_a_link_that_does_everything_wrong() {
    for delivery in DELIVERIES {
        let cell = Cell::baseline(Workload::Mixed, delivery, Controller::Cubic);
        let mut link = cell.link();
        for lane in [&mut link.forward, &mut link.back] {
            lane.loss = Loss::Packets { share: 0.03, burst: 2.0 };
            lane.reorder = Some(Reorder { share: 0.05, by: Duration::from_millis(15) });
            lane.duplication = 0.05;
            lane.jitter = Jitter::Clumps { span: Duration::from_millis(10) };
            let step = |millis, change| Step { at: Time::from_millis(millis), change };
            lane.steps = vec![
                step(5000, Change::Down(true)),
                step(6500, Change::Down(false)),
                step(10_000, Change::Delay(Duration::from_millis(20))),
            ];
        }
        let run = Run::on(link, cell, 7).unwrap();
        assert_eq!(run.updates, 300);
        assert!(run.wire_bytes > run.content_bytes);
    }
}

#[test]
fn the_same_seed_gives_the_same_result_to_the_bit() {
    let controllers = Controller::ALL.into_iter().filter(|controller| controller.is_deterministic());
    let cells: Vec<Cell> = controllers
        .flat_map(|controller| {
            DELIVERIES.map(|delivery| Cell::baseline(Workload::Mixed, delivery, controller))
        })
        .collect();
    let jobs: Vec<Job> = (0..cells.len()).map(|cell| Job { cell, seed: 1 }).collect();
    let first = run_jobs(&cells, &jobs, 2, |_| ());
    let second = run_jobs(&cells, &jobs, 1, |_| ());
    assert_eq!(first, second);
    assert_ne!(Run::of(cells[1], 1), Run::of(cells[1], 2), "the seed matters");
}

#[test]
fn a_clean_link_delivers_at_its_floor() {
    let cell = Cell { loss: 0, ..Cell::baseline(Workload::Typing, Delivery::Partial, Controller::Cubic) };
    let run = Run::of(cell, 1).unwrap();
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let fastest = run.rest.response.percentile(0.0).unwrap();
    let most = run.rest.response.percentile(0.95).unwrap();
    // One to five packets at 100 Mbit/s are 0.1 to 0.6 ms.
    assert!(fastest >= millis(cell.rtt()) + 0.1, "{fastest}");
    assert!(most <= millis(cell.rtt()) + 1.0, "{most}");
    assert_eq!(run.rest.blocking.percentile(1.0), Some(0.0));
}
