//! What a client has done, for benches to read while it runs.

use std::time::Duration;

/// Counters of one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames committed with a buffer.
    pub frames: u64,
    /// Frame callbacks answered.
    pub callbacks: u64,
    /// Buffers released.
    pub releases: u64,
    /// Times that no buffer was free when one was wanted.
    pub busy_waits: u64,
    /// Key presses seen.
    pub key_presses: u64,
    /// When the first frame was committed.
    pub first_frame: Option<Duration>,
    /// When the last frame was committed.
    pub last_frame: Option<Duration>,
}

impl Counts {
    /// Frames a second between the first and the last, 0 before there are two.
    pub fn fps(&self) -> f64 {
        match (self.first_frame, self.last_frame) {
            (Some(first), Some(last)) if last > first => {
                (self.frames - 1) as f64 / (last - first).as_secs_f64()
            }
            _ => 0.0,
        }
    }
}
