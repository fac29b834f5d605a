//! What a side says at random, what it hears, and whether that fits.
//!
//! Every byte follows from the channel and its place in it, so the receiver knows at once what is wrong; counts are
//! compared at the end. A side that begins anew forgets both. Invariant: of what a side gives up or stops, a beginning
//! may have come; of all else everything has to come, in order, once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use wayferry_proto::{
    ChannelId, ConnectionId, Control, Event, Header, RemoteChannelId, Session, Side, SurfaceId, Time,
    UpdateHeader, UpdateSeq,
};

use crate::random::Random;

/// See the module.
#[derive(Debug)]
pub(super) struct Talk {
    side: Side,
    random: Random,
    pause: Duration,
    end: Time,
    /// When something is said next.
    next: Time,
    /// The last number that was given to a channel or a surface; never used again.
    number: u32,
    sent: Sent,
    heard: Heard,
    /// What came and should not have.
    fault: Option<String>,
    /// When something was heard last.
    pub(super) last_heard: Option<Time>,
    now: Time,
}

#[derive(Debug, Default)]
struct Sent {
    channels: BTreeMap<Header, Speaking>,
    updates: BTreeSet<UpdateSeq>,
    last_update: u64,
    blobs: BTreeSet<u128>,
    controls: u64,
}

/// A long-lived channel of this side.
#[derive(Debug)]
struct Speaking {
    id: ChannelId,
    /// Messages, or bytes of a pipe.
    count: u64,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Finished,
    Reset(u32),
    Stopped,
}

#[derive(Debug, Default)]
struct Heard {
    channels: BTreeMap<Header, Listening>,
    updates: BTreeSet<UpdateSeq>,
    blobs: BTreeSet<u128>,
    controls: u64,
}

/// A long-lived channel of the peer.
#[derive(Debug)]
struct Listening {
    id: RemoteChannelId,
    count: u64,
    /// How it ended, or that this side stopped it.
    fate: Fate,
}

impl Default for Talk {
    /// One that says nothing.
    fn default() -> Self {
        Self::new(Side::App, &Random::new(0), Duration::ZERO, Time::ZERO)
    }
}

impl Talk {
    pub(super) fn new(side: Side, random: &Random, pause: Duration, end: Time) -> Self {
        Self {
            side,
            random: random.clone(),
            pause,
            end,
            next: Time::ZERO,
            number: 0,
            sent: Sent::default(),
            heard: Heard::default(),
            fault: None,
            last_heard: None,
            now: Time::ZERO,
        }
    }

    /// Everything that was said and heard is void.
    pub(super) fn restart(&mut self) {
        (self.sent, self.heard) = (Sent::default(), Heard::default());
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        (self.next < self.end).then_some(self.next)
    }

    /// What is wrong, if something is.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Says what is due.
    pub(super) fn say(&mut self, now: Time, session: &mut Session) {
        self.now = now;
        while self.next <= now && self.next < self.end {
            // What is kept while no peer listens is for us to bound.
            if session.retained() < MOST_RETAINED && !session.is_closed() {
                self.act(session);
            }
            let pause = self.random.exponential(self.pause.as_secs_f64()).min(1.0);
            self.next = self.next.max(now) + Duration::from_secs_f64(pause);
        }
    }

    /// Ends all channels that are open.
    pub(super) fn finish(&mut self, session: &mut Session) {
        for channel in self.sent.channels.values_mut().filter(|channel| channel.fate == Fate::Open) {
            session.finish(channel.id);
            channel.fate = Fate::Finished;
        }
    }

    fn act(&mut self, session: &mut Session) {
        match self.random.range(0..24) {
            0..=1 => self.open(session),
            2..=11 => self.speak(session),
            12 => self.close(session),
            13 => self.stop(session),
            14..=17 if self.side == Side::App => self.update(session),
            18 if self.side == Side::App => self.take_back(session),
            19 => self.blob(session),
            20 => self.control(session),
            _ => {}
        }
    }

    fn open(&mut self, session: &mut Session) {
        self.number += 1;
        let connection = ConnectionId(self.number);
        let header = match (self.random.range(0..3), self.side) {
            (0, _) => Header::Pipe { connection, pipe: u64::from(self.number) << 8 },
            (_, Side::App) => Header::Wayland { connection },
            (_, Side::Display) => Header::Events { connection },
        };
        let id = session.open(header);
        self.sent.channels.insert(header, Speaking { id, count: 0, fate: Fate::Open });
    }

    /// One of this side's open channels.
    fn pick(&mut self) -> Option<(Header, &mut Speaking)> {
        let open = self.sent.channels.iter_mut().filter(|(_, channel)| channel.fate == Fate::Open);
        let mut open: Vec<_> = open.map(|(header, channel)| (*header, channel)).collect();
        let index = self.random.range(0..open.len() as u64) as usize;
        (index < open.len()).then(|| open.swap_remove(index))
    }

    fn speak(&mut self, session: &mut Session) {
        let size = [20, 200, 3000, 30_000][self.random.range(0..4) as usize];
        let Some((header, channel)) = self.pick() else { return };
        if let Header::Pipe { .. } = header {
            session.write(channel.id, pipe_bytes(&header, channel.count, size));
            channel.count += size as u64;
        } else {
            let sent = session.send(channel.id, &message(&header, channel.count));
            channel.count += u64::from(sent.is_ok());
        }
    }

    fn close(&mut self, session: &mut Session) {
        let code = self.random.range(0..20) as u32;
        let Some((_, channel)) = self.pick() else { return };
        if code < 10 {
            channel.fate = Fate::Reset(code);
            session.reset(channel.id, code);
        } else {
            channel.fate = Fate::Finished;
            session.finish(channel.id);
        }
    }

    fn stop(&mut self, session: &mut Session) {
        let open = self.heard.channels.values_mut().filter(|channel| channel.fate == Fate::Open);
        let mut open: Vec<_> = open.collect();
        let index = self.random.range(0..2 * open.len() as u64) as usize;
        if index < open.len() {
            let channel = open.swap_remove(index);
            channel.fate = Fate::Stopped;
            session.stop(channel.id, 3);
        }
    }

    fn update(&mut self, session: &mut Session) {
        self.sent.last_update += 1;
        let seq = UpdateSeq(self.sent.last_update);
        if session.send_update(update_header(seq), chunks(seq)).is_ok() {
            self.sent.updates.insert(seq);
        }
    }

    fn take_back(&mut self, session: &mut Session) {
        let header = update_header(UpdateSeq(self.sent.last_update));
        if session.take_back(header.connection, header.surface, header.seq).is_some() {
            self.sent.updates.remove(&header.seq);
        }
    }

    fn blob(&mut self, session: &mut Session) {
        self.number += 1;
        let hash = u128::from(self.number);
        if session.send_blob(hash, blob(hash)).is_ok() {
            self.sent.blobs.insert(hash);
        }
    }

    fn control(&mut self, session: &mut Session) {
        if session.control(&control(self.side, self.sent.controls)).is_ok() {
            self.sent.controls += 1;
        }
    }

    /// What the session tells.
    pub(super) fn hear(&mut self, session: &mut Session, event: &Event) {
        let known = match event {
            Event::Opened { channel, header } => self.opened(*channel, *header),
            Event::Message { header, bytes, .. } => self.message(header, bytes),
            Event::Data { channel, header, bytes } => {
                session.consumed(*channel, bytes.len());
                self.data(header, bytes)
            }
            Event::Finished { header, .. } => self.ended(header, Fate::Finished),
            Event::Reset { header, code, .. } => self.ended(header, Fate::Reset(*code)),
            Event::Stopped { header, .. } => {
                let channel = self.sent.channels.get_mut(header);
                channel.map(|channel| channel.fate = Fate::Stopped).is_some()
            }
            Event::Update { header, chunks } => {
                *chunks == self::chunks(header.seq) && self.heard.updates.insert(header.seq)
            }
            Event::Blob { hash, bytes } => *bytes == blob(*hash) && self.heard.blobs.insert(*hash),
            Event::Control(message) => {
                self.heard.controls += 1;
                *message == control(self.side.peer(), self.heard.controls - 1)
            }
            Event::Warning(text) => {
                self.fault = Some(text.clone());
                true
            }
            _ => true,
        };
        self.last_heard = Some(self.now);
        if !known {
            let what = format!("{event:?}").chars().take(200).collect::<String>();
            self.fault = Some(format!("the {:?} side heard what was not said: {what}", self.side));
        }
    }

    fn opened(&mut self, id: RemoteChannelId, header: Header) -> bool {
        let channel = Listening { id, count: 0, fate: Fate::Open };
        self.heard.channels.insert(header, channel).is_none()
    }

    fn listening(&mut self, header: &Header) -> Option<&mut Listening> {
        self.heard.channels.get_mut(header).filter(|channel| channel.fate == Fate::Open)
    }

    fn message(&mut self, header: &Header, bytes: &Bytes) -> bool {
        let Some(channel) = self.listening(header) else { return false };
        channel.count += 1;
        message(header, channel.count - 1) == *bytes
    }

    fn data(&mut self, header: &Header, bytes: &Bytes) -> bool {
        let Some(channel) = self.listening(header) else { return false };
        let before = channel.count;
        channel.count += bytes.len() as u64;
        pipe_bytes(header, before, bytes.len()) == *bytes
    }

    fn ended(&mut self, header: &Header, fate: Fate) -> bool {
        self.listening(header).map(|channel| channel.fate = fate).is_some()
    }

    /// What of this side's words the peer has not heard, or heard and should not have.
    pub(super) fn missing(&self, peer: &Self) -> Option<String> {
        let (sent, heard) = (&self.sent, &peer.heard);
        let say = |what: String| Some(format!("of the {:?} side, {what}", self.side));
        for (header, speaking) in &sent.channels {
            let listening = heard.channels.get(header);
            if !speaking.agrees(listening) {
                return say(format!("{header:?}: {speaking:?} came as {listening:?}"));
            }
        }
        if let Some(header) = heard.channels.keys().find(|header| !sent.channels.contains_key(header)) {
            return say(format!("{header:?} was never opened"));
        }
        if sent.updates != heard.updates {
            let differ: Vec<_> = sent.updates.symmetric_difference(&heard.updates).take(5).collect();
            return say(format!("updates: {differ:?} of {}", sent.last_update));
        }
        if sent.blobs != heard.blobs {
            return say(format!("{} blobs came as {}", sent.blobs.len(), heard.blobs.len()));
        }
        if sent.controls != heard.controls {
            return say(format!("{} messages came as {}", sent.controls, heard.controls));
        }
        None
    }

    /// How much was said in all.
    pub(super) fn said(&self) -> u64 {
        let channels: u64 = self.sent.channels.values().map(|channel| channel.count).sum();
        channels + self.sent.updates.len() as u64 + self.sent.blobs.len() as u64 + self.sent.controls
    }
}

impl Speaking {
    /// Whether this is what the peer has of it, when everything has come to rest.
    fn agrees(&self, peer: Option<&Listening>) -> bool {
        let stopped = peer.is_some_and(|peer| peer.fate == Fate::Stopped);
        match (self.fate, peer) {
            (Fate::Reset(_), None) => true,
            (_, None) => false,
            // The end may have passed the wish for it.
            (Fate::Finished | Fate::Reset(_) | Fate::Stopped, Some(peer)) if stopped => {
                peer.count <= self.count
            }
            (Fate::Reset(_), Some(peer)) => peer.fate == self.fate && peer.count <= self.count,
            (_, Some(peer)) => (peer.fate, peer.count) == (self.fate, self.count),
        }
    }
}

fn key(header: &Header) -> u64 {
    match header {
        Header::Pipe { connection, pipe } => u64::from(connection.0) << 20 ^ pipe,
        other => other.connection().map_or(0, |connection| u64::from(connection.0) << 20 | 1),
    }
}

/// `length` bytes that follow from a key.
fn bytes(key: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(key);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.bits().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Message number `index` of a channel.
fn message(header: &Header, index: u64) -> Vec<u8> {
    let key = key(header) ^ index << 40;
    let length = [0, 30, 100, 800, 5000, 40_000][Random::new(!key).range(0..6) as usize];
    bytes(key, length)
}

/// Bytes of a pipe from `offset` on.
fn pipe_bytes(header: &Header, offset: u64, length: usize) -> Bytes {
    let key = key(header);
    let byte = |at: u64| (at.wrapping_mul(0x9e37_79b9).wrapping_add(key) >> 13) as u8;
    (offset..offset + length as u64).map(byte).collect()
}

fn update_header(seq: UpdateSeq) -> UpdateHeader {
    let (connection, surface) = (ConnectionId(1), SurfaceId(2));
    UpdateHeader {
        connection,
        surface,
        seq,
        size: (640, 480),
        format: 1,
        fresh: false,
        covers: 0,
        unit: None,
    }
}

fn chunks(seq: UpdateSeq) -> Vec<Vec<u8>> {
    let mut random = Random::new(seq.0 ^ 0x5eed);
    let chunks = (0..random.range(0..5)).map(|index| {
        let length = 1 + [60, 2000, 30_000][random.range(0..3) as usize];
        bytes(seq.0 << 8 | index, length)
    });
    chunks.collect()
}

fn blob(hash: u128) -> Bytes {
    let length = [0, 60, 50_000][(hash % 3) as usize];
    bytes(hash as u64 ^ 0xb10b, length).into()
}

fn control(side: Side, index: u64) -> Control {
    match side {
        Side::App => Control::AppClosed { connection: ConnectionId(index as u32), error: None },
        Side::Display => Control::Snapshot(bytes(index, 300).into()),
    }
}

/// Bytes that may wait for the peer.
const MOST_RETAINED: usize = 2 << 20;
