//! GPU buffers as a program makes them: the planes that it collects, and what the reader has been asked to import.
//!
//! The program's words are checked in its handler; here is what is kept. Invariant: the reader is told to forget a
//! buffer exactly once, when nothing here may ask for it any more.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use wayferry_gpu::{BufferId, MAX_PLANES, Modifier, Plane, Route};

/// Planes that one program may have open, in parameters and in buffers: a descriptor each. Buffers beyond fail.
pub(crate) const MAX_OPEN_PLANES: usize = 2048;

/// A `zwp_linux_buffer_params_v1`.
#[derive(Debug, Default)]
pub(super) struct Params {
    planes: [Option<Collected>; MAX_PLANES],
    /// There was no room for one of them.
    pub(super) lacks: bool,
    /// They have been made a buffer of.
    pub(super) used: bool,
    /// The buffer that the reader is to import, while it has not answered.
    pub(super) awaits: Option<BufferId>,
}

/// A plane that a buffer may be made of.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) plane: Plane,
    pub(super) modifier: Modifier,
    pub(super) open: Open,
}

impl Params {
    /// Whether there is such a plane already; `None` if there can be none.
    pub(super) fn has(&self, index: u32) -> Option<bool> {
        self.planes.get(index as usize).map(Option::is_some)
    }

    /// Adds a plane.
    pub(super) fn add(&mut self, index: u32, plane: Collected) {
        if let Some(place) = self.planes.get_mut(index as usize) {
            *place = Some(plane);
        }
    }

    /// The planes; `None` if there are none, or if one is missing before the last.
    pub(super) fn take(&mut self) -> Option<Vec<Collected>> {
        let count = self.planes.iter().take_while(|plane| plane.is_some()).count();
        let planes = std::mem::take(&mut self.planes);
        let all: Vec<Collected> = planes.into_iter().flatten().collect();
        (count > 0 && all.len() == count).then_some(all)
    }
}

/// Counts a plane among those that its program has open.
#[derive(Debug, Clone)]
pub(super) struct Open(#[expect(dead_code, reason = "it counts by being there")] Rc<()>);

/// How many planes of a program are open.
#[derive(Debug, Default)]
pub(super) struct Planes(Rc<()>);

impl Planes {
    /// Another one, unless there are too many.
    pub(super) fn open(&self) -> Option<Open> {
        (Rc::strong_count(&self.0) <= MAX_OPEN_PLANES).then(|| Open(Rc::clone(&self.0)))
    }
}

/// Buffers that the reader may forget.
#[derive(Debug, Clone, Default)]
pub(super) struct Gone(Rc<RefCell<Vec<BufferId>>>);

impl Gone {
    /// The next one.
    pub(super) fn next(&self) -> Option<BufferId> {
        self.0.borrow_mut().pop()
    }
}

/// A buffer that the reader has been asked to import.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(super) name: BufferId,
    /// How it is read, once it has been imported.
    route: Cell<Option<Route>>,
    /// The reader could not.
    refused: Cell<bool>,
    /// Nothing but a timeline tells when it has been drawn.
    lacks_fences: bool,
    gone: Gone,
    _open: Vec<Open>,
}

impl Imported {
    pub(super) fn new(name: BufferId, gone: &Gone, open: Vec<Open>, lacks_fences: bool) -> Self {
        Self {
            name,
            route: Cell::new(None),
            refused: Cell::new(false),
            lacks_fences,
            gone: gone.clone(),
            _open: open,
        }
    }

    /// It has been imported.
    pub(super) fn accept(&self, route: Route) {
        self.route.set(Some(route));
    }

    /// How it is read, once it has been imported.
    pub(super) fn route(&self) -> Option<Route> {
        self.route.get()
    }

    /// Whether it must not be read without a point of a timeline: it could be before it is drawn.
    pub(super) fn needs_point(&self) -> bool {
        self.lacks_fences && self.route.get() != Some(Route::Mapped)
    }

    /// The reader could not import it.
    pub(super) fn refuse(&self) {
        self.refused.set(true);
    }

    /// Whether it cannot be read.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.get()
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        self.gone.0.borrow_mut().push(self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane() -> Collected {
        let fd = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("memory");
        let open = Planes::default().open().expect("room");
        Collected { plane: Plane { fd, offset: 0, stride: 4 }, modifier: Modifier::LINEAR, open }
    }

    #[test]
    fn planes_come_in_any_order_and_without_gaps() {
        let mut params = Params::default();
        assert!(params.take().is_none(), "none");
        params.add(1, plane());
        params.add(0, plane());
        assert_eq!((params.has(0), params.has(2), params.has(4)), (Some(true), Some(false), None));
        assert_eq!(params.take().map(|planes| planes.len()), Some(2));
        params.add(0, plane());
        params.add(2, plane());
        assert!(params.take().is_none(), "a gap");
    }

    #[test]
    fn planes_are_counted_while_they_are_open() {
        let planes = Planes::default();
        let mut open: Vec<Open> = (0..MAX_OPEN_PLANES).map(|_| planes.open().expect("room")).collect();
        assert!(planes.open().is_none());
        open.pop();
        assert!(planes.open().is_some());
    }
}
