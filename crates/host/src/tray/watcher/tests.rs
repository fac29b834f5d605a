//! With the real daemon, and programs as they are.

use std::collections::HashMap;
use std::ffi::OsString;

use rustix::event::{PollFd, PollFlags};
use wayferry_proto::TrayStatus;
use zbus::Variant;
use zbus::wire::ObjectPath;

use super::*;
use crate::edge::programs::Environment;
use crate::edge::wait::poll;
use crate::notes::bus::Bus;

/// A bus without what asks for a signal at this process's end, and a watcher on it.
fn watcher() -> (Watcher, Bus) {
    let daemon = ["sh", "-c", "exec dbus-daemon --nofork --nopidfile --print-address=1 --config-file=$0"];
    let bus = Bus::start(daemon.map(OsString::from).to_vec(), &Environment::default());
    let bus = bus.expect("it starts").there().expect("it is there");
    let watcher = Watcher::start(bus.address()).expect("it starts").there().expect("it is there");
    (watcher, bus)
}

/// What a program has in the tray.
struct Icon {
    title: &'static str,
    said: Sender<String>,
}

#[zbus::interface(name = "org.kde.StatusNotifierItem")]
impl Icon {
    #[zbus(property)]
    fn title(&self) -> &str {
        self.title
    }

    #[zbus(property)]
    fn status(&self) -> &'static str {
        "Passive"
    }

    #[zbus(property)]
    fn window_id(&self) -> u64 {
        7
    }

    #[zbus(property)]
    fn menu(&self) -> ObjectPath<'static> {
        ObjectPath::from_static_str("/menu").expect("a path")
    }

    fn activate(&self, x: i32, y: i32) {
        let _ = self.said.send(format!("activate {x} {y}"));
    }
}

/// Its menu.
struct Menu(Sender<String>);

type Node = (i32, HashMap<String, Variant<'static>>, Vec<Variant<'static>>);

#[zbus::interface(name = "com.canonical.dbusmenu")]
impl Menu {
    fn get_layout(&self, parent: i32, depth: i32, _names: Vec<String>) -> (u32, Node) {
        assert_eq!((parent, depth), (0, 6));
        let look = HashMap::from([("label".to_owned(), Variant::from("Open"))]);
        (1, (0, HashMap::new(), vec![Variant::from((3, look, Vec::<Variant<'_>>::new()))]))
    }

    fn about_to_show(&self, id: i32) -> bool {
        let _ = self.0.send(format!("about to show {id}"));
        true
    }

    fn event(&self, id: i32, event: &str, _data: Variant<'_>, _time: u32) {
        let _ = self.0.send(format!("{event} {id}"));
    }
}

/// A program with an icon at `/icon`, and what it is told.
fn program(bus: &Bus, title: &'static str) -> (Connection, Receiver<String>) {
    let (said, told) = channel();
    let builder = Builder::address(bus.address().as_str()).method_timeout(PATIENCE);
    let builder = builder.serve_at("/icon", Icon { title, said: said.clone() });
    let builder = builder.serve_at("/StatusNotifierItem", Icon { title, said: said.clone() });
    (zbus::block_on(builder.serve_at("/menu", Menu(said)).build()).expect("it connects"), told)
}

fn register(program: &Connection, service: &str) -> zbus::Result<()> {
    let (member, words) = ("RegisterStatusNotifierItem", (WATCHER, WATCHER_PATH));
    zbus::block_on(program.call_method(Some(words.0), words.1, Some(WATCHER), member, &service)).map(drop)
}

fn said(watcher: &Watcher) -> Said {
    loop {
        if let Some(said) = watcher.poll() {
            return said;
        }
        poll(&mut [PollFd::new(watcher.wake(), PollFlags::IN)], Some(Duration::from_secs(30))).expect("poll");
        watcher.clear_wake();
    }
}

#[test]
fn what_a_program_registers_is_read_and_it_hears_what_the_user_does() {
    let (watcher, bus) = watcher();
    let (program, told) = program(&bus, "Mail");
    register(&program, "/icon").expect("room");
    assert_eq!(said(&watcher), Said::New(1));
    register(&program, "/icon").expect("it is there");
    watcher.read(1);
    let Said::Item(item) = said(&watcher) else { panic!("it was read") };
    assert_eq!(
        (item.title.as_str(), item.status, item.has_menu, item.is_menu),
        ("Mail", TrayStatus::Passive, true, true)
    );
    watcher.read_menu(1);
    let Said::Menu(menu) = said(&watcher) else { panic!("it was read") };
    assert_eq!((menu.item, menu.entries[0].id, menu.entries[0].label.as_str()), (1, 3, "Open"));
    watcher.act(1, TrayAct::Activate);
    watcher.act(1, TrayAct::Choose(3));
    watcher.act(1, TrayAct::Open(0));
    let heard: Vec<String> = (0..3).map(|_| told.recv().expect("a program")).collect();
    assert_eq!(heard, ["activate 0 0", "clicked 3", "about to show 0"]);
    assert_eq!(said(&watcher), Said::MenuChanged(1), "the program has changed its menu");
}

#[test]
fn a_flood_of_signals_is_one_change_until_it_is_read() {
    let (watcher, bus) = watcher();
    let (program, _told) = program(&bus, "Mail");
    let (other, _told) = self::program(&bus, "Other");
    register(&program, "/icon").expect("room");
    assert_eq!(said(&watcher), Said::New(1));
    watcher.read(1);
    assert!(matches!(said(&watcher), Said::Item(_)));
    let signal = |connection: &Connection, path: &str, interface: &str| {
        let to = None::<&str>;
        zbus::block_on(connection.emit_signal(to, path, interface, "NewTitle", &())).expect("a bus");
    };
    // Of another program, of another object, and then its own.
    signal(&other, "/icon", ITEM);
    signal(&program, "/other", ITEM);
    (0..100).for_each(|_| signal(&program, "/icon", ITEM));
    assert_eq!(said(&watcher), Said::Changed(1));
    watcher.read_menu(1);
    assert!(matches!(said(&watcher), Said::Menu(_)), "no other change came before it");
    signal(&program, "/menu", MENU);
    assert_eq!(said(&watcher), Said::MenuChanged(1));
}

#[test]
fn an_icon_goes_with_its_program_and_the_ninth_is_refused() {
    let (watcher, bus) = watcher();
    let (first, _told) = program(&bus, "First");
    register(&first, "/icon").expect("room");
    assert_eq!(said(&watcher), Said::New(1));
    // As KDE's programs do: one connection has the icon, and another registers its name.
    let (owner, _told) = program(&bus, "Second");
    zbus::block_on(owner.request_name("org.example.Icon")).expect("it is free");
    register(&first, "org.example.Icon").expect("room");
    assert_eq!(said(&watcher), Said::New(2));
    watcher.read(2);
    assert!(matches!(said(&watcher), Said::Item(item) if item.title == "Second"));
    drop(owner);
    assert_eq!(said(&watcher), Said::Gone(2));
    register(&first, "org.example.Nothing").expect("room");
    assert_eq!(said(&watcher), Said::Gone(3), "no program has that name");
    for number in 0..7 {
        register(&first, &format!("/icon{number}")).expect("room");
        assert_eq!(said(&watcher), Said::New(4 + number));
    }
    assert!(register(&first, "/ninth").is_err());
    drop(first);
    let mut gone: Vec<Said> = (0..8).map(|_| said(&watcher)).collect();
    gone.sort_by_key(|said| format!("{said:?}"));
    assert!(gone.iter().all(|said| matches!(said, Said::Gone(_))), "{gone:?}");
}

#[test]
fn a_program_that_never_answers_holds_up_itself_alone() {
    let (watcher, bus) = watcher();
    // Nothing of it answers.
    let silent = zbus::block_on(Builder::address(bus.address().as_str()).build()).expect("it connects");
    register(&silent, "/icon").expect("room");
    assert_eq!(said(&watcher), Said::New(1));
    watcher.read(1);
    let (program, _told) = program(&bus, "Mail");
    register(&program, "/icon").expect("room");
    assert_eq!(said(&watcher), Said::New(2));
    watcher.read(2);
    assert!(matches!(said(&watcher), Said::Item(item) if item.id == 2));
    // What was not told is asked for again.
    assert_eq!(said(&watcher), Said::Changed(1));
}

#[test]
fn programs_read_and_hear_whether_there_is_a_tray() {
    let (watcher, bus) = watcher();
    let (program, _told) = program(&bus, "Mail");
    let rule = MatchRule::builder().msg_type(Type::Signal).interface(WATCHER).build().expect("a rule");
    let stream = zbus::block_on(MessageStream::for_match_rule(rule, &program, None));
    let mut signals = stream.expect("a stream");
    let mut heard = || {
        let next = poll_fn(|context| Pin::new(&mut signals).poll_next(context));
        let message = zbus::block_on(next).expect("a signal").expect("a good one");
        message.header().member().expect("a name").to_string()
    };
    let is_there = || {
        let words = (WATCHER, "IsStatusNotifierHostRegistered");
        let properties = Some("org.freedesktop.DBus.Properties");
        let reply = program.call_method(Some(WATCHER), WATCHER_PATH, properties, "Get", &words);
        let reply = zbus::block_on(reply).expect("an answer");
        reply.body().deserialize::<Variant<'_>>().expect("a value") == Variant::Bool(true)
    };
    assert!(!is_there());
    watcher.set_there(true);
    watcher.set_there(true);
    assert!(is_there());
    watcher.set_there(false);
    assert!(!is_there());
    assert_eq!([heard(), heard()], ["StatusNotifierHostRegistered", "StatusNotifierHostUnregistered"]);
}

#[test]
fn all_icons_go_with_the_bus() {
    let (watcher, bus) = watcher();
    let (program, _told) = program(&bus, "Mail");
    register(&program, "/icon").expect("room");
    assert_eq!(said(&watcher), Said::New(1));
    drop(bus);
    assert_eq!(said(&watcher), Said::Gone(1));
}
