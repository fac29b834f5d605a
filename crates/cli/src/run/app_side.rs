//! The run loop beside the programs.
//!
//! It accepts programs on the Wayland socket, gives each a [`wayferry_wayland::app::Connection`], and moves what these
//! want to the session and back. The session's programs start when a display has told what it looks like, and the
//! session ends with them; where it can be reached again ([`AppSide::with_lobby`]), not with the display. It decides nothing
//! about Wayland. Invariant: whatever one program does ends at most its own connection.

mod coming;
mod ending;
mod views;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustix::event::PollFlags;
use wayferry_proto::{Capabilities, CloseReason, ConnectionId, Control, Event, Header, Side, Time};
use wayferry_wayland::app::{Config, Connection, Credit, Desk, Turn};
use wayferry_wayland::blob::{Kept, Sent};
use wayferry_wayland::snapshot::Snapshot;
use wayferry_wayland::wire::Socket;
use wayferry_wayland::{Action, End};

use self::ending::Done;
use self::views::Views;
use super::backlog::Backlog;
use super::descriptors;
use super::link::{CleanEnd, Link, closed};
use super::offer::Offer;
use super::outlets::{Outlets, Stdio};
use super::pipes::{PipeToken, Pipes};
use super::programs::{Environment, Launch, Place, Program, is_from};
use super::recorder::Recorder;
use super::served::{Served, pixel_compression, send_blob, send_update};
use super::signals::Signals;
use super::socket::Listener;
use super::stats::{Counters, StatsLine};
use super::wait::Interests;
use super::xwayland::{Running, Satellite};
use super::{Clock, Handle, MAX_PROGRAMS, earlier};
use crate::control::Told;
use crate::event::{Reporter, SessionEvent};
use crate::flags::Compress;
use crate::lobby::Lobby;
use crate::run::Error;
use crate::trace::{Half, SideTrace, TraceFile};

/// What an app side is told once.
#[derive(Debug, Clone)]
pub(crate) struct AppSideConfig {
    /// For each program's connection; the compression is filled in here.
    pub(crate) core: Config,
    /// How pixels may be compressed; the display must understand it.
    pub(crate) compress: Compress,
    /// Serve one connection and end with it.
    pub(crate) oneshot: bool,
    /// Print a line of statistics every second.
    pub(crate) stats: bool,
    /// How long to wait for another display before the session ends; for ever without.
    pub(crate) linger: Option<Duration>,
}

/// A program to start when the display is there.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) launch: Launch,
    pub(crate) environment: Environment,
    pub(crate) place: Place,
    /// Its ends of its pipes, where it does not have this process's.
    pub(crate) stdio: Option<Stdio>,
    /// To be ready before the program starts.
    pub(crate) satellite: Option<Satellite>,
}

/// The app side of a running session.
pub(crate) struct AppSide<'a> {
    config: AppSideConfig,
    clock: Clock,
    signals: Option<&'a Signals>,
    handle: Option<Handle>,
    offer: Option<Offer>,
    /// Time spent working since the last commit left, and whether a part of the next one has.
    worked: Duration,
    left: bool,
    link: Link,
    listener: Option<Listener>,
    lobby: Option<Lobby>,
    outlets: Option<Outlets>,
    start: Option<Start>,
    program: Option<Program>,
    /// The X11 bridge: its end does not end the session.
    satellite: Option<Running>,
    /// Until when the program waits for the bridge.
    start_by: Option<Time>,
    connections: BTreeMap<ConnectionId, Served>,
    /// Programs so far.
    programs: u32,
    views: Views,
    /// Sockets that came before the display was known.
    early: Vec<OwnedFd>,
    next_connection: u32,
    /// Which connection's content goes first, so that none is always last.
    turn: usize,
    pipes: Pipes,
    desk: Option<Rc<Desk>>,
    /// Content that connections may name, kept for those that come later.
    blobs: Kept,
    sent_blobs: Sent,
    counters: Counters,
    backlog: Backlog,
    stats: Option<StatsLine>,
    accept_after: Time,
    phase: Phase,
    /// Until when the first display must have come.
    expires: Option<Time>,
    /// Since when a display has been there, or none.
    state_since: Time,
    /// Whoever started the session is gone.
    orphaned: bool,
    /// The session was asked to end, with this code.
    stopped: Option<u8>,
    /// The program has ended.
    done: Option<Done>,
    /// Those who asked for the end, to be told when it is there.
    stopping: Vec<OwnedFd>,
    last_end: Option<End>,
    trace: SideTrace,
    recordings: Option<PathBuf>,
    reporter: Reporter,
}

enum Phase {
    Running,
    /// The display was told the exit code and answers by closing.
    Exiting {
        code: u8,
        deadline: Time,
    },
}

/// How a session ended on this side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The program ended; the display was told.
    Exit(u8),
    /// The display ended the session.
    DisplayLeft,
    /// The one connection ended (`oneshot`), and how.
    ConnectionEnded(End),
}

#[derive(Debug, Clone, Copy)]
enum Token {
    Link,
    Signal,
    Handle,
    Offer,
    Lobby,
    View,
    Outlets,
    Listener,
    Program,
    Satellite,
    Connection(ConnectionId),
    Pipe(PipeToken),
}

impl<'a> AppSide<'a> {
    /// An app side over a link whose session has been started with [`wayferry_proto::Side::App`].
    pub(crate) fn new(config: AppSideConfig, clock: Clock, link: Link, reporter: Reporter) -> Self {
        let views = Views::new(&config.core, config.compress, reporter.clone());
        Self {
            stats: config.stats.then(|| StatsLine::new(Duration::from_secs(1))),
            config,
            clock,
            signals: None,
            handle: None,
            offer: None,
            worked: Duration::ZERO,
            left: false,
            link,
            listener: None,
            lobby: None,
            outlets: None,
            start: None,
            program: None,
            satellite: None,
            start_by: None,
            connections: BTreeMap::new(),
            programs: 0,
            views,
            early: Vec::new(),
            next_connection: 1,
            turn: 0,
            pipes: Pipes::default(),
            desk: None,
            blobs: Kept::default(),
            sent_blobs: Sent::default(),
            counters: Counters::default(),
            backlog: Backlog::default(),
            accept_after: Time::ZERO,
            phase: Phase::Running,
            expires: None,
            state_since: Time::ZERO,
            orphaned: false,
            stopped: None,
            done: None,
            stopping: Vec::new(),
            last_end: None,
            trace: SideTrace::new(Half::App, None),
            recordings: None,
            reporter,
        }
    }

    /// Ends with an error when one of these signals comes.
    #[must_use]
    pub(crate) fn with_signals(mut self, signals: &'a Signals) -> Self {
        self.signals = Some(signals);
        self
    }

    /// Can be asked to end, and asked for its counters, from another thread.
    #[must_use]
    pub(crate) fn with_handle(mut self, handle: Handle) -> Self {
        self.handle = Some(handle);
        self
    }

    /// Tells its figures to whoever asks here.
    #[must_use]
    pub(crate) fn with_offer(mut self, offer: Option<Offer>) -> Self {
        self.offer = offer;
        self
    }

    /// Writes a timeline.
    #[must_use]
    pub(crate) fn with_trace(mut self, file: Option<Arc<TraceFile>>) -> Self {
        self.trace = SideTrace::new(Half::App, file);
        self
    }

    /// Records what programs say to files in this directory.
    #[must_use]
    pub(crate) fn with_recordings(mut self, directory: Option<PathBuf>) -> Self {
        self.recordings = directory;
        self
    }

    /// Accepts programs here.
    #[must_use]
    pub(crate) fn with_listener(mut self, listener: Listener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Starts this program when the display is there, and ends with it.
    #[must_use]
    pub(crate) fn with_program(mut self, start: Start) -> Self {
        self.start = Some(start);
        self
    }

    /// Lets displays come and go.
    #[must_use]
    pub(crate) fn with_lobby(mut self, lobby: Lobby) -> Self {
        self.lobby = Some(lobby);
        self
    }

    /// Throws away what the program writes once nobody reads it.
    #[must_use]
    pub(crate) fn with_outlets(mut self, outlets: Outlets) -> Self {
        self.outlets = Some(outlets);
        self
    }

    /// Ends with an error when no display has come by then.
    #[must_use]
    pub(crate) fn with_expiry(mut self, expires: Option<Time>) -> Self {
        self.expires = expires;
        self
    }

    /// Starts the programs without a display, which sees them when it comes.
    #[must_use]
    pub(crate) fn with_desk(mut self, snapshot: Snapshot) -> Self {
        self.desk = Some(Rc::new(Desk { snapshot, ..Desk::default() }));
        self.start_by = Some(self.clock.now());
        self
    }

    /// Serves a program whose connection exists already.
    #[must_use]
    pub(crate) fn with_connection(mut self, fd: OwnedFd) -> Self {
        self.early.push(fd);
        self
    }

    /// Runs until the session is over.
    ///
    /// # Errors
    /// What the link did, a signal, a failing system call; [`Error::AfterStart`] around it once the program runs.
    pub(crate) fn run(mut self) -> Result<Outcome, Error> {
        descriptors::raise();
        let result = self.turns();
        if let (Some(lobby), Err(error)) = (&mut self.lobby, &result) {
            lobby.tell(&Told::Exit(error.code()));
        }
        if result.is_err() {
            // The display should not have to find out by silence.
            self.link.session.close(CloseReason::Done);
            self.link.transmit(self.clock.now());
        }
        self.views.dismiss(self.clock.now());
        let started = self.program.is_some();
        self.leave_nothing();
        match (result, started) {
            (Err(error), true) => Err(Error::AfterStart(Box::new(error))),
            (result, _) => result,
        }
    }

    fn turns(&mut self) -> Result<Outcome, Error> {
        let mut ready = Vec::new();
        loop {
            let now = self.clock.now();
            if let Some(signals) = self.signals {
                signals.check()?;
            }
            self.link.receive(now);
            self.drain_backlog();
            while let Some(event) = self.link.poll_event() {
                if let Some(outcome) = self.on_event(now, event)? {
                    return Ok(outcome);
                }
            }
            self.hear_views(now);
            self.turn_lobby(now);
            self.check_expiry(now)?;
            self.limit_owed(now);
            self.start_program(now)?;
            // Input first: it must not wait for the pixels below.
            self.flush_sockets();
            self.work(now, &ready);
            self.link.transmit(now);
            self.views.show(now, self.connections.values_mut());
            self.flush_sockets();
            self.remove_ended(now);
            self.link.transmit(now);
            self.trace.turn(now, || self.link.state().unsent, self.link.session.clock());
            if let Some(outcome) = self.outcome(now) {
                return Ok(outcome);
            }
            ready = self.wait(now)?;
        }
    }

    /// Handles what the programs want; the part of a turn that costs time.
    fn work(&mut self, now: Time, ready: &[(Token, PollFlags)]) {
        let (began, updates) = (self.clock.now(), self.counters.updates);
        self.on_ready(now, ready);
        self.on_timeouts(now);
        self.flush_content(now);
        self.perform_actions();
        // A commit may be read in one turn and leave in later ones.
        self.worked += self.clock.now().since(began);
        self.left |= self.counters.updates > updates;
        if let Some(handle) = &self.handle
            && self.left
            && !self.connections.values().any(|served| served.core.is_making())
        {
            self.left = false;
            handle.publish_turn(std::mem::take(&mut self.worked));
        }
    }

    /// Takes one event of the session; gives an outcome when it was the last.
    fn on_event(&mut self, now: Time, event: Event) -> Result<Option<Outcome>, Error> {
        match event {
            Event::Ready { .. } => {}
            Event::Control(Control::Snapshot(bytes)) => match self.on_snapshot(now, &bytes) {
                Err(error @ Error::PeerViolation(_)) if self.survives() => {
                    self.link.transmit(now);
                    self.on_display_left(now, Err(error));
                }
                result => result?,
            },
            Event::Control(Control::AppClosed { error: Some(text), .. }) => {
                self.reporter.report(SessionEvent::ProgramEnded { reason: text });
            }
            Event::Control(_) => {}
            Event::Opened { channel, header: Header::Pipe { connection, pipe } } => {
                self.pipes.on_opened(&mut self.link.session, now, channel, (connection, pipe));
            }
            Event::Opened { channel, header: Header::Events { connection } }
                if !self.connections.contains_key(&connection) =>
            {
                self.link.session.stop(channel, STOP_UNKNOWN);
            }
            Event::Message { header: Header::Events { connection }, bytes, .. } => {
                self.counters.messages += 1;
                if let Some(served) = self.connections.get_mut(&connection) {
                    served.core.on_message(now, &bytes);
                }
            }
            Event::Data { header: Header::Pipe { connection, pipe }, bytes, .. } => {
                self.pipes.on_data(&mut self.link.session, (connection, pipe), bytes);
            }
            Event::Finished { header, .. } => self.on_channel_end(header, None),
            Event::Reset { header, code, .. } => self.on_channel_end(header, Some(code)),
            Event::Stopped { header: Header::Pipe { connection, pipe }, .. } => {
                self.pipes.on_stopped(&mut self.link.session, (connection, pipe));
            }
            Event::Stopped { header: Header::Wayland { connection }, .. } => self.hang_up(connection),
            Event::Blob { hash, bytes } => self.on_blob(now, hash, &bytes),
            Event::Warning(text) => self.reporter.report(SessionEvent::Warning { text }),
            Event::Suspended { reason } => self.on_carrier_lost(now, &reason),
            Event::Closed { reason, by } => {
                let end = closed(reason, by);
                if self.survives() {
                    self.on_display_left(now, end);
                    return Ok(None);
                }
                if self.views.count() > 0 && matches!(self.phase, Phase::Exiting { .. }) {
                    // They hear of it, too.
                    self.link = Link::nobody(Side::App);
                    return Ok(None);
                }
                return match (&self.phase, end) {
                    (Phase::Exiting { code, .. }, _) => Ok(Some(self.exit_outcome(*code))),
                    (_, Ok(CleanEnd::Peer | CleanEnd::Us)) => Ok(Some(Outcome::DisplayLeft)),
                    (_, Err(error)) => Err(error),
                };
            }
            _ => {}
        }
        Ok(None)
    }

    fn on_channel_end(&mut self, header: Header, reset: Option<u32>) {
        match (header, reset) {
            (Header::Pipe { connection, pipe }, None) => {
                self.pipes.on_finished(&mut self.link.session, (connection, pipe));
            }
            (Header::Pipe { connection, pipe }, Some(_)) => self.pipes.on_reset((connection, pipe)),
            (Header::Events { connection }, _) => self.hang_up(connection),
            _ => {}
        }
    }

    /// The other half of a connection is gone.
    fn hang_up(&mut self, connection: ConnectionId) {
        if let Some(served) = self.connections.get_mut(&connection) {
            served.core.on_hang_up();
        }
    }

    fn on_snapshot(&mut self, now: Time, bytes: &Bytes) -> Result<(), Error> {
        let snapshot = Snapshot::decode(bytes).map_err(|error| {
            self.link.session.close(CloseReason::ProtocolViolation(error.to_string()));
            Error::PeerViolation(error.to_string())
        })?;
        let clock = self.link.session.clock().clone();
        let video = self.link.session.capabilities().has(Capabilities::VIDEO);
        self.set_desk(now, Desk { snapshot, clock, video });
        self.show_again(now);
        for fd in std::mem::take(&mut self.early) {
            self.serve(fd);
        }
        if let Some(lobby) = &mut self.lobby {
            lobby.tell(&Told::Shown);
        }
        if self.program.is_none() && self.start_by.is_none() {
            self.start_by = Some(now);
        }
        Ok(())
    }

    /// Starts the program when what it needs is there.
    fn start_program(&mut self, now: Time) -> Result<(), Error> {
        let Some(mut by) = self.start_by else { return Ok(()) };
        if let Some(start) = &self.start
            && let Some(satellite) = start.satellite.as_ref().filter(|_| self.satellite.is_none())
        {
            self.satellite = Some(satellite.start(&start.environment)?);
            by = now + SATELLITE_PATIENCE;
            self.start_by = Some(by);
        }
        self.watch_satellite();
        let waits = |satellite: &Running| !satellite.is_over() && !satellite.is_ready();
        if now < by && self.start.is_some() && self.satellite.as_ref().is_some_and(waits) {
            return Ok(());
        }
        self.start_by = None;
        if let Some(mut start) = self.start.take() {
            if let Some(satellite) = &self.satellite {
                let unready = satellite.unready().into_iter();
                unready.for_each(|reason| self.reporter.report(SessionEvent::Xwayland { reason }));
                if satellite.is_over() {
                    // Toolkits that find a display which does not answer give up.
                    start.environment.set.retain(|(name, _)| name != "DISPLAY");
                    start.environment.unset.push("DISPLAY".into());
                }
            }
            let Start { launch, environment, place, stdio, .. } = start;
            match Program::start(&launch, &environment, place, stdio) {
                Ok(program) => self.program = Some(program),
                // It was there when the session began. The display hears of it as of any end.
                Err(error) => {
                    self.stopped = Some(error.code());
                    self.reporter.report(SessionEvent::ProgramNotStarted { error });
                }
            }
        }
        Ok(())
    }

    fn watch_satellite(&mut self) {
        let end = self.satellite.as_mut().and_then(Running::take_end);
        end.into_iter().for_each(|reason| self.reporter.report(SessionEvent::Xwayland { reason }));
    }

    fn set_desk(&mut self, now: Time, desk: Desk) {
        let desk = Rc::new(desk);
        for served in self.connections.values_mut().filter(|served| served.core.is_attached()) {
            served.core.on_desk(now, &desk);
        }
        self.desk = Some(desk);
    }

    fn on_blob(&mut self, now: Time, hash: u128, bytes: &Bytes) {
        let blob: Rc<[u8]> = Rc::from(&bytes[..]);
        self.blobs.add(hash, Rc::clone(&blob));
        for served in self.connections.values_mut() {
            served.core.on_blob(now, hash, &blob);
        }
    }

    fn on_ready(&mut self, now: Time, ready: &[(Token, PollFlags)]) {
        for (token, flags) in ready {
            match token {
                Token::Link | Token::Signal | Token::Handle | Token::Lobby | Token::View => {}
                Token::Program => {}
                Token::Satellite => self.watch_satellite(),
                Token::Outlets => self.outlets.iter_mut().for_each(Outlets::turn),
                Token::Offer => self.tell_figures(now),
                Token::Listener => self.accept(now),
                Token::Connection(id) => {
                    if let Some(served) = self.connections.get_mut(id) {
                        served.read(now);
                    }
                }
                Token::Pipe(token) => self.pipes.on_ready(&mut self.link.session, *token, *flags),
            }
        }
    }

    fn tell_figures(&mut self, now: Time) {
        if let Some(mut offer) = self.offer.take() {
            offer.answer(now, || self.document(now));
            self.offer = Some(offer);
        }
    }

    fn accept(&mut self, now: Time) {
        if !descriptors::has_room() {
            return self.pause_accepting("few descriptors are left", now);
        }
        for _ in 0..MAX_ACCEPTS {
            if self.connections.len() + self.early.len() >= MAX_PROGRAMS {
                return;
            }
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok(Some(fd)) => {
                    self.serve(fd);
                    if self.config.oneshot {
                        self.listener = None;
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    // Most likely no descriptors are left; the program waits in the queue until some are.
                    return self.pause_accepting(&error.to_string(), now);
                }
            }
        }
    }

    /// Lets programs wait in the queue for a moment; says why at the first of several pauses in a row.
    fn pause_accepting(&mut self, why: &str, now: Time) {
        let goes_on = self.accept_after != Time::ZERO && now < self.accept_after + ACCEPT_PAUSE;
        if !goes_on {
            self.reporter.report(SessionEvent::ProgramsWait { reason: why.to_owned() });
        }
        self.accept_after = now + ACCEPT_PAUSE;
    }

    /// Begins to serve a program's socket.
    fn serve(&mut self, fd: OwnedFd) {
        let Some(desk) = &self.desk else { return self.early.push(fd) };
        let is_bridge = self.satellite.as_ref().is_some_and(|satellite| is_from(&fd, satellite.program()));
        let socket = match Socket::new(fd) {
            Ok(socket) => socket,
            Err(error) => {
                return self.reporter.report(SessionEvent::ProgramRefused { reason: error.to_string() });
            }
        };
        if let Some(handle) = &self.handle {
            handle.publish_accepted(self.clock.host_now());
        }
        let id = ConnectionId(self.next_connection);
        self.next_connection += 1;
        let mut config = self.config.core.clone();
        config.compression = pixel_compression(self.config.compress, &self.link.session);
        config.probe = self.trace.probe(id);
        let mut core = Connection::new(config, desk);
        let now = self.clock.now();
        for (hash, blob) in self.blobs.iter() {
            core.on_blob(now, hash, blob);
        }
        let channel = self.link.session.open(Header::Wayland { connection: id });
        if !self.link.is_up() && !self.link.session.is_suspended() {
            core.detach(now);
        }
        let recorder = self.recordings.as_ref().map(|directory| Recorder::new(directory, id)).transpose();
        let recorder = recorder.unwrap_or_else(|error| {
            self.reporter.report(SessionEvent::ProgramRefused { reason: format!("no recording: {error}") });
            None
        });
        self.programs += 1;
        let number = self.programs;
        self.connections.insert(id, Served { number, socket, core, channel, handed: 0, recorder, is_bridge });
    }

    fn on_timeouts(&mut self, now: Time) {
        for served in self.connections.values_mut() {
            if served.core.next_timeout().is_some_and(|at| at <= now) {
                served.core.on_timeout(now);
            }
        }
        if self.pipes.next_timeout().is_some_and(|at| at <= now) {
            self.pipes.on_timeout(&mut self.link.session, now);
        }
        self.refresh_clock(now);
        let link = self.link.state();
        self.counters.repair = self.link.session.repair();
        let line = self
            .stats
            .as_mut()
            .and_then(|stats| stats.poll(now, self.counters, link, self.connections.len()));
        if let Some(line) = line {
            self.reporter.report(SessionEvent::Stats { line });
        }
        if let Some(handle) = &self.handle {
            handle.publish(self.counters, link);
        }
    }

    /// The estimate of the other host's clock gets better with time; connections follow when it moved.
    fn refresh_clock(&mut self, now: Time) {
        let clock = self.link.session.clock();
        if let Some(desk) = &self.desk
            && desk.clock.offset_nanos().abs_diff(clock.offset_nanos()) > CLOCK_STEP_NS
        {
            let desk = Desk { clock: clock.clone(), ..Desk::clone(desk) };
            self.set_desk(now, desk);
        }
    }

    /// Lets connections hand over content while the link has room, each first in its turn. What the user attends to leaves
    /// before anything else is encoded.
    fn flush_content(&mut self, now: Time) {
        let count = self.connections.len();
        if count == 0 {
            return;
        }
        self.turn = (self.turn + 1) % count;
        let films = self.connections.values().map(|served| served.core.films()).sum();
        let mut credit = Credit { films, ..self.link.credit(now) };
        self.flush_turn(now, Turn::First, &mut credit);
        self.perform_actions();
        self.link.transmit(now);
        self.flush_turn(now, Turn::Rest, &mut credit);
        self.flush_turn(now, Turn::Better, &mut credit);
    }

    fn flush_turn(&mut self, now: Time, turn: Turn, credit: &mut Credit) {
        let ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for id in ids[self.turn..].iter().chain(&ids[..self.turn]) {
            let Some(served) = self.connections.get_mut(id) else { continue };
            let (session, superseded) = (&mut self.link.session, &mut self.counters.superseded);
            served.core.flush(now, turn, credit, &mut |surface, seq| {
                let bytes = session.take_back(*id, surface, seq)?;
                *superseded += 1;
                Some(bytes)
            });
        }
    }

    /// Looks how much of the programs' requests the link has sent, at the beginning of a turn: all that the last one brought
    /// was handed to it.
    fn drain_backlog(&mut self) {
        if self.backlog.drain(&self.link.state()) {
            self.connections.values_mut().for_each(|served| served.handed = 0);
        }
    }

    fn perform_actions(&mut self) {
        let Self { connections, link, pipes, sent_blobs, counters, backlog, trace, reporter, .. } = self;
        let session = &mut link.session;
        for (id, served) in connections {
            while let Some(action) = served.core.poll_action() {
                let sent = match action {
                    Action::Message(bytes) => {
                        counters.messages += 1;
                        served.handed += bytes.len() as u64;
                        backlog.add(bytes.len() as u64);
                        session.send(served.channel, &bytes)
                    }
                    Action::Update(update) => send_update(session, counters, trace, *id, update),
                    Action::PipeOut { pipe, fd } => {
                        pipes.send_from(session, (*id, pipe), fd);
                        Ok(())
                    }
                    Action::PipeIn { pipe, fd } => {
                        pipes.receive_into(session, (*id, pipe), fd);
                        Ok(())
                    }
                    Action::Blob { hash, bytes } => {
                        send_blob(session, sent_blobs, hash, bytes);
                        Ok(())
                    }
                };
                if let Err(error) = sent {
                    reporter.report(SessionEvent::ProgramEnded { reason: format!("not sent: {error}") });
                    served.core.on_hang_up();
                }
            }
        }
    }

    fn flush_sockets(&mut self) {
        for served in self.connections.values_mut() {
            served.write();
        }
    }

    /// Closes the connections that are over.
    fn remove_ended(&mut self, now: Time) {
        let ended: Vec<(ConnectionId, End)> = self
            .connections
            .iter()
            .filter_map(|(id, served)| served.core.end().map(|end| (*id, end.clone())))
            .collect();
        for (id, end) in ended {
            let Some(mut served) = self.connections.remove(&id) else { continue };
            served.write();
            self.link.session.finish(served.channel);
            self.pipes.on_connection_end(now, id);
            let error = match &end {
                End::Closed => None,
                End::AppViolation(what) => {
                    let error = Error::AppViolation(what.clone());
                    self.reporter.report(SessionEvent::ProgramViolation { error });
                    Some(end.to_string())
                }
                End::CompositorError(_) | End::PeerViolation(_) | End::TooMuch(_) => {
                    self.reporter.report(SessionEvent::ProgramEnded { reason: end.to_string() });
                    Some(end.to_string())
                }
            };
            let _ = self.link.session.control(&Control::AppClosed { connection: id, error });
            self.last_end = Some(end);
        }
    }

    fn wait(&mut self, now: Time) -> Result<Vec<(Token, PollFlags)>, Error> {
        let mut interests = Interests::new();
        if let Some(fd) = self.link.wake_fd() {
            interests.add(fd, PollFlags::IN, Token::Link);
        }
        if let Some(signals) = self.signals {
            interests.add(signals.as_fd(), PollFlags::IN, Token::Signal);
        }
        if let Some(handle) = &self.handle {
            interests.add(handle.as_fd(), PollFlags::IN, Token::Handle);
        }
        if let Some(fd) = self.offer.as_ref().and_then(|offer| offer.interest(now)) {
            interests.add(fd, PollFlags::IN, Token::Offer);
        }
        let mut deadline = earlier(self.link.next_timeout(), self.pipes.next_timeout());
        deadline = earlier(deadline, self.stats.as_ref().map(StatsLine::next_timeout));
        deadline = earlier(deadline, self.trace.next_timeout(now));
        deadline = earlier(earlier(deadline, self.over_at()), self.expires);
        if let Some(lobby) = &self.lobby {
            lobby.fds(now).for_each(|fd| interests.add(fd, PollFlags::IN, Token::Lobby));
            deadline = earlier(deadline, lobby.next_timeout(now));
        }
        self.views.fds().for_each(|fd| interests.add(fd, PollFlags::IN, Token::View));
        deadline = earlier(deadline, self.views.next_timeout(now));
        if let Some(outlets) = &self.outlets {
            outlets.fds().for_each(|fd| interests.add(fd, PollFlags::IN, Token::Outlets));
        }
        if let Some(listener) = &self.listener
            && self.connections.len() + self.early.len() < MAX_PROGRAMS
        {
            if now >= self.accept_after {
                interests.add(listener.as_fd(), PollFlags::IN, Token::Listener);
            } else {
                deadline = earlier(deadline, Some(self.accept_after));
            }
        }
        match &self.phase {
            Phase::Exiting { deadline: at, .. } => deadline = earlier(deadline, Some(*at)),
            Phase::Running => {
                // The descriptor of one that has ended stays ready.
                if let Some(program) = self.program.as_ref().filter(|_| self.done.is_none()) {
                    interests.add(program.as_fd(), PollFlags::IN, Token::Program);
                }
                if let Some(satellite) = self.satellite.as_ref().filter(|satellite| !satellite.is_over()) {
                    interests.add(satellite.as_fd(), PollFlags::IN, Token::Satellite);
                }
            }
        }
        deadline = earlier(deadline, self.grace_at());
        for (id, served) in &mut self.connections {
            deadline = earlier(deadline, served.core.next_timeout());
            let held = self.backlog.must_wait(served.handed);
            if held {
                // The carrier wakes for content only.
                deadline = earlier(deadline, Some(now + HELD_LOOK));
            }
            let flags = served.interest(now, held);
            let Served { socket, .. } = &*served;
            // A hang-up of a program that is not to be read would be reported again and again.
            if !flags.is_empty() {
                interests.add(socket.as_fd(), flags, Token::Connection(*id));
            }
        }
        for (fd, flags, token) in self.pipes.interests(&self.link.session) {
            interests.add(fd, flags, Token::Pipe(token));
        }
        if self.start_by.is_some() {
            // The bridge tells nobody when it is ready; its socket appears.
            deadline = earlier(deadline, Some(now + SATELLITE_LOOK));
        }
        if self.link.has_more() {
            deadline = Some(now);
        }
        interests.wait(now, deadline)
    }
}

/// How often is looked whether a program that is held back may go on.
const HELD_LOOK: Duration = Duration::from_millis(10);
/// How long none is accepted for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// Programs accepted in one turn.
const MAX_ACCEPTS: usize = 16;
/// A smaller change of the offset is noise.
const CLOCK_STEP_NS: u64 = 500_000;
/// How long the X11 bridge may take before the program is started without it.
const SATELLITE_PATIENCE: Duration = Duration::from_secs(5);
/// How often is looked whether it is ready.
const SATELLITE_LOOK: Duration = Duration::from_millis(10);
/// Stop code: no such connection.
const STOP_UNKNOWN: u32 = 3;
