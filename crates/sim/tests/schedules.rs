//! Sessions that outlive their carriers: what one side says is what the other one hears, no matter what the link does.
//!
//! A failure names its seed; `cargo run --release -p wayferry-sim --example schedules -- SEED` runs it again alone.

use std::time::Duration;

use wayferry_proto::Time;
use wayferry_sim::link::{LaneConfig, Service};
use wayferry_sim::roam::{Failure, Report, Schedule, Trouble, run};
use wayferry_sim::{Bitrate, LinkConfig};

/// Runs the schedules of these seeds, on two threads.
fn all(seeds: std::ops::Range<u64>) -> Vec<Report> {
    let half = |odd: u64| -> Vec<Result<Report, Failure>> {
        let seeds = seeds.clone().filter(|seed| seed % 2 == odd);
        seeds.map(|seed| run(&Schedule::new(seed))).collect()
    };
    let (even, odd) = std::thread::scope(|scope| {
        let odd = scope.spawn(|| half(1));
        (half(0), odd.join().expect("no panic"))
    });
    let (reports, failures): (Vec<_>, Vec<_>) = even.into_iter().chain(odd).partition(Result::is_ok);
    let failures: Vec<String> =
        failures.into_iter().filter_map(Result::err).map(|failure| failure.to_string()).collect();
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
    reports.into_iter().flatten().collect()
}

#[test]
fn a_hundred_schedules_lose_nothing() {
    let reports = all(0..100);
    // They do what they are for.
    let sum = |count: fn(&Report) -> u32| reports.iter().map(count).sum::<u32>();
    assert!(sum(|report| report.resumed) > 100, "{} resumed", sum(|report| report.resumed));
    assert!(sum(|report| report.anew) > 120, "{} anew", sum(|report| report.anew));
    assert!(reports.iter().map(|report| report.said).sum::<u64>() > 1_000_000);
}

#[test]
#[ignore = "two minutes: part of `make test-full`"]
fn a_thousand_schedules_lose_nothing() {
    all(0..1000);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [3, 10] {
        assert_eq!(run(&Schedule::new(seed)), run(&Schedule::new(seed)));
    }
}

/// One trouble, two seconds after the beginning, on a link of 20 Mbit/s and 50 ms.
fn after(trouble: Trouble) -> Report {
    let service = Service::Rate(Bitrate::mbps(20));
    let lane = LaneConfig { service, delay: Duration::from_millis(25), ..LaneConfig::default() };
    let schedule = Schedule {
        link: LinkConfig { forward: lane.clone(), back: lane },
        pause: Duration::from_millis(50),
        troubles: vec![(Time::from_millis(2000), trouble)],
        end: Time::from_millis(4000),
        ..Schedule::new(5)
    };
    run(&schedule).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn silence_of_more_than_sixty_seconds_is_survived() {
    for seconds in [59, 61, 80, 300] {
        let report = after(Trouble::Outage(Duration::from_secs(seconds)));
        assert_eq!(report.anew, 1, "the first display is the last one");
        assert!(report.resumed >= 1);
    }
}

#[test]
fn eight_hours_of_sleep_or_without_a_link_are_survived() {
    let hours = Duration::from_secs(8 * 3600);
    let slept = after(Trouble::Sleep(hours));
    assert_eq!((slept.anew, slept.resumed), (1, 1));
    // Who wakes up tries at once; 0.1 s later it is resumed, and then comes everything that was kept.
    assert!(slept.settled < Duration::from_millis(500), "{:?}", slept.settled);
    let cut = after(Trouble::Outage(hours));
    assert_eq!(cut.anew, 1);
    // The display's patience has grown to half a minute.
    assert!(cut.settled < Duration::from_secs(40), "{:?}", cut.settled);
}

#[test]
fn a_crash_and_a_loss_of_memory_begin_anew() {
    assert_eq!(after(Trouble::Crash).anew, 2);
    assert_eq!(after(Trouble::Forget).anew, 2);
    assert_eq!(after(Trouble::Move).anew, 1);
}
