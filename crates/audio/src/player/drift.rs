//! How much faster the sender's sound card is than ours.
//!
//! What has arrived, by the sender's sound clock, less what was played, by ours, grows by their difference alone while
//! the way stays the same; its slope over minutes is the drift. Of each half minute the packet counts that was under way
//! for the shortest time. For figures only: nothing is decided by it.

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drift {
    played: u64,
    last: i64,
    /// The half minute that is running: when it began, when most was ahead in it, and how much.
    part: Option<(u64, u64, i64)>,
    /// The first of the slope, the first of the next one, and the last: played, and ahead.
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

/// A longer step than 20 ms in one pull is no drift: the device paused, or the way is another.
const JUMP: i64 = 960;

const PART: u64 = 30 * 48_000;

/// A slope is over one or two of these: 10 minutes.
const SPAN: u64 = 600 * 48_000;

/// And over a minute at least.
const LEAST: u64 = 60 * 48_000;
