//! Opcodes of the requests that the display side makes on its own account.
//!
//! Opcodes never change once published; a test checks each against the message tables.

use wayland_backend::protocol::Interface;

use crate::tables;
use crate::wire::Arg;

/// The tables of an interface that the display side itself uses.
///
/// # Panics
/// Never for the names in this crate; the test below covers them.
pub(super) fn known(name: &str) -> &'static Interface {
    tables::interface(name).unwrap_or_else(|| panic!("{name} is in the tables"))
}

/// Numbers as arguments.
pub(super) fn ints(values: &[i32]) -> Vec<Arg> {
    values.iter().map(|value| Arg::Int(*value)).collect()
}

pub(crate) const DISPLAY_SYNC: u16 = 0;
pub(crate) const DISPLAY_GET_REGISTRY: u16 = 1;
pub(crate) const REGISTRY_BIND: u16 = 0;
pub(crate) const COMPOSITOR_CREATE_SURFACE: u16 = 0;
pub(crate) const COMPOSITOR_CREATE_REGION: u16 = 1;
pub(crate) const REGION_DESTROY: u16 = 0;
pub(crate) const REGION_ADD: u16 = 1;
pub(crate) const REGION_SUBTRACT: u16 = 2;
pub(crate) const SHM_CREATE_POOL: u16 = 0;
pub(crate) const SHM_POOL_CREATE_BUFFER: u16 = 0;
pub(crate) const SHM_POOL_RESIZE: u16 = 2;
pub(crate) const BUFFER_DESTROY: u16 = 0;
pub(crate) const SURFACE_DESTROY: u16 = 0;
pub(crate) const SURFACE_ATTACH: u16 = 1;
pub(crate) const SURFACE_DAMAGE: u16 = 2;
pub(crate) const SURFACE_FRAME: u16 = 3;
pub(crate) const SURFACE_SET_INPUT_REGION: u16 = 5;
pub(crate) const SURFACE_COMMIT: u16 = 6;
pub(crate) const SURFACE_SET_BUFFER_SCALE: u16 = 8;
pub(crate) const SURFACE_DAMAGE_BUFFER: u16 = 9;
pub(crate) const SURFACE_OFFSET: u16 = 10;
pub(crate) const SUBCOMPOSITOR_GET_SUBSURFACE: u16 = 1;
pub(crate) const SUBSURFACE_DESTROY: u16 = 0;
pub(crate) const SUBSURFACE_SET_POSITION: u16 = 1;
pub(crate) const SUBSURFACE_PLACE_ABOVE: u16 = 2;
pub(crate) const SUBSURFACE_SET_SYNC: u16 = 4;
pub(crate) const SUBSURFACE_SET_DESYNC: u16 = 5;
pub(crate) const VIEWPORTER_GET_VIEWPORT: u16 = 1;
pub(crate) const VIEWPORT_DESTROY: u16 = 0;
pub(crate) const VIEWPORT_SET_DESTINATION: u16 = 2;
pub(crate) const PRESENTATION_FEEDBACK: u16 = 1;
pub(crate) const WM_BASE_CREATE_POSITIONER: u16 = 1;
pub(crate) const WM_BASE_PONG: u16 = 3;
pub(crate) const TOPLEVEL_SET_TITLE: u16 = 2;
pub(crate) const POSITIONER_DESTROY: u16 = 0;
pub(crate) const POSITIONER_SET_SIZE: u16 = 1;
pub(crate) const POSITIONER_SET_ANCHOR_RECT: u16 = 2;
pub(crate) const POSITIONER_SET_ANCHOR: u16 = 3;
pub(crate) const POSITIONER_SET_GRAVITY: u16 = 4;
pub(crate) const POSITIONER_SET_CONSTRAINT_ADJUSTMENT: u16 = 5;
pub(crate) const POSITIONER_SET_OFFSET: u16 = 6;
pub(crate) const POSITIONER_SET_REACTIVE: u16 = 7;
pub(crate) const POSITIONER_SET_PARENT_SIZE: u16 = 8;
pub(crate) const POSITIONER_SET_PARENT_CONFIGURE: u16 = 9;
pub(crate) const DATA_SOURCE_OFFER: u16 = 0;
pub(crate) const DATA_OFFER_RECEIVE: u16 = 1;
pub(crate) const SEAT_GET_KEYBOARD: u16 = 1;
pub(crate) const SEAT_RELEASE: u16 = 3;
pub(crate) const KEYBOARD_RELEASE: u16 = 0;
pub(crate) const OUTPUT_RELEASE: u16 = 0;
pub(crate) const XDG_OUTPUT_DESTROY: u16 = 0;
pub(crate) const XDG_OUTPUT_MANAGER_GET_XDG_OUTPUT: u16 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::interface;

    #[test]
    fn opcodes_are_those_of_the_tables() {
        let expected = [
            ("wl_display", "sync", DISPLAY_SYNC),
            ("wl_display", "get_registry", DISPLAY_GET_REGISTRY),
            ("wl_registry", "bind", REGISTRY_BIND),
            ("wl_compositor", "create_surface", COMPOSITOR_CREATE_SURFACE),
            ("wl_compositor", "create_region", COMPOSITOR_CREATE_REGION),
            ("wl_region", "destroy", REGION_DESTROY),
            ("wl_region", "add", REGION_ADD),
            ("wl_region", "subtract", REGION_SUBTRACT),
            ("wl_shm", "create_pool", SHM_CREATE_POOL),
            ("wl_data_source", "offer", DATA_SOURCE_OFFER),
            ("wl_data_offer", "receive", DATA_OFFER_RECEIVE),
            ("wl_shm_pool", "create_buffer", SHM_POOL_CREATE_BUFFER),
            ("wl_shm_pool", "resize", SHM_POOL_RESIZE),
            ("wl_buffer", "destroy", BUFFER_DESTROY),
            ("wl_surface", "destroy", SURFACE_DESTROY),
            ("wl_surface", "attach", SURFACE_ATTACH),
            ("wl_surface", "damage", SURFACE_DAMAGE),
            ("wl_surface", "frame", SURFACE_FRAME),
            ("wl_surface", "set_input_region", SURFACE_SET_INPUT_REGION),
            ("wl_surface", "commit", SURFACE_COMMIT),
            ("wl_surface", "set_buffer_scale", SURFACE_SET_BUFFER_SCALE),
            ("wl_surface", "damage_buffer", SURFACE_DAMAGE_BUFFER),
            ("wl_surface", "offset", SURFACE_OFFSET),
            ("wl_subcompositor", "get_subsurface", SUBCOMPOSITOR_GET_SUBSURFACE),
            ("wl_subsurface", "destroy", SUBSURFACE_DESTROY),
            ("wl_subsurface", "set_position", SUBSURFACE_SET_POSITION),
            ("wl_subsurface", "place_above", SUBSURFACE_PLACE_ABOVE),
            ("wl_subsurface", "set_sync", SUBSURFACE_SET_SYNC),
            ("wl_subsurface", "set_desync", SUBSURFACE_SET_DESYNC),
            ("wp_viewporter", "get_viewport", VIEWPORTER_GET_VIEWPORT),
            ("wp_viewport", "destroy", VIEWPORT_DESTROY),
            ("wp_viewport", "set_destination", VIEWPORT_SET_DESTINATION),
            ("wp_presentation", "feedback", PRESENTATION_FEEDBACK),
            ("xdg_wm_base", "create_positioner", WM_BASE_CREATE_POSITIONER),
            ("xdg_wm_base", "pong", WM_BASE_PONG),
            ("xdg_toplevel", "set_title", TOPLEVEL_SET_TITLE),
            ("xdg_positioner", "destroy", POSITIONER_DESTROY),
            ("xdg_positioner", "set_size", POSITIONER_SET_SIZE),
            ("xdg_positioner", "set_anchor_rect", POSITIONER_SET_ANCHOR_RECT),
            ("xdg_positioner", "set_anchor", POSITIONER_SET_ANCHOR),
            ("xdg_positioner", "set_gravity", POSITIONER_SET_GRAVITY),
            ("xdg_positioner", "set_constraint_adjustment", POSITIONER_SET_CONSTRAINT_ADJUSTMENT),
            ("xdg_positioner", "set_offset", POSITIONER_SET_OFFSET),
            ("xdg_positioner", "set_reactive", POSITIONER_SET_REACTIVE),
            ("xdg_positioner", "set_parent_size", POSITIONER_SET_PARENT_SIZE),
            ("xdg_positioner", "set_parent_configure", POSITIONER_SET_PARENT_CONFIGURE),
            ("wl_seat", "get_keyboard", SEAT_GET_KEYBOARD),
            ("wl_seat", "release", SEAT_RELEASE),
            ("wl_keyboard", "release", KEYBOARD_RELEASE),
            ("wl_output", "release", OUTPUT_RELEASE),
            ("zxdg_output_v1", "destroy", XDG_OUTPUT_DESTROY),
            ("zxdg_output_manager_v1", "get_xdg_output", XDG_OUTPUT_MANAGER_GET_XDG_OUTPUT),
        ];
        for (interface_name, request, opcode) in expected {
            let table =
                interface(interface_name).unwrap_or_else(|| panic!("{interface_name} is in the tables"));
            assert_eq!(table.requests[usize::from(opcode)].name, request, "{interface_name}");
        }
    }
}
