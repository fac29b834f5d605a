//! A session changes its carrier: from ssh to QUIC and back, while somebody types.

use crate::rig::{Compositor, Home, Network, Program, Sshd, Sway, free_address, until};
use crate::ssh::{attach, ferry};

#[test]
fn a_session_begins_on_ssh_and_moves_to_quic() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::Own, ""));
    let mut ferry = ferry(&sway, &sshd, &[], &["foot", "sh", "-c", HEAR]).start();
    let mut typing = Typing::start(&sway);
    ferry.happens("quic-reached");
    typing.ends();
    assert_eq!(ferry.ended().code(), Some(9), "{}", ferry.stderr());
    typing.arrived(sshd.home());
    for event in ["quic-unreachable", "quic-silent", "back", "connection-lost", "display-away"] {
        assert_eq!(ferry.count(event), 0, "{event}: {}", ferry.stderr());
    }
    // A user has nothing to be told.
    assert!(!ferry.stderr().contains("note:"), "{}", ferry.stderr());
    sway.empty();
}

#[test]
fn udp_that_opens_later_is_found() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::NoUdp, ""));
    let mut ferry = ferry(&sway, &sshd, &[], &["foot", "sh", "-c", HEAR]).start();
    ferry.happens("quic-unreachable");
    let mut typing = Typing::start(&sway);
    sshd.block_udp(false);
    ferry.happens("quic-reached");
    typing.ends();
    assert_eq!(ferry.ended().code(), Some(9), "{}", ferry.stderr());
    typing.arrived(sshd.home());
    assert_eq!((ferry.count("quic-unreachable"), ferry.count("quic-reached")), (1, 1), "{}", ferry.stderr());
}

#[test]
fn udp_that_closes_sends_the_session_back_to_ssh_and_opens_again() {
    goes_back_and_forth(&["foot", "sh", "-c", HEAR]);
}

/// ssh's stdio is the terminal's, and a forwarded socket leads back.
#[test]
fn udp_that_closes_sends_the_session_of_a_terminal_back_to_ssh_too() {
    goes_back_and_forth(&["-tt", "foot", "sh", "-c", HEAR]);
}

fn goes_back_and_forth(command: &[&str]) {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::Own, ""));
    let mut ferry = ferry(&sway, &sshd, &[], command).start();
    ferry.happens("quic-reached");
    let before = sway.window("foot", |window| window.app_id == "foot");
    let mut typing = Typing::start(&sway);
    sshd.block_udp(true);
    ferry.happens("quic-silent");
    sshd.block_udp(false);
    until("QUIC again", || (ferry.count("quic-reached") == 2).then_some(()));
    let after = sway.window("foot", |window| window.app_id == "foot");
    assert_eq!(before.id, after.id, "it is the same window");
    typing.ends();
    assert_eq!(ferry.ended().code(), Some(9), "{}", ferry.stderr());
    typing.arrived(sshd.home());
    for event in ["connection-lost", "back"] {
        assert_eq!(ferry.count(event), 0, "{event}: {}", ferry.stderr());
    }
    sway.empty();
}

#[test]
fn regression_a_firewall_that_passes_handshakes_alone_has_the_session_go_back_to_ssh() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::Own, ""));
    sshd.pass_handshakes_alone();
    let mut ferry = ferry(&sway, &sshd, &[], &["foot", "sh", "-c", HEAR]).start();
    let mut typing = Typing::start(&sway);
    ferry.happens("quic-silent");
    typing.ends();
    assert_eq!(ferry.ended().code(), Some(9), "{}", ferry.stderr());
    typing.arrived(sshd.home());
    assert_eq!(ferry.count("quic-reached"), 0, "{}", ferry.stderr());
}

/// Nothing but its own ssh leads it back.
#[test]
fn regression_attach_goes_back_to_ssh_by_itself() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::Own, ""));
    let words = ["foot", "sh", "-c", HEAR];
    let mut ferry = ferry(&sway, &sshd, &["--name", "foot"], &words).start();
    ferry.happens("quic-reached");
    ferry.terminate();
    ferry.ended();
    sway.empty();
    let mut attach = attach(&sway, &sshd, "ferry-host:foot").start();
    attach.happens("quic-reached");
    let mut typing = Typing::start(&sway);
    sshd.block_udp(true);
    attach.happens("quic-silent");
    typing.ends();
    assert_eq!(attach.ended().code(), Some(9), "{}", attach.stderr());
    typing.arrived(sshd.home());
    for event in ["connection-lost", "back"] {
        assert_eq!(attach.count(event), 0, "{event}: {}", attach.stderr());
    }
}

#[test]
fn a_program_that_ends_while_quic_is_dead_has_its_exit_code() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::Own, ""));
    sshd.pass_handshakes_alone();
    let mut ferry = ferry(&sway, &sshd, &[], &["foot", "sh", "-c", "'sleep 2; exit 9'"]).start();
    assert_eq!(ferry.ended().code(), Some(9), "{}", ferry.stderr());
}

/// An address may be another host's in another network.
#[test]
fn regression_another_host_where_quic_is_tried_ends_no_session() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::Own, ""));
    let [port, other] = [free_address(), free_address()].map(|address| address.port());
    let stranger =
        sshd.home().wayferry().args(["host", "--listen", &format!("127.0.0.1:{other}"), "--", "true"]);
    let mut stranger = sshd.near(stranger.privileged()).start();
    stranger.first_line();
    sshd.redirect_udp(port, other);
    let options = ["--port", &format!("{port}-{port}")];
    let mut ferry = ferry(&sway, &sshd, &options, &["foot", "sh", "-c", HEAR]).start();
    ferry.happens("quic-unreachable");
    let mut typing = Typing::start(&sway);
    typing.ends();
    assert_eq!(ferry.ended().code(), Some(9), "{}", ferry.stderr());
    typing.arrived(sshd.home());
    assert!(ferry.stderr().contains("verification failed"), "{}", ferry.stderr());
    stranger.must_run();
}

/// Somebody who types while things happen.
struct Typing<'a> {
    sway: &'a Sway,
    program: Program,
}

impl<'a> Typing<'a> {
    fn start(sway: &'a Sway) -> Self {
        sway.window("foot", |window| window.app_id == "foot" && window.focused);
        sway.settled();
        Self { sway, program: sway.launch("wtype").args(["-d", "30", &text()]).start() }
    }

    /// Waits until everything has been typed, and ends the line.
    fn ends(&mut self) {
        assert!(self.program.ended().success(), "{}", self.program.stderr());
        self.sway.keys(&["-k", "Return"]);
    }

    /// The line is there, whole.
    fn arrived(&self, home: &Home) {
        let heard = std::fs::read_to_string(home.file("heard")).expect("what was heard");
        assert_eq!(heard, format!("{}\n", text()));
    }
}

/// No part of it is like another.
fn text() -> String {
    (100..200).map(|number| number.to_string()).collect::<Vec<_>>().join(".")
}

/// Hears a line.
const HEAR: &str = "'head -n 1 > $HOME/heard; exit 9'";
