//! What a hostile peer of the Python package's HTTP/3 sends.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::http3::run(data));
