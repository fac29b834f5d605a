//! What a hostile peer sends as sound.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::audio_packet::run(data));
