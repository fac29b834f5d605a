//! What a hostile peer sends to the other half of a connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::half_message::run(data));
