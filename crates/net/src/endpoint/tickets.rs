//! TLS tickets of many hosts, for resumption and early data.
//!
//! In memory only: rustls cannot write a ticket down. It gives a ticket only to the very configuration with which it
//! was got, so those are kept beside the tickets. Invariant: no ticket is given out twice, nor to another host or
//! another trust, and no more are kept than the limit.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, NamedGroup};
use tokio::sync::watch;

use super::{ClientTls, Failure};

/// Tickets, in memory only: what a client needs to come back to a server without a full handshake, and with early data.
/// Clones share them. Each is good for one connection. A ticket counts only for the server name and port, and the
/// trust, identity and protocols with which it was got.
#[derive(Clone)]
pub struct TicketStore(Arc<Mutex<Store>>);

#[derive(Default)]
struct Store {
    limit: usize,
    /// The newest last.
    tickets: VecDeque<(Scope, Tls13ClientSessionValue)>,
    groups: VecDeque<(Scope, NamedGroup)>,
    bases: VecDeque<([u8; 32], ClientConfig)>,
}

/// What a ticket is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scope(Arc<(String, u16, [u8; 32])>);

impl TicketStore {
    /// A store that keeps up to `limit` tickets, and forgets the oldest beyond that.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Mutex::new(Store { limit, ..Store::default() })))
    }

    /// How many there are now.
    pub fn len(&self) -> usize {
        self.lock().tickets.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The configuration that goes with the tickets for `tls`, and their scope at a host.
    pub(super) fn base(
        &self,
        tls: &ClientTls,
        host: &str,
        port: u16,
    ) -> Result<(ClientConfig, Scope), Failure> {
        let digest = tls.digest();
        let scope = Scope(Arc::new((host.to_owned(), port, digest)));
        let mut store = self.lock();
        if let Some((_, base)) = store.bases.iter().find(|(known, _)| *known == digest) {
            return Ok((base.clone(), scope));
        }
        let base = tls.base()?;
        store.bases.push_back((digest, base.clone()));
        if store.bases.len() > BASES_MAX {
            store.bases.pop_front();
        }
        Ok((base, scope))
    }

    /// The tickets of one scope, for rustls and one connection, and whether that has got one itself; they are given out
    /// only if `use_them`.
    pub(super) fn shelf(
        &self,
        scope: Scope,
        use_them: bool,
    ) -> (Arc<dyn ClientSessionStore>, watch::Receiver<bool>) {
        let (came, known) = watch::channel(false);
        (Arc::new(Shelf { store: self.clone(), scope, use_them, came }), known)
    }

    pub(super) fn has(&self, scope: &Scope) -> bool {
        self.lock().tickets.iter().any(|(known, _)| known == scope)
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows how many, never one.
impl fmt::Debug for TicketStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketStore").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Shelf {
    store: TicketStore,
    scope: Scope,
    use_them: bool,
    /// Whether a ticket has come by it.
    came: watch::Sender<bool>,
}

/// TLS 1.2 is not offered, so there is nothing of it to keep.
impl ClientSessionStore for Shelf {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        let mut store = self.store.lock();
        store.groups.retain(|(known, _)| *known != self.scope);
        store.groups.push_back((self.scope.clone(), group));
        if store.groups.len() > store.limit {
            store.groups.pop_front();
        }
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.store.lock().groups.iter().find(|(known, _)| *known == self.scope).map(|(_, group)| *group)
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut store = self.store.lock();
        store.tickets.push_back((self.scope.clone(), ticket));
        if store.tickets.len() > store.limit {
            store.tickets.pop_front();
        }
        drop(store);
        self.came.send_replace(true);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        if !self.use_them {
            return None;
        }
        let mut store = self.store.lock();
        let newest = store.tickets.iter().rposition(|(known, _)| *known == self.scope)?;
        store.tickets.remove(newest).map(|(_, ticket)| ticket)
    }
}

/// Configurations kept. Forgetting one makes its tickets worthless, no more.
const BASES_MAX: usize = 16;
