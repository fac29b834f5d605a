//! What the display side tells about its compositor, so that programs start without asking it.
//!
//! The snapshot is a value: the display side sends it whole at attach and after each change, the app side compares
//! it with the one before and tells its programs what differs. It travels as an opaque blob of the control channel.

use wayferry_proto::Error;
use wayferry_proto::wire::{Reader, Writer};

/// Globals in one snapshot.
pub const MAX_GLOBALS: usize = 256;
/// Outputs in one snapshot.
pub const MAX_OUTPUTS: usize = 32;
/// Seats in one snapshot.
pub const MAX_SEATS: usize = 16;
/// Modes of one output.
pub const MAX_MODES: usize = 64;
/// Formats of `wl_shm`.
pub const MAX_FORMATS: usize = 256;
/// Registry names of outputs and seats stay below: programs see them moved up into ranges of their own.
pub const MAX_NAME: u32 = (1 << 30) - 1;
/// Bytes of one name or description.
pub const MAX_TEXT: usize = 256;

/// Everything that the app side may answer without the compositor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// What the compositor's registry holds.
    pub globals: Vec<Global>,
    /// Its outputs, in registry order.
    pub outputs: Vec<Output>,
    /// Its seats, in registry order.
    pub seats: Vec<Seat>,
    /// `wl_shm.format` codes that it takes.
    pub formats: Vec<u32>,
}

/// One entry of the compositor's registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Global {
    /// Registry name.
    pub name: u32,
    /// Interface.
    pub interface: String,
    /// Version that the compositor offers.
    pub version: u32,
}

/// One `wl_output` with what `xdg_output` adds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// Registry name.
    pub global: u32,
    /// Position in the compositor's space.
    pub position: (i32, i32),
    /// Millimetres.
    pub physical: (i32, i32),
    /// `wl_output.subpixel`.
    pub subpixel: i32,
    /// Manufacturer.
    pub make: String,
    /// Model.
    pub model: String,
    /// `wl_output.transform`.
    pub transform: i32,
    /// Modes.
    pub modes: Vec<Mode>,
    /// Integer scale.
    pub scale: i32,
    /// Connector name.
    pub name: String,
    /// For people.
    pub description: String,
    /// Logical position and size: x, y, width, height.
    pub logical: (i32, i32, i32, i32),
}

/// One mode of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// `wl_output.mode` bits: 1 current, 2 preferred.
    pub flags: u32,
    /// Width, hardware pixels.
    pub width: i32,
    /// Height, hardware pixels.
    pub height: i32,
    /// mHz.
    pub refresh: i32,
}

/// One `wl_seat`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seat {
    /// Registry name.
    pub global: u32,
    /// `wl_seat.capability` bits.
    pub capabilities: u32,
    /// Its name.
    pub name: String,
    /// The keyboard's keymap, when there is a keyboard.
    pub keymap: Option<Keymap>,
    /// Key repeat: characters per second, delay in milliseconds.
    pub repeat: Option<(i32, i32)>,
}

/// A keymap, whose text travels as a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keymap {
    /// `wl_keyboard.keymap_format`.
    pub format: u32,
    /// Name of the blob.
    pub hash: u128,
    /// Its length, bytes (with the final NUL that the compositor sent).
    pub length: u32,
}

impl Snapshot {
    /// The version at which the compositor offers an interface, if it does.
    pub fn version(&self, interface: &str) -> Option<u32> {
        self.globals.iter().filter(|global| global.interface == interface).map(|global| global.version).max()
    }

    /// The snapshot's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new();
        w.varint(self.globals.len() as u64);
        for global in &self.globals {
            w.varint(u64::from(global.name));
            w.str(&global.interface);
            w.varint(u64::from(global.version));
        }
        w.varint(self.outputs.len() as u64);
        self.outputs.iter().for_each(|output| output.write(&mut w));
        w.varint(self.seats.len() as u64);
        self.seats.iter().for_each(|seat| seat.write(&mut w));
        w.varint(self.formats.len() as u64);
        for format in &self.formats {
            w.varint(u64::from(*format));
        }
        w.into_vec()
    }

    /// Parses a whole snapshot.
    ///
    /// # Errors
    /// What was expected, when the bytes are not exactly one snapshot within the bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let r = &mut Reader::new(bytes);
        let snapshot = Self {
            globals: list(r, MAX_GLOBALS, |r| {
                Ok(Global {
                    name: r.varint_u32("a registry name")?,
                    interface: r.str(64, "an interface")?.to_owned(),
                    version: r.varint_u32("a version")?,
                })
            })?,
            outputs: list(r, MAX_OUTPUTS, Output::read)?,
            seats: list(r, MAX_SEATS, Seat::read)?,
            formats: list(r, MAX_FORMATS, |r| r.varint_u32("a format"))?,
        };
        if !r.is_empty() {
            return Err(Error::Trailing { after: "a snapshot", bytes: r.remaining() });
        }
        Ok(snapshot)
    }
}

fn list<'a, T>(
    r: &mut Reader<'a>,
    max: usize,
    read: impl Fn(&mut Reader<'a>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let count = r.count(max, "a count within the limits of a snapshot")?;
    (0..count).map(|_| read(r)).collect()
}

fn name(r: &mut Reader<'_>) -> Result<u32, Error> {
    Ok(r.varint_max(u64::from(MAX_NAME), "a registry name below 2^30")? as u32)
}

fn text(r: &mut Reader<'_>) -> Result<String, Error> {
    Ok(r.str(MAX_TEXT, "a text")?.to_owned())
}

fn int(r: &mut Reader<'_>) -> Result<i32, Error> {
    crate::value::int(r, "a number of an output")
}

impl Output {
    fn write(&self, w: &mut Writer) {
        w.varint(u64::from(self.global));
        let (x, y, width, height) = self.logical;
        let ints = [self.position.0, self.position.1, self.physical.0, self.physical.1, self.subpixel];
        for value in ints.into_iter().chain([self.transform, self.scale, x, y, width, height]) {
            w.zigzag(i64::from(value));
        }
        for text in [&self.make, &self.model, &self.name, &self.description] {
            w.str(text);
        }
        w.varint(self.modes.len() as u64);
        for mode in &self.modes {
            w.varint(u64::from(mode.flags));
            for value in [mode.width, mode.height, mode.refresh] {
                w.zigzag(i64::from(value));
            }
        }
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            global: name(r)?,
            position: (int(r)?, int(r)?),
            physical: (int(r)?, int(r)?),
            subpixel: int(r)?,
            transform: int(r)?,
            scale: int(r)?,
            logical: (int(r)?, int(r)?, int(r)?, int(r)?),
            make: text(r)?,
            model: text(r)?,
            name: text(r)?,
            description: text(r)?,
            modes: list(r, MAX_MODES, |r| {
                Ok(Mode {
                    flags: r.varint_u32("mode flags")?,
                    width: int(r)?,
                    height: int(r)?,
                    refresh: int(r)?,
                })
            })?,
        })
    }
}

impl Seat {
    fn write(&self, w: &mut Writer) {
        w.varint(u64::from(self.global));
        w.varint(u64::from(self.capabilities));
        w.str(&self.name);
        w.u8(u8::from(self.keymap.is_some()));
        if let Some(keymap) = self.keymap {
            w.varint(u64::from(keymap.format));
            w.u128(keymap.hash);
            w.varint(u64::from(keymap.length));
        }
        w.u8(u8::from(self.repeat.is_some()));
        if let Some((rate, delay)) = self.repeat {
            w.zigzag(i64::from(rate));
            w.zigzag(i64::from(delay));
        }
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            global: name(r)?,
            capabilities: r.varint_u32("capabilities")?,
            name: text(r)?,
            keymap: if r.bool("a flag")? {
                Some(Keymap {
                    format: r.varint_u32("a keymap format")?,
                    hash: r.u128("a hash")?,
                    length: r.varint_u32("a keymap's length")?,
                })
            } else {
                None
            },
            repeat: if r.bool("a flag")? {
                Some((crate::value::int(r, "a repeat rate")?, crate::value::int(r, "a repeat delay")?))
            } else {
                None
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        let output = Output {
            global: 7,
            position: (-1280, 0),
            physical: (300, 200),
            make: "maker".to_owned(),
            modes: vec![Mode { flags: 3, width: 1280, height: 720, refresh: 60_000 }],
            scale: 2,
            name: "OUT-1".to_owned(),
            logical: (-640, 0, 640, 360),
            ..Output::default()
        };
        let keymap = Some(Keymap { format: 1, hash: 9, length: 40_000 });
        Snapshot {
            globals: vec![Global { name: 3, interface: "wl_compositor".to_owned(), version: 4 }],
            outputs: vec![output],
            seats: vec![
                Seat {
                    global: 8,
                    capabilities: 3,
                    name: "seat0".to_owned(),
                    keymap,
                    repeat: Some((25, 600)),
                },
                Seat::default(),
            ],
            formats: vec![0, 1, 0x3432_4241],
        }
    }

    #[test]
    fn snapshots_survive_the_wire() {
        assert_eq!(Snapshot::decode(&snapshot().encode()).unwrap(), snapshot());
    }

    #[test]
    fn every_cut_and_every_byte_more_is_an_error() {
        let mut bytes = snapshot().encode();
        for end in 0..bytes.len() {
            assert!(Snapshot::decode(&bytes[..end]).is_err());
        }
        bytes.push(0);
        assert!(Snapshot::decode(&bytes).is_err());
    }
}
