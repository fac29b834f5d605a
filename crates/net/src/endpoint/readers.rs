//! How far the streams of a connection were read.
//!
//! Readers say it, and who decrypts packets asks. Invariant: a position is never more than what was read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The streams that are read in order, and the position of each.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<HashMap<u64, Arc<AtomicU64>>>);

/// One that reads a stream.
#[derive(Debug)]
pub(super) struct Reader {
    id: u64,
    position: Arc<AtomicU64>,
    readers: Arc<Readers>,
}

impl Readers {
    /// A reader of stream `id`, of which `read` bytes were read.
    pub(super) fn add(self: &Arc<Self>, id: u64, read: u64) -> Reader {
        let position = Arc::new(AtomicU64::new(read));
        self.lock().insert(id, Arc::clone(&position));
        Reader { id, position, readers: Arc::clone(self) }
    }

    /// How many bytes of stream `id` were read; `None` while it has no reader.
    pub(super) fn position(&self, id: u64) -> Option<u64> {
        Some(self.lock().get(&id)?.load(Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<AtomicU64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    /// So many bytes more were read.
    pub(super) fn read(&self, bytes: u64) {
        self.position.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut readers = self.readers.lock();
        // A stream that went with early data in vain has a successor with its number.
        if readers.get(&self.id).is_some_and(|position| Arc::ptr_eq(position, &self.position)) {
            readers.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_a_position_while_it_has_a_reader() {
        let readers = Arc::new(Readers::default());
        assert_eq!(readers.position(4), None);
        let reader = readers.add(4, 10);
        reader.read(5);
        assert_eq!((readers.position(4), readers.position(0)), (Some(15), None));
        let successor = readers.add(4, 0);
        drop(reader);
        assert_eq!(readers.position(4), Some(0));
        drop(successor);
        assert_eq!(readers.position(4), None);
    }
}
