//! What a hostile peer sends at the beginning of WebTransport.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::web::run(data));
