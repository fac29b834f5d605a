//! A viewer, in lock-step with the two halves: its own display half, with a compositor or as a page.
//!
//! What leaves the view waits here until it is delivered. Checked on the way: no half accuses another.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use wayferry_pixels::{Compression, Encoder};
use wayferry_proto::{ConnectionId, UpdateHeader};
use wayferry_wayland::Action;
use wayferry_wayland::app::{Credit, Desk, Published, Scene, View};

use crate::rig::Rig;
use crate::screen::{Kind, Screen};

pub(crate) struct Viewer {
    pub(crate) view: View,
    pub(crate) screen: Screen,
    encoder: Encoder,
    /// What its link takes at each turn.
    pub(crate) budget: u64,
    to_display: VecDeque<Vec<u8>>,
    to_view: VecDeque<Vec<u8>>,
    updates: VecDeque<(UpdateHeader, Vec<Bytes>)>,
    pub(crate) spoiled: bool,
}

impl Viewer {
    pub(crate) fn new(kind: Kind) -> Self {
        let screen = Screen::new(kind);
        let desk = Rc::new(Desk { snapshot: screen.snapshot(), ..Desk::default() });
        Self {
            view: View::new(&desk, Compression::default(), None),
            screen,
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
            self.to_view.extend(self.screen.on_message(rig.now, &message));
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
            self.to_view.extend(self.screen.on_update(rig.now, &header, chunks));
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

    /// It draws, and its user does what input devices can say.
    pub(crate) fn draw(&mut self, rig: &Rig, input: (u8, u32)) {
        self.to_view.extend(self.screen.draw(rig.now, input));
    }

    /// Everything arrives in order.
    pub(crate) fn settle(&mut self, rig: &Rig) {
        self.deliver_down(rig, usize::MAX);
        while !self.updates.is_empty() {
            self.update(rig, 0);
        }
        self.draw(rig, (0, 0));
        self.to_view.extend(self.screen.pass(rig.now));
        self.deliver_up(rig, usize::MAX);
    }
}
