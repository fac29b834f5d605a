//! Memory, buffers, pictures and regions.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use wayferry_wayland::blob;
use wayferry_wayland::wire::Arg;

use super::{Strict, Verdict, demand};

/// `wl_shm.format.xrgb8888`.
const XRGB: u32 = 1;

/// Where the pixels of a buffer are.
pub(crate) enum Buffer {
    Memory { pool: Rc<OwnedFd>, offset: i32, size: (i32, i32), stride: i32, format: u32 },
    Solid([u8; 4]),
}

/// Pixels as they are to be seen, in any format.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub(crate) size: (i32, i32),
    pub(crate) pixels: Vec<u8>,
}

impl Picture {
    pub(crate) fn name(&self) -> u64 {
        blob::hash(&self.pixels) as u64
    }

    /// A newer picture, of which only what is damaged has been looked at.
    pub(crate) fn over(&self, old: &Self, damage: &[[i32; 4]]) -> Self {
        if self.size != old.size {
            return self.clone();
        }
        let mut picture = old.clone();
        let (width, height) = self.size;
        for &[x, y, w, h] in damage {
            let (left, right) = (x.clamp(0, width), x.saturating_add(w).clamp(0, width));
            for row in y.clamp(0, height)..y.saturating_add(h).clamp(0, height) {
                let span = ((row * width + left) * 4) as usize..((row * width + right) * 4) as usize;
                if !span.is_empty() {
                    picture.pixels[span.clone()].copy_from_slice(&self.pixels[span]);
                }
            }
        }
        picture
    }
}

/// The size that a buffer has on its surface before any viewport.
pub(crate) fn size_on_surface((width, height): (i32, i32), scale: i32, transform: i32) -> (i32, i32) {
    let (width, height) = (width / scale, height / scale);
    if transform % 2 == 1 { (height, width) } else { (width, height) }
}

/// A region, looked at from 0 to 16 in both directions: programs here use no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Grid([u16; 16]);

impl Grid {
    pub(crate) fn name(&self) -> u64 {
        let bytes: Vec<u8> = self.0.iter().flat_map(|row| row.to_le_bytes()).collect();
        blob::hash(&bytes) as u64
    }
}

impl Buffer {
    /// What it shows now.
    pub(crate) fn read(&self) -> Result<Picture, String> {
        match self {
            Self::Solid(pixel) => Ok(Picture { size: (1, 1), pixels: pixel.to_vec() }),
            Self::Memory { pool, offset, size, stride, format } => {
                let mut pixels = vec![0; (stride * size.1) as usize];
                let read = rustix::io::pread(pool, &mut pixels, *offset as u64).map_err(|e| e.to_string())?;
                demand(read == pixels.len(), "the memory ends before the buffer")?;
                if *stride != size.0 * 4 {
                    let rows = pixels.chunks(*stride as usize);
                    pixels = rows.flat_map(|row| &row[..(size.0 * 4) as usize]).copied().collect();
                }
                if *format == XRGB {
                    pixels.chunks_exact_mut(4).for_each(|pixel| pixel[3] = 0xff);
                }
                Ok(Picture { size: *size, pixels })
            }
        }
    }
}

impl Strict {
    pub(super) fn on_memory(&mut self, id: u32, request: &str, args: &mut [Arg]) -> Verdict {
        match (request, args) {
            ("create_pool", [Arg::NewId(pool), fd, _]) => {
                if let Arg::Fd(fd) = std::mem::replace(fd, Arg::Int(0)) {
                    self.pools.insert(*pool, Rc::new(fd));
                }
            }
            (
                "create_buffer",
                &mut [
                    Arg::NewId(new),
                    Arg::Int(offset),
                    Arg::Int(width),
                    Arg::Int(height),
                    Arg::Int(stride),
                    Arg::Uint(format),
                ],
            ) => {
                demand(width > 0 && height > 0 && stride >= width * 4, "invalid_stride")?;
                demand(format <= XRGB, "invalid_format")?;
                let (pool, size) = (Rc::clone(&self.pools[&id]), (width, height));
                let buffer = Buffer::Memory { pool, offset, size, stride, format };
                self.buffers.insert(new, Rc::new(buffer));
            }
            ("create_u32_rgba_buffer", [Arg::NewId(new), colour @ ..]) => {
                let byte = |at: usize| match colour[at] {
                    Arg::Uint(value) => (value >> 24) as u8,
                    _ => 0,
                };
                self.buffers.insert(*new, Rc::new(Buffer::Solid([2, 1, 0, 3].map(byte))));
            }
            ("destroy", _) => {
                self.pools.remove(&id);
                self.buffers.remove(&id);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn on_region(&mut self, id: u32, request: &str, args: &[Arg]) -> Verdict {
        match (request, args) {
            ("add" | "subtract", &[Arg::Int(x), Arg::Int(y), Arg::Int(width), Arg::Int(height)]) => {
                let region = self.regions.get_mut(&id).ok_or("no region")?;
                let inside = |at: i32, from: i32, length: i32| at >= from && at < from.saturating_add(length);
                for (row, cells) in region.0.iter_mut().enumerate() {
                    for column in (0..16).filter(|column| inside(*column, x, width)) {
                        if inside(row as i32, y, height) {
                            let bit = 1 << column;
                            *cells = if request == "add" { *cells | bit } else { *cells & !bit };
                        }
                    }
                }
            }
            ("destroy", _) => drop(self.regions.remove(&id)),
            _ => {}
        }
        Ok(())
    }
}
