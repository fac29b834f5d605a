//! A toy terminal with honest programs and with spiteful ones: what must hold for anything that they draw.

#[path = "replay/player.rs"]
mod player;
#[allow(dead_code, reason = "the corpus is another test's")]
#[path = "replay/recording.rs"]
mod recording;
#[allow(dead_code, reason = "other tests use the rest")]
mod toy;

use std::time::Duration;

use player::{Outcome, Played, play};
use proptest::prelude::*;
use recording::Recording;
use toy::hidden::ALL;
use toy::{BACKSPACE, LEFT, Letter, RETURN, RIGHT, Toy, glyph_of, letter, plain};
use wayferry_echo::{Answered, Echo, Key, KeyId, MAX_MEMORY};
use wayferry_pixels::{Content, Format, Region, Size};

const SOON: Duration = Duration::from_millis(3);

fn played(recording: &Recording, round_trip: u64) -> Played {
    let played = play(recording, &mut Echo::new(), Duration::from_millis(round_trip), 0);
    assert!(played.memory <= MAX_MEMORY, "{} bytes", played.memory);
    assert!(!played.is_left, "something is drawn at the end");
    assert!(played.longest <= Duration::from_millis(120), "shown for {:?} too long", played.longest);
    played
}

/// A line that is edited: letters are put in, or written over others.
fn edited(seed: u64, replaces: bool) -> Recording {
    let mut toy = Toy::new(seed);
    let (mut length, mut at) = (0, 0);
    for _ in 0..180 {
        let key = match toy.dice.below(24) {
            _ if length == 50 => plain(RETURN),
            0 => plain(RETURN),
            1 | 2 => plain(BACKSPACE),
            3..=5 => plain(LEFT),
            6 | 7 => plain(RIGHT),
            number => letter(number),
        };
        toy.press(key);
        match key.code {
            RETURN => {
                toy.new_line();
                toy.say([1016, 1057]);
                (length, at) = (0, 0);
            }
            BACKSPACE if at > 0 => {
                toy.at.0 -= 1;
                toy.close();
                (length, at) = (length - 1, at - 1);
            }
            LEFT if at > 0 => (toy.at.0, at) = (toy.at.0 - 1, at - 1),
            RIGHT if at < length => (toy.at.0, at) = (toy.at.0 + 1, at + 1),
            BACKSPACE | LEFT | RIGHT => {}
            _ => {
                if !replaces || at == length {
                    toy.open();
                    length += 1;
                }
                toy.put(glyph_of(key));
                at += 1;
            }
        }
        toy.show(SOON);
    }
    toy.recording()
}

/// What a spiteful program does with a letter.
#[derive(Clone, Copy, Debug)]
enum Spite {
    /// Now and then another letter.
    OtherLetters,
    /// Answers that come too late.
    Late,
    /// The letter in another place.
    Elsewhere,
    /// The line goes and comes back.
    Flicker,
    /// Another colour each time.
    Colours,
    /// All of that.
    All,
}

const SPITES: [Spite; 6] =
    [Spite::OtherLetters, Spite::Late, Spite::Elsewhere, Spite::Flicker, Spite::Colours, Spite::All];

fn spited(seed: u64, spite: Spite) -> Recording {
    let mut toy = Toy::new(seed);
    for _ in 0..200 {
        let key = if toy.dice.below(25) == 0 { plain(RETURN) } else { letter(toy.dice.below(9)) };
        // An answer that does not come is known to be late before the next key.
        toy.wait(Duration::from_millis(60));
        toy.press(key);
        if key.code == RETURN {
            toy.new_line();
            toy.show(SOON);
            continue;
        }
        let now = match spite {
            Spite::All => SPITES[toy.dice.below(5)],
            spite => spite,
        };
        let is_spited = toy.dice.below(6) == 0;
        let after = if matches!(now, Spite::Late) && is_spited { 60 } else { 3 };
        match now {
            Spite::OtherLetters if is_spited => toy.put(1040),
            Spite::Elsewhere if is_spited => {
                let (x, y) = (toy.dice.below(60), toy.dice.below(7));
                let ink = toy.ink;
                toy.set(x, y, Some(Letter { glyph: glyph_of(key), ink }));
            }
            Spite::Colours => {
                let ink = toy.dice.word() as u32 & 0xff_ffff;
                toy.put_letter(Some(Letter { glyph: glyph_of(key), ink }));
            }
            Spite::Flicker if is_spited => {
                let at = std::mem::take(&mut toy.at);
                toy.show(Duration::from_millis(1));
                toy.at = at;
                toy.put(glyph_of(key));
            }
            _ => toy.put(glyph_of(key)),
        }
        toy.show(Duration::from_millis(after));
    }
    toy.recording()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_honest_line_is_never_predicted_wrong(seed: u64, round_trip in 0u64..500) {
        let played = played(&edited(seed, false), round_trip);
        prop_assert!(!played.outcomes.contains(&Outcome::Wrong), "{:?}", played.outcomes);
    }

    /// Whether letters replace others is only seen when the first one does.
    #[test]
    fn a_line_that_is_written_over_is_seldom_predicted_wrong(seed: u64) {
        let played = played(&edited(seed, true), 0);
        let wrong = played.outcomes.iter().filter(|outcome| **outcome == Outcome::Wrong).count();
        prop_assert!(wrong * 12 <= played.outcomes.len(), "{:?}", played.outcomes);
    }

    /// Two letters must come true in silence before the next one is shown.
    #[test]
    fn no_two_wrong_letters_follow_each_other(seed: u64, spite in 0usize..6) {
        let played = played(&spited(seed, SPITES[spite]), 0);
        for at in 0..played.outcomes.len() {
            let next = played.outcomes[at + 1..].iter().take(2);
            let is_silent = next.into_iter().all(|outcome| *outcome == Outcome::Awaited);
            prop_assert!(played.outcomes[at] != Outcome::Wrong || is_silent, "{at}: {:?}", played.outcomes);
        }
    }

    #[test]
    fn no_program_makes_the_predictor_grow_or_keeps_a_picture_up(seed: u64, spite in 0usize..6, round_trip in 0u64..500) {
        played(&spited(seed, SPITES[spite]), round_trip);
    }

    #[test]
    fn prompts_of_any_kind_show_nothing(seed: u64, hides in 0usize..10, round_trip in 0u64..500) {
        let mut toy = Toy::new(seed);
        for number in 0..40 {
            let key = letter(number);
            toy.press(key);
            toy.put(glyph_of(key));
            toy.show(SOON);
        }
        toy.press(plain(RETURN));
        toy.new_line();
        toy.show(SOON);
        toy.wait(Duration::from_millis(700));
        let first = (0..14).map(|_| {
            let key = letter(1 + toy.dice.below(9));
            let index = toy.press(key);
            ALL[hides].answer(&mut toy, key);
            index
        }).min().unwrap_or(0);
        let played = played(&toy.recording(), round_trip);
        let shown = played.outcomes[first - 1..].iter().any(|outcome| *outcome != Outcome::Awaited);
        prop_assert!(!shown && played.revealed.keys().all(|key| *key < first as u64));
    }
}

#[test]
fn two_hundred_keys_a_second_leave_nothing_behind() {
    let mut toy = Toy::new(5);
    for number in 0..400 {
        let key = letter(number % 20);
        toy.wait(Duration::from_millis(5));
        toy.press_now(key);
        toy.put(glyph_of(key));
        toy.show(SOON);
    }
    let recording = toy.recording();
    for round_trip in [0, 100, 500] {
        played(&recording, round_trip);
    }
}

#[test]
fn surfaces_of_one_pixel_and_of_other_formats_show_nothing() {
    let size = Size::new(1, 1).expect("a size");
    for format in Format::ALL {
        let mut content = Content::new(size, format);
        let mut echo = Echo::new();
        for number in 0..40 {
            let (now, id) = (Duration::from_millis(100 * number), KeyId(number));
            assert_eq!(echo.key(now, id, letter(number as usize)), None);
            content.fill(&vec![number as u8 | 0xc0; format.bytes_per_pixel()]);
            assert_eq!(echo.content(now, &content, &Region::full(size), Answered(Some(id))), None);
            assert_eq!(echo.late(now, id), None);
        }
    }
}

#[test]
fn a_key_of_which_nothing_is_heard_is_given_up() {
    let mut echo = Echo::new();
    let key = Key { code: 30, modifiers: 0, group: 0 };
    echo.key(Duration::from_secs(1), KeyId(1), key);
    let at = echo.timeout().expect("a key is outstanding");
    echo.timeout_passed(at);
    assert_eq!(echo.timeout(), None);
}
