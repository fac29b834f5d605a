//! The session's end of its reader: what is asked of it, what it has answered, and what becomes of that when it ends.
//!
//! No I/O but memory files: packets, ends and times come from outside. A reader that ends is started again, later each
//! time; it is then given all buffers anew, and asked again what it has not answered. What it was working on may have
//! ended it: what has done so twice is refused. Invariant: every ask gets its answer, once, if its program is still
//! there.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use wayferry_pixels::Region;

use super::ask::{Answer, Ask, BufferId, Job};
use super::dmabuf::Dmabuf;
use super::frame::Frame;
use super::importer::{Refused, Route};
use super::offer::Offer;
use super::slots::{Lent, Slots};
use super::syncobj::Syncobjs;
use super::timeline::{Fence, Timelines};
use super::wire::{FromReader, Means, ToReader};

/// A program's connection.
pub type Owner = u64;

/// See the module. Times are since any moment.
#[derive(Debug)]
pub struct Client {
    state: State,
    images: BTreeMap<u64, Image>,
    names: HashMap<(Owner, BufferId), u64>,
    /// Readings that have not been asked for.
    jobs: BTreeMap<u64, Reading>,
    /// What has been asked and not answered, in order.
    sent: VecDeque<Sent>,
    slots: Slots,
    output: VecDeque<Packet>,
    answers: VecDeque<(Owner, Answer)>,
    last_name: u64,
    backoff: Duration,
    /// A reader was there once: the next one that can read nothing has a reason that may pass.
    was_up: bool,
    /// Buffers of programs over which readers have ended.
    blames: HashMap<Owner, u32>,
    /// When the reader said something last, and the buffers that its driver works on.
    heard: Duration,
    begun: Vec<u64>,
    /// A reader has ended while it worked on several: they are given one at a time, until one has lasted.
    careful: bool,
    figures: Figures,
}

/// What readers have done for a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// How many have been started.
    pub readers: u64,
    /// Readings that gave pixels.
    pub read: u64,
    /// Readings that did not.
    pub unread: u64,
    /// Bytes of those pixels.
    pub bytes: u64,
    /// What all of those took, from asking to the answer.
    pub took: Duration,
}

/// A packet for the reader.
#[derive(Debug)]
pub struct Packet {
    /// Its bytes.
    pub bytes: Vec<u8>,
    attached: Attached,
}

#[derive(Debug)]
enum Attached {
    Nothing,
    Planes(Rc<Dmabuf>),
    Memory(Rc<OwnedFd>),
}

impl Packet {
    /// What goes with it.
    #[must_use]
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        match &self.attached {
            Attached::Nothing => Vec::new(),
            Attached::Planes(dmabuf) => planes(dmabuf),
            Attached::Memory(memory) => vec![memory.as_fd()],
        }
    }
}

/// What is to be done about the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Start it.
    Start,
    /// End it: it does not answer.
    Kill,
}

#[derive(Debug)]
enum State {
    /// There is none until then.
    Down(Duration),
    /// It was started then, and has said nothing.
    Starting(Duration),
    Up {
        since: Duration,
        means: Means,
        offer: Rc<Offer>,
    },
    /// No reader can read anything here, and why.
    Unable(String),
}

#[derive(Debug)]
struct Image {
    owner: Owner,
    buffer: BufferId,
    dmabuf: Rc<Dmabuf>,
    /// Its program knows that it can be read, or cannot.
    answered: bool,
    /// A reader ended over it.
    suspect: bool,
    /// The same again: no reader gets it any more.
    refused: bool,
}

/// A reading that waits.
#[derive(Debug)]
struct Reading {
    owner: Owner,
    job: Job,
    image: u64,
    region: Region,
    /// What tells that the buffer has been drawn, if the program tells.
    fence: Option<Rc<Fence>>,
    /// It has.
    drawn: bool,
}

#[derive(Debug)]
struct Sent {
    what: What,
    at: Duration,
}

#[derive(Debug)]
enum What {
    Import(u64),
    /// The reading, its name, and the memory that it goes to.
    Read(u64, Reading, u32),
}

impl Default for Client {
    fn default() -> Self {
        Self {
            state: State::Down(Duration::ZERO),
            images: BTreeMap::new(),
            names: HashMap::new(),
            jobs: BTreeMap::new(),
            sent: VecDeque::new(),
            slots: Slots::default(),
            output: VecDeque::new(),
            answers: VecDeque::new(),
            last_name: 0,
            backoff: FIRST_BACKOFF,
            was_up: false,
            blames: HashMap::new(),
            heard: Duration::ZERO,
            begun: Vec::new(),
            careful: false,
            figures: Figures::default(),
        }
    }
}

impl Client {
    /// What a program that begins now is offered.
    #[must_use]
    pub fn offer(&self) -> Option<&Rc<Offer>> {
        match &self.state {
            State::Up { offer, .. } => Some(offer),
            _ => None,
        }
    }

    /// What the reader reads with.
    #[must_use]
    pub fn means(&self) -> Option<&Means> {
        match &self.state {
            State::Up { means, .. } => Some(means),
            _ => None,
        }
    }

    /// What readers have done.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.figures
    }

    /// Why there will be no reader, if there will be none.
    #[must_use]
    pub fn unable(&self) -> Option<&str> {
        match &self.state {
            State::Unable(why) => Some(why),
            _ => None,
        }
    }

    /// A program asks something.
    pub fn ask(&mut self, now: Duration, owner: Owner, ask: Ask) {
        match ask {
            Ask::Import { buffer, dmabuf } => {
                let name = self.name();
                self.names.insert((owner, buffer), name);
                self.images.insert(
                    name,
                    Image { owner, buffer, dmabuf, answered: false, suspect: false, refused: false },
                );
                self.import(now, name);
            }
            Ask::Read { job, buffer, region, fence } => match self.names.get(&(owner, buffer)) {
                // No program waits that long for a frame.
                Some(_) if self.offer().is_none() && self.backoff > PATIENCE => {
                    self.answers.push_back((owner, Answer::Read { job, frame: None }));
                }
                Some(&image) => {
                    let name = self.name();
                    let reading = Reading { owner, job, image, region, fence, drawn: false };
                    self.line_up(name, reading);
                }
                None => self.answers.push_back((owner, Answer::Read { job, frame: None })),
            },
            Ask::Cancel { job } => {
                let is_it = |reading: &mut Reading| reading.owner == owner && reading.job == job;
                let cancelled: Vec<_> = self.jobs.extract_if(.., |_, reading| is_it(reading)).collect();
                cancelled.iter().for_each(|(_, reading)| self.answer_reading(reading, None));
            }
            Ask::Forget { buffer } => {
                if let Some(name) = self.names.remove(&(owner, buffer)) {
                    self.forget(name);
                }
            }
        }
    }

    /// A program is gone.
    pub fn part(&mut self, owner: Owner) {
        self.jobs.retain(|_, reading| reading.owner != owner);
        self.answers.retain(|(of, _)| *of != owner);
        let theirs = |(name, image): (&u64, &Image)| (image.owner == owner).then_some(*name);
        let gone: Vec<u64> = self.images.iter().filter_map(theirs).collect();
        gone.into_iter().for_each(|name| self.forget(name));
        self.names.retain(|(of, _), _| *of != owner);
        self.blames.remove(&owner);
    }

    /// Readings that wait for what draws on their buffers, by names of their own: until all these are ready to be read.
    pub fn undrawn(&self) -> impl Iterator<Item = (u64, Vec<BorrowedFd<'_>>)> {
        let undrawn = self.jobs.iter().filter(|(_, reading)| !reading.drawn);
        undrawn.filter_map(|(name, reading)| {
            let fds = match &reading.fence {
                Some(fence) => vec![fence.as_fd()],
                None => planes(&self.images.get(&reading.image)?.dmabuf),
            };
            Some((*name, fds))
        })
    }

    /// Whether a program's reading waits for what draws on its buffer.
    #[must_use]
    pub fn is_undrawn(&self, owner: Owner, job: Job) -> bool {
        let is_it = |reading: &Reading| reading.owner == owner && reading.job == job && !reading.drawn;
        self.jobs.values().any(is_it)
    }

    /// What draws on the buffer of a reading has ended.
    pub fn on_drawn(&mut self, now: Duration, name: u64) {
        if let Some(reading) = self.jobs.get_mut(&name) {
            reading.drawn = true;
        }
        self.read(now);
    }

    /// The next packet for the reader; stays until [`Self::sent`].
    #[must_use]
    pub fn output(&self) -> Option<&Packet> {
        self.output.front()
    }

    /// It has been sent.
    pub fn sent(&mut self) {
        self.output.pop_front();
    }

    /// The next answer, and for whom.
    pub fn poll_answer(&mut self) -> Option<(Owner, Answer)> {
        self.answers.pop_front()
    }

    /// When [`Self::on_timeout`] has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        match self.state {
            State::Down(until) => Some(until),
            State::Starting(since) => Some(since + HANG),
            State::Up { .. } => self.sent.front().map(|sent| sent.at.max(self.heard) + HANG),
            State::Unable(_) => None,
        }
    }

    /// What time alone brings.
    pub fn on_timeout(&mut self, now: Duration) -> Option<Due> {
        self.next_timeout().filter(|due| *due <= now)?;
        match self.state {
            State::Down(_) => {
                self.state = State::Starting(now);
                self.figures.readers += 1;
                Some(Due::Start)
            }
            State::Starting(_) | State::Up { .. } => Some(Due::Kill),
            State::Unable(_) => None,
        }
    }

    /// The reader says something.
    ///
    /// # Errors
    /// Nothing that it could mean: it is to be ended.
    pub fn on_packet(&mut self, now: Duration, packet: &[u8]) -> Result<(), Refused> {
        let wrong = |what: &str| Refused(what.to_owned());
        let message = FromReader::decode(packet).map_err(|_| wrong("malformed"))?;
        if let State::Starting(_) = self.state {
            return match message {
                FromReader::Ready(means) => self.come_up(now, means),
                FromReader::Unable { why } if self.was_up => Err(Refused(why)),
                FromReader::Unable { why } => {
                    self.state = State::Unable(why);
                    Ok(())
                }
                _ => Err(wrong("it was not ready")),
            };
        }
        if let FromReader::Begun { image } = message {
            self.heard = now;
            self.begun.push(image);
            return Ok(());
        }
        let is_it = match (&message, self.sent.front().map(|sent| &sent.what)) {
            (FromReader::Imported { image, .. }, Some(What::Import(asked))) => image == asked,
            (FromReader::Read { job, .. }, Some(What::Read(asked, ..))) => job == asked,
            _ => false,
        };
        // What was asked is asked of the next one.
        let sent =
            self.sent.pop_front_if(|_| is_it).ok_or_else(|| wrong("nothing of that kind was asked"))?;
        self.heard = now;
        let image = match &sent.what {
            What::Import(image) => *image,
            What::Read(_, reading, _) => reading.image,
        };
        if let Some(at) = self.begun.iter().position(|begun| *begun == image) {
            self.begun.swap_remove(at);
        }
        match (message, sent.what) {
            (FromReader::Imported { image, outcome }, _) => self.imported(image, outcome.map_err(Refused)),
            (FromReader::Read { outcome, .. }, What::Read(_, reading, slot)) => {
                let took = now.saturating_sub(sent.at);
                let frame = outcome.is_ok().then(|| self.slots.frame(slot, took)).flatten();
                self.slots.give_back(slot);
                self.count(&reading, frame.is_some(), took);
                self.answer_reading(&reading, frame);
                self.trim();
            }
            _ => {}
        }
        self.read(now);
        Ok(())
    }

    fn count(&mut self, reading: &Reading, gave: bool, took: Duration) {
        if !gave {
            self.figures.unread += 1;
            return;
        }
        let bytes =
            self.images.get(&reading.image).map_or(0, |image| image.dmabuf.format().bytes_per_pixel());
        self.figures.read += 1;
        self.figures.bytes += reading.region.area() * bytes as u64;
        self.figures.took += took;
    }

    /// The reader has ended, or could not be started.
    pub fn on_end(&mut self, now: Duration) {
        let lasted = match self.state {
            State::Up { since, .. } => now.saturating_sub(since) >= LASTING,
            // Nothing was asked of it.
            State::Unable(_) => return,
            _ => false,
        };
        if lasted {
            self.careful = false;
            self.images.values_mut().for_each(|image| image.suspect = false);
        }
        // What a buffer has done, the next reader will not do without it. One that ended while it did nothing was ended
        // by something else.
        let mut begun = std::mem::take(&mut self.begun);
        begun.retain(|image| self.images.contains_key(image));
        begun.dedup();
        self.backoff =
            if lasted || !begun.is_empty() { 2 * FIRST_BACKOFF } else { (self.backoff * 2).min(BACKOFF_MAX) };
        self.state = State::Down(now + self.backoff);
        self.output.clear();
        self.slots.forget_reader();
        match begun[..] {
            [image] => self.blame(image),
            [] => {}
            // Any of them may have been it.
            _ => self.careful = true,
        }
        let sent = std::mem::take(&mut self.sent);
        sent.into_iter().for_each(|sent| self.unanswered(sent.what));
        if self.backoff > PATIENCE {
            let waiting = std::mem::take(&mut self.jobs);
            waiting.values().for_each(|reading| self.answer_reading(reading, None));
        }
    }

    fn come_up(&mut self, now: Duration, means: Means) -> Result<(), Refused> {
        let timelines = means.device.and_then(Syncobjs::open);
        if means.lacks_fences && timelines.is_none() {
            let why =
                "its driver attaches no fences to buffers, and the kernel has no timelines in their place";
            // One that came up before had them: there is a reason that may pass.
            if !self.was_up {
                self.state = State::Unable(format!("{}: {why}", means.name));
            }
            return Err(Refused(why.to_owned()));
        }
        let timelines = timelines.map(|timelines| Rc::new(timelines) as Rc<dyn Timelines>);
        let offer = Offer::new(means.device, means.pairs.iter().copied());
        let offer = offer.map_err(|error| Refused(format!("the table of formats: {error}")))?;
        let offer = offer.with_timelines(timelines).lacking_fences(means.lacks_fences);
        self.state = State::Up { since: now, means, offer: Rc::new(offer) };
        self.was_up = true;
        let names: Vec<u64> = self.images.keys().copied().collect();
        names.into_iter().for_each(|name| self.import(now, name));
        self.read(now);
        Ok(())
    }

    /// Has a buffer imported, if there is a reader; each new one is given all.
    fn import(&mut self, now: Duration, name: u64) {
        let Some(image) = self.images.get(&name).filter(|image| !image.refused && self.offer().is_some())
        else {
            return;
        };
        let planes = image.dmabuf.planes().iter().map(|plane| (plane.offset, plane.stride)).collect();
        let message = ToReader::Import { image: name, described: image.dmabuf.described(), planes };
        let attached = Attached::Planes(Rc::clone(&image.dmabuf));
        self.output.push_back(Packet { bytes: message.encode(), attached });
        self.sent.push_back(Sent { what: What::Import(name), at: now });
    }

    /// Takes back memory that no reading needs.
    fn trim(&mut self) {
        for slot in self.slots.trim(MAX_READS) {
            let bytes = ToReader::Lend { slot, bytes: 0 }.encode();
            self.output.push_back(Packet { bytes, attached: Attached::Nothing });
        }
    }

    /// Has what has been drawn read, a few at a time.
    fn read(&mut self, now: Duration) {
        if self.offer().is_none() {
            return;
        }
        let most = if self.careful { 1 } else { MAX_READS };
        let being_read = self.sent.iter().filter(|sent| matches!(sent.what, What::Read(..))).count();
        let drawn = self.jobs.iter().filter(|(_, reading)| reading.drawn).map(|(name, _)| *name);
        let next: Vec<u64> = drawn.take(most.saturating_sub(being_read)).collect();
        for name in next {
            let Some(reading) = self.jobs.remove(&name) else { continue };
            let image = self.images.get(&reading.image);
            let bytes = image.map_or(0, |image| {
                image.dmabuf.described().size.rect().area() * image.dmabuf.format().bytes_per_pixel() as u64
            });
            let Some((slot, lent)) = self.slots.take(bytes) else {
                self.answer_reading(&reading, None);
                continue;
            };
            if let Some(Lent { memory, bytes }) = lent {
                let bytes = ToReader::Lend { slot, bytes }.encode();
                self.output.push_back(Packet { bytes, attached: Attached::Memory(memory) });
            }
            let (image, region) = (reading.image, reading.region.clone());
            let bytes = ToReader::Read { job: name, image, slot, region }.encode();
            self.output.push_back(Packet { bytes, attached: Attached::Nothing });
            self.sent.push_back(Sent { what: What::Read(name, reading, slot), at: now });
        }
    }

    fn imported(&mut self, name: u64, outcome: Result<Route, Refused>) {
        let Some(image) = self.images.get_mut(&name) else { return };
        if !std::mem::replace(&mut image.answered, true) {
            self.answers.push_back((image.owner, Answer::Imported { buffer: image.buffer, outcome }));
        }
    }

    /// A reading waits until what draws on its buffer has ended.
    fn line_up(&mut self, name: u64, reading: Reading) {
        match self.images.get(&reading.image) {
            Some(image) if image.refused => self.answer_reading(&reading, None),
            Some(_) => drop(self.jobs.insert(name, reading)),
            None => {}
        }
    }

    fn answer_reading(&mut self, reading: &Reading, frame: Option<Frame>) {
        if self.images.contains_key(&reading.image) {
            self.answers.push_back((reading.owner, Answer::Read { job: reading.job, frame }));
        }
    }

    /// A reader has ended over a buffer: perhaps by chance, the first time.
    fn blame(&mut self, name: u64) {
        let Some(image) = self.images.get_mut(&name) else { return };
        let blames = self.blames.entry(image.owner).or_default();
        *blames += 1;
        if !std::mem::replace(&mut image.suspect, true) && *blames <= MAX_BLAMES {
            return;
        }
        image.refused = true;
        self.imported(name, Err(Refused("what reads it has ended over it, twice".to_owned())));
        let theirs = self.jobs.extract_if(.., |_, reading| reading.image == name);
        theirs.collect::<Vec<_>>().iter().for_each(|(_, reading)| self.answer_reading(reading, None));
    }

    /// A reader has ended without an answer to this.
    fn unanswered(&mut self, what: What) {
        if let What::Read(name, reading, _) = what {
            self.line_up(name, reading);
        }
    }

    /// A buffer is not read any more.
    fn forget(&mut self, name: u64) {
        // Nothing waits for them any more.
        self.jobs.retain(|_, reading| reading.image != name);
        if self.images.remove(&name).is_some() && self.offer().is_some() {
            let bytes = ToReader::Forget { image: name }.encode();
            self.output.push_back(Packet { bytes, attached: Attached::Nothing });
        }
    }

    fn name(&mut self) -> u64 {
        self.last_name += 1;
        self.last_name
    }
}

fn planes(dmabuf: &Dmabuf) -> Vec<BorrowedFd<'_>> {
    dmabuf.planes().iter().map(|plane| plane.fd.as_fd()).collect()
}

/// Readings that a reader is asked for at once: the next is ready when one has ended.
const MAX_READS: usize = 4;
/// Ends of readers over buffers of one program; what it does after that is refused the first time.
const MAX_BLAMES: u32 = 8;
/// A reader that answers nothing for so long hangs. The first use of a driver may take seconds.
const HANG: Duration = Duration::from_secs(20);
/// After that long a reader is not to blame for an end that comes.
const LASTING: Duration = Duration::from_secs(60);
/// Before the first start after an end; twice as long each time.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Frames wait for a reader that comes back sooner.
const PATIENCE: Duration = Duration::from_secs(2);
