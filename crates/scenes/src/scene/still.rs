//! Programs that paint whole screens: always the same, several in turn, or another program's with damage for
//! everything.

use super::{Commit, Program, screens};
use crate::canvas::Canvas;
use crate::random::Random;

/// Changes nothing.
#[derive(Debug)]
pub(super) struct Same;

impl Same {
    pub(super) fn new(canvas: &mut Canvas, random: &Random) -> Self {
        screens::desktop(canvas, random);
        Self
    }
}

impl Program for Same {
    fn paint(&mut self, canvas: &mut Canvas) -> Commit {
        Commit::of([canvas.rect()])
    }
}

/// Shows screens one after the other, from the last again to the first.
#[derive(Debug)]
pub(super) struct Turns {
    screens: Vec<Canvas>,
    next: usize,
}

impl Turns {
    pub(super) fn new(canvas: &mut Canvas, screens: Vec<Canvas>) -> Self {
        let mut turns = Self { screens, next: 0 };
        turns.paint(canvas);
        turns
    }
}

impl Program for Turns {
    fn paint(&mut self, canvas: &mut Canvas) -> Commit {
        canvas.draw(&self.screens[self.next], 0, 0);
        self.next = (self.next + 1) % self.screens.len();
        Commit::of([canvas.rect()])
    }
}

/// Another program, with damage for everything.
#[derive(Debug)]
pub(super) struct Whole<P> {
    program: P,
}

impl<P> Whole<P> {
    pub(super) fn new(program: P) -> Self {
        Self { program }
    }
}

impl<P: Program> Program for Whole<P> {
    fn paint(&mut self, canvas: &mut Canvas) -> Commit {
        let scroll = self.program.paint(canvas).scroll;
        Commit { damage: vec![canvas.rect()], scroll }
    }
}
