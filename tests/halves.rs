//! The bare halves (`wayferry conn`): how they end, and what garbage does to them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::rig::{Halves, Home, Pair, Program, Sway, sockets};

#[test]
fn both_halves_end_well_with_their_program() {
    let sway = Sway::start();
    let mut pair = Pair::start(&sway, |home| home.launch("foot").args(["sh", "-c", "exec cat"]));
    sway.window("foot", |_| true);
    pair.program.kill();
    assert!(pair.app.ended().success(), "{}", pair.app.stderr());
    assert!(pair.display.ended().success(), "{}", pair.display.stderr());
    sway.empty();
}

#[test]
fn the_display_half_takes_its_windows_with_it() {
    let sway = Sway::start();
    let mut pair = Pair::start(&sway, |home| home.launch("foot").arg("cat"));
    sway.window("foot", |_| true);
    pair.display.kill();
    sway.empty();
    pair.app.ended();
    pair.program.ended();
}

#[test]
fn garbage_from_the_program_ends_the_halves_with_a_reason() {
    let sway = Sway::start();
    let home = Home::new();
    let (program, theirs) = sockets();
    let mut halves = Halves::start(&sway, &home, theirs);
    feed_garbage(program);
    assert_eq!(halves.app.ended().code(), Some(80), "{}", halves.app.stderr());
    assert_has_reason(&halves.app);
    halves.display.ended();
}

#[test]
fn garbage_on_the_link_ends_the_display_half_with_a_reason() {
    let sway = Sway::start();
    let (link, theirs) = sockets();
    let mut display = Halves::display(&sway, theirs);
    feed_garbage(link);
    assert_eq!(display.ended().code(), Some(76), "{}", display.stderr());
    assert_has_reason(&display);
}

fn assert_has_reason(half: &Program) {
    assert!(half.error().is_some(), "{}", half.stderr());
}

/// Writes pseudo-random bytes until the other side has had enough.
fn feed_garbage(mut socket: UnixStream) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..4096 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if socket.write_all(&state.to_le_bytes()).is_err() {
            break;
        }
    }
    let _ = socket.shutdown(std::net::Shutdown::Write);
    let _ = socket.read_to_end(&mut Vec::new());
}
