//! Frames that a GPU draws into buffers of libgbm's, as programs without a window system do.
#![expect(unsafe_code, reason = "OpenGL has no safe form")]

use std::ffi::{CStr, c_char, c_void};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use glow::HasContext;
use khronos_egl as egl;
use libloading::{Library, Symbol};

type Api = egl::DynamicInstance<egl::EGL1_5>;

/// A context on the GPU of the first render node.
pub(crate) struct Gl {
    api: Api,
    display: egl::Display,
    gl: glow::Context,
    gbm: Gbm,
}

/// A buffer that is drawn to.
pub(crate) struct Canvas {
    framebuffer: glow::Framebuffer,
    pub(crate) bo: Bo,
}

/// libgbm, by which programs get buffers that others can be given.
struct Gbm {
    library: Library,
    device: *mut c_void,
    _node: File,
}

/// A buffer of libgbm's.
pub(crate) struct Bo {
    pub(crate) fd: OwnedFd,
    pub(crate) modifier: u64,
    pub(crate) offset: u32,
    pub(crate) stride: u32,
}

impl Gbm {
    fn new() -> Self {
        let node = File::options().read(true).write(true).open(NODE).expect("a render node");
        // SAFETY: libgbm is what its name says, and so are its functions.
        unsafe {
            let library = Library::new("libgbm.so.1").expect("libgbm");
            let create: Symbol<'_, unsafe extern "C" fn(i32) -> *mut c_void> =
                library.get(b"gbm_create_device\0").expect("a function");
            let device = create(node.as_raw_fd());
            assert!(!device.is_null(), "a device");
            Self { library, device, _node: node }
        }
    }

    /// `None` if there are none of that format.
    fn buffer(&self, width: u32, height: u32, fourcc: u32) -> Option<Bo> {
        type Of<T> = unsafe extern "C" fn(*mut c_void) -> T;
        type Plane<T> = unsafe extern "C" fn(*mut c_void, i32) -> T;
        type Create = unsafe extern "C" fn(*mut c_void, u32, u32, u32, u32) -> *mut c_void;
        let library = &self.library;
        // SAFETY: these are the functions' types.
        unsafe {
            let create: Symbol<'_, Create> = library.get(b"gbm_bo_create\0").expect("a function");
            let fd: Symbol<'_, Of<i32>> = library.get(b"gbm_bo_get_fd\0").expect("a function");
            let stride: Symbol<'_, Of<u32>> = library.get(b"gbm_bo_get_stride\0").expect("a function");
            let modifier: Symbol<'_, Of<u64>> = library.get(b"gbm_bo_get_modifier\0").expect("a function");
            let offset: Symbol<'_, Plane<u32>> = library.get(b"gbm_bo_get_offset\0").expect("a function");
            let bo = create(self.device, width, height, fourcc, RENDERING);
            if bo.is_null() {
                return None;
            }
            let fd = OwnedFd::from_raw_fd(fd(bo));
            Some(Bo { fd, modifier: modifier(bo), offset: offset(bo, 0), stride: stride(bo) })
        }
    }
}

impl Gl {
    pub(crate) fn new() -> Self {
        type Devices = extern "system" fn(i32, *mut *mut c_void, *mut i32) -> u32;
        type Text = extern "system" fn(*mut c_void, i32) -> *const c_char;
        // SAFETY: libEGL is what its name says.
        let api = unsafe { Api::load_required() }.expect("libEGL");
        let (devices, text): (Devices, Text) =
            (address(&api, "eglQueryDevicesEXT"), address(&api, "eglQueryDeviceStringEXT"));
        let (mut found, mut count) = ([std::ptr::null_mut(); 16], 0);
        assert_ne!(devices(16, found.as_mut_ptr(), &raw mut count), 0);
        let has_node = |device: &&*mut c_void| {
            let words = text(**device, egl::EXTENSIONS);
            // SAFETY: it is null or a string of the driver's.
            !words.is_null()
                && unsafe { CStr::from_ptr(words) }
                    .to_string_lossy()
                    .contains("EGL_EXT_device_drm_render_node")
        };
        let device = *found[..count as usize].iter().find(has_node).expect("a GPU");
        // SAFETY: it is a device of this library's; null stands for no configuration.
        let (display, none) = unsafe {
            let display = api.get_platform_display(0x313F, device, &[egl::ATTRIB_NONE]).expect("a display");
            (display, egl::Config::from_ptr(std::ptr::null_mut()))
        };
        api.initialize(display).expect("EGL");
        api.bind_api(egl::OPENGL_ES_API).expect("OpenGL ES");
        let version = [egl::CONTEXT_MAJOR_VERSION, 3, egl::NONE];
        let context = api.create_context(display, none, None, &version).expect("a context");
        api.make_current(display, None, None, Some(context)).expect("a current context");
        let look =
            |name: &str| api.get_proc_address(name).map_or(std::ptr::null(), |found| found as *const c_void);
        // SAFETY: the context is current.
        let gl = unsafe { glow::Context::from_loader_function(look) };
        Self { api, display, gl, gbm: Gbm::new() }
    }

    /// What draws.
    pub(crate) fn renderer(&self) -> String {
        // SAFETY: the context is current.
        unsafe { self.gl.get_parameter_string(glow::RENDERER) }
    }

    /// A buffer of that size, with alpha.
    pub(crate) fn canvas(&self, width: u32, height: u32) -> Canvas {
        self.canvas_of(width, height, FOURCC).expect("a buffer")
    }

    /// The same of another format; `None` if the driver has none like that.
    pub(crate) fn canvas_of(&self, width: u32, height: u32, fourcc: u32) -> Option<Canvas> {
        let bo = self.gbm.buffer(width, height, fourcc)?;
        let pair = |name: usize, value: u32| [name, value as usize];
        let mut attributes = Vec::new();
        attributes.extend(pair(egl::WIDTH as usize, width));
        attributes.extend(pair(egl::HEIGHT as usize, height));
        attributes.extend(pair(0x3271, fourcc));
        attributes.extend(pair(0x3272, bo.fd.as_raw_fd().cast_unsigned()));
        attributes.extend(pair(0x3273, bo.offset));
        attributes.extend(pair(0x3274, bo.stride));
        attributes.push(egl::ATTRIB_NONE);
        let gl = &self.gl;
        // SAFETY: the context is current; null stands for none.
        unsafe {
            let (none, client) = (
                egl::Context::from_ptr(std::ptr::null_mut()),
                egl::ClientBuffer::from_ptr(std::ptr::null_mut()),
            );
            let image = self.api.create_image(self.display, none, 0x3270, client, &attributes);
            let texture = gl.create_texture().expect("a texture");
            gl.bind_texture(glow::TEXTURE_2D, Some(texture));
            let target: extern "system" fn(u32, *mut c_void) =
                address(&self.api, "glEGLImageTargetTexture2DOES");
            target(glow::TEXTURE_2D, image.expect("an image").as_ptr());
            let framebuffer = gl.create_framebuffer().expect("a framebuffer");
            gl.bind_framebuffer(glow::FRAMEBUFFER, Some(framebuffer));
            let (attachment, kind) = (glow::COLOR_ATTACHMENT0, glow::TEXTURE_2D);
            gl.framebuffer_texture_2d(glow::FRAMEBUFFER, attachment, kind, Some(texture), 0);
            assert_eq!(gl.check_framebuffer_status(glow::FRAMEBUFFER), glow::FRAMEBUFFER_COMPLETE);
            Some(Canvas { framebuffer, bo })
        }
    }

    /// Fills a rectangle (x, y, width, height) with red, green and blue, 0 to 255.
    pub(crate) fn fill(&self, canvas: &Canvas, [x, y, width, height]: [u32; 4], colour: [u8; 3]) {
        let [red, green, blue] = colour.map(|channel| f32::from(channel) / 255.0);
        let gl = &self.gl;
        // SAFETY: the context is current.
        unsafe {
            gl.bind_framebuffer(glow::FRAMEBUFFER, Some(canvas.framebuffer));
            gl.enable(glow::SCISSOR_TEST);
            gl.scissor(x as i32, y as i32, width as i32, height as i32);
            gl.clear_color(red, green, blue, 1.0);
            gl.clear(glow::COLOR_BUFFER_BIT);
        }
    }

    /// All that was drawn is on its way to the GPU.
    pub(crate) fn flush(&self) {
        // SAFETY: the context is current.
        unsafe { self.gl.flush() };
    }

    /// All that was drawn is there.
    pub(crate) fn finish(&self) {
        // SAFETY: the context is current.
        unsafe { self.gl.finish() };
    }
}

/// A function of the driver's.
fn address<T: Copy>(api: &Api, name: &str) -> T {
    const { assert!(size_of::<T>() == size_of::<extern "system" fn()>()) };
    let found = api.get_proc_address(name).unwrap_or_else(|| panic!("no {name}"));
    // SAFETY: both are pointers to functions.
    unsafe { std::mem::transmute_copy(&found) }
}

const NODE: &str = "/dev/dri/renderD128";
/// With alpha, eight bits a channel.
pub(crate) const FOURCC: u32 = u32::from_le_bytes(*b"AR24");
/// `GBM_BO_USE_RENDERING`.
const RENDERING: u32 = 4;
