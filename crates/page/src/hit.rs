//! Which surface of a window is under the pointer.
//!
//! Looks at a scene from its top down. Invariant: a surface is hit only where it is, and takes the pointer.

use wayferry_message::WireId;

use crate::scene::{Inside, Node, Window};
use crate::windows::Windows;

/// A point in units, from the corner of a window's geometry or of a surface.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

impl Point {
    fn plus(self, x: i32, y: i32) -> Self {
        Self { x: self.x + f64::from(x), y: self.y + f64::from(y) }
    }

    fn minus(self, x: i32, y: i32) -> Self {
        Self { x: self.x - f64::from(x), y: self.y - f64::from(y) }
    }
}

/// The surface at a point of a window, and where in it.
pub(crate) fn hit(windows: &Windows, window: &Window<'_>, point: Point) -> Option<(WireId, Point)> {
    let [left, top, ..] = window.geometry;
    hit_node(windows, &window.root, point.plus(left, top))
}

fn hit_node(windows: &Windows, node: &Node<'_>, point: Point) -> Option<(WireId, Point)> {
    node.inside.iter().rev().find_map(|inside| match inside {
        Inside::Itself => takes(windows, node, point).then_some((node.surface, point)),
        Inside::Child(child) => {
            let (x, y) = child.at;
            hit_node(windows, child, point.minus(x, y))
        }
    })
}

fn takes(windows: &Windows, node: &Node<'_>, Point { x, y }: Point) -> bool {
    let (width, height) = node.shape.size(node.content.size());
    let is_in = x >= 0.0 && y >= 0.0 && x < f64::from(width) && y < f64::from(height);
    let region = windows.surface(node.surface).and_then(|surface| surface.input.as_ref());
    is_in && region.is_none_or(|region| region.has(x, y))
}

/// Where a point of a window is in a surface of it.
pub(crate) fn inside(window: &Window<'_>, surface: WireId, point: Point) -> Option<Point> {
    let [left, top, ..] = window.geometry;
    inside_node(&window.root, surface, point.plus(left, top))
}

fn inside_node(node: &Node<'_>, surface: WireId, point: Point) -> Option<Point> {
    if node.surface == surface {
        return Some(point);
    }
    node.inside.iter().find_map(|inside| match inside {
        Inside::Itself => None,
        Inside::Child(child) => inside_node(child, surface, point.minus(child.at.0, child.at.1)),
    })
}
