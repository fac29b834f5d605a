//! A conversation with a sound server, in PulseAudio's native protocol: bytes in, bytes out.
//!
//! It names itself, numbers questions, and takes what comes apart into frames. PipeWire speaks the same protocol. The
//! crate `pulseaudio` has a client of its own; it blocks while it connects and authenticates, ignores that a stream was
//! killed or moved, has no limit for a frame, and its thread outlives its handle: so only its message types are used.
//!
//! It opens no socket and reads no clock. Invariant: a frame longer than [`MAX_FRAME`] is not kept.

use std::ffi::{CStr, CString};
use std::io::Cursor;

use pulseaudio::protocol::command::CommandTag;
use pulseaudio::protocol::{
    AuthParams, Command, DESCRIPTOR_SIZE, MAX_VERSION, Prop, Props, ProtocolError, PulseError,
    TagStructReader, encode_command_message, read_descriptor,
};
use wayferry_proto::Time;

use super::COOKIE;

/// See the module.
#[derive(Debug)]
pub(crate) struct Talk {
    name: CString,
    version: u16,
    sequence: u32,
    incoming: Vec<u8>,
    /// Bytes of it that were used.
    used: usize,
    outgoing: Vec<u8>,
    greeting: Greeting,
    /// What the server has not answered, and when it was asked.
    waiting: Option<(u32, Time)>,
}

/// How far both sides have introduced themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Greeting {
    Authenticate,
    Introduce,
    Done,
}

/// What the server said.
#[derive(Debug)]
pub(crate) enum Heard {
    /// The server knows who talks to it, and can be asked.
    Greeted,
    /// The values that answer the last question.
    Answer(Cursor<Vec<u8>>),
    /// What it tells of its own accord, with its values.
    Event(CommandTag, Cursor<Vec<u8>>),
    /// Sound of the stream that records.
    Sound(u32, Vec<u8>),
}

/// Why a server is of no use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It does not want to.
    Refused(PulseError),
    /// It is older than what we understand.
    TooOld(u16),
    /// It ended the stream: its device is gone.
    Killed,
    /// What it said is not the protocol.
    Malformed(&'static str),
}

impl Talk {
    /// Has the first message ready.
    pub(crate) fn new(now: Time, name: &str, cookie: [u8; COOKIE]) -> Self {
        // No session's name has a NUL; without it the name is still right.
        let name = CString::new(name.replace('\0', "")).unwrap_or_default();
        let mut talk = Self {
            name,
            version: MAX_VERSION,
            sequence: 0,
            incoming: Vec::new(),
            used: 0,
            outgoing: Vec::new(),
            greeting: Greeting::Authenticate,
            waiting: None,
        };
        let cookie = cookie.to_vec();
        let auth = AuthParams { version: MAX_VERSION, supports_shm: false, supports_memfd: false, cookie };
        talk.ask(now, &Command::Auth(auth));
        talk
    }

    /// What the desk's mixer shows.
    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }

    /// Of the protocol, as both sides speak it.
    pub(crate) fn version(&self) -> u16 {
        self.version
    }

    /// The server sent this.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.incoming.drain(..self.used);
        self.used = 0;
        self.incoming.extend_from_slice(bytes);
    }

    /// What it said next; `None` until more comes.
    pub(crate) fn next(&mut self, now: Time) -> Result<Option<Heard>, Failure> {
        loop {
            let rest = &self.incoming[self.used..];
            if rest.len() < DESCRIPTOR_SIZE {
                return Ok(None);
            }
            let head = read_descriptor(&mut &rest[..]).map_err(malformed("a frame's header"))?;
            let length = head.length as usize;
            if length > MAX_FRAME {
                return Err(Failure::Malformed("a frame's length"));
            }
            let Some(frame) = rest.get(DESCRIPTOR_SIZE..DESCRIPTOR_SIZE + length) else { return Ok(None) };
            let frame = frame.to_vec();
            self.used += DESCRIPTOR_SIZE + length;
            if head.channel != u32::MAX {
                return Ok(Some(Heard::Sound(head.channel, frame)));
            }
            if let Some(heard) = self.on_command(now, frame)? {
                return Ok(Some(heard));
            }
        }
    }

    /// What the server is to be sent; the caller removes what was.
    pub(crate) fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    /// Bytes that wait until the server reads them.
    pub(crate) fn unsent(&self) -> usize {
        self.outgoing.len()
    }

    /// Since when the server has owed an answer.
    pub(crate) fn waits_since(&self) -> Option<Time> {
        self.waiting.map(|(_, asked)| asked)
    }

    /// Sends what the server will answer.
    pub(crate) fn ask(&mut self, now: Time, command: &Command) {
        self.waiting = Some((self.sequence, now));
        self.send(command);
    }

    /// Sends what needs no answer.
    pub(crate) fn send(&mut self, command: &Command) {
        let mut message = Vec::new();
        // A vector takes all.
        let _ = encode_command_message(&mut message, self.sequence, command, self.version);
        self.outgoing.append(&mut message);
        self.sequence = self.sequence.wrapping_add(1);
    }

    fn on_command(&mut self, now: Time, frame: Vec<u8>) -> Result<Option<Heard>, Failure> {
        let mut cursor = Cursor::new(frame);
        let mut reader = TagStructReader::new(&mut cursor, self.version);
        // A command that the crate does not know is not for us.
        let Ok(tag) = reader.read_enum::<CommandTag>() else { return Ok(None) };
        let sequence = reader.read_u32().map_err(malformed("a command's number"))?;
        match tag {
            CommandTag::Reply if self.waiting.is_some_and(|(waiting, _)| waiting == sequence) => {
                self.waiting = None;
                self.on_answer(now, cursor)
            }
            CommandTag::Reply => Ok(None),
            // Errors are for what was asked, or for orders to a stream that has just been killed.
            CommandTag::Error => Err(Failure::Refused(reader.read_enum().unwrap_or(PulseError::Unknown))),
            _ => Ok(Some(Heard::Event(tag, cursor))),
        }
    }

    fn on_answer(&mut self, now: Time, mut cursor: Cursor<Vec<u8>>) -> Result<Option<Heard>, Failure> {
        match self.greeting {
            Greeting::Authenticate => {
                let mut reader = TagStructReader::new(&mut cursor, self.version);
                let version = reader.read_u32().map_err(malformed("its version"))? as u16;
                if version < OLDEST {
                    return Err(Failure::TooOld(version));
                }
                self.version = version.min(MAX_VERSION);
                self.greeting = Greeting::Introduce;
                let mut props = Props::new();
                props.set(Prop::ApplicationName, &self.name);
                self.ask(now, &Command::SetClientName(props));
                Ok(None)
            }
            Greeting::Introduce => {
                self.greeting = Greeting::Done;
                Ok(Some(Heard::Greeted))
            }
            Greeting::Done => Ok(Some(Heard::Answer(cursor))),
        }
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
pub(crate) fn malformed(what: &'static str) -> impl Fn(ProtocolError) -> Failure {
    move |_| Failure::Malformed(what)
}

/// Older ones take the volume that is left to them for one that was set. PulseAudio 0.9.15, of 2009.
const OLDEST: u16 = 15;

/// Bytes of the server's longest message: of those that we ask for, none has more than a few hundred, and sound comes
/// in pieces of 10 ms.
const MAX_FRAME: usize = 256 << 10;
