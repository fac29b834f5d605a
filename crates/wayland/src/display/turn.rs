//! What may be done in a turn of what takes long.

/// What all connections together may do in a turn of what takes long, so that input need not wait for more; what is
/// done is taken off. Bytes of memory that is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// For units: one that costs more than what is left is painted nevertheless, and the last one in this turn.
    pub paint: usize,
    /// For decompressing content.
    pub open: usize,
    /// What icons may take beside what they take already; others are left out.
    pub icons: u64,
    /// For units that workers paint: one that costs more than what is left is lent nevertheless, and the last one until
    /// there is room again.
    pub lend: usize,
}

impl Room {
    /// Everything at once.
    pub const ENDLESS: Self = Self { paint: usize::MAX, open: usize::MAX, icons: u64::MAX, lend: usize::MAX };
    pub(super) const NONE: Self = Self { paint: 0, open: 0, icons: 0, lend: 0 };
}

impl Default for Room {
    /// A few milliseconds' work.
    fn default() -> Self {
        Self { paint: 2 << 20, open: 1 << 20, icons: u64::MAX, lend: usize::MAX }
    }
}

/// A turn of one connection.
#[derive(Debug)]
pub(super) struct Turn {
    /// What may be done now of what takes long; nothing, but for within [`Connection::work`](super::Connection::work).
    pub(super) room: Room,
    /// Something was held since this turn began that needs more than is left of it.
    pub(super) is_over: bool,
    /// Workers paint as much as they may: what is to be lent to them waits until it is asked again.
    pub(super) is_busy: bool,
}

impl Default for Turn {
    fn default() -> Self {
        Self { room: Room::NONE, is_over: false, is_busy: false }
    }
}
