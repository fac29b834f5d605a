//! The way in for displays: who may attach to a session, and what the others are told.
//!
//! Everyone can reach a UDP port, so several candidates may stand at the door; who shows a secret that was given out is let in,
//! once for each. Strangers, displays whose certificates are known, and those on byte streams have places of their own, and
//! the newest always gets one ([`Places`]). It does not decide what becomes of the display that is there already. Invariant: a
//! stranger without a secret costs a place for at most [`PATIENCE`], and nothing else.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use wayferry_net::quic::{Connected, Listener, NO_PLACE};
use wayferry_net::{Admitted, Carrier, Fingerprint, Ticket};
use wayferry_proto::{Capabilities, CloseReason, Config, Event, Places, Secret, Session, Source, Time};

use crate::host::reachable;
use crate::notice::notice;
use crate::run::link::{Link, closed};
use crate::run::socket::random_bytes;

/// What a display may do that is let in. The secret that it shows decides, and none becomes more by what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// It takes the place of the one that is there.
    Active,
    /// It looks on.
    View,
}

/// A listening port with the displays that stand before it.
pub(crate) struct Door {
    listener: Option<Listener>,
    /// Whose certificates the listener lets in, where it does not let in all.
    admitted: Option<Admitted>,
    identity: Fingerprint,
    config: Config,
    secrets: Vec<Given>,
    /// The display that is here, which may come again.
    active: Option<Known>,
    /// Displays that look on, which may come again as such.
    viewers: Vec<Known>,
    /// Displays before the door, by [`Lane`].
    lanes: [Places<Candidate>; 3],
    /// How many have come.
    count: u64,
}

/// Which places a display may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    Stranger,
    /// Its certificate is known: it was let in, or ssh brought it.
    Known,
    /// On a byte stream.
    Here,
}

/// By what a display is known that was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    /// With this it may come again.
    incarnation: Option<Secret>,
    certificate: Option<Fingerprint>,
}

impl Known {
    fn shows(&self, incarnation: Option<Secret>) -> bool {
        incarnation.is_some() && self.incarnation == incarnation
    }
}

/// A display before the door.
struct Candidate {
    link: Link,
    /// What was accepted when it came.
    accepted: Vec<Secret>,
    certificate: Option<Fingerprint>,
    /// When it has to go, unless it is let in before.
    until: Option<Time>,
}

/// A secret that was given out.
struct Given {
    secret: Secret,
    part: Part,
    /// Until when it is good.
    until: Option<Time>,
    /// For whom: one that was met. A printed ticket is for whoever comes with it.
    met: Option<Fingerprint>,
}

impl Door {
    /// A door for sessions like `config`; without a listener, displays come on byte streams only.
    pub(crate) fn new(listener: Option<Listener>, identity: Fingerprint, config: Config) -> Self {
        Self {
            listener,
            admitted: None,
            identity,
            config,
            secrets: Vec::new(),
            active: None,
            viewers: Vec::new(),
            lanes: [MAX_STRANGERS, MAX_KNOWN, MAX_HERE].map(Places::new),
            count: 0,
        }
    }

    /// The listener lets in whose certificates are on this list.
    #[must_use]
    pub(crate) fn with_list(mut self, admitted: Admitted) -> Self {
        self.admitted = Some(admitted);
        self
    }

    /// A ticket with this secret, to be printed, that is good until then.
    pub(crate) fn ticket(&mut self, part: Part, secret: Secret, until: Time) -> Ticket {
        self.give(Given { secret, part, until: Some(until), met: None })
    }

    fn give(&mut self, given: Given) -> Ticket {
        if self.secrets.len() >= MAX_SECRETS {
            self.secrets.remove(0);
        }
        let secret = given.secret;
        self.secrets.push(given);
        let addresses = match &self.listener {
            Some(listener) => reachable(listener.local_addr()),
            None => vec![NOWHERE],
        };
        Ticket { addresses, fingerprint: self.identity, secret, session: self.config.session }
    }

    /// Whether tickets can be printed: not where certificates must be known before.
    pub(crate) fn is_open(&self) -> bool {
        self.admitted.is_none() && self.listener.is_some()
    }

    /// Printed tickets are good no more.
    pub(crate) fn revoke_tickets(&mut self) {
        self.secrets.retain(|given| given.met.is_some());
    }

    /// The active display was sent away, or has left for good: it cannot come again.
    pub(crate) fn forget_active(&mut self) {
        self.active.take().into_iter().for_each(|known| self.forget(&known));
    }

    /// Those who looked on were sent away: none of them can come again.
    pub(crate) fn forget_viewers(&mut self) {
        std::mem::take(&mut self.viewers).iter().for_each(|known| self.forget(known));
    }

    /// One that looked on has left for good.
    pub(crate) fn forget_viewer(&mut self, incarnation: Secret) {
        let (gone, stay) = self.viewers.iter().partition(|viewer| viewer.shows(Some(incarnation)));
        self.viewers = stay;
        let gone: Vec<Known> = gone;
        gone.iter().for_each(|known| self.forget(known));
    }

    /// Forgets the certificate of one that is not known any more, and what was given to it.
    fn forget(&mut self, gone: &Known) {
        let Some(certificate) = gone.certificate else { return };
        if self.is_known(certificate) {
            return;
        }
        self.secrets.retain(|given| given.met != Some(certificate));
        if let Some(admitted) = &self.admitted {
            admitted.dismiss(certificate);
        }
    }

    /// A ticket for the display with this certificate, which reached this machine at that address.
    pub(crate) fn invite(
        &mut self,
        part: Part,
        fingerprint: Fingerprint,
        secret: Secret,
        reached: Option<IpAddr>,
        now: Time,
    ) -> Ticket {
        if let Some(admitted) = &self.admitted {
            admitted.admit(fingerprint);
        }
        // A display that comes again leaves one that it does not need: the good ones must not make room for it.
        self.secrets.retain(|given| given.until.is_none_or(|until| now < until));
        let until = Some(now + INVITED);
        let mut ticket = self.give(Given { secret, part, until, met: Some(fingerprint) });
        let loopback = ticket.addresses.iter().all(|address| address.ip().is_loopback());
        if loopback && reached.is_some_and(|ip| !ip.is_loopback()) {
            // Its own loopback leads to whatever is there.
            ticket.addresses = vec![NOWHERE];
            return ticket;
        }
        let port = ticket.addresses.first().map_or(0, SocketAddr::port);
        if let Some(ip) = reached
            && port != 0
        {
            let address = SocketAddr::new(ip, port);
            ticket.addresses.retain(|other| *other != address);
            ticket.addresses.insert(0, address);
        }
        ticket
    }

    /// A display comes on this carrier, which has told that it has that certificate.
    pub(crate) fn add(&mut self, carrier: Box<dyn Carrier>, certificate: Fingerprint, now: Time) {
        let candidate = Candidate::new(self.config_at(now), carrier, certificate);
        self.count += 1;
        // To say why would mean to wait for the byte stream; its end tells enough.
        drop(self.lanes[Lane::Here as usize].enter(self.count, Source::Here, candidate));
    }

    /// Whether a display with this certificate was let in, and may come again.
    fn is_known(&self, certificate: Fingerprint) -> bool {
        self.active.iter().chain(&self.viewers).any(|known| known.certificate == Some(certificate))
    }

    /// For a candidate that comes now.
    fn config_at(&self, now: Time) -> Config {
        let good = self.secrets.iter().filter(|given| given.until.is_none_or(|until| now < until));
        let accepted_secrets = good.map(|given| given.secret).collect();
        // With nothing that is accepted, anybody would be: one that nobody has.
        let nobody = Secret::from(random_bytes::<32>());
        let known = self.active.iter().chain(&self.viewers).filter_map(|known| known.incarnation);
        let accepted_incarnations = std::iter::once(nobody).chain(known).collect();
        Config { start: now, accepted_secrets, accepted_incarnations, ..self.config.clone() }
    }

    /// Looks at the candidates; gives those that are let in, and as what.
    pub(crate) fn turn(&mut self, now: Time) -> Vec<(Part, Link)> {
        if let Some(listener) = &self.listener {
            listener.clear_wake();
        }
        let mut come = Vec::new();
        // Each is heard before the next one comes: what it has said already may save its place.
        while let Some(connected) = self.listener.as_mut().and_then(Listener::poll_accept) {
            let number = self.meet(connected, now);
            come.extend(self.look_at(number, now));
        }
        let numbers: Vec<u64> = self.candidates().map(|(number, _)| number).collect();
        come.extend(numbers.into_iter().filter_map(|number| self.look_at(number, now)));
        come
    }

    /// A display comes on QUIC; gives its number.
    fn meet(&mut self, connected: Connected, now: Time) -> u64 {
        let Connected { carrier, peer, address, early } = connected;
        // Who has a ticket for TLS was let in before.
        let known = early || self.admitted.is_some() || self.is_known(peer);
        let (lane, until) = if known { (Lane::Known, None) } else { (Lane::Stranger, Some(now + PATIENCE)) };
        let mut candidate = Candidate::new(self.config_at(now), carrier, peer);
        candidate.link.set_from(address);
        candidate.until = until;
        self.count += 1;
        if let Some(lost) = self.lanes[lane as usize].enter(self.count, address.ip().into(), candidate) {
            lost.turn_away(now);
        }
        self.count
    }

    /// Hears a candidate; gives it if it is let in.
    fn look_at(&mut self, number: u64, now: Time) -> Option<(Part, Link)> {
        let lane = self.lanes.iter_mut().find(|lane| lane.contains(number))?;
        let candidate = lane.get_mut(number)?;
        let step = step(&mut candidate.link, now);
        let late = candidate.until.is_some_and(|until| until <= now);
        if matches!(step, Step::Waits) && !late {
            return None;
        }
        let (_, candidate) = lane.leave(number)?;
        match step {
            Step::Enters => self.let_in(candidate, now),
            Step::Waits => {
                candidate.turn_away(now);
                None
            }
            Step::Leaves => None,
        }
    }

    /// A secret works once, also for two who came with it at the same time. Whoever is let in may come again as what it is.
    fn let_in(&mut self, candidate: Candidate, now: Time) -> Option<(Part, Link)> {
        let Candidate { mut link, accepted, certificate, .. } = candidate;
        // Given up before anybody looked: a display that tries several ways at once. Whoever is here stays.
        if link.session.is_closed() {
            return None;
        }
        let shown = link.session.matched_secret().and_then(|index| accepted.get(index).copied());
        let incarnation = link.session.peer().and_then(|peer| peer.incarnation);
        // Of two ways that a display takes at the same time, the other may have used the secret.
        let part = shown.and_then(|shown| self.redeem(shown)).or_else(|| self.known(incarnation?));
        let Some(part) = part else {
            link.session.close(CloseReason::BadSecret);
            link.transmit(now);
            return None;
        };
        // A display may ask for less than its secret is good for.
        let wish = link.session.capabilities().has(Capabilities::VIEW);
        let part = if wish { Part::View } else { part };
        self.remember(part, Known { incarnation, certificate });
        link.welcome();
        Some((part, link))
    }

    /// A display was let in. One that it replaces cannot come again.
    fn remember(&mut self, part: Part, known: Known) {
        self.viewers.retain(|viewer| !viewer.shows(known.incarnation));
        let gone = match part {
            Part::Active => self.active.replace(known),
            Part::View => {
                self.viewers.push(known);
                (self.viewers.len() > MAX_VIEWERS).then(|| self.viewers.remove(0))
            }
        };
        gone.into_iter().for_each(|gone| self.forget(&gone));
    }

    /// What a secret is good for, which it is no more afterwards.
    fn redeem(&mut self, shown: Secret) -> Option<Part> {
        let index = self.secrets.iter().position(|given| given.secret == shown)?;
        Some(self.secrets.remove(index).part)
    }

    /// As what a display comes again.
    fn known(&self, incarnation: Secret) -> Option<Part> {
        let shows = |known: &Known| known.shows(Some(incarnation));
        if self.viewers.iter().any(shows) {
            return Some(Part::View);
        }
        self.active.as_ref().is_some_and(shows).then_some(Part::Active)
    }

    /// To be polled for input.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let listener = self.listener.iter().map(Listener::wake_fd);
        listener.chain(self.candidates().filter_map(|(_, candidate)| candidate.link.wake_fd()))
    }

    /// When [`Door::turn`] is to be called at the latest.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let due = self.candidates().filter_map(|(_, candidate)| {
            let more = candidate.link.has_more().then_some(Time::ZERO);
            [candidate.link.session.next_timeout(), candidate.until, more].into_iter().flatten().min()
        });
        due.min()
    }

    fn candidates(&self) -> impl Iterator<Item = (u64, &Candidate)> {
        self.lanes.iter().flat_map(Places::iter)
    }
}

impl Candidate {
    fn new(config: Config, carrier: Box<dyn Carrier>, certificate: Fingerprint) -> Self {
        let accepted = config.accepted_secrets.clone();
        let link = Link::new(Session::new(config), carrier);
        Self { link, accepted, certificate: Some(certificate), until: None }
    }

    /// Its place is wanted by a newer one, or it has had it for long enough. It may try again.
    fn turn_away(mut self, now: Time) {
        self.link.session.close(CloseReason::TooMuch(NO_PLACE.into()));
        self.link.transmit(now);
    }
}

enum Step {
    Waits,
    Enters,
    Leaves,
}

fn step(link: &mut Link, now: Time) -> Step {
    link.receive(now);
    let step = match link.poll_event() {
        Some(Event::Ready { .. }) => Step::Enters,
        Some(Event::Closed { reason, by }) => {
            if let Err(error) = closed(reason, by) {
                notice(&format!("a display was turned away: {error}"));
            }
            Step::Leaves
        }
        Some(_) | None if link.session.is_closed() => Step::Leaves,
        Some(_) | None => Step::Waits,
    };
    link.transmit(now);
    step
}

/// Nothing answers at port 0: the display comes on the stream.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
/// Strangers before the door at once. Each may have 4 KiB and one stream on the way.
const MAX_STRANGERS: usize = 32;
/// Displays at once before the door whose certificates are known.
const MAX_KNOWN: usize = 16;
/// Displays on byte streams at once before the door.
const MAX_HERE: usize = 16;
/// How long a stranger may take to show a secret: its first bytes lost twice on a slow link.
const PATIENCE: Duration = Duration::from_secs(3);
/// Secrets that are good at once; the oldest is forgotten first.
const MAX_SECRETS: usize = 16;
/// Displays that looked on and may come again; the oldest is forgotten first.
const MAX_VIEWERS: usize = 16;
/// How long a display that was met may take to come.
const INVITED: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, VecDeque};
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::{Arc, OnceLock};

    use wayferry_proto::{Arrival, LinkState, Side, Transmit};

    use super::*;

    fn door() -> Door {
        Door::new(None, Fingerprint([7; 32]), Config::new(Side::App))
    }

    const LATER: Time = Time::from_millis(3_600_000);
    const DESK: Fingerprint = Fingerprint([8; 32]);

    fn secret(byte: u8) -> Secret {
        Secret::from([byte; 32])
    }

    #[test]
    fn a_secret_for_looking_on_is_good_for_that_alone_and_once() {
        let mut door = door();
        door.ticket(Part::View, secret(1), LATER);
        door.ticket(Part::Active, secret(2), LATER);
        assert_eq!([1, 1].map(|byte| door.redeem(secret(byte))), [Some(Part::View), None]);
        assert_eq!([2, 2].map(|byte| door.redeem(secret(byte))), [Some(Part::Active), None]);
    }

    #[test]
    fn who_looked_on_comes_again_as_that_and_nothing_else() {
        let mut door = door();
        let known = |byte| Known { incarnation: Some(secret(byte)), certificate: None };
        door.active = Some(known(3));
        door.viewers.push(known(4));
        assert_eq!(
            [3, 4, 5].map(|byte| door.known(secret(byte))),
            [Some(Part::Active), Some(Part::View), None]
        );
        assert_eq!(
            [3, 4].map(|byte| door.redeem(secret(byte))),
            [None, None],
            "it is no secret of another display"
        );
    }

    #[test]
    fn regression_one_ticket_becomes_eight_views() {
        let mut door = door();
        door.ticket(Part::View, secret(1), LATER);
        let (ticket, first, second) = (secret(1), secret(10), secret(11));
        let mut come_as = |shown, incarnation| {
            door.add(come(hello_as(shown, incarnation)), DESK, Time::ZERO);
            door.turn(Time::ZERO).pop().map(|(part, _)| part)
        };
        assert_eq!(come_as(ticket, first), Some(Part::View));
        assert_eq!(come_as(ticket, second), None, "the ticket was used");
        assert_eq!(come_as(first, second), None, "by another");
        assert_eq!(come_as(first, first), Some(Part::View), "the same comes again");
        assert_eq!(door.viewers, [Known { incarnation: Some(first), certificate: Some(DESK) }]);
    }

    /// A carrier on which everything has come already.
    struct Come {
        arrivals: VecDeque<Arrival>,
        never: OwnedFd,
        /// The code that it was closed with.
        closed: Arc<OnceLock<u32>>,
    }

    impl Carrier for Come {
        fn transmit(&mut self, transmit: Transmit) {
            if let Transmit::Close { code, .. } = transmit {
                self.closed.set(code).expect("it is closed once");
            }
        }

        fn poll_arrival(&mut self) -> Option<Arrival> {
            self.arrivals.pop_front()
        }

        fn link(&self) -> LinkState {
            LinkState::default()
        }

        fn wake_fd(&self) -> BorrowedFd<'_> {
            self.never.as_fd()
        }

        fn clear_wake(&self) {}
    }

    /// What a display says first, as it arrives.
    fn hello(secret: Secret) -> VecDeque<Arrival> {
        hello_as(secret, Secret::from([9; 32]))
    }

    fn hello_as(secret: Secret, incarnation: Secret) -> VecDeque<Arrival> {
        let (secret, resume) = (Some(secret), Some(incarnation));
        let mut display = Session::new(Config { secret, resume, ..Config::new(Side::Display) });
        let mut lengths = HashMap::new();
        let mut arrivals = VecDeque::new();
        while let Some(transmit) = display.poll_transmit(Time::ZERO) {
            if let Transmit::Data { stream, bytes, .. } = transmit {
                let length = lengths.entry(stream).or_insert(0);
                let offset = *length;
                *length += bytes.len() as u64;
                arrivals.push_back(Arrival::Data { stream, offset, bytes });
            }
        }
        arrivals
    }

    fn come(arrivals: VecDeque<Arrival>) -> Box<Come> {
        let (never, _other) = std::os::unix::net::UnixStream::pair().expect("a descriptor");
        Box::new(Come { arrivals, never: never.into(), closed: Arc::default() })
    }

    /// A display comes on QUIC, from there and with that certificate.
    fn connect(door: &mut Door, from: u8, certificate: u8, arrivals: VecDeque<Arrival>, now: Time) -> Visit {
        let carrier = come(arrivals);
        let closed = Arc::clone(&carrier.closed);
        let (peer, address) = (Fingerprint([certificate; 32]), ([192, 0, 2, from], 9).into());
        let number = door.meet(Connected { carrier, peer, address, early: false }, now);
        Visit { come: door.look_at(number, now), closed }
    }

    struct Visit {
        come: Option<(Part, Link)>,
        closed: Arc<OnceLock<u32>>,
    }

    const TOO_MUCH: Option<&u32> = Some(&4);

    #[test]
    fn regression_silent_strangers_shut_the_door() {
        let (mut door, now) = (door(), Time::ZERO);
        door.add(come(VecDeque::new()), DESK, now);
        let mut strangers: Vec<Visit> = Vec::new();
        for round in 0..200 {
            strangers.push(connect(&mut door, round % 5, round, VecDeque::new(), now));
        }
        let (gone, waiting) = strangers.split_at(200 - MAX_STRANGERS);
        assert!(gone.iter().all(|stranger| stranger.closed.get() == TOO_MUCH), "never with code 0");
        assert!(waiting.iter().all(|stranger| stranger.closed.get().is_none()), "the newest have places");
        door.ticket(Part::Active, secret(1), LATER);
        assert!(connect(&mut door, 0, 201, hello(secret(1)), now).come.is_some());
        assert_eq!(door.lanes[Lane::Here as usize].len(), 1, "byte streams have places of their own");
    }

    #[test]
    fn regression_a_flood_takes_the_place_of_a_display_that_was_here() {
        let (mut door, now) = (door(), Time::ZERO);
        door.ticket(Part::Active, secret(1), LATER);
        assert!(connect(&mut door, 1, 1, hello(secret(1)), now).come.is_some());
        // It comes again, and its first words are still on their way.
        let again = connect(&mut door, 1, 1, VecDeque::new(), now);
        let strangers = (2..=250).map(|round| connect(&mut door, round % 9, round, VecDeque::new(), now));
        assert_eq!(strangers.filter(|stranger| stranger.come.is_none()).count(), 249);
        assert_eq!(again.closed.get(), None);
    }

    #[test]
    fn a_stranger_that_says_nothing_goes_after_three_seconds() {
        let mut door = door();
        let stranger = connect(&mut door, 1, 1, VecDeque::new(), Time::ZERO);
        assert_eq!(door.next_timeout(), Some(Time::ZERO + PATIENCE));
        assert!(door.turn(Time::from_millis(2_999)).is_empty());
        assert_eq!(stranger.closed.get(), None);
        assert!(door.turn(Time::from_millis(3_000)).is_empty());
        assert_eq!((stranger.closed.get(), door.candidates().count()), (TOO_MUCH, 0));
    }

    /// Another display with the same secret has another incarnation, and stays outside.
    #[test]
    fn regression_both_ways_of_one_display_are_let_in() {
        let mut door = door();
        door.ticket(Part::Active, secret(7), LATER);
        door.add(come(hello(secret(7))), DESK, Time::ZERO);
        door.add(come(hello(secret(7))), DESK, Time::ZERO);
        let both = door.turn(Time::ZERO);
        assert!(both.iter().all(|(part, link)| *part == Part::Active && !link.session.is_closed()));
        assert_eq!((both.len(), door.secrets.len()), (2, 0), "the same, on two ways");
        door.add(come(hello(secret(7))), DESK, Time::ZERO);
        door.active = Some(Known { incarnation: Some(secret(8)), certificate: None });
        assert!(door.turn(Time::ZERO).is_empty());
    }

    #[test]
    fn regression_who_comes_again_and_again_uses_no_place_of_a_ticket() {
        let mut door = door();
        door.ticket(Part::View, secret(1), LATER);
        for round in 0..40 {
            let now = Time::from_millis(round * 61_000);
            door.invite(Part::Active, Fingerprint([2; 32]), secret(100 + round as u8), None, now);
        }
        assert_eq!(door.redeem(secret(1)), Some(Part::View));
    }

    #[test]
    fn regression_who_has_left_again_is_not_let_in() {
        let identity = wayferry_net::Identity::ephemeral().expect("an identity").fingerprint();
        for left in [true, false] {
            let mut door = Door::new(None, identity, Config::new(Side::App));
            let secret = Secret::from([7; 32]);
            door.ticket(Part::Active, secret, LATER);
            let mut arrivals = hello(secret);
            if left {
                let reason = CloseReason::LinkLost("given up".into());
                arrivals.push_back(Arrival::Closed { reason });
            }
            door.add(come(arrivals), DESK, Time::ZERO);
            assert_eq!(door.turn(Time::ZERO).is_empty(), left);
            assert!(door.candidates().next().is_none());
            assert_eq!(door.secrets.is_empty(), !left, "nobody has used the ticket");
        }
    }

    /// Displays that ssh brings, each with its certificate and its incarnation.
    fn visited(door: &mut Door, number: u8, part: Part) -> Option<Part> {
        let (certificate, given) = (Fingerprint([number; 32]), secret(100 + number));
        door.invite(part, certificate, given, None, Time::ZERO);
        come_again(door, number, given)
    }

    fn come_again(door: &mut Door, number: u8, shown: Secret) -> Option<Part> {
        let arrivals = hello_as(shown, secret(number));
        door.add(come(arrivals), Fingerprint([number; 32]), Time::ZERO);
        door.turn(Time::ZERO).pop().map(|(part, _)| part)
    }

    #[test]
    fn regression_detach_revokes_nothing() {
        let list = Admitted::new();
        let mut door = door().with_list(list.clone());
        let admits = |number| list.contains(Fingerprint([number; 32]));
        assert_eq!(visited(&mut door, 1, Part::Active), Some(Part::Active));
        assert_eq!(visited(&mut door, 2, Part::View), Some(Part::View));
        assert_eq!(come_again(&mut door, 1, secret(1)), Some(Part::Active), "it lost its carrier");
        // What it was given a second time goes with it, too.
        door.invite(Part::Active, Fingerprint([1; 32]), secret(50), None, Time::ZERO);
        door.forget_active();
        assert_eq!([1, 2].map(admits), [false, true]);
        for shown in [1, 50, 101] {
            assert_eq!(come_again(&mut door, 1, secret(shown)), None, "{shown}");
        }
        assert_eq!(come_again(&mut door, 2, secret(2)), Some(Part::View), "it was not meant");
        door.forget_viewers();
        assert_eq!((admits(2), come_again(&mut door, 2, secret(2))), (false, None));
        assert_eq!(visited(&mut door, 1, Part::Active), Some(Part::Active), "ssh brings it again");
    }

    #[test]
    fn who_is_replaced_cannot_come_again() {
        let list = Admitted::new();
        let mut door = door().with_list(list.clone());
        assert_eq!(visited(&mut door, 1, Part::Active), Some(Part::Active));
        assert_eq!(visited(&mut door, 2, Part::Active), Some(Part::Active));
        assert_eq!(come_again(&mut door, 1, secret(1)), None);
        assert_eq!([1, 2].map(|number| list.contains(Fingerprint([number; 32]))), [false, true]);
        assert_eq!(come_again(&mut door, 2, secret(2)), Some(Part::Active));
    }

    #[test]
    fn one_that_has_stopped_looking_on_is_forgotten_and_no_other() {
        let mut door = door();
        assert_eq!([1, 2].map(|number| visited(&mut door, number, Part::View)), [Some(Part::View); 2]);
        door.forget_viewer(secret(1));
        assert_eq!(come_again(&mut door, 1, secret(1)), None);
        assert_eq!(come_again(&mut door, 2, secret(2)), Some(Part::View));
    }

    #[test]
    fn regression_tickets_never_expire() {
        let mut door = door();
        let come_at = |door: &mut Door, byte, now| {
            door.add(come(hello_as(secret(byte), secret(byte + 100))), DESK, now);
            door.turn(now).pop().map(|(part, _)| part)
        };
        for byte in [1, 2, 3] {
            door.ticket(Part::View, secret(byte), LATER);
        }
        assert_eq!(come_at(&mut door, 1, Time::from_millis(3_599_999)), Some(Part::View));
        assert_eq!(come_at(&mut door, 2, LATER), None);
        door.revoke_tickets();
        assert_eq!(come_at(&mut door, 3, Time::ZERO), None);
    }
}
