//! What a run loop is made of: the loop itself, which both sides share, and the parts that it waits for.
//!
//! A part is something with descriptors or times of its own: a control socket, pipes, a way back. It is named in one
//! place, [`Loop::parts`]; the loop waits for it and gives it a turn. Afterwards the side asks the part for its
//! results. The side decides the order of work in a turn. Invariant: a part's turn is bounded, and never blocks.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wayferry_proto::Time;

use super::turns::Took;
use super::wait::{Interests, Ready};
use crate::clock::Clock;
use crate::error::Error;
use crate::event::Reporter;
use crate::link::Link;

/// What a side's parts share. `L` holds the link to the peer.
pub struct Base<L = Link> {
    /// Of the loop.
    pub clock: Clock,
    /// To the peer.
    pub link: L,
    /// Takes what happens.
    pub reporter: Reporter,
}

impl<L: AsMut<Link>> Base<L> {
    /// For a turn.
    pub fn hub(&mut self) -> Hub<'_> {
        Hub { clock: &self.clock, link: self.link.as_mut(), reporter: &self.reporter }
    }
}

/// What all parts of a side use in a turn.
pub struct Hub<'a> {
    /// Of the loop.
    pub clock: &'a Clock,
    /// To the peer.
    pub link: &'a mut Link,
    /// Takes what happens.
    pub reporter: &'a Reporter,
}

/// See the module.
pub trait Part {
    /// What it waits for.
    fn interests<'a>(&'a mut self, now: Time, hub: &'a Hub<'_>, interests: &mut Interests<'a>);

    /// Does what there is to do; called in each turn, also when nothing is ready.
    ///
    /// # Errors
    /// The session cannot go on.
    fn turn(&mut self, now: Time, hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        let _ = (now, hub, ready);
        Ok(())
    }
}

impl<P: Part> Part for Option<P> {
    fn interests<'a>(&'a mut self, now: Time, hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        if let Some(part) = self {
            part.interests(now, hub, interests);
        }
    }

    fn turn(&mut self, now: Time, hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        self.as_mut().map_or(Ok(()), |part| part.turn(now, hub, ready))
    }
}

/// One side of a session.
pub trait Loop {
    /// How the session ended.
    type Outcome;

    /// What the parts share, and all parts, in the order of their turns.
    fn parts(&mut self) -> (Hub<'_>, Vec<&mut dyn Part>);

    /// Does the work of a turn, its parts' with [`turn_parts`]; gives how the session ended if it has.
    ///
    /// # Errors
    /// The session cannot go on.
    fn turn(&mut self, now: Time, ready: &Ready) -> Result<Option<Self::Outcome>, Error>;

    /// When the next turn must be, beside what the link and the parts say.
    fn next_timeout(&self, now: Time) -> Option<Time>;

    /// Whether somebody wants to know how long turns take.
    fn is_timed(&self) -> bool;

    /// A turn took so long.
    fn took(&self, turn: Took);
}

/// Gives each part its turn.
///
/// # Errors
/// Of the first part that cannot go on.
pub fn turn_parts(side: &mut impl Loop, now: Time, ready: &Ready) -> Result<(), Error> {
    let (mut hub, parts) = side.parts();
    parts.into_iter().try_for_each(|part| part.turn(now, &mut hub, ready))
}

/// Runs until the session is over.
///
/// # Errors
/// The session cannot go on.
pub fn run<S: Loop>(side: &mut S) -> Result<S::Outcome, Error> {
    let mut ready = Ready::default();
    loop {
        let now = clock_of(side);
        let begun = side.is_timed().then(processor_time);
        if let Some(outcome) = side.turn(now, &ready)? {
            return Ok(outcome);
        }
        if let Some(begun) = begun {
            let (time, processor) = (clock_of(side).since(now), processor_time() - begun);
            side.took(Took { time, processor });
        }
        ready = wait(side, now)?;
    }
}

/// What this thread has had of processors.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

fn clock_of(side: &mut impl Loop) -> Time {
    side.parts().0.clock.now()
}

fn wait(side: &mut impl Loop, now: Time) -> Result<Ready, Error> {
    let mut interests = Interests::default();
    interests.until(side.next_timeout(now));
    let (hub, parts) = side.parts();
    let hub = &hub;
    if let Some(fd) = hub.link.wake_fd() {
        interests.add_borrowed(fd, rustix::event::PollFlags::IN);
    }
    interests.until(hub.link.next_timeout());
    interests.until(hub.link.has_more().then_some(now));
    for part in parts {
        part.interests(now, hub, &mut interests);
    }
    interests.wait(now)
}

#[cfg(test)]
pub(crate) mod alone {
    use rustix::event::PollFd;

    use super::*;

    /// Without a peer, whose events go into the list.
    pub(crate) fn base() -> (Base, std::sync::mpsc::Receiver<crate::event::SessionEvent>) {
        let (sender, receiver) = std::sync::mpsc::channel();
        let reporter = Reporter::new(move |event| drop(sender.send(event)));
        let link = Link::detached(wayferry_proto::Side::App);
        (Base { clock: Clock::start(), link, reporter }, receiver)
    }

    /// What is ready for a side's next turn. Something has to be: nothing else ends the wait soon.
    pub(crate) fn ready(side: &mut impl Loop) -> Ready {
        let now = clock_of(side);
        wait(side, now).expect("poll")
    }

    /// One turn of a part by itself, with what is ready now; says for how many descriptors it waits after it.
    pub(crate) fn turn(part: &mut dyn Part, now: Time, base: &mut Base) -> usize {
        let mut hub = base.hub();
        let mut interests = Interests::default();
        part.interests(now, &hub, &mut interests);
        interests.until(Some(now));
        let ready = interests.wait(now).expect("poll");
        part.turn(now, &mut hub, &ready).expect("it goes on");
        let mut interests = Interests::default();
        part.interests(now, &hub, &mut interests);
        interests.polled().map(PollFd::clear_revents).count()
    }
}
