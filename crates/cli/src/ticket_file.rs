//! Tickets on their way from one machine to the other: files that only their user can read, and stdin.
//!
//! A ticket holds a secret. A command line is no place for one, because other users of the machine see it, and neither
//! is a log that others may read. It does not look into tickets. Invariant: a file made here is a private one, and
//! goes with its value.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, SessionError};
use wayferry_host::edge::whole_file;

/// A file with a ticket in it.
#[derive(Debug)]
pub(crate) struct TicketFile {
    path: PathBuf,
    inode: u64,
}

impl TicketFile {
    /// Puts a ticket into a file at `path`, and takes the place of one that is there.
    ///
    /// # Errors
    /// [`SessionError::File`].
    pub(crate) fn write(path: &Path, ticket: &str) -> Result<Self, Error> {
        let fail = |source| SessionError::File { path: path.to_owned(), source };
        let inode = whole_file::replace(path, &format!("{ticket}\n")).map_err(fail)?;
        Ok(Self { path: path.to_owned(), inode })
    }
}

impl Drop for TicketFile {
    fn drop(&mut self) {
        // Another session may have put its own there since.
        if fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Reads the ticket in a file.
///
/// # Errors
/// [`SessionError::File`], and [`Error::Ticket`] when there is none in it.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let fail = |source| SessionError::File { path: path.to_owned(), source };
    find(fs::File::open(path).map_err(fail)?).map_err(fail)?.ok_or_else(none)
}

/// Reads a ticket from stdin.
///
/// # Errors
/// [`SessionError::System`], and [`Error::Ticket`] when there is none.
pub(crate) fn from_stdin() -> Result<String, Error> {
    let fail = |source| SessionError::System { doing: "reading stdin", source };
    find(io::stdin().lock()).map_err(fail)?.ok_or_else(none)
}

/// The first line that is a ticket, as a job's log has one among others.
fn find(from: impl Read) -> io::Result<Option<String>> {
    let mut text = Vec::new();
    from.take(MAX_TEXT).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().map(str::trim).find(|line| line.starts_with("wf")).map(str::to_owned))
}

fn none() -> Error {
    Error::Ticket("there is none".into())
}

/// Bytes that are looked through: a ticket is the first line that `wayferry host` writes.
const MAX_TEXT: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use wayferry_host::edge::socket::RuntimeDir;

    #[test]
    fn a_ticket_file_is_its_users_alone_and_goes_with_the_session() {
        let dir = RuntimeDir::private().expect("a directory");
        let path = dir.path().join("ticket");
        fs::write(&path, "an old one").expect("a file");
        let first = TicketFile::write(&path, "wf1:first").expect("written");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        assert_eq!(read(&path).expect("a ticket"), "wf1:first");
        let second = TicketFile::write(&path, "wf1:second").expect("written");
        drop(first);
        assert_eq!(read(&path).expect("not the first one's to remove"), "wf1:second");
        drop(second);
        assert_eq!(fs::read_dir(dir.path()).expect("the directory").count(), 0);
    }

    #[test]
    fn a_ticket_is_found_among_other_lines_and_missed_where_there_is_none() {
        assert_eq!(find(&b"note: x\n  wf1:abc \nwf1:def\n"[..]).expect("read").as_deref(), Some("wf1:abc"));
        assert_eq!(find(&b"note: x\n"[..]).expect("read"), None);
        assert_eq!(find(&vec![b'x'; 1 << 20][..]).expect("read"), None);
    }
}
