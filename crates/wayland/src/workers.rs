//! Long work on pixels, done beside the thread that passes messages on.
//!
//! A half of a connection has no threads of its own: its caller may lend it a [`Crew`]. Work owns all that it touches
//! while it is done, and gives that back with what it made. It is begun once at most, by the crew, or by who cannot
//! wait for that; without a crew at once. Invariant: what is made does not depend on who does the work, or when.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Builder;
use std::{fmt, io};

use wayferry_pixels::{Decoder, Workspace};

/// Something to be done.
pub type Task = Box<dyn FnOnce() + Send>;

/// Threads that do tasks.
pub trait Crew: fmt::Debug + Send + Sync {
    /// Has the task done soon, in the order of these calls, and then has its connection called again. A crew that has
    /// too much to do does it at once.
    fn take(&self, task: Task);

    /// Has its connection called again soon.
    fn wake(&self);
}

/// Who does long work: a crew, or the caller.
#[derive(Clone, Debug, Default)]
pub struct Workers(Option<Arc<dyn Crew>>);

impl Workers {
    /// This crew.
    pub fn new(crew: Arc<dyn Crew>) -> Self {
        Self(Some(crew))
    }

    /// Whether work is done beside the caller.
    pub(crate) fn are_there(&self) -> bool {
        self.0.is_some()
    }

    /// Has work done on a thread of its own, because it may wait for what a program does; its end is seen by who is
    /// called again then, or looks now and then where there is no crew.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub(crate) fn start_apart<T: Send + Sync + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Arc<OnceLock<T>>> {
        let outcome = Arc::new(OnceLock::new());
        let (told, crew) = (Arc::clone(&outcome), self.0.clone());
        Builder::new().name(name.to_owned()).spawn(move || {
            let _ = told.set(work());
            if let Some(crew) = crew {
                crew.wake();
            }
        })?;
        Ok(outcome)
    }

    /// Has something dropped: it takes a while to free much memory.
    pub(crate) fn free<T: Send + 'static>(&self, what: T) {
        if let Some(crew) = &self.0 {
            crew.take(Box::new(move || drop(what)));
        }
    }

    /// Has work done.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Stop) -> T + Send + 'static,
    ) -> Pending<T> {
        let slot = Arc::new(Slot { work: Mutex::new(Some(Box::new(work))), stop: Stop::default() });
        let (theirs, (sender, done)) = (Arc::clone(&slot), sync_channel(1));
        let task: Task = Box::new(move || {
            if let Some(made) = theirs.run() {
                // It may not be wanted any more.
                let _ = sender.send(made);
            }
        });
        match &self.0 {
            Some(crew) => crew.take(task),
            None => task(),
        }
        Pending { slot, done }
    }
}

/// Work that has not come back. Dropped, it is not begun any more, and stops soon if it has begun.
pub(crate) struct Pending<T> {
    slot: Arc<Slot<T>>,
    done: Receiver<T>,
}

/// Says that what is made is of no more use: work looks now and then, and comes back with what it has.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicBool);

type Work<T> = Box<dyn FnOnce(&Stop) -> T + Send>;

struct Slot<T> {
    /// Until somebody begins it.
    work: Mutex<Option<Work<T>>>,
    stop: Stop,
}

impl<T> Slot<T> {
    /// Does the work, unless another has begun it.
    fn run(&self) -> Option<T> {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.map(|work| work(&self.stop))
    }
}

impl<T> Pending<T> {
    /// What was made, once it is; then this is over.
    ///
    /// # Panics
    /// If the work did.
    pub(crate) fn poll(&mut self) -> Option<T> {
        match self.done.try_recv() {
            Ok(made) => Some(made),
            Err(TryRecvError::Empty) => None,
            // A crew that is no more has left it.
            Err(TryRecvError::Disconnected) => Some(self.slot.run().expect(PANICKED)),
        }
    }

    /// The same, which cannot wait for the crew: what the crew has not begun is done here.
    ///
    /// # Panics
    /// As there.
    pub(crate) fn finish(&mut self) -> T {
        self.slot.run().unwrap_or_else(|| self.done.recv().expect(PANICKED))
    }

    /// What the work owned comes back soon; what is made is of no use.
    ///
    /// # Panics
    /// As there.
    pub(crate) fn call_off(&mut self) -> T {
        self.slot.stop.0.store(true, Ordering::Relaxed);
        self.finish()
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        self.slot.stop.0.store(true, Ordering::Relaxed);
        drop(self.slot.work.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

impl Stop {
    /// Whether the work may end.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The memory that this thread encodes in.
pub(crate) fn workspace() -> Workspace {
    thread_local!(static WORKSPACE: Workspace = Workspace::default());
    WORKSPACE.with(Workspace::clone)
}

/// What this thread decodes with.
pub(crate) fn decoder<T>(decode: impl FnOnce(&mut Decoder) -> T) -> T {
    thread_local!(static DECODER: RefCell<Decoder> = RefCell::default());
    DECODER.with_borrow_mut(decode)
}

/// As if the caller had done the work itself.
const PANICKED: &str = "the thread that did this work has panicked";

/// A crew whose tasks a test has done when it likes.
#[cfg(test)]
pub(crate) mod slow {
    use std::sync::Condvar;

    use super::*;

    /// See the module.
    #[derive(Default)]
    pub(crate) struct Slow {
        tasks: Mutex<Vec<Task>>,
        /// It was asked to call again.
        wakes: (Mutex<usize>, Condvar),
    }

    impl Slow {
        /// Waits until it has been asked to call again.
        pub(crate) fn wait(&self) {
            let asked = self.wakes.1.wait_while(self.wakes.0.lock().unwrap(), |count| *count == 0);
            *asked.unwrap() -= 1;
        }

        /// How many tasks wait.
        pub(crate) fn waiting(&self) -> usize {
            self.tasks().len()
        }

        /// Does one of them; says whether there was one.
        pub(crate) fn work(&self, which: usize) -> bool {
            let mut tasks = self.tasks();
            if tasks.is_empty() {
                return false;
            }
            let which = which % tasks.len();
            let task = tasks.remove(which);
            drop(tasks);
            task();
            true
        }

        /// Will do none of them.
        pub(crate) fn leave(&self) {
            self.tasks().clear();
        }

        fn tasks(&self) -> std::sync::MutexGuard<'_, Vec<Task>> {
            self.tasks.lock().unwrap()
        }
    }

    impl fmt::Debug for Slow {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Slow").finish_non_exhaustive()
        }
    }

    impl Crew for Slow {
        fn take(&self, task: Task) {
            self.tasks().push(task);
        }

        fn wake(&self) {
            *self.wakes.0.lock().unwrap() += 1;
            self.wakes.1.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::slow::Slow;
    use super::*;

    fn crew() -> (Arc<Slow>, Workers) {
        let slow = Arc::new(Slow::default());
        (Arc::clone(&slow), Workers::new(slow))
    }

    #[test]
    fn without_a_crew_work_is_done_at_once() {
        assert_eq!(Workers::default().start(|_| 7).poll(), Some(7));
    }

    #[test]
    fn work_is_done_once_by_the_crew_or_by_who_cannot_wait() {
        let (slow, workers) = crew();
        let count = Arc::new(Mutex::new(0));
        let work = || {
            let count = Arc::clone(&count);
            workers.start(move |_| *count.lock().unwrap() += 1)
        };
        let mut pending = work();
        assert_eq!(pending.poll(), None);
        assert!(slow.work(0));
        assert_eq!((pending.poll(), *count.lock().unwrap()), (Some(()), 1));
        let mut pending = work();
        pending.finish();
        assert!(slow.work(0) && *count.lock().unwrap() == 2, "the crew finds it done");
    }

    #[test]
    fn work_that_nobody_waits_for_is_not_begun_and_what_has_begun_is_asked_to_stop() {
        let (slow, workers) = crew();
        drop(workers.start(|_| -> u8 { unreachable!("it is of no use") }));
        assert!(slow.work(0));
        let mut pending = workers.start(Stop::is_asked);
        assert!(pending.call_off());
    }

    #[test]
    fn memory_is_freed_by_the_crew_or_without_one_at_once() {
        let (slow, workers) = crew();
        let memory = Arc::new(7);
        workers.free(Arc::clone(&memory));
        assert_eq!(Arc::strong_count(&memory), 2);
        assert!(slow.work(0));
        assert_eq!(Arc::strong_count(&memory), 1);
        Workers::default().free(Arc::clone(&memory));
        assert_eq!(Arc::strong_count(&memory), 1);
    }

    #[test]
    fn what_a_crew_left_is_done_all_the_same() {
        let (slow, workers) = crew();
        let mut pending = workers.start(|_| 7);
        slow.leave();
        assert_eq!(pending.poll(), Some(7));
    }

    #[test]
    fn a_panic_of_the_crew_is_one_of_who_waits() {
        let (slow, workers) = crew();
        let mut pending = workers.start(|_| -> u8 { panic!("as a test") });
        let panics = |work: &mut dyn FnMut() -> bool| catch_unwind(AssertUnwindSafe(work)).is_err();
        assert!(panics(&mut || slow.work(0)));
        assert!(panics(&mut || pending.poll().is_some()));
    }
}
