//! A page in Chromium that has no WebTransport: it comes by a WebSocket, by way of who serves it, and the session takes
//! it as any other page.

use std::path::Path;

use serde_json::{Value, json};

use crate::browser::{in_front, state};
use crate::rig::{Chromium, Compositor, Firefox, Home, PATIENCE, Program, Session, Sshd, Sway, poll, until};
use crate::sessions::{manage, through_ssh};
use crate::suspended::{go_on, stop};

#[test]
fn what_is_typed_in_chromium_without_webtransport_reaches_the_program_by_a_websocket() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").args(["sh", "-c", LISTENER]).start();
    sway.window("foot", |_| true);
    let page = page(session.home(), WITHOUT);
    let mut share = manage(&session, &["share", "--control", "--page-files", &page]).start();
    let link = share.first_line();
    let mut chromium = Chromium::open(session.home(), &link);
    state(&mut chromium, "shown");
    assert_eq!(session.attach.ended().code(), Some(0), "the display before is told to leave");
    in_front(&mut chromium);
    badge(&mut chromium, "WebSocket");
    for (code, key) in [("KeyH", "h"), ("KeyI", "i"), ("Space", " "), ("KeyE", "é")] {
        chromium.press(code, key);
    }
    chromium.press("Enter", "Enter");
    let heard = session.home().read_when("heard", |heard| heard.ends_with(b"\n"));
    assert_eq!(String::from_utf8_lossy(&heard), "hi é\n");
    let list = text(&session, &["list"]);
    assert!(list.contains("attached by link 1 (wayferry "), "{list}");
    foot.must_run();
    share.terminate();
    share.ended();
    // There is no other way for it, but it goes on looking for one.
    state(&mut chromium, "away");
    session.host.must_run();
}

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn a_page_on_a_websocket_finds_its_session_again_after_a_silence() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").args(["sh", "-c", LISTENER]).start();
    sway.window("foot", |_| true);
    let page = page(session.home(), WITHOUT);
    let mut share = manage(&session, &["share", "--control", "--page-files", &page]).start();
    let link = share.first_line();
    let mut chromium = Chromium::open(session.home(), &link);
    state(&mut chromium, "shown");
    in_front(&mut chromium);
    // Not while a key is down: its program would repeat it until the host tells that it is up.
    stop(session.host.pid());
    chromium.press("KeyH", "h");
    chromium.press("KeyI", "i");
    state(&mut chromium, "away");
    chromium.press("Enter", "Enter");
    go_on(session.host.pid());
    state(&mut chromium, "shown");
    let heard = session.home().read_when("heard", |heard| heard.ends_with(b"\n"));
    assert_eq!(String::from_utf8_lossy(&heard), "hi\n");
    badge(&mut chromium, "WebSocket");
    foot.must_run();
    share.must_run();
    session.host.must_run();
}

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn a_page_whose_webtransport_never_answers_views_by_a_websocket_and_leaves_when_its_link_is_revoked() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").args(["-a", "foot", "cat"]).start();
    sway.window("foot", |_| true);
    let expected = sway.settled();
    let page = page(session.home(), SILENT);
    let mut share = manage(&session, &["share", "--page-files", &page]).start();
    let link = share.first_line();
    let mut chromium = Chromium::open(session.home(), &link);
    state(&mut chromium, "shown");
    until("the display's pixels", || (chromium.canvas()? == expected).then_some(()));
    badge(&mut chromium, "WebSocket");
    let list = text(&session, &["list"]);
    assert!(list.contains("view 1 from ") && list.contains(" by link 1 (wayferry "), "{list}");
    manage(&session, &["share", "--revoke", "1"]).run();
    state(&mut chromium, "revoked");
    foot.must_run();
    share.must_run();
    session.must_run();
}

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn a_page_comes_by_a_websocket_to_a_session_of_another_machine_through_ssh() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let binary = sshd.home().wayferry().words()[0].clone();
    let remote = ["--remote-bin", binary.as_str()];
    let ferry = sshd.wayferry(sway.home(), &remote, &["foot", "cat"]);
    let mut ferry = ferry.env("WAYLAND_DISPLAY", sway.display()).start();
    sway.window("foot", |window| window.app_id == "foot");
    let page = page(sway.home(), WITHOUT);
    let order = |words: &[&str]| through_ssh(&sshd, &sway, &remote, words);
    // It is not named, and another comes while it is shared.
    let mut share: Program = order(&["share", "--page-files", &page, "ferry-host"]).start();
    let link = share.first_line();
    let other = sshd.wayferry(sway.home(), &remote, &["foot", "-a", "other", "cat"]);
    let mut other = other.env("WAYLAND_DISPLAY", sway.display()).start();
    sway.window("other", |window| window.app_id == "other");
    let home = Home::new();
    let mut chromium = Chromium::open(&home, &link);
    state(&mut chromium, "shown");
    until("a picture", || chromium.canvas());
    let list = String::from_utf8(order(&["list", "ferry-host"]).run()).expect("text");
    assert!(list.contains("view 1 from ") && list.contains(" by link 1 "), "{list}");
    let detach = order(&["detach", "--viewer", "1", "ferry-host:foot"]);
    detach.run();
    state(&mut chromium, "done");
    ferry.must_run();
    other.must_run();
    share.terminate();
    share.ended();
    let told = share.stderr();
    assert!(told.contains("link 1 lets no more guests in"), "{told}");
}

#[test]
#[ignore = "needs Firefox ESR"]
fn what_is_typed_in_firefox_without_webtransport_reaches_the_program_by_a_websocket() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").args(["sh", "-c", LISTENER]).start();
    sway.window("foot", |_| true);
    let page = page(session.home(), WITHOUT);
    let mut share = manage(&session, &["share", "--control", "--page-files", &page]).start();
    let link = share.first_line();
    let mut firefox = Firefox::open(session.home(), &link);
    let front = until_or_told(&mut firefox);
    assert_eq!(front, json!("field"));
    firefox.press("hi é\u{e006}");
    let heard = session.home().read_when("heard", |heard| heard.ends_with(b"\n"));
    assert_eq!(String::from_utf8_lossy(&heard), "hi é\n");
    foot.must_run();
    share.must_run();
    session.host.must_run();
}

/// What has the focus once there is a picture; or what the page says.
fn until_or_told(firefox: &mut Firefox) -> Value {
    let front = poll(PATIENCE, || {
        let front = firefox.evaluate("document.activeElement.id");
        (front == json!("field") && firefox.canvas().is_some()).then_some(front)
    });
    front.unwrap_or_else(|| firefox.evaluate("document.body.innerText"))
}

/// Waits until the page says what it is on.
pub(crate) fn badge(chromium: &mut Chromium, carrier: &str) {
    until("what the page is on", || {
        let badge: Value = chromium.evaluate("document.getElementById('badge').textContent");
        badge.as_str()?.contains(carrier).then_some(())
    });
}

fn text(session: &Session, words: &[&str]) -> String {
    String::from_utf8(manage(session, words).run()).expect("text")
}

/// A folder with the page, whose worker begins with this.
pub(crate) fn page(home: &Home, first: &str) -> String {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../page");
    assert!(built.join("viewer.wasm").exists(), "there is no page: run `make page`");
    let folder = home.file("page");
    std::fs::create_dir_all(&folder).expect("a directory");
    for entry in std::fs::read_dir(&built).expect("the page").flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if path.is_file() {
            let mut bytes = std::fs::read(path).expect("a file");
            if name == "worker.js" {
                bytes.splice(..0, first.bytes());
            }
            home.write(&format!("page/{}", name.display()), bytes);
        }
    }
    folder.display().to_string()
}

/// The browser has none.
const WITHOUT: &str = "delete globalThis.WebTransport;";

/// It never answers, as where what it sends is lost; no packet is.
const SILENT: &str = "globalThis.WebTransport = class { ready = new Promise(() => {}); \
    closed = new Promise(() => {}); close() {} };";

/// Keeps a line.
const LISTENER: &str = "head -n 1 > heard; exec cat";
