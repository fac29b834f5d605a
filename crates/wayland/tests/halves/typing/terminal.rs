//! A terminal of three lines, and what programs in it do with the keys that they get.
//!
//! It knows nothing of predictions: it is the oracle. Lines begin with a prompt that tells the program, so that the
//! picture alone says who is typed to. Invariant: what was committed last is what [`Terminal::pixels`] has.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Duration;

use wayferry_proto::Time;
use wayferry_wayland::wire::Arg;

use super::screen::{CELL, COLUMNS, LINES, Screen};
use crate::honest::{Honest, Window};
use crate::rig::Rig;

/// What a program does with letters; its place is the glyph of its prompt and the key that begins it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    /// Writes them, at once.
    Echoes,
    /// The same, a while later.
    Dawdles,
    /// Writes now and then another one.
    Errs,
    /// Nothing.
    Hides,
    /// Writes a star for each.
    Stars,
    /// Writes some, and from then on nothing.
    Tires,
}

impl Does {
    pub(crate) const ALL: [Self; 6] =
        [Self::Echoes, Self::Dawdles, Self::Errs, Self::Hides, Self::Stars, Self::Tires];

    /// Return, F1 to F4, Tab: keys that may do anything.
    pub(crate) fn key(self) -> u32 {
        [28, 59, 60, 61, 15, 62][self as usize]
    }

    pub(crate) fn prompt(self) -> u32 {
        200 + self as u32
    }

    pub(crate) fn is_hidden(self) -> bool {
        matches!(self, Self::Hides | Self::Stars)
    }

    fn takes(self, roll: u64) -> Duration {
        Duration::from_millis(if self == Self::Dawdles { 60 + roll % (SLOWEST - 60) } else { roll % 20 })
    }
}

/// The keys of letters.
pub(crate) const LETTERS: [u32; 6] = [30, 48, 46, 32, 18, 33];

/// The longest that a program takes for a letter, in milliseconds.
pub(crate) const SLOWEST: u64 = 360;

/// What every key of a masked field draws.
const STAR: u32 = 7;

/// How long the caret is there, and not.
const BLINKS: Duration = Duration::from_millis(530);

pub(crate) struct Terminal {
    program: Honest,
    window: Window,
    buffers: Vec<(OwnedFd, u32)>,
    next: usize,
    screen: Screen,
    does: Does,
    is_tired: bool,
    /// Keys that the program has taken, and those that it is still busy with, each until then.
    pub(crate) taken: Vec<u32>,
    busy: VecDeque<(Time, u32)>,
    dice: u64,
    blinked: Option<Time>,
}

impl Terminal {
    /// A window with a prompt, that has been committed; its caret blinks, or stays.
    pub(crate) fn new(rig: &mut Rig, seed: u64, blinks: bool) -> Self {
        let mut program = Honest::new(rig);
        let seat = program.global("wl_seat");
        program.make(seat, "get_keyboard", vec![]);
        let window = program.window(8);
        program.send(rig);
        let [width, height] = [COLUMNS * CELL.0, LINES * CELL.1].map(|side| side as i32);
        let buffers = (0..3).map(|_| program.buffer(width, height)).collect();
        let blinked = blinks.then_some(rig.now);
        let mut terminal = Self {
            program,
            window,
            buffers,
            next: 0,
            screen: Screen::new(),
            does: Does::Echoes,
            is_tired: false,
            taken: Vec::new(),
            busy: VecDeque::new(),
            dice: seed,
            blinked,
        };
        rig.settle();
        terminal.program.read(rig);
        terminal.begin(Does::Echoes);
        terminal.show(rig);
        terminal
    }

    /// The program reads its keys, and does what is due.
    pub(crate) fn turn(&mut self, rig: &mut Rig) {
        self.program.read(rig);
        for key in std::mem::take(&mut self.program.pressed) {
            let roll = self.roll();
            let last = self.busy.back().map_or(rig.now, |(until, _)| *until);
            self.busy.push_back((last.max(rig.now + self.does.takes(roll)), key));
        }
        let mut draws = false;
        while let Some((_, key)) = self.busy.pop_front_if(|(until, _)| *until <= rig.now) {
            self.taken.push(key);
            draws |= self.take(key);
        }
        if let Some(blinked) = self.blinked.filter(|blinked| *blinked + BLINKS <= rig.now) {
            self.blinked = Some(blinked + BLINKS);
            self.screen.has_caret = !self.screen.has_caret;
            draws = true;
        }
        if draws {
            self.show(rig);
        }
    }

    /// The caret stays as it is from now on.
    pub(crate) fn rest(&mut self) {
        self.blinked = None;
    }

    /// What a display should show of it.
    pub(crate) fn pixels(&self) -> Vec<u8> {
        self.screen.pixels()
    }

    /// Whether there is something to be drawn.
    fn take(&mut self, key: u32) -> bool {
        if let Some(does) = Does::ALL.into_iter().find(|does| does.key() == key) {
            self.begin(does);
            return true;
        }
        let roll = self.roll();
        let other = LETTERS[roll as usize / 4 % LETTERS.len()];
        match self.does {
            Does::Echoes | Does::Dawdles => self.screen.write(key),
            Does::Errs => self.screen.write(if roll.is_multiple_of(4) { other } else { key }),
            Does::Hides => return false,
            Does::Stars => self.screen.write(STAR),
            Does::Tires => {
                self.is_tired |= roll.is_multiple_of(8);
                if self.is_tired {
                    return false;
                }
                self.screen.write(key);
            }
        }
        true
    }

    fn begin(&mut self, does: Does) {
        (self.does, self.is_tired) = (does, false);
        self.screen.new_line();
        self.screen.write(does.prompt());
    }

    fn show(&mut self, rig: &mut Rig) {
        let (file, buffer) = &self.buffers[self.next % self.buffers.len()];
        self.next += 1;
        rustix::io::pwrite(file, &self.screen.pixels(), 0).expect("written");
        let (surface, buffer) = (self.window.surface, *buffer);
        self.program.attach(surface, buffer);
        self.program.request(surface, "damage", [0, 0, i32::MAX, i32::MAX].map(Arg::Int).into());
        self.program.request(surface, "commit", vec![]);
        self.program.send(rig);
    }

    fn roll(&mut self) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.dice >> 33
    }
}
