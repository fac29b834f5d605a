//! Writing and reading of message fields: the bytes of everything that proto and its users put on the wire.
//!
//! Integers are little-endian or QUIC varints; byte strings have a varint length before them. A [`Reader`] never
//! allocates and never trusts a length: each method that reads one takes the largest that is allowed. It does not know
//! messages or framing. Invariant: what a [`Writer`] wrote, a `Reader` reads back, and a failed read says what was
//! expected there.

use crate::Error;

/// The largest number that a varint holds (RFC 9000 §16).
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// How many bytes `value` takes as a varint: 1, 2, 4 or 8.
///
/// # Panics
/// When `value` exceeds [`VARINT_MAX`].
pub fn varint_len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ if value <= VARINT_MAX => 8,
        _ => panic!("{value} does not fit a varint"),
    }
}

/// Appends fields to a byte vector; the methods chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.raw(&[value])
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Sixteen bytes, little-endian.
    pub fn u128(&mut self, value: u128) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// Four bytes, little-endian, two's complement.
    pub fn i32(&mut self, value: i32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    /// One byte: 0 or 1.
    pub fn bool(&mut self, value: bool) -> &mut Self {
        self.u8(u8::from(value))
    }

    /// A QUIC varint of 1, 2, 4 or 8 bytes, the shortest that fits.
    ///
    /// # Panics
    /// When `value` exceeds [`VARINT_MAX`].
    pub fn varint(&mut self, value: u64) -> &mut Self {
        // RFC 9000 §16: two length bits, then big-endian.
        match varint_len(value) {
            1 => self.raw(&[value as u8]),
            2 => self.raw(&(value as u16 | 0x4000).to_be_bytes()),
            4 => self.raw(&(value as u32 | 0x8000_0000).to_be_bytes()),
            _ => self.raw(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
        }
    }

    /// A signed number as a zigzag varint: 0, −1, 1, −2, … become 0, 1, 2, 3, …
    ///
    /// # Panics
    /// When `value` is outside −2⁶¹ … 2⁶¹ − 1.
    pub fn zigzag(&mut self, value: i64) -> &mut Self {
        self.varint(((value << 1) ^ (value >> 63)) as u64)
    }

    /// A varint length, then the bytes.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.varint(value.len() as u64).raw(value)
    }

    /// As [`Writer::bytes`], of UTF-8.
    pub fn str(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    /// The bytes as they are, without a length.
    pub fn raw(&mut self, value: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(value);
        self
    }

    /// How many bytes have been written.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What has been written.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// What has been written.
    pub fn into_vec(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads fields from a byte slice. `expected` in each method names the field in the error.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from their beginning.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// One byte.
    pub fn u8(&mut self, expected: &'static str) -> Result<u8, Error> {
        Ok(self.array::<1>(expected)?[0])
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self, expected: &'static str) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array(expected)?))
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self, expected: &'static str) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array(expected)?))
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self, expected: &'static str) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array(expected)?))
    }

    /// Sixteen bytes, little-endian.
    pub fn u128(&mut self, expected: &'static str) -> Result<u128, Error> {
        Ok(u128::from_le_bytes(self.array(expected)?))
    }

    /// Four bytes, little-endian, two's complement.
    pub fn i32(&mut self, expected: &'static str) -> Result<i32, Error> {
        Ok(i32::from_le_bytes(self.array(expected)?))
    }

    /// One byte that must be 0 or 1.
    pub fn bool(&mut self, expected: &'static str) -> Result<bool, Error> {
        match self.u8(expected)? {
            0 => Ok(false),
            1 => Ok(true),
            got => Err(Error::OutOfRange { expected, max: 1, got: got.into() }),
        }
    }

    /// A QUIC varint; a longer form than needed is accepted, as QUIC does.
    pub fn varint(&mut self, expected: &'static str) -> Result<u64, Error> {
        let first = *self.bytes.first().ok_or(Error::Truncated { expected })?;
        let length = 1 << (first >> 6);
        let bytes = self.raw(length, expected)?;
        Ok(bytes[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
    }

    /// A varint of at most `max`.
    pub fn varint_max(&mut self, max: u64, expected: &'static str) -> Result<u64, Error> {
        match self.varint(expected)? {
            got if got <= max => Ok(got),
            got => Err(Error::OutOfRange { expected, max, got }),
        }
    }

    /// A varint that fits 32 bits.
    pub fn varint_u32(&mut self, expected: &'static str) -> Result<u32, Error> {
        Ok(self.varint_max(u32::MAX.into(), expected)? as u32)
    }

    /// A signed number that [`Writer::zigzag`] wrote.
    pub fn zigzag(&mut self, expected: &'static str) -> Result<i64, Error> {
        let value = self.varint(expected)?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A varint length of at most `max`, then that many bytes.
    pub fn bytes(&mut self, max: usize, expected: &'static str) -> Result<&'a [u8], Error> {
        let length = self.varint_max(max as u64, expected)? as usize;
        self.raw(length, expected)
    }

    /// As [`Reader::bytes`], of UTF-8.
    pub fn str(&mut self, max: usize, expected: &'static str) -> Result<&'a str, Error> {
        std::str::from_utf8(self.bytes(max, expected)?).map_err(|_| Error::NotUtf8 { expected })
    }

    /// A varint count of at most `max` that cannot exceed the bytes left, for what follows it takes at least one byte
    /// each: safe to allocate by.
    pub fn count(&mut self, max: usize, expected: &'static str) -> Result<usize, Error> {
        let count = self.varint_max(max as u64, expected)? as usize;
        if count > self.bytes.len() { Err(Error::Truncated { expected }) } else { Ok(count) }
    }

    /// Exactly `length` bytes.
    pub fn raw(&mut self, length: usize, expected: &'static str) -> Result<&'a [u8], Error> {
        let (head, tail) = self.bytes.split_at_checked(length).ok_or(Error::Truncated { expected })?;
        self.bytes = tail;
        Ok(head)
    }

    /// Exactly `N` bytes.
    pub fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], Error> {
        let (head, tail) = self.bytes.split_first_chunk().ok_or(Error::Truncated { expected })?;
        self.bytes = tail;
        Ok(*head)
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Ends the reading of `what`: nothing may be left.
    pub fn finish(self, what: &'static str) -> Result<(), Error> {
        match self.bytes.len() {
            0 => Ok(()),
            bytes => Err(Error::Trailing { after: what, bytes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn varint_examples_of_rfc_9000_appendix_a1() {
        let examples: [(u64, &[u8]); 4] = [
            (151_288_809_941_952_652, &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]),
            (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
            (15_293, &[0x7b, 0xbd]),
            (37, &[0x25]),
        ];
        for (value, bytes) in examples {
            let mut writer = Writer::new();
            assert_eq!(writer.varint(value).as_slice(), bytes);
            assert_eq!(varint_len(value), bytes.len());
            assert_eq!(Reader::new(bytes).varint("example"), Ok(value));
        }
        assert_eq!(Reader::new(&[0x40, 0x25]).varint("long form"), Ok(37));
    }

    #[test]
    fn errors_name_the_field() {
        let expected = "a name";
        assert_eq!(Reader::new(&[]).u8(expected), Err(Error::Truncated { expected }));
        assert_eq!(Reader::new(&[0xc0]).varint(expected), Err(Error::Truncated { expected }));
        assert_eq!(Reader::new(&[5, 1]).bytes(9, expected), Err(Error::Truncated { expected }));
        assert_eq!(Reader::new(&[5]).bytes(4, expected), Err(Error::OutOfRange { expected, max: 4, got: 5 }));
        assert_eq!(Reader::new(&[1, 0xff]).str(4, expected), Err(Error::NotUtf8 { expected }));
        assert_eq!(Reader::new(&[2]).bool(expected), Err(Error::OutOfRange { expected, max: 1, got: 2 }));
        assert_eq!(Reader::new(&[9, 1, 1]).count(100, expected), Err(Error::Truncated { expected }));
        assert_eq!(Reader::new(&[1]).finish(expected), Err(Error::Trailing { after: expected, bytes: 1 }));
    }

    #[test]
    #[should_panic = "does not fit"]
    fn too_large_a_varint_is_the_callers_mistake() {
        Writer::new().varint(VARINT_MAX + 1);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            varint in 0..=VARINT_MAX, signed in -(1_i64 << 61)..(1 << 61), wide: u128, int: i32, flag: bool,
            bytes in proptest::collection::vec(any::<u8>(), 0..300), text in "\\PC{0,40}",
        ) {
            let mut writer = Writer::new();
            writer.varint(varint).zigzag(signed).u128(wide).i32(int).bool(flag).bytes(&bytes).str(&text);
            writer.u16(int as u16).u32(int as u32).u64(wide as u64).raw(&bytes);
            let mut reader = Reader::new(writer.as_slice());
            prop_assert_eq!(reader.varint("")?, varint);
            prop_assert_eq!(reader.zigzag("")?, signed);
            prop_assert_eq!(reader.u128("")?, wide);
            prop_assert_eq!(reader.i32("")?, int);
            prop_assert_eq!(reader.bool("")?, flag);
            prop_assert_eq!(reader.bytes(300, "")?, &bytes[..]);
            prop_assert_eq!(reader.str(160, "")?, text);
            prop_assert_eq!(reader.u16("")?, int as u16);
            prop_assert_eq!(reader.u32("")?, int as u32);
            prop_assert_eq!(reader.u64("")?, wide as u64);
            prop_assert_eq!(reader.rest(), &bytes[..]);
            prop_assert_eq!(reader.finish(""), Ok(()));
        }
    }
}
