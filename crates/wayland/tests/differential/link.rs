//! The two ways from a program to its compositor: none between them, or both halves and a link, in virtual time.
//!
//! Messages arrive in order after the link's delay. The pixels of an update may take longer, each its own time: its
//! unit is held meanwhile, and newer content may take its place before it has left. Invariant: a run follows from its
//! program, its [`Link`] and its fault alone.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use wayferry_page::{Page, Role};
use wayferry_pixels::{Compression, Encoder};
use wayferry_proto::{ConnectionId, SurfaceId, Time, UpdateHeader, UpdateSeq};
use wayferry_wayland::wire::{InBuffer, OutBuffer, ReadState, Socket};
use wayferry_wayland::{Action, End, Update, app, blob, display};

use crate::fault::{Fault, Planted};
use crate::operation::{Choices, Dice};
use crate::strict::{KEYMAP, Strict};

/// What a program lives in.
pub(crate) trait World {
    /// Sends what the program has queued.
    fn send(&mut self, out: &mut OutBuffer);
    /// What the program has been sent and has not read.
    fn events(&mut self) -> &mut InBuffer;
    fn pass(&mut self, time: Duration);
    /// Everything arrives and is shown.
    fn settle(&mut self);
    /// To have the user or another program do something there.
    fn compositor(&mut self) -> &mut Strict;
    /// The compositor's outputs or keyboards are set otherwise.
    fn announce(&mut self);
}

/// Time between two frames of the compositor.
const FRAME: Duration = Duration::from_millis(16);
/// Most memory of content that is opened or painted in a turn.
const SLICE: usize = 1 << 18;
/// How often a viewer looks at most until it has seen all: it waits a while for what may be a part of a commit.
const LOOKS: usize = 40;
/// The program, as a viewer knows it.
const VIEWED: ConnectionId = ConnectionId(1);
/// How long the link takes content, or does not, where it starves.
const MEAL: Duration = Duration::from_millis(40);

/// Nothing between the program and the compositor.
pub(crate) struct Direct {
    pub(crate) strict: Strict,
    events: InBuffer,
}

impl Direct {
    pub(crate) fn new() -> Self {
        Self { strict: Strict::new(false, false), events: InBuffer::new() }
    }

    fn read(&mut self) {
        let (bytes, fds) = self.strict.output.take();
        self.events.push(&bytes, fds).expect("the program reads");
    }
}

impl World for Direct {
    fn send(&mut self, out: &mut OutBuffer) {
        let (bytes, fds) = out.take();
        self.strict.input.push(&bytes, fds).expect("requests fit");
        self.strict.process(None);
        self.read();
    }

    fn events(&mut self) -> &mut InBuffer {
        self.read();
        &mut self.events
    }

    fn pass(&mut self, time: Duration) {
        if time > Duration::ZERO {
            self.strict.tick();
        }
    }

    fn settle(&mut self) {
        self.strict.tick();
    }

    fn compositor(&mut self) -> &mut Strict {
        &mut self.strict
    }

    fn announce(&mut self) {}
}

/// Both ends of a socket: the program's, or the display half's, first.
struct Pair(Socket, Socket);

impl Pair {
    fn new() -> Self {
        let (one, other) = std::os::unix::net::UnixStream::pair().expect("sockets");
        let socket = |end: std::os::unix::net::UnixStream| Socket::new(end.into()).expect("not blocking");
        Self(socket(one), socket(other))
    }

    fn there(&self, out: &mut OutBuffer, into: &mut InBuffer) {
        self.0.flush(out).expect("a socket");
        while self.1.read_into(into).expect("a socket") == ReadState::Progress {}
    }

    fn back(&self, out: &mut OutBuffer, into: &mut InBuffer) {
        self.1.flush(out).expect("a socket");
        while self.0.read_into(into).expect("a socket") == ReadState::Progress {}
    }
}

/// Without a socket.
fn carry(out: &mut OutBuffer, into: &mut InBuffer) {
    let (bytes, fds) = out.take();
    into.push(&bytes, fds).expect("messages fit");
}

/// A link's ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) delay: Duration,
    /// Decides how long each update takes beyond that, and when the link takes nothing.
    pub(crate) seed: u64,
    pub(crate) holds: bool,
    pub(crate) starves: bool,
    /// At its end is an old compositor.
    pub(crate) old: bool,
    /// The program and the compositor are behind sockets.
    pub(crate) sockets: bool,
}

/// An update on its way.
struct Flying {
    leaves: Time,
    arrives: Time,
    header: UpdateHeader,
    chunks: Vec<Bytes>,
}

impl Flying {
    fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.len() as u64).sum()
    }
}

/// What is on its way, now.
struct Queue<'a> {
    updates: &'a mut Vec<Flying>,
    now: Time,
}

impl app::Handed for Queue<'_> {
    fn take_back(&mut self, surface: SurfaceId, seq: UpdateSeq) -> Option<u64> {
        let is_it = |update: &Flying| (update.header.surface, update.header.seq) == (surface, seq);
        let place = self.updates.iter().position(|update| is_it(update) && self.now < update.leaves)?;
        Some(self.updates.remove(place).bytes())
    }

    fn give_up(&mut self, surface: SurfaceId) -> Option<(UpdateSeq, u64)> {
        let lost: Vec<Flying> =
            self.updates.extract_if(.., |update| update.header.surface == surface).collect();
        let first = lost.iter().map(|update| update.header.seq).min()?;
        Some((first, lost.iter().map(Flying::bytes).sum()))
    }
}

/// Both halves.
pub(crate) struct Through {
    pub(crate) strict: Strict,
    link: Link,
    fault: Option<Planted>,
    app: app::Connection,
    display: display::Connection,
    events: InBuffer,
    now: Time,
    unread: VecDeque<u8>,
    /// Between the program and the app half, and between the display half and the compositor.
    near: Option<Pair>,
    far: Option<Pair>,
    down: VecDeque<(Time, Vec<u8>)>,
    up: VecDeque<(Time, Vec<u8>)>,
    updates: Vec<Flying>,
    blobs: VecDeque<(Time, bool, u128, Vec<u8>)>,
    sent_blobs: BTreeSet<(bool, u128)>,
    desks: VecDeque<(Time, app::Desk)>,
    next_frame: Option<Time>,
    dice: Dice,
    /// What one half accused the other of, or a limit that was met.
    pub(crate) broken: Option<String>,
}

impl Through {
    pub(crate) fn new(link: Link, fault: Option<Fault>) -> Self {
        let strict = Strict::new(true, link.old);
        let desk = app::Desk { snapshot: strict.snapshot(), cover: true, echo: true, ..Default::default() };
        let config = display::Config {
            title_prefix: String::new(),
            cursor_theme: "no such theme".to_owned(),
            cursor_size: 24,
            clock_start_ns: 0,
            probe: wayferry_wayland::trace::Probe::default(),
            workers: wayferry_wayland::workers::Workers::default(),
            allow: None,
            predict: display::Wishes::all(display::Predict::Always),
        };
        let now = Time::from_millis(1000);
        let mut through = Self {
            strict,
            link,
            fault: fault.map(Planted::new),
            app: app::Connection::new(app::Config::default(), &Rc::new(desk)),
            display: display::Connection::new(config),
            events: InBuffer::new(),
            now,
            unread: VecDeque::new(),
            near: link.sockets.then(Pair::new),
            far: link.sockets.then(Pair::new),
            down: VecDeque::new(),
            up: VecDeque::new(),
            updates: Vec::new(),
            blobs: VecDeque::from([(now, false, blob::hash(KEYMAP), KEYMAP.to_vec())]),
            sent_blobs: BTreeSet::new(),
            desks: VecDeque::new(),
            next_frame: None,
            dice: Dice::new(link.seed),
            broken: None,
        };
        through.turn();
        through
    }

    /// The app half takes what the program has sent, as far as it is ready for it.
    fn feed(&mut self) {
        while let Some(near) = &self.near
            && self.app.end().is_none()
            && !self.app.stalled()
        {
            let read = near.1.read_into(self.app.input()).expect("a socket");
            self.app.process(self.now);
            if read != ReadState::Progress {
                break;
            }
        }
        loop {
            let before = self.app.input().len();
            if self.app.end().is_some() || self.app.stalled() {
                break;
            }
            let part: Vec<u8> = self.unread.drain(..self.unread.len().min(1 << 12)).collect();
            self.app.input().push(&part, []).expect("requests fit");
            self.app.process(self.now);
            if part.is_empty() && self.app.input().len() == before {
                break;
            }
        }
        self.collect_app();
    }

    /// Everything that is due now.
    fn turn(&mut self) {
        self.deliver();
        if self.app.next_timeout().is_some_and(|due| due <= self.now) {
            self.app.on_timeout(self.now);
        }
        if self.display.next_timeout().is_some_and(|due| due <= self.now) {
            self.display
                .work(self.now, &mut display::Room { paint: SLICE, open: SLICE, ..display::Room::default() });
            self.display.on_timeout(self.now);
        }
        self.collect_display();
        if self.strict.wants_tick() {
            match self.next_frame {
                None => self.next_frame = Some(self.now + FRAME),
                Some(due) if due <= self.now => {
                    self.next_frame = None;
                    self.strict.tick();
                    self.collect_display();
                }
                Some(_) => {}
            }
        }
        self.flush();
    }

    fn deliver(&mut self) {
        let now = self.now;
        let due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        while due(self.down.front().map(|(at, _)| *at)) {
            let Some((_, message)) = self.down.pop_front() else { break };
            self.display.on_message(now, &message);
            self.collect_display();
        }
        while let Some(which) = self.updates.iter().position(|update| update.arrives <= now) {
            let Flying { header, chunks, .. } = self.updates.remove(which);
            self.display.on_update(now, &header, chunks);
            self.display
                .work(now, &mut display::Room { paint: SLICE, open: SLICE, ..display::Room::default() });
            self.collect_display();
        }
        while due(self.blobs.front().map(|(at, ..)| *at)) {
            match self.blobs.pop_front() {
                Some((_, true, hash, bytes)) => self.display.on_blob(now, hash, &Rc::from(bytes)),
                Some((_, false, hash, bytes)) => self.app.on_blob(now, hash, &Rc::from(bytes)),
                None => {}
            }
        }
        while due(self.desks.front().map(|(at, _)| *at)) {
            let Some((_, desk)) = self.desks.pop_front() else { break };
            self.app.on_desk(now, &Rc::new(desk));
        }
        while due(self.up.front().map(|(at, _)| *at)) {
            let Some((_, message)) = self.up.pop_front() else { break };
            self.app.on_message(now, &message);
        }
        self.feed();
    }

    /// Lets content go as far as the link takes it.
    fn flush(&mut self) {
        let mut credit = app::Credit {
            content: if self.is_hungry() { 0 } else { u64::MAX },
            rtt: self.link.delay * 2,
            heard: Some(self.now),
            loses: true,
            ..app::Credit::default()
        };
        for turn in [app::Turn::First, app::Turn::Rest, app::Turn::Better] {
            let now = self.now;
            self.app.flush(now, turn, &mut credit, &mut Queue { updates: &mut self.updates, now });
        }
        self.feed();
    }

    /// Whether the link takes no content now.
    fn is_hungry(&self) -> bool {
        let meal = self.now.since_start().as_millis() / MEAL.as_millis();
        self.link.starves && Dice::new(self.link.seed ^ meal as u64).one_in(2)
    }

    fn collect_app(&mut self) {
        let arrives = self.now + self.link.delay;
        while let Some(action) = self.app.poll_action() {
            match action {
                Action::Message(bytes) => match &mut self.fault {
                    Some(fault) => {
                        self.down.extend(fault.down(bytes).into_iter().map(|bytes| (arrives, bytes)));
                    }
                    None => self.down.push_back((arrives, bytes)),
                },
                Action::Update(update) => self.launch(update),
                Action::Blob { hash, bytes } => {
                    if self.sent_blobs.insert((true, hash)) {
                        self.blobs.push_back((arrives, true, hash, bytes));
                    }
                }
                Action::PipeOut { .. }
                | Action::PipeIn { .. }
                | Action::Collect { .. }
                | Action::Drag { .. } => {}
            }
        }
        match &self.near {
            Some(near) => near.back(self.app.output(), &mut self.events),
            None => {
                let (bytes, fds) = self.app.output().take();
                self.events.push(&bytes, fds).expect("the program reads");
            }
        }
        if let Some(end @ (End::PeerViolation(_) | End::TooMuch(_))) = self.app.end() {
            self.broken.get_or_insert_with(|| format!("the app half ends: {end}"));
        }
    }

    fn launch(&mut self, update: Update) {
        let header = update.header(ConnectionId(1));
        let SurfaceId(surface) = update.surface;
        let UpdateSeq(seq) = update.seq;
        let mut dice = Dice::new(self.link.seed ^ surface << 32 ^ seq);
        let hold = if self.link.holds { [0, 4, 60, 200][dice.below(4)] } else { 0 };
        let leaves = self.now + Duration::from_millis(hold / 2);
        let arrives = self.now + self.link.delay + Duration::from_millis(hold);
        let chunks = update.chunks.into_iter().map(Bytes::from).collect();
        self.updates.push(Flying { leaves, arrives, header, chunks });
    }

    /// What the display half says reaches the compositor, and the compositor's answers reach it.
    fn collect_display(&mut self) {
        loop {
            let idle = self.display.output().is_empty();
            match &self.far {
                Some(far) => far.there(self.display.output(), &mut self.strict.input),
                None => carry(self.display.output(), &mut self.strict.input),
            }
            self.strict.process(self.fault.as_mut());
            if idle && self.strict.output.is_empty() || self.display.end().is_some() {
                break;
            }
            match &self.far {
                Some(far) => far.back(&mut self.strict.output, self.display.input()),
                None => carry(&mut self.strict.output, self.display.input()),
            }
            self.display.process(self.now);
        }
        let arrives = self.now + self.link.delay;
        while let Some(action) = self.display.poll_action() {
            match action {
                Action::Message(bytes) => match &mut self.fault {
                    Some(fault) => self.up.extend(fault.up(bytes).into_iter().map(|bytes| (arrives, bytes))),
                    None => self.up.push_back((arrives, bytes)),
                },
                Action::Blob { hash, bytes } => {
                    if self.sent_blobs.insert((false, hash)) {
                        self.blobs.push_back((arrives, false, hash, bytes));
                    }
                }
                Action::PipeOut { .. }
                | Action::PipeIn { .. }
                | Action::Collect { .. }
                | Action::Drag { .. } => {}
                Action::Update(_) => panic!("the display half sends no pixels"),
            }
        }
        if let Some(end) = self.display.end() {
            self.broken.get_or_insert_with(|| format!("the display half ends: {end}"));
        }
    }

    /// A page that comes now as a viewer, once it shows all that there is.
    pub(crate) fn page(&mut self) -> Result<Page, String> {
        let desk = Rc::new(app::Desk { snapshot: Page::new(Role::View).snapshot(), ..Default::default() });
        let mut view = app::View::new(&desk, Compression::Lz4, None);
        let (mut page, mut encoder) = (Page::new(Role::View), Encoder::new(Compression::Lz4));
        page.open(VIEWED).map_err(|end| end.to_string())?;
        self.app.set_watched(true);
        for _ in 0..LOOKS {
            self.pass(FRAME * 2);
            let most = u64::MAX >> 1;
            let mut credit = app::Credit { content: most, refinement: most, ..Default::default() };
            while let Some(published) = self.app.poll_published() {
                view.hand_on(self.now, &self.app, &published, &mut encoder, &mut credit);
            }
            view.look(self.now, &self.app, &app::Scene::of(&self.app), &mut encoder, &mut credit);
            while let Some(action) = view.poll_action() {
                match action {
                    Action::Message(bytes) => page.on_message(self.now, VIEWED, &bytes),
                    Action::Update(update) => {
                        let header = update.header(VIEWED);
                        let chunks = update.chunks.into_iter().map(Bytes::from).collect();
                        page.on_update(self.now, &header, chunks);
                    }
                    other => return Err(format!("a view never does this: {other:?}")),
                }
            }
            page.on_frame(0);
            while let Some((_, message)) = page.poll_message() {
                view.on_message(self.now, &message);
            }
            if let Some(ended) = page.poll_ended() {
                return Err(format!("the page accuses the view: {}", ended.end));
            }
            if let Some(end) = view.end() {
                return Err(format!("the view is over: {end}"));
            }
            if view.next_timeout().is_none() {
                return Ok(page);
            }
        }
        Err("a viewer never comes to rest".to_owned())
    }

    fn next_event(&self) -> Option<Time> {
        let queues = [
            self.down.front().map(|(at, _)| *at),
            self.up.front().map(|(at, _)| *at),
            self.updates.iter().map(|update| update.arrives).min(),
            self.blobs.front().map(|(at, ..)| *at),
            self.desks.front().map(|(at, _)| *at),
            self.app.next_timeout(),
            self.display.next_timeout(),
            self.next_frame,
            self.strict.wants_tick().then_some(self.now),
        ];
        queues.into_iter().flatten().min()
    }

    fn advance(&mut self, until: Time) {
        loop {
            self.turn();
            let least = self.now + Duration::from_millis(1);
            let meal = self.link.starves.then(|| self.now + MEAL);
            let next = self.next_event().into_iter().chain(meal).min().map(|next| next.max(least));
            match next.filter(|next| *next <= until && self.broken.is_none()) {
                Some(next) => self.now = next,
                None => break,
            }
        }
        self.now = until;
        self.turn();
    }
}

impl World for Through {
    fn send(&mut self, out: &mut OutBuffer) {
        match &self.near {
            Some(near) => {
                near.0.flush(out).expect("a socket");
            }
            None => {
                let (bytes, fds) = out.take();
                self.unread.extend(bytes);
                self.app.input().fds_mut().extend(fds);
            }
        }
        if self.app.end().is_none() {
            self.feed();
        }
        // The run loop may have its turn before the program's next request, or not.
        if self.dice.one_in(2) {
            self.turn();
        }
    }

    fn events(&mut self) -> &mut InBuffer {
        if let Some(near) = &self.near {
            near.0.read_into(&mut self.events).expect("a socket");
        }
        &mut self.events
    }

    fn pass(&mut self, time: Duration) {
        self.advance(self.now + time);
    }

    fn settle(&mut self) {
        let longest = if self.link.holds { Duration::from_millis(300) } else { Duration::ZERO };
        self.advance(self.now + self.link.delay * 4 + longest + MEAL * 8 + FRAME * 4);
    }

    fn compositor(&mut self) -> &mut Strict {
        // It acts on what has arrived there.
        self.turn();
        &mut self.strict
    }

    fn announce(&mut self) {
        let desk =
            app::Desk { snapshot: self.strict.snapshot(), cover: true, echo: true, ..Default::default() };
        let stale = self.fault.as_ref().is_some_and(|planted| planted.fault == Fault::OutputStale);
        if !stale {
            self.desks.push_back((self.now + self.link.delay, desk));
        }
        self.turn();
    }
}
