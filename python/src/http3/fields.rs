//! Field sections: what HTTP calls headers and trailers, as QPACK writes them (RFC 9204 §4.5).
//!
//! Of QPACK's two tables only the static one is used. A dynamic one would be state that a peer fills, and that makes
//! one request wait for another; this side grants it no room (`SETTINGS_QPACK_MAX_TABLE_CAPACITY` is 0) and asks for
//! none. Invariant: what [`decode`] gives is well-formed by RFC 9114 §4.2 and §4.3, and no larger than the limit.

use std::borrow::Cow;

use super::fault::{DECOMPRESSION_FAILED, EXCESSIVE_LOAD, Fault, MESSAGE_ERROR};
use super::huffman;
use super::table::{self, Place};

/// What a section belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Response,
    Trailers,
}

/// A name or a value.
pub(crate) type Text = Cow<'static, [u8]>;

/// What a section says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    /// Those whose name begins with `:`, each once.
    pub(crate) pseudo: Vec<(&'static str, Text)>,
    pub(crate) fields: Vec<(Text, Text)>,
}

/// Reads a section whose size, as RFC 9114 §4.2.2 counts it, is at most `limit`.
///
/// # Errors
/// What is no QPACK, needs the dynamic table, is too large or is malformed.
pub(crate) fn decode(bytes: &[u8], kind: Kind, limit: usize) -> Result<Section, Fault> {
    let mut input = Input(bytes);
    if input.number(8)? != 0 {
        return Err(Fault::new(
            DECOMPRESSION_FAILED,
            "a field section refers to a dynamic table that has no room",
        ));
    }
    input.number(7)?;
    let (mut section, mut room) = (Section::default(), limit);
    while !input.0.is_empty() {
        room = room.checked_sub(LINE).ok_or(TOO_LARGE)?;
        let (name, value) = input.line(room)?;
        room = room.checked_sub(name.len() + value.len()).ok_or(TOO_LARGE)?;
        section.add(kind, name, value)?;
    }
    Ok(section)
}

/// Writes a section. The caller has looked at the fields with [`check`].
pub(crate) fn encode<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    // No entry of the dynamic table is referred to.
    let mut section = vec![0, 0];
    for (name, value) in fields {
        match table::find(name, value) {
            Some(Place::Line(index)) => number(&mut section, 0b1100_0000, 6, index),
            Some(Place::Name(index)) => {
                number(&mut section, 0b0101_0000, 4, index);
                text(&mut section, 0, 7, value);
            }
            None => {
                text(&mut section, 0b0010_0000, 3, name);
                text(&mut section, 0, 7, value);
            }
        }
    }
    section
}

/// What is wrong with a field that is to be sent.
pub(crate) fn check(name: &[u8], value: &[u8]) -> Result<(), &'static str> {
    let plain = name.strip_prefix(b":").unwrap_or(name);
    if plain.is_empty() || !plain.iter().all(|&byte| is_token(byte)) {
        return Err("a field's name has letters, digits and !#$%&'*+-.^_`|~ only, in lower case");
    }
    if FORBIDDEN.contains(&name) {
        return Err("a field of HTTP/1's connections, which HTTP/3 forbids");
    }
    if !is_value(value) {
        return Err("a field's value has no line breaks, no zeros, and no space at its ends");
    }
    Ok(())
}

impl Section {
    fn add(&mut self, kind: Kind, name: Text, value: Text) -> Result<(), Fault> {
        if !is_value(&value) {
            return Err(malformed("a field's value has a character that it must not"));
        }
        if name.first() == Some(&b':') {
            return self.add_pseudo(kind, &name, value);
        }
        if name.is_empty() || !name.iter().all(|&byte| is_token(byte)) {
            return Err(malformed("a field's name has a character that it must not"));
        }
        if FORBIDDEN.contains(&&*name) || (*name == *b"te" && *value != *b"trailers") {
            return Err(malformed("a field of HTTP/1's connections"));
        }
        self.fields.push((name, value));
        Ok(())
    }

    fn add_pseudo(&mut self, kind: Kind, name: &[u8], value: Text) -> Result<(), Fault> {
        let known: &[&'static str] = match kind {
            Kind::Request => &[":method", ":scheme", ":authority", ":path", ":protocol"],
            Kind::Response => &[":status"],
            Kind::Trailers => &[],
        };
        let Some(name) = known.iter().find(|known| known.as_bytes() == name) else {
            return Err(malformed("a pseudo-header field that does not belong here"));
        };
        let fits = |&byte: &u8| match *name {
            ":method" | ":protocol" => is_token(byte.to_ascii_lowercase()),
            _ => byte.is_ascii_graphic(),
        };
        if !value.iter().all(fits) {
            return Err(malformed("a pseudo-header field with a character that it must not have"));
        }
        if !self.fields.is_empty() || self.pseudo.iter().any(|(before, _)| before == name) {
            return Err(malformed("a pseudo-header field behind others, or twice"));
        }
        self.pseudo.push((name, value));
        Ok(())
    }
}

/// What is left of an encoded section.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    /// One field line, whose texts have at most `room` bytes each.
    fn line(&mut self, room: usize) -> Result<(Text, Text), Fault> {
        let first = self.0.first().copied().unwrap_or_default();
        match first {
            0b1100_0000.. => {
                let (name, value) = table::line(self.number(6)?).ok_or(BROKEN)?;
                Ok((name.as_bytes().into(), value.as_bytes().into()))
            }
            // With a name of the static table.
            0b0101_0000..=0b0101_1111 | 0b0111_0000..=0b0111_1111 => {
                let (name, _) = table::line(self.number(4)?).ok_or(BROKEN)?;
                Ok((name.as_bytes().into(), self.text(7, room)?))
            }
            0b0010_0000..=0b0011_1111 => Ok((self.text(3, room)?, self.text(7, room)?)),
            _ => Err(Fault::new(
                DECOMPRESSION_FAILED,
                "a field line refers to a dynamic table that has no room",
            )),
        }
    }

    /// A number whose first byte has `bits` bits of it (RFC 7541 §5.1).
    fn number(&mut self, bits: u32) -> Result<u64, Fault> {
        let most = (1_u64 << bits) - 1;
        let mut value = u64::from(self.byte()?) & most;
        if value < most {
            return Ok(value);
        }
        let mut shift = 0;
        loop {
            let byte = self.byte()?;
            // RFC 9204 §4.1.1: 62 bits are to be understood.
            if shift > 56 {
                return Err(BROKEN);
            }
            value += u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    /// A text whose length's first byte has `bits` bits, with the flag for Huffman's code before them.
    fn text(&mut self, bits: u32, room: usize) -> Result<Text, Fault> {
        let huffman = self.0.first().is_some_and(|first| first & (1 << bits) != 0);
        let length = usize::try_from(self.number(bits)?).map_err(|_| BROKEN)?;
        let (text, rest) = self.0.split_at_checked(length).ok_or(BROKEN)?;
        self.0 = rest;
        if !huffman {
            return Ok(text.to_vec().into());
        }
        // A symbol has 5 bits at least.
        match huffman::decode(text, room) {
            Some(text) => Ok(text.into()),
            None if length > room / 2 => Err(TOO_LARGE),
            None => Err(BROKEN),
        }
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        let (first, rest) = self.0.split_first().ok_or(BROKEN)?;
        self.0 = rest;
        Ok(*first)
    }
}

/// RFC 7541 §5.1.
fn number(section: &mut Vec<u8>, flags: u8, bits: u32, mut value: usize) {
    let most = (1_usize << bits) - 1;
    if value < most {
        return section.push(flags | value as u8);
    }
    section.push(flags | most as u8);
    value -= most;
    while value >= 0x80 {
        section.push(value as u8 | 0x80);
        value >>= 7;
    }
    section.push(value as u8);
}

fn text(section: &mut Vec<u8>, flags: u8, bits: u32, text: &[u8]) {
    number(section, flags, bits, text.len());
    section.extend_from_slice(text);
}

/// RFC 9110 §5.6.2, and lower case by RFC 9114 §4.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// RFC 9114 §10.3 and RFC 9110 §5.5.
fn is_value(value: &[u8]) -> bool {
    let space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    !value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'))
        && !space(value.first())
        && !space(value.last())
}

fn malformed(text: &'static str) -> Fault {
    Fault::new(MESSAGE_ERROR, text)
}

const BROKEN: Fault = Fault::new(DECOMPRESSION_FAILED, "a field section cannot be read");
const TOO_LARGE: Fault = Fault::new(EXCESSIVE_LOAD, "a field section is too large");

/// RFC 9114 §4.2.
const FORBIDDEN: [&[u8]; 5] =
    [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];

/// What each line counts besides its texts (RFC 9114 §4.2.2).
pub(crate) const LINE: usize = 32;
