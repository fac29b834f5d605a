//! The objects of one connection to the compositor: their ids there and their names between the halves.
//!
//! Does not interpret messages. Invariant: an id that the compositor knows names exactly one entry until the
//! compositor has forgotten it (`wl_display.delete_id`, or the destructor where the compositor named the object);
//! ids that we give away are dense, as libwayland demands.

use std::collections::HashMap;

use wayland_backend::protocol::Interface;

use crate::action::End;
use crate::message::WireId;
use crate::policy::{self, Handler};

/// Objects that one app connection may have at the compositor, ours included.
pub(crate) const MAX_OBJECTS: usize = 131_072;

/// First id of the range in which the compositor names objects (as libwayland has it).
const SERVER_IDS: u32 = 0xff00_0000;

/// Where an object of the app side is at the compositor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Its creation is held back.
    Awaited,
    /// It has this id.
    Live(u32),
    /// Its destructor has been sent.
    Dying(u32),
    /// The compositor has no such thing: requests are swallowed.
    Inert,
}

/// An object that the app side knows.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) interface: &'static Interface,
    /// What handles it, by the interface's row.
    pub(crate) handler: Handler,
    /// Version that it is bound at; events and requests above it do not exist.
    pub(crate) version: u32,
    pub(crate) presence: Presence,
    /// A destructor has been accepted, sent or not: the app side must not name it again.
    pub(crate) doomed: bool,
    /// The objects that its creation named: its maker and the maker's arguments.
    pub(crate) origin: Vec<WireId>,
}

impl Object {
    pub(crate) fn new(
        interface: &'static Interface,
        version: u32,
        presence: Presence,
        origin: Vec<WireId>,
    ) -> Self {
        let handler = policy::handler(interface.name);
        Self { interface, handler, version, presence, doomed: false, origin }
    }
}

/// Why an object is ours and not the program's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    /// `wl_display`.
    Display,
    /// Something whose events mean nothing here.
    Helper,
    /// `wl_registry`.
    Registry,
    /// `wl_shm`.
    Shm,
    /// `wp_presentation`.
    Presentation,
    /// The callback that ends a step of the start.
    Start,
    /// The callback after which the compositor looks at no buffer that is gone.
    Memory,
    /// A frame callback of this surface.
    Frame(WireId),
    /// Presentation feedback of this unit.
    Feedback(WireId, u64),
    /// A buffer of this surface.
    Buffer(WireId),
    /// A buffer of what predictions are drawn on.
    Leaf,
    /// A child of a dead object, which was destroyed at once.
    Orphan,
}

/// What an id stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// An object of the program.
    App(WireId),
    /// One of ours.
    Own(Own),
}

/// An id that the compositor knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Local {
    pub(crate) interface: &'static Interface,
    pub(crate) version: u32,
    pub(crate) role: Role,
    /// Its destructor has passed: events are consumed and dropped.
    pub(crate) gone: bool,
}

/// All objects of one connection.
#[derive(Debug)]
pub(crate) struct Objects {
    wires: HashMap<WireId, Object>,
    locals: HashMap<u32, Local>,
    free: Vec<u32>,
    next: u32,
    next_wire: WireId,
}

impl Objects {
    /// A table that holds only `display`, as object 1.
    pub(crate) fn new(display: &'static Interface) -> Self {
        let object = Object::new(display, 1, Presence::Live(1), Vec::new());
        let local = Local { interface: display, version: 1, role: Role::Own(Own::Display), gone: false };
        Self {
            wires: HashMap::from([(WireId::DISPLAY, object)]),
            locals: HashMap::from([(1, local)]),
            free: Vec::new(),
            next: 2,
            next_wire: WireId::FIRST_DISPLAY,
        }
    }

    /// The object of that name, if the app side may still name it.
    pub(crate) fn usable(&self, wire: WireId) -> Option<&Object> {
        self.wires.get(&wire).filter(|object| !object.doomed)
    }

    /// The object of that name, doomed or not.
    pub(crate) fn of(&self, wire: WireId) -> Option<&Object> {
        self.wires.get(&wire)
    }

    /// The id at the compositor of an object that is there and not destroyed.
    pub(crate) fn live(&self, wire: WireId) -> Option<u32> {
        match self.wires.get(&wire)?.presence {
            Presence::Live(id) => Some(id),
            _ => None,
        }
    }

    /// What a compositor's id stands for.
    pub(crate) fn local(&self, id: u32) -> Option<Local> {
        self.locals.get(&id).copied()
    }

    /// The name of a compositor's object, if it is (or was) the program's.
    pub(crate) fn wire_of(&self, id: u32) -> Option<WireId> {
        match self.locals.get(&id)?.role {
            Role::App(wire) => Some(wire),
            Role::Own(_) => None,
        }
    }

    /// Names an object that the app side makes.
    pub(crate) fn declare(&mut self, wire: WireId, object: Object) -> Result<(), End> {
        if !wire.is_app() || wire < WireId::FIRST_APP {
            return Err(End::PeerViolation(format!(
                "a new object is named {}, expected an even name of at least {}",
                wire.0,
                WireId::FIRST_APP.0
            )));
        }
        self.room()?;
        if self.wires.contains_key(&wire) {
            return Err(End::PeerViolation(format!(
                "a new object is named {}, which exists already",
                wire.0
            )));
        }
        self.wires.insert(wire, object);
        Ok(())
    }

    /// Gives a declared object its id at the compositor.
    pub(crate) fn place(&mut self, wire: WireId) -> Result<u32, End> {
        let Some(object) = self.wires.get_mut(&wire) else {
            return Err(End::PeerViolation(format!("object {} does not exist", wire.0)));
        };
        let (interface, version) = (object.interface, object.version);
        let id = allocate(&mut self.free, &mut self.next);
        object.presence = Presence::Live(id);
        self.locals.insert(id, Local { interface, version, role: Role::App(wire), gone: false });
        Ok(id)
    }

    /// Declares that an object does not exist at the compositor.
    pub(crate) fn make_inert(&mut self, wire: WireId) {
        if let Some(object) = self.wires.get_mut(&wire) {
            object.presence = Presence::Inert;
        }
    }

    /// From now on the app side must not name the object.
    pub(crate) fn doom(&mut self, wire: WireId) {
        if let Some(object) = self.wires.get_mut(&wire) {
            object.doomed = true;
        }
    }

    /// The destructor has been sent, or swallowed. Returns whether the object is forgotten by that.
    pub(crate) fn destroyed(&mut self, wire: WireId) -> bool {
        let Some(object) = self.wires.get_mut(&wire) else { return false };
        object.doomed = true;
        let Presence::Live(id) = object.presence else {
            self.wires.remove(&wire);
            return true;
        };
        object.presence = Presence::Dying(id);
        if let Some(local) = self.locals.get_mut(&id) {
            local.gone = true;
        }
        if id < SERVER_IDS {
            return false;
        }
        // The compositor forgets an id of its own at the destructor and says nothing. Events on their way may
        // still name it, so the id stays until the compositor gives it away again.
        self.wires.remove(&wire);
        true
    }

    /// Marks an object of either kind as destroyed by an event.
    pub(crate) fn ended(&mut self, id: u32) {
        if let Some(local) = self.locals.get_mut(&id) {
            local.gone = true;
            if let Role::App(wire) = local.role
                && let Some(object) = self.wires.get_mut(&wire)
            {
                object.presence = Presence::Dying(id);
            }
        }
    }

    /// The destructor of a live object was dropped, because the compositor is too old for it.
    pub(crate) fn abandon(&mut self, wire: WireId) {
        if let Some(Object { presence: Presence::Live(id), .. }) = self.wires.remove(&wire)
            && let Some(local) = self.locals.get_mut(&id)
        {
            local.gone = true;
            local.role = Role::Own(Own::Orphan);
        }
    }

    /// The compositor has forgotten one of our ids. Returns the name that it had between the halves.
    pub(crate) fn deleted(&mut self, id: u32) -> Option<WireId> {
        let local = self.locals.remove(&id)?;
        if id < SERVER_IDS {
            self.free.push(id);
        }
        let Role::App(wire) = local.role else { return None };
        self.wires.remove(&wire)?;
        Some(wire)
    }

    /// Gives away an id for an object of ours.
    pub(crate) fn own(&mut self, interface: &'static Interface, version: u32, own: Own) -> Result<u32, End> {
        self.room()?;
        let id = allocate(&mut self.free, &mut self.next);
        self.locals.insert(id, Local { interface, version, role: Role::Own(own), gone: false });
        Ok(id)
    }

    /// An object of ours has been destroyed by a request.
    pub(crate) fn own_destroyed(&mut self, id: u32) {
        if let Some(local) = self.locals.get_mut(&id) {
            local.gone = true;
        }
    }

    /// Takes in an object that the compositor made, as the program's.
    pub(crate) fn adopt(
        &mut self,
        id: u32,
        interface: &'static Interface,
        version: u32,
        origin: WireId,
    ) -> Result<WireId, End> {
        self.check_server_id(id)?;
        let wire = self.next_wire;
        self.next_wire = wire.next();
        let object = Object::new(interface, version, Presence::Live(id), vec![origin]);
        self.wires.insert(wire, object);
        self.locals.insert(id, Local { interface, version, role: Role::App(wire), gone: false });
        Ok(wire)
    }

    /// Takes in an object that the compositor made for no program.
    pub(crate) fn adopt_orphan(
        &mut self,
        id: u32,
        interface: &'static Interface,
        version: u32,
    ) -> Result<(), End> {
        self.check_server_id(id)?;
        let role = Role::Own(Own::Orphan);
        self.locals.insert(id, Local { interface, version, role, gone: true });
        Ok(())
    }

    /// Takes over an object of ours from a connection's earlier life; its events mean nothing any more.
    pub(crate) fn inherit(&mut self, id: u32, interface: &'static Interface, version: u32, gone: bool) {
        self.locals.insert(id, Local { interface, version, role: Role::Own(Own::Helper), gone });
    }

    /// Takes over which ids are free: these, and all from `next` on.
    pub(crate) fn inherit_ids(&mut self, free: Vec<u32>, next: u32) {
        self.free = free;
        self.next = next;
    }

    fn check_server_id(&self, id: u32) -> Result<(), End> {
        self.room()?;
        let taken = self.locals.get(&id).is_some_and(|local| !local.gone);
        if id < SERVER_IDS || taken {
            return Err(End::CompositorError(format!("it named a new object {id}, which is not free")));
        }
        Ok(())
    }

    fn room(&self) -> Result<(), End> {
        if self.locals.len().max(self.wires.len()) >= MAX_OBJECTS {
            return Err(End::TooMuch("objects of one program"));
        }
        Ok(())
    }
}

fn allocate(free: &mut Vec<u32>, next: &mut u32) -> u32 {
    free.pop().unwrap_or_else(|| {
        *next += 1;
        *next - 1
    })
}

#[cfg(test)]
mod tests {
    use wayland_client::Proxy;
    use wayland_client::protocol::wl_callback::WlCallback;
    use wayland_client::protocol::wl_display::WlDisplay;

    use super::*;

    fn callback() -> Object {
        Object::new(WlCallback::interface(), 1, Presence::Awaited, vec![WireId::DISPLAY])
    }

    #[test]
    fn ids_are_dense_and_come_back() {
        let mut objects = Objects::new(WlDisplay::interface());
        for n in 0..3 {
            objects.declare(WireId(4 + 2 * n), callback()).unwrap();
            assert_eq!(objects.place(WireId(4 + 2 * n)).unwrap(), 2 + n as u32);
        }
        objects.ended(3);
        assert_eq!(objects.live(WireId(6)), None);
        assert_eq!(objects.deleted(3), Some(WireId(6)));
        objects.declare(WireId(10), callback()).unwrap();
        assert_eq!(objects.place(WireId(10)).unwrap(), 3);
        assert_eq!(objects.own(WlCallback::interface(), 1, Own::Helper).unwrap(), 5);
    }

    #[test]
    fn a_name_is_given_once_and_by_the_right_side() {
        let mut objects = Objects::new(WlDisplay::interface());
        objects.declare(WireId(4), callback()).unwrap();
        for wrong in [0, 1, 2, 4, 7] {
            assert!(
                matches!(objects.declare(WireId(wrong), callback()), Err(End::PeerViolation(_))),
                "{wrong}"
            );
        }
    }

    #[test]
    fn the_compositors_own_ids_are_forgotten_at_the_destructor() {
        let mut objects = Objects::new(WlDisplay::interface());
        let interface = WlCallback::interface();
        let wire = objects.adopt(SERVER_IDS, interface, 1, WireId::DISPLAY).unwrap();
        assert!(!wire.is_app());
        assert!(objects.adopt(SERVER_IDS, interface, 1, WireId::DISPLAY).is_err());
        assert!(objects.destroyed(wire));
        assert!(objects.of(wire).is_none());
        assert!(objects.local(SERVER_IDS).is_some_and(|local| local.gone));
        let again = objects.adopt(SERVER_IDS, interface, 1, WireId::DISPLAY).unwrap();
        assert_ne!(again, wire);
    }

    #[test]
    fn objects_are_bounded() {
        let mut objects = Objects::new(WlDisplay::interface());
        let outcome =
            (0..=MAX_OBJECTS as u64).try_for_each(|n| objects.declare(WireId(4 + 2 * n), callback()));
        assert_eq!(outcome, Err(End::TooMuch("objects of one program")));
    }
}
