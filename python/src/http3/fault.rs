//! What a peer does that HTTP/3 forbids, with the code that it is told (RFC 9114 §8.1, RFC 9204 §6).

/// A mistake of the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: u64,
    pub(crate) text: &'static str,
}

impl Fault {
    pub(crate) const fn new(code: u64, text: &'static str) -> Self {
        Self { code, text }
    }
}

pub(crate) const FRAME_UNEXPECTED: u64 = 0x105;
pub(crate) const FRAME_ERROR: u64 = 0x106;
pub(crate) const EXCESSIVE_LOAD: u64 = 0x107;
pub(crate) const ID_ERROR: u64 = 0x108;
pub(crate) const SETTINGS_ERROR: u64 = 0x109;
pub(crate) const MISSING_SETTINGS: u64 = 0x10a;
pub(crate) const MESSAGE_ERROR: u64 = 0x10e;
/// Draft-ietf-webtrans-http3 §4.5.
pub(crate) const BUFFERED_STREAM_REJECTED: u64 = 0x3994_bd84;
pub(crate) const DECOMPRESSION_FAILED: u64 = 0x200;
