//! The same program twice: directly at a strict compositor, and through both halves of the proxy.
//!
//! Random programs run in lock-step and virtual time. What was shown, what was said and what was forbidden is recorded by
//! a compositor that knows no proxy, and compared; see `shown` for what must agree. A program that differs is made as short
//! as it gets and printed as the operations of a test for `programs`.
//!
//! | module | noun |
//! |---|---|
//! | `operation` | what a program does, and programs made from seeds |
//! | `program`, `place` | who does it, and keeps the protocol |
//! | `strict` | the compositor, and the protocol's rules |
//! | `link` | what is between them |
//! | `shown`, `heard` | the oracle |
//! | `fault` | faults that must be found |
//! | `programs` | programs that once differed |
//! | `shrink` | the shortest program that still differs |

mod fault;
mod heard;
mod link;
mod operation;
mod place;
mod program;
mod programs;
mod shown;
mod shrink;
mod strict;

use std::time::Duration;

use fault::Fault;
use heard::Heard;
use link::{Direct, Link, Through};
use operation::{Dice, Op};
use program::Outcome;
use strict::Strict;

/// Programs of every test run, by their seeds.
const PROGRAMS: u64 = 10_000;

#[test]
fn what_is_shown_through_the_proxy_was_shown_directly() {
    assert_all_agree(0..PROGRAMS);
}

#[test]
#[ignore = "three times as many programs take a minute"]
fn what_many_more_programs_show_was_shown_directly() {
    assert_all_agree(PROGRAMS..4 * PROGRAMS);
}

#[test]
fn what_is_shown_through_sockets_was_shown_directly() {
    for seed in 0..300 {
        let link = Link { sockets: true, ..link(seed) };
        assert_eq!(difference(&operation::program(seed), link, None), None, "seed {seed}, {link:?}");
    }
}

#[test]
fn every_planted_fault_is_found() {
    let finds = |fault: Fault, seed: &u64| {
        let (program, link) = (operation::program(*seed), link(*seed));
        difference(&program, link, Some(fault)).is_some()
    };
    let missed = Fault::ALL.into_iter().filter(|fault| !(0..PROGRAMS).any(|seed| finds(*fault, &seed)));
    assert_eq!(missed.collect::<Vec<_>>(), [], "in {PROGRAMS} programs");
}

/// Fails with the shortest programs that still differ.
fn assert_all_agree(seeds: std::ops::Range<u64>) {
    let count = seeds.end - seeds.start;
    let differing: Vec<u64> =
        seeds.filter(|seed| difference(&operation::program(*seed), link(*seed), None).is_some()).collect();
    let shortest: Vec<String> = differing.iter().take(SHOWN).map(|seed| shortest(*seed)).collect();
    assert!(differing.is_empty(), "{} of {count} programs differ\n{}", differing.len(), shortest.join("\n"));
}

/// Most programs that are told of.
const SHOWN: usize = 5;

/// The link of a seed.
fn link(seed: u64) -> Link {
    let mut dice = Dice::new(seed ^ 0x6c69_6e6b);
    Link {
        delay: Duration::from_millis([0, 30, 200][dice.below(3)]),
        seed,
        holds: !dice.one_in(4),
        starves: dice.one_in(3),
        old: dice.one_in(4),
        sockets: false,
    }
}

fn shortest(seed: u64) -> String {
    let link = link(seed);
    let program =
        shrink::shrink(&operation::program(seed), |program| difference(program, link, None).is_some());
    let text = difference(&program, link, None).unwrap_or_default();
    format!("seed {seed}, {link:?}\n{}{text}", listing(&program))
}

/// Operations, one a line, as a test has them.
fn listing(program: &[Op]) -> String {
    program.iter().map(|op| format!("    {op:?},\n")).collect()
}

/// What differs between the program's two runs.
fn difference(program: &[Op], link: Link, fault: Option<Fault>) -> Option<String> {
    let mut direct = Direct::new();
    let expected = program::run(&mut direct, program);
    let expected = match (expected, &direct.strict.error) {
        (Ok(outcome), None) => outcome,
        (outcome, error) => {
            panic!("the program is wrong: {:?}, {error:?}\n{}", outcome.err(), listing(program))
        }
    };
    if let Some(text) = misheard(&direct.strict, &expected) {
        panic!("the compositor is wrong: {text}\n{}", listing(program));
    }
    let mut through = Through::new(link, fault);
    let outcome = program::run(&mut through, program);
    if let Some(error) = &through.strict.error {
        return Some(format!("the compositor accuses the display half: {error}"));
    }
    if let Some(broken) = &through.broken {
        return Some(broken.clone());
    }
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(text) => return Some(text),
    };
    if let Some(callback) = outcome.unanswered.difference(&expected.unanswered).next() {
        return Some(format!("frame callback {callback} is never answered"));
    }
    let shown = shown::difference(&direct.strict.record, &through.strict.record);
    shown.or_else(|| misheard(&through.strict, &outcome))
}

/// Whether the program heard what the compositor said.
fn misheard(strict: &Strict, outcome: &Outcome) -> Option<String> {
    let said: Vec<(Heard, Option<usize>)> =
        strict.said.iter().cloned().zip(strict.said_to.iter().copied()).collect();
    shown::misheard(&said, &outcome.heard, &outcome.gone)
}
