//! The C side: what WLCS calls, and the compositor's own integration module, which is called in turn.
//!
//! Layouts and meaning are those of `wlcs/display_server.h`, `pointer.h` and `touch.h`. The compositor's module wants
//! to know which of its client's surfaces to move and is told by `wl_display` and `wl_surface` of libwayland, so for
//! each client there is a `wl_display` over the compositor's end that is never read nor written, with as many proxies
//! as it takes for one to have the right id. Invariant: the suite calls from one thread, as it promises, so nothing
//! here is locked.

#![allow(unsafe_code, reason = "the suite and the compositor's module speak C")]
#![allow(unreachable_pub, reason = "what the suite looks up by its name is used by name nowhere else")]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr::null_mut;

use wayferry_wayland::tables::{self, Access};

use crate::relay::Relay;

/// `WlcsExtensionDescriptor`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Extension {
    name: *const c_char,
    version: u32,
}

/// `WlcsIntegrationDescriptor`.
#[repr(C)]
struct Descriptor {
    version: u32,
    count: usize,
    extensions: *const Extension,
}

/// `WlcsDisplayServer`, version 3.
#[repr(C)]
struct DisplayServer {
    version: u32,
    start: Option<unsafe extern "C" fn(*mut DisplayServer)>,
    stop: Option<unsafe extern "C" fn(*mut DisplayServer)>,
    create_client_socket: Option<unsafe extern "C" fn(*mut DisplayServer) -> c_int>,
    position_window_absolute:
        Option<unsafe extern "C" fn(*mut DisplayServer, *mut c_void, *mut c_void, c_int, c_int)>,
    create_pointer: Option<unsafe extern "C" fn(*mut DisplayServer) -> *mut Pointer>,
    create_touch: Option<unsafe extern "C" fn(*mut DisplayServer) -> *mut Touch>,
    descriptor: Option<unsafe extern "C" fn(*const DisplayServer) -> *const Descriptor>,
    start_on_this_thread: Option<unsafe extern "C" fn(*mut DisplayServer, *mut c_void)>,
}

/// `WlcsPointer`, version 1.
#[repr(C)]
struct Pointer {
    version: u32,
    move_absolute: Option<unsafe extern "C" fn(*mut Pointer, i32, i32)>,
    move_relative: Option<unsafe extern "C" fn(*mut Pointer, i32, i32)>,
    button_up: Option<unsafe extern "C" fn(*mut Pointer, c_int)>,
    button_down: Option<unsafe extern "C" fn(*mut Pointer, c_int)>,
    destroy: Option<unsafe extern "C" fn(*mut Pointer)>,
}

/// `WlcsTouch`, version 1.
#[repr(C)]
struct Touch {
    version: u32,
    down: Option<unsafe extern "C" fn(*mut Touch, i32, i32)>,
    motion: Option<unsafe extern "C" fn(*mut Touch, i32, i32)>,
    up: Option<unsafe extern "C" fn(*mut Touch)>,
    destroy: Option<unsafe extern "C" fn(*mut Touch)>,
}

/// `WlcsServerIntegration`, version 1.
#[repr(C)]
pub struct ServerIntegration {
    version: u32,
    create_server: Option<unsafe extern "C" fn(c_int, *const *const c_char) -> *mut DisplayServer>,
    destroy_server: Option<unsafe extern "C" fn(*mut DisplayServer)>,
}

/// The symbol that the suite looks for.
// SAFETY: the name is the one that the suite's headers give; nothing else in the process has it but other integration
// modules, which are loaded with local symbols.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the suite looks for it by this name")]
pub static wlcs_server_integration: ServerIntegration = ServerIntegration {
    version: 1,
    create_server: Some(create_server),
    destroy_server: Some(destroy_server),
};

/// Our server: what the suite has a pointer to comes first.
#[repr(C)]
struct Server {
    face: DisplayServer,
    inner: *mut DisplayServer,
    integration: &'static ServerIntegration,
    library: Library,
    relay: Option<Relay>,
    clients: BTreeMap<i32, Fake>,
    descriptor: Descriptor,
    _extensions: Vec<Extension>,
}

/// A client's connection to the compositor, as libwayland has it.
struct Fake {
    display: *mut c_void,
    /// Proxies of `display`, with ids in ascending order.
    proxies: Vec<*mut c_void>,
}

/// Pointers and fingers: those of the compositor's module, behind all that clients have sent.
#[repr(C)]
struct OurPointer {
    face: Pointer,
    inner: *mut Pointer,
    server: *mut Server,
}

#[repr(C)]
struct OurTouch {
    face: Touch,
    inner: *mut Touch,
    server: *mut Server,
}

/// Functions of libwayland-client, which the suite itself is linked with.
struct Library {
    display_fd: unsafe extern "C" fn(*mut c_void) -> c_int,
    proxy_id: unsafe extern "C" fn(*mut c_void) -> u32,
    connect_to_fd: unsafe extern "C" fn(c_int) -> *mut c_void,
    create_proxy: unsafe extern "C" fn(*mut c_void, *const c_void) -> *mut c_void,
    callback_interface: *const c_void,
}

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_NOW: c_int = 2;
/// glibc's `RTLD_DEFAULT`.
const EVERYWHERE: *mut c_void = null_mut();

impl Library {
    /// # Panics
    /// If the process has no libwayland-client: it is not the suite.
    fn find() -> Self {
        let symbol = |name: &CStr| {
            // SAFETY: the name is a C string; looking for a symbol runs no code of ours.
            let found = unsafe { dlsym(EVERYWHERE, name.as_ptr()) };
            assert!(!found.is_null(), "{} is in libwayland-client", name.to_string_lossy());
            found
        };
        // SAFETY: these are the types that wayland-client-core.h gives these functions, all pointers being opaque.
        unsafe {
            Self {
                display_fd: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> c_int>(
                    symbol(c"wl_display_get_fd"),
                ),
                proxy_id: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> u32>(
                    symbol(c"wl_proxy_get_id"),
                ),
                connect_to_fd: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> *mut c_void>(
                    symbol(c"wl_display_connect_to_fd"),
                ),
                create_proxy: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut c_void, *const c_void) -> *mut c_void,
                >(symbol(c"wl_proxy_create")),
                callback_interface: symbol(c"wl_callback_interface"),
            }
        }
    }
}

impl Server {
    /// # Safety
    /// `face` must be what [`create_server`] gave, and no other reference to it may be in use.
    unsafe fn of<'a>(face: *mut DisplayServer) -> &'a mut Self {
        // SAFETY: the face is the first field of a `Server`, both of C's layout.
        unsafe { &mut *face.cast::<Self>() }
    }

    /// A new connection to the compositor.
    fn connect(&mut self) -> OwnedFd {
        let create = self.inner().create_client_socket.expect("version 1 has it");
        // SAFETY: the compositor's module is given its own server and gives a descriptor away.
        unsafe { OwnedFd::from_raw_fd(create(self.inner)) }
    }

    fn inner(&self) -> &DisplayServer {
        // SAFETY: it lives until `destroy_server`.
        unsafe { &*self.inner }
    }

    fn settle(&mut self) {
        if let Some(relay) = &mut self.relay {
            relay.settle();
        }
    }

    /// A `wl_surface` of libwayland's that has the compositor's id.
    fn proxy(&mut self, name: i32, id: u32) -> Option<(*mut c_void, *mut c_void)> {
        let (create, callback, proxy_id) =
            (self.library.create_proxy, self.library.callback_interface, self.library.proxy_id);
        let fake = self.clients.get_mut(&name)?;
        loop {
            // SAFETY: all of them are proxies of a display that is never freed.
            if let Some(found) = fake.proxies.iter().find(|proxy| unsafe { proxy_id(**proxy) } == id) {
                return Some((fake.display, *found));
            }
            // SAFETY: a `wl_display` is a proxy; the interface is libwayland's own.
            let proxy = unsafe { create(fake.display, callback) };
            // SAFETY: as above.
            if proxy.is_null() || unsafe { proxy_id(proxy) } > id {
                return None;
            }
            fake.proxies.push(proxy);
        }
    }
}

/// The compositor's integration module.
const INNER: &str = "WAYFERRY_WLCS_INNER";

unsafe extern "C" fn create_server(count: c_int, args: *const *const c_char) -> *mut DisplayServer {
    let path =
        std::env::var(INNER).unwrap_or_else(|_| panic!("{INNER} names the compositor's integration module"));
    let path = CString::new(path).expect("a path");
    // SAFETY: C strings; the file is an integration module, trusted as much as the suite is, and is never unloaded.
    let integration = unsafe {
        let library = dlopen(path.as_ptr(), RTLD_NOW);
        assert!(!library.is_null(), "{path:?} cannot be loaded");
        dlsym(library, c"wlcs_server_integration".as_ptr()).cast::<ServerIntegration>()
    };
    assert!(!integration.is_null(), "{path:?} is no integration module");
    // SAFETY: that symbol is such a struct and lives as long as the library.
    let integration: &'static ServerIntegration = unsafe { &*integration };
    let create = integration.create_server.expect("version 1 has it");
    // SAFETY: the arguments are the suite's.
    let inner = unsafe { create(count, args) };
    // SAFETY: the module has just made it.
    let extensions = unsafe { extensions(inner) };
    let descriptor = Descriptor { version: 1, count: extensions.len(), extensions: extensions.as_ptr() };
    let face = DisplayServer {
        version: 3,
        start: Some(start),
        stop: Some(stop),
        create_client_socket: Some(create_client_socket),
        position_window_absolute: Some(position_window_absolute),
        create_pointer: Some(create_pointer),
        create_touch: Some(create_touch),
        descriptor: Some(descriptor_of),
        start_on_this_thread: None,
    };
    let server = Server {
        face,
        inner,
        integration,
        library: Library::find(),
        relay: None,
        clients: BTreeMap::new(),
        descriptor,
        _extensions: extensions,
    };
    Box::into_raw(Box::new(server)).cast()
}

/// What the compositor has and programs may have: other tests are skipped.
///
/// # Safety
/// `inner` must be a server of the compositor's module.
unsafe fn extensions(inner: *mut DisplayServer) -> Vec<Extension> {
    // SAFETY: as the caller promises; the descriptor lives as long as the server.
    let listed = unsafe {
        let Some(describe) = (*inner).descriptor.filter(|_| (*inner).version >= 2) else { return Vec::new() };
        let descriptor = &*describe(inner);
        std::slice::from_raw_parts(descriptor.extensions, descriptor.count)
    };
    let offered = listed.iter().filter_map(|extension| {
        // SAFETY: names are C strings.
        let name = unsafe { CStr::from_ptr(extension.name) }.to_str().ok()?;
        let global = tables::global(name).filter(|global| global.access == Access::Offered)?;
        Some(Extension { version: extension.version.min(global.version), ..*extension })
    });
    offered.collect()
}

unsafe extern "C" fn destroy_server(face: *mut DisplayServer) {
    // SAFETY: it is what `create_server` gave, and the suite does not use it any more.
    let server = unsafe { Box::from_raw(face.cast::<Server>()) };
    if let Some(destroy) = server.integration.destroy_server {
        // SAFETY: likewise of the compositor's.
        unsafe { destroy(server.inner) };
    }
}

unsafe extern "C" fn descriptor_of(face: *const DisplayServer) -> *const Descriptor {
    // SAFETY: the suite gives back what it got.
    unsafe { &raw const (*face.cast::<Server>()).descriptor }
}

unsafe extern "C" fn start(face: *mut DisplayServer) {
    // SAFETY: the suite gives back what it got, from its one thread; here and below.
    let server = unsafe { Server::of(face) };
    let start = server.inner().start.expect("a module that starts a thread of its own");
    // SAFETY: the compositor's module is given its own server.
    unsafe { start(server.inner) };
    let watched = server.connect();
    server.relay = Relay::start(watched).ok();
}

unsafe extern "C" fn stop(face: *mut DisplayServer) {
    // SAFETY: as in `start`.
    let server = unsafe { Server::of(face) };
    server.relay = None;
    server.clients.clear();
    if let Some(stop) = server.inner().stop {
        // SAFETY: as in `start`.
        unsafe { stop(server.inner) };
    }
}

unsafe extern "C" fn create_client_socket(face: *mut DisplayServer) -> c_int {
    // SAFETY: as in `start`.
    let server = unsafe { Server::of(face) };
    let compositor = server.connect().into_raw_fd();
    // SAFETY: nothing is read or written through it; it is never disconnected, so the descriptor stays ours.
    let display = unsafe { (server.library.connect_to_fd)(compositor) };
    // SAFETY: we have just got it.
    let compositor = unsafe { OwnedFd::from_raw_fd(compositor) };
    let Ok((theirs, ours)) = UnixStream::pair() else { return -1 };
    let name = theirs.into_raw_fd();
    server.clients.insert(name, Fake { display, proxies: Vec::new() });
    if let Some(relay) = &mut server.relay {
        relay.add(name, ours.into(), compositor);
    }
    name
}

unsafe extern "C" fn position_window_absolute(
    face: *mut DisplayServer,
    client: *mut c_void,
    surface: *mut c_void,
    x: c_int,
    y: c_int,
) {
    // SAFETY: as in `start`.
    let server = unsafe { Server::of(face) };
    // SAFETY: the suite's own display and surface.
    let (name, id) = unsafe { ((server.library.display_fd)(client), (server.library.proxy_id)(surface)) };
    let Some(place) = server.relay.as_mut().and_then(|relay| relay.place(name, id)) else { return };
    let Some((display, surface)) = server.proxy(name, place) else { return };
    if let Some(position) = server.inner().position_window_absolute {
        // SAFETY: the compositor's module looks at the descriptor of the one and at the id of the other.
        unsafe { position(server.inner, display, surface, x, y) };
    }
}

unsafe extern "C" fn create_pointer(face: *mut DisplayServer) -> *mut Pointer {
    // SAFETY: as in `start`.
    let server = unsafe { Server::of(face) };
    let Some(create) = server.inner().create_pointer else { return null_mut() };
    // SAFETY: as in `start`.
    let inner = unsafe { create(server.inner) };
    let face = Pointer {
        version: 1,
        move_absolute: Some(move_absolute),
        move_relative: Some(move_relative),
        button_up: Some(button_up),
        button_down: Some(button_down),
        destroy: Some(destroy_pointer),
    };
    Box::into_raw(Box::new(OurPointer { face, inner, server: &raw mut *server })).cast()
}

/// Does something to the compositor's pointer once clients have been heard.
///
/// # Safety
/// `face` must be what [`create_pointer`] gave.
unsafe fn with_pointer(face: *mut Pointer, act: impl FnOnce(&Pointer, *mut Pointer)) {
    // SAFETY: the suite destroys pointers before their server.
    unsafe {
        let ours = &mut *face.cast::<OurPointer>();
        (*ours.server).settle();
        act(&*ours.inner, ours.inner);
    }
}

unsafe extern "C" fn move_absolute(face: *mut Pointer, x: i32, y: i32) {
    // SAFETY: the suite gives back what it got, here and below; the compositor's module gets what is its own.
    unsafe {
        with_pointer(face, |table, inner| table.move_absolute.into_iter().for_each(|act| act(inner, x, y)))
    }
}

unsafe extern "C" fn move_relative(face: *mut Pointer, x: i32, y: i32) {
    // SAFETY: as in `move_absolute`.
    unsafe {
        with_pointer(face, |table, inner| table.move_relative.into_iter().for_each(|act| act(inner, x, y)))
    }
}

unsafe extern "C" fn button_up(face: *mut Pointer, button: c_int) {
    // SAFETY: as in `move_absolute`.
    unsafe {
        with_pointer(face, |table, inner| table.button_up.into_iter().for_each(|act| act(inner, button)))
    }
}

unsafe extern "C" fn button_down(face: *mut Pointer, button: c_int) {
    // SAFETY: as in `move_absolute`.
    unsafe {
        with_pointer(face, |table, inner| table.button_down.into_iter().for_each(|act| act(inner, button)))
    }
}

unsafe extern "C" fn destroy_pointer(face: *mut Pointer) {
    // SAFETY: it is what `create_pointer` gave, and the suite does not use it any more.
    unsafe {
        let ours = Box::from_raw(face.cast::<OurPointer>());
        (*ours.inner).destroy.into_iter().for_each(|destroy| destroy(ours.inner));
    }
}

unsafe extern "C" fn create_touch(face: *mut DisplayServer) -> *mut Touch {
    // SAFETY: as in `start`.
    let server = unsafe { Server::of(face) };
    let Some(create) = server.inner().create_touch else { return null_mut() };
    // SAFETY: as in `start`.
    let inner = unsafe { create(server.inner) };
    let face = Touch {
        version: 1,
        down: Some(touch_down),
        motion: Some(touch_move),
        up: Some(touch_up),
        destroy: Some(destroy_touch),
    };
    Box::into_raw(Box::new(OurTouch { face, inner, server: &raw mut *server })).cast()
}

/// As [`with_pointer`].
///
/// # Safety
/// `face` must be what [`create_touch`] gave.
unsafe fn with_touch(face: *mut Touch, act: impl FnOnce(&Touch, *mut Touch)) {
    // SAFETY: the suite destroys touch devices before their server.
    unsafe {
        let ours = &mut *face.cast::<OurTouch>();
        (*ours.server).settle();
        act(&*ours.inner, ours.inner);
    }
}

unsafe extern "C" fn touch_down(face: *mut Touch, x: i32, y: i32) {
    // SAFETY: as in `move_absolute`.
    unsafe { with_touch(face, |table, inner| table.down.into_iter().for_each(|act| act(inner, x, y))) }
}

unsafe extern "C" fn touch_move(face: *mut Touch, x: i32, y: i32) {
    // SAFETY: as in `move_absolute`.
    unsafe { with_touch(face, |table, inner| table.motion.into_iter().for_each(|act| act(inner, x, y))) }
}

unsafe extern "C" fn touch_up(face: *mut Touch) {
    // SAFETY: as in `move_absolute`.
    unsafe { with_touch(face, |table, inner| table.up.into_iter().for_each(|act| act(inner))) }
}

unsafe extern "C" fn destroy_touch(face: *mut Touch) {
    // SAFETY: it is what `create_touch` gave, and the suite does not use it any more.
    unsafe {
        let ours = Box::from_raw(face.cast::<OurTouch>());
        (*ours.inner).destroy.into_iter().for_each(|destroy| destroy(ours.inner));
    }
}
