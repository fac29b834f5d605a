//! Has the frames of packets [`cut`], and their PADDING [`widen`]ed, as they are decrypted.
//!
//! noq hands each packet to a key of its TLS session, so this is such a session around rustls'. Invariant: it changes
//! nothing else, and nothing of what is sent.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use noq::{ConnectError, ConnectionId, PathId, Side};
use noq_proto::TransportError;
use noq_proto::transport_parameters::TransportParameters;

use super::frames::widen;
use super::pieces::cut;
use super::readers::Readers;

/// TLS whose connections know how far their streams were read.
pub(super) struct Cutting<T>(pub(super) T);

/// What a handshake told, and where those who read the connection's streams say how far they are.
pub(super) struct Told {
    pub(super) data: Box<dyn Any>,
    pub(super) readers: Arc<Readers>,
}

/// One connection's.
struct CuttingSession {
    tls: Box<dyn Session>,
    readers: Arc<Readers>,
}

impl CuttingSession {
    fn start(tls: Box<dyn Session>) -> Box<dyn Session> {
        Box::new(Self { tls, readers: Arc::default() })
    }

    fn cutting(&self, key: Box<dyn PacketKey>) -> Box<dyn PacketKey> {
        Box::new(CuttingKey { key, readers: Some(Arc::clone(&self.readers)) })
    }

    /// What is sent stays as it is.
    fn both(&self, keys: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair { local: keys.local, remote: self.cutting(keys.remote) }
    }
}

/// Decrypts, cuts and widens; without readers, it only widens.
struct CuttingKey {
    key: Box<dyn PacketKey>,
    readers: Option<Arc<Readers>>,
}

/// Packets of the first kind carry no streams (RFC 9000 §12.5), but most of the PADDING.
fn widening(keys: Keys) -> Keys {
    let KeyPair { local, remote } = keys.packet;
    let remote = Box::new(CuttingKey { key: remote, readers: None });
    Keys { packet: KeyPair { local, remote }, ..keys }
}

impl ClientConfig for Cutting<QuicClientConfig> {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(CuttingSession::start(self.0.start_session(version, server_name, parameters)?))
    }
}

impl ServerConfig for Cutting<QuicServerConfig> {
    fn initial_keys(&self, version: u32, to: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.0.initial_keys(version, to).map(widening)
    }

    fn retry_tag(&self, version: u32, first_to: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.0.retry_tag(version, first_to, packet)
    }

    fn start_session(&self, version: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        CuttingSession::start(self.0.start_session(version, parameters))
    }
}

impl Session for CuttingSession {
    fn initial_keys(&self, to: ConnectionId, side: Side) -> Keys {
        widening(self.tls.initial_keys(to, side))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let readers = Arc::clone(&self.readers);
        self.tls.handshake_data().map(|data| Box::new(Told { data, readers }) as Box<dyn Any>)
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.tls.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.tls.early_crypto().map(|(header, packet)| (header, self.cutting(packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.tls.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.tls.read_handshake(bytes)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.tls.transport_parameters()
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let Keys { header, packet } = self.tls.write_handshake(out)?;
        Some(Keys { header, packet: self.both(packet) })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.tls.next_1rtt_keys().map(|keys| self.both(keys))
    }

    fn is_valid_retry(&self, first_to: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.tls.is_valid_retry(first_to, header, payload)
    }

    fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.tls.export_keying_material(out, label, context)
    }
}

impl PacketKey for CuttingKey {
    fn encrypt(&self, path: PathId, number: u64, packet: &mut [u8], header_len: usize) {
        self.key.encrypt(path, number, packet, header_len);
    }

    fn decrypt(
        &self,
        path: PathId,
        number: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.key.decrypt(path, number, header, payload)?;
        if let Some(readers) = &self.readers {
            cut(payload, readers);
        }
        widen(payload);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.key.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.key.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.key.integrity_limit()
    }
}
