//! What a hostile client of the page's site sends.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::site_request::run(data));
