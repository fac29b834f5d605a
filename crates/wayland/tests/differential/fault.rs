//! Faults to be planted: each spoils what crosses between the halves, or between the display half and the compositor.
//!
//! They stand for what a proxy may get wrong. The product knows nothing of them: an oracle that finds none of these
//! would find nothing.

use std::collections::HashMap;

use wayferry_wayland::message::{Request, ToApp, ToDisplay, Unit, UnitContent, WireArg, WireId};
use wayferry_wayland::tables;
use wayferry_wayland::wire::RawMessage;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// A commit folds into the next without its offset.
    OffsetLost,
    TransformLost,
    ScaleLost,
    DestinationLost,
    SourceLost,
    OpaqueRegionLost,
    InputRegionLost,
    GeometryLost,
    SmallestSizeLost,
    AcknowledgementLost,
    PositionLost,
    StackingReversed,
    /// A stacking request is forgotten.
    StackingLost,
    DesynchronisationLost,
    /// A synchronised child's commit comes behind the commit that it is for.
    ChildBehind,
    /// A destroyed child's commit is cut out of its parent's unit.
    ChildForgotten,
    ContentKept,
    UnmapLost,
    /// Every fifth commit goes missing.
    CommitLost,
    DestroyEarly,
    PopupEarly,
    TitleLostAfterUnmap,
    ApplicationIdLost,
    ParentLost,
    PopupMoved,
    GrabLost,
    CursorLost,
    SelectionLost,
    BufferOfAnother,
    DamageLost,
    DamageShifted,
    ConfigureLost,
    DismissalLost,
    KeyDoubled,
    KeyLost,
    ButtonsExchanged,
    MotionMoved,
    FocusLost,
    CancellationLost,
    OfferLost,
    OutputStale,
    /// A child is adopted before what its synchronised parent had committed.
    AdoptionEarly,
    /// A viewport goes before what its synchronised surface had committed.
    ViewportGoneEarly,
    /// What a synchronised parent had committed of its child comes without the pixels of then.
    CachedContentKept,
}

impl Fault {
    /// What an oracle must find.
    pub(crate) const ALL: [Self; 44] = [
        Self::OffsetLost,
        Self::TransformLost,
        Self::ScaleLost,
        Self::DestinationLost,
        Self::SourceLost,
        Self::OpaqueRegionLost,
        Self::InputRegionLost,
        Self::GeometryLost,
        Self::SmallestSizeLost,
        Self::AcknowledgementLost,
        Self::PositionLost,
        Self::StackingReversed,
        Self::StackingLost,
        Self::DesynchronisationLost,
        Self::ChildBehind,
        Self::ChildForgotten,
        Self::ContentKept,
        Self::UnmapLost,
        Self::CommitLost,
        Self::DestroyEarly,
        Self::PopupEarly,
        Self::TitleLostAfterUnmap,
        Self::ApplicationIdLost,
        Self::ParentLost,
        Self::PopupMoved,
        Self::GrabLost,
        Self::CursorLost,
        Self::SelectionLost,
        Self::BufferOfAnother,
        Self::DamageLost,
        Self::DamageShifted,
        Self::ConfigureLost,
        Self::DismissalLost,
        Self::KeyDoubled,
        Self::KeyLost,
        Self::ButtonsExchanged,
        Self::MotionMoved,
        Self::FocusLost,
        Self::CancellationLost,
        Self::OfferLost,
        Self::OutputStale,
        Self::AdoptionEarly,
        Self::ViewportGoneEarly,
        Self::CachedContentKept,
    ];
}

/// A fault at work.
pub(crate) struct Planted {
    pub(crate) fault: Fault,
    interfaces: HashMap<WireId, &'static str>,
    /// Surfaces that are synchronised by themselves, by their `wl_subsurface`.
    synchronised: HashMap<WireId, WireId>,
    /// What waits to be passed by the next message.
    waiting: Option<Vec<u8>>,
    unmapped: bool,
    count: u32,
    /// Whose buffer was attached before.
    attached: Option<u32>,
}

impl Planted {
    pub(crate) fn new(fault: Fault) -> Self {
        let interfaces = HashMap::from([(WireId::DISPLAY, "wl_display")]);
        let synchronised = HashMap::new();
        Self { fault, interfaces, synchronised, waiting: None, unmapped: false, count: 0, attached: None }
    }

    /// What becomes of a message to the display half.
    pub(crate) fn down(&mut self, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let message = ToDisplay::decode(&bytes).expect("what a half sends can be read");
        match message {
            ToDisplay::Bind { ref interface, id, .. } => {
                let name = tables::interface(interface).expect("a global").name;
                self.interfaces.insert(id, name);
                self.passing(bytes, false)
            }
            ToDisplay::Request(request) => self.request(request),
            ToDisplay::Unit(unit) => self.unit(unit),
            _ => self.passing(bytes, false),
        }
    }

    /// A message, before or after what waits.
    fn passing(&mut self, bytes: Vec<u8>, first: bool) -> Vec<Vec<u8>> {
        let waiting = self.waiting.take();
        if first {
            [bytes].into_iter().chain(waiting).collect()
        } else {
            waiting.into_iter().chain([bytes]).collect()
        }
    }

    fn name(&self, request: &Request) -> (&'static str, &'static str) {
        let Some(name) = self.interfaces.get(&request.object).copied() else { return ("", "") };
        let interface = tables::interface(name).expect("known");
        (name, interface.requests[usize::from(request.opcode)].name)
    }

    fn request(&mut self, mut request: Request) -> Vec<Vec<u8>> {
        let name = self.name(&request);
        if let Some(interface) = tables::interface(name.0) {
            let desc = &interface.requests[usize::from(request.opcode)];
            for arg in &request.args {
                if let (WireArg::NewId(id), Some(child)) = (arg, desc.child_interface) {
                    self.interfaces.insert(*id, child.name);
                }
            }
        }
        self.note_tree(name, &request);
        let lost = match (self.fault, name) {
            (Fault::TitleLostAfterUnmap, ("xdg_toplevel", "set_title")) => self.unmapped,
            (Fault::ApplicationIdLost, ("xdg_toplevel", "set_app_id"))
            | (Fault::ParentLost, ("xdg_toplevel", "set_parent"))
            | (Fault::GrabLost, ("xdg_popup", "grab"))
            | (Fault::CursorLost, ("wl_pointer", "set_cursor"))
            | (Fault::SelectionLost, ("wl_data_device", "set_selection"))
            | (Fault::DesynchronisationLost, ("wl_subsurface", "set_desync")) => true,
            _ => false,
        };
        if lost {
            return self.waiting.take().into_iter().collect();
        }
        if let (Fault::PopupMoved, ("xdg_surface", "get_popup")) = (self.fault, name) {
            for arg in &mut request.args {
                if let WireArg::Positioner(positioner) = arg {
                    positioner.offset = Some((1, 1));
                }
            }
        }
        let first = match self.fault {
            Fault::DestroyEarly => {
                matches!(name, ("wl_surface" | "wl_subsurface" | "xdg_toplevel", "destroy"))
            }
            Fault::PopupEarly => name.1 == "get_popup",
            Fault::AdoptionEarly => name.1 == "get_subsurface",
            Fault::ViewportGoneEarly => name == ("wp_viewport", "destroy"),
            _ => false,
        };
        self.passing(ToDisplay::Request(request).encode(), first)
    }

    fn note_tree(&mut self, name: (&str, &str), request: &Request) {
        match (name, &request.args[..]) {
            ((_, "get_subsurface"), [WireArg::NewId(role), WireArg::Object(child), _]) => {
                self.synchronised.insert(*role, *child);
            }
            (("wl_subsurface", "set_desync" | "destroy"), _) => {
                self.synchronised.remove(&request.object);
            }
            _ => {}
        }
    }

    fn unit(&mut self, mut unit: Unit) -> Vec<Vec<u8>> {
        self.count += 1;
        self.unmapped |= unit.content == UnitContent::None;
        self.spoil(&mut unit);
        if self.fault == Fault::CommitLost && self.count.is_multiple_of(5) {
            return self.waiting.take().into_iter().collect();
        }
        let is_ahead = self.synchronised.values().any(|surface| *surface == unit.surface);
        if is_ahead && self.fault == Fault::CachedContentKept {
            unit.children.iter_mut().for_each(|child| child.content = UnitContent::Keep);
        }
        if self.fault == Fault::ChildBehind {
            let children = std::mem::take(&mut unit.children);
            let parts = [unit].into_iter().chain(children);
            return parts.map(|unit| ToDisplay::Unit(unit).encode()).collect();
        }
        let bytes = ToDisplay::Unit(unit).encode();
        let passed = match self.fault {
            Fault::DestroyEarly | Fault::PopupEarly => true,
            Fault::AdoptionEarly | Fault::ViewportGoneEarly => is_ahead,
            _ => false,
        };
        if passed {
            return self.waiting.replace(bytes).into_iter().collect();
        }
        self.passing(bytes, false)
    }

    fn spoil(&mut self, unit: &mut Unit) {
        unit.children.iter_mut().for_each(|child| self.spoil(child));
        let lost = match self.fault {
            Fault::TransformLost => ("wl_surface", "set_buffer_transform"),
            Fault::ScaleLost => ("wl_surface", "set_buffer_scale"),
            Fault::DestinationLost => ("wp_viewport", "set_destination"),
            Fault::SourceLost => ("wp_viewport", "set_source"),
            Fault::OpaqueRegionLost => ("wl_surface", "set_opaque_region"),
            Fault::InputRegionLost => ("wl_surface", "set_input_region"),
            Fault::GeometryLost => ("xdg_surface", "set_window_geometry"),
            Fault::SmallestSizeLost => ("xdg_toplevel", "set_min_size"),
            Fault::AcknowledgementLost => ("xdg_surface", "ack_configure"),
            Fault::PositionLost => ("wl_subsurface", "set_position"),
            _ => ("", ""),
        };
        let mut state = std::mem::take(&mut unit.state);
        state.retain(|request| self.name(request) != lost);
        if self.fault == Fault::StackingLost {
            state.retain(|request| !self.name(request).1.starts_with("place_"));
        }
        for request in &mut state {
            if let (Fault::StackingReversed, (interface, "place_above" | "place_below")) =
                (self.fault, self.name(request))
            {
                let interface = tables::interface(interface).expect("known");
                let above = tables::request_opcode(interface, "place_above").expect("a request");
                let below = tables::request_opcode(interface, "place_below").expect("a request");
                request.opcode = above + below - request.opcode;
            }
        }
        unit.state = state;
        match self.fault {
            Fault::OffsetLost => unit.offset = (0, 0),
            Fault::ChildForgotten => unit.children.truncate(unit.children.len().saturating_sub(1)),
            Fault::ContentKept if self.count.is_multiple_of(4) => {
                if let UnitContent::Update(_) = unit.content {
                    unit.content = UnitContent::Keep;
                }
            }
            Fault::UnmapLost if unit.content == UnitContent::None => unit.content = UnitContent::Keep,
            _ => {}
        }
    }

    /// What becomes of a message to the app half.
    pub(crate) fn up(&mut self, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let Ok(ToApp::Event(event)) = ToApp::decode(&bytes) else { return vec![bytes] };
        let Some(name) = self.interfaces.get(&event.object).copied() else { return vec![bytes] };
        let interface = tables::interface(name).expect("known");
        match (self.fault, name, interface.events[usize::from(event.opcode)].name) {
            (Fault::ConfigureLost, "xdg_surface", "configure") => {
                self.count += 1;
                if self.count.is_multiple_of(2) { vec![] } else { vec![bytes] }
            }
            (Fault::DismissalLost, "xdg_popup", "popup_done")
            | (Fault::FocusLost, "wl_keyboard", "enter")
            | (Fault::CancellationLost, "wl_data_source", "cancelled")
            | (Fault::OfferLost, "wl_data_device", "selection") => vec![],
            (Fault::KeyDoubled, "wl_keyboard", "key") => vec![bytes.clone(), bytes],
            (Fault::KeyLost, "wl_keyboard", "key") => {
                self.count += 1;
                if self.count.is_multiple_of(3) { vec![] } else { vec![bytes] }
            }
            (Fault::ButtonsExchanged, "wl_pointer", "button") => match self.waiting.take() {
                Some(waiting) => vec![bytes, waiting],
                None => {
                    self.waiting = Some(bytes);
                    vec![]
                }
            },
            (Fault::MotionMoved, "wl_pointer", "motion") => {
                let mut event = event;
                if let Some(WireArg::Fixed(x)) = event.args.get_mut(1) {
                    *x += 1;
                }
                vec![ToApp::Event(event).encode()]
            }
            _ => vec![bytes],
        }
    }

    /// What becomes of a request to the compositor.
    pub(crate) fn at_compositor(&mut self, interface: &str, request: &str, raw: &mut RawMessage) -> bool {
        match (self.fault, interface, request) {
            (Fault::BufferOfAnother, "wl_surface", "attach") => {
                let buffer = u32::from_ne_bytes(raw.body[..4].try_into().expect("a word"));
                if buffer != 0 {
                    let before = self.attached.replace(buffer).unwrap_or(buffer);
                    raw.body[..4].copy_from_slice(&before.to_ne_bytes());
                }
                true
            }
            (Fault::DamageLost, "wl_surface", "damage_buffer") => {
                self.count += 1;
                !self.count.is_multiple_of(2)
            }
            (Fault::DamageShifted, "wl_surface", "damage_buffer") => {
                let x = i32::from_ne_bytes(raw.body[..4].try_into().expect("a word"));
                raw.body[..4].copy_from_slice(&(x + 1).to_ne_bytes());
                true
            }
            _ => true,
        }
    }
}
