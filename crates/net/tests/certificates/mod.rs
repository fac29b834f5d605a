//! An authority of the tests' own, and the certificates, good and bad, that it vouches for or no authority does.

#![allow(dead_code, reason = "each test binary compiles all of it and uses a part")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use wayferry_net::{Identity, Roots, Trust};

/// The name that certificates are for.
pub(crate) const NAME: &str = "host.test";

/// What is wrong with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Good,
    Expired,
    NotYetValid,
    SelfSigned,
    /// It vouches for itself, as an authority: what `openssl req -x509` makes.
    OwnAuthority,
    /// The same, and it has expired.
    ExpiredAuthority,
    OtherName,
    OtherAuthority,
    /// For an address, where a name is asked for.
    Address,
}

/// A directory with the authority's certificate; gone when dropped.
pub(crate) struct Authority {
    directory: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("wayferry-certificates-{}-{number}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let (certificate, issuer) = authority("the test's authority");
        std::fs::write(directory.join("ca.pem"), certificate).unwrap();
        Self { directory, issuer }
    }

    /// The file with its certificate.
    pub(crate) fn ca(&self) -> PathBuf {
        self.directory.join("ca.pem")
    }

    /// Files with a certificate and its key.
    pub(crate) fn files(&self, kind: Kind) -> (PathBuf, PathBuf) {
        let name = match kind {
            Kind::OtherName => "other.test",
            Kind::Address => "127.0.0.1",
            _ => NAME,
        };
        let mut wanted = CertificateParams::new([name.to_owned()]).unwrap();
        match kind {
            Kind::Expired | Kind::ExpiredAuthority => {
                (wanted.not_before, wanted.not_after) =
                    (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
            }
            Kind::NotYetValid => {
                (wanted.not_before, wanted.not_after) =
                    (date_time_ymd(4001, 1, 1), date_time_ymd(4002, 1, 1));
            }
            _ => {}
        }
        if matches!(kind, Kind::OwnAuthority | Kind::ExpiredAuthority) {
            wanted.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = match kind {
            Kind::SelfSigned | Kind::OwnAuthority | Kind::ExpiredAuthority => wanted.self_signed(&key),
            Kind::OtherAuthority => wanted.signed_by(&key, &authority("another authority").1),
            _ => wanted.signed_by(&key, &self.issuer),
        };
        let file = |end: &str| self.directory.join(format!("{kind:?}.{end}"));
        std::fs::write(file("crt"), certificate.unwrap().pem()).unwrap();
        std::fs::write(file("key"), key.serialize_pem()).unwrap();
        (file("crt"), file("key"))
    }

    /// A host with such a certificate.
    pub(crate) fn identity(&self, kind: Kind) -> Identity {
        let (certificate, key) = self.files(kind);
        Identity::load(&certificate, &key).unwrap()
    }

    /// Trust in hosts with this name from this authority.
    pub(crate) fn trust(&self, name: &str) -> Trust {
        Trust::named(name, Roots::load(Some(&self.ca())).unwrap()).unwrap()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn authority(name: &str) -> (String, Issuer<'static, KeyPair>) {
    let mut own = CertificateParams::new(Vec::new()).unwrap();
    own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    own.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let certificate = own.self_signed(&key).unwrap().pem();
    (certificate, Issuer::new(own, key))
}
