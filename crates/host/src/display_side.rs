//! The run loop beside the compositor.
//!
//! One connection to the compositor belongs to the session itself: the watcher's, which describes the desktop to the
//! app side. Each program gets a connection of its own, with a [`wayferry_wayland::display::Connection`], so
//! that the compositor sees programs apart and an error ends one of them. It decides nothing about Wayland. Invariant:
//! when the loop ends, every connection to the compositor is closed.

mod compositor;
mod share;
mod watching;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustix::event::PollFlags;
use wayferry_proto::{
    Capabilities, ChannelId, CloseReason, ConnectionId, Control, Event, Header, RemoteChannelId, Side, Time,
    UpdateHeader,
};
use wayferry_wayland::blob::Sent;
use wayferry_wayland::display::{Config, Connection, Predict, Room, Wishes};
use wayferry_wayland::wire::{OutBuffer, ReadState, Socket};
use wayferry_wayland::{Action, End};

use self::compositor::MAX_READS;
pub use self::compositor::{Compositor, Watched};
use self::watching::Watching;
use crate::clock::Clock;
use crate::clock::earlier;
use crate::control::{Answer, Request};
use crate::control_server;
use crate::drops::{self, Drops};
use crate::edge::counter::Counter;
use crate::edge::descriptors;
use crate::edge::handle::Handle;
use crate::edge::offer::{Offer, answer};
use crate::edge::part::{self, Base, Hub, Loop, Part, turn_parts};
use crate::edge::pipes::Pipes;
use crate::edge::signals::Signals;
use crate::edge::turns::Took;
use crate::edge::wait::{Interests, Ready};
use crate::edge::workers::Pool;
use crate::error::Error;
use crate::event::{Reporter, SessionEvent};
use crate::files::{self, Files};
use crate::gauges::Gauges;
use crate::info::Figures;
use crate::link::{CleanEnd, Link, SILENCE, closed};
use crate::notes::Showing;
use crate::opening::Opening;
use crate::program_connection::Blobs;
use crate::program_connection::send_blob;
use crate::returning::Return;
use crate::sound::{Hearing, Speaking};
use crate::trace::{Half, TraceFile};
use crate::tray;

/// Looks at content that arrives: an update's header and chunks.
pub type Look = Box<dyn FnMut(&UpdateHeader, &[Bytes]) + Send>;

/// The display side of a running session. Each part of its loop is a field.
pub struct DisplaySide<'a> {
    hub: Base,
    signals: Option<&'a Signals>,
    offer: Option<Offer>,
    compositor: Compositor,
    /// Privileged protocols that the host may use on the compositor here.
    allow: Vec<String>,
    watching: Watching,
    /// How to reconnect to the session.
    back: Option<Return>,
    /// It is view-only, and takes no other display's place.
    view_only: bool,
    connections: BTreeMap<ConnectionId, CompositorConnection>,
    /// Which connection's content goes first, so that none is always last.
    turn: usize,
    pipes: Pipes,
    sound: Option<Hearing>,
    microphone: Option<Speaking>,
    /// Opens addresses here, where the user lets it.
    opening: Option<Opening>,
    /// Files cross, where the user lets them; and who wants that.
    files: Option<Files>,
    counter: Option<Counter>,
    /// What is dragged from the desk over programs' windows.
    drops: Drops,
    /// Shows notifications here, where the user wants them.
    showing: Option<Showing>,
    /// Shows icons of the tray here, where the user wants them.
    tray: Option<tray::Showing>,
    blobs: Blobs,
    /// Bytes of updates since the programs' total was last checked.
    arrived: u64,
    last_end: Option<End>,
    look: Option<Look>,
    gauges: Gauges,
    /// What it shows, as `attach` takes it.
    place: Option<String>,
    /// Put before windows' titles.
    title_prefix: String,
    /// When what is typed is drawn before it is answered.
    predict: Wishes,
    /// Opens what is large.
    workers: Option<Pool>,
}

/// One program's connection to the compositor.
struct CompositorConnection {
    socket: Socket,
    core: Connection,
    /// When the compositor closed it without an error.
    closed: Option<Time>,
    channel: ChannelId,
    from: RemoteChannelId,
}

/// How a session ended on this side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The program ended with this status.
    Exit(u8),
    /// The app side ended the session without one.
    HostLeft,
    /// The one program's connection ended, and how.
    ConnectionEnded(End),
    /// This side was asked to end it.
    Stopped,
}

impl Loop for DisplaySide<'_> {
    type Outcome = Outcome;

    fn parts(&mut self) -> (Hub<'_>, Vec<&mut dyn Part>) {
        let parts: Vec<&mut dyn Part> = vec![
            &mut self.signals,
            &mut self.gauges.handle,
            &mut self.offer,
            &mut self.watching,
            &mut self.sound,
            &mut self.microphone,
            &mut self.opening,
            &mut self.files,
            &mut self.counter,
            &mut self.drops,
            &mut self.showing,
            &mut self.tray,
            &mut self.pipes,
            &mut self.workers,
            &mut self.connections,
            &mut self.back,
        ];
        (self.hub.hub(), parts)
    }

    fn turn(&mut self, now: Time, ready: &Ready) -> Result<Option<Outcome>, Error> {
        // Input first: it must not wait for the pixels that arrived.
        self.read_programs(now, ready);
        self.perform_actions();
        self.hub.link.transmit(now);
        match turn_parts(self, now, ready) {
            // It was let in before.
            Err(Error::Rejected(_)) if self.back.as_ref().is_some_and(Return::is_welcome) => {
                self.hub.reporter.report(SessionEvent::Dismissed);
                return Ok(Some(Outcome::Stopped));
            }
            result => result?,
        }
        self.hear_parts(now);
        if self.back.as_mut().is_some_and(Return::take_moved) {
            self.tell_again();
        }
        self.hub.link.receive(now);
        while let Some(event) = self.hub.link.poll_event() {
            if let Some(outcome) = self.on_event(now, event)? {
                return Ok(Some(outcome));
            }
        }
        self.on_timeouts(now);
        if let Some(microphone) = &mut self.microphone {
            let state = self.hub.link.state();
            microphone.pass(now, &mut self.hub.link.session, &state);
        }
        self.perform_actions();
        self.flush_sockets();
        // What takes long is last, so that what is small need not wait for it.
        self.work(now);
        self.share(now);
        self.perform_actions();
        self.hub.link.transmit(now);
        self.flush_sockets();
        self.remove_ended(now);
        self.hub.link.transmit(now);
        let next = || self.sound.as_ref().and_then(Hearing::next);
        self.gauges.trace.sound_heard(now, next);
        self.gauges.trace.turn(now, || self.hub.link.state().unsent, self.hub.link.session.clock());
        Ok(self.outcome())
    }

    fn next_timeout(&self, now: Time) -> Option<Time> {
        let stale = self.lost_too_long_at().filter(|at| *at > now);
        earlier(stale, earlier(self.gauges.next_timeout(now), self.hub.link.contact_timeout(now)))
    }

    fn is_timed(&self) -> bool {
        self.gauges.is_timed()
    }

    fn took(&self, turn: Took) {
        self.gauges.took(turn);
    }
}

impl<'a> DisplaySide<'a> {
    /// A display side over a link whose session has been started with [`wayferry_proto::Side::Display`].
    pub fn new(watched: Watched, clock: Clock, link: Link, stats: bool, reporter: Reporter) -> Self {
        let mut side = Self {
            hub: Base { clock, link, reporter },
            signals: None,
            offer: None,
            compositor: watched.compositor,
            allow: Vec::new(),
            watching: Watching::new(watched.watcher, (watched.first, watched.is_told), watched.blobs),
            back: None,
            view_only: false,
            connections: BTreeMap::new(),
            turn: 0,
            pipes: Pipes::default(),
            sound: None,
            microphone: None,
            opening: None,
            files: None,
            counter: None,
            drops: Drops::new(),
            showing: None,
            tray: None,
            blobs: Blobs::default(),
            arrived: 0,
            last_end: None,
            look: None,
            gauges: Gauges::new(Half::Display, stats),
            place: None,
            title_prefix: String::new(),
            predict: Wishes::default(),
            workers: None,
        };
        side.tell_news();
        side
    }

    /// Sends the session what is new about the compositor.
    fn tell_news(&mut self) {
        self.watching.tell(&mut self.hub.link.session, &mut self.blobs.sent);
    }

    /// Looks for another carrier when its own is lost.
    #[must_use]
    pub fn with_return(mut self, back: Return) -> Self {
        self.back = Some(back);
        self
    }

    /// Plays the sound of the session's programs.
    #[must_use]
    pub fn with_sound(mut self, sound: Option<Hearing>) -> Self {
        self.sound = sound;
        self
    }

    /// Lets programs of the session record the desk's microphone.
    #[must_use]
    pub fn with_microphone(mut self, microphone: Option<Speaking>) -> Self {
        self.microphone = microphone;
        self
    }

    /// Opens addresses that programs of the session want opened.
    #[must_use]
    pub fn with_opening(mut self, opening: Option<Opening>) -> Self {
        self.opening = opening;
        self
    }

    /// Keeps files of the session here, and passes those on that callers of this socket send or fetch.
    #[must_use]
    pub fn with_files(mut self, files: Option<Files>, counter: Option<Counter>) -> Self {
        (self.files, self.counter) = (files, counter);
        self
    }

    /// Shows what programs of the session notify the user of.
    #[must_use]
    pub fn with_showing(mut self, showing: Option<Showing>) -> Self {
        self.showing = showing;
        self
    }

    /// Shows what programs of the session have in the tray.
    #[must_use]
    pub fn with_tray(mut self, tray: Option<tray::Showing>) -> Self {
        self.tray = tray;
        self
    }

    /// View-only, or not.
    #[must_use]
    pub fn with_view_only(mut self, view_only: bool) -> Self {
        self.view_only = view_only;
        self
    }

    /// Ends with an error when one of these signals comes.
    #[must_use]
    pub fn with_signals(mut self, signals: &'a Signals) -> Self {
        self.signals = Some(signals);
        self
    }

    /// Lets the host use these privileged protocols on the compositor here; without, none.
    pub fn with_allowed(mut self, allow: Vec<String>) -> Self {
        self.allow = allow;
        self
    }

    /// Lets another thread end it, and read its counters, by this handle.
    #[must_use]
    pub fn with_handle(mut self, handle: Handle) -> Self {
        self.gauges.handle = Some(handle);
        self
    }

    /// Calls `look` with the content that arrives.
    #[must_use]
    pub fn with_look(mut self, look: Option<Look>) -> Self {
        self.look = look;
        self
    }

    /// Tells those who ask that it shows this session, as `attach` takes it.
    #[must_use]
    pub fn with_place(mut self, place: Option<String>) -> Self {
        self.place = place;
        self
    }

    /// Puts this before the title of every window.
    #[must_use]
    pub fn with_title_prefix(mut self, prefix: String) -> Self {
        self.title_prefix = prefix;
        self
    }

    /// Draws what is typed before it is answered, when the user wants that.
    #[must_use]
    pub fn with_predict(mut self, predict: Wishes) -> Self {
        self.predict = predict;
        self
    }

    /// Answers callers of this socket with its figures.
    #[must_use]
    pub fn with_offer(mut self, offer: Option<Offer>) -> Self {
        self.offer = offer;
        self
    }

    /// Writes a timeline.
    #[must_use]
    pub fn with_trace(mut self, file: Option<Arc<TraceFile>>) -> Self {
        self.gauges.set_trace(file);
        self
    }

    /// Runs until the session is over.
    ///
    /// # Errors
    /// What the link or the compositor did, a signal, a failing system call.
    pub fn run(mut self) -> Result<Outcome, Error> {
        descriptors::raise();
        self.workers = Pool::new(DECODERS);
        let result = part::run(&mut self);
        if let Some(microphone) = self.microphone.take() {
            microphone.end(&self.hub.reporter);
        }
        if !self.hub.link.session.is_closed() {
            self.hub.link.session.close(CloseReason::Done);
        }
        self.hub.link.transmit(self.hub.clock.now());
        result
    }

    fn on_event(&mut self, now: Time, event: Event) -> Result<Option<Outcome>, Error> {
        match event {
            Event::Ready { .. }
                if self.view_only && !self.hub.link.session.capabilities().has(Capabilities::VIEW) =>
            {
                return Err(Error::Incompatible("the other side allows no viewers".into()));
            }
            Event::Control(message) => return Ok(self.on_message(now, message)),
            Event::Opened { channel, header: Header::Pipe { connection, pipe } } => {
                self.pipes.on_opened(&mut self.hub.link.session, now, channel, (connection, pipe));
            }
            Event::Opened { channel, header: Header::Wayland { connection } } => {
                self.open(connection, channel)
            }
            Event::Message { header: Header::Wayland { connection }, bytes, .. } => {
                self.gauges.counters.messages += 1;
                if let Some(shown) = self.connections.get_mut(&connection) {
                    shown.core.on_message(now, &bytes);
                }
            }
            Event::Update { header, chunks } => self.on_update(now, &header, chunks),
            Event::Data { header: Header::Pipe { connection, pipe }, bytes, .. } => {
                self.pipes.on_data(&mut self.hub.link.session, (connection, pipe), bytes);
            }
            Event::Finished { header, .. } => self.on_channel_end(now, header, None),
            Event::Reset { header, code, .. } => self.on_channel_end(now, header, Some(code)),
            Event::Stopped { header: Header::Pipe { connection, pipe }, .. } => {
                self.pipes.on_stopped(&mut self.hub.link.session, (connection, pipe));
            }
            Event::Blob { hash, bytes } => self.on_blob(now, hash, &bytes),
            Event::Sound { bytes } => {
                self.gauges.trace.sound_arrived(&bytes);
                self.sound.iter_mut().for_each(|sound| sound.on_packet(now, &bytes));
            }
            Event::Datagram { bytes } => {
                self.gauges.trace.sound_arrived_again(&bytes);
                self.sound.iter_mut().for_each(|sound| sound.on_datagram(now, &bytes));
            }
            Event::Warning(text) => self.hub.reporter.report(SessionEvent::Warning { text }),
            Event::Suspended { reason } => self.on_carrier_lost(now, &reason)?,
            Event::Resumed => {
                let event = self.back.as_mut().map_or(SessionEvent::Back, Return::resumed);
                self.hub.reporter.report(event);
            }
            Event::Declined => {
                self.begin_anew();
                self.back.as_mut().map(Return::resumed);
                self.hub.reporter.report(SessionEvent::Back);
            }
            Event::Closed { reason, .. } if self.is_replaced(&reason) => {
                let replaced = reason == CloseReason::Gone;
                self.hub.reporter.report(if replaced {
                    SessionEvent::Replaced
                } else {
                    SessionEvent::Dismissed
                });
                return Ok(Some(Outcome::Stopped));
            }
            Event::Closed { reason, by } => {
                return match closed(reason, by)? {
                    CleanEnd::Us => Ok(Some(Outcome::Stopped)),
                    CleanEnd::Peer => Ok(Some(Outcome::HostLeft)),
                };
            }
            _ => {}
        }
        Ok(None)
    }

    /// Takes a message of the main channel.
    fn on_message(&mut self, now: Time, message: Control) -> Option<Outcome> {
        let Base { link, reporter, .. } = &mut self.hub;
        let session = &mut link.session;
        match message {
            Control::Exit { code } => return Some(Outcome::Exit(u8::try_from(code & 0xFF).unwrap_or(255))),
            Control::Listen(listen) => {
                self.microphone.iter_mut().for_each(|microphone| microphone.on_listen(listen, session));
            }
            Control::OpenUrl { id, url } => {
                if let Some(opening) = &mut self.opening {
                    opening.on_asked(id, url, session, reporter);
                }
            }
            Control::Notify(_) | Control::CloseNotification { .. } => {
                if let Some(showing) = &mut self.showing {
                    showing.on_message(now, message, session, reporter);
                }
            }
            Control::TrayItem(_) | Control::TrayMenu(_) | Control::TrayGone { .. } => {
                if let Some(tray) = &mut self.tray {
                    tray.on_message(now, message);
                }
            }
            Control::File(offer) => self.with_way(|files, way| files.on_offer(way, &offer)),
            Control::FileDone { id, fate, place } => {
                if let Some(files) = &mut self.files {
                    files.on_done(id, fate, place);
                }
            }
            Control::AppClosed { error: Some(text), .. } => {
                reporter.report(SessionEvent::ProgramEnded { reason: text });
            }
            _ => {}
        }
        None
    }

    /// What was sent of sound and for it is gone with the carrier.
    fn tell_again(&mut self) {
        self.sound.iter_mut().for_each(Hearing::tell_again);
        self.microphone.iter_mut().for_each(Speaking::forget);
    }

    /// The programs' windows stay while another carrier is looked for.
    fn on_carrier_lost(&mut self, now: Time, reason: &CloseReason) -> Result<(), Error> {
        self.tell_again();
        self.hub.link.lose_carrier();
        let lost = || Error::Lost(reason.to_string());
        let back = self.back.as_mut().ok_or_else(lost)?;
        if self.hub.link.session.is_welcome() {
            back.welcome();
        }
        if back.begin(now)? {
            self.hub.reporter.report(SessionEvent::ConnectionLost { reason: reason.to_string() });
        }
        Ok(())
    }

    /// When windows are to say that the session is lost.
    fn lost_too_long_at(&self) -> Option<Time> {
        self.back.as_ref()?.lost().map(|lost| lost + SILENCE)
    }

    /// Whether the session ends this because it has another display now: it says so, or does not know this one any
    /// more.
    fn is_replaced(&self, reason: &CloseReason) -> bool {
        match reason {
            CloseReason::Gone => self.hub.link.session.peer().is_some(),
            CloseReason::BadSecret => self.back.as_ref().is_some_and(Return::is_welcome),
            _ => false,
        }
    }

    /// The session has forgotten what is shown here, and will send everything again.
    fn begin_anew(&mut self) {
        self.connections.clear();
        self.drops.clear();
        self.sound.iter_mut().for_each(Hearing::begin_anew);
        self.microphone.iter_mut().for_each(Speaking::forget);
        self.pipes.clear();
        self.files.iter_mut().for_each(Files::forget);
        self.tray.iter_mut().for_each(tray::Showing::tell_again);
        self.blobs.sent = Sent::default();
        self.watching.tell_again();
        self.tell_news();
    }

    fn on_channel_end(&mut self, now: Time, header: Header, reset: Option<u32>) {
        match (header, reset) {
            (Header::Pipe { connection, pipe }, None) => {
                self.pipes.on_finished(&mut self.hub.link.session, (connection, pipe));
            }
            (Header::Pipe { connection, pipe }, Some(_)) => self.pipes.on_reset((connection, pipe)),
            (Header::Wayland { connection }, _) => self.close_program(now, connection),
            _ => {}
        }
    }

    /// The program is gone: so is its connection to the compositor, which removes its windows.
    fn close_program(&mut self, now: Time, connection: ConnectionId) {
        let Some(mut shown) = self.connections.remove(&connection) else { return };
        let _ = shown.socket.flush(shown.core.output());
        self.hub.link.session.finish(shown.channel);
        self.pipes.on_connection_end(&mut self.hub.link.session, now, connection);
        self.drops.on_connection_end(connection);
        self.last_end = Some(End::Closed);
    }

    /// A program connected: opens its connection to the compositor.
    fn open(&mut self, connection: ConnectionId, from: RemoteChannelId) {
        if !self.has_place() {
            // A host that keeps to the limit never shows so many.
            return self.hub.link.session.stop(from, STOP_TOO_MANY);
        }
        let config = Config {
            clock_start_ns: self.hub.clock.origin().0,
            probe: self.gauges.trace.probe(connection),
            workers: self.workers.as_ref().map(Pool::workers).unwrap_or_default(),
            allow: Some(self.allow.clone()),
            title_prefix: self.title_prefix.clone(),
            predict: self.predict(),
            ..Config::default()
        };
        let alone = matches!(self.compositor, Compositor::Only(_));
        let reached = match alone.then(|| self.watching.take(config.clone())).flatten() {
            Some(taken) => Ok(taken),
            None => self.compositor.connect().map(|socket| (socket, Connection::new(config))),
        };
        let channel = self.hub.link.session.open(Header::Events { connection });
        match reached {
            Ok((socket, mut core)) => {
                let now = self.hub.clock.now();
                for (hash, blob) in self.blobs.kept.iter() {
                    core.on_blob(now, hash, blob);
                }
                self.connections
                    .insert(connection, CompositorConnection { socket, core, closed: None, channel, from });
            }
            Err(error) => {
                self.hub.reporter.report(SessionEvent::CompositorRefused { reason: error.to_string() });
                self.hub.link.session.finish(channel);
                self.hub.link.session.stop(from, STOP_NO_COMPOSITOR);
                let error = Some("cannot connect to the compositor".to_owned());
                let _ = self.hub.link.session.control(&Control::AppClosed { connection, error });
            }
        }
    }

    /// When what is typed is predicted: never where the app side does not say which keys are answered.
    fn predict(&self) -> Wishes {
        let is_told = self.hub.link.session.capabilities().has(Capabilities::ECHO);
        if is_told { self.predict.clone() } else { Wishes::all(Predict::Never) }
    }

    fn on_update(&mut self, now: Time, header: &UpdateHeader, chunks: Vec<Bytes>) {
        self.gauges.counters.updates += 1;
        let bytes = chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
        self.gauges.counters.content_bytes += bytes;
        self.back.iter_mut().for_each(|back| back.note_content(now));
        self.gauges.trace.arrived(header, bytes);
        if let Some(look) = &mut self.look {
            look(header, &chunks);
        }
        if let Some(shown) = self.connections.get_mut(&header.connection) {
            shown.core.on_update(now, header, chunks);
            self.arrived += bytes;
        }
        // Checking all programs for each update would cost too much.
        if self.arrived >= SHARE_EVERY {
            self.arrived = 0;
            self.share(now);
        }
    }

    /// Decompresses and paints a slice of what has arrived, so that input need not wait for the rest. Connections take
    /// turns at being first.
    fn work(&mut self, now: Time) {
        self.turn = self.turn.wrapping_add(1).checked_rem(self.connections.len()).unwrap_or_default();
        let ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
        let (icons, lend) = (self.room_for_icons(), self.room_for_painting());
        let mut room = Room { icons, lend, ..Room::default() };
        for id in ids[self.turn..].iter().chain(&ids[..self.turn]) {
            if let Some(shown) = self.connections.get_mut(id) {
                shown.core.work(now, &mut room);
            }
        }
    }

    fn on_blob(&mut self, now: Time, hash: u128, bytes: &Bytes) {
        let blob: Rc<[u8]> = bytes[..].into();
        for shown in self.connections.values_mut() {
            shown.core.on_blob(now, hash, &blob);
        }
        self.blobs.kept.add(hash, blob);
    }

    /// Takes what the compositor says to the programs, most of which is input.
    fn read_programs(&mut self, now: Time, ready: &Ready) {
        let silent = self.hub.link.session.contact_age(now) >= SILENT;
        for shown in self.connections.values_mut().filter(|shown| ready.has(&shown.socket)) {
            shown.core.set_silent(now, silent);
            shown.read(now);
        }
    }

    /// What passes files on, if they cross.
    fn with_way(&mut self, act: impl FnOnce(&mut Files, &mut files::Way<'_>)) {
        let Some(files) = &mut self.files else { return };
        let Base { link, reporter, .. } = &mut self.hub;
        act(files, &mut files::Way { session: &mut link.session, pipes: &mut self.pipes, reporter });
    }

    /// Does what callers want.
    fn serve(&mut self) {
        for (request, caller) in self.counter.as_mut().map(Counter::take_calls).unwrap_or_default() {
            match request {
                _ if self.files.is_none() => say(&caller, "this display was begun with `--files off`"),
                Request::Send { size, name } => {
                    self.with_way(|files, way| files.send(way, size, &name, caller));
                }
                Request::Fetch(path) => self.with_way(|files, way| files.fetch(way, path, caller)),
                _ => say(&caller, "a display knows no such order"),
            }
        }
    }

    /// Sends what the user has dropped, and gives programs the lists that they have asked for.
    fn pass_drops(&mut self) {
        let Self { drops, files, hub: Base { link, reporter, .. }, pipes, connections, .. } = self;
        let sent = files.as_mut().map(Files::take_sent).unwrap_or_default();
        sent.into_iter().for_each(|sent| drops.on_sent(sent, reporter));
        let obstacle = match files {
            None => Some("this display was begun with `--files off`"),
            Some(_) => Files::obstacle_to_drops(&link.session),
        };
        let room = files.as_ref().map_or(0, Files::room_for_drops);
        for (ticket, path) in drops.next_files(obstacle, room, reporter) {
            files.iter_mut().for_each(|files| files.send_dropped(ticket, path.clone()));
        }
        for result in drops.take_results() {
            match result {
                drops::Outcome::List { connection, pipe, text } => {
                    drops::give(&mut link.session, pipes, (connection, pipe), &text);
                }
                drops::Outcome::Told((connection, drag)) => {
                    if let Some(shown) = connections.get_mut(&connection) {
                        shown.core.on_drag_ready(drag);
                    }
                }
            }
        }
    }

    /// Acts on what the parts have found.
    fn hear_parts(&mut self, now: Time) {
        self.tell_news();
        self.serve();
        self.with_way(Files::hear);
        self.pass_drops();
        if let Some(caller) = self.offer.as_mut().and_then(Offer::poll_caller) {
            let figures = Figures::new(Side::Display, &self.hub.link, self.connections.len(), now);
            let figures = figures.with_shares(self.shares()).with_predicted(self.predicted());
            let figures = figures.with_shown(self.place.as_deref(), now.since_start());
            let sound = self.sound.as_ref().map(Hearing::document);
            let microphone = self.microphone.as_ref().map(Speaking::document);
            answer(&caller, &figures.with_sound(sound).with_microphone(microphone).document());
        }
    }

    fn on_timeouts(&mut self, now: Time) {
        let rtt = self.hub.link.state().rtt;
        for shown in self.connections.values_mut() {
            shown.core.set_round_trip(now, rtt);
            if shown.core.next_timeout().is_some_and(|at| at <= now) {
                shown.core.on_timeout(now);
            }
            if gives_up(shown.closed).is_some_and(|at| at <= now) {
                shown.core.on_hang_up();
            }
        }
        if let Some(event) = self.hub.link.contact_event(now) {
            self.hub.reporter.report(event);
        }
        let is_stale = self.hub.link.is_missed() || self.lost_too_long_at().is_some_and(|at| at <= now);
        self.connections.values_mut().for_each(|shown| shown.core.set_stale(is_stale));
        let Base { link, reporter, .. } = &mut self.hub;
        if let Some(showing) = &mut self.showing {
            showing.on_contact(now, is_stale, &mut link.session, reporter);
        }
        self.gauges.publish(now, &self.hub.link, self.connections.len(), &self.hub.reporter);
    }

    fn perform_actions(&mut self) {
        let Self { connections, hub: Base { clock, link, reporter }, pipes, blobs, gauges, drops, .. } = self;
        let session = &mut link.session;
        for (id, shown) in connections {
            while let Some(action) = shown.core.poll_action() {
                match action {
                    Action::Message(bytes) => {
                        gauges.counters.messages += 1;
                        if let Err(error) = session.send(shown.channel, &bytes) {
                            let reason = format!("not sent: {error}");
                            reporter.report(SessionEvent::ProgramEnded { reason });
                            shown.core.on_hang_up();
                        }
                    }
                    Action::PipeOut { pipe, fd } => pipes.send_from(session, (*id, pipe), fd),
                    Action::PipeIn { pipe, fd } => pipes.receive_into(session, (*id, pipe), fd),
                    Action::Drag { drag, step } => drops.on_step(clock.now(), (*id, drag), step, reporter),
                    // Nothing is collected here.
                    Action::Collect { .. } => {}
                    Action::Blob { hash, bytes } => send_blob(session, &mut blobs.sent, hash, bytes),
                    // Only the app side has content.
                    Action::Update(_) => {}
                }
            }
        }
    }

    fn flush_sockets(&mut self) {
        for shown in self.connections.values_mut() {
            shown.write();
        }
        self.watching.flush();
    }

    fn remove_ended(&mut self, now: Time) {
        let ended: Vec<(ConnectionId, End)> = self
            .connections
            .iter()
            .filter_map(|(id, shown)| shown.core.end().map(|end| (*id, end.clone())))
            .collect();
        for (id, end) in ended {
            let Some(mut shown) = self.connections.remove(&id) else { continue };
            shown.write();
            self.hub.link.session.finish(shown.channel);
            self.hub.link.session.stop(shown.from, STOP_ENDED);
            self.pipes.on_connection_end(&mut self.hub.link.session, now, id);
            self.drops.on_connection_end(id);
            if end != End::Closed {
                self.hub.reporter.report(SessionEvent::ProgramEnded { reason: end.to_string() });
                let error = Some(end.to_string());
                let _ = self.hub.link.session.control(&Control::AppClosed { connection: id, error });
            }
            self.last_end = Some(end);
        }
    }

    fn outcome(&mut self) -> Option<Outcome> {
        if self.gauges.stop_asked() {
            return Some(Outcome::Stopped);
        }
        match (&self.compositor, &self.last_end) {
            (Compositor::Only(_), Some(end)) if self.connections.is_empty() && *end != End::Closed => {
                Some(Outcome::ConnectionEnded(end.clone()))
            }
            _ => None,
        }
    }
}

/// All programs. They are read by the side, before anything else.
impl Part for BTreeMap<ConnectionId, CompositorConnection> {
    fn interests<'a>(&'a mut self, _now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        for CompositorConnection { socket, core, closed, .. } in self.values_mut() {
            interests.until(earlier(core.next_timeout(), gives_up(*closed)));
            let socket: &Socket = socket;
            if closed.is_none() {
                interests.add(socket, interest(core.output()));
            }
        }
    }
}

impl CompositorConnection {
    /// Reads a bounded amount and handles it.
    fn read(&mut self, now: Time) {
        for _ in 0..MAX_READS {
            let state = self.socket.read_into(self.core.input());
            self.core.process(now);
            match state {
                Ok(ReadState::Progress) => {}
                Ok(ReadState::WouldBlock) => return,
                Ok(ReadState::Closed) | Err(_) => {
                    self.closed.get_or_insert(now);
                    return;
                }
            }
        }
    }

    fn write(&mut self) {
        // A compositor that closed its end may have left an error to be read, which says more than this failure.
        let _ = self.socket.flush(self.core.output());
    }
}

/// Tells a caller why not.
fn say(caller: &OwnedFd, why: &str) {
    control_server::answer(caller, &Answer::Not(why.to_owned()));
}

/// When a connection that was closed without an error is given up.
fn gives_up(closed: Option<Time>) -> Option<Time> {
    closed.map(|closed| closed + LAST_BREATH)
}

fn interest(output: &OutBuffer) -> PollFlags {
    if output.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT }
}

/// How long to wait, when the compositor closed a program's connection without an error, for it to close all of them: a
/// compositor that ends must not end the programs.
const LAST_BREATH: Duration = Duration::from_millis(500);
/// Threads that open content: of one program one at a time.
const DECODERS: usize = 2;
/// A link that brought nothing for this long is silent: two pings are missing.
const SILENT: Duration = Duration::from_millis(1500);
/// Bytes of updates after which the programs' total is checked within a turn.
const SHARE_EVERY: u64 = 4 << 20;
/// Stop code: the program's connection to the compositor could not be made.
const STOP_NO_COMPOSITOR: u32 = 4;
/// Stop code: there are as many programs as may be.
const STOP_TOO_MANY: u32 = 6;
/// Stop code: the program's connection to the compositor is over.
const STOP_ENDED: u32 = 5;
