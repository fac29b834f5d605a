//! A window of widgets, two spinners turning and six progress bars growing.
//!
//! Spinners are rings whose brightness falls off around them; the angle is measured along a diamond instead of a
//! circle, which needs no trigonometry. Each widget gives damage of its own.

use super::{Commit, Program};
use crate::canvas::{Canvas, Color, Rect};
use crate::font::Font;
use crate::random::Random;
use crate::text::{Place, Words};

#[derive(Debug)]
pub(super) struct Widgets {
    /// How far the spinners have turned, in quarters of the diamond.
    turn: f32,
    /// Pixels of each bar that are filled.
    bars: [u32; 6],
    random: Random,
}

impl Widgets {
    pub(super) fn new(canvas: &mut Canvas, random: &Random) -> Self {
        let mut chance = random.fork(3);
        form(canvas, &random.fork(4));
        let bars = [(); 6].map(|()| chance.below(BAR.0));
        let widgets = Self { turn: 0.0, bars, random: chance };
        for (index, filled) in bars.into_iter().enumerate() {
            canvas.fill(bar(index), GROOVE);
            fill(canvas, index, 0, filled);
        }
        for center in SPINNERS {
            spin(canvas, center, widgets.turn);
        }
        widgets
    }

    /// Lets a bar grow; gives where it changed.
    fn grow(&mut self, canvas: &mut Canvas, index: usize) -> Rect {
        let place = bar(index);
        let (old, new) = (self.bars[index], self.bars[index] + self.random.between(2, 6));
        if new >= BAR.0 {
            self.bars[index] = 0;
            canvas.fill(place, GROOVE);
            return place;
        }
        self.bars[index] = new;
        fill(canvas, index, old, new);
        Rect::new(place.x + old, place.y, new - old, BAR.1)
    }
}

impl Program for Widgets {
    fn paint(&mut self, canvas: &mut Canvas) -> Commit {
        self.turn = (self.turn + 0.3) % 4.0;
        let mut damage = SPINNERS.map(|center| spin(canvas, center, self.turn)).to_vec();
        damage.extend((0..self.bars.len()).map(|index| self.grow(canvas, index)));
        Commit::of(damage)
    }
}

fn bar(index: usize) -> Rect {
    Rect::new(700, 380 + 70 * index as u32, BAR.0, BAR.1)
}

/// Fills columns of a bar; it is lighter above than below.
fn fill(canvas: &mut Canvas, index: usize, from: u32, to: u32) {
    let place = bar(index);
    for row in 0..BAR.1 {
        let color = Color(50 + 2 * (BAR.1 - row) as u8, 130, 220);
        canvas.fill(Rect::new(place.x + from, place.y + row, to - from, 1), color);
    }
}

/// Draws a spinner; gives where it is.
fn spin(canvas: &mut Canvas, (x, y): (u32, u32), turn: f32) -> Rect {
    let place = Rect::new(x - SIDE / 2, y - SIDE / 2, SIDE, SIDE);
    canvas.fill(place, PAPER);
    for row in 0..SIDE {
        for column in 0..SIDE {
            let half = SIDE as f32 / 2.0 - 0.5;
            let (right, down) = (column as f32 - half, row as f32 - half);
            let distance = (right * right + down * down).sqrt();
            let cover = (OUTER + 0.5 - distance).clamp(0.0, 1.0) * (distance - INNER + 0.5).clamp(0.0, 1.0);
            let behind = (diamond(right, down) - turn + 4.0) % 4.0 / 4.0;
            let level = (cover * behind * SHADES).round() * (255.0 / SHADES);
            canvas.blend((place.x + column) as i32, (place.y + row) as i32, INK, level as u8);
        }
    }
    place
}

/// The angle of a direction, from 0 to 4.
fn diamond(right: f32, down: f32) -> f32 {
    let sum = right.abs() + down.abs();
    let along = if sum > 0.0 { down / sum } else { 0.0 };
    match (right >= 0.0, down >= 0.0) {
        (true, true) => along,
        (false, _) => 2.0 - along,
        (true, false) => 4.0 + along,
    }
}

/// A form of labels, entries and buttons.
pub(super) fn form(canvas: &mut Canvas, random: &Random) {
    let (font, words) = (Font::proportional(18, 1.5, &random.fork(5)), Words::new(random));
    let mut chance = random.fork(6);
    canvas.fill(canvas.rect(), PAPER);
    canvas.fill(Rect::new(0, 0, canvas.width(), 46), Color(222, 221, 218));
    canvas.fill(Rect::new(0, 46, 300, canvas.height()), Color(240, 240, 240));
    let mut line = |canvas: &mut Canvas, x: i32, y: i32, right: i32| {
        words.line(canvas, &font, &mut chance, Place { x, y, right, color: INK });
    };
    line(canvas, 860, 14, 1200);
    for row in 0..24 {
        line(canvas, 24, 70 + 40 * row, 200);
    }
    for row in 0..11 {
        let y = 110 + 70 * row;
        line(canvas, 360, y, 640);
        if !(3..10).contains(&row) {
            let entry = Rect::new(700, y as u32 - 8, 480, 36);
            canvas.fill(entry, Color(255, 255, 255));
            canvas.frame(entry, Color(200, 198, 196));
            line(canvas, 712, y, 1100);
        }
        let button = Rect::new(1460, y as u32 - 8, 140, 36);
        canvas.fill(button, Color(230, 229, 228));
        canvas.frame(button, Color(190, 188, 186));
        line(canvas, 1475, y, 1590);
    }
}

const SPINNERS: [(u32, u32); 2] = [(740, 940), (1300, 940)];
/// Of the square that a spinner is in, in pixels.
const SIDE: u32 = 66;
const OUTER: f32 = 32.0;
const INNER: f32 = 20.0;
/// Steps of a ring's brightness and of its edges.
const SHADES: f32 = 15.0;
/// Width and height of a progress bar.
const BAR: (u32, u32) = (520, 12);

const PAPER: Color = Color(250, 250, 250);
const GROOVE: Color = Color(218, 217, 215);
const INK: Color = Color(46, 52, 54);
