//! What the tests tell a peer, and TLS made of it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::Value;

use crate::{Outcome, Unable};

/// The JSON of the command line.
pub struct Options(Value);

impl Options {
    /// The role, and what goes with it.
    pub fn of_the_command_line() -> Outcome<(String, Self)> {
        let mut arguments = std::env::args().skip(1);
        match (arguments.next(), arguments.next()) {
            (Some(role), Some(options)) => Ok((role, Self(serde_json::from_str(&options)?))),
            _ => Err("usage: PEER ROLE JSON".into()),
        }
    }

    /// What to listen on, its port 0 if there is a choice; what to call.
    pub fn address(&self) -> SocketAddr {
        let port = self.0["port"].as_u64().and_then(|port| port.try_into().ok());
        (Ipv4Addr::LOCALHOST, port.unwrap_or(0)).into()
    }

    /// Whether clients must prove their address.
    pub fn retry(&self) -> bool {
        self.0["retry"].as_bool().unwrap_or(false)
    }

    /// The versions of QUIC to speak, where that is not left to the library.
    pub fn versions(&self) -> Option<Vec<u32>> {
        let versions = self.0["versions"].as_array()?.iter();
        versions.map(|version| version.as_u64()?.try_into().ok()).collect()
    }

    /// For a library that leaves no choice of versions.
    pub fn leave_versions(&self, why: &'static str) -> Outcome {
        if self.versions().is_some() { Err(Unable(why).into()) } else { Ok(()) }
    }

    /// What to play.
    pub fn scenario(&self) -> &str {
        self.0["scenario"].as_str().unwrap_or_default()
    }

    /// A file.
    pub fn path(&self, name: &str) -> Outcome<&Path> {
        self.0[name].as_str().map(Path::new).ok_or_else(|| format!("`{name}` is missing").into())
    }

    pub fn server_tls(&self, alpn: &[u8]) -> Outcome<ServerConfig> {
        let chain = CertificateDer::pem_file_iter(self.path("cert")?)?.collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_file(self.path("key")?)?;
        let mut tls = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        tls.alpn_protocols = vec![alpn.to_vec()];
        Ok(tls)
    }

    pub fn client_tls(&self, alpn: &[u8]) -> Outcome<ClientConfig> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_file_iter(self.path("roots")?)? {
            roots.add(root?)?;
        }
        let mut tls = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![alpn.to_vec()];
        Ok(tls)
    }
}
