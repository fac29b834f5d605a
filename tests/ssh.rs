//! `wayferry ssh` against a real ssh server on the loopback device.

use crate::rig::{Compositor, Home, Launch, Network, Sshd, Sway};

#[test]
fn a_window_comes_over_and_the_status_goes_back() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut wayferry = ferry(&sway, &sshd, &[], &["foot", "sh", "-c", "'read line; exit 7'"]).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    sway.settled();
    sway.keys(&["-k", "Return"]);
    assert_eq!(wayferry.ended().code(), Some(7), "{}", wayferry.stderr());
    assert!(!wayferry.stderr().contains("error:"), "{}", wayferry.stderr());
    sway.empty();
}

#[test]
fn where_udp_is_blocked_ssh_carries_it() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::NoUdp, ""));
    let mut wayferry = ferry(&sway, &sshd, &[], &["foot", "sh", "-c", "'head -n 1 > heard; exit 9'"]).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    sway.settled();
    sway.type_text("carried");
    sway.keys(&["-k", "Return"]);
    assert_eq!(wayferry.ended().code(), Some(9), "{}", wayferry.stderr());
    // Said once, and not as an error.
    let said = wayferry.stderr();
    assert!(said.to_lowercase().matches("udp").count() == 1 && !said.contains("error:"), "{said}");
}

#[test]
fn without_a_command_the_shell_runs() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let input = sway.home().write("input", "echo display=$WAYLAND_DISPLAY\nexit 5\n");
    let mut wayferry = ferry(&sway, &sshd, &[], &[]).stdin(input).start();
    assert_eq!(wayferry.ended().code(), Some(5), "{}", wayferry.stderr());
    assert!(
        wayferry.stdout().lines().any(|line| line.len() > "display=".len() && line.starts_with("display="))
    );
}

#[test]
fn a_missing_remote_binary_is_named() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let launch = sshd.wayferry(sway.home(), &["--remote-bin", "/no/such/wayferry"], &["true"]);
    let mut wayferry = on(&sway, launch).start();
    assert_eq!(wayferry.ended().code(), Some(72), "{}", wayferry.stderr());
    assert!(wayferry.stderr().contains("error: ") && wayferry.stderr().contains("/no/such/wayferry"));
}

#[test]
fn a_refused_login_is_sshs_own_failure() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::Plain, "AllowUsers nobody-at-all"));
    let mut wayferry = ferry(&sway, &sshd, &[], &["true"]).start();
    assert_eq!(wayferry.ended().code(), Some(255), "{}", wayferry.stderr());
}

fn ferry(sway: &Sway, sshd: &Sshd, options: &[&str], command: &[&str]) -> Launch {
    let binary = remote_binary(sshd.home());
    let all: Vec<&str> =
        ["--remote-bin", binary.as_str()].into_iter().chain(options.iter().copied()).collect();
    on(sway, sshd.wayferry(sway.home(), &all, command))
}

/// Where the other side finds `wayferry`.
fn remote_binary(home: &Home) -> String {
    home.wayferry().words()[0].clone()
}

fn on(sway: &Sway, launch: Launch) -> Launch {
    launch.env("WAYLAND_DISPLAY", sway.display())
}
