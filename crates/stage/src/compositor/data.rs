//! `wl_data_device_manager`: the clipboard, and drag and drop.
//!
//! The clipboard belongs to a client's source or to the stage itself; the client with the keyboard focus is offered
//! it. Pipes are handed from one client to the other; the stage reads and writes its own in a thread each.

use std::sync::{Arc, Mutex};

use wayland_server::backend::ClientId;
use wayland_server::protocol::wl_data_device_manager::DndAction;
use wayland_server::protocol::{wl_data_device, wl_data_device_manager, wl_data_offer, wl_data_source};
use wayland_server::{Client, DataInit, Dispatch, DisplayHandle, GlobalDispatch, New, Resource, WEnum};

use super::event::{Clipboard, Role, StageEvent, SurfaceId};
use super::pipe::{self, Bundle};
use super::state::{State, number};

/// See the module.
#[derive(Default)]
pub(crate) struct DataState {
    devices: Vec<wl_data_device::WlDataDevice>,
    pub(crate) selection: Option<Origin>,
    pub(crate) drag: Option<Drag>,
    /// The drag that was dropped, until its receiver has finished with it.
    dropped: Option<wl_data_source::WlDataSource>,
}

/// Whose the data is.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    Client(wl_data_source::WlDataSource),
    Stage(Bundle),
}

/// What a `wl_data_source` offers.
#[derive(Debug, Default)]
pub(crate) struct Source {
    types: Mutex<Vec<String>>,
    actions: Mutex<DndActions>,
}

/// What a `wl_data_offer` stands for.
#[derive(Debug)]
pub(crate) struct Offer {
    origin: Origin,
    drag: bool,
}

/// A drag that is going on.
pub(crate) struct Drag {
    source: Option<wl_data_source::WlDataSource>,
    pub(crate) icon: Option<SurfaceId>,
    target: Option<SurfaceId>,
    accepted: bool,
    action: DndAction,
}

/// Actions as bits; `DndAction` has no default of its own.
#[derive(Debug)]
struct DndActions(DndAction);

impl Default for DndActions {
    fn default() -> DndActions {
        DndActions(DndAction::Copy)
    }
}

impl Origin {
    fn types(&self) -> Vec<String> {
        match self {
            Origin::Client(source) => types_of(source),
            Origin::Stage(bundle) => bundle.types(),
        }
    }
}

impl State {
    fn devices_of(&self, id: Option<SurfaceId>) -> Vec<wl_data_device::WlDataDevice> {
        let Some(surface) = id.and_then(|id| self.surface(id)) else { return Vec::new() };
        let client = surface.resource.client();
        self.data.devices.iter().filter(|device| device.client() == client).cloned().collect()
    }

    /// Tells the focused client what both selections hold.
    pub(crate) fn offer_selections(&mut self) {
        for device in self.devices_of(self.seat.focus) {
            self.offer_selection(&device);
        }
        self.offer_primary();
    }

    fn offer_selection(&self, device: &wl_data_device::WlDataDevice) {
        let offer = self.data.selection.clone().and_then(|origin| self.make_offer(device, origin, false));
        device.selection(offer.as_ref());
    }

    fn make_offer(
        &self,
        device: &wl_data_device::WlDataDevice,
        origin: Origin,
        drag: bool,
    ) -> Option<wl_data_offer::WlDataOffer> {
        let types = origin.types();
        let data = Offer { origin, drag };
        let client = device.client()?;
        let offer =
            client.create_resource::<_, _, State>(&self.display, device.version(), Arc::new(data)).ok()?;
        device.data_offer(&offer);
        for name in types {
            offer.offer(name);
        }
        Some(offer)
    }

    /// Replaces the clipboard and tells the one who had it.
    pub(crate) fn set_clipboard(&mut self, origin: Option<Origin>) {
        let before = std::mem::replace(&mut self.data.selection, origin);
        if let Some(Origin::Client(source)) = before {
            source.cancelled();
        }
        for device in self.devices_of(self.seat.focus) {
            self.offer_selection(&device);
        }
    }

    fn start_drag(&mut self, drag: Drag) {
        if let Some(icon) = drag.icon {
            self.set_role(icon, Role::DragIcon);
        }
        self.leave_pointer();
        self.data.drag = Some(drag);
        self.drag_motion();
    }

    /// The pointer moved during a drag.
    pub(crate) fn drag_motion(&mut self) {
        let (x, y) = self.seat.position;
        let to = self.surface_at(x, y).map(|hit| hit.0);
        let Some(drag) = &mut self.data.drag else { return };
        let (from, source) = (drag.target, drag.source.clone());
        if from == to {
            let (Some(id), time) = (to, self.millis()) else { return };
            let (x, y) = self.pointer_on(id);
            self.devices_of(to).iter().for_each(|device| device.motion(time, x, y));
            return;
        }
        (drag.target, drag.accepted, drag.action) = (to, false, DndAction::None);
        self.devices_of(from).iter().for_each(wl_data_device::WlDataDevice::leave);
        let Some(id) = to else { return };
        let serial = self.next_serial();
        let (x, y) = self.pointer_on(id);
        for device in self.devices_of(to) {
            let offer = source.clone().and_then(|it| self.make_offer(&device, Origin::Client(it), true));
            if let (Some(offer), Some(source)) = (&offer, &source)
                && offer.version() >= wl_data_offer::EVT_SOURCE_ACTIONS_SINCE
            {
                offer.source_actions(actions_of(source));
            }
            device.enter(serial, &self.surfaces[&id].resource, x, y, offer.as_ref());
        }
    }

    /// The button was released during a drag.
    pub(crate) fn drop_drag(&mut self) {
        let Some(drag) = self.data.drag.take() else { return };
        let good = drag.accepted && (drag.action != DndAction::None || drag.source.is_none());
        for device in self.devices_of(drag.target) {
            if good {
                device.drop();
            } else {
                device.leave();
            }
        }
        if let Some(source) = &drag.source {
            if good && source.version() >= wl_data_source::EVT_DND_DROP_PERFORMED_SINCE {
                source.dnd_drop_performed();
                self.data.dropped = Some(source.clone());
            } else if !good {
                source.cancelled();
            }
        }
        let dropped_on = drag.target.filter(|_| good);
        self.log.push(StageEvent::DragEnded { dropped_on });
        self.update_pointer_focus();
    }

    fn choose_action(&mut self, offer: &wl_data_offer::WlDataOffer, wanted: DndAction, preferred: DndAction) {
        let Some(drag) = &mut self.data.drag else { return };
        let Some(source) = &drag.source else { return };
        let common = actions_of(source) & wanted;
        let choices = [preferred, DndAction::Copy, DndAction::Move, DndAction::Ask];
        let chosen = choices.into_iter().find(|it| !it.is_empty() && common.contains(*it));
        drag.action = chosen.unwrap_or(DndAction::None);
        offer.action(drag.action);
        if source.version() >= wl_data_source::EVT_ACTION_SINCE {
            source.action(drag.action);
        }
    }
}

impl GlobalDispatch<wl_data_device_manager::WlDataDeviceManager, ()> for State {
    fn bind(
        _: &mut State,
        _: &DisplayHandle,
        _: &Client,
        resource: New<wl_data_device_manager::WlDataDeviceManager>,
        _: &(),
        init: &mut DataInit<'_, State>,
    ) {
        init.init(resource, ());
    }
}

impl Dispatch<wl_data_device_manager::WlDataDeviceManager, ()> for State {
    fn request(
        state: &mut State,
        client: &Client,
        _: &wl_data_device_manager::WlDataDeviceManager,
        request: wl_data_device_manager::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        match request {
            wl_data_device_manager::Request::CreateDataSource { id } => {
                init.init(id, Source::default());
            }
            wl_data_device_manager::Request::GetDataDevice { id, .. } => {
                let device = init.init(id, ());
                state.data.devices.push(device.clone());
                let focus = state.seat.focus.and_then(|id| state.surface(id));
                if focus.is_some_and(|surface| surface.client == number(client)) {
                    state.offer_selection(&device);
                }
            }
            _ => {}
        }
    }
}

impl Dispatch<wl_data_device::WlDataDevice, ()> for State {
    fn request(
        state: &mut State,
        client: &Client,
        device: &wl_data_device::WlDataDevice,
        request: wl_data_device::Request,
        _: &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        let client = number(client);
        match request {
            wl_data_device::Request::SetSelection { source, serial } => {
                let types = source.as_ref().map(types_of).unwrap_or_default();
                let focused = state.seat.focus.and_then(|id| state.surface(id));
                let accepted = state.knows_serial(serial) && focused.is_some_and(|s| s.client == client);
                let clipboard = Clipboard::Regular;
                state.log.push(StageEvent::SetSelection { client, clipboard, types, accepted });
                if accepted {
                    state.set_clipboard(source.map(Origin::Client));
                } else if let Some(source) = source {
                    source.cancelled();
                }
            }
            wl_data_device::Request::StartDrag { source, origin, icon, serial } => {
                let key =
                    |it: &wayland_server::protocol::wl_surface::WlSurface| it.data::<SurfaceId>().copied();
                let accepted = state.knows_serial(serial)
                    && state.seat.button_is_down()
                    && state.seat.pointer_focus == key(&origin)
                    && state.data.drag.is_none();
                state.log.push(StageEvent::DragStarted { client, accepted });
                if accepted {
                    let icon = icon.as_ref().and_then(key);
                    let (target, accepted, action) = (None, false, DndAction::None);
                    state.start_drag(Drag { source, icon, target, accepted, action });
                } else if let Some(source) = source {
                    source.cancelled();
                }
            }
            wl_data_device::Request::Release => state.data.devices.retain(|kept| kept != device),
            _ => {}
        }
    }

    fn destroyed(state: &mut State, _: ClientId, device: &wl_data_device::WlDataDevice, _: &()) {
        state.data.devices.retain(|kept| kept != device);
    }
}

impl Dispatch<wl_data_source::WlDataSource, Source> for State {
    fn request(
        _: &mut State,
        _: &Client,
        _: &wl_data_source::WlDataSource,
        request: wl_data_source::Request,
        data: &Source,
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        match request {
            wl_data_source::Request::Offer { mime_type } => {
                data.types.lock().expect("no thread panics with it").push(mime_type);
            }
            wl_data_source::Request::SetActions { dnd_actions: WEnum::Value(actions) } => {
                data.actions.lock().expect("no thread panics with it").0 = actions;
            }
            _ => {}
        }
    }

    fn destroyed(state: &mut State, _: ClientId, source: &wl_data_source::WlDataSource, _: &Source) {
        if matches!(&state.data.selection, Some(Origin::Client(kept)) if kept == source) {
            state.set_clipboard(None);
        }
        if state.data.drag.as_ref().is_some_and(|drag| drag.source.as_ref() == Some(source)) {
            let drag = state.data.drag.take().expect("looked at above");
            state.devices_of(drag.target).iter().for_each(wl_data_device::WlDataDevice::leave);
            state.log.push(StageEvent::DragEnded { dropped_on: None });
            state.update_pointer_focus();
        }
    }
}

impl Dispatch<wl_data_offer::WlDataOffer, Arc<Offer>> for State {
    fn request(
        state: &mut State,
        _: &Client,
        resource: &wl_data_offer::WlDataOffer,
        request: wl_data_offer::Request,
        offer: &Arc<Offer>,
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        match (request, &offer.origin) {
            (wl_data_offer::Request::Receive { mime_type, fd }, Origin::Client(source)) => {
                use std::os::fd::AsFd;
                source.send(mime_type, fd.as_fd());
            }
            (wl_data_offer::Request::Receive { mime_type, fd }, Origin::Stage(bundle)) => {
                pipe::write(bundle.clone(), mime_type, fd);
            }
            (wl_data_offer::Request::Accept { mime_type, .. }, Origin::Client(source)) if offer.drag => {
                if let Some(drag) = &mut state.data.drag {
                    drag.accepted = mime_type.is_some();
                    source.target(mime_type);
                }
            }
            (wl_data_offer::Request::SetActions { dnd_actions, preferred_action }, _) if offer.drag => {
                let value = |it: WEnum<DndAction>| it.into_result().unwrap_or(DndAction::None);
                state.choose_action(resource, value(dnd_actions), value(preferred_action));
            }
            (wl_data_offer::Request::Finish, _) if offer.drag => {
                if let Some(source) = state.data.dropped.take() {
                    source.dnd_finished();
                }
            }
            _ => {}
        }
    }
}

fn types_of(source: &wl_data_source::WlDataSource) -> Vec<String> {
    source
        .data::<Source>()
        .map(|it| it.types.lock().expect("no thread panics with it").clone())
        .unwrap_or_default()
}

fn actions_of(source: &wl_data_source::WlDataSource) -> DndAction {
    let actions = source.data::<Source>().map(|it| it.actions.lock().expect("no thread panics with it").0);
    actions.unwrap_or(DndAction::None)
}
