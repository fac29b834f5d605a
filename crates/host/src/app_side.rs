//! The run loop beside the programs.
//!
//! It accepts programs on the Wayland socket, gives each a [`wayferry_wayland::app::Connection`], and moves messages
//! between these and the session. The session's program starts when a display has sent its snapshot, and the session
//! ends with it. It also ends with its display, unless displays can come again ([`AppSide::with_control_server`]). It
//! decides nothing about Wayland. Invariant: one program can end at most its own connection.

mod accepting;
mod coming;
mod displays;
mod ending;
mod gpu;
mod handed;
mod links;
mod notes;
mod own_program;
mod sound;
mod tray;
mod urls;
mod views;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use wayferry_proto::succession::Presence;
use wayferry_proto::{Capabilities, CloseReason, ConnectionId, Control, Event, Header, Time};
use wayferry_wayland::app::{Config, Connection, Credit, Desk, Turn};
use wayferry_wayland::snapshot::Snapshot;
use wayferry_wayland::wire::Socket;
use wayferry_wayland::{Action, End};

use self::accepting::Accepting;
pub use self::displays::Displays;
use self::ending::Ending;
use self::gpu::Gpu;
use self::handed::Handed;
use self::notes::Notes;
use self::own_program::OwnProgram;
pub use self::own_program::Start;
use self::sound::Sound;
use self::tray::Tray;
use self::urls::Urls;
use self::views::Views;
use crate::backlog::Backlog;
use crate::clock::Clock;
use crate::clock::earlier;
use crate::control::{Answer, Notice};
use crate::edge::descriptors;
use crate::edge::handle::Handle;
use crate::edge::offer::{Offer, answer};
use crate::edge::outlets::Outlets;
use crate::edge::part::{self, Base, Hub, Loop, Part, turn_parts};
use crate::edge::pipes::Pipes;
use crate::edge::programs::Environment;
use crate::edge::recorder::Recorder;
use crate::edge::signals::Signals;
use crate::edge::socket::{Listener, RuntimeDir};
use crate::edge::turns::Took;
use crate::edge::wait::Ready;
use crate::edge::workers::Pool;
use crate::error::Error;
use crate::event::{Reporter, SessionEvent};
use crate::files::{self, Files};
use crate::gauges::Gauges;
use crate::notes::bus::Bus;
use crate::tray::watcher::Watcher;

use crate::control_server::{self, ControlServer};
use crate::program_connection::MAX_PROGRAMS;
use crate::program_connection::{
    Blobs, ProgramConnection, STOP_UNKNOWN, pixel_compression, send_blob, send_update,
};
use crate::settings::Compress;
use crate::sound::{Mode, SoundServer};
use crate::trace::{Half, TraceFile};

/// Settings of an app side.
#[derive(Debug, Clone)]
pub struct AppSideConfig {
    /// For each program's connection; the compression is filled in here.
    pub core: Config,
    /// How pixels may be compressed; the display must understand it.
    pub compress: Compress,
    /// Serve one connection and end with it.
    pub oneshot: bool,
    /// Report a line of statistics every second.
    pub stats: bool,
}

/// What programs of the session find in their environment.
pub fn environment(programs: &Listener, dir: &RuntimeDir) -> Environment {
    let mut set: Vec<(OsString, OsString)> = vec![
        ("WAYLAND_DISPLAY".into(), programs.name().clone()),
        // Under ssh it says `tty`, and toolkits then look for an X server.
        ("XDG_SESSION_TYPE".into(), "wayland".into()),
    ];
    if dir.is_private() {
        set.push(("XDG_RUNTIME_DIR".into(), dir.path().into()));
    }
    // An X server of this machine is not the one that the user looks at.
    Environment { set, unset: vec!["WAYLAND_SOCKET".into(), "DISPLAY".into()] }
}

/// The app side of a running session.
pub struct AppSide<'a> {
    config: AppSideConfig,
    hub: Base<Displays>,
    signals: Option<&'a Signals>,
    offer: Option<Offer>,
    accepting: Accepting,
    control_server: Option<ControlServer>,
    outlets: Option<Outlets>,
    own: OwnProgram,
    programs: Programs,
    /// Encodes what is large.
    workers: Option<Pool>,
    views: Views,
    sound: Option<Sound>,
    gpu: Option<Gpu>,
    pipes: Pipes,
    /// What is known of the display.
    desk: Option<Rc<Desk>>,
    blobs: Blobs,
    urls: Urls,
    /// Files cross, where the user lets them.
    files: Option<Files>,
    notes: Option<Notes>,
    tray: Option<Tray>,
    gauges: Gauges,
    ending: Ending,
}

/// The programs' connections.
#[derive(Default)]
struct Programs {
    connections: BTreeMap<ConnectionId, ProgramConnection>,
    /// Sockets of programs that connected before the display was known.
    early: Vec<OwnedFd>,
    /// Programs accepted so far.
    count: u32,
    /// Connections announced to displays so far.
    announced: u32,
    /// Which connection's content goes first, so that none is always last.
    turn: usize,
    backlog: Backlog,
    work: Work,
    recordings: Option<PathBuf>,
}

impl Programs {
    /// The id of a connection that no display knows yet.
    fn next_id(&mut self) -> ConnectionId {
        self.announced += 1;
        ConnectionId(self.announced)
    }

    fn is_empty(&self) -> bool {
        self.connections.is_empty() && self.early.is_empty()
    }

    /// The backlog is measured by what the carrier has sent, and a new carrier has sent nothing.
    fn forget_backlog(&mut self) {
        self.backlog = Backlog::default();
        self.connections.values_mut().for_each(|program| program.handed = 0);
    }
}

/// Time spent working since the last commit left, and whether a part of the next one has. While workers have pixels of
/// one, all time counts.
#[derive(Debug, Default)]
struct Work {
    took: Duration,
    left: bool,
    /// When the last turn ended that left pixels to workers.
    goes_on: Option<Time>,
}

/// How a session ended on this side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The program ended; the display was told.
    Exit(u8),
    /// The display ended the session.
    DisplayLeft,
    /// The one connection ended (`oneshot`), and how.
    ConnectionEnded(End),
}

impl Loop for AppSide<'_> {
    type Outcome = Outcome;

    fn parts(&mut self) -> (Hub<'_>, Vec<&mut dyn Part>) {
        let parts: Vec<&mut dyn Part> = vec![
            &mut self.signals,
            &mut self.gauges.handle,
            &mut self.offer,
            &mut self.sound,
            &mut self.gpu,
            &mut self.notes,
            &mut self.tray,
            &mut self.views,
            &mut self.control_server,
            &mut self.outlets,
            &mut self.accepting,
            &mut self.own,
            &mut self.files,
            &mut self.pipes,
            &mut self.workers,
            &mut self.programs.connections,
        ];
        (self.hub.hub(), parts)
    }

    fn turn(&mut self, now: Time, ready: &Ready) -> Result<Option<Outcome>, Error> {
        self.hub.link.receive(now);
        self.drain_backlog();
        self.hear_display(now);
        if let Some(end) = self.ending.over.take() {
            return end.map(Some);
        }
        turn_parts(self, now, ready)?;
        self.hear_parts(now);
        self.with_way(Files::hear);
        self.pass_sound(now);
        self.pass_notes(now);
        self.pass_tray(now);
        self.look(now);
        if let Some(end) = self.ending.over.take() {
            return end.map(Some);
        }
        // Input first: it must not wait for the pixels below.
        self.flush_sockets();
        self.work(now, ready);
        self.hub.link.transmit(now);
        self.views.show(now, self.programs.connections.values_mut());
        self.flush_sockets();
        self.remove_ended(now);
        self.hub.link.transmit(now);
        self.gauges.trace.turn(now, || self.hub.link.state().unsent, self.hub.link.session.clock());
        self.end_or_leave(now);
        self.hold_back(now);
        self.ending.over.take().transpose()
    }

    fn next_timeout(&self, now: Time) -> Option<Time> {
        let link = earlier(self.hub.link.next_due(), self.hub.link.contact_timeout(now));
        earlier(earlier(link, self.look_again_at()), self.gauges.next_timeout(now))
    }

    fn is_timed(&self) -> bool {
        self.gauges.is_timed()
    }

    fn took(&self, turn: Took) {
        self.gauges.took(turn);
    }
}

impl<'a> AppSide<'a> {
    /// An app side for these displays.
    pub fn new(config: AppSideConfig, clock: Clock, link: Displays, reporter: Reporter) -> Self {
        let views = Views::new(&config.core, config.compress, reporter.clone());
        Self {
            gauges: Gauges::new(Half::App, config.stats),
            config,
            hub: Base { clock, link, reporter },
            signals: None,
            offer: None,
            accepting: Accepting::default(),
            control_server: None,
            outlets: None,
            own: OwnProgram::default(),
            programs: Programs::default(),
            workers: None,
            views,
            sound: None,
            gpu: None,
            pipes: Pipes::default(),
            desk: None,
            blobs: Blobs::default(),
            urls: Urls::default(),
            files: None,
            notes: None,
            tray: None,
            ending: Ending::default(),
        }
    }

    /// Ends with an error when one of these signals comes.
    #[must_use]
    pub fn with_signals(mut self, signals: &'a Signals) -> Self {
        self.signals = Some(signals);
        self
    }

    /// Lets another thread end it, and read its counters, by this handle.
    #[must_use]
    pub fn with_handle(mut self, handle: Handle) -> Self {
        self.gauges.handle = Some(handle);
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

    /// Records what programs say to files in this directory.
    #[must_use]
    pub fn with_recordings(mut self, directory: Option<PathBuf>) -> Self {
        self.programs.recordings = directory;
        self
    }

    /// Accepts programs here.
    #[must_use]
    pub fn with_listener(mut self, listener: Listener) -> Self {
        self.accepting = Accepting::new(listener, self.config.oneshot);
        self
    }

    /// Starts this program when the display is there, and ends with it.
    #[must_use]
    pub fn with_program(mut self, start: Start) -> Self {
        self.own.prepare(start);
        self
    }

    /// Displays and orders come through this server.
    #[must_use]
    pub fn with_control_server(mut self, server: ControlServer) -> Self {
        self.control_server = Some(server);
        self
    }

    /// Sends the display what programs play to this server, if it wants to hear that; viewers too if it is `shared`.
    #[must_use]
    pub fn with_sound(mut self, server: Option<SoundServer>, mode: Mode, shared: bool) -> Self {
        if shared {
            self.views.share_sound(mode);
        }
        self.sound = server.map(|server| Sound::new(server, mode));
        self
    }

    /// Keeps files of the display here, and gives it those that it asks for.
    #[must_use]
    pub fn with_files(mut self, files: Option<Files>) -> Self {
        self.files = files;
        self
    }

    /// Offers programs that their GPU buffers are read, by processes that this command starts. If those cannot, the
    /// user is told where one `was_asked_for`.
    #[must_use]
    pub fn with_gpu(mut self, reader: Option<Vec<OsString>>, was_asked_for: bool) -> Self {
        self.gpu = reader.map(|command| Gpu::new(self.hub.clock.now(), command, was_asked_for));
        self
    }

    /// Sends the display what programs on this bus notify the user of.
    #[must_use]
    pub fn with_notifications(mut self, bus: Option<Bus>) -> Self {
        self.notes = bus.map(Notes::new);
        self
    }

    /// Shows the display what programs register with this watcher.
    #[must_use]
    pub fn with_tray(mut self, watcher: Option<Watcher>) -> Self {
        self.tray = watcher.map(Tray::new);
        self
    }

    /// Discards what the program writes once it has no reader.
    #[must_use]
    pub fn with_outlets(mut self, outlets: Outlets) -> Self {
        self.outlets = Some(outlets);
        self
    }

    /// Starts the programs before a display comes; until then they see the compositor that this snapshot describes.
    #[must_use]
    pub fn with_desk(mut self, snapshot: Snapshot) -> Self {
        self.desk = Some(Rc::new(Desk { snapshot, ..Desk::default() }));
        self.hub.link.show();
        self.own.may_start(self.hub.clock.now());
        self
    }

    /// Serves a program whose connection exists already.
    #[must_use]
    pub fn with_connection(mut self, fd: OwnedFd) -> Self {
        self.programs.early.push(fd);
        self
    }

    /// Runs until the session is over.
    ///
    /// # Errors
    /// What the link did, a signal, a failing system call; [`Error::AfterStart`] around it once the program runs.
    pub fn run(mut self) -> Result<Outcome, Error> {
        descriptors::raise();
        self.workers = Pool::new(self.config.core.threads.max(1));
        let result = part::run(&mut self);
        if let (Some(server), Err(error)) = (&mut self.control_server, &result) {
            server.tell(&Notice::Exit(error.code()));
        }
        if result.is_err() {
            // The display should not have to find out by silence.
            self.hub.link.session.close(CloseReason::Done);
            self.hub.link.transmit(self.hub.clock.now());
        }
        self.views.dismiss(self.hub.clock.now());
        let started = self.own.is_started();
        self.leave_nothing();
        match (result, started) {
            (Err(error), true) => Err(Error::AfterStart(Box::new(error))),
            (result, _) => result,
        }
    }

    /// Acts on what the display has said.
    fn hear_display(&mut self, now: Time) {
        while self.ending.over.is_none()
            && let Some(event) = self.hub.link.poll_event()
        {
            self.on_event(now, event);
        }
    }

    /// Acts on what the parts have found.
    fn hear_parts(&mut self, now: Time) {
        self.hear_views();
        for ((connection, pipe), piece) in self.pipes.take_collected() {
            if let Some(program) = self.programs.connections.get_mut(&connection) {
                program.core.on_collected(now, pipe, &piece);
            }
        }
        self.take_calls(now);
        // One that has just come has said more with its hello, and may say nothing for a round trip.
        self.hear_display(now);
        if let Some(caller) = self.offer.as_mut().and_then(Offer::poll_caller) {
            answer(&caller, &self.document(now));
        }
        self.programs.early.append(&mut self.accepting.take_come());
        self.serve_early(now);
        // The program was found when the session began. The display gets this end as any other.
        if let Some(error) = self.own.take_failure() {
            self.ending.stopped = Some(error.code());
            self.hub.reporter.report(SessionEvent::ProgramNotStarted { error });
        }
    }

    /// Passes on what programs notify the user of, to a display that shows it.
    fn pass_notes(&mut self, now: Time) {
        let Some(notes) = &mut self.notes else { return };
        let is_there = self.hub.link.presence() == Presence::Attached && self.desk.is_some();
        let session = &mut self.hub.link.session;
        notes.pass(now, is_there && session.capabilities().has(Capabilities::NOTIFY), session);
    }

    /// Passes on what programs have in the tray, to a display whose desk has one. While it is away it has.
    fn pass_tray(&mut self, now: Time) {
        let Some(tray) = &mut self.tray else { return };
        let presence = self.hub.link.presence();
        if presence == Presence::Detached {
            tray.keep_to(None);
        }
        let is_there = presence == Presence::Attached && self.desk.is_some();
        let session = &mut self.hub.link.session;
        tray.pass(now, is_there && session.capabilities().has(Capabilities::TRAY), session);
    }

    /// Decides which programs are read and accepted next: none that filled the link, and no more than [`MAX_PROGRAMS`].
    fn hold_back(&mut self, now: Time) {
        self.accepting.set_room(
            MAX_PROGRAMS.saturating_sub(self.programs.connections.len() + self.programs.early.len()),
        );
        for program in self.programs.connections.values_mut() {
            program.hold_back(now, self.programs.backlog.must_wait(program.handed));
        }
    }

    /// Handles what the programs want; the part of a turn that costs time.
    fn work(&mut self, now: Time, ready: &Ready) {
        let began = self.programs.work.goes_on.take().unwrap_or_else(|| self.hub.clock.now());
        let updates = self.gauges.counters.updates;
        for program in self.programs.connections.values_mut().filter(|program| ready.has(&program.socket)) {
            program.read(now);
        }
        self.on_timeouts(now);
        self.pass_pixels(now);
        self.flush_content(now);
        self.perform_actions();
        // A commit may be read in one turn and leave in later ones.
        let ended = self.hub.clock.now();
        let goes_on = self.programs.connections.values().any(|program| program.core.is_making());
        self.programs.work.goes_on = goes_on.then_some(ended);
        self.programs.work.took += ended.since(began);
        self.programs.work.left |= self.gauges.counters.updates > updates;
        if let Some(handle) = &self.gauges.handle
            && self.programs.work.left
            && !goes_on
        {
            self.programs.work.left = false;
            handle.publish_turn(std::mem::take(&mut self.programs.work.took));
        }
    }

    /// Takes one event of the session.
    fn on_event(&mut self, now: Time, event: Event) {
        match event {
            Event::Ready { .. } => {}
            Event::Control(Control::Snapshot(bytes)) => self.on_snapshot(now, &bytes),
            Event::Control(Control::AppClosed { error: Some(text), .. }) => {
                self.hub.reporter.report(SessionEvent::ProgramEnded { reason: text });
            }
            Event::Control(Control::Listen(listen)) => {
                let session = &mut self.hub.link.session;
                self.sound.iter_mut().for_each(|sound| sound.on_listen(listen, session));
            }
            Event::Sound { bytes } => {
                self.sound.iter_mut().for_each(|sound| sound.on_packet(now, &bytes));
            }
            Event::Datagram { bytes } => {
                self.sound.iter_mut().for_each(|sound| sound.on_datagram(now, &bytes));
            }
            Event::Control(Control::UrlDone { id, fate }) => self.urls.on_done(id, fate),
            Event::Control(Control::FetchFile { id, path }) => {
                if let Some(files) = &mut self.files {
                    files.on_fetch(&mut self.hub.link.session, id, &path);
                }
            }
            Event::Control(Control::FileDone { id, fate, .. }) => {
                // The desk does not say where it keeps files.
                self.files.iter_mut().for_each(|files| files.on_done(id, fate, None));
            }
            Event::Control(Control::File(offer)) => {
                self.with_way(|files, way| files.on_offer(way, &offer));
            }
            Event::Control(Control::Tray { is_there }) => {
                self.tray.iter_mut().for_each(|tray| tray.on_tray(is_there));
            }
            Event::Control(Control::TrayAct { id, act }) => {
                if let Some(tray) = &self.tray {
                    tray.on_act(id, act);
                }
            }
            Event::Control(Control::NotificationClosed { id, end }) => {
                self.notes.iter_mut().for_each(|notes| notes.on_closed(id, end));
            }
            Event::Control(Control::NotificationAction { id, key, token }) => {
                if let Some(notes) = &mut self.notes {
                    notes.on_action(id, key, token);
                }
            }
            Event::Control(_) => {}
            Event::Opened { channel, header: Header::Pipe { connection, pipe } } => {
                self.pipes.on_opened(&mut self.hub.link.session, now, channel, (connection, pipe));
            }
            Event::Opened { channel, header: Header::Events { connection } }
                if !self.programs.connections.contains_key(&connection) =>
            {
                self.hub.link.session.stop(channel, STOP_UNKNOWN);
            }
            Event::Message { header: Header::Events { connection }, bytes, .. } => {
                self.gauges.counters.messages += 1;
                if let Some(program) = self.programs.connections.get_mut(&connection) {
                    program.core.on_message(now, &bytes);
                }
            }
            Event::Data { header: Header::Pipe { connection, pipe }, bytes, .. } => {
                self.pipes.on_data(&mut self.hub.link.session, (connection, pipe), bytes);
            }
            Event::Finished { header, .. } => self.on_channel_end(header, None),
            Event::Reset { header, code, .. } => self.on_channel_end(header, Some(code)),
            Event::Stopped { header: Header::Pipe { connection, pipe }, .. } => {
                self.pipes.on_stopped(&mut self.hub.link.session, (connection, pipe));
            }
            Event::Stopped { header: Header::Wayland { connection }, .. } => self.hang_up(connection),
            Event::Blob { hash, bytes } => self.on_blob(now, hash, &bytes),
            Event::Warning(text) => self.hub.reporter.report(SessionEvent::Warning { text }),
            Event::Suspended { reason } => self.on_carrier_lost(now, reason),
            Event::Closed { reason, by } => self.on_display_over(now, reason, by),
            _ => {}
        }
    }

    /// A caller sends a file to the display.
    fn send_file(&mut self, size: u64, name: &str, caller: OwnedFd) {
        if self.files.is_none() {
            return control_server::answer(
                &caller,
                &Answer::Not("this session was begun with `--files off`".into()),
            );
        }
        self.with_way(|files, way| files.send(way, size, name, caller));
    }

    /// What passes files on, if they cross.
    fn with_way(&mut self, act: impl FnOnce(&mut Files, &mut files::Way<'_>)) {
        let Some(files) = &mut self.files else { return };
        let Base { link, reporter, .. } = &mut self.hub;
        act(files, &mut files::Way { session: &mut link.session, pipes: &mut self.pipes, reporter });
    }

    fn on_channel_end(&mut self, header: Header, reset: Option<u32>) {
        match (header, reset) {
            (Header::Pipe { connection, pipe }, None) => {
                self.pipes.on_finished(&mut self.hub.link.session, (connection, pipe));
            }
            (Header::Pipe { connection, pipe }, Some(_)) => self.pipes.on_reset((connection, pipe)),
            (Header::Events { connection }, _) => self.hang_up(connection),
            _ => {}
        }
    }

    /// The display's half of a connection is gone.
    fn hang_up(&mut self, connection: ConnectionId) {
        if let Some(program) = self.programs.connections.get_mut(&connection) {
            program.core.on_hang_up();
        }
    }

    fn on_snapshot(&mut self, now: Time, bytes: &Bytes) {
        let display = self.hub.link.session.peer().and_then(|peer| peer.incarnation);
        self.urls.keep_to(display);
        self.files.iter_mut().for_each(|files| files.keep_to(display));
        self.notes.iter_mut().for_each(|notes| notes.keep_to(display));
        self.tray.iter_mut().for_each(|tray| tray.keep_to(display));
        let snapshot = match Snapshot::decode(bytes) {
            Ok(snapshot) => snapshot,
            Err(error) => return self.refuse_display(now, CloseReason::ProtocolViolation(error.to_string())),
        };
        let clock = self.hub.link.session.clock().clone();
        let capabilities = self.hub.link.session.capabilities();
        let (video, cover) = (capabilities.has(Capabilities::VIDEO), capabilities.has(Capabilities::COVER));
        let echo = capabilities.has(Capabilities::ECHO);
        self.set_desk(now, Desk { snapshot, clock, video, cover, echo });
        self.show_again(now);
        self.serve_early(now);
        if let Some(server) = &mut self.control_server {
            server.tell(&Notice::Shown);
        }
        self.own.may_start(now);
    }

    fn set_desk(&mut self, now: Time, desk: Desk) {
        let desk = Rc::new(desk);
        for program in self.programs.connections.values_mut().filter(|program| program.core.is_attached()) {
            program.core.on_desk(now, &desk);
        }
        self.desk = Some(desk);
        self.hub.link.show();
    }

    fn on_blob(&mut self, now: Time, hash: u128, bytes: &Bytes) {
        let blob: Rc<[u8]> = Rc::from(&bytes[..]);
        self.blobs.kept.add(hash, Rc::clone(&blob));
        for program in self.programs.connections.values_mut() {
            program.core.on_blob(now, hash, &blob);
        }
    }

    /// Begins to serve the programs that have come, once it is known what they are to be offered.
    fn serve_early(&mut self, now: Time) {
        let Some(desk) =
            self.desk.clone().filter(|_| !self.gpu.as_ref().is_some_and(|gpu| gpu.is_awaited(now)))
        else {
            return;
        };
        for fd in std::mem::take(&mut self.programs.early) {
            self.serve(fd, &desk);
        }
    }

    /// Begins to serve a program's socket.
    fn serve(&mut self, fd: OwnedFd, desk: &Rc<Desk>) {
        let is_bridge = self.own.is_bridge(&fd);
        let socket = match Socket::new(fd) {
            Ok(socket) => socket,
            Err(error) => {
                return self.hub.reporter.report(SessionEvent::ProgramRefused { reason: error.to_string() });
            }
        };
        if let Some(handle) = &self.gauges.handle {
            handle.publish_accepted(self.hub.clock.host_now());
        }
        let id = self.programs.next_id();
        let mut config = self.config.core.clone();
        config.compression = pixel_compression(self.config.compress, &self.hub.link.session);
        config.probe = self.gauges.trace.probe(id);
        config.workers = self.workers.as_ref().map(Pool::workers).unwrap_or_default();
        config.gpu = self.gpu.as_ref().and_then(Gpu::offer);
        let mut core = Connection::new(config, desk);
        let now = self.hub.clock.now();
        for (hash, blob) in self.blobs.kept.iter() {
            core.on_blob(now, hash, blob);
        }
        let channel = self.hub.link.session.open(Header::Wayland { connection: id });
        if self.hub.link.presence() == Presence::Detached {
            core.detach(now);
        }
        let recorder =
            self.programs.recordings.as_ref().map(|directory| Recorder::new(directory, id)).transpose();
        let recorder = recorder.unwrap_or_else(|error| {
            self.hub
                .reporter
                .report(SessionEvent::ProgramRefused { reason: format!("no recording: {error}") });
            None
        });
        self.programs.count += 1;
        let number = self.programs.count;
        self.programs.connections.insert(
            id,
            ProgramConnection { number, socket, core, channel, handed: 0, recorder, is_bridge, held: false },
        );
    }

    fn on_timeouts(&mut self, now: Time) {
        for program in self.programs.connections.values_mut() {
            if program.core.next_timeout().is_some_and(|at| at <= now) {
                program.core.on_timeout(now);
            }
        }
        self.refresh_clock(now);
        if let Some(SessionEvent::Silent { .. }) = self.hub.link.contact_event(now) {
            // The display may be reached through the launcher all the same.
            self.control_server.iter_mut().for_each(|server| server.tell(&Notice::Silent));
        }
        let count = self.programs.connections.len();
        self.gauges.publish(now, &self.hub.link, count, &self.hub.reporter);
    }

    /// Programs ask for the pixels of their GPU buffers, and get those that have been read.
    fn pass_pixels(&mut self, now: Time) {
        let Some(gpu) = &mut self.gpu else { return };
        // Programs may ask for more because of what they get.
        let mut goes_on = true;
        while std::mem::take(&mut goes_on) {
            for (id, program) in &mut self.programs.connections {
                while let Some(ask) = program.core.poll_ask() {
                    gpu.ask(now, *id, ask);
                }
            }
            gpu.send(now);
            while let Some((id, answer)) = gpu.poll_answer() {
                if let Some(program) = self.programs.connections.get_mut(&id) {
                    program.core.on_answer(now, answer);
                    goes_on = true;
                }
            }
        }
    }

    /// The estimate of the other host's clock improves with time; connections get it when it has moved.
    fn refresh_clock(&mut self, now: Time) {
        let clock = self.hub.link.session.clock();
        if let Some(desk) = &self.desk
            && desk.clock.offset_nanos().abs_diff(clock.offset_nanos()) > CLOCK_STEP_NS
        {
            let desk = Desk { clock: clock.clone(), ..Desk::clone(desk) };
            self.set_desk(now, desk);
        }
    }

    /// Lets connections hand over content while the link has room, each first in its turn. What the user attends to
    /// leaves before anything else is encoded.
    fn flush_content(&mut self, now: Time) {
        let count = self.programs.connections.len();
        if count == 0 {
            return;
        }
        self.programs.turn = (self.programs.turn + 1) % count;
        let videos = self.programs.connections.values().map(|program| program.core.videos()).sum();
        let mut credit = Credit { videos, ..self.hub.link.credit(now) };
        self.flush_turn(now, Turn::First, &mut credit);
        self.perform_actions();
        self.hub.link.transmit(now);
        self.flush_turn(now, Turn::Rest, &mut credit);
        self.flush_turn(now, Turn::Better, &mut credit);
    }

    fn flush_turn(&mut self, now: Time, turn: Turn, credit: &mut Credit) {
        let ids: Vec<ConnectionId> = self.programs.connections.keys().copied().collect();
        for id in ids[self.programs.turn..].iter().chain(&ids[..self.programs.turn]) {
            let Some(program) = self.programs.connections.get_mut(id) else { continue };
            let (session, superseded) = (&mut self.hub.link.session, &mut self.gauges.counters.superseded);
            program.core.flush(now, turn, credit, &mut Handed { session, connection: *id, superseded });
        }
    }

    /// Looks how much of the programs' requests the link has sent, at the beginning of a turn: all that the last one
    /// brought was handed to it.
    fn drain_backlog(&mut self) {
        if self.programs.backlog.drain(&self.hub.link.state()) {
            self.programs.connections.values_mut().for_each(|program| program.handed = 0);
        }
    }

    fn perform_actions(&mut self) {
        let Self {
            programs: Programs { connections, backlog, .. },
            hub: Base { link, reporter, .. },
            pipes,
            blobs,
            gauges: Gauges { counters, trace, .. },
            ..
        } = self;
        let session = &mut link.session;
        for (id, program) in connections {
            while let Some(action) = program.core.poll_action() {
                let sent = match action {
                    Action::Message(bytes) => {
                        counters.messages += 1;
                        program.handed += bytes.len() as u64;
                        backlog.add(bytes.len() as u64);
                        session.send(program.channel, &bytes)
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
                    Action::Collect { pipe } => {
                        pipes.collect(session, (*id, pipe));
                        Ok(())
                    }
                    Action::Blob { hash, bytes } => {
                        send_blob(session, &mut blobs.sent, hash, bytes);
                        Ok(())
                    }
                    // What is dragged is the display's.
                    Action::Drag { .. } => Ok(()),
                };
                if let Err(error) = sent {
                    reporter.report(SessionEvent::ProgramEnded { reason: format!("not sent: {error}") });
                    program.core.on_hang_up();
                }
            }
        }
    }

    fn flush_sockets(&mut self) {
        for program in self.programs.connections.values_mut() {
            program.write();
        }
    }

    /// Closes the connections that are over.
    fn remove_ended(&mut self, now: Time) {
        let ended: Vec<(ConnectionId, End)> = self
            .programs
            .connections
            .iter()
            .filter_map(|(id, program)| program.core.end().map(|end| (*id, end.clone())))
            .collect();
        for (id, end) in ended {
            let Some(mut program) = self.programs.connections.remove(&id) else { continue };
            program.write();
            self.hub.link.session.finish(program.channel);
            self.pipes.on_connection_end(&mut self.hub.link.session, now, id);
            self.gpu.iter_mut().for_each(|gpu| gpu.part(id));
            let error = match &end {
                End::Closed => None,
                End::AppViolation(what) => {
                    let error = Error::AppViolation(what.clone());
                    self.hub.reporter.report(SessionEvent::ProgramViolation { error });
                    Some(end.to_string())
                }
                End::CompositorError(_) | End::PeerViolation(_) | End::TooMuch(_) => {
                    self.hub.reporter.report(SessionEvent::ProgramEnded { reason: end.to_string() });
                    Some(end.to_string())
                }
            };
            let _ = self.hub.link.session.control(&Control::AppClosed { connection: id, error });
            self.ending.last_end = Some(end);
        }
    }
}

/// A smaller change of the offset is noise.
const CLOCK_STEP_NS: u64 = 500_000;
