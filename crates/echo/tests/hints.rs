//! What a program says of its caret and its field.

use std::time::Duration;

use wayferry_echo::{Answered, Echo, Key, KeyId, Purpose, Show};
use wayferry_pixels::{Content, Format, Rect, Region, Size};

const CELL: (u32, u32) = (8, 16);
const LETTERS: [u16; 2] = [30, 48];

/// A terminal of one line: two letters, by turns, with a block after them.
struct Terminal {
    echo: Echo,
    content: Content,
    typed: u32,
}

impl Terminal {
    fn new() -> Self {
        let mut content = Content::new(Size::new(160, 16).expect("a size"), Format::Xrgb8888);
        content.fill(&[0x20; 4]);
        let mut terminal = Self { echo: Echo::new(), content, typed: 0 };
        terminal.paint(terminal.caret(), 0xe0);
        terminal.shown();
        terminal
    }

    fn caret(&self) -> Rect {
        Rect::new(self.typed * CELL.0, 0, CELL.0, CELL.1)
    }

    fn paint(&mut self, rect: Rect, value: u8) {
        (rect.y..rect.bottom())
            .for_each(|y| self.content.write_row(y, rect.x, &vec![value; rect.width as usize * 4]));
    }

    fn shown(&mut self) {
        let (now, damage) = (self.now(), Region::full(self.content.size()));
        let answered = Answered(Some(KeyId(self.typed.into())));
        self.echo.content(now, &self.content, &damage, answered);
    }

    fn hint(&mut self, rect: Rect, purpose: Purpose) {
        self.echo.hint(&self.content, rect, purpose);
    }

    fn now(&self) -> Duration {
        Duration::from_millis(200 * u64::from(self.typed))
    }

    /// Types a letter; gives what was shown at once.
    fn types(&mut self) -> Option<Show> {
        let which = self.typed % 2;
        let key = Key { code: LETTERS[which as usize], modifiers: 0, group: 0 };
        let cell = self.caret();
        let now = self.now();
        self.typed += 1;
        let show = self.echo.key(now, KeyId(self.typed.into()), key);
        self.paint(cell, 0x20);
        self.paint(Rect::new(cell.x + 1 + which * 3, 2 + which * 7, 2, 6), 0xe0);
        self.paint(self.caret(), 0xe0);
        let damage = Region::from(Rect::new(cell.x, 0, 2 * CELL.0, CELL.1));
        let now = self.now();
        self.echo.content(now, &self.content, &damage, Answered(Some(KeyId(self.typed.into()))));
        show
    }
}

/// The first key that is shown at once, of the first twelve.
fn first_shown(terminal: &mut Terminal) -> Option<usize> {
    (1..=12).find(|_| matches!(terminal.types(), Some(Show::Overlay(_))))
}

#[test]
fn a_caret_that_is_told_of_need_not_be_learned() {
    let learned = first_shown(&mut Terminal::new()).expect("it is shown");
    let mut terminal = Terminal::new();
    terminal.hint(terminal.caret(), Purpose::Normal);
    terminal.shown();
    let told = first_shown(&mut terminal).expect("it is shown");
    assert!(told < learned, "{told}, without a hint {learned}");
}

/// Programs say it before they show it, or after.
#[test]
fn a_caret_that_is_shown_already_is_found_at_once() {
    let learned = first_shown(&mut Terminal::new()).expect("it is shown");
    let mut terminal = Terminal::new();
    assert_eq!(terminal.echo.strip(), None);
    terminal.hint(terminal.caret(), Purpose::Normal);
    assert!(terminal.echo.strip().is_some_and(|strip| strip.contains(terminal.caret())));
    let told = first_shown(&mut terminal).expect("it is shown");
    assert!(told < learned, "{told}, without a hint {learned}");
}

/// A terminal without the keyboard has a hollow block. Its left side is no bar, and its top no underline.
#[test]
fn regression_a_hollow_block_was_taken_for_a_bar_and_never_for_a_block_again() {
    let learned = first_shown(&mut Terminal::new()).expect("it is shown");
    let mut terminal = Terminal::new();
    let Rect { x, y, width, height } = terminal.caret();
    terminal.paint(Rect::new(x + 1, y + 1, width - 2, height - 2), 0x20);
    terminal.shown();
    terminal.hint(terminal.caret(), Purpose::Normal);
    assert_eq!(terminal.echo.strip(), None);
    terminal.paint(terminal.caret(), 0xe0);
    terminal.shown();
    let told = first_shown(&mut terminal).expect("it is shown");
    assert!(told <= learned, "{told}, without a hint {learned}");
}

#[test]
fn a_hint_to_where_no_caret_is_changes_nothing() {
    let learned = first_shown(&mut Terminal::new());
    for rect in [Rect::new(40, 0, 8, 16), Rect::new(0, 0, 0, 0), Rect::new(u32::MAX, 5, 9, u32::MAX)] {
        let mut terminal = Terminal::new();
        terminal.hint(rect, Purpose::Normal);
        terminal.shown();
        assert_eq!(first_shown(&mut terminal), learned, "{rect:?}");
    }
}

#[test]
fn a_sensitive_field_is_not_predicted_and_takes_all_that_was_learned() {
    let mut terminal = Terminal::new();
    let learned = first_shown(&mut terminal);
    terminal.typed = 0;
    terminal.hint(terminal.caret(), Purpose::Sensitive);
    assert_eq!(first_shown(&mut terminal), None);
    let fresh = Terminal::new();
    terminal = Terminal { echo: terminal.echo, ..fresh };
    terminal.hint(Rect::default(), Purpose::Normal);
    terminal.shown();
    assert_eq!(first_shown(&mut terminal), learned, "as if nothing had been learned");
}
