//! Reading a message's arguments by its signature.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use wayland_backend::protocol::{AllowNull, ArgumentType, Interface, MessageDesc};

use super::{Arg, Error, Fault, RawMessage, padded};

/// Reads the arguments of `raw`, a message `desc` of `interface`, taking one descriptor from the front of
/// `fds` for each that the signature asks for.
///
/// The content of padding bytes is ignored: older libwayland leaves them uninitialised.
///
/// # Errors
/// [`Error::Argument`] or [`Error::Trailing`], with what was expected; descriptors taken so far are closed.
pub fn decode(
    desc: &MessageDesc,
    interface: &Interface,
    raw: &RawMessage,
    fds: &mut VecDeque<OwnedFd>,
) -> Result<Vec<Arg>, Error> {
    let mut words = Words(&raw.body);
    let mut args = Vec::with_capacity(desc.signature.len());
    for (index, &kind) in desc.signature.iter().enumerate() {
        let arg = argument(kind, &mut words, fds).map_err(|fault| Error::Argument {
            interface: interface.name,
            message: desc.name,
            index,
            fault,
        })?;
        args.push(arg);
    }
    match words.0.len() {
        0 => Ok(args),
        bytes => Err(Error::Trailing { interface: interface.name, message: desc.name, bytes }),
    }
}

fn argument(kind: ArgumentType, words: &mut Words<'_>, fds: &mut VecDeque<OwnedFd>) -> Result<Arg, Fault> {
    Ok(match kind {
        ArgumentType::Int => Arg::Int(words.uint()?.cast_signed()),
        ArgumentType::Uint => Arg::Uint(words.uint()?),
        ArgumentType::Fixed => Arg::Fixed(words.uint()?.cast_signed()),
        ArgumentType::Str(null) => match words.string()? {
            None if null == AllowNull::No => return Err(Fault::Null),
            string => Arg::Str(string),
        },
        ArgumentType::Object(null) => match words.uint()? {
            0 if null == AllowNull::No => return Err(Fault::Null),
            id => Arg::Object(id),
        },
        // The tables spell out the untyped one of wl_registry.bind: interface, version, id.
        ArgumentType::NewId => Arg::NewId(words.id()?),
        ArgumentType::Array => {
            let length = words.uint()? as usize;
            Arg::Array(words.bytes(length)?.to_vec())
        }
        ArgumentType::Fd => Arg::Fd(fds.pop_front().ok_or(Fault::MissingFd)?),
    })
}

/// The arguments not read yet.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn uint(&mut self) -> Result<u32, Fault> {
        let (word, rest) =
            self.0.split_first_chunk::<4>().ok_or(Fault::Short { expected: 4, got: self.0.len() })?;
        self.0 = rest;
        Ok(u32::from_ne_bytes(*word))
    }

    fn id(&mut self) -> Result<u32, Fault> {
        match self.uint()? {
            0 => Err(Fault::Null),
            id => Ok(id),
        }
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        // Compared before rounding, so that a length near the top of the range cannot wrap.
        let short = Fault::Short { expected: length, got: self.0.len() };
        if length > self.0.len() {
            return Err(short);
        }
        let (bytes, rest) = self.0.split_at_checked(padded(length)).ok_or(short)?;
        self.0 = rest;
        Ok(&bytes[..length])
    }

    fn string(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        let length = self.uint()? as usize;
        if length == 0 {
            return Ok(None);
        }
        let (&last, string) = self.bytes(length)?.split_last().ok_or(Fault::Unterminated)?;
        if last != 0 {
            return Err(Fault::Unterminated);
        }
        if string.contains(&0) {
            return Err(Fault::InteriorNul);
        }
        Ok(Some(string.to_vec()))
    }
}
