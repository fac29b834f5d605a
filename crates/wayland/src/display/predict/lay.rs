//! Draws predictions: on a subsurface of ours above all that the program has in its window.
//!
//! It is made, and moved, before a commit of the surface that it lies on, which comes anyway, and lies over the line
//! that is typed in. Between such commits it is on its own, so that a letter costs no commit of the program's surface;
//! for one it is synchronised, so that both are seen in one frame. It takes no input, asks for no frames, and is gone
//! when the keyboard is. Where the compositor has no subsurfaces, or pixels of the surface are turned, cropped, or
//! scaled otherwise in one direction than in the other, nothing is drawn. Invariant: of the program's own objects no
//! request is made.

use wayferry_echo::Overlay;
use wayferry_pixels::{Format, Size};
use wayferry_proto::Time;

use crate::action::End;
use crate::message::WireId;
use crate::wire::Arg;

use super::super::buffers::Spec;
use super::super::connection::{Connection, no_memory};
use super::super::objects::Own;
use super::super::ops::{self, ints, known};
use super::super::ratio::Ratio;
use super::picture;
use super::sheet::{Drawn, Leaf, Place, Sheet};
use super::when::Marking;

impl Connection {
    /// Brings the sheet up to what is wanted, at once.
    pub(super) fn lay(&mut self, now: Time) -> Result<(), End> {
        self.count_predictions();
        let Some(sheet) = self.state.predictions.sheet.take() else { return Ok(()) };
        self.with_sheet(sheet, |connection, sheet| {
            // What is drawn now would be seen with a commit of the program's.
            let waits = sheet.is_synchronised || connection.tree.is_synchronised(sheet.parent);
            if waits { Ok(()) } else { connection.draw_sheet(now, sheet) }
        })
    }

    /// Brings the sheet up to what is wanted, for the next commit of `target`, after which [`Self::lay_apart`] is to be
    /// called.
    pub(super) fn lay_in_step(&mut self, now: Time, target: WireId) -> Result<(), End> {
        self.count_predictions();
        let place = self.place_of_sheet(target);
        let sheet = match (self.state.predictions.sheet.take(), place) {
            (Some(sheet), _) => sheet,
            (None, Some(_)) if self.state.predictions.when.draws() => match self.make_sheet(target)? {
                Some(sheet) => sheet,
                None => return Ok(()),
            },
            (None, _) => return Ok(()),
        };
        self.with_sheet(sheet, |connection, sheet| {
            if let Some(place) = place.filter(|place| *place != sheet.place) {
                connection.place_sheet(sheet, place)?;
            }
            connection.draw_in_step(now, sheet)
        })
    }

    /// The surface was committed: what is drawn from now on does not wait for its next commit.
    pub(in super::super) fn lay_apart(&mut self, surface: WireId) -> Result<(), End> {
        let sheet = self.state.predictions.sheet.as_mut();
        let Some(sheet) = sheet.filter(|sheet| sheet.parent == surface && sheet.is_synchronised) else {
            return Ok(());
        };
        sheet.is_synchronised = false;
        let subsurface = sheet.subsurface;
        self.send(subsurface, ops::SUBSURFACE_SET_DESYNC, vec![])
    }

    /// A buffer of the sheet was released.
    pub(in super::super) fn on_leaf_released(&mut self, now: Time, id: u32) -> Result<(), End> {
        let Some(sheet) = &mut self.state.predictions.sheet else { return Ok(()) };
        sheet.released(id);
        if sheet.waits { self.lay(now) } else { Ok(()) }
    }

    /// A subsurface was put into the surface: the sheet stays above.
    pub(in super::super) fn raise_sheet(&mut self, parent: WireId, above: WireId) -> Result<(), End> {
        let sheet = self.state.predictions.sheet.as_ref().filter(|sheet| sheet.parent == parent);
        let (Some(sheet), Some(sibling)) = (sheet, self.objects.live(above)) else { return Ok(()) };
        self.send(sheet.subsurface, ops::SUBSURFACE_PLACE_ABOVE, vec![Arg::Object(sibling)])
    }

    /// Takes the sheet away, at once.
    pub(super) fn remove_sheet(&mut self) -> Result<(), End> {
        let Some(sheet) = self.state.predictions.sheet.take() else { return Ok(()) };
        let viewport = sheet.viewport.map(|viewport| (viewport, ops::VIEWPORT_DESTROY));
        let objects = [(sheet.subsurface, ops::SUBSURFACE_DESTROY), (sheet.surface, ops::SURFACE_DESTROY)];
        for (id, destroy) in viewport.into_iter().chain(objects) {
            self.send(id, destroy, vec![])?;
            self.objects.own_destroyed(id);
        }
        sheet.into_leaves().try_for_each(|(leaf, is_busy)| {
            if is_busy { self.abandon_buffer(leaf) } else { self.destroy_buffer(leaf) }
        })
    }

    fn with_sheet(
        &mut self,
        mut sheet: Sheet,
        act: impl FnOnce(&mut Self, &mut Sheet) -> Result<(), End>,
    ) -> Result<(), End> {
        let outcome = act(self, &mut sheet);
        self.state.predictions.sheet = Some(sheet);
        outcome
    }

    /// Where a sheet lies over the line of `target`, if it can be laid there.
    fn place_of_sheet(&self, target: WireId) -> Option<Place> {
        let strip = self.state.predictions.typing.as_ref()?.strip()?;
        let surface = self.surfaces.get(&target)?;
        let pixels = surface.pixels()?;
        let ratio = surface.extent.ratio(pixels)?;
        let can_be = self.is_scaled_by_whole(ratio) || self.globals.helpers.viewporter.is_some();
        let is_free = !self.tree.is_synchronised(target);
        let rect = ratio.around(strip, pixels).filter(|_| can_be && is_free)?;
        Some(Place { rect, ratio })
    }

    /// Whether `wl_surface.set_buffer_scale` says it, which version 3 has.
    fn is_scaled_by_whole(&self, ratio: Ratio) -> bool {
        ratio == Ratio::ONE || (ratio.units == 1 && self.globals.helpers.compositor_version >= 3)
    }

    /// A sheet on `parent`, if the compositor has what that takes.
    fn make_sheet(&mut self, parent: WireId) -> Result<Option<Sheet>, End> {
        let (Some(subcompositor), Some(on)) = (self.globals.helpers.subcompositor, self.objects.live(parent))
        else {
            return Ok(None);
        };
        let (compositor, version) =
            (self.globals.helpers.compositor, self.globals.helpers.compositor_version);
        let surface = self.objects.own(known("wl_surface"), version, Own::Helper)?;
        self.send(compositor, ops::COMPOSITOR_CREATE_SURFACE, vec![Arg::NewId(surface)])?;
        let nowhere = self.make_region(&[])?;
        self.send(surface, ops::SURFACE_SET_INPUT_REGION, vec![Arg::Object(nowhere)])?;
        self.send(nowhere, ops::REGION_DESTROY, vec![])?;
        self.objects.own_destroyed(nowhere);
        let subsurface = self.objects.own(known("wl_subsurface"), 1, Own::Helper)?;
        let args = vec![Arg::NewId(subsurface), Arg::Object(surface), Arg::Object(on)];
        self.send(subcompositor, ops::SUBCOMPOSITOR_GET_SUBSURFACE, args)?;
        Ok(Some(Sheet::new(parent, surface, subsurface)))
    }

    fn place_sheet(&mut self, sheet: &mut Sheet, place: Place) -> Result<(), End> {
        let (position, sides) = place.in_units();
        self.send(sheet.subsurface, ops::SUBSURFACE_SET_POSITION, ints(&position))?;
        let scale_of = |ratio: Ratio| if self.is_scaled_by_whole(ratio) { ratio.pixels } else { 1 };
        let (scale, before) = (scale_of(place.ratio), scale_of(sheet.place.ratio));
        if scale != before {
            self.send(sheet.surface, ops::SURFACE_SET_BUFFER_SCALE, ints(&[scale.cast_signed()]))?;
        }
        sheet.place = place;
        match (self.is_scaled_by_whole(place.ratio), sheet.viewport) {
            (true, None) => Ok(()),
            (true, Some(viewport)) => self.send(viewport, ops::VIEWPORT_SET_DESTINATION, ints(&[-1, -1])),
            (false, _) => match self.viewport_of(sheet)? {
                Some(viewport) => self.send(viewport, ops::VIEWPORT_SET_DESTINATION, ints(&sides)),
                None => Ok(()),
            },
        }
    }

    fn viewport_of(&mut self, sheet: &mut Sheet) -> Result<Option<u32>, End> {
        if let (None, Some(viewporter)) = (sheet.viewport, self.globals.helpers.viewporter) {
            let viewport = self.objects.own(known("wp_viewport"), 1, Own::Helper)?;
            let args = vec![Arg::NewId(viewport), Arg::Object(sheet.surface)];
            self.send(viewporter, ops::VIEWPORTER_GET_VIEWPORT, args)?;
            sheet.viewport = Some(viewport);
        }
        Ok(sheet.viewport)
    }

    /// Draws what is wanted for the parent's next commit; what cannot be is not shown, for what is might be wrong then.
    fn draw_in_step(&mut self, now: Time, sheet: &mut Sheet) -> Result<(), End> {
        if !self.is_behind(now, sheet) {
            return Ok(());
        }
        if !std::mem::replace(&mut sheet.is_synchronised, true) {
            self.send(sheet.subsurface, ops::SUBSURFACE_SET_SYNC, vec![])?;
        }
        self.draw_sheet(now, sheet)?;
        if sheet.waits && sheet.drawn.is_some() { self.clear_sheet(sheet) } else { Ok(()) }
    }

    /// What is to be drawn on the sheet, if it lies where that belongs.
    fn wanted_on(&self, now: Time, sheet: &Sheet) -> Option<(&Overlay, Marking)> {
        let wanted = self.state.predictions.wanted(now)?;
        let is_there = self.place_of_sheet(sheet.parent) == Some(sheet.place);
        (is_there && sheet.place.rect.contains(wanted.0.rect)).then_some(wanted)
    }

    fn is_behind(&self, now: Time, sheet: &Sheet) -> bool {
        let drawn = sheet.drawn.as_ref().map(|drawn| (&drawn.overlay, drawn.marking, drawn.place));
        self.wanted_on(now, sheet).map(|(overlay, marking)| (overlay, marking, sheet.place)) != drawn
    }

    /// Draws what is wanted and commits it. With no free buffer it [waits](Sheet::waits).
    fn draw_sheet(&mut self, now: Time, sheet: &mut Sheet) -> Result<(), End> {
        sheet.waits = false;
        if !self.is_behind(now, sheet) {
            return Ok(());
        }
        let Some((overlay, marking)) = self.wanted_on(now, sheet) else { return self.clear_sheet(sheet) };
        let Some(pixels) = picture::paint(overlay, sheet.place.rect, marking, sheet.place.ratio.thickness())
        else {
            return self.clear_sheet(sheet);
        };
        let drawn = Drawn { overlay: overlay.clone(), marking, place: sheet.place };
        let Some(buffer) = self.leaf(sheet, &pixels)? else {
            sheet.waits = true;
            return Ok(());
        };
        sheet.drawn = Some(drawn);
        let surface = sheet.surface;
        self.send(surface, ops::SURFACE_ATTACH, vec![Arg::Object(buffer), Arg::Int(0), Arg::Int(0)])?;
        self.send(surface, ops::SURFACE_DAMAGE, ints(&[0, 0, i32::MAX, i32::MAX]))?;
        self.send(surface, ops::SURFACE_COMMIT, vec![])
    }

    fn clear_sheet(&mut self, sheet: &mut Sheet) -> Result<(), End> {
        if sheet.drawn.take().is_none() {
            return Ok(());
        }
        self.send(sheet.surface, ops::SURFACE_ATTACH, vec![Arg::Object(0), Arg::Int(0), Arg::Int(0)])?;
        self.send(sheet.surface, ops::SURFACE_COMMIT, vec![])
    }

    /// A free buffer with these pixels, if there may be one.
    fn leaf(&mut self, sheet: &mut Sheet, pixels: &[u8]) -> Result<Option<u32>, End> {
        let Ok(size) = Size::new(sheet.place.rect.width, sheet.place.rect.height) else { return Ok(None) };
        for useless in sheet.take_useless(size) {
            self.destroy_buffer(useless)?;
        }
        if sheet.free_leaf(size).is_none() && sheet.has_room(size) && self.shm.has_room() {
            let stride = size.width() as usize * Format::Argb8888.bytes_per_pixel();
            let spec = Spec { size, format: Format::Argb8888, length: pixels.len(), stride };
            let (id, memory) = self.make_buffer(Own::Leaf, &spec)?;
            sheet.add(Leaf { id, memory, size, is_busy: false });
        }
        let Some(leaf) = sheet.free_leaf(size) else { return Ok(None) };
        leaf.memory.write(0, pixels).map_err(no_memory)?;
        leaf.is_busy = true;
        Ok(Some(leaf.id))
    }
}
