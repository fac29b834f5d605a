//! All clients, and what is mixed of them.

mod answer;
mod ask;
mod buffering;
mod client;
mod commands;
mod filter;
mod format;
mod frame;
mod hearer;
mod place;
mod props;
mod queue;
mod reading;
mod recording;
mod spec;
mod state;
mod stream;
mod tags;
mod voice;

use std::collections::HashMap;
use std::time::Duration;

use pulseaudio::protocol::ChannelVolume;
use wayferry_audio::{CHANNELS, FrameSize, RATE};
use wayferry_proto::Time;

use buffering::TURN;
pub use client::ClientId;
use state::State;
use stream::{Note, Stream};
use voice::Scratch;

/// See the crate.
#[derive(Debug)]
pub struct Server {
    state: State,
    scratch: Scratch,
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// Without clients.
    pub fn new() -> Self {
        Self { state: State::new(), scratch: Scratch::default() }
    }

    /// A program connected; `None` if there are too many.
    pub fn connect(&mut self) -> Option<ClientId> {
        self.state.connect()
    }

    /// The caller lost the connection, or closed it.
    pub fn disconnect(&mut self, client: ClientId) {
        self.state.disconnect(client);
    }

    /// Bytes came from a client, as many as its socket gave.
    pub fn receive(&mut self, now: Time, client: ClientId, bytes: &[u8]) {
        self.state.now = now;
        let Some(one) = self.state.clients.get_mut(&client).filter(|client| client.end.is_none()) else {
            return;
        };
        match one.input.push(bytes) {
            Ok(()) => reading::read(&mut self.state, client),
            Err(why) => self.state.end(client, why),
        }
    }

    /// What is to be written to a client; [`Self::written`] takes it away.
    pub fn unwritten(&self, client: ClientId) -> &[u8] {
        self.state.clients.get(&client).map_or(&[], |client| client.output.unwritten())
    }

    /// So many bytes of [`Self::unwritten`] were written.
    pub fn written(&mut self, client: ClientId, bytes: usize) {
        let Some(one) = self.state.clients.get_mut(&client) else { return };
        let was_full = one.output.is_full();
        one.output.written(bytes);
        if was_full {
            let streams = one.streams.clone();
            reading::read(&mut self.state, client);
            streams.into_iter().for_each(|index| self.state.ask(index));
            self.state.give_recorded();
        }
    }

    /// Whether its socket is to be read: not while it leaves its answers unread.
    pub fn is_read(&self, client: ClientId) -> bool {
        self.state.clients.get(&client).is_some_and(|client| client.end.is_none() && !client.output.is_full())
    }

    /// Why a client's connection is to be closed, once all has been written.
    pub fn end(&self, client: ClientId) -> Option<&str> {
        self.state.clients.get(&client)?.end
    }

    /// Whether a stream is playing or its program waits for its end, so that [`Self::mix`] is to be called every 10 ms.
    pub fn is_playing(&self) -> bool {
        self.state.streams.values().any(Stream::wants_mix)
    }

    /// Mixes the next 10 ms, and lets clients send as much more.
    pub fn mix(&mut self, now: Time, out: &mut [f32; FrameSize::Ms10.frames() * CHANNELS]) {
        out.fill(0.0);
        let Self { state, scratch } = self;
        state.now = now;
        state.last_mix = Some(now);
        let heard = now + TURN + state.latency;
        let mut told: Vec<(u32, Note)> = Vec::new();
        let mut mixed = Vec::new();
        let mut notes = Vec::new();
        let mut resampled: HashMap<ClientId, usize> = HashMap::new();
        for (index, stream) in state.streams.iter_mut().filter(|(_, stream)| stream.wants_mix()) {
            if stream.spec.rate != RATE {
                let count = resampled.entry(stream.owner).or_default();
                *count += 1;
                if *count > MAX_RESAMPLED {
                    continue;
                }
            }
            stream.mix(now, heard, scratch, out, &mut notes);
            told.extend(notes.drain(..).map(|note| (*index, note)));
            mixed.push(*index);
        }
        told.into_iter().for_each(|(index, note)| state.note(index, note));
        mixed.into_iter().for_each(|index| state.ask(index));
        amplify(out, &state.volume, state.muted);
    }

    /// Whether there is a microphone. Programs find a source if there is; without one, those that record are told that
    /// their streams have ended.
    pub fn set_microphone(&mut self, is_there: bool) {
        self.state.set_microphone(is_there);
    }

    /// Whether a program records, so that [`Self::record`] is to be called every 10 ms.
    pub fn is_recording(&self) -> bool {
        self.state.recordings.values().any(|recording| !recording.corked)
    }

    /// Gives programs that record the next 10 ms of the microphone.
    pub fn record(&mut self, now: Time, block: &[f32; FrameSize::Ms10.frames() * CHANNELS]) {
        let Self { state, scratch } = self;
        state.now = now;
        let mut block = *block;
        amplify(&mut block, &state.source.volume, state.source.muted);
        state.recordings.values_mut().for_each(|recording| recording.hear(&block, &mut scratch.bytes));
        state.give_recorded();
    }

    /// How long sound of the microphone takes until [`Self::record`]; clients are told.
    pub fn set_microphone_latency(&mut self, latency: Duration) {
        self.state.source.latency = latency;
    }

    /// How long sound takes from [`Self::mix`] until it is heard; clients are told.
    pub fn set_latency(&mut self, latency: Duration) {
        self.state.latency = latency;
    }
}

/// Streams of a client at other rates that are mixed in a turn; others of it wait. Each takes a hundredth of the turn,
/// in which all clients are to be heard.
const MAX_RESAMPLED: usize = 16;

/// The volume of sink or source; what is too loud is clipped.
fn amplify(out: &mut [f32], volume: &ChannelVolume, muted: bool) {
    let volumes = volume.channels();
    let volume = |side: usize| volumes.get(side).map_or(1.0, |volume| volume.to_linear());
    let gains: [f32; CHANNELS] = std::array::from_fn(|side| if muted { 0.0 } else { volume(side) });
    for frame in out.as_chunks_mut::<CHANNELS>().0 {
        frame.iter_mut().zip(gains).for_each(|(sample, gain)| *sample = (*sample * gain).clamp(-1.0, 1.0));
    }
}
