//! Shared-memory pools and buffers: pixels are read with pread(2) at the commit, never mapped.
//!
//! A file that is too short is an error of the client that sent it and cannot hurt the stage. Damage is trusted
//! as a real compositor trusts it: only damaged rectangles are read, so that wrong damage shows in a picture.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rustix::fs::{MemfdFlags, memfd_create};
use wayland_server::protocol::{wl_buffer, wl_shm, wl_shm_pool};
use wayland_server::{Client, DataInit, Dispatch, DisplayHandle, GlobalDispatch, New, Resource, WEnum};

use super::geometry::Rect;
use super::state::State;
use crate::image::{Image, combine, row_checksum};

/// The memory behind the buffers of one `wl_shm_pool`.
#[derive(Debug)]
pub(crate) struct Pool {
    file: OwnedFd,
    size: AtomicI64,
}

/// What a `wl_buffer` of shared memory is.
#[derive(Debug)]
pub(crate) struct Buffer {
    pool: Arc<Pool>,
    offset: u64,
    pub(crate) width: u32,
    pub(crate) height: u32,
    stride: u32,
    format: wl_shm::Format,
}

/// A picture and the checksums of its rows, so that a small change is cheap to sum.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub(crate) image: Image,
    rows: Vec<u64>,
}

impl Content {
    pub(crate) fn new(width: u32, height: u32) -> Content {
        Content { image: Image::new(width, height, 0), rows: vec![0; height as usize] }
    }

    pub(crate) fn checksum(&self) -> u64 {
        combine(self.image.width(), self.rows.iter().copied())
    }

    /// Reads the damaged part of the buffer; `None` when the file is shorter than it was said to be.
    pub(crate) fn read(&mut self, buffer: &Buffer, damage: &[Rect]) -> Option<()> {
        let whole = Rect::new(0, 0, buffer.width as i32, buffer.height as i32);
        let mut touched = vec![false; buffer.height as usize];
        let bytes_per_pixel = bytes_per_pixel(buffer.format);
        for rect in damage.iter().map(|rect| rect.intersect(&whole)).filter(|rect| !rect.is_empty()) {
            let mut scratch = vec![0u8; rect.width as usize * bytes_per_pixel];
            for y in rect.y..rect.y + rect.height {
                let offset = buffer.offset
                    + y as u64 * u64::from(buffer.stride)
                    + rect.x as u64 * bytes_per_pixel as u64;
                buffer.pool.read(offset, &mut scratch)?;
                let row = self.image.row_mut(y as u32);
                convert(buffer.format, &scratch, &mut row[rect.x as usize..(rect.x + rect.width) as usize]);
                touched[y as usize] = true;
            }
        }
        for (y, _) in touched.iter().enumerate().filter(|(_, touched)| **touched) {
            self.rows[y] = row_checksum(self.image.row(y as u32));
        }
        Some(())
    }
}

impl Buffer {
    /// A buffer of one ARGB8888 pixel.
    pub(crate) fn of_one_pixel(pixel: u32) -> std::io::Result<Buffer> {
        let file = memfd_create("pixel", MemfdFlags::CLOEXEC)?;
        rustix::io::pwrite(&file, &pixel.to_le_bytes(), 0)?;
        let pool = Arc::new(Pool { file, size: AtomicI64::new(4) });
        Ok(Buffer { pool, offset: 0, width: 1, height: 1, stride: 4, format: wl_shm::Format::Argb8888 })
    }
}

impl Pool {
    fn read(&self, mut offset: u64, mut into: &mut [u8]) -> Option<()> {
        while !into.is_empty() {
            match rustix::io::pread(&self.file, &mut *into, offset) {
                Ok(0) => return None,
                Ok(count) => {
                    into = &mut into[count..];
                    offset += count as u64;
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        Some(())
    }
}

/// A pixel format of shared memory that the stage can be told to offer beside the two that it must.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// 32 bits, red in the lowest byte.
    Abgr8888,
    /// 32 bits, red in the lowest byte, no alpha.
    Xbgr8888,
    /// 16 bits.
    Rgb565,
    /// 10 bits a channel, 2 of alpha.
    Argb2101010,
    /// 10 bits a channel.
    Xrgb2101010,
    /// 10 bits a channel, red lowest, 2 of alpha.
    Abgr2101010,
    /// 10 bits a channel, red lowest.
    Xbgr2101010,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 7] = [
        Format::Abgr8888,
        Format::Xbgr8888,
        Format::Rgb565,
        Format::Argb2101010,
        Format::Xrgb2101010,
        Format::Abgr2101010,
        Format::Xbgr2101010,
    ];

    fn to_wire(self) -> wl_shm::Format {
        match self {
            Format::Abgr8888 => wl_shm::Format::Abgr8888,
            Format::Xbgr8888 => wl_shm::Format::Xbgr8888,
            Format::Rgb565 => wl_shm::Format::Rgb565,
            Format::Argb2101010 => wl_shm::Format::Argb2101010,
            Format::Xrgb2101010 => wl_shm::Format::Xrgb2101010,
            Format::Abgr2101010 => wl_shm::Format::Abgr2101010,
            Format::Xbgr2101010 => wl_shm::Format::Xbgr2101010,
        }
    }
}

impl GlobalDispatch<wl_shm::WlShm, ()> for State {
    fn bind(
        state: &mut State,
        _: &DisplayHandle,
        _: &Client,
        resource: New<wl_shm::WlShm>,
        _: &(),
        init: &mut DataInit<'_, State>,
    ) {
        let shm = init.init(resource, ());
        shm.format(wl_shm::Format::Argb8888);
        shm.format(wl_shm::Format::Xrgb8888);
        for format in &state.config.formats {
            shm.format(format.to_wire());
        }
    }
}

impl Dispatch<wl_shm::WlShm, ()> for State {
    fn request(
        _: &mut State,
        _: &Client,
        shm: &wl_shm::WlShm,
        request: wl_shm::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        if let wl_shm::Request::CreatePool { id, fd, size } = request {
            let pool = Arc::new(Pool { file: fd, size: AtomicI64::new(i64::from(size)) });
            init.init(id, pool);
            if size <= 0 {
                shm.post_error(wl_shm::Error::InvalidStride, format!("pool size {size} is not positive"));
            }
        }
    }
}

impl Dispatch<wl_shm_pool::WlShmPool, Arc<Pool>> for State {
    fn request(
        state: &mut State,
        _: &Client,
        resource: &wl_shm_pool::WlShmPool,
        request: wl_shm_pool::Request,
        pool: &Arc<Pool>,
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        match request {
            wl_shm_pool::Request::CreateBuffer { id, offset, width, height, stride, format } => {
                let size = pool.size.load(Ordering::Relaxed);
                let checked =
                    check_buffer(&state.config.formats, size, [offset, width, height, stride], format);
                let (format, error) = match checked {
                    Ok(format) => (format, None),
                    Err(error) => (wl_shm::Format::Argb8888, Some(error)),
                };
                let data = Buffer {
                    pool: pool.clone(),
                    offset: offset.max(0) as u64,
                    width: width.max(0) as u32,
                    height: height.max(0) as u32,
                    stride: stride.max(0) as u32,
                    format,
                };
                init.init(id, data);
                if let Some((code, message)) = error {
                    resource.post_error(code, message);
                }
            }
            wl_shm_pool::Request::Resize { size } => {
                if i64::from(size) < pool.size.load(Ordering::Relaxed) {
                    resource.post_error(wl_shm::Error::InvalidFd, format!("pool cannot shrink to {size}"));
                } else {
                    pool.size.store(i64::from(size), Ordering::Relaxed);
                }
            }
            _ => {}
        }
    }
}

impl Dispatch<wl_buffer::WlBuffer, Buffer> for State {
    fn request(
        _: &mut State,
        _: &Client,
        _: &wl_buffer::WlBuffer,
        _: wl_buffer::Request,
        _: &Buffer,
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
    }
}

fn check_buffer(
    extra: &[Format],
    pool_size: i64,
    [offset, width, height, stride]: [i32; 4],
    format: WEnum<wl_shm::Format>,
) -> Result<wl_shm::Format, (wl_shm::Error, String)> {
    let basic = [wl_shm::Format::Argb8888, wl_shm::Format::Xrgb8888];
    let format = match format {
        WEnum::Value(format)
            if basic.contains(&format) || extra.iter().any(|extra| extra.to_wire() == format) =>
        {
            format
        }
        other => return Err((wl_shm::Error::InvalidFormat, format!("format {other:?} was not offered"))),
    };
    let row = i64::from(width) * bytes_per_pixel(format) as i64;
    let end = i64::from(offset) + i64::from(stride) * i64::from(height);
    if offset < 0 || width <= 0 || height <= 0 || i64::from(stride) < row || end > pool_size {
        let message = format!(
            "buffer of {width} × {height}, stride {stride} at offset {offset} does not fit a pool of {pool_size} bytes"
        );
        return Err((wl_shm::Error::InvalidStride, message));
    }
    Ok(format)
}

fn bytes_per_pixel(format: wl_shm::Format) -> usize {
    if format == wl_shm::Format::Rgb565 { 2 } else { 4 }
}

fn convert(format: wl_shm::Format, from: &[u8], to: &mut [u32]) {
    if format == wl_shm::Format::Rgb565 {
        for (pixel, bytes) in to.iter_mut().zip(from.chunks_exact(2)) {
            let value = u32::from(u16::from_le_bytes([bytes[0], bytes[1]]));
            let (red, green, blue) = (value >> 11, value >> 5 & 63, value & 31);
            *pixel = 0xff00_0000
                | (red << 3 | red >> 2) << 16
                | (green << 2 | green >> 4) << 8
                | (blue << 3 | blue >> 2);
        }
        return;
    }
    let words = from.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
    let swap = |pixel: u32| pixel & 0xff00_ff00 | (pixel & 255) << 16 | pixel >> 16 & 255;
    let ten = |pixel: u32| {
        let alpha = (pixel >> 30) * 85;
        alpha << 24 | (pixel >> 22 & 255) << 16 | (pixel >> 12 & 255) << 8 | pixel >> 2 & 255
    };
    let one: fn(u32) -> u32 = match format {
        wl_shm::Format::Argb8888 => |pixel| pixel,
        wl_shm::Format::Abgr8888 => swap,
        wl_shm::Format::Xbgr8888 => {
            |pixel| 0xff00_0000 | pixel & 0xff00 | (pixel & 255) << 16 | pixel >> 16 & 255
        }
        wl_shm::Format::Argb2101010 => ten,
        wl_shm::Format::Xrgb2101010 => {
            |pixel| 0xff00_0000 | (pixel >> 22 & 255) << 16 | (pixel >> 12 & 255) << 8 | pixel >> 2 & 255
        }
        wl_shm::Format::Abgr2101010 => |pixel| {
            ((pixel >> 30) * 85) << 24
                | (pixel >> 2 & 255) << 16
                | (pixel >> 12 & 255) << 8
                | pixel >> 22 & 255
        },
        wl_shm::Format::Xbgr2101010 => {
            |pixel| 0xff00_0000 | (pixel >> 2 & 255) << 16 | (pixel >> 12 & 255) << 8 | pixel >> 22 & 255
        }
        _ => |pixel| pixel | 0xff00_0000,
    };
    match format {
        // The two common formats stay tight loops.
        wl_shm::Format::Argb8888 => to.iter_mut().zip(words).for_each(|(pixel, word)| *pixel = word),
        wl_shm::Format::Xrgb8888 => {
            to.iter_mut().zip(words).for_each(|(pixel, word)| *pixel = word | 0xff00_0000)
        }
        _ => to.iter_mut().zip(words).for_each(|(pixel, word)| *pixel = one(word)),
    }
}

pub(crate) fn buffer_of(resource: &wl_buffer::WlBuffer) -> Option<&Buffer> {
    resource.data::<Buffer>()
}
