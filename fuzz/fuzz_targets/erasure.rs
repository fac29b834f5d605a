//! What a hostile peer sends as source and repair of a block.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::erasure::run(data));
