//! `wayferry info` beside a real session over a lossy link.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use rustix::process::geteuid;
use serde_json::{Value, json};
use wayferry_stage::{Link, LinkConfig, Loss};

use crate::rig::{Compositor, Home, Program, Session, Sway, attach_to, free_address, until};

#[test]
fn both_sides_of_a_session_tell_how_it_fares() {
    let sway = Sway::start();
    let (mut host, mut attach, _link) = session(&sway);
    // As long as the link's losses take to show.
    let [app, display] = until("rebuilt blocks", || {
        host.must_run();
        attach.must_run();
        let sides: [Value; 2] = info(sway.home()).try_into().ok()?;
        let shown = sides[0]["lost_packets"].as_u64()? > 0 && sides[1]["rebuilt_blocks"].as_u64()? > 0;
        shown.then_some(sides)
    });
    assert_eq!((&app["role"], &display["role"]), (&json!("app"), &json!("display")));
    assert_eq!(app["pid"], host.pid().as_raw_nonzero().get());
    assert_eq!(display["pid"], attach.pid().as_raw_nonzero().get());
    assert_eq!(app["session"], display["session"]);
    assert_eq!(app["peer_software"], display["software"]);
    for side in [&app, &display] {
        assert_eq!((&side["carrier"], &side["programs"]), (&json!("quic"), &json!(1)), "{side}");
        let number = |field: &str| side[field].as_f64().unwrap_or_else(|| panic!("{field}: {side}"));
        assert!(number("rtt_ms") >= 40.0 && number("base_rtt_ms") <= number("rtt_ms"), "{side}");
        assert!(number("sent_bytes") > 1000.0 && number("received_bytes") > 1000.0, "{side}");
        assert!(number("lost_packets") < number("sent_packets"), "{side}");
    }
    assert!(app["repair_bytes"].as_u64() > Some(0) && app["lost_percent"].as_f64() < Some(50.0), "{app}");
    // At least the link's own round trip for each.
    let rebuilt = display["rebuilt_blocks"].as_f64().expect("a number");
    assert!(display["saved_ms_estimate"].as_f64() >= Some(40.0 * rebuilt), "{display}");

    let text = String::from_utf8(sway.home().wayferry().arg("info").run()).expect("text");
    assert!(text.starts_with("app side, process ") && text.contains("\n\ndisplay side, "), "{text}");
    let text = String::from_utf8(sway.home().wayferry().arg("status").run()).expect("text");
    assert!(
        text.starts_with("shown here:\n  a session of a ticket: 1 program, over QUIC, round trip "),
        "{text}"
    );
    assert!(text.contains("running here:\n  SESSION"), "{text}");

    // Both are asked: the link may lose what one of them says of its end.
    attach.terminate();
    attach.ended();
    host.terminate();
    host.ended();
    assert!(!sway.home().runtime().join("wayferry").exists(), "left behind");
    assert_eq!(sway.home().wayferry().arg("info").run(), b"no sessions\n");
}

#[test]
fn the_dead_and_strangers_are_not_shown() {
    let sway = Sway::start();
    let (mut host, mut attach, _link) = session(&sway);
    let sides = until("both sides", || Some(info(sway.home())).filter(|sides| sides.len() == 2));
    let sockets = sway.home().runtime().join("wayferry");
    let metadata = std::fs::metadata(&sockets).expect("the directory");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o700);
    let dead = sockets.join(format!("display-{}", sides[1]["pid"]));
    assert!(std::fs::metadata(&dead).expect("a socket").file_type().is_socket());
    let stranger = sockets.join("app-1");
    let _listens = UnixListener::bind(&stranger).expect("a socket of the tests' own user");

    attach.kill();
    if geteuid().is_root() {
        // Another user's, who would not answer.
        assert_eq!(info(sway.home()).len(), 1);
        assert!(stranger.exists());
    }
    std::fs::remove_file(&stranger).expect("removed");
    let left = info(sway.home());
    assert!(left.len() == 1 && left[0]["role"] == "app", "{left:?}");
    assert!(!dead.exists());
    host.terminate();
    host.ended();
    assert!(!sockets.exists(), "left behind");
}

#[test]
fn no_session_to_show_is_no_error() {
    let home = Home::new();
    assert_eq!(home.wayferry().arg("info").run(), b"no sessions\n");
    assert_eq!(info(&home), [Value::Null; 0]);
    let nowhere = home.wayferry().env("XDG_RUNTIME_DIR", "").arg("info");
    assert_eq!(nowhere.run(), b"no sessions\n");
}

/// Both sides beside each other, with a terminal that never rests.
fn session(sway: &Sway) -> (Program, Program, Link) {
    let address = free_address();
    let listen = address.to_string();
    let script = "while :; do seq 1 40; sleep 0.05; done";
    let words = ["host", "--listen", &listen, "--", "foot", "sh", "-c", script];
    let mut host = sway.home().wayferry().args(words).start();
    let config = LinkConfig {
        one_way_delay: Duration::from_millis(20),
        loss: Loss::Independent(0.05),
        seed: 11,
        ..LinkConfig::default()
    };
    let link = Link::start(config, address).expect("an emulated link");
    let ticket = host.first_line();
    let attach = attach_to(sway, &[], &[&ticket, "--via", &link.local_addr().to_string()]);
    sway.window("foot", |window| window.app_id == "foot");
    (host, attach, link)
}

/// What both sides tell, the app side first.
/// A GPU that is not there: the user is told, and programs draw in software.
#[test]
fn a_gpu_that_cannot_be_used_is_told_and_done_without() {
    let sway = Sway::start();
    let mut session = Session::start_with(&sway, &["--gpu", "/dev/dri/renderD250"]);
    until("the reason", || session.host.stderr().contains("programs draw in software").then_some(()));
    let _terminal = session.launch("foot").args(["sh", "-c", "exec sleep 1000000"]).start();
    until("a terminal", || (!sway.windows().is_empty()).then_some(()));
    let gpu = info(session.home()).into_iter().find(|side| side["role"] == "app").expect("a session")["gpu"]
        .clone();
    assert_eq!((&gpu["reader"], gpu["readers"].as_u64()), (&Value::Null, Some(1)), "{gpu}");
    assert!(gpu["unable"].as_str().is_some_and(|why| why.contains("/dev/dri/renderD250")), "{gpu}");
    session.must_run();
}

pub(crate) fn info(home: &Home) -> Vec<Value> {
    let text = home.wayferry().args(["info", "--json"]).run();
    serde_json::from_slice(&text).expect("a JSON array")
}
