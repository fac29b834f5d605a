//! The goals that the design is measured by, on the grid's own cells: what is reached must not be lost again.
//!
//! Virtual time and fixed seeds: a figure here changes only when the code does.

use std::time::Duration;

use wayferry_sim::Controller;
use wayferry_sim::grid::{Cell, Grid, LossModel, Row, Workload, jobs, run_jobs};
use wayferry_sim::session::{Amount, Delivery};

const REPAIRED: Delivery = Delivery::Repaired(Amount::Adaptive);

/// The rows of these cells, `seeds` of each.
fn rows<const N: usize>(seeds: u64, cells: [Cell; N]) -> [Row; N] {
    let jobs = jobs(N, seeds, 0, 1);
    let rows = run_jobs(&cells, &jobs, 2, |_| ());
    rows.try_into().unwrap_or_else(|rows: Vec<Row>| panic!("{} of {N} rows", rows.len()))
}

fn product(workload: Workload) -> Cell {
    Cell::baseline(workload, REPAIRED, Controller::Copa)
}

#[track_caller]
fn at_most(what: &str, value: Option<f64>, limit: f64) {
    assert!(value.is_some_and(|value| value <= limit), "{what}: {value:?}, and not at most {limit}");
}

#[test]
fn streaming_is_not_blocked() {
    let [base, lossy] =
        rows(4, [product(Workload::Streaming), Cell { loss: 100, ..product(Workload::Streaming) }]);
    at_most("blocking p99", base.rest.blocking.percentile(0.99), 0.4);
    at_most("inter-delivery p99.95", base.rest.inter_delivery.percentile(0.9995), 3.5);
    at_most("overhead", Some(base.overhead_percent()), 6.5);
    at_most("blocking p99 at 1 %", lossy.rest.blocking.percentile(0.99), 0.6);
    at_most("inter-delivery p99.95 at 1 %", lossy.rest.inter_delivery.percentile(0.9995), 4.0);
    at_most("overhead at 1 %", Some(lossy.overhead_percent()), 8.5);
}

#[test]
fn a_request_is_answered_at_the_speed_of_the_link() {
    let base = product(Workload::NonStreaming);
    let [base, lossy, far] = rows(1, [base, Cell { loss: 100, ..base }, Cell { rtt_ms: 200, ..base }]);
    at_most("response p99", base.rest.response.percentile(0.99), 112.0);
    at_most("inter-delivery p99.95", base.rest.inter_delivery.percentile(0.9995), 3.5);
    at_most("completion", base.completion.percentile(1.0), 124_000.0);
    assert_eq!(base.rest.inter_delivery.above(Duration::from_millis(100)), 0);
    at_most("response p99 at 1 %", lossy.rest.response.percentile(0.99), 115.0);
    at_most("response p99 at 200 ms", far.rest.response.percentile(0.99), 215.0);
}

#[test]
fn a_clean_link_costs_little() {
    let [clean] = rows(1, [Cell { loss: 0, ..product(Workload::NonStreaming) }]);
    at_most("overhead", Some(clean.overhead_percent()), 2.0);
}

/// Without repair and with CUBIC the same cells miss the goals: what passes above passes for a reason.
#[test]
fn the_goals_are_out_of_reach_without_repair_and_our_controller() {
    let bare = |workload| Cell::baseline(workload, Delivery::Partial, Controller::Cubic);
    let [streaming, asked] = rows(1, [bare(Workload::Streaming), bare(Workload::NonStreaming)]);
    assert!(streaming.rest.blocking.percentile(0.99) > Some(10.0));
    assert!(streaming.rest.inter_delivery.percentile(0.9995) > Some(50.0));
    assert!(asked.rest.response.percentile(0.99) > Some(200.0));
}

/// A window that draws in place, 60 frames a second, over a link that loses in this manner.
fn busy(workload: Workload, (loss_model, loss): (LossModel, u32)) -> Cell {
    Cell { loss_model, loss, rate_mbps: 20, ..product(workload) }
}

const MANNERS: [(LossModel, u32); 7] = [
    (LossModel::Independent, 100),
    (LossModel::Independent, 300),
    (LossModel::Gilbert2, 100),
    (LossModel::Burst5Ms, 100),
    (LossModel::Burst20Ms, 100),
    (LossModel::Gilbert4, 100),
    (LossModel::Elliott, 195),
];

/// No loss costs a window that draws in place more than a frame, mostly, and next to nothing more is sent.
#[test]
fn a_loss_costs_a_busy_window_one_frame() {
    let rows = rows(4, MANNERS.map(|manner| busy(Workload::InPlace, manner)));
    for (row, (manner, _)) in rows.iter().zip(MANNERS) {
        let beyond = if matches!(manner, LossModel::Gilbert4 | LossModel::Elliott) { 70.0 } else { 18.0 };
        let (name, floor) = (manner.name(), row.floor.as_secs_f64() * 1e3);
        at_most(name, row.rest.response.percentile(0.99), floor + beyond);
        at_most(name, Some(row.overhead_percent()), 20.0);
    }
}

/// What cannot make up for what was before has a row for every three, and what is lost is there two frames later.
#[test]
fn a_busy_window_that_is_not_covered_has_a_row_for_every_three() {
    let goals = [(LossModel::Independent, 20.0, 37.0), (LossModel::Burst5Ms, 37.0, 105.0)];
    let rows = rows(6, goals.map(|(manner, ..)| busy(Workload::Busy, (manner, 100))));
    for (row, (manner, p99, p999)) in rows.iter().zip(goals) {
        let (name, floor) = (manner.name(), row.floor.as_secs_f64() * 1e3);
        at_most(name, row.rest.response.percentile(0.99), floor + p99);
        at_most(name, row.rest.response.percentile(0.999), floor + p999);
        at_most(name, Some(row.overhead_percent()), 55.0);
    }
}

/// A row for each misses that: it costs nearly as much again, and a burst still costs a round trip.
#[test]
fn a_row_for_each_does_not_keep_a_busy_window_going() {
    let bursts = [LossModel::Gilbert2, LossModel::Burst5Ms, LossModel::Burst20Ms];
    let rows_alone = Delivery::Repaired(Amount::Fixed110);
    for row in
        rows(4, bursts.map(|manner| Cell { delivery: rows_alone, ..busy(Workload::Busy, (manner, 100)) }))
    {
        let (floor, p99) = (row.floor.as_secs_f64() * 1e3, row.rest.response.percentile(0.99));
        assert!(
            p99 > Some(floor + 40.0) && row.overhead_percent() > 80.0,
            "{p99:?} {}",
            row.overhead_percent()
        );
    }
}

#[test]
fn the_smoke_grid_holds_what_is_pinned_here() {
    let cells = Grid::Smoke.cells();
    for workload in [Workload::Streaming, Workload::NonStreaming] {
        assert!(cells.contains(&product(workload)), "{workload:?}");
    }
}
