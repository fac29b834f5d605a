//! When something loud begins in what is heard: the file that the player writes, 10 ms at a time as it plays.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use wayferry_stage::now;

/// See the module.
#[derive(Default)]
pub(super) struct Ear {
    file: Option<File>,
    /// When it was last loud.
    loud: Option<Duration>,
    /// When each beep began, so far.
    pub(super) beeps: Vec<Duration>,
}

impl Ear {
    /// Reads what the file has more than at the last look.
    pub(super) fn look(&mut self, heard: &Path) {
        if self.file.is_none() {
            self.file = File::open(heard).ok();
        }
        let mut bytes = Vec::new();
        if let Some(file) = &mut self.file {
            let at = now();
            // What cannot be read now is read at the next look.
            let _ = file.read_to_end(&mut bytes);
            self.hear(at, &bytes);
        }
    }

    /// Sound that is played from now on.
    fn hear(&mut self, at: Duration, bytes: &[u8]) {
        let Some(onset) = onset(bytes) else { return };
        let at = at + Duration::from_micros(onset as u64 * 1000 / 48);
        if self.loud.is_none_or(|loud| at.saturating_sub(loud) > APART) {
            self.beeps.push(at);
        }
        self.loud = Some(at);
    }
}

/// The first frame of 16-bit stereo that is loud.
fn onset(bytes: &[u8]) -> Option<usize> {
    let frames = bytes.as_chunks::<4>().0;
    frames.iter().position(|frame| i16::from_le_bytes([frame[0], frame[1]]).unsigned_abs() > 2000)
}

/// Loud sounds that are no further apart are one beep.
const APART: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beep_is_heard_once_and_where_it_begins() {
        let mut ear = Ear::default();
        let mut loud = vec![0; 48 * 4];
        loud.extend([0, 0x20, 0, 0].repeat(432));
        ear.hear(Duration::from_millis(100), &vec![0; 1920]);
        ear.hear(Duration::from_millis(110), &loud);
        ear.hear(Duration::from_millis(120), &loud);
        ear.hear(Duration::from_millis(1110), &loud);
        assert_eq!(ear.beeps, [111, 1111].map(Duration::from_millis));
    }
}
