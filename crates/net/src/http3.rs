//! What WebTransport is made of: streams, datagrams, capsules and codes of HTTP/3 (draft-ietf-webtrans-http3).
//!
//! There is one session per connection. What is here takes the peer's streams apart and reads what ends a session; who
//! is let in, and what a session's streams carry, is for its users: [`endpoint`](crate::endpoint) and
//! [`quic`](crate::quic). Invariant: a stream of a kind that is not known is refused, and harms no session.

mod arrivals;
mod capsules;
mod codes;
mod demux;
mod wire;

pub(crate) use self::arrivals::{Arrivals, Settled};
pub(crate) use self::capsules::{Capsules, Close, Malformed};
pub(crate) use self::codes::{MESSAGE_ERROR, NO_ERROR, SETTINGS_ERROR, code_in, code_out};
pub(crate) use self::demux::{Bounds, Demux};
pub(crate) use self::wire::{close, datagram_header, stream_header, strip_datagram};

/// The application protocol of HTTP/3 (RFC 9114 §3.1).
pub(crate) const H3: &[u8] = b"h3";

/// Streams of HTTP/3 that a peer opens to send on: one for control and two of QPACK.
pub(crate) const CRITICAL: u32 = 3;
