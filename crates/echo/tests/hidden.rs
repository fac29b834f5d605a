//! Prompts that hide what is typed: nothing of it is shown, at any round trip.

#[path = "replay/player.rs"]
mod player;
#[allow(dead_code, reason = "the corpus is another test's")]
#[path = "replay/recording.rs"]
mod recording;
#[allow(dead_code, reason = "other tests use the rest")]
mod toy;

use std::time::Duration;

use player::{Outcome, Played, play};
use toy::hidden::{ALL, Hides};
use toy::{RETURN, Toy, glyph_of, letter, plain};
use wayferry_echo::Echo;

const ROUND_TRIPS: [u64; 4] = [0, 100, 300, 500];

/// A shell line that has every letter, twice: all of them are known.
fn learn(toy: &mut Toy) {
    for line in [1, 14, 1, 14] {
        (line..line + 13).chain([0]).for_each(|number| _ = echoed(toy, number));
        run(toy);
    }
}

fn echoed(toy: &mut Toy, number: usize) -> usize {
    let index = toy.press(letter(number));
    toy.put(glyph_of(letter(number)));
    toy.show(Duration::from_millis(3));
    index
}

/// Return, an answer, and a new prompt.
fn run(toy: &mut Toy) {
    toy.press(plain(RETURN));
    toy.new_line();
    toy.show(Duration::from_millis(3));
    let prompt = [1020, 1030, 1057];
    toy.say(prompt);
    toy.show(Duration::from_millis(9));
}

/// A password of a few different characters, so that they come again; and its keys.
fn password(toy: &mut Toy, hides: Hides) -> Vec<usize> {
    let (few, length) = (3 + toy.dice.below(5), 6 + toy.dice.below(10));
    let from = toy.dice.below(20);
    let mut keys = Vec::new();
    for _ in 0..length {
        let key = letter(1 + from + toy.dice.below(few));
        keys.push(toy.press(key));
        hides.answer(toy, key);
    }
    keys
}

fn shown(played: &Played, keys: &[usize]) -> Vec<usize> {
    let is_shown = |key: &usize| {
        played.outcomes[*key - 1] != Outcome::Awaited || played.revealed.contains_key(&(*key as u64))
    };
    keys.iter().copied().filter(is_shown).collect()
}

#[test]
fn nothing_typed_at_a_hidden_prompt_is_shown() {
    for hides in ALL {
        for seed in 0..5 {
            let mut toy = Toy::new(100 * seed + hides as u64);
            learn(&mut toy);
            let mut secret = Vec::new();
            for _ in 0..4 {
                (1..5).for_each(|number| _ = echoed(&mut toy, number + 3));
                run(&mut toy);
                toy.wait(Duration::from_millis(700));
                secret.extend(password(&mut toy, hides));
                run(&mut toy);
            }
            let recording = toy.recording();
            for round_trip in ROUND_TRIPS {
                let played = play(&recording, &mut Echo::new(), Duration::from_millis(round_trip), 0);
                let leaked = shown(&played, &secret);
                assert!(leaked.is_empty(), "{hides:?}, seed {seed}, RTT {round_trip}: keys {leaked:?}");
            }
        }
    }
}

#[test]
fn of_what_is_typed_ahead_of_a_hidden_prompt_few_letters_are_shown() {
    for seed in 0..40 {
        let mut toy = Toy::new(seed);
        learn(&mut toy);
        (0..6).for_each(|number| _ = echoed(&mut toy, 1 + number));
        toy.press(plain(RETURN));
        toy.new_line();
        toy.show(Duration::from_millis(3));
        // The terminal itself echoes what comes before the prompt does.
        toy.wait(Duration::from_millis(300));
        (0..9).for_each(|number| _ = echoed(&mut toy, 3 + number % 5));
        // Faster than any answer at 300 ms.
        let fast = |number: usize| {
            toy.wait(Duration::from_millis(45));
            toy.press_now(letter(3 + number % 5))
        };
        let secret: Vec<usize> = (0..12).map(fast).collect();
        let recording = toy.recording();
        for round_trip in ROUND_TRIPS {
            let played = play(&recording, &mut Echo::new(), Duration::from_millis(round_trip), 0);
            let leaked = shown(&played, &secret);
            assert!(leaked.len() <= 3, "seed {seed}, RTT {round_trip}: keys {leaked:?}");
        }
    }
}

/// Lines without a prompt, as an editor has them, and then a field that hides: one letter would confirm there.
#[test]
fn nothing_typed_at_a_hidden_field_below_running_text_is_shown() {
    for hides in ALL.into_iter().filter(|hides| *hides != Hides::LastLetter) {
        for seed in 0..8 {
            let mut toy = Toy::new(100 * seed + hides as u64);
            write(&mut toy);
            let secret = password(&mut toy, hides);
            let recording = toy.recording();
            for round_trip in ROUND_TRIPS {
                let played = play(&recording, &mut Echo::new(), Duration::from_millis(round_trip), 0);
                let leaked = shown(&played, &secret);
                assert!(leaked.is_empty(), "{hides:?}, seed {seed}, RTT {round_trip}: keys {leaked:?}");
            }
        }
    }
}

/// Not in all fonts: the strip of an underline may have rows of the line above.
#[test]
fn where_text_runs_on_the_second_letter_of_a_line_is_shown() {
    let mut seconds = 0;
    for seed in 0..20 {
        let mut toy = Toy::new(seed);
        write(&mut toy);
        let keys: Vec<usize> = (0..6).map(|number| echoed(&mut toy, 5 + number)).collect();
        let played = play(&toy.recording(), &mut Echo::new(), Duration::from_millis(80), 0);
        let shown = shown(&played, &keys);
        assert!(shown.ends_with(&keys[2..]) && !shown.contains(&keys[0]), "seed {seed}: {shown:?}");
        seconds += usize::from(shown.contains(&keys[1]));
    }
    assert!(seconds > 10, "{seconds} of 20");
}

/// Four lines without a prompt.
fn write(toy: &mut Toy) {
    for line in [1, 14, 1, 14] {
        (line..line + 13).for_each(|number| _ = echoed(toy, number));
        toy.press(plain(RETURN));
        toy.new_line();
        toy.show(Duration::from_millis(3));
    }
}

/// The suite would pass a predictor that shows nothing at all.
#[test]
fn what_a_shell_echoes_is_shown() {
    for seed in 0..40 {
        let mut toy = Toy::new(seed);
        learn(&mut toy);
        let keys: Vec<usize> = (0..20).map(|number| echoed(&mut toy, number % 6)).collect();
        let played = play(&toy.recording(), &mut Echo::new(), Duration::from_millis(100), 0);
        let shown = shown(&played, &keys);
        assert!(shown.len() > 14, "seed {seed}: {shown:?}");
        assert!(!played.outcomes.contains(&Outcome::Wrong), "seed {seed}: {:?}", played.outcomes);
    }
}
