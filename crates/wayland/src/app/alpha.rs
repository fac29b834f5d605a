//! `wp_alpha_modifier` for programs that began at a display without it: see `fade`.

use super::call::Call;
use super::connection::Connection;
use super::fade::ONE;
use super::fault::Fault;
use super::surface::Surface;

impl Connection {
    /// `wp_alpha_modifier_v1.get_surface`.
    pub(super) fn add_fade(&mut self, call: Call, id: u32, surface: u32) -> Result<(), Fault> {
        let before = self.surfaces.get_mut(&surface).and_then(|surface| surface.fade.set_object(Some(id)));
        match before.filter(|_| self.offering.fades()) {
            Some(_) => {
                Err(Fault::app(call.id, ALREADY_CONSTRUCTED, format!("surface {surface} has one already")))
            }
            None => Ok(()),
        }
    }

    /// The surface of a `wp_alpha_modifier_surface_v1`, if its pixels are multiplied here.
    fn faded(&mut self, modifier: u32) -> Option<&mut Surface> {
        let id = self.association(modifier).filter(|_| self.offering.fades())?;
        // Another surface may have its id by now.
        self.surfaces.get_mut(&id).filter(|surface| surface.fade.object() == Some(modifier))
    }

    /// `wp_alpha_modifier_surface_v1.set_multiplier`.
    pub(super) fn set_fade(&mut self, call: Call, factor: u32) -> Result<(), Fault> {
        if !self.offering.fades() {
            return Ok(());
        }
        let surface = self.faded(call.id);
        let surface = surface.ok_or_else(|| Fault::app(call.id, NO_SURFACE, "the surface is destroyed"))?;
        surface.pending.factor = Some(factor);
        Ok(())
    }

    /// `wp_alpha_modifier_surface_v1.destroy`: from the next commit on the factor is one.
    pub(super) fn end_fade(&mut self, modifier: u32) {
        if let Some(surface) = self.faded(modifier) {
            surface.pending.factor = Some(ONE);
        }
        let surface = self.association(modifier).and_then(|id| self.surfaces.get_mut(&id));
        if let Some(surface) = surface.filter(|surface| surface.fade.object() == Some(modifier)) {
            surface.fade.set_object(None);
        }
    }
}

/// Errors of `wp_alpha_modifier_v1`, and of `wp_alpha_modifier_surface_v1`.
const ALREADY_CONSTRUCTED: u32 = 0;
const NO_SURFACE: u32 = 0;
