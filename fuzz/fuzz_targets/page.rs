//! What a hostile app side says to a page.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::page::run(data));
