//! What a session costs while its programs rest.

use std::fs;

use rustix::process::Pid;

use crate::info::info;
use crate::rig::{Compositor, PATIENCE, Program, Session, Sway, poll, until};

#[test]
fn twenty_idle_windows_cost_their_last_pixels_and_ten_megabytes() {
    let sway = Sway::start();
    // Else each would be the smaller the more there are.
    sway.message(&["for_window [app_id=idle] floating enable"]);
    let mut session = Session::start(&sway);
    let terminal = || session.launch("foot").args(["-a", "idle", "-w", "1280x720", "cat"]).start();
    let mut terminals: Vec<Program> = std::iter::repeat_with(terminal).take(WINDOWS).collect();
    until("all windows", || (sway.windows().len() == WINDOWS).then_some(()));
    sway.settled();
    let app = || info(session.home()).into_iter().find(|side| side["role"] == "app").expect("the app side");
    let number = |field: &str| app()[field].as_u64().expect("a number");
    until("nothing to be owed", || (number("owed_bytes") == 0).then_some(()));
    let (pixels, state) = (number("kept_pixel_bytes"), number("kept_state_bytes"));
    let shown = WINDOWS as u64 * 1280 * 720 * 4;
    assert!(pixels >= shown && pixels < shown + (1 << 20), "{pixels} bytes for {shown} of windows");
    assert!(state < 1 << 20, "{state}");
    for displays in ["with a display", "without one"] {
        let host = session.host.pid();
        poll(PATIENCE, || (memory(host) < pixels + 10_000_000).then_some(()))
            .unwrap_or_else(|| panic!("{displays}: {} bytes, {pixels} of them pixels", memory(host)));
        session.attach.kill();
        sway.empty();
    }
    terminals.iter_mut().for_each(Program::must_run);
    session.host.must_run();
}

/// Bytes that this process alone holds: neither the program's own text nor files that the programs draw into.
fn memory(process: Pid) -> u64 {
    let path = format!("/proc/{}/smaps_rollup", process.as_raw_nonzero());
    let text = fs::read_to_string(path).expect("of our own");
    let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:")).expect("a figure");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

const WINDOWS: usize = 20;
