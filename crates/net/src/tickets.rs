//! TLS tickets: what a display side needs to come back without a full handshake.
//!
//! In memory only, of one host only, each good for one attempt. An attempt gets a ticket only when it is allowed one,
//! so that a race between addresses, or a long outage, does not use them all up. Invariant: no ticket is given out
//! twice, and no more than [`TICKETS_MAX`] are kept.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// The tickets of one host.
#[derive(Default)]
pub(crate) struct Tickets(Mutex<State>);

#[derive(Default)]
struct State {
    /// The newest last.
    tickets: VecDeque<Tls13ClientSessionValue>,
    group: Option<NamedGroup>,
    allowed: bool,
}

impl Tickets {
    /// Whether handshakes that begin from now on may take one.
    pub(crate) fn allow(&self, allowed: bool) {
        self.lock().allowed = allowed;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().tickets.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows how many, never one.
impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").field("count", &self.lock().tickets.len()).finish_non_exhaustive()
    }
}

/// The host's name is not looked at: there is one. TLS 1.2 is not offered, so there is nothing of it to keep.
impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.lock().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.lock().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut state = self.lock();
        state.tickets.push_back(ticket);
        if state.tickets.len() > TICKETS_MAX {
            state.tickets.pop_front();
        }
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut state = self.lock();
        if state.allowed { state.tickets.pop_back() } else { None }
    }
}

/// Tickets kept: those of two connections.
const TICKETS_MAX: usize = 8;
