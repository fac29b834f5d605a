//! The same program twice: directly at a strict compositor, and through both halves of the proxy.
//!
//! | module | noun |
//! |---|---|
//! | `operation` | what a program does, and programs made from seeds |
//! | `bytes` | programs made from a fuzzer's bytes |
//! | `program`, `place` | who does it, and keeps the protocol |
//! | `strict` | the compositor, and the protocol's rules |
//! | `link` | what is between them |
//! | `shown`, `heard`, `paged` | the oracle |
//! | `fault` | faults that must be found |
//! | `shrink` | the shortest program that still differs |
//!
//! The test beside this and a fuzz target include it. Both name its modules at their root, where they look for each
//! other.

pub(crate) mod bytes;
pub(crate) mod fault;
pub(crate) mod heard;
pub(crate) mod link;
pub(crate) mod operation;
pub(crate) mod paged;
pub(crate) mod place;
pub(crate) mod program;
pub(crate) mod shown;
pub(crate) mod shrink;
pub(crate) mod strict;

use fault::Fault;
use heard::Heard;
use link::{Direct, Link, Through};
use operation::Op;
use program::Outcome;
use strict::Strict;

/// Operations, one a line, as a test has them.
pub(crate) fn listing(program: &[Op]) -> String {
    program.iter().map(|op| format!("    {op:?},\n")).collect()
}

/// What differs between the program's two runs.
pub(crate) fn difference(program: &[Op], link: Link, fault: Option<Fault>) -> Option<String> {
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
    let shown = shown.or_else(|| misheard(&through.strict, &outcome));
    // A program may leave a commit half said for ever, and viewers are shown children without waiting so long.
    if shown.is_some() || direct.strict.is_half_said() {
        return shown;
    }
    match through.page() {
        Ok(page) => paged::difference(&direct.strict.record, &page),
        Err(text) => Some(text),
    }
}

/// Whether the program heard what the compositor said.
fn misheard(strict: &Strict, outcome: &Outcome) -> Option<String> {
    let said: Vec<(Heard, Option<usize>)> =
        strict.said.iter().cloned().zip(strict.said_to.iter().copied()).collect();
    shown::misheard(&said, &outcome.heard, &outcome.gone)
}
