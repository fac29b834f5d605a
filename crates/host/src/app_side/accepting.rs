//! The socket to which programs connect: accepts them while there is room for one more.
//!
//! It decides nothing about them. Invariant: without room, or descriptors, programs wait in the socket's queue.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::time::Duration;

use wayferry_proto::Time;

use crate::edge::descriptors;
use crate::edge::part::{Hub, Part};
use crate::edge::socket::Listener;
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::event::SessionEvent;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Accepting {
    listener: Option<Listener>,
    /// One program is served, and no other.
    once: bool,
    /// When to accept again, after descriptors ran out.
    after: Time,
    /// How many more programs may come.
    room: usize,
    come: Vec<OwnedFd>,
}

impl Accepting {
    /// Accepts programs here; one only, with `once`.
    pub(super) fn new(listener: Listener, once: bool) -> Self {
        Self { listener: Some(listener), once, ..Self::default() }
    }

    /// What programs connect to, unless it is closed.
    pub(super) fn name(&self) -> Option<&OsString> {
        self.listener.as_ref().map(Listener::name)
    }

    /// Accepts no more programs.
    pub(super) fn close(&mut self) {
        self.listener = None;
    }

    /// Accepts at most `room` more programs.
    pub(super) fn set_room(&mut self, room: usize) {
        self.room = room;
    }

    /// Sockets of the programs that connected in this turn.
    pub(super) fn take_come(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.come)
    }

    /// Lets programs wait for a moment; reports why at the first of several pauses in a row.
    fn pause(&mut self, now: Time, hub: &Hub<'_>, reason: String) {
        let goes_on = self.after != Time::ZERO && now < self.after + PAUSE;
        if !goes_on {
            hub.reporter.report(SessionEvent::ProgramsWait { reason });
        }
        self.after = now + PAUSE;
    }
}

impl Part for Accepting {
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        let Some(listener) = self.listener.as_ref().filter(|_| self.room > 0) else { return };
        if now >= self.after {
            interests.read(listener);
        } else {
            interests.until(Some(self.after));
        }
    }

    fn turn(&mut self, now: Time, hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        let is_ready = self.listener.as_ref().is_some_and(|listener| ready.has(listener));
        if is_ready && !descriptors::has_room() {
            self.pause(now, hub, "few descriptors are left".into());
            return Ok(());
        }
        for _ in 0..if is_ready { self.room.min(MAX_ACCEPTS) } else { 0 } {
            let Some(listener) = &self.listener else { break };
            match listener.accept() {
                Ok(Some(fd)) => self.come.push(fd),
                Ok(None) => break,
                // Most likely no descriptors are left; the program waits in the queue until some are.
                Err(error) => {
                    self.pause(now, hub, error.to_string());
                    break;
                }
            }
            if self.once {
                self.close();
            }
        }
        Ok(())
    }
}

/// How long none is accepted for want of descriptors.
const PAUSE: Duration = Duration::from_secs(1);
/// Programs accepted in one turn.
const MAX_ACCEPTS: usize = 16;

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::edge::part::alone;
    use crate::edge::socket::RuntimeDir;

    #[test]
    fn who_finds_no_room_waits_for_it() {
        let dir = RuntimeDir::private().expect("a directory");
        let mut accepting = Accepting::new(Listener::new(&dir, Some("w")).expect("a socket"), false);
        let (mut hub, _) = alone::base();
        let _programs = [(); 3].map(|()| UnixStream::connect(dir.path().join("w")).expect("it listens"));
        let mut come = |room| {
            accepting.set_room(room);
            alone::turn(&mut accepting, Time::ZERO, &mut hub);
            accepting.take_come().len()
        };
        assert_eq!([0, 2, 0, 5, 5].map(&mut come), [0, 2, 0, 1, 0]);
    }

    #[test]
    fn one_program_is_served_where_one_was_asked_for() {
        let dir = RuntimeDir::private().expect("a directory");
        let mut accepting = Accepting::new(Listener::new(&dir, Some("w")).expect("a socket"), true);
        let (mut hub, _) = alone::base();
        let _programs = [(); 2].map(|()| UnixStream::connect(dir.path().join("w")).expect("it listens"));
        accepting.set_room(9);
        assert_eq!(alone::turn(&mut accepting, Time::ZERO, &mut hub), 0, "it waits for no more");
        assert_eq!(accepting.take_come().len(), 1);
    }

    #[test]
    fn why_programs_wait_is_told_once_while_it_lasts() {
        let dir = RuntimeDir::private().expect("a directory");
        let mut accepting = Accepting::new(Listener::new(&dir, Some("w")).expect("a socket"), false);
        let (mut hub, events) = alone::base();
        for second in [1, 2, 3, 9] {
            accepting.pause(Time::from_millis(second * 1000), &hub.hub(), "few descriptors are left".into());
        }
        assert_eq!(events.try_iter().count(), 2, "at 1 s and at 9 s");
    }
}
