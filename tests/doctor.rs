//! `wayferry doctor`, through a real ssh server and with a real compositor.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::rig::{Compositor, Home, Launch, Network, Sshd, Sway, until};

#[test]
fn everything_that_a_session_needs_is_looked_at_on_both_machines() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    install(&sshd);
    let report = Report::of(doctor(&sway, &sshd));
    assert_eq!(report.code, Some(0), "{report:?}");
    for (place, check, part) in [
        ("here", "wayferry", env!("CARGO_PKG_VERSION")),
        ("here", "compositor", "sway"),
        ("here", "globals", "xdg_wm_base"),
        ("ferry-host", "ssh", "Linux"),
        ("ferry-host", "login", "prints nothing"),
        ("ferry-host", "forwarding", "socket"),
        ("ferry-host", "wayferry", "not in the PATH"),
        ("ferry-host", "session", "begins"),
        ("ferry-host", "UDP", "round trip"),
        ("ferry-host", "X11", ""),
        ("ferry-host", "GPU", ""),
    ] {
        let (verdict, text) = report.of_check(place, check);
        assert!(text.contains(part), "{place}, {check}: {text}");
        assert!(verdict == "ok" || part.is_empty(), "{place}, {check}: {verdict}: {text}");
    }
    assert!(report.checks.iter().all(|check| check["verdict"] == "ok" || check["hint"].is_string()));
    // Nothing of it is left there.
    until("the session to end", || sshd.home().living().len().le(&1).then_some(()));
    let text = doctor(&sway, &sshd).run();
    let text = String::from_utf8(text).expect("text");
    assert!(text.starts_with("here\n  ok    wayferry  ") && text.contains("\non `ferry-host`\n  "), "{text}");
}

#[test]
fn a_port_that_lets_no_udp_pass_is_told_with_its_number() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::NoUdp, ""));
    install(&sshd);
    let report = Report::of(doctor(&sway, &sshd).args(["--port", "60321-60329"]));
    let (verdict, text) = report.of_check("ferry-host", "UDP");
    assert!(verdict == "warn" && text.contains("port 6032") && text.contains("127.0.0.1"), "{text}");
    assert!(text.contains("does not get there"), "{text}");
    assert!(report.hint("ferry-host", "UDP").contains("--port"), "{report:?}");
    // A session can be shown, through ssh.
    assert_eq!(report.code, Some(0), "{report:?}");
}

#[test]
fn the_way_that_lets_no_udp_pass_is_told() {
    let sway = Sway::start();
    let (there, back) = ("dport 60331-60339", "sport 60331-60339");
    // What nothing answers to tells nothing of the way back.
    for (lost, told, hint) in [
        (&[there][..], "whether an answer would come back is not known", "UDP to port 6033"),
        (&[there, back], "whether an answer would come back is not known", "UDP to port 6033"),
        (&[back], "gets there, and nothing comes back", "UDP from port 6033"),
    ] {
        let sshd = Sshd::start_with(Network::Own, "");
        install(&sshd);
        lost.iter().for_each(|lost| sshd.lose_udp(lost));
        let report = Report::of(doctor(&sway, &sshd).args(["--port", "60331-60339"]));
        let (verdict, text) = report.of_check("ferry-host", "UDP");
        assert!(verdict == "warn" && text.contains(told), "{lost:?}: {text}");
        assert!(report.hint("ferry-host", "UDP").contains(hint), "{lost:?}: {report:?}");
        assert_eq!(report.code, Some(0), "{report:?}");
    }
}

#[test]
fn a_server_that_forwards_no_sockets_is_told_and_the_rest_is_looked_at() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::Plain, "AllowStreamLocalForwarding no"));
    install(&sshd);
    let report = Report::of(doctor(&sway, &sshd));
    // Only a command with a terminal needs it.
    assert_eq!(report.code, Some(0), "{report:?}");
    assert_eq!(report.of_check("ferry-host", "forwarding").0, "warn", "{report:?}");
    assert!(report.hint("ferry-host", "forwarding").contains("AllowStreamLocalForwarding"), "{report:?}");
    for check in ["wayferry", "session", "UDP"] {
        assert_eq!(report.of_check("ferry-host", check).0, "ok", "{report:?}");
    }
    until("the session to end", || sshd.home().living().len().le(&1).then_some(()));
}

#[test]
fn a_machine_without_wayferry_and_a_login_that_talks_are_told() {
    // What a talkative ~/.bashrc does; the last line has no end.
    let shell = "#!/bin/sh\nprintf 'Welcome\\033[2J\\nto far'\nexec sh -c \"$SSH_ORIGINAL_COMMAND\"\n";
    let sway = Sway::start();
    let path = sway.home().write("loud", shell);
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("its permissions");
    let sshd = Sshd::start_with(Network::Plain, &format!("ForceCommand {}", path.display()));
    let report = Report::of(doctor(&sway, &sshd));
    assert_eq!(report.code, Some(1), "{report:?}");
    let (verdict, text) = report.of_check("ferry-host", "login");
    assert!(
        verdict == "warn" && text.contains("18 bytes") && text.contains("`Welcome\u{fffd}[2J`"),
        "{text}"
    );
    assert_eq!(report.of_check("ferry-host", "wayferry").0, "fail", "{report:?}");
    assert!(report.hint("ferry-host", "wayferry").contains("--install-remote"), "{report:?}");
    assert!(report.find("ferry-host", "session").is_none(), "{report:?}");
}

#[test]
fn a_desk_without_a_compositor_is_told_with_what_to_do() {
    let home = Home::new();
    let report = Report::of(home.wayferry().args(["doctor"]));
    assert_eq!(report.code, Some(1), "{report:?}");
    assert_eq!(report.of_check("here", "compositor").0, "fail", "{report:?}");
    assert!(report.hint("here", "compositor").contains("WAYLAND_DISPLAY"), "{report:?}");
    assert!(report.find("here", "videos").is_some(), "{report:?}");
}

#[test]
fn a_configuration_that_ends_other_commands_is_one_of_the_findings() {
    let home = Home::new();
    fs::create_dir_all(home.file(".config/wayferry")).expect("a directory");
    home.give(&home.file(".config"));
    home.give(&home.file(".config/wayferry"));
    for (text, verdict) in [("quality = 0\n", "fail"), ("qualty = 70\n", "warn"), ("quality = 70\n", "ok")] {
        home.write(".config/wayferry/config.toml", text);
        let report = Report::of(home.wayferry().args(["doctor"]));
        assert_eq!(report.of_check("here", "configuration").0, verdict, "{report:?}");
    }
}

#[test]
fn a_login_that_is_refused_is_told_in_sshs_own_words() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::Plain, "AllowUsers another-user"));
    let report = Report::of(doctor(&sway, &sshd));
    assert_eq!(report.code, Some(1), "{report:?}");
    let (verdict, text) = report.of_check("ferry-host", "ssh");
    assert!(verdict == "fail" && text.contains("Permission denied"), "{text}");
}

#[test]
fn a_host_that_never_stops_talking_is_cut_off() {
    let sway = Sway::start();
    let flood = sway.home().write("ssh", "#!/bin/sh\n[ \"$1\" != -V ] || exit 0\nexec yes '\u{1b}[2J'\n");
    fs::set_permissions(&flood, Permissions::from_mode(0o755)).expect("its permissions");
    let launch = sway.home().wayferry().env("WAYLAND_DISPLAY", sway.display());
    let report = Report::of(launch.args(["--ssh-bin", &flood.display().to_string(), "doctor", "far"]));
    assert_eq!(report.code, Some(1), "{report:?}");
    let (verdict, text) = report.of_check("far", "ssh");
    assert!(verdict == "fail" && text.contains("256 kB") && !text.contains('\u{1b}'), "{text}");
}

/// What `doctor` found.
#[derive(Debug)]
struct Report {
    code: Option<i32>,
    checks: Vec<Value>,
}

impl Report {
    fn of(launch: Launch) -> Self {
        let mut program = launch.arg("--json").start();
        let code = program.ended().code();
        let found: Option<Vec<Value>> = serde_json::from_str(&program.stdout()).ok();
        let checks = found.unwrap_or_else(|| panic!("no checks: {}{}", program.stdout(), program.stderr()));
        Self { code, checks }
    }

    fn find(&self, place: &str, check: &str) -> Option<&Value> {
        self.checks.iter().find(|found| found["place"] == place && found["check"] == check)
    }

    /// The verdict and the text of a check.
    fn of_check(&self, place: &str, check: &str) -> (&str, &str) {
        let found = self.find(place, check).unwrap_or_else(|| panic!("{place}, {check}: {self:?}"));
        (found["verdict"].as_str().expect("a word"), found["text"].as_str().expect("a text"))
    }

    fn hint(&self, place: &str, check: &str) -> &str {
        self.find(place, check).and_then(|found| found["hint"].as_str()).unwrap_or_default()
    }
}

/// `wayferry doctor` towards this server, as the tests' own user.
fn doctor(sway: &Sway, sshd: &Sshd) -> Launch {
    let launch = sway.home().wayferry().privileged().env("WAYLAND_DISPLAY", sway.display());
    let arguments = sshd.arguments();
    sshd.near(launch.arg("doctor").args(arguments.iter().map(String::as_str)))
}

/// Puts wayferry where `cargo install` does, which is in no PATH that sshd gives.
fn install(sshd: &Sshd) {
    let binary = sshd.home().wayferry().words()[0].clone();
    fs::create_dir_all(sshd.home().file(".cargo/bin")).expect("a directory");
    std::os::unix::fs::symlink(binary, sshd.home().file(".cargo/bin/wayferry")).expect("a link");
}
