//! The values of a command, looked at before the `pulseaudio` crate reads them.
//!
//! That crate allocates what the length of an array announces, and computes with a time's microseconds without a look.
//! Invariant: what [`check`] accepts announces no more bytes than it has.

use std::ffi::CString;

/// The number of a command, its sequence number, and where its values begin.
pub(crate) fn opening(command: &[u8]) -> Option<(u32, u32, &[u8])> {
    let (tag, rest) = number(command)?;
    let (sequence, rest) = number(rest)?;
    Some((tag, sequence, rest))
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (&[tag, a, b, c, d], rest) = bytes.split_first_chunk()?;
    (tag == b'L').then_some((u32::from_be_bytes([a, b, c, d]), rest))
}

/// The strings among the values; they were checked.
pub(crate) fn strings(mut values: &[u8]) -> Vec<CString> {
    let mut found = Vec::new();
    while let Some((&tag, rest)) = values.split_first() {
        let Some((value, behind)) = length(tag, rest).and_then(|length| rest.split_at_checked(length)) else {
            break;
        };
        if tag == b't' {
            found.extend(CString::from_vec_with_nul(value.to_vec()));
        }
        values = behind;
    }
    found
}

/// Whether all values are whole, and strings and times no longer than they may be.
pub(crate) fn check(mut values: &[u8]) -> bool {
    while let Some((&tag, rest)) = values.split_first() {
        let Some(length) = length(tag, rest) else { return false };
        let Some(behind) = rest.get(length..) else { return false };
        values = behind;
    }
    true
}

/// Bytes of a value behind its tag; `None` if it is none, or is too long.
fn length(tag: u8, rest: &[u8]) -> Option<usize> {
    let counted = |each: usize| Some(1 + usize::from(*rest.first()?) * each);
    match tag {
        b'N' | b'0' | b'1' | b'P' | b'f' => Some(0),
        b'B' => Some(1),
        b'L' | b'V' => Some(4),
        b'a' => Some(6),
        b'R' | b'r' | b'U' => Some(8),
        b'T' => {
            let micros = rest.get(4..8)?.try_into().map(u32::from_be_bytes).ok()?;
            (micros < 1_000_000).then_some(8)
        }
        b'm' => counted(1),
        b'v' => counted(4),
        b't' => rest.iter().take(MAX_STRING + 1).position(|&byte| byte == 0).map(|end| end + 1),
        b'x' => {
            let length = rest.first_chunk().map(|length| u32::from_be_bytes(*length))? as usize;
            Some(length.checked_add(4)?)
        }
        _ => None,
    }
}

/// Bytes of a string: names of streams, keys of properties.
const MAX_STRING: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_that_announce_more_than_they_have_are_refused() {
        assert!(check(&[b'x', 0, 0, 0, 2, 1, 2]));
        assert!(!check(&[b'x', 0, 0, 0, 3, 1, 2]));
        assert!(!check(&[b'x', 255, 255, 255, 255]));
    }

    #[test]
    fn times_have_less_than_a_million_microseconds() {
        assert!(check(&[b'T', 0, 0, 0, 9, 0, 0x0f, 0x42, 0x3f]));
        assert!(!check(&[b'T', 0, 0, 0, 9, 255, 255, 255, 255]));
    }

    #[test]
    fn strings_end_and_are_short() {
        assert!(check(b"tname\0N"));
        assert!(!check(b"tname"));
        let long = |length: usize| [b"t", &vec![b'a'; length][..], b"\0"].concat();
        assert!(check(&long(MAX_STRING)));
        assert!(!check(&long(MAX_STRING + 1)));
    }

    #[test]
    fn maps_and_volumes_are_whole() {
        assert!(check(&[b'm', 2, 1, 2, b'v', 1, 0, 1, 0, 0]));
        assert!(!check(&[b'm', 3, 1, 2]));
        assert!(!check(&[b'v', 1, 0, 1, 0]));
        assert!(!check(b"?"));
    }
}
