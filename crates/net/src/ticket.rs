//! The ticket: all that a display needs to find and trust an app side, in one line to copy.
//!
//! `wf1:` and base64url (RFC 4648 §5, without padding) of: session id (16 bytes), certificate fingerprint (32),
//! secret (32), number of addresses (1), each as 4 or 6 (1), IP (4 or 16) and port (2, big-endian), and the first 4
//! bytes of the SHA-256 of all that. A scope id of an IPv6 address is not carried: it means nothing elsewhere.
//!
//! Invariant: a text that parses gives back the same text, and a text that was cut or mistyped does not parse.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use wayferry_proto::{Secret, SessionId};

use crate::identity::Fingerprint;

/// Where an app side listens, how to recognise it, and what to show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Where it may be reached; 1 to [`ADDRESSES_MAX`], tried all at once.
    pub addresses: Vec<SocketAddr>,
    /// Its certificate.
    pub fingerprint: Fingerprint,
    /// The one-time secret that admits a display.
    pub secret: Secret,
    /// The session to attach to.
    pub session: SessionId,
}

/// The text to copy. It contains the secret. Addresses beyond [`ADDRESSES_MAX`] are left out.
impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend_from_slice(&self.session.0);
        bytes.extend_from_slice(&self.fingerprint.0);
        bytes.extend_from_slice(self.secret.expose());
        let addresses = &self.addresses[..self.addresses.len().min(ADDRESSES_MAX)];
        bytes.push(addresses.len() as u8);
        for address in addresses {
            match address.ip() {
                IpAddr::V4(ip) => {
                    bytes.push(4);
                    bytes.extend_from_slice(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    bytes.push(6);
                    bytes.extend_from_slice(&ip.octets());
                }
            }
            bytes.extend_from_slice(&address.port().to_be_bytes());
        }
        let check = checksum(&bytes);
        bytes.extend_from_slice(&check);
        f.write_str(PREFIX)?;
        f.write_str(&to_base64url(&bytes))
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Self, TicketError> {
        let digits = digits(text.trim())?;
        let bytes = from_base64url(digits)?;
        let mut fields = Fields(&bytes);
        let session = SessionId(fields.array()?);
        let fingerprint = Fingerprint(fields.array()?);
        let secret = Secret::from(fields.array()?);
        let [count] = fields.array()?;
        if count == 0 || usize::from(count) > ADDRESSES_MAX {
            return Err(TicketError::WrongAddressCount { found: count });
        }
        let addresses = (0..count).map(|_| fields.address()).collect::<Result<_, _>>()?;
        let body = &bytes[..bytes.len() - fields.0.len()];
        let check: [u8; CHECKSUM] = fields.array()?;
        if !fields.0.is_empty() {
            return Err(TicketError::TooLong { extra: fields.0.len() });
        }
        if check != checksum(body) {
            return Err(TicketError::Mistyped);
        }
        Ok(Self { addresses, fingerprint, secret, session })
    }
}

/// Why a text is not a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketError {
    /// It does not begin with `wf1:`.
    WrongPrefix,
    /// It begins like a ticket of another version, `wf` and this number.
    UnsupportedVersion {
        /// The version.
        version: u32,
    },
    /// A character that does not occur in tickets.
    BadCharacter {
        /// The character.
        character: char,
        /// Where, counted in bytes from 0.
        position: usize,
    },
    /// It ends too early: a part was not copied.
    Truncated,
    /// Bytes follow after the end.
    TooLong {
        /// How many.
        extra: usize,
    },
    /// No address, or more than [`ADDRESSES_MAX`].
    WrongAddressCount {
        /// How many it claims to have.
        found: u8,
    },
    /// An address that is neither IPv4 nor IPv6.
    UnknownAddress {
        /// The kind that it claims to be.
        kind: u8,
    },
    /// The checksum does not fit: a character was changed.
    Mistyped,
}

impl fmt::Display for TicketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongPrefix => write!(f, "a ticket begins with `{PREFIX}`"),
            Self::UnsupportedVersion { version } => {
                write!(f, "the ticket has version {version}, this program reads version 1")
            }
            Self::BadCharacter { character, position } => {
                write!(f, "{character:?} at position {position} does not occur in a ticket")
            }
            Self::Truncated => f.write_str("the ticket is cut off"),
            Self::TooLong { extra } => write!(f, "the ticket has {extra} bytes too many"),
            Self::WrongAddressCount { found } => {
                write!(f, "the ticket has {found} addresses, expected 1 to {ADDRESSES_MAX}")
            }
            Self::UnknownAddress { kind } => {
                write!(f, "the ticket has an address of the unknown kind {kind}")
            }
            Self::Mistyped => f.write_str("the ticket has a wrong character"),
        }
    }
}

impl std::error::Error for TicketError {}

/// The part after the prefix.
fn digits(text: &str) -> Result<&str, TicketError> {
    if let Some(digits) = text.strip_prefix(PREFIX) {
        return Ok(digits);
    }
    let version = text.strip_prefix("wf").and_then(|rest| rest.split_once(':')?.0.parse().ok());
    Err(version.map_or(TicketError::WrongPrefix, |version| TicketError::UnsupportedVersion { version }))
}

/// Bytes that are still to be read.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], TicketError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(TicketError::Truncated)?;
        self.0 = rest;
        Ok(*array)
    }

    fn address(&mut self) -> Result<SocketAddr, TicketError> {
        let [kind] = self.array()?;
        let ip = match kind {
            4 => IpAddr::from(Ipv4Addr::from(self.array::<4>()?)),
            6 => IpAddr::from(Ipv6Addr::from(self.array::<16>()?)),
            kind => return Err(TicketError::UnknownAddress { kind }),
        };
        Ok(SocketAddr::new(ip, u16::from_be_bytes(self.array()?)))
    }
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let mut check = [0; CHECKSUM];
    check.copy_from_slice(&ring::digest::digest(&ring::digest::SHA256, bytes).as_ref()[..CHECKSUM]);
    check
}

pub(crate) fn to_base64url(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits =
            group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for digit in 0..=group.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * digit)) as usize & 63]));
        }
    }
    text
}

/// Strict: no padding, no foreign characters, no bits beyond the last byte.
fn from_base64url(text: &str) -> Result<Vec<u8>, TicketError> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for (position, character) in text.char_indices().take(DIGITS_MAX) {
        let bad = TicketError::BadCharacter { character, position: position + PREFIX.len() };
        let digit = ALPHABET.iter().position(|known| char::from(*known) == character).ok_or(bad)?;
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    match (count, bits) {
        (6, _) => Err(TicketError::Truncated),
        (_, 0) => Ok(bytes),
        _ => Err(TicketError::Mistyped),
    }
}

/// Most addresses in a ticket.
pub const ADDRESSES_MAX: usize = 16;

const PREFIX: &str = "wf1:";
const CHECKSUM: usize = 4;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// More digits than any ticket has; what follows makes it too long anyway.
const DIGITS_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ticket() -> impl Strategy<Value = Ticket> {
        let address = prop_oneof![
            (any::<[u8; 4]>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::from((ip, port))),
            (any::<[u8; 16]>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::from((ip, port))),
        ];
        let addresses = prop::collection::vec(address, 1..=ADDRESSES_MAX);
        (addresses, any::<[u8; 32]>(), any::<[u8; 32]>(), any::<[u8; 16]>()).prop_map(
            |(addresses, fingerprint, secret, session)| Ticket {
                addresses,
                fingerprint: Fingerprint(fingerprint),
                secret: Secret::from(secret),
                session: SessionId(session),
            },
        )
    }

    fn example() -> Ticket {
        Ticket {
            addresses: vec![SocketAddr::from(([127, 0, 0, 1], 4433))],
            fingerprint: Fingerprint([1; 32]),
            secret: Secret::from([2; 32]),
            session: SessionId([3; 16]),
        }
    }

    proptest! {
        #[test]
        fn survives_its_text(ticket in ticket()) {
            prop_assert_eq!(ticket.to_string().parse(), Ok(ticket));
        }

        #[test]
        fn a_cut_or_changed_text_never_parses(ticket in ticket(), at in any::<prop::sample::Index>(), to in 0..64usize) {
            let text = ticket.to_string();
            let at = PREFIX.len() + at.index(text.len() - PREFIX.len());
            prop_assert!(text[..at].parse::<Ticket>().is_err());
            let mut changed = text.clone().into_bytes();
            changed[at] = ALPHABET[to];
            let changed = String::from_utf8(changed).unwrap();
            prop_assert_eq!(changed.parse::<Ticket>().is_ok(), changed == text);
        }

        #[test]
        fn anything_else_is_an_error(text in ".{0,300}") {
            prop_assert!(text.parse::<Ticket>().is_err());
            let prefixed = format!("wf1:{text}").parse::<Ticket>();
            prop_assert!(prefixed.is_err());
        }
    }

    #[test]
    fn errors_name_the_trouble() {
        let error = |text: &str| text.parse::<Ticket>().unwrap_err();
        let text = example().to_string();
        assert_eq!(error("http://example"), TicketError::WrongPrefix);
        assert_eq!(error(&text.replace("wf1", "wf2")), TicketError::UnsupportedVersion { version: 2 });
        assert_eq!(error(&text[..60]), TicketError::Truncated);
        let bad = TicketError::BadCharacter { character: '+', position: 10 };
        assert_eq!(error(&format!("{}+{}", &text[..10], &text[11..])), bad);
        assert_eq!(error(&format!("{text}AAAA")), TicketError::TooLong { extra: 3 });
        let mut none = example();
        none.addresses.clear();
        assert_eq!(error(&none.to_string()), TicketError::WrongAddressCount { found: 0 });
        assert_eq!(format!("  {text}\n").parse(), Ok(example()));
    }

    #[test]
    fn debug_does_not_show_the_secret() {
        let shown = format!("{:?}", example());
        assert!(!shown.contains("2, 2") && !shown.contains("0202"), "{shown}");
    }
}
