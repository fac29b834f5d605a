//! What the handle and the tasks of one connection share. It does nothing by itself.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use noq::Connection;
use tokio::sync::Notify;
use wayferry_proto::CloseReason;

use super::intake::Stops;
use super::meter::Meter;
use super::standing::Standing;
use crate::inbox::{Drain, Inbox};
use crate::outbox::Outbox;
use crate::wake::Wake;

/// What the handle and the tasks of one connection share.
pub(super) struct Shared {
    pub(super) inbox: Inbox,
    pub(super) outbox: Arc<Outbox>,
    pub(super) wake: Arc<Wake>,
    pub(super) meter: Arc<Meter>,
    pub(super) stops: Stops,
    /// The inbox holds a [`STEP`] more or less: for the one who widens and narrows the window.
    pub(super) level: Arc<Notify>,
    /// Another socket is worth a try: for the side that may move.
    pub(super) stuck: Notify,
    /// The inbox has room again: for the readers.
    pub(super) room: Arc<Notify>,
    /// Why this side closed the connection.
    pub(super) ours: Mutex<Option<CloseReason>>,
    pub(super) standing: Standing,
    /// Bytes that wait in the session.
    pub(super) held: AtomicU64,
}

impl Shared {
    pub(super) fn new(standing: Standing) -> std::io::Result<Arc<Self>> {
        let (wake, level, room) = (Arc::new(Wake::new()?), Arc::new(Notify::new()), Arc::new(Notify::new()));
        let outbox = Arc::new(Outbox::new(Arc::clone(&wake)));
        let call = Box::new({
            let (level, room) = (Arc::clone(&level), Arc::clone(&room));
            move || {
                level.notify_one();
                room.notify_waiters();
            }
        });
        let drain = Drain { step: STEP, when_empty: false, call };
        Ok(Arc::new(Self {
            inbox: Inbox::new(Arc::clone(&wake), drain),
            meter: Meter::new(Arc::clone(&outbox)),
            outbox,
            wake,
            stops: Stops::default(),
            level,
            stuck: Notify::new(),
            room,
            ours: Mutex::default(),
            standing,
            held: AtomicU64::new(0),
        }))
    }

    /// The peer is let in: the readers that waited go on, and so do streams beside its first.
    pub(super) fn welcome(&self, connection: &Connection) {
        self.standing.welcome(connection);
        self.room.notify_waiters();
        self.level.notify_one();
    }
}

/// How much more or less has to wait before the window is changed.
pub(super) const STEP: u64 = 1 << 20;
