//! What keys drew: the glyphs of a window, and their colours.
//!
//! Glyphs are remembered by key, not by character, in at most [`MAX_GLYPHS`] bytes; beyond that those go that were used
//! longest ago. In a colour in which a glyph was not seen yet, its ink is mixed anew.
//!
//! The one invariant: nothing of a masked field stays.

use std::cmp::Reverse;

use zeroize::{Zeroize, Zeroizing};

use crate::caret::{Caret, Kind};
use crate::ink::{Blend, Inks, ink_of, is_same_ink};
use crate::key::Key;
use crate::pitch::{At, Pitch};
use crate::plane::Plane;
use crate::shape::Shape;

/// The glyphs of a window.
#[derive(Default)]
pub(crate) struct Glyphs {
    /// Each in a place of its own: a vector that grows leaves copies behind.
    #[allow(clippy::vec_box, reason = "what is moved is not overwritten")]
    all: Vec<Box<Glyph>>,
    bytes: usize,
    clock: u64,
    pub(crate) inks: Inks,
}

/// Glyphs of another height, or below another caret, are of another font.
type Face = (usize, Kind);

/// What one key drew once.
struct Glyph {
    face: Face,
    key: Key,
    picture: Packed,
    paper: u32,
    /// The colour farthest from the paper; none in a blank.
    ink: Option<u32>,
    /// The key before, whose letter may reach into this one's place.
    after: Option<Key>,
    uses: u32,
    used: u64,
    /// Where this was drawn: where the pen was least far beyond a column, as far as is known, and where most.
    drawn: (At, At),
    /// It was drawn in an epoch that was confirmed already.
    is_proven: bool,
}

/// Where a glyph is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) paper: u32,
    /// The colour of the letters before, where there are any.
    pub(crate) ink: Option<u32>,
    pub(crate) after: Option<Key>,
    pub(crate) at: At,
}

impl Glyphs {
    /// What `key` is likely to draw, if it has drawn before.
    pub(crate) fn find(&self, caret: &Caret, key: Key, place: Place) -> Option<Plane> {
        let of_key: Vec<&Glyph> =
            self.all.iter().map(Box::as_ref).filter(|glyph| glyph.is_of(caret, key)).collect();
        let fits = |glyph: &Glyph| glyph.paper == place.paper && glyph.has_ink(place);
        let is_after = |glyph: &Glyph| glyph.after.is_some() && glyph.after == place.after;
        let pitch = &caret.field.pitch;
        let rank = |glyph: &&&Glyph| {
            let far = (glyph.misses(pitch, place.at).abs() * PHASES).round() as u32;
            (fits(glyph), Reverse(far), is_after(glyph), glyph.uses, glyph.used)
        };
        let glyph = *of_key.iter().max_by_key(rank)?;
        if caret.field.is_proportional() && !is_after(glyph) && !is_sole(&of_key, key, place) {
            return None;
        }
        let picture = glyph.picture.unpacked();
        let misses = glyph.misses(pitch, place.at);
        let picture = if misses == 0.0 { picture } else { picture.shifted(misses, glyph.paper) };
        Some(if fits(glyph) { picture } else { self.inked(glyph, &picture, place) })
    }

    /// The glyph in another colour: how much ink each pixel has stays the same.
    fn inked(&self, glyph: &Glyph, picture: &Plane, place: Place) -> Plane {
        let Some(ink) = glyph.ink else {
            return Plane::filled(picture.width(), picture.height(), place.paper);
        };
        let old = self.inks.fullest(ink, glyph.paper);
        let new = place.ink.map_or(old, |ink| self.inks.fullest(ink, place.paper));
        let blend = Blend::new((glyph.paper, old), (place.paper, new));
        let mut pixels = Zeroizing::new(Vec::with_capacity(picture.pixels().len()));
        pixels.extend(picture.pixels().iter().map(|pixel| blend.of(*pixel)));
        Plane::new(picture.width(), pixels)
    }

    /// Keeps what `key` drew, proven from now on if `proves`; says whether it was before.
    pub(crate) fn learn(
        &mut self,
        caret: &Caret,
        key: Key,
        picture: &Plane,
        place: Place,
        proves: bool,
    ) -> bool {
        self.clock += 1;
        let used = self.clock;
        let is_own = |glyph: &&mut Box<Glyph>| glyph.is_of(caret, key) && glyph.picture.is(picture);
        if let Some(known) = self.all.iter_mut().find(is_own) {
            (known.uses, known.used, known.after) = (known.uses.saturating_add(1), used, place.after);
            known.drawn_at(&caret.field.pitch, place.at);
            let was_proven = known.is_proven;
            known.is_proven |= proves;
            return was_proven;
        }
        let Some(packed) = Packed::new(picture) else { return false };
        if self.all.iter().filter(|glyph| glyph.is_of(caret, key)).count() == VARIANTS {
            self.forget_oldest(|glyph| glyph.is_of(caret, key));
        }
        self.bytes += packed.bytes();
        let (paper, ink, after) = (place.paper, ink_of(picture, place.paper), place.after);
        let drawn = (place.at, place.at);
        let (face, uses, is_proven) = ((caret.height, caret.kind), 1, proves);
        let glyph = Glyph { face, key, picture: packed, paper, ink, after, uses, used, drawn, is_proven };
        self.all.push(Box::new(glyph));
        while self.bytes > MAX_GLYPHS {
            self.forget_oldest(|_| true);
        }
        false
    }

    /// Forgets the one of these that was used longest ago.
    fn forget_oldest(&mut self, is_one: impl Fn(&Glyph) -> bool) {
        let ages = self.all.iter().enumerate().filter(|(_, glyph)| is_one(glyph));
        if let Some((oldest, _)) = ages.min_by_key(|(_, glyph)| glyph.used) {
            self.bytes -= self.all.swap_remove(oldest).picture.bytes();
        }
    }

    /// Forgets what looks like a mask.
    pub(crate) fn forget_like(&mut self, mask: &Shape) {
        self.all.retain(|glyph| {
            let picture = glyph.picture.unpacked();
            let is_mask = Shape::of(&picture, 0..picture.width()).is_some_and(|shape| shape.is_like(mask));
            self.bytes -= if is_mask { glyph.picture.bytes() } else { 0 };
            !is_mask
        });
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Whether `key` draws about the same after letters that it was not seen after. Letters are moved towards their
/// neighbours, capitals most of all, and reach into the blank after them.
fn is_sole(glyphs: &[&Glyph], key: Key, place: Place) -> bool {
    let widths = || glyphs.iter().map(|glyph| glyph.picture.width);
    let uses = glyphs.iter().map(|glyph| glyph.uses).fold(0, u32::saturating_add);
    let is_unlike = place.after.is_some_and(|after| after.modifiers != key.modifiers);
    match key.is_space() {
        true => glyphs.len() == 1 && uses > 2,
        false => widths().min() == widths().max() && uses > 1 && !is_unlike,
    }
}

impl Drop for Glyph {
    fn drop(&mut self) {
        self.key.zeroize();
        self.after.zeroize();
    }
}

impl Glyph {
    /// Whether `key` drew it, in a font as beside this caret.
    fn is_of(&self, caret: &Caret, key: Key) -> bool {
        self.key == key && self.face == (caret.height, caret.kind)
    }

    /// How far right of where it was drawn it is wanted, by a fraction of a column.
    fn misses(&self, pitch: &Pitch, at: At) -> f32 {
        let (Some(least), Some(most), Some(offset)) =
            (pitch.offset(self.drawn.0), pitch.offset(self.drawn.1), pitch.offset(at))
        else {
            return 0.0;
        };
        offset - offset.clamp(least.min(most), most.max(least))
    }

    /// It was drawn there, too.
    fn drawn_at(&mut self, pitch: &Pitch, at: At) {
        let offset = |at: At| pitch.offset(at);
        match (offset(self.drawn.0), offset(self.drawn.1), offset(at)) {
            (Some(least), _, Some(own)) if own < least => self.drawn.0 = at,
            (_, Some(most), Some(own)) if own > most => self.drawn.1 = at,
            (None, _, Some(_)) | (_, None, Some(_)) => self.drawn = (at, at),
            _ => {}
        }
    }

    /// Whether its ink is what is written with there: the same hue, about as strong.
    fn has_ink(&self, place: Place) -> bool {
        match (self.ink, place.ink) {
            (Some(own), Some(ink)) => is_same_ink((own, self.paper), (ink, place.paper)),
            _ => true,
        }
    }
}

/// A picture of few colours.
struct Packed {
    width: usize,
    colours: Zeroizing<Vec<u32>>,
    indices: Zeroizing<Vec<u8>>,
}

impl Packed {
    /// `None` for one of more colours than letters have.
    fn new(picture: &Plane) -> Option<Self> {
        let mut colours = Zeroizing::new(Vec::with_capacity(COLOURS));
        let mut indices = Zeroizing::new(Vec::with_capacity(picture.pixels().len()));
        for pixel in picture.pixels() {
            let known = colours.iter().position(|colour| colour == pixel);
            if known.is_none() && colours.len() == COLOURS {
                return None;
            }
            indices.push(known.unwrap_or(colours.len()) as u8);
            if known.is_none() {
                colours.push(*pixel);
            }
        }
        // Without the room that was not needed; the larger one is overwritten as it is dropped.
        let colours = Zeroizing::new(colours.to_vec());
        Some(Self { width: picture.width(), colours, indices })
    }

    fn unpacked(&self) -> Plane {
        let mut pixels = Zeroizing::new(Vec::with_capacity(self.indices.len()));
        pixels.extend(self.indices.iter().map(|index| self.colours[usize::from(*index)]));
        Plane::new(self.width, pixels)
    }

    fn is(&self, picture: &Plane) -> bool {
        let pixels = self.indices.iter().map(|index| self.colours[usize::from(*index)]);
        self.width == picture.width() && pixels.eq(picture.pixels().iter().copied())
    }

    /// With what else is kept of it.
    fn bytes(&self) -> usize {
        self.colours.len() * size_of::<u32>() + self.indices.len() + size_of::<Glyph>() + ENTRY
    }
}

/// Bytes of all glyphs of a window.
pub(crate) const MAX_GLYPHS: usize = 96 << 10;

/// Bytes of its place among the others, and of vectors that are larger than what is in them.
const ENTRY: usize = 96;

/// Glyphs of one key: in other colours, beside other letters.
const VARIANTS: usize = 6;

/// Parts of a column in which letters are told apart.
const PHASES: f32 = 8.0;

/// Colours of one glyph.
const COLOURS: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pitch::Along;
    use crate::plane::mixed;

    const PAPER: u32 = 0xff10_2030;
    const INK: u32 = 0xffe0_d0c0;

    fn caret() -> Caret {
        Caret::new(Kind::Block, 8, 16, 0..16, INK)
    }

    fn place(paper: u32, ink: Option<u32>) -> Place {
        Place { paper, ink, after: None, at: At::new(Along::begin(0), 0) }
    }

    /// A figure in three shades, another for each number.
    fn figure(number: u32, paper: u32, ink: u32) -> Plane {
        let mut picture = Plane::filled(8, 16, paper);
        let blend = Blend::new((0xff00_0000, 0xffff_ffff), (paper, ink));
        for bit in (0..24).filter(|bit| number >> bit & 1 == 1) {
            let grey = [255, 170, 85][bit as usize % 3];
            let (x, y) = (bit as usize % 6 + 1, bit as usize / 6 * 3 + 1);
            picture.fill(x..x + 1, y..y + 3, blend.of(mixed([grey; 3])));
        }
        picture
    }

    fn key(number: u32) -> Key {
        Key { code: number as u16, modifiers: (number >> 16) as u8, group: 0 }
    }

    #[test]
    fn ten_thousand_glyphs_stay_within_the_limit() {
        let mut glyphs = Glyphs::default();
        for number in 1..=10_000 {
            let picture = figure(number * 977, PAPER, INK);
            glyphs.learn(&caret(), key(number), &picture, place(PAPER, None), false);
            assert!(glyphs.bytes() <= MAX_GLYPHS);
        }
        assert!(glyphs.find(&caret(), key(1), place(PAPER, None)).is_none(), "the oldest has gone");
        assert!(glyphs.find(&caret(), key(10_000), place(PAPER, None)).is_some());
    }

    #[test]
    fn a_glyph_is_mixed_anew_in_another_colour() {
        let (mut glyphs, number) = (Glyphs::default(), 0x00a5_5a5a);
        glyphs.learn(&caret(), key(1), &figure(number, PAPER, INK), place(PAPER, None), false);
        let (paper, ink) = (0xffff_ffff, 0xff80_1020);
        let found = glyphs.find(&caret(), key(1), place(paper, Some(ink))).expect("it is known");
        assert!(found.difference(&figure(number, paper, ink)) <= 2, "but for rounding");
    }

    #[test]
    fn what_looks_like_a_mask_is_forgotten() {
        let mut glyphs = Glyphs::default();
        let mut learn = |number: u32, bits: u32| {
            glyphs.learn(&caret(), key(number), &figure(bits, PAPER, INK), place(PAPER, None), false);
        };
        (1..4).for_each(|number| learn(number, 0x3f00));
        learn(9, 0xf0_00ff);
        let mask = Shape::of(&figure(0x3f00, PAPER, INK), 0..8).expect("ink");
        glyphs.forget_like(&mask);
        assert!((1..4).all(|at| glyphs.find(&caret(), key(at), place(PAPER, None)).is_none()));
        assert!(glyphs.find(&caret(), key(9), place(PAPER, None)).is_some());
    }
}
