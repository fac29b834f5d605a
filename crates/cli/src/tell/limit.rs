//! How fast something may be told, by any cause.

use std::time::Duration;

/// How much may still be written: so many lines at once, then one each step.
#[derive(Debug)]
pub(super) struct Limit {
    burst: u32,
    step: Duration,
    left: u32,
    /// Until then, `left` is accounted for.
    counted: Duration,
    skipped: u64,
}

impl Limit {
    /// None is left out yet.
    pub(super) const fn new(burst: u32, step: Duration) -> Self {
        Self { burst, step, left: burst, counted: Duration::ZERO, skipped: 0 }
    }

    /// Whether one may be written at `now`; if so, how many were left out before it.
    pub(super) fn take(&mut self, now: Duration) -> Option<u64> {
        let earned = now.saturating_sub(self.counted).as_millis() / self.step.as_millis();
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(earned).min(self.burst);
        self.counted = if self.left == self.burst { now } else { self.counted + self.step * earned };
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Some(std::mem::take(&mut self.skipped))
            }
            None => {
                self.skipped += 1;
                None
            }
        }
    }
}

/// Notes at once: more than a session with many programs has reason for.
pub(super) const BURST: u32 = 20;
/// Time that earns another note.
pub(super) const STEP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn a_flood_of_notes_is_cut_and_counted() {
        let mut limit = Limit::new(BURST, STEP);
        let written = (0..10_000).filter(|number| limit.take(MILLISECOND * *number).is_some()).count();
        // Ten seconds.
        assert_eq!(written, BURST as usize + 9);
        assert_eq!(limit.take(Duration::from_secs(60)), Some(999), "those since the last that was written");
        assert_eq!(limit.take(Duration::from_secs(60)), Some(0));
    }

    #[test]
    fn a_note_a_second_is_never_left_out() {
        let mut limit = Limit::new(BURST, STEP);
        assert!((0..1000).all(|second| limit.take(Duration::from_secs(second)) == Some(0)));
    }
}
