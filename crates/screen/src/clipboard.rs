//! What is copied at the screen can be pasted here, and the other way round; the primary selection, too.
//!
//! No byte of it passes through this process: a program that wants to paste brings a pipe, whose end goes to the one
//! that has copied. What is offered for a screen's sake has a type of its own beside the others, and a source goes
//! only when it is told that another has taken its place: two that cross must not end each other. Invariant: a
//! selection that was made for this screen's sake is not taken for somebody else's, so none goes round in a circle.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

use wayland_client::Proxy;
use wayland_client::backend::ObjectId;
use wayland_client::protocol::wl_data_device::{self, WlDataDevice};
use wayland_client::protocol::wl_data_device_manager::WlDataDeviceManager;
use wayland_client::protocol::wl_data_offer::{self, WlDataOffer};
use wayland_client::protocol::wl_data_source::{self, WlDataSource};
use wayland_protocols::wp::primary_selection::zv1::client::{
    zwp_primary_selection_device_manager_v1::ZwpPrimarySelectionDeviceManagerV1,
    zwp_primary_selection_device_v1::{self, ZwpPrimarySelectionDeviceV1},
    zwp_primary_selection_offer_v1::{self, ZwpPrimarySelectionOfferV1},
    zwp_primary_selection_source_v1::{self, ZwpPrimarySelectionSourceV1},
};
use wayland_protocols_wlr::data_control::v1::client::{
    zwlr_data_control_device_v1::{self, ZwlrDataControlDeviceV1},
    zwlr_data_control_manager_v1::ZwlrDataControlManagerV1,
    zwlr_data_control_offer_v1::{self, ZwlrDataControlOfferV1},
    zwlr_data_control_source_v1::{self, ZwlrDataControlSourceV1},
};

use crate::inbox::{Event, Kind, Queue, Said};
use crate::there::There;
use crate::window::Window;

/// Both selections.
#[derive(Debug)]
pub(crate) struct Clipboards {
    there: Option<(ZwlrDataControlManagerV1, ZwlrDataControlDeviceV1)>,
    clipboard_here: Option<(WlDataDeviceManager, WlDataDevice)>,
    primary_here: Option<(ZwpPrimarySelectionDeviceManagerV1, ZwpPrimarySelectionDeviceV1)>,
    clipboard: Selection,
    primary: Selection,
    /// Types of offers that have been told and not used.
    types: HashMap<ObjectId, Vec<String>>,
    /// The type that marks what is offered for this screen, by this process or for another window of it.
    mark: String,
    /// What is dragged over the window, which the screen cannot take.
    drag: Option<HereOffer>,
    /// The last thing that the user did in the window.
    serial: Option<u32>,
}

/// One selection.
#[derive(Debug, Default)]
struct Selection {
    /// Of somebody here, and what offers it there.
    from_here: Option<HereOffer>,
    to_there: Option<ZwlrDataControlSourceV1>,
    /// Of somebody there, and what offers it here.
    from_there: Option<ZwlrDataControlOfferV1>,
    to_here: Option<HereSource>,
}

#[derive(Debug)]
enum HereOffer {
    Clipboard(WlDataOffer),
    Primary(ZwpPrimarySelectionOfferV1),
}

#[derive(Debug, PartialEq, Eq)]
enum HereSource {
    Clipboard(WlDataSource),
    Primary(ZwpPrimarySelectionSourceV1),
}

impl HereOffer {
    fn id(&self) -> ObjectId {
        match self {
            Self::Clipboard(offer) => offer.id(),
            Self::Primary(offer) => offer.id(),
        }
    }

    fn receive(&self, kind: String, pipe: &OwnedFd) {
        match self {
            Self::Clipboard(offer) => offer.receive(kind, pipe.as_fd()),
            Self::Primary(offer) => offer.receive(kind, pipe.as_fd()),
        }
    }
}

impl Drop for HereOffer {
    fn drop(&mut self) {
        match self {
            Self::Clipboard(offer) => offer.destroy(),
            Self::Primary(offer) => offer.destroy(),
        }
    }
}

impl HereSource {
    fn destroy(&self) {
        match self {
            Self::Clipboard(source) => source.destroy(),
            Self::Primary(source) => source.destroy(),
        }
    }
}

impl Clipboards {
    pub(crate) fn new(there: &There, window: &Window) -> Self {
        let of_there = there
            .clipboards
            .as_ref()
            .map(|manager| (manager.clone(), manager.get_data_device(&there.seat, &there.queue, ())));
        let clipboard = window
            .clipboards
            .as_ref()
            .map(|manager| (manager.clone(), manager.get_data_device(&window.seat, &window.queue, ())));
        let primary = window
            .primaries
            .as_ref()
            .map(|manager| (manager.clone(), manager.get_device(&window.seat, &window.queue, ())));
        Self {
            there: of_there,
            clipboard_here: clipboard,
            primary_here: primary,
            clipboard: Selection::default(),
            primary: Selection::default(),
            types: HashMap::new(),
            mark: format!("{MARK}{}", there.id),
            drag: None,
            serial: None,
        }
    }

    /// The user may have done something in the window; without that nothing may be put into a clipboard here.
    pub(crate) fn acted(&mut self, serial: Option<u32>) {
        self.serial = serial.or(self.serial);
    }

    /// Hears what is said of selections; gives back what is not.
    pub(crate) fn hear(&mut self, event: Event, (there, session): (&Queue, &Queue)) -> Option<Event> {
        match event {
            Event::DataDevice(Said { event, .. }) => self.hear_device(event, there),
            Event::PrimaryDevice(Said { event, .. }) => self.hear_primary(event, there),
            Event::ControlDevice(Said { event, .. }) => self.hear_control(event, session),
            Event::DataOffer(Said { object, event: wl_data_offer::Event::Offer { mime_type }, .. }) => {
                self.has_type(&object.id(), mime_type);
            }
            Event::PrimaryOffer(Said {
                object,
                event: zwp_primary_selection_offer_v1::Event::Offer { mime_type },
                ..
            }) => {
                self.has_type(&object.id(), mime_type);
            }
            Event::ControlOffer(Said {
                object,
                event: zwlr_data_control_offer_v1::Event::Offer { mime_type },
                ..
            }) => {
                self.has_type(&object.id(), mime_type);
            }
            Event::DataSource(Said { object, event, .. }) => {
                let source = HereSource::Clipboard(object);
                match event {
                    wl_data_source::Event::Send { mime_type, fd } => {
                        self.clipboard.pasted_here(&source, mime_type, &fd);
                    }
                    wl_data_source::Event::Cancelled => self.clipboard.cancelled_here(&source),
                    _ => {}
                }
            }
            Event::PrimarySource(Said { object, event, .. }) => {
                let source = HereSource::Primary(object);
                match event {
                    zwp_primary_selection_source_v1::Event::Send { mime_type, fd } => {
                        self.primary.pasted_here(&source, mime_type, &fd);
                    }
                    zwp_primary_selection_source_v1::Event::Cancelled => self.primary.cancelled_here(&source),
                    _ => {}
                }
            }
            Event::ControlSource(Said { object, event, data }) => self.of(data).hear_source(&object, event),
            event => return Some(event),
        }
        None
    }

    fn hear_device(&mut self, event: wl_data_device::Event, there: &Queue) {
        use wl_data_device::Event;
        match event {
            Event::DataOffer { id } => self.offered(id.id()),
            Event::Selection { id } => self.copied_here(Kind::Clipboard, id.map(HereOffer::Clipboard), there),
            Event::Enter { id: Some(offer), .. } => {
                self.types.remove(&offer.id());
                self.drag = Some(HereOffer::Clipboard(offer));
            }
            Event::Leave | Event::Drop => self.drag = None,
            _ => {}
        }
    }

    fn hear_primary(&mut self, event: zwp_primary_selection_device_v1::Event, there: &Queue) {
        use zwp_primary_selection_device_v1::Event;
        match event {
            Event::DataOffer { offer } => self.offered(offer.id()),
            Event::Selection { id } => self.copied_here(Kind::Primary, id.map(HereOffer::Primary), there),
            _ => {}
        }
    }

    fn hear_control(&mut self, event: zwlr_data_control_device_v1::Event, session: &Queue) {
        use zwlr_data_control_device_v1::Event;
        match event {
            Event::DataOffer { id } => self.offered(id.id()),
            Event::Selection { id } => self.copied_there(Kind::Clipboard, id, session),
            Event::PrimarySelection { id } => self.copied_there(Kind::Primary, id, session),
            Event::Finished => {
                if let Some((_, device)) = self.there.take() {
                    device.destroy();
                }
            }
            _ => {}
        }
    }

    fn of(&mut self, kind: Kind) -> &mut Selection {
        match kind {
            Kind::Clipboard => &mut self.clipboard,
            Kind::Primary => &mut self.primary,
        }
    }

    /// The types of an offer of somebody else, with the mark; none if it is for this screen's own sake.
    fn take_types(&mut self, offer: &ObjectId) -> Option<Vec<String>> {
        let mut types = self.types.remove(offer)?;
        if types.contains(&self.mark) {
            return None;
        }
        // First, so that no limit on the way cuts it off.
        types.insert(0, self.mark.clone());
        Some(types)
    }

    fn offered(&mut self, offer: ObjectId) {
        if self.types.len() < MAX_OFFERS {
            self.types.insert(offer, Vec::new());
        }
    }

    fn has_type(&mut self, offer: &ObjectId, kind: String) {
        if let Some(types) = self.types.get_mut(offer)
            && (types.len() < MAX_TYPES || kind == self.mark)
        {
            types.push(kind);
        }
    }

    /// What is copied here has changed.
    fn copied_here(&mut self, kind: Kind, offer: Option<HereOffer>, queue: &Queue) {
        let types = offer.as_ref().map(|offer| self.take_types(&offer.id()));
        let Some((manager, device)) = self.there.clone() else { return };
        let selection = self.of(kind);
        match types {
            Some(Some(types)) => {
                let source = manager.create_data_source(queue, kind);
                types.into_iter().for_each(|kind| source.offer(kind));
                match kind {
                    Kind::Clipboard => device.set_selection(Some(&source)),
                    Kind::Primary if device.version() >= 2 => device.set_primary_selection(Some(&source)),
                    Kind::Primary => {}
                }
                if let Some(old) = selection.to_there.replace(source) {
                    old.destroy();
                }
                selection.from_here = offer;
            }
            // It is what this process offers.
            Some(None) => {}
            // Nothing is copied here any more. What somebody there has copied stays.
            None => selection.forget_here(),
        }
    }

    /// What is copied there has changed.
    fn copied_there(&mut self, kind: Kind, offer: Option<ZwlrDataControlOfferV1>, queue: &Queue) {
        let types = offer.as_ref().map(|offer| self.take_types(&offer.id()));
        match (types, offer) {
            (Some(Some(types)), Some(offer)) => {
                if let Some(old) = self.of(kind).from_there.replace(offer) {
                    old.destroy();
                }
                let source = self.offer_here(kind, types, queue);
                self.of(kind).withdraw_here();
                self.of(kind).to_here = source;
            }
            (_, Some(offer)) => offer.destroy(),
            (_, None) => {
                let selection = self.of(kind);
                selection.withdraw_here();
                if let Some(old) = selection.from_there.take() {
                    old.destroy();
                }
            }
        }
    }

    /// Offers here what was copied there. What was copied before the user has come stays there.
    fn offer_here(&self, kind: Kind, types: Vec<String>, queue: &Queue) -> Option<HereSource> {
        let serial = self.serial?;
        Some(match kind {
            Kind::Clipboard => {
                let (manager, device) = self.clipboard_here.as_ref()?;
                let source = manager.create_data_source(queue, ());
                types.into_iter().for_each(|kind| source.offer(kind));
                device.set_selection(Some(&source), serial);
                HereSource::Clipboard(source)
            }
            Kind::Primary => {
                let (manager, device) = self.primary_here.as_ref()?;
                let source = manager.create_source(queue, ());
                types.into_iter().for_each(|kind| source.offer(kind));
                device.set_selection(Some(&source), serial);
                HereSource::Primary(source)
            }
        })
    }
}

impl Selection {
    /// What was copied here is not offered there any more.
    fn forget_here(&mut self) {
        self.from_here = None;
        if let Some(source) = self.to_there.take() {
            source.destroy();
        }
    }

    /// What was copied there is not offered here any more.
    fn withdraw_here(&mut self) {
        if let Some(source) = self.to_here.take() {
            source.destroy();
        }
    }

    /// Somebody here pastes what was copied there.
    fn pasted_here(&self, source: &HereSource, kind: String, pipe: &OwnedFd) {
        if self.to_here.as_ref() == Some(source)
            && let Some(offer) = &self.from_there
        {
            offer.receive(kind, pipe.as_fd());
        }
    }

    /// Somebody else has copied something here.
    fn cancelled_here(&mut self, source: &HereSource) {
        if self.to_here.as_ref() == Some(source) {
            self.withdraw_here();
        }
    }

    /// What is said there of what this process offers.
    fn hear_source(&mut self, source: &ZwlrDataControlSourceV1, event: zwlr_data_control_source_v1::Event) {
        use zwlr_data_control_source_v1::Event;
        if self.to_there.as_ref() != Some(source) {
            return;
        }
        match event {
            Event::Send { mime_type, fd } => {
                if let Some(offer) = &self.from_here {
                    offer.receive(mime_type, &fd);
                }
            }
            Event::Cancelled => {
                self.to_there = None;
                source.destroy();
            }
            _ => {}
        }
    }
}

/// Offers that are told and not used; a well-behaved compositor has two.
const MAX_OFFERS: usize = 16;

/// What the type begins with that marks offers for a screen's sake; the rest tells which.
const MARK: &str = "application/x-wayferry-screen-";

/// Types of one offer; what is beyond is not offered on.
const MAX_TYPES: usize = 128;
