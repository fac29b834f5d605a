//! X11 programs inside one window, through a real ssh server: what shows them, and what is told where it is missing.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::rig::{Compositor, Keyboard, Picture, Sshd, Sway, until};
use crate::ssh::ferry;

#[test]
fn a_window_with_a_window_manager_shows_x11_programs_and_ends_with_them() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut wayferry = ferry(&sway, &sshd, &["--xwayland=rootful"], &xterm(&sshd)).start();
    shows(&sway, PAPER, 10_000);
    shows(&sway, INK, 300);
    is_focused(&sway);
    assert_eq!(running(&sshd), ["Xwayland", "openbox", "xterm"]);
    // Where the focus goes inside is the window manager's, and a key before that goes nowhere.
    // An X server loses keys that come right behind a keymap, so it has to be one keyboard.
    let (mut keyboard, before) = (Keyboard::new(&sway), sway.settled());
    until("the terminal to hear", || {
        keyboard.letter('x');
        (sway.settled() != before).then_some(())
    });
    "typed".chars().for_each(|letter| keyboard.letter(letter));
    keyboard.enter();
    let heard = sshd.home().read_when("typed", |text| !text.is_empty());
    assert_eq!(String::from_utf8_lossy(&heard).trim_start_matches('x'), "typed\n");
    assert_eq!(wayferry.ended().code(), Some(0), "{}", wayferry.stderr());
    assert!(running(&sshd).is_empty(), "{:?} are left", running(&sshd));
    assert!(!wayferry.stderr().contains("X11"), "{}", wayferry.stderr());
    sway.empty();
}

#[test]
fn programs_inside_that_outlive_the_sessions_own_keep_it() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let line = format!("'setsid {} &'", xterm(&sshd).join(" "));
    let mut wayferry = ferry(&sway, &sshd, &["--xwayland=rootful"], &["sh", "-c", &line]).start();
    until("word of what is left", || {
        wayferry.must_run();
        wayferry.stderr().contains("goes on for").then_some(())
    });
    is_focused(&sway);
    Keyboard::new(&sway).enter();
    assert_eq!(wayferry.ended().code(), Some(0), "{}", wayferry.stderr());
    assert!(running(&sshd).is_empty(), "{:?} are left", running(&sshd));
}

#[test]
fn the_end_of_the_server_is_that_of_its_programs() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut wayferry = ferry(&sway, &sshd, &["--xwayland=rootful"], &xterm(&sshd)).start();
    is_focused(&sway);
    let living = sshd.home().living().into_iter();
    let mut servers = living.filter(|pid| name(*pid).as_deref() == Some("Xwayland"));
    kill_process(servers.next().expect("the server"), Signal::TERM).expect("it can be ended");
    // As an xterm ends whose server does.
    assert_ne!(wayferry.ended().code(), Some(0), "{}", wayferry.stderr());
    assert!(running(&sshd).is_empty(), "{:?} are left", running(&sshd));
}

#[test]
fn another_user_cannot_reach_the_x_server() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut wayferry = ferry(&sway, &sshd, &["--xwayland=rootful"], &xterm(&sshd)).start();
    is_focused(&sway);
    let display = sshd.home().read_when("display", |text| text.ends_with(b"\n"));
    let display = String::from_utf8(display).expect("text").trim().to_owned();
    let client = || sway.launch("xterm").args(["-e", "true"]).env("DISPLAY", display.as_str());
    assert!(client().privileged().text().is_some(), "its own user can");
    // Where the tests are not root's, there is no other.
    if geteuid().is_root() {
        assert!(client().text().is_none(), "another user can");
    }
    // A server that is killed leaves its socket.
    sway.keys(&["-k", "Return"]);
    assert_eq!(wayferry.ended().code(), Some(0), "{}", wayferry.stderr());
}

#[test]
fn what_is_missing_there_is_one_line_with_a_way_out() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let tools = sshd.home().file("tools");
    fs::create_dir_all(&tools).expect("a directory");
    let remote = bare(&sshd);
    let told = |how: &str, code| {
        let words = ["--remote-bin", remote.to_str().expect("a plain path"), how];
        let launch =
            sshd.wayferry(sway.home(), &words, &["/bin/true"]).env("WAYLAND_DISPLAY", sway.display());
        let mut wayferry = launch.start();
        assert_eq!(wayferry.ended().code(), Some(code), "{}", wayferry.stderr());
        wayferry.stderr()
    };
    let lines = told("--xwayland", 90);
    assert!(lines.starts_with("error: on `"), "{lines}");
    assert!(
        lines.contains("`: X11 programs cannot be shown: `xwayland-satellite` was not found\n"),
        "{lines}"
    );
    assert!(lines.contains("hint: ") && lines.contains("--xwayland=rootful"), "{lines}");
    assert_eq!(lines.lines().count(), 2, "{lines}");
    let lines = told("--xwayland=rootful", 90);
    assert!(
        lines.contains("`Xwayland` was not found\n") && lines.contains("install Xwayland beside"),
        "{lines}"
    );
    symlink("/usr/bin/Xwayland", tools.join("Xwayland")).expect("a link");
    let lines = told("--xwayland=rootful", 0);
    assert!(lines.contains("no window manager was found"), "{lines}");
}

/// A terminal in colours of its own that waits for a line, writes it to a file and ends.
fn xterm(sshd: &Sshd) -> Vec<&'static str> {
    sshd.home().write("ask", ASK);
    let look = ["xterm", "-fn", "10x20", "-bg", "rgb:20/60/20", "-fg", "rgb:f0/d0/10", "-cr", "rgb:f0/10/10"];
    [&look[..], &["-e", "sh $HOME/ask"]].concat()
}

/// Waits until so many pixels have this colour.
fn shows(sway: &Sway, colour: [u8; 3], pixels: usize) {
    until("the xterm", || (count(&sway.screenshot(), colour) >= pixels).then_some(()));
}

/// Waits until the terminal gets what is typed: its cursor is filled then.
fn is_focused(sway: &Sway) {
    shows(sway, CURSOR, 150);
}

/// Pixels of this colour.
fn count(picture: &Picture, colour: [u8; 3]) -> usize {
    let (width, height) = picture.size();
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x as usize, y as usize)));
    pixels.filter(|&(x, y)| picture.pixel(x, y) == colour).count()
}

/// Which programs of X11 run there.
fn running(sshd: &Sshd) -> Vec<String> {
    let names = sshd.home().living().into_iter().filter_map(name);
    let mut names: Vec<_> =
        names.filter(|name| ["Xwayland", "openbox", "xterm"].contains(&name.as_str())).collect();
    names.sort();
    names
}

/// What a process runs.
fn name(pid: Pid) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).ok()?;
    Some(name.trim().to_owned())
}

/// A wayferry there that finds no programs but those in `tools`.
fn bare(sshd: &Sshd) -> PathBuf {
    let wayferry = sshd.home().wayferry().words()[0].clone();
    let script = format!("#!/bin/sh\nPATH={} exec {wayferry} \"$@\"\n", sshd.home().file("tools").display());
    let path = sshd.home().write("bare", script);
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("its permissions");
    path
}

/// What the terminal runs.
const ASK: &str = "\
echo $DISPLAY > $HOME/display
echo '#####################'
read line
echo $line > $HOME/typed
";
/// The terminal's background, its text, and its cursor of 200 pixels.
const PAPER: [u8; 3] = [0x20, 0x60, 0x20];
const INK: [u8; 3] = [0xf0, 0xd0, 0x10];
const CURSOR: [u8; 3] = [0xf0, 0x10, 0x10];
