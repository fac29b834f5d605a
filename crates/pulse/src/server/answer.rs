//! What a command is answered.

use pulseaudio::protocol::{CommandReply, CommandTag, PulseError, TagStructWriter};

/// See the module: each command has one, or the number of why not.
#[derive(Debug)]
pub(crate) enum Answer {
    /// These values.
    Values(Vec<u8>),
    /// It comes when it is time.
    Later,
}

impl Answer {
    /// It was done.
    pub(crate) fn ack() -> Self {
        Self::Values(Vec::new())
    }

    /// These values, in this version of the protocol.
    pub(crate) fn of<R: CommandReply>(version: u16, reply: &R) -> Result<Self, PulseError> {
        let mut values = Vec::new();
        TagStructWriter::new(&mut values, version).write(reply).map_err(|_| PulseError::Internal)?;
        Ok(Self::Values(values))
    }

    /// As many of these values as an answer may have.
    pub(crate) fn list<R: CommandReply>(
        version: u16,
        replies: impl Iterator<Item = R>,
    ) -> Result<Self, PulseError> {
        let mut values = Vec::new();
        for reply in replies {
            let before = values.len();
            TagStructWriter::new(&mut values, version).write(&reply).map_err(|_| PulseError::Internal)?;
            if values.len() > MAX_LIST {
                values.truncate(before);
                break;
            }
        }
        Ok(Self::Values(values))
    }

    /// As it is sent; nothing if it comes later.
    pub(crate) fn to_vec(&self, sequence: u32) -> Vec<u8> {
        match self {
            Self::Values(values) => [&opening(CommandTag::Reply, sequence)[..], values].concat(),
            Self::Later => Vec::new(),
        }
    }
}

/// Why a command was not done, as it is sent.
pub(crate) fn refusal(sequence: u32, error: PulseError) -> Vec<u8> {
    [opening(CommandTag::Error, sequence), number(error as u32).to_vec()].concat()
}

fn opening(tag: CommandTag, sequence: u32) -> Vec<u8> {
    [number(tag as u32), number(sequence)].concat()
}

fn number(value: u32) -> [u8; 5] {
    let [a, b, c, d] = value.to_be_bytes();
    [b'L', a, b, c, d]
}

/// Bytes of an answer that lists things: some hundred streams.
const MAX_LIST: usize = 256 << 10;
