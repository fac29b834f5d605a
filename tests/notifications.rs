//! What programs of a session notify the user of: real `notify-send`, real buses, and a server without a screen at the
//! desk.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use serde_json::Value;
use wayferry_stage::LinkConfig;

use crate::rig::{Compositor, Home, Launch, Program, Session, Sshd, Sway, attach_to, host, until};
use crate::ssh::ferry;

#[test]
fn what_programs_notify_of_is_shown_at_the_desk_and_answers_come_back() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let desk = Desk::start(sway.home(), Launch::privileged);
    let line = "'notify-send -a mail -u critical -i mail-unread -t 3000 \"New mail\" \"<b>A</b> <c@d>\"; \
                notify-send -a talk -i /etc/hosts -A yes=Yes -A no=No ask press:no >$HOME/chosen; \
                notify-send --wait gone dismiss; echo $? >$HOME/closed; \
                id=$(notify-send -p first); notify-send -r $id second; \
                dbus-send --session --type=method_call --dest=org.freedesktop.Notifications /org/freedesktop/Notifications \
                org.freedesktop.Notifications.CloseNotification uint32:$id; sleep 60'";
    let mut wayferry = ferry(&sway, &sshd, &[], &["foot", "sh", "-c", line]).start();
    let said = until("all to be said", || {
        wayferry.must_run();
        // notify-send itself may close what was chosen of, if it is sooner than word of that.
        let is_note = |line: &Value| line["number"].is_u64();
        let (notes, closed): (Vec<_>, Vec<_>) = desk.said().into_iter().partition(is_note);
        let last = notes.get(3)?["number"].clone();
        closed.iter().any(|line| line["close"] == last).then_some(notes)
    });
    let first = &said[0];
    assert_eq!(
        (&first["app"], &first["summary"]),
        (&"mail on ferry-host".into(), &"ferry-host: New mail".into())
    );
    assert_eq!(first["body"], "A &lt;c@d&gt;", "no markup of the host's");
    assert_eq!((&first["icon"], &first["timeout"]), (&"mail-unread".into(), &3000.into()));
    assert_eq!(first["hints"]["urgency"], 2);
    assert_eq!(said[1]["actions"], serde_json::json!(["yes", "Yes", "no", "No"]));
    assert_eq!(said[1]["icon"], "", "no file of the desk's");
    assert_eq!(fs::read_to_string(sshd.home().file("chosen")).expect("what was chosen"), "no\n");
    assert_eq!(fs::read_to_string(sshd.home().file("closed")).expect("what was closed"), "0\n");
    assert_eq!(said[4]["replaces"], said[3]["number"], "it takes the place of the first");
    assert_eq!(wayferry.count("no-notifications"), 0, "{}", wayferry.stderr());
}

#[test]
fn addresses_are_asked_for_by_a_notification_where_ssh_has_the_terminal() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let browser = sway
        .home()
        .write("browser", format!("#!/bin/sh\necho $1 >>{}/opened\n", sway.home().path().display()));
    fs::set_permissions(&browser, Permissions::from_mode(0o755)).expect("its permissions");
    let run = |expected: i32| {
        let words = ["sh", "-c", "\"xdg-open 'https://example.org/?a&b'; exit \\$?\""];
        let launch = ferry(&sway, &sshd, &[], &words).env("BROWSER", browser.display().to_string());
        let mut wayferry = launch.start();
        assert_eq!(wayferry.ended().code(), Some(expected), "{}", wayferry.stderr());
    };
    let refusing = Desk::start(sway.home(), |launch| launch.privileged().env("PRESS", "no"));
    run(4);
    let asked = &refusing.said()[0];
    assert_eq!(asked["body"], "https://example.org/?a&amp;b", "all of it");
    assert_eq!(asked["summary"], "A program on ferry-host wants this opened here");
    drop(refusing);
    let willing = Desk::start(sway.home(), |launch| launch.privileged().env("PRESS", "always"));
    run(0);
    run(0);
    until("both", || {
        let opened = fs::read_to_string(sway.home().file("opened")).unwrap_or_default();
        (opened == "https://example.org/?a&b\n".repeat(2)).then_some(())
    });
    let questions = willing.said().iter().filter(|line| line["summary"].is_string()).count();
    assert_eq!(questions, 1, "the answer was for good");
}

#[test]
fn a_lost_host_is_told_of_at_the_desk_where_there_is_no_terminal() {
    let sway = Sway::start();
    let desk = Desk::start(sway.home(), |launch| launch);
    let mut session = Session::start_over(&sway, LinkConfig::default(), &[]);
    let mut foot = session.launch("foot").arg("cat").start();
    sway.window("foot", |_| true);
    let link = session.link.as_ref().expect("a link");
    link.set_down(true);
    until("the loss", || (desk.summaries() == ["127.0.0.1: no contact"]).then_some(()));
    link.set_down(false);
    until("the end of it", || {
        (desk.summaries() == ["127.0.0.1: no contact", "127.0.0.1: contact again"]).then_some(())
    });
    foot.must_run();
    session.must_run();
}

#[test]
fn a_flood_is_held_back_and_the_session_lives() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let desk = Desk::start(sway.home(), Launch::privileged);
    let line = "'n=0; while [ $n -lt 200 ]; do n=$((n+1)); notify-send -a flood n$n; done; read line'";
    let mut wayferry = ferry(&sway, &sshd, &[], &["foot", "sh", "-c", line]).start();
    until("the newest to be shown", || {
        wayferry.must_run();
        desk.summaries().contains(&"ferry-host: n200".to_owned()).then_some(())
    });
    let shown = desk.summaries();
    assert_eq!(shown[..5], [1, 2, 3, 4, 5].map(|number| format!("ferry-host: n{number}")));
    assert!(shown.len() < 100, "{} were shown", shown.len());
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    sway.keys(&["-k", "Return"]);
    assert_eq!(wayferry.ended().code(), Some(0), "{}", wayferry.stderr());
}

#[test]
fn a_desk_without_a_bus_is_told_of_once_and_shows_again_when_there_is_one() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut desk = Desk::start(sway.home(), Launch::privileged);
    let line = "'notify-send one; for n in 2 3 4; do until [ -e $HOME/$n ]; do sleep 0.05; done; \
                if [ $n = 4 ]; then notify-send four; else notify-send --wait $n; fi; touch $HOME/$n-done; done; \
                until [ -e $HOME/5 ]; do sleep 0.05; done'";
    let mut wayferry = ferry(&sway, &sshd, &[], &["foot", "sh", "-c", line]).start();
    until("the first", || (desk.summaries() == ["ferry-host: one"]).then_some(()));
    desk.kill();
    for number in ["2", "3"] {
        sshd.home().write(number, "");
        // The program hears that its notification is gone.
        sshd.home().read_when(&format!("{number}-done"), |_| true);
    }
    assert_eq!(wayferry.count("no-notifications"), 1, "{}", wayferry.stderr());
    let desk = Desk::start(sway.home(), Launch::privileged);
    sshd.home().write("4", "");
    until("the fourth", || (desk.summaries() == ["ferry-host: four"]).then_some(()));
    sshd.home().write("5", "");
    assert_eq!(wayferry.ended().code(), Some(0), "{}", wayferry.stderr());
}

#[test]
fn where_they_are_off_there_are_none_and_no_bus() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let desk = Desk::start(sway.home(), Launch::privileged);
    let line = "'echo bus=$DBUS_SESSION_BUS_ADDRESS >$HOME/bus; timeout 5 notify-send one; exit 0'";
    let options = ["--notifications", "off"];
    let mut wayferry = ferry(&sway, &sshd, &options, &["sh", "-c", line]).start();
    assert_eq!(wayferry.ended().code(), Some(0), "{}", wayferry.stderr());
    assert_eq!(fs::read_to_string(sshd.home().file("bus")).expect("what it found"), "bus=\n");
    assert!(desk.said().is_empty(), "{:?}", desk.said());
}

#[test]
fn what_no_display_shows_waits_for_one_that_does_and_viewers_show_none() {
    let sway = Sway::start();
    let home = Home::new();
    let desk = Desk::start(sway.home(), |launch| launch);
    let line = "for n in $(seq 20); do notify-send -a one n$n; done; touch ready; exec tail -f /dev/null";
    let mut host = host(&home, &["--detached"], &["sh", "-c", line]);
    let ticket = host.first_line();
    home.read_when("ready", |_| true);
    let ask = |options: &[&str]| {
        let ticket = home.wayferry().arg("ticket").args(options.iter().copied()).run();
        String::from_utf8(ticket).expect("a ticket").trim().to_owned()
    };
    let _view = attach_to(&sway, &["--view"], &[&ask(&["--view"])]);
    let unwilling = attach_to(&sway, &["--notifications", "off"], &[&ticket]);
    until("both displays", || {
        let list = String::from_utf8(home.wayferry().arg("list").run()).expect("text");
        list.contains("attached, 1 view").then_some(())
    });
    assert!(desk.said().is_empty(), "{:?}", desk.said());
    drop(unwilling);
    // The viewer is on the same desk, and adds none.
    let _display = attach_to(&sway, &[], &[&ask(&[])]);
    // The newest 16: five at once, the others one a second.
    until("the last", || desk.summaries().last().is_some_and(|last| last.ends_with(": n20")).then_some(()));
    let numbers: Vec<String> = (5..=20).map(|number| format!("127.0.0.1: n{number}")).collect();
    assert_eq!(desk.summaries(), numbers);
    host.must_run();
}

#[test]
fn without_a_daemon_programs_find_what_they_would_have_found() {
    let home = Home::new();
    let words = ["-v", "--detached", "host", "--listen", "127.0.0.1:0", "--", "/bin/sh", "-c"];
    let launch = home
        .wayferry()
        .under(&["env", "PATH=/nonexistent"])
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/login");
    let mut host = launch.args(words).arg("echo $DBUS_SESSION_BUS_ADDRESS >bus").start();
    assert_eq!(host.ended().code(), Some(0), "{}", host.stderr());
    assert_eq!(fs::read_to_string(home.file("bus")).expect("what it found"), "unix:path=/login\n");
    assert!(host.stderr().contains("step: no `dbus-daemon` is installed"), "{}", host.stderr());
    assert_eq!(host.count("no-notifications"), 0, "it is no trouble");
}

#[test]
fn a_session_that_is_killed_leaves_no_bus() {
    let home = Home::new();
    let line = "echo $DBUS_SESSION_BUS_ADDRESS >bus; exec tail -f /dev/null";
    let mut host = host(&home, &["--detached"], &["sh", "-c", line]);
    host.first_line();
    let address = String::from_utf8(home.read_when("bus", |text| text.ends_with(b"\n"))).expect("an address");
    let socket = address.trim().strip_prefix("unix:path=").expect("a socket");
    assert!(UnixStream::connect(socket).is_ok());
    rustix::process::kill_process(host.pid(), rustix::process::Signal::KILL).expect("the right to");
    until("the bus to end", || UnixStream::connect(socket).is_err().then_some(()));
    host.ended();
}

/// A bus of the desk where programs look for it, with a server of notifications.
struct Desk {
    server: Program,
    bus: Program,
}

impl Desk {
    /// `user` chooses whose it is: a bus serves its own user alone.
    fn start(home: &Home, user: impl Fn(Launch) -> Launch) -> Self {
        let socket = home.runtime().join("bus");
        let _ = fs::remove_file(&socket);
        let address = format!("--address=unix:path={}", socket.display());
        let words = ["--session", "--nofork", "--nopidfile", "--print-address=1", &address];
        let mut bus = user(home.launch("dbus-daemon").args(words)).start();
        bus.first_line();
        let script = home.write("notification-server.py", include_str!("tools/notification-server.py"));
        let mut server = user(home.launch("python3").arg(script.display().to_string())).start();
        server.first_line();
        Self { server, bus }
    }

    /// What the server was asked, in order.
    fn said(&self) -> Vec<Value> {
        let said = self.server.stdout();
        // The last line may still be on its way.
        let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["ready"].is_null()).collect()
    }

    fn summaries(&self) -> Vec<String> {
        let said = self.said();
        said.iter().filter_map(|line| line["summary"].as_str().map(str::to_owned)).collect()
    }

    fn kill(&mut self) {
        self.bus.kill();
        self.server.kill();
    }
}
