//! A GPU: its EGL display, a context without a surface, and what can be imported there.
#![expect(unsafe_code, reason = "drivers are called by pointers that they give")]

use std::ffi::{CStr, c_char, c_void};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use glow::HasContext;
use khronos_egl as egl;

use super::super::format::{Fourcc, Modifier};
use super::super::wire::Means;

/// libEGL.
pub(super) type Api = egl::DynamicInstance<egl::EGL1_5>;

/// See the module.
pub(super) struct Device {
    pub(super) api: Api,
    pub(super) display: egl::Display,
    pub(super) context: egl::Context,
    pub(super) gl: glow::Context,
    /// `glEGLImageTargetTexture2DOES`.
    target: extern "system" fn(u32, *mut c_void),
    /// Modifiers can be told at import.
    pub(super) has_modifiers: bool,
    /// Pixels can be read as blue, green, red, alpha.
    pub(super) has_bgra: bool,
    means: Means,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("has_modifiers", &self.has_modifiers).finish_non_exhaustive()
    }
}

impl Device {
    /// The GPU of a render node.
    pub(super) fn open(node: &Path) -> Result<Self, String> {
        let number = std::fs::metadata(node).map_err(|error| error.to_string())?.rdev();
        // SAFETY: libEGL is what its name says.
        let api = unsafe { Api::load_required() }.map_err(|error| format!("libEGL: {error}"))?;
        let display = find(&api, node)?;
        let failed = |what: &'static str| move |error: egl::Error| format!("{what}: {error}");
        api.initialize(display).map_err(failed("eglInitialize"))?;
        let extensions =
            api.query_string(Some(display), egl::EXTENSIONS).map_err(failed("eglQueryString"))?;
        let extensions = extensions.to_string_lossy().into_owned();
        let has = |name: &str| extensions.split(' ').any(|extension| extension == name);
        if !has("EGL_EXT_image_dma_buf_import") || !has("EGL_KHR_surfaceless_context") {
            return Err("its driver cannot import buffers".to_owned());
        }
        api.bind_api(egl::OPENGL_ES_API).map_err(failed("eglBindAPI"))?;
        // SAFETY: a null configuration is none (EGL_KHR_no_config_context, which EGL 1.5 drivers of Mesa and NVIDIA
        // have).
        let none = unsafe { egl::Config::from_ptr(std::ptr::null_mut()) };
        let version = [egl::CONTEXT_MAJOR_VERSION, 3, egl::NONE];
        let context = api.create_context(display, none, None, &version).map_err(failed("OpenGL ES 3"))?;
        api.make_current(display, None, None, Some(context)).map_err(failed("eglMakeCurrent"))?;
        let look =
            |name: &str| api.get_proc_address(name).map_or(std::ptr::null(), |found| found as *const c_void);
        // SAFETY: the context is current, and these are its functions.
        let gl = unsafe { glow::Context::from_loader_function(look) };
        // SAFETY: the context is current.
        let renderer = unsafe { gl.get_parameter_string(glow::RENDERER) };
        if SOFTWARE.iter().any(|name| renderer.starts_with(name)) {
            return Err(format!("it is drawn in software ({renderer})"));
        }
        // SAFETY: as above.
        let lacks_fences = unsafe { gl.get_parameter_string(glow::VENDOR) } == NO_FENCES;
        let target = address(&api, "glEGLImageTargetTexture2DOES").ok_or("it has no GL_OES_EGL_image")?;
        let has_modifiers = has("EGL_EXT_image_dma_buf_import_modifiers");
        let has_bgra = gl.supported_extensions().contains("GL_EXT_read_format_bgra");
        // SAFETY: as above. Rows of a plane may have any length.
        unsafe { gl.pixel_store_i32(glow::PACK_ALIGNMENT, 1) };
        let name = format!("egl: {renderer}");
        let means = Means { name, device: Some(number), lacks_fences, pairs: Vec::new() };
        Ok(Self { api, display, context, gl, target, has_modifiers, has_bgra, means })
    }

    /// What it can do, with these formats.
    pub(super) fn means(&self, formats: &[Fourcc]) -> Means {
        Means { pairs: self.pairs(formats), ..self.means.clone() }
    }

    /// The texture that is bound shows an image from now on.
    pub(super) fn target(&self, image: egl::Image) {
        (self.target)(glow::TEXTURE_2D, image.as_ptr());
    }

    /// What can be imported: for each format the modifiers that the driver lists, and none at all.
    fn pairs(&self, formats: &[Fourcc]) -> Vec<(Fourcc, Modifier)> {
        let mut pairs = Vec::new();
        for &fourcc in formats {
            let listed = match fourcc {
                _ if !self.has_modifiers => Vec::new(),
                Fourcc::NV12 => {
                    let chroma = self.modifiers(Fourcc::GR88);
                    self.modifiers(Fourcc::R8)
                        .into_iter()
                        .filter(|modifier| chroma.contains(modifier))
                        .collect()
                }
                _ => self.modifiers(fourcc),
            };
            // A driver that lists none imports all the same (seen with virgl); compositors offer linear ones then, too.
            let listed = if listed.is_empty() { vec![Modifier::LINEAR] } else { listed };
            pairs.extend(listed.into_iter().map(|modifier| (fourcc, modifier)));
            pairs.push((fourcc, Modifier::INVALID));
        }
        pairs
    }

    /// Modifiers of a format whose buffers can be attached to a framebuffer.
    fn modifiers(&self, fourcc: Fourcc) -> Vec<Modifier> {
        type Query = extern "system" fn(*mut c_void, i32, i32, *mut u64, *mut u32, *mut i32) -> u32;
        let Some(query) = address::<Query>(&self.api, "eglQueryDmaBufModifiersEXT") else {
            return Vec::new();
        };
        let (mut modifiers, mut external, mut count) = ([0; MAX_MODIFIERS], [0; MAX_MODIFIERS], 0);
        let fourcc = fourcc.0.cast_signed();
        let most = MAX_MODIFIERS as i32;
        let display = self.display.as_ptr();
        if query(display, fourcc, most, modifiers.as_mut_ptr(), external.as_mut_ptr(), &raw mut count) == 0 {
            return Vec::new();
        }
        let count = usize::try_from(count).unwrap_or(0).min(MAX_MODIFIERS);
        let listed = modifiers.iter().zip(external).take(count);
        listed.filter(|(_, external)| *external == 0).map(|(modifier, _)| Modifier(*modifier)).collect()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // The process ends with it.
        let _ = self.api.make_current(self.display, None, None, None);
        let _ = self.api.destroy_context(self.display, self.context);
        let _ = self.api.terminate(self.display);
    }
}

/// The EGL display of a node (EGL_EXT_device_enumeration, EGL_EXT_device_drm, EGL_EXT_platform_device).
fn find(api: &Api, node: &Path) -> Result<egl::Display, String> {
    type Devices = extern "system" fn(i32, *mut *mut c_void, *mut i32) -> u32;
    type Text = extern "system" fn(*mut c_void, i32) -> *const c_char;
    let devices: Devices = address(api, "eglQueryDevicesEXT").ok_or("EGL lists no devices")?;
    let text: Text = address(api, "eglQueryDeviceStringEXT").ok_or("EGL names no devices")?;
    let (mut found, mut count) = ([std::ptr::null_mut(); MAX_DEVICES], 0);
    if devices(MAX_DEVICES as i32, found.as_mut_ptr(), &raw mut count) == 0 {
        return Err("EGL lists no devices".to_owned());
    }
    let count = usize::try_from(count).unwrap_or(0).min(MAX_DEVICES);
    let says = |device, name| {
        let words = text(device, name);
        // SAFETY: it is null or a string of the driver's, which stays.
        (!words.is_null()).then(|| unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned())
    };
    let is_it = |device: &*mut c_void| {
        let extensions = says(*device, egl::EXTENSIONS).unwrap_or_default();
        let has = |name: &str| extensions.split(' ').any(|extension| extension == name);
        let render =
            has("EGL_EXT_device_drm_render_node").then(|| says(*device, DRM_RENDER_NODE_FILE)).flatten();
        let card = has("EGL_EXT_device_drm").then(|| says(*device, DRM_DEVICE_FILE)).flatten();
        [render, card].into_iter().flatten().any(|name| Path::new(&name) == node)
    };
    let device = found[..count].iter().copied().find(is_it).ok_or("EGL has no driver for it")?;
    // SAFETY: it is a device of this library's.
    let display = unsafe { api.get_platform_display(PLATFORM_DEVICE, device, &[egl::ATTRIB_NONE]) };
    display.map_err(|error| format!("eglGetPlatformDisplay: {error}"))
}

/// A function of the driver's by its name; `T` is the type that its specification gives it.
pub(super) fn address<T: Copy>(api: &Api, name: &str) -> Option<T> {
    const { assert!(size_of::<T>() == size_of::<extern "system" fn()>()) };
    // SAFETY: both are pointers to functions.
    api.get_proc_address(name).map(|found| unsafe { std::mem::transmute_copy(&found) })
}

/// With these begin the names of renderers that draw in software: programs do that better by themselves. An emulated
/// GPU tells in brackets what it is drawn with.
const SOFTWARE: [&str; 3] = ["llvmpipe", "softpipe", "swrast"];

/// The vendor whose driver leaves it to programs to say when a buffer has been drawn.
const NO_FENCES: &str = "NVIDIA Corporation";

const MAX_DEVICES: usize = 32;
const MAX_MODIFIERS: usize = 256;

const PLATFORM_DEVICE: egl::Enum = 0x313F;
const DRM_DEVICE_FILE: i32 = 0x3233;
const DRM_RENDER_NODE_FILE: i32 = 0x3377;
