//! What a hostile peer sends to a session.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::wire_parser::run(data));
