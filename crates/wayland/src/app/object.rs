//! The objects of one program: its ids, the ids between the halves, and what the app side knows of each.
//!
//! Does not interpret messages. Invariant: an id of the program names at most one object; an object that the display
//! side has too keeps its entry after the program destroyed it until the display side has said so.

use std::any::Any;
use std::collections::HashMap;
use std::rc::Rc;

use wayland_backend::protocol::Interface;

use crate::message::WireId;
use crate::policy::{self, Handler};
use crate::value::{Positioner, RegionOp};

use super::birth::Past;
use super::buffer::Buffer;
use super::shm::Pool;

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
    /// Registry name towards the program.
    Output(u32),
    /// The same of the output that it describes.
    XdgOutput(u32),
    /// Registry name towards the program.
    Seat(u32),
    /// Of an `xdg_toplevel`: what the display wanted last.
    Toplevel(Wanted),
    /// Of an `xdg_surface`.
    Shell(Configures),
    Popup(Popup),
    /// Of a `zwp_text_input_v3`: how often the program committed it, and how often before this display.
    TextInput {
        commits: u32,
        before: u32,
    },
    /// Of an `xdg_activation_token_v1`: `done` is owed.
    Token,
    /// What a handler alone knows of the object, in a type of its own.
    Own(Box<dyn Any>),
}

/// What an `xdg_surface` was configured with last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Configures {
    /// The serial as the program knows it.
    pub(crate) last: Option<u32>,
    /// The display has heard that the program acknowledges it.
    pub(crate) acknowledged: bool,
    /// It was sent again from here: it is acknowledged twice, which the display must not hear.
    pub(crate) repeated: bool,
}

/// An `xdg_popup`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Popup {
    /// The surface that it belongs to.
    pub(crate) parent: u32,
    /// The `xdg_surface` that it was made of.
    pub(crate) shell: u32,
    /// Where the display has put it in the parent's window.
    pub(crate) at: Option<(i32, i32)>,
    /// The token of a `reposition` that its first configure is to answer.
    pub(crate) token: Option<u32>,
}

/// A window as the display last configured it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wanted {
    /// Width and height; 0 leaves it to the program.
    pub(crate) size: (i32, i32),
    pub(crate) maximized: bool,
    pub(crate) fullscreen: bool,
}

/// One object of the program.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) interface: &'static Interface,
    /// What handles it, by the interface's row.
    pub(crate) handler: Handler,
    pub(crate) version: u32,
    /// Its name between the halves, the same at every display; later objects have higher names. `None` for what
    /// displays never have.
    pub(crate) name: Option<WireId>,
    /// That name, if the attached display side has the object.
    pub(crate) wire: Option<WireId>,
    /// The surface that it belongs to, if it belongs to one.
    pub(crate) surface: Option<u32>,
    pub(crate) data: Data,
    /// What another display must be told to have it too.
    pub(crate) past: Past,
    /// False once the program has destroyed it.
    pub(crate) alive: bool,
}

impl Object {
    pub(crate) fn new(interface: &'static Interface, version: u32) -> Self {
        let (handler, name, surface, past) = (policy::handler(interface.name), None, None, Past::default());
        Self { interface, handler, version, name, wire: None, surface, data: Data::Plain, past, alive: true }
    }

    /// One that the attached display side has by that name.
    pub(crate) fn there(interface: &'static Interface, version: u32, name: WireId) -> Self {
        Self { name: Some(name), wire: Some(name), ..Self::new(interface, version) }
    }

    /// What a handler keeps of the object in this type, if it keeps something.
    pub(crate) fn own<T: Any>(&mut self) -> Option<&mut T> {
        match &mut self.data {
            Data::Own(own) => own.downcast_mut(),
            _ => None,
        }
    }

    /// The same, begun if nothing else is kept of the object.
    pub(crate) fn begin_own<T: Any + Default>(&mut self) -> Option<&mut T> {
        if matches!(self.data, Data::Plain) {
            self.data = Data::Own(Box::<T>::default());
        }
        self.own()
    }
}

/// All objects of one program.
#[derive(Debug)]
pub(crate) struct Objects {
    client: Vec<Option<Object>>,
    server: Vec<Option<Object>>,
    by_name: HashMap<WireId, u32>,
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
        (display.name, display.wire) = (Some(WireId::DISPLAY), Some(WireId::DISPLAY));
        Self {
            client: vec![None, Some(display)],
            server: Vec::new(),
            by_name: HashMap::from([(WireId::DISPLAY, 1)]),
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

    /// The object that the attached display side has by that name.
    pub(crate) fn by_wire(&self, wire: WireId) -> Option<u32> {
        self.by_name(wire).filter(|id| self.of(*id).is_some_and(|object| object.wire == Some(wire)))
    }

    /// The object of that name, wherever it is.
    pub(crate) fn by_name(&self, name: WireId) -> Option<u32> {
        self.by_name.get(&name).copied()
    }

    /// A fresh name for an object that both sides will have.
    pub(crate) fn allocate_wire(&mut self) -> WireId {
        let wire = self.next_wire;
        self.next_wire = wire.next();
        wire
    }

    /// The display side has the object from now on, by that name.
    pub(crate) fn set_wire(&mut self, id: u32, wire: WireId) {
        if let Some(object) = self.of_mut(id) {
            (object.name, object.wire) = (Some(wire), Some(wire));
            self.by_name.insert(wire, id);
        }
    }

    /// No display side has any object but `wl_display`; names that it gave away itself are void.
    pub(crate) fn part(&mut self) {
        for object in self.client.iter_mut().skip(2).chain(&mut self.server).flatten() {
            object.wire = None;
            object.name = object.name.filter(|name| name.is_app());
        }
        self.by_name.retain(|name, _| name.is_app());
    }

    /// Adds an object that the program named.
    pub(crate) fn add(&mut self, id: u32, object: Object) -> Result<(), AddError> {
        let index = id as usize;
        // libwayland gives out ids densely, so a gap is a broken program, and a table may be a plain array.
        if id == 0 || id >= SERVER_IDS || index > self.client.len() || self.of(id).is_some() {
            return Err(AddError::BadId);
        }
        self.count_one()?;
        self.index_name(id, &object);
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
        self.index_name(id, &object);
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
        if let Some(name) = object.name {
            self.by_name.remove(&name);
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

    /// As [`Self::iter`].
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Object)> {
        let client = self.client.iter_mut().zip(0u32..);
        client
            .chain(self.server.iter_mut().zip(SERVER_IDS..))
            .filter_map(|(slot, id)| slot.as_mut().map(|object| (id, object)))
    }

    /// The name between the halves of a living object, whether the attached display has it or not.
    pub(super) fn name(&self, id: u32) -> Option<WireId> {
        self.alive(id).and_then(|object| object.name)
    }

    /// The name between the halves of a living object that both have.
    pub(super) fn wire(&self, id: u32) -> Option<WireId> {
        self.alive(id).and_then(|object| object.wire)
    }

    /// What is to be remembered of an object.
    pub(super) fn set_data(&mut self, id: u32, data: Data) {
        if let Some(object) = self.of_mut(id) {
            object.data = data;
        }
    }

    /// The surface that it belongs to.
    pub(super) fn set_association(&mut self, id: u32, surface: Option<u32>) {
        if let Some(object) = self.of_mut(id) {
            object.surface = surface;
        }
    }

    /// The registry name towards the program of an output, or of the output that an object describes.
    pub(super) fn output_name(&self, id: u32) -> Option<u32> {
        match self.of(id)?.data {
            Data::Output(name) | Data::XdgOutput(name) => Some(name),
            _ => None,
        }
    }

    /// The same of a seat.
    pub(super) fn seat_name(&self, id: u32) -> Option<u32> {
        match self.of(id)?.data {
            Data::Seat(name) => Some(name),
            _ => None,
        }
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

    fn index_name(&mut self, id: u32, object: &Object) {
        if let Some(name) = object.name {
            self.by_name.insert(name, id);
        }
    }
}

/// Whether the server names objects with such ids.
pub(crate) fn is_server_id(id: u32) -> bool {
    id >= SERVER_IDS
}
