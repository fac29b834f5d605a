//! The one sink, and the server itself.

use std::ffi::{CStr, CString};

use pulseaudio::protocol::{
    ChannelMap, ChannelVolume, DEFAULT_SINK, FormatEncoding, FormatInfo, GetSinkInfo, LookupReply, Prop,
    Props, PulseError, SampleFormat, SampleSpec, ServerInfo, SetDeviceMuteParams, SetDeviceVolumeParams,
    SinkFlags, SinkInfo, SinkState, StatInfo, SubscriptionEventFacility, SubscriptionEventType, Volume,
};
use wayferry_audio::RATE;

use super::super::answer::Answer;
use super::super::ask::Ask;
use super::source;

pub(super) fn server_info(ask: &mut Ask<'_>) -> Result<Answer, PulseError> {
    let source = ask.state.source.is_there.then_some(source::NAME);
    let info = ServerInfo {
        server_name: Some(c"wayferry".to_owned()),
        server_version: Some(CString::new(env!("CARGO_PKG_VERSION")).unwrap_or_default()),
        user_name: Some(CString::default()),
        host_name: Some(CString::default()),
        sample_spec: SPEC,
        cookie: 0,
        default_sink_name: Some(NAME.to_owned()),
        // SDL copies it without a look whether there is one.
        default_source_name: Some(source.map(CStr::to_owned).unwrap_or_default()),
        channel_map: ChannelMap::stereo(),
    };
    Answer::of(ask.version, &info)
}

pub(super) fn info(ask: &mut Ask<'_>, params: &GetSinkInfo) -> Result<Answer, PulseError> {
    find(params.index, params.name.as_deref())?;
    Answer::of(ask.version, &told(ask))
}

pub(super) fn list(ask: &mut Ask<'_>) -> Result<Answer, PulseError> {
    Answer::list(ask.version, std::iter::once(told(ask)))
}

pub(super) fn lookup(ask: &mut Ask<'_>, name: &CStr) -> Result<Answer, PulseError> {
    find(None, Some(name))?;
    Answer::of(ask.version, &LookupReply(INDEX))
}

pub(super) fn set_volume(ask: &mut Ask<'_>, params: &SetDeviceVolumeParams) -> Result<Answer, PulseError> {
    find(params.device_index, params.device_name.as_deref())?;
    ask.state.volume = volume(&params.volume, usize::from(SPEC.channels))?;
    Ok(changed(ask))
}

pub(super) fn set_mute(ask: &mut Ask<'_>, params: &SetDeviceMuteParams) -> Result<Answer, PulseError> {
    find(params.device_index, params.device_name.as_deref())?;
    ask.state.muted = params.mute;
    Ok(changed(ask))
}

pub(super) fn set_default(name: &CStr) -> Result<Answer, PulseError> {
    find(None, Some(name))?;
    Ok(Answer::ack())
}

/// Of the client's own sound.
pub(super) fn stat(ask: &mut Ask<'_>) -> Result<Answer, PulseError> {
    let state = &ask.state;
    let own = state.clients.get(&ask.client).map_or(&[][..], |client| &client.streams);
    let kept: usize =
        own.iter().filter_map(|index| state.streams.get(index)).map(|one| one.queue.kept()).sum();
    let (count, bytes) = (own.len() as u32, u32::try_from(kept).unwrap_or(u32::MAX));
    let info = StatInfo {
        memblock_total: count,
        memblock_total_size: bytes,
        memblock_allocated: count,
        memblock_allocated_size: bytes,
        sample_cache_size: 0,
    };
    Answer::of(ask.version, &info)
}

/// Whether what is named is the sink: one without a number and a name is the usual one.
pub(super) fn find(index: Option<u32>, name: Option<&CStr>) -> Result<(), PulseError> {
    let is_it = match (index, name) {
        (Some(index), _) => index == INDEX,
        (None, Some(name)) => name == NAME || name == DEFAULT_SINK || name == c"0",
        (None, None) => true,
    };
    if is_it { Ok(()) } else { Err(PulseError::NoEntity) }
}

/// A volume for so many channels: one for all of them, or one for each.
pub(super) fn volume(asked: &ChannelVolume, channels: usize) -> Result<ChannelVolume, PulseError> {
    let given = asked.channels();
    let mut volume = ChannelVolume::empty();
    match given {
        [one] => (0..channels).for_each(|_| volume.push(*one)),
        all if all.len() == channels => all.iter().for_each(|one| volume.push(*one)),
        _ => return Err(PulseError::Invalid),
    }
    Ok(volume)
}

fn changed(ask: &mut Ask<'_>) -> Answer {
    ask.state.publish(SubscriptionEventFacility::Sink, SubscriptionEventType::Changed, INDEX);
    Answer::ack()
}

fn told(ask: &Ask<'_>) -> SinkInfo {
    let state = &ask.state;
    let mut props = Props::new();
    props.set(Prop::DeviceDescription, DESCRIPTION);
    props.set(Prop::DeviceClass, c"sound");
    SinkInfo {
        index: INDEX,
        name: NAME.to_owned(),
        description: Some(DESCRIPTION.to_owned()),
        props,
        state: if state.is_heard() { SinkState::Running } else { SinkState::Idle },
        sample_spec: SPEC,
        channel_map: ChannelMap::stereo(),
        cvolume: state.volume,
        muted: state.muted,
        flags: SinkFlags::LATENCY | SinkFlags::DECIBEL_VOLUME | SinkFlags::NETWORK,
        actual_latency: state.ahead().as_micros() as u64,
        configured_latency: state.latency.as_micros() as u64,
        driver: Some(DRIVER.to_owned()),
        base_volume: Volume::NORM,
        volume_steps: Some(Volume::NORM.as_u32() + 1),
        formats: vec![FormatInfo::new(FormatEncoding::Pcm)],
        ..SinkInfo::default()
    }
}

/// The sink's number.
pub(super) const INDEX: u32 = 0;

/// The sink's name.
pub(super) const NAME: &CStr = c"wayferry";

/// What is said to drive sink, streams and clients.
pub(super) const DRIVER: &CStr = c"wayferry";

const DESCRIPTION: &CStr = c"Wayferry";

/// Of sink and source.
pub(super) const SPEC: SampleSpec =
    SampleSpec { format: SampleFormat::Float32Le, channels: 2, sample_rate: RATE };
