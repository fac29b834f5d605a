//! What the policy table says, in the terms of the display side.
//!
//! The table speaks of both sides; these are the few questions that this side asks. No state, no decisions beyond
//! the table but those named here.

use wayland_backend::protocol::Interface;

use crate::policy::{self, Class, Home};

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// On its own in the channel.
    Channel,
    /// In the state of a unit.
    Unit,
}

/// Whether the app side may send this request at this place.
pub(super) fn crosses(interface: &Interface, opcode: u16, place: Place) -> bool {
    let rule = policy::request(interface.name, opcode);
    if rule.sent_on {
        return place == Place::Channel;
    }
    if policy::home(interface.name) != Home::Both {
        return false;
    }
    match place {
        Place::Channel => {
            matches!(rule.class, Class::Forward | Class::Reply | Class::OneShot | Class::Destructor)
        }
        Place::Unit => matches!(rule.class, Class::State | Class::ParentState),
    }
}

/// Whether the display side keeps an event to itself.
pub(super) fn is_consumed(interface: &Interface, opcode: u16) -> bool {
    use Class::{Local, LocalDestructor, Refused};
    matches!(policy::event(interface.name, opcode).class, Local | LocalDestructor | Refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{interface, request_opcode};

    fn place_of(interface_name: &str, request: &str) -> Option<Place> {
        let interface = interface(interface_name).unwrap();
        let opcode = request_opcode(interface, request).unwrap();
        let at = |place| crosses(interface, opcode, place);
        match (at(Place::Channel), at(Place::Unit)) {
            (true, false) => Some(Place::Channel),
            (false, true) => Some(Place::Unit),
            (false, false) => None,
            (true, true) => panic!("{interface_name}.{request} crosses twice"),
        }
    }

    #[test]
    fn requests_cross_where_the_table_says() {
        for (interface, request, place) in [
            ("wl_surface", "set_input_region", Some(Place::Unit)),
            ("wl_subsurface", "set_position", Some(Place::Unit)),
            ("xdg_surface", "ack_configure", Some(Place::Unit)),
            ("xdg_toplevel", "set_title", Some(Place::Channel)),
            ("wl_surface", "destroy", Some(Place::Channel)),
            ("wl_pointer", "set_cursor", Some(Place::Channel)),
            ("wl_display", "sync", Some(Place::Channel)),
            ("wl_surface", "attach", None),
            ("wl_surface", "frame", None),
            ("wl_surface", "commit", None),
            ("wl_shm", "create_pool", None),
            ("wl_display", "get_registry", None),
            ("xdg_wm_base", "pong", None),
            ("xdg_wm_base", "create_positioner", None),
            ("wp_presentation", "feedback", None),
        ] {
            assert_eq!(place_of(interface, request), place, "{interface}.{request}");
        }
    }
}
