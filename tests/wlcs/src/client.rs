//! One client of the suite, its connection to the compositor, and the two halves between them.
//!
//! A `wl_display.sync` of the client is answered once the compositor has handled everything before it, because the
//! suite expects errors and positions by then; the halves alone would answer most of them at once. Invariant: messages
//! between the halves arrive in order and at once.

use std::collections::HashMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags};
use wayferry_proto::{ConnectionId, Time};
use wayferry_wayland::message::{Request, ToApp, ToDisplay, WireArg, WireId};
use wayferry_wayland::wire::{InBuffer, RawMessage, ReadState, Socket};
use wayferry_wayland::{Action, app, display};

/// A client that is served.
pub(crate) struct Client {
    app: app::Connection,
    display: display::Connection,
    program: Socket,
    compositor: Socket,
    /// What the client has sent and the app half has not been given.
    staged: InBuffer,
    pipes: HashMap<(bool, u64), OwnedFd>,
    /// The fence that the compositor has not answered.
    fence: Option<WireId>,
    next_fence: WireId,
    /// Bytes of fences, which the app half knows nothing of.
    fence_bytes: u64,
    /// The client or the compositor has closed its end.
    over: bool,
}

impl Client {
    pub(crate) fn new(program: OwnedFd, compositor: OwnedFd, desk: &Rc<app::Desk>) -> io::Result<Self> {
        Ok(Self {
            app: app::Connection::new(app::Config::default(), desk),
            display: display::Connection::new(display::Config::default()),
            program: Socket::new(program)?,
            compositor: Socket::new(compositor)?,
            staged: InBuffer::new(),
            pipes: HashMap::new(),
            fence: None,
            next_fence: FIRST_FENCE,
            fence_bytes: 0,
            over: false,
        })
    }

    /// Its sockets, to be polled for input.
    pub(crate) fn sockets(&self) -> [&Socket; 2] {
        [&self.program, &self.compositor]
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        [self.app.next_timeout(), self.display.next_timeout()].into_iter().flatten().min()
    }

    /// The compositor's id of an object of the client.
    pub(crate) fn place(&self, id: u32) -> Option<u32> {
        self.display.id_of(self.app.wire_id(id)?)
    }

    pub(crate) fn on_desk(&mut self, now: Time, desk: &Rc<app::Desk>) {
        self.app.on_desk(now, desk);
    }

    pub(crate) fn on_blob(&mut self, now: Time, hash: u128, bytes: &Rc<[u8]>) {
        self.app.on_blob(now, hash, bytes);
    }

    /// Moves everything that can be moved now. What a client sends before a `sync` is handled by the compositor before
    /// it.
    pub(crate) fn turn(&mut self, clock: &mut Clock) {
        self.read_program(clock);
        self.exchange(clock.now());
    }

    fn read_program(&mut self, clock: &mut Clock) {
        loop {
            let state = self.program.read_into(&mut self.staged);
            while let Ok(Some(message)) = self.staged.next_message() {
                if (message.object, message.opcode) == DISPLAY_SYNC {
                    self.settle(clock);
                }
                self.feed(&message, clock.now());
            }
            match state {
                Ok(ReadState::Progress) => {}
                Ok(ReadState::WouldBlock) => return,
                Ok(ReadState::Closed) | Err(_) => {
                    self.over = true;
                    return;
                }
            }
        }
    }

    fn feed(&mut self, message: &RawMessage, now: Time) {
        let size = (8 + message.body.len()) as u32;
        let head = [message.object, size << 16 | u32::from(message.opcode)];
        let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend_from_slice(&message.body);
        let fds: Vec<OwnedFd> = self.staged.fds_mut().drain(..).collect();
        if self.app.input().push(&bytes, fds).is_err() {
            self.app.on_hang_up();
        }
        self.app.process(now);
        self.exchange(now);
    }

    /// Everything that the client has said is done at the compositor, and what that one said of it has reached the
    /// client.
    pub(crate) fn settle(&mut self, clock: &mut Clock) {
        // A commit that waits for its frame leaves now.
        for _ in 0..FRAMES {
            self.exchange(clock.pass(FRAME));
        }
        self.raise_fence(clock.now());
        for _ in 0..PATIENCE {
            self.exchange(clock.now());
            if self.fence.is_none() || self.over || self.display.end().is_some() {
                break;
            }
            let mut set = [PollFd::new(&self.compositor, PollFlags::IN)];
            let _ = rustix::event::poll(&mut set, Some(&LOOK));
        }
        self.exchange(clock.now());
    }

    /// Has the compositor say when it has handled everything until now.
    fn raise_fence(&mut self, now: Time) {
        let fence = self.next_fence;
        let args = vec![WireArg::NewId(fence)];
        let bytes = ToDisplay::Request(Request { object: WireId::DISPLAY, opcode: 0, args }).encode();
        (self.fence, self.next_fence) = (Some(fence), fence.next());
        self.fence_bytes += bytes.len() as u64;
        self.display.on_message(now, &bytes);
    }

    /// Moves what is there between the sockets and the halves until nothing moves any more.
    fn exchange(&mut self, now: Time) {
        loop {
            self.tick(now);
            let mut moved = self.pass_down(now) | self.pass_up(now);
            let room = &mut display::Room::ENDLESS.clone();
            self.display.work(now, room);
            let _ = self.compositor.flush(self.display.output());
            match self.compositor.read_into(self.display.input()) {
                Ok(ReadState::Progress) => {
                    self.display.process(now);
                    moved = true;
                }
                Ok(ReadState::WouldBlock) => {}
                Ok(ReadState::Closed) | Err(_) => self.display.on_hang_up(),
            }
            moved |= self.pass_up(now);
            if !moved {
                break;
            }
        }
        let _ = self.program.flush(self.app.output());
        self.over |= self.app.end().is_some() && self.app.output().is_empty();
    }

    fn tick(&mut self, now: Time) {
        self.app.on_timeout(now);
        self.display.on_timeout(now);
        for turn in [app::Turn::First, app::Turn::Rest] {
            let mut credit = app::Credit::ENDLESS;
            self.app.flush(now, turn, &mut credit, &mut ());
        }
        while self.app.is_making() && self.app.end().is_none() {
            self.app.flush(now, app::Turn::Rest, &mut app::Credit::ENDLESS.clone(), &mut ());
        }
    }

    fn pass_down(&mut self, now: Time) -> bool {
        let mut moved = false;
        while let Some(action) = self.app.poll_action() {
            moved = true;
            match action {
                Action::Message(bytes) => self.display.on_message(now, &bytes),
                Action::Update(update) => {
                    let header = update.header(ConnectionId(1));
                    let chunks = update.chunks.into_iter().map(Bytes::from).collect();
                    self.display.on_update(now, &header, chunks);
                }
                Action::Blob { hash, bytes } => self.display.on_blob(now, hash, &Rc::from(bytes)),
                Action::PipeOut { pipe, fd } => self.join(pipe, fd, true),
                Action::PipeIn { pipe, fd } => self.join(pipe, fd, false),
                Action::Collect { .. } | Action::Drag { .. } => {}
            }
        }
        moved
    }

    fn pass_up(&mut self, now: Time) -> bool {
        let mut moved = false;
        while let Some(action) = self.display.poll_action() {
            moved = true;
            match action {
                Action::Message(bytes) => self.tell(now, &bytes),
                Action::Update(_) => {}
                Action::Blob { hash, bytes } => self.app.on_blob(now, hash, &Rc::from(bytes)),
                Action::PipeOut { pipe, fd } => self.join(pipe, fd, true),
                Action::PipeIn { pipe, fd } => self.join(pipe, fd, false),
                Action::Collect { .. } | Action::Drag { .. } => {}
            }
        }
        moved
    }

    /// Hands a message of the display half on, but for those about fences.
    fn tell(&mut self, now: Time, bytes: &[u8]) {
        match ToApp::decode(bytes) {
            Ok(ToApp::Event(event)) if event.object >= FIRST_FENCE && event.object.is_app() => {
                if self.fence == Some(event.object) {
                    self.fence = None;
                }
            }
            Ok(ToApp::Deleted(id)) if id >= FIRST_FENCE && id.is_app() => {}
            Ok(ToApp::Consumed { bytes }) => {
                let bytes = bytes.saturating_sub(self.fence_bytes);
                self.app.on_message(now, &ToApp::Consumed { bytes }.encode());
            }
            _ => self.app.on_message(now, bytes),
        }
    }

    /// What is read from one end of a pipe is written to the other, once both are there.
    fn join(&mut self, pipe: u64, fd: OwnedFd, reads: bool) {
        let Some(other) = self.pipes.remove(&(!reads, pipe)) else {
            self.pipes.insert((reads, pipe), fd);
            return;
        };
        let (from, to) = if reads { (fd, other) } else { (other, fd) };
        std::thread::spawn(move || {
            let _ = io::copy(&mut std::fs::File::from(from), &mut std::fs::File::from(to));
        });
    }
}

/// The time that the halves see: the host's, and what was skipped.
#[derive(Debug)]
pub(crate) struct Clock {
    began: std::time::Instant,
    skipped: Duration,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { began: std::time::Instant::now(), skipped: Duration::from_secs(1) }
    }

    pub(crate) fn now(&self) -> Time {
        Time::new(self.began.elapsed() + self.skipped)
    }

    /// Lets time pass at once.
    fn pass(&mut self, time: Duration) -> Time {
        self.skipped += time;
        self.now()
    }
}

/// Waits for input on sockets.
pub(crate) fn poll(fds: &[BorrowedFd<'_>], timeout: Duration) {
    let mut set: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let timeout = rustix::event::Timespec::try_from(timeout).unwrap_or(LOOK);
    let _ = rustix::event::poll(&mut set, Some(&timeout));
}

/// `wl_display.sync`.
const DISPLAY_SYNC: (u32, u16) = (1, 0);

/// Names of fences, far above those of the app half.
const FIRST_FENCE: WireId = WireId(1 << 40);

/// A frame, and how many of them are skipped for commits that keep their distance from each other.
const FRAME: Duration = Duration::from_millis(17);
const FRAMES: usize = 3;

/// How often is looked for the answer to a fence, and for how long: five seconds.
const LOOK: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
const PATIENCE: usize = 500;
