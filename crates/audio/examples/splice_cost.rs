//! What the splicer costs: `cargo run --release -p wayferry-audio --example splice_cost`.
//!
//! Plays sound 2.5 % faster all the time, which is the most that a player does, and says the share of a core.

use std::time::Instant;

use wayferry_audio::{CHANNELS, RATE, find, shorten};

fn main() {
    let sample = |at: usize| ((at as f32 * 0.031).sin() + (at as f32 * 0.173).sin() * 0.3) * 0.5;
    let mut samples: Vec<f32> = (0..2 * 960).flat_map(|at| [sample(at); CHANNELS]).collect();
    let (mut splices, mut saved, begun) = (0u32, 0, Instant::now());
    while splices < SPLICES {
        let Some(splice) = find(&samples, 720) else { return };
        shorten(&mut samples, splice.lag);
        let next = samples.len() / CHANNELS + splices as usize;
        samples.extend((next..next + splice.lag).flat_map(|at| [sample(at); CHANNELS]));
        saved += splice.lag;
        splices += 1;
    }
    let took = begun.elapsed().as_secs_f64();
    let played = saved as f64 / 0.025 / f64::from(RATE);
    println!("{splices} splices, {:.1} µs each", took * 1e6 / f64::from(splices));
    println!("{played:.0} s of sound at 2.5 %: {:.2} % of a core", took / played * 100.0);
}

const SPLICES: u32 = 10_000;
