//! Whether captured sound is worth sending: after a second of digital silence it is not.
//!
//! It looks at samples and keeps none. Invariant: *idle* is said once for each silence.

use crate::sample::{CHANNELS, RATE};

/// See the module. Begins in silence.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    /// Frames of silence in a row, as far as they matter.
    silence: u64,
}

/// What to do with sound that was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Encode it, and hand it to [`Sender::frame`](crate::Sender::frame).
    Encode,
    /// Call [`Sender::idle`](crate::Sender::idle), once.
    SayIdle,
    /// Nothing.
    Rest,
}

impl Gate {
    /// What to do with the next samples.
    pub fn hear(&mut self, samples: &[f32]) -> Turn {
        let was_idle = self.is_idle();
        if samples.iter().any(|sample| *sample != 0.0) {
            self.silence = 0;
            return Turn::Encode;
        }
        self.silence = IDLE_AFTER.min(self.silence + (samples.len() / CHANNELS) as u64);
        match (was_idle, self.is_idle()) {
            (true, _) => Turn::Rest,
            (_, true) => Turn::SayIdle,
            _ => Turn::Encode,
        }
    }

    /// Whether nothing is sent at the moment.
    pub fn is_idle(&self) -> bool {
        self.silence >= IDLE_AFTER
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self { silence: IDLE_AFTER }
    }
}

/// Frames of digital silence before nothing more is sent: a second.
const IDLE_AFTER: u64 = RATE as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_silence_is_told_once() {
        let mut gate = Gate::default();
        let (silence, sound) = ([0.0; 960 * CHANNELS], [0.1; 960 * CHANNELS]);
        assert_eq!(gate.hear(&silence), Turn::Rest, "it begins in silence");
        assert_eq!(gate.hear(&sound), Turn::Encode);
        let turns: Vec<Turn> = (0..100).map(|_| gate.hear(&silence)).collect();
        assert_eq!(turns.iter().filter(|turn| **turn == Turn::Encode).count(), 49);
        assert_eq!(turns[49..52], [Turn::SayIdle, Turn::Rest, Turn::Rest]);
        assert_eq!(gate.hear(&sound), Turn::Encode);
    }
}
