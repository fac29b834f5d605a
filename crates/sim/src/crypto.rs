//! A handshake without cryptography, for endpoints that trust each other because they are one program.
//!
//! It exchanges the transport parameters in the same flights as TLS 1.3 does, and its "keys" change nothing but the
//! length: every packet carries 16 bytes where AES-GCM has its tag, so that what goes over the link has the size that
//! it has in the product. Nothing is random, nothing is signed, and a result cannot depend on a key. It protects
//! nothing but against a packet number that was guessed wrong; only this crate can name it.

use std::any::Any;

use bytes::BytesMut;
use noq_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair,
    Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::Error::Malformed;
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, PathId, Side, TransportError};

/// Everything that noq wants from cryptography.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

/// One side of the exchange.
struct Exchange {
    side: Side,
    stage: Stage,
    ours: Vec<u8>,
    theirs: Option<TransportParameters>,
    /// Bytes of an incomplete message.
    read: Vec<u8>,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Client: write the parameters. Server: read them.
    First,
    /// Client: read the greeting. Server: write it and go on to handshake keys.
    Greeting,
    /// Client: go on to handshake keys.
    Keys,
    /// Client: read the parameters. Server: write them and go on to the last keys.
    Parameters,
    /// Client: write the end and go on to the last keys. Server: read it.
    End,
    Done,
}

impl Exchange {
    fn new(side: Side, parameters: &TransportParameters) -> Self {
        let mut ours = Vec::new();
        parameters.write(&mut ours);
        Self { side, stage: Stage::First, ours, theirs: None, read: Vec::new() }
    }

    /// Takes one whole message.
    fn take(&mut self, message: &[u8]) -> Result<(), TransportError> {
        self.stage = match (self.side, self.stage) {
            (Side::Server, Stage::First) => Stage::Greeting,
            (Side::Client, Stage::Greeting) => Stage::Keys,
            (Side::Client, Stage::Parameters) => Stage::End,
            (Side::Server, Stage::End) => Stage::Done,
            // Out of turn.
            _ => return Err(Malformed.into()),
        };
        if matches!((self.side, self.stage), (Side::Server, Stage::Greeting) | (Side::Client, Stage::End)) {
            self.theirs = Some(TransportParameters::read(self.side, &mut &*message)?);
        }
        Ok(())
    }
}

impl Session for Exchange {
    fn initial_keys(&self, _: ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.stage != Stage::Done
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.read.extend_from_slice(bytes);
        while let Some((length, rest)) = self.read.split_first_chunk::<2>() {
            let Some(message) = rest.get(..usize::from(u16::from_be_bytes(*length))) else { break };
            let message = message.to_vec();
            self.read.drain(..2 + message.len());
            self.take(&message)?;
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.theirs)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let (next, message, upgrade) = match (self.side, self.stage) {
            (Side::Client, Stage::First) => (Stage::Greeting, Some(&*self.ours), false),
            (Side::Client, Stage::Keys) => (Stage::Parameters, None, true),
            (Side::Client, Stage::End) => (Stage::Done, Some(&b"end"[..]), true),
            (Side::Server, Stage::Greeting) => (Stage::Parameters, Some(&b"greeting"[..]), true),
            (Side::Server, Stage::Parameters) => (Stage::End, Some(&*self.ours), true),
            _ => return None,
        };
        if let Some(message) = message {
            let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(message);
        }
        self.stage = next;
        upgrade.then(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(KeyPair { local: Box::new(Plain), remote: Box::new(Plain) })
    }

    fn is_valid_retry(&self, _: ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(Plain), remote: Box::new(Plain) },
        packet: KeyPair { local: Box::new(Plain), remote: Box::new(Plain) },
    }
}

impl ClientConfig for Plain {
    fn start_session(
        &self,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(Exchange::new(Side::Client, parameters)))
    }
}

impl ServerConfig for Plain {
    fn initial_keys(&self, _: u32, _: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(&self, _: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        Box::new(Exchange::new(Side::Server, parameters))
    }
}

impl PacketKey for Plain {
    /// The tag holds the packet's number, the rest of its room stays as it is: zeros.
    fn encrypt(&self, _: PathId, number: u64, packet: &mut [u8], _: usize) {
        let tag = packet.len().saturating_sub(TAG);
        if let Some(place) = packet.get_mut(tag..tag + size_of::<u64>()) {
            place.copy_from_slice(&number.to_be_bytes());
        }
    }

    /// A packet that comes so late that its number is taken for another one must not count as that, as with a real
    /// cipher: what the other one carried would be acknowledged and lost.
    fn decrypt(&self, _: PathId, number: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        if !payload[length..].starts_with(&number.to_be_bytes()) {
            return Err(CryptoError);
        }
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for Plain {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

impl HmacKey for Plain {
    /// Different for different data, which is all that reset tokens need here.
    fn sign(&self, data: &[u8], out: &mut [u8]) {
        out.fill(0xa5);
        for (index, byte) in data.iter().enumerate() {
            let place = index % out.len().max(1);
            out[place] ^= byte.rotate_left(u32::try_from(index % 8).unwrap_or(0));
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = vec![0; signature.len()];
        self.sign(data, &mut expected);
        if expected == signature { Ok(()) } else { Err(CryptoError) }
    }
}

impl HandshakeTokenKey for Plain {
    fn seal(&self, _: u128, _: &mut Vec<u8>) -> Result<(), CryptoError> {
        Ok(())
    }

    fn open<'a>(&self, _: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        Ok(data)
    }
}

/// Length of the tag of AES-GCM, and of the sample of its header protection.
const TAG: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_counts_under_its_own_number_only() {
        let mut packet = [b"header and payload".as_slice(), &[0; TAG]].concat();
        PacketKey::encrypt(&Plain, PathId::ZERO, 7, &mut packet, 6);
        let open = |number| {
            let mut payload = BytesMut::from(&packet[..]);
            PacketKey::decrypt(&Plain, PathId::ZERO, number, &[], &mut payload).map(|()| payload)
        };
        assert_eq!(&open(7).unwrap()[..], b"header and payload");
        assert!(open(7 + 256).is_err());
    }
}
