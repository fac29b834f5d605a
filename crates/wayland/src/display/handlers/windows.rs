//! Windows: whether their program lives, which of their objects goes first, and their icons.

use crate::action::End;
use crate::message::WireId;
use crate::policy::Handler;
use crate::wire::Arg;

use super::super::connection::Connection;
use super::super::handler::{Asked, Event, Handles};
use super::super::hold::{Claim, Key};
use super::super::ops;

/// `xdg_wm_base`.
pub(super) struct WmBase;

impl Handles for WmBase {
    fn event(&self, connection: &mut Connection, event: Event<'_>) -> Result<(), End> {
        let ("ping", [Arg::Uint(serial)]) = (event.name, event.args) else { return Ok(()) };
        if !connection.state.pings.hold(event.id, *serial) {
            connection.send(event.id, ops::WM_BASE_PONG, vec![Arg::Uint(*serial)])?;
        }
        Ok(())
    }
}

/// `xdg_surface`.
pub(super) struct XdgSurface;

impl Handles for XdgSurface {
    fn before(&self, connection: &mut Connection, asked: Asked<'_>, args: &mut [Arg]) {
        let ("set_window_geometry", [Arg::Int(x), Arg::Int(y), Arg::Int(width), Arg::Int(height)]) =
            (asked.desc.name, args)
        else {
            return;
        };
        if let Some(window) = connection.surface_of(asked.request.object) {
            let outcome = connection.place_veil(window, [*x, *y, *width, *height]);
            connection.settle(outcome);
        }
    }
}

/// `xdg_toplevel`.
pub(super) struct Toplevel;

impl Handles for Toplevel {
    fn before(&self, connection: &mut Connection, asked: Asked<'_>, args: &mut [Arg]) {
        match (asked.desc.name, args) {
            ("set_title", [Arg::Str(Some(title))]) => {
                *title = connection.state.captions.set(asked.request.object, title);
            }
            ("set_app_id", [Arg::Str(Some(app_id))]) => {
                let outcome = connection.predict_as(app_id);
                connection.settle(outcome);
            }
            _ => {}
        }
    }

    fn made(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        connection.make_veil(object)?;
        match connection.state.captions.untitled(object) {
            Some(title) => connection.set_title(object, title),
            None => Ok(()),
        }
    }

    fn ended(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        connection.state.captions.forget(object);
        connection.end_veil(object)
    }

    /// The window gets another size or state.
    fn event(&self, connection: &mut Connection, event: Event<'_>) -> Result<(), End> {
        if event.name == "configure" { connection.disturb_predictions(event.now) } else { Ok(()) }
    }

    fn claim(&self, connection: &Connection, asked: Asked<'_>, claim: &mut Claim) {
        end_before_role(connection, asked, claim);
    }
}

/// `xdg_popup`.
pub(super) struct Popup;

impl Handles for Popup {
    fn claim(&self, connection: &Connection, asked: Asked<'_>, claim: &mut Claim) {
        end_before_role(connection, asked, claim);
    }
}

/// A popup names what it is on by its `xdg_surface`, and must go before that one's role.
fn end_before_role(connection: &Connection, asked: Asked<'_>, claim: &mut Claim) {
    let object = connection.objects.of(asked.request.object);
    let xdg_surface = object.and_then(|object| object.origin.first());
    claim.waits.extend(xdg_surface.filter(|_| asked.desc.is_destructor).map(|id| Key::Use(*id)));
}

/// `xdg_toplevel_icon_manager_v1`.
pub(super) struct IconManager;

impl Handles for IconManager {
    fn claim(&self, connection: &Connection, _: Asked<'_>, claim: &mut Claim) {
        loosen(connection, claim);
    }
}

/// `xdg_toplevel_icon_v1`.
pub(super) struct Icon;

impl Handles for Icon {
    fn claim(&self, connection: &Connection, _: Asked<'_>, claim: &mut Claim) {
        loosen(connection, claim);
    }

    fn ended(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        let buffers = connection.state.images.remove(object);
        buffers.into_iter().try_for_each(|buffer| connection.abandon_buffer(buffer))
    }
}

/// An icon waits for its pixels; windows, other icons and `sync` do not wait for an icon. One whose window has gone by
/// then is not set.
fn loosen(connection: &Connection, claim: &mut Claim) {
    let is = |id, handler| connection.objects.of(id).is_some_and(|object| object.handler == handler);
    let orders = |key: &Key| matches!(key, Key::Order(id) if !is(*id, Handler::Icon));
    claim.waits.retain(|key| !orders(key));
    let keeps_window = |key: &Key| matches!(key, Key::Use(id) if is(*id, Handler::Toplevel));
    claim.keeps.retain(|key| *key != Key::Reply && !orders(key) && !keeps_window(key));
}
