//! The edge of a session's [`admission::Admission`]: a listening port, carriers, and the tickets that lead there.
//!
//! It accepts connections from the port, and moves bytes between candidates and their carriers. The core decides which
//! display is let in, which loses its place, and when. Invariant: a certificate that is no longer valid leaves the
//! listener's list at once.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use wayferry_net::quic::{Connected, Listener, PageOrigin, SetupError};
use wayferry_net::{Admitted, Carrier, Fingerprint, Ticket};
use wayferry_proto::admission::{self, Entry, Fate, Lane, LinkId, MAX_LINKS, Revoked, Role, Secrets, Stay};
use wayferry_proto::{Candidate, CloseReason, Config, Digest, Secret, Session, SessionId, Source, Time};

use crate::carriers::reachable;
use crate::clock;
use crate::edge::socket::random_bytes;
use crate::event::{Reporter, SessionEvent};
use crate::link::{Link, closed};

/// With what a page comes.
#[derive(Debug, Clone, Copy)]
enum Way {
    Link(LinkId),
    Ticket(Secret),
}

impl Way {
    /// Until when it lets somebody in; none if it does not.
    fn good_until(self, secrets: &Secrets<Fingerprint>, now: Time) -> Option<Time> {
        match self {
            Self::Link(id) => secrets.links(now).find(|link| link.id == id).map(|link| link.until),
            Self::Ticket(secret) => secrets.given_until(secret, now),
        }
    }
}

/// A listening port, and the displays that ask to be let in.
pub struct Admission {
    listener: Option<Listener>,
    /// Certificates that the listener accepts; `None` if it accepts all.
    admitted: Option<Admitted>,
    identity: Fingerprint,
    session: SessionId,
    admission: admission::Admission<Fingerprint, Link>,
    /// Where pages come from, each as long as what it was named with is good.
    pages: Vec<(Way, PageOrigin)>,
    /// Origins of those that are over, the oldest first.
    former: Vec<PageOrigin>,
    /// How long the machine was suspended since it started, and how much of that was counted.
    asleep: Box<dyn Fn() -> Duration + Send>,
    counted: Duration,
    reporter: Reporter,
}

impl Admission {
    /// The admission to sessions like `config`; without a listener, displays come on byte streams only.
    pub fn new(
        listener: Option<Listener>,
        identity: Fingerprint,
        config: Config,
        reporter: Reporter,
    ) -> Self {
        let session = config.session;
        let config = Config { digest: Some(digest), ..config };
        let admission = admission::Admission::new(config, Secret::from(random_bytes::<32>()));
        let (asleep, counted) = (Box::new(clock::asleep), clock::asleep());
        let (admitted, pages, former) = (None, Vec::new(), Vec::new());
        Self { listener, admitted, identity, session, admission, pages, former, asleep, counted, reporter }
    }

    /// The listener accepts only the certificates on this list.
    #[must_use]
    pub fn with_list(mut self, admitted: Admitted) -> Self {
        self.admitted = Some(admitted);
        self
    }

    /// Counts the time for which the machine was suspended: tickets and links expire meanwhile, too. To be called
    /// before anything is judged or told by the time.
    pub fn count_sleep(&mut self) {
        let asleep = (self.asleep)();
        if let Some(more) = asleep.checked_sub(self.counted).filter(|more| !more.is_zero()) {
            self.admission.secrets_mut().shorten(more);
            self.counted = asleep;
        }
    }

    /// Whether tickets can be printed: not where the listener accepts only known certificates.
    pub fn is_open(&self) -> bool {
        self.admitted.is_none() && self.listener.is_some()
    }

    /// How many handshakes of QUIC have been begun here, by anybody.
    pub fn attempts(&self) -> u64 {
        self.listener.as_ref().map_or(0, Listener::attempts)
    }

    /// A ticket with this secret, to be printed, that is good until then.
    pub fn ticket(&mut self, role: Role, secret: Secret, until: Time) -> Ticket {
        self.admission.secrets_mut().print(role, secret, until);
        self.ticket_with(secret)
    }

    /// The same for a page of that origin, which may come while the ticket is good; from now on the port answers
    /// browsers, too. `None` where there is no port.
    ///
    /// # Errors
    /// No certificate can be made for it.
    pub fn page_ticket(
        &mut self,
        role: Role,
        secret: Secret,
        (until, now): (Time, Time),
        origin: PageOrigin,
    ) -> Result<Option<Ticket>, SetupError> {
        let Some(listener) = &self.listener else { return Ok(None) };
        let fingerprint = listener.page_certificate()?;
        let ticket = Ticket { fingerprint, ..self.ticket(role, secret, until) };
        self.admit_pages(Some((Way::Ticket(secret), origin)), now);
        Ok(Some(ticket))
    }

    /// A link: a ticket with this secret for pages of that origin, which lets in `uses` of them, as `role` and nothing
    /// else, until then. Where `reached` says at which address the machine was reached, pages try that first. The
    /// secret is not kept.
    ///
    /// # Errors
    /// Why there can be none.
    pub fn link(
        &mut self,
        (role, good): (Role, (Time, u8)),
        secret: Secret,
        origin: PageOrigin,
        reached: Option<IpAddr>,
        now: Time,
    ) -> Result<(LinkId, Ticket), String> {
        let listener = self.listener.as_ref().ok_or(NO_PORT)?;
        let fingerprint = listener.page_certificate().map_err(|error| error.to_string())?;
        let made = self.admission.secrets_mut().link(role, digest(&secret), good, now);
        let id = made.map_err(|_| format!("{MAX_LINKS} links are good already (limit); revoke some"))?;
        self.admit_pages(Some((Way::Link(id), origin)), now);
        Ok((id, Ticket { fingerprint, ..self.ticket_at(secret, reached) }))
    }

    /// Pages may come of the origins of links and tickets that are good, and of the latest that are over: browsers do
    /// not say that an origin is refused, and who comes too late is to hear why.
    fn admit_pages(&mut self, more: Option<(Way, PageOrigin)>, now: Time) {
        let Some(listener) = &self.listener else { return };
        let is_new = more.is_some();
        let secrets = self.admission.secrets();
        let over = self.pages.extract_if(.., |(way, _)| way.good_until(secrets, now).is_none());
        let over: Vec<PageOrigin> = over.map(|(_, origin)| origin).collect();
        if !is_new && over.is_empty() {
            return;
        }
        self.former.extend(over);
        self.former.drain(..self.former.len().saturating_sub(MAX_FORMER));
        self.pages.extend(more);
        let good = self.pages.iter().map(|(_, origin)| origin);
        listener.admit_pages(good.chain(&self.former).cloned().collect());
    }

    /// The links that are good.
    pub fn links(&self, now: Time) -> impl Iterator<Item = &admission::Link> {
        self.admission.secrets().links(now)
    }

    /// The link by which the active display came, if it came by one.
    pub fn active_link(&self) -> Option<LinkId> {
        self.admission.secrets().active_link()
    }

    /// That link, or every one, is good no more, and who came by it cannot come again. Says whether there was any, and
    /// whether the active display came by it.
    pub fn revoke_links(&mut self, which: Option<LinkId>, now: Time) -> (bool, bool) {
        let Revoked { any, active, gone } = self.admission.secrets_mut().revoke_links(which, now);
        self.dismiss(gone);
        (any, active)
    }

    /// No display more is let in by that link; who came by it may come again.
    pub fn close_link(&mut self, id: LinkId, now: Time) {
        self.admission.secrets_mut().close_link(id, now);
    }

    /// Links for viewing are good no more.
    pub fn revoke_view_links(&mut self, now: Time) {
        self.admission.secrets_mut().revoke_view_links(now);
    }

    /// A ticket for the display with this certificate, which reached this machine at that address.
    pub fn invite(
        &mut self,
        role: Role,
        fingerprint: Fingerprint,
        secret: Secret,
        reached: Option<IpAddr>,
        now: Time,
    ) -> Ticket {
        if let Some(admitted) = &self.admitted {
            admitted.admit(fingerprint);
        }
        self.admission.secrets_mut().invite(role, secret, fingerprint, now);
        self.ticket_at(secret, reached)
    }

    /// A ticket for who reached this machine at that address.
    fn ticket_at(&self, secret: Secret, reached: Option<IpAddr>) -> Ticket {
        let mut ticket = self.ticket_with(secret);
        let loopback = ticket.addresses.iter().all(|address| address.ip().is_loopback());
        if loopback && reached.is_some_and(|ip| !ip.is_loopback()) {
            // Its own loopback leads to the display's own machine.
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

    fn ticket_with(&self, secret: Secret) -> Ticket {
        let addresses = match &self.listener {
            Some(listener) => reachable(listener.local_addr()),
            None => vec![NOWHERE],
        };
        Ticket { addresses, fingerprint: self.identity, secret, session: self.session }
    }

    /// Makes all printed tickets invalid.
    pub fn revoke_tickets(&mut self) {
        self.admission.secrets_mut().revoke_printed();
    }

    /// The active display, if there is one, or one that may come again as such.
    pub fn stay(&self) -> Option<Stay> {
        self.admission.secrets().stay()
    }

    /// Whether a display that was let in is still known: it may have been sent away since.
    pub fn knows(&self, role: Role, candidate: &Candidate<Link>) -> bool {
        let incarnation = candidate.peer().and_then(|peer| peer.incarnation);
        self.admission.secrets().knows(role, incarnation)
    }

    /// The active display was sent away: it cannot come again.
    pub fn forget_active(&mut self) {
        let gone = self.admission.secrets_mut().forget_active();
        self.dismiss(gone);
    }

    /// This display has left for good, unless another has come since.
    pub fn forget_stay(&mut self, stay: Stay) {
        let gone = self.admission.secrets_mut().forget_stay(stay);
        self.dismiss(gone);
    }

    /// This display is here no more, unless another has come since; it may come again if it showed by what.
    pub fn lose_stay(&mut self, stay: Stay) {
        let gone = self.admission.secrets_mut().lose_stay(stay);
        self.dismiss(gone);
    }

    /// The viewers were sent away: none of them can come again.
    pub fn forget_viewers(&mut self) {
        let gone = self.admission.secrets_mut().forget_viewers();
        self.dismiss(gone);
    }

    /// A viewer has left for good.
    pub fn forget_viewer(&mut self, incarnation: Secret) {
        let gone = self.admission.secrets_mut().forget_viewer(incarnation);
        self.dismiss(gone);
    }

    fn dismiss(&self, gone: impl IntoIterator<Item = Fingerprint>) {
        let Some(admitted) = &self.admitted else { return };
        for certificate in gone {
            admitted.dismiss(certificate);
        }
    }

    /// Adds a display that comes on this carrier, and said on the control socket that it has this certificate.
    pub fn add(&mut self, carrier: Box<dyn Carrier>, certificate: Fingerprint, now: Time) {
        let make = |config| Link::new(Session::new(config), carrier);
        // Sending the reason could block on the byte stream; closing it says enough.
        drop(self.admission.come((Lane::Here, Source::Here), certificate, now, make));
    }

    /// Adds a page that comes on this carrier, from a browser there. It is let in by a link, and by nothing else: who
    /// has brought it says nothing of who it is.
    pub fn add_page(&mut self, carrier: Box<dyn Carrier>, from: SocketAddr, now: Time) {
        let (_, lost) =
            self.admission.come((Lane::Page, from.ip().into()), no_certificate(), now, |config| {
                let mut link = Link::new(Session::new(config), carrier);
                link.set_from(from);
                link
            });
        lost.into_iter().for_each(|mut lost| lost.transmit(now));
    }

    /// Looks at the candidates; gives those that are let in, and as what.
    pub fn turn(&mut self, now: Time) -> Vec<(Entry, Candidate<Link>)> {
        self.count_sleep();
        if let Some(listener) = &self.listener {
            listener.clear_wake();
        }
        let mut come = Vec::new();
        // Each is heard before the next one comes: what it has said already may save its place.
        while let Some(connected) = self.listener.as_mut().and_then(Listener::poll_accept) {
            let number = self.meet(connected, now);
            come.extend(self.look_at(number, now));
        }
        let numbers = self.admission.numbers();
        come.extend(numbers.into_iter().filter_map(|number| self.look_at(number, now)));
        self.admit_pages(None, now);
        come
    }

    /// A display comes on QUIC; gives its number.
    fn meet(&mut self, connected: Connected, now: Time) -> u64 {
        let Connected { carrier, peer, address, early } = connected;
        // A display with a TLS session ticket was let in before.
        let is_known = |peer| early || self.admitted.is_some() || self.admission.secrets().is_known(peer);
        let lane = if peer.is_some_and(is_known) { Lane::Known } else { Lane::Stranger };
        // A page has none, and is to be taken for no other; if it comes again it is known by its incarnation.
        let peer = peer.unwrap_or_else(no_certificate);
        let (number, lost) = self.admission.come((lane, address.ip().into()), peer, now, |config| {
            let mut link = Link::new(Session::new(config), carrier);
            link.set_from(address);
            link
        });
        lost.into_iter().for_each(|mut lost| lost.transmit(now));
        number
    }

    /// Reads from a candidate; returns it if it is let in.
    fn look_at(&mut self, number: u64, now: Time) -> Option<(Entry, Candidate<Link>)> {
        self.admission.get_mut(number)?.receive(now);
        match self.admission.look_at(number, now)? {
            Fate::Waits => {
                self.admission.get_mut(number)?.transmit(now);
                None
            }
            Fate::Enters(entry, candidate, dismissed) => {
                self.dismiss(dismissed);
                candidate.holder().welcome();
                Some((entry, candidate))
            }
            Fate::Full(candidate) => {
                candidate.holder().welcome();
                refuse_as_full(candidate.forgo(now), now);
                None
            }
            Fate::Leaves(mut link, why) => {
                // For the first time, if it is refused for what it has just said: a ping before that would tell it from
                // others that are refused.
                link.transmit(now);
                // One that has gone before it said who it is was not refused: displays hold a connection ready that
                // they may not need.
                let why = why.filter(|(reason, _)| {
                    !matches!(reason, CloseReason::LinkLost(_)) || link.session.peer().is_some()
                });
                if let Some(Err(error)) = why.map(|(reason, by)| closed(reason, by)) {
                    self.reporter.report(SessionEvent::DisplayRejected { error });
                }
                None
            }
        }
    }

    /// From now on there are places for so many viewers.
    pub fn set_free(&mut self, viewers: usize) {
        self.admission.set_free(viewers);
    }

    /// To be polled for input.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let listener = self.listener.iter().map(Listener::wake_fd);
        listener.chain(self.admission.candidates().filter_map(Link::wake_fd))
    }

    /// When [`Admission::turn`] is to be called at the latest.
    pub fn next_timeout(&self) -> Option<Time> {
        let more = self.admission.candidates().any(Link::has_more).then_some(Time::ZERO);
        let ways = self.pages.iter().map(|(way, _)| way);
        let over = ways.filter_map(|way| way.good_until(self.admission.secrets(), Time::ZERO)).min();
        more.or_else(|| clock::earlier(self.admission.next_timeout(), over))
    }
}

/// What stands for the certificate of a page, which has none: it is to be taken for no other.
fn no_certificate() -> Fingerprint {
    Fingerprint(random_bytes())
}

/// There is no place for this viewer.
pub fn refuse_as_full(mut link: Link, now: Time) {
    // Sent before anything else: a viewer that is refused before it was welcomed would come again.
    link.session.on_timeout(now);
    link.transmit(now);
    link.session.close(CloseReason::TooMuch(FULL.into()));
    link.transmit(now);
}

/// SHA-256.
fn digest(secret: &Secret) -> Digest {
    Digest(wayferry_net::sha256(secret.expose()))
}

/// Why no other viewer is let in.
pub const FULL: &str = "8 viewers already (limit)";
/// Origins of links and tickets that are over, of which pages may still come, to be refused in words.
const MAX_FORMER: usize = 16;
/// Why there is no link.
const NO_PORT: &str = "the session has no UDP port";
/// Nothing answers at port 0: the display comes on the stream.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::{HashMap, VecDeque};
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use wayferry_net::quic::Options;
    use wayferry_net::{Identity, Peers};
    use wayferry_proto::{Arrival, LinkState, Side, Transmit};

    use super::*;

    fn admission() -> Admission {
        Admission::new(None, Fingerprint([7; 32]), Config::new(Side::App), Reporter::new(drop))
    }

    fn secret(byte: u8) -> Secret {
        Secret::from([byte; 32])
    }

    /// A carrier on which everything has come already.
    pub(crate) struct Come {
        arrivals: VecDeque<Arrival>,
        never: OwnedFd,
    }

    impl Carrier for Come {
        fn transmit(&mut self, _: Transmit) {}

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
    pub(crate) fn hello_as(secret: Secret, incarnation: Secret) -> VecDeque<Arrival> {
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

    pub(crate) fn come(arrivals: VecDeque<Arrival>) -> Box<Come> {
        let (never, _other) = std::os::unix::net::UnixStream::pair().expect("a descriptor");
        Box::new(Come { arrivals, never: never.into() })
    }

    /// Displays that ssh brings, each with its certificate and its incarnation.
    fn visited(admission: &mut Admission, number: u8, role: Role) -> Option<Role> {
        let (certificate, given) = (Fingerprint([number; 32]), secret(100 + number));
        admission.invite(role, certificate, given, None, Time::ZERO);
        come_again(admission, number, given)
    }

    fn come_again(admission: &mut Admission, number: u8, shown: Secret) -> Option<Role> {
        let arrivals = hello_as(shown, secret(number));
        admission.add(come(arrivals), Fingerprint([number; 32]), Time::ZERO);
        admission.turn(Time::ZERO).pop().map(|(entry, _)| entry.role)
    }

    #[test]
    fn regression_detach_revokes_nothing() {
        let list = Admitted::new();
        let mut admission = admission().with_list(list.clone());
        let admits = |number| list.contains(Fingerprint([number; 32]));
        assert_eq!(visited(&mut admission, 1, Role::Active), Some(Role::Active));
        assert_eq!(visited(&mut admission, 2, Role::View), Some(Role::View));
        assert_eq!(come_again(&mut admission, 1, secret(1)), Some(Role::Active), "it lost its carrier");
        // What it was given a second time goes with it, too.
        admission.invite(Role::Active, Fingerprint([1; 32]), secret(50), None, Time::ZERO);
        admission.forget_active();
        assert_eq!([1, 2].map(admits), [false, true]);
        for shown in [1, 50, 101] {
            assert_eq!(come_again(&mut admission, 1, secret(shown)), None, "{shown}");
        }
        assert_eq!(come_again(&mut admission, 2, secret(2)), Some(Role::View), "it was not meant");
        admission.forget_viewers();
        assert_eq!((admits(2), come_again(&mut admission, 2, secret(2))), (false, None));
        assert_eq!(visited(&mut admission, 1, Role::Active), Some(Role::Active), "ssh brings it again");
    }

    #[test]
    fn regression_what_is_good_for_a_while_outlives_a_night_of_the_machine() {
        let night = Arc::new(AtomicU64::new(7));
        let slept = Arc::clone(&night);
        let mut admission = admission();
        (admission.asleep, admission.counted) =
            (Box::new(move || Duration::from_secs(slept.load(Ordering::Relaxed))), Duration::from_secs(7));
        let (now, hour) = (Time::ZERO, Time::ZERO + Duration::from_secs(3_600));
        for byte in [1, 2] {
            admission.ticket(Role::View, secret(byte), hour);
        }
        let links = admission.admission.secrets_mut();
        links.link(Role::View, digest(&secret(3)), (hour, 8), now).expect("a place");
        night.store(7 + 3_599, Ordering::Relaxed);
        assert_eq!(come_again(&mut admission, 1, secret(1)), Some(Role::View));
        assert_eq!(
            admission.links(now).map(|link| link.until).collect::<Vec<_>>(),
            [Time::from_millis(1_000)]
        );
        night.store(7 + 3_600, Ordering::Relaxed);
        assert_eq!(come_again(&mut admission, 2, secret(2)), None);
        assert_eq!(admission.links(now).count(), 0);
    }

    /// There were 16 origins at most, the latest ones, though their links were none or over.
    #[test]
    fn regression_a_share_that_is_refused_keeps_the_pages_of_a_good_link_out() {
        let own = Identity::ephemeral().expect("randomness");
        let at = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
        let listener = Listener::bind(at, None, &own, Peers::Secret, &Options::default()).expect("a port");
        let config = Config::new(Side::App);
        let mut admission = Admission::new(Some(listener), own.fingerprint(), config, Reporter::new(drop));
        let origin =
            |number: usize| format!("http://localhost:{}", 1024 + number).parse().expect("an origin");
        let (now, hour) = (Time::ZERO, Time::ZERO + Duration::from_secs(3_600));
        let link = |admission: &mut Admission, number, until| {
            admission.link((Role::View, (until, 8)), secret(1), origin(number), None, now)
        };
        for number in 0..MAX_LINKS {
            link(&mut admission, number, if number == 0 { hour } else { hour + hour.since_start() })
                .expect("a place");
        }
        (MAX_LINKS..3 * MAX_LINKS).for_each(|number| assert!(link(&mut admission, number, hour).is_err()));
        let ticket = admission.page_ticket(Role::View, secret(2), (hour, now), origin(99));
        assert!(ticket.is_ok_and(|ticket| ticket.is_some()));
        let listed = |admission: &Admission, number| {
            admission.listener.as_ref().is_some_and(|listener| listener.admits(&origin(number)))
        };
        assert_eq!(
            [0, 1, 15, 16, 99].map(|number| listed(&admission, number)),
            [true, true, true, false, true]
        );
        assert_eq!(admission.next_timeout(), Some(hour));
        let first = admission.links(now).nth(1).map(|link| link.id);
        assert!(admission.revoke_links(first, now).0);
        assert!(admission.turn(now).is_empty());
        assert!(admission.turn(hour).is_empty());
        let all = [0, 1, 2, 99];
        assert_eq!(all.map(|number| listed(&admission, number)), [true; 4], "who comes too late hears why");
        assert!(admission.next_timeout().is_none_or(|due| due > hour), "what is over is not looked at again");
        assert!(admission.revoke_links(None, hour).0);
        assert!(admission.turn(hour).is_empty());
        assert_eq!(
            all.map(|number| listed(&admission, number)),
            [true, false, true, true],
            "the oldest goes"
        );
    }

    #[test]
    fn regression_a_connection_that_was_not_needed_is_no_rejected_display() {
        for (arrivals, told) in [(VecDeque::new(), 0), (hello_as(secret(9), secret(1)), 1)] {
            let (tell, events) = std::sync::mpsc::channel();
            let reporter = Reporter::new(move |event| drop(tell.send(event)));
            let mut admission = Admission::new(None, Fingerprint([7; 32]), Config::new(Side::App), reporter);
            let lost = Arrival::Closed { reason: CloseReason::LinkLost("it was shut down".into()) };
            let arrivals = arrivals.into_iter().chain([lost]).collect();
            admission.add(come(arrivals), Fingerprint([1; 32]), Time::ZERO);
            assert!(admission.turn(Time::ZERO).is_empty());
            assert_eq!(events.try_iter().count(), told);
        }
    }

    #[test]
    fn who_is_replaced_cannot_come_again() {
        let list = Admitted::new();
        let mut admission = admission().with_list(list.clone());
        assert_eq!(visited(&mut admission, 1, Role::Active), Some(Role::Active));
        assert_eq!(visited(&mut admission, 2, Role::Active), Some(Role::Active));
        assert_eq!(come_again(&mut admission, 1, secret(1)), None);
        assert_eq!([1, 2].map(|number| list.contains(Fingerprint([number; 32]))), [false, true]);
        assert_eq!(come_again(&mut admission, 2, secret(2)), Some(Role::Active));
    }
}
