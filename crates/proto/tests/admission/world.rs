//! Displays and strangers at the admission of a session, as a list of operations, and what must hold after each.
//!
//! What is right is not asked of the admission: the world keeps its own account of what was given out, used, taken back
//! and let in ([`Account`]). The property test and the fuzz target `candidates` drive the same world.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use wayferry_proto::admission::{
    Admission, Fate, INVITED, Lane, MAX_GIVEN, MAX_HERE, MAX_KNOWN, MAX_STRANGERS, MAX_VIEWERS, PATIENCE,
    Role,
};
use wayferry_proto::{
    Arrival, Capabilities, CloseReason, Config, Limits, Secret, Session, Side, Source, StreamId, Time,
    Transmit,
};

/// What happens.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    /// A ticket is printed that is good for so long.
    Print(Role, Duration),
    /// A display with this certificate is met, and given a ticket.
    Invite(Role, u8),
    /// One comes; a sound display, with what it shows, or a stranger.
    Come { from: u8, certificate: u8, shows: Option<Shows> },
    /// So many pieces arrive of what a sound display has said.
    Hear { who: u8, pieces: u8 },
    /// Arbitrary bytes come from a stranger or a display that came.
    Say { who: u8, stream: u8, bytes: Vec<u8> },
    /// Its carrier ends, or one of its streams does.
    End { who: u8, which: u8 },
    /// A host that is a stranger says that to a sound display.
    Tell { who: u8, stream: u8, bytes: Vec<u8> },
    /// It closes with this code.
    Close { who: u8, code: u8 },
    /// Time passes.
    Pass(Duration),
    /// The active display is sent away.
    Detach,
    /// The viewers are sent away.
    DetachViews,
    /// A viewer has left for good.
    Leave(u8),
    /// Printed tickets are taken back.
    Revoke,
}

/// What a display shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shows {
    /// Which of the secrets that were given out; one more is one that never was.
    pub(crate) secret: u8,
    /// Its own, from few.
    pub(crate) incarnation: u8,
    /// It asks for no more than viewing.
    pub(crate) view_only: bool,
    /// It comes on a byte stream.
    pub(crate) here: bool,
}

/// Operations are done one after the other; what must hold is checked after each, and at the end.
///
/// # Panics
/// When it does not hold.
pub(crate) fn run(operations: impl IntoIterator<Item = Operation>) {
    let mut world = World::new();
    for operation in operations {
        world.step(operation);
        world.settle();
        world.check();
    }
    world.finish();
}

/// Somebody who came.
struct Guest {
    number: u64,
    certificate: u8,
    /// A sound display, with the secret that it shows, and its incarnation.
    display: Option<Sound>,
    /// How many secrets had been given out when it came, and those that were good.
    given: usize,
    good: BTreeSet<usize>,
    /// What it has said and has not arrived.
    said: VecDeque<(StreamId, Bytes)>,
    /// Something else has arrived from it, or less: it may be turned away for that.
    spoiled: bool,
    /// How far its streams were written, and those towards it.
    heads: BTreeMap<StreamId, u64>,
    heard: BTreeMap<StreamId, u64>,
    /// The app side's session, once it was let in.
    app: Option<Session>,
}

struct Sound {
    session: Session,
    secret: usize,
    incarnation: u8,
    view_only: bool,
}

/// What was given out, and what became of it.
#[derive(Default)]
struct Account {
    given: Vec<Given>,
    /// Incarnations that may come again.
    active: Option<(u8, u8)>,
    views: Vec<(u8, u8)>,
}

struct Given {
    role: Role,
    until: Time,
    met: Option<u8>,
    /// Taken back, or used.
    over: bool,
    /// Who was let in with it.
    by: Option<u8>,
}

impl Account {
    fn is_good(&self, secret: usize, now: Time) -> bool {
        self.given.get(secret).is_some_and(|given| !given.over && now < given.until)
    }

    /// It is good, and was not among those that had to make room for newer ones.
    fn is_remembered(&self, secret: usize, now: Time) -> bool {
        self.is_good(secret, now) && secret + MAX_GIVEN >= self.given.len()
    }

    /// As what it may come again.
    fn part_of(&self, incarnation: u8) -> Option<Role> {
        let is_active = self.active.is_some_and(|(active, _)| active == incarnation);
        let view_only = self.views.iter().any(|(view, _)| *view == incarnation);
        assert!(!(is_active && view_only), "known as both");
        if is_active { Some(Role::Active) } else { view_only.then_some(Role::View) }
    }

    /// One that may come again no more takes with it what was given to its certificate, if no other has that.
    fn gone(&mut self, certificate: u8) {
        if !self.active.iter().chain(&self.views).any(|(_, other)| *other == certificate) {
            self.given
                .iter_mut()
                .filter(|given| given.met == Some(certificate))
                .for_each(|given| given.over = true);
        }
    }

    /// One was let in; says why it may not have been.
    fn let_in(&mut self, guest: &Guest, role: Role, now: Time) -> Result<(), &'static str> {
        let sound = guest.display.as_ref().ok_or("a stranger has no secret")?;
        // What was given out after it had come is not asked for.
        let good = sound.secret < guest.given && self.is_good(sound.secret, now);
        let by_secret = good.then(|| self.given[sound.secret].role);
        let may = [by_secret, self.part_of(sound.incarnation)];
        match role {
            _ if may == [None; 2] => return Err("it has no secret, and may not come again"),
            Role::Active if !may.contains(&Some(Role::Active)) => return Err("it is good for viewing"),
            Role::Active if sound.view_only => return Err("it asked for less"),
            Role::View if !sound.view_only && !may.contains(&Some(Role::View)) => {
                return Err("it did not ask for less");
            }
            Role::Active | Role::View => {}
        }
        if good {
            self.given[sound.secret].over = true;
            assert!(self.given[sound.secret].by.replace(sound.incarnation).is_none(), "a ticket lets in one");
        }
        let known = (sound.incarnation, guest.certificate);
        self.views.retain(|(view, _)| *view != sound.incarnation);
        let gone = match role {
            Role::Active => self.active.replace(known),
            Role::View => {
                self.views.push(known);
                (self.views.len() > MAX_VIEWERS).then(|| self.views.remove(0))
            }
        };
        gone.into_iter().for_each(|(_, certificate)| self.gone(certificate));
        Ok(())
    }
}

struct World {
    now: Time,
    admission: Admission<u8, Session>,
    account: Account,
    guests: Vec<Guest>,
}

impl World {
    fn new() -> Self {
        let config = Config {
            capabilities: Capabilities::RESUME.with(Capabilities::VIEW),
            limits: Limits { buffered_before_hello: 64 << 10, ..Limits::default() },
            ..Config::new(Side::App)
        };
        let admission = Admission::new(config, random(u64::MAX));
        Self { now: Time::ZERO, admission, account: Account::default(), guests: Vec::new() }
    }

    fn step(&mut self, operation: Operation) {
        match operation {
            Operation::Print(role, good_for) => self.give(role, self.now + good_for, None),
            Operation::Invite(role, certificate) => self.give(role, self.now + INVITED, Some(certificate)),
            Operation::Come { from, certificate, shows } => self.come(from, certificate, shows),
            Operation::Hear { who, pieces } => (0..pieces).for_each(|_| self.hear(who)),
            Operation::Say { who, stream, bytes } => self.say(who, StreamId(stream.into()), bytes.into()),
            Operation::End { who, which } => self.end(who, which),
            Operation::Tell { who, stream, bytes } => self.tell(who, StreamId(stream.into()), bytes.into()),
            Operation::Close { who, code } => {
                self.close_display(who, CloseReason::from_wire(code.into(), "closed"));
            }
            Operation::Pass(time) => self.pass(time),
            Operation::Detach => {
                let _ = self.admission.secrets_mut().forget_active();
                let gone = self.account.active.take();
                gone.into_iter().for_each(|(_, certificate)| self.account.gone(certificate));
            }
            Operation::DetachViews => {
                let _ = self.admission.secrets_mut().forget_viewers();
                let gone = std::mem::take(&mut self.account.views);
                gone.into_iter().for_each(|(_, certificate)| self.account.gone(certificate));
            }
            Operation::Leave(incarnation) => self.leave(incarnation % INCARNATIONS),
            Operation::Revoke => {
                self.admission.secrets_mut().revoke_printed();
                let printed = self.account.given.iter_mut().filter(|given| given.met.is_none());
                printed.for_each(|given| given.over = true);
            }
        }
    }

    fn give(&mut self, role: Role, until: Time, met: Option<u8>) {
        let secret = ticket(self.account.given.len());
        match met {
            Some(certificate) => self.admission.secrets_mut().invite(role, secret, certificate, self.now),
            None => self.admission.secrets_mut().print(role, secret, until),
        }
        self.account.given.push(Given { role, until, met, over: false, by: None });
    }

    fn leave(&mut self, incarnation: u8) {
        let _ = self.admission.secrets_mut().forget_viewer(self::incarnation(incarnation));
        let index = self.account.views.iter().position(|(view, _)| *view == incarnation);
        let gone = index.map(|index| self.account.views.remove(index));
        gone.into_iter().for_each(|(_, certificate)| self.account.gone(certificate));
    }

    fn come(&mut self, from: u8, certificate: u8, shows: Option<Shows>) {
        let known = self.admission.secrets().is_known(certificate);
        let place = match shows {
            Some(Shows { here: true, .. }) => (Lane::Here, Source::Here),
            _ if known => (Lane::Known, IpAddr::from([192, 0, 2, from]).into()),
            _ => (Lane::Stranger, IpAddr::from([192, 0, 2, from]).into()),
        };
        let (number, lost) = self.admission.come(place, certificate, self.now, Session::new);
        if let Some(mut lost) = lost {
            assert_eq!(closed_with(&mut lost, self.now), Some(4), "one that loses its place may try again");
        }
        assert!(self.admission.get_mut(number).is_some(), "the newest has a place");
        let display = shows.map(|shows| {
            let secret = usize::from(shows.secret) % (self.account.given.len() + 1);
            let incarnation = shows.incarnation % INCARNATIONS;
            let view = if shows.view_only { Capabilities::VIEW } else { Capabilities::NONE };
            let session = Session::new(Config {
                secret: Some(ticket(secret)),
                resume: Some(self::incarnation(incarnation)),
                capabilities: Capabilities::RESUME.with(view),
                start: self.now,
                ..Config::new(Side::Display)
            });
            Sound { session, secret, incarnation, view_only: shows.view_only }
        });
        self.guests.push(Guest {
            number,
            certificate,
            display,
            given: self.account.given.len(),
            good: (0..self.account.given.len())
                .filter(|secret| self.account.is_remembered(*secret, self.now))
                .collect(),
            said: VecDeque::new(),
            spoiled: false,
            heads: BTreeMap::new(),
            heard: BTreeMap::new(),
            app: None,
        });
    }

    fn guest(&mut self, who: u8) -> Option<&mut Guest> {
        // The newest are the ones that something becomes of.
        let index = self.guests.len().checked_sub(1 + usize::from(who))?;
        self.guests.get_mut(index)
    }

    /// The next piece of what a display said reaches the app side.
    fn hear(&mut self, who: u8) {
        let Some(guest) = self.guest(who) else { return };
        let Some((stream, bytes)) = guest.said.pop_front() else { return };
        let offset = advance(&mut guest.heads, stream, &bytes);
        self.receive(who, Arrival::Data { stream, offset, bytes });
    }

    fn say(&mut self, who: u8, stream: StreamId, bytes: Bytes) {
        let Some(guest) = self.guest(who) else { return };
        guest.spoiled = true;
        let offset = advance(&mut guest.heads, stream, &bytes);
        self.receive(who, Arrival::Data { stream, offset, bytes });
    }

    fn end(&mut self, who: u8, which: u8) {
        let stream = StreamId(u64::from(which / 4 % 4));
        let arrival = match which % 4 {
            0 => Arrival::Closed { reason: CloseReason::Done },
            1 => Arrival::Closed { reason: CloseReason::LinkLost(String::new()) },
            2 => Arrival::Reset { stream, code: 0 },
            _ => Arrival::Stopped { stream, code: 0 },
        };
        self.guest(who).into_iter().for_each(|guest| guest.spoiled = true);
        self.receive(who, arrival);
    }

    fn receive(&mut self, who: u8, arrival: Arrival) {
        let now = self.now;
        let Some(guest) = self.guest(who) else { return };
        let number = guest.number;
        if let Some(app) = &mut guest.app {
            app.receive(now, arrival);
        } else if let Some(session) = self.admission.get_mut(number) {
            session.receive(now, arrival);
        }
    }

    /// A display receives bytes that its session did not send.
    fn tell(&mut self, who: u8, stream: StreamId, bytes: Bytes) {
        let now = self.now;
        let Some(guest) = self.guest(who) else { return };
        let offset = advance(&mut guest.heard, stream, &bytes);
        if let Some(sound) = &mut guest.display {
            sound.session.receive(now, Arrival::Data { stream, offset, bytes });
        }
    }

    fn close_display(&mut self, who: u8, reason: CloseReason) {
        let now = self.now;
        let Some(sound) = self.guest(who).and_then(|guest| guest.display.as_mut()) else { return };
        let session = &mut sound.session;
        let refused = matches!(reason, CloseReason::TooMuch(_)) && session.peer().is_none();
        let lived = !session.is_closed();
        session.receive(now, Arrival::Closed { reason });
        assert!(!refused || !lived || session.is_suspended(), "who is refused a place comes again");
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        for number in self.admission.numbers() {
            self.admission.get_mut(number).into_iter().for_each(|session| session.on_timeout(self.now));
        }
        for guest in &mut self.guests {
            let display = guest.display.iter_mut().map(|sound| &mut sound.session);
            guest.app.iter_mut().chain(display).for_each(|session| session.on_timeout(self.now));
        }
    }

    /// Lets those in who may come in, and displays speak.
    fn settle(&mut self) {
        let now = self.now;
        for guest in &mut self.guests {
            if let Some(session) = self.admission.get_mut(guest.number) {
                while session.poll_transmit(now).is_some() {}
                judge(&mut self.admission, &mut self.account, guest, now);
            }
            if let Some(app) = &mut guest.app {
                drain(app, now);
            }
            if let Some(Sound { session, .. }) = &mut guest.display {
                while let Some(transmit) = session.poll_transmit(now) {
                    if let Transmit::Data { stream, bytes, .. } = transmit {
                        guest.said.push_back((stream, bytes));
                    }
                }
                drain(session, now);
            }
        }
    }

    fn check(&self) {
        assert!(self.admission.numbers().len() <= MAX_STRANGERS + MAX_KNOWN + MAX_HERE);
        let (given, known) = self.admission.secrets().len();
        assert!(given <= MAX_GIVEN && known <= MAX_VIEWERS + 1);
        assert!(
            self.admission.next_timeout().is_none_or(|at| at > self.now),
            "something is due that was done"
        );
        for guest in &self.guests {
            if let Some(Sound { incarnation, .. }) = guest.display {
                let _ = self.account.part_of(incarnation);
            }
        }
    }

    /// Among as many strangers as like to come, a display with a ticket comes in.
    fn finish(mut self) {
        self.give(Role::Active, self.now + PATIENCE, None);
        let secret = self.account.given.len() - 1;
        for from in 0..=MAX_STRANGERS as u8 {
            self.come(from, from, None);
        }
        let shows = Shows {
            secret: u8::try_from(secret).unwrap_or(0),
            incarnation: 0,
            view_only: false,
            here: false,
        };
        if secret > 255 {
            return;
        }
        self.come(0, 0, Some(shows));
        self.settle();
        (0..u8::MAX).for_each(|_| self.hear(0));
        self.settle();
        assert!(self.guests.last().is_some_and(|guest| guest.app.is_some()), "admission is blocked");
    }
}

/// What the admission makes of a guest must be right.
fn judge(admission: &mut Admission<u8, Session>, account: &mut Account, guest: &mut Guest, now: Time) {
    let whole = guest.display.as_ref().is_some_and(|_| !guest.heads.is_empty() && guest.said.is_empty());
    match admission.look_at(guest.number, now) {
        Some(Fate::Enters(entry, candidate, _)) => {
            assert_eq!(account.let_in(guest, entry.role, now), Ok(()));
            guest.app = Some(candidate.begin(now));
        }
        Some(Fate::Leaves(session, why)) => {
            assert!(session.is_closed());
            let Some(sound) = &guest.display else { return };
            let right = guest.good.contains(&sound.secret) && account.is_remembered(sound.secret, now);
            // What is known as active comes as nothing else.
            let views = sound.view_only || right && account.given[sound.secret].role == Role::View;
            let less = views && account.part_of(sound.incarnation) == Some(Role::Active);
            let wrong = matches!(why, Some((CloseReason::BadSecret, _)));
            assert!(!wrong || !right || guest.spoiled, "a right secret is refused");
            assert!(!whole || !right || guest.spoiled || less, "a right secret is not let in");
        }
        Some(Fate::Waits) => {}
        Some(Fate::Full(_)) => panic!("there is room for all"),
        None => panic!("it had a place"),
    }
}

fn drain(session: &mut Session, now: Time) {
    while let Some(event) = session.poll_event() {
        if let wayferry_proto::Event::Data { channel, bytes, .. } = event {
            session.consumed(channel, bytes.len());
        }
    }
    while session.poll_transmit(now).is_some() {}
}

fn closed_with(session: &mut Session, now: Time) -> Option<u32> {
    std::iter::from_fn(|| session.poll_transmit(now)).find_map(|transmit| match transmit {
        Transmit::Close { code, .. } => Some(code),
        _ => None,
    })
}

/// Where the next bytes of a stream belong.
fn advance(heads: &mut BTreeMap<StreamId, u64>, stream: StreamId, bytes: &Bytes) -> u64 {
    let head = heads.entry(stream).or_default();
    let offset = *head;
    *head += bytes.len() as u64;
    offset
}

/// That of the ticket that was given out as this one.
fn ticket(number: usize) -> Secret {
    random(number as u64)
}

/// That of a display's run.
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

/// Runs of displays: more than may come again.
const INCARNATIONS: u8 = 24;
