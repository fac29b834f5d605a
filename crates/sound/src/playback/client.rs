//! A stream of sound to the desk's sound server: bytes in, bytes out.
//!
//! It makes the stream, and counts how much the server asks for. Of what the server says it reads what it needs, and
//! skips the rest. It opens no socket and reads no clock. Invariant: it never gives the server more than was asked for.

use std::io::Cursor;
use std::time::{Duration, SystemTime};

use pulseaudio::protocol::command::CommandTag;
use pulseaudio::protocol::stream::{BufferAttr, StreamFlags};
use pulseaudio::protocol::{
    ChannelMap, Command, CorkStreamParams, LatencyParams, PlaybackStreamParams, Prop, Props, ProtocolError,
    SampleFormat, SampleSpec, TagStructReader, write_memblock,
};
use wayferry_audio::{CHANNELS, RATE, encode_pcm};
use wayferry_proto::Time;

use crate::link::{COOKIE, Failure, Heard, Talk, malformed};

/// See the module.
#[derive(Debug)]
pub(super) struct Client {
    talk: Talk,
    stream: Option<Stream>,
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

impl Client {
    /// Has the first message ready.
    pub(super) fn new(now: Time, name: &str, cookie: [u8; COOKIE]) -> Self {
        Self { talk: Talk::new(now, name, cookie), stream: None }
    }

    /// The server said this.
    pub(super) fn receive(&mut self, now: Time, bytes: &[u8]) -> Result<(), Failure> {
        self.talk.receive(bytes);
        while let Some(heard) = self.talk.next(now)? {
            match heard {
                Heard::Greeted => {
                    let params = self.stream_params();
                    self.talk.ask(now, &Command::CreatePlaybackStream(params));
                }
                Heard::Answer(mut values) => self.on_answer(now, &mut values)?,
                Heard::Event(tag, mut values) => {
                    let mut reader = TagStructReader::new(&mut values, self.talk.version());
                    if self.on_event(now, tag, &mut reader).map_err(malformed("an event"))? {
                        return Err(Failure::Killed);
                    }
                }
                // Nothing records.
                Heard::Sound(..) => {}
            }
        }
        Ok(())
    }

    /// What the server is to be sent; the caller removes what was.
    pub(super) fn outgoing(&mut self) -> &mut Vec<u8> {
        self.talk.outgoing()
    }

    pub(super) fn has_outgoing(&self) -> bool {
        self.talk.unsent() > 0
    }

    /// Whether the stream is made.
    pub(super) fn is_ready(&self) -> bool {
        self.stream.is_some()
    }

    /// Since when the server has owed an answer.
    pub(super) fn waits_since(&self) -> Option<Time> {
        self.talk.waits_since()
    }

    /// Frames that the server wants, and that fit into what is to be sent.
    pub(super) fn wanted(&self) -> usize {
        let room = MAX_OUTGOING.saturating_sub(self.talk.unsent());
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
        let _ = write_memblock(self.talk.outgoing(), stream.channel, &bytes, 0);
    }

    /// Stops or starts the stream.
    pub(super) fn cork(&mut self, now: Time, cork: bool) {
        let Some(stream) = &mut self.stream else { return };
        stream.is_corked = cork;
        stream.asked = now;
        stream.latency = None;
        let params = CorkStreamParams { channel: stream.channel, cork };
        self.talk.send(&Command::CorkPlaybackStream(params));
    }

    /// Asks how long the server's queue is, unless it owes an answer.
    pub(super) fn ask_latency(&mut self, now: Time) {
        if self.talk.waits_since().is_some() {
            return;
        }
        let Some(stream) = &mut self.stream else { return };
        stream.given_when_asked = stream.given;
        // The times of the two machines are not compared.
        let params = LatencyParams { channel: stream.channel, now: SystemTime::UNIX_EPOCH };
        self.talk.ask(now, &Command::GetPlaybackLatency(params));
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
    fn on_answer(&mut self, now: Time, values: &mut Cursor<Vec<u8>>) -> Result<(), Failure> {
        let version = self.talk.version();
        let Some(stream) = &mut self.stream else {
            let mut reader = TagStructReader::new(values, version);
            self.stream = Some(Stream::read(now, &mut reader).map_err(malformed("a new stream"))?);
            return Ok(());
        };
        let latency = Latency::read(now, values, version).map_err(malformed("its latency"))?;
        stream.latency = latency.map(|latency| Latency {
            ahead: latency.ahead.saturating_sub_unsigned(stream.given_when_asked),
            ..latency
        });
        Ok(())
    }

    /// A device that takes 44.1 kHz alone, or another format, is the server's concern: it converts.
    fn stream_params(&self) -> PlaybackStreamParams {
        let mut props = Props::new();
        props.set(Prop::MediaName, self.talk.name());
        props.set(Prop::ApplicationName, self.talk.name());
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
    fn read(now: Time, cursor: &mut Cursor<Vec<u8>>, version: u16) -> Result<Option<Self>, ProtocolError> {
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

/// Bytes of a time with its tag.
const TIMEVAL: u64 = 1 + 4 + 4;

/// Bytes that wait until the server reads them; more than 300 ms of sound.
const MAX_OUTGOING: usize = 64 << 10;

/// Bytes that a server may ask for ahead: PulseAudio's own limit of a stream.
const MAX_WANTED: usize = 4 << 20;

/// No device has a longer queue.
const LONGEST_QUEUE: Duration = Duration::from_secs(2);

/// A device that has not asked for so long beyond its queue takes no sound.
const PATIENCE: Duration = Duration::from_secs(1);
