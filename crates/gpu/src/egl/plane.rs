//! What a GPU imports as one picture: an EGL image, and a framebuffer to read it from.
#![expect(unsafe_code, reason = "OpenGL has no safe form")]

use std::os::fd::AsRawFd;
use std::rc::Rc;

use glow::HasContext;
use khronos_egl as egl;

use super::super::dmabuf::Plane as Memory;
use super::super::format::{Fourcc, Modifier};
use super::super::importer::Refused;
use super::device::Device;
use super::pick::Pick;

/// See the module.
#[derive(Debug)]
pub(super) struct Plane {
    attached: Attached,
    pub(super) pick: Pick,
}

/// What it takes of the driver.
#[derive(Debug)]
struct Attached {
    device: Rc<Device>,
    image: egl::Image,
    texture: Option<glow::Texture>,
    framebuffer: Option<glow::Framebuffer>,
}

/// What is said of it at its import.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'a> {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) fourcc: Fourcc,
    pub(super) modifier: Modifier,
    pub(super) memory: &'a [Memory],
}

impl Plane {
    /// Imports it.
    pub(super) fn new(device: &Rc<Device>, said: Said<'_>) -> Result<Self, Refused> {
        let attached = Attached::new(device, said)?;
        let pick = Pick::of(&device.gl, said.fourcc, device.has_bgra);
        let pick = pick.ok_or_else(|| Refused("its format is not read".to_owned()))?;
        Ok(Self { attached, pick })
    }

    /// The framebuffer that is bound shows what is in the buffer now.
    pub(super) fn bind(&self) {
        self.attached.bind();
    }
}

impl Attached {
    fn new(device: &Rc<Device>, said: Said<'_>) -> Result<Self, Refused> {
        let attributes = said.attributes(device.has_modifiers)?;
        // SAFETY: null stands for no context and no buffer of the client's (EGL_EXT_image_dma_buf_import).
        let (context, client) = unsafe {
            (egl::Context::from_ptr(std::ptr::null_mut()), egl::ClientBuffer::from_ptr(std::ptr::null_mut()))
        };
        let image = device.api.create_image(device.display, context, LINUX_DMA_BUF, client, &attributes);
        let image = image.map_err(|error| Refused(format!("the driver does not import it: {error}")))?;
        let mut this = Self { device: Rc::clone(device), image, texture: None, framebuffer: None };
        let gl = &device.gl;
        let failed = |what: String| Refused(format!("the driver has no room: {what}"));
        // SAFETY: the context is current.
        unsafe {
            this.texture = Some(gl.create_texture().map_err(failed)?);
            this.framebuffer = Some(gl.create_framebuffer().map_err(failed)?);
            this.bind();
            let (attachment, kind) = (glow::COLOR_ATTACHMENT0, glow::TEXTURE_2D);
            gl.framebuffer_texture_2d(glow::FRAMEBUFFER, attachment, kind, this.texture, 0);
            let (status, error) = (gl.check_framebuffer_status(glow::FRAMEBUFFER), gl.get_error());
            if status == glow::FRAMEBUFFER_COMPLETE && error == glow::NO_ERROR {
                return Ok(this);
            }
            Err(Refused(format!("the driver cannot read it (status {status:#x}, error {error:#x})")))
        }
    }

    fn bind(&self) {
        // SAFETY: the context is current.
        unsafe {
            self.device.gl.bind_texture(glow::TEXTURE_2D, self.texture);
            self.device.target(self.image);
            self.device.gl.bind_framebuffer(glow::FRAMEBUFFER, self.framebuffer);
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let gl = &self.device.gl;
        // SAFETY: the context is current, and they are of it.
        unsafe {
            self.framebuffer.into_iter().for_each(|framebuffer| gl.delete_framebuffer(framebuffer));
            self.texture.into_iter().for_each(|texture| gl.delete_texture(texture));
        }
        let _ = self.device.api.destroy_image(self.device.display, self.image);
    }
}

impl Said<'_> {
    /// EGL_EXT_image_dma_buf_import, …_modifiers.
    fn attributes(self, has_modifiers: bool) -> Result<Vec<egl::Attrib>, Refused> {
        let pair = |name: egl::Attrib, value: u32| [name, value as egl::Attrib];
        let mut attributes = Vec::new();
        attributes.extend(pair(egl::WIDTH as egl::Attrib, self.width));
        attributes.extend(pair(egl::HEIGHT as egl::Attrib, self.height));
        attributes.extend(pair(LINUX_DRM_FOURCC, self.fourcc.0));
        let tells = has_modifiers && self.modifier != Modifier::INVALID;
        if !tells && !matches!(self.modifier, Modifier::INVALID | Modifier::LINEAR) {
            return Err(Refused("the driver takes no modifiers".to_owned()));
        }
        let (high, low) = self.modifier.halves();
        for (plane, names) in self.memory.iter().zip(PLANES) {
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
