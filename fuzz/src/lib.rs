//! What the fuzz targets do with their input.
//!
//! Each module has a `run`, which must neither panic nor use much memory for any input, and states in
//! asserts what else must hold. The targets in `fuzz_targets/` hand the fuzzer's bytes to it; the test below
//! hands it the seeds, so that a seed which has become a regression fails without a fuzzer too.
//! `examples/seeds.rs` writes those seeds that are made by the code itself.

pub mod audio_packet;
pub mod candidates;
pub mod chunk;
#[allow(dead_code, reason = "a test of the halves uses the rest")]
#[path = "../../crates/wayland/tests/halves/compositor.rs"]
mod compositor;
pub mod echo;
pub mod erasure;
pub mod half_message;
pub mod http3;
#[allow(dead_code, reason = "its other callers are in the module that loads it")]
mod http3_wire;
mod input;
pub mod page;
pub mod pair;
pub mod programs;
pub mod pulse_commands;
pub mod reader_packets;
#[allow(dead_code, reason = "a test of the halves uses the rest")]
#[path = "../../crates/wayland/tests/halves/rig.rs"]
mod rig;
pub mod site_request;
#[path = "../../crates/net/src/site/request.rs"]
mod site_request_parser;
pub mod socket;
pub mod trunk;
#[allow(dead_code, reason = "a test of the halves uses the rest")]
#[path = "../../crates/wayland/tests/differential/twice.rs"]
mod twice;
pub mod video;
pub mod wayland_message;
pub mod web;
#[path = "../../crates/net/src/http3/capsules.rs"]
mod web_capsules;
#[allow(dead_code, reason = "writing is for the endpoint")]
#[path = "../../crates/net/src/http3/wire.rs"]
mod web_wire;
pub mod wire_parser;

pub use input::Input;
// Where its modules look for each other.
#[allow(unused_imports, reason = "not all of them do")]
use twice::{bytes, fault, heard, link, operation, place, shown, shrink, strict};

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::operation::{Choices, Dice};

    fn seeds(target: &str) -> Vec<Vec<u8>> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
        let entries = std::fs::read_dir(directory).unwrap();
        let seeds: Vec<_> = entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
        assert!(!seeds.is_empty(), "{target} has no seeds");
        seeds
    }

    type Run = fn(&[u8]);

    const TARGETS: [(&str, Run); 19] = [
        ("audio_packet", super::audio_packet::run),
        ("candidates", super::candidates::run),
        ("wire_parser", super::wire_parser::run),
        ("wayland_message", super::wayland_message::run),
        ("half_message", super::half_message::run),
        ("chunk", super::chunk::run),
        ("page", super::page::run),
        ("pair", super::pair::run),
        ("programs", super::programs::run),
        ("pulse_commands", super::pulse_commands::run),
        ("reader_packets", super::reader_packets::run),
        ("echo", super::echo::run),
        ("erasure", super::erasure::run),
        ("socket", super::socket::run),
        ("trunk", super::trunk::run),
        ("video", super::video::run),
        ("web", super::web::run),
        ("http3", super::http3::run),
        ("site_request", super::site_request::run),
    ];

    #[test]
    fn seeds_pass() {
        for (target, run) in TARGETS {
            seeds(target).iter().for_each(|seed| run(seed));
        }
    }

    /// What a fuzzer would try first, but the same in each run.
    #[test]
    fn inputs_like_the_seeds_pass() {
        for (target, run) in TARGETS {
            for seed in seeds(target) {
                let mut dice = Dice::new(0);
                (0..LIKE_EACH).for_each(|_| run(&changed(&seed, &mut dice)));
            }
        }
    }

    /// Inputs made from each seed.
    const LIKE_EACH: usize = 20;

    /// With some bytes changed, repeated or left out.
    fn changed(seed: &[u8], dice: &mut Dice) -> Vec<u8> {
        let mut input = seed.to_vec();
        for _ in 0..=dice.below(4) {
            let place = dice.word() as usize % (input.len() + 1);
            let end = (place + 1 + dice.below(8)).min(input.len());
            match dice.below(4) {
                0 => drop(input.drain(place.min(end)..end)),
                1 => {
                    let part = input[place.min(end)..end].to_vec();
                    drop(input.splice(place..place, part));
                }
                2 => input.insert(place, dice.byte()),
                _ => input[place.min(end)..end].iter_mut().for_each(|byte| *byte ^= 1 << dice.below(8)),
            }
        }
        input
    }
}
