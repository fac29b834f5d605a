//! What a client says of itself, and asks about others.

use std::ffi::CString;

use pulseaudio::protocol::{
    AuthParams, AuthReply, ClientInfo, MAX_VERSION, Prop, Props, PulseError, SetClientNameReply,
    SubscriptionEventFacility, SubscriptionEventType, SubscriptionMask, UpdateClientProplistParams,
};

use super::super::answer::Answer;
use super::super::ask::Ask;
use super::super::client::{Client, ClientId};
use super::super::props;
use super::super::state::State;
use super::super::tags;

/// No cookie is asked for: who can open the socket may play. Memory is not shared.
pub(super) fn say_hello(state: &mut State, id: ClientId, params: &AuthParams) -> Result<Answer, PulseError> {
    let client = state.clients.get_mut(&id).ok_or(PulseError::Internal)?;
    if params.version < OLDEST {
        return Err(PulseError::Version);
    }
    let version = params.version.min(MAX_VERSION);
    client.version = Some(version);
    Answer::of(version, &AuthReply { version, use_memfd: false, use_shm: false })
}

pub(super) fn name(ask: &mut Ask<'_>, given: &Props) -> Result<Answer, PulseError> {
    client(ask)?.props = props::kept(given);
    changed(ask);
    Answer::of(ask.version, &SetClientNameReply { client_id: ask.client.0 })
}

pub(super) fn update_props(
    ask: &mut Ask<'_>,
    params: &UpdateClientProplistParams,
) -> Result<Answer, PulseError> {
    let client = client(ask)?;
    client.props = props::updated(&client.props, params.mode, &params.props);
    changed(ask);
    Ok(Answer::ack())
}

pub(super) fn remove_props(ask: &mut Ask<'_>, values: &[u8]) -> Result<Answer, PulseError> {
    let client = client(ask)?;
    client.props = props::without(&client.props, &tags::strings(values));
    changed(ask);
    Ok(Answer::ack())
}

pub(super) fn subscribe(ask: &mut Ask<'_>, events: SubscriptionMask) -> Result<Answer, PulseError> {
    client(ask)?.events = events;
    Ok(Answer::ack())
}

pub(super) fn info(ask: &mut Ask<'_>, index: u32) -> Result<Answer, PulseError> {
    let client = ask.state.clients.get(&ClientId(index)).ok_or(PulseError::NoEntity)?;
    Answer::of(ask.version, &told(ClientId(index), client))
}

pub(super) fn list(ask: &mut Ask<'_>) -> Result<Answer, PulseError> {
    Answer::list(ask.version, ask.state.clients.iter().map(|(id, client)| told(*id, client)))
}

fn told(id: ClientId, client: &Client) -> ClientInfo {
    let name =
        client.props.get(Prop::ApplicationName).and_then(|name| CString::from_vec_with_nul(name.into()).ok());
    ClientInfo {
        index: id.0,
        name: name.unwrap_or_default(),
        owner_module_index: None,
        driver: Some(super::sink::DRIVER.to_owned()),
        props: client.props.clone(),
    }
}

fn client<'a>(ask: &'a mut Ask<'_>) -> Result<&'a mut Client, PulseError> {
    ask.state.clients.get_mut(&ask.client).ok_or(PulseError::Internal)
}

fn changed(ask: &mut Ask<'_>) {
    ask.state.publish(SubscriptionEventFacility::Client, SubscriptionEventType::Changed, ask.client.0);
}

/// The oldest version that is spoken: the `pulseaudio` crate writes what a server says of itself as it has been since.
const OLDEST: u16 = 15;
