//! What there is to be seen of a program, for the caller that paints it.
//!
//! A scene borrows from its program and is made anew each time: it is small beside the pixels. Invariant: what is in it
//! has content, as all that it is inside has.

use wayferry_message::{MAX_UNIT_DEPTH, WireId};
use wayferry_pixels::Content;

use crate::shape::Shape;
use crate::windows::{Toplevel, Windows};

/// One window.
#[derive(Debug)]
pub struct Window<'a> {
    /// What the program calls it; nothing if it has no name.
    pub title: &'a str,
    /// What kind of program it is of.
    pub app_id: &'a str,
    /// The surface of the window that it belongs to, if that shows something.
    pub parent: Option<WireId>,
    /// The window inside its surface, in units of that: x, y, width, height. What is outside is shadow.
    pub geometry: [i32; 4],
    /// Its surface, with all that is inside.
    pub root: Node<'a>,
}

/// A surface in its place.
#[derive(Debug)]
pub struct Node<'a> {
    /// Its name, which no other surface of the program ever has.
    pub surface: WireId,
    /// Where it is inside the surface above it, in units of that.
    pub at: (i32, i32),
    /// How its content is shown.
    pub shape: Shape,
    /// Its pixels.
    pub content: &'a Content,
    /// What is to be painted of it, the lowest first; it is one of them.
    pub inside: Vec<Inside<'a>>,
}

/// A part of what a surface shows.
#[derive(Debug)]
pub enum Inside<'a> {
    /// Its own pixels.
    Itself,
    /// Another surface.
    Child(Node<'a>),
}

impl<'a> Window<'a> {
    /// The windows that show something, the oldest first.
    pub(crate) fn all(windows: &'a Windows) -> impl Iterator<Item = Self> {
        windows.toplevels().filter_map(|(surface, window)| Self::of(windows, surface, window))
    }

    /// The window of that surface.
    pub(crate) fn at(windows: &'a Windows, surface: WireId) -> Option<Self> {
        Self::of(windows, surface, windows.toplevel(surface)?)
    }

    fn of(windows: &'a Windows, surface: WireId, window: &'a Toplevel) -> Option<Self> {
        let root = Node::of(windows, surface, (0, 0), 0)?;
        let (width, height) = root.shape.size(root.content.size());
        let geometry = window.geometry.unwrap_or([0, 0, width, height]);
        let is_shown = |parent: &WireId| {
            windows.toplevel(*parent).is_some()
                && windows.surface(*parent).is_some_and(|surface| surface.content().is_some())
        };
        let parent = window.parent.filter(is_shown);
        Some(Self { title: &window.title, app_id: &window.app_id, parent, geometry, root })
    }
}

impl<'a> Node<'a> {
    /// Surfaces are in each other only as deep as units are, for which those see that read what is said; what were
    /// deeper than that would not be seen, so that nothing they overlook can exhaust the stack.
    fn of(windows: &'a Windows, id: WireId, at: (i32, i32), depth: usize) -> Option<Self> {
        if depth > MAX_UNIT_DEPTH {
            return None;
        }
        let surface = windows.surface(id)?;
        let content = surface.content()?;
        let inside = surface.order.iter().filter_map(|child| match *child == id {
            true => Some(Inside::Itself),
            false => {
                let at = windows.surface(*child)?.at;
                Self::of(windows, *child, at, depth + 1).map(Inside::Child)
            }
        });
        // Popups are above all else.
        let popups = surface.popups.iter().filter_map(|popup| {
            let opened = windows.popup(*popup).filter(|opened| !opened.is_done)?;
            Self::of(windows, *popup, windows.popup_at(opened), depth + 1).map(Inside::Child)
        });
        let inside = inside.chain(popups).collect();
        Some(Self { surface: id, at, shape: surface.shape, content, inside })
    }

    /// A surface by itself, such as that of a cursor.
    pub(crate) fn alone(windows: &'a Windows, id: WireId) -> Option<Self> {
        Self::of(windows, id, (0, 0), 0)
    }
}
