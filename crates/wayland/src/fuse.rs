//! Files whose content another program serves (FUSE): a read of one takes as long as that program likes.
//!
//! Neither fstat(2) nor fstatfs(2) may be used to find out: they ask the program, too, and so does close(2). Invariant:
//! nothing here waits for a program.

use std::fs;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{AtFlags, FileType, StatxFlags, fcntl_get_seals, statx};
use rustix::io::Errno;

/// What kind of file a descriptor leads to.
///
/// # Errors
/// What statx(2) says.
pub fn file_type(fd: &impl AsFd) -> Result<FileType, Errno> {
    // What the kernel knows without asking.
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    statx(fd, "", flags, StatxFlags::TYPE).map(|found| FileType::from_raw_mode(found.stx_mode.into()))
}

/// Whether a read of the file may wait for a program.
#[must_use]
pub fn may_wait(fd: &impl AsFd) -> bool {
    // Only memory has seals: memfd_create(2), and files of tmpfs.
    if fcntl_get_seals(fd).is_ok() {
        return false;
    }
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    // Before Linux 5.8 it is not told.
    let Ok(found) = statx(fd, "", flags, StatxFlags::MNT_ID) else { return false };
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // A file of another mount namespace may come from anywhere.
    mounts.lines().find_map(|line| mount_may_wait(line, found.stx_mnt_id)).unwrap_or(true)
}

/// Whether it is a file that another program serves. What is no regular file is closed by the kernel alone.
#[must_use]
pub fn is_file(fd: &impl AsFd) -> bool {
    file_type(fd) == Ok(FileType::RegularFile) && may_wait(fd)
}

/// Drops a descriptor of any kind that came from a program.
pub fn discard(fd: OwnedFd) {
    if is_file(&fd) {
        close(fd);
    }
}

/// Closes a file that a program serves, on a thread of its own, for as long as that program likes.
pub fn close(fd: OwnedFd) {
    // Beyond what may wait at once, it stays open until this process ends.
    let fd = ManuallyDrop::new(fd);
    let may_wait = |closing: usize| (closing < MAX_CLOSING).then_some(closing + 1);
    if CLOSING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, may_wait).is_ok() {
        let close = move || {
            drop(ManuallyDrop::into_inner(fd));
            CLOSING.fetch_sub(1, Ordering::Relaxed);
        };
        // Without a thread for it, it stays open.
        let _ = std::thread::Builder::new().name("wayferry-close".into()).spawn(close);
    }
}

/// Files that are being closed.
static CLOSING: AtomicUsize = AtomicUsize::new(0);
/// Files that may wait for a program to be closed. Honest programs hand over none.
const MAX_CLOSING: usize = 8;

/// Whether a program serves the mount of this line, if it is this one (proc_pid_mountinfo(5)).
fn mount_may_wait(line: &str, mount: u64) -> Option<bool> {
    (line.split(' ').next()?.parse() == Ok(mount)).then_some(())?;
    let (_, behind) = line.split_once(" - ")?;
    // Through /proc/PID/mem a page of such a file is read, too.
    Some(behind.starts_with("fuse") || behind.starts_with("proc "))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    #[test]
    fn memory_and_files_of_the_kernel_are_not_served_by_a_program() {
        let memory = memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("memory");
        assert!(!may_wait(&memory));
        let file = fs::File::open(std::env::current_exe().expect("a path")).expect("a file");
        assert!(!may_wait(&file));
        assert_eq!(file_type(&file), Ok(FileType::RegularFile));
        let (read, mut write) = std::io::pipe().expect("a pipe");
        write.write_all(b"x").expect("room");
        assert_eq!(file_type(&read), Ok(FileType::Fifo));
    }

    #[test]
    fn the_memory_of_a_process_may_wait_for_a_program() {
        let memory = fs::File::open("/proc/self/mem").expect("a file");
        assert_eq!((file_type(&memory), may_wait(&memory)), (Ok(FileType::RegularFile), true));
    }

    #[test]
    fn the_kind_of_a_file_system_stands_behind_the_dash() {
        let line = |kind: &str| format!("36 35 0:42 / /mnt rw,noatime shared:1 - {kind} source rw");
        assert_eq!(mount_may_wait(&line("fuse.sshfs"), 36), Some(true));
        assert_eq!(mount_may_wait(&line("fuseblk"), 36), Some(true));
        assert_eq!(mount_may_wait(&line("proc"), 36), Some(true));
        assert_eq!(mount_may_wait(&line("ext4"), 36), Some(false));
        assert_eq!(mount_may_wait(&line("fuse.sshfs"), 35), None);
    }
}
