//! What a carrier delivers to a session.
//!
//! Input: flags, then operations (see [`step`]). Flag 1: this side is the display's, else the app's. Flag 2:
//! a sound peer greets first, so that the rest reaches what only a greeted session reads. Flag 4: no session,
//! but one header or control message (by flag 1). Flag 8: both sides can resume, and a lost link is followed by another
//! one, over which a sound peer asks or answers as if it had had nothing. Flag 16: repair comes in datagrams.

use std::collections::HashMap;

use bytes::Bytes;
use wayferry_proto::wire::{Reader, Writer};
use wayferry_proto::{
    Arrival, Candidate, Capabilities, CloseReason, Config, Control, Event, Header, Limits, MAX_CHUNK,
    MAX_CONTROL, MAX_MESSAGE, MAX_SOUND, Session, Side, StreamId, Time, Transmit,
};

use crate::Input;

/// The flag for the display's side, or for a control message.
pub const DISPLAY: u8 = 1;
/// The flag for a greeted session.
pub const GREETED: u8 = 2;
/// The flag for one header or control message.
pub const ALONE: u8 = 4;
/// The flag for sides that can resume.
pub const RESUMABLE: u8 = 8;
/// The flag for repair in datagrams.
pub const ROWS: u8 = 16;

/// A session takes any input; all that it passes on is within its bounds, and after the end there is
/// nothing.
///
/// # Panics
/// When that is not so.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let flags = input.u8();
    if flags & ALONE != 0 {
        return if flags & DISPLAY == 0 { header(input.0) } else { control(input.0) };
    }
    let side = if flags & DISPLAY == 0 { Side::App } else { Side::Display };
    // Small, so that a leak of accounting is soon visible.
    let limits = Limits {
        buffered: 1 << 20,
        buffered_per_channel: 256 << 10,
        buffered_before_hello: 64 << 10,
        streams: 64,
        unacknowledged: 256 << 10,
    };
    let config = Config { limits, ..config(side, flags) };
    let mut link = Link {
        session: Session::new(config.clone()),
        peer: self::config(side.peer(), flags),
        config,
        now: Time::ZERO,
        resumed: 0,
        heads: HashMap::new(),
    };
    if flags & GREETED != 0 {
        link.greet(Session::new(link.peer.clone()));
    }
    while !input.is_empty() && !link.session.is_closed() {
        step(&mut link, &mut input);
        link.drain();
        if link.session.is_suspended() {
            link.resume();
        }
    }
}

fn config(side: Side, flags: u8) -> Config {
    let rows = if flags & ROWS == 0 { Capabilities::NONE } else { Capabilities::DATAGRAM_REPAIR };
    let capabilities = Capabilities::SOUND.with(rows);
    let config = Config { capabilities, ..Config::new(side) };
    match side {
        _ if flags & RESUMABLE == 0 => config,
        Side::App => Config { capabilities: capabilities.with(Capabilities::RESUME), ..config },
        Side::Display => Config { resume: Some([1; 32].into()), ..config },
    }
}

/// One operation: a byte that says which, the stream, and what it needs.
///
/// 0 to 3: bytes at the stream's end (two bytes of length, then they). 4: bytes anywhere (length, offset,
/// they). 5: end of the stream. 6: an end that claims a length. 7: reset. 8: one of this side's streams is
/// stopped. 9: one of this side's streams could not be opened. 10: time passes (10 ms each). 11: the peer
/// closes, or the link is lost (by the stream). 12: a datagram (a length, its bytes).
fn step(link: &mut Link, input: &mut Input<'_>) {
    let operation = input.u8() % 13;
    let stream = StreamId(u64::from(input.u8() % 80));
    let head = link.heads.get(&stream).copied().unwrap_or(0);
    let arrival = match operation {
        0..=3 => link.append(stream, input),
        4 => {
            let (length, offset) = (input.u16(), u64::from(input.u16()));
            Arrival::Data { stream, offset, bytes: Bytes::copy_from_slice(input.take(length.into())) }
        }
        5 => Arrival::Finished { stream, length: head },
        6 => Arrival::Finished { stream, length: input.u16().into() },
        7 => Arrival::Reset { stream, code: input.u8().into() },
        8 => Arrival::Stopped { stream, code: input.u8().into() },
        9 => Arrival::OpenFailed { stream, bytes: Bytes::new(), finish: false },
        10 => {
            link.now += std::time::Duration::from_millis(10 * stream.0);
            return link.session.on_timeout(link.now);
        }
        12 => {
            let length = input.u16();
            Arrival::Datagram { bytes: Bytes::copy_from_slice(input.take(length.into())) }
        }
        _ if stream.0 % 2 == 1 => Arrival::Closed { reason: CloseReason::LinkLost(String::new()) },
        _ => Arrival::Closed { reason: CloseReason::Timeout },
    };
    link.session.receive(link.now, arrival);
}

struct Link {
    session: Session,
    config: Config,
    peer: Config,
    now: Time,
    /// How often a display came to go on.
    resumed: u32,
    /// How far each of the peer's streams was written in order.
    heads: HashMap<StreamId, u64>,
}

impl Link {
    fn append(&mut self, stream: StreamId, input: &mut Input<'_>) -> Arrival {
        let length = input.u16();
        let bytes = Bytes::copy_from_slice(input.take(length.into()));
        let head = self.heads.entry(stream).or_default();
        let offset = *head;
        *head += bytes.len() as u64;
        Arrival::Data { stream, offset, bytes }
    }

    /// Another link, and a peer that is sound at first.
    fn resume(&mut self) {
        self.heads.clear();
        let fresh = Session::new(self.config.clone());
        let old = std::mem::replace(&mut self.session, fresh);
        if self.config.side == Side::Display {
            self.session = Session::resuming(self.config.clone(), old);
            return self.greet(Session::new(self.peer.clone()));
        }
        // Each attempt of the display has a higher number than the one before.
        self.resumed += 1;
        let mut peer = suspended(self.peer.clone(), &self.config);
        for _ in 0..self.resumed {
            peer.suspend();
            peer = Session::resuming(self.peer.clone(), peer);
        }
        self.greet(peer);
        let fresh = Session::new(self.config.clone());
        let candidate =
            Candidate::new(std::mem::replace(&mut self.session, fresh)).expect("its hello is there");
        self.session = candidate.succeed(self.now, old).unwrap_or_else(|(candidate, _)| {
            assert!(candidate.holder().is_closed(), "a candidate for what was suspended");
            candidate.begin(self.now)
        });
    }

    /// Delivers what a sound peer of the other side sends first.
    fn greet(&mut self, mut peer: Session) {
        while let Some(transmit) = peer.poll_transmit(self.now) {
            if let Transmit::Data { stream, bytes, .. } = transmit {
                let head = self.heads.entry(stream).or_default();
                let offset = *head;
                *head += bytes.len() as u64;
                self.session.receive(self.now, Arrival::Data { stream, offset, bytes });
            }
        }
        self.drain();
        assert!(self.session.peer().is_some(), "a sound hello is understood");
    }

    fn drain(&mut self) {
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Message { bytes, .. } => assert!(bytes.len() <= MAX_MESSAGE),
                Event::Sound { bytes } => assert!(bytes.len() <= MAX_SOUND),
                Event::Update { chunks, .. } => assert!(chunks.iter().all(|chunk| chunk.len() <= MAX_CHUNK)),
                Event::Data { channel, bytes, .. } => self.session.consumed(channel, bytes.len()),
                Event::Closed { .. } => {
                    assert_eq!(self.session.poll_event(), None, "the end is the last event")
                }
                _ => {}
            }
        }
        while self.session.poll_transmit(self.now).is_some() {}
    }
}

/// A display's session with a peer of this kind, whose link is gone.
fn suspended(display: Config, app: &Config) -> Session {
    let mut session = Session::new(display);
    let mut peer = Session::new(app.clone());
    let mut head = 0;
    while let Some(transmit) = peer.poll_transmit(Time::ZERO) {
        if let Transmit::Data { stream, bytes, .. } = transmit {
            let length = bytes.len() as u64;
            session.receive(Time::ZERO, Arrival::Data { stream, offset: head, bytes });
            head += length;
        }
    }
    assert!(session.is_resumable(), "both sides can resume");
    session
}

fn header(bytes: &[u8]) {
    let Ok((header, label)) = Header::decode_labelled(bytes) else { return };
    let mut writer = Writer::new();
    header.encode_labelled(label, &mut writer);
    let mut reader = Reader::new(writer.as_slice());
    let fields = reader.bytes(usize::MAX, "a header").expect("it was just written");
    assert_eq!(Header::decode_labelled(fields).as_ref(), Ok(&(header, label)));
}

fn control(bytes: &[u8]) {
    if bytes.len() > MAX_CONTROL {
        return;
    }
    let Ok(Some(message)) = Control::decode(&Bytes::copy_from_slice(bytes)) else { return };
    let mut writer = Writer::new();
    message.encode(&mut writer);
    assert_eq!(Control::decode(&writer.into_vec().into()).as_ref(), Ok(&Some(message)));
}
