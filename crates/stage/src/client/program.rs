//! A scripted client on a thread of its own.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};

use super::connection::Client;
use super::counts::Counts;
use super::error::ClientError;

/// Where a program finds its compositor.
#[derive(Debug)]
pub enum Endpoint {
    /// A listening socket.
    Socket(PathBuf),
    /// A connection.
    Stream(UnixStream),
}

/// A running script; dropping it stops it.
#[derive(Debug)]
pub struct Program {
    stop: Arc<Stop>,
    counts: Arc<Mutex<Counts>>,
    thread: Option<JoinHandle<Result<(), ClientError>>>,
}

/// The order to stop, which also interrupts a wait.
#[derive(Debug)]
pub(crate) struct Stop {
    flag: AtomicBool,
    pub(crate) bell: OwnedFd,
}

impl Stop {
    pub(crate) fn is_set(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    fn set(&self) {
        self.flag.store(true, Ordering::Release);
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }
}

impl Program {
    /// Connects and runs a script until it returns or is stopped. Any wait of the script ends with
    /// [`ClientError::Stopped`] when it is.
    ///
    /// # Errors
    /// The system is out of threads or descriptors; what the script itself meets is told by [`Program::stop`].
    pub fn start(
        endpoint: Endpoint,
        script: impl FnOnce(&mut Client) -> Result<(), ClientError> + Send + 'static,
    ) -> std::io::Result<Program> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let stop = Arc::new(Stop { flag: AtomicBool::new(false), bell });
        let counts: Arc<Mutex<Counts>> = Arc::default();
        let (their_stop, their_counts) = (stop.clone(), counts.clone());
        let thread = thread::Builder::new().name("program".to_owned()).spawn(move || {
            let stream = match endpoint {
                Endpoint::Socket(path) => UnixStream::connect(path).map_err(ClientError::Connect)?,
                Endpoint::Stream(stream) => stream,
            };
            script(&mut Client::with_stop(stream, Some(their_stop), their_counts)?)
        })?;
        Ok(Program { stop, counts, thread: Some(thread) })
    }

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        *self.counts.lock().expect("no thread panics with it")
    }

    /// Whether the script has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops it, if it runs, and says how it went.
    ///
    /// # Errors
    /// What the script met, but for the order to stop.
    pub fn stop(mut self) -> Result<Counts, ClientError> {
        self.stop.set();
        self.join_thread()
    }

    /// Waits for the script to end by itself.
    ///
    /// # Errors
    /// What the script met.
    pub fn join(mut self) -> Result<Counts, ClientError> {
        self.join_thread()
    }

    fn join_thread(&mut self) -> Result<Counts, ClientError> {
        let thread = self.thread.take().expect("only taken here and in the drop");
        match thread.join() {
            Ok(Ok(()) | Err(ClientError::Stopped)) => Ok(self.counts()),
            Ok(Err(error)) => Err(error),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
