//! A client of PulseAudio's native protocol with one stream: bytes in, bytes out.
//!
//! It names itself, makes the stream, and counts how much the server asks for. Of what the server says it reads what it
//! needs, and skips the rest. PipeWire speaks the same protocol. The crate `pulseaudio` has a client of its own; it
//! blocks while it connects and authenticates, ignores that a stream was killed or moved, has no limit for a frame, and
//! its thread outlives its handle: so only its message types are used.
//!
//! It opens no socket and reads no clock. Invariants: it never gives the server more than was asked for; a frame longer
//! than [`MAX_FRAME`] is not kept.

use std::ffi::CString;
use std::io::Cursor;
use std::time::{Duration, SystemTime};

use pulseaudio::protocol::command::CommandTag;
use pulseaudio::protocol::stream::{BufferAttr, StreamFlags};
use pulseaudio::protocol::{
    AuthParams, ChannelMap, Command, CorkStreamParams, DESCRIPTOR_SIZE, LatencyParams, MAX_VERSION,
    PlaybackStreamParams, Prop, Props, ProtocolError, PulseError, SampleFormat, SampleSpec, TagStructReader,
    encode_command_message, read_descriptor, write_memblock,
};
use wayferry_audio::{CHANNELS, RATE, encode_pcm};
use wayferry_proto::Time;

use super::address::COOKIE;

/// See the module.
#[derive(Debug)]
pub(super) struct Client {
    name: CString,
    version: u16,
    sequence: u32,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    step: Step,
    /// What the server has not answered, and when it was asked.
    waiting: Option<(u32, Time)>,
    stream: Option<Stream>,
}

/// What the server is asked next when it has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Authenticate,
    Introduce,
    MakeStream,
    Ready,
}

#[derive(Debug)]
struct Stream {
    channel: u32,
    /// Bytes that the server has asked for and not got.
    wanted: usize,
    asked: Time,
    /// How much the server's queue is to have.
    target: usize,
    is_corked: bool,
    is_suspended: bool,
    /// Bytes given to the server, ever.
    given: u64,
    /// How much of it had been given when the server was asked for its latency.
    given_when_asked: u64,
    latency: Option<Latency>,
}

/// What was known of the server's queue.
#[derive(Clone, Copy, Debug)]
struct Latency {
    at: Time,
    /// Bytes in its queue and in the device, less those given until it was asked.
    ahead: i64,
}

/// Why a server is of no use.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It does not want to.
    Refused(PulseError),
    /// It is older than what we understand.
    TooOld(u16),
    /// It ended the stream: its device is gone.
    Killed,
    /// What it said is not the protocol.
    Malformed(&'static str),
}

impl Client {
    /// Has the first message ready.
    pub(super) fn new(now: Time, name: &str, cookie: [u8; COOKIE]) -> Self {
        // No session's name has a NUL; without it the name is still right.
        let name = CString::new(name.replace('\0', "")).unwrap_or_default();
        let mut client = Self {
            name,
            version: MAX_VERSION,
            sequence: 0,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            step: Step::Authenticate,
            waiting: None,
            stream: None,
        };
        let cookie = cookie.to_vec();
        let auth = AuthParams { version: MAX_VERSION, supports_shm: false, supports_memfd: false, cookie };
        client.ask(now, &Command::Auth(auth));
        client
    }

    /// The server said this.
    pub(super) fn receive(&mut self, now: Time, bytes: &[u8]) -> Result<(), Failure> {
        self.incoming.extend_from_slice(bytes);
        let incoming = std::mem::take(&mut self.incoming);
        let mut rest = &incoming[..];
        while rest.len() >= DESCRIPTOR_SIZE {
            let head = read_descriptor(&mut &rest[..]).map_err(malformed("a frame's header"))?;
            let length = head.length as usize;
            if length > MAX_FRAME {
                return Err(Failure::Malformed("a frame's length"));
            }
            let Some(frame) = rest.get(DESCRIPTOR_SIZE..DESCRIPTOR_SIZE + length) else { break };
            // All others are samples of a record stream, and shared memory; neither was asked for.
            if head.channel == u32::MAX {
                self.on_frame(now, frame)?;
            }
            rest = &rest[DESCRIPTOR_SIZE + length..];
        }
        self.incoming = rest.to_vec();
        Ok(())
    }

    /// What the server is to be sent; the caller removes what was.
    pub(super) fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    pub(super) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether the stream is made.
    pub(super) fn is_ready(&self) -> bool {
        self.step == Step::Ready
    }

    /// Since when the server has owed an answer.
    pub(super) fn waits_since(&self) -> Option<Time> {
        self.waiting.map(|(_, asked)| asked)
    }

    /// Frames that the server wants, and that fit into what is to be sent.
    pub(super) fn wanted(&self) -> usize {
        let room = MAX_OUTGOING.saturating_sub(self.outgoing.len());
        let playing = self.stream.as_ref().filter(|stream| !stream.is_corked);
        playing.map_or(0, |stream| stream.wanted.min(room) / FRAME)
    }

    /// When the server is overdue to ask for more; `None` while it is not to ask, because it is suspended.
    pub(super) fn asks_by(&self) -> Option<Time> {
        let stream = self.stream.as_ref().filter(|stream| !stream.is_suspended)?;
        Some(stream.asked + PATIENCE + time_of(stream.target as u64))
    }

    /// Gives it samples that it wants.
    pub(super) fn give(&mut self, samples: &[f32]) {
        let Some(stream) = &mut self.stream else { return };
        let bytes = encode_pcm(samples);
        stream.wanted = stream.wanted.saturating_sub(bytes.len());
        stream.given += bytes.len() as u64;
        // A vector takes all.
        let _ = write_memblock(&mut self.outgoing, stream.channel, &bytes, 0);
    }

    /// Stops or starts the stream.
    pub(super) fn cork(&mut self, now: Time, cork: bool) {
        let Some(stream) = &mut self.stream else { return };
        stream.is_corked = cork;
        stream.asked = now;
        stream.latency = None;
        let params = CorkStreamParams { channel: stream.channel, cork };
        self.send(&Command::CorkPlaybackStream(params));
    }

    /// Asks how long the server's queue is, unless it owes an answer.
    pub(super) fn ask_latency(&mut self, now: Time) {
        if self.waiting.is_some() {
            return;
        }
        let Some(stream) = &mut self.stream else { return };
        stream.given_when_asked = stream.given;
        // The times of the two machines are not compared.
        let params = LatencyParams { channel: stream.channel, now: SystemTime::UNIX_EPOCH };
        self.ask(now, &Command::GetPlaybackLatency(params));
    }

    /// How long it takes until what is given next is heard.
    pub(super) fn queue(&self, now: Time) -> Duration {
        let Some(stream) = &self.stream else { return Duration::ZERO };
        let Some(latency) = stream.latency else {
            // What it will have when it asks: that it is still being filled must not look like a change of tempo.
            return time_of(stream.target.saturating_sub(LEAST_REQUEST as usize) as u64);
        };
        let ahead = latency.ahead.saturating_add_unsigned(stream.given);
        let queue = time_of(u64::try_from(ahead).unwrap_or(0)).saturating_sub(now.since(latency.at));
        queue.min(LONGEST_QUEUE)
    }

    fn on_frame(&mut self, now: Time, frame: &[u8]) -> Result<(), Failure> {
        let mut cursor = Cursor::new(frame);
        let mut reader = TagStructReader::new(&mut cursor, self.version);
        // A command that the crate does not know is not for us.
        let Ok(tag) = reader.read_enum::<CommandTag>() else { return Ok(()) };
        let sequence = reader.read_u32().map_err(malformed("a command's number"))?;
        match tag {
            CommandTag::Reply if self.waiting.is_some_and(|(waiting, _)| waiting == sequence) => {
                self.waiting = None;
                self.on_answer(now, &mut cursor)
            }
            CommandTag::Error => {
                // Errors are for what was asked, or for orders to a stream that has just been killed.
                Err(Failure::Refused(reader.read_enum().unwrap_or(PulseError::Unknown)))
            }
            _ => self
                .on_event(now, tag, &mut reader)
                .map_err(malformed("an event"))
                .and_then(|killed| if killed { Err(Failure::Killed) } else { Ok(()) }),
        }
    }

    /// What the server tells of its own accord. Whether it killed the stream.
    fn on_event(
        &mut self,
        now: Time,
        tag: CommandTag,
        reader: &mut TagStructReader<'_>,
    ) -> Result<bool, ProtocolError> {
        let about_stream = [
            CommandTag::Request,
            CommandTag::Underflow,
            CommandTag::PlaybackStreamKilled,
            CommandTag::PlaybackStreamMoved,
            CommandTag::PlaybackStreamSuspended,
            CommandTag::PlaybackBufferAttrChanged,
        ];
        let Some(stream) = self.stream.as_mut().filter(|_| about_stream.contains(&tag)) else {
            return Ok(false);
        };
        if reader.read_u32()? != stream.channel {
            return Ok(false);
        }
        match tag {
            CommandTag::Request => {
                let length = reader.read_u32()? as usize;
                stream.wanted = stream.wanted.saturating_add(length).min(MAX_WANTED);
                // Even if it was suspended before, its device takes sound.
                (stream.asked, stream.is_suspended) = (now, false);
                if stream.latency.is_none() {
                    self.ask_latency(now);
                }
                return Ok(false);
            }
            CommandTag::PlaybackStreamKilled => return Ok(true),
            CommandTag::PlaybackStreamMoved => {
                let (_device, _name) = (reader.read_u32()?, reader.read_string()?);
                stream.is_suspended = reader.read_bool()?;
                stream.retarget(reader)?;
            }
            CommandTag::PlaybackStreamSuspended => stream.is_suspended = reader.read_bool()?,
            CommandTag::PlaybackBufferAttrChanged => stream.retarget(reader)?,
            _ => {}
        }
        stream.asked = now;
        self.ask_latency(now);
        Ok(false)
    }

    /// The server answered what was asked last.
    fn on_answer(&mut self, now: Time, cursor: &mut Cursor<&[u8]>) -> Result<(), Failure> {
        match self.step {
            Step::Authenticate => {
                let mut reader = TagStructReader::new(cursor, self.version);
                let version = reader.read_u32().map_err(malformed("its version"))? as u16;
                if version < OLDEST {
                    return Err(Failure::TooOld(version));
                }
                self.version = version.min(MAX_VERSION);
                self.step = Step::Introduce;
                let mut props = Props::new();
                props.set(Prop::ApplicationName, &self.name);
                self.ask(now, &Command::SetClientName(props));
            }
            Step::Introduce => {
                self.step = Step::MakeStream;
                let params = self.stream_params();
                self.ask(now, &Command::CreatePlaybackStream(params));
            }
            Step::MakeStream => {
                self.step = Step::Ready;
                let mut reader = TagStructReader::new(cursor, self.version);
                self.stream = Some(Stream::read(now, &mut reader).map_err(malformed("a new stream"))?);
            }
            Step::Ready => {
                let Some(stream) = &mut self.stream else { return Ok(()) };
                let latency = Latency::read(now, cursor, self.version).map_err(malformed("its latency"))?;
                stream.latency = latency.map(|latency| Latency {
                    ahead: latency.ahead.saturating_sub_unsigned(stream.given_when_asked),
                    ..latency
                });
            }
        }
        Ok(())
    }

    /// A device that takes 44.1 kHz alone, or another format, is the server's concern: it converts.
    fn stream_params(&self) -> PlaybackStreamParams {
        let mut props = Props::new();
        props.set(Prop::MediaName, &self.name);
        props.set(Prop::ApplicationName, &self.name);
        PlaybackStreamParams {
            sample_spec: SampleSpec {
                format: SampleFormat::S16Le,
                channels: CHANNELS as u8,
                sample_rate: RATE,
            },
            channel_map: ChannelMap::stereo(),
            buffer_attr: BufferAttr {
                target_length: TARGET,
                minimum_request_length: LEAST_REQUEST,
                ..BufferAttr::default()
            },
            flags: StreamFlags { adjust_latency: true, ..StreamFlags::default() },
            props,
            ..PlaybackStreamParams::default()
        }
    }

    /// Sends what the server will answer.
    fn ask(&mut self, now: Time, command: &Command) {
        self.waiting = Some((self.sequence, now));
        self.send(command);
    }

    fn send(&mut self, command: &Command) {
        let mut message = Vec::new();
        // A vector takes all.
        let _ = encode_command_message(&mut message, self.sequence, command, self.version);
        self.outgoing.append(&mut message);
        self.sequence = self.sequence.wrapping_add(1);
    }
}

impl Stream {
    /// Of the reply to its making, as much as matters.
    fn read(now: Time, reader: &mut TagStructReader<'_>) -> Result<Self, ProtocolError> {
        let channel = reader.read_u32()?;
        let _index = reader.read_u32()?;
        let wanted = reader.read_u32()? as usize;
        let mut stream = Self {
            channel,
            wanted: wanted.min(MAX_WANTED),
            asked: now,
            target: 0,
            is_corked: false,
            is_suspended: false,
            given: 0,
            given_when_asked: 0,
            latency: None,
        };
        stream.retarget(reader)?;
        Ok(stream)
    }

    /// Reads how long the server's queue is to be.
    fn retarget(&mut self, reader: &mut TagStructReader<'_>) -> Result<(), ProtocolError> {
        let _longest = reader.read_u32()?;
        self.target = (reader.read_u32()? as usize).min(MAX_WANTED);
        Ok(())
    }
}

impl Latency {
    /// `None` while the device does not run: then nothing can be computed from it. The crate's own reader overflows on
    /// times that do not exist, so this one skips them.
    fn read(now: Time, cursor: &mut Cursor<&[u8]>, version: u16) -> Result<Option<Self>, ProtocolError> {
        let mut reader = TagStructReader::new(cursor, version);
        let (sink, _source) = (reader.read_usec()?, reader.read_usec()?);
        let is_running = reader.read_bool()?;
        cursor.set_position(cursor.position() + 2 * TIMEVAL);
        let mut reader = TagStructReader::new(cursor, version);
        let (written, read) = (reader.read_i64()?, reader.read_i64()?);
        let sink = sink.min(LONGEST_QUEUE.as_micros() as u64) * BYTES_PER_MS / 1000;
        let ahead = written.saturating_sub(read).max(0).saturating_add_unsigned(sink);
        Ok(is_running.then_some(Self { at: now, ahead }))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "the sound server refused: {error}"),
            Self::TooOld(version) => write!(f, "the sound server's protocol {version} is too old"),
            Self::Killed => write!(f, "the sound server ended the stream"),
            Self::Malformed(what) => {
                write!(f, "the sound server sent what is no PulseAudio protocol: {what}")
            }
        }
    }
}

/// The crate's reasons are for programmers.
fn malformed(what: &'static str) -> impl Fn(ProtocolError) -> Failure {
    move |_| Failure::Malformed(what)
}

/// How long so many bytes of sound take.
fn time_of(bytes: u64) -> Duration {
    Duration::from_micros(bytes.saturating_mul(1000) / BYTES_PER_MS)
}

/// Bytes of a frame of sound.
const FRAME: usize = 2 * CHANNELS;

const BYTES_PER_MS: u64 = RATE as u64 / 1000 * FRAME as u64;

/// What the server's queue is to have, the device's included: 20 ms.
const TARGET: u32 = 20 * BYTES_PER_MS as u32;

/// It asks for so much at least: 5 ms. More, and the queue would empty between two requests; less, and both sides
/// would do nothing else.
const LEAST_REQUEST: u32 = 5 * BYTES_PER_MS as u32;

/// Older ones take the volume that is left to them for one that was set. PulseAudio 0.9.15, of 2009.
const OLDEST: u16 = 15;

/// Bytes of a time with its tag.
const TIMEVAL: u64 = 1 + 4 + 4;

/// Bytes of the server's longest message: of those that we ask for, none has more than a few hundred.
const MAX_FRAME: usize = 256 << 10;

/// Bytes that wait until the server reads them; more than 300 ms of sound.
const MAX_OUTGOING: usize = 64 << 10;

/// Bytes that a server may ask for ahead: PulseAudio's own limit of a stream.
const MAX_WANTED: usize = 4 << 20;

/// No device has a longer queue.
const LONGEST_QUEUE: Duration = Duration::from_secs(2);

/// A device that has not asked for so long beyond its queue takes no sound.
const PATIENCE: Duration = Duration::from_secs(1);
