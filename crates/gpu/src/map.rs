//! Memory files mapped into this process, read and written without a reference to what others may change.
//!
//! The only unsafe code of this crate beside the drivers' calls and the kernel's in `sync`. Invariant: a mapping lies
//! inside its file, which cannot become shorter: files of the session's are sealed, and dmabufs keep their length.
#![expect(unsafe_code, reason = "mapped memory has no safe form")]

use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// See the module.
#[derive(Debug)]
pub(crate) struct Map {
    start: NonNull<u8>,
    length: usize,
    writable: bool,
}

impl Map {
    /// Maps a file for reading. Drivers hand out dmabufs that cannot be mapped for writing.
    pub(crate) fn read_only(fd: &impl AsFd, length: usize) -> Result<Self, Errno> {
        Self::new(fd, length, ProtFlags::READ)
    }

    /// Maps a file for reading and writing.
    pub(crate) fn writable(fd: &impl AsFd, length: usize) -> Result<Self, Errno> {
        Self::new(fd, length, ProtFlags::READ | ProtFlags::WRITE)
    }

    fn new(fd: &impl AsFd, length: usize, protection: ProtFlags) -> Result<Self, Errno> {
        if length == 0 {
            return Err(Errno::INVAL);
        }
        // SAFETY: the kernel chooses a place that nothing else has.
        let start = unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, fd, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { start, length, writable: protection.contains(ProtFlags::WRITE) })
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Copies bytes out; `None` if they are not inside.
    pub(crate) fn copy_out(&self, offset: usize, into: &mut [u8]) -> Option<()> {
        let end = offset.checked_add(into.len())?;
        // SAFETY: the bytes are inside the mapping, which `into`, a reference of its own, is not. What a program writes
        // there meanwhile may be seen in part; no value of u8 is wrong.
        (end <= self.length).then(|| unsafe {
            std::ptr::copy_nonoverlapping(self.start.as_ptr().add(offset), into.as_mut_ptr(), into.len())
        })
    }

    /// Copies bytes in; `None` if there is no place for them.
    pub(crate) fn copy_in(&mut self, offset: usize, from: &[u8]) -> Option<()> {
        let end = offset.checked_add(from.len())?;
        // SAFETY: as above; the mapping is writable.
        (end <= self.length && self.writable).then(|| unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), self.start.as_ptr().add(offset), from.len())
        })
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: it is this mapping's, and no pointer into it is left.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    #[test]
    fn bytes_go_in_and_out_and_nowhere_else() {
        let fd = memfd_create("test", MemfdFlags::CLOEXEC).expect("memory");
        ftruncate(&fd, 100).expect("room");
        let mut map = Map::writable(&fd, 100).expect("a mapping");
        let mut bytes = [9; 3];
        assert_eq!(map.copy_in(97, &[1, 2, 3]), Some(()));
        assert_eq!((map.copy_out(97, &mut bytes), bytes), (Some(()), [1, 2, 3]));
        assert_eq!((map.copy_in(98, &[0; 3]), map.copy_out(usize::MAX, &mut bytes)), (None, None));
        let mut read_only = Map::read_only(&fd, 100).expect("a mapping");
        assert_eq!((read_only.copy_in(0, &[1]), read_only.copy_out(99, &mut bytes[..1])), (None, Some(())));
        assert_eq!((bytes[0], read_only.length()), (3, 100));
        assert!(Map::read_only(&fd, 0).is_err());
    }
}
