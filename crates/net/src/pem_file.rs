//! Certificates and keys in PEM (RFC 7468), in files or in memory.
//!
//! PEM only, as all the tools that make them write. Nothing is judged here: who trusts what is decided by those who
//! read. Invariant: an error says what was expected, and names the file if there is one.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A file that cannot be used.
#[derive(Debug)]
pub struct PemError {
    /// What it should hold.
    pub content: PemContent,
    /// Which file.
    pub path: PathBuf,
    /// Why not.
    pub fault: PemFault,
}

/// What a file should hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PemContent {
    /// Certificates of authorities.
    Authorities,
    /// This side's certificate, and those between it and an authority.
    Chain,
    /// The key of this side's certificate.
    Key,
}

impl PemContent {
    fn expected(self) -> &'static str {
        match self {
            Self::Authorities | Self::Chain => "certificate",
            Self::Key => "private key",
        }
    }
}

/// A text that is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPem {
    /// What it should hold.
    pub content: PemContent,
}

impl fmt::Display for NotPem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected a {} in PEM", self.content.expected())
    }
}

impl std::error::Error for NotPem {}

/// Why a file cannot be used.
#[derive(Debug)]
pub enum PemFault {
    /// The system does not give it.
    Read(io::Error),
    /// What it holds is something else.
    NothingThere,
}

impl fmt::Display for PemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.content {
            PemContent::Authorities => "CA certificate file",
            PemContent::Chain => "certificate file",
            PemContent::Key => "key file",
        };
        let expected = self.content.expected();
        let path = self.path.display();
        match &self.fault {
            PemFault::Read(error) if error.kind() == io::ErrorKind::NotFound => {
                write!(f, "{name} not found: `{path}`")
            }
            PemFault::Read(error) => write!(f, "cannot read {name} `{path}`: {error}"),
            PemFault::NothingThere => write!(f, "{name} `{path}` holds no {expected} in PEM"),
        }
    }
}

impl std::error::Error for PemError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            PemFault::Read(error) => Some(error),
            PemFault::NothingThere => None,
        }
    }
}

/// All certificates of a file, at least one.
pub(crate) fn certificates(
    path: &Path,
    content: PemContent,
) -> Result<Vec<CertificateDer<'static>>, PemError> {
    parse_certificates(&read(path, content)?, content).map_err(|NotPem { content }| PemError {
        content,
        path: path.into(),
        fault: PemFault::NothingThere,
    })
}

/// The first private key of a file.
pub(crate) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, PemError> {
    parse_key(&read(path, PemContent::Key)?).map_err(|NotPem { content }| PemError {
        content,
        path: path.into(),
        fault: PemFault::NothingThere,
    })
}

/// All certificates of a text, at least one.
pub(crate) fn parse_certificates(
    text: &[u8],
    content: PemContent,
) -> Result<Vec<CertificateDer<'static>>, NotPem> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or(NotPem { content })
}

/// The first private key of a text.
pub(crate) fn parse_key(text: &[u8]) -> Result<PrivateKeyDer<'static>, NotPem> {
    PrivateKeyDer::from_pem_slice(text).map_err(|_| NotPem { content: PemContent::Key })
}

fn read(path: &Path, content: PemContent) -> Result<Vec<u8>, PemError> {
    std::fs::read(path).map_err(|error| PemError { content, path: path.into(), fault: PemFault::Read(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_file_and_what_was_expected() {
        let text = |path: &str, content| certificates(Path::new(path), content).unwrap_err().to_string();
        assert_eq!(text("/no/where", PemContent::Authorities), "CA certificate file not found: `/no/where`");
        assert_eq!(text("/no/where", PemContent::Chain), "certificate file not found: `/no/where`");
        let nothing = "certificate file `/dev/null` holds no certificate in PEM";
        assert_eq!(text("/dev/null", PemContent::Chain), nothing);
        assert!(text("/", PemContent::Chain).starts_with("cannot read certificate file `/`: "));
        let nothing = "key file `/dev/null` holds no private key in PEM";
        assert_eq!(key(Path::new("/dev/null")).unwrap_err().to_string(), nothing);
    }
}
