//! `zwp_primary_selection_device_manager_v1`: the selection of marked text.

use std::sync::{Arc, Mutex};

use wayland_protocols::wp::primary_selection::zv1::server::{
    zwp_primary_selection_device_manager_v1 as manager, zwp_primary_selection_device_v1 as device,
    zwp_primary_selection_offer_v1 as offer, zwp_primary_selection_source_v1 as source,
};
use wayland_server::backend::ClientId;
use wayland_server::{Client, DataInit, Dispatch, DisplayHandle, GlobalDispatch, New, Resource};

use super::event::{Clipboard, StageEvent};
use super::pipe::{self, Bundle};
use super::state::{State, number};

/// See the module.
#[derive(Default)]
pub(crate) struct PrimaryState {
    devices: Vec<device::ZwpPrimarySelectionDeviceV1>,
    pub(crate) selection: Option<PrimaryOrigin>,
}

/// Whose the data is.
#[derive(Clone, Debug)]
pub(crate) enum PrimaryOrigin {
    Client(source::ZwpPrimarySelectionSourceV1),
    Stage(Bundle),
}

/// The types that a source offers.
pub(crate) type Types = Mutex<Vec<String>>;

impl State {
    /// Tells the focused client what the primary selection holds.
    pub(crate) fn offer_primary(&mut self) {
        let Some(surface) = self.seat.focus.and_then(|id| self.surface(id)) else { return };
        let client = surface.resource.client();
        let devices = self.primary.devices.iter().filter(|device| device.client() == client);
        for device in devices {
            self.offer_primary_to(device);
        }
    }

    fn offer_primary_to(&self, device: &device::ZwpPrimarySelectionDeviceV1) {
        let Some(client) = device.client() else { return };
        let Some(origin) = self.primary.selection.clone() else {
            device.selection(None);
            return;
        };
        let types = match &origin {
            PrimaryOrigin::Client(source) => types_of(source),
            PrimaryOrigin::Stage(bundle) => bundle.types(),
        };
        let made = client.create_resource::<offer::ZwpPrimarySelectionOfferV1, _, State>(
            &self.display,
            device.version(),
            Arc::new(origin),
        );
        let Ok(offer) = made else { return };
        device.data_offer(&offer);
        for name in types {
            offer.offer(name);
        }
        device.selection(Some(&offer));
    }

    /// Replaces the primary selection and tells the one who had it.
    pub(crate) fn set_primary(&mut self, origin: Option<PrimaryOrigin>) {
        let before = std::mem::replace(&mut self.primary.selection, origin);
        if let Some(PrimaryOrigin::Client(source)) = before {
            source.cancelled();
        }
        self.offer_primary();
    }
}

impl GlobalDispatch<manager::ZwpPrimarySelectionDeviceManagerV1, ()> for State {
    fn bind(
        _: &mut State,
        _: &DisplayHandle,
        _: &Client,
        resource: New<manager::ZwpPrimarySelectionDeviceManagerV1>,
        _: &(),
        init: &mut DataInit<'_, State>,
    ) {
        init.init(resource, ());
    }
}

impl Dispatch<manager::ZwpPrimarySelectionDeviceManagerV1, ()> for State {
    fn request(
        state: &mut State,
        client: &Client,
        _: &manager::ZwpPrimarySelectionDeviceManagerV1,
        request: manager::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        match request {
            manager::Request::CreateSource { id } => {
                init.init(id, Types::default());
            }
            manager::Request::GetDevice { id, .. } => {
                let device = init.init(id, ());
                state.primary.devices.push(device.clone());
                let focus = state.seat.focus.and_then(|id| state.surface(id));
                if focus.is_some_and(|surface| surface.client == number(client)) {
                    state.offer_primary_to(&device);
                }
            }
            _ => {}
        }
    }
}

impl Dispatch<device::ZwpPrimarySelectionDeviceV1, ()> for State {
    fn request(
        state: &mut State,
        client: &Client,
        _: &device::ZwpPrimarySelectionDeviceV1,
        request: device::Request,
        _: &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        let device::Request::SetSelection { source, serial } = request else { return };
        let client = number(client);
        let types = source.as_ref().map(types_of).unwrap_or_default();
        let focused = state.seat.focus.and_then(|id| state.surface(id));
        let accepted = state.knows_serial(serial) && focused.is_some_and(|surface| surface.client == client);
        let clipboard = Clipboard::Primary;
        state.log.push(StageEvent::SetSelection { client, clipboard, types, accepted });
        if accepted {
            state.set_primary(source.map(PrimaryOrigin::Client));
        } else if let Some(source) = source {
            source.cancelled();
        }
    }

    fn destroyed(state: &mut State, _: ClientId, device: &device::ZwpPrimarySelectionDeviceV1, _: &()) {
        state.primary.devices.retain(|kept| kept != device);
    }
}

impl Dispatch<source::ZwpPrimarySelectionSourceV1, Types> for State {
    fn request(
        _: &mut State,
        _: &Client,
        _: &source::ZwpPrimarySelectionSourceV1,
        request: source::Request,
        types: &Types,
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        if let source::Request::Offer { mime_type } = request {
            types.lock().expect("no thread panics with it").push(mime_type);
        }
    }

    fn destroyed(state: &mut State, _: ClientId, source: &source::ZwpPrimarySelectionSourceV1, _: &Types) {
        if matches!(&state.primary.selection, Some(PrimaryOrigin::Client(kept)) if kept == source) {
            state.set_primary(None);
        }
    }
}

impl Dispatch<offer::ZwpPrimarySelectionOfferV1, Arc<PrimaryOrigin>> for State {
    fn request(
        _: &mut State,
        _: &Client,
        _: &offer::ZwpPrimarySelectionOfferV1,
        request: offer::Request,
        origin: &Arc<PrimaryOrigin>,
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        if let offer::Request::Receive { mime_type, fd } = request {
            match origin.as_ref() {
                PrimaryOrigin::Client(source) => {
                    use std::os::fd::AsFd;
                    source.send(mime_type, fd.as_fd());
                }
                PrimaryOrigin::Stage(bundle) => pipe::write(bundle.clone(), mime_type, fd),
            }
        }
    }
}

fn types_of(source: &source::ZwpPrimarySelectionSourceV1) -> Vec<String> {
    source
        .data::<Types>()
        .map(|types| types.lock().expect("no thread panics with it").clone())
        .unwrap_or_default()
}
