//! The compositor's thread: sockets in, commands in, ticks out.
//!
//! Between two calls of poll(2) everything that arrived is handled and everything that was said is flushed.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use wayland_protocols::wp::cursor_shape::v1::server::wp_cursor_shape_manager_v1::WpCursorShapeManagerV1;
use wayland_protocols::wp::fractional_scale::v1::server::wp_fractional_scale_manager_v1::WpFractionalScaleManagerV1;
use wayland_protocols::wp::idle_inhibit::zv1::server::zwp_idle_inhibit_manager_v1::ZwpIdleInhibitManagerV1;
use wayland_protocols::wp::presentation_time::server::wp_presentation::WpPresentation;
use wayland_protocols::wp::primary_selection::zv1::server::zwp_primary_selection_device_manager_v1::ZwpPrimarySelectionDeviceManagerV1;
use wayland_protocols::wp::single_pixel_buffer::v1::server::wp_single_pixel_buffer_manager_v1::WpSinglePixelBufferManagerV1;
use wayland_protocols::wp::text_input::zv3::server::zwp_text_input_manager_v3::ZwpTextInputManagerV3;
use wayland_protocols::wp::viewporter::server::wp_viewporter::WpViewporter;
use wayland_protocols::xdg::activation::v1::server::xdg_activation_v1::XdgActivationV1;
use wayland_protocols::xdg::decoration::zv1::server::zxdg_decoration_manager_v1::ZxdgDecorationManagerV1;
use wayland_protocols::xdg::shell::server::xdg_wm_base::XdgWmBase;
use wayland_protocols::xdg::xdg_output::zv1::server::zxdg_output_manager_v1::ZxdgOutputManagerV1;
use wayland_server::protocol::wl_compositor::WlCompositor;
use wayland_server::protocol::wl_data_device_manager::WlDataDeviceManager;
use wayland_server::protocol::wl_output::WlOutput;
use wayland_server::protocol::wl_seat::WlSeat;
use wayland_server::protocol::wl_shm::WlShm;
use wayland_server::protocol::wl_subcompositor::WlSubcompositor;
use wayland_server::{Display, DisplayHandle};

use super::config::{Config, Frames, Global};
use super::state::State;
use crate::clock;

/// Something to do on the compositor's thread.
pub(crate) type Command = Box<dyn FnOnce(&mut State) + Send>;

/// Serves until the commands' sender is gone.
pub(crate) fn run(
    mut display: Display<State>,
    config: Config,
    listener: Option<&UnixListener>,
    commands: &Receiver<Command>,
    wake: &OwnedFd,
) {
    let handle = display.handle();
    create_globals(&handle, &config);
    let real_time = config.frames == Frames::RealTime;
    let mut state = State::new(config, handle);
    let mut next_tick = clock::now();
    loop {
        let mut drained = [0u8; 8];
        let _ = rustix::io::read(wake, &mut drained);
        loop {
            match commands.try_recv() {
                Ok(command) => command(&mut state),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        while let Some(Ok((stream, _))) = listener.map(UnixListener::accept) {
            let _ = state.add_client(stream);
        }
        let _ = display.dispatch_clients(&mut state);
        state.collect_gone();
        state.tell_looks();
        let now = clock::now();
        if real_time && now >= next_tick {
            state.tick(now);
            let period = state.period();
            next_tick = if next_tick + period > now { next_tick + period } else { now + period };
        }
        let _ = display.flush_clients();
        let timeout = (real_time && state.wants_tick()).then(|| next_tick.saturating_sub(clock::now()));
        wait(&display, listener, wake, timeout);
    }
}

/// Binds the socket so that a client may connect from now on.
pub(crate) fn listen(config: &Config) -> std::io::Result<Option<UnixListener>> {
    let Some(path) = &config.socket else { return Ok(None) };
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(Some(listener))
}

/// Removes the socket that [`listen`] made.
pub(crate) fn unlink(config: &Config) {
    if let Some(path) = &config.socket {
        let _ = fs::remove_file(path);
    }
}

fn wait(
    display: &Display<State>,
    listener: Option<&UnixListener>,
    wake: &OwnedFd,
    timeout: Option<Duration>,
) {
    let mut fds = vec![PollFd::new(display, PollFlags::IN), PollFd::new(wake, PollFlags::IN)];
    if let Some(listener) = listener {
        fds.push(PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN));
    }
    // An interrupted wait is a short one.
    let _ = poll(&mut fds, timeout.map(clock::timespec).as_ref());
}

fn create_globals(display: &DisplayHandle, config: &Config) {
    display.create_global::<State, WlCompositor, ()>(config.compositor_version, ());
    display.create_global::<State, WlSubcompositor, ()>(1, ());
    display.create_global::<State, WlShm, ()>(1, ());
    display.create_global::<State, WlOutput, ()>(4, ());
    display.create_global::<State, XdgWmBase, ()>(config.wm_base_version, ());
    for global in &config.globals {
        match global {
            Global::Seat => display.create_global::<State, WlSeat, ()>(config.seat_version, ()),
            Global::DataDevice => display.create_global::<State, WlDataDeviceManager, ()>(3, ()),
            Global::Viewporter => display.create_global::<State, WpViewporter, ()>(1, ()),
            Global::Decoration => display.create_global::<State, ZxdgDecorationManagerV1, ()>(1, ()),
            Global::Presentation => display.create_global::<State, WpPresentation, ()>(1, ()),
            Global::PrimarySelection => {
                display.create_global::<State, ZwpPrimarySelectionDeviceManagerV1, ()>(1, ())
            }
            Global::XdgOutput => display.create_global::<State, ZxdgOutputManagerV1, ()>(3, ()),
            Global::CursorShape => display.create_global::<State, WpCursorShapeManagerV1, ()>(1, ()),
            Global::FractionalScale => display.create_global::<State, WpFractionalScaleManagerV1, ()>(1, ()),
            Global::Activation => display.create_global::<State, XdgActivationV1, ()>(1, ()),
            Global::IdleInhibit => display.create_global::<State, ZwpIdleInhibitManagerV1, ()>(1, ()),
            Global::SinglePixelBuffer => {
                display.create_global::<State, WpSinglePixelBufferManagerV1, ()>(1, ())
            }
            Global::TextInput => display.create_global::<State, ZwpTextInputManagerV3, ()>(1, ()),
        };
    }
}
