//! Entries of the desktop's menu: valid, and run as a desktop does it.

use std::fs;

use serde_json::Value;

use crate::rig::{Compositor, Home, Launch, Sshd, Sway};

#[test]
fn an_entry_is_valid_and_means_the_words_that_were_given() {
    let home = Home::new();
    let given =
        ["-p", "22", "u@h", "sh", "-c", "echo \"$HOME\" `x` 'it' \\n 100% %f; reboot", "", "--install"];
    let text = entry(&home, &given).run();
    let path = home.write("a.desktop", text).display().to_string();
    assert_eq!(String::from_utf8_lossy(&home.launch("desktop-file-validate").arg(&path).run()), "");
    // GLib's reader of entries and of commands.
    let script = "import json, sys\nfrom gi.repository import Gio, GLib\n\
        line = Gio.DesktopAppInfo.new_from_filename(sys.argv[1]).get_commandline()\n\
        _, words = GLib.shell_parse_argv(line.replace('%%', '%'))\njson.dump(words, sys.stdout)\n";
    let words = home.launch("python3").args(["-c", script, &path]).run();
    let words: Vec<Value> = serde_json::from_slice(&words).expect("JSON");
    let (itself, rest) = words.split_first().expect("words");
    assert!(itself.as_str().is_some_and(|path| path.starts_with('/') && path.ends_with("/wayferry")));
    let expected = [&["ssh", "-p", "22", "u@h", "--"], &given[3..]].concat();
    assert_eq!(rest, expected);
}

#[test]
fn an_installed_entry_starts_its_program_there() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let remote = sshd.home().wayferry().words()[0].clone();
    let arguments = sshd.arguments();
    let words: Vec<&str> = ["--install", "--remote-bin", &remote]
        .into_iter()
        .chain(arguments.iter().map(String::as_str))
        .chain(["foot", "-a", "from the menu"])
        .collect();
    // ssh hands words on to a shell there.
    let words = [&words[..words.len() - 1], &["'from the menu'"]].concat();
    let path = String::from_utf8(entry(sway.home(), &words).privileged().run()).expect("a path");
    let path = path.trim();
    let expected = sway.home().file(".local/share/applications/wayferry-ferry-host-foot.desktop");
    assert_eq!(path, expected.display().to_string());
    let script = "import sys\nfrom gi.repository import Gio\n\
        Gio.DesktopAppInfo.new_from_filename(sys.argv[1]).launch([], None)\n";
    let launch = sway.home().launch("python3").privileged().env("WAYLAND_DISPLAY", sway.display());
    launch.args(["-c", script, path]).run();
    sway.window("foot", |window| window.app_id == "from the menu");
}

#[test]
fn a_file_that_the_user_has_changed_is_not_overwritten() {
    let home = Home::new();
    let words = ["--install", "h", "foot"];
    let path = String::from_utf8(entry(&home, &words).run()).expect("a path");
    entry(&home, &words).run();
    fs::write(path.trim(), "[Desktop Entry]\nName=mine\n").expect("a file");
    let mut again = entry(&home, &words).start();
    assert_eq!(again.ended().code(), Some(74), "{}", again.stderr());
    assert!(again.stderr().contains("move it away"), "{}", again.stderr());
    assert!(fs::read_to_string(path.trim()).expect("a file").ends_with("Name=mine\n"));
    let mut shell = entry(&home, &["h"]).start();
    assert_eq!(shell.ended().code(), Some(64), "{}", shell.stderr());
}

fn entry(home: &Home, words: &[&str]) -> Launch {
    home.wayferry().arg("desktop-entry").args(words.iter().copied())
}
