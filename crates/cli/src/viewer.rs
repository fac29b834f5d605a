//! The display side of a session, from the moment when it can hear the app side to the session's end or its own.
//!
//! However the two sides found each other, they meet over a socket ([`wayferry_host::bootstrap`]); then QUIC is raced
//! to the addresses that the session names, and if nothing answers, that socket carries the session. Invariant: the
//! compositor was looked at before anybody was asked for anything.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use wayferry_net::quic::Reconnect;
use wayferry_net::{Carrier, Identity, Ticket, Trust};
use wayferry_proto::{Capabilities, Secret, Session, Side};

use crate::browser;
use crate::flags::OwnFlags;
use crate::session::{options, settings, trace_file};
use crate::tell::{OwnEvent, notice, reporter, tell};
use wayferry_host::bootstrap::{Choice, Line, hear_past, say};
use wayferry_host::carriers;
use wayferry_host::clock::Clock;
use wayferry_host::display_side::{Compositor, DisplaySide, Outcome, Watched};
use wayferry_host::edge::context::Context;
use wayferry_host::edge::offer::Offer;
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::random_bytes;
use wayferry_host::error::Error;
use wayferry_host::link::Link;
use wayferry_host::opening::Opening;
use wayferry_host::reconnect::{Other, Ways};
use wayferry_host::returning::Return;
use wayferry_host::sanitize::sanitize;
use wayferry_host::sound::{Audio, Hearing, Output, Speaking};
use wayferry_host::trace::Half;

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
    /// As `attach` takes it.
    place: Option<String>,
    /// Put before its windows' titles unless the user has chosen something else.
    prefix: String,
}

/// Which carriers are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefer {
    /// QUIC, and the socket if nothing answers.
    Quic,
    /// The socket: it goes no further than this machine.
    Socket,
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

    /// Meets the session at the other end of `socket` and shows it. `more` are addresses at which the session's port
    /// may be reached besides those that it names; `other` is a way back to the session of that name, should it be
    /// lost, and what `attach` calls it. Where a command leads there, `login` says so: it may take as long as it likes,
    /// for a password or a place in a queue.
    ///
    /// # Errors
    /// The two do not meet, or what ended the session.
    pub(crate) fn meet(
        self,
        socket: OwnedFd,
        prefer: Prefer,
        login: bool,
        more: impl FnOnce(u16) -> Vec<SocketAddr>,
        other: impl FnOnce(String) -> (Other, Option<String>),
    ) -> Result<Outcome, Error> {
        let deadline = self.clock.now() + if login { LOGIN_PATIENCE } else { MEET_PATIENCE };
        say(&socket, &Line::Greeting(self.identity.fingerprint().to_string()))?;
        let heard = hear_past(&socket, &self.clock, deadline, Some(self.signals))?;
        let Line::Ticket { ticket, name } = heard else {
            return Err(Error::Bootstrap(format!("unexpected line `{}`", heard.encode().trim_end())));
        };
        let ticket: Ticket = ticket.parse().map_err(|error| Error::Bootstrap(format!("{error}")))?;
        let mut addresses = ticket.addresses.clone();
        let port = addresses.first().map_or(0, SocketAddr::port);
        for address in if prefer == Prefer::Quic && port != 0 { more(port) } else { Vec::new() } {
            if !addresses.contains(&address) && addresses.len() < MAX_ADDRESSES {
                addresses.push(address);
            }
        }
        let (carrier, quic) = self.carrier(&ticket, &addresses, &socket, prefer)?;
        let (back, place) = other(name.clone());
        let ways = self.ways(quic, Some(back));
        let prefix = if self.view_only { VIEW.into() } else { String::new() };
        let caption = Caption { name: Some(&name), place, prefix };
        let outcome = self.show(&ticket, caption, carrier, ways);
        // Until now: its end tells the other side that this one has gone.
        drop(socket);
        outcome
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
        let ways = self.ways(Some(quic), None);
        // Who printed the ticket is not known to be the user.
        let from = addresses.first().map(|address| format!("{}: ", address.ip()));
        let prefix = from.filter(|_| !self.view_only).unwrap_or_else(|| VIEW.into());
        self.show(ticket, Caption { name: None, place: None, prefix }, carrier, ways)
    }

    fn ways(&self, quic: Option<Reconnect>, other: Option<Other>) -> Ways {
        Ways { identity: Arc::clone(&self.identity), quic, other }
    }

    fn show(
        self,
        ticket: &Ticket,
        caption: Caption<'_>,
        carrier: Box<dyn Carrier>,
        ways: Ways,
    ) -> Result<Outcome, Error> {
        let sound = self.sound(caption.name)?;
        let microphone = self.microphone(caption.name)?;
        let opening = self.opening(caption.name)?;
        // Until the session is over.
        let _context = self.context;
        let trace = trace_file(self.own, Some(Half::Display))?;
        let mut config = settings(self.own).session(Side::Display, &self.clock);
        if self.view_only {
            config.capabilities = config.capabilities.with(Capabilities::VIEW);
        }
        if sound.is_some() || microphone.is_some() {
            config.capabilities = config.capabilities.with(Capabilities::SOUND);
        }
        if microphone.is_some() {
            config.capabilities = config.capabilities.with(Capabilities::MICROPHONE);
        }
        if opening.is_some() {
            config.capabilities = config.capabilities.with(Capabilities::OPEN_URL);
        }
        config.secret = Some(ticket.secret);
        config.session = ticket.session;
        config.resume = Some(Secret::from(random_bytes::<32>()));
        let again = config.clone();
        let link = Link::new(Session::new(config), carrier);
        DisplaySide::new(self.watched, self.clock, link, self.own.side.stats, reporter())
            .with_view_only(self.view_only)
            .with_title_prefix(self.own.show.title_prefix.clone().unwrap_or(caption.prefix))
            .with_place(caption.place)
            .with_sound(sound)
            .with_microphone(microphone)
            .with_opening(opening)
            .with_return(Return::new(again, ways))
            .with_allowed(self.own.side.allow.clone())
            .with_trace(trace)
            .with_signals(self.signals)
            .with_offer(Offer::new(Side::Display, &reporter()))
            .run()
    }

    /// What plays the session's sound here.
    fn sound(&self, name: Option<&str>) -> Result<Option<Hearing>, Error> {
        let output = match &self.own.show.audio_sink {
            Some(path) => Output::File(path.clone()),
            None => Output::Desk { name: self.desk_name(name) },
        };
        let usual = if self.view_only { Audio::Off } else { Audio::Auto };
        let sound = Hearing::new(self.own.side.audio.unwrap_or(usual), output, self.clock);
        sound.map_err(|source| Error::System { doing: "preparing to play sound", source })
    }

    /// What sends the microphone here to programs that record, if they may. Viewers have no say.
    fn microphone(&self, name: Option<&str>) -> Result<Option<Speaking>, Error> {
        if !self.own.show.microphone || self.view_only {
            return Ok(None);
        }
        let (audio, mode) =
            (self.own.side.audio.unwrap_or_default(), self.own.side.audio_mode.unwrap_or_default());
        let speaking = Speaking::new(audio, mode, &self.desk_name(name), self.clock);
        speaking.map(Some).map_err(|source| Error::System { doing: "preparing the microphone", source })
    }

    /// What opens addresses here, if the user lets the host ask. Viewers are not asked.
    fn opening(&self, name: Option<&str>) -> Result<Option<Opening>, Error> {
        let how = self.own.show.open_url.unwrap_or_default();
        let host = self.host.clone().or(name.map(sanitize)).unwrap_or_else(|| "the host".into());
        let open = browser::opener(how, host, !self.terminal_is_taken).filter(|_| !self.view_only);
        let opening = open.map(Opening::start).transpose();
        opening.map_err(|source| Error::System { doing: "preparing to open addresses", source })
    }

    /// What the mixer here shows.
    fn desk_name(&self, name: Option<&str>) -> String {
        match (name.map(sanitize), self.host.clone()) {
            (Some(name), Some(host)) => format!("Wayferry: {name} @ {host}"),
            (Some(one), None) | (None, Some(one)) => format!("Wayferry: {one}"),
            (None, None) => "Wayferry".into(),
        }
    }

    /// QUIC if it answers, else the socket.
    fn carrier(
        &self,
        ticket: &Ticket,
        addresses: &[SocketAddr],
        socket: &OwnedFd,
        prefer: Prefer,
    ) -> Result<(Box<dyn Carrier>, Option<Reconnect>), Error> {
        let port = addresses.first().map_or(0, SocketAddr::port);
        if prefer == Prefer::Quic && port != 0 {
            let pinned = ticket.fingerprint;
            match carriers::connect(
                &options(self.own),
                addresses,
                &self.identity,
                pinned,
                QUIC_PATIENCE,
                self.signals,
                &reporter(),
            ) {
                Ok((carrier, reconnect)) => {
                    say(socket, &Line::Choice(Choice::Quic))?;
                    return Ok((carrier, Some(reconnect)));
                }
                Err(error @ (Error::Signal(_) | Error::Fingerprint(_) | Error::Rejected(_))) => {
                    return Err(error);
                }
                Err(error) => tell(&OwnEvent::QuicUnreachable { port, reason: &error.to_string() }),
            }
        }
        say(socket, &Line::Choice(Choice::Stream))?;
        let socket = socket.try_clone().map_err(|source| Error::System { doing: "dup", source })?;
        Ok((carriers::byte_stream(socket)?, None))
    }
}

/// Put before the titles of windows that are only looked at.
const VIEW: &str = "view: ";
/// How long QUIC may take to answer before the session goes another way.
const QUIC_PATIENCE: Duration = Duration::from_secs(3);
/// How long the other side may take for its line, once it is there.
const MEET_PATIENCE: Duration = Duration::from_secs(20);
/// How long a command may take to get there; its end, or a signal, comes first.
const LOGIN_PATIENCE: Duration = Duration::from_secs(30 * 86_400);
/// Addresses to race: the host's own and those of its name.
const MAX_ADDRESSES: usize = 16;
