//! Wayland objects that travel by value: regions, positioners, buffers used outside surfaces.
//!
//! A program makes such an object, uses it once and destroys it, while the commit that uses it may wait for its
//! pixels at the display side. Carrying the value makes the use independent of the object's life.

use wayferry_proto::Error;
use wayferry_proto::wire::{Reader, Writer};

/// One step in building a `wl_region`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegionOp {
    /// Add a rectangle: x, y, width, height in surface coordinates.
    Add(i32, i32, i32, i32),
    /// Subtract a rectangle.
    Subtract(i32, i32, i32, i32),
}

impl RegionOp {
    pub(crate) fn write(&self, w: &mut Writer) {
        let (tag, rect) = match *self {
            Self::Add(x, y, width, height) => (0, [x, y, width, height]),
            Self::Subtract(x, y, width, height) => (1, [x, y, width, height]),
        };
        w.u8(tag);
        for value in rect {
            w.zigzag(i64::from(value));
        }
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, Error> {
        let subtract = r.bool("a flag")?;
        let mut number = || int(r, "a rectangle");
        let (x, y, width, height) = (number()?, number()?, number()?, number()?);
        Ok(if subtract { Self::Subtract(x, y, width, height) } else { Self::Add(x, y, width, height) })
    }
}

/// The rules of an `xdg_positioner`; `None` was never set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Positioner {
    /// `set_size`: width, height.
    pub size: Option<(i32, i32)>,
    /// `set_anchor_rect`: x, y, width, height.
    pub anchor_rect: Option<(i32, i32, i32, i32)>,
    /// `set_anchor`.
    pub anchor: Option<u32>,
    /// `set_gravity`.
    pub gravity: Option<u32>,
    /// `set_constraint_adjustment`.
    pub constraint_adjustment: Option<u32>,
    /// `set_offset`: x, y.
    pub offset: Option<(i32, i32)>,
    /// `set_reactive`.
    pub reactive: bool,
    /// `set_parent_size`: width, height.
    pub parent_size: Option<(i32, i32)>,
    /// `set_parent_configure`: a serial, as the display side knows it once it is on the wire.
    pub parent_configure: Option<u32>,
}

impl Positioner {
    pub(crate) fn write(&self, w: &mut Writer) {
        let present = u8::from(self.size.is_some())
            | u8::from(self.anchor_rect.is_some()) << 1
            | u8::from(self.anchor.is_some()) << 2
            | u8::from(self.gravity.is_some()) << 3
            | u8::from(self.constraint_adjustment.is_some()) << 4
            | u8::from(self.offset.is_some()) << 5
            | u8::from(self.parent_size.is_some()) << 6
            | u8::from(self.parent_configure.is_some()) << 7;
        w.u8(present);
        w.u8(u8::from(self.reactive));
        let mut ints = |values: &[i32]| {
            for value in values {
                w.zigzag(i64::from(*value));
            }
        };
        if let Some((width, height)) = self.size {
            ints(&[width, height]);
        }
        if let Some((x, y, width, height)) = self.anchor_rect {
            ints(&[x, y, width, height]);
        }
        if let Some((x, y)) = self.offset {
            ints(&[x, y]);
        }
        if let Some((width, height)) = self.parent_size {
            ints(&[width, height]);
        }
        let values = [self.anchor, self.gravity, self.constraint_adjustment, self.parent_configure];
        for value in values.into_iter().flatten() {
            w.varint(u64::from(value));
        }
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, Error> {
        let present = r.u8("presence bits")?;
        let reactive = r.bool("a flag")?;
        let has = |bit: u8| present & (1 << bit) != 0;
        let int = |r: &mut Reader<'_>| int(r, "a positioner's number");
        let uint = |r: &mut Reader<'_>| r.varint_u32("a positioner's number");
        Ok(Self {
            reactive,
            size: if has(0) { Some((int(r)?, int(r)?)) } else { None },
            anchor_rect: if has(1) { Some((int(r)?, int(r)?, int(r)?, int(r)?)) } else { None },
            offset: if has(5) { Some((int(r)?, int(r)?)) } else { None },
            parent_size: if has(6) { Some((int(r)?, int(r)?)) } else { None },
            anchor: if has(2) { Some(uint(r)?) } else { None },
            gravity: if has(3) { Some(uint(r)?) } else { None },
            constraint_adjustment: if has(4) { Some(uint(r)?) } else { None },
            parent_configure: if has(7) { Some(uint(r)?) } else { None },
        })
    }
}

/// The content of a `wl_buffer` that is used outside a surface (an icon); the pixels travel as a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// Name of the blob that holds the pixels, as the app side packs them.
    pub hash: u128,
    /// Width, buffer pixels.
    pub width: u32,
    /// Height, buffer pixels.
    pub height: u32,
    /// `wl_shm.format` code.
    pub format: u32,
}

impl Image {
    pub(crate) fn write(&self, w: &mut Writer) {
        w.u128(self.hash);
        for value in [self.width, self.height, self.format] {
            w.varint(u64::from(value));
        }
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            hash: r.u128("a hash")?,
            width: r.varint_u32("a width")?,
            height: r.varint_u32("a height")?,
            format: r.varint_u32("a format")?,
        })
    }
}

/// Reads a signed 32-bit number.
pub(crate) fn int(r: &mut Reader<'_>, expected: &'static str) -> Result<i32, Error> {
    i32::try_from(r.zigzag(expected)?).map_err(|_| Error::Unknown { expected, got: 0 })
}
