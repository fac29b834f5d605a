//! Viewers beside the active display: they show the same and can do nothing.

use serde_json::Value;
use wayferry_net::Ticket;
use wayferry_stage::{Link, LinkConfig};

use crate::programs::{FOOT, keeps_changing, mpv};
use crate::rig::{Compositor, Launch, PATIENCE, Picture, Program, Session, Sshd, Sway, Weston, poll, until};
use crate::sessions::{attach_here, manage, memory, remote_attach};
use crate::suspended::{go_on, stop};

#[test]
fn a_view_shows_the_same_and_can_do_nothing() {
    let (active, looking) = (Sway::start(), Sway::with_output(1600, 900));
    let mut session = Session::start(&active);
    let shell = ["-a", "foot", "sh", "-c", "head -n 2 > heard; exec cat"];
    let mut foot = session.launch("foot").args(shell).start();
    active.window("foot", |window| window.app_id == "foot" && window.focused);
    type_line(&active, "first");
    let mut view = view_here(&session, &looking).start();
    let window = looking.window("foot at the view", |window| window.app_id == "foot" && window.focused);
    assert_eq!((window.width, window.height), (1280, 720), "it has the size that it has there");
    assert!(window.title.starts_with("view: "), "{}", window.title);
    same(&active, &looking);
    type_line(&looking, "intruder");
    let mut pointer = looking.pointer();
    pointer.click(800, 450);
    looking.message(&[&format!("[con_id={}] kill", window.id)]);
    looking.resize(window.id, (400, 300));
    looking.settled();
    type_line(&active, "second");
    session.home().read_when("heard", |text| text == b"first\nsecond\n");
    active.window("foot where it was", |window| (window.width, window.height) == (1280, 720));
    view.must_run();
    view.kill();
    looking.empty();
    until("the view to be gone", || (figure(&session, "views") == 0).then_some(()));
    assert_eq!(figure(&session, "view_pixel_bytes"), 0);
    type_line(&active, "third");
    foot.must_run();
    session.must_run();
}

#[test]
fn a_view_stays_when_the_active_display_goes_and_others_come() {
    let (first, second) = (Sway::start(), Sway::with_output(1000, 800));
    let looking = Sway::with_output(1600, 900);
    let mut session = Session::start(&first);
    let mut foot = session.launch("foot").args(["-a", "foot", "sh", "-c", SPEAKS]).start();
    first.window("foot", |_| true);
    let mut view = view_here(&session, &looking).start();
    looking.window("foot at the view", |_| true);
    same(&first, &looking);
    manage(&session, &["detach"]).run();
    assert_eq!(session.attach.ended().code(), Some(0), "{}", session.attach.stderr());
    let before = looking.settled();
    session.home().write("say", "no display is here");
    until("news at the view", || (looking.screenshot() != before).then_some(()));
    session.attach = attach_here(&session, &second).start();
    second.window("foot elsewhere", |window| window.app_id == "foot");
    session.home().write("say", "somebody is here");
    same(&second, &looking);
    view.must_run();
    foot.must_run();
    session.must_run();
}

#[test]
fn a_view_comes_to_a_session_without_a_display() {
    let (first, looking) = (Sway::start(), Sway::with_output(1600, 900));
    let mut session = Session::start(&first);
    let mut foot = session.launch("foot").args(["-a", "foot", "sh", "-c", SPEAKS]).start();
    first.window("foot", |_| true);
    let expected = first.settled();
    manage(&session, &["detach"]).run();
    let mut view = view_here(&session, &looking).start();
    looking.window("foot at the view", |_| true);
    shows(&looking, &expected);
    assert!(listed(&session).contains("detached"), "a view is no display: {}", listed(&session));
    view.must_run();
    foot.must_run();
    session.host.must_run();
}

/// Weston has no seat, and is strict about what windows commit.
#[test]
fn a_view_on_weston_shows_what_moves() {
    let (active, weston) = (Sway::start(), Weston::start());
    let mut session = Session::start(&active);
    let mut program = session.launch("weston-simple-damage").start();
    active.window("the program", |_| true);
    let desk = weston.settled();
    let mut view = view_here(&session, &weston).start();
    until("the program on weston", || (weston.screenshot() != desk).then_some(()));
    keeps_changing(&weston);
    program.must_run();
    view.must_run();
    session.must_run();
}

#[test]
fn a_stalled_view_delays_no_other_and_catches_up() {
    let (active, looking) = (Sway::start(), Sway::with_output(1600, 900));
    let mut session = Session::start(&active);
    let mut video = session.join(mpv(session.home()).arg("--loop")).start();
    active.window("mpv", |window| window.app_id == "mpv");
    let mut view = view_here(&session, &looking).start();
    looking.window("mpv at the view", |window| window.app_id == "mpv");
    keeps_changing(&looking);
    stop(view.pid());
    keeps_changing(&active);
    let before = memory(&session.host);
    for _ in 0..10 {
        keeps_changing(&active);
    }
    let after = memory(&session.host);
    assert!(after < before + 32_768, "memory grew from {before} kB to {after} kB");
    video.kill();
    active.empty();
    let mut foot = session.join((FOOT.prepare)(session.home())).start();
    active.window("foot", |_| true);
    let expected = active.settled();
    go_on(view.pid());
    looking.window("foot at the view", |window| window.app_id == "foot");
    shows(&looking, &expected);
    foot.must_run();
    view.must_run();
    session.must_run();
}

#[test]
fn what_is_encoded_once_is_shown_by_three_displays() {
    let active = Sway::start();
    let looking = [Sway::with_output(1600, 900), Sway::with_output(1500, 1000)];
    let session = Session::start(&active);
    let mut foot = session.launch("foot").args(["-a", "foot", "sh", "-c", SPEAKS]).start();
    active.window("foot", |_| true);
    let mut views: Vec<Program> = looking.iter().map(|sway| view_here(&session, sway).start()).collect();
    for sway in &looking {
        same(&active, sway);
    }
    let alone = figure(&session, "view_updates_own");
    let shared = figure(&session, "view_updates_shared");
    for word in ["one", "two", "three", "four"] {
        let before = active.screenshot();
        session.home().write("say", word);
        until("the word", || (active.screenshot() != before).then_some(()));
        looking.iter().for_each(|sway| same(&active, sway));
    }
    assert_eq!(figure(&session, "view_updates_own"), alone, "nothing is encoded for views alone");
    let handed_on = figure(&session, "view_updates_shared") - shared;
    assert!(handed_on >= 8, "{handed_on} updates for two views");
    views.iter_mut().for_each(Program::must_run);
    foot.must_run();
}

#[test]
fn a_ticket_for_viewing_is_good_for_nothing_else() {
    let (active, looking) = (Sway::start(), Sway::with_output(1600, 900));
    let mut session = Session::start(&active);
    let mut foot = session.launch("foot").args(["-a", "foot", "cat"]).start();
    active.window("foot", |_| true);
    let ticket = String::from_utf8(manage(&session, &["ticket", "--view"]).run()).expect("text");
    let attach = looking.home().wayferry().env("WAYLAND_DISPLAY", looking.display());
    // It does not say that it wants no more.
    let mut view = attach.args(["attach", ticket.trim()]).start();
    looking.window("foot at the view", |window| window.title.starts_with("127.0.0.1: "));
    assert_eq!(figure(&session, "views"), 1);
    // Nor has who asks for less than a ticket is good for anything more.
    let ticket = String::from_utf8(manage(&session, &["ticket"]).run()).expect("text");
    let attach = looking.home().wayferry().env("WAYLAND_DISPLAY", looking.display());
    let mut other = attach.args(["attach", "--view", ticket.trim()]).start();
    until("another view", || (figure(&session, "views") == 2).then_some(()));
    foot.must_run();
    view.must_run();
    other.must_run();
    session.must_run();
}

#[test]
fn a_view_that_lost_its_connection_comes_back_as_one() {
    let (active, looking) = (Sway::start(), Sway::with_output(1600, 900));
    let mut session = Session::start_with(&active, &["--silence", "1"]);
    let mut foot = session.launch("foot").args(["-a", "foot", "sh", "-c", SPEAKS]).start();
    active.window("foot", |_| true);
    let ticket = String::from_utf8(manage(&session, &["ticket", "--view"]).run()).expect("text");
    let ticket: Ticket = ticket.trim().parse().expect("a ticket");
    let link = Link::start(LinkConfig::default(), ticket.addresses[0]).expect("an emulated link");
    let attach = looking.home().wayferry().env("WAYLAND_DISPLAY", looking.display());
    let (ticket, via) = (ticket.to_string(), link.local_addr().to_string());
    let words = ["--silence", "1", "attach", "--view", &ticket, "--via", &via];
    let mut view = attach.args(words).start();
    same(&active, &looking);
    link.set_down(true);
    until("the session to notice", || (figure(&session, "views") == 0).then_some(()));
    view.happens("connection-lost");
    session.home().write("say", "meanwhile");
    link.set_down(false);
    until("the way back", || (figure(&session, "views") == 1).then_some(()));
    same(&active, &looking);
    foot.must_run();
    view.must_run();
    session.must_run();
}

#[test]
fn viewers_are_listed_and_can_be_sent_away() {
    let (active, looking) = (Sway::start(), Sway::with_output(1600, 900));
    let mut session = Session::start(&active);
    let mut foot = session.launch("foot").args(["-a", "foot", "cat"]).start();
    active.window("foot", |_| true);
    let mut here = view_here(&session, &looking).start();
    let mut there = with_ticket(&looking, &printed(&session, &["ticket", "--view"])).start();
    until("both views", || (figure(&session, "views") == 2).then_some(()));
    let list = listed(&session);
    assert!(list.contains("view 2 from 127.0.0.1:") && list.contains("view 1 from here"), "{list}");
    manage(&session, &["detach", "--views"]).run();
    for view in [&mut here, &mut there] {
        assert_eq!(view.ended().code(), Some(0), "{}", view.stderr());
    }
    let list = listed(&session);
    assert!(!list.contains("view") && list.contains("attached"), "{list}");
    let none = manage(&session, &["detach", "--views"]).start().ended();
    assert_eq!(none.code(), Some(82));
    foot.must_run();
    session.must_run();
}

#[test]
fn a_ticket_that_was_taken_back_lets_no_display_in() {
    let (active, looking) = (Sway::start(), Sway::with_output(1600, 900));
    let mut session = Session::start(&active);
    let mut foot = session.launch("foot").args(["-a", "foot", "cat"]).start();
    active.window("foot", |_| true);
    let revoked = [printed(&session, &["ticket", "--view"]), printed(&session, &["ticket", "--for", "2h"])];
    manage(&session, &["ticket", "--revoke"]).run();
    for ticket in revoked {
        let mut view = with_ticket(&looking, &ticket).start();
        assert_eq!(view.ended().code(), Some(28), "{}", view.stderr());
    }
    let mut view = with_ticket(&looking, &printed(&session, &["ticket", "--view", "--for", "1h"])).start();
    until("the view", || (figure(&session, "views") == 1).then_some(()));
    view.must_run();
    foot.must_run();
    session.must_run();
}

#[test]
fn the_ninth_view_is_told_why_not() {
    let (active, looking) = (Sway::start(), Sway::with_output(1600, 900));
    let session = Session::start(&active);
    let mut foot = session.launch("foot").args(["-a", "foot", "cat"]).start();
    active.window("foot", |_| true);
    let mut views: Vec<Program> = Vec::new();
    for count in 1..=8 {
        views.push(view_here(&session, &looking).start());
        until("another view", || (figure(&session, "views") == count).then_some(()));
    }
    let mut ninth = view_here(&session, &looking).start();
    assert_eq!(ninth.ended().code(), Some(82), "{}", ninth.stderr());
    let error = ninth.error().expect("it is told");
    assert!(error["text"].as_str().is_some_and(|text| text.contains('8')), "{error}");
    views.pop().expect("eight").kill();
    until("a place", || (figure(&session, "views") == 7).then_some(()));
    views.push(view_here(&session, &looking).start());
    until("another view", || (figure(&session, "views") == 8).then_some(()));
    assert!(listed(&session).contains("attached, 8 views"), "{}", listed(&session));
    manage(&session, &["stop"]).run();
    for view in &mut views {
        assert_eq!(view.ended().code(), Some(0), "{}", view.stderr());
    }
    let _ = foot.ended();
}

#[test]
fn a_view_comes_through_ssh_beside_the_display_that_began_the_session() {
    let (active, looking, sshd) = (Sway::start(), Sway::with_output(1600, 900), Sshd::start());
    let binary = sshd.home().wayferry().words()[0].clone();
    let remote = ["--remote-bin", binary.as_str()];
    let launch = sshd.wayferry(active.home(), &remote, &["foot", "sh", "-c", "'tput civis; exec cat'"]);
    let mut first = launch.env("WAYLAND_DISPLAY", active.display()).start();
    active.window("foot", |window| window.app_id == "foot");
    let mut view = remote_attach(&sshd, &looking, &remote).arg("--view").start();
    same(&active, &looking);
    first.must_run();
    view.must_run();
}

/// A ticket as a command prints it.
fn printed(session: &Session, words: &[&str]) -> String {
    String::from_utf8(manage(session, words).run()).expect("text").trim().to_owned()
}

/// A display that comes with a ticket.
fn with_ticket(compositor: &impl Compositor, ticket: &str) -> Launch {
    let attach = compositor.home().wayferry().env("WAYLAND_DISPLAY", compositor.display());
    attach.args(["attach", ticket])
}

/// A viewer at a session of this machine, on a compositor.
pub(crate) fn view_here(session: &Session, compositor: &impl Compositor) -> Launch {
    attach_here(session, compositor).arg("--view")
}

fn type_line(sway: &Sway, text: &str) {
    sway.type_text(text);
    sway.keys(&["-k", "Return"]);
}

/// The view shows in its only window, which floats, what the active display shows.
pub(crate) fn same(active: &Sway, looking: &Sway) {
    show_the_same(|| active.screenshot(), looking, active.size());
}

pub(crate) fn shows(looking: &Sway, expected: &Picture) {
    show_the_same(|| expected.clone(), looking, expected.size());
}

fn show_the_same(expected: impl Fn() -> Picture, looking: &Sway, size: (u32, u32)) {
    let mut last = None;
    let found = poll(PATIENCE, || {
        let (here, there) = (expected(), inside(looking, size));
        let same = here == there;
        last = Some((here, there));
        same.then_some(())
    });
    let Some((here, there)) = last.filter(|_| found.is_none()) else { return };
    let place = here.keep("view-expected");
    there.keep("view-shown");
    panic!("the view differs: {}; pictures in {place}", here.difference(&there));
}

/// What a window of that size shows; everything while there is none.
fn inside(sway: &Sway, (width, height): (u32, u32)) -> Picture {
    let size = (i64::from(width), i64::from(height));
    let window = sway.windows().into_iter().find(|window| (window.width, window.height) == size);
    let place = window.and_then(|window| {
        let place = (u32::try_from(window.place.0).ok()?, u32::try_from(window.place.1).ok()?);
        (place.0 + width <= sway.size().0 && place.1 + height <= sway.size().1).then_some(place)
    });
    let whole = sway.screenshot();
    place.map_or(whole.clone(), |place| whole.part(place, (width, height)))
}

fn figure(session: &Session, field: &str) -> i64 {
    let text = manage(session, &["list", "--json"]).run();
    let sides: Value = serde_json::from_slice(&text).expect("a document");
    sides[0][field].as_i64().unwrap_or_else(|| panic!("{field}: {sides}"))
}

fn listed(session: &Session) -> String {
    String::from_utf8(manage(session, &["list"]).run()).expect("text")
}

/// A shell that shows what is written to a file, as soon as it is.
const SPEAKS: &str =
    "tput civis; echo it begins; while :; do [ -e say ] && cat say && rm -f say; sleep 0.1; done";
