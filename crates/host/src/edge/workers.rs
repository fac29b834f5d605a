//! The threads that work on pixels for a side, so that its loop does not: they compare and encode, or open and paint,
//! what is large.
//!
//! They know nothing of what they do. The loop is woken when something is done; whose it was, it finds out by asking
//! all. Invariants: the queue is bounded; no lock is held while a task is done; a panic of a task wakes the loop, which
//! then has it too.

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use rustix::event::{EventfdFlags, eventfd};
use wayferry_proto::Time;
use wayferry_wayland::workers::{Crew, Task, Workers};

use super::part::{Hub, Part};
use super::wait::{Interests, Ready};
use crate::error::Error;

/// See the module. The threads end when this is dropped, after what they are at.
pub(crate) struct Pool(Arc<Shared>);

struct Shared {
    /// Something is done.
    wake: OwnedFd,
    queue: Mutex<Queue>,
    /// There is a task, or no more will come.
    news: Condvar,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    is_over: bool,
}

impl Pool {
    /// So many threads, at most [`MAX_WORKERS`]. `None` where the system has no thread or descriptor to give, and where
    /// none is wanted: the loop then does the work itself.
    pub(crate) fn new(threads: usize) -> Option<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
        let (queue, news) = (Mutex::default(), Condvar::new());
        let pool = Self(Arc::new(Shared { wake, queue, news }));
        let start = |index: usize| {
            let shared = Arc::clone(&pool.0);
            Builder::new().name(format!("pixels {index}")).spawn(move || shared.work()).is_ok()
        };
        let started = (0..threads.min(MAX_WORKERS)).filter(|index| start(*index)).count();
        (started > 0).then_some(pool)
    }

    /// For connections.
    pub(crate) fn workers(&self) -> Workers {
        Workers::new(Arc::<Shared>::clone(&self.0))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.queue().is_over = true;
        self.0.news.notify_all();
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next task; `None` when no more will come.
    fn next(&self) -> Option<Task> {
        let is_idle = |queue: &mut Queue| queue.tasks.is_empty() && !queue.is_over;
        let waited = self.news.wait_while(self.queue(), is_idle);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
        let task = queue.tasks.pop_front();
        task.filter(|_| !queue.is_over)
    }

    fn work(&self) {
        while let Some(task) = self.next() {
            let _wake = WakeAtEnd(&self.wake);
            task();
        }
    }
}

impl Crew for Shared {
    fn take(&self, task: Task) {
        let mut queue = self.queue();
        if queue.is_over || queue.tasks.len() >= MAX_TASKS {
            drop(queue);
            let _wake = WakeAtEnd(&self.wake);
            return task();
        }
        queue.tasks.push_back(task);
        drop(queue);
        self.news.notify_one();
    }

    fn wake(&self) {
        drop(WakeAtEnd(&self.wake));
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

/// Wakes the loop, also when what was done has panicked.
struct WakeAtEnd<'a>(&'a OwnedFd);

impl Drop for WakeAtEnd<'_> {
    fn drop(&mut self) {
        // It fails where the loop has been woken often enough.
        let _ = rustix::io::write(self.0, &1u64.to_ne_bytes());
    }
}

impl AsFd for Pool {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }
}

impl Part for Pool {
    fn interests<'a>(&'a mut self, _now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.read(self);
    }

    fn turn(&mut self, _now: Time, _hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        if ready.has(self) {
            let _ = rustix::io::read(&self.0.wake, &mut [0u8; 8]);
        }
        Ok(())
    }
}

/// Threads of one side.
pub(crate) const MAX_WORKERS: usize = 4;
/// Tasks that wait for them: a few of each program. More are done by the loop.
const MAX_TASKS: usize = 256;

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::edge::part::alone;
    use crate::edge::wait::poll;

    fn crew(pool: &Pool) -> Arc<Shared> {
        Arc::clone(&pool.0)
    }

    fn wait(pool: &Pool) {
        let mut set = [rustix::event::PollFd::new(pool, rustix::event::PollFlags::IN)];
        poll(&mut set, Some(Duration::from_secs(30))).expect("poll");
        assert!(!set[0].revents().is_empty());
    }

    #[test]
    fn what_is_done_wakes_the_loop_and_so_does_a_panic() {
        let mut pool = Pool::new(2).expect("threads");
        let (mut base, _events) = alone::base();
        for task in [Box::new(|| {}) as Task, Box::new(|| panic!("as a test"))] {
            crew(&pool).take(task);
            wait(&pool);
            assert_eq!(alone::turn(&mut pool, Time::ZERO, &mut base), 1);
        }
        crew(&pool).wake();
        wait(&pool);
    }

    #[test]
    fn what_a_full_queue_does_not_take_is_done_by_the_caller_and_none_is_begun_after_the_end() {
        let pool = Pool::new(1).expect("a thread");
        let (begun, is_begun) = channel();
        let (release, released) = channel::<()>();
        let first: Task = Box::new(move || {
            begun.send(()).expect("the test waits");
            let _ = released.recv();
        });
        crew(&pool).take(first);
        is_begun.recv().expect("it begins");
        for _ in 0..MAX_TASKS {
            crew(&pool).take(Box::new(|| unreachable!("it is over")));
        }
        let (tell, told) = channel();
        crew(&pool).take(Box::new(move || tell.send(std::thread::current().id()).expect("the test listens")));
        assert_eq!(told.try_recv(), Ok(std::thread::current().id()));
        wait(&pool);
        let shared = crew(&pool);
        drop(pool);
        release.send(()).expect("it is at work");
        while Arc::strong_count(&shared) > 1 {
            std::thread::yield_now();
        }
    }
}
