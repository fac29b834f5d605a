//! The file after `--log`: the lines that the user is told, and those that are left out on the terminal, each with its
//! time.
//!
//! Invariant: it never holds up what it tells of for longer than a write to a file takes, and has an end.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Error, SessionError};

/// See the module.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    path: PathBuf,
    /// Bytes that may still be written.
    room: usize,
}

impl Log {
    /// Begins to write at the end of a file.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let opened = OpenOptions::new().create(true).append(true).open(path);
        let file = opened.map_err(|source| SessionError::File { path: path.to_owned(), source })?;
        Ok(Self { file, path: path.to_owned(), room: MAX_BYTES })
    }

    /// Writes a line. A disk that is full is no trouble of the session's, and ends the log.
    ///
    /// # Errors
    /// What the user should know, once: it has ended, and why.
    pub(super) fn line(&mut self, text: &str) -> Result<(), String> {
        let line = format!("{} {text}\n", humantime::format_rfc3339_millis(SystemTime::now()));
        match self.room.checked_sub(line.len()) {
            Some(room) => {
                self.room = room;
                self.file.write_all(line.as_bytes()).map_err(|error| {
                    self.room = 0;
                    format!("the log `{}` ends here: {error}", self.path.display())
                })
            }
            None if self.room > 0 => {
                self.room = 0;
                let _ = self.file.write_all(b"the log ends here: it is full\n");
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Bytes of a process.
const MAX_BYTES: usize = 64 << 20;
