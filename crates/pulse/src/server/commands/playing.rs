//! What a client does with its own streams.

use pulseaudio::protocol::{
    ChannelVolume, CorkStreamParams, CreatePlaybackStreamReply, LatencyParams, PlaybackLatency,
    PlaybackStreamParams, PulseError, SetPlaybackStreamBufferAttrParams, SetPlaybackStreamBufferAttrReply,
    UpdateSampleRateParams,
};

use super::super::answer::Answer;
use super::super::ask::Ask;
use super::super::buffering::Buffering;
use super::super::props;
use super::super::spec::{Spec, playable};
use super::super::stream::{Stream, Wish};
use super::sink;

pub(super) fn create(ask: &mut Ask<'_>, params: &PlaybackStreamParams) -> Result<Answer, PulseError> {
    sink::find(params.sink_index, params.sink_name.as_deref())?;
    if params.flags.passthrough {
        return Err(PulseError::NotSupported);
    }
    let spec = Spec::asked(params)?;
    let buffering = Buffering::agreed(&params.buffer_attr, &spec);
    let channels = spec.places.len();
    let volume = match &params.cvolume {
        Some(volume) => sink::volume(volume, channels)?,
        None => ChannelVolume::norm(spec.sample_spec().channels),
    };
    let told = CreatePlaybackStreamReply {
        requested_bytes: buffering.told().target_length,
        buffer_attr: buffering.told(),
        sample_spec: spec.sample_spec(),
        channel_map: spec.channel_map(),
        stream_latency: ask.state.latency.as_micros() as u64,
        sink_index: sink::INDEX,
        sink_name: Some(sink::NAME.to_owned()),
        suspended: false,
        format: spec.format_info(),
        ..CreatePlaybackStreamReply::default()
    };
    let wish = Wish {
        spec,
        buffering,
        props: props::kept(&params.props),
        volume,
        muted: params.flags.start_muted.unwrap_or(false),
        corked: params.flags.start_corked,
        variable_rate: params.flags.variable_rate,
    };
    let index = ask.state.add_stream(Stream::new(ask.client, ask.state.now, wish))?;
    Answer::of(ask.version, &CreatePlaybackStreamReply { channel: index, stream_index: index, ..told })
}

pub(super) fn delete(ask: &mut Ask<'_>, index: u32) -> Result<Answer, PulseError> {
    ask.state.stream_of(ask.client, index)?;
    ask.state.remove_stream(index);
    Ok(Answer::ack())
}

pub(super) fn cork(ask: &mut Ask<'_>, params: &CorkStreamParams) -> Result<Answer, PulseError> {
    ask.state.stream_of(ask.client, params.channel)?.corked = params.cork;
    ask.state.stream_changed(params.channel);
    Ok(Answer::ack())
}

pub(super) fn trigger(ask: &mut Ask<'_>, index: u32) -> Result<Answer, PulseError> {
    ask.state.stream_of(ask.client, index)?.begin();
    Ok(Answer::ack())
}

pub(super) fn prebuf(ask: &mut Ask<'_>, index: u32) -> Result<Answer, PulseError> {
    let now = ask.state.now;
    ask.state.stream_of(ask.client, index)?.wait(now);
    Ok(Answer::ack())
}

pub(super) fn flush(ask: &mut Ask<'_>, index: u32) -> Result<Answer, PulseError> {
    let now = ask.state.now;
    ask.state.stream_of(ask.client, index)?.flush(now);
    ask.state.ask(index);
    Ok(Answer::ack())
}

pub(super) fn drain(ask: &mut Ask<'_>, index: u32) -> Result<Answer, PulseError> {
    let sequence = ask.sequence;
    let may = ask.state.stream_of(ask.client, index)?.drain(sequence);
    if may { Ok(Answer::Later) } else { Err(PulseError::BadState) }
}

/// The client's time is given back as the server's: both are of one machine, and its question is on its way for less
/// time than it can tell.
pub(super) fn latency(ask: &mut Ask<'_>, params: &LatencyParams) -> Result<Answer, PulseError> {
    let (now, ahead) = (ask.state.now, ask.state.ahead());
    let stream = ask.state.stream_of(ask.client, params.channel)?;
    let latency = PlaybackLatency {
        sink_usec: ahead.as_micros() as u64,
        source_usec: 0,
        playing: stream.is_heard(),
        local_time: params.now,
        remote_time: params.now,
        write_offset: stream.queue.write_at(),
        read_offset: stream.queue.read_at(),
        underrun_for: stream.dry_for(now),
        playing_for: stream.heard_for(),
    };
    Answer::of(ask.version, &latency)
}

pub(super) fn buffer(
    ask: &mut Ask<'_>,
    params: &SetPlaybackStreamBufferAttrParams,
) -> Result<Answer, PulseError> {
    let stream = ask.state.stream_of(ask.client, params.index)?;
    let buffering = Buffering::agreed(&params.buffer_attr, &stream.spec);
    stream.buffer(buffering);
    let reply = SetPlaybackStreamBufferAttrReply {
        buffer_attr: buffering.told(),
        configured_sink_latency: ask.state.latency.as_micros() as u64,
    };
    ask.state.ask(params.index);
    Answer::of(ask.version, &reply)
}

pub(super) fn rate(ask: &mut Ask<'_>, params: &UpdateSampleRateParams) -> Result<Answer, PulseError> {
    let rate = playable(params.sample_rate)?;
    let stream = ask.state.stream_of(ask.client, params.index)?;
    if !stream.variable_rate {
        return Err(PulseError::BadState);
    }
    stream.spec.rate = rate;
    ask.state.stream_changed(params.index);
    Ok(Answer::ack())
}
