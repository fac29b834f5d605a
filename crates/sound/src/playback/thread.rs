//! The thread: takes orders, gives its device a turn, and sleeps until something happens.
//!
//! Invariant: it waits in one place, for descriptors and a deadline, and a dropped handle wakes it there.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wayferry_proto::Time;

use super::alsa::Cards;
use super::desk::{Desk, Fed};
use super::inbox::{Order, Shared};
use super::recorder::Recorder;
use super::{DeviceState, Notice, Report};
use crate::link::Link;
use crate::source::Source;

/// See the module.
#[derive(Debug)]
pub(super) struct Thread {
    shared: Arc<Shared>,
    device: Device,
    source: Source,
    overflowed: u64,
    wakes: u64,
}

/// What takes the sound.
#[derive(Debug)]
pub(super) enum Device {
    Desk(Box<Desk>, Box<Link>, Cards),
    File(Recorder),
}

impl Thread {
    pub(super) fn new(shared: Arc<Shared>, device: Device) -> Self {
        Self { shared, device, source: Source::default(), overflowed: 0, wakes: 0 }
    }

    /// Runs until the handle is dropped.
    pub(super) fn run(mut self, now: impl Fn() -> Time) {
        while let Some((orders, overflowed)) = self.shared.take_orders() {
            self.overflowed = overflowed;
            self.wakes += 1;
            let time = now();
            orders.into_iter().for_each(|order| self.obey(time, order));
            for notice in self.device.turn(time, &mut self.source) {
                self.shared.tell(notice);
            }
            self.shared.set_report(self.report());
            let deadline = self.device.wake_at(&self.source);
            if self.device.looks_by_itself() || self.shared.fall_asleep() {
                self.wait(deadline.map(|deadline| deadline.since(now())));
            }
            self.shared.wake_up();
        }
    }

    fn obey(&mut self, now: Time, order: Order) {
        match order {
            Order::Begin(codec) => {
                if let Err(why) = self.source.begin(codec) {
                    self.shared.tell(Notice::Lost { why });
                }
            }
            Order::End => self.source.end(),
            Order::Packet(..) if self.device.is_deaf(now) => {}
            Order::Packet(arrived, packet) => self.source.packet(arrived, packet),
        }
    }

    fn wait(&self, patience: Option<Duration>) {
        let mut set = vec![PollFd::from_borrowed_fd(self.shared.wake_fd(), PollFlags::IN)];
        if let Some((fd, flags)) = self.device.waits_for() {
            set.push(PollFd::from_borrowed_fd(fd, flags));
        }
        // Longer than a Timespec can say is as good as for ever.
        let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
        // An interruption, the only error that it can have, is a turn without an effect.
        let _ = poll(&mut set, patience.as_ref());
    }

    fn report(&self) -> Report {
        Report {
            codec: self.source.codec(),
            figures: self.source.figures(),
            next: self.source.next(),
            device: self.device.state(),
            overflowed: self.overflowed,
            wakes: self.wakes,
        }
    }
}

impl Device {
    fn turn(&mut self, now: Time, source: &mut Source) -> Vec<Notice> {
        match self {
            Self::Desk(desk, link, cards) => {
                link.turn(now, &mut Fed { desk, source });
                cards.turn(desk.card());
                desk.take_notices()
            }
            Self::File(recorder) => recorder.turn(now, source).into_iter().collect(),
        }
    }

    fn wake_at(&self, source: &Source) -> Option<Time> {
        match self {
            Self::Desk(desk, link, _) => [desk.wake_at(source), link.wake_at()].into_iter().flatten().min(),
            Self::File(recorder) => recorder.wake_at(),
        }
    }

    /// Whether it wakes up every few milliseconds for other reasons than orders.
    fn looks_by_itself(&self) -> bool {
        self.state() == DeviceState::Playing
    }

    fn is_deaf(&self, now: Time) -> bool {
        match self {
            Self::Desk(desk, ..) => desk.is_deaf(now),
            Self::File(recorder) => recorder.is_deaf(),
        }
    }

    fn waits_for(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match self {
            Self::Desk(desk, link, _) => match desk.card() {
                Some(ring) => Some((ring.fd(), PollFlags::IN)),
                None => link.waits_for(desk.has_outgoing()),
            },
            Self::File(_) => None,
        }
    }

    fn state(&self) -> DeviceState {
        match self {
            Self::Desk(desk, ..) => desk.state(),
            Self::File(recorder) => recorder.state(),
        }
    }
}
