//! Whom to trust, and what to prove.

use std::sync::Arc;

use super::{Failure, TicketStore};
use crate::identity::{Fingerprint, Identity};
use crate::roots::Roots;

/// TLS of the side that connects.
#[derive(Clone, Debug)]
pub struct ClientTls {
    /// What makes a server the right one.
    pub trust: ServerTrust,
    /// What this side proves to be, if the server asks.
    pub identity: Option<Arc<Identity>>,
    /// The application protocols, the preferred one first. Empty: none, which few servers accept.
    pub alpn: Vec<Vec<u8>>,
    /// Where tickets are kept and taken from. `None`: every handshake is a full one.
    pub tickets: Option<TicketStore>,
    /// The name to ask for, and the one that the certificate must be for. `None`: the host that is connected to.
    pub server_name: Option<String>,
}

/// What makes a server the right one.
#[derive(Clone, Debug)]
pub enum ServerTrust {
    /// It has one of these certificates. Names, dates and authorities are not looked at.
    Pins(Vec<Fingerprint>),
    /// It has a certificate for its name, with a chain to one of these authorities.
    Roots(Roots),
    /// Nothing: anybody on the path may be the other end. For tests.
    Insecure,
}

/// TLS of the side that listens.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// What this side proves to be.
    pub identity: Arc<Identity>,
    /// Who may connect.
    pub clients: Clients,
    /// The application protocols, the preferred one first.
    pub alpn: Vec<Vec<u8>>,
    /// Whether clients that come back may send early data, which somebody on the path may send again.
    pub early_data: bool,
}

/// Who may connect.
#[derive(Clone, Debug)]
pub enum Clients {
    /// Anyone; no certificate is asked for.
    Anyone,
    /// Who has one of these certificates.
    Pins(Vec<Fingerprint>),
    /// Who has a certificate with a chain to one of these authorities.
    Roots(Roots),
}

/// Makes a self-signed certificate for `names`, valid from now for `days`, and its key: both in PEM, the certificate first.
///
/// # Errors
/// [`Failure::Config`] when a name is not one, or `days` is 0 or more than 36500.
pub fn self_signed(names: &[String], days: u32) -> Result<(String, String), Failure> {
    let _ = (names, days);
    unimplemented!()
}
