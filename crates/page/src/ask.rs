//! What the app side asks for, once it is known to be sound.
//!
//! An [`Ask`] names surfaces, not the objects that stand for their roles, so carrying one out needs no look at objects
//! and cannot fail. Invariant: all that it names has been made.

use wayferry_message::{UnitContent, WireId};

/// One thing that is to be done to a surface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    /// It has been made.
    Create(WireId),
    /// It ends.
    Destroy(WireId),
    /// It is a window; configures are said to this `xdg_surface`.
    BeWindow {
        surface: WireId,
        xdg_surface: WireId,
    },
    /// It is no window any more.
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
    /// A part of its next commit.
    Change {
        surface: WireId,
        change: Change,
    },
    /// It was heard and changes nothing that is to be seen.
    Nothing,
}

/// What a commit changes beside the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
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
