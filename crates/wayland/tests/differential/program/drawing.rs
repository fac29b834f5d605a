//! What a program draws: buffers, state and commits.

use wayferry_wayland::wire::Arg;

use super::{Program, ROOM, Step};
use crate::link::World;
use crate::operation::{Damage, Op};
use crate::place::{Attached, Drawing, MAX_SIDE, Place, Role};

impl<W: World> Program<'_, W> {
    pub(super) fn paint(
        &mut self,
        at: usize,
        size: Option<(u8, u8)>,
        rect: [u8; 4],
        damage: Damage,
        xrgb: bool,
    ) -> Step {
        if !self.ready(at)? {
            return Ok(());
        }
        self.colour += 1;
        let colour = self.colour;
        let Some(place) = &mut self.places[at] else { return Ok(()) };
        let scale = place.shape.scale;
        let side = |value: u8| ((4 + i32::from(value) % (MAX_SIDE - 3)) / scale).max(1) * scale;
        let size = size.map_or(place.size, |(width, height)| (side(width), side(height)));
        place.whole |= size != place.size || xrgb != place.xrgb;
        if size != place.size {
            place.truth = vec![0; (size.0 * size.1 * 4) as usize];
        }
        (place.size, place.xrgb) = (size, xrgb);
        let (width, height) = size;
        let [x, y, w, h] = rect.map(i32::from);
        let (x, y) = (x % width, y % height);
        let (w, h) = (1 + w % (width - x), 1 + h % (height - y));
        let pixel = (0x8040_2010 ^ (colour * 0x0001_0307)).to_le_bytes();
        for row in y..y + h {
            for column in x..x + w {
                let start = ((row * width + column) * 4) as usize;
                place.truth[start..start + 4].copy_from_slice(&pixel);
            }
        }
        place.damage.push(([x, y, w, h], damage));
        self.attach_drawing(at)
    }

    /// Attaches a drawing with the truth in it.
    pub(super) fn attach_drawing(&mut self, at: usize) -> Step {
        let Some(place) = &self.places[at] else { return Ok(()) };
        let next = place.latest.map_or(0, |latest| (latest + 1) % 3);
        let is_free = move |program: &Self| {
            let place = program.places[at].as_ref();
            place.is_none_or(|place| place.drawings[next].is_none_or(|drawing| drawing.busy == 0))
        };
        self.wait("a buffer's release", is_free)?;
        let Some(place) = &self.places[at] else { return Ok(()) };
        let (id, size, xrgb) = (place.id, place.size, place.xrgb);
        let offset = (at * 3 + next) * ROOM;
        rustix::io::pwrite(&self.memory, &place.truth, offset as u64).expect("written");
        let old = place.drawings[next];
        if old.is_none_or(|old| (old.size, old.xrgb) != (size, xrgb)) {
            if let Some(old) = old {
                self.request(old.id, "destroy", vec![]);
            }
            let numbers = [offset as i32, size.0, size.1, size.0 * 4].map(Arg::Int);
            let args = numbers.into_iter().chain([Arg::Uint(u32::from(xrgb))]).collect();
            let buffer = self.make(self.pool, "create_buffer", args);
            if let Some(place) = &mut self.places[at] {
                place.drawings[next] = Some(Drawing { id: buffer, size, xrgb, busy: 0 });
            }
        }
        let Some(place) = &mut self.places[at] else { return Ok(()) };
        let drop_pixel = if let Attached::Pixel(id) = place.attached { Some(id) } else { None };
        place.attached = Attached::Drawing(next);
        place.latest = Some(next);
        place.shape.size = Some(size);
        let buffer = place.drawings[next].map_or(0, |drawing| drawing.id);
        self.request(id, "attach", vec![Arg::Object(buffer), Arg::Int(0), Arg::Int(0)]);
        if let Some(pixel) = drop_pixel {
            self.request(pixel, "destroy", vec![]);
        }
        Ok(())
    }

    pub(super) fn pixel(&mut self, at: usize, colour: u32) -> Step {
        if !self.ready(at)? {
            return Ok(());
        }
        let Some(Place { id, attached, .. }) = self.places[at] else { return Ok(()) };
        let part = |shift: u32| Arg::Uint((colour >> shift & 0xff) * 0x0101_0101);
        let manager = self.globals["wp_single_pixel_buffer_manager_v1"];
        let args = vec![part(0), part(8), part(16), Arg::Uint(u32::MAX)];
        let buffer = self.make(manager, "create_u32_rgba_buffer", args);
        self.request(id, "attach", vec![Arg::Object(buffer), Arg::Int(0), Arg::Int(0)]);
        if let Attached::Pixel(old) = attached {
            self.request(old, "destroy", vec![]);
        }
        if let Some(place) = &mut self.places[at] {
            place.attached = Attached::Pixel(buffer);
            place.shape.size = Some((1, 1));
            place.whole = true;
        }
        Ok(())
    }

    /// Attaches what was painted last once more, moved; or says so alone, where there is a request for that.
    pub(super) fn offset(&mut self, at: usize, (x, y): (i8, i8)) {
        let Some(place) = &self.places[at] else { return };
        let (id, by) = (place.id, [x, y].map(|by| Arg::Int(i32::from(by))));
        if !self.old {
            return self.request(id, "offset", by.into());
        }
        let drawing = match (place.attached, place.latest) {
            (Attached::Drawing(latest), _) => latest,
            (Attached::Nothing, Some(latest)) if !place.is_window() || place.mapped => latest,
            _ => return,
        };
        // Whether its memory may be read again is not the program's to say while it is not released.
        let Some(found) = place.drawings[drawing].filter(|found| found.busy == 0) else { return };
        // It holds what the surface shows only if nothing else was attached since.
        if found.size != place.size || place.shape.size != Some(found.size) || place.role == Role::Spent {
            return;
        }
        let args = [Arg::Object(found.id)].into_iter().chain(by).collect();
        self.request(id, "attach", args);
        if let Some(place) = &mut self.places[at] {
            place.attached = Attached::Drawing(drawing);
        }
    }

    pub(super) fn commit(&mut self, at: usize) -> Step {
        if self.is_lost(at) || !self.ready(at)? {
            return Ok(());
        }
        self.acknowledge(at);
        self.say_commit(at);
        Ok(())
    }

    /// Makes state and buffer agree, says what was painted, and commits.
    pub(super) fn say_commit(&mut self, at: usize) {
        let Some(place) = &mut self.places[at] else { return };
        let (id, viewport) = (place.id, place.viewport);
        let (mut scale, mut source) = (false, false);
        if !place.shape.fits_scale() {
            place.shape.scale = 1;
            scale = true;
        }
        if !place.shape.fits_source() {
            place.shape.source = None;
            source = true;
        }
        if scale {
            self.request(id, "set_buffer_scale", vec![Arg::Int(1)]);
        }
        if let (true, Some(viewport)) = (source, viewport) {
            self.request(viewport, "set_source", [-256; 4].map(Arg::Fixed).into());
        }
        self.say_damage(at);
        self.request(id, "commit", vec![]);
        let Some(place) = &mut self.places[at] else { return };
        place.committed = place.shape;
        match std::mem::replace(&mut place.attached, Attached::Nothing) {
            Attached::Nothing => {}
            Attached::Drawing(drawing) => {
                place.mapped = true;
                if let Some(drawing) = &mut place.drawings[drawing] {
                    drawing.busy += 1;
                }
            }
            Attached::Pixel(buffer) => {
                place.mapped = true;
                self.request(buffer, "destroy", vec![]);
            }
        }
        self.claim(at);
    }

    pub(super) fn say_damage(&mut self, at: usize) {
        let Some(place) = &mut self.places[at] else { return };
        let id = place.id;
        let shape = place.shape;
        let mut damage = std::mem::take(&mut place.damage);
        match place.attached {
            Attached::Nothing => return,
            Attached::Pixel(_) => damage = vec![([0, 0, 1, 1], Damage::Everything)],
            Attached::Drawing(_) => {
                if std::mem::take(&mut place.whole) {
                    let (width, height) = place.size;
                    damage.push(([0, 0, width, height], Damage::Buffer));
                }
            }
        }
        for (rect, kind) in damage {
            // What is outside the source has no surface coordinates.
            let kind = if shape.source.is_some() { Damage::Buffer } else { kind };
            let (request, rect) = match kind {
                Damage::Buffer => ("damage_buffer", rect),
                Damage::Surface => ("damage", shape.to_surface(rect)),
                Damage::Everything => ("damage", [0, 0, i32::MAX, i32::MAX]),
            };
            self.request(id, request, rect.map(Arg::Int).into());
        }
    }

    pub(super) fn destroy_buffers(&mut self, at: usize) -> Step {
        let idle = |program: &Self| {
            let drawings = program.places[at].iter().flat_map(|place| place.drawings.iter().flatten());
            drawings.fold(0, |sum, drawing| sum + drawing.busy) == 0
        };
        self.wait("all buffers' release", idle)?;
        let Some(place) = &mut self.places[at] else { return Ok(()) };
        let attached = place.attached;
        let mut gone = Vec::new();
        for (which, drawing) in place.drawings.iter_mut().enumerate() {
            if attached != Attached::Drawing(which) {
                gone.extend(drawing.take().map(|drawing| drawing.id));
            }
        }
        gone.into_iter().for_each(|id| self.request(id, "destroy", vec![]));
        Ok(())
    }

    pub(super) fn unmap(&mut self, at: usize) -> Step {
        let Some(place) = &self.places[at] else { return Ok(()) };
        if place.role == Role::Spent || place.is_window() && !place.mapped || self.is_lost(at) {
            return Ok(());
        }
        let (id, attached) = (place.id, place.attached);
        for popup in self.popups_above(at) {
            self.end(popup);
        }
        self.acknowledge(at);
        self.request(id, "attach", vec![Arg::Object(0), Arg::Int(0), Arg::Int(0)]);
        if let Attached::Pixel(buffer) = attached {
            self.request(buffer, "destroy", vec![]);
        }
        if let Some(place) = &mut self.places[at] {
            place.attached = Attached::Nothing;
            place.damage.clear();
            place.shape.size = None;
            place.whole = true;
        }
        self.say_commit(at);
        if let Some(place) = &mut self.places[at] {
            (place.begun, place.configured, place.mapped) = (false, false, false);
            place.serial = None;
        }
        Ok(())
    }

    pub(super) fn state(&mut self, op: &Op) {
        let (Op::Scale(at, _)
        | Op::Transform(at, _)
        | Op::Source(at, _)
        | Op::Destination(at, _)
        | Op::DestroyViewport(at)
        | Op::Opaque(at, _)
        | Op::InputRegion(at, _)
        | Op::Geometry(at, _)
        | Op::Limits(at, _)) = *op
        else {
            return;
        };
        let Some(place) = &mut self.places[at] else { return };
        let id = place.id;
        match *op {
            Op::Scale(_, scale) => {
                place.shape.scale = 1 + i32::from(scale % 3);
                let scale = Arg::Int(place.shape.scale);
                self.request(id, "set_buffer_scale", vec![scale]);
            }
            Op::Transform(_, transform) => {
                place.shape.transform = i32::from(transform % 8);
                let transform = Arg::Int(place.shape.transform);
                self.request(id, "set_buffer_transform", vec![transform]);
            }
            Op::Source(_, rect) => {
                let rect = rect.map(|[x, y, w, h]| [x % 4, y % 4, 1 + w % 4, 1 + h % 4].map(i32::from));
                place.shape.source = rect;
                let viewport = self.viewport(at);
                let args = rect.map_or([-256; 4], |rect| rect.map(|value| value * 256));
                self.request(viewport, "set_source", args.map(Arg::Fixed).into());
            }
            Op::Destination(_, size) => {
                let size = size.map(|(w, h)| (1 + i32::from(w % 30), 1 + i32::from(h % 30)));
                place.shape.destination = size;
                let viewport = self.viewport(at);
                let (width, height) = size.unwrap_or((-1, -1));
                self.request(viewport, "set_destination", vec![Arg::Int(width), Arg::Int(height)]);
            }
            Op::DestroyViewport(_) => {
                if let Some(viewport) = place.viewport.take() {
                    (place.shape.source, place.shape.destination) = (None, None);
                    self.request(viewport, "destroy", vec![]);
                }
            }
            Op::Opaque(_, region) => self.region(id, "set_opaque_region", region),
            Op::InputRegion(_, region) => self.region(id, "set_input_region", region),
            Op::Geometry(_, rect) => {
                if let Role::Toplevel { shell, .. } | Role::Popup { shell, .. } = place.role {
                    let [x, y, w, h] = rect.map(i32::from);
                    let rect = [x, y, 1 + w, 1 + h].map(Arg::Int).into();
                    self.request(shell, "set_window_geometry", rect);
                }
            }
            Op::Limits(_, (width, height)) => {
                if let Role::Toplevel { role, .. } = place.role {
                    let (width, height) = (i32::from(width % 8), i32::from(height % 8));
                    let least = [width, height].map(Arg::Int).into();
                    let most = [width + 8, height + 8].map(Arg::Int).into();
                    self.request(role, "set_min_size", least);
                    self.request(role, "set_max_size", most);
                }
            }
            _ => {}
        }
    }

    pub(super) fn viewport(&mut self, at: usize) -> u32 {
        let Some(place) = &self.places[at] else { return 0 };
        if let Some(viewport) = place.viewport {
            return viewport;
        }
        let args = vec![Arg::Object(place.id)];
        let viewport = self.make(self.globals["wp_viewporter"], "get_viewport", args);
        if let Some(place) = &mut self.places[at] {
            place.viewport = Some(viewport);
        }
        viewport
    }

    pub(super) fn region(&mut self, surface: u32, request: &str, kind: u8) {
        if kind.is_multiple_of(4) {
            return self.request(surface, request, vec![Arg::Object(0)]);
        }
        let region = self.make(self.globals["wl_compositor"], "create_region", vec![]);
        let at = |shift: u32| i32::from(kind >> shift & 7);
        self.request(region, "add", [at(0), at(2), 1 + at(3), 1 + at(5)].map(Arg::Int).into());
        if kind % 4 == 1 {
            self.request(region, "subtract", [at(0), at(2), 1, 1].map(Arg::Int).into());
        }
        self.request(surface, request, vec![Arg::Object(region)]);
        self.request(region, "destroy", vec![]);
    }
}
