//! A player, and what it is heard through: the desk's sound server, a sound card where there is none, or a file.
//!
//! A thread of its own pulls the player exactly as its device asks, so that neither pixels nor the session's run loop
//! can make sound stutter. The caller hands over packets and orders through a bounded queue, and learns what happens
//! from a snapshot and from notices. No call waits for the thread, and the thread waits for no device: `desk` decides
//! without any I/O, `link` and `recorder` do it without blocking, `alsa` on another thread, which no end waits for.
//!
//! Volume and mute are the desk's: nothing here changes them. Invariants: the thread ends with its handle, in bounded
//! time; nothing is opened until sound comes; while it is silent the thread sleeps.

mod alsa;
mod card;
mod client;
mod desk;
mod inbox;
mod recorder;
mod report;
// Without the feature, tests alone take from it.
#[cfg_attr(not(feature = "alsa"), allow(dead_code))]
mod ring;
mod stream;
mod thread;

use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use wayferry_audio::{Codec, Ear, Packet};
use wayferry_proto::Time;

pub use report::{DeviceState, Heard, Report};

use alsa::Cards;
use desk::Desk;
use inbox::{Order, Shared};
use recorder::Recorder;
use thread::{Device, Thread};

use crate::link::{Link, Surroundings};

/// Where sound is heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// By the desk's sound server, PulseAudio or PipeWire; where there is none, by ALSA, with the feature `alsa`.
    Desk {
        /// What mixers show: `Wayferry: NAME @ HOST`.
        name: String,
    },
    /// In a file of 16-bit samples, with a header if its name ends in `.wav`. It contains what was played, at the pace
    /// of the caller's clock, without the silence between sounds.
    File(PathBuf),
}

/// What the user should know. Each change is told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// There is sound to play, and no sound server, or card, that would play it.
    NoServer {
        /// Which were tried, and why each did not do.
        tried: String,
    },
    /// Sound stopped in the middle of playing. A server or a card is tried again; a file is not.
    Lost {
        /// Why.
        why: String,
    },
    /// Sound is heard again.
    Back,
}

/// Plays the packets that it is handed; see the module. Dropping it ends the thread.
#[derive(Debug)]
pub struct Playback {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Playback {
    /// Starts the thread. Nothing is opened until sound comes.
    ///
    /// # Errors
    /// The system has no thread or no descriptors left; or the file is `-`.
    pub fn start(output: Output, now: impl Fn() -> Time + Send + 'static) -> io::Result<Self> {
        Self::start_in(Surroundings::current(), output, now)
    }

    /// As [`start`](Self::start), with the sound server that `surroundings` name.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_in(
        surroundings: Surroundings,
        output: Output,
        now: impl Fn() -> Time + Send + 'static,
    ) -> io::Result<Self> {
        let device = match output {
            Output::Desk { name } => {
                let desk = Desk::new(&name, surroundings.has_cards);
                let link = Link::new(surroundings);
                Device::Desk(Box::new(desk), Box::new(link), Cards::default())
            }
            Output::File(path) if path.as_os_str() == "-" => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "sound cannot be written to `-`"));
            }
            Output::File(path) => Device::File(Recorder::new(path)),
        };
        let shared = Arc::new(Shared::new()?);
        let run = Thread::new(Arc::clone(&shared), device);
        let thread = std::thread::Builder::new().name("wayferry-sound".into()).spawn(|| run.run(now))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Another flow begins, with an empty player. What was heard of the one before fades out.
    pub fn begin(&self, codec: Codec) {
        self.shared.order(Order::Begin(codec));
    }

    /// A packet of the current flow arrived.
    pub fn packet(&self, arrived: Time, packet: Packet) {
        self.shared.order(Order::Packet(arrived, packet));
    }

    /// The flow ends: silence after one fade; then the device is released.
    pub fn end(&self) {
        self.shared.order(Order::End);
    }

    /// What happens at the moment.
    pub fn report(&self) -> Report {
        self.shared.report()
    }

    /// Something that watches it.
    pub fn watcher(&self) -> Watcher {
        Watcher(Arc::clone(&self.shared))
    }

    /// Readable while a notice waits.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.shared.notices_fd()
    }

    /// The next notice, if one waits.
    pub fn poll_notice(&self) -> Option<Notice> {
        self.shared.take_notice()
    }
}

impl Ear for Playback {
    fn begin(&mut self, codec: Codec) {
        Self::begin(self, codec);
    }

    fn packet(&mut self, arrived: Time, packet: Packet) {
        Self::packet(self, arrived, packet);
    }
}

/// Watches a playback from elsewhere, without keeping it.
#[derive(Clone, Debug)]
pub struct Watcher(Arc<Shared>);

impl Watcher {
    /// What happens at the moment; at the end, what happened last.
    pub fn report(&self) -> Report {
        self.0.report()
    }
}

impl Drop for Playback {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(thread) = self.thread.take() {
            // It panics by a fault of its own alone, and that has been printed.
            let _ = thread.join();
        }
    }
}
