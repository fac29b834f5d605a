//! Files that cross: what is said of one before its bytes come, and what became of it.
//!
//! The bytes cross in a pipe channel of the connection [`FILES`], whose number is the offer's. Nothing here touches a
//! disk. Invariant: a name or path that is decoded has no more bytes than its bound; it may hold any character, and is
//! judged by the side that keeps the file.

use crate::wire::{Reader, Writer};
use crate::{ConnectionId, Error};

/// The connection of pipes that carry files: no program's. Each side numbers its own.
pub const FILES: ConnectionId = ConnectionId(u32::MAX);

/// Longest name of a file, in bytes.
pub const MAX_FILE_NAME: usize = 255;

/// Longest path of a file that is fetched, or was kept, in bytes.
pub const MAX_FILE_PATH: usize = 4096;

/// A file that the sender of this would give to the other side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileOffer {
    /// The number of its pipe; counted by the sender, shared with that of its [`Control::FetchFile`](crate::Control)s.
    pub id: u64,
    /// The [`Control::FetchFile`](crate::Control) that this answers.
    pub answers: Option<u64>,
    /// Bytes that follow, exactly: fewer or more are no whole file.
    pub size: u64,
    /// What it is called, without a directory; at most [`MAX_FILE_NAME`] bytes.
    pub name: String,
}

impl FileOffer {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.varint(self.id).bool(self.answers.is_some());
        if let Some(answers) = self.answers {
            writer.varint(answers);
        }
        writer.varint(self.size).str(&self.name);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let id = reader.varint("the number of a file")?;
        let answers = match reader.bool("whether a file was asked for")? {
            true => Some(reader.varint("the number of a request for a file")?),
            false => None,
        };
        let size = reader.varint("the size of a file")?;
        let name = reader.str(MAX_FILE_NAME, "the name of a file")?.to_owned();
        Ok(Self { id, answers, size, name })
    }
}

/// Where a file was kept, if that is told.
pub(crate) fn place(reader: &mut Reader<'_>) -> Result<Option<Vec<u8>>, Error> {
    match reader.is_empty() {
        true => Ok(None),
        false => Ok(Some(reader.bytes(MAX_FILE_PATH, "where a file is")?.to_vec())),
    }
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FileFate {
    /// It is there, whole.
    Kept = 0,
    /// The user there does not take or give files.
    Refused = 1,
    /// Too many are on their way.
    TooMany = 2,
    /// There is no room for it.
    NoSpace = 3,
    /// Fewer or more bytes came than were said.
    Broken = 4,
    /// There is no such file, or it is none that can be sent.
    Missing = 5,
    /// It could not be written or read. Answers of later builds are taken for this one.
    Failed = 6,
}

impl FileFate {
    pub(crate) fn from_code(code: u8) -> Self {
        let known = [Self::Kept, Self::Refused, Self::TooMany, Self::NoSpace, Self::Broken, Self::Missing];
        known.into_iter().find(|fate| *fate as u8 == code).unwrap_or(Self::Failed)
    }
}
