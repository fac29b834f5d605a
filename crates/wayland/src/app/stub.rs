//! Answers in place of a compositor: for optional globals that it lacks, and for requests with a serial that it never
//! gave out.
//!
//! Most such requests need no answer; those below do, or programs would wait for ever. Invariant: what is answered here
//! never crosses to the display side.

use crate::wire::Arg;

use super::call::{Call, Plain};
use super::connection::Connection;
use super::fault::Fault;

/// `zxdg_toplevel_decoration_v1.mode.client_side`, `org_kde_kwin_server_decoration_manager.mode.client`.
const CLIENT_SIDE: u32 = 1;

impl Connection {
    /// The events that follow the bind of a stub.
    pub(super) fn greet_stub(&mut self, id: u32, interface: &str) -> Result<(), Fault> {
        match interface {
            "org_kde_kwin_server_decoration_manager" => {
                self.emit(id, "default_mode", vec![Arg::Uint(CLIENT_SIDE)])
            }
            "xdg_toplevel_icon_manager_v1" => self.emit(id, "done", Vec::new()),
            _ => Ok(()),
        }
    }

    /// The events that are owed for a request that did not cross.
    pub(super) fn answer_stub(&mut self, call: Call, args: &[Plain]) -> Result<(), Fault> {
        let made = args.iter().find_map(|arg| if let Plain::NewId(id) = arg { Some(*id) } else { None });
        match (call.name(), made) {
            (
                ("zxdg_decoration_manager_v1", "get_toplevel_decoration")
                | ("org_kde_kwin_server_decoration_manager", "create")
                | ("wp_fractional_scale_manager_v1", "get_fractional_scale"),
                Some(id),
            ) => self.tell_stub(id),
            (
                ("zxdg_toplevel_decoration_v1", "set_mode" | "unset_mode")
                | ("org_kde_kwin_server_decoration", "request_mode"),
                _,
            ) => self.tell_stub(call.id),
            (("xdg_activation_token_v1", "commit"), _) => self.tell_token(call.id),
            (("zxdg_exporter_v2", "export_toplevel"), Some(id)) => {
                self.emit(id, "handle", vec![name("wayferry")])
            }
            (("zxdg_importer_v2", "import_toplevel"), Some(id)) => self.emit(id, "destroyed", Vec::new()),
            (("xdg_surface", "get_popup"), Some(id)) => self.emit(id, "popup_done", Vec::new()),
            (("xdg_popup", "reposition"), _) if self.objects.wire(call.id).is_some() => {
                self.reposition_here(call.id, args)
            }
            // Of a popup that is over the program knows.
            (("xdg_popup", "grab"), _) if self.objects.wire(call.id).is_some() => {
                self.emit(call.id, "popup_done", Vec::new())
            }
            (("zwlr_foreign_toplevel_manager_v1", "stop"), _) => {
                self.emit(call.id, "finished", Vec::new())?;
                self.forget(call.id)
            }
            (("ext_foreign_toplevel_list_v1", "stop"), _) => self.emit(call.id, "finished", Vec::new()),
            (
                ("wl_data_device", "set_selection" | "start_drag")
                | ("zwp_primary_selection_device_v1", "set_selection"),
                _,
            ) => match args.first() {
                Some(Plain::Object(source)) if *source != 0 => self.emit(*source, "cancelled", Vec::new()),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

impl Connection {
    /// Ends the wait for an activation token: this one activates nothing.
    pub(super) fn tell_token(&mut self, id: u32) -> Result<(), Fault> {
        self.emit(id, "done", vec![name("wayferry")])
    }

    /// The state of an object that stands in for one that the compositor lacks.
    pub(super) fn tell_stub(&mut self, id: u32) -> Result<(), Fault> {
        match self.objects.of(id).map(|object| object.interface.name) {
            Some("zxdg_toplevel_decoration_v1") => self.emit(id, "configure", vec![Arg::Uint(CLIENT_SIDE)]),
            Some("org_kde_kwin_server_decoration") => self.emit(id, "mode", vec![Arg::Uint(CLIENT_SIDE)]),
            Some("wp_fractional_scale_v1") => {
                // It may be another one with the same id.
                let surface = self.association(id).and_then(|surface| self.surfaces.get_mut(&surface));
                surface.into_iter().for_each(|surface| surface.preferred.forget_fraction());
                self.tell_scale(id)
            }
            _ => Ok(()),
        }
    }
}

fn name(text: &str) -> Arg {
    Arg::Str(Some(text.as_bytes().to_vec()))
}
