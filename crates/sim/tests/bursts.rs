//! What a person waits for, over links that lose in bursts: goals that are reached and must not be lost again.
//!
//! Virtual time and fixed seeds: a figure here changes only when the code does. Each goal stands beside the same run
//! with rows alone, which misses it.

use std::sync::Arc;
use std::time::Duration;

use wayferry_proto::Time;
use wayferry_sim::app::{Bulk, Sink, Traffic};
use wayferry_sim::grid::{Cell, LossModel, Run, Trouble, Workload};
use wayferry_sim::link::Jitter;
use wayferry_sim::session::{Amount, AppSide, Delivery, DisplaySide};
use wayferry_sim::{Controller, Flow, HostId, LinkConfig, PacketSize, Samples, Windows, World};

const REPAIRED: Delivery = Delivery::Repaired(Amount::Adaptive);

/// A row for each small block, and nothing else.
const ROWS_ALONE: Delivery = Delivery::Repaired(Amount::Fixed110);

/// Typing at 20 Mbit/s and 100 ms; hundredths of a percent are lost.
fn typing(delivery: Delivery, loss_model: LossModel, loss: u32) -> Cell {
    let base = Cell::baseline(Workload::Typing, delivery, Controller::Copa);
    Cell { rate_mbps: 20, loss_model, loss, ..base }
}

/// Responses of all seeds, and bytes for each byte without loss and repair.
struct Outcome {
    response: Samples,
    bytes: f64,
}

impl Outcome {
    fn of(cell: Cell, seeds: u64, change: impl Fn(&mut LinkConfig)) -> Self {
        let (mut response, mut bytes) = (Samples::default(), 0);
        for seed in 1..=seeds {
            let mut link = cell.link();
            change(&mut link);
            let run = Run::on(link, cell, seed).unwrap();
            response.merge(&run.rest.response);
            bytes += run.wire_bytes;
        }
        let plain = Run::on(cell.lossless_link(), cell.reference(), 0).unwrap();
        Self { response, bytes: bytes as f64 / (plain.wire_bytes * seeds) as f64 }
    }

    fn at(&self, share: f64) -> f64 {
        self.response.percentile(share).unwrap_or(f64::INFINITY)
    }
}

/// The median without loss.
const FLOOR: f64 = 101.7;

#[test]
fn keys_are_answered_soon_where_losses_come_in_bursts() {
    let goals = [
        (LossModel::Gilbert4, 100, 14.0, 112.0, 2.1),
        (LossModel::Burst5Ms, 100, 14.0, 112.0, 2.1),
        (LossModel::Burst20Ms, 100, 32.0, 118.0, 2.2),
        (LossModel::Elliott, 195, 32.0, 118.0, 2.2),
    ];
    for (model, loss, p99, p999, bytes) in goals {
        let with = Outcome::of(typing(REPAIRED, model, loss), 8, |_| ());
        assert!(with.at(0.99) <= FLOOR + p99, "{model:?}: p99 {}", with.at(0.99));
        assert!(with.at(0.999) <= FLOOR + p999, "{model:?}: p99.9 {}", with.at(0.999));
        assert!(with.bytes <= bytes, "{model:?}: {} times the bytes", with.bytes);
        let without = Outcome::of(typing(ROWS_ALONE, model, loss), 3, |_| ());
        assert!(without.at(0.99) > FLOOR + p99 + 50.0, "{model:?}: {} is good enough", without.at(0.99));
    }
}

#[test]
fn single_losses_are_answered_as_before() {
    for loss in [100, 300] {
        let with = Outcome::of(typing(REPAIRED, LossModel::Independent, loss), 4, |_| ());
        assert!(with.at(0.99) <= FLOOR + 4.0, "{loss}: p99 {}", with.at(0.99));
    }
}

/// Every answer of twice and five times as much bad time comes in little more than two round trips.
#[test]
fn more_bad_time_costs_one_round_trip_more() {
    for loss in [200, 500] {
        let model = LossModel::Burst5Ms;
        let with = Outcome::of(typing(REPAIRED, model, loss), 4, |_| ());
        let without = Outcome::of(typing(ROWS_ALONE, model, loss), 2, |_| ());
        assert!(with.at(0.99) <= FLOOR + 115.0, "{loss}: p99 {}", with.at(0.99));
        assert!(without.at(0.99) > FLOOR + 190.0, "{loss}: p99 {}", without.at(0.99));
    }
}

/// Packets are up to 20 ms late, in clumps: that is no loss, and what insists would feed on it.
#[test]
fn jitter_does_not_make_anything_go_again() {
    let jittery = |link: &mut LinkConfig| {
        for lane in [&mut link.forward, &mut link.back] {
            lane.jitter = Jitter::Clumps { span: Duration::from_millis(20) };
        }
    };
    let clean = Outcome::of(typing(REPAIRED, LossModel::Independent, 0), 2, jittery);
    assert!(clean.bytes < 1.1, "{} times the bytes without a loss", clean.bytes);
    let with = Outcome::of(typing(REPAIRED, LossModel::Burst5Ms, 100), 4, jittery);
    let without = Outcome::of(typing(ROWS_ALONE, LossModel::Burst5Ms, 100), 2, jittery);
    assert!(with.at(0.99) + 40.0 < without.at(0.99), "{} and {}", with.at(0.99), without.at(0.99));
    assert!(with.bytes < 2.2, "{} times the bytes", with.bytes);
}

/// Each packet is up to 20 ms late for itself: what is late is late, and nothing goes again for it.
#[test]
fn packets_that_overtake_cost_a_busy_window_nothing() {
    let base = Cell { workload: Workload::InPlace, ..typing(REPAIRED, LossModel::Independent, 0) };
    let outcome = Outcome::of(Cell { trouble: Trouble::Apart20Ms, ..base }, 1, |_| ());
    assert!(outcome.at(0.99) <= 50.5 + 21.0, "p99 {}", outcome.at(0.99));
    assert!(outcome.bytes < 1.05, "{} times the bytes", outcome.bytes);
}

/// Each packet is up to 5 ms late for itself: what three others have overtaken is not lost, and not repaired.
#[test]
fn what_is_overtaken_is_not_taken_for_lost() {
    let cell = Cell { trouble: Trouble::Apart5Ms, ..typing(REPAIRED, LossModel::Independent, 0) };
    let outcome = Outcome::of(cell, 1, |_| ());
    assert!(outcome.bytes < 1.8, "{} times the bytes", outcome.bytes);
}

/// The bytes of a flow that fills the queue are not the session's, and keys wait for the queue and for nothing else.
#[test]
fn beside_a_flow_that_fills_the_queue_keys_wait_for_the_queue_alone() {
    let cell = Cell { trouble: Trouble::Bulk, ..typing(REPAIRED, LossModel::Independent, 0) };
    let run = Run::on(cell.link(), cell, 1).unwrap();
    let at = |samples: &Samples| samples.percentile(0.99).unwrap();
    let (queue, response) = (at(&run.queue), at(&run.rest.response));
    assert!((80.0..101.0).contains(&queue), "the queue of {queue} ms is full");
    assert!(response <= FLOOR + queue + 5.0, "p99 {response} ms behind {queue} ms");
    let plain = Run::on(cell.lossless_link(), cell.reference(), 0).unwrap();
    assert!(run.wire_bytes < 2 * plain.wire_bytes, "{} and {}", run.wire_bytes, plain.wire_bytes);
}

/// Typing for a minute beside a bulk flow under CUBIC, which fills the queue and loses by it: bytes of the bulk flow
/// and of the typing.
fn beside_bulk(delivery: Delivery) -> (u64, u64) {
    let cell = typing(delivery, LossModel::Independent, 0);
    let plan = Arc::new(cell.workload.plan());
    let flow = |controller, windows, sender, receiver| Flow {
        controller,
        size: PacketSize::Pinned(1400),
        windows,
        sender,
        receiver,
    };
    let typed = flow(
        cell.controller,
        delivery.windows(),
        Box::new(AppSide::new(Arc::clone(&plan), delivery)),
        Box::new(DisplaySide::new(plan, delivery)),
    );
    let bulk = flow(
        Controller::Cubic,
        Windows::Wide,
        Box::new(Traffic::new(Some(Bulk::ALWAYS), None)),
        Box::new(Sink::new(true, None)),
    );
    let mut world = World::new(cell.link(), vec![typed, bulk], 1).unwrap();
    world.run_until(END).unwrap();
    assert!(world.lane_stats()[0].overflowed > 20, "congestion loses");
    let bulk = world.app::<Sink>(HostId::receiver(1)).unwrap().bulk_bytes(Time::ZERO, END);
    let typed = world.stats(HostId::sender(0)).unwrap().udp_tx.bytes;
    (bulk, typed)
}

const END: Time = Time::from_millis(60_000);

#[test]
fn beside_a_flow_that_fills_the_queue_nothing_is_fed_to_it() {
    let (with, typed) = beside_bulk(REPAIRED);
    let (without, plain) = beside_bulk(Delivery::Partial);
    assert!(with as f64 > without as f64 * 0.97, "bulk of {with} bytes in place of {without}");
    assert!(typed as f64 <= plain as f64 * 1.95, "{typed} bytes in place of {plain}");
}
