//! A server, its clock, and clients that speak to it with the `pulseaudio` crate.

use std::io::Cursor;
use std::time::Duration;

use pulseaudio::protocol::stream::{BufferAttr, StreamFlags};
use pulseaudio::protocol::{
    AuthParams, AuthReply, ChannelMap, ChannelPosition, Command, CommandReply, CreatePlaybackStreamReply,
    MAX_VERSION, PlaybackStreamParams, Props, PulseError, SampleFormat, SampleSpec, SetClientNameReply,
    TagStructReader,
};
use wayferry_audio::to_i16;
use wayferry_proto::Time;
use wayferry_pulse::{ClientId, Server};

/// A server and its clock.
pub(crate) struct Desk {
    pub(crate) server: Server,
    pub(crate) now: Time,
}

/// A client.
pub(crate) struct Program {
    pub(crate) id: ClientId,
    next: u32,
    /// What it was told and did not ask.
    pub(crate) told: Vec<Command>,
    /// Answers not yet looked at: their numbers, and their values or why not.
    pub(crate) answers: Vec<(u32, Result<Vec<u8>, PulseError>)>,
    /// Pieces of sound, each with its stream.
    pub(crate) recorded: Vec<(u32, Vec<u8>)>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self { server: Server::new(), now: Time::from_millis(1000) }
    }

    /// A client that has not said anything.
    pub(crate) fn stranger(&mut self) -> Program {
        let id = self.server.connect().expect("room for a client");
        Program { id, next: 100, told: Vec::new(), answers: Vec::new(), recorded: Vec::new() }
    }

    /// A client that has said hello.
    pub(crate) fn program(&mut self) -> Program {
        let mut program = self.stranger();
        let hello = AuthParams { version: MAX_VERSION, ..AuthParams::default() };
        let reply: AuthReply = self.ask(&mut program, &Command::Auth(hello)).unwrap();
        assert_eq!((reply.version, reply.use_shm, reply.use_memfd), (MAX_VERSION, false, false));
        let _: SetClientNameReply = self.ask(&mut program, &Command::SetClientName(Props::new())).unwrap();
        program
    }

    /// Sends a command; its number.
    pub(crate) fn send(&mut self, program: &mut Program, command: &Command) -> u32 {
        program.next += 1;
        let mut bytes = Vec::new();
        pulseaudio::protocol::write_command_message(&mut bytes, program.next, command, MAX_VERSION).unwrap();
        self.server.receive(self.now, program.id, &bytes);
        self.read(program);
        program.next
    }

    /// Sends a command that must be answered, and at once.
    pub(crate) fn ask<T: CommandReply>(
        &mut self,
        program: &mut Program,
        command: &Command,
    ) -> Result<T, PulseError> {
        let values = self.answer(program, command)?;
        Ok(TagStructReader::new(&mut Cursor::new(values), MAX_VERSION)
            .read()
            .expect("the values of the answer"))
    }

    /// The same, of which only is asked whether it was done.
    pub(crate) fn order(&mut self, program: &mut Program, command: &Command) -> Result<(), PulseError> {
        self.answer(program, command).map(|_| ())
    }

    fn answer(&mut self, program: &mut Program, command: &Command) -> Result<Vec<u8>, PulseError> {
        let number = self.send(program, command);
        let at = program.answers.iter().position(|(answered, _)| *answered == number);
        program.answers.remove(at.unwrap_or_else(|| panic!("{command:?} is not answered"))).1
    }

    /// Sends sound; `flags` say from where `offset` counts.
    pub(crate) fn write_at(
        &mut self,
        program: &mut Program,
        channel: u32,
        flags: u32,
        offset: i64,
        sound: &[u8],
    ) {
        let mut bytes: Vec<u8> =
            [sound.len() as u32, channel].iter().flat_map(|word| word.to_be_bytes()).collect();
        bytes.extend(offset.to_be_bytes());
        bytes.extend(flags.to_be_bytes());
        bytes.extend(sound);
        self.server.receive(self.now, program.id, &bytes);
        self.read(program);
    }

    pub(crate) fn write(&mut self, program: &mut Program, channel: u32, sound: &[u8]) {
        self.write_at(program, channel, 0, 0, sound);
    }

    /// The client reads all there is.
    pub(crate) fn read(&mut self, program: &mut Program) {
        while !self.server.unwritten(program.id).is_empty() {
            let bytes = self.server.unwritten(program.id).to_vec();
            self.server.written(program.id, bytes.len());
            messages(&bytes, program);
        }
    }

    /// 10 ms pass; what is heard, in 16 bits.
    pub(crate) fn turn(&mut self) -> Vec<i16> {
        let mut mix = [f32::NAN; 960];
        self.server.mix(self.now, &mut mix);
        self.now += Duration::from_millis(10);
        mix.into_iter().map(to_i16).collect()
    }

    /// Turns until nothing is to be mixed; what is heard. What the clients are told waits for them.
    pub(crate) fn play(&mut self) -> Vec<i16> {
        let mut heard = Vec::new();
        while self.server.is_playing() {
            assert!(heard.len() < 960 * 10_000, "plays for ever");
            heard.extend(self.turn());
        }
        heard
    }

    /// A new stream of 48 kHz, 16 bits, two channels.
    pub(crate) fn stream(&mut self, program: &mut Program, attr: BufferAttr) -> CreatePlaybackStreamReply {
        self.ask(program, &Command::CreatePlaybackStream(wish(attr))).unwrap()
    }
}

impl Program {
    /// What it was told since the last look.
    pub(crate) fn told(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.told)
    }

    /// How many bytes it was asked for since the last look; other messages go.
    pub(crate) fn asked_for(&mut self) -> usize {
        let requests = self.told().into_iter().filter_map(|told| match told {
            Command::Request(request) => Some(request.length as usize),
            _ => None,
        });
        requests.sum()
    }
}

/// A stream of 48 kHz, 16 bits, two channels.
pub(crate) fn wish(buffer_attr: BufferAttr) -> PlaybackStreamParams {
    PlaybackStreamParams {
        sample_spec: SampleSpec { format: SampleFormat::S16Le, channels: 2, sample_rate: 48_000 },
        channel_map: ChannelMap::new([ChannelPosition::FrontLeft, ChannelPosition::FrontRight]),
        buffer_attr,
        flags: StreamFlags { adjust_latency: true, ..StreamFlags::default() },
        ..PlaybackStreamParams::default()
    }
}

/// So many bytes at most, so many to be kept filled, so many before it begins; requests as usual.
pub(crate) fn attr(limit: u32, target: u32, before: u32) -> BufferAttr {
    BufferAttr { max_length: limit, target_length: target, pre_buffering: before, ..BufferAttr::default() }
}

/// So many frames of 16 bits and two channels, all different, none silent.
pub(crate) fn frames(from: usize, count: usize) -> Vec<u8> {
    samples(from, count).iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

/// The same, as they are heard.
pub(crate) fn samples(from: usize, count: usize) -> Vec<i16> {
    (2 * from..2 * (from + count)).map(|at| (at as u16).wrapping_mul(40_503).cast_signed() | 1).collect()
}

fn messages(mut bytes: &[u8], program: &mut Program) {
    while !bytes.is_empty() {
        let length = u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize;
        let (message, rest) = bytes[20..].split_at(length);
        let channel = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
        bytes = rest;
        if channel != u32::MAX {
            program.recorded.push((channel, message.to_vec()));
            continue;
        }
        let (number, values) =
            (u32::from_be_bytes(message[6..10].try_into().unwrap()), message[10..].to_vec());
        match Command::read_tag_prefixed(&mut Cursor::new(message), MAX_VERSION).expect("a message").1 {
            Command::Reply => program.answers.push((number, Ok(values))),
            Command::Error(error) => program.answers.push((number, Err(error))),
            told => {
                assert_eq!(number, u32::MAX, "{told:?}");
                program.told.push(told);
            }
        }
    }
}
