//! A program that keeps the protocol, directly at a compositor and through both halves of a connection: what is shown
//! must be the same. The compositor, the oracle and the operations are those of the differential test.
//!
//! Input: three bytes for the link, then decisions of a byte each; see `differential/bytes.rs`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::bytes::{self, Bytes, Recorded};
use crate::link::Link;
use crate::operation::Op;
use crate::shrink::shrink;
use crate::twice;

/// After any requests of a program, its windows look as they would without the halves.
///
/// # Panics
/// When they do not, with the operations for a test beside the others that once differed.
pub fn run(data: &[u8]) {
    let (link, program) = bytes::read(&mut Bytes(data));
    if let Some(text) = twice::difference(&program, link, None) {
        panic!("{link:?}\n{}{text}", twice::listing(&program));
    }
}

/// The program of a seed, of about so many bytes.
pub fn seed(seed: u64, length: usize) -> Vec<u8> {
    let mut recorded = Recorded::new(seed, length);
    bytes::read(&mut recorded);
    recorded.into_bytes()
}

/// A find, as short as it gets: an input that fails still, and its program as the operations of a test, with what is
/// wrong. `None` if nothing is.
pub fn shortest(data: &[u8]) -> Option<(Vec<u8>, String)> {
    fault(data)?;
    let input = shrink(data, |data| fault(data).is_some());
    let (link, program) = bytes::read(&mut Bytes(&input));
    let program = shrink(&program, |program| fault_of(program, link).is_some());
    let text = fault_of(&program, link).unwrap_or_default();
    Some((input, format!("{link:?}\n{}{text}", twice::listing(&program))))
}

fn fault(data: &[u8]) -> Option<String> {
    let (link, program) = bytes::read(&mut Bytes(data));
    fault_of(&program, link)
}

/// What differs, or how it panics.
fn fault_of(program: &[Op], link: Link) -> Option<String> {
    catch_unwind(AssertUnwindSafe(|| twice::difference(program, link, None))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Some(format!("a panic: {}", text.unwrap_or("without words")))
    })
}
