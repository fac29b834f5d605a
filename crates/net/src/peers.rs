//! Whom a listener lets in.
//!
//! A decision by fingerprint alone; TLS proves elsewhere that the peer holds the key. It ends no connection: a
//! certificate that is dismissed keeps those that it has. Invariant: a list never names more than [`ADMITTED_MAX`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::identity::Fingerprint;

/// Which certificates a listener accepts.
#[derive(Clone, Debug)]
pub enum Peers {
    /// Only this one: ssh has told us whom to expect.
    Pinned(Fingerprint),
    /// Those on a list that may change while the listener runs.
    Listed(Admitted),
    /// Any, because a ticket does not know who will use it: the session checks the ticket's secret before anything
    /// else happens.
    Secret,
}

impl Peers {
    /// Whether a certificate may come in, now.
    pub(crate) fn admit(&self, fingerprint: Fingerprint) -> bool {
        match self {
            Self::Pinned(pinned) => *pinned == fingerprint,
            Self::Listed(admitted) => admitted.contains(fingerprint),
            Self::Secret => true,
        }
    }
}

/// A list of certificates that any of its clones may change; all see the change at once. Handshakes and returns that
/// come after it obey it.
#[derive(Clone, Debug, Default)]
pub struct Admitted(Arc<Mutex<VecDeque<Fingerprint>>>);

impl Admitted {
    /// No peer yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets a certificate in from now on. When [`ADMITTED_MAX`] others are on the list, the one that was admitted
    /// longest ago leaves it and is given back; admitting a certificate again makes it the newest.
    pub fn admit(&self, fingerprint: Fingerprint) -> Option<Fingerprint> {
        let mut list = self.lock();
        list.retain(|listed| *listed != fingerprint);
        list.push_back(fingerprint);
        if list.len() > ADMITTED_MAX { list.pop_front() } else { None }
    }

    /// Lets a certificate in no more; whether it was on the list.
    pub fn dismiss(&self, fingerprint: Fingerprint) -> bool {
        let mut list = self.lock();
        let before = list.len();
        list.retain(|listed| *listed != fingerprint);
        list.len() < before
    }

    /// Whether it is on the list.
    pub fn contains(&self, fingerprint: Fingerprint) -> bool {
        self.lock().contains(&fingerprint)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Fingerprint>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Most certificates on a list: more displays than a session serves.
pub const ADMITTED_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(number: usize) -> Fingerprint {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        Fingerprint(bytes)
    }

    #[test]
    fn clones_are_one_list() {
        let (one, peers) = (Admitted::new(), Admitted::new());
        let other = one.clone();
        assert_eq!(one.admit(numbered(1)), None);
        assert!(other.contains(numbered(1)) && !peers.contains(numbered(1)));
        assert!(Peers::Listed(other.clone()).admit(numbered(1)));
        assert!(other.dismiss(numbered(1)) && !other.dismiss(numbered(1)));
        assert!(!Peers::Listed(one).admit(numbered(1)));
    }

    #[test]
    fn the_list_is_bounded_and_keeps_the_newest() {
        let list = Admitted::new();
        assert!((0..ADMITTED_MAX).all(|number| list.admit(numbered(number)).is_none()));
        // Again: no other has to leave, and it is the newest now.
        assert_eq!(list.admit(numbered(0)), None);
        assert_eq!(list.admit(numbered(ADMITTED_MAX)), Some(numbered(1)));
        assert!(list.contains(numbered(0)) && !list.contains(numbered(1)));
    }

    #[test]
    fn a_pin_is_one_and_a_secret_lets_all_try() {
        assert!(Peers::Pinned(numbered(1)).admit(numbered(1)));
        assert!(!Peers::Pinned(numbered(1)).admit(numbered(2)));
        assert!(Peers::Secret.admit(numbered(2)));
    }
}
