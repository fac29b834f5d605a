//! `xdg_positioner`: where a popup goes.

use std::sync::{Arc, Mutex};

use wayland_protocols::xdg::shell::server::xdg_positioner::{
    self, Anchor, ConstraintAdjustment, Gravity, XdgPositioner,
};
use wayland_server::{Client, DataInit, Dispatch, DisplayHandle, Resource, WEnum};

use super::geometry::Rect;
use super::state::State;

/// The rules of one popup's placement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Positioner {
    size: (i32, i32),
    anchor_rect: Rect,
    anchor: (i32, i32),
    gravity: (i32, i32),
    adjust: ConstraintAdjustment,
    offset: (i32, i32),
}

/// The rules behind an `xdg_positioner`.
pub(crate) type Shared = Arc<Mutex<Positioner>>;

impl Positioner {
    /// Whether size and anchor rectangle were set, as they must.
    pub(crate) fn is_complete(&self) -> bool {
        self.size.0 > 0 && self.size.1 > 0 && self.anchor_rect.width >= 0
    }

    /// The popup's rectangle relative to its parent, kept inside `bounds` as far as the rules allow.
    pub(crate) fn place(&self, bounds: Rect) -> Rect {
        let (x, width) = self.axis(
            (self.anchor_rect.x, self.anchor_rect.width),
            (self.anchor.0, self.gravity.0),
            (self.offset.0, self.size.0),
            (bounds.x, bounds.width),
            [ConstraintAdjustment::FlipX, ConstraintAdjustment::SlideX, ConstraintAdjustment::ResizeX],
        );
        let (y, height) = self.axis(
            (self.anchor_rect.y, self.anchor_rect.height),
            (self.anchor.1, self.gravity.1),
            (self.offset.1, self.size.1),
            (bounds.y, bounds.height),
            [ConstraintAdjustment::FlipY, ConstraintAdjustment::SlideY, ConstraintAdjustment::ResizeY],
        );
        Rect::new(x, y, width, height)
    }

    fn axis(
        &self,
        rect: (i32, i32),
        (anchor, gravity): (i32, i32),
        (offset, size): (i32, i32),
        bounds: (i32, i32),
        [flip, slide, resize]: [ConstraintAdjustment; 3],
    ) -> (i32, i32) {
        let place = |anchor: i32, gravity: i32, offset: i32| {
            rect.0 + rect.1 * (anchor + 1) / 2 + size * (gravity - 1) / 2 + offset
        };
        let fits = |at: i32| at >= bounds.0 && at + size <= bounds.0 + bounds.1;
        let at = place(anchor, gravity, offset);
        if fits(at) {
            return (at, size);
        }
        let flipped = place(-anchor, -gravity, -offset);
        if self.adjust.contains(flip) && fits(flipped) {
            return (flipped, size);
        }
        if self.adjust.contains(slide) {
            return (at.min(bounds.0 + bounds.1 - size).max(bounds.0), size);
        }
        if self.adjust.contains(resize) {
            let start = at.max(bounds.0);
            let end = (at + size).min(bounds.0 + bounds.1);
            if end > start {
                return (start, end - start);
            }
        }
        (at, size)
    }
}

impl Default for Positioner {
    fn default() -> Positioner {
        Positioner {
            size: (0, 0),
            anchor_rect: Rect::new(0, 0, -1, -1),
            anchor: (0, 0),
            gravity: (0, 0),
            adjust: ConstraintAdjustment::None,
            offset: (0, 0),
        }
    }
}

impl Dispatch<XdgPositioner, Shared> for State {
    fn request(
        _: &mut State,
        _: &Client,
        resource: &XdgPositioner,
        request: xdg_positioner::Request,
        shared: &Shared,
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        let mut rules = shared.lock().expect("no thread panics with it");
        match request {
            xdg_positioner::Request::SetSize { width, height } if width > 0 && height > 0 => {
                rules.size = (width, height);
            }
            xdg_positioner::Request::SetSize { width, height } => {
                let message = format!("size {width} × {height}");
                resource.post_error(xdg_positioner::Error::InvalidInput, message);
            }
            xdg_positioner::Request::SetAnchorRect { x, y, width, height } if width >= 0 && height >= 0 => {
                rules.anchor_rect = Rect::new(x, y, width, height);
            }
            xdg_positioner::Request::SetAnchorRect { width, height, .. } => {
                let message = format!("anchor rectangle of {width} × {height}");
                resource.post_error(xdg_positioner::Error::InvalidInput, message);
            }
            xdg_positioner::Request::SetAnchor { anchor: WEnum::Value(anchor) } => {
                rules.anchor = anchor_axes(anchor);
            }
            xdg_positioner::Request::SetGravity { gravity: WEnum::Value(gravity) } => {
                rules.gravity = gravity_axes(gravity);
            }
            xdg_positioner::Request::SetConstraintAdjustment { constraint_adjustment } => {
                rules.adjust = match constraint_adjustment {
                    WEnum::Value(adjust) => adjust,
                    WEnum::Unknown(bits) => ConstraintAdjustment::from_bits_truncate(bits),
                };
            }
            xdg_positioner::Request::SetOffset { x, y } => rules.offset = (x, y),
            _ => {}
        }
    }
}

fn anchor_axes(anchor: Anchor) -> (i32, i32) {
    match anchor {
        Anchor::Top => (0, -1),
        Anchor::Bottom => (0, 1),
        Anchor::Left => (-1, 0),
        Anchor::Right => (1, 0),
        Anchor::TopLeft => (-1, -1),
        Anchor::BottomLeft => (-1, 1),
        Anchor::TopRight => (1, -1),
        Anchor::BottomRight => (1, 1),
        _ => (0, 0),
    }
}

fn gravity_axes(gravity: Gravity) -> (i32, i32) {
    match gravity {
        Gravity::Top => (0, -1),
        Gravity::Bottom => (0, 1),
        Gravity::Left => (-1, 0),
        Gravity::Right => (1, 0),
        Gravity::TopLeft => (-1, -1),
        Gravity::BottomLeft => (-1, 1),
        Gravity::TopRight => (1, -1),
        Gravity::BottomRight => (1, 1),
        _ => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu(adjust: ConstraintAdjustment) -> Positioner {
        Positioner {
            size: (50, 40),
            anchor_rect: Rect::new(10, 10, 20, 10),
            anchor: (-1, 1),
            gravity: (1, 1),
            adjust,
            offset: (0, 2),
        }
    }

    #[test]
    fn below_the_left_edge_of_its_anchor() {
        let rect = menu(ConstraintAdjustment::None).place(Rect::new(0, 0, 200, 200));
        assert_eq!(rect, Rect::new(10, 22, 50, 40));
    }

    #[test]
    fn flips_before_it_slides() {
        let adjust = ConstraintAdjustment::FlipY | ConstraintAdjustment::SlideY;
        let flips = menu(adjust).place(Rect::new(0, -60, 200, 90));
        assert_eq!(flips, Rect::new(10, -32, 50, 40));
        let slides = menu(adjust).place(Rect::new(0, 0, 200, 50));
        assert_eq!(slides, Rect::new(10, 10, 50, 40));
    }
}
