//! What a surface is used for, and the object by which it is.
//!
//! Whether a surface may have a role at all is the compositor's to say. Invariant: a surface that another object of the
//! program builds on is not destroyed before it, where Wayland forbids that.

use crate::policy::Handler;

use super::call::Call;
use super::connection::Connection;
use super::fault::Fault;
use super::standing::Role;

impl Connection {
    pub(super) fn set_role_object(&mut self, surface: u32, id: u32) {
        if let Some(surface) = self.surfaces.get_mut(&surface) {
            surface.standing.set_role_object(id);
        }
    }

    /// wl_surface, version 6: a window's surface goes after the object of its role. Compositors tell it of any version
    /// or of none, so of an older one the attached display's is asked. A `wl_subsurface` is left to it always.
    pub(super) fn check_role_object(&self, call: Call) -> Result<(), Fault> {
        let role = self.surfaces.get(&call.id).and_then(|surface| surface.standing.role_object());
        let lives = |id: &u32| {
            let handler = self.objects.alive(*id).map(|object| object.handler);
            matches!(handler, Some(Handler::XdgSurface | Handler::LayerSurface))
                && self.association(*id) == Some(call.id)
        };
        match role.filter(|id| call.version >= WITH_DEFUNCT_ROLES && lives(id)) {
            Some(id) => {
                let what = format!("the surface is destroyed before its role object {id}");
                Err(Fault::app(call.id, SURFACE_DEFUNCT_ROLE_OBJECT, what))
            }
            None => Ok(()),
        }
    }

    pub(super) fn set_role(&mut self, surface: Option<u32>, role: Role) {
        if let Some(surface) = surface.and_then(|id| self.surfaces.get_mut(&id)) {
            surface.standing.set_role(role);
        }
    }
}

/// `wl_surface.error.defunct_role_object`, and the first version that has it.
const SURFACE_DEFUNCT_ROLE_OBJECT: u32 = 4;
const WITH_DEFUNCT_ROLES: u32 = 6;
