//! What a display of an older version leaves to this side: events that it does not know, a request that it cannot take.
//!
//! Programs are offered the same versions with any display attached. Most of what a later version adds is an option
//! that a compositor need not use; the rest is here: wheel steps in 120ths, the scale that a surface should have, what
//! a window manager can do, and popups that move. These cannot be made up well: a program that begins at a display
//! without them is told so, and places its popups anew by itself; one that watches for idle users is not offered what
//! the display has not. Invariant: what the display says itself is never said here too.

use crate::policy::Handler;
use crate::wire::Arg;

use super::call::{Call, Plain};
use super::connection::Connection;
use super::fault::Fault;
use super::object::{Configures, Data, Popup};
use super::surface::Surface;

/// 1.0 of `wp_fractional_scale_v1`.
const SCALE_ONE: u32 = 120;
/// Scales of outputs beyond are not believed.
const MAX_SCALE: i32 = 16;

/// `wl_output.transform.normal`.
const NORMAL: u32 = 0;

/// `xdg_toplevel.wm_capabilities`: the window menu, maximize, fullscreen, minimize.
const ALL_CAPABILITIES: [u32; 4] = [1, 2, 3, 4];

/// The first version of `xdg_wm_base` with bounds, with capabilities, and with popups that move.
const WITH_BOUNDS: u32 = 4;
const WITH_CAPABILITIES: u32 = 5;
/// The first version of the decoration manager that takes windows with content.
pub(super) const WITH_LATE_DECORATION: u32 = 2;
/// The first version of `wl_compositor` whose surfaces are told their scale.
const WITH_SCALE: u32 = 6;

impl Connection {
    /// Another display takes over from one whose `xdg_wm_base` was of version `before`: what only that one said is
    /// void.
    pub(super) fn tell_older(&mut self, before: u32) -> Result<(), Fault> {
        let now = self.offering.version("xdg_wm_base");
        for id in self.objects.living("xdg_toplevel") {
            if before >= WITH_BOUNDS && now < WITH_BOUNDS {
                self.emit(id, "configure_bounds", vec![Arg::Int(0), Arg::Int(0)])?;
            }
            if before >= WITH_CAPABILITIES {
                self.tell_window_capabilities(id)?;
            }
        }
        Ok(())
    }

    /// A window may ask for everything of a display that does not say.
    pub(super) fn tell_window_capabilities(&mut self, toplevel: u32) -> Result<(), Fault> {
        if self.offering.version("xdg_wm_base") >= WITH_CAPABILITIES {
            return Ok(());
        }
        let all = ALL_CAPABILITIES.iter().flat_map(|capability| capability.to_ne_bytes());
        self.emit(toplevel, "wm_capabilities", vec![Arg::Array(all.collect())])
    }

    /// Another display takes over: how the one before wanted buffers to be rotated is void. One that wants that too
    /// says so, if it is new enough to say anything.
    pub(super) fn void_transforms(&mut self) -> Result<(), Fault> {
        let is_rotated = |surface: &mut Surface| surface.preferred.set_transform(NORMAL) != NORMAL;
        let rotated = self.surfaces.iter_mut().filter_map(|(id, surface)| is_rotated(surface).then_some(*id));
        let rotated: Vec<u32> = rotated.collect();
        rotated
            .into_iter()
            .try_for_each(|id| self.emit(id, "preferred_buffer_transform", vec![Arg::Uint(NORMAL)]))
    }

    /// Tells surfaces their scale, where the display does not and it is another one than they were told.
    pub(super) fn tell_scales(&mut self) -> Result<(), Fault> {
        if self.line.is_attached() {
            self.objects.living("wl_surface").into_iter().try_for_each(|id| self.tell_scale(id))?;
            let scales = self.objects.living("wp_fractional_scale_v1");
            scales.into_iter().try_for_each(|id| self.tell_scale(id))?;
        }
        Ok(())
    }

    /// The same for one surface, or for one `wp_fractional_scale_v1`.
    pub(super) fn tell_scale(&mut self, id: u32) -> Result<(), Fault> {
        let Some(object) = self.objects.alive(id) else { return Ok(()) };
        let (fractional, there) = (object.handler == Handler::FractionalScale, object.wire.is_some());
        let told = if fractional { there } else { self.offering.version("wl_compositor") >= WITH_SCALE };
        let Some(surface) = self.association(id) else { return Ok(()) };
        let scale = Some(self.scale_of(surface)).filter(|_| !told);
        let Some(state) = self.surfaces.get_mut(&surface) else { return Ok(()) };
        let before = match fractional {
            true => state.preferred.set_fraction(id, scale),
            false => state.preferred.set_scale(scale),
        };
        let Some(scale) = scale.filter(|scale| before != Some(*scale)) else { return Ok(()) };
        match fractional {
            true => self.emit(id, "preferred_scale", vec![Arg::Uint(scale * SCALE_ONE)]),
            false => self.emit(id, "preferred_buffer_scale", vec![Arg::Int(scale.cast_signed())]),
        }
    }

    /// The highest scale among the outputs that a surface is on; among all while it is on none that the program knows.
    fn scale_of(&self, surface: u32) -> u32 {
        let on: Vec<i32> = self.devices.about(surface).filter_map(|id| self.output_scale(id)).collect();
        let scale = on.into_iter().max().or_else(|| self.offering.highest_scale()).unwrap_or(1);
        scale.clamp(1, MAX_SCALE).unsigned_abs()
    }

    /// `xdg_popup.reposition` of a display that cannot move popups: it stays where it is, and may have its new size.
    pub(super) fn reposition_here(&mut self, popup: u32, args: &[Plain]) -> Result<(), Fault> {
        let [Plain::Object(positioner), Plain::Uint(token)] = *args else { return Ok(()) };
        let size = match self.objects.of(positioner).map(|object| &object.data) {
            Some(Data::Positioner(positioner)) => positioner.size,
            _ => None,
        };
        let Some(object) = self.objects.of_mut(popup) else { return Ok(()) };
        let Data::Popup(state) = &mut object.data else { return Ok(()) };
        let (Popup { shell, at: Some((x, y)), .. }, Some((width, height))) = (*state, size) else {
            state.token = Some(token);
            return Ok(());
        };
        let Some(Data::Shell(configures)) = self.objects.of_mut(shell).map(|object| &mut object.data) else {
            return Ok(());
        };
        let Some(serial) = configures.last else { return Ok(()) };
        configures.repeated = true;
        self.emit(popup, "repositioned", vec![Arg::Uint(token)])?;
        self.emit(popup, "configure", [x, y, width, height].map(Arg::Int).into())?;
        self.emit(shell, "configure", vec![Arg::Uint(serial)])
    }

    /// A popup is configured for the first time after it was to move.
    pub(super) fn tell_repositioned(&mut self, popup: u32) -> Result<(), Fault> {
        let token = match self.objects.of_mut(popup).map(|object| &mut object.data) {
            Some(Data::Popup(popup)) => popup.token.take(),
            _ => None,
        };
        token.map_or(Ok(()), |token| self.emit(popup, "repositioned", vec![Arg::Uint(token)]))
    }

    /// The display has configured a window or a layer, with a serial of its own.
    pub(super) fn configured(&mut self, id: u32, serial: u32) -> Result<(), Fault> {
        let known = self.line.serials_mut().for_app(serial);
        self.note_configure(id, known);
        self.on_configure(id, serial)
    }

    /// Whether a request for the next commit of a surface is no acknowledgement, or one that the display is to hear.
    pub(super) fn acknowledges(&mut self, call: Call, surface: Option<u32>, args: &[Arg]) -> bool {
        let Some(surface) = surface.filter(|_| call.desc.name == "ack_configure") else { return true };
        self.acknowledge(surface, args) && !self.is_acknowledged(call.id, args)
    }

    /// The display configures an `xdg_surface`; the serial is the program's.
    fn note_configure(&mut self, shell: u32, serial: u32) {
        if let Some(Data::Shell(configures)) = self.objects.of_mut(shell).map(|object| &mut object.data) {
            *configures = Configures { last: Some(serial), ..Configures::default() };
        }
    }

    /// Whether the program acknowledges a second time what it was told a second time: the display has heard it.
    fn is_acknowledged(&mut self, shell: u32, args: &[Arg]) -> bool {
        let Some(Data::Shell(configures)) = self.objects.of_mut(shell).map(|object| &mut object.data) else {
            return false;
        };
        if !matches!(args, [Arg::Uint(serial)] if configures.last == Some(*serial)) {
            return false;
        }
        std::mem::replace(&mut configures.acknowledged, true) && configures.repeated
    }
}
