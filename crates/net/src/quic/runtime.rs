//! The thread behind all connections of a listener or a `connect`: one tokio runtime, ended in order.
//!
//! Invariant: when the last owner of a [`Runtime`] is gone, so are the thread, its sockets and its connections (soon,
//! when it was left; at once otherwise), and peers were told if they could be. Nothing inside the runtime owns it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use noq::{Endpoint, VarInt};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::error::GIVEN_UP;

/// Keeps the thread running.
pub(super) struct Runtime {
    pub(super) handle: Handle,
    pub(super) guests: Guests,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The thread ends by itself; no caller waits.
    left: AtomicBool,
}

/// What has to end before the runtime does.
#[derive(Clone)]
pub(super) struct Guests {
    endpoints: Arc<Mutex<Vec<Endpoint>>>,
    /// When connections were last told that the network changed.
    notified: Arc<Mutex<Option<Instant>>>,
    alive: mpsc::WeakSender<()>,
}

impl Guests {
    /// An endpoint to be closed at the end.
    pub(super) fn add(&self, endpoint: Endpoint) {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).push(endpoint);
    }

    /// Closes all endpoints: nothing of them is wanted any more.
    pub(super) fn dismiss(&self) {
        let endpoints = std::mem::take(&mut *self.endpoints.lock().unwrap_or_else(PoisonError::into_inner));
        endpoints.iter().for_each(|endpoint| endpoint.close(VarInt::from_u32(GIVEN_UP), b"given up"));
    }

    /// Tells all connections that what they have learnt of their paths may not be so any more; not again within
    /// `pause`, no matter which connection asks.
    pub(super) fn network_changed(&self, pause: Duration) {
        let mut notified = self.notified.lock().unwrap_or_else(PoisonError::into_inner);
        if notified.is_some_and(|at| at.elapsed() < pause) {
            return;
        }
        *notified = Some(Instant::now());
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.iter().for_each(|endpoint| endpoint.handle_network_change(None));
    }

    /// Whether to tell one connection is to disturb others.
    pub(super) fn are_several(&self) -> bool {
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.iter().map(Endpoint::open_connections).sum::<usize>() > 1
    }

    /// Held by a task that wants to finish closing its connection; `None` when the end has begun.
    pub(super) fn pass(&self) -> Option<mpsc::Sender<()>> {
        self.alive.upgrade()
    }
}

impl Runtime {
    pub(super) fn start() -> io::Result<Arc<Self>> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (alive, ended) = mpsc::channel(1);
        let (stop, stopped) = oneshot::channel();
        let guests = Guests { endpoints: Arc::default(), notified: Arc::default(), alive: alive.downgrade() };
        let endpoints = Arc::clone(&guests.endpoints);
        let thread = std::thread::Builder::new().name("wayferry-quic".into()).spawn(move || {
            runtime.block_on(async {
                let _ = stopped.await;
                drop(alive);
                finish(ended, &endpoints).await;
            });
        })?;
        Ok(Arc::new(Self {
            handle,
            guests,
            stop: Some(stop),
            thread: Some(thread),
            left: AtomicBool::new(false),
        }))
    }
}

impl Runtime {
    /// A caller that drops it does not wait for the thread, which ends within the same bounds.
    pub(super) fn leave(&self) {
        self.left.store(true, Ordering::Relaxed);
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && !self.left.load(Ordering::Relaxed)
        {
            let _ = thread.join();
        }
    }
}

async fn finish(mut ended: mpsc::Receiver<()>, endpoints: &Mutex<Vec<Endpoint>>) {
    let _ = timeout(GUESTS_PATIENCE, ended.recv()).await;
    let endpoints = std::mem::take(&mut *endpoints.lock().unwrap_or_else(PoisonError::into_inner));
    for endpoint in endpoints {
        endpoint.close(VarInt::from_u32(GIVEN_UP), b"the program ended");
        let _ = timeout(CLOSE_PATIENCE, endpoint.wait_all_draining()).await;
    }
}

/// A little more than what a connection takes to close itself.
const GUESTS_PATIENCE: Duration = Duration::from_millis(1500);

/// For the last packet of each endpoint to leave.
const CLOSE_PATIENCE: Duration = Duration::from_millis(250);
