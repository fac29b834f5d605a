//! The processor time of both sides while a program plays, without what only emulates.
//!
//! Both run in this process, on threads with names of their own.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Seconds that each thread has run, by its number, with its name.
pub(super) struct Spent(BTreeMap<String, (String, f64)>);

impl Spent {
    /// Until now.
    pub(super) fn now() -> Self {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let spent = |task: fs::DirEntry| {
            let name = fs::read_to_string(task.path().join("comm")).ok()?;
            let times = fs::read_to_string(task.path().join("schedstat")).ok()?;
            let number = task.file_name().to_string_lossy().into_owned();
            Some((number, (name.trim_end().to_owned(), seconds(&times)?)))
        };
        Self(tasks.filter_map(spent).collect())
    }

    /// What a session's threads have run since, in per cent of one processor.
    pub(super) fn since(&self, before: &Self, time: Duration) -> f64 {
        let of_session =
            self.0.iter().filter(|(_, (name, _))| OURS.iter().any(|ours| name.starts_with(ours)));
        let spent = of_session
            .map(|(number, (_, spent))| spent - before.0.get(number).map_or(0.0, |(_, spent)| *spent));
        100.0 * spent.sum::<f64>() / time.as_secs_f64()
    }
}

/// The first number of the kernel's three: nanoseconds on a processor.
fn seconds(times: &str) -> Option<f64> {
    times.split_whitespace().next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds / 1e9)
}

/// How the threads of both sides are called, as far as the kernel keeps it.
const OURS: [&str; 5] = ["app side", "display side", "wayferry-quic", "wayferry-captur", "wayferry-sound"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sessions_threads_count() {
        let spent = |all: &[(&str, &str, f64)]| {
            Spent(
                all.iter()
                    .map(|(number, name, spent)| ((*number).into(), ((*name).into(), *spent)))
                    .collect(),
            )
        };
        let before = spent(&[("1", "app side", 1.0), ("2", "stage", 1.0)]);
        let after = spent(&[("1", "app side", 1.5), ("2", "stage", 9.0), ("3", "wayferry-sound", 0.5)]);
        assert_eq!(after.since(&before, Duration::from_secs(10)), 10.0);
        assert_eq!(seconds("2000000000 5 6\n"), Some(2.0));
    }
}
