//! Programs, and the links that they run over, out of a fuzzer's bytes.
//!
//! The first three bytes are the link's; each decision takes one more. Past their end everything is zero, but no
//! operation begins there, so a short input is a short program. Invariant: what [`Recorded`] has made, its bytes make
//! again.

use std::time::Duration;

use crate::link::Link;
use crate::operation::{self, Choices, Dice, Op};

/// Most operations of one program.
const MAX_OPERATIONS: usize = 300;

/// Decisions that may be over.
pub(crate) trait Ending: Choices {
    fn is_over(&self) -> bool;
}

/// What is left of the input.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Choices for Bytes<'_> {
    fn below(&mut self, end: usize) -> usize {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        usize::from(*first) % end
    }
}

impl Ending for Bytes<'_> {
    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

/// Decisions of a seed, and the bytes that would have made them.
pub(crate) struct Recorded {
    dice: Dice,
    bytes: Vec<u8>,
    length: usize,
}

impl Recorded {
    /// About `length` bytes.
    pub(crate) fn new(seed: u64, length: usize) -> Self {
        Self { dice: Dice::new(seed), bytes: Vec::new(), length }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Choices for Recorded {
    fn below(&mut self, end: usize) -> usize {
        let choice = self.dice.below(end);
        self.bytes.push(choice as u8);
        choice
    }
}

impl Ending for Recorded {
    fn is_over(&self) -> bool {
        self.bytes.len() >= self.length
    }
}

/// A program and its link.
pub(crate) fn read(choices: &mut impl Ending) -> (Link, Vec<Op>) {
    let delay = Duration::from_millis([0, 30, 200][choices.below(3)]);
    let [ways, seed] = choices.bytes();
    let way = |bit: u8| ways >> bit & 1 == 1;
    let link =
        Link { delay, seed: seed.into(), holds: !way(0), starves: way(1), old: way(2), sockets: false };
    let mut program = if way(3) { vec![Op::Old] } else { vec![] };
    while !choices.is_over() && program.len() < MAX_OPERATIONS {
        if choices.one_in(2) {
            operation::step(choices, false, &mut program);
        } else {
            program.push(operation::single(choices));
        }
    }
    (link, program)
}
