//! Keys, contents, damage and answers of any kind to the predictor of typed text.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::echo::run(data));
