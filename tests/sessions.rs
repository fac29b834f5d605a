//! Sessions outlive their displays: killed, dismissed, replaced by others on other compositors.

use std::fs;

use wayferry_stage::LinkConfig;

use crate::programs::{FOOT, direct, pose};
use crate::rig::{Compositor, Home, Launch, Network, Program, Session, Sshd, Sway, Weston, until};

#[test]
fn a_killed_viewer_is_followed_by_another_and_nothing_is_lost() {
    let sway = Sway::start();
    let mut pointer = sway.pointer();
    let (desk, expected) = direct(&FOOT, &sway, &mut pointer);
    let mut session = Session::start(&sway);
    let mut foot = session.join((FOOT.prepare)(session.home())).start();
    pose(&FOOT, &sway, &desk, &mut pointer);
    sway.shows("foot before", &expected);
    session.attach.kill();
    sway.empty();
    session.attach = attach_here(&session, &sway).start();
    sway.shows("foot after", &expected);
    foot.must_run();
    session.must_run();
}

#[test]
fn what_was_typed_before_and_after_arrives() {
    let (first, second) = (Sway::start(), Sway::with_output(900, 700));
    let mut session = Session::start(&first);
    let shell = ["-a", "foot", "sh", "-c", "head -n 2 > heard; exec cat"];
    let mut foot = session.launch("foot").args(shell).start();
    first.window("foot", |window| window.app_id == "foot" && window.focused);
    first.type_text("here");
    first.keys(&["-k", "Return"]);
    first.settled();
    let mut other = attach_here(&session, &second).start();
    second.window("foot elsewhere", |window| window.app_id == "foot" && window.focused);
    // Who was there before is told so and leaves.
    assert_eq!(session.attach.ended().code(), Some(0), "{}", session.attach.stderr());
    assert_eq!(session.attach.count("replaced"), 1, "{}", session.attach.stderr());
    first.empty();
    second.type_text("there");
    second.keys(&["-k", "Return"]);
    session.home().read_when("heard", |text| text == b"here\nthere\n");
    foot.must_run();
    other.must_run();
    session.host.must_run();
}

#[test]
fn a_lost_connection_is_found_again_and_every_key_arrives_once() {
    let sway = Sway::start();
    let mut session = Session::start_over(&sway, LinkConfig::default(), &["--silence", "1"]);
    let shell = ["-a", "foot", "sh", "-c", "head -n 4 > heard; exec cat"];
    let mut foot = session.launch("foot").args(shell).start();
    let before = sway.window("foot", |window| window.app_id == "foot" && window.focused);
    type_line(&sway, "before");
    for word in ["after", "and again"] {
        let link = session.link.as_ref().expect("a link");
        link.set_down(true);
        let lost = session.attach.count("connection-lost");
        until("both sides to notice", || {
            let away = session.host.count("display-away") > lost;
            (away && session.attach.count("connection-lost") > lost).then_some(())
        });
        link.set_down(false);
        until("the way back", || (session.attach.count("back") > lost).then_some(()));
        type_line(&sway, word);
    }
    type_line(&sway, "end");
    session.home().read_when("heard", |text| text == b"before\nafter\nand again\nend\n");
    let after = sway.window("foot", |window| window.app_id == "foot");
    assert_eq!((before.id, sway.windows().len()), (after.id, 1), "it is the same window");
    foot.must_run();
    session.must_run();
}

/// Its beginning is older than clicks may be when the link is back, its end is not.
#[test]
fn text_typed_over_a_cut_never_loses_its_middle() {
    let sway = Sway::start();
    let mut session = Session::start_over(&sway, LinkConfig::default(), &[]);
    let shell = ["-a", "foot", "sh", "-c", "head -n 1 > heard; exec cat"];
    let mut foot = session.launch("foot").args(shell).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    sway.type_text("rm -r ");
    let link = session.link.as_ref().expect("a link");
    link.set_down(true);
    let mut typed = "rm -r ".to_owned();
    until("three seconds of silence", || {
        sway.type_text(".");
        typed.push('.');
        (session.attach.count("silent") > 0).then_some(())
    });
    link.set_down(false);
    type_line(&sway, "/data");
    let heard = session.home().read_when("heard", |text| text.ends_with(b"\n"));
    assert_eq!(String::from_utf8_lossy(&heard), format!("{typed}/data\n"));
    foot.must_run();
    session.must_run();
}

/// What a program would take a picture of does not change: it is drawn at the display alone.
#[test]
fn windows_are_dimmed_while_nothing_is_heard_and_are_as_before_when_it_is() {
    let sway = Sway::start();
    let mut session = Session::start_over(&sway, LinkConfig::default(), &[]);
    let red = ["-o", "colors.background=ff0000", "-o", "cursor.color=ff0000 ff0000", "cat"];
    let mut foot = session.launch("foot").args(red).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    sway.settled();
    let before = sway.screenshot();
    assert_eq!(before.pixel(640, 360), [255, 0, 0]);
    let link = session.link.as_ref().expect("a link");
    link.set_down(true);
    until("a dim window", || (sway.screenshot().pixel(640, 360) == [127, 0, 0]).then_some(()));
    assert_eq!(sway.screenshot().pixel(3, 360), [127, 0, 0], "{}", sway.screenshot().keep("dim"));
    assert!(sway.windows()[0].title.ends_with(" (no contact)"));
    link.set_down(false);
    until("the window as it was", || (sway.screenshot() == before).then_some(()));
    foot.must_run();
    session.must_run();
}

#[test]
fn regression_windows_are_dimmed_where_the_connection_was_given_up_early() {
    let sway = Sway::start();
    let mut session = Session::start_over(&sway, LinkConfig::default(), &["--silence", "1"]);
    let mut foot = session.launch("foot").args(["-T", "mine", "cat"]).start();
    sway.window("foot", |window| window.title == "mine");
    let link = session.link.as_ref().expect("a link");
    link.set_down(true);
    sway.window("a window that says so", |window| window.title == "mine (no contact)");
    assert_eq!(session.attach.count("silent"), 0, "{}", session.attach.stderr());
    link.set_down(false);
    sway.window("foot", |window| window.title == "mine");
    foot.must_run();
    session.must_run();
}

#[test]
fn a_display_that_comes_back_after_another_took_over_is_told_so() {
    let (first, second) = (Sway::start(), Sway::start());
    let mut session = Session::start_over(&first, LinkConfig::default(), &["--silence", "1"]);
    let mut foot = session.launch("foot").arg("cat").start();
    first.window("foot", |_| true);
    let link = session.link.as_ref().expect("a link");
    link.set_down(true);
    session.attach.happens("connection-lost");
    let mut other = attach_here(&session, &second).start();
    second.window("foot elsewhere", |_| true);
    link.set_down(false);
    assert_eq!(session.attach.ended().code(), Some(0), "{}", session.attach.stderr());
    let replaced = session.attach.count("replaced") + session.attach.count("dismissed");
    assert_eq!(replaced, 1, "{}", session.attach.stderr());
    foot.must_run();
    other.must_run();
    session.host.must_run();
}

#[test]
fn regression_a_display_that_was_detached_comes_back_by_itself() {
    let sway = Sway::start();
    let mut session = Session::start_over(&sway, LinkConfig::default(), &["--silence", "1"]);
    let mut foot = session.launch("foot").arg("cat").start();
    sway.window("foot", |_| true);
    let link = session.link.as_ref().expect("a link");
    link.set_down(true);
    session.host.happens("display-away");
    session.attach.happens("connection-lost");
    manage(&session, &["detach"]).run();
    link.set_down(false);
    assert_eq!(session.attach.ended().code(), Some(0), "{}", session.attach.stderr());
    assert_eq!(session.attach.count("dismissed"), 1, "{}", session.attach.stderr());
    assert!(listed(&session).contains("detached"), "{}", listed(&session));
    foot.must_run();
    session.host.must_run();
}

#[test]
fn regression_a_program_that_starts_while_the_display_is_away_is_shown() {
    let sway = Sway::start();
    let mut session = Session::start_over(&sway, LinkConfig::default(), &["--silence", "1"]);
    let link = session.link.as_ref().expect("a link");
    link.set_down(true);
    session.host.happens("display-away");
    let mut foot = session.launch("foot").args(["-a", "meanwhile", "cat"]).start();
    session.attach.happens("connection-lost");
    link.set_down(false);
    sway.window("what started meanwhile", |window| window.app_id == "meanwhile");
    foot.must_run();
    session.must_run();
}

/// The first ten are for what is made once.
#[test]
fn a_hundred_displays_leave_nothing_behind() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").arg("cat").start();
    sway.window("foot", |_| true);
    let pid = session.host.pid().as_raw_nonzero();
    let cost = || {
        let count = |what: &str| fs::read_dir(format!("/proc/{pid}/{what}")).expect("of our own").count();
        (count("fd"), count("task"))
    };
    let (mut early, mut before) = ((0, 0), 0);
    for round in 0..100 {
        session.attach.kill();
        sway.empty();
        session.attach = attach_here(&session, &sway).start();
        sway.window("foot", |_| true);
        if round == 10 {
            (early, before) = (cost(), memory(&session.host));
        }
    }
    until("descriptors and threads as they were", || (cost() <= early).then_some(()));
    let after = memory(&session.host);
    assert!(after < before + 8_192, "memory grew from {before} kB to {after} kB");
    foot.must_run();
    session.must_run();
}

#[test]
fn a_compositor_dies_and_another_kind_takes_over() {
    let mut sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut program = session.launch("weston-simple-damage").start();
    sway.window("the program", |_| true);
    sway.kill();
    assert_eq!(session.attach.ended().code(), Some(71), "{}", session.attach.stderr());
    program.must_run();
    let weston = Weston::start();
    let desk = weston.settled();
    let mut other = attach_here(&session, &weston).start();
    until("the program on weston", || (weston.screenshot() != desk).then_some(()));
    let before = weston.screenshot();
    until("it to move there", || (weston.screenshot() != before).then_some(()));
    program.must_run();
    other.must_run();
    session.host.must_run();
}

#[test]
fn sessions_are_listed_dismissed_shown_and_ended() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").arg("cat").start();
    sway.window("foot", |_| true);
    assert!(listed(&session).contains("attached"), "{}", listed(&session));
    manage(&session, &["detach"]).run();
    assert_eq!(session.attach.ended().code(), Some(0), "{}", session.attach.stderr());
    sway.empty();
    assert!(listed(&session).contains("detached"), "{}", listed(&session));
    session.attach = attach_here(&session, &sway).start();
    sway.window("foot again", |_| true);
    foot.must_run();
    manage(&session, &["stop", ":sh"]).run();
    assert_eq!(session.host.ended().code(), Some(0), "{}", session.host.stderr());
    assert_eq!(session.attach.ended().code(), Some(0), "{}", session.attach.stderr());
    sway.empty();
    assert!(listed(&session).contains("no sessions"), "{}", listed(&session));
}

#[test]
fn a_session_survives_its_ssh_and_is_shown_again_through_another() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let binary = sshd.home().wayferry().words()[0].clone();
    let remote = ["--remote-bin", binary.as_str()];
    let ferry = |words: &[&str]| {
        let launch = sshd.wayferry(sway.home(), &remote, words);
        launch.env("WAYLAND_DISPLAY", sway.display())
    };
    let mut first = ferry(&["foot", "sh", "-c", "'read word; [ \"$word\" = again ] && exit 5'"]).start();
    sway.window("foot", |window| window.app_id == "foot");
    first.kill();
    sway.empty();
    // No message told the session: its display is simply gone.
    let mut second = remote_attach(&sshd, &sway, &remote).start();
    sway.window("foot again", |window| window.app_id == "foot" && window.focused);
    sway.settled();
    sway.type_text("again");
    sway.keys(&["-k", "Return"]);
    assert_eq!(second.ended().code(), Some(5), "{}", second.stderr());
    until("the session to end", || sshd.home().living().len().le(&1).then_some(()));
}

#[test]
fn a_lost_ssh_is_replaced_by_another_where_udp_is_blocked() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::NoUdp, ""));
    let binary = sshd.home().wayferry().words()[0].clone();
    let words = ["foot", "sh", "-c", "'read one; read two; [ $one$two = beforeafter ] && exit 5'"];
    let launch = sshd.wayferry(sway.home(), &["--remote-bin", &binary], &words);
    let mut ferry = launch.env("WAYLAND_DISPLAY", sway.display()).start();
    let before = sway.window("foot", |window| window.app_id == "foot" && window.focused);
    sway.settled();
    type_line(&sway, "before");
    sway.settled();
    for pid in children(ferry.pid()) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    ferry.happens("back");
    let after = sway.window("foot", |window| window.app_id == "foot");
    assert_eq!(before.id, after.id, "it is the same window");
    type_line(&sway, "after");
    assert_eq!(ferry.ended().code(), Some(5), "{}", ferry.stderr());
}

/// Processes that this one has started, or that a helper of the test has put between.
pub(crate) fn children(parent: rustix::process::Pid) -> Vec<rustix::process::Pid> {
    let is_child = |pid: &rustix::process::Pid| {
        let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
        let line = format!("PPid:\t{}", parent.as_raw_nonzero());
        status.lines().any(|other| other == line) && status.starts_with("Name:\tssh\n")
    };
    crate::rig::processes().into_iter().filter(is_child).collect()
}

#[test]
fn any_command_that_carries_stdio_brings_a_program() {
    let sway = Sway::start();
    let home = Home::new();
    // As `docker exec -i NAME`: a command that runs the words behind it elsewhere.
    let place = home.write("place", "#!/bin/sh\ncd \"$(dirname \"$0\")\" && exec \"$@\"\n");
    let launch = sway.home().wayferry().env("WAYLAND_DISPLAY", sway.display());
    let remote = home.wayferry().words()[0].clone();
    let words = [
        "through",
        "sh",
        place.to_str().expect("a path"),
        "--",
        "foot",
        "sh",
        "-c",
        "head -n 1 > heard; exit 6",
    ];
    let mut ferry = launch.args(["--remote-bin", &remote]).args(words).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    sway.settled();
    sway.type_text("through");
    sway.keys(&["-k", "Return"]);
    assert_eq!(ferry.ended().code(), Some(6), "{}", ferry.stderr());
    home.read_when("heard", |text| text == b"through\n");
    sway.empty();
}

fn type_line(sway: &Sway, text: &str) {
    sway.type_text(text);
    sway.keys(&["-k", "Return"]);
}

/// Each line of the page, with a stand-in for the command that runs what is behind its own words here.
#[test]
fn docs_cluster_lines_run() {
    let sway = Sway::start();
    let page = include_str!("../docs/cluster/sessions.md");
    let lines: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("    wayferry ")).collect();
    let lines = lines.into_iter().filter(|line| line.starts_with("through "));
    let mut count = 0;
    for line in lines {
        let home = Home::new();
        let bin = home.file("bin");
        fs::create_dir_all(&bin).expect("a directory");
        for (name, own) in [("kubectl", 4), ("docker", 3), ("srun", 0), ("machinectl", 3), ("ssh", 1)] {
            // Options with `--` before them are the command's own, and so is a first `--`.
            let script = format!(
                "#!/bin/sh\nshift {own}\nwhile case $1 in --?*) true;; *) false;; esac; do shift; done\n\
                 [ \"$1\" = -- ] && shift\nexec \"$@\"\n"
            );
            let path = home.write(&format!("bin/{name}"), script);
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
        }
        let remote = home.wayferry().words()[0].clone();
        let launch = home.wayferry().env("WAYLAND_DISPLAY", socket(&sway));
        let launch = launch.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
        let mut ferry = launch.args(["--remote-bin", &remote]).args(line.split(' ')).start();
        sway.window(line, |window| window.app_id == "foot" && window.focused);
        sway.settled();
        type_line(&sway, "exit 9");
        assert_eq!(ferry.ended().code(), Some(9), "{line}: {}", ferry.stderr());
        sway.empty();
        count += 1;
    }
    assert_eq!(count, 5, "lines of the page");
}

fn socket(compositor: &impl Compositor) -> String {
    let socket = compositor.home().runtime().join(compositor.display());
    socket.to_str().expect("a path").to_owned()
}

/// Kilobytes of memory that a process holds.
pub(crate) fn memory(program: &Program) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", program.pid().as_raw_nonzero()));
    let status = status.expect("of our own");
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("memory");
    rss.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// A display for a session of this machine, on a compositor.
pub(crate) fn attach_here(session: &Session, compositor: &impl Compositor) -> Launch {
    manage(session, &["attach"]).env("WAYLAND_DISPLAY", socket(compositor))
}

pub(crate) fn remote_attach(sshd: &Sshd, sway: &Sway, remote: &[&str]) -> Launch {
    through_ssh(sshd, sway, remote, &["attach", "ferry-host:foot"])
}

/// A command about the other machine, which is called `ferry-host`.
pub(crate) fn through_ssh(sshd: &Sshd, sway: &Sway, remote: &[&str], words: &[&str]) -> Launch {
    let config = sshd.arguments();
    // Plain `ssh HOST` does not know this server: the user's configuration would.
    let script = format!("#!/bin/sh\nexec ssh -F {} \"$@\"\n", config[1]);
    let ssh = sway.home().write("ssh", script);
    fs::set_permissions(&ssh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its permissions");
    let launch = sway.home().wayferry().privileged().env("WAYLAND_DISPLAY", sway.display());
    let launch = launch.args(remote.iter().copied()).args(["--ssh-bin", ssh.to_str().expect("a path")]);
    sshd.near(launch.args(words.iter().copied()))
}

/// A command about sessions, where those of this session are.
pub(crate) fn manage(session: &Session, words: &[&str]) -> Launch {
    session.home().wayferry().args(words.iter().copied())
}

fn listed(session: &Session) -> String {
    String::from_utf8(manage(session, &["list"]).run()).expect("text")
}
