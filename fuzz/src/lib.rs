//! What the fuzz targets do with their input.
//!
//! Each module has a `run`, which must neither panic nor use much memory whatever its input, and states in
//! asserts what else must hold. The targets in `fuzz_targets/` hand the fuzzer's bytes to it; the test below
//! hands it the seeds, so that a seed which has become a regression fails without a fuzzer too.
//! `examples/seeds.rs` writes those seeds that are made by the code itself.

pub mod candidates;
pub mod chunk;
#[allow(dead_code, reason = "a test of the halves uses the rest")]
#[path = "../../crates/wayland/tests/halves/compositor.rs"]
mod compositor;
pub mod erasure;
pub mod half_message;
mod input;
pub mod pair;
pub mod programs;
#[allow(dead_code, reason = "a test of the halves uses the rest")]
#[path = "../../crates/wayland/tests/halves/rig.rs"]
mod rig;
#[allow(dead_code, reason = "a test of the halves uses the rest")]
#[path = "../../crates/wayland/tests/differential/twice.rs"]
mod twice;
pub mod video;
pub mod wayland_message;
pub mod web;
#[path = "../../crates/net/src/endpoint/web/capsules.rs"]
mod web_capsules;
#[allow(dead_code, reason = "writing is for the endpoint")]
#[path = "../../crates/net/src/endpoint/web/wire.rs"]
mod web_wire;
pub mod wire_parser;

pub use input::Input;
// Where its modules look for each other.
#[allow(unused_imports, reason = "not all of them do")]
use twice::{bytes, fault, heard, link, operation, place, shown, shrink, strict};

#[cfg(test)]
mod tests {
    use std::path::Path;

    fn seeds(target: &str) -> Vec<Vec<u8>> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
        let entries = std::fs::read_dir(directory).unwrap();
        let seeds: Vec<_> = entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
        assert!(!seeds.is_empty(), "{target} has no seeds");
        seeds
    }

    #[test]
    fn seeds_pass() {
        type Run = fn(&[u8]);
        let targets: [(&str, Run); 10] = [
            ("candidates", super::candidates::run),
            ("wire_parser", super::wire_parser::run),
            ("wayland_message", super::wayland_message::run),
            ("half_message", super::half_message::run),
            ("chunk", super::chunk::run),
            ("pair", super::pair::run),
            ("programs", super::programs::run),
            ("erasure", super::erasure::run),
            ("video", super::video::run),
            ("web", super::web::run),
        ];
        for (target, run) in targets {
            seeds(target).iter().for_each(|seed| run(seed));
        }
    }
}
