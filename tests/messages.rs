//! What a user is told where output has no reader, or no room.

use std::fs::{self, File};
use std::process::{Command, Output, Stdio};

use crate::rig::{Compositor, Home, Session, Sshd, Sway, until};

#[test]
fn a_broken_pipe_ends_quietly() {
    for words in
        [&["list"][..], &["help"], &["version"], &["status"], &["info"], &["man"], &["completions", "bash"]]
    {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = wayferry(words, writer.into());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*said), (Some(0), ""), "{words:?}");
    }
}

#[test]
fn a_full_disk_is_told_with_the_files_name() {
    for words in [&["list"][..], &["version"], &["man"], &["completions", "zsh"], &["config", "--json"]] {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let output = wayferry(words, full.into());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(74), "{words:?}: {said}");
        assert!(said.starts_with("error: cannot use `/dev/full`: No space left"), "{said}");
        assert!(said.contains("hint: free some space there"), "{said}");
    }
    let output = wayferry(&["man", "--to", "/no/such"], Stdio::null());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(74) && said.contains("`/no/such/wayferry.1`"), "{said}");
}

#[test]
fn a_log_that_finds_no_room_is_told_once_and_ends_nothing() {
    let home = Home::new();
    let mut attach = home.wayferry().args(["-v", "--log", "/dev/full", "attach", ":none"]).start();
    assert_eq!(attach.ended().code(), Some(82), "{}", attach.stderr());
    let said = attach.stderr();
    assert_eq!(said.matches("note: the log `/dev/full` ends here: No space left").count(), 1, "{said}");
}

#[test]
fn a_trace_that_finds_no_room_is_told_with_its_file() {
    let sway = Sway::start();
    let mut session = Session::start_with(&sway, &["--trace", "/dev/full"]);
    for side in [&session.host, &session.attach] {
        side.happens("trace-ended");
        let told =
            side.events().into_iter().find(|event| event["event"] == "trace-ended").expect("it is told");
        let reason = told["reason"].as_str().unwrap_or_default().to_owned();
        assert!(reason.starts_with("`/dev/full`: No space left"), "{reason}");
    }
    session.must_run();
}

#[test]
fn a_full_disk_of_the_other_machine_is_told_with_that_machine() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    fs::create_dir_all(sshd.home().file(".config/wayferry")).expect("a directory");
    sshd.home().write(".config/wayferry/config.toml", "trace = \"/dev/full\"\n");
    let remote = sshd.home().wayferry().words()[0].clone();
    let launch = sshd.wayferry(sway.home(), &["--remote-bin", &remote], &["foot", "cat"]);
    let ferry = launch.env("WAYLAND_DISPLAY", sway.display()).start();
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let expected = format!("note: on `{machine}`: the trace ends here: `/dev/full`: No space left");
    until("word of it", || ferry.stderr().contains(&expected).then_some(()));
}

/// Runs this build's program, with its stdout there.
fn wayferry(words: &[&str], stdout: Stdio) -> Output {
    let home = Home::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wayferry"));
    command
        .args(words)
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .env("XDG_RUNTIME_DIR", home.runtime());
    let child = command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).spawn();
    child.and_then(std::process::Child::wait_with_output).expect("it runs")
}
