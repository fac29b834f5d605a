//! Small globals that a test may offer or leave out: cursor shapes, fractional scale, activation, idle inhibition,
//! single-pixel buffers.

use wayland_protocols::wp::cursor_shape::v1::server::{
    wp_cursor_shape_device_v1, wp_cursor_shape_manager_v1,
};
use wayland_protocols::wp::fractional_scale::v1::server::{
    wp_fractional_scale_manager_v1, wp_fractional_scale_v1,
};
use wayland_protocols::wp::idle_inhibit::zv1::server::{zwp_idle_inhibit_manager_v1, zwp_idle_inhibitor_v1};
use wayland_protocols::wp::single_pixel_buffer::v1::server::wp_single_pixel_buffer_manager_v1;
use wayland_protocols::xdg::activation::v1::server::{xdg_activation_token_v1, xdg_activation_v1};
use wayland_server::{Client, DataInit, Dispatch, DisplayHandle, GlobalDispatch, New, Resource};

use super::event::{StageEvent, SurfaceId};
use super::shm::Buffer;
use super::state::{State, number};

/// A global without state of its own: binding it says nothing.
macro_rules! plain_global {
    ($interface:ty) => {
        impl GlobalDispatch<$interface, ()> for State {
            fn bind(
                _: &mut State,
                _: &DisplayHandle,
                _: &Client,
                resource: New<$interface>,
                _: &(),
                init: &mut DataInit<'_, State>,
            ) {
                init.init(resource, ());
            }
        }
    };
}

/// An object whose requests change nothing here.
macro_rules! silent_object {
    ($interface:ty) => {
        impl Dispatch<$interface, ()> for State {
            fn request(
                _: &mut State,
                _: &Client,
                _: &$interface,
                _: <$interface as Resource>::Request,
                _: &(),
                _: &DisplayHandle,
                _: &mut DataInit<'_, State>,
            ) {
            }
        }
    };
}

plain_global!(wp_cursor_shape_manager_v1::WpCursorShapeManagerV1);
plain_global!(wp_fractional_scale_manager_v1::WpFractionalScaleManagerV1);
plain_global!(zwp_idle_inhibit_manager_v1::ZwpIdleInhibitManagerV1);
plain_global!(wp_single_pixel_buffer_manager_v1::WpSinglePixelBufferManagerV1);
plain_global!(xdg_activation_v1::XdgActivationV1);
silent_object!(wp_fractional_scale_v1::WpFractionalScaleV1);
silent_object!(zwp_idle_inhibitor_v1::ZwpIdleInhibitorV1);

impl Dispatch<wp_cursor_shape_manager_v1::WpCursorShapeManagerV1, ()> for State {
    fn request(
        _: &mut State,
        _: &Client,
        _: &wp_cursor_shape_manager_v1::WpCursorShapeManagerV1,
        request: wp_cursor_shape_manager_v1::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        match request {
            wp_cursor_shape_manager_v1::Request::GetPointer { cursor_shape_device, .. }
            | wp_cursor_shape_manager_v1::Request::GetTabletToolV2 { cursor_shape_device, .. } => {
                init.init(cursor_shape_device, ());
            }
            _ => {}
        }
    }
}

impl Dispatch<wp_cursor_shape_device_v1::WpCursorShapeDeviceV1, ()> for State {
    fn request(
        state: &mut State,
        client: &Client,
        _: &wp_cursor_shape_device_v1::WpCursorShapeDeviceV1,
        request: wp_cursor_shape_device_v1::Request,
        _: &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        if let wp_cursor_shape_device_v1::Request::SetShape { serial, shape } = request {
            let accepted = state.may_set_cursor(client, serial);
            if accepted {
                state.seat.cursor = None;
            }
            let (client, shape) = (number(client), u32::from(shape));
            state.log.push(StageEvent::SetCursorShape { client, shape, accepted });
        }
    }
}

impl Dispatch<wp_fractional_scale_manager_v1::WpFractionalScaleManagerV1, ()> for State {
    fn request(
        state: &mut State,
        _: &Client,
        _: &wp_fractional_scale_manager_v1::WpFractionalScaleManagerV1,
        request: wp_fractional_scale_manager_v1::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        if let wp_fractional_scale_manager_v1::Request::GetFractionalScale { id, .. } = request {
            // The protocol counts in 120ths.
            init.init(id, ()).preferred_scale(state.config.scale * 120);
        }
    }
}

impl Dispatch<zwp_idle_inhibit_manager_v1::ZwpIdleInhibitManagerV1, ()> for State {
    fn request(
        _: &mut State,
        _: &Client,
        _: &zwp_idle_inhibit_manager_v1::ZwpIdleInhibitManagerV1,
        request: zwp_idle_inhibit_manager_v1::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        if let zwp_idle_inhibit_manager_v1::Request::CreateInhibitor { id, .. } = request {
            init.init(id, ());
        }
    }
}

impl Dispatch<wp_single_pixel_buffer_manager_v1::WpSinglePixelBufferManagerV1, ()> for State {
    fn request(
        _: &mut State,
        _: &Client,
        _: &wp_single_pixel_buffer_manager_v1::WpSinglePixelBufferManagerV1,
        request: wp_single_pixel_buffer_manager_v1::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        if let wp_single_pixel_buffer_manager_v1::Request::CreateU32RgbaBuffer { id, r, g, b, a } = request {
            let pixel = (a >> 24) << 24 | (r >> 24) << 16 | (g >> 24) << 8 | b >> 24;
            init.init(id, Buffer::of_one_pixel(pixel).expect("four bytes of memory"));
        }
    }
}

impl Dispatch<xdg_activation_v1::XdgActivationV1, ()> for State {
    fn request(
        state: &mut State,
        _: &Client,
        _: &xdg_activation_v1::XdgActivationV1,
        request: xdg_activation_v1::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        match request {
            xdg_activation_v1::Request::GetActivationToken { id } => {
                init.init(id, ());
            }
            xdg_activation_v1::Request::Activate { surface, .. } => {
                let id = surface.data::<SurfaceId>().copied();
                if let Some(id) = id.filter(|id| state.windows.contains(id)) {
                    state.focus(Some(id));
                }
            }
            _ => {}
        }
    }
}

impl Dispatch<xdg_activation_token_v1::XdgActivationTokenV1, ()> for State {
    fn request(
        state: &mut State,
        _: &Client,
        token: &xdg_activation_token_v1::XdgActivationTokenV1,
        request: xdg_activation_token_v1::Request,
        _: &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        if matches!(request, xdg_activation_token_v1::Request::Commit) {
            let serial = state.next_serial();
            token.done(format!("stage-{serial}"));
        }
    }
}
