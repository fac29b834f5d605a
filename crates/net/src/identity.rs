//! Who is at the other end: ephemeral certificates, known by their fingerprints.
//!
//! As a rule there is no authority, no name and no expiry to check: ssh or a ticket carries the SHA-256 of the peer's
//! certificate, and TLS 1.3 proves that the peer holds its key. Hosts with a public certificate are [`Trust`]'s. The
//! module does not check the one-time secret of a ticket; the session does. Invariant: a certificate is accepted only
//! by its fingerprint (or, where the secret decides later, any one is), and the handshake's signature is verified in
//! either case.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring as provider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, KeyLog, PeerMisbehaved,
    ServerConfig, SignatureScheme,
};

use crate::http3::H3;
use crate::keylog::KeyLogTo;
use crate::peers::Peers;
use crate::pem_file::{self, NotPem, PemContent, PemError};
use crate::tickets::Tickets;
use crate::trust::Trust;

/// SHA-256 of a certificate's DER.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// Of the first certificate of a text in PEM.
    ///
    /// # Errors
    /// There is none in it.
    pub fn from_pem(text: &[u8]) -> Result<Self, NotPem> {
        Ok(Self::of(&pem_file::parse_certificates(text, PemContent::Chain)?[0]))
    }

    /// Of this certificate.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(sha256(certificate))
    }
}

/// SHA-256 (FIPS 180-4).
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut digest = [0; 32];
    digest.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref());
    digest
}

/// 64 lower-case hexadecimal digits.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// The text is not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAFingerprint;

impl fmt::Display for NotAFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a fingerprint of 64 hexadecimal digits")
    }
}

impl std::error::Error for NotAFingerprint {}

impl FromStr for Fingerprint {
    type Err = NotAFingerprint;

    fn from_str(text: &str) -> Result<Self, NotAFingerprint> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(NotAFingerprint);
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(NotAFingerprint);
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        Ok(Self(bytes))
    }
}

/// What this side proves to be: a certificate and its key, made for one run or kept in files.
pub struct Identity {
    /// The own one first, then those between it and an authority.
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// A new self-signed certificate with an ECDSA P-256 key.
    ///
    /// Fails when the system has no randomness to give.
    pub fn ephemeral() -> Result<Self, IdentityError> {
        let made = rcgen::generate_simple_self_signed([SERVER_NAME.to_owned()]).map_err(|_| IdentityError)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(Self { chain: vec![made.cert.der().clone()], key: key.into() })
    }

    /// The same, valid from now for so long only.
    ///
    /// Fails when the system has no randomness to give.
    pub(crate) fn valid_for(life: Duration) -> Result<Self, IdentityError> {
        let made = short_lived(&[SERVER_NAME.to_owned()], life).map_err(|_| IdentityError)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(Self { chain: vec![made.cert.der().clone()], key: key.into() })
    }

    /// A certificate, with those between it and an authority, and its key, each from a file in PEM.
    ///
    /// Whether the key belongs to the certificate shows when they are used.
    pub fn load(chain: &Path, key: &Path) -> Result<Self, PemError> {
        let chain = pem_file::certificates(chain, PemContent::Chain)?;
        Ok(Self { chain, key: pem_file::key(key)? })
    }

    /// As [`Identity::load`], from memory.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, NotPem> {
        let chain = pem_file::parse_certificates(chain, PemContent::Chain)?;
        Ok(Self { chain, key: pem_file::parse_key(key)? })
    }

    /// Whether TLS can use it.
    ///
    /// # Errors
    /// It cannot sign with such a key, or the key is not the certificate's.
    pub fn check(&self) -> Result<(), KeyFault> {
        let provider = provider::default_provider();
        match CertifiedKey::from_der(self.chain(), self.key(), &provider) {
            Ok(_) => Ok(()),
            Err(rustls::Error::InconsistentKeys(_)) => Err(KeyFault::OfAnother),
            Err(_) => Err(KeyFault::Unsupported),
        }
    }

    /// The own certificate first, then those between it and an authority.
    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.chain.clone()
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key()
    }

    /// What the peer has to pin.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.chain[0])
    }
}

/// Shows the fingerprint, never the key.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("fingerprint", &self.fingerprint()).finish_non_exhaustive()
    }
}

/// A self-signed certificate for `names` with an ECDSA P-256 key, valid from now for so long.
pub(crate) fn short_lived(
    names: &[String],
    life: Duration,
) -> Result<rcgen::CertifiedKey<rcgen::KeyPair>, rcgen::Error> {
    let mut params = rcgen::CertificateParams::new(names)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Whole seconds: certificates have no more. A minute for clocks that are behind.
    let begin = Duration::from_secs(now.as_secs()).saturating_sub(Duration::from_secs(60));
    params.not_before = rcgen::date_time_ymd(1970, 1, 1) + begin;
    params.not_after = params.not_before + life;
    let signing_key = rcgen::KeyPair::generate()?;
    Ok(rcgen::CertifiedKey { cert: params.self_signed(&signing_key)?, signing_key })
}

/// What is wrong with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFault {
    /// It is of a kind that no handshake is signed with here, or too short.
    Unsupported,
    /// It is not the certificate's.
    OfAnother,
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            // What ring signs with.
            Self::Unsupported => {
                "TLS takes no private key of that kind here: it has to be of RSA with 2048 to 4096 bits, of ECDSA \
                 with P-256 or P-384, or of Ed25519"
            }
            Self::OfAnother => "the private key is not the certificate's",
        })
    }
}

impl std::error::Error for KeyFault {}

/// The system could not make a key pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityError;

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot make a key pair: the system gave no randomness")
    }
}

impl std::error::Error for IdentityError {}

/// TLS for the side that connects: only whom it trusts is good. What it learns for coming back it puts into `tickets`,
/// which are of use to this very configuration and its clones only.
pub(crate) fn client_config(
    identity: &Identity,
    trust: &Trust,
    tickets: Arc<Tickets>,
    log_keys: bool,
) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(provider::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Pinned(pinned) => {
            Arc::new(PinnedVerifier::new(&provider, Known::Peers(Peers::Pinned(*pinned))))
        }
        Trust::Named(named) => Arc::new(named.verifier(Arc::clone(&provider))?),
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::store(tickets);
    config.enable_early_data = true;
    config.key_log = key_log(log_keys, config.key_log)?;
    Ok(config)
}

/// TLS for the side that listens; a certificate is demanded from every client.
pub(crate) fn server_config(
    identity: &Identity,
    peers: Peers,
    log_keys: bool,
) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(provider::default_provider());
    let verifier = Arc::new(PinnedVerifier::new(&provider, Known::Peers(peers)));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain.clone(), identity.key.clone_key())?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    // Kept here, not sealed into the tickets: each is taken out when it is used, so that early data cannot be replayed.
    config.session_storage = ServerSessionMemoryCache::new(SESSIONS_MAX);
    config.send_tls13_tickets = TICKETS;
    // What bounds early data is the window of the connection (RFC 9001 §4.6.1).
    config.max_early_data_size = u32::MAX;
    config.key_log = key_log(log_keys, config.key_log)?;
    Ok(config)
}

/// TLS of `listener` for pages, which have no certificates and are shown this one. They get no tickets: a handshake is
/// one round trip as it is, and what a page says is never early.
pub(crate) fn page_config(
    listener: &ServerConfig,
    identity: &Identity,
) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(identity.chain(), identity.key())?;
    config.alpn_protocols = vec![H3.to_vec()];
    config.send_tls13_tickets = 0;
    config.key_log = Arc::clone(&listener.key_log);
    Ok(config)
}

/// The tickets of one connection: they count once its peer is welcome, so that strangers neither come back with tickets
/// nor make the listener forget those of displays.
#[derive(Debug)]
pub(crate) struct Returns {
    all: Arc<dyn StoresServerSessions>,
    /// Those that wait; `None` when the peer is welcome.
    waiting: Mutex<Option<Vec<Waiting>>>,
}

/// A ticket's key and what is to be remembered by it.
#[derive(Debug)]
struct Waiting(Vec<u8>, Vec<u8>);

impl Returns {
    /// For one connection, with the configuration that it is to use.
    pub(crate) fn of_connection(listener: &ServerConfig) -> (Arc<Self>, ServerConfig) {
        let all = Arc::clone(&listener.session_storage);
        let returns = Arc::new(Self { all, waiting: Mutex::new(Some(Vec::new())) });
        let mut config = listener.clone();
        config.session_storage = Arc::<Self>::clone(&returns);
        (returns, config)
    }

    /// The peer is welcome.
    pub(crate) fn keep(&self) {
        for Waiting(key, value) in self.lock().take().into_iter().flatten() {
            self.all.put(key, value);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Waiting>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoresServerSessions for Returns {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        match &mut *self.lock() {
            Some(waiting) if waiting.len() < TICKETS => {
                waiting.push(Waiting(key, value));
                true
            }
            Some(_) => false,
            None => self.all.put(key, value),
        }
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.all.get(key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.all.take(key)
    }

    fn can_cache(&self) -> bool {
        self.all.can_cache()
    }
}

fn key_log(wanted: bool, none: Arc<dyn KeyLog>) -> Result<Arc<dyn KeyLog>, rustls::Error> {
    if !wanted {
        return Ok(none);
    }
    let log = KeyLogTo::from_environment()
        .map_err(|error| rustls::Error::General(format!("the file that SSLKEYLOGFILE names: {error}")))?;
    Ok(log.map_or(none, |log| Arc::new(log)))
}

/// Whose certificate is good.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// Whom a listener of sessions admits.
    Peers(Peers),
    /// These.
    OneOf(Vec<Fingerprint>),
    /// Any.
    Anyone,
}

impl Known {
    fn admit(&self, fingerprint: Fingerprint) -> bool {
        match self {
            Self::Peers(peers) => peers.admit(fingerprint),
            Self::OneOf(pins) => pins.contains(&fingerprint),
            Self::Anyone => true,
        }
    }
}

/// Accepts certificates by fingerprint and verifies what they sign.
#[derive(Debug)]
pub(crate) struct PinnedVerifier {
    known: Known,
    algorithms: WebPkiSupportedAlgorithms,
}

impl PinnedVerifier {
    pub(crate) fn new(provider: &CryptoProvider, known: Known) -> Self {
        Self { known, algorithms: provider.signature_verification_algorithms }
    }

    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        if self.known.admit(Fingerprint::of(certificate)) {
            return Ok(());
        }
        Err(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }
}

/// TLS 1.2 is not offered, so nothing of it can be valid.
fn never_tls12() -> rustls::Error {
    PeerMisbehaved::SelectedUnofferedCipherSuite.into()
}

impl ServerCertVerifier for PinnedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(never_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for PinnedVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(never_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// The application protocol of TLS: another one means another program.
pub(crate) const ALPN: &[u8] = b"wayferry/1";

/// Tickets for coming back that a display gets with each connection: for as many attempts.
const TICKETS: usize = 4;

/// Tickets that a listener remembers, of all displays that were let in; the oldest are forgotten first.
const SESSIONS_MAX: usize = 256;

/// Sent in the handshake because TLS wants a name; a certificate that is pinned needs none.
pub(crate) const SERVER_NAME: &str = "wayferry.invalid";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_survive_their_text() {
        let fingerprint = Identity::ephemeral().unwrap().fingerprint();
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        assert_eq!("12".parse::<Fingerprint>(), Err(NotAFingerprint));
        assert_eq!("g".repeat(64).parse::<Fingerprint>(), Err(NotAFingerprint));
        assert_eq!("é".repeat(32).parse::<Fingerprint>(), Err(NotAFingerprint));
    }

    #[test]
    fn identities_differ_and_do_not_show_their_key() {
        let (one, two) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
        assert_ne!(one.fingerprint(), two.fingerprint());
        let shown = format!("{one:?}");
        assert_eq!(shown, format!("Identity {{ fingerprint: Fingerprint({}), .. }}", one.fingerprint()));
    }

    #[test]
    fn only_the_pinned_certificate_passes() {
        let (one, two) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
        let pinned =
            PinnedVerifier::new(&provider::default_provider(), Known::OneOf(vec![one.fingerprint()]));
        assert!(pinned.check(&one.chain[0]).is_ok());
        assert!(pinned.check(&two.chain[0]).is_err());
        let any = PinnedVerifier::new(&provider::default_provider(), Known::Peers(Peers::Secret));
        assert!(any.check(&two.chain[0]).is_ok());
    }
}
