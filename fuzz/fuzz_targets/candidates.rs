//! Displays and strangers at the admission of a session, and a host that is a stranger.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::candidates::run(data));
