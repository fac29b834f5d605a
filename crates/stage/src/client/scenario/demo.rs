//! What a newcomer sees: a page that is typed into, a ferry by night, a log that scrolls.
//!
//! Everything is drawn here, with shapes and a font of our own; each part damages only what it changed.

use std::collections::VecDeque;
use std::time::Duration;

use super::ferry;
use crate::client::{Client, ClientError, Input, Pane};
use crate::compositor::Rect;
use crate::font::Font;
use crate::image::Image;
use crate::keys::{SHIFTS, character_of};
use crate::paint::{card, gradient, round_off};
use crate::random::Random;
use crate::strip::Strip;

/// The program of `wayferry demo`. Its [`Strip`] (top left, "frame code") counts key presses as [`super::Typing`]
/// does; keys are typed into the page.
#[derive(Clone, Debug)]
pub struct Demo {
    /// Title of the window.
    pub title: String,
    /// What the picture is called, large at its top: printable ASCII, 20 characters have room.
    pub name: String,
    /// What is said of it below: 70 characters have room.
    pub motto: String,
    /// Whether it types [`Demo::TEXT`] by itself while no user types.
    pub types_itself: bool,
    /// Frames to draw; `None` goes on until it is stopped.
    pub frames: Option<u64>,
}

impl Default for Demo {
    fn default() -> Demo {
        Demo {
            title: "Wayferry demo".to_owned(),
            name: "Wayferry".to_owned(),
            motto: "a program over there, its window here".to_owned(),
            types_itself: true,
            frames: None,
        }
    }
}

impl Demo {
    /// Width of the window in pixels.
    pub const WIDTH: u32 = 640;
    /// Height of the window in pixels.
    pub const HEIGHT: u32 = 600;
    /// What it types, and what a script may type at it.
    pub const TEXT: &str = "This window belongs to a program\n\
        on the other side of a slow and\n\
        lossy link.\n\
        \n\
        Its pixels cross as updates, each\n\
        on a stream of its own: a lost\n\
        packet holds up one update, not\n\
        the keys you type and not the\n\
        frames that come after it.\n\
        \n\
        A frame is shown whole or not at\n\
        all. Try it: type here.\n\
        \n";

    /// Width and height of a letter of the page.
    pub const CELL: (u32, u32) = (12, 18);
    /// Colour of the page where nothing is written.
    pub const PAGE: u32 = 0xfff7_f3e8;
    /// Rows of the page; after the last one it is empty and the first is next.
    pub const ROWS: usize = 8;

    /// Where a row of letters is in the window, from 0.
    pub fn row(row: usize) -> Rect {
        let top = PAPER.1 + 58 + row as i32 * ROW_STEP;
        Rect::new(PAPER.0 + 20, top, PAPER.2 - 40, Demo::CELL.1 as i32)
    }

    /// What letters look like that are written in a row.
    pub fn written(text: &str) -> Image {
        let mut image = Image::new(Demo::CELL.0 * text.len() as u32, Demo::CELL.1, Demo::PAGE);
        body().draw(&mut image, (0, 0), INK, text);
        image
    }

    /// What the caret looks like behind the last letter.
    pub fn caret() -> Image {
        let mut image = Demo::written(" ");
        image.fill_rect(0, 0, CARET_WIDTH, image.height() as i32, CARET);
        image
    }

    /// Runs until its frames are drawn, its window is closed or it is stopped.
    ///
    /// # Errors
    /// As [`Client::draw_part`].
    pub fn run(self, client: &mut Client) -> Result<(), ClientError> {
        let window = client.window_unconfigured(&self.title)?;
        client.set_fixed_size(window, Demo::WIDTH as i32, Demo::HEIGHT as i32);
        client.commit(window);
        client.wait_configure(window, 1)?;
        let mut scene = Scene::new(window, &self);
        let mut frame = 0;
        while !client.closed(window) && self.frames.is_none_or(|frames| frame < frames) {
            frame += 1;
            scene.take(client.take_inputs());
            let damage = scene.step(frame);
            client.ask_frame(window);
            client.draw_part(window, &scene.image, &damage)?;
            client.wait_frame(window)?;
        }
        Ok(())
    }
}

/// The picture and all that moves in it.
struct Scene {
    window: Pane,
    image: Image,
    /// The empty scene, for what is drawn over again.
    plain: Image,
    ferry: Image,
    body: Font,
    small: Font,
    page: Page,
    log: Log,
    began: Duration,
    last_key: Option<Duration>,
    /// Since when the caret stands where it is.
    caret_moved: Duration,
    types_itself: bool,
    scripted: usize,
    next_scripted: Duration,
    shifted: bool,
    presses: u64,
    /// Times of the frames of the last second.
    recent: VecDeque<Duration>,
    damage: Vec<Rect>,
}

struct Page {
    lines: Vec<String>,
}

struct Log {
    random: Random,
    lines: VecDeque<String>,
    next: Duration,
    written: u64,
}

impl Scene {
    fn new(window: Pane, demo: &Demo) -> Scene {
        let (body, small) = (body(), Font::new(1.4));
        let mut plain = Image::new(Demo::WIDTH, Demo::HEIGHT, 0);
        gradient(&mut plain, 0xff10_1b2e, 0xff1d_3350);
        Font::new(3.4).draw(&mut plain, (24, 24), 0xfff4_f7fa, &demo.name);
        small.draw(&mut plain, (24, 62), 0xff9f_b4cc, &demo.motto);
        small.draw(&mut plain, (Strip::WIDTH as i32 + 8, 3), 0xff5c_7290, "< frame code");
        card(&mut plain, PAPER, 10, Demo::PAGE);
        body.draw(&mut plain, (PAPER.0 + 20, PAPER.1 + 16), 0xffb0_5a3c, "Letter from the other side");
        plain.fill_rect(PAPER.0 + 20, PAPER.1 + 42, PAPER.2 - 40, 2, 0xffe4_dcc8);
        card(&mut plain, TERMINAL, 10, 0xff0a_1120);
        let mut ferry = Image::new(FERRY.2 as u32, FERRY.3 as u32, 0);
        ferry::draw(&mut ferry, 0.0);
        Scene {
            window,
            image: plain.clone(),
            plain,
            ferry,
            body,
            small,
            page: Page { lines: vec![String::new()] },
            log: Log { random: Random::new(3), lines: VecDeque::new(), next: Duration::ZERO, written: 0 },
            began: crate::now(),
            last_key: None,
            caret_moved: Duration::ZERO,
            types_itself: demo.types_itself,
            scripted: 0,
            next_scripted: Duration::from_millis(400),
            shifted: false,
            presses: 0,
            recent: VecDeque::new(),
            damage: vec![Rect::new(0, 0, Demo::WIDTH as i32, Demo::HEIGHT as i32)],
        }
    }

    fn take(&mut self, inputs: Vec<Input>) {
        for input in inputs {
            match input {
                Input::Key { code, pressed, .. } => {
                    if SHIFTS.contains(&code) {
                        self.shifted = pressed;
                    }
                    if pressed {
                        self.presses += 1;
                        self.last_key = Some(crate::now());
                        if let Some(character) = character_of(code, self.shifted) {
                            self.type_character(character);
                        }
                    }
                }
                Input::Configure { pane, .. } if pane == self.window => {}
                _ => {}
            }
        }
    }

    /// Draws what has changed by now; the parts that changed.
    fn step(&mut self, frame: u64) -> Vec<Rect> {
        let now = crate::now();
        let time = now - self.began;
        self.type_script(time);
        self.draw_caret(time);
        self.draw_ferry(time);
        while self.log.next <= time {
            self.log.write();
            self.draw_log();
        }
        self.draw_rate(now);
        Strip { frame, drawn: now, value: self.presses }.draw(&mut self.image);
        self.damage.push(Rect::new(0, 0, Strip::WIDTH as i32, Strip::HEIGHT as i32));
        std::mem::take(&mut self.damage)
    }

    fn type_script(&mut self, time: Duration) {
        let disturbed = self.last_key.is_some_and(|last| crate::now() - last < PAUSE_AFTER_KEY);
        while self.types_itself && !disturbed && self.next_scripted <= time {
            let character = Demo::TEXT.as_bytes()[self.scripted % Demo::TEXT.len()] as char;
            self.scripted += 1;
            // Steady with small hesitations, as somebody types.
            let pause = if character == '\n' { 280 } else { 55 + (self.scripted as u64 * 37) % 50 };
            self.next_scripted = time + Duration::from_millis(pause);
            self.type_character(character);
        }
    }

    fn type_character(&mut self, character: char) {
        self.clear_caret();
        self.caret_moved = crate::now() - self.began;
        let last = self.page.lines.len() - 1;
        match character {
            '\u{8}' => self.page.backspace(),
            '\n' => self.page.new_line(),
            ' '..='~' => self.page.push(character),
            _ => return,
        }
        if self.page.lines.len() > Demo::ROWS {
            self.page.lines = vec![self.page.lines.pop().unwrap_or_default()];
            self.restore(Rect::new(PAPER.0, PAPER.1 + 50, PAPER.2, PAPER.3 - 60));
            self.damage.push(Rect::new(PAPER.0, PAPER.1 + 50, PAPER.2, PAPER.3 - 60));
        }
        let row = self.page.lines.len() - 1;
        if row > last {
            // A word may have moved down from there.
            let line = self.draw_line(last).0;
            self.damage.push(line);
        }
        let (line, end) = self.draw_line(row);
        // What changed is at the end of the line.
        let from = (end - 2 * self.body.advance).max(line.x);
        self.damage.push(Rect::new(from, line.y, end - from + 3 * self.body.advance, line.height));
    }

    /// Draws a line of the page; gives its place and where its text ends.
    fn draw_line(&mut self, row: usize) -> (Rect, i32) {
        let line = Demo::row(row);
        self.restore(line);
        let text = self.page.lines[row].clone();
        let end = self.body.draw(&mut self.image, (line.x, line.y), INK, &text);
        (line, end)
    }

    fn draw_caret(&mut self, time: Duration) {
        let caret = self.caret();
        // It does not blink while it moves.
        let lit = time.saturating_sub(self.caret_moved).as_millis() % 1000 < 600;
        let colour = if lit { CARET } else { Demo::PAGE };
        if self.image.pixel(caret.x as u32, caret.y as u32) != Some(colour) {
            self.image.fill_rect(caret.x, caret.y, caret.width, caret.height, colour);
            self.damage.push(caret);
        }
    }

    fn clear_caret(&mut self) {
        let caret = self.caret();
        self.restore(caret);
        self.damage.push(caret);
    }

    fn caret(&self) -> Rect {
        let row = self.page.lines.len() - 1;
        let line = Demo::row(row);
        let x = line.x + self.page.lines[row].len() as i32 * self.body.advance;
        Rect::new(x, line.y, CARET_WIDTH, line.height)
    }

    fn draw_ferry(&mut self, time: Duration) {
        ferry::draw(&mut self.ferry, time.as_secs_f64());
        self.image.blend(&self.ferry, FERRY.0, FERRY.1);
        round_off(&mut self.image, &self.plain, FERRY, 10);
        self.damage.push(Rect::new(FERRY.0, FERRY.1, FERRY.2, FERRY.3));
    }

    fn draw_log(&mut self) {
        let area = Rect::new(TERMINAL.0 + 10, TERMINAL.1 + 10, TERMINAL.2 - 20, TERMINAL.3 - 20);
        self.restore(area);
        let step = self.small.height + 4;
        for (row, line) in (0..).zip(&self.log.lines) {
            let y = area.y + row * step;
            let (time, rest) = line.split_at(7);
            let after = self.small.draw(&mut self.image, (area.x + 4, y), 0xff5f_7a9c, time);
            let colour = if rest.contains("late") { 0xffff_b454 } else { 0xff9f_d8a4 };
            self.small.draw(&mut self.image, (after, y), colour, rest);
        }
        self.damage.push(area);
    }

    fn draw_rate(&mut self, now: Duration) {
        self.recent.push_back(now);
        while self.recent.front().is_some_and(|first| now - *first > Duration::from_secs(1)) {
            self.recent.pop_front();
        }
        // Twice a second is enough to be read.
        if !self.recent.len().is_multiple_of(30) && self.recent.len() > 1 {
            return;
        }
        let area =
            Rect::new(Demo::WIDTH as i32 - 24 - 20 * self.small.advance, 36, 20 * self.small.advance, 18);
        self.restore(area);
        let text = format!("{:>3} fps  {:>6} keys", self.recent.len(), self.presses);
        let x = area.x + (20 - text.len() as i32) * self.small.advance;
        self.small.draw(&mut self.image, (x, area.y), 0xff6f_c3ff, &text);
        self.damage.push(area);
    }

    /// Puts the empty scene back in a rectangle.
    fn restore(&mut self, area: Rect) {
        let part = self.plain.crop(area.x, area.y, area.width as u32, area.height as u32);
        self.image.blend(&part, area.x, area.y);
    }
}

impl Page {
    fn push(&mut self, character: char) {
        let line = self.lines.last_mut().expect("there is always a line");
        line.push(character);
        if line.len() > LINE_LENGTH {
            // The last word moves to a new line if it fits one.
            let word = line.rfind(' ').map(|at| line.split_off(at + 1)).unwrap_or_default();
            self.lines.push(word);
        }
    }

    fn new_line(&mut self) {
        self.lines.push(String::new());
    }

    fn backspace(&mut self) {
        let line = self.lines.last_mut().expect("there is always a line");
        if line.pop().is_none() && self.lines.len() > 1 {
            self.lines.pop();
        }
    }
}

impl Log {
    fn write(&mut self) {
        let minute = self.written;
        self.written += 1;
        let (boat, pier) = (self.random.next() % 8 + 1, self.random.next() % 5 + 1);
        let people = self.random.next() % 280;
        let what = match self.random.next() % 5 {
            0 => format!("boat {boat} is at pier {pier}"),
            1 => format!("boat {boat} left, {people} on board"),
            2 => format!("boat {boat} is {} min late", people % 9 + 1),
            3 => format!("pier {pier} clear"),
            _ => format!("wind {} kn, sea calm", people % 15 + 3),
        };
        if self.lines.len() == LOG_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(format!("{:02}:{:02}  {what}", 6 + minute / 60 % 18, minute % 60));
        self.next += Duration::from_millis(350 + self.random.next() % 300);
    }
}

/// Letters of the page.
fn body() -> Font {
    Font::new(2.0)
}

/// x, y, width, height.
const PAPER: (i32, i32, i32, i32) = (24, 88, 592, 284);
const FERRY: (i32, i32, i32, i32) = (24, 388, 284, 188);
const TERMINAL: (i32, i32, i32, i32) = (324, 388, 292, 188);
const INK: u32 = 0xff2a_2e38;
const CARET: u32 = 0xffb0_5a3c;
const CARET_WIDTH: i32 = 3;
/// From one row of the page to the next.
const ROW_STEP: i32 = 26;
const LINE_LENGTH: usize = 44;
const LOG_LINES: usize = 9;
const PAUSE_AFTER_KEY: Duration = Duration::from_secs(3);
