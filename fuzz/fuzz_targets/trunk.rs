//! What a peer says on ssh's stdin and stdout.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::trunk::run(data));
