//! What both sides take of the processor: all that this process does, less the bench's own threads.
//!
//! Threads that the sides start and end in between count. Invariant: a program, the stage and the link between the
//! sides count for nothing.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// See the module.
pub(super) struct Meter(Duration);

impl Meter {
    /// Begins to measure.
    pub(super) fn start() -> Self {
        Self(spent())
    }

    /// What was taken since.
    pub(super) fn spent(&self) -> Duration {
        spent().saturating_sub(self.0)
    }
}

fn spent() -> Duration {
    let all = clock_gettime(ClockId::ProcessCPUTime);
    let all = Duration::new(u64::try_from(all.tv_sec).unwrap_or(0), u32::try_from(all.tv_nsec).unwrap_or(0));
    let own = std::process::id().to_string();
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let threads = threads.filter_map(|thread| {
        let is_main = thread.file_name().to_str() == Some(&own);
        // It may have ended.
        let stat = fs::read_to_string(thread.path().join("stat")).ok()?;
        let (name, spent) = read(&stat)?;
        (is_main || OTHERS.contains(&name)).then_some(spent)
    });
    all.saturating_sub(threads.sum())
}

/// The name of a thread and what it has taken: proc(5), `/proc/pid/stat`.
fn read(stat: &str) -> Option<(&str, Duration)> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut fields = after.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    let ticks = next()? + next()?;
    Some((name, Duration::from_millis(ticks * TICK_MS)))
}

/// Threads of the bench: of a program, of the stage, and of the emulated link.
const OTHERS: [&str; 3] = ["program", "stage", "link"];
/// The kernel tells programs of times in hundredths of a second.
const TICK_MS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_read_whatever_its_name_is() {
        let stat = "12 (a (b) c) S 1 12 12 0 -1 4194304 95 0 0 0 7 5 0 0 20 0 1 0 31 3223552 449";
        assert_eq!(read(stat), Some(("a (b) c", Duration::from_millis(120))));
        assert_eq!(read("12 (a) S 1"), None);
    }
}
