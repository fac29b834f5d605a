//! Waiting for events: with a deadline that only a broken test reaches.

use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::event::{Commit, StageEvent, Stamped};
use crate::clock;

/// Reads a log of events in order, one waited-for event after the other.
pub struct Watch {
    events: Receiver<Stamped>,
    recent: VecDeque<Stamped>,
    patience: Duration,
}

impl Watch {
    /// Reads from a receiver of [`crate::Stage::events`].
    pub fn new(events: Receiver<Stamped>) -> Watch {
        Watch { events, recent: VecDeque::new(), patience: PATIENCE }
    }

    /// Changes how long [`Watch::find`] waits; 30 s unless told.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Watch {
        self.patience = patience;
        self
    }

    /// Reads on until `wanted` gives something for an event. Events before it are skipped for good.
    ///
    /// # Errors
    /// [`Missing`] when nothing fits in time; it shows the last events that did not fit.
    pub fn find<T>(&mut self, mut wanted: impl FnMut(&Stamped) -> Option<T>) -> Result<T, Missing> {
        let deadline = clock::now() + self.patience;
        loop {
            let left = deadline.saturating_sub(clock::now());
            match self.events.recv_timeout(left) {
                Ok(stamped) => {
                    let found = wanted(&stamped);
                    if self.recent.len() == SHOWN {
                        self.recent.pop_front();
                    }
                    self.recent.push_back(stamped);
                    if let Some(found) = found {
                        return Ok(found);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Err(self.missing("nothing fitted in time")),
                Err(RecvTimeoutError::Disconnected) => return Err(self.missing("the stage has ended")),
            }
        }
    }

    /// As [`Watch::find`], for an event that fulfils a condition.
    ///
    /// # Errors
    /// As `find`.
    pub fn until(&mut self, wanted: impl Fn(&StageEvent) -> bool) -> Result<Stamped, Missing> {
        self.find(|stamped| wanted(&stamped.event).then(|| stamped.clone()))
    }

    /// As [`Watch::find`], for a commit that fulfils a condition.
    ///
    /// # Errors
    /// As `find`.
    pub fn commit(&mut self, wanted: impl Fn(&Commit) -> bool) -> Result<Commit, Missing> {
        self.find(|stamped| match &stamped.event {
            StageEvent::Commit(commit) if wanted(commit) => Some(commit.clone()),
            _ => None,
        })
    }

    /// All events that are there now, without waiting.
    pub fn drain(&mut self) -> Vec<Stamped> {
        self.events.try_iter().collect()
    }

    fn missing(&self, why: &'static str) -> Missing {
        Missing { why, recent: self.recent.iter().cloned().collect() }
    }
}

/// The event that did not come.
#[derive(Clone, Debug)]
pub struct Missing {
    /// Whether time or the stage ended.
    pub why: &'static str,
    /// The last events that did not fit.
    pub recent: Vec<Stamped>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; last events:", self.why)?;
        for stamped in &self.recent {
            write!(f, "\n  {:?}: {:?}", stamped.time, stamped.event)?;
        }
        Ok(())
    }
}

impl std::error::Error for Missing {}

const PATIENCE: Duration = Duration::from_secs(30);
const SHOWN: usize = 16;
