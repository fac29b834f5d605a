//! Both halves of a connection in lock-step, with a program of any kind and a small compositor.
//!
//! Input: operations, each a byte and its arguments. Numbers are little-endian.
//!
//! | | | |
//! |---|---|---|
//! | 0 | length u16, count u8, that many sizes u32, bytes | the program sends these bytes, with memory files of these sizes |
//! | 1 | milliseconds u16 | everything is delivered and answered, time passes, content goes |
//! | 2 | object u8, opcode u8, arguments | the program sends a request with arguments that fit |
//! | 3 | global u8 | the program binds it |
//! | 4, 5 | count u8 | so many messages reach the display half, or the app half |
//! | 6, 7 | which u8 | an update, or a blob, arrives |
//! | 8 | | the compositor is heard |
//! | 9 | count u8 | the compositor gives buffers back |
//! | 10 | | the compositor answers frame callbacks |
//! | 11 | kind u8, value u16 | the compositor has an event of an input device or of the clipboard |
//! | 12 | milliseconds u16 | time passes |
//! | 13 | bytes u16 | content goes while this budget lasts |
//! | 14 | file u8, offset u16, value u8 | the program paints into its memory |
//! | 15 | | the program's socket, or the compositor's, closes |
//!
//! `wayferry --record` writes operations 0 and 1.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::time::Duration;

use wayferry_wayland::End;
use wayferry_wayland::tables::{self, Access};
use wayferry_wayland::wire::{self, Arg, InBuffer, OutBuffer};
use wayland_backend::protocol::{ArgumentType, Interface};

use crate::Input;
use crate::compositor::{file, snapshot};
use crate::rig::Rig;

/// Longest memory file.
const MAX_FILE: u32 = 1 << 24;
/// Operations of one input.
const MAX_OPERATIONS: usize = 2000;
/// Bytes that an operation paints.
const BRUSH: usize = 600;

/// Neither half may panic or accuse the other, no commit may be torn, and nothing may be stuck at the end.
///
/// # Panics
/// When that does not hold.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut rig = Rig::new();
    let mut program = Program::new();
    for _ in 0..MAX_OPERATIONS {
        if input.is_empty() {
            break;
        }
        step(&mut input, &mut rig, &mut program);
    }
    rig.finish();
    assert!(!matches!(rig.app.end(), Some(End::PeerViolation(_))), "{:?}", rig.app.end());
    assert!(!matches!(rig.display.end(), Some(End::PeerViolation(_))), "{:?}", rig.display.end());
}

fn step(input: &mut Input<'_>, rig: &mut Rig, program: &mut Program) {
    match input.u8() % 16 {
        0 => {
            let length = usize::from(input.u16());
            let count = input.u8() % 32;
            let fds = (0..count).map(|_| program.file(u32(input))).collect();
            program.send(rig, input.take(length).to_vec(), fds);
        }
        1 => {
            let time = Duration::from_millis(input.u16().into());
            program.scribble();
            rig.settle();
            rig.compositor.release(usize::MAX);
            rig.compositor.tick();
            rig.pass(time);
            rig.flush(u64::MAX, false);
            rig.settle();
        }
        2 => program.request(input, rig),
        3 => program.bind(input.u8(), rig),
        4 => rig.deliver_down(input.u8().into()),
        5 => rig.deliver_up(input.u8().into()),
        6 => rig.update(input.u8().into()),
        7 => rig.blob(input.u8().into()),
        8 => rig.compositor(),
        9 => rig.compositor.release(input.u8().into()),
        10 => rig.compositor.tick(),
        11 => rig.compositor.input_event(input.u8(), input.u16().into()),
        12 => rig.pass(Duration::from_millis(input.u16().into())),
        13 => {
            let budget = input.u16();
            rig.flush(budget.into(), budget % 2 == 1);
        }
        14 => program.paint(input.u8(), input.u16(), input.u8()),
        _ => match input.u8() % 2 {
            0 => rig.app.on_hang_up(),
            _ => rig.display.on_hang_up(),
        },
    }
}

fn u32(input: &mut Input<'_>) -> u32 {
    u32::from(input.u16()) | u32::from(input.u16()) << 16
}

/// What the fuzzer knows of the objects that it made.
struct Program {
    objects: BTreeMap<u32, &'static Interface>,
    files: Vec<OwnedFd>,
    turn: u64,
}

impl Program {
    fn new() -> Self {
        let objects = BTreeMap::from([(1, tables::interface("wl_display").expect("core"))]);
        Self { objects, files: Vec::new(), turn: 0 }
    }

    fn file(&mut self, size: u32) -> OwnedFd {
        let fd = file(u64::from(size.min(MAX_FILE)));
        if self.files.len() < 64 {
            self.files.push(fd.try_clone().expect("a descriptor"));
        }
        fd
    }

    fn paint(&self, which: u8, offset: u16, value: u8) {
        if let Some(file) = self.files.get(usize::from(which) % self.files.len().max(1)) {
            let _ = rustix::io::pwrite(file, &[value; BRUSH], u64::from(offset) * 16);
        }
    }

    /// Recordings have no pixels: something changes everywhere now and then.
    fn scribble(&mut self) {
        self.turn += 1;
        for file in &self.files {
            let length = rustix::fs::fstat(file).map_or(0, |stat| stat.st_size as u64);
            let brush = BRUSH.min(length as usize);
            let offset = (self.turn * 4099) % length.max(1);
            let _ =
                rustix::io::pwrite(file, &vec![self.turn as u8; brush], offset.min(length - brush as u64));
        }
    }

    fn send(&mut self, rig: &mut Rig, bytes: Vec<u8>, fds: Vec<OwnedFd>) {
        self.follow(&bytes);
        rig.program(&bytes, fds);
    }

    /// Keeps up with the objects that raw messages make.
    fn follow(&mut self, bytes: &[u8]) {
        let mut buffer = InBuffer::new();
        if buffer.push(bytes, []).is_err() {
            return;
        }
        while let Ok(Some(raw)) = buffer.next_message() {
            let Some(interface) = self.objects.get(&raw.object).copied() else { continue };
            let Some(desc) = interface.requests.get(usize::from(raw.opcode)) else { continue };
            let mut fds: VecDeque<OwnedFd> = (0..4).map(|_| file(0)).collect();
            let Ok(args) = wire::decode(desc, interface, &raw, &mut fds) else { continue };
            let named = match &args[..] {
                [_, Arg::Str(Some(name)), _, Arg::NewId(_)] => {
                    std::str::from_utf8(name).ok().and_then(tables::interface)
                }
                _ => None,
            };
            for arg in &args {
                if let (Arg::NewId(id), Some(made)) = (arg, named.or(desc.child_interface)) {
                    self.objects.insert(*id, made);
                }
            }
            if desc.is_destructor {
                self.objects.remove(&raw.object);
            }
        }
    }

    fn fresh(&mut self, rig: &mut Rig) -> u32 {
        // Ids that the app half freed are used again, so there are no gaps.
        while let Ok(Some(_)) = rig.events.next_message() {}
        (2..).find(|id| !self.objects.contains_key(id)).unwrap_or(2)
    }

    fn bind(&mut self, global: u8, rig: &mut Rig) {
        let registry = self.objects.iter().find(|(_, interface)| interface.name == "wl_registry");
        let Some((&registry, _)) = registry else {
            let id = self.fresh(rig);
            return self.say(rig, 1, 1, vec![Arg::NewId(id)]);
        };
        let offered: Vec<_> = tables::GLOBALS.iter().zip(1u32..).collect();
        let (global, place) = offered[usize::from(global) % offered.len()];
        if global.access != Access::Offered {
            return;
        }
        let name = match (global.name(), snapshot()) {
            ("wl_output", snapshot) => 1000 + snapshot.outputs[0].global,
            ("wl_seat", snapshot) => 2000 + snapshot.seats[0].global,
            _ => place,
        };
        let id = self.fresh(rig);
        let interface = Arg::Str(Some(global.name().as_bytes().to_vec()));
        let version = Arg::Uint(tables::version_cap(global.name()));
        self.say(rig, registry, 0, vec![Arg::Uint(name), interface, version, Arg::NewId(id)]);
    }

    fn request(&mut self, input: &mut Input<'_>, rig: &mut Rig) {
        let objects: Vec<_> = self.objects.iter().map(|(id, interface)| (*id, *interface)).collect();
        let Some(&(object, interface)) = objects.get(usize::from(input.u8()) % objects.len().max(1)) else {
            return;
        };
        if interface.requests.is_empty() || interface.name == "wl_registry" {
            return;
        }
        let opcode = usize::from(input.u8()) % interface.requests.len();
        let desc = &interface.requests[opcode];
        let mut interfaces = desc.arg_interfaces.iter();
        let mut args = Vec::new();
        for kind in desc.signature {
            args.push(match kind {
                ArgumentType::Int => Arg::Int(i32::from(input.u16().cast_signed())),
                ArgumentType::Uint => Arg::Uint(input.u8().into()),
                ArgumentType::Fixed => Arg::Fixed(i32::from(input.u16()) << 4),
                ArgumentType::Str(_) => Arg::Str(Some(b"text/plain".to_vec())),
                ArgumentType::Array => Arg::Array(input.take(4).to_vec()),
                ArgumentType::Object(_) => {
                    let wanted = interfaces.next().map_or("", |interface| interface.name);
                    let fits = objects.iter().filter(|(_, interface)| interface.name == wanted);
                    let fits: Vec<u32> = fits.map(|(id, _)| *id).collect();
                    let pick = usize::from(input.u8());
                    Arg::Object(fits.get(pick % (fits.len() + 1)).copied().unwrap_or(0))
                }
                ArgumentType::NewId => Arg::NewId(self.fresh(rig)),
                ArgumentType::Fd => Arg::Fd(self.file(u32::from(input.u16()) * 64)),
            });
        }
        self.say(rig, object, opcode as u16, args);
    }

    fn say(&mut self, rig: &mut Rig, object: u32, opcode: u16, args: Vec<Arg>) {
        let mut out = OutBuffer::new(1 << 13);
        if out.encode(object, opcode, args).is_ok() {
            let (bytes, fds) = out.take();
            self.send(rig, bytes, fds);
        }
    }
}
