//! A stream of the desk's default source: bytes in, bytes out.
//!
//! It opens no socket and reads no clock. Invariant: sound is handed on in whole frames, in the order in which it came.

use std::io::Cursor;

use pulseaudio::protocol::command::CommandTag;
use pulseaudio::protocol::stream::{BufferAttr, StreamFlags};
use pulseaudio::protocol::{
    ChannelMap, Command, Prop, Props, RecordStreamParams, SampleFormat, SampleSpec, TagStructReader,
};
use wayferry_audio::{CHANNELS, FrameSize, RATE};
use wayferry_proto::Time;

use crate::link::{COOKIE, Failure, Heard, Talk};

/// See the module.
#[derive(Debug)]
pub(super) struct Client {
    talk: Talk,
    /// The stream's number, when it is made.
    channel: Option<u32>,
    /// Bytes that have come and were not taken.
    sound: Vec<u8>,
}

impl Client {
    /// Has the first message ready.
    pub(super) fn new(now: Time, name: &str, cookie: [u8; COOKIE]) -> Self {
        Self { talk: Talk::new(now, name, cookie), channel: None, sound: Vec::new() }
    }

    /// The server said this.
    pub(super) fn receive(&mut self, now: Time, bytes: &[u8]) -> Result<(), Failure> {
        self.talk.receive(bytes);
        while let Some(heard) = self.talk.next(now)? {
            match heard {
                Heard::Greeted => {
                    let params = self.params();
                    self.talk.ask(now, &Command::CreateRecordStream(params));
                }
                Heard::Answer(mut values) => {
                    let channel = self.number(&mut values).ok_or(Failure::Malformed("a new stream"))?;
                    self.channel = Some(channel);
                }
                Heard::Event(CommandTag::RecordStreamKilled, mut values) => {
                    let killed = self.number(&mut values).ok_or(Failure::Malformed("an event"))?;
                    if Some(killed) == self.channel {
                        return Err(Failure::Killed);
                    }
                }
                Heard::Event(..) => {}
                Heard::Sound(channel, sound) if Some(channel) == self.channel => {
                    self.sound.extend_from_slice(&sound);
                }
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
        self.channel.is_some()
    }

    /// Since when the server has owed an answer.
    pub(super) fn waits_since(&self) -> Option<Time> {
        self.talk.waits_since()
    }

    /// The next 10 ms that have come.
    pub(super) fn block(&mut self) -> Option<Vec<f32>> {
        (self.sound.len() >= BLOCK).then(|| {
            let block = self.sound.drain(..BLOCK).collect::<Vec<u8>>();
            let samples = block.as_chunks().0.iter();
            samples.map(|bytes| wayferry_audio::from_i16(i16::from_le_bytes(*bytes))).collect()
        })
    }

    fn number(&self, values: &mut Cursor<Vec<u8>>) -> Option<u32> {
        TagStructReader::new(values, self.talk.version()).read_u32().ok()
    }

    fn params(&self) -> RecordStreamParams {
        let mut props = Props::new();
        props.set(Prop::MediaName, self.talk.name());
        props.set(Prop::ApplicationName, self.talk.name());
        RecordStreamParams {
            sample_spec: SampleSpec {
                format: SampleFormat::S16Le,
                channels: CHANNELS as u8,
                sample_rate: RATE,
            },
            channel_map: ChannelMap::stereo(),
            buffer_attr: BufferAttr { fragment_size: BLOCK as u32, ..BufferAttr::default() },
            flags: StreamFlags { adjust_latency: true, ..StreamFlags::default() },
            props,
            ..RecordStreamParams::default()
        }
    }
}

/// Bytes of 10 ms.
const BLOCK: usize = FrameSize::Ms10.frames() * CHANNELS * 2;
