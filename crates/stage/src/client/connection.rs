//! The client: connection, waiting, drawing.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use wayland_client::protocol::{
    wl_compositor, wl_data_device, wl_data_device_manager, wl_output, wl_registry, wl_seat, wl_shm,
    wl_subcompositor, wl_surface,
};
use wayland_client::{Connection, Dispatch, EventQueue, Proxy, QueueHandle};
use wayland_protocols::wp::primary_selection::zv1::client::{
    zwp_primary_selection_device_manager_v1, zwp_primary_selection_device_v1,
};
use wayland_protocols::wp::text_input::zv3::client::zwp_text_input_manager_v3;
use wayland_protocols::wp::viewporter::client::wp_viewporter;
use wayland_protocols::xdg::shell::client::xdg_wm_base;

use super::buffer::Slot;
use super::counts::Counts;
use super::error::ClientError;
use super::inner::{Global, Inner, Input, Pane, Sync};
use super::program::Stop;
use crate::clock;
use crate::compositor::Rect;
use crate::image::Image;

/// A scripted client; see the module.
pub struct Client {
    pub(crate) connection: Connection,
    pub(crate) queue: EventQueue<Inner>,
    pub(crate) inner: Inner,
    pub(crate) bound: Globals,
    /// The connection's own socket once more, for [`Client::why`].
    socket: UnixStream,
    stop: Option<Arc<Stop>>,
    patience: Duration,
    next_sync: u64,
}

/// What the client has bound.
#[derive(Default)]
pub(crate) struct Globals {
    pub(crate) compositor: Option<wl_compositor::WlCompositor>,
    pub(crate) subcompositor: Option<wl_subcompositor::WlSubcompositor>,
    pub(crate) shm: Option<wl_shm::WlShm>,
    pub(crate) wm_base: Option<xdg_wm_base::XdgWmBase>,
    pub(crate) seat: Option<wl_seat::WlSeat>,
    pub(crate) pointer: Option<wayland_client::protocol::wl_pointer::WlPointer>,
    pub(crate) data_manager: Option<wl_data_device_manager::WlDataDeviceManager>,
    pub(crate) data_device: Option<wl_data_device::WlDataDevice>,
    pub(crate) primary_manager:
        Option<zwp_primary_selection_device_manager_v1::ZwpPrimarySelectionDeviceManagerV1>,
    pub(crate) primary_device: Option<zwp_primary_selection_device_v1::ZwpPrimarySelectionDeviceV1>,
    pub(crate) viewporter: Option<wp_viewporter::WpViewporter>,
    text_manager: Option<zwp_text_input_manager_v3::ZwpTextInputManagerV3>,
}

impl Client {
    /// Connects to a compositor's socket and binds what it offers.
    ///
    /// # Errors
    /// No connection, or no `wl_compositor` or `wl_shm`.
    pub fn connect(socket: &Path) -> Result<Client, ClientError> {
        Client::from_stream(UnixStream::connect(socket).map_err(ClientError::Connect)?)
    }

    /// As [`Client::connect`], over a connected socket.
    ///
    /// # Errors
    /// As `connect`.
    pub fn from_stream(stream: UnixStream) -> Result<Client, ClientError> {
        Client::with_stop(stream, None, Arc::default())
    }

    pub(crate) fn with_stop(
        stream: UnixStream,
        stop: Option<Arc<Stop>>,
        counts: Arc<Mutex<Counts>>,
    ) -> Result<Client, ClientError> {
        let socket = stream.try_clone().map_err(ClientError::Connect)?;
        let connection = Connection::from_socket(stream)?;
        let queue = connection.new_event_queue();
        let registry = connection.display().get_registry(&queue.handle(), ());
        let mut client = Client {
            connection,
            queue,
            inner: Inner::new(counts),
            bound: Globals::default(),
            socket,
            stop,
            patience: PATIENCE,
            next_sync: 0,
        };
        client.round_trip()?;
        client.bound = bind(&registry, &client.inner.globals, &client.queue.handle());
        client.compositor()?;
        client.shm()?;
        client.round_trip()?;
        client.bind_seat();
        client.round_trip()?;
        Ok(client)
    }

    /// Changes how long the client waits for anything; 30 s unless told.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        *self.inner.counts.lock().expect("no thread panics with it")
    }

    /// The globals offered: interface and version.
    pub fn globals(&self) -> Vec<(String, u32)> {
        let globals = self.inner.globals.iter();
        globals.map(|global| (global.interface.clone(), global.version)).collect()
    }

    /// The keymap as text, once there is one.
    pub fn keymap(&self) -> Option<String> {
        let (file, size) = self.inner.keymap.as_ref()?;
        let mut bytes = vec![0; *size as usize];
        rustix::io::pread(file, &mut bytes[..], 0).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned())
    }

    /// Sends what is queued and handles what has come, waiting for something up to `timeout`. True if anything
    /// was handled.
    ///
    /// # Errors
    /// The connection is lost, or the program was told to stop.
    pub fn dispatch(&mut self, timeout: Duration) -> Result<bool, ClientError> {
        if self.stop.as_ref().is_some_and(|stop| stop.is_set()) {
            return Err(ClientError::Stopped);
        }
        let pending = self.queue.dispatch_pending(&mut self.inner)?;
        let blocked = match self.queue.flush() {
            Ok(()) => false,
            Err(wayland_client::backend::WaylandError::Io(error))
                if error.kind() == std::io::ErrorKind::WouldBlock =>
            {
                true
            }
            Err(error) => return Err(self.why(error.into())),
        };
        if pending > 0 {
            return Ok(true);
        }
        let Some(guard) = self.queue.prepare_read() else { return Ok(true) };
        let interest = if blocked { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let stop = self.stop.clone();
        let mut fds = vec![PollFd::from_borrowed_fd(guard.connection_fd(), interest)];
        if let Some(stop) = &stop {
            fds.push(PollFd::from_borrowed_fd(stop.bell.as_fd(), PollFlags::IN));
        }
        let _ = poll(&mut fds, Some(&clock::timespec(timeout)));
        let readable = fds[0].revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
        drop(fds);
        if !readable {
            return Ok(false);
        }
        match guard.read() {
            Ok(_) => {}
            Err(wayland_client::backend::WaylandError::Io(error))
                if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => {
                // What came before the end still counts.
                let _ = self.queue.dispatch_pending(&mut self.inner);
                return Err(self.why(error.into()));
            }
        }
        match self.queue.dispatch_pending(&mut self.inner) {
            Ok(count) => Ok(count > 0),
            Err(error) => Err(self.why(error.into())),
        }
    }

    /// The protocol error behind a broken connection, where there is one. A write may fail before the error that
    /// explains it was read; the library then reads no more, so the rest is looked at here.
    fn why(&self, error: ClientError) -> ClientError {
        if let Some(error) = self.connection.protocol_error() {
            return wayland_client::backend::WaylandError::Protocol(error).into();
        }
        let mut rest = vec![0; REST];
        let count = (&self.socket).read(&mut rest).unwrap_or(0);
        find_error(&rest[..count]).map_or(error, ClientError::Protocol)
    }

    /// Handles events until a condition holds.
    ///
    /// # Errors
    /// As [`Client::dispatch`], or the condition (named by `what`) does not hold in time.
    pub fn wait(
        &mut self,
        what: &'static str,
        mut condition: impl FnMut(&mut Client) -> bool,
    ) -> Result<(), ClientError> {
        let deadline = clock::now() + self.patience;
        while !condition(self) {
            let left = deadline.saturating_sub(clock::now());
            if left.is_zero() {
                return Err(ClientError::Deadline(what));
            }
            self.dispatch(left.min(GLANCE))?;
        }
        Ok(())
    }

    /// The next input, waiting for it.
    ///
    /// # Errors
    /// As [`Client::wait`].
    pub fn next_input(&mut self) -> Result<Input, ClientError> {
        self.wait_input(|_| true)
    }

    /// The first input that fulfils a condition; those before it are skipped for good.
    ///
    /// # Errors
    /// As [`Client::wait`].
    pub fn wait_input(&mut self, wanted: impl Fn(&Input) -> bool) -> Result<Input, ClientError> {
        let mut found = None;
        self.wait("an input", |client| {
            while let Some(input) = client.inner.inputs.pop_front() {
                if wanted(&input) {
                    found = Some(input);
                    return true;
                }
            }
            false
        })?;
        found.ok_or(ClientError::Deadline("an input"))
    }

    /// All inputs that were handled and not taken yet.
    pub fn take_inputs(&mut self) -> Vec<Input> {
        self.inner.inputs.drain(..).collect()
    }

    /// `wl_display.sync`, without waiting for its answer; a number for [`Client::synced`].
    pub fn sync(&mut self) -> u64 {
        self.connection.display().sync(&self.queue.handle(), Sync);
        self.next_sync += 1;
        self.next_sync
    }

    /// Whether the sync with this number, and all before it, were answered.
    pub fn synced(&self, number: u64) -> bool {
        self.inner.syncs >= number
    }

    /// `wl_display.sync` and its answer.
    ///
    /// # Errors
    /// As [`Client::wait`].
    pub fn round_trip(&mut self) -> Result<(), ClientError> {
        let number = self.sync();
        self.wait("the answer to a sync", |client| client.synced(number))
    }

    /// Draws a whole picture: attach, full damage, commit.
    ///
    /// # Errors
    /// As [`Client::draw_part`].
    pub fn draw(&mut self, pane: Pane, image: &Image) -> Result<(), ClientError> {
        let whole = Rect::new(0, 0, image.width() as i32, image.height() as i32);
        self.draw_part(pane, image, &[whole])
    }

    /// Draws a picture of which only `damage` has changed since the last one: attach, damage, commit. Waits for a
    /// free buffer if there is none.
    ///
    /// # Errors
    /// No buffer could be made or became free in time, or as [`Client::dispatch`].
    pub fn draw_part(&mut self, pane: Pane, image: &Image, damage: &[Rect]) -> Result<(), ClientError> {
        self.attach(pane, image, damage)?;
        self.damage(pane, damage);
        self.commit(pane);
        self.flush()
    }

    /// Writes a picture into a free buffer and attaches it, without damage and commit.
    ///
    /// # Errors
    /// As [`Client::draw_part`].
    pub fn attach(&mut self, pane: Pane, image: &Image, changed: &[Rect]) -> Result<(), ClientError> {
        let index = self.free_slot(pane, (image.width(), image.height()))?;
        let state = &mut self.inner.panes[pane.0];
        for (_, slot) in state.slots.iter_mut().enumerate().filter(|(other, _)| *other != index) {
            slot.stale.extend_from_slice(changed);
            if slot.stale.len() > STALE {
                slot.stale = vec![Rect::new(0, 0, slot.width as i32, slot.height as i32)];
            }
        }
        let slot = &mut state.slots[index];
        slot.stale.extend_from_slice(changed);
        let stale = std::mem::take(&mut slot.stale);
        slot.write(image, &stale)?;
        slot.busy = true;
        let buffer = slot.buffer.clone();
        state.surface.attach(Some(&buffer), 0, 0);
        self.inner.count(|counts| {
            counts.frames += 1;
            let now = clock::now();
            counts.first_frame.get_or_insert(now);
            counts.last_frame = Some(now);
        });
        Ok(())
    }

    /// `damage_buffer` for each rectangle.
    pub fn damage(&self, pane: Pane, damage: &[Rect]) {
        let surface = self.surface(pane);
        for rect in damage {
            if surface.version() >= wl_surface::REQ_DAMAGE_BUFFER_SINCE {
                surface.damage_buffer(rect.x, rect.y, rect.width, rect.height);
            } else {
                surface.damage(rect.x, rect.y, rect.width, rect.height);
            }
        }
    }

    /// Attaches nothing and commits: the surface disappears.
    pub fn attach_none(&mut self, pane: Pane) {
        self.surface(pane).attach(None, 0, 0);
        self.commit(pane);
    }

    /// Asks for a frame callback with the next commit.
    pub fn ask_frame(&mut self, pane: Pane) {
        let queue = self.queue.handle();
        self.surface(pane).frame(&queue, pane);
        self.inner.panes[pane.0].frame_pending = true;
    }

    /// Whether a frame callback that was asked for is still to come.
    pub fn frame_pending(&self, pane: Pane) -> bool {
        self.inner.panes[pane.0].frame_pending
    }

    /// Waits for the frame callback that was asked for.
    ///
    /// # Errors
    /// As [`Client::wait`].
    pub fn wait_frame(&mut self, pane: Pane) -> Result<(), ClientError> {
        self.wait("a frame callback", |client| !client.frame_pending(pane))
    }

    /// `wl_surface.commit`.
    pub fn commit(&mut self, pane: Pane) {
        self.surface(pane).commit();
    }

    /// Sends what is queued, as far as the socket takes it.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        match self.queue.flush() {
            Err(wayland_client::backend::WaylandError::Io(error))
                if error.kind() == std::io::ErrorKind::WouldBlock =>
            {
                Ok(())
            }
            Err(error) => Err(self.why(error.into())),
            Ok(()) => Ok(()),
        }
    }

    /// How many buffers a pane draws into in turn; 2 unless told, at least 1.
    pub fn set_buffers(&mut self, pane: Pane, buffers: usize) {
        self.inner.panes[pane.0].buffers = buffers.max(1);
    }

    /// Whether a pane's pixels have alpha; they have not unless told.
    pub fn set_alpha(&mut self, pane: Pane, alpha: bool) {
        let state = &mut self.inner.panes[pane.0];
        state.alpha = alpha;
        state.slots.drain(..).for_each(|slot| slot.buffer.destroy());
    }

    /// The pane's `wl_surface`, for requests that this type has no name for.
    pub fn surface(&self, pane: Pane) -> &wl_surface::WlSurface {
        &self.inner.panes[pane.0].surface
    }

    /// The last size that a configure asked a pane for.
    pub fn size(&self, pane: Pane) -> (i32, i32) {
        self.inner.panes[pane.0].size
    }

    /// Whether the pane was asked to close, or the popup sent away.
    pub fn closed(&self, pane: Pane) -> bool {
        self.inner.panes[pane.0].closed
    }

    /// The pane with the keyboard.
    pub fn keyboard_focus(&self) -> Option<Pane> {
        self.inner.keyboard_focus
    }

    /// Serial of the last key, button or keyboard enter.
    pub fn serial(&self) -> u32 {
        self.inner.serial
    }

    /// Index of a free buffer of this size, made or waited for.
    fn free_slot(&mut self, pane: Pane, size: (u32, u32)) -> Result<usize, ClientError> {
        let state = &mut self.inner.panes[pane.0];
        let fits = |slot: &Slot| (slot.width, slot.height) == size;
        let (keep, old): (Vec<_>, Vec<_>) = state.slots.drain(..).partition(fits);
        state.slots = keep;
        old.into_iter().for_each(|slot| slot.buffer.destroy());
        let free = |client: &Client| client.inner.panes[pane.0].slots.iter().position(|slot| !slot.busy);
        if let Some(index) = free(self) {
            return Ok(index);
        }
        let state = &self.inner.panes[pane.0];
        if state.slots.len() < state.buffers {
            let slot = Slot::new(self.shm()?, &self.queue.handle(), size, state.alpha, pane)?;
            self.inner.panes[pane.0].slots.push(slot);
            return Ok(self.inner.panes[pane.0].slots.len() - 1);
        }
        self.inner.count(|counts| counts.busy_waits += 1);
        let mut index = 0;
        self.wait("a free buffer", |client| free(client).inspect(|found| index = *found).is_some())?;
        Ok(index)
    }

    pub(crate) fn compositor(&self) -> Result<&wl_compositor::WlCompositor, ClientError> {
        self.bound.compositor.as_ref().ok_or(ClientError::Missing("wl_compositor"))
    }

    pub(crate) fn shm(&self) -> Result<&wl_shm::WlShm, ClientError> {
        self.bound.shm.as_ref().ok_or(ClientError::Missing("wl_shm"))
    }

    fn bind_seat(&mut self) {
        let queue = self.queue.handle();
        let Some(seat) = self.bound.seat.clone() else { return };
        let has = |bit: wl_seat::Capability| self.inner.seat_capabilities & bit.bits() != 0;
        if has(wl_seat::Capability::Keyboard) {
            seat.get_keyboard(&queue, ());
        }
        if has(wl_seat::Capability::Pointer) {
            self.bound.pointer = Some(seat.get_pointer(&queue, ()));
        }
        if let Some(manager) = &self.bound.text_manager {
            manager.get_text_input(&seat, &queue, ());
        }
        let data = self.bound.data_manager.as_ref();
        self.bound.data_device = data.map(|manager| manager.get_data_device(&seat, &queue, ()));
        let primary = self.bound.primary_manager.as_ref();
        self.bound.primary_device = primary.map(|manager| manager.get_device(&seat, &queue, ()));
    }
}

/// The first `wl_display.error` among whole messages, as `object@id: code: message`.
fn find_error(mut bytes: &[u8]) -> Option<String> {
    let word = |at: usize, bytes: &[u8]| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    loop {
        let (object, header) = (word(0, bytes)?, word(4, bytes)?);
        let size = (header >> 16) as usize;
        let message = bytes.get(..size)?;
        if (object, header & 0xffff) == (1, 0) {
            let (about, code, length) = (word(8, message)?, word(12, message)?, word(16, message)?);
            let text = message.get(20..20 + (length as usize).saturating_sub(1))?;
            return Some(format!("object@{about}: {code}: {}", String::from_utf8_lossy(text)));
        }
        bytes = bytes.get(size.max(8)..)?;
    }
}

fn bind(registry: &wl_registry::WlRegistry, globals: &[Global], queue: &QueueHandle<Inner>) -> Globals {
    let binder = Binder { registry, globals, queue };
    let _: Option<wl_output::WlOutput> = binder.bind(4);
    Globals {
        compositor: binder.bind(4),
        shm: binder.bind(1),
        subcompositor: binder.bind(1),
        wm_base: binder.bind(3),
        seat: binder.bind(7),
        pointer: None,
        data_manager: binder.bind(3),
        data_device: None,
        primary_manager: binder.bind(1),
        primary_device: None,
        viewporter: binder.bind(1),
        text_manager: binder.bind(1),
    }
}

struct Binder<'a> {
    registry: &'a wl_registry::WlRegistry,
    globals: &'a [Global],
    queue: &'a QueueHandle<Inner>,
}

impl Binder<'_> {
    /// Binds the global of this interface, at this version at most.
    fn bind<I: Proxy + 'static>(&self, most: u32) -> Option<I>
    where
        Inner: Dispatch<I, ()>,
    {
        let global = self.globals.iter().find(|global| global.interface == I::interface().name)?;
        Some(self.registry.bind(global.name, global.version.min(most), self.queue, ()))
    }
}

/// A condition may come true without an event; it is looked at this often.
const GLANCE: Duration = Duration::from_millis(5);
/// Bytes of a broken connection that are searched for its error.
const REST: usize = 65_536;
const PATIENCE: Duration = Duration::from_secs(30);
/// Changed rectangles noted for a buffer before the whole of it counts as changed.
const STALE: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_found_behind_other_events() {
        let mut bytes = Vec::new();
        let mut push = |words: &[u32]| bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        push(&[5, 12 << 16 | 1, 99]);
        push(&[1, 28 << 16, 17, 3, 5]);
        bytes.extend(b"oops\0\0\0\0");
        assert_eq!(find_error(&bytes).as_deref(), Some("object@17: 3: oops"));
        assert_eq!(find_error(&bytes[..30]), None);
        assert_eq!(find_error(&[]), None);
    }
}
