//! Windows: roles, places, who decorates them.

use crate::message::{Request, WireArg};
use crate::value::Positioner as Value;
use crate::wire::Arg;

use super::super::call::{Call, Plain};
use super::super::connection::Connection;
use super::super::fault::Fault;
use super::super::handler::Handles;
use super::super::object::{Configures, Data, Popup as State, Wanted};
use super::super::older::WITH_LATE_DECORATION;
use super::super::roles::Roles;
use super::super::standing::{Role, Stage};
use super::super::surface::Surface;

/// `xdg_wm_base`.
pub(super) struct WmBase;

impl Handles for WmBase {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        match (call.desc.name, &args[..]) {
            ("create_positioner", [Arg::NewId(id)]) => {
                connection.objects.set_data(*id, Data::Positioner(Value::default()));
            }
            ("pong", [Arg::Uint(serial)]) => connection.pong(*serial),
            _ => {}
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
        if let ("get_xdg_surface", [Plain::NewId(id), Plain::Object(surface)]) = (call.desc.name, args) {
            connection.objects.set_data(*id, Data::Shell(Configures::default()));
            connection.set_role_object(*surface, *id);
        }
        Ok(())
    }

    fn may_be_born(&self, connection: &Connection, roles: &Roles, name: &str, birth: &Request) -> bool {
        if name != "get_xdg_surface" {
            return true;
        }
        let surface = match birth.args.get(1) {
            Some(WireArg::Object(surface)) => connection.objects.by_name(*surface),
            _ => None,
        };
        // Popups are over. A surface with content may become no window, so one that is none must have none.
        surface.is_some_and(|id| {
            let bare = connection.surfaces.get(&id).is_some_and(|surface| !surface.mapped());
            roles.windows.contains_key(&id) || bare && !roles.popups.contains(&id)
        })
    }
}

/// `xdg_positioner`.
pub(super) struct Positioner;

impl Handles for Positioner {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        let numbers = args.iter().filter_map(|arg| match arg {
            Arg::Int(value) => Some(*value),
            Arg::Uint(value) => Some(value.cast_signed()),
            _ => None,
        });
        let (name, numbers) = (call.desc.name, numbers.collect::<Vec<_>>());
        let Some(Data::Positioner(positioner)) =
            connection.objects.of_mut(call.id).map(|object| &mut object.data)
        else {
            return Ok(());
        };
        if !is_valid(name, &numbers) {
            return Err(Fault::app(call.id, POSITIONER_INVALID_INPUT, format!("{name} of {numbers:?}")));
        }
        set_positioner(positioner, name, &numbers);
        Ok(())
    }
}

/// `xdg_positioner.error.invalid_input`.
const POSITIONER_INVALID_INPUT: u32 = 0;
/// `bottom_right`, the last of `xdg_positioner.anchor` and `gravity`.
const LAST_ANCHOR: i32 = 8;

/// Whether a positioner may have such numbers. The display side makes one of its own, about which no compositor could
/// tell the program anything.
fn is_valid(name: &str, numbers: &[i32]) -> bool {
    match (name, numbers) {
        ("set_size", &[width, height]) => width > 0 && height > 0,
        ("set_anchor_rect", &[_, _, width, height]) => width >= 0 && height >= 0,
        ("set_anchor" | "set_gravity", &[anchor]) => (0..=LAST_ANCHOR).contains(&anchor),
        _ => true,
    }
}

fn set_positioner(positioner: &mut Value, name: &str, numbers: &[i32]) {
    match (name, numbers) {
        ("set_size", &[width, height]) => positioner.size = Some((width, height)),
        ("set_anchor_rect", &[x, y, width, height]) => positioner.anchor_rect = Some((x, y, width, height)),
        ("set_anchor", &[anchor]) => positioner.anchor = Some(anchor.cast_unsigned()),
        ("set_gravity", &[gravity]) => positioner.gravity = Some(gravity.cast_unsigned()),
        ("set_constraint_adjustment", &[bits]) => {
            positioner.constraint_adjustment = Some(bits.cast_unsigned());
        }
        ("set_offset", &[x, y]) => positioner.offset = Some((x, y)),
        ("set_reactive", []) => positioner.reactive = true,
        ("set_parent_size", &[width, height]) => positioner.parent_size = Some((width, height)),
        ("set_parent_configure", &[serial]) => positioner.parent_configure = Some(serial.cast_unsigned()),
        _ => {}
    }
}

/// `xdg_surface`.
pub(super) struct XdgSurface;

impl Handles for XdgSurface {
    fn state(
        &self,
        connection: &mut Connection,
        call: Call,
        surface: Option<u32>,
        args: &[Arg],
    ) -> Result<bool, Fault> {
        Ok(connection.acknowledges(call, surface, args))
    }

    /// A popup needs a parent that is shown, which it may not be yet at another display.
    fn may_cross(&self, connection: &Connection, call: Call, args: &[Arg]) -> bool {
        match (call.desc.name, args) {
            ("get_popup", [_, Arg::Object(parent), _]) if *parent != 0 => {
                let parent = connection.association(*parent).and_then(|id| connection.surfaces.get(&id));
                parent.is_none_or(|surface| surface.standing.stage() == Stage::Shown)
            }
            _ => true,
        }
    }

    fn forwarded(
        &self,
        connection: &mut Connection,
        call: Call,
        args: &[Plain],
        crossed: bool,
    ) -> Result<(), Fault> {
        let surface = connection.association(call.id);
        match (call.desc.name, args) {
            ("get_toplevel", [Plain::NewId(toplevel)]) => {
                connection.set_role(surface, Role::Configured);
                connection.tell_window_capabilities(*toplevel)?;
                connection.begin_window(surface, false);
                Ok(())
            }
            ("get_popup", [Plain::NewId(popup), Plain::Object(parent), _]) => {
                connection.set_role(surface, Role::Configured);
                if let Some(parent) = connection.association(*parent) {
                    let (shell, at, token) = (call.id, None, None);
                    connection.objects.set_data(*popup, Data::Popup(State { parent, shell, at, token }));
                }
                connection.begin_window(surface, !crossed);
                Ok(())
            }
            ("destroy", _) => connection.end_role(call.id),
            _ => Ok(()),
        }
    }

    fn answer(&self, connection: &mut Connection, call: Call, args: &[Plain]) -> Result<(), Fault> {
        match (call.desc.name, args) {
            ("get_popup", [Plain::NewId(id), ..]) => connection.emit(*id, "popup_done", Vec::new()),
            _ => Ok(()),
        }
    }

    fn emitted(
        &self,
        connection: &mut Connection,
        id: u32,
        name: &str,
        serial: Option<u32>,
    ) -> Result<(), Fault> {
        match (name, serial) {
            ("configure", Some(serial)) => connection.configured(id, serial),
            _ => Ok(()),
        }
    }
}

/// `xdg_toplevel`.
pub(super) struct Toplevel;

/// `xdg_toplevel.state`.
const MAXIMIZED: u32 = 1;
const FULLSCREEN: u32 = 2;

impl Handles for Toplevel {
    fn note(&self, connection: &mut Connection, id: u32, name: &str, args: &mut [Arg]) -> Result<(), Fault> {
        if let ("configure", [Arg::Int(width), Arg::Int(height), Arg::Array(states)]) = (name, args) {
            let has = |state: u32| states.chunks_exact(4).any(|word| word == state.to_ne_bytes());
            let (maximized, fullscreen) = (has(MAXIMIZED), has(FULLSCREEN));
            connection.note_wanted(id, Wanted { size: (*width, *height), maximized, fullscreen });
        }
        Ok(())
    }
}

/// `xdg_popup`.
pub(super) struct Popup;

/// The first version of `xdg_wm_base` with popups that move.
const WITH_REPOSITION: u32 = 3;

impl Handles for Popup {
    fn may_cross(&self, connection: &Connection, call: Call, _: &[Arg]) -> bool {
        call.desc.name != "reposition" || connection.offering.version("xdg_wm_base") >= WITH_REPOSITION
    }

    fn answer(&self, connection: &mut Connection, call: Call, args: &[Plain]) -> Result<(), Fault> {
        if connection.objects.wire(call.id).is_none() {
            return Ok(());
        }
        match call.desc.name {
            "reposition" => connection.reposition_here(call.id, args),
            // Of a popup that is over the program knows.
            "grab" => connection.emit(call.id, "popup_done", Vec::new()),
            _ => Ok(()),
        }
    }

    fn note(&self, connection: &mut Connection, id: u32, name: &str, args: &mut [Arg]) -> Result<(), Fault> {
        if name != "configure" {
            return Ok(());
        }
        if let (Some(Data::Popup(popup)), [Arg::Int(x), Arg::Int(y), ..]) =
            (connection.objects.of_mut(id).map(|object| &mut object.data), args)
        {
            popup.at = Some((*x, *y));
        }
        connection.tell_repositioned(id)
    }
}

/// `zxdg_decoration_manager_v1`.
pub(super) struct DecorationManager;

impl Handles for DecorationManager {
    fn may_cross(&self, connection: &Connection, call: Call, args: &[Arg]) -> bool {
        match (call.desc.name, args) {
            ("get_toplevel_decoration", [_, Arg::Object(toplevel)])
                if call.version >= WITH_LATE_DECORATION =>
            {
                let window = connection.association(*toplevel).and_then(|id| connection.surfaces.get(&id));
                connection.offering.version(call.interface.name) >= WITH_LATE_DECORATION
                    || !window.is_some_and(Surface::mapped)
            }
            _ => true,
        }
    }

    fn answer(&self, connection: &mut Connection, _: Call, args: &[Plain]) -> Result<(), Fault> {
        connection.tell_made(args)
    }
}

/// `zxdg_toplevel_decoration_v1`.
pub(super) struct Decoration;

/// `zxdg_toplevel_decoration_v1.mode.client_side`, `org_kde_kwin_server_decoration_manager.mode.client`.
const CLIENT_SIDE: u32 = 1;

impl Handles for Decoration {
    fn answer(&self, connection: &mut Connection, call: Call, _: &[Plain]) -> Result<(), Fault> {
        match call.desc.name {
            "set_mode" | "unset_mode" => connection.tell_stub(call.id),
            _ => Ok(()),
        }
    }

    fn stand_in(&self, connection: &mut Connection, id: u32) -> Result<(), Fault> {
        connection.emit(id, "configure", vec![Arg::Uint(CLIENT_SIDE)])
    }
}

/// `org_kde_kwin_server_decoration_manager`.
pub(super) struct KdeDecorationManager;

impl Handles for KdeDecorationManager {
    fn greet(&self, connection: &mut Connection, id: u32) -> Result<(), Fault> {
        match connection.objects.wire(id) {
            Some(_) => Ok(()),
            None => connection.emit(id, "default_mode", vec![Arg::Uint(CLIENT_SIDE)]),
        }
    }

    fn answer(&self, connection: &mut Connection, _: Call, args: &[Plain]) -> Result<(), Fault> {
        connection.tell_made(args)
    }
}

/// `org_kde_kwin_server_decoration`.
pub(super) struct KdeDecoration;

impl Handles for KdeDecoration {
    fn answer(&self, connection: &mut Connection, call: Call, _: &[Plain]) -> Result<(), Fault> {
        if call.desc.name == "request_mode" { connection.tell_stub(call.id) } else { Ok(()) }
    }

    fn stand_in(&self, connection: &mut Connection, id: u32) -> Result<(), Fault> {
        connection.emit(id, "mode", vec![Arg::Uint(CLIENT_SIDE)])
    }
}

/// `xdg_toplevel_icon_manager_v1`.
pub(super) struct IconManager;

impl Handles for IconManager {
    fn greet(&self, connection: &mut Connection, id: u32) -> Result<(), Fault> {
        match connection.objects.wire(id) {
            Some(_) => Ok(()),
            None => connection.emit(id, "done", Vec::new()),
        }
    }
}
