//! Files between the two machines of a session.

use std::fs;
use std::path::PathBuf;

use crate::rig::{Compositor, Home, Sshd, Sway, attach, host, until};
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
    for (words, why) in [
        (&["fetch", "none.csv"][..], "no plain file"),
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

fn downloads(home: &Home, name: &str) -> PathBuf {
    home.file("Downloads/wayferry").join(name)
}
