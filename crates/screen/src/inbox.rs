//! What both compositors say, in the order in which it was said, as data.
//!
//! Nothing is decided here: [`crate::screen`] takes the events out and gives each to the part that it concerns.
//! Invariant: an event of any object that this crate makes is either kept here or means nothing to it.

use wayland_client::globals::GlobalListContents;
use wayland_client::protocol::{
    wl_buffer, wl_callback, wl_compositor, wl_data_device, wl_data_device_manager, wl_data_offer,
    wl_data_source, wl_keyboard, wl_output, wl_pointer, wl_registry, wl_seat, wl_shm, wl_shm_pool,
    wl_surface,
};
use wayland_client::{Connection, Dispatch, Proxy, QueueHandle, delegate_noop, event_created_child};
use wayland_protocols::ext::image_capture_source::v1::client::{
    ext_image_capture_source_v1, ext_output_image_capture_source_manager_v1,
};
use wayland_protocols::ext::image_copy_capture::v1::client::{
    ext_image_copy_capture_cursor_session_v1, ext_image_copy_capture_frame_v1,
    ext_image_copy_capture_manager_v1, ext_image_copy_capture_session_v1,
};
use wayland_protocols::wp::cursor_shape::v1::client::{
    wp_cursor_shape_device_v1, wp_cursor_shape_manager_v1,
};
use wayland_protocols::wp::fractional_scale::v1::client::{
    wp_fractional_scale_manager_v1, wp_fractional_scale_v1,
};
use wayland_protocols::wp::keyboard_shortcuts_inhibit::zv1::client::{
    zwp_keyboard_shortcuts_inhibit_manager_v1, zwp_keyboard_shortcuts_inhibitor_v1,
};
use wayland_protocols::wp::primary_selection::zv1::client::{
    zwp_primary_selection_device_manager_v1, zwp_primary_selection_device_v1, zwp_primary_selection_offer_v1,
    zwp_primary_selection_source_v1,
};
use wayland_protocols::wp::viewporter::client::{wp_viewport, wp_viewporter};
use wayland_protocols::xdg::decoration::zv1::client::{
    zxdg_decoration_manager_v1, zxdg_toplevel_decoration_v1,
};
use wayland_protocols::xdg::shell::client::{xdg_surface, xdg_toplevel, xdg_wm_base};
use wayland_protocols_misc::zwp_virtual_keyboard_v1::client::{
    zwp_virtual_keyboard_manager_v1, zwp_virtual_keyboard_v1,
};
use wayland_protocols_wlr::data_control::v1::client::{
    zwlr_data_control_device_v1, zwlr_data_control_manager_v1, zwlr_data_control_offer_v1,
    zwlr_data_control_source_v1,
};
use wayland_protocols_wlr::output_management::v1::client::{
    zwlr_output_configuration_head_v1, zwlr_output_configuration_v1, zwlr_output_head_v1,
    zwlr_output_manager_v1, zwlr_output_mode_v1,
};
use wayland_protocols_wlr::screencopy::v1::client::{zwlr_screencopy_frame_v1, zwlr_screencopy_manager_v1};
use wayland_protocols_wlr::virtual_pointer::v1::client::{
    zwlr_virtual_pointer_manager_v1, zwlr_virtual_pointer_v1,
};

/// What objects are made with, of either compositor.
pub(crate) type Queue = QueueHandle<Inbox>;

/// Events that have not been looked at.
#[derive(Default)]
pub(crate) struct Inbox(Vec<Event>);

impl Inbox {
    /// What has been said since this was called last.
    pub(crate) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.0)
    }
}

/// Whose object of a kind that both compositors have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The compositor's whose screen is shown.
    There,
    /// The session's.
    Session,
}

/// Which buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferId {
    pub(crate) owner: Owner,
    /// [`crate::pool::Pool::number`].
    pub(crate) pool: u32,
    /// Its index.
    pub(crate) index: usize,
}

/// Which selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What is copied.
    Clipboard,
    /// What is marked.
    Primary,
}

/// What one object has said.
pub(crate) struct Said<Object: Proxy, Data> {
    pub(crate) object: Object,
    pub(crate) event: Object::Event,
    /// What it was made with.
    pub(crate) data: Data,
}

/// Declares the events that are kept, and by which objects.
macro_rules! kept {
    ($($name:ident: $module:ident::$proxy:ident, $data:ty $(, $child:tt)?;)*) => {
        /// What an object has said; its variants are named after the objects.
        pub(crate) enum Event {
            $($name(Said<$module::$proxy, $data>),)*
            Registry(Said<wl_registry::WlRegistry, ()>),
        }

        $(impl Dispatch<$module::$proxy, $data> for Inbox {
            fn event(
                inbox: &mut Self,
                object: &$module::$proxy,
                event: $module::Event,
                data: &$data,
                _: &Connection,
                _: &QueueHandle<Self>,
            ) {
                inbox.0.push(Event::$name(Said { object: object.clone(), event, data: *data }));
            }

            $(kept!(@child $module::$proxy $child);)?
        })*
    };
    (@child $module:ident::$proxy:ident ($opcode:ident $child_module:ident::$child:ident)) => {
        event_created_child!(Inbox, $module::$proxy, [$module::$opcode => ($child_module::$child, ())]);
    };
}

kept! {
    Output: wl_output::WlOutput, u32;
    Shm: wl_shm::WlShm, Owner;
    Seat: wl_seat::WlSeat, Owner;
    Buffer: wl_buffer::WlBuffer, BufferId;
    Frame: zwlr_screencopy_frame_v1::ZwlrScreencopyFrameV1, ();
    Cursor: ext_image_copy_capture_cursor_session_v1::ExtImageCopyCaptureCursorSessionV1, ();
    Pictures: ext_image_copy_capture_session_v1::ExtImageCopyCaptureSessionV1, ();
    Picture: ext_image_copy_capture_frame_v1::ExtImageCopyCaptureFrameV1, ();
    Outputs: zwlr_output_manager_v1::ZwlrOutputManagerV1, (),
        (EVT_HEAD_OPCODE zwlr_output_head_v1::ZwlrOutputHeadV1);
    Head: zwlr_output_head_v1::ZwlrOutputHeadV1, (),
        (EVT_MODE_OPCODE zwlr_output_mode_v1::ZwlrOutputModeV1);
    Mode: zwlr_output_mode_v1::ZwlrOutputModeV1, ();
    Configuration: zwlr_output_configuration_v1::ZwlrOutputConfigurationV1, ();
    Keyboard: wl_keyboard::WlKeyboard, ();
    Pointer: wl_pointer::WlPointer, Owner;
    Shell: xdg_wm_base::XdgWmBase, ();
    Surface: xdg_surface::XdgSurface, ();
    Toplevel: xdg_toplevel::XdgToplevel, ();
    Scale: wp_fractional_scale_v1::WpFractionalScaleV1, ();
    Shown: wl_callback::WlCallback, ();
    DataDevice: wl_data_device::WlDataDevice, (), (EVT_DATA_OFFER_OPCODE wl_data_offer::WlDataOffer);
    DataOffer: wl_data_offer::WlDataOffer, ();
    DataSource: wl_data_source::WlDataSource, ();
    PrimaryDevice: zwp_primary_selection_device_v1::ZwpPrimarySelectionDeviceV1, (),
        (EVT_DATA_OFFER_OPCODE zwp_primary_selection_offer_v1::ZwpPrimarySelectionOfferV1);
    PrimaryOffer: zwp_primary_selection_offer_v1::ZwpPrimarySelectionOfferV1, ();
    PrimarySource: zwp_primary_selection_source_v1::ZwpPrimarySelectionSourceV1, ();
    ControlDevice: zwlr_data_control_device_v1::ZwlrDataControlDeviceV1, (),
        (EVT_DATA_OFFER_OPCODE zwlr_data_control_offer_v1::ZwlrDataControlOfferV1);
    ControlOffer: zwlr_data_control_offer_v1::ZwlrDataControlOfferV1, ();
    ControlSource: zwlr_data_control_source_v1::ZwlrDataControlSourceV1, Kind;
}

impl Dispatch<wl_registry::WlRegistry, GlobalListContents> for Inbox {
    fn event(
        inbox: &mut Self,
        object: &wl_registry::WlRegistry,
        event: wl_registry::Event,
        _: &GlobalListContents,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        inbox.0.push(Event::Registry(Said { object: object.clone(), event, data: () }));
    }
}

// These say nothing, or nothing that is wanted.
delegate_noop!(Inbox: ignore wl_shm_pool::WlShmPool);
delegate_noop!(Inbox: ignore wl_surface::WlSurface);
delegate_noop!(Inbox: ignore wl_compositor::WlCompositor);
delegate_noop!(Inbox: ignore ext_image_capture_source_v1::ExtImageCaptureSourceV1);
delegate_noop!(Inbox: ignore ext_output_image_capture_source_manager_v1::ExtOutputImageCaptureSourceManagerV1);
delegate_noop!(Inbox: ignore ext_image_copy_capture_manager_v1::ExtImageCopyCaptureManagerV1);
delegate_noop!(Inbox: ignore wl_data_device_manager::WlDataDeviceManager);
delegate_noop!(Inbox: ignore wp_cursor_shape_manager_v1::WpCursorShapeManagerV1);
delegate_noop!(Inbox: ignore wp_cursor_shape_device_v1::WpCursorShapeDeviceV1);
delegate_noop!(Inbox: ignore wp_fractional_scale_manager_v1::WpFractionalScaleManagerV1);
delegate_noop!(Inbox: ignore wp_viewporter::WpViewporter);
delegate_noop!(Inbox: ignore wp_viewport::WpViewport);
delegate_noop!(Inbox: ignore zwp_keyboard_shortcuts_inhibit_manager_v1::ZwpKeyboardShortcutsInhibitManagerV1);
delegate_noop!(Inbox: ignore zwp_keyboard_shortcuts_inhibitor_v1::ZwpKeyboardShortcutsInhibitorV1);
delegate_noop!(Inbox: ignore zwp_primary_selection_device_manager_v1::ZwpPrimarySelectionDeviceManagerV1);
delegate_noop!(Inbox: ignore zxdg_decoration_manager_v1::ZxdgDecorationManagerV1);
delegate_noop!(Inbox: ignore zxdg_toplevel_decoration_v1::ZxdgToplevelDecorationV1);
delegate_noop!(Inbox: ignore zwp_virtual_keyboard_manager_v1::ZwpVirtualKeyboardManagerV1);
delegate_noop!(Inbox: ignore zwp_virtual_keyboard_v1::ZwpVirtualKeyboardV1);
delegate_noop!(Inbox: ignore zwlr_data_control_manager_v1::ZwlrDataControlManagerV1);
delegate_noop!(Inbox: ignore zwlr_output_configuration_head_v1::ZwlrOutputConfigurationHeadV1);
delegate_noop!(Inbox: ignore zwlr_screencopy_manager_v1::ZwlrScreencopyManagerV1);
delegate_noop!(Inbox: ignore zwlr_virtual_pointer_manager_v1::ZwlrVirtualPointerManagerV1);
delegate_noop!(Inbox: ignore zwlr_virtual_pointer_v1::ZwlrVirtualPointerV1);
