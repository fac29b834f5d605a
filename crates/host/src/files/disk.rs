//! Files on this machine's disk: kept as they come, and read to be given away.
//!
//! Disks wait, so this runs on threads of its own; bytes come and go through pipes. It knows no session. Invariants: a
//! file appears under its name whole or not at all, never in place of another, and is its user's alone. One exception:
//! where a file system can neither link files nor rename them without replacing others (`edge/whole_file.rs`), a
//! process that is killed between taking a name with an empty file and renaming to it leaves that empty file, and the
//! whole one under its hidden name.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, OFlags};
use rustix::io::Errno;
use wayferry_proto::FileFate;
use wayferry_proto::wire::VARINT_MAX;

use super::name;
use crate::edge::socket::random_name;
use crate::edge::whole_file::{rename, settle};

/// Why a file is not there, for the other side and for the user.
pub(super) type Trouble = (FileFate, String);

/// Writes what comes from `from` to a file of `size` bytes in `place`; gives its path.
///
/// # Errors
/// What came is not whole, or the disk has no room or fails; then nothing is left of it.
pub(super) fn keep(place: &Path, called: &str, size: u64, from: OwnedFd) -> Result<PathBuf, Trouble> {
    keep_where(place, called, size, from, free)
}

/// The same, where so many bytes of the disk are `free`.
fn keep_where(
    place: &Path,
    called: &str,
    size: u64,
    from: OwnedFd,
    free: impl Fn(&Path) -> io::Result<u64>,
) -> Result<PathBuf, Trouble> {
    let fail = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| (fate_of(&error), format!("`{path}`: {error}"))
    };
    DirBuilder::new().recursive(true).mode(0o700).create(place).map_err(fail(place))?;
    let has_room = |bytes: u64| match free(place).map_err(fail(place))? {
        free if free >= bytes.saturating_add(RESERVE) => Ok(()),
        _ => Err((FileFate::NoSpace, format!("`{}`: no room for {size} bytes", place.display()))),
    };
    has_room(size)?;
    // Files without bytes take room, too. Some systems count none.
    let of_files = rustix::fs::statvfs(place).map_err(|error| fail(place)(error.into()))?;
    if of_files.f_files > 0 && of_files.f_favail < SPARE_FILES {
        return Err((FileFate::NoSpace, format!("`{}`: no room for another file", place.display())));
    }
    let part = Part::new(place).map_err(fail(place))?;
    fill(&part, size, from, has_room)?;
    publish(part, &name::usable(called), has_room)
}

/// Writes `size` bytes that come, as far as there is room.
fn fill(
    part: &Part<'_>,
    size: u64,
    from: OwnedFd,
    has_room: impl Fn(u64) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let fail = |error: io::Error| part.trouble(&error);
    let mut from = File::from(from);
    let left = part.write(&from, size, has_room)?;
    if left > 0 || from.read(&mut [0]).map_err(fail)? > 0 {
        return Err((FileFate::Broken, "not all of it came".to_owned()));
    }
    settle(&part.file).map_err(fail)
}

/// Gives a file that is whole its name. Where one without a name can be given none, a copy of it is.
fn publish(
    mut part: Part<'_>,
    called: &str,
    has_room: impl Fn(u64) -> Result<(), Trouble>,
) -> Result<PathBuf, Trouble> {
    match part.put(called) {
        Err(error) if part.hidden.is_none() && may_copy_have_it(&error) => {
            let mut copy = part.copied(has_room)?;
            copy.put(called).map_err(|error| copy.trouble(&error))
        }
        result => result.map_err(|error| part.trouble(&error)),
    }
}

/// Whether a copy of a file may be given the name that itself was not, for this reason.
fn may_copy_have_it(error: &io::Error) -> bool {
    let in_vain = [Errno::NAMETOOLONG, Errno::NOSPC, Errno::DQUOT, Errno::ROFS];
    error.kind() != ErrorKind::AlreadyExists
        && Errno::from_io_error(error).is_none_or(|error| !in_vain.contains(&error))
}

/// Bytes that this user may still write to the disk of `place`.
fn free(place: &Path) -> io::Result<u64> {
    let room = rustix::fs::statvfs(place)?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

/// A file that has no name yet, and is gone with the process that writes it. Where the file system has no such thing,
/// it has a name that is hidden, and is removed with this value.
struct Part<'a> {
    place: &'a Path,
    file: File,
    hidden: Option<PathBuf>,
}

impl<'a> Part<'a> {
    fn new(place: &'a Path) -> io::Result<Self> {
        match Self::unnamed(place) {
            Some(file) => Ok(Self { place, file, hidden: None }),
            None => Self::hidden(place),
        }
    }

    /// `None` where the file system has none, or where nothing could name it later.
    fn unnamed(place: &Path) -> Option<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600).custom_flags(OFlags::TMPFILE.bits().cast_signed());
        options.open(place).ok().filter(|file| link(file).exists())
    }

    fn hidden(place: &'a Path) -> io::Result<Self> {
        let path = place.join(format!(".{}.part", random_name()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self { place, file, hidden: Some(path) })
    }

    /// The same file with a hidden name, as far as there is room.
    fn copied(&self, has_room: impl Fn(u64) -> Result<(), Trouble>) -> Result<Self, Trouble> {
        let fail = |error: io::Error| self.trouble(&error);
        let size = self.file.metadata().map_err(fail)?.len();
        has_room(size)?;
        let copy = Self::hidden(self.place).map_err(fail)?;
        (&self.file).rewind().map_err(fail)?;
        if copy.write(&self.file, size, has_room)? > 0 {
            return Err(fail(ErrorKind::UnexpectedEof.into()));
        }
        settle(&copy.file).map_err(fail)?;
        Ok(copy)
    }

    /// Writes `size` bytes that come, as far as there is room; gives how many did not come.
    fn write(
        &self,
        from: &File,
        size: u64,
        has_room: impl Fn(u64) -> Result<(), Trouble>,
    ) -> Result<u64, Trouble> {
        let mut left = size;
        while left > 0 {
            // Others may have come since, and each has found the same room at its beginning.
            has_room(left.min(PIECE))?;
            let copied = io::copy(&mut from.take(left.min(PIECE)), &mut &self.file)
                .map_err(|error| self.trouble(&error))?;
            left -= copied;
            if copied == 0 {
                break;
            }
        }
        Ok(left)
    }

    fn trouble(&self, error: &io::Error) -> Trouble {
        (fate_of(error), format!("a file in `{}`: {error}", self.place.display()))
    }

    /// Gives it its name, or the next that is free.
    fn put(&mut self, called: &str) -> io::Result<PathBuf> {
        for count in 1..=MAX_ALIKE {
            let path = self.place.join(name::numbered(called, count));
            match self.name(&path) {
                Ok(()) => {
                    self.hidden = None;
                    return Ok(path);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    fn name(&self, path: &Path) -> io::Result<()> {
        match &self.hidden {
            Some(hidden) => rename(hidden, path),
            None => Ok(rustix::fs::linkat(CWD, link(&self.file), CWD, path, AtFlags::SYMLINK_FOLLOW)?),
        }
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            let _ = std::fs::remove_file(hidden);
        }
    }
}

/// What leads to an open file, as open(2) tells of O_TMPFILE.
fn link(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// A file that is to be given away: its size, and itself.
///
/// # Errors
/// There is none of that name that can be read, it is no plain file, or it has more bytes than a message can say.
pub(super) fn open(path: &Path) -> Result<(u64, File), Trouble> {
    let fail = |error: io::Error| (FileFate::Missing, format!("`{}`: {error}", path.display()));
    // A FIFO without a writer would wait.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path).map_err(fail)?;
    let about = file.metadata().map_err(fail)?;
    match about.len() {
        // The kernel makes up such files while they are read.
        0 if file.read_at(&mut [0], 0).is_ok_and(|count| count > 0) => {
            Err((FileFate::Missing, format!("`{}`: no plain file", path.display())))
        }
        _ if !about.is_file() => Err((FileFate::Missing, format!("`{}`: no plain file", path.display()))),
        size if size > VARINT_MAX => Err((FileFate::Failed, format!("`{}`: too large", path.display()))),
        size => Ok((size, file)),
    }
}

/// Passes `size` bytes of a file on, and counts them while they go. A reader who goes away ends it.
pub(super) fn give(mut file: File, size: u64, to: OwnedFd, passed: &AtomicU64) {
    let (mut to, mut left) = (File::from(to), size);
    while left > 0
        && let Ok(count @ 1..) = io::copy(&mut (&mut file).take(left.min(COUNTED)), &mut to)
    {
        left -= count;
        passed.fetch_add(count, Ordering::Relaxed);
    }
}

fn fate_of(error: &io::Error) -> FileFate {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => FileFate::NoSpace,
        _ => FileFate::Failed,
    }
}

/// Files that a disk is left room for.
const SPARE_FILES: u64 = 4096;
/// Bytes of a disk that are left to others, less what those take that are written at a time: 64 MiB.
const RESERVE: u64 = 96 << 20;
/// Bytes that are written before the room is looked at again: a few, so that all who write at a time take less than
/// half of the [`RESERVE`].
const PIECE: u64 = 2 << 20;
/// Bytes that are passed on before they are counted.
const COUNTED: u64 = 64 << 10;
/// Files of one name.
const MAX_ALIKE: u32 = 1000;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::edge::socket::RuntimeDir;

    /// A pipe that says this.
    fn saying(bytes: &'static [u8]) -> OwnedFd {
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        std::thread::spawn(move || drop(File::from(write).write_all(bytes)));
        read
    }

    #[test]
    fn a_file_is_kept_whole_beside_others_and_is_its_users_alone() {
        let dir = RuntimeDir::private().expect("a directory");
        let place = dir.path().join("wayferry/host");
        let kept = |bytes, size| keep(&place, "a.txt", size, saying(bytes));
        assert_eq!(kept(b"one", 3), Ok(place.join("a.txt")));
        assert_eq!(kept(b"two", 3), Ok(place.join("a (2).txt")));
        assert_eq!(fs::read(place.join("a.txt")).expect("read"), b"one");
        assert_eq!(fs::read(place.join("a (2).txt")).expect("read"), b"two");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&place), mode(&place.join("a.txt"))), (0o700, 0o600));
    }

    #[test]
    fn what_is_not_whole_or_has_no_room_leaves_nothing() {
        let dir = RuntimeDir::private().expect("a directory");
        let fate = |bytes, size| keep(dir.path(), "a", size, saying(bytes)).map_err(|trouble| trouble.0);
        assert_eq!(fate(b"one", 4), Err(FileFate::Broken));
        assert_eq!(fate(b"one", 2), Err(FileFate::Broken));
        assert_eq!(fate(b"one", u64::MAX), Err(FileFate::NoSpace));
        assert_eq!(fs::read_dir(dir.path()).expect("read").count(), 0);
        let file = dir.path().join("file");
        fs::write(&file, "x").expect("written");
        let fate = keep(&file, "a", 3, saying(b"one")).map_err(|trouble| trouble.0);
        assert_eq!(fate, Err(FileFate::Failed), "it is no directory");
    }

    #[test]
    fn regression_files_that_come_together_take_the_last_of_the_disk() {
        let dir = RuntimeDir::private().expect("a directory");
        let left = std::cell::Cell::new(2 * RESERVE);
        // Another file is written meanwhile.
        let free = |_: &Path| Ok(left.replace(RESERVE + 2));
        let kept = keep_where(dir.path(), "a", 3, saying(b"one"), free).map_err(|trouble| trouble.0);
        assert_eq!(kept, Err(FileFate::NoSpace));
        assert_eq!(fs::read_dir(dir.path()).expect("read").count(), 0);
    }

    #[test]
    fn regression_a_session_that_is_killed_leaves_parts_of_files() {
        let dir = RuntimeDir::private().expect("a directory");
        let is_unnamed = Part::unnamed(dir.path()).is_some();
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        let mut write = File::from(write);
        let place = dir.path().to_owned();
        let keeps = std::thread::spawn(move || keep(&place, "a", 200_000, read));
        // More than the pipe holds: some of it is in the file when all is written.
        write.write_all(&[1; 199_999]).expect("it is read");
        let count = fs::read_dir(dir.path()).expect("read").count();
        assert_eq!(count, usize::from(!is_unnamed), "a process that ends now leaves nothing");
        write.write_all(&[1]).expect("it is read");
        drop(write);
        assert_eq!(keeps.join().expect("no panic"), Ok(dir.path().join("a")));
    }

    /// A file system may know nothing else.
    #[test]
    fn a_part_with_a_name_takes_its_own_beside_others_or_goes() {
        let dir = RuntimeDir::private().expect("a directory");
        fs::write(dir.path().join("a"), "first").expect("written");
        let part = |text: &str| {
            let part = Part::hidden(dir.path()).expect("a file");
            (&part.file).write_all(text.as_bytes()).expect("written");
            part
        };
        drop(part("gone"));
        let second = publish(part("second"), "a", |_| unreachable!("it is named")).expect("a name");
        assert_eq!((fs::read(&second).expect("read"), second), (b"second".into(), dir.path().join("a (2)")));
        assert_eq!(fs::read_dir(dir.path()).expect("read").count(), 2);
    }

    /// What is opened elsewhere cannot be linked here (EXDEV), and so it is where `/proc` has gone meanwhile.
    fn elsewhere<'a>(place: &'a Path, bytes: &[u8]) -> Part<'a> {
        let file = rustix::fs::memfd_create("elsewhere", rustix::fs::MemfdFlags::CLOEXEC);
        let mut file = File::from(file.expect("memory"));
        file.write_all(bytes).expect("written");
        Part { place, file, hidden: None }
    }

    #[test]
    fn regression_a_file_that_cannot_be_linked_at_its_end_is_lost() {
        let dir = RuntimeDir::private().expect("a directory");
        fs::write(dir.path().join("a"), "first").expect("written");
        let elsewhere = || elsewhere(dir.path(), b"second");
        let full = publish(elsewhere(), "a", |_| Err((FileFate::NoSpace, "full".to_owned())));
        assert_eq!(full.map_err(|trouble| trouble.0), Err(FileFate::NoSpace));
        let second = publish(elsewhere(), "a", |_| Ok(())).expect("a copy");
        assert_eq!(
            (fs::read(&second).expect("read"), &second),
            (b"second".into(), &dir.path().join("a (2)"))
        );
        assert_eq!(fs::metadata(&second).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).expect("read").count(), 2);
    }

    #[test]
    fn regression_a_copy_takes_the_last_of_the_disk() {
        let dir = RuntimeDir::private().expect("a directory");
        let size = 2 * PIECE + 1;
        let bytes = vec![1; usize::try_from(size).expect("a few")];
        let asked = std::cell::RefCell::new(Vec::new());
        // Others fill the disk before the last piece.
        let has_room = |bytes: u64| {
            asked.borrow_mut().push(bytes);
            if bytes == 1 { Err((FileFate::NoSpace, "full".to_owned())) } else { Ok(()) }
        };
        let full = publish(elsewhere(dir.path(), &bytes), "a", has_room).map_err(|trouble| trouble.0);
        assert_eq!((full, asked.take()), (Err(FileFate::NoSpace), vec![size, PIECE, PIECE, 1]));
        assert_eq!(fs::read_dir(dir.path()).expect("read").count(), 0);
    }

    #[test]
    fn regression_a_file_is_copied_where_its_copy_can_have_the_name_no_more_than_itself() {
        let dir = RuntimeDir::private().expect("a directory");
        let name = "a".repeat(256);
        let part = elsewhere(dir.path(), b"text");
        let kept = publish(part, &name, |_| unreachable!("no file system takes that name"));
        assert_eq!(kept.map_err(|trouble| trouble.0), Err(FileFate::Failed));
        assert_eq!(fs::read_dir(dir.path()).expect("read").count(), 0);
    }

    #[test]
    fn plain_files_alone_are_given() {
        let dir = RuntimeDir::private().expect("a directory");
        let fate = |name: &str| open(&dir.path().join(name)).map(|(size, _)| size).map_err(|it| it.0);
        fs::write(dir.path().join("file"), "four").expect("written");
        rustix::fs::mkfifoat(CWD, dir.path().join("fifo"), rustix::fs::Mode::RWXU).expect("a FIFO");
        assert_eq!(fate("file"), Ok(4));
        for name in ["fifo", "none", "", "/proc/self/status"] {
            assert_eq!(fate(name), Err(FileFate::Missing), "{name}");
        }
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        let (size, file) = open(&dir.path().join("file")).expect("a file");
        let passed = AtomicU64::new(0);
        give(file, size, write, &passed);
        let mut got = String::new();
        File::from(read).read_to_string(&mut got).expect("read");
        assert_eq!((got.as_str(), passed.into_inner()), ("four", 4));
    }
}
