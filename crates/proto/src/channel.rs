//! Channels: ids, kinds, stream headers, classes, priorities, and the one table that routes kinds.
//!
//! Every stream begins with a header: a varint length (≤ [`MAX_HEADER`]), then a varint kind and its fields. It says
//! nothing of what follows. Invariant: the same header and the same framing are used whether a channel has a stream of
//! its own or goes through the main channel.

use bytes::Bytes;

use crate::wire::{Reader, Writer};
use crate::{Error, Hello};

/// Longest header after its length, in bytes. Longer ones are refused.
pub const MAX_HEADER: usize = 256;

/// Largest edge of a surface in buffer pixels.
pub const MAX_EDGE: u32 = 16_384;

/// Largest blob in bytes.
pub const MAX_BLOB: u32 = 4 << 20;

/// Most updates that one can cover.
pub const MAX_COVERED: u8 = 6;

/// Longest packet of sound in bytes: 20 ms without a codec, and room for its header.
pub const MAX_SOUND: usize = 4096;

/// Longest row of a protected block in bytes: what a packet carries on any path, and room for more.
pub const MAX_ROW: usize = 4096;

/// Longest datagram of repair in bytes: Firefox takes 1024, WebTransport's own header included.
pub const MAX_ROW_DATAGRAM: usize = 1000;

/// Most rows before the last one of a protected block, source and repair together: the code's field has 256 elements.
pub const MAX_ROWS: usize = 254;

/// Most updates that one joint repair row stands for.
pub const MAX_JOINT: usize = 32;

/// The two halves of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Beside the programs.
    App,
    /// Beside the compositor.
    Display,
}

impl Side {
    /// The other one.
    pub fn peer(self) -> Self {
        match self {
            Self::App => Self::Display,
            Self::Display => Self::App,
        }
    }
}

/// One program's Wayland connection; given by the app side, never used twice in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// The wire id of a `wl_surface` inside its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SurfaceId(pub u64);

/// Number of an update of one surface; the first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpdateSeq(pub u64);

/// A stream of the carrier. The streams of the two directions are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// A channel that this side opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u64);

/// A channel that the peer opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteChannelId(pub u64);

/// What a channel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Session messages: the main channel, one each way.
    Control = 1,
    /// Requests and commit units of one program.
    Wayland = 2,
    /// Wayland events of one program.
    Events = 3,
    /// One update of one surface.
    Update = 4,
    /// The bytes of a pipe.
    Pipe = 5,
    /// Bytes named by their hash.
    Blob = 6,
    /// Some packets of sound.
    Sound = 7,
    /// One repair row of a protected block of another stream.
    Repair = 8,
    /// One repair row of the last small updates.
    Joint = 9,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Control,
        Self::Wayland,
        Self::Events,
        Self::Update,
        Self::Pipe,
        Self::Blob,
        Self::Sound,
        Self::Repair,
        Self::Joint,
    ];

    /// Its code on the wire.
    pub fn code(self) -> u64 {
        self as u64
    }

    /// What a code stands for.
    pub fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Whether `side` may open channels of this kind.
    pub fn opened_by(self, side: Side) -> bool {
        match self {
            Self::Wayland | Self::Update | Self::Joint => side == Side::App,
            Self::Events => side == Side::Display,
            Self::Control | Self::Pipe | Self::Blob | Self::Sound | Self::Repair => true,
        }
    }

    /// The class in which a long-lived channel of this kind travels; repair travels in that of its source.
    pub fn class(self) -> Class {
        match self {
            Self::Control => Class::Control,
            Self::Wayland => Class::Wayland,
            Self::Events | Self::Blob => Class::Events,
            Self::Sound => Class::Audio,
            Self::Update | Self::Repair => Class::Content,
            Self::Joint => Class::SmallContent,
            Self::Pipe => Class::Pipe,
        }
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u64);

impl Kinds {
    /// None.
    pub const EMPTY: Self = Self(0);

    /// All that this build knows, without [`Kind::Control`], which has its own stream by definition.
    pub const ALL: Self = Self(0b11_1111_1100);

    /// The set with this bit mask: bit `code` for each kind; unknown bits are kept and mean nothing.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The bit mask.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// With `kind`.
    #[must_use]
    pub fn with(self, kind: Kind) -> Self {
        Self(self.0 | 1 << kind.code())
    }

    /// Without `kind`.
    #[must_use]
    pub fn without(self, kind: Kind) -> Self {
        Self(self.0 & !(1 << kind.code()))
    }

    /// Whether `kind` is in it.
    pub fn contains(self, kind: Kind) -> bool {
        self.0 & 1 << kind.code() != 0
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Self {
        kinds.into_iter().fold(Self::EMPTY, Self::with)
    }
}

/// How a channel reaches the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// On a stream of its own.
    Own,
    /// In frames inside the main channel.
    Main,
}

/// The routing table: a kind has its own stream only when this side offers that (`streams`), the caller has not sent it
/// over the main channel (`main_only`), and the peer's hello accepts it.
pub fn route(kind: Kind, streams: Kinds, main_only: Kinds, peer: &Hello) -> Route {
    let own = match kind {
        Kind::Control => true,
        _ => streams.contains(kind) && !main_only.contains(kind) && peer.streams.contains(kind),
    };
    if own { Route::Own } else { Route::Main }
}

/// The first bytes of a channel: what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Header {
    /// The main channel; messages.
    Control,
    /// App → display; messages.
    Wayland {
        /// Whose.
        connection: ConnectionId,
    },
    /// Display → app; messages.
    Events {
        /// Whose.
        connection: ConnectionId,
    },
    /// App → display; chunk table and chunks, delivered whole.
    Update(UpdateHeader),
    /// Either way; raw bytes until the end, in windows.
    Pipe {
        /// Whose.
        connection: ConnectionId,
        /// Which pipe of that connection; once each way.
        pipe: u64,
    },
    /// Either way; raw bytes, delivered whole.
    Blob {
        /// Their name.
        hash: u128,
        /// How many; ≤ [`MAX_BLOB`].
        length: u32,
    },
    /// Either way; messages of at most [`MAX_SOUND`] bytes. Not numbered: none goes on over another carrier.
    Sound,
    /// Either way; one repair row, ≤ [`MAX_ROW`] bytes.
    Repair(RepairHeader),
    /// App → display; which updates it repairs, and one repair row, ≤ [`MAX_ROW`] bytes.
    Joint(JointHeader),
}

/// Which of its sender's channels a stream carries: the last fields of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The channel's number, counted by its sender from 1 in the order in which first bytes leave.
    pub number: u64,
    /// Where in the channel's body this stream goes on, if the channel began on an earlier carrier.
    pub from: Option<u64>,
}

/// Which row of which block a repair stream carries. It says all that is needed to use the row, so that any rows that
/// come, alone, rebuild a block of which nothing else did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepairHeader {
    /// The source's channel, by its [number](Label::number); 0 for the main channel.
    pub channel: u64,
    /// The stream that carries it, as its sender counts them: for a receiver that counts alike, and to which the
    /// source's own header has not come, or that cannot resume. [`StreamId`] 0, the main channel's, if that is the
    /// source, or where the carrier does not make both sides count alike.
    pub stream: StreamId,
    /// Where in that stream the block begins.
    pub offset: u64,
    /// Bytes of the block, from 1; at most [`MAX_ROWS`] rows.
    pub length: u32,
    /// Bytes of a row, 1 ..= [`MAX_ROW`], at most `length`.
    pub row: u16,
    /// Which repair row this is, from 0; rows of the block and this together are at most 255.
    pub index: u8,
}

/// Which repair row of small updates a stream carries: a sum of rows of all of them, see
/// [`sliding`](wayferry_fec::sliding).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JointHeader {
    /// The sum's number.
    pub number: u64,
    /// The number of the first row of the first update; those of the others follow.
    pub first: u64,
    /// Bytes of a row, 1 ..= [`MAX_ROW`]; the last of an update may be shorter.
    pub row: u16,
    /// How many updates there are, 1 ..= [`MAX_JOINT`].
    pub updates: u8,
}

/// Which update of which surface a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpdateHeader {
    /// Whose.
    pub connection: ConnectionId,
    /// The surface.
    pub surface: SurfaceId,
    /// Its number.
    pub seq: UpdateSeq,
    /// Width and height of the content in buffer pixels, 1 ..= [`MAX_EDGE`] each.
    pub size: (u32, u32),
    /// The pixel format's code; opaque here.
    pub format: u8,
    /// The content starts from zero, not from the previous update.
    pub fresh: bool,
    /// So many updates before it need not be there, 0 ..= [`MAX_COVERED`]: it paints all that they changed.
    pub covers: u8,
    /// The unit that shows it, if no message has to say that.
    pub unit: Option<UnitHead>,
}

/// A unit that does nothing but show an update, in that update's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitHead {
    /// Its number.
    pub number: u64,
    /// How many messages of the connection's channel come before it.
    pub after: u64,
    /// The program wants to hear when it is shown.
    pub feedback: bool,
    /// The last key that the program had been given before it made the unit, from 1, if that is told.
    pub answered: Option<u64>,
}

impl Header {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Control => Kind::Control,
            Self::Wayland { .. } => Kind::Wayland,
            Self::Events { .. } => Kind::Events,
            Self::Update(_) => Kind::Update,
            Self::Pipe { .. } => Kind::Pipe,
            Self::Blob { .. } => Kind::Blob,
            Self::Sound => Kind::Sound,
            Self::Repair(_) => Kind::Repair,
            Self::Joint(_) => Kind::Joint,
        }
    }

    /// Whose channel it is; `None` for those of the whole session.
    pub fn connection(&self) -> Option<ConnectionId> {
        match self {
            Self::Wayland { connection } | Self::Events { connection } | Self::Pipe { connection, .. } => {
                Some(*connection)
            }
            Self::Update(update) => Some(update.connection),
            Self::Control | Self::Blob { .. } | Self::Sound | Self::Repair(_) | Self::Joint(_) => None,
        }
    }

    /// Appends the header with its length.
    pub fn encode(&self, writer: &mut Writer) {
        self.encode_labelled(None, writer);
    }

    /// As [`Header::encode`], with what says at its end which of the sender's channels it is.
    pub fn encode_labelled(&self, label: Option<Label>, writer: &mut Writer) {
        let mut fields = Writer::new();
        fields.varint(self.kind().code());
        match self {
            Self::Control | Self::Sound => {}
            Self::Wayland { connection } | Self::Events { connection } => {
                fields.varint(connection.0.into());
            }
            Self::Update(update) => update.encode(&mut fields),
            Self::Pipe { connection, pipe } => {
                fields.varint(connection.0.into()).varint(*pipe);
            }
            Self::Blob { hash, length } => {
                fields.u128(*hash).varint((*length).into());
            }
            Self::Repair(repair) => repair.encode(&mut fields),
            Self::Joint(joint) => joint.encode(&mut fields),
        }
        if let Some(label) = label {
            fields.varint(label.number);
            label.from.map(|from| fields.varint(from));
        }
        writer.bytes(fields.as_slice());
    }

    /// Reads what follows the length. Fields that a newer peer appended are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        Self::decode_labelled(bytes).map(|(header, _)| header)
    }

    /// As [`Header::decode`], with the label if there is one.
    pub fn decode_labelled(bytes: &[u8]) -> Result<(Self, Option<Label>), Error> {
        let mut reader = Reader::new(bytes);
        let header = Self::decode_fields(&mut reader)?;
        // A peer without labels may have other fields here.
        let number = reader.varint("a channel's number").ok().filter(|number| *number > 0);
        let from = reader.varint("an offset").ok();
        Ok((header, number.map(|number| Label { number, from })))
    }

    fn decode_fields(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let code = reader.varint("a stream kind")?;
        let kind = Kind::from_code(code).ok_or(Error::Unknown { expected: "a stream kind", got: code })?;
        let connection = |reader: &mut Reader<'_>| reader.varint_u32("a connection id").map(ConnectionId);
        Ok(match kind {
            Kind::Control => Self::Control,
            Kind::Wayland => Self::Wayland { connection: connection(reader)? },
            Kind::Events => Self::Events { connection: connection(reader)? },
            Kind::Update => Self::Update(UpdateHeader::decode(reader)?),
            Kind::Pipe => Self::Pipe { connection: connection(reader)?, pipe: reader.varint("a pipe id")? },
            Kind::Blob => Self::Blob {
                hash: reader.u128("a blob's hash")?,
                length: reader.varint_max(MAX_BLOB.into(), "a blob's length")? as u32,
            },
            Kind::Sound => Self::Sound,
            Kind::Repair => Self::Repair(RepairHeader::decode(reader)?),
            Kind::Joint => Self::Joint(JointHeader::decode(reader)?),
        })
    }
}

impl UpdateHeader {
    fn encode(&self, writer: &mut Writer) {
        writer.varint(self.connection.0.into()).varint(self.surface.0).varint(self.seq.0);
        writer.varint(self.size.0.into()).varint(self.size.1.into());
        let flags = [
            (self.fresh, FRESH),
            (self.covers > 0, COVERS),
            (self.unit.is_some(), UNIT),
            (self.unit.is_some_and(|unit| unit.feedback), FEEDBACK),
            (self.unit.is_some_and(|unit| unit.answered.is_some()), ANSWERS),
        ];
        let flags = flags.iter().filter(|(is_set, _)| *is_set).fold(0, |flags, (_, flag)| flags | flag);
        writer.u8(self.format).u8(flags);
        if self.covers > 0 {
            writer.u8(self.covers);
        }
        if let Some(unit) = self.unit {
            writer.varint(unit.number).varint(unit.after);
            unit.answered.map(|key| writer.varint(key));
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut header = Self {
            connection: ConnectionId(reader.varint_u32("a connection id")?),
            surface: SurfaceId(reader.varint("a surface id")?),
            seq: UpdateSeq(reader.varint("an update number")?),
            size: (edge(reader, "a width")?, edge(reader, "a height")?),
            format: reader.u8("a pixel format")?,
            fresh: false,
            covers: 0,
            unit: None,
        };
        if header.seq.0 == 0 {
            return Err(Error::Unknown { expected: "an update number from 1", got: 0 });
        }
        header.decode_flags(reader)?;
        Ok(header)
    }

    fn decode_flags(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        let flags = reader.u8("an update's flags")?;
        let has = |flag: u8| flags & flag != 0;
        // What is fresh builds on nothing, and only a unit has feedback or answers.
        let lacks_unit = (has(FEEDBACK) || has(ANSWERS)) && !has(UNIT);
        if flags & !KNOWN_FLAGS != 0 || has(FRESH) && has(COVERS) || lacks_unit {
            return Err(Error::Unknown { expected: "flags of an update", got: flags.into() });
        }
        self.fresh = has(FRESH);
        if has(COVERS) {
            self.covers = reader.u8("a count of covered updates")?;
            let max = u64::from(MAX_COVERED).min(self.seq.0 - 1);
            if !(1..=max).contains(&self.covers.into()) {
                return Err(Error::OutOfRange {
                    expected: "updates that are covered",
                    max,
                    got: self.covers.into(),
                });
            }
        }
        if has(UNIT) {
            let (number, after) = (reader.varint("a unit's number")?, reader.varint("a count of messages")?);
            let answered = if has(ANSWERS) { Some(reader.varint("a key's number")?) } else { None };
            self.unit = Some(UnitHead { number, after, feedback: has(FEEDBACK), answered });
        }
        Ok(())
    }
}

impl RepairHeader {
    /// A row of it as a datagram. What the stream is called says nothing there.
    pub(crate) fn datagram(&self, row: &[u8]) -> Bytes {
        let mut datagram = Writer::new();
        datagram.varint(Kind::Repair.code());
        Self { stream: StreamId(0), ..*self }.encode(&mut datagram);
        datagram.raw(row);
        datagram.into_vec().into()
    }

    /// What follows the kind in a datagram; the row is what is left.
    ///
    /// # Errors
    /// It is no header, or another length than the row's is left.
    pub(crate) fn from_datagram(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let header = Self::decode(reader)?;
        let (row, left) = (u64::from(header.row), reader.remaining() as u64);
        if row != left {
            return Err(Error::OutOfRange { expected: "bytes of a row", max: row, got: left });
        }
        Ok(header)
    }

    fn encode(&self, writer: &mut Writer) {
        writer.varint(self.channel).varint(self.stream.0).varint(self.offset);
        writer.varint(self.length.into()).varint(self.row.into()).u8(self.index);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let header = Self {
            channel: reader.varint("a channel's number")?,
            stream: StreamId(reader.varint("a stream")?),
            offset: reader.varint("a block's offset")?,
            length: reader.varint_max((MAX_ROWS * MAX_ROW) as u64, "a block's length")? as u32,
            row: reader.varint_max(MAX_ROW as u64, "a row's length")? as u16,
            index: reader.u8("a repair row's number")?,
        };
        let (length, row) = (u64::from(header.length), u64::from(header.row));
        if header.channel == 0 && header.stream.0 != 0 {
            return Err(Error::OutOfRange {
                expected: "the main channel's stream",
                max: 0,
                got: header.stream.0,
            });
        }
        if row == 0 || row > length {
            return Err(Error::OutOfRange { expected: "a row's length from 1", max: length, got: row });
        }
        let rows = length.div_ceil(row) + u64::from(header.index);
        if rows > MAX_ROWS as u64 {
            return Err(Error::OutOfRange { expected: "rows before a row", max: MAX_ROWS as u64, got: rows });
        }
        Ok(header)
    }
}

impl JointHeader {
    fn encode(&self, writer: &mut Writer) {
        writer.varint(self.number).varint(self.first).varint(self.row.into()).u8(self.updates);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let header = Self {
            number: reader.varint("a sum's number")?,
            first: reader.varint("a row's number")?,
            row: reader.varint_max(MAX_ROW as u64, "a row's length")? as u16,
            updates: reader.u8("a count of updates")?,
        };
        if header.row == 0 || !(1..=MAX_JOINT).contains(&header.updates.into()) {
            let got = header.updates.into();
            return Err(Error::OutOfRange { expected: "rows of updates", max: MAX_JOINT as u64, got });
        }
        Ok(header)
    }
}

fn edge(reader: &mut Reader<'_>, expected: &'static str) -> Result<u32, Error> {
    match reader.varint_max(MAX_EDGE.into(), expected)? {
        0 => Err(Error::Unknown { expected, got: 0 }),
        edge => Ok(edge as u32),
    }
}

/// Traffic classes; a higher one always goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// Clipboard and drags.
    Pipe = 1,
    /// Updates.
    Content = 2,
    /// Updates of less than [`SMALL_UPDATE`](crate::SMALL_UPDATE) bytes.
    SmallContent = 3,
    /// Sound.
    Audio = 4,
    /// Requests and commit units.
    Wayland = 5,
    /// Wayland events: input.
    Events = 6,
    /// The main channel.
    Control = 7,
}

impl Class {
    /// Whether [`Session::content_budget`](crate::Session::content_budget) counts it.
    pub fn is_budgeted(self) -> bool {
        self <= Self::SmallContent
    }
}

/// A stream's priority: strict, the larger one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

impl Priority {
    /// The place of the long-lived streams of a class.
    pub const fn first(class: Class) -> Self {
        Self((class as i32) << 24 | 0xff_ffff)
    }

    /// Inside `class`, earlier sequence numbers first; those wrap after 2²⁰.
    pub fn new(class: Class, seq: u64) -> Self {
        let place = seq.wrapping_mul(STEPS) & 0xff_ffff;
        Self(i32::from(class as u8) << 24 | (0xff_ffff - place as i32))
    }

    /// The place for a repair row of what travels at this one: right after it, row after row, before what comes next.
    /// Were rows to share a place, the ends of all of them would lie in one packet.
    #[must_use]
    pub fn repair(self, index: u8) -> Self {
        let step = (i32::from(index) + 1).min(STEPS as i32 - 1);
        Self((self.0 | (STEPS as i32 - 1)) - step)
    }

    /// The class that it was made with.
    pub fn class(self) -> Class {
        match self.0 >> 24 {
            ..=1 => Class::Pipe,
            2 => Class::Content,
            3 => Class::SmallContent,
            4 => Class::Audio,
            5 => Class::Wayland,
            6 => Class::Events,
            7.. => Class::Control,
        }
    }
}

/// Flags of an update's header.
const FRESH: u8 = 1;
const COVERS: u8 = 2;
const UNIT: u8 = 4;
const FEEDBACK: u8 = 8;
const ANSWERS: u8 = 16;
const KNOWN_FLAGS: u8 = FRESH | COVERS | UNIT | FEEDBACK | ANSWERS;

/// Places for each sequence number: its source and its repair rows; the last rows share one.
const STEPS: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn examples() -> Vec<Header> {
        let connection = ConnectionId(70_000);
        let update = UpdateHeader {
            connection,
            surface: SurfaceId(8),
            seq: UpdateSeq(1),
            size: (1280, MAX_EDGE),
            format: 3,
            fresh: true,
            covers: 0,
            unit: None,
        };
        let unit = UnitHead { number: 300, after: 70_000, feedback: true, answered: None };
        let answering = UnitHead { answered: Some(17_000), ..unit };
        let covering =
            UpdateHeader { seq: UpdateSeq(9), fresh: false, covers: 3, unit: Some(unit), ..update };
        vec![
            Header::Control,
            Header::Wayland { connection },
            Header::Events { connection },
            Header::Update(update),
            Header::Update(covering),
            Header::Update(UpdateHeader { covers: 0, ..covering }),
            Header::Update(UpdateHeader { unit: Some(answering), ..covering }),
            Header::Pipe { connection, pipe: 12 },
            Header::Blob { hash: u128::MAX / 3, length: MAX_BLOB },
            Header::Sound,
            Header::Joint(JointHeader {
                number: 1 << 40,
                first: 70_000,
                row: 1372,
                updates: MAX_JOINT as u8,
            }),
            Header::Repair(RepairHeader {
                channel: 90,
                stream: StreamId(70),
                offset: 1 << 40,
                length: 100_000,
                row: 1400,
                index: 9,
            }),
        ]
    }

    #[test]
    fn headers_survive_the_wire() {
        for header in examples() {
            let mut writer = Writer::new();
            header.encode(&mut writer);
            let mut reader = Reader::new(writer.as_slice());
            let fields = reader.bytes(MAX_HEADER, "header").unwrap();
            assert!(reader.is_empty());
            assert_eq!(Header::decode(fields), Ok(header));
            let newer = [fields, &[1, 2, 3]].concat();
            assert_eq!(Header::decode(&newer), Ok(header));
            for label in [None, Some(None), Some(Some(1 << 40))] {
                let label = label.map(|from| Label { number: 77, from });
                let mut writer = Writer::new();
                header.encode_labelled(label, &mut writer);
                let fields = Reader::new(writer.as_slice()).bytes(MAX_HEADER, "header").map(<[u8]>::to_vec);
                assert_eq!(Header::decode_labelled(&fields.unwrap()), Ok((header, label)));
            }
            for cut in 0..fields.len() {
                assert!(Header::decode(&fields[..cut]).is_err());
            }
        }
    }

    #[test]
    fn the_main_channel_has_the_first_stream() {
        for (channel, stream, fits) in [(0, 0, true), (0, 3, false), (5, 3, true), (5, 0, true)] {
            let mut writer = Writer::new();
            writer.varint(8).varint(channel).varint(stream).varint(0).varint(9).varint(9).u8(0);
            assert_eq!(Header::decode(writer.as_slice()).is_ok(), fits, "{channel} {stream}");
        }
    }

    #[test]
    fn hostile_headers_are_errors() {
        let decode = |fill: fn(&mut Writer)| {
            let mut writer = Writer::new();
            fill(&mut writer);
            Header::decode(writer.as_slice())
        };
        assert!(matches!(
            decode(|w| {
                w.varint(77);
            }),
            Err(Error::Unknown { got: 77, .. })
        ));
        assert!(
            decode(|w| {
                w.varint(6).u128(0).varint(u64::from(MAX_BLOB) + 1);
            })
            .is_err()
        );
        assert!(
            decode(|w| {
                w.varint(2).varint(1 << 32);
            })
            .is_err()
        );
        for (length, row, index) in [(0, 0, 0), (9, 0, 0), (9, 10, 0), (254, 1, 1), (1, 1, 254)] {
            let mut writer = Writer::new();
            writer.varint(8).varint(0).varint(0).varint(0).varint(length).varint(row).u8(index);
            assert!(Header::decode(writer.as_slice()).is_err());
        }
        for (seq, width, height) in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, u64::from(MAX_EDGE) + 1, 1)] {
            let mut writer = Writer::new();
            writer.varint(4).varint(0).varint(0).varint(seq).varint(width).varint(height).u8(0).u8(0);
            assert!(Header::decode(writer.as_slice()).is_err());
        }
    }

    #[test]
    fn an_update_covers_few_and_only_those_that_there_are() {
        let decode = |seq: u64, rest: &[u8]| {
            let mut writer = Writer::new();
            writer.varint(4).varint(0).varint(0).varint(seq).varint(1).varint(1).u8(0).raw(rest);
            Header::decode(writer.as_slice())
        };
        for (seq, rest) in
            [(5, &[2, 3][..]), (4, &[2, 3]), (2, &[2, 1]), (1, &[4, 1, 0]), (9, &[14, 1, 1, 0])]
        {
            assert!(decode(seq, rest).is_ok(), "{seq} {rest:?}");
        }
        let wrong: [(u64, &[u8]); 8] = [
            (9, &[2, 0]),
            (9, &[2, 7]),
            (3, &[2, 3]),
            (1, &[2, 1]),
            (9, &[3, 1]), // fresh
            (9, &[8]),    // feedback of no unit
            (9, &[16]),
            (9, &[6, 1, 1]),
        ];
        for (seq, rest) in wrong {
            assert!(decode(seq, rest).is_err(), "{seq} {rest:?}");
        }
    }

    #[test]
    fn classes_are_strict_and_first_comes_first_inside_one() {
        let content = [Class::Pipe, Class::Content, Class::SmallContent];
        let all = [&content[..], &[Class::Audio, Class::Wayland, Class::Events, Class::Control]].concat();
        for pair in all.windows(2) {
            assert!(Priority::new(pair[0], 0) < Priority::new(pair[1], 0xf_ffff).repair(254));
        }
        for class in all {
            assert_eq!(Priority::new(class, 0), Priority::first(class));
            let source = Priority::new(class, 5);
            let (first, second, last) = (source.repair(0), source.repair(1), source.repair(254));
            let next = Priority::new(class, 6);
            assert!(source > first && first > second && second > last && last > next);
            assert_eq!(source.class(), class);
            assert!(source.0 > 0);
        }
    }

    #[test]
    fn the_set_of_all_kinds_is_complete() {
        let all: Kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Control).collect();
        assert_eq!(all, Kinds::ALL);
        assert!(!all.without(Kind::Pipe).contains(Kind::Pipe));
    }
}
