//! The watcher against a compositor played by hand.

use std::collections::HashMap;
use std::os::unix::net::UnixStream;

use wayferry_proto::Time;
use wayland_backend::protocol::Interface;

use super::super::buffers::Memory;
use super::super::{Config, Connection, Watcher};
use super::rig::GLOBALS;
use crate::action::{Action, End};
use crate::snapshot::{Keymap, Snapshot};
use crate::tables;
use crate::wire::{self, Arg, InBuffer, OutBuffer, ReadState, Socket};

/// A compositor with one output and one seat.
struct Desk {
    socket: Socket,
    input: InBuffer,
    out: OutBuffer,
    objects: HashMap<u32, &'static Interface>,
    globals: Vec<(&'static str, u32)>,
    registry: u32,
    seat: u32,
    keyboard: u32,
    output: u32,
    capabilities: u32,
    keymap: &'static [u8],
}

impl Desk {
    fn new(globals: &[(&'static str, u32)]) -> (Self, Socket) {
        let (near, far) = UnixStream::pair().unwrap();
        let desk = Self {
            socket: Socket::new(far.into()).unwrap(),
            input: InBuffer::new(),
            out: OutBuffer::new(1 << 20),
            objects: HashMap::from([(1, tables::interface("wl_display").unwrap())]),
            globals: globals.to_vec(),
            registry: 0,
            seat: 0,
            keyboard: 0,
            output: 0,
            capabilities: 3,
            keymap: b"first\0",
        };
        (desk, Socket::new(near.into()).unwrap())
    }

    fn event(&mut self, object: u32, name: &str, args: Vec<Arg>) {
        let opcode = tables::event_opcode(self.objects[&object], name).unwrap();
        self.out.encode(object, opcode, args).unwrap();
    }

    fn serve(&mut self) -> bool {
        let mut any = false;
        while self.socket.read_into(&mut self.input).unwrap() == ReadState::Progress {
            any = true;
            while let Some(raw) = self.input.next_message().unwrap() {
                let interface = self.objects[&raw.object];
                let desc = &interface.requests[usize::from(raw.opcode)];
                let args = wire::decode(desc, interface, &raw, self.input.fds_mut()).unwrap();
                for arg in &args {
                    if let (Arg::NewId(id), Some(child)) = (arg, desc.child_interface) {
                        assert!(self.objects.insert(*id, child).is_none());
                    }
                }
                self.handle(raw.object, interface.name, desc.name, &args);
                if desc.is_destructor {
                    self.objects.remove(&raw.object);
                    self.event(1, "delete_id", vec![Arg::Uint(raw.object)]);
                }
            }
        }
        any
    }

    fn handle(&mut self, object: u32, interface: &str, request: &str, args: &[Arg]) {
        match (interface, request, args) {
            ("wl_display", "sync", [Arg::NewId(id)]) => {
                self.event(*id, "done", vec![Arg::Uint(0)]);
                self.objects.remove(id);
                self.event(1, "delete_id", vec![Arg::Uint(*id)]);
            }
            ("wl_display", "get_registry", [Arg::NewId(id)]) => {
                self.registry = *id;
                for (index, (name, version)) in self.globals.clone().into_iter().enumerate() {
                    self.list(index as u32 + 1, name, version);
                }
            }
            ("wl_registry", "bind", [_, Arg::Str(Some(interface)), _, Arg::NewId(id)]) => {
                let name = String::from_utf8(interface.clone()).unwrap();
                assert!(self.objects.insert(*id, tables::interface(&name).unwrap()).is_none());
                match &*name {
                    "wl_seat" => {
                        self.seat = *id;
                        self.event(*id, "capabilities", vec![Arg::Uint(self.capabilities)]);
                        self.event(*id, "name", vec![string("seat0")]);
                    }
                    "wl_output" => {
                        self.output = *id;
                        self.describe_output(1);
                    }
                    "wl_shm" => self.event(*id, "format", vec![Arg::Uint(1)]),
                    _ => {}
                }
            }
            ("wl_seat", "get_keyboard", [Arg::NewId(id)]) => {
                self.keyboard = *id;
                self.tell_keymap();
                self.event(*id, "repeat_info", vec![Arg::Int(25), Arg::Int(600)]);
            }
            _ => assert_ne!(object, 0),
        }
    }

    fn list(&mut self, name: u32, interface: &str, version: u32) {
        self.event(self.registry, "global", vec![Arg::Uint(name), string(interface), Arg::Uint(version)]);
    }

    fn describe_output(&mut self, scale: i32) {
        let mut geometry = Vec::from([10, 20, 300, 200, 0].map(Arg::Int));
        geometry.extend([string("maker"), string("model"), Arg::Int(0)]);
        self.event(self.output, "geometry", geometry);
        self.event(self.output, "mode", vec![Arg::Uint(3), Arg::Int(1280), Arg::Int(720), Arg::Int(60_000)]);
        self.event(self.output, "scale", vec![Arg::Int(scale)]);
        self.event(self.output, "name", vec![string("HEADLESS-1")]);
        self.event(self.output, "done", vec![]);
    }

    fn tell_keymap(&mut self) {
        let memory = Memory::new(self.keymap.len()).unwrap();
        memory.write(0, self.keymap).unwrap();
        let fd = Arg::Fd(memory.share().unwrap());
        let length = Arg::Uint(self.keymap.len() as u32);
        self.event(self.keyboard, "keymap", vec![Arg::Uint(1), fd, length]);
    }
}

fn string(text: &str) -> Arg {
    Arg::Str(Some(text.as_bytes().to_vec()))
}

/// Lets both talk until they are silent; gives the snapshots.
fn run(watcher: &mut Watcher, socket: &Socket, desk: &mut Desk) -> Vec<Snapshot> {
    let mut snapshots = Vec::new();
    loop {
        socket.flush(watcher.output()).unwrap();
        let mut moved = desk.serve();
        desk.socket.flush(&mut desk.out).unwrap();
        while socket.read_into(watcher.input()).unwrap() == ReadState::Progress {
            moved = true;
            snapshots.extend(watcher.process(Time::ZERO));
        }
        if !moved {
            return snapshots;
        }
    }
}

fn blobs(watcher: &mut Watcher) -> Vec<Vec<u8>> {
    let actions = std::iter::from_fn(|| watcher.poll_action());
    actions
        .map(|action| match action {
            Action::Blob { bytes, .. } => bytes,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn the_first_snapshot_is_complete() {
    let (mut desk, socket) = Desk::new(GLOBALS);
    let mut watcher = Watcher::new();
    let snapshots = run(&mut watcher, &socket, &mut desk);
    let [snapshot] = &snapshots[..] else { panic!("{snapshots:?}") };
    assert_eq!(snapshot.globals.len(), GLOBALS.len());
    assert_eq!(snapshot.version("xdg_wm_base"), Some(2));
    assert_eq!(snapshot.formats, [1]);
    let [output] = &snapshot.outputs[..] else { panic!() };
    assert_eq!((&*output.name, output.logical), ("HEADLESS-1", (10, 20, 1280, 720)));
    let [seat] = &snapshot.seats[..] else { panic!() };
    let keymap = Keymap { format: 1, hash: crate::blob::hash(b"first\0"), length: 6 };
    assert_eq!((&*seat.name, seat.capabilities), ("seat0", 3));
    assert_eq!((seat.keymap, seat.repeat), (Some(keymap), Some((25, 600))));
    assert_eq!(blobs(&mut watcher), [b"first\0"]);
    assert_eq!(watcher.end(), None);
}

#[test]
fn changes_give_new_snapshots() {
    let (mut desk, socket) = Desk::new(GLOBALS);
    let mut watcher = Watcher::new();
    let first = run(&mut watcher, &socket, &mut desk).pop().unwrap();
    assert!(run(&mut watcher, &socket, &mut desk).is_empty());

    desk.describe_output(2);
    let scaled = run(&mut watcher, &socket, &mut desk).pop().unwrap();
    assert_eq!((scaled.outputs[0].scale, scaled.outputs[0].logical), (2, (10, 20, 640, 360)));

    desk.keymap = b"second\0";
    desk.tell_keymap();
    let typed = run(&mut watcher, &socket, &mut desk).pop().unwrap();
    assert_ne!(typed.seats[0].keymap, first.seats[0].keymap);

    let (registry, seat) = (desk.registry, desk.seat);
    desk.event(seat, "capabilities", vec![Arg::Uint(1)]);
    let bare = run(&mut watcher, &socket, &mut desk).pop().unwrap();
    assert_eq!((bare.seats[0].capabilities, bare.seats[0].keymap), (1, None));

    desk.event(registry, "global_remove", vec![Arg::Uint(7)]);
    let blind = run(&mut watcher, &socket, &mut desk).pop().unwrap();
    assert!(blind.outputs.is_empty() && blind.version("wl_output").is_none());

    desk.list(40, "wl_output", 4);
    desk.globals.push(("wl_output", 4));
    let seeing = run(&mut watcher, &socket, &mut desk);
    assert_eq!(seeing.last().unwrap().outputs[0].global, 40);
    assert_eq!(watcher.end(), None);
}

/// A window of a compositor that is resized has a new mode each time.
#[test]
fn a_mode_that_no_longer_exists_is_not_told() {
    let (mut desk, socket) = Desk::new(GLOBALS);
    let mut watcher = Watcher::new();
    run(&mut watcher, &socket, &mut desk);
    let output = desk.output;
    let mut modes = Vec::new();
    for width in [1300, 1400, 1280] {
        desk.event(output, "mode", vec![Arg::Uint(1), Arg::Int(width), Arg::Int(720), Arg::Int(60_000)]);
        desk.event(output, "done", vec![]);
        let snapshot = run(&mut watcher, &socket, &mut desk).pop().unwrap();
        let told = snapshot.outputs[0].modes.iter().map(|mode| (mode.width, mode.flags & 1));
        modes.push(told.collect::<Vec<_>>());
    }
    assert_eq!(modes, [vec![(1280, 0), (1300, 1)], vec![(1280, 0), (1400, 1)], vec![(1280, 1)]]);
}

#[test]
fn a_compositor_that_lacks_something_is_refused_by_name() {
    let (mut desk, socket) = Desk::new(&[("wl_compositor", 3), ("wl_shm", 1), ("wl_seat", 7)]);
    let mut watcher = Watcher::new();
    assert!(run(&mut watcher, &socket, &mut desk).is_empty());
    let Some(End::CompositorError(what)) = watcher.end() else { panic!() };
    for name in
        ["wl_compositor version 4", "xdg_wm_base version 1", "wl_subcompositor", "wl_data_device_manager"]
    {
        assert!(what.contains(name), "{what}");
    }
    assert!(!what.contains("wl_shm") && !what.contains("wl_seat"), "{what}");
}

#[test]
fn an_unreadable_keymap_is_an_error() {
    let (mut desk, socket) = Desk::new(GLOBALS);
    let mut watcher = Watcher::new();
    run(&mut watcher, &socket, &mut desk);
    let (pipe, _write) = rustix::pipe::pipe().unwrap();
    let keyboard = desk.keyboard;
    desk.event(keyboard, "keymap", vec![Arg::Uint(1), Arg::Fd(pipe), Arg::Uint(9)]);
    assert!(run(&mut watcher, &socket, &mut desk).is_empty());
    assert_eq!(watcher.end(), Some(&End::CompositorError("its keymap of 9 bytes cannot be read".into())));
}

#[test]
fn the_only_connection_can_be_handed_on() {
    let (mut desk, socket) = Desk::new(GLOBALS);
    let mut watcher = Watcher::new();
    run(&mut watcher, &socket, &mut desk);
    let mut connection: Connection = watcher.into_connection(Config::default());
    loop {
        socket.flush(connection.output()).unwrap();
        let mut moved = desk.serve();
        desk.socket.flush(&mut desk.out).unwrap();
        while socket.read_into(connection.input()).unwrap() == ReadState::Progress {
            moved = true;
            connection.process(Time::ZERO);
        }
        if !moved {
            break;
        }
    }
    assert_eq!(connection.end(), None);
    assert_eq!(connection.globals.stage, super::super::globals::Stage::Running);
}
