//! Honest programs that have much of something, and the limits of the process that serves them.

use std::os::unix::net::UnixStream;

use crate::rig::{Compositor, Home, Session, Sway, attach, until};

/// Each of its windows announces half a gibibyte of memory; the ninth ended all of them.
#[test]
fn regression_a_server_of_terminals_lives_with_forty_windows() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let socket = session.home().file("foot.sock").display().to_string();
    let mut server = session.launch("foot").arg(format!("--server={socket}")).start();
    until("the server of terminals", || session.home().file("foot.sock").exists().then_some(()));
    for _ in 0..40 {
        let client = session.launch("footclient").arg(format!("--server-socket={socket}"));
        client.args(["--no-wait", "--", "tail", "-f", "/dev/null"]).run();
    }
    until("forty windows", || (sway.windows().len() == 40).then_some(()));
    server.must_run();
    session.must_run();
}

#[test]
fn a_session_takes_all_descriptors_it_may_and_its_programs_have_as_many_as_before() {
    let sway = Sway::start();
    let home = Home::new();
    let program = ["sh", "-c", "ulimit -S -n > limit; exec tail -f /dev/null"];
    let host = home.wayferry().under(&["prlimit", "--nofile=100:"]);
    let mut host = host.args(["host", "--listen", "127.0.0.1:0", "--"]).args(program).start();
    let ticket = host.first_line();
    let mut attach = attach(&sway, &[], &ticket);
    let limit = home.read_when("limit", |text| text.ends_with(b"\n"));
    assert_eq!(String::from_utf8_lossy(&limit), "100\n");
    // It is lower while the program starts, which may be done with that before the host goes on.
    let path = format!("/proc/{}/limits", host.pid().as_raw_nonzero());
    until("the host may open more than a hundred", || {
        let limits = std::fs::read_to_string(&path).expect("its limits");
        let open = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line");
        let soft: u64 = open.split_whitespace().nth(3)?.parse().ok()?;
        (soft > 100).then_some(())
    });
    host.must_run();
    attach.must_run();
}

#[test]
fn regression_idle_connections_take_the_descriptors_of_other_programs() {
    let sway = Sway::start();
    let home = Home::new();
    let line = "echo $WAYLAND_DISPLAY > display; exec foot sh -c 'head -n 1 > heard; exec cat'";
    let host = home.wayferry().under(&["prlimit", "--nofile=64:64"]);
    let mut host = host.args(["host", "--listen", "127.0.0.1:0", "--", "sh", "-c", line]).start();
    let ticket = host.first_line();
    let mut attach = attach(&sway, &[], &ticket);
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    let display = home.read_when("display", |text| text.ends_with(b"\n"));
    let socket = home.runtime().join(String::from_utf8_lossy(&display).trim());
    let idle: Vec<_> = (0..80).map(|_| UnixStream::connect(&socket).expect("the session's socket")).collect();
    host.happens("programs-wait");
    // A line of its own that is new to the window: it needs another buffer.
    sway.type_text("alive");
    sway.keys(&["-k", "Return"]);
    home.read_when("heard", |text| text == b"alive\n");
    sway.settled();
    assert_eq!(sway.windows().len(), 1, "{}", host.stderr());
    drop(idle);
    host.must_run();
    attach.must_run();
}
