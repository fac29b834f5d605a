//! What a view's display is told: the difference between a scene and what it was told before.
//!
//! Surfaces inside a window are synchronised children there, so each change of a window is one unit. Invariant: a unit
//! leaves only when all contents that it shows are there in full, and names only objects that were made before.

use std::collections::HashSet;

use crate::action::Action;
use crate::message::{MAX_UNIT_STATE, Request, ToDisplay, Unit, UnitContent, WireArg, WireId};
use crate::tables;

use super::super::connection::Connection;
use super::super::credit::Credit;
use super::super::flush;
use super::super::painter::Means;
use super::super::shape::Shape;
use super::content::{Look, Pixels, Readiness};
use super::scene::{self, Decoration, Node};
use super::{Encoder, End, MAX_UNAPPLIED, RemoteSurface, Time, View, Window};

/// −1 in 24.8 fixed point: unset.
const UNSET: i32 = -256;

impl View {
    /// Binds what windows need, once; says whether it is there.
    pub(super) fn bind(&mut self) -> bool {
        if self.globals.compositor.is_none() {
            self.globals.compositor = self.bind_global("wl_compositor");
            self.globals.subcompositor = self.bind_global("wl_subcompositor");
            self.globals.shell = self.bind_global("xdg_wm_base");
            self.globals.viewporter = self.bind_global("wp_viewporter");
            self.globals.decorations = self.bind_global("zxdg_decoration_manager_v1");
        }
        self.globals.compositor.is_some() && self.globals.shell.is_some()
    }

    fn bind_global(&mut self, interface: &str) -> Option<WireId> {
        let global = self.desk.snapshot.globals.iter().find(|global| global.interface == interface)?;
        let (global, version) = (global.name, global.version.min(tables::version_cap(interface)));
        let id = self.name();
        self.send(&ToDisplay::Bind { global, interface: interface.to_owned(), version, id });
        Some(id)
    }

    fn name(&mut self) -> WireId {
        let name = self.next;
        self.next = name.next();
        name
    }

    fn send(&mut self, message: &ToDisplay) {
        let bytes = message.encode();
        if bytes.len() > wayferry_proto::MAX_MESSAGE {
            return self.finish(End::TooMuch("bytes of one unit for a view"));
        }
        self.flow.send(&bytes);
        self.actions.push_back(Action::Message(bytes));
    }

    fn ask(&mut self, object: WireId, name: (&str, &str), args: Vec<WireArg>) {
        request(object, name, args).into_iter().for_each(|request| self.send(&ToDisplay::Request(request)));
    }

    /// Makes an object by a request whose first argument it is.
    fn make(&mut self, factory: WireId, name: (&str, &str), more: &[WireArg]) -> WireId {
        let id = self.name();
        let args = [WireArg::NewId(id)].into_iter().chain(more.iter().cloned()).collect();
        self.ask(factory, name, args);
        id
    }

    /// Windows and surfaces that are no more are no more at the display.
    pub(super) fn remove(&mut self, windows: &[scene::Window]) {
        let mut seen = HashSet::new();
        let mut inside = |node: &Node, parent: Option<WireId>| {
            seen.insert((node.name, parent));
            let mut pending: Vec<&Node> = vec![node];
            while let Some(node) = pending.pop() {
                for child in node.children() {
                    seen.insert((child.name, Some(node.name)));
                    pending.push(child);
                }
            }
        };
        windows.iter().for_each(|window| inside(&window.root, None));
        let gone = self.surfaces.iter().filter(|(name, shown)| !seen.contains(&(**name, shown.parent)));
        let mut gone: Vec<(WireId, WireId)> = gone.map(|(name, shown)| (shown.surface, *name)).collect();
        // Those inside are younger than what they are in.
        gone.sort_unstable_by(|one, other| other.cmp(one));
        for (_, name) in gone {
            self.drop_surface(name);
        }
    }

    fn drop_surface(&mut self, name: WireId) {
        let inside = self.surfaces.iter().filter(|(_, shown)| shown.parent == Some(name));
        let inside: Vec<WireId> = inside.map(|(name, _)| *name).collect();
        inside.into_iter().for_each(|child| self.drop_surface(child));
        let Some(shown) = self.surfaces.remove(&name) else { return };
        if let Some(parent) = shown.parent.and_then(|parent| self.surfaces.get_mut(&parent)) {
            parent.order.retain(|other| *other != name);
        }
        if let Some(window) = self.windows.remove(&name) {
            let decoration = window.decoration.map(|it| (it, "zxdg_toplevel_decoration_v1"));
            let roles = [(window.toplevel, "xdg_toplevel"), (window.xdg_surface, "xdg_surface")];
            for (object, interface) in decoration.into_iter().chain(roles) {
                self.ask(object, (interface, "destroy"), Vec::new());
            }
        }
        let parts = [(shown.subsurface, "wl_subsurface"), (shown.viewport, "wp_viewport")];
        let surface = (Some(shown.surface), "wl_surface");
        for (object, interface) in parts.into_iter().chain([surface]) {
            object.into_iter().for_each(|object| self.ask(object, (interface, "destroy"), Vec::new()));
        }
    }

    /// Makes what the display lacks of a window, and tells it what is not part of a unit.
    pub(super) fn add(&mut self, window: &scene::Window) {
        let name = window.root.name;
        if !self.windows.contains_key(&name) {
            self.add_window(window);
        }
        self.add_inside(&window.root);
        let Some(told) = self.windows.get_mut(&name) else { return };
        let toplevel = told.toplevel;
        let title = (told.title != window.title).then(|| window.title.clone());
        let app_id = (told.app_id != window.app_id).then(|| window.app_id.clone());
        told.title.clone_from(&window.title);
        told.app_id.clone_from(&window.app_id);
        if let Some(title) = title {
            let title = WireArg::Str(Some(title.unwrap_or_default()));
            self.ask(toplevel, ("xdg_toplevel", "set_title"), vec![title]);
        }
        if let Some(Some(app_id)) = app_id {
            self.ask(toplevel, ("xdg_toplevel", "set_app_id"), vec![WireArg::Str(Some(app_id))]);
        }
    }

    fn add_window(&mut self, window: &scene::Window) {
        let Some(shell) = self.globals.shell else { return };
        let Some(surface) = self.add_surface(window.root.name, None) else { return };
        let of_surface = [WireArg::Object(surface)];
        let xdg_surface = self.make(shell, ("xdg_wm_base", "get_xdg_surface"), &of_surface);
        let toplevel = self.make(xdg_surface, ("xdg_surface", "get_toplevel"), &[]);
        let decorations = self.globals.decorations.filter(|_| window.decoration != Decoration::Unasked);
        let decoration = decorations.map(|decorations| {
            let name = ("zxdg_decoration_manager_v1", "get_toplevel_decoration");
            self.make(decorations, name, &[WireArg::Object(toplevel)])
        });
        if let (Some(decoration), Decoration::Mode(mode)) = (decoration, window.decoration) {
            self.ask(decoration, ("zxdg_toplevel_decoration_v1", "set_mode"), vec![WireArg::Uint(mode)]);
        }
        let told = Window {
            xdg_surface,
            toplevel,
            decoration,
            title: None,
            app_id: None,
            geometry: [0; 4],
            configured: false,
            configure: None,
            visible: true,
            torn: None,
            behind: None,
            unapplied: std::collections::VecDeque::new(),
        };
        self.windows.insert(window.root.name, told);
        // Compositors decide by its size where a window goes, and whether its size can be changed.
        let mut state = Vec::new();
        self.tell_geometry(window, &mut state);
        self.commit(window.root.name, state, UnitContent::Keep, Vec::new());
    }

    fn add_surface(&mut self, name: WireId, parent: Option<(WireId, WireId)>) -> Option<WireId> {
        let surface = self.make(self.globals.compositor?, ("wl_compositor", "create_surface"), &[]);
        let subsurface = match parent {
            Some((_, parent)) => {
                let objects = [WireArg::Object(surface), WireArg::Object(parent)];
                let maker = self.globals.subcompositor?;
                Some(self.make(maker, ("wl_subcompositor", "get_subsurface"), &objects))
            }
            None => None,
        };
        let shown = RemoteSurface {
            surface,
            subsurface,
            parent: parent.map(|(name, _)| name),
            viewport: None,
            pixels: Pixels::new(surface),
            mapped: false,
            units: 0,
            shape: Shape::NEW,
            at: (0, 0),
            order: vec![name],
        };
        self.surfaces.insert(name, shown);
        Some(surface)
    }

    fn add_inside(&mut self, node: &Node) {
        for child in node.children() {
            let Some(parent) = self.surfaces.get_mut(&node.name) else { return };
            let surface = parent.surface;
            if !parent.order.contains(&child.name) {
                // A new one is on top.
                parent.order.push(child.name);
                self.add_surface(child.name, Some((node.name, surface)));
            }
            self.add_inside(child);
        }
    }

    /// Shows a window as it is now, if its display is ready for that and all that is to be seen is there.
    pub(super) fn show(
        &mut self,
        now: Time,
        core: &Connection,
        window: &scene::Window,
        encoder: &mut Encoder,
        credit: &mut Credit,
    ) {
        let Some(told) = self.windows.get(&window.root.name) else { return };
        if !told.configured || !told.visible || told.unapplied.len() >= MAX_UNAPPLIED {
            return;
        }
        let understands = self.understands(core);
        let (mut ready, mut torn) = (Readiness::Settled, false);
        window.root.each(&mut |node| {
            let Some(surface) = core.surfaces.get(&node.id) else { return };
            // What is cached is on its way into the parent's commit.
            torn |= surface.waiting.cached().is_some();
            let Some(shown) = self.surfaces.get_mut(&node.name) else { return };
            let means = Means { now, encoder, credit, lossy: self.lossy };
            let (actions, counts) = (&mut self.actions, &mut self.counts);
            let mut look = Look { core, means, understands, actions, counts };
            ready = ready.max(shown.pixels.prepare(surface, &mut look));
        });
        let Some(told) = self.windows.get_mut(&window.root.name) else { return };
        // A program may cache without end.
        let since = if torn { *told.torn.get_or_insert(now) } else { now };
        let torn = torn && now.since(since) < flush::PATIENCE;
        if !torn {
            told.torn = None;
        }
        if ready == Readiness::Waits || torn {
            return self.wait(now, now, credit);
        }
        let placed = self.is_placed(now, window.root.name, ready);
        if ready == Readiness::Settled {
            self.settle(core, &window.root);
        }
        let mut state = Vec::new();
        if placed {
            self.tell_geometry(window, &mut state);
        } else {
            self.wait(now, now, credit);
        }
        if let Some(told) = self.windows.get_mut(&window.root.name)
            && let Some(serial) = told.configure.take()
        {
            let name = ("xdg_surface", "ack_configure");
            state.extend(request(told.xdg_surface, name, vec![WireArg::Uint(serial)]));
        }
        if let Some(unit) = self.unit(core, &window.root, state, placed) {
            if let Some(told) = self.windows.get_mut(&window.root.name) {
                told.unapplied.push_back(unit.number);
            }
            self.send(&ToDisplay::Unit(unit));
        }
    }

    /// Whether everything goes where it is now. Places are those of the newest commits, so older pixels stay where they
    /// were; but with a window that never comes to rest, not for ever.
    fn is_placed(&mut self, now: Time, window: WireId, ready: Readiness) -> bool {
        let Some(told) = self.windows.get_mut(&window) else { return false };
        let placed =
            ready == Readiness::Settled || now.since(*told.behind.get_or_insert(now)) >= flush::PATIENCE;
        if placed {
            told.behind = None;
        }
        placed
    }

    /// All of a window is there as it is now.
    fn settle(&mut self, core: &Connection, root: &Node) {
        root.each(&mut |node| {
            let (surface, shown) = (core.surfaces.get(&node.id), self.surfaces.get_mut(&node.name));
            if let (Some(surface), Some(shown)) = (surface, shown) {
                shown.pixels.settle(surface);
            }
        });
    }

    /// A view's window has the size that the program's has, and no other.
    fn tell_geometry(&mut self, window: &scene::Window, state: &mut Vec<Request>) {
        let Some(told) = self.windows.get_mut(&window.root.name) else { return };
        let [x, y, width, height] = window.geometry;
        if told.geometry == window.geometry || width <= 0 || height <= 0 {
            return;
        }
        told.geometry = window.geometry;
        let ints = |values: &[i32]| values.iter().map(|value| WireArg::Int(*value)).collect();
        state.extend(request(
            told.xdg_surface,
            ("xdg_surface", "set_window_geometry"),
            ints(&[x, y, width, height]),
        ));
        for bound in ["set_min_size", "set_max_size"] {
            state.extend(request(told.toplevel, ("xdg_toplevel", bound), ints(&[width, height])));
        }
    }

    /// What differs of a surface and of those inside it, their places too or not; `None` if nothing does.
    fn unit(
        &mut self,
        core: &Connection,
        node: &Node,
        mut state: Vec<Request>,
        placed: bool,
    ) -> Option<Unit> {
        self.place_inside(node, &mut state, placed);
        let children: Vec<Unit> =
            node.children().filter_map(|child| self.unit(core, child, Vec::new(), placed)).collect();
        let surface = core.surfaces.get(&node.id)?;
        if placed {
            self.stack_inside(node, &mut state);
        }
        let shown = self.surfaces.get_mut(&node.name)?;
        let content = if surface.mapped() {
            let content = shown.pixels.take_ready().map_or(UnitContent::Keep, UnitContent::Update);
            shown.mapped |= content != UnitContent::Keep;
            let shape = shown.pixels.shape().filter(|shape| *shape != shown.shape);
            shape.into_iter().for_each(|shape| self.shape(node.name, shape, &mut state));
            content
        } else if shown.mapped {
            shown.pixels.renew();
            shown.mapped = false;
            UnitContent::None
        } else {
            UnitContent::Keep
        };
        if state.is_empty() && children.is_empty() && content == UnitContent::Keep {
            return None;
        }
        // What exceeds a unit is decoration: the order of hundreds of children.
        state.truncate(MAX_UNIT_STATE);
        self.unit_of(node.name, state, content, children)
    }

    fn unit_of(
        &mut self,
        name: WireId,
        state: Vec<Request>,
        content: UnitContent,
        children: Vec<Unit>,
    ) -> Option<Unit> {
        let shown = self.surfaces.get_mut(&name)?;
        shown.units += 1;
        let (surface, number) = (shown.surface, shown.units);
        Some(Unit {
            surface,
            number,
            state,
            content,
            offset: (0, 0),
            feedback: false,
            answered: None,
            children,
        })
    }

    fn commit(&mut self, name: WireId, state: Vec<Request>, content: UnitContent, children: Vec<Unit>) {
        let unit = self.unit_of(name, state, content, children);
        unit.into_iter().for_each(|unit| self.send(&ToDisplay::Unit(unit)));
    }

    /// What is not seen yet always gets its place.
    fn place_inside(&mut self, node: &Node, state: &mut Vec<Request>, placed: bool) {
        for child in node.children() {
            let moves = |shown: &&mut RemoteSurface| shown.at != child.at && (placed || !shown.mapped);
            let Some(shown) = self.surfaces.get_mut(&child.name).filter(moves) else { continue };
            shown.at = child.at;
            let args = vec![WireArg::Int(child.at.0), WireArg::Int(child.at.1)];
            let subsurface = shown.subsurface;
            state.extend(subsurface.and_then(|it| request(it, ("wl_subsurface", "set_position"), args)));
        }
    }

    fn stack_inside(&mut self, node: &Node, state: &mut Vec<Request>) {
        let below = node.below.iter().map(|child| child.name);
        let above = node.above.iter().map(|child| child.name);
        let order: Vec<WireId> = below.clone().chain([node.name]).chain(above.clone()).collect();
        if self.surfaces.get(&node.name).is_none_or(|shown| shown.order == order) {
            return;
        }
        let mut put = |child: WireId, next: WireId, how| {
            let subsurface = self.surfaces.get(&child).and_then(|shown| shown.subsurface);
            let (Some(subsurface), Some(next)) = (subsurface, self.surfaces.get(&next)) else { return };
            state.extend(request(subsurface, ("wl_subsurface", how), vec![WireArg::Object(next.surface)]));
        };
        let mut last = node.name;
        below.rev().for_each(|child| put(child, std::mem::replace(&mut last, child), "place_below"));
        last = node.name;
        above.for_each(|child| put(child, std::mem::replace(&mut last, child), "place_above"));
        if let Some(shown) = self.surfaces.get_mut(&node.name) {
            shown.order = order;
        }
    }

    fn shape(&mut self, name: WireId, shape: Shape, state: &mut Vec<Request>) {
        let Some(shown) = self.surfaces.get(&name) else { return };
        let (surface, told) = (shown.surface, shown.shape);
        let mut set = |name, value| {
            state.extend(request(surface, ("wl_surface", name), vec![WireArg::Int(value)]));
        };
        if told.transform != shape.transform {
            set("set_buffer_transform", shape.transform.to_wl());
        }
        if told.scale != shape.scale {
            set("set_buffer_scale", shape.scale);
        }
        if (told.crop, told.destination) != (shape.crop, shape.destination) {
            let viewport = self.viewport(name);
            let source = shape.crop.map_or([UNSET; 4], |crop| [crop.x, crop.y, crop.width, crop.height]);
            let (width, height) = shape.destination.unwrap_or((-1, -1));
            let source = source.map(WireArg::Fixed).to_vec();
            let size = vec![WireArg::Int(width), WireArg::Int(height)];
            for (name, args) in [("set_source", source), ("set_destination", size)] {
                state.extend(viewport.and_then(|viewport| request(viewport, ("wp_viewport", name), args)));
            }
        }
        if let Some(shown) = self.surfaces.get_mut(&name) {
            shown.shape = shape;
        }
    }

    fn viewport(&mut self, name: WireId) -> Option<WireId> {
        let shown = self.surfaces.get(&name)?;
        if shown.viewport.is_none() {
            let surface = [WireArg::Object(shown.surface)];
            let viewporter = self.globals.viewporter?;
            let made = self.make(viewporter, ("wp_viewporter", "get_viewport"), &surface);
            self.surfaces.get_mut(&name)?.viewport = Some(made);
        }
        self.surfaces.get(&name)?.viewport
    }
}

/// A request by its name; `None` if there is none of that name.
fn request(object: WireId, (interface, name): (&str, &str), args: Vec<WireArg>) -> Option<Request> {
    let opcode = tables::request_opcode(tables::interface(interface)?, name)?;
    Some(Request { object, opcode, args })
}
