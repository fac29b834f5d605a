use proptest::prelude::*;

use super::*;
use crate::link::{Loss, Policer, Queue, Reorder, Step};
use crate::unit::Bitrate;

/// Pushes (time in µs, payload) and gives (time of arrival, index) of all that comes out, and what the lane did.
fn arrivals(config: &LaneConfig, packets: &[(u64, usize)], seed: u64) -> (Vec<(Time, usize)>, LaneStats) {
    let mut lane = Lane::new(config.clone(), seed);
    let mut out = Vec::new();
    for (index, (micros, size)) in packets.iter().enumerate() {
        let now = Time::from_micros(*micros);
        drain(&mut lane, now, &mut out);
        lane.push(now, *size, index);
    }
    drain(&mut lane, Time::from_millis(1 << 40), &mut out);
    (out, lane.stats())
}

fn drain(lane: &mut Lane<usize>, until: Time, out: &mut Vec<(Time, usize)>) {
    while let Some(due) = lane.next_timeout().filter(|due| *due <= until) {
        out.extend(std::iter::from_fn(|| lane.pop(due)).map(|index| (due, index)));
    }
}

fn packets() -> impl Strategy<Value = Vec<(u64, usize)>> {
    prop::collection::vec((0u64..2_000, 1usize..1453), 1..200).prop_map(|gaps| {
        let mut time = 0;
        let timed = gaps.into_iter().map(|(gap, size)| {
            time += gap;
            (time, size)
        });
        timed.collect()
    })
}

fn at_rate(rate: Bitrate) -> LaneConfig {
    LaneConfig { service: Service::Rate(rate), ..LaneConfig::default() }
}

proptest! {
    #[test]
    fn a_perfect_lane_keeps_time_and_order(packets in packets(), delay in 0u64..100_000) {
        let delay = Duration::from_micros(delay);
        let (out, _) = arrivals(&LaneConfig { delay, ..LaneConfig::default() }, &packets, 1);
        let expected = packets.iter().enumerate().map(|(index, (micros, _))| (Time::from_micros(*micros) + delay, index));
        prop_assert_eq!(out, expected.collect::<Vec<_>>());
    }

    #[test]
    fn the_rate_holds_in_every_span(packets in packets(), bits in 100_000u64..50_000_000) {
        let rate = Bitrate::bps(bits);
        let (out, _) = arrivals(&at_rate(rate), &packets, 1);
        let mut earliest = Time::ZERO;
        for (time, index) in &out {
            // A nanosecond of rounding for each packet.
            let takes = rate.time(packets[*index].1 as u64 + HEADERS);
            prop_assert!(*time + Duration::from_nanos(1) >= earliest + takes);
            earliest = *time;
        }
    }

    #[test]
    fn the_queue_is_bounded(packets in packets(), bytes in 1_500u64..10_000) {
        let queue = Queue { bytes, codel: false };
        let (out, stats) = arrivals(&LaneConfig { queue, ..at_rate(Bitrate::mbps(1)) }, &packets, 1);
        prop_assert!(stats.queued_max <= bytes);
        prop_assert_eq!(out.len() as u64 + stats.overflowed, packets.len() as u64);
    }

    #[test]
    fn the_seed_decides(packets in packets(), seed: u64) {
        let config = LaneConfig {
            loss: Loss::Packets { share: 0.1, burst: 2.0 },
            jitter: Jitter::Wander { span: Duration::from_millis(3), period: Duration::from_millis(10) },
            reorder: Some(Reorder { share: 0.1, by: Duration::from_millis(5) }),
            duplication: 0.05,
            ..LaneConfig::default()
        };
        prop_assert_eq!(arrivals(&config, &packets, seed), arrivals(&config, &packets, seed));
    }

    #[test]
    fn jitter_keeps_the_order_and_its_span(packets in packets(), seed: u64, wander: bool) {
        let (span, period) = (Duration::from_millis(20), Duration::from_millis(50));
        let jitter = if wander { Jitter::Wander { span, period } } else { Jitter::Clumps { span } };
        let (out, _) = arrivals(&LaneConfig { jitter, ..LaneConfig::default() }, &packets, seed);
        prop_assert_eq!(out.len(), packets.len());
        for (place, (time, index)) in out.into_iter().enumerate() {
            prop_assert_eq!(place, index);
            prop_assert!(time.since(Time::from_micros(packets[index].0)) <= span);
        }
    }

    #[test]
    fn a_policer_lets_its_rate_and_burst_through(packets in packets(), burst in 3_000u64..10_000) {
        let policer = Some(Policer { rate: Bitrate::mbps(2), burst });
        let (out, _) = arrivals(&LaneConfig { policer, ..LaneConfig::default() }, &packets, 1);
        let through: u64 = out.iter().map(|(_, index)| packets[*index].1 as u64 + HEADERS).sum();
        let last = Duration::from_micros(packets.last().map_or(0, |packet| packet.0));
        prop_assert!(through <= burst + Bitrate::mbps(2).bytes(last) + 1);
    }
}

#[test]
fn a_late_packet_is_overtaken() {
    let reorder = Some(Reorder { share: 0.2, by: Duration::from_millis(5) });
    let packets: Vec<_> = (0..50).map(|index| (index * 1000, 100)).collect();
    let (out, _) = arrivals(&LaneConfig { reorder, ..LaneConfig::default() }, &packets, 4);
    assert_eq!(out.len(), 50);
    assert!(out.windows(2).any(|pair| pair[1].1 < pair[0].1), "{out:?}");
}

#[test]
fn packets_that_are_late_apart_overtake_within_their_span() {
    let span = Duration::from_millis(5);
    let packets: Vec<_> = (0..50).map(|index| (index * 1000, 100)).collect();
    let jitter = Jitter::Apart { span };
    let (out, _) = arrivals(&LaneConfig { jitter, ..LaneConfig::default() }, &packets, 4);
    assert_eq!(out.len(), 50);
    assert!(out.windows(2).any(|pair| pair[1].1 < pair[0].1), "{out:?}");
    assert!(out.iter().all(|(time, index)| time.since(Time::from_micros(packets[*index].0)) <= span));
}

#[test]
fn duplicates_come_as_often_as_said() {
    let packets: Vec<_> = (0..10_000).map(|index| (index * 10, 100)).collect();
    let (out, stats) = arrivals(&LaneConfig { duplication: 0.1, ..LaneConfig::default() }, &packets, 9);
    assert_eq!(stats.delivered, out.len() as u64);
    assert!((10_850..11_150).contains(&out.len()), "{}", out.len());
}

#[test]
fn an_outage_loses_what_leaves_in_it() {
    let step = |at, down| Step { at: Time::from_millis(at), change: Change::Down(down) };
    let config = LaneConfig { steps: vec![step(10, true), step(15, false)], ..LaneConfig::default() };
    let packets: Vec<_> = (0..30).map(|index| (index * 1000, 100)).collect();
    let through: Vec<_> = arrivals(&config, &packets, 1).0.into_iter().map(|it| it.1).collect();
    assert_eq!(through, (0..10).chain(15..30).collect::<Vec<_>>());
}

#[test]
fn a_new_rate_and_a_new_route_hold_from_their_time_on() {
    let changes = [Change::Service(Service::Rate(Bitrate::mbps(8))), Change::Delay(Duration::from_millis(7))];
    let steps = changes.into_iter().map(|change| Step { at: Time::from_millis(1500), change }).collect();
    let config = LaneConfig { steps, ..at_rate(Bitrate::kbps(8)) };
    let (out, _) = arrivals(&config, &[(0, 972), (0, 972), (0, 972)], 1);
    let millis: Vec<_> = out.iter().map(|it| it.0.since_start().as_millis()).collect();
    // The second one was on the line when the rate changed.
    assert_eq!(millis, [1000, 2007, 2008]);
}

#[test]
fn a_trace_carries_1500_bytes_at_a_time() {
    let trace = Trace::new([10, 20, 30].map(Duration::from_millis).to_vec()).unwrap();
    let config = LaneConfig { service: Service::Trace(trace.into()), ..LaneConfig::default() };
    // 736 + 28 bytes: two of them are a little more than one opportunity.
    let (out, _) = arrivals(&config, &[(0, 736), (0, 736), (0, 736), (25_000, 100)], 1);
    let millis: Vec<_> = out.iter().map(|it| it.0.since_start().as_millis()).collect();
    assert_eq!(millis, [10, 20, 20, 30]);
}

#[test]
fn codel_keeps_a_full_queue_short() {
    let mut config = at_rate(Bitrate::mbps(10));
    config.queue = Queue { bytes: 1 << 20, codel: true };
    // A tenth more than the line takes, for 20 s.
    let packets: Vec<_> = (0..18_000).map(|index| (index * 1100, 1472)).collect();
    let mut lane = Lane::new(config, 1);
    lane.record_waits();
    for (micros, size) in packets {
        lane.push(Time::from_micros(micros), size, 0);
    }
    let late: Vec<_> = lane.waits().iter().filter(|wait| wait.at > Time::from_millis(10_000)).collect();
    let mean = late.iter().map(|wait| wait.time.as_secs_f64()).sum::<f64>() / late.len() as f64;
    assert!(mean < 0.05, "{mean}");
}
