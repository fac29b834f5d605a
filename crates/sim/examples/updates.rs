//! Prints a grid: `cargo run --release -p wayferry-sim --example updates`.

use wayferry_sim::grid::{Grid, jobs, run_jobs};

fn main() {
    let cells = Grid::Smoke.cells();
    let jobs = jobs(cells.len(), 2, 0, 1);
    let rows = run_jobs(&cells, &jobs, 2, |progress| eprintln!("{progress:?}"));
    for row in rows {
        let p = |s: &wayferry_sim::Samples, q: f64| s.percentile(q).unwrap_or(f64::NAN);
        println!(
            "{:<15}{:<15}{:<6} blocking {:.2}/{:.2} inter {:.2}/{:.2} response {:.1}/{:.1} completion {:.1} overhead {:.2} ratio {:.3} floor {:?}",
            row.cell.workload.name(),
            row.cell.delivery.name(),
            row.cell.controller.name(),
            p(&row.rest.blocking, 0.5),
            p(&row.rest.blocking, 0.99),
            p(&row.rest.inter_delivery, 0.99),
            p(&row.rest.inter_delivery, 0.9995),
            p(&row.rest.response, 0.5),
            p(&row.rest.response, 0.99),
            p(&row.completion, 0.5) / 1e3,
            row.overhead_percent(),
            row.wire_ratio(),
            row.floor,
        );
    }
}
