//! All programs that a page shows, and what they may take together.
//!
//! Invariant: a program that has ended is told once, and forgotten.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use bytes::Bytes;
use wayferry_proto::{ConnectionId, Time, UpdateHeader};
use wayferry_video::Layout;

use crate::area::Area;
use crate::decoders::{Decoders, Task};
use crate::end::End;
use crate::program::Program;
use crate::role::Role;
use crate::scene::Node;
use crate::seat::Seat;
use crate::shares::Shares;

/// Programs that are shown at once; an app side has no more.
pub const MAX_PROGRAMS: usize = 100;

/// What the end of a program takes that is to be told, about.
const ENDED_COST: usize = 512;

/// A program that is not shown any more, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Which one.
    pub connection: ConnectionId,
    /// Why.
    pub end: End,
}

/// What the pointer looks like.
#[derive(Debug)]
pub enum Cursor<'a> {
    /// As it does where no program says.
    Default,
    /// It is not to be seen.
    Hidden,
    /// A surface of a program, with that point of it where the pointer is.
    Surface {
        /// Whose.
        connection: ConnectionId,
        /// Its pixels.
        node: Box<Node<'a>>,
        /// In units of the surface.
        hotspot: (i32, i32),
    },
    /// As style sheets name it.
    Named(&'static str),
}

/// The display half of a page. See the crate.
#[derive(Debug)]
pub struct Page {
    pub(crate) programs: BTreeMap<ConnectionId, Program>,
    shares: Rc<Shares>,
    ended: VecDeque<Ended>,
    role: Role,
    pub(crate) area: Area,
    /// Of a display; a viewer has none.
    pub(crate) seat: Option<Seat>,
    /// What it tells of itself has changed.
    pub(crate) is_changed: bool,
}

impl Page {
    /// Shows nothing.
    pub fn new(role: Role) -> Self {
        Self::with_decoders(role, Decoders::new())
    }

    fn with_decoders(role: Role, decoders: Rc<Decoders>) -> Self {
        Self {
            programs: BTreeMap::new(),
            shares: Shares::new(decoders),
            ended: VecDeque::new(),
            role,
            area: Area::default(),
            seat: (role == Role::Control).then(Seat::new),
            is_changed: true,
        }
    }

    /// Shows nothing, as one that is new. Its decoders have no more to do, and numbers go on.
    pub fn begin_anew(&mut self) {
        let decoders = Rc::clone(&self.shares.decoders);
        *self = Self::with_decoders(self.role, Rc::clone(&decoders));
        decoders.end_all();
    }

    /// A program is there; the one of that number before it is not any more.
    ///
    /// # Errors
    /// There are as many as may be, with those whose end has not been told.
    pub fn open(&mut self, connection: ConnectionId) -> Result<(), End> {
        self.close(connection);
        if self.programs.len() + self.ended.len() >= MAX_PROGRAMS {
            return Err(End::TooMuch("programs"));
        }
        let program = Program::new(Rc::clone(&self.shares), self.role, self.area);
        self.programs.insert(connection, program);
        Ok(())
    }

    /// A program is gone, with its windows.
    pub fn close(&mut self, connection: ConnectionId) {
        self.remove(connection);
        self.ended.retain(|ended| ended.connection != connection);
        self.look();
    }

    fn remove(&mut self, connection: ConnectionId) {
        self.programs.remove(&connection);
        if let Some(seat) = &mut self.seat {
            seat.forget(connection);
        }
    }

    /// Handles a message of a program's wayland channel. One that is not shown is ignored.
    pub fn on_message(&mut self, now: Time, connection: ConnectionId, bytes: &[u8]) {
        if let Some(seat) = &mut self.seat {
            seat.clipboard.at(now);
        }
        self.with(connection, |program| program.on_message(now, bytes));
    }

    /// Takes in an update. One of a program that is not shown is ignored.
    pub fn on_update(&mut self, now: Time, header: &UpdateHeader, chunks: Vec<Bytes>) {
        self.with(header.connection, |program| program.on_update(now, header, chunks));
    }

    /// What the script's decoders are to do next.
    pub fn poll_task(&mut self) -> Option<Task> {
        self.shares.decoders.poll()
    }

    /// A frame was decoded, and these are its planes. One that nothing is known of is passed over.
    pub fn on_decoded(&mut self, now: Time, number: u32, layout: Layout, planes: Vec<u8>) {
        self.shares.decoders.on_decoded(number, layout, planes);
        self.on_videos(now);
    }

    /// A frame will not be decoded: its decoder has failed, and is ended.
    pub fn on_undecodable(&mut self, now: Time, number: u32) {
        self.shares.decoders.on_undecodable(number);
        self.on_videos(now);
    }

    fn on_videos(&mut self, now: Time) {
        let waiting = self.programs.iter().filter(|(_, program)| program.awaits_videos());
        let waiting: Vec<ConnectionId> = waiting.map(|(id, _)| *id).collect();
        waiting.into_iter().for_each(|connection| self.with(connection, |program| program.on_videos(now)));
    }

    fn with(&mut self, connection: ConnectionId, act: impl FnOnce(&mut Program)) {
        let Some(program) = self.programs.get_mut(&connection) else { return };
        act(program);
        if let Some(seat) = &mut self.seat {
            seat.meet(&mut self.programs, connection);
        }
        self.collect();
    }

    /// Forgets programs that have come to their end, and looks who has the seat then.
    pub(crate) fn collect(&mut self) {
        for program in self.programs.values_mut() {
            program.settle(Ok(()));
        }
        let ended = self.programs.iter().filter_map(|(id, program)| Some((*id, program.end()?.clone())));
        let ended: Vec<_> = ended.collect();
        for (connection, end) in ended {
            self.remove(connection);
            self.ended.push_back(Ended { connection, end });
            self.look();
        }
    }

    fn look(&mut self) {
        if let Some(seat) = &mut self.seat {
            seat.look(&mut self.programs);
        }
    }

    fn each(&mut self, act: impl FnMut(&mut Program)) {
        self.programs.values_mut().for_each(act);
        self.collect();
    }

    /// The next message for a program's events channel.
    pub fn poll_message(&mut self) -> Option<(ConnectionId, Vec<u8>)> {
        self.programs.iter_mut().find_map(|(id, program)| Some((*id, program.poll_message()?)))
    }

    /// The next program whose channels are to be ended.
    pub fn poll_ended(&mut self) -> Option<Ended> {
        self.ended.pop_front()
    }

    /// Whether there is something new to be seen.
    pub fn wants_frame(&self) -> bool {
        self.programs.values().any(Program::wants_frame)
    }

    /// Everything that there is to be seen has been drawn, in the frame that the browser began at this time of the
    /// page's clock, in nanoseconds.
    pub fn on_frame(&mut self, time_ns: u64) {
        self.each(|program| program.on_frame(time_ns));
    }

    /// When [`Self::on_timeout`] is to be called.
    pub fn next_timeout(&self) -> Option<Time> {
        let seat = self.seat.as_ref().and_then(|seat| seat.keyboard.next_timeout());
        let videos = self.shares.decoders.next_timeout();
        self.programs.values().filter_map(Program::next_timeout).chain(seat).chain(videos).min()
    }

    /// Does what is due: what has not been drawn for a second is told to be hidden, and keys that are down to be so; a
    /// decoder that has owed a frame for a second is ended.
    pub fn on_timeout(&mut self, now: Time) {
        if self.shares.decoders.on_timeout(now) {
            self.on_videos(now);
        }
        if let Some(seat) = &mut self.seat {
            seat.keyboard.on_timeout(now, &mut self.programs);
        }
        self.each(|program| program.on_timeout(now));
    }

    /// The programs that are shown.
    pub fn programs(&self) -> impl Iterator<Item = (ConnectionId, &Program)> {
        self.programs.iter().map(|(id, program)| (*id, program))
    }

    /// One of them, to ask what has changed of it.
    pub fn program(&mut self, connection: ConnectionId) -> Option<&mut Program> {
        self.programs.get_mut(&connection)
    }

    /// Bytes that are kept: pixels, updates and messages that wait, messages to be sent, objects, videos, and ends that
    /// are to be told.
    pub fn kept(&self) -> usize {
        let Shares { contents, updates, messages, said, objects, decoders } = &*self.shares;
        let shares = [contents, updates, messages, said, objects].into_iter().map(|share| share.taken());
        shares.sum::<usize>() + decoders.taken() + self.ended.len() * ENDED_COST
    }
}
