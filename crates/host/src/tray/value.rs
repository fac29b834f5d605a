//! A value that a program tells of its icon or its menu, as far as it matters.
//!
//! What else it may be is passed over without being kept. Invariant: a picture that is kept fits.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use wayferry_proto::TrayPicture;
use wayferry_proto::tray::MAX_SIDE;
use zbus::wire::{Signature, Type};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(i32),
    Flag(bool),
    /// A text, or the path of an object.
    Word(&'a str),
    Picture(TrayPicture),
    /// The two lines of a tip.
    Tip(&'a str, &'a str),
    Other,
}

impl<'a> Value<'a> {
    pub(super) fn word(&self) -> &'a str {
        if let Self::Word(word) = self { word } else { "" }
    }
}

impl Type for Value<'_> {
    const SIGNATURE: &'static Signature = &Signature::Variant;
}

impl<'de: 'a, 'a> Deserialize<'de> for Value<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a variant")
    }

    /// A variant is its signature and its value.
    fn visit_seq<A: SeqAccess<'de>>(self, mut variant: A) -> Result<Value<'de>, A::Error> {
        let signature = variant.next_element::<&str>()?.unwrap_or_default();
        let value = match signature {
            "i" => variant.next_element()?.map(Value::Number),
            "b" => variant.next_element()?.map(Value::Flag),
            "s" | "o" => variant.next_element()?.map(Value::Word),
            "a(iiay)" => variant.next_element::<Best>()?.and_then(|best| best.0).map(Value::Picture),
            "(sa(iiay)ss)" => {
                let tip = variant.next_element::<(IgnoredAny, IgnoredAny, &str, &str)>()?;
                tip.map(|(_, _, title, text)| Value::Tip(title, text))
            }
            _ => variant.next_element::<IgnoredAny>()?.map(|_| Value::Other),
        };
        Ok(value.unwrap_or(Value::Other))
    }
}

/// Of pictures in several sizes the one that suits a tray best.
struct Best(Option<TrayPicture>);

impl<'de> Deserialize<'de> for Best {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(BestVisitor)
    }
}

struct BestVisitor;

impl<'de> Visitor<'de> for BestVisitor {
    type Value = Best;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pictures")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pictures: A) -> Result<Best, A::Error> {
        let mut best: Option<Raw<'de>> = None;
        while let Some((width, height, argb)) = pictures.next_element::<(i32, i32, &[u8])>()? {
            let raw = Raw::new(width, height, argb);
            best = match (best, raw) {
                (Some(best), Some(raw)) => Some(if raw.is_better_than(&best) { raw } else { best }),
                (best, raw) => best.or(raw),
            };
        }
        Ok(Best(best.and_then(|raw| raw.fit())))
    }
}

/// A picture as a program gives it.
pub(super) struct Raw<'a> {
    width: usize,
    height: usize,
    argb: &'a [u8],
}

impl<'a> Raw<'a> {
    /// `None` if it is none, or has other bytes than its size says.
    pub(super) fn new(width: i32, height: i32, argb: &'a [u8]) -> Option<Self> {
        let side = |side: i32| usize::try_from(side).ok().filter(|side| (1..=MAX_RAW_SIDE).contains(side));
        let (width, height) = (side(width)?, side(height)?);
        (argb.len() == width * height * 4).then_some(Self { width, height, argb })
    }

    /// The largest that fits is best, and else the smallest.
    fn is_better_than(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.width.max(self.height), other.width.max(other.height));
        match (ours <= MAX_SIDE, theirs <= MAX_SIDE) {
            (true, true) => ours > theirs,
            (false, false) => ours < theirs,
            (fits, _) => fits,
        }
    }

    /// Made smaller by a whole number, if it must be.
    pub(super) fn fit(&self) -> Option<TrayPicture> {
        let by = self.width.max(self.height).div_ceil(MAX_SIDE);
        let (width, height) = (self.width.div_ceil(by), self.height.div_ceil(by));
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let argb = places.flat_map(|(x, y)| self.mean(x * by, y * by, by)).collect();
        TrayPicture::new(u8::try_from(width).ok()?, u8::try_from(height).ok()?, argb)
    }

    /// Of the pixels of a square. What is not seen has no colour.
    fn mean(&self, left: usize, top: usize, side: usize) -> [u8; 4] {
        let (mut sums, mut count) = ([0u64; 4], 0);
        for y in top..(top + side).min(self.height) {
            for x in left..(left + side).min(self.width) {
                let at = (y * self.width + x) * 4;
                let pixel = &self.argb[at..at + 4];
                let alpha = u64::from(pixel[0]);
                sums[0] += alpha;
                sums.iter_mut().zip(pixel).skip(1).for_each(|(sum, part)| *sum += alpha * u64::from(*part));
                count += 1;
            }
        }
        let byte =
            |sum: u64, count: u64| u8::try_from(sum.checked_div(count).unwrap_or(0)).unwrap_or(u8::MAX);
        let [alpha, red, green, blue] = sums;
        [byte(alpha, count), byte(red, alpha), byte(green, alpha), byte(blue, alpha)]
    }
}

/// Widest and highest picture that is looked at, in pixels.
pub(super) const MAX_RAW_SIDE: usize = 1024;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use zbus::Variant;
    use zbus::wire::serialized::Context;
    use zbus::wire::{LE, to_bytes};

    use super::*;

    fn flat(width: i32, height: i32, pixel: [u8; 4]) -> (i32, i32, Vec<u8>) {
        (width, height, pixel.repeat((width * height) as usize))
    }

    /// As it would come from a program.
    fn told(variant: Variant<'static>) -> Option<TrayPicture> {
        let words = HashMap::from([("it", variant)]);
        let bytes = to_bytes(Context::new(LE, 0), &words).expect("it can be written");
        let told: HashMap<&str, Value<'_>> = bytes.deserialize().expect("it can be read").0;
        if let Value::Picture(picture) = &told["it"] { Some(picture.clone()) } else { None }
    }

    #[test]
    fn the_largest_picture_that_fits_is_taken() {
        let sizes = [16, 48, 22, 256, 128].map(|side| flat(side, side, [255, 1, 2, 3])).to_vec();
        assert_eq!(told(sizes.into()).expect("one").size(), (48, 48));
    }

    #[test]
    fn a_larger_one_is_made_smaller_where_there_is_no_other() {
        let sizes = vec![flat(256, 256, [255, 9, 9, 9]), flat(100, 50, [128, 1, 2, 3])];
        let picture = told(sizes.into()).expect("one");
        assert_eq!((picture.size(), &picture.argb()[..4]), ((50, 25), &[128, 1, 2, 3][..]));
        // The clear half of a square has no say in its colour.
        let pixels = [[255u8, 200, 100, 50], [0, 0, 0, 0]].concat().repeat(64 * 128);
        let picture = told(vec![(128, 128, pixels)].into()).expect("one");
        assert_eq!((picture.size(), &picture.argb()[..4]), ((64, 64), &[127, 200, 100, 50][..]));
    }

    #[test]
    fn what_is_no_picture_is_passed_over() {
        let wrong = vec![(4, 4, vec![0u8; 63]), (-1, 4, vec![]), (0, 0, vec![]), (5000, 1, vec![0; 20_000])];
        assert_eq!(told(wrong.clone().into()), None);
        let right = wrong.into_iter().chain([flat(2, 2, [1; 4])]).collect::<Vec<_>>();
        assert_eq!(told(right.into()).expect("one").size(), (2, 2));
    }
}
