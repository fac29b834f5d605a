//! One program's connection on the app side, and what it shares with the others.
//!
//! The run loop in [`crate::app_side`] decides when; here is how a socket's bytes reach the program's core, and how
//! what the core wants reaches the session. Invariant: one call reads a bounded amount.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::event::PollFlags;
use wayferry_proto::{ChannelId, ConnectionId, Header, Session, Time};
use wayferry_wayland::Update;
use wayferry_wayland::app::Connection;
use wayferry_wayland::blob::{Kept, Sent};
use wayferry_wayland::wire::{ReadState, Socket};

use crate::edge::part::{Hub, Part};
use crate::edge::recorder::Recorder;
use crate::edge::wait::Interests;
use crate::settings::Compress;
use crate::stats::Counters;
use crate::trace::SideTrace;

/// Contents that messages name by hash: those received from the peer, and the hashes of those sent to it.
#[derive(Default)]
pub(crate) struct Blobs {
    pub(crate) kept: Kept,
    pub(crate) sent: Sent,
}

/// One program's connection.
pub(crate) struct ProgramConnection {
    /// Its number among the programs of the session, the same at every display.
    pub(crate) number: u32,
    pub(crate) socket: Socket,
    pub(crate) core: Connection,
    pub(crate) channel: ChannelId,
    /// Bytes handed to the session since nothing waited for the link.
    pub(crate) handed: u64,
    pub(crate) recorder: Option<Recorder>,
    /// It is the X11 bridge: it shows other programs' windows, and none once they are gone.
    pub(crate) is_bridge: bool,
    /// It is not read, because it has filled the link.
    pub(crate) held: bool,
}

impl ProgramConnection {
    /// Reads a bounded amount and handles it.
    pub(crate) fn read(&mut self, now: Time) {
        for _ in 0..MAX_READS {
            let buffer = self.recorder.as_mut().map(|recorder| &mut recorder.buffer);
            let state = self.socket.read_into(buffer.unwrap_or(self.core.input()));
            if let Some(recorder) = &mut self.recorder {
                recorder.pass_on(now, self.core.input());
            }
            self.core.process(now);
            match state {
                Ok(ReadState::Progress) if !self.core.stalled() => {}
                Ok(ReadState::Progress | ReadState::WouldBlock) => return,
                Ok(ReadState::Closed) | Err(_) => return self.core.on_hang_up(),
            }
        }
    }

    /// Whether it is read from now on, beside what its core says: not while it has filled the link.
    pub(crate) fn hold_back(&mut self, now: Time, held: bool) {
        self.held = held;
        self.core.set_read(now, self.is_read());
    }

    fn is_read(&self) -> bool {
        !self.held && !self.core.stalled()
    }

    /// Writes what waits, as far as the program takes it.
    pub(crate) fn write(&mut self) {
        if let Err(error) = self.socket.flush(self.core.output())
            && error.kind() != std::io::ErrorKind::BrokenPipe
        {
            self.core.on_hang_up();
        }
    }

    /// What to poll the socket for.
    fn interest(&mut self) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, self.is_read());
        flags.set(PollFlags::OUT, !self.core.output().is_empty());
        flags
    }
}

/// All programs. They are read by the side, which measures that.
impl Part for BTreeMap<ConnectionId, ProgramConnection> {
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        for program in self.values_mut() {
            interests.until(program.core.next_timeout());
            // The carrier wakes for content only.
            interests.until(program.held.then(|| now + HELD_LOOK));
            let flags = program.interest();
            // A hang-up of a program that is not to be read would be reported again and again.
            if !flags.is_empty() {
                interests.add(&program.socket, flags);
            }
        }
    }
}

/// Sends new pixels of a window on a stream of their own.
pub(crate) fn send_update(
    session: &mut Session,
    counters: &mut Counters,
    trace: &mut SideTrace,
    id: ConnectionId,
    update: Update,
) -> Result<(), wayferry_proto::Error> {
    let header = update.header(id);
    let bytes = session.send_content(header, update.chunks, update.worth)?;
    counters.updates += 1;
    counters.content_bytes += bytes;
    trace.handed(&header, bytes);
    Ok(())
}

/// Sends a blob unless the peer has it.
pub(crate) fn send_blob(session: &mut Session, sent: &mut Sent, hash: u128, bytes: Vec<u8>) {
    let Ok(length) = u32::try_from(bytes.len()) else { return };
    if length > wayferry_proto::MAX_BLOB || !sent.must_send(hash, bytes.len()) {
        return;
    }
    let channel = session.open(Header::Blob { hash, length });
    session.write(channel, bytes.into());
    session.finish(channel);
}

/// What the user allowed and the display understands.
pub(crate) fn pixel_compression(asked: Compress, session: &Session) -> wayferry_pixels::Compression {
    use wayferry_proto::Compression as Agreed;
    match (session.compression(), asked) {
        (Agreed::Zstd, Compress::Zstd(level)) => wayferry_pixels::Compression::Zstd(level),
        (Agreed::Zstd, _) => wayferry_pixels::Compression::Zstd(1),
        (Agreed::Lz4, _) => wayferry_pixels::Compression::Lz4,
        (Agreed::None, _) => wayferry_pixels::Compression::None,
    }
}

/// How often a program that is held back is checked.
const HELD_LOOK: Duration = Duration::from_millis(10);
/// Reads of one socket in one turn: 64 KiB.
const MAX_READS: usize = 16;

/// Programs of a session at once, on either side. On the app side more wait in the socket's queue; a host that shows
/// more is refused them.
pub(crate) const MAX_PROGRAMS: usize = 100;
/// Stop code: no such connection.
pub(crate) const STOP_UNKNOWN: u32 = 3;
