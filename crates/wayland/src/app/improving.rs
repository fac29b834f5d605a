//! A step that makes content better, with a worker.
//!
//! What is made better, and when, is decided in `better`. Invariant: one step is taken at a time, and the program is
//! read between two of them.

use wayferry_proto::Time;

use crate::workers::Pending;

use super::errand::Return;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Improving {
    /// Of which surface.
    work: Option<(u32, Pending<Return>)>,
    /// When the last came back.
    last: Option<Time>,
}

impl Improving {
    /// A worker has a surface's painter.
    pub(super) fn begin(&mut self, surface: u32, work: Pending<Return>) {
        self.work = Some((surface, work));
    }

    /// Whether one has.
    pub(super) fn is_on(&self) -> bool {
        self.work.is_some()
    }

    /// Whether none is to have one in this turn.
    pub(super) fn rests(&self, now: Time) -> bool {
        self.is_on() || self.last == Some(now)
    }

    /// What has come back, and of which surface.
    pub(super) fn poll(&mut self, now: Time) -> Option<(u32, Return)> {
        let back = self.work.as_mut()?.1.poll()?;
        self.come_back(now, back)
    }

    /// The same at once; `None` if nothing is with a worker.
    pub(super) fn finish(&mut self, now: Time) -> Option<(u32, Return)> {
        let back = self.work.as_mut()?.1.finish();
        self.come_back(now, back)
    }

    /// The same, where what is made is of no use.
    pub(super) fn call_off(&mut self, now: Time) -> Option<(u32, Return)> {
        let back = self.work.as_mut()?.1.call_off();
        self.come_back(now, back)
    }

    fn come_back(&mut self, now: Time, back: Return) -> Option<(u32, Return)> {
        self.last = Some(now);
        self.work.take().map(|(surface, _)| (surface, back))
    }
}
