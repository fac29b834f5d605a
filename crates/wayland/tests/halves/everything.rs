//! A program that has an object of every kind and has said everything to it, at one display and at the next.
//!
//! It knows nothing of what it says: arguments are anything that fits the signature. Invariant: objects are only named
//! while they live.

use std::collections::{BTreeMap, BTreeSet};

use wayferry_wayland::policy::{self, Again, Class};
use wayferry_wayland::tables;
use wayferry_wayland::wire::{Arg, OutBuffer};
use wayland_backend::protocol::{AllowNull, ArgumentType, Interface, MessageDesc};

use crate::rig::Rig;

pub(crate) struct Everything {
    next_id: u32,
    /// In the order in which they were made, with their interface and version.
    objects: Vec<(u32, &'static Interface, u32)>,
    out: OutBuffer,
}

impl Everything {
    /// Makes one object by each request that makes any.
    pub(crate) fn new(rig: &mut Rig) -> Self {
        let display = tables::interface("wl_display").expect("core");
        let mut program = Self { next_id: 2, objects: vec![(1, display, 1)], out: OutBuffer::new(1 << 20) };
        let registry = program.add(tables::interface("wl_registry").expect("core"), 1);
        program.out.encode(1, 1, vec![Arg::NewId(registry)]).expect("room");
        rig.program_sends(&mut program.out);
        let names = program.globals(rig);
        for (interface, name) in names {
            let interface = tables::interface(&interface).expect("offered");
            let version = tables::version_cap(interface.name);
            let id = program.add(interface, version);
            let text = Arg::Str(Some(interface.name.as_bytes().to_vec()));
            let args = vec![Arg::Uint(name), text, Arg::Uint(version), Arg::NewId(id)];
            program.out.encode(registry, 0, args).expect("room");
        }
        let mut done = BTreeSet::new();
        while program.make_some(&mut done) {}
        program.say_all();
        rig.program_sends(&mut program.out);
        program
    }

    /// Makes an object by each request that has not made one and now can. Returns whether there was any.
    fn make_some(&mut self, done: &mut BTreeSet<(&'static str, u16)>) -> bool {
        let before = done.len();
        for (id, interface, version) in self.objects.clone() {
            for (desc, opcode) in interface.requests.iter().zip(0..) {
                let makes = desc.child_interface.is_some_and(|child| child.name != "wl_callback");
                let by_hand = matches!(interface.name, "wl_registry" | "wl_display");
                let due =
                    makes && desc.since <= version && !by_hand && !done.contains(&(interface.name, opcode));
                if due && self.say(id, interface, version, desc, opcode) {
                    done.insert((interface.name, opcode));
                }
            }
        }
        done.len() > before
    }

    /// Says everything to every object that makes and ends nothing, then commits all surfaces.
    fn say_all(&mut self) {
        for (id, interface, version) in self.objects.clone() {
            for (desc, opcode) in interface.requests.iter().zip(0..) {
                let class = policy::request(interface.name, opcode).class;
                // Only a sibling or the parent will do where a child is placed.
                let plain = !desc.name.starts_with("place_")
                    && matches!(class, Class::Forward | Class::Reply | Class::State | Class::ParentState);
                if plain && desc.since <= version && desc.child_interface.is_none() {
                    self.say(id, interface, version, desc, opcode);
                }
            }
        }
        for (id, interface, _) in self.objects.clone().into_iter().rev() {
            if interface.name == "wl_surface" {
                self.out.encode(id, 6, Vec::new()).expect("room");
            }
        }
    }

    /// Destroys what globals gave, but not the objects that came from them.
    pub(crate) fn destroy_globals(&mut self, rig: &mut Rig) {
        let is_global = |interface: &Interface| tables::global(interface.name).is_some();
        self.destroy(rig, |interface| is_global(interface) && interface.name != "xdg_wm_base");
    }

    /// Destroys all that can be, the newest first.
    pub(crate) fn destroy_all(&mut self, rig: &mut Rig) {
        self.destroy(rig, |_| true);
    }

    fn destroy(&mut self, rig: &mut Rig, which: impl Fn(&Interface) -> bool) {
        for (id, interface, version) in self.objects.clone().into_iter().rev() {
            let mut requests = interface.requests.iter().zip(0..);
            let end = requests.find(|(desc, _)| desc.is_destructor && desc.since <= version);
            if let Some((_, opcode)) = end.filter(|_| which(interface)) {
                self.out.encode(id, opcode, Vec::new()).expect("room");
                self.objects.retain(|(other, ..)| *other != id);
            }
        }
        rig.program_sends(&mut self.out);
    }

    /// Says something, if there are arguments for it.
    fn say(
        &mut self,
        id: u32,
        interface: &'static Interface,
        version: u32,
        desc: &MessageDesc,
        opcode: u16,
    ) -> bool {
        // Of planes, which are files.
        if desc.name == "create_immed" {
            return false;
        }
        // A surface has one role.
        let id = match desc.name {
            "get_popup" if interface.name == "xdg_surface" => self.fresh("xdg_surface").unwrap_or(id),
            _ => id,
        };
        let (mut objects, mut args) = (desc.arg_interfaces.iter(), Vec::new());
        let mut made = None;
        for kind in desc.signature {
            args.push(match kind {
                ArgumentType::Int => Arg::Int(1),
                ArgumentType::Uint => Arg::Uint(1),
                ArgumentType::Fixed => Arg::Fixed(256),
                ArgumentType::Str(_) => Arg::Str(Some(b"text".to_vec())),
                ArgumentType::Array => Arg::Array(Vec::new()),
                ArgumentType::NewId => {
                    made = desc.child_interface;
                    Arg::NewId(0)
                }
                ArgumentType::Object(null) => {
                    let wanted = objects.next().expect("an interface for each object").name;
                    let takes_role = made.is_some() && wanted == "wl_surface";
                    let found = if takes_role { self.fresh(wanted) } else { self.any(wanted) };
                    match (found, null) {
                        (Some(found), _) => Arg::Object(found),
                        (None, AllowNull::Yes) => Arg::Object(0),
                        (None, AllowNull::No) => return false,
                    }
                }
                ArgumentType::Fd => return false,
            });
        }
        if let Some(interface) = made.and_then(|child| tables::interface(child.name)) {
            let id = self.add(interface, version.min(interface.version));
            for arg in &mut args {
                if matches!(arg, Arg::NewId(_)) {
                    *arg = Arg::NewId(id);
                }
            }
        }
        self.out.encode(id, opcode, args).expect("room");
        true
    }

    fn any(&self, interface: &str) -> Option<u32> {
        self.objects.iter().find(|(_, other, _)| other.name == interface).map(|(id, ..)| *id)
    }

    /// A new surface, with an `xdg_surface` if that is wanted.
    fn fresh(&mut self, interface: &str) -> Option<u32> {
        let compositor = self.any("wl_compositor")?;
        let surface = self.add(tables::interface("wl_surface")?, tables::version_cap("wl_compositor"));
        self.out.encode(compositor, 0, vec![Arg::NewId(surface)]).expect("room");
        if interface == "wl_surface" {
            return Some(surface);
        }
        let base = self.any("xdg_wm_base")?;
        let id = self.add(tables::interface("xdg_surface")?, tables::version_cap("xdg_wm_base"));
        let args = vec![Arg::NewId(id), Arg::Object(surface)];
        self.out.encode(base, 2, args).expect("room");
        Some(id)
    }

    fn add(&mut self, interface: &'static Interface, version: u32) -> u32 {
        self.next_id += 1;
        self.objects.push((self.next_id - 1, interface, version));
        self.next_id - 1
    }

    fn globals(&self, rig: &mut Rig) -> BTreeMap<String, u32> {
        let mut names = BTreeMap::new();
        while let Some(raw) = rig.events.next_message().expect("events") {
            let word = |at: usize| u32::from_ne_bytes(raw.body[at..at + 4].try_into().expect("four bytes"));
            let length = word(4) as usize - 1;
            names.insert(String::from_utf8_lossy(&raw.body[8..8 + length]).into_owned(), word(0));
        }
        names
    }
}

/// Whether objects of an interface are to be the same in number at every display.
pub(crate) fn lasts(interface: &str) -> bool {
    // Those of popups are over.
    policy::again(interface) == Again::Born && interface != "xdg_surface"
}
