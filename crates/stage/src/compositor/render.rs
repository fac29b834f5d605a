//! Composition of surfaces into a picture: positions, transforms, scales, viewports; nearest sampling.
//!
//! Only for screenshots and looks: nothing is drawn until a caller asks.

use wayland_server::protocol::wl_output::Transform;

use super::event::SurfaceId;
use super::geometry::Rect;
use super::state::State;
use super::surface::{Surface, swaps_axes};
use crate::image::Image;

impl State {
    /// The whole output as it would be seen, without the pointer.
    pub(crate) fn compose_output(&self) -> Image {
        let mut canvas = Image::new(self.config.width, self.config.height, self.config.background);
        for window in &self.windows {
            let origin = self.window_origin(*window);
            self.draw_window(&mut canvas, *window, origin);
        }
        if let Some(drag) = &self.data.drag
            && let Some(icon) = drag.icon
        {
            let (x, y) = self.seat.position;
            self.draw_tree(&mut canvas, icon, (x as i32, y as i32));
        }
        canvas
    }

    /// A window or popup, with its subsurfaces, cut to its window geometry, at the output's scale.
    pub(crate) fn compose_window(&self, id: SurfaceId) -> Option<Image> {
        let geometry = self.geometry(id);
        self.compose_part(id, Rect::new(0, 0, geometry.width, geometry.height))
    }

    /// A part of that; it is `part` in the window geometry.
    pub(crate) fn compose_part(&self, id: SurfaceId, part: Rect) -> Option<Image> {
        self.surface(id)?.shown.as_ref()?;
        let geometry = self.geometry(id);
        let scale = self.config.scale;
        let size = (part.width.max(1) as u32 * scale, part.height.max(1) as u32 * scale);
        let mut canvas = Image::new(size.0, size.1, 0);
        self.draw_tree(&mut canvas, id, (-geometry.x - part.x, -geometry.y - part.y));
        Some(canvas)
    }

    /// Where the corner of a window's or popup's geometry is on the output.
    pub(crate) fn window_origin(&self, id: SurfaceId) -> (i32, i32) {
        let Some(xdg) = self.xdg(id) else { return (0, 0) };
        if let Some(toplevel) = xdg.toplevel() {
            return toplevel.position;
        }
        let Some(popup) = xdg.popup() else { return (0, 0) };
        let (x, y) = popup.parent.map_or((0, 0), |parent| self.window_origin(parent));
        (x + popup.rect.x, y + popup.rect.y)
    }

    fn draw_window(&self, canvas: &mut Image, id: SurfaceId, origin: (i32, i32)) {
        let geometry = self.geometry(id);
        self.draw_tree(canvas, id, (origin.0 - geometry.x, origin.1 - geometry.y));
        for popup in self.popups_of(id).into_iter().filter(|popup| self.popup_is_mapped(*popup)) {
            self.draw_window(canvas, popup, self.window_origin(popup));
        }
    }

    fn draw_tree(&self, canvas: &mut Image, id: SurfaceId, origin: (i32, i32)) {
        let Some(surface) = self.surface(id).filter(|surface| surface.shown.is_some()) else { return };
        for child in &surface.stack {
            if *child == id {
                draw_surface(canvas, surface, origin, self.config.scale as i32);
            } else if let Some(sub) = self.surface(*child).and_then(|child| child.subsurface.as_ref()) {
                self.draw_tree(canvas, *child, (origin.0 + sub.position.0, origin.1 + sub.position.1));
            }
        }
    }

    /// The surface under a point of the output that takes input, and the point in its coordinates.
    pub(crate) fn surface_at(&self, x: f64, y: f64) -> Option<(SurfaceId, f64, f64)> {
        self.windows.iter().rev().find_map(|window| self.hit_window(*window, x, y))
    }

    fn hit_window(&self, id: SurfaceId, x: f64, y: f64) -> Option<(SurfaceId, f64, f64)> {
        let popups = self.popups_of(id);
        let mapped = popups.into_iter().rev().filter(|popup| self.popup_is_mapped(*popup));
        if let Some(hit) = mapped.into_iter().find_map(|popup| self.hit_window(popup, x, y)) {
            return Some(hit);
        }
        let (origin, geometry) = (self.window_origin(id), self.geometry(id));
        self.hit_tree(id, x - f64::from(origin.0 - geometry.x), y - f64::from(origin.1 - geometry.y))
    }

    fn hit_tree(&self, id: SurfaceId, x: f64, y: f64) -> Option<(SurfaceId, f64, f64)> {
        let surface = self.surface(id).filter(|surface| surface.shown.is_some())?;
        surface.stack.iter().rev().find_map(|child| {
            if *child == id {
                let (width, height) = surface.size();
                let inside = Rect::new(0, 0, width, height).contains(x, y);
                let wanted = surface.view.input.as_ref().is_none_or(|region| region.contains(x, y));
                return (inside && wanted).then_some((id, x, y));
            }
            let (left, top) = self.surface(*child)?.subsurface.as_ref()?.position;
            self.hit_tree(*child, x - f64::from(left), y - f64::from(top))
        })
    }
}

/// Draws one surface whose corner is at `origin` in logical coordinates.
fn draw_surface(canvas: &mut Image, surface: &Surface, origin: (i32, i32), scale: i32) {
    let Some(content) = &surface.shown else { return };
    let image = &content.image;
    let (width, height) = surface.size();
    let (left, top) = (origin.0 * scale, origin.1 * scale);
    let (out_width, out_height) = (width * scale, height * scale);
    let view = &surface.view;
    let same_size = (out_width, out_height) == (image.width() as i32, image.height() as i32);
    if view.transform == Transform::Normal && view.source.is_none() && same_size {
        canvas.blend(image, left, top);
        return;
    }
    // The shown part, in pixels of the content turned upright.
    let buffer_scale = f64::from(view.scale);
    let upright = if swaps_axes(view.transform) {
        (image.height(), image.width())
    } else {
        (image.width(), image.height())
    };
    let (x0, y0, source_width, source_height) = match view.source {
        Some((x, y, w, h)) => (x * buffer_scale, y * buffer_scale, w * buffer_scale, h * buffer_scale),
        None => (0.0, 0.0, f64::from(upright.0), f64::from(upright.1)),
    };
    let mut drawn = Image::new(out_width.max(0) as u32, out_height.max(0) as u32, 0);
    for y in 0..drawn.height() {
        let v = (y0 + (f64::from(y) + 0.5) * source_height / f64::from(out_height)) as u32;
        for x in 0..drawn.width() {
            let u = (x0 + (f64::from(x) + 0.5) * source_width / f64::from(out_width)) as u32;
            let (column, row) = upright_to_buffer(view.transform, (u, v), upright);
            drawn.set(x, y, image.pixel(column, row).unwrap_or(0));
        }
    }
    canvas.blend(&drawn, left, top);
}

/// The buffer's pixel behind (u, v) of the content turned upright, which is `size` large.
///
/// The transform is what the client did to its content, so this is the same turn again.
fn upright_to_buffer(transform: Transform, (u, v): (u32, u32), size: (u32, u32)) -> (u32, u32) {
    let (right, bottom) = ((size.0 - 1).saturating_sub(u), (size.1 - 1).saturating_sub(v));
    match transform {
        Transform::_90 => (v, right),
        Transform::_180 => (right, bottom),
        Transform::_270 => (bottom, u),
        Transform::Flipped => (right, v),
        Transform::Flipped90 => (v, u),
        Transform::Flipped180 => (u, bottom),
        Transform::Flipped270 => (bottom, right),
        _ => (u, v),
    }
}
