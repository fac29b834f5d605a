//! A reader for tests, of buffers that lie in plain memory files: what it answers, and when, is the test's.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{MemfdFlags, fcntl_get_seals, ftruncate, memfd_create};
use rustix::io::{pread, write};
use wayferry_pixels::{Format, Region, Size};

use super::ask::{Answer, Ask, BufferId, Job};
use super::dmabuf::Dmabuf;
use super::frame::Frame;
use super::importer::{Importer, Refused, Route};
use super::map::Map;
use super::rows::Rows;
use super::timeline::{self, Fence};

/// Imports memory files.
#[derive(Debug, Default)]
pub struct Memory;

/// What it needs of a buffer to read it.
#[derive(Debug)]
pub struct Image {
    fd: OwnedFd,
    offset: u64,
    stride: u64,
    size: Size,
    format: Format,
    flipped: bool,
}

impl Importer for Memory {
    type Image = Image;
    type Reading = Region;

    fn import(&mut self, dmabuf: &Dmabuf) -> Result<Image, Refused> {
        let [plane] = dmabuf.planes() else { return Err(Refused("more than one plane".to_owned())) };
        let fd = plane.fd.try_clone().map_err(|error| Refused(error.to_string()))?;
        let (size, flipped) = (dmabuf.described().size, dmabuf.described().flipped);
        let (offset, stride) = (plane.offset.into(), plane.stride.into());
        Ok(Image { fd, offset, stride, size, format: dmabuf.format(), flipped })
    }

    fn route(&self, _: &Image) -> Route {
        Route::Gpu
    }

    fn begin(&mut self, image: &Image, region: &Region) -> Result<Region, Refused> {
        Ok(region.clip(image.size))
    }

    fn end(&mut self, image: &Image, region: Region, rows: &mut Rows<'_>) -> Result<(), Refused> {
        let bytes = image.format.bytes_per_pixel();
        for rect in region.rects() {
            for y in rect.y..rect.bottom() {
                let from = if image.flipped { image.size.height() - 1 - y } else { y };
                let offset = image.offset + u64::from(from) * image.stride + u64::from(rect.x) * bytes as u64;
                let mut row = vec![0; rect.width as usize * bytes];
                if pread(&image.fd, &mut row, offset) != Ok(row.len()) {
                    return Err(Refused("the file has become shorter".to_owned()));
                }
                rows.write(rect.x, y, &row)?;
            }
        }
        Ok(())
    }
}

/// A reader that answers when it is told to.
#[derive(Debug, Default)]
pub struct Reader {
    images: BTreeMap<BufferId, Image>,
    waiting: VecDeque<Ask>,
    cancelled: VecDeque<Job>,
}

impl Reader {
    /// It is asked.
    pub fn ask(&mut self, ask: Ask) {
        if let Ask::Cancel { job } = ask {
            let is_it = |ask: &Ask| matches!(ask, Ask::Read { job: asked, .. } if *asked == job);
            if self.waiting.iter().any(is_it) {
                self.waiting.retain(|ask| !is_it(ask));
                self.cancelled.push_back(job);
            }
            return;
        }
        self.waiting.push_back(ask);
    }

    /// Answers the next thing that it was asked, if anything waits.
    pub fn answer(&mut self) -> Option<Answer> {
        self.next_with(|reader, ask| match ask {
            Ask::Import { buffer, dmabuf } => {
                let outcome = Memory.import(&dmabuf).map(|image| {
                    reader.images.insert(buffer, image);
                    Route::Gpu
                });
                Some(Answer::Imported { buffer, outcome })
            }
            Ask::Read { job, buffer, region, .. } => Some(reader.read(job, buffer, &region)),
            Ask::Cancel { .. } | Ask::Forget { .. } => None,
        })
    }

    /// Answers the next thing as a reader does that cannot do it.
    pub fn refuse(&mut self) -> Option<Answer> {
        self.next_with(|_, ask| match ask {
            Ask::Import { buffer, .. } => {
                Some(Answer::Imported { buffer, outcome: Err(Refused("refused".to_owned())) })
            }
            Ask::Read { job, .. } => Some(Answer::Read { job, frame: None }),
            Ask::Cancel { .. } | Ask::Forget { .. } => None,
        })
    }

    /// What waits for an answer.
    pub fn waiting(&self) -> impl Iterator<Item = &Ask> {
        self.waiting.iter()
    }

    /// How many buffers it has, with those that it is to forget next taken off.
    pub fn images(&mut self) -> usize {
        while let Some(Ask::Forget { buffer }) = self.waiting.front() {
            self.images.remove(buffer);
            self.waiting.pop_front();
        }
        self.images.len()
    }

    fn next_with(&mut self, mut answer: impl FnMut(&mut Self, Ask) -> Option<Answer>) -> Option<Answer> {
        if let Some(job) = self.cancelled.pop_front() {
            return Some(Answer::Read { job, frame: None });
        }
        loop {
            let is_undrawn =
                |ask: &Ask| matches!(ask, Ask::Read { fence: Some(fence), .. } if !is_ready(fence));
            let next = self.waiting.iter().position(|ask| !is_undrawn(ask))?;
            match self.waiting.remove(next)? {
                Ask::Forget { buffer } => drop(self.images.remove(&buffer)),
                ask => return answer(self, ask),
            }
        }
    }

    fn read(&mut self, job: Job, buffer: BufferId, region: &Region) -> Answer {
        let frame = self.images.get(&buffer).and_then(|image| {
            let length = image.size.rect().area() as usize * image.format.bytes_per_pixel();
            let memory = memfd_create("wayferry-frame", MemfdFlags::CLOEXEC).ok()?;
            ftruncate(&memory, length as u64).ok()?;
            let mut map = Map::writable(&memory, length).ok()?;
            // What was not asked for is not what the program drew.
            map.copy_in(0, &vec![0xEE; length])?;
            let reading = Memory.begin(image, region).ok()?;
            Memory.end(image, reading, &mut Rows::new(&mut map, image.size, image.format)?).ok()?;
            Some(Frame::new(Rc::new(memory), TOOK))
        });
        Answer::Read { job, frame }
    }
}

/// What each reading takes.
const TOOK: Duration = Duration::from_millis(2);

/// Timelines that tests make.
#[derive(Debug, Default)]
pub struct Timelines(RefCell<Vec<Rc<Timeline>>>);

impl Timelines {
    /// The next one that a program hands over, by the order in which they came.
    #[must_use]
    pub fn nth(&self, number: usize) -> Rc<Timeline> {
        Rc::clone(&self.0.borrow()[number])
    }
}

impl timeline::Timelines for Timelines {
    /// A pipe's end is none.
    fn import(&self, fd: OwnedFd) -> Option<Rc<dyn timeline::Timeline>> {
        let is_memory = fcntl_get_seals(&fd).is_ok();
        let made = Rc::new(Timeline::default());
        self.0.borrow_mut().push(Rc::clone(&made));
        is_memory.then_some(made as Rc<dyn timeline::Timeline>)
    }
}

/// A timeline that a test reaches points of.
#[derive(Debug, Default)]
pub struct Timeline {
    reached: RefCell<Vec<u64>>,
    waiting: RefCell<Vec<(u64, OwnedFd)>>,
}

impl Timeline {
    /// The points that have been reached one by one, in the order in which they were.
    #[must_use]
    pub fn reached(&self) -> Vec<u64> {
        self.reached.borrow().clone()
    }

    /// How many points somebody waits for.
    #[must_use]
    pub fn awaited(&self) -> usize {
        self.waiting.borrow().len()
    }
}

impl timeline::Timeline for Timeline {
    fn reached(&self, point: u64) -> io::Result<OwnedFd> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        self.waiting.borrow_mut().push((point, fd.try_clone()?));
        self.tell()?;
        Ok(fd)
    }

    fn reach(&self, point: u64) {
        self.reached.borrow_mut().push(point);
        // An eventfd takes a one.
        let _ = self.tell();
    }
}

impl Timeline {
    fn tell(&self) -> io::Result<()> {
        let last = self.reached.borrow().iter().copied().max().unwrap_or(0);
        let due = self.waiting.borrow_mut().extract_if(.., |(point, _)| *point <= last).collect::<Vec<_>>();
        for (_, fd) in due {
            write(&fd, &1u64.to_ne_bytes())?;
        }
        Ok(())
    }
}

fn is_ready(fence: &Fence) -> bool {
    let now = Timespec::default();
    poll(&mut [PollFd::new(fence, PollFlags::IN)], Some(&now)) == Ok(1)
}
