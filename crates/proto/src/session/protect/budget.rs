//! A share of the link: bytes that come by the second, and may be saved up.
//!
//! Invariant: what is taken in any span is at most what comes in it, and what may be saved up.

use crate::Time;

/// See the module.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: f64,
    at: Time,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: SAVED as f64, at: Time::ZERO }
    }
}

impl Budget {
    /// Takes so many bytes, if they are there, at `rate` bytes a second.
    pub(super) fn take(&mut self, now: Time, rate: u64, bytes: usize) -> bool {
        let came = now.since(self.at).as_secs_f64() * rate as f64;
        self.at = now;
        self.bytes = (self.bytes + came).min(rate.max(SAVED) as f64);
        let fits = bytes as f64 <= self.bytes;
        self.bytes -= if fits { bytes as f64 } else { 0.0 };
        fits
    }
}

/// Bytes that may be saved up: those of a second, and at least an answer or two.
pub(super) const SAVED: u64 = 16 << 10;
