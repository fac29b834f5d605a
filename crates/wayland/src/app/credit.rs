//! What the link takes now.
//!
//! Numbers only: who spends it, and on what first, is decided in `flush`.

use std::time::Duration;

use wayferry_proto::Time;

/// What the link takes now; what is handed over is taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Credit {
    /// Bytes of content, see [`wayferry_proto::Session::content_budget`].
    pub content: u64,
    /// Bytes of refinement, see [`wayferry_proto::Session::refinement_budget`].
    pub refinement: u64,
    /// Round-trip time; zero as long as it is not known.
    pub rtt: Duration,
    /// When anything last came from the display side, or was known to have arrived there.
    pub heard: Option<Time>,
    /// The link's rate in bytes per second, where it is known: what exceeds the credit may be lossy at first.
    pub rate: Option<u64>,
    /// It is known to lose some of what is sent, and that is repaired.
    pub loses: bool,
    /// Videos that share it, of all programs.
    pub videos: usize,
    /// Pixels that have been encoded in this turn, by all connections together. Once they are a slice, large content
    /// waits for the next turn, so that input need not.
    pub encoded: u64,
}

impl Credit {
    /// A link that takes anything.
    pub const ENDLESS: Self = Self {
        content: u64::MAX,
        refinement: u64::MAX,
        rtt: Duration::ZERO,
        heard: None,
        rate: None,
        loses: false,
        videos: 0,
        encoded: 0,
    };

    /// So much was handed over: it waits before everything that comes.
    pub(super) fn spend(&mut self, bytes: u64) {
        self.content = self.content.saturating_sub(bytes);
        self.refinement = self.refinement.saturating_sub(bytes);
    }
}

/// Bytes of content that count as small: about what the session sends before large content.
pub(super) const SMALL: u64 = 16 << 10;
