//! What happens in a session, as data: for a user's eyes, for a log, for a program that drives this one.
//!
//! It has no words for it and writes nothing; a [`Reporter`] takes each event to where that is done.
//! Texts in it may be a peer's or a program's: they are made safe where they are written. `docs/events.md` lists all,
//! and a test compares. Invariant: reporting never blocks and never fails.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::error::Error;

/// What happened.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each field is named for what it holds, and docs/events.md says it")]
pub enum SessionEvent {
    /// App side: a display was let in, perhaps as a viewer, which sends no input.
    DisplayAttached { viewer: bool },
    /// App side: the display's carrier is lost, and the display may come back on another.
    DisplayAway { reason: String },
    /// App side: the display came back on another carrier.
    DisplayBack,
    /// App side: the display is gone, and no user asked for it.
    DisplayLost {
        #[serde(serialize_with = "text")]
        error: Error,
    },
    /// App side: a candidate was not let in.
    DisplayRejected {
        #[serde(serialize_with = "text")]
        error: Error,
    },
    /// App side: a viewer is gone, and no user asked for it.
    ViewerLost { reason: String },
    /// App side: no display came back within `--linger`; the session ends.
    DisplayMissed,
    /// App side: the display ended the session.
    DisplayEnded,
    /// App side: the session's program has ended; programs that it started go on.
    ProgramLeftOthers,
    /// App side: no more programs are accepted for now; they wait.
    ProgramsWait { reason: String },
    /// App side: a program cannot be served, or not recorded as asked.
    ProgramRefused { reason: String },
    /// App side: the session's program cannot be started.
    ProgramNotStarted {
        #[serde(serialize_with = "text")]
        error: Error,
    },
    /// Either side: the connection of a program ended, which was not the program's wish.
    ProgramEnded { reason: String },
    /// App side: a program broke the Wayland protocol; its connection ended.
    ProgramViolation {
        #[serde(serialize_with = "text")]
        error: Error,
    },
    /// App side: the X11 bridge failed.
    Xwayland { reason: String },
    /// Either side: something of the peer's was ignored.
    Warning { text: String },
    /// Either side: the figures that `--stats` asks for.
    Stats { line: String },
    /// Either side: the system gives a socket smaller buffers than were asked for.
    UdpBuffer { text: String },
    /// Either side: the trace is not written any further.
    TraceEnded { reason: String },
    /// App side: UDP cannot be listened on; displays come on the byte stream only.
    NoQuic { reason: String },
    /// App side: the control socket is gone and cannot be made anew.
    ControlLost { reason: String },
    /// Either side: `wayferry info` cannot show this session.
    InfoUnavailable { reason: String },
    /// Display side: the carrier is lost, and another is looked for.
    ConnectionLost { reason: String },
    /// Display side: the session goes on, on another carrier.
    Back,
    /// Display side: no answer on QUIC; the session goes the other way, and QUIC is tried again now and then.
    QuicUnreachable { port: u16, reason: String },
    /// Display side: the session goes over QUIC from now on; the user was told before that it could not, or not.
    QuicReached { again: bool },
    /// Display side: nothing comes over QUIC any more, and the session goes the other way.
    QuicSilent,
    /// Display side: nothing has come from the host for so many seconds.
    Silent { seconds: u64 },
    /// Display side: the host was heard again after a silence.
    Heard,
    /// Display side: another display shows the session now.
    Replaced,
    /// Display side: the session knows this display no more: another shows it now, or this one was detached.
    Dismissed,
    /// Either side: there is no sound server, the desk's or the session's own.
    NoSound { reason: String },
    /// App side: the GPU that was asked for cannot be used; programs draw in software.
    NoGpu { reason: String },
    /// Display side: sound stopped in the middle of playing.
    SoundLost { reason: String },
    /// Display side: sound is heard again.
    SoundBack,
    /// Display side: a program of the session records the microphone here.
    MicrophoneOpen,
    /// Display side: none does any more.
    MicrophoneClosed,
    /// Display side: a program wants to record the microphone, and that cannot be had.
    NoMicrophone { reason: String },
    /// Display side: an address was opened here for a program of the session.
    UrlOpened { url: String },
    /// Display side: a program of the session wanted an address opened here, and it was not.
    UrlRefused { url: String, reason: String },
    /// Either side: a file of the other side's is here.
    FileKept { path: PathBuf, bytes: u64 },
    /// Either side: a file of the other side's was not kept.
    FileRefused { name: String, reason: String },
    /// Display side: a file that was dropped on a program's window is sent there.
    FileDropping { name: String, bytes: u64 },
    /// Display side: so many bytes of that file have been passed on; `others` are on their way besides.
    FileProgress { name: String, done: u64, bytes: u64, others: u64 },
    /// Display side: a file that was dropped on a program's window is there, at this path.
    FileDropped { name: String, path: String, bytes: u64 },
    /// Display side: a file that was dropped on a program's window is not there.
    FileNotDropped { name: String, reason: String },
    /// Either side: notifications of programs are not shown: there is no server for them at the desk, or the session's
    /// own has ended.
    NoNotifications { reason: String },
    /// Either side: icons of programs are not shown in the tray: the desk has none, or the session has no watcher.
    NoTray { reason: String },
    /// Display side: a program cannot be connected to the compositor.
    CompositorRefused { reason: String },
}

/// As it reads.
fn text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Takes events to where they are written. Clones lead to the same place.
#[derive(Clone)]
pub struct Reporter(Arc<dyn Fn(SessionEvent) + Send + Sync>);

impl Reporter {
    /// Gives every event to `take`, which must not block.
    pub fn new(take: impl Fn(SessionEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// Takes an event.
    pub fn report(&self, event: SessionEvent) {
        (self.0)(event);
    }
}
