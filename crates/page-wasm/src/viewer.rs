//! The display side of a session, as a viewer or as its display, over one carrier after the other.
//!
//! Invariant: each program that the page shows has a channel here, and none other has.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use wayferry_audio::Codec;
use wayferry_page::{Page, Role};
use wayferry_proto::{
    Arrival, Capabilities, ChannelId, CloseReason, ClosedBy, Config, ConnectionId, Control, Event, Header,
    HostTime, Limits, LinkState, MAX_ROW_DATAGRAM, RemoteChannelId, Secret, Session, SessionId, Side, Time,
    Transmit,
};

use crate::acts::{Act, Acts};
use crate::pipes::Pipes;
use crate::socket::{Next, Socket};
use crate::sound::Sound;

/// Bytes that may wait to be sent before what the user does waits in the page. What programs paste waits from half of
/// that on, so that no program's pastes keep the user's keys.
pub const MAX_HANDED: usize = 1 << 20;

/// Bytes that may wait to be sent: an app side that does not read is given up.
pub const MAX_UNSENT: usize = 4 << 20;

/// After so long without a word the link counts as lost: an app side says something once a second.
const SILENCE: Duration = Duration::from_secs(5);

/// What the app side may make the session keep. Its streams are read in order, so one update after the other is
/// incomplete, of 20 MiB at most.
const LIMITS: Limits = Limits {
    buffered: 128 << 20,
    buffered_per_channel: 8 << 20,
    buffered_before_hello: 1 << 20,
    streams: 8192,
    unacknowledged: 32 << 20,
};

/// Bytes of one stream that a packet is taken to hold: what every path carries.
const PAYLOAD: u16 = 1172;

/// Packets of which a share of those lost is told: of fewer it would jump.
const LEAST_PACKETS: u64 = 50;

/// Stop codes: there are as many programs as may be; the program is not shown any more; no such channel.
const STOP_TOO_MANY: u32 = 6;
const STOP_ENDED: u32 = 5;
const STOP_UNKNOWN: u32 = 3;

/// What the script should know beside what is to be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The app side has let the page in.
    Welcome,
    /// A program is not shown any more although it goes on, and why.
    NotShown(String),
    /// The link is lost, and there may be another: [`Viewer::resume`].
    Away,
    /// The session goes on over another carrier.
    Back,
    /// The same, but all that was shown is told anew, and the page is to tell anew what it has said of itself.
    Anew,
    /// Keys are passed over, for many wait for a link, or for room on it. Told once until those have gone.
    Missed,
    /// It is over; the last notice.
    Over(Over),
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The session has ended, or its owner has sent the page away.
    Done,
    /// The ticket is not good, or not good any more: that it was used up, has expired or was taken back is not told.
    Refused,
    /// The link was taken back by which the page had come.
    Revoked,
    /// There are as many viewers as may be.
    Full,
    /// Another display has taken the session.
    Taken,
    /// The two are of different builds.
    Incompatible,
    /// The session goes on without the page, which had lost its link and came too late.
    Forgotten,
    /// The link was lost.
    Lost,
    /// One of the two broke a rule, or met a limit.
    Broken,
}

/// See the module.
#[derive(Debug)]
pub struct Viewer {
    /// What is said first on each carrier.
    config: Config,
    session: Session,
    page: Page,
    sound: Sound,
    /// When the app side is to hear how sound fares.
    sound_due: Option<Time>,
    channels: BTreeMap<ConnectionId, (ChannelId, RemoteChannelId)>,
    pipes: Pipes,
    notices: VecDeque<Notice>,
    role: Role,
    is_welcome: bool,
    /// It was let in over an earlier carrier, and waits to be over this one.
    is_returning: bool,
    /// The link was lost, until there is one again.
    is_away: bool,
    acts: Acts,
    carrier: Carrier,
    /// Bytes that the session was given since the carrier took all that it had.
    handed: usize,
}

/// What the session is on.
#[derive(Debug)]
enum Carrier {
    /// Streams of the browser's, which was given so many bytes and has not sent them.
    Streams { unsent: usize },
    /// One stream of bytes for all.
    Socket(Box<Socket>),
}

/// What a page shows to be let in.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    /// The session that it wants.
    pub session: SessionId,
    /// The secret of the link.
    pub secret: Secret,
    /// A number that no one else can find, by which it is known when it comes again.
    pub incarnation: Secret,
}

impl Viewer {
    /// Begins a session. `origin` is what the script's clock showed at [`Time::ZERO`].
    ///
    /// Whether the secret is good for that role is the app side's to say: it makes a viewer of who may be no more.
    pub fn new(role: Role, ticket: Ticket, start: Time, origin: HostTime) -> Self {
        Self::with(Capabilities::NONE, role, ticket, start, origin)
    }

    /// The same where the script has decoders of videos.
    pub fn with_decoders(role: Role, ticket: Ticket, start: Time, origin: HostTime) -> Self {
        Self::with(Capabilities::VIDEO, role, ticket, start, origin)
    }

    fn with(videos: Capabilities, role: Role, ticket: Ticket, start: Time, origin: HostTime) -> Self {
        let Ticket { session, secret, incarnation } = ticket;
        let view = match role {
            Role::View => Capabilities::VIEW,
            Role::Control => Capabilities::NONE,
        };
        let config = Config {
            session,
            secret: Some(secret),
            resume: Some(incarnation),
            software: format!("wayferry {} in a browser", env!("CARGO_PKG_VERSION")),
            capabilities: view
                .with(videos)
                .with(Capabilities::DATAGRAM_REPAIR)
                .with(Capabilities::LOSS)
                .with(Capabilities::SOUND)
                .with(Capabilities::SHARED_SOUND),
            limits: LIMITS,
            start,
            silence: SILENCE,
            clock_origin: origin,
            ..Config::new(Side::Display)
        };
        let mut viewer = Self {
            session: Session::new(config.clone()),
            config,
            page: Page::new(role),
            sound: Sound::default(),
            sound_due: None,
            channels: BTreeMap::new(),
            pipes: Pipes::default(),
            notices: VecDeque::new(),
            role,
            is_welcome: false,
            is_returning: false,
            is_away: false,
            acts: Acts::default(),
            carrier: Carrier::Streams { unsent: 0 },
            handed: 0,
        };
        viewer.say();
        viewer
    }

    /// Goes on over another carrier, on which nothing was said. The session is [away](Notice::Away), or its carrier is
    /// given up.
    pub fn resume(&mut self, now: Time) {
        if self.session.is_closed() {
            return;
        }
        self.session.suspend();
        self.is_returning = self.is_welcome;
        if self.is_returning {
            // A link is used once; who came by it is known by his incarnation.
            self.config.secret = None;
        }
        let config = Config { start: now, ..self.config.clone() };
        let nothing = Session::new(Config::new(Side::Display));
        self.session = Session::resuming(config, std::mem::replace(&mut self.session, nothing));
        self.carrier = Carrier::Streams { unsent: 0 };
        self.go_on(now);
    }

    /// Takes what has arrived.
    pub fn receive(&mut self, now: Time, arrival: Arrival) {
        self.session.receive(now, arrival);
        self.go_on(now);
    }

    /// From now on it is on one stream of bytes, of which nothing was read or written.
    pub fn begin_socket(&mut self, now: Time) {
        self.carrier = Carrier::Socket(Box::default());
        self.session.set_link(now, &self.link());
    }

    /// Bytes have come on that.
    pub fn receive_bytes(&mut self, now: Time, bytes: &[u8]) {
        let Carrier::Socket(socket) = &mut self.carrier else { return };
        for arrival in socket.receive(now, bytes) {
            self.session.receive(now, arrival);
        }
        self.go_on(now);
    }

    /// What is to be sent on that next, where the browser has so many bytes that it has not sent.
    pub fn send_bytes(&mut self, now: Time, buffered: usize) -> Next {
        while matches!(self.carrier, Carrier::Socket(_))
            && let Some(transmit) = self.poll_transmit(now)
            && let Carrier::Socket(socket) = &mut self.carrier
        {
            socket.transmit(transmit);
        }
        let Carrier::Socket(socket) = &mut self.carrier else { return Next::Nothing };
        let (send, unsent) = (socket.send(now, buffered), socket.unsent());
        self.check_unsent(now, unsent);
        send
    }

    /// So many bytes were handed to the browser's streams and have not left.
    pub fn set_unsent(&mut self, now: Time, bytes: usize) {
        if let Carrier::Streams { unsent } = &mut self.carrier {
            *unsent = bytes;
            self.check_unsent(now, bytes);
        }
    }

    fn check_unsent(&mut self, now: Time, bytes: usize) {
        self.session.set_link(now, &self.link());
        if bytes > MAX_UNSENT && !self.session.is_closed() {
            self.session.close(CloseReason::TooMuch("bytes that the app side does not read".to_owned()));
            self.go_on(now);
        }
    }

    /// How long a ping takes, once one has come back.
    pub fn round_trip(&self) -> Option<Duration> {
        self.session.clock().rtt()
    }

    /// The share of packets on their way here that the link has lost of late, 0 to 1, once enough are known.
    pub fn loss(&self) -> Option<f64> {
        let loss = self.session.peer_loss().filter(|loss| loss.packets >= LEAST_PACKETS)?;
        Some(loss.lost as f64 / loss.packets as f64)
    }

    /// Everything that is to be seen has been drawn, in the frame that the browser began at `began`.
    pub fn on_frame(&mut self, now: Time, began: Time) {
        let HostTime(time_ns) = self.config.clock_origin + began.since_start();
        self.page.on_frame(time_ns);
        self.go_on(now);
    }

    /// Does what is due.
    pub fn on_timeout(&mut self, now: Time) {
        self.session.on_timeout(now);
        self.page.on_timeout(now);
        self.pipes.on_timeout(now, &mut self.page);
        self.go_on(now);
    }

    /// When [`Self::on_timeout`] is to be called.
    pub fn next_timeout(&self) -> Option<Time> {
        let page = self.page.next_timeout();
        [self.session.next_timeout(), page, self.pipes.next_timeout(), self.sound_due]
            .into_iter()
            .flatten()
            .min()
    }

    /// Leaves the session.
    pub fn leave(&mut self, now: Time) {
        self.session.close(CloseReason::Done);
        self.go_on(now);
    }

    /// What the carrier is to do next.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        loop {
            let next = self.session.poll_transmit(now);
            if next.is_some() || !self.hand_on(now) {
                return next;
            }
        }
    }

    /// The carrier has all that the session had for it: what waited for that goes on. Gives whether something did.
    fn hand_on(&mut self, now: Time) -> bool {
        self.handed = 0;
        if self.acts.wait() || self.pipes.has_more() {
            self.go_on(now);
        }
        self.handed > 0
    }

    /// Bytes that may be handed to the session now.
    fn room(&self) -> usize {
        let unsent = match &self.carrier {
            Carrier::Streams { unsent } => *unsent,
            Carrier::Socket(socket) => socket.unsent(),
        };
        let room = MAX_HANDED.saturating_sub(unsent + self.handed);
        if self.is_away { 0 } else { room }
    }

    /// What happened next.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// What is to be seen.
    pub fn page(&mut self) -> &mut Page {
        &mut self.page
    }

    /// What the script's decoders of videos have done, or will not do.
    pub fn on_videos(&mut self, now: Time, tell: impl FnOnce(&mut Page)) {
        tell(&mut self.page);
        self.go_on(now);
    }

    /// Whether sound of the session can be heard.
    pub fn may_sound(&self) -> bool {
        self.session.may_sound()
    }

    /// What is to be heard.
    pub fn sound(&mut self) -> &mut Sound {
        &mut self.sound
    }

    /// The page listens to the session's sound, and wants it in this codec; or it does not.
    pub fn listen(&mut self, now: Time, wanted: Option<Codec>) {
        self.sound.listen(wanted);
        self.go_on(now);
    }

    /// Tells the page what the user does. While there is no link, or [`MAX_HANDED`] waits to be sent, it is kept, up to
    /// [`MAX_KEPT`](crate::acts::MAX_KEPT); but what the pointer does means nothing without a link.
    pub fn act(&mut self, now: Time, act: Act) {
        if self.is_away && act.is_pointing() {
            return;
        }
        if self.acts.push(now, act) {
            self.notices.push_back(Notice::Missed);
        }
        self.go_on(now);
    }

    /// Bytes that the app side may not have.
    pub fn kept_for_later(&self) -> usize {
        self.session.retained() + self.acts.bytes()
    }

    /// What a script knows of its link: how long pings take. Which stream is which it cannot tell the app side.
    fn link(&self) -> LinkState {
        let rtt = self.round_trip();
        match &self.carrier {
            Carrier::Socket(socket) => socket.link(rtt),
            Carrier::Streams { unsent } => LinkState {
                rtt: rtt.unwrap_or_default(),
                payload: Some(PAYLOAD),
                in_order: true,
                datagram: MAX_ROW_DATAGRAM as u16,
                unsent: *unsent as u64,
                idle: *unsent == 0,
                ..LinkState::default()
            },
        }
    }

    fn go_on(&mut self, now: Time) {
        self.session.set_link(now, &self.link());
        while let Some(event) = self.session.poll_event() {
            self.on_event(now, event);
        }
        if self.session.is_welcome() {
            self.welcome();
        }
        self.say();
        while self.room() > 0 && self.acts.run_next(now, &mut self.page) {
            self.say();
        }
        while let Some(transfer) = self.page.poll_transfer() {
            self.pipes.begin(&mut self.session, &mut self.page, transfer);
        }
        let room = self.room().saturating_sub(MAX_HANDED / 2);
        self.handed += self.pipes.go_on(&mut self.session, room);
        self.sound_due = self.sound.tell(now, &mut self.session);
        while let Some(ended) = self.page.poll_ended() {
            self.pipes.on_gone(now, &mut self.session, ended.connection);
            if let Some((channel, from)) = self.channels.remove(&ended.connection) {
                self.session.finish(channel);
                self.session.stop(from, STOP_ENDED);
            }
            self.notices.push_back(Notice::NotShown(ended.end.to_string()));
        }
    }

    /// Says what the page says: keymaps before what names them.
    fn say(&mut self) {
        while let Some((hash, bytes)) = self.page.poll_blob() {
            self.handed += bytes.len();
            // Cannot fail, as all here: what a page says is short.
            let _ = self.session.send_blob(hash, bytes);
        }
        if let Some(snapshot) = self.page.poll_snapshot() {
            let snapshot = snapshot.encode();
            self.handed += snapshot.len();
            let _ = self.session.control(&Control::Snapshot(snapshot.into()));
        }
        while let Some((connection, message)) = self.page.poll_message() {
            if let Some((channel, _)) = self.channels.get(&connection) {
                self.handed += message.len();
                let _ = self.session.send(*channel, &message);
            }
        }
    }

    fn welcome(&mut self) {
        if !std::mem::replace(&mut self.is_welcome, true) {
            self.notices.push_back(Notice::Welcome);
        }
    }

    fn on_event(&mut self, now: Time, event: Event) {
        match event {
            Event::Opened { channel, header: Header::Wayland { connection } } => {
                self.open(now, connection, channel)
            }
            Event::Opened { header: Header::Pipe { .. }, .. }
            | Event::Data { header: Header::Pipe { .. }, .. }
            | Event::Finished { header: Header::Pipe { .. }, .. }
            | Event::Reset { header: Header::Pipe { .. }, .. }
            | Event::Stopped { header: Header::Pipe { .. }, .. } => self.on_pipe(event),
            Event::Opened { header: Header::Sound, .. } => {}
            // Nothing else is a page's.
            Event::Opened { channel, .. } => self.session.stop(channel, STOP_UNKNOWN),
            Event::Message { header: Header::Wayland { connection }, bytes, .. } => {
                self.page.on_message(now, connection, &bytes);
            }
            Event::Sound { bytes } => self.sound.on_packet(now, &bytes),
            Event::Datagram { bytes } => self.sound.on_datagram(now, &bytes),
            Event::Update { header, chunks } => self.page.on_update(now, &header, chunks),
            Event::Finished { header: Header::Wayland { connection }, .. }
            | Event::Reset { header: Header::Wayland { connection }, .. } => self.close(now, connection),
            Event::Stopped { header: Header::Events { connection }, .. } => self.close(now, connection),
            Event::Control(Control::Exit { .. }) => self.session.close(CloseReason::Done),
            Event::Suspended { .. } => self.on_lost(now),
            Event::Resumed => self.on_resumed(),
            Event::Declined => self.begin_anew(),
            Event::Closed { reason, by } => {
                let was_display = self.role == Role::Control && self.is_welcome;
                self.end(match reason {
                    CloseReason::Gone if was_display => Over::Taken,
                    CloseReason::BadSecret if self.is_returning => Over::Forgotten,
                    CloseReason::BadSecret if self.is_welcome => Over::Revoked,
                    _ => over(&reason, by),
                });
            }
            _ => {}
        }
    }

    fn end(&mut self, over: Over) {
        for (connection, _) in std::mem::take(&mut self.channels) {
            self.page.close(connection);
        }
        self.notices.push_back(Notice::Over(over));
    }

    fn on_lost(&mut self, now: Time) {
        if !std::mem::replace(&mut self.is_away, true) {
            // Buttons that go up meanwhile are not heard of, and keys that are down the app side lets go by itself.
            self.page.release(now);
            self.page.point_nowhere(now);
            self.acts.on_lost(now);
        }
        self.sound.tell_again();
        self.notices.push_back(Notice::Away);
    }

    fn on_resumed(&mut self) {
        (self.is_returning, self.is_away) = (false, false);
        self.notices.push_back(Notice::Back);
    }

    /// The app side knows of nothing to go on with.
    fn begin_anew(&mut self) {
        (self.is_returning, self.is_away) = (false, false);
        self.page.begin_anew();
        self.acts = Acts::default();
        self.channels.clear();
        self.pipes = Pipes::default();
        self.sound.begin_anew();
        self.notices.push_back(Notice::Anew);
    }

    fn on_pipe(&mut self, event: Event) {
        let Self { session, page, pipes, .. } = self;
        match event {
            Event::Opened { channel, header: Header::Pipe { connection, pipe } } => {
                pipes.on_opened(session, channel, (connection, pipe));
            }
            Event::Data { header: Header::Pipe { connection, pipe }, channel, bytes } => {
                pipes.on_data(session, page, ((connection, pipe), channel), bytes);
            }
            Event::Finished { header: Header::Pipe { connection, pipe }, .. } => {
                pipes.on_finished(page, (connection, pipe));
            }
            Event::Reset { header: Header::Pipe { connection, pipe }, code, .. } => {
                pipes.on_reset(session, page, (connection, pipe), code);
            }
            Event::Stopped { header: Header::Pipe { connection, pipe }, .. } => {
                pipes.on_stopped(session, (connection, pipe));
            }
            _ => {}
        }
    }

    fn open(&mut self, now: Time, connection: ConnectionId, from: RemoteChannelId) {
        // Who is not let in is told of no program.
        self.welcome();
        self.close(now, connection);
        if self.page.open(connection).is_err() {
            return self.session.stop(from, STOP_TOO_MANY);
        }
        let channel = self.session.open(Header::Events { connection });
        self.channels.insert(connection, (channel, from));
    }

    fn close(&mut self, now: Time, connection: ConnectionId) {
        self.pipes.on_gone(now, &mut self.session, connection);
        self.page.close(connection);
        if let Some((channel, _)) = self.channels.remove(&connection) {
            self.session.finish(channel);
        }
    }
}

fn over(reason: &CloseReason, by: ClosedBy) -> Over {
    match (reason, by) {
        (CloseReason::Done, _) => Over::Done,
        (CloseReason::BadSecret | CloseReason::Gone, _) => Over::Refused,
        (CloseReason::TooMuch(_), ClosedBy::Peer | ClosedBy::Link) => Over::Full,
        (CloseReason::Incompatible { .. }, _) => Over::Incompatible,
        (CloseReason::Timeout | CloseReason::LinkLost(_) | CloseReason::TlsRefused(_), _) => Over::Lost,
        _ => Over::Broken,
    }
}
