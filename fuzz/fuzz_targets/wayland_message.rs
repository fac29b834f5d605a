//! What a hostile program or compositor sends on its socket.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wayferry_fuzz::wayland_message::run(data));
