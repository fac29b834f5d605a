//! A rectangle of a buffer, compared with a content where it lies, by one thread or several.
//!
//! Copies nothing and changes nothing. Invariant: what is found for a row does not depend on the number of threads, as
//! long as the program lets its memory alone.

use std::ops::Range;
use std::sync::atomic::AtomicU8;
use std::sync::{Mutex, PoisonError};

use crate::content::{Content, Layout};
use crate::geometry::Rect;
use crate::shared;

/// See the module.
pub(crate) struct InPlace<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) memory: &'a [AtomicU8],
    pub(crate) rect: Rect,
    /// Bytes per pixel.
    pub(crate) pixel: usize,
}

impl<'a> InPlace<'a> {
    /// Where in the memory row `y` begins.
    pub(crate) fn start(&self, y: u32) -> usize {
        self.layout.row(y) as usize + self.rect.x as usize * self.pixel
    }

    /// Row `y`.
    pub(crate) fn row(&self, y: u32) -> &'a [AtomicU8] {
        &self.memory[self.start(y)..][..self.rect.width as usize * self.pixel]
    }

    /// The bytes of row `y` from the first that are not as in the content to the last.
    pub(crate) fn differing(&self, old: &Content, y: u32) -> Option<Range<usize>> {
        shared::differing(self.row(y), old.row(y, self.rect.x, self.rect.width), self.pixel)
    }

    /// The same of each row, if that is worth a thread more, else nothing.
    pub(crate) fn differing_by_threads(&self, old: &Content, threads: usize) -> Vec<Option<Range<usize>>> {
        let bytes = self.rect.area() as usize * self.pixel;
        let threads = threads.min(bytes / WORTH_A_THREAD);
        if threads < 2 {
            return Vec::new();
        }
        let mut found = vec![None; self.rect.height as usize];
        let tops = (self.rect.y..).step_by(ROWS_AT_ONCE);
        let parts = Mutex::new(found.chunks_mut(ROWS_AT_ONCE).zip(tops));
        let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
        let look = || {
            while let Some((rows, top)) = next() {
                (top..).zip(rows).for_each(|(y, found)| *found = self.differing(old, y));
            }
        };
        std::thread::scope(|scope| {
            for index in 1..threads {
                let named = std::thread::Builder::new().name(format!("compare {index}"));
                // Where the system has no thread to give, the others do its work.
                let _ = named.spawn_scoped(scope, look);
            }
            look();
        });
        found
    }
}

/// Bytes that a thread compares in about half a millisecond: several times what it takes to have one.
const WORTH_A_THREAD: usize = 8 << 20;

/// Rows that a thread takes at a time.
const ROWS_AT_ONCE: usize = 64;
