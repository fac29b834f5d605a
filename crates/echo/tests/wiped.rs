//! What is given back to the allocator holds neither pixels of letters nor keys.
//!
//! The allocator of this test looks through every block that the predictor frees for two patterns: a pixel that only
//! letters have, and modifiers and a layout that only keys have. What is on the stack it does not see.

#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use wayferry_echo::{Answered, Echo, Key, KeyId, Show};
use wayferry_pixels::{Content, Format, Rect, Region, Size};

#[global_allocator]
static ALLOCATOR: Looking = Looking;

/// The system's allocator, which looks at what comes back.
struct Looking;

/// Blocks that were freed with a letter's pixel, and with a key, in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    pixels: usize,
    keys: usize,
}

thread_local! {
    static IS_LOOKING: Cell<bool> = const { Cell::new(false) };
    static FOUND: Cell<Found> = const { Cell::new(Found { pixels: 0, keys: 0 }) };
}

// SAFETY: every block is the system's; it is only read before it is given back, and all of it was written to.
unsafe impl GlobalAlloc for Looking {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise, passed on. Zeroed, so that all of it may be read.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if IS_LOOKING.get() {
            // SAFETY: the block is as long as its layout, and was zeroed when it was made.
            look(unsafe { std::slice::from_raw_parts(block, layout.size()) });
        }
        // SAFETY: it came from there, with this layout.
        unsafe { System.dealloc(block, layout) };
    }
}

fn look(block: &[u8]) {
    let has = |pattern: &[u8]| block.windows(pattern.len()).any(|bytes| bytes == pattern);
    let mut found = FOUND.get();
    found.pixels += usize::from(has(&SHADE.to_le_bytes()[..3]));
    found.keys += usize::from(has(&[MODIFIERS, GROUP]));
    FOUND.set(found);
}

/// Does it, and looks at what is freed meanwhile.
fn looking<T>(what: impl FnOnce() -> T) -> T {
    IS_LOOKING.set(true);
    let result = what();
    IS_LOOKING.set(false);
    result
}

/// A line of letters in cells, with a block after them.
struct Terminal {
    content: Content,
    pen: u32,
}

impl Terminal {
    fn new() -> Self {
        let mut content = Content::new(Size::new(640, 48).expect("a size"), Format::Xrgb8888);
        content.fill(&PAPER.to_le_bytes());
        let mut terminal = Self { content, pen: 0 };
        terminal.paint(terminal.cell(0), INK);
        terminal
    }

    fn cell(&self, pen: u32) -> Rect {
        Rect::new(pen * 8, 16, 8, 16)
    }

    fn paint(&mut self, rect: Rect, pixel: u32) {
        let row: Vec<u8> = (0..rect.width).flat_map(|_| pixel.to_le_bytes()).collect();
        (rect.y..rect.bottom()).for_each(|y| self.content.write_row(y, rect.x, &row));
    }

    /// The program's answer; what it changed.
    fn answer(&mut self, code: u16) -> Region {
        let before = self.pen;
        match code {
            BACKSPACE => self.pen -= 1,
            RETURN => {
                self.paint(Rect::new(0, 16, 640, 16), PAPER);
                self.pen = 0;
            }
            _ => {
                let cell = self.cell(before);
                self.paint(cell, PAPER);
                let number = u32::from(code) % 7;
                self.paint(Rect::new(cell.x + 1 + number % 3, cell.y + 2, 2, 4 + number), INK);
                self.paint(Rect::new(cell.x + 1, cell.y + 3 + number, 5, 2), INK);
                self.paint(Rect::new(cell.x + 6, cell.y + 2 + number, 1, 2), SHADE);
                self.pen += 1;
            }
        }
        if code == BACKSPACE {
            let cell = self.cell(before);
            self.paint(cell, PAPER);
        }
        let caret = self.cell(self.pen);
        self.paint(caret, INK);
        match code {
            RETURN => Region::full(self.content.size()),
            _ => {
                let from = before.min(self.pen);
                Region::from(Rect::new(from * 8, 16, (before.max(self.pen) + 1 - from) * 8, 16))
            }
        }
    }
}

/// Types them, three without an answer at a time; how many were shown at once.
fn typed(echo: &mut Echo, terminal: &mut Terminal, codes: &[u16], last: &mut u64) -> usize {
    let mut shown = 0;
    for three in codes.chunks(3) {
        let first = *last;
        for code in three {
            *last += 1;
            let key = Key { code: *code, modifiers: MODIFIERS, group: GROUP };
            let now = Duration::from_millis(100 * *last);
            let show = looking(|| echo.key(now, KeyId(*last), key));
            shown += usize::from(matches!(show, Some(Show::Overlay(_))));
            looking(|| drop(show));
        }
        for (id, code) in (first + 1..).zip(three) {
            let damage = terminal.answer(*code);
            let now = Duration::from_millis(100 * *last + 20);
            looking(|| drop(echo.content(now, &terminal.content, &damage, Answered(Some(KeyId(id))))));
        }
    }
    shown
}

#[test]
fn freed_memory_holds_neither_pixels_of_letters_nor_keys() {
    let (mut echo, mut terminal, mut last) = (Echo::new(), Terminal::new(), 0);
    let content = Region::full(terminal.content.size());
    looking(|| drop(echo.content(Duration::ZERO, &terminal.content, &content, Answered(None))));
    let letters: Vec<u16> = (0..40).map(|number| 30 + number % 7).collect();
    // One by one at first: two keys, each with its own answer, show the caret.
    letters[..6].iter().for_each(|code| _ = typed(&mut echo, &mut terminal, &[*code], &mut last));
    let mut shown = typed(&mut echo, &mut terminal, &letters, &mut last);
    shown += typed(&mut echo, &mut terminal, &[BACKSPACE; 8], &mut last);
    shown += typed(&mut echo, &mut terminal, &letters[..9], &mut last);
    typed(&mut echo, &mut terminal, &[RETURN], &mut last);
    shown += typed(&mut echo, &mut terminal, &letters[..12], &mut last);
    for code in &letters[..5] {
        last += 1;
        let key = Key { code: *code, modifiers: MODIFIERS, group: GROUP };
        looking(|| drop(echo.key(Duration::from_millis(100 * last), KeyId(last), key)));
    }
    looking(|| drop(echo.late(Duration::from_millis(100 * last + 90), KeyId(last - 2))));
    looking(|| drop(echo.disturbed()));
    looking(|| drop(echo));
    assert!(shown > 40, "{shown} shown: little was tried");
    assert_eq!(FOUND.get(), Found { pixels: 0, keys: 0 });
}

/// The test would pass an allocator that finds nothing.
#[test]
fn what_is_not_wiped_is_found() {
    let pixels = vec![PAPER, SHADE, INK];
    let keys = vec![Key { code: 30, modifiers: MODIFIERS, group: GROUP }];
    looking(|| drop((pixels, keys)));
    assert_eq!(FOUND.get(), Found { pixels: 1, keys: 1 });
}

const PAPER: u32 = 0x0020_2020;
const INK: u32 = 0x00e0_e0e0;
/// In the letters alone: nearer to the paper than their ink.
const SHADE: u32 = 0x005a_c31e;

/// In keys alone; neither makes a command of one.
const MODIFIERS: u8 = 0x90;
const GROUP: u8 = 0xa7;

const BACKSPACE: u16 = 14;
const RETURN: u16 = 28;
