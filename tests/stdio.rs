//! What ssh's stdin and stdout carry for `wayferry ssh`: the session, and what its program reads and writes.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use rustix::process::{Signal, kill_process};

use crate::rig::{Compositor, Home, Network, Sshd, Sway};
use crate::sessions::children;
use crate::ssh::ferry;

#[test]
fn a_login_that_talks_and_a_server_that_forwards_nothing_hinder_no_session() {
    let sway = Sway::start();
    let login = loud(sway.home());
    let server = format!("ForceCommand {login}\nAllowStreamLocalForwarding no\nDisableForwarding yes");
    let sshd = Sshd::start_with(Network::NoUdp, &server);
    let mut wayferry = ferry(&sway, &sshd, &[], &["foot", "sh", "-c", "'read line; exit 7'"]).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    wayferry.happens("quic-unreachable");
    sway.settled();
    sway.keys(&["-k", "Return"]);
    assert_eq!(wayferry.ended().code(), Some(7), "{}", wayferry.stderr());
    // As with ssh.
    assert_eq!(wayferry.stdout(), "Welcome\nWFSSH1\nto far");
}

#[test]
fn what_a_program_reads_and_writes_passes_beside_its_session() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let text: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    let input = sway.home().write("input", &text);
    let command = ["sh", "-c", "'cat; echo told >&2; exit 4'"];
    let mut wayferry = ferry(&sway, &sshd, &[], &command).stdin(input).start();
    assert_eq!(wayferry.ended().code(), Some(4), "{}", wayferry.stderr());
    assert!(wayferry.stdout() == text, "{} of {} bytes", wayferry.stdout().len(), text.len());
    assert!(wayferry.stderr().contains("told\n"), "{}", wayferry.stderr());
}

#[test]
fn a_command_with_a_terminal_keeps_sshs_stdio() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let command = ["-tt", "sh", "-c", "'tty > $HOME/tty; echo seen; exit 5'"];
    let mut wayferry = ferry(&sway, &sshd, &[], &command).start();
    assert_eq!(wayferry.ended().code(), Some(5), "{}", wayferry.stderr());
    assert!(wayferry.stdout().contains("seen"), "{}", wayferry.stdout());
    let terminal = fs::read_to_string(sshd.home().file("tty")).expect("its terminal");
    assert!(terminal.starts_with("/dev/pts/"), "{terminal}");
}

#[test]
fn a_session_outlives_the_ssh_that_carried_it() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::Own, ""));
    let mut wayferry =
        ferry(&sway, &sshd, &[], &["foot", "sh", "-c", "'head -n 1 > $HOME/heard; exit 9'"]).start();
    wayferry.happens("quic-reached");
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    let ssh = children(wayferry.pid());
    assert_eq!(ssh.len(), 1);
    kill_process(ssh[0], Signal::KILL).expect("it runs");
    sway.settled();
    sway.type_text("without ssh");
    sway.keys(&["-k", "Return"]);
    assert_eq!(wayferry.ended().code(), Some(9), "{}", wayferry.stderr());
    assert_eq!(fs::read_to_string(sshd.home().file("heard")).expect("what was heard"), "without ssh\n");
    assert_eq!(wayferry.count("connection-lost"), 0, "{}", wayferry.stderr());
}

/// A login that prints before each command what is almost ours; the last line has no end.
fn loud(home: &Home) -> String {
    let script = "#!/bin/sh\nprintf 'Welcome\\nWFSSH1\\nto far'\nexec sh -c \"$SSH_ORIGINAL_COMMAND\"\n";
    let path = home.write("loud", script);
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("its permissions");
    path.display().to_string()
}
