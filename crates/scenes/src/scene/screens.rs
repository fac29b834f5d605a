//! Whole screens: what somebody sees who switches between workspaces.
//!
//! Together they have about as much text, plain area and photograph as a day's work has.

use super::page::Page;
use super::terminal::Terminal;
use super::typing::Typing;
use super::widgets;
use crate::canvas::{Canvas, Color, Rect};
use crate::font::{Font, SIGNS};
use crate::picture::photograph;
use crate::random::Random;
use crate::text::{Place, Words, digits};

/// Ten screens of 1920 × 1080.
pub(super) fn all(random: &Random) -> Vec<Canvas> {
    let painters: [fn(&mut Canvas, &Random); 10] = [
        |canvas, random| drop(Typing::new(canvas, random)),
        |canvas, random| drop(Page::new(canvas, random)),
        |canvas, random| drop(Terminal::new(canvas, random)),
        viewer,
        preferences,
        sheet,
        desktop,
        document,
        files,
        gallery,
    ];
    let paint = |(number, painter): (u64, fn(&mut Canvas, &Random))| {
        let mut canvas = Canvas::new(1920, 1080, Color(0, 0, 0));
        painter(&mut canvas, &random.fork(0x5c00 + number));
        canvas
    };
    (0..).zip(painters).map(paint).collect()
}

/// Two photographs of 1920 × 1080.
pub(super) fn photographs(random: &Random) -> Vec<Canvas> {
    (0..2).map(|number| photograph(1920, 1080, random.fork(0x9c00 + number).bits())).collect()
}

/// A photograph, and two windows before it.
pub(super) fn desktop(canvas: &mut Canvas, random: &Random) {
    canvas.draw(&photograph(canvas.width(), canvas.height(), random.fork(20).bits()), 0, 0);
    let mut window = Canvas::new(900, 700, Color(0, 0, 0));
    Terminal::new(&mut window, random);
    canvas.draw(&window, 60, 80);
    document(&mut window, random);
    canvas.draw(&window, 980, 300);
}

/// A program that shows a photograph, darkness around it.
fn viewer(canvas: &mut Canvas, random: &Random) {
    canvas.fill(canvas.rect(), Color(40, 40, 40));
    canvas.draw(&photograph(1440, 960, random.fork(21).bits()), 240, 60);
}

/// A window of widgets before a photograph.
fn preferences(canvas: &mut Canvas, random: &Random) {
    canvas.draw(&photograph(canvas.width(), canvas.height(), random.fork(28).bits()), 0, 0);
    let mut window = Canvas::new(1240, 820, Color(0, 0, 0));
    widgets::form(&mut window, random);
    canvas.draw(&window, 340, 120);
}

/// A page that begins with a photograph.
fn gallery(canvas: &mut Canvas, random: &Random) {
    document(canvas, random);
    canvas.draw(&photograph(canvas.width(), 640, random.fork(29).bits()), 0, 0);
}

/// Rows and columns of numbers.
fn sheet(canvas: &mut Canvas, random: &Random) {
    let font = Font::proportional(16, 1.3, &random.fork(22));
    let mut chance = random.fork(23);
    canvas.fill(canvas.rect(), Color(255, 255, 255));
    canvas.fill(Rect::new(0, 0, canvas.width(), 60), Color(33, 115, 70));
    for row in 0..(canvas.height() - 60) / 22 {
        let y = 60 + row * 22;
        canvas.fill(Rect::new(0, y, canvas.width(), 1), Color(212, 212, 212));
        for column in 0..canvas.width() / 96 {
            let x = column * 96;
            canvas.fill(Rect::new(x, y, 1, 22), Color(212, 212, 212));
            let mut number = digits(chance.below(100_000), 1);
            number.extend([SIGNS]);
            number.extend(digits(chance.below(100), 2));
            let left = (x + 90).saturating_sub(font.width(&number));
            font.draw(canvas, left as i32, y as i32 + 4, &number, Color(20, 20, 20));
        }
    }
}

/// Text in two columns.
fn document(canvas: &mut Canvas, random: &Random) {
    let (font, words) = (Font::proportional(17, 1.4, &random.fork(24)), Words::new(random));
    let mut chance = random.fork(25);
    canvas.fill(canvas.rect(), Color(253, 252, 248));
    let half = canvas.width() as i32 / 2;
    for line in 0..(canvas.height() as i32 - 80) / 22 {
        for left in [40, half + 20] {
            let place =
                Place { x: left, y: 40 + line * 22, right: left + half - 60, color: Color(25, 25, 25) };
            if line % 9 != 8 {
                words.line(canvas, &font, &mut chance, place);
            }
        }
    }
}

/// A folder of pictures.
fn files(canvas: &mut Canvas, random: &Random) {
    let (font, words) = (Font::proportional(16, 1.4, &random.fork(26)), Words::new(random));
    let mut chance = random.fork(27);
    canvas.fill(canvas.rect(), Color(255, 255, 255));
    canvas.fill(Rect::new(0, 0, canvas.width(), 50), Color(235, 235, 235));
    for row in 0..4 {
        for column in 0..7 {
            let (x, y) = (60 + 262 * column, 80 + 250 * row);
            canvas.draw(&photograph(220, 165, chance.bits()), x, y);
            let place = Place { x, y: y + 180, right: x + 220, color: Color(40, 40, 40) };
            words.line(canvas, &font, &mut chance, place);
        }
    }
}
