//! A program of any kind through both halves of a connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::pair::run(data));
