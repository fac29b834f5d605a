//! What to do with the desk's sound server, decided without any I/O.
//!
//! A connection is wanted while there is sound, and for a minute of silence after it; in silence the stream is corked,
//! so that neither side wakes up. A connection that fails is tried again, ever less often, while there is sound. Where
//! no device takes the sound, the player goes on in virtual time, so that the past is never played.
//!
//! Where no server is, and the build has ALSA, a sound card is tried. Silence closes it, because a card may have room
//! for one program alone; the next sound asks for a server first.
//!
//! `link` opens the socket that this wants and moves the bytes; `alsa` opens the card. Invariants: the user is told
//! each change once; a server that comes and goes cannot flood the user with notices.

use std::sync::Arc;
use std::time::Duration;

use wayferry_audio::CHANNELS;
use wayferry_proto::Time;

use super::card::Card;
use super::client::Client;
use super::ring::Ring;
use super::stream::Stream;
use super::{DeviceState, Notice};
use crate::link::{COOKIE, User};
use crate::source::{STEP_FRAMES, Source};

/// See the module.
#[derive(Debug)]
pub(super) struct Desk {
    name: String,
    /// Whether cards may be tried.
    has_cards: bool,
    /// What is connected or tried, after what did not do.
    server: String,
    state: State,
    health: Health,
    /// When a server was lost last, heard or not.
    server_lost: Option<Time>,
    /// How long to wait after the next failure.
    delay: Duration,
    /// Counts connections.
    connection: u32,
    notices: Vec<Notice>,
}

#[derive(Debug)]
enum State {
    /// No connection; there is nothing to play.
    Closed,
    /// No connection; the next is tried then, if there is something to play.
    Waiting {
        until: Time,
    },
    /// The socket is being connected; there is no client before it is.
    Connecting,
    /// The client makes its stream, or the card is opened.
    Opening(Stream),
    Playing {
        stream: Stream,
        since: Time,
        asked: Time,
        silent: Option<Time>,
    },
    Corked {
        client: Client,
        since: Time,
    },
}

/// What the user was told last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Fine,
    NoServer,
    Lost,
}

impl Desk {
    pub(super) fn new(name: &str, has_cards: bool) -> Self {
        let (state, health) = (State::Closed, Health::Fine);
        Self {
            name: name.into(),
            has_cards,
            server: String::new(),
            state,
            health,
            server_lost: None,
            delay: DELAY_FIRST,
            connection: 0,
            notices: Vec::new(),
        }
    }

    /// Which connection there should be; another number than before is another connection.
    pub(super) fn connection(&self) -> Option<u32> {
        let is_none = matches!(self.state, State::Closed | State::Waiting { .. });
        (!is_none && self.card().is_none()).then_some(self.connection)
    }

    /// What the card that there should be takes from; another ring is another card.
    pub(super) fn card(&self) -> Option<&Arc<Ring>> {
        match &self.state {
            State::Opening(Stream::Card(card)) | State::Playing { stream: Stream::Card(card), .. } => {
                Some(card.ring())
            }
            _ => None,
        }
    }

    /// The connection to `server` is there.
    pub(super) fn on_connected(&mut self, now: Time, server: &str, cookie: [u8; COOKIE]) {
        self.server = server.into();
        self.state = State::Opening(Stream::Server(Client::new(now, &self.name, cookie)));
    }

    /// The connection could not be made, or is no more; or the card.
    pub(super) fn on_failure(&mut self, now: Time, source: &mut Source, why: &str) {
        let before = std::mem::replace(&mut self.state, State::Closed);
        if let State::Playing { stream: Stream::Server(_), .. } | State::Corked { .. } = before {
            self.server_lost = Some(now);
        }
        let tried = match before {
            State::Closed | State::Waiting { .. } => {
                self.state = before;
                return;
            }
            // That is not heard: the next sound connects anew.
            State::Playing { .. } | State::Corked { .. } if source.is_idle() => return,
            State::Playing { .. } | State::Corked { .. } => return self.lose(now, source, why),
            State::Connecting => why.into(),
            State::Opening(_) => format!("{}: {why}", self.server),
        };
        let is_card = matches!(before, State::Opening(Stream::Card(_)));
        if is_card || !self.has_cards || self.spared_until(now).is_some() {
            return self.tell_none(now, source, tried);
        }
        self.server = format!("{tried}; ALSA's `default`");
        match Card::new(now) {
            Ok(card) => self.state = State::Opening(Stream::Card(card)),
            Err(error) => self.tell_none(now, source, format!("{}: {error}", self.server)),
        }
    }

    /// The server sent this.
    pub(super) fn on_bytes(&mut self, now: Time, source: &mut Source, bytes: &[u8]) {
        let Some(client) = self.client() else { return };
        if let Err(failure) = client.receive(now, bytes) {
            self.on_failure(now, source, &failure.to_string());
        }
    }

    /// What the server is to be sent, if there is a connection.
    pub(super) fn outgoing(&mut self) -> Option<&mut Vec<u8>> {
        self.client().map(Client::outgoing)
    }

    pub(super) fn has_outgoing(&self) -> bool {
        match &self.state {
            State::Opening(Stream::Server(client))
            | State::Playing { stream: Stream::Server(client), .. }
            | State::Corked { client, .. } => client.has_outgoing(),
            _ => false,
        }
    }

    /// Does what is due.
    pub(super) fn turn(&mut self, now: Time, source: &mut Source) {
        if let Err(why) = self.look(now) {
            self.on_failure(now, source, &why);
        }
        if let Some(why) = self.overdue(now) {
            self.on_failure(now, source, why);
        }
        self.change(now, source);
        self.play(now, source);
        if !self.is_pulled(now) {
            source.pass(now);
        }
    }

    /// When it wants its next turn.
    pub(super) fn wake_at(&self, source: &Source) -> Option<Time> {
        match &self.state {
            State::Closed | State::Connecting => None,
            // Without a server, the next packet makes the next try.
            State::Waiting { until } => (self.health == Health::Lost && !source.is_idle()).then_some(*until),
            State::Opening(stream) => stream.answers_by(),
            State::Playing { stream, asked, silent, .. } => {
                let silent = silent.map(|since| since + SILENT_UNTIL_CORKED);
                [Some(*asked + LATENCY_EVERY), silent, stream.answers_by()].into_iter().flatten().min()
            }
            State::Corked { since, .. } => Some(*since + CORKED_UNTIL_CLOSED),
        }
    }

    /// Whether a packet would only be thrown away: there is no server, and it is too early to look again.
    pub(super) fn is_deaf(&self, now: Time) -> bool {
        self.health == Health::NoServer && matches!(self.state, State::Waiting { until } if now < until)
    }

    pub(super) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    pub(super) fn state(&self) -> DeviceState {
        match &self.state {
            State::Closed => DeviceState::Closed,
            State::Waiting { .. } => DeviceState::Waiting,
            State::Connecting | State::Opening(_) => DeviceState::Opening,
            State::Playing { .. } => DeviceState::Playing,
            State::Corked { .. } => DeviceState::Corked,
        }
    }

    fn client(&mut self) -> Option<&mut Client> {
        match &mut self.state {
            State::Opening(Stream::Server(client))
            | State::Playing { stream: Stream::Server(client), .. }
            | State::Corked { client, .. } => Some(client),
            _ => None,
        }
    }

    /// Sees what the card did, if there is one.
    fn look(&mut self, now: Time) -> Result<(), String> {
        match &mut self.state {
            State::Opening(Stream::Card(card)) | State::Playing { stream: Stream::Card(card), .. } => {
                card.look(now)
            }
            _ => Ok(()),
        }
    }

    /// Until when no card is taken: a server that was lost may be about to start anew, and would not get its own.
    fn spared_until(&self, now: Time) -> Option<Time> {
        self.server_lost.map(|lost| lost + SPARED).filter(|until| self.has_cards && now < *until)
    }

    /// Sound was heard, and is not any more.
    fn lose(&mut self, now: Time, source: &mut Source, why: &str) {
        if self.health == Health::Fine {
            self.health = Health::Lost;
            self.notices.push(Notice::Lost { why: why.into() });
        }
        self.wait(now, source);
    }

    /// There is nothing that would play.
    fn tell_none(&mut self, now: Time, source: &mut Source, tried: String) {
        if self.health == Health::Fine {
            self.health = Health::NoServer;
            self.notices.push(Notice::NoServer { tried });
        }
        self.wait(now, source);
    }

    /// Until the next try.
    fn wait(&mut self, now: Time, source: &mut Source) {
        if self.health == Health::NoServer {
            self.delay = DELAY_LONGEST;
            source.forget();
        }
        let until = now + self.delay;
        self.state = State::Waiting { until: self.spared_until(now).map_or(until, |card| card.min(until)) };
        self.delay = (self.delay * 2).min(DELAY_LONGEST);
    }

    /// Why the connection, or the card, is given up, if it is.
    fn overdue(&self, now: Time) -> Option<&'static str> {
        let (State::Opening(stream) | State::Playing { stream, .. }) = &self.state else { return None };
        let why = match stream {
            Stream::Server(_) => "the sound server does not answer",
            Stream::Card(_) => "does not answer",
        };
        stream.answers_by().is_some_and(|latest| now >= latest).then_some(why)
    }

    /// Goes to the next state, if it is time.
    fn change(&mut self, now: Time, source: &Source) {
        let idle = source.is_idle();
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Closed if !idle => self.connect(),
            State::Waiting { until } if !idle && now >= until => self.connect(),
            State::Opening(stream) if stream.is_ready() => {
                State::Playing { stream, since: now, asked: now, silent: None }
            }
            State::Playing { stream, since, asked, silent } => {
                self.go_on(now, source, stream, (since, asked, silent))
            }
            State::Corked { mut client, .. } if !idle => {
                client.cork(now, false);
                let stream = Stream::Server(client);
                State::Playing { stream, since: now, asked: now, silent: None }
            }
            State::Corked { since, .. } if is_over(now, since, CORKED_UNTIL_CLOSED, source) => State::Closed,
            state => state,
        };
    }

    fn connect(&mut self) -> State {
        self.connection = self.connection.wrapping_add(1);
        State::Connecting
    }

    fn go_on(
        &mut self,
        now: Time,
        source: &Source,
        mut stream: Stream,
        (since, mut asked, silent): (Time, Time, Option<Time>),
    ) -> State {
        // One that comes back only to go at once is not back.
        if self.health != Health::Fine && now.since(since) >= self.delay / 2 {
            self.health = Health::Fine;
            self.notices.push(Notice::Back);
        }
        if now.since(since) >= STABLE {
            self.delay = DELAY_FIRST;
        }
        let silent = source.is_idle().then_some(silent.unwrap_or(now));
        if silent.is_some_and(|silent| now.since(silent) >= SILENT_UNTIL_CORKED) {
            return match stream {
                Stream::Server(mut client) if source.codec().is_some() => {
                    client.cork(now, true);
                    State::Corked { client, since: now }
                }
                _ => State::Closed,
            };
        }
        if now.since(asked) >= LATENCY_EVERY {
            stream.ask_latency(now);
            asked = now;
        }
        State::Playing { stream, since, asked, silent }
    }

    /// Gives the server, or the card, what it asked for.
    fn play(&mut self, now: Time, source: &mut Source) {
        let State::Playing { stream, .. } = &mut self.state else { return };
        let mut samples = [0.0; STEP_FRAMES * CHANNELS];
        loop {
            let frames = stream.wanted().min(STEP_FRAMES);
            if frames == 0 {
                break;
            }
            let samples = &mut samples[..frames * CHANNELS];
            source.play(now, samples, stream.queue(now));
            stream.give(samples);
        }
    }

    /// Whether a device takes the sound.
    fn is_pulled(&self, now: Time) -> bool {
        match &self.state {
            State::Playing { stream, .. } => stream.asks_by().is_some_and(|latest| now < latest),
            _ => false,
        }
    }
}

/// The desk, and what it plays.
pub(super) struct Fed<'a> {
    pub(super) desk: &'a mut Desk,
    pub(super) source: &'a mut Source,
}

impl User for Fed<'_> {
    fn connection(&self) -> Option<u32> {
        self.desk.connection()
    }

    fn on_connected(&mut self, now: Time, server: &str, cookie: [u8; COOKIE]) {
        self.desk.on_connected(now, server, cookie);
    }

    fn on_failure(&mut self, now: Time, why: &str) {
        self.desk.on_failure(now, self.source, why);
    }

    fn on_bytes(&mut self, now: Time, bytes: &[u8]) {
        self.desk.on_bytes(now, self.source, bytes);
    }

    fn turn(&mut self, now: Time) {
        self.desk.turn(now, self.source);
    }

    fn outgoing(&mut self) -> Option<&mut Vec<u8>> {
        self.desk.outgoing()
    }
}

/// Whether a corked connection is not needed any more.
fn is_over(now: Time, since: Time, patience: Duration, source: &Source) -> bool {
    source.codec().is_none() || now.since(since) >= patience
}

/// How long to wait after a failure: at first, and at most.
const DELAY_FIRST: Duration = Duration::from_millis(250);
const DELAY_LONGEST: Duration = Duration::from_secs(5);

/// How long a server that was lost has to come back before a card is taken.
const SPARED: Duration = Duration::from_secs(8);

/// A connection that lasted so long was a good one.
const STABLE: Duration = Duration::from_secs(10);

/// How often the server is asked for the length of its queue; between, it is computed.
const LATENCY_EVERY: Duration = Duration::from_millis(500);

/// Silence until the stream is corked, and until the connection is closed.
const SILENT_UNTIL_CORKED: Duration = Duration::from_secs(1);
const CORKED_UNTIL_CLOSED: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
