//! What a hostile peer sends as a video.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::video::run(data));
