//! A viewer, in lock-step with the two halves: its own display half and compositor.
//!
//! What leaves the view waits here until it is delivered. Checked on the way: no half accuses another, and what its
//! compositor shows of a surface the program has committed.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use wayferry_pixels::{Compression, Encoder};
use wayferry_proto::{ConnectionId, UpdateHeader};
use wayferry_wayland::app::{Credit, Desk, Published, Scene, View};
use wayferry_wayland::{Action, End, display};

use crate::compositor::{self, Compositor};
use crate::rig::Rig;

pub(crate) struct Viewer {
    pub(crate) view: View,
    display: display::Connection,
    pub(crate) compositor: Compositor,
    encoder: Encoder,
    /// What its link takes at each turn.
    pub(crate) budget: u64,
    to_display: VecDeque<Vec<u8>>,
    to_view: VecDeque<Vec<u8>>,
    updates: VecDeque<(UpdateHeader, Vec<Bytes>)>,
    pub(crate) spoiled: bool,
}

impl Viewer {
    pub(crate) fn new() -> Self {
        let desk = Rc::new(Desk { snapshot: compositor::snapshot(), ..Desk::default() });
        let config = display::Config { cursor_theme: "no such theme".to_owned(), ..Default::default() };
        Self {
            view: View::new(&desk, Compression::default(), None),
            display: display::Connection::new(config),
            compositor: Compositor::new(),
            encoder: Encoder::new(Compression::default()),
            budget: u64::MAX,
            to_display: VecDeque::new(),
            to_view: VecDeque::new(),
            updates: VecDeque::new(),
            spoiled: false,
        }
    }

    /// A turn of the run loop.
    pub(crate) fn turn(&mut self, rig: &Rig, published: &[Published]) {
        let mut credit = Credit { content: self.budget, refinement: self.budget, ..Credit::default() };
        for published in published {
            self.view.hand_on(rig.now, &rig.app, published, &mut self.encoder, &mut credit);
        }
        let scene = Scene::of(&rig.app);
        self.view.look(rig.now, &rig.app, &scene, &mut self.encoder, &mut credit);
        while let Some(action) = self.view.poll_action() {
            match action {
                Action::Message(bytes) => self.to_display.push_back(bytes),
                Action::Update(update) => {
                    let header = update.header(ConnectionId(1));
                    self.updates.push_back((header, update.chunks.into_iter().map(Bytes::from).collect()));
                }
                other => panic!("a view never does this: {other:?}"),
            }
        }
        assert_eq!(self.view.end(), None);
    }

    pub(crate) fn deliver_down(&mut self, rig: &Rig, count: usize) {
        for _ in 0..count {
            let Some(message) = self.to_display.pop_front() else { break };
            self.display.on_message(rig.now, &message);
            self.collect();
        }
    }

    pub(crate) fn deliver_up(&mut self, rig: &Rig, count: usize) {
        for _ in 0..count {
            let Some(message) = self.to_view.pop_front() else { break };
            self.view.on_message(rig.now, &message);
        }
    }

    pub(crate) fn update(&mut self, rig: &Rig, which: usize) {
        let Some(which) = which.checked_rem(self.updates.len()) else { return };
        if let Some((header, chunks)) = self.updates.remove(which) {
            self.display.on_update(rig.now, &header, chunks);
            let mut room = display::Room::ENDLESS;
            self.display.work(rig.now, &mut room);
            self.collect();
        }
    }

    /// Nothing in one of the updates under way can be read.
    pub(crate) fn spoil(&mut self, which: usize) {
        let count = self.updates.len();
        if let Some((_, chunks)) = self.updates.get_mut(which.checked_rem(count).unwrap_or_default()) {
            *chunks = vec![Bytes::from_static(&[9; 9])];
            self.spoiled = true;
        }
    }

    /// The compositor reads, and answers with everything that input devices could say.
    pub(crate) fn compositor(&mut self, rig: &Rig, input: (u8, u32)) {
        self.compositor.input_event(input.0, input.1);
        self.compositor.release(usize::MAX);
        self.compositor.tick();
        let (bytes, fds) = self.compositor.output.take();
        self.display.input().fds_mut().extend(fds);
        for part in bytes.chunks(1 << 12) {
            self.display.input().push(part, []).expect("events fit");
            self.display.process(rig.now);
        }
        self.collect();
    }

    /// Everything arrives in order.
    pub(crate) fn settle(&mut self, rig: &Rig) {
        self.deliver_down(rig, usize::MAX);
        while !self.updates.is_empty() {
            self.update(rig, 0);
        }
        self.compositor(rig, (0, 0));
        if self.display.next_timeout().is_some_and(|at| at <= rig.now) {
            self.display.on_timeout(rig.now);
            self.collect();
        }
        self.deliver_up(rig, usize::MAX);
    }

    fn collect(&mut self) {
        let (bytes, fds) = self.display.output().take();
        self.compositor.input.fds_mut().extend(fds);
        for part in bytes.chunks(1 << 12) {
            self.compositor.input.push(part, []).expect("requests fit");
            self.compositor.process();
        }
        while let Some(action) = self.display.poll_action() {
            if let Action::Message(bytes) = action {
                self.to_view.push_back(bytes);
            }
        }
        if let Some(End::PeerViolation(what)) = self.display.end() {
            panic!("the display half accuses the view: {what}");
        }
    }
}
