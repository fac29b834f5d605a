//! The compositor whose screen is shown: what it must have, and which of its screens it is.
//!
//! Invariant: what is bound here is bound once; a screen that goes ends all, for there is nothing left to show.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;

use wayland_client::globals::{GlobalList, registry_queue_init};
use wayland_client::protocol::wl_output::{self, WlOutput};
use wayland_client::protocol::wl_registry::{self, WlRegistry};
use wayland_client::protocol::wl_seat::WlSeat;
use wayland_client::protocol::wl_shm::WlShm;
use wayland_client::{Connection, EventQueue, Proxy};
use wayland_protocols::ext::image_capture_source::v1::client::ext_output_image_capture_source_manager_v1::ExtOutputImageCaptureSourceManagerV1;
use wayland_protocols::ext::image_copy_capture::v1::client::ext_image_copy_capture_manager_v1::ExtImageCopyCaptureManagerV1;
use wayland_protocols_misc::zwp_virtual_keyboard_v1::client::zwp_virtual_keyboard_manager_v1::ZwpVirtualKeyboardManagerV1;
use wayland_protocols_wlr::data_control::v1::client::zwlr_data_control_manager_v1::ZwlrDataControlManagerV1;
use wayland_protocols_wlr::output_management::v1::client::zwlr_output_manager_v1::ZwlrOutputManagerV1;
use wayland_protocols_wlr::screencopy::v1::client::zwlr_screencopy_manager_v1::ZwlrScreencopyManagerV1;
use wayland_protocols_wlr::virtual_pointer::v1::client::zwlr_virtual_pointer_manager_v1::ZwlrVirtualPointerManagerV1;

use crate::error::{End, Error};
use crate::inbox::{Inbox, Owner, Queue};

/// What is bound of the compositor there.
#[derive(Debug)]
pub(crate) struct There {
    pub(crate) queue: Queue,
    /// What tells its compositor from others, on this machine and on others.
    pub(crate) id: String,
    pub(crate) shm: WlShm,
    pub(crate) seat: WlSeat,
    /// The screen that is shown.
    pub(crate) output: WlOutput,
    /// What the registry calls it.
    output_number: u32,
    /// What people call the screens that are on, by the registry's numbers.
    pub(crate) names: BTreeMap<u32, String>,
    pub(crate) transform: wl_output::Transform,
    /// Pixels of the shown screen, and how many of them make a length of one.
    mode: (i32, i32),
    scale: i32,
    pub(crate) screencopy: ZwlrScreencopyManagerV1,
    pub(crate) keyboards: ZwpVirtualKeyboardManagerV1,
    pub(crate) pointers: ZwlrVirtualPointerManagerV1,
    pub(crate) outputs: Option<ZwlrOutputManagerV1>,
    pub(crate) clipboards: Option<ZwlrDataControlManagerV1>,
    /// Where it tells how its pointer looks.
    pub(crate) cursors: Option<(ExtImageCopyCaptureManagerV1, ExtOutputImageCaptureSourceManagerV1)>,
}

impl There {
    /// Connects to it, and binds what is needed.
    ///
    /// # Errors
    /// It cannot be reached, lacks something, or has no screen.
    pub(crate) fn connect(socket: UnixStream) -> Result<(Self, EventQueue<Inbox>), Error> {
        let id = id_of(&socket);
        let connection = Connection::from_socket(socket).map_err(End::There.connect())?;
        let (globals, events) = registry_queue_init::<Inbox>(&connection).map_err(End::There.globals())?;
        let missing = missing(&globals);
        if !missing.is_empty() {
            return Err(Error::Missing(missing));
        }
        let queue = events.handle();
        let bind = |name, version: u32| globals.registry().bind(name, version.min(4), &queue, name);
        let outputs = globals.contents().with_list(|list| {
            let outputs = list.iter().filter(|global| global.interface == WlOutput::interface().name);
            outputs.map(|global| (global.name, bind(global.name, global.version))).collect::<Vec<_>>()
        });
        let (output_number, output) = outputs.into_iter().next().ok_or(Error::NoScreen)?;
        // It is there, and in no version that is too old: `missing` has looked.
        let lost = |_| Error::Missing(Vec::new());
        let there = Self {
            id,
            shm: globals.bind(&queue, 1..=1, Owner::There).map_err(lost)?,
            seat: globals.bind(&queue, 1..=1, Owner::There).map_err(lost)?,
            output,
            output_number,
            names: BTreeMap::new(),
            transform: wl_output::Transform::Normal,
            mode: (0, 0),
            scale: 1,
            screencopy: globals.bind(&queue, 3..=3, ()).map_err(lost)?,
            keyboards: globals.bind(&queue, 1..=1, ()).map_err(lost)?,
            pointers: globals.bind(&queue, 1..=2, ()).map_err(lost)?,
            outputs: globals.bind(&queue, 1..=4, ()).ok(),
            clipboards: globals.bind(&queue, 1..=2, ()).ok(),
            cursors: globals.bind(&queue, 1..=1, ()).ok().zip(globals.bind(&queue, 1..=1, ()).ok()),
            queue,
        };
        Ok((there, events))
    }
}

impl There {
    /// A global has come or gone there; whether it was the shown screen.
    pub(crate) fn globals_changed(&mut self, registry: &WlRegistry, event: wl_registry::Event) -> bool {
        match event {
            wl_registry::Event::Global { name, interface, version }
                if interface == WlOutput::interface().name =>
            {
                registry.bind::<WlOutput, _, _>(name, version.min(4), &self.queue, name);
            }
            wl_registry::Event::GlobalRemove { name } if name == self.output_number => return true,
            wl_registry::Event::GlobalRemove { name } => drop(self.names.remove(&name)),
            _ => {}
        }
        false
    }

    /// What a screen says of itself.
    pub(crate) fn output(&mut self, event: wl_output::Event, number: u32) {
        match event {
            wl_output::Event::Geometry { transform, .. } if number == self.output_number => {
                self.transform = transform.into_result().unwrap_or(wl_output::Transform::Normal);
            }
            wl_output::Event::Mode { width, height, .. } if number == self.output_number => {
                self.mode = (width, height);
            }
            wl_output::Event::Scale { factor } if number == self.output_number => self.scale = factor.max(1),
            wl_output::Event::Name { name } if self.names.len() < MAX_OUTPUTS => {
                self.names.insert(number, name);
            }
            _ => {}
        }
    }

    /// How large the shown screen is to those who use it; 0 before it is known.
    pub(crate) fn size(&self) -> (i32, i32) {
        (self.mode.0 / self.scale, self.mode.1 / self.scale)
    }

    /// What the shown screen is called, where compositors tell that.
    pub(crate) fn output_name(&self) -> Option<&str> {
        self.names.get(&self.output_number).map(String::as_str)
    }
}

/// What a compositor lacks whose screen is to be shown; empty where it lacks nothing.
///
/// # Errors
/// It cannot be reached.
pub fn examine(socket: UnixStream) -> Result<Vec<&'static str>, Error> {
    let connection = Connection::from_socket(socket).map_err(End::There.connect())?;
    let (globals, _events) = registry_queue_init::<Inbox>(&connection).map_err(End::There.globals())?;
    Ok(missing(&globals))
}

fn missing(globals: &GlobalList) -> Vec<&'static str> {
    let needed = [
        (WlShm::interface(), 1),
        (WlSeat::interface(), 1),
        (ZwlrScreencopyManagerV1::interface(), 3),
        (ZwpVirtualKeyboardManagerV1::interface(), 1),
        (ZwlrVirtualPointerManagerV1::interface(), 1),
    ];
    globals.contents().with_list(|list| {
        let has =
            |name, version| list.iter().any(|global| global.interface == name && global.version >= version);
        let lacks = needed.into_iter().filter(|(interface, version)| !has(interface.name, *version));
        lacks.map(|(interface, _)| interface.name).collect()
    })
}

/// The number of the compositor's process, and of this machine's run.
fn id_of(socket: &UnixStream) -> String {
    let process =
        rustix::net::sockopt::socket_peercred(socket).map_or(0, |peer| peer.pid.as_raw_nonzero().get());
    let run = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{process}-{}", run.split('-').next().unwrap_or_default())
}

/// Screens whose names are remembered.
const MAX_OUTPUTS: usize = 64;
