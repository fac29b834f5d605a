//! Streams that record, as others see them: names, volumes, properties.

use std::ffi::CString;

use pulseaudio::protocol::props::PropsUpdateMode;
use pulseaudio::protocol::{
    MoveStreamParams, Prop, Props, PulseError, SetStreamMuteParams, SetStreamNameParams,
    SetStreamVolumeParams, SourceOutputInfo, UpdatePropsParams,
};

use super::super::answer::Answer;
use super::super::ask::Ask;
use super::super::props;
use super::super::recording::Recording;
use super::super::state::{SOURCE, State};
use super::super::tags;
use super::{sink, source};

pub(super) fn info(ask: &mut Ask<'_>, index: u32) -> Result<Answer, PulseError> {
    let recording = ask.state.recordings.get(&index).ok_or(PulseError::NoEntity)?;
    Answer::of(ask.version, &told(ask.state, index, recording))
}

pub(super) fn list(ask: &mut Ask<'_>) -> Result<Answer, PulseError> {
    let state = &*ask.state;
    Answer::list(ask.version, state.recordings.iter().map(|(index, one)| told(state, *index, one)))
}

/// Of any client's stream, as for those that play.
pub(super) fn set_volume(ask: &mut Ask<'_>, params: &SetStreamVolumeParams) -> Result<Answer, PulseError> {
    let recording = ask.state.recordings.get_mut(&params.index).ok_or(PulseError::NoEntity)?;
    recording.volume = sink::volume(&params.volume, recording.spec.places.len())?;
    recording.weigh();
    Ok(changed(ask, params.index))
}

pub(super) fn set_mute(ask: &mut Ask<'_>, params: &SetStreamMuteParams) -> Result<Answer, PulseError> {
    let recording = ask.state.recordings.get_mut(&params.index).ok_or(PulseError::NoEntity)?;
    recording.muted = params.mute;
    recording.weigh();
    Ok(changed(ask, params.index))
}

/// To the source where it is.
pub(super) fn move_to(ask: &mut Ask<'_>, params: &MoveStreamParams) -> Result<Answer, PulseError> {
    source::find(ask.state, params.device_index, params.device_name.as_deref())?;
    params.index.and_then(|index| ask.state.recordings.get(&index)).ok_or(PulseError::NoEntity)?;
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
    let recording = ask.state.recording_of(ask.client, index)?;
    recording.props = new(&recording.props);
    Ok(changed(ask, index))
}

fn changed(ask: &mut Ask<'_>, index: u32) -> Answer {
    ask.state.recording_changed(index);
    Answer::ack()
}

fn told(state: &State, index: u32, recording: &Recording) -> SourceOutputInfo {
    let name =
        recording.props.get(Prop::MediaName).and_then(|name| CString::from_vec_with_nul(name.into()).ok());
    let (heard, given) = recording.places();
    let waiting = usize::try_from(heard - given).unwrap_or(0);
    SourceOutputInfo {
        index,
        name: name.unwrap_or_default(),
        owner_module_index: None,
        client_index: Some(recording.owner.0),
        source_index: SOURCE,
        sample_spec: recording.spec.sample_spec(),
        channel_map: recording.spec.channel_map(),
        cvolume: recording.volume,
        buffer_latency: recording.spec.duration(waiting).as_micros() as u64,
        source_latency: state.source.latency.as_micros() as u64,
        resample_method: None,
        driver: Some(sink::DRIVER.to_owned()),
        props: recording.props.clone(),
        muted: recording.muted,
        corked: recording.corked,
        has_volume: true,
        volume_writable: true,
        format: recording.spec.format_info(),
    }
}
