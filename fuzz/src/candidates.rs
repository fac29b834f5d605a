//! Displays and strangers before the door of a session: both handshakes, places, and what follows.
//!
//! Input: operations, each a byte and its arguments (see [`step`]).

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use wayferry_proto::{
    Arrival, Capabilities, CloseReason, Config, Event, Limits, Places, Secret, Session, Side, StreamId, Time,
    Transmit,
};

use crate::Input;

/// Operations of one input.
const MAX_OPERATIONS: usize = 400;
/// Places before the door.
const PLACES: usize = 4;
/// Secrets that are good: tickets', then incarnations'.
const TICKETS: u8 = 3;
const KNOWN: u8 = 2;

/// Only a display with a secret comes in, and as the one that it is; nothing that a stranger says to a display is taken for
/// the end of its session; places are bounded; and whatever has happened, a display with a ticket comes in.
///
/// # Panics
/// When that does not hold.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut world = World::new();
    for _ in 0..MAX_OPERATIONS {
        if input.is_empty() {
            break;
        }
        step(&mut input, &mut world);
        world.settle();
        assert!(world.door.len() <= PLACES);
    }
    world.finish();
}

/// One operation: a byte that says which, and what it needs.
///
/// 0: a stranger comes (from). 1: a sound display comes (from, which secret, which incarnation). 2: bytes come from a guest
/// (who, stream, length, they). 3: what a sound display has said arrives (who, how many pieces). 4: a guest's carrier ends,
/// or one of its streams does (who, which, stream). 5: bytes come to a sound display, from a host that is a stranger (who,
/// stream, length, they). 6: that host closes (who, code). 7: time passes (10 ms each).
fn step(input: &mut Input<'_>, world: &mut World) {
    let (operation, who) = (input.u8() % 8, input.u8());
    match operation {
        0 => world.come(who, None),
        1 => {
            let (secret, incarnation) = (input.u8(), input.u8());
            world.come(who, Some((secret, incarnation)));
        }
        2 => {
            let (stream, bytes) = piece(input);
            world.hear(who, stream, bytes);
        }
        3 => {
            for _ in 0..input.u8() {
                let Some(guest) = world.guest(who) else { return };
                let Some((stream, bytes)) = guest.said.pop_front() else { return };
                world.hear(who, stream, bytes);
            }
        }
        4 => {
            let (which, stream) = (input.u8() % 4, StreamId(u64::from(input.u8() % 4)));
            let arrival = match which {
                0 => Arrival::Closed { reason: CloseReason::Done },
                1 => Arrival::Closed { reason: CloseReason::LinkLost(String::new()) },
                2 => Arrival::Reset { stream, code: 0 },
                _ => Arrival::Stopped { stream, code: 0 },
            };
            world.receive(who, arrival);
        }
        5 => {
            let (stream, bytes) = piece(input);
            world.tell(who, stream, bytes);
        }
        6 => {
            let reason = CloseReason::from_wire(input.u8().into(), "closed");
            world.close_display(who, reason);
        }
        _ => world.pass(Duration::from_millis(10 * u64::from(who))),
    }
}

fn piece(input: &mut Input<'_>) -> (StreamId, Bytes) {
    let stream = StreamId(u64::from(input.u8() % 4));
    let length = usize::from(input.u16());
    (stream, Bytes::copy_from_slice(input.take(length)))
}

/// Somebody who came.
struct Guest {
    number: u64,
    /// A sound display, with what it shows.
    display: Option<(Session, (u8, u8))>,
    /// What it has said and has not arrived.
    said: VecDeque<(StreamId, Bytes)>,
    /// How far its streams were written, and those towards it.
    heads: BTreeMap<StreamId, u64>,
    heard: BTreeMap<StreamId, u64>,
    /// The app side's session, once it was let in.
    app: Option<Session>,
}

struct World {
    now: Time,
    door: Places<Session>,
    guests: Vec<Guest>,
}

impl World {
    fn new() -> Self {
        Self { now: Time::ZERO, door: Places::new(PLACES), guests: Vec::new() }
    }

    fn come(&mut self, from: u8, shows: Option<(u8, u8)>) {
        let config = Config {
            capabilities: Capabilities::RESUME.with(Capabilities::VIEW),
            accepted_secrets: (0..TICKETS).map(ticket).collect(),
            accepted_incarnations: (0..KNOWN).map(incarnation).collect(),
            limits: Limits { buffered_before_hello: 64 << 10, ..Limits::default() },
            start: self.now,
            ..Config::new(Side::App)
        };
        let number = self.guests.len() as u64;
        let source = IpAddr::from([192, 0, 2, from % 4]).into();
        if let Some(mut lost) = self.door.enter(number, source, Session::new(config)) {
            lost.close(CloseReason::TooMuch("displays at the door".into()));
            let closes = std::iter::from_fn(|| lost.poll_transmit(self.now))
                .any(|transmit| matches!(transmit, Transmit::Close { code: 4, .. }));
            assert!(closes, "one that loses its place is told why");
        }
        assert!(self.door.contains(number), "the newest has a place");
        let display = shows.map(|(secret, run)| {
            let (secret, resume) = (Some(ticket(secret)), Some(incarnation(run)));
            let config = Config { secret, resume, start: self.now, ..Config::new(Side::Display) };
            (Session::new(config), shows.unwrap_or_default())
        });
        let (said, heads, heard) = (VecDeque::new(), BTreeMap::new(), BTreeMap::new());
        self.guests.push(Guest { number, display, said, heads, heard, app: None });
    }

    fn guest(&mut self, who: u8) -> Option<&mut Guest> {
        let count = self.guests.len().max(1);
        self.guests.get_mut(usize::from(who) % count)
    }

    /// The next bytes of a stream reach the app side.
    fn hear(&mut self, who: u8, stream: StreamId, bytes: Bytes) {
        let Some(guest) = self.guest(who) else { return };
        let offset = advance(&mut guest.heads, stream, &bytes);
        self.receive(who, Arrival::Data { stream, offset, bytes });
    }

    fn receive(&mut self, who: u8, arrival: Arrival) {
        let now = self.now;
        let Some(guest) = self.guest(who) else { return };
        let number = guest.number;
        if let Some(app) = &mut guest.app {
            app.receive(now, arrival);
        } else if let Some(candidate) = self.door.get_mut(number) {
            candidate.receive(now, arrival);
        }
    }

    /// Bytes reach a display that nobody whom it knows has said.
    fn tell(&mut self, who: u8, stream: StreamId, bytes: Bytes) {
        let now = self.now;
        let Some(guest) = self.guest(who) else { return };
        let offset = advance(&mut guest.heard, stream, &bytes);
        if let Some((session, _)) = &mut guest.display {
            session.receive(now, Arrival::Data { stream, offset, bytes });
        }
    }

    fn close_display(&mut self, who: u8, reason: CloseReason) {
        let now = self.now;
        let Some((session, _)) = self.guest(who).and_then(|guest| guest.display.as_mut()) else { return };
        let refused = matches!(reason, CloseReason::TooMuch(_)) && session.peer().is_none();
        let lived = !session.is_closed();
        session.receive(now, Arrival::Closed { reason });
        assert!(!refused || !lived || session.is_suspended(), "who is refused a place comes again");
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        let numbers: Vec<u64> = self.door.iter().map(|(number, _)| number).collect();
        for number in numbers {
            self.door.get_mut(number).into_iter().for_each(|session| session.on_timeout(self.now));
        }
        for guest in &mut self.guests {
            let sessions = guest.app.iter_mut().chain(guest.display.iter_mut().map(|(session, _)| session));
            sessions.for_each(|session| session.on_timeout(self.now));
        }
    }

    /// Lets those in who may come in, and displays speak.
    fn settle(&mut self) {
        let now = self.now;
        for guest in &mut self.guests {
            if let Some(candidate) = self.door.get_mut(guest.number) {
                while candidate.poll_transmit(now).is_some() {}
                let event = candidate.poll_event();
                let over = candidate.is_closed();
                let ready = matches!(event, Some(Event::Ready { .. }));
                if ready {
                    judge(guest, candidate);
                }
                if ready || over {
                    guest.app = self.door.leave(guest.number).map(|(_, session)| session);
                }
            }
            if let Some(app) = &mut guest.app {
                drain(app, now);
            }
            if let Some((session, _)) = &mut guest.display {
                while let Some(transmit) = session.poll_transmit(now) {
                    if let Transmit::Data { stream, bytes, .. } = transmit {
                        guest.said.push_back((stream, bytes));
                    }
                }
                drain(session, now);
            }
        }
    }

    /// A display with a ticket comes, and all that it says arrives.
    fn finish(mut self) {
        let who = self.guests.len();
        self.come(3, Some((0, KNOWN)));
        self.settle();
        let guest = &mut self.guests[who];
        let candidate = self.door.get_mut(guest.number).expect("the newest has a place");
        while let Some((stream, bytes)) = guest.said.pop_front() {
            let offset = advance(&mut guest.heads, stream, &bytes);
            candidate.receive(self.now, Arrival::Data { stream, offset, bytes });
        }
        assert!(matches!(candidate.poll_event(), Some(Event::Ready { .. })), "the door is shut");
    }
}

/// One that is let in must have shown what is good.
fn judge(guest: &Guest, candidate: &Session) {
    let (_, (secret, run)) = guest.display.as_ref().expect("a stranger has no secret");
    let shown = candidate.matched_secret();
    assert!(shown.is_none_or(|index| index == usize::from(*secret)), "the secret is its own");
    assert!(shown.is_some() || *run < KNOWN, "it has none, and was never here");
}

fn drain(session: &mut Session, now: Time) {
    while let Some(event) = session.poll_event() {
        if let Event::Data { channel, bytes, .. } = event {
            session.consumed(channel, bytes.len());
        }
    }
    while session.poll_transmit(now).is_some() {}
}

/// Where the next bytes of a stream belong.
fn advance(heads: &mut BTreeMap<StreamId, u64>, stream: StreamId, bytes: &Bytes) -> u64 {
    let head = heads.entry(stream).or_default();
    let offset = *head;
    *head += bytes.len() as u64;
    offset
}

/// That of a ticket; the first [`TICKETS`] are good.
fn ticket(number: u8) -> Secret {
    random(u64::from(number))
}

/// That of a display's run; the first [`KNOWN`] are known.
fn incarnation(number: u8) -> Secret {
    random(1 << 32 | u64::from(number))
}

/// Random to a reader, and the same each time.
fn random(seed: u64) -> Secret {
    let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
    Secret::from(std::array::from_fn(|_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8
    }))
}
