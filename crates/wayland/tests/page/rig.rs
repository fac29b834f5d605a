//! The app half with a page as its display: what leaves one waits here until it is delivered to the other.
//!
//! Checked on the way: neither accuses the other, and nothing names a keymap that was not sent before.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use wayferry_message::{ToDisplay, WireArg, WireId};
use wayferry_page::{Page, Role};
use wayferry_proto::{ConnectionId, SurfaceId, Time, UpdateHeader, UpdateSeq};
use wayferry_wayland::wire::{InBuffer, OutBuffer};
use wayferry_wayland::{Action, End, app};

/// The program, as the page knows it.
pub(crate) const PROGRAM: ConnectionId = ConnectionId(1);

pub(crate) struct Rig {
    pub(crate) app: app::Connection,
    pub(crate) page: Page,
    /// What the program has been sent and has not read.
    pub(crate) events: InBuffer,
    pub(crate) now: Time,
    unread: VecDeque<u8>,
    down: VecDeque<Vec<u8>>,
    up: VecDeque<Vec<u8>>,
    updates: VecDeque<(UpdateHeader, Vec<Bytes>)>,
    blobs: VecDeque<(u128, Bytes)>,
    /// Surfaces in the order of their creation.
    pub(crate) surfaces: Vec<WireId>,
    compositors: BTreeSet<WireId>,
}

/// Updates that can be had back, or not.
struct Queue<'a>(&'a mut VecDeque<(UpdateHeader, Vec<Bytes>)>, bool);

impl app::Handed for Queue<'_> {
    fn take_back(&mut self, surface: SurfaceId, update: UpdateSeq) -> Option<u64> {
        let is_it = |(header, _): &(UpdateHeader, _)| (header.surface, header.seq) == (surface, update);
        let place = self.0.iter().position(is_it).filter(|_| self.1)?;
        let (_, chunks) = self.0.remove(place)?;
        Some(chunks.iter().map(|chunk| chunk.len() as u64).sum())
    }

    fn give_up(&mut self, _: SurfaceId) -> Option<(UpdateSeq, u64)> {
        None
    }
}

impl Rig {
    pub(crate) fn new() -> Self {
        let mut page = Page::new(Role::Control);
        page.open(PROGRAM).expect("room");
        let desk = app::Desk { snapshot: page.poll_snapshot().expect("it is new"), ..Default::default() };
        let mut rig = Self {
            app: app::Connection::new(app::Config::default(), &Rc::new(desk)),
            page,
            events: InBuffer::new(),
            now: Time::from_millis(1000),
            unread: VecDeque::new(),
            down: VecDeque::new(),
            up: VecDeque::new(),
            updates: VecDeque::new(),
            blobs: VecDeque::new(),
            surfaces: Vec::new(),
            compositors: BTreeSet::new(),
        };
        rig.collect_page();
        rig
    }

    /// The program sends what is queued there.
    pub(crate) fn program_sends(&mut self, out: &mut OutBuffer) {
        let (bytes, fds): (Vec<u8>, Vec<OwnedFd>) = out.take();
        self.unread.extend(bytes);
        self.app.input().fds_mut().extend(fds);
        self.feed();
    }

    fn feed(&mut self) {
        loop {
            let before = self.app.input().len();
            if self.app.end().is_some() || self.app.stalled() {
                break;
            }
            let room = if self.app.input().has_room() { 1 << 12 } else { 0 };
            let part: Vec<u8> = self.unread.drain(..self.unread.len().min(room)).collect();
            self.app.input().push(&part, []).expect("requests fit");
            self.app.process(self.now);
            if part.is_empty() && self.app.input().len() == before {
                break;
            }
        }
        self.collect_app();
    }

    /// What is being encoded is done.
    pub(crate) fn make(&mut self) {
        while self.app.is_making() && self.app.end().is_none() {
            self.flush(u64::MAX, false);
        }
    }

    /// The link takes so many bytes of content, and may not have sent what it took before.
    pub(crate) fn flush(&mut self, content: u64, taking: bool) {
        let mut credit = app::Credit { content, refinement: content, ..app::Credit::ENDLESS };
        for turn in [app::Turn::First, app::Turn::Rest, app::Turn::Better] {
            self.app.flush(self.now, turn, &mut credit, &mut Queue(&mut self.updates, taking));
        }
        self.feed();
    }

    fn collect_app(&mut self) {
        while let Some(action) = self.app.poll_action() {
            match action {
                Action::Message(bytes) => {
                    self.note(&ToDisplay::decode(&bytes).expect("sound"));
                    self.down.push_back(bytes);
                }
                Action::Update(update) => {
                    let header = update.header(PROGRAM);
                    let chunks = update.chunks.into_iter().map(Bytes::from).collect();
                    self.updates.push_back((header, chunks));
                }
                other => panic!("nothing of a page's globals does this: {other:?}"),
            }
        }
        let (bytes, fds) = self.app.output().take();
        self.events.push(&bytes, fds).expect("the program reads");
        if let Some(end @ (End::PeerViolation(_) | End::TooMuch(_))) = self.app.end() {
            panic!("the app half accuses the page: {end}");
        }
    }

    fn note(&mut self, message: &ToDisplay) {
        match message {
            ToDisplay::Bind { interface, id, .. } if interface == "wl_compositor" => {
                self.compositors.insert(*id);
            }
            ToDisplay::Request(request) if self.compositors.contains(&request.object) => {
                if let [WireArg::NewId(surface)] = request.args[..] {
                    self.surfaces.push(surface);
                }
            }
            _ => {}
        }
    }

    /// Has the page do something, and takes what it says.
    pub(crate) fn act(&mut self, act: impl FnOnce(&mut Page, Time)) {
        act(&mut self.page, self.now);
        self.collect_page();
    }

    fn collect_page(&mut self) {
        while let Some(blob) = self.page.poll_blob() {
            self.blobs.push_back(blob);
        }
        if let Some(snapshot) = self.page.poll_snapshot() {
            let desk = app::Desk { snapshot, ..Default::default() };
            self.app.on_desk(self.now, &Rc::new(desk));
        }
        while let Some((connection, message)) = self.page.poll_message() {
            assert_eq!(connection, PROGRAM);
            self.up.push_back(message);
        }
        if let Some(ended) = self.page.poll_ended() {
            panic!("the page accuses the app half: {}", ended.end);
        }
    }

    /// Delivers up to `count` messages to the page.
    pub(crate) fn deliver_down(&mut self, count: usize) {
        for _ in 0..count {
            let Some(message) = self.down.pop_front() else { break };
            self.act(|page, now| page.on_message(now, PROGRAM, &message));
        }
    }

    /// Delivers up to `count` messages to the app half.
    pub(crate) fn deliver_up(&mut self, count: usize) {
        for _ in 0..count {
            let Some(message) = self.up.pop_front() else { break };
            self.app.on_message(self.now, &message);
            self.feed();
        }
    }

    /// Delivers one of the updates under way.
    pub(crate) fn update(&mut self, which: usize) {
        let which = which.checked_rem(self.updates.len()).unwrap_or_default();
        if let Some((header, chunks)) = self.updates.remove(which) {
            self.act(|page, now| page.on_update(now, &header, chunks));
        }
    }

    /// Delivers the next keymap.
    pub(crate) fn blob(&mut self) {
        if let Some((hash, bytes)) = self.blobs.pop_front() {
            self.app.on_blob(self.now, hash, &Rc::from(&bytes[..]));
            self.collect_app();
        }
    }

    /// The page draws.
    pub(crate) fn draw(&mut self) {
        self.act(|page, _| page.on_frame(0));
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        if self.app.next_timeout().is_some_and(|due| due <= self.now) {
            self.app.on_timeout(self.now);
        }
        self.feed();
        if self.page.next_timeout().is_some_and(|due| due <= self.now) {
            self.act(|page, now| page.on_timeout(now));
        }
    }

    /// Delivers everything until nothing happens any more.
    pub(crate) fn settle(&mut self) {
        for _ in 0..60 {
            self.flush(u64::MAX, false);
            self.deliver_down(usize::MAX);
            while !self.updates.is_empty() {
                self.update(0);
            }
            while !self.blobs.is_empty() {
                self.blob();
            }
            self.deliver_up(usize::MAX);
            self.draw();
            self.pass(Duration::from_millis(17));
        }
    }
}
