//! What the app side asks for, once it is known to be sound.
//!
//! An [`Ask`] names surfaces, not the objects that stand for their roles, so carrying one out needs no look at objects
//! and cannot fail. Invariant: all that it names has been made.

use std::rc::Rc;

use wayferry_message::value::{Positioner, RegionOp};
use wayferry_message::{UnitContent, WireId};

use crate::share::Lease;

/// One thing that is to be done to a surface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    /// It has been made.
    Create(WireId),
    /// It ends.
    Destroy(WireId),
    /// It is a window; configures are said to these.
    BeWindow {
        surface: WireId,
        xdg_surface: WireId,
        toplevel: WireId,
    },
    /// It is a popup.
    BePopup(Box<Popup>),
    /// It is no window or popup any more.
    LeaveScreen(WireId),
    /// It is inside another one.
    Adopt {
        child: WireId,
        parent: WireId,
    },
    /// It is inside no other any more.
    Orphan(WireId),
    Title {
        surface: WireId,
        title: String,
    },
    AppId {
        surface: WireId,
        app_id: String,
    },
    /// The window that it belongs to, if any.
    Belong {
        surface: WireId,
        to: Option<WireId>,
    },
    /// A window wants another state, of which full screen is the only one that a page has; it is answered anyway.
    Wish {
        surface: WireId,
        fullscreen: Option<bool>,
    },
    /// A popup is to be somewhere else.
    Reposition {
        surface: WireId,
        rules: Box<Positioner>,
        token: u32,
    },
    /// A popup has the keyboard until it ends.
    Grab(WireId),
    /// What is said of a surface inside another one waits for that one, or does not.
    Synchronise {
        child: WireId,
        waits: bool,
    },
    /// What the pointer looks like.
    Point(Pointing),
    /// An object of a window that is to be told that the page decorates it.
    Decorate {
        surface: WireId,
        decoration: WireId,
    },
    /// An object that is to be told the scale, and that one is not any more.
    Scale(WireId),
    Unscale(WireId),
    /// Its next commit shows all of its pixels in their own size.
    Uncrop(WireId),
    /// A callback that is answered when all before it is done.
    Answer(WireId),
    /// After that an object is gone.
    End {
        object: WireId,
        after: Box<Ask>,
    },
    /// A part of its next commit.
    Change {
        surface: WireId,
        change: Change,
    },
    /// It is about the clipboard, which all programs have together.
    Clip(Clipping),
    /// It was heard and changes nothing that is to be seen.
    Nothing,
}

/// What a program does with the clipboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Clipping {
    /// It listens with that.
    Device(WireId),
    /// What the source offers is the selection, or there is none, by the event with that serial.
    Select { source: Option<WireId>, serial: u32 },
    /// A source cannot have what it was made for.
    Refuse(WireId),
    /// A source has ended.
    Gone(WireId),
    /// Bytes of that selection are to go through a pipe.
    Receive { selection: u64, kind: Vec<u8>, pipe: u64 },
}

/// A popup, as its program asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Popup {
    pub(crate) surface: WireId,
    pub(crate) xdg_surface: WireId,
    pub(crate) popup: WireId,
    /// The surface of what it belongs to.
    pub(crate) parent: Option<WireId>,
    pub(crate) rules: Positioner,
}

/// What a pointer looks like inside a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pointing {
    /// As it does anywhere; the program has not said.
    #[default]
    Default,
    Hidden,
    /// As a surface, with that point of it where the pointer is.
    Surface(WireId, (i32, i32)),
    /// As style sheets name it.
    Named(&'static str),
}

/// The part of a surface that takes the pointer; its operations in order.
#[derive(Debug, Clone)]
pub(crate) struct InputRegion {
    ops: Rc<[RegionOp]>,
    _lease: Rc<Lease>,
}

impl InputRegion {
    pub(crate) fn new(ops: &[RegionOp], lease: Lease) -> Self {
        Self { ops: ops.into(), _lease: Rc::new(lease) }
    }

    /// Whether a point is in it.
    pub(crate) fn has(&self, x: f64, y: f64) -> bool {
        let covers = |&(left, top, width, height): &(i32, i32, i32, i32)| {
            let (left, top) = (f64::from(left), f64::from(top));
            x >= left && y >= top && x < left + f64::from(width) && y < top + f64::from(height)
        };
        // The last operation that has the point decides.
        let last = self.ops.iter().rev().find_map(|op| match *op {
            RegionOp::Add(x, y, width, height) => covers(&(x, y, width, height)).then_some(true),
            RegionOp::Subtract(x, y, width, height) => covers(&(x, y, width, height)).then_some(false),
        });
        last.unwrap_or(false)
    }
}

impl PartialEq for InputRegion {
    fn eq(&self, other: &Self) -> bool {
        self.ops == other.ops
    }
}

impl Eq for InputRegion {}

/// What a commit changes beside the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Where it takes the pointer; all of it without.
    Input(Option<InputRegion>),
    /// Where the window is inside the surface.
    Geometry([i32; 4]),
    Scale(i32),
    Transform(u8),
    Crop(Option<[i32; 4]>),
    Destination(Option<(i32, i32)>),
    /// Where it is inside its parent.
    Position((i32, i32)),
    /// It goes right above or below that one, its parent or another child of that.
    Stack {
        sibling: WireId,
        above: bool,
    },
}

/// A unit, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) surface: WireId,
    pub(crate) number: u64,
    pub(crate) asks: Vec<Ask>,
    pub(crate) content: UnitContent,
    /// When it is shown is asked for.
    pub(crate) feedback: bool,
    /// Those of surfaces inside, done before it.
    pub(crate) children: Vec<Commit>,
}

impl Commit {
    /// It and all inside it.
    pub(crate) fn each(&self, look: &mut impl FnMut(&Self)) {
        look(self);
        self.children.iter().for_each(|child| child.each(look));
    }

    /// Bytes that it takes beside itself.
    pub(crate) fn memory(&self) -> usize {
        let lists = self.asks.capacity() * size_of::<Ask>() + self.children.capacity() * size_of::<Self>();
        lists + self.children.iter().map(Self::memory).sum::<usize>()
    }
}
