//! The desk against a made-up server, in virtual time.

mod card;

use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use pulseaudio::protocol::{
    AuthReply, Command, CommandReply, CreatePlaybackStreamReply, DESCRIPTOR_SIZE, MAX_VERSION,
    PlaybackLatency, PulseError, Request, SetClientNameReply, read_command_message, read_descriptor,
    stream::BufferAttr, write_ack_message, write_command_message, write_error, write_reply_message,
};
use wayferry_audio::{Flags, Packet, Position};

use super::*;
use crate::Codec;

/// A server with a device that plays 10 ms every 10 ms.
#[derive(Default)]
struct Server {
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    is_playing: bool,
    refuses: Option<PulseError>,
    heard: Vec<u8>,
    played: usize,
}

/// What the network does with a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Network {
    Works,
    /// Nothing listens.
    Refuses,
    /// The server does not read.
    Stands,
}

struct World {
    now: Time,
    desk: Desk,
    source: Source,
    server: Server,
    network: Network,
    connection: Option<u32>,
    connections: u32,
    notices: Vec<Notice>,
    sequence: u32,
    /// Steps of 10 ms that were captured.
    ticks: u64,
    /// Whether the next packet is the first after silence.
    starts: bool,
    /// Whether the sender has sound to send.
    sounds: bool,
}

impl Server {
    fn read(&mut self, bytes: &[u8]) {
        self.incoming.extend_from_slice(bytes);
        while self.incoming.len() >= DESCRIPTOR_SIZE {
            let head = read_descriptor(&mut &self.incoming[..]).unwrap();
            let end = DESCRIPTOR_SIZE + head.length as usize;
            assert!(self.incoming.len() >= end, "messages leave as a whole");
            let frame: Vec<u8> = self.incoming.drain(..end).collect();
            if head.channel == u32::MAX {
                let (sequence, command) = read_command_message(&mut &frame[..], MAX_VERSION).unwrap();
                self.answer(sequence, &command);
            } else {
                self.heard.extend_from_slice(&frame[DESCRIPTOR_SIZE..]);
            }
        }
    }

    fn answer(&mut self, sequence: u32, command: &Command) {
        match command {
            Command::Auth(auth) => {
                assert_eq!(auth.cookie, [3; COOKIE]);
                self.reply(sequence, &AuthReply { version: MAX_VERSION, use_memfd: false, use_shm: false });
            }
            Command::SetClientName(_) => self.reply(sequence, &SetClientNameReply { client_id: 1 }),
            Command::CreatePlaybackStream(params) => {
                if let Some(error) = self.refuses {
                    return write_error(&mut self.outgoing, sequence, &error).unwrap();
                }
                let target_length = params.buffer_attr.target_length;
                self.reply(
                    sequence,
                    &CreatePlaybackStreamReply {
                        channel: CHANNEL,
                        requested_bytes: target_length,
                        buffer_attr: BufferAttr { target_length, ..params.buffer_attr },
                        sample_spec: params.sample_spec,
                        channel_map: params.channel_map,
                        ..CreatePlaybackStreamReply::default()
                    },
                );
                (self.is_playing, self.played) = (true, self.heard.len());
            }
            Command::GetPlaybackLatency(_) => {
                let (write_offset, read_offset) = (self.heard.len() as i64, self.played as i64);
                self.reply(
                    sequence,
                    &PlaybackLatency {
                        sink_usec: 5000,
                        source_usec: 0,
                        playing: self.is_playing,
                        local_time: UNIX_EPOCH,
                        remote_time: UNIX_EPOCH,
                        write_offset,
                        read_offset,
                        underrun_for: 0,
                        playing_for: 0,
                    },
                );
            }
            Command::CorkPlaybackStream(params) => {
                self.is_playing = !params.cork;
                write_ack_message(&mut self.outgoing, sequence).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }

    /// The device plays so many bytes.
    fn consume(&mut self, bytes: usize) {
        if self.is_playing {
            let bytes = bytes.min(self.heard.len() - self.played);
            self.played += bytes;
            if bytes > 0 {
                self.say(&Command::Request(Request { channel: CHANNEL, length: bytes as u32 }));
            }
        }
    }

    fn say(&mut self, command: &Command) {
        write_command_message(&mut self.outgoing, u32::MAX, command, MAX_VERSION).unwrap();
    }

    fn reply<R: CommandReply>(&mut self, sequence: u32, reply: &R) {
        write_reply_message(&mut self.outgoing, sequence, reply, MAX_VERSION).unwrap();
    }
}

impl World {
    fn new() -> Self {
        let mut source = Source::default();
        source.begin(Codec::Pcm).unwrap();
        Self {
            now: Time::from_millis(5000),
            desk: Desk::new("test", false),
            source,
            server: Server::default(),
            network: Network::Works,
            connection: None,
            connections: 0,
            notices: Vec::new(),
            sequence: 0,
            ticks: 0,
            starts: true,
            sounds: false,
        }
    }

    /// 10 ms pass.
    fn step(&mut self) {
        self.now += STEP;
        if self.sounds {
            let packet = self.packet();
            if !self.desk.is_deaf(self.now) {
                self.source.packet(self.now, packet);
            }
        }
        self.starts = !self.sounds;
        self.ticks += 1;
        self.server.consume(STEP_BYTES);
        self.exchange();
        self.notices.append(&mut self.desk.take_notices());
    }

    /// What `link` does.
    fn exchange(&mut self) {
        for _ in 0..10 {
            if self.connection.is_some() && self.network == Network::Works {
                let bytes = std::mem::take(&mut self.server.outgoing);
                self.desk.on_bytes(self.now, &mut self.source, &bytes);
            }
            self.desk.turn(self.now, &mut self.source);
            if self.desk.connection() != self.connection {
                self.connection = self.desk.connection();
                self.server = Server { refuses: self.server.refuses, ..Server::default() };
                if self.connection.is_some() {
                    self.connections += 1;
                    match self.network {
                        Network::Refuses => {
                            self.connection = None;
                            self.desk.on_failure(self.now, &mut self.source, "refused");
                        }
                        _ => self.desk.on_connected(self.now, "it", [3; COOKIE]),
                    }
                }
            }
            if let Some(outgoing) = self.desk.outgoing()
                && self.network == Network::Works
            {
                let bytes = std::mem::take(outgoing);
                self.server.read(&bytes);
            }
        }
    }

    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.step();
        }
    }

    /// The sender becomes silent, and says so.
    fn hush(&mut self) {
        self.sounds = false;
        let idle =
            Packet { flags: Flags { idle: true, ..Flags::default() }, payload: Vec::new(), ..self.packet() };
        self.source.packet(self.now, idle);
        self.sequence += 1;
    }

    fn packet(&mut self) -> Packet {
        self.sequence += 1;
        Packet {
            sequence: self.sequence,
            capture: Position(self.ticks * STEP_FRAMES as u64),
            flags: Flags { start: self.starts, ..Flags::default() },
            payload: [0x55; STEP_BYTES].into(),
            ..Packet::default()
        }
    }

    /// The connection breaks.
    fn lose(&mut self) {
        self.connection = None;
        self.desk.on_failure(self.now, &mut self.source, "broken");
    }

    fn lag(&self) -> Option<Duration> {
        let position = self.source.position()?;
        Some(Duration::from_millis(self.ticks * 10 - position.0 / 48))
    }
}

#[test]
fn nothing_is_opened_until_sound_comes_and_silence_closes_it() {
    let mut world = World::new();
    world.pass(Duration::from_secs(10));
    assert_eq!((world.connections, world.desk.wake_at(&world.source)), (0, None));
    world.sounds = true;
    world.pass(Duration::from_secs(2));
    assert_eq!((world.desk.state(), world.connections), (DeviceState::Playing, 1));
    let heard = world.server.heard.iter().filter(|byte| **byte == 0x55).count();
    assert_eq!(heard / STEP_BYTES, 192, "2 s less the target of 80 ms");
    world.hush();
    world.pass(Duration::from_millis(1300));
    assert_eq!(world.desk.state(), DeviceState::Corked);
    assert!(!world.server.is_playing);
    let wake = world.desk.wake_at(&world.source).unwrap();
    assert!(wake.since(world.now) > Duration::from_secs(59), "no wake-ups in silence");
    let heard = world.server.heard.len();
    world.pass(Duration::from_secs(50));
    assert_eq!(world.server.heard.len(), heard);
    world.sounds = true;
    world.step();
    assert_eq!((world.desk.state(), world.connections), (DeviceState::Playing, 1), "at once");
    world.hush();
    world.pass(Duration::from_secs(70));
    assert_eq!((world.desk.state(), world.connection), (DeviceState::Closed, None));
    assert_eq!(world.notices, []);
}

#[test]
fn without_a_server_there_is_one_notice_and_a_try_every_5_s() {
    let mut world = World::new();
    world.network = Network::Refuses;
    world.sounds = true;
    world.pass(Duration::from_secs(600));
    assert_eq!(world.notices, [Notice::NoServer { tried: "refused".into() }]);
    assert!((100..=121).contains(&world.connections), "{}", world.connections);
    assert!(world.source.is_idle(), "packets are dropped unread");
    world.network = Network::Works;
    world.pass(Duration::from_secs(12));
    assert_eq!(world.notices[1..], [Notice::Back]);
    assert!(world.lag().unwrap() < Duration::from_millis(120), "{:?}", world.lag());
}

#[test]
fn a_lost_server_is_tried_ever_less_often_and_only_while_there_is_sound() {
    let mut world = World::new();
    world.sounds = true;
    world.pass(Duration::from_secs(1));
    world.network = Network::Refuses;
    world.lose();
    world.pass(Duration::from_secs(1));
    assert_eq!(world.connections, 3, "after 0.25 and 0.75 s");
    world.pass(Duration::from_secs(600));
    assert!((110..130).contains(&world.connections), "every 5 s: {}", world.connections);
    assert_eq!(world.notices, [Notice::Lost { why: "broken".into() }]);
    world.hush();
    world.pass(Duration::from_secs(6));
    let tried = world.connections;
    world.pass(Duration::from_secs(60));
    assert_eq!((world.connections, world.desk.wake_at(&world.source)), (tried, None), "nothing to play");
    world.network = Network::Works;
    world.sounds = true;
    world.pass(Duration::from_secs(6));
    assert_eq!(world.notices[1..], [Notice::Back]);
}

#[test]
fn the_past_is_never_played() {
    let mut world = World::new();
    world.sounds = true;
    world.pass(Duration::from_secs(10));
    let lag = world.lag().unwrap();
    for outage in [Duration::from_millis(100), Duration::from_millis(700), Duration::from_secs(20)] {
        world.network = Network::Refuses;
        world.lose();
        world.pass(outage);
        assert!(world.lag().unwrap() <= lag + Duration::from_millis(30), "it goes on meanwhile");
        world.network = Network::Works;
        world.pass(Duration::from_secs(6));
        assert_eq!(world.desk.state(), DeviceState::Playing);
        assert!(world.lag().unwrap() <= lag + Duration::from_millis(30), "{lag:?} {:?}", world.lag());
    }
}

#[test]
fn a_server_that_comes_and_goes_does_not_flood_the_user() {
    let mut world = World::new();
    world.sounds = true;
    for _ in 0..600 {
        world.pass(Duration::from_secs(1));
        if world.connection.is_some() {
            world.lose();
        }
    }
    assert!(world.notices.len() <= 8, "{:?}", world.notices);
    assert!(world.connections < 150, "{}", world.connections);
    world.pass(Duration::from_secs(20));
    assert_eq!(world.notices.last(), Some(&Notice::Back));
}

#[test]
fn a_killed_stream_is_a_lost_one_and_a_refused_one_is_no_server() {
    let mut world = World::new();
    world.sounds = true;
    world.pass(Duration::from_secs(1));
    world.server.say(&Command::PlaybackStreamKilled(CHANNEL));
    world.server.refuses = Some(PulseError::NoEntity);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.notices, [Notice::Lost { why: "the sound server ended the stream".into() }]);
    let mut other = World::new();
    other.server.refuses = Some(PulseError::NoEntity);
    other.sounds = true;
    other.pass(Duration::from_secs(60));
    assert_eq!(
        other.notices,
        [Notice::NoServer { tried: "it: the sound server refused: No such entity".into() }]
    );
}

#[test]
fn a_server_that_stops_answering_is_given_up_after_5_s() {
    let mut world = World::new();
    world.sounds = true;
    world.pass(Duration::from_secs(1));
    world.network = Network::Stands;
    world.pass(Duration::from_millis(4500));
    assert_eq!(world.notices, [], "it may be busy");
    let lag = world.lag();
    world.pass(Duration::from_secs(2));
    assert_eq!(world.notices, [Notice::Lost { why: "the sound server does not answer".into() }]);
    assert!(world.desk.outgoing().is_none_or(|outgoing| outgoing.len() < 1 << 16));
    world.network = Network::Works;
    world.pass(Duration::from_secs(20));
    assert_eq!(world.notices[1..], [Notice::Back]);
    assert!(world.lag().unwrap() < lag.unwrap() + Duration::from_millis(50));
}

#[test]
fn a_suspended_device_lets_the_player_go_on() {
    let mut world = World::new();
    world.sounds = true;
    world.pass(Duration::from_secs(1));
    let lag = world.lag().unwrap();
    let suspended = |suspended| {
        let params = pulseaudio::protocol::StreamSuspendedParams { stream_index: CHANNEL, suspended };
        Command::PlaybackStreamSuspended(params)
    };
    world.server.is_playing = false;
    world.server.say(&suspended(true));
    world.pass(Duration::from_secs(5));
    assert!(world.lag().unwrap() <= lag + Duration::from_millis(30), "{lag:?} {:?}", world.lag());
    world.server.is_playing = true;
    world.server.say(&suspended(false));
    world.pass(Duration::from_secs(5));
    assert!(world.lag().unwrap() <= lag + Duration::from_millis(30), "{lag:?} {:?}", world.lag());
    assert_eq!((world.notices, world.connections), (vec![], 1));
}

#[test]
fn a_flow_that_ends_is_silent_after_one_fade_and_releases_the_device() {
    let mut world = World::new();
    world.sounds = true;
    world.pass(Duration::from_secs(1));
    let heard = world.server.heard.len();
    world.source.end();
    world.sounds = false;
    world.pass(Duration::from_millis(500));
    let after = &world.server.heard[heard..];
    assert!(after[..64].iter().any(|byte| *byte != 0), "it fades");
    assert!(after[240 * 4..].iter().all(|byte| *byte == 0), "5 ms later");
    world.pass(Duration::from_secs(1));
    assert_eq!((world.desk.state(), world.connection), (DeviceState::Closed, None));
    assert_eq!(world.notices, []);
}

proptest! {
    #[test]
    fn any_bytes_of_a_server_are_answered_or_end_the_connection(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20),
        after in 0..200u64,
    ) {
        let mut world = World::new();
        world.sounds = true;
        world.pass(Duration::from_millis(after));
        for chunk in chunks {
            world.server.outgoing.extend(chunk);
            world.step();
            prop_assert!(world.desk.outgoing().is_none_or(|outgoing| outgoing.len() < 1 << 17));
        }
    }

    #[test]
    fn any_command_of_a_server_is_answered_or_ends_the_connection(
        commands in prop::collection::vec((0..120u32, prop::collection::vec(any::<u8>(), 0..60), any::<bool>()), 1..20),
    ) {
        let mut world = World::new();
        world.sounds = true;
        world.pass(Duration::from_millis(100));
        for (tag, rest, is_latest) in commands {
            // A command, a number that may be that of the last question, and anything.
            let number = if is_latest { 4u32 } else { u32::MAX };
            let mut frame = vec![b'L'];
            frame.extend(tag.to_be_bytes());
            frame.push(b'L');
            frame.extend(number.to_be_bytes());
            frame.extend(rest);
            let head = [frame.len() as u32, u32::MAX, 0, 0, 0];
            world.server.outgoing.extend(head.iter().flat_map(|word| word.to_be_bytes()));
            world.server.outgoing.extend(frame);
            world.step();
            prop_assert!(world.desk.outgoing().is_none_or(|outgoing| outgoing.len() < 1 << 17));
        }
    }
}

#[test]
fn a_frame_that_is_too_long_ends_the_connection() {
    let mut world = World::new();
    world.sounds = true;
    world.pass(Duration::from_secs(1));
    world.server.outgoing.extend([0xff; DESCRIPTOR_SIZE]);
    world.step();
    let why = "the sound server sent what is no PulseAudio protocol: a frame's length";
    assert_eq!(world.notices, [Notice::Lost { why: why.into() }]);
}

const CHANNEL: u32 = 7;
const STEP: Duration = Duration::from_millis(10);
const STEP_BYTES: usize = STEP_FRAMES * CHANNELS * 2;
