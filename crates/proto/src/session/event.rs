//! What a session tells its caller.

use bytes::Bytes;

use crate::{ChannelId, CloseReason, ClosedBy, Control, Header, Hello, RemoteChannelId, UpdateHeader};

/// Something that happened; each is reported once, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer's hello came and fits. Nothing of its carrier but warnings and the end comes before it. On the app
    /// side, a peer that is [resuming](Hello::resuming) waits for what becomes of its [candidate](crate::Candidate); it
    /// and this side's channels say nothing until then.
    Ready {
        /// What it said.
        peer: Hello,
    },
    /// A message of the main channel that is not the session's own: snapshot, program ended, exit.
    Control(Control),
    /// The peer opened a long-lived channel: Wayland, events or pipe.
    Opened {
        /// Its handle.
        channel: RemoteChannelId,
        /// What it is.
        header: Header,
    },
    /// A message of a Wayland or event channel.
    Message {
        /// The channel.
        channel: RemoteChannelId,
        /// What it is.
        header: Header,
        /// The message; ≤ [`MAX_MESSAGE`](crate::MAX_MESSAGE) bytes.
        bytes: Bytes,
    },
    /// Bytes of a pipe. To be answered by [`Session::consumed`](crate::Session::consumed) once they are out of memory.
    Data {
        /// The channel.
        channel: RemoteChannelId,
        /// What it is.
        header: Header,
        /// The bytes; never empty.
        bytes: Bytes,
    },
    /// The peer ended a long-lived channel; nothing follows on it.
    Finished {
        /// The channel.
        channel: RemoteChannelId,
        /// What it was.
        header: Header,
    },
    /// The peer gave a long-lived channel up; nothing follows on it.
    Reset {
        /// The channel.
        channel: RemoteChannelId,
        /// What it was.
        header: Header,
        /// Why.
        code: u32,
    },
    /// The peer does not want one of our channels any more; it is gone.
    Stopped {
        /// The channel.
        channel: ChannelId,
        /// What it was.
        header: Header,
        /// Why.
        code: u32,
    },
    /// A blob, whole.
    Blob {
        /// Its name.
        hash: u128,
        /// Its bytes.
        bytes: Bytes,
    },
    /// A chunk of an update, as soon as it is there: in any order, before the [`Event::Update`] that tells that all
    /// are. An update that comes again after the loss of a carrier brings its chunks again.
    Chunk {
        /// Of which update.
        header: UpdateHeader,
        /// Its place in the update's table.
        index: usize,
        /// The chunk; ≤ [`MAX_CHUNK`](crate::MAX_CHUNK) bytes.
        bytes: Bytes,
    },
    /// An update, whole: its chunks in the order of its table.
    Update {
        /// Which one.
        header: UpdateHeader,
        /// The chunks; each ≤ [`MAX_CHUNK`](crate::MAX_CHUNK) bytes.
        chunks: Vec<Bytes>,
    },
    /// A packet on a channel of sound; ≤ [`MAX_SOUND`](crate::MAX_SOUND) bytes. Those of one channel come in order.
    Sound {
        /// The packet.
        bytes: Bytes,
    },
    /// A datagram of sound, each at most once if at all.
    Datagram {
        /// What the peer gave [`Session::send_datagram`](crate::Session::send_datagram).
        bytes: Bytes,
    },
    /// Something odd that did no harm; worth a line in the log.
    Warning(String),
    /// The carrier is gone, the session is not: it keeps what it has to say and waits for another carrier. See
    /// [`Session::resuming`](crate::Session::resuming) and [`Candidate::succeed`](crate::Candidate::succeed).
    Suspended {
        /// Why.
        reason: CloseReason,
    },
    /// All channels go on over this carrier; those that one side has given up or stopped meanwhile are told next.
    Resumed,
    /// The app side knows nothing of the session that the display wants to go on with. All channels and messages of it
    /// are void, in both directions and without a further event; this is a new session.
    Declined,
    /// The session is over; the last event.
    Closed {
        /// Why.
        reason: CloseReason,
        /// Who ended it.
        by: ClosedBy,
    },
}
