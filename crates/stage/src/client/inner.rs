//! A client's state and its handlers of events: they note what happened and decide nothing but the obvious
//! (acknowledge a configure, answer a ping, serve what was copied).

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use wayland_client::protocol::{
    wl_buffer, wl_callback, wl_compositor, wl_data_device, wl_data_device_manager, wl_data_offer,
    wl_data_source, wl_keyboard, wl_output, wl_pointer, wl_region, wl_registry, wl_seat, wl_shm, wl_shm_pool,
    wl_subcompositor, wl_subsurface, wl_surface,
};
use wayland_client::{Connection, Dispatch, QueueHandle, WEnum, delegate_noop, event_created_child};
use wayland_protocols::wp::primary_selection::zv1::client::{
    zwp_primary_selection_device_manager_v1, zwp_primary_selection_device_v1, zwp_primary_selection_offer_v1,
    zwp_primary_selection_source_v1,
};
use wayland_protocols::wp::text_input::zv3::client::{zwp_text_input_manager_v3, zwp_text_input_v3};
use wayland_protocols::wp::viewporter::client::{wp_viewport, wp_viewporter};
use wayland_protocols::xdg::shell::client::{
    xdg_popup, xdg_positioner, xdg_surface, xdg_toplevel, xdg_wm_base,
};

use super::buffer::{Slot, SlotOf};
use super::counts::Counts;
use crate::compositor::{Clipboard, Rect};

/// A surface of a client, of any role; named by its place in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pane(pub(crate) usize);

/// Something that happened to a client, in the order in which it came.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Input {
    /// A window or popup was configured; the size is 0 × 0 where the client may choose. It is acknowledged.
    Configure {
        /// Which.
        pane: Pane,
        /// The size asked for.
        size: (i32, i32),
    },
    /// A window was asked to close.
    Close {
        /// Which.
        pane: Pane,
    },
    /// A popup was sent away.
    PopupDone {
        /// Which.
        pane: Pane,
    },
    /// A frame callback was answered.
    Frame {
        /// Whose.
        pane: Pane,
    },
    /// The keyboard came.
    KeyboardEnter {
        /// To where.
        pane: Option<Pane>,
        /// Keys that were down, evdev codes.
        keys: Vec<u32>,
    },
    /// The keyboard went.
    KeyboardLeave {
        /// From where.
        pane: Option<Pane>,
    },
    /// A key.
    Key {
        /// evdev code.
        code: u32,
        /// Pressed or released.
        pressed: bool,
        /// Serial of the event.
        serial: u32,
    },
    /// Modifiers changed.
    Modifiers {
        /// Bits held down.
        depressed: u32,
        /// Bits locked.
        locked: u32,
    },
    /// The pointer came.
    PointerEnter {
        /// To where.
        pane: Option<Pane>,
        /// Position in surface coordinates.
        position: (f64, f64),
        /// Serial of the event.
        serial: u32,
    },
    /// The pointer went.
    PointerLeave {
        /// From where.
        pane: Option<Pane>,
    },
    /// The pointer moved.
    Motion {
        /// Position in surface coordinates.
        position: (f64, f64),
    },
    /// A pointer button.
    Button {
        /// evdev code.
        code: u32,
        /// Pressed or released.
        pressed: bool,
        /// Serial of the event.
        serial: u32,
    },
    /// The wheel.
    Axis {
        /// Horizontal or vertical.
        horizontal: bool,
        /// How far, in surface coordinates.
        value: f64,
    },
    /// A selection changed.
    Selection {
        /// Which.
        clipboard: Clipboard,
        /// The types offered; empty when there is none.
        types: Vec<String>,
    },
    /// What the client copied was replaced by another's.
    Cancelled {
        /// Which selection.
        clipboard: Clipboard,
    },
    /// An input method committed a text.
    Text {
        /// The text.
        text: String,
    },
    /// A drag came over a surface of the client.
    DragEnter {
        /// Which.
        pane: Option<Pane>,
        /// The types offered.
        types: Vec<String>,
    },
    /// A drag went.
    DragLeave,
    /// Something was dropped on the client.
    Drop,
    /// What a drag of the client's own is over would take it.
    DragAccepted,
    /// A drag of the client's own was dropped and accepted.
    Dropped,
    /// The receiver of a drag of the client's own has all it wants.
    DragFinished,
    /// A drag of the client's own came to nothing.
    DragCancelled,
}

/// A surface and what belongs to it.
pub(crate) struct PaneState {
    pub(crate) surface: wl_surface::WlSurface,
    pub(crate) role: Role,
    pub(crate) viewport: Option<wp_viewport::WpViewport>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) buffers: usize,
    pub(crate) alpha: bool,
    /// Last size asked for by a configure.
    pub(crate) size: (i32, i32),
    pub(crate) place: Rect,
    pub(crate) configures: u64,
    pub(crate) frame_pending: bool,
    pub(crate) closed: bool,
}

/// What a surface is.
pub(crate) enum Role {
    Bare,
    Window { xdg: xdg_surface::XdgSurface, toplevel: xdg_toplevel::XdgToplevel },
    Popup { xdg: xdg_surface::XdgSurface, popup: xdg_popup::XdgPopup },
    Sub { subsurface: wl_subsurface::WlSubsurface },
    Destroyed,
}

/// A global that the compositor offers.
pub(crate) struct Global {
    pub(crate) name: u32,
    pub(crate) interface: String,
    pub(crate) version: u32,
}

/// See the module.
pub(crate) struct Inner {
    pub(crate) globals: Vec<Global>,
    pub(crate) panes: Vec<PaneState>,
    pub(crate) inputs: VecDeque<Input>,
    pub(crate) counts: Arc<Mutex<Counts>>,
    pub(crate) syncs: u64,
    pub(crate) serial: u32,
    pub(crate) pointer_serial: u32,
    pub(crate) keyboard_focus: Option<Pane>,
    pub(crate) keymap: Option<(OwnedFd, u32)>,
    pub(crate) offers: HashMap<wl_data_offer::WlDataOffer, Vec<String>>,
    pub(crate) selection: Option<wl_data_offer::WlDataOffer>,
    pub(crate) drag: Option<wl_data_offer::WlDataOffer>,
    pub(crate) dropped: Option<wl_data_offer::WlDataOffer>,
    pub(crate) primary_offers: HashMap<PrimaryOffer, Vec<String>>,
    pub(crate) primary: Option<PrimaryOffer>,
    pub(crate) drag_source: Option<wl_data_source::WlDataSource>,
    pub(crate) formats: Vec<wl_shm::Format>,
    pub(crate) seat_capabilities: u32,
}

pub(crate) type PrimaryOffer = zwp_primary_selection_offer_v1::ZwpPrimarySelectionOfferV1;

/// What a source offers: types and their bytes.
pub(crate) type Copied = Arc<Vec<(String, Vec<u8>)>>;

impl Inner {
    pub(crate) fn new(counts: Arc<Mutex<Counts>>) -> Inner {
        Inner {
            globals: Vec::new(),
            panes: Vec::new(),
            inputs: VecDeque::new(),
            counts,
            syncs: 0,
            serial: 0,
            pointer_serial: 0,
            keyboard_focus: None,
            keymap: None,
            offers: HashMap::new(),
            selection: None,
            drag: None,
            dropped: None,
            primary_offers: HashMap::new(),
            primary: None,
            drag_source: None,
            formats: Vec::new(),
            seat_capabilities: 0,
        }
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().expect("no thread panics with it"));
    }

    fn pane_of(&self, surface: &wl_surface::WlSurface) -> Option<Pane> {
        self.panes.iter().position(|pane| pane.surface == *surface).map(Pane)
    }

    fn note(&mut self, input: Input) {
        if self.inputs.len() == INPUTS {
            self.inputs.pop_front();
        }
        self.inputs.push_back(input);
    }

    fn configured(&mut self, pane: Pane) {
        let state = &mut self.panes[pane.0];
        state.configures += 1;
        let size = state.size;
        self.note(Input::Configure { pane, size });
    }
}

/// Writes what was copied to the client that pastes it, beside the script.
fn serve(copied: &Copied, mime_type: &str, pipe: OwnedFd) {
    let Some(index) = copied.iter().position(|(name, _)| name == mime_type) else { return };
    let copied = copied.clone();
    std::thread::spawn(move || {
        // A reader may stop early.
        let _ = File::from(pipe).write_all(&copied[index].1);
    });
}

impl Dispatch<wl_registry::WlRegistry, ()> for Inner {
    fn event(
        inner: &mut Inner,
        _: &wl_registry::WlRegistry,
        event: wl_registry::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        match event {
            wl_registry::Event::Global { name, interface, version } => {
                inner.globals.push(Global { name, interface, version });
            }
            wl_registry::Event::GlobalRemove { name } => inner.globals.retain(|it| it.name != name),
            _ => {}
        }
    }
}

/// A `wl_display.sync` callback.
pub(crate) struct Sync;

impl Dispatch<wl_callback::WlCallback, Sync> for Inner {
    fn event(
        inner: &mut Inner,
        _: &wl_callback::WlCallback,
        _: wl_callback::Event,
        _: &Sync,
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        inner.syncs += 1;
    }
}

impl Dispatch<wl_callback::WlCallback, Pane> for Inner {
    fn event(
        inner: &mut Inner,
        _: &wl_callback::WlCallback,
        _: wl_callback::Event,
        pane: &Pane,
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        inner.panes[pane.0].frame_pending = false;
        inner.count(|counts| counts.callbacks += 1);
        inner.note(Input::Frame { pane: *pane });
    }
}

impl Dispatch<wl_buffer::WlBuffer, SlotOf> for Inner {
    fn event(
        inner: &mut Inner,
        buffer: &wl_buffer::WlBuffer,
        _: wl_buffer::Event,
        pane: &SlotOf,
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        inner.count(|counts| counts.releases += 1);
        for slot in inner.panes[pane.0.0].slots.iter_mut().filter(|slot| slot.buffer == *buffer) {
            slot.busy = false;
        }
    }
}

/// A buffer that a test made by itself.
pub(crate) struct Loose;

impl Dispatch<wl_buffer::WlBuffer, Loose> for Inner {
    fn event(
        inner: &mut Inner,
        _: &wl_buffer::WlBuffer,
        _: wl_buffer::Event,
        _: &Loose,
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        inner.count(|counts| counts.releases += 1);
    }
}

impl Dispatch<xdg_wm_base::XdgWmBase, ()> for Inner {
    fn event(
        _: &mut Inner,
        base: &xdg_wm_base::XdgWmBase,
        event: xdg_wm_base::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        if let xdg_wm_base::Event::Ping { serial } = event {
            base.pong(serial);
        }
    }
}

impl Dispatch<xdg_surface::XdgSurface, Pane> for Inner {
    fn event(
        inner: &mut Inner,
        xdg: &xdg_surface::XdgSurface,
        event: xdg_surface::Event,
        pane: &Pane,
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        if let xdg_surface::Event::Configure { serial } = event {
            xdg.ack_configure(serial);
            inner.configured(*pane);
        }
    }
}

impl Dispatch<xdg_toplevel::XdgToplevel, Pane> for Inner {
    fn event(
        inner: &mut Inner,
        _: &xdg_toplevel::XdgToplevel,
        event: xdg_toplevel::Event,
        pane: &Pane,
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        match event {
            xdg_toplevel::Event::Configure { width, height, .. } => {
                inner.panes[pane.0].size = (width, height);
            }
            xdg_toplevel::Event::Close => {
                inner.panes[pane.0].closed = true;
                inner.note(Input::Close { pane: *pane });
            }
            _ => {}
        }
    }
}

impl Dispatch<xdg_popup::XdgPopup, Pane> for Inner {
    fn event(
        inner: &mut Inner,
        _: &xdg_popup::XdgPopup,
        event: xdg_popup::Event,
        pane: &Pane,
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        match event {
            xdg_popup::Event::Configure { x, y, width, height } => {
                inner.panes[pane.0].size = (width, height);
                inner.panes[pane.0].place = Rect::new(x, y, width, height);
            }
            xdg_popup::Event::PopupDone => {
                inner.panes[pane.0].closed = true;
                inner.note(Input::PopupDone { pane: *pane });
            }
            _ => {}
        }
    }
}

impl Dispatch<wl_shm::WlShm, ()> for Inner {
    fn event(
        inner: &mut Inner,
        _: &wl_shm::WlShm,
        event: wl_shm::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        if let wl_shm::Event::Format { format: WEnum::Value(format) } = event {
            inner.formats.push(format);
        }
    }
}

impl Dispatch<wl_seat::WlSeat, ()> for Inner {
    fn event(
        inner: &mut Inner,
        _: &wl_seat::WlSeat,
        event: wl_seat::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        if let wl_seat::Event::Capabilities { capabilities } = event {
            inner.seat_capabilities = match capabilities {
                WEnum::Value(value) => value.bits(),
                WEnum::Unknown(value) => value,
            };
        }
    }
}

impl Dispatch<wl_keyboard::WlKeyboard, ()> for Inner {
    fn event(
        inner: &mut Inner,
        _: &wl_keyboard::WlKeyboard,
        event: wl_keyboard::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        match event {
            wl_keyboard::Event::Keymap { fd, size, .. } => inner.keymap = Some((fd, size)),
            wl_keyboard::Event::Enter { surface, keys, serial } => {
                inner.serial = serial;
                let pane = inner.pane_of(&surface);
                inner.keyboard_focus = pane;
                let keys = keys.chunks_exact(4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
                let keys = keys.collect();
                inner.note(Input::KeyboardEnter { pane, keys });
            }
            wl_keyboard::Event::Leave { surface, .. } => {
                let pane = inner.pane_of(&surface);
                inner.keyboard_focus = None;
                inner.note(Input::KeyboardLeave { pane });
            }
            wl_keyboard::Event::Key { key, state, serial, .. } => {
                let pressed = state == WEnum::Value(wl_keyboard::KeyState::Pressed);
                inner.serial = serial;
                if pressed {
                    inner.count(|counts| counts.key_presses += 1);
                }
                inner.note(Input::Key { code: key, pressed, serial });
            }
            wl_keyboard::Event::Modifiers { mods_depressed, mods_locked, .. } => {
                inner.note(Input::Modifiers { depressed: mods_depressed, locked: mods_locked });
            }
            _ => {}
        }
    }
}

impl Dispatch<wl_pointer::WlPointer, ()> for Inner {
    fn event(
        inner: &mut Inner,
        _: &wl_pointer::WlPointer,
        event: wl_pointer::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        match event {
            wl_pointer::Event::Enter { serial, surface, surface_x, surface_y } => {
                inner.pointer_serial = serial;
                let pane = inner.pane_of(&surface);
                inner.note(Input::PointerEnter { pane, position: (surface_x, surface_y), serial });
            }
            wl_pointer::Event::Leave { surface, .. } => {
                let pane = inner.pane_of(&surface);
                inner.note(Input::PointerLeave { pane });
            }
            wl_pointer::Event::Motion { surface_x, surface_y, .. } => {
                inner.note(Input::Motion { position: (surface_x, surface_y) });
            }
            wl_pointer::Event::Button { serial, button, state, .. } => {
                inner.serial = serial;
                let pressed = state == WEnum::Value(wl_pointer::ButtonState::Pressed);
                inner.note(Input::Button { code: button, pressed, serial });
            }
            wl_pointer::Event::Axis { axis, value, .. } => {
                let horizontal = axis == WEnum::Value(wl_pointer::Axis::HorizontalScroll);
                inner.note(Input::Axis { horizontal, value });
            }
            _ => {}
        }
    }
}

impl Dispatch<wl_data_device::WlDataDevice, ()> for Inner {
    fn event(
        inner: &mut Inner,
        _: &wl_data_device::WlDataDevice,
        event: wl_data_device::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        match event {
            wl_data_device::Event::DataOffer { id } => {
                inner.offers.insert(id, Vec::new());
            }
            wl_data_device::Event::Selection { id } => {
                if let Some(before) = inner.selection.take() {
                    inner.offers.remove(&before);
                    before.destroy();
                }
                let types = id.as_ref().and_then(|id| inner.offers.get(id)).cloned().unwrap_or_default();
                inner.selection = id;
                inner.note(Input::Selection { clipboard: Clipboard::Regular, types });
            }
            wl_data_device::Event::Enter { serial, surface, id, .. } => {
                let types = id.as_ref().and_then(|id| inner.offers.get(id)).cloned().unwrap_or_default();
                if let Some(offer) = &id {
                    offer.accept(serial, types.first().cloned());
                    let copy = wl_data_device_manager::DndAction::Copy;
                    offer.set_actions(copy, copy);
                }
                inner.drag = id;
                let pane = inner.pane_of(&surface);
                inner.note(Input::DragEnter { pane, types });
            }
            wl_data_device::Event::Leave => {
                if let Some(offer) = inner.drag.take() {
                    inner.offers.remove(&offer);
                    offer.destroy();
                }
                inner.note(Input::DragLeave);
            }
            wl_data_device::Event::Drop => {
                // Some compositors send `leave` after it.
                inner.dropped = inner.drag.take();
                inner.note(Input::Drop);
            }
            _ => {}
        }
    }

    event_created_child!(Inner, wl_data_device::WlDataDevice, [
        wl_data_device::EVT_DATA_OFFER_OPCODE => (wl_data_offer::WlDataOffer, ()),
    ]);
}

impl Dispatch<wl_data_offer::WlDataOffer, ()> for Inner {
    fn event(
        inner: &mut Inner,
        offer: &wl_data_offer::WlDataOffer,
        event: wl_data_offer::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        if let wl_data_offer::Event::Offer { mime_type } = event {
            inner.offers.entry(offer.clone()).or_default().push(mime_type);
        }
    }
}

impl Dispatch<wl_data_source::WlDataSource, Copied> for Inner {
    fn event(
        inner: &mut Inner,
        source: &wl_data_source::WlDataSource,
        event: wl_data_source::Event,
        copied: &Copied,
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        let dragged = inner.drag_source.as_ref() == Some(source);
        match event {
            wl_data_source::Event::Send { mime_type, fd } => serve(copied, &mime_type, fd),
            wl_data_source::Event::Cancelled => {
                source.destroy();
                inner.note(if dragged {
                    Input::DragCancelled
                } else {
                    Input::Cancelled { clipboard: Clipboard::Regular }
                });
            }
            wl_data_source::Event::Action { dnd_action: WEnum::Value(action) } if !action.is_empty() => {
                inner.note(Input::DragAccepted);
            }
            wl_data_source::Event::DndDropPerformed => inner.note(Input::Dropped),
            wl_data_source::Event::DndFinished => {
                source.destroy();
                inner.note(Input::DragFinished);
            }
            _ => {}
        }
    }
}

impl Dispatch<zwp_primary_selection_device_v1::ZwpPrimarySelectionDeviceV1, ()> for Inner {
    fn event(
        inner: &mut Inner,
        _: &zwp_primary_selection_device_v1::ZwpPrimarySelectionDeviceV1,
        event: zwp_primary_selection_device_v1::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        match event {
            zwp_primary_selection_device_v1::Event::DataOffer { offer } => {
                inner.primary_offers.insert(offer, Vec::new());
            }
            zwp_primary_selection_device_v1::Event::Selection { id } => {
                if let Some(before) = inner.primary.take() {
                    inner.primary_offers.remove(&before);
                    before.destroy();
                }
                let types = id.as_ref().and_then(|id| inner.primary_offers.get(id)).cloned();
                inner.primary = id;
                let types = types.unwrap_or_default();
                inner.note(Input::Selection { clipboard: Clipboard::Primary, types });
            }
            _ => {}
        }
    }

    event_created_child!(Inner, zwp_primary_selection_device_v1::ZwpPrimarySelectionDeviceV1, [
        zwp_primary_selection_device_v1::EVT_DATA_OFFER_OPCODE => (PrimaryOffer, ()),
    ]);
}

impl Dispatch<PrimaryOffer, ()> for Inner {
    fn event(
        inner: &mut Inner,
        offer: &PrimaryOffer,
        event: zwp_primary_selection_offer_v1::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        if let zwp_primary_selection_offer_v1::Event::Offer { mime_type } = event {
            inner.primary_offers.entry(offer.clone()).or_default().push(mime_type);
        }
    }
}

impl Dispatch<zwp_primary_selection_source_v1::ZwpPrimarySelectionSourceV1, Copied> for Inner {
    fn event(
        inner: &mut Inner,
        source: &zwp_primary_selection_source_v1::ZwpPrimarySelectionSourceV1,
        event: zwp_primary_selection_source_v1::Event,
        copied: &Copied,
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        match event {
            zwp_primary_selection_source_v1::Event::Send { mime_type, fd } => serve(copied, &mime_type, fd),
            zwp_primary_selection_source_v1::Event::Cancelled => {
                source.destroy();
                inner.note(Input::Cancelled { clipboard: Clipboard::Primary });
            }
            _ => {}
        }
    }
}

impl Dispatch<zwp_text_input_v3::ZwpTextInputV3, ()> for Inner {
    fn event(
        inner: &mut Inner,
        input: &zwp_text_input_v3::ZwpTextInputV3,
        event: zwp_text_input_v3::Event,
        _: &(),
        _: &Connection,
        _: &QueueHandle<Inner>,
    ) {
        match event {
            zwp_text_input_v3::Event::Enter { .. } => {
                input.enable();
                input.commit();
            }
            zwp_text_input_v3::Event::Leave { .. } => {
                input.disable();
                input.commit();
            }
            zwp_text_input_v3::Event::CommitString { text } => {
                inner.note(Input::Text { text: text.unwrap_or_default() });
            }
            _ => {}
        }
    }
}

delegate_noop!(Inner: zwp_text_input_manager_v3::ZwpTextInputManagerV3);
delegate_noop!(Inner: wl_compositor::WlCompositor);
delegate_noop!(Inner: wl_subcompositor::WlSubcompositor);
delegate_noop!(Inner: wl_subsurface::WlSubsurface);
delegate_noop!(Inner: wl_region::WlRegion);
delegate_noop!(Inner: wl_shm_pool::WlShmPool);
delegate_noop!(Inner: wl_data_device_manager::WlDataDeviceManager);
delegate_noop!(Inner: zwp_primary_selection_device_manager_v1::ZwpPrimarySelectionDeviceManagerV1);
delegate_noop!(Inner: wp_viewporter::WpViewporter);
delegate_noop!(Inner: wp_viewport::WpViewport);
delegate_noop!(Inner: xdg_positioner::XdgPositioner);
delegate_noop!(Inner: ignore wl_surface::WlSurface);
delegate_noop!(Inner: ignore wl_output::WlOutput);

/// Inputs kept for a script that does not look at them; the oldest go first.
const INPUTS: usize = 16_384;
