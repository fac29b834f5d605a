//! Pixels of an image come into memory: into a buffer of the driver's, all rectangles one behind the other, and from
//! there into the session's.
#![expect(unsafe_code, reason = "OpenGL has no safe form")]

use std::rc::Rc;

use glow::HasContext;
use wayferry_pixels::{Rect, Region};

use super::super::importer::Refused;
use super::super::rows::Rows;
use super::device::Device;
use super::image::Image;

/// Pixels that the GPU brings into a buffer of the driver's.
#[derive(Debug)]
pub(crate) struct Reading {
    device: Rc<Device>,
    buffer: glow::Buffer,
    fence: Option<glow::Fence>,
    length: i32,
    pieces: Vec<Piece>,
}

/// A rectangle of pixels, and where in the buffer those of each plane begin.
#[derive(Debug)]
struct Piece {
    rect: Rect,
    starts: Vec<usize>,
}

/// The pieces of a region, and the bytes that they take.
fn pieces(image: &Image, region: &Region) -> (Vec<Piece>, u64) {
    let mut length = 0;
    let mut piece = |rect: &Rect| {
        let rect = image.stored.whole(*rect, image.size);
        let mut start = |[_, _, width, height]: [i32; 4], bytes: u32| {
            // More than is there is refused.
            let start = length as usize;
            length += u64::from(width.cast_unsigned()) * u64::from(height.cast_unsigned()) * u64::from(bytes);
            start
        };
        let planes = image.planes.iter();
        let starts =
            planes.map(|(plane, samples)| start(image.place(rect, *samples), plane.pick.bytes)).collect();
        Piece { rect, starts }
    };
    let pieces = region.clip(image.size).rects().iter().map(&mut piece).collect();
    (pieces, length)
}

/// Begins to read a region; `None` if there is nothing in it.
pub(super) fn begin(image: &Image, region: &Region) -> Result<Option<Reading>, Refused> {
    let (pieces, length) = pieces(image, region);
    let Ok(length) = i32::try_from(length) else { return Err(Refused("it is too large".to_owned())) };
    if length == 0 {
        return Ok(None);
    }
    let gl = &image.device.gl;
    // SAFETY: the context is current; the buffer is as long as what is read into it.
    unsafe {
        let buffer = gl.create_buffer().map_err(Refused)?;
        let mut reading = Reading { device: Rc::clone(&image.device), buffer, fence: None, length, pieces };
        gl.bind_buffer(glow::PIXEL_PACK_BUFFER, Some(buffer));
        gl.buffer_data_size(glow::PIXEL_PACK_BUFFER, length, glow::STREAM_READ);
        for (number, (plane, samples)) in image.planes.iter().enumerate() {
            plane.bind();
            for piece in &reading.pieces {
                let [x, y, width, height] = image.place(piece.rect, *samples);
                // At most `length`.
                let to = glow::PixelPackData::BufferOffset(piece.starts[number] as u32);
                gl.read_pixels(x, y, width, height, plane.pick.order, plane.pick.kind, to);
            }
        }
        reading.fence = Some(gl.fence_sync(glow::SYNC_GPU_COMMANDS_COMPLETE, 0).map_err(Refused)?);
        gl.flush();
        match gl.get_error() {
            glow::NO_ERROR => Ok(Some(reading)),
            error => Err(Refused(format!("the driver says error {error:#x}"))),
        }
    }
}

/// Takes the pixels once they are there.
pub(super) fn end(image: &Image, reading: &Reading, rows: &mut Rows<'_>) -> Result<(), Refused> {
    reading.wait()?;
    let gl = &image.device.gl;
    // SAFETY: the context is current; what is mapped is as long as the buffer.
    unsafe {
        gl.bind_buffer(glow::PIXEL_PACK_BUFFER, Some(reading.buffer));
        let bytes = gl.map_buffer_range(glow::PIXEL_PACK_BUFFER, 0, reading.length, glow::MAP_READ_BIT);
        if bytes.is_null() {
            return Err(Refused("the driver does not give the pixels out".to_owned()));
        }
        let bytes = std::slice::from_raw_parts(bytes, reading.length as usize);
        let outcome = reading.pieces.iter().try_for_each(|piece| unpack(image, piece, bytes, rows));
        gl.unmap_buffer(glow::PIXEL_PACK_BUFFER);
        match (outcome, gl.get_error()) {
            (Ok(()), glow::NO_ERROR) => Ok(()),
            (Ok(()), error) => Err(Refused(format!("the driver says error {error:#x}"))),
            (Err(refused), _) => Err(refused),
        }
    }
}

/// Puts the rows of a rectangle where they belong.
fn unpack(image: &Image, piece: &Piece, bytes: &[u8], rows: &mut Rows<'_>) -> Result<(), Refused> {
    let Piece { rect, starts } = piece;
    let (mut fixed, mut pixels) = ([Vec::new(), Vec::new()], Vec::new());
    let converts = image.planes.first().is_some_and(|(plane, _)| plane.pick.converts());
    for line in 0..rect.height {
        let mut stored: [&[u8]; 2] = [&[]; 2];
        let planes = image.planes.iter().zip(starts).zip(&mut fixed).zip(&mut stored);
        for ((((plane, samples), start), room), stored) in planes {
            let row = rect.width.div_ceil(samples.step) as usize * plane.pick.bytes as usize;
            let from = start + (line / samples.step) as usize * row;
            *stored = plane.pick.fix(&bytes[from..from + row], room);
        }
        // Of a flipped buffer the lowest row was read first.
        let y = if image.flipped { rect.bottom() - 1 - line } else { rect.y + line };
        let pixels = if converts { stored[0] } else { image.stored.pixels(image.size, stored, &mut pixels) };
        rows.write(rect.x, y, pixels)?;
    }
    Ok(())
}

impl Reading {
    /// Waits until all has been read.
    fn wait(&self) -> Result<(), Refused> {
        let Some(fence) = self.fence else { return Ok(()) };
        // A driver that hangs is the session's to end.
        loop {
            // SAFETY: the context is current, and the fence is of it.
            match unsafe { self.device.gl.client_wait_sync(fence, glow::SYNC_FLUSH_COMMANDS_BIT, PATIENCE) } {
                glow::TIMEOUT_EXPIRED => {}
                glow::WAIT_FAILED => return Err(Refused("the GPU was lost".to_owned())),
                _ => return Ok(()),
            }
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        // SAFETY: the context is current, and they are of it.
        unsafe {
            self.fence.into_iter().for_each(|fence| self.device.gl.delete_sync(fence));
            self.device.gl.delete_buffer(self.buffer);
        }
    }
}

/// Nanoseconds of one wait.
const PATIENCE: i32 = 100_000_000;
