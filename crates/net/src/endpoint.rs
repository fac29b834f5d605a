//! QUIC endpoints for programs of any kind: raw connections, streams and datagrams, and WebTransport.
//!
//! Begin with an [`Engine`], the one thread that all of it runs on; then [`connect`], or bind a [`Listener`]. What may
//! have to wait is *polled* with a waker of the caller's, so that a run loop of any kind can own it: [`Ready`] collects
//! what woke, behind one file descriptor. There are no wayferry sessions in it, which are [`quic`](crate::quic)'s, and
//! no name resolution. Invariant: a poll that is not repeated loses nothing, and when a connection ends, every poll
//! that waits for it is woken and told why.

mod acceptor;
mod alert;
mod arrived;
mod clients;
mod config;
mod connect;
mod connection;
mod cutting;
mod datagram;
mod drain;
mod early;
mod engine;
mod failure;
mod frames;
mod lease;
mod link;
mod listen;
mod pieces;
mod probe;
mod readers;
mod ready;
mod receive;
mod runtime;
mod send;
mod slots;
mod sockets;
mod stash;
mod stats;
mod tickets;
mod tls;
pub mod web;

pub use self::config::{Config, Congestion};
pub use self::connect::{Target, connect};
pub use self::connection::Connection;
pub use self::drain::Drain;
pub use self::engine::{Engine, Pending};
pub use self::failure::{By, Failure};
pub use self::listen::{Accepted, Admission, Listener, ListenerStats, Retry};
pub use self::ready::{Ready, Token};
pub use self::receive::ReceiveStream;
pub use self::runtime::{Cork, promptly};
pub use self::send::SendStream;
pub use self::stats::{PathInfo, Stats};
pub use self::tickets::TicketStore;
pub use self::tls::{ClientTls, Clients, ServerTls, ServerTrust, self_signed};
