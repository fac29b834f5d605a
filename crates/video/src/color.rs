//! Pixels to brightness and colour differences, and back: BT.709, limited range.
//!
//! Whole rows at a time, in numbers small enough for the compiler to make vectors of. A colour difference stands for
//! 2 × 2 pixels: their mean, and on the way back all four have it.
//!
//! The invariant: a grey goes there and back within one step of 255.

/// Which bytes of a pixel of four are which. The fourth is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Blue, green, red: `xrgb8888` and `argb8888` of `wl_shm`.
    Bgrx,
    /// Red, green, blue: `xbgr8888` and `abgr8888`.
    Rgbx,
}

/// The brightness of each pixel of a row.
pub(crate) fn luma(order: Order, pixels: &[u8], target: &mut [u8]) {
    match order {
        Order::Bgrx => luma_of::<16, 0>(pixels, target),
        Order::Rgbx => luma_of::<0, 16>(pixels, target),
    }
}

/// The colour differences of two rows of pixels. A last column without a neighbour is its own.
pub(crate) fn chroma(order: Order, upper: &[u8], lower: &[u8], u: &mut [u8], v: &mut [u8]) {
    match order {
        Order::Bgrx => chroma_of::<16, 0>(upper, lower, u, v),
        Order::Rgbx => chroma_of::<0, 16>(upper, lower, u, v),
    }
}

/// The pixels of a row, the fourth byte being `fill`: as many as `target` takes.
pub(crate) fn pixels(order: Order, luma: &[u8], u: &[u8], v: &[u8], fill: u8, target: &mut [u8]) {
    match order {
        Order::Bgrx => pixels_of::<16, 0>(luma, u, v, fill, target),
        Order::Rgbx => pixels_of::<0, 16>(luma, u, v, fill, target),
    }
}

fn luma_of<const RED: u32, const BLUE: u32>(pixels: &[u8], target: &mut [u8]) {
    for (pixel, luma) in pixels.as_chunks::<4>().0.iter().zip(target) {
        let pixel = u32::from_le_bytes(*pixel) as i32;
        let (red, green, blue) = (pixel >> RED & 0xff, pixel >> 8 & 0xff, pixel >> BLUE & 0xff);
        let sum = red * LUMA[0] + green * LUMA[1] + blue * LUMA[2];
        *luma = ((sum + (16 << 15) + (1 << 14)) >> 15) as u8;
    }
}

fn chroma_of<const RED: u32, const BLUE: u32>(upper: &[u8], lower: &[u8], u: &mut [u8], v: &mut [u8]) {
    let (upper, last_upper) = upper.as_chunks::<8>();
    let (lower, last_lower) = lower.as_chunks::<8>();
    let mut target = u.iter_mut().zip(v);
    for ((upper, lower), (u, v)) in upper.iter().zip(lower).zip(&mut target) {
        (*u, *v) = chroma_of_four::<RED, BLUE>(upper, lower);
    }
    if let (Ok(upper), Ok(lower)) = (<&[u8; 4]>::try_from(last_upper), <&[u8; 4]>::try_from(last_lower))
        && let Some((u, v)) = target.next()
    {
        let twice = |pixel: &[u8; 4]| std::array::from_fn(|at| pixel[at % 4]);
        (*u, *v) = chroma_of_four::<RED, BLUE>(&twice(upper), &twice(lower));
    }
}

#[inline(always)]
fn chroma_of_four<const RED: u32, const BLUE: u32>(upper: &[u8; 8], lower: &[u8; 8]) -> (u8, u8) {
    let pixel = |bytes: &[u8; 8], at: usize| {
        i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    };
    let four = [pixel(upper, 0), pixel(upper, 4), pixel(lower, 0), pixel(lower, 4)];
    let sum = |shift: u32| four.iter().map(|pixel| pixel >> shift & 0xff).sum::<i32>();
    let (red, green, blue) = (sum(RED), sum(8), sum(BLUE));
    let scale = |sum: i32| ((sum + (128 << 17) + (1 << 16)) >> 17) as u8;
    let [to_u, to_v] = CHROMA;
    (
        scale(red * to_u[0] + green * to_u[1] + blue * to_u[2]),
        scale(red * to_v[0] + green * to_v[1] + blue * to_v[2]),
    )
}

fn pixels_of<const RED: u32, const BLUE: u32>(luma: &[u8], u: &[u8], v: &[u8], fill: u8, target: &mut [u8]) {
    let fill = u32::from(fill) << 24;
    let pixel = |luma: u8, u: u8, v: u8| {
        let luma = high((i16::from(luma) - 16) << 7, BRIGHT) + (1 << 4);
        let (u, v) = ((i16::from(u) - 128) << 8, (i16::from(v) - 128) << 8);
        let channel = |sum: i16| (sum >> 5).clamp(0, 255) as u32;
        let red = channel(luma + high(v, RED_OF_V));
        let green = channel(luma - high(u, GREEN_OF_U) - high(v, GREEN_OF_V));
        let blue = channel(luma + high(u, BLUE_OF_U));
        (red << RED | green << 8 | blue << BLUE | fill).to_le_bytes()
    };
    let (pairs, last) = target.as_chunks_mut::<8>();
    let two = luma.as_chunks::<2>().0.iter();
    for (((pair, luma), u), v) in pairs.iter_mut().zip(two).zip(u).zip(v) {
        let (left, right) = pair.split_at_mut(4);
        left.copy_from_slice(&pixel(luma[0], *u, *v));
        right.copy_from_slice(&pixel(luma[1], *u, *v));
    }
    let at = pairs.len();
    if let (Ok(last), Some(luma), Some(u), Some(v)) =
        (<&mut [u8; 4]>::try_from(last), luma.get(2 * at), u.get(at), v.get(at))
    {
        *last = pixel(*luma, *u, *v);
    }
}

/// The upper half of a product.
fn high(one: i16, other: i16) -> i16 {
    ((i32::from(one) * i32::from(other)) >> 16) as i16
}

// ITU-R BT.709-6 §3.2 to §3.4: brightness is 0.2126 red + 0.7152 green + 0.0722 blue, 219 steps of it; each difference
// has
// 224. In 32768ths, which fit into 16 bits.
const LUMA: [i32; 3] = [5983, 20127, 2032];
const CHROMA: [[i32; 3]; 2] = [[-3298, -11094, 14392], [14392, -13073, -1319]];

// The way back. Brightness is multiplied by 128 and differences by 256, as far as 16 bits go; what is above the lower
// 16 bits of the product is then the channel in 32nds.
const BRIGHT: i16 = 19077;
const RED_OF_V: i16 = 14686;
const GREEN_OF_U: i16 = 1747;
const GREEN_OF_V: i16 = 4366;
const BLUE_OF_U: i16 = 17305;

#[cfg(test)]
mod tests {
    use super::*;

    /// A pixel there and back, as two columns of one row.
    fn round_trip(order: Order, pixel: [u8; 4]) -> [u8; 4] {
        let row = [pixel, pixel].concat();
        let (mut y, mut u, mut v) = ([0; 2], [0; 1], [0; 1]);
        luma(order, &row, &mut y);
        chroma(order, &row, &row, &mut u, &mut v);
        let mut back = [0; 8];
        pixels(order, &y, &u, &v, 7, &mut back);
        assert_eq!(back[..4], back[4..]);
        [back[0], back[1], back[2], back[3]]
    }

    #[test]
    fn colours_come_back() {
        for order in [Order::Bgrx, Order::Rgbx] {
            for at in 0..=0xfff_u32 {
                let pixel = [(at & 15) as u8 * 17, (at >> 4 & 15) as u8 * 17, (at >> 8) as u8 * 17, 7];
                let back = round_trip(order, pixel);
                for (there, back) in pixel.iter().zip(back) {
                    assert!(there.abs_diff(back) <= 3, "{pixel:?} became {back:?}");
                }
            }
        }
    }

    #[test]
    fn greys_come_back_within_a_step() {
        for level in 0..=255 {
            let back = round_trip(Order::Bgrx, [level, level, level, 7]);
            assert!(back[..3].iter().all(|channel| channel.abs_diff(level) <= 1), "{level} became {back:?}");
        }
    }

    #[test]
    fn values_are_those_of_the_standard() {
        // red, green, blue, white, in Y'CbCr of BT.709, limited range
        for (pixel, expected) in [
            ([0, 0, 255, 0], [63, 102, 240]),
            ([0, 255, 0, 0], [173, 42, 26]),
            ([255, 0, 0, 0], [32, 240, 118]),
            ([255, 255, 255, 0], [235, 128, 128]),
        ] {
            let (mut y, mut u, mut v) = ([0; 1], [0; 1], [0; 1]);
            luma(Order::Bgrx, &pixel, &mut y);
            chroma(Order::Bgrx, &pixel, &pixel, &mut u, &mut v);
            assert_eq!([y[0], u[0], v[0]], expected);
            let other = [pixel[2], pixel[1], pixel[0], 0];
            luma(Order::Rgbx, &other, &mut y);
            chroma(Order::Rgbx, &other, &other, &mut u, &mut v);
            assert_eq!([y[0], u[0], v[0]], expected);
        }
    }

    #[test]
    fn short_slices_are_not_overrun() {
        let mut target = [9; 12];
        pixels(Order::Bgrx, &[235; 2], &[128; 1], &[128; 1], 0, &mut target);
        assert_eq!(target, [255, 255, 255, 0, 255, 255, 255, 0, 9, 9, 9, 9]);
    }
}
