//! Bits of parameter sets and slice headers.
//!
//! Reads the few fields that are checked before the codec sees anything; it decodes no picture. What is past the end is
//! no value, never a panic.

/// Reads from the highest bit on.
#[derive(Debug)]
pub(crate) struct Bits {
    bytes: Vec<u8>,
    at: usize,
}

impl Bits {
    /// The payload of a unit, as far as its first `most` bytes go, without the bytes that keep it from looking like a
    /// start code.
    // ITU-T H.264 §7.4.1.1
    pub(crate) fn of(payload: &[u8], most: usize) -> Self {
        let mut bytes = Vec::with_capacity(most.min(payload.len()));
        let mut zeros = 0;
        for &byte in payload.iter().take(most) {
            if zeros >= 2 && byte == 3 {
                zeros = 0;
                continue;
            }
            zeros = if byte == 0 { zeros + 1 } else { 0 };
            bytes.push(byte);
        }
        Self { bytes, at: 0 }
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        Some(bit == 1)
    }

    pub(crate) fn number(&mut self, count: u32) -> Option<u32> {
        (0..count).try_fold(0, |number, _| Some(number << 1 | u32::from(self.flag()?)))
    }

    /// A number of variable length.
    // ITU-T H.264 §9.1, ue(v); numbers of more than 31 bits mean nothing that is read here
    pub(crate) fn golomb(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        Some((1 << zeros) - 1 + self.number(zeros)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_standard() {
        // 1, 010, 011, 00100, 00101, then too little
        let mut bits = Bits::of(&[0b1010_0110, 0b0100_0010, 0b1000_0000], 9);
        let numbers: Vec<_> = (0..6).map(|_| bits.golomb()).collect();
        assert_eq!(numbers, [Some(0), Some(1), Some(2), Some(3), Some(4), None]);
    }

    #[test]
    fn too_long_is_no_number() {
        assert_eq!(Bits::of(&[0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff], 9).golomb(), None);
        let mut longest = Bits::of(&[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff], 9);
        assert_eq!(longest.golomb(), Some(u32::MAX - 1));
    }

    #[test]
    fn escapes_are_taken_out() {
        assert_eq!(Bits::of(&[0, 0, 3, 1, 0, 0, 0, 3, 3, 9], 9).bytes, [0, 0, 1, 0, 0, 0, 3]);
    }
}
