//! Figures out of the stage's log: how long from a key to its glyph, how old a picture was, how many a second.

use std::time::Duration;

use crate::compositor::{Commit, StageEvent, Stamped, SurfaceId};

/// For each key press that the stage gave to `surface`: how long until a commit whose strip counts it. Presses
/// that no commit shows are left out. The log must begin before the first press.
pub fn key_latencies(events: &[Stamped], surface: SurfaceId) -> Vec<Duration> {
    let mut pressed = Vec::new();
    let mut latencies = Vec::new();
    for stamped in events {
        match &stamped.event {
            StageEvent::Key { surface: Some(focus), pressed: true, .. } if *focus == surface => {
                pressed.push(stamped.time);
            }
            StageEvent::Commit(Commit { surface: of, strip: Some(strip), .. }) if *of == surface => {
                let shown = (strip.value as usize).min(pressed.len());
                let new = pressed.get(latencies.len()..shown).unwrap_or_default();
                latencies.extend(new.iter().map(|time| stamped.time.saturating_sub(*time)));
            }
            _ => {}
        }
    }
    latencies
}

/// For each commit of `surface` with a strip: how long ago its picture was drawn. With one clock for the program
/// and the stage this is the delay of the whole way.
pub fn freshness(events: &[Stamped], surface: SurfaceId) -> Vec<Duration> {
    let commits = commits(events, surface);
    commits.filter_map(|(time, commit)| Some(time.saturating_sub(commit.strip?.drawn))).collect()
}

/// Commits of `surface` with a buffer, per second, between the first and the last of them; 0 before there are two.
pub fn commits_per_second(events: &[Stamped], surface: SurfaceId) -> f64 {
    let times: Vec<_> = commits(events, surface).filter(|(_, it)| it.attached).map(|it| it.0).collect();
    match (times.first(), times.last()) {
        (Some(first), Some(last)) if last > first => {
            (times.len() - 1) as f64 / (*last - *first).as_secs_f64()
        }
        _ => 0.0,
    }
}

/// The value that a share (0 to 1) of the values does not exceed; `None` of none.
pub fn percentile(values: &[Duration], share: f64) -> Option<Duration> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (share.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

fn commits(events: &[Stamped], surface: SurfaceId) -> impl Iterator<Item = (Duration, &Commit)> {
    events.iter().filter_map(move |stamped| match &stamped.event {
        StageEvent::Commit(commit) if commit.surface == surface => Some((stamped.time, commit)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_values() {
        let values: Vec<_> = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&values, 0.5), Some(Duration::from_millis(50)));
        assert_eq!(percentile(&values, 0.95), Some(Duration::from_millis(95)));
        assert_eq!(percentile(&values, 1.0), Some(Duration::from_millis(100)));
        assert_eq!(percentile(&[], 0.5), None);
    }
}
