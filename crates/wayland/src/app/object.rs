//! The objects of one program: its ids, the ids between the halves, and what the app side knows of each.
//!
//! Does not interpret messages. Invariant: an id of the program names at most one object; an object that the display
//! side has too keeps its entry after the program destroyed it until the display side has said so.

use std::collections::HashMap;
use std::rc::Rc;

use wayland_backend::protocol::Interface;

use crate::message::WireId;
use crate::value::{Positioner, RegionOp};

use super::shm::{Buffer, Pool};

/// Objects that one program may have at once.
pub(crate) const MAX_OBJECTS: usize = 65_536;

/// First id of the range in which the server, not the program, names objects (as libwayland has it).
const SERVER_IDS: u32 = 0xff00_0000;

/// What the app side must remember of an object beyond its interface.
#[derive(Debug)]
pub(crate) enum Data {
    Plain,
    Region(Vec<RegionOp>),
    Positioner(Positioner),
    Pool(Rc<Pool>),
    Buffer(Rc<Buffer>),
    /// Registry name at the compositor.
    Output(u32),
    /// Registry name of the output that it describes.
    XdgOutput(u32),
    /// Registry name at the compositor; `None` for the stub.
    Seat(Option<u32>),
    /// The child and the parent of a `wl_subsurface`.
    Subsurface {
        parent: u32,
    },
}

/// One object of the program.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) interface: &'static Interface,
    pub(crate) version: u32,
    /// Its name between the halves, if the display side has it too.
    pub(crate) wire: Option<WireId>,
    /// The surface that it belongs to, if it belongs to one.
    pub(crate) surface: Option<u32>,
    pub(crate) data: Data,
    /// False once the program has destroyed it.
    pub(crate) alive: bool,
}

impl Object {
    pub(crate) fn new(interface: &'static Interface, version: u32) -> Self {
        Self { interface, version, wire: None, surface: None, data: Data::Plain, alive: true }
    }
}

/// All objects of one program.
#[derive(Debug)]
pub(crate) struct Objects {
    client: Vec<Option<Object>>,
    server: Vec<Option<Object>>,
    by_wire: HashMap<WireId, u32>,
    next_wire: WireId,
    count: usize,
}

/// Why an object could not be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddError {
    /// The id is in use, is 0, or leaves a gap.
    BadId,
    /// [`MAX_OBJECTS`].
    TooMany,
}

impl Objects {
    /// A table that holds only `display` as object 1.
    pub(crate) fn new(mut display: Object) -> Self {
        display.wire = Some(WireId::DISPLAY);
        Self {
            client: vec![None, Some(display)],
            server: Vec::new(),
            by_wire: HashMap::from([(WireId::DISPLAY, 1)]),
            next_wire: WireId::FIRST_APP,
            count: 1,
        }
    }

    pub(crate) fn of(&self, id: u32) -> Option<&Object> {
        match id.checked_sub(SERVER_IDS) {
            Some(index) => self.server.get(index as usize)?.as_ref(),
            None => self.client.get(id as usize)?.as_ref(),
        }
    }

    pub(crate) fn of_mut(&mut self, id: u32) -> Option<&mut Object> {
        match id.checked_sub(SERVER_IDS) {
            Some(index) => self.server.get_mut(index as usize)?.as_mut(),
            None => self.client.get_mut(id as usize)?.as_mut(),
        }
    }

    /// The object of that id that the program may still use.
    pub(crate) fn alive(&self, id: u32) -> Option<&Object> {
        self.of(id).filter(|object| object.alive)
    }

    pub(crate) fn by_wire(&self, wire: WireId) -> Option<u32> {
        self.by_wire.get(&wire).copied()
    }

    /// A fresh name for an object that both sides will have.
    pub(crate) fn allocate_wire(&mut self) -> WireId {
        let wire = self.next_wire;
        self.next_wire = wire.next();
        wire
    }

    /// Gives an object a name between the halves.
    pub(crate) fn set_wire(&mut self, id: u32, wire: WireId) {
        if let Some(object) = self.of_mut(id) {
            object.wire = Some(wire);
            self.by_wire.insert(wire, id);
        }
    }

    /// Adds an object that the program named.
    pub(crate) fn add(&mut self, id: u32, object: Object) -> Result<(), AddError> {
        let index = id as usize;
        // libwayland gives out ids densely, so a gap is a broken program, and a table may be a plain array.
        if id == 0 || id >= SERVER_IDS || index > self.client.len() || self.of(id).is_some() {
            return Err(AddError::BadId);
        }
        self.count_one()?;
        self.index_wire(id, &object);
        if index == self.client.len() {
            self.client.push(Some(object));
        } else {
            self.client[index] = Some(object);
        }
        Ok(())
    }

    /// Adds an object that the compositor made, and names it for the program.
    pub(crate) fn add_server(&mut self, object: Object) -> Result<u32, AddError> {
        self.count_one()?;
        let index = self.server.iter().position(Option::is_none).unwrap_or(self.server.len());
        let id = SERVER_IDS + u32::try_from(index).map_err(|_| AddError::TooMany)?;
        self.index_wire(id, &object);
        if index == self.server.len() {
            self.server.push(Some(object));
        } else {
            self.server[index] = Some(object);
        }
        Ok(id)
    }

    /// Forgets an object; its id may be used again.
    pub(crate) fn remove(&mut self, id: u32) -> Option<Object> {
        let slot = match id.checked_sub(SERVER_IDS) {
            Some(index) => self.server.get_mut(index as usize)?,
            None => self.client.get_mut(id as usize)?,
        };
        let object = slot.take()?;
        self.count -= 1;
        if let Some(wire) = object.wire {
            self.by_wire.remove(&wire);
        }
        Some(object)
    }

    /// Every object with its id, in order of ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Object)> {
        let client = self.client.iter().zip(0u32..);
        client
            .chain(self.server.iter().zip(SERVER_IDS..))
            .filter_map(|(slot, id)| slot.as_ref().map(|object| (id, object)))
    }

    /// Ids of the living objects of an interface.
    pub(crate) fn living(&self, interface: &str) -> Vec<u32> {
        let of_interface = |object: &Object| object.alive && object.interface.name == interface;
        self.iter().filter(|(_, object)| of_interface(object)).map(|(id, _)| id).collect()
    }

    fn count_one(&mut self) -> Result<(), AddError> {
        if self.count >= MAX_OBJECTS {
            return Err(AddError::TooMany);
        }
        self.count += 1;
        Ok(())
    }

    fn index_wire(&mut self, id: u32, object: &Object) {
        if let Some(wire) = object.wire {
            self.by_wire.insert(wire, id);
        }
    }
}

/// Whether the server names objects with such ids.
pub(crate) fn is_server_id(id: u32) -> bool {
    id >= SERVER_IDS
}
