//! Viewers beside the active display.
//!
//! Each has a link and a session of its own, and for each program a [`View`], which reads the program's connection and
//! never writes to it. What a viewer sends reaches only its own views. Which viewers are let in is decided elsewhere. A
//! viewer whose carrier is lost is dropped: it may come again, and begins anew. Invariants: at most what
//! [`MAX_WAITING`] allows is queued for a viewer, and nothing is kept of what was sent, so no other part waits for it,
//! and withheld answers cost nothing; when it leaves, all that was its own is freed.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use rustix::event::PollFlags;
use wayferry_pixels::{Encoder, Workspace};
use wayferry_proto::admission::LinkId;
use wayferry_proto::{
    Candidate, Capabilities, ChannelId, CloseReason, ConnectionId, Control, Event, Header, Limits, Secret,
    Time,
};
use wayferry_sound::{Captured, Wanted};
use wayferry_wayland::app::{Config, Counts, Credit, Desk, Published, Scene, View};
use wayferry_wayland::snapshot::Snapshot;
use wayferry_wayland::{Action, End};

use crate::admission::refuse_as_full;
use crate::clock::earlier;
use crate::edge::part::{Hub, Part};
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::event::{Reporter, SessionEvent};
use crate::info::ViewerInfo;
use crate::link::{Link, closed};
use crate::program_connection::{ProgramConnection, STOP_UNKNOWN, pixel_compression};
use crate::sanitize::sanitize;
use crate::settings::Compress;
use crate::sound::{Mode, Sending};

/// All viewers.
pub(super) struct Views {
    compress: Compress,
    lossy: Option<u8>,
    threads: usize,
    workspace: Workspace,
    viewers: Vec<Viewer>,
    /// How many numbers were given to viewers.
    numbers: u32,
    /// Whose content is encoded first, so that none is always last.
    turn: usize,
    /// Of those that have left.
    past: Counts,
    /// Incarnations of those that have left for good, until they are asked for.
    gone: Vec<Secret>,
    /// How sound crosses the link to those that listen, if they may.
    sound: Option<Mode>,
    reporter: Reporter,
}

impl Part for Views {
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.until(self.next_timeout(now));
        let wakes = self.viewers.iter().filter_map(|viewer| viewer.link.wake_fd());
        wakes.for_each(|fd| interests.add_borrowed(fd, PollFlags::IN));
    }

    fn turn(&mut self, now: Time, _hub: &mut Hub<'_>, _ready: &Ready) -> Result<(), Error> {
        for viewer in &mut self.viewers {
            viewer.receive(now);
        }
        let gone = self.viewers.iter().filter(|viewer| viewer.leaves);
        self.gone.extend(gone.filter_map(Viewer::incarnation));
        self.drop_those(Viewer::is_over);
        Ok(())
    }
}

/// A viewer.
struct Viewer {
    link: Link,
    /// By this its user calls it; it stays when it comes again.
    number: u32,
    /// By which link it came, if by one.
    by: Option<LinkId>,
    since: Time,
    /// It has left for good, or broke the rules.
    leaves: bool,
    /// What it has told of its compositor.
    desk: Option<Rc<Desk>>,
    encoder: Encoder,
    /// By the program's number.
    programs: BTreeMap<u32, Looking>,
    next: u32,
    /// So much waits for it that it is sent nothing more for now.
    held: bool,
    /// Of views that are over.
    past: Counts,
    /// If it may hear.
    sound: Option<Sending>,
    reporter: Reporter,
}

/// A program as all viewers see it in one turn.
struct Seen<'a> {
    program: &'a ProgramConnection,
    /// What has left for the active display.
    published: Vec<Published>,
    scene: OnceCell<Scene>,
}

/// One program at one viewer.
struct Looking {
    /// `None` once it is over.
    view: Option<View>,
    connection: ConnectionId,
    channel: ChannelId,
}

impl Views {
    /// Without viewers.
    pub(super) fn new(core: &Config, compress: Compress, reporter: Reporter) -> Self {
        Self {
            compress,
            lossy: core.lossy,
            threads: core.threads,
            workspace: core.workspace.clone(),
            viewers: Vec::new(),
            numbers: 0,
            turn: 0,
            past: Counts::default(),
            gone: Vec::new(),
            sound: None,
            reporter,
        }
    }

    /// How many viewers there are.
    pub(super) fn count(&self) -> usize {
        self.viewers.len()
    }

    /// How many more may come.
    pub(super) fn free(&self) -> usize {
        MAX_VIEWS.saturating_sub(self.viewers.len())
    }

    /// A viewer was let in, by a link if it says so; one that comes again is told everything anew.
    pub(super) fn take(&mut self, now: Time, candidate: Candidate<Link>, by: Option<LinkId>) {
        let mut number = None;
        if let Some(peer) = candidate.peer() {
            if self.viewers.iter().any(|viewer| viewer.link.session.is_late(peer)) {
                return;
            }
            let it = peer.incarnation;
            let same = |viewer: &Viewer| it.is_some() && viewer.incarnation() == it;
            number = self.viewers.iter().find(|viewer| same(viewer)).map(|viewer| viewer.number);
            self.drop_those(same);
        }
        let mut link = candidate.forgo(now);
        link.session.restrict(LIMITS);
        if self.free() == 0 {
            return refuse_as_full(link, now);
        }
        let compression = pixel_compression(self.compress, &link.session);
        let encoder = Encoder::new(compression).with_threads(self.threads);
        let encoder = encoder.with_workspace(self.workspace.clone());
        let (programs, past) = (BTreeMap::new(), Counts::default());
        let number = number.unwrap_or_else(|| {
            self.numbers += 1;
            self.numbers
        });
        self.viewers.push(Viewer {
            link,
            number,
            by,
            since: now,
            leaves: false,
            desk: None,
            encoder,
            programs,
            next: 1,
            held: false,
            past,
            sound: self.sound.map(Sending::new),
            reporter: self.reporter.clone(),
        });
        self.reporter.report(SessionEvent::DisplayAttached { viewer: true });
    }

    /// Those that come from now on may hear the session.
    pub(super) fn share_sound(&mut self, mode: Mode) {
        self.sound = Some(mode);
    }

    /// How the first that listens wants sound.
    pub(super) fn wanted_sound(&mut self) -> Option<Wanted> {
        self.viewers.iter_mut().find_map(|viewer| {
            let rtt = viewer.link.state().rtt;
            viewer.sound.as_mut()?.wanted(rtt)
        })
    }

    /// Something was captured.
    pub(super) fn send_sound(&mut self, now: Time, captured: &Captured) {
        for Viewer { link, sound, .. } in &mut self.viewers {
            let state = link.state();
            if let Some(sound) = sound {
                sound.send(now, &mut link.session, &state, captured);
                link.transmit(now);
            }
        }
    }

    /// Repeats sound that is due, and gives up what is too old.
    pub(super) fn repeat_sound(&mut self, now: Time) {
        for Viewer { link, sound, .. } in &mut self.viewers {
            let state = link.state();
            if let Some(sound) = sound {
                sound.on_timeout(now, &mut link.session, &state);
                link.transmit(now);
            }
        }
    }

    /// The incarnations of those that have left for good; told once.
    pub(super) fn take_gone(&mut self) -> Vec<Secret> {
        std::mem::take(&mut self.gone)
    }

    fn drop_those(&mut self, leaves: impl Fn(&Viewer) -> bool) {
        let past = &mut self.past;
        self.viewers.retain(|viewer| {
            let leaves = leaves(viewer);
            if leaves {
                add(past, viewer.counts());
            }
            !leaves
        });
    }

    /// Sends every viewer what has changed.
    pub(super) fn show<'a>(&mut self, now: Time, programs: impl Iterator<Item = &'a mut ProgramConnection>) {
        let watched = !self.viewers.is_empty();
        let mut seen: Vec<Seen<'_>> = Vec::new();
        for program in programs {
            program.core.set_watched(watched);
            if watched {
                let published = std::iter::from_fn(|| program.core.poll_published()).collect();
                seen.push(Seen { program, published, scene: OnceCell::new() });
            }
        }
        let count = self.viewers.len().max(1);
        self.turn = (self.turn + 1) % count;
        let mut encoded = 0;
        for index in 0..self.viewers.len() {
            let viewer = &mut self.viewers[(index + self.turn) % count];
            viewer.show(now, &seen, self.compress, self.lossy, &mut encoded);
            viewer.link.transmit(now);
        }
    }

    /// The session is over, with this code.
    pub(super) fn say_exit(&mut self, now: Time, code: u8) {
        for viewer in &mut self.viewers {
            // Cannot fail: the message is small and ours to send.
            let _ = viewer.link.session.control(&Control::Exit { code: code.into() });
            viewer.link.transmit(now);
        }
    }

    /// Sends all viewers away.
    pub(super) fn dismiss(&mut self, now: Time) {
        self.send_away(now, &CloseReason::Done, |_| true);
    }

    /// Sends the one with this number away. Gives by what it could come again, if it said so, and `None` where there is
    /// none.
    pub(super) fn dismiss_one(&mut self, now: Time, number: u32) -> Option<Option<Secret>> {
        let viewer = self.viewers.iter().find(|viewer| viewer.number == number)?;
        let incarnation = viewer.incarnation();
        self.send_away(now, &CloseReason::Done, |viewer| viewer.number == number);
        Some(incarnation)
    }

    /// Sends those away who came by that link, or by any, which is good no more. Says whether there were any.
    pub(super) fn dismiss_guests(&mut self, now: Time, which: Option<LinkId>) -> bool {
        let came = |viewer: &Viewer| viewer.by.is_some_and(|id| which.is_none_or(|which| which == id));
        let any = self.viewers.iter().any(came);
        self.send_away(now, &CloseReason::BadSecret, came);
        any
    }

    fn send_away(&mut self, now: Time, why: &CloseReason, whom: impl Fn(&Viewer) -> bool) {
        for viewer in self.viewers.iter_mut().filter(|viewer| whom(viewer)) {
            viewer.link.session.close(why.clone());
            viewer.link.transmit(now);
        }
        self.drop_those(whom);
    }

    /// Those who came by links, by which, and from where.
    pub(super) fn guests(&self) -> impl Iterator<Item = (LinkId, Option<SocketAddr>)> {
        self.viewers.iter().filter_map(|viewer| Some((viewer.by?, viewer.link.from())))
    }

    /// When there is something to do although nothing comes.
    fn next_timeout(&self, now: Time) -> Option<Time> {
        let mut deadline = None;
        for viewer in &self.viewers {
            let more = viewer.link.has_more().then_some(now);
            let sound = viewer.sound.as_ref().and_then(|sound| sound.next_timeout(now));
            deadline = earlier(deadline, earlier(earlier(viewer.link.next_timeout(), sound), more));
            if viewer.held {
                deadline = earlier(deadline, Some(now + HELD_LOOK));
                continue;
            }
            for view in viewer.views() {
                deadline = earlier(deadline, view.next_timeout());
            }
        }
        deadline
    }

    /// Who they are.
    pub(super) fn viewers(&self, now: Time) -> Vec<ViewerInfo> {
        let viewers = self.viewers.iter();
        viewers
            .map(|viewer| ViewerInfo {
                id: viewer.number,
                software: viewer.link.session.peer().map(|peer| sanitize(&peer.software)),
                from: viewer.link.from(),
                since: now.since(viewer.since),
                link: viewer.by.map(u32::from),
            })
            .collect()
    }

    /// How content came to them so far, and bytes of pixels that are kept for them alone.
    pub(super) fn figures(&self) -> (Counts, u64) {
        let (mut counts, mut kept) = (self.past, 0);
        for viewer in &self.viewers {
            add(&mut counts, viewer.counts());
            kept += viewer.views().map(View::kept).sum::<u64>();
        }
        (counts, kept)
    }
}

impl Viewer {
    /// With this it may come again.
    fn incarnation(&self) -> Option<Secret> {
        self.link.session.peer()?.incarnation
    }

    fn is_over(&self) -> bool {
        self.link.session.is_closed() || !self.link.is_up()
    }

    fn views(&self) -> impl Iterator<Item = &View> {
        self.programs.values().filter_map(|looking| looking.view.as_ref())
    }

    fn counts(&self) -> Counts {
        let mut counts = self.past;
        self.views().for_each(|view| add(&mut counts, view.counts()));
        counts
    }

    fn receive(&mut self, now: Time) {
        self.link.receive(now);
        while let Some(event) = self.link.poll_event() {
            self.on_event(now, event);
        }
        self.link.transmit(now);
    }

    fn on_event(&mut self, now: Time, event: Event) {
        match event {
            Event::Control(Control::Snapshot(bytes)) => match Snapshot::decode(&bytes) {
                Ok(snapshot) => {
                    let clock = self.link.session.clock().clone();
                    let video = self.link.session.capabilities().has(Capabilities::VIDEO);
                    self.desk = Some(Rc::new(Desk { snapshot, clock, video, cover: false, echo: false }));
                }
                Err(error) => self.turn_away(&error.to_string()),
            },
            Event::Control(Control::Listen(listen)) => {
                let session = &mut self.link.session;
                self.sound.iter_mut().for_each(|sound| sound.on_listen(listen, session));
            }
            Event::Opened { header: Header::Events { connection }, .. } if self.of(connection).is_some() => {}
            // Clipboards and the like: nothing of that is a view's.
            Event::Opened { channel, header: Header::Pipe { .. } | Header::Events { .. } } => {
                self.link.session.stop(channel, STOP_UNKNOWN);
            }
            Event::Message { header: Header::Events { connection }, bytes, .. } => {
                let Some(view) = self.of(connection).and_then(|looking| looking.view.as_mut()) else {
                    return;
                };
                view.on_message(now, &bytes);
                if let Some(End::PeerViolation(what)) = view.end() {
                    let what = what.clone();
                    self.turn_away(&what);
                }
            }
            // The program's windows cannot be shown there any more.
            Event::Finished { header: Header::Events { connection }, .. }
            | Event::Reset { header: Header::Events { connection }, .. }
            | Event::Stopped { header: Header::Wayland { connection }, .. } => self.give_up(connection),
            Event::Closed { reason, by } => {
                self.leaves = !reason.is_of_link() && reason != CloseReason::Timeout;
                if let Err(error) = closed(reason, by) {
                    self.reporter.report(SessionEvent::ViewerLost { reason: error.to_string() });
                }
                self.link.lose_carrier();
            }
            _ => {}
        }
    }

    fn of(&mut self, connection: ConnectionId) -> Option<&mut Looking> {
        self.programs.values_mut().find(|looking| looking.connection == connection)
    }

    fn turn_away(&mut self, what: &str) {
        let reason = format!("it broke the rules: {what}");
        self.reporter.report(SessionEvent::ViewerLost { reason });
        self.link.session.close(CloseReason::ProtocolViolation(what.to_owned()));
    }

    fn give_up(&mut self, connection: ConnectionId) {
        let looking = self.programs.values_mut().find(|looking| looking.connection == connection);
        looking.into_iter().for_each(|looking| looking.finish(&mut self.link, &mut self.past));
    }

    fn show(
        &mut self,
        now: Time,
        programs: &[Seen<'_>],
        compress: Compress,
        lossy: Option<u8>,
        encoded: &mut u64,
    ) {
        let Some(desk) = self.desk.clone() else { return };
        let (link, past) = (&mut self.link, &mut self.past);
        self.programs.retain(|number, looking| {
            let stays = programs.iter().any(|seen| seen.program.number == *number);
            if !stays {
                looking.finish(link, past);
            }
            stays
        });
        let waiting = self.link.session.retained() as u64 + self.link.state().unsent;
        self.held = waiting >= MAX_WAITING;
        let mut credit = Credit { encoded: *encoded, ..self.link.credit(now) };
        for Seen { program, published, scene } in programs {
            let looking = self.programs.entry(program.number).or_insert_with(|| {
                let connection = ConnectionId(self.next);
                self.next += 1;
                let channel = self.link.session.open(Header::Wayland { connection });
                let compression = pixel_compression(compress, &self.link.session);
                Looking { view: Some(View::new(&desk, compression, lossy)), connection, channel }
            });
            let Some(view) = &mut looking.view else { continue };
            if self.held {
                if !published.is_empty() {
                    view.miss(now);
                }
                continue;
            }
            for published in published {
                view.hand_on(now, &program.core, published, &mut self.encoder, &mut credit);
            }
            if view.is_due(now, &program.core, &credit) {
                let scene = scene.get_or_init(|| Scene::of(&program.core));
                view.look(now, &program.core, scene, &mut self.encoder, &mut credit);
            }
            if let Some(reason) = looking.perform(&mut self.link, &mut self.past) {
                self.reporter.report(SessionEvent::ViewerLost { reason });
            }
        }
        *encoded = credit.encoded;
    }
}

impl Looking {
    /// Sends what the view has to say; gives why the display cannot be shown the program any more.
    fn perform(&mut self, link: &mut Link, past: &mut Counts) -> Option<String> {
        let (connection, channel) = (self.connection, self.channel);
        let view = self.view.as_mut()?;
        while let Some(action) = view.poll_action() {
            let sent = match action {
                Action::Message(bytes) => link.session.send(channel, &bytes),
                Action::Update(update) => {
                    link.session.send_update(update.header(connection), update.chunks).map(|_| ())
                }
                // A view has no others.
                Action::PipeOut { .. }
                | Action::PipeIn { .. }
                | Action::Collect { .. }
                | Action::Drag { .. }
                | Action::Blob { .. } => Ok(()),
            };
            if let Err(error) = sent {
                self.finish(link, past);
                return Some(format!("a message was not sent: {error}"));
            }
        }
        let end = view.end()?.to_string();
        self.finish(link, past);
        Some(end)
    }

    /// Frees what it held; nothing comes of it any more.
    fn finish(&mut self, link: &mut Link, past: &mut Counts) {
        if let Some(view) = self.view.take() {
            add(past, view.counts());
            link.session.finish(self.channel);
        }
    }
}

fn add(sum: &mut Counts, counts: Counts) {
    sum.own += counts.own;
    sum.shared += counts.shared;
}

/// How many viewers there may be at once.
const MAX_VIEWS: usize = 8;
/// Bytes waiting to be sent to a viewer, beyond which it gets nothing more until its link has taken some. With what one
/// turn adds, and with [`LIMITS`], at most 16 MiB are held for a viewer, beside the pixels that `wayferry info` shows.
const MAX_WAITING: u64 = 6 << 20;
/// How often a viewer that is held back is checked.
const HELD_LOOK: Duration = Duration::from_millis(10);
/// What a viewer may make this side store: it sends little more than its compositor's snapshot.
const LIMITS: Limits = Limits {
    buffered: 8 << 20,
    buffered_per_channel: 256 << 10,
    buffered_before_hello: 256 << 10,
    streams: 1024,
    unacknowledged: 0,
};

#[cfg(test)]
mod tests;
