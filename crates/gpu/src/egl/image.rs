//! A buffer that a GPU has imported: an EGL image, and a framebuffer to read it from.
#![expect(unsafe_code, reason = "OpenGL has no safe form")]

use std::os::fd::AsRawFd;
use std::rc::Rc;

use glow::HasContext;
use khronos_egl as egl;
use wayferry_pixels::{Format, Size};

use super::super::dmabuf::Dmabuf;
use super::super::format::Modifier;
use super::super::importer::Refused;
use super::device::Device;

/// See the module.
#[derive(Debug)]
pub(crate) struct Image {
    pub(super) device: Rc<Device>,
    image: egl::Image,
    pub(super) texture: glow::Texture,
    pub(super) framebuffer: glow::Framebuffer,
    pub(super) size: Size,
    pub(super) format: Format,
    pub(super) flipped: bool,
}

impl Image {
    /// Imports a buffer.
    pub(super) fn new(device: &Rc<Device>, dmabuf: &Dmabuf) -> Result<Self, Refused> {
        let attributes = attributes(dmabuf, device.has_modifiers)?;
        // SAFETY: null stands for no context and no buffer of the client's (EGL_EXT_image_dma_buf_import).
        let (context, client) = unsafe {
            (egl::Context::from_ptr(std::ptr::null_mut()), egl::ClientBuffer::from_ptr(std::ptr::null_mut()))
        };
        let image = device.api.create_image(device.display, context, LINUX_DMA_BUF, client, &attributes);
        let image = image.map_err(|error| Refused(format!("the driver does not import it: {error}")))?;
        match Self::attach(device, image, dmabuf) {
            Ok(image) => Ok(image),
            Err(refused) => {
                let _ = device.api.destroy_image(device.display, image);
                Err(refused)
            }
        }
    }

    fn attach(device: &Rc<Device>, image: egl::Image, dmabuf: &Dmabuf) -> Result<Self, Refused> {
        let gl = &device.gl;
        let failed = |what: String| Refused(format!("the driver has no room: {what}"));
        // SAFETY: the context is current.
        unsafe {
            let texture = gl.create_texture().map_err(failed)?;
            let framebuffer = gl.create_framebuffer().map_err(failed)?;
            gl.bind_texture(glow::TEXTURE_2D, Some(texture));
            device.target(image);
            gl.bind_framebuffer(glow::FRAMEBUFFER, Some(framebuffer));
            let (attachment, kind) = (glow::COLOR_ATTACHMENT0, glow::TEXTURE_2D);
            gl.framebuffer_texture_2d(glow::FRAMEBUFFER, attachment, kind, Some(texture), 0);
            let (status, error) = (gl.check_framebuffer_status(glow::FRAMEBUFFER), gl.get_error());
            let described = dmabuf.described();
            let (device, size, flipped) = (Rc::clone(device), described.size, described.flipped);
            let this = Self { device, image, texture, framebuffer, size, format: dmabuf.format(), flipped };
            if status == glow::FRAMEBUFFER_COMPLETE && error == glow::NO_ERROR {
                return Ok(this);
            }
            this.delete();
            std::mem::forget(this);
            Err(Refused(format!("the driver cannot read it (status {status:#x}, error {error:#x})")))
        }
    }

    fn delete(&self) {
        // SAFETY: the context is current, and they are of it.
        unsafe {
            self.device.gl.delete_framebuffer(self.framebuffer);
            self.device.gl.delete_texture(self.texture);
        }
    }

    /// The texture shows what is in the buffer now.
    pub(super) fn renew(&self) {
        // SAFETY: the context is current.
        unsafe {
            self.device.gl.bind_texture(glow::TEXTURE_2D, Some(self.texture));
            self.device.target(self.image);
            self.device.gl.bind_framebuffer(glow::FRAMEBUFFER, Some(self.framebuffer));
        }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        self.delete();
        let _ = self.device.api.destroy_image(self.device.display, self.image);
    }
}

/// What is said of a buffer at its import (EGL_EXT_image_dma_buf_import, …_modifiers).
fn attributes(dmabuf: &Dmabuf, has_modifiers: bool) -> Result<Vec<egl::Attrib>, Refused> {
    let described = dmabuf.described();
    let pair = |name: egl::Attrib, value: u32| [name, value as egl::Attrib];
    let size = described.size;
    let mut attributes = Vec::new();
    attributes.extend(pair(egl::WIDTH as egl::Attrib, size.width()));
    attributes.extend(pair(egl::HEIGHT as egl::Attrib, size.height()));
    attributes.extend(pair(LINUX_DRM_FOURCC, described.fourcc.0));
    let tells = has_modifiers && described.modifier != Modifier::INVALID;
    if !tells && !matches!(described.modifier, Modifier::INVALID | Modifier::LINEAR) {
        return Err(Refused("the driver takes no modifiers".to_owned()));
    }
    let (high, low) = described.modifier.halves();
    for (plane, names) in dmabuf.planes().iter().zip(PLANES) {
        attributes.extend([names.fd, plane.fd.as_raw_fd() as egl::Attrib]);
        attributes.extend(pair(names.offset, plane.offset));
        attributes.extend(pair(names.stride, plane.stride));
        if tells {
            attributes.extend(pair(names.low, low));
            attributes.extend(pair(names.low + 1, high));
        }
    }
    attributes.push(egl::ATTRIB_NONE);
    Ok(attributes)
}

/// The names of a plane's attributes; that of the modifier's upper half follows that of its lower.
struct Names {
    fd: egl::Attrib,
    offset: egl::Attrib,
    stride: egl::Attrib,
    low: egl::Attrib,
}

const PLANES: [Names; 4] = [
    Names { fd: 0x3272, offset: 0x3273, stride: 0x3274, low: 0x3443 },
    Names { fd: 0x3275, offset: 0x3276, stride: 0x3277, low: 0x3445 },
    Names { fd: 0x3278, offset: 0x3279, stride: 0x327A, low: 0x3447 },
    Names { fd: 0x3440, offset: 0x3441, stride: 0x3442, low: 0x3449 },
];

const LINUX_DMA_BUF: egl::Enum = 0x3270;
const LINUX_DRM_FOURCC: egl::Attrib = 0x3271;
