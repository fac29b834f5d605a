//! A Wayland client whose buffers are dmabufs.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wayland_client::backend::WaylandError;
use wayland_client::globals::{GlobalListContents, registry_queue_init};
use wayland_client::protocol::wl_buffer::{self, WlBuffer};
use wayland_client::protocol::wl_compositor::WlCompositor;
use wayland_client::protocol::wl_registry::{self, WlRegistry};
use wayland_client::protocol::wl_surface::WlSurface;
use wayland_client::{Connection, Dispatch, EventQueue, QueueHandle, delegate_noop};
use wayland_protocols::wp::linux_dmabuf::zv1::client::{
    zwp_linux_buffer_params_v1::{self, ZwpLinuxBufferParamsV1},
    zwp_linux_dmabuf_v1::{self, ZwpLinuxDmabufV1},
};
use wayland_protocols::wp::linux_drm_syncobj::v1::client::{
    wp_linux_drm_syncobj_manager_v1::WpLinuxDrmSyncobjManagerV1,
    wp_linux_drm_syncobj_surface_v1::WpLinuxDrmSyncobjSurfaceV1,
    wp_linux_drm_syncobj_timeline_v1::WpLinuxDrmSyncobjTimelineV1,
};
use wayland_protocols::xdg::shell::client::{
    xdg_surface::{self, XdgSurface},
    xdg_toplevel::XdgToplevel,
    xdg_wm_base::{self, XdgWmBase},
};

use super::memory::{Exporter, Memory};

/// What a client has heard.
#[derive(Default)]
pub(crate) struct Heard {
    configured: bool,
    /// Releases by buffer.
    pub(crate) released: Vec<usize>,
    pub(crate) failed: usize,
    /// Formats of GPU buffers that are offered.
    pub(crate) formats: BTreeSet<u32>,
}

/// A window of a size that does not change.
pub(crate) struct Client {
    queue: EventQueue<Heard>,
    pub(crate) heard: Heard,
    dmabuf: Option<ZwpLinuxDmabufV1>,
    timelines: Option<WpLinuxDrmSyncobjManagerV1>,
    surface: WlSurface,
}

/// What a client has to tell when its window has been drawn, and to hear when it has been read.
pub(crate) struct Points {
    surface: WpLinuxDrmSyncobjSurfaceV1,
    drawn: WpLinuxDrmSyncobjTimelineV1,
    read: WpLinuxDrmSyncobjTimelineV1,
}

/// How the pixels of a buffer lie.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) offset: u32,
    pub(crate) stride: u32,
}

/// A plane that another has drawn, and what is to be said of it.
pub(crate) struct Plane<'a> {
    pub(crate) fd: BorrowedFd<'a>,
    pub(crate) fourcc: u32,
    pub(crate) modifier: u64,
    pub(crate) layout: Layout,
}

/// A buffer.
pub(crate) struct Buffer {
    memory: Memory,
    layout: Layout,
    object: WlBuffer,
}

impl Client {
    /// A window with this title, not shown yet.
    pub(crate) fn new(socket: &Path, title: &str) -> Self {
        let stream = std::os::unix::net::UnixStream::connect(socket).expect("the session's socket");
        let connection = Connection::from_socket(stream).expect("a connection");
        let (globals, mut queue) = registry_queue_init::<Heard>(&connection).expect("globals");
        let handle = queue.handle();
        let compositor: WlCompositor = globals.bind(&handle, 4..=4, ()).expect("wl_compositor");
        let shell: XdgWmBase = globals.bind(&handle, 1..=1, ()).expect("xdg_wm_base");
        let dmabuf = globals.bind(&handle, 3..=3, ()).ok();
        let timelines = globals.bind(&handle, 1..=1, ()).ok();
        let surface = compositor.create_surface(&handle, ());
        let toplevel = shell.get_xdg_surface(&surface, &handle, ()).get_toplevel(&handle, ());
        toplevel.set_title(title.to_owned());
        surface.commit();
        let mut heard = Heard::default();
        while !heard.configured {
            queue.blocking_dispatch(&mut heard).expect("it goes on");
        }
        Self { queue, heard, dmabuf, timelines, surface }
    }

    /// Whether it may hand over dmabufs.
    pub(crate) fn has_dmabuf(&self) -> bool {
        self.dmabuf.is_some()
    }

    /// Whether it may tell by timelines when it has drawn.
    pub(crate) fn has_timelines(&self) -> bool {
        self.timelines.is_some()
    }

    /// It does from now on, by these two.
    pub(crate) fn synchronise(&self, drawn: BorrowedFd<'_>, read: BorrowedFd<'_>) -> Points {
        let (handle, manager) = (self.queue.handle(), self.timelines.as_ref().expect("they are offered"));
        Points {
            surface: manager.get_surface(&self.surface, &handle, ()),
            drawn: manager.import_timeline(drawn, &handle, ()),
            read: manager.import_timeline(read, &handle, ()),
        }
    }

    /// A buffer, the `number`th.
    pub(crate) fn buffer(&self, number: usize, exporter: Exporter, layout: Layout) -> Buffer {
        let length = layout.offset as usize + layout.stride as usize * layout.height as usize;
        let memory = Memory::new(exporter, length);
        let fourcc = u32::from_le_bytes(*b"XR24");
        let object = self.import(number, &Plane { fd: memory.fd.as_fd(), fourcc, modifier: 0, layout });
        Buffer { memory, layout, object }
    }

    /// The buffer of a plane, the `number`th.
    pub(crate) fn import(&self, number: usize, plane: &Plane<'_>) -> WlBuffer {
        self.import_all(number, std::slice::from_ref(plane))
    }

    /// The buffer of several planes, of which the first tells what it is.
    pub(crate) fn import_all(&self, number: usize, planes: &[Plane<'_>]) -> WlBuffer {
        let handle = self.queue.handle();
        let params = self.dmabuf.as_ref().expect("it is offered").create_params(&handle, ());
        for (index, plane) in (0..).zip(planes) {
            let (high, low) = ((plane.modifier >> 32) as u32, plane.modifier as u32);
            params.add(plane.fd, index, plane.layout.offset, plane.layout.stride, high, low);
        }
        let plane = &planes[0];
        let Layout { width, height, .. } = plane.layout;
        let flags = zwp_linux_buffer_params_v1::Flags::empty();
        let object = params.create_immed(width as i32, height as i32, plane.fourcc, flags, &handle, number);
        params.destroy();
        object
    }

    /// Shows a buffer of which these rows are new.
    pub(crate) fn show(&mut self, buffer: &Buffer, rows: std::ops::Range<u32>) {
        let damage = [0, rows.start, buffer.layout.width, rows.end - rows.start];
        self.commit(&buffer.object, damage);
    }

    /// Shows a buffer that is new in this rectangle (x, y, width, height).
    pub(crate) fn commit(&mut self, buffer: &WlBuffer, damage: [u32; 4]) {
        self.surface.attach(Some(buffer), 0, 0);
        let [x, y, width, height] = damage.map(u32::cast_signed);
        self.surface.damage_buffer(x, y, width, height);
        self.surface.commit();
        self.hear();
    }

    /// Takes what has come, without waiting for more.
    pub(crate) fn hear(&mut self) {
        self.queue.flush().expect("the connection lives");
        if let Some(guard) = self.queue.prepare_read() {
            let fd = guard.connection_fd();
            let mut set = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut set, Some(&now)) == Ok(1) {
                match guard.read() {
                    // Half an event.
                    Err(WaylandError::Io(error)) if error.kind() == ErrorKind::WouldBlock => {}
                    read => drop(read.expect("the connection lives")),
                }
            }
        }
        self.queue.dispatch_pending(&mut self.heard).expect("the connection lives");
    }

    /// The connection lives, and all that it has said has been taken.
    pub(crate) fn roundtrip(&mut self) {
        self.queue.roundtrip(&mut self.heard).expect("the connection lives");
    }
}

impl Points {
    /// The next commit is drawn at this point of one timeline, and read at the same of the other.
    pub(crate) fn set(&self, point: u32) {
        self.surface.set_acquire_point(&self.drawn, 0, point);
        self.surface.set_release_point(&self.read, 0, point);
    }
}

impl Buffer {
    /// Draws one row, of pixels `0xAARRGGBB`.
    pub(crate) fn row(&self, y: u32, pixels: &[u32]) {
        let bytes: Vec<u8> = pixels.iter().flat_map(|pixel| pixel.to_le_bytes()).collect();
        self.memory.write(self.layout.offset as usize + y as usize * self.layout.stride as usize, &bytes);
    }
}

impl Dispatch<WlRegistry, GlobalListContents> for Heard {
    fn event(
        _: &mut Self,
        _: &WlRegistry,
        _: wl_registry::Event,
        _: &GlobalListContents,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
    }
}

impl Dispatch<WlBuffer, usize> for Heard {
    fn event(
        heard: &mut Self,
        _: &WlBuffer,
        event: wl_buffer::Event,
        number: &usize,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let wl_buffer::Event::Release = event {
            heard.released.push(*number);
        }
    }
}

impl Dispatch<ZwpLinuxDmabufV1, ()> for Heard {
    fn event(
        heard: &mut Self,
        _: &ZwpLinuxDmabufV1,
        event: zwp_linux_dmabuf_v1::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let zwp_linux_dmabuf_v1::Event::Modifier { format, .. } = event {
            heard.formats.insert(format);
        }
    }
}

impl Dispatch<ZwpLinuxBufferParamsV1, ()> for Heard {
    fn event(
        heard: &mut Self,
        _: &ZwpLinuxBufferParamsV1,
        event: zwp_linux_buffer_params_v1::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let zwp_linux_buffer_params_v1::Event::Failed = event {
            heard.failed += 1;
        }
    }
}

impl Dispatch<XdgSurface, ()> for Heard {
    fn event(
        heard: &mut Self,
        surface: &XdgSurface,
        event: xdg_surface::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let xdg_surface::Event::Configure { serial } = event {
            surface.ack_configure(serial);
            heard.configured = true;
        }
    }
}

impl Dispatch<XdgWmBase, ()> for Heard {
    fn event(
        _: &mut Self,
        shell: &XdgWmBase,
        event: xdg_wm_base::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let xdg_wm_base::Event::Ping { serial } = event {
            shell.pong(serial);
        }
    }
}

delegate_noop!(Heard: ignore WlCompositor);
delegate_noop!(Heard: ignore WlSurface);
delegate_noop!(Heard: WpLinuxDrmSyncobjManagerV1);
delegate_noop!(Heard: WpLinuxDrmSyncobjSurfaceV1);
delegate_noop!(Heard: WpLinuxDrmSyncobjTimelineV1);
delegate_noop!(Heard: ignore XdgToplevel);
