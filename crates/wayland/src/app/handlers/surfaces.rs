//! Surfaces, their trees, and how their content is shown.

use std::rc::Rc;

use wayferry_pixels::map::{Crop, Transform};

use crate::message::{MAX_REGION_OPS, WireId};
use crate::value::RegionOp;
use crate::wire::Arg;

use super::super::call::{Call, Plain};
use super::super::connection::Connection;
use super::super::fault::Fault;
use super::super::handler::Handles;
use super::super::object::Data;
use super::super::pending::{Attach, Pixels, add_damage};
use super::super::stack::Move;
use super::super::surface;

/// `wl_compositor`.
pub(super) struct Compositor;

impl Handles for Compositor {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        if let ("create_region", [Arg::NewId(id)]) = (call.desc.name, &args[..]) {
            connection.objects.set_data(*id, Data::Region(Vec::new()));
        }
        Ok(())
    }

    fn forwarded(
        &self,
        connection: &mut Connection,
        call: Call,
        args: &[Plain],
        _: bool,
    ) -> Result<(), Fault> {
        let ("create_surface", [Plain::NewId(id)]) = (call.desc.name, args) else { return Ok(()) };
        let wire = connection.objects.name(*id).unwrap_or(WireId::NULL);
        connection.objects.set_association(*id, Some(*id));
        connection.surfaces.insert(*id, surface::Surface::new(wire));
        connection.tell_scale(*id)
    }
}

/// `wl_region`.
pub(super) struct Region;

impl Handles for Region {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        let object = connection.objects.of_mut(call.id);
        if let (Some(Data::Region(ops)), &[Arg::Int(x), Arg::Int(y), Arg::Int(width), Arg::Int(height)]) =
            (object.map(|object| &mut object.data), &args[..])
        {
            add_region_op(ops, call.desc.name, [x, y, width, height]);
        }
        Ok(())
    }
}

fn add_region_op(ops: &mut Vec<RegionOp>, name: &str, [x, y, width, height]: [i32; 4]) {
    let subtracts = name == "subtract";
    // Beyond the bound a region becomes smaller: an opaque region may be too small, never too large.
    match ops.len() < MAX_REGION_OPS {
        true if subtracts => ops.push(RegionOp::Subtract(x, y, width, height)),
        true => ops.push(RegionOp::Add(x, y, width, height)),
        false if subtracts => ops.clear(),
        false => {}
    }
}

/// `wl_surface`.
pub(super) struct Surface;

impl Handles for Surface {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        match (call.desc.name, &args[..]) {
            ("frame", [Arg::NewId(id)]) => connection.add_frame(call.id, *id),
            ("commit", []) => connection.commit_in_time(call.id),
            (_, args) => pend(connection, call, args),
        }
    }

    fn state(
        &self,
        connection: &mut Connection,
        call: Call,
        surface: Option<u32>,
        args: &[Arg],
    ) -> Result<bool, Fault> {
        let surface = surface.and_then(|id| connection.surfaces.get_mut(&id));
        let Some(surface) = surface else { return Ok(true) };
        match (call.desc.name, args) {
            ("set_buffer_scale", [Arg::Int(scale)]) => {
                if *scale < 1 {
                    return Err(Fault::app(call.id, 0, format!("scale {scale} is not positive")));
                }
                surface.pending.scale = Some(*scale);
            }
            ("set_buffer_transform", [Arg::Int(transform)]) => {
                let known = u32::try_from(*transform).ok().and_then(Transform::from_wl);
                let wrong = || Fault::app(call.id, 1, format!("transform {transform} is not within 0 to 7"));
                surface.pending.transform = Some(known.ok_or_else(wrong)?);
            }
            _ => {}
        }
        Ok(true)
    }

    fn before(&self, connection: &mut Connection, call: Call, _: &mut [Arg]) -> Result<(), Fault> {
        if call.desc.name != "destroy" {
            return Ok(());
        }
        connection.check_role_object(call)?;
        // What it applies of its children may be seen elsewhere yet.
        match connection.surfaces.get(&call.id).is_some_and(surface::Surface::applies_children) {
            true => connection.flush_tree(call.id),
            false => Ok(()),
        }
    }

    /// What is cached ends with its role.
    fn behind(&self, _: &mut Connection, _: Call, _: u32) -> Result<(), Fault> {
        Ok(())
    }

    fn forwarded(&self, connection: &mut Connection, call: Call, _: &[Plain], _: bool) -> Result<(), Fault> {
        if call.desc.name == "destroy" { connection.drop_surface(call.id) } else { Ok(()) }
    }

    fn note(&self, connection: &mut Connection, id: u32, name: &str, args: &mut [Arg]) -> Result<(), Fault> {
        if let ("preferred_buffer_transform", [Arg::Uint(transform)], Some(surface)) =
            (name, args, connection.surfaces.get_mut(&id))
        {
            surface.preferred.set_transform(*transform);
        }
        Ok(())
    }

    fn emitted(&self, connection: &mut Connection, id: u32, name: &str, _: Option<u32>) -> Result<(), Fault> {
        if !matches!(name, "enter" | "leave") {
            return Ok(());
        }
        connection.tell_scale(id)?;
        let fraction = connection.surfaces.get(&id).and_then(|surface| surface.preferred.fraction());
        fraction.map_or(Ok(()), |fraction| connection.tell_scale(fraction))
    }
}

/// `attach`, damage and the like: what the surface's own pending state holds.
fn pend(connection: &mut Connection, call: Call, args: &[Arg]) -> Result<(), Fault> {
    let buffer = match args.first() {
        Some(Arg::Object(id)) => match connection.objects.of(*id).map(|object| &object.data) {
            Some(Data::Buffer(buffer)) => {
                Attach::Buffer { id: *id, buffer: Rc::clone(buffer), pixels: Pixels::There, sync: None }
            }
            _ => Attach::None,
        },
        _ => Attach::None,
    };
    let Some(surface) = connection.surfaces.get_mut(&call.id) else { return Ok(()) };
    match (call.desc.name, args) {
        ("attach", [_, Arg::Int(x), Arg::Int(y)]) => {
            // wl_surface, version 5: the offset has a request of its own.
            let has_offset = call.version >= 5;
            if has_offset && (*x, *y) != (0, 0) {
                let what = "attach has no offset from version 5 on".to_owned();
                return Err(Fault::app(call.id, SURFACE_INVALID_OFFSET, what));
            }
            surface.pending.attach = buffer;
            if !has_offset {
                surface.pending.offset = (*x, *y);
            }
        }
        ("offset", [Arg::Int(x), Arg::Int(y)]) => surface.pending.offset = (*x, *y),
        ("damage", [Arg::Int(x), Arg::Int(y), Arg::Int(width), Arg::Int(height)]) => {
            add_damage(&mut surface.pending.surface_damage, [*x, *y, *width, *height]);
        }
        ("damage_buffer", [Arg::Int(x), Arg::Int(y), Arg::Int(width), Arg::Int(height)]) => {
            add_damage(&mut surface.pending.buffer_damage, [*x, *y, *width, *height]);
        }
        _ => {}
    }
    Ok(())
}

/// `wl_surface.error.invalid_offset`.
const SURFACE_INVALID_OFFSET: u32 = 3;

/// `wl_subcompositor`.
pub(super) struct Subcompositor;

impl Handles for Subcompositor {
    fn forwarded(
        &self,
        connection: &mut Connection,
        call: Call,
        args: &[Plain],
        _: bool,
    ) -> Result<(), Fault> {
        match (call.desc.name, args) {
            ("get_subsurface", [Plain::NewId(id), Plain::Object(child), Plain::Object(parent)]) => {
                connection.adopt(call.id, *id, *child, *parent)
            }
            _ => Ok(()),
        }
    }
}

/// `wl_subsurface`.
pub(super) struct Subsurface;

impl Handles for Subsurface {
    fn state(
        &self,
        connection: &mut Connection,
        call: Call,
        parent: Option<u32>,
        args: &[Arg],
    ) -> Result<bool, Fault> {
        match (call.desc.name, args) {
            ("place_above" | "place_below", [Arg::Object(sibling)]) => {
                restack(connection, call, parent, *sibling).map(|()| false)
            }
            _ => Ok(true),
        }
    }

    fn behind(&self, connection: &mut Connection, call: Call, surface: u32) -> Result<(), Fault> {
        match call.desc.name {
            // The compositor applies what it has cached, which must be all.
            "set_desync" => connection.send_ahead_below(surface),
            // What is cached ends with its role.
            _ => Ok(()),
        }
    }

    fn forwarded(&self, connection: &mut Connection, call: Call, _: &[Plain], _: bool) -> Result<(), Fault> {
        match call.desc.name {
            "set_sync" => connection.set_sync(call.id, true),
            "set_desync" => connection.set_sync(call.id, false),
            "destroy" => connection.orphan(call.id),
            _ => Ok(()),
        }
    }
}

/// `place_above` and `place_below`.
fn restack(connection: &mut Connection, call: Call, parent: Option<u32>, sibling: u32) -> Result<(), Fault> {
    // Its surface, or the parent, may be gone.
    let (Some(child), Some(parent)) = (connection.child_of(call.id), parent) else { return Ok(()) };
    let Some(above) = connection.surfaces.get_mut(&parent) else { return Ok(()) };
    let to = Move { child, sibling, above: call.desc.name == "place_above" };
    if above.family.place(to, &mut above.pending.stack) {
        return Ok(());
    }
    let message = format!("wl_surface {sibling} is no sibling of {child}, and not its parent");
    Err(Fault::app(call.id, BAD_SURFACE, message))
}

/// `wl_subsurface.error.bad_surface`.
const BAD_SURFACE: u32 = 0;

/// `wp_viewport`.
pub(super) struct Viewport;

impl Handles for Viewport {
    fn state(
        &self,
        connection: &mut Connection,
        call: Call,
        surface: Option<u32>,
        args: &[Arg],
    ) -> Result<bool, Fault> {
        let surface = surface.and_then(|id| connection.surfaces.get_mut(&id));
        let Some(surface) = surface else { return Ok(true) };
        match (call.desc.name, args) {
            ("set_source", &[Arg::Fixed(x), Arg::Fixed(y), Arg::Fixed(width), Arg::Fixed(height)]) => {
                // All −1 unsets; what else is invalid the compositor will tell.
                let crop = Crop { x, y, width, height };
                surface.pending.crop = Some((width > 0 && height > 0).then_some(crop));
            }
            ("set_destination", &[Arg::Int(width), Arg::Int(height)]) => {
                surface.pending.destination = Some((width > 0 && height > 0).then_some((width, height)));
            }
            _ => {}
        }
        Ok(true)
    }

    fn forwarded(&self, connection: &mut Connection, call: Call, _: &[Plain], _: bool) -> Result<(), Fault> {
        if call.desc.name != "destroy" {
            return Ok(());
        }
        let surface = connection.association(call.id).and_then(|id| connection.surfaces.get_mut(&id));
        if let Some(surface) = surface {
            (surface.pending.crop, surface.pending.destination) = (Some(None), Some(None));
        }
        Ok(())
    }
}

/// `wp_fractional_scale_manager_v1`.
pub(super) struct FractionalScaleManager;

impl Handles for FractionalScaleManager {
    fn answer(&self, connection: &mut Connection, _: Call, args: &[Plain]) -> Result<(), Fault> {
        connection.tell_made(args)
    }
}

/// `wp_fractional_scale_v1`.
pub(super) struct FractionalScale;

impl Handles for FractionalScale {
    fn stand_in(&self, connection: &mut Connection, id: u32) -> Result<(), Fault> {
        // It may be another one with the same id.
        let surface = connection.association(id).and_then(|surface| connection.surfaces.get_mut(&surface));
        surface.into_iter().for_each(|surface| surface.preferred.forget_fraction());
        connection.tell_scale(id)
    }
}

/// `wp_alpha_modifier_v1`.
pub(super) struct AlphaModifier;

impl Handles for AlphaModifier {
    fn forwarded(
        &self,
        connection: &mut Connection,
        call: Call,
        args: &[Plain],
        _: bool,
    ) -> Result<(), Fault> {
        match (call.desc.name, args) {
            ("get_surface", [Plain::NewId(id), Plain::Object(surface)]) => {
                connection.add_fade(call, *id, *surface)
            }
            _ => Ok(()),
        }
    }
}

/// `wp_alpha_modifier_surface_v1`.
pub(super) struct AlphaSurface;

impl Handles for AlphaSurface {
    fn state(
        &self,
        connection: &mut Connection,
        call: Call,
        _: Option<u32>,
        args: &[Arg],
    ) -> Result<bool, Fault> {
        if let ("set_multiplier", [Arg::Uint(factor)]) = (call.desc.name, args) {
            connection.set_fade(call, *factor)?;
        }
        Ok(true)
    }

    fn forwarded(&self, connection: &mut Connection, call: Call, _: &[Plain], _: bool) -> Result<(), Fault> {
        if call.desc.name == "destroy" {
            connection.end_fade(call.id);
        }
        Ok(())
    }
}
