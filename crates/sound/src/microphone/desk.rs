//! What to do with the desk's sound server while the microphone is wanted, decided without any I/O.
//!
//! Invariants: there is a connection only while the microphone is wanted; what is captured has a time of the caller's
//! clock, and times never go back.

use std::time::Duration;

use wayferry_audio::{FrameSize, Position};
use wayferry_proto::Time;

use super::Heeding;
use super::client::Client;
use crate::encoding::Encoding;
use crate::link::{COOKIE, User};
use crate::outbox::{Captured, Wanted};

/// See the module.
#[derive(Debug)]
pub(super) struct Desk {
    name: String,
    state: State,
    /// Counts connections.
    connection: u32,
    /// Not before.
    opens: Time,
    wanted: Option<Wanted>,
    encoding: Option<Encoding>,
    /// When the next block was captured, in frames.
    next: u64,
    captured: Vec<Captured>,
    told: Told,
    notices: Vec<Heeding>,
}

#[derive(Debug)]
enum State {
    Closed,
    /// It failed, and is tried again then.
    Waiting(Time),
    Connecting,
    Opening(Client),
    Open(Client),
}

/// What the user was told last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Closed,
    Open,
    Failed,
}

impl Desk {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            state: State::Closed,
            connection: 0,
            opens: Time::ZERO,
            wanted: None,
            encoding: None,
            next: 0,
            captured: Vec::new(),
            told: Told::Closed,
            notices: Vec::new(),
        }
    }

    /// How it is wanted from now on.
    pub(super) fn want(&mut self, wanted: Option<Wanted>) {
        self.wanted = wanted;
        let adapts = match (&mut self.encoding, wanted) {
            (Some(encoding), Some(wanted)) => encoding.adapts(wanted),
            (encoding, wanted) => encoding.is_none() && wanted.is_none(),
        };
        if !adapts {
            self.encoding = wanted.and_then(|wanted| Encoding::new(wanted, false));
        }
        if wanted.is_none() {
            self.state = State::Closed;
            if self.told == Told::Open {
                self.told = Told::Closed;
                self.notices.push(Heeding::Closed);
            }
        }
    }

    pub(super) fn take_captured(&mut self) -> Vec<Captured> {
        std::mem::take(&mut self.captured)
    }

    pub(super) fn take_notices(&mut self) -> Vec<Heeding> {
        std::mem::take(&mut self.notices)
    }

    pub(super) fn has_outgoing(&self) -> bool {
        match &self.state {
            State::Opening(client) | State::Open(client) => client.has_outgoing(),
            _ => false,
        }
    }

    /// When it wants its next turn.
    pub(super) fn wake_at(&self) -> Option<Time> {
        match &self.state {
            State::Waiting(until) => Some(*until),
            State::Closed => self.wanted.map(|_| self.opens),
            State::Opening(client) => client.waits_since().map(|since| since + ANSWER_LATEST),
            _ => None,
        }
    }

    fn client(&mut self) -> Option<&mut Client> {
        match &mut self.state {
            State::Opening(client) | State::Open(client) => Some(client),
            _ => None,
        }
    }

    /// Encodes what has come.
    fn encode(&mut self, now: Time) {
        let State::Open(client) = &mut self.state else { return };
        while let Some(block) = client.block() {
            let frames = FrameSize::Ms10.frames() as u64;
            let began = frames_at(now).saturating_sub(frames);
            // The source stood still, or the machine slept.
            if began.saturating_sub(self.next) > STOOD_STILL {
                self.next = began;
            }
            let captured =
                self.encoding.as_mut().and_then(|encoding| encoding.block(Position(self.next), &block));
            self.captured.extend(captured);
            self.next += frames;
        }
    }
}

impl User for Desk {
    fn connection(&self) -> Option<u32> {
        (!matches!(self.state, State::Closed | State::Waiting(_))).then_some(self.connection)
    }

    fn on_connected(&mut self, now: Time, _server: &str, cookie: [u8; COOKIE]) {
        self.state = State::Opening(Client::new(now, &self.name, cookie));
    }

    fn on_failure(&mut self, now: Time, why: &str) {
        if self.connection().is_none() {
            return;
        }
        self.state = State::Waiting(now + AGAIN);
        if self.told != Told::Failed {
            self.told = Told::Failed;
            self.notices.push(Heeding::Failed { why: why.into() });
        }
    }

    fn on_bytes(&mut self, now: Time, bytes: &[u8]) {
        let Some(client) = self.client() else { return };
        if let Err(failure) = client.receive(now, bytes) {
            self.on_failure(now, &failure.to_string());
        }
    }

    fn turn(&mut self, now: Time) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Closed if self.wanted.is_some() && now >= self.opens => {
                self.connection = self.connection.wrapping_add(1);
                self.opens = now + APART;
                State::Connecting
            }
            State::Waiting(until) if now >= until => {
                self.connection = self.connection.wrapping_add(1);
                State::Connecting
            }
            State::Opening(client) if client.is_ready() => {
                if self.told != Told::Open {
                    self.told = Told::Open;
                    self.notices.push(Heeding::Open);
                }
                State::Open(client)
            }
            state => state,
        };
        let since = match &self.state {
            State::Opening(client) => client.waits_since(),
            _ => None,
        };
        if since.is_some_and(|since| now.since(since) >= ANSWER_LATEST) {
            self.on_failure(now, "the sound server does not answer");
        }
        self.encode(now);
    }

    fn outgoing(&mut self) -> Option<&mut Vec<u8>> {
        self.client().map(Client::outgoing)
    }
}

fn frames_at(now: Time) -> u64 {
    (now.since_start().as_micros() * 48 / 1000) as u64
}

/// How often it is opened at most: the user is told each time.
const APART: Duration = Duration::from_secs(1);

/// How long to wait after a failure.
const AGAIN: Duration = Duration::from_secs(5);

/// A server that has not answered for so long is given up.
const ANSWER_LATEST: Duration = Duration::from_secs(5);

/// Frames that are missing for a reason: 100 ms. Fewer may be on their way.
const STOOD_STILL: u64 = 4800;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Codec;

    const WANTED: Option<Wanted> = Some(Wanted { codec: Codec::Pcm, rate: 0, frame: FrameSize::Ms10 });

    fn at(milliseconds: u64) -> Time {
        Time::from_millis(milliseconds)
    }

    #[test]
    fn it_connects_while_it_is_wanted_and_not_longer() {
        let mut desk = Desk::new("test");
        desk.turn(at(0));
        assert_eq!(desk.connection(), None, "nobody wants it");
        desk.want(WANTED);
        desk.turn(at(1));
        assert_eq!(desk.connection(), Some(1));
        desk.on_connected(at(2), "server", [0; COOKIE]);
        assert!(desk.has_outgoing());
        desk.want(None);
        desk.turn(at(3));
        assert_eq!((desk.connection(), desk.take_notices()), (None, vec![]), "it was never open");
    }

    /// What is heard of it is a line for each, and its lamp flickers.
    #[test]
    fn regression_a_host_opens_and_closes_the_microphone_a_hundred_times_a_second() {
        let mut desk = Desk::new("test");
        let mut connections = 0;
        for turn in 0..1000 {
            desk.want(WANTED.filter(|_| turn % 2 == 0));
            desk.turn(at(turn * 10));
            if desk.connection().is_some() {
                connections += 1;
                desk.on_failure(at(turn * 10), "why");
            }
        }
        assert_eq!((connections, desk.take_notices().len()), (10, 1), "once a second, and told once");
        desk.want(WANTED);
        assert_eq!(desk.wake_at(), Some(at(10_000)));
        desk.turn(at(10_000));
        assert!(desk.connection().is_some());
    }

    #[test]
    fn a_failure_is_told_once_and_tried_again() {
        let mut desk = Desk::new("test");
        desk.want(WANTED);
        for attempt in 0..3 {
            let now = at(attempt * 5000);
            desk.turn(now);
            assert_eq!(desk.connection(), Some(attempt as u32 + 1));
            desk.on_failure(now, "why");
            desk.on_failure(now, "again");
            assert_eq!((desk.connection(), desk.wake_at()), (None, Some(now + AGAIN)));
        }
        assert_eq!(desk.take_notices(), [Heeding::Failed { why: "why".into() }]);
    }

    /// A host that asks again and again had the user told of it each time.
    #[test]
    fn regression_a_microphone_that_cannot_be_had_is_told_of_whenever_it_is_asked_for() {
        let mut desk = Desk::new("test");
        for second in 0..10 {
            desk.want(WANTED);
            desk.turn(at(second * 1000));
            desk.on_failure(at(second * 1000), "why");
            desk.want(None);
            desk.turn(at(second * 1000 + 1));
        }
        assert_eq!(desk.take_notices(), [Heeding::Failed { why: "why".into() }]);
    }

    #[test]
    fn a_server_that_does_not_answer_is_given_up() {
        let mut desk = Desk::new("test");
        desk.want(WANTED);
        desk.turn(at(0));
        desk.on_connected(at(0), "server", [0; COOKIE]);
        desk.turn(at(4999));
        assert_eq!((desk.connection(), desk.wake_at()), (Some(1), Some(at(5000))));
        desk.turn(at(5000));
        assert_eq!(desk.connection(), None);
    }

    #[test]
    fn what_is_no_protocol_ends_the_connection_and_nothing_else() {
        let mut desk = Desk::new("test");
        desk.want(WANTED);
        desk.turn(at(0));
        desk.on_connected(at(0), "server", [0; COOKIE]);
        desk.on_bytes(at(1), &[0xff; 64]);
        assert_eq!(desk.connection(), None);
        assert!(matches!(&desk.take_notices()[..], [Heeding::Failed { .. }]));
    }
}
