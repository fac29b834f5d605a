//! `wp_presentation` and `wp_viewporter`: when a frame was shown, and which part of it.

use std::time::Duration;

use wayland_protocols::wp::presentation_time::server::wp_presentation;
use wayland_protocols::wp::presentation_time::server::wp_presentation_feedback::{
    self, Kind, WpPresentationFeedback,
};
use wayland_protocols::wp::viewporter::server::{wp_viewport, wp_viewporter};
use wayland_server::backend::ClientId;
use wayland_server::protocol::wl_output::WlOutput;
use wayland_server::{Client, DataInit, Dispatch, DisplayHandle, GlobalDispatch, New, Resource};

use super::event::SurfaceId;
use super::state::State;

/// Tells a feedback that its content was shown at `time`, in tick number `tick`.
pub(crate) fn presented(
    feedback: &WpPresentationFeedback,
    outputs: &[WlOutput],
    time: Duration,
    period: Duration,
    tick: u64,
) {
    let client = feedback.client();
    for output in outputs.iter().filter(|output| output.client() == client) {
        feedback.sync_output(output);
    }
    let seconds = time.as_secs();
    feedback.presented(
        (seconds >> 32) as u32,
        seconds as u32,
        time.subsec_nanos(),
        period.as_nanos() as u32,
        (tick >> 32) as u32,
        tick as u32,
        Kind::Vsync,
    );
}

impl GlobalDispatch<wp_presentation::WpPresentation, ()> for State {
    fn bind(
        _: &mut State,
        _: &DisplayHandle,
        _: &Client,
        resource: New<wp_presentation::WpPresentation>,
        _: &(),
        init: &mut DataInit<'_, State>,
    ) {
        init.init(resource, ()).clock_id(CLOCK_MONOTONIC);
    }
}

impl Dispatch<wp_presentation::WpPresentation, ()> for State {
    fn request(
        state: &mut State,
        _: &Client,
        _: &wp_presentation::WpPresentation,
        request: wp_presentation::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        if let wp_presentation::Request::Feedback { surface, callback } = request {
            let feedback = init.init(callback, ());
            let key = surface.data::<SurfaceId>();
            match key.and_then(|key| state.surfaces.get_mut(key)) {
                Some(surface) => surface.pending().feedback.push(feedback),
                None => feedback.discarded(),
            }
        }
    }
}

impl Dispatch<WpPresentationFeedback, ()> for State {
    fn request(
        _: &mut State,
        _: &Client,
        _: &WpPresentationFeedback,
        _: wp_presentation_feedback::Request,
        _: &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
    }
}

impl GlobalDispatch<wp_viewporter::WpViewporter, ()> for State {
    fn bind(
        _: &mut State,
        _: &DisplayHandle,
        _: &Client,
        resource: New<wp_viewporter::WpViewporter>,
        _: &(),
        init: &mut DataInit<'_, State>,
    ) {
        init.init(resource, ());
    }
}

impl Dispatch<wp_viewporter::WpViewporter, ()> for State {
    fn request(
        _: &mut State,
        _: &Client,
        _: &wp_viewporter::WpViewporter,
        request: wp_viewporter::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        if let wp_viewporter::Request::GetViewport { id, surface } = request {
            let key = surface.data::<SurfaceId>().copied().unwrap_or(SurfaceId(0));
            init.init(id, key);
        }
    }
}

impl Dispatch<wp_viewport::WpViewport, SurfaceId> for State {
    fn request(
        state: &mut State,
        _: &Client,
        viewport: &wp_viewport::WpViewport,
        request: wp_viewport::Request,
        id: &SurfaceId,
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        if matches!(request, wp_viewport::Request::Destroy) {
            return;
        }
        let Some(surface) = state.surfaces.get_mut(id) else {
            viewport.post_error(wp_viewport::Error::NoSurface, "the surface is gone".to_owned());
            return;
        };
        match request {
            wp_viewport::Request::SetSource { x, y, width, height } => {
                let unset = (x, y, width, height) == (-1.0, -1.0, -1.0, -1.0);
                if !unset && (x < 0.0 || y < 0.0 || width <= 0.0 || height <= 0.0) {
                    let message = format!("source of {width} × {height} at ({x}, {y})");
                    viewport.post_error(wp_viewport::Error::BadValue, message);
                    return;
                }
                surface.pending().source = Some((!unset).then_some((x, y, width, height)));
            }
            wp_viewport::Request::SetDestination { width, height } => {
                let unset = (width, height) == (-1, -1);
                if !unset && (width <= 0 || height <= 0) {
                    let message = format!("destination of {width} × {height}");
                    viewport.post_error(wp_viewport::Error::BadValue, message);
                    return;
                }
                surface.pending().destination = Some((!unset).then_some((width, height)));
            }
            _ => {}
        }
    }

    fn destroyed(state: &mut State, _: ClientId, _: &wp_viewport::WpViewport, id: &SurfaceId) {
        if let Some(surface) = state.surfaces.get_mut(id) {
            surface.pending().source = Some(None);
            surface.pending().destination = Some(None);
        }
    }
}

const CLOCK_MONOTONIC: u32 = 1;
