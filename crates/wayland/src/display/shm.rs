//! Shared memory for all buffers of a program: one descriptor, however many surfaces it has, for each 2 GiB.
//!
//! Knows files and their parts; Wayland objects are the caller's. A file grows and never shrinks, so that a compositor
//! may map it; a part that is given back is emptied, which frees its memory, by a worker where it is large. Invariant:
//! no two parts that are taken overlap, and a part is taken again only when the compositor cannot look at it any more,
//! and it is empty.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};

use crate::mapping::Writable;
use crate::workers::{Pending, Workers};

use super::buffers::write_all;

/// The memory of a program's buffers.
#[derive(Debug, Default)]
pub(super) struct Shm {
    files: Vec<File>,
    /// Where each buffer is.
    taken: HashMap<u32, Place>,
    /// Places of buffers that are gone, but that the compositor may look at: before it was asked, and since.
    left: Vec<Place>,
    asked: Vec<Place>,
    /// Places that workers empty.
    emptied: Vec<(Place, Pending<()>)>,
    /// All programs together take so much that this one may not take more.
    pub(super) tight: bool,
}

/// One file, which is one pool of the compositor's.
#[derive(Debug)]
struct File {
    fd: Arc<OwnedFd>,
    /// What the compositor knows it by.
    pool: u32,
    /// Bytes of the file.
    size: usize,
    /// Parts that are free, offset and length; no two of them touch.
    free: BTreeMap<usize, usize>,
}

/// Part of a file.
#[derive(Debug, Clone, Copy)]
struct Place {
    file: usize,
    offset: usize,
    length: usize,
}

/// A part of the memory, for one buffer.
#[derive(Debug)]
pub(crate) struct Part {
    fd: Arc<OwnedFd>,
    place: Place,
    /// Once it was written to, if it can be.
    mapping: Option<Option<Writable>>,
}

impl Part {
    /// Writes all of `bytes` at `at`. A copy into what is mapped takes the processor less than half as long as a call.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) -> std::io::Result<()> {
        debug_assert!(at + bytes.len() <= self.place.length, "beyond the part");
        let Place { offset, length, .. } = self.place;
        let map = || (length >= WORTH_A_MAPPING).then(|| Writable::new(&self.fd, offset, length)).flatten();
        let mapping = self.mapping.get_or_insert_with(map);
        let written = mapping.as_mut().and_then(|mapping| mapping.write(at, bytes));
        written.map_or_else(|| write_all(&self.fd, offset + at, bytes), Ok)
    }

    /// Its file, for another thread to read, and where it begins there.
    pub(crate) fn file(&self) -> std::io::Result<(std::fs::File, u64)> {
        Ok((self.fd.try_clone()?.into(), self.place.offset as u64))
    }
}

/// What the compositor has to be told before a part is used.
#[derive(Debug)]
pub(super) enum PoolChange {
    /// Nothing.
    Nothing,
    /// Here is another pool, of so many bytes; [`Shm::begin`] takes its id.
    Begins(OwnedFd, usize),
    /// The pool has so many bytes now.
    Grows(usize),
}

impl Shm {
    /// Takes a part of so many bytes, with arbitrary content.
    ///
    /// # Errors
    /// There is no memory, or no descriptor; or the part would be larger than a pool may be.
    pub(super) fn take(&mut self, length: usize) -> std::io::Result<(Part, PoolChange)> {
        let length = length.next_multiple_of(PAGE);
        if length > MAX_SIZE {
            return Err(rustix::io::Errno::NOMEM.into());
        }
        let found = self.files.iter().enumerate().find_map(|(index, file)| Some((index, file.find(length)?)));
        let (file, change) = match found {
            Some((index, at)) if at + length <= self.files[index].size => (index, PoolChange::Nothing),
            Some((index, at)) => (index, PoolChange::Grows(self.files[index].grow(at + length)?)),
            None => {
                let file = File::new(length)?;
                let change = PoolChange::Begins(file.fd.try_clone()?, file.size);
                self.files.push(file);
                (self.files.len() - 1, change)
            }
        };
        let of = &mut self.files[file];
        let offset = of.find(length).ok_or(rustix::io::Errno::NOMEM)?;
        of.take(offset, length);
        let place = Place { file, offset, length };
        Ok((Part { fd: Arc::clone(&of.fd), place, mapping: None }, change))
    }

    /// The compositor knows the file of this part by this id.
    pub(super) fn begin(&mut self, part: &Part, pool: u32) {
        self.files[part.place.file].pool = pool;
    }

    /// The part is that of this buffer; gives the pool and the place in it.
    pub(super) fn name(&mut self, id: u32, part: &Part) -> (u32, usize) {
        self.taken.insert(id, part.place);
        (self.pool(part), part.place.offset)
    }

    /// The pool of a part.
    pub(super) fn pool(&self, part: &Part) -> u32 {
        self.files[part.place.file].pool
    }

    /// A buffer is gone that the compositor had released.
    pub(super) fn give_back(&mut self, id: u32, workers: &Workers) {
        if let Some(place) = self.taken.remove(&id) {
            self.empty(place, workers);
        }
    }

    /// A buffer is gone that the compositor may still look at.
    pub(super) fn leave(&mut self, id: u32) {
        self.left.extend(self.taken.remove(&id));
    }

    /// Whether the compositor is to be asked to answer, after which it has seen all that was said: it counts as asked.
    pub(super) fn ask(&mut self) -> bool {
        let ask = self.asked.is_empty() && !self.left.is_empty();
        if ask {
            self.asked = std::mem::take(&mut self.left);
        }
        ask
    }

    /// It has answered.
    pub(super) fn answered(&mut self, workers: &Workers) {
        std::mem::take(&mut self.asked).into_iter().for_each(|place| self.empty(place, workers));
    }

    fn empty(&mut self, place: Place, workers: &Workers) {
        let fd = Arc::clone(&self.files[place.file].fd);
        let empty = move || empty(&fd, place);
        if place.length < WORTH_A_WORKER || !workers.are_there() {
            empty();
            return self.files[place.file].free(place.offset, place.length);
        }
        self.emptied.push((place, workers.start(move |_| empty())));
    }

    /// Places that workers have emptied can be taken again.
    pub(super) fn take_emptied(&mut self) {
        let is_done = |(_, empty): &mut (Place, Pending<()>)| empty.poll().is_some();
        let done: Vec<_> = self.emptied.extract_if(.., is_done).collect();
        done.iter().for_each(|(place, _)| self.files[place.file].free(place.offset, place.length));
    }

    /// Whether another buffer may be made.
    pub(super) fn has_room(&self) -> bool {
        !self.tight
    }

    /// Bytes of buffers.
    pub(super) fn used(&self) -> usize {
        let emptied = self.emptied.iter().map(|(place, _)| place);
        let places = self.taken.values().chain(&self.left).chain(&self.asked).chain(emptied);
        places.map(|place| place.length).sum()
    }

    /// Descriptors of it.
    pub(super) fn descriptors(&self) -> usize {
        self.files.len()
    }
}

impl File {
    fn new(length: usize) -> std::io::Result<Self> {
        let size = length.max(LEAST_SIZE);
        let fd = rustix::fs::memfd_create("wayferry", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&fd, size as u64)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::SEAL)?;
        Ok(Self { fd: Arc::new(fd), pool: 0, size, free: BTreeMap::from([(0, size)]) })
    }

    /// Where a part of that length is free, or would be if the file grew.
    fn find(&self, length: usize) -> Option<usize> {
        let fits = self.free.iter().find(|(_, free)| **free >= length).map(|(offset, _)| *offset);
        let last = self.free.last_key_value().filter(|(offset, free)| *offset + *free == self.size);
        let end = last.map_or(self.size, |(offset, _)| *offset);
        fits.or((end + length <= MAX_SIZE).then_some(end))
    }

    /// Makes the file at least so large; gives its size.
    fn grow(&mut self, least: usize) -> std::io::Result<usize> {
        let size = least.max(2 * self.size).min(MAX_SIZE);
        rustix::fs::ftruncate(&*self.fd, size as u64)?;
        let before = std::mem::replace(&mut self.size, size);
        self.free(before, size - before);
        Ok(size)
    }

    fn take(&mut self, offset: usize, length: usize) {
        let free = self.free.remove(&offset).unwrap_or_default();
        if free > length {
            self.free.insert(offset + length, free - length);
        }
    }

    fn free(&mut self, mut offset: usize, mut length: usize) {
        if let Some(next) = self.free.remove(&(offset + length)) {
            length += next;
        }
        let before = self.free.range(..offset).next_back().map(|(at, free)| (*at, *free));
        if let Some((at, free)) = before.filter(|(at, free)| at + free == offset) {
            (offset, length) = (at, free + length);
        }
        self.free.insert(offset, length);
    }
}

/// Frees the memory of a place.
fn empty(fd: &OwnedFd, place: Place) {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    // Where that does not go, the memory stays until the place is taken again.
    let _ = rustix::fs::fallocate(fd, flags, place.offset as u64, place.length as u64);
}

/// Bytes that are worth a worker: to free fewer takes a fifth of a millisecond at most.
const WORTH_A_WORKER: usize = 1 << 20;
/// Bytes that are worth a mapping, of which a process has 65 530.
const WORTH_A_MAPPING: usize = 256 << 10;
/// Bytes of memory that is given back apart.
const PAGE: usize = 4096;
/// The file's size at first. What is not used takes no memory.
const LEAST_SIZE: usize = 8 << 20;
/// The file's size: that of a pool is a signed number of 32 bits.
const MAX_SIZE: usize = (1 << 31) - PAGE;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::workers::slow::Slow;

    use super::*;

    fn read(shm: &Shm, (offset, length): (usize, usize)) -> Vec<u8> {
        let mut bytes = vec![1; length];
        assert_eq!(rustix::io::pread(&*shm.files[0].fd, &mut bytes, offset as u64), Ok(length));
        bytes
    }

    #[test]
    fn the_compositor_is_told_of_the_file_once_and_of_each_growth() {
        let mut shm = Shm::default();
        let changes = [LEAST_SIZE, 1, LEAST_SIZE].map(|length| match shm.take(length).expect("memory").1 {
            PoolChange::Nothing => None,
            PoolChange::Begins(_, size) => Some((true, size)),
            PoolChange::Grows(size) => Some((false, size)),
        });
        let most = 4 * LEAST_SIZE;
        assert_eq!(changes, [Some((true, LEAST_SIZE)), Some((false, 2 * LEAST_SIZE)), Some((false, most))]);
        assert_eq!(shm.descriptors(), 1);
        assert!(shm.take(MAX_SIZE + 1).is_err(), "more than a pool can have");
        // Nothing of it is written, so it takes no memory.
        assert!(matches!(shm.take(MAX_SIZE).expect("another file").1, PoolChange::Begins(..)));
        assert_eq!((shm.descriptors(), shm.take(1).expect("a place").0.place.file), (2, 0));
    }

    #[test]
    fn what_the_compositor_may_look_at_is_not_taken_before_it_has_answered() {
        let mut shm = Shm::default();
        let (mut part, _) = shm.take(10).expect("memory");
        part.write(0, &[7; 10]).expect("written");
        shm.name(1, &part);
        shm.leave(1);
        let asked = [shm.ask(), shm.ask()];
        assert_eq!((asked, read(&shm, (part.place.offset, 10))), ([true, false], vec![7; 10]));
        assert_ne!(shm.take(10).expect("memory").0.place.offset, part.place.offset);
        shm.answered(&Workers::default());
        assert_eq!(read(&shm, (part.place.offset, 10)), [0; 10]);
        assert_eq!(shm.take(10).expect("memory").0.place.offset, part.place.offset);
    }

    proptest! {
        #[test]
        fn parts_do_not_overlap_and_all_come_back(
            operations in prop::collection::vec((0..8u32, 1..3_000_000usize, any::<[bool; 3]>()), 0..60),
        ) {
            let (mut shm, crew) = (Shm::default(), Arc::new(Slow::default()));
            let slow = Workers::new(Arc::<Slow>::clone(&crew));
            let alone = Workers::default();
            for (id, length, [answers, is_slow, works]) in operations {
                let workers = if is_slow { &slow } else { &alone };
                if works && crew.work(length) {
                    shm.take_emptied();
                }
                if shm.taken.contains_key(&id) {
                    if answers { shm.give_back(id, workers) } else { shm.leave(id) }
                } else {
                    let (part, _) = shm.take(length).expect("memory");
                    shm.name(id, &part);
                }
                if answers && !shm.ask() {
                    shm.answered(workers);
                }
                let emptied = shm.emptied.iter().map(|(place, _)| place);
                let taken = shm.taken.values().chain(&shm.left).chain(&shm.asked).chain(emptied);
                let taken = taken.map(|place| (place.offset, place.length));
                let mut parts: Vec<_> = taken.chain(shm.files.iter().flat_map(|file| file.free.clone())).collect();
                parts.sort_unstable();
                let end = parts.iter().try_fold(0, |end, (at, length)| (*at == end).then_some(at + length));
                let size = shm.files.first().map_or(0, |file| file.size);
                prop_assert_eq!(end, Some(size), "gaps or overlaps: {:?}", parts);
            }
            (0..8).for_each(|id| shm.leave(id));
            for _ in 0..2 {
                shm.answered(&slow);
                shm.ask();
            }
            shm.answered(&slow);
            while crew.work(0) {}
            shm.take_emptied();
            prop_assert_eq!(shm.used(), 0);
            prop_assert!(shm.files.iter().all(|file| file.free.len() == 1));
        }
    }
}
