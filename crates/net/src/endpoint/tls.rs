//! Whom to trust, and what to prove.

use std::sync::Arc;
use std::time::Duration;

use ring::digest::{Context, SHA256};
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring as provider};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::{CipherSuite, ClientConfig, ServerConfig};

use super::{Config, Failure, TicketStore};
use crate::http3::H3;
use crate::identity::{Fingerprint, Identity, Known, PinnedVerifier, short_lived};
use crate::keylog::KeyLogTo;
use crate::roots::Roots;
use crate::trust::NamedVerifier;

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

impl ClientTls {
    /// What rustls needs, with neither tickets nor a key log yet.
    pub(super) fn base(&self) -> Result<ClientConfig, Failure> {
        let provider = Arc::new(quick_first());
        let verifier: Arc<dyn ServerCertVerifier> = match &self.trust {
            ServerTrust::Pins(pins) => Arc::new(PinnedVerifier::new(&provider, Known::OneOf(pins.clone()))),
            ServerTrust::Roots(roots) => Arc::new(NamedVerifier::new(roots, Arc::clone(&provider))?),
            ServerTrust::Insecure => Arc::new(PinnedVerifier::new(&provider, Known::Anyone)),
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &self.identity {
            Some(identity) => builder.with_client_auth_cert(identity.chain(), identity.key())?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = self.alpn.clone();
        config.resumption = Resumption::disabled();
        Ok(config)
    }

    /// What a ticket depends on besides the host.
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        let mut add = |kind: u8, bytes: &[u8]| {
            context.update(&[kind]);
            context.update(&(bytes.len() as u64).to_ne_bytes());
            context.update(bytes);
        };
        match &self.trust {
            ServerTrust::Pins(pins) => pins.iter().for_each(|pin| add(1, &pin.0)),
            ServerTrust::Roots(roots) => roots.store().roots.iter().for_each(|anchor| {
                add(2, &anchor.subject);
                add(3, &anchor.subject_public_key_info);
                if let Some(constraints) = &anchor.name_constraints {
                    add(7, constraints);
                }
            }),
            ServerTrust::Insecure => add(4, &[]),
        }
        if let Some(identity) = &self.identity {
            identity.chain().iter().for_each(|certificate| add(5, certificate));
        }
        self.alpn.iter().for_each(|protocol| add(6, protocol));
        let mut digest = [0; 32];
        digest.copy_from_slice(context.finish().as_ref());
        digest
    }
}

/// Suites in the order of what a handshake and a packet cost: most servers take the first that they know, and the key
/// schedule of AES-128 is SHA-256's. QUIC has AES-128 in any case, for its first packets (RFC 9001 §5.2).
fn quick_first() -> CryptoProvider {
    let mut provider = provider::default_provider();
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    provider
}

impl ServerTls {
    /// What rustls needs; with `web`, WebTransport's protocol is offered, too.
    pub(super) fn build(&self, web: bool, config: &Config) -> Result<ServerConfig, Failure> {
        let provider = Arc::new(provider::default_provider());
        let verifier: Option<Arc<dyn ClientCertVerifier>> = match &self.clients {
            Clients::Anyone => None,
            Clients::Pins(pins) => Some(Arc::new(PinnedVerifier::new(&provider, Known::OneOf(pins.clone())))),
            Clients::Roots(roots) => {
                let builder =
                    WebPkiClientVerifier::builder_with_provider(roots.store(), Arc::clone(&provider));
                Some(builder.build().map_err(|error| Failure::Config(error.to_string()))?)
            }
        };
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?;
        let builder = match verifier {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let mut tls = builder.with_single_cert(self.identity.chain(), self.identity.key())?;
        tls.alpn_protocols = self.alpn.clone();
        if web && !tls.alpn_protocols.iter().any(|protocol| protocol == H3) {
            tls.alpn_protocols.push(H3.to_vec());
        }
        // Kept here, not sealed into the tickets: each is taken out when it is used, so that early data cannot be
        // replayed to this listener.
        tls.session_storage = ServerSessionMemoryCache::new(SESSIONS_MAX);
        tls.send_tls13_tickets = TICKETS;
        // RFC 9001 §4.6.1; the windows of the connection bound it.
        tls.max_early_data_size = if self.early_data { u32::MAX } else { 0 };
        if let Some(path) = &config.keylog {
            tls.key_log = Arc::new(KeyLogTo::open(path)?);
        }
        Ok(tls)
    }
}

/// Makes a self-signed certificate for `names`, valid from now for `days`, and its key: both in PEM, the certificate
/// first.
///
/// # Errors
/// [`Failure::Config`] when a name is not one, or `days` is 0 or more than 36500.
pub fn self_signed(names: &[String], days: u32) -> Result<(String, String), Failure> {
    let wrong = |error: rcgen::Error| Failure::Config(format!("cannot make a certificate: {error}"));
    if !(1..=36500).contains(&days) {
        return Err(Failure::Config("a certificate is valid for 1 to 36500 days".into()));
    }
    let made = short_lived(names, DAY * days).map_err(wrong)?;
    Ok((made.cert.pem(), made.signing_key.serialize_pem()))
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Tickets that a client gets with each connection: for as many more.
const TICKETS: usize = 2;

/// Tickets that a listener remembers, of all clients; the oldest are forgotten beyond that.
const SESSIONS_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn tls(trust: ServerTrust, alpn: &[&str]) -> ClientTls {
        let alpn = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        ClientTls { trust, identity: None, alpn, tickets: None, server_name: None }
    }

    #[test]
    fn tickets_tell_trust_and_protocols_apart() {
        let pins = |byte| ServerTrust::Pins(vec![Fingerprint([byte; 32])]);
        let one = tls(pins(1), &["ab", "c"]).digest();
        assert_eq!(one, tls(pins(1), &["ab", "c"]).digest());
        let mine = ClientTls {
            identity: Some(Arc::new(Identity::ephemeral().unwrap())),
            ..tls(pins(1), &["ab", "c"])
        };
        for other in [
            tls(pins(2), &["ab", "c"]),
            tls(pins(1), &["a", "bc"]),
            tls(ServerTrust::Insecure, &["ab", "c"]),
            mine,
        ] {
            assert_ne!(one, other.digest());
        }
    }

    #[test]
    fn regression_tickets_tell_certificates_in_between_apart() {
        let (chain, key) = self_signed(&["localhost".to_owned()], 1).unwrap();
        let (other, _) = self_signed(&["localhost".to_owned()], 1).unwrap();
        let with = |chain: &str| {
            let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
            ClientTls { identity: Some(Arc::new(identity)), ..tls(ServerTrust::Insecure, &[]) }.digest()
        };
        assert_eq!(with(&chain), with(&chain));
        assert_ne!(with(&chain), with(&[chain.as_str(), &other].concat()));
    }

    #[test]
    fn certificates_of_our_own_can_be_used() {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let (chain, key) = self_signed(&names, 10).unwrap();
        let identity = Arc::new(Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap());
        let server =
            ServerTls { identity, clients: Clients::Anyone, alpn: vec![b"a".to_vec()], early_data: true };
        let built = server.build(true, &Config::default()).unwrap();
        assert_eq!(built.alpn_protocols, [b"a".to_vec(), b"h3".to_vec()]);
        assert!(matches!(self_signed(&names, 0), Err(Failure::Config(_))));
        assert!(matches!(self_signed(&["ä".to_owned()], 1), Err(Failure::Config(_))));
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let pem = || self_signed(&["localhost".to_owned()], 1).unwrap();
        let identity = Identity::from_pem(pem().0.as_bytes(), pem().1.as_bytes()).unwrap();
        let server = ServerTls {
            identity: Arc::new(identity),
            clients: Clients::Anyone,
            alpn: Vec::new(),
            early_data: false,
        };
        assert!(matches!(server.build(false, &Config::default()), Err(Failure::Config(_))));
    }
}
