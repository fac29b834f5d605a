//! What the controller knows, for those outside of noq.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What the controller of one connection knows of its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Bytes that may be on their way.
    pub window: u64,
    /// Bytes that are.
    pub in_flight: u64,
    /// The bottleneck's rate in bytes per second; `None` before anything of eight packets was acknowledged.
    pub rate: Option<u64>,
    /// How long packets wait at the bottleneck. A wait below the noise of the path is told as well.
    pub queue_delay: Duration,
    /// The round-trip time without that wait; zero before the first acknowledgement.
    pub base_rtt: Duration,
}

/// Where the controllers of one connection (one after another, or one for each path) publish their [`State`]. Clones
/// are the same place. Reading takes an uncontended lock.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<Mutex<State>>);

impl Shared {
    /// The state after the last packet or acknowledgement.
    pub fn state(&self) -> State {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn publish(&self, state: State) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    pub(crate) fn set_in_flight(&self, bytes: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).in_flight = bytes;
    }
}
