//! What programs of the tests of both halves need of memory and pictures.

use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};
use wayferry_wayland::blob;

/// Names a picture.
pub(crate) fn picture(size: (i32, i32), pixels: &[u8]) -> u128 {
    blob::hash(pixels) ^ (size.0 as u128) ^ ((size.1 as u128) << 32)
}

/// A memory file of that length, all zero.
pub(crate) fn file(length: u64) -> OwnedFd {
    let fd = memfd_create("page", MemfdFlags::CLOEXEC).expect("a memory file");
    rustix::fs::ftruncate(&fd, length).expect("a length");
    fd
}
