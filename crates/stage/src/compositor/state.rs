//! Everything the compositor knows; the protocol's handlers in the sibling modules change it.
//!
//! Invariant: a [`SurfaceId`] in any field may be of a surface that is gone, so every use looks it up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use wayland_server::backend::{self, ClientData, DisconnectReason};
use wayland_server::protocol::wl_output::WlOutput;
use wayland_server::{Client, DisplayHandle, Resource};

use super::config::Config;
use super::data::DataState;
use super::event::{ClientNumber, Role, StageEvent, SurfaceId};
use super::ime::TextInput;
use super::log::Log;
use super::look::Looks;
use super::output::XdgOutputResource;
use super::primary::PrimaryState;
use super::seat::Seat;
use super::surface::Surface;
use super::xdg::WmBase;
use crate::clock;

/// See the module.
pub(crate) struct State {
    pub(crate) config: Config,
    pub(crate) display: DisplayHandle,
    pub(crate) log: Log,
    pub(crate) surfaces: BTreeMap<SurfaceId, Surface>,
    /// Mapped windows from the bottom to the top.
    pub(crate) windows: Vec<SurfaceId>,
    pub(crate) outputs: Vec<WlOutput>,
    pub(crate) xdg_outputs: Vec<XdgOutputResource>,
    pub(crate) wm_bases: Vec<WmBase>,
    pub(crate) seat: Seat,
    pub(crate) data: DataState,
    pub(crate) primary: PrimaryState,
    pub(crate) text_inputs: Vec<TextInput>,
    pub(crate) ticks: u64,
    pub(crate) looks: Looks,
    gone: Gone,
    last_client: u64,
    last_surface: u64,
    last_serial: u32,
}

/// Clients that the library found dead, to be logged when the state is at hand.
pub(crate) type Gone = Arc<Mutex<Vec<(ClientNumber, Option<String>)>>>;

/// What the library keeps with a client for us.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) number: ClientNumber,
    gone: Gone,
}

impl ClientData for Member {
    fn disconnected(&self, _: backend::ClientId, reason: DisconnectReason) {
        let violation = match reason {
            DisconnectReason::ConnectionClosed => None,
            DisconnectReason::ProtocolError(error) => Some(format!(
                "{}@{}: {}: {}",
                error.object_interface, error.object_id, error.code, error.message
            )),
        };
        self.gone.lock().expect("no thread panics with it").push((self.number, violation));
    }
}

impl State {
    pub(crate) fn new(config: Config, display: DisplayHandle) -> State {
        State {
            seat: Seat::new(),
            config,
            display,
            log: Log::default(),
            surfaces: BTreeMap::new(),
            windows: Vec::new(),
            outputs: Vec::new(),
            xdg_outputs: Vec::new(),
            wm_bases: Vec::new(),
            data: DataState::default(),
            primary: PrimaryState::default(),
            text_inputs: Vec::new(),
            ticks: 0,
            looks: Looks::default(),
            gone: Gone::default(),
            last_client: 0,
            last_surface: 0,
            last_serial: 0,
        }
    }

    pub(crate) fn add_client(
        &mut self,
        stream: std::os::unix::net::UnixStream,
    ) -> std::io::Result<ClientNumber> {
        self.last_client += 1;
        let number = ClientNumber(self.last_client);
        let member = Arc::new(Member { number, gone: self.gone.clone() });
        self.display.insert_client(stream, member)?;
        self.log.push(StageEvent::ClientConnected { client: number });
        Ok(number)
    }

    /// Ends a client's connection.
    pub(crate) fn disconnect(&mut self, client: ClientNumber) {
        let owned = self.surfaces.values().find(|surface| surface.client == client);
        if let Some(id) = owned.and_then(|surface| surface.resource.client()).map(|client| client.id()) {
            self.display.backend_handle().kill_client(id, DisconnectReason::ConnectionClosed);
        }
    }

    /// Logs the clients that went since the last call.
    pub(crate) fn collect_gone(&mut self) {
        let gone: Vec<_> = self.gone.lock().expect("no thread panics with it").drain(..).collect();
        if gone.is_empty() {
            return;
        }
        self.wm_bases.retain(|base| base.resource.is_alive());
        self.outputs.retain(Resource::is_alive);
        self.xdg_outputs.retain(|output| output.resource.is_alive());
        for (client, violation) in gone {
            self.log.push(StageEvent::ClientGone { client, violation });
        }
    }

    pub(crate) fn next_serial(&mut self) -> u32 {
        self.last_serial = self.last_serial.wrapping_add(1);
        self.last_serial
    }

    /// Whether a serial was given out, and not implausibly long ago.
    pub(crate) fn knows_serial(&self, serial: u32) -> bool {
        serial != 0 && self.last_serial.wrapping_sub(serial) < SERIAL_MEMORY
    }

    pub(crate) fn next_surface(&mut self) -> SurfaceId {
        self.last_surface += 1;
        SurfaceId(self.last_surface)
    }

    pub(crate) fn millis(&self) -> u32 {
        clock::wayland_millis(clock::now())
    }

    /// Time between two ticks.
    pub(crate) fn period(&self) -> Duration {
        Duration::from_nanos(1_000_000_000_000 / u64::from(self.config.refresh_mhz.max(1)))
    }

    /// One frame of the output: every due frame callback and presentation feedback is answered.
    pub(crate) fn tick(&mut self, time: Duration) {
        self.ticks += 1;
        let millis = clock::wayland_millis(time);
        let (period, ticks) = (self.period(), self.ticks);
        for surface in self.surfaces.values_mut().filter(|surface| !surface.hidden) {
            for callback in surface.callbacks.drain(..) {
                callback.done(millis);
            }
            for feedback in surface.feedback.drain(..) {
                super::timing::presented(&feedback, &self.outputs, time, period, ticks);
            }
        }
    }

    /// Whether a tick would do anything.
    pub(crate) fn wants_tick(&self) -> bool {
        let mut seen = self.surfaces.values().filter(|surface| !surface.hidden);
        seen.any(|surface| !surface.callbacks.is_empty() || !surface.feedback.is_empty())
    }

    pub(crate) fn surface(&self, id: SurfaceId) -> Option<&Surface> {
        self.surfaces.get(&id)
    }

    /// The outputs that the surface's client has bound.
    pub(crate) fn outputs_of(&self, surface: &Surface) -> Vec<WlOutput> {
        let client = surface.resource.client();
        self.outputs.iter().filter(|output| output.client() == client).cloned().collect()
    }

    /// Gives a surface its role; false when it has another one.
    pub(crate) fn set_role(&mut self, id: SurfaceId, role: Role) -> bool {
        match self.surfaces.get_mut(&id) {
            Some(surface) => *surface.role.get_or_insert(role) == role,
            None => true,
        }
    }
}

/// The number of a client.
pub(crate) fn number(client: &Client) -> ClientNumber {
    client.get_data::<Member>().map_or(ClientNumber(0), |member| member.number)
}

/// How many serials back a request may refer to.
const SERIAL_MEMORY: u32 = 100_000;
