//! What is to be shown at the desk, as the loop and the desk's thread share it.
//!
//! The newest of each place stands here. Invariant: no lock is held while anything is waited for but a change.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wayferry_proto::{TrayItem, TrayMenu};

use crate::tray::names::MAX_ITEMS;

/// What is to be shown, and what the thread has not looked at.
#[derive(Debug, Default)]
pub(in crate::tray) struct Board {
    notes: Mutex<Notes>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Notes {
    places: [Change; MAX_ITEMS],
    /// The watcher may be another one.
    is_moved: bool,
    /// The display is over.
    is_over: bool,
}

/// What is new in a place.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::tray) struct Change {
    /// What was there is not any more.
    pub(in crate::tray) is_cleared: bool,
    pub(in crate::tray) item: Option<TrayItem>,
    pub(in crate::tray) menu: Option<TrayMenu>,
}

/// What the thread is to do.
pub(super) struct Work {
    pub(super) is_moved: bool,
    pub(super) is_over: bool,
    pub(super) changes: [Change; MAX_ITEMS],
}

impl Board {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, what: impl FnOnce(&mut Notes)) {
        what(&mut self.notes());
        self.changed.notify_one();
    }

    /// This is shown there now.
    pub(in crate::tray) fn put(&self, at: usize, item: TrayItem) {
        self.note(|notes| notes.places[at].item = Some(item));
    }

    /// Its menu is so now.
    pub(in crate::tray) fn put_menu(&self, at: usize, menu: TrayMenu) {
        self.note(|notes| notes.places[at].menu = Some(menu));
    }

    /// Nothing is shown there.
    pub(in crate::tray) fn clear(&self, at: usize) {
        self.note(|notes| notes.places[at] = Change { is_cleared: true, ..Change::default() });
    }

    /// The watcher may be another one.
    pub(super) fn moved(&self) {
        self.note(|notes| notes.is_moved = true);
    }

    /// The display is over.
    pub(in crate::tray) fn end(&self) {
        self.note(|notes| notes.is_over = true);
    }

    /// Waits for something to do, no longer than this.
    pub(super) fn wait(&self, at_most: Duration) -> Work {
        let nothing = |notes: &mut Notes| {
            !notes.is_moved
                && !notes.is_over
                && notes.places.iter().all(|change| *change == Change::default())
        };
        let waited = self.changed.wait_timeout_while(self.notes(), at_most, nothing);
        let (mut notes, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let changes = std::mem::take(&mut notes.places);
        Work { is_moved: std::mem::take(&mut notes.is_moved), is_over: notes.is_over, changes }
    }

    #[cfg(test)]
    pub(in crate::tray) fn take(&self) -> [Change; MAX_ITEMS] {
        self.wait(Duration::ZERO).changes
    }
}
