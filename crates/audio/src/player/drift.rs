//! How much faster the sender's sound card is than ours.
//!
//! The frames that arrived, by the sender's sound clock, minus those played, by ours, grow only by the difference of
//! the clocks while the network path stays the same; the slope over minutes is the drift. Each half minute counts with
//! the packet of least delay. For figures only: no decision depends on it.

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drift {
    played: u64,
    last: i64,
    /// The half minute that is running: when it began, when most was ahead in it, and how much.
    part: Option<(u64, u64, i64)>,
    /// Start of the slope, start of the next slope, and the latest point: frames played, and frames ahead.
    anchors: Option<[(u64, i64); 3]>,
}

impl Drift {
    /// The device took `frames`; so much has `arrived`.
    pub(super) fn on_pull(&mut self, arrived: Option<i64>, frames: u64) {
        self.played += frames;
        let Some(arrived) = arrived else { return };
        let ahead = arrived - self.played as i64;
        if (ahead - self.last).abs() > JUMP {
            (self.part, self.anchors) = (None, None);
        }
        self.last = ahead;
        let (began, at, most) = self.part.get_or_insert((self.played, self.played, ahead));
        if ahead > *most {
            (*at, *most) = (self.played, ahead);
        }
        if self.played - *began >= PART {
            let here = (*at, *most);
            self.part = None;
            let [first, next, _] = *self.anchors.get_or_insert([here; 3]);
            let old = here.0 - next.0 > SPAN;
            self.anchors = Some(if old { [next, here, here] } else { [first, next, here] });
        }
    }

    /// In millionths; `None` while less than a minute is known.
    pub(super) fn ppm(&self) -> Option<f64> {
        let [(from, begin), _, (to, end)] = self.anchors?;
        (to - from >= LEAST).then(|| (end - begin) as f64 * 1e6 / (to - from) as f64)
    }
}

/// A longer step than 20 ms in one pull is no drift: the device paused, or the path changed.
const JUMP: i64 = 960;

const PART: u64 = 30 * 48_000;

/// A slope covers one or two of these: 10 minutes.
const SPAN: u64 = 600 * 48_000;

/// And at least a minute.
const LEAST: u64 = 60 * 48_000;
