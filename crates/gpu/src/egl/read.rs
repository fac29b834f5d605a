//! Pixels of an image come into memory: into a buffer of the driver's, all rectangles one behind the other, and from
//! there into the session's.
#![expect(unsafe_code, reason = "OpenGL has no safe form")]

use glow::HasContext;
use wayferry_pixels::{Format, Rect, Region};

use super::super::importer::Refused;
use super::super::rows::Rows;
use super::image::Image;

/// Reads a region.
pub(super) fn read(image: &Image, region: &Region, rows: &mut Rows<'_>) -> Result<(), Refused> {
    let region = region.clip(image.size);
    let length = region.rects().iter().map(|rect| rect.area() * BYTES).sum::<u64>();
    let Ok(length) = i32::try_from(length) else { return Err(Refused("it is too large".to_owned())) };
    if length == 0 {
        return Ok(());
    }
    let gl = &image.device.gl;
    let bgra = image.device.has_bgra && is_bgra(image.format);
    // SAFETY: the context is current; the buffer is as long as what is read into it.
    unsafe {
        image.renew();
        let buffer = gl.create_buffer().map_err(Refused)?;
        gl.bind_buffer(glow::PIXEL_PACK_BUFFER, Some(buffer));
        gl.buffer_data_size(glow::PIXEL_PACK_BUFFER, length, glow::STREAM_READ);
        let mut start = 0;
        for rect in region.rects() {
            let [x, y, width, height] = place(image, rect);
            let order = if bgra { glow::BGRA } else { glow::RGBA };
            let to = glow::PixelPackData::BufferOffset(start);
            gl.read_pixels(x, y, width, height, order, glow::UNSIGNED_BYTE, to);
            // At most `length`.
            start += (rect.area() * BYTES) as u32;
        }
        let outcome = wait(gl).and_then(|()| {
            let bytes = gl.map_buffer_range(glow::PIXEL_PACK_BUFFER, 0, length, glow::MAP_READ_BIT);
            if bytes.is_null() {
                return Err(Refused("the driver does not give the pixels out".to_owned()));
            }
            let bytes = std::slice::from_raw_parts(bytes, length as usize);
            let outcome = unpack(image, region.rects(), bytes, bgra, rows);
            gl.unmap_buffer(glow::PIXEL_PACK_BUFFER);
            outcome
        });
        gl.delete_buffer(buffer);
        match (outcome, gl.get_error()) {
            (Ok(()), glow::NO_ERROR) => Ok(()),
            (Ok(()), error) => Err(Refused(format!("the driver says error {error:#x}"))),
            (Err(refused), _) => Err(refused),
        }
    }
}

/// Waits until all has been read.
///
/// # Safety
/// The context is current.
unsafe fn wait(gl: &glow::Context) -> Result<(), Refused> {
    // SAFETY: as above.
    unsafe {
        let fence = gl.fence_sync(glow::SYNC_GPU_COMMANDS_COMPLETE, 0).map_err(Refused)?;
        // A driver that hangs is the session's to end.
        let outcome = loop {
            match gl.client_wait_sync(fence, glow::SYNC_FLUSH_COMMANDS_BIT, PATIENCE) {
                glow::TIMEOUT_EXPIRED => {}
                glow::WAIT_FAILED => break Err(Refused("the GPU was lost".to_owned())),
                _ => break Ok(()),
            }
        };
        gl.delete_sync(fence);
        outcome
    }
}

/// Puts rectangles that lie one behind the other where they belong.
fn unpack(
    image: &Image,
    rects: &[Rect],
    mut bytes: &[u8],
    bgra: bool,
    rows: &mut Rows<'_>,
) -> Result<(), Refused> {
    let swaps = is_bgra(image.format) != bgra;
    let mut swapped = Vec::new();
    for rect in rects {
        let stride = rect.width as usize * BYTES as usize;
        for line in 0..rect.height {
            let (read, rest) = bytes.split_at(stride);
            bytes = rest;
            // Of a flipped buffer the lowest row was read first.
            let y = if image.flipped { rect.bottom() - 1 - line } else { rect.y + line };
            if swaps {
                swapped.clear();
                swapped.extend_from_slice(read);
                swapped.as_chunks_mut::<4>().0.iter_mut().for_each(|pixel| pixel.swap(0, 2));
            }
            rows.write(rect.x, y, if swaps { &swapped } else { read })?;
        }
    }
    Ok(())
}

/// Where a rectangle lies in the buffer: x, y, width, height.
fn place(image: &Image, rect: &Rect) -> [i32; 4] {
    let y = if image.flipped { image.size.height() - rect.bottom() } else { rect.y };
    // Sides are at most 2¹⁴.
    [rect.x, y, rect.width, rect.height].map(u32::cast_signed)
}

/// Whether pixels lie as blue, green, red, alpha.
fn is_bgra(format: Format) -> bool {
    matches!(format, Format::Argb8888 | Format::Xrgb8888)
}

/// Bytes of a pixel.
const BYTES: u64 = 4;
/// Nanoseconds of one wait.
const PATIENCE: i32 = 100_000_000;
