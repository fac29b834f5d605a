//! The reader: a process of its own that imports the buffers of programs and reads them for its session.
//!
//! What a hostile buffer does to a driver it does to this process alone; the session starts another one. It answers in
//! the order in which it is asked, and ends with its session. While pixels of one buffer are taken, the GPU works on
//! the next. Invariant: it holds nothing but its socket, what it reads with, and what it has been given; before a
//! driver gets to work on a buffer, its session knows on which.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;

use wayferry_pixels::{Format, Region, Size};

use super::dmabuf::{Described, Dmabuf, Plane};
use super::importer::{Importer, Refused, Route};
use super::link::{Link, Received};
use super::map::Map;
use super::rows::Rows;
use super::wire::{FromReader, Means, ToReader};

/// Serves the session at the other end of a socket until that is gone.
pub fn serve<I: Importer>(socket: OwnedFd, means: Means, importer: I) {
    let link = Link::of(socket);
    let mut reader = Reader::new(importer);
    // A session that is gone is noticed when it is listened to.
    let mut say = |answer: FromReader| {
        let _ = link.send(&answer.encode(), &[]);
    };
    say(FromReader::Ready(means));
    loop {
        let received = if reader.is_idle() { link.receive() } else { link.receive_now() };
        match received {
            Received::Packet(packet, fds) => match ToReader::decode(&packet) {
                Ok(message) => reader.on_message(message, fds, &mut say),
                Err(_) => return,
            },
            Received::Nothing => reader.end_one(&mut say),
            Received::End => return,
        }
    }
}

/// What it has been given.
pub(crate) struct Reader<I: Importer> {
    importer: I,
    images: HashMap<u64, Imported<I::Image>>,
    slots: HashMap<u32, Map>,
    begun: VecDeque<Begun<I::Reading>>,
}

struct Imported<T> {
    image: T,
    size: Size,
    format: Format,
}

/// A reading that has begun.
struct Begun<T> {
    job: u64,
    image: u64,
    slot: u32,
    reading: T,
}

impl<I: Importer> Reader<I> {
    pub(crate) fn new(importer: I) -> Self {
        Self { importer, images: HashMap::new(), slots: HashMap::new(), begun: VecDeque::new() }
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

    /// Whether it has nothing to do but to listen.
    pub(crate) fn is_idle(&self) -> bool {
        self.begun.is_empty()
    }

    /// Does what it is told.
    pub(crate) fn on_message(
        &mut self,
        message: ToReader,
        fds: Vec<OwnedFd>,
        say: &mut impl FnMut(FromReader),
    ) {
        let most = if matches!(message, ToReader::Read { .. }) { MAX_BEGUN - 1 } else { 0 };
        while self.begun.len() > most {
            self.end_one(say);
        }
        match message {
            ToReader::Import { image, described, planes } => {
                say(FromReader::Begun { image });
                let outcome = self.import(image, described, &planes, fds).map_err(|Refused(why)| why);
                say(FromReader::Imported { image, outcome });
            }
            ToReader::Lend { slot, bytes } => {
                self.slots.remove(&slot);
                let length = usize::try_from(bytes).ok();
                let map = fds.first().zip(length).and_then(|(fd, length)| Map::writable(fd, length).ok());
                map.map(|map| self.slots.insert(slot, map));
            }
            ToReader::Read { job, image, slot, region } => {
                say(FromReader::Begun { image });
                match self.begin(image, &region) {
                    Ok(reading) => self.begun.push_back(Begun { job, image, slot, reading }),
                    Err(Refused(why)) => {
                        // Those that began before are answered before.
                        while !self.is_idle() {
                            self.end_one(say);
                        }
                        say(FromReader::Read { job, outcome: Err(why) });
                    }
                }
            }
            ToReader::Forget { image } => drop(self.images.remove(&image)),
        }
    }

    /// Ends the oldest reading that has begun.
    pub(crate) fn end_one(&mut self, say: &mut impl FnMut(FromReader)) {
        let Some(Begun { job, image, slot, reading }) = self.begun.pop_front() else { return };
        let outcome = self.end(image, slot, reading).map_err(|Refused(why)| why);
        say(FromReader::Read { job, outcome });
    }

    fn import(
        &mut self,
        name: u64,
        described: Described,
        planes: &[(u32, u32)],
        fds: Vec<OwnedFd>,
    ) -> Result<Route, Refused> {
        if fds.len() != planes.len() {
            return Err(Refused("descriptors are missing".to_owned()));
        }
        let plane = |(fd, &(offset, stride))| Plane { fd, offset, stride };
        let planes = fds.into_iter().zip(planes).map(plane).collect();
        // The session has seen to what they are.
        let dmabuf = Dmabuf::new(described, planes, |_| true).map_err(|wrong| Refused(wrong.to_string()))?;
        let image = self.importer.import(&dmabuf)?;
        let route = self.importer.route(&image);
        self.images.insert(name, Imported { image, size: described.size, format: dmabuf.format() });
        Ok(route)
    }

    fn begin(&mut self, image: u64, region: &Region) -> Result<I::Reading, Refused> {
        let imported = self.images.get(&image).ok_or_else(not_imported)?;
        self.importer.begin(&imported.image, region)
    }

    fn end(&mut self, image: u64, slot: u32, reading: I::Reading) -> Result<(), Refused> {
        let imported = self.images.get(&image).ok_or_else(not_imported)?;
        let memory = self.slots.get_mut(&slot);
        let memory = memory.ok_or_else(|| Refused("there is no memory for it".to_owned()))?;
        let rows = Rows::new(memory, imported.size, imported.format);
        let mut rows = rows.ok_or_else(|| Refused("there is no room".to_owned()))?;
        self.importer.end(&imported.image, reading, &mut rows)
    }
}

fn not_imported() -> Refused {
    Refused("it has not been imported".to_owned())
}

/// Readings that have begun at once: one whose pixels are taken, and one that the GPU works on.
const MAX_BEGUN: usize = 2;
