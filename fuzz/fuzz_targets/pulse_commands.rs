//! What programs send to the sound server of their session.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::pulse_commands::run(data));
