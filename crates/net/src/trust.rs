//! How the side that connects knows whom it meets.
//!
//! By a fingerprint that came with ssh or a ticket; or, where the host has a public certificate, by a name that
//! authorities vouch for. Invariant: exactly one of the two decides; a name never lets a pinned fingerprint's place be
//! taken, nor the other way round.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, OtherError, SignatureScheme};

use crate::identity::{Fingerprint, SERVER_NAME};
use crate::roots::Roots;

/// What makes a host the right one.
#[derive(Clone, Debug)]
pub enum Trust {
    /// It has this certificate. Names, dates and authorities are not looked at.
    Pinned(Fingerprint),
    /// It has a certificate for a name, with a chain to an authority.
    Named(Named),
}

/// A host name or address, and who may vouch for it.
#[derive(Clone, Debug)]
pub struct Named {
    name: String,
    roots: Roots,
}

impl Trust {
    /// Trust in a peer that has a certificate for `name`, a DNS name or an IP address, from an authority among `roots`.
    ///
    /// # Errors
    /// The text is neither.
    pub fn named(name: &str, roots: Roots) -> Result<Self, NotAName> {
        ServerName::try_from(name).map_err(|_| NotAName)?;
        Ok(Self::Named(Named { name: name.into(), roots }))
    }

    /// The name that the handshake asks for.
    pub(crate) fn server_name(&self) -> &str {
        match self {
            Self::Pinned(_) => SERVER_NAME,
            Self::Named(named) => &named.name,
        }
    }
}

impl From<Fingerprint> for Trust {
    fn from(pinned: Fingerprint) -> Self {
        Self::Pinned(pinned)
    }
}

/// The text is neither a DNS name nor an IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAName;

impl fmt::Display for NotAName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a host name or an IP address")
    }
}

impl std::error::Error for NotAName {}

impl Named {
    pub(crate) fn verifier(&self, provider: Arc<CryptoProvider>) -> Result<NamedVerifier, rustls::Error> {
        NamedVerifier::new(&self.roots, provider)
    }
}

/// Verifies chains, and tells a certificate that vouches for itself from one of an unknown authority.
///
/// A host may show one of the given authorities' certificates itself: that is what `openssl req -x509` makes, a
/// certificate that vouches for itself and says that it is an authority (RFC 5280 §4.2.1.9).
#[derive(Debug)]
pub(crate) struct NamedVerifier {
    inner: Arc<WebPkiServerVerifier>,
    roots: Roots,
}

impl NamedVerifier {
    pub(crate) fn new(roots: &Roots, provider: Arc<CryptoProvider>) -> Result<Self, rustls::Error> {
        let builder = WebPkiServerVerifier::builder_with_provider(roots.store(), provider);
        let inner = builder.build().map_err(|error| rustls::Error::General(error.to_string()))?;
        Ok(Self { inner, roots: roots.clone() })
    }
}

impl ServerCertVerifier for NamedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified =
            self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        if verified.as_ref().is_err_and(is_authority) && self.roots.has_given(end_entity) {
            // Its dates were looked at before that, and its key is one that the user trusts.
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        verified.map_err(|error| match error {
            rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::Other(_),
            ) if is_self_issued(end_entity) => {
                CertificateError::Other(OtherError(Arc::new(SelfSigned))).into()
            }
            error => error,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Whether nothing is wrong with a certificate up to there but that it is an authority's.
fn is_authority(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

fn is_self_issued(certificate: &CertificateDer<'_>) -> bool {
    webpki::EndEntityCert::try_from(certificate).is_ok_and(|parsed| parsed.issuer() == parsed.subject())
}

/// A certificate that only its own key vouches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("self-signed")
    }
}

impl std::error::Error for SelfSigned {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_or_addresses() {
        let roots = || Roots::load(None).unwrap();
        for name in ["host.example", "localhost", "192.0.2.1", "2001:db8::1"] {
            assert_eq!(Trust::named(name, roots()).unwrap().server_name(), name);
        }
        for text in ["", "two words", "host:443", "[::1]"] {
            assert_eq!(Trust::named(text, roots()).err(), Some(NotAName), "{text}");
        }
    }
}
