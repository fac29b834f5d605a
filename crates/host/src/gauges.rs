//! What a side counts, and where it publishes that: the line of `--stats`, a [`Handle`], a trace.
//!
//! Both sides have the same. Invariant: publishing never makes the session wait.

use std::sync::Arc;
use std::time::Duration;

use wayferry_proto::Time;

use crate::clock::earlier;
use crate::edge::handle::Handle;
use crate::edge::turns::Took;
use crate::event::{Reporter, SessionEvent};
use crate::link::Link;
use crate::stats::{Counters, StatsLine};
use crate::trace::{Half, SideTrace, TraceFile};

/// See the module.
pub(crate) struct Gauges {
    pub(crate) counters: Counters,
    pub(crate) handle: Option<Handle>,
    pub(crate) trace: SideTrace,
    line: Option<StatsLine>,
}

impl Gauges {
    /// Of this half, with a line of figures each second or without.
    pub(crate) fn new(half: Half, lines: bool) -> Self {
        Self {
            counters: Counters::default(),
            handle: None,
            trace: SideTrace::new(half, None),
            line: lines.then(|| StatsLine::new(PERIOD)),
        }
    }

    /// Writes a timeline.
    pub(crate) fn set_trace(&mut self, file: Option<Arc<TraceFile>>) {
        self.trace = SideTrace::new(self.trace.half(), file);
    }

    /// Whether the loop was asked to end by its handle.
    pub(crate) fn stop_asked(&self) -> bool {
        self.handle.as_ref().is_some_and(Handle::stop_asked)
    }

    /// Publishes the figures of a turn in which so many `programs` are served.
    pub(crate) fn publish(&mut self, now: Time, link: &Link, programs: usize, reporter: &Reporter) {
        let state = link.state();
        self.counters.repair = link.session.repair();
        let line = self.line.as_mut().and_then(|line| line.poll(now, self.counters, state, programs));
        line.into_iter().for_each(|line| reporter.report(SessionEvent::Stats { line }));
        if let Some(handle) = &self.handle {
            handle.publish(self.counters, state);
        }
    }

    /// Whether somebody wants to know how long turns take.
    pub(crate) fn is_timed(&self) -> bool {
        self.handle.is_some()
    }

    /// A turn of the loop took so long.
    pub(crate) fn took(&self, turn: Took) {
        self.handle.iter().for_each(|handle| handle.publish_any_turn(turn));
    }

    /// When the next turn must be.
    pub(crate) fn next_timeout(&self, now: Time) -> Option<Time> {
        earlier(self.line.as_ref().map(StatsLine::next_timeout), self.trace.next_timeout(now))
    }
}

/// Between two lines of figures.
const PERIOD: Duration = Duration::from_secs(1);
