//! Files between the two machines of a session.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use crate::rig::{Compositor, Home, Network, Sshd, Sway, attach, host, until};
use crate::ssh::ferry;

#[test]
fn files_of_a_session_come_to_the_desk_whole_and_overwrite_none() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let big: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    sshd.home().write("big.bin", &big);
    sshd.home().write(".hidden", "one");
    let line =
        "'cd && wayferry send .hidden big.bin && echo two > .hidden && wayferry send .hidden; exit $?'";
    let mut ferry = ferry(&sway, &sshd, &[], &["foot", "sh", "-c", line]).start();
    assert_eq!(ferry.ended().code(), Some(0), "{}", ferry.stderr());
    let kept = |name: &str| fs::read(downloads(sway.home(), "ferry-host").join(name)).expect("a file");
    assert_eq!((kept("_hidden"), kept("_hidden (2)")), (b"one".to_vec(), b"two\n".to_vec()));
    assert!(kept("big.bin") == big);
    assert_eq!(ferry.count("file-kept"), 3, "{}", ferry.stderr());
    let names = fs::read_dir(downloads(sway.home(), "ferry-host")).expect("the folder");
    assert_eq!(names.count(), 3, "nothing else is there");
}

#[test]
fn files_that_are_not_wanted_or_have_no_room_do_not_come() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    sshd.home().write("file", "x");
    let run = |options: &[&str], line: &str| {
        let mut ferry = ferry(&sway, &sshd, options, &["foot", "sh", "-c", line]).start();
        (ferry.ended().code(), ferry.stderr())
    };
    let line = "'wayferry send $HOME/file 2> $HOME/said; exit $?'";
    let (code, told) = run(&["--files", "off"], line);
    assert_eq!(code, Some(89), "{told}");
    let said = fs::read_to_string(sshd.home().file("said")).expect("what was said");
    assert!(said.contains("--files off"), "{said}");
    let line = "'truncate -s 14T $HOME/huge; wayferry send $HOME/huge 2> $HOME/said; exit $?'";
    let (code, told) = run(&[], line);
    assert_eq!(code, Some(89), "{told}");
    assert!(told.contains("no room"), "{told}");
    let said = fs::read_to_string(sshd.home().file("said")).expect("what was said");
    assert!(said.contains("no room"), "{said}");
    let left = fs::read_dir(downloads(sway.home(), "ferry-host")).map(Iterator::count);
    assert_eq!(left.unwrap_or(0), 0);
}

#[test]
fn the_desk_sends_and_fetches_files() {
    let (sway, there) = (Sway::start(), Home::new());
    there.write("result.csv", "a,b\n");
    let mut host = host(&there, &["--name", "work", "--files", "on"], &["foot", "cat"]);
    let mut attach = attach(&sway, &[], &host.first_line());
    sway.window("foot", |_| true);
    sway.home().write("letter", "dear");
    let desk = |words: &[&str]| sway.home().wayferry().args(words.iter().copied()).start();
    let letter = sway.home().file("letter").display().to_string();
    let mut send = desk(&["send", &letter]);
    assert_eq!(send.ended().code(), Some(0), "{}", send.stderr());
    assert_eq!(fs::read(downloads(&there, "work").join("letter")).expect("the letter"), b"dear");
    let mut fetch = desk(&["fetch", "result.csv"]);
    assert_eq!(fetch.ended().code(), Some(0), "{}", fetch.stderr());
    assert_eq!(fs::read(fetch.stdout().trim()).expect("the result"), b"a,b\n");
    let long = "x".repeat(5000);
    for (words, why) in [
        (&["fetch", "none.csv"][..], "no plain file"),
        (&["fetch", &long], "4096 bytes"),
        (&["fetch", "."], "no plain file"),
        (&["send", &letter, "--to", "elsewhere"], "nothing that is called `elsewhere`"),
    ] {
        let mut refused = desk(words);
        assert!(!refused.ended().success());
        assert!(refused.stderr().contains(why), "{}", refused.stderr());
    }
    attach.must_run();
    attach.terminate();
    attach.ended();
    let mut alone = desk(&["send", &letter]);
    until("the display to go", || (alone.ended().code() == Some(82)).then_some(()));
    host.must_run();
}

#[test]
fn files_cross_to_who_has_a_ticket_only_if_the_user_says_so() {
    let (sway, there) = (Sway::start(), Home::new());
    there.write("secret", "x");
    let mut host = host(&there, &[], &["foot", "cat"]);
    let mut attach = attach(&sway, &[], &host.first_line());
    sway.window("foot", |_| true);
    let letter = sway.home().write("letter", "dear").display().to_string();
    for words in [["fetch", "secret"], ["send", &letter]] {
        let mut refused = sway.home().wayferry().args(words).start();
        assert_eq!(refused.ended().code(), Some(89), "{}", refused.stderr());
    }
    assert!(!there.file("Downloads").exists());
    attach.must_run();
    host.must_run();
}

/// Its caller would hear of another display, and of none that leaves.
#[test]
fn regression_a_file_on_its_way_waits_for_ever_when_the_display_leaves() {
    let (sway, there) = (Sway::start(), Home::new());
    let line = "echo $WAYFERRY_CONTROL > $HOME/control; cat";
    let mut host = host(&there, &["--name", "work", "--files", "on"], &["foot", "sh", "-c", line]);
    let attach = attach(&sway, &[], &host.first_line());
    let control = until("the program to begin", || {
        fs::read_to_string(there.file("control")).ok().filter(|path| path.ends_with('\n'))
    });
    let mut caller = UnixStream::connect(control.trim()).expect("the session");
    caller.write_all(b"send 100 file\nonly so much").expect("written");
    let mut detach = there.wayferry().args(["detach", ":work"]).start();
    assert_eq!(detach.ended().code(), Some(0), "{}", detach.stderr());
    caller.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    let mut answer = String::new();
    caller.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("not "), "{answer}");
    drop(attach);
    host.must_run();
}

#[test]
fn regression_a_fifo_that_is_sent_cannot_be_interrupted() {
    let home = Home::new();
    let fifo = home.file("fifo");
    assert!(home.launch("mkfifo").arg(fifo.display().to_string()).start().ended().success());
    let mut send = home
        .wayferry()
        .env("WAYFERRY_CONTROL", "/nonexistent")
        .args(["send", &fifo.display().to_string()])
        .start();
    assert_eq!(send.ended().code(), Some(89), "{}", send.stderr());
    assert!(send.stderr().contains("no plain file"), "{}", send.stderr());
}

#[test]
fn regression_a_desk_without_files_is_said_not_to_answer() {
    let (sway, there) = (Sway::start(), Home::new());
    let mut host = host(&there, &["--files", "on"], &["foot", "cat"]);
    let _attach = attach(&sway, &["--files", "off"], &host.first_line());
    sway.window("foot", |_| true);
    let mut refused = sway.home().wayferry().args(["fetch", "x"]).start();
    assert_eq!(refused.ended().code(), Some(89), "{}", refused.stderr());
    assert!(refused.stderr().contains("--files off`"), "{}", refused.stderr());
    assert!(!refused.stderr().contains("does not answer"), "{}", refused.stderr());
}

#[test]
fn a_file_goes_on_over_another_carrier() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::Own, ""));
    let line = "'cd; seq 1 30000000 > big; until [ -e go ]; do sleep 0.1; done; wayferry send big; exit $?'";
    let mut ferry = ferry(&sway, &sshd, &[], &["foot", "sh", "-c", line]).start();
    ferry.happens("quic-reached");
    sshd.home().write("go", "");
    let folder = downloads(sway.home(), "ferry-host");
    // It has no name yet.
    until("some of the file", || {
        let mut open = fs::read_dir(format!("/proc/{}/fd", ferry.pid())).ok()?.flatten().map(|fd| fd.path());
        let is_it = |fd: &PathBuf| fs::read_link(fd).is_ok_and(|file| file.starts_with(&folder));
        open.any(|fd| is_it(&fd) && fs::metadata(&fd).is_ok_and(|about| about.len() > 1 << 20)).then_some(())
    });
    assert!(!folder.join("big").exists(), "it is on its way");
    sshd.block_udp(true);
    ferry.happens("quic-silent");
    assert_eq!(ferry.ended().code(), Some(0), "{}", ferry.stderr());
    assert!(
        fs::read(folder.join("big")).expect("the file") == fs::read(sshd.home().file("big")).expect("it")
    );
    assert_eq!(ferry.count("connection-lost"), 0, "{}", ferry.stderr());
}

fn downloads(home: &Home, name: &str) -> PathBuf {
    home.file("Downloads/wayferry").join(name)
}
