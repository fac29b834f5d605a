//! What is told of a scene: figures once a second, and the sentence at the end.
//!
//! It measures on the stage's clock alone. Invariant: a key counts as seen when a commit shows it, and as lost
//! otherwise.

use std::time::{Duration, Instant};

use wayferry_stage::{Role, StageEvent, Stamped, SurfaceId, key_latencies, percentile};

use crate::emulated::Emulated;

/// The keys of a session.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// How many were pressed.
    pub(super) pressed: usize,
    /// How long each took that was seen.
    pub(super) seen: Vec<Duration>,
}

impl Keys {
    /// Those in a stage's log.
    pub(super) fn new(events: &[Stamped]) -> Self {
        let Some(window) = window(events) else { return Self::default() };
        let pressed = |stamped: &&Stamped| match stamped.event {
            StageEvent::Key { surface, pressed, .. } => pressed && surface == Some(window),
            _ => false,
        };
        Self { pressed: events.iter().filter(pressed).count(), seen: key_latencies(events, window) }
    }

    /// Whether some were pressed and not seen.
    pub(super) fn are_on_their_way(&self) -> bool {
        self.seen.len() < self.pressed
    }

    /// How soon the last ones were answered, in words, where so many per cent were seen at once.
    pub(super) fn recently(&self, at_once: Option<f64>) -> Option<String> {
        let recent = &self.seen[self.seen.len().saturating_sub(RECENT)..];
        let most = percentile(recent, 1.0).map(ms)?;
        Some(match at_once {
            None => format!("keys are seen after up to {most} ms"),
            Some(share) => format!("{share:.0} % of keys at once, answers in up to {most} ms"),
        })
    }

    /// How soon they were answered, in words, where so many per cent were seen at once.
    pub(super) fn on_the_whole(&self, at_once: Option<f64>) -> String {
        let Some([half, most]) = self.shares() else { return String::new() };
        match at_once {
            None => format!("keys seen after {half} ms, 19 of 20 within {most} ms"),
            Some(share) => format!("{share:.0} % of keys at once, 19 of 20 answers in {most} ms"),
        }
    }

    /// Within how many milliseconds half of them and 19 of 20 were answered.
    fn shares(&self) -> Option<[String; 2]> {
        let share = |share| percentile(&self.seen, share).map(ms);
        Some([share(0.5)?, share(NEARLY_ALL)?])
    }
}

/// How it went, compared with another way; `None` if no key was seen.
pub(super) fn closing(ours: &Keys, other: Option<&Keys>) -> Option<String> {
    let most = percentile(&ours.seen, NEARLY_ALL)?;
    let other = other.and_then(|keys| percentile(&keys.seen, NEARLY_ALL));
    let instead = other.map_or(String::new(), |other| format!(" instead of {}", ms(other)));
    let lost = match ours.pressed - ours.seen.len().min(ours.pressed) {
        0 => "nothing lost".to_owned(),
        lost => format!("{lost} of {} keys not seen", ours.pressed),
    };
    Some(format!("19 of 20 keys: {} ms{instead}; {lost}", ms(most)))
}

/// The first window in a stage's log.
pub(super) fn window(events: &[Stamped]) -> Option<SurfaceId> {
    events.iter().find_map(|stamped| match stamped.event {
        StageEvent::FirstAttach { surface, role: Some(Role::Toplevel), .. } => Some(surface),
        _ => None,
    })
}

/// Figures of a second.
pub(super) struct Line {
    updates: u64,
    bytes: u64,
    at: Instant,
}

impl Line {
    pub(super) fn new(session: &Emulated) -> Self {
        Self { updates: 0, bytes: session.link_stats().down.delivered_bytes, at: Instant::now() }
    }

    /// Those since the last call.
    pub(super) fn next(&mut self, session: &Emulated, keys: &Keys) -> String {
        let (counters, link) = session.display().counters();
        let bytes = session.link_stats().down.delivered_bytes;
        let seconds = self.at.elapsed().as_secs_f64().max(0.001);
        let rate = (bytes - self.bytes) as f64 * 8.0 / seconds / 1e6;
        let updates = (counters.updates - self.updates) as f64 / seconds;
        let typing = percentile(&keys.seen, 0.5)
            .map_or(String::new(), |p50| format!(", key to picture {} ms", ms(p50)));
        *self = Self { updates: counters.updates, bytes, at: Instant::now() };
        format!("rtt {} ms, {updates:.0} updates/s, {rate:.2} Mbit/s{typing}", ms(link.rtt))
    }
}

/// Whole milliseconds.
pub(super) fn ms(duration: Duration) -> String {
    format!("{:.0}", duration.as_secs_f64() * 1e3)
}

/// 19 of 20.
const NEARLY_ALL: f64 = 0.95;
/// Keys of the last second.
const RECENT: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(pressed: usize, seen: &[u64]) -> Keys {
        Keys { pressed, seen: seen.iter().copied().map(Duration::from_millis).collect() }
    }

    #[test]
    fn the_sentence_says_what_was_measured() {
        let mut times = vec![120; 18];
        times.extend([134, 900]);
        let (ours, other) = (keys(20, &times), keys(20, &[239; 20]));
        assert_eq!(
            closing(&ours, Some(&other)).unwrap(),
            "19 of 20 keys: 134 ms instead of 239; nothing lost"
        );
        assert_eq!(closing(&other, None).unwrap(), "19 of 20 keys: 239 ms; nothing lost");
        let lossy = keys(23, &times);
        assert_eq!(closing(&lossy, None).unwrap(), "19 of 20 keys: 134 ms; 3 of 23 keys not seen");
        assert_eq!(closing(&keys(3, &[]), Some(&other)), None);
    }

    #[test]
    fn the_line_under_a_window_is_of_the_last_second() {
        let mut times = vec![900];
        times.extend([120; 8]);
        assert_eq!(keys(9, &times).recently(None).unwrap(), "keys are seen after up to 120 ms");
        assert_eq!(keys(9, &times).on_the_whole(None), "keys seen after 120 ms, 19 of 20 within 900 ms");
        assert_eq!(keys(1, &[]).recently(None), None);
        let told = "67 % of keys at once, answers in up to 120 ms";
        assert_eq!(keys(9, &times).recently(Some(66.7)).unwrap(), told);
        assert_eq!(
            keys(9, &times).on_the_whole(Some(66.7)),
            "67 % of keys at once, 19 of 20 answers in 900 ms"
        );
    }
}
