//! With the real daemon, and calls as programs make them.

use rustix::event::{PollFd, PollFlags};
use wayferry_proto::{NoteAction, Urgency};
use zbus::Variant;

use super::*;
use crate::edge::programs::exit_code;
use crate::edge::wait::poll;

/// Starts a bus without what asks for a signal at this process's end.
fn bus() -> Bus {
    let daemon = ["sh", "-c", "exec dbus-daemon --nofork --nopidfile --print-address=1 --config-file=$0"];
    let environment = Environment { set: vec![(DISPLAY.into(), "w-1".into())], unset: vec![] };
    Bus::start(daemon.map(OsString::from).to_vec(), &environment)
        .expect("it starts")
        .there()
        .expect("it is there")
}

/// A program on it.
fn program(bus: &Bus) -> Connection {
    let address = bus.address.to_str().expect("a plain path");
    zbus::block_on(Builder::address(address).method_timeout(PATIENCE).build()).expect("it lets its user in")
}

/// Hints and actions, and the rest as most programs have it.
fn notify(connection: &Connection, body: &str, actions: &[&str], hints: &HashMap<&str, Variant<'_>>) -> u32 {
    let words = ("mail", 0u32, "mail-unread", "New mail", body, actions, hints, 1500);
    let reply = zbus::block_on(connection.call_method(Some(NAME), PATH, Some(NAME), "Notify", &words));
    reply.expect("an answer").body().deserialize().expect("a number")
}

fn asked(bus: &Bus) -> Asked {
    poll(&mut [PollFd::new(bus.wake(), PollFlags::IN)], Some(Duration::from_secs(30))).expect("poll");
    bus.clear_wake();
    bus.poll().expect("something was asked")
}

#[test]
fn what_a_program_says_comes_as_a_note_that_fits() {
    let bus = bus();
    let program = program(&bus);
    // A picture of some megabytes is passed over.
    let picture = Variant::from((1, 1, 4, true, 8, 4, vec![7u8; 4 << 20]));
    let hints = HashMap::from([("urgency", Variant::from(2u8)), ("image-data", picture)]);
    let id = notify(&program, "<b>A</b> &amp;\nB", &["default", "Open", "odd"], &hints);
    let note = Note {
        id,
        app: "mail".into(),
        icon: "mail-unread".into(),
        summary: "New mail".into(),
        body: "A &\nB".into(),
        urgency: Urgency::Critical,
        stays: Some(Duration::from_millis(1500)),
        actions: vec![NoteAction { key: "default".into(), label: "Open".into() }],
    };
    assert_eq!(asked(&bus), Asked::Note(note));
    let close = zbus::block_on(program.call_method(Some(NAME), PATH, Some(NAME), "CloseNotification", &id));
    close.expect("an answer");
    assert_eq!(asked(&bus), Asked::Close(id));
}

#[test]
fn hints_of_any_kind_are_survived() {
    let bus = bus();
    let program = program(&bus);
    let hints = HashMap::from([
        ("urgency", Variant::from("high")),
        ("image-path", Variant::from(7u64)),
        ("nested", Variant::from(vec![Variant::from(HashMap::from([("a", Variant::from(vec![1.5f64]))]))])),
        ("desktop-entry", Variant::from("org.example.Mail")),
    ]);
    notify(&program, "", &[], &hints);
    let Asked::Note(note) = asked(&bus) else { panic!("a note") };
    assert_eq!((note.urgency, note.actions.len()), (Urgency::Normal, 0));
}

#[test]
fn programs_hear_what_became_of_it() {
    let bus = bus();
    let program = program(&bus);
    let mut signals = zbus::block_on(async {
        let rule = zbus::MatchRule::builder().msg_type(zbus::message::Type::Signal).interface(NAME).build();
        zbus::MessageStream::for_match_rule(rule?, &program, None).await
    })
    .expect("a stream");
    let mut heard = || {
        let next = std::future::poll_fn(|context| {
            futures_core::Stream::poll_next(std::pin::Pin::new(&mut signals), context)
        });
        let message = zbus::block_on(next).expect("a signal").expect("a good one");
        let member = message.header().member().expect("a name").to_string();
        let body = message.body();
        match &*member {
            "NotificationClosed" => {
                format!("{member} {:?}", body.deserialize::<(u32, u32)>().expect("two numbers"))
            }
            _ => format!("{member} {:?}", body.deserialize::<(u32, String)>().expect("a number and a text")),
        }
    };
    bus.tell(Told::Action { id: 7, key: "default".into(), token: Some("t-1".into()) });
    bus.tell(Told::Action { id: 7, key: "reply".into(), token: None });
    bus.tell(Told::Closed(7, NoteEnd::Dismissed));
    assert_eq!(heard(), "ActivationToken (7, \"t-1\")");
    assert_eq!(heard(), "ActionInvoked (7, \"default\")");
    assert_eq!(heard(), "ActionInvoked (7, \"reply\")");
    assert_eq!(heard(), "NotificationClosed (7, 2)");
}

#[test]
fn the_daemon_and_its_files_go_with_the_bus() {
    let mut bus = bus();
    let directory = bus._directory.path().to_owned();
    assert!(directory.join("bus").exists() && bus.daemon().status().is_none());
    let group = bus.group().expect("a group of its own");
    bus.daemon().end(Duration::MAX);
    let status = bus.daemon().status().expect("it has ended");
    assert_ne!(exit_code(status), 128 + 9, "it was asked, and did: it need not be killed");
    drop(bus);
    assert!(!directory.exists());
    assert_eq!(rustix::process::test_kill_process_group(group), Err(rustix::io::Errno::SRCH));
}

#[test]
fn a_daemon_that_is_none_is_no_bus() {
    let start = |line: &str| {
        let bus = Bus::start(["sh", "-c", line].map(OsString::from).to_vec(), &Environment::default());
        bus.map_err(|error| error.to_string()).and_then(Bus::there).expect_err("it is none")
    };
    assert_eq!(start("exit 1"), "the session's bus has ended");
    assert!(start("echo unix:path=/nonexistent").contains("No such file"));
    assert!(Bus::start(vec!["wayferry-no-such-program".into()], &Environment::default()).is_err());
}

#[test]
fn addresses_are_escaped_and_the_configuration_is_xml() {
    assert_eq!(address(Path::new("/tmp/a b=&<ü/bus")), "unix:path=/tmp/a%20b%3d%26%3c%c3%bc/bus");
    let configuration = configure("unix:path=/tmp/x", &["/a&b".into(), "/c".into()]);
    assert!(configuration.contains("<listen>unix:path=/tmp/x</listen>"));
    assert!(configuration.contains("<servicedir>/a&amp;b</servicedir>\n<servicedir>/c</servicedir>"));
    assert!(services().contains(&"/usr/share/dbus-1/services".into()));
}
