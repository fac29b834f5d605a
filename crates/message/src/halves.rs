//! What crosses between the two halves of one app connection, and its layout.
//!
//! [`ToDisplay`] travels on the connection's wayland channel, [`ToApp`] on its events channel; both are ordered.
//! This module knows layouts and bounds only; which message may be sent when is the halves' business.
//! Invariant: `decode(encode(m)) == m`, and a decoded message is within every bound named here.

use wayferry_proto::wire::{Reader, Writer};
use wayferry_proto::{Error, UpdateSeq};

use crate::value::{Image, Positioner, RegionOp};

/// What a message for the display side counts for beside its bytes wherever those under way are bounded, in
/// [`ToApp::Consumed`] too: about what it takes to hold one.
pub const MESSAGE_COST: u64 = 256;
/// What may be under way to the display side, by [`cost`]: bytes of messages that it has not handled. A program beyond
/// it waits. Far above what programs say in a round trip or during an outage, so only floods meet it.
pub const MAX_AHEAD: u64 = 4 << 20;
/// Requests in the state of one unit beside those that place children, regions' operations, children: far above what
/// programs do, far below harm.
pub const MAX_UNIT_STATE: usize = 4096;
/// Synchronised subsurfaces that may be committed with one unit.
pub const MAX_UNIT_CHILDREN: usize = 4096;
/// How deep units may nest: a tree of subsurfaces deeper than this is refused.
pub const MAX_UNIT_DEPTH: usize = 16;
/// Operations that make up one region. One that has more becomes smaller, never larger.
pub const MAX_REGION_OPS: usize = 16_384;
/// Arguments of one Wayland message (libwayland allows 20).
pub const MAX_ARGS: usize = 20;
/// Bytes of one string or array argument: a whole Wayland message is at most 4096.
pub const MAX_ARG_BYTES: usize = 4096;

/// What a message for the display side counts for.
pub fn cost(message: &[u8]) -> u64 {
    message.len() as u64 + MESSAGE_COST
}

/// Names an object inside one app connection, on the wire between the halves; never reused.
///
/// The lowest bit tells who made it: 0 the app side, 1 the display side. 0 itself is "no object".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WireId(pub u64);

impl WireId {
    /// No object.
    pub const NULL: Self = Self(0);
    /// The connection's `wl_display`.
    pub const DISPLAY: Self = Self(2);
    /// The first id that the app side gives away after the fixed ones.
    pub const FIRST_APP: Self = Self(4);
    /// The first id that the display side gives away.
    pub const FIRST_DISPLAY: Self = Self(1);

    /// Whether the app side made this id.
    pub fn is_app(self) -> bool {
        self.0 & 1 == 0
    }

    /// The id after this one from the same allocator.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 2)
    }
}

/// One argument with connection-wide names in place of local ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireArg {
    /// Signed integer.
    Int(i32),
    /// Unsigned integer, enum, serial or time.
    Uint(u32),
    /// 24.8 fixed point.
    Fixed(i32),
    /// String without its NUL.
    Str(Option<Vec<u8>>),
    /// An object, or [`WireId::NULL`].
    Object(WireId),
    /// An object that this message creates.
    NewId(WireId),
    /// Bytes.
    Array(Vec<u8>),
    /// Stands for a file descriptor into which the other end writes: pipe channel number, lowest bit = who made it.
    Pipe(u64),
    /// Stands for a file descriptor whose content travels aside as a blob.
    Blob {
        /// Name of the content.
        hash: u128,
        /// Its length in bytes.
        length: u32,
    },
    /// Stands at a `wl_region` argument: the region by value.
    Region(Vec<RegionOp>),
    /// Stands at an `xdg_positioner` argument: the positioner by value.
    Positioner(Positioner),
    /// Stands at a `wl_buffer` argument outside `wl_surface.attach`.
    Image(Image),
}

/// One Wayland request or event with connection-wide names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Whose message it is.
    pub object: WireId,
    /// Index among the requests (or events) of the object's interface.
    pub opcode: u16,
    /// Arguments in the order of the signature.
    pub args: Vec<WireArg>,
}

impl Request {
    /// The objects among its arguments, but those that it makes.
    pub fn objects(&self) -> impl Iterator<Item = WireId> {
        self.args.iter().filter_map(|arg| match arg {
            WireArg::Object(id) if *id != WireId::NULL => Some(*id),
            _ => None,
        })
    }
}

/// What a unit does to the surface's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitContent {
    /// Nothing is attached.
    Keep,
    /// A null buffer is attached: the surface is unmapped.
    None,
    /// The content is that of this update of the surface.
    Update(UpdateSeq),
}

/// One `wl_surface.commit`, self-contained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// The surface that is committed.
    pub surface: WireId,
    /// Position among the units of this surface, from 1.
    pub number: u64,
    /// Double-buffered state, to be replayed in this order before the commit.
    pub state: Vec<Request>,
    /// The content.
    pub content: UnitContent,
    /// Sum of the attach offsets, surface coordinates.
    pub offset: (i32, i32),
    /// Whether the program asked when this content was shown.
    pub feedback: bool,
    /// The last key that the program had been given before it made the commit, if that is told. Presses are counted
    /// from 1, all that went to the program on the events channel.
    pub answered: Option<u64>,
    /// Cached commits of synchronised subsurfaces, to be committed before this one in this order.
    pub children: Vec<Unit>,
}

/// App side to display side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToDisplay {
    /// Bind a global of the attached compositor.
    Bind {
        /// Registry name in the snapshot.
        global: u32,
        /// Interface, as the snapshot names it.
        interface: String,
        /// Version that the program asked for; the display side binds the lower of this and the compositor's.
        version: u32,
        /// The new object.
        id: WireId,
    },
    /// Any request that is not part of a unit.
    Request(Request),
    /// A commit.
    Unit(Unit),
    /// The program already has the keymap with this hash; sending it again would be wasted.
    KeymapKnown {
        /// The `wl_keyboard`.
        keyboard: WireId,
        /// Which keymap.
        hash: u128,
    },
    /// Whether the program fails to answer pings.
    Hang(bool),
    /// Updates were taken back before any of them left, or given up after an outage; a later one brings their pixels
    /// too. The units that name them, which came before this, are committed as one with the unit that names the later
    /// one.
    Superseded {
        /// The surface.
        surface: WireId,
        /// The first update that will not come, or need not.
        update: UpdateSeq,
        /// The one that replaces it and all between.
        by: UpdateSeq,
    },
    /// The program has had this key and those before it for so long that no commit after this message answers them.
    Late {
        /// Its number.
        key: u64,
    },
}

/// Display side to app side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToApp {
    /// An event of the compositor.
    Event(Request),
    /// The compositor has forgotten the object; its id may be used again.
    Deleted(WireId),
    /// The unit was committed to the compositor.
    Applied {
        /// The surface.
        surface: WireId,
        /// The unit's number.
        unit: u64,
    },
    /// The unit's content was shown.
    Presented {
        /// The surface.
        surface: WireId,
        /// The unit's number.
        unit: u64,
        /// When, on the display side's `CLOCK_MONOTONIC`, nanoseconds.
        time_ns: u64,
        /// Time to the next refresh, nanoseconds; 0 unknown.
        refresh_ns: u32,
        /// The output's frame counter.
        sequence: u64,
        /// `wp_presentation_feedback.kind` bits.
        flags: u32,
    },
    /// The unit's content was never shown.
    Discarded {
        /// The surface.
        surface: WireId,
        /// The unit's number.
        unit: u64,
    },
    /// Whether the compositor draws the surface.
    Visible {
        /// The surface.
        surface: WireId,
        /// False when a frame callback has been unanswered for 1 s.
        visible: bool,
    },
    /// Keys of this keyboard are still held; sent every 100 ms while they are.
    KeysHeld {
        /// The `wl_keyboard`.
        keyboard: WireId,
    },
    /// So much of what came on the wayland channel has been handled, and is not held any more; sent now and then. The
    /// app side stops listening to a program that is [`MAX_AHEAD`] of it.
    Consumed {
        /// The [`cost`] of those messages since the connection began.
        bytes: u64,
    },
    /// The whole content of the surface is wanted again: an update could not be painted, or what it builds on was
    /// dropped to make room for others.
    Refresh {
        /// The surface.
        surface: WireId,
    },
    /// The events that follow were read from the compositor at this time, until another is told; sent where the link is
    /// silent, and once when it is not any more.
    Read {
        /// Nanoseconds of the display side's monotonic clock.
        time_ns: u64,
    },
    /// The compositor wanted new frames of surfaces at this time; goes before the next [`Self::Applied`].
    Beat {
        /// Nanoseconds of the display side's monotonic clock.
        time_ns: u64,
    },
    /// The compositor ended this connection.
    Fatal {
        /// The program's object that the error is about; [`WireId::DISPLAY`] if it is about none of them.
        object: WireId,
        /// Which error of that object's interface.
        code: u32,
        /// What it said.
        message: String,
    },
}

const BIND: u8 = 0;
const REQUEST: u8 = 1;
const UNIT: u8 = 2;
const KEYMAP_KNOWN: u8 = 3;
const HANG: u8 = 4;
const SUPERSEDED: u8 = 5;
const LATE: u8 = 6;

/// Flags of a unit.
const FEEDBACK: u8 = 1;
const ANSWERS: u8 = 2;

const EVENT: u8 = 0;
const DELETED: u8 = 1;
const APPLIED: u8 = 2;
const PRESENTED: u8 = 3;
const DISCARDED: u8 = 4;
const VISIBLE: u8 = 5;
const KEYS_HELD: u8 = 6;
const FATAL: u8 = 7;
const CONSUMED: u8 = 8;
const REFRESH: u8 = 9;
const READ: u8 = 10;
const BEAT: u8 = 11;

impl ToDisplay {
    /// The message's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new();
        match self {
            Self::Bind { global, interface, version, id } => {
                w.u8(BIND);
                w.varint(u64::from(*global));
                w.str(interface);
                w.varint(u64::from(*version));
                w.varint(id.0);
            }
            Self::Request(request) => {
                w.u8(REQUEST);
                request.write(&mut w);
            }
            Self::Unit(unit) => {
                w.u8(UNIT);
                unit.write(&mut w);
            }
            Self::KeymapKnown { keyboard, hash } => {
                w.u8(KEYMAP_KNOWN);
                w.varint(keyboard.0);
                w.u128(*hash);
            }
            Self::Hang(hang) => {
                w.u8(HANG);
                w.u8(u8::from(*hang));
            }
            Self::Superseded { surface, update, by } => {
                w.u8(SUPERSEDED);
                w.varint(surface.0);
                w.varint(update.0);
                w.varint(by.0);
            }
            Self::Late { key } => {
                w.u8(LATE);
                w.varint(*key);
            }
        }
        w.into_vec()
    }

    /// Parses one whole message.
    ///
    /// # Errors
    /// What was expected and where, when the bytes are not exactly one message within the bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut r = Reader::new(bytes);
        let message = match r.u8("a tag")? {
            BIND => Self::Bind {
                global: r.varint_u32("global name")?,
                interface: r.str(64, "an interface")?.to_owned(),
                version: r.varint_u32("version")?,
                id: WireId(r.varint("an object")?),
            },
            REQUEST => Self::Request(Request::read(&mut r)?),
            UNIT => Self::Unit(Unit::read(&mut r, 0)?),
            KEYMAP_KNOWN => {
                Self::KeymapKnown { keyboard: WireId(r.varint("an object")?), hash: r.u128("a hash")? }
            }
            HANG => Self::Hang(r.bool("a flag")?),
            SUPERSEDED => Self::Superseded {
                surface: WireId(r.varint("an object")?),
                update: UpdateSeq(r.varint("an update's number")?),
                by: UpdateSeq(r.varint("an update's number")?),
            },
            LATE => Self::Late { key: r.varint("a key's number")? },
            _ => return Err(Error::Unknown { expected: "a message of the wayland channel", got: 0 }),
        };
        r.finish("one message")?;
        Ok(message)
    }
}

impl ToApp {
    /// The message's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new();
        match self {
            Self::Event(event) => {
                w.u8(EVENT);
                event.write(&mut w);
            }
            Self::Deleted(id) => {
                w.u8(DELETED);
                w.varint(id.0);
            }
            Self::Applied { surface, unit } => write_unit_note(&mut w, APPLIED, *surface, *unit),
            Self::Discarded { surface, unit } => write_unit_note(&mut w, DISCARDED, *surface, *unit),
            Self::Presented { surface, unit, time_ns, refresh_ns, sequence, flags } => {
                write_unit_note(&mut w, PRESENTED, *surface, *unit);
                w.u64(*time_ns);
                w.varint(u64::from(*refresh_ns));
                w.u64(*sequence);
                w.varint(u64::from(*flags));
            }
            Self::Visible { surface, visible } => {
                w.u8(VISIBLE);
                w.varint(surface.0);
                w.u8(u8::from(*visible));
            }
            Self::KeysHeld { keyboard } => {
                w.u8(KEYS_HELD);
                w.varint(keyboard.0);
            }
            Self::Consumed { bytes } => {
                w.u8(CONSUMED);
                w.varint(*bytes);
            }
            Self::Refresh { surface } => {
                w.u8(REFRESH);
                w.varint(surface.0);
            }
            Self::Read { time_ns } => {
                w.u8(READ);
                w.u64(*time_ns);
            }
            Self::Beat { time_ns } => {
                w.u8(BEAT);
                w.u64(*time_ns);
            }
            Self::Fatal { object, code, message } => {
                w.u8(FATAL);
                w.varint(object.0);
                w.varint(u64::from(*code));
                w.str(message);
            }
        }
        w.into_vec()
    }

    /// Parses one whole message.
    ///
    /// # Errors
    /// What was expected and where, when the bytes are not exactly one message within the bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut r = Reader::new(bytes);
        let message = match r.u8("a tag")? {
            EVENT => Self::Event(Request::read(&mut r)?),
            DELETED => Self::Deleted(WireId(r.varint("an object")?)),
            APPLIED => {
                Self::Applied { surface: WireId(r.varint("an object")?), unit: r.varint("a unit's number")? }
            }
            PRESENTED => Self::Presented {
                surface: WireId(r.varint("an object")?),
                unit: r.varint("a unit's number")?,
                time_ns: r.u64("a number")?,
                refresh_ns: r.varint_u32("refresh")?,
                sequence: r.u64("a number")?,
                flags: r.varint_u32("flags")?,
            },
            DISCARDED => Self::Discarded {
                surface: WireId(r.varint("an object")?),
                unit: r.varint("a unit's number")?,
            },
            VISIBLE => Self::Visible { surface: WireId(r.varint("an object")?), visible: r.bool("a flag")? },
            KEYS_HELD => Self::KeysHeld { keyboard: WireId(r.varint("an object")?) },
            CONSUMED => Self::Consumed { bytes: r.varint("a count of bytes")? },
            REFRESH => Self::Refresh { surface: WireId(r.varint("an object")?) },
            READ => Self::Read { time_ns: r.u64("a time")? },
            BEAT => Self::Beat { time_ns: r.u64("a time")? },
            FATAL => Self::Fatal {
                object: WireId(r.varint("an object")?),
                code: r.varint_u32("error code")?,
                message: r.str(MAX_ARG_BYTES, "a text")?.to_owned(),
            },
            _ => return Err(Error::Unknown { expected: "a message of the events channel", got: 0 }),
        };
        r.finish("one message")?;
        Ok(message)
    }
}

fn write_unit_note(w: &mut Writer, kind: u8, surface: WireId, unit: u64) {
    w.u8(kind);
    w.varint(surface.0);
    w.varint(unit);
}

impl Request {
    fn write(&self, w: &mut Writer) {
        w.varint(self.object.0);
        w.varint(u64::from(self.opcode));
        w.varint(self.args.len() as u64);
        for arg in &self.args {
            arg.write(w);
        }
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, Error> {
        let object = WireId(r.varint("an object")?);
        let opcode = r.varint_max(u64::from(u16::MAX), "an opcode")? as u16;
        let count = r.count(MAX_ARGS, "a count of arguments")?;
        let args = (0..count).map(|_| WireArg::read(r)).collect::<Result<_, _>>()?;
        Ok(Self { object, opcode, args })
    }
}

impl WireArg {
    fn write(&self, w: &mut Writer) {
        match self {
            Self::Int(v) => tagged(w, 0, |w| {
                w.zigzag(i64::from(*v));
            }),
            Self::Uint(v) => tagged(w, 1, |w| {
                w.varint(u64::from(*v));
            }),
            Self::Fixed(v) => tagged(w, 2, |w| {
                w.zigzag(i64::from(*v));
            }),
            Self::Str(None) => tagged(w, 3, |_| ()),
            Self::Str(Some(v)) => tagged(w, 4, |w| {
                w.bytes(v);
            }),
            Self::Object(v) => tagged(w, 5, |w| {
                w.varint(v.0);
            }),
            Self::NewId(v) => tagged(w, 6, |w| {
                w.varint(v.0);
            }),
            Self::Array(v) => tagged(w, 7, |w| {
                w.bytes(v);
            }),
            Self::Pipe(v) => tagged(w, 8, |w| {
                w.varint(*v);
            }),
            Self::Blob { hash, length } => tagged(w, 9, |w| {
                w.u128(*hash);
                w.varint(u64::from(*length));
            }),
            Self::Region(ops) => tagged(w, 10, |w| {
                w.varint(ops.len() as u64);
                ops.iter().for_each(|op| op.write(w));
            }),
            Self::Positioner(v) => tagged(w, 11, |w| v.write(w)),
            Self::Image(v) => tagged(w, 12, |w| v.write(w)),
        }
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(match r.u8("a tag")? {
            0 => Self::Int(crate::value::int(r, "a signed 32-bit integer")?),
            1 => Self::Uint(r.varint_u32("an unsigned 32-bit integer")?),
            2 => Self::Fixed(crate::value::int(r, "a 24.8 fixed-point number")?),
            3 => Self::Str(None),
            4 => Self::Str(Some(r.bytes(MAX_ARG_BYTES, "bytes of an argument")?.to_vec())),
            5 => Self::Object(WireId(r.varint("an object")?)),
            6 => Self::NewId(WireId(r.varint("an object")?)),
            7 => Self::Array(r.bytes(MAX_ARG_BYTES, "bytes of an argument")?.to_vec()),
            8 => Self::Pipe(r.varint("a pipe's number")?),
            9 => Self::Blob { hash: r.u128("a hash")?, length: r.varint_u32("a blob's length")? },
            10 => {
                let count = r.count(MAX_REGION_OPS, "a count of rectangles")?;
                Self::Region((0..count).map(|_| RegionOp::read(r)).collect::<Result<_, _>>()?)
            }
            11 => Self::Positioner(Positioner::read(r)?),
            12 => Self::Image(Image::read(r)?),
            _ => return Err(Error::Unknown { expected: "a tag of an argument, 0 to 12", got: 0 }),
        })
    }
}

fn tagged(w: &mut Writer, tag: u8, body: impl FnOnce(&mut Writer)) {
    w.u8(tag);
    body(w);
}

impl Unit {
    fn write(&self, w: &mut Writer) {
        w.varint(self.surface.0);
        w.varint(self.number);
        match self.content {
            UnitContent::Keep => tagged(w, 0, |_| ()),
            UnitContent::None => tagged(w, 1, |_| ()),
            UnitContent::Update(seq) => tagged(w, 2, |w| {
                w.varint(seq.0);
            }),
        }
        let feedback = if self.feedback { FEEDBACK } else { 0 };
        let answers = if self.answered.is_some() { ANSWERS } else { 0 };
        w.u8(feedback | answers);
        self.answered.map(|key| w.varint(key));
        w.zigzag(i64::from(self.offset.0));
        w.zigzag(i64::from(self.offset.1));
        w.varint(self.state.len() as u64);
        self.state.iter().for_each(|request| request.write(w));
        w.varint(self.children.len() as u64);
        self.children.iter().for_each(|child| child.write(w));
    }

    fn read(r: &mut Reader<'_>, depth: usize) -> Result<Self, Error> {
        if depth > MAX_UNIT_DEPTH {
            return Err(Error::Unknown { expected: "units nested at most 16 deep", got: 0 });
        }
        let surface = WireId(r.varint("an object")?);
        let number = r.varint("a unit's number")?;
        let content = match r.u8("a tag")? {
            0 => UnitContent::Keep,
            1 => UnitContent::None,
            2 => UnitContent::Update(UpdateSeq(r.varint("an update's number")?)),
            _ => return Err(Error::Unknown { expected: "a unit's content: keep, none or update", got: 0 }),
        };
        let flags = r.u8("flags of a unit")?;
        if flags & !(FEEDBACK | ANSWERS) != 0 {
            return Err(Error::Unknown { expected: "flags of a unit", got: flags.into() });
        }
        let feedback = flags & FEEDBACK != 0;
        let answered = if flags & ANSWERS != 0 { Some(r.varint("a key's number")?) } else { None };
        let offset = (crate::value::int(r, "an offset")?, crate::value::int(r, "an offset")?);
        let count = r.count(MAX_UNIT_STATE + MAX_UNIT_CHILDREN, "a count of requests")?;
        let state = (0..count).map(|_| Request::read(r)).collect::<Result<_, _>>()?;
        let count = r.count(MAX_UNIT_CHILDREN, "a count of children")?;
        let children = (0..count).map(|_| Self::read(r, depth + 1)).collect::<Result<_, _>>()?;
        Ok(Self { surface, number, state, content, offset, feedback, answered, children })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value::{Image, Positioner, RegionOp};

    fn id() -> impl Strategy<Value = WireId> {
        (0u64..1 << 40).prop_map(WireId)
    }

    fn region_op() -> impl Strategy<Value = RegionOp> {
        (any::<bool>(), any::<[i32; 4]>()).prop_map(|(add, [x, y, width, height])| {
            if add { RegionOp::Add(x, y, width, height) } else { RegionOp::Subtract(x, y, width, height) }
        })
    }

    prop_compose! {
        fn positioner()(
            size in any::<Option<(i32, i32)>>(),
            anchor_rect in any::<Option<(i32, i32, i32, i32)>>(),
            numbers in any::<[Option<u32>; 4]>(),
            offset in any::<Option<(i32, i32)>>(),
            reactive in any::<bool>(),
            parent_size in any::<Option<(i32, i32)>>(),
        ) -> Positioner {
            let [anchor, gravity, constraint_adjustment, parent_configure] = numbers;
            Positioner {
                size, anchor_rect, anchor, gravity, constraint_adjustment, offset, reactive, parent_size,
                parent_configure,
            }
        }
    }

    fn arg() -> impl Strategy<Value = WireArg> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..20);
        prop_oneof![
            any::<i32>().prop_map(WireArg::Int),
            any::<u32>().prop_map(WireArg::Uint),
            any::<i32>().prop_map(WireArg::Fixed),
            proptest::option::of(bytes()).prop_map(WireArg::Str),
            id().prop_map(WireArg::Object),
            id().prop_map(WireArg::NewId),
            bytes().prop_map(WireArg::Array),
            (0u64..1 << 40).prop_map(WireArg::Pipe),
            any::<(u128, u32)>().prop_map(|(hash, length)| WireArg::Blob { hash, length }),
            proptest::collection::vec(region_op(), 0..4).prop_map(WireArg::Region),
            positioner().prop_map(WireArg::Positioner),
            any::<(u128, u32, u32, u32)>().prop_map(|(hash, width, height, format)| {
                WireArg::Image(Image { hash, width, height, format })
            }),
        ]
    }

    fn request() -> impl Strategy<Value = Request> {
        (id(), any::<u16>(), proptest::collection::vec(arg(), 0..6))
            .prop_map(|(object, opcode, args)| Request { object, opcode, args })
    }

    fn unit() -> impl Strategy<Value = Unit> {
        let content = prop_oneof![
            Just(UnitContent::Keep),
            Just(UnitContent::None),
            (0u64..1 << 40).prop_map(|seq| UnitContent::Update(UpdateSeq(seq))),
        ];
        let leaf = (id(), 0u64..1 << 40, proptest::collection::vec(request(), 0..3), content).prop_flat_map(
            |(surface, number, state, content)| {
                let answered = proptest::option::of(0u64..1 << 40);
                (any::<(i32, i32)>(), any::<bool>(), answered).prop_map(
                    move |(offset, feedback, answered)| {
                        let (state, children) = (state.clone(), Vec::new());
                        Unit { surface, number, state, content, offset, feedback, answered, children }
                    },
                )
            },
        );
        leaf.prop_recursive(3, 8, 3, |inner| {
            (inner.clone(), proptest::collection::vec(inner, 0..3))
                .prop_map(|(unit, children)| Unit { children, ..unit })
        })
    }

    fn unit_note() -> impl Strategy<Value = (WireId, u64)> {
        (id(), 0u64..1 << 40)
    }

    fn to_app() -> impl Strategy<Value = ToApp> {
        prop_oneof![
            request().prop_map(ToApp::Event),
            id().prop_map(ToApp::Deleted),
            unit_note().prop_map(|(surface, unit)| ToApp::Applied { surface, unit }),
            unit_note().prop_map(|(surface, unit)| ToApp::Discarded { surface, unit }),
            (unit_note(), any::<(u64, u32, u64, u32)>()).prop_map(
                |((surface, unit), (time_ns, refresh_ns, sequence, flags))| {
                    ToApp::Presented { surface, unit, time_ns, refresh_ns, sequence, flags }
                }
            ),
            (id(), any::<bool>()).prop_map(|(surface, visible)| ToApp::Visible { surface, visible }),
            id().prop_map(|keyboard| ToApp::KeysHeld { keyboard }),
            id().prop_map(|surface| ToApp::Refresh { surface }),
            any::<u64>().prop_map(|time_ns| ToApp::Read { time_ns }),
            any::<u64>().prop_map(|time_ns| ToApp::Beat { time_ns }),
            (0u64..1 << 60).prop_map(|bytes| ToApp::Consumed { bytes }),
            (id(), any::<u32>(), ".{0,20}").prop_map(|(object, code, message)| ToApp::Fatal {
                object,
                code,
                message
            }),
        ]
    }

    fn to_display() -> impl Strategy<Value = ToDisplay> {
        prop_oneof![
            (any::<(u32, u32)>(), "[a-z_0-9]{1,40}", id()).prop_map(|((global, version), interface, id)| {
                ToDisplay::Bind { global, interface, version, id }
            }),
            request().prop_map(ToDisplay::Request),
            unit().prop_map(ToDisplay::Unit),
            (id(), any::<u128>()).prop_map(|(keyboard, hash)| ToDisplay::KeymapKnown { keyboard, hash }),
            any::<bool>().prop_map(ToDisplay::Hang),
            (unit_note(), 0u64..1 << 40).prop_map(|((surface, update), by)| ToDisplay::Superseded {
                surface,
                update: UpdateSeq(update),
                by: UpdateSeq(by),
            }),
            (0u64..1 << 40).prop_map(|key| ToDisplay::Late { key }),
        ]
    }

    proptest! {
        #[test]
        fn messages_survive_the_wire(to_display in to_display(), to_app in to_app()) {
            prop_assert_eq!(ToDisplay::decode(&to_display.encode()).unwrap(), to_display);
            prop_assert_eq!(ToApp::decode(&to_app.encode()).unwrap(), to_app);
        }

        #[test]
        fn every_cut_is_an_error(message in to_display()) {
            let bytes = message.encode();
            for end in 0..bytes.len() {
                prop_assert!(ToDisplay::decode(&bytes[..end]).is_err());
            }
        }

        #[test]
        fn nonsense_is_an_error_or_a_message(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ToDisplay::decode(&bytes);
            let _ = ToApp::decode(&bytes);
        }
    }

    #[test]
    fn units_nested_too_deep_are_refused() {
        let leaf = Unit {
            surface: WireId(4),
            number: 1,
            state: Vec::new(),
            content: UnitContent::Keep,
            offset: (0, 0),
            feedback: false,
            answered: None,
            children: Vec::new(),
        };
        let nested =
            |depth| (0..depth).fold(leaf.clone(), |unit, _| Unit { children: vec![unit], ..leaf.clone() });
        assert!(ToDisplay::decode(&ToDisplay::Unit(nested(MAX_UNIT_DEPTH)).encode()).is_ok());
        assert!(ToDisplay::decode(&ToDisplay::Unit(nested(MAX_UNIT_DEPTH + 1)).encode()).is_err());
    }
}
