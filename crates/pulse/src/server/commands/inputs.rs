//! Streams as others see them: names, volumes, properties.

use std::ffi::CString;

use pulseaudio::protocol::props::PropsUpdateMode;
use pulseaudio::protocol::{
    MoveStreamParams, Prop, Props, PulseError, SetStreamMuteParams, SetStreamNameParams,
    SetStreamVolumeParams, SinkInputInfo, UpdatePropsParams,
};

use super::super::answer::Answer;
use super::super::ask::Ask;
use super::super::props;
use super::super::state::State;
use super::super::stream::Stream;
use super::super::tags;
use super::sink;

pub(super) fn info(ask: &mut Ask<'_>, index: u32) -> Result<Answer, PulseError> {
    let stream = ask.state.streams.get(&index).ok_or(PulseError::NoEntity)?;
    Answer::of(ask.version, &told(ask.state, index, stream))
}

pub(super) fn list(ask: &mut Ask<'_>) -> Result<Answer, PulseError> {
    let state = &*ask.state;
    Answer::list(ask.version, state.streams.iter().map(|(index, stream)| told(state, *index, stream)))
}

/// Of any client's stream: that is what mixers on the desktop do.
pub(super) fn set_volume(ask: &mut Ask<'_>, params: &SetStreamVolumeParams) -> Result<Answer, PulseError> {
    let stream = ask.state.streams.get_mut(&params.index).ok_or(PulseError::NoEntity)?;
    stream.volume = sink::volume(&params.volume, stream.spec.places.len())?;
    stream.weigh();
    Ok(changed(ask, params.index))
}

pub(super) fn set_mute(ask: &mut Ask<'_>, params: &SetStreamMuteParams) -> Result<Answer, PulseError> {
    let stream = ask.state.streams.get_mut(&params.index).ok_or(PulseError::NoEntity)?;
    stream.muted = params.mute;
    stream.weigh();
    Ok(changed(ask, params.index))
}

/// To the sink where it is.
pub(super) fn move_to(ask: &mut Ask<'_>, params: &MoveStreamParams) -> Result<Answer, PulseError> {
    sink::find(params.device_index, params.device_name.as_deref())?;
    params.index.and_then(|index| ask.state.streams.get(&index)).ok_or(PulseError::NoEntity)?;
    Ok(Answer::ack())
}

pub(super) fn name(ask: &mut Ask<'_>, params: SetStreamNameParams) -> Result<Answer, PulseError> {
    let mut name = Props::new();
    name.set(Prop::MediaName, params.name);
    update(ask, params.index, |old| props::updated(old, PropsUpdateMode::Replace, &name))
}

pub(super) fn update_props(ask: &mut Ask<'_>, params: &UpdatePropsParams) -> Result<Answer, PulseError> {
    update(ask, params.index, |old| props::updated(old, params.mode, &params.props))
}

pub(super) fn remove_props(ask: &mut Ask<'_>, index: u32, values: &[u8]) -> Result<Answer, PulseError> {
    update(ask, index, |old| props::without(old, &tags::strings(values)))
}

fn update(ask: &mut Ask<'_>, index: u32, new: impl Fn(&Props) -> Props) -> Result<Answer, PulseError> {
    let stream = ask.state.stream_of(ask.client, index)?;
    stream.props = new(&stream.props);
    Ok(changed(ask, index))
}

fn changed(ask: &mut Ask<'_>, index: u32) -> Answer {
    ask.state.stream_changed(index);
    Answer::ack()
}

fn told(state: &State, index: u32, stream: &Stream) -> SinkInputInfo {
    let name =
        stream.props.get(Prop::MediaName).and_then(|name| CString::from_vec_with_nul(name.into()).ok());
    SinkInputInfo {
        index,
        name: name.unwrap_or_default(),
        owner_module_index: None,
        client_index: Some(stream.owner.0),
        sink_index: sink::INDEX,
        sample_spec: stream.spec.sample_spec(),
        channel_map: stream.spec.channel_map(),
        cvolume: stream.volume,
        buffer_latency: stream.spec.duration(stream.queue.level()).as_micros() as u64,
        sink_latency: state.ahead().as_micros() as u64,
        resample_method: None,
        driver: Some(sink::DRIVER.to_owned()),
        props: stream.props.clone(),
        muted: stream.muted,
        corked: stream.corked,
        has_volume: true,
        volume_writable: true,
        format: stream.spec.format_info(),
    }
}
