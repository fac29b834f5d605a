//! Which handler answers which command.
//!
//! Invariant: each command that can be read as one is answered, by what a handler says or by an error with its number.

mod clients;
mod inputs;
mod outputs;
mod playing;
mod recording;
mod sink;
mod source;

use pulseaudio::protocol::{Command, CommandTag, MAX_VERSION, ProtocolError, PulseError};

use super::answer::{Answer, refusal};
use super::ask::Ask;
use super::client::ClientId;
use super::state::State;
use super::tags;

/// Answers a client's command.
pub(crate) fn answer(state: &mut State, client: ClientId, command: &[u8]) {
    let Some((tag, sequence, values)) = tags::opening(command) else {
        return state.end(client, "sends a command without a number");
    };
    let Some(version) = state.clients.get(&client).map(|client| client.version) else { return };
    let answer = match parsed(command, tag, values, version.unwrap_or(MAX_VERSION)) {
        Ok(Command::Auth(params)) => clients::say_hello(state, client, &params),
        _ if version.is_none() => Err(PulseError::AccessDenied),
        Ok(command) => {
            let version = version.unwrap_or(MAX_VERSION);
            run(&mut Ask { state, client, version, sequence }, command, values)
        }
        Err(error) => Err(error),
    };
    if let Some(client) = state.clients.get_mut(&client) {
        match answer {
            Ok(Answer::Later) => {}
            Ok(answer) => client.output.push(&answer.to_vec(sequence)),
            Err(error) => client.output.push(&refusal(sequence, error)),
        }
    }
}

fn parsed(command: &[u8], tag: u32, values: &[u8], version: u16) -> Result<Command, PulseError> {
    if tag > CommandTag::SendObjectMessage as u32 || OBSOLETE.contains(&tag) {
        return Err(PulseError::Command);
    }
    if !tags::check(values) {
        return Err(PulseError::Protocol);
    }
    match Command::read_tag_prefixed(&mut &command[..], version) {
        Ok((_, command)) => Ok(command),
        Err(ProtocolError::Unimplemented(..)) => Err(PulseError::NotSupported),
        Err(_) => Err(PulseError::Protocol),
    }
}

fn run(ask: &mut Ask<'_>, command: Command, values: &[u8]) -> Result<Answer, PulseError> {
    match command {
        Command::SetClientName(props) => clients::name(ask, &props),
        Command::UpdateClientProplist(params) => clients::update_props(ask, &params),
        Command::RemoveClientProplist => clients::remove_props(ask, values),
        Command::GetClientInfo(index) => clients::info(ask, index),
        Command::GetClientInfoList => clients::list(ask),
        Command::Subscribe(events) => clients::subscribe(ask, events),

        Command::GetServerInfo => sink::server_info(ask),
        Command::GetSinkInfo(params) => sink::info(ask, &params),
        Command::GetSinkInfoList => sink::list(ask),
        Command::LookupSink(name) => sink::lookup(ask, &name),
        Command::SetSinkVolume(params) => sink::set_volume(ask, &params),
        Command::SetSinkMute(params) => sink::set_mute(ask, &params),
        Command::SetDefaultSink(name) => sink::set_default(&name),
        Command::Stat => sink::stat(ask),

        Command::GetSinkInputInfo(index) => inputs::info(ask, index),
        Command::GetSinkInputInfoList => inputs::list(ask),
        Command::SetSinkInputVolume(params) => inputs::set_volume(ask, &params),
        Command::SetSinkInputMute(params) => inputs::set_mute(ask, &params),
        Command::MoveSinkInput(params) => inputs::move_to(ask, &params),
        Command::SetPlaybackStreamName(params) => inputs::name(ask, params),
        Command::UpdatePlaybackStreamProplist(params) => inputs::update_props(ask, &params),
        Command::RemovePlaybackStreamProplist(index) => inputs::remove_props(ask, index, values),

        Command::CreatePlaybackStream(params) => playing::create(ask, &params),
        Command::DeletePlaybackStream(index) => playing::delete(ask, index),
        Command::CorkPlaybackStream(params) => playing::cork(ask, &params),
        Command::TriggerPlaybackStream(index) => playing::trigger(ask, index),
        Command::PrebufPlaybackStream(index) => playing::prebuf(ask, index),
        Command::FlushPlaybackStream(index) => playing::flush(ask, index),
        Command::DrainPlaybackStream(index) => playing::drain(ask, index),
        Command::GetPlaybackLatency(params) => playing::latency(ask, &params),
        Command::SetPlaybackStreamBufferAttr(params) => playing::buffer(ask, &params),
        Command::UpdatePlaybackStreamSampleRate(params) => playing::rate(ask, &params),
        other => microphone(ask, other, values),
    }
}

/// What has to do with the microphone.
fn microphone(ask: &mut Ask<'_>, command: Command, values: &[u8]) -> Result<Answer, PulseError> {
    match command {
        Command::GetSourceInfo(params) => source::info(ask, &params),
        Command::GetSourceInfoList => source::list(ask),
        Command::LookupSource(name) => source::lookup(ask, &name),
        Command::SetSourceVolume(params) => source::set_volume(ask, &params),
        Command::SetSourceMute(params) => source::set_mute(ask, &params),
        Command::SetDefaultSource(name) => source::set_default(ask, &name),

        Command::GetSourceOutputInfo(index) => outputs::info(ask, index),
        Command::GetSourceOutputInfoList => outputs::list(ask),
        Command::SetSourceOutputVolume(params) => outputs::set_volume(ask, &params),
        Command::SetSourceOutputMute(params) => outputs::set_mute(ask, &params),
        Command::MoveSourceOutput(params) => outputs::move_to(ask, &params),
        Command::SetRecordStreamName(params) => outputs::name(ask, params),
        Command::UpdateRecordStreamProplist(params) => outputs::update_props(ask, &params),
        Command::RemoveRecordStreamProplist(index) => outputs::remove_props(ask, index, values),

        Command::CreateRecordStream(params) => recording::create(ask, &params),
        Command::DeleteRecordStream(index) => recording::delete(ask, index),
        Command::CorkRecordStream(params) => recording::cork(ask, &params),
        Command::FlushRecordStream(index) => recording::flush(ask, index),
        Command::GetRecordLatency(params) => recording::latency(ask, &params),
        Command::SetRecordStreamBufferAttr(params) => recording::buffer(ask, &params),
        Command::UpdateRecordStreamSampleRate(params) => recording::rate(ask, &params),
        other => missing(&other),
    }
}

/// There are no cards, modules and samples, and nothing can be loaded or ended through a client.
fn missing(command: &Command) -> Result<Answer, PulseError> {
    match command {
        Command::GetModuleInfoList | Command::GetCardInfoList | Command::GetSampleInfoList => {
            Ok(Answer::ack())
        }
        Command::Exit
        | Command::KillClient(_)
        | Command::KillSinkInput(_)
        | Command::KillSourceOutput(_)
        | Command::SetPortLatencyOffset(_)
        | Command::SuspendSink(_) => Err(PulseError::AccessDenied),
        Command::CreateUploadStream(_) | Command::LoadModule(_) => Err(PulseError::NotSupported),
        Command::Extension(_) => Err(PulseError::NoExtension),
        // What only a server says.
        Command::Error(_)
        | Command::Reply
        | Command::Timeout
        | Command::Request(_)
        | Command::Overflow(_)
        | Command::Underflow(_)
        | Command::Started(_)
        | Command::PlaybackStreamKilled(_)
        | Command::RecordStreamKilled(_)
        | Command::PlaybackStreamSuspended(_)
        | Command::RecordStreamSuspended(_)
        | Command::PlaybackStreamMoved(_)
        | Command::RecordStreamMoved(_)
        | Command::PlaybackBufferAttrChanged(_)
        | Command::RecordBufferAttrChanged(_)
        | Command::ClientEvent(_)
        | Command::PlaybackStreamEvent(_)
        | Command::RecordStreamEvent(_)
        | Command::SubscribeEvent(_) => Err(PulseError::Command),
        // All others name a card, a module, a sample or a port.
        _ => Err(PulseError::NoEntity),
    }
}

/// Commands that PulseAudio itself no longer has.
const OBSOLETE: std::ops::RangeInclusive<u32> = 53..=56;
