//! A session's sound server on its socket, on a thread of its own.
//!
//! The thread accepts programs, lets `wayferry-pulse` speak to them, mixes what they play every 10 ms and encodes it.
//! The run loop takes encoded frames from a bounded queue, and says what it wants. The other way round it hands over
//! what comes from the display's microphone, for programs that record. While no program plays or records, the thread
//! sleeps. It knows nothing of links. Invariants: programs are served in real time whether or not sound is wanted; the
//! thread ends with its handle.

mod beat;
mod service;
mod spoken;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use wayferry_audio::{Ear, Figures, Packet};
use wayferry_proto::Time;

use crate::Codec;
use crate::outbox::{Captured, Outbox, Wanted};
use service::Service;
use spoken::{Order, Spoken};

/// Where programs come in: a listening socket.
pub trait Door: AsFd + Send {
    /// The next program that connected, without blocking.
    ///
    /// # Errors
    /// The system has no descriptors left, or the socket is broken.
    fn accept(&self) -> io::Result<Option<OwnedFd>>;
}

/// A session's sound server; see the module.
#[derive(Debug)]
pub struct Capture {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and its handle share.
#[derive(Debug)]
struct Shared {
    outbox: Outbox,
    latency: Mutex<Duration>,
    spoken: Spoken,
}

impl Capture {
    /// Starts the server. `now` is the run loop's clock.
    ///
    /// # Errors
    /// The system has no thread or no descriptors left.
    pub fn start(door: impl Door + 'static, now: impl Fn() -> Time + Send + 'static) -> io::Result<Self> {
        let outbox = Outbox::new()?;
        let shared = Arc::new(Shared { outbox, latency: Mutex::default(), spoken: Spoken::default() });
        let service = Service::new(Arc::clone(&shared), Box::new(door), Box::new(now));
        let thread = std::thread::Builder::new().name("wayferry-capture".into()).spawn(|| service.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// How sound is wanted from now on; `None` if it is not. What was captured before is dropped when that changes
    /// to or from `None`, or to another codec.
    pub fn want(&self, wanted: Option<Wanted>) {
        self.shared.outbox.want(wanted);
    }

    /// How much later sound is heard than a picture is seen that was made when it was captured: programs are told.
    pub fn set_latency(&self, latency: Duration) {
        let mut current = self.shared.latency.lock().unwrap_or_else(PoisonError::into_inner);
        if current.abs_diff(latency) >= LATENCY_STEP {
            *current = latency;
            drop(current);
            self.shared.outbox.order();
        }
    }

    /// The next that was captured.
    pub fn poll_captured(&self) -> Option<Captured> {
        let captured = self.shared.outbox.poll_captured();
        if captured.is_none() && self.shared.spoken.is_unseen() {
            // It changed after the run loop had looked.
            self.shared.outbox.wake();
        }
        captured
    }

    /// Whether programs find a microphone, and how long its sound takes until it arrives here.
    pub fn set_microphone(&self, is_there: bool, latency: Duration) {
        if self.shared.spoken.set(is_there, latency) {
            self.shared.outbox.order();
        }
    }

    /// Another flow of the microphone begins, with an empty player.
    pub fn begin_spoken(&self, codec: Codec) {
        self.shared.spoken.order(Order::Begin(codec));
    }

    /// A packet of the microphone's flow arrived. It is looked at when the next 10 ms are recorded.
    pub fn spoken(&self, arrived: Time, packet: Packet) {
        self.shared.spoken.order(Order::Packet(arrived, packet));
    }

    /// Whether a program records, and how what it records fares.
    pub fn recorded(&self) -> (bool, Figures) {
        self.shared.spoken.told()
    }

    /// The same, for the one whom a change of the first wakes.
    pub fn poll_recorded(&self) -> (bool, Figures) {
        self.shared.spoken.see()
    }
}

impl AsFd for Capture {
    /// Readable while there may be something captured, or whether a program records has changed.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.outbox.as_fd()
    }
}

/// Of the display's microphone: programs record it.
impl Ear for Capture {
    fn begin(&mut self, codec: Codec) {
        self.begin_spoken(codec);
    }

    fn packet(&mut self, arrived: Time, packet: Packet) {
        self.spoken(arrived, packet);
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.shared.outbox.close();
        if let Some(thread) = self.thread.take() {
            // It panics by a fault of its own alone, and that has been printed.
            let _ = thread.join();
        }
    }
}

/// A smaller change of the latency is noise.
const LATENCY_STEP: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
