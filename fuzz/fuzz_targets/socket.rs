//! What an app side says to a page on one stream of bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::socket::run(data));
