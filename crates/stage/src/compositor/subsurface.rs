//! `wl_subcompositor` and `wl_subsurface`: position, order, and the cache of synchronised children.

use wayland_server::backend::ClientId;
use wayland_server::protocol::{wl_subcompositor, wl_subsurface, wl_surface};
use wayland_server::{Client, DataInit, Dispatch, DisplayHandle, GlobalDispatch, New, Resource};

use super::event::{Role, StageEvent, SurfaceId};
use super::state::State;

/// What a subsurface has beyond a surface.
#[derive(Clone, Debug)]
pub(crate) struct Subsurface {
    pub(crate) parent: SurfaceId,
    pub(crate) position: (i32, i32),
    pending_position: (i32, i32),
    synchronised: bool,
}

impl State {
    /// Whether a commit of the surface waits for its parent: it or an ancestor is synchronised.
    pub(crate) fn is_synchronised(&self, id: SurfaceId) -> bool {
        let mut at = id;
        while let Some(sub) = self.surface(at).and_then(|surface| surface.subsurface.as_ref()) {
            if sub.synchronised {
                return true;
            }
            at = sub.parent;
        }
        false
    }

    /// The parent's commit: positions take effect, and so do the caches of synchronised children.
    pub(crate) fn apply_children(&mut self, parent: SurfaceId) {
        let Some(stack) = self.surface(parent).map(|surface| surface.stack.clone()) else { return };
        for child in stack.into_iter().filter(|child| *child != parent) {
            if let Some(sub) = self.surfaces.get_mut(&child).and_then(|surface| surface.subsurface.as_mut()) {
                sub.position = sub.pending_position;
            }
            if self.is_synchronised(child) {
                self.apply_cache(child);
                self.apply_children(child);
            }
        }
    }

    fn apply_cache(&mut self, id: SurfaceId) {
        let Some(update) = self.surfaces.get_mut(&id).and_then(|surface| surface.cache.take()) else {
            return;
        };
        self.apply(id, update);
        let checksum = self.surfaces[&id].shown.as_ref().map_or(0, |content| content.checksum());
        self.log.push(StageEvent::Applied { surface: id, checksum });
    }

    /// Takes a dead surface out of the tree.
    pub(crate) fn forget_child(&mut self, id: SurfaceId) {
        self.looks.changed();
        for surface in self.surfaces.values_mut() {
            surface.stack.retain(|child| *child != id);
            surface.pending_stack.retain(|child| *child != id);
            if surface.subsurface.as_ref().is_some_and(|sub| sub.parent == id) {
                surface.subsurface = None;
            }
        }
    }

    fn restack(&mut self, id: SurfaceId, sibling: &wl_surface::WlSurface, above: bool) -> bool {
        let Some(parent) = self.surface(id).and_then(|s| s.subsurface.as_ref()).map(|sub| sub.parent) else {
            return true;
        };
        let Some(sibling) = sibling.data::<SurfaceId>() else { return false };
        let Some(stack) = self.surfaces.get_mut(&parent).map(|surface| &mut surface.pending_stack) else {
            return true;
        };
        if *sibling == id || !stack.contains(sibling) {
            return false;
        }
        stack.retain(|child| *child != id);
        let at = stack.iter().position(|child| child == sibling).expect("checked above");
        stack.insert(at + usize::from(above), id);
        true
    }

    fn is_ancestor(&self, ancestor: SurfaceId, of: SurfaceId) -> bool {
        let mut at = Some(of);
        while let Some(id) = at {
            if id == ancestor {
                return true;
            }
            at = self.surface(id).and_then(|s| s.subsurface.as_ref()).map(|sub| sub.parent);
        }
        false
    }
}

impl GlobalDispatch<wl_subcompositor::WlSubcompositor, ()> for State {
    fn bind(
        _: &mut State,
        _: &DisplayHandle,
        _: &Client,
        resource: New<wl_subcompositor::WlSubcompositor>,
        _: &(),
        init: &mut DataInit<'_, State>,
    ) {
        init.init(resource, ());
    }
}

impl Dispatch<wl_subcompositor::WlSubcompositor, ()> for State {
    fn request(
        state: &mut State,
        _: &Client,
        resource: &wl_subcompositor::WlSubcompositor,
        request: wl_subcompositor::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        let wl_subcompositor::Request::GetSubsurface { id, surface, parent } = request else { return };
        let (Some(child), Some(parent)) = (surface.data::<SurfaceId>(), parent.data::<SurfaceId>()) else {
            return;
        };
        init.init(id, *child);
        if state.is_ancestor(*child, *parent) {
            let message = "a surface cannot be its own parent".to_owned();
            resource.post_error(wl_subcompositor::Error::BadParent, message);
            return;
        }
        let taken = state.surface(*child).is_some_and(|surface| surface.subsurface.is_some());
        if taken || !state.set_role(*child, Role::Subsurface) {
            let message = "the surface has another role".to_owned();
            resource.post_error(wl_subcompositor::Error::BadSurface, message);
            return;
        }
        if let Some(surface) = state.surfaces.get_mut(child) {
            surface.subsurface = Some(Subsurface {
                parent: *parent,
                position: (0, 0),
                pending_position: (0, 0),
                synchronised: true,
            });
        }
        if let Some(surface) = state.surfaces.get_mut(parent) {
            surface.pending_stack.push(*child);
        }
    }
}

impl Dispatch<wl_subsurface::WlSubsurface, SurfaceId> for State {
    fn request(
        state: &mut State,
        _: &Client,
        resource: &wl_subsurface::WlSubsurface,
        request: wl_subsurface::Request,
        id: &SurfaceId,
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        let placed = match &request {
            wl_subsurface::Request::PlaceAbove { sibling } => state.restack(*id, sibling, true),
            wl_subsurface::Request::PlaceBelow { sibling } => state.restack(*id, sibling, false),
            _ => true,
        };
        if !placed {
            let message = "not a sibling of the subsurface".to_owned();
            resource.post_error(wl_subsurface::Error::BadSurface, message);
            return;
        }
        let Some(sub) = state.surfaces.get_mut(id).and_then(|surface| surface.subsurface.as_mut()) else {
            return;
        };
        match request {
            wl_subsurface::Request::SetPosition { x, y } => sub.pending_position = (x, y),
            wl_subsurface::Request::SetSync => sub.synchronised = true,
            wl_subsurface::Request::SetDesync => {
                sub.synchronised = false;
                if !state.is_synchronised(*id) {
                    state.apply_cache(*id);
                }
            }
            _ => {}
        }
    }

    fn destroyed(state: &mut State, _: ClientId, _: &wl_subsurface::WlSubsurface, id: &SurfaceId) {
        state.looks.changed();
        let Some(sub) = state.surfaces.get_mut(id).and_then(|surface| surface.subsurface.take()) else {
            return;
        };
        if let Some(parent) = state.surfaces.get_mut(&sub.parent) {
            parent.stack.retain(|child| child != id);
            parent.pending_stack.retain(|child| child != id);
        }
    }
}
