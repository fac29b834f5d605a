//! What a frame consists of, checked before the codec sees it.
//!
//! The codec is a large piece of C++ that takes many kinds of streams, and memory as a stream asks for it. This module
//! lets through what our encoder writes and nothing else: a key frame is a sequence parameter set of
//! the right size, a picture parameter set and an IDR slice; any other frame is one slice. It looks at no picture data.

use crate::bits::Bits;
use crate::error::Error;
use crate::size::Size;

/// What can be decoded from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Needs nothing before it.
    Key,
    /// Needs the frame before it.
    Delta,
}

/// Which kind of frame this is.
///
/// # Errors
/// `FrameTooLong`, `FrameShape` or `FrameSize`.
pub(crate) fn check(data: &[u8], size: Size) -> Result<Kind, Error> {
    let most = most(size);
    if data.len() > most {
        return Err(Error::FrameTooLong { length: data.len(), most });
    }
    let units: Vec<Unit<'_>> = units(data).ok_or(Error::FrameShape)?;
    match units[..] {
        [sequence, picture, slice] if sequence.kind == SEQUENCE && picture.kind == PICTURE => {
            let blocks = Sequence::read(&sequence).ok_or(Error::FrameShape)?;
            if blocks != size.blocks() {
                return Err(Error::FrameSize { across: blocks.0, down: blocks.1 });
            }
            let sound = slice.kind == IDR && is_plain_picture(&picture) && slice_type(&slice) == Some(INTRA);
            if sound { Ok(Kind::Key) } else { Err(Error::FrameShape) }
        }
        [slice] if slice.kind == SLICE && matches!(slice_type(&slice), Some(INTRA | PREDICTED)) => {
            Ok(Kind::Delta)
        }
        _ => Err(Error::FrameShape),
    }
}

/// A frame of another encoder, with every unit begun as ours does, and without what is beside pictures and their
/// parameters (delimiters, remarks, filling), of which a decoder has no use.
#[cfg(feature = "ffmpeg")]
pub(crate) fn plain(data: &[u8]) -> Vec<u8> {
    let find = |data: &[u8]| data.windows(START.len()).position(|window| window == START);
    let mut plain = Vec::with_capacity(data.len() + START.len());
    let mut next = find(data);
    let mut rest = data;
    while let Some(at) = next {
        rest = &rest[at + START.len()..];
        next = find(rest);
        let unit = &rest[..next.unwrap_or(rest.len())];
        let length = unit.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        if unit.first().is_some_and(|head| [SLICE, IDR, SEQUENCE, PICTURE].contains(&(head & KIND))) {
            plain.push(0);
            plain.extend(START);
            plain.extend(&unit[..length]);
        }
    }
    plain
}

/// Bytes that a frame can have: no block needs more than 3200 bits, and escapes add at most half of that.
// ITU-T H.264 §A.3.1
fn most(size: Size) -> usize {
    let (across, down) = size.blocks();
    (across * down) as usize * 600 + 1024
}

/// A part of a frame.
#[derive(Clone, Copy, Debug)]
struct Unit<'a> {
    kind: u8,
    payload: &'a [u8],
}

/// The units of a frame; `None` when it does not begin with one, has an empty one, or more than a key frame has.
fn units(data: &[u8]) -> Option<Vec<Unit<'_>>> {
    let mut rest = data.strip_prefix(&[0])?;
    let mut units = Vec::new();
    while let Some(from) = rest.strip_prefix(&START) {
        let end = from.windows(3).position(|window| window == START).unwrap_or(from.len());
        let (unit, behind) = from.split_at(end);
        let (&head, payload) = unit.split_first()?;
        if units.len() == 3 || head & FORBIDDEN != 0 {
            return None;
        }
        units.push(Unit { kind: head & KIND, payload });
        rest = behind;
    }
    Some(units)
}

struct Sequence;

impl Sequence {
    /// The size in blocks; `None` when anything is set that our encoder does not set.
    // ITU-T H.264 §7.3.2.1.1
    fn read(unit: &Unit<'_>) -> Option<(u32, u32)> {
        let mut bits = Bits::of(unit.payload, PARAMETERS);
        let profile = bits.number(8)?;
        bits.number(16)?; // constraints, level
        let (id, frame_numbers, order_kind) = (bits.golomb()?, bits.golomb()?, bits.golomb()?);
        let (references, gaps) = (bits.golomb()?, bits.flag()?);
        let (across, down) = (bits.golomb()?.checked_add(1)?, bits.golomb()?.checked_add(1)?);
        let (frames_only, _inference, crops) = (bits.flag()?, bits.flag()?, bits.flag()?);
        let ours = profile == BASELINE
            && id == 0
            && frame_numbers <= 12
            && order_kind == OUTPUT_IN_DECODING_ORDER
            && references == 1
            && !gaps
            && frames_only
            && !crops;
        ours.then_some((across, down))
    }
}

/// Whether slices of the picture cover all of it, in order.
// ITU-T H.264 §7.3.2.2
fn is_plain_picture(unit: &Unit<'_>) -> bool {
    let mut bits = Bits::of(unit.payload, PARAMETERS);
    let mut read = || Some((bits.golomb()?, bits.golomb()?, bits.number(2)?, bits.golomb()?));
    // its number, its sequence's; neither another entropy coding nor fields; one group of slices
    read() == Some((0, 0, 0, 0))
}

/// The type of a slice that begins at the first block.
// ITU-T H.264 §7.3.3, table 7-6
fn slice_type(unit: &Unit<'_>) -> Option<u32> {
    let mut bits = Bits::of(unit.payload, SLICE_HEAD);
    let first = bits.golomb()?;
    let slice_type = bits.golomb()?;
    (first == 0 && slice_type < 10).then_some(slice_type % 5)
}

const START: [u8; 3] = [0, 0, 1];

// ITU-T H.264 §7.3.1, table 7-1
const FORBIDDEN: u8 = 0x80;
const KIND: u8 = 0x1f;
const SLICE: u8 = 1;
const IDR: u8 = 5;
const SEQUENCE: u8 = 7;
const PICTURE: u8 = 8;

const PREDICTED: u32 = 0;
const INTRA: u32 = 2;

const BASELINE: u32 = 66;
const OUTPUT_IN_DECODING_ORDER: u32 = 2;

/// Bytes that are read of a parameter set, and of a slice; all that is read lies well inside.
const PARAMETERS: usize = 64;
const SLICE_HEAD: usize = 16;

#[cfg(all(test, feature = "ffmpeg"))]
mod tests {
    use super::*;

    #[test]
    fn remarks_are_left_out() {
        // a delimiter, parameters, a remark, a slice that follows a short start and ends in a fill byte
        let frame = [
            &[0, 0, 0, 1, 9, 0x10, 0, 0, 0, 1, 0x67, 1, 2, 0, 0, 0, 1, 0x68, 3][..],
            &[0, 0, 1, 6, 5, 4, 0x80, 0, 0, 1, 0x65, 7, 0, 0, 3, 1, 0],
        ];
        let expected = [0, 0, 0, 1, 0x67, 1, 2, 0, 0, 0, 1, 0x68, 3, 0, 0, 0, 1, 0x65, 7, 0, 0, 3, 1];
        assert_eq!(plain(&frame.concat()), expected);
        assert_eq!(plain(&expected), expected, "ours stay as they are");
        assert_eq!(plain(&[]), []);
        assert_eq!(plain(&[1, 2, 3]), []);
        assert_eq!(plain(&[0, 0, 1]), []);
    }
}
