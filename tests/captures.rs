//! Programs of a session that take pictures of the display's screen, if its user lets them.

use crate::rig::{Compositor, Picture, Session, Sway, until};

const LEAVE: &[&str] = &["--allow", "zwlr_screencopy_manager_v1"];

#[test]
fn grim_in_a_session_sees_what_the_display_shows() {
    let sway = Sway::start();
    let _terminal = sway.launch("foot").args(["sh", "-c", "echo here; exec sleep 1000000"]).start();
    until("a terminal", || (sway.screenshot().colours() > 10).then_some(()));
    let mut session = Session::start_with(&sway, LEAVE);
    for arguments in
        [&["-t", "ppm", "-"][..], &["-t", "ppm", "-c", "-"], &["-t", "ppm", "-g", "0,0 300x200", "-"]]
    {
        let there = Picture::from_ppm(&session.launch("grim").args(arguments.iter().copied()).run());
        let here = Picture::from_ppm(&sway.launch("grim").args(arguments.iter().copied()).run());
        assert_eq!(there.difference(&here), here.difference(&here), "{arguments:?}");
        assert!(here.colours() > 10);
    }
    session.must_run();
}

#[test]
fn grim_in_a_session_without_leave_sees_nothing() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut grim = session.launch("grim").args(["-t", "ppm", "-"]).start();
    assert!(!grim.ended().success());
    assert!(grim.stderr().contains("screencopy"), "{}", grim.stderr());
    session.must_run();
}
