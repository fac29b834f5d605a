//! How a side introduces itself: versions, abilities, secrets.
//!
//! What follows from a [`Hello`] is the session's matter. Invariant: one of any version can be read up to the fields of
//! version 1, so that two builds can always tell each other why they do not fit.

use std::fmt;

use crate::wire::{Reader, Writer};
use crate::{Error, HostTime, Kinds, Side, sanitise};

/// Longest software name in bytes.
pub const MAX_SOFTWARE: usize = 64;

/// Most compressions in a [`Hello`].
const MAX_COMPRESSIONS: usize = 16;

/// A range of protocol versions, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Lowest.
    pub min: u32,
    /// Highest.
    pub max: u32,
}

impl Versions {
    /// What this build speaks.
    pub const CURRENT: Self = Self { min: 1, max: 1 };

    /// The highest version of both.
    pub fn common(self, other: Self) -> Option<u32> {
        let highest = self.max.min(other.max);
        (highest >= self.min.max(other.min)).then_some(highest)
    }
}

/// Names a session of an app side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SessionId(pub [u8; 16]);

impl SessionId {
    /// Stands for whichever session the carrier leads to.
    pub const ANY: Self = Self([0; 16]);

    /// Whether the two may be one session.
    pub fn matches(self, other: Self) -> bool {
        self == other || self == Self::ANY || other == Self::ANY
    }
}

/// The one-time secret of a ticket, or what names one run of a display side. Not shown by `Debug`; compared in constant
/// time.
#[derive(Clone, Copy)]
pub struct Secret([u8; 32]);

impl Secret {
    /// The bytes, to be written into a ticket.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Secret {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        // The box keeps the compiler from leaving the loop at the first difference.
        pairs.fold(0, |sum, (a, b)| std::hint::black_box(sum | (a ^ b))) == 0
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What is kept of a secret in place of it: enough to recognise it, and nothing that lets in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest(pub [u8; 32]);

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(…)")
    }
}

/// A set of optional abilities, used only when both sides have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(u64);

impl Capabilities {
    /// None.
    pub const NONE: Self = Self(0);

    /// Videos: updates may bring frames of H.264.
    pub const VIDEO: Self = Self(1);

    /// The session goes on over another carrier when its own is lost.
    pub const RESUME: Self = Self(2);

    /// Of a display side: it is view-only. Of an app side: it allows viewers beside the one that it serves.
    pub const VIEW: Self = Self(4);

    /// Sound: [`Control::Listen`](super::Control::Listen), channels and datagrams of sound.
    pub const SOUND: Self = Self(8);

    /// Of a display side: its user lets programs record the microphone. Of an app side: it knows what to do with that.
    /// Needs [`SOUND`](Self::SOUND).
    pub const MICROPHONE: Self = Self(16);

    /// [`Control::OpenUrl`](super::Control::OpenUrl). Of a display side: its user lets the host ask, at least.
    pub const OPEN_URL: Self = Self(32);

    /// [`Control::Notify`](super::Control::Notify). Of a display side: its user wants to see notifications.
    pub const NOTIFY: Self = Self(64);

    /// [`Control::File`](super::Control::File) and [`Control::FetchFile`](super::Control::FetchFile): the user takes
    /// files, and on the app side gives those that the display asks for.
    pub const FILES: Self = Self(128);

    /// [`Control::TrayItem`](super::Control::TrayItem). Of a display side: its user wants to see icons in the tray.
    pub const TRAY: Self = Self(256);

    /// The app side says in [`Control::FileDone`](super::Control::FileDone) where it has kept a file. Needs
    /// [`FILES`](Self::FILES).
    pub const FILE_PLACES: Self = Self(512);

    /// Updates may cover those before them, and bring the units that show them.
    pub const COVER: Self = Self(1024);

    /// Units say which key the program had been given before it made them, and the app side says which keys it will not
    /// answer. Of a display side: it predicts what keys will look like.
    pub const ECHO: Self = Self(2048);

    /// Rows of repair come in datagrams, and on no streams: for a side whose carrier reads each stream in order only,
    /// or does not count streams as its peer does.
    pub const DATAGRAM_REPAIR: Self = Self(4096);

    /// Of an app side: who only [views](Self::VIEW) may hear the session, too. Needs [`SOUND`](Self::SOUND).
    pub const SHARED_SOUND: Self = Self(8192);

    /// [`Control::Loss`](super::Control::Loss). Of a display side: it shows what the link loses.
    pub const LOSS: Self = Self(16_384);

    /// The set with this bit mask; unknown bits are kept and mean nothing.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The bit mask.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// With all of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in it.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// What both have.
    #[must_use]
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// How chunks may be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Compression {
    /// Not at all; always understood.
    None = 0,
    /// LZ4 block format.
    Lz4 = 1,
    /// Zstandard.
    Zstd = 2,
}

impl Compression {
    fn from_code(code: u8) -> Option<Self> {
        [Self::None, Self::Lz4, Self::Zstd].into_iter().find(|compression| *compression as u8 == code)
    }
}

/// How a side introduces itself: the first message of its control stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The protocol versions that it speaks.
    pub versions: Versions,
    /// Which half it is.
    pub side: Side,
    /// The session that it is or wants.
    pub session: SessionId,
    /// Its optional abilities.
    pub capabilities: Capabilities,
    /// The kinds that it accepts on streams of their own.
    pub streams: Kinds,
    /// The ticket's secret; from the display.
    pub secret: Option<Secret>,
    /// What it can decompress, preferred first.
    pub compression: Vec<Compression>,
    /// Its host's clock when it was written.
    pub clock: HostTime,
    /// Program and version; ≤ [`MAX_SOFTWARE`] bytes.
    pub software: String,
    /// Which run of a display side this is: random, and as secret as a ticket's, for a display that shows it may go on
    /// with what that run has begun. From a display that can resume.
    pub incarnation: Option<Secret>,
    /// The display wants to go on with a session of an earlier carrier.
    pub resuming: bool,
    /// How many carriers of this incarnation were tried before: what comes late of an earlier one can be told.
    pub attempt: u64,
    /// In which attempt that session began: the first, 0, or the last one that the app side
    /// [declined](super::Control::Declined).
    pub began: u64,
}

impl Hello {
    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.varint(self.versions.min.into()).varint(self.versions.max.into());
        writer.u8(match self.side {
            Side::App => 0,
            Side::Display => 1,
        });
        writer.raw(&self.session.0).u64(self.capabilities.bits()).u64(self.streams.bits());
        encode_secret(self.secret.as_ref(), writer);
        writer.varint(self.compression.len() as u64);
        for compression in &self.compression {
            writer.u8(*compression as u8);
        }
        writer.varint(self.clock.0).str(&sanitise(&self.software, MAX_SOFTWARE));
        encode_secret(self.incarnation.as_ref(), writer);
        writer.bool(self.resuming).varint(self.attempt).varint(self.began);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let versions =
            Versions { min: reader.varint_u32("a version")?, max: reader.varint_u32("a version")? };
        if versions.min > versions.max {
            return Err(Error::OutOfRange {
                expected: "the lowest version",
                max: versions.max.into(),
                got: versions.min.into(),
            });
        }
        let side = match reader.u8("a side")? {
            0 => Side::App,
            1 => Side::Display,
            got => return Err(Error::Unknown { expected: "a side", got: got.into() }),
        };
        let session = SessionId(reader.array("a session id")?);
        let capabilities = Capabilities::from_bits(reader.u64("capabilities")?);
        let streams = Kinds::from_bits(reader.u64("stream kinds")?);
        let secret = decode_secret(reader)?;
        let count = reader.count(MAX_COMPRESSIONS, "the number of compressions")?;
        let codes = reader.raw(count, "compressions")?;
        let compression = codes.iter().filter_map(|code| Compression::from_code(*code)).collect();
        let clock = HostTime(reader.varint("a clock")?);
        let software = sanitise(reader.str(MAX_SOFTWARE, "a software name")?, MAX_SOFTWARE);
        // Not from builds before these fields.
        let old = reader.is_empty();
        let incarnation = if old { None } else { decode_secret(reader)? };
        let resuming = !old && reader.bool("whether it resumes")?;
        let attempt = if old { 0 } else { reader.varint("the number of carriers before")? };
        let began = if old { 0 } else { reader.varint("the carrier of its beginning")? };
        reader.rest(); // fields of later versions
        Ok(Self {
            versions,
            side,
            session,
            capabilities,
            streams,
            secret,
            compression,
            clock,
            software,
            incarnation,
            resuming,
            attempt,
            began,
        })
    }
}

fn encode_secret(secret: Option<&Secret>, writer: &mut Writer) {
    writer.bytes(secret.map_or(&[], |secret| secret.0.as_slice()));
}

fn decode_secret(reader: &mut Reader<'_>) -> Result<Option<Secret>, Error> {
    match reader.bytes(32, "a secret")? {
        [] => Ok(None),
        bytes => Ok(Some(Secret(bytes.try_into().map_err(|_| Error::Truncated { expected: "a secret" })?))),
    }
}
