//! A program that keeps the protocol, directly at a compositor and through both halves.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::programs::run(data));
