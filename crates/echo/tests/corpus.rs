//! Recorded programs, played at several round-trip times: how much is shown at once, and how much of it is right.
//!
//! The rules were tuned on the half `tuned` alone. The table of docs/benchmarks.md is what `table` prints:
//! `cargo test --release -p wayferry-echo --test corpus table -- --ignored --nocapture`.

#[path = "replay/player.rs"]
mod player;
#[path = "replay/recording.rs"]
mod recording;

use std::time::Duration;

use player::{Outcome, Played, play};
use recording::{Event, Recording};
use wayferry_echo::{Echo, MAX_MEMORY};

const ROUND_TRIPS: [u64; 4] = [0, 100, 300, 500];
const RETURN: u16 = 28;

/// At least so many of a hundred keys are shown at once at a round trip of 100 ms, and of those so many are exact: with
/// nothing learned before, and after the same was typed once.
const FLOORS: [(&str, f64, f64, f64); 17] = [
    ("tuned/foot-bash", 73.0, 100.0, 85.0),
    ("tuned/foot-fish", 71.0, 20.0, 83.0),
    ("tuned/foot-nano", 85.5, 100.0, 94.0),
    ("tuned/foot-vim", 74.0, 100.0, 81.0),
    ("tuned/foot-vim-code", 66.0, 70.0, 80.0),
    ("tuned/mousepad", 85.5, 100.0, 94.0),
    ("tuned/weston-bash", 73.0, 100.0, 83.0),
    ("held/foot-bash", 75.0, 98.0, 87.0),
    ("held/foot-german", 69.0, 100.0, 88.0),
    ("held/foot-nano", 84.0, 98.0, 92.0),
    ("held/foot-python", 62.0, 99.0, 79.0),
    ("held/foot-scaled", 74.0, 98.0, 86.0),
    ("held/foot-underline", 75.0, 97.0, 87.0),
    ("held/foot-vim", 67.0, 97.0, 74.0),
    ("held/mousepad", 78.0, 98.0, 86.0),
    ("held/stars", 46.0, 95.0, 62.0),
    ("held/weston-bash", 75.0, 100.0, 87.0),
];

#[test]
fn programs_show_what_the_table_says() {
    for (name, shown, exact, warm) in FLOORS {
        let recording = Recording::named(name);
        let mut echo = Echo::new();
        let cold = Figures::of(&played(&recording, &mut echo, 100));
        assert!(cold.shown >= shown, "{name}: {:.1} % shown, expected {shown}", cold.shown);
        assert!(cold.exact >= exact, "{name}: {:.1} % exact, expected {exact}", cold.exact);
        let again = Figures::of(&again(&recording, &mut echo, 100));
        assert!(again.shown >= warm, "{name}: {:.1} % shown when warm, expected {warm}", again.shown);
    }
}

/// Of text that advances by fractions of a pixel at least so many of a hundred keys are shown at once, and no more than
/// two of a hundred of these are wrong; so in proportional fonts, where less is shown.
#[test]
fn fractions_and_proportional_fonts_are_seldom_predicted_wrong() {
    let cases = [
        ("tuned/firefox-mono", 79.0),
        ("tuned/firefox-serif", 0.0),
        ("tuned/mousepad-sans", 54.0),
        ("held/firefox-mono", 77.0),
        ("held/firefox-sans", 0.0),
        ("held/firefox-scaled", 81.0),
        ("held/mousepad-serif", 58.0),
        ("held/entry", 8.0),
    ];
    for (name, floor) in cases {
        let Figures { keys, shown, wrong, .. } =
            Figures::of(&played(&Recording::named(name), &mut Echo::new(), 100));
        assert!(shown >= floor, "{name}: {shown:.1} % shown, expected {floor}");
        assert!(wrong as f64 <= shown * keys as f64 / 5000.0, "{name}: {wrong} of {keys} keys wrong");
    }
}

#[test]
fn nothing_is_shown_of_what_less_is_told() {
    for name in ["tuned/foot-less", "held/foot-less"] {
        let played = played(&Recording::named(name), &mut Echo::new(), 100);
        assert!(Figures::of(&played).shown <= 1.0, "{name}");
    }
}

#[test]
fn no_letter_of_a_hidden_prompt_is_shown() {
    let cases: [(&str, &[usize]); 7] = [
        ("tuned/prompts", &[2, 6, 8, 10]),
        ("held/prompts", &[2, 6, 8, 10]),
        ("tuned/stars", &[2, 5]),
        ("held/stars", &[2, 5]),
        ("tuned/zenity-password", &[0]),
        ("held/password-entry", &[0]),
        ("held/firefox-password", &[4]),
    ];
    for (name, secret) in cases {
        let recording = Recording::named(name);
        for round_trip in ROUND_TRIPS {
            let played = played(&recording, &mut Echo::new(), round_trip);
            for line in secret {
                let shown = keys_of(&recording, *line).filter(|key| was_shown(&played, *key)).count();
                assert_eq!(shown, 0, "{name}, line {line}, RTT {round_trip}");
            }
        }
    }
}

/// The terminal echoes them until the prompt is there.
#[test]
fn few_letters_typed_ahead_of_a_prompt_are_shown_once_it_is_silent() {
    let recording = Recording::named("tuned/ahead");
    for round_trip in ROUND_TRIPS {
        let played = played(&recording, &mut Echo::new(), round_trip);
        for line in [2, 5] {
            let wrong =
                keys_of(&recording, line).filter(|key| played.outcomes[*key] == Outcome::Wrong).count();
            assert!(wrong <= 3, "line {line}, RTT {round_trip}: {wrong}");
        }
    }
}

#[test]
fn a_wrong_picture_goes_with_the_answer() {
    for recording in ["tuned", "held"].iter().flat_map(|half| Recording::all(half)) {
        for round_trip in ROUND_TRIPS {
            let played = played(&recording, &mut Echo::new(), round_trip);
            // A key is late after twice what most of a program's answers take: in a browser, longer than in the others.
            let longest = if recording.name.starts_with("firefox") { 120 } else { 60 };
            let longest = Duration::from_millis(longest);
            assert!(played.longest <= longest, "{}: {:?}", recording.name, played.longest);
        }
    }
}

#[test]
#[ignore = "checks nothing: it prints the table"]
fn table() {
    for half in ["tuned", "held"] {
        for recording in Recording::all(half) {
            for round_trip in ROUND_TRIPS {
                let mut echo = Echo::new();
                let cold = Figures::of(&played(&recording, &mut echo, round_trip));
                let warm = Figures::of(&again(&recording, &mut echo, round_trip));
                println!("| {half}/{} | {round_trip} | {cold} | {:.1} |", recording.name, warm.shown);
            }
        }
    }
}

/// Played, with what holds for every recording.
fn played(recording: &Recording, echo: &mut Echo, round_trip: u64) -> Played {
    played_after(recording, echo, round_trip, 0)
}

/// The same once more, with what was learned.
fn again(recording: &Recording, echo: &mut Echo, round_trip: u64) -> Played {
    echo.disturbed();
    played_after(recording, echo, round_trip, 1000)
}

fn played_after(recording: &Recording, echo: &mut Echo, round_trip: u64, before: u64) -> Played {
    let played = play(recording, echo, Duration::from_millis(round_trip), before);
    assert!(played.memory <= MAX_MEMORY, "{}: {} bytes", recording.name, played.memory);
    assert!(!played.is_left, "{}: something is drawn at the end", recording.name);
    played
}

/// The keys of a line as it was typed, counted from 0.
fn keys_of(recording: &Recording, line: usize) -> impl Iterator<Item = usize> {
    let codes = recording.events.iter().filter_map(|(_, event)| match event {
        Event::Key(key) => Some(key.code),
        Event::Frame(..) => None,
    });
    let mut lines = 0;
    let numbered: Vec<(usize, usize, u16)> = codes
        .enumerate()
        .map(|(at, code)| {
            lines += usize::from(code == RETURN);
            (at, lines, code)
        })
        .collect();
    numbered.into_iter().filter(move |(_, of, code)| *of == line && *code != RETURN).map(|(at, ..)| at)
}

fn was_shown(played: &Played, key: usize) -> bool {
    played.outcomes[key] != Outcome::Awaited || played.revealed.contains_key(&(key as u64 + 1))
}

/// A row of the table.
struct Figures {
    keys: usize,
    shown: f64,
    exact: f64,
    colour: usize,
    wrong: usize,
    held: usize,
    revealed: usize,
    perceived: u128,
    memory: usize,
    micros: u128,
}

impl Figures {
    fn of(played: &Played) -> Self {
        let count = |outcome| played.outcomes.iter().filter(|other| **other == outcome).count();
        let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let (exact, colour, wrong) = (count(Outcome::Exact), count(Outcome::Colour), count(Outcome::Wrong));
        let (keys, shown) = (played.outcomes.len(), exact + colour + wrong);
        Self {
            keys,
            shown: share(shown, keys),
            exact: if shown == 0 { 100.0 } else { share(exact, shown) },
            colour,
            wrong,
            held: count(Outcome::Held),
            revealed: played.revealed.len(),
            perceived: (played.perceived.iter().sum::<Duration>() / keys.max(1) as u32).as_millis(),
            memory: played.memory.div_ceil(1024),
            micros: played.spent.0.as_micros() / u128::from(played.spent.1.max(1)),
        }
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { keys, shown, exact, colour, wrong, held, revealed, perceived, memory, micros } = self;
        write!(
            f,
            "{keys} | {shown:.1} | {held} | {exact:.1} | {colour} / {wrong} | {revealed} | {perceived} | "
        )?;
        write!(f, "{memory} KiB, {micros} µs")
    }
}
