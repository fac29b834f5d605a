//! When what is typed into a stage's page is seen there, told from the page's pixels.
//!
//! Predictions count as what they look like. Only what is typed here is known: keys of a user are not looked at.
//! Invariant: the lines that are looked at are the last [`LOOKS`] that were typed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use wayferry_stage::{Demo, Look, Stage, SurfaceId, percentile};

use super::figures::ms;
use crate::sight::{Letters, Line, at_once};

/// See the module.
pub(super) struct Eye {
    stage: Arc<Stage>,
    window: SurfaceId,
    letters: Letters,
    row: usize,
    lines: Vec<Line>,
    /// Looks at the last lines.
    looks: VecDeque<Look>,
}

impl Eye {
    pub(super) fn new(stage: Arc<Stage>, window: SurfaceId) -> Self {
        let alphabet: String = ('!'..='~').collect();
        let mut letters = Letters::new(Demo::CELL, Demo::PAGE);
        letters.learn(&Demo::written(&alphabet), &alphabet);
        letters.learn_caret(&Demo::caret());
        let mut eye = Self { stage, window, letters, row: 0, lines: Vec::new(), looks: VecDeque::new() };
        eye.begin_line();
        eye
    }

    /// Types a letter of [`Demo::TEXT`].
    pub(super) fn type_letter(&mut self, letter: char) {
        let at = self.stage.type_text(&letter.to_string());
        if let Some(line) = self.lines.last_mut() {
            line.press(at, letter);
        }
        if letter == '\n' {
            self.row = (self.row + 1) % Demo::ROWS;
            self.look();
            self.begin_line();
        }
    }

    fn begin_line(&mut self) {
        if self.looks.len() == LOOKS {
            self.looks.pop_front();
        }
        self.looks.push_back(self.stage.look(self.window, Demo::row(self.row)));
        self.lines.push(Line::new(""));
    }

    /// Looks at what was seen since the last time.
    pub(super) fn look(&mut self) {
        let first = self.lines.len() - self.looks.len();
        for (line, look) in self.lines[first..].iter_mut().zip(&self.looks) {
            look.take().iter().for_each(|seen| line.sees(seen.time, &self.letters.read(&seen.picture)));
        }
    }

    /// What was seen of the keys, over a link of this round trip.
    pub(super) fn seen(&self, rtt: Duration) -> Seen {
        let keys = self.lines.iter().map(Line::pressed).sum();
        Seen { keys, delays: self.lines.iter().flat_map(Line::delays).collect(), at_once: at_once(rtt) }
    }
}

/// When keys were seen, whether they were answered or predicted.
#[derive(Debug, Default)]
pub(super) struct Seen {
    keys: usize,
    delays: Vec<Duration>,
    /// How soon is at once.
    at_once: Duration,
}

impl Seen {
    /// How many of them were seen at once, per cent; `None` where none was.
    pub(super) fn share(&self) -> Option<f64> {
        let soon = self.delays.iter().filter(|delay| **delay <= self.at_once).count();
        (soon > 0).then(|| 100.0 * soon as f64 / self.keys as f64)
    }

    /// How soon keys were seen, beside how soon they were answered; `None` where no answer was anticipated.
    pub(super) fn beside(&self, answers: &[Duration]) -> Option<String> {
        let share = self.share()?;
        let [with, without] = [&self.delays[..], answers].map(|delays| {
            let mean = delays.iter().sum::<Duration>() / delays.len().max(1) as u32;
            Some(format!("p50 {} ms, mean {} ms", ms(percentile(delays, 0.5)?), ms(mean)))
        });
        let (with, without) = (with?, without?);
        Some(format!(
            "{share:.0} % of {} keys shown at once; keys seen: {with}; without prediction: {without}",
            self.keys
        ))
    }
}

/// Lines that are looked at: what was typed before them was seen long ago.
const LOOKS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(delays: &[u64]) -> Seen {
        let delays = delays.iter().copied().map(Duration::from_millis).collect();
        Seen { keys: 5, delays, at_once: Duration::from_millis(40) }
    }

    #[test]
    fn what_is_seen_at_once_is_told_beside_the_answers() {
        let answers = [300, 310, 320, 330].map(Duration::from_millis);
        assert_eq!(
            seen(&[2, 3, 5, 310]).beside(&answers).unwrap(),
            "60 % of 5 keys shown at once; keys seen: p50 3 ms, mean 80 ms; without prediction: p50 310 ms, mean 315 ms"
        );
        assert_eq!(seen(&[300, 310]).beside(&answers), None, "nothing was predicted");
    }
}
