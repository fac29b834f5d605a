//! What a peer is allowed before it has proved who it is, and what afterwards.
//!
//! Everyone can reach a listener's port and, where a ticket's secret decides, complete a handshake. Until the session
//! says that the peer is [welcome](Standing::welcome), it may open one stream, and no more than [`SAID_MAX`] of what it
//! says are taken; so a stranger costs its place and little else. It does not decide who is welcome. Invariant: a peer
//! whose handshake is not complete never has more than the window for early data.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use noq::{Connection, VarInt};

use super::config::{CONNECTION_WINDOW, EARLY_WINDOW};
use crate::http3::CRITICAL;
use crate::identity::Returns;

/// How far a connection's peer is trusted.
pub(super) struct Standing {
    /// The handshake is complete: what comes is the peer's, and so is the end of the connection.
    proven: AtomicBool,
    /// The session, or the list of those whose certificates are known, lets it in.
    welcome: AtomicBool,
    /// What has been taken of what it says, while it is not welcome.
    said: AtomicU64,
    /// Streams that it may have open at once when it is welcome.
    streams: u32,
    /// It is a browser, which speaks HTTP/3.
    is_page: bool,
    /// Its tickets, which count when it is welcome.
    returns: Option<Arc<Returns>>,
}

impl Standing {
    /// Of an app side, whose handshake is complete before anything else happens.
    pub(super) fn of_app(streams: u32) -> Self {
        Self {
            proven: true.into(),
            welcome: true.into(),
            said: 0.into(),
            streams,
            is_page: false,
            returns: None,
        }
    }

    /// Of a peer that came to a listener.
    pub(super) fn of_stranger(streams: u32, returns: Arc<Returns>) -> Self {
        let returns = Some(returns);
        Self { proven: false.into(), welcome: false.into(), said: 0.into(), streams, is_page: false, returns }
    }

    /// Of a page that came to a listener, beside whose streams HTTP/3 has some of its own.
    pub(super) fn of_page(streams: u32) -> Self {
        let streams = streams.saturating_add(CRITICAL);
        Self {
            proven: false.into(),
            welcome: false.into(),
            said: 0.into(),
            streams,
            is_page: true,
            returns: None,
        }
    }

    /// Whether the end of the connection can only be the peer's doing, or this side's.
    pub(super) fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Acquire)
    }

    pub(super) fn is_welcome(&self) -> bool {
        self.welcome.load(Ordering::Acquire)
    }

    /// The handshake is complete.
    pub(super) fn prove(&self, connection: &Connection) {
        if !self.proven.swap(true, Ordering::AcqRel) {
            self.widen(connection);
        }
    }

    /// The peer is let in.
    pub(super) fn welcome(&self, connection: &Connection) {
        if !self.welcome.swap(true, Ordering::AcqRel) {
            if let Some(returns) = &self.returns {
                returns.keep();
            }
            self.widen(connection);
        }
    }

    fn widen(&self, connection: &Connection) {
        if !self.is_welcome() {
            return;
        }
        connection.set_receive_window(if self.is_proven() { CONNECTION_WINDOW } else { EARLY_WINDOW });
        connection.set_max_concurrent_uni_streams(self.streams.into());
        if self.is_page {
            // It opens no further one. But Firefox 153 opens the streams that waited for room when it may ask for more,
            // and never when it may open more of theirs.
            connection.set_max_concurrent_bi_streams((REQUESTS + 1).into());
        }
    }

    /// The peer said something.
    pub(super) fn hear(&self, bytes: usize) {
        if !self.is_welcome() {
            self.said.fetch_add(bytes as u64 + PIECE_COST, Ordering::AcqRel);
        }
    }

    /// Whether nothing more is to be taken now.
    pub(super) fn has_said_enough(&self) -> bool {
        !self.is_welcome() && self.said.load(Ordering::Acquire) >= SAID_MAX
    }
}

/// Bytes that a stranger may have on the way.
pub(super) const STRANGER_WINDOW: VarInt = VarInt::from_u32(4 << 10);

/// Streams that a page asks on: for the session.
pub(super) const REQUESTS: u32 = 1;

/// Streams that a stranger may open: the session's first.
pub(super) const STRANGER_STREAMS: u32 = 1;

/// What is taken of what a stranger says, with [`PIECE_COST`] for each piece: some windows, for the hello may be lost
/// and come again after what follows it.
const SAID_MAX: u64 = 16 << 10;

/// What a piece costs beside its bytes.
const PIECE_COST: u64 = 128;
