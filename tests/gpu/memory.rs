//! Dmabufs without a GPU: `/dev/udmabuf` and the heaps of the kernel.
#![expect(unsafe_code, reason = "ioctl(2) and mapped memory have no safe form")]

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Setter, Updater, ioctl, opcode};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Who makes the buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exporter {
    Udmabuf,
    Heap,
}

/// `struct udmabuf_create`.
#[repr(C)]
struct UdmabufCreate {
    memfd: u32,
    flags: u32,
    offset: u64,
    size: u64,
}

/// `struct dma_heap_allocation_data`.
#[repr(C)]
struct HeapAllocation {
    length: u64,
    fd: u32,
    fd_flags: u32,
    heap_flags: u64,
}

const UDMABUF_CREATE: Opcode = opcode::write::<UdmabufCreate>(b'u', 0x42);
const HEAP_ALLOC: Opcode = opcode::read_write::<HeapAllocation>(b'H', 0);
const SYNC: Opcode = opcode::write::<u64>(b'b', 0);

/// Memory of a dmabuf, drawn to by this process.
pub(crate) struct Memory {
    pub(crate) fd: OwnedFd,
    start: *mut u8,
    length: usize,
}

impl Memory {
    pub(crate) fn new(exporter: Exporter, length: usize) -> Self {
        let length = length.next_multiple_of(4096);
        let fd = match exporter {
            Exporter::Udmabuf => udmabuf(length),
            Exporter::Heap => heap(length),
        };
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the place.
        let start = unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, &fd, 0) };
        Self { fd, start: start.expect("a mapping").cast(), length }
    }

    /// Writes bytes, between the beginning and the end of an access.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.length);
        self.sync(2);
        // SAFETY: it is inside the mapping.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(offset), bytes.len()) };
        self.sync(2 | 4);
    }

    fn sync(&self, flags: u64) {
        // SAFETY: it takes 64 bits of flags.
        let done = unsafe { ioctl(&self.fd, Setter::<SYNC, u64>::new(flags)) };
        done.expect("DMA_BUF_IOCTL_SYNC");
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: nothing points there any more.
        let _ = unsafe { munmap(self.start.cast(), self.length) };
    }
}

fn udmabuf(length: usize) -> OwnedFd {
    let device = File::options().read(true).write(true).open("/dev/udmabuf").expect("/dev/udmabuf");
    let memory = memfd_create("pixels", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("memory");
    ftruncate(&memory, length as u64).expect("room");
    fcntl_add_seals(&memory, SealFlags::SHRINK).expect("a seal");
    let memfd = memory.as_fd().as_raw_fd() as u32;
    let create = UdmabufCreate { memfd, flags: 1, offset: 0, size: length as u64 };
    // SAFETY: the device takes that structure, and answers with a descriptor.
    let fd = unsafe { ioctl(&device, Returns::<UDMABUF_CREATE, UdmabufCreate>(create)) };
    fd.expect("UDMABUF_CREATE")
}

fn heap(length: usize) -> OwnedFd {
    let heap = File::open("/dev/dma_heap/system").expect("/dev/dma_heap/system");
    // O_RDWR | O_CLOEXEC
    let mut data = HeapAllocation { length: length as u64, fd: 0, fd_flags: 0o2_000_002, heap_flags: 0 };
    // SAFETY: the device takes that structure, and fills in a descriptor of this process's.
    unsafe {
        ioctl(&heap, Updater::<HEAP_ALLOC, HeapAllocation>::new(&mut data)).expect("DMA_HEAP_IOCTL_ALLOC");
        OwnedFd::from_raw_fd(data.fd as i32)
    }
}

/// An ioctl that takes a structure and returns a descriptor.
struct Returns<const CODE: Opcode, T>(T);

// SAFETY: the pointer is to the value, which lives as long; what the kernel returns is a descriptor.
unsafe impl<const CODE: Opcode, T> rustix::ioctl::Ioctl for Returns<CODE, T> {
    type Output = OwnedFd;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        CODE
    }

    fn as_ptr(&mut self) -> *mut std::ffi::c_void {
        (&raw mut self.0).cast()
    }

    unsafe fn output_from_ptr(
        returned: rustix::ioctl::IoctlOutput,
        _: *mut std::ffi::c_void,
    ) -> Result<OwnedFd, Errno> {
        // SAFETY: it is new, and of this process alone.
        Ok(unsafe { OwnedFd::from_raw_fd(returned) })
    }
}
