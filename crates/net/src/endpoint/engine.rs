//! The thread that everything of this module runs on.
//!
//! One small tokio runtime, driven by one thread of its own. It does no work for the caller's tasks: the thread that
//! polls does that. Invariant: the thread runs for as long as there is an [`Engine`], and everything that needs it
//! holds one.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::clients::Clients;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The background thread, `wayferry-quic`. Clones share it; it ends when the last is gone.
#[derive(Clone, Debug)]
pub struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    handle: Handle,
    clients: Clients,
    /// Its end is the thread's.
    _stop: oneshot::Sender<()>,
}

impl Engine {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread, or no file descriptors.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new().name("wayferry-quic".into()).spawn(move || {
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self(Arc::new(Inner { handle, clients: Clients::default(), _stop: stop })))
    }

    /// Runs `future` on the thread.
    pub fn spawn<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Pending<T> {
        Pending { task: self.0.handle.spawn(future), _engine: self.clone() }
    }

    /// The endpoints that connections share.
    pub(super) fn clients(&self) -> &Clients {
        &self.0.clients
    }

    /// For what must be made inside the runtime, such as sockets and timers.
    pub(crate) fn enter(&self) -> tokio::runtime::EnterGuard<'_> {
        self.0.handle.enter()
    }

    /// Runs `future` with no caller waiting for it.
    pub(crate) fn detach(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.handle.spawn(future));
    }
}

/// What something on the thread will give; poll it with any waker. Dropping it cancels.
#[derive(Debug)]
pub struct Pending<T> {
    task: JoinHandle<T>,
    _engine: Engine,
}

impl<T> Future for Pending<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.task).poll(cx).map(|joined| match joined {
            Ok(output) => output,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Only a drop of this value, or the end of the engine that it holds, cancels.
                Err(error) => panic!("the engine lost a task: {error}"),
            },
        })
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OnDrop(std::sync::mpsc::Sender<()>);

    impl Drop for OnDrop {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }

    #[test]
    fn dropping_what_is_pending_cancels_it() {
        let engine = Engine::start().unwrap();
        let (tell, dropped) = std::sync::mpsc::channel();
        let guard = OnDrop(tell);
        drop(engine.spawn(async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        }));
        dropped.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
    }
}
