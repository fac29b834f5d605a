//! What a client does with its own streams that record.

use pulseaudio::protocol::{
    ChannelVolume, CorkStreamParams, CreateRecordStreamReply, LatencyParams, PulseError, RecordLatency,
    RecordStreamParams, SetRecordStreamBufferAttrParams, SetRecordStreamBufferAttrReply,
    UpdateSampleRateParams,
};

use super::super::answer::Answer;
use super::super::ask::Ask;
use super::super::props;
use super::super::recording::{Fragments, Recording, Wish};
use super::super::spec::{Spec, playable};
use super::super::state::SOURCE;
use super::{sink, source};

pub(super) fn create(ask: &mut Ask<'_>, params: &RecordStreamParams) -> Result<Answer, PulseError> {
    source::find(ask.state, params.source_index, params.source_name.as_deref())?;
    if params.flags.passthrough || params.direct_on_input_index.is_some() {
        return Err(PulseError::NotSupported);
    }
    let spec = Spec::recorded(params)?;
    let fragments = Fragments::agreed(&params.buffer_attr, &spec);
    let volume = match &params.cvolume {
        Some(volume) => sink::volume(volume, spec.places.len())?,
        None => ChannelVolume::norm(spec.sample_spec().channels),
    };
    let told = CreateRecordStreamReply {
        buffer_attr: fragments.told(),
        sample_spec: spec.sample_spec(),
        channel_map: spec.channel_map(),
        stream_latency: ask.state.source.latency.as_micros() as u64,
        sink_index: SOURCE,
        sink_name: Some(source::NAME.to_owned()),
        suspended: false,
        format: spec.format_info(),
        ..CreateRecordStreamReply::default()
    };
    let wish = Wish {
        spec,
        fragments,
        props: props::kept(&params.props),
        volume,
        muted: params.flags.start_muted.unwrap_or(false),
        corked: params.flags.start_corked,
        variable_rate: params.flags.variable_rate,
    };
    let recording = Recording::new(ask.client, wish).ok_or(PulseError::NotSupported)?;
    let index = ask.state.add_recording(recording)?;
    Answer::of(ask.version, &CreateRecordStreamReply { channel: index, stream_index: index, ..told })
}

pub(super) fn delete(ask: &mut Ask<'_>, index: u32) -> Result<Answer, PulseError> {
    ask.state.recording_of(ask.client, index)?;
    ask.state.remove_recording(index);
    Ok(Answer::ack())
}

pub(super) fn cork(ask: &mut Ask<'_>, params: &CorkStreamParams) -> Result<Answer, PulseError> {
    ask.state.recording_of(ask.client, params.channel)?.corked = params.cork;
    ask.state.recording_changed(params.channel);
    Ok(Answer::ack())
}

pub(super) fn flush(ask: &mut Ask<'_>, index: u32) -> Result<Answer, PulseError> {
    ask.state.recording_of(ask.client, index)?.flush();
    Ok(Answer::ack())
}

/// As for playing, the client's time is given back as the server's.
pub(super) fn latency(ask: &mut Ask<'_>, params: &LatencyParams) -> Result<Answer, PulseError> {
    let source_usec = ask.state.source.latency.as_micros() as u64;
    let recording = ask.state.recording_of(ask.client, params.channel)?;
    let (write_offset, read_offset) = recording.places();
    let latency = RecordLatency {
        sink_usec: 0,
        source_usec,
        playing: !recording.corked,
        local_time: params.now,
        remote_time: params.now,
        write_offset,
        read_offset,
    };
    Answer::of(ask.version, &latency)
}

pub(super) fn buffer(
    ask: &mut Ask<'_>,
    params: &SetRecordStreamBufferAttrParams,
) -> Result<Answer, PulseError> {
    let configured_source_latency = ask.state.source.latency.as_micros() as u64;
    let recording = ask.state.recording_of(ask.client, params.index)?;
    let fragments = Fragments::agreed(&params.buffer_attr, &recording.spec);
    recording.cut(fragments);
    let reply = SetRecordStreamBufferAttrReply { buffer_attr: fragments.told(), configured_source_latency };
    Answer::of(ask.version, &reply)
}

pub(super) fn rate(ask: &mut Ask<'_>, params: &UpdateSampleRateParams) -> Result<Answer, PulseError> {
    let rate = playable(params.sample_rate)?;
    let recording = ask.state.recording_of(ask.client, params.index)?;
    if !recording.variable_rate {
        return Err(PulseError::BadState);
    }
    recording.retune(rate);
    ask.state.recording_changed(params.index);
    Ok(Answer::ack())
}
