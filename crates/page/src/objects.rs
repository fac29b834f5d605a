//! The objects that the app side has made, and what it says to them.
//!
//! A request is read against these when it arrives, whether it can be carried out then or not: one that waits counts as
//! done here. What a view has no use for is a violation, for a page would answer it in vain. Invariants: ids only grow;
//! surfaces make a forest of bounded depth; a surface has one group all its life, and all that is said about the
//! surfaces of a window is said in that window's group.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use wayferry_message::{MAX_UNIT_CHILDREN, MAX_UNIT_DEPTH, Request, Unit, WireArg, WireId};

use crate::ask::{Ask, Change, Commit};
use crate::end::{End, wrong};
use crate::share::{Lease, Share};

/// What an object and the surface that it stands for take, about, in bytes.
pub(crate) const OBJECT_COST: usize = 1 << 10;

/// Bytes of a title, or of the name of a program's kind, that are kept.
const MAX_TEXT: usize = 256;

/// A global of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Factory {
    Compositor,
    Subcompositor,
    Shell,
    Viewporter,
}

impl Factory {
    pub(crate) const ALL: [Self; 4] = [Self::Compositor, Self::Subcompositor, Self::Shell, Self::Viewporter];

    /// Its registry name.
    pub(crate) fn name(self) -> u32 {
        self as u32 + 1
    }

    pub(crate) fn interface(self) -> &'static str {
        match self {
            Self::Compositor => "wl_compositor",
            Self::Subcompositor => "wl_subcompositor",
            Self::Shell => "xdg_wm_base",
            Self::Viewporter => "wp_viewporter",
        }
    }

    /// The version that is offered: the lowest that has all that views say.
    pub(crate) fn version(self) -> u32 {
        match self {
            // `wl_surface.set_buffer_scale` came with 3.
            Self::Compositor => 3,
            Self::Subcompositor | Self::Shell | Self::Viewporter => 1,
        }
    }
}

/// What an id stands for. Those but factories belong to a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Object {
    Factory(Factory),
    Surface,
    Subsurface(WireId),
    XdgSurface(WireId),
    Toplevel(WireId),
    Viewport(WireId),
}

/// What is known of a surface.
#[derive(Debug)]
struct Place {
    /// The outermost surface that it is in, and the one right above it.
    group: WireId,
    parent: Option<WireId>,
    depth: usize,
    /// Surfaces that were put into it and have not ended.
    children: usize,
    /// Something was put into it, which may go on being there in a queue after it has ended here.
    was_parent: bool,
    /// It has, or had, a role.
    has_role: bool,
    /// It is, or was, a window.
    was_window: bool,
    /// The number of its last unit.
    last_unit: u64,
}

impl Place {
    /// Of a surface in no other.
    fn new(surface: WireId) -> Self {
        Self {
            group: surface,
            parent: None,
            depth: 0,
            children: 0,
            was_parent: false,
            has_role: false,
            was_window: false,
            last_unit: 0,
        }
    }
}

/// A request that was read: what it asks for, and whose turn that has to wait for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) ask: Ask,
    /// `None` if it waits for nothing.
    pub(crate) group: Option<WireId>,
    /// The object that it ends.
    pub(crate) ends: Option<WireId>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Objects {
    objects: BTreeMap<WireId, (Object, Lease)>,
    surfaces: BTreeMap<WireId, Place>,
    newest: WireId,
    share: Rc<Share>,
}

impl Objects {
    pub(crate) fn new(share: Rc<Share>) -> Self {
        Self { objects: BTreeMap::new(), surfaces: BTreeMap::new(), newest: WireId::DISPLAY, share }
    }

    /// A global is bound.
    pub(crate) fn bind(&mut self, global: u32, interface: &str, version: u32, id: WireId) -> Result<(), End> {
        let is_it = |factory: &Factory| factory.name() == global && factory.interface() == interface;
        let factory = Factory::ALL.into_iter().find(is_it);
        let Some(factory) = factory.filter(|factory| (1..=factory.version()).contains(&version)) else {
            return Err(wrong(format!("global {global} is bound, which a page has not, or not so new")));
        };
        self.add(id, Object::Factory(factory))
    }

    fn add(&mut self, id: WireId, object: Object) -> Result<(), End> {
        if !id.is_app() || id <= self.newest {
            return Err(wrong(format!("the new object {} comes after {}", id.0, self.newest.0)));
        }
        self.newest = id;
        self.objects.insert(id, (object, self.share.lease(OBJECT_COST)?));
        Ok(())
    }

    /// The group of a surface that has not ended.
    pub(crate) fn group(&self, surface: WireId) -> Option<WireId> {
        self.surfaces.get(&surface).map(|place| place.group)
    }

    fn place(&mut self, surface: WireId) -> Result<&mut Place, End> {
        self.surfaces.get_mut(&surface).ok_or_else(|| wrong(format!("{} is no surface", surface.0)))
    }

    fn object(&self, id: WireId) -> Result<Object, End> {
        self.objects.get(&id).map(|(object, _)| *object).ok_or_else(|| wrong(format!("no object {}", id.0)))
    }

    /// Reads a request that is no part of a unit.
    pub(crate) fn read(&mut self, request: &Request) -> Result<Read, End> {
        let id = request.object;
        let (opcode, args) = (request.opcode, &request.args[..]);
        let read = match self.object(id)? {
            Object::Factory(factory) => self.make(factory, opcode, args)?,
            Object::XdgSurface(surface) => match (opcode, args) {
                (DESTROY, []) => Some((surface, Ask::LeaveScreen(surface))),
                (xdg_surface::GET_TOPLEVEL, [WireArg::NewId(toplevel)]) => {
                    if std::mem::replace(&mut self.place(surface)?.was_window, true) {
                        return Err(wrong(format!("surface {} is a window once more", surface.0)));
                    }
                    self.add(*toplevel, Object::Toplevel(surface))?;
                    Some((surface, Ask::BeWindow { surface, xdg_surface: id, toplevel: *toplevel }))
                }
                _ => None,
            },
            Object::Toplevel(surface) => match (opcode, args) {
                (DESTROY, []) => Some((surface, Ask::LeaveScreen(surface))),
                (toplevel::SET_TITLE, [WireArg::Str(Some(title))]) => {
                    Some((surface, Ask::Title { surface, title: text(title) }))
                }
                (toplevel::SET_APP_ID, [WireArg::Str(Some(app_id))]) => {
                    Some((surface, Ask::AppId { surface, app_id: text(app_id) }))
                }
                _ => None,
            },
            Object::Subsurface(_) | Object::Viewport(_) | Object::Surface
                if opcode != DESTROY || !args.is_empty() =>
            {
                None
            }
            Object::Subsurface(child) => Some((child, Ask::Orphan(child))),
            // A view ends it with its surface alone.
            Object::Viewport(surface) => Some((surface, Ask::Nothing)),
            Object::Surface => Some((id, Ask::Destroy(id))),
        };
        let Some((surface, ask)) = read else {
            return Err(wrong(format!("request {opcode} of object {}, which no view says", id.0)));
        };
        // What is new waits for nothing, and neither does an object that outlived its surface.
        let group = self.group(surface).filter(|_| !matches!(ask, Ask::Create(_)));
        let ends = self.end_object(id, &ask, opcode);
        Ok(Read { ask, group, ends })
    }

    /// Forgets an object that a request ends.
    fn end_object(&mut self, id: WireId, ask: &Ask, opcode: u16) -> Option<WireId> {
        let (object, _) = self.objects.get(&id)?;
        if matches!(object, Object::Factory(_)) || opcode != DESTROY {
            return None;
        }
        self.objects.remove(&id);
        if let Ask::Destroy(surface) = ask {
            let parent = self.surfaces.remove(surface).and_then(|place| place.parent);
            if let Some(parent) = parent.and_then(|parent| self.surfaces.get_mut(&parent)) {
                parent.children -= 1;
            }
        }
        Some(id)
    }

    /// Reads what is asked of a global.
    fn make(
        &mut self,
        factory: Factory,
        opcode: u16,
        args: &[WireArg],
    ) -> Result<Option<(WireId, Ask)>, End> {
        Ok(match (factory, opcode, args) {
            (Factory::Compositor, compositor::CREATE_SURFACE, [WireArg::NewId(id)]) => {
                self.add(*id, Object::Surface)?;
                self.surfaces.insert(*id, Place::new(*id));
                Some((*id, Ask::Create(*id)))
            }
            (
                Factory::Subcompositor,
                subcompositor::GET_SUBSURFACE,
                &[WireArg::NewId(id), WireArg::Object(child), WireArg::Object(parent)],
            ) => {
                self.adopt(child, parent)?;
                self.add(id, Object::Subsurface(child))?;
                Some((child, Ask::Adopt { child, parent }))
            }
            (Factory::Shell, shell::GET_XDG_SURFACE, &[WireArg::NewId(id), WireArg::Object(surface)]) => {
                self.begin_role(surface)?;
                self.add(id, Object::XdgSurface(surface))?;
                Some((surface, Ask::Nothing))
            }
            (
                Factory::Viewporter,
                viewporter::GET_VIEWPORT,
                &[WireArg::NewId(id), WireArg::Object(surface)],
            ) => {
                self.place(surface)?;
                self.add(id, Object::Viewport(surface))?;
                Some((surface, Ask::Nothing))
            }
            _ => None,
        })
    }

    fn begin_role(&mut self, surface: WireId) -> Result<(), End> {
        let place = self.place(surface)?;
        if std::mem::replace(&mut place.has_role, true) {
            return Err(wrong(format!("surface {} has a role", surface.0)));
        }
        Ok(())
    }

    /// A surface goes into another one; nothing may have been in it or been said of it before, so the surfaces stay a
    /// forest and it changes its group in time.
    fn adopt(&mut self, child: WireId, parent: WireId) -> Result<(), End> {
        let above = self.place(parent)?;
        let (group, depth) = (above.group, above.depth + 1);
        above.children += 1;
        above.was_parent = true;
        if depth > MAX_UNIT_DEPTH || above.children > MAX_UNIT_CHILDREN {
            let siblings = above.children;
            return Err(wrong(format!("surface {} is {depth} deep, and one of {siblings}", child.0)));
        }
        self.begin_role(child)?;
        let place = self.place(child)?;
        if place.was_parent || place.last_unit > 0 {
            return Err(wrong(format!("surface {} was used before it went into {}", child.0, parent.0)));
        }
        (place.group, place.parent, place.depth) = (group, Some(parent), depth);
        Ok(())
    }

    /// Reads a unit. Gives the group that it belongs to, too.
    pub(crate) fn read_unit(&mut self, unit: &Unit) -> Result<(Commit, WireId), End> {
        let group = self.place(unit.surface)?.group;
        Ok((self.read_unit_of(unit, group)?, group))
    }

    /// Units inside one are of surfaces right inside that one, each once: so no message names more of them than there
    /// are.
    fn read_unit_of(&mut self, unit: &Unit, group: WireId) -> Result<Commit, End> {
        let mut named = BTreeSet::new();
        for child in unit.children.iter().map(|child| child.surface) {
            if self.place(child)?.parent != Some(unit.surface) || !named.insert(child) {
                return Err(wrong(format!("a unit of surface {} names {}", unit.surface.0, child.0)));
            }
        }
        let children = unit.children.iter().map(|child| self.read_unit_of(child, group));
        let children = children.collect::<Result<_, _>>()?;
        let surface = unit.surface;
        let place = self.place(surface)?;
        if place.group != group || unit.number <= place.last_unit {
            let last = place.last_unit;
            return Err(wrong(format!(
                "unit {} of surface {} after {last}, or inside another window",
                unit.number, surface.0
            )));
        }
        place.last_unit = unit.number;
        let asks = unit.state.iter().map(|request| self.read_state(request, group));
        let asks = asks.collect::<Result<_, _>>()?;
        Ok(Commit {
            surface,
            number: unit.number,
            asks,
            content: unit.content,
            feedback: unit.feedback,
            children,
        })
    }

    /// Reads a part of a unit.
    fn read_state(&mut self, request: &Request, group: WireId) -> Result<Ask, End> {
        let object = self.object(request.object)?;
        let (surface, change) = match object {
            Object::Surface => (request.object, surface_change(request)),
            Object::Viewport(surface) => (surface, viewport_change(request)),
            Object::Subsurface(child) => (child, self.subsurface_change(request, child)),
            Object::XdgSurface(surface) => match (request.opcode, &request.args[..]) {
                (xdg_surface::ACK_CONFIGURE, [WireArg::Uint(_)]) => return Ok(Ask::Nothing),
                _ => (surface, geometry_change(request)),
            },
            Object::Toplevel(_) => match (request.opcode, &request.args[..]) {
                (toplevel::SET_MAX_SIZE | toplevel::SET_MIN_SIZE, [WireArg::Int(_), WireArg::Int(_)]) => {
                    return Ok(Ask::Nothing);
                }
                _ => (request.object, None),
            },
            Object::Factory(_) => (request.object, None),
        };
        // A viewport or a role may have outlived its surface.
        if self.group(surface).is_some_and(|of| of != group) {
            return Err(wrong(format!("surface {} is changed inside another window", surface.0)));
        }
        let change = change.ok_or_else(|| {
            wrong(format!("request {} of object {} in a unit", request.opcode, request.object.0))
        })?;
        Ok(Ask::Change { surface, change })
    }

    fn subsurface_change(&self, request: &Request, child: WireId) -> Option<Change> {
        match (request.opcode, &request.args[..]) {
            (subsurface::SET_POSITION, &[WireArg::Int(x), WireArg::Int(y)]) => Some(Change::Position((x, y))),
            (opcode @ (subsurface::PLACE_ABOVE | subsurface::PLACE_BELOW), &[WireArg::Object(sibling)])
                if self.is_beside(child, sibling) =>
            {
                Some(Change::Stack { sibling, above: opcode == subsurface::PLACE_ABOVE })
            }
            _ => None,
        }
    }

    /// Whether a surface can be put above or below another one: the one that it is in, or what else is in that.
    fn is_beside(&self, child: WireId, sibling: WireId) -> bool {
        let parent = self.surfaces.get(&child).and_then(|place| place.parent);
        let is_in = |surface: &Place| surface.parent.is_some() && surface.parent == parent;
        child != sibling && (parent == Some(sibling) || self.surfaces.get(&sibling).is_some_and(is_in))
    }
}

pub(crate) fn surface_change(request: &Request) -> Option<Change> {
    match (request.opcode, &request.args[..]) {
        (surface::SET_BUFFER_SCALE, &[WireArg::Int(scale)]) if scale > 0 => Some(Change::Scale(scale)),
        (surface::SET_BUFFER_TRANSFORM, &[WireArg::Int(transform)]) => {
            let transform = u8::try_from(transform).ok().filter(|transform| *transform < 8)?;
            Some(Change::Transform(transform))
        }
        _ => None,
    }
}

pub(crate) fn viewport_change(request: &Request) -> Option<Change> {
    match (request.opcode, &request.args[..]) {
        (
            viewport::SET_SOURCE,
            &[WireArg::Fixed(x), WireArg::Fixed(y), WireArg::Fixed(width), WireArg::Fixed(height)],
        ) => {
            let crop = [x, y, width, height];
            let is_unset = crop == [UNSET; 4];
            let is_sound = x >= 0 && y >= 0 && width > 0 && height > 0;
            (is_unset || is_sound).then_some(Change::Crop((!is_unset).then_some(crop)))
        }
        (viewport::SET_DESTINATION, &[WireArg::Int(width), WireArg::Int(height)]) => {
            let is_unset = (width, height) == (-1, -1);
            let size = (!is_unset).then_some((width, height));
            (is_unset || (width > 0 && height > 0)).then_some(Change::Destination(size))
        }
        _ => None,
    }
}

pub(crate) fn geometry_change(request: &Request) -> Option<Change> {
    match (request.opcode, &request.args[..]) {
        (
            xdg_surface::SET_WINDOW_GEOMETRY,
            &[WireArg::Int(x), WireArg::Int(y), WireArg::Int(width), WireArg::Int(height)],
        ) if width > 0 && height > 0 => Some(Change::Geometry([x, y, width, height])),
        _ => None,
    }
}

/// Text of a program, fit to be shown.
pub(crate) fn text(bytes: &[u8]) -> String {
    wayferry_proto::sanitise(&String::from_utf8_lossy(bytes), MAX_TEXT)
}

/// −1 in 24.8 fixed point.
const UNSET: i32 = -256;

// Opcodes are the places of requests in the protocols' files.

/// Of every interface here but `wl_compositor`.
const DESTROY: u16 = 0;

mod compositor {
    pub(super) const CREATE_SURFACE: u16 = 0;
}

mod subcompositor {
    pub(super) const GET_SUBSURFACE: u16 = 1;
}

mod shell {
    pub(super) const GET_XDG_SURFACE: u16 = 2;
}

mod viewporter {
    pub(super) const GET_VIEWPORT: u16 = 1;
}

mod surface {
    pub(super) const SET_BUFFER_TRANSFORM: u16 = 7;
    pub(super) const SET_BUFFER_SCALE: u16 = 8;
}

mod subsurface {
    pub(super) const SET_POSITION: u16 = 1;
    pub(super) const PLACE_ABOVE: u16 = 2;
    pub(super) const PLACE_BELOW: u16 = 3;
}

mod viewport {
    pub(super) const SET_SOURCE: u16 = 1;
    pub(super) const SET_DESTINATION: u16 = 2;
}

mod xdg_surface {
    pub(super) const GET_TOPLEVEL: u16 = 1;
    pub(super) const SET_WINDOW_GEOMETRY: u16 = 3;
    pub(super) const ACK_CONFIGURE: u16 = 4;
}

mod toplevel {
    pub(super) const SET_TITLE: u16 = 2;
    pub(super) const SET_APP_ID: u16 = 3;
    pub(super) const SET_MAX_SIZE: u16 = 7;
    pub(super) const SET_MIN_SIZE: u16 = 8;
}
