//! How a thread tells the loop something.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// Says something to the loop, and wakes it.
#[derive(Debug)]
pub(super) struct Teller<T> {
    said: SyncSender<T>,
    wake: Arc<OwnedFd>,
}

impl<T> Teller<T> {
    pub(super) fn new(said: SyncSender<T>, wake: Arc<OwnedFd>) -> Self {
        Self { said, wake }
    }

    /// Waits while the loop has much to look at; `None` once it is gone.
    pub(super) fn say(&self, said: T) -> Option<()> {
        self.said.send(said).ok()?;
        self.wake();
        Some(())
    }

    /// Not if the loop has much to look at.
    pub(super) fn try_say(&self, said: T) {
        if self.said.try_send(said).is_ok() {
            self.wake();
        }
    }

    fn wake(&self) {
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }
}

impl<T> Clone for Teller<T> {
    fn clone(&self) -> Self {
        Self { said: self.said.clone(), wake: Arc::clone(&self.wake) }
    }
}
