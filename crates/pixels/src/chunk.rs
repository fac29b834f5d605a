//! The byte layout of a chunk.
//!
//! ```text
//! u8       compression: 0 none, 1 lz4 block, 2 zstd frame (3 and 4 are frames of videos, see `video.rs`)
//! length  length of the body, in bytes
//! rest     the body, compressed
//! ```
//! The body is a sequence of streams:
//! ```text
//! number   copies, then for each: number x, y, width − 1, height − 1, number x and y of its source
//! number   rectangles, then for each: u8 class, number x, y, width − 1, height − 1
//! colours  per rectangle, by class:
//!            0 solid             its pixel
//!            1 palette as before nothing: the palette of the rectangle of class 1 or 2 before it
//!            2 palette           u8 colours − 1, then their first bytes, their second bytes, and so on, each less
//!                                that of the colour before
//!            3 picture           u8 value of the fourth channel, if the format has one
//!            4 picture           nothing: the fourth channel has a plane
//!            5 lossy             u8 value of the fourth channel, length of the image
//!            6 preview           the same
//! numbers  per rectangle of class 1 or 2: a byte per pixel, cell by cell (64 × 64 from the rectangle's
//!          corner, left to right, then down), each cell row by row
//! planes   the residuals of all pictures, channel by channel: green, the lower and the higher of red and
//!          blue; with 10 bits then the upper bytes of the three; then the fourth channel of class 4
//! images   per rectangle of class 5 or 6: JPEG, one baseline scan of three components; of class 6 with a quarter of
//!          the rectangle's width and height, rounded up
//! ```
//! A number is one byte below 64, else two bytes, the first with its upper bits `01` (the short forms
//! of RFC 9000 §16); a length may also be four bytes, with bits `10`. This module knows the layout only; it
//! neither compresses nor paints.
//!
//! The one invariant: of a body that parses every range lies inside it, every copy and rectangle inside the
//! surface, and every number below the count of its palette.

use std::ops::Range;

use crate::classify::CELL;
use crate::error::Error;
use crate::fidelity::Grade;
use crate::format::Format;
use crate::geometry::{Rect, Size};
use crate::jpeg;
use crate::palette::MAX_COLOURS;
use crate::picture::{Channels, FOURTH};

/// Longest chunk, in bytes.
pub const MAX_CHUNK: usize = 64 << 10;

/// Most bytes that a chunk may decompress to.
pub const MAX_CHUNK_BODY: usize = 512 << 10;

/// Most rectangles in a chunk.
pub const MAX_CHUNK_RECTS: usize = 4096;

/// Most copies in a chunk.
pub const MAX_CHUNK_COPIES: usize = 1024;

/// Most pixels that the images of a chunk may have together, by [`jpeg::effort`].
pub(crate) const MAX_CHUNK_IMAGES: u64 = 1 << 19;

/// Bytes of memory that are touched in the time in which a pixel of a lossy picture is read.
const IMAGE_EFFORT: u64 = 4;

/// How the body of a chunk is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Raw,
    Lz4,
    Zstd,
}

/// A rectangle of the content before the update that is also the content of another one after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    /// Where it is painted.
    pub(crate) rect: Rect,
    /// Corner of where it comes from.
    pub(crate) x: u32,
    pub(crate) y: u32,
}

impl Copy {
    /// Where it comes from.
    pub(crate) fn source(self) -> Rect {
        Rect { x: self.x, y: self.y, ..self.rect }
    }
}

/// A rectangle as a chunk lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) rect: Rect,
    pub(crate) fill: Fill,
}

/// What to paint it with; ranges are of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// The colour lies at this place.
    Solid(usize),
    /// Where the palette's colours and the numbers lie.
    Palette { colours: Range<usize>, numbers: usize },
    /// Where the residuals lie; where there are none, an empty range.
    Picture { planes: [Range<usize>; 7], constant: Option<u8> },
    /// Where the image lies, and the fourth channel.
    Lossy { image: Range<usize>, grade: Grade, fourth: u8 },
}

/// A lossy picture on its way into a chunk.
#[derive(Debug)]
pub(crate) struct Lossy {
    pub(crate) rect: Rect,
    pub(crate) grade: Grade,
    pub(crate) fourth: u8,
    pub(crate) image: Vec<u8>,
}

/// A parsed body.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) copies: Vec<Copy>,
    pub(crate) pieces: Vec<Piece>,
}

/// The head of a chunk: compression, length of the body, and where the rest starts.
pub(crate) fn parse_head(chunk: &[u8]) -> Result<(Codec, usize, usize), Error> {
    if chunk.len() > MAX_CHUNK {
        return Err(Error::ChunkTooLong { length: chunk.len() });
    }
    let mut reader = Reader::new(chunk);
    let codec = match reader.byte()? {
        0 => Codec::Raw,
        1 => Codec::Lz4,
        2 => Codec::Zstd,
        code => return Err(Error::ChunkCodec { code }),
    };
    let length = reader.length()?;
    if length > MAX_CHUNK_BODY {
        return Err(Error::ChunkBody { length });
    }
    Ok((codec, length, reader.at))
}

/// About how many bytes of memory are touched to open a chunk, as far as that can be told before: its body, and lossy
/// pictures of a body that is not compressed, as those of an [`Encoder`](crate::Encoder) are not.
pub(crate) fn effort(chunk: &[u8], size: Size) -> u64 {
    let Ok((codec, length, start)) = parse_head(chunk) else { return 0 };
    let images = if codec == Codec::Raw { images(&chunk[start..], size).unwrap_or(0) } else { 0 };
    length as u64 + IMAGE_EFFORT * images
}

/// Pixels of the lossy pictures of a body.
fn images(body: &[u8], size: Size) -> Result<u64, Error> {
    let mut reader = Reader::new(body);
    copies(&mut reader, size)?;
    let pixels = |(class, rect)| match class {
        LOSSY => jpeg::effort(rect, Grade::Detail),
        PREVIEW => jpeg::effort(rect, Grade::Preview),
        _ => 0,
    };
    Ok(rects(&mut reader, size)?.into_iter().map(pixels).sum())
}

/// Writes the head of a chunk to the end of `target`.
pub(crate) fn write_head(target: &mut Vec<u8>, codec: Codec, length: usize) {
    target.push(match codec {
        Codec::Raw => 0,
        Codec::Lz4 => 1,
        Codec::Zstd => 2,
    });
    write_length(target, length);
}

/// The classes of rectangles.
pub(crate) const SOLID: u8 = 0;
pub(crate) const SAME_PALETTE: u8 = 1;
pub(crate) const PALETTE: u8 = 2;
pub(crate) const PICTURE: u8 = 3;
pub(crate) const WHOLE_PICTURE: u8 = 4;
const LOSSY: u8 = 5;
const PREVIEW: u8 = 6;

pub(crate) fn write_copies(target: &mut Vec<u8>, copies: &[Copy]) {
    write_number(target, copies.len() as u32);
    for Copy { rect, x, y } in copies {
        write_rect(target, *rect);
        write_number(target, *x);
        write_number(target, *y);
    }
}

pub(crate) fn write_rects(target: &mut Vec<u8>, rects: impl ExactSizeIterator<Item = (u8, Rect)>) {
    write_number(target, rects.len() as u32);
    for (class, rect) in rects {
        target.push(class);
        write_rect(target, rect);
    }
}

/// The body of a chunk with nothing but lossy pictures.
pub(crate) fn lossy_body(pictures: &[Lossy]) -> Vec<u8> {
    let class = |grade| match grade {
        Grade::Detail => LOSSY,
        Grade::Preview => PREVIEW,
    };
    let mut body = Vec::new();
    write_copies(&mut body, &[]);
    write_rects(&mut body, pictures.iter().map(|lossy| (class(lossy.grade), lossy.rect)));
    for lossy in pictures {
        body.push(lossy.fourth);
        write_length(&mut body, lossy.image.len());
    }
    for lossy in pictures {
        body.extend_from_slice(&lossy.image);
    }
    body
}

/// Writes the colours of a palette, which must have at least one.
pub(crate) fn write_palette(target: &mut Vec<u8>, colours: &[u32], pixel: usize) {
    target.push((colours.len() - 1) as u8);
    for byte in 0..pixel {
        let mut before = 0u8;
        for colour in colours {
            let value = colour.to_le_bytes()[byte];
            target.push(value.wrapping_sub(before));
            before = value;
        }
    }
}

/// The pixels of a palette's colours.
pub(crate) fn palette<const PIXEL: usize>(bytes: &[u8]) -> [[u8; PIXEL]; 256] {
    let count = bytes.len() / PIXEL;
    let mut table = [[0; PIXEL]; 256];
    for byte in 0..PIXEL {
        let mut value = 0u8;
        for (colour, step) in table.iter_mut().zip(&bytes[byte * count..(byte + 1) * count]) {
            value = value.wrapping_add(*step);
            colour[byte] = value;
        }
    }
    table
}

pub(crate) fn write_rect(target: &mut Vec<u8>, rect: Rect) {
    for value in [rect.x, rect.y, rect.width - 1, rect.height - 1] {
        write_number(target, value);
    }
}

pub(crate) fn write_length(target: &mut Vec<u8>, length: usize) {
    if length < 1 << 14 {
        write_number(target, length as u32);
    } else {
        target.extend_from_slice(&(length as u32 | 0x8000_0000).to_be_bytes());
    }
}

pub(crate) fn write_number(target: &mut Vec<u8>, value: u32) {
    debug_assert!(value < 1 << 14, "sides are at most {}", crate::MAX_SIDE);
    if value < 64 {
        target.push(value as u8);
    } else {
        target.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes());
    }
}

impl Body {
    /// Parses the body of a chunk for a surface of this size and format.
    pub(crate) fn parse(body: &[u8], size: Size, format: Format) -> Result<Self, Error> {
        let mut reader = Reader::new(body);
        let copies = copies(&mut reader, size)?;
        let listed = rects(&mut reader, size)?;
        let channels = Channels::of(format);
        let mut pieces = fills(&mut reader, listed, format, channels)?;
        for piece in &mut pieces {
            if let Fill::Palette { colours, numbers } = &mut piece.fill {
                let count = colours.len() / format.bytes_per_pixel();
                *numbers = numbers_of(&mut reader, piece.rect, count)?;
            }
        }
        for plane in 0..7 {
            for Piece { rect, fill } in &mut pieces {
                let Fill::Picture { planes, constant } = fill else { continue };
                if plane < channels.colour_planes() || (plane == FOURTH && constant.is_none()) {
                    planes[plane] = reader.take(rect.area() as usize)?;
                }
            }
        }
        for piece in &mut pieces {
            if let Fill::Lossy { image, .. } = &mut piece.fill {
                *image = reader.take(image.len())?;
            }
        }
        match body.len() - reader.at {
            0 => Ok(Self { copies, pieces }),
            bytes => Err(Error::ChunkRest { bytes }),
        }
    }
}

fn copies(reader: &mut Reader<'_>, size: Size) -> Result<Vec<Copy>, Error> {
    let count = reader.number()? as usize;
    if count > MAX_CHUNK_COPIES {
        return Err(Error::ChunkCopies { count });
    }
    let mut copies = Vec::with_capacity(count);
    for _ in 0..count {
        let copy = Copy { rect: reader.rect(size)?, x: reader.number()?, y: reader.number()? };
        inside(copy.source(), size)?;
        copies.push(copy);
    }
    Ok(copies)
}

fn rects(reader: &mut Reader<'_>, size: Size) -> Result<Vec<(u8, Rect)>, Error> {
    let count = reader.number()? as usize;
    if count > MAX_CHUNK_RECTS {
        return Err(Error::ChunkRects { count });
    }
    (0..count).map(|_| Ok((reader.byte()?, reader.rect(size)?))).collect()
}

/// Reads the colours; numbers, planes and images are left to be found.
fn fills(
    reader: &mut Reader<'_>,
    listed: Vec<(u8, Rect)>,
    format: Format,
    channels: Channels,
) -> Result<Vec<Piece>, Error> {
    let pixel = format.bytes_per_pixel();
    let mut palette = None;
    let mut images = 0;
    let mut pieces = Vec::with_capacity(listed.len());
    for (class, rect) in listed {
        let picture = |constant| Fill::Picture { planes: Default::default(), constant };
        let fill = match class {
            SOLID => Fill::Solid(reader.take(pixel)?.start),
            SAME_PALETTE | PALETTE => {
                if class == PALETTE {
                    let count = usize::from(reader.byte()?) + 1;
                    if count > MAX_COLOURS {
                        return Err(Error::ChunkField);
                    }
                    palette = Some(reader.take(count * pixel)?);
                }
                let colours = palette.clone().ok_or(Error::ChunkField)?;
                Fill::Palette { colours, numbers: 0 }
            }
            PICTURE if channels.has_fourth() => picture(Some(reader.byte()?)),
            PICTURE => picture(Some(0)),
            WHOLE_PICTURE if channels.has_fourth() => picture(None),
            LOSSY | PREVIEW if jpeg::order(format).is_some() => {
                let grade = if class == LOSSY { Grade::Detail } else { Grade::Preview };
                images += jpeg::effort(rect, grade);
                if images > MAX_CHUNK_IMAGES {
                    return Err(Error::ChunkImages { pixels: images });
                }
                let fourth = reader.byte()?;
                Fill::Lossy { image: 0..reader.length()?, grade, fourth }
            }
            _ => return Err(Error::ChunkField),
        };
        pieces.push(Piece { rect, fill });
    }
    Ok(pieces)
}

/// Where the numbers of a rectangle start, after a look at each.
fn numbers_of(reader: &mut Reader<'_>, rect: Rect, count: usize) -> Result<usize, Error> {
    let range = reader.take(rect.area() as usize)?;
    let most = reader.bytes[range.clone()].iter().copied().fold(0, u8::max);
    if usize::from(most) >= count {
        return Err(Error::ChunkNumber { number: most, count });
    }
    Ok(range.start)
}

/// The cells of a palette rectangle, in the order of their numbers.
pub(crate) fn cells(rect: Rect) -> impl Iterator<Item = Rect> {
    (rect.y..rect.bottom()).step_by(CELL as usize).flat_map(move |y| {
        (rect.x..rect.right())
            .step_by(CELL as usize)
            .map(move |x| Rect::between(x, y, (x + CELL).min(rect.right()), (y + CELL).min(rect.bottom())))
    })
}

fn inside(rect: Rect, size: Size) -> Result<Rect, Error> {
    if size.rect().contains(rect) { Ok(rect) } else { Err(Error::ChunkOutside { rect, size }) }
}

/// Reads the fields of a chunk.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// All that has not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.bytes[self.take(1)?.start])
    }

    /// The next `length` bytes.
    fn take(&mut self, length: usize) -> Result<Range<usize>, Error> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let range = self.at..end.ok_or(Error::ChunkTruncated)?;
        self.at = range.end;
        Ok(range)
    }

    pub(crate) fn number(&mut self) -> Result<u32, Error> {
        let first = self.byte()?;
        match first >> 6 {
            0 => Ok(u32::from(first)),
            1 => Ok(u32::from(first & 0x3f) << 8 | u32::from(self.byte()?)),
            _ => Err(Error::ChunkField),
        }
    }

    pub(crate) fn length(&mut self) -> Result<usize, Error> {
        if self.bytes.get(self.at).is_none_or(|first| first >> 6 != 2) {
            return Ok(self.number()? as usize);
        }
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.bytes[self.take(4)?]);
        Ok((u32::from_be_bytes(bytes) & 0x3fff_ffff) as usize)
    }

    pub(crate) fn rect(&mut self, size: Size) -> Result<Rect, Error> {
        let rect = Rect {
            x: self.number()?,
            y: self.number()?,
            width: self.number()? + 1,
            height: self.number()? + 1,
        };
        inside(rect, size)
    }
}
