//! `wl_output` and `zxdg_output_v1`: the one output.

use wayland_protocols::xdg::xdg_output::zv1::server::{zxdg_output_manager_v1, zxdg_output_v1};
use wayland_server::backend::ClientId;
use wayland_server::protocol::wl_output;
use wayland_server::{Client, DataInit, Dispatch, DisplayHandle, GlobalDispatch, New, Resource};

use super::state::State;

/// A client's `zxdg_output_v1`.
pub(crate) struct XdgOutputResource {
    pub(crate) resource: zxdg_output_v1::ZxdgOutputV1,
    output: wl_output::WlOutput,
}

impl State {
    /// Size of the output in logical pixels.
    pub(crate) fn logical_size(&self) -> (i32, i32) {
        let scale = self.config.scale.max(1);
        ((self.config.width / scale) as i32, (self.config.height / scale) as i32)
    }

    /// Changes the output and tells everybody.
    pub(crate) fn change_output(&mut self, width: u32, height: u32, scale: u32) {
        self.config.width = width;
        self.config.height = height;
        self.config.scale = scale.max(1);
        for output in self.outputs.clone() {
            self.describe(&output);
        }
        for surface in self.surfaces.values().filter(|surface| surface.mapped) {
            if surface.resource.version() >= 6 {
                surface.resource.preferred_buffer_scale(scale as i32);
            }
        }
    }

    fn describe(&self, output: &wl_output::WlOutput) {
        let Config { width, height, scale, refresh_mhz } = Config::of(self);
        let (subpixel, transform) = (wl_output::Subpixel::Unknown, wl_output::Transform::Normal);
        let millimetres = |pixels: i32| pixels * 254 / 960;
        output.geometry(
            0,
            0,
            millimetres(width),
            millimetres(height),
            subpixel,
            MAKE.to_owned(),
            MODEL.to_owned(),
            transform,
        );
        output.mode(wl_output::Mode::Current | wl_output::Mode::Preferred, width, height, refresh_mhz);
        let version = output.version();
        if version >= wl_output::EVT_SCALE_SINCE {
            output.scale(scale);
        }
        if version >= wl_output::EVT_NAME_SINCE {
            output.name(NAME.to_owned());
            output.description("the stage".to_owned());
        }
        for xdg in self.xdg_outputs.iter().filter(|xdg| xdg.output == *output) {
            self.describe_xdg(&xdg.resource);
        }
        if version >= wl_output::EVT_DONE_SINCE {
            output.done();
        }
    }

    fn describe_xdg(&self, output: &zxdg_output_v1::ZxdgOutputV1) {
        let (width, height) = self.logical_size();
        output.logical_position(0, 0);
        output.logical_size(width, height);
        if output.version() >= zxdg_output_v1::EVT_NAME_SINCE {
            output.name(NAME.to_owned());
            output.description("the stage".to_owned());
        }
        if output.version() < 3 {
            output.done();
        }
    }
}

/// The output's numbers as the wire has them.
struct Config {
    width: i32,
    height: i32,
    scale: i32,
    refresh_mhz: i32,
}

impl Config {
    fn of(state: &State) -> Config {
        Config {
            width: state.config.width as i32,
            height: state.config.height as i32,
            scale: state.config.scale as i32,
            refresh_mhz: state.config.refresh_mhz as i32,
        }
    }
}

impl GlobalDispatch<wl_output::WlOutput, ()> for State {
    fn bind(
        state: &mut State,
        _: &DisplayHandle,
        client: &Client,
        resource: New<wl_output::WlOutput>,
        _: &(),
        init: &mut DataInit<'_, State>,
    ) {
        let output = init.init(resource, ());
        state.describe(&output);
        let id = client.id();
        let mapped = state.surfaces.values().filter(|surface| surface.mapped);
        for surface in mapped.filter(|surface| surface.resource.client().is_some_and(|it| it.id() == id)) {
            surface.resource.enter(&output);
        }
        state.outputs.push(output);
    }
}

impl Dispatch<wl_output::WlOutput, ()> for State {
    fn request(
        _: &mut State,
        _: &Client,
        _: &wl_output::WlOutput,
        _: wl_output::Request,
        _: &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
    }

    fn destroyed(state: &mut State, _: ClientId, output: &wl_output::WlOutput, _: &()) {
        state.outputs.retain(|kept| kept != output);
        state.xdg_outputs.retain(|kept| kept.output != *output);
    }
}

impl GlobalDispatch<zxdg_output_manager_v1::ZxdgOutputManagerV1, ()> for State {
    fn bind(
        _: &mut State,
        _: &DisplayHandle,
        _: &Client,
        resource: New<zxdg_output_manager_v1::ZxdgOutputManagerV1>,
        _: &(),
        init: &mut DataInit<'_, State>,
    ) {
        init.init(resource, ());
    }
}

impl Dispatch<zxdg_output_manager_v1::ZxdgOutputManagerV1, ()> for State {
    fn request(
        state: &mut State,
        _: &Client,
        _: &zxdg_output_manager_v1::ZxdgOutputManagerV1,
        request: zxdg_output_manager_v1::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        let zxdg_output_manager_v1::Request::GetXdgOutput { id, output } = request else { return };
        let resource = init.init(id, ());
        state.describe_xdg(&resource);
        if resource.version() >= 3 && output.version() >= wl_output::EVT_DONE_SINCE {
            output.done();
        }
        state.xdg_outputs.push(XdgOutputResource { resource, output });
    }
}

impl Dispatch<zxdg_output_v1::ZxdgOutputV1, ()> for State {
    fn request(
        _: &mut State,
        _: &Client,
        _: &zxdg_output_v1::ZxdgOutputV1,
        _: zxdg_output_v1::Request,
        _: &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
    }

    fn destroyed(state: &mut State, _: ClientId, output: &zxdg_output_v1::ZxdgOutputV1, _: &()) {
        state.xdg_outputs.retain(|kept| kept.resource != *output);
    }
}

const NAME: &str = "STAGE-1";
const MAKE: &str = "Wayferry";
const MODEL: &str = "stage";
