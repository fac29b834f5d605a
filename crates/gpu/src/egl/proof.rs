//! What a driver promises, tried once before a program relies on it: a picture that it draws is handed over and read.
//!
//! Only the driver itself makes the buffer, as its other users' drivers do (EGL_MESA_image_dma_buf_export): with the
//! modifier of its choice. A driver that cannot export is taken at its word.
#![expect(unsafe_code, reason = "OpenGL has no safe form")]

use std::ffi::c_void;
use std::os::fd::{FromRawFd, OwnedFd};
use std::rc::Rc;

use glow::HasContext;
use khronos_egl as egl;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use wayferry_pixels::{Format, Region, Size};

use super::super::dmabuf::{Described, Dmabuf, Plane};
use super::super::format::{Fourcc, Modifier};
use super::super::importer::Refused;
use super::super::map::Map;
use super::super::rows::Rows;
use super::device::{Device, address};
use super::image::Image;
use super::read::read;

/// Draws two colours, and looks whether they are read.
///
/// # Errors
/// They are not, and programs are better off without this GPU.
pub(super) fn prove(device: &Rc<Device>) -> Result<(), Refused> {
    let Some(dmabuf) = draw(device)? else { return Ok(()) };
    let size = dmabuf.described().size;
    let image = Image::new(device, &dmabuf)?;
    let length = size.rect().area() as usize * dmabuf.format().bytes_per_pixel();
    let failed = |errno: rustix::io::Errno| Refused(format!("no memory: {errno}"));
    let memory = memfd_create("wayferry-proof", MemfdFlags::CLOEXEC).map_err(failed)?;
    ftruncate(&memory, length as u64).map_err(failed)?;
    let mut map = Map::writable(&memory, length).map_err(failed)?;
    let mut rows = Rows::new(&mut map, size, dmabuf.format()).ok_or_else(|| Refused("no room".to_owned()))?;
    read(&image, &Region::full(size), &mut rows)?;
    let mut pixels = vec![0; length];
    let is_whole = map.copy_out(0, &mut pixels).is_some();
    let half = pixels.len() / 2;
    let is_right = |pixels: &[u8], [red, green, blue, alpha]: [u8; 4]| {
        let colour = match dmabuf.format() {
            Format::Argb8888 | Format::Xrgb8888 => [blue, green, red, alpha],
            _ => [red, green, blue, alpha],
        };
        pixels.as_chunks::<4>().0.iter().all(|pixel| *pixel == colour)
    };
    if is_whole && is_right(&pixels[..half], UPPER) && is_right(&pixels[half..], LOWER) {
        return Ok(());
    }
    Err(Refused("what it draws is not what is read of it".to_owned()))
}

/// A buffer of the driver's, its upper half in one colour and its lower in another; `None` if it exports none like that.
fn draw(device: &Rc<Device>) -> Result<Option<Dmabuf>, Refused> {
    type Query = extern "system" fn(*mut c_void, *mut c_void, *mut u32, *mut i32, *mut u64) -> u32;
    type Export = extern "system" fn(*mut c_void, *mut c_void, *mut i32, *mut i32, *mut i32) -> u32;
    let functions = (
        address::<Query>(&device.api, "eglExportDMABUFImageQueryMESA"),
        address::<Export>(&device.api, "eglExportDMABUFImageMESA"),
    );
    let (Some(query), Some(export)) = functions else { return Ok(None) };
    let gl = &device.gl;
    // SAFETY: the context is current, and what is asked for is written to places that live.
    unsafe {
        let texture = gl.create_texture().map_err(Refused)?;
        gl.bind_texture(glow::TEXTURE_2D, Some(texture));
        gl.tex_storage_2d(glow::TEXTURE_2D, 1, glow::RGBA8, SIDE, SIDE);
        let framebuffer = gl.create_framebuffer().map_err(Refused)?;
        gl.bind_framebuffer(glow::FRAMEBUFFER, Some(framebuffer));
        let (attachment, kind) = (glow::COLOR_ATTACHMENT0, glow::TEXTURE_2D);
        gl.framebuffer_texture_2d(glow::FRAMEBUFFER, attachment, kind, Some(texture), 0);
        gl.enable(glow::SCISSOR_TEST);
        // The first row of a buffer is that of its texture.
        for (y, [red, green, blue, alpha]) in [(0, UPPER), (SIDE / 2, LOWER)] {
            let [red, green, blue, alpha] =
                [red, green, blue, alpha].map(|channel| f32::from(channel) / 255.0);
            gl.scissor(0, y, SIDE, SIDE / 2);
            gl.clear_color(red, green, blue, alpha);
            gl.clear(glow::COLOR_BUFFER_BIT);
        }
        gl.disable(glow::SCISSOR_TEST);
        gl.finish();
        let client = egl::ClientBuffer::from_ptr(texture.0.get() as usize as *mut c_void);
        let attributes = [egl::ATTRIB_NONE];
        let image =
            device.api.create_image(device.display, device.context, GL_TEXTURE_2D, client, &attributes);
        gl.delete_framebuffer(framebuffer);
        let Ok(image) = image else { return Ok(None) };
        let (display, raw) = (device.display.as_ptr(), image.as_ptr());
        let (mut fourcc, mut planes, mut modifier) = (0, 0, 0);
        let (mut fd, mut stride, mut offset) = (-1, 0, 0);
        // More planes than one would take more places.
        let is_exported = query(display, raw, &raw mut fourcc, &raw mut planes, &raw mut modifier) != 0
            && planes == 1
            && export(display, raw, &raw mut fd, &raw mut stride, &raw mut offset) != 0
            && fd >= 0;
        let _ = device.api.destroy_image(device.display, image);
        gl.delete_texture(texture);
        if !is_exported {
            return Ok(None);
        }
        let fd = OwnedFd::from_raw_fd(fd);
        let size = Size::new(SIDE.cast_unsigned(), SIDE.cast_unsigned())
            .map_err(|error| Refused(error.to_string()))?;
        let described =
            Described { size, fourcc: Fourcc(fourcc), modifier: Modifier(modifier), flipped: false };
        let plane = Plane { fd, offset: offset.cast_unsigned(), stride: stride.cast_unsigned() };
        Ok(Dmabuf::unchecked(described, plane))
    }
}

/// Pixels of a side: some tiles.
const SIDE: i32 = 256;
/// Red, green, blue, alpha.
const UPPER: [u8; 4] = [0x20, 0x90, 0xf0, 0xff];
const LOWER: [u8; 4] = [0xd0, 0x40, 0x10, 0xff];

const GL_TEXTURE_2D: egl::Enum = 0x30B1;
