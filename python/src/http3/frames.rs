//! Frames: what the streams of HTTP/3 consist of (RFC 9114 §7).
//!
//! [`Frames`] is given a stream's bytes as they come, and asked for what is in them. Body data are handed on as they
//! are, and frames of unknown types are passed over; only what must be read as a whole is kept, up to a limit.
//! Invariant: what is kept is at most one such frame and what was given last, and each turn of a loop uses up bytes.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

use super::fault::{
    BUFFERED_STREAM_REJECTED, EXCESSIVE_LOAD, FRAME_ERROR, FRAME_UNEXPECTED, Fault, ID_ERROR,
    MISSING_SETTINGS, SETTINGS_ERROR,
};

/// Which frames may come now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A header section, or one of an interim response.
    Headers,
    /// Data, or a trailer section.
    Body,
    /// The end.
    Trailers,
    /// The settings, which a control stream begins with.
    Settings,
    /// The other frames of a control stream.
    Control,
}

/// What a stream said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A section of fields, as it is written; whether it is one of trailers.
    Section(Bytes, bool),
    Data(Vec<Bytes>),
    Settings(Vec<(u64, u64)>),
    /// The peer goes, and takes nothing from this number on.
    GoAway(u64),
}

/// What is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Type and length of a frame.
    Head,
    /// A frame that is handed on as it comes; so many bytes are left.
    Data(u64),
    /// A frame that is passed over.
    Skip(u64),
    /// A frame that is read as a whole: its type and length.
    Whole(u64, usize),
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Frames {
    phase: Phase,
    state: State,
    /// Whether the other side is the server, which alone can push.
    from_server: bool,
    /// Bytes of a frame that is read as a whole.
    limit: usize,
    input: VecDeque<Bytes>,
    input_len: usize,
    /// Frames without any content since the last with some.
    idle: u32,
}

impl Frames {
    pub(crate) fn new(phase: Phase, from_server: bool, limit: usize) -> Self {
        let (input, state) = (VecDeque::new(), State::Head);
        Self { phase, state, from_server, limit, input, input_len: 0, idle: 0 }
    }

    pub(crate) fn give(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.input_len += piece.len();
            self.input.push_back(piece);
        }
    }

    /// Says that the section that came last is not all: another header section may come (RFC 9114 §4.1).
    pub(crate) fn expect_headers(&mut self) {
        self.phase = Phase::Headers;
    }

    /// What was given and has not been looked at. `None` within a frame.
    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        (self.state == State::Head).then(|| self.take(self.input_len))
    }

    /// Whether the stream may end here.
    ///
    /// # Errors
    /// It ended within a frame.
    pub(crate) fn end(&self) -> Result<(), Fault> {
        if self.state == State::Head && self.input.is_empty() {
            return Ok(());
        }
        Err(Fault::new(FRAME_ERROR, "a stream ended within a frame"))
    }

    /// What the bytes that were given say next; nothing when more are needed.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, Fault> {
        let mut data = Vec::new();
        loop {
            match self.state {
                State::Head => match self.head() {
                    // What comes behind data waits for the next call.
                    Some((kind, ..)) if kind != DATA && !data.is_empty() => break,
                    Some((kind, length, size)) => {
                        self.take(size);
                        self.begin(kind, length)?;
                    }
                    None => break,
                },
                State::Skip(left) => {
                    let passed = left.min(self.input_len as u64);
                    self.skip(passed as usize);
                    if !self.advance(State::Skip(left - passed), left == passed) {
                        break;
                    }
                }
                State::Data(left) => {
                    let passed = self.pass(left, &mut data);
                    if passed > 0 {
                        self.idle = 0;
                    }
                    if !self.advance(State::Data(left - passed), left == passed) {
                        break;
                    }
                }
                State::Whole(kind, length) => {
                    if self.input_len < length {
                        break;
                    }
                    let content = self.take(length);
                    self.state = State::Head;
                    self.idle = 0;
                    if let Some(frame) = self.whole(kind, content)? {
                        return Ok(Some(frame));
                    }
                }
            }
        }
        if data.is_empty() {
            self.compact();
            return Ok(None);
        }
        Ok(Some(Frame::Data(data)))
    }

    /// Goes on within a frame, or to the next one.
    fn advance(&mut self, within: State, over: bool) -> bool {
        self.state = if over { State::Head } else { within };
        over
    }

    /// Type and length of the next frame, and how many bytes they take.
    fn head(&self) -> Option<(u64, u64, usize)> {
        let mut start = [0; 16];
        let mut len = 0;
        for piece in &self.input {
            let part = piece.len().min(start.len() - len);
            start[len..len + part].copy_from_slice(&piece[..part]);
            len += part;
            if len == start.len() {
                break;
            }
        }
        let mut rest = &start[..len];
        let (kind, length) = (number(&mut rest)?, number(&mut rest)?);
        Some((kind, length, len - rest.len()))
    }

    /// A frame begins.
    fn begin(&mut self, kind: u64, length: u64) -> Result<(), Fault> {
        if length == 0 || is_unknown(kind) {
            self.idle += 1;
            if self.idle > IDLE {
                return Err(Fault::new(EXCESSIVE_LOAD, "too many frames without content"));
            }
        }
        self.state = match (kind, self.phase) {
            (DATA, Phase::Body) => State::Data(length),
            (HEADERS, Phase::Headers | Phase::Body)
            | (SETTINGS, Phase::Settings)
            | (GOAWAY | CANCEL_PUSH, Phase::Control) => self.keep(kind, length)?,
            (MAX_PUSH_ID | PRIORITY_UPDATE | PRIORITY_UPDATE_PUSH, Phase::Control) if !self.from_server => {
                self.keep(kind, length)?
            }
            (_, Phase::Settings) => {
                return Err(Fault::new(MISSING_SETTINGS, "the control stream does not begin with settings"));
            }
            (PUSH_PROMISE, _) if self.from_server && self.phase != Phase::Control => {
                return Err(Fault::new(ID_ERROR, "a push that was not allowed"));
            }
            (WEBTRANSPORT, Phase::Headers) => {
                return Err(Fault::new(BUFFERED_STREAM_REJECTED, "a stream of a session that there is not"));
            }
            _ if is_unknown(kind) => State::Skip(length),
            _ => return Err(Fault::new(FRAME_UNEXPECTED, "a frame where it must not be")),
        };
        Ok(())
    }

    fn keep(&self, kind: u64, length: u64) -> Result<State, Fault> {
        match usize::try_from(length) {
            Ok(length) if length <= self.limit => Ok(State::Whole(kind, length)),
            _ => Err(Fault::new(EXCESSIVE_LOAD, "a frame of fields or settings is too large")),
        }
    }

    fn whole(&mut self, kind: u64, content: Bytes) -> Result<Option<Frame>, Fault> {
        match kind {
            HEADERS => {
                let trailers = self.phase == Phase::Body;
                self.phase = if trailers { Phase::Trailers } else { Phase::Body };
                Ok(Some(Frame::Section(content, trailers)))
            }
            SETTINGS => {
                self.phase = Phase::Control;
                settings(&content).map(|settings| Some(Frame::Settings(settings)))
            }
            PRIORITY_UPDATE | PRIORITY_UPDATE_PUSH => prioritised(kind, &content).map(|()| None),
            _ => {
                let mut rest = &content[..];
                match number(&mut rest) {
                    Some(id) if rest.is_empty() => Ok((kind == GOAWAY).then_some(Frame::GoAway(id))),
                    _ => Err(Fault::new(FRAME_ERROR, "a frame of one number has something else")),
                }
            }
        }
    }

    /// Moves up to `most` bytes to `data`, and gives how many.
    fn pass(&mut self, most: u64, data: &mut Vec<Bytes>) -> u64 {
        let mut left = most;
        while left > 0
            && let Some(piece) = self.input.front_mut()
        {
            let part = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            data.push(piece.split_to(part));
            if piece.is_empty() {
                self.input.pop_front();
            }
            self.input_len -= part;
            left -= part as u64;
        }
        most - left
    }

    /// The first `len` bytes, which are there.
    fn take(&mut self, len: usize) -> Bytes {
        let mut pieces = Vec::new();
        self.pass(len as u64, &mut pieces);
        match pieces.pop() {
            Some(only) if pieces.is_empty() => only,
            last => {
                let mut joined = BytesMut::with_capacity(len);
                pieces.iter().chain(&last).for_each(|piece| joined.extend_from_slice(piece));
                joined.freeze()
            }
        }
    }

    /// Joins the pieces that wait when they are many: each keeps all of the packet that it came in.
    fn compact(&mut self) {
        if self.input.len() >= PIECES {
            let joined = self.take(self.input_len);
            self.give(joined);
        }
    }

    fn skip(&mut self, len: usize) {
        self.pass(len as u64, &mut Vec::new());
    }
}

/// Whether frames of this type are to be passed over. The others have a meaning, or had one in HTTP/2 and are
/// forbidden (RFC 9114 §7.2.8).
fn is_unknown(kind: u64) -> bool {
    !matches!(kind, DATA..=HTTP2_LAST | MAX_PUSH_ID | PRIORITY_UPDATE | PRIORITY_UPDATE_PUSH)
}

/// RFC 9114 §7.2.4.
fn settings(mut content: &[u8]) -> Result<Vec<(u64, u64)>, Fault> {
    let mut settings = Vec::new();
    while !content.is_empty() {
        let (Some(id), Some(value)) = (number(&mut content), number(&mut content)) else {
            return Err(Fault::new(FRAME_ERROR, "a setting is cut off"));
        };
        if (2..=5).contains(&id) || settings.iter().any(|&(before, _)| before == id) {
            return Err(Fault::new(SETTINGS_ERROR, "a setting of HTTP/2, or one twice"));
        }
        if settings.len() == SETTINGS_MAX {
            return Err(Fault::new(EXCESSIVE_LOAD, "too many settings"));
        }
        settings.push((id, value));
    }
    Ok(settings)
}

/// Looks at a priority, which is not followed (RFC 9218 §7.2). Of its value nothing can be wrong: what is no dictionary
/// is ignored as a whole (RFC 8941 §4.2), as are parameters that are unknown or out of range (RFC 9218 §4).
fn prioritised(kind: u64, mut content: &[u8]) -> Result<(), Fault> {
    match number(&mut content) {
        None => Err(Fault::new(FRAME_ERROR, "a priority of nothing")),
        // A request has a stream that the client opens both ways (RFC 9000 §2.1).
        Some(id) if kind == PRIORITY_UPDATE && id % 4 == 0 => Ok(()),
        Some(_) if kind == PRIORITY_UPDATE => Err(Fault::new(ID_ERROR, "a priority of what is no request")),
        Some(_) => Err(Fault::new(ID_ERROR, "a priority of a push, of which there are none")),
    }
}

/// A number at the beginning of `bytes`, which lose it (RFC 9000 §16).
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let (mut number, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(number.get_uint(length) & !(3 << (length * 8 - 2)))
}

/// Writes a number (RFC 9000 §16).
pub(crate) fn put_number(bytes: &mut Vec<u8>, number: u64) {
    match number {
        0..0x40 => bytes.push(number as u8),
        0x40..0x4000 => bytes.extend((number as u16 | 1 << 14).to_be_bytes()),
        0x4000..0x4000_0000 => bytes.extend((number as u32 | 2 << 30).to_be_bytes()),
        _ => bytes.extend((number | 3 << 62).to_be_bytes()),
    }
}

// RFC 9114 §11.2.1.
pub(crate) const DATA: u64 = 0x0;
pub(crate) const HEADERS: u64 = 0x1;
const CANCEL_PUSH: u64 = 0x3;
const SETTINGS: u64 = 0x4;
const PUSH_PROMISE: u64 = 0x5;
const GOAWAY: u64 = 0x7;
const MAX_PUSH_ID: u64 = 0xd;
/// CONTINUATION's number in HTTP/2.
const HTTP2_LAST: u64 = 0x9;
/// What a stream of a session begins with (draft-ietf-webtrans-http3 §4.3); the length is the session's number.
const WEBTRANSPORT: u64 = 0x41;
// RFC 9218 §7.
const PRIORITY_UPDATE: u64 = 0xf0700;
const PRIORITY_UPDATE_PUSH: u64 = 0xf0701;

/// Frames without content that may follow each other; those that hide how much is sent are far fewer.
const IDLE: u32 = 1000;
/// Pieces of one frame that are kept apart.
const PIECES: usize = 32;
/// Settings that a peer may have.
const SETTINGS_MAX: usize = 128;
