//! What a person waits for whose display is a page in a browser: it reads streams in order, and rows come in datagrams.
//!
//! Virtual time and fixed seeds: a figure here changes only when the code does. Each goal stands beside the same run
//! without repair, which misses it.

use wayferry_sim::grid::{Cell, LossModel, Run, Workload};
use wayferry_sim::session::Delivery;
use wayferry_sim::{Controller, Samples};

const PAGE: Delivery = Delivery::Page { repaired: true };
const WITHOUT: Delivery = Delivery::Page { repaired: false };

/// Typing at 20 Mbit/s and 100 ms; hundredths of a percent are lost.
fn typing(delivery: Delivery, loss: u32) -> Cell {
    let base = Cell::baseline(Workload::Typing, delivery, Controller::Copa);
    Cell { rate_mbps: 20, loss_model: LossModel::Independent, loss, ..base }
}

/// Responses of all seeds, and bytes for each byte without loss and repair.
fn outcome(cell: Cell, seeds: u64) -> (Samples, f64) {
    let (mut response, mut bytes) = (Samples::default(), 0);
    for seed in 1..=seeds {
        let run = Run::of(cell, seed).unwrap();
        response.merge(&run.rest.response);
        bytes += run.wire_bytes;
    }
    let plain = Run::on(cell.lossless_link(), cell.reference(), 0).unwrap();
    (response, bytes as f64 / (plain.wire_bytes * seeds) as f64)
}

fn at(response: &Samples, share: f64) -> f64 {
    response.percentile(share).unwrap_or(f64::INFINITY)
}

#[test]
fn keys_are_answered_soon_where_single_packets_are_lost() {
    for (loss, p99) in [(0, 106.0), (100, 113.0), (300, 115.0)] {
        let (with, bytes) = outcome(typing(PAGE, loss), 4);
        let (without, more) = outcome(typing(WITHOUT, loss), 4);
        for (name, response, bytes) in [("with", &with, bytes), ("without", &without, more)] {
            let [p50, p95, p99, p999] = [0.5, 0.95, 0.99, 0.999].map(|share| at(response, share));
            println!("{loss} {name}: {p50:.1} {p95:.1} {p99:.1} {p999:.1} ms, {bytes:.2} times the bytes");
        }
        assert!(at(&with, 0.99) <= p99, "{loss}: p99 {}", at(&with, 0.99));
        assert!(loss == 0 || at(&without, 0.99) > 190.0, "{loss}: {} is good enough", at(&without, 0.99));
        assert!(bytes <= 2.4, "{loss}: {bytes} times the bytes");
    }
}
