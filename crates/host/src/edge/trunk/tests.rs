//! Both ends, with a display, a program and a session at their descriptors.

use std::io::{Read, Write};

use super::*;
use crate::edge::socket::{Listener, RuntimeDir};

/// Both ends, and what a display, a program and a session have of them.
struct Rig {
    near: Trunk,
    far: Trunk,
    meeting: [UnixStream; 2],
    /// The user's stdout and stderr.
    user: [UnixStream; 2],
    /// The program's stdin, stdout and stderr, and the notes.
    program: [UnixStream; 4],
    standby: Listener,
    _dir: RuntimeDir,
}

fn pair() -> (UnixStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a socket");
    ours.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("a timeout");
    (ours, theirs)
}

impl Rig {
    fn start() -> Self {
        let dir = RuntimeDir::private().expect("a directory");
        let standby = Listener::unlocked(dir.path().join("s")).expect("a socket");
        let (near, far) = pair();
        let ([display, session], [display_end, session_end]) = pairs();
        let (user, user_ends) = pairs();
        let (program, program_ends) = pairs();
        let near = Trunk::near(near.into(), display_end, user_ends, standby.path()).expect("an end");
        say(&far, "WFSSH1\r\n");
        let from = far.try_clone().expect("dup").into();
        let far = Trunk::far(from, far.into(), session_end, program_ends).expect("an end");
        Self { near, far, meeting: [display, session], user, program, standby, _dir: dir }
    }
}

fn pairs<const N: usize>() -> ([UnixStream; N], [OwnedFd; N]) {
    let mut theirs = Vec::new();
    let ours = std::array::from_fn(|_| {
        let (ours, end) = pair();
        theirs.push(OwnedFd::from(end));
        ours
    });
    (ours, theirs.try_into().expect("as many"))
}

fn say(mut socket: &UnixStream, text: &str) {
    socket.write_all(text.as_bytes()).expect("room");
}

fn hear(mut socket: &UnixStream, text: &str) {
    let mut heard = vec![0; text.len()];
    socket.read_exact(&mut heard).expect("what was said");
    assert_eq!(String::from_utf8_lossy(&heard), text);
}

fn is_over(mut socket: &UnixStream) -> bool {
    socket.read(&mut [0]).expect("an end") == 0
}

#[test]
fn each_strand_leads_to_its_own_descriptor() {
    let rig = Rig::start();
    let [display, session] = &rig.meeting;
    let [stdin, stdout, stderr, notes] = &rig.program;
    say(display, "hello");
    hear(session, "hello");
    say(session, "welcome");
    hear(display, "welcome");
    let (typed, keyboard) = pair();
    rig.near.read_stdin(keyboard.into());
    say(&typed, "typed");
    hear(stdin, "typed");
    say(stdout, "out");
    hear(&rig.user[0], "out");
    say(stderr, "err");
    hear(&rig.user[1], "err");
    say(notes, "note");
    hear(&rig.user[1], "note");
    // The user's end of file is the program's, and nothing else ends by it.
    drop(typed);
    assert!(is_over(stdin));
    say(display, "more");
    hear(session, "more");
}

#[test]
fn a_later_meeting_is_brought_to_the_display_and_ends_at_both_ends() {
    let rig = Rig::start();
    for _ in 0..20 {
        let session = rig.far.open().expect("a socket");
        let mut ready = [PollFd::new(&rig.standby, PollFlags::IN)];
        poll(&mut ready, None).expect("poll");
        let display = UnixStream::from(rig.standby.accept().expect("accept").expect("a meeting"));
        display.set_nonblocking(false).expect("a socket");
        say(&display, "here");
        hear(&session, "here");
        drop(display);
        assert!(is_over(&session));
    }
}

#[test]
fn what_a_program_wrote_last_arrives_although_its_end_finishes() {
    let Rig { near, far, meeting, user, program, .. } = Rig::start();
    let [stdin, stdout, stderr, notes] = program;
    let text = "x".repeat(50_000);
    say(&stdout, &text);
    drop((stdin, stdout, stderr, notes));
    far.finish();
    hear(&user[0], &text);
    for user in &user {
        assert!(is_over(user));
    }
    drop(far);
    // The process that has it ends.
    drop(meeting);
    let mut over = [PollFd::from_borrowed_fd(near.over(), PollFlags::IN)];
    poll(&mut over, None).expect("poll");
}

/// Its stdout stays open: another program has it.
#[test]
fn what_waits_for_a_slow_reader_arrives_although_its_end_leaves() {
    let Rig { near, far, meeting, user, program: [_stdin, stdout, stderr, notes], .. } = Rig::start();
    // More than the strand has room for, and no more than wait on both sides of it.
    let text = "x".repeat(400_000);
    say(&stdout, &text);
    drop((stderr, notes));
    far.leave();
    hear(&user[0], &text);
    assert!(is_over(&user[0]));
    drop((far, meeting));
    let mut over = [PollFd::from_borrowed_fd(near.over(), PollFlags::IN)];
    poll(&mut over, None).expect("poll");
}

#[test]
fn when_ssh_ends_all_ends() {
    let (ssh, link) = pair();
    let ([display], [meeting]) = pairs();
    let (user, outputs) = pairs();
    let near = Trunk::near(link.into(), meeting, outputs, Path::new("/no/such")).expect("an end");
    say(&ssh, "a login's words\n");
    hear(&user[0], "a login's words\n");
    drop(ssh);
    assert!(is_over(&display) && is_over(&user[0]) && is_over(&user[1]));
    let mut over = [PollFd::from_borrowed_fd(near.over(), PollFlags::IN)];
    poll(&mut over, None).expect("poll");
}

#[test]
fn a_reader_that_is_gone_or_slow_holds_up_no_other() {
    let Rig { near: _near, far: _far, meeting, user, program, .. } = Rig::start();
    let [display, session] = &meeting;
    let [_stdin, stdout, stderr, _notes] = &program;
    let [gone, _slow] = user;
    drop(gone);
    let flood = |socket: &UnixStream, count: usize| {
        let mut socket = socket.try_clone().expect("dup");
        std::thread::spawn(move || drop(socket.write_all(&vec![b'x'; count])))
    };
    let written = flood(stdout, 4 << 20);
    let _stuck = flood(stderr, 4 << 20);
    written.join().expect("all was taken");
    for _ in 0..100 {
        say(session, "still");
        hear(display, "still");
    }
}
