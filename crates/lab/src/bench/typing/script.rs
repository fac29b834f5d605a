//! What a person types into a shell, and when: commands out of a seed, with slips that are noticed and taken back.
//!
//! Gaps between keys are log-normal, six keys a second in the median. Plain values; nothing is typed here. Invariant:
//! the same seed gives the same lines, each of which a shell answers with a line at most.

use std::time::Duration;

use wayferry_stage::Random;

use crate::sight::BACKSPACE;

/// A key, and how long after the one before it is pressed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stroke {
    pub(super) gap: Duration,
    pub(super) letter: char,
}

/// Lines, each with its Return.
pub(super) fn lines(seed: u64, count: usize) -> Vec<Vec<Stroke>> {
    let mut typist = Typist(Random::new(seed));
    (0..count).map(|at| typist.line(at)).collect()
}

struct Typist(Random);

impl Typist {
    fn line(&mut self, at: usize) -> Vec<Stroke> {
        let command = self.command(at);
        let slip = (self.0.unit() < SLIPS).then(|| self.between(2, command.len() - 2));
        let mut strokes = Vec::new();
        for (place, letter) in command.char_indices() {
            if slip == Some(place) {
                self.slip(&mut strokes, &command[place..]);
            }
            strokes.push(self.stroke(letter));
        }
        strokes.push(self.stroke('\n'));
        strokes
    }

    /// Two letters change places, which is seen after a moment, and both are taken back.
    fn slip(&mut self, strokes: &mut Vec<Stroke>, rest: &str) {
        let wrong: Vec<char> = rest.chars().take(2).collect();
        strokes.extend(wrong.iter().rev().map(|letter| self.stroke(*letter)));
        let taken = strokes.len();
        strokes.extend(wrong.iter().map(|_| self.stroke(BACKSPACE)));
        strokes[taken].gap += NOTICED;
    }

    fn command(&mut self, at: usize) -> String {
        let [one, two, three] = [(); 3].map(|()| self.word());
        match at % COMMANDS {
            0 => format!("echo {one} {two} {three}"),
            1 => format!("x={}; echo $((x + 7))", self.between(11, 98)),
            2 => format!("test -f {one}.txt || echo no {one}"),
            3 => format!("printf '%s ' {one} {two}; echo"),
            4 => format!("cd /tmp && cd ~ # {three}"),
            5 => format!("echo \"{one}, {two}\" | wc -c"),
            6 => format!("for i in {one} {two}; do :; done"),
            _ => format!("grep -c {one} /etc/passwd"),
        }
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.between(0, WORDS.len() - 1)]
    }

    /// From one to the other, both included.
    fn between(&mut self, from: usize, to: usize) -> usize {
        from + (self.0.unit() * (to - from + 1) as f64) as usize
    }

    fn stroke(&mut self, letter: char) -> Stroke {
        // Twelve numbers of a die have a bell of width 1.
        let bell: f64 = (0..12).map(|_| self.0.unit()).sum::<f64>() - 6.0;
        let seconds = ((SPREAD * bell).exp() / KEYS_PER_SECOND).clamp(0.07, 0.6);
        Stroke { gap: Duration::from_secs_f64(seconds), letter }
    }
}

/// Every letter that may be typed.
pub(super) fn alphabet() -> String {
    let mut letters: Vec<char> =
        ('a'..='z').chain('0'..='9').chain("%$'\"(){}|&;:=+-,./#~".chars()).collect();
    letters.sort_unstable();
    letters.into_iter().collect()
}

const KEYS_PER_SECOND: f64 = 6.0;
/// Width of the logarithms of gaps.
const SPREAD: f64 = 0.35;
/// Of lines, those with a slip; how long until it is noticed.
const SLIPS: f64 = 0.4;
const NOTICED: Duration = Duration::from_millis(250);

const COMMANDS: usize = 8;

const WORDS: [&str; 24] = [
    "harbour", "ferry", "morning", "pier", "seven", "water", "night", "quiet", "lamp", "journey", "window",
    "north", "bridge", "engine", "captain", "deck", "weather", "island", "cargo", "anchor", "velvet",
    "signal", "compass", "tide",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &[Stroke]) -> String {
        let mut text = String::new();
        for stroke in line {
            match stroke.letter {
                BACKSPACE => drop(text.pop()),
                letter => text.push(letter),
            }
        }
        text
    }

    #[test]
    fn slips_are_taken_back_and_every_letter_is_of_the_alphabet() {
        let lines = lines(1, 64);
        let slips = lines.iter().filter(|line| line.iter().any(|stroke| stroke.letter == BACKSPACE)).count();
        assert!((10..50).contains(&slips), "{slips}");
        let known = alphabet() + " \n";
        for line in &lines {
            let text = typed(line);
            assert!(
                text.ends_with('\n') && text.len() < 60 && text.chars().all(|letter| known.contains(letter))
            );
            let plain = ["echo ", "x=", "test ", "printf ", "cd ", "for ", "grep "];
            assert!(plain.iter().any(|begin| text.starts_with(begin)), "{text}");
        }
    }

    #[test]
    fn a_person_types_five_to_seven_keys_a_second_and_the_same_again() {
        let lines = lines(7, 32);
        let gaps: Vec<Duration> = lines.iter().flatten().map(|stroke| stroke.gap).collect();
        let mean = gaps.iter().sum::<Duration>().as_secs_f64() / gaps.len() as f64;
        assert!((1.0 / 7.0..1.0 / 5.0).contains(&mean), "{mean}");
        assert_eq!(lines, super::lines(7, 32));
    }
}
