//! One stream from its creation to its end.

use std::time::{Duration, UNIX_EPOCH};

use pulseaudio::protocol::stream::{BufferAttr, StreamFlags};
use pulseaudio::protocol::{
    ChannelMap, Command, CorkStreamParams, CreatePlaybackStreamReply, LatencyParams, PlaybackLatency,
    PlaybackStreamParams, PulseError, SampleFormat, SampleSpec, SetPlaybackStreamBufferAttrParams,
    SetPlaybackStreamBufferAttrReply, Underflow, UpdateSampleRateParams,
};

use crate::script::{Desk, Program, attr, frames, samples, wish};

/// Bytes of a turn.
const TURN: u32 = 1920;
const USUAL: u32 = u32::MAX;

fn cork(channel: u32, cork: bool) -> Command {
    Command::CorkPlaybackStream(CorkStreamParams { channel, cork })
}

fn latency(desk: &mut Desk, program: &mut Program, channel: u32) -> PlaybackLatency {
    let now = UNIX_EPOCH + Duration::from_micros(1_234_567_890_123_456);
    let latency: PlaybackLatency =
        desk.ask(program, &Command::GetPlaybackLatency(LatencyParams { channel, now })).unwrap();
    assert_eq!((latency.local_time, latency.remote_time), (now, now));
    latency
}

/// Begins with sound when enough is there, asks for as much as was played, and says when it runs dry.
#[test]
fn a_stream_begins_goes_on_and_runs_dry() {
    let (mut desk, mut program) = (Desk::new(), None);
    let program = program.insert(desk.program());
    let stream = desk.stream(program, attr(USUAL, 4 * TURN, 4 * TURN));
    let channel = stream.channel;
    assert_eq!((stream.requested_bytes, stream.buffer_attr.minimum_request_length), (4 * TURN, TURN));
    // A request may wait until it is worth it: so much is enough to begin.
    assert_eq!(stream.buffer_attr.pre_buffering, 4 * TURN + 4 - TURN);

    desk.write(program, channel, &frames(0, 1440));
    assert!(!desk.server.is_playing(), "begins too early");
    desk.write(program, channel, &frames(1440, 480));
    assert!(desk.server.is_playing());
    assert_eq!(program.told(), []);

    assert_eq!(desk.turn(), samples(0, 480));
    desk.read(program);
    let request = Command::Request(pulseaudio::protocol::Request { channel, length: TURN });
    assert_eq!(program.told(), [Command::Started(channel), request.clone()]);
    desk.write(program, channel, &frames(1920, 480));
    assert_eq!(desk.turn(), samples(480, 480));
    desk.read(program);
    assert_eq!(program.told(), [request]);

    assert_eq!(desk.play(), [samples(960, 1440), vec![0; 960]].concat());
    desk.read(program);
    let told = program.told();
    assert!(
        told.contains(&Command::Underflow(Underflow { channel, offset: 5 * i64::from(TURN) })),
        "{told:?}"
    );
    desk.write(program, channel, &frames(2400, 480));
    assert!(!desk.server.is_playing(), "waits for enough again");
}

#[test]
fn a_program_is_asked_for_what_is_missing_once() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let stream = desk.stream(program, attr(USUAL, 10 * TURN, 0));
    let mut owed = stream.requested_bytes as usize;
    let mut written = 0;
    for turn in 0..200 {
        owed += program.asked_for();
        // Now and then it writes half of what it owes, or nothing.
        let now = [owed, owed / 8 * 4, 0][turn % 3];
        desk.write(program, stream.channel, &frames(written, now / 4));
        (written, owed) = (written + now / 4, owed - now);
        let latency = latency(&mut desk, program, stream.channel);
        let level = usize::try_from(latency.write_offset - latency.read_offset).unwrap_or(0);
        assert!(level + owed <= 10 * TURN as usize, "asked twice: {level} {owed}");
        desk.turn();
        desk.read(program);
    }
    assert!(written > 190 * 480, "not asked: {written}");
}

/// The figure of a program that asks for 20 ms: what it writes is heard in the turn after the next.
#[test]
fn a_click_is_heard_within_two_turns() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let stream = desk.stream(program, attr(USUAL, 2 * TURN, USUAL));
    desk.write(program, stream.channel, &vec![0; stream.requested_bytes as usize]);
    for _ in 0..10 {
        desk.turn();
        desk.read(program);
        let asked = program.asked_for();
        desk.write(program, stream.channel, &vec![0; asked]);
    }
    desk.turn();
    desk.read(program);
    let asked = program.asked_for();
    desk.write(program, stream.channel, &frames(0, asked / 4));
    assert!(desk.turn().iter().all(|sample| *sample == 0));
    assert!(desk.turn().iter().any(|sample| *sample != 0));
}

#[test]
fn a_corked_stream_waits_and_goes_on_where_it_was() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let flags = StreamFlags { start_corked: true, ..StreamFlags::default() };
    let wish = PlaybackStreamParams { flags, ..wish(attr(USUAL, 4 * TURN, TURN)) };
    let stream: CreatePlaybackStreamReply = desk.ask(program, &Command::CreatePlaybackStream(wish)).unwrap();
    desk.write(program, stream.channel, &frames(0, 1920));
    assert!(!desk.server.is_playing(), "it began corked");
    desk.order(program, &cork(stream.channel, false)).unwrap();
    assert_eq!(desk.turn(), samples(0, 480));
    desk.order(program, &cork(stream.channel, true)).unwrap();
    assert!(!desk.server.is_playing());
    assert_eq!(desk.turn(), [0; 960]);
    desk.order(program, &cork(stream.channel, false)).unwrap();
    assert_eq!(desk.turn(), samples(480, 480));
}

#[test]
fn trigger_begins_early_and_prebuf_waits_again() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let channel = desk.stream(program, attr(USUAL, 10 * TURN, 5 * TURN)).channel;
    desk.write(program, channel, &frames(0, 1440));
    desk.order(program, &Command::TriggerPlaybackStream(channel)).unwrap();
    assert_eq!(desk.turn(), samples(0, 480));
    desk.order(program, &Command::PrebufPlaybackStream(channel)).unwrap();
    assert!(!desk.server.is_playing());
    desk.write(program, channel, &frames(1440, 1440));
    assert_eq!(desk.turn(), samples(480, 480));
}

#[test]
fn flush_forgets_what_was_not_heard_and_asks_for_it_again() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let channel = desk.stream(program, attr(USUAL, 4 * TURN, TURN)).channel;
    desk.write(program, channel, &frames(0, 1920));
    assert_eq!(desk.turn(), samples(0, 480));
    desk.read(program);
    program.told();
    desk.order(program, &Command::FlushPlaybackStream(channel)).unwrap();
    assert!(!desk.server.is_playing());
    assert_eq!(program.asked_for(), 3 * TURN as usize);
    let latency = latency(&mut desk, program, channel);
    assert_eq!((latency.write_offset, latency.read_offset), (i64::from(TURN), i64::from(TURN)));
    desk.write(program, channel, &frames(9000, 480));
    assert_eq!(desk.turn(), samples(9000, 480));
}

#[test]
fn drain_is_answered_when_all_has_been_heard() {
    let mut desk = Desk::new();
    desk.server.set_latency(Duration::from_millis(55));
    let program = &mut desk.program();
    let channel = desk.stream(program, attr(USUAL, 100 * TURN, 50 * TURN)).channel;
    desk.write(program, channel, &frames(0, 700));
    let drains = [0, 0].map(|_| desk.send(program, &Command::DrainPlaybackStream(channel)));
    assert!(program.answers.is_empty(), "too early");
    let mut heard = Vec::new();
    // Two turns of sound, each heard 10 to 65 ms after it is mixed.
    for _ in 0..8 {
        heard.extend(desk.turn());
        desk.read(program);
        assert!(program.answers.is_empty(), "after {} turns", heard.len() / 960);
        assert!(desk.server.is_playing(), "its program waits");
    }
    heard.extend(desk.turn());
    desk.read(program);
    assert_eq!(program.answers, drains.map(|number| (number, Ok(Vec::new()))));
    assert_eq!(heard[..1400], samples(0, 700));
    assert!(!program.told().iter().any(|told| matches!(told, Command::Underflow(_))), "that was meant");
    assert!(!desk.server.is_playing());

    program.answers.clear();
    desk.send(program, &Command::DrainPlaybackStream(channel));
    assert!(desk.server.is_playing(), "also with nothing to play");
    desk.play();
    desk.read(program);
    assert_eq!(program.answers.len(), 1);
}

#[test]
fn who_waits_for_a_stream_that_is_deleted_is_told() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let channel = desk.stream(program, attr(USUAL, 4 * TURN, USUAL)).channel;
    desk.order(program, &cork(channel, true)).unwrap();
    desk.write(program, channel, &frames(0, 700));
    let drains: Vec<_> = (0..8).map(|_| desk.send(program, &Command::DrainPlaybackStream(channel))).collect();
    assert_eq!(desk.order(program, &Command::DrainPlaybackStream(channel)), Err(PulseError::BadState));
    assert!(!desk.server.is_playing(), "it is corked");
    desk.order(program, &Command::DeletePlaybackStream(channel)).unwrap();
    let refused: Vec<_> = drains.into_iter().map(|number| (number, Err(PulseError::NoEntity))).collect();
    assert_eq!(program.answers, refused);
    desk.write(program, channel, &frames(0, 700));
    assert_eq!(desk.order(program, &Command::FlushPlaybackStream(channel)), Err(PulseError::NoEntity));
}

/// Where a player believes it is, from one question to the next, is where it is heard.
#[test]
fn latency_tells_what_is_heard_now() {
    let mut desk = Desk::new();
    desk.server.set_latency(Duration::from_millis(100));
    let program = &mut desk.program();
    let channel = desk.stream(program, attr(USUAL, 50 * TURN, USUAL)).channel;
    let before = latency(&mut desk, program, channel);
    assert_eq!((before.playing, before.sink_usec, before.playing_for), (false, 100_000, 0));
    desk.now += Duration::from_millis(500);
    assert_eq!(latency(&mut desk, program, channel).underrun_for, u64::from(50 * TURN));
    desk.write(program, channel, &frames(0, 50 * 480));
    for turn in 1..40 {
        let start = desk.now;
        desk.turn();
        for millis in [0, 3, 9] {
            desk.now = start + Duration::from_millis(millis);
            let latency = latency(&mut desk, program, channel);
            assert!(latency.playing && latency.underrun_for == 0);
            assert_eq!(latency.playing_for, turn * u64::from(TURN));
            assert_eq!(latency.read_offset, turn as i64 * i64::from(TURN));
            // What was mixed in this turn is heard from 100 ms after its begin on.
            let heard = latency.read_offset / 192 * 1000 - latency.sink_usec as i64;
            assert_eq!(heard, (turn as i64 - 1) * 10_000 + millis as i64 * 1000 - 100_000);
        }
        desk.now = start + Duration::from_millis(10);
    }
}

#[test]
fn what_is_written_elsewhere_is_heard_there() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let channel = desk.stream(program, attr(USUAL, 10 * TURN, USUAL)).channel;
    desk.write(program, channel, &frames(0, 2400));
    let turn = i64::from(TURN);
    desk.write_at(program, channel, 1, turn, &frames(10_000, 480));
    desk.write_at(program, channel, 2, 2 * turn, &frames(20_000, 480));
    desk.write_at(program, channel, 3, 0, &frames(2400, 480));
    desk.write_at(program, channel, 0, turn, &frames(3360, 480));
    desk.write_at(program, channel, 0, -turn, &frames(30_000, 480));
    desk.send(program, &Command::DrainPlaybackStream(channel));
    let expected = [
        samples(0, 480),
        samples(10_000, 480),
        samples(20_000, 480),
        samples(1440, 1440),
        vec![0; 960],
        samples(30_000, 480),
    ];
    assert_eq!(desk.play()[..8 * 960], expected.concat());
}

/// A stream whose program begins it by itself goes on although nothing comes, and skips what comes too late.
#[test]
fn a_stream_without_waiting_keeps_its_clock() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let channel = desk.stream(program, attr(USUAL, 10 * TURN, 0)).channel;
    desk.write(program, channel, &frames(0, 480));
    assert_eq!(desk.turn(), samples(0, 480));
    assert_eq!(desk.turn(), [0; 960]);
    desk.write(program, channel, &frames(480, 960));
    assert_eq!(desk.turn(), samples(960, 480));
    desk.read(program);
    let told = program.told();
    let underflow = Command::Underflow(Underflow { channel, offset: i64::from(TURN) });
    let started = told.iter().filter(|told| **told == Command::Started(channel)).count();
    assert!(started == 2 && told.contains(&underflow), "{told:?}");
    let turns = desk.play().len() / 960;
    assert!((900..1100).contains(&turns), "sleeps after ten seconds, not {turns} turns");
    desk.write_at(program, channel, 2, 0, &frames(0, 480));
    assert_eq!(desk.turn(), samples(0, 480));
}

#[test]
fn a_program_that_writes_too_much_is_told_and_loses_the_rest() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let channel = desk.stream(program, attr(4 * TURN, 4 * TURN, USUAL)).channel;
    desk.write(program, channel, &frames(0, 2400));
    assert_eq!(program.told(), [Command::Overflow(channel)]);
    assert_eq!(desk.turn(), samples(0, 480));
    desk.write(program, channel, &frames(5000, 480));
    assert_eq!(desk.play()[..4 * 960], [samples(480, 1440), samples(5000, 480)].concat());
}

#[test]
fn formats_and_rates_are_played_for_as_long_as_they_last() {
    for (format, channels, rate) in [
        (SampleFormat::U8, 1, 8000),
        (SampleFormat::S24Be, 6, 44_100),
        (SampleFormat::Float32Le, 8, 192_000),
        (SampleFormat::Alaw, 1, 11_025),
    ] {
        let mut desk = Desk::new();
        let program = &mut desk.program();
        let sample_spec = SampleSpec { format, channels, sample_rate: rate };
        let wish = PlaybackStreamParams {
            sample_spec,
            channel_map: ChannelMap::empty(),
            ..wish(BufferAttr::default())
        };
        let stream: CreatePlaybackStreamReply =
            desk.ask(program, &Command::CreatePlaybackStream(wish)).unwrap();
        assert_eq!((stream.sample_spec, stream.channel_map.num_channels()), (sample_spec, channels));
        let half_a_second = rate as usize / 2 * usize::from(channels) * format.bytes_per_sample();
        let sound: Vec<u8> = (0..half_a_second).map(|at| if at % 3 == 0 { 0x11 } else { 0x3e }).collect();
        // It comes in pieces that are no whole frames.
        sound.chunks(1000).for_each(|piece| desk.write(program, stream.channel, piece));
        desk.send(program, &Command::DrainPlaybackStream(stream.channel));
        let heard = desk.play();
        let last = heard.iter().rposition(|sample| *sample != 0).unwrap() / 2;
        assert!((23_900..25_700).contains(&last), "{format:?} {rate}: {last} frames");
        desk.read(program);
        assert_eq!(program.answers.len(), 1);
    }
}

#[test]
fn a_stream_can_change_its_buffer_and_its_rate() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let flags = StreamFlags { variable_rate: true, ..StreamFlags::default() };
    let wish = PlaybackStreamParams { flags, ..wish(attr(USUAL, 4 * TURN, USUAL)) };
    let stream: CreatePlaybackStreamReply = desk.ask(program, &Command::CreatePlaybackStream(wish)).unwrap();
    let params = SetPlaybackStreamBufferAttrParams {
        index: stream.channel,
        buffer_attr: attr(USUAL, 20 * TURN, 0),
        adjust_latency: true,
        early_requests: false,
    };
    let reply: SetPlaybackStreamBufferAttrReply =
        desk.ask(program, &Command::SetPlaybackStreamBufferAttr(params)).unwrap();
    assert_eq!((reply.buffer_attr.target_length, reply.buffer_attr.pre_buffering), (20 * TURN, 0));
    assert_eq!(program.asked_for(), 16 * TURN as usize);

    let rate = |index, sample_rate| {
        Command::UpdatePlaybackStreamSampleRate(UpdateSampleRateParams { index, sample_rate })
    };
    desk.write(program, stream.channel, &frames(0, 9600));
    desk.turn();
    desk.order(program, &rate(stream.channel, 96_000)).unwrap();
    desk.turn();
    let read = latency(&mut desk, program, stream.channel).read_offset / 4;
    assert!((480 + 960..480 + 960 + 200).contains(&read), "twice as fast: {read}");
    assert_eq!(desk.order(program, &rate(stream.channel, 0)), Err(PulseError::Invalid));
    let fixed = desk.stream(program, BufferAttr::default());
    assert_eq!(desk.order(program, &rate(fixed.channel, 44_100)), Err(PulseError::BadState));
}

#[test]
fn two_programs_are_heard_together_and_clipped() {
    let mut desk = Desk::new();
    let (mut one, mut two) = (desk.program(), desk.program());
    let mut play = |program: &mut Program, sample: i16| {
        let channel = desk.stream(program, attr(USUAL, 4 * TURN, TURN)).channel;
        let bytes: Vec<u8> = (0..960).flat_map(|_| sample.to_le_bytes()).collect();
        desk.write(program, channel, &bytes);
    };
    play(&mut one, 20_000);
    play(&mut two, 1000);
    assert_eq!(desk.turn(), [21_000; 960]);
    let mut play = |program: &mut Program, sample: i16| {
        let channel = desk.stream(program, attr(USUAL, 4 * TURN, TURN)).channel;
        let bytes: Vec<u8> = (0..960).flat_map(|_| sample.to_le_bytes()).collect();
        desk.write(program, channel, &bytes);
    };
    play(&mut one, 20_000);
    play(&mut two, 20_000);
    assert_eq!(desk.turn(), [i16::MAX; 960]);
}
