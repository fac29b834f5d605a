//! What programs are told of the buffers that can be read: the device, and formats with modifiers.
//!
//! Invariant: the table that programs map is sealed, and is the list that is checked.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::exporter::exporter;
use super::format::{Fourcc, Modifier};
use super::timeline::Timelines;

/// Formats with modifiers that a program is offered; of more, those behind are not.
const MAX_PAIRS: usize = 4096;

/// See the module.
#[derive(Debug)]
pub struct Offer {
    device: Option<u64>,
    pairs: Vec<(Fourcc, Modifier)>,
    known: HashSet<(Fourcc, Modifier)>,
    table: OwnedFd,
    is_dmabuf: fn(&OwnedFd) -> bool,
    timelines: Option<Rc<dyn Timelines>>,
    lacks_fences: bool,
}

impl Offer {
    /// Buffers of these formats with these modifiers, of the device with this number (`dev_t`), if there is one.
    ///
    /// # Errors
    /// There is no memory for the table.
    pub fn new(device: Option<u64>, pairs: impl IntoIterator<Item = (Fourcc, Modifier)>) -> io::Result<Self> {
        Self::that_takes(|fd| exporter(fd).is_some(), device, pairs)
    }

    /// The same for tests, whose buffers are no dmabufs.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn that_takes(
        is_dmabuf: fn(&OwnedFd) -> bool,
        device: Option<u64>,
        pairs: impl IntoIterator<Item = (Fourcc, Modifier)>,
    ) -> io::Result<Self> {
        let mut known = HashSet::new();
        let fresh = |pair: &(Fourcc, Modifier)| known.insert(*pair);
        let pairs: Vec<_> = pairs.into_iter().filter(fresh).take(MAX_PAIRS).collect();
        let table = table(&pairs)?;
        let known = pairs.iter().copied().collect();
        Ok(Self { device, pairs, known, table, is_dmabuf, timelines: None, lacks_fences: false })
    }

    /// The same where programs may tell by timelines when they have drawn.
    #[must_use]
    pub fn with_timelines(self, timelines: Option<Rc<dyn Timelines>>) -> Self {
        Self { timelines, ..self }
    }

    /// The same where nothing else tells when a GPU has drawn.
    #[must_use]
    pub fn lacking_fences(self, lacks_fences: bool) -> Self {
        Self { lacks_fences, ..self }
    }

    /// Whether only a program's timeline tells when its GPU has drawn.
    #[must_use]
    pub fn lacks_fences(&self) -> bool {
        self.lacks_fences
    }

    /// What takes the timelines of programs, if something does.
    #[must_use]
    pub fn timelines(&self) -> Option<&Rc<dyn Timelines>> {
        self.timelines.as_ref()
    }

    /// The device's number (`dev_t`); without one, what programs are offered ends at version 3.
    #[must_use]
    pub fn device(&self) -> Option<u64> {
        self.device
    }

    /// The pairs in the order of preference, which is that of the table.
    #[must_use]
    pub fn pairs(&self) -> &[(Fourcc, Modifier)] {
        &self.pairs
    }

    /// Whether a pair is among them.
    #[must_use]
    pub fn has(&self, fourcc: Fourcc, modifier: Modifier) -> bool {
        self.known.contains(&(fourcc, modifier))
    }

    /// Whether a format is among them, with any modifier.
    #[must_use]
    pub fn has_format(&self, fourcc: Fourcc) -> bool {
        self.pairs.iter().any(|(offered, _)| *offered == fourcc)
    }

    /// The table as programs map it, and its bytes.
    #[must_use]
    pub fn table(&self) -> (BorrowedFd<'_>, u32) {
        // At most 64 KiB.
        (self.table.as_fd(), (self.pairs.len() * ENTRY) as u32)
    }

    /// Whether a file may be a plane of a buffer.
    #[must_use]
    pub fn is_dmabuf(&self, fd: &OwnedFd) -> bool {
        (self.is_dmabuf)(fd)
    }
}

/// `zwp_linux_dmabuf_feedback_v1.format_table`: 4 bytes of format, 4 unused, 8 of modifier, all in this machine's
/// order.
fn table(pairs: &[(Fourcc, Modifier)]) -> io::Result<OwnedFd> {
    let mut bytes = Vec::with_capacity(pairs.len() * ENTRY);
    for (fourcc, modifier) in pairs {
        bytes.extend(fourcc.0.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(modifier.0.to_ne_bytes());
    }
    let fd = memfd_create("wayferry-formats", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(fd);
    file.write_all(&bytes)?;
    let fd = OwnedFd::from(file);
    fcntl_add_seals(&fd, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(fd)
}

/// Bytes of a pair in the table.
const ENTRY: usize = 16;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use rustix::fs::fcntl_get_seals;

    use super::*;

    #[test]
    fn the_table_is_what_is_checked_and_cannot_be_changed() {
        let (xr24, ar24) = (Fourcc::new(*b"XR24"), Fourcc::new(*b"AR24"));
        let tiled = Modifier(0x0100_0000_0000_0002);
        let pairs = [(xr24, tiled), (xr24, Modifier::INVALID), (xr24, tiled), (ar24, Modifier::LINEAR)];
        let offer = Offer::new(Some(0xe280), pairs).expect("memory");
        assert_eq!(offer.pairs().len(), 3, "each pair once");
        assert!(offer.has(xr24, tiled) && offer.has(ar24, Modifier::LINEAR) && !offer.has(ar24, tiled));
        assert!(offer.has_format(ar24) && !offer.has_format(Fourcc::new(*b"NV12")));
        let (table, length) = offer.table();
        let file = File::from(table.try_clone_to_owned().expect("a descriptor"));
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, 0).expect("all of it");
        assert_eq!(bytes.len(), 48);
        assert_eq!(bytes[0..4], xr24.0.to_ne_bytes());
        assert_eq!(bytes[8..16], tiled.0.to_ne_bytes());
        assert_eq!(bytes[32..36], ar24.0.to_ne_bytes());
        assert!(file.write_at(&[1], 0).is_err());
        assert!(fcntl_get_seals(&file).expect("seals").contains(SealFlags::SEAL | SealFlags::WRITE));
    }

    #[test]
    fn what_is_too_much_is_not_offered() {
        let pairs = (0..2 * MAX_PAIRS as u64).map(|modifier| (Fourcc::new(*b"XR24"), Modifier(modifier)));
        let offer = Offer::new(None, pairs).expect("memory");
        assert_eq!(offer.pairs().len(), MAX_PAIRS);
        assert!(!offer.has(Fourcc::new(*b"XR24"), Modifier(MAX_PAIRS as u64)));
    }
}
