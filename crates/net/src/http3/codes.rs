//! Codes of WebTransport on the wire (draft-ietf-webtrans-http3 §4.3, §8.5), and those of HTTP/3 that are used.

use noq::VarInt;
use web_transport_proto::{error_from_http3, error_to_http3};

/// A stream's code as it goes on the wire. WebTransport's have 32 bits; a larger one counts as the largest.
pub(crate) fn code_out(code: u64) -> VarInt {
    let code = u32::try_from(code).unwrap_or(u32::MAX);
    VarInt::from_u64(error_to_http3(code)).unwrap_or(VarInt::MAX)
}

/// A stream's code as it came; 0 for one that is not WebTransport's.
pub(crate) fn code_in(code: VarInt) -> u64 {
    error_from_http3(code.into_inner()).map_or(0, u64::from)
}

/// HTTP/3's code for that all is well (RFC 9114 §8.1).
pub(crate) const NO_ERROR: u32 = 0x100;

/// The peer takes more than it may (RFC 9114 §8.1).
pub(crate) const EXCESSIVE_LOAD: VarInt = VarInt::from_u32(0x107);

/// Settings that cannot be read (RFC 9114 §8.1).
pub(crate) const SETTINGS_ERROR: VarInt = VarInt::from_u32(0x109);

/// A stream of a kind that is not known (RFC 9114 §8.1).
pub(super) const STREAM_CREATION_ERROR: VarInt = VarInt::from_u32(0x103);

/// A request that was not looked at (RFC 9114 §8.1).
pub(super) const REQUEST_REJECTED: VarInt = VarInt::from_u32(0x10b);

/// A request or capsule that is malformed (RFC 9114 §8.1).
pub(crate) const MESSAGE_ERROR: VarInt = VarInt::from_u32(0x10e);

/// A stream of a session that there is not (draft-ietf-webtrans-http3 §4.5).
pub(super) const BUFFERED_STREAM_REJECTED: VarInt = VarInt::from_u32(0x3994_bd84);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_survive_the_wire_and_others_count_as_0() {
        for code in [0, 1, 29, 30, 31, 60, 1000, u32::MAX] {
            assert_eq!(code_in(code_out(code.into())), u64::from(code));
        }
        assert_eq!(code_out(0).into_inner(), 0x52e4_a40f_a8db);
        assert_eq!(code_in(code_out(1 << 40)), u64::from(u32::MAX));
        assert_eq!(code_in(VarInt::from_u32(0x10c)), 0);
    }
}
