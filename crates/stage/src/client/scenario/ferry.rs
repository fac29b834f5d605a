//! The animated part of the demo: a ferry by night. Flat colours, moving edges: what a drawing program makes, not
//! what a camera does.

use std::f64::consts::TAU;

use crate::font::mix;
use crate::image::Image;
use crate::paint::disc;
use crate::random::Random;

/// Draws the ferry at `seconds` into a picture of any size.
pub(crate) fn draw(image: &mut Image, seconds: f64) {
    let (width, height) = (image.width() as i32, image.height() as i32);
    sky(image, seconds);
    hills(image, height * 56 / 100);
    let level = height * 64 / 100;
    wave(image, &Wave { level: level - 8, swell: 2.0, length: 90.0, speed: 14.0, colour: WATER[0] }, seconds);
    let x = (seconds * 22.0) % f64::from(width + 200) - 120.0;
    let bob = (seconds * 1.7).sin() * 2.0;
    boat(image, (x as i32, level - 20 + bob.round() as i32), seconds);
    wave(image, &Wave { level, swell: 3.5, length: 120.0, speed: 26.0, colour: WATER[1] }, seconds);
    wave(
        image,
        &Wave { level: level + 16, swell: 5.0, length: 160.0, speed: -34.0, colour: WATER[2] },
        seconds,
    );
    wave(
        image,
        &Wave { level: level + 38, swell: 6.0, length: 210.0, speed: 48.0, colour: WATER[3] },
        seconds,
    );
}

fn sky(image: &mut Image, seconds: f64) {
    let (width, height) = (image.width(), image.height());
    for y in 0..height {
        let band = y * BANDS / height;
        image.row_mut(y).fill(mix(SKY_TOP, SKY_LOW, band * 255 / BANDS));
    }
    let mut random = Random::new(11);
    for star in 0..46 {
        let (x, y) = (random.unit() * f64::from(width), random.unit() * f64::from(height) * 0.5);
        // A few stars twinkle, twice a second at most.
        let dim = star % 9 == 0 && ((seconds * 2.0) as u64 + star).is_multiple_of(5);
        let colour = if dim { 0xff50_6488 } else { 0xffc8_d8f0 };
        image.fill_rect(x as i32, y as i32, 1 + (star % 4 == 0) as i32, 1 + (star % 4 == 0) as i32, colour);
    }
    let moon = (f64::from(width) * 0.8, f64::from(height) * 0.2);
    disc(image, moon, 24.0, 0xfff4_ecc8);
    disc(image, (moon.0 - 8.0, moon.1 - 4.0), 5.0, 0xffe2_d8ac);
    disc(image, (moon.0 + 7.0, moon.1 + 8.0), 4.0, 0xffe2_d8ac);
}

fn hills(image: &mut Image, base: i32) {
    let height = image.height() as i32;
    for x in 0..image.width() as i32 {
        let at = f64::from(x);
        let rise = 16.0 + 11.0 * (at / 61.0).sin() + 7.0 * (at / 23.0 + 1.0).sin();
        let top = base - rise as i32;
        image.fill_rect(x, top, 1, height - top, 0xff14_2440);
    }
    for light in 0..9 {
        image.fill_rect(18 + light * 37, base - 4 - (light * 5) % 9, 2, 2, 0xffff_d27a);
    }
}

struct Wave {
    level: i32,
    swell: f64,
    /// Pixels from crest to crest.
    length: f64,
    /// Pixels a second.
    speed: f64,
    colour: u32,
}

fn wave(image: &mut Image, wave: &Wave, seconds: f64) {
    let height = image.height() as i32;
    let foam = mix(wave.colour, 0xffff_ffff, 70);
    for x in 0..image.width() as i32 {
        let phase = (f64::from(x) - seconds * wave.speed) / wave.length * TAU;
        let rise = wave.swell * (phase.sin() + 0.4 * (phase * 2.3).sin());
        let top = wave.level + rise.round() as i32;
        image.fill_rect(x, top, 1, height - top, wave.colour);
        image.fill_rect(x, top, 1, 2, foam);
    }
}

fn boat(image: &mut Image, (x, y): (i32, i32), seconds: f64) {
    for puff in 0..4 {
        let age = (seconds * 0.8 + f64::from(puff) * 0.25) % 1.0;
        let at = (f64::from(x) + 38.0 - age * 46.0, f64::from(y) - 34.0 - age * 20.0);
        disc(image, at, 3.0 + age * 6.0, mix(0xff8a_96aa, 0xff2c_3c5c, (age * 255.0) as u32));
    }
    image.fill_rect(x + 34, y - 34, 12, 16, 0xffd8_4a3a);
    image.fill_rect(x + 34, y - 34, 12, 4, 0xff2a_1c20);
    image.fill_rect(x + 24, y - 18, 58, 10, 0xffdf_e6ee);
    image.fill_rect(x + 14, y - 8, 82, 12, 0xfff4_f7fa);
    for window in 0..5 {
        image.fill_rect(x + 28 + window * 11, y - 15, 6, 5, 0xffff_d27a);
    }
    for window in 0..7 {
        image.fill_rect(x + 18 + window * 11, y - 5, 6, 5, 0xffff_c04d);
    }
    for row in 0..18 {
        let inset = row * row / 22;
        let colour = if row < 3 { 0xffd8_4a3a } else { 0xff22_3a66 };
        image.fill_rect(x + inset / 2, y + 4 + row, 112 - inset * 3 / 2, 1, colour);
    }
}

const BANDS: u32 = 7;
const SKY_TOP: u32 = 0xff0b_1530;
const SKY_LOW: u32 = 0xff3a_4a7c;
const WATER: [u32; 4] = [0xff1f_4f86, 0xff1a_4376, 0xff15_3763, 0xff10_2b50];
