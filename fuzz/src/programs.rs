//! A program that keeps the protocol, directly at a compositor and through both halves of a connection: what is shown must
//! be the same. The compositor, the oracle and the operations are those of the differential test.
//!
//! Input: three bytes for the link, then decisions of a byte each; see `differential/bytes.rs`.

use crate::bytes::{self, Bytes, Recorded};
use crate::twice;

/// Whatever a program does, its windows look as they would without the halves.
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
