//! Surfaces and their trees: what a surface is part of, what it shows, and what ends with it.

use crate::action::End;
use crate::message::{ToApp, WireArg, WireId};
use crate::wire::Arg;

use super::super::connection::Connection;
use super::super::handler::{Asked, Event, Handles};
use super::super::hold::Key;
use super::super::surface;
use super::super::waiting::Waiting;

/// `wl_surface`.
pub(super) struct Surface;

impl Handles for Surface {
    fn accepted(&self, connection: &mut Connection, asked: Asked<'_>) {
        if !asked.desc.is_destructor {
            return;
        }
        // What a commit of the surface above shows is shown first, with all that is in it; and so is what its children
        // show by its own, and what something held builds upon.
        let id = asked.request.object;
        let is_needed = |connection: &Connection| {
            connection.tree.is_part(id) || connection.applies_children(id) || is_built_upon(connection, id)
        };
        if connection.surfaces.contains_key(&id) && !is_needed(connection) {
            connection.cancel_units(id);
        }
        connection.tree.forget(id);
    }

    fn before(&self, connection: &mut Connection, asked: Asked<'_>, args: &mut [Arg]) {
        let Some(surface) = connection.surfaces.get_mut(&asked.request.object) else { return };
        match (asked.desc.name, args) {
            ("set_buffer_scale", [Arg::Int(scale)]) => surface.extent.scale = *scale,
            ("set_buffer_transform", [Arg::Int(transform)]) => surface.extent.transform = *transform,
            _ => {}
        }
    }

    fn made(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        let version = connection.objects.of(object).map_or(1, |object| object.version);
        let surfaces = &connection.surfaces;
        connection.updates.create(object, |id| surfaces.contains_key(&id))?;
        connection.surfaces.insert(object, surface::Surface::new(version));
        connection.meet_updates(object);
        Ok(())
    }

    fn ended(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        connection.predict_without(object)?;
        let Some(mut surface) = connection.surfaces.remove(&object) else { return Ok(()) };
        connection.uncover(&surface);
        connection.discard(surface.unmap());
        connection.updates.destroy(object);
        connection.put_off.forget(object);
        for unit in std::mem::take(&mut surface.awaiting) {
            connection.tell(&ToApp::Discarded { surface: object, unit });
        }
        for (buffer, busy) in surface.pool.clear() {
            if busy { connection.abandon_buffer(buffer)? } else { connection.destroy_buffer(buffer)? }
        }
        Ok(())
    }
}

/// Whether a held request names a surface, or is not about it and comes between its commits all the same: what is seen
/// of a child that leaves its window, or of a dialog, depends on them.
fn is_built_upon(connection: &Connection, surface: WireId) -> bool {
    let requests = |key| {
        connection.holds.keeping(key).filter_map(|held| match held {
            Waiting::Request(request) => Some(request),
            _ => None,
        })
    };
    requests(Key::Use(surface)).any(|request| request.objects().any(|id| id == surface))
        || requests(Key::Order(surface)).any(|request| connection.surface_of(request.object) != Some(surface))
}

/// `wl_subcompositor`.
pub(super) struct Subcompositor;

impl Handles for Subcompositor {
    fn accepted(&self, connection: &mut Connection, asked: Asked<'_>) {
        if let Some((child, parent)) = made_child(asked) {
            connection.tree.adopt(child, parent);
        }
    }

    fn sent(&self, connection: &mut Connection, asked: Asked<'_>) {
        if let Some((child, parent)) = made_child(asked) {
            place(connection, child, Some(parent));
            let outcome = connection.raise_veil(parent, child);
            connection.settle(outcome);
            let outcome = connection.raise_sheet(parent, child);
            connection.settle(outcome);
        }
    }
}

/// The child and the parent of `get_subsurface`.
fn made_child(asked: Asked<'_>) -> Option<(WireId, WireId)> {
    match (asked.desc.name, asked.request.args.as_slice()) {
        ("get_subsurface", [_, WireArg::Object(child), WireArg::Object(parent)]) => Some((*child, *parent)),
        _ => None,
    }
}

/// `wl_subsurface`.
pub(super) struct Subsurface;

impl Handles for Subsurface {
    fn accepted(&self, connection: &mut Connection, asked: Asked<'_>) {
        let object = connection.objects.of(asked.request.object);
        let Some(child) = object.and_then(|object| object.origin.get(1)).copied() else { return };
        match asked.desc.name {
            "set_sync" => connection.tree.synchronise(child, true),
            "set_desync" => connection.tree.synchronise(child, false),
            "destroy" => connection.tree.orphan(child),
            _ => {}
        }
    }

    fn sent(&self, connection: &mut Connection, asked: Asked<'_>) {
        let Some(object) = connection.objects.of(asked.request.object) else { return };
        let (child, parent) = match (asked.desc.name, &object.origin[..]) {
            ("destroy", [_, child, ..]) => (*child, None),
            ("set_position" | "place_above" | "place_below", [_, child, parent]) => (*child, Some(*parent)),
            _ => return,
        };
        place(connection, child, parent);
    }
}

/// `wp_viewport`.
pub(super) struct Viewport;

impl Handles for Viewport {
    fn before(&self, connection: &mut Connection, asked: Asked<'_>, args: &mut [Arg]) {
        let Some(surface) = connection.surface_of(asked.request.object) else { return };
        let Some(surface) = connection.surfaces.get_mut(&surface) else { return };
        match (asked.desc.name, args) {
            // -1 takes it back.
            ("set_destination", [Arg::Int(width), Arg::Int(height)]) => {
                surface.extent.destination = (*width > 0 && *height > 0).then_some([*width, *height]);
            }
            ("set_source", [_, _, Arg::Fixed(width), _]) => surface.extent.is_cropped = *width > 0,
            ("destroy", _) => (surface.extent.destination, surface.extent.is_cropped) = (None, false),
            _ => {}
        }
    }
}

/// `wp_fractional_scale_v1`.
pub(super) struct FractionalScale;

impl Handles for FractionalScale {
    fn event(&self, connection: &mut Connection, event: Event<'_>) -> Result<(), End> {
        if let ("preferred_scale", [Arg::Uint(scale)]) = (event.name, event.args)
            && let Some(surface) = connection.surface_of(event.object)
            && let Some(surface) = connection.surfaces.get_mut(&surface)
        {
            surface.extent.preferred = Some(*scale);
        }
        Ok(())
    }
}

/// A surface became a subsurface, is placed elsewhere, or is one no longer.
fn place(connection: &mut Connection, child: WireId, parent: Option<WireId>) {
    let Some(mut surface) = connection.surfaces.remove(&child) else { return };
    connection.uncover(&surface);
    surface.parent = parent;
    connection.surfaces.insert(child, surface);
}
