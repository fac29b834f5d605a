//! How far the streams of a connection were read, and how far frames of them were cut.
//!
//! Readers say the one, and who decrypts packets the other. Invariant: a position is never more than what was read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Config;

/// The streams of a connection that have a reader, as many as the application holds.
#[derive(Debug, Default)]
pub(super) struct Readers {
    places: Mutex<HashMap<u64, Arc<Place>>>,
    /// Not all frames of streams were seen.
    blind: AtomicBool,
}

/// Where a reader is in its stream.
#[derive(Debug)]
pub(super) struct Place {
    /// So many bytes were read in order; or [`ANYWHERE`].
    read: AtomicU64,
    /// What comes before that may have been cut, or is short enough for noq to merge it.
    cut: AtomicU64,
}

/// One that reads a stream.
#[derive(Debug)]
pub(super) struct Reader {
    id: u64,
    place: Arc<Place>,
    readers: Arc<Readers>,
}

impl Readers {
    /// A reader of stream `id`, of which `read` bytes were read.
    pub(super) fn add(self: &Arc<Self>, id: u64, read: u64) -> Reader {
        // What came before its reader was cut, and is a window at most.
        let cut = read + u64::from(Config::STREAM_WINDOW_MAX);
        let place = Arc::new(Place { read: AtomicU64::new(read), cut: AtomicU64::new(cut) });
        self.lock().insert(id, Arc::clone(&place));
        Reader { id, place, readers: Arc::clone(self) }
    }

    pub(super) fn find(&self, id: u64) -> Option<Arc<Place>> {
        self.lock().get(&id).cloned()
    }

    /// A frame of any stream may have been cut, or merged.
    pub(super) fn lose_count(&self) {
        self.blind.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Place>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// How many bytes lie between what was read in order and `end`; `None` where the stream is read in any order.
    pub(super) fn distance(&self, end: u64) -> Option<u64> {
        let read = self.read.load(Ordering::Relaxed);
        (read != ANYWHERE).then(|| end.saturating_sub(read))
    }

    /// A frame that ends there is cut, or short.
    pub(super) fn cut(&self, end: u64) {
        self.cut.fetch_max(end, Ordering::Relaxed);
    }
}

impl Reader {
    /// So many bytes more were read.
    pub(super) fn read(&self, bytes: u64) {
        self.place.read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// From now on it reads in any order.
    pub(super) fn leave_order(&self) {
        self.place.read.store(ANYWHERE, Ordering::Relaxed);
    }

    /// How many bytes, from what it reads next on, may be in pieces that noq has merged.
    pub(super) fn merged(&self) -> u64 {
        if self.readers.blind.load(Ordering::Relaxed) {
            return u64::MAX;
        }
        self.place.cut.load(Ordering::Relaxed).saturating_sub(self.place.read.load(Ordering::Relaxed))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut readers = self.readers.lock();
        // A stream that went with early data in vain has a successor with its number.
        if readers.get(&self.id).is_some_and(|place| Arc::ptr_eq(place, &self.place)) {
            readers.remove(&self.id);
        }
    }
}

/// No position: streams are shorter (RFC 9000 §4.5).
const ANYWHERE: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = Config::STREAM_WINDOW_MAX as u64;

    #[test]
    fn a_stream_has_a_place_while_it_has_a_reader() {
        let readers = Arc::new(Readers::default());
        let distance = |end| readers.find(4).map(|place| place.distance(end));
        assert_eq!(distance(20), None);
        let reader = readers.add(4, 10);
        reader.read(5);
        assert_eq!((distance(20), distance(3)), (Some(Some(5)), Some(Some(0))));
        let successor = readers.add(4, 0);
        drop(reader);
        assert_eq!(distance(20), Some(Some(20)));
        successor.leave_order();
        assert_eq!(distance(20), Some(None));
        drop(successor);
        assert_eq!(distance(20), None);
    }

    #[test]
    fn what_was_cut_may_be_merged_until_it_was_read() {
        let readers = Arc::new(Readers::default());
        let reader = readers.add(4, 10);
        assert_eq!(reader.merged(), WINDOW, "it came before the reader");
        reader.read(WINDOW);
        assert_eq!(reader.merged(), 0);
        readers.find(4).expect("its place").cut(WINDOW + 30);
        assert_eq!(reader.merged(), 20);
        reader.read(21);
        assert_eq!(reader.merged(), 0);
    }
}
