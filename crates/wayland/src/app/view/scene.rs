//! What there is to be seen of a program: its windows, with the surfaces in them.
//!
//! Read from what is kept for another display. Popups are part of the surface that they belong to, at the place where
//! the active display has put them. Invariant: after any requests of the program, a scene is within the bounds of
//! units.

use std::collections::HashMap;

use crate::message::{Request, WireArg, WireId};
use crate::policy::Handler;

use super::super::connection::Connection;
use super::super::object::{self, Data};
use super::super::roles::Roles;
use super::super::standing::Stage;
use super::super::surface::Surface;

/// How deep surfaces are shown inside each other; a unit may be nested a little deeper.
const MAX_DEPTH: usize = 15;
/// Surfaces inside one that are shown: each has two requests in the unit's state, beside those of the surface itself.
const MAX_CHILDREN: usize = 2000;

/// All there is to be seen of a program at one time. One serves all its views.
#[derive(Debug)]
pub struct Scene {
    /// The windows that have content, the oldest first.
    pub(super) windows: Vec<Window>,
}

impl Scene {
    /// What there is to be seen now.
    pub fn of(core: &Connection) -> Self {
        Self { windows: windows(core) }
    }
}

/// One window.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) title: Option<Vec<u8>>,
    pub(super) app_id: Option<Vec<u8>>,
    pub(super) decoration: Decoration,
    /// The window inside its surface: x, y, width, height.
    pub(super) geometry: [i32; 4],
    pub(super) root: Node,
}

/// Who draws a window's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoration {
    /// The program did not ask.
    Unasked,
    /// The program leaves it to the compositor.
    Any,
    /// The program wants this mode.
    Mode(u32),
}

/// A surface in its place.
#[derive(Debug)]
pub(super) struct Node {
    /// Its name between the halves, which no other surface ever has.
    pub(super) name: WireId,
    pub(super) id: u32,
    /// Inside the surface that it belongs to.
    pub(super) at: (i32, i32),
    /// Those below it, the lowest first.
    pub(super) below: Vec<Node>,
    /// Those above it, the lowest first.
    pub(super) above: Vec<Node>,
}

impl Node {
    /// Those inside it, the lowest first.
    pub(super) fn children(&self) -> impl Iterator<Item = &Self> {
        self.below.iter().chain(&self.above)
    }

    /// It, and all inside it.
    pub(super) fn each(&self, look: &mut impl FnMut(&Self)) {
        look(self);
        self.children().for_each(|child| child.each(look));
    }
}

fn windows(core: &Connection) -> Vec<Window> {
    let roles = Roles::of(&core.objects);
    let (popups, decorations) = (popups(core), decorations(core));
    let mut windows: Vec<Window> = roles
        .windows
        .iter()
        .filter_map(|(surface, window)| Some((core.surfaces.get(surface)?, *surface, *window)))
        .filter(|(surface, ..)| surface.mapped())
        .map(|(surface, id, window)| {
            let root = node(core, &roles, &popups, (id, surface), (0, 0), MAX_DEPTH);
            Window {
                title: text(core, window, "title"),
                app_id: text(core, window, "app_id"),
                decoration: decorations.get(&id).copied().unwrap_or(Decoration::Unasked),
                geometry: geometry(core, surface),
                root,
            }
        })
        .collect();
    windows.sort_unstable_by_key(|window| window.root.name);
    windows
}

/// An open popup.
struct Popup {
    name: WireId,
    id: u32,
    parent: u32,
    /// In the parent's window.
    at: (i32, i32),
}

fn popups(core: &Connection) -> Vec<Popup> {
    let living = core.objects.iter().filter(|(_, object)| object.alive);
    let mut popups: Vec<Popup> = living
        .filter_map(|(_, object)| {
            let (Data::Popup(object::Popup { parent, at: Some(at), .. }), Some(id)) =
                (&object.data, object.surface)
            else {
                return None;
            };
            let surface = core.surfaces.get(&id)?;
            let shown = surface.mapped() && surface.standing.stage() == Stage::Shown;
            shown.then_some(Popup { name: surface.wire, id, parent: *parent, at: *at })
        })
        .collect();
    popups.sort_unstable_by_key(|popup| popup.name);
    popups
}

fn node(
    core: &Connection,
    roles: &Roles,
    popups: &[Popup],
    (id, surface): (u32, &Surface),
    at: (i32, i32),
    depth: usize,
) -> Node {
    let mut node = Node { name: surface.wire, id, at, below: Vec::new(), above: Vec::new() };
    let Some(depth) = depth.checked_sub(1) else { return node };
    let places = places(core, roles, surface);
    let mut above = false;
    for child in surface.committed.stack.order() {
        if *child == id {
            above = true;
            continue;
        }
        let Some(inside) = core.surfaces.get(child).filter(|_| node.children().count() < MAX_CHILDREN) else {
            continue;
        };
        let at = places.iter().find(|(of, _)| of == child).map_or((0, 0), |(_, at)| *at);
        let inside = self::node(core, roles, popups, (*child, inside), at, depth);
        (if above { &mut node.above } else { &mut node.below }).push(inside);
    }
    for popup in popups.iter().filter(|popup| popup.parent == id) {
        let Some(inside) = core.surfaces.get(&popup.id) else { continue };
        if node.children().count() >= MAX_CHILDREN {
            break;
        }
        let ([x, y, ..], [left, top, ..]) = (geometry(core, surface), geometry(core, inside));
        let place = |window: i32, at: i32, own: i32| window.saturating_add(at).saturating_sub(own);
        let at = (place(x, popup.at.0, left), place(y, popup.at.1, top));
        node.above.push(self::node(core, roles, popups, (popup.id, inside), at, depth));
    }
    node
}

/// Where the children of a surface are.
fn places(core: &Connection, roles: &Roles, surface: &Surface) -> Vec<(u32, (i32, i32))> {
    if surface.committed.stack.order().is_empty() {
        return Vec::new();
    }
    let requests = surface.committed.requests();
    let told = requests.filter_map(|request| match request.args[..] {
        [WireArg::Int(x), WireArg::Int(y)] if named(core, &request) == Some("set_position") => {
            let subsurface = core.objects.by_name(request.object)?;
            let child = core.child_of(subsurface)?;
            (roles.children.get(&child) == Some(&subsurface)).then_some((child, (x, y)))
        }
        _ => None,
    });
    told.collect()
}

/// Where the window is inside its surface.
fn geometry(core: &Connection, surface: &Surface) -> [i32; 4] {
    let told = surface.committed.requests().find_map(|request| match request.args[..] {
        [WireArg::Int(x), WireArg::Int(y), WireArg::Int(width), WireArg::Int(height)]
            if named(core, &request) == Some("set_window_geometry") =>
        {
            Some([x, y, width, height])
        }
        _ => None,
    });
    told.unwrap_or_else(|| {
        let (width, height) = surface.size().unwrap_or_default();
        [0, 0, width, height]
    })
}

/// What a kept request is called.
fn named(core: &Connection, request: &Request) -> Option<&'static str> {
    let object = core.objects.by_name(request.object).and_then(|id| core.objects.of(id))?;
    object.interface.requests.get(usize::from(request.opcode)).map(|desc| desc.name)
}

fn text(core: &Connection, window: u32, slot: &str) -> Option<Vec<u8>> {
    match core.objects.of(window)?.past.last(slot)?.args.first()? {
        WireArg::Str(text) => text.clone(),
        _ => None,
    }
}

/// Who draws the frames of windows, by their surfaces; of those that are not among them, the program did not ask.
fn decorations(core: &Connection) -> HashMap<u32, Decoration> {
    let objects = core.objects.iter().map(|(_, object)| object);
    let asked = objects.filter(|object| object.alive && object.handler == Handler::Decoration);
    asked
        .filter_map(|object| {
            let mode = object.past.last("mode").and_then(|request| request.args.first().cloned());
            let decoration = match mode {
                Some(WireArg::Uint(mode)) => Decoration::Mode(mode),
                _ => Decoration::Any,
            };
            Some((object.surface?, decoration))
        })
        .collect()
}
