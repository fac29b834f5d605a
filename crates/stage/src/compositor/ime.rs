//! `zwp_text_input_v3`: the stage is the input method and gives whole strings.

use wayland_protocols::wp::text_input::zv3::server::{zwp_text_input_manager_v3, zwp_text_input_v3};
use wayland_server::backend::ClientId;
use wayland_server::{Client, DataInit, Dispatch, DisplayHandle, GlobalDispatch, New, Resource};

use super::state::State;

/// A client's text input.
pub(crate) struct TextInput {
    resource: zwp_text_input_v3::ZwpTextInputV3,
    pending: bool,
    enabled: bool,
    commits: u32,
}

impl State {
    /// Tells text inputs that the keyboard came to their client, or went.
    pub(crate) fn move_text_focus(&self, entered: bool) {
        let Some(surface) = self.seat.focus.and_then(|id| self.surface(id)) else { return };
        let client = surface.resource.client();
        for input in self.text_inputs.iter().filter(|input| input.resource.client() == client) {
            if entered {
                input.resource.enter(&surface.resource);
            } else {
                input.resource.leave(&surface.resource);
            }
        }
    }

    /// Commits a text to the focused client's enabled text inputs; how many there were.
    pub(crate) fn commit_text(&self, text: &str) -> usize {
        let Some(surface) = self.seat.focus.and_then(|id| self.surface(id)) else { return 0 };
        let client = surface.resource.client();
        let inputs = self.text_inputs.iter();
        let enabled = inputs.filter(|input| input.enabled && input.resource.client() == client);
        enabled
            .inspect(|input| {
                input.resource.commit_string(Some(text.to_owned()));
                input.resource.done(input.commits);
            })
            .count()
    }
}

impl GlobalDispatch<zwp_text_input_manager_v3::ZwpTextInputManagerV3, ()> for State {
    fn bind(
        _: &mut State,
        _: &DisplayHandle,
        _: &Client,
        resource: New<zwp_text_input_manager_v3::ZwpTextInputManagerV3>,
        _: &(),
        init: &mut DataInit<'_, State>,
    ) {
        init.init(resource, ());
    }
}

impl Dispatch<zwp_text_input_manager_v3::ZwpTextInputManagerV3, ()> for State {
    fn request(
        state: &mut State,
        _: &Client,
        _: &zwp_text_input_manager_v3::ZwpTextInputManagerV3,
        request: zwp_text_input_manager_v3::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        if let zwp_text_input_manager_v3::Request::GetTextInput { id, .. } = request {
            let resource = init.init(id, ());
            let focused = state.seat.focus.and_then(|id| state.surface(id));
            if let Some(surface) = focused.filter(|surface| surface.resource.client() == resource.client()) {
                resource.enter(&surface.resource);
            }
            let (pending, enabled, commits) = (false, false, 0);
            state.text_inputs.push(TextInput { resource, pending, enabled, commits });
        }
    }
}

impl Dispatch<zwp_text_input_v3::ZwpTextInputV3, ()> for State {
    fn request(
        state: &mut State,
        _: &Client,
        resource: &zwp_text_input_v3::ZwpTextInputV3,
        request: zwp_text_input_v3::Request,
        _: &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        let Some(input) = state.text_inputs.iter_mut().find(|input| input.resource == *resource) else {
            return;
        };
        match request {
            zwp_text_input_v3::Request::Enable => input.pending = true,
            zwp_text_input_v3::Request::Disable => input.pending = false,
            zwp_text_input_v3::Request::Commit => {
                input.enabled = input.pending;
                input.commits += 1;
            }
            _ => {}
        }
    }

    fn destroyed(state: &mut State, _: ClientId, resource: &zwp_text_input_v3::ZwpTextInputV3, _: &()) {
        state.text_inputs.retain(|input| input.resource != *resource);
    }
}
