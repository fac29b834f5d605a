//! What passes between a [`Session`](crate::Session) and what moves its bytes.
//!
//! A carrier opens one-way streams, writes to them by priority, and tells what arrived in any order. These are plain
//! values: this crate contains no carrier. Invariant: a stream's id is never used twice in its direction.

use std::time::Duration;

use bytes::Bytes;

use crate::{CloseReason, Priority, StreamId};

/// What the carrier has to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// Open a one-way stream to the peer.
    Open {
        /// Its id, chosen by the session: 0, 1, 2, … in the order of opening. A carrier with numbers of its own keeps
        /// them equal, for repair rows may name a stream before its header has come; so a stream that could not be
        /// opened or was given up uses its number up.
        stream: StreamId,
        /// Its priority; see [`Priority`].
        priority: Priority,
    },
    /// Append bytes to an open stream.
    Data {
        /// The stream.
        stream: StreamId,
        /// What to append; may be empty when `finish` is set.
        bytes: Bytes,
        /// Nothing follows: end the stream after these bytes.
        finish: bool,
    },
    /// Change the priority of what is not sent yet.
    Prioritise {
        /// The stream; one that the carrier does not hold any more is to be ignored.
        stream: StreamId,
        /// The new priority.
        priority: Priority,
    },
    /// Give a stream up; what is not sent yet is dropped.
    Reset {
        /// The stream; one that the carrier does not hold any more is to be ignored.
        stream: StreamId,
        /// Why.
        code: u32,
    },
    /// Tell the peer that one of its streams is not wanted any more.
    Stop {
        /// The peer's stream.
        stream: StreamId,
        /// Why.
        code: u32,
    },
    /// Send this beside all streams, once: it may be lost. Nothing happens where the carrier has no datagrams, or the
    /// bytes exceed [`LinkState::datagram`].
    Datagram {
        /// All of it.
        bytes: Bytes,
    },
    /// End the connection; nothing follows.
    Close {
        /// See [`CloseReason::to_wire`].
        code: u32,
        /// See [`CloseReason::to_wire`].
        reason: String,
    },
}

/// What the carrier tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Bytes of a stream that the peer opened; in any order, repeats allowed.
    Data {
        /// The peer's stream, by the carrier's own number: best its index (0, 1, 2, … in the order of opening).
        stream: StreamId,
        /// Where in the stream they belong.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// The peer ended a stream. May come before its last bytes.
    Finished {
        /// The peer's stream.
        stream: StreamId,
        /// Its whole length in bytes.
        length: u64,
    },
    /// The peer gave a stream up.
    Reset {
        /// The peer's stream.
        stream: StreamId,
        /// Why.
        code: u32,
    },
    /// The peer does not want one of our streams any more.
    Stopped {
        /// Our stream.
        stream: StreamId,
        /// Why.
        code: u32,
    },
    /// The peer has everything of one of our streams that was ended. A carrier need not tell.
    Acknowledged {
        /// Our stream.
        stream: StreamId,
    },
    /// A stream could not be opened. The carrier returns, one by one and in order, each [`Transmit::Data`] that it was
    /// or will be given for it; the session sends them through the main channel. No stream that was to be opened later
    /// has left before, for it may repair this one.
    OpenFailed {
        /// Our stream.
        stream: StreamId,
        /// As given.
        bytes: Bytes,
        /// As given.
        finish: bool,
    },
    /// The peer sent a datagram.
    Datagram {
        /// All of it.
        bytes: Bytes,
    },
    /// The connection is over. [`CloseReason::from_wire`] when the peer closed it.
    Closed {
        /// Why.
        reason: CloseReason,
    },
}

impl Arrival {
    /// Whether it is the carrier's own word, and nothing that was heard of the peer.
    pub(crate) fn is_of_carrier(&self) -> bool {
        match self {
            Self::OpenFailed { .. } | Self::Acknowledged { .. } => true,
            Self::Closed { reason } => reason.is_of_link(),
            _ => false,
        }
    }
}

/// What the carrier knows of its link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkState {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Mean deviation of round trips from that.
    pub rtt_deviation: Duration,
    /// The least round-trip time of the path in use: what it is without a queue.
    pub base_rtt: Duration,
    /// How long packets wait in the path's queue now.
    pub queue_delay: Duration,
    /// Most bytes of one stream in a packet; `None` where there are no packets: on a byte stream.
    pub payload: Option<u16>,
    /// Rows on streams are in vain: the peer reads each stream in order only, or the two do not count streams alike.
    pub in_order: bool,
    /// Most bytes of a datagram; 0 where the carrier or the peer has none.
    pub datagram: u16,
    /// How many bytes may be in flight.
    pub window: u64,
    /// Bytes of content and bulk that the carrier was given and has not sent once.
    pub unsent: u64,
    /// Nothing of what the carrier was given, of any class, waits to be sent.
    pub idle: bool,
    /// Estimated rate of the bottleneck in bytes per second.
    pub rate: Option<u64>,
    /// Bytes sent, with all overhead that the carrier knows.
    pub sent_bytes: u64,
    /// Bytes received, likewise.
    pub received_bytes: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// In how many runs without a gap those were sent.
    pub lost_runs: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets acknowledged; with those lost, all whose fate is known. On a byte stream, acknowledgements: each tells
    /// that the peer is there.
    pub acked_packets: u64,
}

impl LinkState {
    /// How many bytes of content may wait: what the link takes while the run loop is busy otherwise. More would only
    /// get old on its way. Of a larger update the rest waits in the session, where newer content can still take its
    /// place.
    pub fn ahead(&self) -> u64 {
        let window = self.window.max(MIN_WINDOW);
        self.rate.map_or(window, |rate| (rate / AHEAD_PER_SECOND).max(MIN_AHEAD).min(window))
    }

    /// The rate that a link of packets is taken to have before it is known: a window in each round trip. `None` for a
    /// link that does not tell, or has not after a hundred packets.
    pub fn expected_rate(&self) -> Option<u64> {
        let guess = || {
            self.payload.filter(|_| self.acked_packets < SOON)?;
            let trip = Some(self.rtt.as_micros() as u64).filter(|micros| *micros > 0)?;
            Some(self.window.max(MIN_WINDOW).saturating_mul(1_000_000) / trip)
        };
        self.rate.or_else(guess)
    }

    /// How many bytes of what only makes content better may wait: what the link takes in 8 ms, for fresh content may
    /// come at any moment and waits behind them. At least about a packet.
    pub fn aside(&self) -> u64 {
        let ahead = self.ahead();
        self.rate.map_or(ahead / 5, |rate| (rate / ASIDE_PER_SECOND).max(MIN_ASIDE)).min(ahead)
    }
}

/// Packets after whose acknowledgement a link's rate is known, if it ever is.
const SOON: u64 = 100;
/// A window below this is taken for this many bytes, so that something can begin.
pub(crate) const MIN_WINDOW: u64 = 64 << 10;
/// The carrier is given what the link takes in one part in so many of a second: 40 ms, two turns with much to encode.
/// With half of that, the longest gaps of a stream at 1 % loss grow from 3.4 to 4.1 ms in the simulation.
const AHEAD_PER_SECOND: u64 = 25;
/// As before for refinement: 8 ms.
const ASIDE_PER_SECOND: u64 = 125;
/// Bytes of refinement that the carrier is given however slow the link is.
const MIN_ASIDE: u64 = 1200;
/// Bytes that the carrier is given however slow the link is.
const MIN_AHEAD: u64 = 16 << 10;
