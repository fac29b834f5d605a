//! What a new user meets first: how sessions begin, are left, found again, and end.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use rustix::process::{Signal, geteuid, kill_process};
use serde_json::json;
use wayferry_stage::LinkConfig;

use crate::rig::{Compositor, Home, Launch, Program, Session, Sshd, Sway, attach_to, until};
use crate::sessions::manage;

#[test]
fn a_launcher_that_forks_and_exits_leaves_its_window() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let line = "'setsid foot -a left sh -c \"read line\" & exit 3'";
    let mut ferry = ferry(&sway, &sshd, &[], &["sh", "-c", line]).start();
    sway.window("what it has started", |window| window.app_id == "left" && window.focused);
    sway.settled();
    ferry.must_run();
    sway.keys(&["-k", "Return"]);
    assert_eq!(ferry.ended().code(), Some(3), "{}", ferry.stderr());
    sway.empty();
    until("the session to end", || sshd.home().living().len().le(&1).then_some(()));
}

#[test]
fn a_user_who_leaves_is_told_how_to_come_back() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut first = ferry(&sway, &sshd, &[], &["foot", "cat"]).start();
    sway.window("foot", |window| window.app_id == "foot");
    interrupt(&first);
    assert_eq!(first.ended().code(), Some(130), "{}", first.stderr());
    let told = first.events();
    let goes_on = told.iter().find(|event| event["event"] == "session-goes-on");
    // With the options that ssh was given: `attach` and `stop` take them.
    let place = format!("{}:foot", sshd.arguments().join(" "));
    assert_eq!(goes_on.map(|event| &event["place"]), Some(&json!(place)), "{told:?}");
    sway.empty();
    // The same command again does not mean the same session, and says so.
    let mut second = ferry(&sway, &sshd, &[], &["foot", "sh", "-c", "'read line; exit 4'"]).start();
    sway.window("another foot", |window| window.app_id == "foot" && window.focused);
    let told = second.events();
    let taken = told.iter().find(|event| event["event"] == "name-taken").expect("it is told");
    assert_eq!([&taken["wanted"], &taken["name"], &taken["place"]], ["foot", "foot-2", &*place]);
    sway.settled();
    sway.keys(&["-k", "Return"]);
    assert_eq!(second.ended().code(), Some(4), "{}", second.stderr());
    assert_eq!(second.count("session-goes-on"), 0, "{}", second.stderr());
    there(&sshd, &["stop", ":foot"]).run();
}

#[test]
fn a_session_that_is_left_before_its_program_began_ends() {
    let (sway, home) = (Sway::start(), Home::new());
    // Of what the display says only the first line arrives, so that nothing begins.
    let hold = home.write("hold", "#!/bin/sh\n{ head -n 1; cat > /dev/null; } | \"$@\"\n");
    let remote = home.wayferry().words()[0].clone();
    let through = sway.home().wayferry().env("WAYLAND_DISPLAY", sway.display());
    let hold = ["--remote-bin", &remote, "through", "sh", &hold.display().to_string(), "--", "foot", "cat"];
    let mut ferry = through.args(hold).start();
    let list = || String::from_utf8(sway.home().wayferry().args(["list"]).run()).expect("text");
    until("the session", || list().contains("foot").then_some(()));
    interrupt(&ferry);
    assert_eq!(ferry.ended().code(), Some(130), "{}", ferry.stderr());
    until("the session to end", || list().contains("no sessions").then_some(()));
}

#[test]
fn a_session_that_is_stopped_while_its_display_is_away_is_gone_when_stop_says_so() {
    let sway = Sway::start();
    let mut session = Session::start_over(&sway, LinkConfig::default(), &["--silence", "1"]);
    let _foot = session.launch("foot").arg("cat").start();
    sway.window("foot", |_| true);
    session.link.as_ref().expect("a link").set_down(true);
    session.host.happens("display-away");
    manage(&session, &["stop"]).run();
    let listed = String::from_utf8(manage(&session, &["list"]).run()).expect("text");
    assert_eq!(listed, "no sessions\n");
    assert_eq!(session.host.ended().code(), Some(0), "{}", session.host.stderr());
}

#[test]
fn a_program_that_does_not_exist_is_127_however_it_is_started() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let home = Home::new();
    let place = home.write("place", "#!/bin/sh\nexec \"$@\"\n");
    let remote = home.wayferry().words()[0].clone();
    let through = sway.home().wayferry().env("WAYLAND_DISPLAY", sway.display());
    let through = through.args(["--remote-bin", &remote, "through", "sh", &place.display().to_string()]);
    let commands = [
        through.args(["--", "no-such-program"]),
        ferry(&sway, &sshd, &[], &["no-such-program", "-x"]),
        ferry(&sway, &sshd, &["--detached"], &["no-such-program"]),
        home.wayferry().args(["host", "--listen", "127.0.0.1:0", "--", "no-such-program"]),
    ];
    for command in commands {
        let mut program = command.start();
        assert_eq!(program.ended().code(), Some(127), "{}", program.stderr());
        let (said, told) = (program.stderr(), program.stdout());
        assert!(
            said.contains("error: ")
                && said.contains("cannot run `no-such-program`: there is no such program")
                && said.contains("hint: "),
            "{said}"
        );
        assert_eq!(told, "", "a ticket or a name for a session that is none");
    }
}

#[test]
fn a_wayferry_that_cargo_installed_is_found_by_every_command() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let binary = sshd.home().wayferry().words()[0].clone();
    fs::create_dir_all(sshd.home().file(".cargo/bin")).expect("a directory");
    std::os::unix::fs::symlink(binary, sshd.home().file(".cargo/bin/wayferry")).expect("a link");
    let launch = sshd.wayferry(sway.home(), &[], &["foot", "sh", "-c", "'read line; exit 7'"]);
    let mut ferry = launch.env("WAYLAND_DISPLAY", sway.display()).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    let ssh = ssh_to(&sway, &sshd);
    let listed = sway.home().wayferry().privileged().args(["--ssh-bin", &ssh, "list", "ferry-host"]).run();
    assert!(String::from_utf8_lossy(&listed).contains("foot"), "{}", String::from_utf8_lossy(&listed));
    sway.settled();
    sway.keys(&["-k", "Return"]);
    assert_eq!(ferry.ended().code(), Some(7), "{}", ferry.stderr());
}

#[test]
fn a_user_who_waits_for_ssh_is_told_what_is_waited_for() {
    let sway = Sway::start();
    let ssh = sway.home().write("ssh", "#!/bin/sh\nexec tail -f /dev/null\n");
    fs::set_permissions(&ssh, Permissions::from_mode(0o755)).expect("its permissions");
    let launch = sway.home().wayferry().env("WAYLAND_DISPLAY", sway.display());
    let mut ferry = launch.args(["--ssh-bin", &ssh.display().to_string(), "ssh", "far", "foot"]).start();
    until("word of the wait", || ferry.stderr().contains("note: still waiting for ssh (5 s)").then_some(()));
    ferry.must_run();
    ferry.terminate();
    ferry.ended();
}

#[test]
fn what_runs_on_another_machine_is_told() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let ssh = ssh_to(&sway, &sshd);
    let mut ferry = ferry(&sway, &sshd, &[], &["foot", "cat"]).start();
    sway.window("foot", |window| window.app_id == "foot");
    ferry.happens("quic-reached");
    let binary = sshd.home().wayferry().words()[0].clone();
    let status = |more: &[&str]| {
        let words = ["--ssh-bin", &ssh, "--remote-bin", &binary, "status", "ferry-host"];
        let launch = sway.home().wayferry().privileged().args(words).args(more.iter().copied());
        String::from_utf8(launch.run()).expect("text")
    };
    let told = status(&[]);
    assert!(told.ends_with(" s\n") && told.contains("running on `ferry-host`:\n  SESSION"), "{told}");
    let told: serde_json::Value = serde_json::from_str(&status(&["--json"])).expect("JSON");
    assert_eq!(
        (&told["host"], &told["running"][0]["name"]),
        (&"ferry-host".into(), &"foot".into()),
        "{told}"
    );
    ferry.must_run();
}

#[test]
fn a_wayferry_that_is_missing_there_is_told_with_the_whole_next_command() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let ssh = ssh_to(&sway, &sshd);
    for command in
        ["ssh ferry-host foot", "list ferry-host", "stop ferry-host:foot", "attach ferry-host:foot"]
    {
        let launch = sway.home().wayferry().privileged().env("WAYLAND_DISPLAY", sway.display());
        let mut program = launch.args(["--ssh-bin", &ssh]).args(command.split(' ')).start();
        assert_eq!(program.ended().code(), Some(72), "{command}: {}", program.stderr());
        let hint = format!("`wayferry --remote-bin PATH {command}`");
        let error = program.error().expect("it is told");
        assert!(error["hint"].as_str().is_some_and(|told| told.contains(&hint)), "{command}: {error}");
    }
}

#[test]
fn regression_a_program_that_ends_with_72_is_told_as_a_missing_wayferry() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let ssh = ssh_to(&sway, &sshd);
    ferry(&sway, &sshd, &["--detached"], &["foot", "sh", "-c", "'read line; exit 72'"]).run();
    let binary = sshd.home().wayferry().words()[0].clone();
    let launch = sway.home().wayferry().privileged().env("WAYLAND_DISPLAY", sway.display());
    let words = ["--ssh-bin", &ssh, "--remote-bin", &binary, "attach", "ferry-host:foot"];
    let mut attach = launch.args(words).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    sway.settled();
    sway.keys(&["-k", "Return"]);
    assert_eq!(attach.ended().code(), Some(72), "{}", attach.stderr());
    assert_eq!(attach.error(), None, "{}", attach.stderr());
}

#[test]
fn a_ticket_needs_no_command_line_and_no_log() {
    let sway = Sway::start();
    let home = Home::new();
    let host = |path: &str| {
        let line = "foot sh -c 'read line; exit 6'";
        let words = ["host", "--listen", "127.0.0.1:0", "--ticket-file", path, "--", "sh", "-c", line];
        home.wayferry().args(words).start()
    };
    let path = home.file("ticket");
    for from_stdin in [false, true] {
        let mut host = host(&path.display().to_string());
        let ticket = home.read_when("ticket", |text| text.ends_with(b"\n"));
        assert!(ticket.starts_with(b"wf1:"));
        assert_eq!(fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o600);
        let mut attach = if from_stdin {
            let input = sway.home().write("input", &ticket);
            let launch = sway.home().wayferry().env("WAYLAND_DISPLAY", sway.display());
            launch.args(["attach", "-"]).stdin(input).start()
        } else {
            attach_to(&sway, &[], &["--ticket-file", &path.display().to_string()])
        };
        sway.window("foot", |window| window.app_id == "foot" && window.focused);
        let arguments = format!("/proc/{}/cmdline", attach.pid().as_raw_nonzero());
        let arguments = fs::read(arguments).expect("of our own");
        assert!(!String::from_utf8_lossy(&arguments).contains("wf1:"));
        sway.settled();
        sway.keys(&["-k", "Return"]);
        assert_eq!(attach.ended().code(), Some(6), "{}", attach.stderr());
        assert_eq!(host.ended().code(), Some(6), "{}", host.stderr());
        assert_eq!((host.stdout().as_str(), path.exists()), ("", false));
        sway.empty();
    }
}

#[test]
fn another_user_with_the_name_of_the_sessions_directory_takes_nothing_away() {
    assert!(geteuid().is_root(), "needs two users");
    let home = Home::new();
    // Where the tests' unprivileged user has its sessions, made by root.
    let taken = home.file("wayferry-65534");
    fs::create_dir(&taken).expect("a directory");
    fs::set_permissions(&taken, Permissions::from_mode(0o755)).expect("its permissions");
    let words = ["--detached", "host", "--listen", "127.0.0.1:0", "--", "tail", "-f", "/dev/null"];
    let mut host = home.wayferry().args(words).start();
    host.first_line();
    let list = || String::from_utf8(home.wayferry().arg("list").run()).expect("text");
    assert!(list().contains("tail"), "{}", list());
    home.wayferry().args(["stop", ":tail"]).run();
    assert_eq!(list(), "no sessions\n");
    assert_eq!(host.ended().code(), Some(0), "{}", host.stderr());
}

fn ferry(sway: &Sway, sshd: &Sshd, options: &[&str], command: &[&str]) -> Launch {
    let binary = sshd.home().wayferry().words()[0].clone();
    let all: Vec<&str> =
        ["--remote-bin", binary.as_str()].into_iter().chain(options.iter().copied()).collect();
    sshd.wayferry(sway.home(), &all, command).env("WAYLAND_DISPLAY", sway.display())
}

/// A command of wayferry on the machine of the sessions, as the user who has them.
fn there(sshd: &Sshd, words: &[&str]) -> Launch {
    sshd.home().wayferry().privileged().args(words.iter().copied())
}

/// An ssh that knows the server by its name.
fn ssh_to(sway: &Sway, sshd: &Sshd) -> String {
    let options = sshd.arguments();
    let script = format!("#!/bin/sh\nexec ssh {} {} \"$@\"\n", options[0], options[1]);
    let path = sway.home().write("ssh", script);
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("its permissions");
    path.display().to_string()
}

/// As Ctrl-C does to the whole foreground of a terminal.
fn interrupt(ferry: &Program) {
    for pid in crate::sessions::children(ferry.pid()).into_iter().chain([ferry.pid()]) {
        let _ = kill_process(pid, Signal::INT);
    }
}
