//! The one small trait between a run loop and what moves its bytes.

use std::os::fd::BorrowedFd;

use wayferry_proto::{Arrival, LinkState, Transmit};

/// A link to the peer, used by one thread.
///
/// The run loop polls [`Carrier::wake_fd`] for input. When it is readable: [`Carrier::clear_wake`], then
/// [`Carrier::poll_arrival`] until it gives `None`, then hand over what [`Carrier::link`] has room for. In this
/// order no wake-up is lost.
///
/// Memory: arrivals are bounded by the carrier (16 MiB on a byte stream, 32 MiB on QUIC, 64 MiB when they come in tiny
/// pieces), which then lets the link's own flow control pause the peer. What is handed to
/// [`Carrier::transmit`] is bounded by the session: content by [`LinkState::unsent`] against
/// [`LinkState::window`], pipes by their credits; the rest is small. A carrier that is handed more than
/// [`QUEUE_LIMIT`] bytes that it cannot send ends with [`Arrival::Closed`] instead of growing.
///
/// Dropping a carrier ends it: its threads are joined, its fds closed, and the peer sees the end. After
/// [`Transmit::Close`] this takes up to one second on a link that does not answer; otherwise it is immediate.
pub trait Carrier: Send {
    /// Takes one transmit; never blocks and never fails. A link that is gone says so in [`Arrival::Closed`].
    fn transmit(&mut self, transmit: Transmit);

    /// The next thing that came from the peer. [`Arrival::Closed`] is the last one.
    fn poll_arrival(&mut self) -> Option<Arrival>;

    /// What the link can carry now.
    fn link(&self) -> LinkState;

    /// Readable when an arrival is queued, or when there is room for content again.
    fn wake_fd(&self) -> BorrowedFd<'_>;

    /// Makes [`Carrier::wake_fd`] unreadable until the next reason to wake.
    fn clear_wake(&self);

    /// So many bytes of what was taken wait in the session for what is still to come: the peer may have as much less on
    /// the way.
    fn hold(&self, _bytes: u64) {}

    /// The session lets the peer in. Until then a carrier that anybody can come on allows its peer next to nothing.
    fn welcome(&self) {}

    /// Drops a carrier whose link is lost: no caller waits for its last packets to leave, as the end of a program does.
    fn abandon(self: Box<Self>) {}
}

/// Bytes handed over and not sent, of all classes, at which a carrier gives up.
pub const QUEUE_LIMIT: u64 = 128 << 20;
