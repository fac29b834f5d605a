//! A session of two sides: many programs, endings, and every trouble with its own exit code and words.

use std::io::Write;
use std::net::UdpSocket;

use crate::rig::{Home, Program, Session, Sway, attach, attach_to, free_address, host, until};

#[test]
fn one_program_dies_and_the_other_lives() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut first = session.launch("foot").args(["-a", "first", "cat"]).start();
    sway.window("the first", |window| window.app_id == "first");
    let mut second =
        session.launch("foot").args(["-a", "second", "sh", "-c", "head -n 1 > heard; exec cat"]).start();
    sway.window("the second", |window| window.app_id == "second");
    first.kill();
    sway.window("the second with the focus", |window| window.app_id == "second" && window.focused);
    until("the first window to go", || (sway.windows().len() == 1).then_some(()));
    sway.type_text("alive");
    sway.keys(&["-k", "Return"]);
    session.home().read_when("heard", |text| text == b"alive\n");
    second.must_run();
    session.must_run();
}

#[test]
fn a_program_that_talks_garbage_ends_alone() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot =
        session.launch("foot").args(["-a", "good", "sh", "-c", "head -n 1 > heard; exec cat"]).start();
    sway.window("the good one", |window| window.app_id == "good");
    for garbage in [&[0xff_u8; 4096][..], &[0; 4096], b"GET / HTTP/1.1\r\n\r\n", &[1, 0, 0, 0, 9, 0, 4, 0]] {
        let mut socket = session.socket();
        let _ = socket.write_all(garbage);
        let _ = socket.shutdown(std::net::Shutdown::Write);
        // The answer, if any, and then the end.
        std::io::Read::read_to_end(&mut socket, &mut Vec::new()).ok();
    }
    sway.type_text("good");
    sway.keys(&["-k", "Return"]);
    session.home().read_when("heard", |text| text == b"good\n");
    foot.must_run();
    session.must_run();
}

#[test]
fn the_programs_status_is_passed_on_and_nothing_stays() {
    let sway = Sway::start();
    let home = Home::new();
    let mut host = host(&home, &[], &["sh", "-c", "exit 42"]);
    let mut attach = attach(&sway, &[], &host.first_line());
    assert_eq!(host.ended().code(), Some(42), "{}", host.stderr());
    assert!(attach.ended().code().is_some_and(|code| code == 42 || code == 0), "{}", attach.stderr());
    nothing_stays(&home);
}

#[test]
fn a_terminated_host_takes_all_with_it() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let _foot = session.launch("foot").arg("cat").start();
    sway.window("foot", |_| true);
    session.host.terminate();
    assert_eq!(session.host.ended().code(), Some(143), "{}", session.host.stderr());
    session.attach.ended();
    sway.empty();
    nothing_stays(session.home());
}

#[test]
fn a_ticket_works_once() {
    let sway = Sway::start();
    let home = Home::new();
    let mut host = host(&home, &[], &["tail", "-f", "/dev/null"]);
    let ticket = host.first_line();
    let mut first = attach(&sway, &[], &ticket);
    host.happens("display-attached");
    fails(&mut attach(&sway, &[], &ticket), 28, "authentication failed");
    first.must_run();
    host.must_run();
}

#[test]
fn another_hosts_certificate_is_refused() {
    let sway = Sway::start();
    let (home, other) = (Home::new(), Home::new());
    let mut real = host(&home, &[], &["true"]);
    let listen = free_address().to_string();
    let mut wrong = other.wayferry().args(["host", "--listen", &listen, "--", "true"]).start();
    wrong.first_line();
    fails(&mut attach_to(&sway, &[], &[&real.first_line(), "--via", &listen]), 19, "verification failed");
}

#[test]
fn a_malformed_ticket_is_named() {
    let sway = Sway::start();
    for ticket in ["wf1:", "wf1:AAAA", "wf2:AAAA"] {
        fails(&mut attach(&sway, &[], ticket), 65, "malformed ticket");
    }
}

#[test]
fn a_host_that_is_gone_is_a_timeout() {
    let sway = Sway::start();
    let home = Home::new();
    let mut host = host(&home, &[], &["true"]);
    let ticket = host.first_line();
    host.kill();
    fails(&mut attach_to(&sway, &[], &[&ticket, "--timeout", "1"]), 18, "timed out");
}

#[test]
fn no_compositor_is_said_at_once() {
    let (home, here) = (Home::new(), Home::new());
    let mut host = host(&home, &[], &["true"]);
    let ticket = host.first_line();
    fails(&mut here.wayferry().args(["attach", &ticket]).start(), 69, "no compositor");
    let launch = here.wayferry().env("WAYLAND_DISPLAY", "absent").args(["attach", &ticket]);
    fails(&mut launch.start(), 69, "no compositor");
}

#[test]
fn a_port_in_use_is_named() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("its number").to_string();
    let home = Home::new();
    let mut host = home.wayferry().args(["host", "--listen", &address, "--", "true"]).start();
    fails(&mut host, 73, &address);
    nothing_stays(&home);
}

#[test]
fn a_missing_program_is_named() {
    let home = Home::new();
    let mut host = host(&home, &[], &["no-such-program"]);
    fails(&mut host, 127, "no-such-program");
    nothing_stays(&home);
}

/// The program must end with this code, for a reason that names this.
fn fails(program: &mut Program, code: i32, words: &str) {
    let status = program.ended();
    let messages = program.stderr();
    assert_eq!(status.code(), Some(code), "{messages}");
    let error = program.error().expect("it is told");
    assert!(error["text"].as_str().is_some_and(|text| text.contains(words)), "`{words}` expected: {error}");
}

/// No process, no socket.
fn nothing_stays(home: &Home) {
    until("the last process to end", || home.living().is_empty().then_some(()));
    let left: Vec<_> = std::fs::read_dir(home.runtime()).expect("the runtime directory").flatten().collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}
