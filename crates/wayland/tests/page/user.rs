//! A program with one window, and what its user makes it hear.
//!
//! Invariant: it acknowledges every configure, and shows a buffer of the size that it was told last.

use std::collections::BTreeMap;

use wayferry_wayland::tables;
use wayferry_wayland::wire::{self, Arg, OutBuffer};
use wayland_backend::protocol::Interface;

use crate::compositor::file;
use crate::rig::Rig;

pub(crate) struct User {
    next_id: u32,
    interfaces: BTreeMap<u32, &'static Interface>,
    out: OutBuffer,
    pub(crate) globals: BTreeMap<&'static str, u32>,
    pub(crate) surface: u32,
    pub(crate) xdg_surface: u32,
    pub(crate) toplevel: u32,
    /// All that was heard and is of interest: interface and event, with the numbers and texts.
    pub(crate) heard: Vec<String>,
    /// The keymap that was told last.
    pub(crate) keymap: String,
}

const GLOBALS: [&str; 8] = [
    "wl_compositor",
    "wl_subcompositor",
    "wl_shm",
    "xdg_wm_base",
    "wl_seat",
    "wl_output",
    "zxdg_decoration_manager_v1",
    "wp_cursor_shape_manager_v1",
];

impl User {
    /// With a window that has been committed without content.
    pub(crate) fn new(rig: &mut Rig) -> Self {
        Self::with_seat(rig, tables::version_cap("wl_seat"))
    }

    pub(crate) fn with_seat(rig: &mut Rig, seat: u32) -> Self {
        let display = tables::interface("wl_display").expect("core");
        let mut user = Self {
            next_id: 2,
            interfaces: BTreeMap::from([(1, display)]),
            out: OutBuffer::new(1 << 20),
            globals: BTreeMap::new(),
            surface: 0,
            xdg_surface: 0,
            toplevel: 0,
            heard: Vec::new(),
            keymap: String::new(),
        };
        let registry = user.make(1, "get_registry", vec![]);
        user.send(rig);
        let names = user.registry(rig);
        for interface in GLOBALS {
            let id = user.id(tables::interface(interface).expect("offered"));
            let version = if interface == "wl_seat" { seat } else { tables::version_cap(interface) };
            let name = Arg::Str(Some(interface.as_bytes().to_vec()));
            let args = vec![Arg::Uint(names[interface]), name, Arg::Uint(version), Arg::NewId(id)];
            user.request(registry, "bind", args);
            user.globals.insert(interface, id);
        }
        let seat = user.globals["wl_seat"];
        let pointer = user.make(seat, "get_pointer", vec![]);
        user.globals.insert("wl_pointer", pointer);
        user.make(seat, "get_keyboard", vec![]);
        (user.surface, user.xdg_surface) = user.shell_surface();
        user.toplevel = user.make(user.xdg_surface, "get_toplevel", vec![]);
        let manager = user.globals["zxdg_decoration_manager_v1"];
        user.make(manager, "get_toplevel_decoration", vec![Arg::Object(user.toplevel)]);
        user.request(user.surface, "commit", vec![]);
        user.hear(rig);
        user
    }

    pub(crate) fn shell_surface(&mut self) -> (u32, u32) {
        let surface = self.make(self.globals["wl_compositor"], "create_surface", vec![]);
        let base = self.globals["xdg_wm_base"];
        (surface, self.make(base, "get_xdg_surface", vec![Arg::Object(surface)]))
    }

    /// Shows a buffer of that size on a surface.
    pub(crate) fn show(&mut self, rig: &mut Rig, surface: u32, (width, height): (i32, i32)) {
        let shm = self.globals["wl_shm"];
        let (length, fd) = (width * height * 4, file((width * height * 4) as u64));
        let pool = self.make(shm, "create_pool", vec![Arg::Fd(fd), Arg::Int(length)]);
        let numbers = [0, width, height, width * 4].map(Arg::Int);
        let buffer = self.make(pool, "create_buffer", numbers.into_iter().chain([Arg::Uint(0)]).collect());
        self.request(surface, "attach", vec![Arg::Object(buffer), Arg::Int(0), Arg::Int(0)]);
        self.request(surface, "damage", [0, 0, width, height].map(Arg::Int).into());
        self.request(surface, "commit", vec![]);
        self.hear(rig);
    }

    /// All that is under way arrives; gives what was heard since.
    pub(crate) fn hear(&mut self, rig: &mut Rig) -> Vec<String> {
        for _ in 0..3 {
            self.send(rig);
            rig.settle();
            self.read(rig);
        }
        std::mem::take(&mut self.heard)
    }

    fn read(&mut self, rig: &mut Rig) {
        while let Some(raw) = rig.events.next_message().expect("events") {
            let Some(interface) = self.interfaces.get(&raw.object).copied() else { continue };
            let desc = &interface.events[usize::from(raw.opcode)];
            let args = wire::decode(desc, interface, &raw, rig.events.fds_mut()).expect("sound");
            assert!((interface.name, desc.name) != ("wl_display", "error"), "{args:?}");
            if (interface.name, desc.name) == ("xdg_surface", "configure")
                && let [Arg::Uint(serial)] = args[..]
            {
                self.request(raw.object, "ack_configure", vec![Arg::Uint(serial)]);
            }
            if let ("keymap", [_, Arg::Fd(fd), Arg::Uint(length)]) = (desc.name, &args[..]) {
                let mut text = vec![0; *length as usize];
                rustix::io::pread(fd, &mut text, 0).expect("it can be read");
                assert_eq!(text.pop(), Some(0));
                self.keymap = String::from_utf8(text).expect("text");
            }
            let kinds = ["xdg_toplevel", "xdg_popup", "wl_keyboard", "wl_pointer"];
            if kinds.contains(&interface.name) || desc.name == "preferred_buffer_scale" {
                self.heard.push(say(interface.name, desc.name, &args));
            }
        }
        self.send(rig);
    }

    pub(crate) fn make(&mut self, object: u32, request: &str, mut args: Vec<Arg>) -> u32 {
        let interface = self.interfaces[&object];
        let opcode = tables::request_opcode(interface, request).expect("a request");
        let child = interface.requests[usize::from(opcode)].child_interface.expect("it makes an object");
        let id = self.id(child);
        args.insert(0, Arg::NewId(id));
        self.request(object, request, args);
        id
    }

    pub(crate) fn request(&mut self, object: u32, request: &str, args: Vec<Arg>) {
        let opcode = tables::request_opcode(self.interfaces[&object], request).expect("a request");
        self.out.encode(object, opcode, args).expect("room");
    }

    fn id(&mut self, interface: &'static Interface) -> u32 {
        self.next_id += 1;
        self.interfaces.insert(self.next_id - 1, interface);
        self.next_id - 1
    }

    fn send(&mut self, rig: &mut Rig) {
        rig.program_sends(&mut self.out);
    }

    fn registry(&mut self, rig: &mut Rig) -> BTreeMap<String, u32> {
        let mut names = BTreeMap::new();
        while let Some(raw) = rig.events.next_message().expect("events") {
            let word = |at: usize| u32::from_ne_bytes(raw.body[at..at + 4].try_into().expect("four bytes"));
            let length = word(4) as usize - 1;
            names.insert(String::from_utf8_lossy(&raw.body[8..8 + length]).into_owned(), word(0));
        }
        names
    }
}

/// An event without what differs from run to run: serials and times.
fn say(interface: &str, event: &str, args: &[Arg]) -> String {
    let skipped = match (interface, event) {
        ("wl_keyboard", "enter" | "leave" | "modifiers") | ("wl_pointer", "enter" | "leave") => 1,
        ("wl_keyboard", "key") | ("wl_pointer", "button") => 2,
        ("wl_pointer", "motion" | "axis" | "axis_stop") => 1,
        ("wl_keyboard", "keymap") => 3,
        _ => 0,
    };
    let words = args.iter().skip(skipped).map(|arg| match arg {
        Arg::Int(value) => value.to_string(),
        Arg::Uint(value) | Arg::Object(value) | Arg::NewId(value) => value.to_string(),
        Arg::Fixed(value) => (f64::from(*value) / 256.0).to_string(),
        Arg::Str(text) => String::from_utf8_lossy(text.as_deref().unwrap_or_default()).into_owned(),
        Arg::Array(bytes) => format!("{:?}", bytes.chunks(4).map(|word| word[0]).collect::<Vec<_>>()),
        Arg::Fd(_) => "file".to_owned(),
    });
    let words: Vec<String> = words.collect();
    let kind = interface.trim_start_matches("wl_").trim_start_matches("xdg_");
    [format!("{kind}.{event}")].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}
