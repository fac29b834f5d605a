//! Sound over links, in virtual time: the figures of docs/sound.md, and what must miss them.
//!
//! `cargo test -p wayferry-audio --test model -- --nocapture` prints the figures. Links are made from seeds.

#[path = "model/fixed.rs"]
mod fixed;
#[path = "model/link.rs"]
mod link;
#[path = "model/random.rs"]
mod random;
#[path = "model/world.rs"]
mod world;

use wayferry_audio::{Decoder, Error, Mode, Pcm};

use link::{Link, Loss, Path};
use world::{Outcome, Plan, run};

fn told(name: &str, outcome: &Outcome) {
    let figures = &outcome.figures;
    println!(
        "{name}: concealed {:.4} %, latency {:.0} ms, target {} ms, tempo {:.4} to {:.4}, step {:.3}, cuts {}, \
         drift {:.0?}, {:?}",
        outcome.concealed,
        outcome.latency,
        figures.target.as_millis(),
        outcome.slowest,
        outcome.fastest,
        outcome.steepest,
        figures.cuts,
        figures.drift,
        figures.dropped,
    );
}

fn wifi() -> Link {
    Link::new(Path::Wifi, Loss::Independent(0.0), 0.010, 1)
}

fn cellular(seed: u64) -> Link {
    Link::new(Path::Cellular, Loss::Bursts(0.003, 2.0), 0.060, seed)
}

fn calm(loss: f64, rtt_ms: u32) -> Link {
    Link::new(Path::Calm, Loss::Independent(loss), f64::from(rtt_ms) / 1e3, 3)
}

/// What holds on every link: tempo within its bounds, and no step that the sound itself does not have.
fn sane(outcome: &Outcome) {
    assert!(outcome.slowest >= 0.975 && outcome.fastest <= 1.025, "{outcome:?}");
    assert!(outcome.steepest <= 1.25 * steepest(), "{outcome:?}");
}

/// The largest step of the sound that is played.
fn steepest() -> f32 {
    let all: Vec<f32> = (0..250).flat_map(world::sound).step_by(2).collect();
    all.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max)
}

#[test]
fn wifi_needs_54_ms() {
    let outcome = run(Plan::new(600.0, 0.0), wifi(), Pcm::new());
    told("Wi-Fi", &outcome);
    sane(&outcome);
    assert!(outcome.concealed == 0.0 && outcome.latency <= 54.0, "{outcome:?}");
}

#[test]
fn cellular_needs_186_ms() {
    for seed in [1, 2, 3] {
        let outcome = run(Plan::new(1800.0, 0.003), cellular(seed), Pcm::new());
        told(&format!("cellular {seed}"), &outcome);
        sane(&outcome);
        assert!(outcome.concealed <= 0.1 && outcome.latency <= 186.0, "{outcome:?}");
    }
}

#[test]
fn loss_is_not_heard_at_any_round_trip() {
    for (loss, most) in [(0.0, 0.0), (0.01, 0.05), (0.03, 0.1), (0.05, 0.3)] {
        for rtt in [20, 100, 300] {
            let outcome = run(Plan::new(300.0, loss), calm(loss, rtt), Pcm::new());
            told(&format!("hybrid, loss {loss}, RTT {rtt}"), &outcome);
            sane(&outcome);
            assert!(outcome.concealed <= most, "{outcome:?}");
        }
    }
}

#[test]
fn the_three_modes_side_by_side() {
    let mut concealed = Vec::new();
    for mode in [Mode::Stream, Mode::Datagram, Mode::Hybrid] {
        let outcome = run(Plan { mode, ..Plan::new(300.0, 0.03) }, calm(0.03, 300), Pcm::new());
        told(&format!("{mode:?}, loss 0.03, RTT 300"), &outcome);
        sane(&outcome);
        concealed.push((outcome.concealed, outcome.latency));
    }
    assert!(concealed[0].0 > 0.1, "streams alone should miss it: {concealed:?}");
    assert!(concealed[1].0 <= 0.1 && concealed[2].0 <= 0.1, "{concealed:?}");
}

#[test]
fn bursts_of_loss_are_heard_little() {
    for rtt in [20, 100] {
        let link = Link::new(Path::Calm, Loss::Bursts(0.03, 4.0), f64::from(rtt) / 1e3, 5);
        let outcome = run(Plan::new(600.0, 0.03), link, Pcm::new());
        told(&format!("bursts of 4, loss 0.03, RTT {rtt}"), &outcome);
        sane(&outcome);
        assert!(outcome.concealed <= 0.3, "{outcome:?}");
    }
}

/// Contact is when the link carries packets again; a round trip later the sender knows.
#[test]
fn after_an_outage_sound_is_back_within_target_and_round_trip() {
    for (seconds, rtt) in [(0.5, 0.1), (3.0, 0.1), (3.0, 0.3), (60.0, 0.1), (3600.0, 0.1)] {
        let mut link = Link::new(Path::Calm, Loss::Independent(0.0), rtt, 6);
        link.down = Some((20.0, 20.0 + seconds));
        let outcome = run(Plan::new(40.0 + seconds, 0.0), link, Pcm::new());
        told(&format!("outage {seconds} s, RTT {rtt}"), &outcome);
        sane(&outcome);
        let back =
            outcome.returns.iter().find(|back| **back >= 20.0).expect("it comes back") - 20.0 - seconds;
        println!("back after {:.0} ms", back * 1e3);
        let target = outcome.figures.target.as_secs_f64().max(0.080);
        assert!(back <= target + rtt + 0.020, "{back} {outcome:?}");
        assert!(outcome.figures.latency.as_secs_f64() <= target + 0.025, "{outcome:?}");
        assert!(outcome.figures.silent.as_secs_f64() <= seconds + 0.3, "{outcome:?}");
    }
}

#[test]
fn a_receiver_that_was_suspended_plays_what_is_new() {
    for seconds in [1.0, 30.0] {
        let plan = Plan { suspended: Some((20.0, 20.0 + seconds)), ..Plan::new(40.0 + seconds, 0.0) };
        let outcome = run(plan, calm(0.0, 100), Pcm::new());
        told(&format!("suspended {seconds} s"), &outcome);
        sane(&outcome);
        let figures = &outcome.figures;
        assert!(figures.latency.as_millis() <= 70, "{outcome:?}");
        assert!(figures.concealed.as_millis() <= 300, "{outcome:?}");
    }
}

/// Eight hours in which one card is 100 ppm fast and the other as much slow, on a link with jitter.
fn drifts(ppm: f64) {
    let plan = Plan { capture_ppm: ppm, device_ppm: -ppm, ..Plan::new(8.0 * 3600.0, 0.0) };
    let outcome = run(plan, wifi(), Pcm::new());
    told(&format!("8 h, {ppm} ppm"), &outcome);
    println!(
        "latency {:.1} ms at the beginning, {:.1} at the end",
        outcome.begin_latency, outcome.end_latency
    );
    sane(&outcome);
    assert!((outcome.begin_latency - outcome.end_latency).abs() <= 20.0, "{outcome:?}");
    assert!(outcome.concealed <= 0.005 && outcome.figures.cuts == 0, "{outcome:?}");
    let drift = outcome.figures.drift.expect("it is known");
    assert!((drift - 2.0 * ppm).abs() <= 20.0, "{drift}");
}

#[test]
fn eight_hours_of_drift_change_nothing() {
    drifts(50.0);
}

#[test]
fn eight_hours_of_drift_the_other_way_change_nothing() {
    drifts(-50.0);
}

#[test]
fn a_fixed_buffer_must_miss_the_cellular_figure() {
    let concealed = |wait| fixed::concealed(Plan::new(1800.0, 0.003), cellular(1), wait);
    let [short, same] = [concealed(0.040), concealed(0.160)];
    println!("cellular 1, fixed: 40 ms {short:.2} %, 160 ms {same:.2} %");
    let waits = (4..60).map(|step| 0.010 * f64::from(step));
    let nothing = waits.into_iter().find(|wait| concealed(*wait) == 0.0);
    println!("a constant that is never late: {nothing:?} s");
    assert!(short > 10.0 && same > 0.12 && nothing > Some(0.400), "{short} {same} {nothing:?}");
}

#[test]
fn without_copies_in_datagrams_the_figure_is_missed() {
    let plan = Plan { mode: Mode::Datagram, knows_rtt: false, ..Plan::new(300.0, 0.0) };
    let outcome = run(plan, calm(0.01, 100), Pcm::new());
    told("no redundancy", &outcome);
    assert!(outcome.concealed > 0.5, "{outcome:?}");
}

/// Plays silence for what is missing.
struct Mute(Pcm);

impl Decoder for Mute {
    fn decode(&mut self, payload: &[u8], samples: &mut Vec<f32>) -> Result<(), Error> {
        self.0.decode(payload, samples)
    }

    fn conceal(&mut self, frames: usize, samples: &mut Vec<f32>) {
        samples.resize(samples.len() + frames * 2, 0.0);
    }

    fn restart(&mut self) {}
}

#[test]
fn without_concealment_it_clicks() {
    let plan = Plan { mode: Mode::Datagram, knows_rtt: false, ..Plan::new(60.0, 0.0) };
    let outcome = run(plan, calm(0.03, 100), Mute(Pcm::new()));
    assert!(outcome.steepest > 2.0 * steepest(), "{} {}", outcome.steepest, steepest());
}
