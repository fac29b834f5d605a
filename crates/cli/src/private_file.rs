//! Files that only their user can read.
//!
//! It does not know what is in them. Invariant: a file made here has mode 0600 before there is anything in it, and is
//! whole when it appears.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use wayferry_host::edge::socket::random_name;

/// Puts a text into a file at `path`, in place of one that is there; gives its inode.
///
/// # Errors
/// It cannot be made or written; then what was there is as it was.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<u64> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", random_name()));
    let hidden = PathBuf::from(name);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&hidden)?;
    let made = file
        .write_all(text.as_bytes())
        .and_then(|()| file.metadata())
        .and_then(|metadata| fs::rename(&hidden, path).map(|()| metadata.ino()));
    if made.is_err() {
        let _ = fs::remove_file(&hidden);
    }
    made
}
