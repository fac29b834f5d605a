//! Addresses that programs of a session open, through a real ssh server.
//!
//! No window is opened: foot 1.13 ends by a signal where the focus comes to a window that it has just destroyed.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread;

use crate::programs::{firefox_profile, page_is_there};
use crate::rig::{Compositor, Home, Launch, Picture, Sshd, Sway, unprivileged, until};

#[test]
fn what_programs_open_is_opened_at_the_desk() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    stub(sway.home(), "browser", "opened");
    let line = "'xdg-open https://example.org/a?b=c; one=$?; $BROWSER mailto:a@example.org; exit $one$?'";
    let mut wayferry = ferry(&sway, &sshd, &["--open-url", "always"], &["sh", "-c", line]).start();
    assert_eq!(wayferry.ended().code(), Some(0), "{}", wayferry.stderr());
    until("both", || {
        let opened = fs::read_to_string(sway.home().file("opened")).unwrap_or_default();
        (opened.lines().count() == 2).then_some(())
    });
    let opened = fs::read_to_string(sway.home().file("opened")).expect("what was opened");
    let mut opened: Vec<&str> = opened.lines().collect();
    opened.sort_unstable();
    assert_eq!(opened, ["https://example.org/a?b=c", "mailto:a@example.org"]);
    assert_eq!(wayferry.count("url-opened"), 2, "{}", wayferry.stderr());
    left_nothing(&sshd);
}

#[test]
fn without_the_users_word_nothing_is_opened_and_both_sides_are_told() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    stub(sway.home(), "browser", "opened");
    stub(sshd.home(), "bin/xdg-open", "opened-there");
    let line = "'xdg-open https://example.org/ 2>$HOME/said; exit $?'";
    let mut wayferry = ferry(&sway, &sshd, &[], &["sh", "-c", line]).start();
    assert_eq!(wayferry.ended().code(), Some(4), "{}", wayferry.stderr());
    assert_eq!(wayferry.count("url-refused"), 1, "{}", wayferry.stderr());
    let said = fs::read_to_string(sshd.home().file("said")).expect("what the program was told");
    assert!(said.contains("did not allow it") && said.contains("--open-url always"), "{said}");
    assert!(!sway.home().file("opened").exists() && !sshd.home().file("opened-there").exists());
}

#[test]
fn an_answer_that_was_given_for_good_holds_for_that_host_and_no_other() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    stub(sway.home(), "browser", "opened");
    let run = || ferry(&sway, &sshd, &[], &["sh", "-c", "'xdg-open https://example.org/; exit $?'"]).start();
    let hosts = ".local/state/wayferry/hosts";
    fs::create_dir_all(sway.home().file(hosts)).expect("a directory");
    sway.home().write(&format!("{hosts}/another-host.toml"), "open-url = 'always'\n");
    let mut wayferry = run();
    assert_eq!(wayferry.ended().code(), Some(4), "{}", wayferry.stderr());
    let file = format!("{hosts}/ferry-host.toml");
    sway.home().write(&file, "open-url = 'perhaps'\n");
    let mut wayferry = run();
    assert_eq!(wayferry.ended().code(), Some(4), "{}", wayferry.stderr());
    assert!(wayferry.stderr().contains("ferry-host.toml"), "{}", wayferry.stderr());
    sway.home().write(&file, "open-url = 'always'\n");
    let mut wayferry = run();
    assert_eq!(wayferry.ended().code(), Some(0), "{}", wayferry.stderr());
    until("the browser", || sway.home().file("opened").exists().then_some(()));
}

#[test]
fn what_the_desk_does_not_open_goes_to_the_hosts_own_xdg_open() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    stub(sway.home(), "browser", "opened");
    stub(sshd.home(), "bin/xdg-open", "opened-there");
    for (options, word) in [
        (&["--open-url", "never"][..], "https://example.org/"),
        (&["--open-url", "always"], "file:///etc/hosts"),
    ] {
        let line = format!("'xdg-open {word}'");
        let mut wayferry = ferry(&sway, &sshd, options, &["sh", "-c", &line]).start();
        assert_eq!(wayferry.ended().code(), Some(0), "{}", wayferry.stderr());
        let opened = fs::read_to_string(sshd.home().file("opened-there")).expect("what was opened there");
        assert_eq!(opened.lines().last(), Some(word));
    }
    assert!(!sway.home().file("opened").exists());
}

/// The display is there, and opens addresses.
#[test]
fn regression_a_file_that_no_display_opens_is_said_to_lack_a_display() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    stub(sway.home(), "browser", "opened");
    // Without another `xdg-open`.
    let line = "'PATH=${PATH%%:*} xdg-open file:///etc/hosts 2>$HOME/said; exit $?'";
    let mut wayferry = ferry(&sway, &sshd, &["--open-url", "always"], &["sh", "-c", line]).start();
    assert_eq!(wayferry.ended().code(), Some(3), "{}", wayferry.stderr());
    let said = fs::read_to_string(sshd.home().file("said")).expect("what the program was told");
    assert!(said.contains("http, https and mailto") && said.contains("hint: for all else"), "{said}");
}

#[test]
#[ignore = "heavy: `make test-full` installs and runs it"]
fn firefox_here_opens_what_a_program_there_opens() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/there?a=b&c=d", server.local_addr().expect("its address"));
    let asked = thread::spawn(move || answer(&server));
    let profile = firefox_profile(sway.home());
    // The ssh client of the tests is root's, as whom Firefox does not run.
    let user = unprivileged().map(|user| format!("setpriv --reuid={user} --regid={user} --clear-groups"));
    let user = user.unwrap_or_default();
    let firefox =
        format!("dbus-run-session -- firefox-esr --new-instance --kiosk --profile {profile} \"$1\"");
    let script = format!("#!/bin/sh\nMOZ_ENABLE_WAYLAND=1 exec {user} {firefox}\n");
    let script = sway.home().write("browser", script);
    fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("its permissions");
    let line = format!("'xdg-open \"{address}\"; exit $?'");
    let mut wayferry = ferry(&sway, &sshd, &["--open-url", "always"], &["sh", "-c", &line]).start();
    assert_eq!(wayferry.ended().code(), Some(0), "{}", wayferry.stderr());
    page_is_there(&sway);
    let green = |picture: &Picture| picture.pixel(640, 360) == [0x20, 0x60, 0x20];
    until("the page", || green(&sway.screenshot()).then_some(()));
    assert_eq!(asked.join().expect("the server"), "GET /there?a=b&c=d HTTP/1.1");
}

/// Answers one request with a page, and returns the request's first line.
fn answer(server: &TcpListener) -> String {
    let (mut stream, _) = server.accept().expect("a connection");
    let mut lines = BufReader::new(stream.try_clone().expect("the connection")).lines().map_while(Result::ok);
    let first = lines.next().expect("a request");
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    let page = "<title>page</title><body style='background: #206020'>";
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", page.len());
    stream.write_all(format!("{head}{page}").as_bytes()).expect("the browser listens");
    first
}

/// The session's own directory of commands goes with it.
fn left_nothing(sshd: &Sshd) {
    until("the session's end", || {
        let directories = fs::read_dir(sshd.home().path()).expect("its home").flatten();
        let sessions =
            directories.filter(|entry| entry.file_name().to_string_lossy().starts_with("wayferry-"));
        (sessions.count() == 0).then_some(())
    });
}

/// A program that writes down what it is to open.
pub(crate) fn stub(home: &Home, name: &str, file: &str) -> PathBuf {
    let file = home.file(file).display().to_string();
    if let Some(directory) = home.file(name).parent() {
        fs::create_dir_all(directory).expect("its directory");
    }
    let path = home.write(name, format!("#!/bin/sh\nprintf '%s\\n' \"$*\" >> {file}\n"));
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("its permissions");
    path
}

fn ferry(sway: &Sway, sshd: &Sshd, options: &[&str], command: &[&str]) -> Launch {
    let remote = sshd.home().wayferry().words()[0].clone();
    let options: Vec<&str> =
        ["--remote-bin", remote.as_str()].into_iter().chain(options.iter().copied()).collect();
    let launch = sshd.wayferry(sway.home(), &options, command).env("WAYLAND_DISPLAY", sway.display());
    launch.env("BROWSER", sway.home().file("browser").display().to_string())
}
