//! The desk's microphone, while somebody on the other side records.
//!
//! A thread of its own asks the desk's sound server, PulseAudio or PipeWire, for its default source, and encodes what
//! comes. The run loop takes encoded frames from a bounded queue. Invariants: the microphone is open only while it is
//! wanted; the user is told when it is opened and when it is closed; the thread ends with its handle.

mod client;
mod desk;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wayferry_proto::Time;

use crate::link::{Link, Surroundings};
use crate::outbox::{Captured, Outbox, Wanted};
use desk::Desk;

/// What the user should know. Each change is told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heeding {
    /// The microphone is open: what is said here is recorded there.
    Open,
    /// It is not any more.
    Closed,
    /// It is wanted, and cannot be opened, or is lost. It is tried again.
    Failed {
        /// Why.
        why: String,
    },
}

/// See the module. Dropping it closes the microphone.
#[derive(Debug)]
pub struct Microphone {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and its handle share.
#[derive(Debug)]
struct Shared {
    outbox: Outbox,
    notices: Mutex<VecDeque<Heeding>>,
}

impl Microphone {
    /// Starts the thread. Nothing is opened until it is wanted. `name` is what the desk's mixer shows.
    ///
    /// # Errors
    /// The system has no thread or no descriptors left.
    pub fn start(name: &str, now: impl Fn() -> Time + Send + 'static) -> io::Result<Self> {
        Self::start_in(Surroundings::current(), name, now)
    }

    /// As [`start`](Self::start), with the sound server that `surroundings` name.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_in(
        surroundings: Surroundings,
        name: &str,
        now: impl Fn() -> Time + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared { outbox: Outbox::new()?, notices: Mutex::default() });
        let (theirs, desk) = (Arc::clone(&shared), Desk::new(name));
        let run = move || theirs.run(desk, Link::new(surroundings), now);
        let thread = std::thread::Builder::new().name("wayferry-microphone".into()).spawn(run)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// How it is wanted from now on; `None` closes it.
    pub fn want(&self, wanted: Option<Wanted>) {
        self.shared.outbox.want(wanted);
    }

    /// The next that was captured.
    pub fn poll_captured(&self) -> Option<Captured> {
        let captured = self.shared.outbox.poll_captured();
        if captured.is_none() && !self.shared.notices().is_empty() {
            // It came after the run loop had looked.
            self.shared.outbox.wake();
        }
        captured
    }

    /// The next notice, if one waits.
    pub fn poll_notice(&self) -> Option<Heeding> {
        self.shared.notices().pop_front()
    }
}

impl AsFd for Microphone {
    /// Readable while there may be something captured, or a notice; [`poll_captured`](Self::poll_captured) lowers it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.outbox.as_fd()
    }
}

impl Drop for Microphone {
    fn drop(&mut self) {
        self.shared.outbox.close();
        if let Some(thread) = self.thread.take() {
            // It panics by a fault of its own alone, and that has been printed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Until the handle is dropped.
    fn run(&self, mut desk: Desk, mut link: Link, now: impl Fn() -> Time) {
        while let Some(wanted) = self.outbox.take_orders() {
            let time = now();
            desk.want(wanted);
            link.turn(time, &mut desk);
            desk.take_captured().into_iter().for_each(|captured| self.outbox.give(captured));
            self.tell(desk.take_notices());
            let wake_at = [desk.wake_at(), link.wake_at()].into_iter().flatten().min();
            let patience = wake_at.and_then(|at| Timespec::try_from(at.since(now())).ok());
            let mut set = vec![PollFd::from_borrowed_fd(self.outbox.orders(), PollFlags::IN)];
            if let Some((fd, flags)) = link.waits_for(desk.has_outgoing()) {
                set.push(PollFd::from_borrowed_fd(fd, flags));
            }
            // An interruption, the only error that it can have, is a turn without an effect.
            let _ = poll(&mut set, patience.as_ref());
        }
    }

    fn tell(&self, notices: Vec<Heeding>) {
        if notices.is_empty() {
            return;
        }
        let mut waiting = self.notices();
        for notice in notices {
            if waiting.len() >= MAX_NOTICES {
                waiting.pop_front();
            }
            waiting.push_back(notice);
        }
        drop(waiting);
        self.outbox.wake();
    }

    fn notices(&self) -> MutexGuard<'_, VecDeque<Heeding>> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notices that the caller has not taken; beyond that the oldest are dropped.
const MAX_NOTICES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// The run loop takes notices, then what was captured: it is to hear of a notice that comes in between.
    #[test]
    fn regression_a_notice_of_the_microphone_is_slept_over() {
        let outbox = Outbox::new().unwrap();
        let shared = Arc::new(Shared { outbox, notices: Mutex::default() });
        let microphone = Microphone { shared: Arc::clone(&shared), thread: None };
        let is_readable = || {
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::new(&microphone, PollFlags::IN)], Some(&at_once)).unwrap() > 0
        };
        assert_eq!(microphone.poll_notice(), None);
        shared.tell(vec![Heeding::Closed]);
        assert_eq!(microphone.poll_captured(), None);
        assert!(is_readable(), "it sleeps");
        assert_eq!(microphone.poll_notice(), Some(Heeding::Closed));
        assert_eq!(microphone.poll_captured(), None);
        assert!(!is_readable(), "it spins");
    }
}
