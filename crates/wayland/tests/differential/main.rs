//! The same program twice: directly at a strict compositor, and through both halves of the proxy.
//!
//! Random programs run in lock-step and virtual time. What was shown, what was said and what was forbidden is recorded
//! by a compositor that knows no proxy, and compared; see `shown` for what must agree. A program that differs is made
//! as short as it gets and printed as the operations of a test for `programs`.
//!
//! | module | noun |
//! |---|---|
//! | `twice` | how a program is run twice and compared |
//! | `programs` | programs that once differed |

mod programs;
#[path = "twice.rs"]
mod twice;

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::{Bytes, Recorded};
use fault::Fault;
use link::Link;
use operation::{Choices, Dice, Op};
use twice::{bytes, difference, fault, heard, link, listing, operation, place, shown, shrink, strict};

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

/// The kinds of operations in a program.
fn kinds(program: &[Op]) -> BTreeSet<String> {
    let name = |op: &Op| format!("{op:?}").split(['(', ' ']).next().unwrap_or_default().to_owned();
    program.iter().map(name).collect()
}

#[test]
fn bytes_make_every_operation_and_few_make_few() {
    let (mut made, mut wanted) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..2000 {
        let mut recorded = Recorded::new(seed, 8 + seed as usize % 256);
        let expected = bytes::read(&mut recorded);
        let input = recorded.into_bytes();
        let (link, program) = bytes::read(&mut Bytes(&input));
        assert_eq!((link, &program), (expected.0, &expected.1), "seed {seed}");
        assert!(program.len() <= 2 * input.len(), "{} bytes make {}", input.len(), listing(&program));
        made.extend(kinds(&program));
        wanted.extend(kinds(&operation::program(seed)));
    }
    assert_eq!(made, wanted);
}

#[test]
fn what_programs_made_of_bytes_show_was_shown_directly() {
    for seed in 0..1000 {
        let (link, program) = bytes::read(&mut Recorded::new(seed, 100));
        assert_eq!(difference(&program, link, None), None, "seed {seed}, {link:?}\n{}", listing(&program));
    }
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
