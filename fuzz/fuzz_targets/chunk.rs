//! What a hostile peer sends as pixels.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::chunk::run(data));
