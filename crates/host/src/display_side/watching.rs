//! The session's own connection to the compositor, which describes outputs, seats and keymaps.
//!
//! The description is kept, to be sent again to a session that has forgotten this display. Invariant: what was sent
//! last is what the compositor said last.

use std::collections::VecDeque;
use std::os::fd::AsFd;

use bytes::Bytes;
use wayferry_proto::{Control, Session, Time};
use wayferry_wayland::blob::Sent;
use wayferry_wayland::display::{Config, Connection, Watcher};
use wayferry_wayland::wire::Socket;

use super::compositor::{turn_watcher, watcher_blobs};
use super::interest;
use crate::edge::part::{Hub, Part};
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::program_connection::send_blob;

/// See the module.
pub(super) struct Watching {
    /// `None` once a program has it.
    watcher: Option<(Socket, Watcher)>,
    snapshot: Bytes,
    /// By hash, the oldest first.
    blobs: VecDeque<(u128, Vec<u8>)>,
    /// What of it is new, and is to be told.
    new_blobs: Vec<u128>,
    is_new: bool,
}

impl Watching {
    /// Goes on with what was watched; all of it is new, unless the session has been told the snapshot.
    pub(super) fn new(
        watcher: Option<(Socket, Watcher)>,
        (first, is_told): (Bytes, bool),
        blobs: Vec<(u128, Vec<u8>)>,
    ) -> Self {
        let new_blobs = blobs.iter().map(|(hash, _)| *hash).collect();
        Self { watcher, snapshot: first, blobs: blobs.into_iter().collect(), new_blobs, is_new: !is_told }
    }

    /// The session has forgotten what it was told.
    pub(super) fn tell_again(&mut self) {
        self.new_blobs = self.blobs.iter().map(|(hash, _)| *hash).collect();
        self.is_new = true;
    }

    /// Tells the session what is new.
    pub(super) fn tell(&mut self, session: &mut Session, sent: &mut Sent) {
        for hash in std::mem::take(&mut self.new_blobs) {
            if let Some((_, bytes)) = self.blobs.iter().find(|(known, _)| *known == hash) {
                send_blob(session, sent, hash, bytes.clone());
            }
        }
        // Only now: what is new must have been told before it may go.
        while self.blobs.len() > MAX_ANNOUNCED {
            self.blobs.pop_front();
        }
        if std::mem::take(&mut self.is_new) {
            // Cannot fail: the encoder keeps it below the limit.
            let _ = session.control(&Control::Snapshot(self.snapshot.clone()));
        }
    }

    /// Hands over the connection, for the only program there is.
    pub(super) fn take(&mut self, config: Config) -> Option<(Socket, Connection)> {
        self.watcher.take().map(|(socket, watcher)| (socket, watcher.into_connection(config)))
    }

    /// Writes what waits. What goes wrong is seen when the socket is read.
    pub(super) fn flush(&mut self) {
        if let Some((socket, watcher)) = &mut self.watcher {
            let _ = socket.flush(watcher.output());
        }
    }
}

impl Part for Watching {
    fn interests<'a>(&'a mut self, _now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        if let Some((socket, watcher)) = &mut self.watcher {
            let socket: &Socket = socket;
            interests.add_borrowed(socket.as_fd(), interest(watcher.output()));
        }
    }

    fn turn(&mut self, now: Time, _hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        let Some((socket, watcher)) = &mut self.watcher else { return Ok(()) };
        if ready.flags(socket.as_fd()).is_empty() {
            return Ok(());
        }
        let snapshot = turn_watcher(socket, watcher, now)?;
        for (hash, bytes) in watcher_blobs(watcher) {
            self.blobs.retain(|(known, _)| *known != hash);
            self.blobs.push_back((hash, bytes));
            self.new_blobs.push(hash);
        }
        if let Some(snapshot) = snapshot {
            self.snapshot = snapshot;
            self.is_new = true;
        }
        Ok(())
    }
}

/// Keymaps that are told again to a session that has forgotten.
const MAX_ANNOUNCED: usize = 16;
