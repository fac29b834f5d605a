//! TLS of a site, for browsers elsewhere: with a certificate that they trust by their own authorities.
//!
//! TLS 1.3, which all browsers with WebTransport have, with HTTP/1.1 inside, and nothing else. No caller is asked for a
//! certificate, and nothing is kept for those that come again: each connection is a handshake of its own. What a
//! browser would object to is told and does no harm here. Invariant: the key is the certificate's.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::crypto::ring as provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use webpki::{EndEntityCert, KeyUsage};

use crate::identity::{Identity, KeyFault};

/// What a site shows, and proves to have.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ServerConfig>,
    /// The own certificate first, then those between it and an authority.
    chain: Vec<CertificateDer<'static>>,
}

impl Tls {
    /// With this certificate and key.
    ///
    /// # Errors
    /// TLS cannot use them.
    pub fn new(identity: &Identity) -> Result<Self, TlsFault> {
        let chain = identity.chain();
        EndEntityCert::try_from(&chain[0]).map_err(|_| TlsFault::NoCertificate)?;
        identity.check().map_err(TlsFault::Key)?;
        let unsupported = |_| TlsFault::Key(KeyFault::Unsupported);
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(unsupported)?
            .with_no_client_auth()
            .with_single_cert(chain.clone(), identity.key())
            .map_err(unsupported)?;
        config.alpn_protocols = vec![HTTP.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { config: Arc::new(config), chain })
    }

    /// The DNS names of the certificate, in its order, those with a wildcard among them.
    pub fn names(&self) -> Vec<String> {
        self.own().map(|own| own.valid_dns_names().map(str::to_owned).collect()).unwrap_or_default()
    }

    /// What a browser that calls the site by this name, a DNS name or an address, would object to, besides an authority
    /// that it does not know.
    pub fn objections(&self, name: &str) -> Vec<Objection> {
        let Some(own) = self.own() else { return Vec::new() };
        let named = ServerName::try_from(name);
        let fits = named.is_ok_and(|name| own.verify_is_valid_for_subject_name(&name).is_ok());
        let dates = match self.dates(&own) {
            webpki::Error::CertExpired { .. } => Some(Objection::Expired),
            webpki::Error::CertNotValidYet { .. } => Some(Objection::NotValidYet),
            _ => None,
        };
        dates.into_iter().chain((!fits).then_some(Objection::OtherName)).collect()
    }

    fn own(&self) -> Option<EndEntityCert<'_>> {
        EndEntityCert::try_from(&self.chain[0]).ok()
    }

    /// Why no authority vouches for it: dates are looked at before authorities are, and there are none.
    fn dates(&self, own: &EndEntityCert<'_>) -> webpki::Error {
        let algorithms = provider::default_provider().signature_verification_algorithms.all;
        let (between, usage) = (&self.chain[1..], KeyUsage::server_auth());
        let verified = own.verify_for_usage(algorithms, &[], between, UnixTime::now(), usage, None, None);
        verified.err().unwrap_or(webpki::Error::UnknownIssuer)
    }

    /// TLS on this connection; its handshake is a part of the first reading.
    pub(super) fn accept<S: Read + Write>(&self, stream: S) -> io::Result<StreamOwned<ServerConnection, S>> {
        let connection = ServerConnection::new(Arc::clone(&self.config)).map_err(io::Error::other)?;
        Ok(StreamOwned::new(connection, stream))
    }
}

/// Why TLS cannot use a certificate and a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// The first one in the file is no certificate (RFC 5280).
    NoCertificate,
    /// The key is wrong.
    Key(KeyFault),
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate => f.write_str("the certificate cannot be read"),
            Self::Key(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for TlsFault {}

/// What browsers object to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objection {
    /// Its time is over.
    Expired,
    /// Its time has not begun.
    NotValidYet,
    /// It is for another name.
    OtherName,
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "has expired",
            Self::NotValidYet => "is not valid yet",
            Self::OtherName => "is for another name",
        })
    }
}

// RFC 7301 §6.
const HTTP: &[u8] = b"http/1.1";

#[cfg(test)]
mod tests {
    use super::*;

    /// For these names, valid in these years.
    fn tls(names: &[&str], years: [i32; 2]) -> Tls {
        let key = rcgen::KeyPair::generate().expect("a key");
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(names).expect("names");
        [params.not_before, params.not_after] = years.map(|year| rcgen::date_time_ymd(year, 1, 1));
        let certificate = params.self_signed(&key).expect("a certificate");
        let identity = Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes());
        Tls::new(&identity.expect("PEM")).expect("they fit")
    }

    #[test]
    fn names_are_those_of_the_certificate_in_its_order() {
        let names = ["*.wayferry.test", "page.wayferry.test", "a.test", "192.0.2.1"];
        assert_eq!(tls(&names, [2020, 4000]).names(), &names[..3]);
        assert!(tls(&["192.0.2.1"], [2020, 4000]).names().is_empty());
    }

    #[test]
    fn what_a_browser_would_object_to_is_told() {
        let names = ["page.test", "*.wild.test", "192.0.2.1"];
        let good = tls(&names, [2020, 4000]);
        for name in ["page.test", "x.wild.test", "192.0.2.1"] {
            assert_eq!(good.objections(name), [], "{name}");
        }
        for name in ["wild.test", "other.test", "192.0.2.2", "not a name", ""] {
            assert_eq!(good.objections(name), [Objection::OtherName], "{name}");
        }
        assert_eq!(tls(&names, [2020, 2021]).objections("page.test"), [Objection::Expired]);
        let early = tls(&names, [3999, 4000]).objections("other.test");
        assert_eq!(early, [Objection::NotValidYet, Objection::OtherName]);
    }

    #[test]
    fn a_key_of_another_certificate_is_told_from_what_is_none() {
        let [one, other] = ["one.test", "other.test"].map(|name| {
            let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
            (made.cert.pem(), made.signing_key.serialize_pem())
        });
        let fault = |chain: &str, key: &str| {
            Tls::new(&Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("PEM")).err()
        };
        assert_eq!(fault(&one.0, &one.1), None);
        assert_eq!(fault(&one.0, &other.1), Some(TlsFault::Key(KeyFault::OfAnother)));
        let none = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(fault(none, &one.1), Some(TlsFault::NoCertificate));
    }
}
