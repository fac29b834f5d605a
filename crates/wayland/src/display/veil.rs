//! A veil over windows of which nothing is heard: the picture stays, and is seen to be old.
//!
//! Each window has a subsurface of ours above all others, made before its first commit, as only a commit of the window
//! lets a subsurface be seen, and the program's commits are its own. It has no content until nothing is heard any more,
//! takes no input, and is never part of what the program draws or could take a picture of. Where the compositor has no
//! subsurfaces or viewports, titles alone say it. Invariant: a veil goes with its window.

use std::collections::HashMap;

use wayferry_pixels::{Format, Size};

use crate::action::End;
use crate::message::WireId;
use crate::wire::Arg;

use super::connection::{Connection, wrong};
use super::objects::Own;
use super::ops::{self, ints, known};

/// The veils of one program's windows.
#[derive(Debug, Default)]
pub(super) struct Veils {
    /// One pixel, and the region of no input, once they are needed.
    pixel: Option<u32>,
    nowhere: Option<u32>,
    /// By the windows' surfaces.
    veils: HashMap<WireId, Veil>,
    /// Nothing is heard.
    are_drawn: bool,
}

/// One veil.
#[derive(Debug)]
struct Veil {
    toplevel: WireId,
    surface: u32,
    subsurface: u32,
    viewport: u32,
    /// What the program says of its window: where it is in the surface, and how large.
    geometry: Option<[i32; 4]>,
}

impl Connection {
    /// A window was made: prepares its veil.
    pub(super) fn make_veil(&mut self, toplevel: WireId) -> Result<(), End> {
        let helpers = &self.globals.helpers;
        let (Some(subcompositor), Some(viewporter)) = (helpers.subcompositor, helpers.viewporter) else {
            return Ok(());
        };
        let (compositor, version) = (helpers.compositor, helpers.compositor_version);
        let Some(window) = self.surface_of(toplevel) else { return Ok(()) };
        let Some(parent) = self.objects.live(window).filter(|_| self.objects.live(toplevel).is_some()) else {
            return Ok(());
        };
        let nowhere = match self.state.veils.nowhere {
            Some(region) => region,
            None => {
                let region = self.objects.own(known("wl_region"), 1, Own::Helper)?;
                self.send(compositor, ops::COMPOSITOR_CREATE_REGION, vec![Arg::NewId(region)])?;
                *self.state.veils.nowhere.insert(region)
            }
        };
        let surface = self.objects.own(known("wl_surface"), version, Own::Helper)?;
        self.send(compositor, ops::COMPOSITOR_CREATE_SURFACE, vec![Arg::NewId(surface)])?;
        self.send(surface, ops::SURFACE_SET_INPUT_REGION, vec![Arg::Object(nowhere)])?;
        let subsurface = self.objects.own(known("wl_subsurface"), 1, Own::Helper)?;
        let args = vec![Arg::NewId(subsurface), Arg::Object(surface), Arg::Object(parent)];
        self.send(subcompositor, ops::SUBCOMPOSITOR_GET_SUBSURFACE, args)?;
        self.send(subsurface, ops::SUBSURFACE_SET_DESYNC, vec![])?;
        let viewport = self.objects.own(known("wp_viewport"), 1, Own::Helper)?;
        let args = vec![Arg::NewId(viewport), Arg::Object(surface)];
        self.send(viewporter, ops::VIEWPORTER_GET_VIEWPORT, args)?;
        let veil = Veil { toplevel, surface, subsurface, viewport, geometry: None };
        self.state.veils.veils.insert(window, veil);
        Ok(())
    }

    /// A window is gone.
    pub(super) fn end_veil(&mut self, toplevel: WireId) -> Result<(), End> {
        let veils = &mut self.state.veils.veils;
        let Some(window) = veils.iter().find_map(|(id, veil)| (veil.toplevel == toplevel).then_some(*id))
        else {
            return Ok(());
        };
        let Some(Veil { surface, subsurface, viewport, .. }) = veils.remove(&window) else { return Ok(()) };
        let parts = [
            (viewport, ops::VIEWPORT_DESTROY),
            (subsurface, ops::SUBSURFACE_DESTROY),
            (surface, ops::SURFACE_DESTROY),
        ];
        for (id, destroy) in parts {
            self.send(id, destroy, vec![])?;
            self.objects.own_destroyed(id);
        }
        Ok(())
    }

    /// The program has said where its window is in a surface, which holds with the surface's next commit, as the veil's
    /// place does.
    pub(super) fn place_veil(&mut self, window: WireId, geometry: [i32; 4]) -> Result<(), End> {
        let Some(veil) = self.state.veils.veils.get_mut(&window) else { return Ok(()) };
        veil.geometry = Some(geometry);
        let subsurface = veil.subsurface;
        self.send(subsurface, ops::SUBSURFACE_SET_POSITION, ints(&geometry[..2]))?;
        if self.state.veils.are_drawn { self.draw_veil(window, true) } else { Ok(()) }
    }

    /// A subsurface was put into a window: the veil stays above.
    pub(super) fn raise_veil(&mut self, window: WireId, above: WireId) -> Result<(), End> {
        let (Some(veil), Some(sibling)) = (self.state.veils.veils.get(&window), self.objects.live(above))
        else {
            return Ok(());
        };
        let subsurface = veil.subsurface;
        self.send(subsurface, ops::SUBSURFACE_PLACE_ABOVE, vec![Arg::Object(sibling)])
    }

    /// Draws the veils, or takes them away.
    pub(super) fn draw_veils(&mut self, drawn: bool) -> Result<(), End> {
        if std::mem::replace(&mut self.state.veils.are_drawn, drawn) == drawn {
            return Ok(());
        }
        let mut windows: Vec<WireId> = self.state.veils.veils.keys().copied().collect();
        windows.sort_unstable();
        windows.into_iter().try_for_each(|window| self.draw_veil(window, drawn))
    }

    fn draw_veil(&mut self, window: WireId, drawn: bool) -> Result<(), End> {
        let Some(veil) = self.state.veils.veils.get(&window) else { return Ok(()) };
        let (surface, viewport) = (veil.surface, veil.viewport);
        let size = veil.geometry.map(|[_, _, width, height]| [width, height]);
        let Some([width, height]) = size.or_else(|| self.surface_size(window)) else { return Ok(()) };
        let pixel = if drawn { self.veil_pixel()? } else { 0 };
        self.send(surface, ops::SURFACE_ATTACH, vec![Arg::Object(pixel), Arg::Int(0), Arg::Int(0)])?;
        if drawn {
            let sides = [width, height].map(|side| side.clamp(1, MAX_SIDE));
            self.send(viewport, ops::VIEWPORT_SET_DESTINATION, ints(&sides))?;
            self.send(surface, ops::SURFACE_DAMAGE, ints(&[0, 0, sides[0], sides[1]]))?;
        }
        self.send(surface, ops::SURFACE_COMMIT, vec![])
    }

    /// How large a window is whose program does not say it.
    fn surface_size(&self, window: WireId) -> Option<[i32; 2]> {
        let surface = self.surfaces.get(&window)?;
        let pixels = surface.pixels()?;
        Some(surface.extent.of([pixels.width(), pixels.height()].map(u32::cast_signed)))
    }

    fn veil_pixel(&mut self) -> Result<u32, End> {
        if let Some(pixel) = self.state.veils.pixel {
            return Ok(pixel);
        }
        let size = Size::new(1, 1).map_err(|error| wrong(error.to_string()))?;
        let pixel = self.make_static_buffer(size, Format::Argb8888, &SHADE)?;
        Ok(*self.state.veils.pixel.insert(pixel))
    }
}

/// Black, and half of what is behind it: `argb8888` in memory.
const SHADE: [u8; 4] = [0, 0, 0, 0x80];
/// No window is larger; a compositor refuses no such size.
const MAX_SIDE: i32 = 1 << 15;
