//! The display side of a session, from the moment when it can hear the app side to the session's end or its own.
//!
//! However the two sides found each other, they meet over a socket ([`wayferry_host::bootstrap`]). It carries the
//! session at once, before the other side has said anything where nothing else can read that; QUIC is raced to the
//! addresses that the session names, and when it answers, the session moves there ([`wayferry_host::returning`]). A
//! view-only display waits for QUIC, as it is told everything anew on each carrier. Invariant: the compositor was
//! looked at before anybody was asked for anything.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use wayferry_net::quic::Reconnect;
use wayferry_net::{Identity, Ticket, Trust};
use wayferry_proto::{Capabilities, Config, Secret, Session, Side};

use crate::browser::{self, Asking};
use crate::flags::{OwnFlags, Switch};
use crate::memory::Memory;
use crate::session::{options, settings, trace_file};
use crate::tell::{notice, reporter};
use crate::transfer;
use crate::user_dirs;
use wayferry_host::bootstrap::{Choice, Line, hear_past, say, say_all};
use wayferry_host::carriers;
use wayferry_host::clock::Clock;
use wayferry_host::display_side::{Compositor, DisplaySide, Outcome, Watched};
use wayferry_host::edge::context::Context;
use wayferry_host::edge::counter::Counter;
use wayferry_host::edge::offer::Offer;
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::{Listener, random_bytes};
use wayferry_host::error::Error;
use wayferry_host::event::SessionEvent;
use wayferry_host::files::Files;
use wayferry_host::link::Link;
use wayferry_host::notes::Showing;
use wayferry_host::opening::Opening;
use wayferry_host::reconnect::{Other, Ways};
use wayferry_host::returning::{Better, Return};
use wayferry_host::sanitize::sanitize;
use wayferry_host::sound::{Audio, Hearing, Output, Speaking};
use wayferry_host::trace::Half;
use wayferry_host::tray;
use wayferry_wayland::display::Wishes;

/// A display that is ready for a session.
pub(crate) struct Viewer<'a> {
    own: &'a OwnFlags,
    signals: &'a Signals,
    clock: Clock,
    watched: Watched,
    /// Ends with the display.
    context: Option<Context>,
    identity: Arc<Identity>,
    view_only: bool,
    /// The other machine, as mixers here are to call it.
    host: Option<String>,
    /// The terminal is ssh's, which reads it.
    terminal_is_taken: bool,
}

/// What is told of a session here.
struct Caption<'a> {
    name: Option<&'a str>,
    /// The address that it is at, where nothing else is known of the other machine.
    from: Option<String>,
    /// As `attach` takes it.
    place: Option<String>,
    /// Put before its windows' titles unless the user has chosen something else.
    prefix: String,
}

/// Where a session is met.
pub(crate) struct Meeting {
    /// It is at the other end.
    pub(crate) socket: OwnedFd,
    /// What was said there already.
    pub(crate) begun: Option<Begun>,
    /// A command leads there, which may take as long as it likes, for a password or a place in a queue.
    pub(crate) login: bool,
    /// How to get away from the socket; not at all where it goes no further than this machine.
    pub(crate) quic: Option<Lookup>,
    /// Where the other side connects anew when it misses this one.
    pub(crate) standby: Option<Listener>,
}

/// Looks up where the session's port, which it is given, may be reached besides where the session says.
pub(crate) type Lookup = Box<dyn FnOnce(u16) -> Vec<SocketAddr> + Send>;

/// A session that has begun on a socket of which nothing has been read.
pub(crate) struct Begun {
    config: Config,
    link: Link,
}

/// The link to the session, and what more there is.
struct Carried {
    link: Link,
    quic: Option<Reconnect>,
    better: Option<Better>,
}

impl<'a> Viewer<'a> {
    /// Looks at the compositor.
    ///
    /// # Errors
    /// There is none that could show windows.
    pub(crate) fn new(own: &'a OwnFlags, signals: &'a Signals) -> Result<Self, Error> {
        let clock = Clock::start();
        let compositor = Compositor::from_environment()?;
        let context = match (&own.show.secctx, &compositor) {
            (Some(app_id), Compositor::At(path)) => Context::new(path, app_id)?,
            _ => None,
        };
        if own.show.secctx.is_some() && context.is_none() {
            notice("the compositor offers no security contexts; windows are shown as those of any program");
        }
        let compositor = context.as_ref().map_or(compositor, |context| Compositor::At(context.socket()));
        let watched = Watched::new(compositor, clock, Some(signals))?;
        Ok(Self {
            own,
            signals,
            clock,
            watched,
            context,
            identity: carriers::identity()?,
            view_only: false,
            host: None,
            terminal_is_taken: false,
        })
    }

    /// Of a session on this machine.
    #[must_use]
    pub(crate) fn of(self, host: &str) -> Self {
        Self { host: Some(sanitize(host)), ..self }
    }

    /// While another program reads the terminal.
    #[must_use]
    pub(crate) fn without_terminal(self) -> Self {
        Self { terminal_is_taken: true, ..self }
    }

    /// As a viewer, or not.
    #[must_use]
    pub(crate) fn view_only(self, view_only: bool) -> Self {
        Self { view_only, ..self }
    }

    /// Says all that a display says first: who it is, and what is known of the compositor. For a socket that leads to
    /// the other side alone, which may be yet to come.
    ///
    /// # Errors
    /// The socket takes nothing.
    pub(crate) fn begin(&mut self, socket: &OwnedFd) -> Result<Begun, Error> {
        let (greeting, config) = self.greeting();
        say_all(socket, &[greeting, Line::Choice(Choice::Stream)])?;
        let link = self.carry(socket, &config)?;
        Ok(Begun { config, link })
    }

    /// Meets a session and shows it. `other` is a way back to the session of that name, should it be lost, and what
    /// `attach` calls it.
    ///
    /// # Errors
    /// The two do not meet, or what ended the session.
    pub(crate) fn meet(
        mut self,
        meeting: Meeting,
        other: impl FnOnce(String) -> (Other, Option<String>),
    ) -> Result<Outcome, Error> {
        let Meeting { socket, begun, login, quic, standby } = meeting;
        let deadline = self.clock.now() + if login { LOGIN_PATIENCE } else { MEET_PATIENCE };
        let waits = self.view_only && quic.is_some();
        // A command that is not there yet could read this in its session's place, or be too long in coming.
        let (mut config, begun) = match begun {
            None if waits || login => {
                let (greeting, config) = self.greeting();
                say(&socket, &greeting)?;
                (config, None)
            }
            begun => {
                let Begun { config, link } = begun.map_or_else(|| self.begin(&socket), Ok)?;
                (config, Some(link))
            }
        };
        let heard = hear_past(&socket, &self.clock, deadline, Some(self.signals))?;
        let Line::Ticket { ticket, name } = heard else { return Err(heard.is_no_ticket()) };
        let ticket: Ticket = ticket.parse().map_err(|error| Error::Bootstrap(format!("{error}")))?;
        config.session = ticket.session;
        let port = ticket.addresses.first().map_or(0, SocketAddr::port);
        let carried = match (quic.filter(|_| port != 0), begun) {
            (Some(lookup), None) if self.view_only => {
                let more = further(&ticket.addresses, lookup(port));
                self.on_quic(&[&ticket.addresses[..], &more].concat(), &ticket, &socket, &config)?
            }
            (lookup, begun) => {
                let mut link = begun.map_or_else(|| self.on_socket(&socket, &config), Ok)?;
                link.session.await_peer(self.clock.now());
                let more = lookup.map(|lookup| {
                    let known = ticket.addresses.clone();
                    move || further(&known, lookup(port))
                });
                self.towards_quic(link, &ticket, more, &socket, standby)?
            }
        };
        let (back, place) = other(name.clone());
        let prefix = if self.view_only { VIEW.into() } else { String::new() };
        let caption = Caption { name: Some(&name), from: None, place, prefix };
        let outcome = self.show(config, caption, carried, Some(back));
        // Until now: its end tells the other side that this one has gone.
        drop(socket);
        outcome
    }

    /// Who this is, and what goes with that.
    fn greeting(&self) -> (Line, Config) {
        let secret = Secret::from(random_bytes::<32>());
        let config = self.config(secret);
        (Line::Greeting { fingerprint: self.identity.fingerprint(), secret }, config)
    }

    /// Shows the session of a ticket, reached at `addresses`, if `trust` finds it there.
    ///
    /// # Errors
    /// Nothing answers there, or what ended the session.
    pub(crate) fn redeem(
        self,
        ticket: &Ticket,
        trust: Trust,
        addresses: &[SocketAddr],
        patience: Duration,
    ) -> Result<Outcome, Error> {
        let (carrier, quic) = carriers::connect(
            &options(self.own),
            addresses,
            &self.identity,
            trust,
            patience,
            self.signals,
            &reporter(),
        )?;
        // Who printed the ticket is not known to be the user.
        let from = addresses.first().map(|address| address.ip().to_string());
        let prefix = from.as_ref().filter(|_| !self.view_only);
        let prefix = prefix.map_or_else(|| VIEW.into(), |from| format!("{from}: "));
        let config = Config { session: ticket.session, ..self.config(ticket.secret) };
        let link = Link::new(Session::new(config.clone()), carrier);
        let carried = Carried { link, quic: Some(quic), better: None };
        self.show(config, Caption { name: None, from, place: None, prefix }, carried, None)
    }

    fn show(
        self,
        config: Config,
        caption: Caption<'_>,
        carried: Carried,
        other: Option<Other>,
    ) -> Result<Outcome, Error> {
        let Carried { link, quic, better } = carried;
        let ways = Ways { identity: Arc::clone(&self.identity), quic, other };
        let sound = self.sound(caption.name)?;
        let microphone = self.microphone(caption.name)?;
        let opening = self.opening(caption.name)?;
        let files = self.files(caption.name)?;
        // Without files it says so.
        let counter = if self.view_only { None } else { Counter::new(&reporter()) };
        let tray = self.tray(caption.from.clone())?;
        let showing = self.showing(caption.from)?;
        // Until the session is over.
        let _context = self.context;
        let trace = trace_file(self.own, Some(Half::Display))?;
        DisplaySide::new(self.watched, self.clock, link, self.own.side.stats, reporter())
            .with_view_only(self.view_only)
            .with_title_prefix(self.own.show.title_prefix.clone().unwrap_or(caption.prefix))
            .with_predict(self.own.show.predict.clone().unwrap_or_default())
            .with_place(caption.place)
            .with_sound(sound)
            .with_microphone(microphone)
            .with_opening(opening)
            .with_files(files, counter)
            .with_showing(showing)
            .with_tray(tray)
            .with_return(Return::new(config, ways).with_better(better))
            .with_allowed(self.own.side.allow.clone())
            .with_trace(trace)
            .with_signals(self.signals)
            .with_offer(Offer::new(Side::Display, &reporter()))
            .run()
    }

    /// What a session is told first, which this secret lets in.
    fn config(&self, secret: Secret) -> Config {
        let mut config = settings(self.own).session(Side::Display, &self.clock);
        let offers = [
            (self.view_only, Capabilities::VIEW),
            (self.audio() != Audio::Off || self.speaks(), Capabilities::SOUND),
            (self.view_only, Capabilities::SHARED_SOUND),
            (self.speaks(), Capabilities::MICROPHONE),
            (self.may_open(), Capabilities::OPEN_URL),
            (self.takes_files(), Capabilities::FILES.with(Capabilities::FILE_PLACES)),
            (self.shows(self.own.side.notifications), Capabilities::NOTIFY),
            (self.shows(self.own.side.tray), Capabilities::TRAY),
            (self.predicts(), Capabilities::ECHO),
        ];
        let offered = offers.into_iter().filter_map(|(is_offered, what)| is_offered.then_some(what));
        config.capabilities = offered.fold(config.capabilities, Capabilities::with);
        config.secret = Some(secret);
        config.resume = Some(Secret::from(random_bytes::<32>()));
        config
    }

    /// Whether what is typed is drawn before it is answered. Viewers type nothing.
    fn predicts(&self) -> bool {
        !self.view_only && !self.own.show.predict.as_ref().is_some_and(Wishes::are_none)
    }

    /// Whether sound is played here, and how it comes. Viewers hear it if they say so.
    fn audio(&self) -> Audio {
        self.own.side.audio.unwrap_or(if self.view_only { Audio::Off } else { Audio::Auto })
    }

    /// Whether programs may hear the microphone here. Viewers have no say.
    fn speaks(&self) -> bool {
        self.own.show.microphone && !self.view_only
    }

    /// Whether the host may ask to have addresses opened here. Viewers are not asked.
    fn may_open(&self) -> bool {
        let memory = self.host.as_deref().and_then(Memory::of);
        !self.view_only && browser::may_open(self.own.show.open_url, memory.as_ref())
    }

    /// Whether the session's files may come, and have a place here. Viewers get none.
    fn takes_files(&self) -> bool {
        self.own.side.files != Some(Switch::Off) && !self.view_only && user_dirs::home().is_some()
    }

    /// Whether what programs want to have shown beside their windows is shown here. Viewers have none.
    fn shows(&self, wish: Option<Switch>) -> bool {
        !self.view_only && wish != Some(Switch::Off)
    }

    /// What plays the session's sound here.
    fn sound(&self, name: Option<&str>) -> Result<Option<Hearing>, Error> {
        let output = match &self.own.show.audio_sink {
            Some(path) => Output::File(path.clone()),
            None => Output::Desk { name: self.desk_name(name) },
        };
        let sound = Hearing::new(self.audio(), output, self.clock);
        sound.map_err(|source| Error::System { doing: "preparing to play sound", source })
    }

    /// What sends the microphone here to programs that record, if they may.
    fn microphone(&self, name: Option<&str>) -> Result<Option<Speaking>, Error> {
        if !self.speaks() {
            return Ok(None);
        }
        let (audio, mode) =
            (self.own.side.audio.unwrap_or_default(), self.own.side.audio_mode.unwrap_or_default());
        let speaking = Speaking::new(audio, mode, &self.desk_name(name), self.clock);
        speaking.map(Some).map_err(|source| Error::System { doing: "preparing the microphone", source })
    }

    /// What opens addresses here, if the user lets the host ask.
    fn opening(&self, name: Option<&str>) -> Result<Option<Opening>, Error> {
        // The session's name is the peer's word, by which nothing is remembered.
        let memory = self.host.as_deref().and_then(Memory::of);
        let host = self.host.clone().or(name.map(sanitize)).unwrap_or_else(|| THE_HOST.into());
        let how = self.own.show.open_url;
        let open = browser::opener(how, host, memory, self.asking()).filter(|_| !self.view_only);
        let opening = open.map(Opening::start).transpose();
        opening.map_err(|source| Error::System { doing: "preparing to open addresses", source })
    }

    /// How the user is asked, if need be.
    fn asking(&self) -> Asking {
        match self.own.side.notifications {
            _ if !self.terminal_is_taken && std::io::stderr().is_terminal() => Asking::Terminal,
            Some(Switch::Off) => Asking::Nowhere,
            _ => Asking::Desk,
        }
    }

    /// What keeps the session's files here, if the user lets them come.
    fn files(&self, name: Option<&str>) -> Result<Option<Files>, Error> {
        if !self.takes_files() {
            return Ok(None);
        }
        let origin = transfer::origin(self.host.as_deref(), name);
        let files = transfer::place(&origin).map(|place| Files::new(place, None)).transpose();
        files.map_err(|source| Error::System { doing: "preparing to keep files", source })
    }

    /// What shows notifications here, if the user wants any. They tell whose they are, so the host has no say in that
    /// name.
    fn showing(&self, from: Option<String>) -> Result<Option<Showing>, Error> {
        if !self.shows(self.own.side.notifications) {
            return Ok(None);
        }
        let showing = Showing::start(self.host.clone().or(from).unwrap_or_else(|| THE_HOST.into()));
        let is_only_way = !std::io::stderr().is_terminal();
        let showing = showing.map(|showing| showing.instead_of_terminal(is_only_way));
        showing.map(Some).map_err(|source| Error::System { doing: "preparing to show notifications", source })
    }

    /// What shows icons in the tray here, if the user wants any. They tell whose they are, as notifications do.
    fn tray(&self, from: Option<String>) -> Result<Option<tray::Showing>, Error> {
        if !self.shows(self.own.side.tray) {
            return Ok(None);
        }
        let tray = tray::Showing::start(self.host.clone().or(from).unwrap_or_else(|| THE_HOST.into()));
        tray.map(Some)
            .map_err(|source| Error::System { doing: "preparing to show icons in the tray", source })
    }

    /// What the mixer here shows.
    fn desk_name(&self, name: Option<&str>) -> String {
        match (name.map(sanitize), self.host.clone()) {
            (Some(name), Some(host)) => format!("Wayferry: {name} @ {host}"),
            (Some(one), None) | (None, Some(one)) => format!("Wayferry: {one}"),
            (None, None) => "Wayferry".into(),
        }
    }

    /// The socket, which has not been chosen yet.
    fn on_socket(&mut self, socket: &OwnedFd, config: &Config) -> Result<Link, Error> {
        say(socket, &Line::Choice(Choice::Stream))?;
        self.carry(socket, config)
    }

    /// Begins on the socket: the hello and what is known of the compositor leave at once. Nothing is read until the
    /// session runs.
    fn carry(&mut self, socket: &OwnedFd, config: &Config) -> Result<Link, Error> {
        let mut session = Session::new(config.clone());
        self.watched.tell(&mut session);
        let mut link = Link::new(session, carriers::byte_stream_behind_lines(dup(socket)?)?);
        link.transmit(self.clock.now());
        Ok(link)
    }

    /// The socket, until QUIC answers, if there is any to look for.
    fn towards_quic(
        &self,
        link: Link,
        ticket: &Ticket,
        more: Option<impl FnOnce() -> Vec<SocketAddr> + Send + 'static>,
        socket: &OwnedFd,
        standby: Option<Listener>,
    ) -> Result<Carried, Error> {
        let Some(more) = more else { return Ok(Carried { link, quic: None, better: None }) };
        let quic =
            carriers::reconnect(&options(self.own), &ticket.addresses, &self.identity, ticket.fingerprint)?;
        let better = Better::new(quic.clone(), more, dup(socket)?, standby, self.clock.now())?;
        Ok(Carried { link, quic: Some(quic), better: Some(better) })
    }

    /// QUIC if it answers, else the socket.
    fn on_quic(
        &mut self,
        addresses: &[SocketAddr],
        ticket: &Ticket,
        socket: &OwnedFd,
        config: &Config,
    ) -> Result<Carried, Error> {
        match carriers::connect(
            &options(self.own),
            addresses,
            &self.identity,
            ticket.fingerprint,
            QUIC_PATIENCE,
            self.signals,
            &reporter(),
        ) {
            Ok((carrier, reconnect)) => {
                say(socket, &Line::Choice(Choice::Quic))?;
                let link = Link::new(Session::new(config.clone()), carrier);
                Ok(Carried { link, quic: Some(reconnect), better: None })
            }
            Err(error @ Error::Signal(_)) => Err(error),
            // Also where another host answers: the socket leads to the right one.
            Err(error) => {
                let port = addresses.first().map_or(0, SocketAddr::port);
                reporter().report(SessionEvent::QuicUnreachable { port, reason: error.to_string() });
                Ok(Carried { link: self.on_socket(socket, config)?, quic: None, better: None })
            }
        }
    }
}

/// Those addresses that are new, as far as there is room for them.
pub(crate) fn further(known: &[SocketAddr], found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let new = found.into_iter().filter(|address| !known.contains(address));
    new.take(MAX_ADDRESSES.saturating_sub(known.len())).collect()
}

fn dup(socket: &OwnedFd) -> Result<OwnedFd, Error> {
    socket.try_clone().map_err(|source| Error::System { doing: "dup", source })
}

/// Another machine of which no name is known.
const THE_HOST: &str = "the host";
/// Put before the titles of windows that are only looked at.
const VIEW: &str = "view: ";
/// Addresses to race: the host's own and those of its name.
const MAX_ADDRESSES: usize = 16;
/// How long a view-only display waits for QUIC.
const QUIC_PATIENCE: Duration = Duration::from_secs(3);
/// How long the other side may take for its line, once it is there.
const MEET_PATIENCE: Duration = Duration::from_secs(20);
/// How long a command may take to get there; its end, or a signal, comes first.
const LOGIN_PATIENCE: Duration = Duration::from_secs(30 * 86_400);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regression_a_name_with_many_addresses_has_them_all_raced() {
        let addresses = |range: std::ops::Range<u8>| -> Vec<SocketAddr> {
            range.map(|last| ([192, 0, 2, last], 9).into()).collect()
        };
        assert_eq!(further(&addresses(0..2), addresses(1..4)), addresses(2..4));
        assert_eq!(further(&addresses(0..2), addresses(2..99)), addresses(2..16));
        assert_eq!(further(&addresses(0..20), addresses(20..99)), []);
    }
}
