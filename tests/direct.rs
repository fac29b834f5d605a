//! The rig without Wayferry: what the other tests compare with, and proof that the tools see what they claim to see.

use crate::rig::{Compositor, Network, Sshd, Sway, Weston, until};

#[test]
fn foot_draws_and_hears_the_keyboard() {
    let sway = Sway::start();
    let desk = sway.settled();
    let foot =
        sway.launch("foot").args(["sh", "-c", "printf 'ready\\n'; head -n 1 > heard; exec cat"]).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    let shown = sway.settled();
    assert!(shown != desk && shown.colours() > 2, "foot shows nothing: {}", desk.difference(&shown));

    sway.type_text("hello äß€");
    sway.keys(&["-k", "Return"]);
    let heard = sway.home().read_when("heard", |text| text.ends_with(b"\n"));
    assert_eq!(String::from_utf8_lossy(&heard), "hello äß€\n");
    drop(foot);
    sway.empty();
    sway.shows("the empty desk", &desk);
}

#[test]
fn pointer_clicks_reach_a_program() {
    let sway = Sway::start();
    let mut pointer = sway.pointer();
    let _foot = sway.launch("foot").args(["sh", "-c", MOUSE_REPORT]).start();
    sway.window("foot", |window| window.app_id == "foot");
    until("the terminal to listen", || sway.home().file("listens").exists().then_some(()));
    pointer.click(200, 200);
    sway.home().read_when("clicks", |report| report.windows(2).any(|pair| pair == b"[<"));
}

#[test]
fn clipboard_passes_between_programs() {
    let sway = Sway::start();
    sway.launch("wl-copy").arg("one").run();
    assert_eq!(sway.launch("wl-paste").arg("-n").run(), b"one");
    sway.launch("wl-copy").args(["-p", "two"]).run();
    assert_eq!(sway.launch("wl-paste").args(["-p", "-n"]).run(), b"two");
}

#[test]
fn weston_shows_simple_shm() {
    let weston = Weston::start();
    let desk = weston.settled();
    let mut program = weston.launch("weston-simple-shm").start();
    let first = until("the first frame", || Some(weston.screenshot()).filter(|picture| *picture != desk));
    until("another frame", || {
        Some(weston.screenshot()).filter(|picture| *picture != desk && *picture != first)
    });
    program.must_run();
}

#[test]
fn the_ssh_server_runs_commands() {
    for network in [Network::Plain, Network::Own, Network::NoUdp] {
        let sshd = Sshd::start_with(network, "");
        let arguments = sshd.arguments();
        let ssh = sshd.home().launch("ssh").privileged().args(arguments.iter().map(String::as_str));
        assert_eq!(sshd.near(ssh.args(["echo", "answer"])).run(), b"answer\n");
    }
}

#[test]
fn udp_is_lost_without_a_word_where_it_should_be() {
    let sshd = Sshd::start_with(Network::NoUdp, "");
    let talk = "import socket; a, b = (socket.socket(type=socket.SOCK_DGRAM) for _ in 'ab'); a.bind(('127.0.0.1', 0)); \
        b.sendto(b'x', a.getsockname()); a.settimeout(0.2); print(a.recv(1))";
    let mut program = sshd.near(sshd.home().launch("python3").privileged().args(["-c", talk])).start();
    program.ended();
    assert!(
        program.stderr().contains("TimeoutError") || program.stderr().contains("timed out"),
        "{}",
        program.stderr()
    );
}

/// A shell script that turns the terminal's mouse reports on and keeps what comes. It listens when the terminal has
/// answered a question that stands behind the request: by then it has read that too.
pub(crate) const MOUSE_REPORT: &str = "stty raw -echo; printf '\\033[?1000h\\033[?1006h\\033[c'; until [ \"$(dd bs=1 count=1 2>/dev/null)\" = c ]; do :; done; touch listens; exec cat > clicks";
