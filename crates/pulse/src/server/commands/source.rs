//! The one source: the microphone of the display, while there is one.

use std::ffi::CStr;

use pulseaudio::protocol::{
    ChannelMap, DEFAULT_SOURCE, FormatEncoding, FormatInfo, GetSourceInfo, LookupReply, Prop, Props,
    PulseError, SetDeviceMuteParams, SetDeviceVolumeParams, SourceFlags, SourceInfo, SourceState,
    SubscriptionEventFacility, SubscriptionEventType, Volume,
};

use super::super::answer::Answer;
use super::super::ask::Ask;
use super::super::state::{SOURCE, State};
use super::sink;

pub(super) fn info(ask: &mut Ask<'_>, params: &GetSourceInfo) -> Result<Answer, PulseError> {
    find(ask.state, params.index, params.name.as_deref())?;
    Answer::of(ask.version, &told(ask.state))
}

pub(super) fn list(ask: &mut Ask<'_>) -> Result<Answer, PulseError> {
    Answer::list(ask.version, ask.state.source.is_there.then(|| told(ask.state)).into_iter())
}

pub(super) fn lookup(ask: &mut Ask<'_>, name: &CStr) -> Result<Answer, PulseError> {
    find(ask.state, None, Some(name))?;
    Answer::of(ask.version, &LookupReply(SOURCE))
}

pub(super) fn set_volume(ask: &mut Ask<'_>, params: &SetDeviceVolumeParams) -> Result<Answer, PulseError> {
    find(ask.state, params.device_index, params.device_name.as_deref())?;
    ask.state.source.volume = sink::volume(&params.volume, usize::from(sink::SPEC.channels))?;
    Ok(changed(ask))
}

pub(super) fn set_mute(ask: &mut Ask<'_>, params: &SetDeviceMuteParams) -> Result<Answer, PulseError> {
    find(ask.state, params.device_index, params.device_name.as_deref())?;
    ask.state.source.muted = params.mute;
    Ok(changed(ask))
}

pub(super) fn set_default(ask: &mut Ask<'_>, name: &CStr) -> Result<Answer, PulseError> {
    find(ask.state, None, Some(name))?;
    Ok(Answer::ack())
}

/// Whether what is named is the source: one without a number and a name is the usual one.
pub(super) fn find(state: &State, index: Option<u32>, name: Option<&CStr>) -> Result<(), PulseError> {
    let is_it = match (index, name) {
        (Some(index), _) => index == SOURCE,
        (None, Some(name)) => name == NAME || name == DEFAULT_SOURCE || name == c"0",
        (None, None) => true,
    };
    if is_it && state.source.is_there { Ok(()) } else { Err(PulseError::NoEntity) }
}

fn changed(ask: &mut Ask<'_>) -> Answer {
    ask.state.publish(SubscriptionEventFacility::Source, SubscriptionEventType::Changed, SOURCE);
    Answer::ack()
}

fn told(state: &State) -> SourceInfo {
    let source = &state.source;
    let mut props = Props::new();
    props.set(Prop::DeviceDescription, DESCRIPTION);
    props.set(Prop::DeviceClass, c"sound");
    let is_recorded = state.recordings.values().any(|recording| !recording.corked);
    SourceInfo {
        index: SOURCE,
        name: NAME.to_owned(),
        description: Some(DESCRIPTION.to_owned()),
        props,
        state: if is_recorded { SourceState::Running } else { SourceState::Idle },
        sample_spec: sink::SPEC,
        channel_map: ChannelMap::stereo(),
        cvolume: source.volume,
        muted: source.muted,
        flags: SourceFlags::LATENCY | SourceFlags::DECIBEL_VOLUME | SourceFlags::NETWORK,
        actual_latency: source.latency.as_micros() as u64,
        configured_latency: source.latency.as_micros() as u64,
        driver: Some(sink::DRIVER.to_owned()),
        base_volume: Volume::NORM,
        volume_steps: Some(Volume::NORM.as_u32() + 1),
        formats: vec![FormatInfo::new(FormatEncoding::Pcm)],
        ..SourceInfo::default()
    }
}

/// The source's name.
pub(super) const NAME: &CStr = c"wayferry-microphone";

const DESCRIPTION: &CStr = c"Microphone of the display (Wayferry)";
