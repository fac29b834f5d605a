//! The colours that letters are written in, and how a letter looks in another one.
//!
//! A pixel of a letter is its paper with some of its ink; how much stays the same in other colours.
//!
//! The one invariant: the same colour on another paper is another ink.

use crate::plane::{Plane, channels, distance, mixed};

/// The strongest colours in which letters were seen on each paper: thin letters reach none of them.
#[derive(Default)]
pub(crate) struct Inks(Vec<(u32, u32)>);

impl Inks {
    /// A letter had this ink on that paper.
    pub(crate) fn saw(&mut self, ink: u32, paper: u32) {
        match self.0.iter_mut().find(|(known, on)| *on == paper && is_same_ink((*known, *on), (ink, paper))) {
            Some(known) if distance(ink, paper) > distance(known.0, paper) => known.0 = ink,
            Some(_) => {}
            None => {
                self.0.truncate(INKS - 1);
                self.0.insert(0, (ink, paper));
            }
        }
    }

    /// The strongest form of an ink.
    pub(crate) fn fullest(&self, ink: u32, paper: u32) -> u32 {
        let same = self.0.iter().find(|(known, on)| *on == paper && is_same_ink((*known, *on), (ink, paper)));
        let stronger = same.filter(|(known, _)| distance(*known, paper) > distance(ink, paper));
        stronger.map_or(ink, |(known, _)| *known)
    }
}

/// The colour farthest from the paper; `None` where only paper is.
pub(crate) fn ink_of(picture: &Plane, paper: u32) -> Option<u32> {
    let far = picture.pixels().iter().max_by_key(|pixel| distance(**pixel, paper))?;
    (*far != paper).then_some(*far)
}

/// Whether two inks, each on its paper, lead into the same direction and are about as strong.
pub(crate) fn is_same_ink((a, a_paper): (u32, u32), (b, b_paper): (u32, u32)) -> bool {
    let from = |ink: u32, paper: u32| {
        let (ink, paper) = (channels(ink), channels(paper));
        [0, 1, 2].map(|at| (ink[at] - paper[at]) as f32)
    };
    let (a, b) = (from(a, a_paper), from(b, b_paper));
    let product = |a: [f32; 3], b: [f32; 3]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let (one, other) = (product(a, a).sqrt(), product(b, b).sqrt());
    if one == 0.0 || other == 0.0 {
        return false;
    }
    product(a, b) / (one * other) > 0.998 && (0.6..1.7).contains(&(one / other))
}

/// Rewrites pixels from one paper and ink to another.
pub(crate) struct Blend {
    from: [i32; 3],
    span: [i32; 3],
    /// The channel in which paper and ink differ most, where one of them differs little.
    main: Option<usize>,
    to: [i32; 3],
    reach: [i32; 3],
}

impl Blend {
    pub(crate) fn new((from, from_ink): (u32, u32), (to, to_ink): (u32, u32)) -> Self {
        let difference = |ink: u32, paper: u32| {
            let (ink, paper) = (channels(ink), channels(paper));
            [0, 1, 2].map(|at| ink[at] - paper[at])
        };
        let span = difference(from_ink, from);
        let strongest = (0..3).max_by_key(|at| span[*at].abs()).unwrap_or(0);
        let main = span.iter().any(|part| part.abs() < TELLING).then_some(strongest);
        Self { from: channels(from), span, main, to: channels(to), reach: difference(to_ink, to) }
    }

    /// The pixel there.
    pub(crate) fn of(&self, pixel: u32) -> u32 {
        let pixel = channels(pixel);
        mixed([0, 1, 2].map(|at| {
            let by = self.main.unwrap_or(at);
            let cover = (pixel[by] - self.from[by]) as f32 / self.span[by].clamp(-255, 255) as f32;
            let cover = if cover.is_finite() { cover } else { 0.0 };
            (self.to[at] as f32 + cover * self.reach[at] as f32).round() as i32
        }))
    }
}

/// The least difference of a channel by which the share of ink can be told.
const TELLING: i32 = 24;

/// Inks that are told apart.
const INKS: usize = 12;
