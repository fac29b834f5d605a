//! The frames that a client's bytes are made of: commands, and sound for one of its streams.
//!
//! Neither what a command asks nor where sound goes is decided here. Invariants: nothing is allocated because a header
//! announces it; sound is handed on as it comes, and only of a command is kept what came of it so far.

/// What was read and is whole enough to be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// A whole command.
    Command(&'a [u8]),
    /// A part of a frame of sound.
    Sound(Sound<'a>),
}

/// A part of a frame of sound.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sound<'a> {
    /// The stream.
    pub(crate) channel: u32,
    /// Where the frame belongs; with its first part only.
    pub(crate) seek: Option<Seek>,
    /// The next of its bytes.
    pub(crate) bytes: &'a [u8],
}

/// Where a frame of sound belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seek {
    /// What the offset counts from.
    pub(crate) from: From,
    /// In bytes.
    pub(crate) offset: i64,
}

/// What an offset counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// Where the last write ended.
    Write,
    /// The begin of the stream.
    Start,
    /// What is played next.
    Read,
    /// The end of what has been written.
    End,
}

/// Bytes of a client that were not used yet.
#[derive(Debug, Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    /// How many of them were used.
    used: usize,
    sound: Option<Rest>,
}

/// A frame of sound of which some is to come.
#[derive(Clone, Copy, Debug)]
struct Rest {
    channel: u32,
    seek: Option<Seek>,
    left: usize,
}

impl Input {
    /// Bytes came.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        self.bytes.drain(..self.used);
        self.used = 0;
        if self.bytes.len() > MAX_UNREAD {
            return Err("sends although it is not read");
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Whether nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.used == self.bytes.len()
    }

    /// What can be used next; `None` if more must come first.
    pub(crate) fn piece(&mut self) -> Result<Option<Piece<'_>>, &'static str> {
        if let Some(rest) = self.sound.take() {
            return Ok(self.sound(rest));
        }
        let Some((header, body)) = self.bytes[self.used..].split_first_chunk::<HEADER>() else {
            self.tidy();
            return Ok(None);
        };
        let header = Header::read(header)?;
        if header.channel != COMMAND {
            let rest = Rest { channel: header.channel, seek: Some(header.seek()?), left: header.length };
            self.used += HEADER;
            return Ok(self.sound(rest));
        }
        if body.len() < header.length {
            return Ok(None);
        }
        let start = self.used + HEADER;
        self.used = start + header.length;
        Ok(Some(Piece::Command(&self.bytes[start..self.used])))
    }

    fn sound(&mut self, rest: Rest) -> Option<Piece<'_>> {
        let there = (self.bytes.len() - self.used).min(rest.left);
        if there == 0 && rest.left > 0 {
            self.sound = Some(rest);
            self.tidy();
            return None;
        }
        let left = rest.left - there;
        self.sound = (left > 0).then_some(Rest { seek: None, left, ..rest });
        let bytes = &self.bytes[self.used..self.used + there];
        self.used += there;
        Some(Piece::Sound(Sound { channel: rest.channel, seek: rest.seek, bytes }))
    }

    /// Many clients wait most of the time: they keep no room meanwhile.
    fn tidy(&mut self) {
        if self.is_empty() {
            self.bytes = Vec::new();
            self.used = 0;
        }
    }
}

#[derive(Debug)]
struct Header {
    length: usize,
    channel: u32,
    offset: i64,
    flags: u32,
}

impl Header {
    fn read(bytes: &[u8; HEADER]) -> Result<Self, &'static str> {
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let offset = (u64::from(word(8)) << 32 | u64::from(word(12))).cast_signed();
        let (length, channel) = (word(0) as usize, word(4));
        if length > if channel == COMMAND { MAX_COMMAND } else { MAX_SOUND } {
            return Err("announces too long a frame");
        }
        Ok(Self { length, channel, offset, flags: word(16) })
    }

    fn seek(&self) -> Result<Seek, &'static str> {
        if self.flags & SHARED != 0 {
            return Err("uses shared memory, which it was refused");
        }
        let from = match self.flags & 0xff {
            0 => From::Write,
            1 => From::Start,
            2 => From::Read,
            3 => From::End,
            _ => return Err("seeks in an unknown way"),
        };
        Ok(Seek { from, offset: self.offset })
    }
}

/// Puts the header of a command before it.
pub(crate) fn framed(command: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(command.len()).unwrap_or(u32::MAX);
    out.extend(length.to_be_bytes());
    out.extend(COMMAND.to_be_bytes());
    out.extend([0; 12]);
    out.extend(command);
}

/// Puts the header of sound before it.
pub(crate) fn framed_sound(channel: u32, sound: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(sound.len()).unwrap_or(u32::MAX);
    out.extend(length.to_be_bytes());
    out.extend(channel.to_be_bytes());
    out.extend([0; 12]);
    out.extend(sound);
}

/// Bytes of a header: length, channel, offset, flags.
const HEADER: usize = 20;

/// The channel of commands.
const COMMAND: u32 = u32::MAX;

/// Flags of frames whose bytes are elsewhere.
const SHARED: u32 = 0xc000_0000;

/// Bytes of a command: those of real programs have some hundred.
const MAX_COMMAND: usize = 64 << 10;

/// Bytes of a frame of sound, as many as the longest stream keeps.
const MAX_SOUND: usize = 4 << 20;

/// Bytes that wait to be used when more come: those of a command, or what a read of a socket gave while answers lie
/// unread.
const MAX_UNREAD: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn header(length: u32, channel: u32, flags: u32) -> Vec<u8> {
        [length, channel, 0, 0, flags].iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn a_header_of_2_gib_is_refused_and_nothing_allocated() {
        for channel in [COMMAND, 0] {
            let mut input = Input::default();
            input.push(&header(1 << 31, channel, 0)).unwrap();
            assert!(input.piece().is_err());
            assert!(input.bytes.capacity() < 100);
        }
    }

    #[test]
    fn sound_is_handed_on_as_it_comes() {
        let mut input = Input::default();
        input.push(&[&header(5, 7, 2)[..], &[1, 2]].concat()).unwrap();
        let seek = Some(Seek { from: From::Read, offset: 0 });
        assert_eq!(input.piece(), Ok(Some(Piece::Sound(Sound { channel: 7, seek, bytes: &[1, 2] }))));
        assert_eq!(input.piece(), Ok(None));
        input.push(&[3, 4, 5, 9]).unwrap();
        assert_eq!(
            input.piece(),
            Ok(Some(Piece::Sound(Sound { channel: 7, seek: None, bytes: &[3, 4, 5] })))
        );
        assert_eq!(input.piece(), Ok(None));
        assert_eq!(input.bytes[input.used..], [9]);
    }

    #[test]
    fn a_command_is_handed_on_when_it_is_whole() {
        let mut bytes = Vec::new();
        framed(&[1, 2, 3], &mut bytes);
        let mut input = Input::default();
        for byte in &bytes[..22] {
            input.push(&[*byte]).unwrap();
            assert_eq!(input.piece(), Ok(None));
        }
        input.push(&bytes[22..]).unwrap();
        assert_eq!(input.piece(), Ok(Some(Piece::Command(&[1, 2, 3]))));
        assert_eq!(input.piece(), Ok(None));
        assert_eq!(input.bytes.capacity(), 0, "keeps room");
    }

    #[test]
    fn shared_memory_is_refused() {
        for flags in [0x8000_0000, 0x4000_0000, 0xc000_0000, 4] {
            let mut input = Input::default();
            input.push(&header(0, 3, flags)).unwrap();
            assert!(input.piece().is_err());
        }
    }
}
