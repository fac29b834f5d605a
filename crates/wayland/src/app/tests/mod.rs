//! The app half against a program played by hand, byte by byte.

mod answers;
mod better;
mod captures;
mod comparing;
mod covering;
mod errands;
mod fade;
mod gpu;
mod limits;
mod making;
mod memory;
mod pacing;
mod protocols;
mod replay;
mod room;
mod subsurfaces;
mod timing;
#[cfg(feature = "video")]
mod video;
mod view;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use wayferry_pixels::Compression;
use wayferry_proto::{HostTime, Time, UpdateSeq};

use super::connection::REQUESTS_AT_ONCE;
use super::fault::error_code;
use super::offer::Offer;
use super::*;
use crate::action::{Action, End, Update};
use crate::message::{self, MAX_AHEAD, Request, ToApp, ToDisplay, Unit, UnitContent, WireArg, WireId};
use crate::snapshot::{Global, Keymap, Output, Seat, Snapshot};
use crate::wire::{Arg, InBuffer, OutBuffer, RawMessage, ReadState, Socket};
use crate::{blob, tables};

const FRAME: Duration = Duration::from_nanos(16_666_667);

/// An event as the program sees it: object, message name, arguments.
#[derive(Debug)]
struct Event {
    object: u32,
    name: &'static str,
    args: Vec<Arg>,
}

/// A program that speaks raw requests to a [`Connection`], and a display side that only listens.
struct Rig {
    connection: Connection,
    program: Socket,
    server: Socket,
    received: InBuffer,
    interfaces: HashMap<u32, &'static str>,
    next_id: u32,
    now: Time,
    sent: Vec<ToDisplay>,
    updates: Vec<Update>,
    pipes: Vec<Action>,
}

fn desk() -> Rc<Desk> {
    let global = |(name, (interface, version)): (u32, (&str, u32))| Global {
        name,
        interface: interface.to_owned(),
        version,
    };
    let globals = [
        ("wl_compositor", 4),
        ("wl_subcompositor", 1),
        ("xdg_wm_base", 2),
        ("wl_data_device_manager", 3),
        ("wl_seat", 7),
        ("wl_output", 4),
    ];
    let snapshot = Snapshot {
        globals: (10..).zip(globals).map(global).collect(),
        outputs: vec![Output { global: 15, scale: 1, name: "OUT-1".to_owned(), ..Output::default() }],
        seats: vec![Seat {
            global: 14,
            capabilities: 3,
            name: "seat0".to_owned(),
            keymap: Some(Keymap { format: 1, hash: blob::hash(b"keys\0"), length: 5 }),
            repeat: Some((25, 600)),
        }],
        formats: vec![0, 1],
    };
    Rc::new(Desk { snapshot, ..Desk::default() })
}

impl Rig {
    fn new() -> Self {
        Self::with_desk(&desk())
    }

    fn with_desk(desk: &Rc<Desk>) -> Self {
        Self::with_config(Config::default(), desk)
    }

    fn with_config(config: Config, desk: &Rc<Desk>) -> Self {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        Self {
            connection: Connection::new(config, desk),
            program: Socket::new(a).unwrap(),
            server: Socket::new(b).unwrap(),
            received: InBuffer::new(),
            interfaces: HashMap::from([(1, "wl_display")]),
            next_id: 2,
            now: Time::from_millis(1000),
            sent: Vec::new(),
            updates: Vec::new(),
            pipes: Vec::new(),
        }
    }

    /// A fresh id for an object of that interface.
    fn id(&mut self, interface: &'static str) -> u32 {
        let id = self.next_id;
        self.next_id += 1;
        self.interfaces.insert(id, interface);
        id
    }

    fn request(&mut self, object: u32, name: &str, args: Vec<Arg>) {
        let interface = tables::interface(self.interfaces[&object]).unwrap();
        let opcode = tables::request_opcode(interface, name).unwrap();
        let mut out = OutBuffer::new(1 << 20);
        out.encode(object, opcode, args).unwrap();
        self.program.flush(&mut out).unwrap();
        self.server.read_into(self.connection.input()).unwrap();
        self.connection.process(self.now);
        self.collect();
    }

    /// What has left so far.
    fn collect(&mut self) {
        while let Some(action) = self.connection.poll_action() {
            match action {
                Action::Message(bytes) => self.sent.push(ToDisplay::decode(&bytes).unwrap()),
                Action::Update(update) => self.updates.push(update),
                other => self.pipes.push(other),
            }
        }
    }

    fn tell(&mut self, message: &ToApp) {
        self.connection.on_message(self.now, &message.encode());
        self.collect();
    }

    fn flush(&mut self, budget: u64) {
        self.flush_with(Credit { content: budget, ..Credit::default() });
    }

    fn flush_with(&mut self, mut credit: Credit) {
        for turn in [Turn::First, Turn::Rest, Turn::Better] {
            self.connection.flush(self.now, turn, &mut credit, &mut |_, _| None);
        }
        self.collect();
    }

    fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let flushed = self.server.flush(self.connection.output()).unwrap();
            let read = self.program.read_into(&mut self.received).unwrap();
            while let Some(raw) = self.received.next_message().unwrap() {
                let interface = tables::interface(self.interfaces[&raw.object]).unwrap();
                let desc = &interface.events[usize::from(raw.opcode)];
                let args = wire_args(interface, &raw, &mut self.received);
                events.push(Event { object: raw.object, name: desc.name, args });
            }
            if flushed && read == ReadState::WouldBlock {
                return events;
            }
        }
    }

    fn bind(&mut self, interface: &'static str) -> u32 {
        let mut offers = self.connection.offering.offers().iter();
        let Offer { name, version, .. } = *offers.find(|offer| offer.interface == interface).unwrap();
        let registry = self.id("wl_registry");
        self.request(1, "get_registry", vec![Arg::NewId(registry)]);
        let id = self.id(interface);
        let args = vec![
            Arg::Uint(name),
            Arg::Str(Some(interface.as_bytes().to_vec())),
            Arg::Uint(version),
            Arg::NewId(id),
        ];
        self.request(registry, "bind", args);
        id
    }

    fn surface(&mut self, compositor: u32) -> u32 {
        let id = self.id("wl_surface");
        self.request(compositor, "create_surface", vec![Arg::NewId(id)]);
        id
    }

    /// Gives a surface the role of a window: its `xdg_surface` and `xdg_toplevel`.
    fn toplevel(&mut self, surface: u32) -> (u32, u32) {
        let base = self.bind("xdg_wm_base");
        let xdg = self.id("xdg_surface");
        self.request(base, "get_xdg_surface", vec![Arg::NewId(xdg), Arg::Object(surface)]);
        let toplevel = self.id("xdg_toplevel");
        self.request(xdg, "get_toplevel", vec![Arg::NewId(toplevel)]);
        (xdg, toplevel)
    }

    fn commit(&mut self, surface: u32) {
        self.request(surface, "commit", vec![]);
    }

    /// A buffer of `width` × `height` pixels, all bytes `value`.
    fn buffer(&mut self, shm: u32, width: i32, height: i32, value: u8) -> u32 {
        self.buffer_of(shm, width, height, &vec![value; (width * height * 4) as usize])
    }

    /// A square buffer that no compression makes smaller, another one for each `value`.
    fn grainy(&mut self, shm: u32, side: i32, value: u8) -> u32 {
        let mut state = u64::from(value);
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .take((side * side * 4) as usize)
        .collect();
        self.buffer_of(shm, side, side, &bytes)
    }

    fn buffer_of(&mut self, shm: u32, width: i32, height: i32, bytes: &[u8]) -> u32 {
        let pool = self.id("wl_shm_pool");
        self.request(
            shm,
            "create_pool",
            vec![Arg::NewId(pool), Arg::Fd(file(bytes)), Arg::Int(width * height * 4)],
        );
        let buffer = self.id("wl_buffer");
        let numbers = [0, width, height, width * 4].map(Arg::Int);
        let args = std::iter::once(Arg::NewId(buffer)).chain(numbers).chain([Arg::Uint(0)]).collect();
        self.request(pool, "create_buffer", args);
        buffer
    }

    fn attach(&mut self, surface: u32, buffer: u32) {
        self.request(surface, "attach", vec![Arg::Object(buffer), Arg::Int(0), Arg::Int(0)]);
        self.request(surface, "damage", [0, 0, 1000, 1000].map(Arg::Int).into());
    }

    fn frame(&mut self, surface: u32) -> u32 {
        let id = self.id("wl_callback");
        self.request(surface, "frame", vec![Arg::NewId(id)]);
        id
    }

    /// A window that the display side knows and that has content.
    fn window(&mut self) -> (u32, u32) {
        let compositor = self.bind("wl_compositor");
        let shm = self.bind("wl_shm");
        let surface = self.surface(compositor);
        let buffer = self.buffer(shm, 4, 4, 1);
        self.attach(surface, buffer);
        self.commit(surface);
        self.events();
        (surface, shm)
    }

    /// The units that have left since; the display side has applied them.
    fn units(&mut self) -> Vec<Unit> {
        let units = self.unapplied_units();
        for Unit { surface, number, .. } in &units {
            self.tell(&ToApp::Applied { surface: *surface, unit: *number });
        }
        units
    }

    fn unapplied_units(&mut self) -> Vec<Unit> {
        let (units, rest) = std::mem::take(&mut self.sent)
            .into_iter()
            .partition(|message| matches!(message, ToDisplay::Unit(_)));
        self.sent = rest;
        let unit = |message: ToDisplay| if let ToDisplay::Unit(unit) = message { Some(unit) } else { None };
        let units: Vec<ToDisplay> = units;
        units.into_iter().filter_map(unit).collect()
    }
}

fn wire_args(
    interface: &'static wayland_backend::protocol::Interface,
    raw: &RawMessage,
    buffer: &mut InBuffer,
) -> Vec<Arg> {
    crate::wire::decode(&interface.events[usize::from(raw.opcode)], interface, raw, buffer.fds_mut()).unwrap()
}

fn file(bytes: &[u8]) -> OwnedFd {
    let fd = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
    rustix::io::pwrite(&fd, bytes, 0).unwrap();
    fd
}

fn names(events: &[Event]) -> Vec<(u32, &'static str)> {
    events.iter().map(|event| (event.object, event.name)).collect()
}

#[test]
fn sync_is_answered_here_and_its_id_is_free_again() {
    let mut rig = Rig::new();
    let callback = rig.id("wl_callback");
    rig.request(1, "sync", vec![Arg::NewId(callback)]);
    assert_eq!(names(&rig.events()), [(callback, "done"), (1, "delete_id")]);
    assert!(rig.sent.is_empty());
    rig.request(1, "sync", vec![Arg::NewId(callback)]);
    assert_eq!(names(&rig.events()), [(callback, "done"), (1, "delete_id")]);
}

#[test]
fn the_buffer_comes_back_at_commit_and_the_update_precedes_its_unit() {
    let mut rig = Rig::new();
    let compositor = rig.bind("wl_compositor");
    let shm = rig.bind("wl_shm");
    let surface = rig.surface(compositor);
    let buffer = rig.buffer(shm, 4, 4, 7);
    rig.events();
    rig.attach(surface, buffer);
    rig.commit(surface);
    assert_eq!(names(&rig.events()), [(buffer, "release")]);
    let unit = rig.units().remove(0);
    assert_eq!((unit.number, unit.content), (1, UnitContent::Update(UpdateSeq(1))));
    assert!(rig.updates[0].fresh);
}

/// A program that never pauses must not keep its own frames from leaving.
#[test]
fn requests_are_handled_a_few_at_a_time() {
    let mut rig = Rig::new();
    let (surface, _) = rig.window();
    let mut out = OutBuffer::new(1 << 20);
    let commit = tables::request_opcode(tables::interface("wl_surface").unwrap(), "commit").unwrap();
    for _ in 0..3 * REQUESTS_AT_ONCE {
        out.encode(surface, commit, vec![]).unwrap();
    }
    rig.program.flush(&mut out).unwrap();
    rig.server.read_into(rig.connection.input()).unwrap();
    let waiting = rig.connection.input().len();
    rig.connection.process(rig.now);
    assert_eq!(rig.connection.input().len(), waiting / 3 * 2);
    assert_eq!(rig.connection.next_timeout(), Some(rig.now), "there are more");
    rig.connection.on_timeout(rig.now);
    rig.connection.on_timeout(rig.now);
    assert!(rig.connection.input().is_empty());
}

#[test]
fn equal_pixels_cost_nothing() {
    let mut rig = Rig::new();
    let (surface, shm) = rig.window();
    rig.now += FRAME;
    let buffer = rig.buffer(shm, 4, 4, 1);
    rig.attach(surface, buffer);
    rig.commit(surface);
    rig.flush(u64::MAX);
    assert_eq!(rig.updates.len(), 1);
    assert_eq!(rig.units().last().unwrap().content, UnitContent::Keep);
}

#[test]
fn sync_waits_for_the_answer_to_an_initial_commit() {
    let mut rig = Rig::new();
    let compositor = rig.bind("wl_compositor");
    let surface = rig.surface(compositor);
    rig.toplevel(surface);
    rig.commit(surface);
    assert_eq!(rig.units().len(), 1);
    rig.events();
    rig.sent.clear();
    let callback = rig.id("wl_callback");
    rig.request(1, "sync", vec![Arg::NewId(callback)]);
    let [ToDisplay::Request(Request { args, .. })] = rig.sent.as_slice() else { panic!("{:?}", rig.sent) };
    let [WireArg::NewId(wire)] = args[..] else { panic!("{args:?}") };
    assert!(rig.events().is_empty());
    rig.tell(&ToApp::Event(Request { object: wire, opcode: 0, args: vec![WireArg::Uint(0)] }));
    rig.tell(&ToApp::Deleted(wire));
    assert_eq!(names(&rig.events()), [(callback, "done"), (1, "delete_id")]);
    let second = rig.id("wl_callback");
    rig.request(1, "sync", vec![Arg::NewId(second)]);
    assert_eq!(names(&rig.events()), [(second, "done"), (1, "delete_id")], "nothing is owed any more");
}

#[test]
fn pixels_of_a_buffer_that_was_destroyed_while_attached_are_shown() {
    let mut rig = Rig::new();
    let compositor = rig.bind("wl_compositor");
    let shm = rig.bind("wl_shm");
    let surface = rig.surface(compositor);
    let buffer = rig.buffer(shm, 2, 2, 9);
    rig.attach(surface, buffer);
    rig.request(buffer, "destroy", vec![]);
    rig.commit(surface);
    assert_eq!(rig.updates.len(), 1);
    assert_eq!(rig.connection.surfaces[&surface].painter.content().unwrap().pixels(), [9; 16]);
    assert!(rig.connection.end().is_none());
}

/// A surface to which a buffer is attached whose memory is not there, so that it shows when it is read.
fn unreadable(rig: &mut Rig) -> (u32, u32) {
    let compositor = rig.bind("wl_compositor");
    let shm = rig.bind("wl_shm");
    let surface = rig.surface(compositor);
    let pool = rig.id("wl_shm_pool");
    rig.request(shm, "create_pool", vec![Arg::NewId(pool), Arg::Fd(file(&[0; 8])), Arg::Int(64)]);
    let buffer = rig.id("wl_buffer");
    let args = std::iter::once(Arg::NewId(buffer)).chain([0, 4, 4, 16].map(Arg::Int)).chain([Arg::Uint(0)]);
    rig.request(pool, "create_buffer", args.collect());
    rig.attach(surface, buffer);
    (surface, buffer)
}

/// It was read for each surface that it was attached to, whole: one request took without end.
#[test]
fn regression_a_buffer_that_is_destroyed_is_not_read() {
    let mut rig = Rig::new();
    let (_, buffer) = unreadable(&mut rig);
    rig.request(buffer, "destroy", vec![]);
    assert!(rig.connection.end().is_none(), "{:?}", rig.connection.end());
}

#[test]
fn a_pool_shorter_than_announced_ends_only_this_program() {
    let mut rig = Rig::new();
    let (surface, _) = unreadable(&mut rig);
    rig.commit(surface);
    assert!(matches!(rig.connection.end(), Some(End::AppViolation(what)) if what.contains("ends at byte")));
    assert_eq!(rig.events().last().unwrap().name, "error");
}

#[test]
fn a_flood_of_requests_waits_for_the_display() {
    let mut rig = Rig::new();
    let compositor = rig.bind("wl_compositor");
    let surface = rig.surface(compositor);
    let (_, toplevel) = rig.toplevel(surface);
    let title = || vec![Arg::Str(Some(vec![b'x'; 4000]))];
    while !rig.connection.stalled() {
        rig.request(toplevel, "set_title", title());
    }
    let ahead = rig.connection.pacing.sent();
    assert!(ahead < MAX_AHEAD + 8192);
    rig.request(toplevel, "set_title", title());
    assert_eq!(rig.connection.pacing.sent(), ahead, "the request waits unread");
    rig.tell(&ToApp::Consumed { bytes: ahead });
    assert!(rig.connection.pacing.sent() > ahead, "and is handled once the display has caught up");
    rig.tell(&ToApp::Consumed { bytes: ahead + (1 << 20) });
    assert!(matches!(rig.connection.end(), Some(End::PeerViolation(_))));
}

#[test]
fn keyboards_have_their_keymap_without_asking() {
    let mut rig = Rig::new();
    let seat = rig.bind("wl_seat");
    let keyboard = rig.id("wl_keyboard");
    rig.request(seat, "get_keyboard", vec![Arg::NewId(keyboard)]);
    rig.connection.on_blob(rig.now, blob::hash(b"keys\0"), &Rc::from(b"keys\0".as_slice()));
    rig.collect();
    let told = rig.events();
    assert!(
        names(&told).contains(&(keyboard, "keymap")) && names(&told).contains(&(keyboard, "repeat_info"))
    );
    assert!(rig.sent.iter().any(|message| matches!(message, ToDisplay::KeymapKnown { .. })));
}

/// The snapshot and the compositor's own events say the same.
#[test]
fn a_keymap_and_a_repeat_rate_are_told_once() {
    let mut rig = Rig::new();
    let seat = rig.bind("wl_seat");
    let keyboard = rig.id("wl_keyboard");
    rig.request(seat, "get_keyboard", vec![Arg::NewId(keyboard)]);
    let hash = blob::hash(b"keys\0");
    rig.connection.on_blob(rig.now, hash, &Rc::from(b"keys\0".as_slice()));
    rig.collect();
    rig.events();
    let object = rig.connection.objects.wire(keyboard).unwrap();
    let keymap = || vec![WireArg::Uint(1), WireArg::Blob { hash, length: 5 }, WireArg::Uint(5)];
    let repeat = |rate| vec![WireArg::Int(rate), WireArg::Int(600)];
    for (opcode, args) in [(0, keymap()), (5, repeat(25)), (5, repeat(30)), (5, repeat(30)), (0, keymap())] {
        rig.tell(&ToApp::Event(Request { object, opcode, args }));
    }
    assert_eq!(names(&rig.events()), [(keyboard, "repeat_info")]);
}

#[test]
fn an_event_that_needs_a_blob_holds_up_the_ones_behind() {
    let mut rig = Rig::new();
    let seat = rig.bind("wl_seat");
    let keyboard = rig.id("wl_keyboard");
    rig.request(seat, "get_keyboard", vec![Arg::NewId(keyboard)]);
    let wire = rig.connection.objects.wire(keyboard).unwrap();
    rig.events();
    let hash = blob::hash(b"other\0");
    let keymap = vec![WireArg::Uint(1), WireArg::Blob { hash, length: 6 }, WireArg::Uint(6)];
    rig.tell(&ToApp::Event(Request { object: wire, opcode: 0, args: keymap }));
    let key = [7, 100, 30, 1].map(WireArg::Uint).to_vec();
    rig.tell(&ToApp::Event(Request { object: wire, opcode: 3, args: key }));
    assert!(rig.events().is_empty());
    rig.connection.on_blob(rig.now, hash, &Rc::from(b"other\0".as_slice()));
    let names = names(&rig.events()).iter().map(|(_, name)| *name).collect::<Vec<_>>();
    assert_eq!(names[..2], ["keymap", "key"]);
}

/// Damage in surface coordinates means other pixels with a viewport than without.
#[test]
fn damage_is_not_mapped_by_a_viewport_that_is_destroyed() {
    let mut rig = Rig::new();
    let (surface, shm) = rig.window();
    let viewporter = rig.bind("wp_viewporter");
    let viewport = rig.id("wp_viewport");
    rig.request(viewporter, "get_viewport", vec![Arg::NewId(viewport), Arg::Object(surface)]);
    rig.request(viewport, "set_destination", [2, 2].map(Arg::Int).into());
    rig.commit(surface);
    rig.request(viewport, "destroy", vec![]);
    rig.commit(surface);
    rig.flush(u64::MAX);
    rig.now += FRAME;
    rig.updates.clear();
    let mut pixels = vec![1; 64];
    pixels[60..].fill(9);
    let buffer = rig.buffer_of(shm, 4, 4, &pixels);
    rig.request(surface, "attach", vec![Arg::Object(buffer), Arg::Int(0), Arg::Int(0)]);
    rig.request(surface, "damage", [3, 3, 1, 1].map(Arg::Int).into());
    // The memory of a buffer that is used for the first time is compared as a whole.
    rig.commit(surface);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    assert_eq!(rig.updates.len(), 1);
    assert_eq!(rig.connection.surfaces[&surface].shape.destination, None);
}

/// Its library names no surface then, over which foot 1.13 ends by a signal; keys behind it are for no window.
#[test]
fn regression_a_focus_that_comes_to_a_destroyed_window_is_not_told() {
    let mut rig = Rig::new();
    let (compositor, seat) = (rig.bind("wl_compositor"), rig.bind("wl_seat"));
    let (surface, other) = (rig.surface(compositor), rig.surface(compositor));
    let keyboard = rig.id("wl_keyboard");
    rig.request(seat, "get_keyboard", vec![Arg::NewId(keyboard)]);
    let wires = [surface, other].map(|id| WireArg::Object(rig.connection.objects.wire(id).unwrap()));
    let [gone, there] = wires;
    let device = rig.connection.objects.wire(keyboard).unwrap();
    rig.request(surface, "destroy", vec![]);
    rig.events();
    let enter = |surface: &WireArg| vec![WireArg::Uint(7), surface.clone(), WireArg::Array(vec![])];
    let key = |state| [8, 100, 30, state].map(WireArg::Uint).to_vec();
    rig.event(keyboard, "enter", enter(&gone));
    rig.event(keyboard, "modifiers", [9, 0, 0, 0, 0].map(WireArg::Uint).to_vec());
    rig.event(keyboard, "key", key(1));
    rig.event(keyboard, "leave", vec![WireArg::Uint(10), gone.clone()]);
    assert_eq!(names(&rig.events()), [(keyboard, "modifiers")]);
    assert_eq!(rig.connection.devices.next_timeout(Duration::ZERO), None, "no key is held");

    rig.event(keyboard, "enter", enter(&gone));
    rig.event(keyboard, "enter", enter(&there));
    rig.event(keyboard, "key", key(1));
    rig.event(keyboard, "leave", vec![WireArg::Uint(10), there]);
    assert_eq!(names(&rig.events()), ["enter", "key", "leave"].map(|name| (keyboard, name)));

    let WireArg::Object(wire) = gone else { panic!("an object") };
    rig.tell(&ToApp::Deleted(wire));
    rig.events();
    rig.tell(&ToApp::Event(Request { object: device, opcode: 1, args: enter(&gone) }));
    assert!(rig.events().is_empty(), "an id that may be another object's by now");
}

#[test]
fn held_keys_are_released_after_silence() {
    let mut rig = Rig::new();
    let seat = rig.bind("wl_seat");
    let keyboard = rig.id("wl_keyboard");
    rig.request(seat, "get_keyboard", vec![Arg::NewId(keyboard)]);
    let wire = rig.connection.objects.wire(keyboard).unwrap();
    rig.tell(&ToApp::Event(Request {
        object: wire,
        opcode: 3,
        args: [7, 100, 30, 1].map(WireArg::Uint).to_vec(),
    }));
    rig.events();
    rig.now += Duration::from_millis(250);
    rig.connection.on_timeout(rig.now);
    let released = rig.events();
    assert!(matches!(released[0].args[..], [_, _, Arg::Uint(30), Arg::Uint(0)]), "{released:?}");
    rig.tell(&ToApp::Event(Request {
        object: wire,
        opcode: 3,
        args: [8, 100, 30, 0].map(WireArg::Uint).to_vec(),
    }));
    assert!(rig.events().is_empty(), "the real release is swallowed");
}

/// The last word about the age of events must not make later ones older and older.
#[test]
fn regression_presses_long_after_a_silence_reach_the_program() {
    let mut rig = Rig::new();
    let seat = rig.bind("wl_seat");
    let pointer = rig.id("wl_pointer");
    rig.request(seat, "get_pointer", vec![Arg::NewId(pointer)]);
    let wire = rig.connection.objects.wire(pointer).unwrap();
    rig.events();
    let button = |rig: &mut Rig, code: u32, state: u32| {
        let args = [7, 0, code, state].map(WireArg::Uint).to_vec();
        rig.tell(&ToApp::Event(Request { object: wire, opcode: 3, args }));
        !rig.events().is_empty()
    };
    rig.now += Duration::from_secs(60);
    let now_ns = u64::try_from(rig.now.since_start().as_nanos()).unwrap();
    rig.tell(&ToApp::Read { time_ns: now_ns - 3_000_000_000 });
    assert!(!button(&mut rig, 30, 1), "pressed three seconds ago");
    rig.tell(&ToApp::Read { time_ns: now_ns });
    assert!(!button(&mut rig, 30, 0), "the end of what was dropped");
    rig.now += Duration::from_secs(600);
    assert!(button(&mut rig, 31, 1), "ten minutes later");
    assert!(button(&mut rig, 31, 0));
}

#[test]
fn a_pipe_for_a_dead_object_sees_the_end_at_once() {
    let mut rig = Rig::new();
    let manager = rig.bind("wl_data_device_manager");
    let source = rig.id("wl_data_source");
    rig.request(manager, "create_data_source", vec![Arg::NewId(source)]);
    let wire = rig.connection.objects.wire(source).unwrap();
    rig.request(source, "destroy", vec![]);
    let send = vec![WireArg::Str(Some(b"text/plain".to_vec())), WireArg::Pipe(1)];
    rig.tell(&ToApp::Event(Request { object: wire, opcode: 1, args: send }));
    let Some(Action::PipeOut { fd, .. }) = rig.pipes.pop() else { panic!("no pipe") };
    assert_eq!(rustix::io::read(&fd, &mut [0; 1]).unwrap(), 0);
}

/// A program that may make virtual keyboards, and has one.
fn virtual_keyboard() -> (Rig, u32) {
    let manager = "zwp_virtual_keyboard_manager_v1";
    let mut desk = Desk::clone(&desk());
    desk.snapshot.globals.push(Global { name: 30, interface: manager.to_owned(), version: 1 });
    let mut rig = Rig::with_desk(&Rc::new(desk.clone()));
    let allow = Config { allow: vec![manager.to_owned()], ..Config::default() };
    rig.connection = Connection::new(allow, &Rc::new(desk));
    let (manager, seat) = (rig.bind(manager), rig.bind("wl_seat"));
    let keyboard = rig.id("zwp_virtual_keyboard_v1");
    rig.request(manager, "create_virtual_keyboard", vec![Arg::Object(seat), Arg::NewId(keyboard)]);
    rig.sent.clear();
    rig.pipes.clear();
    (rig, keyboard)
}

#[test]
fn a_virtual_keyboards_keymap_crosses_as_a_blob() {
    let (mut rig, keyboard) = virtual_keyboard();
    let args = vec![Arg::Uint(1), Arg::Fd(file(b"xkb_keymap {}\0 and more")), Arg::Uint(14)];
    rig.request(keyboard, "keymap", args);
    let hash = blob::hash(b"xkb_keymap {}\0");
    assert!(matches!(&rig.pipes[..], [Action::Blob { hash: h, bytes }] if *h == hash && bytes.len() == 14));
    let [ToDisplay::Request(Request { args, .. })] = &rig.sent[..] else { panic!("{:?}", rig.sent) };
    assert_eq!(args[..], [WireArg::Uint(1), WireArg::Blob { hash, length: 14 }, WireArg::Uint(14)]);
}

#[test]
fn a_keymap_that_cannot_be_read_ends_only_this_program() {
    for (size, what) in [(20, "ends at byte 4"), (u32::MAX, "at most")] {
        let (mut rig, keyboard) = virtual_keyboard();
        rig.request(keyboard, "keymap", vec![Arg::Uint(1), Arg::Fd(file(b"xkb\0")), Arg::Uint(size)]);
        let end = rig.connection.end();
        assert!(matches!(end, Some(End::AppViolation(text)) if text.contains(what)), "{end:?}");
        assert!(rig.sent.is_empty());
    }
}

/// A source of the regular clipboard and the device of its seat.
fn clipboard(rig: &mut Rig) -> (u32, u32) {
    let (manager, seat) = (rig.bind("wl_data_device_manager"), rig.bind("wl_seat"));
    let (source, device) = (rig.id("wl_data_source"), rig.id("wl_data_device"));
    rig.request(manager, "create_data_source", vec![Arg::NewId(source)]);
    rig.request(manager, "get_data_device", vec![Arg::NewId(device), Arg::Object(seat)]);
    (source, device)
}

/// A popup of nothing, as far as the app half cares.
fn popup(rig: &mut Rig) -> u32 {
    let (compositor, base) = (rig.bind("wl_compositor"), rig.bind("xdg_wm_base"));
    let surface = rig.surface(compositor);
    let (xdg, positioner, popup) = (rig.id("xdg_surface"), rig.id("xdg_positioner"), rig.id("xdg_popup"));
    rig.request(base, "get_xdg_surface", vec![Arg::NewId(xdg), Arg::Object(surface)]);
    rig.request(base, "create_positioner", vec![Arg::NewId(positioner)]);
    rig.request(xdg, "get_popup", vec![Arg::NewId(popup), Arg::Object(0), Arg::Object(positioner)]);
    popup
}

/// Another display is attached; its serials begin far away, and the program has seen one.
fn attach_another(rig: &mut Rig) -> u32 {
    rig.connection.line.serials_mut().for_app(7);
    rig.connection.line.serials_mut().begin_epoch();
    let serial = rig.connection.line.serials_mut().for_app(100);
    while !rig.events().is_empty() {}
    rig.sent.clear();
    serial
}

const STALE: Arg = Arg::Uint(7);

#[test]
fn a_stale_grab_dismisses_its_popup() {
    let mut rig = Rig::new();
    let (popup, seat) = (popup(&mut rig), rig.bind("wl_seat"));
    let serial = attach_another(&mut rig);
    rig.request(popup, "grab", vec![Arg::Object(seat), STALE]);
    assert_eq!(names(&rig.events()), [(popup, "popup_done")]);
    assert!(rig.sent.is_empty());
    rig.request(popup, "grab", vec![Arg::Object(seat), Arg::Uint(serial)]);
    assert_eq!((names(&rig.events()), rig.sent.len()), (vec![], 1));
}

#[test]
fn a_stale_selection_and_a_stale_drag_cancel_their_source() {
    let mut rig = Rig::new();
    let (source, device) = clipboard(&mut rig);
    let (origin, _) = rig.window();
    attach_another(&mut rig);
    rig.request(device, "set_selection", vec![Arg::Object(source), STALE]);
    assert_eq!(names(&rig.events()), [(source, "cancelled")]);
    let args = vec![Arg::Object(source), Arg::Object(origin), Arg::Object(0), STALE];
    rig.request(device, "start_drag", args);
    assert_eq!(names(&rig.events()), [(source, "cancelled")]);
    rig.request(device, "set_selection", vec![Arg::Object(0), STALE]);
    assert!(rig.events().is_empty() && rig.sent.is_empty(), "nothing is owed without a source");
}

#[test]
fn a_selection_that_no_compositor_knows_is_cancelled() {
    let mut rig = Rig::new();
    let manager = rig.bind("zwp_primary_selection_device_manager_v1");
    let seat = rig.bind("wl_seat");
    let source = rig.id("zwp_primary_selection_source_v1");
    let device = rig.id("zwp_primary_selection_device_v1");
    rig.request(manager, "create_source", vec![Arg::NewId(source)]);
    rig.request(manager, "get_device", vec![Arg::NewId(device), Arg::Object(seat)]);
    rig.events();
    rig.sent.clear();
    rig.request(device, "set_selection", vec![Arg::Object(source), STALE]);
    assert_eq!(names(&rig.events()), [(source, "cancelled")]);
    assert!(rig.sent.is_empty());
}

#[test]
fn an_object_that_does_not_exist_is_an_error_that_names_it() {
    let mut rig = Rig::new();
    rig.interfaces.insert(77, "wl_surface");
    rig.request(77, "commit", vec![]);
    assert!(matches!(rig.connection.end(), Some(End::AppViolation(what)) if what.contains("77")));
}

#[test]
fn the_peers_nonsense_ends_the_connection_with_a_reason() {
    for bytes in [&b"\xff"[..], &[0, 1, 2, 3], &[]] {
        let mut rig = Rig::new();
        rig.connection.on_message(rig.now, bytes);
        assert!(matches!(rig.connection.end(), Some(End::PeerViolation(_))));
    }
}

proptest! {
    /// A program that sends anything at all ends at most itself.
    #[test]
    fn hostile_programs_never_panic(words in proptest::collection::vec((0u32..12, 0u16..14, proptest::collection::vec(0u32..40, 0..8)), 1..60)) {
        let mut rig = Rig::new();
        let registry = rig.id("wl_registry");
        rig.request(1, "get_registry", vec![Arg::NewId(registry)]);
        for (object, opcode, body) in words {
            let mut bytes = object.to_ne_bytes().to_vec();
            bytes.extend(((8 + 4 * body.len() as u32) << 16 | u32::from(opcode)).to_ne_bytes());
            body.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
            if rig.connection.input().push(&bytes, []).is_err() {
                break;
            }
            rig.connection.process(rig.now);
        }
        rig.flush(u64::MAX);
    }
}
