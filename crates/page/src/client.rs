//! The objects of a program whose display is a page, and what is said to them.
//!
//! As `objects` is for views: a request is read against these when it arrives, and becomes an order that names
//! surfaces.
//! A program may do to its surfaces what it likes, so nothing is assumed of how they are put together. Invariants: ids
//! only grow; a surface is in no surface that is inside it; devices are listed as long as they live.

mod clipboard;
mod globals;
mod input;
mod shell;
mod units;

use std::collections::BTreeMap;
use std::rc::Rc;

use wayferry_message::{MAX_UNIT_CHILDREN, MAX_UNIT_DEPTH, Request, WireArg, WireId};

use crate::ask::{Ask, Clipping};
use crate::end::{End, wrong};
use crate::objects::OBJECT_COST;
use crate::share::{Lease, Share};

use globals::Global;
pub(crate) use globals::snapshot;

/// What an id stands for. Those of windows and surfaces name the surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Object {
    /// With the version at which it is bound.
    Global(Global, u32),
    Surface,
    Subsurface(WireId),
    XdgSurface(WireId),
    Toplevel(WireId),
    Popup(WireId),
    Viewport(WireId),
    FractionalScale,
    Decoration(WireId),
    Pointer,
    Keyboard,
    Touch,
    CursorShape,
    DataDevice,
    Source,
    /// Of which selection.
    Offer(u64),
}

/// What is known of a surface.
#[derive(Debug, Default)]
struct Place {
    parent: Option<WireId>,
    /// Surfaces right inside it.
    children: usize,
    /// An object that says what it is lives.
    has_role: bool,
    /// The number of its last unit.
    last_unit: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Client {
    objects: BTreeMap<WireId, (Object, Lease)>,
    surfaces: BTreeMap<WireId, Place>,
    newest: WireId,
    share: Rc<Share>,
    /// With the version of each.
    pointers: BTreeMap<WireId, u32>,
    keyboards: Vec<WireId>,
    /// Those that have been told nothing.
    new_keyboards: Vec<WireId>,
    outputs: Vec<WireId>,
    devices: Vec<WireId>,
    sources: BTreeMap<WireId, clipboard::Kinds>,
    /// How many live.
    offers: usize,
    /// What the next object of the page's is called.
    next_made: WireId,
}

impl Client {
    pub(crate) fn new(share: Rc<Share>) -> Self {
        Self {
            objects: BTreeMap::new(),
            surfaces: BTreeMap::new(),
            newest: WireId::DISPLAY,
            share,
            pointers: BTreeMap::new(),
            keyboards: Vec::new(),
            new_keyboards: Vec::new(),
            outputs: Vec::new(),
            devices: Vec::new(),
            sources: BTreeMap::new(),
            offers: 0,
            next_made: WireId::FIRST_DISPLAY,
        }
    }

    /// A global is bound. Gives the output if it is one.
    pub(crate) fn bind(
        &mut self,
        global: u32,
        interface: &str,
        version: u32,
        id: WireId,
    ) -> Result<Option<WireId>, End> {
        let Some(global) = Global::of(global, interface).filter(|_| version > 0) else {
            return Err(wrong(format!("global {global} is bound, which a page has not")));
        };
        self.add(id, Object::Global(global, version.min(global.version())))?;
        let output = (global == Global::Output).then_some(id);
        self.outputs.extend(output);
        Ok(output)
    }

    /// Its pointers, with their versions.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = (WireId, u32)> + use<> {
        self.pointers.clone().into_iter()
    }

    /// Its keyboards.
    pub(crate) fn keyboards(&self) -> Vec<WireId> {
        self.keyboards.clone()
    }

    /// Those of them that have been told nothing; they count as told.
    pub(crate) fn take_new_keyboards(&mut self) -> Vec<WireId> {
        std::mem::take(&mut self.new_keyboards)
    }

    /// What it has bound the output as.
    pub(crate) fn outputs(&self) -> Vec<WireId> {
        self.outputs.clone()
    }

    /// Whether a surface has not ended.
    pub(crate) fn has(&self, surface: WireId) -> bool {
        self.surfaces.contains_key(&surface)
    }

    fn add(&mut self, id: WireId, object: Object) -> Result<(), End> {
        if !id.is_app() || id <= self.newest {
            return Err(wrong(format!("the new object {} comes after {}", id.0, self.newest.0)));
        }
        self.newest = id;
        self.objects.insert(id, (object, self.share.lease(OBJECT_COST)?));
        Ok(())
    }

    fn place(&mut self, surface: WireId) -> Result<&mut Place, End> {
        self.surfaces.get_mut(&surface).ok_or_else(|| wrong(format!("{} is no surface", surface.0)))
    }

    fn object(&self, id: WireId) -> Result<Object, End> {
        self.objects.get(&id).map(|(object, _)| *object).ok_or_else(|| wrong(format!("no object {}", id.0)))
    }

    /// Reads a request that is no part of a unit.
    pub(crate) fn read(&mut self, request: &Request) -> Result<Ask, End> {
        let (id, opcode, args) = (request.object, request.opcode, &request.args[..]);
        if id == WireId::DISPLAY {
            return match (opcode, args) {
                (SYNC, [WireArg::NewId(callback)]) if callback.is_app() => Ok(Ask::Answer(*callback)),
                _ => Err(unknown(request)),
            };
        }
        let object = self.object(id)?;
        if args.is_empty() && Some(opcode) == destructor(object) {
            return Ok(self.end(id, object));
        }
        let ask = match object {
            Object::Global(global, version) => self.ask_global(global, version, opcode, args)?,
            Object::XdgSurface(surface) => self.ask_xdg_surface(id, surface, opcode, args)?,
            Object::Toplevel(surface) => self.ask_toplevel(surface, opcode, args)?,
            Object::Popup(surface) => self.ask_popup(surface, opcode, args)?,
            Object::Subsurface(child) => match (opcode, args) {
                (subsurface::SET_SYNC, []) => Some(Ask::Synchronise { child, waits: true }),
                (subsurface::SET_DESYNC, []) => Some(Ask::Synchronise { child, waits: false }),
                _ => None,
            },
            Object::Decoration(surface) => self.ask_decoration(id, surface, opcode, args),
            Object::Pointer => self.ask_pointer(opcode, args)?,
            Object::CursorShape => self.ask_shape(opcode, args),
            Object::DataDevice => self.ask_data_device(opcode, args),
            Object::Source => self.ask_source(id, opcode, args)?,
            Object::Offer(selection) => Self::ask_offer(selection, opcode, args),
            _ => None,
        };
        ask.ok_or_else(|| unknown(request))
    }

    fn ask_global(
        &mut self,
        global: Global,
        version: u32,
        opcode: u16,
        args: &[WireArg],
    ) -> Result<Option<Ask>, End> {
        Ok(match (global, opcode, args) {
            (Global::Compositor, CREATE_SURFACE, [WireArg::NewId(id)]) => {
                self.add(*id, Object::Surface)?;
                self.surfaces.insert(*id, Place::default());
                Some(Ask::Create(*id))
            }
            (
                Global::Subcompositor,
                GET,
                &[WireArg::NewId(id), WireArg::Object(child), WireArg::Object(parent)],
            ) => {
                self.adopt(child, parent)?;
                self.add(id, Object::Subsurface(child))?;
                Some(Ask::Adopt { child, parent })
            }
            (Global::Viewporter, GET, &[WireArg::NewId(id), WireArg::Object(surface)]) => {
                self.place(surface)?;
                self.add(id, Object::Viewport(surface))?;
                Some(Ask::Nothing)
            }
            (Global::FractionalScale, GET, &[WireArg::NewId(id), WireArg::Object(surface)]) => {
                self.place(surface)?;
                self.add(id, Object::FractionalScale)?;
                Some(Ask::Scale(id))
            }
            (Global::Shell | Global::Decoration, ..) => self.ask_shell(opcode, args)?,
            (Global::Seat, ..) => self.ask_seat(version, opcode, args)?,
            (Global::Clipboard, ..) => self.ask_clipboard(opcode, args)?,
            (Global::CursorShape, GET, [WireArg::NewId(id), WireArg::Object(_)]) => {
                self.add(*id, Object::CursorShape)?;
                Some(Ask::Nothing)
            }
            _ => None,
        })
    }

    /// An object ends.
    fn end(&mut self, id: WireId, object: Object) -> Ask {
        self.objects.remove(&id);
        self.pointers.remove(&id);
        self.keyboards.retain(|keyboard| *keyboard != id);
        self.new_keyboards.retain(|keyboard| *keyboard != id);
        self.outputs.retain(|output| *output != id);
        self.devices.retain(|device| *device != id);
        self.sources.remove(&id);
        let after = match object {
            Object::Surface => {
                self.orphan(id);
                self.surfaces.remove(&id);
                Ask::Destroy(id)
            }
            Object::Subsurface(child) => {
                self.orphan(child);
                self.leave_role(child);
                Ask::Orphan(child)
            }
            Object::XdgSurface(surface) => {
                self.leave_role(surface);
                Ask::LeaveScreen(surface)
            }
            Object::Toplevel(surface) | Object::Popup(surface) => Ask::LeaveScreen(surface),
            Object::Viewport(surface) => Ask::Uncrop(surface),
            Object::FractionalScale => Ask::Unscale(id),
            Object::Source => Ask::Clip(Clipping::Gone(id)),
            Object::Offer(_) => {
                self.offers -= 1;
                // The page made it, so the program does not wait to hear that.
                return Ask::Nothing;
            }
            _ => Ask::Nothing,
        };
        Ask::End { object: id, after: Box::new(after) }
    }

    fn take_role(&mut self, surface: WireId) -> Result<(), End> {
        let place = self.place(surface)?;
        if std::mem::replace(&mut place.has_role, true) {
            return Err(wrong(format!("surface {} has a role", surface.0)));
        }
        Ok(())
    }

    fn leave_role(&mut self, surface: WireId) {
        if let Some(place) = self.surfaces.get_mut(&surface) {
            place.has_role = false;
        }
    }

    /// A surface goes into another one, which is not inside it.
    fn adopt(&mut self, child: WireId, parent: WireId) -> Result<(), End> {
        self.take_role(child)?;
        let above = |surface: &WireId| self.surfaces.get(surface).and_then(|place| place.parent);
        let around = std::iter::successors(Some(parent), above).take(MAX_UNIT_DEPTH + 1);
        let around: Vec<WireId> = around.collect();
        if around.contains(&child) || around.len() > MAX_UNIT_DEPTH {
            return Err(wrong(format!(
                "surface {} goes into {}, inside itself or too deep",
                child.0, parent.0
            )));
        }
        let above = self.place(parent)?;
        above.children += 1;
        if above.children > MAX_UNIT_CHILDREN {
            return Err(wrong(format!("more is inside surface {} than may be", parent.0)));
        }
        self.place(child)?.parent = Some(parent);
        Ok(())
    }

    fn orphan(&mut self, child: WireId) {
        let parent = self.surfaces.get_mut(&child).and_then(|place| place.parent.take());
        if let Some(parent) = parent.and_then(|parent| self.surfaces.get_mut(&parent)) {
            parent.children -= 1;
        }
    }
}

/// The request that ends an object of this kind.
fn destructor(object: Object) -> Option<u16> {
    Some(match object {
        Object::Global(Global::Compositor | Global::Clipboard, _) => return None,
        Object::Global(Global::Seat, _) => 3,
        Object::Pointer | Object::Source => 1,
        Object::DataDevice | Object::Offer(_) => 2,
        _ => 0,
    })
}

fn unknown(request: &Request) -> End {
    wrong(format!("request {} of object {}, which a page does not know", request.opcode, request.object.0))
}

// Opcodes are the places of requests in the protocols' files.

const SYNC: u16 = 0;
const CREATE_SURFACE: u16 = 0;
/// What makes an object for a surface, of most globals.
const GET: u16 = 1;

mod subsurface {
    pub(super) const SET_SYNC: u16 = 4;
    pub(super) const SET_DESYNC: u16 = 5;
}
