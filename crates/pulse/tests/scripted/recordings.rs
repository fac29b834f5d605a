//! Streams that record, from their creation to their end.

use std::time::{Duration, UNIX_EPOCH};

use pulseaudio::protocol::stream::BufferAttr;
use pulseaudio::protocol::{
    Command, CorkStreamParams, CreateRecordStreamReply, LatencyParams, PulseError, RecordLatency,
    RecordStreamParams, ServerInfo, SourceInfoList, SourceOutputInfoList, SubscriptionMask,
};

use crate::script::{Desk, Program, frames, samples, wish};

const TURN: u32 = 1920;
const USUAL: u32 = u32::MAX;

/// Wants pieces of so many bytes, of 48 kHz, 16 bits and two channels.
fn recording(limit: u32, fragment_size: u32) -> RecordStreamParams {
    let wish = wish(BufferAttr { max_length: limit, fragment_size, ..BufferAttr::default() });
    RecordStreamParams {
        sample_spec: wish.sample_spec,
        channel_map: wish.channel_map,
        buffer_attr: wish.buffer_attr,
        ..RecordStreamParams::default()
    }
}

fn create(desk: &mut Desk, program: &mut Program, params: RecordStreamParams) -> Result<u32, PulseError> {
    let reply = desk.ask::<CreateRecordStreamReply>(program, &Command::CreateRecordStream(params));
    reply.map(|reply| reply.channel)
}

/// The microphone's turn with this number.
fn speak(desk: &mut Desk, turn: usize) {
    let block: Vec<f32> =
        samples(480 * turn, 480).iter().map(|sample| f32::from(*sample) / 32_768.0).collect();
    desk.server.record(desk.now, block.as_slice().try_into().unwrap());
}

fn with_microphone() -> (Desk, Program) {
    let mut desk = Desk::new();
    desk.server.set_microphone(true);
    let program = desk.program();
    (desk, program)
}

#[test]
fn without_a_microphone_there_is_no_source() {
    let mut desk = Desk::new();
    let mut program = desk.program();
    let info: ServerInfo = desk.ask(&mut program, &Command::GetServerInfo).unwrap();
    assert_eq!(info.default_source_name.as_deref(), Some(c""));
    assert_eq!(create(&mut desk, &mut program, recording(USUAL, USUAL)), Err(PulseError::NoEntity));
    assert!(!desk.server.is_recording());
}

#[test]
fn a_microphone_is_told_of_when_it_comes_and_goes() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    desk.order(program, &Command::Subscribe(SubscriptionMask::SOURCE)).unwrap();
    desk.server.set_microphone(true);
    desk.server.set_microphone(true);
    desk.read(program);
    assert_eq!(program.told().len(), 1);
    let info: ServerInfo = desk.ask(program, &Command::GetServerInfo).unwrap();
    let sources: SourceInfoList = desk.ask(program, &Command::GetSourceInfoList).unwrap();
    let [source] = &sources[..] else { panic!("{} sources", sources.len()) };
    assert_eq!(info.default_source_name.as_ref(), Some(&source.name));
    assert_eq!(source.monitor_of_sink_index, None);

    let channel = create(&mut desk, program, recording(USUAL, USUAL)).unwrap();
    assert!(desk.server.is_recording());
    desk.server.set_microphone(false);
    desk.read(program);
    assert!(program.told().contains(&Command::RecordStreamKilled(channel)));
    assert!(!desk.server.is_recording());
    assert_eq!(desk.order(program, &Command::DeleteRecordStream(channel)), Err(PulseError::NoEntity));
}

#[test]
fn what_is_spoken_is_recorded_bit_for_bit_in_pieces() {
    let (mut desk, mut program) = with_microphone();
    let program = &mut program;
    let channel = create(&mut desk, program, recording(USUAL, 2 * TURN)).unwrap();
    speak(&mut desk, 0);
    desk.read(program);
    assert_eq!(program.recorded, [], "a piece has two turns");
    (1..5).for_each(|turn| speak(&mut desk, turn));
    desk.read(program);
    let pieces = [(channel, frames(0, 960)), (channel, frames(960, 960))];
    assert_eq!(program.recorded, pieces);

    let now = UNIX_EPOCH + Duration::from_secs(1);
    let latency: RecordLatency =
        desk.ask(program, &Command::GetRecordLatency(LatencyParams { channel, now })).unwrap();
    assert_eq!((latency.write_offset, latency.read_offset), (5 * 1920, 4 * 1920));
    let outputs: SourceOutputInfoList = desk.ask(program, &Command::GetSourceOutputInfoList).unwrap();
    assert_eq!(outputs.iter().map(|one| one.index).collect::<Vec<_>>(), [channel]);
}

#[test]
fn a_corked_stream_records_nothing_and_is_not_counted() {
    let (mut desk, mut program) = with_microphone();
    let program = &mut program;
    let channel = create(&mut desk, program, recording(USUAL, TURN)).unwrap();
    let cork = |cork| Command::CorkRecordStream(CorkStreamParams { channel, cork });
    desk.order(program, &cork(true)).unwrap();
    assert!(!desk.server.is_recording());
    speak(&mut desk, 0);
    desk.order(program, &cork(false)).unwrap();
    speak(&mut desk, 1);
    desk.read(program);
    assert_eq!(program.recorded, [(channel, frames(480, 480))]);
}

#[test]
fn a_program_that_does_not_read_loses_the_oldest() {
    let (mut desk, mut program) = with_microphone();
    let program = &mut program;
    create(&mut desk, program, recording(4 * TURN, TURN)).unwrap();
    (0..1000).for_each(|turn| speak(&mut desk, turn));
    let unread = desk.server.unwritten(program.id).len();
    assert!(unread < (256 << 10) + 4096, "{unread} bytes wait for a program that does not read");
    desk.read(program);
    let (_, last) = program.recorded.last().unwrap();
    assert_eq!(*last, frames(999 * 480, 480), "what is new is kept");
}

#[test]
fn streams_that_record_are_limited_and_each_is_its_clients() {
    let (mut desk, mut program) = with_microphone();
    let mut channels = Vec::new();
    let refused = loop {
        match create(&mut desk, &mut program, recording(USUAL, USUAL)) {
            Ok(channel) => channels.push(channel),
            Err(error) => break error,
        }
    };
    assert_eq!((channels.len(), refused), (16, PulseError::TooLarge));
    let mut other = desk.program();
    let delete = Command::DeleteRecordStream(channels[0]);
    assert_eq!(desk.order(&mut other, &delete), Err(PulseError::NoEntity));
    desk.server.disconnect(program.id);
    assert!(!desk.server.is_recording());
    assert!(create(&mut desk, &mut other, recording(USUAL, USUAL)).is_ok());
}

/// Each piece costs a message, and the mixer's turn is for all programs.
#[test]
fn regression_a_program_that_records_frame_by_frame_takes_most_of_the_turn() {
    let (mut desk, mut program) = with_microphone();
    let program = &mut program;
    let channel = create(&mut desk, program, recording(USUAL, 4)).unwrap();
    (0..3).for_each(|turn| speak(&mut desk, turn));
    desk.read(program);
    let pieces: Vec<_> = (0..3).map(|turn| (channel, frames(480 * turn, 480))).collect();
    assert_eq!(program.recorded.len(), 3, "a turn at a time");
    assert!(program.recorded == pieces);
}
