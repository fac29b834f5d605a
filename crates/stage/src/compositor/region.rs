//! `wl_region` as the list of its operations: enough to answer whether a point is inside.

use std::sync::{Arc, Mutex};

use wayland_server::Resource;
use wayland_server::protocol::wl_region::WlRegion;

use super::geometry::Rect;

/// A region; the last operation that covers a point decides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Region {
    operations: Vec<(Rect, bool)>,
}

/// The region behind a `wl_region`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Mutex<Region>>);

impl Region {
    pub(crate) fn contains(&self, x: f64, y: f64) -> bool {
        self.operations.iter().rev().find(|(rect, _)| rect.contains(x, y)).is_some_and(|(_, added)| *added)
    }
}

impl Shared {
    pub(crate) fn add(&self, rect: Rect, added: bool) {
        let mut region = self.0.lock().expect("no thread panics with it");
        if region.operations.len() < OPERATIONS {
            region.operations.push((rect, added));
        }
    }
}

pub(crate) fn region_of(resource: &WlRegion) -> Option<Region> {
    resource.data::<Shared>().map(|shared| shared.0.lock().expect("no thread panics with it").clone())
}

/// A client that wants a finer region than this gets a coarser one.
const OPERATIONS: usize = 1024;
