//! Completions, by the real shells.

use std::fs;

use crate::rig::{Home, Launch};

#[test]
fn bash_offers_commands_hosts_and_sessions() {
    let home = home();
    let mut session = session(&home);
    session.first_line();
    home.write("script", offered(&home, "bash"));
    // What bash gives to the function: the line, its words as they are split, and what is to be replaced.
    let call = "source script; COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=(\"${@:3}\") COMP_CWORD=$(($# - 3)); \
        compopt() { :; }; _wayferry wayferry \"$2\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let replies = |words: &[&str]| {
        let launch = shell(&home, "bash").args(["--norc", "-c", call, "bash"]).args(words.iter().copied());
        lines(launch.run())
    };
    assert_eq!(replies(&["wayferry det", "det", "wayferry", "det"]), ["detach"]);
    assert_eq!(replies(&["wayferry ssh al", "al", "wayferry", "ssh", "al"]), ["alpha"]);
    let port = ["wayferry ssh -p 22 be", "be", "wayferry", "ssh", "-p", "22", "be"];
    assert_eq!(replies(&port), ["beta"]);
    // It splits at `@` and at `:`.
    let at = ["wayferry list u@al", "@al", "wayferry", "list", "u", "@", "al"];
    assert_eq!(replies(&at), ["@alpha"]);
    for (line, command) in [("wayferry stop :ta", "stop"), ("wayferry attach :ta", "attach")] {
        assert_eq!(replies(&[line, "ta", "wayferry", command, ":", "ta"]), ["tail"]);
    }
    assert_eq!(replies(&["wayferry detach :", "", "wayferry", "detach", ":"]), ["tail"]);
    home.wayferry().args(["stop", ":tail"]).run();
    session.ended();
}

#[test]
fn zsh_and_fish_offer_the_same() {
    let home = home();
    home.write("_wayferry", offered(&home, "zsh"));
    let call = "compdef() { :; }; _describe() { print -rl -- ${(P)3}; }; words=(wayferry ssh al) CURRENT=3; \
        source ./_wayferry; _clap_dynamic_completer_wayferry";
    assert_eq!(lines(shell(&home, "zsh").args(["-f", "-c", call]).run()), ["alpha"]);
    home.write("wayferry.fish", offered(&home, "fish"));
    let call = "source wayferry.fish; complete --do-complete 'wayferry ssh al'";
    assert_eq!(lines(shell(&home, "fish").args(["--no-config", "-c", call]).run()), ["alpha"]);
}

#[test]
fn what_is_not_being_completed_runs_as_ever() {
    let home = home();
    let text = |launch: Launch| String::from_utf8(launch.run()).expect("text");
    // Other programs use this variable.
    assert_eq!(text(home.wayferry().env("COMPLETE", "bash").arg("list")), "no sessions\n");
    assert_eq!(text(home.wayferry().env("_WAYFERRY_COMPLETE", "").arg("list")), "no sessions\n");
}

/// A user who has ssh's files.
fn home() -> Home {
    let home = Home::new();
    fs::create_dir(home.file(".ssh")).expect("a directory");
    home.give(&home.file(".ssh"));
    home.write(".ssh/config", "Host alpha *.example.org\nInclude more\n");
    home.write(".ssh/more", "Host beta\n");
    home
}

fn session(home: &Home) -> crate::rig::Program {
    let words = ["--detached", "host", "--listen", "127.0.0.1:0", "--", "tail", "-f", "/dev/null"];
    home.wayferry().args(words).start()
}

/// The script for a shell.
fn offered(home: &Home, shell: &str) -> Vec<u8> {
    home.wayferry().args(["completions", shell]).run()
}

/// A shell that finds this build's wayferry.
fn shell(home: &Home, shell: &str) -> Launch {
    home.launch(shell).env("PATH", format!("{}:/usr/bin:/bin", home.path().display()))
}

fn lines(output: Vec<u8>) -> Vec<String> {
    let text = String::from_utf8(output).expect("text");
    // fish tells what it is, too.
    text.lines().map(|line| line.split('\t').next().unwrap_or_default().trim().to_owned()).collect()
}
