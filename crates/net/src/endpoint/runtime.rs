//! noq's tasks, which the caller's thread may drive as well as the engine's.
//!
//! Each runs on the engine's thread, woken like any other. But who writes inside [`promptly`] drives the connection
//! itself, there and then: a packet leaves without a second thread having to wake first. And while a thread holds a
//! [`Cork`], it wakes no task for each of many small things, but once for all. Invariant: a task is polled by one
//! thread at a time, and no wake-up is lost between the two, nor with a cork.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use noq::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};
use tokio::runtime::Handle;

use super::lease::Lease;
use super::sockets::Sockets;
use crate::udp::Receiver;
use crate::watch::Watch;

/// Runs `f`; the first connection that this gives something to do is driven before this returns, on this thread: it
/// sends what it may send now, up to a few dozen packets.
///
/// It saves the engine's waking up, and costs this thread the encryption and the system call. That is right for a lone
/// message, and wrong for one piece of many. Inside another `promptly` it adds nothing.
pub fn promptly<T>(f: impl FnOnce() -> T) -> T {
    let Some(scope) = Scope::open() else { return f() };
    let output = f();
    if let Some(task) = scope.close() {
        task.drive_here();
    }
    output
}

/// Holds back what a thread gives connections to do, so that each of them is driven once for all of it.
///
/// Without one the engine's thread wakes at the first of many small things, and then two threads want the connection's
/// lock for each of the others. What waits leaves late, so it is for a moment, and for little data.
#[derive(Default)]
pub struct Cork(Arc<Held>);

impl Cork {
    /// From now on wake-ups by this thread wait here, until [`Cork::release`]. What [`promptly`] sends does not.
    pub fn hold(&self) {
        self.0.tasks().get_or_insert_with(|| Batch { tasks: Vec::new(), since: Instant::now() });
        let before = CORK.replace(Some(Arc::clone(&self.0)));
        // A loop was stopped in the midst of its turn, and another runs on this thread.
        before.iter().filter(|before| !Arc::ptr_eq(before, &self.0)).for_each(|before| before.release(0));
    }

    /// Whether something waits. If nothing does, nothing is held back from now on.
    pub fn keeps_holding(&self) -> bool {
        let mut held = self.0.tasks();
        held.take_if(|batch| batch.tasks.is_empty());
        held.is_some()
    }

    /// Has all that waits driven: the first connection on this thread if `here`, as in [`promptly`], the others, or
    /// all, by the engine's. From now on nothing waits.
    pub fn release(&self, here: bool) {
        self.0.release(usize::from(here));
    }

    /// The same, with all of them on this thread but what is too many.
    pub(super) fn release_all_here(&self) {
        self.0.release(HERE_MAX);
    }
}

/// What waits is driven all the same.
impl Drop for Cork {
    fn drop(&mut self) {
        self.release(false);
    }
}

impl fmt::Debug for Cork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cork").finish_non_exhaustive()
    }
}

/// What noq needs of tokio, with tasks that can be driven from elsewhere, and sockets that can be closed. One for each
/// endpoint.
#[derive(Debug, Default)]
pub(super) struct PromptRuntime {
    pub(super) sockets: Sockets,
    /// The task of the endpoint, which noq spawns first.
    driver: OnceLock<Weak<Task>>,
    owner: Mutex<Owner>,
}

/// Whose connections an endpoint has.
#[derive(Debug, Default)]
enum Owner {
    #[default]
    Free,
    Loop(Weak<Lease>),
    /// Of several loops. None reads for the others.
    Loops,
}

impl PromptRuntime {
    /// Runs `f` while no thread drives the endpoint.
    ///
    /// # Errors
    /// `f` panicked, so no thread ever drives it again: its lock may be poisoned, and then noq panics in the task and
    /// once more in the task's destructor, which would end the process.
    pub(super) fn undriven<T>(&self, f: impl FnOnce() -> T) -> std::thread::Result<T> {
        let task = self.task();
        let mut work = task.as_ref().map(|task| task.work.lock().unwrap_or_else(PoisonError::into_inner));
        let output = catch_unwind(AssertUnwindSafe(f));
        if output.is_err() {
            std::mem::forget(work.as_mut().and_then(|work| work.take()));
        }
        output
    }

    /// The loop of `lease` has connections here. One that has all of them may read the sockets itself.
    pub(super) fn belong_to(self: &Arc<Self>, lease: &Arc<Lease>) {
        // Until both are told, or another loop would be told in between.
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        let other = match &*owner {
            Owner::Loops => return,
            Owner::Loop(other) if std::ptr::eq(other.as_ptr(), Arc::as_ptr(lease)) => return,
            Owner::Free => None,
            Owner::Loop(other) => other.upgrade().filter(|other| !other.has_ended()),
        };
        match other {
            Some(other) => {
                other.remove(self);
                *owner = Owner::Loops;
            }
            None => {
                lease.add(self);
                *owner = Owner::Loop(Arc::downgrade(lease));
            }
        }
    }

    /// Has a loop watch the sockets; whether it does. It calls [`PromptRuntime::drive_here`] when `watch` is readable.
    pub(super) fn give_to(&self, watch: &Arc<Watch>) -> bool {
        let mut any = false;
        self.sockets.each_receiver(|socket| any |= socket.give_to(watch).is_ok());
        any
    }

    /// Has the engine's thread watch the sockets again; whether it does.
    pub(super) fn take_back(&self) -> bool {
        let Some(task) = self.task() else {
            self.sockets.stop_receiving();
            return true;
        };
        let _inside = task.handle.enter();
        let mut all = true;
        self.sockets.each_receiver(|socket| all &= socket.take_back().is_ok());
        // It has to say that it waits.
        task.wake_engine();
        all
    }

    /// Drives the endpoint on this thread: what has come is read, and handed to the connections. Whether it goes on.
    pub(super) fn drive_here(&self) -> bool {
        self.task().is_some_and(|task| task.drive_in_turn())
    }

    pub(super) fn handle(&self) -> Option<Handle> {
        self.task().map(|task| task.handle.clone())
    }

    fn task(&self) -> Option<Arc<Task>> {
        self.driver.get().and_then(Weak::upgrade)
    }
}

impl Runtime for PromptRuntime {
    fn new_timer(&self, instant: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(instant)
    }

    fn spawn(&self, work: Work) {
        let handle = Handle::current();
        let task = Task {
            work: Mutex::new(Some(work)),
            engine: OnceLock::new(),
            handle: handle.clone(),
            held: AtomicBool::new(false),
        };
        let task = Arc::new(task);
        self.driver.get_or_init(|| Arc::downgrade(&task));
        drop(handle.spawn(OnEngine(task)));
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Box<dyn AsyncUdpSocket>> {
        self.sockets.cover(Receiver::new(socket)?)
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One of noq's tasks. It is its own waker.
struct Task {
    /// `None` when it is over.
    work: Mutex<Option<Work>>,
    /// Has the engine's thread drive it; there from the first time on.
    engine: OnceLock<Waker>,
    handle: Handle,
    /// It is in a cork.
    held: AtomicBool,
}

impl Task {
    /// Drives it, if it is not being driven; else has the engine's thread look again.
    fn drive_here(self: &Arc<Self>) {
        let over = match self.work.try_lock() {
            Ok(mut work) => {
                let _inside = self.handle.enter();
                self.poll(&mut work).is_ready()
            }
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => true,
        };
        if over {
            self.wake_engine();
        }
    }

    /// The same, once no other thread drives it. Whether it goes on.
    fn drive_in_turn(self: &Arc<Self>) -> bool {
        let drive = || {
            let Ok(mut work) = self.work.lock() else { return false };
            let _inside = self.handle.enter();
            self.poll(&mut work).is_pending()
        };
        let goes_on = catch_unwind(AssertUnwindSafe(drive)).unwrap_or(false);
        if !goes_on {
            self.wake_engine();
        }
        goes_on
    }

    fn poll(self: &Arc<Self>, work: &mut Option<Work>) -> Poll<()> {
        let Some(future) = work else { return Poll::Ready(()) };
        let waker = Waker::from(Arc::clone(self));
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        if polled.is_ready() {
            *work = None;
        }
        polled
    }

    fn wake_engine(&self) {
        if let Some(waker) = self.engine.get() {
            waker.wake_by_ref();
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if let Some(task) = Scope::catch(self).and_then(Held::keep) {
            task.wake_engine();
        }
    }
}

/// The tasks in a cork; `None` while it holds nothing back.
#[derive(Default)]
struct Held(Mutex<Option<Batch>>);

/// What waits, and since when.
struct Batch {
    tasks: Vec<Arc<Task>>,
    since: Instant,
}

impl Batch {
    /// Drives the first `here` of them on this thread.
    fn release(self, here: usize) {
        for (index, task) in self.tasks.into_iter().enumerate() {
            task.held.store(false, Ordering::Release);
            if index >= here {
                task.wake_engine();
            } else if catch_unwind(AssertUnwindSafe(|| task.drive_here())).is_err() {
                // That is its end, as on the engine's thread, and not that of the others.
                task.wake_engine();
            }
        }
    }

    fn has(&self, task: &Arc<Task>) -> bool {
        self.tasks.iter().any(|held| Arc::ptr_eq(held, task))
    }
}

impl Held {
    /// Takes `task` if this thread holds a cork, or gives it back.
    fn keep(task: Arc<Task>) -> Option<Arc<Task>> {
        // A thread that ends holds none.
        let Ok(Some(held)) = CORK.try_with(|cork| cork.borrow().clone()) else { return Some(task) };
        let mut batch = held.tasks();
        // A loop that was stopped in the midst of its turn does not end it, and another may run on this thread.
        let late = batch.take_if(|batch| batch.since.elapsed() > MOMENT);
        let Some(batch) = &mut *batch else {
            drop(batch);
            let _ = CORK.try_with(RefCell::take);
            late.into_iter().for_each(|batch| batch.release(0));
            return Some(task);
        };
        if !task.held.swap(true, Ordering::AcqRel) {
            batch.tasks.push(task);
            return None;
        }
        // Another thread's cork, or another loop's, may hold it for long.
        (!batch.has(&task)).then_some(task)
    }

    fn release(&self, here: usize) {
        let batch = self.tasks().take();
        batch.into_iter().for_each(|batch| batch.release(here));
    }

    fn tasks(&self) -> MutexGuard<'_, Option<Batch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What waits leaves with the next wake-up after so long, whether its turn has ended or not.
const MOMENT: Duration = Duration::from_millis(5);

/// Connections that one thread drives in a row before it does something else.
const HERE_MAX: usize = 16;

/// A task as the engine's thread has it.
struct OnEngine(Arc<Task>);

impl Future for OnEngine {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // tokio's waker of a task stays the same.
        self.0.engine.get_or_init(|| cx.waker().clone());
        match self.0.work.lock() {
            Ok(mut work) => self.0.poll(&mut work),
            // It panicked on another thread.
            Err(_) => Poll::Ready(()),
        }
    }
}

/// The engine ends, and the work holds wakers of its own task.
impl Drop for OnEngine {
    fn drop(&mut self) {
        let work = self.0.work.lock().ok().and_then(|mut work| work.take());
        drop(work);
    }
}

/// That this thread is inside [`promptly`]. While it is there, the first task that wakes is caught.
struct Scope;

#[derive(Default)]
enum Catch {
    #[default]
    Nothing,
    First,
    Caught(Arc<Task>),
}

impl Scope {
    /// `None`: it is there already.
    fn open() -> Option<Self> {
        CATCH.with_borrow_mut(|catch| match catch {
            Catch::Nothing => {
                *catch = Catch::First;
                Some(Self)
            }
            Catch::First | Catch::Caught(_) => None,
        })
    }

    /// What was caught.
    fn close(self) -> Option<Arc<Task>> {
        match CATCH.take() {
            Catch::Caught(task) => Some(task),
            Catch::Nothing | Catch::First => None,
        }
    }

    /// Takes `task` if this thread has room for one, or gives it back.
    fn catch(task: Arc<Task>) -> Option<Arc<Task>> {
        let mut task = Some(task);
        // A thread that ends catches nothing.
        let _ = CATCH.try_with(|catch| {
            let mut catch = catch.borrow_mut();
            if matches!(*catch, Catch::First) {
                *catch = task.take().map_or(Catch::First, Catch::Caught);
            }
        });
        task
    }
}

/// When the closure panicked: no other thread will drive what was caught.
impl Drop for Scope {
    fn drop(&mut self) {
        if let Catch::Caught(task) = CATCH.take() {
            task.wake_engine();
        }
    }
}

thread_local! {
    static CATCH: RefCell<Catch> = RefCell::default();
    static CORK: RefCell<Option<Arc<Held>>> = const { RefCell::new(None) };
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// How often the engine was woken.
    #[derive(Default)]
    struct Engine(AtomicUsize);

    impl Engine {
        fn woken(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    impl Wake for Engine {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// With a runtime, whose handle a task needs.
    fn task() -> (tokio::runtime::Runtime, Arc<Engine>, Waker) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let engine = Arc::new(Engine::default());
        let task = Task {
            work: Mutex::new(None),
            engine: OnceLock::from(Waker::from(Arc::clone(&engine))),
            handle: runtime.handle().clone(),
            held: AtomicBool::new(false),
        };
        (runtime, engine, Waker::from(Arc::new(task)))
    }

    #[test]
    fn regression_a_cork_that_is_left_holds_back_although_another_is_held() {
        let (_runtime, engine, waker) = task();
        let (left, other) = (Cork::default(), Cork::default());
        left.hold();
        waker.wake_by_ref();
        assert_eq!(engine.woken(), 0);
        other.hold();
        assert_eq!(engine.woken(), 1);
    }

    #[test]
    fn a_cork_in_which_nothing_waits_can_be_left() {
        let (_runtime, engine, waker) = task();
        let cork = Cork::default();
        cork.hold();
        assert!(!cork.keeps_holding());
        waker.wake_by_ref();
        assert_eq!(engine.woken(), 1);
        cork.hold();
        waker.wake_by_ref();
        assert!(cork.keeps_holding());
        assert_eq!(engine.woken(), 1);
        cork.release(false);
        assert_eq!(engine.woken(), 2);
    }

    #[test]
    fn regression_a_cork_that_is_left_holds_back_what_comes_much_later() {
        let (_runtime, engine, waker) = task();
        let left = Cork::default();
        left.hold();
        waker.wake_by_ref();
        let mut held = left.0.tasks();
        held.as_mut().expect("it holds").since -= 2 * MOMENT;
        drop(held);
        waker.wake_by_ref();
        // What waited, and this.
        assert_eq!(engine.woken(), 2);
    }

    #[test]
    fn regression_a_task_in_the_cork_of_another_thread_waits_for_that() {
        let (_runtime, engine, waker) = task();
        let theirs = Cork::default();
        std::thread::scope(|scope| {
            let hold = || {
                theirs.hold();
                waker.wake_by_ref();
            };
            scope.spawn(hold).join().expect("no panic");
        });
        let ours = Cork::default();
        ours.hold();
        waker.wake_by_ref();
        assert_eq!(engine.woken(), 1);
    }
}
