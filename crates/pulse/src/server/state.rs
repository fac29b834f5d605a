//! All clients, their streams, and the sink that these play to.
//!
//! Invariant: each stream belongs to a client that is there and has not ended.

use std::collections::BTreeMap;
use std::time::Duration;

use pulseaudio::protocol::{
    ChannelVolume, Command, PulseError, Request, SubscriptionEvent, SubscriptionEventFacility,
    SubscriptionEventType, SubscriptionMask, Underflow,
};
use wayferry_proto::Time;

use super::answer::{Answer, refusal};
use super::buffering::TURN;
use super::client::{Client, ClientId};
use super::frame::Sound;
use super::recording::Recording;
use super::stream::{Note, Stream};

/// See the module.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) now: Time,
    pub(crate) clients: BTreeMap<ClientId, Client>,
    pub(crate) streams: BTreeMap<u32, Stream>,
    /// No number is that of a stream that plays.
    pub(crate) recordings: BTreeMap<u32, Recording>,
    pub(crate) source: Source,
    pub(crate) volume: ChannelVolume,
    pub(crate) muted: bool,
    /// From the mix until it is heard.
    pub(crate) latency: Duration,
    pub(crate) last_mix: Option<Time>,
    next_client: u32,
    next_stream: u32,
}

/// What programs record from.
#[derive(Debug)]
pub(crate) struct Source {
    /// Whether there is a microphone.
    pub(crate) is_there: bool,
    pub(crate) volume: ChannelVolume,
    pub(crate) muted: bool,
    /// From the microphone until it is recorded.
    pub(crate) latency: Duration,
}

impl State {
    /// Without clients.
    pub(crate) fn new() -> Self {
        Self {
            now: Time::ZERO,
            clients: BTreeMap::new(),
            streams: BTreeMap::new(),
            recordings: BTreeMap::new(),
            source: Source {
                is_there: false,
                volume: ChannelVolume::norm(2),
                muted: false,
                latency: Duration::ZERO,
            },
            volume: ChannelVolume::norm(2),
            muted: false,
            latency: Duration::ZERO,
            last_mix: None,
            next_client: 0,
            next_stream: 0,
        }
    }

    /// A client more; `None` if there are too many.
    pub(crate) fn connect(&mut self) -> Option<ClientId> {
        if self.clients.len() >= MAX_CLIENTS {
            return None;
        }
        let id = ClientId(free(&mut self.next_client, |index| self.clients.contains_key(&ClientId(index))));
        self.clients.insert(id, Client::new());
        self.publish(SubscriptionEventFacility::Client, SubscriptionEventType::New, id.0);
        Some(id)
    }

    /// A client less.
    pub(crate) fn disconnect(&mut self, id: ClientId) {
        self.remove_streams(id);
        if self.clients.remove(&id).is_some() {
            self.publish(SubscriptionEventFacility::Client, SubscriptionEventType::Removed, id.0);
        }
    }

    /// A client's connection is to be closed; its streams are heard no more.
    pub(crate) fn end(&mut self, id: ClientId, why: &'static str) {
        self.remove_streams(id);
        if let Some(client) = self.clients.get_mut(&id) {
            client.end.get_or_insert(why);
            client.input = Default::default();
        }
    }

    /// A stream more; an error if the client has too many.
    pub(crate) fn add_stream(&mut self, stream: Stream) -> Result<u32, PulseError> {
        let index = self.number_stream(stream.owner)?;
        self.streams.insert(index, stream);
        self.publish(SubscriptionEventFacility::SinkInput, SubscriptionEventType::New, index);
        Ok(index)
    }

    /// A stream more that records; an error if there are too many.
    pub(crate) fn add_recording(&mut self, recording: Recording) -> Result<u32, PulseError> {
        if self.recordings.len() >= MAX_RECORDINGS {
            return Err(PulseError::TooLarge);
        }
        let index = self.number_stream(recording.owner)?;
        self.recordings.insert(index, recording);
        self.publish(SubscriptionEventFacility::SourceOutput, SubscriptionEventType::New, index);
        Ok(index)
    }

    fn number_stream(&mut self, owner: ClientId) -> Result<u32, PulseError> {
        let client = self.clients.get_mut(&owner).ok_or(PulseError::Internal)?;
        if client.streams.len() >= MAX_STREAMS {
            return Err(PulseError::TooLarge);
        }
        let (streams, recordings) = (&self.streams, &self.recordings);
        let is_taken = |index| streams.contains_key(&index) || recordings.contains_key(&index);
        let index = free(&mut self.next_stream, is_taken);
        client.streams.push(index);
        Ok(index)
    }

    /// A stream less that records.
    pub(crate) fn remove_recording(&mut self, index: u32) {
        let Some(recording) = self.recordings.remove(&index) else { return };
        if let Some(client) = self.clients.get_mut(&recording.owner) {
            client.streams.retain(|one| *one != index);
        }
        self.publish(SubscriptionEventFacility::SourceOutput, SubscriptionEventType::Removed, index);
    }

    /// A client's own stream that records.
    pub(crate) fn recording_of(&mut self, id: ClientId, index: u32) -> Result<&mut Recording, PulseError> {
        self.recordings.get_mut(&index).filter(|one| one.owner == id).ok_or(PulseError::NoEntity)
    }

    /// A client's stream that records changed.
    pub(crate) fn recording_changed(&mut self, index: u32) {
        self.publish(SubscriptionEventFacility::SourceOutput, SubscriptionEventType::Changed, index);
    }

    /// Gives clients what was recorded for them, as far as they read.
    pub(crate) fn give_recorded(&mut self) {
        for (index, recording) in &mut self.recordings {
            let Some(client) = self.clients.get_mut(&recording.owner) else { continue };
            while !client.output.is_full()
                && let Some(fragment) = recording.fragment()
            {
                client.output.push_sound(*index, &fragment);
            }
        }
    }

    /// A microphone comes or goes.
    pub(crate) fn set_microphone(&mut self, is_there: bool) {
        if std::mem::replace(&mut self.source.is_there, is_there) == is_there {
            return;
        }
        let change = if is_there { SubscriptionEventType::New } else { SubscriptionEventType::Removed };
        let ended: Vec<_> = self.recordings.iter().map(|(index, one)| (*index, one.owner)).collect();
        for (index, owner) in ended {
            if let Some(client) = self.clients.get_mut(&owner) {
                client.tell(&Command::RecordStreamKilled(index));
            }
            self.remove_recording(index);
        }
        self.publish(SubscriptionEventFacility::Source, change, SOURCE);
        // Its default source is another one.
        self.publish(SubscriptionEventFacility::Server, SubscriptionEventType::Changed, u32::MAX);
    }

    /// A stream less.
    pub(crate) fn remove_stream(&mut self, index: u32) {
        let Some(stream) = self.streams.remove(&index) else { return };
        if let Some(client) = self.clients.get_mut(&stream.owner) {
            client.streams.retain(|one| *one != index);
            for sequence in stream.drains {
                client.output.push(&refusal(sequence, PulseError::NoEntity));
            }
        }
        self.publish(SubscriptionEventFacility::SinkInput, SubscriptionEventType::Removed, index);
    }

    fn remove_streams(&mut self, id: ClientId) {
        let streams = self.clients.get_mut(&id).map(|client| std::mem::take(&mut client.streams));
        for index in streams.into_iter().flatten() {
            self.remove_stream(index);
            self.remove_recording(index);
        }
    }

    /// A client's own stream.
    pub(crate) fn stream_of(&mut self, id: ClientId, index: u32) -> Result<&mut Stream, PulseError> {
        self.streams.get_mut(&index).filter(|stream| stream.owner == id).ok_or(PulseError::NoEntity)
    }

    /// A client's stream changed.
    pub(crate) fn stream_changed(&mut self, index: u32) {
        self.publish(SubscriptionEventFacility::SinkInput, SubscriptionEventType::Changed, index);
    }

    /// Tells the clients that want to know.
    pub(crate) fn publish(
        &mut self,
        facility: SubscriptionEventFacility,
        kind: SubscriptionEventType,
        index: u32,
    ) {
        let wanted = SubscriptionMask::from_bits_truncate(1 << facility as u32);
        let event = SubscriptionEvent { event_facility: facility, event_type: kind, index: Some(index) };
        for client in self.clients.values_mut().filter(|client| client.events.intersects(wanted)) {
            client.tell_if_it_reads(&Command::SubscribeEvent(event));
        }
    }

    /// Sound came for a stream. Sound for none is on its way when its stream is deleted: it is dropped.
    pub(crate) fn sound(&mut self, id: ClientId, sound: &Sound<'_>) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let kept = client.streams.iter().filter_map(|index| self.streams.get(index));
        let room = MAX_KEPT.saturating_sub(kept.map(|stream| stream.queue.kept()).sum());
        let Some(stream) = self.streams.get_mut(&sound.channel).filter(|stream| stream.owner == id) else {
            return;
        };
        if !stream.write(sound.seek, sound.bytes, room) {
            client.tell_if_it_reads(&Command::Overflow(sound.channel));
        }
        self.ask(sound.channel);
    }

    /// Asks a stream's program for what is missing.
    pub(crate) fn ask(&mut self, index: u32) {
        let Some(stream) = self.streams.get_mut(&index) else { return };
        let Some(client) = self.clients.get_mut(&stream.owner).filter(|client| !client.output.is_full())
        else {
            return;
        };
        if let Some(missing) = stream.ask() {
            let length = u32::try_from(missing).unwrap_or(u32::MAX);
            client.tell(&Command::Request(Request { channel: index, length }));
        }
    }

    /// Tells a stream's program what became of it.
    pub(crate) fn note(&mut self, index: u32, note: Note) {
        let Some(stream) = self.streams.get(&index) else { return };
        let Some(client) = self.clients.get_mut(&stream.owner) else { return };
        match note {
            Note::Started => client.tell_if_it_reads(&Command::Started(index)),
            Note::Underflow(offset) => {
                client.tell_if_it_reads(&Command::Underflow(Underflow { channel: index, offset }));
            }
            Note::Drained(sequence) => client.output.push(&Answer::ack().to_vec(sequence)),
        }
    }

    /// Whether there was something to be heard just now.
    pub(crate) fn is_heard(&self) -> bool {
        self.last_mix.is_some_and(|last| self.now - last < TURN * 2)
    }

    /// How long it takes from now until what is mixed next is heard: what was mixed last comes before.
    pub(crate) fn ahead(&self) -> Duration {
        let mixed = self.last_mix.map_or(Duration::ZERO, |last| TURN.saturating_sub(self.now - last));
        self.latency + mixed
    }
}

/// The next number that is not taken.
fn free(next: &mut u32, is_taken: impl Fn(u32) -> bool) -> u32 {
    loop {
        let index = *next;
        // The highest one means "none".
        *next = if index >= u32::MAX - 1 { 0 } else { index + 1 };
        if !is_taken(index) {
            return index;
        }
    }
}

/// The source's number.
pub(crate) const SOURCE: u32 = 0;

/// Clients at a time.
const MAX_CLIENTS: usize = 256;

/// Streams of a client.
const MAX_STREAMS: usize = 64;

/// Streams that record, of all clients: each may cost a hundredth of the mixer's turn.
const MAX_RECORDINGS: usize = 16;

/// Bytes of a client's sound that wait to be played.
const MAX_KEPT: usize = 8 << 20;
