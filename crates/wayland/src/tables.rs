//! Which globals exist for programs, and the message tables of everything reachable from them.
//!
//! Signatures come from the published protocol crates at run time, but for `session_management`; [`GLOBALS`] decides
//! what is offered, up to which version, and what happens when the attached compositor lacks it. What messages mean is
//! [`crate::policy`]'s.
//!
//! Invariant: a program can only ever hold an object of an interface that [`interface`] knows, at a version
//! that [`version_cap`] allows, because everything starts at `wl_display` or at one of [`GLOBALS`].
//!
//! Versions: a cap is what sway 1.7 (wlroots 0.15), weston 10, GNOME 43 and KWin 5.27 have, or a later
//! version whose additions the app side answers alone. Raising one makes the test of the policy table fail
//! until its new messages are classified, and is right only with a down-translation for compositors below it.

use std::collections::HashMap;
use std::sync::OnceLock;

use wayland_backend::protocol::{Interface, MessageDesc};
use wayland_client::Proxy;
use wayland_client::protocol::{
    wl_compositor::WlCompositor, wl_data_device_manager::WlDataDeviceManager, wl_display::WlDisplay,
    wl_fixes::WlFixes, wl_output::WlOutput, wl_seat::WlSeat, wl_shm::WlShm,
    wl_subcompositor::WlSubcompositor,
};
use wayland_protocols::ext::{
    background_effect::v1::client::ext_background_effect_manager_v1::ExtBackgroundEffectManagerV1,
    data_control::v1::client::ext_data_control_manager_v1::ExtDataControlManagerV1,
    foreign_toplevel_list::v1::client::ext_foreign_toplevel_list_v1::ExtForeignToplevelListV1,
    idle_notify::v1::client::ext_idle_notifier_v1::ExtIdleNotifierV1,
    image_copy_capture::v1::client::ext_image_copy_capture_manager_v1::ExtImageCopyCaptureManagerV1,
    session_lock::v1::client::ext_session_lock_manager_v1::ExtSessionLockManagerV1,
};
use wayland_protocols::wp::{
    alpha_modifier::v1::client::wp_alpha_modifier_v1::WpAlphaModifierV1,
    color_management::v1::client::wp_color_manager_v1::WpColorManagerV1,
    commit_timing::v1::client::wp_commit_timing_manager_v1::WpCommitTimingManagerV1,
    content_type::v1::client::wp_content_type_manager_v1::WpContentTypeManagerV1,
    cursor_shape::v1::client::wp_cursor_shape_manager_v1::WpCursorShapeManagerV1,
    drm_lease::v1::client::wp_drm_lease_device_v1::WpDrmLeaseDeviceV1,
    fifo::v1::client::wp_fifo_manager_v1::WpFifoManagerV1,
    fractional_scale::v1::client::wp_fractional_scale_manager_v1::WpFractionalScaleManagerV1,
    idle_inhibit::zv1::client::zwp_idle_inhibit_manager_v1::ZwpIdleInhibitManagerV1,
    input_timestamps::zv1::client::zwp_input_timestamps_manager_v1::ZwpInputTimestampsManagerV1,
    keyboard_shortcuts_inhibit::zv1::client::zwp_keyboard_shortcuts_inhibit_manager_v1::ZwpKeyboardShortcutsInhibitManagerV1,
    linux_dmabuf::zv1::client::zwp_linux_dmabuf_v1::ZwpLinuxDmabufV1,
    linux_drm_syncobj::v1::client::wp_linux_drm_syncobj_manager_v1::WpLinuxDrmSyncobjManagerV1,
    pointer_constraints::zv1::client::zwp_pointer_constraints_v1::ZwpPointerConstraintsV1,
    pointer_gestures::zv1::client::zwp_pointer_gestures_v1::ZwpPointerGesturesV1,
    pointer_warp::v1::client::wp_pointer_warp_v1::WpPointerWarpV1,
    presentation_time::client::wp_presentation::WpPresentation,
    primary_selection::zv1::client::zwp_primary_selection_device_manager_v1::ZwpPrimarySelectionDeviceManagerV1,
    relative_pointer::zv1::client::zwp_relative_pointer_manager_v1::ZwpRelativePointerManagerV1,
    security_context::v1::client::wp_security_context_manager_v1::WpSecurityContextManagerV1,
    single_pixel_buffer::v1::client::wp_single_pixel_buffer_manager_v1::WpSinglePixelBufferManagerV1,
    tablet::zv2::client::zwp_tablet_manager_v2::ZwpTabletManagerV2,
    tearing_control::v1::client::wp_tearing_control_manager_v1::WpTearingControlManagerV1,
    text_input::{
        zv1::client::zwp_text_input_manager_v1::ZwpTextInputManagerV1,
        zv3::client::zwp_text_input_manager_v3::ZwpTextInputManagerV3,
    },
    viewporter::client::wp_viewporter::WpViewporter,
};
use wayland_protocols::xdg::{
    activation::v1::client::xdg_activation_v1::XdgActivationV1,
    decoration::zv1::client::zxdg_decoration_manager_v1::ZxdgDecorationManagerV1,
    dialog::v1::client::xdg_wm_dialog_v1::XdgWmDialogV1,
    foreign::zv2::client::{zxdg_exporter_v2::ZxdgExporterV2, zxdg_importer_v2::ZxdgImporterV2},
    shell::client::xdg_wm_base::XdgWmBase,
    system_bell::v1::client::xdg_system_bell_v1::XdgSystemBellV1,
    toplevel_drag::v1::client::xdg_toplevel_drag_manager_v1::XdgToplevelDragManagerV1,
    toplevel_icon::v1::client::xdg_toplevel_icon_manager_v1::XdgToplevelIconManagerV1,
    toplevel_tag::v1::client::xdg_toplevel_tag_manager_v1::XdgToplevelTagManagerV1,
    xdg_output::zv1::client::zxdg_output_manager_v1::ZxdgOutputManagerV1,
};
use wayland_protocols_misc::{
    server_decoration::client::org_kde_kwin_server_decoration_manager::OrgKdeKwinServerDecorationManager,
    zwp_input_method_v2::client::zwp_input_method_manager_v2::ZwpInputMethodManagerV2,
    zwp_virtual_keyboard_v1::client::zwp_virtual_keyboard_manager_v1::ZwpVirtualKeyboardManagerV1,
};
use wayland_protocols_wlr::{
    data_control::v1::client::zwlr_data_control_manager_v1::ZwlrDataControlManagerV1,
    export_dmabuf::v1::client::zwlr_export_dmabuf_manager_v1::ZwlrExportDmabufManagerV1,
    foreign_toplevel::v1::client::zwlr_foreign_toplevel_manager_v1::ZwlrForeignToplevelManagerV1,
    gamma_control::v1::client::zwlr_gamma_control_manager_v1::ZwlrGammaControlManagerV1,
    input_inhibitor::v1::client::zwlr_input_inhibit_manager_v1::ZwlrInputInhibitManagerV1,
    layer_shell::v1::client::zwlr_layer_shell_v1::ZwlrLayerShellV1,
    output_management::v1::client::zwlr_output_manager_v1::ZwlrOutputManagerV1,
    output_power_management::v1::client::zwlr_output_power_manager_v1::ZwlrOutputPowerManagerV1,
    screencopy::v1::client::zwlr_screencopy_manager_v1::ZwlrScreencopyManagerV1,
    virtual_pointer::v1::client::zwlr_virtual_pointer_manager_v1::ZwlrVirtualPointerManagerV1,
};

use crate::session_management;

/// A global as programs see it.
#[derive(Clone, Copy, Debug)]
pub struct Global {
    interface: fn() -> &'static Interface,
    /// The highest version that programs are offered.
    pub version: u32,
    /// The lowest version that a display must have for programs that begin there to be offered the highest; they are
    /// offered the one before this else. What versions between this and the highest add is made up by the app side.
    pub given_from: u32,
    /// Whether programs are offered it.
    pub access: Access,
    /// What happens when the attached compositor lacks it.
    pub missing: Missing,
}

impl Global {
    /// Its message tables.
    #[must_use]
    pub fn interface(&self) -> &'static Interface {
        (self.interface)()
    }

    const fn given_from(self, version: u32) -> Self {
        Self { given_from: version, ..self }
    }

    /// The name of its interface.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.interface().name
    }
}

/// Who may bind a global.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Every program.
    Offered,
    /// Programs of a session that allows it by name: it can see, or act for, other programs of the desktop.
    Privileged,
    /// No program, not even when allowed by name: what it needs to cross cannot yet.
    Withheld,
}

/// What the app side answers for a global that the attached compositor lacks, or has at too low a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Nothing can be shown without it: the display is refused.
    Fatal {
        /// The lowest version that will do.
        least: u32,
    },
    /// It makes no difference: the app side answers it alone, no matter what the compositor has.
    Local,
    /// As [`Self::Local`], if this host has something to read the buffers of GPU programs with; it is not offered else.
    Read,
    /// As [`Self::Read`], if this host can also wait for what its programs draw with.
    Timed,
    /// The app side does it to the pixels that it encodes, at this and every later display of a program that begins
    /// there.
    Encoded,
    /// It is not offered either: programs that find it do without something else.
    Absent,
    /// As [`Self::Absent`], and also not offered while the compositor has this successor of it.
    Unless(&'static str),
    /// A hint that may be ignored. It stays silent: every request is accepted, no event ever comes, and nothing owes
    /// one.
    Silent,
    /// It answers as this stub does.
    Stub(Stub),
}

/// A local substitute for what the attached compositor lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stub {
    /// `wl_seat` with capabilities 0 and a name: toolkits refuse to start without a seat.
    SeatWithoutDevices,
    /// The program decorates its windows: `configure(client_side)` or `mode(Client)` on creation and on every
    /// change, the former followed by the next `xdg_surface.configure`.
    ClientSideDecoration,
    /// `preferred_scale` is the integer scale of the surface's outputs times 120.
    OutputScale,
    /// `wp_cursor_shape_device_v1.set_shape` draws the shape from the local cursor theme.
    ThemedCursor,
    /// `xdg_activation_token_v1.commit` is answered by `done` with a token that means nothing.
    EmptyToken,
    /// `export_toplevel` is answered by `handle` with a handle that no program can import.
    UselessHandle,
    /// `import_toplevel` is answered by `destroyed`.
    DeadImport,
}

/// Every global that this program knows.
pub const GLOBALS: &[Global] = &[
    // Registries that are not needed any more. 2 acknowledges removals, which nothing waits for.
    offered(WlFixes::interface, 1, Missing::Local),
    // Without these there are no windows. 4 has `damage_buffer`; sway 1.7 and weston 10 stop there. 6 has the preferred
    // scale, which the app side tells in their place; 7 would report releases that it makes itself.
    offered(WlCompositor::interface, 6, Missing::Fatal { least: 4 }),
    offered(WlSubcompositor::interface, 1, Missing::Fatal { least: 1 }),
    // 2 only adds `release`, and is younger than all of the list. Wholly local towards the program.
    offered(WlShm::interface, 1, Missing::Fatal { least: 1 }),
    // 3 has the actions of drag and drop, and is everywhere; 4 only adds `release`.
    offered(WlDataDeviceManager::interface, 3, Missing::Fatal { least: 3 }),
    // sway 1.7 stops at 2, and a program that begins there is offered no more. At a display that comes later the app
    // side answers what 3 to 6 add: `reposition` and the capabilities of 5.
    offered(XdgWmBase::interface, 6, Missing::Fatal { least: 1 }).given_from(3),
    // sway 1.7 stops at 7; 8 has `axis_value120` in place of `axis_discrete`, which is made of it. weston headless has
    // none.
    offered(WlSeat::interface, 9, Missing::Stub(Stub::SeatWithoutDevices)),
    // Answered from the snapshot, so 4 (name and description) also above weston 10's 3.
    offered(WlOutput::interface, 4, Missing::Local),
    // Also answered from the snapshot: 3 (`wl_output.done` ends a change) above weston's 2.
    offered(ZxdgOutputManagerV1::interface, 3, Missing::Local),
    // Decorations. From 2 of the first on a window may have content when it is asked for, which the app side keeps from
    // older compositors.
    offered(ZxdgDecorationManagerV1::interface, 2, Missing::Stub(Stub::ClientSideDecoration)),
    offered(OrgKdeKwinServerDecorationManager::interface, 1, Missing::Stub(Stub::ClientSideDecoration)),
    // How a surface's content is shown. Every compositor of the list has the viewporter.
    offered(WpViewporter::interface, 1, Missing::Silent),
    offered(WpFractionalScaleManagerV1::interface, 1, Missing::Stub(Stub::OutputScale)),
    offered(WpContentTypeManagerV1::interface, 1, Missing::Silent),
    offered(WpTearingControlManagerV1::interface, 1, Missing::Silent),
    offered(WpAlphaModifierV1::interface, 1, Missing::Encoded),
    offered(ExtBackgroundEffectManagerV1::interface, 1, Missing::Absent),
    offered(WpSinglePixelBufferManagerV1::interface, 1, Missing::Local),
    // Pacing is local. 2 of the first only changes what a refresh of 0 means.
    offered(WpPresentation::interface, 1, Missing::Local),
    offered(WpFifoManagerV1::interface, 1, Missing::Local),
    offered(WpCommitTimingManagerV1::interface, 1, Missing::Local),
    // Input. 2 has more shapes, and a shape above the compositor's version is an error.
    offered(WpCursorShapeManagerV1::interface, 1, Missing::Stub(Stub::ThemedCursor)),
    offered(ZwpPointerConstraintsV1::interface, 1, Missing::Absent),
    offered(WpPointerWarpV1::interface, 1, Missing::Absent),
    offered(ZwpRelativePointerManagerV1::interface, 1, Missing::Silent),
    offered(ZwpInputTimestampsManagerV1::interface, 1, Missing::Absent),
    // 3 has the hold gesture. A compositor without it gives no event for it.
    offered(ZwpPointerGesturesV1::interface, 3, Missing::Silent),
    // 2 has dials; sway 1.7 stops at 1.
    offered(ZwpTabletManagerV2::interface, 1, Missing::Silent),
    // 2 has actions, the language and the panel; sway 1.7 stops at 1, and weston has nothing but the old one.
    offered(ZwpTextInputManagerV3::interface, 2, Missing::Absent),
    offered(ZwpTextInputManagerV1::interface, 1, Missing::Unless("zwp_text_input_manager_v3")),
    offered(ZwpKeyboardShortcutsInhibitManagerV1::interface, 1, Missing::Silent),
    offered(ZwpPrimarySelectionDeviceManagerV1::interface, 1, Missing::Silent),
    // Windows and the desktop around them; sway 1.7 has none of dialog, bell, drag, icon and tag.
    offered(ZwpIdleInhibitManagerV1::interface, 1, Missing::Silent),
    // 2 has notifications that pay no regard to inhibitors, and is offered to programs that begin where it is.
    offered(ExtIdleNotifierV1::interface, 2, Missing::Absent).given_from(2),
    offered(XdgActivationV1::interface, 1, Missing::Stub(Stub::EmptyToken)),
    offered(ZxdgExporterV2::interface, 1, Missing::Stub(Stub::UselessHandle)),
    offered(ZxdgImporterV2::interface, 1, Missing::Stub(Stub::DeadImport)),
    offered(XdgWmDialogV1::interface, 1, Missing::Silent),
    offered(XdgSystemBellV1::interface, 1, Missing::Absent),
    offered(XdgToplevelDragManagerV1::interface, 1, Missing::Absent),
    offered(XdgToplevelIconManagerV1::interface, 1, Missing::Silent),
    offered(XdgToplevelTagManagerV1::interface, 1, Missing::Absent),
    // A session's id is the program's to keep, and means something at the compositor that gave it.
    offered(session_management::manager, 1, Missing::Absent),
    // Windows that are no windows of a program, and input for other programs. sway 1.7's versions.
    privileged(ZwlrLayerShellV1::interface, 4),
    privileged(ZwpVirtualKeyboardManagerV1::interface, 1),
    privileged(ZwlrVirtualPointerManagerV1::interface, 2),
    privileged(ZwlrInputInhibitManagerV1::interface, 1),
    // Other programs' clipboard and windows.
    privileged(ZwlrDataControlManagerV1::interface, 2),
    privileged(ExtDataControlManagerV1::interface, 1),
    privileged(ZwlrForeignToplevelManagerV1::interface, 3),
    privileged(ExtForeignToplevelListV1::interface, 1),
    // What the desktop shows, into memory.
    privileged(ZwlrScreencopyManagerV1::interface, 3),
    // The same into GPU buffers, devices, the whole desktop's state.
    withheld(ZwlrExportDmabufManagerV1::interface, 1),
    withheld(ExtImageCopyCaptureManagerV1::interface, 1),
    withheld(ZwlrGammaControlManagerV1::interface, 1),
    withheld(ZwpInputMethodManagerV2::interface, 1),
    withheld(ZwlrOutputManagerV1::interface, 2),
    withheld(ZwlrOutputPowerManagerV1::interface, 1),
    withheld(ExtSessionLockManagerV1::interface, 1),
    withheld(WpDrmLeaseDeviceV1::interface, 1),
    withheld(WpSecurityContextManagerV1::interface, 1),
    // Read where the program is, with any compositor. 6 would let a program choose among several devices.
    offered(ZwpLinuxDmabufV1::interface, 5, Missing::Read),
    // Where the kernel has timelines of that device.
    offered(WpLinuxDrmSyncobjManagerV1::interface, 1, Missing::Timed),
    // Later, for everybody.
    withheld(WpColorManagerV1::interface, 1),
];

/// The entry for a global, if it is known at all.
#[must_use]
pub fn global(name: &str) -> Option<&'static Global> {
    let index = *tables().globals.get(name)?;
    Some(&GLOBALS[index])
}

/// The message tables of an interface of which a program may come to hold an object.
#[must_use]
pub fn interface(name: &str) -> Option<&'static Interface> {
    tables().reachable.get(name).map(|reachable| reachable.interface)
}

/// The highest version that an object of this interface can have; 0 if there can be none.
#[must_use]
pub fn version_cap(name: &str) -> u32 {
    tables().reachable.get(name).map_or(0, |reachable| reachable.version)
}

/// Every interface that [`interface`] knows, in no particular order.
pub fn interfaces() -> impl Iterator<Item = &'static Interface> {
    tables().reachable.values().map(|reachable| reachable.interface)
}

/// The opcode of the request of this name.
#[must_use]
pub fn request_opcode(interface: &Interface, name: &str) -> Option<u16> {
    position(interface.requests, name)
}

/// The opcode of the event of this name.
#[must_use]
pub fn event_opcode(interface: &Interface, name: &str) -> Option<u16> {
    position(interface.events, name)
}

const fn offered(interface: fn() -> &'static Interface, version: u32, missing: Missing) -> Global {
    Global { interface, version, given_from: 1, access: Access::Offered, missing }
}

const fn privileged(interface: fn() -> &'static Interface, version: u32) -> Global {
    Global { access: Access::Privileged, ..offered(interface, version, Missing::Absent) }
}

const fn withheld(interface: fn() -> &'static Interface, version: u32) -> Global {
    Global { access: Access::Withheld, ..offered(interface, version, Missing::Absent) }
}

// At most 14 messages an interface: a scan beats a map.
fn position(messages: &[MessageDesc], name: &str) -> Option<u16> {
    let index = messages.iter().position(|message| message.name == name)?;
    u16::try_from(index).ok()
}

/// An interface with the highest version that an object of it can have.
struct Reachable {
    interface: &'static Interface,
    version: u32,
}

struct Tables {
    /// Index into [`GLOBALS`] by interface name.
    globals: HashMap<&'static str, usize>,
    reachable: HashMap<&'static str, Reachable>,
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let globals = GLOBALS.iter().enumerate().map(|(index, global)| (global.name(), index)).collect();
        let mut reachable = HashMap::new();
        reach(&mut reachable, WlDisplay::interface(), 1);
        for global in GLOBALS.iter().filter(|global| global.access != Access::Withheld) {
            reach(&mut reachable, global.interface(), global.version);
        }
        Tables { globals, reachable }
    })
}

/// Adds `interface` at `version` and everything that its messages of up to that version create: a new object
/// has the version of the object that made it.
fn reach(reachable: &mut HashMap<&'static str, Reachable>, interface: &'static Interface, version: u32) {
    let version = version.min(interface.version);
    match reachable.get_mut(interface.name) {
        Some(known) if known.version >= version => return,
        Some(known) => known.version = version,
        None => {
            reachable.insert(interface.name, Reachable { interface, version });
        }
    }
    for message in interface.requests.iter().chain(interface.events) {
        if let Some(child) = message.child_interface.filter(|_| message.since <= version) {
            reach(reachable, child, version);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cap_exists_and_no_global_is_named_twice() {
        for global in GLOBALS {
            let interface = global.interface();
            assert!(
                (1..=interface.version).contains(&global.version),
                "{} {}",
                interface.name,
                global.version
            );
            assert!((1..=global.version).contains(&global.given_from), "{}", interface.name);
        }
        assert_eq!(tables().globals.len(), GLOBALS.len());
    }

    #[test]
    fn children_inherit_their_parents_cap() {
        for (name, cap) in [
            ("wl_surface", 6),
            ("wl_keyboard", 9),
            ("wl_data_offer", 3),
            ("xdg_popup", 6),
            ("wl_callback", 1),
            ("zwp_pointer_gesture_hold_v1", 3),
        ] {
            assert_eq!(version_cap(name), cap, "{name}");
        }
    }

    #[test]
    fn nothing_withheld_and_nothing_above_a_cap_is_reachable() {
        for name in ["ext_image_copy_capture_frame_v1", "zwp_tablet_pad_dial_v2", "wl_shell", "nonsense"] {
            assert!(interface(name).is_none(), "{name}");
            assert_eq!(version_cap(name), 0, "{name}");
        }
        assert!(interface("wl_registry").is_some() && interface("zwp_tablet_pad_ring_v2").is_some());
    }

    #[test]
    fn what_is_required_can_be_required() {
        for global in GLOBALS {
            if let Missing::Fatal { least } = global.missing {
                assert!((1..=global.version).contains(&least), "{}", global.name());
            }
        }
    }

    #[test]
    fn opcodes_are_found_by_name() {
        let surface = interface("wl_surface").unwrap();
        assert_eq!(request_opcode(surface, "commit"), Some(6));
        assert_eq!(event_opcode(surface, "leave"), Some(1));
        assert_eq!(request_opcode(surface, "leave"), None);
    }
}
