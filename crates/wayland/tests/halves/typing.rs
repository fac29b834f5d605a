//! Predicted text over links that delay, lose and break: nothing stays that the program does not show.
//!
//! Both halves, a terminal behind the one and a compositor behind the other, in virtual time. Keys come late, by a
//! retransmission or because the carrier was away; contents come late, and are folded into later ones; the display is
//! lost for ever and another one comes. Programs echo, err, dawdle, hide and mask. What must hold of it is in
//! `oracle.rs`, and in [`Typing::end`].

mod link;
mod oracle;
mod screen;
mod terminal;

use std::time::Duration;

use proptest::prelude::*;
use wayferry_proto::Time;

use crate::compositor::picture;
use crate::rig::Rig;
use link::{Delay, Link};
use oracle::Oracle;
use screen::{CELL, COLUMNS, LINES};
use terminal::{Does, LETTERS, SLOWEST, Terminal};

/// What the user does, or the world.
#[derive(Debug, Clone)]
enum Act {
    /// Types so many letters, one each so many milliseconds.
    Letters {
        count: usize,
        gap: u64,
    },
    /// Begins another program, or the same one again.
    Begin(Does),
    Wait(u64),
    /// The carrier is away for so many milliseconds; the user types on.
    Cut {
        millis: u64,
        gap: u64,
    },
    /// The display is lost, with all that is under way, and another one comes.
    Lose(u64),
}

/// How long one step is.
const STEP: Duration = Duration::from_millis(5);

/// When a display that hears nothing says so.
const STALE: Duration = Duration::from_secs(3);

/// The app side's patience with a program, and the display's with what is shown of another key.
const PATIENCE: u64 = 1000 + 100;

struct Typing {
    rig: Rig,
    link: Link,
    delay: Delay,
    terminal: Terminal,
    oracle: Oracle,
    typed: Vec<u32>,
    /// Letters since a line began: a line that is full takes no more.
    letters: usize,
    heard: Time,
    /// Keys were lost with a display.
    lost: bool,
    has_keyboard: bool,
    dice: u64,
}

impl Typing {
    fn new(delay: Delay, seed: u64, blinks: bool) -> Self {
        let mut rig = Rig::new();
        let terminal = Terminal::new(&mut rig, seed, blinks);
        let mut typing = Self {
            heard: rig.now,
            rig,
            link: Link::new(delay, seed ^ 1),
            delay,
            terminal,
            oracle: Oracle::default(),
            typed: Vec::new(),
            letters: 0,
            lost: false,
            has_keyboard: false,
            dice: seed ^ 2,
        };
        typing.arrive();
        typing
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Letters { count, gap } => (0..count).for_each(|_| self.letter(gap)),
            Act::Begin(does) => self.begin(does),
            Act::Wait(millis) => self.pass(millis),
            Act::Cut { millis, gap } => {
                let until = self.rig.now + Duration::from_millis(millis);
                self.link.cut(self.rig.now, until);
                while self.rig.now < until {
                    self.letter(gap);
                }
            }
            Act::Lose(millis) => self.lose(millis),
        }
    }

    fn lose(&mut self, millis: u64) {
        self.rig.detach();
        self.link.forget();
        (self.has_keyboard, self.lost) = (false, true);
        self.oracle.forget();
        self.pass(millis);
        self.rig.attach();
        self.arrive();
    }

    /// The window comes to the display, and the keyboard to it.
    fn arrive(&mut self) {
        let until = self.rig.now + Duration::from_millis(6 * self.delay.longest());
        while !self.has_keyboard {
            assert!(self.rig.now < until, "the window does not come");
            self.step();
        }
    }

    fn letter(&mut self, gap: u64) {
        if self.letters == COLUMNS - 4 {
            self.begin(Does::Echoes);
        }
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.press(LETTERS[(self.dice >> 33) as usize % LETTERS.len()]);
        self.letters += 1;
        self.pass(gap);
    }

    fn begin(&mut self, does: Does) {
        self.press(does.key());
        self.letters = 0;
        self.pass(40);
    }

    fn press(&mut self, key: u32) {
        self.typed.push(key);
        self.rig.compositor.key(key);
        self.show();
    }

    fn pass(&mut self, millis: u64) {
        let until = self.rig.now + Duration::from_millis(millis);
        while self.rig.now < until {
            self.step();
        }
    }

    fn step(&mut self) {
        self.rig.pass(STEP);
        let now = self.rig.now;
        self.rig.display.set_round_trip(now, Duration::from_millis(2 * self.delay.one_way));
        if !self.link.is_away(now) {
            self.heard = now;
        }
        let is_stale = now.since(self.heard) >= STALE;
        self.rig.display.set_stale(is_stale);
        self.show();
        assert!(!is_stale || self.oracle.is_clear(), "predicted where nothing is heard");
        while self.link.deliver(&mut self.rig) {
            self.rig.work(usize::MAX);
            self.show();
        }
        self.terminal.turn(&mut self.rig);
        // What has not left is folded into what comes after it.
        let budget = if self.link.is_away(now) || !self.link.roll().is_multiple_of(4) { 0 } else { u64::MAX };
        let taking = self.link.roll().is_multiple_of(2);
        self.rig.flush(budget, taking);
        while self.rig.blobs_under_way() > 0 {
            self.rig.blob(0);
        }
        if !self.has_keyboard && self.rig.compositor.window_pixels().is_some() {
            self.has_keyboard = true;
            self.rig.compositor.focus();
            self.show();
        }
    }

    /// The compositor does all that it is asked to, and is looked at.
    fn show(&mut self) {
        self.rig.compositor();
        self.rig.compositor.release(usize::MAX);
        self.rig.compositor.tick();
        self.rig.compositor();
        self.oracle.look(self.rig.now, &self.rig.compositor);
    }

    /// Everything arrives and is answered, or late: the window is as the program has it, and nothing lies over it.
    fn end(mut self) -> Oracle {
        self.terminal.rest();
        let bound = self.bound();
        self.pass(bound);
        assert!(self.oracle.is_clear(), "a letter is left after {bound} ms");
        assert_eq!(self.rig.compositor.sheets(), [], "something is left after {bound} ms");
        let size = (COLUMNS * CELL.0, LINES * CELL.1);
        let truth = picture((size.0 as i32, size.1 as i32), &self.terminal.pixels());
        assert_eq!(self.rig.compositor.logs[0].last().copied().flatten(), Some(truth), "another picture");
        assert!(self.lost || self.terminal.taken == self.typed, "text without its middle");
        self.oracle
    }

    /// The longest that a letter may be drawn, in milliseconds: there and back, the program's time, and both patiences.
    fn bound(&self) -> u64 {
        2 * self.delay.longest() + SLOWEST + PATIENCE + 100
    }
}

fn delay() -> impl Strategy<Value = Delay> {
    let lost = prop_oneof![Just(0u64), 1..150u64];
    (45u64..250, 0u64..60, lost).prop_map(|(one_way, jitter, lost)| Delay { one_way, jitter, lost })
}

fn act() -> impl Strategy<Value = Act> {
    let gap = || prop_oneof![20u64..90, 90u64..400];
    prop_oneof![
        8 => (1usize..14, gap()).prop_map(|(count, gap)| Act::Letters { count, gap }),
        4 => prop::sample::select(Does::ALL.to_vec()).prop_map(Act::Begin),
        3 => Just(Act::Begin(Does::Echoes)),
        2 => (0u64..1500).prop_map(Act::Wait),
        1 => (50u64..5000, gap()).prop_map(|(millis, gap)| Act::Cut { millis, gap }),
        1 => (50u64..2000).prop_map(Act::Lose),
    ]
}

/// Letters that are answered before the next one: all that there is to learn.
fn learn(typing: &mut Typing) {
    typing.begin(Does::Echoes);
    let gap = 2 * typing.delay.one_way + 100;
    typing.act(&Act::Letters { count: 36, gap });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_stays_that_the_program_does_not_show(delay in delay(), seed: u64, blinks: bool, acts in prop::collection::vec(act(), 1..16)) {
        let mut typing = Typing::new(delay, seed, blinks);
        learn(&mut typing);
        acts.iter().for_each(|act| typing.act(act));
        let is_cut = acts.iter().any(|act| matches!(act, Act::Cut { .. }));
        let bound = Duration::from_millis(typing.bound()) + if is_cut { STALE } else { Duration::ZERO };
        let oracle = typing.end();
        prop_assert!(oracle.longest <= bound, "drawn for {:?} of {bound:?}", oracle.longest);
    }
}

/// The property would hold of a display that predicts nothing.
#[test]
fn what_is_echoed_is_drawn_before_and_comes_true() {
    for seed in 0..4 {
        let delay = Delay { one_way: 100, jitter: 10, lost: 20 };
        let mut typing = Typing::new(delay, seed, false);
        learn(&mut typing);
        typing.act(&Act::Letters { count: 60, gap: 180 });
        let oracle = typing.end();
        assert!(oracle.right > 40 && oracle.wrong == 0, "{} right, {} wrong", oracle.right, oracle.wrong);
    }
}

/// Nor would it be worth much if no picture were ever wrong, or hidden prompts were not typed at.
#[test]
fn programs_that_err_are_predicted_wrong_and_those_that_hide_are_not_predicted() {
    let mut wrong = 0;
    for seed in 0..4 {
        let delay = Delay { one_way: 100, jitter: 10, lost: 20 };
        let mut typing = Typing::new(delay, seed, false);
        learn(&mut typing);
        for does in [Does::Errs, Does::Hides, Does::Stars] {
            typing.begin(does);
            typing.act(&Act::Letters { count: 20, gap: 180 });
        }
        wrong += typing.end().wrong;
    }
    assert!(wrong > 4, "{wrong} wrong");
}

#[test]
fn what_is_drawn_when_the_carrier_is_lost_goes_when_windows_say_that_nothing_is_heard() {
    let mut typing = Typing::new(Delay { one_way: 100, jitter: 10, lost: 0 }, 1, false);
    learn(&mut typing);
    let lost = typing.rig.now;
    typing.link.cut(lost, lost + 2 * STALE);
    typing.act(&Act::Letters { count: 4, gap: 600 });
    assert!(!typing.oracle.is_clear(), "the user types on");
    typing.act(&Act::Letters { count: 5, gap: 600 });
    assert!(typing.oracle.is_clear() && typing.oracle.longest <= STALE);
    assert!(typing.end().right > 20);
}

#[test]
fn what_a_program_that_tires_does_not_write_is_taken_back() {
    let mut back = 0;
    for seed in 0..8 {
        let mut typing = Typing::new(Delay { one_way: 100, jitter: 10, lost: 20 }, seed, false);
        learn(&mut typing);
        typing.begin(Does::Tires);
        typing.act(&Act::Letters { count: 12, gap: 180 });
        back += typing.end().back;
    }
    assert!(back > 0, "nothing was drawn that it did not write");
}
