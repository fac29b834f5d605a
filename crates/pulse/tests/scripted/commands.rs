//! What clients ask of the server, its sink, and each other's streams.

use std::ffi::CString;

use pulseaudio::protocol::props::PropsUpdateMode;
use pulseaudio::protocol::stream::BufferAttr;
use pulseaudio::protocol::{
    AuthParams, AuthReply, CardInfoList, ChannelVolume, ClientInfo, ClientInfoList, Command,
    CorkStreamParams, GetSinkInfo, GetSourceInfo, LookupReply, MAX_VERSION, ModuleInfoList, MoveStreamParams,
    PlaybackStreamParams, Prop, Props, PulseError, RecordStreamParams, ServerInfo, SetDeviceMuteParams,
    SetDeviceVolumeParams, SetStreamMuteParams, SetStreamNameParams, SetStreamVolumeParams, SinkInfo,
    SinkInfoList, SinkInputInfo, SinkInputInfoList, SinkState, SourceInfoList, StatInfo, SubscriptionEvent,
    SubscriptionEventFacility as Facility, SubscriptionEventType as Event, SubscriptionMask,
    UpdateClientProplistParams, UpdatePropsParams, Volume,
};

use crate::script::{Desk, Program, attr, frames, wish};

fn volume(volumes: &[u32]) -> ChannelVolume {
    let mut volume = ChannelVolume::empty();
    volumes.iter().for_each(|raw| volume.push(Volume::from_u32_clamped(*raw)));
    volume
}

fn props(entries: &[(&str, &str)]) -> Props {
    let mut props = Props::new();
    for (key, value) in entries {
        props.set_bytes(CString::new(*key).unwrap(), CString::new(*value).unwrap().as_bytes_with_nul());
    }
    props
}

#[test]
fn hello_comes_first_and_agrees_on_a_version() {
    let mut desk = Desk::new();
    let mut program = desk.stranger();
    assert_eq!(desk.order(&mut program, &Command::GetServerInfo), Err(PulseError::AccessDenied));
    let hello = |version| Command::Auth(AuthParams { version, supports_shm: true, ..AuthParams::default() });
    assert_eq!(desk.order(&mut program, &hello(12)), Err(PulseError::Version));
    assert_eq!(desk.order(&mut program, &Command::Stat), Err(PulseError::AccessDenied));
    for (theirs, ours) in [(15, 15), (30, 30), (35, 35), (99, MAX_VERSION)] {
        let reply: AuthReply = desk.ask(&mut program, &hello(theirs)).unwrap();
        assert_eq!(reply, AuthReply { version: ours, use_memfd: false, use_shm: false });
    }
    let _: ServerInfo = desk.ask(&mut program, &Command::GetServerInfo).unwrap();
}

#[test]
fn there_is_one_sink_and_nothing_else() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let info: ServerInfo = desk.ask(program, &Command::GetServerInfo).unwrap();
    assert_eq!(info.default_sink_name.as_deref(), Some(c"wayferry"));
    let sinks: SinkInfoList = desk.ask(program, &Command::GetSinkInfoList).unwrap();
    assert_eq!(sinks.len(), 1);
    assert_eq!((&*sinks[0].name, sinks[0].description.as_deref()), (c"wayferry", Some(c"Wayferry")));
    assert_eq!((sinks[0].state, sinks[0].monitor_source_index), (SinkState::Idle, None));
    for (index, name) in
        [(Some(0), None), (None, Some(c"wayferry")), (None, Some(c"@DEFAULT_SINK@")), (None, None)]
    {
        let name = name.map(ToOwned::to_owned);
        let sink: SinkInfo = desk.ask(program, &Command::GetSinkInfo(GetSinkInfo { index, name })).unwrap();
        assert_eq!(sink, sinks[0]);
    }
    let found: LookupReply = desk.ask(program, &Command::LookupSink(c"wayferry".to_owned())).unwrap();
    assert_eq!(found, LookupReply(0));
    assert_eq!(desk.order(program, &Command::LookupSink(c"other".to_owned())), Err(PulseError::NoEntity));
    assert_eq!(
        desk.order(program, &Command::LookupSource(c"wayferry.monitor".to_owned())),
        Err(PulseError::NoEntity)
    );
    let source = GetSourceInfo { index: Some(0), name: None };
    assert_eq!(desk.order(program, &Command::GetSourceInfo(source)), Err(PulseError::NoEntity));
    assert_eq!(desk.ask::<SourceInfoList>(program, &Command::GetSourceInfoList), Ok(vec![]));
    assert_eq!(desk.ask::<ModuleInfoList>(program, &Command::GetModuleInfoList), Ok(vec![]));
    assert_eq!(desk.ask::<CardInfoList>(program, &Command::GetCardInfoList), Ok(vec![]));
    let stat: StatInfo = desk.ask(program, &Command::Stat).unwrap();
    assert_eq!(stat, StatInfo::default());
}

/// Each number that a command could have is answered, also without the values that it needs.
#[test]
fn every_command_is_answered_with_its_number() {
    let mut desk = Desk::new();
    let mut program = desk.program();
    for tag in (0..200).chain([u32::MAX]).filter(|tag| *tag != 8) {
        for values in [&b""[..], &[b'L', 0, 0, 0, 0], &[b'L', 0, 0, 0, 0, b'1'], b"N", b"t\0", b"P", b"?"] {
            let mut command = [&[b'L'][..], &tag.to_be_bytes(), b"L", &[9, 9, 9, 9]].concat();
            command.extend(values);
            let mut bytes = (command.len() as u32).to_be_bytes().to_vec();
            bytes.extend([255; 4]);
            bytes.extend([0; 12]);
            bytes.extend(command);
            desk.server.receive(desk.now, program.id, &bytes);
            desk.read(&mut program);
            let answers: Vec<_> = program.answers.drain(..).collect();
            assert!(matches!(answers[..], [(0x0909_0909, _)]), "{tag}: {answers:?}");
            assert_eq!(desk.server.end(program.id), None, "{tag}");
        }
    }
}

#[test]
fn what_programs_may_not_do_is_refused() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let stream = desk.stream(program, BufferAttr::default()).stream_index;
    let passthrough = pulseaudio::protocol::stream::StreamFlags { passthrough: true, ..Default::default() };
    let elsewhere =
        PlaybackStreamParams { sink_name: Some(c"other".to_owned()), ..wish(BufferAttr::default()) };
    for (command, error) in [
        (Command::Exit, PulseError::AccessDenied),
        (Command::KillClient(0), PulseError::AccessDenied),
        (Command::KillSinkInput(stream), PulseError::AccessDenied),
        (Command::CreateRecordStream(RecordStreamParams::default()), PulseError::NoEntity),
        (Command::DeleteRecordStream(0), PulseError::NoEntity),
        (Command::RemoveSample(c"bell".to_owned()), PulseError::NoEntity),
        (Command::UnloadModule(0), PulseError::NoEntity),
        (Command::SetDefaultSource(c"x".to_owned()), PulseError::NoEntity),
        (Command::SetDefaultSink(c"x".to_owned()), PulseError::NoEntity),
        (Command::CreatePlaybackStream(elsewhere), PulseError::NoEntity),
        (
            Command::CreatePlaybackStream(PlaybackStreamParams {
                flags: passthrough,
                ..wish(BufferAttr::default())
            }),
            PulseError::NotSupported,
        ),
        (Command::Started(0), PulseError::Command),
    ] {
        assert_eq!(desk.order(program, &command), Err(error), "{command:?}");
    }
    desk.order(program, &Command::SetDefaultSink(c"wayferry".to_owned())).unwrap();
}

#[test]
fn only_its_program_rules_a_stream() {
    let mut desk = Desk::new();
    let (mut one, mut other) = (desk.program(), desk.program());
    let channel = desk.stream(&mut one, attr(u32::MAX, 20_000, 4)).channel;
    desk.write(&mut other, channel, &frames(0, 480));
    assert!(!desk.server.is_playing(), "writes to another's stream");
    let cork = CorkStreamParams { channel, cork: true };
    for command in [
        Command::DeletePlaybackStream(channel),
        Command::CorkPlaybackStream(cork),
        Command::FlushPlaybackStream(channel),
        Command::DrainPlaybackStream(channel),
        Command::TriggerPlaybackStream(channel),
        Command::PrebufPlaybackStream(channel),
        Command::SetPlaybackStreamName(SetStreamNameParams { index: channel, name: c"mine".to_owned() }),
    ] {
        assert_eq!(desk.order(&mut other, &command), Err(PulseError::NoEntity), "{command:?}");
    }
}

#[test]
fn volumes_of_streams_and_sink_are_heard() {
    let mut desk = Desk::new();
    let (mut player, mut mixer) = (desk.program(), desk.program());
    let channel = desk.stream(&mut player, attr(u32::MAX, 100_000, 4)).channel;
    let sound: Vec<u8> = (0..4800).flat_map(|_| [0, 0x40, 0, 0xc0]).collect();
    desk.write(&mut player, channel, &sound);
    let heard = |desk: &mut Desk| {
        let turn = desk.turn();
        [turn[0], turn[1]]
    };
    const FULL: u32 = 0x10000;
    assert_eq!(heard(&mut desk), [16_384, -16_384]);
    let to = |volume| Command::SetSinkInputVolume(SetStreamVolumeParams { index: channel, volume });
    desk.order(&mut mixer, &to(volume(&[FULL / 2, FULL]))).unwrap();
    assert_eq!(heard(&mut desk), [2048, -16_384]);
    desk.order(&mut mixer, &to(volume(&[FULL / 2]))).unwrap();
    assert_eq!(heard(&mut desk), [2048, -2048]);
    assert_eq!(desk.order(&mut mixer, &to(volume(&[FULL; 3]))), Err(PulseError::Invalid));
    desk.order(&mut mixer, &to(volume(&[FULL]))).unwrap();

    let (device_index, device_name) = (Some(0), None);
    let to = |volume| {
        Command::SetSinkVolume(SetDeviceVolumeParams {
            device_index,
            device_name: device_name.clone(),
            volume,
        })
    };
    desk.order(&mut mixer, &to(volume(&[FULL, FULL / 2]))).unwrap();
    assert_eq!(heard(&mut desk), [16_384, -2048]);
    desk.order(&mut mixer, &to(volume(&[FULL]))).unwrap();
    let mute = |mute| {
        Command::SetSinkMute(SetDeviceMuteParams { device_index, device_name: device_name.clone(), mute })
    };
    desk.order(&mut mixer, &mute(true)).unwrap();
    assert_eq!(heard(&mut desk), [0, 0]);
    let sink: SinkInfo = desk.ask(&mut mixer, &Command::GetSinkInfo(GetSinkInfo::default())).unwrap();
    assert_eq!((sink.muted, sink.cvolume, sink.state), (true, volume(&[FULL; 2]), SinkState::Running));
    desk.order(&mut mixer, &mute(false)).unwrap();
    desk.order(&mut mixer, &Command::SetSinkInputMute(SetStreamMuteParams { index: channel, mute: true }))
        .unwrap();
    assert_eq!(heard(&mut desk), [0, 0]);
    desk.order(&mut mixer, &Command::SetSinkInputMute(SetStreamMuteParams { index: channel, mute: false }))
        .unwrap();
    assert_eq!(heard(&mut desk), [16_384, -16_384]);
}

#[test]
fn others_see_a_stream_with_its_name() {
    let mut desk = Desk::new();
    let (mut player, mut other) = (desk.program(), desk.program());
    let named =
        PlaybackStreamParams { props: props(&[("media.name", "first"), ("a", "1")]), ..wish(attr(9, 9, 9)) };
    desk.order(&mut player, &Command::CreatePlaybackStream(named)).unwrap();
    let inputs: SinkInputInfoList = desk.ask(&mut other, &Command::GetSinkInputInfoList).unwrap();
    let [input] = &inputs[..] else { panic!("{inputs:?}") };
    assert_eq!((&*input.name, input.client_index, input.sink_index), (c"first", Some(player.id.0), 0));
    assert!(!input.corked && !input.muted && input.has_volume && input.volume_writable);
    let index = input.index;

    let mut seen = |desk: &mut Desk, command: &Command| {
        desk.order(&mut player, command).unwrap();
        desk.ask::<SinkInputInfo>(&mut other, &Command::GetSinkInputInfo(index)).unwrap().props
    };
    let name = Command::SetPlaybackStreamName(SetStreamNameParams { index, name: c"second".to_owned() });
    assert_eq!(seen(&mut desk, &name), props(&[("media.name", "second"), ("a", "1")]));
    let update = |mode, entries: &[(&str, &str)]| {
        Command::UpdatePlaybackStreamProplist(UpdatePropsParams { index, mode, props: props(entries) })
    };
    let merged = props(&[("media.name", "second"), ("a", "1"), ("b", "2")]);
    assert_eq!(seen(&mut desk, &update(PropsUpdateMode::Merge, &[("a", "2"), ("b", "2")])), merged);
    let set = [("a", "3"), ("c", "3")];
    assert_eq!(seen(&mut desk, &update(PropsUpdateMode::Set, &set)), props(&set));
    // The crate writes no keys: they follow the index.
    remove(&mut desk, &mut player, 84, &[&[b'L'][..], &index.to_be_bytes(), b"ta\0N"].concat());
    let input: SinkInputInfo = desk.ask(&mut other, &Command::GetSinkInputInfo(index)).unwrap();
    assert_eq!(input.props, props(&[("c", "3")]));

    let moved = MoveStreamParams { index: Some(index), device_index: Some(0), device_name: None };
    desk.order(&mut other, &Command::MoveSinkInput(moved.clone())).unwrap();
    let moved = MoveStreamParams { device_index: Some(1), ..moved };
    assert_eq!(desk.order(&mut other, &Command::MoveSinkInput(moved)), Err(PulseError::NoEntity));
    assert_eq!(desk.order(&mut other, &Command::GetSinkInputInfo(99)), Err(PulseError::NoEntity));
}

#[test]
fn others_see_a_client_with_its_name() {
    let mut desk = Desk::new();
    let (mut one, mut other) = (desk.program(), desk.program());
    desk.order(&mut one, &Command::SetClientName(props(&[("application.name", "player"), ("a", "1")])))
        .unwrap();
    let update = UpdateClientProplistParams { mode: PropsUpdateMode::Replace, props: props(&[("b", "2")]) };
    desk.order(&mut one, &Command::UpdateClientProplist(update)).unwrap();
    remove(&mut desk, &mut one, 85, b"ta\0N");
    let clients: ClientInfoList = desk.ask(&mut other, &Command::GetClientInfoList).unwrap();
    assert_eq!(clients.len(), 2);
    let info: ClientInfo = desk.ask(&mut other, &Command::GetClientInfo(one.id.0)).unwrap();
    assert_eq!(
        (&*info.name, &info.props),
        (c"player", &props(&[("application.name", "player"), ("b", "2")]))
    );
    assert!(info.props.get(Prop::ApplicationName).is_some());
    desk.server.disconnect(one.id);
    assert_eq!(desk.order(&mut other, &Command::GetClientInfo(one.id.0)), Err(PulseError::NoEntity));
}

fn remove(desk: &mut Desk, program: &mut Program, tag: u32, values: &[u8]) {
    let command = [&[b'L'][..], &tag.to_be_bytes(), &[b'L', 0, 0, 0, 7], values].concat();
    let bytes = [&(command.len() as u32).to_be_bytes()[..], &[255; 4], &[0; 12], &command].concat();
    desk.server.receive(desk.now, program.id, &bytes);
    desk.read(program);
    assert_eq!(program.answers.pop(), Some((7, Ok(vec![]))));
}

#[test]
fn subscribers_are_told_of_what_they_asked() {
    let mut desk = Desk::new();
    let (mut player, mut watcher) = (desk.program(), desk.program());
    desk.order(&mut watcher, &Command::Subscribe(SubscriptionMask::SINK_INPUT | SubscriptionMask::SINK))
        .unwrap();
    let index = desk.stream(&mut player, attr(9, 9, 9)).stream_index;
    let cork = CorkStreamParams { channel: index, cork: true };
    desk.order(&mut player, &Command::CorkPlaybackStream(cork)).unwrap();
    let volume = SetDeviceVolumeParams { device_index: None, device_name: None, volume: volume(&[9]) };
    desk.order(&mut player, &Command::SetSinkVolume(volume)).unwrap();
    desk.server.disconnect(player.id);
    desk.read(&mut watcher);
    let event = |event_facility, event_type, index| {
        Command::SubscribeEvent(SubscriptionEvent { event_facility, event_type, index: Some(index) })
    };
    let expected = [
        event(Facility::SinkInput, Event::New, index),
        event(Facility::SinkInput, Event::Changed, index),
        event(Facility::Sink, Event::Changed, 0),
        event(Facility::SinkInput, Event::Removed, index),
    ];
    assert_eq!(watcher.told(), expected);
}
