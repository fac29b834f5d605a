//! The authorities that public certificates are verified against.
//!
//! From a file when one is named, else from the platform's store, else from the list built in; or from the program
//! itself; never from several. Invariant: it is known, and can be told, which of them it was.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use crate::pem_file::{NotPem, PemContent, PemError, PemFault, certificates, parse_certificates};

/// Certificates of authorities. Clones share them.
#[derive(Clone, Debug)]
pub struct Roots {
    store: Arc<RootCertStore>,
    /// Those that the user or the program has given, one by one; none of those that a system has.
    given: Arc<[CertificateDer<'static>]>,
    origin: Origin,
}

/// Where [`Roots`] come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file that the user named.
    File(PathBuf),
    /// The platform's store (with `SSL_CERT_FILE` and `SSL_CERT_DIR`, where set).
    Platform,
    /// Mozilla's list as it was when this program was made, because the platform has none.
    BuiltIn,
    /// What the program chose, no matter what the platform has.
    Program,
}

impl Roots {
    /// The authorities of `file`, or, without one, the platform's, or, where it has none, those built in.
    ///
    /// # Errors
    /// Only about a file that was named; nothing takes its place.
    pub fn load(file: Option<&Path>) -> Result<Self, PemError> {
        match file {
            Some(path) => Self::from_file(path),
            None => Ok(Self::from_platform(rustls_native_certs::load_native_certs().certs)),
        }
    }

    /// The authorities of a text in PEM.
    ///
    /// # Errors
    /// There is no certificate in it.
    pub fn from_pem(text: &[u8]) -> Result<Self, NotPem> {
        let content = PemContent::Authorities;
        let given = parse_certificates(text, content)?;
        Self::of_given(given, Origin::Program).ok_or(NotPem { content })
    }

    /// Mozilla's list as it was when this program was made, no matter what the platform has.
    pub fn built_in() -> Self {
        Self { origin: Origin::Program, ..Self::from_platform(Vec::new()) }
    }

    /// Where they come from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(crate) fn store(&self) -> Arc<RootCertStore> {
        Arc::clone(&self.store)
    }

    /// Whether this very certificate was given.
    pub(crate) fn has_given(&self, certificate: &CertificateDer<'_>) -> bool {
        self.given.iter().any(|given| given.as_ref() == certificate.as_ref())
    }

    fn from_file(path: &Path) -> Result<Self, PemError> {
        let content = PemContent::Authorities;
        let given = certificates(path, content)?;
        let nothing = || PemError { content, path: path.into(), fault: PemFault::NothingThere };
        Self::of_given(given, Origin::File(path.into())).ok_or_else(nothing)
    }

    /// `None` if none of them can be parsed.
    fn of_given(given: Vec<CertificateDer<'static>>, origin: Origin) -> Option<Self> {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(given.iter().cloned());
        (!store.is_empty()).then(|| Self { store: Arc::new(store), given: given.into(), origin })
    }

    fn from_platform(certificates: Vec<CertificateDer<'static>>) -> Self {
        let mut store = RootCertStore::empty();
        // Some stores hold certificates that cannot be parsed; the others are still good.
        store.add_parsable_certificates(certificates);
        let origin = if store.is_empty() {
            store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            Origin::BuiltIn
        } else {
            Origin::Platform
        };
        Self { store: Arc::new(store), given: Arc::default(), origin }
    }
}

/// One line for a log.
impl fmt::Display for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.store.len();
        match &self.origin {
            Origin::File(path) => write!(f, "{count} certificate authorities of `{}`", path.display()),
            Origin::Platform => write!(f, "{count} certificate authorities of this system"),
            Origin::BuiltIn => {
                write!(f, "{count} built-in certificate authorities, because this system has none")
            }
            Origin::Program => write!(f, "{count} certificate authorities"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_platforms_come_before_those_built_in() {
        let own = rcgen::generate_simple_self_signed(["ca.test".to_owned()]).unwrap();
        let roots = Roots::from_platform(vec![own.cert.der().clone()]);
        assert_eq!(roots.origin(), &Origin::Platform);
        assert_eq!(roots.to_string(), "1 certificate authorities of this system");
        for none in [Vec::new(), vec![CertificateDer::from(vec![1, 2, 3])]] {
            let roots = Roots::from_platform(none);
            assert_eq!(roots.origin(), &Origin::BuiltIn);
            assert!(roots.store.len() > 100, "{roots}");
        }
    }

    #[test]
    fn nothing_takes_the_place_of_a_file_that_was_named() {
        let error = Roots::load(Some(Path::new("/no/where"))).unwrap_err();
        assert_eq!(error.to_string(), "CA certificate file not found: `/no/where`");
    }
}
