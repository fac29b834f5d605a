//! What a driver promises, tried before programs rely on it: pictures that it draws are handed over and read.
//!
//! Only the driver itself makes the buffers, as its other users' drivers do (EGL_MESA_image_dma_buf_export): with the
//! modifier of its choice. A driver that cannot export is taken at its word for formats of eight bits a channel, which
//! every program needs, and for no others.
#![expect(unsafe_code, reason = "OpenGL has no safe form")]

use std::ffi::c_void;
use std::os::fd::{FromRawFd, OwnedFd};
use std::rc::Rc;

use glow::HasContext;
use khronos_egl as egl;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use wayferry_pixels::{Format, Region, Size};

use super::super::convert;
use super::super::dmabuf::{Described, Dmabuf, Plane};
use super::super::format::{Fourcc, Modifier};
use super::super::importer::Refused;
use super::super::map::Map;
use super::super::rows::Rows;
use super::device::{Device, address};
use super::image::Image;
use super::read::{begin, end};

/// The formats that can be read. Opaque ones first, as most windows are.
///
/// # Errors
/// Pictures of eight bits a channel are not read as they were drawn, and programs are better off without this GPU.
pub(super) fn prove(device: &Rc<Device>) -> Result<Vec<Fourcc>, Refused> {
    let mut proven = EIGHTS.map(Fourcc::of).to_vec();
    if let Some(picture) = Picture::draw(device, glow::RGBA8, SIDE)? {
        let mut outcome = Ok(());
        proven.retain(|fourcc| {
            outcome = picture.is_read_as(device, *fourcc);
            outcome.is_ok()
        });
        if proven.is_empty() {
            outcome?;
        }
    }
    let others =
        [(glow::RGB10_A2, TENS.map(Fourcc::of).to_vec()), (glow::RGBA16F, vec![Fourcc::XB4H, Fourcc::AB4H])];
    for (internal, formats) in others {
        let Ok(Some(picture)) = Picture::draw(device, internal, SIDE) else { continue };
        proven.extend(formats.into_iter().filter(|fourcc| picture.is_read_as(device, *fourcc).is_ok()));
    }
    let film = (Picture::draw(device, glow::R8, SIDE), Picture::draw(device, glow::RG8, SIDE / 2));
    if let (Ok(Some(luma)), Ok(Some(chroma))) = film
        && is_film(device, &luma, chroma).is_ok()
    {
        proven.push(Fourcc::NV12);
    }
    Ok(proven)
}

/// What the driver has drawn: its upper half in one colour and its lower in another, and exported.
struct Picture {
    said: Described,
    plane: Plane,
}

impl Picture {
    /// One whose sides are that long; `None` if the driver exports none like that.
    fn draw(device: &Rc<Device>, internal: u32, side: i32) -> Result<Option<Self>, Refused> {
        let gl = &device.gl;
        // SAFETY: the context is current.
        unsafe {
            let texture = gl.create_texture().map_err(Refused)?;
            gl.bind_texture(glow::TEXTURE_2D, Some(texture));
            gl.tex_storage_2d(glow::TEXTURE_2D, 1, internal, side, side);
            let framebuffer = gl.create_framebuffer().map_err(Refused)?;
            gl.bind_framebuffer(glow::FRAMEBUFFER, Some(framebuffer));
            let (attachment, kind) = (glow::COLOR_ATTACHMENT0, glow::TEXTURE_2D);
            gl.framebuffer_texture_2d(glow::FRAMEBUFFER, attachment, kind, Some(texture), 0);
            let is_drawn = gl.check_framebuffer_status(glow::FRAMEBUFFER) == glow::FRAMEBUFFER_COMPLETE;
            gl.enable(glow::SCISSOR_TEST);
            // The first row of a buffer is that of its texture.
            for (y, colour) in [(0, UPPER), (side / 2, LOWER)] {
                let [red, green, blue, alpha] = colour.map(|channel| f32::from(channel) / 255.0);
                gl.scissor(0, y, side, side / 2);
                gl.clear_color(red, green, blue, alpha);
                gl.clear(glow::COLOR_BUFFER_BIT);
            }
            gl.disable(glow::SCISSOR_TEST);
            gl.finish();
            let exported = if is_drawn { Self::export(device, texture, side) } else { Ok(None) };
            gl.delete_framebuffer(framebuffer);
            gl.delete_texture(texture);
            // What it cannot draw it does not hand over; nothing of that is left to be said later.
            while gl.get_error() != glow::NO_ERROR {}
            exported
        }
    }

    fn export(device: &Device, texture: glow::Texture, side: i32) -> Result<Option<Self>, Refused> {
        type Query = extern "system" fn(*mut c_void, *mut c_void, *mut u32, *mut i32, *mut u64) -> u32;
        type Export = extern "system" fn(*mut c_void, *mut c_void, *mut i32, *mut i32, *mut i32) -> u32;
        let functions = (
            address::<Query>(&device.api, "eglExportDMABUFImageQueryMESA"),
            address::<Export>(&device.api, "eglExportDMABUFImageMESA"),
        );
        let (Some(query), Some(export)) = functions else { return Ok(None) };
        // SAFETY: a texture stands for a client's buffer (EGL_KHR_gl_image).
        let client = unsafe { egl::ClientBuffer::from_ptr(texture.0.get() as usize as *mut c_void) };
        let attributes = [egl::ATTRIB_NONE];
        let image =
            device.api.create_image(device.display, device.context, GL_TEXTURE_2D, client, &attributes);
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
        if !is_exported {
            return Ok(None);
        }
        // SAFETY: it is the caller's from now on.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let side = side.cast_unsigned();
        let size = Size::new(side, side).map_err(|error| Refused(error.to_string()))?;
        let (fourcc, modifier) = (Fourcc(fourcc), Modifier(modifier));
        let said = Described { size, fourcc, modifier, flipped: false };
        let plane = Plane { fd, offset: offset.cast_unsigned(), stride: stride.cast_unsigned() };
        Ok(Some(Self { said, plane }))
    }

    /// Whether a program that says that this has a format of the same family is understood.
    fn is_read_as(&self, device: &Rc<Device>, fourcc: Fourcc) -> Result<(), Refused> {
        let fd = self.plane.fd.try_clone().map_err(|error| Refused(error.to_string()))?;
        let planes = vec![Plane { fd, ..self.plane }];
        let Some(dmabuf) = Dmabuf::unchecked(Described { fourcc, ..self.said }, planes) else {
            return Ok(());
        };
        let Some(exported) = self.said.fourcc.stored() else {
            return Err(Refused("it is exported as something else".to_owned()));
        };
        is_read(device, &dmabuf, [UPPER, LOWER].map(|colour| bytes(exported.format(), colour)))
    }
}

/// Whether two planes are read as a film.
fn is_film(device: &Rc<Device>, luma: &Picture, chroma: Picture) -> Result<(), Refused> {
    let are_planes = (luma.said.fourcc, chroma.said.fourcc) == (Fourcc::R8, Fourcc::GR88);
    if !are_planes || luma.said.modifier != chroma.said.modifier {
        return Err(Refused("it is exported as something else".to_owned()));
    }
    let fd = luma.plane.fd.try_clone().map_err(|error| Refused(error.to_string()))?;
    let planes = vec![Plane { fd, ..luma.plane }, chroma.plane];
    let film = Dmabuf::unchecked(Described { fourcc: Fourcc::NV12, ..luma.said }, planes);
    let film = film.ok_or_else(|| Refused("it is no film".to_owned()))?;
    let colours = [UPPER, LOWER].map(|[first, second, ..]| {
        let mut pixel = Vec::new();
        convert::nv12(&[first], &[first, second], luma.said.size.height(), &mut pixel);
        pixel
    });
    is_read(device, &film, colours)
}

/// Whether the halves of a buffer are read as these pixels.
fn is_read(device: &Rc<Device>, dmabuf: &Dmabuf, [upper, lower]: [Vec<u8>; 2]) -> Result<(), Refused> {
    let size = dmabuf.described().size;
    let image = Image::new(device, dmabuf)?;
    let length = size.rect().area() as usize * dmabuf.format().bytes_per_pixel();
    let failed = |errno: rustix::io::Errno| Refused(format!("no memory: {errno}"));
    let memory = memfd_create("wayferry-proof", MemfdFlags::CLOEXEC).map_err(failed)?;
    ftruncate(&memory, length as u64).map_err(failed)?;
    let mut map = Map::writable(&memory, length).map_err(failed)?;
    let mut rows = Rows::new(&mut map, size, dmabuf.format()).ok_or_else(|| Refused("no room".to_owned()))?;
    if let Some(reading) = begin(&image, &Region::full(size))? {
        end(&image, &reading, &mut rows)?;
    }
    let mut pixels = vec![0; length];
    let is_whole = map.copy_out(0, &mut pixels).is_some();
    let (first, second) = pixels.split_at(length / 2);
    let is = |pixels: &[u8], colour: &[u8]| pixels.chunks(colour.len()).all(|pixel| pixel == colour);
    if is_whole && is(first, &upper) && is(second, &lower) {
        return Ok(());
    }
    Err(Refused("what it draws is not what is read of it".to_owned()))
}

/// A colour (red, green, blue, alpha) as a pixel.
fn bytes(format: Format, [red, green, blue, alpha]: [u8; 4]) -> Vec<u8> {
    let ten = |channel: u8| (u32::from(channel) * 1023 + 127) / 255;
    let tens = |top: u8, middle: u8, low: u8| {
        let word = u32::from(alpha >> 6) << 30 | ten(top) << 20 | ten(middle) << 10 | ten(low);
        word.to_le_bytes().to_vec()
    };
    match format {
        Format::Argb8888 | Format::Xrgb8888 => vec![blue, green, red, alpha],
        Format::Argb2101010 | Format::Xrgb2101010 => tens(red, green, blue),
        Format::Abgr2101010 | Format::Xbgr2101010 => tens(blue, green, red),
        _ => vec![red, green, blue, alpha],
    }
}

const EIGHTS: [Format; 4] = [Format::Xrgb8888, Format::Argb8888, Format::Xbgr8888, Format::Abgr8888];
const TENS: [Format; 4] =
    [Format::Xrgb2101010, Format::Argb2101010, Format::Xbgr2101010, Format::Abgr2101010];

/// Pixels of a side: some tiles.
const SIDE: i32 = 256;
/// Red, green, blue, alpha: what is opaque is so in formats without alpha, too.
const UPPER: [u8; 4] = [0x20, 0x90, 0xf0, 0xff];
const LOWER: [u8; 4] = [0xd0, 0x40, 0x10, 0xff];

const GL_TEXTURE_2D: egl::Enum = 0x30B1;
