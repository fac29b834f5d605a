//! One cell with one seed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wayferry_proto::Time;

use super::cell::{Cell, Trouble};
use crate::app::{Bulk, Sink, Traffic};
use crate::controller::Controller;
use crate::error::Error;
use crate::link::HEADERS;
use crate::session::{AppSide, DisplaySide, Log, Measures, Plan};
use crate::stats::Samples;
use crate::transport::{PacketSize, Windows};
use crate::world::{Flow, HostId, LinkConfig, World};

/// What one run gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// While congestion control learns the link; see [`Log::measures`](crate::session::Log::measures).
    pub first: Measures,
    /// From then on.
    pub rest: Measures,
    /// From the first request to the last delivery.
    pub completion: Duration,
    /// Updates delivered.
    pub updates: u64,
    /// The session's UDP payload in the direction of the updates, in bytes.
    pub wire_bytes: u64,
    /// Its packets in that direction.
    pub wire_packets: u64,
    /// How long packets in that direction waited for the link, those of another flow too.
    pub queue: Samples,
    /// Bytes of the updates themselves.
    pub content_bytes: u64,
}

impl Run {
    /// Runs a cell.
    ///
    /// # Errors
    /// A session or connection ended, or the updates were not there after an hour.
    pub fn of(cell: Cell, seed: u64) -> Result<Self, Error> {
        Self::on(cell.link(), cell, seed)
    }

    /// Runs a cell's workload over another link than its own.
    ///
    /// # Errors
    /// As [`Run::of`].
    pub fn on(link: LinkConfig, cell: Cell, seed: u64) -> Result<Self, Error> {
        Self::made(link, cell, seed, false, |_, _, _, _| ())
    }

    /// The same with every packet recorded, and a look at the end: the world, the display's log, the plan, and when
    /// updates were handed over.
    pub(crate) fn watched(
        link: LinkConfig,
        cell: Cell,
        seed: u64,
        look: impl FnOnce(&World, &Log, &Plan, &[Time]),
    ) -> Result<Self, Error> {
        Self::made(link, cell, seed, true, look)
    }

    fn made(
        link: LinkConfig,
        cell: Cell,
        seed: u64,
        recorded: bool,
        look: impl FnOnce(&World, &Log, &Plan, &[Time]),
    ) -> Result<Self, Error> {
        let plan = Arc::new(cell.workload.plan());
        let flow = Flow {
            controller: cell.controller,
            size: PACKET,
            windows: cell.delivery.windows(),
            sender: Box::new(AppSide::new(Arc::clone(&plan), cell.delivery)),
            receiver: Box::new(DisplaySide::new(Arc::clone(&plan), cell.delivery)),
        };
        let (sender, receiver) = (HostId::sender(0), HostId::receiver(0));
        let bulk = (cell.trouble == Trouble::Bulk).then(bulk);
        let mut world = World::new(link, std::iter::once(flow).chain(bulk).collect(), seed)?;
        let before = world.sent(sender);
        world.record_waits();
        if recorded {
            world.record_packets();
        }
        let faulty = |world: &World| world.app::<AppSide>(sender).is_some_and(|app| app.fault().is_some());
        let done = |world: &World| world.app::<DisplaySide>(receiver).is_none_or(DisplaySide::is_done);
        world.run_while(LIMIT, |world| !done(world) && !faulty(world))?;
        let at = world.now();
        let after = world.sent(sender);
        let missing = || Error::Unfinished { at, missing: "updates".into() };
        let app = world.app::<AppSide>(sender).ok_or_else(missing)?;
        let display = world.app::<DisplaySide>(receiver).ok_or_else(missing)?;
        if let Some(why) = display.fault().or(app.fault()) {
            return Err(Error::Session { at, why: why.to_owned() });
        }
        if display.missing() > 0 {
            return Err(Error::Unfinished { at, missing: format!("{} updates", display.missing()) });
        }
        look(&world, display.log(), &plan, app.sent());
        let order = cell.delivery.order();
        let (first, rest) = display.log().measures(&plan, order, app.sent()).ok_or_else(missing)?;
        Ok(Self {
            first,
            rest,
            completion: display.log().completion(order).ok_or_else(missing)?,
            updates: plan.updates.len() as u64,
            wire_bytes: after.bytes - before.bytes,
            wire_packets: after.datagrams - before.datagrams,
            queue: world.waits().iter().map(|wait| wait.time).collect(),
            content_bytes: plan.bytes(),
        })
    }

    /// The response time that the link allows at this run's bytes: the mean update on the line, and the round trip, or
    /// half of it where there are no requests.
    pub fn floor(&self, cell: Cell) -> Duration {
        let bytes = self.wire_bytes + self.wire_packets * HEADERS;
        let way = if cell.workload.plan().has_requests() { cell.rtt() } else { cell.rtt() / 2 };
        way + cell.rate().time(bytes / self.updates.max(1))
    }
}

/// What fills the queue beside the session.
fn bulk() -> Flow {
    Flow {
        controller: Controller::Cubic,
        size: PACKET,
        windows: Windows::Wide,
        sender: Box::new(Traffic::new(Some(Bulk::ALWAYS), None)),
        receiver: Box::new(Sink::new(true, None)),
    }
}

/// Lossless runs that others are compared with; each is made once.
#[derive(Debug, Default)]
pub struct References(Mutex<HashMap<Cell, Reference>>);

/// See [`References`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// UDP payload in the direction of the updates, in bytes.
    pub wire_bytes: u64,
    /// See [`Run::floor`].
    pub floor: Duration,
}

impl References {
    /// What a cell is compared with. Two threads that ask at once may both run it.
    ///
    /// # Errors
    /// As [`Run::of`].
    pub fn of(&self, cell: Cell) -> Result<Reference, Error> {
        let key = cell.reference();
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        if let Some(reference) = known {
            return Ok(reference);
        }
        let run = Run::on(key.lossless_link(), key, 0)?;
        let reference = Reference { wire_bytes: run.wire_bytes, floor: run.floor(key) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, reference);
        Ok(reference)
    }
}

/// The paper's packets.
const PACKET: PacketSize = PacketSize::Pinned(1400);

/// When a run is given up.
const LIMIT: Time = Time::from_millis(3_600_000);
