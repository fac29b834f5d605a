//! Rates, so that no number travels without its unit.

use std::time::Duration;

/// Bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bitrate(u64);

impl Bitrate {
    /// `bits` per second; at least one.
    pub const fn bps(bits: u64) -> Self {
        Self(if bits == 0 { 1 } else { bits })
    }

    /// `kilobits` per second, decimal.
    pub const fn kbps(kilobits: u64) -> Self {
        Self::bps(kilobits * 1000)
    }

    /// `megabits` per second, decimal.
    pub const fn mbps(megabits: u64) -> Self {
        Self::bps(megabits * 1_000_000)
    }

    /// As a number.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// How long `bytes` take.
    pub fn time(self, bytes: u64) -> Duration {
        let nanos = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many whole bytes go through in `span`.
    pub fn bytes(self, span: Duration) -> u64 {
        let bytes = span.as_nanos() * u128::from(self.0) / 8 / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_bytes_are_inverse() {
        let rate = Bitrate::mbps(10);
        assert_eq!(rate.time(1250), Duration::from_millis(1));
        assert_eq!(rate.bytes(Duration::from_millis(1)), 1250);
        assert_eq!(Bitrate::bps(1).time(u64::MAX), Duration::from_nanos(u64::MAX));
    }
}
