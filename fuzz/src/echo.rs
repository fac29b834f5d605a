//! Keys, contents, damage and answers of any kind to the predictor of typed text.
//!
//! Input: operations, a byte each that says which, and its arguments (see [`World::operation`]).

use std::time::Duration;

use wayferry_echo::{Answered, Echo, Key, KeyId, MAX_MEMORY, MAX_SHOWN, Overlay, Purpose, Show};
use wayferry_pixels::{Content, Format, Rect, Region, Size};

use crate::Input;

/// Operations of one input.
const MAX_OPERATIONS: usize = 400;

/// The surface: its sides, and the cells of the well-behaved part of its program.
const SIDES: (u32, u32) = (96, 40);
const CELL: (u32, u32) = (8, 16);

/// Of all that may be typed and painted: a picture lies inside of the surface and is whole, few letters are shown at
/// once, and memory is bounded.
///
/// # Panics
/// When that does not hold.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut world = World::new(input.u8());
    for _ in 0..MAX_OPERATIONS {
        if input.is_empty() {
            break;
        }
        let show = world.operation(&mut input);
        world.check(show);
    }
}

struct World {
    echo: Echo,
    content: Content,
    now: Duration,
    keys: u64,
    /// Column of the caret that the well-behaved part draws.
    column: u32,
}

impl World {
    fn new(format: u8) -> Self {
        let format = Format::from_code(format % 9).expect("one of nine");
        let size = Size::new(SIDES.0, SIDES.1).expect("a size");
        let content = Content::new(size, format);
        Self { echo: Echo::new(), content, now: Duration::ZERO, keys: 0, column: 0 }
    }

    /// 0: a key (code, modifiers). 1: a letter at the caret, which moves on (its look; which key it answers). 2: any
    /// rectangle is painted (corner, sides, value; damage says so). 3: a content with other damage (corner, sides).
    /// 4: keys are late (how many). 5: a hint (corner, sides, purpose). 6: something came between. 7: time passes.
    /// 8: the caret goes elsewhere (column). 9: another surface (format), or all is forgotten.
    fn operation(&mut self, input: &mut Input<'_>) -> Option<Show> {
        let (operation, argument) = (input.u8() % 10, input.u8());
        self.now += Duration::from_millis(7);
        match operation {
            0 => {
                self.keys += 1;
                let key = Key { code: argument.into(), modifiers: input.u8(), group: 0 };
                self.echo.key(self.now, KeyId(self.keys), key)
            }
            1 => self.letter(argument, input.u8()),
            2 => {
                let rect = self.rect(argument, input);
                self.paint(rect, input.u8());
                self.show(Region::from(rect), input.u8())
            }
            3 => {
                let damage =
                    Rect::new(argument.into(), input.u8().into(), input.u16().into(), input.u16().into());
                self.show(Region::from(damage), input.u8())
            }
            4 => self.echo.late(self.now, self.key(argument)),
            5 => {
                let rect =
                    Rect::new(argument.into(), input.u8().into(), input.u8().into(), input.u8().into());
                let purpose = if input.u8() % 8 == 7 { Purpose::Sensitive } else { Purpose::Normal };
                self.echo.hint(&self.content, rect, purpose)
            }
            6 => self.echo.disturbed(),
            7 => {
                self.now += Duration::from_millis(200 * u64::from(argument));
                self.echo.timeout_passed(self.now)
            }
            8 => {
                let old = self.column;
                self.caret(old, 0x11);
                self.column = u32::from(argument) % (SIDES.0 / CELL.0 - 1);
                self.caret(self.column, 0xee);
                self.show(Region::full(self.content.size()), input.u8())
            }
            _ if argument.is_multiple_of(2) => self.echo.forget(),
            _ => {
                *self = Self {
                    now: self.now,
                    keys: self.keys,
                    echo: std::mem::take(&mut self.echo),
                    ..Self::new(argument)
                };
                None
            }
        }
    }

    /// The key that is so many before the last one.
    fn key(&self, before: u8) -> KeyId {
        KeyId(self.keys.saturating_sub(u64::from(before) % 8))
    }

    fn show(&mut self, damage: Region, answered: u8) -> Option<Show> {
        let answered = Answered((answered < 250).then_some(self.key(answered)));
        self.echo.content(self.now, &self.content, &damage, answered)
    }

    /// As a terminal does it: a figure of two stripes, and a block after it.
    fn letter(&mut self, look: u8, answered: u8) -> Option<Show> {
        let (x, top) = (self.column * CELL.0, CELL.1);
        self.caret(self.column, 0x11);
        self.paint(Rect::new(x + u32::from(look) % 6, top + 3, 2, 9), 0xcc);
        self.paint(Rect::new(x + 1, top + u32::from(look) / 6 % 12 + 2, 6, 2), 0xcc);
        self.column = (self.column + 1) % (SIDES.0 / CELL.0 - 1);
        self.caret(self.column, 0xee);
        let next = self.column * CELL.0;
        let left = x.min(next);
        self.show(Region::from(Rect::new(left, top, x.max(next) + CELL.0 - left, CELL.1)), answered)
    }

    fn caret(&mut self, column: u32, value: u8) {
        self.paint(Rect::new(column * CELL.0, CELL.1, CELL.0, CELL.1), value);
    }

    fn rect(&self, x: u8, input: &mut Input<'_>) -> Rect {
        let x = u32::from(x) % SIDES.0;
        let y = u32::from(input.u8()) % SIDES.1;
        let (width, height) = (u32::from(input.u8()) % (SIDES.0 - x), u32::from(input.u8()) % (SIDES.1 - y));
        Rect::new(x, y, width + 1, height + 1)
    }

    /// Every byte of these pixels has this value, so that they are opaque when it is 255.
    fn paint(&mut self, rect: Rect, value: u8) {
        let pixel = vec![value; self.content.format().bytes_per_pixel() * rect.width as usize];
        (rect.y..rect.bottom()).for_each(|y| self.content.write_row(y, rect.x, &pixel));
    }

    fn check(&self, show: Option<Show>) {
        assert!(self.echo.memory() <= MAX_MEMORY, "{} bytes", self.echo.memory());
        let Some(Show::Overlay(Overlay { rect, pixels, marks, last, since })) = show else { return };
        assert!(self.content.size().rect().contains(rect) && !rect.is_empty(), "{rect:?} is not inside");
        assert_eq!(pixels.len() as u64, rect.area(), "a whole picture");
        assert!(marks.len() <= MAX_SHOWN && marks.iter().all(|mark| rect.contains(mark.rect)), "{marks:?}");
        assert!(last.0 <= self.keys && since <= self.now, "of keys that were pressed");
    }
}
