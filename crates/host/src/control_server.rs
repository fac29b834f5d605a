//! A session's ways in: its control socket, its UDP port, and the connection of the launcher that started it.
//!
//! Displays meet the session on the control socket ([`crate::bootstrap`]), through ssh or another command,
//! and then come through the [`Admission`]: by QUIC, or on that same socket. Questions and orders ([`crate::control`])
//! are passed on as [`Call`]s. It decides nothing about the session. Invariant: it never blocks, and an idle caller is
//! dropped after `PATIENCE`, one of at most `MAX_VISITORS`.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use wayferry_net::Fingerprint;
use wayferry_net::quic::PageOrigin;
use wayferry_proto::admission::{Entry, LinkId, Role};
use wayferry_proto::{Candidate, Secret, Time};

use crate::admission::{Admission, FULL};
use crate::bootstrap::{Choice, Line};
use crate::carriers;
use crate::clock::earlier;
use crate::control::{self, Answer, Ended, NewLink, Notice, Request, Share, Word};
use crate::edge::part::{Hub, Part};
use crate::edge::socket::random_bytes;
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::event::{Reporter, SessionEvent};
use crate::link::Link;
use crate::sessions::{self, Named};

/// An order to the session, or a display for it.
pub enum Call {
    /// A display that was let in, as what its secret is good for.
    Display(Entry, Box<Candidate<Link>>),
    /// The figures are wanted here.
    Info(OwnedFd),
    /// The display is to leave.
    Detach(OwnedFd),
    /// The viewers are to leave.
    DetachViews(OwnedFd),
    /// The viewer with this number is to leave.
    DetachView(u32, OwnedFd),
    /// The links that are good are wanted here, with who came by which.
    Links(OwnedFd),
    /// Who came by a link that was revoked is to leave; none of them can come again.
    LinksRevoked(LinksRevoked, OwnedFd),
    /// The session is to end.
    Stop(OwnedFd),
    /// This address is to be opened beside the display.
    OpenUrl(String, OwnedFd),
    /// To send this file to the display.
    Send(u64, String, OwnedFd),
    /// The program that the owner ran has ended.
    Ended(u8),
    /// The owner is gone.
    OwnerLeft,
}

/// Links that are good no more.
#[derive(Debug, Clone, Copy)]
pub struct LinksRevoked {
    /// Which; none is if it does not say.
    pub which: Option<LinkId>,
    /// There was such a link, or somebody who came by it and may come again; viewers that are there may not.
    pub any: bool,
    /// The display came by it.
    pub active: bool,
}

/// See the module.
pub struct ControlServer {
    named: Named,
    admission: Admission,
    visitors: Vec<Visitor>,
    owner: Option<Owner>,
    /// When to accept callers again, after descriptors ran out.
    rests_until: Time,
    /// There can be no more viewers.
    full: bool,
    /// When the session's files are to be looked after.
    refresh_at: Time,
    /// Calls of this turn.
    calls: VecDeque<Call>,
    reporter: Reporter,
}

impl Part for ControlServer {
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.until(self.next_timeout(now));
        self.fds(now).for_each(|fd| interests.add_borrowed(fd, PollFlags::IN));
    }

    fn turn(&mut self, now: Time, _hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        self.refresh(now);
        self.admission.count_sleep();
        if self.owner.as_ref().is_some_and(|owner| ready.has(&owner.socket)) {
            let owner = self.hear_owner();
            self.calls.extend(owner);
        }
        if ready.has(self.named.listener()) {
            self.accept(now);
        }
        for visitor in std::mem::take(&mut self.visitors) {
            match self.hear(visitor, now) {
                Fate::Stays(visitor) => self.visitors.push(visitor),
                Fate::Calls(call) => self.calls.push_back(call),
                Fate::Enters(socket, certificate) => self.enter(socket, Comes::Display(certificate), now),
                Fate::IsPage(socket, from) => self.enter(socket, Comes::Page(from), now),
                Fate::Leaves => {}
            }
        }
        let come = self.admission.turn(now).into_iter();
        self.calls.extend(come.map(|(entry, candidate)| Call::Display(entry, Box::new(candidate))));
        Ok(())
    }
}

/// A caller on the control socket.
struct Visitor {
    socket: OwnedFd,
    heard: Vec<u8>,
    until: Time,
    step: Step,
}

/// What a visitor must send next.
enum Step {
    Request,
    /// The display's fingerprint.
    Greeting(Role, Option<IpAddr>),
    /// How the display with this certificate comes.
    Choice(Fingerprint),
}

/// The launcher that started the session.
struct Owner {
    socket: OwnedFd,
    heard: Vec<u8>,
}

/// What became of a visitor.
enum Fate {
    Stays(Visitor),
    Calls(Call),
    /// It is a display on a byte stream, with this certificate.
    Enters(OwnedFd, Fingerprint),
    /// A page whose browser is there comes by it.
    IsPage(OwnedFd, SocketAddr),
    Leaves,
}

/// Who comes on a byte stream.
enum Comes {
    /// A display that was met, and told this certificate.
    Display(Fingerprint),
    /// A page, which was not: nothing is known of it but where its browser is.
    Page(SocketAddr),
}

impl ControlServer {
    /// Without callers.
    pub fn new(named: Named, admission: Admission, reporter: Reporter) -> Self {
        Self {
            named,
            admission,
            visitors: Vec::new(),
            owner: None,
            rests_until: Time::ZERO,
            full: false,
            refresh_at: Time::ZERO,
            calls: VecDeque::new(),
            reporter,
        }
    }

    /// With the connection of the launcher that started the session.
    #[must_use]
    pub fn with_owner(mut self, socket: OwnedFd) -> Self {
        self.owner = Some(Owner { socket, heard: Vec::new() });
        self
    }

    /// What the session is called.
    pub fn name(&self) -> &str {
        self.named.name()
    }

    /// For how many more viewers there are places: others are refused.
    pub fn set_free(&mut self, viewers: usize) {
        self.full = viewers == 0;
        self.admission.set_free(viewers);
    }

    /// Who may come again.
    pub fn admission(&mut self) -> &mut Admission {
        &mut self.admission
    }

    /// The same, to be looked at.
    pub fn admission_there(&self) -> &Admission {
        &self.admission
    }

    /// Tells the owner, if there is one.
    pub fn tell(&mut self, notice: &Notice) {
        let Some(owner) = &self.owner else { return };
        let line = control::line(notice);
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        // An owner that cannot take even a line is as good as gone; the next read shows it.
        if rustix::net::send(&owner.socket, &line, flags) != Ok(line.len()) {
            let _ = rustix::net::shutdown(&owner.socket, rustix::net::Shutdown::Both);
        }
    }

    /// What is wanted of the session next.
    pub fn poll_call(&mut self) -> Option<Call> {
        self.calls.pop_front()
    }

    /// What is polled for input.
    fn fds(&self, now: Time) -> impl Iterator<Item = BorrowedFd<'_>> {
        let listens = now >= self.rests_until && self.visitors.len() < MAX_VISITORS;
        let listener = listens.then(|| self.named.listener().as_fd());
        let visitors = self.visitors.iter().map(|visitor| visitor.socket.as_fd());
        let owner = self.owner.iter().map(|owner| owner.socket.as_fd());
        listener.into_iter().chain(visitors).chain(owner).chain(self.admission.fds())
    }

    /// When there is something to do although nothing comes.
    fn next_timeout(&self, now: Time) -> Option<Time> {
        let patience = self.visitors.iter().map(|visitor| visitor.until).min();
        let rest = (now < self.rests_until).then_some(self.rests_until);
        earlier(earlier(patience, rest), earlier(Some(self.refresh_at), self.admission.next_timeout()))
    }

    fn refresh(&mut self, now: Time) {
        if now < self.refresh_at {
            return;
        }
        self.refresh_at = now + sessions::REFRESH;
        if let Err(error) = self.named.refresh() {
            self.reporter.report(SessionEvent::ControlLost { reason: error.to_string() });
        }
    }

    fn accept(&mut self, now: Time) {
        while now >= self.rests_until && self.visitors.len() < MAX_VISITORS {
            match self.named.listener().accept() {
                Ok(Some(socket)) => {
                    let until = now + PATIENCE;
                    self.visitors.push(Visitor { socket, heard: Vec::new(), until, step: Step::Request });
                }
                Ok(None) => return,
                // Most likely no descriptors are left; callers wait in the queue.
                Err(_) => self.rests_until = now + REST,
            }
        }
    }

    fn hear_owner(&mut self) -> Option<Call> {
        let owner = self.owner.as_mut()?;
        match hear_line(&owner.socket, &mut owner.heard) {
            Heard::Nothing => None,
            Heard::Line(text) => match Ended::decode(&text) {
                Some(Ended(code)) => Some(Call::Ended(code)),
                None => self.lose_owner(),
            },
            Heard::End => self.lose_owner(),
        }
    }

    fn lose_owner(&mut self) -> Option<Call> {
        self.owner = None;
        Some(Call::OwnerLeft)
    }

    fn hear(&mut self, mut visitor: Visitor, now: Time) -> Fate {
        loop {
            let text = match hear_line(&visitor.socket, &mut visitor.heard) {
                Heard::Line(text) => text,
                Heard::Nothing if now < visitor.until => return Fate::Stays(visitor),
                Heard::Nothing | Heard::End => return Fate::Leaves,
            };
            visitor.step = match self.take(&visitor, &text, now) {
                Ok(Some(step)) => step,
                Ok(None) => return self.finish(visitor, &text, now),
                Err(why) => {
                    answer(&visitor.socket, &Answer::Not(why));
                    return Fate::Leaves;
                }
            };
            visitor.until = now + PATIENCE;
        }
    }

    /// What is waited for after this line; none when it was the last.
    fn take(&mut self, visitor: &Visitor, text: &str, now: Time) -> Result<Option<Step>, String> {
        match &visitor.step {
            Step::Request => match Request::decode(text) {
                Some(Request::Attach(reached)) => Ok(Some(Step::Greeting(Role::Active, reached))),
                Some(Request::View(reached)) => Ok(Some(Step::Greeting(Role::View, reached))),
                Some(Request::Ticket { view, good_for, page }) => {
                    let role = if view { Role::View } else { Role::Active };
                    let until = now + good_for.unwrap_or(TICKET_LIFE);
                    self.print_ticket(role, (until, now), page, visitor)
                }
                Some(Request::Share(wanted)) => {
                    let secret = Secret::from(random_bytes::<32>());
                    let link = share(&mut self.admission, wanted, secret, now)?;
                    answer(&visitor.socket, &Answer::Link(link));
                    Ok(None)
                }
                Some(Request::Revoke) => {
                    self.admission.revoke_tickets();
                    answer(&visitor.socket, &Answer::Done);
                    Ok(None)
                }
                Some(Request::CloseLink(id)) => {
                    self.admission.close_link(id, now);
                    answer(&visitor.socket, &Answer::Done);
                    Ok(None)
                }
                Some(Request::Info | Request::Detach | Request::DetachViews | Request::DetachView(_)) => {
                    Ok(None)
                }
                Some(Request::Links | Request::RevokeLinks(_) | Request::Page(_)) => Ok(None),
                Some(Request::Stop | Request::OpenUrl(_) | Request::Send { .. }) => Ok(None),
                Some(Request::Fetch(_)) => Err("a display alone fetches files".into()),
                None => Err(format!("`{text}` is nothing that this session knows")),
            },
            // Only now does the display listen.
            Step::Greeting(Role::View, _) if self.full => Err(FULL.into()),
            Step::Greeting(role, reached) => {
                let told = |error: Error| error.to_string();
                let Line::Greeting { fingerprint, secret } = Line::decode(text).map_err(told)? else {
                    return Err(format!("unexpected line `{text}`"));
                };
                let ticket = self.admission.invite(*role, fingerprint, secret, *reached, now);
                let name = self.named.name().to_owned();
                let line = Line::Ticket { ticket: ticket.to_string(), name }.encode();
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                match rustix::net::send(&visitor.socket, line.as_bytes(), flags) {
                    Ok(sent) if sent == line.len() => Ok(Some(Step::Choice(fingerprint))),
                    _ => Err("the ticket was not taken".into()),
                }
            }
            Step::Choice(_) => {
                if Line::decode(text).is_ok_and(|line| line == Line::AskAttempts) {
                    let line = Line::Attempts(self.admission.attempts()).encode();
                    // Who asks may have gone.
                    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                    let _ = rustix::net::send(&visitor.socket, line.as_bytes(), flags);
                }
                Ok(None)
            }
        }
    }

    fn print_ticket(
        &mut self,
        role: Role,
        (until, now): (Time, Time),
        page: Option<PageOrigin>,
        visitor: &Visitor,
    ) -> Result<Option<Step>, String> {
        let secret = Secret::from(random_bytes::<32>());
        let ticket = match page {
            Some(origin) => {
                let ticket = self.admission.page_ticket(role, secret, (until, now), origin);
                ticket.map_err(|error| error.to_string())?.ok_or("the session has no UDP port")?
            }
            None if self.admission.is_open() => self.admission.ticket(role, secret, until),
            None => return Err("only displays that ssh brings are let in".into()),
        };
        answer(&visitor.socket, &Answer::Ticket(ticket.to_string()));
        Ok(None)
    }

    /// What a visitor's last line leads to.
    fn finish(&mut self, visitor: Visitor, text: &str, now: Time) -> Fate {
        match visitor.step {
            Step::Request => match Request::decode(text) {
                Some(Request::Info) => Fate::Calls(Call::Info(visitor.socket)),
                // Whom an order sends away is forgotten at once: who is judged after this in the same turn is refused.
                Some(Request::Detach) => {
                    self.admission.forget_active();
                    Fate::Calls(Call::Detach(visitor.socket))
                }
                Some(Request::DetachViews) => {
                    // Or they would come by them again. One that has lost its link must not be let in either.
                    self.admission.revoke_view_links(now);
                    self.admission.forget_viewers();
                    Fate::Calls(Call::DetachViews(visitor.socket))
                }
                Some(Request::DetachView(number)) => Fate::Calls(Call::DetachView(number, visitor.socket)),
                Some(Request::Page(from)) => {
                    answer(&visitor.socket, &Answer::Done);
                    Fate::IsPage(visitor.socket, from)
                }
                Some(Request::Links) => Fate::Calls(Call::Links(visitor.socket)),
                Some(Request::RevokeLinks(which)) => {
                    let (any, active) = self.admission.revoke_links(which, now);
                    Fate::Calls(Call::LinksRevoked(LinksRevoked { which, any, active }, visitor.socket))
                }
                Some(Request::Stop) => Fate::Calls(Call::Stop(visitor.socket)),
                Some(Request::OpenUrl(url)) => Fate::Calls(Call::OpenUrl(url, visitor.socket)),
                Some(Request::Send { size, name }) => Fate::Calls(Call::Send(size, name, visitor.socket)),
                _ => Fate::Leaves,
            },
            Step::Choice(certificate) => match Line::decode(text) {
                Ok(Line::Choice(Choice::Stream)) => Fate::Enters(visitor.socket, certificate),
                // By QUIC it comes to the admission by itself.
                _ => Fate::Leaves,
            },
            Step::Greeting(..) => Fate::Leaves,
        }
    }

    /// Somebody comes on the socket on which that was said.
    fn enter(&mut self, socket: OwnedFd, who: Comes, now: Time) {
        match (carriers::byte_stream(socket), who) {
            (Ok(carrier), Comes::Display(certificate)) => self.admission.add(carrier, certificate, now),
            (Ok(carrier), Comes::Page(from)) => self.admission.add_page(carrier, from, now),
            (Err(error), _) => self.reporter.report(SessionEvent::DisplayRejected { error }),
        }
    }
}

/// Makes a link as it is wanted, or says why not.
fn share(admission: &mut Admission, wanted: Share, secret: Secret, now: Time) -> Result<NewLink, String> {
    let Share { control, good_for, page, reached } = wanted;
    let (role, life, most, uses) = match control {
        true => (Role::Active, CONTROL_LIFE, CONTROL_LIFE_MAX, 1),
        false => (Role::View, VIEW_LIFE, VIEW_LIFE_MAX, VIEW_USES_MAX),
    };
    let good_for = good_for.unwrap_or(life);
    if good_for > most {
        let what = if control { "control" } else { "viewing" };
        return Err(format!("a link for {what} is good for {} h at most", most.as_secs() / 3_600));
    }
    let good = (now + good_for, uses);
    let (id, ticket) = admission.link((role, good), secret, page, reached, now)?;
    Ok(NewLink { id, control, seconds: good_for.as_secs(), uses, ticket: ticket.to_string() })
}

/// Answers a caller; one that has gone is no trouble.
pub fn answer(socket: &OwnedFd, answer: &Answer) {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let _ = rustix::net::send(socket, &control::line(answer), flags);
}

pub(crate) enum Heard {
    Line(String),
    Nothing,
    End,
}

/// Reads up to the end of a line, and nothing behind it: a carrier's bytes may follow.
pub(crate) fn hear_line(socket: &OwnedFd, heard: &mut Vec<u8>) -> Heard {
    loop {
        let mut byte = [0];
        match rustix::net::recv(socket, &mut byte, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Heard::End,
            Ok(_) if byte == *b"\n" => {
                return String::from_utf8(std::mem::take(heard)).map_or(Heard::End, Heard::Line);
            }
            Ok(_) if heard.len() >= control::MAX_LINE => return Heard::End,
            Ok(_) => heard.push(byte[0]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Heard::Nothing,
            Err(_) => return Heard::End,
        }
    }
}

/// How long a printed ticket is good, if its user does not say.
pub const TICKET_LIFE: Duration = Duration::from_secs(3_600);
/// How long a link for control is good, if its user does not say.
pub const CONTROL_LIFE: Duration = Duration::from_secs(600);
/// The most that its user may say.
pub const CONTROL_LIFE_MAX: Duration = Duration::from_secs(3_600);
/// The same of a link for viewing.
pub const VIEW_LIFE: Duration = Duration::from_secs(3_600);
/// The most that its user may say.
pub const VIEW_LIFE_MAX: Duration = Duration::from_secs(24 * 3_600);
/// How many may come by a link for viewing.
const VIEW_USES_MAX: u8 = 8;
/// Callers connected at once.
const MAX_VISITORS: usize = 32;
/// How long each may take for a line; a display's attempt at QUIC is between two of them.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long callers wait when no descriptors are left.
const REST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::path::Path;

    use wayferry_net::quic::{Listener, Options};
    use wayferry_net::{ByteStream, Identity, Peers, Ticket};
    use wayferry_proto::{Capabilities, Config, Control, Event, Session, Side};

    use super::*;
    use crate::bootstrap::{hear, say};
    use crate::clock::Clock;
    use crate::edge::part::{Base, alone};
    use crate::edge::socket::RuntimeDir;

    fn server(dir: &Path) -> ControlServer {
        let named = Named::claim_in(dir, &[dir.to_owned()], "foot", true).expect("free");
        let config = Config { capabilities: Capabilities::RESUME, ..Config::new(Side::App) };
        let reporter = Reporter::new(|_| {});
        let admission = Admission::new(None, Fingerprint([7; 32]), config, reporter.clone());
        ControlServer::new(named, admission, reporter)
    }

    fn secret() -> Secret {
        Secret::from([9; 32])
    }

    /// A display that has asked to attach.
    fn caller(dir: &Path) -> OwnedFd {
        let socket = OwnedFd::from(UnixStream::connect(dir.join("foot")).expect("it listens"));
        let request = control::line(&Request::Attach(None));
        rustix::net::send(&socket, &request, SendFlags::NOSIGNAL).expect("there is room");
        socket
    }

    fn greet(socket: &OwnedFd) {
        let greeting = Line::Greeting { fingerprint: Fingerprint([1; 32]), secret: secret() };
        say(socket, &greeting).expect("there is room");
    }

    /// Gives the server turns until there is something of this kind.
    fn turns<T>(server: &mut ControlServer, mut find: impl FnMut(&mut ControlServer) -> Option<T>) -> T {
        let (mut base, _events): (Base, _) = alone::base();
        loop {
            alone::turn(server, base.clock.now(), &mut base);
            if let Some(found) = find(server) {
                return found;
            }
            std::thread::yield_now();
        }
    }

    /// All that a caller is told up to its end.
    fn answer_to(server: &mut ControlServer, socket: &OwnedFd) -> String {
        let mut told = Vec::new();
        turns(server, |server| {
            assert!(server.poll_call().is_none(), "it is no display");
            let mut piece = [0; 512];
            match rustix::net::recv(socket, &mut piece, RecvFlags::DONTWAIT) {
                Ok((0, _)) | Err(Errno::CONNRESET) => Some(()),
                Ok((count, _)) => {
                    told.extend_from_slice(&piece[..count]);
                    None
                }
                Err(_) => None,
            }
        });
        String::from_utf8_lossy(&told).into_owned()
    }

    #[test]
    fn a_display_that_says_all_in_one_flight_is_let_in_with_it() {
        let dir = RuntimeDir::private().expect("a directory");
        let mut server = server(dir.path());
        let socket = caller(dir.path());
        greet(&socket);
        say(&socket, &Line::Choice(Choice::Stream)).expect("there is room");
        let config = Config { secret: Some(secret()), ..Config::new(Side::Display) };
        let mut session = Session::new(config);
        session.control(&Control::Snapshot(vec![5; 3].into())).expect("it is short");
        let carrier = ByteStream::spawn_unread(socket.try_clone().expect("dup")).expect("a carrier");
        let mut display = Link::new(session, carrier);
        display.transmit(Time::ZERO);
        let Call::Display(entry, candidate) = turns(&mut server, ControlServer::poll_call) else {
            panic!("it is let in before it has heard a word")
        };
        assert_eq!(entry.role, Role::Active);
        let mut app = candidate.begin(Time::ZERO);
        app.transmit(Time::ZERO);
        // The ticket's line comes before what the other carrier says, and the display reads it in time.
        let clock = Clock::start();
        let Ok(Line::Ticket { ticket, name }) = hear(&socket, &clock, clock.now(), None) else {
            panic!("there is a ticket")
        };
        let ticket: Ticket = ticket.parse().expect("a ticket");
        assert_eq!((name.as_str(), ticket.secret), ("foot", secret()));
        while !matches!(display.poll_event(), Some(Event::Ready { .. })) {
            display.receive(Time::ZERO);
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_flight_that_is_no_displays_is_refused() {
        let dir = RuntimeDir::private().expect("a directory");
        let mut server = server(dir.path());
        let other = Line::Greeting { fingerprint: Fingerprint([1; 32]), secret: Secret::from([8; 32]) };
        for (lines, behind) in [
            // No carrier's bytes, and a session that shows another secret than it was greeted with.
            (other.encode(), b"what is this\n".to_vec()),
            (other.encode(), Vec::new()),
        ] {
            let socket = caller(dir.path());
            let flight =
                [lines.as_bytes(), Line::Choice(Choice::Stream).encode().as_bytes(), &behind].concat();
            rustix::net::send(&socket, &flight, SendFlags::NOSIGNAL).expect("there is room");
            let display = behind.is_empty().then(|| {
                let config = Config { secret: Some(secret()), ..Config::new(Side::Display) };
                let carrier = ByteStream::spawn_unread(socket.try_clone().expect("dup")).expect("a carrier");
                let mut display = Link::new(Session::new(config), carrier);
                display.transmit(Time::ZERO);
                display
            });
            assert!(answer_to(&mut server, &socket).starts_with("ticket "));
            drop(display);
        }
    }

    #[test]
    fn what_greets_in_another_version_or_not_at_all_is_told_so() {
        let dir = RuntimeDir::private().expect("a directory");
        let mut server = server(dir.path());
        let older = format!("wayferry 1 {}", "ab".repeat(32));
        for (text, why) in [
            (older.as_str(), "the other side meets in version 1, this one in version 2"),
            ("wayferry 3 x y z", "the other side meets in version 3, this one in version 2"),
            ("stream", "unexpected line `stream`"),
            ("welcome to this machine", "unexpected line `welcome to this machine`"),
        ] {
            let socket = caller(dir.path());
            let flight = format!("{text}\nstream\nWFMUX1\r\n");
            rustix::net::send(&socket, flight.as_bytes(), SendFlags::NOSIGNAL).expect("there is room");
            let answer = answer_to(&mut server, &socket);
            assert!(answer.starts_with("not ") && answer.contains(why), "{text}: {answer}");
        }
    }

    /// A session to which links lead.
    fn server_with_port(dir: &Path) -> ControlServer {
        let own = Identity::ephemeral().expect("randomness");
        let at = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
        let listener = Listener::bind(at, None, &own, Peers::Secret, &Options::default()).expect("a port");
        let named = Named::claim_in(dir, &[dir.to_owned()], "foot", true).expect("free");
        let config =
            Config { capabilities: Capabilities::RESUME.with(Capabilities::VIEW), ..Config::new(Side::App) };
        let reporter = Reporter::new(|_| {});
        let admission = Admission::new(Some(listener), own.fingerprint(), config, reporter.clone());
        ControlServer::new(named, admission, reporter)
    }

    /// A link of that session, and its secret.
    fn link(server: &mut ControlServer, control: bool) -> (LinkId, Secret) {
        let page = "http://localhost:8000".parse().expect("an origin");
        let wanted = Share { control, good_for: None, page, reached: None };
        let secret = Secret::from(random_bytes::<32>());
        let link = share(server.admission(), wanted, secret, Time::ZERO).expect("a link");
        (link.id, secret)
    }

    /// A page whose browser is there says this on a byte stream.
    fn page(dir: &Path, secret: Secret, capabilities: Capabilities) -> (OwnedFd, Link) {
        let socket = OwnedFd::from(UnixStream::connect(dir.join("foot")).expect("it listens"));
        rustix::net::send(&socket, &control::line(&Request::Page(browser())), SendFlags::NOSIGNAL)
            .expect("there is room");
        let config = Config { secret: Some(secret), capabilities, ..Config::new(Side::Display) };
        let carrier = ByteStream::spawn_unread(socket.try_clone().expect("dup")).expect("a carrier");
        let mut display = Link::new(Session::new(config), carrier);
        display.transmit(Time::ZERO);
        (socket, display)
    }

    fn browser() -> SocketAddr {
        "192.0.2.7:50112".parse().expect("an address")
    }

    #[test]
    fn a_page_that_is_brought_is_let_in_by_its_link_as_what_that_says() {
        let dir = RuntimeDir::private().expect("a directory");
        let mut server = server_with_port(dir.path());
        for (control, role, says) in
            [(false, Role::View, Capabilities::VIEW), (true, Role::Active, Capabilities::NONE)]
        {
            let (id, secret) = link(&mut server, control);
            let (socket, mut display) = page(dir.path(), secret, says);
            let Call::Display(entry, candidate) = turns(&mut server, ControlServer::poll_call) else {
                panic!("it is let in")
            };
            assert_eq!(entry, Entry { role, link: Some(id) });
            assert_eq!(candidate.holder().from(), Some(browser()), "as list will have it");
            let mut heard = Vec::new();
            let Heard::Line(line) = hear_line(&socket, &mut heard) else { panic!("it is told") };
            assert_eq!(line, "done", "what follows is the carrier's");
            let mut app = if control { candidate.begin(Time::ZERO) } else { candidate.forgo(Time::ZERO) };
            app.transmit(Time::ZERO);
            while !matches!(display.poll_event(), Some(Event::Ready { .. })) {
                display.receive(Time::ZERO);
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn a_page_that_is_brought_is_nothing_but_a_page() {
        let dir = RuntimeDir::private().expect("a directory");
        let mut server = server_with_port(dir.path());
        let (id, revoked) = link(&mut server, true);
        assert!(server.admission().revoke_links(Some(id), Time::ZERO).0);
        let (_, view) = link(&mut server, false);
        let (printed, met) = (Secret::from([3; 32]), Secret::from([4; 32]));
        let later = Time::ZERO + TICKET_LIFE;
        drop(server.admission().ticket(Role::Active, printed, later));
        drop(server.admission().invite(Role::Active, Fingerprint([1; 32]), met, None, Time::ZERO));
        for (secret, says, why) in [
            (Secret::from([9; 32]), Capabilities::VIEW, "a secret of no link"),
            (revoked, Capabilities::NONE, "a link that was taken back"),
            (view, Capabilities::NONE, "a link for viewing, for more"),
            (printed, Capabilities::NONE, "a ticket's secret"),
            (met, Capabilities::NONE, "that of a display that ssh has brought"),
        ] {
            let (socket, display) = page(dir.path(), secret, says);
            let told = answer_to(&mut server, &socket);
            assert!(told.starts_with("done\nWFMUX1\r\n"), "{why}: {told}");
            drop(display);
        }
        // Nor does it speak to the session as who brings it does.
        let socket = OwnedFd::from(UnixStream::connect(dir.path().join("foot")).expect("it listens"));
        let flight = [control::line(&Request::Page(browser())), control::line(&Request::Stop)].concat();
        rustix::net::send(&socket, &flight, SendFlags::NOSIGNAL).expect("there is room");
        assert!(answer_to(&mut server, &socket).starts_with("done\nWFMUX1\r\n"));
    }
}
