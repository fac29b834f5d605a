//! What woke: tokens behind one file descriptor.
//!
//! A run loop that owns many things which may have to wait gives each a [`Token`] and polls it with the token's waker;
//! then it waits for the fd, and [drains](Ready::drain) the tokens to poll again. Wakers run on any thread and do no
//! more than that. Invariant: a token is in the list at most once, and the fd is readable while the list holds
//! anything.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::lease::Lease;
use crate::watch::Watch;

/// A name for something that may have to wait; never used twice by one [`Ready`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// Tokens whose wakers fired, and an fd that is readable while there are any, or may be: a loop that has little to do
/// reads the sockets of its endpoints itself, when it drains.
#[derive(Debug)]
pub struct Ready {
    list: Mutex<List>,
    watch: Arc<Watch>,
    next: AtomicU64,
    lease: Arc<Lease>,
}

#[derive(Debug, Default)]
struct List {
    fired: Vec<Arc<Entry>>,
    /// The thread that drains is about to take them.
    draining: bool,
    raised: bool,
    closed: bool,
}

/// What one waker and its clones share.
#[derive(Debug)]
struct Entry {
    token: Token,
    listed: AtomicBool,
    ready: Arc<Ready>,
}

impl Ready {
    /// An empty list.
    ///
    /// # Errors
    /// The process has no file descriptors left.
    pub fn new() -> io::Result<Arc<Self>> {
        let watch = Arc::new(Watch::new()?);
        let lease = Arc::new(Lease::new(Arc::clone(&watch)));
        Ok(Arc::new(Self { list: Mutex::default(), watch, next: AtomicU64::new(1), lease }))
    }

    /// A fresh token.
    pub fn token(&self) -> Token {
        Token(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// A waker that puts `token` on the list. Make it once, and clone it: clones know that the token is listed already.
    pub fn waker(self: &Arc<Self>, token: Token) -> Waker {
        let entry = Entry { token, listed: AtomicBool::new(false), ready: Arc::clone(self) };
        Arc::new(entry).into()
    }

    /// Reads the sockets that are this loop's to read, and moves all tokens to the end of `into`, in the order in which
    /// they woke; there may be none. The fd is readable from now on only if more comes.
    pub fn drain(&self, into: &mut Vec<Token>) {
        self.lock().draining = true;
        self.lease.turn();
        let mut list = self.lock();
        list.draining = false;
        // A list that was closed stays readable.
        if list.raised && !list.closed {
            list.raised = false;
            self.watch.wake().lower();
        }
        for entry in list.fired.drain(..) {
            entry.listed.store(false, Ordering::Release);
            into.push(entry.token);
        }
    }

    /// Waits until there is something to drain, at most `timeout`; whether there is.
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        poll(&mut [PollFd::new(&*self.watch, PollFlags::IN)], timeout.as_ref()).is_ok_and(|count| count > 0)
    }

    /// Ends the list: wakers do nothing from now on, and a caller in [`Ready::wait`] returns.
    pub fn close(&self) {
        self.lease.end();
        let mut list = self.lock();
        list.closed = true;
        list.fired.clear();
        self.watch.wake().raise();
    }

    pub(super) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sockets go back to the engine.
impl Drop for Ready {
    fn drop(&mut self) {
        self.lease.end();
    }
}

impl AsFd for Ready {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}

impl std::task::Wake for Entry {
    fn wake(self: Arc<Self>) {
        if self.listed.swap(true, Ordering::AcqRel) {
            return;
        }
        let ready = Arc::clone(&self.ready);
        let mut list = ready.lock();
        if list.closed {
            return;
        }
        list.fired.push(self);
        if !list.draining && !list.raised {
            list.raised = true;
            ready.watch.wake().raise();
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.listed.load(Ordering::Acquire) {
            Arc::clone(self).wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(ready: &Ready) -> Vec<u64> {
        let mut tokens = Vec::new();
        ready.drain(&mut tokens);
        tokens.into_iter().map(|token| token.0).collect()
    }

    #[test]
    fn a_token_is_listed_once_until_it_is_drained() {
        let ready = Ready::new().unwrap();
        let (one, two) = (ready.token(), ready.token());
        let (first, second) = (ready.waker(one), ready.waker(two));
        let again = first.clone();
        assert!(!ready.wait(Some(Duration::ZERO)));
        first.wake_by_ref();
        again.wake();
        second.wake_by_ref();
        first.wake_by_ref();
        assert!(ready.wait(Some(Duration::ZERO)));
        assert_eq!(drained(&ready), [one.0, two.0]);
        assert!(!ready.wait(Some(Duration::ZERO)));
        assert!(drained(&ready).is_empty());
        first.wake();
        assert!(ready.wait(None));
        assert_eq!(drained(&ready), [one.0]);
    }

    #[test]
    fn a_closed_list_stays_empty_and_lets_go_of_its_wakers() {
        let ready = Ready::new().unwrap();
        let waker = ready.waker(ready.token());
        waker.wake_by_ref();
        ready.close();
        assert!(ready.wait(None));
        waker.wake();
        assert!(drained(&ready).is_empty());
        assert!(ready.wait(None), "one that waits would sleep on");
        assert_eq!(Arc::strong_count(&ready), 1);
    }
}
