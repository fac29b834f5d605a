//! What the display side keeps of a surface: its pixels and its buffers.
//!
//! Knows pixels and times, no Wayland messages. Invariant: a surface's content is that of the last update applied to
//! it.

use std::collections::HashMap;
use std::time::Duration;

use wayferry_pixels::{Content, Size};
use wayferry_proto::Time;

use crate::message::WireId;
use crate::predicted::PredictFigures;

use super::buffers::Pool;
use super::ground::{Ground, Painted};
use super::ratio::Ratio;
use super::videos::Videos;

/// A surface counts as hidden when the compositor has not asked for a frame for so long.
const HIDDEN_AFTER: Duration = Duration::from_secs(1);

/// One surface.
#[derive(Debug)]
pub(super) struct Surface {
    /// Version that it is bound at.
    pub(super) version: u32,
    /// The pixels; none before the first update and after an empty attach.
    pub(super) content: Option<Content>,
    pub(super) videos: Videos,
    /// The compositor's copies.
    pub(super) pool: Pool,
    /// How they become its size.
    pub(super) extent: Extent,
    /// The number of the last unit accepted, and of the last that an update told.
    pub(super) last_unit: u64,
    pub(super) last_told: u64,
    /// Whether the surface has content once all units accepted are applied.
    pub(super) will_have_content: bool,
    /// Units whose content is to be reported as shown with the next frame.
    pub(super) awaiting: Vec<u64>,
    /// Since when a frame callback is unanswered.
    asked: Option<Time>,
    visible: bool,
    /// What it is a subsurface of, at the compositor.
    pub(super) parent: Option<WireId>,
    /// A subsurface of it went or moved: with the next commit, all of it must be drawn again.
    pub(super) uncovered: bool,
    /// How many updates in succession could not be painted; until a whole content comes, nothing can.
    pub(super) refused: u32,
    /// The content was dropped, and has not come again. What the compositor was given of it stays on the screen.
    pub(super) lost: Option<Lost>,
    /// Grows with each content that is painted, over all surfaces.
    pub(super) painted: u64,
    /// What it shows while a worker has its content.
    lent: Option<Shown>,
    /// What a worker has painted for the next unit.
    pub(super) ahead: Option<Painted>,
    /// What came of keys that go to it and of what they were predicted to look like.
    pub(super) predicted: PredictFigures,
}

/// What a surface shows whose content is not here.
#[derive(Debug, Clone, Copy)]
struct Shown {
    is_mapped: bool,
    pixels: Option<Size>,
}

/// How far a content that was dropped is from coming again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// It is not needed before the surface is seen again, or changes.
    Dropped,
    /// The app side was asked for the whole of it.
    Asked,
}

/// How a surface's pixels become its size, as the program has said it, and the compositor what it would like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// Pixels per unit.
    pub(super) scale: i32,
    /// How it is turned and mirrored, `wl_output.transform`.
    pub(super) transform: i32,
    /// The size itself, where there is a viewport.
    pub(super) destination: Option<[i32; 2]>,
    /// Only a part of the pixels is shown.
    pub(super) is_cropped: bool,
    /// `wp_fractional_scale_v1.preferred_scale`: pixels for 120 units.
    pub(super) preferred: Option<u32>,
}

impl Default for Extent {
    fn default() -> Self {
        Self { scale: 1, transform: 0, destination: None, is_cropped: false, preferred: None }
    }
}

impl Extent {
    /// How large a surface with so many pixels is.
    pub(super) fn of(self, [width, height]: [i32; 2]) -> [i32; 2] {
        // Those by a quarter have odd numbers.
        let pixels = if self.transform % 2 != 0 { [height, width] } else { [width, height] };
        self.destination.unwrap_or_else(|| pixels.map(|side| side / self.scale.max(1)))
    }

    /// How many pixels are how many units of the surface, if all of them are shown, upright and alike.
    pub(super) fn ratio(self, pixels: Size) -> Option<Ratio> {
        if self.transform != 0 || self.is_cropped {
            return None;
        }
        let pixels = [pixels.width(), pixels.height()];
        let Some(units) = self.destination else {
            let scale = u32::try_from(self.scale).ok()?;
            let ratio = Ratio::new(scale, 1)?;
            return pixels.iter().all(|side| side % scale == 0).then_some(ratio);
        };
        let [across, down] = [0, 1].map(|side| Ratio::new(pixels[side], u32::try_from(units[side]).ok()?));
        let is_preferred = |preferred: &u32| {
            let both = pixels.iter().zip(units);
            both.map(|(pixels, units)| {
                (120 * u64::from(*pixels), u64::from(*preferred) * u64::from(units.cast_unsigned()))
            })
            .all(|(drawn, meant)| drawn.abs_diff(meant) < 120)
        };
        // A program rounds the sides of its window to whole pixels.
        let preferred = || Ratio::new(self.preferred.filter(is_preferred)?, 120);
        across.filter(|_| across == down).or_else(preferred)
    }
}

impl Surface {
    pub(super) fn new(version: u32) -> Self {
        Self {
            version,
            content: None,
            extent: Extent::default(),
            videos: Videos::default(),
            pool: Pool::default(),
            last_unit: 0,
            last_told: 0,
            will_have_content: false,
            awaiting: Vec::new(),
            asked: None,
            visible: true,
            parent: None,
            uncovered: false,
            refused: 0,
            lost: None,
            painted: 0,
            lent: None,
            ahead: None,
            predicted: PredictFigures::default(),
        }
    }

    /// The content, to be painted on; it [comes back](Self::come_back) before anything else is done to it.
    pub(super) fn lend(&mut self) -> Ground {
        self.lent = Some(Shown { is_mapped: self.is_mapped(), pixels: self.pixels() });
        self.take_ground()
    }

    fn take_ground(&mut self) -> Ground {
        Ground { content: self.content.take(), videos: std::mem::take(&mut self.videos) }
    }

    /// The content is back, painted.
    pub(super) fn come_back(&mut self, ground: Ground, painted: &Painted) {
        self.lent = None;
        Ground { content: self.content, videos: self.videos } = ground;
        if painted.is_new {
            self.pool.reset();
            self.lost = None;
        } else {
            self.pool.changed(&painted.changed);
        }
    }

    /// The size of its content, wherever that is.
    pub(super) fn pixels(&self) -> Option<Size> {
        self.content.as_ref().map(Content::size).or(self.lent.and_then(|shown| shown.pixels))
    }

    /// Whether a frame callback should go with the next commit; it counts as sent.
    pub(super) fn ask_frame(&mut self, now: Time) -> bool {
        let ask = self.asked.is_none() && self.is_mapped();
        if ask {
            self.asked = Some(now);
        }
        ask
    }

    /// The compositor has answered a frame callback. Returns whether that makes the surface visible again.
    pub(super) fn on_frame(&mut self) -> bool {
        self.asked = None;
        !std::mem::replace(&mut self.visible, true)
    }

    /// When the surface will count as hidden, unless a frame comes before.
    pub(super) fn hidden_at(&self) -> Option<Time> {
        self.asked.filter(|_| self.visible).map(|asked| asked + HIDDEN_AFTER)
    }

    /// Whether the surface counts as hidden from now on.
    pub(super) fn hide_if_due(&mut self, now: Time) -> bool {
        let due = self.hidden_at().is_some_and(|at| at <= now);
        if due {
            self.visible = false;
        }
        due
    }

    /// Whether the compositor shows it, as far as is known.
    pub(super) fn is_visible(&self) -> bool {
        self.visible
    }

    /// What it was to show next was given up: the whole content is to be had again.
    pub(super) fn lose(&mut self) {
        (self.content, self.lost) = (None, Some(Lost::Dropped));
        self.videos.clear();
    }

    /// Whether there is something to be seen of it.
    pub(super) fn is_mapped(&self) -> bool {
        self.content.is_some() || self.lost.is_some() || self.lent.is_some_and(|shown| shown.is_mapped)
    }

    /// Whether the app side is to be asked for the whole content: it was dropped, and is needed now. It counts as
    /// asked.
    pub(super) fn ask_again(&mut self) -> bool {
        let ask = self.lost == Some(Lost::Dropped);
        if ask {
            self.lost = Some(Lost::Asked);
        }
        ask
    }

    /// Drops what can be had again of a surface that shows something. Returns the buffers that are of no use.
    pub(super) fn drop_content(&mut self) -> Vec<u32> {
        self.lost = self.lost.or(Some(Lost::Dropped));
        self.content = None;
        self.videos.clear();
        self.pool.clear_free()
    }

    /// It has no content any more; gives what it had.
    pub(super) fn unmap(&mut self) -> Ground {
        self.lost = None;
        self.pool.reset();
        self.asked = None;
        self.take_ground()
    }

    /// Bytes of pixels that are kept of it.
    pub(super) fn content_bytes(&self) -> usize {
        self.videos.bytes() + self.content.as_ref().map_or(0, |content| content.pixels().len())
    }
}

/// Memory for the contents of all surfaces of a program. When it is used up, what was painted longest ago is dropped,
/// hidden surfaces first: the compositor has its own copy, and the app side tells the whole content again when it is
/// needed.
#[derive(Debug)]
pub(super) struct Memory {
    most: usize,
    /// Contents that were painted.
    painted: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self { most: MAX_CONTENT_BYTES, painted: 0 }
    }
}

impl Memory {
    /// The content of a surface is the last to be dropped.
    pub(super) fn touch(&mut self, surface: &mut Surface) {
        self.painted += 1;
        surface.painted = self.painted;
    }

    /// The content of `latest` has just been painted: makes room for it among the others. Returns the buffers that are
    /// of no use any more.
    pub(super) fn make_room(
        &mut self,
        latest: &mut Surface,
        others: &mut HashMap<WireId, Surface>,
    ) -> Vec<u32> {
        self.touch(latest);
        let mut bytes: usize = others.values().chain([&*latest]).map(Surface::content_bytes).sum();
        let mut useless = Vec::new();
        while bytes > self.most {
            let kept = others.values_mut().filter(|surface| surface.content_bytes() > 0);
            let Some(oldest) = kept.min_by_key(|surface| (surface.visible, surface.painted)) else { break };
            bytes -= oldest.content_bytes();
            useless.extend(oldest.drop_content());
        }
        useless
    }

    /// Has room for so many bytes only.
    #[cfg(test)]
    pub(super) fn limit(&mut self, most: usize) {
        self.most = most;
    }
}

/// Bytes of pixels that are kept of the surfaces of one program: 32 screens of 3840 × 2160.
const MAX_CONTENT_BYTES: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(pixels: (u32, u32), units: Option<[i32; 2]>, preferred: Option<u32>) -> Option<(u32, u32)> {
        let extent = Extent { destination: units, preferred, ..Extent::default() };
        let ratio = extent.ratio(Size::new(pixels.0, pixels.1).expect("a size"))?;
        Some((ratio.pixels, ratio.units))
    }

    #[test]
    fn a_viewport_tells_the_scale_or_agrees_with_what_the_compositor_would_like() {
        assert_eq!(drawn((300, 150), Some([200, 100]), None), Some((3, 2)));
        assert_eq!(drawn((400, 200), Some([200, 100]), None), Some((2, 1)));
        assert_eq!(drawn((300, 150), Some([300, 150]), Some(180)), Some((1, 1)), "what is drawn counts");
        // 151.5 and 76.5 pixels are 152 and 77.
        assert_eq!(drawn((152, 77), Some([101, 51]), None), None);
        assert_eq!(drawn((152, 77), Some([101, 51]), Some(180)), Some((3, 2)));
        assert_eq!(drawn((152, 77), Some([101, 51]), Some(150)), None);
        assert_eq!(drawn((300, 100), Some([200, 100]), Some(180)), None, "not alike in both directions");
        assert_eq!(drawn((300, 150), Some([0, -1]), Some(u32::MAX)), None);
    }

    #[test]
    fn pixels_that_are_turned_or_cropped_or_no_whole_units_have_none() {
        let size = Size::new(300, 150).expect("a size");
        let extent =
            |scale, transform, is_cropped| Extent { scale, transform, is_cropped, ..Extent::default() };
        assert_eq!(extent(3, 0, false).ratio(size), Ratio::new(3, 1));
        for extent in [extent(1, 1, false), extent(1, 0, true), extent(4, 0, false), extent(0, 0, false)] {
            assert_eq!(extent.ratio(size), None, "{extent:?}");
        }
    }
}
