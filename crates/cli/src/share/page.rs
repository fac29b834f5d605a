//! The files of the page: those in this program, or those of a folder.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::Path;

use wayferry_net::sha256;
use wayferry_net::site::File;

use crate::error::{Error, SessionError};

/// What was there when the program was built, packed.
const BUILT_IN: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The page of this program, or the one in `folder`.
///
/// # Errors
/// There is none.
pub(super) fn files(folder: Option<&Path>) -> Result<Vec<File>, Error> {
    if let Some(folder) = folder {
        let failed = |source| SessionError::File { path: folder.to_owned(), source };
        return Ok(read(folder).map_err(failed)?);
    }
    if BUILT_IN.is_empty() {
        return Err(Error::NoPage);
    }
    let file = |(name, bytes): &(&str, &'static [u8])| File {
        name: (*name).to_owned(),
        bytes: Cow::Borrowed(*bytes),
        packed: true,
    };
    Ok(BUILT_IN.iter().map(file).collect())
}

/// What tells the page which tickets it is for, by their digests: any site can lead a browser to the page with one of
/// its own, and its user would type into another's session under this address.
pub(super) fn links(ticket: &str) -> File {
    let digits: String = sha256(ticket.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    File { name: "links".to_owned(), bytes: Cow::Owned(digits.into_bytes()), packed: false }
}

/// The plain files of a folder, each once and now.
fn read(folder: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let (true, Ok(name)) = (entry.file_type()?.is_file(), entry.file_name().into_string()) {
            files.push(File { name, bytes: Cow::Owned(fs::read(entry.path())?), packed: false });
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_the_page_says_so() {
        match files(None) {
            Ok(files) => assert!(files.iter().any(|file| file.name == "index.html" && file.packed)),
            Err(error) => assert!(BUILT_IN.is_empty() && error.code() == 92, "{error}"),
        }
    }
}
