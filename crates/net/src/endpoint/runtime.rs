//! noq's tasks, which the caller's thread may drive as well as the engine's.
//!
//! Each runs on the engine's thread, woken like any other. But who writes inside [`promptly`] drives the connection
//! itself, there and then: a packet leaves without a second thread having to wake first. Invariant: a task is polled by
//! one thread at a time, and no wake-up is lost between the two.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, TryLockError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use noq::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};
use tokio::runtime::Handle;

use super::sockets::Sockets;

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

/// What noq needs of tokio, with tasks that can be driven from elsewhere, and sockets that can be closed.
#[derive(Debug)]
pub(super) struct PromptRuntime(pub(super) Sockets);

impl Runtime for PromptRuntime {
    fn new_timer(&self, instant: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(instant)
    }

    fn spawn(&self, work: Work) {
        let handle = Handle::current();
        let task = Task { work: Mutex::new(Some(work)), engine: OnceLock::new(), handle: handle.clone() };
        drop(handle.spawn(OnEngine(Arc::new(task))));
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Box<dyn AsyncUdpSocket>> {
        self.0.cover(TokioRuntime.wrap_udp_socket(socket)?)
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
        if let Some(task) = Scope::catch(self) {
            task.wake_engine();
        }
    }
}

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
}
