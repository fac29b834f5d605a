//! What a reader of GPU buffers says to its session.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::reader_packets::run(data));
