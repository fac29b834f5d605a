//! Any inputs in any order, from a program that paints what it likes and lies of what it painted.

use std::time::Duration;

use proptest::prelude::*;
use wayferry_echo::{Answered, Echo, Key, KeyId, MAX_MEMORY, MAX_SHOWN, Purpose, Show};
use wayferry_pixels::{Content, Format, Rect, Region, Size};

/// One input.
#[derive(Clone, Debug)]
enum Input {
    Key { code: u16, modifiers: u8, group: u8 },
    Paint { paint: Paint, lie: Lie, answered: Option<u8> },
    Late(u8),
    Hint(Rect, bool),
    Resize(u32, u32, u8),
    Wait(u64),
    Disturbed,
    Forget,
    Timeout,
}

/// What the program paints.
#[derive(Clone, Debug)]
enum Paint {
    /// A letter in the cell after the last one, and a caret behind it.
    Letter(u8),
    /// A caret without a letter, so far on.
    Caret(u8),
    Rect(Rect, u8),
    /// Each pixel of one of a few colours.
    Noise(Rect, u64),
    Line,
}

/// What the program says of where it painted.
#[derive(Clone, Copy, Debug)]
enum Lie {
    None,
    Nothing,
    Everything,
    Elsewhere(Rect),
}

/// A surface, the predictor, and how far both are.
struct Stage {
    echo: Echo,
    content: Content,
    pen: (u32, u32),
    now: Duration,
    last: u64,
}

impl Stage {
    fn new() -> Self {
        let size = Size::new(200, 64).expect("a size");
        let content = Content::new(size, Format::Xrgb8888);
        Self { echo: Echo::new(), content, pen: (0, 0), now: Duration::ZERO, last: 0 }
    }

    fn fill(&mut self, rect: Rect, value: u8) {
        let Some(rect) = rect.intersection(self.content.size().rect()) else { return };
        let row = vec![value | 3; rect.width as usize * self.content.format().bytes_per_pixel()];
        (rect.y..rect.bottom()).for_each(|y| self.content.write_row(y, rect.x, &row));
    }

    /// Paints; what has really changed.
    fn paint(&mut self, paint: &Paint) -> Rect {
        let cell = |pen: (u32, u32)| Rect::new(pen.0, pen.1, 8, 16);
        let own = cell(self.pen);
        match paint {
            Paint::Letter(number) => {
                self.fill(own, 0x10);
                let number = u32::from(*number) % 6;
                self.fill(Rect::new(own.x + number % 3, own.y + 2, 2, 3 + number), 0xd0);
                self.fill(Rect::new(own.x, own.y + 8 + number, 5, 1), 0xa0);
                self.pen.0 = (self.pen.0 + 8) % 192;
                self.fill(cell(self.pen), 0xe0);
                Rect::new(own.x, own.y, 16, 16)
            }
            Paint::Caret(by) => {
                self.fill(own, 0x10);
                self.pen.0 = (self.pen.0 + u32::from(*by)) % 192;
                self.fill(cell(self.pen), 0xe0);
                Rect::new(0, own.y, 200, 16)
            }
            Paint::Rect(rect, value) => {
                self.fill(*rect, *value);
                *rect
            }
            Paint::Noise(rect, seed) => {
                for at in 0..u64::from(rect.width * rect.height) {
                    let pixel = (seed.wrapping_mul(2 * at + 1) >> 29) as u8 & 0xe0;
                    let (x, y) = (at as u32 % rect.width, at as u32 / rect.width);
                    self.fill(Rect::new(rect.x + x, rect.y + y, 1, 1), pixel);
                }
                *rect
            }
            Paint::Line => {
                self.fill(own, 0x10);
                self.pen = (0, (self.pen.1 + 16) % 64);
                self.fill(cell(self.pen), 0xe0);
                self.content.size().rect()
            }
        }
    }

    fn takes(&mut self, input: &Input) {
        let show = match input {
            Input::Key { code, modifiers, group } => {
                self.last += 1;
                let key = Key { code: *code, modifiers: *modifiers, group: *group };
                self.echo.key(self.now, KeyId(self.last), key)
            }
            Input::Paint { paint, lie, answered } => {
                let changed = self.paint(paint);
                let damage = match lie {
                    Lie::None => Region::from(changed),
                    Lie::Nothing => Region::new(),
                    Lie::Everything => Region::from(Rect::new(0, 0, u32::MAX, u32::MAX)),
                    Lie::Elsewhere(rect) => Region::from(*rect),
                };
                let answered = answered.map(|back| KeyId((self.last + 2).saturating_sub(back.into())));
                self.echo.content(self.now, &self.content, &damage, Answered(answered))
            }
            Input::Late(back) => self.echo.late(self.now, KeyId(self.last.saturating_sub((*back).into()))),
            Input::Hint(rect, is_sensitive) => {
                let purpose = if *is_sensitive { Purpose::Sensitive } else { Purpose::Normal };
                self.echo.hint(&self.content, *rect, purpose)
            }
            Input::Resize(width, height, format) => {
                let format = Format::ALL[usize::from(*format) % Format::ALL.len()];
                self.content = Content::new(Size::new(*width, *height).expect("a size"), format);
                self.pen = (0, 0);
                self.echo.content(self.now, &self.content, &Region::new(), Answered(None))
            }
            Input::Wait(millis) => {
                self.now += Duration::from_millis(*millis);
                None
            }
            Input::Disturbed => self.echo.disturbed(),
            Input::Forget => self.echo.forget(),
            Input::Timeout => self.echo.timeout_passed(self.now),
        };
        self.check(show);
    }

    fn check(&self, show: Option<Show>) {
        assert!(self.echo.memory() <= MAX_MEMORY, "{} bytes", self.echo.memory());
        let Some(Show::Overlay(overlay)) = show else { return };
        assert!(self.content.size().rect().contains(overlay.rect), "{:?} is not inside", overlay.rect);
        assert_eq!(overlay.pixels.len() as u64, overlay.rect.area());
        assert!(overlay.pixels.iter().all(|pixel| pixel >> 24 == 255), "a pixel is translucent");
        assert!(overlay.marks.len() <= MAX_SHOWN && overlay.last.0 <= self.last);
        assert!(overlay.marks.iter().all(|mark| overlay.rect.contains(mark.rect)), "{:?}", overlay.marks);
    }
}

fn rect() -> impl Strategy<Value = Rect> {
    let near = (0..210u32, 0..70u32, 1..60u32, 1..40u32);
    near.prop_map(|(x, y, width, height)| Rect::new(x, y, width, height))
}

fn anywhere() -> impl Strategy<Value = Rect> {
    prop_oneof![
        rect(),
        any::<[u32; 4]>().prop_map(|[x, y, width, height]| Rect::new(x, y, width, height)),
        Just(Rect::new(u32::MAX, 0, 9, 9)),
    ]
}

fn paint() -> impl Strategy<Value = Paint> {
    prop_oneof![
        8 => any::<u8>().prop_map(Paint::Letter),
        1 => any::<u8>().prop_map(Paint::Caret),
        1 => (rect(), any::<u8>()).prop_map(|(rect, value)| Paint::Rect(rect, value)),
        1 => (rect(), any::<u64>()).prop_map(|(rect, seed)| Paint::Noise(rect, seed)),
        1 => Just(Paint::Line),
    ]
}

fn lie() -> impl Strategy<Value = Lie> {
    prop_oneof![
        6 => Just(Lie::None),
        1 => Just(Lie::Nothing),
        1 => Just(Lie::Everything),
        1 => anywhere().prop_map(Lie::Elsewhere),
    ]
}

/// Mostly a letter that is typed and answered, so that much is shown that can be contradicted.
fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let code = prop_oneof![8 => 30..36u16, 1 => Just(28), 1 => Just(14), 1 => Just(105), 1 => Just(106), 1 => any::<u16>()];
    let plain = prop_oneof![9 => Just((0, 0)), 1 => any::<(u8, u8)>()];
    let key = (code, plain).prop_map(|(code, (modifiers, group))| Input::Key { code, modifiers, group });
    let answered = prop_oneof![6 => Just(Some(2)), 1 => any::<Option<u8>>()];
    let painted =
        (paint(), lie(), answered).prop_map(|(paint, lie, answered)| Input::Paint { paint, lie, answered });
    let typed = (30..36u16).prop_map(|code| {
        let (paint, lie, answered) = (Paint::Letter(code as u8), Lie::None, Some(2));
        vec![Input::Key { code, modifiers: 0, group: 0 }, Input::Paint { paint, lie, answered }]
    });
    let other = prop_oneof![
        4 => key,
        4 => painted,
        1 => any::<u8>().prop_map(|back| Input::Late(back % 8)),
        1 => (anywhere(), prop::bool::weighted(0.1)).prop_map(|(rect, is)| Input::Hint(rect, is)),
        1 => (1..260u32, 1..90u32, any::<u8>()).prop_map(|(width, height, format)| Input::Resize(width, height, format)),
        1 => (0..40_000u64).prop_map(Input::Wait),
        1 => prop_oneof![Just(Input::Disturbed), Just(Input::Forget), Just(Input::Timeout)],
    ];
    let some = prop_oneof![6 => typed, 1 => other.prop_map(|input| vec![input])];
    prop::collection::vec(some, 1..160).prop_map(|parts| parts.into_iter().flatten().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_inputs_break_it_and_no_picture_leaves_the_surface(inputs in inputs()) {
        let mut stage = Stage::new();
        stage.takes(&Input::Paint { paint: Paint::Caret(0), lie: Lie::Everything, answered: None });
        inputs.iter().for_each(|input| stage.takes(input));
    }
}

/// The property would hold of a predictor that shows nothing.
#[test]
fn letters_that_are_typed_and_answered_are_shown() {
    let mut stage = Stage::new();
    stage.takes(&Input::Paint { paint: Paint::Caret(0), lie: Lie::Everything, answered: None });
    let mut shown = 0;
    for number in 0..20u16 {
        let code = 30 + number % 4;
        stage.last += 1;
        let show = stage.echo.key(stage.now, KeyId(stage.last), Key { code, modifiers: 0, group: 0 });
        shown += usize::from(matches!(show, Some(Show::Overlay(_))));
        stage.takes(&Input::Paint { paint: Paint::Letter(code as u8), lie: Lie::None, answered: Some(2) });
    }
    assert!(shown > 8, "{shown} of 20");
}

/// A caret that is known is found again by a search of all that changes, which takes milliseconds in a large surface.
#[test]
fn a_film_is_not_searched_for_a_caret_while_no_key_is_typed() {
    let mut film = Film::new(true);
    let size = film.content.size();
    let full = Region::full(size);
    film.key(28);
    film.fill(size.rect(), 0x13);
    let shows = |film: &mut Film, value: u8| {
        film.fill(Rect::new(400, 400, 300, 300), value);
        let before = film.echo.memory();
        film.echo.content(film.now, &film.content, &full, Answered(Some(KeyId(film.last))));
        // The strip of a line that was found.
        film.echo.memory() > before + 10_000
    };
    assert!((0..100).all(|frame| !shows(&mut film, frame)), "there is no caret yet");
    film.fill(Rect::new(80, 160, 1, 16), 0xe3);
    assert!(!shows(&mut film, 0), "it was looked for");
    film.key(30);
    film.fill(Rect::new(80, 160, 1, 16), 0x13);
    film.fill(Rect::new(81, 163, 3, 9), 0xd3);
    film.fill(Rect::new(88, 160, 1, 16), 0xe3);
    assert!(shows(&mut film, 0), "the answer to a key shows it");
}

/// Each hint is a look at some pixels, of which a program may send thousands in a turn.
#[test]
fn hints_that_find_nothing_are_not_heeded_without_end() {
    let mut film = Film::new(true);
    film.key(28);
    film.fill(film.content.size().rect(), 0x13);
    let full = Region::full(film.content.size());
    film.echo.content(film.now, &film.content, &full, Answered(Some(KeyId(film.last))));
    let hint = |film: &mut Film, x: u32| {
        film.echo.hint(&film.content, Rect::new(x, 160, 8, 16), Purpose::Normal);
        // The strip of a line that was found.
        film.echo.strip().is_some()
    };
    assert!((0..100).all(|x| !hint(&mut film, x)), "there is no caret");
    film.fill(Rect::new(80, 160, 1, 16), 0xe3);
    assert!(!hint(&mut film, 80), "it was heeded");
    film.key(30);
    assert!(hint(&mut film, 80), "after the next key it is");
}

/// `cargo test --release -p wayferry-echo --test attacks costs -- --ignored --nocapture`
#[test]
#[ignore = "checks nothing: it prints what a program can make a content cost"]
fn costs() {
    let pixel = |film: &str, at: usize| match film {
        "one colour" => 0x40,
        "pixels of the caret's colour, alone" => [0xe0, 0x10][at % 2],
        _ => (at.wrapping_mul(2_654_435_761) >> 13) as u8 & 0xe0,
    };
    for name in ["one colour", "pixels of the caret's colour, alone", "any pixels"] {
        for bar in [true, false] {
            let mut film = Film::new(bar);
            let size = film.content.size();
            let rows: Vec<u8> =
                (0..size.width() as usize + 1).flat_map(|at| [pixel(name, at) | 3; 4]).collect();
            let mut spent = Vec::new();
            for frame in 0..6u64 {
                let stride = size.width() as usize * 4;
                for y in 0..size.height() {
                    let from = 4 * ((u64::from(y) + frame) % 2) as usize;
                    film.content.write_row(y, 0, &rows[from..from + stride]);
                }
                if frame % 2 == 0 {
                    film.key(30);
                }
                let damage = Region::full(size);
                let begun = processor_time();
                film.echo.content(film.now, &film.content, &damage, Answered(Some(KeyId(film.last))));
                spent.push((processor_time() - begun).as_micros());
            }
            println!("{name}, {}: {spent:?} µs a frame", if bar { "bar" } else { "block" });
        }
    }
}

/// A large surface in which a caret was learned.
struct Film {
    echo: Echo,
    content: Content,
    now: Duration,
    last: u64,
}

impl Film {
    fn new(bar: bool) -> Self {
        let mut content = Content::new(Size::new(3840, 2160).expect("a size"), Format::Xrgb8888);
        content.fill(&[0x13; 4]);
        let mut film = Self { echo: Echo::new(), content, now: Duration::ZERO, last: 0 };
        let width = if bar { 1 } else { 8 };
        for at in 0..9u32 {
            film.key(30 + at as u16 % 4);
            film.fill(Rect::new(at * 8, 0, 8, 16), 0x13);
            film.fill(Rect::new(at * 8 + 1 + at % 4, 3, 3, 9), 0xd3);
            film.fill(Rect::new(at * 8 + 8, 0, width, 16), 0xe3);
            let damage = Region::from(Rect::new(at * 8, 0, 8 + width, 16));
            film.echo.content(film.now, &film.content, &damage, Answered(Some(KeyId(film.last))));
        }
        film
    }

    fn key(&mut self, code: u16) {
        self.last += 1;
        self.now += Duration::from_millis(100);
        self.echo.key(self.now, KeyId(self.last), Key { code, modifiers: 0, group: 0 });
    }

    fn fill(&mut self, rect: Rect, value: u8) {
        let row = vec![value; rect.width as usize * 4];
        (rect.y..rect.bottom()).for_each(|y| self.content.write_row(y, rect.x, &row));
    }
}

/// What this thread has used of a processor.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
