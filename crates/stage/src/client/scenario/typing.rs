//! A window that answers each key press with a glyph and a commit at once.

use crate::client::{Client, ClientError, Input, Pane};
use crate::compositor::Rect;
use crate::font::Font;
use crate::image::Image;
use crate::keys::{SHIFTS, character_of};
use crate::strip::Strip;

/// A page that is typed into. The strip's value is the number of key presses that the picture shows; see
/// [`crate::key_latencies`].
#[derive(Clone, Debug)]
pub struct Typing {
    /// Title of the window.
    pub title: String,
    /// Characters in a row.
    pub columns: u32,
    /// Rows of characters.
    pub rows: u32,
}

impl Default for Typing {
    fn default() -> Typing {
        Typing { title: "typing".to_owned(), columns: 60, rows: 16 }
    }
}

impl Typing {
    /// Runs until its window is closed or it is stopped.
    ///
    /// # Errors
    /// As [`Client::draw_part`].
    pub fn run(self, client: &mut Client) -> Result<(), ClientError> {
        let font = Font::new(2.0);
        let (cell_width, cell_height) = (font.advance, font.height + 4);
        let width = (self.columns as i32 * cell_width).max(Strip::WIDTH as i32) as u32;
        let height = self.rows as i32 * cell_height + TOP;
        let window = client.window(&self.title, width, height as u32)?;
        let mut image = Image::new(width, height as u32, PAPER);
        let mut page = Page { window, frame: 0, presses: 0 };
        page.show(client, &mut image, Rect::new(0, 0, width as i32, height))?;
        let (mut shifted, mut position) = (false, 0);
        while !client.closed(window) {
            let Input::Key { code, pressed, .. } = client.next_input()? else { continue };
            if SHIFTS.contains(&code) {
                shifted = pressed;
            }
            if !pressed {
                continue;
            }
            page.presses += 1;
            let index = position % (self.columns * self.rows);
            let x = (index % self.columns) as i32 * cell_width;
            let y = (index / self.columns) as i32 * cell_height + TOP;
            if let Some(character) = character_of(code, shifted) {
                image.fill_rect(x, y, cell_width, cell_height, PAPER);
                font.draw(&mut image, (x + 1, y + 2), INK, &character.to_string());
                position += 1;
            }
            page.show(client, &mut image, Rect::new(x, y, cell_width, cell_height))?;
        }
        Ok(())
    }
}

struct Page {
    window: Pane,
    frame: u64,
    presses: u64,
}

impl Page {
    fn show(&mut self, client: &mut Client, image: &mut Image, changed: Rect) -> Result<(), ClientError> {
        self.frame += 1;
        Strip { frame: self.frame, drawn: crate::now(), value: self.presses }.draw(image);
        let strip = Rect::new(0, 0, Strip::WIDTH as i32, Strip::HEIGHT as i32);
        client.draw_part(self.window, image, &[strip, changed])
    }
}

const TOP: i32 = 24;
const PAPER: u32 = 0xfff7_f3e8;
const INK: u32 = 0xff20_2830;
