//! The file that the demo's picture goes to.
//!
//! It is opened before anything is shown, so that a user learns at once that it cannot be written. Invariant: no file
//! is left that was not there before and got no picture.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wayferry_stage::Image;

use crate::error::SessionError;

/// See the module.
#[derive(Debug)]
pub(super) struct Paper {
    path: PathBuf,
    file: File,
    /// Whether the file is to go if no picture comes.
    blank: bool,
}

impl Paper {
    /// Opens the file, which is made if there is none, and keeps what is in it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn new(path: &Path) -> Result<Self, SessionError> {
        let failed = |source| SessionError::File { path: path.to_owned(), source };
        let made = OpenOptions::new().write(true).create_new(true).open(path);
        let (file, blank) = match made {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (OpenOptions::new().write(true).open(path).map_err(failed)?, false)
            }
            Err(error) => return Err(failed(error)),
        };
        Ok(Self { path: path.to_owned(), file, blank })
    }

    /// Writes the picture.
    ///
    /// # Errors
    /// The disk is full.
    pub(super) fn take(mut self, picture: &Image) -> Result<(), SessionError> {
        let written = picture.to_png().and_then(|png| {
            // What is no file, such as a pipe, has no length.
            let _ = self.file.set_len(0);
            self.file.write_all(&png)
        });
        written.map_err(|source| SessionError::File { path: self.path.clone(), source })?;
        self.blank = false;
        Ok(())
    }
}

impl Drop for Paper {
    fn drop(&mut self) {
        if self.blank {
            // What cannot be removed is only an empty file.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Shows a picture with the program that the user's desktop has for it, for a user who is there: one with a terminal
/// and a display.
pub(super) fn open(path: &Path) {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if io::stdout().is_terminal() && ["WAYLAND_DISPLAY", "DISPLAY"].into_iter().any(is_set) {
        let mut opener = Command::new("xdg-open");
        opener.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A desktop without it shows nothing; the path is told.
        let _ = opener.spawn();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("wayferry-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_picture_takes_the_place_of_what_was_there() {
        let path = path("kept.png");
        std::fs::write(&path, vec![b'x'; 10_000]).unwrap();
        drop(Paper::new(&path).unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 10_000, "only opened");
        let image = Image::new(3, 2, 0xff10_2030);
        Paper::new(&path).unwrap().take(&image).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), image.to_png().unwrap());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn no_empty_file_is_left() {
        let path = path("new.png");
        let paper = Paper::new(&path).unwrap();
        assert!(path.exists(), "it can be written");
        drop(paper);
        assert!(!path.exists());
    }
}
