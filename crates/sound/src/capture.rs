//! A session's sound server on its socket, on a thread of its own.
//!
//! The thread accepts programs, lets `wayferry-pulse` speak to them, mixes what they play every 10 ms and encodes it.
//! The run loop takes encoded frames from a bounded queue, and says what it wants. While no program plays, the thread
//! sleeps. It knows nothing of links. Invariants: programs are served in real time whether or not sound is wanted; the
//! thread ends with its handle.

mod beat;
mod encoding;
mod service;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use wayferry_audio::{FrameSize, Position};
use wayferry_proto::Time;

use crate::Codec;
use service::Service;

/// Where programs come in: a listening socket.
pub trait Door: AsFd + Send {
    /// The next program that connected, without blocking.
    ///
    /// # Errors
    /// The system has no descriptors left, or the socket is broken.
    fn accept(&self) -> io::Result<Option<OwnedFd>>;
}

/// How sound is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The codec.
    pub codec: Codec,
    /// Bits in a second, where the codec has a choice.
    pub rate: u32,
    /// How much sound a frame has.
    pub frame: FrameSize,
}

/// What was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The codec that was wanted.
    pub codec: Codec,
    /// When it was captured, by the sound clock, which begins with the session.
    pub capture: Position,
    /// Sound, or none.
    pub content: Content,
}

/// Sound that was captured, or silence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A frame of sound.
    Frame {
        /// Sound begins with it, after silence.
        start: bool,
        /// In the codec.
        payload: Vec<u8>,
    },
    /// Silence begins, and nothing follows until it ends.
    Idle,
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
    state: Mutex<State>,
    /// Readable while something was captured.
    captured: OwnedFd,
    /// Readable while there are orders.
    orders: OwnedFd,
}

#[derive(Debug, Default)]
struct State {
    captured: VecDeque<Captured>,
    wanted: Option<Wanted>,
    latency: Duration,
    over: bool,
}

impl Capture {
    /// Starts the server. `now` is the run loop's clock.
    ///
    /// # Errors
    /// The system has no thread or no descriptors left.
    pub fn start(door: impl Door + 'static, now: impl Fn() -> Time + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared::new()?);
        let service = Service::new(Arc::clone(&shared), Box::new(door), Box::new(now));
        let thread = std::thread::Builder::new().name("wayferry-capture".into()).spawn(|| service.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// How sound is wanted from now on; `None` if it is not. What was captured before is dropped when that changes
    /// to or from `None`, or to another codec.
    pub fn want(&self, wanted: Option<Wanted>) {
        let mut state = self.shared.lock();
        if state.wanted == wanted {
            return;
        }
        if state.wanted.map(|wanted| wanted.codec) != wanted.map(|wanted| wanted.codec) {
            state.captured.clear();
        }
        state.wanted = wanted;
        drop(state);
        raise(&self.shared.orders);
    }

    /// How long sound takes from its capture until it is heard: programs are told.
    pub fn set_latency(&self, latency: Duration) {
        let mut state = self.shared.lock();
        if state.latency.abs_diff(latency) >= LATENCY_STEP {
            state.latency = latency;
            drop(state);
            raise(&self.shared.orders);
        }
    }

    /// The next that was captured.
    pub fn poll_captured(&self) -> Option<Captured> {
        let captured = self.shared.lock().captured.pop_front();
        if captured.is_none() {
            lower(&self.shared.captured);
        }
        // What came between the two is not to be slept over.
        captured.or_else(|| {
            let captured = self.shared.lock().captured.pop_front();
            captured.inspect(|_| raise(&self.shared.captured))
        })
    }
}

impl AsFd for Capture {
    /// Readable while there may be something captured.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.captured.as_fd()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        raise(&self.shared.orders);
        if let Some(thread) = self.thread.take() {
            // It panics by a fault of its own alone, and that has been printed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn new() -> io::Result<Self> {
        let fd = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self { state: Mutex::default(), captured: fd()?, orders: fd()? })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands something to the run loop, if it is still `wanted` so. One that takes nothing loses the oldest.
    fn give(&self, captured: Captured) {
        let mut state = self.lock();
        if state.wanted.is_none_or(|wanted| wanted.codec != captured.codec) {
            return;
        }
        if state.captured.len() >= MAX_CAPTURED {
            state.captured.pop_front();
        }
        state.captured.push_back(captured);
        drop(state);
        raise(&self.captured);
    }
}

/// Makes an event descriptor readable.
fn raise(fd: &OwnedFd) {
    // Fails only when it is readable already, and its counter full.
    let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
}

/// Makes it unreadable.
fn lower(fd: &OwnedFd) {
    let _ = rustix::io::read(fd, &mut [0; 8]);
}

/// Frames that wait for the run loop: a second or two.
const MAX_CAPTURED: usize = 100;

/// A smaller change of the latency is noise.
const LATENCY_STEP: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
