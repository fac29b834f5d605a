//! Clients that mean no good, or are broken.

use std::ffi::CString;

use pulseaudio::protocol::stream::BufferAttr;
use pulseaudio::protocol::{
    ChannelMap, Command, CorkStreamParams, CreatePlaybackStreamReply, PlaybackStreamParams, Props,
    PulseError, SampleFormat, SampleSpec, SinkInputInfoList, SubscriptionMask, UpdateClientProplistParams,
    props::PropsUpdateMode,
};

use crate::script::{Desk, attr, frames, samples, wish};

fn header(length: u32, channel: u32, flags: u32) -> Vec<u8> {
    [length, channel, 0, 0, flags].iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// While all of them come and go, one program is heard without a gap.
#[test]
fn ten_thousand_connections_of_garbage_harm_nobody() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let channel = desk.stream(program, attr(u32::MAX, 19_200, 4)).channel;
    let (mut heard, mut written, mut seed) = (Vec::new(), 0, 7);
    for round in 0..10_000u32 {
        let id = desk.server.connect().unwrap();
        let length = random(&mut seed) as usize % 300;
        let mut bytes: Vec<u8> = (0..length).map(|_| random(&mut seed) as u8).collect();
        if round % 2 == 0 {
            // Garbage with a good header gets further.
            bytes = [header(length as u32, [u32::MAX, channel][round as usize / 2 % 2], 0), bytes].concat();
        }
        desk.server.receive(desk.now, id, &bytes);
        assert!(desk.server.unwritten(id).len() < 1000);
        desk.server.disconnect(id);
        if round % 100 == 0 {
            desk.write(program, channel, &frames(written, 480));
            written += 480;
            heard.extend(desk.turn());
        }
    }
    assert_eq!(heard, samples(0, written));
}

#[test]
fn a_header_of_2_gib_ends_its_client_alone() {
    let mut desk = Desk::new();
    let mut program = desk.program();
    for channel in [u32::MAX, 0] {
        let mut other = desk.program();
        desk.stream(&mut other, BufferAttr::default());
        desk.server.receive(desk.now, other.id, &header(1 << 31, channel, 0));
        assert_eq!(desk.server.end(other.id), Some("announces too long a frame"));
        assert!(!desk.server.is_read(other.id));
        let inputs: SinkInputInfoList = desk.ask(&mut program, &Command::GetSinkInputInfoList).unwrap();
        assert!(inputs.is_empty(), "its stream is still there");
        desk.server.receive(desk.now, other.id, &frames(0, 100));
        desk.server.disconnect(other.id);
    }
    assert_eq!(desk.server.end(program.id), None);
}

#[test]
fn shared_memory_and_unknown_seeks_end_their_client() {
    for flags in [0x8000_0000, 0x4000_0000, 0xc000_0000, 9] {
        let mut desk = Desk::new();
        let program = desk.program();
        desk.server.receive(desk.now, program.id, &header(0, 0, flags));
        assert!(desk.server.end(program.id).is_some());
    }
}

#[test]
fn ten_thousand_streams_are_as_many_as_may_be() {
    let mut desk = Desk::new();
    let mut programs: Vec<_> = (0..160).map(|_| desk.program()).collect();
    let mut made = 0;
    for program in &mut programs {
        for _ in 0..64 {
            desk.order(program, &Command::CreatePlaybackStream(wish(attr(u32::MAX, 4, 4)))).unwrap();
            made += 1;
        }
        let more = desk.order(program, &Command::CreatePlaybackStream(wish(BufferAttr::default())));
        assert_eq!(more, Err(PulseError::TooLarge));
    }
    assert!(made > 10_000 && !desk.server.is_playing(), "they cost something");
    let inputs: SinkInputInfoList = desk.ask(&mut programs[0], &Command::GetSinkInputInfoList).unwrap();
    assert!((100..2000).contains(&inputs.len()), "an answer of {}", inputs.len());
    let more = std::iter::from_fn(|| desk.server.connect()).take(1000).count();
    assert_eq!(programs.len() + more, 256);
    desk.server.disconnect(programs[3].id);
    assert!(desk.server.connect().is_some());
}

/// Resampling each of them takes most of the turn, in which others are to be heard.
#[test]
fn regression_a_program_with_many_streams_at_another_rate_takes_the_whole_turn() {
    let mut desk = Desk::new();
    let mut program = desk.program();
    let loud: Vec<u8> = [100i16; 2 * 8820].iter().flat_map(|sample| sample.to_le_bytes()).collect();
    for _ in 0..40 {
        let sample_spec = SampleSpec { format: SampleFormat::S16Le, channels: 2, sample_rate: 44_100 };
        let wish = PlaybackStreamParams { sample_spec, ..wish(attr(u32::MAX, 40_000, 4)) };
        let stream: CreatePlaybackStreamReply =
            desk.ask(&mut program, &Command::CreatePlaybackStream(wish)).unwrap();
        desk.write(&mut program, stream.channel, &loud);
    }
    let mixed: Vec<i16> = (0..10).flat_map(|_| desk.turn()).collect();
    let most = mixed.into_iter().max().unwrap_or_default();
    // A resampler rings a tenth where sound begins.
    assert!((1590..1800).contains(&most), "{most}: sixteen at a time, the others wait");
    let heard = desk.play();
    let last = heard.iter().rposition(|sample| *sample != 0).unwrap_or_default() / 2;
    assert!(last > 9600, "they were heard later");
}

#[test]
fn megabytes_of_properties_are_cut_or_refused() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let mut props = Props::new();
    for at in 0..60 {
        props.set_bytes(CString::new(format!("key{at}")).unwrap(), vec![b'x'; 1000]);
    }
    for _ in 0..50 {
        let params = UpdateClientProplistParams { mode: PropsUpdateMode::Replace, props: props.clone() };
        desk.order(program, &Command::UpdateClientProplist(params)).unwrap();
    }
    desk.send(program, &Command::GetClientInfo(program.id.0));
    let values = program.answers.pop().unwrap().1.unwrap();
    assert!(values.len() < 5000, "{} bytes", values.len());
    for at in 0..6000 {
        props.set_bytes(CString::new(format!("more{at}")).unwrap(), vec![b'x'; 1000]);
    }
    let mut bytes = Vec::new();
    pulseaudio::protocol::write_command_message(&mut bytes, 1, &Command::SetClientName(props), 35).unwrap();
    assert!(bytes.len() > 6_000_000);
    desk.server.receive(desk.now, program.id, &bytes[..65_536]);
    assert!(desk.server.end(program.id).is_some());
}

/// It is held back, not ended, and nothing of it grows, also by what others do.
#[test]
fn a_client_that_never_reads_holds_back_itself() {
    let mut desk = Desk::new();
    let (deaf, mut other) = (desk.program(), desk.program());
    let mut bytes = Vec::new();
    for number in 0..1000 {
        pulseaudio::protocol::write_command_message(&mut bytes, number, &Command::GetSinkInfoList, 35)
            .unwrap();
    }
    let subscribe = Command::Subscribe(SubscriptionMask::ALL);
    desk.server.receive(desk.now, deaf.id, &command(&subscribe));
    let mut sent = 0;
    while desk.server.is_read(deaf.id) {
        desk.server.receive(desk.now, deaf.id, &bytes);
        sent += 1000;
        assert!(sent < 20_000);
    }
    assert!(desk.server.unwritten(deaf.id).len() < 260 << 10);
    for _ in 0..2000 {
        let channel = desk.stream(&mut other, attr(u32::MAX, 4, 4)).channel;
        desk.order(&mut other, &Command::DeletePlaybackStream(channel)).unwrap();
    }
    assert!(desk.server.unwritten(deaf.id).len() < 260 << 10, "grows by what others do");
    assert_eq!(desk.server.end(deaf.id), None);

    // It reads after all: nothing that it asked was lost.
    let mut deaf = deaf;
    deaf.answers.clear();
    desk.read(&mut deaf);
    assert_eq!(deaf.answers.len(), sent + 1);
    assert!(desk.server.is_read(deaf.id));
}

/// It was asked for more while it did not read: it is asked again when it does.
#[test]
fn a_client_that_reads_again_is_asked_for_sound() {
    let mut desk = Desk::new();
    let mut program = desk.program();
    let channel = desk.stream(&mut program, attr(u32::MAX, 19_200, 4)).channel;
    desk.write(&mut program, channel, &frames(0, 4800));
    let list = command(&Command::GetSinkInfoList);
    while desk.server.is_read(program.id) {
        desk.server.receive(desk.now, program.id, &list);
    }
    desk.play();
    desk.read(&mut program);
    assert_eq!(program.asked_for(), 19_200);
}

#[test]
fn a_caller_that_reads_all_the_same_ends_the_client() {
    let mut desk = Desk::new();
    let program = desk.program();
    let list = command(&Command::GetSinkInfoList);
    let mut received = 0;
    while desk.server.end(program.id).is_none() {
        desk.server.receive(desk.now, program.id, &list.repeat(1000));
        received += list.len() * 1000;
        assert!(received < 3 << 20);
    }
}

/// Each alone would fit.
#[test]
fn the_streams_of_a_client_share_their_room() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let channels: Vec<_> = (0..4).map(|_| desk.stream(program, attr(u32::MAX, 4, 4)).channel).collect();
    for _ in 0..4 {
        for channel in &channels {
            desk.write(program, *channel, &vec![1; 1 << 20]);
        }
    }
    let overflows = program.told().into_iter().filter(|told| matches!(told, Command::Overflow(_))).count();
    assert_eq!(overflows, 8);
    let mut other = desk.program();
    let channel = desk.stream(&mut other, attr(u32::MAX, 4, 4)).channel;
    desk.write(&mut other, channel, &vec![1; 4 << 20]);
    assert_eq!(other.told(), [], "another client has its own");
}

/// A frame is cut off where the room ends; what comes later is still heard as it was meant.
#[test]
fn what_is_cut_off_in_a_frame_leaves_no_half_of_it() {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let bytes = SampleSpec { format: SampleFormat::U8, channels: 1, sample_rate: 48_000 };
    let wish = PlaybackStreamParams {
        sample_spec: bytes,
        channel_map: ChannelMap::empty(),
        ..wish(attr(u32::MAX, u32::MAX, u32::MAX))
    };
    let mut fill = |desk: &mut Desk, length: usize| {
        let create = Command::CreatePlaybackStream(wish.clone());
        let stream: CreatePlaybackStreamReply = desk.ask(program, &create).unwrap();
        desk.order(program, &cork(stream.channel)).unwrap();
        desk.write(program, stream.channel, &vec![1; length]);
        stream.channel
    };
    let filled = [fill(&mut desk, 4 << 20), fill(&mut desk, (4 << 20) - 6)];
    let channel = desk.stream(program, attr(u32::MAX, 19_200, 4)).channel;
    desk.write(program, channel, &frames(0, 100));
    desk.order(program, &Command::DeletePlaybackStream(filled[0])).unwrap();
    desk.write(program, channel, &frames(1000, 100));
    assert_eq!(desk.turn()[..202], [samples(0, 1), samples(1000, 100)].concat());
}

fn cork(channel: u32) -> Command {
    Command::CorkPlaybackStream(CorkStreamParams { channel, cork: true })
}

/// The crate that reads commands allocates what such a length announces, and computes with such a time.
#[test]
fn lying_lengths_and_times_are_refused_with_the_number() {
    let mut desk = Desk::new();
    let mut program = desk.program();
    let lies: [(u32, &[u8]); 3] = [
        (8, &[b'L', 0, 0, 0, 35, b'x', 255, 255, 255, 255]),
        (9, &[b'P', b't', b'a', 0, b'L', 0, 0, 255, 255, b'x', 127, 255, 255, 255]),
        (14, &[b'L', 0, 0, 0, 0, b'T', 0, 0, 0, 0, 255, 255, 255, 255]),
    ];
    for (tag, values) in lies {
        let command = [&[b'L'][..], &tag.to_be_bytes(), &[b'L', 0, 0, 0, 5], values].concat();
        let bytes = [header(command.len() as u32, u32::MAX, 0), command].concat();
        desk.server.receive(desk.now, program.id, &bytes);
        desk.read(&mut program);
        assert_eq!(program.answers.pop(), Some((5, Err(PulseError::Protocol))), "{tag}");
    }
}

fn command(command: &Command) -> Vec<u8> {
    let mut bytes = Vec::new();
    pulseaudio::protocol::write_command_message(&mut bytes, 1, command, 35).unwrap();
    bytes
}
