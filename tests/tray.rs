//! Icons of a session's programs in the desk's tray: real programs, real buses, and a tray without a screen at the
//! desk.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::rig::{Compositor, Home, Launch, Program, Sshd, Sway, attach_to, host, until};
use crate::ssh::ferry;

#[test]
fn an_icon_and_its_menu_are_at_the_desk_and_what_is_chosen_comes_back() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let desk = Desk::start(sway.home(), Launch::privileged);
    sshd.home().write("program.py", INDICATOR);
    let mut wayferry =
        ferry(&sway, &sshd, &[], &["sh", "-c", "'exec python3 $HOME/program.py >$HOME/said'"]).start();
    let icon = desk.icon(&mut wayferry, "the icon", |icon| entry(icon, "Quit").is_some());
    assert_eq!(icon["Title"], "ferry-host: Mail", "it says whose it is");
    assert_eq!(
        (&icon["IconName"], &icon["Category"], &icon["Status"]),
        (&"mail-unread".into(), &"Communications".into(), &"Active".into())
    );
    assert_eq!(icon["ItemIsMenu"], true, "the program has nothing but its menu");
    let menu = icon["menu"]["below"].as_array().expect("a menu");
    assert_eq!((&menu[0]["label"], &menu[0]["enabled"]), (&"ferry-host".into(), &false.into()));
    let quiet = entry(&icon, "Quiet").expect("a check");
    assert_eq!((&quiet["toggle-type"], &quiet["toggle-state"]), (&"checkmark".into(), &1.into()));
    assert_eq!(entry(&icon, "Grey").expect("a grey one")["enabled"], false);
    assert_eq!(entry(&icon, "Folders").expect("a submenu")["below"][0]["label"], "Inbox");

    desk.choose(&icon, "Grey");
    desk.choose(&icon, "Inbox");
    desk.choose(&icon, "Rename");
    let icon = desk.icon(&mut wayferry, "the new icon", |icon| {
        icon["Title"] == "ferry-host: Post" && icon["IconName"] == "own" && entry(icon, "Renamed").is_some()
    });
    assert_eq!(icon["IconPixmap"][0][0], 32, "the desk has no such file");
    desk.choose(&icon, "Quit");
    until("the icon to go", || desk.is_gone(&icon).then_some(()));
    assert_eq!(wayferry.ended().code(), Some(0), "{}", wayferry.stderr());
    assert_eq!(
        fs::read_to_string(sshd.home().file("said")).expect("what was chosen"),
        "Inbox\nRename\nQuit\n"
    );
}

#[test]
fn a_picture_arrives_and_clicks_come_back_and_the_ninth_icon_is_refused() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let desk = Desk::start(sway.home(), Launch::privileged);
    sshd.home().write("program.py", PICTURE);
    let line = "'python3 $HOME/program.py 9 >$HOME/said'";
    let mut wayferry = ferry(&sway, &sshd, &[], &["sh", "-c", line]).start();
    until("eight icons", || {
        wayferry.must_run();
        (desk.names().len() == 8).then_some(())
    });
    let icon = desk.icon(&mut wayferry, "the first", |icon| {
        icon["Id"].as_str().is_some_and(|id| id.ends_with("/icon0"))
    });
    assert_eq!(icon["Id"], "wayferry: ferry-host: /icon0");
    assert_eq!(icon["Title"], "ferry-host: Title 0 of <b>/icon0</b>");
    assert_eq!(
        (&icon["IconName"], &icon["Status"]),
        (&"".into(), &"NeedsAttention".into()),
        "no file of the desk's"
    );
    assert_eq!(
        (&icon["IconPixmap"][0][0], icon["IconPixmap"].as_array().map(Vec::len)),
        (&48.into(), Some(1))
    );
    assert_eq!(icon["ToolTip"][2], "ferry-host: A tip");
    assert_eq!(icon["ToolTip"][3], "a &amp; b");
    assert_eq!((&icon["Menu"], &icon["ItemIsMenu"]), (&"/NO_DBUSMENU".into(), &false.into()));
    desk.call(&icon, ITEM_PATH, &["org.kde.StatusNotifierItem.ProvideXdgActivationToken", "string:t-1"]);
    desk.call(&icon, ITEM_PATH, &["org.kde.StatusNotifierItem.Activate", "int32:5", "int32:5"]);
    desk.call(&icon, ITEM_PATH, &["org.kde.StatusNotifierItem.SecondaryActivate", "int32:5", "int32:5"]);
    desk.call(&icon, ITEM_PATH, &["org.kde.StatusNotifierItem.ContextMenu", "int32:5", "int32:5"]);
    desk.call(&icon, ITEM_PATH, &["org.kde.StatusNotifierItem.Scroll", "int32:-120", "string:horizontal"]);
    let said = sshd.home().read_when("said", |text| text.ends_with(b"horizontal\n"));
    let said = String::from_utf8(said).expect("text");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "tray True");
    assert!(lines[1].starts_with("refused /icon8"), "{said}");
    let told = [
        "/icon0 ProvideXdgActivationToken t-1",
        "/icon0 Activate 0 0",
        "/icon0 SecondaryActivate 0 0",
        "/icon0 ContextMenu 0 0",
        "/icon0 Scroll -120 horizontal",
    ];
    assert_eq!(lines[2..], told, "and no more");
    // The session's end takes them away.
    wayferry.terminate();
    until("all to go", || desk.names().iter().all(|name| desk.has_gone(name)).then_some(()));
}

#[test]
fn a_flood_of_changes_is_held_back_and_other_programs_go_on() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let desk = Desk::start(sway.home(), Launch::privileged);
    sshd.home().write("program.py", PICTURE);
    let line = "'python3 $HOME/program.py 2 flood >$HOME/said & read line'";
    let mut wayferry = ferry(&sway, &sshd, &[], &["foot", "sh", "-c", line]).start();
    let turn = |icon: &Value| icon["Title"].as_str()?.split(' ').nth(2)?.parse::<usize>().ok();
    desk.icon(&mut wayferry, "the thousandth title", |icon| turn(icon).is_some_and(|turn| turn > 1000));
    let titles = desk.said().iter().filter(|line| line["Title"].is_string()).count();
    assert!(titles < 200, "{titles} changes of 2000 were shown");
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    sway.keys(&["-k", "Return"]);
    assert_eq!(wayferry.ended().code(), Some(0), "{}", wayferry.stderr());
}

#[test]
fn programs_find_a_tray_only_while_the_desk_has_one() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut desk = Desk::without_tray(sway.home(), Launch::privileged);
    sshd.home().write("program.py", PICTURE);
    let options = ["-v"];
    let mut wayferry =
        ferry(&sway, &sshd, &options, &["sh", "-c", "'exec python3 $HOME/program.py 1 >$HOME/said'"]).start();
    let said = |end: &'static str| {
        let said = sshd.home().read_when("said", |text| text.ends_with(end.as_bytes()));
        String::from_utf8(said).expect("text")
    };
    assert_eq!(said("tray False\n"), "tray False\n");
    desk.start_tray("--no-host");
    wayferry.happens("no-tray");
    assert_eq!(said("\n"), "tray False\n", "nothing shows icons");
    desk.stop_tray();
    desk.start_tray("--host");
    said("StatusNotifierHostRegistered\n");
    desk.icon(&mut wayferry, "the icon", |icon| icon["Title"].is_string());
    // A tray that is started anew is shown it again.
    desk.stop_tray();
    said("StatusNotifierHostUnregistered\n");
    desk.start_tray("--host");
    desk.icon(&mut wayferry, "the icon again", |icon| icon["Title"].is_string());
    // So is one whose bus is gone, and the session goes on.
    desk.bus.kill();
    said("StatusNotifierHostRegistered\nStatusNotifierHostUnregistered\n");
    wayferry.must_run();
    assert_eq!(wayferry.count("no-tray"), 1, "{}", wayferry.stderr());
    assert!(wayferry.stderr().contains("step: icons of programs are not shown"), "{}", wayferry.stderr());
}

#[test]
fn where_the_tray_is_off_there_is_none() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let desk = Desk::start(sway.home(), Launch::privileged);
    let line = "'dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner \
                string:org.kde.StatusNotifierWatcher >$HOME/found'";
    let mut wayferry = ferry(&sway, &sshd, &["--tray", "off"], &["sh", "-c", line]).start();
    assert_eq!(wayferry.ended().code(), Some(0), "{}", wayferry.stderr());
    let found = fs::read_to_string(sshd.home().file("found")).expect("what it found");
    assert!(found.contains("boolean false"), "{found}");
    assert!(desk.said().is_empty(), "{:?}", desk.said());
}

#[test]
fn the_next_display_is_shown_all_icons_and_viewers_and_unwilling_ones_none() {
    let sway = Sway::start();
    let home = Home::new();
    let desk = Desk::start(sway.home(), |launch| launch);
    home.write("program.py", PICTURE);
    let mut host = host(&home, &["--detached"], &["sh", "-c", "exec python3 program.py 1 >said"]);
    let ticket = host.first_line();
    home.read_when("said", |text| text == b"tray False\n");
    let ask = |options: &[&str]| {
        let ticket = home.wayferry().arg("ticket").args(options.iter().copied()).run();
        String::from_utf8(ticket).expect("a ticket").trim().to_owned()
    };
    let _view = attach_to(&sway, &["--view"], &[&ask(&["--view"])]);
    let unwilling = attach_to(&sway, &["--tray", "off"], &[&ticket]);
    until("both displays", || {
        let list = String::from_utf8(home.wayferry().arg("list").run()).expect("text");
        list.contains("attached, 1 view").then_some(())
    });
    assert!(desk.said().is_empty(), "{:?}", desk.said());
    drop(unwilling);
    for number in 1..=2 {
        let mut display = attach_to(&sway, &[], &[&ask(&[])]);
        until("the icon", || {
            display.must_run();
            (desk.names().len() == number).then_some(())
        });
        let icon = desk.said().pop().expect("an icon");
        assert_eq!(icon["Title"], "127.0.0.1: Title 0 of <b>/icon0</b>");
        display.terminate();
        until("it to go", || desk.is_gone(&icon).then_some(()));
        display.ended();
        let registered = "StatusNotifierHostRegistered\nStatusNotifierHostUnregistered\n".repeat(number);
        home.read_when("said", |text| text == format!("tray False\n{registered}").as_bytes());
    }
    host.must_run();
}

/// A bus of the desk where programs look for it, with a tray.
struct Desk<'a> {
    home: &'a Home,
    user: fn(Launch) -> Launch,
    tray: Option<Program>,
    bus: Program,
}

impl<'a> Desk<'a> {
    /// `user` chooses whose it is: a bus serves its own user alone.
    fn start(home: &'a Home, user: fn(Launch) -> Launch) -> Self {
        let mut desk = Self::without_tray(home, user);
        desk.start_tray("--host");
        desk
    }

    fn without_tray(home: &'a Home, user: fn(Launch) -> Launch) -> Self {
        let address = format!("--address={}", address(home));
        let words = ["--session", "--nofork", "--nopidfile", "--print-address=1", &address];
        let mut bus = user(home.launch("dbus-daemon").args(words)).start();
        bus.first_line();
        Self { home, user, tray: None, bus }
    }

    fn start_tray(&mut self, how: &str) {
        let script = self.home.write("tray-host.py", include_str!("tools/tray-host.py"));
        let launch = self.home.launch("python3").arg(script.display().to_string()).arg(how);
        let mut tray = (self.user)(launch).start();
        tray.first_line();
        self.tray = Some(tray);
    }

    fn stop_tray(&mut self) {
        self.tray.take().expect("a tray").kill();
    }

    /// What the tray has seen, in order.
    fn said(&self) -> Vec<Value> {
        let said = self.tray.as_ref().expect("a tray").stdout();
        // The last line may still be on its way.
        let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["ready"].is_null()).collect()
    }

    /// Waits for an icon that is so.
    fn icon(&self, wayferry: &mut Program, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        until(what, || {
            wayferry.must_run();
            self.said().into_iter().rfind(|line| line["Title"].is_string() && is(line))
        })
    }

    /// The bus names of all icons that were there.
    fn names(&self) -> BTreeSet<String> {
        let names = self.said().into_iter().filter(|line| line["Title"].is_string());
        names.filter_map(|line| line["name"].as_str().map(str::to_owned)).collect()
    }

    fn has_gone(&self, name: &str) -> bool {
        self.said().iter().any(|line| line["gone"] == name)
    }

    fn is_gone(&self, icon: &Value) -> bool {
        self.has_gone(icon["name"].as_str().expect("a name"))
    }

    /// Does what a click on this entry does.
    fn choose(&self, icon: &Value, label: &str) {
        let id = format!("int32:{}", entry(icon, label).expect("such an entry")["id"]);
        let words = ["com.canonical.dbusmenu.Event", &id, "string:clicked", "variant:int32:0", "uint32:0"];
        self.call(icon, icon["Menu"].as_str().expect("a path"), &words);
    }

    fn call(&self, icon: &Value, path: &str, words: &[&str]) {
        let (bus, to) = (
            format!("--bus={}", address(self.home)),
            format!("--dest={}", icon["name"].as_str().expect("one")),
        );
        let call = self.home.launch("dbus-send").args([bus.as_str(), "--print-reply", to.as_str(), path]);
        (self.user)(call.args(words.iter().copied())).run();
    }
}

/// Where the bus of a desk is.
fn address(home: &Home) -> String {
    format!("unix:path={}", home.runtime().join("bus").display())
}

/// An entry of an icon's menu, at any depth.
fn entry(icon: &Value, label: &str) -> Option<Value> {
    fn find(entries: &Value, label: &str) -> Option<Value> {
        let entries = entries.as_array()?;
        let here = entries.iter().find(|entry| entry["label"] == label).cloned();
        here.or_else(|| entries.iter().find_map(|entry| find(&entry["below"], label)))
    }
    find(&icon["menu"]["below"], label)
}

const ITEM_PATH: &str = "/StatusNotifierItem";
const INDICATOR: &str = include_str!("tools/tray-indicator.py");
const PICTURE: &str = include_str!("tools/tray-picture.py");
