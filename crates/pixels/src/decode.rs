//! From chunks to content.
//!
//! Chunks come from the peer and are not trusted: everything is checked, and decompressed into memory
//! of bounded size, before the first pixel is painted. [`Decoder::open`] does that for one chunk, without
//! the content; [`Decoder::paint`] then takes all chunks of an update. Their order does not matter: first
//! come the copies, all from the content before the update, then the rectangles. This module does not know
//! which chunks belong together.
//!
//! The one invariant: an update that is refused has changed nothing.

use zstd_safe::DCtx;

use crate::chunk::{self, Body, Codec, Copy, Fill, Piece};
use crate::content::Content;
use crate::error::Error;
use crate::fidelity::Grade;
use crate::format::Format;
use crate::geometry::{Rect, Size};
use crate::jpeg;
use crate::picture::{Residuals, Samples, restore};
use crate::region::Region;

/// Applies updates. Keeps memory from call to call but no state: one serves any number of surfaces.
#[derive(Default)]
pub struct Decoder {
    zstd: Option<DCtx<'static>>,
    samples: Samples,
    moved: Vec<u8>,
    pictures: jpeg::Decompressor,
}

/// A chunk, decompressed and checked.
#[derive(Debug)]
pub struct Opened {
    size: Size,
    format: Format,
    body: Vec<u8>,
    copies: Vec<Copy>,
    pieces: Vec<Piece>,
    pictures: Vec<DecodedPicture>,
}

/// A lossy picture, read.
#[derive(Debug)]
struct DecodedPicture {
    rect: Rect,
    grade: Grade,
    pixels: Vec<u8>,
}

impl Opened {
    /// Memory that it takes, in bytes: at most about 2.2 MiB, and seldom more than four bytes per pixel.
    pub fn memory(&self) -> usize {
        let pictures: usize = self.pictures.iter().map(|shown| shown.pixels.capacity()).sum();
        pictures + self.body.capacity() + size_of_val(&self.copies[..]) + size_of_val(&self.pieces[..])
    }

    /// Whether it copies: it then builds on the update right before its own.
    pub fn copies(&self) -> bool {
        !self.copies.is_empty()
    }

    /// Where it paints.
    pub fn region(&self) -> Region {
        let copies = self.copies.iter().map(|copy| copy.rect);
        let rects: Vec<Rect> = copies.chain(self.pieces.iter().map(|piece| piece.rect)).collect();
        Region::around(&rects)
    }

    /// Pixels that are touched to paint it.
    pub fn pixels(&self) -> u64 {
        self.painted() + self.copied()
    }

    fn painted(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.rect.area()).sum()
    }

    fn copied(&self) -> u64 {
        self.copies.iter().map(|copy| copy.rect.area()).sum()
    }
}

impl Decoder {
    /// A decoder.
    pub fn new() -> Self {
        Self::default()
    }

    /// About how many bytes of memory [`Self::open`] touches, as far as that can be told before; any number of what is
    /// not a chunk.
    pub fn effort(size: Size, chunk: &[u8]) -> u64 {
        chunk::effort(chunk, size)
    }

    /// Decompresses and checks a chunk for a surface of this size and format. May run on any thread.
    ///
    /// # Errors
    /// What is wrong with the chunk.
    pub fn open(&mut self, size: Size, format: Format, chunk: &[u8]) -> Result<Opened, Error> {
        let (codec, length, start) = chunk::parse_head(chunk)?;
        let body = unpack(&mut self.zstd, codec, length, &chunk[start..])?;
        let Body { copies, pieces } = Body::parse(&body, size, format)?;
        let mut pictures = Vec::new();
        for Piece { rect, fill } in &pieces {
            let Fill::Lossy { image, grade, fourth } = fill else { continue };
            let pixels = self.pictures.pixels(&body[image.clone()], *rect, *grade, format, *fourth);
            let pixels = pixels.ok_or(Error::ChunkImage { rect: *rect })?;
            pictures.push(DecodedPicture { rect: *rect, grade: *grade, pixels });
        }
        Ok(Opened { size, format, body, copies, pieces, pictures })
    }

    /// Paints all chunks of one update into `content`, which is that of before the update, and says where.
    ///
    /// # Errors
    /// [`Error::ChunkShape`] or [`Error::UpdateArea`]; the content is then as before.
    pub fn paint(&mut self, content: &mut Content, chunks: &[Opened]) -> Result<Region, Error> {
        Self::check(content.size(), content.format(), chunks)?;
        let copies: Vec<Copy> = chunks.iter().flat_map(|chunk| chunk.copies.iter().copied()).collect();
        self.copy(content, &copies);
        for chunk in chunks {
            for piece in &chunk.pieces {
                self.piece(content, piece, &chunk.body);
            }
            for DecodedPicture { rect, grade, pixels } in &chunk.pictures {
                jpeg::paint(content, *rect, *grade, pixels);
            }
        }
        let pieces = chunks.iter().flat_map(|chunk| &chunk.pieces).map(|piece| piece.rect);
        let rects: Vec<Rect> = copies.iter().map(|copy| copy.rect).chain(pieces).collect();
        Ok(Region::around(&rects))
    }

    /// Whether [`Self::paint`] can paint these into content of this size and format.
    ///
    /// # Errors
    /// As there.
    pub fn check(size: Size, format: Format, chunks: &[Opened]) -> Result<(), Error> {
        if chunks.iter().any(|chunk| (chunk.size, chunk.format) != (size, format)) {
            return Err(Error::ChunkShape);
        }
        for pixels in [chunks.iter().map(Opened::painted).sum(), chunks.iter().map(Opened::copied).sum()] {
            if pixels > size.rect().area() {
                return Err(Error::UpdateArea { pixels, size });
            }
        }
        Ok(())
    }

    /// Memory that the opened chunks of one update may take, in bytes: about four times the content.
    pub fn most_memory(size: Size, format: Format) -> usize {
        4 * size.rect().area() as usize * format.bytes_per_pixel() + LEAST_MEMORY
    }

    /// Opens and paints all chunks of one update. Needs memory for four times the content at most, in
    /// practice for less than the changed part of it.
    ///
    /// # Errors
    /// What is wrong with a chunk, or with all together; the content is then as before.
    pub fn apply<C: AsRef<[u8]>>(
        &mut self,
        content: &mut Content,
        chunks: impl IntoIterator<Item = C>,
    ) -> Result<Region, Error> {
        let most = Self::most_memory(content.size(), content.format());
        let (mut opened, mut bytes) = (Vec::new(), 0);
        for chunk in chunks {
            let chunk = self.open(content.size(), content.format(), chunk.as_ref())?;
            bytes += chunk.memory();
            if bytes > most {
                return Err(Error::UpdateMemory { bytes, most });
            }
            opened.push(chunk);
        }
        self.paint(content, &opened)
    }

    /// Carries out copies as if all at once.
    fn copy(&mut self, content: &mut Content, copies: &[Copy]) {
        let mut sorted = copies.to_vec();
        sorted.sort_unstable_by_key(|copy| (copy.rect.y, copy.rect.x));
        let (up, mut down): (Vec<Copy>, Vec<Copy>) =
            sorted.into_iter().partition(|copy| copy.rect.y < copy.y);
        down.reverse();
        let ordered = [up, down].concat();
        if in_order(&ordered) {
            ordered.iter().for_each(|copy| move_rows(content, *copy));
            return;
        }
        self.moved.clear();
        for Copy { rect, x, y } in &ordered {
            for row in 0..rect.height {
                self.moved.extend_from_slice(content.row(y + row, *x, rect.width));
            }
        }
        let mut moved = &self.moved[..];
        for Copy { rect, .. } in ordered {
            let (own, rest) = moved.split_at(rect.area() as usize * content.format().bytes_per_pixel());
            content.write(rect, own);
            moved = rest;
        }
        self.moved = Vec::new();
    }

    fn piece(&mut self, content: &mut Content, piece: &Piece, body: &[u8]) {
        let Piece { rect, fill } = piece;
        let pixel = content.format().bytes_per_pixel();
        match fill {
            Fill::Solid(place) => {
                let colour = &body[*place..*place + pixel];
                for y in rect.y..rect.bottom() {
                    let row = content.row_mut(y, rect.x, rect.width);
                    row.chunks_exact_mut(pixel).for_each(|target| target.copy_from_slice(colour));
                }
            }
            Fill::Palette { colours, numbers } => {
                let (colours, numbers) = (&body[colours.clone()], &body[*numbers..]);
                match pixel {
                    2 => paint_numbers::<2>(content, *rect, colours, numbers),
                    _ => paint_numbers::<4>(content, *rect, colours, numbers),
                }
            }
            Fill::Picture { planes, constant } => {
                let planes = planes.clone().map(|range| &body[range]);
                let residuals = Residuals { planes, constant: *constant };
                restore(content, *rect, &mut self.samples, &residuals);
            }
            // Painted from what `open` has read.
            Fill::Lossy { .. } => {}
        }
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

/// The body of a chunk: exactly as long as its head says.
fn unpack(
    zstd: &mut Option<DCtx<'static>>,
    codec: Codec,
    expected: usize,
    payload: &[u8],
) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    let got = match codec {
        Codec::Raw => {
            body.extend_from_slice(payload);
            Some(payload.len())
        }
        Codec::Lz4 => {
            body.resize(expected, 0);
            lz4_flex::block::decompress_into(payload, &mut body).ok()
        }
        Codec::Zstd => {
            body.resize(expected, 0);
            zstd.get_or_insert_with(DCtx::create).decompress(&mut body[..], payload).ok()
        }
    };
    match got {
        Some(got) if got == expected => Ok(body),
        got => Err(Error::ChunkPayload { expected, got }),
    }
}

/// Whether copies may be carried out one after the other: none paints over the source of a later one.
fn in_order(copies: &[Copy]) -> bool {
    copies.len() <= MOST_COMPARED
        && copies.iter().enumerate().all(|(index, copy)| {
            copies[index + 1..].iter().all(|later| !later.source().intersects(copy.rect))
        })
}

/// Carries out one copy, whose source may overlap it.
fn move_rows(content: &mut Content, copy: Copy) {
    let Copy { rect, x, y } = copy;
    let mut row = |row: u32| content.move_row((x, y + row), (rect.x, rect.y + row), rect.width);
    if y >= rect.y {
        (0..rect.height).for_each(&mut row);
    } else {
        (0..rect.height).rev().for_each(&mut row);
    }
}

/// Paints numbers of a palette, cell by cell.
fn paint_numbers<const PIXEL: usize>(content: &mut Content, rect: Rect, palette: &[u8], numbers: &[u8]) {
    let table = chunk::palette::<PIXEL>(palette);
    let mut numbers = numbers;
    for cell in chunk::cells(rect) {
        for y in cell.y..cell.bottom() {
            let (row, rest) = numbers.split_at(cell.width as usize);
            let target = content.row_mut(y, cell.x, cell.width).as_chunks_mut::<PIXEL>().0;
            for (pixel, number) in target.iter_mut().zip(row) {
                *pixel = table[usize::from(*number)];
            }
            numbers = rest;
        }
    }
}

/// Copies up to which their order is found by comparing each with each.
const MOST_COMPARED: usize = 512;

/// Memory for the chunks of an update that is always allowed.
const LEAST_MEMORY: usize = 4 << 20;
