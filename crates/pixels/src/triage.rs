//! What is sent exactly, and what lossily for now.
//!
//! Text is never lossy but in a preview, which it leaves first. Costs are predicted from classes; nothing is encoded
//! here.
//!
//! The one invariant: the parts cover the rectangles that they are made of, each pixel once.

use std::time::Duration;

use crate::chunk;
use crate::classify::{Class, Classifier};
use crate::content::Content;
use crate::fidelity::{Fidelity, Grade, Spot};
use crate::geometry::{Rect, Size};
use crate::jpeg;
use crate::palette::MAX_COLOURS;
use crate::video::Begun;

/// What an update may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Bytes that are there soon enough; content that is predicted to need more is lossy at first.
    pub bytes: u64,
    /// Quality of lossy pictures, 1 to 100.
    pub quality: u8,
    /// The time, since any moment that stays the same.
    pub now: Duration,
}

/// How rectangles are sent.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) exact: Vec<Rect>,
    pub(crate) lossy: Vec<Picture>,
    /// What is exact as a whole; its cells are in `exact` too.
    whole: Vec<Rect>,
    /// Frames of videos; no other part is where they are.
    pub(crate) frames: Vec<Begun>,
}

/// A rectangle that is sent as a lossy picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) rect: Rect,
    pub(crate) grade: Grade,
    pub(crate) fourth: u8,
    pub(crate) quality: u8,
}

impl Parts {
    /// Everything as it is, cell by cell.
    pub(crate) fn exact(rects: &[Rect]) -> Self {
        let exact = rects.iter().copied().flat_map(chunk::cells).collect();
        Self { exact, whole: rects.to_vec(), ..Self::default() }
    }

    /// The parts of new content.
    pub(crate) fn of(
        content: &Content,
        rects: &[Rect],
        classifier: &mut Classifier,
        allowance: &Allowance,
    ) -> Self {
        let area: u64 = rects.iter().map(|rect| rect.area()).sum();
        if jpeg::order(content.format()).is_none() || area <= allowance.bytes {
            return Self::exact(rects);
        }
        // Of what is far too much, no more need be known.
        let most = allowance.bytes.saturating_mul(PREVIEW_ABOVE);
        let (mut kinds, mut cost) = (Vec::new(), 0);
        for cell in rects.iter().copied().flat_map(chunk::cells) {
            let kind = Kind::of(content, cell, classifier);
            cost += kind.cost(cell);
            kinds.push(kind);
            if cost > most {
                return Self::previews(content, rects, classifier, allowance);
            }
        }
        if cost <= allowance.bytes {
            return Self::exact(rects);
        }
        let (mut parts, mut kinds) = (Self::default(), kinds.into_iter());
        for rect in rects {
            let own = kinds.by_ref().take(chunk::cells(*rect).count());
            parts.at_once(content, *rect, own, allowance.quality);
        }
        parts
    }

    /// The parts of content that is far too much: small rectangles as ever, of large ones a preview.
    fn previews(
        content: &Content,
        rects: &[Rect],
        classifier: &mut Classifier,
        allowance: &Allowance,
    ) -> Self {
        let mut parts = Self::default();
        for rect in rects {
            if rect.area() >= LEAST_PREVIEW {
                blocks(*rect, PREVIEW_SIDE)
                    .for_each(|block| parts.preview(content, block, allowance.quality));
                continue;
            }
            let kinds = chunk::cells(*rect).map(|cell| Kind::of(content, cell, classifier));
            parts.at_once(content, *rect, kinds, allowance.quality);
        }
        parts
    }

    /// Adds a rectangle whose cells are of these kinds: text as it is, pictures lossily.
    fn at_once(&mut self, content: &Content, rect: Rect, kinds: impl Iterator<Item = Kind>, quality: u8) {
        let before = self.lossy.len();
        for (cell, kind) in chunk::cells(rect).zip(kinds) {
            match kind {
                Kind::Picture => self.add(content, cell, Grade::Detail, quality),
                Kind::Plain(_) => self.exact.push(cell),
            }
        }
        if self.lossy.len() == before {
            self.whole.push(rect);
        }
    }

    /// Adds a preview; what of it is transparent stays exact.
    fn preview(&mut self, content: &Content, block: Rect, quality: u8) {
        match jpeg::fourth(content, block) {
            Some(_) => self.add(content, block, Grade::Preview, quality),
            None => chunk::cells(block).for_each(|cell| self.add(content, cell, Grade::Preview, quality)),
        }
    }

    /// What tells more of what is there by previews only. Text and plain colours first, exactly, what is near a point
    /// before the rest; then pictures that have not changed for a moment. Notes which are pictures.
    pub(crate) fn better(
        content: &Content,
        fidelity: &mut Fidelity,
        classifier: &mut Classifier,
        allowance: &Allowance,
        near: Option<(u32, u32)>,
    ) -> Self {
        let spots: Vec<Spot> = fidelity.coarse(content.size()).collect();
        let mut unknown: Vec<Spot> = spots.iter().filter(|spot| !spot.picture).copied().collect();
        if let Some(near) = near {
            unknown.sort_by_key(|spot| distance(spot.rect, near));
        }
        let mut parts = Self::default();
        let mut cost = 0;
        for spot in unknown {
            match Kind::of(content, spot.rect, classifier) {
                Kind::Picture => fidelity.is_picture(spot),
                plain @ Kind::Plain(_) => {
                    cost += plain.cost(spot.rect);
                    parts.exact.push(spot.rect);
                }
            }
            if cost >= allowance.bytes {
                break;
            }
        }
        if !parts.exact.is_empty() {
            return parts;
        }
        let calm = fidelity.calm(CALM);
        for spot in spots.iter().filter(|spot| spot.since + calm <= allowance.now) {
            parts.add(content, spot.rect, Grade::Detail, allowance.quality);
            cost += spot.rect.area() / DETAIL_PIXELS_A_BYTE;
            if cost >= allowance.bytes {
                break;
            }
        }
        parts
    }

    /// What makes lossy pixels exact that have not changed for a moment, about as much as is allowed. `rate` is what
    /// such pixels cost, in thousandths of a byte.
    pub(crate) fn rest(content: &Content, fidelity: &Fidelity, rate: u64, allowance: &Allowance) -> Self {
        let mut parts = Self::default();
        let mut pixels = allowance.bytes.saturating_mul(1000) / rate.max(LEAST_RATE);
        let rest = fidelity.calm(REST);
        for spot in fidelity.detailed(content.size()).filter(|spot| spot.since + rest <= allowance.now) {
            let Rect { x, y, width, height } = spot.rect;
            let rows = (pixels / u64::from(width)).max(LEAST_ROWS).min(u64::from(height));
            let rect = Rect::new(x, y, width, rows as u32);
            parts.exact.push(rect);
            pixels = pixels.saturating_sub(rect.area());
            if pixels == 0 || rect.height < height {
                break;
            }
        }
        parts
    }

    /// Adds a rectangle as a picture, to the one before it if it goes on where that ends; exactly if no picture may
    /// stand for it.
    fn add(&mut self, content: &Content, rect: Rect, grade: Grade, quality: u8) {
        let fourth = jpeg::fourth(content, rect).filter(|_| rect.area() >= LEAST_PICTURE);
        let Some(fourth) = fourth else { return self.exact.push(rect) };
        if let Some(last) = self.lossy.last_mut()
            && (last.grade, last.fourth) == (grade, fourth)
            && beside(last.rect, rect)
            && last.rect.area() + rect.area() <= MOST_PIXELS
        {
            last.rect = last.rect.bounding(rect);
            return;
        }
        self.lossy.push(Picture { rect, grade, fourth, quality });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.lossy.is_empty()
    }

    /// How well the display side knows what it shows after these.
    pub(crate) fn note(&self, size: Size, fidelity: &mut Fidelity, now: Duration) {
        self.exact.iter().chain(&self.whole).for_each(|rect| fidelity.exact(size, *rect));
        self.lossy.iter().for_each(|picture| fidelity.lost(size, picture.rect, picture.grade, now));
        self.frames.iter().for_each(|frame| fidelity.lost(size, frame.video.rect, Grade::Detail, now));
        fidelity.tidy();
    }
}

/// Whether a rectangle is a picture, however small.
pub(crate) fn is_picture(content: &Content, rect: Rect, classifier: &mut Classifier) -> bool {
    classifier.clear();
    matches!(classifier.classify(content, rect).class, Class::Picture)
}

/// How many pixels of pictures are exact at once.
pub(crate) fn affordable(allowance: &Allowance) -> u64 {
    allowance.bytes.saturating_mul(PICTURE_BYTES.1) / PICTURE_BYTES.0
}

/// What a rectangle shows.
enum Kind {
    /// One colour, or few: its bytes.
    Plain(u64),
    Picture,
}

/// The square of how far a point is from a rectangle.
fn distance(rect: Rect, (x, y): (u32, u32)) -> u64 {
    let beyond = |at: u32, from: u32, to: u32| u64::from(from.saturating_sub(at).max(at.saturating_sub(to)));
    beyond(x, rect.x, rect.right()).pow(2) + beyond(y, rect.y, rect.bottom()).pow(2)
}

impl Kind {
    fn of(content: &Content, rect: Rect, classifier: &mut Classifier) -> Self {
        classifier.clear();
        match classifier.classify(content, rect).class {
            Class::Solid(_) => Self::Plain(SOLID_BYTES),
            Class::Palette { .. } => {
                Self::Plain(classifier.predicted * TEXT_SHARE.0 / TEXT_SHARE.1 + SOLID_BYTES)
            }
            // Too small to matter, or to gain.
            Class::Picture if rect.area() < LEAST_PICTURE => Self::Plain(rect.area()),
            Class::Picture => Self::Picture,
        }
    }

    fn cost(&self, rect: Rect) -> u64 {
        match self {
            Self::Plain(bytes) => *bytes,
            Self::Picture => rect.area() * PICTURE_BYTES.0 / PICTURE_BYTES.1,
        }
    }
}

/// Whether two rectangles are one.
fn beside(one: Rect, other: Rect) -> bool {
    let across = (one.y, one.height) == (other.y, other.height) && one.right() == other.x;
    let down = (one.x, one.width) == (other.x, other.width) && one.bottom() == other.y;
    across || down
}

/// A rectangle in squares of this side.
fn blocks(rect: Rect, side: u32) -> impl Iterator<Item = Rect> {
    (rect.y..rect.bottom()).step_by(side as usize).flat_map(move |y| {
        (rect.x..rect.right())
            .step_by(side as usize)
            .map(move |x| Rect::between(x, y, (x + side).min(rect.right()), (y + side).min(rect.bottom())))
    })
}

/// Previews come first when a change costs more than so many times what is allowed.
const PREVIEW_ABOVE: u64 = 6;

/// Side of the largest preview.
const PREVIEW_SIDE: u32 = 2048;

/// Pixels below which a rectangle is not worth the head of a preview's image.
const LEAST_PREVIEW: u64 = 16 << 10;

/// Pixels up to which neighbouring pictures become one: the images of a chunk may have twice as many.
const MOST_PIXELS: u64 = 1 << 18;

/// Pixels below which a picture is not worth the head of an image.
const LEAST_PICTURE: u64 = 4 * MAX_COLOURS as u64;

/// How long pixels must not have changed before a preview becomes a picture, and before lossy ones become exact: what
/// changes all the time would be in vain.
pub(crate) const CALM: Duration = Duration::from_millis(50);
pub(crate) const REST: Duration = Duration::from_millis(80);

/// Thousandths of a byte that a pixel is taken to cost at least: what comes next may be less smooth.
const LEAST_RATE: u64 = 500;

/// Rows that are sent however little is allowed.
const LEAST_ROWS: u64 = 8;

/// Predicted costs: what compression leaves of text and widgets (three fifths), photographs (9 bytes for 10 pixels),
/// photographs at middle quality.
const TEXT_SHARE: (u64, u64) = (3, 5);
const PICTURE_BYTES: (u64, u64) = (9, 10);
const DETAIL_PIXELS_A_BYTE: u64 = 8;
const SOLID_BYTES: u64 = 8;
