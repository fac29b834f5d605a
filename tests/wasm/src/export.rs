//! What the host calls: how many checks there are, and each by its number.
//!
//! A check that fails traps, after its message was told to the host.
#![allow(unsafe_code, reason = "what the host calls and is told has bare names and pointers")]

use std::panic::{self, PanicHookInfo};

use crate::{audio, fec, page, pixels, proto};

/// Runs the check with this number; 0 once there is none.
#[unsafe(no_mangle)]
extern "C" fn check(number: usize) -> u32 {
    panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| say(&info.to_string())));
    let all = [fec::CHECKS, proto::CHECKS, pixels::CHECKS, page::CHECKS, audio::CHECKS];
    let Some((name, run)) = all.into_iter().flatten().nth(number) else { return 0 };
    say(name);
    run();
    1
}

fn say(text: &str) {
    // SAFETY: the text lives until the host has read it.
    unsafe { tell(text.as_ptr(), text.len()) }
}

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    fn tell(text: *const u8, length: usize);
}
