//! The reader: a process of its own that imports the buffers of programs and reads them for its session.
//!
//! What a hostile buffer does to a driver it does to this process alone; the session starts another one. It answers in
//! the order in which it is asked, and ends with its session. Invariant: it holds nothing but its socket, what it reads
//! with, and what it has been given.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use wayferry_pixels::{Format, Size};

use super::dmabuf::{Described, Dmabuf, Plane};
use super::importer::{Importer, Refused};
use super::link::{Link, Received};
use super::map::Map;
use super::rows::Rows;
use super::wire::{FromReader, Means, ToReader};

/// Serves the session at the other end of a socket until that is gone.
pub fn serve<I: Importer>(socket: OwnedFd, means: Means, importer: I) {
    let link = Link::of(socket);
    let mut reader = Reader::new(importer);
    let mut answer = Some(FromReader::Ready(means));
    loop {
        if let Some(answer) = answer.take()
            && link.send(&answer.encode(), &[]).is_err()
        {
            return;
        }
        let Received::Packet(packet, fds) = link.receive() else { return };
        let Ok(message) = ToReader::decode(&packet) else { return };
        if let Some(image) = message.works_on()
            && link.send(&FromReader::Begun { image }.encode(), &[]).is_err()
        {
            return;
        }
        answer = reader.on_message(message, fds);
    }
}

/// What it has been given.
pub(crate) struct Reader<I: Importer> {
    importer: I,
    images: HashMap<u64, Imported<I::Image>>,
    slots: HashMap<u32, Map>,
}

struct Imported<T> {
    image: T,
    size: Size,
    format: Format,
}

impl<I: Importer> Reader<I> {
    pub(crate) fn new(importer: I) -> Self {
        Self { importer, images: HashMap::new(), slots: HashMap::new() }
    }

    /// How many buffers it has.
    #[cfg(test)]
    pub(crate) fn images(&self) -> usize {
        self.images.len()
    }

    /// How many pieces of memory it has.
    #[cfg(test)]
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Does what it is told; gives its answer, if that has one.
    pub(crate) fn on_message(&mut self, message: ToReader, fds: Vec<OwnedFd>) -> Option<FromReader> {
        match message {
            ToReader::Import { image, described, planes } => {
                let outcome = self.import(image, described, &planes, fds).map_err(|Refused(why)| why);
                Some(FromReader::Imported { image, outcome })
            }
            ToReader::Lend { slot, bytes } => {
                self.slots.remove(&slot);
                let length = usize::try_from(bytes).ok();
                let map = fds.first().zip(length).and_then(|(fd, length)| Map::writable(fd, length).ok());
                map.map(|map| self.slots.insert(slot, map));
                None
            }
            ToReader::Read { job, image, slot, region } => {
                let outcome = match (self.images.get(&image), self.slots.get_mut(&slot)) {
                    (Some(imported), Some(memory)) => {
                        let rows = Rows::new(memory, imported.size, imported.format);
                        let read = |mut rows| self.importer.read(&imported.image, &region, &mut rows);
                        rows.map_or_else(|| Err(Refused("there is no room".to_owned())), read)
                    }
                    (None, _) => Err(Refused("it has not been imported".to_owned())),
                    (_, None) => Err(Refused("there is no memory for it".to_owned())),
                };
                Some(FromReader::Read { job, outcome: outcome.map_err(|Refused(why)| why) })
            }
            ToReader::Forget { image } => {
                self.images.remove(&image);
                None
            }
        }
    }

    fn import(
        &mut self,
        name: u64,
        described: Described,
        planes: &[(u32, u32)],
        fds: Vec<OwnedFd>,
    ) -> Result<(), Refused> {
        if fds.len() != planes.len() {
            return Err(Refused("descriptors are missing".to_owned()));
        }
        let plane = |(fd, &(offset, stride))| Plane { fd, offset, stride };
        let planes = fds.into_iter().zip(planes).map(plane).collect();
        // The session has seen to what they are.
        let dmabuf = Dmabuf::new(described, planes, |_| true).map_err(|wrong| Refused(wrong.to_string()))?;
        let image = self.importer.import(&dmabuf)?;
        self.images.insert(name, Imported { image, size: described.size, format: dmabuf.format() });
        Ok(())
    }
}
