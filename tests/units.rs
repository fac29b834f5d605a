//! The systemd unit that is offered, without systemd: what it starts is a session that waits.

use rustix::process::{Signal, kill_process};

use crate::rig::{Compositor, Home, Sway, until};

#[test]
fn what_the_unit_starts_waits_for_a_display_and_ends_as_the_unit_expects() {
    let (sway, home) = (Sway::start(), Home::new());
    // It is not for the network unless its user says so.
    let listen = setting("Environment=LISTEN");
    assert_eq!(listen, "127.0.0.1:0");
    let line = setting("ExecStart").replace("%i", "work").replace("${LISTEN}", listen);
    let line = line.replace("$PROGRAM", "foot -a unit cat");
    let (program, words) = line.split_once(" wayferry ").expect("the way to wayferry");
    assert_eq!(program, "/usr/bin/env");
    let mut host = home.wayferry().args(words.split(' ')).start();
    let list = || String::from_utf8(home.wayferry().arg("list").run()).expect("text");
    until("the session", || {
        host.must_run();
        list().lines().any(|line| line.contains("work") && line.contains("detached")).then_some(())
    });
    let attach = || home.wayferry().env("WAYLAND_DISPLAY", socket(&sway)).args(["attach", ":work"]).start();
    let mut attach = attach();
    sway.window("the program", |window| window.app_id == "unit");
    kill_process(host.pid(), Signal::TERM).expect("it runs");
    let code = host.ended().code().map(|code| code.to_string());
    assert_eq!(code.as_deref(), Some(setting("SuccessExitStatus")), "{}", host.stderr());
    attach.ended();
    sway.empty();
    let left = home.living();
    assert!(left.is_empty(), "{left:?}");
}

/// A line of the unit.
fn setting(name: &str) -> &'static str {
    let unit = include_str!("../dist/systemd/wayferry@.service");
    let value = unit.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("no {name}"))
}

fn socket(sway: &Sway) -> String {
    sway.home().runtime().join(sway.display()).to_str().expect("a path").to_owned()
}
