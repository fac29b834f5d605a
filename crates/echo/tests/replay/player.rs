//! Plays a recording to a predictor at some round-trip time, in virtual time, and judges what it showed.
//!
//! A key is known at once, its answer a round trip later. What the predictor says of itself is not asked: the picture
//! that a key was shown with is compared with the last frame before the next key.

use std::collections::BTreeMap;
use std::time::Duration;

use wayferry_echo::{Answered, Echo, Key, KeyId, MAX_SHOWN, Marked, Overlay, Show};
use wayferry_pixels::{Content, Format, Layout, Rect, Region};

use crate::recording::{Event, Recording};

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Not shown before its answer.
    Awaited,
    /// Only its place was shown.
    Held,
    /// Every pixel was right.
    Exact,
    /// The letter was right, in another colour; or what is right of it was not.
    Colour,
    /// Another picture.
    Wrong,
}

/// A recording that was played.
#[allow(dead_code, reason = "each test asks for some of it")]
pub(crate) struct Played {
    pub(crate) round_trip: Duration,
    /// What each key's picture was, if it was shown when it was pressed.
    pub(crate) outcomes: Vec<Outcome>,
    /// Keys that were shown later, but before their answer, and how much later.
    pub(crate) revealed: BTreeMap<u64, Duration>,
    /// Per key, how long the user saw nothing of it.
    pub(crate) perceived: Vec<Duration>,
    /// The longest that any key was shown beyond the round trip.
    pub(crate) longest: Duration,
    pub(crate) memory: usize,
    /// What is still drawn at the end.
    pub(crate) is_left: bool,
    /// Time spent in the predictor, and how often it was called.
    pub(crate) spent: (Duration, u32),
}

/// Something that happens.
enum Happening<'a> {
    Frame(Rect, &'a [u8], Option<KeyId>),
    Late(KeyId),
    Key(KeyId, Key),
}

/// Plays it to `echo`, which may have learned already; `before` keys were played to it.
pub(crate) fn play(recording: &Recording, echo: &mut Echo, round_trip: Duration, before: u64) -> Played {
    let happenings = happenings(recording, round_trip);
    let mut screen = Screen::new(recording);
    let mut shown: BTreeMap<u64, Overlay> = BTreeMap::new();
    let (mut drawn, mut since) = (None::<Overlay>, BTreeMap::new());
    let (mut revealed, mut longest, mut memory) = (BTreeMap::new(), Duration::ZERO, 0);
    let id = |number: KeyId| KeyId(number.0 + before);
    let mut spent = (Duration::ZERO, 0);
    for (now, happening) in happenings {
        let damage = match &happening {
            Happening::Frame(rect, pixels, _) => screen.paint(*rect, pixels),
            _ => Region::new(),
        };
        let begun = processor_time();
        let (pressed, show) = match happening {
            Happening::Frame(_, _, answered) => {
                (None, echo.content(now, &screen.content, &damage, Answered(answered.map(id))))
            }
            Happening::Late(late) => (None, echo.late(now, id(late))),
            Happening::Key(number, key) => (Some((number, now)), echo.key(now, id(number), key)),
        };
        spent = (spent.0 + (processor_time() - begun), spent.1 + 1);
        memory = memory.max(echo.memory());
        match show {
            Some(Show::Overlay(overlay)) => {
                assert!(overlay.marks.len() <= MAX_SHOWN, "{:?}", overlay.marks);
                drawn = Some(overlay);
            }
            Some(Show::Clear) => drawn = None,
            None => {}
        }
        let last = drawn.as_ref().map_or(0, |overlay| overlay.last.0 - before);
        if let Some((id, at)) = pressed {
            since.insert(id.0, at);
        }
        for (id, at) in &since {
            let is_shown = *id <= last && drawn.as_ref().is_some_and(|overlay| overlay.since <= *at);
            if is_shown && !shown.contains_key(id) {
                let at_once = pressed.is_some_and(|(pressed, _)| pressed.0 == *id);
                if !at_once {
                    revealed.insert(*id, now - *at);
                }
                shown.insert(*id, drawn.clone().expect("it is drawn"));
            }
            if is_shown {
                longest = longest.max((now - *at).saturating_sub(round_trip));
            }
        }
        since.retain(|id, at| now < *at + round_trip + Duration::from_secs(1) || *id > last);
    }
    let is_left = drawn.is_some();
    let (outcomes, perceived) = (Vec::new(), Vec::new());
    let mut played = Played { round_trip, outcomes, revealed, perceived, longest, memory, is_left, spent };
    judged(recording, &shown, &mut played);
    played
}

/// What this thread has used of a processor: other programs do not count.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Frames and latenesses come a round trip late, keys at once.
fn happenings(recording: &Recording, round_trip: Duration) -> Vec<(Duration, Happening<'_>)> {
    let (mut happenings, mut last, mut answers) = (Vec::new(), None::<(KeyId, Duration)>, Vec::new());
    for (at, event) in &recording.events {
        match event {
            Event::Key(key) => {
                let id = KeyId(last.map_or(1, |(id, _)| id.0 + 1));
                last = Some((id, *at));
                happenings.push((*at, Happening::Key(id, *key)));
                happenings.push((*at + round_trip + patience(&mut answers), Happening::Late(id)));
            }
            Event::Frame(rect, pixels) => {
                answers.extend(last.map(|(_, pressed)| *at - pressed).filter(|time| *time < SETTLED));
                let answered = last.map(|(id, _)| id);
                happenings.push((*at + round_trip, Happening::Frame(*rect, pixels, answered)));
            }
        }
    }
    happenings.sort_by_key(|(at, happening)| (*at, matches!(happening, Happening::Key(..))));
    happenings
}

/// How long a program may take: twice the 95th of a hundred of its answers, at least 50 ms.
fn patience(answers: &mut [Duration]) -> Duration {
    answers.sort_unstable();
    let most = answers.get(answers.len() * 95 / 100).copied().unwrap_or_default();
    (2 * most).clamp(Duration::from_millis(50), SETTLED)
}

/// The surface as the display has it.
struct Screen {
    content: Content,
    layout: Layout,
    rows: Vec<u8>,
}

impl Screen {
    fn new(recording: &Recording) -> Self {
        let (size, format) = (recording.size, Format::Xrgb8888);
        let content = Content::new(size, format);
        let stride = content.stride();
        let rows = vec![0; stride * size.height() as usize];
        let layout = Layout::new(0, stride as u64, size, format).expect("a layout");
        Self { content, layout, rows }
    }

    /// What is different now.
    fn paint(&mut self, rect: Rect, pixels: &[u8]) -> Region {
        let (stride, width) = (self.content.stride(), rect.width as usize * 4);
        for (y, row) in (rect.y as usize..).zip(pixels.chunks_exact(width)) {
            self.rows[y * stride + rect.x as usize * 4..][..width].copy_from_slice(row);
        }
        let read = |offset: u64, target: &mut [u8]| {
            target.copy_from_slice(&self.rows[offset as usize..][..target.len()]);
            Ok::<(), ()>(())
        };
        self.content.absorb(&self.layout, &Region::from(rect), read).expect("rows are there")
    }
}

/// Compares each picture with the last frame that answers its key.
fn judged(recording: &Recording, shown: &BTreeMap<u64, Overlay>, played: &mut Played) {
    let mut screen = Screen::new(recording);
    let (mut id, mut open) = (0, None::<(Duration, Option<Duration>)>);
    let mut writes = false;
    let mut settle =
        |screen: &Screen, writes: bool, id: u64, (pressed, answer): (Duration, Option<Duration>)| {
            let revealed = played.revealed.get(&id);
            let overlay = shown.get(&id).filter(|_| revealed.is_none());
            played
                .outcomes
                .push(overlay.map_or(Outcome::Awaited, |overlay| judge(overlay, writes, &screen.content)));
            let late = answer.map_or(SETTLED, |answer| answer - pressed) + played.round_trip;
            let at_once = overlay.map(|_| Duration::ZERO);
            played.perceived.push(at_once.or(revealed.copied()).unwrap_or(late));
        };
    for (at, event) in &recording.events {
        match event {
            Event::Key(key) => {
                open.take().into_iter().for_each(|open| settle(&screen, writes, id, open));
                (id, open) = (id + 1, Some((*at, None)));
                writes = !MOVES.contains(&key.code);
            }
            Event::Frame(rect, pixels) => {
                match &mut open {
                    Some((pressed, answer)) if *at - *pressed < SETTLED || answer.is_none() => {
                        *answer = Some(*at)
                    }
                    // The caret blinks, or the program does something by itself.
                    _ => open.take().into_iter().for_each(|open| settle(&screen, writes, id, open)),
                }
                screen.paint(*rect, pixels);
            }
        }
    }
    open.take().into_iter().for_each(|open| settle(&screen, writes, id, open));
}

/// One picture against the truth; `writes` is whether its newest key wrote a letter.
fn judge(overlay: &Overlay, writes: bool, content: &Content) -> Outcome {
    let last = overlay.marks.last().filter(|_| writes);
    // Letters before it are judged with their own keys.
    let from = last.map_or(0, |mark| mark.rect.x - overlay.rect.x);
    let rect =
        Rect::new(overlay.rect.x + from, overlay.rect.y, overlay.rect.width - from, overlay.rect.height);
    let truth = pixels(content, rect);
    let own = overlay.pixels.chunks_exact(overlay.rect.width as usize).flat_map(|row| &row[from as usize..]);
    let predicted: Vec<u32> = own.map(|pixel| pixel & 0xff_ffff).collect();
    let is_unknown = overlay.marks.iter().any(|mark| mark.kind == Marked::Unknown);
    if last.map_or(is_unknown, |mark| mark.kind == Marked::Unknown) {
        return Outcome::Held;
    }
    if truth == predicted {
        return Outcome::Exact;
    }
    if truth.iter().zip(&predicted).all(|(a, b)| farthest(*a, *b) <= 12) {
        return Outcome::Colour;
    }
    let cell = |pixels: &[u32], width: u32| -> Vec<u32> {
        pixels.chunks_exact(rect.width as usize).flat_map(|row| row[..width as usize].to_vec()).collect()
    };
    let width = last.map_or(rect.width, |mark| mark.rect.width);
    let is_letter = same_letter(&cell(&predicted, width), &cell(&truth, width), width as usize);
    if is_letter { Outcome::Colour } else { Outcome::Wrong }
}

fn pixels(content: &Content, rect: Rect) -> Vec<u32> {
    let row = |y| content.row(y, rect.x, rect.width).chunks_exact(4);
    let pixel = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("a pixel")) & 0xff_ffff;
    (rect.y..rect.bottom()).flat_map(|y| row(y).map(pixel)).collect()
}

/// Whether two cells have ink at the same places, but for rows that are a rule from side to side.
fn same_letter(predicted: &[u32], truth: &[u32], width: usize) -> bool {
    let ink = |pixels: &[u32]| -> Vec<f64> {
        let paper = pixels.iter().max_by_key(|pixel| pixels.iter().filter(|other| other == pixel).count());
        let paper = paper.copied().unwrap_or(0);
        pixels.iter().map(|pixel| f64::from(farthest(*pixel, paper))).collect()
    };
    let (mut a, mut b) = (ink(predicted), ink(truth));
    for (a, b) in a.chunks_exact_mut(width).zip(b.chunks_exact_mut(width)) {
        let is_rule = |row: &[f64]| row.iter().filter(|ink| **ink > 0.0).count() * 5 > width * 4;
        if is_rule(a) || is_rule(b) {
            a.fill(0.0);
            b.fill(0.0);
        }
    }
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    if product(&a, &a) == 0.0 {
        return product(&b, &b) == 0.0;
    }
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt() > 0.85
}

fn farthest(a: u32, b: u32) -> u32 {
    (0..3).map(|at| (a >> (8 * at) & 255).abs_diff(b >> (8 * at) & 255)).max().unwrap_or(0)
}

/// BackSpace, Left and Right.
const MOVES: [u16; 3] = [14, 105, 106];

/// From a key's press, until which frames are taken for its answer.
const SETTLED: Duration = Duration::from_millis(120);
