//! The messages of the main channel.
//!
//! Each is one frame of the control stream: a varint type, then its fields. What they mean to a session is the
//! session's matter. Invariant: a [`Hello`] of any version can be read up to the fields of version 1, so that two
//! builds can always tell each other why they do not fit.

use std::fmt;

use bytes::Bytes;

use crate::file::{self, FileFate, FileOffer, MAX_FILE_PATH};
use crate::note::{MAX_ACTION, MAX_TOKEN};
use crate::tray::item_id;
use crate::wire::{Reader, Writer};
use crate::{
    ConnectionId, Error, HostTime, Kinds, Note, NoteEnd, Receipt, Side, TrayAct, TrayItem, TrayMenu, sanitise,
};

/// Longest frame of the main channel in bytes: a snapshot of [`MAX_SNAPSHOT`] with its fields around it.
pub const MAX_CONTROL: usize = MAX_SNAPSHOT + 64;

/// Longest [`Control::Snapshot`] in bytes.
pub const MAX_SNAPSHOT: usize = 64 << 10;

/// Longest message of a Wayland or event channel in bytes: a commit with some thousand subsurfaces.
pub const MAX_MESSAGE: usize = 1 << 20;

/// Longest software name in bytes.
pub const MAX_SOFTWARE: usize = 64;

/// Longest text of an error in [`Control::AppClosed`], in bytes.
pub const MAX_ERROR_TEXT: usize = 512;

/// Longest address in [`Control::OpenUrl`], in bytes.
pub const MAX_URL: usize = 2048;

/// Most channels in [`Resume::stopped`].
pub const MAX_STOPPED: usize = 256;

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

    /// Sound: [`Control::Listen`], channels and datagrams of sound.
    pub const SOUND: Self = Self(8);

    /// Of a display side: its user lets programs record the microphone. Of an app side: it knows what to do with that.
    /// Needs [`SOUND`](Self::SOUND).
    pub const MICROPHONE: Self = Self(16);

    /// [`Control::OpenUrl`]. Of a display side: its user lets the host ask, at least.
    pub const OPEN_URL: Self = Self(32);

    /// [`Control::Notify`]. Of a display side: its user wants to see notifications.
    pub const NOTIFY: Self = Self(64);

    /// [`Control::File`] and [`Control::FetchFile`]: the user takes files, and on the app side gives those that the
    /// display asks for.
    pub const FILES: Self = Self(128);

    /// [`Control::TrayItem`]. Of a display side: its user wants to see icons in the tray.
    pub const TRAY: Self = Self(256);

    /// The app side says in [`Control::FileDone`] where it has kept a file. Needs [`FILES`](Self::FILES).
    pub const FILE_PLACES: Self = Self(512);

    /// Updates may cover those before them, and bring the units that show them.
    pub const COVER: Self = Self(1024);

    /// Units say which key the program had been given before it made them, and the app side says which keys it will not
    /// answer. Of a display side: it predicts what keys will look like.
    pub const ECHO: Self = Self(2048);

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
    /// [declined](Control::Declined).
    pub began: u64,
}

impl Hello {
    fn encode(&self, writer: &mut Writer) {
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

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
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

/// What one side tells the other so that both can go on with their channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// What it has received of the other's channels.
    pub receipt: Receipt,
    /// Number and code of those of the other's channels that it stopped last: what [`Receipt::done`] does not say of
    /// them. At most [`MAX_STOPPED`].
    pub stopped: Vec<(u64, u32)>,
}

impl Resume {
    fn encode(&self, writer: &mut Writer) {
        self.receipt.encode(writer);
        writer.varint(self.stopped.len() as u64);
        for (number, code) in &self.stopped {
            writer.varint(*number).varint((*code).into());
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let receipt = Receipt::decode(reader)?;
        let count = reader.count(MAX_STOPPED, "the number of stopped channels")?;
        let stopped = (0..count).map(|_| Ok((reader.varint("a channel's number")?, code_of(reader)?)));
        Ok(Self { receipt, stopped: stopped.collect::<Result<_, Error>>()? })
    }
}

/// A message of the main channel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Control {
    /// The first one, once each way. The session's own.
    Hello(Hello),
    /// Asks for a [`Control::Pong`]. The session's own.
    Ping {
        /// Returned as it is.
        token: u64,
        /// The sender's clock.
        sent: HostTime,
    },
    /// Answers a [`Control::Ping`]. The session's own.
    Pong {
        /// As in the ping.
        token: u64,
        /// The answerer's clock.
        received: HostTime,
    },
    /// What the display side tells of its compositor; opaque here, ≤ [`MAX_SNAPSHOT`] bytes.
    Snapshot(Bytes),
    /// A program's connection ended at the sender.
    AppClosed {
        /// Which.
        connection: ConnectionId,
        /// Why, when it was not the program's own wish; ≤ [`MAX_ERROR_TEXT`] bytes.
        error: Option<String>,
    },
    /// The programs have ended with this status. The display answers by closing, so that it cannot get lost.
    Exit {
        /// Exit status as a shell shows it.
        code: i32,
    },
    /// The reader of a pipe has taken this many bytes since its beginning. The session's own.
    PipeCredit {
        /// Whose.
        connection: ConnectionId,
        /// Which pipe.
        pipe: u64,
        /// Bytes taken so far.
        consumed: u64,
    },
    /// A stream was refused because of its header. The session's own.
    Refused {
        /// The kind that it began with; 0 when none could be read.
        kind: u64,
    },
    /// Part of a channel that has no stream of its own. The session's own.
    Embedded {
        /// The virtual stream, counted by the sender beside its real ones.
        stream: u64,
        /// Where in the stream the bytes belong.
        offset: u64,
        /// The stream ends after them.
        finish: bool,
        /// The bytes.
        bytes: Bytes,
    },
    /// Gives up a virtual stream of the sender. The session's own.
    EmbeddedReset {
        /// The virtual stream.
        stream: u64,
        /// Why.
        code: u32,
    },
    /// Stops a virtual stream of the receiver. The session's own.
    EmbeddedStop {
        /// The virtual stream.
        stream: u64,
        /// Why.
        code: u32,
    },
    /// What has come of the receiver's channels since the last one; it need not be kept any more. The session's own.
    Received(Receipt),
    /// Goes on with the channels of an earlier carrier: from the display the first message after its hello, from the
    /// app side the answer to that. The session's own.
    Resume(Resume),
    /// Answers [`Control::Resume`]: there is nothing to go on with. The session's own.
    Declined,
    /// The sender gives one of its channels up, no matter what has become of its stream. The session's own.
    GivenUp {
        /// The channel's number.
        number: u64,
        /// Why.
        code: u32,
    },
    /// Which sound of the receiver's the sender of this wants to hear, and how that fares. Told again while it is
    /// heard, and on each carrier; best effort, see [`Session::listen`](crate::Session::listen).
    Listen(Listen),
    /// A program wants an address opened beside the display; from the app side.
    OpenUrl {
        /// Named in the answer.
        id: u64,
        /// The address as the program gave it, of at most [`MAX_URL`] bytes. It is not judged yet.
        url: String,
    },
    /// What became of a [`Control::OpenUrl`]; from the display side.
    UrlDone {
        /// As in the question.
        id: u64,
        /// Whether it is open.
        fate: UrlFate,
    },
    /// A program notifies the user; from the app side.
    Notify(Note),
    /// A program takes a notification back; from the app side.
    CloseNotification {
        /// Of [`Note::id`].
        id: u32,
    },
    /// A notification is not shown any more, or never was; from the display side.
    NotificationClosed {
        /// Of [`Note::id`].
        id: u32,
        /// Why.
        end: NoteEnd,
    },
    /// The user chose an action of a notification; from the display side.
    NotificationAction {
        /// Of [`Note::id`].
        id: u32,
        /// Of the action.
        key: String,
        /// With which the program may come to the front, if the desk gave one; at most
        /// [`MAX_TOKEN`](crate::note::MAX_TOKEN) bytes.
        token: Option<String>,
    },
    /// A file comes in a pipe of [`FILES`](crate::FILES); either side's.
    File(FileOffer),
    /// The display's user wants a file, which comes as a [`Control::File`]; from the display side.
    FetchFile {
        /// Named in the answer; counted with the sender's files.
        id: u64,
        /// Where it is, from the home directory there on; at most [`MAX_FILE_PATH`](crate::MAX_FILE_PATH) bytes.
        path: String,
    },
    /// What became of a file that the receiver of this offered, or wanted.
    FileDone {
        /// The receiver's number.
        id: u64,
        /// Whether it is there.
        fate: FileFate,
        /// Its path, if the app side has kept it and [`Capabilities::FILE_PLACES`] are agreed; at most
        /// [`MAX_FILE_PATH`](crate::MAX_FILE_PATH) bytes.
        place: Option<Vec<u8>>,
    },
    /// A program shows an icon in the tray, or changes it; from the app side.
    TrayItem(TrayItem),
    /// A program takes its icon away; from the app side.
    TrayGone {
        /// Of [`TrayItem::id`].
        id: u32,
    },
    /// The menu of an icon is so now; from the app side.
    TrayMenu(TrayMenu),
    /// The user does something with an icon; from the display side.
    TrayAct {
        /// Of [`TrayItem::id`].
        id: u32,
        /// What; `None` is something that only later builds know.
        act: Option<TrayAct>,
    },
    /// The desk has a tray, or has none any more; from the display side. It has forgotten all icons.
    Tray {
        /// It has one.
        is_there: bool,
    },
}

/// What became of an address that a program wanted to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum UrlFate {
    /// It was given to the desk's browser.
    Open = 0,
    /// The user refused, or could not be asked.
    Refused = 1,
    /// It is no address that may be opened.
    Unfit = 2,
    /// Too many came at once.
    TooMany = 3,
    /// There is no browser, or it cannot be started. Answers of later builds are taken for this one.
    Failed = 4,
}

impl UrlFate {
    fn from_code(code: u8) -> Self {
        let known = [Self::Open, Self::Refused, Self::Unfit, Self::TooMany];
        known.into_iter().find(|fate| *fate as u8 == code).unwrap_or(Self::Failed)
    }
}

/// See [`Control::Listen`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listen {
    /// The track of sound; 0 for none.
    pub track: u8,
    /// Bits in a second that it is to have; 0 if that does not matter.
    pub rate: u32,
    /// How long packets are held back against jitter, in milliseconds.
    pub target: u32,
    /// From the arrival of sound that came without jitter until it is heard, in milliseconds.
    pub delay: u32,
}

impl Listen {
    fn encode(&self, writer: &mut Writer) {
        writer.u8(self.track).varint(self.rate.into()).varint(self.target.into()).varint(self.delay.into());
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let listen = Self {
            track: reader.u8("a track of sound")?,
            rate: reader.varint_u32("a rate of sound")?,
            target: reader.varint_u32("a target of sound")?,
            delay: reader.varint_u32("a delay of sound")?,
        };
        reader.rest(); // fields of later builds
        Ok(listen)
    }
}

impl Control {
    /// Appends the message, without a length.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            Self::Hello(hello) => {
                writer.varint(1);
                hello.encode(writer);
            }
            Self::Ping { token, sent } => {
                writer.varint(2).varint(*token).varint(sent.0);
            }
            Self::Pong { token, received } => {
                writer.varint(3).varint(*token).varint(received.0);
            }
            Self::Snapshot(bytes) => {
                writer.varint(4).raw(bytes);
            }
            Self::AppClosed { connection, error } => {
                writer.varint(5).varint(connection.0.into()).bool(error.is_some());
                if let Some(error) = error {
                    writer.str(&sanitise(error, MAX_ERROR_TEXT));
                }
            }
            Self::Exit { code } => {
                writer.varint(6).i32(*code);
            }
            Self::PipeCredit { connection, pipe, consumed } => {
                writer.varint(7).varint(connection.0.into()).varint(*pipe).varint(*consumed);
            }
            Self::Refused { kind } => {
                writer.varint(8).varint(*kind);
            }
            Self::Embedded { stream, offset, finish, bytes } => {
                writer.varint(9).varint(*stream).varint(*offset).bool(*finish).raw(bytes);
            }
            Self::EmbeddedReset { stream, code } => {
                writer.varint(10).varint(*stream).varint((*code).into());
            }
            Self::EmbeddedStop { stream, code } => {
                writer.varint(11).varint(*stream).varint((*code).into());
            }
            Self::Received(receipt) => {
                writer.varint(12);
                receipt.encode(writer);
            }
            Self::Resume(resume) => {
                writer.varint(13);
                resume.encode(writer);
            }
            Self::Declined => {
                writer.varint(14);
            }
            Self::GivenUp { number, code } => {
                writer.varint(15).varint(*number).varint((*code).into());
            }
            Self::Listen(listen) => {
                writer.varint(16);
                listen.encode(writer);
            }
            told => told.encode_for_desk(writer),
        }
    }

    /// The same for what concerns the user's desk: addresses, notifications, files.
    fn encode_for_desk(&self, writer: &mut Writer) {
        match self {
            Self::OpenUrl { id, url } => {
                writer.varint(17).varint(*id).str(url);
            }
            Self::UrlDone { id, fate } => {
                writer.varint(18).varint(*id).u8(*fate as u8);
            }
            Self::Notify(note) => {
                writer.varint(19);
                note.encode(writer);
            }
            Self::CloseNotification { id } => {
                writer.varint(20).varint((*id).into());
            }
            Self::NotificationClosed { id, end } => {
                writer.varint(21).varint((*id).into()).u8(*end as u8);
            }
            Self::NotificationAction { id, key, token } => {
                writer.varint(22).varint((*id).into()).str(&sanitise(key, MAX_ACTION));
                // One that was cut would be no token.
                let token = token.as_deref().filter(|token| token.len() <= MAX_TOKEN);
                writer.str(token.unwrap_or_default());
            }
            Self::File(offer) => {
                writer.varint(23);
                offer.encode(writer);
            }
            Self::FetchFile { id, path } => {
                writer.varint(24).varint(*id).str(path);
            }
            Self::FileDone { id, fate, place } => {
                writer.varint(25).varint(*id).u8(*fate as u8);
                if let Some(place) = place {
                    writer.bytes(place);
                }
            }
            Self::TrayItem(_)
            | Self::TrayGone { .. }
            | Self::TrayMenu(_)
            | Self::TrayAct { .. }
            | Self::Tray { .. } => self.encode_tray(writer),
            // `encode` knows all others.
            _ => {}
        }
    }

    /// Reads one message. `Ok(None)` is a type that this build does not know, to be ignored.
    pub fn decode(frame: &Bytes) -> Result<Option<Self>, Error> {
        let mut reader = Reader::new(frame);
        let code = reader.varint("a control message")?;
        let message = match code {
            1 => Self::Hello(Hello::decode(&mut reader)?),
            2 => Self::Ping { token: reader.varint("a token")?, sent: HostTime(reader.varint("a clock")?) },
            3 => {
                Self::Pong { token: reader.varint("a token")?, received: HostTime(reader.varint("a clock")?) }
            }
            4 if reader.remaining() > MAX_SNAPSHOT => {
                let got = reader.remaining() as u64;
                return Err(Error::OutOfRange { expected: "a snapshot", max: MAX_SNAPSHOT as u64, got });
            }
            4 => Self::Snapshot(frame.slice_ref(reader.rest())),
            5 => Self::AppClosed {
                connection: ConnectionId(reader.varint_u32("a connection id")?),
                error: match reader.bool("the error flag")? {
                    true => Some(sanitise(reader.str(MAX_ERROR_TEXT, "an error text")?, MAX_ERROR_TEXT)),
                    false => None,
                },
            },
            6 => Self::Exit { code: reader.i32("an exit status")? },
            7 => Self::PipeCredit {
                connection: ConnectionId(reader.varint_u32("a connection id")?),
                pipe: reader.varint("a pipe id")?,
                consumed: reader.varint("a number of bytes")?,
            },
            8 => Self::Refused { kind: reader.varint("a stream kind")? },
            9 => Self::Embedded {
                stream: reader.varint("a stream id")?,
                offset: reader.varint("an offset")?,
                finish: reader.bool("the finish flag")?,
                bytes: frame.slice_ref(reader.rest()),
            },
            10 => Self::EmbeddedReset { stream: reader.varint("a stream id")?, code: code_of(&mut reader)? },
            11 => Self::EmbeddedStop { stream: reader.varint("a stream id")?, code: code_of(&mut reader)? },
            12 => Self::Received(Receipt::decode(&mut reader)?),
            13 => Self::Resume(Resume::decode(&mut reader)?),
            14 => Self::Declined,
            15 => match reader.varint("a channel's number")? {
                0 => return Err(Error::Unknown { expected: "a channel's number from 1", got: 0 }),
                number => Self::GivenUp { number, code: code_of(&mut reader)? },
            },
            16 => Self::Listen(Listen::decode(&mut reader)?),
            17 => Self::OpenUrl {
                id: reader.varint("the number of a question")?,
                url: reader.str(MAX_URL, "an address")?.to_owned(),
            },
            18 => Self::UrlDone {
                id: reader.varint("the number of a question")?,
                fate: UrlFate::from_code(reader.u8("what became of an address")?),
            },
            19 => Self::Notify(Note::decode(&mut reader)?),
            20 => Self::CloseNotification { id: note_id(&mut reader)? },
            21 => Self::NotificationClosed {
                id: note_id(&mut reader)?,
                end: NoteEnd::from_code(reader.u8("why a notification has gone")?.into()),
            },
            22 => Self::NotificationAction {
                id: note_id(&mut reader)?,
                key: sanitise(reader.str(MAX_ACTION, "an action's key")?, MAX_ACTION),
                token: Some(sanitise(reader.str(MAX_TOKEN, "an activation token")?, MAX_TOKEN))
                    .filter(|token| !token.is_empty()),
            },
            23 => Self::File(FileOffer::decode(&mut reader)?),
            24 => Self::FetchFile {
                id: reader.varint("the number of a request for a file")?,
                path: reader.str(MAX_FILE_PATH, "the path of a file")?.to_owned(),
            },
            25 => Self::FileDone {
                id: reader.varint("the number of a file")?,
                fate: FileFate::from_code(reader.u8("what became of a file")?),
                place: file::place(&mut reader)?,
            },
            26..=30 => Self::decode_tray(code, &mut reader)?,
            _ => return Ok(None),
        };
        reader.finish("a control message")?;
        Ok(Some(message))
    }

    /// Those of the tray.
    fn encode_tray(&self, writer: &mut Writer) {
        match self {
            Self::TrayItem(item) => {
                writer.varint(26);
                item.encode(writer);
            }
            Self::TrayGone { id } => {
                writer.varint(27).varint((*id).into());
            }
            Self::TrayMenu(menu) => {
                writer.varint(28);
                menu.encode(writer);
            }
            Self::TrayAct { id, act } => {
                writer.varint(29).varint((*id).into());
                match act {
                    Some(act) => act.encode(writer),
                    None => drop(writer.u8(u8::MAX)),
                }
            }
            Self::Tray { is_there } => {
                writer.varint(30).bool(*is_there);
            }
            _ => {}
        }
    }

    /// Those of the tray.
    fn decode_tray(code: u64, reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(match code {
            26 => Self::TrayItem(TrayItem::decode(reader)?),
            27 => Self::TrayGone { id: item_id(reader)? },
            28 => Self::TrayMenu(TrayMenu::decode(reader)?),
            29 => Self::TrayAct { id: item_id(reader)?, act: TrayAct::decode(reader)? },
            _ => Self::Tray { is_there: reader.bool("whether there is a tray")? },
        })
    }

    /// Whether the session sends and handles it itself; such a message is neither given to
    /// [`Session::control`](crate::Session::control) nor reported as an event.
    pub fn is_internal(&self) -> bool {
        !self.is_told() && !matches!(self, Self::Listen(_))
    }

    /// Whether somebody waits for it: not for what only keeps count or time.
    pub(crate) fn is_waited_for(&self) -> bool {
        !matches!(self, Self::Ping { .. } | Self::Pong { .. } | Self::Received(_))
    }

    /// Whether it reaches the peer exactly once in a session that is resumed, however often that is: those that are
    /// not told again by something else.
    pub(crate) fn is_lasting(&self) -> bool {
        self.is_told() || matches!(self, Self::GivenUp { .. })
    }

    /// Whether a user of the session tells it to the peer's, and it must arrive.
    fn is_told(&self) -> bool {
        let told = matches!(
            self,
            Self::Snapshot(_)
                | Self::AppClosed { .. }
                | Self::Exit { .. }
                | Self::OpenUrl { .. }
                | Self::UrlDone { .. }
                | Self::File(_)
                | Self::FetchFile { .. }
                | Self::FileDone { .. }
        );
        told || self.needs().is_some()
    }

    /// What both sides must be able to do if it is to be heard.
    pub(crate) fn needs(&self) -> Option<Capabilities> {
        let of_the_tray = matches!(
            self,
            Self::TrayItem(_)
                | Self::TrayGone { .. }
                | Self::TrayMenu(_)
                | Self::TrayAct { .. }
                | Self::Tray { .. }
        );
        match self.is_notification() {
            true => Some(Capabilities::NOTIFY),
            false => of_the_tray.then_some(Capabilities::TRAY),
        }
    }

    fn is_notification(&self) -> bool {
        matches!(
            self,
            Self::Notify(_)
                | Self::CloseNotification { .. }
                | Self::NotificationClosed { .. }
                | Self::NotificationAction { .. }
        )
    }
}

fn note_id(reader: &mut Reader<'_>) -> Result<u32, Error> {
    reader.varint_u32("the number of a notification")
}

fn code_of(reader: &mut Reader<'_>) -> Result<u32, Error> {
    reader.varint_u32("a stream error code")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Delivered;

    fn hello() -> Hello {
        Hello {
            versions: Versions::CURRENT,
            side: Side::Display,
            session: SessionId([7; 16]),
            capabilities: Capabilities::from_bits(1 << 40),
            streams: Kinds::ALL,
            secret: Some([9; 32].into()),
            compression: vec![Compression::Zstd, Compression::None],
            clock: HostTime(123_456_789_012),
            software: "wayferry 0.1.0".into(),
            incarnation: Some([8; 32].into()),
            resuming: true,
            attempt: 5,
            began: 2,
        }
    }

    fn encode(message: &Control) -> Bytes {
        let mut writer = Writer::new();
        message.encode(&mut writer);
        writer.into_vec().into()
    }

    #[test]
    fn where_a_file_is_may_be_told_or_not() {
        for place in [None, Some(b"/home/ann/\xff".to_vec())] {
            let told = Control::FileDone { id: 9, fate: FileFate::Kept, place };
            assert_eq!(Control::decode(&encode(&told)), Ok(Some(told)));
        }
        let cut = Control::decode(&Bytes::from_static(&[25, 9, 0, 5, b'/']));
        assert!(cut.is_err());
    }

    #[test]
    fn messages_survive_the_wire() {
        let connection = ConnectionId(3);
        let messages = [
            Control::Hello(hello()),
            Control::Hello(Hello { secret: None, compression: vec![], ..hello() }),
            Control::Hello(Hello { incarnation: None, resuming: false, attempt: 0, began: 0, ..hello() }),
            Control::Ping { token: 1, sent: HostTime(2) },
            Control::Pong { token: 1, received: HostTime(3) },
            Control::Snapshot(Bytes::from_static(b"snapshot")),
            Control::AppClosed { connection, error: None },
            Control::AppClosed { connection, error: Some("broke".into()) },
            Control::Exit { code: -1 },
            Control::PipeCredit { connection, pipe: 5, consumed: 1 << 40 },
            Control::Refused { kind: 77 },
            Control::Embedded { stream: 1, offset: 99, finish: true, bytes: Bytes::from_static(b"part") },
            Control::EmbeddedReset { stream: 1, code: u32::MAX },
            Control::EmbeddedStop { stream: 1, code: 0 },
            Control::Received(receipt()),
            Control::Resume(Resume { receipt: receipt(), stopped: vec![(9, 7), (4, u32::MAX)] }),
            Control::Declined,
            Control::GivenUp { number: 77, code: 3 },
            Control::Listen(Listen { track: 2, rate: 96_000, target: 80, delay: 1 << 20 }),
            Control::OpenUrl { id: 7, url: "https://example.org/".into() },
            Control::UrlDone { id: 7, fate: UrlFate::Refused },
            Control::Notify(Note { id: 7, summary: "it is done".into(), ..Note::default() }),
            Control::CloseNotification { id: 7 },
            Control::NotificationClosed { id: u32::MAX, end: NoteEnd::Dismissed },
            Control::NotificationAction { id: 7, key: "default".into(), token: Some("t-1".into()) },
            Control::NotificationAction { id: 7, key: "reply".into(), token: None },
            Control::File(FileOffer { id: 8, answers: None, size: 1 << 40, name: "a b.pdf".into() }),
            Control::File(FileOffer { id: 8, answers: Some(9), ..FileOffer::default() }),
            Control::FetchFile { id: 9, path: "results/../x".into() },
            Control::FileDone { id: 9, fate: FileFate::NoSpace, place: None },
            Control::TrayItem(TrayItem { id: 7, title: "mail".into(), ..TrayItem::default() }),
            Control::TrayGone { id: u32::MAX },
            Control::TrayMenu(TrayMenu { item: 7, entries: vec![] }),
            Control::TrayAct { id: 7, act: Some(TrayAct::Activate) },
            Control::TrayAct { id: 7, act: Some(TrayAct::Secondary) },
            Control::TrayAct { id: 7, act: Some(TrayAct::Menu) },
            Control::TrayAct { id: 7, act: Some(TrayAct::Scroll { delta: -120, is_sideways: true }) },
            Control::TrayAct { id: 7, act: Some(TrayAct::Choose(12)) },
            Control::TrayAct { id: 7, act: Some(TrayAct::Open(0)) },
            Control::TrayAct { id: 7, act: Some(TrayAct::Token("t-1".into())) },
            Control::TrayAct { id: 7, act: None },
            Control::Tray { is_there: true },
        ];
        for message in messages {
            let frame = encode(&message);
            assert_eq!(Control::decode(&frame), Ok(Some(message.clone())));
            let open_ended = matches!(message, Control::Snapshot(_) | Control::Embedded { .. });
            let before = before_resume(&message);
            for cut in (0..frame.len()).filter(|cut| !open_ended && Some(*cut) != before) {
                assert!(Control::decode(&frame.slice(..cut)).is_err(), "{cut} bytes of {message:?}");
            }
        }
    }

    fn receipt() -> Receipt {
        let open = vec![Delivered { number: 5, offset: 0 }, Delivered { number: 9, offset: 1 << 40 }];
        Receipt { lasting: 3, done: vec![1..=4, 6..=6, 1000..=1 << 50], open }
    }

    /// Where the hello of a build ended that could not resume.
    fn before_resume(message: &Control) -> Option<usize> {
        let Control::Hello(hello) = message else { return None };
        let fields = if hello.incarnation.is_some() { 1 + 32 + 3 } else { 4 };
        Some(encode(message).len() - fields)
    }

    #[test]
    fn the_hello_of_a_build_that_cannot_resume_is_understood() {
        let message = Control::Hello(hello());
        let old = encode(&message).slice(..before_resume(&message).unwrap());
        let hello = Hello { incarnation: None, resuming: false, attempt: 0, began: 0, ..hello() };
        assert_eq!(Control::decode(&old), Ok(Some(Control::Hello(hello))));
    }

    #[test]
    fn a_newer_hello_is_understood_and_a_newer_message_ignored() {
        let mut writer = Writer::new();
        Control::Hello(hello()).encode(&mut writer);
        writer.str("a field of version 2");
        assert_eq!(Control::decode(&writer.into_vec().into()), Ok(Some(Control::Hello(hello()))));
        assert_eq!(Control::decode(&Bytes::from_static(&[0x3f, 1, 2])), Ok(None));
    }

    #[test]
    fn addresses_have_a_length_and_answers_of_later_builds_a_meaning() {
        let url = |length| encode(&Control::OpenUrl { id: 1, url: "x".repeat(length) });
        assert!(Control::decode(&url(MAX_URL)).is_ok());
        assert!(Control::decode(&url(MAX_URL + 1)).is_err());
        let later = Control::decode(&Bytes::from_static(&[18, 1, 99]));
        assert_eq!(later, Ok(Some(Control::UrlDone { id: 1, fate: UrlFate::Failed })));
    }

    #[test]
    fn the_highest_common_version_is_chosen() {
        let versions = |min, max| Versions { min, max };
        assert_eq!(versions(1, 3).common(versions(2, 9)), Some(3));
        assert_eq!(versions(4, 9).common(versions(1, 5)), Some(5));
        assert_eq!(versions(1, 2).common(versions(3, 4)), None);
    }

    #[test]
    fn secrets_are_compared_and_hidden() {
        let secret = Secret::from([1; 32]);
        let mut other = [1; 32];
        other[31] = 2;
        assert_eq!(secret, Secret::from([1; 32]));
        assert_ne!(secret, Secret::from(other));
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
