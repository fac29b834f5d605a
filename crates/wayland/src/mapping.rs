//! Shared memory that is mapped: a program's, to be read where it lies, and what a compositor shows, to be written.
//!
//! Only a file that cannot become shorter is mapped: a memfd sealed against it (`F_SEAL_SHRINK`), no shorter than its
//! program says. Then no access ends this process. Two things a seal does not forbid, and both are ruled out: pages
//! that a program takes out of its file are given again by the first access, which fails where the kernel promises no
//! memory that it may not have (`vm.overcommit_memory` 2) or has no huge page left; memory of these kinds is not
//! mapped. What is left is hardware that fails. What a program has is never written, and never seen as plain bytes: the
//! program may write meanwhile. What a compositor has is only written, by copies without a reference to it. All
//! `unsafe` of this crate is here.
//!
//! Invariant: a mapping lies inside its file for as long as it is there.
#![expect(unsafe_code, reason = "mapped memory has no safe form")]

use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU8;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{SealFlags, fcntl_get_seals, fstat, fstatfs};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Bytes of one program's memory that are mapped at once. Reading them may have the kernel fill what the program left
/// empty, at this session's cost.
pub(crate) const MAX_MAPPED: u64 = 1 << 30;
/// Mappings of one program: a process has 65 530.
pub(crate) const MAX_MAPPINGS: usize = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<AtomicU8>,
    length: usize,
    mapped: Mapped,
}

// SAFETY: what is mapped stays where it is and is only ever read, as atomics; any thread may end the mapping.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// What of a program's memory is mapped, in bytes and in mappings; clones count the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mapped(Arc<Mutex<(u64, usize)>>);

impl Mapping {
    /// The first `length` bytes of a file; `None` if they are to be read by calls.
    pub(crate) fn new(fd: &impl AsFd, length: u64, mapped: &Mapped) -> Option<Self> {
        let fits = usize::try_from(length).ok().filter(|_| stays(fd, length))?;
        let mapped = mapped.more(length)?;
        let Some(start) = map(fd, 0, fits, ProtFlags::READ) else {
            mapped.less(length);
            return None;
        };
        Some(Self { start: start.cast(), length: fits, mapped })
    }

    /// What is mapped, and may change at any time.
    pub(crate) fn bytes(&self) -> &[AtomicU8] {
        // SAFETY: it is mapped for as long as this lives, at most 2 GiB as all pools are, and atomics are what others
        // may change. They are loaded relaxed only, which memory for reading allows.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is this mapping's, and no reference to it is left.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
        self.mapped.less(self.length as u64);
    }
}

/// Part of a file of this session's that a compositor has, too.
#[derive(Debug)]
pub(crate) struct Writable {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: what is mapped stays where it is, and any thread may write it or end the mapping.
unsafe impl Send for Writable {}

impl Writable {
    /// `length` bytes from `offset` on, a multiple of a page's size; `None` if they are to be written by calls.
    pub(crate) fn new(fd: &impl AsFd, offset: usize, length: usize) -> Option<Self> {
        let end = offset.checked_add(length)?;
        let start = stays(fd, end as u64).then(|| map(fd, offset, length, ProtFlags::WRITE))??;
        Some(Self { start, length })
    }

    /// Writes all of `bytes` at `at`; `None` if they do not fit.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) -> Option<()> {
        at.checked_add(bytes.len()).filter(|end| *end <= self.length)?;
        // SAFETY: it lies inside of what is mapped, of which this process has nothing else and to which there is no
        // reference; so the bytes are not in it. Others may see them half written.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(at), bytes.len()) };
        Some(())
    }
}

impl Drop for Writable {
    fn drop(&mut self) {
        // SAFETY: it is this mapping's, and there are no references to it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

fn map(fd: &impl AsFd, offset: usize, length: usize, access: ProtFlags) -> Option<NonNull<u8>> {
    // SAFETY: the kernel chooses a place that nothing else has.
    let start = unsafe { mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, fd, offset as u64) };
    NonNull::new(start.ok()?.cast())
}

impl Mapped {
    /// With so many bytes more, if there is room.
    fn more(&self, length: u64) -> Option<Self> {
        let mut count = self.count();
        let after = (count.0.saturating_add(length), count.1 + 1);
        (after.0 <= MAX_MAPPED && after.1 <= MAX_MAPPINGS).then(|| *count = after)?;
        Some(self.clone())
    }

    fn less(&self, length: u64) {
        let mut count = self.count();
        *count = (count.0.saturating_sub(length), count.1.saturating_sub(1));
    }

    fn count(&self) -> MutexGuard<'_, (u64, usize)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the first `length` bytes of a file are there for as long as it is open.
fn stays(fd: &impl AsFd, length: u64) -> bool {
    // First of all: what has seals is memory, which answers the other calls by itself.
    let sealed = fcntl_get_seals(fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
    sealed
        && fstatfs(fd).is_ok_and(|found| found.f_type == TMPFS_MAGIC)
        && fstat(fd).is_ok_and(|found| u64::try_from(found.st_size).is_ok_and(|size| length <= size))
        && !promises_strictly()
}

/// Whether the kernel counts memory before it is needed, and may refuse it then.
fn promises_strictly() -> bool {
    static STRICT: OnceLock<bool> = OnceLock::new();
    *STRICT.get_or_init(|| {
        let setting = std::fs::read_to_string("/proc/sys/vm/overcommit_memory");
        // In doubt, as if it did.
        setting.map_or(true, |setting| setting.trim() == "2")
    })
}

/// statfs(2): what memfd_create(2) makes without huge pages.
const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::sync::atomic::Ordering;

    use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create};
    use rustix::io::{Errno, pread, pwrite};

    use super::*;

    const LENGTH: u64 = 10_000;

    fn memory(seals: SealFlags) -> OwnedFd {
        let fd = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("memory");
        ftruncate(&fd, LENGTH).expect("room");
        pwrite(&fd, &[7; 100], 5000).expect("room");
        fcntl_add_seals(&fd, seals).expect("seals");
        fd
    }

    #[test]
    fn sealed_memory_is_mapped_and_shows_what_its_program_writes() {
        let (fd, mapped) = (memory(SealFlags::SHRINK), Mapped::default());
        let mapping = Mapping::new(&fd, LENGTH, &mapped).expect("a mapping");
        let at = |index: usize| mapping.bytes()[index].load(Ordering::Relaxed);
        assert_eq!((mapping.bytes().len(), at(4999), at(5000), at(9999)), (LENGTH as usize, 0, 7, 0));
        pwrite(&fd, &[9], 5000).expect("room");
        assert_eq!(at(5000), 9);
        assert_eq!(*mapped.count(), (LENGTH, 1));
        drop(mapping);
        assert_eq!(*mapped.count(), (0, 0));
    }

    /// The program can take pages out of its file, but not make it shorter.
    #[test]
    fn a_mapping_cannot_lose_its_file() {
        let (fd, mapped) = (memory(SealFlags::SHRINK), Mapped::default());
        let mapping = Mapping::new(&fd, LENGTH, &mapped).expect("a mapping");
        assert_eq!(ftruncate(&fd, 0), Err(Errno::PERM));
        fallocate(&fd, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, LENGTH).expect("a hole");
        drop(fd);
        assert!(mapping.bytes().iter().all(|byte| byte.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn what_is_written_is_in_the_file_and_nowhere_else() {
        let fd = memory(SealFlags::SHRINK);
        let mut writable = Writable::new(&fd, 4096, 4097).expect("a mapping");
        assert_eq!(writable.write(4095, &[1, 2]), Some(()));
        for (at, length) in [(4096, 2), (4098, 0), (0, 4098), (usize::MAX, 1)] {
            assert_eq!(writable.write(at, &vec![3; length]), None, "{length} at {at}");
        }
        let mut all = vec![0; LENGTH as usize];
        assert_eq!(pread(&fd, &mut all, 0), Ok(all.len()));
        let mut expected = vec![0; LENGTH as usize];
        expected[5000..5100].fill(7);
        expected[8191..8193].copy_from_slice(&[1, 2]);
        assert!(all == expected);
        assert!(Writable::new(&fd, 4096, LENGTH as usize).is_none(), "beyond the file");
        assert!(Writable::new(&memory(SealFlags::GROW), 0, 4096).is_none(), "it may become shorter");
    }

    #[test]
    fn what_may_become_shorter_or_is_shorter_is_not_mapped() {
        let mapped = Mapped::default();
        for seals in [SealFlags::empty(), SealFlags::GROW, SealFlags::SEAL] {
            assert!(Mapping::new(&memory(seals), LENGTH, &mapped).is_none(), "{seals:?}");
        }
        assert!(Mapping::new(&memory(SealFlags::SHRINK), LENGTH + 1, &mapped).is_none());
        let unsealable = memfd_create("test", MemfdFlags::CLOEXEC).expect("memory");
        ftruncate(&unsealable, LENGTH).expect("room");
        assert!(Mapping::new(&unsealable, LENGTH, &mapped).is_none());
        let executable = std::fs::File::open(std::env::current_exe().expect("a path")).expect("a file");
        assert!(Mapping::new(&executable, LENGTH, &mapped).is_none());
        assert_eq!(*mapped.count(), (0, 0));
    }

    #[test]
    fn a_program_has_so_much_mapped_and_no_more() {
        let (fd, mapped) = (memory(SealFlags::SHRINK), Mapped::default());
        let some: Vec<Mapping> =
            (0..MAX_MAPPINGS).filter_map(|_| Mapping::new(&fd, LENGTH, &mapped)).collect();
        assert_eq!(some.len(), MAX_MAPPINGS);
        assert!(Mapping::new(&fd, 1, &mapped).is_none(), "too many");
        drop(some);
        let fd = memory(SealFlags::SHRINK);
        ftruncate(&fd, MAX_MAPPED).expect("room");
        let much = Mapping::new(&fd, MAX_MAPPED, &mapped);
        assert!(much.is_some() && Mapping::new(&fd, 1, &mapped).is_none(), "too much");
    }
}
