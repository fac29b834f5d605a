//! Packets that anyone can make who has seen a first one: the keys of Initial packets come from a number in it (RFC
//! 9001 §5.2), and Version Negotiation and Retry packets need none that are secret (RFC 9000 §17.2.1, RFC 9001 §5.8).

#![allow(dead_code, reason = "each test binary compiles all of it and uses a part")]

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread::JoinHandle;

use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{DirectionalKeys, Keys, Version};
use rustls::{Side, SupportedCipherSuite};

/// What a display's Initial packet shows to everyone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Where it goes: the first one decides the keys.
    pub(crate) destination: Vec<u8>,
    /// Whom it comes from.
    pub(crate) source: Vec<u8>,
}

impl Seen {
    /// Of a datagram that begins with an Initial packet of QUIC version 1.
    pub(crate) fn of(datagram: &[u8]) -> Option<Self> {
        if datagram.first()? & 0xf0 != 0xc0 || datagram.get(1..5)? != [0, 0, 0, 1] {
            return None;
        }
        let length = usize::from(*datagram.get(5)?);
        let destination = datagram.get(6..6 + length)?.to_vec();
        let at = 6 + length;
        let length = usize::from(*datagram.get(at)?);
        Some(Self { destination, source: datagram.get(at + 1..at + 1 + length)?.to_vec() })
    }

    /// An Initial packet as of the app side, with these frames.
    pub(crate) fn answer(&self, frames: &[u8]) -> Vec<u8> {
        initial(&self.source, &OURS, number(1), frames, &keys(&self.destination, Side::Server))
    }

    /// An Initial packet as of the display, with these frames.
    pub(crate) fn follow(&self, frames: &[u8]) -> Vec<u8> {
        initial(&self.destination, &self.source, number(100), frames, &keys(&self.destination, Side::Client))
    }

    /// A Version Negotiation packet that knows only another version.
    pub(crate) fn other_version(&self) -> Vec<u8> {
        let mut packet = vec![0xc0, 0, 0, 0, 0];
        identify(&mut packet, &self.source, &self.destination);
        packet.extend([0x0a, 0x1a, 0x2a, 0x4a]);
        packet
    }

    /// A Retry packet with a token that no app side has made.
    pub(crate) fn retry(&self) -> Vec<u8> {
        let mut packet = vec![0xf0, 0, 0, 0, 1];
        identify(&mut packet, &self.source, &OURS);
        packet.extend(b"a token of no server");
        let mut pseudo = vec![self.destination.len() as u8];
        pseudo.extend(&self.destination);
        pseudo.extend(&packet);
        // RFC 9001 §5.8.
        let key = *b"\xbe\x0c\x69\x0b\x9f\x66\x57\x5a\x1d\x76\x6b\x54\xe3\x68\xc8\x4e";
        let nonce = *b"\x46\x15\x99\xd3\x5d\x63\x2b\xf2\x23\x98\x25\xbb";
        let key = ring::aead::UnboundKey::new(&ring::aead::AES_128_GCM, &key).unwrap();
        let key = ring::aead::LessSafeKey::new(key);
        let nonce = ring::aead::Nonce::assume_unique_for_key(nonce);
        let tag = key.seal_in_place_separate_tag(nonce, ring::aead::Aad::from(pseudo), &mut []).unwrap();
        packet.extend(tag.as_ref());
        packet
    }
}

/// A CONNECTION_CLOSE of the transport with this code (RFC 9000 §19.19).
pub(crate) fn close(code: u16) -> Vec<u8> {
    let code = code | 0x4000;
    [&[0x1c][..], &code.to_be_bytes(), &[0, 0]].concat()
}

/// A CRYPTO frame from the beginning of the stream (RFC 9000 §19.6).
pub(crate) fn crypto(bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len() as u16 | 0x4000;
    [&[6, 0][..], &length.to_be_bytes(), bytes].concat()
}

/// A ServerHello that looks right (RFC 8446 §4.1.3): its key share is the base point of X25519.
pub(crate) fn server_hello() -> Vec<u8> {
    let mut share = [0; 32];
    share[0] = 9;
    let mut body = [&[3, 3][..], &[7; 32], &[0, 0x13, 1, 0]].concat();
    let extensions = [&[0, 43, 0, 2, 3, 4, 0, 51, 0, 36, 0, 29, 0, 32][..], &share].concat();
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(extensions);
    [&[2, 0][..], &(body.len() as u16).to_be_bytes(), &body].concat()
}

/// First packets of `count` displays that are not there. Each has keys of its own, and the beginning of a ClientHello:
/// the host has to wait for the rest.
pub(crate) fn first_packets(count: u32) -> Vec<Vec<u8>> {
    let first = |at: u32| {
        let destination = [&b"four"[..], &at.to_be_bytes()].concat();
        let mut frames = crypto(&[1, 0, 2, 0, 3, 3]);
        frames.resize(1150, 0);
        let keys = keys(&destination, Side::Client);
        initial(&destination, b"nowhere.", number(0), &frames, &keys)
    };
    (0..count).map(first).collect()
}

fn number(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn keys(destination: &[u8], side: Side) -> DirectionalKeys {
    let SupportedCipherSuite::Tls13(suite) = TLS13_AES_128_GCM_SHA256;
    Keys::initial(Version::V1, suite, suite.quic.expect("it is for QUIC"), destination, side).local
}

fn identify(packet: &mut Vec<u8>, destination: &[u8], source: &[u8]) {
    for identity in [destination, source] {
        packet.push(identity.len() as u8);
        packet.extend(identity);
    }
}

/// RFC 9000 §17.2.2, RFC 9001 §5.
fn initial(
    destination: &[u8],
    source: &[u8],
    number: [u8; 4],
    frames: &[u8],
    keys: &DirectionalKeys,
) -> Vec<u8> {
    let mut payload = frames.to_vec();
    payload.resize(frames.len().max(32), 0);
    let mut header = vec![0xc3, 0, 0, 0, 1];
    identify(&mut header, destination, source);
    header.push(0);
    let length = (number.len() + payload.len() + 16) as u16 | 0x4000;
    header.extend(length.to_be_bytes());
    let at = header.len();
    header.extend(number);
    let tag = keys.packet.encrypt_in_place(u32::from_be_bytes(number).into(), &header, &mut payload).unwrap();
    payload.extend(tag.as_ref());
    let (first, rest) = header.split_at_mut(1);
    keys.header.encrypt_in_place(&payload[..16], &mut first[0], &mut rest[at - 1..]).unwrap();
    header.extend(payload);
    header
}

/// The connection id that the forger chooses.
const OURS: [u8; 8] = *b"somebody";

/// What the forger makes of a first packet.
pub(crate) type Forgery = fn(&Seen) -> Packets;

pub(crate) enum Packets {
    /// To the display, before the host's answer.
    Answers(Vec<Vec<u8>>),
    /// To the host, behind the display's packet.
    Follow(Vec<Vec<u8>>),
}

pub(crate) fn answers(packets: impl IntoIterator<Item = Vec<u8>>) -> Packets {
    Packets::Answers(packets.into_iter().collect())
}

/// Each ends the display's attempt, or leaves it without an answer.
pub(crate) const FORGERIES: [(&str, Forgery); 11] = [
    ("a close without an error", |seen| answers([seen.answer(&close(0))])),
    ("a refusal", |seen| answers([seen.answer(&close(2))])),
    ("a wrong token", |seen| answers([seen.answer(&close(0xb))])),
    ("an alert about the certificate", |seen| answers([seen.answer(&close(0x12a))])),
    ("an alert about the version of Wayferry", |seen| answers([seen.answer(&close(0x178))])),
    ("a frame that may not come", |seen| answers([seen.answer(&[0x1d, 8, 0])])),
    ("what is no TLS", |seen| answers([seen.answer(&crypto(b"HTTP/1.1 400 Bad Request"))])),
    ("a ServerHello with other keys", |seen| answers([seen.answer(&crypto(&server_hello()))])),
    ("another version of QUIC", |seen| answers([seen.other_version()])),
    ("a Retry", |seen| answers([seen.retry()])),
    ("noise", |_| answers([vec![0xc0; 60], vec![0x41; 60], vec![0xe0, 0, 0, 0, 1, 8, 8], vec![0x7f; 1200]])),
];

/// Forwards datagrams between a display and a host, and forges packets at the first one of some of the display's
/// attempts.
pub(crate) struct Forger {
    pub(crate) address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Forger {
    pub(crate) fn start(host: SocketAddr, forgery: Forgery, attempts: std::ops::Range<usize>) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let (mut buffer, mut display, mut seen) = ([0; 65536], host, BTreeSet::new());
            // An empty datagram is the end.
            while let Ok((length @ 1.., from)) = socket.recv_from(&mut buffer) {
                let datagram = &buffer[..length];
                let send = |packet: &[u8], to| drop(socket.send_to(packet, to));
                if from == host {
                    send(datagram, display);
                    continue;
                }
                display = from;
                let count = seen.len();
                let first = Seen::of(datagram).filter(|packet| seen.insert(packet.source.clone()));
                match first.filter(|_| attempts.contains(&count)).map(|first| forgery(&first)) {
                    None => send(datagram, host),
                    // The display's packet is lost.
                    Some(Packets::Answers(packets)) if packets.is_empty() => {}
                    Some(Packets::Answers(packets)) => {
                        packets.iter().for_each(|packet| send(packet, display));
                        send(datagram, host);
                    }
                    Some(Packets::Follow(packets)) => {
                        send(datagram, host);
                        packets.iter().for_each(|packet| send(packet, host));
                    }
                }
            }
        });
        Self { address, thread: Some(thread) }
    }
}

impl Drop for Forger {
    fn drop(&mut self) {
        let _ = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().send_to(&[], self.address);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
