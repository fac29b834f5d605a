//! Files that appear under their names whole or not at all.
//!
//! It does not know what is in them. Invariants: what is under a name is on the disk, and none but its user can open a
//! private file before there is anything in it. A file system that can neither link files nor rename them without
//! replacing others shows a new file empty for a moment.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::socket::random_name;

/// Puts a text into a file at `path` that only its user can read, in place of one that is there; gives its inode.
///
/// # Errors
/// It cannot be made or written; then what was there is as it was.
pub fn replace(path: &Path, text: &str) -> io::Result<u64> {
    write(path, text, 0o600, |hidden| fs::rename(hidden, path))
}

/// Puts a text into a new file at `path` that all may read whom the user's mask lets.
///
/// # Errors
/// There is one of that name, which stays, or it cannot be made or written.
pub fn create(path: &Path, text: &str) -> io::Result<u64> {
    write(path, text, 0o666, |hidden| rename(hidden, path))
}

fn write(path: &Path, text: &str, mode: u32, name: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<u64> {
    let mut hidden = path.as_os_str().to_owned();
    hidden.push(format!(".{}", random_name()));
    let hidden = PathBuf::from(hidden);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&hidden)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| settle(&file)).and_then(|()| file.metadata());
    let made = written.and_then(|metadata| name(&hidden).map(|()| metadata.ino()));
    if made.is_err() {
        let _ = fs::remove_file(&hidden);
    }
    made
}

/// Waits until all of it is on the disk: a network's file system tells only then that it has no room, and a name may
/// otherwise outlive a power failure without its bytes.
pub(crate) fn settle(file: &File) -> io::Result<()> {
    match rustix::fs::fsync(file) {
        // The file system has no such thing.
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        result => Ok(result?),
    }
}

/// Renames a file, never over another.
pub(crate) fn rename(hidden: &Path, path: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, hidden, CWD, path, RenameFlags::NOREPLACE) {
        // The file system knows no such renaming.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => match fs::hard_link(hidden, path) {
            Ok(()) => fs::remove_file(hidden),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
            // Nor two names of one file, as FAT behind FUSE.
            Err(_) => rename_to_taken(hidden, path),
        },
        result => Ok(result?),
    }
}

/// Renames a file to a name that an empty one has taken before.
fn rename_to_taken(hidden: &Path, path: &Path) -> io::Result<()> {
    let empty = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.metadata().ok();
    fs::rename(hidden, path).inspect_err(|_| give_back(path, empty.as_ref()))
}

/// Removes the empty file that has taken a name, unless another program has written to it since, or put something in
/// its place.
fn give_back(path: &Path, empty: Option<&Metadata>) {
    let there = fs::symlink_metadata(path).ok();
    let same = |there: &Metadata, empty: &Metadata| (there.dev(), there.ino()) == (empty.dev(), empty.ino());
    if there.zip(empty).is_some_and(|(there, empty)| same(&there, empty) && there.len() == 0) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::socket::RuntimeDir;

    #[test]
    fn a_private_file_takes_a_place_and_a_new_one_does_not() {
        let dir = RuntimeDir::private().expect("a directory");
        let (private, new) = (dir.path().join("private"), dir.path().join("new"));
        let read = |path: &Path| fs::read_to_string(path).expect("a file");
        replace(&private, "one").expect("it is new");
        let inode = replace(&private, "two").expect("it is replaced");
        let about = fs::metadata(&private).expect("there");
        assert_eq!((read(&private), about.ino(), about.mode() & 0o777), ("two".into(), inode, 0o600));
        create(&new, "one").expect("it is new");
        assert_eq!(create(&new, "two").expect_err("it is taken").kind(), ErrorKind::AlreadyExists);
        assert_eq!(read(&new), "one");
        assert!(replace(&dir.path().join("none/x"), "one").is_err());
        assert_eq!(fs::read_dir(dir.path()).expect("read").count(), 2, "nothing else is left");
    }

    #[test]
    fn where_nothing_else_keeps_a_name_from_being_replaced_an_empty_file_takes_it_first() {
        let dir = RuntimeDir::private().expect("a directory");
        let [hidden, path] = ["hidden", "path"].map(|name| dir.path().join(name));
        fs::write(&hidden, "text").expect("written");
        rename_to_taken(&hidden, &path).expect("it is free");
        assert_eq!((fs::read_to_string(&path).expect("a file"), hidden.exists()), ("text".into(), false));
        fs::write(&hidden, "more").expect("written");
        let taken = rename_to_taken(&hidden, &path).expect_err("it is taken");
        assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).expect("a file"), "text");
        let (gone, free) = (dir.path().join("gone"), dir.path().join("free"));
        assert!(rename_to_taken(&gone, &free).is_err() && !free.exists(), "no empty file is left");
    }

    #[test]
    fn regression_a_file_that_another_program_puts_under_a_taken_name_is_removed() {
        let dir = RuntimeDir::private().expect("a directory");
        let [path, other] = ["path", "other"].map(|name| dir.path().join(name));
        let take = || File::create_new(&path).and_then(|file| file.metadata()).expect("it is free");
        let empty = take();
        fs::write(&path, "text").expect("written");
        give_back(&path, Some(&empty));
        assert_eq!(fs::read_to_string(&path).expect("a file"), "text");
        fs::write(&other, "").expect("written");
        fs::rename(&other, &path).expect("renamed");
        give_back(&path, Some(&empty));
        assert!(path.exists(), "it is another, if an empty one");
        fs::remove_file(&path).expect("removed");
        give_back(&path, Some(&take()));
        assert!(!path.exists());
    }
}
